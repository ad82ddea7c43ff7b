//! `witnessmark gc`.

use std::time::{Duration, SystemTime};

use super::args::GcArgs;
use super::{CliError, Context, Status};
use crate::catalog::Catalog;
use crate::gc::{delete, survey};
use crate::log::Log;
use crate::report::proof as text;
use crate::store::Store;

/// What is younger may belong to work that goes on.
const YOUNG: Duration = Duration::from_secs(3600);

pub(super) fn run(context: &mut Context<'_>, args: &GcArgs) -> Result<Status, CliError> {
    let store = Store::open(&context.store)?;
    // A dry run changes nothing, not even the lock file.
    let lock = args.delete.then(|| Log::lock(&store)).transpose()?;
    let catalog = Catalog::load(&store)?;
    #[expect(clippy::disallowed_methods, reason = "the cli room reads the clock")]
    let now = SystemTime::now();
    // With --now also what was written in this very second.
    let before = if args.now { now + YOUNG } else { now.checked_sub(YOUNG).unwrap_or(SystemTime::UNIX_EPOCH) };
    let garbage = match survey(&catalog, before)? {
        Ok(garbage) => garbage,
        Err(refusals) => {
            return context.refused("nothing is deleted from a store that cannot be read whole: ", &refusals);
        }
    };
    if let Some(lock) = &lock {
        delete(&store, &garbage, lock)?;
    }
    if context.json {
        context.out.json(&serde_json::json!({
            "orphans": garbage.orphans, "leftovers": garbage.leftovers, "spared": garbage.spared, "strange": garbage.strange,
            "bytes": garbage.bytes(), "deleted": lock.is_some(),
        }))?;
    } else {
        context.out.print(&text::garbage(&garbage, lock.is_some()))?;
    }
    Ok(Status::Good)
}
