//! `kv-dtype-mismatch`: the KV cache has the pinned dtype. Checked by `pins`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The KV cache has the dtype that the spec pins: an 8-bit cache gives other scores from the same weights.",
    remedy: "Run with the pinned KV dtype, or predeclare another spec.",
    applies: Applies::WithSpec,
};
