#![no_main]
//! Documents: what is read encodes to the very bytes it was read from.

use libfuzzer_sys::fuzz_target;
use serde::{Serialize, de::DeserializeOwned};
use witnessmark::canon::document::{decode, encode};
use witnessmark::manifest::{CaptureDocument, Entry, Head, Manifest, Ref, StoreDocument};
use witnessmark::qualify::result::ResultDocument;
use witnessmark::spec::{CorpusDocument, Spec};

fn check<T: Serialize + DeserializeOwned>(bytes: &[u8]) {
    if let Ok(value) = decode::<T>(bytes) {
        assert_eq!(encode(&value).as_deref(), Ok(bytes));
    }
}

fuzz_target!(|bytes: &[u8]| {
    check::<Manifest>(bytes);
    check::<CaptureDocument>(bytes);
    check::<Entry>(bytes);
    check::<Head>(bytes);
    check::<Ref>(bytes);
    check::<StoreDocument>(bytes);
    check::<ResultDocument>(bytes);
    check::<CorpusDocument>(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        drop(Spec::parse(text));
    }
});
