//! `witnessmark demo`.

use super::{CliError, Context, Status};

pub(super) fn run(_context: &mut Context<'_>) -> Result<Status, CliError> {
    Ok(Status::Good)
}
