//! Bundles: out of one store, verified as they are, into another, and corrupted in every way.

use std::fs;

use serde_json::{Value, json};
use witnessmark::digest::Sha256;
use witnessmark::merkle::{inclusion_path, leaf_hash, root_of};

use crate::support::{Bench, embedded, files};

fn bundled() -> (Bench, Vec<String>) {
    let bench = Bench::new();
    let ids = ["oracle-c4-rep0", "oracle-c1-rep0"].map(|name| bench.seal(&embedded(name))).to_vec();
    let run = bench.run(&["bundle", "oracle-c1-rep0", "oracle-c4-rep0", "-o", "b.wmb"]);
    assert_eq!(run.status, 0, "{}{}", run.stdout, run.stderr);
    (bench, ids)
}

fn bytes(bench: &Bench) -> Vec<u8> {
    fs::read(bench.folder.path().join("b.wmb")).unwrap()
}

/// The header and where it ends.
fn header(bytes: &[u8]) -> (serde_json::Value, usize) {
    let len = usize::try_from(u64::from_le_bytes(bytes[22..30].try_into().unwrap())).unwrap();
    (serde_json::from_slice(&bytes[30..30 + len]).unwrap(), 30 + len)
}

fn with_header(header: &serde_json::Value, objects: &[u8]) -> Vec<u8> {
    let header = header.to_string();
    let len = u64::try_from(header.len()).unwrap().to_le_bytes();
    [b"witnessmark.bundle/v1\n", len.as_slice(), header.as_bytes(), objects].concat()
}

#[test]
fn a_bundle_is_verified_without_a_store() {
    let (bench, ids) = bundled();
    fs::remove_dir_all(bench.store()).unwrap();
    let run = bench.run(&["verify", "b.wmb"]);
    assert_eq!(run.status, 0, "{}{}", run.stdout, run.stderr);
    assert!(ids.iter().all(|id| run.stdout.contains(id)));
    assert_eq!(run.stdout.matches("VERIFIED: ").count(), 2);
    for args in [&["verify", "b.wmb", "--quick"][..], &["verify", "b.wmb", "--sample", "20%", "--seed", "1"]] {
        let run = bench.run(args);
        assert_eq!((run.status, run.stdout.contains("VERIFIED: ")), (0, false), "{}", run.stdout);
    }
}

#[test]
fn equal_captures_give_equal_bytes() {
    let (bench, _) = bundled();
    let first = bytes(&bench);
    let run = bench.run(&["bundle", "oracle-c4-rep0", "oracle-c1-rep0", "oracle-c4-rep0", "-o", "again.wmb"]);
    assert_eq!(run.status, 0);
    assert!(first == fs::read(bench.path("again.wmb")).unwrap());
    // Nothing is left beside them.
    assert_eq!(fs::read_dir(bench.folder.path()).unwrap().count(), 3);
}

#[test]
fn a_bundle_goes_into_another_store_and_comes_to_no_act_of_its_log() {
    let (bench, ids) = bundled();
    let other = Bench::new();
    fs::copy(bench.folder.path().join("b.wmb"), other.folder.path().join("b.wmb")).unwrap();
    let run = other.run(&["unbundle", "b.wmb"]);
    assert_eq!(run.status, 0, "{}{}", run.stdout, run.stderr);
    assert_eq!(run.stdout.lines().collect::<Vec<_>>(), ids);
    assert_eq!(other.run(&["log", "show", "--json"]).stdout, "");
    let run = other.run(&["verify", "--all"]);
    assert_eq!((run.status, run.stdout.matches("VERIFIED: ").count()), (0, 2), "{}", run.stdout);
    assert_eq!(other.run(&["verify", "--exact", &ids[0]]).status, 0);
    assert_eq!(other.run(&["diff", &ids[0][..8], &ids[1]]).status, 1);
    // Again: the same, and nothing new.
    let before = files(&other.store());
    assert_eq!(other.run(&["unbundle", "b.wmb"]).status, 0);
    assert_eq!(files(&other.store()), before);
    // Its objects are named, so nothing is garbage; and what came with a bundle is handed on as that bundle.
    let run = other.run(&["gc", "--now", "--json"]);
    let garbage: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(garbage["orphans"], serde_json::json!([]));
    assert_eq!(other.run(&["bundle", &ids[0], "-o", "c.wmb"]).status, 64);
    // Sealed here too, the capture gets an entry of its own.
    assert_eq!(other.seal(&embedded("oracle-c1-rep0")), ids[1]);
    assert_eq!(other.run(&["log", "show", "--json"]).stdout.lines().count(), 1);
    // A record that was changed names nothing any more.
    let record = files(&other.store().join("refs/bundles")).pop().unwrap();
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, text.replacen("\"size\":2", "\"size\":3", 1)).unwrap();
    assert_eq!(other.run(&["verify", "--all"]).refused(), ["json-not-canonical"]);
}

