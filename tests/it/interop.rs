//! Somebody else's reader: the `parquet` crate reads the sealed shards to exactly what the capture directory holds.
//!
//! Expected values are taken from the source files by the shortest way there is, not by the crate under test.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type};
use parquet::column::page::Page;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::{Value, json};
use tempfile::TempDir;
use witnessmark::digest::hex;
use witnessmark::manifest::Codec;
use witnessmark::store::Store;

use super::made_up::{MadeUp, folder, sealed};
use super::support::embedded;

/// A sealed capture: where its shards are, and what the directory says they must hold.
struct Case {
    folder: TempDir,
    rows_file: PathBuf,
    scores_file: PathBuf,
    codec: Codec,
    vocab: usize,
    /// The scores as bits of f32, row after row in key order
    bits: Vec<Vec<u32>>,
    /// rows.jsonl in key order
    lines: Vec<Value>,
    /// Canonical tag and bytes of each row
    canonical: Vec<Vec<u8>>,
}

fn key(line: &Value) -> [u64; 3] {
    ["prompt_index", "sample_index", "position"].map(|part| line[part].as_u64().unwrap_or(0))
}

/// Widens a value of the scores file. An f16 is widened as a number, since the standard library has no type for it.
fn widen(ending: &str, value: &[u8]) -> u32 {
    match (ending, value) {
        ("f32", &[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
        ("bf16", &[low, high]) => u32::from_le_bytes([0, 0, low, high]),
        ("f16", &[low, high]) => {
            let half = u16::from_le_bytes([low, high]);
            let (exponent, fraction) = (i32::from(half >> 10 & 31), f32::from(half & 1023));
            let value = match exponent {
                0 => fraction * 2_f32.powi(-24),
                31 => f32::INFINITY,
                _ => (1024.0 + fraction) * 2_f32.powi(exponent - 25),
            };
            value.to_bits() | u32::from(half >> 15) << 31
        }
        _ => panic!("{ending}"),
    }
}

fn case(dir: &Path, ending: &str, tag: u8, codec: Codec) -> Case {
    let folder = folder();
    let (store, sealed) = sealed(&folder.path().join("store"), dir, codec);
    let path = |id| store.root().join(Store::object_path(id));
    let [rows, scores] = [sealed.document.row_shards.len(), sealed.document.score_shards.len()];
    assert_eq!((rows, scores), (1, 1));

    let text = fs::read_to_string(dir.join("rows.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let file = fs::read(dir.join(format!("scores.{ending}"))).unwrap();
    let (row_bytes, size) = (file.len() / lines.len(), if ending == "f32" { 4 } else { 2 });
    let mut source: Vec<(Value, &[u8])> = lines.into_iter().zip(file.chunks(row_bytes)).collect();
    source.sort_by_key(|(line, _)| key(line));
    let bits = |row: &[u8]| row.chunks(size).map(|value| widen(ending, value)).collect();
    Case {
        rows_file: path(&sealed.document.row_shards[0].object),
        scores_file: path(&sealed.document.score_shards[0].object),
        codec,
        vocab: row_bytes / size,
        bits: source.iter().map(|(_, row)| bits(row)).collect(),
        canonical: source.iter().map(|(_, row)| [&[tag], *row].concat()).collect(),
        lines: source.into_iter().map(|(line, _)| line).collect(),
        folder,
    }
}

fn arrow(path: &Path) -> ParquetRecordBatchReaderBuilder<File> {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    ParquetRecordBatchReaderBuilder::try_new_with_options(File::open(path).unwrap(), options).unwrap()
}

fn scores_of(batches: impl Iterator<Item = RecordBatch>) -> Vec<u32> {
    let mut bits = Vec::new();
    for batch in batches {
        assert_eq!(batch.column(0).null_count(), 0);
        bits.extend(batch.column(0).as_primitive::<Float32Type>().values().iter().map(|score| score.to_bits()));
    }
    bits
}

/// Bits of the row at `index`, found by the offset index alone.
fn one_row(path: &Path, index: usize, vocab: usize) -> Vec<u32> {
    let only = RowSelection::from(vec![RowSelector::skip(index * vocab), RowSelector::select(vocab)]);
    let reader = arrow(path).with_row_selection(only).with_batch_size(vocab).build().unwrap();
    scores_of(reader.map(Result::unwrap))
}

fn check_pages(path: &Path, values: &[u32], encoding: Encoding) {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let group = reader.get_row_group(0).unwrap();
    let mut pages = 0;
    for column in 0..group.num_columns() {
        for page in group.get_column_page_reader(column).unwrap() {
            let Page::DataPage {
                num_values, encoding: found, def_level_encoding, rep_level_encoding, statistics, ..
            } = page.unwrap()
            else {
                panic!("another page than v1 data")
            };
            assert_eq!((num_values, found), (values[pages], encoding));
            assert_eq!((def_level_encoding, rep_level_encoding), (Encoding::RLE, Encoding::RLE));
            assert!(statistics.is_none());
            pages += 1;
        }
    }
    assert_eq!(pages, values.len());
}

fn check_common(metadata: &ParquetMetaData, name: &str, rows: usize) {
    let file = metadata.file_metadata();
    assert_eq!(file.created_by(), Some("witnessmark version 1.0.0"));
    assert_eq!((file.version(), file.schema().name()), (1, name));
    assert_eq!(usize::try_from(file.num_rows()).unwrap(), rows);
    assert!(file.key_value_metadata().is_none());
    assert_eq!(metadata.num_row_groups(), 1);
    let group = metadata.row_group(0);
    assert_eq!(usize::try_from(group.num_rows()).unwrap(), rows);
    assert_eq!(group.total_byte_size(), group.columns().iter().map(|column| column.uncompressed_size()).sum::<i64>());
    for column in group.columns() {
        assert_eq!(column.num_values(), group.num_rows());
        assert!(column.statistics().is_none() && column.dictionary_page_offset().is_none());
    }
}

fn check_scores(case: &Case) {
    let path = &case.scores_file;
    let (rows, vocab) = (case.bits.len(), case.vocab);
    let builder = arrow(path);
    let metadata = Arc::clone(builder.metadata());
    check_common(&metadata, "scores", rows * vocab);
    let column = metadata.row_group(0).column(0);
    let codec = match case.codec {
        Codec::None => Compression::UNCOMPRESSED,
        Codec::Zstd => Compression::ZSTD(Default::default()),
        Codec::Lz4 => Compression::LZ4_RAW,
    };
    assert_eq!(column.compression(), codec);
    assert_eq!(column.encodings().collect::<Vec<_>>(), [Encoding::BYTE_STREAM_SPLIT]);
    let description = column.column_descr();
    assert_eq!((description.name(), description.physical_type()), ("score", Type::FLOAT));
    assert_eq!(description.self_type().get_basic_info().repetition(), Repetition::REQUIRED);

    let all: Vec<u32> = case.bits.iter().flatten().copied().collect();
    assert!(scores_of(builder.build().unwrap().map(Result::unwrap)) == all, "scores differ");
    check_pages(path, &vec![u32::try_from(vocab).unwrap(); rows], Encoding::BYTE_STREAM_SPLIT);

    // One location a row; pages lie one after the other from the magic to the index.
    let index = metadata.page_index_for_row_group(0);
    let locations = index.page_locations(0).unwrap();
    assert_eq!(locations.len(), rows);
    let mut end = 4;
    for (n, location) in locations.iter().enumerate() {
        assert_eq!(usize::try_from(location.first_row_index).unwrap(), n * vocab);
        assert_eq!(location.offset, end);
        end += i64::from(location.compressed_page_size);
    }
    assert_eq!(column.compressed_size() + 4, end);
    let whole = fs::read(path).unwrap();
    let damaged = case.folder.path().join("damaged.parquet");
    for (n, row) in case.bits.iter().enumerate() {
        // With the other pages gone, the row is still there: a location is all that it takes.
        let [start, len] = [locations[n].offset, i64::from(locations[n].compressed_page_size)];
        let [start, end, last] = [start, start + len, end].map(|at| usize::try_from(at).unwrap());
        let mut file = whole.clone();
        file[4..start].fill(0xff);
        file[end..last].fill(0xff);
        fs::write(&damaged, &file).unwrap();
        assert!(one_row(&damaged, n, vocab) == *row, "row {n}");

        // And its CRC is looked at.
        file.clone_from(&whole);
        file[end - 1] ^= 1;
        check_crc(&damaged, &file);
    }
}

fn check_crc(path: &Path, damaged: &[u8]) {
    fs::write(path, damaged).unwrap();
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let group = reader.get_row_group(0).unwrap();
    let mut pages = (0..group.num_columns()).flat_map(|column| group.get_column_page_reader(column).unwrap());
    let error = pages.find_map(Result::err).expect("no page CRC");
    assert!(error.to_string().contains("CRC"), "{error}");
}

/// What the column `name` must hold for a line of rows.jsonl.
fn expected(name: &str, line: &Value, canonical: &[u8]) -> Value {
    match name {
        "sample_index" => line.get(name).cloned().unwrap_or(json!(0)),
        "score_digest" => {
            let digest =
                blake3::Hasher::new_derive_key("witnessmark 2026-11-30 score digest v1").update(canonical).finalize();
            json!(digest.to_hex().as_str())
        }
        // serde_json sorts keys, and these cases have ASCII keys and plain strings only.
        "x" if line[name].is_object() => json!(line[name].to_string()),
        _ => line[name].clone(),
    }
}

fn found(column: &dyn Array, row: usize) -> Value {
    use arrow_array::types::ArrowPrimitiveType;
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        kind if *kind == Int32Type::DATA_TYPE => json!(column.as_primitive::<Int32Type>().value(row)),
        kind if *kind == Int64Type::DATA_TYPE => json!(column.as_primitive::<Int64Type>().value(row)),
        _ => match column.as_fixed_size_binary_opt() {
            Some(digests) => json!(hex(digests.value(row))),
            None => json!(column.as_string::<i32>().value(row)),
        },
    }
}

fn check_rows(case: &Case) {
    let builder = arrow(&case.rows_file);
    let metadata = Arc::clone(builder.metadata());
    check_common(&metadata, "rows", case.lines.len());
    let columns = metadata.row_group(0).columns();
    for column in columns {
        assert_eq!(column.compression(), Compression::UNCOMPRESSED);
        let description = column.column_descr();
        let optional = description.self_type().get_basic_info().repetition() == Repetition::OPTIONAL;
        let encodings: Vec<Encoding> = column.encodings().collect();
        let both = vec![Encoding::PLAIN, Encoding::RLE];
        assert_eq!(encodings, if optional { both } else { vec![Encoding::PLAIN] });
        if description.physical_type() == Type::BYTE_ARRAY {
            assert_eq!(description.logical_type_ref(), Some(&LogicalType::String));
        }
    }
    let batches: Vec<RecordBatch> = builder.build().unwrap().map(Result::unwrap).collect();
    let [batch] = batches.as_slice() else { panic!("{} batches", batches.len()) };
    let schema = batch.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    for (n, (line, canonical)) in case.lines.iter().zip(&case.canonical).enumerate() {
        // Every key of the line is a column, and nothing else has a value.
        let mut all: BTreeMap<&str, Value> =
            line.as_object().unwrap().keys().map(|key| (key.as_str(), Value::Null)).collect();
        all.remove("row");
        for (name, column) in names.iter().zip(batch.columns()) {
            assert_eq!(found(column, n), expected(name, line, canonical), "{name} of row {n}");
            all.remove(name);
        }
        assert!(all.is_empty(), "no column for {all:?}");
    }
    check_pages(&case.rows_file, &vec![u32::try_from(case.lines.len()).unwrap(); names.len()], Encoding::PLAIN);

    let damaged = case.folder.path().join("damaged.parquet");
    for column in columns {
        let (start, len) = column.byte_range();
        let mut file = fs::read(&case.rows_file).unwrap();
        file[usize::try_from(start + len - 1).unwrap()] ^= 1;
        check_crc(&damaged, &file);
    }
}

#[test]
fn embedded_captures_with_every_codec() {
    for name in ["oracle-c1-rep0", "oracle-c4-rep0"] {
        for codec in Codec::ALL {
            let case = case(&embedded(name), "bf16", 1, codec);
            assert_eq!((case.bits.len(), case.vocab), (9, 49_152));
            check_scores(&case);
            check_rows(&case);
        }
    }
}

/// Made-up captures: `value` gives the bytes of the score at (row, token).
fn check_made_up(dtype: (&'static str, &'static str), tag: u8, vocab: u32, value: impl Fn(u32, u32) -> Vec<u8>) {
    const ROWS: u32 = 17;
    let cells = (0..ROWS).flat_map(|row| (0..vocab).map(move |token| (row, token)));
    let scores = cells.flat_map(|(row, token)| value(row, token)).collect();
    let made_up = MadeUp { dtype, scores, rows: ROWS, vocab, masked: Vec::new() };
    let folder = folder();
    made_up.write(folder.path());
    // Lines out of order, and values of every type that rows can have.
    let size = if dtype.1 == "f32" { 4 } else { 2 };
    let row_bytes = usize::try_from(vocab).unwrap() * size;
    let mut source: Vec<(Value, Vec<u8>)> =
        made_up.rows_jsonl().into_iter().zip(made_up.scores.chunks(row_bytes).map(<[u8]>::to_vec)).collect();
    source[3].0["x"] = json!({"note": "kept", "b": -7});
    source[4].0["captured_at_ns"] = json!(9_223_372_036_854_775_807_u64);
    source[5].0["batch_size"] = json!(2_147_483_647);
    source[6].0["scores_modified_at_ns"] = Value::Null;
    source.reverse();
    for (n, (line, _)) in source.iter_mut().enumerate() {
        line["row"] = json!(n);
    }
    let lines: String = source.iter().map(|(line, _)| format!("{line}\n")).collect();
    fs::write(folder.path().join("rows.jsonl"), lines).unwrap();
    fs::write(
        folder.path().join(format!("scores.{}", dtype.1)),
        source.into_iter().flat_map(|s| s.1).collect::<Vec<u8>>(),
    )
    .unwrap();
    for codec in Codec::ALL {
        let case = case(folder.path(), dtype.1, tag, codec);
        check_scores(&case);
        check_rows(&case);
    }
}

#[test]
fn true_f32() {
    let value = |row: u32, token: u32| match (row, token) {
        (_, 0) => f32::MIN_POSITIVE / 4.0 + f32::from_bits(row + 1),
        (0, 1) => -0.0,
        (1, 1) => f32::MAX,
        (2, 1) => f32::MIN,
        (3, 1) => f32::from_bits(0x8000_0001),
        _ => 0.1 + f32::from_bits(0x3f80_0000 + row * 1013 + token * 7),
    };
    for vocab in [1, 3, 1000] {
        check_made_up(("float32", "f32"), 3, vocab, |row, token| value(row, token).to_le_bytes().to_vec());
    }
}

#[test]
fn values_of_f16() {
    // The first of each row is one that bf16 cannot hold; then all kinds: zeros, subnormals, the largest.
    let value = |row: u32, token: u32| match token {
        0 => 0x2e61 + u16::try_from(row * 2).unwrap(),
        1 => [0x8000, 0x0000, 0x0001, 0x83ff, 0x7bff, 0xfbff][usize::try_from(row % 6).unwrap()],
        _ => u16::try_from((row * 977 + token * 31) % 0x7c00).unwrap() | u16::try_from(token % 2).unwrap() << 15,
    };
    for vocab in [1, 3, 500] {
        check_made_up(("float16", "f16"), 2, vocab, |row, token| value(row, token).to_le_bytes().to_vec());
    }
}

#[test]
fn odd_vocabularies_of_bf16() {
    for vocab in [1, 3] {
        check_made_up(("bfloat16", "bf16"), 1, vocab, |row, token| {
            u16::try_from(0x3f80 + row * 3 + token).unwrap().to_le_bytes().to_vec()
        });
    }
}

#[test]
fn masked_scores() {
    let folder = folder();
    let dir = folder.path().join("capture");
    let rows = [[f32::NEG_INFINITY, 0.1], [f32::NEG_INFINITY, 0.2]];
    let scores = rows.iter().flatten().flat_map(|score| score.to_le_bytes()).collect();
    MadeUp { dtype: ("float32", "f32"), scores, rows: 2, vocab: 2, masked: vec![0] }.write(&dir);
    let case = case(&dir, "f32", 3, Codec::Zstd);
    check_scores(&case);
}
