#![no_main]
//! A bundle: any bytes are refused or verified, capture by capture, without a panic.

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use witnessmark::bundle::Bundle;
use witnessmark::catalog::Resolved;
use witnessmark::meter::Meter;
use witnessmark::verify::{Depth, Options, verify};
use witnessmark_fuzz::{Frame, mutate};

fuzz_target!(|bytes: &[u8]| {
    let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let Ok(Ok(bundle)) = Bundle::open(file.path()) else { return };
    let catalog = bundle.catalog();
    for capture in catalog.captures() {
        let resolved = Resolved { capture, manifests: catalog.manifests_of(capture) };
        let options = Options { depth: Depth::Full, model: None, spec: None };
        verify(&catalog, &resolved, options, &Meter::default()).unwrap();
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(Frame::Bundle, data, size, max_size, seed)
});
