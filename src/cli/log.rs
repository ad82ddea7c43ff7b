//! `witnessmark log`.

use std::io::Write as _;
use std::path::Path;

use super::args::{LogArgs, LogCommand};
use super::output::{self, Output};
use super::progress::Progress;
use super::{CliError, Context, Status, input, proof};
use crate::canon::document;
use crate::catalog::Catalog;
use crate::log::Log;
use crate::log::publish::{self, Unpublished};
use crate::note::{MAX_NOTE, SigningKey, origin_line};
use crate::refusal::Findings;
use crate::report::{proof as proof_text, text};
use crate::store::{Fault, Store, unnamed};

pub(super) fn run(context: &mut Context<'_>, args: &LogArgs) -> Result<Status, CliError> {
    match &args.command {
        LogCommand::Show => show(context),
        LogCommand::Prove { old, new, output } => prove(context, *old, *new, output.as_deref()),
        LogCommand::Check(args) => proof::check(context, args),
        LogCommand::Sign { key, output } => sign(context, key, output.as_deref()),
        LogCommand::Publish { dir, verifier_key } => publish(context, dir, verifier_key.as_deref()),
        LogCommand::Keygen { output, name } => keygen(context, output, name.as_deref()),
    }
}

fn show(context: &mut Context<'_>) -> Result<Status, CliError> {
    let store = Store::open(&context.store)?;
    let catalog = Catalog::load(&store)?;
    let log = &catalog.log;
    if context.json {
        for entry in &log.entries {
            context.out.json(entry)?;
        }
    } else if log.refusals.is_empty() || !log.entries.is_empty() {
        let names = |capture: &crate::id::CaptureId| catalog.names_of(*capture).join(", ");
        context.out.print(&text::log(log, store.origin(), &names))?;
    }
    if log.refusals.is_empty() {
        return Ok(Status::Good);
    }
    context.refused("store: ", &Findings::from(log.refusals.clone()).sorted().refusals)
}

fn prove(context: &mut Context<'_>, old: u64, new: Option<u64>, output: Option<&Path>) -> Result<Status, CliError> {
    let store = Store::open(&context.store)?;
    let log = Log::load(&store)?;
    if !log.refusals.is_empty() {
        return context.refused("store: ", &log.refusals);
    }
    let size = log.size().size;
    let new = new.unwrap_or(size);
    let usage = || CliError::Usage(format!("OLD ≤ NEW ≤ {size}, the number of entries, and not {old} and {new}"));
    let proof = log.prove(&store, old, new).ok_or_else(usage)?;
    let bytes = document::encode(&proof).map_err(|error| CliError::Failed(error.to_string()))?;
    context.document(&bytes, output)?;
    if let Some(file) = output.filter(|_| context.json) {
        let file = file.display().to_string();
        context.out.json(&serde_json::json!({ "file": file, "old_size": old, "new_size": new }))?;
    }
    context.prose(&format!("proof that the log of {} begins with the log of {old}\n", text::entries(new)))?;
    Ok(Status::Good)
}

fn sign(context: &mut Context<'_>, key: &Path, output: Option<&Path>) -> Result<Status, CliError> {
    let text = match input::read(key, MAX_NOTE)? {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(refusal) => return context.refused("", &[refusal]),
    };
    let key = SigningKey::parse(&text).map_err(|error| CliError::Failed(format!("{}: {error}", key.display())))?;
    let store = Store::open(&context.store)?;
    let (checkpoint, note) = match Log::sign(&store, &key) {
        Ok(signed) => signed,
        Err(Fault::Refused(refusal)) => return context.refused("store: ", &[refusal]),
        Err(Fault::Error(error)) => return Err(error.into()),
    };
    if context.json {
        context.out.json(&serde_json::json!({
            "origin": checkpoint.origin, "size": checkpoint.head.size, "root": checkpoint.head.root,
            "verifier_key": key.verifier().encode(), "checkpoint": note,
        }))?;
    }
    if output.is_some() || !context.json {
        context.document(note.as_bytes(), output)?;
    }
    context.prose(&proof_text::signed(&checkpoint))?;
    Ok(Status::Good)
}

fn publish(context: &mut Context<'_>, dir: &Path, key: Option<&str>) -> Result<Status, CliError> {
    let store = Store::open(&context.store)?;
    let key = key.map(input::verifier_key).transpose()?;
    let progress = Progress::start(context, "publishing");
    let published = publish::publish(&store, dir, key.as_ref(), &context.meter);
    drop(progress);
    let published = match published {
        Ok(published) => published,
        Err(Unpublished::Log(refusal)) => return context.refused("store: ", &[refusal]),
        Err(Unpublished::Folder(refusal)) => return context.refused("", &[refusal]),
        Err(Unpublished::Interrupted) => return Err(CliError::Interrupted),
        Err(error @ Unpublished::Place { .. }) => return Err(CliError::Usage(error.to_string())),
        Err(Unpublished::Store(error)) => return Err(error.into()),
        Err(error @ Unpublished::Unsigned) => return Err(CliError::Failed(error.to_string())),
    };
    if context.json {
        let (dir, head) = (dir.display().to_string(), published.checkpoint.head);
        context.out.json(&serde_json::json!({
            "dir": dir, "size": head.size, "root": head.root, "written": published.written, "there": published.there,
        }))?;
    } else {
        context.prose(&proof_text::published(&published, &dir.display().to_string()))?;
    }
    Ok(Status::Good)
}

fn keygen(context: &mut Context<'_>, target: &Path, name: Option<&str>) -> Result<Status, CliError> {
    let name = match name {
        Some(name) => name.to_owned(),
        None => origin_line(Store::open(&context.store)?.origin()),
    };
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| CliError::Failed(error.to_string()))?;
    let key = SigningKey::new(&name, &seed).map_err(|error| CliError::Usage(error.to_string()))?;
    let public = key.verifier().encode();
    let mut path = target.as_os_str().to_owned();
    path.push(".pub");
    // Both or, as far as can be seen before, neither; a key is never written over.
    let mut files = Vec::new();
    for (path, text, mode) in
        [(target, key.encode(), output::SECRET), (Path::new(&path), public.clone(), output::FOR_ALL)]
    {
        let mut file = Output::create(path, mode)?;
        let written = file.write_all(format!("{text}\n").as_bytes());
        written.map_err(|error| CliError::Failed(format!("cannot write {}: {}", path.display(), unnamed(error))))?;
        files.push(file);
    }
    files.into_iter().try_for_each(Output::finish)?;
    if context.json {
        context.out.json(&serde_json::json!({ "name": name, "verifier_key": public }))?;
    } else {
        context.out.print(&format!("{public}\n"))?;
    }
    Ok(Status::Good)
}
