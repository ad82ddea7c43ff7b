//! The log: every act, in order, append-only.
//!
//! Entries are canonical documents, one a line; the head names their number, length and Merkle root and is renamed into place last, so
//! a reader who trusts only the head sees all of an append or nothing of it. One writer at a time (a file lock). Order and time hold
//! within one origin and rest on the sealer, unless somebody kept an older head. See `specs/format-v1.md`,
//! sections 9 and 13.

mod checkpoint;
mod lines;
pub mod publish;
mod tiles;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt as _;

use self::lines::Lines;
use crate::canon::document;
use crate::digest::Sha256;
use crate::id::{Nanos, long};
use crate::manifest::{Act, Document, DocumentAct, Entry, HEAD_SCHEMA, Head, decimal};
use crate::merkle::{Size, Tree, consistency_path, inclusion_path, leaf_hash, root_of};
use crate::proof::{HEAD_BYTES, LOG_PROOF_SCHEMA, LogProof, check_entry, entry_too_long};
use crate::refusal::{Refusal, Rule, Subject};
use crate::store::{Fault, Store, StoreError, io_error};

const ENTRIES: &str = "log/entries";
const HEAD: &str = "log/head";
const LOCK: &str = "log/lock";
/// The largest log that is read, in bytes.
const MAX_LOG: u64 = 16 << 30;
/// The largest head, in bytes.
const MAX_HEAD: u64 = 64 << 10;
/// Of entries that are longer than this on average, over-long ones that are to be named included, none is read.
const FAR: u64 = 1 << 20;
/// Of a log with more faults than this the rest is not read.
const MAX_FAULTS: usize = 10_000;

/// A log as the head shows it.
#[derive(Clone, Default)]
pub struct Log {
    /// The entries, from 0
    pub entries: Vec<Entry>,
    /// The places of the entries, where they are not 0, 1, 2, …
    at: Option<Vec<u64>>,
    /// Where head and entries do not agree; empty for a sound log
    pub refusals: Vec<Refusal>,
    tree: Tree,
    leaves: Vec<Sha256>,
    bytes: u64,
}

