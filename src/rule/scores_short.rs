//! `scores-short`: the scores file is long enough. Checked in `ingest`, before anything is allocated.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The scores file holds every score that run.json promises.",
    remedy: "The file was cut, or rows, vocab_size or dtype in run.json are wrong. Capture again.",
    applies: Applies::Always,
};
