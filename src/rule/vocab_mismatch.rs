//! `vocab-mismatch`: token ids lie within the vocabulary.

use super::claim::ClaimBench;
use super::{About, Applies, Bench};
use crate::refusal::{Rule, Subject};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Every token id that run.json or a row names has a score: scores of another vocabulary, or of another width, are not compared by index.",
    remedy: "Check vocab_size in run.json: it is the width of the scores, padding included.",
    applies: Applies::Always,
};

pub(super) fn check(bench: &mut Bench<'_>) {
    let run = bench.evidence.run;
    let Some(scores) = &run.scores else { return };
    let limit = u32::try_from(scores.vocab_size).unwrap_or(u32::MAX);
    let expected = format!("token ids below {limit}");
    for request in &run.requests {
        let tokens = request.prompt_token_ids.iter().chain(&request.output_token_ids);
        if let Some(token) = tokens.copied().find(|token| token.0 >= limit) {
            let subject = Subject::Request(request.key);
            bench.refuse(Rule::VocabMismatch, subject, expected.clone(), format!("token id {token}"));
        }
    }
    for row in bench.evidence.rows {
        let tokens = [Some(row.token_id), row.sampled_token_id, row.forced_token_id, row.argmax, row.runner_up];
        if let Some(token) = tokens.into_iter().flatten().find(|token| token.0 >= limit) {
            bench.refuse_row(Rule::VocabMismatch, row, expected.clone(), format!("token id {token}"));
        }
    }
    if let Some(masked) = scores.masked_token_ids.last().filter(|&&masked| masked >= limit) {
        let subject = Subject::Binding("scores.masked_token_ids".to_owned());
        bench.refuse(Rule::VocabMismatch, subject, expected, format!("token id {masked}"));
    }
}

/// All captures of a claim have rows of one width, with the same tokens masked.
pub(super) fn check_claim(bench: &mut ClaimBench<'_>) {
    let mut first: Option<(u64, &str)> = None;
    let mut masked: Option<(&[u32], &str)> = None;
    for claimed in bench.oracles_first() {
        let Some(scores) = &claimed.run.scores else { continue };
        let (width, run_id) = *first.get_or_insert((scores.vocab_size, &claimed.run.run_id));
        if width != scores.vocab_size {
            let subject = claimed.subject(Subject::Binding("scores.vocab_size".to_owned()));
            let expected = format!("{width} as in {run_id}");
            bench.refuse(Rule::VocabMismatch, subject, expected, scores.vocab_size.to_string());
        }
        let (tokens, run_id) = *masked.get_or_insert((&scores.masked_token_ids, &claimed.run.run_id));
        if tokens != scores.masked_token_ids {
            let subject = claimed.subject(Subject::Binding("scores.masked_token_ids".to_owned()));
            let expected = format!("the {} tokens that {run_id} masks", tokens.len());
            bench.refuse(Rule::VocabMismatch, subject, expected, format!("others, {}", scores.masked_token_ids.len()));
        }
    }
}
