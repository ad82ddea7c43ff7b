//! `witnessmark bundle` and `witnessmark unbundle`.

use std::collections::BTreeSet;
use std::io::{BufReader, BufWriter, Read};
use std::path::Path;
use std::sync::Arc;

use super::args::{BundleArgs, UnbundleArgs};
use super::output::{self, Output};
use super::progress::Progress;
use super::seal::{open_or_create, remove_if_unused};
use super::{CliError, Context, Status, input, qualify};
use crate::bundle;
use crate::catalog::Catalog;
use crate::manifest::Act;
use crate::report::proof as text;
use crate::store::{Fault, Store};

const BUFFER: usize = 1 << 18;

pub(super) fn write(context: &mut Context<'_>, args: &BundleArgs) -> Result<Status, CliError> {
    let store = Store::open(&context.store)?;
    let catalog = Catalog::load(&store)?;
    if !catalog.log.refusals.is_empty() {
        return context.refused("store: ", &catalog.log.refusals);
    }
    let mut places = BTreeSet::new();
    for name in &args.what {
        let results = match qualify::results_named(&catalog, name)? {
            Ok(results) => results,
            Err(refusal) => return context.refused("store: ", &[refusal]),
        };
        let own = match results.as_slice() {
            [] => bundle::places(&catalog, &catalog.resolve(name, false)?),
            results => {
                let all = results.iter().map(|recorded| bundle::places_of_result(&catalog, recorded));
                all.collect::<Option<Vec<_>>>().map(|places| places.concat()).unwrap_or_default()
            }
        };
        if own.is_empty() {
            let message = format!(
                "{name}, or what it rests on, came into this store with a bundle, and its entry is in another log: hand on that bundle"
            );
            return Err(CliError::Usage(message));
        }
        places.extend(own);
    }
    let shown = args.output.display().to_string();
    let mut file = Output::create(&args.output, output::FOR_ALL)?;
    let progress = Progress::start(context, "bundling");
    let written = bundle::write(&catalog, &places, &mut BufWriter::with_capacity(BUFFER, &mut file), &context.meter);
    drop(progress);
    let made = match written {
        Ok(made) => made,
        Err(Fault::Error(_)) if context.meter.is_stopped() => return Err(CliError::Interrupted),
        Err(Fault::Error(error)) => return Err(file.fault().unwrap_or_else(|| error.into())),
        Err(Fault::Refused(refusal)) => return context.refused("", &[refusal]),
    };
    file.finish()?;
    if context.json {
        let sealed = made.header.entries.iter().filter_map(|proved| proved.entry.sealed());
        let captures: BTreeSet<_> = sealed.map(|(capture, _)| capture).collect();
        context.out.json(&serde_json::json!({
            "file": shown, "bytes": made.bytes, "objects": made.header.objects.len(), "captures": captures, "head": made.header.head,
        }))?;
    } else {
        context.prose(&text::bundled(&made, &shown))?;
    }
    Ok(Status::Good)
}

pub(super) fn unbundle(context: &mut Context<'_>, args: &UnbundleArgs) -> Result<Status, CliError> {
    let meter = Arc::clone(&context.meter);
    let input: Box<dyn Read> = if args.file == Path::new("-") {
        Box::new(input::Stdin(&meter))
    } else {
        match input::open(&args.file)? {
            Ok(file) => Box::new(file),
            Err(refusal) => return context.refused("", &[refusal]),
        }
    };
    let (store, made) = open_or_create(&context.store)?;
    let progress = Progress::start(context, "unbundling");
    let result = bundle::unbundle(&store, &mut BufReader::with_capacity(BUFFER, input), &context.meter);
    drop(progress);
    if made && !matches!(result, Ok(Ok(_))) {
        remove_if_unused(&store);
    }
    let unbundled = match result {
        Ok(Ok(unbundled)) => unbundled,
        Ok(Err(refusals)) => return context.refused(&format!("{}: ", args.file.display()), &refusals),
        Err(_) if context.meter.is_stopped() => return Err(CliError::Interrupted),
        Err(error) => return Err(error.into()),
    };
    let entries = &unbundled.header.entries;
    if context.json {
        for proved in entries {
            let mut line = serde_json::json!({
                "origin": unbundled.header.head.origin, "entry": proved.index, "record": unbundled.record,
                "already": unbundled.already,
            });
            match proved.entry.act {
                Act::Seal(capture, manifest) => {
                    line["capture"] = serde_json::json!(capture);
                    line["manifest"] = serde_json::json!(manifest);
                }
                Act::Document(act, document) => line[act.name()] = serde_json::json!(document.subject),
            }
            context.out.json(&line)?;
        }
        return Ok(Status::Good);
    }
    let mut seen = BTreeSet::new();
    let sealed = entries.iter().filter_map(|proved| proved.entry.sealed());
    for (capture, _) in sealed.filter(|(capture, _)| seen.insert(*capture)) {
        context.out.print(&format!("{capture}\n"))?;
    }
    context.out.flush()?;
    context.prose(&text::unbundled(&unbundled))?;
    Ok(Status::Good)
}
