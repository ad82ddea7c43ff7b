//! `witnessmark demo`: the whole of the main job on two real captures, in a temporary folder.
//!
//! Every line after a `$` is the real command, and what follows is its real output.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::args::{CodecArg, DiffArgs, SealArgs, VerifyArgs};
use super::{CliError, Context, Status, diff, seal, verify};
use crate::catalog::Catalog;
use crate::store::Store;

/// A capture directory that is built into the program.
struct Embedded {
    name: &'static str,
    files: [(&'static str, &'static [u8]); 3],
}

macro_rules! embedded {
    ($name:literal) => {
        Embedded {
            name: $name,
            files: [
                ("run.json", include_bytes!(concat!("../../corpora/smollm2-h200-cut/", $name, "/run.json"))),
                ("rows.jsonl", include_bytes!(concat!("../../corpora/smollm2-h200-cut/", $name, "/rows.jsonl"))),
                ("scores.bf16", include_bytes!(concat!("../../corpora/smollm2-h200-cut/", $name, "/scores.bf16"))),
            ],
        }
    };
}

const C1: Embedded = embedded!("oracle-c1-rep0");
const C4: Embedded = embedded!("oracle-c4-rep0");
/// Bytes of one row of the embedded scores: 49,152 bf16 values.
const ROW_BYTES: usize = 49_152 * 2;
/// Where in the scores shard the demo flips a bit: inside the fifth page or so.
const FLIPPED_BYTE: u64 = 123_456;

const OPENING: &str = "\
A witness mark is the line an inspector paints across a bolt and its housing: if either has moved
since, anyone can see it. witnessmark paints that line across the evidence of an LLM inference run.

Here are two real captures: SmolLM2-135M-Instruct in bf16 on an NVIDIA H200, the same oracle once
at concurrency 1 and once at concurrency 4. Nine rows each, every row the 49,152 scores that the
engine gave before it chose a token.
";

const SEAL: &str = "
── 1. Seal ─────────────────────────────────────────────────────────────────────────────────────

Every rule is asked, then each capture becomes immutable objects under one capture id. The id
depends on what was captured and on nothing else: it is the same on every machine.

";

const VERIFY: &str = "
── 2. Verify ───────────────────────────────────────────────────────────────────────────────────

Everything is derived again, from the scores up: digests, rows, both Merkle roots, the id. What
nobody looked at is said.

";

const FLIP: &str = "
── 3. Tamper with the store ────────────────────────────────────────────────────────────────────

One bit of one score is flipped in the sealed file, behind the program's back.

";

const SWAP: &str = "
── 4. Tamper before sealing ────────────────────────────────────────────────────────────────────

The bit is put back. Now somebody swaps the scores of two rows in a copy of the capture, before it
is sealed: prompt 0 position 22 against position 23. The file has the same size, and the same
bytes in another order.

";

const DIFF: &str = "
── 5. Diff ─────────────────────────────────────────────────────────────────────────────────────

What changed between concurrency 1 and 4? The same model, the same GPU, greedy decoding: and yet
the oracle's own token changes at prompt 0, position 24. A candidate engine that is judged there
needs to be judged against the oracle of its own stratum.

";

const CLOSING: &str = "
── That was real evidence ──────────────────────────────────────────────────────────────────────

Sealed, verified, tampered with twice, refused twice by name, and compared.

  witnessmark seal DIR...          seals your own captures (specs/format-v1.md says what is in one)
  witnessmark verify --all         derives every capture again
  witnessmark explain RULE         says what a rule protects and what to do
";

pub(super) fn run(context: &mut Context<'_>) -> Result<Status, CliError> {
    if !context.json {
        context.out.join();
    }
    let folder = tempfile::Builder::new().prefix("witnessmark-demo-").tempdir().map_err(failed("make a folder"))?;
    // Commands show the paths they are given: inside the folder these are short.
    std::env::set_current_dir(folder.path()).map_err(failed("enter the folder"))?;
    let result = tell(context);
    std::env::set_current_dir("/").map_err(failed("leave the folder"))?;
    folder.close().map_err(failed("remove the folder"))?;
    result
}

