//! A log as a folder of files that any client of C2SP tlog-tiles reads: checkpoint, tiles, entry bundles.
//!
//! What is published is the log that was signed last, no more. A folder grows with the log: nothing that was published is changed or taken
//! away, and the checkpoint comes last, so whoever reads it finds what it covers. See c2sp.org/tlog-tiles, and `specs/format-v1.md`, section 13.4.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use walkdir::WalkDir;

use super::Log;
use super::checkpoint::CHECKPOINT;
use crate::id::long;
use crate::merkle::tile::{Levels, Tile, WIDTH};
use crate::meter::Meter;
use crate::note::{Checkpoint, MAX_NOTE, Note, VerifierKey};
use crate::refusal::{Refusal, Rule, Subject};
use crate::store::{
    Fault, Found, NEW, Store, StoreError, io_error, is_in_store, open_regular, sync_folder, write_durably,
};

/// More than any tile or bundle of a published log has: 256 entries of 65,535 bytes, each behind its length.
const MAX_FILE: u64 = 17 << 20;

/// What became of a folder.
#[derive(Debug)]
pub struct Published {
    /// The checkpoint that it ends with
    pub checkpoint: Checkpoint,
    /// Tiles and bundles that were written
    pub written: u64,
    /// Those that were there
    pub there: u64,
}

/// Why nothing was published. Tiles and bundles that were written stay: they are the log's, and the checkpoint does not cover them.
#[derive(Debug, thiserror::Error)]
pub enum Unpublished {
    /// Something could not be read or written
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder is no place for a log
    #[error("cannot publish into {path}: {why}", path = path.display())]
    Place {
        /// The folder
        path: PathBuf,
        /// What is wrong with it
        why: &'static str,
    },
    /// What is not signed is not published
    #[error("nobody has signed this log, and what is not signed is not published: witnessmark log sign --key FILE")]
    Unsigned,
    /// The log, or the checkpoint in the store, is refused
    #[error("{0}")]
    Log(Refusal),
    /// What the folder has is refused
    #[error("{0}")]
    Folder(Refusal),
    /// Asked to stop
    #[error("interrupted")]
    Interrupted,
}

impl From<Fault> for Unpublished {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Error(error) => Self::Store(error),
            Fault::Refused(refusal) => Self::Log(refusal),
        }
    }
}

/// Writes the log that was signed last into `folder`, which may have an older one, and may not be there. With a key, only what that key signed.
///
/// # Errors
/// [`Unpublished`]: with refusals of the log and of its checkpoint (signature-invalid where another key signed it), limit-exceeded for an entry that
/// has no place in a bundle (65,535 bytes), and of the folder: log-inconsistent where it has another log, a newer one, or other bytes,
/// not-a-regular-file for a link or device.
pub fn publish(
    store: &Store,
    folder: &Path,
    key: Option<&VerifierKey>,
    meter: &Meter,
) -> Result<Published, Unpublished> {
    if store.open_file(CHECKPOINT, MAX_NOTE)?.is_none() {
        return Err(Unpublished::Unsigned);
    }
    // First the turn, then the store: whoever comes later has what was signed later.
    let mut folder = Folder::open(folder)?;
    let Some((log, note, checkpoint)) = Log::signed(store, key)? else { return Err(Unpublished::Unsigned) };
    let size = usize::try_from(checkpoint.head.size).unwrap_or(usize::MAX);
    let leaves = log.leaves.get(..size).unwrap_or_default();
    let levels = Levels::new(leaves);
    let before = folder.checkpoint(&log, store, &checkpoint)?;
    let tiles = levels.tiles();
    for name in folder.clean()? {
        let (path, is_bundle) = match name.strip_prefix("entries/") {
            Some(path) => (format!("0/{path}"), true),
            None => (name.clone(), false),
        };
        // What is to be put is compared there. Tiles are in order.
        let Some(tile) = Tile::from_path(&path).filter(|tile| tiles.binary_search(tile).is_err()) else { continue };
        let Some(hashes) = levels.bytes(&tile) else {
            let expected = format!("nothing of a log of more than {size} entries");
            return Err(folder.inconsistent(&format!("tile/{name}"), expected, "a tile or bundle of one".to_owned()));
        };
        folder.put(&name, &if is_bundle { log.bundle(store, &tile)? } else { hashes })?;
    }
    meter.expect(log.bytes);
    for tile in tiles {
        if meter.is_stopped() {
            return Err(Unpublished::Interrupted);
        }
        folder.put(&tile.path(), &levels.bytes(&tile).unwrap_or_default())?;
        if tile.level == 0 {
            let bundle = log.bundle(store, &tile)?;
            folder.put(&tile.entries_path(), &bundle)?;
            meter.add(long(bundle.len()));
        }
    }
    // What says the same may have signatures of witnesses by now: they stay, unless they spoil the note for the key.
    let note = joined(before.as_deref(), &note, key);
    if before.as_ref() != Some(&note) {
        write_durably(&folder.path.join("checkpoint"), &note, true)?;
    }
    Ok(Published { checkpoint, written: folder.written, there: folder.there })
}

