//! Rows: one generated position of one request, with its witnesses.
//!
//! [`FIELDS`] is the one table that decides the row record, the columns of a rows shard and the keys of rows.jsonl; the
//! rest of the house walks it. In comes a JSON object or column values, out goes a [`Row`] and its record bytes.
//! Always holds: no floats, and the file's row order is no part of a record. See `specs/format-v1.md`, section 3.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;

use crate::canon::json::Json;
use crate::digest::{Blake3, Sha256};
use crate::id::{Nanos, RequestKey, RowKey, TokenId};
use crate::merkle::Tree;

/// Domain of a row record.
pub const ROW_DOMAIN: &[u8] = b"witnessmark.row/v1\0";
/// Domain of a score leaf.
pub const SCORE_DOMAIN: &[u8] = b"witnessmark.score/v1\0";
/// The largest int32 of a row: 2^31 − 1.
pub const MAX_INT32: u64 = (1 << 31) - 1;
/// The largest int64 of a row: 2^63 − 1.
pub const MAX_INT64: u64 = (1 << 63) - 1;
/// The longest request id, nonce, run id or path, in bytes.
pub const MAX_NAME: usize = 1024;
/// The longest canonical `x`, in bytes.
pub const MAX_X: usize = 64 << 10;

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 0 to 2^31 − 1, 4 bytes
    Int32,
    /// 0 to 2^63 − 1, 8 bytes
    Int64,
    /// 32 bytes
    Digest,
    /// UTF-8
    Text,
}

/// A field of a row.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Tag in the record; 0 for the parts of the key, which have none
    pub tag: u8,
    /// Name in rows.jsonl and in the rows shard
    pub name: &'static str,
    /// Type
    pub kind: Kind,
    /// Whether every row has it
    pub required: bool,
}

const fn field(tag: u8, name: &'static str, kind: Kind, required: bool) -> Field {
    Field { tag, name, kind, required }
}

/// The parts of the key, then all fields by tag.
pub const FIELDS: [Field; 26] = [
    field(0, "prompt_index", Kind::Int32, true),
    field(0, "sample_index", Kind::Int32, true),
    field(0, "position", Kind::Int32, true),
    field(1, "request_id", Kind::Text, true),
    field(2, "phase", Kind::Text, true),
    field(3, "prefix_sha256", Kind::Digest, true),
    field(4, "token_id", Kind::Int32, true),
    field(5, "sampled_token_id", Kind::Int32, false),
    field(6, "forced_token_id", Kind::Int32, false),
    field(7, "argmax", Kind::Int32, false),
    field(8, "runner_up", Kind::Int32, false),
    field(9, "captured_seq", Kind::Int64, false),
    field(10, "forced_seq", Kind::Int64, false),
    field(11, "step", Kind::Int64, false),
    field(12, "captured_at_ns", Kind::Int64, false),
    field(13, "forced_at_ns", Kind::Int64, false),
    field(14, "scores_modified_at_ns", Kind::Int64, false),
    field(15, "batch_size", Kind::Int32, false),
    field(16, "query_len", Kind::Int32, false),
    field(17, "kv_len", Kind::Int32, false),
    field(18, "scores_sha256", Kind::Digest, false),
    field(19, "scores_blake3", Kind::Digest, false),
    field(20, "chain_sha256", Kind::Digest, false),
    field(21, "run_nonce", Kind::Text, false),
    field(22, "x", Kind::Text, false),
    field(23, "score_digest", Kind::Digest, false),
];

/// A field's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Of [`Kind::Int32`]
    Int32(u32),
    /// Of [`Kind::Int64`]
    Int64(u64),
    /// Of [`Kind::Digest`]
    Digest([u8; 32]),
    /// Of [`Kind::Text`]
    Text(Arc<str>),
}

/// Where in a run a row was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The forward pass over the prompt
    #[default]
    Prefill,
    /// One token on top of a KV cache
    Decode,
    /// A later position by a forward pass that began inside the prompt
    Recomputed,
}

impl Phase {
    /// All phases.
    pub const ALL: [Phase; 3] = [Phase::Prefill, Phase::Decode, Phase::Recomputed];

    /// The name in rows.jsonl.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Phase::Prefill => "prefill",
            Phase::Decode => "decode",
            Phase::Recomputed => "recomputed",
        }
    }
}

