//! The JSON Schemas against the Rust types, both ways: each knows the keys of the other, and what one refuses the other refuses.
//!
//! Values are put into a good document place by place. Where a schema cannot say what the format says, the place and the reason stand in a
//! list here, and that the program refuses it is checked.

use std::collections::BTreeSet;
use std::fs;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use witnessmark::binding::{DESCRIBED, IDENTIFYING, Run};
use witnessmark::bundle::{self, Bundle};
use witnessmark::canon::document;
use witnessmark::canon::json::Json;
use witnessmark::catalog::Catalog;
use witnessmark::digest::{Blake3, Sha256};
use witnessmark::id::{RequestKey, RowKey};
use witnessmark::log::Log;
use witnessmark::manifest::{BundleHeader, CaptureDocument, Codec, Entry, Head, Manifest, Ref, StoreDocument};
use witnessmark::merkle::Tree;
use witnessmark::meter::Meter;
use witnessmark::proof::{LogProof, Proof, RowProof};
use witnessmark::prove::prove_row;
use witnessmark::row::{FIELDS, Interner, Row};
use witnessmark::seal::Sealed;
use witnessmark::shard::rows as rows_shard;
use witnessmark::store::{Store, ref_file_name};
use witnessmark::verify::receipt::Receipt;
use witnessmark::verify::sample::Sample;
use witnessmark::verify::{Depth, Options, verify};

use super::made_up::{MadeUp, folder, object, refused_as_manifest, sealed};
use super::support::{self, embedded};

const BASE: &str = "https://example.org/";
const NAMES: [&str; 16] = [
    "act",
    "bundle",
    "calibration",
    "capture",
    "corpus",
    "entry",
    "head",
    "log-proof",
    "manifest",
    "proof",
    "receipt",
    "ref",
    "result",
    "row",
    "run",
    "store",
];

fn schema_json(name: &str) -> Value {
    let path = support::root().join(format!("schemas/{name}.schema.json"));
    serde_json::from_str(&fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))).unwrap()
}

/// A compiled schema.
pub(crate) struct Schema {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Schema {
    pub(crate) fn new(name: &str) -> Self {
        let mut compiler = Compiler::new();
        for name in NAMES.into_iter().chain((!NAMES.contains(&name)).then_some(name)) {
            compiler.add_resource(&format!("{BASE}{name}.schema.json"), schema_json(name)).unwrap();
        }
        let mut schemas = Schemas::new();
        let index = compiler
            .compile(&format!("{BASE}{name}.schema.json"), &mut schemas)
            .unwrap_or_else(|e| panic!("{name}: {e:#}"));
        Self { schemas, index }
    }

    fn takes(&self, value: &Value) -> bool {
        self.schemas.validate(value, self.index).is_ok()
    }

