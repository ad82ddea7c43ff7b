//! `schema-invalid`: files follow their schemas. Checked in `binding` and `row`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Every field means what the schema says: known keys, right types, integers in range, a schema version that this program knows.",
    remedy: "Compare what is named with its schema under schemas/, or, where it is no JSON, with specs/format-v1.md, and see that it is the file that was meant. Extra fields of a row go into its x; run.json takes extra keys anywhere, a spec none.",
    applies: Applies::Always,
};
