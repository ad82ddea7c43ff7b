//! `run-reused`: every capture of a claim is of a run of its own.

use super::claim::{ClaimBench, same_run};
use super::{About, Applies};
use crate::refusal::{Rule, Subject};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "A repeat is another run, and a candidate is not the oracle's run under another name: two captures of one run show nothing about repetition or about two engines.",
    remedy: "Name each run once; run again for a repeat, with a nonce of its own.",
    applies: Applies::Qualification,
};

pub(super) fn check(bench: &mut ClaimBench<'_>) {
    for (n, claimed) in bench.captures.iter().enumerate() {
        let earlier = bench.captures.iter().take(n);
        let Some((what, other)) =
            earlier.filter_map(|other| Some((same_run(&claimed.known(), &other.known())?, other))).next()
        else {
            continue;
        };
        let found = format!("the {what} of {}", other.run.run_id);
        bench.refuse(Rule::RunReused, claimed.subject(Subject::Capture), "a run of its own", found);
    }
}
