//! `run-mixed`: all rows come from the one run that run.json describes.

use super::{About, Applies, Bench};
use crate::digest::{Sha256, Sha256Stream};
use crate::refusal::Rule;

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "All rows were made by one run: every row carries the run's nonce, and the chain of digests in callback order is unbroken. \
               Two runs of equal configuration cannot be mixed into one capture.",
    remedy: "Capture again, with one nonce a run on every row.",
    applies: Applies::Always,
};

pub(super) fn check(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    let nonce = evidence.run.run_nonce.as_deref();
    let chained = evidence.rows.iter().any(|row| row.chain_sha256.is_some());
    if evidence.rows.iter().all(|row| row.run_nonce.is_none()) {
        if !chained {
            let why = "rows carry neither run_nonce nor chain_sha256";
            bench.findings.not_checkable(Rule::RunMixed, why);
        }
    } else {
        for row in evidence.rows.iter().filter(|row| row.run_nonce.as_deref() != nonce) {
            let expected = format!("run_nonce {}", nonce.unwrap_or("none, as run.json has none"));
            bench.refuse_row(Rule::RunMixed, row, expected, row.run_nonce.as_deref().unwrap_or("none"));
        }
    }
    if chained && bench.findings.refusals.is_empty() {
        check_chain(bench);
    }
}

fn check_chain(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    if evidence.run.is_partial() {
        bench.findings.not_checkable(Rule::RunMixed, "chain_sha256 of a partial capture");
        return;
    }
    if evidence.run.scores.is_some() && !bench.all_scores_read() {
        bench.findings.not_checkable(Rule::RunMixed, "chain_sha256 without reading all scores");
        return;
    }
    let mut order: Vec<usize> = (0..evidence.rows.len()).collect();
    order.sort_by_key(|&index| evidence.rows[index].captured_seq);
    let mut previous = Sha256::of(evidence.run.run_nonce.as_deref().unwrap_or_default().as_bytes());
    for index in order {
        let row = &evidence.rows[index];
        let scores = bench.facts(index).and_then(|facts| facts.file_sha256);
        let mut stream = Sha256Stream::default();
        stream.update(&previous.0);
        stream.update(&row.prefix_sha256.0);
        stream.update(&row.token_id.0.to_le_bytes());
        stream.update(&scores.map_or([0; 32], |digest| digest.0));
        let expected = stream.digest();
        if row.captured_seq.is_none() || row.chain_sha256 != Some(expected) {
            let found = row.chain_sha256.map_or("none".to_owned(), |digest| digest.to_string());
            bench.refuse_row(Rule::RunMixed, row, format!("captured_seq and chain_sha256 {expected}"), found);
            // What follows a broken link cannot be judged.
            return;
        }
        previous = expected;
    }
}
