//! Canonical scores: one row of full-vocabulary scores has one dtype, one spelling, one digest.
//!
//! A row comes in as file bytes (`[vocab]` of bf16, f16 or f32, little-endian) or as the four byte planes of a page,
//! and is kept in the narrowest dtype that holds every value bit for bit. Always holds: equal f32 values give equal
//! bytes, whatever file, codec or CPU they came from. NaN and ±Inf are kept here and judged by
//! [`Canonical::scan`]. See `specs/format-v1.md`, section 4.

use serde::{Deserialize, Serialize};

use super::planes::{is_clear, join2, join4, split2, split4};
use crate::digest::{Blake3, Blake3Stream, Sha256};

/// BLAKE3 key derivation context of the score digest.
pub const SCORE_DIGEST_CONTEXT: &str = "witnessmark 2026-11-30 score digest v1";

/// Bits of an f32 that are zero in every value that an f16 holds.
const F16_LOW_BITS: u16 = 0x1fff;

/// A floating-point type of scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Dtype {
    /// bfloat16: the upper half of an f32
    #[serde(rename = "bfloat16")]
    Bf16,
    /// IEEE 754 binary16
    #[serde(rename = "float16")]
    F16,
    /// IEEE 754 binary32
    #[serde(rename = "float32")]
    F32,
}

impl Dtype {
    /// All, narrowest first, in the order in which canonical scores try them.
    pub const ALL: [Dtype; 3] = [Dtype::Bf16, Dtype::F16, Dtype::F32];

    /// Bytes a value.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Dtype::Bf16 | Dtype::F16 => 2,
            Dtype::F32 => 4,
        }
    }

    /// The tag in front of canonical scores.
    #[must_use]
    pub fn tag(self) -> u8 {
        match self {
            Dtype::Bf16 => 1,
            Dtype::F16 => 2,
            Dtype::F32 => 3,
        }
    }

    /// The name in run.json's `scores.dtype`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Dtype::Bf16 => "bfloat16",
            Dtype::F16 => "float16",
            Dtype::F32 => "float32",
        }
    }

    /// The name of the scores file of this dtype in a capture directory.
    #[must_use]
    pub fn file_name(self) -> &'static str {
        match self {
            Dtype::Bf16 => "scores.bf16",
            Dtype::F16 => "scores.f16",
            Dtype::F32 => "scores.f32",
        }
    }
}

/// Widens an f16 to the bits of the f32 with the same value. NaN payloads are shifted into place.
#[must_use]
pub fn f16_to_f32_bits(half: u16) -> u32 {
    let sign = u32::from(half & 0x8000) << 16;
    let exponent = u32::from(half >> 10) & 0x1f;
    let fraction = u32::from(half & 0x3ff);
    match (exponent, fraction) {
        (0, 0) => sign,
        // A subnormal is fraction × 2^−24, which an f32 holds as a normal number.
        (0, _) => {
            let shift = fraction.leading_zeros() - 21;
            sign | (113 - shift) << 23 | (fraction << (13 + shift)) & 0x007f_ffff
        }
        (31, _) => sign | 0x7f80_0000 | fraction << 13,
        _ => sign | (exponent + 112) << 23 | fraction << 13,
    }
}

/// The f16 whose widening has exactly these bits, if there is one. NaNs have none.
#[must_use]
pub fn f32_bits_to_f16(bits: u32) -> Option<u16> {
    let low16 = |value: u32| u16::try_from(value & 0xffff).unwrap_or(0);
    let sign = low16(bits >> 16) & 0x8000;
    let exponent = bits >> 23 & 0xff;
    let fraction = bits & 0x007f_ffff;
    let half = match exponent {
        0 if fraction == 0 => 0,
        255 if fraction == 0 => 0x7c00,
        113..=142 if fraction & 0x1fff == 0 => low16((exponent - 112) << 10 | fraction >> 13),
        103..=112 => {
            let shift = 126 - exponent;
            let full = fraction | 0x0080_0000;
            if full & ((1 << shift) - 1) != 0 {
                return None;
            }
            low16(full >> shift)
        }
        _ => return None,
    };
    Some(sign | half)
}

/// One row of scores, `[vocab]`, in its canonical dtype. The buffer is reused from row to row.
#[derive(Debug, Clone)]
pub struct Canonical {
    dtype: Dtype,
    /// The tag, then the canonical bytes: what is digested stands in one piece
    tagged: Vec<u8>,
}

