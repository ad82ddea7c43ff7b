//! The log: every act, in order, append-only.
//!
//! Entries are canonical documents, one a line; the head names their number, length and Merkle root and is renamed into place last, so
//! a reader who trusts only the head sees all of an append or nothing of it. One writer at a time (a file lock). Order and time hold
//! within one origin and rest on the sealer, unless somebody kept an older head. See `specs/format-v1.md`, section 9.

use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};

use crate::canon::document;
use crate::id::{CaptureId, Nanos, ObjectId};
use crate::manifest::{Act, ENTRY_SCHEMA, Entry, HEAD_SCHEMA, Head};
use crate::merkle::Tree;
use crate::refusal::{Refusal, Rule, Subject};
use crate::row::MAX_INT64;
use crate::store::{Fault, Store, StoreError, io_error};

const ENTRIES: &str = "log/entries";
const HEAD: &str = "log/head";
const LOCK: &str = "log/lock";
/// The largest log that is read, in bytes.
const MAX_LOG: u64 = 16 << 30;
/// The largest head, in bytes.
const MAX_HEAD: u64 = 64 << 10;
/// The largest entry, in bytes.
const MAX_ENTRY: usize = 64 << 10;

/// A log as the head shows it.
#[derive(Clone, Default)]
pub struct Log {
    /// The entries, from 0
    pub entries: Vec<Entry>,
    /// Where head and entries do not agree; empty for a sound log
    pub refusals: Vec<Refusal>,
    tree: Tree,
    bytes: u64,
}

