//! Specs: what a qualification demands of its captures, written down before they are made.
//!
//! In comes a TOML file (`specs/*.toml`), out comes a [`Spec`] that holds only what the schema allows. A spec requires ([`Require`]) and pins
//! ([`Pins`]): a pinned binding must be there and equal, by role; and it plans: corpus, strata, runs, comparison. It judges nothing itself: `rule` and `qualify` do.
//! See `specs/spec-v1.md` and `schemas/spec.schema.json`.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize};

use crate::binding::{DESCRIBED, Mode, Role, Run, is_described};
use crate::canon::document;
use crate::canon::json::Json;
use crate::digest::Sha256;
use crate::id::TokenId;
use crate::near::did_you_mean;
use crate::row::{FIELDS, Phase};

pub mod calibration;
pub mod draft;

use calibration::CalibrationPlan;

/// `schema` of a spec.
pub const SPEC_SCHEMA: &str = "witnessmark.spec/v1";
/// The version of the rules that a result names.
pub const RULES: &str = "witnessmark.rules/v1";
/// The version of the numerics that a result names.
pub const NUMERICS: &str = "witnessmark.numerics/v1";
/// The largest spec file, in bytes.
pub const MAX_SPEC: u64 = 1 << 20;

/// Why a file is not a spec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Not TOML, or a key or type that the schema does not know
    #[error("not a spec: {0}")]
    Toml(String),
    /// A value that the schema does not allow
    #[error("{key}: expected {expected}, found {found}")]
    Value {
        /// Where
        key: String,
        /// What would be acceptable
        expected: String,
        /// What there is
        found: String,
    },
}

/// A qualification's plan.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// SHA-256 of the text that it was read from
    #[serde(skip)]
    pub sha256: Option<Sha256>,
    /// [`SPEC_SCHEMA`]
    pub schema: String,
    /// Name of the workload
    pub workload: String,
    /// What is to be claimed
    #[serde(default)]
    pub claim: Claim,
    /// The version of the rules; absent: [`RULES`]
    #[serde(default)]
    pub rules: Option<String>,
    /// The version of the numerics; absent: [`NUMERICS`]
    #[serde(default)]
    pub numerics: Option<String>,
    /// The prompts
    #[serde(default)]
    pub corpus: Option<Corpus>,
    /// What is never pooled
    #[serde(default)]
    pub strata: Option<Strata>,
    /// The captures that there must be
    #[serde(default)]
    pub runs: Vec<Runs>,
    /// How candidate and oracle are compared
    #[serde(default)]
    pub comparison: Comparison,
    /// What a distributional gate would be made by
    #[serde(default)]
    pub calibration: Option<CalibrationPlan>,
    /// What every capture must show
    #[serde(default)]
    pub require: Require,
    /// What every capture must be bound to
    #[serde(default)]
    pub pins: Pins,
}

/// What is to be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// That the candidate passes the gate
    #[default]
    Strict,
    /// Nothing: the evidence is to be complete and described
    Diagnostic,
}

/// The prompts of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Corpus {
    /// Digest of the prompts' token ids (`specs/qualification-v1.md`, section 4.1); absent: only counted
    #[serde(default)]
    pub sha256: Option<String>,
    /// Number of prompts
    pub requests: u32,
    /// Tokens that each request generates, unless it stops by itself
    pub new_tokens: u32,
}

/// What is never pooled: each concurrency by each phase.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strata {
    /// Requested concurrencies, ascending
    pub concurrency: Vec<u32>,
    /// Phases
    pub phases: Vec<Phase>,
}

/// What a capture is kept for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Partition {
    /// To set thresholds
    Calibration,
    /// To try them
    HeldOut,
}

impl Partition {
    /// The name in a spec and in a result.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Partition::Calibration => "calibration",
            Partition::HeldOut => "held-out",
        }
    }
}

