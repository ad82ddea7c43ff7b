//! The command line: the only room that prints, reads the clock and the environment, and knows exit statuses.
//!
//! Each command turns arguments into calls of the library and values into text or JSON. Status 0 to 3 is the worst of all subjects, 64 a wrong
//! command line. Ids and results go to stdout, prose and progress to stderr.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;

use crate::meter::Meter;
use crate::refusal::Refusal;
use crate::shown::printable;
use crate::store::StoreError;

mod args;
mod bundle;
mod calibrate;
mod demo;
mod diff;
mod drill;
mod explain;
mod export;
mod gc;
mod input;
mod log;
mod manual;
mod out;
mod output;
mod progress;
mod proof;
mod qualify;
mod report;
mod seal;
mod show;
mod signals;
mod spec;
mod stats;
mod verify;

use args::{Args, Command};
use out::Out;
use output::Output;

/// How a command ended: the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Status {
    /// Sealed, verified, identical, done
    Good = 0,
    /// A negative answer
    Negative = 1,
    /// A rule was broken
    Refused = 2,
    /// Nothing could be decided
    Undecided = 3,
}

/// Why a command could not go on.
#[derive(Debug, thiserror::Error)]
enum CliError {
    /// The command line is wrong
    #[error("{0}")]
    Usage(String),
    /// The store itself breaks a rule
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// Something could not be read or written
    #[error("{0}")]
    Failed(String),
    /// The reader of our output went away
    #[error("broken pipe")]
    BrokenPipe,
    /// Asked to stop
    #[error("interrupted")]
    Interrupted,
}

