//! Samples: a few rows of a capture, drawn so that nobody who does not know the seed can evade them.
//!
//! A share and a seed go in, the places of rows come out, the same on every machine, and how likely that many rows are to show a damage. A sample is
//! drawn without replacement: the rows with the smallest digests of capture id, seed and place. Its words are never those of a full
//! pass. See `specs/format-v1.md`, section 15.

use serde::{Serialize, Serializer};

use crate::digest::{Sha256, Sha256Stream};
use crate::id::CaptureId;

/// Domain of the digests that a sample is drawn by.
const DOMAIN: &[u8] = b"witnessmark.sample/v1\0";
/// One, in millionths.
pub const WHOLE: u32 = 1_000_000;

/// Which rows to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Sample {
    /// Share of the rows, in millionths; at least one row is drawn
    pub ppm: u32,
    /// Decides which
    #[serde(serialize_with = "decimal")]
    pub seed: u64,
}

fn decimal<S: Serializer>(seed: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(seed)
}

impl Sample {
    /// How many of `rows` are drawn.
    #[must_use]
    pub fn count(&self, rows: u64) -> u64 {
        let share = (u128::from(rows) * u128::from(self.ppm)).div_ceil(u128::from(WHOLE));
        u64::try_from(share).unwrap_or(u64::MAX).clamp(1, rows.max(1)).min(rows)
    }

    /// The places drawn, ascending.
    #[must_use]
    pub fn draw(&self, capture: CaptureId, rows: usize) -> Vec<usize> {
        let count = usize::try_from(self.count(u64::try_from(rows).unwrap_or(u64::MAX))).unwrap_or(rows);
        let mut start = Sha256Stream::default();
        start.update(DOMAIN);
        start.update(&capture.0.0);
        start.update(&self.seed.to_le_bytes());
        let digest = |place: usize| {
            let mut stream = start.clone();
            stream.update(&u64::try_from(place).unwrap_or(u64::MAX).to_le_bytes());
            stream.digest()
        };
        let mut drawn: Vec<(Sha256, usize)> = (0..rows).map(|place| (digest(place), place)).collect();
        if count < drawn.len() {
            drawn.select_nth_unstable(count);
            drawn.truncate(count);
        }
        let mut places: Vec<usize> = drawn.into_iter().map(|(_, place)| place).collect();
        places.sort_unstable();
        places
    }
}

/// What a sample came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sampled {
    /// How it was drawn
    #[serde(flatten)]
    pub sample: Sample,
    /// Rows drawn
    pub drawn: u64,
    /// Rows of the capture
    pub rows: u64,
}

impl Sampled {
    /// The probability that at least one of `damaged` rows is among those drawn: 1 − C(rows − damaged, drawn) / C(rows, drawn), the
    /// hypergeometric distribution. 1 where so many cannot all be missed, or are not there.
    #[must_use]
    pub fn caught(&self, damaged: u64) -> f64 {
        let missed = (0..damaged.min(self.rows)).map(|n| {
            let left = self.rows.saturating_sub(n);
            ratio(left.saturating_sub(self.drawn), left)
        });
        1.0 - missed.product::<f64>()
    }
}

/// Rows are far fewer than 2^53: both are exact in an f64.
fn ratio(part: u64, whole: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "at most 2^31 − 1 rows")]
    let ratio = part as f64 / whole.max(1) as f64;
    ratio
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_its_size_and_follows_from_its_seed() {
        let capture = CaptureId(Sha256([3; 32]));
        let sample = |ppm, seed| Sample { ppm, seed };
        assert_eq!(sample(50_000, 1).draw(capture, 162).len(), 9);
        assert_eq!(sample(1, 1).draw(capture, 162).len(), 1);
        assert_eq!(sample(WHOLE, 1).draw(capture, 162), (0..162).collect::<Vec<_>>());
        assert!(sample(WHOLE, 1).draw(capture, 0).is_empty());
        let drawn = sample(50_000, 7).draw(capture, 1000);
        assert_eq!(drawn, sample(50_000, 7).draw(capture, 1000));
        assert_ne!(drawn, sample(50_000, 8).draw(capture, 1000));
        assert_ne!(drawn, sample(50_000, 7).draw(CaptureId(Sha256([4; 32])), 1000));
    }

    #[test]
    fn every_row_is_drawn_about_equally_often() {
        let mut times = [0_u32; 20];
        for seed in 0..2000 {
            for place in (Sample { ppm: 250_000, seed }).draw(CaptureId(Sha256([0; 32])), 20) {
                times[place] += 1;
            }
        }
        // 2000 × 5 / 20 = 500 each; five standard deviations are about 97.
        assert!(times.iter().all(|&n| (400..600).contains(&n)), "{times:?}");
    }

    #[test]
    fn probabilities_are_hypergeometric() {
        let sampled = |drawn, rows| Sampled { sample: Sample { ppm: 1, seed: 0 }, drawn, rows };
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(near(sampled(9, 162).caught(1), 9.0 / 162.0));
        // 1 − C(8,3)/C(10,3) = 1 − 56/120
        assert!(near(sampled(3, 10).caught(2), 1.0 - 56.0 / 120.0));
        assert!(near(sampled(3, 10).caught(8), 1.0));
        assert!(near(sampled(10, 10).caught(1), 1.0));
    }
}
