//! The vocabulary of refusals: which rules there are, and how a broken one is named.
//!
//! A refusal is a value, not an error: it does not implement `std::error::Error`, so `?` cannot swallow it. What a rule
//! protects and what to do about it stands in `rule/<rule>.rs`. Ids are stable: they are what people cite and scripts match.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::canon::json::JsonError;
use crate::id::{ObjectId, RequestKey, RowKey};

macro_rules! rules {
    ($($variant:ident = $id:literal,)*) => {
        /// A rule that evidence can break. The order is that of reports.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = $id] $variant,)*
        }

        impl Rule {
            /// All rules, in the order of reports.
            pub const ALL: &[Rule] = &[$(Rule::$variant,)*];

            /// The stable id.
            #[must_use]
            pub fn id(self) -> &'static str {
                match self { $(Rule::$variant => $id,)* }
            }
        }
    };
}

rules! {
    NotARegularFile = "not-a-regular-file",
    PathEscape = "path-escape",
    NothingToVerify = "nothing-to-verify",
    NameTaken = "name-taken",
    LogInconsistent = "log-inconsistent",
    SignatureInvalid = "signature-invalid",
    ProofInvalid = "proof-invalid",
    ObjectUnlisted = "object-unlisted",
    ObjectMissing = "object-missing",
    ObjectDigest = "object-digest",
    JsonNotCanonical = "json-not-canonical",
    SchemaInvalid = "schema-invalid",
    LimitExceeded = "limit-exceeded",
    TreeSize = "tree-size",
    ShardNoncanonical = "shard-noncanonical",
    RootMismatch = "root-mismatch",
    TornCapture = "torn-capture",
    ScoresShort = "scores-short",
    ScoresTrailing = "scores-trailing",
    RowsMisnumbered = "rows-misnumbered",
    RunMixed = "run-mixed",
    RequestMismatch = "request-mismatch",
    RowMissing = "row-missing",
    ReplayTruncated = "replay-truncated",
    RowDuplicated = "row-duplicated",
    RowUnexpected = "row-unexpected",
    VocabMismatch = "vocab-mismatch",
    OutputMismatch = "output-mismatch",
    ContinuationMismatch = "continuation-mismatch",
    PrefixMismatch = "prefix-mismatch",
    PhaseMismatch = "phase-mismatch",
    SequenceGap = "sequence-gap",
    TimeOrder = "time-order",
    CapturedAfterForcing = "captured-after-forcing",
    ScoreNonfinite = "score-nonfinite",
    RowDuplicatedContent = "row-duplicated-content",
    RowSwapped = "row-swapped",
    ScoreWitness = "score-witness",
    ArgmaxWitness = "argmax-witness",
    TokenNotArgmax = "token-not-argmax",
    ModelMismatch = "model-mismatch",
    TokenizerMismatch = "tokenizer-mismatch",
    BindingMissing = "binding-missing",
    EngineUnbound = "engine-unbound",
    EngineMismatch = "engine-mismatch",
    ExecutionMismatch = "execution-mismatch",
    DtypeMismatch = "dtype-mismatch",
    KvDtypeMismatch = "kv-dtype-mismatch",
    SamplingMismatch = "sampling-mismatch",
    CorpusMismatch = "corpus-mismatch",
    BindingMismatch = "binding-mismatch",
    WitnessMissing = "witness-missing",
    PrefixCacheActive = "prefix-cache-active",
    SpeculationActive = "speculation-active",
    ConcurrencyNotReached = "concurrency-not-reached",
    RowRecomputed = "row-recomputed",
    RecordOverWindow = "record-over-window",
    SpecNotPredeclared = "spec-not-predeclared",
    ModeMissing = "mode-missing",
    RunReused = "run-reused",
    GateNotRatified = "gate-not-ratified",
    CoverageOverclaimed = "coverage-overclaimed",
    ForcedOutputClaimed = "forced-output-claimed",
    ShapeMismatch = "shape-mismatch",
    ScoreReused = "score-reused",
    InstrumentationNotInert = "instrumentation-not-inert",
    ResultMismatch = "result-mismatch",
    CalibrationContaminated = "calibration-contaminated",
    HeldoutOpenedEarly = "heldout-opened-early",
}

