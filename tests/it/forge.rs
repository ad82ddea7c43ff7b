//! A writer of bad stores: what somebody would write who can hash as well as we can.
//!
//! It takes a capture directory apart with the library's own parts and puts it together as told, without asking a rule, with object
//! digests, manifest, log and ref that agree.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use witnessmark::canon::document;
use witnessmark::canon::scores::Canonical;
use witnessmark::catalog::write_ref;
use witnessmark::digest::{Blake3, Sha256};
use witnessmark::id::{CaptureId, ObjectId};
use witnessmark::ingest::{Torn, open_capture};
use witnessmark::manifest::{
    Act, CAPTURE_SCHEMA, CaptureDocument, Codec, ENTRY_SCHEMA, Entry, HEAD_SCHEMA, Head, MANIFEST_SCHEMA, Manifest,
    RowShard, RunJson, ScoreShard, Writer,
};
use witnessmark::merkle::Tree;
use witnessmark::row::{self, Row};
use witnessmark::shard::page::Compressor;
use witnessmark::shard::rows;
use witnessmark::shard::scores::ScoresWriter;
use witnessmark::store::Store;

/// A capture in pieces.
#[derive(Clone)]
pub struct Forge {
    pub run: Vec<u8>,
    /// In key order, with score digests
    pub rows: Vec<Row>,
    pub scores: Vec<Canonical>,
    pub vocab: u32,
    pub codec: Codec,
    /// Rows of each shard
    pub cut: usize,
    objects: BTreeMap<ObjectId, Vec<u8>>,
}

impl Forge {
    pub fn of(dir: &Path) -> Self {
        let (capture, findings) = open_capture(dir, Torn::Refused).unwrap();
        let capture = capture.unwrap_or_else(|| panic!("{findings:?}"));
        let declared = capture.run.scores.clone().unwrap();
        let vocab = u32::try_from(declared.vocab_size).unwrap();
        let mut raw = vec![0; usize::try_from(vocab).unwrap() * declared.dtype.size()];
        let (mut rows, mut scores) = (capture.rows, Vec::new());
        for (row, place) in rows.iter_mut().zip(capture.places) {
            let start = place * u64::try_from(raw.len()).unwrap();
            capture.scores.as_ref().unwrap().read_exact_at(&mut raw, start).unwrap();
            let mut canonical = Canonical::default();
            canonical.set_from_file_row(declared.dtype, &raw);
            row.score_digest = Some(canonical.digest());
            scores.push(canonical);
        }
        let objects = BTreeMap::new();
        Self { run: capture.run_bytes, rows, scores, vocab, codec: Codec::Zstd, cut: usize::MAX, objects }
    }

    /// Adds an object.
    pub fn put(&mut self, bytes: Vec<u8>) -> ObjectId {
        let id = ObjectId(Blake3::of(&bytes));
        self.objects.insert(id, bytes);
        id
    }

    /// A scores shard with pages of these bodies.
    pub fn score_shard(&mut self, bodies: &[Vec<u8>]) -> ScoreShard {
        let mut writer = ScoresWriter::new(Vec::new(), self.codec, self.vocab).unwrap();
        bodies.iter().for_each(|body| writer.push_page(body).unwrap());
        let (bytes, shard) = writer.finish().unwrap();
        self.put(bytes);
        shard
    }

    /// The compressed bodies of the pages.
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        let mut compressor = Compressor::new(self.codec).unwrap();
        let (mut planes, mut out) = (Vec::new(), Vec::new());
        let mut compress = |scores: &Canonical| {
            scores.write_planes(&mut planes);
            compressor.compress(&planes, &mut out).unwrap();
            out.clone()
        };
        self.scores.iter().map(&mut compress).collect()
    }

    /// The manifest of the pieces as they are: roots are those of the rows, with the score digests that they carry.
    pub fn manifest(&mut self) -> Manifest {
        let (row_root, score_root) = row::roots(&self.rows);
        let capture = CaptureDocument {
            attachments: Vec::new(),
            complete: true,
            row_root,
            rows: long(self.rows.len()),
            run_json: RunJson { bytes: long(self.run.len()), sha256: Sha256::of(&self.run) },
            schema: CAPTURE_SCHEMA.to_owned(),
            score_root,
            vocab_size: Some(u64::from(self.vocab)),
        };
        let mut row_shards = Vec::new();
        for part in self.rows.clone().chunks(self.cut) {
            row_shards.push(self.row_shard(rows::encode(part), long(part.len())));
        }
        let mut score_shards = Vec::new();
        for part in self.bodies().chunks(self.cut) {
            score_shards.push(self.score_shard(part));
        }
        let run_object = self.put(self.run.clone());
        let (schema, writer) = (MANIFEST_SCHEMA.to_owned(), Writer::this());
        Manifest { capture, row_shards, run_object, schema, score_shards, writer }
    }

    /// A rows shard of any bytes.
    pub fn row_shard(&mut self, bytes: Vec<u8>, rows: u64) -> RowShard {
        RowShard { bytes: long(bytes.len()), rows, object: self.put(bytes) }
    }

    /// Writes a store that holds the capture by this manifest.
    pub fn publish(&mut self, root: &Path, manifest: &Manifest) {
        let capture = manifest.capture.id().unwrap();
        let id = self.put(document::encode(manifest).unwrap());
        let store = empty_store(root);
        for (id, bytes) in &self.objects {
            put_object(root, id, bytes);
        }
        write_log(&store, &[(capture, id)]);
        write_ref(&store, "forged", capture).unwrap();
    }
}

/// A store with nothing in it, in place of what was there.
pub fn empty_store(root: &Path) -> Store {
    if root.exists() {
        fs::remove_dir_all(root).unwrap();
    }
    Store::create(root, "0".repeat(32)).unwrap()
}

pub fn put_object(root: &Path, id: &ObjectId, bytes: &[u8]) {
    let path = root.join(Store::object_path(id));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// An entry as `seal` writes it.
pub fn entry(capture: CaptureId, manifest: ObjectId) -> Entry {
    let (schema, tool) = (ENTRY_SCHEMA.to_owned(), "witnessmark 0.1.0".to_owned());
    Entry { act: Act::Seal(capture, manifest), at: "1796035146852887425".to_owned(), schema, tool }
}

/// Writes a log whose head agrees with its entries.
pub fn write_log(store: &Store, acts: &[(CaptureId, ObjectId)]) {
    let entries: Vec<Entry> = acts.iter().map(|&(capture, manifest)| entry(capture, manifest)).collect();
    write_entries(store, &entries);
}

pub fn write_entries(store: &Store, entries: &[Entry]) {
    let mut tree = Tree::default();
    let mut lines = Vec::new();
    for entry in entries {
        let line = document::encode(entry).unwrap();
        tree.push(&line);
        lines.extend(line);
        lines.push(b'\n');
    }
    let head = Head {
        bytes: lines.len().to_string(),
        origin: store.origin().to_owned(),
        root: tree.root(),
        schema: HEAD_SCHEMA.to_owned(),
        size: tree.size(),
    };
    fs::write(store.root().join("log/entries"), lines).unwrap();
    fs::write(store.root().join("log/head"), document::encode(&head).unwrap()).unwrap();
}

pub fn long(len: usize) -> u64 {
    u64::try_from(len).unwrap()
}
