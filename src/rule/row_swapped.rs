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

/// A digest that a row claims for its scores.
pub(super) struct Witness {
    pub(super) name: &'static str,
    pub(super) claimed: [u8; 32],
    /// What the scores have; none where the declared dtype cannot hold them
    pub(super) found: Option<[u8; 32]>,
}

impl Witness {
    pub(super) fn holds(&self) -> bool {
        self.found == Some(self.claimed)
    }
}

/// All digests that a row claims for its scores.
pub(super) fn witnesses(row: &Row, facts: &Facts) -> Vec<Witness> {
    let derived = Some(facts.digest.0);
    let in_file = facts.file_sha256.map(|found| found.0);
    let sha256 = row.scores_sha256.map(|claimed| Witness { name: "scores_sha256", claimed: claimed.0, found: in_file });
    let blake3 = row.scores_blake3.map(|claimed| Witness { name: "scores_blake3", claimed: claimed.0, found: derived });
    let sealed = row.score_digest.map(|claimed| Witness { name: "score_digest", claimed: claimed.0, found: derived });
    [sha256, blake3, sealed].into_iter().flatten().collect()
}

pub(super) fn check(bench: &mut Bench<'_>) {
    let mut owners: BTreeMap<[u8; 32], RowKey> = BTreeMap::new();
    let rows = bench.evidence.rows;
    let claimed = rows.iter().flat_map(|row| {
        let digests = [row.scores_sha256.map(|d| d.0), row.scores_blake3.map(|d| d.0)];
        digests.into_iter().flatten().map(|digest| (digest, row.key))
    });
    // After what adapters claim: while a capture is sealed, a score digest says no more than which scores the row has now.
    let sealed = rows.iter().filter_map(|row| Some((row.score_digest?.0, row.key)));
    for (digest, key) in claimed.chain(sealed) {
        owners.entry(digest).or_insert(key);
    }
    for (index, row, facts) in bench.unnamed() {
        for witness in witnesses(row, facts).into_iter().filter(|witness| !witness.holds()) {
            let owner = witness.found.and_then(|found| owners.get(&found));
            if let Some(owner) = owner.filter(|owner| **owner != row.key) {
                let expected = format!("scores with its own {}", witness.name);
                bench.name_scores(Rule::RowSwapped, index, expected, format!("the scores of {owner}"));
                break;
            }
        }
    }
}
