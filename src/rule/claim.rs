//! The claim: what several captures must satisfy together before a result is derived from them.
//!
//! [`judge_claim`] gets a spec and captures that each passed alone, and says everything that is wrong with them as evidence of one claim;
//! [`judge_calibration`] does so for a calibration. They do no I/O and never see a score: equal scores show in equal digests. See
//! `specs/qualification-v1.md`, sections 4 and 9.

use super::{
    calibration_contaminated, coverage_overclaimed, forced_output_claimed, gate_not_ratified, heldout_opened_early,
    instrumentation_not_inert, mode_missing, prefix_mismatch, run_reused, score_reused, shape_mismatch,
    spec_not_predeclared, tokenizer_mismatch, vocab_mismatch,
};
use crate::binding::{Role, Run};
use crate::digest::Sha256;
use crate::id::CaptureId;
use crate::refusal::{Findings, Rule, Subject};
use crate::row::Row;
use crate::spec::Spec;

pub use super::instrumentation_not_inert::{Inertness, Mismatches, Replays, inertness};

/// When a capture's spec was put into the log, as far as the logs that name the capture show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declared {
    /// Before the capture
    Before,
    /// After it
    After,
    /// No log that names the capture names the spec
    Never,
}

/// A capture that a claim rests on.
#[derive(Debug, Clone, Copy)]
pub struct Claimed<'a> {
    /// Its id
    pub capture: CaptureId,
    /// Merkle tree hash of its rows
    pub row_root: Sha256,
    /// run.json
    pub run: &'a Run,
    /// The rows in key order
    pub rows: &'a [Row],
    /// Whose it is; none where run.json does not say
    pub role: Option<Role>,
    /// The requested concurrency; none where run.json does not say
    pub concurrency: Option<u32>,
    /// When the spec was declared
    pub declared: Declared,
}

impl Claimed<'_> {
    /// Something in this capture.
    pub(super) fn subject(&self, subject: Subject) -> Subject {
        subject.of_run(&self.run.run_id)
    }

    /// What is known of it without its rows.
    pub(super) fn known(&self) -> Known<'_> {
        Known { run: self.run, row_root: self.row_root }
    }
}

/// A capture that some log names, as far as one needs it to tell runs apart.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// run.json
    pub run: &'a Run,
    /// Merkle tree hash of its rows
    pub row_root: Sha256,
}

/// What shows that two captures are of one run; nothing where nothing does.
#[must_use]
pub fn same_run(a: &Known<'_>, b: &Known<'_>) -> Option<&'static str> {
    if a.run.run_nonce.is_some() && a.run.run_nonce == b.run.run_nonce {
        return Some("run_nonce");
    }
    let scored = a.run.scores.is_some() && b.run.scores.is_some();
    (scored && a.row_root == b.row_root).then_some("rows, witnesses and all,")
}

/// A claim while it is being judged.
pub(super) struct ClaimBench<'a> {
    pub(super) spec: &'a Spec,
    pub(super) captures: &'a [Claimed<'a>],
    /// What else the logs name; only where a calibration is judged
    pub(super) known: &'a [Known<'a>],
    pub(super) findings: Findings,
}

impl<'a> ClaimBench<'a> {
    pub(super) fn refuse(
        &mut self,
        rule: Rule,
        subject: Subject,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        self.findings.refuse(rule, subject, expected, found);
    }

    /// All captures, with those first that the others are held against.
    pub(super) fn oracles_first(&self) -> impl Iterator<Item = &'a Claimed<'a>> + use<'a> {
        self.captures.iter().rev()
    }

    /// The captures of a role at a concurrency.
    pub(super) fn of(&self, role: Role, concurrency: u32) -> Vec<&'a Claimed<'a>> {
        let captures = self.captures.iter();
        captures.filter(|c| c.role == Some(role) && c.concurrency == Some(concurrency)).collect()
    }

    /// Every candidate with every oracle of its concurrency.
    pub(super) fn pairs(&self) -> Vec<(&'a Claimed<'a>, &'a Claimed<'a>)> {
        let candidates = self.captures.iter().filter(|c| c.role == Some(Role::Candidate));
        let mut pairs = Vec::new();
        for candidate in candidates {
            let Some(concurrency) = candidate.concurrency else { continue };
            pairs.extend(self.of(Role::Oracle, concurrency).into_iter().map(|oracle| (candidate, oracle)));
        }
        pairs
    }
}

