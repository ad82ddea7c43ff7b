//! `spec-not-predeclared`: what a candidate is judged by was written down before it ran.

use super::claim::{ClaimBench, Declared};
use super::{About, Applies};
use crate::binding::Role;
use crate::refusal::{Rule, Subject};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The spec stood in the log before the candidate's captures: a plan that is written after the evidence can be written to fit it.",
    remedy: "Declare the spec first (witnessmark spec seal FILE), then run the candidate again and seal what it gives. Name the captures to qualify, or list run_ids in the spec: the earlier run still has a place.",
    applies: Applies::Qualification,
};

pub(super) fn check(bench: &mut ClaimBench<'_>) {
    for claimed in bench.captures.iter().filter(|claimed| claimed.role == Some(Role::Candidate)) {
        let found = match claimed.declared {
            Declared::Before => continue,
            Declared::After => "the spec after the capture",
            Declared::Never => "no spec beside the capture",
        };
        let expected = "the spec in the log before the candidate's capture";
        bench.refuse(Rule::SpecNotPredeclared, claimed.subject(Subject::Capture), expected, found);
    }
}
