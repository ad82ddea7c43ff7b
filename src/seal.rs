//! Seal: a capture directory becomes objects, one manifest and one log entry, or nothing that anything names (objects of a refused commit are left to `gc`).
//!
//! One pass over the scores: each row is read once, made canonical, digested, compressed and written to a staging folder; then every rule is
//! asked, and only then does anything become part of the store. Always holds: equal captures get equal ids, whatever the order of rows,
//! the codec, or the number of threads. See `specs/format-v1.md`, sections 6 to 9.

mod scores;
mod siblings;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::OnceLock;

use self::siblings::{Said, Siblings, Standing};
use crate::binding::Course;
use crate::canon::document;
use crate::canon::json::JsonError;
use crate::catalog::{Catalog, named, write_refs};
use crate::digest::Sha256;
use crate::id::{CaptureId, Nanos, ObjectId, TokenId, long};
use crate::ingest::{self, Capture, Torn};
use crate::log::Log;
use crate::manifest::{
    Act, Attachment, CAPTURE_SCHEMA, CaptureDocument, Codec, MANIFEST_SCHEMA, Manifest, RowShard, RunJson, TOOL, Writer,
};
use crate::meter::Meter;
use crate::refusal::{Findings, Refusal, Rule, Subject};
use crate::row::{self, Row};
use crate::rule::{self, Continuations, Elsewhere, Evidence, ScoreEvidence};
use crate::shard::rows as row_shard;
use crate::spec::Spec;
use crate::store::{Fault, Staging, Store, StoreError};

/// What keeps a seal from being decided.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The store, or the capture directory, could not be read or written
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A document could not be written
    #[error("cannot write a document: {0}")]
    Document(#[from] JsonError),
    /// Asked to stop
    #[error("interrupted")]
    Interrupted,
}

/// What became of one capture directory.
#[derive(Debug)]
pub enum Outcome {
    /// It is in the store
    Sealed(Box<Sealed>),
    /// It breaks rules, and nothing in the store names it
    Refused(Findings),
}

/// A sealed capture.
#[derive(Debug)]
pub struct Sealed {
    /// Its id
    pub capture: CaptureId,
    /// The id of its manifest
    pub manifest: ObjectId,
    /// The manifest
    pub document: Manifest,
    /// The name that refers to it
    pub name: String,
    /// Place in the log
    pub entry: usize,
    /// Whether this act was in the log before
    pub already: bool,
    /// What else a reader must know
    pub findings: Findings,
}

struct Prepared {
    capture: CaptureId,
    manifest_id: ObjectId,
    manifest: Manifest,
    name: String,
    /// Whether the name was given instead of the run id
    given: bool,
    /// Whether it has the name already
    named: bool,
    findings: Findings,
}

impl Prepared {
    /// All its objects: id, length as far as it is named, and what it is.
    fn objects(&self) -> Vec<(ObjectId, Option<u64>, String)> {
        let named = self.manifest.objects().into_iter().map(|(id, bytes, role)| (id, Some(bytes), role));
        named.chain([(self.manifest_id, None, "manifest".to_owned())]).collect()
    }
}

/// A batch of captures on their way into one store: prepared one by one, committed together.
pub struct Batch<'a> {
    store: &'a Store,
    /// What is in the store, read when a rule asks for it: most captures can be judged alone
    catalog: OnceLock<Result<Catalog<'a>, StoreError>>,
    staging: Staging<'a>,
    codec: Codec,
    spec: Option<&'a Spec>,
    meter: &'a Meter,
    torn: Torn,
    slots: Vec<Result<Prepared, Findings>>,
    taken: BTreeMap<String, CaptureId>,
    /// A replay may stand beside what it replays, before it or after
    siblings: Siblings,
    staged_bytes: u64,
}

impl<'a> Batch<'a> {
    /// A batch with nothing in it.
    ///
    /// # Errors
    /// When the store cannot be read or staged into.
    pub fn new(store: &'a Store, codec: Codec, spec: Option<&'a Spec>, meter: &'a Meter) -> Result<Self, StoreError> {
        let staging = store.stage()?;
        Ok(Self {
            store,
            catalog: OnceLock::new(),
            staging,
            codec,
            spec,
            meter,
            torn: Torn::Refused,
            slots: Vec::new(),
            taken: BTreeMap::new(),
            siblings: Siblings::default(),
            staged_bytes: 0,
        })
    }

