//! `json-not-canonical`: one reading, one spelling. Checked by `canon::json` and `canon::document`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "JSON that two readers could read in two ways is no evidence: keys that stand twice (letter case aside), lone surrogates, bytes that are not UTF-8; and, in the documents that witnessmark writes, any other than the canonical bytes.",
    remedy: "Of a capture: have the adapter write strict JSON with unique keys. Of a document that witnessmark wrote: it was changed, so get it again, or restore it from a copy.",
    applies: Applies::Always,
};
