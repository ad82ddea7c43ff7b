//! The exact interval of a share: `specs/numerics-v1.md`, section 9.

use super::elementary::{exp, ln};

/// Shares are counted in parts of this.
const WHOLE: u32 = 1_000_000;
/// No count is searched beyond this; one part in a million at one in a million needs 13,815,504.
const MOST: u32 = 1 << 24;
/// What lies beyond each end.
const TAIL: f64 = 0.025;

/// The exact (Clopper–Pearson) 95 % interval of the share of which `hits` of `count` are a sample: lower and upper end in parts per million, rounded
/// outwards. None where nothing was counted, or more was hit than counted.
///
/// Source: C. J. Clopper, E. S. Pearson, Biometrika 26 (1934), 404.
#[must_use]
pub fn interval(hits: u64, count: u64) -> Option<(u32, u32)> {
    if count == 0 || hits > count {
        return None;
    }
    let lower = match hits.checked_sub(1) {
        // The largest share at which so many hits or more are no more likely than the tail.
        Some(fewer) => last(0, WHOLE, |share| 1.0 - at_most(fewer, count, share) <= TAIL),
        None => 0,
    };
    let upper = if hits == count {
        WHOLE
    } else {
        // The smallest share at which so many hits or fewer are no more likely than the tail.
        last(0, WHOLE, |share| at_most(hits, count, share) > TAIL) + 1
    };
    Some((lower, upper))
}

/// The exact one-sided upper end of the share of which none of `count` are a sample, that holds but with the probability `alpha`: in parts per million, as `alpha`
/// is, rounded up. All of them where nothing was counted.
#[must_use]
pub fn upper_bound(count: u64, alpha: u32) -> u32 {
    let alpha = f64::from(alpha) / f64::from(WHOLE);
    if count == 0 { WHOLE } else { last(0, WHOLE, |share| at_most(0, count, share) > alpha) + 1 }
}

/// How many there must be, none of them hit, for the share to be at most `share` but with the probability `alpha`, both in parts per million and above 0.
#[must_use]
pub fn least_count(share: u32, alpha: u32) -> u64 {
    let alpha = f64::from(alpha) / f64::from(WHOLE);
    u64::from(last(0, MOST, |count| at_most(0, u64::from(count), share) > alpha)) + 1
}

/// The last from `low` on that holds; `low` holds, `high` does not, and there is one change between them.
fn last(mut low: u32, mut high: u32, holds: impl Fn(u32) -> bool) -> u32 {
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The probability of at most `hits` hits of `count`, each with the probability `share`.
fn at_most(hits: u64, count: u64, share: u32) -> f64 {
    let whole = ln(f64::from(WHOLE));
    let hit = ln(f64::from(share)) - whole;
    let miss = ln(f64::from(WHOLE - share)) - whole;
    let step = hit - miss;
    let mut log = real(count) * miss;
    let mut sum = exp(log);
    for i in 1..=hits {
        log += (ln(real(count - i + 1)) - ln(real(i))) + step;
        sum += exp(if log < 0.0 { log } else { 0.0 });
    }
    sum
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn real(count: u64) -> f64 {
    count as f64
}
