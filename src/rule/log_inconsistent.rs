//! `log-inconsistent`: the head agrees with the entries. Checked in `log` and `verify`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The log's head covers its entries: none was changed, dropped, added or reordered, and every entry names the capture that its manifest carries.",
    remedy: "Someone, or something, wrote to what is named, or to the log, past the tool: restore that one from a copy. Whether a kept checkpoint is as it was signed its signature shows (--verifier-key). Of a published folder: publish into a new one.",
    applies: Applies::Always,
};