/// The right to append, held by one at a time.
#[derive(Debug)]
pub struct LogLock(#[expect(dead_code, reason = "closing the file gives the lock back")] File);

impl Log {
    /// Reads the log and derives its root again. Faults of the log are part of the value: entries that can be read still name
    /// their captures, up to the ten-thousandth fault. Where the head is far from the entries none is read.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn load(store: &Store) -> Result<Log, StoreError> {
        let mut log = Log::default();
        let head = log.keep(store.read_file(HEAD, MAX_HEAD))?;
        let entries = log.keep(store.open_file(ENTRIES, u64::MAX))?;
        let Some(head) = head else {
            if entries.is_some_and(|(_, len)| len > 0) && log.refusals.is_empty() {
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
        let there = entries.as_ref().map_or(0, |(_, len)| *len);
        let Some(covered) = decimal(&head.bytes) else {
            let subject = Subject::File(HEAD.to_owned());
            log.refusals.push(Refusal::new(Rule::JsonNotCanonical, subject, HEAD_BYTES, format!("{:?}", head.bytes)));
            return Ok(log);
        };
        if covered > there {
            log.refuse(HEAD, &format!("{covered} bytes of entries"), format!("{there} bytes"));
            return Ok(log);
        }
        if covered > MAX_LOG {
            let (subject, expected) = (Subject::File(HEAD.to_owned()), format!("at most {MAX_LOG} bytes of entries"));
            log.refusals.push(Refusal::new(Rule::LimitExceeded, subject, expected, head.bytes));
            return Ok(log);
        }
        // What is far from being so many entries is not read.
        if covered > head.size.saturating_add(1).saturating_mul(FAR) {
            log.refuse(HEAD, &format!("the length of {} entries", head.size), format!("{} bytes", head.bytes));
            return Ok(log);
        }
        if let Some((file, _)) = entries {
            let read = log.read_entries(file, covered, &head.bytes);
            if !read.map_err(io_error("read", store.root().join(ENTRIES)))? {
                return Ok(log);
            }
        }
        log.bytes = covered;
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

    fn keep<T>(&mut self, read: Result<Option<T>, Fault>) -> Result<Option<T>, StoreError> {
        match read {
            Ok(bytes) => Ok(bytes),
            Err(Fault::Error(error)) => Err(error),
            Err(Fault::Refused(refusal)) => {
                self.refusals.push(refusal);
                Ok(None)
            }
        }
    }

    /// Takes the entries that the head covers, line by line; false where there is more wrong with them than anybody would read.
    fn read_entries(&mut self, file: File, covered: u64, shown: &str) -> io::Result<bool> {
        if let Some(last) = covered.checked_sub(1) {
            let mut end = [0];
            file.read_exact_at(&mut end, last)?;
            if end != *b"\n" {
                self.refuse(HEAD, "a length that ends with a whole line", shown.to_owned());
            }
        }
        let mut lines = Lines::new(file.take(covered), covered);
        let mut n = 0;
        while let Some(line) = lines.next()? {
            if self.refusals.len() > MAX_FAULTS {
                let found = format!("{} faults before line {}; what follows was not read", self.refusals.len(), n + 1);
                self.refuse(ENTRIES, "lines that are entries", found);
                return Ok(false);
            }
            self.push(line.leaf);
            match line.text {
                Some(text) => self.keep_entry(text, n),
                None => self.refusals.push(entry_too_long(line.bytes, line_subject(n))),
            }
            n += 1;
        }
        Ok(true)
    }

    fn keep_entry(&mut self, line: &[u8], n: usize) {
        let entry = match Entry::decode(line) {
            Ok(entry) => entry,
            Err(error) => {
                let (expected, found) = ("a canonical entry", error.to_string());
                self.refusals.push(Refusal::new(Rule::JsonNotCanonical, line_subject(n), expected, found));
                return;
            }
        };
        self.refusals.extend(check_entry(&entry, &line_subject(n)));
        self.entries.push(entry);
    }

    fn refuse(&mut self, path: &str, expected: &str, found: String) {
        let subject = Subject::File(path.to_owned());
        self.refusals.push(Refusal::new(Rule::LogInconsistent, subject, expected, found));
    }

    /// A log of entries that were proved elsewhere, with their places there. It has no head of its own.
    #[must_use]
    pub fn of(entries: impl Iterator<Item = (u64, Entry)>) -> Self {
        let (at, entries) = entries.unzip();
        Self { entries, at: Some(at), ..Self::default() }
    }

    /// The entries with their places.
    pub fn places(&self) -> impl Iterator<Item = (u64, &Entry)> {
        let place = |n: u64| match &self.at {
            None => n,
            Some(at) => usize::try_from(n).ok().and_then(|n| at.get(n)).copied().unwrap_or(n),
        };
        (0..).zip(&self.entries).map(move |(n, entry)| (place(n), entry))
    }

    fn push(&mut self, leaf: Sha256) {
        self.tree.push_leaf(leaf);
        self.leaves.push(leaf);
    }

    /// Merkle tree hash of the entries.
    #[must_use]
    pub fn root(&self) -> Sha256 {
        self.tree.root()
    }

    /// Size and root.
    #[must_use]
    pub fn size(&self) -> Size {
        Size { size: self.tree.size(), root: self.tree.root() }
    }

    /// Size and root of the first `size` entries; none where there are fewer.
    #[must_use]
    pub fn size_at(&self, size: u64) -> Option<Size> {
        let leaves = self.leaves.get(..usize::try_from(size).ok()?)?;
        Some(Size { size, root: root_of(leaves) })
    }

    /// The bytes of the first `size` entries, line feeds included; none where there are fewer.
    ///
    /// # Errors
    /// When one cannot be encoded.
    pub fn bytes_at(&self, store: &Store, size: u64) -> Result<Option<u64>, StoreError> {
        let Some(entries) = usize::try_from(size).ok().and_then(|size| self.entries.get(..size)) else {
            return Ok(None);
        };
        let lengths = entries.iter().map(|entry| Ok(long(encode(store, entry)?.len()) + 1));
        lengths.sum::<Result<u64, StoreError>>().map(Some)
    }

    /// The head document of the log as it is.
    #[must_use]
    pub fn head(&self, store: &Store) -> Head {
        Head {
            bytes: self.bytes.to_string(),
            origin: store.origin().to_owned(),
            root: self.tree.root(),
            schema: HEAD_SCHEMA.to_owned(),
            size: self.tree.size(),
        }
    }

    /// The inclusion path of entry `index` in the log as it is; none beyond the last entry.
    #[must_use]
    pub fn inclusion(&self, index: u64) -> Option<Vec<Sha256>> {
        inclusion_path(&self.leaves, index)
    }

    /// Proves that the log of `new` entries begins with the log of `old` entries; none where there are no such sizes.
    #[must_use]
    pub fn prove(&self, store: &Store, old: u64, new: u64) -> Option<LogProof> {
        let leaves = self.leaves.get(..usize::try_from(new).ok()?)?;
        let path = consistency_path(leaves, old)?;
        let (old, new) = (self.size_at(old)?, self.size_at(new)?);
        Some(LogProof {
            new_root: new.root,
            new_size: new.size,
            old_root: old.root,
            old_size: old.size,
            origin: store.origin().to_owned(),
            path,
            schema: LOG_PROOF_SCHEMA.to_owned(),
        })
    }

    /// Waits for the right to append.
    ///
    /// # Errors
    /// When the lock cannot be taken.
    pub fn lock(store: &Store) -> Result<LogLock, StoreError> {
        store.check_real()?;
        let path = store.root().join(LOCK);
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(io_error("make", &path))?;
        lock.lock().map_err(io_error("lock", &path))?;
        Ok(LogLock(lock))
    }

    /// Appends the acts that are not in the log yet, all or none; gives each act's place, and whether it is new.
    ///
    /// # Errors
    /// When the log cannot be written (then it is as it was), or breaks a rule already.
    pub fn append(store: &Store, acts: &[Act], at: Nanos, tool: &str) -> Result<Vec<(usize, bool)>, Fault> {
        Self::append_locked(&Self::lock(store)?, store, acts, at, tool)
    }

    /// Puts a document into the store and its act into the log; gives the document, its place, and whether the act is new.
    ///
    /// # Errors
    /// When the store cannot be written.
    ///
    /// # Refusals
    /// As [`Log::append`]; object-digest where an object of that id is there with other bytes, object-missing where it was collected at this
    /// very moment.
    pub fn declare(
        store: &Store,
        act: DocumentAct,
        bytes: &[u8],
        at: Nanos,
        tool: &str,
    ) -> Result<(Document, usize, bool), Fault> {
        let document = Document::of(bytes);
        let mut staging = store.stage()?;
        staging.add_bytes(bytes, "write a document into the store")?;
        if let Some(damaged) = staging.commit()?.into_values().next() {
            return Err(Fault::Refused(damaged));
        }
        let lock = Self::lock(store)?;
        // Nobody collects while the lock is held.
        store.open_object(&document.object, None, "document")?;
        let places = Self::append_locked(&lock, store, &[Act::Document(act, document)], at, tool)?;
        let (place, new) = places.first().copied().unwrap_or_default();
        Ok((document, place, new))
    }

    /// As [`Log::append`], by one who holds the lock already.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn append_locked(
        _lock: &LogLock,
        store: &Store,
        acts: &[Act],
        at: Nanos,
        tool: &str,
    ) -> Result<Vec<(usize, bool)>, Fault> {
        let mut log = Log::load(store)?;
        if let Some(refusal) = log.refusals.into_iter().next() {
            return Err(Fault::Refused(refusal));
        }
        log.refusals = Vec::new();
        let mut places = Vec::new();
        let mut lines = Vec::new();
        let mut known: BTreeMap<Act, Option<usize>> = acts.iter().map(|&act| (act, None)).collect();
        for (place, entry) in log.entries.iter().enumerate() {
            if let Some(first @ None) = known.get_mut(&entry.act) {
                *first = Some(place);
            }
        }
        for &act in acts {
            if let Some(&Some(place)) = known.get(&act) {
                places.push((place, false));
                continue;
            }
            known.insert(act, Some(log.entries.len()));
            let entry = Entry::new(act, at.0.to_string(), tool.to_owned());
            let line = encode(store, &entry)?;
            log.push(leaf_hash(&line));
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
        log.bytes += u64::try_from(lines.len()).unwrap_or(0);
        store.replace_file(HEAD, &encode(store, &log.head(store))?)?;
        log.write_tiles(store)?;
        Ok(places)
    }
}

/// Line `n` of the entries, counted from 0 as entries are, named from 1 as lines are.
fn line_subject(n: usize) -> Subject {
    Subject::Line(ENTRIES.to_owned(), u64::try_from(n).unwrap_or(u64::MAX).saturating_add(1))
}

fn encode<T: serde::Serialize>(store: &Store, value: &T) -> Result<Vec<u8>, StoreError> {
    document::encode(value).map_err(|source| StoreError::Document { path: store.root().to_owned(), source })
}
