//! `object-missing`: every named object is there. Checked in `store`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Everything that a manifest names is there.",
    remedy: "Restore the object from a copy of the store, or seal the capture again: the same capture gives the same id.",
    applies: Applies::Always,
};
