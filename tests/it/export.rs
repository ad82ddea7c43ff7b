//! What is exported and sealed again is the same capture.

use std::fs;

use super::drill::witnessed;
use super::support::{Bench, embedded, files, shared_captures};

/// Exports the capture `id` and seals the directory into another store.
fn round_trip(bench: &Bench, id: &str) -> std::path::PathBuf {
    let dir = bench.folder.path().join(format!("export-{id}"));
    let run = bench.run(&["export".as_ref(), id.as_ref(), "-o".as_ref(), dir.as_os_str()]);
    assert_eq!(run.status, 0, "{}{}", run.stdout, run.stderr);
    assert_eq!(Bench::new().seal(&dir), id);
    dir
}

#[test]
fn embedded_captures_come_back() {
    let bench = Bench::new();
    for name in ["oracle-c1-rep0", "oracle-c4-rep0"] {
        let dir = round_trip(&bench, &bench.seal(&embedded(name)));
        for file in ["run.json", "scores.bf16"] {
            assert!(fs::read(dir.join(file)).unwrap() == fs::read(embedded(name).join(file)).unwrap(), "{name} {file}");
        }
    }
}

#[test]
fn attachments_and_x_come_back() {
    let bench = Bench::new();
    for mode in ["capture-only", "common-replay"] {
        let from = bench.path(mode);
        witnessed(mode, &from);
        // The order of the file is not evidence: an export has key order.
        let dir = round_trip(&bench, &bench.seal(&from));
        for file in ["run.json", "attachments/config.toml", "attachments/logs/engine.txt"] {
            assert!(fs::read(dir.join(file)).unwrap() == fs::read(from.join(file)).unwrap(), "{file}");
        }
        assert_eq!(files(&dir).len(), files(&from).len());
    }
}

#[test]
fn whole_real_captures_come_back() {
    let Some(captures) = shared_captures() else { return };
    let bench = Bench::new();
    for entry in fs::read_dir(captures).unwrap() {
        let dir = round_trip(&bench, &bench.seal(&entry.unwrap().path()));
        fs::remove_dir_all(dir).unwrap();
    }
}

#[test]
fn nothing_is_written_over_and_nothing_half_made_stays() {
    let bench = Bench::new();
    let id = bench.seal(&embedded("oracle-c1-rep0"));
    let taken = bench.folder.path().join("taken");
    fs::create_dir(&taken).unwrap();
    assert_eq!(bench.run(&["export", &id, "-o", "taken"]).status, 3);
    assert_eq!(files(&taken).len(), 0);
    let shard =
        files(&bench.store().join("objects")).into_iter().max_by_key(|file| file.metadata().unwrap().len()).unwrap();
    let mut bytes = fs::read(&shard).unwrap();
    bytes[5000] ^= 1;
    fs::write(&shard, bytes).unwrap();
    let run = bench.run(&["export", &id, "-o", "new"]);
    assert_eq!((run.status, run.refused()), (2, vec!["object-digest".to_owned()]));
    let left: Vec<_> = fs::read_dir(bench.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn a_run_that_never_ended_is_kept_meets_no_spec_and_comes_back() {
    let bench = Bench::new();
    let dir = bench.copy(&embedded("oracle-c1-rep0"), "torn");
    fs::rename(dir.join("run.json"), dir.join("run.json.partial")).unwrap();
    let kept = |bench: &Bench, dir: &std::path::Path| {
        let run = bench.run(&["seal".as_ref(), "--incomplete".as_ref(), dir.as_os_str()]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        run.stdout.trim().to_owned()
    };
    assert_eq!(bench.try_seal(&dir).refused(), ["torn-capture"]);
    let id = kept(&bench, &dir);
    let run = bench.run(&["verify", &id]);
    assert!(run.status == 0 && run.stdout.contains("INCOMPLETE"), "{}", run.stdout);
    fs::write(bench.path("spec.toml"), "schema = \"witnessmark.spec/v1\"\nworkload = \"any\"\n").unwrap();
    let run = bench.run(&["verify", &id, "--spec", "spec.toml"]);
    assert_eq!((run.status, run.refused()), (2, vec!["torn-capture".to_owned()]));
    let out = bench.path("export");
    assert_eq!(bench.run(&["export".as_ref(), id.as_ref(), "-o".as_ref(), out.as_os_str()]).status, 0);
    assert!(!out.join("run.json").exists());
    assert_eq!(kept(&Bench::new(), &out), id);
    assert_ne!(Bench::new().seal(&embedded("oracle-c1-rep0")), id);
}
