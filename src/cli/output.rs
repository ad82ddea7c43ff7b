//! Files that are written because the command line names them.
//!
//! A new file appears whole or not at all. What is there already is never written over, least of all in a store; only a receipt replaces what
//! lies outside of one. What is no regular file, such as /dev/null or a pipe, takes the bytes as they come and is never replaced.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use tempfile::NamedTempFile;

use super::CliError;
use crate::store::{NEW, is_in_store, sync_folder, unnamed, write_durably};

/// Whoever may read the folder may read the file: the process's umask decides.
pub(super) const FOR_ALL: u32 = 0o666;
/// For its owner's eyes only.
pub(super) const SECRET: u32 = 0o600;

/// A file while it is written. Dropped before [`Output::finish`], it leaves nothing behind.
pub(super) struct Output {
    target: PathBuf,
    writer: Writer,
    fault: Option<CliError>,
}

enum Writer {
    New(NamedTempFile),
    Sink(File),
}

impl Output {
    /// Begins a file that is not there yet.
    pub(super) fn create(target: &Path, mode: u32) -> Result<Self, CliError> {
        Self::begin(target, mode, |target| OpenOptions::new().write(true).open(target))
    }

    /// `sink` opens what is there and no regular file.
    fn begin(target: &Path, mode: u32, sink: impl FnOnce(&Path) -> io::Result<File>) -> Result<Self, CliError> {
        let failed = |error: io::Error| failed(target, &error);
        let writer = match fs::metadata(target) {
            Ok(there) if there.is_file() => return Err(failed(io::ErrorKind::AlreadyExists.into())),
            Ok(_) => Writer::Sink(sink(target).map_err(failed)?),
            Err(_) => {
                let mut new = tempfile::Builder::new();
                let new = new.prefix(NEW).permissions(Permissions::from_mode(mode));
                Writer::New(new.tempfile_in(folder(target)).map_err(unnamed).map_err(failed)?)
            }
        };
        Ok(Self { target: target.to_owned(), writer, fault: None })
    }

    /// That it could not be written, if it could not: whoever wrote into it may have taken that for a fault of what it read.
    pub(super) fn fault(&mut self) -> Option<CliError> {
        self.fault.take()
    }

    /// Makes it visible under its name, unless something took that meanwhile.
    pub(super) fn finish(self) -> Result<(), CliError> {
        let Writer::New(file) = self.writer else { return Ok(()) };
        let finish = || {
            file.as_file().sync_all()?;
            file.persist_noclobber(&self.target).map_err(|error| error.error)?;
            sync_folder(folder(&self.target))
        };
        finish().map_err(|error: io::Error| failed(&self.target, &error))
    }

    /// Writes it whole.
    pub(super) fn write(target: &Path, mode: u32, bytes: &[u8]) -> Result<(), CliError> {
        Self::create(target, mode)?.whole(bytes)
    }

    fn whole(mut self, bytes: &[u8]) -> Result<(), CliError> {
        self.write_all(bytes).map_err(|error| failed(&self.target, &error))?;
        self.finish()
    }
}

impl Write for Output {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = match &mut self.writer {
            Writer::New(file) => file.write(buffer),
            Writer::Sink(file) => file.write(buffer),
        };
        let written = written.map_err(unnamed);
        if let Err(error) = &written
            && error.kind() != io::ErrorKind::Interrupted
        {
            self.fault = Some(failed(&self.target, error));
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.writer {
            Writer::New(file) => file.flush(),
            Writer::Sink(file) => file.flush(),
        }
    }
}

/// Writes a file, or writes it again: what is there is replaced, but not in a store.
pub(super) fn rewrite(target: &Path, bytes: &[u8]) -> Result<(), CliError> {
    match fs::symlink_metadata(target) {
        Ok(there) if there.is_file() && target.canonicalize().is_ok_and(|real| is_in_store(&real)) => {
            Err(CliError::Failed(format!("cannot write {}: it is a file of a store", target.display())))
        }
        Ok(there) if there.is_file() => Ok(write_durably(target, bytes, true)?),
        _ => Output::begin(target, FOR_ALL, open_sink)?.whole(bytes),
    }
}

/// Opens a device or a pipe that somebody reads already: nobody may ever come, and a receipt is written after long work.
fn open_sink(target: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, fcntl_setfl, open};
    let file = match open(target, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NXIO) => return Err(io::Error::other("it is a pipe that nobody reads")),
        opened => opened?,
    };
    fcntl_setfl(&file, OFlags::empty())?;
    Ok(file.into())
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn failed(target: &Path, error: &io::Error) -> CliError {
    let why = match error.kind() {
        io::ErrorKind::AlreadyExists => "it is there already".to_owned(),
        io::ErrorKind::NotFound => "there is no such folder".to_owned(),
        _ => error.to_string(),
    };
    CliError::Failed(format!("cannot write {}: {why}", target.display()))
}
