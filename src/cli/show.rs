//! `witnessmark show`.

use serde_json::value::RawValue;

use super::args::ShowArgs;
use super::{CliError, Context, Status};
use crate::catalog::Catalog;
use crate::refusal::{Rule, Subject};
use crate::report::text;
use crate::store::Store;

pub(super) fn run(context: &mut Context<'_>, args: &ShowArgs) -> Result<Status, CliError> {
    let store = Store::open(&context.store)?;
    let catalog = Catalog::load_one(&store, &args.what)?;
    let resolved = catalog.resolve(&args.what, false)?;
    let manifest = catalog.manifest(resolved.capture);
    let run = manifest.as_ref().and_then(|manifest| catalog.run(manifest));
    let (Some(manifest), Some(run)) = (manifest, run) else {
        let mut findings = crate::refusal::Findings::default();
        let expected = "a manifest and a run.json with the digests that the id binds";
        findings.refuse(Rule::RootMismatch, Subject::Capture, expected, "none; verify says more");
        return context.refused(&format!("{}: ", args.what), &findings.refusals);
    };
    if context.json {
        // Numbers of run.json stay as they were written.
        let raw = RawValue::from_string(run.json().to_text()).map_err(|error| CliError::Failed(error.to_string()))?;
        let value =
            serde_json::json!({ "capture": resolved.capture, "manifests": resolved.manifests, "manifest": manifest });
        let text = value.to_string();
        let head = text.strip_suffix('}').unwrap_or(&text);
        context.out.print(&format!("{head},\"run\":{raw}}}\n"))?;
    } else {
        context.out.print(&text::show(&manifest, &resolved.manifests, &run, &resolved.capture))?;
    }
    Ok(Status::Good)
}
