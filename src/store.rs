//! The store: bytes by digest, in a local folder, or, to be read only, packed into one file.
//!
//! Objects are immutable and named by the BLAKE3 of their bytes. Reading never follows a link below the store's root and never opens
//! anything but a regular file; `store/staging.rs` writes objects, `store/durable.rs` small files. The log is another room's. See `specs/format-v1.md`, sections 9 and 14.

mod durable;
mod staging;

pub use durable::{sync_folder, unnamed, write_durably};
pub use staging::{Mark, Staging};

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::canon::document;
use crate::canon::json::{Json, JsonError};
use crate::digest::{Blake3, Blake3Stream, Sha256};
use crate::id::ObjectId;
use crate::manifest::{STORE_SCHEMA, StoreDocument, is_origin};
use crate::refusal::{Refusal, Rule, Subject};

/// The document that makes a folder a store.
pub const STORE_FILE: &str = "store.json";
/// The largest store.json, in bytes.
const MAX_STORE_FILE: u64 = 64 << 10;
const FOLDERS: [&str; 5] = ["objects", "log", "refs", "refs/runs", "tmp"];
/// Folders that come later.
const MORE_FOLDERS: [&str; 2] = ["log/tile", "refs/bundles"];
const FILES: [&str; 4] = ["log/entries", "log/head", "log/lock", "log/checkpoint"];
/// How the names of documents begin that are being written.
pub const NEW: &str = ".new-";
const COPY_STEP: usize = 64 << 10;
/// The most that is set aside for a file before it is read.
const MAX_GUESS: u64 = 1 << 20;

/// Whether a path without links lies in a store.
#[must_use]
pub fn is_in_store(real: &Path) -> bool {
    real.ancestors().any(|folder| folder.join(STORE_FILE).is_file())
}

/// What keeps a store from answering. Not a refusal: nothing is known about the evidence.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system said no
    #[error("cannot {act} {path}: {source}", path = path.display())]
    Io {
        /// What was tried
        act: &'static str,
        /// On what
        path: PathBuf,
        /// The answer
        source: io::Error,
    },
    /// No store.json there
    #[error("{path} is not a witnessmark store: it has no store.json", path = path.display())]
    NotAStore {
        /// The folder
        path: PathBuf,
    },
    /// A store of a format that this program does not know
    #[error("{path} is a store of another version: expected schema {STORE_SCHEMA}, found {found}", path = path.display())]
    OtherVersion {
        /// The folder
        path: PathBuf,
        /// Its schema
        found: String,
    },
    /// The store itself breaks a rule, so that nothing in it can be looked at or written
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// A document could not be made
    #[error("cannot write a document for {path}: {source}", path = path.display())]
    Document {
        /// For which store
        path: PathBuf,
        /// Why
        source: JsonError,
    },
}

impl From<Refusal> for StoreError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

/// Attaches what was tried, and on what, to an I/O error.
pub fn io_error(act: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.into();
    move |source| StoreError::Io { act, path, source }
}

/// Why something could not be had from a store.
#[derive(Debug)]
pub enum Fault {
    /// It breaks a rule
    Refused(Refusal),
    /// It could not be looked at
    Error(StoreError),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(refusal) => Fault::Refused(*refusal),
            error => Fault::Error(error),
        }
    }
}

/// What lies at a path.
#[derive(Debug)]
pub enum Found {
    /// A regular file, open, and its length
    File(File, u64),
    /// Nothing
    Nothing,
    /// Something else, and what
    NotRegular(&'static str),
}

/// Opens a regular file without ever waiting for a pipe. A link is followed where `follow` says so.
///
/// # Errors
/// When it cannot be looked at.
pub fn open_regular(path: &Path, follow: bool) -> Result<Found, StoreError> {
    open_at(rustix::fs::CWD, path, follow).map_err(|errno| io_error("open", path)(errno.into()))
}

fn open_at(at: impl AsFd, name: &Path, follow: bool) -> Result<Found, Errno> {
    let mut flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if !follow {
        flags |= OFlags::NOFOLLOW;
    }
    let file = match rustix::fs::openat(at, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(Found::Nothing),
        Err(Errno::LOOP) if !follow => return Ok(Found::NotRegular("a symbolic link")),
        Err(Errno::NXIO) => return Ok(Found::NotRegular("a socket or pipe")),
        Err(errno) => return Err(errno),
    };
    found(file)
}

/// What was opened, if it is a regular file.
fn found(file: OwnedFd) -> Result<Found, Errno> {
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(Found::NotRegular("a folder, pipe or device"));
    }
    Ok(Found::File(File::from(file), u64::try_from(stat.st_size).unwrap_or(0)))
}

