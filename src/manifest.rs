//! The sealed documents: capture, manifest, log entry, head, store, ref, header of a bundle.
//!
//! Each is a serde type whose canonical bytes are the document (`canon::document`). They hold digests and counts, never scores.
//! See `specs/format-v1.md`, sections 6, 7, 9 and 14.

use serde::{Deserialize, Serialize};

use crate::canon::document;
use crate::canon::json::JsonError;
use crate::digest::{Blake3, Sha256};
use crate::id::{CaptureId, ObjectId};
use crate::row::MAX_INT64;

/// `schema` of a capture document.
pub const CAPTURE_SCHEMA: &str = "witnessmark.capture/v1";
/// `schema` of a manifest.
pub const MANIFEST_SCHEMA: &str = "witnessmark.manifest/v1";
/// `schema` of a log entry.
pub const ENTRY_SCHEMA: &str = "witnessmark.entry/v1";
/// `schema` of a log entry that is about a document.
pub const ACT_SCHEMA: &str = "witnessmark.act/v1";
/// `schema` of the log's head.
pub const HEAD_SCHEMA: &str = "witnessmark.head/v1";
/// `schema` of store.json.
pub const STORE_SCHEMA: &str = "witnessmark.store/v1";
/// `schema` of a ref.
pub const REF_SCHEMA: &str = "witnessmark.ref/v1";
/// `schema` of a bundle's header.
pub const BUNDLE_SCHEMA: &str = "witnessmark.bundle/v1";
/// The largest manifest or bundle header, in bytes.
pub const MAX_DOCUMENT: u64 = 64 << 20;
/// The largest entry of a log, in bytes.
pub const MAX_ENTRY: usize = 64 << 10;
/// The largest number of attachments.
pub const MAX_ATTACHMENTS: usize = 65_536;
/// The largest number of rows of a capture.
pub const MAX_ROWS: u64 = (1 << 31) - 1;

/// The number that a document has as text: in decimal, without more digits than it needs, from 0 to 2^63 − 1.
#[must_use]
pub fn decimal(text: &str) -> Option<u64> {
    text.parse::<u64>().ok().filter(|&value| value <= MAX_INT64 && value.to_string() == text)
}

/// Whether a text is the origin of a log: 32 lower-case hexadecimal digits.
#[must_use]
pub fn is_origin(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c))
}

/// The bytes of a sealed file, by digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunJson {
    /// Length
    pub bytes: u64,
    /// SHA-256
    pub sha256: Sha256,
}

/// An opaque file that came with a capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// BLAKE3 of the file, which is also its object id
    pub blake3: Blake3,
    /// Length
    pub bytes: u64,
    /// Path below `attachments/`
    pub path: String,
}

/// What a capture id names: everything that was captured, and nothing about how it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureDocument {
    /// Sorted by the bytes of their paths
    pub attachments: Vec<Attachment>,
    /// False for a run that never ended
    pub complete: bool,
    /// Merkle tree hash of the row records in key order
    pub row_root: Sha256,
    /// Number of rows
    pub rows: u64,
    /// run.json
    pub run_json: RunJson,
    /// [`CAPTURE_SCHEMA`]
    pub schema: String,
    /// Merkle tree hash of the score leaves in key order; none in a baseline
    pub score_root: Option<Sha256>,
    /// Values a row; none in a baseline
    pub vocab_size: Option<u64>,
}

impl CaptureDocument {
    /// The capture id: SHA-256 of the canonical bytes.
    ///
    /// # Errors
    /// When a number is beyond what a document may hold.
    pub fn id(&self) -> Result<CaptureId, JsonError> {
        Ok(CaptureId(Sha256::of(&document::encode(self)?)))
    }
}

/// How the pages of a scores shard are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// Four zstd frames a page
    Zstd,
    /// One LZ4 block a page
    Lz4,
    /// Not at all
    None,
}

impl Codec {
    /// All codecs.
    pub const ALL: [Codec; 3] = [Codec::Zstd, Codec::Lz4, Codec::None];

    /// The name in a manifest.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Codec::Zstd => "zstd",
            Codec::Lz4 => "lz4",
            Codec::None => "none",
        }
    }
}

/// A rows shard of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowShard {
    /// Length of the object
    pub bytes: u64,
    /// Its id
    pub object: ObjectId,
    /// Rows in it
    pub rows: u64,
}

/// A scores shard of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreShard {
    /// Length of the object
    pub bytes: u64,
    /// How its pages are compressed
    pub codec: Codec,
    /// Its id
    pub object: ObjectId,
    /// Rows in it
    pub rows: u64,
}

/// The program that wrote a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Writer {
    /// Its name
    pub name: String,
    /// Its version
    pub version: String,
}

/// This program and its version, as log entries and receipts name it.
pub const TOOL: &str = concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"));

