//! `forced-output-claimed`: a forced token is never shown as the engine's own.

use super::claim::ClaimBench;
use super::{About, Applies};
use crate::refusal::{Rule, Subject};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The tokens of a free run are the engine's own. A forced output that matches shows that the prefix was controlled, and nothing else.",
    remedy: "Label a run that forces tokens as a replay; then the choice that counts is sampled_token_id.",
    applies: Applies::Qualification,
};

pub(super) fn check(bench: &mut ClaimBench<'_>) {
    for claimed in bench.captures.iter().filter(|claimed| !claimed.run.mode.is_replay()) {
        let mode = claimed.run.mode.name();
        for row in claimed.rows {
            if row.forced_token_id.is_some() || row.forced_seq.is_some() || row.forced_at_ns.is_some() {
                let expected = format!("nothing forced in mode {mode}");
                bench.refuse(
                    Rule::ForcedOutputClaimed,
                    claimed.subject(Subject::Row(row.key)),
                    expected,
                    "a forced row",
                );
            }
            if let Some(sampled) = row.sampled_token_id.filter(|sampled| *sampled != row.token_id) {
                let expected = format!("sampled_token_id {}, which was consumed in mode {mode}", row.token_id);
                let subject = claimed.subject(Subject::Row(row.key));
                bench.refuse(Rule::ForcedOutputClaimed, subject, expected, sampled.to_string());
            }
        }
        for request in claimed.run.requests.iter().filter(|request| request.continuation.is_some()) {
            let expected = format!("no continuation in mode {mode}");
            bench.refuse(Rule::ForcedOutputClaimed, claimed.subject(Subject::Request(request.key)), expected, "one");
        }
    }
}