/// Verifies and unbundles a changed bundle: both must refuse, and unbundling must leave no store behind.
fn refused(bench: &Bench, changed: &[u8]) -> (Vec<String>, Vec<String>) {
    let fresh = Bench::new();
    let path = fresh.folder.path().join("b.wmb");
    fs::write(&path, changed).unwrap();
    let verify = fresh.run(&["verify", "b.wmb"]);
    let unbundle = fresh.run(&["unbundle", "b.wmb"]);
    assert_eq!((verify.status, unbundle.status), (2, 2), "{}\n{}", verify.stdout, unbundle.stdout);
    assert!(!fresh.store().exists(), "a store was made for a bundle that is refused");
    assert!(bench.store().exists());
    (verify.refused(), unbundle.refused())
}

#[test]
fn whatever_is_not_named_by_a_manifest_is_refused() {
    let (bench, _) = bundled();
    let good = bytes(&bench);
    let (head, start) = header(&good);
    let objects = &good[start..];
    let both = |rule: &str| (vec![rule.to_owned()], vec![rule.to_owned()]);
    assert_eq!(refused(&bench, &[&good, b"x".as_slice()].concat()), both("object-unlisted"));
    // One object more, listed in the header, at the end.
    let extra = b"a little something";
    let mut other = head.clone();
    let listed = serde_json::json!({"bytes": extra.len(), "object": blake3::hash(extra).to_hex().as_str()});
    other["objects"].as_array_mut().unwrap().push(listed);
    let changed = with_header(&other, &[objects, extra.as_slice()].concat());
    assert_eq!(refused(&bench, &changed), both("object-unlisted"));
    // One object less.
    let mut other = head.clone();
    let last = other["objects"].as_array_mut().unwrap().pop().unwrap();
    let len = usize::try_from(last["bytes"].as_u64().unwrap()).unwrap();
    let changed = with_header(&other, &objects[..objects.len() - len]);
    assert_eq!(refused(&bench, &changed), both("object-missing"));
    // The same object twice.
    let mut other = head.clone();
    other["objects"].as_array_mut().unwrap().push(last);
    let changed = with_header(&other, &[objects, &objects[objects.len() - len..]].concat());
    assert_eq!(refused(&bench, &changed), both("json-not-canonical"));
}

/// Attachments come last, and of a file of no bytes nothing tells whether it is there but the header.
#[test]
fn an_empty_attachment_may_end_a_bundle() {
    let bench = Bench::new();
    let dir = bench.copy(&embedded("oracle-c1-rep0"), "capture");
    fs::create_dir_all(dir.join("attachments")).unwrap();
    fs::write(dir.join("attachments/empty"), "").unwrap();
    let id = bench.seal(&dir);
    assert_eq!(bench.run(&["verify", &id]).status, 0);
    assert_eq!(bench.run(&["bundle", &id, "-o", "b.wmb"]).status, 0);
    let run = bench.run(&["verify", "b.wmb"]);
    assert_eq!((run.status, run.refused()), (0, vec![]));
    // Cut before the last object that has bytes, it lacks both.
    let good = bytes(&bench);
    let (head, _) = header(&good);
    let last = head["objects"].as_array().unwrap().iter().rev().find(|object| object["bytes"] != 0).unwrap();
    let cut = good.len() - usize::try_from(last["bytes"].as_u64().unwrap()).unwrap();
    let (verify, unbundle) = refused(&bench, &good[..cut]);
    assert_eq!(verify, ["object-missing"]);
    assert!(!unbundle.is_empty());
}

