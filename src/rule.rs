//! The rules: what evidence must satisfy, one file a rule.
//!
//! [`judge`] gets a run, its rows in key order and the facts of their scores, and says everything that is wrong with them. It does no I/O,
//! so `seal` and `verify` ask the very same questions. Rules run in the order of [`judge`]; where one fault implies another only
//! the first is named (format section 10.1, *Subsumption*). [`about`] says of every rule what it protects and what to do.

use std::collections::{BTreeMap, BTreeSet};

use crate::binding::{Course, Request, Run};
use crate::digest::Sha256;
use crate::facts::Facts;
use crate::id::{RequestKey, RowKey, TokenId};
use crate::refusal::{Findings, Rule, Subject};
use crate::row::Row;
use crate::spec::Spec;

mod argmax_witness;
mod binding_mismatch;
mod binding_missing;
mod calibration_contaminated;
mod captured_after_forcing;
pub mod claim;
mod concurrency_not_reached;
pub mod continuation_mismatch;
mod corpus_mismatch;
mod coverage_overclaimed;
mod dtype_mismatch;
mod engine_mismatch;
mod engine_unbound;
mod execution_mismatch;
mod forced_output_claimed;
mod gate_not_ratified;
mod heldout_opened_early;
mod instrumentation_not_inert;
mod json_not_canonical;
mod kv_dtype_mismatch;
mod limit_exceeded;
mod log_inconsistent;
mod mode_missing;
mod model_mismatch;
mod name_taken;
mod not_a_regular_file;
mod nothing_to_verify;
mod object_digest;
mod object_missing;
mod object_unlisted;
mod output_mismatch;
mod path_escape;
mod phase_mismatch;
mod pins;
mod prefix_cache_active;
mod prefix_mismatch;
mod proof_invalid;
mod record_over_window;
mod replay_truncated;
mod request_mismatch;
mod requirements;
mod result_mismatch;
mod root_mismatch;
mod row_duplicated;
mod row_duplicated_content;
mod row_missing;
mod row_recomputed;
mod row_swapped;
mod row_unexpected;
mod rows_misnumbered;
mod run_mixed;
mod run_reused;
mod sampling_mismatch;
mod schema_invalid;
mod score_nonfinite;
mod score_reused;
mod score_witness;
mod scores_short;
mod scores_trailing;
mod sequence_gap;
mod shape_mismatch;
mod shard_noncanonical;
mod signature_invalid;
mod spec_not_predeclared;
mod speculation_active;
mod time_order;
mod token_not_argmax;
mod tokenizer_mismatch;
mod torn_capture;
mod tree_size;
mod vocab_mismatch;
mod witness_missing;

/// What a rule is for.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// What can no longer happen unseen
    pub protects: &'static str,
    /// What to do when it is broken
    pub remedy: &'static str,
    /// When it is asked
    pub applies: Applies,
}

/// When a rule is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// To all evidence
    Always,
    /// When `verify --model DIR` shows the files, or a spec pins them
    WithModel,
    /// When a spec requires it
    WithSpec,
    /// When a result is derived from several captures
    Qualification,
}

