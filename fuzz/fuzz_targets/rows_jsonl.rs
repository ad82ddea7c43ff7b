#![no_main]
//! A line of rows.jsonl: any bytes are read or refused; a row that is read survives its shard.

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use witnessmark::canon::json::Json;
use witnessmark::row::{Interner, Row};
use witnessmark::shard::rows;
use witnessmark_fuzz::{Frame, mutate};

fuzz_target!(|bytes: &[u8]| {
    let mut interner = Interner::default();
    let lines = bytes.split(|&byte| byte == b'\n').filter_map(|line| Json::parse(line).ok());
    let mut all: Vec<Row> =
        lines.filter_map(|json| Row::from_json(&json, &mut interner).ok()).map(|(row, _)| row).collect();
    all.sort_by_key(|row| row.key);
    let count = all.len() as u64;
    assert_eq!(rows::decode(&rows::encode(&all), count).as_ref(), Ok(&all));
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(Frame::Lines, data, size, max_size, seed)
});
