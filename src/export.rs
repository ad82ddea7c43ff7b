//! Export: a sealed capture becomes a capture directory again.
//!
//! In comes a verified capture, out goes the directory that it could have been sealed from: run.json byte for byte, rows in key order, scores in
//! the declared dtype, attachments. Always holds: sealed again it has the same capture id, and it appears whole or not at all. Never writes
//! over anything, and hands out no byte whose digest is not the sealed one. See `specs/format-v1.md`, sections 3 and 10.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use crate::binding::MAX_RUN_JSON;
use crate::canon::json::Json;
use crate::digest::hex;
use crate::fetch::Cursor;
use crate::id::{ObjectId, long};
use crate::meter::Meter;
use crate::refusal::{Refusal, Rule, Subject};
use crate::row::{FIELDS, Row, Value};
use crate::store::{Fault, Store, StoreError, hash_file, io_error};
use crate::verify::Verified;

/// What keeps an export from being made.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Something could not be read or written
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is something at the place already
    #[error("{path} is there already, and export writes over nothing", path = path.display())]
    Taken {
        /// The place
        path: PathBuf,
    },
    /// Asked to stop
    #[error("interrupted")]
    Interrupted,
}

/// Why writing ended early.
enum Halt {
    Refused(Refusal),
    Error(ExportError),
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Halt::Error(error.into())
    }
}

impl From<Fault> for Halt {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused(refusal) => Halt::Refused(refusal),
            Fault::Error(error) => error.into(),
        }
    }
}

/// Writes `capture` as the new folder `out`.
///
/// # Errors
/// When `out` is there already, or something cannot be read or written: then there is no `out`.
///
/// # Refusals
/// Where the store no longer holds the bytes that the capture id binds: then there is no `out` either.
pub fn export(
    store: &Store,
    capture: &Verified,
    out: &Path,
    meter: &Meter,
) -> Result<Result<(), Refusal>, ExportError> {
    if out.symlink_metadata().is_ok() {
        return Err(ExportError::Taken { path: out.to_owned() });
    }
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temp = tempfile::Builder::new().prefix(".export-").tempdir_in(parent);
    let temp = temp.map_err(io_error("make a folder in", parent))?;
    if let Err(refusal) = write_capture(store, capture, temp.path(), meter)? {
        return Ok(Err(refusal));
    }
    publish(temp.path(), out, parent).map_err(io_error("write", out))?;
    // What was renamed away is nothing to clean up.
    let _gone = temp.keep();
    Ok(Ok(()))
}

fn publish(temp: &Path, out: &Path, parent: &Path) -> io::Result<()> {
    for entry in WalkDir::new(temp).contents_first(true) {
        File::open(entry?.path())?.sync_all()?;
    }
    // A temporary folder is its owner's alone; a capture directory is like any other.
    let made = parent.metadata()?.permissions();
    fs::set_permissions(temp, made)?;
    fs::rename(temp, out)?;
    File::open(parent)?.sync_all()
}

/// Writes the files of `capture` into `folder`, run.json last.
///
/// # Errors
/// When something cannot be read or written.
///
/// # Refusals
/// As [`export`].
pub fn write_capture(
    store: &Store,
    capture: &Verified,
    folder: &Path,
    meter: &Meter,
) -> Result<Result<(), Refusal>, ExportError> {
    match write_files(store, capture, folder, meter) {
        Ok(()) => Ok(Ok(())),
        Err(Halt::Refused(refusal)) => Ok(Err(refusal)),
        Err(Halt::Error(error)) => Err(error),
    }
}

