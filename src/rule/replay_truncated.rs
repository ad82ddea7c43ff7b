//! `replay-truncated`: a replay reaches its end. Checked by `row_missing`, which knows which positions are missing.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "A replay that silently stops early covers less than it claims: the last positions of a request have no rows.",
    remedy: "Find out why the engine stopped (a stop token that the replay did not disable?) and capture again.",
    applies: Applies::Always,
};