/// A store that is there.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    folder: OwnedFd,
    origin: String,
    packed: Option<BTreeMap<ObjectId, Span>>,
}

/// Where an object lies in a file that packs many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its first byte
    pub offset: u64,
    /// Its length
    pub bytes: u64,
}

impl Store {
    /// Opens the store at `root`.
    ///
    /// # Errors
    /// When it is not there, not a store, of another version, or refused for its store.json.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        // A pipe of that name is not waited for.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(root, flags, Mode::empty());
        let folder = folder.map_err(|errno| io_error("open the store", root)(errno.into()))?;
        let store = Self { root: root.to_owned(), folder, origin: String::new(), packed: None };
        let bytes = match store.read_file(STORE_FILE, MAX_STORE_FILE) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Err(StoreError::NotAStore { path: root.to_owned() }),
            Err(Fault::Refused(refusal)) => return Err(refusal.into()),
            Err(Fault::Error(error)) => return Err(error),
        };
        let refuse =
            |rule, expected: &str, found| Refusal::new(rule, Subject::File(STORE_FILE.to_owned()), expected, found);
        let damaged = |error: JsonError| refuse(Rule::JsonNotCanonical, "a canonical document", error.to_string());
        let json = Json::parse(&bytes).map_err(damaged)?;
        match json.get("schema") {
            Some(Json::String(schema)) if schema == STORE_SCHEMA => {}
            Some(Json::String(found)) => {
                return Err(StoreError::OtherVersion { path: root.to_owned(), found: found.clone() });
            }
            found => {
                let found = found.map_or("nothing", Json::type_name).to_owned();
                return Err(refuse(Rule::SchemaInvalid, &format!("schema {STORE_SCHEMA}"), found).into());
            }
        }
        let document: StoreDocument = document::decode(&bytes).map_err(damaged)?;
        if !is_origin(&document.origin) {
            let expected = "an origin of 32 lower-case hexadecimal digits";
            return Err(refuse(Rule::JsonNotCanonical, expected, format!("{:?}", document.origin)).into());
        }
        Ok(Self { origin: document.origin, ..store })
    }

    /// Makes a store at `root`, a folder that is not there, empty, or where a store was begun; of two who make it at once, both get
    /// the one store. `origin` is 32 random hexadecimal digits.
    ///
    /// # Errors
    /// When the folder cannot be made or has something else in it.
    pub fn create(root: &Path, origin: String) -> Result<Self, StoreError> {
        fs::create_dir_all(root).map_err(io_error("make", root))?;
        if !Self::may_begin(root) {
            return Err(StoreError::NotAStore { path: root.to_owned() });
        }
        for folder in FOLDERS {
            let path = root.join(folder);
            fs::create_dir_all(&path).map_err(io_error("make", path))?;
        }
        let document = StoreDocument { origin, schema: STORE_SCHEMA.to_owned() };
        let bytes =
            document::encode(&document).map_err(|source| StoreError::Document { path: root.to_owned(), source })?;
        write_durably(&root.join(STORE_FILE), &bytes, false)?;
        Self::open(root)
    }

    /// The objects that lie in one file, as a store that can be read and not written. It has no files but objects.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn packed(file: &Path, origin: String, objects: BTreeMap<ObjectId, Span>) -> Result<Self, StoreError> {
        let folder: OwnedFd = File::open(file).map_err(io_error("open", file))?.into();
        Ok(Self { root: file.to_owned(), folder, origin, packed: Some(objects) })
    }

    /// Whether a store may be made at `root`: there is nothing, or a store was begun there and its maker was stopped, or is still at it.
    #[must_use]
    pub fn may_begin(root: &Path) -> bool {
        let begun = |entry: walkdir::DirEntry| {
            let below = entry.path().strip_prefix(root).unwrap_or(entry.path());
            if entry.file_type().is_dir() {
                entry.depth() == 0 || FOLDERS.iter().any(|folder| Path::new(folder) == below)
            } else {
                entry.depth() == 1 && entry.file_name().to_string_lossy().starts_with(NEW)
            }
        };
        let only_begun = walkdir::WalkDir::new(root).into_iter().all(|entry| entry.is_ok_and(begun));
        // Anything else comes after store.json, whose maker may just have finished.
        only_begun || root.join(STORE_FILE).is_file()
    }

    /// Where it is.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The random id it was made with.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The path of an object below the root.
    #[must_use]
    pub fn object_path(id: &ObjectId) -> String {
        let digits = id.to_string();
        let (folder, file) = digits.split_at(2);
        format!("objects/{folder}/{file}")
    }

    /// Opens what lies at a path below the root, following no link.
    fn find(&self, path: &str) -> Result<Found, StoreError> {
        if let Some(objects) = &self.packed {
            let digits = path.strip_prefix("objects/").unwrap_or_default();
            let id = digits.replacen('/', "", 1).parse().ok();
            let Some(span) = id.and_then(|id| objects.get(&id)) else { return Ok(Found::Nothing) };
            let mut file = File::open(&self.root).map_err(io_error("open", &self.root))?;
            file.seek(SeekFrom::Start(span.offset)).map_err(io_error("seek in", &self.root))?;
            return Ok(Found::File(file, span.bytes));
        }
        let failed = |errno: Errno| io_error("open", self.root.join(path))(errno.into());
        // In one call where the system has it. Whatever it does not open is looked at again, step by step, to say why.
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{ResolveFlags, openat2};
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            if let Ok(file) = openat2(&self.folder, path, flags, Mode::empty(), resolve) {
                return found(file).map_err(failed);
            }
        }
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut current: Option<OwnedFd> = None;
        for folder in folders.split('/').filter(|folder| !folder.is_empty()) {
            let at = current.as_ref().unwrap_or(&self.folder);
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            current = match rustix::fs::openat(at, folder, flags, Mode::empty()) {
                Ok(next) => Some(next),
                Err(Errno::NOENT) => return Ok(Found::Nothing),
                Err(Errno::LOOP | Errno::NOTDIR) => {
                    return Ok(Found::NotRegular("a folder on its path is a link or no folder"));
                }
                Err(errno) => return Err(failed(errno)),
            };
        }
        let at = current.as_ref().unwrap_or(&self.folder);
        open_at(at, Path::new(name), false).map_err(failed)
    }

    fn read_all(&self, file: File, len: u64, name: &str) -> Result<Vec<u8>, StoreError> {
        // As long as the file says, within reason: one read for most objects.
        let mut bytes = Vec::with_capacity(usize::try_from(len.min(MAX_GUESS)).unwrap_or(0));
        file.take(len).read_to_end(&mut bytes).map_err(io_error("read", self.root.join(name)))?;
        Ok(bytes)
    }

    /// Opens a file of the store by its path below the root, and says how long it is; none where there is none.
    ///
    /// # Errors
    /// An I/O error, or the refusals not-a-regular-file and limit-exceeded.
    pub fn open_file(&self, path: &str, limit: u64) -> Result<Option<(File, u64)>, Fault> {
        let refused = |rule, expected: String, found: String| {
            Err(Fault::Refused(Refusal::new(rule, Subject::File(path.to_owned()), expected, found)))
        };
        match self.find(path)? {
            Found::Nothing => Ok(None),
            Found::NotRegular(what) => refused(Rule::NotARegularFile, "a regular file".to_owned(), what.to_owned()),
            Found::File(_, len) if len > limit => {
                refused(Rule::LimitExceeded, format!("at most {limit} bytes"), format!("{len} bytes"))
            }
            Found::File(file, len) => Ok(Some((file, len))),
        }
    }

    /// A small file of the store by its path below the root; none where there is none.
    ///
    /// # Errors
    /// As [`Store::open_file`].
    pub fn read_file(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, Fault> {
        let Some((file, len)) = self.open_file(path, limit)? else { return Ok(None) };
        Ok(Some(self.read_all(file, len, path)?))
    }

    /// Opens an object that something names as `bytes` long; `role` says what it is to that something. The file stands at the object's first
    /// byte, which is not the file's own where objects are packed; bytes beyond the length are not the object's.
    ///
    /// # Errors
    /// An I/O error, or the refusals object-missing, not-a-regular-file, and object-digest where the length is another.
    pub fn open_object(&self, id: &ObjectId, bytes: Option<u64>, role: &str) -> Result<(File, u64), Fault> {
        let path = Self::object_path(id);
        let refuse = |rule, expected: String, found: String| {
            Err(Fault::Refused(Refusal::new(rule, Subject::Object(*id, role.to_owned()), expected, found)))
        };
        match self.find(&path)? {
            Found::Nothing => refuse(Rule::ObjectMissing, format!("an object at {path}"), "nothing".to_owned()),
            Found::NotRegular(what) => refuse(Rule::NotARegularFile, "a regular file".to_owned(), what.to_owned()),
            Found::File(_, len) if bytes.is_some_and(|bytes| bytes != len) => {
                refuse(Rule::ObjectDigest, format!("{} bytes", bytes.unwrap_or(0)), format!("{len} bytes"))
            }
            Found::File(file, len) => Ok((file, len)),
        }
    }

    /// Reads a whole object and checks its digest.
    ///
    /// # Errors
    /// As [`Store::open_object`]; object-digest where the bytes have another digest; limit-exceeded beyond `limit`.
    pub fn read_object(&self, id: &ObjectId, bytes: Option<u64>, limit: u64, role: &str) -> Result<Vec<u8>, Fault> {
        let (file, len) = self.open_object(id, bytes, role)?;
        let subject = || Subject::Object(*id, role.to_owned());
        if len > limit {
            let found = format!("{len} bytes");
            return Err(Fault::Refused(Refusal::new(
                Rule::LimitExceeded,
                subject(),
                format!("at most {limit} bytes"),
                found,
            )));
        }
        let content = self.read_all(file, len, &Self::object_path(id))?;
        let found = ObjectId(Blake3::of(&content));
        if found != *id {
            let refusal = Refusal::new(Rule::ObjectDigest, subject(), format!("BLAKE3 {id}"), found.to_string());
            return Err(Fault::Refused(refusal));
        }
        Ok(content)
    }

    /// Hashes an object from its first byte to its last without keeping it, on all threads; `progress` is told of each step's bytes.
    ///
    /// # Errors
    /// As [`Store::read_object`].
    pub fn check_object(
        &self,
        id: &ObjectId,
        bytes: u64,
        role: &str,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), Fault> {
        let (mut file, _) = self.open_object(id, Some(bytes), role)?;
        let path = || self.root.join(Self::object_path(id));
        let start = file.stream_position().map_err(io_error("read", path()))?;
        let read = |at: u64, part: &mut [u8]| -> io::Result<()> {
            file.read_exact_at(part, start.saturating_add(at))?;
            progress(u64::try_from(part.len()).unwrap_or(0));
            Ok(())
        };
        match Blake3::of_parts(bytes, read) {
            Ok(found) if found == id.0 => Ok(()),
            Ok(found) => {
                let subject = Subject::Object(*id, role.to_owned());
                let expected = format!("BLAKE3 {id}");
                Err(Fault::Refused(Refusal::new(Rule::ObjectDigest, subject, expected, found.to_string())))
            }
            // It ends before the length it had a moment ago: what is there is hashed as it is.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.copy_object(id, bytes, role, &mut io::sink(), progress)
            }
            Err(error) => Err(io_error("read", path())(error).into()),
        }
    }

    /// Copies an object into `out` while it is hashed. What was written is the object only when this succeeds.
    ///
    /// # Errors
    /// As [`Store::read_object`]; also when `out` cannot be written.
    pub fn copy_object(
        &self,
        id: &ObjectId,
        bytes: u64,
        role: &str,
        out: &mut dyn Write,
        progress: &dyn Fn(u64),
    ) -> Result<(), Fault> {
        let (file, _) = self.open_object(id, Some(bytes), role)?;
        let copied = hash_copy(file.take(bytes), out, progress);
        let (found, _) = copied.map_err(io_error("read or copy", self.root.join(Self::object_path(id))))?;
        if found == *id {
            return Ok(());
        }
        let subject = Subject::Object(*id, role.to_owned());
        Err(Fault::Refused(Refusal::new(Rule::ObjectDigest, subject, format!("BLAKE3 {id}"), found.to_string())))
    }

    /// The files in a folder of the store, by name, sorted; none where there is no folder.
    ///
    /// # Errors
    /// When the folder cannot be listed.
    pub fn list(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let path = self.root.join(folder);
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_error("list", path)(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(io_error("list", &path))?;
            names.extend(entry.file_name().into_string());
        }
        names.sort();
        Ok(names)
    }

    /// Whether a regular file lies at a path below the root.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub fn has_file(&self, path: &str) -> Result<bool, StoreError> {
        Ok(matches!(self.find(path)?, Found::File(..)))
    }

    /// All that lies below a folder of the store and is no folder, by path below that folder, sorted; nothing where there is no folder.
    ///
    /// # Errors
    /// When a folder cannot be listed.
    pub fn walk(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let root = self.root.join(folder);
        if !root.exists() {
            return Ok(Vec::new());
        }
        let mut paths = Vec::new();
        for entry in walkdir::WalkDir::new(&root).min_depth(1).sort_by_file_name() {
            match entry {
                Ok(entry) if entry.file_type().is_dir() => {}
                Ok(entry) => {
                    let path = entry.path().strip_prefix(&root).unwrap_or(entry.path());
                    paths.push(path.to_string_lossy().into_owned());
                }
                // Somebody's temporary file, or a tile that was replaced: gone between listing and looking.
                Err(error) if error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound) => {}
                Err(error) => return Err(io_error("list", root)(error.into())),
            }
        }
        Ok(paths)
    }

    /// That nothing would be written through a link: the store's own folders and files are real, where they are there.
    ///
    /// # Errors
    /// When one cannot be looked at, or, as a refusal not-a-regular-file, when one is not.
    pub fn check_real(&self) -> Result<(), StoreError> {
        for name in FOLDERS.into_iter().chain(MORE_FOLDERS).chain(FILES) {
            let path = self.root.join(name);
            let there = match fs::symlink_metadata(&path) {
                Ok(there) => there,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(io_error("stat", path)(error)),
            };
            if let Some(refusal) = misplaced(name, there.file_type()) {
                return Err(refusal.into());
            }
        }
        Ok(())
    }

    /// All that lies below the root and is neither a regular file nor a real folder, or one in the place of the other. Below objects/ nothing
    /// is looked at: an object is where it is opened.
    ///
    /// # Errors
    /// When a folder cannot be listed.
    pub fn unreal(&self) -> Result<Vec<Refusal>, StoreError> {
        let mut refusals = Vec::new();
        let mut walk = walkdir::WalkDir::new(&self.root).min_depth(1).sort_by_file_name().into_iter();
        while let Some(entry) = walk.next() {
            let entry = match entry {
                Ok(entry) => entry,
                // Of work that goes on: gone between listing and looking.
                Err(error) if error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound) => continue,
                Err(error) => return Err(io_error("list", &self.root)(error.into())),
            };
            let name = entry.path().strip_prefix(&self.root).unwrap_or(entry.path()).to_string_lossy();
            if name == "objects" && entry.file_type().is_dir() {
                walk.skip_current_dir();
            }
            refusals.extend(misplaced(&name, entry.file_type()));
        }
        Ok(refusals)
    }
}

