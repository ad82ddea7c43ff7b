//! `output-mismatch`: the rows' tokens are the output that the engine returned.

use super::{About, Applies, Bench};
use crate::refusal::Rule;

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The token of every row is the one that the engine returned at that position.",
    remedy: "Rows and output come from different runs or different positions. Capture again.",
    applies: Applies::Always,
};

pub(super) fn check(bench: &mut Bench<'_>) {
    for (request, rows) in bench.sound_groups() {
        for row in rows {
            let position = usize::try_from(row.key.position).unwrap_or(usize::MAX);
            let output = request.output_token_ids.get(position);
            if let Some(output) = output.filter(|&&output| output != row.token_id) {
                let expected = format!("token id {output}, as in output_token_ids");
                bench.refuse_row(Rule::OutputMismatch, row, expected, format!("token id {}", row.token_id));
            }
        }
    }
}
