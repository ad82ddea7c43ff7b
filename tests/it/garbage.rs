//! Garbage: orphans and leftovers go, everything else stays.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use witnessmark::catalog::Catalog;
use witnessmark::gc::{delete, survey};
use witnessmark::log::Log;
use witnessmark::store::Store;

use crate::support::{Bench, embedded, files};

fn gc(bench: &Bench, args: &[&str]) -> serde_json::Value {
    let run = bench.run(&[&["gc", "--json"], args].concat());
    assert_eq!(run.status, 0, "{}{}", run.stdout, run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

/// Puts an object into a store that no manifest names.
fn orphan(bench: &Bench, bytes: &[u8]) -> std::path::PathBuf {
    let store = Store::open(&bench.store()).unwrap();
    let mut staging = store.stage().unwrap();
    let id = staging.add_bytes(bytes, "write into the store").unwrap();
    staging.commit().unwrap();
    bench.store().join(Store::object_path(&id))
}

#[expect(clippy::disallowed_methods, reason = "files are made older than they are")]
fn age(path: &std::path::Path) {
    let then = SystemTime::now() - Duration::from_secs(2 * 3600);
    File::open(path).unwrap().set_modified(then).unwrap();
}

#[test]
fn orphans_and_leftovers_go_and_nothing_else() {
    let bench = Bench::new();
    bench.seal(&embedded("oracle-c1-rep0"));
    let before = files(&bench.store());
    let path = orphan(&bench, b"nobody's");
    let left = bench.store().join("tmp/seal-dead");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("0"), b"half an object").unwrap();
    let stale = bench.store().join("refs/runs/.new-dead");
    fs::write(&stale, b"{").unwrap();

    // Young: spared.
    let found = gc(&bench, &["--delete"]);
    assert_eq!((&found["bytes"], &found["spared"]), (&0.into(), &3.into()));
    for path in [&path, &left.join("0"), &left, &stale] {
        age(path);
    }
    // A dry run deletes nothing.
    let found = gc(&bench, &[]);
    assert_eq!((&found["bytes"], &found["deleted"]), (&23.into(), &false.into()));
    assert!(path.exists() && left.exists() && stale.exists());
    let found = gc(&bench, &["--delete"]);
    assert_eq!((&found["bytes"], &found["orphans"].as_array().unwrap().len()), (&23.into(), &1));
    assert_eq!(files(&bench.store()), before);
    assert_eq!(bench.run(&["verify", "--all"]).status, 0);
    assert_eq!(gc(&bench, &["--now"])["bytes"], 0);
}

#[test]
fn with_now_the_young_go_too_but_not_what_somebody_works_on() {
    let bench = Bench::new();
    bench.seal(&embedded("oracle-c1-rep0"));
    let path = orphan(&bench, b"nobody's");
    let store = Store::open(&bench.store()).unwrap();
    let mut staging = store.stage().unwrap();
    staging.add_bytes(b"in the making", "write into the store").unwrap();
    let found = gc(&bench, &["--now", "--delete"]);
    assert_eq!((&found["bytes"], &found["spared"]), (&8.into(), &1.into()));
    assert!(!path.exists());
    // The staging is whole.
    assert!(staging.commit().unwrap().is_empty());
}

#[test]
fn where_a_manifest_cannot_be_read_nothing_is_garbage() {
    let bench = Bench::new();
    bench.seal(&embedded("oracle-c1-rep0"));
    let path = orphan(&bench, b"nobody's");
    age(&path);
    let log = bench.run(&["log", "show", "--json"]).stdout;
    let entry: serde_json::Value = serde_json::from_str(&log).unwrap();
    let manifest: witnessmark::id::ObjectId = entry["manifest"].as_str().unwrap().parse().unwrap();
    let manifest = bench.store().join(Store::object_path(&manifest));
    let bytes = fs::read(&manifest).unwrap();
    fs::remove_file(&manifest).unwrap();
    let run = bench.run(&["gc", "--delete"]);
    assert_eq!((run.status, run.refused()), (2, vec!["object-missing".to_owned()]));
    assert!(path.exists());
    fs::write(&manifest, bytes).unwrap();
    // Nor where the log cannot be believed.
    let head = bench.store().join("log/head");
    let text = fs::read_to_string(&head).unwrap();
    fs::write(&head, text.replacen("\"size\":1", "\"size\":2", 1)).unwrap();
    let run = bench.run(&["gc", "--delete"]);
    assert_eq!((run.status, run.refused()), (2, vec!["log-inconsistent".to_owned()]));
    assert!(path.exists());
}

#[test]
fn what_is_no_object_is_left_alone_and_said() {
    let bench = Bench::new();
    bench.seal(&embedded("oracle-c1-rep0"));
    let stray = bench.store().join("objects/README");
    fs::write(&stray, b"mine").unwrap();
    age(&stray);
    let found = gc(&bench, &["--now", "--delete"]);
    assert_eq!(found["strange"], serde_json::json!(["objects/README"]));
    assert!(stray.exists());
}

#[test]
fn seals_and_collections_at_once_lose_nothing() {
    let bench = Bench::new();
    bench.seal(&embedded("oracle-c1-rep0"));
    std::thread::scope(|scope| {
        let collector = scope.spawn(|| {
            for _ in 0..12 {
                let run = bench.run(&["gc", "--now", "--delete"]);
                assert_eq!(run.status, 0, "{}{}", run.stdout, run.stderr);
            }
        });
        for codec in ["zstd", "lz4", "none"] {
            let dir = embedded("oracle-c4-rep0");
            let args = ["seal".as_ref(), "--codec".as_ref(), codec.as_ref(), dir.as_os_str()];
            // A collection with --now may take objects that are not named yet: then the seal says so, and is done again.
            let run = bench.run(&args);
            assert!(matches!(run.status, 0 | 2), "{}{}", run.stdout, run.stderr);
            if run.status == 2 {
                assert_eq!(run.refused(), ["object-missing"]);
            }
        }
        collector.join().unwrap();
    });
    let run = bench.run(&["verify", "--all"]);
    assert_eq!(run.status, 0, "{}", run.stdout);
}

/// A seal that ends takes its own folder away while it is deleted.
#[test]
fn what_its_owner_took_away_meanwhile_is_gone() {
    let bench = Bench::quick();
    bench.seal(&embedded("oracle-c1-rep0"));
    let store = Store::open(&bench.store()).unwrap();
    for name in ["tmp/seal-dead", "tmp/seal-gone"] {
        fs::create_dir(bench.store().join(name)).unwrap();
    }
    let lock = Log::lock(&store).unwrap();
    let catalog = Catalog::load(&store).unwrap();
    #[expect(clippy::disallowed_methods, reason = "younger than any file")]
    let before = SystemTime::now() + Duration::from_secs(3600);
    let garbage = survey(&catalog, before).unwrap().unwrap();
    assert_eq!(garbage.leftovers.len(), 2);
    fs::remove_dir(bench.store().join("tmp/seal-gone")).unwrap();
    delete(&store, &garbage, &lock).unwrap();
    assert_eq!(fs::read_dir(bench.store().join("tmp")).unwrap().count(), 0);
}
