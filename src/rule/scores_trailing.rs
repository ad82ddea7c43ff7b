//! `scores-trailing`: the scores file is no longer than promised. Checked in `ingest`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The scores file holds nothing but the scores that run.json promises.",
    remedy: "Scores of another run may have been appended, or rows, vocab_size or dtype in run.json are wrong. Capture again.",
    applies: Applies::Always,
};