const USAGE: u8 = 64;
/// More threads than this help nobody, and each costs memory.
const MAX_THREADS: usize = 256;

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(refusal) => Self::Refused(refusal),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<crate::qualify::QualifyError> for CliError {
    fn from(error: crate::qualify::QualifyError) -> Self {
        use crate::qualify::QualifyError;
        match error {
            QualifyError::Interrupted | QualifyError::Verify(crate::verify::VerifyError::Interrupted) => {
                Self::Interrupted
            }
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<crate::catalog::NameError> for CliError {
    fn from(error: crate::catalog::NameError) -> Self {
        match error {
            crate::catalog::NameError::Unknown { .. } => Self::Failed(error.to_string()),
            _ => Self::Usage(error.to_string()),
        }
    }
}

impl From<crate::verify::VerifyError> for CliError {
    fn from(error: crate::verify::VerifyError) -> Self {
        match error {
            crate::verify::VerifyError::Interrupted => Self::Interrupted,
            crate::verify::VerifyError::Store(error) => error.into(),
        }
    }
}

impl From<crate::export::ExportError> for CliError {
    fn from(error: crate::export::ExportError) -> Self {
        match error {
            crate::export::ExportError::Interrupted => Self::Interrupted,
            crate::export::ExportError::Store(error) => error.into(),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<crate::drill::DrillError> for CliError {
    fn from(error: crate::drill::DrillError) -> Self {
        match error {
            crate::drill::DrillError::Interrupted => Self::Interrupted,
            crate::drill::DrillError::Store(error) => error.into(),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<crate::seal::SealError> for CliError {
    fn from(error: crate::seal::SealError) -> Self {
        match error {
            crate::seal::SealError::Interrupted => Self::Interrupted,
            crate::seal::SealError::Store(error) => error.into(),
            error => Self::Failed(error.to_string()),
        }
    }
}

/// What every command gets.
struct Context<'o> {
    out: &'o mut Out,
    store: PathBuf,
    json: bool,
    quiet: bool,
    meter: Arc<Meter>,
}

impl Context<'_> {
    /// Says what was refused; `of` is what the refusals are about.
    fn refused(&mut self, of: &str, refusals: &[Refusal]) -> Result<Status, CliError> {
        if self.json {
            self.out.json(&serde_json::json!({ "of": of.trim_end_matches(": "), "refusals": refusals }))?;
        } else {
            self.out.print(&crate::report::text::refusals(refusals, of))?;
        }
        Ok(Status::Refused)
    }

    /// A document, to the byte, into a file or to stdout.
    fn document(&mut self, bytes: &[u8], file: Option<&std::path::Path>) -> Result<(), CliError> {
        let Some(path) = file else { return self.out.bytes(bytes) };
        Output::write(path, output::FOR_ALL, bytes)
    }

    /// Prose, unless nobody wants it.
    fn prose(&mut self, text: &str) -> Result<(), CliError> {
        if self.quiet { Ok(()) } else { self.out.say(text) }
    }
}

/// Runs the command that the process was started with.
#[must_use]
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version are answers, not errors.
            let usage = error.use_stderr();
            return match error.print() {
                _ if usage => ExitCode::from(USAGE),
                Ok(()) => ExitCode::SUCCESS,
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
                Err(_) => ExitCode::from(Status::Undecided as u8),
            };
        }
    };
    let meter = Arc::new(Meter::default());
    signals::install(Arc::clone(&meter));
    let mut out = Out::terminal();
    let threads = args.threads.map_or(0, |threads| threads.get().min(MAX_THREADS));
    if let Err(error) = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global() {
        return finish(&mut out, Err(CliError::Failed(error.to_string())));
    }
    let mut context = Context { out: &mut out, store: store(args.store), json: args.json, quiet: args.quiet, meter };
    let result = match run(&mut context, args.command) {
        Err(CliError::Refused(refusal)) => context.refused("store: ", &[*refusal]),
        result => result,
    };
    let result = result.and_then(|status| out.flush().map(|()| status));
    finish(&mut out, result)
}

/// The store that is meant: an environment variable that is empty is as good as none.
fn store(given: Option<PathBuf>) -> PathBuf {
    #[expect(clippy::disallowed_methods, reason = "the cli room reads the environment")]
    let environment = std::env::var_os("WITNESSMARK_STORE").filter(|path| !path.is_empty());
    given.or(environment.map(PathBuf::from)).unwrap_or_else(|| PathBuf::from("witnessmark-store"))
}

fn run(context: &mut Context<'_>, command: Command) -> Result<Status, CliError> {
    match command {
        Command::Demo => demo::run(context),
        Command::Seal(args) => seal::run(context, &args),
        Command::Verify(args) => verify::run(context, &args),
        Command::Diff(args) => diff::run(context, &args),
        Command::Qualify(args) => qualify::run(context, &args),
        Command::Calibrate(args) => calibrate::run(context, &args),
        Command::Spec(args) => spec::run(context, &args),
        Command::Stats(args) => stats::run(context, &args),
        Command::Report(args) => report::run(context, &args),
        Command::Drill(args) => drill::run(context, &args),
        Command::Export(args) => export::run(context, &args),
        Command::Show(args) => show::run(context, &args),
        Command::Log(args) => log::run(context, &args),
        Command::Prove(args) => proof::prove(context, &args),
        Command::CheckProof(args) => proof::check(context, &args),
        Command::Bundle(args) => bundle::write(context, &args),
        Command::Unbundle(args) => bundle::unbundle(context, &args),
        Command::Gc(args) => gc::run(context, &args),
        Command::Explain(args) => explain::run(context, &args),
        Command::Completions(args) => manual::completions(context, &args),
        Command::Man(args) => manual::man(&args),
    }
}

fn finish(out: &mut Out, result: Result<Status, CliError>) -> ExitCode {
    let (message, code) = match result {
        Ok(status) => {
            signals::obey();
            return ExitCode::from(status as u8);
        }
        Err(CliError::BrokenPipe) => {
            signals::die_of_broken_pipe();
            return ExitCode::from(Status::Undecided as u8);
        }
        Err(CliError::Interrupted) => {
            signals::obey();
            ("interrupted; nothing was published".to_owned(), Status::Undecided as u8)
        }
        Err(CliError::Usage(message)) => (format!("{}\nwitnessmark --help shows how", printable(&message)), USAGE),
        Err(error @ (CliError::Failed(_) | CliError::Refused(_))) => {
            (printable(&error.to_string()), Status::Undecided as u8)
        }
    };
    // When stderr is gone too, there is nobody to tell.
    drop(out.say(&format!("error: {message}\n")));
    ExitCode::from(code)
}
