//! `shard-noncanonical`: shards are what their rows imply. Checked in `shard` and `verify`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "A shard holds its rows and nothing else: no bytes in gaps, headers or footer that its rows do not imply, no page that decodes to less or more than a row, rows in key order.",
    remedy: "Seal the capture again with witnessmark; a Parquet file rewritten by another tool is not a shard.",
    applies: Applies::Always,
};
