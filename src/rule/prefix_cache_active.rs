//! `prefix-cache-active`: no prefix cache. Checked by `requirements`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The prefix cache was declared off: scores of a cached prefix were computed in another pass, perhaps another run.",
    remedy: "Turn the prefix cache off and declare schedule.prefix_caching false.",
    applies: Applies::WithSpec,
};
