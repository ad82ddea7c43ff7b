//! `witnessmark diff`.

use super::args::{DiffArgs, Part};
use super::verify::verified;
use super::{CliError, Context, Status};
use crate::canon::scores::Canonical;
use crate::catalog::Catalog;
use crate::diff::{Diff, Parts, ScorePairs, diff};
use crate::fetch::Cursor;
use crate::report::text;
use crate::store::{Fault, Store, io_error};
use crate::verify::{Depth, Verified};

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
    let sides = match verified(context, &catalog, [&args.a, &args.b], Depth::Rows)? {
        Ok(sides) => sides,
        Err(status) => return Ok(status),
    };
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
        Err(Fault::Refused(refusal)) => return context.refused("", &[refusal]),
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
