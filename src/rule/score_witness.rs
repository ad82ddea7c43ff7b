//! `score-witness`: scores have the digests that were taken when they were captured.

use super::row_swapped::witnesses;
use super::{About, Applies, Bench};
use crate::digest::hex;
use crate::refusal::{Rule, Subject};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The scores are, to the last bit, the ones whose digest the adapter took at the moment of capture, in the dtype that run.json declares.",
    remedy: "The scores were changed after the capture, or the digest was taken over something else (it is over the row in the file's dtype). Capture again.",
    applies: Applies::Always,
};

pub(super) fn check(bench: &mut Bench<'_>) {
    let run = bench.evidence.run;
    for (index, row, facts) in bench.unnamed() {
        if let Some(broken) = witnesses(row, facts).into_iter().find(|witness| !witness.holds()) {
            let found =
                broken.found.map_or("scores that the declared dtype cannot hold".to_owned(), |found| hex(&found));
            bench.name_scores(Rule::ScoreWitness, index, format!("{} {}", broken.name, hex(&broken.claimed)), found);
        } else if !facts.fits_declared_dtype {
            let dtype = run.scores.as_ref().map_or("", |scores| scores.dtype.name());
            let found = "scores that it cannot hold";
            bench.name_scores(Rule::ScoreWitness, index, format!("scores of dtype {dtype}"), found);
        }
    }
    let rows = bench.evidence.rows;
    let without = rows.iter().filter(|row| row.scores_sha256.is_none() && row.scores_blake3.is_none()).count();
    if without > 0 {
        let which = if without == rows.len() { "rows".to_owned() } else { format!("{without} of {} rows", rows.len()) };
        let why = format!(
            "{which} carry neither scores_sha256 nor scores_blake3; scores changed before sealing would not show"
        );
        bench.findings.not_checkable(Rule::ScoreWitness, why);
    }
    let declared = run.scores.as_ref().and_then(|scores| scores.f32_sha256_at_capture);
    if let Some(declared) = declared {
        let found = bench.evidence.scores.and_then(|scores| scores.f32_sha256);
        if run.is_partial() {
            let why = "f32_sha256_at_capture of a partial capture";
            bench.findings.not_checkable(Rule::ScoreWitness, why);
        } else if !bench.broken.is_empty() {
            bench
                .findings
                .not_checkable(Rule::ScoreWitness, "f32_sha256_at_capture where rows are not the ones promised");
        } else if !bench.named.contains(&true) && found.is_some_and(|found| found != declared) {
            let subject = Subject::Binding("scores.f32_sha256_at_capture".to_owned());
            let found = found.map(|found| found.to_string()).unwrap_or_default();
            bench.refuse(Rule::ScoreWitness, subject, declared.to_string(), found);
        }
    }
}
