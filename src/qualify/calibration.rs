//! Calibrations: how an oracle differs from itself, from oracle captures of the calibration partition alone, and whether there are enough runs to carry the
//! rule that the spec fixed beforehand. No threshold comes of it, and nothing is accepted by it. See `specs/qualification-v1.md`, section 9.

use serde::{Deserialize, Serialize};

use super::result::{CaptureLine, InertnessLine, Noise, Repeatability, Stratum};
use super::{
    Answer, Gathered, QualifyError, claimed, declared, gather, inertness_line, line, pending, search, stratum,
};
use crate::binding::{Role, Run};
use crate::canon::document;
use crate::canon::real::Real;
use crate::catalog::{Catalog, Resolved};
use crate::digest::Sha256;
use crate::meter::Meter;
use crate::refusal::{Findings, NoteKind};
use crate::rule::claim::{Declared, Known, inertness, judge_calibration};
use crate::spec::calibration::{CalibrationPlan, CalibrationRule, Need};
use crate::spec::{NUMERICS, Partition, RULES, Spec};
use crate::store::Fault;
use crate::verify::Verified;

/// `schema` of a calibration document.
pub const CALIBRATION_SCHEMA: &str = "witnessmark.calibration/v1";

/// What a calibration came to, as a whole or for one mode and concurrency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 9")]
pub enum Sufficiency {
    InsufficientEvidence,
    Pending,
    Calibrated,
}

impl Sufficiency {
    /// The name in a document.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Sufficiency::InsufficientEvidence => "INSUFFICIENT_EVIDENCE",
            Sufficiency::Pending => "PENDING",
            Sufficiency::Calibrated => "CALIBRATED",
        }
    }
}

/// The rule, as the spec fixed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 9")]
pub struct RuleLine {
    pub alpha: u32,
    pub margin: Option<Real>,
    pub name: CalibrationRule,
    pub share: Option<u32>,
}

/// What there is and what the rule needs, for one mode at one concurrency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 9")]
pub struct CountLine {
    pub bound: Option<u32>,
    pub concurrency: u32,
    pub counted: String,
    pub found: u32,
    pub held_out: u32,
    pub mode: String,
    pub needs: u64,
    pub planned: u32,
    pub units: u64,
    pub verdict: Sufficiency,
}

/// How the oracle differs from itself in one stratum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 9")]
pub struct NoiseLine {
    pub concurrency: u32,
    pub noise: Vec<Noise>,
    pub phase: String,
    pub repeatability: Repeatability,
}

impl From<Stratum> for NoiseLine {
    fn from(stratum: Stratum) -> Self {
        let Stratum { concurrency, noise, phase, repeatability, .. } = stratum;
        Self { concurrency, noise, phase, repeatability }
    }
}

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 9")]
pub struct CalibrationDocument {
    pub captures: Vec<CaptureLine>,
    pub counts: Vec<CountLine>,
    pub inertness: Vec<InertnessLine>,
    pub numerics: String,
    pub pending: Vec<String>,
    pub rule: Option<RuleLine>,
    pub rules: String,
    pub schema: String,
    pub spec: Sha256,
    pub strata: Vec<NoiseLine>,
    pub verdict: Sufficiency,
    pub workload: String,
}

/// A calibration.
#[derive(Debug)]
pub struct Calibration {
    /// The document
    pub document: CalibrationDocument,
    /// Its canonical bytes
    pub bytes: Vec<u8>,
    /// What else a reader must know
    pub findings: Findings,
}

impl Calibration {
    /// The calibration SHA.
    #[must_use]
    pub fn sha256(&self) -> Sha256 {
        Sha256::of(&self.bytes)
    }
}

/// The captures of a store that a spec means to calibrate by.
#[must_use]
pub fn find(catalog: &Catalog<'_>, spec: &Spec) -> Vec<Resolved> {
    search(catalog, &|run| spec.partition_of(run) == Some(Partition::Calibration))
}

