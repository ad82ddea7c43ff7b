//! Compare: what the scores of two captures say of each other, row by row at equal prefixes.
//!
//! Two verified captures and the places of their common rows go in, one [`Compared`] a row comes out, in the same order, whatever the number of
//! threads. Rows with equal score digests are equal without being read. What the numbers are is for `numerics` to say, what they mean for `qualify`.

use std::io;

use rayon::prelude::*;

use crate::canon::scores::Canonical;
use crate::facts::Top;
use crate::fetch::Cursor;
use crate::id::TokenId;
use crate::meter::Meter;
use crate::numerics::{self, RowStats, Scratch};
use crate::refusal::{Refusal, Rule, Subject};
use crate::store::{Fault, Store, io_error};
use crate::verify::Verified;

/// Rows that one thread takes at a time: few enough to share the work, many enough that looking for the first is cheap.
const CHUNK: usize = 64;

/// A row of a and the row of b at the same prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Place of the row in a, in key order
    pub a: usize,
    /// Place of the row in b
    pub b: usize,
    /// A token to look up in b
    pub sought_in_b: Option<TokenId>,
    /// A token to look up in a
    pub sought_in_a: Option<TokenId>,
}

/// What two rows say of each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared {
    /// The statistics, a as the oracle
    pub stats: RowStats,
    /// Whether the scores are equal to the bit
    pub bitwise: bool,
    /// Whether the token sought in b has b's highest score
    pub highest_in_b: bool,
    /// Whether the token sought in a has a's highest score
    pub highest_in_a: bool,
}

/// Compares rows. Both captures were verified in full; `pairs` rise on both sides.
///
/// # Errors
/// When the store cannot be read.
///
/// # Refusals
/// What a row can be refused for when it is read, vocab-mismatch, and nothing-to-verify where a row has no unmasked score.
pub fn compare(
    store: &Store,
    a: &Verified,
    b: &Verified,
    pairs: &[Pair],
    meter: &Meter,
) -> Result<Vec<Compared>, Fault> {
    let chunks: Result<Vec<Vec<Compared>>, Fault> =
        pairs.par_chunks(CHUNK).map(|chunk| compare_chunk(store, a, b, chunk, meter)).collect();
    Ok(chunks?.into_iter().flatten().collect())
}

fn compare_chunk(
    store: &Store,
    a: &Verified,
    b: &Verified,
    pairs: &[Pair],
    meter: &Meter,
) -> Result<Vec<Compared>, Fault> {
    let no_memory = |error| Fault::from(io_error("decompress", "scores")(error));
    let mut of_a = Cursor::new(store, a).map_err(no_memory)?;
    let mut of_b = Cursor::new(store, b).map_err(no_memory)?;
    let mut scratch = Scratch::default();
    let (mut in_a, mut in_b) = (Vec::new(), Vec::new());
    let mut out = Vec::with_capacity(pairs.len());
    for pair in pairs {
        if meter.is_stopped() {
            return Err(io_error("read", "scores")(io::ErrorKind::Interrupted.into()).into());
        }
        let digest = |side: &Verified, at: usize| side.rows().get(at).and_then(|row| row.score_digest);
        let equal = digest(a, pair.a).is_some() && digest(a, pair.a) == digest(b, pair.b);
        if let Some(top) = a.top(pair.a).filter(|_| equal) {
            out.push(equal_rows(top, unmasked(a)));
            continue;
        }
        load(of_a.row(pair.a)?, &mut in_a);
        load(of_b.row(pair.b)?, &mut in_b);
        meter.add(u64::try_from((in_a.len() + in_b.len()) * 4).unwrap_or(0));
        let stats = numerics::compare(&in_a, &in_b, &mut scratch).map_err(|error| refused(a, pair.a, &error))?;
        let highest = |row: &[f32], argmax: u32, sought: Option<TokenId>| {
            let score = |token: u32| usize::try_from(token).ok().and_then(|token| row.get(token));
            sought.is_some_and(|TokenId(token)| score(token).zip(score(argmax)).is_some_and(|(a, b)| a >= b))
        };
        out.push(Compared {
            bitwise: equal,
            highest_in_b: highest(&in_b, stats.candidate_argmax, pair.sought_in_b),
            highest_in_a: highest(&in_a, stats.oracle_argmax, pair.sought_in_a),
            stats,
        });
    }
    Ok(out)
}

fn load(scores: &Canonical, into: &mut Vec<f32>) {
    into.clear();
    scores.widen_into(into);
}

/// Tokens whose score is a number.
fn unmasked(capture: &Verified) -> u64 {
    let declared = capture.run().scores.as_ref();
    declared.map_or(0, |scores| {
        scores.vocab_size.saturating_sub(u64::try_from(scores.masked_token_ids.len()).unwrap_or(u64::MAX))
    })
}

/// What rows that are equal to the bit say of each other; a choice of one is one of the other.
fn equal_rows(top: Top, unmasked: u64) -> Compared {
    Compared {
        stats: RowStats::equal(top.argmax.0, top.margin, unmasked),
        bitwise: true,
        highest_in_b: true,
        highest_in_a: true,
    }
}

fn refused(a: &Verified, at: usize, error: &numerics::CompareError) -> Fault {
    let rule = match error {
        numerics::CompareError::Lengths { .. } | numerics::CompareError::TooLong => Rule::VocabMismatch,
        numerics::CompareError::NotAScore => Rule::ScoreNonfinite,
        numerics::CompareError::NoDistribution => Rule::NothingToVerify,
    };
    let subject = a.rows().get(at).map_or(Subject::Capture, |row| Subject::Row(row.key));
    Fault::Refused(Refusal::new(rule, subject, "two rows of one vocabulary with scores", error.to_string()))
}
