//! Proofs: what an auditor can check offline, with nothing else in hand.
//!
//! Documents go in, claims come out: a row belongs to a capture, an entry stands in a log, one log begins with another. Everything that a proof
//! says is recomputed; a claim can only be had from a check that passed. Proofs are made elsewhere (`prove`, `log`, `bundle`);
//! this room touches no store. See `specs/format-v1.md`, sections 12 to 14.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use crate::canon::document;
use crate::canon::json::Json;
use crate::canon::scores::{Canonical, Dtype};
use crate::digest::{Sha256, hex, unhex};
use crate::id::{CaptureId, long};
use crate::manifest::{
    BUNDLE_SCHEMA, BundleHeader, CAPTURE_SCHEMA, CaptureDocument, Entry, HEAD_SCHEMA, MAX_ENTRY, decimal, is_origin,
};
use crate::merkle::{Size, is_consistent, leaf_hash, root_from_inclusion};
use crate::refusal::{Refusal, Rule, Subject};
use crate::row::Row;

/// `schema` of the proof of a row.
pub const ROW_PROOF_SCHEMA: &str = "witnessmark.proof/v1";
/// `schema` of the proof of a log's growth.
pub const LOG_PROOF_SCHEMA: &str = "witnessmark.log-proof/v1";
/// The largest proof that is read, in bytes: one with a row of the largest vocabulary in f32.
pub const MAX_PROOF: u64 = 128 << 20;

/// The canonical scores of a proved row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvedScores {
    /// Their bytes
    pub base64: String,
    /// Their canonical dtype
    pub dtype: Dtype,
}

/// That a row belongs to a capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowProof {
    /// The capture document, whose SHA-256 is the capture id
    pub capture: CaptureDocument,
    /// Inclusion path from the record's leaf to the row root
    pub path: Vec<Sha256>,
    /// The row record, in hexadecimal digits
    pub record: String,
    /// Place of the row in key order, from 0
    pub row: u64,
    /// [`ROW_PROOF_SCHEMA`]
    pub schema: String,
    /// The row's scores, where they were asked for
    pub scores: Option<ProvedScores>,
    /// Rows of the capture
    pub tree_size: u64,
}

/// What a [`RowProof`] shows.
#[derive(Debug, Clone)]
pub struct RowClaim {
    /// The capture that the row belongs to
    pub capture: CaptureId,
    /// The row
    pub row: Row,
    /// Its scores, where the proof has them
    pub scores: Option<Canonical>,
}

fn refuse(rule: Rule, file: &str, expected: impl Into<String>, found: impl Into<String>) -> Refusal {
    Refusal::new(rule, Subject::File(file.to_owned()), expected, found)
}

fn check_schema(found: &str, expected: &str) -> Result<(), Refusal> {
    if found == expected {
        Ok(())
    } else {
        Err(refuse(Rule::SchemaInvalid, "the proof", format!("schema {expected}"), found))
    }
}

impl RowProof {
    /// The proof of a row's record and scores.
    #[must_use]
    pub fn new(
        capture: CaptureDocument,
        row: u64,
        record: &[u8],
        path: Vec<Sha256>,
        scores: Option<&Canonical>,
    ) -> Self {
        let scores = scores.map(|row| ProvedScores { base64: BASE64.encode(row.bytes()), dtype: row.dtype() });
        let (schema, tree_size) = (ROW_PROOF_SCHEMA.to_owned(), capture.rows);
        Self { capture, path, record: hex(record), row, schema, scores, tree_size }
    }

    /// Recomputes leaf, path, root, capture document and capture id, and the digest of the scores.
    ///
    /// # Errors
    ///
    /// # Refusals
    /// proof-invalid; schema-invalid where the proof is of another version.
    pub fn check(&self) -> Result<RowClaim, Refusal> {
        check_schema(&self.schema, ROW_PROOF_SCHEMA)?;
        check_schema(&self.capture.schema, CAPTURE_SCHEMA)?;
        let invalid = |expected: String, found: String| refuse(Rule::ProofInvalid, "the proof", expected, found);
        if self.tree_size != self.capture.rows {
            let found = format!("tree_size {}", self.tree_size);
            return Err(invalid(format!("the {} rows of the capture document", self.capture.rows), found));
        }
        let record = unhex(&self.record)
            .ok_or_else(|| invalid("a record in hexadecimal digits".to_owned(), "none".to_owned()))?;
        let row = Row::from_record(&record);
        let row = row.ok_or_else(|| invalid("a row record".to_owned(), format!("{} other bytes", record.len())))?;
        let root = root_from_inclusion(leaf_hash(&record), self.row, self.tree_size, &self.path);
        if root != Some(self.capture.row_root) {
            let found = root.map_or_else(
                || format!("a path of {} that fits no row {} of {}", self.path.len(), self.row, self.tree_size),
                |root| root.to_string(),
            );
            return Err(invalid(format!("a path to the row root {}", self.capture.row_root), found));
        }
        let id =
            self.capture.id().map_err(|error| invalid("a canonical capture document".to_owned(), error.to_string()))?;
        let scores = self.scores.as_ref().map(|scores| self.check_scores(scores, &row)).transpose()?;
        Ok(RowClaim { capture: id, row, scores })
    }

