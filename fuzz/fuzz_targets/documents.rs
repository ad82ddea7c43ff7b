#![no_main]
//! Sealed documents: what is read encodes to the very bytes it was read from, and an entry of the log is read as any document is.

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use serde::{Serialize, de::DeserializeOwned};
use witnessmark::canon::document::{decode, encode};
use witnessmark::manifest::{CaptureDocument, Entry, Head, Manifest, Ref, StoreDocument};
use witnessmark_fuzz::{Frame, mutate};

fn check<T: Serialize + DeserializeOwned>(bytes: &[u8]) {
    if let Ok(value) = decode::<T>(bytes) {
        assert_eq!(encode(&value).as_deref(), Ok(bytes));
    }
}

fuzz_target!(|bytes: &[u8]| {
    check::<Manifest>(bytes);
    check::<CaptureDocument>(bytes);
    check::<Head>(bytes);
    check::<Ref>(bytes);
    check::<StoreDocument>(bytes);
    check::<Entry>(bytes);
    assert_eq!(Entry::decode(bytes), decode(bytes));
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(Frame::Lines, data, size, max_size, seed)
});
