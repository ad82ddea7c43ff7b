//! Facts: what a row's scores say, and what they say of the row's own witnesses.
//!
//! Derived once, by whoever has the scores in hand (`seal` from the capture's file, `verify` from the store's pages), and judged later by
//! the rules, which never see a score. See `specs/format-v1.md`, sections 4 and 10.1.

use crate::binding::ScoresDeclaration;
use crate::canon::scores::{Canonical, Scan};
use crate::digest::{Blake3, Sha256};
use crate::id::TokenId;
use crate::row::Row;

/// What was derived from the scores of one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    /// The score digest
    pub digest: Blake3,
    /// Maximum, second, what is not finite
    pub scan: Scan,
    /// Score of the recorded argmax
    pub at_argmax: Option<f32>,
    /// Score of the recorded runner-up
    pub at_runner_up: Option<f32>,
    /// Score of the consumed token
    pub at_token: Option<f32>,
    /// Score of the token that the engine chose
    pub at_sampled: Option<f32>,
    /// SHA-256 of the scores in the declared dtype, where a witness asks for it; none where that dtype cannot hold them
    pub file_sha256: Option<Sha256>,
    /// Whether the declared dtype can hold the scores
    pub fits_declared_dtype: bool,
}

/// The top of a row of scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Top {
    /// Lowest token id with the highest score
    pub argmax: TokenId,
    /// Whether another token id has the highest score too
    pub tied: bool,
    /// The highest score less the second: 0 at a tie, +Inf where only one token is unmasked
    pub margin: f64,
}

impl Facts {
    /// The top of the row.
    #[must_use]
    pub fn top(&self) -> Top {
        let Scan { argmax, max, max_count, second, .. } = self.scan;
        Top { argmax: TokenId(argmax), tied: max_count > 1, margin: f64::from(max) - f64::from(second) }
    }

    /// Derives the facts of `row` from its scores. `scratch` is a buffer to work in.
    #[must_use]
    pub fn derive(scores: &Canonical, row: &Row, declared: &ScoresDeclaration, scratch: &mut Vec<u8>) -> Self {
        let at = |token: Option<TokenId>| token.and_then(|TokenId(id)| scores.get(id));
        let witnessed = row.scores_sha256.is_some() || row.chain_sha256.is_some();
        let file_sha256 = if witnessed { scores.file_digest(declared.dtype, scratch) } else { None };
        Self {
            digest: scores.digest(),
            scan: scores.scan(&declared.masked_token_ids),
            at_argmax: at(row.argmax),
            at_runner_up: at(row.runner_up),
            at_token: at(Some(row.token_id)),
            at_sampled: at(row.sampled_token_id),
            file_sha256,
            fits_declared_dtype: scores.fits(declared.dtype),
        }
    }
}
