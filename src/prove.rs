//! Prove: the proof of one row, made from a store.
//!
//! A capture and a row key go in, a [`RowProof`] comes out. All rows shards are read, for their leaf hashes; of the scores, only the one page
//! of the row, found through its shard's offset index. What goes into the proof is checked against the id, so none is made that would not hold;
//! whether other rows are rows at all is for `verify` to say. See `specs/format-v1.md`, section 12.

use std::io::Seek;
use std::os::unix::fs::FileExt;

use crate::binding::MAX_VOCAB;
use crate::canon::scores::Canonical;
use crate::catalog::{Catalog, Resolved, read_manifest};
use crate::id::{RowKey, long};
use crate::manifest::Manifest;
use crate::merkle::{inclusion_path, leaf_hash, root_from_inclusion, root_of};
use crate::proof::RowProof;
use crate::refusal::{Refusal, Rule, Subject};
use crate::row::{ROW_DOMAIN, Row};
use crate::shard::ShardFault;
use crate::shard::page::Decompressor;
use crate::shard::rows::{Records, max_bytes};
use crate::shard::scores::{PageIndex, RawPage, decode_page};
use crate::store::{Fault, Store, io_error};

/// Proves that the row with `key` belongs to the capture; none where the capture has no such row.
///
/// # Errors
/// When the store cannot be read.
///
/// # Refusals
/// Whatever keeps the row, or its scores, from leading to the capture id.
pub fn prove_row(
    catalog: &Catalog<'_>,
    resolved: &Resolved,
    key: RowKey,
    scores: bool,
) -> Result<Option<RowProof>, Fault> {
    let store = catalog.store();
    let refuse =
        |rule, subject, expected: String, found: String| Fault::Refused(Refusal::new(rule, subject, expected, found));
    let Some(id) = resolved.manifests.first() else {
        let expected = "a manifest in the log".to_owned();
        return Err(refuse(Rule::NothingToVerify, Subject::Capture, expected, "none".to_owned()));
    };
    let manifest = read_manifest(store, id, resolved.capture)?;
    let (mut leaves, mut found, mut record) = (Vec::new(), None, Vec::new());
    let wanted = [ROW_DOMAIN, &key.to_bytes()].concat();
    for (number, shard) in manifest.row_shards.iter().enumerate() {
        let role = format!("rows shard {number}");
        let bytes = store.read_object(&shard.object, Some(shard.bytes), max_bytes(shard.rows), &role)?;
        let noncanonical = |fault: ShardFault| {
            let subject = Subject::Object(shard.object, role.clone());
            refuse(Rule::ShardNoncanonical, subject, fault.expected, fault.found)
        };
        let mut records = Records::new(&bytes, shard.rows).map_err(noncanonical)?;
        while records.next(&mut record).map_err(noncanonical)? {
            if record.starts_with(&wanted) && found.replace((long(leaves.len()), record.clone())).is_some() {
                let subject = Subject::Row(key);
                return Err(refuse(Rule::RowDuplicated, subject, "one row".to_owned(), "two or more".to_owned()));
            }
            leaves.push(leaf_hash(&record));
        }
    }
    let document = &manifest.capture;
    if document.rows != long(leaves.len()) {
        let (expected, found) = (format!("{} rows", document.rows), leaves.len().to_string());
        return Err(refuse(Rule::TreeSize, Subject::Capture, expected, found));
    }
    // Every leaf is in the root, and so in the path of any other.
    let (path, root) = match &found {
        None => (Vec::new(), Some(root_of(&leaves))),
        Some((place, record)) => {
            let path = inclusion_path(&leaves, *place).unwrap_or_default();
            let root = root_from_inclusion(leaf_hash(record), *place, long(leaves.len()), &path);
            (path, root)
        }
    };
    if root != Some(document.row_root) {
        let expected = format!("row root {}", document.row_root);
        let found = root.map_or("none".to_owned(), |root| root.to_string());
        return Err(refuse(Rule::RootMismatch, Subject::Capture, expected, found));
    }
    let Some((place, record)) = found else { return Ok(None) };
    let not_a_row =
        || refuse(Rule::ShardNoncanonical, Subject::Row(key), "a row record".to_owned(), "another".to_owned());
    let row = Row::from_record(&record).ok_or_else(not_a_row)?;
    let scores = if scores { read_scores(store, &manifest, place, &row)? } else { None };
    let proof = RowProof::new(manifest.capture, place, &record, path, scores.as_ref());
    proof.check().map_err(Fault::Refused)?;
    Ok(Some(proof))
}

