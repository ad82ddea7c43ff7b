//! A capture that is made up, sealed in this process, and manifests that were changed by hand.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use witnessmark::canon::json::Json;
use witnessmark::catalog::{Catalog, Resolved};
use witnessmark::digest::{Blake3, Sha256};
use witnessmark::id::{CaptureId, Nanos, ObjectId};
use witnessmark::manifest::Codec;
use witnessmark::meter::Meter;
use witnessmark::refusal::Refusal;
use witnessmark::seal::{Batch, Outcome, Sealed};
use witnessmark::store::Store;
use witnessmark::verify::{Depth, Options, verify};

/// A folder in memory, where the machine has a place for that: these tests write much and need no disk.
pub(crate) fn folder() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

/// A capture that is made up: one request that was never forced, one row a position.
pub(crate) struct MadeUp {
    /// dtype of run.json, and the ending of the scores file
    pub(crate) dtype: (&'static str, &'static str),
    /// The scores file, row after row
    pub(crate) scores: Vec<u8>,
    pub(crate) rows: u32,
    pub(crate) vocab: u32,
    /// `scores.masked_token_ids`
    pub(crate) masked: Vec<u32>,
}

impl MadeUp {
    /// run.json, with all that the capture needs and no more.
    pub(crate) fn run_json(&self) -> Value {
        json!({
            "schema": "witnessmark.run/v1", "run_id": "made-up", "mode": "capture-only",
            "scores": {"dtype": self.dtype.0, "rows": self.rows, "vocab_size": self.vocab, "masked_token_ids": self.masked},
            "requests": [{"request_id": "r", "prompt_index": 0, "prompt_token_ids": [0],
                          "output_token_ids": vec![0; self.rows as usize]}],
        })
    }

    /// The lines of rows.jsonl.
    pub(crate) fn rows_jsonl(&self) -> Vec<Value> {
        let row = |position: u32| {
            let prefix: Vec<u8> = (0..=position).flat_map(|_| 0_u32.to_le_bytes()).collect();
            json!({
                "prompt_index": 0, "position": position, "request_id": "r", "token_id": 0,
                "phase": if position == 0 { "prefill" } else { "decode" },
                "prefix_sha256": Sha256::of(&prefix).to_string(),
            })
        };
        (0..self.rows).map(row).collect()
    }

    /// Writes the capture directory.
    pub(crate) fn write(&self, dir: &Path) {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join(format!("scores.{}", self.dtype.1)), &self.scores).unwrap();
        let lines: String = self.rows_jsonl().iter().map(|row| format!("{row}\n")).collect();
        fs::write(dir.join("rows.jsonl"), lines).unwrap();
        fs::write(dir.join("run.json"), self.run_json().to_string()).unwrap();
    }
}

/// Seals a directory in-process into a new store at `root`.
pub(crate) fn sealed(root: &Path, dir: &Path, codec: Codec) -> (Store, Sealed) {
    let store = Store::create(root, "0123456789abcdef".repeat(2)).unwrap();
    let meter = Meter::default();
    let mut batch = Batch::new(&store, codec, None, &meter).unwrap();
    batch.add(dir, None).unwrap();
    let outcome = batch.commit(Nanos(1_796_035_146_852_887_425)).unwrap().pop().unwrap();
    let Outcome::Sealed(sealed) = outcome else { panic!("{outcome:?}") };
    (store, *sealed)
}

/// The bytes of an object.
pub(crate) fn object(store: &Store, id: &ObjectId) -> Vec<u8> {
    fs::read(store.root().join(Store::object_path(id))).unwrap()
}

/// What is refused when `manifest` is verified as a manifest of the capture whose document it holds.
pub(crate) fn refused_as_manifest(store: &Store, manifest: &[u8], depth: Depth) -> Vec<Refusal> {
    let id = ObjectId(Blake3::of(manifest));
    let path = store.root().join(Store::object_path(&id));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, manifest).unwrap();
    let document = Json::parse(manifest).ok().and_then(|json| json.get("capture")?.to_canonical().ok());
    let capture = CaptureId(Sha256::of(document.unwrap_or_default().as_bytes()));
    let catalog = Catalog::load(store).unwrap();
    let resolved = Resolved { capture, manifests: vec![id] };
    verify(&catalog, &resolved, Options { depth, model: None, spec: None }, &Meter::default())
        .unwrap()
        .findings
        .refusals
}