#[test]
fn entries_must_be_proved() {
    let (bench, _) = bundled();
    let good = bytes(&bench);
    let (head, start) = header(&good);
    type Edit = fn(&mut serde_json::Value);
    let edits: [(&str, Edit); 11] = [
        ("log-inconsistent", |h| h["head"]["bytes"] = "1".into()),
        ("json-not-canonical", |h| h["head"]["bytes"] = "0710".into()),
        ("json-not-canonical", |h| h["head"]["bytes"] = (1_u64 << 63).to_string().into()),
        ("json-not-canonical", |h| h["head"]["origin"] = "somewhere".into()),
        ("proof-invalid", |h| h["entries"][0]["entry"]["at"] = "1".into()),
        ("proof-invalid", |h| h["entries"][0]["path"] = serde_json::json!([])),
        ("proof-invalid", |h| h["head"]["size"] = 3.into()),
        ("proof-invalid", |h| h["head"]["root"] = "0".repeat(64).into()),
        ("schema-invalid", |h| h["schema"] = "witnessmark.bundle/v2".into()),
        ("json-not-canonical", |h| h["more"] = 1.into()),
        ("nothing-to-verify", |h| h["entries"] = serde_json::json!([])),
    ];
    for (rule, edit) in edits {
        let mut other = head.clone();
        edit(&mut other);
        let (verify, unbundle) = refused(&bench, &with_header(&other, &good[start..]));
        assert!(verify.contains(&rule.to_owned()), "{rule}: {verify:?}");
        assert_eq!(unbundle, [rule]);
    }
}

/// The bundle of a log that has these entries and no others.
fn logged(header: &Value, entries: Vec<Value>, objects: &[u8]) -> Vec<u8> {
    let lines: Vec<String> = entries.iter().map(Value::to_string).collect();
    let leaves: Vec<_> = lines.iter().map(|line| leaf_hash(line.as_bytes())).collect();
    let proved = entries.iter().zip(0_u64..).map(|(entry, index)| {
        let path = inclusion_path(&leaves, index).unwrap();
        json!({ "entry": entry, "index": index, "path": path })
    });
    let mut header = header.clone();
    header["entries"] = proved.collect();
    header["head"]["size"] = entries.len().into();
    header["head"]["root"] = root_of(&leaves).to_string().into();
    header["head"]["bytes"] = lines.iter().map(|line| line.len() + 1).sum::<usize>().to_string().into();
    with_header(&header, objects)
}

