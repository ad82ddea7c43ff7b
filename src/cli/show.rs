//! `witnessmark show`.

use serde_json::value::RawValue;

use super::args::ShowArgs;
use super::out::quoted;
use super::{CliError, Context, Status};
use crate::catalog::{Catalog, NameError, read_document};
use crate::digest::Sha256;
use crate::manifest::DocumentAct;
use crate::refusal::{Rule, Subject};
use crate::report::text;
use crate::store::{Fault, Store};

pub(super) fn run(context: &mut Context<'_>, args: &ShowArgs) -> Result<Status, CliError> {
    let store = Store::open(&context.store)?;
    let catalog = Catalog::load(&store)?;
    let resolved = match catalog.resolve(&args.what, false) {
        Err(NameError::Document { act, subject, .. }) => return document(context, &catalog, act, subject),
        resolved => resolved?,
    };
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

/// A spec or a result, as it is.
fn document(
    context: &mut Context<'_>,
    catalog: &Catalog<'_>,
    act: DocumentAct,
    subject: Sha256,
) -> Result<Status, CliError> {
    let mut named = catalog.documents().filter(|(_, document)| document.subject == subject);
    let Some((_, document)) = named.next() else { return Ok(Status::Undecided) };
    let bytes = match read_document(catalog.store(), &document) {
        Ok(bytes) => bytes,
        Err(Fault::Refused(refusal)) => return context.refused("store: ", &[refusal]),
        Err(Fault::Error(error)) => return Err(error.into()),
    };
    if context.json {
        let text = String::from_utf8_lossy(&bytes);
        let value = serde_json::json!({ "act": act, "object": document.object, "sha256": subject, "text": text });
        context.out.json(&value)?;
    } else {
        context.out.print(&quoted(&String::from_utf8_lossy(&bytes)))?;
    }
    Ok(Status::Good)
}