/// What one pass over a row's values finds. Values compare as numbers: +0 equals −0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scan {
    /// Lowest token id with the highest score
    pub argmax: u32,
    /// The highest score
    pub max: f32,
    /// How many token ids have it
    pub max_count: u32,
    /// The highest score when one token id that has the maximum is left out; −Inf in a vocabulary of one
    pub second: f32,
    /// Values that are NaN, +Inf, or −Inf where no mask allows it, or finite where the mask demands −Inf
    pub nonfinite: u32,
    /// The lowest token id among these
    pub first_nonfinite: Option<u32>,
}

impl Default for Canonical {
    fn default() -> Self {
        Self { dtype: Dtype::Bf16, tagged: vec![Dtype::Bf16.tag()] }
    }
}

impl Canonical {
    /// The canonical dtype of the row.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The canonical bytes, little-endian.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.tagged.get(1..).unwrap_or_default()
    }

    /// Number of values.
    #[must_use]
    pub fn vocab(&self) -> usize {
        self.bytes().len() / self.dtype.size()
    }

    /// A row from its canonical bytes; none where they are not canonical: another dtype would be narrower, or the bytes are no whole
    /// number of values.
    #[must_use]
    pub fn from_canonical(dtype: Dtype, bytes: &[u8]) -> Option<Self> {
        let mut row = Self::default();
        row.set_from_file_row(dtype, bytes);
        (row.dtype == dtype && row.bytes() == bytes && bytes.len().is_multiple_of(dtype.size())).then_some(row)
    }

    /// Takes a row as it stands in a scores file of `dtype`; `row` is `[vocab]`, little-endian.
    pub fn set_from_file_row(&mut self, dtype: Dtype, row: &[u8]) {
        match dtype {
            Dtype::Bf16 => self.begin(Dtype::Bf16, row.len()).copy_from_slice(row),
            Dtype::F16 => {
                let halves = row.as_chunks::<2>().0;
                let bits = halves.iter().map(|&half| f16_to_f32_bits(u16::from_le_bytes(half)));
                self.set_from_words(bits.flat_map(u32::to_le_bytes).collect::<Vec<u8>>().as_chunks::<4>().0);
            }
            Dtype::F32 => self.set_from_words(row.as_chunks::<4>().0),
        }
    }

    /// Takes a row as the four byte planes of its f32 values (BYTE_STREAM_SPLIT), one after the other: `[4, vocab]`.
    pub fn set_from_planes(&mut self, planes: &[u8]) {
        let (p01, p23) = planes.split_at(planes.len() / 2);
        let (p0, p1) = p01.split_at(p01.len() / 2);
        let (p2, p3) = p23.split_at(p23.len() / 2);
        if is_clear(p01, 0xff) {
            join2([p2, p3], self.begin(Dtype::Bf16, p23.len()));
            return;
        }
        join4([p0, p1, p2, p3], self.begin(Dtype::F32, planes.len()));
        if is_clear(p0, 0xff) && is_clear(p1, F16_LOW_BITS.to_le_bytes()[1]) {
            self.narrow_to_f16();
        }
    }

    /// Makes room for `len` canonical bytes of `dtype`; what stands there is to be written over.
    fn begin(&mut self, dtype: Dtype, len: usize) -> &mut [u8] {
        self.dtype = dtype;
        self.tagged.resize(1 + len, 0);
        let Some((tag, bytes)) = self.tagged.split_first_mut() else { return &mut [] };
        *tag = dtype.tag();
        bytes
    }

    fn set_from_words(&mut self, words: &[[u8; 4]]) {
        // A block at a time: one value that is not bf16 is found without looking at the others.
        let clear = |mask: u32| {
            let low = |block: &[[u8; 4]]| block.iter().fold(0, |low, &word| low | u32::from_le_bytes(word)) & mask;
            words.chunks(1024).all(|block| low(block) == 0)
        };
        if clear(0xffff) {
            let out = self.begin(Dtype::Bf16, words.len() * 2).as_chunks_mut::<2>().0;
            for (half, &word) in out.iter_mut().zip(words) {
                *half = ((u32::from_le_bytes(word) >> 16) as u16).to_le_bytes();
            }
            return;
        }
        self.begin(Dtype::F32, words.len() * 4).copy_from_slice(words.as_flattened());
        if clear(F16_LOW_BITS.into()) {
            self.narrow_to_f16();
        }
    }

    /// Makes a row of f32 one of f16, if f16 holds every value.
    fn narrow_to_f16(&mut self) {
        let bits = self.bytes().as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word));
        let halves: Option<Vec<u16>> = bits.map(f32_bits_to_f16).collect();
        let Some(halves) = halves else { return };
        let out = self.begin(Dtype::F16, halves.len() * 2).as_chunks_mut::<2>().0;
        for (out, half) in out.iter_mut().zip(halves) {
            *out = half.to_le_bytes();
        }
    }

    /// The bits of each value as f32.
    fn for_each_bits(&self, mut take: impl FnMut(u32)) {
        match self.dtype {
            Dtype::Bf16 => {
                let halves = self.bytes().as_chunks::<2>().0;
                halves.iter().for_each(|&half| take(u32::from(u16::from_le_bytes(half)) << 16));
            }
            Dtype::F16 => {
                let halves = self.bytes().as_chunks::<2>().0;
                halves.iter().for_each(|&half| take(f16_to_f32_bits(u16::from_le_bytes(half))));
            }
            Dtype::F32 => {
                let words = self.bytes().as_chunks::<4>().0;
                words.iter().for_each(|&word| take(u32::from_le_bytes(word)));
            }
        }
    }

    /// The score of a token id; none beyond the vocabulary.
    #[must_use]
    pub fn get(&self, token: u32) -> Option<f32> {
        let size = self.dtype.size();
        let start = usize::try_from(token).ok()?.checked_mul(size)?;
        let bits = match *self.bytes().get(start..start.checked_add(size)?)? {
            [low, high] if self.dtype == Dtype::Bf16 => u32::from_le_bytes([0, 0, low, high]),
            [low, high] => f16_to_f32_bits(u16::from_le_bytes([low, high])),
            [a, b, c, d] => u32::from_le_bytes([a, b, c, d]),
            _ => return None,
        };
        Some(f32::from_bits(bits))
    }

    /// All values as f32, `[vocab]`, into `out`.
    pub fn widen_into(&self, out: &mut Vec<f32>) {
        out.clear();
        out.reserve(self.vocab());
        self.for_each_bits(|bits| out.push(f32::from_bits(bits)));
    }

    /// The four byte planes of the f32 values, one after the other, into `out`: `[4, vocab]`.
    pub fn write_planes(&self, out: &mut Vec<u8>) {
        let vocab = self.vocab();
        out.resize(vocab * 4, 0);
        let (p01, p23) = out.split_at_mut(vocab * 2);
        let (p0, p1) = p01.split_at_mut(vocab);
        let (p2, p3) = p23.split_at_mut(vocab);
        match self.dtype {
            Dtype::Bf16 => {
                p01.fill(0);
                split2(self.bytes(), [p2, p3]);
            }
            Dtype::F16 => {
                let mut wide = Vec::new();
                self.write_as(Dtype::F32, &mut wide);
                split4(&wide, [p0, p1, p2, p3]);
            }
            Dtype::F32 => split4(self.bytes(), [p0, p1, p2, p3]),
        }
    }

    /// The score digest: BLAKE3-derive-key of tag ‖ canonical scores.
    #[must_use]
    pub fn digest(&self) -> Blake3 {
        let mut stream = Blake3Stream::derive_key(SCORE_DIGEST_CONTEXT);
        stream.update(&self.tagged);
        stream.digest()
    }

    /// Whether `dtype` holds every value of the row exactly.
    #[must_use]
    pub fn fits(&self, dtype: Dtype) -> bool {
        match dtype {
            Dtype::F32 => true,
            // Canonical bf16 was tried first: what is not bf16 now has a value that bf16 cannot hold.
            Dtype::Bf16 => self.dtype == Dtype::Bf16,
            Dtype::F16 => {
                let mut fits = true;
                if self.dtype != Dtype::F16 {
                    self.for_each_bits(|bits| fits &= f32_bits_to_f16(bits).is_some());
                }
                fits
            }
        }
    }

    /// The row as it stands in a file of `dtype`, into `out`: `[vocab]`, little-endian. False, with `out` empty, when `dtype`
    /// cannot hold it.
    pub fn write_as(&self, dtype: Dtype, out: &mut Vec<u8>) -> bool {
        out.clear();
        if dtype == self.dtype {
            out.extend_from_slice(self.bytes());
            return true;
        }
        let fits = self.fits(dtype);
        if fits {
            out.reserve(self.vocab() * dtype.size());
            self.for_each_bits(|bits| match dtype {
                Dtype::F32 => out.extend_from_slice(&bits.to_le_bytes()),
                // What fits is either of these, and bf16 holds nothing that is not canonically bf16.
                Dtype::F16 | Dtype::Bf16 => {
                    out.extend_from_slice(&f32_bits_to_f16(bits).unwrap_or_default().to_le_bytes());
                }
            });
        }
        fits
    }

    /// SHA-256 of the row as it stands in a file of `dtype`; none when `dtype` cannot hold it. `scratch` is a buffer to
    /// work in.
    pub fn file_digest(&self, dtype: Dtype, scratch: &mut Vec<u8>) -> Option<Sha256> {
        if dtype == self.dtype {
            return Some(Sha256::of(self.bytes()));
        }
        self.write_as(dtype, scratch).then(|| Sha256::of(scratch))
    }

    /// Finds the maximum, the second and what is not finite. `masked` lists, ascending, the token ids whose score must be −Inf.
    #[must_use]
    pub fn scan(&self, masked: &[u32]) -> Scan {
        match self.dtype {
            Dtype::Bf16 => {
                let key = |half: &[u8; 2]| key16(i16::from_le_bytes(*half));
                let value = |key: i16| f32::from_bits(u32::from(unkey16(key)) << 16);
                scan_keys(self.bytes().as_chunks::<2>().0, key, 0x7f80, value, masked)
            }
            Dtype::F16 => {
                let key = |half: &[u8; 2]| key16(i16::from_le_bytes(*half));
                let value = |key: i16| f32::from_bits(f16_to_f32_bits(unkey16(key)));
                scan_keys(self.bytes().as_chunks::<2>().0, key, 0x7c00, value, masked)
            }
            Dtype::F32 => {
                let key = |word: &[u8; 4]| {
                    let bits = i32::from_le_bytes(*word);
                    let key = bits ^ ((bits >> 31) & i32::MAX);
                    key + i32::from(key == -1)
                };
                let value = |key: i32| f32::from_bits((key ^ ((key >> 31) & i32::MAX)).cast_unsigned());
                scan_keys(self.bytes().as_chunks::<4>().0, key, 0x7f80_0000, value, masked)
            }
        }
    }
}

