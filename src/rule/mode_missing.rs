//! `mode-missing`: every capture stands in the place that the spec has for it.

use super::claim::ClaimBench;
use super::{About, Applies};
use crate::binding::Role;
use crate::refusal::{Rule, Subject};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "A run of one mode, role or concurrency never stands for another: where a spec wants a free run at concurrency 1, a replay at 4 is not that evidence.",
    remedy: "Make the run that the spec wants, or name only captures that have a place in the spec.",
    applies: Applies::Qualification,
};

pub(super) fn check(bench: &mut ClaimBench<'_>) {
    let spec = bench.spec;
    for claimed in bench.captures {
        let run = claimed.run;
        if spec.runs.iter().any(|runs| runs.has_place_for(run)) {
            continue;
        }
        let wanted: Vec<String> =
            spec.runs.iter().filter(|runs| runs.run_ids.contains(&run.run_id)).map(place).collect();
        let expected = if wanted.is_empty() { "a place in the spec's runs".to_owned() } else { wanted.join(", or ") };
        let role = claimed.role.map_or("no role", |role| role.name());
        let at = claimed.concurrency.map_or("no concurrency".to_owned(), |n| format!("c{n}"));
        let found = format!("{role} {} {at}", run.mode.name());
        bench.refuse(Rule::ModeMissing, claimed.subject(Subject::Capture), expected, found);
    }
}

/// As [`check`], where only the calibration partition counts; what another rule says of candidates and held-out runs is left to it.
pub(super) fn check_calibration(bench: &mut ClaimBench<'_>) {
    let spec = bench.spec;
    for claimed in bench.captures.iter().filter(|claimed| claimed.role == Some(Role::Oracle)) {
        if spec.partition_of(claimed.run).is_none() {
            let expected = "a place in the spec's calibration partition";
            bench.refuse(Rule::ModeMissing, claimed.subject(Subject::Capture), expected, "none");
        }
    }
}

fn place(runs: &crate::spec::Runs) -> String {
    let at: Vec<String> = runs.concurrency.iter().map(|n| format!("c{n}")).collect();
    format!("{} {} {}", runs.role.name(), runs.mode.name(), at.join(" "))
}
