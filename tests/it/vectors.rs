//! The vectors of the Python reference, each against the function that decides it: `specs/format-v1.md`, section 11.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use witnessmark::binding::Course;
use witnessmark::binding::Run;
use witnessmark::canon::document;
use witnessmark::canon::json::Json;
use witnessmark::canon::scores::{Canonical, Dtype, Scan};
use witnessmark::digest::{Blake3, Sha256, hex};
use witnessmark::facts::Facts;
use witnessmark::id::{ObjectId, RequestKey, RowKey, TokenId};
use witnessmark::log::Log;
use witnessmark::manifest::{CaptureDocument, Codec, Entry, Head, ScoreShard};
use witnessmark::merkle::{
    Size, Tree, consistency_path, inclusion_path, is_consistent, leaf_hash, root_from_inclusion,
};
use witnessmark::proof::Proof;
use witnessmark::refusal::Rule;
use witnessmark::row::{self, Interner, Row};
use witnessmark::rule::{Evidence, ScoreEvidence, judge_some};
use witnessmark::shard::page::{Compressor, Decompressor};
use witnessmark::shard::scores::{RawPage, ScoresReader, ScoresWriter, decode_page};
use witnessmark::shard::{ShardFault, rows as rows_shard};
use witnessmark::store::{Store, ref_file_name};
use witnessmark::verify::Depth;
use witnessmark::verify::sample::Sample;

use super::made_up::{MadeUp, folder, object, refused_as_manifest, sealed};
use super::support;

fn read(name: &str) -> Vec<u8> {
    fs::read(support::root().join("corpora/vectors").join(name)).unwrap()
}

fn vectors(name: &str) -> Value {
    serde_json::from_slice(&read(name)).unwrap()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    let items = value[key].as_array().unwrap();
    assert!(!items.is_empty(), "{key}");
    items
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} of {value}"))
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key} of {value}"))
}

fn unhex(digits: &str) -> Vec<u8> {
    (0..digits.len() / 2).map(|n| u8::from_str_radix(&digits[2 * n..2 * n + 2], 16).unwrap()).collect()
}

/// A row of scores, written as eight digits a value, as it stands in a file of float32.
fn f32_file(row: &Value) -> Vec<u8> {
    let bits = row.as_array().unwrap().iter().map(|digits| u32::from_str_radix(digits.as_str().unwrap(), 16).unwrap());
    bits.flat_map(u32::to_le_bytes).collect()
}

fn canonical(file: &[u8]) -> Canonical {
    let mut scores = Canonical::default();
    scores.set_from_file_row(Dtype::F32, file);
    scores
}

/// A row as vectors write it: an object of rows.jsonl that may have a score digest besides.
fn parse_row(value: &Value) -> Row {
    let mut object = value.as_object().unwrap().clone();
    let digest = object.remove("score_digest");
    let json = Json::parse(Value::Object(object).to_string().as_bytes()).unwrap();
    let (mut row, _) = Row::from_json(&json, &mut Interner::default()).unwrap_or_else(|e| panic!("{value}: {e:?}"));
    row.score_digest = digest.map(|digest| digest.as_str().unwrap().parse().unwrap());
    row
}

fn mth(entries: &[Vec<u8>]) -> String {
    let mut tree = Tree::default();
    entries.iter().for_each(|entry| tree.push(entry));
    tree.root().to_string()
}

#[test]
fn canonical_scores() {
    let vectors = vectors("canonical-scores.json");
    let vectors = vectors.as_array().unwrap();
    assert!(vectors.len() >= 20, "{}", vectors.len());
    for vector in vectors {
        let name = text(vector, "name");
        let file = f32_file(&vector["f32"]);
        let scores = canonical(&file);
        assert_eq!(u64::from(scores.dtype().tag()), number(vector, "tag"), "{name}");
        assert_eq!(hex(scores.bytes()), text(vector, "canonical"), "{name}");
        assert_eq!(scores.digest().to_string(), text(vector, "score_digest"), "{name}");

        // By way of the page, and of the file in its own dtype, it is the same.
        let mut planes = Vec::new();
        scores.write_planes(&mut planes);
        let by_definition: Vec<u8> = (0..4).flat_map(|k| file.iter().skip(k).step_by(4).copied()).collect();
        assert_eq!(planes, by_definition, "{name}");
        let mut again = Canonical::default();
        again.set_from_planes(&planes);
        assert_eq!((again.dtype(), again.bytes()), (scores.dtype(), scores.bytes()), "{name}");
        again.set_from_file_row(scores.dtype(), scores.bytes());
        assert_eq!((again.dtype(), again.bytes()), (scores.dtype(), scores.bytes()), "{name}");

        let masked: &[u32] = if name.starts_with("masked:") { &[0] } else { &[] };
        assert_eq!(scores.scan(masked).nonfinite > 0, name.starts_with("refused:"), "{name}");
        if !masked.is_empty() {
            assert!(scores.scan(&[]).nonfinite > 0, "{name}, not masked");
        }
    }
}

