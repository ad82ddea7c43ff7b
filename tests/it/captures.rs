//! The fifteen real captures, where they are there: sealed, verified and compared as people would.

use std::collections::BTreeSet;

use crate::support::{Bench, assert_unchanged, listing, objects, shared_captures};

/// Captures whose scores are bitwise those of another one.
const REPEATS: [(&str, &str); 4] = [
    ("oracle-c1-rep1", "oracle-c1-rep0"),
    ("selfreplay-c1-rep0", "oracle-c1-rep0"),
    ("oracle-c4-rep1", "oracle-c4-rep0"),
    ("selfreplay-c4-rep0", "oracle-c4-rep0"),
];

fn names(folder: &std::path::Path) -> Vec<String> {
    let mut names: Vec<String> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn all_fifteen() {
    let Some(folder) = shared_captures() else { return };
    let names = names(&folder);
    assert_eq!(names.len(), 15, "{names:?}");
    let bench = Bench::new();
    let dirs: Vec<_> = names.iter().map(|name| folder.join(name)).collect();
    let mut seal = vec!["seal".into()];
    seal.extend(dirs.iter().map(|dir| dir.as_os_str().to_owned()));

    let sealed = bench.run(&seal);
    assert_eq!(sealed.status, 0, "{}", sealed.stderr);
    let ids: Vec<&str> = sealed.stdout.lines().collect();
    assert_eq!(ids.len(), 15);
    assert!(ids.iter().all(|id| id.len() == 64 && id.bytes().all(|c| c.is_ascii_hexdigit())), "{ids:?}");
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 15, "no two captures are one");

    // By run id, each is the capture whose id was printed for it.
    for (name, id) in names.iter().zip(&ids) {
        let verified = bench.run(&["verify", name.as_str(), "--json"]);
        assert_eq!(verified.status, 0, "{name}: {}{}", verified.stdout, verified.stderr);
        let line = &verified.json()[0];
        assert_eq!((&line["capture"], &line["run_id"]), (&(*id).into(), &name.as_str().into()));
        assert_eq!(line["verified"], true);
        let scored = if name.starts_with("baseline") { 0 } else { 162 };
        assert_eq!((&line["checked"]["rows"], &line["checked"]["scored_rows"]), (&162.into(), &scored.into()));
    }
    let log = bench.run(&["log", "show", "--json"]);
    let logged: Vec<String> = log.json().iter().map(|entry| entry["capture"].as_str().unwrap().to_owned()).collect();
    assert_eq!(logged, ids, "one entry a capture, in the order of sealing");

    shared_scores(&bench);
    diffs(&bench);

    // Sealed again, nothing is written.
    let before = listing(&bench.store());
    let again = bench.run(&seal);
    assert_eq!((again.status, &again.stdout), (0, &sealed.stdout));
    assert_eq!(again.stderr.matches("nothing written").count(), 15, "{}", again.stderr);
    assert_unchanged(&bench.store(), &before);

    let all = bench.run(&["verify", "--all"]);
    assert_eq!((all.status, all.stdout.matches("\nVERIFIED").count()), (0, 15), "{}", all.stdout);
}

/// Bitwise equal repeats share their scores objects, and nothing else has any of them.
fn shared_scores(bench: &Bench) {
    let shards = |name: &str| -> (BTreeSet<String>, String) {
        let shown = bench.run(&["show", name, "--json"]).json();
        let manifest = &shown[0]["manifest"];
        let shards = manifest["score_shards"].as_array().unwrap().iter();
        let root = manifest["capture"]["score_root"].as_str().unwrap().to_owned();
        (shards.map(|shard| shard["object"].as_str().unwrap().to_owned()).collect(), root)
    };
    for (repeat, original) in REPEATS {
        assert_eq!(shards(repeat), shards(original), "{repeat}");
    }
    let (c1, c4) = (shards("oracle-c1-rep0"), shards("oracle-c4-rep0"));
    assert!(c1.0.is_disjoint(&c4.0) && c1.1 != c4.1);
    assert_ne!(shards("oracle-c4-rep2").1, c4.1);

    // And so a repeat adds run.json, rows and manifest to a store, and no scores.
    let Some(folder) = shared_captures() else { return };
    for (repeat, original) in [REPEATS[1], REPEATS[2]] {
        let bench = Bench::new();
        bench.seal(&folder.join(original));
        let before = objects(&bench.store());
        bench.seal(&folder.join(repeat));
        let new: Vec<_> = objects(&bench.store()).into_iter().filter(|path| !before.contains(path)).collect();
        assert_eq!(new.len(), 3, "{repeat}: {new:?}");
        assert!(new.iter().all(|path| path.metadata().unwrap().len() < 200_000), "{repeat}: {new:?}");
    }
}

