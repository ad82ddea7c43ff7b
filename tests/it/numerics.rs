//! The statistics: `specs/numerics-v1.md` against the vectors of the Python reference, at every width of vectors, and on real captures.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use witnessmark::canon::real::Real;
use witnessmark::numerics::{CompareError, Level, RowStats, Scratch, Spread, Summary, compare, summarise};

use crate::support::{embedded, root, shared_captures};

const MASKED: f32 = f32::NEG_INFINITY;

/// All widths of vectors that this machine has.
fn levels() -> Vec<Level> {
    let best = Level::new();
    #[cfg(target_arch = "x86_64")]
    let narrower = [best.as_sse4_2().map(Level::Sse4_2), best.as_avx2().map(Level::Avx2)];
    #[cfg(not(target_arch = "x86_64"))]
    let narrower: [Option<Level>; 0] = [];
    [Level::baseline(), best].into_iter().chain(narrower.into_iter().flatten()).collect()
}

fn stats(oracle: &[f32], candidate: &[f32]) -> RowStats {
    compare(oracle, candidate, &mut Scratch::default()).unwrap()
}

type Key = (u64, u64, u64);

/// The rows of a capture with bf16 scores, by key.
fn capture(folder: &Path) -> BTreeMap<Key, Vec<f32>> {
    let lines = fs::read_to_string(folder.join("rows.jsonl")).unwrap();
    let scores = fs::read(folder.join("scores.bf16")).unwrap();
    let widen = |half: &[u8]| f32::from_bits(u32::from(u16::from_le_bytes([half[0], half[1]])) << 16);
    let rows = scores.chunks_exact(scores.len() / lines.lines().count());
    let keys = lines.lines().map(|line| {
        let row: Value = serde_json::from_str(line).unwrap();
        let field = |name: &str| row[name].as_u64().unwrap_or(0);
        (field("prompt_index"), field("sample_index"), field("position"))
    });
    keys.zip(rows.map(|row| row.chunks_exact(2).map(widen).collect())).collect()
}

fn compare_captures(oracle: &Path, candidate: &Path) -> Vec<RowStats> {
    let (oracle, candidate) = (capture(oracle), capture(candidate));
    let mut scratch = Scratch::default();
    let pairs = oracle.iter().filter_map(|(key, a)| Some((a, candidate.get(key)?)));
    pairs.map(|(a, b)| compare(a, b, &mut scratch).unwrap()).collect()
}

fn vectors() -> Value {
    serde_json::from_slice(&fs::read(root().join("corpora/numerics/vectors.json")).unwrap()).unwrap()
}

fn hex(row: &Value) -> Vec<f32> {
    let digits = row.as_array().unwrap().iter().map(|bits| bits.as_str().unwrap());
    digits.map(|bits| f32::from_bits(u32::from_str_radix(bits, 16).unwrap())).collect()
}