#[test]
fn row_records() {
    let vectors = vectors("row-records.json");
    let (mut rows, mut record, mut entry) = (Vec::new(), Vec::new(), Vec::new());
    for vector in list(&vectors, "rows") {
        let name = text(vector, "name");
        let row = parse_row(&vector["row"]);
        row.write_record(&mut record);
        assert_eq!(hex(&record), text(vector, "record"), "{name}");
        assert_eq!(leaf_hash(&record).to_string(), text(vector, "leaf"), "{name}");
        let scored = row.write_score_entry(&mut entry);
        assert_eq!(scored.then(|| hex(&entry)).as_deref(), vector["score_entry"].as_str(), "{name}");
        rows.push(row);
    }
    assert!(rows.is_sorted_by_key(|row| row.key));
    let (row_root, score_root) = row::roots(&rows);
    assert_eq!(row_root.to_string(), text(&vectors, "row_root"));
    assert_eq!(score_root.unwrap().to_string(), text(&vectors, "score_root_of_those_with_a_score_digest"));
}

#[test]
fn trees() {
    for vector in vectors("trees.json").as_array().unwrap() {
        let entries: Vec<Vec<u8>> = list(vector, "entries").iter().map(|e| unhex(e.as_str().unwrap())).collect();
        assert_eq!(mth(&entries), text(vector, "mth"), "{} entries", entries.len());
    }
}

/// The rows of a chain, the run they belong to, and what the rule says of them.
fn judge_chain(nonce: &Value, links: &[Value]) -> Vec<Rule> {
    let baseline = links[0]["scores_sha256"].is_null();
    let (mode, count) = (if baseline { "baseline" } else { "capture-only" }, links.len());
    let scores = json!({"dtype": "float32", "rows": count, "vocab_size": 1});
    let request = json!({"request_id": "r", "prompt_index": 0, "prompt_token_ids": [],
                         "output_token_ids": links.iter().map(|link| link["token_id"].clone()).collect::<Vec<_>>()});
    let run = json!({"schema": "witnessmark.run/v1", "run_id": "chain", "run_nonce": nonce, "mode": mode,
                     "scores": if baseline { Value::Null } else { scores }, "requests": [request]});
    let run = Run::parse(run.to_string().as_bytes()).unwrap();
    let key = |position| RowKey { request: RequestKey { prompt_index: 0, sample_index: 0 }, position };
    let row = |(link, position): (&Value, u32)| Row {
        key: key(position),
        request_id: Arc::from("r"),
        prefix_sha256: text(link, "prefix_sha256").parse().unwrap(),
        token_id: TokenId(u32::try_from(number(link, "token_id")).unwrap()),
        captured_seq: Some(u64::from(position)),
        chain_sha256: Some(text(link, "chain_sha256").parse().unwrap()),
        run_nonce: nonce.as_str().map(Arc::from),
        ..Row::default()
    };
    let rows: Vec<Row> = links.iter().zip(0..).map(row).collect();
    let fact = |link: &Value| Facts {
        digest: Blake3([0; 32]),
        scan: Scan { argmax: 0, max: 0.0, max_count: 1, second: 0.0, nonfinite: 0, first_nonfinite: None },
        at_argmax: None,
        at_runner_up: None,
        at_token: None,
        at_sampled: None,
        file_sha256: link["scores_sha256"].as_str().map(|digest| digest.parse().unwrap()),
        fits_declared_dtype: true,
    };
    let facts: Vec<Option<Facts>> = links.iter().map(fact).map(Some).collect();
    let scores = (!baseline).then_some(ScoreEvidence { facts: &facts, f32_sha256: None });
    let evidence = Evidence {
        run: &run,
        rows: &rows,
        scores,
        continuations: &|_, _, _| Course::Unseen,
        elsewhere: &|_| std::collections::BTreeMap::new(),
    };
    // The links are no whole capture: other rules would be named first.
    let findings = judge_some(&evidence, &|rule| rule == Rule::RunMixed);
    assert!(!findings.notes.iter().any(|note| note.text.starts_with("run-mixed")), "{:?}", findings.notes);
    findings.refusals.iter().map(|refusal| refusal.rule).collect()
}