/// What a rule is for.
#[must_use]
pub fn about(rule: Rule) -> &'static About {
    match rule {
        Rule::NotARegularFile => &not_a_regular_file::ABOUT,
        Rule::PathEscape => &path_escape::ABOUT,
        Rule::NothingToVerify => &nothing_to_verify::ABOUT,
        Rule::NameTaken => &name_taken::ABOUT,
        Rule::LogInconsistent => &log_inconsistent::ABOUT,
        Rule::SignatureInvalid => &signature_invalid::ABOUT,
        Rule::ProofInvalid => &proof_invalid::ABOUT,
        Rule::ObjectUnlisted => &object_unlisted::ABOUT,
        Rule::ObjectMissing => &object_missing::ABOUT,
        Rule::ObjectDigest => &object_digest::ABOUT,
        Rule::JsonNotCanonical => &json_not_canonical::ABOUT,
        Rule::SchemaInvalid => &schema_invalid::ABOUT,
        Rule::LimitExceeded => &limit_exceeded::ABOUT,
        Rule::TreeSize => &tree_size::ABOUT,
        Rule::ShardNoncanonical => &shard_noncanonical::ABOUT,
        Rule::RootMismatch => &root_mismatch::ABOUT,
        Rule::TornCapture => &torn_capture::ABOUT,
        Rule::ScoresShort => &scores_short::ABOUT,
        Rule::ScoresTrailing => &scores_trailing::ABOUT,
        Rule::RowsMisnumbered => &rows_misnumbered::ABOUT,
        Rule::RunMixed => &run_mixed::ABOUT,
        Rule::RequestMismatch => &request_mismatch::ABOUT,
        Rule::RowMissing => &row_missing::ABOUT,
        Rule::ReplayTruncated => &replay_truncated::ABOUT,
        Rule::RowDuplicated => &row_duplicated::ABOUT,
        Rule::RowUnexpected => &row_unexpected::ABOUT,
        Rule::VocabMismatch => &vocab_mismatch::ABOUT,
        Rule::OutputMismatch => &output_mismatch::ABOUT,
        Rule::ContinuationMismatch => &continuation_mismatch::ABOUT,
        Rule::PrefixMismatch => &prefix_mismatch::ABOUT,
        Rule::PhaseMismatch => &phase_mismatch::ABOUT,
        Rule::SequenceGap => &sequence_gap::ABOUT,
        Rule::TimeOrder => &time_order::ABOUT,
        Rule::CapturedAfterForcing => &captured_after_forcing::ABOUT,
        Rule::ScoreNonfinite => &score_nonfinite::ABOUT,
        Rule::RowDuplicatedContent => &row_duplicated_content::ABOUT,
        Rule::RowSwapped => &row_swapped::ABOUT,
        Rule::ScoreWitness => &score_witness::ABOUT,
        Rule::ArgmaxWitness => &argmax_witness::ABOUT,
        Rule::TokenNotArgmax => &token_not_argmax::ABOUT,
        Rule::ModelMismatch => &model_mismatch::ABOUT,
        Rule::TokenizerMismatch => &tokenizer_mismatch::ABOUT,
        Rule::BindingMissing => &binding_missing::ABOUT,
        Rule::EngineUnbound => &engine_unbound::ABOUT,
        Rule::EngineMismatch => &engine_mismatch::ABOUT,
        Rule::ExecutionMismatch => &execution_mismatch::ABOUT,
        Rule::DtypeMismatch => &dtype_mismatch::ABOUT,
        Rule::KvDtypeMismatch => &kv_dtype_mismatch::ABOUT,
        Rule::SamplingMismatch => &sampling_mismatch::ABOUT,
        Rule::CorpusMismatch => &corpus_mismatch::ABOUT,
        Rule::BindingMismatch => &binding_mismatch::ABOUT,
        Rule::WitnessMissing => &witness_missing::ABOUT,
        Rule::PrefixCacheActive => &prefix_cache_active::ABOUT,
        Rule::SpeculationActive => &speculation_active::ABOUT,
        Rule::ConcurrencyNotReached => &concurrency_not_reached::ABOUT,
        Rule::RowRecomputed => &row_recomputed::ABOUT,
        Rule::RecordOverWindow => &record_over_window::ABOUT,
        Rule::SpecNotPredeclared => &spec_not_predeclared::ABOUT,
        Rule::ModeMissing => &mode_missing::ABOUT,
        Rule::RunReused => &run_reused::ABOUT,
        Rule::GateNotRatified => &gate_not_ratified::ABOUT,
        Rule::CoverageOverclaimed => &coverage_overclaimed::ABOUT,
        Rule::ForcedOutputClaimed => &forced_output_claimed::ABOUT,
        Rule::ShapeMismatch => &shape_mismatch::ABOUT,
        Rule::ScoreReused => &score_reused::ABOUT,
        Rule::InstrumentationNotInert => &instrumentation_not_inert::ABOUT,
        Rule::ResultMismatch => &result_mismatch::ABOUT,
        Rule::CalibrationContaminated => &calibration_contaminated::ABOUT,
        Rule::HeldoutOpenedEarly => &heldout_opened_early::ABOUT,
    }
}

