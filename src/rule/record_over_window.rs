//! `record-over-window`: requests fit the window. Checked by `requirements`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "No request is longer than the window that the spec allows: a record that does not fit is refused, never truncated.",
    remedy: "Take the record out of the corpus, or widen the window before the run.",
    applies: Applies::WithSpec,
};
