//! Forge: a copy of a store, and what somebody can do to it who may write every file.
//!
//! Changes are values ([`Change`], by path below the store's root), applied to a tree of links whose files are never written in place. The tools here
//! make again what an attacker would make again: objects under their own ids, manifests, log and head.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::draft::Draft;
use super::{DrillError, Expect};
use crate::canon::document;
use crate::canon::scores::Canonical;
use crate::catalog::Resolved;
use crate::digest::{Blake3, Sha256};
use crate::id::{CaptureId, ObjectId, long};
use crate::log::Log;
use crate::manifest::{Act, Entry, HEAD_SCHEMA, Head, Manifest, ScoreShard};
use crate::merkle::Tree;
use crate::row::{self, Row};
use crate::shard::page::{Compressor, Decompressor};
use crate::shard::rows as row_shard;
use crate::shard::scores::{RawPage, ScoresReader, ScoresWriter, decode_page};
use crate::store::{Store, io_error};
use crate::verify::Verified;

/// What is done to a file.
pub(super) enum Change {
    Bytes(Vec<u8>),
    /// One bit of the byte there
    Flip(usize),
    Gone,
    /// The file moves aside, and a link to it takes its place
    Link,
}

impl Change {
    pub(super) fn apply(&self, path: &Path) -> io::Result<()> {
        match self {
            Change::Bytes(bytes) => replace(path, bytes),
            Change::Flip(at) => {
                let mut bytes = fs::read(path)?;
                bytes.iter_mut().skip(*at).take(1).for_each(|byte| *byte ^= 1);
                replace(path, &bytes)
            }
            Change::Gone => fs::remove_file(path),
            Change::Link => {
                let aside = path.with_extension("moved");
                fs::rename(path, &aside)?;
                std::os::unix::fs::symlink(aside, path)
            }
        }
    }
}

/// Never writes into a file that is there: it is a link to the copy that all corruptions start from.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    fs::write(path, bytes)
}

pub(super) type Changes = Vec<(String, Change)>;

/// A store that was tampered with, and what a reader asks it for.
pub(super) struct Tampered {
    pub(super) detail: String,
    pub(super) expect: Expect,
    pub(super) changes: Changes,
    pub(super) resolved: Resolved,
}

/// An untouched copy of the store, with what its documents say.
pub(super) struct Replica<'a> {
    pub(super) root: PathBuf,
    pub(super) capture: CaptureId,
    pub(super) manifest: &'a Manifest,
    pub(super) manifest_id: ObjectId,
    pub(super) rows: &'a [Row],
    /// The log; the last entry is the capture's
    pub(super) entries: Vec<Entry>,
    origin: String,
    vocab: u32,
}

impl<'a> Replica<'a> {
    pub(super) fn new(verified: &'a Verified, root: PathBuf, manifest_id: ObjectId) -> Result<Self, DrillError> {
        let store = Store::open(&root)?;
        let manifest = verified.manifest();
        Ok(Self {
            entries: Log::load(&store)?.entries,
            origin: store.origin().to_owned(),
            root,
            capture: verified.capture(),
            manifest,
            manifest_id,
            rows: verified.rows(),
            vocab: manifest.capture.vocab_size.and_then(|vocab| u32::try_from(vocab).ok()).unwrap_or(0),
        })
    }

    /// What a reader asks for who knows the capture id.
    pub(super) fn resolved(&self) -> Resolved {
        Resolved { capture: self.capture, manifests: vec![self.manifest_id] }
    }

    /// The bytes of an object.
    pub(super) fn object(&self, id: &ObjectId) -> Result<Vec<u8>, DrillError> {
        self.file(&Store::object_path(id))
    }

    /// The bytes of a file.
    pub(super) fn file(&self, path: &str) -> Result<Vec<u8>, DrillError> {
        Ok(fs::read(self.root.join(path)).map_err(io_error("read", path))?)
    }

    /// A log of these entries, with a head that fits.
    pub(super) fn forge_log(&self, entries: &[Entry]) -> Result<Changes, DrillError> {
        let (mut tree, mut lines) = (Tree::default(), Vec::new());
        for entry in entries {
            let line = document::encode(entry)?;
            tree.push(&line);
            lines.extend(line);
            lines.push(b'\n');
        }
        let head = Head {
            bytes: lines.len().to_string(),
            origin: self.origin.clone(),
            root: tree.root(),
            schema: HEAD_SCHEMA.to_owned(),
            size: tree.size(),
        };
        let head = document::encode(&head)?;
        Ok(vec![("log/entries".to_owned(), Change::Bytes(lines)), ("log/head".to_owned(), Change::Bytes(head))])
    }

    /// A manifest of these bytes under its own id, and a log in which it is the capture's.
    pub(super) fn forge_bytes(&self, manifest: Vec<u8>, capture: CaptureId) -> Result<(Changes, Resolved), DrillError> {
        let id = ObjectId(Blake3::of(&manifest));
        let mut entries = self.entries.clone();
        if let Some(last) = entries.last_mut() {
            last.act = Act::Seal(capture, id);
        }
        let mut changes = self.forge_log(&entries)?;
        changes.push((Store::object_path(&id), Change::Bytes(manifest)));
        Ok((changes, Resolved { capture, manifests: vec![id] }))
    }

