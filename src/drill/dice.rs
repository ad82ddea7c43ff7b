//! Dice: choices that look random and are the same for the same seed and corruption, on every machine.
//!
//! Each corruption has dice of its own, so `--only` chooses what a whole drill chooses.

use crate::digest::Blake3;

/// SplitMix64 (Steele, Lea and Flood 2014), seeded by a digest.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64, name: &str) -> Self {
        let digest = Blake3::of(format!("witnessmark drill\0{seed}\0{name}").as_bytes());
        Self(u64::from_le_bytes(digest.0.first_chunk().copied().unwrap_or_default()))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// A number below `n`; 0 where `n` is 0.
    pub(super) fn below(&mut self, n: usize) -> usize {
        let n = u64::try_from(n).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % n).unwrap_or(0)
    }

    /// One of `items`.
    pub(super) fn pick<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        items.get(self.below(items.len())).copied()
    }
}
