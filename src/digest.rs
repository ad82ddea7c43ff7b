//! Digests: bytes in, 32 bytes out.
//!
//! Two functions, two types, never mixed up: BLAKE3 addresses objects and binds scores (fast), SHA-256 names
//! captures, trees, models and tokenizers (what the field cites). Both print and parse as 64 lower-case
//! hexadecimal digits and nothing else. No I/O. See `specs/format-v1.md`, section 1.

use std::fmt;
use std::str::FromStr;

use blake3::hazmat::{ChainingValue, HasherExt as _, Mode, merge_subtrees_non_root, merge_subtrees_root};
use rayon::prelude::*;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Digest as _;

/// A text that is not 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a digest of 64 lower-case hexadecimal digits")]
pub struct NotADigest;

/// Writes `bytes` as lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for &byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from(DIGITS[usize::from(nibble)]));
        }
    }
    text
}

/// Reads lower-case hexadecimal digits, two a byte; none for anything else.
#[must_use]
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit =
        |c: u8| char::from(c).to_digit(16).filter(|_| !c.is_ascii_uppercase()).and_then(|d| u8::try_from(d).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect();
    if rest.is_empty() { bytes } else { None }
}

/// Reads exactly 64 lower-case hexadecimal digits.
///
/// # Errors
/// [`NotADigest`] for anything else, upper-case digits included: one digest has one spelling.
fn parse_hex32(text: &str) -> Result<[u8; 32], NotADigest> {
    const NOT: u8 = u8::MAX;
    let digits: &[u8; 64] = text.as_bytes().try_into().map_err(|_| NotADigest)?;
    // Without a branch a digit, so that compilers make whole vectors of it.
    let mut nibbles = [0; 64];
    for (nibble, &c) in nibbles.iter_mut().zip(digits) {
        let (digit, letter) = (c.wrapping_sub(b'0'), c.wrapping_sub(b'a'));
        let letter = if letter < 6 { letter + 10 } else { NOT };
        *nibble = if digit < 10 { digit } else { letter };
    }
    if nibbles.iter().fold(0, |all, nibble| all | nibble) == NOT {
        return Err(NotADigest);
    }
    let mut out = [0; 32];
    for (byte, &[high, low]) in out.iter_mut().zip(nibbles.as_chunks::<2>().0) {
        *byte = high << 4 | low;
    }
    Ok(out)
}

macro_rules! digest_type {
    ($name:ident, $what:literal) => {
        #[doc = $what]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; 32]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&hex(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = NotADigest;
            fn from_str(text: &str) -> Result<Self, NotADigest> {
                parse_hex32(text).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(D::Error::custom)
            }
        }
    };
}

digest_type!(Sha256, "A SHA-256 digest (FIPS 180-4).");
digest_type!(Blake3, "A BLAKE3 digest of 32 bytes.");

impl Sha256 {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }
}

impl Blake3 {
    /// The plain BLAKE3 digest of `bytes`, as `b3sum` prints it.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The digest of `bytes` bytes that many threads read: `read` fills its buffer with those from an offset on.
    ///
    /// # Errors
    /// The error of `read`, one of them where there are several.
    pub fn of_parts<E: Send>(bytes: u64, read: impl Fn(u64, &mut [u8]) -> Result<(), E> + Sync) -> Result<Self, E> {
        let first = usize::try_from(bytes).unwrap_or(usize::MAX).min(SUBTREE);
        if long(first) == bytes {
            let mut buffer = vec![0; first];
            return read(0, &mut buffer).map(|()| Self::of(&buffer));
        }
        let buffer = || vec![0; SUBTREE];
        let subtree = |buffer: &mut Vec<u8>, n: u64| {
            let at = n * long(SUBTREE);
            let len = usize::try_from(bytes - at).unwrap_or(usize::MAX).min(SUBTREE);
            let part = buffer.get_mut(..len).unwrap_or_default();
            read(at, part)?;
            Ok(blake3::Hasher::new().set_input_offset(at).update(part).finalize_non_root())
        };
        let count = bytes.div_ceil(long(SUBTREE));
        let subtrees: Vec<ChainingValue> =
            (0..count).into_par_iter().map_init(buffer, subtree).collect::<Result<_, E>>()?;
        let (left, right) = halves(&subtrees);
        Ok(Self(*merge_subtrees_root(&merge(left), &merge(right), Mode::Hash).as_bytes()))
    }
}

