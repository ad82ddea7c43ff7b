//! A log as a folder of files that any client of C2SP tlog-tiles reads: checkpoint, tiles, entry bundles.
//!
//! What is published is the log that was signed last, no more. A folder grows with the log: nothing that was published is changed or taken
//! away, and the checkpoint comes last, so whoever reads it finds what it covers. See c2sp.org/tlog-tiles, and `specs/format-v1.md`, section 13.4.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use super::Log;
use crate::canon::document;
use crate::manifest::Entry;
use crate::merkle::tile::{Levels, Tile, WIDTH};
use crate::note::Checkpoint;
use crate::refusal::{Refusal, Rule, Subject};
use crate::store::{Fault, Found, Store, StoreError, io_error, open_regular, write_durably};

/// More than any file of a published log has: 256 entries of 65,535 bytes, each behind its length.
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

impl Log {
    /// Writes the log that was signed last into `folder`, which may have an older one; nothing where none was signed.
    ///
    /// # Errors
    /// When the store cannot be read, or the folder cannot be read or written.
    ///
    /// # Refusals
    /// Whatever is wrong with the log or its checkpoint; log-inconsistent where the folder has another log, a newer one, or other bytes;
    /// limit-exceeded for an entry that has no place in a bundle (65,535 bytes).
    pub fn publish(store: &Store, folder: &Path) -> Result<Option<Published>, Fault> {
        let log = Self::load(store)?;
        if let Some(refusal) = log.refusals.first() {
            return Err(Fault::Refused(refusal.clone()));
        }
        let Some((note, checkpoint)) = log.own_checkpoint(store)? else { return Ok(None) };
        let target = folder.join("checkpoint");
        if let Some(before) = read(&target)? {
            let before = log.check_checkpoint(store, &before, None, &target.display().to_string());
            let before = before.map_err(Fault::Refused)?;
            if before.head.size > checkpoint.head.size {
                let expected = format!("a log of at most {} entries, which is what was signed", checkpoint.head.size);
                return Err(inconsistent(&target, expected, before.head.size.to_string()));
            }
        }
        let mut published = Published { checkpoint, written: 0, there: 0 };
        let leaves = usize::try_from(published.checkpoint.head.size).ok().and_then(|size| log.leaves.get(..size));
        let levels = Levels::new(leaves.unwrap_or_default());
        for tile in levels.tiles() {
            published.put(&folder.join("tile").join(tile.path()), &levels.bytes(&tile).unwrap_or_default())?;
            if tile.level == 0 {
                published.put(&folder.join("tile").join(tile.entries_path()), &log.bundle(&tile)?)?;
            }
        }
        make_folder(folder)?;
        write_durably(&target, &note, true)?;
        Ok(Some(published))
    }

    /// The entries of a tile of level 0, each behind its length: two bytes, big-endian.
    fn bundle(&self, tile: &Tile) -> Result<Vec<u8>, Fault> {
        let first = usize::try_from(tile.index).ok().and_then(|index| index.checked_mul(WIDTH));
        let entries = first.and_then(|first| self.entries.get(first..)?.get(..tile.width)).unwrap_or_default();
        let mut bundle = Vec::new();
        for (entry, n) in entries.iter().zip(first.unwrap_or_default()..) {
            let bytes = encode(entry)?;
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

impl Published {
    /// Writes a file that is never changed.
    fn put(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Fault> {
        match read(path)? {
            Some(there) if there == bytes => self.there += 1,
            Some(_) => {
                return Err(inconsistent(path, "the bytes that the log implies".to_owned(), "others".to_owned()));
            }
            None => {
                path.parent().map_or(Ok(()), make_folder)?;
                write_durably(path, bytes, false)?;
                self.written += 1;
            }
        }
        Ok(())
    }
}

/// A line of the log is the canonical form of its entry: nothing else is loaded without a refusal.
fn encode(entry: &Entry) -> Result<Vec<u8>, StoreError> {
    document::encode(entry).map_err(|source| StoreError::Document { path: "log/entries".into(), source })
}

/// A file of the folder; none where there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>, Fault> {
    let file = match open_regular(path, false)? {
        Found::Nothing => return Ok(None),
        Found::File(file, _) => file,
        Found::NotRegular(what) => {
            let subject = Subject::File(path.display().to_string());
            return Err(Fault::Refused(Refusal::new(Rule::NotARegularFile, subject, "a regular file", what)));
        }
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut bytes).map_err(io_error("read", path))?;
    Ok(Some(bytes))
}

fn make_folder(folder: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(folder).map_err(io_error("make", folder))
}

fn inconsistent(path: &Path, expected: String, found: String) -> Fault {
    Fault::Refused(Refusal::new(Rule::LogInconsistent, Subject::File(path.display().to_string()), expected, found))
}
