//! `signature-invalid`: a signature holds under the key that is asked for. Checked in `verify` for kept checkpoints.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "A kept checkpoint was signed by the key that you trust, and not a digit of it was changed since.",
    remedy: "Ask whoever signed it for the checkpoint again, and compare the verifier key by another way. Without a good signature the checkpoint proves nothing.",
    applies: Applies::Always,
};