/// Works on integers that are ordered as the values are (−0 as +0), with `infinity` the key of +Inf: a finite value's key lies strictly
/// between those of −Inf and +Inf, a NaN's outside. One pass over all values; only blocks that hold the maximum are looked at again.
fn scan_keys<T, K>(
    values: &[T],
    key: impl Fn(&T) -> K + Copy,
    infinity: K,
    value: impl Fn(K) -> f32,
    masked: &[u32],
) -> Scan
where
    K: Copy + Ord + std::ops::Not<Output = K>,
{
    const BLOCK: usize = 2048;
    let minus_infinity = !infinity;
    let (mut max, mut min) = (minus_infinity, infinity);
    let mut below = minus_infinity;
    let mut best_block = 0;
    let mut best_blocks = Vec::new();
    for (n, block) in values.chunks(BLOCK).enumerate() {
        let (mut high, mut low) = (minus_infinity, infinity);
        for item in block {
            let key = key(item);
            high = high.max(key);
            low = low.min(key);
        }
        min = min.min(low);
        if high > max || n == 0 {
            below = below.max(max);
            max = high;
            best_block = n;
            best_blocks.clear();
        }
        if high == max {
            best_blocks.push(block);
        } else {
            below = below.max(high);
        }
    }
    let mut count = 0_u32;
    for item in best_blocks.iter().copied().flatten() {
        let key = key(item);
        if key == max {
            count += 1;
        } else {
            below = below.max(key);
        }
    }
    let first = best_blocks.first().and_then(|block| block.iter().position(|item| key(item) == max)).unwrap_or(0);
    let (mut nonfinite, mut first_nonfinite) = (0, None);
    if max >= infinity || min <= minus_infinity || !masked.is_empty() {
        let mut mask = masked.iter().copied().peekable();
        for (token, item) in (0_u32..).zip(values) {
            let key = key(item);
            let must_be_masked = mask.next_if_eq(&token).is_some();
            let good = if must_be_masked { key == minus_infinity } else { minus_infinity < key && key < infinity };
            if !good {
                nonfinite += 1;
                first_nonfinite = first_nonfinite.or(Some(token));
            }
        }
    }
    Scan {
        argmax: u32::try_from(best_block * BLOCK + first).unwrap_or(u32::MAX),
        max: value(max),
        max_count: count,
        second: value(if count > 1 { max } else { below }),
        nonfinite,
        first_nonfinite,
    }
}

