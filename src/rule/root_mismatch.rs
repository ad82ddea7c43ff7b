//! `root-mismatch`: roots and ids are derived again. Checked in `verify`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Row root, score root, run.json and capture id follow from the leaves. Whoever changes a row and recomputes the digests above it ends with another capture id.",
    remedy: "The evidence is not the one that the id names. Ask for the original.",
    applies: Applies::Always,
};
