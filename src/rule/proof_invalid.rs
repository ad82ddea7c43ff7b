//! `proof-invalid`: a proof leads from what it proves to the root that it names. Checked in `proof`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "A proof shows, by itself and offline, that a row belongs to a capture, that an entry is in a log, or that one log begins with another.",
    remedy: "Ask for the proof again (witnessmark prove, witnessmark log prove, witnessmark bundle). What this one claims is not shown.",
    applies: Applies::Always,
};
