//! Seal: a capture directory becomes objects, one manifest and one log entry, or nothing that anything names (objects of a refused commit are left to `gc`).
//!
//! One pass over the scores: each row is read once, made canonical, digested, compressed and written to a staging folder; then every rule is
//! asked, and only then does anything become part of the store. Always holds: equal captures get equal ids, whatever the order of rows,
//! the codec, or the number of threads. See `specs/format-v1.md`, sections 6 to 9.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use crate::binding::ScoresDeclaration;
use crate::canon::document;
use crate::canon::json::JsonError;
use crate::canon::scores::{Canonical, Dtype};
use crate::catalog::{Catalog, named, write_refs};
use crate::digest::{Sha256, Sha256Stream};
use crate::facts::Facts;
use crate::id::{CaptureId, Nanos, ObjectId, RowKey, TokenId, long};
use crate::ingest::{self, Capture, Torn};
use crate::log::Log;
use crate::manifest::{
    Act, Attachment, CAPTURE_SCHEMA, CaptureDocument, Codec, MANIFEST_SCHEMA, Manifest, RowShard, RunJson, ScoreShard,
    TOOL, Writer,
};
use crate::meter::Meter;
use crate::pipeline;
use crate::refusal::{Findings, Refusal, Rule, Subject};
use crate::row::{self, Row, claims};
use crate::rule::{self, Continuations, Elsewhere, Evidence, ScoreEvidence};
use crate::shard::page::Compressor;
use crate::shard::rows as row_shard;
use crate::shard::scores::{self as score_shard, ScoresWriter, page_crc};
use crate::spec::Spec;
use crate::store::{Fault, Staging, Store, StoreError, io_error};

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
    /// Outputs of the batch's own runs, by run id and request id: a replay may stand beside what it replays
    outputs: BTreeMap<(String, String), Vec<TokenId>>,
    /// The digests that rows of the batch's runs carry for their scores, refused runs included
    claims: BTreeMap<[u8; 32], (Arc<str>, RowKey)>,
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
            outputs: BTreeMap::new(),
            claims: BTreeMap::new(),
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
        let (store, lazy, outputs, claimed) = (self.store, &self.catalog, &self.outputs, &self.claims);
        let catalog = || lazy.get_or_init(|| Catalog::load(store)).as_ref().ok();
        let continuations = |run: &str, request: &str| {
            let here = outputs.get(&(run.to_owned(), request.to_owned())).cloned();
            here.or_else(|| catalog()?.continuation(run, request))
        };
        let requests = capture.run.requests.iter();
        let own: Vec<_> = requests
            .map(|r| ((capture.run.run_id.clone(), r.request_id.clone()), r.output_token_ids.clone()))
            .collect();
        let run_id: Arc<str> = capture.run.run_id.as_str().into();
        let elsewhere = |digests: &BTreeSet<[u8; 32]>| {
            let mut found = catalog().map(|catalog| catalog.rows_with(digests, &run_id)).unwrap_or_default();
            let here = digests.iter().filter_map(|digest| Some((*digest, claimed.get(digest)?)));
            let here = here.filter(|(_, (run, _))| **run != *run_id);
            found.extend(here.map(|(digest, (run, key))| (digest, (run.to_string(), *key))));
            found
        };
        let own_claims: Vec<([u8; 32], RowKey)> =
            capture.rows.iter().flat_map(|row| claims(row).map(|digest| (digest, row.key))).collect();
        let writer =
            CaptureWriter { staging: &mut self.staging, codec: self.codec, spec: self.spec, meter: self.meter };
        let written = writer.write(capture, findings, &continuations, &elsewhere)?;
        // What was judged without the store that was asked for is not judged.
        if let Some(Err(_)) = self.catalog.get()
            && let Some(Err(error)) = self.catalog.take()
        {
            return Err(error.into());
        }
        for (digest, key) in own_claims {
            self.claims.entry(digest).or_insert_with(|| (Arc::clone(&run_id), key));
        }
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
        self.taken.insert(name.clone(), capture);
        self.outputs.extend(own);
        let manifest_id = self.staging.add_bytes(&document::encode(&manifest)?, "write a manifest into the store")?;
        Ok(Ok(Prepared { capture, manifest_id, manifest, name, given, named: false, findings }))
    }

    /// Makes all that was prepared part of the store: objects, then log, then refs.
    ///
    /// # Errors
    /// When something cannot be written. The log then has all entries of the batch or none.
    pub fn commit(self, at: Nanos) -> Result<Vec<Outcome>, SealError> {
        let store = self.store;
        let damaged: BTreeMap<ObjectId, Refusal> = self.staging.commit()?;
        let judge = |slot: Result<Prepared, Findings>| {
            let prepared = slot?;
            let manifest = (prepared.manifest_id, 0, String::new());
            let objects = prepared.manifest.objects().into_iter().chain([manifest]);
            let hits: Vec<Refusal> = objects.filter_map(|(id, _, _)| damaged.get(&id).cloned()).collect();
            if hits.is_empty() { Ok(prepared) } else { Err(Findings::from(hits)) }
        };
        let slots: Vec<Result<Prepared, Findings>> = self.slots.into_iter().map(judge).collect();
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
    let manifest = (ready.manifest_id, None, "manifest".to_owned());
    let objects = ready.manifest.objects().into_iter().map(|(id, bytes, role)| (id, Some(bytes), role));
    let missing =
        objects.chain([manifest]).filter_map(|(id, bytes, role)| match store.open_object(&id, bytes, &role) {
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

/// What the pass over the scores leaves behind.
struct ScoresPass {
    shards: Vec<ScoreShard>,
    facts: Vec<Option<Facts>>,
    f32_sha256: Option<Sha256>,
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
        let pass = match (&capture.run.scores, &capture.scores) {
            (Some(declared), Some(file)) => Some(self.scores(declared, file, &capture.rows, &capture.places)?),
            _ => None,
        };
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

    fn scores(
        &mut self,
        declared: &ScoresDeclaration,
        file: &File,
        rows: &[Row],
        places: &[u64],
    ) -> Result<ScoresPass, SealError> {
        let vocab = u32::try_from(declared.vocab_size).unwrap_or(u32::MAX);
        let row_bytes = usize::try_from(vocab).unwrap_or(0) * declared.dtype.size();
        let (codec, meter) = (self.codec, self.meter);
        meter.expect(long(row_bytes) * long(rows.len()));
        let slot = |rows| Ok::<_, SealError>(Slot::new(rows));
        let sets = pipeline::sets(rows.len(), usize::try_from(vocab).unwrap_or(0) * 4, slot)?;
        // As many as work at once: of slots there are several a thread.
        let tools: Mutex<Vec<Tools>> = Mutex::default();
        let mut next = rows.iter().zip(places).peekable();
        let mut output = ShardOutput {
            staging: self.staging,
            codec,
            vocab,
            open: None,
            canonical_bytes: 0,
            shards: Vec::new(),
            facts: Vec::with_capacity(rows.len()),
            f32_stream: declared.f32_sha256_at_capture.map(|_| Sha256Stream::default()),
            wide: Vec::new(),
        };
        pipeline::run(
            sets,
            |slot: &mut Slot| {
                if meter.is_stopped() {
                    return Err(SealError::Interrupted);
                }
                slot.filled = 0;
                for work in &mut slot.rows {
                    let Some((row, &place)) = next.next() else { break };
                    work.row = Some(row.clone());
                    work.raw.resize(row_bytes, 0);
                    file.read_exact_at(&mut work.raw, place * long(row_bytes))
                        .map_err(io_error("read", declared.dtype.file_name()))?;
                    slot.filled += 1;
                }
                Ok(slot.filled > 0)
            },
            |slot| {
                let idle = tools.lock().ok().and_then(|mut tools| tools.pop());
                match idle.map_or_else(|| Tools::new(codec), Ok) {
                    Ok(mut own) => {
                        slot.work(declared, &mut own);
                        if let Ok(mut idle) = tools.lock() {
                            idle.push(own);
                        }
                    }
                    Err(error) => slot.error = Some(error),
                }
            },
            |slot| {
                for work in slot.rows.iter().take(slot.filled) {
                    output.push(work)?;
                    meter.add(long(row_bytes));
                }
                if let Some(error) = slot.error.take() {
                    return Err(io_error("compress", "a row of scores")(error).into());
                }
                Ok(())
            },
        )?;
        output.finish()
    }
}

/// Rows that one thread works on at a time.
struct Slot {
    rows: Vec<RowWork>,
    filled: usize,
    error: Option<io::Error>,
}

/// What a thread needs to work on a row.
struct Tools {
    compressor: Compressor,
    scratch: Vec<u8>,
}

impl Tools {
    fn new(codec: Codec) -> io::Result<Self> {
        Ok(Self { compressor: Compressor::new(codec)?, scratch: Vec::new() })
    }
}

#[derive(Default)]
struct RowWork {
    row: Option<Row>,
    raw: Vec<u8>,
    canonical: Canonical,
    facts: Option<Facts>,
    body: Vec<u8>,
    crc: u32,
}

impl Slot {
    fn new(rows: usize) -> Self {
        Self { rows: (0..rows).map(|_| RowWork::default()).collect(), filled: 0, error: None }
    }

    fn work(&mut self, declared: &ScoresDeclaration, tools: &mut Tools) {
        for work in self.rows.iter_mut().take(self.filled) {
            let Some(row) = &work.row else { continue };
            work.canonical.set_from_file_row(declared.dtype, &work.raw);
            work.facts = Some(Facts::derive(&work.canonical, row, declared, &mut tools.scratch));
            if let Err(error) = tools.compressor.compress_row(&work.canonical, &mut work.body) {
                self.error = Some(error);
            }
            work.crc = page_crc(&work.body);
        }
    }
}

const WRITE_SCORES: &str = "write a scores shard into the store";

type OpenShard = (ScoresWriter<BufWriter<File>>, PathBuf);

/// Takes finished pages in key order and cuts shards.
struct ShardOutput<'w, 'a> {
    staging: &'w mut Staging<'a>,
    codec: Codec,
    vocab: u32,
    open: Option<OpenShard>,
    canonical_bytes: u64,
    shards: Vec<ScoreShard>,
    facts: Vec<Option<Facts>>,
    f32_stream: Option<Sha256Stream>,
    wide: Vec<u8>,
}

impl ShardOutput<'_, '_> {
    fn push(&mut self, work: &RowWork) -> Result<(), SealError> {
        if let Some(stream) = &mut self.f32_stream {
            work.canonical.write_as(Dtype::F32, &mut self.wide);
            stream.update(&self.wide);
        }
        self.facts.push(work.facts);
        let bytes = long(work.canonical.bytes().len());
        if self.canonical_bytes + bytes > score_shard::CUT_BYTES {
            self.close()?;
        }
        self.canonical_bytes += bytes;
        let (writer, _) = match &mut self.open {
            Some(open) => open,
            None => {
                let (file, path) = self.staging.new_file(WRITE_SCORES)?;
                let writer =
                    ScoresWriter::new(file, self.codec, self.vocab).map_err(self.staging.error(WRITE_SCORES))?;
                self.open.insert((writer, path))
            }
        };
        writer.push_page_with(&work.body, work.crc).map_err(self.staging.error(WRITE_SCORES))?;
        Ok(())
    }

    fn close(&mut self) -> Result<(), SealError> {
        self.canonical_bytes = 0;
        let Some((writer, path)) = self.open.take() else { return Ok(()) };
        let (_, shard) = writer.finish().map_err(self.staging.error(WRITE_SCORES))?;
        self.staging.add(shard.object, path);
        self.shards.push(shard);
        Ok(())
    }

    fn finish(mut self) -> Result<ScoresPass, SealError> {
        self.close()?;
        let f32_sha256 = self.f32_stream.map(|stream| stream.digest());
        Ok(ScoresPass { shards: self.shards, facts: self.facts, f32_sha256 })
    }
}
