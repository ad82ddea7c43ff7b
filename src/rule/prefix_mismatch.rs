//! `prefix-mismatch`: each row saw the prompt and the tokens that run.json gives.

use std::collections::BTreeMap;

use super::claim::ClaimBench;
use super::{About, Applies, Bench};
use crate::binding::Request;
use crate::digest::Sha256Stream;
use crate::id::RequestKey;
use crate::refusal::{Rule, Subject};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The token ids that the engine had consumed before this position are prompt ‖ output up to it: the same ids, not the same text.",
    remedy: "Feed token ids, never text that is tokenized again, and hash the ids that the engine consumed (u32, little-endian).",
    applies: Applies::Always,
};

pub(super) fn check(bench: &mut Bench<'_>) {
    for (request, rows) in bench.sound_groups() {
        let mut stream = Sha256Stream::default();
        for token in &request.prompt_token_ids {
            stream.update(&token.0.to_le_bytes());
        }
        let mut rows = rows.iter().peekable();
        for (position, token) in (0_u32..).zip(&request.output_token_ids) {
            while let Some(row) = rows.next_if(|row| row.key.position == position) {
                let expected = stream.digest();
                if row.prefix_sha256 != expected {
                    let found = row.prefix_sha256.to_string();
                    bench.refuse_row(Rule::PrefixMismatch, row, format!("prefix_sha256 {expected}"), found);
                }
            }
            stream.update(&token.0.to_le_bytes());
        }
    }
}

/// Requests of one key have one prompt in all captures of a claim.
pub(super) fn check_claim(bench: &mut ClaimBench<'_>) {
    let mut first: BTreeMap<RequestKey, (&Request, &str)> = BTreeMap::new();
    for claimed in bench.oracles_first() {
        for (key, request) in claimed.run.requests_by_key() {
            let (owner, run_id) = *first.entry(key).or_insert((request, &claimed.run.run_id));
            if owner.prompt_token_ids != request.prompt_token_ids {
                let expected = format!("the prompt that {run_id} has");
                bench.refuse(Rule::PrefixMismatch, claimed.subject(Subject::Request(key)), expected, "another");
            }
        }
    }
}
