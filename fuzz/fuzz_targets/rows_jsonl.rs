#![no_main]
//! A line of rows.jsonl: any bytes are read or refused; a row that is read survives its shard.

use libfuzzer_sys::fuzz_target;
use witnessmark::canon::json::Json;
use witnessmark::row::{Interner, Row};
use witnessmark::shard::rows;

fuzz_target!(|bytes: &[u8]| {
    let mut interner = Interner::default();
    let lines = bytes.split(|&byte| byte == b'\n').filter_map(|line| Json::parse(line).ok());
    let mut all: Vec<Row> = lines.filter_map(|json| Row::from_json(&json, &mut interner).ok()).map(|(row, _)| row).collect();
    all.sort_by_key(|row| row.key);
    let count = all.len() as u64;
    assert_eq!(rows::decode(&rows::encode(&all), count).as_ref(), Ok(&all));
});