/// Captures that there must be: of one role and mode, at each of some concurrencies.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runs {
    /// Whose
    pub role: Role,
    /// How they were driven
    pub mode: Mode,
    /// At which requested concurrencies
    pub concurrency: Vec<u32>,
    /// How many at each, at least
    pub repetitions: u32,
    /// What they are kept for
    #[serde(default)]
    pub partition: Option<Partition>,
    /// Which runs; empty: any
    #[serde(default)]
    pub run_ids: BTreeSet<String>,
}

impl Runs {
    /// Whether a run has a place here.
    #[must_use]
    pub fn has_place_for(&self, run: &Run) -> bool {
        run.role() == Some(self.role)
            && run.mode == self.mode
            && run.requested_concurrency().is_some_and(|found| self.concurrency.contains(&found))
            && (self.run_ids.is_empty() || self.run_ids.contains(&run.run_id))
    }

    /// Whether a run that is kept for one thing could count for another.
    fn is_taken_for(&self, other: &Self) -> bool {
        let apart = !self.run_ids.is_empty() && !other.run_ids.is_empty() && self.run_ids.is_disjoint(&other.run_ids);
        self.partition != other.partition
            && (self.role, self.mode) == (other.role, other.mode)
            && self.concurrency.iter().any(|concurrency| other.concurrency.contains(concurrency))
            && !apart
    }
}

/// How candidate and oracle are compared.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Comparison {
    /// The gate that is asked for; absent: `strict`
    pub gate: Option<String>,
    /// Declared shapes that every capture must give, by dotted path
    pub shapes: BTreeSet<String>,
    /// Whether rows that are compared must have been computed in equal shapes
    pub observed_shape: Option<ObservedShape>,
    /// By how much the share of tokens that instrumentation changes may exceed what baselines change by themselves
    pub inertness_margin: Option<f64>,
}

/// What is asked of the shapes in which rows were computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObservedShape {
    /// Nothing: they are counted
    Any,
    /// That they are equal
    Equal,
}

/// What every capture must show.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Require {
    /// Bindings that must be given, by dotted path
    pub bindings: BTreeSet<String>,
    /// Witnesses that every row of scores must carry, by field name; `forced_*` only in replays
    pub witnesses: BTreeSet<String>,
    /// Whether the engine must be identified: a commit that is not unknown or dirty, or the digest of its binary
    pub engine_bound: bool,
    /// How the scores may have been extracted: `adapter`, `engine`, `after-id-replay`; empty: any
    pub extraction: BTreeSet<String>,
    /// The execution mode, such as `eager` or `graph`
    pub execution: Option<String>,
    /// Whether a prefix cache must be declared off
    pub no_prefix_cache: bool,
    /// Whether speculation must be declared off
    pub no_speculation: bool,
    /// Whether the requested concurrency must have been reached in some row
    pub concurrency_reached: bool,
    /// The most recomputed rows; the default is none
    pub max_recomputed: u64,
    /// The most tokens of a request, prompt and output together
    pub window: Option<u64>,
    /// The most rows of a capture
    pub max_rows: Option<u64>,
    /// The most bytes of a capture's scores as f32
    pub max_score_bytes: Option<u64>,
}

/// A value that a binding is pinned to.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Pin {
    /// `true` or `false`
    Bool(bool),
    /// An integer of 64 bits, with a sign or without
    #[serde(deserialize_with = "whole")]
    Integer(i128),
    /// A real
    Real(f64),
    /// A string
    Text(String),
    /// A list
    List(Vec<Pin>),
}

/// Bindings that are pinned, by dotted path: for all captures, and for one role.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pins {
    /// For every capture
    pub all: BTreeMap<String, Pin>,
    /// For oracle captures
    pub oracle: BTreeMap<String, Pin>,
    /// For candidate captures
    pub candidate: BTreeMap<String, Pin>,
    /// SHA-256 of the model's files, by path
    pub model_files: BTreeMap<String, String>,
    /// SHA-256 of the tokenizer's files, by path
    pub tokenizer_files: BTreeMap<String, String>,
}