fn write_files(store: &Store, capture: &Verified, folder: &Path, meter: &Meter) -> Result<(), Halt> {
    write_scores(store, capture, folder, meter)?;
    let path = folder.join("rows.jsonl");
    let write = || -> io::Result<()> {
        let mut file = BufWriter::new(File::create_new(&path)?);
        for (row, number) in capture.rows().iter().zip(0..) {
            writeln!(file, "{}", row_json(row, number).to_text())?;
        }
        file.flush()
    };
    write().map_err(io_error("write", &path))?;
    write_attachments(store, capture, folder)?;
    let document = &capture.manifest().capture;
    let run_object = &capture.manifest().run_object;
    let run = store.read_object(run_object, Some(document.run_json.bytes), MAX_RUN_JSON, "run.json")?;
    // run.json marks the end of a run: one that never ended must not get it here.
    let path = folder.join(if document.complete { "run.json" } else { "run.json.partial" });
    fs::write(&path, run).map_err(io_error("write", &path))?;
    Ok(())
}

fn write_scores(store: &Store, capture: &Verified, folder: &Path, meter: &Meter) -> Result<(), Halt> {
    let Some(declared) = &capture.run().scores else { return Ok(()) };
    let path = folder.join(declared.dtype.file_name());
    let file = File::create_new(&path).map_err(io_error("make", &path))?;
    let mut file = BufWriter::with_capacity(1 << 18, file);
    let mut cursor = Cursor::new(store, capture).map_err(io_error("set up", "a decompressor"))?;
    let row_bytes = declared.vocab_size * long(declared.dtype.size());
    meter.expect(row_bytes * long(capture.rows().len()));
    let mut bytes = Vec::new();
    for (index, row) in capture.rows().iter().enumerate() {
        if meter.is_stopped() {
            return Err(Halt::Error(ExportError::Interrupted));
        }
        if !cursor.row(index)?.write_as(declared.dtype, &mut bytes) {
            let expected = format!("scores of dtype {}", declared.dtype.name());
            let refusal =
                Refusal::new(Rule::ScoreWitness, Subject::Row(row.key), expected, "scores that it cannot hold");
            return Err(Halt::Refused(refusal));
        }
        file.write_all(&bytes).map_err(io_error("write", &path))?;
        meter.add(row_bytes);
    }
    file.flush().map_err(io_error("write", &path))?;
    Ok(())
}

fn write_attachments(store: &Store, capture: &Verified, folder: &Path) -> Result<(), Halt> {
    for attachment in &capture.manifest().capture.attachments {
        let id = ObjectId(attachment.blake3);
        let role = format!("attachment {:?}", attachment.path);
        let (mut from, _) = store.open_object(&id, Some(attachment.bytes), &role)?;
        // A verified document has no path that leads out of the folder.
        let path = folder.join("attachments").join(&attachment.path);
        let mut copy = || -> io::Result<ObjectId> {
            fs::create_dir_all(path.parent().unwrap_or(folder))?;
            io::copy(&mut from, &mut File::create_new(&path)?)?;
            Ok(hash_file(File::open(&path)?, &|_| {})?.0)
        };
        let found = copy().map_err(io_error("write", &path))?;
        if found != id {
            let subject = Subject::Object(id, role);
            let refusal = Refusal::new(Rule::ObjectDigest, subject, format!("BLAKE3 {id}"), found.to_string());
            return Err(Halt::Refused(refusal));
        }
    }
    Ok(())
}

/// A row as an object of rows.jsonl, with its number; fields that it does not have are left out.
#[must_use]
pub fn row_json(row: &Row, number: u64) -> Json {
    let mut members = vec![("row".to_owned(), Json::Number(number.to_string()))];
    for (index, field) in FIELDS.iter().enumerate().filter(|(_, field)| field.name != "score_digest") {
        let value = match row.get(index) {
            None => continue,
            Some(Value::Int32(n)) => Json::Number(n.to_string()),
            Some(Value::Int64(n)) => Json::Number(n.to_string()),
            Some(Value::Digest(digest)) => Json::String(hex(&digest)),
            Some(Value::Text(text)) if field.name == "x" => {
                Json::parse(text.as_bytes()).unwrap_or_else(|_| Json::String(text.to_string()))
            }
            Some(Value::Text(text)) => Json::String(text.to_string()),
        };
        members.push((field.name.to_owned(), value));
    }
    Json::Object(members)
}
