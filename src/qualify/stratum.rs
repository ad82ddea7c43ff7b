//! Strata: repeatability, comparisons, noise and the strict gate, for each concurrency and phase apart.
//!
//! See `specs/qualification-v1.md`, section 6.

use std::collections::{BTreeMap, BTreeSet};

use super::result::{
    Comparison, CrossStrata, Differing, Flip, Noise, Place, Repeatability, RequestLine, Statistics, Stratum, Verdict,
    real,
};
use crate::binding::{Mode, Role};
use crate::compare::{Compared, Pair, compare};
use crate::digest::{Sha256, Sha256Stream};
use crate::id::{CaptureId, RequestKey, RowKey, TokenId};
use crate::meter::Meter;
use crate::numerics::RowStats;
use crate::row::{Phase, Row, places_at_equal_prefixes, same_shape};
use crate::rule::claim::Inertness;
use crate::spec::Spec;
use crate::store::{Fault, Store};
use crate::verify::Verified;

/// What strata came to.
pub(super) struct Derived {
    pub(super) strata: Vec<Stratum>,
    pub(super) cross_strata: Vec<CrossStrata>,
    pub(super) rows: Vec<Rows>,
}

/// What a candidate beside an oracle gave, row by row.
#[derive(Debug, Clone)]
pub struct Rows {
    /// Their concurrency
    pub concurrency: u32,
    /// The oracle
    pub oracle: CaptureId,
    /// The candidate
    pub candidate: CaptureId,
    /// The common rows in key order
    pub rows: Vec<RowLine>,
}

/// One common row.
#[derive(Debug, Clone, Copy)]
pub struct RowLine {
    /// Which
    pub key: RowKey,
    /// The candidate's phase
    pub phase: Phase,
    /// The statistics
    pub stats: RowStats,
    /// Whether the scores are equal to the bit
    pub bitwise: bool,
    /// What the gate says of it
    pub outcome: Outcome,
}

/// What the strict gate says of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Both chose one token
    Agrees,
    /// They chose these: the oracle, the candidate
    Flip(TokenId, TokenId),
    /// A tie without a witness of what was chosen
    Undecided,
}

/// Two captures beside each other.
struct Beside<'a> {
    a: &'a Verified,
    b: &'a Verified,
    pairs: Vec<Pair>,
    compared: Vec<Compared>,
}

impl<'a> Beside<'a> {
    /// Compares what two captures have at equal prefixes; none where there is nothing.
    fn new(store: &Store, a: &'a Verified, b: &'a Verified, meter: &Meter) -> Result<Option<Self>, Fault> {
        let phase = |capture: &Verified, at: usize| capture.rows().get(at).map(|row| row.phase);
        let pairs: Vec<Pair> = places_at_equal_prefixes(a.rows(), b.rows())
            .filter(|&(at_a, at_b)| phase(a, at_a) == phase(b, at_b))
            .map(|(at_a, at_b)| {
                let (of_a, of_b) = (choice(a, at_a), choice(b, at_b));
                let sought = |here: Option<TokenId>, there: Option<TokenId>| here.filter(|_| there.is_none());
                Pair { a: at_a, b: at_b, sought_in_b: sought(of_a, of_b), sought_in_a: sought(of_b, of_a) }
            })
            .collect();
        if pairs.is_empty() {
            return Ok(None);
        }
        let compared = compare(store, a, b, &pairs, meter)?;
        Ok(Some(Self { a, b, pairs, compared }))
    }

    /// The rows with their places: those of a, those of b, what they say of each other.
    fn rows(&self) -> impl Iterator<Item = (&Row, &Row, &Pair, &Compared)> {
        self.pairs.iter().zip(&self.compared).filter_map(|(pair, compared)| {
            Some((self.a.rows().get(pair.a)?, self.b.rows().get(pair.b)?, pair, compared))
        })
    }

