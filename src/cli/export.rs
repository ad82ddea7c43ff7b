//! `witnessmark export`.

use std::sync::Arc;

use super::args::ExportArgs;
use super::progress::Progress;
use super::{CliError, Context, Status};
use crate::catalog::Catalog;
use crate::export::export;
use crate::report::text;
use crate::store::Store;
use crate::verify::{Depth, Options, verify};

pub(super) fn run(context: &mut Context<'_>, args: &ExportArgs) -> Result<Status, CliError> {
    let store = Store::open(&context.store)?;
    let catalog = Catalog::load(&store)?;
    let resolved = catalog.resolve(&args.what, false)?;
    let progress = Progress::start(context, "exporting");
    let meter = Arc::clone(&context.meter);
    let outcome = verify(&catalog, &resolved, Options { depth: Depth::Full, model: None, spec: None }, &meter)?;
    let Some(verified) = &outcome.verified else {
        drop(progress);
        return context.refused(&format!("{}: ", args.what), &outcome.findings.refusals);
    };
    let exported = export(&store, verified, &args.output, &meter)?;
    drop(progress);
    if let Err(refusal) = exported {
        return context.refused(&format!("{}: ", args.what), &[refusal]);
    }
    let (dir, rows) = (args.output.display().to_string(), verified.rows().len());
    if context.json {
        let (capture, run_id) = (verified.capture(), &verified.run().run_id);
        context.out.json(&serde_json::json!({ "capture": capture, "run_id": run_id, "dir": dir, "rows": rows }))?;
    } else {
        context.out.print(&format!("{dir}\n"))?;
        let files =
            text::count(u64::try_from(verified.manifest().capture.attachments.len()).unwrap_or(0), "attachment");
        context.prose(&format!("exported {} ({rows} rows, {files})\n", verified.capture()))?;
    }
    Ok(Status::Good)
}
