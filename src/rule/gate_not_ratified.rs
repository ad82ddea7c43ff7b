//! `gate-not-ratified`: only a gate that a person has ratified accepts anything.

use super::claim::ClaimBench;
use super::{About, Applies};
use crate::refusal::{Rule, Subject};

/// The gate that needs no ratification: it has no threshold.
const STRICT: &str = "strict";

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The strict token-exact gate is never replaced by another because that one would pass: a gate with thresholds accepts nothing before it is ratified.",
    remedy: "Ask for the strict gate (comparison.gate = \"strict\", or leave it out).",
    applies: Applies::Qualification,
};

pub(super) fn check(bench: &mut ClaimBench<'_>) {
    let gate = bench.spec.comparison.gate.as_deref();
    if let Some(gate) = gate.filter(|gate| *gate != STRICT) {
        let subject = Subject::File("the spec's comparison.gate".to_owned());
        bench.refuse(
            Rule::GateNotRatified,
            subject,
            "strict, or a ratified gate",
            format!("{gate:?}, which nobody ratified"),
        );
    }
}
