//! Typed ids: what can be cited, and what can be confused with nothing else.
//!
//! `Display` prints the whole id, always. See `specs/format-v1.md`, sections 1, 6 and 9.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::digest::{Blake3, NotADigest, Sha256};

macro_rules! id_type {
    ($name:ident, $digest:ident, $what:literal) => {
        #[doc = $what]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $digest);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = NotADigest;
            fn from_str(text: &str) -> Result<Self, NotADigest> {
                text.parse().map(Self)
            }
        }
    };
}

id_type!(ObjectId, Blake3, "The address of an object in a store: BLAKE3 of its bytes.");
id_type!(
    CaptureId,
    Sha256,
    "The name of a capture: SHA-256 of its capture document. The same on every machine, for ever."
);

/// A token id of a vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenId(pub u32);

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Unix time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub u64);

/// A request's place in the workload: the part of a row key that all its rows share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct RequestKey {
    /// Which prompt
    pub prompt_index: u32,
    /// Which sample of that prompt
    pub sample_index: u32,
}

impl fmt::Display for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "prompt {}", self.prompt_index)?;
        if self.sample_index != 0 {
            write!(f, " sample {}", self.sample_index)?;
        }
        Ok(())
    }
}

/// The key of a row. Its order is the key order of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct RowKey {
    /// Which request
    #[serde(flatten)]
    pub request: RequestKey,
    /// Which generated token, from 0
    pub position: u32,
}

impl RowKey {
    /// The twelve bytes that stand for the key in records and leaves.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        let parts = [self.request.prompt_index, self.request.sample_index, self.position];
        for (to, part) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(parts) {
            *to = part.to_le_bytes();
        }
        bytes
    }
}

impl fmt::Display for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} position {}", self.request, self.position)
    }
}

/// A length as documents count it.
#[must_use]
pub fn long(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}
