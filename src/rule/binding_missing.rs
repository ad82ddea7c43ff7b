//! `binding-missing`: absent never passes. Checked by `pins` and `requirements`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "A binding that the spec requires or pins is given: an absent value never passes for an equal one.",
    remedy: "Have the adapter write the binding into run.json.",
    applies: Applies::WithSpec,
};
