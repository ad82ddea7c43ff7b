//! What is handed to somebody who has no store: proofs, bundles, checkpoints, made by the command and then edited.

use std::fs;

use serde_json::Value;

use super::capture::set;
use super::edit::{HandedEdit, to_json};
use crate::support::Bench;

/// What a bundle begins with; the length of its header follows.
const MAGIC: &[u8] = b"witnessmark.bundle/v1\n";

/// Makes one edit on a bench whose store has the capture.
pub(super) fn edit(edit: &HandedEdit, bench: &Bench) {
    match edit {
        HandedEdit::Command { line } => {
            let args: Vec<&str> = line.split(' ').collect();
            let run = bench.run(&args);
            assert_eq!(run.status, 0, "{line}: {}{}", run.stdout, run.stderr);
        }
        HandedEdit::DocumentSet { file, path, value } => change(bench, file, path, Some(to_json(value))),
        HandedEdit::DocumentRemove { file, path } => change(bench, file, path, None),
    }
}

/// Changes a document, or the one that a bundle begins with. Members are sorted and nothing is spaced, so it stays canonical.
fn change(bench: &Bench, file: &str, path: &str, value: Option<Value>) {
    let file = bench.path(file);
    let bytes = fs::read(&file).unwrap();
    let edited = |document: &[u8]| {
        let mut document: Value = serde_json::from_slice(document).unwrap();
        set(&mut document, path, value);
        document.to_string().into_bytes()
    };
    let changed = match bytes.strip_prefix(MAGIC) {
        None => edited(&bytes),
        Some(rest) => {
            let (length, rest) = rest.split_first_chunk().unwrap();
            let (header, objects) = rest.split_at(usize::try_from(u64::from_le_bytes(*length)).unwrap());
            let header = edited(header);
            let length = u64::try_from(header.len()).unwrap().to_le_bytes();
            [MAGIC, &length, &header, objects].concat()
        }
    };
    fs::write(file, changed).unwrap();
}
