//! `witnessmark verify`.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::args::VerifyArgs;
use super::progress::Progress;
use super::{CliError, Context, Status, input, output, qualify, spec};
use crate::bundle::{Bundle, MAGIC};
use crate::catalog::{Catalog, NameError, Resolved, read_document};
use crate::digest::Sha256;
use crate::id::{CaptureId, ObjectId};
use crate::manifest::{DocumentAct, MAX_DOCUMENT};
use crate::note::MAX_NOTE;
use crate::qualify::{read_result, recorded};
use crate::refusal::{Findings, Note, Refusal, Subject};
use crate::report::{proof as proof_text, text};
use crate::shown::printable;
use crate::spec::Spec;
use crate::store::{Fault, Found, Store, open_regular};
use crate::verify::receipt::Receipt;
use crate::verify::sample::{Sample, Sampled};
use crate::verify::{Checked, Depth, Options, Outcome, Verified, verify, verify_each};

#[derive(Serialize)]
struct Line<'a> {
    capture: CaptureId,
    run_id: Option<&'a str>,
    verified: bool,
    depth: Depth,
    checked: Checked,
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<SampleLine>,
    manifests: &'a [ObjectId],
    /// SHA-256 of the spec that was demanded
    spec: Option<Sha256>,
    row_root: Option<Sha256>,
    score_root: Option<Sha256>,
    refusals: &'a [Refusal],
    notes: &'a [Note],
}

#[derive(Serialize)]
struct SampleLine {
    #[serde(flatten)]
    sampled: Sampled,
    caught_1: f64,
    caught_10: f64,
}

#[derive(Serialize)]
struct StoreLine<'a> {
    store: String,
    refusals: &'a [Refusal],
}

/// Said where nobody kept a checkpoint: the store alone cannot show more.
const NO_CHECKPOINT: &str =
    "no kept checkpoint was given (--checkpoint FILE): the order and the times of the log rest on the sealer\n";

pub(super) fn run(context: &mut Context<'_>, args: &VerifyArgs) -> Result<Status, CliError> {
    let Some(spec) = spec::load(context, args.spec.as_deref())? else { return Ok(Status::Refused) };
    if args.receipt.is_some() && (args.all || args.what.len() != 1) {
        return Err(CliError::Usage(
            "--receipt takes one WHAT; --receipt-dir DIR keeps a receipt a capture".to_owned(),
        ));
    }
    let depth = depth(args)?;
    let (files, names): (Vec<&String>, Vec<&String>) =
        args.what.iter().partition(|what| !args.exact && is_file(context, what));
    let mut status = Status::Good;
    // What is refused beside the captures: the store, a checkpoint, a bundle's frame.
    let mut beside = Status::Good;
    let (mut captures, mut results) = (0, 0);
    if args.all || args.checkpoint.is_some() || !names.is_empty() {
        let store = Store::open(&context.store)?;
        let catalog = Catalog::load(&store)?;
        let mut pass = Pass {
            args,
            spec: spec.as_ref(),
            depth,
            count: names.len() + files.len(),
            fresh: args.fresh,
            beside: Status::Good,
            results: 0,
        };
        status = status.max(pass.store(context, &catalog, &names)?);
        beside = beside.max(pass.beside);
        results += pass.results;
        captures += catalog.captures().len();
    }
    for file in files {
        let mut pass = Pass {
            args,
            spec: spec.as_ref(),
            depth,
            count: args.what.len().max(2),
            // A receipt says nothing of a file that comes from somewhere else.
            fresh: true,
            beside: Status::Good,
            results: 0,
        };
        status = status.max(pass.bundle(context, Path::new(file))?);
        beside = beside.max(pass.beside);
        results += pass.results;
    }
    if args.require.is_some() && results == 0 {
        context.out.say("NOT MET: a verdict was required, and nothing that was verified has one\n")?;
        status = status.max(Status::Negative);
    }
    if beside >= Status::Refused && !context.json {
        context.out.print("NOT VERIFIED: what is refused above is not a capture but what it came in\n")?;
    }
    if args.all && args.checkpoint.is_none() && captures > 0 {
        if context.json { context.prose(NO_CHECKPOINT)? } else { context.out.print(NO_CHECKPOINT)? }
    }
    Ok(status)
}