    fn outcome(&self, pair: &Pair, compared: &Compared) -> Outcome {
        let stats = &compared.stats;
        let undecided_where = |meets: bool, oracle: TokenId, candidate: TokenId| {
            if meets { Outcome::Undecided } else { Outcome::Flip(oracle, candidate) }
        };
        let (top_a, top_b) = (TokenId(stats.oracle_argmax), TokenId(stats.candidate_argmax));
        match (choice(self.a, pair.a), choice(self.b, pair.b)) {
            (Some(oracle), Some(candidate)) if oracle == candidate => Outcome::Agrees,
            (Some(oracle), Some(candidate)) => Outcome::Flip(oracle, candidate),
            (Some(oracle), None) => undecided_where(compared.highest_in_b, oracle, top_b),
            (None, Some(candidate)) => undecided_where(compared.highest_in_a, top_a, candidate),
            (None, None) => undecided_where(stats.maxima_meet, top_a, top_b),
        }
    }
}

/// The token that the engine itself chose at a row, where that is known.
fn choice(capture: &Verified, at: usize) -> Option<TokenId> {
    let row = capture.rows().get(at)?;
    match capture.run().mode {
        Mode::Baseline | Mode::CaptureOnly => Some(row.token_id),
        Mode::SelfReplay | Mode::CommonReplay => {
            row.sampled_token_id.or_else(|| capture.top(at).filter(|top| !top.tied).map(|top| top.argmax))
        }
    }
}

fn margin(capture: &Verified, at: usize) -> f64 {
    capture.top(at).map_or(f64::INFINITY, |top| top.margin)
}

/// Captures with scores of one role at one concurrency, in order.
fn of(captures: &[Verified], role: Role, concurrency: u32) -> Vec<&Verified> {
    let here = |capture: &&Verified| {
        let run = capture.run();
        run.role() == Some(role) && run.requested_concurrency() == Some(concurrency) && run.scores.is_some()
    };
    captures.iter().filter(here).collect()
}

/// Derives all strata of a spec.
pub(super) fn derive(
    store: &Store,
    spec: &Spec,
    captures: &[Verified],
    inertness: &[Inertness],
    meter: &Meter,
) -> Result<Derived, Fault> {
    let mut derived = Derived { strata: Vec::new(), cross_strata: Vec::new(), rows: Vec::new() };
    let Some(strata) = &spec.strata else { return Ok(derived) };
    for &concurrency in &strata.concurrency {
        let oracles = of(captures, Role::Oracle, concurrency);
        let candidates = of(captures, Role::Candidate, concurrency);
        let mut comparisons = Vec::new();
        for candidate in &candidates {
            for oracle in &oracles {
                comparisons.extend(Beside::new(store, oracle, candidate, meter)?);
            }
        }
        let mut noise = Vec::new();
        for (n, first) in oracles.iter().enumerate() {
            for second in oracles.iter().skip(n + 1) {
                noise.extend(Beside::new(store, first, second, meter)?);
            }
        }
        let here = || inertness.iter().filter(|found| found.concurrency == concurrency);
        let mut inertness: Vec<&str> = here().map(|found| found.verdict).collect();
        // Scores that the adapter did not take itself are before forcing only if replaying changes nothing.
        let unshown = |capture: &&&Verified| {
            !capture.run().adapter_extraction && here().all(|found| Some(found.role) != capture.run().role())
        };
        inertness.extend(oracles.iter().chain(&candidates).find(unshown).map(|_| PENDING));
        let (phases, new_tokens) = (&strata.phases, spec.corpus.as_ref().map_or(0, |corpus| corpus.new_tokens));
        let level = Level { concurrency, phases, new_tokens, oracles, candidates, comparisons, noise, inertness };
        derived.strata.extend(phases.iter().map(|&phase| level.stratum(phase)));
        derived.rows.extend(level.comparisons.iter().map(|beside| level.lines(beside)));
    }
    if let Some((&first, others)) = strata.concurrency.split_first() {
        let before = choices(&of(captures, Role::Oracle, first));
        derived.cross_strata = others
            .iter()
            .map(|&concurrency| across(first, &before, concurrency, &choices(&of(captures, Role::Oracle, concurrency))))
            .collect();
    }
    Ok(derived)
}

