//! The result document: what follows from a spec and captures, in one canonical form.
//!
//! Counts, ids and reals as strings; nothing of time, host, log, store, codec, tool or threads. See `specs/qualification-v1.md`, sections 1, 6 and 7.

use serde::{Deserialize, Serialize};

use crate::canon::document;
use crate::canon::json::JsonError;
use crate::canon::real::Real;
use crate::digest::Sha256;
use crate::id::{CaptureId, RowKey, TokenId};
use crate::numerics::{RowStats, Spread, Summary, summarise};

/// `schema` of a result document.
pub const RESULT_SCHEMA: &str = "witnessmark.result/v1";
/// `schema` of what a qualification id is the digest of.
pub const QUALIFICATION_SCHEMA: &str = "witnessmark.qualification/v1";

/// What a result came to, as a whole or in one stratum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, sections 6 and 7")]
pub enum Verdict {
    Accepted,
    NotAccepted,
    DiagnosticComplete,
    InsufficientEvidence,
    Pending,
}

impl Verdict {
    /// The name in a result.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Accepted => "ACCEPTED",
            Verdict::NotAccepted => "NOT_ACCEPTED",
            Verdict::DiagnosticComplete => "DIAGNOSTIC_COMPLETE",
            Verdict::InsufficientEvidence => "INSUFFICIENT_EVIDENCE",
            Verdict::Pending => "PENDING",
        }
    }
}

/// What a qualification id names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Inputs {
    pub(super) captures: Vec<CaptureId>,
    pub(super) numerics: String,
    pub(super) rules: String,
    pub(super) schema: String,
    pub(super) spec: Sha256,
}

impl Inputs {
    pub(super) fn id(&self) -> Result<Sha256, JsonError> {
        Ok(Sha256::of(&document::encode(self)?))
    }
}

/// A capture that the result rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 7")]
pub struct CaptureLine {
    pub capture: CaptureId,
    pub concurrency: u32,
    pub mode: String,
    pub partition: Option<String>,
    pub role: String,
    pub run_id: String,
}

/// A row, by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 7")]
pub struct Place {
    pub position: u32,
    pub prompt_index: u32,
    pub sample_index: u32,
}

impl From<RowKey> for Place {
    fn from(key: RowKey) -> Self {
        Self { position: key.position, prompt_index: key.request.prompt_index, sample_index: key.request.sample_index }
    }
}

/// Where the oracle chose differently at one prefix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 7")]
pub struct Differing {
    pub choices: Vec<TokenId>,
    pub margin: Real,
    pub position: u32,
    pub prompt_index: u32,
    pub sample_index: u32,
}

/// A row at which the candidate chose another token than the oracle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 7")]
pub struct Flip {
    pub candidate: TokenId,
    pub margin: Real,
    pub oracle: TokenId,
    pub position: u32,
    pub prompt_index: u32,
    pub sample_index: u32,
}

/// A statistic in a document. None is NaN (`specs/numerics-v1.md`); one that were would lie beyond every threshold.
pub(super) fn real(value: f64) -> Real {
    Real::new(value).unwrap_or(Real::INFINITY)
}

/// How one statistic is spread over rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 6.1")]
pub struct SpreadLine {
    pub infinite: u64,
    pub max: Real,
    pub mean: Real,
    pub median: Real,
    pub p99: Real,
}

impl From<Spread> for SpreadLine {
    fn from(spread: Spread) -> Self {
        Self {
            infinite: spread.infinite,
            max: real(spread.max),
            mean: real(spread.mean),
            median: real(spread.median),
            p99: real(spread.p99),
        }
    }
}

/// What many rows say together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 6.1")]
pub struct Statistics {
    pub js: SpreadLine,
    pub kl: SpreadLine,
    pub kl_reverse: SpreadLine,
    pub margin: SpreadLine,
    pub max_abs_delta: SpreadLine,
    pub rows: u64,
    pub top1: u64,
    pub top10: u64,
    pub tv: SpreadLine,
}

impl Statistics {
    /// Of rows in key order; none where there are none.
    #[must_use]
    pub fn of(rows: &[RowStats]) -> Option<Self> {
        let Summary { rows, kl, kl_reverse, js, tv, max_abs_delta, margin, agree, overlap, .. } = summarise(rows, 0.0)?;
        Some(Self {
            js: js.into(),
            kl: kl.into(),
            kl_reverse: kl_reverse.into(),
            margin: margin.into(),
            max_abs_delta: max_abs_delta.into(),
            rows,
            top1: agree,
            top10: overlap.last().copied().unwrap_or(0),
            tv: tv.into(),
        })
    }
}

/// Statistics of one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 7")]
pub struct RequestLine {
    pub prompt_index: u32,
    pub sample_index: u32,
    pub statistics: Statistics,
}

/// A candidate beside an oracle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 7")]
pub struct Comparison {
    pub bitwise: u64,
    pub candidate: CaptureId,
    pub flips: Vec<Flip>,
    pub oracle: CaptureId,
    pub requests: Vec<RequestLine>,
    pub rows: u64,
    pub statistics: Option<Statistics>,
    pub tie_undecided: Vec<Place>,
    pub ties: u64,
    pub unmatched: u64,
}

/// An oracle beside an oracle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 7")]
pub struct Noise {
    pub a: CaptureId,
    pub b: CaptureId,
    pub bitwise: u64,
    pub rows: u64,
    pub statistics: Option<Statistics>,
    pub unmatched: u64,
}

/// Whether the oracle repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 7")]
pub struct Repeatability {
    pub bitwise: u64,
    pub differing: Vec<Differing>,
    pub groups: u64,
    pub single: u64,
    pub verdict: String,
}

/// One stratum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 7")]
pub struct Stratum {
    pub comparisons: Vec<Comparison>,
    pub concurrency: u32,
    pub noise: Vec<Noise>,
    pub phase: String,
    pub reasons: Vec<String>,
    pub repeatability: Repeatability,
    pub uncompared: u64,
    pub unrepeated: u64,
    pub verdict: Verdict,
}

/// Tokens that were compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 7")]
pub struct Counted {
    pub compared: u64,
    pub interval: Option<(u32, u32)>,
    pub mismatched: u64,
}

/// Rows of self-replays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 7")]
pub struct Replayed {
    pub differing: u64,
    pub rows: u64,
    pub unmatched: u64,
}

/// What instrumentation did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 7")]
pub struct InertnessLine {
    pub baseline: Counted,
    pub captured: Counted,
    pub concurrency: u32,
    pub replays: Replayed,
    pub role: String,
    pub verdict: String,
}

/// The oracle at one concurrency beside the oracle at the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 7")]
pub struct CrossStrata {
    pub common: u64,
    pub concurrency: u32,
    pub differing: u64,
    pub first: Vec<Place>,
    pub from: u32,
}

/// The result document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are those of specs/qualification-v1.md, section 7")]
pub struct ResultDocument {
    pub captures: Vec<CaptureLine>,
    pub cross_strata: Vec<CrossStrata>,
    pub inertness: Vec<InertnessLine>,
    pub numerics: String,
    pub pending: Vec<String>,
    pub qualification: Sha256,
    pub rules: String,
    pub schema: String,
    pub spec: Sha256,
    pub strata: Vec<Stratum>,
    pub verdict: Verdict,
    pub workload: String,
}