/// The signatures of two notes under one text; the second alone where the texts are not one, or the first spoils it.
fn joined(before: Option<&[u8]>, note: &[u8], key: Option<&VerifierKey>) -> Vec<u8> {
    let before = before.and_then(|before| Note::parse(before).ok());
    let both = before.zip(Note::parse(note).ok()).and_then(|(before, new)| before.joined(&new));
    let sound = both.filter(|both| key.is_none_or(|key| both.check(key).is_ok()));
    sound.map_or_else(|| note.to_vec(), |both| both.encode().into_bytes())
}

impl Log {
    /// The entries of a tile of level 0, each behind its length: two bytes, big-endian.
    fn bundle(&self, store: &Store, tile: &Tile) -> Result<Vec<u8>, Fault> {
        let first = usize::try_from(tile.index).ok().and_then(|index| index.checked_mul(WIDTH));
        let entries = first.and_then(|first| self.entries.get(first..)?.get(..tile.width)).unwrap_or_default();
        let mut bundle = Vec::new();
        for (entry, n) in entries.iter().zip(first.unwrap_or_default()..) {
            // A line of the log is the canonical form of its entry: nothing else is loaded without a refusal.
            let bytes = super::encode(store, entry)?;
            let len = u16::try_from(bytes.len()).map_err(|_| {
                let expected = format!("at most {} bytes, as an entry bundle has them", u16::MAX);
                let found = format!("{} bytes", bytes.len());
                Fault::Refused(Refusal::new(Rule::LimitExceeded, super::line_subject(n), expected, found))
            })?;
            bundle.extend(len.to_be_bytes());
            bundle.extend(bytes);
        }
        Ok(bundle)
    }
}

/// A folder that a log is published into, by one at a time.
struct Folder {
    /// Without links
    path: PathBuf,
    /// As it was named
    shown: PathBuf,
    /// The folder below it that was made, or looked at, last
    known: PathBuf,
    written: u64,
    there: u64,
    _turn: File,
}

impl Folder {
    /// Makes the folder, if it is not there, and waits for its turn.
    fn open(shown: &Path) -> Result<Self, Unpublished> {
        let refuse = |why| Unpublished::Place { path: shown.to_owned(), why };
        // Where it is, or would be, is looked at before anything is made.
        let there = shown.ancestors().find(|path| path.symlink_metadata().is_ok());
        let there = there.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let missing = shown.strip_prefix(there).unwrap_or(shown);
        if missing.components().any(|part| part == Component::ParentDir) {
            return Err(refuse("it leads out of a folder that is not there"));
        }
        let real = there.canonicalize().map_err(io_error("look at", there))?;
        if is_in_store(&real) {
            return Err(refuse("it is in a store, where a log is kept and not published"));
        }
        fs::create_dir_all(shown).map_err(io_error("make", shown))?;
        let open = || -> io::Result<(PathBuf, File)> {
            let turn = File::open(shown)?;
            turn.lock()?;
            Ok((shown.canonicalize()?, turn))
        };
        let (path, turn) = open().map_err(io_error("open", shown))?;
        Ok(Self { known: path.clone(), path, shown: shown.to_owned(), written: 0, there: 0, _turn: turn })
    }

