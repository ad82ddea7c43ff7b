//! What holds for all inputs: order, threads, codecs and file types change no root, and no bytes make a parser panic.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;
use witnessmark::binding::Run;
use witnessmark::canon::document;
use witnessmark::canon::json::Json;
use witnessmark::canon::scores::{Canonical, Dtype};
use witnessmark::catalog::Catalog;
use witnessmark::id::{Nanos, ObjectId};
use witnessmark::manifest::{Codec, Entry, Head, Manifest, Ref, ScoreShard};
use witnessmark::meter::Meter;
use witnessmark::row::{Interner, Row};
use witnessmark::seal::{Batch, Outcome, Sealed};
use witnessmark::shard::page::Decompressor;
use witnessmark::shard::rows;
use witnessmark::shard::scores::{RawPage, ScoresReader, decode_page};
use witnessmark::store::Store;
use witnessmark::verify::{Depth, Options, verify};

use crate::forge::{self, Forge, long};
use crate::support::{self, Bench, embedded, objects};
use crate::synth::Synth;

fn few(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Seals in this process, into a store in `root`, which is made new.
fn seal(root: &Path, dir: &Path, codec: Codec) -> Sealed {
    let store = forge::empty_store(root);
    let meter = Meter::default();
    let mut batch = Batch::new(&store, codec, None, &meter).unwrap();
    batch.add(dir, None).unwrap();
    match batch.commit(Nanos(1)).unwrap().pop().unwrap() {
        Outcome::Sealed(sealed) => *sealed,
        Outcome::Refused(findings) => panic!("{findings:?}"),
    }
}

/// All that a full verify says of a store.
fn verdicts(root: &Path) -> String {
    let store = Store::open(root).unwrap();
    let catalog = Catalog::load(&store).unwrap();
    let mut out = String::new();
    for capture in catalog.captures() {
        let resolved = catalog.resolve(&capture.to_string(), true).unwrap();
        let options = Options { depth: Depth::Full, model: None, spec: None };
        let outcome = verify(&catalog, &resolved, options, &Meter::default()).unwrap();
        out += &format!("{capture} {:?} {:?}\n", outcome.checked, outcome.findings);
    }
    out
}

proptest! {
    #![proptest_config(few(12))]

    #[test]
    fn order_is_not_evidence(
        order in Just((0..15).collect::<Vec<usize>>()).prop_shuffle(),
        requests in Just(vec![0_usize, 1, 2]).prop_shuffle(),
        mode in prop::sample::select(vec!["capture-only", "common-replay"]),
    ) {
        let bench = Bench::quick();
        let original = Synth::new(mode);
        let mut other = original.clone();
        other.rows = order.iter().map(|&at| original.rows[at].clone()).collect();
        other.scores = order.iter().map(|&at| original.scores[at].clone()).collect();
        other.rewitness();
        let permuted = requests.iter().map(|&n| original.run["requests"][n].clone()).collect();
        other.run["requests"] = serde_json::Value::Array(permuted);
        original.write(&bench.path("a"));
        other.write(&bench.path("b"));
        let a = seal(&bench.path("store-a"), &bench.path("a"), Codec::Zstd);
        let b = seal(&bench.path("store-b"), &bench.path("b"), Codec::Zstd);
        let (mut x, y) = (a.document.capture.clone(), b.document.capture.clone());
        let in_order = requests.is_sorted();
        prop_assert_eq!(a.capture == b.capture, in_order);
        prop_assert_eq!(x.run_json.sha256 == y.run_json.sha256, in_order);
        x.run_json = y.run_json;
        prop_assert_eq!(x, y);
        prop_assert_eq!(&a.document.score_shards, &b.document.score_shards);
        prop_assert_eq!(&a.document.row_shards, &b.document.row_shards);
    }

    #[test]
    fn codec_shard_size_and_file_type_change_no_score_root(seed in any::<u32>()) {
        let bench = Bench::quick();
        let mut synth = Synth::new("capture-only");
        // Values that all three types hold: eighths below 8.
        for (n, row) in (1_u32..).zip(&mut synth.scores) {
            for (token, score) in (1_u32..).zip(row).filter(|(_, score)| **score < 8.0) {
                let noise = seed.wrapping_mul(n * 977 + token * 13) >> 26;
                *score = f32::from(u8::try_from(noise).unwrap()) / 8.0 - if token % 2 == 0 { 8.0 } else { 0.0 };
            }
        }
        let mut roots = Vec::new();
        for dtype in Dtype::ALL {
            synth.dtype = dtype;
            synth.rewitness();
            let dir = bench.path(dtype.name());
            synth.write(&dir);
            let sealed: Vec<Sealed> =
                Codec::ALL.iter().map(|codec| seal(&bench.path(codec.name()), &dir, *codec)).collect();
            let shards: Vec<_> = sealed.iter().map(|sealed| sealed.document.score_shards.clone()).collect();
            prop_assert!(shards[0] != shards[1] && shards[1] != shards[2] && shards[0] != shards[2]);
            for other in &sealed {
                prop_assert_eq!(other.capture, sealed[0].capture);
                prop_assert_eq!(&other.document.capture, &sealed[0].document.capture);
            }
            // Cut anywhere, it is the same capture.
            let mut forge = Forge::of(&dir);
            forge.cut = 1 + usize::try_from(seed % 14).unwrap();
            let manifest = forge.manifest();
            prop_assert_eq!(manifest.capture.id().unwrap(), sealed[0].capture);
            prop_assert!(manifest.score_shards.len() > 1);
            forge.publish(&bench.path("forged"), &manifest);
            prop_assert!(verdicts(&bench.path("forged")).contains("refusals: []"));
            roots.push(sealed[0].document.capture.score_root);
        }
        prop_assert!(roots[0].is_some());
        prop_assert_eq!(roots[0], roots[1]);
        prop_assert_eq!(roots[1], roots[2]);
    }
}

#[test]
fn threads_change_nothing() {
    let bench = Bench::quick();
    let mut synth = Synth::new("self-replay");
    synth.chain();
    synth.digest_all();
    synth.write(&bench.path("synth"));
    for (name, dir) in [("synth", bench.path("synth")), ("embedded", embedded("oracle-c4-rep0"))] {
        let mut seen = Vec::new();
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            seen.push(pool.install(|| {
                let root = bench.path("store");
                let sealed = seal(&root, &dir, Codec::Zstd);
                let good = verdicts(&root);
                assert!(good.contains("refusals: []"), "{good}");
                // Every object but the manifest is damaged: many faults, one order.
                for path in objects(&root) {
                    let mut bytes = fs::read(&path).unwrap();
                    if bytes.starts_with(b"PAR1") {
                        let at = bytes.len() / 3;
                        bytes[at] ^= 4;
                        fs::write(&path, bytes).unwrap();
                    }
                }
                let bad = verdicts(&root);
                assert!(bad.contains("ObjectDigest"), "{bad}");
                (sealed.capture, sealed.manifest, sealed.document, format!("{:?}", sealed.findings), good, bad)
            }));
        }
        assert!(seen.iter().all(|other| *other == seen[0]), "{name}: {seen:?}");
    }
}

