//! The catalog: from what people type to what a store holds.
//!
//! A name is a whole id, a unique prefix of eight digits or more, or a run id; what it stands for is always a whole capture id and the
//! manifests that the log has for it. Refs are a convenience: nothing here trusts one further than the capture id it names.
//! See `specs/format-v1.md`, section 9.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use crate::binding::{Course, MAX_RUN_JSON, Run};
use crate::canon::document;
use crate::digest::Sha256;
use crate::id::{CaptureId, ObjectId, RowKey, TokenId};
use crate::log::Log;
use crate::manifest::{BundleHeader, Document, DocumentAct, Entry, Head, MAX_DOCUMENT, Manifest, REF_SCHEMA, Ref};
use crate::near::did_you_mean;
use crate::proof::check_header;
use crate::refusal::{Refusal, Rule, Subject};
use crate::row::{MAX_NAME, claims};
use crate::shard::rows as row_shard;
use crate::store::{Fault, NEW, Store, StoreError, ref_file_name};

const RUNS: &str = "refs/runs";
/// Headers of the bundles whose captures are in the store.
pub const BUNDLES: &str = "refs/bundles";
const MAX_REF: u64 = 64 << 10;
/// The shortest prefix of an id that names it.
pub const MIN_PREFIX: usize = 8;

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The capture
    pub capture: CaptureId,
    /// The manifests to look at, in the order of the log
    pub manifests: Vec<ObjectId>,
}

/// An entry of another log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Digest of the header of the bundle that it came in
    pub record: String,
    /// Origin of that log
    pub origin: String,
    /// Its place there, from 0
    pub place: u64,
    /// The entry
    pub entry: Entry,
}

/// Captures, each with its run, but for the requests, and the tree hash of its rows.
pub type KnownRuns = BTreeMap<CaptureId, (Run, Sha256)>;

/// Why a name stands for nothing, or for too much.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    /// Nothing has it
    #[error("no capture of this store has the id, a prefix of eight digits or more, or the run id {name:?}{meant}")]
    Unknown {
        /// The name
        name: String,
        /// Which run id may be meant, as a question
        meant: String,
    },
    /// A document has it
    #[error("{name:?} is no capture but the {what} {subject} of the log", what = act.name())]
    Document {
        /// The name
        name: String,
        /// What was done with the document
        act: DocumentAct,
        /// Its id
        subject: Sha256,
    },
    /// Several have it
    #[error("{name:?} could mean: {}", meanings.join(", "))]
    Ambiguous {
        /// The name
        name: String,
        /// All that it could mean
        meanings: Vec<String>,
    },
    /// `--exact` and not a whole id
    #[error("{name:?} is not a whole id of 64 digits")]
    NotExact {
        /// The name
        name: String,
    },
}

/// A store's log and refs, loaded.
pub struct Catalog<'a> {
    store: &'a Store,
    /// The log
    pub log: Log,
    /// Entries of other logs, proved by the headers of the bundles that they came in
    pub imported: Vec<Imported>,
    /// Roots of the heads of these bundles, by origin and size
    heads: BTreeMap<(String, u64), Sha256>,
    /// Capture ids by run id
    names: BTreeMap<String, CaptureId>,
    /// Refs that are not what they should be
    pub refusals: Vec<Refusal>,
    /// Held by the one who looks into a capture beside the one that is verified: its size is not known before
    aside: Mutex<Aside>,
}

/// What is remembered of captures that were looked into beside others.
#[derive(Default)]
struct Aside {
    /// All captures that ended, by the run ids that they have themselves
    by_run: Option<BTreeMap<String, Vec<CaptureId>>>,
    /// The one that was looked into last
    last: Option<Outputs>,
}

/// What the run of a capture generated.
struct Outputs {
    capture: CaptureId,
    /// None where it never ended: what it would have generated else is not known
    run_id: Option<String>,
    by_request: BTreeMap<String, Vec<TokenId>>,
}

