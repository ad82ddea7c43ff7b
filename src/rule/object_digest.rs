//! `object-digest`: bytes hash to their name. Checked in `store` and `verify`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The bytes of every object are those that were sealed, to the last bit, whatever the file's times and modes say.",
    remedy: "Move the damaged object away and restore it from a copy, or seal the capture again.",
    applies: Applies::Always,
};
