//! `speculation-active`: no speculation. Checked by `requirements`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Speculation was declared off: accepted draft tokens have scores of a verification pass, not of decode.",
    remedy: "Turn speculation off and declare schedule.speculation false.",
    applies: Applies::WithSpec,
};
