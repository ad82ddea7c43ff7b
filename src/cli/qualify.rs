//! `witnessmark qualify`, and `verify` of a result.

use super::args::QualifyArgs;
use super::progress::Progress;
use super::seal::now;
use super::{CliError, Context, Status, spec, tool};
use crate::catalog::Catalog;
use crate::log::Log;
use crate::manifest::DocumentAct;
use crate::qualify::result::Verdict;
use crate::qualify::{Answer, Derivation, Recorded, derive_again, find, qualify};
use crate::report::qualify as text;
use crate::store::{Fault, Store};

pub(super) fn run(context: &mut Context<'_>, args: &QualifyArgs) -> Result<Status, CliError> {
    let store = Store::open(&context.store)?;
    let catalog = Catalog::load(&store)?;
    if !catalog.log.refusals.is_empty() {
        return context.refused("store: ", &catalog.log.refusals);
    }
    let Some((spec, spec_bytes)) = spec::find(context, &catalog, &args.spec)? else { return Ok(Status::Refused) };
    let subjects = if args.captures.is_empty() {
        find(&catalog, &spec)
    } else {
        args.captures.iter().map(|name| catalog.resolve(name, false)).collect::<Result<Vec<_>, _>>()?
    };
    let progress = Progress::start(context, "qualifying");
    let answer = qualify(&catalog, &spec, &subjects, &context.meter);
    drop(progress);
    let derived = match answer? {
        Answer::Refused(findings) => return context.refused("", &findings.refusals),
        Answer::Derived(derived) => derived,
    };
    let mut entry = None;
    if !args.dry_run {
        let acts = [(DocumentAct::Spec, &spec_bytes), (DocumentAct::Qualify, &derived.bytes)];
        for (act, bytes) in acts {
            match Log::declare(&store, act, bytes, now(), &tool()) {
                Ok((_, place, _)) => entry = Some(place),
                Err(Fault::Refused(refusal)) => return context.refused("store: ", &[refusal]),
                Err(Fault::Error(error)) => return Err(error.into()),
            }
        }
    }
    if let Some(file) = &args.output {
        context.document(&derived.bytes, Some(file))?;
    }
    show(context, &derived, entry)?;
    Ok(status(derived.result.verdict))
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
        Answer::Refused(findings) => return context.refused(&format!("result {sha}: "), &findings.refusals),
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