/// One row: its key and what the adapter saw.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of FIELDS, and the format document describes them")]
pub struct Row {
    pub key: RowKey,
    pub request_id: Arc<str>,
    pub phase: Phase,
    pub prefix_sha256: Sha256,
    pub token_id: TokenId,
    pub sampled_token_id: Option<TokenId>,
    pub forced_token_id: Option<TokenId>,
    pub argmax: Option<TokenId>,
    pub runner_up: Option<TokenId>,
    pub captured_seq: Option<u64>,
    pub forced_seq: Option<u64>,
    pub step: Option<u64>,
    pub captured_at_ns: Option<Nanos>,
    pub forced_at_ns: Option<Nanos>,
    pub scores_modified_at_ns: Option<Nanos>,
    pub batch_size: Option<u32>,
    pub query_len: Option<u32>,
    pub kv_len: Option<u32>,
    pub scores_sha256: Option<Sha256>,
    pub scores_blake3: Option<Blake3>,
    pub chain_sha256: Option<Sha256>,
    pub run_nonce: Option<Arc<str>>,
    pub x: Option<Arc<str>>,
    pub score_digest: Option<Blake3>,
}

impl Default for Row {
    fn default() -> Self {
        Self {
            key: RowKey::default(),
            request_id: Arc::from(""),
            phase: Phase::default(),
            prefix_sha256: Sha256([0; 32]),
            token_id: TokenId(0),
            sampled_token_id: None,
            forced_token_id: None,
            argmax: None,
            runner_up: None,
            captured_seq: None,
            forced_seq: None,
            step: None,
            captured_at_ns: None,
            forced_at_ns: None,
            scores_modified_at_ns: None,
            batch_size: None,
            query_len: None,
            kv_len: None,
            scores_sha256: None,
            scores_blake3: None,
            chain_sha256: None,
            run_nonce: None,
            x: None,
            score_digest: None,
        }
    }
}

/// Why a value cannot stand in a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldFault {
    /// Which field
    pub field: &'static str,
    /// What would be acceptable
    pub expected: String,
    /// What there is
    pub found: String,
}

/// Keeps one copy of each text that many rows share.
#[derive(Default)]
pub struct Interner(BTreeSet<Arc<str>>);

impl Interner {
    /// The shared copy of `text`.
    pub fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let shared: Arc<str> = Arc::from(text);
        self.0.insert(Arc::clone(&shared));
        shared
    }
}

/// The rows of two captures with equal key and equal prefix: what can be compared. Both in key order.
pub fn at_equal_prefixes<'a, 'b>(a: &'a [Row], b: &'b [Row]) -> impl Iterator<Item = (&'a Row, &'b Row)> {
    places_at_equal_prefixes(a, b).filter_map(|(at_a, at_b)| Some((a.get(at_a)?, b.get(at_b)?)))
}

/// As [`at_equal_prefixes`], by their places.
pub fn places_at_equal_prefixes(a: &[Row], b: &[Row]) -> impl Iterator<Item = (usize, usize)> {
    let (mut at_a, mut at_b) = (0, 0);
    std::iter::from_fn(move || {
        while let (Some(row_a), Some(row_b)) = (a.get(at_a), b.get(at_b)) {
            match row_a.key.cmp(&row_b.key) {
                Ordering::Less => at_a += 1,
                Ordering::Greater => at_b += 1,
                Ordering::Equal => {
                    let places = (at_a, at_b);
                    at_a += 1;
                    at_b += 1;
                    if row_a.prefix_sha256 == row_b.prefix_sha256 {
                        return Some(places);
                    }
                }
            }
        }
        None
    })
}

/// Whether both rows say in which company they were computed, and say the same.
#[must_use]
pub fn same_shape(a: &Row, b: &Row) -> bool {
    let shape = |row: &Row| Some((row.batch_size?, row.query_len?, row.kv_len?));
    shape(a).is_some() && shape(a) == shape(b)
}