    /// The same for a manifest that claims to be the capture's.
    pub(super) fn forge(&self, manifest: &Manifest) -> Result<(Changes, Resolved), DrillError> {
        self.forge_bytes(document::encode(manifest)?, self.capture)
    }

    /// The pages of a scores shard, as they are compressed.
    pub(super) fn pages(&self, shard: &ScoreShard) -> Result<Vec<RawPage>, DrillError> {
        let path = self.root.join(Store::object_path(&shard.object));
        let read = || -> io::Result<Vec<RawPage>> {
            let (mut reader, _) = ScoresReader::new(File::open(&path)?, shard, self.vocab)?;
            let (mut pages, mut page) = (Vec::new(), RawPage::default());
            while let Ok(true) = reader.next_page(&mut page)? {
                pages.push(std::mem::take(&mut page));
            }
            Ok(pages)
        };
        Ok(read().map_err(io_error("read", path.as_path()))?)
    }

    /// The scores of a page.
    pub(super) fn decode(&self, page: &RawPage) -> Result<Canonical, DrillError> {
        let mut decompressor = Decompressor::new().map_err(io_error("set up", "a decompressor"))?;
        let mut planes = Vec::new();
        if let Err(fault) = decode_page(page, self.vocab, &mut decompressor, &mut planes) {
            return Err(DrillError::Control(format!("expected {}, found {}", fault.expected, fault.found)));
        }
        let mut scores = Canonical::default();
        scores.set_from_planes(&planes);
        Ok(scores)
    }

    /// A page of these scores.
    pub(super) fn encode(&self, scores: &Canonical, shard: &ScoreShard) -> Result<Vec<u8>, DrillError> {
        let (mut planes, mut body) = (Vec::new(), Vec::new());
        scores.write_planes(&mut planes);
        let compressed = Compressor::new(shard.codec).and_then(|mut codec| codec.compress(&planes, &mut body));
        compressed.map_err(io_error("compress", "a row of scores"))?;
        Ok(body)
    }

    /// A scores shard of these pages.
    pub(super) fn shard(
        &self,
        like: &ScoreShard,
        pages: &[&[u8]],
    ) -> Result<(ScoreShard, (String, Change)), DrillError> {
        let write = || -> io::Result<(Vec<u8>, ScoreShard)> {
            let mut writer = ScoresWriter::new(Vec::new(), like.codec, self.vocab)?;
            pages.iter().try_for_each(|page| writer.push_page(page))?;
            writer.finish()
        };
        let (bytes, shard) = write().map_err(io_error("write", "a shard"))?;
        Ok((shard, (Store::object_path(&shard.object), Change::Bytes(bytes))))
    }

    /// Everything that a draft with as many rows implies, up to a capture id of its own.
    pub(super) fn forge_draft(&self, draft: &Draft<'_, '_>) -> Result<Tampered, DrillError> {
        let mut manifest = self.manifest.clone();
        let mut changes = Vec::new();
        let mut changed = BTreeMap::new();
        let mut rows = draft.rows.clone();
        for (index, row) in rows.iter_mut().enumerate() {
            if let (Some(bytes), Some(declared)) = (draft.changed(index), &draft.run().scores) {
                let mut scores = Canonical::default();
                scores.set_from_file_row(declared.dtype, bytes);
                row.score_digest = Some(scores.digest());
                changed.insert(index, scores);
            }
        }
        set_rows(&mut manifest, &rows, &mut changes);
        let mut base = 0;
        for shard in &mut manifest.score_shards {
            let range = base..base + usize::try_from(shard.rows).unwrap_or(0);
            base = range.end;
            if changed.range(range.clone()).next().is_none() {
                continue;
            }
            let pages = self.pages(shard)?;
            let mut bodies = Vec::new();
            for (index, page) in range.zip(&pages) {
                bodies.push(match changed.get(&index) {
                    Some(scores) => self.encode(scores, shard)?,
                    None => page.body().to_vec(),
                });
            }
            let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
            let (made, change) = self.shard(shard, &bodies)?;
            *shard = made;
            changes.push(change);
        }
        let run = draft.run_bytes();
        manifest.run_object = ObjectId(Blake3::of(&run));
        manifest.capture.run_json.bytes = long(run.len());
        manifest.capture.run_json.sha256 = Sha256::of(&run);
        changes.push((Store::object_path(&manifest.run_object), Change::Bytes(run)));
        let (more, resolved) = self.forge_bytes(document::encode(&manifest)?, manifest.capture.id()?)?;
        changes.extend(more);
        Ok(Tampered { detail: String::new(), expect: Expect::AnotherId, changes, resolved })
    }
}

/// Gives a manifest these rows, as many as it has, and the roots that follow.
pub(super) fn set_rows(manifest: &mut Manifest, rows: &[Row], changes: &mut Changes) {
    let mut rest = rows;
    for shard in &mut manifest.row_shards {
        let (part, after) = rest.split_at(usize::try_from(shard.rows).unwrap_or(0).min(rest.len()));
        rest = after;
        let file = row_shard::encode(part);
        (shard.bytes, shard.object) = (long(file.len()), ObjectId(Blake3::of(&file)));
        changes.push((Store::object_path(&shard.object), Change::Bytes(file)));
    }
    (manifest.capture.row_root, manifest.capture.score_root) = row::roots(rows);
}
