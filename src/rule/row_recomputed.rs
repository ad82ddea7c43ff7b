//! `row-recomputed`: recomputed rows are bounded. Checked by `requirements`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "No more rows than the spec allows were recomputed by a pass that began inside the prompt: they are not decode.",
    remedy: "Give the engine room so that it preempts nothing, or allow max_recomputed and judge them as their own stratum.",
    applies: Applies::WithSpec,
};
