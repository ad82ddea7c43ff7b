//! Small files that appear whole or not at all, and stay: temporary, synced, renamed, folder synced.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::NamedTempFile;

use super::{NEW, Store, StoreError, io_error};

/// From this many files or folders on, one sync of the file system is cheaper than one a file.
const SYNC_ALL_FROM: usize = 16;

impl Store {
    /// Writes a small file below the root: temporary, synced, renamed into place, folder synced.
    ///
    /// # Errors
    /// When it cannot be written; then what was there before is still there.
    pub fn replace_file(&self, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let target = self.root.join(path);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).map_err(io_error("make", folder))?;
        }
        write_durably(&target, bytes, true)
    }

    /// As [`Store::replace_file`] for many files of one folder, with one sync for all where there are many.
    ///
    /// # Errors
    /// When one cannot be written; every file is then what it was, or what it was to be.
    pub fn replace_files(&self, folder: &str, files: &[(String, Vec<u8>)]) -> Result<(), StoreError> {
        if files.len() < SYNC_ALL_FROM {
            return files.iter().try_for_each(|(name, bytes)| self.replace_file(&format!("{folder}/{name}"), bytes));
        }
        let folder = self.root.join(folder);
        fs::create_dir_all(&folder).map_err(io_error("make", &folder))?;
        let mut written = Vec::new();
        for (name, bytes) in files {
            let target = folder.join(name);
            // Only its path is kept: there may be more files than a process may have open.
            let temp = write_temp(&target, bytes).map_err(io_error("write", &target))?.into_temp_path();
            written.push((temp, target));
        }
        self.sync_all(written.iter().map(|(temp, _)| temp.as_ref()))?;
        for (temp, target) in written {
            temp.persist(&target).map_err(|error| io_error("write", target)(error.error))?;
        }
        sync_folder(&folder).map_err(io_error("sync", folder))
    }

    /// Brings files, or folders, of the store to the disk: each alone, or all that the file system holds where they are many.
    pub(super) fn sync_all<'p>(&self, paths: impl ExactSizeIterator<Item = &'p Path>) -> Result<(), StoreError> {
        #[cfg(target_os = "linux")]
        if paths.len() >= SYNC_ALL_FROM {
            let synced = rustix::fs::syncfs(&self.folder).map_err(io::Error::from);
            return synced.map_err(io_error("sync", &self.root));
        }
        let synced = paths.into_iter().try_for_each(|path| File::open(path)?.sync_all());
        synced.map_err(io_error("sync", &self.root))
    }
}

/// Temp file in the same folder, synced, renamed to `target`, folder synced. What is there already is replaced, or kept.
///
/// # Errors
/// When it cannot be written; then what was there before is still there.
pub fn write_durably(target: &Path, bytes: &[u8], replace: bool) -> Result<(), StoreError> {
    let folder = folder_of(target);
    let write = || -> io::Result<()> {
        let file = write_temp(target, bytes)?;
        file.as_file().sync_all()?;
        if replace {
            file.persist(target).map_err(|error| error.error)?;
        } else if let Err(error) = file.persist_noclobber(target)
            && error.error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(error.error);
        }
        sync_folder(folder)
    };
    write().map_err(io_error("write", target))
}

/// An error without the name of a temporary file, which says nothing to anybody.
pub fn unnamed(error: io::Error) -> io::Error {
    if error.raw_os_error().is_some() { error } else { error.kind().into() }
}

fn folder_of(target: &Path) -> &Path {
    target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A temporary file with `bytes` beside `target`, which must be free or a regular file.
fn write_temp(target: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    if fs::symlink_metadata(target).is_ok_and(|there| !there.is_file()) {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is there and no regular file"));
    }
    // Whoever may read the store may read its documents: the process's umask decides, as for objects.
    let permissions = fs::Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new()
        .prefix(NEW)
        .permissions(permissions)
        .tempfile_in(folder_of(target))
        .map_err(unnamed)?;
    file.write_all(bytes).map_err(unnamed)?;
    Ok(file)
}

/// What was renamed into a folder stays there.
///
/// # Errors
/// When the folder cannot be synced.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