#[test]
fn chains() {
    for vector in vectors("chain.json").as_array().unwrap() {
        let links = list(vector, "links");
        assert_eq!(judge_chain(&vector["run_nonce"], links), [], "{vector}");
        for n in 0..links.len() {
            for key in ["prefix_sha256", "token_id", "scores_sha256", "chain_sha256"] {
                let mut bad = links.to_vec();
                bad[n][key] = match &bad[n][key] {
                    Value::String(_) => json!("ab".repeat(32)),
                    Value::Number(_) => json!(77),
                    _ => continue,
                };
                assert_eq!(judge_chain(&vector["run_nonce"], &bad), [Rule::RunMixed], "{key} of link {n}");
            }
        }
        let other = if vector["run_nonce"].is_null() { json!("x") } else { Value::Null };
        assert_eq!(judge_chain(&other, links), [Rule::RunMixed], "another nonce");
    }
}

fn digests(value: &Value, key: &str) -> Vec<Sha256> {
    value[key].as_array().unwrap().iter().map(|digest| digest.as_str().unwrap().parse().unwrap()).collect()
}

fn checks(proof: &Value) -> bool {
    match Proof::parse(proof.as_str().unwrap().as_bytes()) {
        Ok(Proof::Row(proof)) => proof.check().is_ok(),
        Ok(Proof::Log(proof)) => proof.check().is_ok(),
        Err(_) => false,
    }
}

#[test]
fn proofs() {
    let vectors = vectors("proofs.json");
    let leaves: Vec<Sha256> = (0..9).map(|n| leaf_hash(n.to_string().as_bytes())).collect();
    let size_of = |vector: &Value, key: &str| usize::try_from(number(vector, key)).unwrap();
    for vector in list(&vectors, "inclusion") {
        let (size, index, path) = (size_of(vector, "size"), number(vector, "index"), digests(vector, "path"));
        assert_eq!(inclusion_path(&leaves[..size], index), Some(path.clone()), "{vector}");
        let leaf = leaves[size_of(vector, "index")];
        let root = root_from_inclusion(leaf, index, number(vector, "size"), &path);
        assert_eq!(root.unwrap().to_string(), text(vector, "root"), "{vector}");
    }
    for vector in list(&vectors, "consistency") {
        let (new, path) = (size_of(vector, "new_size"), digests(vector, "path"));
        assert_eq!(consistency_path(&leaves[..new], number(vector, "old_size")), Some(path.clone()), "{vector}");
        let state = |size, root| Size { size: number(vector, size), root: text(vector, root).parse().unwrap() };
        assert!(is_consistent(state("old_size", "old_root"), state("new_size", "new_root"), &path), "{vector}");
    }
    assert!(list(&vectors, "rows").iter().chain(list(&vectors, "logs")).all(checks));
    for vector in list(&vectors, "refuse") {
        assert!(!checks(&vector["text"]), "{}", text(vector, "why"));
    }
    for vector in list(&vectors, "samples") {
        let sample =
            Sample { ppm: number(vector, "ppm").try_into().unwrap(), seed: text(vector, "seed").parse().unwrap() };
        let drawn = sample.draw(text(vector, "capture").parse().unwrap(), size_of(vector, "rows"));
        assert_eq!(json!(drawn), vector["drawn"], "{vector}");
    }
}

fn raw(vector: &Value) -> Vec<u8> {
    vector["hex"].as_str().map_or_else(|| text(vector, "text").as_bytes().to_vec(), unhex)
}

