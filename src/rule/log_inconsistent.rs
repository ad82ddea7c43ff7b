//! `log-inconsistent`: the head agrees with the entries. Checked in `log` and `verify`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The log's head covers its entries: none was changed, dropped, added or reordered, and every entry names the capture that its manifest carries.",
    remedy: "Restore the log from a copy. Someone, or something, wrote to the store past the tool. Of a published folder: publish into a new one.",
    applies: Applies::Always,
};
