//! What tests share: capture directories to start from, a store in a temporary folder, and the command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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

/// The repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// An embedded capture, cut from a real one: `oracle-c1-rep0` or `oracle-c4-rep0`.
pub fn embedded(name: &str) -> PathBuf {
    root().join("corpora/smollm2-h200-cut").join(name)
}

/// The whole real captures, where they are beside the repository; says so on stderr where they are not.
pub fn shared_captures() -> Option<PathBuf> {
    let folder = root().join("../shared/captures/smollm2-h200");
    if !folder.is_dir() {
        eprintln!("not run: no captures at {}", folder.display());
        return None;
    }
    Some(folder)
}

/// A place to work in, with a store.
pub struct Bench {
    pub folder: TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    pub fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Runs `witnessmark` on this bench's store.
    pub fn run<A: AsRef<std::ffi::OsStr>>(&self, args: &[A]) -> Run {
        let output = Command::new(env!("CARGO_BIN_EXE_witnessmark"))
            .current_dir(self.folder.path())
            .env("WITNESSMARK_STORE", self.store())
            .args(args)
            .output()
            .unwrap();
        Run::new(output)
    }

    /// Seals a directory, which must succeed; gives the capture id.
    pub fn seal(&self, dir: &Path) -> String {
        let run = self.run(&["seal".as_ref(), dir.as_os_str()]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        run.stdout.trim().to_owned()
    }

    /// A copy of a capture directory that may be changed.
    pub fn copy(&self, from: &Path, name: &str) -> PathBuf {
        let to = self.folder.path().join(name);
        copy_folder(from, &to);
        to
    }
}

/// What a command did.
pub struct Run {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    fn new(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The ids of the rules that were refused, sorted, each once, from either stream.
    pub fn refused(&self) -> Vec<String> {
        let text = format!("{}\n{}", self.stdout, self.stderr);
        let refusals = text.lines().filter_map(|line| line.strip_prefix("REFUSED: "));
        let mut rules: Vec<String> = refusals.filter_map(|line| line.split(':').next()).map(str::to_owned).collect();
        rules.sort();
        rules.dedup();
        rules
    }
}

/// Copies a folder and makes the copy writable.
pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::write(&target, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

/// All files below a folder, sorted.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let walk = walkdir::WalkDir::new(folder).sort_by_file_name();
    walk.into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| entry.into_path())
        .collect()
}

/// A capture that is made up: one request that was never forced, one row a position.
pub struct MadeUp {
    /// dtype of run.json, and the ending of the scores file
    pub dtype: (&'static str, &'static str),
    /// The scores file, row after row
    pub scores: Vec<u8>,
    pub rows: u32,
    pub vocab: u32,
    /// `scores.masked_token_ids`
    pub masked: Vec<u32>,
}

impl MadeUp {
    /// run.json, with all that the capture needs and no more.
    pub fn run_json(&self) -> Value {
        json!({
            "schema": "witnessmark.run/v1", "run_id": "made-up", "mode": "capture-only",
            "scores": {"dtype": self.dtype.0, "rows": self.rows, "vocab_size": self.vocab, "masked_token_ids": self.masked},
            "requests": [{"request_id": "r", "prompt_index": 0, "prompt_token_ids": [0],
                          "output_token_ids": vec![0; self.rows as usize]}],
        })
    }

    /// The lines of rows.jsonl.
    pub fn rows_jsonl(&self) -> Vec<Value> {
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
    pub fn write(&self, dir: &Path) {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join(format!("scores.{}", self.dtype.1)), &self.scores).unwrap();
        let lines: String = self.rows_jsonl().iter().map(|row| format!("{row}\n")).collect();
        fs::write(dir.join("rows.jsonl"), lines).unwrap();
        fs::write(dir.join("run.json"), self.run_json().to_string()).unwrap();
    }
}

/// Seals a directory in-process into a new store at `root`.
pub fn sealed(root: &Path, dir: &Path, codec: Codec) -> (Store, Sealed) {
    let store = Store::create(root, "0123456789abcdef".repeat(2)).unwrap();
    let meter = Meter::default();
    let mut batch = Batch::new(&store, codec, None, &meter).unwrap();
    batch.add(dir, None).unwrap();
    let outcome = batch.commit(Nanos(1_796_035_146_852_887_425)).unwrap().pop().unwrap();
    let Outcome::Sealed(sealed) = outcome else { panic!("{outcome:?}") };
    (store, *sealed)
}

/// The bytes of an object.
pub fn object(store: &Store, id: &ObjectId) -> Vec<u8> {
    fs::read(store.root().join(Store::object_path(id))).unwrap()
}

/// What is refused when `manifest` is verified as a manifest of the capture whose document it holds.
pub fn refused_as_manifest(store: &Store, manifest: &[u8], depth: Depth) -> Vec<Refusal> {
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
