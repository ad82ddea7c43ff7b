//! `corpus-mismatch`: the corpus is the pinned one. Checked by `pins`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The prompts are those of the corpus that the spec pins.",
    remedy: "Run the pinned corpus, or predeclare another spec.",
    applies: Applies::WithSpec,
};
