//! `tokenizer-mismatch`: the tokenizer's files have the declared digests. Files are looked at in `verify`.

use super::claim::{ClaimBench, Claimed};
use super::{About, Applies};
use crate::canon::json::Json;
use crate::refusal::{Rule, Subject};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The tokenizer files are the ones that run.json names by SHA-256: the same ids under another tokenizer are another text.",
    remedy: "Under a spec: run with the pinned tokenizer. With --model: point it at the folder of the tokenizer that was run.",
    applies: Applies::WithModel,
};

/// All captures of a claim that name a tokenizer name the same.
pub(super) fn check_claim(bench: &mut ClaimBench<'_>) {
    let files = |claimed: &Claimed<'_>| {
        let mut files: Vec<String> = claimed
            .run
            .files
            .iter()
            .filter(|file| file.of == "tokenizer")
            .map(|file| format!("{} {}", file.path, file.sha256))
            .collect();
        files.sort();
        (!files.is_empty()).then(|| files.join(", "))
    };
    let size = |claimed: &Claimed<'_>| {
        claimed.run.binding("tokenizer.vocab_size").filter(|json| **json != Json::Null).map(Json::to_text)
    };
    one(bench, "tokenizer.files", &files);
    one(bench, "tokenizer.vocab_size", &size);
}

/// Whoever has a value has the first one's.
fn one(bench: &mut ClaimBench<'_>, path: &str, value: &dyn Fn(&Claimed<'_>) -> Option<String>) {
    let mut first: Option<(String, &str)> = None;
    for claimed in bench.oracles_first() {
        let Some(found) = value(claimed) else { continue };
        let (expected, run_id) = first.get_or_insert_with(|| (found.clone(), &claimed.run.run_id));
        if *expected != found {
            let expected = format!("{expected} as in {run_id}");
            let subject = claimed.subject(Subject::Binding(path.to_owned()));
            bench.refuse(Rule::TokenizerMismatch, subject, expected, found);
        }
    }
}
