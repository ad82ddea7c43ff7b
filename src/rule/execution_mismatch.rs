//! `execution-mismatch`: the execution mode is the pinned one. Checked by `pins` and `requirements`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The engine ran in the execution mode that the spec pins: an eager run does not stand in for the graph.",
    remedy: "Run in the pinned execution mode, or predeclare another spec.",
    applies: Applies::WithSpec,
};