impl Log {
    /// Reads the log and derives its root again. Faults of the log are part of the value: entries that can be read still name
    /// their captures.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn load(store: &Store) -> Result<Log, StoreError> {
        let mut log = Log::default();
        let head = log.keep(store.read_file(HEAD, MAX_HEAD))?;
        let entries = log.keep(store.read_file(ENTRIES, MAX_LOG))?;
        let Some(head) = head else {
            if entries.is_some_and(|bytes| !bytes.is_empty()) && log.refusals.is_empty() {
                log.refuse(HEAD, "a head", "none, though there are entries".to_owned());
            }
            return Ok(log);
        };
        let head: Head = match document::decode(&head) {
            Ok(head) => head,
            Err(error) => {
                let subject = Subject::File(HEAD.to_owned());
                log.refusals.push(Refusal::new(Rule::JsonNotCanonical, subject, "a canonical head", error.to_string()));
                return Ok(log);
            }
        };
        let entries = entries.unwrap_or_default();
        let length = head.bytes.parse::<usize>().ok().filter(|length| length.to_string() == head.bytes);
        let Some(covered) = length.and_then(|length| entries.get(..length)) else {
            log.refuse(HEAD, &format!("{} bytes of entries", head.bytes), format!("{} bytes", entries.len()));
            return Ok(log);
        };
        if covered.last().is_some_and(|&byte| byte != b'\n') {
            log.refuse(HEAD, "a length that ends with a whole line", head.bytes.clone());
        }
        for (n, line) in covered.split_inclusive(|&byte| byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            log.tree.push(line);
            log.keep_entry(line, n);
        }
        log.bytes = u64::try_from(covered.len()).unwrap_or(u64::MAX);
        if head.size != log.tree.size() {
            log.refuse(HEAD, &format!("{} entries", head.size), log.tree.size().to_string());
        } else if head.root != log.tree.root() {
            log.refuse(HEAD, &format!("root {}", head.root), log.tree.root().to_string());
        }
        if head.schema != HEAD_SCHEMA {
            let subject = Subject::File(HEAD.to_owned());
            log.refusals.push(Refusal::new(Rule::SchemaInvalid, subject, format!("schema {HEAD_SCHEMA}"), head.schema));
        }
        if head.origin != store.origin() {
            log.refuse(HEAD, &format!("origin {}", store.origin()), head.origin);
        }
        Ok(log)
    }

    fn keep(&mut self, read: Result<Option<Vec<u8>>, Fault>) -> Result<Option<Vec<u8>>, StoreError> {
        match read {
            Ok(bytes) => Ok(bytes),
            Err(Fault::Error(error)) => Err(error),
            Err(Fault::Refused(refusal)) => {
                self.refusals.push(refusal);
                Ok(None)
            }
        }
    }

    fn keep_entry(&mut self, line: &[u8], n: usize) {
        let mut refuse = |rule, expected: &str, found: String| {
            self.refusals.push(Refusal::new(rule, line_subject(n), expected, found));
        };
        if line.len() > MAX_ENTRY {
            refuse(Rule::LimitExceeded, &format!("at most {MAX_ENTRY} bytes"), format!("{} bytes", line.len()));
            return;
        }
        let entry: Entry = match document::decode(line) {
            Ok(entry) => entry,
            Err(error) => {
                refuse(Rule::JsonNotCanonical, "a canonical entry", error.to_string());
                return;
            }
        };
        if entry.schema != ENTRY_SCHEMA {
            refuse(Rule::SchemaInvalid, &format!("schema {ENTRY_SCHEMA}"), entry.schema.clone());
        }
        let at = entry.at.parse::<u64>().ok().filter(|&at| at <= MAX_INT64 && at.to_string() == entry.at);
        if at.is_none() {
            refuse(Rule::JsonNotCanonical, "at in decimal, from 0 to 2^63 − 1", format!("{:?}", entry.at));
        }
        self.entries.push(entry);
    }

    fn refuse(&mut self, path: &str, expected: &str, found: String) {
        let subject = Subject::File(path.to_owned());
        self.refusals.push(Refusal::new(Rule::LogInconsistent, subject, expected, found));
    }

    /// Merkle tree hash of the entries.
    #[must_use]
    pub fn root(&self) -> crate::digest::Sha256 {
        self.tree.root()
    }

    /// The place of an act in the log, if it is there.
    #[must_use]
    pub fn find(&self, act: Act, capture: CaptureId, manifest: ObjectId) -> Option<usize> {
        let same = |entry: &Entry| entry.act == act && entry.capture == capture && entry.manifest == manifest;
        self.entries.iter().position(same)
    }

    /// Appends the acts that are not in the log yet, all or none; gives each act's place, and whether it is new.
    ///
    /// # Errors
    /// When the log cannot be written (then it is as it was), or breaks a rule already.
    pub fn append(
        store: &Store,
        acts: &[(Act, CaptureId, ObjectId)],
        at: Nanos,
        tool: &str,
    ) -> Result<Vec<(usize, bool)>, Fault> {
        let lock_path = store.root().join(LOCK);
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&lock_path);
        let lock = lock.map_err(io_error("make", &lock_path))?;
        lock.lock().map_err(io_error("lock", &lock_path))?;
        let mut log = Log::load(store)?;
        if let Some(refusal) = log.refusals.into_iter().next() {
            return Err(Fault::Refused(refusal));
        }
        log.refusals = Vec::new();
        let mut places = Vec::new();
        let mut lines = Vec::new();
        for &(act, capture, manifest) in acts {
            if let Some(place) = log.find(act, capture, manifest) {
                places.push((place, false));
                continue;
            }
            let at = at.0.to_string();
            let entry = Entry { act, at, capture, manifest, schema: ENTRY_SCHEMA.to_owned(), tool: tool.to_owned() };
            let line = encode(store, &entry)?;
            log.tree.push(&line);
            lines.extend(line);
            lines.push(b'\n');
            places.push((log.entries.len(), true));
            log.entries.push(entry);
        }
        if lines.is_empty() {
            return Ok(places);
        }
        let path = store.root().join(ENTRIES);
        let write = || {
            let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
            // What lies beyond the head is an append that never finished.
            file.set_len(log.bytes)?;
            file.seek(SeekFrom::Start(log.bytes))?;
            file.write_all(&lines)?;
            file.sync_all()
        };
        write().map_err(io_error("append to", &path))?;
        let head = Head {
            bytes: (log.bytes + u64::try_from(lines.len()).unwrap_or(0)).to_string(),
            origin: store.origin().to_owned(),
            root: log.tree.root(),
            schema: HEAD_SCHEMA.to_owned(),
            size: log.tree.size(),
        };
        store.replace_file(HEAD, &encode(store, &head)?)?;
        Ok(places)
    }
}

/// Line `n` of the entries, counted from 0 as entries are, named from 1 as lines are.
fn line_subject(n: usize) -> Subject {
    Subject::Line(ENTRIES.to_owned(), u64::try_from(n).unwrap_or(u64::MAX).saturating_add(1))
}

fn encode<T: serde::Serialize>(store: &Store, value: &T) -> Result<Vec<u8>, StoreError> {
    document::encode(value).map_err(|source| StoreError::Damaged { path: store.root().to_owned(), source })
}