/// Derives the calibration of `spec` over `subjects`.
///
/// # Errors
/// When the store cannot be read, or somebody asked to stop.
///
/// # Refusals
/// In [`Answer::Refused`]: every rule that a capture alone can break, and those of `specs/qualification-v1.md`, section 9.
pub fn calibrate(
    catalog: &Catalog<'_>,
    spec: &Spec,
    subjects: &[Resolved],
    meter: &Meter,
) -> Result<Answer<Calibration>, QualifyError> {
    let Gathered { spec_id, captures, runs, mut findings } = match gather(catalog, spec, subjects, meter)? {
        Ok(gathered) => gathered,
        Err(findings) => return Ok(Answer::Refused(findings)),
    };
    let claimed = claimed(catalog, &runs, spec_id, &captures);
    let known: Vec<Known<'_>> = runs.values().map(|(run, row_root)| Known { run, row_root: *row_root }).collect();
    findings.absorb(judge_calibration(spec, &claimed, &known));
    if !findings.refusals.is_empty() {
        return Ok(Answer::Refused(findings.sorted()));
    }
    let inertness: Vec<_> = inertness(spec, &claimed).into_iter().filter(|found| found.role == Role::Oracle).collect();
    let derived = match stratum::derive(catalog.store(), spec, &captures, &inertness, meter) {
        Ok(derived) => derived,
        Err(Fault::Refused(refusal)) => return Ok(Answer::Refused(vec![refusal].into())),
        Err(Fault::Error(_)) if meter.is_stopped() => return Err(QualifyError::Interrupted),
        Err(Fault::Error(error)) => return Err(error.into()),
    };
    let counts: Vec<CountLine> = spec.calibration_needs().iter().map(|need| count(need, &captures)).collect();
    let mut pending = pending(spec, &captures, &|runs| runs.partition == Some(Partition::Calibration));
    if spec.calibration.is_none() {
        pending.push("calibration: the spec fixes no rule".to_owned());
    } else if counts.is_empty() {
        pending.push("runs: no oracle with scores in the calibration partition".to_owned());
    }
    for line in counts.iter().filter(|line| line.held_out == 0) {
        pending.push(format!("runs: nothing is held out of {} c{}", line.mode, line.concurrency));
    }
    pending.sort();
    let worst = counts.iter().map(|line| line.verdict).min();
    let verdict = match worst {
        Some(Sufficiency::InsufficientEvidence) => Sufficiency::InsufficientEvidence,
        Some(Sufficiency::Calibrated) if pending.is_empty() => Sufficiency::Calibrated,
        _ => Sufficiency::Pending,
    };
    let document = CalibrationDocument {
        captures: captures.iter().map(|capture| line(spec, capture)).collect(),
        counts,
        inertness: inertness.iter().map(inertness_line).collect(),
        numerics: NUMERICS.to_owned(),
        pending,
        rule: spec.calibration.as_ref().map(rule_line),
        rules: RULES.to_owned(),
        schema: CALIBRATION_SCHEMA.to_owned(),
        spec: spec_id,
        strata: derived.strata.into_iter().map(NoiseLine::from).collect(),
        verdict,
        workload: spec.workload.clone(),
    };
    let behind =
        captures.iter().filter(|capture| declared(catalog, &runs, spec_id, capture) != Declared::Before).count();
    if behind > 0 && spec.calibration.is_some() {
        let all = captures.len();
        findings.note(
            NoteKind::Undecided,
            format!("nothing shows that the rule was fixed before {behind} of the {all} captures were sealed: the spec stands behind them in the log, or in none (witnessmark spec seal)"),
        );
    }
    let bytes = document::encode(&document)?;
    Ok(Answer::Derived(Box::new(Calibration { document, bytes, findings: findings.sorted() })))
}

fn rule_line(plan: &CalibrationPlan) -> RuleLine {
    RuleLine {
        alpha: plan.alpha_ppm(),
        margin: plan.margin.and_then(Real::new),
        name: plan.rule,
        share: plan.share_ppm(),
    }
}

/// What there is of what the rule needs.
fn count(need: &Need, captures: &[Verified]) -> CountLine {
    let here = |run: &Run| run.mode == need.mode && run.requested_concurrency() == Some(need.concurrency);
    let found = captures.iter().filter(|capture| here(capture.run())).count();
    let found = u32::try_from(found).unwrap_or(u32::MAX);
    let verdict = if need.falls_short() {
        Sufficiency::InsufficientEvidence
    } else if found < need.calibrating || need.held_out == 0 {
        Sufficiency::Pending
    } else {
        Sufficiency::Calibrated
    };
    CountLine {
        bound: need.bound,
        concurrency: need.concurrency,
        counted: need.counted.to_owned(),
        found,
        held_out: need.held_out,
        mode: need.mode.name().to_owned(),
        needs: need.needs,
        planned: need.calibrating,
        units: need.planned_units,
        verdict,
    }
}