/// The captures of these names, each verified on the way; the status, with the refusals told, where one of them or the log is refused.
pub(super) fn verified<'n>(
    context: &mut Context<'_>,
    catalog: &Catalog<'_>,
    names: impl IntoIterator<Item = &'n String>,
    depth: Depth,
) -> Result<Result<Vec<Verified>, Status>, CliError> {
    if !catalog.log.refusals.is_empty() {
        return context.refused("store: ", &catalog.log.refusals).map(Err);
    }
    let mut captures = Vec::new();
    for name in names {
        let resolved = catalog.resolve(name, false)?;
        let outcome = verify(catalog, &resolved, Options { depth, model: None, spec: None }, &context.meter)?;
        match outcome.verified {
            Some(capture) => captures.push(capture),
            None => return context.refused(&format!("{name}: "), &outcome.findings.refusals).map(Err),
        }
    }
    Ok(Ok(captures))
}

/// Whether a file of that name is meant, which should be a bundle. A folder is not: captures are often called as the directories they come from. 64
/// digits are an id, whatever files are called, and what does not begin as a bundle does not stand before what the store has of that name.
pub(super) fn is_file(context: &Context<'_>, what: &str) -> bool {
    let there = what.parse::<Sha256>().is_err() && Path::new(what).metadata().is_ok_and(|there| !there.is_dir());
    there && (begins_as_bundle(Path::new(what)) || !is_known(context, what).unwrap_or(false))
}

fn begins_as_bundle(path: &Path) -> bool {
    let Ok(Found::File(mut file, _)) = open_regular(path, true) else { return false };
    let mut start = [0; MAGIC.len()];
    file.read_exact(&mut start).is_ok() && start == *MAGIC
}

/// Whether the store has something of that name, or several things.
fn is_known(context: &Context<'_>, name: &str) -> Result<bool, CliError> {
    let store = Store::open(&context.store)?;
    let catalog = Catalog::load_one(&store, name)?;
    let unknown = matches!(catalog.resolve(name, false), Err(NameError::Unknown { .. }));
    Ok(!unknown || !matches!(qualify::results_named(&catalog, name)?, Ok(results) if results.is_empty()))
}

fn depth(args: &VerifyArgs) -> Result<Depth, CliError> {
    let Some(ppm) = args.sample else { return Ok(if args.quick { Depth::Quick } else { Depth::Full }) };
    let mut random = [0; 8];
    if args.seed.is_none() {
        getrandom::fill(&mut random).map_err(|error| CliError::Failed(error.to_string()))?;
    }
    Ok(Depth::Sample(Sample { ppm, seed: args.seed.unwrap_or(u64::from_le_bytes(random)) }))
}

/// One verify of many subjects.
struct Pass<'a> {
    args: &'a VerifyArgs,
    spec: Option<&'a Spec>,
    depth: Depth,
    count: usize,
    /// Whether everything is looked at, whatever receipts there are
    fresh: bool,
    /// The worst that was said of something else than a capture
    beside: Status,
    /// Results that were derived again
    results: usize,
}