impl Writer {
    /// This program.
    #[must_use]
    pub fn this() -> Self {
        Self { name: env!("CARGO_PKG_NAME").to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// One way in which a capture is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The capture document
    pub capture: CaptureDocument,
    /// The rows, in key order
    pub row_shards: Vec<RowShard>,
    /// run.json
    pub run_object: ObjectId,
    /// [`MANIFEST_SCHEMA`]
    pub schema: String,
    /// The scores, in key order; none in a baseline
    pub score_shards: Vec<ScoreShard>,
    /// Who wrote it
    pub writer: Writer,
}

impl Manifest {
    /// Bytes of the objects the manifest names, and of the scores as f32.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let rows = self.row_shards.iter().map(|shard| shard.bytes);
        let scores = self.score_shards.iter().map(|shard| shard.bytes);
        let attachments = self.capture.attachments.iter().map(|attachment| attachment.bytes);
        let canonical = self.capture.rows.saturating_mul(self.capture.vocab_size.unwrap_or(0)).saturating_mul(4);
        let parts = rows.chain(scores).chain(attachments).chain([self.capture.run_json.bytes, canonical]);
        parts.fold(0, u64::saturating_add)
    }

    /// All objects the manifest names, each with its length and what it is, in the manifest's order.
    #[must_use]
    pub fn objects(&self) -> Vec<(ObjectId, u64, String)> {
        let mut out = vec![(self.run_object, self.capture.run_json.bytes, "run.json".to_owned())];
        let numbered = |what: &str, n: usize| format!("{what} {n}");
        out.extend(self.row_shards.iter().enumerate().map(|(n, s)| (s.object, s.bytes, numbered("rows shard", n))));
        out.extend(self.score_shards.iter().enumerate().map(|(n, s)| (s.object, s.bytes, numbered("scores shard", n))));
        let attachments = self.capture.attachments.iter();
        out.extend(attachments.map(|a| (ObjectId(a.blake3), a.bytes, format!("attachment {:?}", a.path))));
        out
    }
}

/// What an entry of the log records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// A capture was sealed, by this manifest
    Seal(CaptureId, ObjectId),
    /// A document was put down
    Document(DocumentAct, Document),
}

/// What was done with a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DocumentAct {
    /// A spec was declared
    Spec,
    /// A result was derived
    Qualify,
}

impl DocumentAct {
    /// The name in an entry.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DocumentAct::Spec => "spec",
            DocumentAct::Qualify => "qualify",
        }
    }
}

/// A document by both of its digests: where it is, and what people cite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Document {
    /// BLAKE3 of its bytes
    pub object: ObjectId,
    /// SHA-256 of its bytes
    pub subject: Sha256,
}

impl Document {
    /// The document with these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self { object: ObjectId(Blake3::of(bytes)), subject: Sha256::of(bytes) }
    }
}

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "EntryForm", into = "EntryForm")]
pub struct Entry {
    /// What was done
    pub act: Act,
    /// When, by the sealer's clock: Unix time in nanoseconds
    pub at: String,
    /// [`ENTRY_SCHEMA`] or [`ACT_SCHEMA`]
    pub schema: String,
    /// With which program
    pub tool: String,
}

impl Entry {
    /// An entry.
    #[must_use]
    pub fn new(act: Act, at: String, tool: String) -> Self {
        let mut entry = Self { act, at, schema: String::new(), tool };
        entry.schema = entry.expected_schema().to_owned();
        entry
    }

    /// Reads an entry's line.
    ///
    /// # Errors
    /// When it is not the canonical bytes of an entry.
    pub fn decode(line: &[u8]) -> Result<Self, JsonError> {
        Self::plain(line).map_or_else(|| document::decode(line), Ok)
    }

    /// The entry of a line that has no escapes, as nearly all: then a line of this very shape is canonical as it stands. None for any other line.
    fn plain(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        // To the end, so that compilers make whole vectors of it.
        if line.bytes().fold(false, |escaped, c| escaped | (c < b' ') | (c == b'\\')) {
            return None;
        }
        let mut parts = [""; 25];
        let mut split = line.split('"');
        parts.iter_mut().zip(split.by_ref()).for_each(|(part, found)| *part = found);
        if split.next().is_some() {
            return None;
        }
        #[rustfmt::skip]
        let (act, at, schema, tool) = match parts {
            ["{", "act", ":", "seal", ",", "at", ":", at, ",", "capture", ":", capture, ",", "manifest", ":", manifest, ",",
                "schema", ":", schema, ",", "tool", ":", tool, "}"] => {
                (Act::Seal(capture.parse().ok()?, manifest.parse().ok()?), at, schema, tool)
            }
            ["{", "act", ":", act, ",", "at", ":", at, ",", "object", ":", object, ",", "schema", ":", schema, ",",
                "subject", ":", subject, ",", "tool", ":", tool, "}"] => {
                let act = [DocumentAct::Spec, DocumentAct::Qualify].into_iter().find(|known| known.name() == act)?;
                (Act::Document(act, Document { object: object.parse().ok()?, subject: subject.parse().ok()? }), at, schema, tool)
            }
            _ => return None,
        };
        Some(Self { act, at: at.to_owned(), schema: schema.to_owned(), tool: tool.to_owned() })
    }

