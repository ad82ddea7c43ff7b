//! What can be typed, and the help that teaches it.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::manifest::Codec;

/// Seals evidence of LLM inference runs so that people who do not trust each other can verify it.
///
/// A capture directory (what an engine adapter wrote: scores, rows.jsonl, run.json) becomes immutable, content-addressed objects and one
/// capture id. verify derives everything again from the leaves up and refuses by name.
#[derive(Debug, Parser)]
#[command(
    name = "witnessmark",
    version,
    max_term_width = 100,
    after_help = "\
Start with:  witnessmark demo
Then:        witnessmark seal DIR...      seal capture directories; prints one capture id a line
             witnessmark verify --all     derive everything again
             witnessmark diff A B         what changed between two captures

A name (A, B, WHAT) is a whole id, a unique prefix of eight digits or more, or a run id.

Exit status: 0 good · 1 a negative answer (captures differ) · 2 refused: a rule was broken
             3 could not decide (unreadable, missing, out of space) · 64 wrong command line"
)]
pub(super) struct Args {
    /// Where the store is
    #[arg(long, global = true, value_name = "DIR", env = "WITNESSMARK_STORE", default_value = "witnessmark-store")]
    pub(super) store: PathBuf,
    /// Print JSON on stdout: one document, or one a line where there are several subjects
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Print neither prose nor progress on stderr
    #[arg(long, short, global = true)]
    pub(super) quiet: bool,
    /// Use this many threads [default: all cores]
    #[arg(long, global = true, value_name = "N")]
    pub(super) threads: Option<NonZeroUsize>,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Seal, verify, tamper, refuse and diff two real captures that are built in
    ///
    /// Works in a temporary folder and leaves nothing behind. Takes a few seconds.
    Demo,
    /// Seal capture directories into the store
    ///
    /// Prints one whole capture id a line on stdout. Every rule is asked first: a directory that breaks one is refused and leaves nothing in
    /// the store; the others are sealed all the same. The same capture always gets the same id; sealed again, nothing is written.
    Seal(SealArgs),
    /// Derive everything again from the leaves up, and refuse by name
    Verify(VerifyArgs),
    /// What changed between two captures
    ///
    /// Compares bindings, shapes, requests, tokens and scores. What is incidental to a run (times, sequence numbers, ids, batch shapes) is one
    /// summary line and does not count, unless --strict.
    Diff(DiffArgs),
    /// Corrupt a scratch copy of a capture in every known way; each must be refused, by its own rule
    ///
    /// The store is only read. Exit status 0: every corruption that applies to this evidence was refused by its own rule, or gave another capture
    /// id where nothing else can tell. 1: one survived, or was refused by another rule.
    Drill(DrillArgs),
    /// Write a sealed capture as the capture directory that it could have been sealed from
    ///
    /// The capture is verified first. Sealed again, the directory has the same capture id.
    Export(ExportArgs),
    /// Describe a capture: documents, shards, bindings, requests
    Show(ShowArgs),
    /// Look at the store's append-only log
    Log(LogArgs),
    /// What a rule protects and what to do when it is broken; without a rule, all of them
    Explain(ExplainArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Write man pages into a folder
    Man(ManArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct SealArgs {
    /// Capture directories
    #[arg(required = true, value_name = "DIR")]
    pub(super) dirs: Vec<PathBuf>,
    /// How scores are compressed; ids do not depend on it
    #[arg(long, value_enum, default_value_t = CodecArg::Zstd)]
    pub(super) codec: CodecArg,
    /// Demand what this spec requires of every capture, and refuse the others
    #[arg(long, value_name = "FILE")]
    pub(super) spec: Option<PathBuf>,
    /// Refer to the capture by this name instead of its run id (with one DIR)
    #[arg(long = "as", value_name = "NAME")]
    pub(super) name: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum CodecArg {
    /// Smallest
    Zstd,
    /// Faster
    Lz4,
    /// Fastest
    None,
}

impl From<CodecArg> for Codec {
    fn from(codec: CodecArg) -> Self {
        match codec {
            CodecArg::Zstd => Codec::Zstd,
            CodecArg::Lz4 => Codec::Lz4,
            CodecArg::None => Codec::None,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct VerifyArgs {
    /// Ids, prefixes or run ids
    #[arg(value_name = "WHAT", required_unless_present = "all", conflicts_with = "all")]
    pub(super) what: Vec<String>,
    /// Every capture of the store, and its log
    #[arg(long)]
    pub(super) all: bool,
    /// Hash every byte but derive no score again; says what it did not check
    #[arg(long)]
    pub(super) quick: bool,
    /// Take whole ids only, no prefixes and no run ids
    #[arg(long)]
    pub(super) exact: bool,
    /// Demand what this spec requires of every capture
    #[arg(long, value_name = "FILE")]
    pub(super) spec: Option<PathBuf>,
    /// Compare the model and tokenizer files in this folder with their declared digests
    #[arg(long, value_name = "DIR")]
    pub(super) model: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct DiffArgs {
    /// The first capture
    pub(super) a: String,
    /// The second capture
    pub(super) b: String,
    /// Compare only one part
    #[arg(long, value_enum)]
    pub(super) only: Option<Part>,
    /// What is incidental to a run counts as a difference too
    #[arg(long)]
    pub(super) strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    /// Bindings, attachments and declared shapes
    Bindings,
    /// Requests, rows and tokens
    Rows,
    /// Scores
    Scores,
}

#[derive(Debug, clap::Args)]
pub(super) struct DrillArgs {
    /// An id, a prefix or a run id
    #[arg(required_unless_present = "list")]
    pub(super) what: Option<String>,
    /// List the corruptions and what each does
    #[arg(long)]
    pub(super) list: bool,
    /// Only these corruptions
    #[arg(long, value_name = "NAME")]
    pub(super) only: Vec<String>,
    /// Choose rows, scores and bytes by this number: the same number, the same corruptions
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
}

#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// An id, a prefix or a run id
    pub(super) what: String,
    /// The directory to make; there must be nothing there
    #[arg(long, short, value_name = "DIR")]
    pub(super) output: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// An id, a prefix or a run id
    pub(super) what: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct LogArgs {
    #[command(subcommand)]
    pub(super) command: LogCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum LogCommand {
    /// All entries, oldest first
    Show,
}

#[derive(Debug, clap::Args)]
pub(super) struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum)]
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
pub(super) struct ManArgs {
    /// The folder; it is made where it is missing
    pub(super) dir: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(super) struct ExplainArgs {
    /// The rule's id
    pub(super) rule: Option<String>,
}