impl Row {
    /// The value of a field, by its place in [`FIELDS`]; none where the row does not have it.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Value> {
        let token = |id: Option<TokenId>| id.map(|TokenId(id)| Value::Int32(id));
        let nanos = |time: Option<Nanos>| time.map(|Nanos(time)| Value::Int64(time));
        let text = |text: &Option<Arc<str>>| text.clone().map(Value::Text);
        match index {
            0 => Some(Value::Int32(self.key.request.prompt_index)),
            1 => Some(Value::Int32(self.key.request.sample_index)),
            2 => Some(Value::Int32(self.key.position)),
            3 => Some(Value::Text(Arc::clone(&self.request_id))),
            4 => Some(Value::Text(Arc::from(self.phase.name()))),
            5 => Some(Value::Digest(self.prefix_sha256.0)),
            6 => token(Some(self.token_id)),
            7 => token(self.sampled_token_id),
            8 => token(self.forced_token_id),
            9 => token(self.argmax),
            10 => token(self.runner_up),
            11 => self.captured_seq.map(Value::Int64),
            12 => self.forced_seq.map(Value::Int64),
            13 => self.step.map(Value::Int64),
            14 => nanos(self.captured_at_ns),
            15 => nanos(self.forced_at_ns),
            16 => nanos(self.scores_modified_at_ns),
            17 => self.batch_size.map(Value::Int32),
            18 => self.query_len.map(Value::Int32),
            19 => self.kv_len.map(Value::Int32),
            20 => self.scores_sha256.map(|digest| Value::Digest(digest.0)),
            21 => self.scores_blake3.map(|digest| Value::Digest(digest.0)),
            22 => self.chain_sha256.map(|digest| Value::Digest(digest.0)),
            23 => text(&self.run_nonce),
            24 => text(&self.x),
            25 => self.score_digest.map(|digest| Value::Digest(digest.0)),
            _ => None,
        }
    }

    /// Sets a field, by its place in [`FIELDS`].
    ///
    /// # Errors
    /// When the value is not of the field's type or is beyond its limit.
    pub fn set(&mut self, index: usize, value: Value) -> Result<(), FieldFault> {
        let name = FIELDS.get(index).map_or("", |field| field.name);
        let fault = |expected: String, found: String| Err(FieldFault { field: name, expected, found });
        match &value {
            Value::Int32(n) if u64::from(*n) > MAX_INT32 => {
                return fault(format!("at most {MAX_INT32}"), n.to_string());
            }
            Value::Int64(n) if *n > MAX_INT64 => return fault(format!("at most {MAX_INT64}"), n.to_string()),
            Value::Text(text) if name == "x" => {
                if text.len() > MAX_X {
                    return fault(format!("at most {MAX_X} bytes"), format!("{} bytes", text.len()));
                }
                let json = Json::parse(text.as_bytes());
                if json.ok().and_then(|json| read_x(&json).ok()).as_deref() != Some(text) {
                    return fault(format!("{X} in canonical form"), "something else".to_owned());
                }
            }
            Value::Text(text) if text.is_empty() || text.len() > MAX_NAME => {
                return fault(format!("1 to {MAX_NAME} bytes"), format!("{} bytes", text.len()));
            }
            _ => {}
        }
        match (index, value) {
            (0, Value::Int32(n)) => self.key.request.prompt_index = n,
            (1, Value::Int32(n)) => self.key.request.sample_index = n,
            (2, Value::Int32(n)) => self.key.position = n,
            (3, Value::Text(text)) => self.request_id = text,
            (4, Value::Text(text)) => match Phase::ALL.into_iter().find(|phase| phase.name() == &*text) {
                Some(phase) => self.phase = phase,
                None => return fault("prefill, decode or recomputed".to_owned(), format!("{text:?}")),
            },
            (5, Value::Digest(digest)) => self.prefix_sha256 = Sha256(digest),
            (6, Value::Int32(n)) => self.token_id = TokenId(n),
            (7, Value::Int32(n)) => self.sampled_token_id = Some(TokenId(n)),
            (8, Value::Int32(n)) => self.forced_token_id = Some(TokenId(n)),
            (9, Value::Int32(n)) => self.argmax = Some(TokenId(n)),
            (10, Value::Int32(n)) => self.runner_up = Some(TokenId(n)),
            (11, Value::Int64(n)) => self.captured_seq = Some(n),
            (12, Value::Int64(n)) => self.forced_seq = Some(n),
            (13, Value::Int64(n)) => self.step = Some(n),
            (14, Value::Int64(n)) => self.captured_at_ns = Some(Nanos(n)),
            (15, Value::Int64(n)) => self.forced_at_ns = Some(Nanos(n)),
            (16, Value::Int64(n)) => self.scores_modified_at_ns = Some(Nanos(n)),
            (17, Value::Int32(n)) => self.batch_size = Some(n),
            (18, Value::Int32(n)) => self.query_len = Some(n),
            (19, Value::Int32(n)) => self.kv_len = Some(n),
            (20, Value::Digest(digest)) => self.scores_sha256 = Some(Sha256(digest)),
            (21, Value::Digest(digest)) => self.scores_blake3 = Some(Blake3(digest)),
            (22, Value::Digest(digest)) => self.chain_sha256 = Some(Sha256(digest)),
            (23, Value::Text(text)) => self.run_nonce = Some(text),
            (24, Value::Text(text)) => self.x = Some(text),
            (25, Value::Digest(digest)) => self.score_digest = Some(Blake3(digest)),
            (_, value) => return fault("a value of the field's type".to_owned(), format!("{value:?}")),
        }
        Ok(())
    }

    /// The request of this row.
    #[must_use]
    pub fn request(&self) -> RequestKey {
        self.key.request
    }

    /// Writes the row record (format section 3.2) into `out`, replacing what is there.
    pub fn write_record(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(ROW_DOMAIN);
        out.extend_from_slice(&self.key.to_bytes());
        for (index, field) in FIELDS.iter().enumerate().filter(|(_, field)| field.tag != 0) {
            let Some(value) = self.get(index) else { continue };
            out.push(field.tag);
            let mut put = |bytes: &[u8]| {
                // Lengths are bounded by MAX_X, far below u32::MAX.
                out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
                out.extend_from_slice(bytes);
            };
            match value {
                Value::Int32(n) => put(&n.to_le_bytes()),
                Value::Int64(n) => put(&n.to_le_bytes()),
                Value::Digest(digest) => put(&digest),
                Value::Text(text) => put(text.as_bytes()),
            }
        }
    }

    /// Reads a row record; none where the bytes are not exactly those that [`Row::write_record`] gives for some row.
    #[must_use]
    pub fn from_record(record: &[u8]) -> Option<Row> {
        let mut rest = record.strip_prefix(ROW_DOMAIN)?;
        let mut row = Row::default();
        for index in 0..3 {
            let (part, after) = rest.split_first_chunk()?;
            row.set(index, Value::Int32(u32::from_le_bytes(*part))).ok()?;
            rest = after;
        }
        while let Some((tag, after)) = rest.split_first() {
            let (len, after) = after.split_first_chunk()?;
            let (value, after) = after.split_at_checked(usize::try_from(u32::from_le_bytes(*len)).ok()?)?;
            let index = FIELDS.iter().position(|field| field.tag == *tag && field.tag != 0)?;
            let value = match FIELDS.get(index)?.kind {
                Kind::Int32 => Value::Int32(u32::from_le_bytes(value.try_into().ok()?)),
                Kind::Int64 => Value::Int64(u64::from_le_bytes(value.try_into().ok()?)),
                Kind::Digest => Value::Digest(value.try_into().ok()?),
                Kind::Text => Value::Text(Arc::from(std::str::from_utf8(value).ok()?)),
            };
            row.set(index, value).ok()?;
            rest = after;
        }
        let mut again = Vec::new();
        row.write_record(&mut again);
        (again == record).then_some(row)
    }

    /// Writes the score leaf's entry (format section 5) into `out`; false where the row has no score digest.
    pub fn write_score_entry(&self, out: &mut Vec<u8>) -> bool {
        let Some(digest) = self.score_digest else { return false };
        out.clear();
        out.extend_from_slice(SCORE_DOMAIN);
        out.extend_from_slice(&self.key.to_bytes());
        out.extend_from_slice(&self.prefix_sha256.0);
        out.extend_from_slice(&digest.0);
        true
    }

    /// Reads an object of rows.jsonl; also gives its `row`, if it has one.
    ///
    /// # Errors
    /// All faults: unknown keys, wrong types, values out of range, required fields that are missing.
    pub fn from_json(json: &Json, interner: &mut Interner) -> Result<(Row, Option<u64>), Vec<FieldFault>> {
        let mut faults = Vec::new();
        let Json::Object(members) = json else {
            let found = json.type_name().to_owned();
            return Err(vec![FieldFault { field: "row", expected: "an object".to_owned(), found }]);
        };
        let mut row = Row::default();
        let mut number = None;
        let mut seen = [false; FIELDS.len()];
        for (name, value) in members {
            if name == "row" && *value == Json::Null {
                continue;
            }
            if name == "row" {
                match integer(value, MAX_INT64) {
                    Some(n) => number = Some(n),
                    None => faults.push(type_fault("row", "an integer", value)),
                }
                continue;
            }
            let known = FIELDS.iter().enumerate().find(|(_, field)| field.name == name && field.name != "score_digest");
            let Some((index, field)) = known else {
                let expected = "a key that the schema knows (others belong into \"x\")".to_owned();
                faults.push(FieldFault { field: "row", expected, found: format!("{name:?}") });
                continue;
            };
            if *value == Json::Null {
                continue;
            }
            let result = read_value(field, value, interner).and_then(|value| row.set(index, value));
            match result {
                Ok(()) => seen[index] = true,
                Err(fault) => {
                    seen[index] = true;
                    faults.push(fault);
                }
            }
        }
        for (field, seen) in FIELDS.iter().zip(seen) {
            if field.required && !seen && field.name != "sample_index" {
                let fault = FieldFault { field: field.name, expected: "a value".to_owned(), found: "none".to_owned() };
                faults.push(fault);
            }
        }
        if faults.is_empty() { Ok((row, number)) } else { Err(faults) }
    }
}

