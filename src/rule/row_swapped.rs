//! `row-swapped`: a row's scores are not the ones that another row's witness names.

use std::collections::{BTreeMap, BTreeSet};

use super::{About, Applies, Bench};
use crate::facts::Facts;
use crate::id::RowKey;
use crate::refusal::Rule;
use crate::row::Row;

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Scores stand at the row whose capture-time digest names them. Where a row's scores have the digest that another row carries, \
               in this run or in another one at hand, rows were swapped.",
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

/// All digests that a row claims for its scores, and what these have.
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
    for row in bench.evidence.rows {
        let at_capture = [row.scores_sha256.map(|digest| digest.0), row.scores_blake3.map(|digest| digest.0)];
        for digest in at_capture.into_iter().flatten() {
            owners.entry(digest).or_insert(row.key);
        }
    }
    // A score digest says whose scores these are only where no witness of the capture does: `seal` derives it from what is there.
    for row in bench.evidence.rows {
        if let Some(digest) = row.score_digest {
            owners.entry(digest.0).or_insert(row.key);
        }
    }
    let mut strange = Vec::new();
    for (index, row, facts) in bench.unnamed() {
        let broken: Vec<Witness> =
            witnesses(row, facts).into_iter().filter(|witness| !witness.holds() && witness.found.is_some()).collect();
        let other = |witness: &Witness| {
            let owner = witness.found.and_then(|found| owners.get(&found));
            owner.filter(|owner| **owner != row.key)
        };
        if let Some((witness, owner)) = broken.iter().find_map(|witness| Some((witness, other(witness)?))) {
            let expected = format!("scores with its own {}", witness.name);
            bench.name_scores(Rule::RowSwapped, index, expected, format!("the scores of {owner}"));
        } else {
            strange.extend(broken.into_iter().map(|witness| (index, witness)));
        }
    }
    check_elsewhere(bench, &strange);
}

/// Scores that no row of this run names: are they another run's?
fn check_elsewhere(bench: &mut Bench<'_>, strange: &[(usize, Witness)]) {
    let found: BTreeSet<[u8; 32]> = strange.iter().filter_map(|(_, witness)| witness.found).collect();
    if found.is_empty() {
        return;
    }
    let owners = (bench.evidence.elsewhere)(&found);
    for (index, witness) in strange {
        if bench.named.get(*index) == Some(&false)
            && let Some((run, owner)) = witness.found.and_then(|found| owners.get(&found))
        {
            let expected = format!("scores with its own {}", witness.name);
            bench.name_scores(Rule::RowSwapped, *index, expected, format!("the scores of {owner} of run {run}"));
        }
    }
}
