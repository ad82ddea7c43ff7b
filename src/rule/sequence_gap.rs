//! `sequence-gap`: no callback was skipped.

use super::{About, Applies, Bench};
use crate::refusal::{Rule, Subject};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The capture and forcing callbacks of a run are numbered from 0 or 1 without a gap: a callback that was skipped, or whose row was dropped, shows.",
    remedy: "Find out which callback was skipped, and capture again.",
    applies: Applies::Always,
};

pub(super) fn check(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    let rows = evidence.rows;
    if rows.iter().all(|row| row.captured_seq.is_none() && row.forced_seq.is_none()) {
        bench.findings.not_checkable(Rule::SequenceGap, "rows carry no captured_seq");
        return;
    }
    if evidence.run.is_partial() {
        bench.findings.not_checkable(Rule::SequenceGap, "a partial capture has gaps by design");
        return;
    }
    if bench.number_repeated || !bench.broken.is_empty() {
        return;
    }
    let forced = rows.iter().any(|row| row.forced_seq.is_some());
    for row in rows {
        if row.captured_seq.is_none() || (forced && row.forced_seq.is_none()) {
            bench.refuse_row(Rule::SequenceGap, row, "sequence numbers, as other rows have", "none");
        }
    }
    let mut numbers: Vec<u64> = rows.iter().flat_map(|row| [row.captured_seq, row.forced_seq]).flatten().collect();
    numbers.sort_unstable();
    let first = numbers.first().copied().unwrap_or(0);
    if first > 1 {
        bench.refuse(Rule::SequenceGap, Subject::Capture, "sequence numbers from 0 or 1", format!("from {first}"));
    }
    for pair in numbers.windows(2) {
        if let [a, b] = pair
            && b - a > 1
        {
            bench.refuse(Rule::SequenceGap, Subject::Capture, format!("{} after {a}", a + 1), b.to_string());
        }
    }
}