/// All there is at one concurrency.
struct Level<'a> {
    concurrency: u32,
    phases: &'a [Phase],
    /// Tokens that a request generates, unless it stops by itself
    new_tokens: u32,
    oracles: Vec<&'a Verified>,
    candidates: Vec<&'a Verified>,
    comparisons: Vec<Beside<'a>>,
    noise: Vec<Beside<'a>>,
    inertness: Vec<&'a str>,
}

impl Level<'_> {
    fn stratum(&self, phase: Phase) -> Stratum {
        let groups = self.groups(phase);
        let repeatability = repeatability(&groups);
        let compared = |beside| comparison(beside, phase);
        let comparisons: Vec<Comparison> = self.comparisons.iter().filter_map(compared).collect();
        let (uncompared, unrepeated) = self.uncovered(phase, &groups);
        let holds = [
            ("oracle-differs", Verdict::NotAccepted, repeatability.verdict == DIFFERS),
            ("flip", Verdict::NotAccepted, comparisons.iter().any(|comparison| !comparison.flips.is_empty())),
            ("oracle-not-repeated", Verdict::Pending, repeatability.verdict == PENDING || unrepeated > 0),
            ("no-candidate", Verdict::Pending, comparisons.is_empty()),
            ("uncompared-rows", Verdict::Pending, uncompared > 0),
            ("inertness-pending", Verdict::Pending, self.inertness.contains(&PENDING)),
            (
                "tie-undecided",
                Verdict::InsufficientEvidence,
                comparisons.iter().any(|comparison| !comparison.tie_undecided.is_empty()),
            ),
            ("inertness-undecided", Verdict::InsufficientEvidence, self.inertness.contains(&"INSUFFICIENT_EVIDENCE")),
        ];
        let reasons: Vec<_> = holds.into_iter().filter(|(_, _, holds)| *holds).collect();
        Stratum {
            comparisons,
            concurrency: self.concurrency,
            noise: self.noise.iter().filter_map(|beside| noise(beside, phase)).collect(),
            phase: phase.name().to_owned(),
            verdict: reasons.first().map_or(Verdict::Accepted, |(_, verdict, _)| *verdict),
            reasons: reasons.into_iter().map(|(reason, _, _)| reason.to_owned()).collect(),
            repeatability,
            uncompared,
            unrepeated,
        }
    }

    /// The oracle rows of the phase by key and prefix.
    fn groups(&self, phase: Phase) -> Groups<'_> {
        let mut groups = Groups::new();
        for oracle in &self.oracles {
            for (at, row) in oracle.rows().iter().enumerate().filter(|(_, row)| row.phase == phase) {
                groups.entry((row.key, row.prefix_sha256)).or_default().push((oracle, at));
            }
        }
        groups
    }

    /// What of candidates in the phase nothing was said about, but for what comes after a flip of their own that some stratum reports: rows that no oracle
    /// can be compared with, and ends where an oracle goes on. Then, rows that are compared with what only one oracle run did.
    fn uncovered(&self, phase: Phase, groups: &Groups<'_>) -> (u64, u64) {
        let (mut uncompared, mut unrepeated) = (0, 0);
        for candidate in &self.candidates {
            let mut common: BTreeSet<RowKey> = BTreeSet::new();
            let mut flipped: BTreeMap<RequestKey, u32> = BTreeMap::new();
            for beside in self.comparisons.iter().filter(|beside| beside.b.capture() == candidate.capture()) {
                for (_, row, pair, compared) in beside.rows() {
                    common.insert(row.key);
                    let reported = self.phases.contains(&row.phase);
                    if reported && matches!(beside.outcome(pair, compared), Outcome::Flip(..)) {
                        let first = flipped.entry(row.key.request).or_insert(row.key.position);
                        *first = row.key.position.min(*first);
                    }
                }
            }
            let after_flip = |key: RowKey| flipped.get(&key.request).is_some_and(|at| *at < key.position);
            for row in candidate.rows().iter().filter(|row| row.phase == phase) {
                let repeats = || groups.get(&(row.key, row.prefix_sha256)).is_some_and(|rows| rows.len() > 1);
                if !common.contains(&row.key) {
                    uncompared += u64::from(!after_flip(row.key));
                } else if !repeats() {
                    unrepeated += 1;
                }
            }
            for request in &candidate.run().requests {
                let end = RowKey {
                    request: request.key,
                    position: request.output_token_ids.len().try_into().unwrap_or(u32::MAX),
                };
                let goes_on =
                    || groups.contains_key(&(end, prefix(&request.prompt_token_ids, &request.output_token_ids)));
                if end.position < self.new_tokens && !after_flip(end) && goes_on() {
                    uncompared += 1;
                }
            }
        }
        (uncompared, unrepeated)
    }

    fn lines(&self, beside: &Beside<'_>) -> Rows {
        let rows = beside.rows().map(|(_, row, pair, compared)| RowLine {
            key: row.key,
            phase: row.phase,
            stats: compared.stats,
            bitwise: compared.bitwise,
            outcome: beside.outcome(pair, compared),
        });
        Rows {
            concurrency: self.concurrency,
            oracle: beside.a.capture(),
            candidate: beside.b.capture(),
            rows: rows.collect(),
        }
    }
}

