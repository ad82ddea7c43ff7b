#![no_main]
//! run.json: any bytes are read or refused; what is read prints as JSON that reads the same.

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use witnessmark::binding::Run;
use witnessmark::canon::json::Json;
use witnessmark_fuzz::{Frame, mutate};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(json) = Json::parse(bytes) {
        assert_eq!(Json::parse(json.to_text().as_bytes()).as_ref(), Ok(&json));
        if let Ok(canonical) = json.to_canonical() {
            let again = Json::parse(canonical.as_bytes()).and_then(|json| json.to_canonical());
            assert_eq!(again.as_ref(), Ok(&canonical));
        }
    }
    if let Ok(run) = Run::parse(bytes) {
        let _ = (run.bindings(), run.unbound(), run.requests_by_key());
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(Frame::Lines, data, size, max_size, seed)
});
