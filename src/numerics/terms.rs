//! What a pair of tokens adds to each divergence: `specs/numerics-v1.md`, section 5.
//!
//! p and q are the probabilities of one token under oracle and candidate, d = ln(q/p) is known better than both. The plain forms
//! lose everything where p and q are close, so there each term is a series in d.

use super::elementary::{horner, ln};

/// Below this |d| the series are used.
const NEAR: f64 = 0.25;

/// cosh d − 1 = t·Σ COSH·t^k, t = d²: 1/(2k + 2)!.
const COSH: [f64; 6] = [1.0 / 2.0, 1.0 / 24.0, 1.0 / 720.0, 1.0 / 40_320.0, 1.0 / 3_628_800.0, 1.0 / 479_001_600.0];

/// sinh d − d = d·t·Σ SINH·t^k: 1/(2k + 3)!.
const SINH: [f64; 5] = [1.0 / 6.0, 1.0 / 120.0, 1.0 / 5_040.0, 1.0 / 362_880.0, 1.0 / 39_916_800.0];

/// h(tanh(d/2)) = t·Σ JS·t^k, of h(u) = (1 + u) ln(1 + u) + (1 − u) ln(1 − u): the integral of x·sech²(x/2)/2 from 0 to d.
const JS: [f64; 7] = [
    1.0 / 4.0,
    -1.0 / 32.0,
    1.0 / 288.0,
    -17.0 / 46_080.0,
    31.0 / 806_400.0,
    -691.0 / 174_182_400.0,
    5_461.0 / 13_412_044_800.0,
];

/// What one token adds, in nats: to KL(oracle‖candidate), to KL(candidate‖oracle), to twice the Jensen-Shannon divergence, to twice
/// the total variation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) kl: f64,
    pub(super) reverse: f64,
    pub(super) js: f64,
    pub(super) tv: f64,
}

/// The terms where |d| < 1/4.
#[inline(always)]
fn near(p: f64, q: f64, d: f64) -> Terms {
    let t = d * d;
    let even = t * horner(&COSH, t);
    let odd = (d * t) * horner(&SINH, t);
    let phi = even + odd;
    Terms {
        kl: p * phi,
        reverse: q * (even - odd),
        js: ((p + q) * 0.5) * (t * horner(&JS, t)),
        tv: (p * (d + phi)).abs(),
    }
}

/// The terms where |d| ≥ 1/4.
#[inline(always)]
fn far(p: f64, q: f64, d: f64) -> Terms {
    let (w, sum) = (q - p, p + q);
    let (low, high) = if w > 0.0 { (p, q) } else { (q, p) };
    let ratio = if sum > 0.0 { (high + high) / sum } else { 1.0 };
    Terms { kl: w - p * d, reverse: q * d - w, js: sum * ln(ratio) - low * d.abs(), tv: w.abs() }
}

/// Whether the series hold at d.
#[inline(always)]
pub(super) fn is_near(d: f64) -> bool {
    d.abs() < NEAR
}

#[inline(always)]
pub(super) fn terms<const ALL_NEAR: bool>(p: f64, q: f64, d: f64) -> Terms {
    let close = near(p, q, d);
    if ALL_NEAR {
        return close;
    }
    let wide = far(p, q, d);
    let choose = |close: f64, wide: f64| if is_near(d) { close } else { wide };
    Terms {
        kl: choose(close.kl, wide.kl),
        reverse: choose(close.reverse, wide.reverse),
        js: choose(close.js, wide.js),
        tv: choose(close.tv, wide.tv),
    }
}
