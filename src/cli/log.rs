//! `witnessmark log`.

use super::args::{LogArgs, LogCommand};
use super::{CliError, Context, Status};
use crate::catalog::Catalog;
use crate::refusal::Findings;
use crate::report::text;
use crate::store::Store;

pub(super) fn run(context: &mut Context<'_>, args: &LogArgs) -> Result<Status, CliError> {
    match args.command {
        LogCommand::Show => show(context),
    }
}

fn show(context: &mut Context<'_>) -> Result<Status, CliError> {
    let store = Store::open(&context.store)?;
    let catalog = Catalog::load(&store)?;
    if context.json {
        for entry in &catalog.log.entries {
            context.out.json(entry)?;
        }
    } else {
        let names = |capture: &crate::id::CaptureId| catalog.names_of(*capture).join(", ");
        context.out.print(&text::log(&catalog.log, store.origin(), &names))?;
    }
    let findings = Findings::from(catalog.log.refusals.clone()).sorted();
    if findings.refusals.is_empty() {
        return Ok(Status::Good);
    }
    context.out.say(&text::store_findings(&findings))?;
    Ok(Status::Refused)
}
