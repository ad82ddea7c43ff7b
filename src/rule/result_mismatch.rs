//! `result-mismatch`: a result follows from the evidence that it cites. Checked where results are derived again (`qualify`).

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Every number of a result, and so its SHA, follows from the sealed captures and the spec: whoever derives it again gets the same bytes.",
    remedy: "Derive the result again (witnessmark qualify SPEC) and cite that SHA; ask who cites the other one where it comes from.",
    applies: Applies::Qualification,
};
