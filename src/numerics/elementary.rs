//! The elementary functions, operation by operation: `specs/numerics-v1.md`, section 2.
//!
//! Each is one fixed sequence of IEEE 754 binary64 operations, rounded to nearest, without branches and without fused
//! multiply-add, so that it gives the same bits on every machine and in every width of vector.

/// Lanes of a sum: element i is added to lane i mod 16.
pub(super) const LANES: usize = 16;

/// ln 2 in two parts. The first has 32 significant bits, so that its product with an exponent is exact.
const LN2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];

/// 1.5 × 2^52: added to a number below 2^51, it leaves the nearest integer in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// Where EXP is +0: no result is ever subnormal, nor is a probability that is made of it.
const EXP_FLOOR: f64 = -690.0;

/// 1/k! for k = 0 to 12.
const EXP: [f64; 13] = [
    1.0,
    1.0,
    1.0 / 2.0,
    1.0 / 6.0,
    1.0 / 24.0,
    1.0 / 120.0,
    1.0 / 720.0,
    1.0 / 5_040.0,
    1.0 / 40_320.0,
    1.0 / 362_880.0,
    1.0 / 3_628_800.0,
    1.0 / 39_916_800.0,
    1.0 / 479_001_600.0,
];

/// 1/(2k + 1) for k = 0 to 10.
const LN: [f64; 11] = [
    1.0,
    1.0 / 3.0,
    1.0 / 5.0,
    1.0 / 7.0,
    1.0 / 9.0,
    1.0 / 11.0,
    1.0 / 13.0,
    1.0 / 15.0,
    1.0 / 17.0,
    1.0 / 19.0,
    1.0 / 21.0,
];

/// HORNER: c0 + x·(c1 + x·(c2 + …)), from the inside out.
#[inline(always)]
pub(super) fn horner<const N: usize>(c: &[f64; N], x: f64) -> f64 {
    let mut sum = c[N - 1];
    for k in (0..N - 1).rev() {
        sum = sum * x + c[k];
    }
    sum
}

/// EXP: e^x for x ≤ 0, within 5e-16 of the value; +0 below −690.
#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    let at = if x > EXP_FLOOR { x } else { EXP_FLOOR };
    let rounded = at * std::f64::consts::LOG2_E + ROUND;
    let k = rounded - ROUND;
    let r = (at - k * LN2[0]) - k * LN2[1];
    // The low bits of `rounded` are k; 2^k is k + 1023 in the place of the exponent.
    let power = f64::from_bits((rounded.to_bits() << 52).wrapping_add(1023 << 52));
    let value = horner(&EXP, r) * power;
    if x < EXP_FLOOR { 0.0 } else { value }
}

/// LN: ln x for a normal x ≥ 1, within 5e-16 of the value.
#[inline(always)]
pub(super) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    // An exponent as the low bits of 2^52 + e is a number without a conversion, which narrow vectors do not have.
    let e = f64::from_bits(bits >> 52 | 0x4330 << 48) - (4_503_599_627_370_496.0 + 1023.0);
    let m = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 1023 << 52);
    let high = m > std::f64::consts::SQRT_2;
    let (m, e) = (if high { m * 0.5 } else { m }, if high { e + 1.0 } else { e });
    let s = (m - 1.0) / (m + 1.0);
    let series = (s + s) * horner(&LN, s * s);
    e * LN2[0] + (e * LN2[1] + series)
}

/// The end of SUM16: lane j takes lane j + 8, then j + 4, j + 2, j + 1.
#[inline(always)]
pub(super) fn tree(mut lanes: [f64; LANES]) -> f64 {
    for half in [8, 4, 2, 1] {
        for j in 0..half {
            lanes[j] += lanes[j + half];
        }
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The standard library's are right to about one unit in the last place, but not the same everywhere.
    fn is_near(value: f64, exact: f64) -> bool {
        (value - exact).abs() <= 7e-16 * exact
    }

    #[test]
    fn near_to_the_standard_library() {
        for n in 0..=69_000 {
            let x = f64::from(n) / -100.0;
            assert!(is_near(exp(x), x.exp()), "{x}");
            let y = 1.0 + f64::from(n) * f64::from(n) / 1e5;
            assert!(is_near(ln(y), y.ln()), "{y}");
        }
    }

    #[test]
    fn exact_where_a_sum_relies_on_it() {
        for (value, exact) in [(exp(0.0), 1.0), (exp(-690.000_1), 0.0), (exp(-1e39), 0.0), (ln(1.0), 0.0)] {
            assert_eq!(value.to_bits(), f64::to_bits(exact));
        }
        assert!(exp(-690.0).is_normal());
    }
}
