//! What a spec fixes about calibration, and how many runs that takes.
//!
//! The arithmetic of `specs/qualification-v1.md`, section 9.1: of a plan alone, so that it can be asked before anything runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Partition, Spec, SpecError};
use crate::binding::{Mode, Role};
use crate::numerics::{least_count, upper_bound};

/// What a distributional gate would be made by. It is fixed before anything is calibrated, and replaces nothing: the gate is strict.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibrationPlan {
    /// Which rule
    pub rule: CalibrationRule,
    /// The chance of being wrong that it may have: above 0, at most one half, in whole millionths
    pub alpha: f64,
    /// Of the rule `share`: the largest share of units that may exceed the margin, in whole millionths
    #[serde(default)]
    pub share: Option<f64>,
    /// Of the rule `share`: by how much KL, in nats, a unit may exceed what oracles differ in by themselves
    #[serde(default)]
    pub margin: Option<f64>,
}

/// By which rule a threshold is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CalibrationRule {
    /// No held-out run lies beyond the largest of the calibration runs
    Maximum,
    /// At most a share of the units lies beyond a margin
    Share,
}

impl CalibrationPlan {
    /// `alpha` in parts per million.
    #[must_use]
    pub fn alpha_ppm(&self) -> u32 {
        ppm(self.alpha).unwrap_or(0)
    }

    /// `share` in parts per million; none where the rule has none.
    #[must_use]
    pub fn share_ppm(&self) -> Option<u32> {
        self.share.and_then(ppm)
    }

    pub(super) fn check(&self) -> Result<(), SpecError> {
        let value = |key: &str, expected: &str, found: &str| SpecError::Value {
            key: format!("calibration.{key}"),
            expected: expected.to_owned(),
            found: found.to_owned(),
        };
        let part = "above 0, at most 0.5, in whole millionths";
        let is_part = |value: f64| ppm(value).is_some_and(|found| (1..=500_000).contains(&found));
        if !is_part(self.alpha) {
            return Err(value("alpha", part, &self.alpha.to_string()));
        }
        match (self.rule, self.share, self.margin) {
            (CalibrationRule::Maximum, None, None) => Ok(()),
            (CalibrationRule::Maximum, ..) => Err(value("rule", "share, where share or margin are given", "maximum")),
            (CalibrationRule::Share, Some(share), _) if !is_part(share) => {
                Err(value("share", part, &share.to_string()))
            }
            (CalibrationRule::Share, Some(_), Some(margin)) if margin.is_finite() && margin >= 0.0 => Ok(()),
            (CalibrationRule::Share, Some(_), Some(margin)) => {
                Err(value("margin", "nats, 0 or more", &margin.to_string()))
            }
            (CalibrationRule::Share, ..) => Err(value("rule", "share and margin beside the rule share", "one or none")),
        }
    }
}

/// A share in parts per million; none where it is not a whole number of them.
fn ppm(share: f64) -> Option<u32> {
    (0..=1_000_000).contains(&nearest(share * 1e6)).then(|| nearest(share * 1e6)).and_then(|parts| {
        let whole = u32::try_from(parts).ok()?;
        (f64::from(whole) / 1e6).total_cmp(&share).is_eq().then_some(whole)
    })
}

#[expect(clippy::cast_possible_truncation, reason = "saturates, and is compared with the share again")]
fn nearest(value: f64) -> i64 {
    value.round() as i64
}

/// What the rule needs for one mode with scores at one concurrency, and what the plan has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// At which concurrency
    pub concurrency: u32,
    /// In which mode
    pub mode: Mode,
    /// Oracle runs that calibrate
    pub calibrating: u32,
    /// Runs that are held out: the oracle's or the candidate's, whichever are more
    pub held_out: u32,
    /// What is counted
    pub counted: &'static str,
    /// How many of them the rule needs
    pub needs: u64,
    /// How many of them the plan has
    pub planned_units: u64,
    /// What those of the plan can show at best, in parts per million: none of them beyond the margin, the share is at most this. Only of the rule `share`
    pub bound: Option<u32>,
}

impl Need {
    /// Whether the plan cannot carry the rule, whatever comes of the runs.
    #[must_use]
    pub fn falls_short(&self) -> bool {
        self.planned_units < self.needs
    }
}

