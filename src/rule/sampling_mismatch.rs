//! `sampling-mismatch`: sampling is the pinned one. Checked by `pins`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Sampling is what the spec pins: method, temperature, token budget.",
    remedy: "Run with the pinned sampling, or predeclare another spec.",
    applies: Applies::WithSpec,
};