/// What the scores of a capture came to.
#[derive(Debug, Clone, Copy)]
pub struct ScoreEvidence<'a> {
    /// One for each row, in key order; none where a row's scores could not be read, which was refused elsewhere
    pub facts: &'a [Option<Facts>],
    /// SHA-256 of all scores as f32, rows in key order, where run.json names one
    pub f32_sha256: Option<Sha256>,
}

/// Holds an output against a request of another run, by its run id and request id.
pub type Continuations<'a> = dyn Fn(&str, &str, &[TokenId]) -> Course + Sync + 'a;

/// Finds rows of other runs that carry one of these digests for their scores: which run, and which row.
pub type Elsewhere<'a> = dyn Fn(&BTreeSet<[u8; 32]>) -> BTreeMap<[u8; 32], (String, RowKey)> + Sync + 'a;

/// What is judged.
pub struct Evidence<'a> {
    /// run.json
    pub run: &'a Run,
    /// All rows, in key order
    pub rows: &'a [Row],
    /// What their scores came to; none in a baseline, and where the scores were not read
    pub scores: Option<ScoreEvidence<'a>>,
    /// Other runs, for what they generated
    pub continuations: &'a Continuations<'a>,
    /// Other runs, for whose scores these are
    pub elsewhere: &'a Elsewhere<'a>,
}

/// One request with its rows.
struct Group<'a> {
    request: &'a Request,
    rows: &'a [Row],
}

/// The evidence while it is being judged.
struct Bench<'a> {
    evidence: &'a Evidence<'a>,
    groups: Vec<Group<'a>>,
    findings: Findings,
    /// Requests whose rows are not the ones promised: their order is not judged
    broken: BTreeSet<RequestKey>,
    /// Whether a sequence number stood twice
    number_repeated: bool,
    /// For each row whether a rule has named its scores already
    named: Vec<bool>,
}

impl<'a> Bench<'a> {
    fn refuse(&mut self, rule: Rule, subject: Subject, expected: impl Into<String>, found: impl Into<String>) {
        self.findings.refuse(rule, subject, expected, found);
    }

    fn refuse_row(&mut self, rule: Rule, row: &Row, expected: impl Into<String>, found: impl Into<String>) {
        self.findings.refuse(rule, Subject::Row(row.key), expected, found);
    }

    /// Refuses a row for its scores; later rules no longer ask about them.
    fn name_scores(&mut self, rule: Rule, index: usize, expected: impl Into<String>, found: impl Into<String>) {
        if let (Some(row), Some(named)) = (self.evidence.rows.get(index), self.named.get_mut(index)) {
            *named = true;
            self.findings.refuse(rule, Subject::Row(row.key), expected, found);
        }
    }

    /// Rows whose scores nothing was said about yet, with their facts.
    fn unnamed(&self) -> Vec<(usize, &'a Row, &'a Facts)> {
        let facts = self.evidence.scores.map_or(&[][..], |scores| scores.facts);
        let rows = self.evidence.rows.iter().zip(facts).enumerate();
        let open = rows.filter(|(index, _)| self.named.get(*index) == Some(&false));
        open.filter_map(|(index, (row, facts))| Some((index, row, facts.as_ref()?))).collect()
    }

    /// What the scores of a row came to.
    fn facts(&self, index: usize) -> Option<&'a Facts> {
        self.evidence.scores.and_then(|scores| scores.facts.get(index)).and_then(Option::as_ref)
    }

    /// Whether the scores of every row could be read.
    fn all_scores_read(&self) -> bool {
        self.evidence.scores.is_some_and(|scores| scores.facts.iter().all(Option::is_some))
    }

    /// Requests whose rows are the ones promised.
    fn sound_groups(&self) -> Vec<(&'a Request, &'a [Row])> {
        let sound = self.groups.iter().filter(|group| !self.broken.contains(&group.request.key));
        sound.map(|group| (group.request, group.rows)).collect()
    }
}