fn key16(bits: i16) -> i16 {
    let key = bits ^ ((bits >> 15) & i16::MAX);
    key + i16::from(key == -1)
}

fn unkey16(key: i16) -> u16 {
    (key ^ ((key >> 15) & i16::MAX)).cast_unsigned()
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "these values are exact")]
mod tests {
    use super::*;

    fn from_f32(values: &[f32]) -> Canonical {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut row = Canonical::default();
        row.set_from_file_row(Dtype::F32, &bytes);
        row
    }

    #[test]
    fn every_f16_survives_the_round_trip() {
        for half in 0..=u16::MAX {
            let bits = f16_to_f32_bits(half);
            let nan = half & 0x7c00 == 0x7c00 && half & 0x3ff != 0;
            assert_eq!(f32_bits_to_f16(bits), (!nan).then_some(half), "{half:#06x}");
            assert_eq!(nan, f32::from_bits(bits).is_nan());
        }
        assert_eq!(f32::from_bits(f16_to_f32_bits(0x0001)), 2.0_f32.powi(-24));
        assert_eq!(f32::from_bits(f16_to_f32_bits(0x3555)), 0.333_251_95);
        assert_eq!(f32_bits_to_f16(0.1_f32.to_bits()), None);
        assert_eq!(f32_bits_to_f16(65536.0_f32.to_bits()), None);
        assert_eq!(f32_bits_to_f16(2.0_f32.powi(-25).to_bits()), None);
    }