#[test]
fn canonical_json() {
    let vectors = vectors("canonical-json.json");
    for vector in list(&vectors, "encode") {
        let (json, canonical) = (text(vector, "json"), text(vector, "canonical"));
        assert_eq!(Json::parse(json.as_bytes()).unwrap().to_canonical().unwrap(), canonical, "{json}");
        document::decode::<Value>(canonical.as_bytes()).unwrap();
    }
    for text in list(&vectors, "documents") {
        let text = text.as_str().unwrap();
        let value: Value = document::decode(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(document::encode(&value).unwrap(), text.as_bytes());
    }
    for vector in list(&vectors, "refuse_as_document") {
        assert!(document::decode::<Value>(&raw(vector)).is_err(), "{vector}");
        let canonical = Json::parse(&raw(vector)).and_then(|json| json.to_canonical());
        assert_ne!(canonical.ok().map(String::into_bytes), Some(raw(vector)), "{vector}");
    }
    for vector in list(&vectors, "refuse_as_foreign") {
        assert!(Json::parse(&raw(vector)).is_err(), "{vector}");
    }
    for text in list(&vectors, "accept_as_foreign") {
        assert!(Json::parse(text.as_str().unwrap().as_bytes()).is_ok(), "{text}");
    }
}

#[test]
fn capture_documents() {
    let vectors = vectors("capture-document.json");
    for vector in list(&vectors, "documents") {
        let name = text(vector, "name");
        let typed: CaptureDocument = serde_json::from_value(vector["document"].clone()).unwrap();
        let canonical = text(vector, "canonical").as_bytes();
        assert_eq!(document::encode(&typed).unwrap(), canonical, "{name}");
        assert_eq!(document::decode::<CaptureDocument>(canonical).unwrap(), typed, "{name}");
        assert_eq!(typed.id().unwrap().to_string(), text(vector, "capture_id"), "{name}");
        assert_eq!(Sha256::of(canonical).to_string(), text(vector, "capture_id"), "{name}");
    }
}

/// Attachments of a manifest that is whole in everything else.
fn refused_attachments(folder: &TempDir, paths: &[&Value]) -> Vec<Rule> {
    let store = Store::open(&folder.path().join("store")).unwrap();
    let manifest = fs::read(folder.path().join("manifest")).unwrap();
    let mut manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let attachment = |path: &&Value| json!({"blake3": Blake3::of(b"").to_string(), "bytes": 0, "path": path});
    manifest["capture"]["attachments"] = paths.iter().map(attachment).collect();
    let bytes = document::encode(&manifest).unwrap();
    refused_as_manifest(&store, &bytes, Depth::Rows).into_iter().map(|refusal| refusal.rule).collect()
}

#[test]
fn attachment_paths() {
    let folder = folder();
    let made_up = MadeUp { dtype: ("float32", "f32"), scores: vec![0; 4], rows: 1, vocab: 1, masked: Vec::new() };
    made_up.write(&folder.path().join("capture"));
    let (store, sealed) = sealed(&folder.path().join("store"), &folder.path().join("capture"), Codec::None);
    fs::write(folder.path().join("manifest"), object(&store, &sealed.manifest)).unwrap();

    let vectors = vectors("capture-document.json");
    for vector in list(&vectors, "documents") {
        let paths: Vec<&Value> =
            vector["document"]["attachments"].as_array().unwrap().iter().map(|a| &a["path"]).collect();
        assert_eq!(refused_attachments(&folder, &paths), [], "{paths:?}");
    }
    for paths in list(&vectors, "refuse_attachment_paths") {
        let paths: Vec<&Value> = paths.as_array().unwrap().iter().collect();
        let rules = refused_attachments(&folder, &paths);
        let expected = if paths.len() > 1 { Rule::JsonNotCanonical } else { Rule::PathEscape };
        assert_eq!(rules, [expected], "{paths:?}");
    }
}

#[test]
fn logs() {
    let vectors = vectors("log.json");
    let lines: Vec<&str> = list(&vectors, "entries").iter().map(|entry| entry.as_str().unwrap()).collect();
    for line in &lines {
        let entry: Entry = document::decode(line.as_bytes()).unwrap();
        assert!(entry.sealed().is_some());
        assert_eq!(document::encode(&entry).unwrap(), line.as_bytes());
    }
    let folder = folder();
    let store = Store::create(&folder.path().join("store"), text(&vectors, "origin").to_owned()).unwrap();
    let load = |entries: &str, head: &Value| {
        fs::write(store.root().join("log/entries"), entries).unwrap();
        fs::write(store.root().join("log/head"), text(head, "canonical")).unwrap();
        Log::load(&store).unwrap()
    };
    let whole: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let heads = list(&vectors, "heads");
    for (n, head) in (1..).zip(heads) {
        let typed: Head = document::decode(text(head, "canonical").as_bytes()).unwrap();
        assert_eq!(document::encode(&typed).unwrap(), text(head, "canonical").as_bytes());
        assert_eq!(serde_json::to_value(&typed).unwrap(), head["head"]);
        let log = load(&whole, head);
        assert_eq!(log.refusals, [], "{n}");
        assert_eq!(log.entries.len(), n);
        assert_eq!(log.root(), typed.root, "{n}");
    }
    let unfinished = text(&vectors, "unfinished_append");
    let size = usize::try_from(number(&vectors, "unfinished_append_size")).unwrap();
    let log = load(unfinished, &heads[size - 1]);
    assert_eq!((log.entries.len(), log.refusals.as_slice()), (size, [].as_slice()));
    let rules: Vec<Rule> = load(unfinished, &heads[size]).refusals.into_iter().map(|refusal| refusal.rule).collect();
    assert_eq!(rules, [Rule::LogInconsistent]);
}

#[test]
fn ref_names() {
    for vector in list(&vectors("log.json"), "refs") {
        assert_eq!(ref_file_name(text(vector, "run_id")), text(vector, "file"), "{vector}");
    }
}

/// A frame of raw blocks, as format section 8.2 spells it.
fn raw_frame(plane: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    frame.extend(u32::try_from(plane.len()).unwrap().to_le_bytes());
    let blocks: Vec<&[u8]> = plane.chunks(131_072).collect();
    for (n, block) in blocks.iter().enumerate() {
        let header = u32::try_from(block.len()).unwrap() << 3 | u32::from(n + 1 == blocks.len());
        frame.extend(&header.to_le_bytes()[..3]);
        frame.extend(*block);
    }
    frame
}

#[test]
fn raw_frames() {
    let mut seed = 1_u32;
    let mut noise = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed.to_le_bytes()[3]
    };
    for vector in list(&vectors("shards.json"), "raw_frames") {
        let len = usize::try_from(number(vector, "plane_bytes")).unwrap();
        let plane: Vec<u8> = (0..251).cycle().take(len).collect();
        let frame = raw_frame(&plane);
        assert_eq!(u64::try_from(frame.len()).unwrap(), number(vector, "frame_bytes"), "{len}");
        assert_eq!(Blake3::of(&frame).to_string(), text(vector, "blake3"), "{len}");
        let mut planes = vec![0; len * 4];
        Decompressor::new().unwrap().decompress(Codec::Zstd, &frame.repeat(4), &mut planes).unwrap();
        assert!(planes == plane.repeat(4), "{len}");

        // What the writer stores raw is what zstd cannot compress.
        let planes: Vec<u8> = (0..len * 4).map(|_| noise()).collect();
        let mut body = Vec::new();
        Compressor::new(Codec::Zstd).unwrap().compress(&planes, &mut body).unwrap();
        let expected: Vec<u8> = planes.chunks(len).flat_map(raw_frame).collect();
        assert!(body == expected, "{len}");
    }
}

