//! `rows-misnumbered`: rows say where they stand. Checked in `ingest`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The n-th line of rows.jsonl belongs to the n-th row of scores; a row that says otherwise was moved.",
    remedy: "Write rows.jsonl in the order of the scores file, or leave row out.",
    applies: Applies::Always,
};
