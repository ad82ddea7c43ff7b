//! Digests: bytes in, 32 bytes out.
//!
//! Two functions, two types, never mixed up: BLAKE3 addresses objects and binds scores (fast), SHA-256 names
//! captures, trees, models and tokenizers (what the field cites). Both print and parse as 64 lower-case
//! hexadecimal digits and nothing else. No I/O. See `specs/format-v1.md`, section 1.

use std::fmt;
use std::str::FromStr;

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
    let digit = |c: u8| match c {
        b'0'..=b'9' => Ok(c - b'0'),
        b'a'..=b'f' => Ok(c - b'a' + 10),
        _ => Err(NotADigest),
    };
    let mut out = [0; 32];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != out.len() || !rest.is_empty() {
        return Err(NotADigest);
    }
    for (byte, &[high, low]) in out.iter_mut().zip(pairs) {
        *byte = digit(high)? << 4 | digit(low)?;
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

    /// The digest of all parts so far.
    #[must_use]
    pub fn digest(&self) -> Blake3 {
        Blake3(*self.0.finalize().as_bytes())
    }
}
