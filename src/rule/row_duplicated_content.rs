//! `row-duplicated-content`: different prefixes do not have equal scores.

use std::collections::BTreeMap;

use super::{About, Applies, Bench};
use crate::digest::{Blake3, Sha256};
use crate::id::RowKey;
use crate::refusal::Rule;

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Two rows with different prefixes never have bitwise equal scores over a whole vocabulary: one row's scores were copied into another's place.",
    remedy: "Look for a buffer that the adapter did not copy before the engine used it again.",
    applies: Applies::Always,
};

pub(super) fn check(bench: &mut Bench<'_>) {
    let named = bench.named.clone();
    let mut first: BTreeMap<Blake3, (usize, RowKey, Sha256)> = BTreeMap::new();
    for (index, row) in bench.evidence.rows.iter().enumerate() {
        let Some(digest) = bench.facts(index).map(|facts| facts.digest).or(row.score_digest) else { continue };
        if named.get(index) == Some(&true) {
            continue;
        }
        let (place, owner, prefix) = *first.entry(digest).or_insert((index, row.key, row.prefix_sha256));
        if prefix != row.prefix_sha256 {
            let found = format!("the scores of {owner}, bit for bit");
            bench.name_scores(Rule::RowDuplicatedContent, index, "scores of its own prefix", found);
            // Which of the two is the copy cannot be told from them: neither is asked further.
            if let Some(named) = bench.named.get_mut(place) {
                *named = true;
            }
        }
    }
}
