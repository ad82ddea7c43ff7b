//! `witnessmark drill`.

use std::io::{self, IsTerminal};
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};

use super::args::DrillArgs;
use super::{CliError, Context, Status};
use crate::catalog::Catalog;
use crate::drill::{self, Known, Options, Verdict, drill};
use crate::report;
use crate::store::Store;
use crate::verify::{self, Depth, verify};

pub(super) fn run(context: &mut Context<'_>, args: &DrillArgs) -> Result<Status, CliError> {
    let known = drill::known();
    if args.list {
        return list(context, &known);
    }
    if let Some(name) = args.only.iter().find(|name| !known.iter().any(|known| known.name == **name)) {
        return Err(CliError::Usage(format!("no corruption {name:?}; witnessmark drill --list names them")));
    }
    let what = args.what.as_deref().unwrap_or_default();
    let store = Store::open(&context.store)?;
    let catalog = Catalog::load(&store)?;
    let resolved = catalog.resolve(what, false)?;
    if let Some(refusal) = catalog.log.refusals.first() {
        return context.refused("store: ", std::slice::from_ref(refusal));
    }
    let count = if args.only.is_empty() { known.len() } else { args.only.len() };
    let bar = bar(context, count);
    bar.set_message("verifying");
    let meter = Arc::clone(&context.meter);
    let outcome = verify(&catalog, &resolved, verify::Options { depth: Depth::Full, model: None, spec: None }, &meter)?;
    let Some(verified) = &outcome.verified else {
        bar.finish_and_clear();
        return context.refused(&format!("{what}: "), &outcome.findings.refusals);
    };
    let options = Options { only: &args.only, seed: args.seed };
    let mut begun = 0;
    let held = drill(&catalog, verified, options, &meter, &mut |known| {
        bar.set_message(known.name);
        bar.set_position(begun);
        begun += 1;
    });
    bar.finish_and_clear();
    let held = held?;
    if context.json {
        for trial in &held.trials {
            context.out.json(trial)?;
        }
        let number = |verdict| held.count(verdict);
        context.out.json(&serde_json::json!({
            "capture": held.capture,
            "run_id": held.run_id,
            "seed": held.seed,
            "passed": held.passed(),
            "refused": number(Verdict::Refused),
            "another_id": number(Verdict::AnotherId),
            "undetectable_here": number(Verdict::UndetectableHere),
            "not_applicable": number(Verdict::NotApplicable),
            "other_rule": number(Verdict::OtherRule),
            "survived": number(Verdict::Survived),
        }))?;
    } else {
        context.out.print(&report::drill::drill(&held))?;
    }
    Ok(if held.passed() { Status::Good } else { Status::Negative })
}

fn list(context: &mut Context<'_>, known: &[Known]) -> Result<Status, CliError> {
    if context.json {
        known.iter().try_for_each(|known| context.out.json(known))?;
    } else {
        context.out.print(&report::drill::known(known))?;
    }
    Ok(Status::Good)
}

fn bar(context: &Context<'_>, count: usize) -> ProgressBar {
    if context.quiet || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(u64::try_from(count).unwrap_or(0));
    if let Ok(style) = ProgressStyle::with_template("drilling {bar:30} {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    bar
}
