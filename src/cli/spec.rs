//! Specs on the command line.

use std::path::Path;

use super::{CliError, Context, input};
use crate::refusal::{Refusal, Rule, Subject};
use crate::report::text;
use crate::spec::{MAX_SPEC, Spec};

/// The spec in a file, if one is given; none, with the refusal told, where the file is not a spec.
#[expect(clippy::option_option, reason = "no spec asked for is not the same as a spec refused")]
pub(super) fn load(context: &mut Context<'_>, path: Option<&Path>) -> Result<Option<Option<Spec>>, CliError> {
    let Some(path) = path else { return Ok(Some(None)) };
    let read = input::read(path, MAX_SPEC)?;
    let parsed = read.and_then(|bytes| {
        let refuse = |found: String| {
            Refusal::new(Rule::SchemaInvalid, Subject::File(path.display().to_string()), "a spec", found)
        };
        let text = String::from_utf8(bytes).map_err(|error| refuse(error.to_string()))?;
        Spec::parse(&text).map_err(|error| refuse(error.to_string()))
    });
    match parsed {
        Ok(spec) => Ok(Some(Some(spec))),
        Err(refusal) => {
            if context.json {
                context.out.json(&serde_json::json!({ "of": path.display().to_string(), "refusals": [refusal] }))?;
            } else {
                context.out.say(&text::refusals(&[refusal], ""))?;
            }
            Ok(None)
        }
    }
}
