//! Specs on the command line.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::{CliError, Context};
use crate::refusal::{Refusal, Rule, Subject};
use crate::report::text;
use crate::spec::{MAX_SPEC, Spec};

/// The spec in a file, if one is given; none, with the refusal told, where the file is not a spec.
#[expect(clippy::option_option, reason = "no spec asked for is not the same as a spec refused")]
pub(super) fn load(context: &mut Context<'_>, path: Option<&Path>) -> Result<Option<Option<Spec>>, CliError> {
    let Some(path) = path else { return Ok(Some(None)) };
    let shown = path.display().to_string();
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MAX_SPEC).read_to_string(&mut text));
    read.map_err(|error| CliError::Failed(format!("cannot read {shown}: {error}")))?;
    match Spec::parse(&text) {
        Ok(spec) => Ok(Some(Some(spec))),
        Err(error) => {
            let refusal = Refusal::new(Rule::SchemaInvalid, Subject::File(shown), "a spec", error.to_string());
            if context.json {
                context.out.json(&serde_json::json!({ "refusals": [refusal] }))?;
            } else {
                context.out.say(&text::refusals(&[refusal], ""))?;
            }
            Ok(None)
        }
    }
}
