//! Signed checkpoints of a log: made of it, and held against it.
//!
//! A log that was put back, rewritten or replaced by another is told from one that grew. See `specs/format-v1.md`, section 13.2.

use super::Log;
use crate::note::{Checkpoint, MAX_NOTE, Note, NoteError, SigningKey, VerifierKey, origin_line};
use crate::refusal::{Refusal, Rule, Subject};
use crate::store::{Fault, Store};

pub(super) const CHECKPOINT: &str = "log/checkpoint";

impl Log {
    /// Whether the log begins with the one that a kept checkpoint is of; with a key, also whether that key signed it.
    ///
    /// # Errors
    ///
    /// # Refusals
    /// schema-invalid for what is no signed checkpoint, signature-invalid, and log-inconsistent: another log, a shorter one, or one that
    /// was rewritten.
    pub fn check_checkpoint(
        &self,
        store: &Store,
        note: &[u8],
        key: Option<&VerifierKey>,
        file: &str,
    ) -> Result<Checkpoint, Refusal> {
        let refuse =
            |rule, expected: String, found: String| Refusal::new(rule, Subject::File(file.to_owned()), expected, found);
        let schema =
            |error: NoteError| refuse(Rule::SchemaInvalid, "a C2SP signed checkpoint".to_owned(), error.to_string());
        let note = Note::parse(note).map_err(schema)?;
        if let Some(key) = key {
            let expected = format!("a signature by {}", key.encode());
            note.check(key).map_err(|found| refuse(Rule::SignatureInvalid, expected, found))?;
        }
        let checkpoint = Checkpoint::parse(note.text()).map_err(schema)?;
        let origin = origin_line(store.origin());
        if checkpoint.origin != origin {
            return Err(refuse(Rule::LogInconsistent, format!("a checkpoint of {origin}"), checkpoint.origin));
        }
        let kept = checkpoint.head;
        let now = self.size_at(kept.size);
        if now == Some(kept) {
            return Ok(checkpoint);
        }
        let expected = format!("a log that begins with the {} entries of root {}", kept.size, kept.root);
        let found =
            now.map_or(format!("a log of {} entries", self.tree.size()), |now| format!("root {} there", now.root));
        Err(refuse(Rule::LogInconsistent, expected, found))
    }

    /// The checkpoint that was signed last and is kept beside the log; nothing where none was.
    ///
    /// # Errors
    /// When it cannot be read.
    ///
    /// # Refusals
    /// As [`Log::check_checkpoint`], and what a file of the store can be refused for.
    pub fn check_own_checkpoint(&self, store: &Store) -> Result<Option<Checkpoint>, Fault> {
        let Some(note) = store.read_file(CHECKPOINT, MAX_NOTE)? else { return Ok(None) };
        let refusal = match self.check_checkpoint(store, &note, None, CHECKPOINT) {
            Ok(checkpoint) => return Ok(Some(checkpoint)),
            Err(refusal) => refusal,
        };
        // Somebody may have appended and signed since this log was read.
        let now = Self::load(store)?;
        let grown = now.tree.size() > self.tree.size() && now.size_at(self.tree.size()) == Some(self.size());
        let checked = if grown { now.check_checkpoint(store, &note, None, CHECKPOINT) } else { Err(refusal) };
        checked.map(Some).map_err(Fault::Refused)
    }

    /// The note that was signed last, what it says, and the log, which goes at least as far; nothing where none was signed. With a key, only what
    /// that key signed.
    ///
    /// # Errors
    /// When they cannot be read.
    ///
    /// # Refusals
    /// Whatever is wrong with the log, and as [`Log::check_checkpoint`].
    pub(super) fn signed(
        store: &Store,
        key: Option<&VerifierKey>,
    ) -> Result<Option<(Self, Vec<u8>, Checkpoint)>, Fault> {
        let Some(note) = store.read_file(CHECKPOINT, MAX_NOTE)? else { return Ok(None) };
        // The log after the note: it only grows.
        let log = Self::load(store)?;
        if let Some(refusal) = log.refusals.first() {
            return Err(Fault::Refused(refusal.clone()));
        }
        let checkpoint = log.check_checkpoint(store, &note, key, CHECKPOINT).map_err(Fault::Refused)?;
        Ok(Some((log, note, checkpoint)))
    }

    /// Signs the log as it is, keeps the signed checkpoint beside it and gives it back. Nothing is signed that is inconsistent with what
    /// was signed before.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    ///
    /// # Refusals
    /// Whatever is wrong with the log or its tiles.
    pub fn sign(store: &Store, key: &SigningKey) -> Result<(Checkpoint, String), Fault> {
        let _lock = Self::lock(store)?;
        let log = Self::load(store)?;
        let tiles = log.check_tiles(store)?;
        if let Some(refusal) = log.refusals.iter().chain(&tiles).next() {
            return Err(Fault::Refused(refusal.clone()));
        }
        log.check_own_checkpoint(store)?;
        log.write_tiles(store)?;
        let checkpoint = Checkpoint { origin: origin_line(store.origin()), head: log.size() };
        let note = key.sign(&checkpoint.encode());
        store.replace_file(CHECKPOINT, note.as_bytes())?;
        Ok((checkpoint, note))
    }
}
