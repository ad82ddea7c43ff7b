//! `name-taken`: a run id names one capture. Checked in `seal`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "A run id that people cite keeps meaning the capture that it meant when they cited it.",
    remedy: "Seal the capture under another name: seal --as NAME.",
    applies: Applies::Always,
};
