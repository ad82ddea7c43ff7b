//! `limit-exceeded`: sizes stay within format section 1.1. Checked where things are read.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "A verifier must not be brought down by what it verifies: sizes beyond the limits of format section 1.1 are refused before anything is allocated for them.",
    remedy: "Of a capture: split it, or check whether a count in run.json is wrong. Of a log, a bundle or any other file: it is damaged, or not what it is taken for; restore it from a copy.",
    applies: Applies::Always,
};
