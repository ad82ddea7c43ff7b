//! Stats: the statistics between two captures, as a description.
//!
//! Two captures that were verified in full go in, their statistics over common rows come out, phase by phase, the first capture as the oracle.
//! It judges nothing: shapes may differ, and that is said. See `specs/numerics-v1.md`.

use serde::Serialize;

use crate::compare::{Compared, Pair, compare};
use crate::id::{CaptureId, RowKey, TokenId};
use crate::meter::Meter;
use crate::numerics::RowStats;
use crate::qualify::result::Statistics;
use crate::qualify::{Outcome, RowLine};
use crate::row::{Phase, Row, places_at_equal_prefixes, same_shape};
use crate::store::{Fault, Store};
use crate::verify::Verified;

/// Statistics between two captures.
#[derive(Debug, Clone, Serialize)]
pub struct Stats {
    /// The first capture and its run id
    pub a: (CaptureId, String),
    /// The second
    pub b: (CaptureId, String),
    /// Rows of the second that have no row of equal key and prefix in the first, or no scores
    pub not_common: u64,
    /// What there is in common, by phase of the second capture's rows, and in all
    pub phases: Vec<PhaseStats>,
    /// The common rows in key order; a flip is another highest-scoring token. Too many to serialize
    #[serde(skip)]
    pub rows: Vec<RowLine>,
}

/// The common rows of one phase.
#[derive(Debug, Clone, Serialize)]
pub struct PhaseStats {
    /// `prefill`, `decode`, `recomputed` or `all`
    pub phase: &'static str,
    /// Rows equal to the bit
    pub bitwise: u64,
    /// Rows computed in other company, or that do not say
    pub unmatched: u64,
    /// Rows whose highest-scoring token differs, in key order
    pub flips: Vec<RowKey>,
    /// The statistics
    pub statistics: Statistics,
}

/// Compares what two captures have in common.
///
/// # Errors
/// When the store cannot be read.
///
/// # Refusals
/// As [`compare`].
pub fn stats(store: &Store, a: &Verified, b: &Verified, meter: &Meter) -> Result<Stats, Fault> {
    let scored = |side: &Verified, at: usize| side.rows().get(at).is_some_and(|row| row.score_digest.is_some());
    let pairs: Vec<Pair> = places_at_equal_prefixes(a.rows(), b.rows())
        .filter(|&(at_a, at_b)| scored(a, at_a) && scored(b, at_b))
        .map(|(a, b)| Pair { a, b, sought_in_a: None, sought_in_b: None })
        .collect();
    let compared = compare(store, a, b, &pairs, meter)?;
    let side = |capture: &Verified| (capture.capture(), capture.run().run_id.clone());
    let not_common = u64::try_from(b.rows().len() - pairs.len()).unwrap_or(u64::MAX);
    let mut found = Stats { a: side(a), b: side(b), not_common, phases: Vec::new(), rows: Vec::new() };
    let wanted = Phase::ALL.into_iter().map(Some).chain([None]);
    for phase in wanted {
        let (mut bitwise, mut unmatched, mut flips) = (0, 0, Vec::new());
        let mut stats: Vec<RowStats> = Vec::new();
        for (pair, compared) in pairs.iter().zip(&compared) {
            let (Some(row_a), Some(row_b)) = (a.rows().get(pair.a), b.rows().get(pair.b)) else { continue };
            if phase.is_some_and(|phase| row_b.phase != phase) {
                continue;
            }
            bitwise += u64::from(compared.bitwise);
            unmatched += u64::from(!same_shape(row_a, row_b));
            if !compared.stats.agrees() {
                flips.push(row_b.key);
            }
            stats.push(compared.stats);
        }
        if let Some(statistics) = Statistics::of(&stats) {
            let phase = phase.map_or("all", |phase| phase.name());
            found.phases.push(PhaseStats { phase, bitwise, unmatched, flips, statistics });
        }
    }
    found.rows = pairs
        .iter()
        .zip(&compared)
        .filter_map(|(pair, compared)| Some(line(b.rows().get(pair.b)?, compared)))
        .collect();
    Ok(found)
}

fn line(row: &Row, compared: &Compared) -> RowLine {
    let stats = compared.stats;
    let flip = Outcome::Flip(TokenId(stats.oracle_argmax), TokenId(stats.candidate_argmax));
    let outcome = if stats.agrees() { Outcome::Agrees } else { flip };
    RowLine { key: row.key, phase: row.phase, stats, bitwise: compared.bitwise, outcome }
}