    #[test]
    fn the_narrowest_dtype_wins() {
        assert_eq!(from_f32(&[1.0, -0.0, 256.0]).dtype(), Dtype::Bf16);
        assert_eq!(from_f32(&[1.0, 0.333_251_95]).dtype(), Dtype::F16);
        assert_eq!(from_f32(&[1.0e38, 0.333_251_95]).dtype(), Dtype::F32);
        assert_eq!(from_f32(&[f32::NEG_INFINITY, 1.0]).dtype(), Dtype::Bf16);
    }

    #[test]
    fn planes_and_files_give_the_same_row() {
        for values in [vec![1.5_f32, -0.0, 3.0e-39, 7.0], vec![0.333_251_95, 2.0], vec![0.1, 0.2, 0.3]] {
            let row = from_f32(&values);
            let mut planes = Vec::new();
            row.write_planes(&mut planes);
            let mut again = Canonical::default();
            again.set_from_planes(&planes);
            assert_eq!((again.dtype(), again.bytes()), (row.dtype(), row.bytes()));
            let mut wide = Vec::new();
            row.widen_into(&mut wide);
            assert!(wide.iter().map(|a| a.to_bits()).eq(values.iter().map(|b| b.to_bits())), "{values:?}");
        }
    }

    /// Rows whose canonical dtype is each of the three.
    fn of_each_dtype() -> [Vec<f32>; 3] {
        [vec![1.5, -0.0, 256.0], vec![0.333_251_95, -2.0, 7.0], vec![0.1, -3.0e-39, 1.0e38]]
    }

    #[test]
    fn a_score_is_had_alone_and_all_are_had_at_once() {
        for (values, dtype) in of_each_dtype().iter().zip(Dtype::ALL) {
            let row = from_f32(values);
            assert_eq!(row.dtype(), dtype);
            let mut wide = Vec::new();
            row.widen_into(&mut wide);
            assert_eq!(wide, *values);
            for (token, value) in (0..).zip(values) {
                assert_eq!(row.get(token), Some(*value), "{dtype:?}");
            }
            assert_eq!(row.get(3), None, "{dtype:?}");
        }
    }

    #[test]
    fn only_what_is_canonical_is_taken_as_such() {
        for values in of_each_dtype() {
            let row = from_f32(&values);
            let again = Canonical::from_canonical(row.dtype(), row.bytes()).unwrap();
            assert_eq!((again.dtype(), again.bytes()), (row.dtype(), row.bytes()));
            for cut in 1..row.dtype().size() {
                assert!(Canonical::from_canonical(row.dtype(), &row.bytes()[cut..]).is_none(), "{values:?}");
            }
        }
        // 1.5 is a bf16, whatever it is written as.
        assert!(Canonical::from_canonical(Dtype::F32, &1.5_f32.to_le_bytes()).is_none());
        assert!(Canonical::from_canonical(Dtype::F16, &0x3e00_u16.to_le_bytes()).is_none());
        // Zero has the same bytes in both.
        assert!(Canonical::from_canonical(Dtype::F16, &[0; 4]).is_none());
    }