/// All digests that a row claims for its scores.
pub fn claims(row: &Row) -> impl Iterator<Item = [u8; 32]> + use<> {
    let sha256 = row.scores_sha256.map(|digest| digest.0);
    let blake3 = [row.scores_blake3, row.score_digest].map(|digest| digest.map(|digest| digest.0));
    std::iter::once(sha256).chain(blake3).flatten()
}

/// Row root and score root (format section 5) of rows in key order; no score root where no row has a score digest.
#[must_use]
pub fn roots(rows: &[Row]) -> (Sha256, Option<Sha256>) {
    let (mut row_tree, mut score_tree) = (Tree::default(), Tree::default());
    let mut buffer = Vec::new();
    for row in rows {
        row.write_record(&mut buffer);
        row_tree.push(&buffer);
        if row.write_score_entry(&mut buffer) {
            score_tree.push(&buffer);
        }
    }
    (row_tree.root(), (score_tree.size() > 0).then(|| score_tree.root()))
}

fn type_fault(field: &'static str, expected: &str, found: &Json) -> FieldFault {
    let text = found.to_text();
    let found = if text.len() <= 80 { text } else { found.type_name().to_owned() };
    FieldFault { field, expected: expected.to_owned(), found }
}

/// An integer written without fraction or exponent, 0 to `max`.
#[must_use]
pub fn integer(json: &Json, max: u64) -> Option<u64> {
    let Json::Number(text) = json else { return None };
    text.parse().ok().filter(|&n| n <= max)
}

