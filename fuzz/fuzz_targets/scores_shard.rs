#![no_main]
//! A scores shard: any bytes are read or refused, in memory that the vocabulary bounds.

use libfuzzer_sys::fuzz_target;
use witnessmark::canon::scores::Canonical;
use witnessmark::digest::Blake3;
use witnessmark::id::ObjectId;
use witnessmark::manifest::{Codec, ScoreShard};
use witnessmark::shard::page::Decompressor;
use witnessmark::shard::scores::{RawPage, ScoresReader, ScoresWriter, decode_page};

fuzz_target!(|bytes: &[u8]| {
    let Some((&[shape, rows], file)) = bytes.split_first_chunk::<2>() else { return };
    let codec = Codec::ALL[usize::from(shape) % 3];
    let vocab = u32::from(shape / 3) + 1;
    let shard =
        ScoreShard { bytes: file.len() as u64, codec, object: ObjectId(Blake3::of(file)), rows: u64::from(rows) };
    let Ok((mut reader, start)) = ScoresReader::new(file, &shard, vocab) else { return };
    let (mut page, mut room, mut scores) = (RawPage::default(), Vec::new(), Canonical::default());
    let mut decompressor = Decompressor::new().unwrap();
    let mut all = Vec::new();
    let mut good = start.is_ok();
    while good {
        match reader.next_page(&mut page).unwrap() {
            Ok(true) => match decode_page(&page, vocab, &mut decompressor, &mut room) {
                Ok(planes) => {
                    scores.set_from_planes(planes);
                    let _ = (scores.digest(), scores.scan(&[0]));
                    all.push(planes.to_vec());
                }
                Err(_) => good = false,
            },
            Ok(false) => break,
            Err(_) => good = false,
        }
    }
    let (object, end) = reader.finish().unwrap();
    assert_eq!(object, shard.object);
    // Uncompressed shards are decided to the last byte.
    if good && end.is_ok() && codec == Codec::None {
        let mut writer = ScoresWriter::new(Vec::new(), codec, vocab).unwrap();
        for planes in &all {
            writer.push_page(planes).unwrap();
        }
        assert_eq!(writer.finish().unwrap().0, file);
    }
});