impl Spec {
    /// What the rule needs of every mode with scores, at each concurrency, that an oracle calibrates by; by concurrency, then by the mode's name. Empty without a rule.
    #[must_use]
    pub fn calibration_needs(&self) -> Vec<Need> {
        let Some(plan) = &self.calibration else { return Vec::new() };
        let calibrating = self.runs.iter().filter(|runs| {
            runs.role == Role::Oracle && runs.mode != Mode::Baseline && runs.partition == Some(Partition::Calibration)
        });
        let cells: BTreeMap<(u32, &str), Mode> = calibrating
            .flat_map(|runs| runs.concurrency.iter().map(|&concurrency| ((concurrency, runs.mode.name()), runs.mode)))
            .collect();
        cells.into_iter().map(|((concurrency, _), mode)| self.need(plan, concurrency, mode)).collect()
    }

    fn need(&self, plan: &CalibrationPlan, concurrency: u32, mode: Mode) -> Need {
        let planned = |role, partition| {
            let here = self.runs.iter().filter(|runs| {
                (runs.role, runs.mode, runs.partition) == (role, mode, Some(partition))
                    && runs.concurrency.contains(&concurrency)
            });
            here.map(|runs| runs.repetitions).fold(0, u32::saturating_add)
        };
        let calibrating = planned(Role::Oracle, Partition::Calibration);
        let candidates = planned(Role::Candidate, Partition::HeldOut);
        let held_out = candidates.max(planned(Role::Oracle, Partition::HeldOut));
        let alpha = plan.alpha_ppm();
        let (counted, units, needs, bound) = match plan.rule {
            CalibrationRule::Maximum => ("calibration runs", calibrating, runs_needed(held_out, alpha), None),
            CalibrationRule::Share => {
                let prompts = self.corpus.as_ref().map_or(0, |corpus| corpus.requests);
                // Requests that were computed together are one unit, and so are repeats of one request where it is computed alone.
                let (counted, units) = match (candidates, concurrency) {
                    (0, _) => ("held-out units", 0),
                    (_, 1) => ("held-out requests", prompts),
                    _ => ("held-out runs", candidates),
                };
                let bound = upper_bound(u64::from(units), alpha);
                (counted, units, least_count(plan.share_ppm().unwrap_or(1), alpha), Some(bound))
            }
        };
        Need { concurrency, mode, calibrating, held_out, counted, needs, planned_units: u64::from(units), bound }
    }
}