impl<'a> Catalog<'a> {
    /// Reads log and refs.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn load(store: &'a Store) -> Result<Self, StoreError> {
        Self::read(store, store.list(RUNS)?.into_iter().filter(|file| !file.starts_with(NEW)))
    }

    /// Reads the log, and of the refs only the one of `name`: for one who asks for nothing else, in a store of many.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn load_one(store: &'a Store, name: &str) -> Result<Self, StoreError> {
        Self::read(store, [ref_file_name(name)])
    }

    fn read(store: &'a Store, refs: impl IntoIterator<Item = String>) -> Result<Self, StoreError> {
        let mut catalog = Self::of(store, Log::load(store)?, BTreeMap::new());
        for file in refs {
            match read_ref(store, &file) {
                Ok(found) => catalog.names.extend(found.map(|found| (found.name, found.capture))),
                Err(Fault::Refused(refusal)) => catalog.refusals.push(refusal),
                Err(Fault::Error(error)) => return Err(error),
            }
        }
        for file in store.list(BUNDLES)?.into_iter().filter(|file| !file.starts_with(NEW)) {
            match read_header(store, &file) {
                Ok(header) => catalog.import(&file, header)?,
                Err(Fault::Refused(refusal)) => catalog.refusals.push(refusal),
                Err(Fault::Error(error)) => return Err(error),
            }
        }
        Ok(catalog)
    }

    /// A catalog of what is known already.
    #[must_use]
    pub fn of(store: &'a Store, log: Log, names: BTreeMap<String, CaptureId>) -> Self {
        Self {
            store,
            log,
            imported: Vec::new(),
            heads: BTreeMap::new(),
            names,
            refusals: Vec::new(),
            aside: Mutex::default(),
        }
    }

    /// Takes over the entries of a bundle's header. One from this very log is also a head that somebody kept.
    fn import(&mut self, file: &str, header: BundleHeader) -> Result<(), StoreError> {
        let head = &header.head;
        let subject = || Subject::File(format!("{BUNDLES}/{file}"));
        let own = check_own_head(self.store, &self.log, head, subject())?;
        self.refusals.extend(own);
        let refusals = check_header(&header);
        if refusals.is_empty() {
            self.refusals.extend(self.forked(&header, subject()));
            self.heads.insert((head.origin.clone(), head.size), head.root);
            let imported = header.entries.into_iter();
            self.imported.extend(imported.map(|proved| Imported {
                record: file.to_owned(),
                origin: header.head.origin.clone(),
                place: proved.index,
                entry: proved.entry,
            }));
        }
        self.refusals.extend(refusals.into_iter().map(|refusal| Refusal { subject: subject(), ..refusal }));
        Ok(())
    }

    /// Two bundles of one log never show two histories of it.
    fn forked(&self, header: &BundleHeader, subject: Subject) -> Option<Refusal> {
        let head = &header.head;
        let other_root = self.heads.get(&(head.origin.clone(), head.size)).is_some_and(|root| *root != head.root);
        let other_entry = header.entries.iter().any(|proved| {
            let same = |known: &&Imported| known.origin == head.origin && known.place == proved.index;
            self.imported.iter().filter(same).any(|known| known.entry != proved.entry)
        });
        let expected = format!("one history of the log of origin {}", head.origin);
        let refuse = || Refusal::new(Rule::LogInconsistent, subject, expected, "another in an earlier bundle");
        (other_root || other_entry).then(refuse)
    }

    /// All entries: those of the log, then the imported ones.
    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.log.entries.iter().chain(self.imported.iter().map(|imported| &imported.entry))
    }

    /// The logs, each under its own head, with the places of their entries: the store's own, then those of the bundles in it.
    #[must_use]
    pub fn logs(&self) -> Vec<Vec<(u64, &Entry)>> {
        let mut logs: Vec<Vec<(u64, &Entry)>> = vec![self.log.places().collect()];
        for bundled in self.imported.chunk_by(|a, b| a.record == b.record) {
            logs.push(bundled.iter().map(|imported| (imported.place, &imported.entry)).collect());
        }
        logs
    }

    /// The captures that were sealed, with the manifests by which they were.
    fn sealed(&self) -> impl Iterator<Item = (CaptureId, ObjectId)> {
        self.entries().filter_map(Entry::sealed)
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &'a Store {
        self.store
    }

    /// The documents that were put down, in the order of the entries.
    pub fn documents(&self) -> impl Iterator<Item = (DocumentAct, Document)> {
        self.entries().filter_map(Entry::document)
    }

    /// All captures that the log and imported entries have, in their order, each once.
    #[must_use]
    pub fn captures(&self) -> Vec<CaptureId> {
        let mut seen = BTreeSet::new();
        self.sealed().map(|(capture, _)| capture).filter(|capture| seen.insert(*capture)).collect()
    }

    /// The run ids that name a capture, sorted.
    #[must_use]
    pub fn names_of(&self, capture: CaptureId) -> Vec<&str> {
        self.names.iter().filter(|(_, id)| **id == capture).map(|(name, _)| name.as_str()).collect()
    }

    /// The capture that a run id names.
    #[must_use]
    pub fn by_run_id(&self, name: &str) -> Option<CaptureId> {
        self.names.get(name).copied()
    }

    /// All captures with all their manifests, in the order of the log.
    #[must_use]
    pub fn subjects(&self) -> Vec<Resolved> {
        let mut places: BTreeMap<CaptureId, usize> = BTreeMap::new();
        let mut subjects: Vec<Resolved> = Vec::new();
        for (capture, manifest) in self.sealed() {
            let place = *places.entry(capture).or_insert(subjects.len());
            match subjects.get_mut(place) {
                Some(subject) if subject.manifests.contains(&manifest) => {}
                Some(subject) => subject.manifests.push(manifest),
                None => subjects.push(Resolved { capture, manifests: vec![manifest] }),
            }
        }
        subjects
    }

    /// All manifests that the log and imported entries have for a capture.
    #[must_use]
    pub fn manifests_of(&self, capture: CaptureId) -> Vec<ObjectId> {
        let mut seen = BTreeSet::new();
        let manifests = self.sealed().filter(|(sealed, _)| *sealed == capture).map(|(_, manifest)| manifest);
        manifests.filter(|manifest| seen.insert(*manifest)).collect()
    }

    /// The manifest of a capture, the first that can be read, with digests checked up to the capture id.
    #[must_use]
    pub fn manifest(&self, capture: CaptureId) -> Option<Manifest> {
        self.manifests_of(capture).iter().find_map(|id| read_manifest(self.store, id, capture).ok())
    }

    /// The run of a capture, by documents whose digests are checked.
    #[must_use]
    pub fn run(&self, manifest: &Manifest) -> Option<Run> {
        self.read_run(manifest).ok()
    }

    fn read_run(&self, manifest: &Manifest) -> Result<Run, Fault> {
        let declared = manifest.capture.run_json;
        let bytes = self.store.read_object(&manifest.run_object, Some(declared.bytes), MAX_RUN_JSON, "run.json")?;
        let refuse = |rule, expected: String, found: String| {
            let subject = Subject::Object(manifest.run_object, "run.json".to_owned());
            Fault::Refused(Refusal::new(rule, subject, expected, found))
        };
        let found = Sha256::of(&bytes);
        if found != declared.sha256 {
            return Err(refuse(Rule::RootMismatch, format!("SHA-256 {}", declared.sha256), found.to_string()));
        }
        Run::parse(&bytes)
            .map_err(|_| refuse(Rule::SchemaInvalid, "a run.json".to_owned(), "something else".to_owned()))
    }

    /// Every capture that the logs name, with its run, but for the requests, and the tree hash of its rows: what is judged over all of them must know each.
    ///
    /// # Errors
    /// When the store cannot be read.
    ///
    /// # Refusals
    /// For each capture of which no manifest leads to its run: what the last one was refused for.
    pub fn runs(&self) -> Result<Result<KnownRuns, Vec<Refusal>>, StoreError> {
        let (mut runs, mut refusals) = (BTreeMap::new(), Vec::new());
        for Resolved { capture, manifests } in self.subjects() {
            let mut last = None;
            for id in &manifests {
                let read = read_manifest(self.store, id, capture)
                    .and_then(|manifest| Ok((self.read_run(&manifest)?.without_requests(), manifest.capture.row_root)));
                match read {
                    Ok(found) => {
                        runs.insert(capture, found);
                        last = None;
                        break;
                    }
                    Err(Fault::Refused(refusal)) => last = Some(refusal),
                    Err(Fault::Error(error)) => return Err(error),
                }
            }
            refusals.extend(last);
        }
        Ok(if refusals.is_empty() { Ok(runs) } else { Err(refusals) })
    }

    /// What `output` is to a request of the run whose run id is `run_id`. A ref may name it, and only run.json says that it is that run: where a name
    /// leads elsewhere, or the output left what it leads to, all captures are looked through.
    #[must_use]
    pub fn course(&self, run_id: &str, request_id: &str, output: &[TokenId]) -> Course {
        let mut aside = self.aside.lock().unwrap_or_else(PoisonError::into_inner);
        let course = self
            .by_run_id(run_id)
            .map_or(Course::Unseen, |capture| self.course_of(&mut aside.last, capture, (run_id, request_id), output));
        course.or(|| {
            let Aside { by_run, last } = &mut *aside;
            let same = by_run.get_or_insert_with(|| self.by_run()).get(run_id).into_iter().flatten();
            same.fold(Course::Unseen, |course, &capture| {
                course.or(|| self.course_of(last, capture, (run_id, request_id), output))
            })
        })
    }

    /// What `output` is to a request of a capture, if that is of the run `run_id`.
    fn course_of(
        &self,
        last: &mut Option<Outputs>,
        capture: CaptureId,
        (run_id, request_id): (&str, &str),
        output: &[TokenId],
    ) -> Course {
        if last.as_ref().is_none_or(|last| last.capture != capture) {
            let (run_id, requests) =
                self.ended(capture).map(|run| (Some(run.run_id), run.requests)).unwrap_or_default();
            let outputs = requests.into_iter().map(|request| (request.request_id, request.output_token_ids));
            *last = Some(Outputs { capture, run_id, by_request: outputs.collect() });
        }
        let same = last.as_ref().filter(|last| last.run_id.as_deref() == Some(run_id));
        let generated = same.and_then(|last| last.by_request.get(request_id));
        generated.map_or(Course::Unseen, |generated| Course::of(output, generated))
    }

    /// The run of a capture, if it ended.
    fn ended(&self, capture: CaptureId) -> Option<Run> {
        self.manifest(capture).filter(|manifest| manifest.capture.complete).and_then(|manifest| self.run(&manifest))
    }

    fn by_run(&self) -> BTreeMap<String, Vec<CaptureId>> {
        let mut by_run: BTreeMap<String, Vec<CaptureId>> = BTreeMap::new();
        for capture in self.captures() {
            if let Some(run) = self.ended(capture) {
                by_run.entry(run.run_id).or_default().push(capture);
            }
        }
        by_run
    }

    /// Rows of this store's runs, but for `own`, that carry one of `digests` for their scores. Reads rows shards one by one, so it is only asked
    /// when scores turn out not to be their row's.
    #[must_use]
    pub fn rows_with(&self, digests: &BTreeSet<[u8; 32]>, own: &str) -> BTreeMap<[u8; 32], (String, RowKey)> {
        let _turn = self.aside.lock();
        let mut found = BTreeMap::new();
        for manifest in self.captures().into_iter().filter_map(|capture| self.manifest(capture)) {
            let Some(run) = self.run(&manifest).filter(|run| run.run_id != own) else { continue };
            for shard in &manifest.row_shards {
                let read = self.store.read_object(
                    &shard.object,
                    Some(shard.bytes),
                    row_shard::max_bytes(shard.rows),
                    "rows shard",
                );
                let rows = read.ok().and_then(|bytes| row_shard::decode(&bytes, shard.rows).ok()).unwrap_or_default();
                for row in rows {
                    for digest in claims(&row).filter(|digest| digests.contains(digest)) {
                        found.entry(digest).or_insert_with(|| (run.run_id.clone(), row.key));
                    }
                }
            }
        }
        found
    }

    /// What `name` stands for. With `exact` only a whole id will do.
    ///
    /// # Errors
    /// When it stands for nothing, or for more than one thing.
    pub fn resolve(&self, name: &str, exact: bool) -> Result<Resolved, NameError> {
        let hex = name.len() <= 64 && name.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
        if exact && !(hex && name.len() == 64) {
            return Err(NameError::NotExact { name: name.to_owned() });
        }
        let mut meanings: BTreeMap<String, Resolved> = BTreeMap::new();
        if hex && name.len() >= MIN_PREFIX {
            for (capture, manifest) in self.sealed() {
                if capture.to_string().starts_with(name) {
                    let resolved = Resolved { capture, manifests: self.manifests_of(capture) };
                    meanings.insert(format!("capture {capture}"), resolved);
                }
                if manifest.to_string().starts_with(name) {
                    let resolved = Resolved { capture, manifests: vec![manifest] };
                    meanings.insert(format!("manifest {manifest}"), resolved);
                }
            }
        }
        // 64 digits are an id, whatever runs are called.
        let whole = hex && name.len() == 64;
        if !exact
            && !whole
            && let Some(&capture) = self.names.get(name)
        {
            let resolved = Resolved { capture, manifests: self.manifests_of(capture) };
            meanings.entry(format!("capture {capture}")).or_insert(resolved);
        }
        let unknown = || {
            let named =
                |document: &Document| hex && name.len() >= MIN_PREFIX && document.subject.to_string().starts_with(name);
            if let Some((act, document)) = self.documents().find(|(_, document)| named(document)) {
                return NameError::Document { name: name.to_owned(), act, subject: document.subject };
            }
            let meant = did_you_mean(name, self.names.keys().map(String::as_str));
            NameError::Unknown { name: name.to_owned(), meant }
        };
        if meanings.len() > 1 {
            return Err(NameError::Ambiguous { name: name.to_owned(), meanings: meanings.into_keys().collect() });
        }
        meanings.into_values().next().ok_or_else(unknown)
    }
}

