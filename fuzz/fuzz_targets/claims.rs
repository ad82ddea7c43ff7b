#![no_main]
//! What claims are made of: specs are read without a panic; results, calibrations and prompts encode to the very bytes they were read from.

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use serde::{Serialize, de::DeserializeOwned};
use witnessmark::canon::document::{decode, encode};
use witnessmark::qualify::calibration::CalibrationDocument;
use witnessmark::qualify::result::ResultDocument;
use witnessmark::spec::{CorpusDocument, Spec};
use witnessmark_fuzz::{Frame, mutate};

fn check<T: Serialize + DeserializeOwned>(bytes: &[u8]) {
    if let Ok(value) = decode::<T>(bytes) {
        assert_eq!(encode(&value).as_deref(), Ok(bytes));
    }
}

fuzz_target!(|bytes: &[u8]| {
    check::<ResultDocument>(bytes);
    check::<CalibrationDocument>(bytes);
    check::<CorpusDocument>(bytes);
    if let Ok(spec) = std::str::from_utf8(bytes).map_err(drop).and_then(|text| Spec::parse(text).map_err(drop)) {
        drop((spec.open(), spec.calibration_needs()));
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(Frame::Spec, data, size, max_size, seed)
});
