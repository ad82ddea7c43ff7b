//! `witnessmark seal`.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::args::SealArgs;
use super::progress::Progress;
use super::{CliError, Context, Status, spec};
use crate::digest::hex;
use crate::id::{CaptureId, Nanos, ObjectId};
use crate::ingest::Torn;
use crate::log::Log;
use crate::refusal::{Note, Refusal};
use crate::report::text;
use crate::seal::{Batch, Outcome, SealError};
use crate::shown::printable;
use crate::spec::Spec;
use crate::store::{Store, StoreError};

/// A batch is committed when it holds this much, so that an interrupted campaign keeps what is done.
const BATCH_BYTES: u64 = 1 << 30;
const BATCH_DIRS: usize = 4096;

#[derive(Serialize)]
#[serde(rename_all = "kebab-case", tag = "status")]
enum Line<'a> {
    Sealed {
        dir: &'a str,
        capture: CaptureId,
        manifest: ObjectId,
        name: &'a str,
        entry: usize,
        already: bool,
        notes: &'a [Note],
    },
    Refused {
        dir: &'a str,
        refusals: &'a [Refusal],
    },
    Error {
        dir: &'a str,
        error: String,
    },
}

pub(super) fn run(context: &mut Context<'_>, args: &SealArgs) -> Result<Status, CliError> {
    if args.name.is_some() && args.dirs.len() != 1 {
        return Err(CliError::Usage("--as names one capture: give one DIR with it".to_owned()));
    }
    if args.name.as_ref().is_some_and(|name| name.is_empty() || name.len() > crate::row::MAX_NAME) {
        return Err(CliError::Usage("--as takes a name of 1 to 1024 bytes".to_owned()));
    }
    let Some(spec) = spec::load(context, args.spec.as_deref())? else { return Ok(Status::Refused) };
    let (store, made) = open_or_create(&context.store)?;
    let result = seal_all(context, args, spec.as_ref(), &store);
    if made {
        remove_if_unused(&store);
    }
    result
}

fn seal_all(
    context: &mut Context<'_>,
    args: &SealArgs,
    spec: Option<&Spec>,
    store: &Store,
) -> Result<Status, CliError> {
    let progress = Progress::start(context, "sealing");
    let mut status = Status::Good;
    let mut rest = args.dirs.as_slice();
    while !rest.is_empty() {
        let meter = std::sync::Arc::clone(&context.meter);
        let torn = if args.incomplete { Torn::Kept } else { Torn::Refused };
        let mut batch = Batch::new(store, args.codec.into(), spec, &meter)?.with_torn(torn);
        let mut dirs = Vec::new();
        while let Some((dir, after)) = rest.split_first() {
            if batch.staged_bytes() > BATCH_BYTES || dirs.len() >= BATCH_DIRS {
                break;
            }
            rest = after;
            match batch.add(dir, args.name.as_deref()) {
                Ok(()) => dirs.push(dir),
                Err(error @ SealError::Interrupted) => return Err(error.into()),
                Err(error) => {
                    status = Status::Undecided;
                    report_error(context, dir, &error)?;
                }
            }
        }
        let outcomes = batch.commit(now())?;
        for (dir, outcome) in dirs.into_iter().zip(outcomes) {
            status = status.max(report(context, dir, &outcome)?);
        }
    }
    drop(progress);
    Ok(status)
}

fn report(context: &mut Context<'_>, dir: &Path, outcome: &Outcome) -> Result<Status, CliError> {
    let shown = dir.to_string_lossy();
    match outcome {
        Outcome::Sealed(sealed) => {
            if context.json {
                context.out.json(&Line::Sealed {
                    dir: &shown,
                    capture: sealed.capture,
                    manifest: sealed.manifest,
                    name: &sealed.name,
                    entry: sealed.entry,
                    already: sealed.already,
                    notes: &sealed.findings.notes,
                })?;
            } else {
                context.out.print(&format!("{}\n", sealed.capture))?;
                context.out.flush()?;
                context.prose(&text::sealed(sealed))?;
            }
            Ok(Status::Good)
        }
        Outcome::Refused(findings) => {
            if context.json {
                context.out.json(&Line::Refused { dir: &shown, refusals: &findings.refusals })?;
            } else {
                context.out.say(&text::refusals(&findings.refusals, &format!("{shown}: ")))?;
            }
            Ok(Status::Refused)
        }
    }
}

fn report_error(context: &mut Context<'_>, dir: &Path, error: &SealError) -> Result<(), CliError> {
    let (shown, error) = (dir.to_string_lossy(), error.to_string());
    if context.json {
        context.out.json(&Line::Error { dir: &shown, error })
    } else {
        context.out.say(&format!("error: {}\n", printable(&format!("{shown}: {error}"))))
    }
}

/// Opens the store, or makes it; also says whether it was made.
pub(super) fn open_or_create(path: &Path) -> Result<(Store, bool), CliError> {
    match Store::open(path) {
        Ok(store) => return Ok((store, false)),
        Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
        Err(StoreError::NotAStore { .. }) if Store::may_begin(path) => {}
        Err(error) => return Err(error.into()),
    }
    let mut origin = [0; 16];
    getrandom::fill(&mut origin).map_err(|error| CliError::Failed(error.to_string()))?;
    Ok((Store::create(path, hex(&origin))?, true))
}

/// A store that was made for nothing goes away again.
pub(super) fn remove_if_unused(store: &Store) {
    // Whoever appends waits, and then finds no store.
    let Ok(_lock) = Log::lock(store) else { return };
    let empty = Log::load(store).is_ok_and(|log| log.size().size == 0 && log.refusals.is_empty());
    let nothing_in = |folder: &str| store.walk(folder).is_ok_and(|files| files.is_empty());
    // Somebody else may be staging into it, or have unbundled something.
    let idle = std::fs::read_dir(store.root().join("tmp")).is_ok_and(|mut entries| entries.next().is_none());
    if empty && idle && nothing_in("refs") {
        // What cannot be removed is an empty store: harmless.
        drop(std::fs::remove_dir_all(store.root()));
    }
}

pub(super) fn now() -> Nanos {
    #[expect(clippy::disallowed_methods, reason = "the cli room reads the clock")]
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{DocumentAct, TOOL};

    #[test]
    fn only_a_store_that_nobody_used_goes_away_again() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| Store::create(&folder.path().join(name), "0".repeat(32)).unwrap();
        let unused = make("unused");
        remove_if_unused(&unused);
        assert!(!unused.root().exists());
        let declared = make("declared");
        Log::declare(&declared, DocumentAct::Spec, b"a spec", Nanos(1), TOOL).unwrap();
        let staging = make("staging");
        let _staging = staging.stage().unwrap();
        let named = make("named");
        std::fs::write(named.root().join("refs/runs/one"), "{}").unwrap();
        for store in [&declared, &staging, &named] {
            remove_if_unused(store);
            assert!(store.root().join("store.json").exists(), "{}", store.root().display());
        }
    }
}