/// All that the reader of a scores shard looks at, but the object id.
fn read_scores(file: &[u8], codec: Codec, rows: u64, vocab: u32) -> Result<Vec<Vec<u8>>, ShardFault> {
    let bytes = u64::try_from(file.len()).unwrap();
    let shard = ScoreShard { bytes, codec, object: ObjectId(Blake3([0; 32])), rows };
    let (mut reader, start) = ScoresReader::new(file, &shard, vocab).unwrap();
    start?;
    let (mut page, mut room, mut out) = (RawPage::default(), Vec::new(), Vec::new());
    let mut decompressor = Decompressor::new().unwrap();
    while reader.next_page(&mut page).unwrap()? {
        out.push(decode_page(&page, vocab, &mut decompressor, &mut room)?.to_vec());
    }
    let (id, good) = reader.finish().unwrap();
    assert_eq!(id.0, Blake3::of(file));
    good.map(|()| out)
}

/// `file` with each listed byte changed, by every bit alone, by all at once, and to every other value where the file is small.
fn flips(file: &[u8], offsets: &Value) -> Vec<(usize, Vec<u8>)> {
    let offsets: Vec<usize> =
        offsets.as_array().unwrap().iter().map(|at| usize::try_from(at.as_u64().unwrap()).unwrap()).collect();
    assert_eq!(offsets, (0..file.len()).collect::<Vec<_>>(), "every byte is listed");
    let few = [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0xff, 0x41].to_vec();
    let masks = if file.len() < 1000 { (1..=0xff).collect() } else { few };
    let flip = |at: usize, mask: u8| {
        let mut bad = file.to_vec();
        bad[at] ^= mask;
        (at, bad)
    };
    offsets.iter().flat_map(|&at| masks.iter().map(move |&mask| flip(at, mask))).collect()
}