impl Pass<'_> {
    fn store(
        &mut self,
        context: &mut Context<'_>,
        catalog: &Catalog<'_>,
        names: &[&String],
    ) -> Result<Status, CliError> {
        let mut refusals = [catalog.log.refusals.clone(), catalog.refusals.clone()].concat();
        if self.args.all {
            // A broken log is named once: what it implies for its tiles is not asked.
            if catalog.log.refusals.is_empty() {
                refusals.extend(catalog.log.check_tiles(catalog.store())?);
            }
            match catalog.log.check_own_checkpoint(catalog.store()) {
                Ok(_) => {}
                Err(Fault::Refused(refusal)) => refusals.push(refusal),
                Err(Fault::Error(error)) => return Err(error.into()),
            }
            // Where a folder is none, that is the fault: it is not said again of what lies below.
            let unreal = catalog.store().unreal()?;
            refusals.retain(|refusal| !unreal.iter().any(|above| is_below(refusal, above)));
            refusals.extend(unreal);
        }
        let mut status = store_status(context, refusals)?;
        status = status.max(self.checkpoint(context, catalog)?);
        self.beside = status;
        let mut subjects = Vec::new();
        let mut unknown = None;
        if self.args.all {
            subjects.extend(catalog.subjects());
            // Where the log is broken, that is the fault: it is not said again that nothing came of it.
            if subjects.is_empty() && status == Status::Good {
                status = nothing(context)?;
            }
        }
        let mut results = Vec::new();
        for name in names {
            match qualify::results_named(catalog, name)? {
                Ok(recorded) if recorded.is_empty() => {}
                Ok(recorded) => {
                    results.extend(recorded);
                    continue;
                }
                Err(refusal) => {
                    status = status.max(context.refused("store: ", &[refusal])?);
                    continue;
                }
            }
            match catalog.resolve(name, self.args.exact) {
                Ok(resolved) => subjects.push(resolved),
                Err(error @ NameError::Unknown { .. }) => {
                    unknown = Some(Status::Undecided);
                    not_found(context, name, &error.to_string())?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.count = self.count.max(subjects.len() + results.len());
        status = status.max(self.subjects(context, catalog, &subjects)?);
        if !results.is_empty() {
            self.results_whole()?;
        }
        self.results += results.len();
        for recorded in &results {
            status = status.max(qualify::verify(context, catalog, recorded, self.args.require.map(Into::into))?);
        }
        if self.args.all {
            status = status.max(documents(context, catalog)?);
        }
        Ok(unknown.map_or(status, |unknown| status.max(unknown)))
    }

    /// A bundle file: everything that a store would be asked, but what only a log can show.
    fn bundle(&mut self, context: &mut Context<'_>, path: &Path) -> Result<Status, CliError> {
        let shown = path.display().to_string();
        let bundle = match Bundle::open(path)? {
            Ok(bundle) => bundle,
            Err(refusal) => return context.refused(&format!("{shown}: "), &[refusal]),
        };
        let mut status = Status::Good;
        if !context.json {
            context.out.print(&proof_text::bundle(&bundle, &shown))?;
        }
        if !bundle.refusals.is_empty() {
            status = context.refused(&format!("{shown}: "), &bundle.refusals)?;
            self.beside = status;
        }
        let catalog = bundle.catalog();
        status = status.max(self.subjects(context, &catalog, &catalog.subjects())?);
        if status == Status::Good {
            let recorded = match recorded(&catalog, "") {
                Ok(recorded) => recorded,
                Err(Fault::Refused(refusal)) => return context.refused(&format!("{shown}: "), &[refusal]),
                Err(Fault::Error(error)) => return Err(error.into()),
            };
            for recorded in recorded {
                self.results += 1;
                status = status.max(qualify::verify(context, &catalog, &recorded, self.args.require.map(Into::into))?);
            }
        }
        Ok(status)
    }

    /// A result is derived again from everything, or not at all.
    fn results_whole(&self) -> Result<(), CliError> {
        let args = self.args;
        let less = self.depth != Depth::Full || args.model.is_some() || self.spec.is_some() || args.receipt.is_some();
        if less {
            let message = "a result is derived again from all of its captures and its own spec: --quick, --sample, --model, --spec and \
                           --receipt are for captures";
            return Err(CliError::Usage(message.to_owned()));
        }
        Ok(())
    }

    fn subjects(
        &self,
        context: &mut Context<'_>,
        catalog: &Catalog<'_>,
        subjects: &[Resolved],
    ) -> Result<Status, CliError> {
        let options = Options { depth: self.depth, model: self.args.model.as_deref(), spec: self.spec };
        let progress = Progress::start(context, "verifying");
        let meter = Arc::clone(&context.meter);
        let mut status = Status::Good;
        // Whether a receipt stands for it is said in its turn; here it only saves work.
        let wanted = |resolved: &Resolved| matches!(self.kept(resolved), Ok(None));
        verify_each(catalog, subjects, options, &meter, wanted, |resolved, verify| -> Result<(), CliError> {
            if let Some(receipt) = self.kept(resolved)? {
                return skipped(context, resolved, &receipt);
            }
            let outcome = verify()?;
            let file = self.args.receipt.clone().or_else(|| self.receipt_file(resolved));
            // Of two that found nothing wrong, the one that says more stays.
            let more = (self.depth != Depth::Full && outcome.verified.is_some()).then(|| self.full(resolved));
            if let Some(kept) = more.transpose()?.flatten() {
                context.prose(&format!("{} stays: it is the receipt of an earlier full pass\n", kept.display()))?;
            } else if let Some(file) = file {
                let bytes = Receipt::of(&outcome).encode().map_err(|error| CliError::Failed(error.to_string()))?;
                output::rewrite(&file, &bytes)?;
            }
            status = status.max(report(context, &outcome, self.spec, self.count)?);
            Ok(())
        })?;
        drop(progress);
        Ok(status)
    }

    fn receipt_file(&self, resolved: &Resolved) -> Option<PathBuf> {
        self.args.receipt_dir.as_ref().map(|folder| folder.join(format!("{}.json", resolved.capture)))
    }

    /// The receipt that stands for verifying again.
    fn kept(&self, resolved: &Resolved) -> Result<Option<PathBuf>, CliError> {
        let Some(file) = self.receipt_file(resolved) else { return Ok(None) };
        if let Some(folder) = file.parent() {
            let failed = |error| CliError::Failed(format!("cannot make {}: {error}", folder.display()));
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        // With --model or --spec, or where less than everything is asked, a receipt answers another question.
        let more = self.args.model.is_some() || self.spec.is_some();
        if self.fresh || more || self.depth != Depth::Full { Ok(None) } else { self.full(resolved) }
    }

    /// The receipt of a full pass that the folder has.
    fn full(&self, resolved: &Resolved) -> Result<Option<PathBuf>, CliError> {
        let Some(file) = self.receipt_file(resolved).filter(|file| file.exists()) else { return Ok(None) };
        let receipt = input::read(&file, MAX_DOCUMENT)?.ok().and_then(|bytes| Receipt::parse(&bytes));
        Ok(receipt.filter(|receipt| receipt.covers(resolved.capture, &resolved.manifests)).map(|_| file))
    }

    /// The log against a checkpoint that somebody kept.
    fn checkpoint(&self, context: &mut Context<'_>, catalog: &Catalog<'_>) -> Result<Status, CliError> {
        let Some(file) = &self.args.checkpoint else { return Ok(Status::Good) };
        let key = self.args.verifier_key.as_deref().map(input::verifier_key).transpose()?;
        let shown = file.display().to_string();
        let checked = input::read(file, MAX_NOTE)?
            .and_then(|note| catalog.log.check_checkpoint(catalog.store(), &note, key.as_ref(), &shown));
        let checkpoint = match checked {
            Ok(checkpoint) => checkpoint,
            Err(refusal) => return context.refused("", &[refusal]),
        };
        let signature =
            if key.is_some() { "signed by the key given" } else { "its signature not looked at (--verifier-key KEY)" };
        if context.json {
            context.out.json(&serde_json::json!({
                "checkpoint": shown, "size": checkpoint.head.size, "root": checkpoint.head.root, "signature_checked": key.is_some(),
                "log_size": catalog.log.size().size,
            }))?;
        } else {
            let now = catalog.log.size().size;
            let kept = checkpoint.head.size;
            context.out.print(&format!(
                "the log of {} begins with the {kept} of the kept checkpoint, {signature}\n",
                text::entries(now)
            ))?;
        }
        Ok(Status::Good)
    }
}

/// Whether one refusal says of a path what the other says of that path, or of a folder on it.
fn is_below(refusal: &Refusal, above: &Refusal) -> bool {
    match (&refusal.subject, &above.subject) {
        (Subject::File(path), Subject::File(folder)) => {
            refusal.rule == above.rule && Path::new(path).starts_with(folder)
        }
        _ => false,
    }
}

/// The documents of the log: whether they are there as they were named. Results are not derived again.
fn documents(context: &mut Context<'_>, catalog: &Catalog<'_>) -> Result<Status, CliError> {
    let mut refusals = Vec::new();
    let mut results = std::collections::BTreeSet::new();
    for (act, document) in catalog.documents() {
        match read_document(catalog.store(), &document) {
            Ok(_) if act == DocumentAct::Qualify => match read_result(catalog, &document) {
                Ok(_) => drop(results.insert(document.subject)),
                Err(Fault::Refused(refusal)) => refusals.push(refusal),
                Err(Fault::Error(error)) => return Err(error.into()),
            },
            Ok(_) => {}
            Err(Fault::Refused(refusal)) => refusals.push(refusal),
            Err(Fault::Error(error)) => return Err(error.into()),
        }
    }
    for result in results {
        let line = format!("result {result} is in the log and was not derived again: witnessmark verify {result}\n");
        context.prose(&line)?;
    }
    store_status(context, refusals)
}

fn skipped(context: &mut Context<'_>, resolved: &Resolved, receipt: &Path) -> Result<(), CliError> {
    let shown = receipt.display().to_string();
    if context.json {
        return context
            .out
            .json(&serde_json::json!({ "capture": resolved.capture, "skipped": true, "receipt": shown }));
    }
    context.out.print(&format!(
        "capture {}\nSKIPPED: {shown} is the receipt of an earlier full pass; nothing was looked at now (--fresh looks again)\n\n",
        resolved.capture
    ))
}

/// The log and the refs: faults of the store, whatever is asked of it.
fn store_status(context: &mut Context<'_>, refusals: Vec<Refusal>) -> Result<Status, CliError> {
    let findings = Findings::from(refusals).sorted();
    if findings.refusals.is_empty() {
        return Ok(Status::Good);
    }
    if context.json {
        let store = context.store.display().to_string();
        context.out.json(&StoreLine { store, refusals: &findings.refusals })?;
    } else {
        context.out.print(&text::store_findings(&findings))?;
    }
    Ok(Status::Refused)
}

/// A name that stands for nothing: the other subjects are verified all the same.
fn not_found(context: &mut Context<'_>, name: &str, error: &str) -> Result<(), CliError> {
    let hint = if Path::new(name).join("run.json").exists() {
        format!("; the folder {name} holds a capture that is not sealed: witnessmark seal {name}")
    } else {
        String::new()
    };
    if context.json {
        return context.out.json(&serde_json::json!({ "name": name, "error": format!("{error}{hint}") }));
    }
    context.out.say(&format!("error: {}\n", printable(&format!("{error}{hint}"))))
}

fn nothing(context: &mut Context<'_>) -> Result<Status, CliError> {
    let mut findings = Findings::default();
    let subject = Subject::File("log".to_owned());
    findings.refuse(crate::refusal::Rule::NothingToVerify, subject, "sealed captures", "none");
    store_status(context, findings.refusals)
}

fn report(context: &mut Context<'_>, outcome: &Outcome, spec: Option<&Spec>, count: usize) -> Result<Status, CliError> {
    let document = outcome.verified.as_ref().map(|verified| &verified.manifest().capture);
    if context.json {
        let sample = outcome.sampled.map(|sampled| SampleLine {
            sampled,
            caught_1: sampled.caught(1),
            caught_10: sampled.caught(10),
        });
        context.out.json(&Line {
            capture: outcome.capture,
            run_id: outcome.run_id.as_deref(),
            verified: outcome.verified.is_some(),
            depth: outcome.depth,
            checked: outcome.checked,
            sample,
            manifests: &outcome.manifests,
            spec: spec.and_then(|spec| spec.sha256),
            row_root: document.map(|document| document.row_root),
            score_root: document.and_then(|document| document.score_root),
            refusals: &outcome.findings.refusals,
            notes: &outcome.findings.notes,
        })?;
    } else {
        context.out.print(&text::outcome(outcome, spec))?;
        if count > 1 {
            context.out.print("\n")?;
        }
        context.out.flush()?;
    }
    Ok(if outcome.verified.is_some() { Status::Good } else { Status::Refused })
}