const DIFFERS: &str = "differs";
const PENDING: &str = "PENDING";

/// Oracle rows of one phase, by key and prefix: which capture, and where in it.
type Groups<'a> = BTreeMap<(RowKey, Sha256), Vec<(&'a Verified, usize)>>;

/// SHA-256 of what a request has consumed.
fn prefix(prompt: &[TokenId], output: &[TokenId]) -> Sha256 {
    let mut stream = Sha256Stream::default();
    for token in prompt.iter().chain(output) {
        stream.update(&token.0.to_le_bytes());
    }
    stream.digest()
}

/// Whether oracle rows of one key and prefix chose one token.
fn repeatability(groups: &Groups<'_>) -> Repeatability {
    let mut found = Repeatability { bitwise: 0, differing: Vec::new(), groups: 0, single: 0, verdict: String::new() };
    for ((key, _), rows) in groups {
        if rows.len() < 2 {
            found.single += 1;
            continue;
        }
        found.groups += 1;
        let digests: BTreeSet<_> =
            rows.iter().map(|(oracle, at)| oracle.rows().get(*at).and_then(|row| row.score_digest)).collect();
        found.bitwise += u64::from(digests.len() == 1);
        let choices: BTreeSet<TokenId> = rows.iter().filter_map(|(oracle, at)| choice(oracle, *at)).collect();
        if choices.len() > 1 {
            let least = rows.iter().map(|(oracle, at)| margin(oracle, *at)).fold(f64::INFINITY, f64::min);
            let Place { position, prompt_index, sample_index } = (*key).into();
            let choices = choices.into_iter().collect();
            let margin = real(least);
            found.differing.push(Differing { choices, margin, position, prompt_index, sample_index });
        }
    }
    found.verdict = match (found.differing.is_empty(), found.groups) {
        (false, _) => DIFFERS,
        (true, 0) => PENDING,
        (true, _) => "repeats",
    }
    .to_owned();
    found
}

/// Counts of rows beside each other that comparisons and noise share.
struct Counts {
    rows: u64,
    bitwise: u64,
    unmatched: u64,
    stats: Vec<(RowKey, RowStats)>,
}

