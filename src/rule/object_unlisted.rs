//! `object-unlisted`: a bundle holds what its manifests name and nothing else. Checked in `bundle`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Nothing travels in a bundle that no manifest of it names: no extra object, no bytes between objects or after the last one.",
    remedy: "Make the bundle again. What is in it beyond the manifests was put there by someone.",
    applies: Applies::Always,
};
