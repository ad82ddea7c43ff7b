//! `argmax-witness`: the recorded argmax and runner-up fit the scores.

use super::{About, Applies, Bench};
use crate::refusal::Rule;

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "What the adapter saw as the best and second-best token is so in the scores: scores in rank order, or of the next position, do not pass. Ties are \
               real in bf16: an argmax is right when it is a maximum.",
    remedy: "Check that scores are dense by token id and belong to this position.",
    applies: Applies::Always,
};

/// Numbers compare as numbers: +0 equals −0.
pub(super) fn equal(score: Option<f32>, other: f32) -> bool {
    score.is_some_and(|score| score.partial_cmp(&other) == Some(std::cmp::Ordering::Equal))
}

pub(super) fn check(bench: &mut Bench<'_>) {
    for (index, row, facts) in bench.unnamed() {
        let Some(argmax) = row.argmax else { continue };
        let scan = &facts.scan;
        if !equal(facts.at_argmax, scan.max) {
            let expected = format!("argmax with the highest score {:?} (token id {})", scan.max, scan.argmax);
            let found = format!("token id {argmax} with {:?}", facts.at_argmax.unwrap_or(f32::NAN));
            bench.name_scores(Rule::ArgmaxWitness, index, expected, found);
            continue;
        }
        let Some(runner_up) = row.runner_up else { continue };
        if runner_up == argmax || !equal(facts.at_runner_up, scan.second) {
            let expected = format!("another token id than {argmax} as runner_up, with {:?}", scan.second);
            let found = format!("token id {runner_up} with {:?}", facts.at_runner_up.unwrap_or(f32::NAN));
            bench.name_scores(Rule::ArgmaxWitness, index, expected, found);
        }
    }
    let rows = bench.evidence.rows;
    let without = rows.iter().filter(|row| row.argmax.is_none()).count();
    if without == rows.len() {
        bench.findings.not_checkable(Rule::ArgmaxWitness, "rows carry no argmax");
    } else if without > 0 {
        let why = format!("{without} of {} rows carry no argmax", rows.len());
        bench.findings.not_checkable(Rule::ArgmaxWitness, why);
    }
}
