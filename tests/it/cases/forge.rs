//! The forger: writes into stores what `seal` would refuse, with every digest above it in order.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use witnessmark::canon::document;
use witnessmark::canon::json::Json;
use witnessmark::catalog::write_ref;
use witnessmark::digest::{Blake3, Sha256};
use witnessmark::id::{CaptureId, Nanos, ObjectId};
use witnessmark::log::Log;
use witnessmark::manifest::{
    Act, CAPTURE_SCHEMA, CaptureDocument, Codec, HEAD_SCHEMA, Head, MANIFEST_SCHEMA, Manifest, RowShard, RunJson,
    ScoreShard, Writer,
};
use witnessmark::merkle::Tree;
use witnessmark::row::{Interner, Row, roots};
use witnessmark::shard::rows as row_shard;
use witnessmark::shard::scores::ScoresWriter;
use witnessmark::store::Store;

use super::capture::{Capture, set};
use super::edit::{ForgerEdit, to_json};

/// A store in a forger's hands.
pub(super) struct Forger<'a> {
    pub root: &'a Path,
}

impl Forger<'_> {
    /// Makes one edit; `capture` is what a case has in hand.
    pub(super) fn edit(&self, edit: &ForgerEdit, capture: &Capture) {
        match edit {
            ForgerEdit::Forge { cut, file_order } => {
                let cut = cut.unwrap_or(usize::MAX);
                assert!(self.forge(capture, cut, !file_order.unwrap_or(false)), "cannot be forged");
            }
            ForgerEdit::ManifestSet { path, value } => self.set_in_manifest(path, Some(to_json(value))),
            ForgerEdit::ManifestNull { path } => self.set_in_manifest(path, Some(Value::Null)),
            ForgerEdit::ManifestRemove { path } => self.set_in_manifest(path, None),
            ForgerEdit::Rehang { role } => self.rehang(role),
            ForgerEdit::LogRollBack { entries, head } => self.roll_back(*entries, *head),
            ForgerEdit::StoreMake => drop(self.store()),
        }
    }

    fn store(&self) -> Store {
        if self.root.join("store.json").exists() {
            Store::open(self.root).unwrap()
        } else {
            Store::create(self.root, "0".repeat(32)).unwrap()
        }
    }

    fn add_object(&self, bytes: &[u8]) -> ObjectId {
        let id = ObjectId(Blake3::of(bytes));
        let path = self.root.join(Store::object_path(&id));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        id
    }

    /// Seals without asking a rule; false where the rows are none, or do not fit their scores.
    pub(super) fn forge(&self, capture: &Capture, cut: usize, key_order: bool) -> bool {
        let store = self.store();
        let mut interner = Interner::default();
        let mut rows: Vec<(Row, usize)> = Vec::new();
        for (place, row) in capture.rows.iter().enumerate() {
            let json = Json::parse(&serde_json::to_vec(row).unwrap()).unwrap();
            let Ok((row, _)) = Row::from_json(&json, &mut interner) else { return false };
            rows.push((row, place));
        }
        if !capture.scores.is_empty() && capture.scores.len() != rows.len() {
            return false;
        }
        if key_order {
            rows.sort_by_key(|(row, place)| (row.key, *place));
        }
        let canonical = capture.canonical();
        for (row, place) in &mut rows {
            row.score_digest = canonical.get(*place).map(|scores| scores.digest());
        }
        let places: Vec<usize> = rows.iter().map(|(_, place)| *place).collect();
        let rows: Vec<Row> = rows.into_iter().map(|(row, _)| row).collect();
        let long = |len: usize| u64::try_from(len).unwrap();
        let row_shards = rows.chunks(cut.min(rows.len())).map(|rows| {
            let bytes = row_shard::encode(rows);
            RowShard { bytes: long(bytes.len()), object: self.add_object(&bytes), rows: long(rows.len()) }
        });
        let vocab = capture.scores.first().map(Vec::len);
        let mut score_shards: Vec<ScoreShard> = Vec::new();
        for places in places.chunks(cut.min(rows.len())).filter(|_| vocab.is_some()) {
            let vocab = u32::try_from(vocab.unwrap()).unwrap();
            let mut writer = ScoresWriter::new(Vec::new(), Codec::None, vocab).unwrap();
            let mut planes = Vec::new();
            for &place in places {
                canonical[place].write_planes(&mut planes);
                writer.push_page(&planes).unwrap();
            }
            let (bytes, shard) = writer.finish().unwrap();
            self.add_object(&bytes);
            score_shards.push(shard);
        }
        let run = capture.run_bytes();
        let (row_root, score_root) = roots(&rows);
        let manifest = Manifest {
            capture: CaptureDocument {
                attachments: Vec::new(),
                complete: true,
                row_root,
                rows: long(rows.len()),
                run_json: RunJson { bytes: long(run.len()), sha256: Sha256::of(&run) },
                schema: CAPTURE_SCHEMA.to_owned(),
                score_root,
                vocab_size: vocab.map(long),
            },
            row_shards: row_shards.collect(),
            run_object: self.add_object(&run),
            schema: MANIFEST_SCHEMA.to_owned(),
            score_shards,
            writer: Writer::this(),
        };
        let object = self.add_object(&document::encode(&manifest).unwrap());
        let capture_id = manifest.capture.id().unwrap();
        let acts = [Act::Seal(capture_id, object)];
        Log::append(&store, &acts, Nanos(1_796_100_000_000_000_000), "witnessmark 0.1.0").unwrap();
        write_ref(&store, capture.run["run_id"].as_str().unwrap_or("forged"), capture_id).unwrap();
        true
    }

    fn entries(&self) -> Vec<String> {
        let text = fs::read_to_string(self.root.join("log/entries")).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn last_entry(&self) -> Value {
        serde_json::from_str(self.entries().last().unwrap()).unwrap()
    }

    fn manifest_path(&self) -> PathBuf {
        let id: ObjectId = self.last_entry()["manifest"].as_str().unwrap().parse().unwrap();
        self.root.join(Store::object_path(&id))
    }

    fn manifest(&self) -> Value {
        serde_json::from_slice(&fs::read(self.manifest_path()).unwrap()).unwrap()
    }

    /// The path of a file below the store; `@scores`, `@rows`, `@run`, `@manifest`, `@attachment` are objects of the last capture, `@scores.2` is
    /// the third of them.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        let Some(role) = name.strip_prefix('@') else { return self.root.join(name) };
        if role == "manifest" {
            return self.manifest_path();
        }
        let manifest = self.manifest();
        let id = manifest.pointer(&format!("/{}", place_of(role).replace('.', "/"))).unwrap();
        let id: ObjectId = id.as_str().unwrap().parse().unwrap();
        self.root.join(Store::object_path(&id))
    }

    fn set_in_manifest(&self, path: &str, value: Option<Value>) {
        let mut manifest = self.manifest();
        set(&mut manifest, path, value);
        self.put_manifest(&manifest);
    }

    fn put_manifest(&self, manifest: &Value) {
        let text = |value: &Value| Json::parse(value.to_string().as_bytes()).unwrap().to_canonical().unwrap();
        let object = self.add_object(text(manifest).as_bytes());
        let capture = CaptureId(Sha256::of(text(&manifest["capture"]).as_bytes()));
        let mut entries = self.entries();
        let mut entry = self.last_entry();
        entry["manifest"] = object.to_string().into();
        entry["capture"] = capture.to_string().into();
        *entries.last_mut().unwrap() = text(&entry);
        self.put_log(Some(&entries), Some(&entries));
        for file in fs::read_dir(self.root.join("refs/runs")).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
    }

    /// Hangs the changed bytes of an object into everything above it.
    fn rehang(&self, role: &str) {
        if role == "log" {
            let entries = self.entries();
            return self.put_log(None, Some(&entries));
        }
        let bytes = fs::read(self.path(&format!("@{role}"))).unwrap();
        let object = self.add_object(&bytes);
        if role == "manifest" {
            let mut entries = self.entries();
            let mut entry = self.last_entry();
            entry["manifest"] = object.to_string().into();
            *entries.last_mut().unwrap() = Json::parse(entry.to_string().as_bytes()).unwrap().to_canonical().unwrap();
            return self.put_log(Some(&entries), Some(&entries));
        }
        let mut manifest = self.manifest();
        let place = place_of(role);
        set(&mut manifest, &place, Some(object.to_string().into()));
        let length = match role {
            "run" => "capture.run_json.bytes".to_owned(),
            _ => place.replace(".object", ".bytes"),
        };
        set(&mut manifest, &length, Some(bytes.len().into()));
        self.put_manifest(&manifest);
    }

    fn put_log(&self, entries: Option<&[String]>, head: Option<&[String]>) {
        let lines = |entries: &[String]| entries.iter().map(|line| format!("{line}\n")).collect::<String>();
        if let Some(entries) = entries {
            fs::write(self.root.join("log/entries"), lines(entries)).unwrap();
        }
        // Tiles are derived; one that is left over would betray what is being forged.
        fs::remove_dir_all(self.root.join("log/tile"))
            .or_else(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })
            .unwrap();
        let Some(covered) = head else { return };
        let mut tree = Tree::default();
        covered.iter().for_each(|line| tree.push(line.as_bytes()));
        let head = Head {
            bytes: lines(covered).len().to_string(),
            origin: self.store().origin().to_owned(),
            root: tree.root(),
            schema: HEAD_SCHEMA.to_owned(),
            size: tree.size(),
        };
        fs::write(self.root.join("log/head"), document::encode(&head).unwrap()).unwrap();
    }

    fn roll_back(&self, entries: bool, head: bool) {
        let mut older = self.entries();
        older.pop();
        self.put_log(entries.then_some(older.as_slice()), head.then_some(older.as_slice()));
    }
}

/// Where a manifest names an object.
fn place_of(role: &str) -> String {
    let (role, number) = role.split_once('.').unwrap_or((role, "0"));
    match role {
        "run" => "run_object".to_owned(),
        "rows" => format!("row_shards.{number}.object"),
        "scores" => format!("score_shards.{number}.object"),
        "attachment" => format!("capture.attachments.{number}.blake3"),
        _ => panic!("no object is {role:?}"),
    }
}
