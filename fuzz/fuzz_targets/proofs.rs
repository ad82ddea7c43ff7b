#![no_main]
//! Proofs, notes and checkpoints: any bytes are read or refused; what is read says the same again.

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use witnessmark::note::{Checkpoint, Note, SigningKey, VerifierKey};
use witnessmark::proof::Proof;
use witnessmark::verify::receipt::Receipt;
use witnessmark_fuzz::{Frame, mutate};

fuzz_target!(|bytes: &[u8]| {
    match Proof::parse(bytes) {
        Ok(Proof::Row(proof)) => drop(proof.check()),
        Ok(Proof::Log(proof)) => drop(proof.check()),
        Err(_) => {}
    }
    if let Some(receipt) = Receipt::parse(bytes) {
        assert_eq!(receipt.encode().as_deref(), Ok(bytes));
    }
    if let Ok(note) = Note::parse(bytes)
        && let Ok(checkpoint) = Checkpoint::parse(note.text())
    {
        assert_eq!(Checkpoint::parse(&checkpoint.encode()).as_ref(), Ok(&checkpoint));
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(key) = VerifierKey::parse(text) {
        assert_eq!(key.encode(), text.trim_end());
    }
    if let Ok(key) = SigningKey::parse(text) {
        assert_eq!(key.encode(), text.trim_end());
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(Frame::Lines, data, size, max_size, seed)
});
