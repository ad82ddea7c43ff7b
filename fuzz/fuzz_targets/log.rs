#![no_main]
//! The log: any entries and any head are read or refused; an append to a sound log leaves a sound log.

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use std::fs;
use std::sync::LazyLock;

use witnessmark::canon::document;
use witnessmark::digest::{Blake3, Sha256};
use witnessmark::id::{CaptureId, Nanos, ObjectId};
use witnessmark::log::Log;
use witnessmark::manifest::{Act, HEAD_SCHEMA, Head};
use witnessmark::merkle::Tree;
use witnessmark::store::Store;
use witnessmark_fuzz::{Frame, mutate};

/// One for all inputs: to make a store takes longer than to read a log.
static STORE: LazyLock<Store> = LazyLock::new(|| {
    let root = tempfile::tempdir_in("/dev/shm").unwrap().keep().join("s");
    Store::create(&root, "00112233445566778899aabbccddeeff".to_owned()).unwrap()
});

fn head_of(entries: &[u8]) -> Vec<u8> {
    let mut tree = Tree::default();
    entries.split_inclusive(|&byte| byte == b'\n').for_each(|line| tree.push(line.strip_suffix(b"\n").unwrap_or(line)));
    let (bytes, origin, schema) = (entries.len().to_string(), STORE.origin().to_owned(), HEAD_SCHEMA.to_owned());
    document::encode(&Head { bytes, origin, root: tree.root(), schema, size: tree.size() }).unwrap()
}

fuzz_target!(|bytes: &[u8]| {
    let (root, store) = (STORE.root(), &*STORE);
    let _none = fs::remove_dir_all(root.join("log/tile"));
    let cut = bytes.iter().position(|&byte| byte == 0xff).unwrap_or(bytes.len());
    let (head, entries) = bytes.split_at(cut);
    let entries = entries.get(1..).unwrap_or_default();
    // Without a head the one that fits: entries alone decide.
    let head = if head.is_empty() { head_of(entries) } else { head.to_vec() };
    fs::write(root.join("log/head"), head).unwrap();
    fs::write(root.join("log/entries"), entries).unwrap();
    let log = Log::load(store).unwrap();
    let act = Act::Seal(CaptureId(Sha256::of(b"c")), ObjectId(Blake3::of(b"m")));
    if Log::append(store, &[act], Nanos(1), "fuzz").is_ok() {
        let after = Log::load(store).unwrap();
        assert!(log.refusals.is_empty() && after.refusals.is_empty());
        assert_eq!(&after.entries[..log.entries.len()], &log.entries[..]);
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(Frame::Lines, data, size, max_size, seed)
});
