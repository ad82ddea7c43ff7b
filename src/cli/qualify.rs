//! `witnessmark qualify`, and `verify` of a result.

use std::collections::BTreeSet;

use super::args::QualifyArgs;
use super::progress::Progress;
use super::seal::now;
use super::{CliError, Context, Status, spec};
use crate::catalog::{Catalog, MIN_PREFIX, Resolved};
use crate::id::CaptureId;
use crate::log::Log;
use crate::manifest::{Document, DocumentAct, TOOL};
use crate::qualify::result::Verdict;
use crate::qualify::{Answer, Derivation, Recorded, derive_again, find, qualify, recorded};
use crate::refusal::Refusal;
use crate::report::qualify as text;
use crate::store::{Fault, Store};

pub(super) fn run(context: &mut Context<'_>, args: &QualifyArgs) -> Result<Status, CliError> {
    let store = Store::open(&context.store)?;
    let catalog = Catalog::load(&store)?;
    if !catalog.log.refusals.is_empty() {
        return context.refused("store: ", &catalog.log.refusals);
    }
    let Some((spec, spec_bytes)) = spec::find(context, &catalog, &args.spec)? else { return Ok(Status::Refused) };
    let placed = find(&catalog, &spec);
    let subjects = if args.captures.is_empty() {
        placed.clone()
    } else {
        args.captures.iter().map(|name| catalog.resolve(name, false)).collect::<Result<Vec<_>, _>>()?
    };
    let left_out = left_out(&catalog, placed, &subjects);
    let progress = Progress::start(context, "qualifying");
    let answer = qualify(&catalog, &spec, &subjects, &context.meter);
    drop(progress);
    let derived = match answer? {
        Answer::Refused(findings) => return context.refused("", &findings.refusals),
        Answer::Derived(derived) => derived,
    };
    // First what may fail: nothing is logged of a command that fails.
    if let Some(file) = &args.output {
        context.document(&derived.bytes, Some(file))?;
    }
    let mut entry = None;
    if !args.dry_run {
        let spec_act = (DocumentAct::Spec, Document::of(&spec_bytes));
        // A spec that came with a bundle is known: declared here again, it would stand behind the captures.
        let known = catalog.documents().any(|act| act == spec_act);
        let spec = (!known).then_some((DocumentAct::Spec, &spec_bytes));
        for (act, bytes) in spec.into_iter().chain([(DocumentAct::Qualify, &derived.bytes)]) {
            match Log::declare(&store, act, bytes, now(), TOOL) {
                Ok((_, place, _)) => entry = Some(place),
                Err(Fault::Refused(refusal)) => return context.refused("store: ", &[refusal]),
                Err(Fault::Error(error)) => return Err(error.into()),
            }
        }
    }
    show(context, &derived, entry)?;
    for name in left_out {
        context
            .prose(&format!("{name} has a place in the spec and was not named: this result says nothing of it\n"))?;
    }
    Ok(status(derived.result.verdict))
}

/// Captures with a place in the spec that were not named.
fn left_out(catalog: &Catalog<'_>, placed: Vec<Resolved>, subjects: &[Resolved]) -> Vec<String> {
    let named = |capture: &CaptureId| subjects.iter().any(|subject| subject.capture == *capture);
    let others = placed.into_iter().map(|resolved| resolved.capture).filter(|capture| !named(capture));
    others
        .map(|capture| catalog.names_of(capture).first().map_or(capture.to_string(), |name| (*name).to_owned()))
        .collect()
}

/// Only what is accepted is good.
fn status(verdict: Verdict) -> Status {
    if verdict == Verdict::Accepted { Status::Good } else { Status::Negative }
}

fn show(context: &mut Context<'_>, derived: &Derivation, entry: Option<usize>) -> Result<(), CliError> {
    if context.json {
        return context.out.json(&serde_json::json!({
            "result_sha256": derived.sha256(), "qualification": derived.result.qualification, "verdict": derived.result.verdict,
            "entry": entry, "result": derived.result, "notes": derived.findings.notes,
        }));
    }
    context.out.print(&text::result(derived))
}

/// Derives a result again that the store holds. Good where the same follows, whatever its verdict.
pub(super) fn verify(
    context: &mut Context<'_>,
    catalog: &Catalog<'_>,
    recorded: &Recorded,
    require: Option<Verdict>,
) -> Result<Status, CliError> {
    let progress = Progress::start(context, "deriving again");
    let answer = derive_again(catalog, recorded, &context.meter);
    drop(progress);
    let sha = recorded.document.subject;
    let derived = match answer? {
        Answer::Refused(findings) => return context.refused("", &findings.refusals),
        Answer::Derived(derived) => derived,
    };
    let met = require.is_none_or(|wanted| wanted == derived.result.verdict);
    if context.json {
        context.out.json(&serde_json::json!({
            "result_sha256": sha, "qualification": derived.result.qualification, "verdict": derived.result.verdict,
            "verified": true, "required": require, "met": met,
        }))?;
    } else {
        context.out.print(&text::derived_again(&derived, require))?;
    }
    Ok(if met { Status::Good } else { Status::Negative })
}

/// The results that a whole id, or a prefix of eight digits or more, of a result or a qualification names; empty where it names none.
pub(super) fn results_named(catalog: &Catalog<'_>, name: &str) -> Result<Result<Vec<Recorded>, Refusal>, CliError> {
    let hex = name.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
    if !hex || name.len() < MIN_PREFIX {
        return Ok(Ok(Vec::new()));
    }
    let found = match recorded(catalog, name) {
        Ok(found) => found,
        Err(Fault::Refused(refusal)) => return Ok(Err(refusal)),
        Err(Fault::Error(error)) => return Err(error.into()),
    };
    let qualifications: BTreeSet<_> = found.iter().map(|found| found.result.qualification).collect();
    let mut meanings: Vec<String> = found.iter().map(|found| format!("result {}", found.document.subject)).collect();
    meanings.extend(catalog.resolve(name, false).ok().map(|resolved| format!("capture {}", resolved.capture)));
    if !found.is_empty() && (qualifications.len() > 1 || meanings.len() > found.len()) {
        return Err(CliError::Usage(format!("{name:?} could mean: {}", meanings.join(", "))));
    }
    Ok(Ok(found))
}
