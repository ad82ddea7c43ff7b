//! `engine-mismatch`: the engine is the pinned one. Checked by `pins`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The engine, its version, commit, binary and attention backend are those that the spec pins for the role.",
    remedy: "Run the pinned engine, or predeclare another spec.",
    applies: Applies::WithSpec,
};
