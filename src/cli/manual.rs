//! `witnessmark completions` and `witnessmark man`, made from the command line's own description.

use clap::CommandFactory;

use super::args::{Args, CompletionsArgs, ManArgs};
use super::{CliError, Context, Status};

pub(super) fn completions(context: &mut Context<'_>, args: &CompletionsArgs) -> Result<Status, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), env!("CARGO_PKG_NAME"), &mut script);
    context.out.print(&String::from_utf8_lossy(&script))?;
    Ok(Status::Good)
}

pub(super) fn man(args: &ManArgs) -> Result<Status, CliError> {
    let write = || {
        std::fs::create_dir_all(&args.dir)?;
        clap_mangen::generate_to(Args::command(), &args.dir)
    };
    write()
        .map_err(|error| CliError::Failed(format!("cannot write man pages into {}: {error}", args.dir.display())))?;
    Ok(Status::Good)
}