/// How many runs there must be for their maximum to hold for so many more, all of them, but with a probability of `alpha` parts per million:
/// n ≥ m (1 − α) / α, since of n + m runs that are alike each is the largest with the same chance.
fn runs_needed(held_out: u32, alpha: u32) -> u64 {
    const WHOLE: u64 = 1_000_000;
    let alpha = u64::from(alpha.max(1));
    (u64::from(held_out) * (WHOLE - alpha)).div_ceil(alpha).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_needs_as_many_runs_as_order_statistics_say() {
        // n = m (1 − α) / α: 19 for one more run at 5 %, 38 for two, 99 for one at 1 %.
        for (held_out, alpha, expected) in
            [(1, 50_000, 19), (2, 50_000, 38), (3, 50_000, 57), (1, 10_000, 99), (1, 500_000, 1), (1, 333_333, 3)]
        {
            assert_eq!(runs_needed(held_out, alpha), expected, "{held_out} at {alpha}");
        }
        assert_eq!(runs_needed(u32::MAX, 1), u64::from(u32::MAX) * 999_999);
    }

    #[test]
    fn a_share_needs_as_many_units_as_clopper_and_pearson_say() {
        // (1 − π)^n ≤ α: 59 units for 5 % at 95 %, 299 for 1 %; six units without an exceedance leave 39.3 %.
        assert_eq!(least_count(50_000, 50_000), 59);
        assert_eq!(least_count(10_000, 50_000), 299);
        assert_eq!(least_count(1, 1), 13_815_504);
        assert_eq!(least_count(500_000, 500_000), 1);
        assert_eq!(upper_bound(6, 50_000), 393_038);
        assert_eq!(upper_bound(59, 50_000), 49_508);
        assert_eq!(upper_bound(0, 50_000), 1_000_000);
    }

    const RUNS: &str = "schema = \"witnessmark.spec/v1\"\nworkload = \"w\"\n[corpus]\nrequests = 6\nnew_tokens = 1\n";

    fn runs(role: &str, mode: &str, repetitions: u32, more: &str) -> String {
        format!(
            "[[runs]]\nrole = \"{role}\"\nmode = \"{mode}\"\nconcurrency = [1, 4]\nrepetitions = {repetitions}\n{more}\n"
        )
    }

    #[test]
    fn what_a_plan_cannot_carry_is_said_before_anything_runs() {
        let calibrating = "partition = \"calibration\"\nrun_ids = [\"a\"]";
        let held = "partition = \"held-out\"\nrun_ids = [\"b\"]";
        let plan = [
            RUNS.to_owned(),
            runs("oracle", "capture-only", 3, calibrating),
            runs("oracle", "baseline", 3, "partition = \"calibration\""),
            runs("oracle", "capture-only", 1, held),
            runs("candidate", "capture-only", 2, "partition = \"held-out\""),
        ]
        .concat();
        let needs = |rule: &str| {
            let spec = Spec::parse(&format!("{plan}[calibration]\n{rule}")).unwrap();
            (spec.calibration_needs(), spec.open())
        };
        let (maximum, open) = needs("rule = \"maximum\"\nalpha = 0.05");
        assert_eq!(
            maximum.iter().map(|need| (need.concurrency, need.held_out, need.needs)).collect::<Vec<_>>(),
            [(1, 2, 38), (4, 2, 38)]
        );
        assert!(
            open.contains(
                &"calibration: the rule needs 38 calibration runs of capture-only c1, and the plan has 3".to_owned()
            ),
            "{open:?}"
        );
        let (share, _) = needs("rule = \"share\"\nalpha = 0.05\nshare = 0.4\nmargin = 0.1");
        let units: Vec<_> = share
            .iter()
            .map(|need| (need.counted, need.planned_units, need.needs, need.bound, need.falls_short()))
            .collect();
        assert_eq!(
            units,
            [("held-out requests", 6, 6, Some(393_038), false), ("held-out runs", 2, 6, Some(776_394), true)]
        );
    }

    #[test]
    fn what_is_held_out_is_known_beforehand_and_only_oracles_calibrate() {
        let calibrating = |ids: &str| runs("oracle", "capture-only", 1, &format!("partition = \"calibration\"\n{ids}"));
        let held = |ids: &str| runs("oracle", "capture-only", 1, &format!("partition = \"held-out\"\n{ids}"));
        let parse = |parts: &[String]| Spec::parse(&format!("{RUNS}{}", parts.concat()));
        assert!(parse(&[calibrating("run_ids = [\"a\"]"), held("run_ids = [\"b\"]")]).is_ok());
        for (first, second) in [
            ("", ""),
            ("run_ids = [\"a\"]", ""),
            ("", "run_ids = [\"b\"]"),
            ("run_ids = [\"a\", \"b\"]", "run_ids = [\"b\"]"),
        ] {
            let error = parse(&[calibrating(first), held(second)]).unwrap_err().to_string();
            assert!(error.starts_with("runs[1].run_ids: expected run_ids in both entries"), "{error}");
        }
        let error = parse(&[runs("oracle", "capture-only", 1, ""), held("run_ids = [\"b\"]")]).unwrap_err().to_string();
        assert!(error.ends_with("oracle capture-only kept for different things"), "{error}");
        let candidate = runs("candidate", "capture-only", 1, "partition = \"calibration\"");
        let error = parse(&[candidate]).unwrap_err().to_string();
        assert!(error.starts_with("runs[0].partition: expected held-out"), "{error}");
    }

    #[test]
    fn more_runs_than_can_be_counted_are_many() {
        let half = 1 << 31;
        let many = [runs("oracle", "capture-only", half, ""), runs("oracle", "capture-only", half, "")].concat();
        let strata = "[strata]\nconcurrency = [1, 4]\nphases = [\"decode\"]\n";
        let open = Spec::parse(&format!("{RUNS}{strata}{many}")).unwrap().open();
        assert!(!open.iter().any(|line| line.contains("fewer than two")), "{open:?}");
    }

    #[test]
    fn shares_are_whole_millionths() {
        for (alpha, taken) in [
            ("0.05", true),
            ("0.000001", true),
            ("0.5", true),
            ("0.0000001", false),
            ("0.1234567", false),
            ("nan", false),
            ("1e300", false),
        ] {
            let text = format!("{RUNS}[calibration]\nrule = \"maximum\"\nalpha = {alpha}");
            assert_eq!(Spec::parse(&text).is_ok(), taken, "{alpha}");
        }
    }
}
