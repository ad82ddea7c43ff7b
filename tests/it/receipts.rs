//! Receipts: what a verify found, kept, and when it stands for verifying again.

use std::fs;

use serde_json::json;

use crate::support::{Bench, embedded, files};

fn receipt(bench: &Bench, name: &str) -> serde_json::Value {
    serde_json::from_slice(&fs::read(bench.folder.path().join(name)).unwrap()).unwrap()
}

#[test]
fn a_receipt_says_what_was_looked_at_and_found() {
    let bench = Bench::new();
    let id = bench.seal(&embedded("oracle-c1-rep0"));
    assert_eq!(bench.run(&["verify", "oracle-c1-rep0", "--receipt", "r.json"]).status, 0);
    let full = receipt(&bench, "r.json");
    assert_eq!((&full["schema"], &full["capture"]), (&"witnessmark.receipt/v1".into(), &id.as_str().into()));
    assert_eq!(
        (&full["depth"], &full["verified"], &full["checked"]["scored_rows"]),
        (&"full".into(), &true.into(), &9.into())
    );
    // The store has this capture alone: a full pass hashes all its objects.
    let objects = files(&bench.store().join("objects"));
    let bytes: u64 = objects.iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert_eq!(full["checked"], json!({"bytes": bytes, "objects": objects.len(), "rows": 9, "scored_rows": 9}));
    assert_eq!(full["tool"], concat!("witnessmark ", env!("CARGO_PKG_VERSION")));
    assert!(full["notes"].as_array().unwrap().iter().any(|note| note["kind"] == "declared-not-seen"));
    assert_eq!(full["rules"].as_array().unwrap().len(), witnessmark::refusal::Rule::ALL.len());
    // The same again to the byte: it holds no time.
    assert_eq!(bench.run(&["verify", "oracle-c1-rep0", "--receipt", "again.json"]).status, 0);
    assert_eq!(receipt(&bench, "again.json"), full);
    assert_eq!(
        bench.run(&["verify", "oracle-c1-rep0", "--sample", "30%", "--seed", "9", "--receipt", "s.json"]).status,
        0
    );
    let sample = receipt(&bench, "s.json");
    assert_eq!(
        (&sample["depth"], &sample["sample"]["seed"], &sample["sample"]["drawn"]),
        (&"sample".into(), &"9".into(), &3.into())
    );
    damage(&bench);
    assert_eq!(bench.run(&["verify", "oracle-c1-rep0", "--receipt", "bad.json"]).status, 2);
    let bad = receipt(&bench, "bad.json");
    assert_eq!((&bad["verified"], &bad["refusals"][0]["rule"]), (&false.into(), &"object-digest".into()));
    assert_eq!(bench.run(&["verify", "--all", "--receipt", "x.json"]).status, 64);
}

fn damage(bench: &Bench) {
    let objects = files(&bench.store().join("objects"));
    let shard = objects.iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = fs::read(shard).unwrap();
    bytes[5000] ^= 1;
    fs::write(shard, bytes).unwrap();
}

#[test]
fn a_long_verify_is_taken_up_again() {
    let bench = Bench::new();
    let first = bench.seal(&embedded("oracle-c1-rep0"));
    let all = ["verify", "--all", "--receipt-dir", "receipts"];
    let counts = |args: &[&str]| {
        let run = bench.run(args);
        let count = |word| run.stdout.matches(word).count();
        (run.status, count("VERIFIED: "), count("SKIPPED: "))
    };
    assert_eq!(counts(&all), (0, 1, 0));
    bench.seal(&embedded("oracle-c4-rep0"));
    assert_eq!(counts(&all), (0, 1, 1));
    assert_eq!(counts(&all), (0, 0, 2));
    assert_eq!(counts(&[&all[..], &["--fresh"]].concat()), (0, 2, 0));
    // Another manifest of the capture, a receipt of less, one that was changed: looked at again.
    let dir = embedded("oracle-c1-rep0");
    let lz4 = ["seal".as_ref(), "--codec".as_ref(), "lz4".as_ref(), dir.as_os_str()];
    assert_eq!(bench.run(&lz4).status, 0);
    assert_eq!(counts(&all), (0, 1, 1));
    let path = bench.folder.path().join(format!("receipts/{first}.json"));
    let text = fs::read_to_string(&path).unwrap();
    for bad in [
        text.replacen("\"full\"", "\"quick\"", 1),
        text.replacen("\"verified\":true", "\"verified\":false", 1),
        format!("{text} "),
    ] {
        fs::write(&path, bad).unwrap();
        assert_eq!(counts(&all), (0, 1, 1));
    }
    // A skipped capture is not looked at: that is what --fresh is for.
    damage(&bench);
    assert_eq!(counts(&all), (0, 0, 2));
    assert_eq!(bench.run(&[&all[..], &["--fresh"]].concat()).status, 2);
    // A refused capture is never skipped.
    assert_eq!(bench.run(&all).status, 2);
}

#[test]
fn a_receipt_that_says_more_stays() {
    let bench = Bench::new();
    bench.seal(&embedded("oracle-c1-rep0"));
    let all = ["verify", "--all", "--receipt-dir", "receipts"];
    let verify = |args: &[&str]| bench.run(&[&all[..], args].concat()).status;
    assert_eq!(verify(&["--quick"]), 0);
    let file = files(&bench.folder.path().join("receipts"))[0].clone();
    let quick = fs::read(&file).unwrap();
    assert_eq!(verify(&[]), 0);
    let full = fs::read(&file).unwrap();
    assert_ne!(quick, full);
    for less in [&["--quick"][..], &["--sample", "20%", "--seed", "1"]] {
        assert_eq!(verify(less), 0);
        assert_eq!(fs::read(&file).unwrap(), full, "{less:?}");
    }
    // What is refused now is said, however little was looked at.
    damage(&bench);
    assert_eq!(verify(&["--quick"]), 2);
    assert_ne!(fs::read(&file).unwrap(), full);
    assert_eq!(verify(&[]), 2);
}

#[test]
fn a_bundle_is_looked_at_whatever_receipts_there_are() {
    let bench = Bench::new();
    bench.seal(&embedded("oracle-c1-rep0"));
    assert_eq!(bench.run(&["verify", "--all", "--receipt-dir", "receipts"]).status, 0);
    assert_eq!(bench.run(&["bundle", "oracle-c1-rep0", "-o", "b.wmb"]).status, 0);
    let verify = || bench.run(&["verify", "b.wmb", "--receipt-dir", "receipts"]);
    let run = verify();
    assert_eq!((run.status, run.stdout.contains("SKIPPED")), (0, false), "{}", run.stdout);
    let path = bench.folder.path().join("b.wmb");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_eq!(verify().status, 2);
}