/// The bytes of a document that an entry names, with both digests checked.
///
/// # Errors
/// When it cannot be read.
///
/// # Refusals
/// What an object can be refused for, root-mismatch.
pub fn read_document(store: &Store, document: &Document) -> Result<Vec<u8>, Fault> {
    let bytes = store.read_object(&document.object, None, MAX_DOCUMENT, "document")?;
    check_document(document, &bytes).map_err(Fault::Refused)?;
    Ok(bytes)
}

/// Whether these bytes, whose BLAKE3 is known to be right, also have the SHA-256 that the entry gives.
///
/// # Errors
///
/// # Refusals
/// root-mismatch.
pub fn check_document(document: &Document, bytes: &[u8]) -> Result<(), Refusal> {
    let found = Sha256::of(bytes);
    if found == document.subject {
        return Ok(());
    }
    let subject = Subject::Object(document.object, "document".to_owned());
    Err(Refusal::new(Rule::RootMismatch, subject, format!("SHA-256 {}", document.subject), found.to_string()))
}

/// A manifest, with its digest checked, that carries `capture`.
///
/// # Errors
/// When it cannot be read.
///
/// # Refusals
/// What an object can be refused for, json-not-canonical, root-mismatch.
pub fn read_manifest(store: &Store, id: &ObjectId, capture: CaptureId) -> Result<Manifest, Fault> {
    let bytes = store.read_object(id, None, MAX_DOCUMENT, "manifest")?;
    parse_manifest(&bytes, id, capture).map_err(Fault::Refused)
}

