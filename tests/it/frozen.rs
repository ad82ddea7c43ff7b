//! What can never change in version 1. Each value stands here as a literal: a change of the code, be it in two places at once, is seen.
//!
//! The ids of the embedded captures were derived by `specs/reference/verify.py` as well.

use std::fs;

use witnessmark::binding::{self, Mode};
use witnessmark::canon::document;
use witnessmark::canon::json;
use witnessmark::canon::scores::{Canonical, Dtype, SCORE_DIGEST_CONTEXT};
use witnessmark::catalog::Catalog;
use witnessmark::digest::{Blake3, Sha256, hex};
use witnessmark::id::{CaptureId, ObjectId, RequestKey, RowKey, TokenId};
use witnessmark::ingest::{Torn, open_capture};
use witnessmark::log::Log;
use witnessmark::manifest::{self, Act, Codec, Entry, Head, Ref, StoreDocument, Writer};
use witnessmark::merkle::Tree;
use witnessmark::refusal::Rule;
use witnessmark::row::{self, FIELDS, Kind, Phase, Row};
use witnessmark::shard::page::{Compressor, Encoding};
use witnessmark::shard::rows as rows_shard;
use witnessmark::shard::scores::{self as scores_shard, ScoresWriter};
use witnessmark::store::Store;

use super::made_up::{MadeUp, folder, sealed};
use super::support::embedded;

#[test]
fn domains_and_contexts() {
    assert_eq!(row::ROW_DOMAIN, b"witnessmark.row/v1\x00");
    assert_eq!(row::SCORE_DOMAIN, b"witnessmark.score/v1\x00");
    assert_eq!(SCORE_DIGEST_CONTEXT, "witnessmark 2026-11-30 score digest v1");
}

#[test]
fn schema_strings() {
    let found = [
        binding::RUN_SCHEMA,
        manifest::CAPTURE_SCHEMA,
        manifest::MANIFEST_SCHEMA,
        manifest::ENTRY_SCHEMA,
        manifest::HEAD_SCHEMA,
        manifest::STORE_SCHEMA,
        manifest::REF_SCHEMA,
        witnessmark::spec::SPEC_SCHEMA,
    ];
    let expected = [
        "witnessmark.run/v1",
        "witnessmark.capture/v1",
        "witnessmark.manifest/v1",
        "witnessmark.entry/v1",
        "witnessmark.head/v1",
        "witnessmark.store/v1",
        "witnessmark.ref/v1",
        "witnessmark.spec/v1",
    ];
    assert_eq!(found, expected);
}

#[test]
fn fields() {
    let found: Vec<_> = FIELDS.iter().map(|field| (field.tag, field.name, field.kind, field.required)).collect();
    use Kind::{Digest, Int32, Int64, Text};
    let expected = [
        (0, "prompt_index", Int32, true),
        (0, "sample_index", Int32, true),
        (0, "position", Int32, true),
        (1, "request_id", Text, true),
        (2, "phase", Text, true),
        (3, "prefix_sha256", Digest, true),
        (4, "token_id", Int32, true),
        (5, "sampled_token_id", Int32, false),
        (6, "forced_token_id", Int32, false),
        (7, "argmax", Int32, false),
        (8, "runner_up", Int32, false),
        (9, "captured_seq", Int64, false),
        (10, "forced_seq", Int64, false),
        (11, "step", Int64, false),
        (12, "captured_at_ns", Int64, false),
        (13, "forced_at_ns", Int64, false),
        (14, "scores_modified_at_ns", Int64, false),
        (15, "batch_size", Int32, false),
        (16, "query_len", Int32, false),
        (17, "kv_len", Int32, false),
        (18, "scores_sha256", Digest, false),
        (19, "scores_blake3", Digest, false),
        (20, "chain_sha256", Digest, false),
        (21, "run_nonce", Text, false),
        (22, "x", Text, false),
        (23, "score_digest", Digest, false),
    ];
    assert_eq!(found, expected);
}

