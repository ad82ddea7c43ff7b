//! `witnessmark stats`.

use super::args::StatsArgs;
use super::progress::Progress;
use super::verify::verified;
use super::{CliError, Context, Status};
use crate::catalog::Catalog;
use crate::report::stats as text;
use crate::stats::stats;
use crate::store::{Fault, Store};
use crate::verify::Depth;

pub(super) fn run(context: &mut Context<'_>, args: &StatsArgs) -> Result<Status, CliError> {
    let store = Store::open(&context.store)?;
    let catalog = Catalog::load(&store)?;
    let progress = Progress::start(context, "comparing");
    let sides = match verified(context, &catalog, [&args.a, &args.b], Depth::Full)? {
        Ok(sides) => sides,
        Err(status) => return Ok(status),
    };
    let [a, b] = sides.as_slice() else { return Err(CliError::Failed("two captures are compared".to_owned())) };
    let found = stats(&store, a, b, &context.meter);
    drop(progress);
    let found = match found {
        Ok(found) => found,
        Err(Fault::Refused(refusal)) => return context.refused("", &[refusal]),
        Err(Fault::Error(_)) if context.meter.is_stopped() => return Err(CliError::Interrupted),
        Err(Fault::Error(error)) => return Err(error.into()),
    };
    if context.json {
        context.out.json(&found)?;
    } else {
        context.out.print(&text::stats(&found))?;
    }
    Ok(Status::Good)
}
