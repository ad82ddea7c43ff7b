//! `time-order`: within a request, time rises with position.

use super::{About, Applies, Bench};
use crate::id::Nanos;
use crate::refusal::Rule;

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "A request's scores were captured one position after the other. Rows of different requests may share a time: they share batches.",
    remedy: "Take times from a clock that does not step, or rely on sequence numbers and leave times out.",
    applies: Applies::Always,
};

pub(super) fn check(bench: &mut Bench<'_>) {
    for (_, rows) in bench.sound_groups() {
        let mut last: Option<Nanos> = None;
        for row in rows {
            let Some(time) = row.captured_at_ns else { continue };
            if let Some(last) = last.filter(|&last| last >= time) {
                let expected = format!("captured_at_ns after {}", last.0);
                bench.refuse_row(Rule::TimeOrder, row, expected, time.0.to_string());
            }
            last = Some(time);
        }
    }
    if bench.evidence.rows.iter().all(|row| row.captured_at_ns.is_none()) {
        bench.findings.not_checkable(Rule::TimeOrder, "rows carry no captured_at_ns");
    }
}