/// Section 9.
fn generate(form: &Value) -> (Vec<f32>, Vec<f32>) {
    let number = |name: &str| form[name].as_u64().unwrap_or(0);
    let row = |i: u64| {
        let mut x = number("seed").wrapping_add((i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^= x >> 31;
        let signed = |bits: u64| i32::try_from(bits).unwrap() - (1 << 23);
        let (base, step) = (signed(x >> 40), signed(x & 0xff_ffff) >> number("shift"));
        let score = |value: i32, mask: u64| {
            let masked = mask > 0 && i % mask == mask - 1;
            if masked { MASKED } else { value as f32 * 0.5_f32.powi(number("scale") as i32) }
        };
        (score(base, number("mask_oracle")), score(base + step, number("mask_candidate")))
    };
    (0..number("vocab")).map(row).unzip()
}

fn inputs(vector: &Value) -> (Vec<f32>, Vec<f32>) {
    if let Some(names) = vector["captures"].as_array() {
        let row = vector["row"].as_u64().unwrap() as usize;
        let row = |name: &Value| capture(&embedded(name.as_str().unwrap())).into_values().nth(row).unwrap();
        return (row(&names[0]), row(&names[1]));
    }
    if vector["generated"].is_object() {
        return generate(&vector["generated"]);
    }
    (hex(&vector["oracle"]), hex(&vector["candidate"]))
}

/// A result as vectors write it.
fn written(stats: &RowStats) -> Value {
    let bits = |value: f64| format!("{:016x}", value.to_bits());
    json!({
        "kl": bits(stats.kl), "kl_reverse": bits(stats.kl_reverse), "js": bits(stats.js), "tv": bits(stats.tv),
        "max_abs_delta": bits(stats.max_abs_delta), "margin": bits(stats.margin),
        "oracle_argmax": stats.oracle_argmax, "candidate_argmax": stats.candidate_argmax,
        "maxima_meet": stats.maxima_meet, "rank": stats.rank, "overlap": stats.overlap,
        "mask_differences": stats.mask_differences,
    })
}

fn summary_written(summary: &Summary) -> Value {
    let real = |value: f64| Real::new(value).unwrap();
    let spread = |of: &Spread| {
        json!({"mean": real(of.mean), "median": real(of.median), "p99": real(of.p99), "max": real(of.max),
               "infinite": of.infinite})
    };
    json!({
        "rows": summary.rows, "kl": spread(&summary.kl), "kl_reverse": spread(&summary.kl_reverse),
        "js": spread(&summary.js), "tv": spread(&summary.tv), "max_abs_delta": spread(&summary.max_abs_delta),
        "margin": spread(&summary.margin), "agree": summary.agree, "maxima_meet": summary.maxima_meet,
        "near_ties": summary.near_ties, "overlap": summary.overlap, "max_rank": summary.max_rank,
        "mask_differences": summary.mask_differences,
    })
}

#[test]
fn vectors_have_the_same_bits_at_every_width() {
    let vectors = vectors();
    let rows = vectors["rows"].as_array().unwrap();
    assert!(rows.len() >= 40, "{}", rows.len());
    let inputs: Vec<_> = rows.iter().map(inputs).collect();
    for level in levels() {
        // One scratch for rows of all lengths: what the last row left in it must not show.
        let mut scratch = Scratch::at(level);
        let mut all = Vec::new();
        for (vector, (oracle, candidate)) in rows.iter().zip(&inputs) {
            let stats = compare(oracle, candidate, &mut scratch).unwrap();
            assert_eq!(written(&stats), vector["result"], "{} {level:?}", vector["name"]);
            all.push(stats);
        }
        let summary = summarise(&all, vectors["near_tie"].as_f64().unwrap()).unwrap();
        assert_eq!(summary_written(&summary), vectors["summary"]);
    }
}

#[test]
fn vectors_are_near_to_what_they_stand_for() {
    let mut checked = 0;
    for vector in vectors()["rows"].as_array().unwrap() {
        for (name, near) in vector["near"].as_object().into_iter().flatten() {
            let near: f64 = near.as_str().unwrap().parse().unwrap();
            let bits = u64::from_str_radix(vector["result"][name].as_str().unwrap(), 16).unwrap();
            let got = f64::from_bits(bits);
            let absolute = if name == "tv" { 1e-14 } else { 1e-40 };
            let good = got.to_bits() == near.to_bits() || (got - near).abs() <= absolute + 1e-13 * near;
            assert!(good, "{}: {name} is {got}, not {near}", vector["name"]);
            checked += 1;
        }
    }
    assert!(checked >= 150, "{checked}");
}

#[test]
fn reals_have_one_spelling() {
    for pair in vectors()["reals"].as_array().unwrap() {
        let value = f64::from_bits(u64::from_str_radix(pair[0].as_str().unwrap(), 16).unwrap());
        let text = pair[1].as_str().unwrap().to_owned();
        assert_eq!(Real::new(value).unwrap().to_string(), text);
        assert_eq!(json!(Real::new(value)), json!(text));
        let read = Real::try_from(text).unwrap().get();
        assert_eq!(read.to_bits(), (value + 0.0).to_bits());
    }
    for other in
        ["", "1.0", "+1", "-0", "01", "1e21", "1E+21", ".5", "NaN", "nan", "Infinity", "+inf", "INF", " 1", "1e400"]
    {
        assert!(Real::try_from(other.to_owned()).is_err(), "{other:?}");
    }
    assert_eq!(Real::new(f64::NAN), None);
}

#[test]
fn what_is_no_pair_of_distributions_is_refused() {
    let nan = f32::NAN;
    let mut long = vec![0.0; 1000];
    long[700] = nan;
    let zeros = vec![0.0; 1000];
    for (oracle, candidate, error) in [
        (&[0.0, 1.0][..], &[0.0][..], CompareError::Lengths { oracle: 2, candidate: 1 }),
        (&[], &[], CompareError::NoDistribution),
        (&[MASKED, MASKED], &[0.0, 1.0], CompareError::NoDistribution),
        (&[0.0, 1.0], &[MASKED, MASKED], CompareError::NoDistribution),
        (&[0.0, nan], &[0.0, 1.0], CompareError::NotAScore),
        (&[0.0, 1.0], &[0.0, -nan], CompareError::NotAScore),
        (&[0.0, f32::INFINITY], &[0.0, 1.0], CompareError::NotAScore),
        (&long, &zeros, CompareError::NotAScore),
        (&zeros, &long, CompareError::NotAScore),
    ] {
        assert_eq!(compare(oracle, candidate, &mut Scratch::default()), Err(error));
    }
    assert_eq!(summarise(&[], 0.0), None);
}

#[test]
fn quantiles_are_by_nearest_rank() {
    let mut rows: Vec<RowStats> = (0..200).rev().map(|n| stats(&[0.0, n as f32], &[0.0, n as f32])).collect();
    let margin = summarise(&rows, 3.0).unwrap().margin;
    assert_eq!(margin, Spread { mean: 99.5, median: 99.0, p99: 197.0, max: 199.0, infinite: 0 });
    assert_eq!(summarise(&rows, 3.0).unwrap().near_ties, 4);
    rows.push(stats(&[1.0, MASKED], &[1.0, MASKED]));
    let margin = summarise(&rows, 3.0).unwrap().margin;
    assert_eq!((margin.median, margin.p99, margin.infinite), (100.0, 198.0, 1));
    assert!(margin.mean.is_infinite() && margin.max.is_infinite());
    let one = summarise(&rows[..1], 0.0).unwrap().margin;
    assert_eq!((one.mean, one.median, one.p99, one.max), (199.0, 199.0, 199.0, 199.0));
}

/// Published figures of these captures, from NumPy's float64 by the plain formulas.
#[test]
fn real_captures_have_the_figures_that_are_known_of_them() {
    let cut = compare_captures(&embedded("oracle-c1-rep0"), &embedded("oracle-c4-rep0"));
    assert_eq!((cut.len(), cut.iter().filter(|row| row.agrees()).count()), (9, 7));
    let Some(folder) = shared_captures() else { return };
    let figures = |candidate: &str| {
        let rows = compare_captures(&folder.join("oracle-c1-rep0"), &folder.join(candidate));
        assert_eq!(rows.len(), 162);
        let summary = summarise(&rows, 0.0).unwrap();
        let rounded = |value: f64| format!("{value:.5e}");
        let (kl, reverse) = (summary.kl, summary.kl_reverse.mean);
        ([rounded(kl.mean), rounded(kl.max), rounded(reverse)], summary.rows - summary.agree)
    };
    let close = ["5.34413e-4", "8.67101e-3", "5.28525e-4"].map(str::to_owned);
    assert_eq!(figures("oraclereplay-c4-rep0"), (close, 1));
    let (apart, flips) = figures("candidate-int4-c1");
    assert_eq!((&apart[0][..], &apart[2][..], flips), ("8.33645e-1", "1.22324e0", 81));
}

/// The top of a row by sorting it.
fn sorted(row: &[f32]) -> Vec<u32> {
    let mut tokens: Vec<u32> = (0..row.len() as u32).filter(|&token| row[token as usize] > MASKED).collect();
    tokens.sort_by(|&x, &y| row[y as usize].partial_cmp(&row[x as usize]).unwrap());
    tokens
}

proptest! {
    #[test]
    fn tops_are_those_of_a_sort(
        rows in prop::collection::vec((-20..20_i8, -20..20_i8), 1..700),
        masked in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
    ) {
        let (mut a, mut b): (Vec<f32>, Vec<f32>) = rows.iter().map(|&(x, y)| (f32::from(x), f32::from(y))).unzip();
        for index in masked {
            (a[index.index(rows.len())], b[index.index(rows.len())]) = (MASKED, MASKED);
        }
        let (top_a, top_b) = (sorted(&a), sorted(&b));
        prop_assume!(!top_a.is_empty());
        let stats = stats(&a, &b);
        prop_assert_eq!((stats.oracle_argmax, stats.candidate_argmax), (top_a[0], top_b[0]));
        for (k, overlap) in [1, 5, 10].into_iter().zip(stats.overlap) {
            let theirs: Vec<_> = top_b.iter().take(k).collect();
            prop_assert_eq!(overlap as usize, top_a.iter().take(k).filter(|token| theirs.contains(token)).count());
        }
        let at = b[top_a[0] as usize];
        prop_assert_eq!(stats.rank as usize, b.iter().filter(|&&score| score > at).count());
        let second = top_a.get(1).map_or(f64::INFINITY, |&token| f64::from(a[top_a[0] as usize] - a[token as usize]));
        prop_assert_eq!(stats.margin.to_bits(), second.to_bits());
    }

    #[test]
    fn divergences_are_what_their_names_say(rows in prop::collection::vec((-30.0..30.0_f32, -30.0..30.0_f32), 1..100)) {
        let (a, b): (Vec<f32>, Vec<f32>) = rows.into_iter().unzip();
        let (there, back) = (stats(&a, &b), stats(&b, &a));
        prop_assert!((there.kl - back.kl_reverse).abs() <= 1e-13 * there.kl.max(1e-3));
        prop_assert!((there.js - back.js).abs() <= 1e-13 && (there.tv - back.tv).abs() <= 1e-13);
        prop_assert!((0.0..=1.0 + 1e-15).contains(&there.tv) && (0.0..=f64::ln(2.0) + 1e-15).contains(&there.js));
        // Pinsker's inequality
        prop_assert!(there.kl >= 2.0 * there.tv * there.tv - 1e-14);
    }
}