    /// The schema that an entry of this act has.
    #[must_use]
    pub fn expected_schema(&self) -> &'static str {
        match self.act {
            Act::Seal(..) => ENTRY_SCHEMA,
            Act::Document(..) => ACT_SCHEMA,
        }
    }

    /// The capture that was sealed, and its manifest; none where the act is about a document.
    #[must_use]
    pub fn sealed(&self) -> Option<(CaptureId, ObjectId)> {
        match self.act {
            Act::Seal(capture, manifest) => Some((capture, manifest)),
            Act::Document(..) => None,
        }
    }

    /// The document that was put down, and what was done; none where the act is about a capture.
    #[must_use]
    pub fn document(&self) -> Option<(DocumentAct, Document)> {
        match self.act {
            Act::Seal(..) => None,
            Act::Document(act, document) => Some((act, document)),
        }
    }
}

/// The two forms in which entries are written.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum EntryForm {
    Capture(CaptureForm),
    Document(DocumentForm),
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaptureForm {
    act: SealWord,
    at: String,
    capture: CaptureId,
    manifest: ObjectId,
    schema: String,
    tool: String,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SealWord {
    Seal,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DocumentForm {
    act: DocumentAct,
    at: String,
    object: ObjectId,
    schema: String,
    subject: Sha256,
    tool: String,
}

impl From<EntryForm> for Entry {
    fn from(form: EntryForm) -> Self {
        match form {
            EntryForm::Capture(CaptureForm { at, capture, manifest, schema, tool, .. }) => {
                Self { act: Act::Seal(capture, manifest), at, schema, tool }
            }
            EntryForm::Document(DocumentForm { act, at, object, schema, subject, tool }) => {
                Self { act: Act::Document(act, Document { object, subject }), at, schema, tool }
            }
        }
    }
}

impl From<Entry> for EntryForm {
    fn from(Entry { act, at, schema, tool }: Entry) -> Self {
        match act {
            Act::Seal(capture, manifest) => {
                EntryForm::Capture(CaptureForm { act: SealWord::Seal, at, capture, manifest, schema, tool })
            }
            Act::Document(act, Document { object, subject }) => {
                EntryForm::Document(DocumentForm { act, at, object, schema, subject, tool })
            }
        }
    }
}

/// The head of the log: what readers trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// Length of the entries, in bytes
    pub bytes: String,
    /// The store's origin
    pub origin: String,
    /// Merkle tree hash of the entries
    pub root: Sha256,
    /// [`HEAD_SCHEMA`]
    pub schema: String,
    /// Number of entries
    pub size: u64,
}

/// store.json.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreDocument {
    /// 32 random hexadecimal digits, made with the store: order holds only within one origin
    pub origin: String,
    /// [`STORE_SCHEMA`]
    pub schema: String,
}

/// A name for a capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ref {
    /// Which capture
    pub capture: CaptureId,
    /// The name, usually a run id
    pub name: String,
    /// [`REF_SCHEMA`]
    pub schema: String,
}

/// An entry of a log, with what proves its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvedEntry {
    /// The entry
    pub entry: Entry,
    /// Its place in the log, from 0
    pub index: u64,
    /// Inclusion path to the root of the head
    pub path: Vec<Sha256>,
}

/// An object of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledObject {
    /// Length
    pub bytes: u64,
    /// Id
    pub object: ObjectId,
}

/// What stands in front of a bundle's objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleHeader {
    /// The entries of the bundled captures, in the order of the log
    pub entries: Vec<ProvedEntry>,
    /// The head of the log that they come from
    pub head: Head,
    /// All objects, in the order in which they follow
    pub objects: Vec<BundledObject>,
    /// [`BUNDLE_SCHEMA`]
    pub schema: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_any_document_is_and_no_changed_byte_makes_a_difference() {
        let document = Document::of(b"a spec");
        let acts = [
            Act::Seal(CaptureId(Sha256([0xab; 32])), document.object),
            Act::Document(DocumentAct::Spec, document),
            Act::Document(DocumentAct::Qualify, document),
        ];
        let same = |line: &[u8]| {
            let found = Entry::decode(line);
            assert_eq!(found, document::decode(line), "{}", line.escape_ascii());
            found.is_ok()
        };
        for act in acts {
            for tool in ["witnessmark 0.1.0", "", "é \u{7f} }", "a \" and a \\", "a\nb", "\",\"tool\":\""] {
                let line = document::encode(&Entry::new(act, "17".to_owned(), tool.to_owned())).unwrap();
                assert!(same(&line));
                for at in 0..line.len() {
                    for other in *b"\"\\,:{}0aF \x1f\x7f\xc3" {
                        let mut changed = line.clone();
                        changed[at] = other;
                        same(&changed);
                    }
                    same(&line[..at]);
                    same(&[&line[..at], b"\"", &line[at..]].concat());
                    same(&[&line[..at], b" ", &line[at..]].concat());
                }
                assert!(!same(&[&line[..], b"\n"].concat()));
            }
        }
        let of_two = br#"{"act":"seal","at":"17","object":"","schema":"","subject":"","tool":""}"#;
        assert!(!same(of_two));
    }
}
