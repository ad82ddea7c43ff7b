#![no_main]
//! A rows shard: any bytes are refused, or are exactly those that their rows encode to.

use libfuzzer_sys::fuzz_target;
use witnessmark::shard::rows;

fuzz_target!(|bytes: &[u8]| {
    let Some((&count, file)) = bytes.split_first() else { return };
    if let Ok(rows) = rows::decode(file, u64::from(count)) {
        assert_eq!(rows::encode(&rows), file);
    }
});
