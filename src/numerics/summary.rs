//! Many rows in few numbers: `specs/numerics-v1.md`, section 7.

use super::RowStats;
use super::elementary::{LANES, tree};

/// How one statistic is spread over rows. Quantiles are by nearest rank; +Inf sorts last and makes the mean +Inf.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// SUM16 in the order of rows, divided by their number
    pub mean: f64,
    /// The ⌈n/2⌉-th smallest
    pub median: f64,
    /// The ⌈99n/100⌉-th smallest
    pub p99: f64,
    /// The largest
    pub max: f64,
    /// How many are +Inf
    pub infinite: u64,
}

/// What many rows, in key order, say together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Number of rows, at least 1
    pub rows: u64,
    /// KL(oracle‖candidate), nats
    pub kl: Spread,
    /// KL(candidate‖oracle), nats
    pub kl_reverse: Spread,
    /// Jensen-Shannon divergence, nats
    pub js: Spread,
    /// Total variation
    pub tv: Spread,
    /// Largest difference of raw scores
    pub max_abs_delta: Spread,
    /// The oracle's margin
    pub margin: Spread,
    /// Rows with the same argmax on both sides
    pub agree: u64,
    /// Rows in which some token has the highest score on both sides
    pub maxima_meet: u64,
    /// Rows whose oracle's margin is at most the threshold
    pub near_ties: u64,
    /// Sums of [`RowStats::overlap`]
    pub overlap: [u64; super::TOP_K.len()],
    /// The largest [`RowStats::rank`]
    pub max_rank: u32,
    /// Rows in which some token is masked on one side only
    pub mask_differences: u64,
}

impl Spread {
    /// Of values that are not NaN; none where there are none.
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.collect();
        let count = sorted.len();
        let mut lanes = [0.0; LANES];
        for (i, value) in sorted.iter().enumerate() {
            lanes[i % LANES] += value;
        }
        sorted.sort_by(f64::total_cmp);
        let rank = |numerator: usize, denominator: usize| {
            let nearest = (count * numerator).div_ceil(denominator);
            sorted.get(nearest.checked_sub(1)?).copied()
        };
        Some(Self {
            mean: tree(lanes) / count as f64,
            median: rank(1, 2)?,
            p99: rank(99, 100)?,
            max: rank(1, 1)?,
            infinite: sorted.iter().map(|value| u64::from(value.is_infinite())).sum(),
        })
    }
}

/// Summarises rows, in key order. `near_tie` is the largest margin that counts as a near tie. None where there are no rows.
#[must_use]
pub fn summarise(rows: &[RowStats], near_tie: f64) -> Option<Summary> {
    let spread = |of: fn(&RowStats) -> f64| Spread::of(rows.iter().map(of));
    let count = |of: &dyn Fn(&RowStats) -> bool| rows.iter().map(|row| u64::from(of(row))).sum();
    let mut overlap = [0; super::TOP_K.len()];
    for row in rows {
        for (sum, &common) in overlap.iter_mut().zip(&row.overlap) {
            *sum += u64::from(common);
        }
    }
    Some(Summary {
        rows: rows.len() as u64,
        kl: spread(|row| row.kl)?,
        kl_reverse: spread(|row| row.kl_reverse)?,
        js: spread(|row| row.js)?,
        tv: spread(|row| row.tv)?,
        max_abs_delta: spread(|row| row.max_abs_delta)?,
        margin: spread(|row| row.margin)?,
        agree: count(&RowStats::agrees),
        maxima_meet: count(&|row| row.maxima_meet),
        near_ties: count(&|row| row.is_near_tie(near_tie)),
        overlap,
        max_rank: rows.iter().map(|row| row.rank).max()?,
        mask_differences: count(&|row| row.mask_differences > 0),
    })
}