    /// What becomes of captures that never ended. They are refused, unless this is asked for.
    #[must_use]
    pub fn with_torn(self, torn: Torn) -> Self {
        Self { torn, ..self }
    }

    /// Prepares a capture directory. Its outcome comes with [`Batch::commit`], in the order of these calls.
    ///
    /// # Errors
    /// When the directory or the staging folder cannot be used; the batch goes on without this directory.
    pub fn add(&mut self, dir: &Path, name: Option<&str>) -> Result<(), SealError> {
        let mark = self.staging.mark();
        let result = self.prepare(dir, name);
        match result {
            Ok(Ok(prepared)) => {
                self.staged_bytes += prepared.manifest.objects().iter().map(|(_, bytes, _)| bytes).sum::<u64>();
                self.slots.push(Ok(prepared));
            }
            Ok(Err(findings)) => {
                self.staging.roll_back(mark)?;
                self.slots.push(Err(findings));
            }
            Err(error) => {
                self.staging.roll_back(mark)?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Bytes that wait for [`Batch::commit`].
    #[must_use]
    pub fn staged_bytes(&self) -> u64 {
        self.staged_bytes
    }

    fn prepare(&mut self, dir: &Path, name: Option<&str>) -> Result<Result<Prepared, Findings>, SealError> {
        let (capture, findings) = ingest::open_capture(dir, self.torn)?;
        let Some(capture) = capture else { return Ok(Err(findings)) };
        let given = name.is_some();
        let name = name.map_or_else(|| capture.run.run_id.clone(), str::to_owned);
        let (store, lazy, siblings) = (self.store, &self.catalog, &self.siblings);
        let catalog = || lazy.get_or_init(|| Catalog::load(store)).as_ref().ok();
        let continuations = |run: &str, request: &str, output: &[TokenId]| {
            if siblings.has(run) {
                return Course::Later;
            }
            catalog().map_or(Course::Unseen, |catalog| catalog.course(run, request, output))
        };
        let run_id = capture.run.run_id.clone();
        let elsewhere = |digests: &BTreeSet<[u8; 32]>| {
            let mut found = catalog().map(|catalog| catalog.rows_with(digests, &run_id)).unwrap_or_default();
            found.extend(siblings.rows_with(digests, &run_id));
            found
        };
        let said = Said::of(&capture.run, capture.complete, &capture.rows);
        let writer =
            CaptureWriter { staging: &mut self.staging, codec: self.codec, spec: self.spec, meter: self.meter };
        let written = writer.write(capture, findings, &continuations, &elsewhere)?;
        // What was judged without the store that was asked for is not judged.
        if let Some(Err(_)) = self.catalog.get()
            && let Some(Err(error)) = self.catalog.take()
        {
            return Err(error.into());
        }
        self.siblings.hear(&said);
        let (manifest, findings) = match written {
            Ok(written) => written,
            Err(findings) => return Ok(Err(findings)),
        };
        let capture = manifest.capture.id()?;
        let owner = match self.taken.get(&name) {
            Some(owner) => Some(*owner),
            None => match named(self.store, &name) {
                Ok(owner) => owner,
                Err(Fault::Refused(refusal)) => return Ok(Err(vec![refusal].into())),
                Err(Fault::Error(error)) => return Err(error.into()),
            },
        };
        if let Some(refusal) = name_taken(&name, given, capture, owner) {
            return Ok(Err(vec![refusal].into()));
        }
        let manifest_id = self.staging.add_bytes(&document::encode(&manifest)?, "write a manifest into the store")?;
        self.taken.insert(name.clone(), capture);
        self.siblings.join(self.slots.len(), said);
        Ok(Ok(Prepared { capture, manifest_id, manifest, name, given, named: false, findings }))
    }

    /// Makes all that was prepared part of the store: objects, then log, then refs.
    ///
    /// # Errors
    /// When something cannot be written. The log then has all entries of the batch or none.
    pub fn commit(self, at: Nanos) -> Result<Vec<Outcome>, SealError> {
        let Self { store, catalog, mut staging, siblings, mut slots, .. } = self;
        let stored = |run: &str, request: &str, output: &[TokenId]| match catalog.get_or_init(|| Catalog::load(store)) {
            Ok(catalog) => catalog.course(run, request, output),
            Err(_) => Course::Unseen,
        };
        let mut standing = Standing::default();
        for (place, slot) in slots.iter_mut().enumerate() {
            let Ok(prepared) = slot else { continue };
            siblings.settle(place, &mut standing, &stored, &mut prepared.findings);
            if !prepared.findings.refusals.is_empty() {
                *slot = Err(std::mem::take(&mut prepared.findings));
            }
        }
        // What was judged without the store that was asked for is not judged.
        if let Some(Err(error)) = catalog.into_inner() {
            return Err(error.into());
        }
        staging.keep_only(&slots.iter().flatten().flat_map(Prepared::objects).map(|(id, ..)| id).collect());
        let damaged: BTreeMap<ObjectId, Refusal> = staging.commit()?;
        let judge = |slot: Result<Prepared, Findings>| {
            let prepared = slot?;
            let objects = prepared.objects();
            let hits: Vec<Refusal> = objects.into_iter().filter_map(|(id, ..)| damaged.get(&id).cloned()).collect();
            if hits.is_empty() { Ok(prepared) } else { Err(Findings::from(hits)) }
        };
        let slots: Vec<Result<Prepared, Findings>> = slots.into_iter().map(judge).collect();
        let lock = Log::lock(store)?;
        // An orphan that was there, and that this batch relied on, may have been collected since. Nobody collects while the lock is held.
        // And a name that was free may have been taken.
        let judge = |slot: Result<Prepared, Findings>| match slot.and_then(|ready| still_there(store, ready)) {
            Ok(ready) => still_free(store, ready),
            Err(findings) => Ok(Err(findings)),
        };
        let slots = slots.into_iter().map(judge).collect::<Result<Vec<_>, StoreError>>()?;
        let acts: Vec<Act> = slots.iter().flatten().map(|ready| Act::Seal(ready.capture, ready.manifest_id)).collect();
        let places = match Log::append_locked(&lock, store, &acts, at, TOOL) {
            Ok(places) => places,
            Err(Fault::Error(error)) => return Err(error.into()),
            Err(Fault::Refused(refusal)) => {
                let refuse = |slot: Result<Prepared, Findings>| match slot {
                    Ok(_) => Outcome::Refused(vec![refusal.clone()].into()),
                    Err(findings) => Outcome::Refused(findings.sorted()),
                };
                return Ok(slots.into_iter().map(refuse).collect());
            }
        };
        let unnamed = slots.iter().flatten().filter(|ready| !ready.named);
        write_refs(store, unnamed.map(|ready| (ready.name.as_str(), ready.capture)))?;
        let mut places = places.into_iter();
        let mut outcomes = Vec::new();
        for slot in slots {
            outcomes.push(match slot {
                Err(findings) => Outcome::Refused(findings.sorted()),
                Ok(ready) => {
                    let (entry, new) = places.next().unwrap_or_default();
                    Outcome::Sealed(Box::new(Sealed {
                        capture: ready.capture,
                        manifest: ready.manifest_id,
                        document: ready.manifest,
                        name: ready.name,
                        entry,
                        already: !new,
                        findings: ready.findings.sorted(),
                    }))
                }
            });
        }
        Ok(outcomes)
    }
}

/// The capture, if all its objects are in the store.
fn still_there(store: &Store, ready: Prepared) -> Result<Prepared, Findings> {
    let missing =
        ready.objects().into_iter().filter_map(|(id, bytes, role)| match store.open_object(&id, bytes, &role) {
            // What cannot be opened now cannot be judged here either; whoever verifies will say so.
            Ok(_) | Err(Fault::Error(_)) => None,
            Err(Fault::Refused(refusal)) => Some(refusal),
        });
    let missing: Vec<Refusal> = missing.collect();
    if missing.is_empty() { Ok(ready) } else { Err(missing.into()) }
}

/// The capture, if its name is nobody else's now that the log is locked.
fn still_free(store: &Store, ready: Prepared) -> Result<Result<Prepared, Findings>, StoreError> {
    let owner = match named(store, &ready.name) {
        Ok(owner) => owner,
        Err(Fault::Refused(refusal)) => return Ok(Err(vec![refusal].into())),
        Err(Fault::Error(error)) => return Err(error),
    };
    Ok(match name_taken(&ready.name, ready.given, ready.capture, owner) {
        Some(refusal) => Err(vec![refusal].into()),
        None => Ok(Prepared { named: owner.is_some(), ..ready }),
    })
}

/// A name is one capture's: that of `owner`, if it has one.
fn name_taken(name: &str, given: bool, capture: CaptureId, owner: Option<CaptureId>) -> Option<Refusal> {
    let owner = owner.filter(|owner| *owner != capture)?;
    let subject = if given { Subject::Capture } else { Subject::Binding("run_id".to_owned()) };
    let expected = format!("{name:?} to be free, or the name of this capture {capture}");
    Some(Refusal::new(Rule::NameTaken, subject, expected, format!("the name of capture {owner}")))
}

struct CaptureWriter<'w, 'a> {
    staging: &'w mut Staging<'a>,
    codec: Codec,
    spec: Option<&'w Spec>,
    meter: &'w Meter,
}

impl CaptureWriter<'_, '_> {
    /// Stages everything but the manifest.
    fn write(
        mut self,
        mut capture: Capture,
        mut findings: Findings,
        continuations: &Continuations<'_>,
        elsewhere: &Elsewhere<'_>,
    ) -> Result<Result<(Manifest, Findings), Findings>, SealError> {
        let pass = scores::stage(self.staging, self.codec, self.meter, &capture)?;
        if let Some(pass) = &pass {
            for (row, facts) in capture.rows.iter_mut().zip(&pass.facts) {
                row.score_digest = facts.as_ref().map(|facts| facts.digest);
            }
        }
        let scores = pass.as_ref().map(|pass| ScoreEvidence { facts: &pass.facts, f32_sha256: pass.f32_sha256 });
        let (run, rows) = (&capture.run, capture.rows.as_slice());
        findings.absorb(rule::judge(&Evidence { run, rows, scores, continuations, elsewhere }));
        if let Some(spec) = self.spec {
            findings.absorb(rule::judge_spec(&capture.run, &capture.rows, capture.complete, spec));
        }
        if !findings.refusals.is_empty() {
            return Ok(Err(findings));
        }
        let (row_root, score_root) = row::roots(&capture.rows);
        let mut attachments = Vec::new();
        for (path, file) in capture.attachments {
            let (object, bytes) = self.staging.add_stream(file, "copy an attachment into the store")?;
            attachments.push(Attachment { blake3: object.0, bytes, path });
        }
        let document = CaptureDocument {
            attachments,
            complete: capture.complete,
            row_root,
            rows: long(capture.rows.len()),
            run_json: RunJson { bytes: long(capture.run_bytes.len()), sha256: Sha256::of(&capture.run_bytes) },
            schema: CAPTURE_SCHEMA.to_owned(),
            score_root,
            vocab_size: capture.run.scores.as_ref().map(|declared| declared.vocab_size),
        };
        let manifest = Manifest {
            capture: document,
            row_shards: self.rows(&capture.rows)?,
            run_object: self.staging.add_bytes(&capture.run_bytes, "write run.json into the store")?,
            schema: MANIFEST_SCHEMA.to_owned(),
            score_shards: pass.map(|pass| pass.shards).unwrap_or_default(),
            writer: Writer::this(),
        };
        Ok(Ok((manifest, findings)))
    }

    fn rows(&mut self, rows: &[Row]) -> Result<Vec<RowShard>, SealError> {
        let mut shards = Vec::new();
        let mut rest = rows;
        let mut record = Vec::new();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |row: &Row| {
                row.write_record(&mut record);
                bytes += record.len();
                bytes <= row_shard::CUT_BYTES
            };
            let most = usize::try_from(row_shard::MAX_SHARD_ROWS).unwrap_or(usize::MAX);
            let count = rest.iter().take(most).map(fits).take_while(|fits| *fits).count().max(1);
            let (shard, after) = rest.split_at(count);
            let file = row_shard::encode(shard);
            let object = self.staging.add_bytes(&file, "write a rows shard into the store")?;
            shards.push(RowShard { bytes: long(file.len()), object, rows: long(count) });
            rest = after;
        }
        Ok(shards)
    }
}
