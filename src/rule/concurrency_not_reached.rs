//! `concurrency-not-reached`: the requested concurrency was reached. Checked by `requirements`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "The requested concurrency was reached in some batch: requests that ran one after the other say nothing about running together.",
    remedy: "Send the requests at once; check that the engine has the slots. Have the adapter write batch_size, of a baseline too.",
    applies: Applies::WithSpec,
};
