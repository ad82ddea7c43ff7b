//! What can be typed, and the help that teaches it.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::digest::Sha256;
use crate::id::CaptureId;
use crate::manifest::Codec;
use crate::qualify::result::Verdict;
use crate::verify::sample::WHOLE;

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
             witnessmark qualify SPEC     derive a result and its SHA

A name (A, B, WHAT) is a whole id, a unique prefix of eight digits or more, or a run id.

Exit status: 0 good · 1 a negative answer (captures differ) · 2 refused: a rule was broken
             3 could not decide (unreadable, missing, out of space) · 64 wrong command line"
)]
pub(super) struct Args {
    /// Where the store is [env: WITNESSMARK_STORE] [default: witnessmark-store]
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) store: Option<PathBuf>,
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
    ///
    /// WHAT is a capture of the store, a result (its SHA or its qualification id), or a bundle file, which needs no store; a file that does not begin as a bundle is not
    /// taken for one where the store knows its name. --sample draws a few rows and says how likely they were to show a
    /// damage; --checkpoint demands that the log still begins with one that you kept. --receipt writes down what was found.
    Verify(VerifyArgs),
    /// What changed between two captures
    ///
    /// Compares bindings, shapes, requests, tokens and scores. What is incidental to a run (times, sequence numbers, ids, batch shapes) is one
    /// summary line and does not count, unless --strict.
    Diff(DiffArgs),
    /// Derive the result of a spec from sealed captures: strict gate, statistics, one result SHA
    ///
    /// Every capture is verified in full first; then those of each concurrency and phase are compared, never pooled. SPEC is a file, or the id of a
    /// spec in the log. Without NAME all captures that have a place in the spec are taken. What is missing makes the verdict PENDING. Only
    /// ACCEPTED has exit status 0. `witnessmark verify RESULT_SHA` derives the same again.
    Qualify(QualifyArgs),
    /// How an oracle differs from itself, and whether there are enough runs for the rule that the spec fixes
    ///
    /// Takes oracle captures of the spec's calibration partition only: without NAME all of them. A candidate's capture or a held-out one is refused. What the counts
    /// cannot carry is INSUFFICIENT_EVIDENCE, with the counts it would need. Only CALIBRATED has exit status 0; no threshold comes of it, and nothing is accepted by it.
    Calibrate(CalibrateArgs),
    /// Write a plan down before the evidence: check, seal, draft
    Spec(SpecArgs),
    /// Statistics between two captures at equal prefixes: KL, Jensen-Shannon, total variation, top-k, margins
    ///
    /// Both captures are verified first. A is taken as the oracle; phases are apart. It describes and judges nothing.
    Stats(StatsArgs),
    /// Draw a result, or what changed between two captures, as one page for a browser
    ///
    /// WHAT is a result SHA or a qualification id, a bundle file with one result, or two captures. Everything is derived again first. The page is one file: nothing runs in it and nothing
    /// is loaded. Exit status 0: drawn, whatever it shows. 2: refused; then the page shows the refusals.
    Report(ReportArgs),
    /// Corrupt a scratch copy of a capture in every known way: what can be refused must be, by its own rule
    ///
    /// The store is only read. Exit status 0: every corruption that applies to this evidence was refused by its own rule, or gave another capture
    /// id where nothing else can tell. 1: one survived, or was refused by another rule.
    Drill(DrillArgs),
    /// Write a sealed capture as the capture directory that it could have been sealed from
    ///
    /// The capture is verified first. Sealed again, the directory has the same capture id.
    Export(ExportArgs),
    /// Describe a capture: documents, shards, bindings, requests; a spec or a result of the log is shown as it is
    Show(ShowArgs),
    /// Look at the store's append-only log, prove its growth, sign and publish it
    Log(LogArgs),
    /// Prove that a row belongs to a capture, for somebody who has no store
    ///
    /// Writes one JSON document: the capture document, the row record and the path between them, and with --scores the row's scores. Whoever
    /// has it checks it offline with `witnessmark check-proof`. Of the scores only the one page of the row is read.
    Prove(ProveArgs),
    /// Check a proof offline, with nothing but the proof
    ///
    /// Takes the proof of a row (witnessmark prove) or of the log's growth (witnessmark log prove). Everything in it is recomputed. It shows that
    /// the row belongs to the capture id it prints: compare that id with the one you were given, or pass it with --capture.
    CheckProof(CheckProofArgs),
    /// Put captures, or a result and its captures, into one file, for an auditor who has no store
    ///
    /// The file holds the captures' log entries, proved up to the log's head, and exactly the objects that their manifests name. `witnessmark
    /// verify FILE` verifies it as it is; `witnessmark unbundle FILE` puts it into a store.
    Bundle(BundleArgs),
    /// Put the captures of a bundle into the store
    ///
    /// Objects are hashed and entries proved on the way in; then `witnessmark verify ID` judges them. The entries stay those of the log they come
    /// from: they are kept beside the store's own log, never in it. Prints one whole capture id a line on stdout.
    Unbundle(UnbundleArgs),
    /// Find what lies in the store and nothing names; delete it only with --delete
    ///
    /// Orphans are objects that no manifest lists and no entry of the log names (a seal was killed), leftovers are temporary files of such work. Nothing that is named, in use,
    /// or younger than an hour is touched.
    Gc(GcArgs),
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
    /// Keep runs that never ended too (run.json.partial, a torn last row): evidence that can never qualify
    #[arg(long)]
    pub(super) incomplete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum CodecArg {
    /// Smallest, and fast to verify
    Zstd,
    /// Faster to seal
    Lz4,
    /// Fastest to seal, largest
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum VerdictArg {
    #[value(name = "ACCEPTED")]
    Accepted,
    #[value(name = "NOT_ACCEPTED")]
    NotAccepted,
    #[value(name = "DIAGNOSTIC_COMPLETE")]
    DiagnosticComplete,
    #[value(name = "INSUFFICIENT_EVIDENCE")]
    InsufficientEvidence,
    #[value(name = "PENDING")]
    Pending,
}

impl From<VerdictArg> for Verdict {
    fn from(verdict: VerdictArg) -> Self {
        match verdict {
            VerdictArg::Accepted => Verdict::Accepted,
            VerdictArg::NotAccepted => Verdict::NotAccepted,
            VerdictArg::DiagnosticComplete => Verdict::DiagnosticComplete,
            VerdictArg::InsufficientEvidence => Verdict::InsufficientEvidence,
            VerdictArg::Pending => Verdict::Pending,
        }
    }
}

#[derive(Debug, Default, clap::Args)]
pub(super) struct VerifyArgs {
    /// Ids, prefixes, run ids, result SHAs, qualification ids, or bundle files
    #[arg(value_name = "WHAT", required_unless_present_any = ["all", "checkpoint"], conflicts_with = "all")]
    pub(super) what: Vec<String>,
    /// Every capture of the store, and its log
    #[arg(long)]
    pub(super) all: bool,
    /// Exit with 1 unless the result has this verdict
    #[arg(long, value_enum, value_name = "VERDICT")]
    pub(super) require: Option<VerdictArg>,
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
    /// Derive only this share of the rows' scores again, a random sample; documents and row records are all looked at
    #[arg(long, value_name = "P%", value_parser = parse_share, conflicts_with = "quick")]
    pub(super) sample: Option<u32>,
    /// Draw the sample by this seed, to repeat it [default: a random one, which is printed]
    #[arg(long, value_name = "N", requires = "sample")]
    pub(super) seed: Option<u64>,
    /// Demand that the log begins with the one of this signed checkpoint (witnessmark log sign)
    #[arg(long, value_name = "FILE")]
    pub(super) checkpoint: Option<PathBuf>,
    /// Demand that this key signed the checkpoint: name+id+base64, or a file with it
    #[arg(long, value_name = "KEY", requires = "checkpoint")]
    pub(super) verifier_key: Option<String>,
    /// Write a receipt of what was looked at and found (with one WHAT), in place of what is there
    #[arg(long, value_name = "FILE", conflicts_with = "receipt_dir")]
    pub(super) receipt: Option<PathBuf>,
    /// Keep a receipt a capture in this folder, and skip captures of the store that have one of a full pass: a long verify can be taken up again. A bundle is always
    /// looked at. Use a folder for one store
    #[arg(long, value_name = "DIR")]
    pub(super) receipt_dir: Option<PathBuf>,
    /// Skip nothing, whatever receipts there are
    #[arg(long, requires = "receipt_dir")]
    pub(super) fresh: bool,
}

/// A percentage with up to four decimals, in millionths.
fn parse_share(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|c| c.is_ascii_digit());
    let valid = (1..=3).contains(&whole.len()) && part.len() <= 4 && digits(whole) && digits(part);
    let ppm = valid.then(|| format!("{whole}{part:0<4}").parse::<u32>().ok()).flatten();
    let ppm = ppm.filter(|ppm| (1..=WHOLE).contains(ppm));
    ppm.ok_or_else(|| "a percentage above 0 and up to 100, with at most four decimals, as in 5% or 0.25%".to_owned())
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
    /// An id, a prefix or a run id; also of a spec or a result
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
    /// Prove that the log of NEW entries begins with the log of OLD entries
    ///
    /// Writes one JSON document for whoever kept the root of the older log: nothing was changed, dropped or reordered since.
    Prove {
        /// Number of entries then
        old: u64,
        /// Number of entries later [default: all]
        new: Option<u64>,
        /// Write the proof here instead of stdout; there must be no such file
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Check a proof of the log's growth offline; the same as `witnessmark check-proof`
    Check(CheckProofArgs),
    /// Sign the log as it is: a C2SP checkpoint that others can keep, and witness
    ///
    /// Whoever keeps it can later show with `witnessmark verify --checkpoint FILE` that the log was not rolled back or rewritten.
    Sign {
        /// The signing key (witnessmark log keygen)
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// Write the signed checkpoint here instead of stdout; there must be no such file
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Write the log as it was signed last as a folder that any web server can serve: C2SP tlog-tiles
    ///
    /// Checkpoint, tiles and entry bundles, for monitors and witnesses that know nothing of witnessmark; `witnessmark log sign` comes first. Published
    /// again into the same folder, the log grows there: tiles and bundles are never changed, and the checkpoint comes last.
    Publish {
        /// The folder: a new one, or one that an older log was published into
        dir: PathBuf,
        /// Publish only what this key signed: the key, or a file with it
        #[arg(long, value_name = "KEY")]
        verifier_key: Option<String>,
    },
    /// Make an Ed25519 key to sign the log with
    ///
    /// Writes the signing key to FILE, for its owner's eyes only, and the verifier key to FILE.pub; prints the verifier key.
    Keygen {
        /// Where to write the key
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
        /// Name of the key, without spaces and plus signs [default: the log's origin]
        #[arg(long)]
        name: Option<String>,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct ProveArgs {
    /// An id, a prefix or a run id
    pub(super) what: String,
    /// PROMPT:POSITION or PROMPT:SAMPLE:POSITION, each from 0
    pub(super) row: String,
    /// Put the row's scores into the proof
    #[arg(long)]
    pub(super) scores: bool,
    /// Write the proof here instead of stdout; there must be no such file
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct CheckProofArgs {
    /// The proof
    pub(super) file: PathBuf,
    /// The row must belong to this capture
    #[arg(long, value_name = "ID")]
    pub(super) capture: Option<CaptureId>,
    /// The older log must have this root
    #[arg(long, value_name = "ROOT")]
    pub(super) old_root: Option<Sha256>,
    /// The newer log must have this root
    #[arg(long, value_name = "ROOT")]
    pub(super) new_root: Option<Sha256>,
}

#[derive(Debug, clap::Args)]
pub(super) struct BundleArgs {
    /// Ids, prefixes or run ids of captures; or a result SHA or qualification id
    #[arg(required = true, value_name = "WHAT")]
    pub(super) what: Vec<String>,
    /// The file to write; it must not be there
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(super) struct UnbundleArgs {
    /// The bundle; - for stdin
    pub(super) file: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(super) struct GcArgs {
    /// Delete what was found
    #[arg(long)]
    pub(super) delete: bool,
    /// Also what is younger than an hour: only when nobody seals
    #[arg(long)]
    pub(super) now: bool,
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
pub(super) struct QualifyArgs {
    /// A spec's file, or the id of a spec in the log
    pub(super) spec: String,
    /// Exactly these captures
    #[arg(value_name = "NAME")]
    pub(super) captures: Vec<String>,
    /// Also write the result document here, to the byte; there must be no such file
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Derive only: put nothing into the store
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct CalibrateArgs {
    /// A spec's file, or the id of a spec in the log
    pub(super) spec: String,
    /// Exactly these captures
    #[arg(value_name = "NAME")]
    pub(super) captures: Vec<String>,
    /// Also write the calibration document here, to the byte; there must be no such file
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct SpecArgs {
    #[command(subcommand)]
    pub(super) command: SpecCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum SpecCommand {
    /// Whether a file is a spec, and what it leaves open
    Check {
        /// The spec's file
        file: PathBuf,
    },
    /// Put a spec into the log, before the evidence that it is for; prints its id
    Seal {
        /// The spec's file
        file: PathBuf,
    },
    /// Write a first spec with every pin that captures show
    Draft {
        /// Sealed captures to take the pins from. Of oracles: a candidate that is sealed before its spec cannot be judged by it
        #[arg(long, required = true, num_args = 1.., value_name = "NAME")]
        from: Vec<String>,
        /// Write it here instead of to stdout; there must be no such file
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct StatsArgs {
    /// The first capture, taken as the oracle
    pub(super) a: String,
    /// The second
    pub(super) b: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct ReportArgs {
    /// A result SHA, a qualification id or a prefix of one; or two captures
    #[arg(required = true, num_args = 1..=2, value_name = "WHAT")]
    pub(super) what: Vec<String>,
    /// The page to write; there must be no such file
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(super) struct ExplainArgs {
    /// The rule's id
    pub(super) rule: Option<String>,
}
