//! `schema-invalid`: files follow their schemas. Checked in `binding` and `row`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Every field means what the schema says: known keys, right types, integers in range, a schema version that this program knows.",
    remedy: "Compare the file with its schema under schemas/. Extra fields of a row go into its x; run.json takes extra keys anywhere, a spec none.",
    applies: Applies::Always,
};