/// The manifest `id`, which has these bytes and carries `capture`.
///
/// # Errors
///
/// # Refusals
/// json-not-canonical, root-mismatch.
pub fn parse_manifest(bytes: &[u8], id: &ObjectId, capture: CaptureId) -> Result<Manifest, Refusal> {
    let refuse = |rule, expected: String, found: String| {
        Refusal::new(rule, Subject::Object(*id, "manifest".to_owned()), expected, found)
    };
    let canonical = |error: crate::canon::json::JsonError| {
        refuse(Rule::from(&error), "a canonical manifest".to_owned(), error.to_string())
    };
    let manifest: Manifest = document::decode(bytes).map_err(canonical)?;
    let found = manifest.capture.id().map_err(canonical)?;
    if found == capture {
        return Ok(manifest);
    }
    Err(refuse(Rule::RootMismatch, format!("the document of capture {capture}"), found.to_string()))
}

/// A head of this very store's origin is one that somebody kept: the log must begin with it.
///
/// # Errors
/// When an entry cannot be encoded.
pub fn check_own_head(store: &Store, log: &Log, head: &Head, subject: Subject) -> Result<Option<Refusal>, StoreError> {
    if head.origin != store.origin() || !log.refusals.is_empty() {
        return Ok(None);
    }
    let refuse = |found: String| {
        let Head { size, root, bytes, .. } = head;
        let expected = format!("a log that begins with the {size} entries of root {root}, of {bytes} bytes");
        Ok(Some(Refusal::new(Rule::LogInconsistent, subject, expected, found)))
    };
    match (log.size_at(head.size), log.bytes_at(store, head.size)?) {
        (Some(now), _) if now.root != head.root => refuse(format!("root {}", now.root)),
        (Some(_), Some(bytes)) if bytes.to_string() != head.bytes => refuse(format!("{bytes} bytes")),
        (Some(_), Some(_)) => Ok(None),
        _ => refuse("a shorter log".to_owned()),
    }
}

