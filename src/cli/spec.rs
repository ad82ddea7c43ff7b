//! `witnessmark spec`, and specs that other commands are given.

use std::path::Path;

use super::args::{SpecArgs, SpecCommand};
use super::seal::{now, open_or_create};
use super::verify::verified;
use super::{CliError, Context, Status, input};
use crate::binding::Role;
use crate::catalog::Catalog;
use crate::digest::Sha256;
use crate::log::Log;
use crate::manifest::{DocumentAct, TOOL};
use crate::refusal::{Refusal, Rule, Subject};
use crate::report::text;
use crate::spec::draft::draft;
use crate::spec::{MAX_SPEC, Spec};
use crate::store::{Fault, Store};
use crate::verify::Depth;

pub(super) fn run(context: &mut Context<'_>, args: &SpecArgs) -> Result<Status, CliError> {
    match &args.command {
        SpecCommand::Check { file } => check(context, file),
        SpecCommand::Seal { file } => seal(context, file),
        SpecCommand::Draft { from, output } => write_draft(context, from, output.as_deref()),
    }
}

fn check(context: &mut Context<'_>, file: &Path) -> Result<Status, CliError> {
    let Some(Some(spec)) = load(context, Some(file))? else { return Ok(Status::Refused) };
    if context.json {
        let line = serde_json::json!({ "spec": spec.sha256, "workload": spec.workload, "plan": spec.is_a_plan(), "unknown": spec.undescribed(), "open": spec.open() });
        context.out.json(&line)?;
    } else {
        context.out.print(&text::spec(&spec))?;
    }
    Ok(Status::Good)
}

fn seal(context: &mut Context<'_>, file: &Path) -> Result<Status, CliError> {
    let Some((spec, bytes)) = read(context, file)? else { return Ok(Status::Refused) };
    let (store, _) = open_or_create(&context.store)?;
    let (document, place, new) = match Log::declare(&store, DocumentAct::Spec, &bytes, now(), TOOL) {
        Ok(declared) => declared,
        Err(Fault::Refused(refusal)) => return context.refused("store: ", &[refusal]),
        Err(Fault::Error(error)) => return Err(error.into()),
    };
    if context.json {
        let line = serde_json::json!({ "spec": document.subject, "object": document.object, "entry": place, "already": !new, "unknown": spec.undescribed(), "open": spec.open() });
        context.out.json(&line)?;
    } else {
        context.out.print(&format!("{}\n", document.subject))?;
        context.out.flush()?;
        context.prose(&text::spec_sealed(&spec, place, new))?;
    }
    Ok(Status::Good)
}

fn write_draft(context: &mut Context<'_>, from: &[String], output: Option<&Path>) -> Result<Status, CliError> {
    let store = Store::open(&context.store)?;
    let catalog = Catalog::load(&store)?;
    let captures = match verified(context, &catalog, from, Depth::Rows)? {
        Ok(captures) => captures,
        Err(status) => return Ok(status),
    };
    let sides: Vec<_> = captures.iter().map(|capture| (capture.run(), capture.rows())).collect();
    let text = draft(&sides);
    context.document(text.as_bytes(), output)?;
    context.prose("a draft: say what it is for, and what it leaves open (witnessmark spec check FILE)\n")?;
    for (run, _) in sides.iter().filter(|(run, _)| run.role() == Some(Role::Candidate)) {
        context.prose(&format!(
            "candidate {} is sealed before this spec and cannot be judged by it: run it again behind it\n",
            run.run_id
        ))?;
    }
    Ok(Status::Good)
}

/// A spec with its bytes; none, with the refusal told, where the file is not a spec.
fn read(context: &mut Context<'_>, path: &Path) -> Result<Option<(Spec, Vec<u8>)>, CliError> {
    let shown = path.display().to_string();
    let parsed = input::read(path, MAX_SPEC)?.and_then(|bytes| {
        let text = std::str::from_utf8(&bytes).map_err(|error| error.to_string());
        let spec = text.and_then(|text| Spec::parse(text).map_err(|error| error.to_string()));
        let refuse = |found| Refusal::new(Rule::SchemaInvalid, Subject::File(shown.clone()), "a spec", found);
        spec.map(|spec| (spec, bytes.clone())).map_err(refuse)
    });
    match parsed {
        Ok(read) => Ok(Some(read)),
        Err(refusal) if context.json => {
            context.out.json(&serde_json::json!({ "of": shown, "refusals": [refusal] }))?;
            Ok(None)
        }
        Err(refusal) => {
            context.out.say(&text::refusals(&[refusal], ""))?;
            Ok(None)
        }
    }
}

/// The spec in a file, if one is given; none, with the refusal told, where the file is not a spec.
#[expect(clippy::option_option, reason = "no spec asked for is not the same as a spec refused")]
pub(super) fn load(context: &mut Context<'_>, path: Option<&Path>) -> Result<Option<Option<Spec>>, CliError> {
    let Some(path) = path else { return Ok(Some(None)) };
    Ok(read(context, path)?.map(|(spec, _)| Some(spec)))
}

/// The spec that a file holds, or that an id in the log names, with its bytes; none, with the refusal told, where it is none.
pub(super) fn find(
    context: &mut Context<'_>,
    catalog: &Catalog<'_>,
    name: &str,
) -> Result<Option<(Spec, Vec<u8>)>, CliError> {
    let is_id = name.parse::<Sha256>().is_ok();
    if !is_id && Path::new(name).exists() {
        return read(context, Path::new(name));
    }
    let ids: std::collections::BTreeSet<Sha256> = catalog
        .documents()
        .filter(|(act, document)| *act == DocumentAct::Spec && document.subject.to_string().starts_with(name))
        .map(|(_, document)| document.subject)
        .filter(|_| name.len() >= crate::catalog::MIN_PREFIX)
        .collect();
    let mut ids = ids.into_iter();
    let (Some(id), None) = (ids.next(), ids.next()) else {
        return Err(CliError::Failed(format!(
            "{name:?} is no file, and no id of one spec in the log (eight digits or more)"
        )));
    };
    match crate::qualify::recorded_spec(catalog, id) {
        Ok((spec, document)) => {
            let bytes = crate::catalog::read_document(catalog.store(), &document);
            Ok(bytes.ok().map(|bytes| (spec, bytes)))
        }
        Err(Fault::Refused(refusal)) => {
            context.refused("", &[refusal])?;
            Ok(None)
        }
        Err(Fault::Error(error)) => Err(error.into()),
    }
}
