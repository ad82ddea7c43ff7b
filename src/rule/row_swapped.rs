//! `row-swapped`: a row's scores are not the ones that another row's witness names.

use std::collections::BTreeMap;

use super::{About, Applies, Bench};
use crate::facts::Facts;
use crate::id::RowKey;
use crate::refusal::Rule;
use crate::row::Row;

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Scores stand at the row whose capture-time digest names them. Where a row's scores have the digest that another row carries, rows were swapped.",
    remedy: "Put the scores back in the order of rows.jsonl, or capture again.",
    applies: Applies::Always,
};

/// The digests that a row claims for its scores, each with what the scores have.
pub(super) fn witnesses(row: &Row, facts: &Facts) -> Vec<(&'static str, [u8; 32], Option<[u8; 32]>)> {
    let mut out = Vec::new();
    out.extend(row.scores_sha256.map(|claimed| ("scores_sha256", claimed.0, facts.file_sha256.map(|found| found.0))));
    out.extend(row.scores_blake3.map(|claimed| ("scores_blake3", claimed.0, Some(facts.digest.0))));
    out.extend(row.score_digest.map(|claimed| ("score_digest", claimed.0, Some(facts.digest.0))));
    out
}

pub(super) fn check(bench: &mut Bench<'_>) {
    let mut owners: BTreeMap<[u8; 32], RowKey> = BTreeMap::new();
    for row in bench.evidence.rows {
        let digests = [row.scores_sha256.map(|d| d.0), row.scores_blake3.map(|d| d.0), row.score_digest.map(|d| d.0)];
        for digest in digests.into_iter().flatten() {
            owners.entry(digest).or_insert(row.key);
        }
    }
    for (index, row, facts) in bench.unnamed() {
        for (name, claimed, found) in witnesses(row, facts) {
            if found == Some(claimed) {
                continue;
            }
            if let Some(owner) = found.and_then(|found| owners.get(&found)).filter(|owner| **owner != row.key) {
                let expected = format!("scores with its own {name}");
                bench.name_scores(Rule::RowSwapped, index, expected, format!("the scores of {owner}"));
                break;
            }
        }
    }
}
