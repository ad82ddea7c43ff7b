//! Statistics between the scores that an oracle and a candidate gave at one prefix, the same to the bit on every machine.
//!
//! Two rows of scores go in, [`RowStats`] come out; many of them make a [`Summary`]. Every operation and its place in every sum is
//! decided by `specs/numerics-v1.md`, and `specs/reference/numerics.py` does the same in Python. Pure: no store, no clock, no threads
//! within a row. The width of vectors is chosen at run time and does not change a bit.

mod elementary;
mod interval;
mod pass;
mod summary;
mod terms;
mod top;

pub use fearless_simd::Level;
pub use interval::{interval, least_count, upper_bound};
pub use summary::{Spread, Summary, summarise};

use pass::Sums;
use top::Top;

/// The version of `specs/numerics-v1.md` that these statistics follow. A changed bit is a new version.
pub const NUMERICS_VERSION: u32 = 1;

/// The k of [`RowStats::overlap`].
pub const TOP_K: [usize; 3] = [1, 5, top::DEPTH];

/// What is known of one row of an oracle, a, and a candidate, b. A token is masked where its score is −Inf. Divergences are in nats; no value is NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowStats {
    /// KL(oracle‖candidate); +Inf where some token is masked on one side only
    pub kl: f64,
    /// KL(candidate‖oracle); likewise
    pub kl_reverse: f64,
    /// Jensen-Shannon divergence, 0 to ln 2
    pub js: f64,
    /// Total variation, 0 to 1
    pub tv: f64,
    /// The largest |b − a| of the raw scores over the tokens that neither side masks: an offset common to all tokens counts. 0 where there is no such token
    pub max_abs_delta: f64,
    /// The oracle's highest score less its second: 0 at a tie, +Inf where only one token is unmasked
    pub margin: f64,
    /// The oracle's lowest token id with the highest score
    pub oracle_argmax: u32,
    /// The candidate's lowest token id with the highest score
    pub candidate_argmax: u32,
    /// Whether some token has the highest score on both sides
    pub maxima_meet: bool,
    /// How many tokens the candidate scores above the oracle's argmax
    pub rank: u32,
    /// How many tokens the first k of both sides have in common, for each of [`TOP_K`]; equal scores by lowest token id, masked tokens never
    pub overlap: [u32; TOP_K.len()],
    /// Tokens that are masked on one side only
    pub mask_differences: u32,
}

impl RowStats {
    /// What [`compare`] gives for two equal rows with this argmax, margin and number of unmasked tokens.
    #[must_use]
    pub fn equal(argmax: u32, margin: f64, unmasked: u64) -> Self {
        let overlap = |k: usize| u32::try_from(unmasked).map_or(u32::MAX, |n| n.min(u32::try_from(k).unwrap_or(n)));
        Self {
            kl: 0.0,
            kl_reverse: 0.0,
            js: 0.0,
            tv: 0.0,
            max_abs_delta: 0.0,
            margin,
            oracle_argmax: argmax,
            candidate_argmax: argmax,
            maxima_meet: true,
            rank: 0,
            overlap: TOP_K.map(overlap),
            mask_differences: 0,
        }
    }

    /// Whether both sides have the same argmax.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.oracle_argmax == self.candidate_argmax
    }

    /// Whether the oracle's margin is at most `threshold`, in the unit of the scores.
    #[must_use]
    pub fn is_near_tie(&self, threshold: f64) -> bool {
        self.margin <= threshold
    }
}

/// Why two rows cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// The rows have different vocabularies
    #[error("rows of {oracle} and {candidate} scores")]
    Lengths {
        /// Scores of the oracle
        oracle: usize,
        /// Scores of the candidate
        candidate: usize,
    },
    /// A score is NaN or +Inf
    #[error("a score is NaN or +Inf")]
    NotAScore,
    /// A row is empty, or all of its tokens are masked: it is no distribution
    #[error("a row has no unmasked score")]
    NoDistribution,
    /// More tokens than token ids
    #[error("more than 2^32 scores")]
    TooLong,
}

/// What [`compare`] works in, kept from row to row: 16 bytes a token.
#[derive(Debug, Clone)]
pub struct Scratch {
    level: Level,
    exps: Vec<[[f64; elementary::LANES]; 2]>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self::at(Level::new())
    }
}

impl Scratch {
    /// With vectors of a given width, for tests: the results are the same.
    #[must_use]
    pub fn at(level: Level) -> Self {
        Self { level, exps: Vec::new() }
    }
}

/// Compares the scores of an oracle and a candidate, `[vocab]` each: f32, finite or −Inf where masked.
///
/// # Errors
/// When the rows differ in length, hold NaN or +Inf, or are no distributions.
pub fn compare(oracle: &[f32], candidate: &[f32], scratch: &mut Scratch) -> Result<RowStats, CompareError> {
    if oracle.len() != candidate.len() {
        return Err(CompareError::Lengths { oracle: oracle.len(), candidate: candidate.len() });
    }
    u32::try_from(oracle.len()).map_err(|_| CompareError::TooLong)?;
    let exps = &mut scratch.exps;
    fearless_simd::dispatch!(scratch.level, _simd => rows(oracle, candidate, exps))
}

/// Inlined, with all that it calls, into a function for each width of vectors.
#[inline(always)]
fn rows(a: &[f32], b: &[f32], exps: &mut Vec<[[f64; elementary::LANES]; 2]>) -> Result<RowStats, CompareError> {
    let top_a = Top::of(a).ok_or(CompareError::NotAScore)?;
    let top_b = Top::of(b).ok_or(CompareError::NotAScore)?;
    let (Some(max_a), Some(max_b)) = (top_a.max(), top_b.max()) else { return Err(CompareError::NoDistribution) };
    let (&[oracle_argmax, ..], &[candidate_argmax, ..]) = (top_a.tokens(), top_b.tokens()) else {
        return Err(CompareError::NoDistribution);
    };
    let mask_differences = pass::count(a, b, |a, b| (a == f32::NEG_INFINITY) != (b == f32::NEG_INFINITY));
    let (high_a, high_b) = (a[oracle_argmax as usize], b[candidate_argmax as usize]);
    let at_oracle = b[oracle_argmax as usize];
    let sums = Sums::of(a, b, [max_a, max_b], exps);
    let kl = |sum: f64| if mask_differences > 0 { f64::INFINITY } else { sum };
    Ok(RowStats {
        kl: kl(sums.kl),
        kl_reverse: kl(sums.reverse),
        js: 0.5 * sums.js,
        tv: 0.5 * sums.tv,
        max_abs_delta: sums.max_abs_delta,
        margin: top_a.margin(),
        oracle_argmax,
        candidate_argmax,
        maxima_meet: pass::count(a, b, |a, b| a >= high_a && b >= high_b) > 0,
        rank: pass::count(a, b, |_, b| b > at_oracle),
        overlap: TOP_K.map(|k| top_a.overlap(&top_b, k)),
        mask_differences,
    })
}
