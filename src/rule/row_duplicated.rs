//! `row-duplicated`: no row twice, no callback twice.

use std::collections::BTreeMap;

use super::{About, Applies, Bench};
use crate::id::RowKey;
use crate::refusal::Rule;

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "One position of one request has one row, and one callback has one sequence number: nothing is counted twice.",
    remedy: "Find out why the callback ran twice, and capture again.",
    applies: Applies::Always,
};

pub(super) fn check(bench: &mut Bench<'_>) {
    let rows = bench.evidence.rows;
    for pair in rows.windows(2) {
        if let [a, b] = pair
            && a.key == b.key
        {
            bench.refuse_row(Rule::RowDuplicated, b, "one row", "two or more");
            bench.broken.insert(b.request());
        }
    }
    let mut numbers: BTreeMap<u64, RowKey> = BTreeMap::new();
    for row in rows {
        for number in [row.captured_seq, row.forced_seq].into_iter().flatten() {
            if let Some(first) = numbers.insert(number, row.key) {
                bench.number_repeated = true;
                // A row that stands twice has its numbers twice: named above.
                if first != row.key || row.captured_seq == row.forced_seq {
                    let found = format!("{number}, which {first} has too");
                    bench.refuse_row(Rule::RowDuplicated, row, "a sequence number of its own", found);
                }
            }
        }
    }
}