fn diffs(bench: &Bench) {
    let between = bench.run(&["diff", "oracle-c1-rep0", "oracle-c4-rep0"]);
    assert_eq!(between.status, 1, "{}", between.stderr);
    assert!(between.stdout.contains("prompt 0 from position 24"), "{}", between.stdout);
    assert!(between.stdout.ends_with("DIFFERENT\n"), "{}", between.stdout);

    let order = bench.run(&["diff", "oracle-c4-rep0", "oracle-c4-rep2", "--json"]);
    assert_eq!(order.status, 1, "{}", order.stderr);
    let found = &order.json()[0];
    assert_eq!(found["tokens"], serde_json::json!([]));
    assert_eq!(found["rows_common"], 162);
    assert_eq!(found["scores"]["equal_rows"], 112);
    assert_eq!(found["scores"]["differing"].as_array().unwrap().len(), 50);
    assert_eq!(found["scores"]["other_prefix_rows"], 0);

    // A capture and its bitwise repeat, and a capture and itself, are a reproduction.
    for pair in [["oracle-c4-rep0", "oracle-c4-rep1"], ["oracle-c1-rep0", "oracle-c1-rep0"]] {
        let same = bench.run(&["diff", pair[0], pair[1]]);
        assert_eq!(same.status, 0, "{}{}", same.stdout, same.stderr);
        assert!(same.stdout.contains("162 of 162 rows at identical prefixes bitwise equal"), "{}", same.stdout);
        assert!(same.stdout.ends_with("IDENTICAL\n"));
    }
}

#[test]
fn ids_do_not_depend_on_the_codec() {
    let Some(folder) = shared_captures() else { return };
    let dir = folder.join("oracle-c1-rep0");
    let together = Bench::new();
    let id = together.seal(&dir);
    let mut shards = BTreeSet::new();
    for codec in ["zstd", "none", "lz4"] {
        let args = ["seal", "--codec", codec, dir.to_str().unwrap()];
        let alone = Bench::new();
        let other = alone.run(&args);
        assert_eq!((other.status, other.stdout.trim()), (0, id.as_str()), "{codec}: {}", other.stderr);
        let shown = alone.run(&["show", &id, "--json"]).json();
        let shard = &shown[0]["manifest"]["score_shards"][0];
        assert_eq!(shard["codec"], codec);
        shards.insert(shard["object"].as_str().unwrap().to_owned());
        assert_eq!(alone.run(&["verify", &id]).status, 0, "{codec}");

        let same_store = together.run(&args);
        assert_eq!((same_store.status, same_store.stdout.trim()), (0, id.as_str()), "{codec}: {}", same_store.stderr);
    }
    assert_eq!(shards.len(), 3, "three codecs, three objects: {shards:?}");
    let verified = together.run(&["verify", "oracle-c1-rep0", "--json"]);
    assert_eq!(verified.status, 0, "{}", verified.stdout);
    let line = &verified.json()[0];
    assert_eq!(line["manifests"].as_array().unwrap().len(), 3);
    assert_eq!(line["checked"]["scored_rows"], 3 * 162);
    // run.json and rows stand once; three scores shards and three manifests.
    assert_eq!(objects(&together.store()).len(), 2 + 3 + 3);
}