#[test]
fn what_is_said_of_many_captures_depends_on_no_threads() {
    let bench = Bench::quick();
    // Small ones in both sets of a stream and beyond, and among them larger ones, which are verified alone.
    let mut dirs: Vec<_> = (0..40)
        .map(|n| {
            let name = format!("small-{n:02}");
            let mut synth = Synth::shaped("capture-only", 50 + n, 3, 5);
            synth.run["run_id"] = name.as_str().into();
            synth.write(&bench.path(&name));
            bench.path(&name)
        })
        .collect();
    for (place, name) in [(0, "oracle-c1-rep0"), (17, "oracle-c4-rep0")] {
        dirs.insert(place, embedded(name));
    }
    for dir in &dirs {
        bench.seal(dir);
    }
    let good = |args: &[&str]| assert_eq!(said_by_threads(&bench, args).0, 0);
    good(&["verify", "--all"]);
    // One shard or document in five is damaged or gone: small ones, large ones, manifests.
    for (n, path) in objects(&bench.store()).into_iter().enumerate().filter(|(n, _)| n % 5 == 0) {
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        if n % 10 == 0 { fs::write(&path, bytes).unwrap() } else { fs::remove_file(&path).unwrap() }
    }
    let mut refused = Vec::new();
    for args in [&["verify", "--all"][..], &["--json", "verify", "--all"], &["verify", "--all", "--quick"]] {
        let (status, text) = said_by_threads(&bench, args);
        assert_eq!(status, 2, "{text}");
        refused.push(text);
    }
    for rule in ["object-digest", "object-missing"] {
        assert!(refused.iter().all(|text| text.contains(rule)), "{rule}: {refused:?}");
    }
    // A receipt of the first pass stands for its captures in the second, whatever was verified ahead.
    for threads in ["1", "4"] {
        let receipts = bench.path(threads);
        let args = ["--threads", threads, "verify", "--all", "--receipt-dir", receipts.to_str().unwrap()];
        let (first, second) = (bench.run(&args), bench.run(&args));
        let count = |run: &support::Run, word| run.stdout.matches(word).count();
        assert!(count(&first, "\nVERIFIED") > 0 && count(&first, "SKIPPED") == 0, "{first:?}");
        assert_eq!(count(&second, "SKIPPED"), count(&first, "\nVERIFIED"), "{second:?}");
    }
}

