//! `witnessmark report`.

use std::io::Write as _;
use std::path::Path;

use super::args::ReportArgs;
use super::output::{FOR_ALL, Output};
use super::progress::Progress;
use super::qualify::results_named;
use super::verify::is_file;
use super::{CliError, Context, Status, diff};
use crate::bundle::Bundle;
use crate::catalog::Catalog;
use crate::digest::Sha256;
use crate::qualify::{Answer, Recorded, derive_again, recorded};
use crate::refusal::Refusal;
use crate::report::html;
use crate::stats::stats;
use crate::store::{Fault, Store};
use crate::verify::{Depth, Options, Verified, verify};

/// A page, the word that it comes to, and the refusals that it shows instead.
struct Drawn {
    page: String,
    verdict: String,
    refusals: Vec<Refusal>,
}

impl Drawn {
    fn refused(what: &str, refusals: Vec<Refusal>) -> Self {
        Self { page: html::refused(what, &refusals), verdict: "REFUSED".to_owned(), refusals }
    }
}

pub(super) fn run(context: &mut Context<'_>, args: &ReportArgs) -> Result<Status, CliError> {
    // Begun before the work: a name that is taken is said at once.
    let mut output = Output::create(&args.output, FOR_ALL)?;
    let drawn = match args.what.as_slice() {
        [file] if is_file(context, file) => bundle(context, file)?,
        what => of_store(context, what)?,
    };
    let failed = |error| CliError::Failed(format!("cannot write {}: {error}", args.output.display()));
    output.write_all(drawn.page.as_bytes()).map_err(failed)?;
    output.finish()?;
    let file = args.output.display().to_string();
    if context.json {
        let mut line = serde_json::json!({
            "file": file, "sha256": Sha256::of(drawn.page.as_bytes()), "verdict": drawn.verdict,
        });
        if !drawn.refusals.is_empty() {
            line["refusals"] = serde_json::json!(drawn.refusals);
        }
        context.out.json(&line)?;
    } else {
        if !drawn.refusals.is_empty() {
            context.refused("", &drawn.refusals)?;
        }
        context.out.print(&format!("{}  {file}\n", drawn.verdict))?;
    }
    Ok(if drawn.refusals.is_empty() { Status::Good } else { Status::Refused })
}

fn of_store(context: &Context<'_>, what: &[String]) -> Result<Drawn, CliError> {
    let store = Store::open(&context.store)?;
    let catalog = Catalog::load(&store)?;
    match what {
        _ if !catalog.log.refusals.is_empty() => Ok(Drawn::refused(&what.join(" "), catalog.log.refusals.clone())),
        [name] => result(context, &catalog, name),
        [a, b] => captures(context, &catalog, [a, b]),
        _ => Err(CliError::Usage("a page is of one result, or of two captures".to_owned())),
    }
}

/// The page of the one result in a bundle file.
fn bundle(context: &Context<'_>, file: &str) -> Result<Drawn, CliError> {
    let bundle = match Bundle::open(Path::new(file))? {
        Ok(bundle) if bundle.refusals.is_empty() => bundle,
        Ok(bundle) => return Ok(Drawn::refused(file, bundle.refusals)),
        Err(refusal) => return Ok(Drawn::refused(file, vec![refusal])),
    };
    let catalog = bundle.catalog();
    match recorded(&catalog, "") {
        Ok(found) if found.is_empty() => Err(CliError::Usage(format!("{file} has no result; a page is of one"))),
        Ok(found) => derived(context, &catalog, file, &found),
        Err(Fault::Refused(refusal)) => Ok(Drawn::refused(file, vec![refusal])),
        Err(Fault::Error(error)) => Err(error.into()),
    }
}

/// The page of a result of the store.
fn result(context: &Context<'_>, catalog: &Catalog<'_>, name: &str) -> Result<Drawn, CliError> {
    let recorded: Vec<Recorded> = match results_named(catalog, name)? {
        Ok(recorded) => recorded,
        Err(refusal) => return Ok(Drawn::refused(name, vec![refusal])),
    };
    if recorded.is_empty() {
        let resolved = catalog.resolve(name, false)?;
        let text = format!("{name} is capture {}; a page is of one result, or of two captures", resolved.capture);
        return Err(CliError::Usage(text));
    }
    derived(context, catalog, name, &recorded)
}

/// The page of the one result that a name stands for, which is derived again first.
fn derived(context: &Context<'_>, catalog: &Catalog<'_>, name: &str, recorded: &[Recorded]) -> Result<Drawn, CliError> {
    let [recorded] = recorded else {
        let ids: Vec<String> = recorded.iter().map(|found| found.document.subject.to_string()).collect();
        return Err(CliError::Usage(format!("{name:?} could mean the results {}", ids.join(", "))));
    };
    let progress = Progress::start(context, "deriving again");
    let answer = derive_again(catalog, recorded, &context.meter);
    drop(progress);
    Ok(match answer? {
        Answer::Refused(findings) => Drawn::refused(&recorded.document.subject.to_string(), findings.refusals),
        Answer::Derived(derived) => Drawn {
            page: html::result(&derived),
            verdict: derived.result.verdict.name().to_owned(),
            refusals: Vec::new(),
        },
    })
}

/// The page of two captures, which are verified in full first.
fn captures(context: &Context<'_>, catalog: &Catalog<'_>, names: [&String; 2]) -> Result<Drawn, CliError> {
    let progress = Progress::start(context, "comparing");
    let mut sides: Vec<Verified> = Vec::new();
    let mut refusals = Vec::new();
    for name in names {
        let resolved = catalog.resolve(name, false)?;
        let options = Options { depth: Depth::Full, model: None, spec: None };
        let outcome = verify(catalog, &resolved, options, &context.meter)?;
        let of = |refusal: Refusal| Refusal { subject: refusal.subject.of_run(name), ..refusal };
        refusals.extend(outcome.findings.refusals.into_iter().map(of));
        sides.extend(outcome.verified);
    }
    let what = names.map(String::as_str).join(" ");
    let [a, b] = sides.as_slice() else { return Ok(Drawn::refused(&what, refusals)) };
    let store = catalog.store();
    let found = diff::compare(store, a, b, crate::diff::Parts::ALL)
        .and_then(|found| Ok((found, stats(store, a, b, &context.meter)?)));
    drop(progress);
    let (found, stats) = match found {
        Ok(found) => found,
        Err(Fault::Refused(refusal)) => return Ok(Drawn::refused(&what, vec![refusal])),
        Err(Fault::Error(_)) if context.meter.is_stopped() => return Err(CliError::Interrupted),
        Err(Fault::Error(error)) => return Err(error.into()),
    };
    let verdict = if found.is_identical(false) { "IDENTICAL" } else { "DIFFERENT" };
    Ok(Drawn { page: html::diff(&found, &stats, a, b), verdict: verdict.to_owned(), refusals })
}