/// A rule as [`judge`] asks it.
struct Check {
    rule: Rule,
    /// Whether it is asked only where scores were read
    needs_scores: bool,
    ask: fn(&mut Bench<'_>),
}

const fn rows(rule: Rule, ask: fn(&mut Bench<'_>)) -> Check {
    Check { rule, needs_scores: false, ask }
}

const fn scores(rule: Rule, ask: fn(&mut Bench<'_>)) -> Check {
    Check { rule, needs_scores: true, ask }
}

/// What [`judge`] asks, in this order. `row_missing` also names replay-truncated.
const CHECKS: [Check; 19] = [
    rows(Rule::RequestMismatch, request_mismatch::check),
    rows(Rule::RowDuplicated, row_duplicated::check),
    rows(Rule::RowUnexpected, row_unexpected::check),
    rows(Rule::RowMissing, row_missing::check),
    rows(Rule::VocabMismatch, vocab_mismatch::check),
    rows(Rule::OutputMismatch, output_mismatch::check),
    rows(Rule::ContinuationMismatch, continuation_mismatch::check),
    rows(Rule::PrefixMismatch, prefix_mismatch::check),
    rows(Rule::PhaseMismatch, phase_mismatch::check),
    rows(Rule::SequenceGap, sequence_gap::check),
    rows(Rule::TimeOrder, time_order::check),
    rows(Rule::CapturedAfterForcing, captured_after_forcing::check),
    scores(Rule::ScoreNonfinite, score_nonfinite::check),
    rows(Rule::RowDuplicatedContent, row_duplicated_content::check),
    scores(Rule::RowSwapped, row_swapped::check),
    scores(Rule::ScoreWitness, score_witness::check),
    scores(Rule::ArgmaxWitness, argmax_witness::check),
    scores(Rule::TokenNotArgmax, token_not_argmax::check),
    // Last: a chain covers prefixes, tokens and scores, and any fault in these breaks it too.
    rows(Rule::RunMixed, run_mixed::check),
];

/// A run and its rows while they are compared with a spec.
struct SpecBench<'a> {
    run: &'a Run,
    rows: &'a [Row],
    spec: &'a Spec,
    findings: Findings,
}

/// Asks what a spec requires of a single capture: that its run ended, its pins and its `[require]` table.
#[must_use]
pub fn judge_spec(run: &Run, rows: &[Row], complete: bool, spec: &Spec) -> Findings {
    let mut bench = SpecBench { run, rows, spec, findings: Findings::default() };
    if !complete {
        bench.findings.refuse(Rule::TornCapture, Subject::Capture, "a run that ended", "one that never did");
    }
    pins::check(&mut bench);
    requirements::check(&mut bench);
    bench.findings
}

/// Asks every rule that a capture alone can answer.
#[must_use]
pub fn judge(evidence: &Evidence<'_>) -> Findings {
    ask(evidence, &mut CHECKS.iter())
}

/// [`judge`] with some call sites only, so that a test can see that each matters, or what one of them says alone.
#[doc(hidden)]
#[must_use]
pub fn judge_some(evidence: &Evidence<'_>, keep: &dyn Fn(Rule) -> bool) -> Findings {
    ask(evidence, &mut CHECKS.iter().filter(|check| keep(check.rule)))
}

/// The rules that [`judge`] asks, one for each call site.
#[doc(hidden)]
#[must_use]
pub fn judged() -> Vec<Rule> {
    CHECKS.iter().map(|check| check.rule).collect()
}

fn ask(evidence: &Evidence<'_>, checks: &mut dyn Iterator<Item = &Check>) -> Findings {
    let requests: BTreeMap<RequestKey, &Request> = evidence.run.requests_by_key();
    let mut rows: BTreeMap<RequestKey, &[Row]> = BTreeMap::new();
    for chunk in evidence.rows.chunk_by(|a, b| a.request() == b.request()) {
        if let Some(first) = chunk.first() {
            rows.insert(first.request(), chunk);
        }
    }
    let groups = requests.iter().map(|(key, request)| Group { request, rows: rows.get(key).copied().unwrap_or(&[]) });
    let groups = groups.collect();
    let mut bench = Bench {
        evidence,
        groups,
        findings: Findings::default(),
        broken: BTreeSet::new(),
        number_repeated: false,
        named: vec![false; evidence.rows.len()],
    };
    for check in checks.filter(|check| evidence.scores.is_some() || !check.needs_scores) {
        (check.ask)(&mut bench);
    }
    bench.findings
}
