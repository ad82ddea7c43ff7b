//! `witnessmark diff`.

use std::sync::Arc;

use super::args::{DiffArgs, Part};
use super::{CliError, Context, Status};
use crate::canon::scores::Canonical;
use crate::catalog::Catalog;
use crate::diff::{Diff, Parts, ScorePairs, diff};
use crate::fetch::Cursor;
use crate::refusal::Refusal;
use crate::report::text;
use crate::store::{Fault, Store, io_error};
use crate::verify::{Depth, Options, Verified, verify};

struct Pairs<'a> {
    a: Cursor<'a>,
    b: Cursor<'a>,
}

impl ScorePairs for Pairs<'_> {
    type Error = Fault;
    fn pair(&mut self, a: usize, b: usize) -> Result<(&Canonical, &Canonical), Fault> {
        Ok((self.a.row(a)?, self.b.row(b)?))
    }
}

pub(super) fn run(context: &mut Context<'_>, args: &DiffArgs) -> Result<Status, CliError> {
    let store = Store::open(&context.store)?;
    let catalog = Catalog::load(&store)?;
    let a = catalog.resolve(&args.a, false)?;
    let b = catalog.resolve(&args.b, false)?;
    if let Some(refusal) = catalog.log.refusals.first() {
        return refused(context, "store: ", std::slice::from_ref(refusal));
    }
    let options = Options { depth: Depth::Rows, model: None, spec: None };
    let mut sides: Vec<Verified> = Vec::new();
    for (resolved, name) in [(&a, &args.a), (&b, &args.b)] {
        let outcome = verify(&catalog, resolved, options, &Arc::clone(&context.meter))?;
        match outcome.verified {
            Some(verified) => sides.push(verified),
            None => return refused(context, &format!("{name}: "), &outcome.findings.refusals),
        }
    }
    let [a, b] = sides.as_slice() else { return Err(CliError::Failed("two captures are compared".to_owned())) };
    let parts = match args.only {
        None => Parts::ALL,
        Some(only) => {
            Parts { bindings: only == Part::Bindings, rows: only == Part::Rows, scores: only == Part::Scores }
        }
    };
    let found = match compare(&store, a, b, parts) {
        Ok(found) => found,
        Err(Fault::Error(error)) => return Err(error.into()),
        Err(Fault::Refused(refusal)) => return refused(context, "", &[refusal]),
    };
    if context.json {
        context.out.json(&found)?;
    } else {
        context.out.print(&text::diff(&found, args.strict))?;
    }
    Ok(if found.is_identical(args.strict) { Status::Good } else { Status::Negative })
}

/// What two captures have apart, with their scores from the store.
pub(super) fn compare(store: &Store, a: &Verified, b: &Verified, parts: Parts) -> Result<Diff, Fault> {
    let cursor = |side| Cursor::new(store, side).map_err(|error| Fault::from(io_error("decompress", "scores")(error)));
    let mut pairs = Pairs { a: cursor(a)?, b: cursor(b)? };
    diff(a, b, parts, &mut pairs)
}

fn refused(context: &mut Context<'_>, of: &str, refusals: &[Refusal]) -> Result<Status, CliError> {
    if context.json {
        context.out.json(&serde_json::json!({ "refusals": refusals }))?;
    } else {
        context.out.print(&text::refusals(refusals, of))?;
    }
    Ok(Status::Refused)
}