/// What is wrong with there being such a thing at this path below the root.
fn misplaced(name: &str, kind: fs::FileType) -> Option<Refusal> {
    let (expected, right) = if FOLDERS.contains(&name) || MORE_FOLDERS.contains(&name) {
        ("a folder", kind.is_dir())
    } else if FILES.contains(&name) {
        ("a regular file", kind.is_file())
    } else {
        ("a regular file or a folder", kind.is_file() || kind.is_dir())
    };
    let found = match kind {
        _ if kind.is_symlink() => "a symbolic link",
        _ if kind.is_dir() => "a folder",
        _ if kind.is_file() => "a file",
        _ => "a pipe, socket or device",
    };
    (!right).then(|| Refusal::new(Rule::NotARegularFile, Subject::File(name.to_owned()), expected, found))
}

/// BLAKE3 of all that `input` gives, and how much that is.
///
/// # Errors
/// When the input cannot be read.
pub fn hash_file(mut input: impl Read, progress: &dyn Fn(u64)) -> io::Result<(ObjectId, u64)> {
    let mut hash = Blake3Stream::default();
    let mut buffer = vec![0; COPY_STEP];
    let mut total = 0;
    loop {
        let len = match input.read(&mut buffer) {
            Ok(0) => return Ok((ObjectId(hash.digest()), total)),
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(buffer.get(..len).unwrap_or_default());
        let step = u64::try_from(len).unwrap_or(0);
        total += step;
        progress(step);
    }
}

/// As [`hash_file`], of what is copied to `output` on the way.
fn hash_copy(input: impl Read, output: impl Write, progress: &dyn Fn(u64)) -> io::Result<(ObjectId, u64)> {
    hash_file(Tee { input, output }, progress)
}

struct Tee<R, W> {
    input: R,
    output: W,
}

impl<R: Read, W: Write> Read for Tee<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.input.read(buffer)?;
        self.output.write_all(buffer.get(..len).unwrap_or_default())?;
        Ok(len)
    }
}

/// The file name that stands for any name (format section 9): safe on every file system, case-insensitive ones included.
#[must_use]
pub fn ref_file_name(name: &str) -> String {
    let mut out = String::new();
    for (n, byte) in name.bytes().enumerate() {
        match byte {
            b'.' if n == 0 => out.push_str("%2e"),
            b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' => out.push(char::from(byte)),
            _ => {
                out.push('%');
                out.push_str(&crate::digest::hex(&[byte]));
            }
        }
    }
    if out.len() > 200 || name.starts_with("sha256-") { format!("sha256-{}", Sha256::of(name.as_bytes())) } else { out }
}