fn read_header(store: &Store, file: &str) -> Result<BundleHeader, Fault> {
    let path = format!("{BUNDLES}/{file}");
    let bytes = store.read_file(&path, MAX_DOCUMENT)?.unwrap_or_default();
    let refuse = |expected: &str, found: String| {
        Fault::Refused(Refusal::new(Rule::JsonNotCanonical, Subject::File(path.clone()), expected, found))
    };
    let digest = Sha256::of(&bytes);
    if digest.to_string() != file {
        return Err(refuse("a header under its own SHA-256", digest.to_string()));
    }
    document::decode(&bytes).map_err(|error| refuse("a canonical header of a bundle", error.to_string()))
}

/// The ref in a file; none where there is none.
fn read_ref(store: &Store, file: &str) -> Result<Option<Ref>, Fault> {
    let path = format!("{RUNS}/{file}");
    let Some(bytes) = store.read_file(&path, MAX_REF)? else { return Ok(None) };
    let refuse = |expected: &str, found: String| {
        Fault::Refused(Refusal::new(Rule::JsonNotCanonical, Subject::File(path.clone()), expected, found))
    };
    let found: Ref = document::decode(&bytes).map_err(|error| refuse("a canonical ref", error.to_string()))?;
    let named = !found.name.is_empty() && found.name.len() <= MAX_NAME && ref_file_name(&found.name) == file;
    if found.schema == REF_SCHEMA && named {
        Ok(Some(found))
    } else {
        Err(refuse("a ref under its own file name", format!("a ref for {:?}", found.name)))
    }
}

