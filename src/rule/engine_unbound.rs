//! `engine-unbound`: the engine is identified. Checked by `requirements`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The engine is one that somebody else could get: a commit that is neither unknown nor dirty, or the SHA-256 of the binary.",
    remedy: "Build the engine from a clean commit, or record engine.binary_sha256.",
    applies: Applies::WithSpec,
};
