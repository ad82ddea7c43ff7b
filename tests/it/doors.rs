//! What comes in and goes out by a path: pipes and folders where files should be, stores that are damaged or made of links, and files that
//! are there already.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use witnessmark::id::Nanos;
use witnessmark::log::Log;
use witnessmark::manifest::{Attachment, Codec};
use witnessmark::meter::Meter;
use witnessmark::seal::{Batch, Outcome};
use witnessmark::store::{Fault, Store, StoreError};

use crate::forge::Forge;
use crate::support::{Bench, Run, assert_unchanged, embedded, files, listing};
use crate::synth::Synth;

fn synth(bench: &Bench, dir: &str, edit: impl FnOnce(&mut Synth)) -> PathBuf {
    let mut synth = Synth::new("capture-only");
    edit(&mut synth);
    let dir = bench.path(dir);
    synth.write(&dir);
    dir
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// What a command came to that must not wait for anything.
fn at_once(mut command: Command) -> Output {
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("it waits: {command:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn what_is_no_file_is_refused_where_a_document_is_named() {
    let bench = Bench::quick();
    bench.seal(&embedded("oracle-c1-rep0"));
    pipe(&bench.path("pipe"));
    let dir = embedded("oracle-c4-rep0");
    let dir = dir.to_str().unwrap();
    let commands: [&[&str]; 7] = [
        &["check-proof", "pipe"],
        &["unbundle", "pipe"],
        &["verify", "pipe"],
        &["verify", "--all", "--checkpoint", "pipe"],
        &["verify", "--all", "--spec", "pipe"],
        &["seal", dir, "--spec", "pipe"],
        &["log", "sign", "--key", "pipe"],
    ];
    for args in commands {
        let run = Run::new(at_once(bench.command(args)));
        assert_eq!((run.status, run.refused()), (2, vec!["not-a-regular-file".to_owned()]), "{args:?}: {}", run.stderr);
    }
    let run = bench.run(&["check-proof", "."]);
    assert_eq!((run.status, run.refused()), (2, vec!["not-a-regular-file".to_owned()]));
    assert_eq!(bench.run(&["check-proof", "nowhere"]).status, 3);
    assert_eq!(Run::new(at_once(bench.command(&["log", "show", "--store", "pipe"]))).status, 3);
}

#[test]
fn one_interrupt_ends_the_reading_of_a_silent_pipe() {
    let bench = Bench::quick();
    let mut command = bench.command(&["unbundle", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    let start = Instant::now();
    // It has begun to read once its store is there.
    while !bench.store().join("store.json").exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(90) {
            child.kill().unwrap();
            panic!("it waits for the pipe");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    assert!(!bench.store().exists(), "a store that was made for nothing goes away again");
    drop(stdin);
}

#[test]
fn a_store_json_that_is_damaged_or_no_file_is_refused_by_name() {
    let bench = Bench::quick();
    let capture = synth(&bench, "one", |_| {});
    bench.seal(&capture);
    let file = bench.store().join("store.json");
    let good = fs::read_to_string(&file).unwrap();
    let damaged = [
        ("json-not-canonical", good.replace(',', ", ")),
        ("json-not-canonical", good.replace('{', "")),
        ("json-not-canonical", String::new()),
        ("json-not-canonical", format!("{{\"origin\":\"{}\",\"schema\":\"witnessmark.store/v1\"}}", "x".repeat(32))),
        ("schema-invalid", "{\"origin\":\"1\"}".to_owned()),
        ("schema-invalid", "{\"schema\":1}".to_owned()),
        ("limit-exceeded", " ".repeat(70_000)),
    ];
    let refused = |rule: &str| {
        for args in [&["verify", "--all"][..], &["log", "show"], &["seal", capture.to_str().unwrap()], &["gc"]] {
            let run = Run::new(at_once(bench.command(args)));
            assert_eq!(
                (run.status, run.refused()),
                (2, vec![rule.to_owned()]),
                "{args:?}: {}{}",
                run.stdout,
                run.stderr
            );
            assert!(run.stdout.contains("store: store.json"), "{}", run.stdout);
        }
    };
    for (rule, text) in damaged {
        fs::write(&file, text).unwrap();
        refused(rule);
    }
    let makers: [fn(&Path); 3] =
        [|at| fs::create_dir(at).unwrap(), |at| symlink("/etc/hostname", at).unwrap(), |at| pipe(at)];
    for make in makers {
        fs::remove_file(&file).or_else(|_| fs::remove_dir(&file)).unwrap();
        make(&file);
        refused("not-a-regular-file");
    }
}

/// Real folders and files only: nothing is written, locked or deleted through a link, and no pipe is waited for.
#[test]
fn nothing_is_written_through_a_link_in_a_store() {
    let bench = Bench::quick();
    let capture = synth(&bench, "one", |_| {});
    bench.seal(&capture);
    let other = synth(&bench, "two", |synth| synth.run["run_id"] = json!("two"));
    fs::create_dir(bench.store().join("refs/bundles")).unwrap();
    for (name, is_pipe) in [
        ("objects", false),
        ("log/tile", false),
        ("refs/bundles", false),
        ("log", false),
        ("refs/runs", false),
        ("tmp", false),
        ("log/lock", false),
        ("log/lock", true),
    ] {
        let (place, away) = (bench.store().join(name), bench.path("away"));
        fs::rename(&place, &away).unwrap();
        if is_pipe {
            pipe(&place)
        } else {
            symlink(&away, &place).unwrap()
        }
        let before = listing(&bench.folder.path().join("away"));
        for args in [&["seal", other.to_str().unwrap()][..], &["gc", "--delete", "--now"]] {
            let run = Run::new(at_once(bench.command(args)));
            assert_eq!(
                (run.status, run.refused()),
                (2, vec!["not-a-regular-file".to_owned()]),
                "{name} {args:?}: {}",
                run.stderr
            );
        }
        // Named once, whatever lies behind it.
        let run = Run::new(at_once(bench.command(&["verify", "--all"])));
        assert_eq!((run.status, run.refused()), (2, vec!["not-a-regular-file".to_owned()]), "{name}: {}", run.stdout);
        let named = run.stdout.lines().filter(|line| line.starts_with("REFUSED: not-a-regular-file: store: ")).count();
        assert_eq!(named, 1, "{name}: {}", run.stdout);
        let store = Store::open(&bench.store()).unwrap();
        let refused = Log::lock(&store).map(drop).map_err(Fault::from);
        assert!(matches!(refused, Err(Fault::Refused(_))), "{name}");
        assert!(matches!(store.check_real(), Err(StoreError::Refused(_))), "{name}");
        assert_unchanged(&bench.folder.path().join("away"), &before);
        fs::remove_file(&place).unwrap();
        fs::rename(&away, &place).unwrap();
    }
    assert_eq!(bench.run(&["gc", "--delete", "--now"]).status, 0);
    bench.seal(&other);
    // What has no place in a store is no pipe either, and a folder is none where a file belongs.
    pipe(&bench.store().join("refs/runs/x"));
    fs::remove_file(bench.store().join("log/lock")).unwrap();
    fs::create_dir(bench.store().join("log/lock")).unwrap();
    let run = Run::new(at_once(bench.command(&["verify", "--all", "--json"])));
    let store = run.json().into_iter().find(|line| line.get("store").is_some()).unwrap();
    let subjects: Vec<_> = store["refusals"].as_array().unwrap().iter().map(|refusal| &refusal["subject"]).collect();
    assert_eq!(subjects, ["log/lock", "refs/runs/x"], "{}", run.stdout);
}

/// Two who seal at the same moment both find the name free; it goes to the one who has the log first.
#[test]
fn a_name_is_taken_once_also_at_the_same_moment() {
    let bench = Bench::quick();
    let (one, two) = (synth(&bench, "one", |_| {}), synth(&bench, "two", |synth| synth.run["note"] = json!("another")));
    let store = Store::create(&bench.store(), "0".repeat(32)).unwrap();
    let meter = Meter::default();
    let prepare = |dir: &Path| {
        let mut batch = Batch::new(&store, Codec::None, None, &meter).unwrap();
        batch.add(dir, None).unwrap();
        batch
    };
    let (first, second, again) = (prepare(&one), prepare(&two), prepare(&one));
    let sealed = first.commit(Nanos(1)).unwrap();
    assert!(matches!(sealed.as_slice(), [Outcome::Sealed(_)]));
    match second.commit(Nanos(2)).unwrap().as_slice() {
        [Outcome::Refused(findings)] => assert_eq!(findings.refusals[0].rule.id(), "name-taken"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(again.commit(Nanos(3)).unwrap().as_slice(), [Outcome::Sealed(_)]));
    assert_eq!(Log::load(&store).unwrap().entries.len(), 1);
}

/// The store is read when a rule asks for it, long after the batch was begun.
#[test]
fn a_replay_is_not_judged_without_the_store_that_it_asks() {
    let bench = Bench::quick();
    let mut replay = Synth::new("self-replay");
    let source = json!({ "run_id": "elsewhere", "request_id": "r" });
    replay.run["requests"][0]["continuation"].as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
    replay.write(&bench.path("replay"));
    let alone = synth(&bench, "alone", |_| {});
    let store = Store::create(&bench.store(), "0".repeat(32)).unwrap();
    let meter = Meter::default();
    let mut batch = Batch::new(&store, Codec::None, None, &meter).unwrap();
    let names = bench.store().join("refs/runs");
    fs::remove_dir(&names).unwrap();
    fs::write(&names, "").unwrap();
    assert!(batch.add(&bench.path("replay"), None).is_err());
    fs::remove_file(&names).unwrap();
    fs::create_dir(&names).unwrap();
    batch.add(&alone, None).unwrap();
    batch.add(&bench.path("replay"), None).unwrap();
    let outcomes = batch.commit(Nanos(1)).unwrap();
    assert!(matches!(outcomes.as_slice(), [Outcome::Sealed(_), Outcome::Sealed(_)]), "{outcomes:?}");
}

#[test]
fn a_file_that_is_also_a_folder_is_refused() {
    let bench = Bench::quick();
    for (paths, status) in [(&["a", "a.txt", "a/b"][..], 2), (&["a.txt", "a/b", "ab"], 0), (&["a/b", "a/b/c/d"], 2)] {
        let mut forge = Forge::of(&embedded("oracle-c1-rep0"));
        let object = forge.put(b"attached".to_vec());
        let mut manifest = forge.manifest();
        let attach = |path: &&str| Attachment { blake3: object.0, bytes: 8, path: (*path).to_owned() };
        manifest.capture.attachments = paths.iter().map(attach).collect();
        forge.publish(&bench.store(), &manifest);
        let run = bench.run(&["verify", "--all"]);
        assert_eq!(run.status, status, "{paths:?}: {}", run.stdout);
        assert_eq!(run.refused(), if status == 2 { vec!["path-escape"] } else { Vec::new() }, "{paths:?}");
    }
}

#[test]
fn what_is_there_is_not_written_over() {
    let bench = Bench::quick();
    bench.seal(&embedded("oracle-c1-rep0"));
    assert_eq!(bench.run(&["log", "keygen", "-o", "key"]).status, 0);
    let commands: [&[&str]; 4] = [
        &["prove", "oracle-c1-rep0", "0:24"],
        &["log", "prove", "0"],
        &["log", "sign", "--key", "key"],
        &["bundle", "oracle-c1-rep0"],
    ];
    let object = files(&bench.store().join("objects")).remove(0);
    for args in commands {
        fs::write(bench.path("mine"), "mine").unwrap();
        for taken in
            [bench.path("mine"), object.clone(), bench.store().join("log/head"), bench.store().join("store.json")]
        {
            let before = fs::read(&taken).unwrap();
            let run = bench.run(&[args, &["-o", taken.to_str().unwrap()]].concat());
            assert_eq!(run.status, 3, "{args:?} {}: {}", taken.display(), run.stderr);
            assert!(run.stderr.contains(&format!("cannot write {}", taken.display())), "{}", run.stderr);
            assert_eq!(fs::read(&taken).unwrap(), before);
        }
        // A device takes the bytes and stays what it is; and nothing is left beside what was written.
        let run = bench.run(&[args, &["-o", "/dev/null"]].concat());
        assert_eq!(run.status, 0, "{args:?}: {}", run.stderr);
        fs::remove_file(bench.path("mine")).unwrap();
        assert_eq!(bench.run(&[args, &["-o", "mine"]].concat()).status, 0, "{args:?}");
        let names = fs::read_dir(bench.folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with(".new-")));
        let run = bench.run(&[args, &["-o", "nowhere/mine"]].concat());
        assert!(
            run.status == 3 && run.stderr.contains("nowhere/mine") && !run.stderr.contains(".new-"),
            "{}",
            run.stderr
        );
    }
    // A receipt is written again, but not into a store.
    let receipt = |file: &Path| {
        bench.run(&[OsStr::new("verify"), "oracle-c1-rep0".as_ref(), "--receipt".as_ref(), file.as_os_str()]).status
    };
    assert_eq!(receipt(&bench.path("mine")), 0);
    assert!(fs::read_to_string(bench.path("mine")).unwrap().contains("witnessmark.receipt/v1"));
    let before = listing(&bench.store());
    for taken in [object, bench.store().join("log/entries")] {
        assert_eq!(receipt(&taken), 3);
    }
    assert_unchanged(&bench.store(), &before);
    assert_eq!(receipt(Path::new("/dev/null")), 0);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn a_full_disk_leaves_no_empty_key() {
    let bench = Bench::quick();
    bench.seal(&synth(&bench, "one", |_| {}));
    let disk = bench.path("disk");
    fs::create_dir(&disk).unwrap();
    let made = Command::new("mount").args(["-t", "tmpfs", "-o", "size=4k", "none"]).arg(&disk).output();
    if !made.is_ok_and(|output| output.status.success()) {
        eprintln!("not run: no right to mount a tmpfs");
        return;
    }
    fs::write(disk.join("full"), [0; 4096]).unwrap();
    let run = bench.run(&["log", "keygen", "-o", "disk/key"]);
    let left = files(&disk);
    assert!(Command::new("umount").arg(&disk).status().unwrap().success());
    assert_eq!((run.status, left), (3, vec![disk.join("full")]), "{}", run.stderr);
    assert!(run.stderr.contains("disk/key") && !run.stderr.contains(".new-"), "{}", run.stderr);
}

#[test]
fn files_of_the_model_are_counted_where_no_folder_of_them_is_given_and_opened_where_one_is() {
    let bench = Bench::new();
    let file = |path: &str| json!({ "path": path, "sha256": "7".repeat(64) });
    let dir = synth(&bench, "capture", |synth| {
        synth.run["model"] = json!({ "files": [file("a"), file("b")] });
        synth.run["tokenizer"] = json!({ "files": [] });
    });
    bench.seal(&dir);
    let declared = |args: &[&str]| {
        let notes = bench.run(&[&["verify", "synth-capture-only", "--json"], args].concat()).json()[0]["notes"].clone();
        let notes: Vec<String> = notes.as_array().unwrap().iter().map(|note| note["text"].to_string()).collect();
        notes.into_iter().filter(|text| text.contains("SHA-256")).collect::<Vec<_>>()
    };
    assert_eq!(declared(&[]), ["\"model.files: 2 by SHA-256 (--model DIR looks at them)\""]);
    let model = bench.path("model");
    fs::create_dir(&model).unwrap();
    assert_eq!(declared(&["--model", "model"]), [""; 0]);
    // What is not there is not the model's; what cannot be opened may be.
    let verify = || bench.run(&["verify", "synth-capture-only", "--model", "model"]);
    assert_eq!((verify().status, verify().refused()), (2, vec!["model-mismatch".to_owned()]));
    symlink("b", model.join("b")).unwrap();
    let run = verify();
    assert_eq!(run.status, 3, "{}", run.stdout);
    assert!(run.stderr.contains("cannot open model/b: "), "{}", run.stderr);
    // A pipe is no file of the model, and is not waited for; a folder that is not there says nothing about the capture.
    fs::remove_file(model.join("b")).unwrap();
    pipe(&model.join("b"));
    let run = Run::new(at_once(bench.command(&["verify", "synth-capture-only", "--model", "model"])));
    assert_eq!((run.status, run.refused()), (2, vec!["model-mismatch".to_owned()]), "{}", run.stdout);
    for nowhere in ["nowhere", "model/b"] {
        let run = Run::new(at_once(bench.command(&["verify", "synth-capture-only", "--model", nowhere])));
        assert_eq!(run.status, 3, "{nowhere}: {}", run.stdout);
    }
}

/// A pipe that nobody reads takes no receipt, and is not waited for; one that somebody reads does.
#[test]
fn receipts_wait_for_no_reader() {
    let bench = Bench::quick();
    let id = bench.seal(&embedded("oracle-c1-rep0"));
    pipe(&bench.path("pipe"));
    fs::create_dir(bench.path("receipts")).unwrap();
    pipe(&bench.path(&format!("receipts/{id}.json")));
    for args in [["--receipt", "pipe"], ["--receipt-dir", "receipts"]] {
        let run = Run::new(at_once(bench.command(&[&["verify", &id], &args[..]].concat())));
        assert_eq!(run.status, 3, "{}", run.stdout);
        assert!(run.stderr.contains("nobody reads"), "{}", run.stderr);
    }
    assert_eq!(bench.run(&["verify", &id, "--receipt", "/dev/null"]).status, 0);
    let run = bench.run(&["verify", &id, "--receipt", "/dev/stdout", "--json"]);
    assert_eq!((run.status, run.stdout.contains("witnessmark.receipt/v1")), (0, true), "{}", run.stderr);
}

/// A file that is no bundle, called as a run is, does not stand before it.
#[test]
fn a_stray_file_does_not_hide_a_run() {
    let bench = Bench::quick();
    bench.seal(&embedded("oracle-c1-rep0"));
    fs::write(bench.path("oracle-c1-rep0"), "a page of notes, longer than the first line of a bundle").unwrap();
    fs::write(bench.path("oracle-c4-rep0"), "short").unwrap();
    let run = bench.run(&["verify", "oracle-c1-rep0"]);
    assert_eq!(run.status, 0, "{}", run.stdout);
    // What no run is called is meant to be a bundle, and what begins as one is one.
    let run = bench.run(&["verify", "oracle-c4-rep0"]);
    assert_eq!((run.status, run.refused()), (2, vec!["schema-invalid".to_owned()]), "{}", run.stderr);
    fs::write(bench.path("oracle-c1-rep0"), "witnessmark.bundle/v1\n").unwrap();
    let run = bench.run(&["verify", "oracle-c1-rep0"]);
    assert_eq!((run.status, run.refused()), (2, vec!["schema-invalid".to_owned()]), "{}", run.stderr);
}

/// What could not be written is named, and not what it was made of.
#[test]
fn an_output_that_cannot_be_written_is_named() {
    let bench = Bench::quick();
    bench.seal(&embedded("oracle-c1-rep0"));
    let run = bench.run(&["bundle", "oracle-c1-rep0", "-o", "/dev/full"]);
    assert_eq!(run.status, 3);
    assert!(
        run.stderr.starts_with("error: cannot write /dev/full: ") && !run.stderr.contains("objects"),
        "{}",
        run.stderr
    );
    let run = bench.run(&["bundle", "oracle-c1-rep0", "-o", "nowhere/b.wmb"]);
    assert_eq!((run.status, run.stderr.as_str()), (3, "error: cannot write nowhere/b.wmb: there is no such folder\n"));
}