/// The bytes of one leaf of [`Blake3::of_parts`]: a whole subtree of BLAKE3's tree, and small enough to stay in a core's cache.
const SUBTREE: usize = 256 << 10;

/// BLAKE3's tree puts the largest power of two of subtrees, but not all, on the left. There are at least two.
fn halves(subtrees: &[ChainingValue]) -> (&[ChainingValue], &[ChainingValue]) {
    subtrees.split_at(subtrees.len().next_power_of_two() / 2)
}

fn merge(subtrees: &[ChainingValue]) -> ChainingValue {
    match subtrees {
        [one] => *one,
        [] => ChainingValue::default(),
        _ => {
            let (left, right) = halves(subtrees);
            merge_subtrees_non_root(&merge(left), &merge(right), Mode::Hash)
        }
    }
}

fn long(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// SHA-256 over parts that arrive one after the other. Cloning forks the state, which makes the prefix
/// digests of one request linear in its length.
#[derive(Clone, Default)]
pub struct Sha256Stream(sha2::Sha256);

impl Sha256Stream {
    /// Takes the next part.
    pub fn update(&mut self, part: &[u8]) {
        self.0.update(part);
    }

    /// The digest of all parts so far.
    #[must_use]
    pub fn digest(&self) -> Sha256 {
        Sha256(self.0.clone().finalize().into())
    }
}

/// BLAKE3 over parts that arrive one after the other.
#[derive(Clone, Default)]
pub struct Blake3Stream(blake3::Hasher);

impl Blake3Stream {
    /// A stream in key derivation mode: digests made under one context mean nothing under another.
    #[must_use]
    pub fn derive_key(context: &str) -> Self {
        Self(blake3::Hasher::new_derive_key(context))
    }

    /// Takes the next part.
    pub fn update(&mut self, part: &[u8]) {
        self.0.update(part);
    }

    /// Takes the next part, with the help of threads that have nothing else to do.
    pub fn update_wide(&mut self, part: &[u8]) {
        // Where sharing the work begins to pay, as the crate documents it.
        const WIDE: usize = 128 << 10;
        if part.len() < WIDE {
            self.0.update(part);
        } else {
            self.0.update_rayon(part);
        }
    }

    /// The digest of all parts so far.
    #[must_use]
    pub fn digest(&self) -> Blake3 {
        Blake3(*self.0.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_one_spelling() {
        let digest = Sha256(std::array::from_fn(|n| u8::try_from(n * 8 + 7).unwrap()));
        let text = digest.to_string();
        assert_eq!(text.parse(), Ok(digest));
        for at in 0..64 {
            for c in (0..=0x7f_u8).map(char::from) {
                let mut other = text.clone();
                other.replace_range(at..=at, &c.to_string());
                let found = other.parse::<Sha256>();
                assert_eq!(found.map(|found| found.to_string()).ok(), unhex(&other).map(|_| other));
            }
        }
        for text in [&text[1..], &format!("{text}0"), &format!("{}é", &text[2..]), ""] {
            assert_eq!(text.parse::<Sha256>(), Err(NotADigest));
        }
    }

    #[test]
    fn parts_have_the_digest_of_the_whole() {
        let bytes: Vec<u8> = (0..5 * SUBTREE + 1).map(|n| u8::try_from(n % 251).unwrap()).collect();
        let borders = (0..=5).flat_map(|n| [(n * SUBTREE).saturating_sub(1), n * SUBTREE, n * SUBTREE + 1]);
        for len in borders {
            let whole = &bytes[..len];
            let read = |at: u64, part: &mut [u8]| {
                let at = usize::try_from(at).unwrap();
                part.copy_from_slice(whole.get(at..at + part.len()).ok_or(at)?);
                Ok::<(), usize>(())
            };
            assert_eq!(Blake3::of_parts(long(len), read), Ok(Blake3::of(whole)), "{len}");
            assert!(Blake3::of_parts(long(len) + 1, read).is_err());
        }
    }

    #[test]
    fn a_wide_update_is_an_update() {
        let bytes: Vec<u8> = (0..1_000_000).map(|n: u32| u8::try_from(n % 249).unwrap()).collect();
        let mut stream = Blake3Stream::default();
        for cut in [0, 7, 300_000, 999_000, 1_000_000].windows(2) {
            stream.update_wide(&bytes[cut[0]..cut[1]]);
        }
        assert_eq!(stream.digest(), Blake3::of(&bytes));
    }
}