    fn check_scores(&self, scores: &ProvedScores, row: &Row) -> Result<Canonical, Refusal> {
        let subject = Subject::Row(row.key);
        let invalid = |expected: String, found: &str| Refusal::new(Rule::ProofInvalid, subject, expected, found);
        let bytes = BASE64.decode(&scores.base64).ok();
        let scores = bytes.and_then(|bytes| Canonical::from_canonical(scores.dtype, &bytes));
        let Some(scores) = scores else { return Err(invalid("canonical scores in base64".to_owned(), "others")) };
        let vocab = u64::try_from(scores.vocab()).unwrap_or(u64::MAX);
        if self.capture.vocab_size != Some(vocab) {
            let expected = self.capture.vocab_size.map_or("no scores".to_owned(), |vocab| format!("{vocab} scores"));
            return Err(invalid(expected, &vocab.to_string()));
        }
        let digest = scores.digest();
        if row.score_digest != Some(digest) {
            let expected = row.score_digest.map_or("no scores".to_owned(), |digest| format!("score digest {digest}"));
            return Err(invalid(expected, &digest.to_string()));
        }
        Ok(scores)
    }
}

/// That a log begins with an earlier state of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogProof {
    /// Root of the later log
    pub new_root: Sha256,
    /// Entries of the later log
    pub new_size: u64,
    /// Root of the earlier log
    pub old_root: Sha256,
    /// Entries of the earlier log
    pub old_size: u64,
    /// Origin of the store whose log it is
    pub origin: String,
    /// Consistency path
    pub path: Vec<Sha256>,
    /// [`LOG_PROOF_SCHEMA`]
    pub schema: String,
}

impl LogProof {
    /// Recomputes both roots from the path.
    ///
    /// # Errors
    ///
    /// # Refusals
    /// proof-invalid; schema-invalid where the proof is of another version.
    pub fn check(&self) -> Result<(), Refusal> {
        check_schema(&self.schema, LOG_PROOF_SCHEMA)?;
        let old = Size { size: self.old_size, root: self.old_root };
        let new = Size { size: self.new_size, root: self.new_root };
        if is_consistent(old, new, &self.path) {
            return Ok(());
        }
        let expected = format!(
            "a path that leads to root {} at size {} and to root {} at size {}",
            old.root, old.size, new.root, new.size
        );
        Err(refuse(Rule::ProofInvalid, "the proof", expected, format!("a path of {} that does not", self.path.len())))
    }
}

/// A proof that was read and not checked yet.
#[derive(Debug, Clone)]
pub enum Proof {
    /// Of a row
    Row(Box<RowProof>),
    /// Of a log's growth
    Log(LogProof),
}

impl Proof {
    /// Reads a proof document, of whichever kind it says it is.
    ///
    /// # Errors
    ///
    /// # Refusals
    /// json-not-canonical, schema-invalid.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let canonical = |error: crate::canon::json::JsonError| {
            refuse(Rule::from(&error), "the proof", "a canonical proof document", error.to_string())
        };
        let json = Json::parse(bytes).map_err(canonical)?;
        match json.get("schema") {
            Some(Json::String(schema)) if schema == ROW_PROOF_SCHEMA => {
                document::decode(bytes).map(Box::new).map(Self::Row).map_err(canonical)
            }
            Some(Json::String(schema)) if schema == LOG_PROOF_SCHEMA => {
                document::decode(bytes).map(Self::Log).map_err(canonical)
            }
            other => {
                let found = other.map_or("none".to_owned(), Json::to_text);
                let expected = format!("schema {ROW_PROOF_SCHEMA} or {LOG_PROOF_SCHEMA}");
                Err(refuse(Rule::SchemaInvalid, "the proof", expected, found))
            }
        }
    }
}