#[test]
fn entries_are_what_the_entries_of_a_log_are() {
    let (bench, _) = bundled();
    let good = bytes(&bench);
    let (head, start) = header(&good);
    let objects = &good[start..];
    let entries: Vec<Value> = (0..2).map(|n| head["entries"][n]["entry"].clone()).collect();
    let fresh = Bench::new();
    fs::write(fresh.path("b.wmb"), logged(&head, entries.clone(), objects)).unwrap();
    assert_eq!(fresh.run(&["verify", "b.wmb"]).status, 0);

    let both = |rule: &str| (vec![rule.to_owned()], vec![rule.to_owned()]);
    for at in ["", "007", "-1", "soon", "9223372036854775808"] {
        let mut entries = entries.clone();
        entries[1]["at"] = at.into();
        assert_eq!(refused(&bench, &logged(&head, entries, objects)), both("json-not-canonical"), "{at:?}");
    }
    let mut long = entries.clone();
    long[0]["tool"] = "x".repeat(64 << 10).into();
    assert_eq!(refused(&bench, &logged(&head, long, objects)), both("limit-exceeded"));

    // Two entries name one manifest, and one of them for another capture: whichever comes last.
    let mut other = entries[0].clone();
    other["capture"] = "0".repeat(64).into();
    for place in 0..3 {
        let mut entries = entries.clone();
        entries.insert(place, other.clone());
        assert_eq!(refused(&bench, &logged(&head, entries, objects)), both("root-mismatch"), "{place}");
    }

    // The same of documents; and what is called a result is one.
    let spec = b"schema = \"witnessmark.spec/v1\"\n";
    let (object, subject) = (blake3::hash(spec).to_string(), Sha256::of(spec).to_string());
    let mut with_spec = head.clone();
    with_spec["objects"].as_array_mut().unwrap().push(json!({ "bytes": spec.len(), "object": object }));
    let objects = [objects, spec.as_slice()].concat();
    let about = |act: &str, subject: &str| json!({ "act": act, "at": "1", "object": object, "schema": "witnessmark.act/v1", "subject": subject, "tool": "x" });
    let with = |more: &[Value]| logged(&with_spec, [&entries, more].concat(), &objects);
    fs::write(fresh.path("c.wmb"), with(&[about("spec", &subject)])).unwrap();
    assert_eq!(fresh.run(&["verify", "c.wmb"]).status, 0);
    let zero = "0".repeat(64);
    let changed = with(&[about("qualify", &zero), about("spec", &subject)]);
    assert_eq!(refused(&bench, &changed), both("root-mismatch"));
    let changed = with(&[about("qualify", &subject), about("spec", &subject)]);
    assert_eq!(refused(&bench, &changed), both("json-not-canonical"));
}

#[test]
fn a_bundle_of_the_own_log_has_its_length() {
    let (bench, _) = bundled();
    assert_eq!(bench.run(&["bundle", "oracle-c1-rep0", "-o", "one.wmb"]).status, 0);
    assert_eq!(bench.run(&["unbundle", "one.wmb"]).status, 0);
    let good = fs::read(bench.path("one.wmb")).unwrap();
    let (mut head, start) = header(&good);
    head["head"]["bytes"] = "4711".into();
    fs::write(bench.path("one.wmb"), with_header(&head, &good[start..])).unwrap();
    // Another store cannot know.
    let fresh = Bench::new();
    fs::copy(bench.path("one.wmb"), fresh.path("one.wmb")).unwrap();
    assert_eq!(fresh.run(&["unbundle", "one.wmb"]).status, 0);
    let run = bench.run(&["unbundle", "one.wmb"]);
    assert_eq!((run.status, run.refused()), (2, vec!["log-inconsistent".to_owned()]), "{}", run.stderr);
}

#[test]
fn a_bundle_that_is_cut_or_flipped_anywhere_is_refused() {
    let (bench, _) = bundled();
    let good = bytes(&bench);
    let (_, start) = header(&good);
    let middle = (0..6).map(|n| start + (good.len() - start) * n / 6);
    for at in [0, 10, 21, 22, 25, 31, start - 1].into_iter().chain(middle).chain([good.len() - 1]) {
        let mut other = good.clone();
        other[at] ^= 1;
        refused(&bench, &other);
        refused(&bench, &good[..at]);
    }
}

#[test]
fn a_damaged_object_is_not_bundled() {
    let (bench, _) = bundled();
    let objects = files(&bench.store().join("objects"));
    let shard = objects.iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let mut content = fs::read(shard).unwrap();
    content[5000] ^= 1;
    fs::write(shard, content).unwrap();
    fs::remove_file(bench.folder.path().join("b.wmb")).unwrap();
    let run = bench.run(&["bundle", "oracle-c1-rep0", "oracle-c4-rep0", "-o", "b.wmb"]);
    assert_eq!((run.status, run.refused()), (2, vec!["object-digest".to_owned()]));
    assert!(!bench.folder.path().join("b.wmb").exists());
}

#[test]
fn a_bundle_can_be_piped_in() {
    let (bench, ids) = bundled();
    let other = Bench::new();
    let file = fs::File::open(bench.folder.path().join("b.wmb")).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_witnessmark"))
        .env("WITNESSMARK_STORE", other.store())
        .args(["unbundle", "-"])
        .stdin(file)
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().collect::<Vec<_>>(), ids);
}