impl From<&JsonError> for Rule {
    fn from(error: &JsonError) -> Self {
        if error.over_limit { Rule::LimitExceeded } else { Rule::JsonNotCanonical }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.id())
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

/// What a refusal is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The capture as a whole
    Capture,
    /// A file or folder, by its path below the capture directory or the store
    File(String),
    /// A line of a file, from 1
    Line(String, u64),
    /// A place in run.json
    Binding(String),
    /// An object of the store, and what it is to the capture
    Object(ObjectId, String),
    /// A request
    Request(RequestKey),
    /// A row
    Row(RowKey),
    /// Something in one capture of several, by its run id
    In(String, Box<Subject>),
}

impl Subject {
    /// The same in the capture of this run.
    #[must_use]
    pub fn of_run(self, run_id: &str) -> Self {
        Subject::In(run_id.to_owned(), Box::new(self))
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Capture => f.write_str("the capture"),
            Subject::File(path) => f.write_str(path),
            Subject::Line(path, line) => write!(f, "{path} line {line}"),
            Subject::Binding(path) => write!(f, "run.json {path}"),
            Subject::Object(id, role) => write!(f, "{role} {id}"),
            Subject::Request(key) => key.fmt(f),
            Subject::Row(key) => key.fmt(f),
            Subject::In(run, subject) if **subject == Subject::Capture => f.write_str(run),
            Subject::In(run, subject) => write!(f, "{run}: {subject}"),
        }
    }
}

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One broken rule, with what was expected and what was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Refusal {
    /// Which rule
    pub rule: Rule,
    /// About what
    pub subject: Subject,
    /// What the rule wanted
    pub expected: String,
    /// What there is
    pub found: String,
}

impl Refusal {
    /// A refusal. What is expected and what is found is shown to people: of a longer text, its beginning.
    pub fn new(rule: Rule, subject: Subject, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { rule, subject, expected: shortened(expected.into()), found: shortened(found.into()) }
    }
}

/// Longer than a name and what is said of it; much shorter than what can stand in a document.
const MAX_TEXT: usize = 4096;

fn shortened(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        let end = (0..=MAX_TEXT).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        let left = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("… and {left} bytes more"));
        text.shrink_to_fit();
    }
    text
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: expected {}, found {}", self.rule, self.subject, self.expected, self.found)
    }
}

/// What kind of thing a [`Note`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoteKind {
    /// A binding that usually identifies a run and that this one does not give
    Unbound,
    /// An identity that run.json declares and that was not looked at
    DeclaredNotSeen,
    /// A rule that had nothing to look at
    NotCheckable,
    /// A rule that looked and could not tell
    Undecided,
    /// Something worth knowing that breaks no rule
    Observed,
}

/// Something a reader of a verdict must know and that is not a refusal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Note {
    /// What kind of thing
    pub kind: NoteKind,
    /// In words
    pub text: String,
}

/// What the rules found: refusals and notes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Broken rules
    pub refusals: Vec<Refusal>,
    /// What else a reader must know
    pub notes: Vec<Note>,
}

impl Findings {
    /// Adds a refusal.
    pub fn refuse(&mut self, rule: Rule, subject: Subject, expected: impl Into<String>, found: impl Into<String>) {
        self.refusals.push(Refusal::new(rule, subject, expected, found));
    }

    /// Adds a note.
    pub fn note(&mut self, kind: NoteKind, text: impl Into<String>) {
        self.notes.push(Note { kind, text: text.into() });
    }

    /// Adds a note that `rule` had nothing to look at.
    pub fn not_checkable(&mut self, rule: Rule, why: impl fmt::Display) {
        self.note(NoteKind::NotCheckable, format!("{rule}: {why}"));
    }

    /// Takes over all of `other`.
    pub fn absorb(&mut self, other: Findings) {
        self.refusals.extend(other.refusals);
        self.notes.extend(other.notes);
    }

    /// The same findings in the order of reports, without repeats, whatever order they came in.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.refusals.sort();
        self.refusals.dedup();
        self.notes.sort();
        self.notes.dedup();
        self
    }
}