#[test]
fn names() {
    let dtypes = Dtype::ALL.map(|dtype| (dtype.tag(), dtype.name(), dtype.file_name(), dtype.size()));
    let expected =
        [(1, "bfloat16", "scores.bf16", 2), (2, "float16", "scores.f16", 2), (3, "float32", "scores.f32", 4)];
    assert_eq!(dtypes, expected);
    assert_eq!(Codec::ALL.map(Codec::name), ["zstd", "lz4", "none"]);
    assert_eq!(Phase::ALL.map(Phase::name), ["prefill", "decode", "recomputed"]);
    assert_eq!(Mode::ALL.map(|(name, _)| name), ["baseline", "capture-only", "self-replay", "common-replay"]);
    assert_eq!([Encoding::Plain, Encoding::ByteStreamSplit].map(Encoding::number), [0, 9]);
    assert_eq!((witnessmark::shard::MAGIC, witnessmark::shard::CREATED_BY), (b"PAR1", "witnessmark version 1.0.0"));
    assert_eq!(Writer::this().name, "witnessmark");
}

#[test]
fn limits() {
    assert_eq!(binding::MAX_VOCAB, 16_777_216);
    assert_eq!(manifest::MAX_ROWS, 2_147_483_647);
    assert_eq!(rows_shard::MAX_SHARD_ROWS, 65_536);
    assert_eq!((binding::MAX_RUN_JSON, manifest::MAX_DOCUMENT), (67_108_864, 67_108_864));
    assert_eq!(row::MAX_X, 65_536);
    assert_eq!(row::MAX_NAME, 1024);
    assert_eq!((json::MAX_DEPTH, json::MAX_VALUES), (64, 8_388_608));
    assert_eq!(json::MAX_SAFE_INTEGER, 9_007_199_254_740_991);
    assert_eq!(manifest::MAX_ATTACHMENTS, 65_536);
    assert_eq!((row::MAX_INT32, row::MAX_INT64), (2_147_483_647, 9_223_372_036_854_775_807));
    assert_eq!((rows_shard::CUT_BYTES, scores_shard::CUT_BYTES), (67_108_864, 67_108_864));
}

#[test]
fn the_longest_line_of_rows_jsonl() {
    let folder = folder();
    let made_up = MadeUp { dtype: ("float32", "f32"), scores: vec![0; 4], rows: 1, vocab: 1, masked: Vec::new() };
    made_up.write(folder.path());
    let line = made_up.rows_jsonl()[0].to_string();
    for (len, expected) in [(1_048_576, None), (1_048_577, Some(Rule::LimitExceeded))] {
        fs::write(folder.path().join("rows.jsonl"), format!("{line}{}\n", " ".repeat(len - line.len()))).unwrap();
        let (_, findings) = open_capture(folder.path(), Torn::Refused).unwrap();
        assert_eq!(findings.refusals.first().map(|refusal| refusal.rule), expected, "{len}");
    }
}

/// A JSON document of `len` bytes that is white space but for `{}`.
fn blank(len: usize) -> String {
    format!("{{}}{}", " ".repeat(len - 2))
}

#[test]
fn the_largest_head_entry_ref_and_store_json() {
    const LIMIT: usize = 65_536;
    let folder = folder();
    let store = Store::create(&folder.path().join("store"), "ab".repeat(16)).unwrap();
    for (len, expected) in [(LIMIT, Rule::JsonNotCanonical), (LIMIT + 1, Rule::LimitExceeded)] {
        fs::write(store.root().join("log/head"), blank(len)).unwrap();
        assert_eq!(Log::load(&store).unwrap().refusals[0].rule, expected, "head of {len}");
        fs::remove_file(store.root().join("log/head")).unwrap();

        fs::write(store.root().join("refs/runs/r"), blank(len)).unwrap();
        assert_eq!(Catalog::load(&store).unwrap().refusals[0].rule, expected, "ref of {len}");
        fs::remove_file(store.root().join("refs/runs/r")).unwrap();

        let entry = |tool: usize| Entry {
            act: Act::Seal(CaptureId(Sha256([0; 32])), ObjectId(Blake3([0; 32]))),
            at: "0".to_owned(),
            schema: "witnessmark.entry/v1".to_owned(),
            tool: "x".repeat(tool),
        };
        let without = document::encode(&entry(0)).unwrap().len();
        let line = document::encode(&entry(len - without)).unwrap();
        let mut tree = Tree::default();
        tree.push(&line);
        let head = Head {
            bytes: (len + 1).to_string(),
            origin: store.origin().to_owned(),
            root: tree.root(),
            schema: "witnessmark.head/v1".to_owned(),
            size: 1,
        };
        fs::write(store.root().join("log/entries"), [line.as_slice(), b"\n"].concat()).unwrap();
        fs::write(store.root().join("log/head"), document::encode(&head).unwrap()).unwrap();
        let rules: Vec<Rule> = Log::load(&store).unwrap().refusals.iter().map(|refusal| refusal.rule).collect();
        assert_eq!(rules, if len > LIMIT { vec![expected] } else { Vec::new() }, "entry of {len}");
        fs::remove_file(store.root().join("log/head")).unwrap();
        fs::remove_file(store.root().join("log/entries")).unwrap();
    }
    let text = fs::read_to_string(store.root().join("store.json")).unwrap();
    fs::write(store.root().join("store.json"), format!("{text}{}", " ".repeat(LIMIT))).unwrap();
    assert!(Store::open(store.root()).is_err());
}

