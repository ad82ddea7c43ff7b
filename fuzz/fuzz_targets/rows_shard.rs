#![no_main]
//! A rows shard: any bytes are refused, or are exactly those that their rows encode to; its records are those of the rows.

use libfuzzer_sys::fuzz_target;
use witnessmark::shard::rows::{self, Records};

/// The records of all rows; none where one of them cannot be read.
fn records(file: &[u8], count: u8) -> Option<Vec<Vec<u8>>> {
    let mut records = Records::new(file, u64::from(count)).ok()?;
    let (mut all, mut record) = (Vec::new(), Vec::new());
    while records.next(&mut record).ok()? {
        all.push(record.clone());
    }
    Some(all)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&count, file)) = bytes.split_first() else { return };
    let found = records(file, count);
    if let Ok(rows) = rows::decode(file, u64::from(count)) {
        assert_eq!(rows::encode(&rows), file);
        let mut record = Vec::new();
        let expected = rows.iter().map(|row| {
            row.write_record(&mut record);
            record.clone()
        });
        assert_eq!(found, Some(expected.collect()));
    }
});
