//! Receipts: what a verify came to, as a document that can be kept.
//!
//! An outcome goes in, a canonical document comes out, and back. It says what was looked at then, with which rules, and what was found; it proves
//! nothing about the bytes of now, and holds no time. A full pass without a refusal may stand for a later one over the same
//! manifests by the same program, where somebody asks for that. See `specs/format-v1.md`, section 16.

use serde::{Deserialize, Serialize};

use super::{Depth, Outcome};
use crate::canon::document;
use crate::canon::json::JsonError;
use crate::id::{CaptureId, ObjectId};
use crate::manifest::TOOL;
use crate::refusal::Rule;

/// `schema` of a receipt.
pub const RECEIPT_SCHEMA: &str = "witnessmark.receipt/v1";

/// Counts of [`super::Checked`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Bytes of the objects whose bytes were hashed
    pub bytes: u64,
    /// These objects
    pub objects: u64,
    /// Rows whose records were hashed into the row root
    pub rows: u64,
    /// Rows whose scores were derived again
    pub scored_rows: u64,
}

/// How a sample was drawn, and what it can show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleNote {
    /// Probability of having caught one damaged row
    pub caught_1: String,
    /// Probability of having caught ten
    pub caught_10: String,
    /// Rows drawn
    pub drawn: u64,
    /// Share asked for, in millionths
    pub ppm: u64,
    /// Seed
    pub seed: String,
}

/// A refusal, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// What the rule wanted
    pub expected: String,
    /// What there was
    pub found: String,
    /// Which rule
    pub rule: String,
    /// About what
    pub subject: String,
}

/// A note, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noted {
    /// What kind
    pub kind: String,
    /// The words
    pub text: String,
}

/// What a verify came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// Which capture
    pub capture: CaptureId,
    /// How much was looked at
    pub checked: Counts,
    /// `full`, `sample`, `quick` or `rows`
    pub depth: String,
    /// By which manifests
    pub manifests: Vec<ObjectId>,
    /// What else a reader must know
    pub notes: Vec<Noted>,
    /// What was refused
    pub refusals: Vec<Refused>,
    /// All rules that the program knows
    pub rules: Vec<String>,
    /// How the sample was drawn; none unless it was one
    pub sample: Option<SampleNote>,
    /// [`RECEIPT_SCHEMA`]
    pub schema: String,
    /// Program and version
    pub tool: String,
    /// Whether nothing was refused
    pub verified: bool,
}

fn rules() -> Vec<String> {
    Rule::ALL.iter().map(|rule| rule.id().to_owned()).collect()
}

/// The word for a serde-named value.
fn word<T: Serialize>(value: T) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

impl Receipt {
    /// Of an outcome.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Self {
        let checked = outcome.checked;
        let refusals = outcome.findings.refusals.iter().map(|refusal| Refused {
            expected: refusal.expected.clone(),
            found: refusal.found.clone(),
            rule: refusal.rule.id().to_owned(),
            subject: refusal.subject.to_string(),
        });
        let notes = outcome.findings.notes.iter().map(|note| Noted { kind: word(note.kind), text: note.text.clone() });
        let sample = outcome.sampled.map(|sampled| SampleNote {
            caught_1: sampled.caught(1).to_string(),
            caught_10: sampled.caught(10).to_string(),
            drawn: sampled.drawn,
            ppm: sampled.sample.ppm.into(),
            seed: sampled.sample.seed.to_string(),
        });
        Self {
            capture: outcome.capture,
            checked: Counts {
                bytes: checked.bytes,
                objects: checked.objects,
                rows: checked.rows,
                scored_rows: checked.scored_rows,
            },
            depth: outcome.depth.name().to_owned(),
            manifests: outcome.manifests.clone(),
            notes: notes.collect(),
            refusals: refusals.collect(),
            rules: rules(),
            sample,
            schema: RECEIPT_SCHEMA.to_owned(),
            tool: TOOL.to_owned(),
            verified: outcome.verified.is_some(),
        }
    }

    /// The canonical bytes.
    ///
    /// # Errors
    /// When a count is beyond what a document may hold.
    pub fn encode(&self) -> Result<Vec<u8>, JsonError> {
        document::encode(self)
    }

    /// Reads a receipt; none where the bytes are not one.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        document::decode(bytes).ok().filter(|receipt: &Self| receipt.schema == RECEIPT_SCHEMA)
    }

    /// Whether it says of these manifests, by this program and its rules, all that a full pass would.
    #[must_use]
    pub fn covers(&self, capture: CaptureId, manifests: &[ObjectId]) -> bool {
        self.verified
            && self.refusals.is_empty()
            && self.depth == Depth::Full.name()
            && self.capture == capture
            && self.manifests == manifests
            && self.tool == TOOL
            && self.rules == rules()
    }
}