/// What a command says, and its status, which must be the same at any number of threads.
fn said_by_threads(bench: &Bench, args: &[&str]) -> (i32, String) {
    let runs = ["1", "2", "4", "32"].map(|threads| bench.run(&[&["--threads", threads], args].concat()));
    let said = |run: &support::Run| (run.status, format!("{}{}", run.stdout, run.stderr));
    assert!(runs.iter().all(|run| said(run) == said(&runs[0])), "{runs:?}");
    said(&runs[0])
}

/// Good texts to start from.
fn seeds() -> Vec<Vec<u8>> {
    let mut synth = Synth::new("common-replay");
    synth.row(0, 1)["x"] = json!({ "a": "é", "b": -1 });
    let digest = "0".repeat(64);
    let head = format!(r#"{{"bytes":"0","origin":"00","root":"{digest}","schema":"witnessmark.head/v1","size":0}}"#);
    let bench = Bench::quick();
    synth.write(&bench.path("capture"));
    let mut forge = Forge::of(&bench.path("capture"));
    forge.cut = 5;
    let manifest = forge.manifest();
    let mut seeds = vec![synth.run.to_string().into_bytes(), synth.rows[0].to_string().into_bytes(), head.into_bytes()];
    seeds.push(document::encode(&manifest).unwrap());
    forge.publish(&bench.store(), &manifest);
    seeds.extend(objects(&bench.store()).iter().map(|path| fs::read(path).unwrap()));
    seeds
}

fn feed(bytes: &[u8], rows_count: u64, vocab: u32) {
    if let Ok(json) = Json::parse(bytes) {
        // What is read once is read again from its own text.
        assert_eq!(Json::parse(json.to_text().as_bytes()).as_ref(), Ok(&json));
        if let Ok(text) = json.to_canonical() {
            assert!(Json::parse(text.as_bytes()).is_ok());
        }
        if let Ok((row, _)) = Row::from_json(&json, &mut Interner::default()) {
            row.write_record(&mut Vec::new());
        }
    }
    if let Ok(run) = Run::parse(bytes) {
        assert!(!run.bindings().is_empty());
    }
    for count in [rows_count, 5, 15] {
        if let Ok(rows) = rows::decode(bytes, count) {
            assert_eq!(rows::encode(&rows), bytes);
        }
    }
    for codec in Codec::ALL {
        let object = ObjectId(witnessmark::digest::Blake3::of(bytes));
        let shard = ScoreShard { bytes: long(bytes.len()), codec, object, rows: rows_count };
        let (mut reader, _) = ScoresReader::new(Cursor::new(bytes), &shard, vocab).unwrap();
        let (mut page, mut room) = (RawPage::default(), Vec::new());
        let mut decompressor = Decompressor::new().unwrap();
        while reader.next_page(&mut page).unwrap() == Ok(true) {
            if let Ok(planes) = decode_page(&page, vocab, &mut decompressor, &mut room) {
                let mut canonical = Canonical::default();
                canonical.set_from_planes(planes);
                assert!(canonical.scan(&[0, 3]).max_count <= vocab);
            }
        }
        assert_eq!(reader.finish().unwrap().0, object, "all bytes are hashed, whatever they are");
    }
    if let Ok(manifest) = document::decode::<Manifest>(bytes) {
        assert_eq!(document::encode(&manifest).unwrap(), bytes);
    }
    drop((document::decode::<Entry>(bytes), document::decode::<Head>(bytes), document::decode::<Ref>(bytes)));
}

proptest! {
    #![proptest_config(few(256))]

    #[test]
    fn random_bytes_make_no_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), rows in 0..20_u64, vocab in 1..60_u32) {
        feed(&bytes, rows, vocab);
        feed(&[b"PAR1".as_slice(), &bytes].concat(), rows, vocab);
    }

    #[test]
    fn json_like_text_makes_no_parser_panic(text in r#"[\[\]{}:,"\\0-9eE+.a-cu \n-]{0,60}"#) {
        feed(text.as_bytes(), 1, 8);
    }
}

#[test]
fn good_bytes_that_were_changed_make_no_parser_panic() {
    let seeds = seeds();
    let places = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>(), 0..4_u8);
    let mut runner = proptest::test_runner::TestRunner::new(few(1500));
    runner
        .run(&places, |(seed, at, byte, how)| {
            let mut bytes = seeds[seed.index(seeds.len())].clone();
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.truncate(at),
                2 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
            feed(&bytes, 5, 50);
            Ok(())
        })
        .unwrap();
    // Unchanged, they are read.
    assert!(seeds.iter().any(|seed| rows::decode(seed, 5).is_ok()));
    assert!(seeds.iter().any(|seed| Run::parse(seed).is_ok()));
    assert!(seeds.iter().any(|seed| document::decode::<Manifest>(seed).is_ok()));
    assert!(seeds.iter().any(|seed| document::decode::<Head>(seed).is_ok()));
}