fn tell(context: &mut Context<'_>) -> Result<Status, CliError> {
    context.store = PathBuf::from("witnessmark-store");
    for capture in [&C1, &C4] {
        write_capture(Path::new(capture.name), capture)?;
    }
    let mut as_told = true;
    story(context, OPENING)?;

    story(context, SEAL)?;
    command(context, "seal oracle-c1-rep0 oracle-c4-rep0")?;
    as_told &= seal_dirs(context, &[C1.name, C4.name])? == Status::Good;

    story(context, VERIFY)?;
    command(context, "verify oracle-c1-rep0")?;
    as_told &= verify_one(context, C1.name)? == Status::Good;

    story(context, FLIP)?;
    let shard = first_scores_shard(context)?;
    flip_bit(&shard)?;
    command(context, "verify oracle-c1-rep0")?;
    as_told &= verify_one(context, C1.name)? == Status::Refused;
    flip_bit(&shard)?;

    story(context, SWAP)?;
    write_capture(Path::new("tampered"), &C1)?;
    swap_rows(Path::new("tampered"), 1, 2)?;
    command(context, "seal tampered")?;
    as_told &= seal_dirs(context, &["tampered"])? == Status::Refused;

    story(context, DIFF)?;
    command(context, "diff oracle-c1-rep0 oracle-c4-rep0")?;
    let args = DiffArgs { a: C1.name.to_owned(), b: C4.name.to_owned(), only: None, strict: false };
    as_told &= diff::run(context, &args)? == Status::Negative;

    if !as_told {
        context.out.say("error: the demo did not go as told: this build is broken\n")?;
        return Ok(Status::Negative);
    }
    story(context, CLOSING)?;
    Ok(Status::Good)
}

fn story(context: &mut Context<'_>, text: &str) -> Result<(), CliError> {
    if context.json { Ok(()) } else { context.out.print(text) }
}

fn command(context: &mut Context<'_>, line: &str) -> Result<(), CliError> {
    story(context, &format!("$ witnessmark {line}\n"))
}

fn seal_dirs(context: &mut Context<'_>, dirs: &[&str]) -> Result<Status, CliError> {
    let dirs = dirs.iter().map(PathBuf::from).collect();
    seal::run(context, &SealArgs { dirs, codec: CodecArg::Zstd, spec: None, name: None, incomplete: false })
}

fn verify_one(context: &mut Context<'_>, name: &str) -> Result<Status, CliError> {
    let args = VerifyArgs { what: vec![name.to_owned()], ..VerifyArgs::default() };
    verify::run(context, &args)
}

fn write_capture(folder: &Path, capture: &Embedded) -> Result<(), CliError> {
    fs::create_dir(folder).map_err(failed("make a folder"))?;
    for (name, bytes) in capture.files {
        fs::write(folder.join(name), bytes).map_err(failed("write a capture"))?;
    }
    Ok(())
}

/// The file of the scores of the first capture.
fn first_scores_shard(context: &Context<'_>) -> Result<PathBuf, CliError> {
    let store = Store::open(&context.store)?;
    let catalog = Catalog::load(&store)?;
    let manifest = catalog.manifest(catalog.resolve(C1.name, false)?.capture);
    let shard = manifest.and_then(|manifest| manifest.score_shards.first().copied());
    let shard = shard.ok_or_else(|| CliError::Failed("the demo's capture has no scores".to_owned()))?;
    Ok(store.root().join(Store::object_path(&shard.object)))
}

fn flip_bit(path: &Path) -> Result<(), CliError> {
    let flip = || -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let mut byte = [0];
        file.read_exact_at(&mut byte, FLIPPED_BYTE)?;
        file.write_all_at(&[byte[0] ^ 1], FLIPPED_BYTE)
    };
    flip().map_err(failed("tamper with the store"))
}

fn swap_rows(folder: &Path, a: usize, b: usize) -> Result<(), CliError> {
    let path = folder.join("scores.bf16");
    let mut bytes = fs::read(&path).map_err(failed("read the scores"))?;
    let (head, tail) = bytes.split_at_mut(b * ROW_BYTES);
    head[a * ROW_BYTES..(a + 1) * ROW_BYTES].swap_with_slice(&mut tail[..ROW_BYTES]);
    fs::write(path, bytes).map_err(failed("write the scores"))
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> CliError {
    move |error| CliError::Failed(format!("cannot {what}: {error}"))
}