/// A question, and the call site that asks it.
struct ClaimCheck {
    rule: Rule,
    ask: fn(&mut ClaimBench<'_>),
}

/// What [`judge_claim`] asks, in this order. `coverage_overclaimed` also names corpus-mismatch.
const CLAIM_CHECKS: [ClaimCheck; 12] = [
    ClaimCheck { rule: Rule::SpecNotPredeclared, ask: spec_not_predeclared::check },
    ClaimCheck { rule: Rule::ModeMissing, ask: mode_missing::check },
    ClaimCheck { rule: Rule::RunReused, ask: run_reused::check },
    ClaimCheck { rule: Rule::GateNotRatified, ask: gate_not_ratified::check },
    ClaimCheck { rule: Rule::CoverageOverclaimed, ask: coverage_overclaimed::check },
    ClaimCheck { rule: Rule::ForcedOutputClaimed, ask: forced_output_claimed::check },
    ClaimCheck { rule: Rule::PrefixMismatch, ask: prefix_mismatch::check_claim },
    ClaimCheck { rule: Rule::VocabMismatch, ask: vocab_mismatch::check_claim },
    ClaimCheck { rule: Rule::TokenizerMismatch, ask: tokenizer_mismatch::check_claim },
    ClaimCheck { rule: Rule::ShapeMismatch, ask: shape_mismatch::check },
    ClaimCheck { rule: Rule::ScoreReused, ask: score_reused::check },
    ClaimCheck { rule: Rule::InstrumentationNotInert, ask: instrumentation_not_inert::check },
];

/// What [`judge_calibration`] asks, in this order.
const CALIBRATION_CHECKS: [ClaimCheck; 11] = [
    ClaimCheck { rule: Rule::CalibrationContaminated, ask: calibration_contaminated::check },
    ClaimCheck { rule: Rule::HeldoutOpenedEarly, ask: heldout_opened_early::check },
    ClaimCheck { rule: Rule::ModeMissing, ask: mode_missing::check_calibration },
    ClaimCheck { rule: Rule::RunReused, ask: run_reused::check },
    ClaimCheck { rule: Rule::CoverageOverclaimed, ask: coverage_overclaimed::check },
    ClaimCheck { rule: Rule::ForcedOutputClaimed, ask: forced_output_claimed::check },
    ClaimCheck { rule: Rule::PrefixMismatch, ask: prefix_mismatch::check_claim },
    ClaimCheck { rule: Rule::VocabMismatch, ask: vocab_mismatch::check_claim },
    ClaimCheck { rule: Rule::TokenizerMismatch, ask: tokenizer_mismatch::check_claim },
    ClaimCheck { rule: Rule::ShapeMismatch, ask: shape_mismatch::check_calibration },
    ClaimCheck { rule: Rule::InstrumentationNotInert, ask: instrumentation_not_inert::check },
];

/// Asks every rule about captures that are to carry one claim.
#[must_use]
pub fn judge_claim(spec: &Spec, captures: &[Claimed<'_>]) -> Findings {
    judge_claim_some(spec, captures, &|_| true)
}

/// [`judge_claim`] with some call sites only, so that a test can see that each matters.
#[doc(hidden)]
#[must_use]
pub fn judge_claim_some(spec: &Spec, captures: &[Claimed<'_>], keep: &dyn Fn(Rule) -> bool) -> Findings {
    judge_some(&CLAIM_CHECKS, ClaimBench { spec, captures, known: &[], findings: Findings::default() }, keep)
}

/// Asks every rule about captures that a calibration is to rest on. `known` is all that the logs name.
#[must_use]
pub fn judge_calibration(spec: &Spec, captures: &[Claimed<'_>], known: &[Known<'_>]) -> Findings {
    judge_calibration_some(spec, captures, known, &|_| true)
}

/// [`judge_calibration`] with some call sites only, so that a test can see that each matters.
#[doc(hidden)]
#[must_use]
pub fn judge_calibration_some(
    spec: &Spec,
    captures: &[Claimed<'_>],
    known: &[Known<'_>],
    keep: &dyn Fn(Rule) -> bool,
) -> Findings {
    judge_some(&CALIBRATION_CHECKS, ClaimBench { spec, captures, known, findings: Findings::default() }, keep)
}

fn judge_some(checks: &[ClaimCheck], mut bench: ClaimBench<'_>, keep: &dyn Fn(Rule) -> bool) -> Findings {
    for check in checks.iter().filter(|check| keep(check.rule)) {
        (check.ask)(&mut bench);
    }
    bench.findings
}

/// The rules that [`judge_claim`] asks, one for each call site.
#[must_use]
pub fn judged_claims() -> Vec<Rule> {
    CLAIM_CHECKS.iter().map(|check| check.rule).collect()
}

/// The rules that [`judge_calibration`] asks, one for each call site.
#[must_use]
pub fn judged_calibrations() -> Vec<Rule> {
    CALIBRATION_CHECKS.iter().map(|check| check.rule).collect()
}
