//! `witnessmark verify`.

use std::sync::Arc;

use serde::Serialize;

use super::args::VerifyArgs;
use super::progress::Progress;
use super::{CliError, Context, Status, spec};
use crate::catalog::{Catalog, Resolved};
use crate::digest::Sha256;
use crate::id::{CaptureId, ObjectId};
use crate::refusal::{Findings, Note, Refusal};
use crate::report::text;
use crate::store::Store;
use crate::verify::{Checked, Depth, Options, Outcome, verify};

#[derive(Serialize)]
struct Line<'a> {
    capture: CaptureId,
    run_id: Option<&'a str>,
    verified: bool,
    depth: Depth,
    checked: Checked,
    manifests: &'a [ObjectId],
    row_root: Option<Sha256>,
    score_root: Option<Sha256>,
    refusals: &'a [Refusal],
    notes: &'a [Note],
}

#[derive(Serialize)]
struct StoreLine<'a> {
    store: String,
    refusals: &'a [Refusal],
}

pub(super) fn run(context: &mut Context<'_>, args: &VerifyArgs) -> Result<Status, CliError> {
    let Some(spec) = spec::load(context, args.spec.as_deref())? else { return Ok(Status::Refused) };
    let store = Store::open(&context.store)?;
    let catalog = Catalog::load(&store)?;
    let mut status = store_status(context, &catalog)?;
    let mut subjects = Vec::new();
    let mut unknown = None;
    if args.all {
        subjects.extend(
            catalog
                .captures()
                .into_iter()
                .map(|capture| Resolved { capture, manifests: catalog.manifests_of(capture) }),
        );
        // Where the log is broken, that is the fault: it is not said again that nothing came of it.
        if subjects.is_empty() && status == Status::Good {
            status = nothing(context)?;
        }
    }
    for name in &args.what {
        match catalog.resolve(name, args.exact) {
            Ok(resolved) => subjects.push(resolved),
            Err(error @ crate::catalog::NameError::Unknown { .. }) => {
                unknown = Some(Status::Undecided);
                context.out.say(&format!("error: {error}\n"))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let depth = if args.quick { Depth::Quick } else { Depth::Full };
    let options = Options { depth, model: args.model.as_deref(), spec: spec.as_ref() };
    let progress = Progress::start(context, "verifying");
    let meter = Arc::clone(&context.meter);
    let count = subjects.len();
    for resolved in subjects {
        let outcome = verify(&catalog, &resolved, options, &meter)?;
        status = status.max(report(context, &outcome, count)?);
    }
    drop(progress);
    Ok(unknown.map_or(status, |unknown| status.max(unknown)))
}

/// The log and the refs: faults of the store, whatever is asked of it.
fn store_status(context: &mut Context<'_>, catalog: &Catalog<'_>) -> Result<Status, CliError> {
    let refusals = [catalog.log.refusals.clone(), catalog.refusals.clone()].concat();
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

fn nothing(context: &mut Context<'_>) -> Result<Status, CliError> {
    let mut findings = Findings::default();
    let subject = crate::refusal::Subject::File("log".to_owned());
    findings.refuse(crate::refusal::Rule::NothingToVerify, subject, "sealed captures", "none");
    context.out.print(&text::store_findings(&findings))?;
    Ok(Status::Refused)
}

fn report(context: &mut Context<'_>, outcome: &Outcome, count: usize) -> Result<Status, CliError> {
    let document = outcome.verified.as_ref().map(|verified| &verified.manifest().capture);
    if context.json {
        context.out.json(&Line {
            capture: outcome.capture,
            run_id: outcome.run_id.as_deref(),
            verified: outcome.verified.is_some(),
            depth: outcome.depth,
            checked: outcome.checked,
            manifests: &outcome.manifests,
            row_root: document.map(|document| document.row_root),
            score_root: document.and_then(|document| document.score_root),
            refusals: &outcome.findings.refusals,
            notes: &outcome.findings.notes,
        })?;
    } else {
        context.out.print(&text::outcome(outcome))?;
        if count > 1 {
            context.out.print("\n")?;
        }
        context.out.flush()?;
    }
    Ok(if outcome.verified.is_some() { Status::Good } else { Status::Refused })
}
