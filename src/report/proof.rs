//! Text for what an auditor takes away: proofs, checkpoints, bundles, and what a store does not need.

use super::text::{Page, bytes, count, entries};
use crate::bundle::{Bundle, Made, Unbundled};
use crate::gc::Garbage;
use crate::id::{CaptureId, long};
use crate::log::publish::Published;
use crate::note::Checkpoint;
use crate::proof::{LogProof, RowClaim, RowProof};

/// What a proof of a row shows. `expected` says whether the id was known beforehand.
#[must_use]
pub fn row(proof: &RowProof, claim: &RowClaim, expected: bool) -> String {
    let mut page = Page(String::new());
    let row = &claim.row;
    page.line(format_args!("PROVED: {} belongs to capture {}", row.key, claim.capture));
    page.field(
        "row",
        format_args!("{} of {} in key order, {} nodes to the row root", proof.row, proof.tree_size, proof.path.len()),
    );
    page.field("row root", proof.capture.row_root);
    page.field("request", format_args!("{}, {}", row.request_id, row.phase.name()));
    page.field("prefix", row.prefix_sha256);
    let id = |token: Option<crate::id::TokenId>| token.map_or("not recorded".to_owned(), |token| token.to_string());
    page.field(
        "token id",
        format_args!("{}, argmax {}, runner-up {}", row.token_id, id(row.argmax), id(row.runner_up)),
    );
    match (&claim.scores, row.score_digest) {
        (Some(scores), Some(digest)) => {
            page.field(
                "scores",
                format_args!("{} values of {}, bound by digest {digest}", scores.vocab(), scores.dtype().name()),
            );
        }
        (_, Some(digest)) => page.field("scores", format_args!("not in the proof; bound by digest {digest}")),
        (_, None) => page.field("scores", "none: a baseline"),
    }
    if !expected {
        page.words("not shown", "that this capture is the one you mean: compare the id with the one you were given, or pass it with --capture");
    }
    page.0
}

/// What a proof of the log's growth shows. `known` says whether the older root was known beforehand.
#[must_use]
pub fn log(proof: &LogProof, known: bool) -> String {
    let mut page = Page(String::new());
    let (old, new) = (proof.old_size, proof.new_size);
    page.line(format_args!("PROVED: the log of {} begins with the log of {old}", entries(new)));
    page.field("origin", &proof.origin);
    page.field("old root", proof.old_root);
    page.field("new root", proof.new_root);
    if !known {
        page.words(
            "not shown",
            "that these are the roots you know: compare them, or pass them with --old-root and --new-root",
        );
    }
    page.0
}

/// What was proved, for stderr: the proof itself goes elsewhere.
#[must_use]
pub fn made(proof: &RowProof, key: &crate::id::RowKey, capture: &CaptureId) -> String {
    let mut page = Page(String::new());
    page.line(format_args!("proof of {key}, row {} of {}, in capture {capture}", proof.row, proof.tree_size));
    page.0
}

/// A signed checkpoint, for stderr.
#[must_use]
pub fn signed(checkpoint: &Checkpoint) -> String {
    let mut page = Page(String::new());
    page.line(format_args!(
        "signed the log of {} at size {}, root {}",
        checkpoint.origin, checkpoint.head.size, checkpoint.head.root
    ));
    page.0
}

/// A log that was published, for stderr.
#[must_use]
pub fn published(published: &Published, dir: &str) -> String {
    let mut page = Page(String::new());
    let head = &published.checkpoint.head;
    page.line(format_args!("{dir}: the log of {}, root {}", entries(head.size), head.root));
    page.field("files", format_args!("{} written, {} there already", published.written, published.there));
    page.0
}

/// A bundle that was written, for stderr.
#[must_use]
pub fn bundled(made: &Made, file: &str) -> String {
    let mut page = Page(String::new());
    let header = &made.header;
    let entries = long(header.entries.len());
    let objects = count(long(header.objects.len()), "object");
    page.line(format_args!(
        "{file}: {} in {objects}, {}",
        if entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") },
        bytes(made.bytes)
    ));
    page.field(
        "log",
        format_args!("origin {}, size {}, root {}", header.head.origin, header.head.size, header.head.root),
    );
    page.field("try", format_args!("witnessmark verify {file}"));
    page.0
}

/// A bundle that came in, for stderr: the ids go to stdout.
#[must_use]
pub fn unbundled(unbundled: &Unbundled) -> String {
    let mut page = Page(String::new());
    let head = &unbundled.header.head;
    let what = if unbundled.already { "was in the store already" } else { "is in the store" };
    page.line(format_args!("the bundle {what}: {}", count(long(unbundled.header.objects.len()), "object")));
    page.field(
        "entries of",
        format_args!("origin {}, size {}; kept in refs/bundles, not in this log", head.origin, head.size),
    );
    page.field("not judged yet", "witnessmark verify ID");
    page.0
}

/// What a bundle says of itself.
#[must_use]
pub fn bundle(bundle: &Bundle, file: &str) -> String {
    let mut page = Page(String::new());
    let header = &bundle.header;
    let total = header.objects.iter().map(|object| object.bytes).sum();
    page.line(format_args!("bundle {file}: {}, {}", count(long(header.objects.len()), "object"), bytes(total)));
    page.field(
        "log",
        format_args!("origin {}, size {}, root {}", header.head.origin, header.head.size, header.head.root),
    );
    let places: Vec<String> = header.entries.iter().map(|proved| proved.index.to_string()).collect();
    page.field("entries", format_args!("{}, proved up to that root", places.join(", ")));
    page.field("order, time", "rest on the sealer, unless somebody kept or witnessed a checkpoint of that log");
    page.0
}

/// What a store does not need.
#[must_use]
pub fn garbage(garbage: &Garbage, deleted: bool) -> String {
    let mut page = Page(String::new());
    let orphans: u64 = garbage.orphans.iter().map(|orphan| orphan.bytes).sum();
    let left: u64 = garbage.leftovers.iter().map(|leftover| leftover.bytes).sum();
    page.field("orphans", format_args!("{} ({} bytes)", count(long(garbage.orphans.len()), "object"), orphans));
    page.field("leftovers", format_args!("{} of work that never ended ({left} bytes)", garbage.leftovers.len()));
    if garbage.spared > 0 {
        page.field("spared", format_args!("{} younger than an hour, or in use", garbage.spared));
    }
    for path in &garbage.strange {
        page.field("not an object", format_args!("{path}: left alone"));
    }
    let total = garbage.bytes();
    page.line(match (deleted, garbage.orphans.len() + garbage.leftovers.len()) {
        (_, 0) if garbage.spared > 0 => "nothing to delete yet (--now spares nothing for its age)".to_owned(),
        (_, 0) => "nothing to delete".to_owned(),
        (true, _) => format!("deleted {total} bytes"),
        (false, _) => format!("{total} bytes could go: the same command with --delete"),
    });
    page.0
}
