//! `shape-mismatch`: what is compared was computed in equal company.

use super::claim::ClaimBench;
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
    let text = |json: Option<&Json>| json.filter(|json| **json != Json::Null).map(Json::to_text);
    for claimed in bench.captures {
        for path in spec.comparison.shapes.iter().filter(|path| text(claimed.run.binding(path)).is_none()) {
            let subject = claimed.subject(Subject::Binding(path.clone()));
            bench.refuse(Rule::ShapeMismatch, subject, "a declared shape, which the spec requires", "nothing");
        }
    }
    for (candidate, oracle) in bench.pairs() {
        for path in DECLARED {
            let [found, expected] = [candidate, oracle].map(|side| text(side.run.binding(path)));
            if found != expected {
                let show = |value: Option<String>| value.unwrap_or_else(|| "nothing".to_owned());
                let subject = candidate.subject(Subject::Binding(path.to_owned()));
                let expected = format!("{} as in {}", show(expected), oracle.run.run_id);
                bench.refuse(Rule::ShapeMismatch, subject, expected, show(found));
            }
        }
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
