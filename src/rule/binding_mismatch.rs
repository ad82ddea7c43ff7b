//! `binding-mismatch`: other pinned bindings have their values. Checked by `pins`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Every other binding that the spec pins (device, schedule, role, mode) has the pinned value.",
    remedy: "Run as pinned, or predeclare another spec.",
    applies: Applies::WithSpec,
};
