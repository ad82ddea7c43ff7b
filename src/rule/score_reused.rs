//! `score-reused`: a transformed model does not have the scores of the original.

use super::claim::ClaimBench;
use super::{About, Applies};
use crate::canon::json::Json;
use crate::refusal::{NoteKind, Rule, Subject};
use crate::row::at_equal_prefixes;

/// What makes two models two.
const DECLARED: [&str; 2] = ["model.transform", "model.weights_dtype"];

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Two models whose weights were transformed, or stored in another dtype, never give bitwise equal rows over a whole vocabulary: one was not run.",
    remedy: "Check that the engine loaded the model that run.json declares, and that no scores were served from a cache or an earlier file.",
    applies: Applies::Qualification,
};

pub(super) fn check(bench: &mut ClaimBench<'_>) {
    for (candidate, oracle) in bench.pairs() {
        let equal = at_equal_prefixes(candidate.rows, oracle.rows)
            .filter(|(a, b)| a.score_digest.is_some() && a.score_digest == b.score_digest);
        let rows: Vec<_> = equal.map(|(row, _)| row.key).collect();
        let Some(first) = rows.first() else { continue };
        let text = |path: &str, side: &super::claim::Claimed<'_>| {
            side.run.binding(path).filter(|json| **json != Json::Null).map_or("null".to_owned(), Json::to_text)
        };
        let differs = |path: &&str| text(path, candidate) != text(path, oracle);
        if let Some(path) = DECLARED.into_iter().find(differs) {
            let (a, b) = (text(path, candidate), text(path, oracle));
            let expected = format!("other scores than {}, whose {path} is {b} and not {a}", oracle.run.run_id);
            let found = format!("{} bitwise equal rows, from {first} on", rows.len());
            bench.refuse(Rule::ScoreReused, candidate.subject(Subject::Capture), expected, found);
        } else if files(candidate) != files(oracle) {
            let (a, b) = (&candidate.run.run_id, &oracle.run.run_id);
            let text =
                format!("{a} and {b} declare other model files, and {} of their rows are bitwise equal", rows.len());
            bench.findings.note(NoteKind::Observed, text);
        }
    }
}

fn files(side: &super::claim::Claimed<'_>) -> Vec<crate::digest::Sha256> {
    let mut files: Vec<_> = side.run.files.iter().filter(|file| file.of == "model").map(|file| file.sha256).collect();
    files.sort();
    files
}