/// The scores of one row, by its page alone; none in a baseline.
fn read_scores(store: &Store, manifest: &Manifest, place: u64, row: &Row) -> Result<Option<Canonical>, Fault> {
    let vocab = match (manifest.capture.vocab_size, row.score_digest) {
        (None, None) => return Ok(None),
        (vocab, _) => vocab.filter(|vocab| *vocab <= MAX_VOCAB).and_then(|vocab| u32::try_from(vocab).ok()),
    };
    let Some(vocab) = vocab else {
        let expected = format!("a vocabulary of at most {MAX_VOCAB}, since the row has scores");
        let found = manifest.capture.vocab_size.map_or("none".to_owned(), |vocab| vocab.to_string());
        return Err(Fault::Refused(Refusal::new(Rule::LimitExceeded, Subject::Capture, expected, found)));
    };
    let mut base = 0_u64;
    for (number, shard) in manifest.score_shards.iter().enumerate() {
        let end = base.saturating_add(shard.rows);
        if place >= end {
            base = end;
            continue;
        }
        // Before room is made for an index of so many pages.
        if end > manifest.capture.rows {
            let (expected, found) = (format!("{} rows", manifest.capture.rows), format!("scores shards of {end}"));
            return Err(Fault::Refused(Refusal::new(Rule::TreeSize, Subject::Capture, expected, found)));
        }
        let role = format!("scores shard {number}");
        let path = store.root().join(Store::object_path(&shard.object));
        let (mut file, _) = store.open_object(&shard.object, Some(shard.bytes), &role)?;
        let start = file.stream_position().map_err(io_error("read", &path))?;
        let mut read_at = |out: &mut [u8], at: u64| file.read_exact_at(out, start.saturating_add(at));
        let index = PageIndex::read(&mut read_at, shard, vocab).map_err(io_error("read", &path))?;
        let index = index.map_err(|fault| {
            let subject = Subject::Object(shard.object, role);
            Fault::Refused(Refusal::new(Rule::ShardNoncanonical, subject, fault.expected, fault.found))
        })?;
        let mut page = RawPage::default();
        let found = index.page(place - base, &mut read_at, &mut page).map_err(io_error("read", &path))?;
        let mut decompressor = Decompressor::new().map_err(io_error("set up", "a decompressor"))?;
        let (mut room, mut scores) = (Vec::new(), Canonical::default());
        let decoded = found.and_then(|()| decode_page(&page, vocab, &mut decompressor, &mut room));
        let planes = decoded.map_err(|fault| {
            Fault::Refused(Refusal::new(Rule::ShardNoncanonical, Subject::Row(row.key), fault.expected, fault.found))
        })?;
        scores.set_from_planes(planes);
        let digest = scores.digest();
        if row.score_digest == Some(digest) {
            return Ok(Some(scores));
        }
        let expected = row.score_digest.map_or("no scores".to_owned(), |digest| format!("score digest {digest}"));
        return Err(Fault::Refused(Refusal::new(
            Rule::ScoreWitness,
            Subject::Row(row.key),
            expected,
            digest.to_string(),
        )));
    }
    let subject = Subject::Row(row.key);
    Err(Fault::Refused(Refusal::new(Rule::TreeSize, subject, "a page of scores", "no shard with it")))
}
