#![no_main]
//! The log: any entries and any head are read or refused; an append to a sound log leaves a sound log.

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use std::fs;
use witnessmark::digest::{Blake3, Sha256};
use witnessmark::id::{CaptureId, Nanos, ObjectId};
use witnessmark::log::Log;
use witnessmark::manifest::Act;
use witnessmark::store::Store;
use witnessmark_fuzz::{Frame, mutate};

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let root = folder.path().join("s");
    let store = Store::create(&root, "00112233445566778899aabbccddeeff".to_owned()).unwrap();
    let cut = bytes.iter().position(|&byte| byte == 0xff).unwrap_or(bytes.len());
    let (head, entries) = bytes.split_at(cut);
    fs::write(root.join("log/head"), head).unwrap();
    fs::write(root.join("log/entries"), entries.get(1..).unwrap_or_default()).unwrap();
    let log = Log::load(&store).unwrap();
    let act = Act::Seal(CaptureId(Sha256::of(b"c")), ObjectId(Blake3::of(b"m")));
    if Log::append(&store, &[act], Nanos(1), "fuzz").is_ok() {
        let after = Log::load(&store).unwrap();
        assert!(log.refusals.is_empty() && after.refusals.is_empty());
        assert_eq!(&after.entries[..log.entries.len()], &log.entries[..]);
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(Frame::Lines, data, size, max_size, seed)
});
