//! `row-unexpected`: no row beyond those that run.json promises.

use super::{About, Applies, Bench};
use crate::refusal::Rule;

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Every row is at a position that its request generated (and, in a partial capture, kept).",
    remedy: "Check output_token_ids and positions in run.json against what the engine returned.",
    applies: Applies::Always,
};

pub(super) fn check(bench: &mut Bench<'_>) {
    for group in 0..bench.groups.len() {
        let (request, rows) = (bench.groups[group].request, bench.groups[group].rows);
        let expected = request.expected_positions();
        for row in rows.iter().filter(|row| expected.binary_search(&row.key.position).is_err()) {
            let what = match &request.positions {
                Some(positions) => format!("one of the {} positions listed", positions.len()),
                None => format!("a position below {}, the length of the output", expected.len()),
            };
            bench.refuse_row(Rule::RowUnexpected, row, what, "a row");
            bench.broken.insert(request.key);
        }
    }
}