/// What `bytes` of a head must be.
pub const HEAD_BYTES: &str = "bytes in decimal, from 0 to 2^63 − 1";

/// Everything that is wrong with an entry by itself, but for its length.
///
/// # Refusals
/// schema-invalid, json-not-canonical where `at` is no time.
#[must_use]
pub fn check_entry(entry: &Entry, subject: &Subject) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let mut refuse = |rule, expected: &str, found| {
        refusals.push(Refusal::new(rule, subject.clone(), expected, found));
    };
    if entry.schema != entry.expected_schema() {
        refuse(Rule::SchemaInvalid, &format!("schema {}", entry.expected_schema()), entry.schema.clone());
    }
    if decimal(&entry.at).is_none() {
        refuse(Rule::JsonNotCanonical, "at in decimal, from 0 to 2^63 − 1", format!("{:?}", entry.at));
    }
    refusals
}

/// The refusal (limit-exceeded) of an entry of so many bytes.
#[must_use]
pub fn entry_too_long(bytes: u64, subject: Subject) -> Refusal {
    Refusal::new(Rule::LimitExceeded, subject, format!("at most {MAX_ENTRY} bytes"), format!("{bytes} bytes"))
}

/// Everything that is wrong with a bundle's header by itself: schemas, and the proofs that its entries stand in its log.
///
/// # Refusals
/// schema-invalid, limit-exceeded, nothing-to-verify, proof-invalid, log-inconsistent where the head is not that of the entries, json-not-canonical
/// where they are out of order, or where a number is none.
#[must_use]
pub fn check_header(header: &BundleHeader) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let file = "the bundle's header";
    let schemas = [(header.schema.as_str(), BUNDLE_SCHEMA), (header.head.schema.as_str(), HEAD_SCHEMA)];
    for (found, expected) in schemas.into_iter().filter(|(found, expected)| found != expected) {
        refusals.push(refuse(Rule::SchemaInvalid, file, format!("schema {expected}"), found));
    }
    if header.entries.is_empty() {
        refusals.push(refuse(Rule::NothingToVerify, file, "entries", "none"));
    }
    if !header.entries.is_sorted_by(|a, b| a.index < b.index) {
        refusals.push(refuse(
            Rule::JsonNotCanonical,
            file,
            "entries in the order of the log, each once",
            "another order",
        ));
    }
    if !is_origin(&header.head.origin) {
        let expected = "an origin of 32 lower-case hexadecimal digits";
        refusals.push(refuse(Rule::JsonNotCanonical, file, expected, format!("{:?}", header.head.origin)));
    }
    let lines: Vec<Vec<u8>> =
        header.entries.iter().map(|proved| document::encode(&proved.entry).unwrap_or_default()).collect();
    for (proved, line) in header.entries.iter().zip(&lines) {
        let subject = Subject::File(format!("entry {} of the log in the bundle's header", proved.index));
        refusals.extend(check_entry(&proved.entry, &subject));
        if line.len() > MAX_ENTRY {
            refusals.push(entry_too_long(long(line.len()), subject));
        }
        let root = root_from_inclusion(leaf_hash(line), proved.index, header.head.size, &proved.path);
        if root != Some(header.head.root) {
            let found = root.map_or("a path that does not fit".to_owned(), |root| root.to_string());
            let expected = format!("a path from entry {} to the root {} of the head", proved.index, header.head.root);
            refusals.push(refuse(Rule::ProofInvalid, file, expected, found));
        }
    }
    let known: u64 = lines.iter().map(|line| long(line.len()) + 1).sum();
    let bytes = decimal(&header.head.bytes);
    if bytes.is_none() {
        refusals.push(refuse(Rule::JsonNotCanonical, file, HEAD_BYTES, format!("{:?}", header.head.bytes)));
    }
    let whole = long(lines.len()) == header.head.size;
    // Of entries that are not proved nothing follows for the head.
    if refusals.is_empty() && !bytes.is_some_and(|bytes| if whole { bytes == known } else { bytes > known }) {
        let expected = format!("a head of {} {known} bytes of entries", if whole { "exactly" } else { "more than" });
        refusals.push(refuse(Rule::LogInconsistent, file, expected, format!("{:?}", header.head.bytes)));
    }
    refusals
}
