//! `torn-capture`: the capture ended. Checked in `ingest`, and by [`super::judge_spec`] of what was sealed all the same.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "run.json is written last: a capture without it, or with a torn last line or a file gone, never ended. A run that broke off is not a run that finished.",
    remedy: "Run the capture again. `witnessmark seal --incomplete` keeps what is there, as evidence that can never qualify.",
    applies: Applies::Always,
};
