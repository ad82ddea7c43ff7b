//! `tokenizer-mismatch`: the tokenizer's files have the declared digests. Checked in `verify`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The tokenizer files are the ones that run.json names by SHA-256: the same ids under another tokenizer are another text.",
    remedy: "Under a spec: run with the pinned tokenizer. With --model: point it at the folder of the tokenizer that was run.",
    applies: Applies::WithModel,
};
