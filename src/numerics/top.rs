//! The top of a row: its highest scores and their token ids. `specs/numerics-v1.md`, section 3.

/// How many tokens the deepest top-k has.
pub(super) const DEPTH: usize = 10;

/// Values looked at together: few enough that a block with a new top score is soon searched.
const BLOCK: usize = 256;

/// The highest unmasked scores of a row, highest first, equal ones by token id; at most [`DEPTH`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Top {
    len: usize,
    scores: [f32; DEPTH],
    tokens: [u32; DEPTH],
}

impl Top {
    /// The top of `row`, `[vocab]`; none where a score is NaN or +Inf.
    #[inline(always)]
    pub(super) fn of(row: &[f32]) -> Option<Self> {
        let mut top = Self { len: 0, scores: [f32::NEG_INFINITY; DEPTH], tokens: [0; DEPTH] };
        let mut good = true;
        for (first, block) in (0..).step_by(BLOCK).zip(row.chunks(BLOCK)) {
            let (high, all_good) = highest(block);
            good &= all_good;
            if high > top.scores[DEPTH - 1] {
                for (token, &score) in (first..).zip(block) {
                    top.offer(score, token);
                }
            }
        }
        good.then_some(top)
    }

    /// Takes a score that is higher than the lowest here. Token ids come in rising order, so an equal one goes behind.
    #[inline(always)]
    fn offer(&mut self, score: f32, token: u32) {
        if score > self.scores[DEPTH - 1] {
            self.insert(score, token);
        }
    }

    #[cold]
    fn insert(&mut self, score: f32, token: u32) {
        let place = self.scores.partition_point(|&other| other >= score);
        self.scores[place..].rotate_right(1);
        self.tokens[place..].rotate_right(1);
        (self.scores[place], self.tokens[place]) = (score, token);
        self.len = DEPTH.min(self.len + 1);
    }

    /// The token ids, highest score first.
    pub(super) fn tokens(&self) -> &[u32] {
        &self.tokens[..self.len]
    }

    /// The highest score, +0 for −0; none where all are masked.
    pub(super) fn max(&self) -> Option<f64> {
        self.scores[..self.len].first().map(|&score| f64::from(score) + 0.0)
    }

    /// The highest score less the second: 0 at a tie, +Inf where only one token is unmasked.
    pub(super) fn margin(&self) -> f64 {
        (f64::from(self.scores[0]) + 0.0) - f64::from(self.scores[1])
    }

    /// How many tokens the first `k` of both have in common.
    pub(super) fn overlap(&self, other: &Self, k: usize) -> u32 {
        let theirs = &other.tokens()[..k.min(other.len)];
        self.tokens().iter().take(k).filter(|token| theirs.contains(token)).map(|_| 1).sum()
    }
}

/// The highest score of a block, and whether all are below +Inf.
#[inline(always)]
fn highest(block: &[f32]) -> (f32, bool) {
    let mut high = [f32::NEG_INFINITY; 16];
    let mut bad = [0_u32; 16];
    let (chunks, tail) = block.as_chunks::<16>();
    let mut take = |j: usize, score: f32| {
        high[j] = if score > high[j] { score } else { high[j] };
        bad[j] |= u32::from(score.is_nan()) | u32::from(score >= f32::INFINITY);
    };
    for chunk in chunks {
        for (j, &score) in chunk.iter().enumerate() {
            take(j, score);
        }
    }
    for (j, &score) in tail.iter().enumerate() {
        take(j, score);
    }
    (high.into_iter().fold(f32::NEG_INFINITY, f32::max), bad == [0; 16])
}