impl Counts {
    fn of<'r>(rows: impl Iterator<Item = (&'r Row, &'r Row, &'r Pair, &'r Compared)>) -> Self {
        let mut counts = Self { rows: 0, bitwise: 0, unmatched: 0, stats: Vec::new() };
        for (a, b, _, compared) in rows {
            counts.rows += 1;
            counts.bitwise += u64::from(compared.bitwise);
            counts.unmatched += u64::from(!same_shape(a, b));
            counts.stats.push((a.key, compared.stats));
        }
        counts
    }

    /// Over all rows; none where all are equal to the bit.
    fn statistics(&self) -> Option<Statistics> {
        let stats: Vec<RowStats> = self.stats.iter().map(|(_, stats)| *stats).collect();
        Statistics::of(&stats).filter(|_| self.bitwise < self.rows)
    }

    /// The same for each request.
    fn requests(&self) -> Vec<RequestLine> {
        if self.bitwise == self.rows {
            return Vec::new();
        }
        let chunks = self.stats.chunk_by(|(a, _), (b, _)| a.request == b.request);
        let line = |chunk: &[(RowKey, RowStats)]| {
            let key = chunk.first()?.0.request;
            let stats: Vec<RowStats> = chunk.iter().map(|(_, stats)| *stats).collect();
            let (prompt_index, sample_index) = (key.prompt_index, key.sample_index);
            Some(RequestLine { prompt_index, sample_index, statistics: Statistics::of(&stats)? })
        };
        chunks.filter_map(line).collect()
    }
}

/// A candidate beside an oracle, in the phase of the candidate's rows; none where they have none in common there.
fn comparison(beside: &Beside<'_>, phase: Phase) -> Option<Comparison> {
    let rows = || beside.rows().filter(|(_, row, _, _)| row.phase == phase);
    let counts = Counts::of(rows());
    if counts.rows == 0 {
        return None;
    }
    let mut found = Comparison {
        bitwise: counts.bitwise,
        candidate: beside.b.capture(),
        flips: Vec::new(),
        oracle: beside.a.capture(),
        requests: counts.requests(),
        rows: counts.rows,
        statistics: counts.statistics(),
        tie_undecided: Vec::new(),
        ties: 0,
        unmatched: counts.unmatched,
    };
    for (row, _, pair, compared) in rows() {
        found.ties += u64::from(compared.stats.margin <= 0.0);
        let place = Place::from(row.key);
        match beside.outcome(pair, compared) {
            Outcome::Agrees => {}
            Outcome::Undecided => found.tie_undecided.push(place),
            Outcome::Flip(oracle, candidate) => {
                let Place { position, prompt_index, sample_index } = place;
                let margin = real(compared.stats.margin);
                found.flips.push(Flip { candidate, margin, oracle, position, prompt_index, sample_index });
            }
        }
    }
    Some(found)
}

/// An oracle beside an oracle, in the phase of the first one's rows.
fn noise(beside: &Beside<'_>, phase: Phase) -> Option<Noise> {
    let counts = Counts::of(beside.rows().filter(|(row, _, _, _)| row.phase == phase));
    (counts.rows > 0).then(|| Noise {
        a: beside.a.capture(),
        b: beside.b.capture(),
        bitwise: counts.bitwise,
        rows: counts.rows,
        statistics: counts.statistics(),
        unmatched: counts.unmatched,
    })
}

type Choices = BTreeMap<(RowKey, Sha256), BTreeSet<TokenId>>;

/// What oracles chose, by key and prefix.
fn choices(oracles: &[&Verified]) -> Choices {
    let mut all = Choices::new();
    for oracle in oracles {
        for (at, row) in oracle.rows().iter().enumerate() {
            all.entry((row.key, row.prefix_sha256)).or_default().extend(choice(oracle, at));
        }
    }
    all
}

/// The oracle at one concurrency beside the oracle at the first.
fn across(from: u32, before: &Choices, concurrency: u32, after: &Choices) -> CrossStrata {
    let mut found = CrossStrata { common: 0, concurrency, differing: 0, first: Vec::new(), from };
    let mut named: BTreeSet<RequestKey> = BTreeSet::new();
    for (place @ (key, _), choices) in before {
        let Some(others) = after.get(place) else { continue };
        found.common += 1;
        if choices != others {
            found.differing += 1;
            if named.insert(key.request) {
                found.first.push((*key).into());
            }
        }
    }
    found
}
