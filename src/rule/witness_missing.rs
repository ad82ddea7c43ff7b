//! `witness-missing`: required witnesses are there. Checked by `requirements`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Every row of scores carries the witnesses that the spec requires; without them a check has nothing to look at.",
    remedy: "Have the adapter record the witness on every row.",
    applies: Applies::WithSpec,
};