#[test]
fn rule_ids() {
    let expected = [
        "not-a-regular-file",
        "path-escape",
        "nothing-to-verify",
        "name-taken",
        "log-inconsistent",
        "signature-invalid",
        "proof-invalid",
        "object-unlisted",
        "object-missing",
        "object-digest",
        "json-not-canonical",
        "schema-invalid",
        "limit-exceeded",
        "tree-size",
        "shard-noncanonical",
        "root-mismatch",
        "torn-capture",
        "scores-short",
        "scores-trailing",
        "rows-misnumbered",
        "run-mixed",
        "request-mismatch",
        "row-missing",
        "replay-truncated",
        "row-duplicated",
        "row-unexpected",
        "vocab-mismatch",
        "output-mismatch",
        "continuation-mismatch",
        "prefix-mismatch",
        "phase-mismatch",
        "sequence-gap",
        "time-order",
        "captured-after-forcing",
        "score-nonfinite",
        "row-duplicated-content",
        "row-swapped",
        "score-witness",
        "argmax-witness",
        "token-not-argmax",
        "model-mismatch",
        "tokenizer-mismatch",
        "binding-missing",
        "engine-unbound",
        "engine-mismatch",
        "execution-mismatch",
        "dtype-mismatch",
        "kv-dtype-mismatch",
        "sampling-mismatch",
        "corpus-mismatch",
        "binding-mismatch",
        "witness-missing",
        "prefix-cache-active",
        "speculation-active",
        "concurrency-not-reached",
        "row-recomputed",
        "record-over-window",
        "spec-not-predeclared",
        "mode-missing",
        "run-reused",
        "gate-not-ratified",
        "coverage-overclaimed",
        "forced-output-claimed",
        "shape-mismatch",
        "score-reused",
        "instrumentation-not-inert",
        "result-mismatch",
        "calibration-contaminated",
        "heldout-opened-early",
    ];
    assert_eq!(Rule::ALL.iter().map(|rule| rule.id()).collect::<Vec<_>>(), expected);
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn documents() {
    let zeros = "0".repeat(64);
    let (capture, manifest) = (CaptureId(Sha256([0; 32])), ObjectId(Blake3([0; 32])));
    let schema = |kind: &str| format!("witnessmark.{kind}/v1");
    let entry = Entry {
        act: Act::Seal(capture, manifest),
        at: "1796035146852887425".to_owned(),
        schema: schema("entry"),
        tool: "t".to_owned(),
    };
    let expected = format!(
        r#"{{"act":"seal","at":"1796035146852887425","capture":"{zeros}","manifest":"{zeros}","schema":"witnessmark.entry/v1","tool":"t"}}"#
    );
    assert_eq!(text(document::encode(&entry).unwrap()), expected);
    let head =
        Head { bytes: "4711".to_owned(), origin: "o".to_owned(), root: capture.0, schema: schema("head"), size: 15 };
    let expected =
        format!(r#"{{"bytes":"4711","origin":"o","root":"{zeros}","schema":"witnessmark.head/v1","size":15}}"#);
    assert_eq!(text(document::encode(&head).unwrap()), expected);
    let store = StoreDocument { origin: "o".to_owned(), schema: schema("store") };
    assert_eq!(text(document::encode(&store).unwrap()), r#"{"origin":"o","schema":"witnessmark.store/v1"}"#);
    let name = Ref { capture, name: "r".to_owned(), schema: schema("ref") };
    let expected = format!(r#"{{"capture":"{zeros}","name":"r","schema":"witnessmark.ref/v1"}}"#);
    assert_eq!(text(document::encode(&name).unwrap()), expected);
    assert_eq!(Store::object_path(&manifest), format!("objects/00/{}", "0".repeat(62)));
}

#[test]
fn a_row_record() {
    let row = Row {
        key: RowKey { request: RequestKey { prompt_index: 1, sample_index: 2 }, position: 3 },
        request_id: "r".into(),
        phase: Phase::Decode,
        token_id: TokenId(258),
        captured_seq: Some(1 << 40),
        score_digest: Some(Blake3([0xbb; 32])),
        ..Row::default()
    };
    let (mut record, mut entry) = (Vec::new(), Vec::new());
    row.write_record(&mut record);
    let key = "010000000200000003000000";
    let domain = "7769746e6573736d61726b2e726f772f763100";
    let fields = [
        "010100000072".to_owned(),
        "02060000006465636f6465".to_owned(),
        format!("0320000000{}", "00".repeat(32)),
        "040400000002010000".to_owned(),
        "09080000000000000000010000".to_owned(),
        format!("1720000000{}", "bb".repeat(32)),
    ];
    assert_eq!(hex(&record), format!("{domain}{key}{}", fields.concat()));
    assert!(row.write_score_entry(&mut entry));
    let domain = "7769746e6573736d61726b2e73636f72652f763100";
    assert_eq!(hex(&entry), format!("{domain}{key}{}{}", "00".repeat(32), "bb".repeat(32)));
}

/// A scores shard of one score, 1.0: every number of the format stands in it once.
#[test]
fn the_smallest_scores_shards() {
    let mut scores = Canonical::default();
    scores.set_from_file_row(Dtype::F32, &1_f32.to_le_bytes());
    let (mut planes, mut body) = (Vec::new(), Vec::new());
    scores.write_planes(&mut planes);
    for (codec, expected) in [(Codec::None, SMALLEST_NONE), (Codec::Zstd, SMALLEST_ZSTD), (Codec::Lz4, SMALLEST_LZ4)] {
        Compressor::new(codec).unwrap().compress(&planes, &mut body).unwrap();
        let mut writer = ScoresWriter::new(Vec::new(), codec, 1).unwrap();
        writer.push_page(&body).unwrap();
        let (file, _) = writer.finish().unwrap();
        assert_eq!(hex(&file), expected.concat(), "{codec:?}");
    }
}

/// Magic, page header, page, offset index, footer up to its row group, the rest of it, its length and the magic.
const SMALLEST_NONE: &[&str] = &[
    "50415231",
    "15001508150815abd6f4b50a1c15021512150615060000",
    "0000803f",
    "191c1608153616000000",
    "1502192c480673636f72657315020015082500180573636f7265001602",
    "191c191c26001c150819151219180573636f72651500160216361636260800163e151400163616020028197769746e6573736d61726b2076657273696f6e20312e302e3000",
    "6200000050415231",
];
const SMALLEST_ZSTD: &[&str] = &[
    "50415231",
    "15001508156815ca888fb00b1c15021512150615060000",
    "28b52ffda0010000000900000028b52ffda0010000000900000028b52ffda0010000000900008028b52ffda0010000000900003f",
    "191c160815960116000000",
    "1502192c480673636f72657315020015082500180573636f7265001602",
    "191c191c26001c150819151219180573636f7265150c16021636169601260800169e01151600163616020028197769746e6573736d61726b2076657273696f6e20312e302e3000",
    "6400000050415231",
];
const SMALLEST_LZ4: &[&str] = &[
    "50415231",
    "15001508150a15c4e8a0b3021c15021512150615060000",
    "400000803f",
    "191c1608153816000000",
    "1502192c480673636f72657315020015082500180573636f7265001602",
    "191c191c26001c150819151219180573636f7265150e1602163616382608001640151400163616020028197769746e6573736d61726b2076657273696f6e20312e302e3000",
    "6200000050415231",
];

#[test]
fn the_smallest_rows_shard() {
    let file = rows_shard::encode(&[Row { request_id: "r".into(), ..Row::default() }]);
    assert_eq!(
        (file.len(), Blake3::of(&file).to_string().as_str()),
        (2243, "819dc0a4b79ff99c1e901722f3f4f45caec3fd565d83fef07cc8d6dcfb9a5fe8")
    );
}

/// Capture id, row root, score root, rows shard, run.json's object, scores shard without compression and its length.
const SEALED: [(&str, [&str; 6], u64); 2] = [
    (
        "oracle-c1-rep0",
        [
            "4b96deea73ad3ce977de159ac2e237146b5069383e98b15b1312b63aa64e46be",
            "4cd6213d10ab6ddd94b13a46851b3c713f3a940411eca49c3b13ec09addd4113",
            "9a70447581c2a8949f5285a7fdbf0f928ba37c5d0dc60061c70f8cfe521232db",
            "e3739f177a98bb04433a801916ef55154cb88520bd48b1b787cb797394dee299",
            "1ebf30e1efe4df9823b3f6e4c0afc5bf158aaac50d1bd95473601c19713adbc9",
            "bc20ae2c9bf3768de171f822d7d41c6c2bc25ca8924fb63dc987695554eaaac3",
        ],
        1_769_980,
    ),
    (
        "oracle-c4-rep0",
        [
            "6a90cb7e909954972cd07dfafcbe0709475cf23b7cdcb89e9e0e9c3ec25ed3bd",
            "7f2d1d0073cd73817f2b8a255708f2041999d9bc5c84314a41d62e2f70bd2e6d",
            "04699c0fe46d39ed9eb66564e45d18699bc721f54c87bded6321c2f346bf6a1d",
            "eb7eb4ea6f1ec2c86dd9e30c74aee56dc46b368a32c9e266d83f53e1fe4a4664",
            "7bc99a923a710e76c597b5c597752d4f751feec61927810cf09abe1cd673d295",
            "9991ef37249f8b6ba6d9ed678478cd1c29933c62106fca53388374db50b1ec32",
        ],
        1_769_981,
    ),
];

#[test]
fn embedded_captures() {
    for (name, [capture, row_root, score_root, rows, run, scores], bytes) in SEALED {
        for codec in Codec::ALL {
            let folder = folder();
            let (_, sealed) = sealed(&folder.path().join("store"), &embedded(name), codec);
            let manifest = &sealed.document;
            assert_eq!(sealed.capture.to_string(), capture, "{name}");
            assert_eq!(manifest.capture.row_root.to_string(), row_root, "{name}");
            assert_eq!(manifest.capture.score_root.unwrap().to_string(), score_root, "{name}");
            assert_eq!((manifest.capture.rows, manifest.capture.vocab_size), (9, Some(49_152)), "{name}");
            assert_eq!(manifest.run_object.to_string(), run, "{name}");
            let [row_shard] = manifest.row_shards.as_slice() else { panic!("{manifest:?}") };
            assert_eq!(row_shard.object.to_string(), rows, "{name}");
            let [score_shard] = manifest.score_shards.as_slice() else { panic!("{manifest:?}") };
            assert_eq!((score_shard.codec, score_shard.rows), (codec, 9), "{name}");
            if codec == Codec::None {
                assert_eq!((score_shard.object.to_string().as_str(), score_shard.bytes), (scores, bytes), "{name}");
            }
        }
    }
}

/// The format document's example is what this program writes.
#[test]
fn the_example_of_the_format_document() {
    let document = std::fs::read_to_string(super::support::root().join("specs/format-v1.md")).unwrap();
    let bench = super::support::Bench::new();
    let dir = super::support::root().join("corpora/example");
    let run = bench.run(&["--json".as_ref(), "seal".as_ref(), "--codec".as_ref(), "none".as_ref(), dir.as_os_str()]);
    let sealed = &run.json()[0];
    let show = &bench.run(&["--json", "show", "example"]).json()[0];
    let capture = &show["manifest"]["capture"];
    let shard = show["manifest"]["score_shards"][0]["object"].as_str().unwrap();
    let bytes = std::fs::read(bench.store().join(format!("objects/{}/{}", &shard[..2], &shard[2..]))).unwrap();
    let hex = witnessmark::digest::hex(&bytes);
    let shown: String =
        document.split("```").find(|block| block.trim().starts_with("50415231")).unwrap().split_whitespace().collect();
    assert_eq!(shown, hex);
    let canonical = witnessmark::canon::document::encode(capture).unwrap();
    assert!(document.contains(std::str::from_utf8(&canonical).unwrap()));
    for value in [&sealed["capture"], &capture["row_root"], &capture["score_root"]] {
        assert!(document.contains(value.as_str().unwrap()), "{value}");
    }
    assert!(document.contains(std::fs::read_to_string(dir.join("rows.jsonl")).unwrap().lines().next().unwrap()));
}
