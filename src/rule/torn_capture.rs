//! `torn-capture`: the capture ended. Checked in `ingest`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "run.json is written last: a capture without it, or with a torn last line or a file gone, never ended. A run that broke off is not a run that finished.",
    remedy: "Run the capture again.",
    applies: Applies::Always,
};
