//! `tree-size`: shards add up to the capture. Checked in `verify`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The rows of the shards add up to the rows of the capture, so a shard cannot be dropped and the totals patched.",
    remedy: "Restore the manifest from a copy, or seal the capture again.",
    applies: Applies::Always,
};