    #[test]
    fn a_row_is_written_in_what_holds_it() {
        // Each row, and which of bf16, f16 and f32 hold it; 1.5 is in all of them.
        let rows =
            [(vec![1.5], [true; 3]), (vec![1.0e38], [false, false, true]), (vec![0.333_251_95], [false, true, true])];
        let bf16_alone = (vec![f32::from_bits(0x7e00_0000)], [true, false, true]);
        for (values, fits) in rows.into_iter().chain([bf16_alone]) {
            let row = from_f32(&values);
            let (mut out, mut scratch) = (Vec::new(), Vec::new());
            for (dtype, fits) in Dtype::ALL.into_iter().zip(fits) {
                assert_eq!((row.fits(dtype), row.write_as(dtype, &mut out)), (fits, fits), "{values:?} as {dtype:?}");
                assert_eq!(row.file_digest(dtype, &mut scratch), fits.then(|| Sha256::of(&out)));
                assert_eq!(out.len(), if fits { dtype.size() } else { 0 });
                if fits {
                    let mut again = Canonical::default();
                    again.set_from_file_row(dtype, &out);
                    assert_eq!(again.bytes(), row.bytes(), "{values:?} as {dtype:?}");
                }
            }
        }
    }

    #[test]
    fn scan_orders_small_and_negative_values_of_every_dtype() {
        for other in [1.0_f32, 0.333_251_95, 0.1] {
            let zeros = from_f32(&[-0.0, 0.0, -other]).scan(&[]);
            assert_eq!((zeros.argmax, zeros.max_count, zeros.second), (0, 2, 0.0), "{other}");
            let negative = from_f32(&[-3.0 * other, -other, -2.0 * other]).scan(&[]);
            assert_eq!((negative.argmax, negative.max, negative.second), (1, -other, -2.0 * other));
        }
        // The two smallest values that are not zero.
        let small = from_f32(&[f32::from_bits(1), f32::from_bits(2), 0.1 - 1.0]).scan(&[]);
        assert_eq!((small.argmax, small.second), (1, f32::from_bits(1)));
    }

    #[test]
    fn scan_finds_maxima_as_numbers() {
        for scale in [1.0_f32, 0.333_251_95, 0.1] {
            let row = from_f32(&[-3.0 * scale, 2.0 * scale, -0.0, 2.0 * scale, 1.0 * scale]);
            let scan = row.scan(&[]);
            assert_eq!((scan.argmax, scan.max_count, scan.nonfinite), (1, 2, 0));
            assert_eq!((scan.max, scan.second), (2.0 * scale, 2.0 * scale));
        }
        let zeros = from_f32(&[-0.0, 0.0, -1.0]).scan(&[]);
        assert_eq!((zeros.argmax, zeros.max_count), (0, 2));
        let mut long: Vec<f32> = (0..10_000_u16).map(|n| f32::from(n % 100)).collect();
        for (at, argmax, count, second) in [(9_999, 9_999, 1, 99.0), (3, 3, 2, 150.0)] {
            long[at] = 150.0;
            let scan = from_f32(&long).scan(&[]);
            assert_eq!((scan.argmax, scan.max, scan.max_count, scan.second), (argmax, 150.0, count, second));
        }
        let single = from_f32(&[-1.0, -7.0, -2.5]).scan(&[]);
        assert_eq!((single.argmax, single.max_count, single.second), (0, 1, -2.5));
    }

    #[test]
    fn scan_sees_what_is_not_finite() {
        let inf = f32::INFINITY;
        for (values, bad) in [
            (vec![1.0, f32::NAN, 2.0], 1),
            (vec![1.0, -f32::NAN, 2.0], 1),
            (vec![inf, -inf, 2.0], 2),
            (vec![0.1, f32::NAN, -inf], 2),
        ] {
            assert_eq!(from_f32(&values).scan(&[]).nonfinite, bad, "{values:?}");
        }
        let row = from_f32(&[1.0, -inf, 2.0, -inf]);
        assert_eq!(row.scan(&[1, 3]).nonfinite, 0);
        assert_eq!(row.scan(&[1]).first_nonfinite, Some(3));
        assert_eq!(row.scan(&[0, 1, 3]).first_nonfinite, Some(0));
        // A mask is looked at also where everything is finite.
        assert_eq!(from_f32(&[1.0, 2.0]).scan(&[1]).first_nonfinite, Some(1));
    }
}
