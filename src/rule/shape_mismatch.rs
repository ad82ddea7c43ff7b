//! `shape-mismatch`: what is compared was computed in equal company.

use super::claim::{ClaimBench, Claimed};
use super::{About, Applies};
use crate::canon::json::Json;
use crate::refusal::{Rule, Subject};
use crate::row::{Row, at_equal_prefixes, same_shape};
use crate::spec::ObservedShape;

/// Declared shapes that a candidate and an oracle of one concurrency must have in common.
const DECLARED: [&str; 2] = ["schedule.slots", "schedule.step"];

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "A claim compares runs of one declared shape (slots, step): numbers change with the batch, and a difference of shape passes for one of engines, or hides one.",
    remedy: "Run both sides with the same slots and step, and declare them; witnessmark diff compares other pairs, as a description.",
    applies: Applies::Qualification,
};

pub(super) fn check(bench: &mut ClaimBench<'_>) {
    let spec = bench.spec;
    check_declared(bench);
    for (candidate, oracle) in bench.pairs() {
        check_equal(bench, candidate, oracle);
        let scored = candidate.run.scores.is_some() && oracle.run.scores.is_some();
        if scored && spec.comparison.observed_shape == Some(ObservedShape::Equal) {
            let unequal = |&(a, b): &(&Row, &Row)| !same_shape(a, b);
            for (row, _) in at_equal_prefixes(candidate.rows, oracle.rows).filter(unequal) {
                let expected = format!("batch_size, query_len and kv_len as in {}", oracle.run.run_id);
                bench.refuse(
                    Rule::ShapeMismatch,
                    candidate.subject(Subject::Row(row.key)),
                    expected,
                    "others, or none",
                );
            }
        }
    }
}

/// Of a calibration: every oracle has the shapes of the first one at its concurrency.
pub(super) fn check_calibration(bench: &mut ClaimBench<'_>) {
    check_declared(bench);
    for claimed in bench.captures {
        let first = bench.captures.iter().find(|first| first.concurrency == claimed.concurrency);
        if let Some(first) = first {
            check_equal(bench, claimed, first);
        }
    }
}

/// Every capture gives the shapes that the spec requires.
fn check_declared(bench: &mut ClaimBench<'_>) {
    let spec = bench.spec;
    for claimed in bench.captures {
        for path in spec.comparison.shapes.iter().filter(|path| declared(claimed, path).is_none()) {
            let subject = claimed.subject(Subject::Binding(path.clone()));
            bench.refuse(Rule::ShapeMismatch, subject, "a declared shape, which the spec requires", "nothing");
        }
    }
}

/// Both declare the same, or neither does.
fn check_equal(bench: &mut ClaimBench<'_>, claimed: &Claimed<'_>, like: &Claimed<'_>) {
    for path in DECLARED {
        let [found, expected] = [claimed, like].map(|side| declared(side, path));
        if found != expected {
            let show = |value: Option<String>| value.unwrap_or_else(|| "nothing".to_owned());
            let subject = claimed.subject(Subject::Binding(path.to_owned()));
            let expected = format!("{} as in {}", show(expected), like.run.run_id);
            bench.refuse(Rule::ShapeMismatch, subject, expected, show(found));
        }
    }
}

/// What a run says of its shape; null is nothing.
fn declared(claimed: &Claimed<'_>, path: &str) -> Option<String> {
    claimed.run.binding(path).filter(|json| **json != Json::Null).map(Json::to_text)
}