/// The capture that a run id names at this moment.
///
/// # Errors
/// When the ref cannot be read.
///
/// # Refusals
/// What a file of the store can be refused for; json-not-canonical for what is no ref of that name.
pub fn named(store: &Store, name: &str) -> Result<Option<CaptureId>, Fault> {
    Ok(read_ref(store, &ref_file_name(name))?.map(|found| found.capture))
}

/// Writes the ref of a run id.
///
/// # Errors
/// When it cannot be written.
pub fn write_ref(store: &Store, name: &str, capture: CaptureId) -> Result<(), StoreError> {
    write_refs(store, [(name, capture)])
}

/// Writes the refs of run ids.
///
/// # Errors
/// When one cannot be written.
pub fn write_refs<'n>(store: &Store, refs: impl IntoIterator<Item = (&'n str, CaptureId)>) -> Result<(), StoreError> {
    let file = |(name, capture): (&str, CaptureId)| {
        let value = Ref { capture, name: name.to_owned(), schema: REF_SCHEMA.to_owned() };
        let bytes = document::encode(&value);
        let bytes = bytes.map_err(|source| StoreError::Document { path: store.root().to_owned(), source })?;
        Ok((ref_file_name(name), bytes))
    };
    let files: Vec<(String, Vec<u8>)> = refs.into_iter().map(file).collect::<Result<_, StoreError>>()?;
    store.replace_files(RUNS, &files)
}
