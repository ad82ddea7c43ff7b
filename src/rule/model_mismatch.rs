//! `model-mismatch`: the model's files have the declared digests. Checked in `verify`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The model files are the ones that run.json names by SHA-256.",
    remedy: "Under a spec: run the pinned model, untransformed unless the spec pins a transform. With --model: point it at the folder of the model that was run.",
    applies: Applies::WithModel,
};
