//! The passes over a pair of rows: `specs/numerics-v1.md`, sections 4 and 5.
//!
//! A row is taken sixteen tokens at a time, the last chunk filled with masked tokens, which add +0 to every sum.

use super::elementary::{LANES, exp, ln, tree};
use super::terms::{Terms, is_near, terms};

/// −2^130, what a masked token's score less the maximum counts as: below that of any f32, and finite, so that no NaN arises.
const MASKED: f64 = -1.361_129_467_683_754e39;

/// A value a lane.
type Lanes = [f64; LANES];

/// The sums over all tokens of a pair of rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sums {
    pub(super) kl: f64,
    pub(super) reverse: f64,
    pub(super) js: f64,
    pub(super) tv: f64,
    pub(super) max_abs_delta: f64,
}

/// How many tokens of a pair of rows satisfy a condition.
#[inline(always)]
pub(super) fn count(a: &[f32], b: &[f32], condition: impl Fn(f32, f32) -> bool) -> u32 {
    a.iter().zip(b).map(|(&a, &b)| u32::from(condition(a, b))).sum()
}

/// Chunk n of a row.
#[inline(always)]
fn chunk(row: &[f32], n: usize) -> [f32; LANES] {
    let (chunks, tail) = row.as_chunks::<LANES>();
    chunks.get(n).copied().unwrap_or_else(|| {
        let mut last = [f32::NEG_INFINITY; LANES];
        last[..tail.len()].copy_from_slice(tail);
        last
    })
}

/// Scores less the row's maximum.
#[inline(always)]
fn below(scores: &[f32; LANES], max: f64) -> Lanes {
    let mut below = [0.0; LANES];
    for j in 0..LANES {
        let y = f64::from(scores[j]) - max;
        below[j] = if y > MASKED { y } else { MASKED };
    }
    below
}

/// EXP of each, added to the lanes of a sum.
#[inline(always)]
fn exps(below: &Lanes, sum: &mut Lanes) -> Lanes {
    let mut exps = [0.0; LANES];
    for j in 0..LANES {
        exps[j] = exp(below[j]);
        sum[j] += exps[j];
    }
    exps
}

impl Sums {
    /// The sums of rows a and b with these maxima. `scratch` keeps the exponentials between the two passes.
    #[inline(always)]
    pub(super) fn of(a: &[f32], b: &[f32], max: [f64; 2], scratch: &mut Vec<[Lanes; 2]>) -> Self {
        let chunks = a.len().div_ceil(LANES);
        let mut totals = [[0.0; LANES]; 2];
        scratch.resize(chunks, [[0.0; LANES]; 2]);
        for (n, [e_a, e_b]) in scratch.iter_mut().enumerate() {
            *e_a = exps(&below(&chunk(a, n), max[0]), &mut totals[0]);
            *e_b = exps(&below(&chunk(b, n), max[1]), &mut totals[1]);
        }
        let [total_a, total_b] = totals.map(tree);
        let scale = [1.0 / total_a, 1.0 / total_b];
        let shift = ln(total_b) - ln(total_a);

        let mut lanes = [[0.0; LANES]; 5];
        for (n, e) in scratch.iter().enumerate() {
            let (a, b) = (chunk(a, n), chunk(b, n));
            let (y_a, y_b) = (below(&a, max[0]), below(&b, max[1]));
            let mut d = [0.0; LANES];
            let mut far = 0_u64;
            for j in 0..LANES {
                d[j] = (y_b[j] - y_a[j]) - shift;
                far |= u64::from(!is_near(d[j]));
            }
            // The series alone give the same bits where all tokens are near.
            if far == 0 {
                add::<true>(&mut lanes, e, scale, &d);
            } else {
                add::<false>(&mut lanes, e, scale, &d);
            }
            for j in 0..LANES {
                let both = a[j] > f32::NEG_INFINITY && b[j] > f32::NEG_INFINITY;
                let delta = (f64::from(b[j]) - f64::from(a[j])).abs();
                let delta = if both { delta } else { 0.0 };
                lanes[4][j] = if delta > lanes[4][j] { delta } else { lanes[4][j] };
            }
        }
        let [kl, reverse, js, tv, deltas] = lanes;
        Self {
            kl: tree(kl),
            reverse: tree(reverse),
            js: tree(js),
            tv: tree(tv),
            max_abs_delta: deltas.into_iter().fold(0.0, f64::max),
        }
    }
}

#[inline(always)]
fn add<const ALL_NEAR: bool>(lanes: &mut [Lanes; 5], e: &[Lanes; 2], scale: [f64; 2], d: &Lanes) {
    let [kl, reverse, js, tv, _] = lanes;
    for j in 0..LANES {
        let Terms { kl: k, reverse: r, js: s, tv: t } = terms::<ALL_NEAR>(e[0][j] * scale[0], e[1][j] * scale[1], d[j]);
        kl[j] += k;
        reverse[j] += r;
        js[j] += s;
        tv[j] += t;
    }
}
