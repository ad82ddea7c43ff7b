//! Objects on their way into a store: written aside, and visible by rename after a sync. What is staged and not committed vanishes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;

use tempfile::TempDir;

use super::{Fault, Store, StoreError, hash_copy, io_error, unnamed};
use crate::digest::Blake3;
use crate::id::ObjectId;
use crate::refusal::{Refusal, Rule};

impl Store {
    /// A place to prepare objects in.
    ///
    /// # Errors
    /// When no folder can be made.
    pub fn stage(&self) -> Result<Staging<'_>, StoreError> {
        self.check_real()?;
        let make = || {
            let tmp = self.root.join("tmp");
            fs::create_dir_all(&tmp)?;
            let folder = tempfile::Builder::new().prefix("seal-").tempdir_in(tmp).map_err(unnamed)?;
            // Held while the staging lives: whoever cleans up tmp/ sees that it is in use.
            let alive = File::open(folder.path())?;
            alive.lock_shared()?;
            Ok((folder, alive))
        };
        let (folder, alive) = make().map_err(io_error("write into the store", &self.root))?;
        Ok(Staging { store: self, _alive: alive, folder, count: 0, ready: Vec::new() })
    }
}

/// An object that is written and not yet in the store.
#[derive(Debug)]
struct StagedObject {
    id: ObjectId,
    path: PathBuf,
}

/// Objects on their way into a store. Dropped without [`Staging::commit`], it leaves nothing behind.
#[derive(Debug)]
pub struct Staging<'a> {
    store: &'a Store,
    folder: TempDir,
    /// Given back after the folder is gone: fields are dropped in order
    _alive: File,
    count: u64,
    ready: Vec<StagedObject>,
}

/// How far a staging had come; see [`Staging::roll_back`].
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    ready: usize,
    count: u64,
}

impl Staging<'_> {
    /// That something could not be staged; `act` ends before the store's path, such as "write run.json into the store". The path of a
    /// staged file says nothing to anybody.
    pub fn error(&self, act: &'static str) -> impl FnOnce(io::Error) -> StoreError {
        io_error(act, &self.store.root)
    }

    /// A file to write an object into; hand it back with [`Staging::add`].
    ///
    /// # Errors
    /// When no file can be made: `act` could not be done, as in [`Staging::error`].
    pub fn new_file(&mut self, act: &'static str) -> Result<(BufWriter<File>, PathBuf), StoreError> {
        let path = self.folder.path().join(self.count.to_string());
        self.count += 1;
        let file = File::create_new(&path).map_err(self.error(act))?;
        Ok((BufWriter::with_capacity(1 << 18, file), path))
    }

    /// Takes a finished file as the object `id`.
    pub fn add(&mut self, id: ObjectId, path: PathBuf) {
        self.ready.push(StagedObject { id, path });
    }

    /// Stages `bytes` as an object.
    ///
    /// # Errors
    /// When they cannot be written, as in [`Staging::error`].
    pub fn add_bytes(&mut self, bytes: &[u8], act: &'static str) -> Result<ObjectId, StoreError> {
        let (mut file, path) = self.new_file(act)?;
        file.write_all(bytes).and_then(|()| file.flush()).map_err(self.error(act))?;
        let id = ObjectId(Blake3::of(bytes));
        self.add(id, path);
        Ok(id)
    }

    /// Stages all that `input` gives as an object; also gives its length.
    ///
    /// # Errors
    /// When it cannot be read or written, as in [`Staging::error`].
    pub fn add_stream(&mut self, input: impl Read, act: &'static str) -> Result<(ObjectId, u64), StoreError> {
        let (mut file, path) = self.new_file(act)?;
        let copied = hash_copy(input, &mut file, &|_| {});
        let (id, len) = copied.and_then(|done| file.flush().map(|()| done)).map_err(self.error(act))?;
        self.add(id, path);
        Ok((id, len))
    }

    /// Forgets all objects but these.
    pub fn keep_only(&mut self, ids: &BTreeSet<ObjectId>) {
        self.ready.retain(|object| ids.contains(&object.id));
    }

    /// How far the staging is now.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark { ready: self.ready.len(), count: self.count }
    }

    /// Forgets what was staged since `mark`, finished or not, and frees its space.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn roll_back(&mut self, mark: Mark) -> Result<(), StoreError> {
        self.ready.truncate(mark.ready);
        for number in mark.count..self.count {
            let path = self.folder.path().join(number.to_string());
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_error("remove", path)(error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes all that is staged part of the store. An object that is there already is read and compared, not believed; what was found
    /// wrong with such objects is given back, and they are left alone.
    ///
    /// # Errors
    /// When something cannot be read or written: then the store has what it had, perhaps with more objects that nothing names.
    pub fn commit(mut self) -> Result<BTreeMap<ObjectId, Refusal>, StoreError> {
        let objects = std::mem::take(&mut self.ready);
        let mut new = Vec::new();
        let mut damaged = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for object in objects {
            if !seen.insert(object.id) {
                continue;
            }
            let there = self.store.open_object(&object.id, None, "object");
            match there.and_then(|(_, len)| self.store.check_object(&object.id, len, "object", &|_| {})) {
                Ok(()) => {}
                Err(Fault::Refused(refusal)) if refusal.rule == Rule::ObjectMissing => new.push(object),
                Err(Fault::Refused(refusal)) => {
                    damaged.insert(object.id, refusal);
                }
                Err(Fault::Error(error)) => return Err(error),
            }
        }
        self.store.sync_all(new.iter().map(|object| object.path.as_path()))?;
        let mut folders = BTreeSet::new();
        for object in &new {
            let target = self.store.root.join(Store::object_path(&object.id));
            let folder = target.parent().unwrap_or(&self.store.root).to_owned();
            if folders.insert(folder.clone())
                && let Err(error) = fs::create_dir(&folder)
                && error.kind() != io::ErrorKind::AlreadyExists
            {
                return Err(io_error("make", folder)(error));
            }
            fs::rename(&object.path, &target).map_err(io_error("rename into place", target))?;
        }
        if !new.is_empty() {
            folders.insert(self.store.root.join("objects"));
        }
        self.store.sync_all(folders.iter().map(PathBuf::as_path))?;
        Ok(damaged)
    }
}