fn read_value(field: &Field, json: &Json, interner: &mut Interner) -> Result<Value, FieldFault> {
    if field.name == "x" {
        return read_x(json).map(|text| Value::Text(Arc::from(text)));
    }
    match (field.kind, json) {
        (Kind::Int32, _) => integer(json, MAX_INT32)
            .and_then(|n| u32::try_from(n).ok())
            .map(Value::Int32)
            .ok_or_else(|| type_fault(field.name, "an integer from 0 to 2^31 − 1", json)),
        (Kind::Int64, _) => integer(json, MAX_INT64)
            .map(Value::Int64)
            .ok_or_else(|| type_fault(field.name, "an integer from 0 to 2^63 − 1", json)),
        (Kind::Digest, Json::String(text)) => text
            .parse::<Sha256>()
            .map(|digest| Value::Digest(digest.0))
            .map_err(|error| type_fault(field.name, &error.to_string().replace("not a", "a"), json)),
        (Kind::Text, Json::String(text)) => Ok(Value::Text(interner.intern(text))),
        (Kind::Digest | Kind::Text, _) => Err(type_fault(field.name, "a string", json)),
    }
}

const X: &str = "an object of strings and integers within ±(2^53 − 1)";

/// `x`: an object of strings and integers, in canonical form.
fn read_x(json: &Json) -> Result<String, FieldFault> {
    let Json::Object(members) = json else { return Err(type_fault("x", X, json)) };
    if let Some((_, bad)) = members.iter().find(|(_, value)| !matches!(value, Json::String(_) | Json::Number(_))) {
        return Err(type_fault("x", X, bad));
    }
    json.to_canonical().map_err(|_| type_fault("x", X, json))
}

/// Whether a text is an `x` in canonical form, as a rows shard must have it.
#[must_use]
pub fn is_canonical_x(text: &str) -> bool {
    Json::parse(text.as_bytes()).is_ok_and(|json| read_x(&json).is_ok_and(|canonical| canonical == text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_the_table_can_be_set_and_got() {
        for (index, field) in FIELDS.iter().enumerate() {
            let value = match field.kind {
                Kind::Int32 => Value::Int32(7),
                Kind::Int64 => Value::Int64(7),
                Kind::Digest => Value::Digest([7; 32]),
                Kind::Text if field.name == "x" => Value::Text(Arc::from(r#"{"a":1}"#)),
                Kind::Text => Value::Text(Arc::from("decode")),
            };
            let mut row = Row::default();
            row.set(index, value.clone()).unwrap();
            assert_eq!(row.get(index), Some(value), "{}", field.name);
            assert_eq!(Row::default().get(index).is_some(), field.required, "{}", field.name);
        }
    }
}