impl Spec {
    /// Reads a spec.
    ///
    /// # Errors
    /// When the text is not TOML, or not a spec of a version that this program knows.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let mut spec: Spec = toml::from_str(text).map_err(|error| SpecError::Toml(located(text, &error)))?;
        let value = |key: &str, expected: &str, found: &str| SpecError::Value {
            key: key.to_owned(),
            expected: expected.to_owned(),
            found: format!("{found:?}"),
        };
        if spec.schema != SPEC_SCHEMA {
            return Err(value("schema", SPEC_SCHEMA, &spec.schema));
        }
        if spec.workload.is_empty() {
            return Err(value("workload", "a name", ""));
        }
        let known = |name: &str| FIELDS.iter().any(|field| field.name == name && !field.required);
        if let Some(bad) = spec.require.witnesses.iter().find(|name| !known(name)) {
            return Err(value("require.witnesses", "optional fields of a row", bad));
        }
        if let Some(bad) = spec
            .require
            .extraction
            .iter()
            .find(|name| !["adapter", "engine", "after-id-replay"].contains(&name.as_str()))
        {
            return Err(value("require.extraction", "adapter, engine or after-id-replay", bad));
        }
        let digest = |text: &str| text.parse::<Sha256>().is_ok();
        let files = spec.pins.model_files.values().chain(spec.pins.tokenizer_files.values());
        if let Some(bad) = files.into_iter().find(|text| !digest(text)) {
            return Err(value("pins", "SHA-256 as 64 lower-case hexadecimal digits", bad));
        }
        spec.check_plan()?;
        spec.sha256 = Some(Sha256::of(text.as_bytes()));
        Ok(spec)
    }

    /// The part that a qualification needs.
    fn check_plan(&self) -> Result<(), SpecError> {
        let value = |key: &str, expected: &str, found: String| SpecError::Value {
            key: key.to_owned(),
            expected: expected.to_owned(),
            found,
        };
        for (key, expected, found) in [("rules", RULES, &self.rules), ("numerics", NUMERICS, &self.numerics)] {
            if let Some(found) = found.as_ref().filter(|found| *found != expected) {
                return Err(value(key, expected, format!("{found:?}")));
            }
        }
        if let Some(corpus) = &self.corpus {
            if let Some(found) = corpus.sha256.as_ref().filter(|text| text.parse::<Sha256>().is_err()) {
                return Err(value("corpus.sha256", "64 lower-case hexadecimal digits", format!("{found:?}")));
            }
            if corpus.requests == 0 || corpus.new_tokens == 0 {
                return Err(value("corpus", "one request and one new token or more", "none".to_owned()));
            }
        }
        let ascending = |list: &[u32]| !list.is_empty() && list.is_sorted_by(|a, b| a < b) && !list.contains(&0);
        if let Some(strata) = &self.strata {
            if !ascending(&strata.concurrency) {
                let found = format!("{:?}", strata.concurrency);
                return Err(value("strata.concurrency", "one or more, from 1, ascending", found));
            }
            if strata.phases.is_empty() || !strata.phases.is_sorted_by(|a, b| a < b) {
                let expected = "some of prefill, decode, recomputed, in this order, each once";
                return Err(value("strata.phases", expected, format!("{:?}", strata.phases)));
            }
        }
        let recomputed = |strata: &Strata| strata.phases.contains(&Phase::Recomputed);
        if self.require.max_recomputed > 0 && self.strata.as_ref().is_some_and(|strata| !recomputed(strata)) {
            let expected = "recomputed among strata.phases, where require.max_recomputed allows such rows";
            return Err(value("strata.phases", expected, "others only".to_owned()));
        }
        let pins = self.pins.all.values().chain(self.pins.oracle.values()).chain(self.pins.candidate.values());
        if pins.into_iter().any(|pin| matches!(pin, Pin::Real(value) if !value.is_finite())) {
            return Err(value("pins", "finite numbers: run.json has no others", "inf or nan".to_owned()));
        }
        for (n, runs) in self.runs.iter().enumerate() {
            let strata = self.strata.iter().flat_map(|strata| &strata.concurrency);
            let known: Vec<&u32> = strata.collect();
            if let Some(other) = runs.concurrency.iter().find(|c| !known.is_empty() && !known.contains(c)) {
                let expected = "concurrencies of strata.concurrency: what is in no stratum is judged by nobody";
                return Err(value(&format!("runs[{n}].concurrency"), expected, other.to_string()));
            }
            if !ascending(&runs.concurrency) {
                let found = format!("{:?}", runs.concurrency);
                return Err(value(&format!("runs[{n}].concurrency"), "one or more, from 1, ascending", found));
            }
            if runs.repetitions == 0 {
                return Err(value(&format!("runs[{n}].repetitions"), "1 or more", "0".to_owned()));
            }
            if runs.partition == Some(Partition::Calibration) && runs.role == Role::Candidate {
                let expected = "held-out, or none: only an oracle calibrates";
                return Err(value(&format!("runs[{n}].partition"), expected, "calibration".to_owned()));
            }
            if let Some(other) = self.runs.iter().take(n).find(|other| other.is_taken_for(runs)) {
                let expected = "run_ids in both entries, none in both, so that what is held out is known beforehand";
                let found = format!("{} {} kept for different things", other.role.name(), other.mode.name());
                return Err(value(&format!("runs[{n}].run_ids"), expected, found));
            }
        }
        if let Some(plan) = &self.calibration {
            plan.check()?;
        }
        match self.comparison.inertness_margin {
            Some(margin) if !(0.0..=1.0).contains(&margin) => {
                Err(value("comparison.inertness_margin", "a share from 0 to 1", margin.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// The entry that a run counts for, with its number: the first that has a place for it.
    #[must_use]
    pub fn place(&self, run: &Run) -> Option<(usize, &Runs)> {
        self.runs.iter().enumerate().find(|(_, runs)| runs.has_place_for(run))
    }

    /// What a run is kept for; none where it has no place, or one of no partition.
    #[must_use]
    pub fn partition_of(&self, run: &Run) -> Option<Partition> {
        self.place(run).and_then(|(_, runs)| runs.partition)
    }

    /// Whether a result can be derived by it: it has corpus, strata and runs.
    #[must_use]
    pub fn is_a_plan(&self) -> bool {
        self.corpus.is_some() && self.strata.is_some() && !self.runs.is_empty()
    }

    /// What a plan leaves open, in words: what a qualification needs, and identities that nothing pins. Empty where nothing is.
    #[must_use]
    pub fn open(&self) -> Vec<String> {
        let mut open = Vec::new();
        let mut say = |missing: bool, text: &str| {
            if missing {
                open.push(text.to_owned());
            }
        };
        say(self.corpus.is_none(), "corpus: which prompts, how many tokens; qualify needs it");
        let unbound = self.corpus.as_ref().is_some_and(|corpus| corpus.sha256.is_none());
        say(unbound, "corpus.sha256: the prompts are counted and not bound");
        say(self.strata.is_none(), "strata: concurrencies and phases; qualify needs them");
        say(self.runs.is_empty(), "runs: which captures there must be; qualify needs them");
        let of = |role: Role| self.runs.iter().filter(move |runs| runs.role == role);
        say(!self.runs.is_empty() && of(Role::Oracle).next().is_none(), "runs: no oracle");
        for phase in [Phase::Prefill, Phase::Decode] {
            let left_out = self.strata.as_ref().is_some_and(|strata| !strata.phases.contains(&phase));
            say(left_out, &format!("strata.phases: {} is left out, and nothing is said of it", phase.name()));
        }
        let scored = |runs: &&Runs| runs.role == Role::Oracle && runs.mode != Mode::Baseline;
        let repeats = |concurrency: &u32| -> u32 {
            let here = self.runs.iter().filter(scored).filter(|runs| runs.concurrency.contains(concurrency));
            here.map(|runs| runs.repetitions).fold(0, u32::saturating_add)
        };
        for concurrency in self.strata.iter().flat_map(|strata| &strata.concurrency) {
            let text = format!(
                "runs: fewer than two oracle runs with scores at c{concurrency}: nothing can show that it repeats"
            );
            say(!self.runs.is_empty() && repeats(concurrency) < 2, &text);
        }
        let needs = self.calibration_needs();
        for need in needs.iter().filter(|need| need.falls_short()) {
            let mode = need.mode.name();
            let text = format!(
                "calibration: the rule needs {} {} of {mode} c{}, and the plan has {}",
                need.needs, need.counted, need.concurrency, need.planned_units
            );
            say(true, &text);
        }
        for need in needs.iter().filter(|need| need.held_out == 0) {
            let text = format!("calibration: nothing is held out of {} c{}", need.mode.name(), need.concurrency);
            say(true, &text);
        }
        say(
            self.calibration.is_some() && needs.is_empty(),
            "calibration: no oracle with scores in the calibration partition",
        );
        let gate = self.comparison.gate.as_deref().is_some_and(|gate| gate != "strict");
        say(gate, "comparison.gate: only strict can be asked for; qualify refuses another");
        let claims = self.claim == Claim::Strict && !self.runs.is_empty();
        say(claims && of(Role::Candidate).next().is_none(), "runs: no candidate, so nothing can be accepted");
        for path in [
            "model.id",
            "model.weights_dtype",
            "model.kv_dtype",
            "engine.name",
            "engine.execution",
            "engine.attention",
            "sampling.method",
        ] {
            let pinned = self.pins.all.contains_key(path)
                || (self.pins.oracle.contains_key(path) && self.pins.candidate.contains_key(path))
                || (path == "engine.execution" && self.require.execution.is_some());
            say(!pinned, &format!("pins: {path} is not pinned for both roles"));
        }
        say(self.pins.model_files.is_empty(), "pins.model_files: the model's files are not bound");
        say(self.pins.tokenizer_files.is_empty(), "pins.tokenizer_files: the tokenizer's files are not bound");
        let revision = |pins: &BTreeMap<String, Pin>| {
            ["engine.commit", "engine.binary_sha256"].iter().any(|path| pins.contains_key(*path))
        };
        let bound = revision(&self.pins.all) || (revision(&self.pins.oracle) && revision(&self.pins.candidate));
        say(
            !bound && !self.require.engine_bound,
            "engines: neither a revision nor a binary's digest is pinned or required",
        );
        open
    }

    /// The paths that it asks for and the format does not describe, in words: of a run's own keys, or misspelt.
    #[must_use]
    pub fn undescribed(&self) -> Vec<String> {
        let pins = [("all", &self.pins.all), ("oracle", &self.pins.oracle), ("candidate", &self.pins.candidate)];
        let pinned = pins.iter().flat_map(|(of, pins)| pins.keys().map(move |path| (format!("pins.{of}"), path)));
        let required = self.require.bindings.iter().map(|path| ("require.bindings".to_owned(), path));
        let shapes = self.comparison.shapes.iter().map(|path| ("comparison.shapes".to_owned(), path));
        let asked = pinned.chain(required).chain(shapes).filter(|(_, path)| !is_described(path));
        asked
            .map(|(of, path)| {
                format!("{of}: {path:?} is no binding that the format describes{}", did_you_mean(path, DESCRIBED))
            })
            .collect()
    }

    /// The pins that a capture of this run's role must satisfy.
    #[must_use]
    pub fn pins_for(&self, run: &Run) -> BTreeMap<&str, &Pin> {
        let role = run.role().map(|role| match role {
            Role::Oracle => &self.pins.oracle,
            Role::Candidate => &self.pins.candidate,
        });
        let pins = self.pins.all.iter().chain(role.into_iter().flatten());
        pins.map(|(path, pin)| (path.as_str(), pin)).collect()
    }
}

/// What is wrong with a TOML text, on one line.
fn located(text: &str, error: &toml::de::Error) -> String {
    let what = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    let line = error.span().and_then(|span| text.get(..span.start)).map(|before| 1 + before.matches('\n').count());
    line.map_or(what.clone(), |line| format!("line {line}: {what}"))
}

/// `schema` of a corpus document.
pub const CORPUS_SCHEMA: &str = "witnessmark.corpus/v1";

/// The prompts of a workload as a document: token ids, by prompt index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorpusDocument {
    /// Token ids of each prompt
    pub prompts: Vec<Vec<TokenId>>,
    /// [`CORPUS_SCHEMA`]
    pub schema: String,
}

/// The prompts of a run as a document; none where its prompt indices are not 0 to n − 1, or samples of one prompt differ in it.
#[must_use]
pub fn corpus_of(run: &Run) -> Option<CorpusDocument> {
    let mut prompts: BTreeMap<u32, &Vec<TokenId>> = BTreeMap::new();
    for request in &run.requests {
        let first = prompts.entry(request.key.prompt_index).or_insert(&request.prompt_token_ids);
        if **first != request.prompt_token_ids {
            return None;
        }
    }
    let dense = (0_u32..).zip(prompts.keys()).all(|(n, index)| n == *index);
    let prompts = prompts.into_values().cloned().collect();
    dense.then(|| CorpusDocument { prompts, schema: CORPUS_SCHEMA.to_owned() })
}

/// SHA-256 of a run's corpus document.
#[must_use]
pub fn corpus_digest(run: &Run) -> Option<Sha256> {
    document::encode(&corpus_of(run)?).ok().map(|bytes| Sha256::of(&bytes))
}

impl Pin {
    /// Whether run.json's value is the pinned one. Numbers compare as numbers: integers exactly, what has a fraction or an exponent as binary64.
    #[must_use]
    pub fn matches(&self, json: &Json) -> bool {
        match (self, json) {
            (Pin::Bool(pin), Json::Bool(value)) => pin == value,
            (Pin::Integer(_) | Pin::Real(_), Json::Number(text)) => self.is_number(text),
            (Pin::Text(pin), Json::String(value)) => pin == value,
            (Pin::List(pins), Json::Array(values)) => {
                pins.len() == values.len() && pins.iter().zip(values).all(|(pin, value)| pin.matches(value))
            }
            _ => false,
        }
    }

    fn is_number(&self, text: &str) -> bool {
        let (whole, real) = (text.parse::<i128>().ok(), text.parse::<f64>().ok());
        match (self, whole) {
            (Pin::Integer(pin), _) => whole.or_else(|| real.and_then(exactly)) == Some(*pin),
            (Pin::Real(pin), Some(value)) => exactly(*pin) == Some(value),
            (Pin::Real(pin), None) => real.is_some_and(|value| value.partial_cmp(pin) == Some(Ordering::Equal)),
            _ => false,
        }
    }

    /// The pin as JSON, for messages.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Pin::Bool(pin) => pin.to_string(),
            Pin::Integer(pin) => pin.to_string(),
            Pin::Real(pin) => pin.to_string(),
            Pin::Text(pin) => format!("{pin:?}"),
            Pin::List(pins) => format!("[{}]", pins.iter().map(Pin::to_text).collect::<Vec<_>>().join(",")),
        }
    }
}

/// The integer that a real is; none where it has a fraction, or is beyond what an integer here can be.
#[allow(clippy::cast_possible_truncation, reason = "a real without a fraction, within the range, is an integer")]
fn exactly(value: f64) -> Option<i128> {
    (value.trunc().to_bits() == value.to_bits() && value.abs() < 1e30).then_some(value as i128)
}

/// An integer of TOML, of which some are beyond 2^63.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i128, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Whole {
        Signed(i64),
        Unsigned(u64),
    }
    Ok(match Whole::deserialize(deserializer)? {
        Whole::Signed(value) => value.into(),
        Whole::Unsigned(value) => value.into(),
    })
}
