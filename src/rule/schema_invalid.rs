//! `schema-invalid`: files follow their schemas. Checked in `binding` and `row`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Every field means what the schema says: known keys, right types, integers in range, a schema version that this program knows.",
    remedy: "Compare with schemas/run.schema.json and schemas/row.schema.json. Put what the schema does not know into a row's x, or anywhere in run.json.",
    applies: Applies::Always,
};
