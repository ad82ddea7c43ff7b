//! `nothing-to-verify`: zero rows checked is a refusal. Checked in `ingest` and `verify`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "An empty capture verifies trivially and proves nothing; it must not look like evidence.",
    remedy: "Check that the folder is the right one and that the adapter wrote rows.",
    applies: Applies::Always,
};