    /// What is below tile/ and no folder, by path. What a publisher that was killed left there is taken away: nobody else is at work.
    fn clean(&self) -> Result<Vec<String>, StoreError> {
        let tiles = self.path.join("tile");
        let mut names = Vec::new();
        if !tiles.symlink_metadata().is_ok_and(|there| there.is_dir()) {
            return Ok(names);
        }
        for entry in WalkDir::new(&tiles) {
            let entry = entry.map_err(|error| io_error("list", &tiles)(error.into()))?;
            if entry.file_type().is_file() && entry.file_name().as_encoded_bytes().starts_with(NEW.as_bytes()) {
                fs::remove_file(entry.path()).map_err(io_error("remove", entry.path()))?;
            } else if !entry.file_type().is_dir() {
                let name = entry.path().strip_prefix(&tiles).unwrap_or(entry.path());
                names.push(name.to_string_lossy().into_owned());
            }
        }
        Ok(names)
    }

    /// Makes the folders on the path of a file, through no link.
    fn make(&self, name: &Path) -> Result<(), Unpublished> {
        let mut path = self.path.clone();
        for part in name.parent().into_iter().flat_map(Path::components) {
            let above = path.clone();
            path.push(part);
            match path.symlink_metadata() {
                Ok(there) if there.is_dir() => {}
                Ok(_) => return Err(self.not_regular(&name.to_string_lossy(), "a link, or no folder, on its path")),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let made = fs::create_dir(&path).and_then(|()| sync_folder(&above));
                    made.map_err(io_error("make", &path))?;
                }
                Err(error) => return Err(io_error("look at", &path)(error).into()),
            }
        }
        Ok(())
    }

    /// The checkpoint that is there, if the log begins with it and what is to be published does.
    fn checkpoint(&self, log: &Log, store: &Store, new: &Checkpoint) -> Result<Option<Vec<u8>>, Unpublished> {
        let Some(before) = self.read("checkpoint", MAX_NOTE)? else { return Ok(None) };
        let shown = self.shown.join("checkpoint").display().to_string();
        let there = log.check_checkpoint(store, &before, None, &shown).map_err(Unpublished::Folder)?;
        if there.head.size > new.head.size {
            let expected = format!("a log of at most {} entries, which is what was signed", new.head.size);
            return Err(self.inconsistent("checkpoint", expected, there.head.size.to_string()));
        }
        Ok(Some(before))
    }

    /// Writes a file that is never changed.
    fn put(&mut self, name: &str, bytes: &[u8]) -> Result<(), Unpublished> {
        let name = format!("tile/{name}");
        let path = self.path.join(&name);
        let parent = path.parent().unwrap_or(&self.path);
        if parent != self.known {
            self.make(Path::new(&name))?;
            self.known = parent.to_owned();
        }
        match self.read(&name, MAX_FILE)? {
            Some(there) if there == bytes => self.there += 1,
            Some(_) => {
                let found = "others: the folder has another log, or was changed; publish into a new one";
                return Err(self.inconsistent(&name, "the bytes that the log implies".to_owned(), found.to_owned()));
            }
            None => {
                write_durably(&path, bytes, false)?;
                self.written += 1;
            }
        }
        Ok(())
    }

    /// A file of the folder, or more than `limit` of its bytes; none where there is none.
    fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, Unpublished> {
        let path = self.path.join(name);
        let file = match open_regular(&path, false)? {
            Found::Nothing => return Ok(None),
            Found::File(file, _) => file,
            Found::NotRegular(what) => return Err(self.not_regular(name, what)),
        };
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes).map_err(io_error("read", path))?;
        Ok(Some(bytes))
    }

    fn not_regular(&self, name: &str, found: &str) -> Unpublished {
        let subject = Subject::File(self.shown.join(name).display().to_string());
        Unpublished::Folder(Refusal::new(Rule::NotARegularFile, subject, "a regular file", found))
    }

    fn inconsistent(&self, name: &str, expected: String, found: String) -> Unpublished {
        let subject = Subject::File(self.shown.join(name).display().to_string());
        Unpublished::Folder(Refusal::new(Rule::LogInconsistent, subject, expected, found))
    }
}
