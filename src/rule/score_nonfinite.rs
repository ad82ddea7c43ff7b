//! `score-nonfinite`: every score is a finite number.

use super::{About, Applies, Bench};
use crate::refusal::Rule;

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "A row holds a finite score for every token id. NaN, +Inf and -Inf mean that a processor ran first, or that the engine failed; only token ids that \
               run.json declares as masked must be -Inf.",
    remedy: "Capture before processors run. Declare a mask of the model itself in scores.masked_token_ids.",
    applies: Applies::Always,
};

pub(super) fn check(bench: &mut Bench<'_>) {
    for (index, _, facts) in bench.unnamed() {
        if facts.scan.nonfinite > 0 {
            let first = facts.scan.first_nonfinite.unwrap_or(0);
            let found = format!("{} scores that are not (first: token id {first})", facts.scan.nonfinite);
            bench.name_scores(Rule::ScoreNonfinite, index, "finite scores, -Inf where masked", found);
        }
    }
}
