//! Garbage: what lies in a store and nothing names.
//!
//! A store goes in; out come objects that no logged or imported manifest lists, and what interrupted work left behind. Never touches anything
//! that is named, young, in use, or not an object by its name; where a manifest cannot be read nothing is garbage, for it
//! might have named it. Whoever deletes holds the log's lock from before the survey to the end. See `specs/format-v1.md`, section 14.4.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::time::SystemTime;

use serde::Serialize;

use crate::catalog::{Catalog, read_manifest};
use crate::id::ObjectId;
use crate::log::LogLock;
use crate::refusal::Refusal;
use crate::store::{Fault, NEW, Store, StoreError, io_error};

/// What is not needed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Garbage {
    /// Objects that nothing names, sorted
    pub orphans: Vec<Orphan>,
    /// Files and folders of work that ended without cleaning up, by path below the store, sorted
    pub leftovers: Vec<Leftover>,
    /// What would be garbage if it were older, or if nobody worked on it
    pub spared: u64,
    /// Files among the objects whose path is no object's: never touched
    pub strange: Vec<String>,
}

/// An object that nothing names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Orphan {
    /// Its id
    pub object: ObjectId,
    /// Its length
    pub bytes: u64,
}

/// A file or folder of work that ended without cleaning up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Leftover {
    /// Path below the store
    pub path: String,
    /// Bytes in it
    pub bytes: u64,
}

impl Garbage {
    /// Bytes that deleting it frees.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let orphans = self.orphans.iter().map(|orphan| orphan.bytes);
        orphans.chain(self.leftovers.iter().map(|leftover| leftover.bytes)).sum()
    }
}

/// Finds what nothing names and nothing changed since `before`.
///
/// # Errors
/// When the store cannot be read.
///
/// # Refusals
/// What is wrong with the log, the imported bundles or a manifest: then it is not known what is named.
pub fn survey(catalog: &Catalog<'_>, before: SystemTime) -> Result<Result<Garbage, Vec<Refusal>>, StoreError> {
    let store = catalog.store();
    let mut refusals = [catalog.log.refusals.clone(), catalog.refusals.clone()].concat();
    let mut named: BTreeSet<ObjectId> = BTreeSet::new();
    for capture in catalog.captures() {
        for id in catalog.manifests_of(capture) {
            named.insert(id);
            match read_manifest(store, &id, capture) {
                Ok(manifest) => named.extend(manifest.objects().into_iter().map(|(id, _, _)| id)),
                Err(Fault::Refused(refusal)) => refusals.push(refusal),
                Err(Fault::Error(error)) => return Err(error),
            }
        }
    }
    named.extend(catalog.documents().map(|(_, document)| document.object));
    if !refusals.is_empty() {
        refusals.sort();
        return Ok(Err(refusals));
    }
    let mut garbage = Garbage::default();
    for path in store.walk("objects")? {
        let id: Option<ObjectId> = path.split('/').collect::<String>().parse().ok();
        let Some(object) = id.filter(|id| Store::object_path(id) == format!("objects/{path}")) else {
            garbage.strange.push(format!("objects/{path}"));
            continue;
        };
        if named.contains(&object) {
            continue;
        }
        match measure(&store.root().join("objects").join(&path))? {
            None => {}
            Some((bytes, changed)) if changed < before => garbage.orphans.push(Orphan { object, bytes }),
            Some(_) => garbage.spared += 1,
        }
    }
    for path in left_behind(store)? {
        match measure(&store.root().join(&path))? {
            None => {}
            Some((bytes, changed)) if changed < before && !is_in_use(&store.root().join(&path))? => {
                garbage.leftovers.push(Leftover { path, bytes });
            }
            Some(_) => garbage.spared += 1,
        }
    }
    Ok(Ok(garbage))
}

/// All of tmp/, and the temporary files of small files that were never renamed into place.
fn left_behind(store: &Store) -> Result<Vec<String>, StoreError> {
    let mut paths: Vec<String> = store.list("tmp")?.into_iter().map(|name| format!("tmp/{name}")).collect();
    for folder in ["log", "refs"] {
        let temporary = |path: &String| path.rsplit('/').next().is_some_and(|name| name.starts_with(NEW));
        paths.extend(store.walk(folder)?.into_iter().filter(temporary).map(|path| format!("{folder}/{path}")));
    }
    Ok(paths)
}

/// Bytes at and below a path, and when the last of it was changed; none where it is gone.
fn measure(path: &Path) -> Result<Option<(u64, SystemTime)>, StoreError> {
    let mut total: Option<(u64, SystemTime)> = None;
    for entry in walkdir::WalkDir::new(path) {
        let found = entry.and_then(|entry| entry.metadata());
        let found = match found {
            Ok(found) => found,
            Err(error) if error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound) => continue,
            Err(error) => return Err(io_error("look at", path)(error.into())),
        };
        let changed = found.modified().map_err(io_error("look at", path))?;
        let bytes = if found.is_file() { found.len() } else { 0 };
        let (sum, last) = total.unwrap_or((0, changed));
        total = Some((sum.saturating_add(bytes), last.max(changed)));
    }
    Ok(total)
}

/// Whether somebody stages objects in this folder now: they hold a lock on it.
fn is_in_use(path: &Path) -> Result<bool, StoreError> {
    if !path.is_dir() || path.is_symlink() {
        return Ok(false);
    }
    match File::open(path).map(|folder| folder.try_lock()) {
        Ok(Ok(())) => Ok(false),
        Ok(Err(TryLockError::WouldBlock)) => Ok(true),
        Ok(Err(TryLockError::Error(error))) => Err(io_error("lock", path)(error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(io_error("open", path)(error)),
    }
}

/// Deletes what a survey under the same lock has found.
///
/// # Errors
/// When something cannot be deleted; the rest is still there.
pub fn delete(store: &Store, garbage: &Garbage, _lock: &LogLock) -> Result<(), StoreError> {
    for orphan in &garbage.orphans {
        let path = store.root().join(Store::object_path(&orphan.object));
        fs::remove_file(&path).map_err(io_error("delete", path))?;
    }
    for leftover in &garbage.leftovers {
        let path = store.root().join(&leftover.path);
        let folder = path.is_dir() && !path.is_symlink();
        let deleted = if folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        match deleted {
            // Its owner was at it too: a seal that just ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            deleted => deleted.map_err(io_error("delete", path))?,
        }
    }
    Ok(())
}