    pub(crate) fn must_take(&self, value: &Value) {
        self.schemas.validate(value, self.index).unwrap_or_else(|e| panic!("{value}: {e:#}"));
    }
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn strings(value: &Value) -> BTreeSet<&str> {
    value.as_array().unwrap().iter().map(|item| item.as_str().unwrap()).collect()
}

/// Values to put into places: every type, and both sides of every limit.
fn values() -> Vec<Value> {
    let digest = "0123456789abcdef".repeat(4);
    let mut values = vec![json!(null), json!(true), json!(false), json!([]), json!({}), json!({"a": 1}), json!([null])];
    for n in [0, 1, 64 << 20, (64 << 20) + 1, 1 << 24, (1 << 24) + 1, 65_536, 65_537] {
        values.push(json!(n));
    }
    for n in [i64::from(i32::MAX), 1 << 31, (1 << 53) - 1, 1 << 53, i64::MAX, -1, i64::MIN] {
        values.push(json!(n));
    }
    // boon compares as f64, which has no 2^63 beside 2^63 − 1; `the_largest_int64` asks for that.
    values.extend([json!((1_u64 << 63) + 4096), json!(u64::MAX), json!(0.5), json!(-0.5), json!(1e300)]);
    values.extend([json!([0, 1]), json!([1.5]), json!([-1]), json!([1_u64 << 31]), json!([true]), json!(["a"])]);
    values.extend([json!([{}]), json!([{"path": "a", "sha256": digest}]), json!([{"path": "a"}])]);
    for text in
        ["", "a", "0", "1", "01", "-1", "12a", "9223372036854775807", "zstd", "seal", "greedy", "prefill", "oracle"]
    {
        values.push(json!(text));
    }
    for path in
        ["a/b", "/a", "a/", "a//b", "..", ".", "a/../b", "a\\b", "c:", "a\u{1f}", "...", "\u{7f}", "a\n", "rows.jsonl"]
    {
        values.push(json!(path));
    }
    for text in
        ["scores.bf16", "scores.f32", "float32", "bfloat16", "little", "baseline", "common-replay", "stop", "engine"]
    {
        values.push(json!(text));
    }
    let (upper, short, long) = (digest.to_uppercase(), &digest[1..], format!("{digest}0"));
    for text in [digest.as_str(), &upper, short, &long, &format!("{digest}\n"), &digest[32..], &digest[31..]] {
        values.push(json!(text));
    }
    values.extend([json!("x".repeat(1024)), json!("x".repeat(1025))]);
    values
}

/// Every place in a document, as a JSON pointer.
fn places(value: &Value) -> Vec<String> {
    fn walk(value: &Value, here: &str, out: &mut Vec<String>) {
        let below: Vec<(String, &Value)> = match value {
            Value::Object(members) => members.iter().map(|(key, value)| (format!("{here}/{key}"), value)).collect(),
            Value::Array(items) => {
                (0..).zip(items).map(|(n, item): (usize, _)| (format!("{here}/{n}"), item)).collect()
            }
            _ => Vec::new(),
        };
        for (place, value) in below {
            walk(value, &place, out);
            out.push(place);
        }
    }
    let mut out = Vec::new();
    walk(value, "", &mut out);
    out
}

fn put(good: &Value, place: &str, value: &Value) -> Value {
    let mut changed = good.clone();
    *changed.pointer_mut(place).unwrap() = value.clone();
    changed
}

fn without(good: &Value, place: &str) -> Option<Value> {
    let (parent, key) = place.rsplit_once('/').unwrap();
    let mut changed = good.clone();
    changed.pointer_mut(parent)?.as_object_mut()?.remove(key)?;
    Some(changed)
}

/// The document with one more key in the object at `place`, with `value`.
fn with_more(good: &Value, place: &str, value: Value) -> Option<Value> {
    let mut changed = good.clone();
    changed.pointer_mut(place)?.as_object_mut()?.insert("more".to_owned(), value);
    Some(changed)
}

/// `good` with every value at every place, without every key, and with one key more in every object.
fn variants(good: &Value) -> Vec<(String, Value)> {
    let mut out = Vec::new();
    for place in places(good) {
        out.extend(values().into_iter().map(|value| (format!("{place} = {value}"), put(good, &place, &value))));
        out.extend(without(good, &place).map(|changed| (format!("{place} left out"), changed)));
    }
    for place in places(good).into_iter().chain([String::new()]) {
        for value in [json!(1), Value::Null] {
            let what = format!("{place}/more = {value}");
            out.extend(with_more(good, &place, value).map(|changed| (what, changed)));
        }
    }
    assert!(out.len() > 50);
    out
}

#[test]
fn every_schema_is_here_and_compiles() {
    let folder = support::root().join("schemas");
    let files = support::files(&folder);
    let found: BTreeSet<&str> = files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
    for name in NAMES {
        assert!(found.contains(format!("{name}.schema.json").as_str()), "{name}");
        assert!(!Schema::new(name).takes(&json!({})) && !Schema::new(name).takes(&json!([])));
    }
    for file in found {
        Schema::new(file.strip_suffix(".schema.json").expect(file));
    }
}

// ---- rows.jsonl ----

#[test]
fn row_schema_has_the_fields() {
    let schema = schema_json("row");
    let known = FIELDS.iter().filter(|field| field.name != "score_digest");
    let names: BTreeSet<&str> = known.clone().map(|field| field.name).chain(["row"]).collect();
    assert_eq!(keys(&schema["properties"]), names);
    let required = known.filter(|field| field.required && field.name != "sample_index");
    assert_eq!(strings(&schema["required"]), required.map(|field| field.name).collect());
    assert_eq!(schema["additionalProperties"], json!(false));
}

fn parse_row(value: &Value) -> Result<Row, String> {
    let json = Json::parse(value.to_string().as_bytes()).map_err(|error| error.to_string())?;
    let row = Row::from_json(&json, &mut Interner::default());
    row.map(|(row, _)| row).map_err(|faults| format!("{faults:?}"))
}

fn full_row() -> Value {
    let digest = "ab".repeat(32);
    json!({
        "row": 0, "request_id": "r", "prompt_index": 1, "sample_index": 2, "position": 3, "phase": "decode",
        "prefix_sha256": digest, "token_id": 4, "sampled_token_id": 5, "forced_token_id": 6, "argmax": 7, "runner_up": 8,
        "captured_seq": 9, "forced_seq": 10, "step": 11, "captured_at_ns": 12, "forced_at_ns": 13,
        "scores_modified_at_ns": 14, "batch_size": 15, "query_len": 16, "kv_len": 17, "scores_sha256": digest,
        "scores_blake3": digest, "chain_sha256": digest, "run_nonce": "n", "x": {"text": "a", "number": -1},
    })
}

#[test]
fn row_schema_and_parser_agree() {
    let schema = Schema::new("row");
    let good = full_row();
    assert_eq!(keys(&good), keys(&schema_json("row")["properties"]));
    schema.must_take(&good);
    let row = parse_row(&good).unwrap();
    assert!((0..FIELDS.len() - 1).all(|index| row.get(index).is_some()));
    let mut taken = 0;
    for (what, changed) in variants(&good) {
        let parsed = parse_row(&changed);
        assert_eq!(schema.takes(&changed), parsed.is_ok(), "{what}: {parsed:?}");
        taken += u32::from(parsed.is_ok());
    }
    assert!(taken > 300, "{taken}");
}

#[test]
fn rows_beyond_the_schema() {
    let schema = Schema::new("row");
    let texts = [
        (r#""token_id": 4"#, r#""token_id": 4.0"#, "an integer is written without fraction"),
        (r#""token_id": 4"#, r#""token_id": 4e0"#, "and without exponent"),
        (r#""token_id": 4"#, r#""token_id": -0"#, "and -0 is none"),
        (r#""token_id": 4"#, r#""x": {"a": 1.0}, "token_id": 4"#, "in x too"),
        (r#""token_id": 4"#, r#""x": {"A": 1, "a": 2}, "token_id": 4"#, "keys differ in more than letter case"),
    ];
    let good = r#"{"prompt_index": 0, "position": 0, "request_id": "r", "phase": "prefill", "token_id": 4, "prefix_sha256": "DIGEST"}"#;
    let good = good.replace("DIGEST", &"ab".repeat(32));
    let parse = |text: &str| {
        let json = Json::parse(text.as_bytes()).ok()?;
        Row::from_json(&json, &mut Interner::default()).ok()
    };
    assert!(parse(&good).is_some());
    for (from, to, why) in texts {
        let text = good.replace(from, to);
        schema.must_take(&serde_json::from_str(&text).unwrap());
        assert!(parse(&text).is_none(), "{why}: {text}");
    }
    for (key, value) in [
        ("request_id", json!("é".repeat(1023))),
        ("run_nonce", json!("é".repeat(513))),
        ("x", json!({"a": "x".repeat(65_536 - 7)})),
    ] {
        let mut changed = full_row();
        changed[key] = value;
        schema.must_take(&changed);
        assert!(parse_row(&changed).is_err(), "{key}: lengths are of bytes");
    }
    let mut longest = full_row();
    longest["x"] = json!({"a": "x".repeat(65_536 - 8)});
    longest["request_id"] = json!("é".repeat(512));
    parse_row(&longest).unwrap();
}

#[test]
fn the_largest_int64() {
    for (key, schema) in [("step", schema_json("row")), ("captured_seq", schema_json("row"))] {
        let reference = schema["properties"][key]["$ref"].as_str().unwrap().trim_start_matches('#');
        assert_eq!(schema.pointer(reference).unwrap()["maximum"], json!(i64::MAX), "{key}");
        assert!(parse_row(&put(&full_row(), &format!("/{key}"), &json!(i64::MAX))).is_ok());
        assert!(parse_row(&put(&full_row(), &format!("/{key}"), &json!(1_u64 << 63))).is_err());
    }
}

#[test]
fn rows_of_the_embedded_captures() {
    let schema = Schema::new("row");
    for name in ["oracle-c1-rep0", "oracle-c4-rep0"] {
        for line in fs::read_to_string(embedded(name).join("rows.jsonl")).unwrap().lines() {
            let value = serde_json::from_str(line).unwrap();
            schema.must_take(&value);
            let row = parse_row(&value).unwrap();
            let again = rows_shard::decode(&rows_shard::encode(std::slice::from_ref(&row)), 1).unwrap();
            assert_eq!(again, [row]);
        }
    }
}

/// What rows.jsonl may not say, a rows shard may not hold.
#[test]
fn cells_of_a_rows_shard() {
    let good = parse_row(&full_row()).unwrap();
    let holds = |row: &Row| rows_shard::decode(&rows_shard::encode(std::slice::from_ref(row)), 1).is_ok();
    assert!(holds(&good));
    let change = |how: &dyn Fn(&mut Row)| {
        let mut row = good.clone();
        how(&mut row);
        row
    };
    for x in [
        "",
        "{",
        "[]",
        "1",
        "null",
        "{ }",
        r#"{"b":1,"a":2}"#,
        r#"{"a":null}"#,
        r#"{"a":{}}"#,
        r#"{"a":1.5}"#,
        r#"{"a":"\u0041"}"#,
        r#"{"a":-0}"#,
    ] {
        assert!(!holds(&change(&|row| row.x = Some(x.into()))), "{x}");
    }
    for x in ["{}", r#"{"a":-1,"b":"é"}"#] {
        assert!(holds(&change(&|row| row.x = Some(x.into()))), "{x}");
    }
    for name in [String::new(), "x".repeat(1025)] {
        assert!(!holds(&change(&|row| row.request_id = name.as_str().into())), "{name}");
        assert!(!holds(&change(&|row| row.run_nonce = Some(name.as_str().into()))), "{name}");
    }
    assert!(!holds(&change(&|row| row.key.position = 1 << 31)));
    assert!(!holds(&change(&|row| row.kv_len = Some(1 << 31))));
    assert!(!holds(&change(&|row| row.step = Some(1 << 63))));
}

// ---- run.json ----

fn parse_run(value: &Value) -> Result<Run, String> {
    Run::parse(value.to_string().as_bytes()).map_err(|refusals| format!("{refusals:?}"))
}

fn full_run() -> Value {
    let digest = "ab".repeat(32);
    let files = json!([{"path": "a/b.gguf", "sha256": digest, "bytes": 1}]);
    json!({
        "schema": "witnessmark.run/v1", "run_id": "run", "run_nonce": "n", "role": "oracle", "mode": "common-replay",
        "extraction": "adapter",
        "engine": {"name": "e", "version": "1", "commit": "c", "binary_sha256": digest, "framework": "f", "attention": "sdpa",
                   "execution": "eager"},
        "model": {"id": "m", "files": files, "weights_dtype": "bfloat16", "kv_dtype": "bfloat16", "transform": null},
        "tokenizer": {"source": "s", "files": files, "vocab_size": 3},
        "corpus": {"sha256": digest},
        "sampling": {"method": "greedy", "tie": "lowest id", "temperature": 0.0, "seed": 1, "max_new_tokens": 2,
                     "ignore_eos": true},
        "eos_token_ids": [2],
        "schedule": {"requested_concurrency": 1, "slots": 1, "step": 512, "prefix_caching": false, "speculation": "none",
                     "batching": "static"},
        "device": {"kind": "cuda", "name": "d", "runtime": "r"},
        "scores": {"kind": "logits", "semantic_point": "p", "file": "scores.f16", "dtype": "float16", "byte_order": "little",
                   "rows": 2, "vocab_size": 3, "masked_token_ids": [0, 2], "f32_sha256_at_capture": digest},
        "requests": [{"request_id": "q", "prompt_index": 0, "sample_index": 0, "prompt": "text", "prompt_token_ids": [1, 2],
                      "output_token_ids": [0, 1], "finish_reason": "length", "positions": [0, 1],
                      "continuation": {"run_id": "other", "request_id": "q", "token_ids": [0, 1]}}],
        "rows": "rows.jsonl",
        "cut_from": {"run_json_sha256": digest, "note": "n"},
    })
}

/// Keys of a schema's properties, nested ones as dotted paths.
fn property_paths(schema: &Value, root: &Value) -> BTreeSet<String> {
    let target = match schema["$ref"].as_str() {
        Some(reference) => root.pointer(reference.trim_start_matches('#')).unwrap(),
        None => schema,
    };
    let mut out = BTreeSet::new();
    for (key, property) in target["properties"].as_object().into_iter().flatten() {
        let below = property_paths(property, root);
        out.extend(below.into_iter().map(|path| format!("{key}.{path}")));
        out.insert(key.clone());
    }
    if target["items"].is_object() {
        out.extend(property_paths(&target["items"], root));
    }
    out
}

/// Keys of a document, nested ones as dotted paths, through arrays.
fn document_paths(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Object(members) => {
            let below = members.iter().flat_map(|(key, value)| {
                document_paths(value).into_iter().map(move |path| format!("{key}.{path}")).chain([key.clone()])
            });
            below.collect()
        }
        Value::Array(items) => items.iter().flat_map(document_paths).collect(),
        _ => BTreeSet::new(),
    }
}

#[test]
fn run_schema_has_the_bindings() {
    let schema = schema_json("run");
    let paths = property_paths(&schema, &schema);
    let mut known = document_paths(&full_run());
    // What a corpus is, is free.
    known.remove("corpus.sha256");
    assert_eq!(paths, known, "keys of the schema and of the full run of these tests");
    for path in IDENTIFYING {
        assert!(paths.contains(path), "{path}");
        assert!(parse_run(&full_run()).unwrap().binding(path).is_some(), "{path}");
    }
    // Files and requests are one value each.
    let inner = |path: &&String| path.starts_with("requests.") || path.contains(".files.");
    let is_table = |path: &&String| paths.iter().any(|other| !inner(&other) && other.starts_with(&format!("{path}.")));
    let described: Vec<&String> = paths.iter().filter(|path| !inner(path) && !is_table(path)).collect();
    assert_eq!(DESCRIBED.to_vec(), described);
}

/// Where the parser takes what the schema refuses, since something else refuses it later; and where it is the other way round.
fn only_later(what: &str) -> Option<&'static str> {
    let (place, value) = what.split_once(" = ")?;
    let number: Option<u64> = value.parse().ok();
    match place {
        "/scores/rows" if number.is_some_and(|n| (1 << 31..1 << 63).contains(&n)) => Some("seal counts the rows"),
        "/scores/vocab_size" if number.is_some_and(|n| n > 1 << 24 && n < 1 << 63) => {
            Some("seal refuses: limit-exceeded")
        }
        _ => None,
    }
}

fn beyond_the_schema(what: &str) -> Option<&'static str> {
    match what {
        "/requests/0/positions/0 = 1" | "/scores/masked_token_ids/0 = 2" => Some("uniqueItems says the same"),
        _ if what.starts_with("/scores/masked_token_ids/") || what.starts_with("/requests/0/positions/") => {
            Some("strictly ascending, and below the length of the output")
        }
        "/requests/0/output_token_ids = []" | "/requests/0/output_token_ids = [true]" => Some("positions lie below it"),
        _ => None,
    }
}

#[test]
fn run_schema_and_parser_agree() {
    let schema = Schema::new("run");
    let good = full_run();
    schema.must_take(&good);
    parse_run(&good).unwrap();
    let mut taken = 0;
    for (what, changed) in variants(&good) {
        let parsed = parse_run(&changed);
        match (schema.takes(&changed), parsed.is_ok()) {
            (false, true) => assert!(only_later(&what).is_some(), "{what}: only the schema refuses"),
            (true, false) => assert!(beyond_the_schema(&what).is_some(), "{what}: only the parser refuses: {parsed:?}"),
            (both, _) => {
                assert_eq!(only_later(&what), None, "{what}");
                taken += u32::from(both);
            }
        }
    }
    assert!(taken > 1000, "{taken}");
}

#[test]
fn run_modes_and_continuations() {
    let schema = Schema::new("run");
    let agree = |changed: &Value| {
        let parsed = parse_run(changed);
        assert_eq!(schema.takes(changed), parsed.is_ok(), "{changed}: {parsed:?}");
        parsed.is_ok()
    };
    let mut taken = 0;
    for mode in ["baseline", "capture-only", "self-replay", "common-replay"] {
        for scores in [json!(null), full_run()["scores"].clone()] {
            let mut changed = put(&full_run(), "/mode", &json!(mode));
            changed["scores"] = scores;
            taken += u32::from(agree(&changed));
            taken += u32::from(agree(&without(&changed, "/scores").unwrap()));
        }
    }
    assert_eq!(taken, 3 + 3, "a baseline with null, or twice without; the others with");
    for (dtype, ending) in [("bfloat16", "bf16"), ("float16", "f16"), ("float32", "f32")] {
        let changed = put(&full_run(), "/scores/dtype", &json!(dtype));
        for file in ["bf16", "f16", "f32"] {
            assert_eq!(agree(&put(&changed, "/scores/file", &json!(format!("scores.{file}")))), file == ending);
        }
    }
    let some = [Value::Null, json!("r"), json!(1)];
    let tokens = [Value::Null, json!([0]), json!("0")];
    let mut taken = 0;
    for run_id in &some {
        for request_id in &some {
            for token_ids in &tokens {
                let continuation = json!({"run_id": run_id, "request_id": request_id, "token_ids": token_ids});
                taken += u32::from(agree(&put(&full_run(), "/requests/0/continuation", &continuation)));
                let absent: Map<String, Value> = continuation
                    .as_object()
                    .unwrap()
                    .clone()
                    .into_iter()
                    .filter(|(_, value)| !value.is_null())
                    .collect();
                agree(&put(&full_run(), "/requests/0/continuation", &Value::Object(absent)));
            }
        }
    }
    assert_eq!(taken, 3);
}

/// What `seal` refuses although `Run::parse` does not.
#[test]
fn run_json_that_only_seal_refuses() {
    let bench = support::Bench::new();
    let made_up = MadeUp { dtype: ("float32", "f32"), scores: vec![0; 4], rows: 1, vocab: 1, masked: Vec::new() };
    for (place, value) in [("/scores/rows", 1_u64 << 31), ("/scores/vocab_size", (1 << 24) + 1)] {
        let dir = bench.folder.path().join("capture");
        made_up.write(&dir);
        let run = put(&made_up.run_json(), place, &json!(value));
        assert!(!Schema::new("run").takes(&run));
        parse_run(&run).unwrap();
        fs::write(dir.join("run.json"), run.to_string()).unwrap();
        assert_eq!(bench.run(&["seal".as_ref(), dir.as_os_str()]).refused(), ["scores-short"], "{place}");
        // A file that has the size: holes cost nothing.
        fs::File::create(dir.join("scores.f32")).unwrap().set_len(value * 4).unwrap();
        let refused = bench.run(&["seal".as_ref(), dir.as_os_str()]).refused();
        assert_eq!(refused, [if place == "/scores/rows" { "row-missing" } else { "limit-exceeded" }], "{place}");
    }
}

#[test]
fn run_json_of_the_embedded_captures() {
    let schema = Schema::new("run");
    for name in ["oracle-c1-rep0", "oracle-c4-rep0"] {
        let text = fs::read(embedded(name).join("run.json")).unwrap();
        schema.must_take(&serde_json::from_slice(&text).unwrap());
        assert_eq!(Run::parse(&text).unwrap().run_id, name);
    }
}

// ---- Documents ----

/// A store with one capture, and its documents as values.
struct Sealing {
    _folder: TempDir,
    store: Store,
    sealed: Sealed,
}

impl Sealing {
    fn new() -> Self {
        let folder = folder();
        let dir = folder.path().join("capture");
        let made_up = MadeUp { dtype: ("float32", "f32"), scores: vec![0; 12], rows: 1, vocab: 3, masked: Vec::new() };
        made_up.write(&dir);
        fs::create_dir_all(dir.join("attachments/logs")).unwrap();
        fs::write(dir.join("attachments/logs/engine.txt"), "text").unwrap();
        let (store, sealed) = sealed(&folder.path().join("store"), &dir, Codec::None);
        Self { _folder: folder, store, sealed }
    }

    fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.store.root().join(path)).unwrap()
    }

    fn ref_path(&self) -> String {
        format!("refs/runs/{}", ref_file_name("made-up"))
    }
}

/// Whether two canonical encodings are of one value: no key twice, so sorting keys is all.
fn canonical(value: &Value) -> Option<Vec<u8>> {
    document::encode(value).ok()
}

/// For each kind of document: its schema, the bytes in the store, whether its type reads given bytes and writes them again,
/// and whether the store's reader takes given bytes in its place.
fn check_documents(name: &str, good: &[u8], decodes: impl Fn(&[u8]) -> bool, takes: impl Fn(&[u8]) -> bool) {
    let schema = Schema::new(name);
    let value: Value = serde_json::from_slice(good).unwrap();
    schema.must_take(&value);
    assert_eq!(canonical(&value).as_deref(), Some(good), "{name}");
    assert!(decodes(good) && takes(good), "{name}");
    // Not canonical: refused by both the type and the reader, whatever the schema says.
    for bad in
        [[good, b"\n"].concat(), [b" ", good].concat(), String::from_utf8_lossy(good).replace(",\"", ", \"").into()]
    {
        assert!(!decodes(&bad) && !takes(&bad), "{name}: {}", String::from_utf8_lossy(&bad));
    }
    let mut refused = 0;
    for (what, changed) in variants(&value) {
        let Some(bytes) = canonical(&changed) else {
            // A real, or an integer beyond 2^53 − 1, is in no document. A schema that refuses it is right; ours all do.
            assert!(!schema.takes(&changed), "{name} {what}: no document");
            continue;
        };
        if schema.takes(&changed) {
            assert!(decodes(&bytes), "{name} {what}: only the type refuses");
        } else {
            assert!(!takes(&bytes), "{name} {what}: only the schema refuses");
            refused += 1;
        }
    }
    assert!(refused > 50, "{name}: {refused}");
}

/// Decodes and encodes again.
macro_rules! decodes {
    ($type:ty) => {
        |bytes: &[u8]| document::decode::<$type>(bytes).is_ok_and(|value| document::encode(&value).unwrap() == bytes)
    };
}

#[test]
fn manifests() {
    let sealing = Sealing::new();
    let good = object(&sealing.store, &sealing.sealed.manifest);
    let takes = |bytes: &[u8]| refused_as_manifest(&sealing.store, bytes, Depth::Rows).is_empty();
    check_documents("manifest", &good, decodes!(Manifest), takes);
}

#[test]
fn capture_documents() {
    let sealing = Sealing::new();
    let good = document::encode(&sealing.sealed.document.capture).unwrap();
    let manifest = String::from_utf8(object(&sealing.store, &sealing.sealed.manifest)).unwrap();
    let takes = |bytes: &[u8]| {
        let inner = (std::str::from_utf8(&good).unwrap(), std::str::from_utf8(bytes).unwrap());
        refused_as_manifest(&sealing.store, manifest.replace(inner.0, inner.1).as_bytes(), Depth::Rows).is_empty()
    };
    check_documents("capture", &good, decodes!(CaptureDocument), takes);
}

#[test]
fn log_entries() {
    let sealing = Sealing::new();
    let line = sealing.read("log/entries");
    let good = line.strip_suffix(b"\n").unwrap();
    let takes = |bytes: &[u8]| {
        let mut tree = Tree::default();
        tree.push(bytes);
        let head = Head {
            bytes: (bytes.len() + 1).to_string(),
            origin: sealing.store.origin().to_owned(),
            root: tree.root(),
            schema: "witnessmark.head/v1".to_owned(),
            size: 1,
        };
        fs::write(sealing.store.root().join("log/entries"), [bytes, b"\n"].concat()).unwrap();
        fs::write(sealing.store.root().join("log/head"), document::encode(&head).unwrap()).unwrap();
        Log::load(&sealing.store).unwrap().refusals.is_empty()
    };
    check_documents("entry", good, decodes!(Entry), takes);
}

#[test]
fn log_heads() {
    let sealing = Sealing::new();
    let good = sealing.read("log/head");
    let takes = |bytes: &[u8]| {
        fs::write(sealing.store.root().join("log/head"), bytes).unwrap();
        Log::load(&sealing.store).unwrap().refusals.is_empty()
    };
    check_documents("head", &good, decodes!(Head), takes);
    // What the schema takes and the entries do not bear out.
    let value: Value = serde_json::from_slice(&good).unwrap();
    let other = json!(Sha256::of(b"").to_string());
    for (key, value) in
        [("/root", &other), ("/size", &json!(2)), ("/bytes", &json!("1")), ("/origin", &json!("ab".repeat(16)))]
            .map(|(place, other)| (place, put(&value, place, other)))
    {
        Schema::new("head").must_take(&value);
        assert!(!takes(&canonical(&value).unwrap()), "{key}");
    }
}

#[test]
fn store_documents() {
    let sealing = Sealing::new();
    let takes = |bytes: &[u8]| {
        fs::write(sealing.store.root().join("store.json"), bytes).unwrap();
        Store::open(sealing.store.root()).is_ok()
    };
    check_documents("store", &sealing.read("store.json"), decodes!(StoreDocument), takes);
}

#[test]
fn refs() {
    let sealing = Sealing::new();
    let path = sealing.store.root().join(sealing.ref_path());
    let good = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let takes = |bytes: &[u8]| {
        // Under the name that it would have, so that this is not what it is refused for.
        let value: Value = serde_json::from_slice(bytes).unwrap();
        let name = value["name"].as_str().filter(|name| !name.is_empty()).unwrap_or("made-up");
        let path = sealing.store.root().join("refs/runs").join(ref_file_name(name));
        fs::write(&path, bytes).unwrap();
        let refused = Catalog::load(&sealing.store).unwrap().refusals;
        fs::remove_file(path).unwrap();
        refused.is_empty()
    };
    check_documents("ref", &good, decodes!(Ref), takes);
}

/// What a checker without a store is handed, made by the library from a small store, and by the command from embedded captures.
#[test]
fn proofs() {
    let sealing = Sealing::new();
    let catalog = Catalog::load(&sealing.store).unwrap();
    let resolved = catalog.resolve("made-up", false).unwrap();
    let key = RowKey { request: RequestKey { prompt_index: 0, sample_index: 0 }, position: 0 };
    let of_row = prove_row(&catalog, &resolved, key, true).unwrap().unwrap();
    let takes = |bytes: &[u8]| match Proof::parse(bytes) {
        // Another capture document is that of another capture.
        Ok(Proof::Row(proof)) => proof.check().is_ok_and(|claim| claim.capture == resolved.capture),
        _ => false,
    };
    check_documents("proof", &document::encode(&of_row).unwrap(), decodes!(RowProof), takes);
    let of_log = catalog.log.prove(&sealing.store, 0, 1).unwrap();
    let takes = |bytes: &[u8]| matches!(Proof::parse(bytes), Ok(Proof::Log(proof)) if proof.check().is_ok());
    check_documents("log-proof", &document::encode(&of_log).unwrap(), decodes!(LogProof), takes);

    let bench = support::Bench::new();
    for name in ["oracle-c1-rep0", "oracle-c4-rep0", "oracle-c1-rep0"] {
        bench.seal(&embedded(name));
    }
    for (schema, line) in [
        ("proof", "prove oracle-c1-rep0 0:22 --scores"),
        ("proof", "prove oracle-c4-rep0 1:0"),
        ("log-proof", "log prove 1"),
        ("log-proof", "log prove 2 2"),
    ] {
        let run = bench.run(&line.split(' ').collect::<Vec<_>>());
        Schema::new(schema).must_take(&serde_json::from_str(&run.stdout).unwrap());
    }
}

#[test]
fn bundle_headers() {
    let sealing = Sealing::new();
    let catalog = Catalog::load(&sealing.store).unwrap();
    let mut bundle = Vec::new();
    let made = bundle::write(&catalog, &BTreeSet::from([0]), &mut bundle, &Meter::default()).unwrap();
    let good = document::encode(&made.header).unwrap();
    let objects = &bundle[bundle::MAGIC.len() + 8 + good.len()..];
    let file = sealing.store.root().join("bundle");
    let takes = |header: &[u8]| {
        let length = u64::try_from(header.len()).unwrap().to_le_bytes();
        fs::write(&file, [bundle::MAGIC.as_slice(), &length, header, objects].concat()).unwrap();
        Bundle::open(&file).unwrap().is_ok_and(|bundle| bundle.refusals.is_empty())
    };
    check_documents("bundle", &good, decodes!(BundleHeader), takes);
}

#[test]
fn receipts() {
    let sealing = Sealing::new();
    let catalog = Catalog::load(&sealing.store).unwrap();
    let resolved = catalog.resolve("made-up", false).unwrap();
    let receipt = |depth| {
        let options = Options { depth, model: None, spec: None };
        let outcome = verify(&catalog, &resolved, options, &Meter::default()).unwrap();
        Receipt::of(&outcome).encode().unwrap()
    };
    let takes = |bytes: &[u8]| {
        Receipt::parse(bytes).is_some_and(|receipt| receipt.covers(resolved.capture, &resolved.manifests))
    };
    check_documents("receipt", &receipt(Depth::Full), decodes!(Receipt), takes);
    let schema = Schema::new("receipt");
    for depth in [Depth::Quick, Depth::Rows, Depth::Sample(Sample { ppm: 500_000, seed: 7 })] {
        schema.must_take(&serde_json::from_slice(&receipt(depth)).unwrap());
    }
    fs::write(sealing.store.root().join(Store::object_path(&sealing.sealed.document.run_object)), "{}").unwrap();
    schema.must_take(&serde_json::from_slice(&receipt(Depth::Full)).unwrap());
}

/// Lengths that a schema counts in characters and the format in bytes, and limits between fields.
#[test]
fn documents_beyond_the_schema() {
    let sealing = Sealing::new();
    let good: Value = serde_json::from_slice(&object(&sealing.store, &sealing.sealed.manifest)).unwrap();
    let schema = Schema::new("manifest");
    let attachment = |path: &str| json!({"blake3": Blake3::of(b"").to_string(), "bytes": 0, "path": path});
    for (place, value, why) in [
        ("/capture/attachments", json!([attachment("b"), attachment("a")]), "attachments ascend"),
        ("/capture/attachments", json!([attachment(&"é".repeat(513))]), "a path has at most 1,024 bytes"),
        ("/capture/rows", json!(2), "rows of shards add up"),
        ("/row_shards/0/rows", json!(2), "rows of shards add up"),
        ("/score_shards/0/rows", json!(2), "rows of shards add up"),
        ("/capture/row_root", json!(Sha256::of(b"").to_string()), "the row root is that of the rows"),
        ("/capture/score_root", json!(Sha256::of(b"").to_string()), "the score root is that of the rows"),
        ("/capture/run_json/sha256", json!(Sha256::of(b"").to_string()), "run.json has its digest"),
        ("/capture/run_json/bytes", json!(1), "and its length"),
        ("/capture/vocab_size", json!(4), "run.json has the vocabulary too"),
    ] {
        let changed = put(&good, place, &value);
        schema.must_take(&changed);
        let refused = refused_as_manifest(&sealing.store, &canonical(&changed).unwrap(), Depth::Rows);
        assert!(!refused.is_empty(), "{why}: {value}");
    }
    let path = attachment(&"é".repeat(512));
    let changed = canonical(&put(&good, "/capture/attachments", &json!([path]))).unwrap();
    assert_eq!(refused_as_manifest(&sealing.store, &changed, Depth::Rows), []);
}

/// Specs: the schema and the parser take the same texts.
#[test]
fn specs() {
    let (schemas, index) = {
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        let path = super::support::root().join("schemas/spec.schema.json");
        let index = compiler.compile(path.to_str().unwrap(), &mut schemas).unwrap();
        (schemas, index)
    };
    let shipped = std::fs::read_to_string(super::support::root().join("specs/smollm2-h200.toml")).unwrap();
    let head = "schema = \"witnessmark.spec/v1\"\nworkload = \"w\"\n";
    let with = |text: &str| format!("{head}{text}\n");
    let [other, third] = ["strix-qwen3-4b", "smollm2-h200-calibration"]
        .map(|name| std::fs::read_to_string(super::support::root().join(format!("specs/{name}.toml"))).unwrap());
    let calibration = |text: &str| with(&format!("[calibration]\n{text}"));
    let good = [
        shipped,
        other,
        third,
        calibration("rule = \"maximum\"\nalpha = 0.05"),
        calibration("rule = \"share\"\nalpha = 0.05\nshare = 0.05\nmargin = 0"),
        with(""),
        with("[require]\nwindow = 8\n[pins.all]\n\"a.b\" = [1, 2.5, \"x\", true]"),
    ];
    let bad = [
        String::new(),
        "schema = \"witnessmark.spec/v2\"\nworkload = \"w\"".to_owned(),
        "schema = \"witnessmark.spec/v1\"\nworkload = \"\"".to_owned(),
        with("more = 1"),
        with("[require]\nwitness = []"),
        with("[require]\nwindow = -1"),
        with("[require]\nwindow = \"8\""),
        with("[require]\nwitnesses = [\"token_id\"]"),
        with("[require]\nextraction = [\"guess\"]"),
        with("[require]\nno_speculation = 1"),
        with("[pins]\nboth = {}"),
        with("[pins.model_files]\nm = \"abc\""),
        with("claim = \"maybe\""),
        with("rules = \"witnessmark.rules/v2\""),
        with("[corpus]\nrequests = 1"),
        with("[corpus]\nrequests = 0\nnew_tokens = 1"),
        with("[corpus]\nrequests = 1\nnew_tokens = 1\nsha256 = \"abc\""),
        with("[strata]\nconcurrency = []\nphases = [\"decode\"]"),
        with("[strata]\nconcurrency = [1]\nphases = [\"warmup\"]"),
        with("[strata]\nconcurrency = [1]\nphases = [\"decode\", \"decode\"]"),
        with("[[runs]]\nrole = \"oracle\"\nmode = \"tap\"\nconcurrency = [1]\nrepetitions = 1"),
        with("[[runs]]\nrole = \"judge\"\nmode = \"baseline\"\nconcurrency = [1]\nrepetitions = 1"),
        with("[[runs]]\nrole = \"oracle\"\nmode = \"baseline\"\nconcurrency = [1]\nrepetitions = 0"),
        with("[[runs]]\nrole = \"oracle\"\nmode = \"baseline\"\nconcurrency = [1]\nrepetitions = 4294967296"),
        with(
            "[[runs]]\nrole = \"oracle\"\nmode = \"baseline\"\nconcurrency = [1]\nrepetitions = 1\npartition = \"test\"",
        ),
        calibration("rule = \"mean\"\nalpha = 0.05"),
        calibration("rule = \"maximum\""),
        calibration("rule = \"maximum\"\nalpha = 0"),
        calibration("rule = \"maximum\"\nalpha = 0.51"),
        calibration("rule = \"maximum\"\nalpha = 0.05\nmargin = 0.1"),
        calibration("rule = \"share\"\nalpha = 0.05\nshare = 0.05"),
        calibration("rule = \"share\"\nalpha = 0.05\nmargin = 0.1"),
        calibration("rule = \"share\"\nalpha = 0.05\nshare = 0.6\nmargin = 0.1"),
        calibration("rule = \"share\"\nalpha = 0.05\nshare = 0.05\nmargin = -1"),
        with("[comparison]\nobserved_shape = \"similar\""),
        with("[comparison]\ninertness_margin = 1.5"),
    ];
    for (texts, taken) in [(good.as_slice(), true), (bad.as_slice(), false)] {
        for text in texts {
            assert_eq!(witnessmark::spec::Spec::parse(text).is_ok(), taken, "parser: {text}");
            let value: Option<Value> = toml::from_str(text).ok();
            let valid = value.is_some_and(|value| schemas.validate(&value, index).is_ok());
            assert_eq!(valid, taken, "schema: {text}");
        }
    }
}
