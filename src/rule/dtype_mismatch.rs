//! `dtype-mismatch`: weights and scores have the pinned dtypes. Checked by `pins`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Weights and scores have the dtypes that the spec pins: scores of other weights are scores of another model.",
    remedy: "Run the model in the pinned dtype, or predeclare another spec.",
    applies: Applies::WithSpec,
};
