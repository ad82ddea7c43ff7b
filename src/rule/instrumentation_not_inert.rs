//! `instrumentation-not-inert`: looking at the engine did not change what it does.

use std::collections::BTreeMap;

use super::claim::{ClaimBench, Claimed};
use super::{About, Applies};
use crate::binding::{Mode, Request, Role};
use crate::id::RequestKey;
use crate::numerics::interval;
use crate::refusal::{Rule, Subject};
use crate::row::{at_equal_prefixes, same_shape};
use crate::spec::{Runs, Spec};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Where the engine repeats without instrumentation, capturing scores and forcing its own tokens change nothing. Otherwise the evidence is of the instrument.",
    remedy: "Find what the adapter changes (a synchronisation, a copy, another kernel, another batch); capture again.",
    applies: Applies::Qualification,
};

/// Tokens that were compared, and how many differed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mismatches {
    /// Positions
    pub compared: u64,
    /// Of these, positions with other tokens, or with a token on one side only
    pub mismatched: u64,
}

impl Mismatches {
    fn count(&mut self, a: &Claimed<'_>, b: &Claimed<'_>) {
        let others = b.run.requests_by_key();
        for (key, request) in a.run.requests_by_key() {
            let Some(other) = others.get(&key) else { continue };
            let (a, b) = (&request.output_token_ids, &other.output_token_ids);
            for position in 0..a.len().max(b.len()) {
                self.compared += 1;
                self.mismatched += u64::from(a.get(position) != b.get(position));
            }
        }
    }

    /// The exact 95 % interval of the share, in parts per million; none where nothing was compared.
    #[must_use]
    pub fn interval(&self) -> Option<(u32, u32)> {
        interval(self.mismatched, self.compared)
    }
}

/// Rows of self-replays beside those of the runs that they replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Replays {
    /// Rows of equal key and prefix
    pub rows: u64,
    /// Of these, rows that were computed in other company, or do not say
    pub unmatched: u64,
    /// Of the matched ones, rows with other scores
    pub differing: u64,
}

/// What capturing and forcing did to one engine at one concurrency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inertness {
    /// Whose engine
    pub role: Role,
    /// At which concurrency
    pub concurrency: u32,
    /// Baselines beside each other
    pub baseline: Mismatches,
    /// Captures beside baselines
    pub captured: Mismatches,
    /// Self-replays beside what they replay
    pub replays: Replays,
    /// `inert`, `PENDING`, `INSUFFICIENT_EVIDENCE` or, which is refused, `not inert`
    pub verdict: &'static str,
}

/// Derives what instrumentation did, wherever the spec asks for baselines.
#[must_use]
pub fn inertness(spec: &Spec, captures: &[Claimed<'_>]) -> Vec<Inertness> {
    let mut all = Vec::new();
    for role in Role::ALL {
        let asked = spec.runs.iter().filter(|runs| runs.role == role && runs.mode == Mode::Baseline);
        let mut concurrencies: Vec<u32> = asked.flat_map(|runs| runs.concurrency.iter().copied()).collect();
        concurrencies.sort_unstable();
        concurrencies.dedup();
        all.extend(concurrencies.into_iter().map(|concurrency| derive(spec, captures, role, concurrency)));
    }
    all
}

fn derive(spec: &Spec, captures: &[Claimed<'_>], role: Role, concurrency: u32) -> Inertness {
    let here: Vec<&Claimed<'_>> =
        captures.iter().filter(|c| c.role == Some(role) && c.concurrency == Some(concurrency)).collect();
    let of = |mode: Mode| here.iter().copied().filter(move |claimed| claimed.run.mode == mode);
    let baselines: Vec<&Claimed<'_>> = of(Mode::Baseline).collect();
    let mut found = Inertness {
        role,
        concurrency,
        baseline: Mismatches::default(),
        captured: Mismatches::default(),
        replays: Replays::default(),
        verdict: "PENDING",
    };
    for (n, first) in baselines.iter().enumerate() {
        for second in baselines.iter().skip(n + 1) {
            found.baseline.count(first, second);
        }
        for captured in of(Mode::CaptureOnly) {
            found.captured.count(first, captured);
        }
    }
    for replay in of(Mode::SelfReplay) {
        count_replay(replay, &here, &mut found.replays);
    }
    let asked =
        |runs: &Runs| runs.role == role && runs.mode == Mode::SelfReplay && runs.concurrency.contains(&concurrency);
    let replayed = found.replays.rows > found.replays.unmatched || !spec.runs.iter().any(asked);
    if found.baseline.compared > 0 && found.captured.compared > 0 && replayed {
        found.verdict = verdict(&found, spec.comparison.inertness_margin);
    }
    found
}

fn count_replay(replay: &Claimed<'_>, sources: &[&Claimed<'_>], counts: &mut Replays) {
    let requests: BTreeMap<RequestKey, &Request> = replay.run.requests_by_key();
    for source in sources.iter().filter(|source| source.run.scores.is_some()) {
        let replays = |key: &RequestKey| {
            let continuation = requests.get(key).and_then(|request| request.continuation.as_ref());
            let named = continuation.and_then(|continuation| continuation.source.as_ref());
            named.is_some_and(|(run_id, _)| *run_id == source.run.run_id)
        };
        for (a, b) in at_equal_prefixes(source.rows, replay.rows).filter(|(a, _)| replays(&a.key.request)) {
            counts.rows += 1;
            if !same_shape(a, b) {
                counts.unmatched += 1;
            } else if a.score_digest != b.score_digest {
                counts.differing += 1;
            }
        }
    }
}

fn verdict(found: &Inertness, margin: Option<f64>) -> &'static str {
    if found.baseline.mismatched == 0 {
        let changed = found.captured.mismatched > 0 || found.replays.differing > 0;
        return if changed { "not inert" } else { "inert" };
    }
    let within = margin
        .zip(found.captured.interval())
        .is_some_and(|(margin, (_, upper))| f64::from(upper) / 1e6 <= share(&found.baseline) + margin);
    if within { "inert" } else { "INSUFFICIENT_EVIDENCE" }
}

#[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^53")]
fn share(counts: &Mismatches) -> f64 {
    counts.mismatched as f64 / counts.compared as f64
}

pub(super) fn check(bench: &mut ClaimBench<'_>) {
    for found in inertness(bench.spec, bench.captures).into_iter().filter(|found| found.verdict == "not inert") {
        let subject = Subject::File(format!("{} at c{}", found.role.name(), found.concurrency));
        let expected = format!("no change: {} tokens of baselines repeat", found.baseline.compared);
        let text = format!(
            "{} of {} tokens changed by capturing, {} of {} rows by replaying",
            found.captured.mismatched,
            found.captured.compared,
            found.replays.differing,
            found.replays.rows - found.replays.unmatched
        );
        bench.refuse(Rule::InstrumentationNotInert, subject, expected, text);
    }
}