fn other_lengths(file: &[u8]) -> [Vec<u8>; 4] {
    let (head, tail) = file.split_at(4);
    [[file, &[0]].concat(), file[..file.len() - 1].to_vec(), Vec::new(), [head, &[0], tail].concat()]
}

fn shard(file: &str) -> (Vec<u8>, Value) {
    let vectors = vectors("shards.json");
    let vector = list(&vectors, "shards").iter().find(|vector| vector["file"] == file).unwrap().clone();
    let bytes = read(file);
    assert_eq!(u64::try_from(bytes.len()).unwrap(), number(&vector, "bytes"));
    assert_eq!(Blake3::of(&bytes).to_string(), text(&vector, "blake3"));
    (bytes, vector)
}

fn check_scores_shard(file: &str, codec: Codec) {
    let (bytes, vector) = shard(file);
    assert_eq!(text(&vector, "codec"), codec.name());
    let vocab = u32::try_from(number(&vector, "vocab_size")).unwrap();
    let rows: Vec<Canonical> = list(&vector, "scores").iter().map(|row| canonical(&f32_file(row))).collect();
    let count = u64::try_from(rows.len()).unwrap();

    let mut writer = ScoresWriter::new(Vec::new(), codec, vocab).unwrap();
    let mut compressor = Compressor::new(codec).unwrap();
    let (mut planes, mut body, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for row in &rows {
        row.write_planes(&mut planes);
        compressor.compress(&planes, &mut body).unwrap();
        writer.push_page(&body).unwrap();
        expected.push(planes.clone());
    }
    let (written, said) = writer.finish().unwrap();
    assert!(written == bytes, "{file}: written otherwise");
    let object = ObjectId(text(&vector, "blake3").parse().unwrap());
    assert_eq!(said, ScoreShard { bytes: number(&vector, "bytes"), codec, object, rows: count });

    assert_eq!(read_scores(&bytes, codec, count, vocab).unwrap(), expected);
    for (at, bad) in flips(&bytes, &vector["flips"]) {
        assert!(read_scores(&bad, codec, count, vocab).is_err(), "{file}: byte {at} as {:02x}", bad[at]);
    }
    for bad in other_lengths(&bytes) {
        assert!(read_scores(&bad, codec, count, vocab).is_err(), "{file}: {} bytes", bad.len());
    }
    for (codec, count, vocab) in [(Codec::Lz4, count, vocab), (codec, count + 1, vocab), (codec, count, vocab + 1)] {
        assert!(read_scores(&bytes, codec, count, vocab).is_err(), "{codec:?} {count} {vocab}");
    }
}

#[test]
fn scores_shard_none() {
    check_scores_shard("scores-none.parquet", Codec::None);
}

#[test]
fn scores_shard_zstd() {
    check_scores_shard("scores-zstd.parquet", Codec::Zstd);
}

#[test]
fn rows_shard() {
    let (bytes, vector) = shard("rows.parquet");
    let rows: Vec<Row> = list(&vector, "rows").iter().map(parse_row).collect();
    let count = u64::try_from(rows.len()).unwrap();
    assert!(rows_shard::encode(&rows) == bytes, "written otherwise");
    assert_eq!(rows_shard::decode(&bytes, count).unwrap(), rows);
    for (at, bad) in flips(&bytes, &vector["flips"]) {
        assert!(rows_shard::decode(&bad, count).is_err(), "byte {at} as {:02x}", bad[at]);
    }
    for bad in other_lengths(&bytes) {
        assert!(rows_shard::decode(&bad, count).is_err(), "{} bytes", bad.len());
    }
    for count in [count - 1, count + 1] {
        assert!(rows_shard::decode(&bytes, count).is_err(), "{count} rows");
    }
}
