//! The command line: exit statuses, names, streams, signals, and two processes at once.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use witnessmark::catalog::{Catalog, NameError};
use witnessmark::digest::{Blake3, Sha256};
use witnessmark::id::{CaptureId, ObjectId};
use witnessmark::refusal::Rule;
use witnessmark::store::Store;

use crate::forge;
use crate::support::{Bench, Run, assert_unchanged, embedded, files, listing, objects};
use crate::synth::Synth;

fn synth(bench: &Bench, name: &str) -> std::path::PathBuf {
    let mut synth = Synth::new("capture-only");
    synth.run["run_id"] = json!(name);
    let dir = bench.path(name);
    synth.write(&dir);
    dir
}

#[test]
fn a_wrong_command_line_is_64_and_help_is_0() {
    let bench = Bench::new();
    let wrong: [&[&str]; 10] = [
        &["--bogus"],
        &[],
        &["seal"],
        &["verify"],
        &["verify", "--all", "x"],
        &["explain", "no-such-rule"],
        &["seal", "--codec", "brotli", "x"],
        &["seal", "--as", "n", "a", "b"],
        &["--threads", "0", "verify", "--all"],
        &["log"],
    ];
    for args in wrong {
        let run = bench.run(args);
        assert_eq!(run.status, 64, "{args:?}: {}", run.stderr);
        assert!(run.stdout.is_empty() && !run.stderr.is_empty(), "{args:?}");
    }
    for args in [&["--help"][..], &["-h"], &["--version"], &["seal", "--help"], &["help", "verify"]] {
        let run = bench.run(args);
        assert_eq!(run.status, 0, "{args:?}: {}", run.stderr);
        assert!(!run.stdout.is_empty() && run.stderr.is_empty(), "{args:?}");
    }
    assert_eq!(bench.run(&["--version"]).stdout, concat!("witnessmark ", env!("CARGO_PKG_VERSION"), "\n"));
    assert!(!bench.store().exists());
}

#[test]
fn names() {
    let bench = Bench::new();
    let id = bench.seal(&synth(&bench, "one"));
    let prefix = &id[..8];

    for what in [id.as_str(), prefix, &id[..40], "one"] {
        assert_eq!(bench.run(&["verify", what]).status, 0, "{what}");
        let shown = bench.run(&["show", what, "--json"]);
        assert_eq!(shown.json()[0]["capture"], id.as_str(), "{what}");
    }
    let manifest = bench.run(&["show", "one", "--json"]).json()[0]["manifests"][0].as_str().unwrap().to_owned();
    assert_eq!(bench.run(&["verify", &manifest]).status, 0);

    for unknown in ["two", &id[..7], &"0".repeat(64), &id.to_uppercase()] {
        for command in ["verify", "show"] {
            let run = bench.run(&[command, unknown]);
            assert_eq!(run.status, 3, "{command} {unknown}");
            assert!(run.stderr.contains(unknown), "{}", run.stderr);
        }
        assert_eq!(bench.run(&["diff", "one", unknown]).status, 3, "{unknown}");
    }
    // One unknown name among good ones: they are verified, and the worst status wins.
    let mixed = bench.run(&["verify", "two", "one"]);
    assert_eq!(mixed.status, 3);
    assert!(mixed.stdout.contains("VERIFIED"), "{}", mixed.stdout);

    assert_eq!(bench.run(&["verify", "--exact", &id]).status, 0);
    for loose in ["one", prefix, &id[..63]] {
        assert_eq!(bench.run(&["verify", "--exact", loose]).status, 64, "{loose}");
    }

    // Another capture goes by a name that is the first one's prefix.
    let dir = synth(&bench, "two");
    let other = bench.run(&["seal", "--as", prefix, dir.to_str().unwrap()]);
    assert_eq!(other.status, 0, "{}", other.stderr);
    let other = other.stdout.trim();
    assert_ne!(other, id);
    for command in ["verify", "show"] {
        let run = bench.run(&[command, prefix]);
        assert_eq!(run.status, 64, "{command}: {}", run.stderr);
        assert!(run.stderr.contains(&id) && run.stderr.contains(other), "{}", run.stderr);
    }
    assert_eq!(bench.run(&["verify", &id[..9]]).status, 0, "a longer prefix still names one capture");

    // A name that is taken is refused, and stays with its owner; the same capture may have it again.
    let before = listing(&bench.store());
    let third = synth(&bench, "three");
    let run = bench.run(&["seal", "--as", "one", third.to_str().unwrap()]);
    assert_eq!((run.status, run.refused()), (2, vec!["name-taken".to_owned()]));
    assert_unchanged(&bench.store(), &before);
    assert_eq!(bench.run(&["seal", "--as", "one", bench.path("one").to_str().unwrap()]).status, 0);
}

#[test]
fn a_damaged_name_is_refused_and_given_to_nobody() {
    let bench = Bench::quick();
    bench.seal(&synth(&bench, "one"));
    let third = synth(&bench, "three");
    let path = bench.store().join("refs/runs/one");
    let spoil: [(&dyn Fn(), &str); 2] = [
        (&|| fs::write(&path, "garbage").unwrap(), "json-not-canonical"),
        (
            &|| {
                fs::remove_file(&path).unwrap();
                assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
            },
            "not-a-regular-file",
        ),
    ];
    for (spoil, rule) in spoil {
        spoil();
        let log = fs::read(bench.store().join("log/entries")).unwrap();
        let run = bench.run(&["seal", "--as", "one", third.to_str().unwrap()]);
        assert_eq!((run.status, run.refused()), (2, vec![rule.to_owned()]));
        assert_eq!(fs::read(bench.store().join("log/entries")).unwrap(), log);
    }
}

#[test]
fn one_name_means_alone_what_it_means_among_all() {
    let bench = Bench::quick();
    let id = bench.seal(&synth(&bench, "one"));
    bench.seal(&synth(&bench, "Two .."));
    // A name that is also a prefix of an id.
    let named = synth(&bench, "three");
    let run = bench.run(&["seal".as_ref(), "--as".as_ref(), id[..9].as_ref(), named.as_os_str()]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    fs::write(bench.store().join("refs/runs/damaged"), "{}").unwrap();
    let store = Store::open(&bench.store()).unwrap();
    for name in ["one", "Two ..", "three", &id, &id[..8], &id[..9], "damaged", "nobody", "", ".", "one/"] {
        // What else may have been meant is asked among all names only.
        let plain = |error: NameError| error.to_string().split("; did you mean").next().map(str::to_owned);
        let found = |catalog: Catalog<'_>| catalog.resolve(name, false).map_err(plain);
        assert_eq!(found(Catalog::load_one(&store, name).unwrap()), found(Catalog::load(&store).unwrap()), "{name:?}");
    }
    let damaged = Catalog::load_one(&store, "damaged").unwrap();
    assert_eq!((damaged.refusals.len(), Catalog::load_one(&store, "one").unwrap().refusals.len()), (1, 0));
}

#[test]
fn head_ends_log_show_quietly() {
    let bench = Bench::new();
    let store = forge::empty_store(&bench.store());
    // More than a pipe holds.
    let acts: Vec<_> = (0..5000_u32)
        .map(|n| (CaptureId(Sha256::of(&n.to_le_bytes())), ObjectId(Blake3::of(&n.to_le_bytes()))))
        .collect();
    forge::write_log(&store, &acts);
    for args in [&["log", "show"][..], &["log", "show", "--json"]] {
        let mut child = bench.command(args).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert!(!line.is_empty());
        drop(lines);
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(stderr, "");
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(13), "as a process dies whose reader went away: {status:?}");
    }
    assert_eq!(bench.run(&["log", "show"]).stdout.lines().count(), 5001);
}

#[test]
fn json_everywhere() {
    let bench = Bench::new();
    let (c1, c4) = (embedded("oracle-c1-rep0"), embedded("oracle-c4-rep0"));
    let (c1, c4) = (c1.to_str().unwrap(), c4.to_str().unwrap());
    let bad = bench.path("bad");
    fs::create_dir(&bad).unwrap();
    let one_line = |args: &[&str], status: i32| -> Value {
        let run = bench.run(&[args, &["--json"]].concat());
        assert_eq!(run.status, status, "{args:?}: {}", run.stderr);
        let lines = run.json();
        assert_eq!(lines.len(), 1, "{args:?}: {}", run.stdout);
        lines[0].clone()
    };

    let sealed = bench.run(&["seal", "--json", c1, c4, bad.to_str().unwrap(), "nowhere"]);
    assert_eq!(sealed.status, 3);
    let lines = sealed.json();
    let mut statuses: Vec<_> = lines.iter().map(|line| line["status"].as_str().unwrap()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, ["error", "refused", "sealed", "sealed"]);
    assert!(sealed.stderr.is_empty(), "{}", sealed.stderr);
    let refused = lines.iter().find(|line| line["status"] == "refused").unwrap();
    assert_eq!(refused["refusals"][0]["rule"], "nothing-to-verify");
    assert_eq!(one_line(&["seal", c1], 0)["already"], true);

    assert_eq!(bench.run(&["verify", "--all", "--json"]).json().len(), 2);
    assert_eq!(one_line(&["verify", "oracle-c1-rep0"], 0)["verified"], true);
    assert_eq!(one_line(&["verify", "--quick", "oracle-c1-rep0"], 0)["depth"], "quick");
    assert_eq!(one_line(&["diff", "oracle-c1-rep0", "oracle-c4-rep0"], 1)["tokens"][0]["position"], 24);
    assert_eq!(one_line(&["show", "oracle-c1-rep0"], 0)["run"]["run_id"], "oracle-c1-rep0");
    assert_eq!(bench.run(&["log", "show", "--json"]).json().len(), 2);
    assert_eq!(bench.run(&["explain", "--json"]).json().len(), Rule::ALL.len());
    assert_eq!(one_line(&["explain", "row-swapped"], 0)["rule"], "row-swapped");
    let demo = bench.run(&["demo", "--json"]);
    assert_eq!((demo.status, demo.json().len()), (0, 6), "two sealed, two verified, one refused, one diff");

    // Refusals are JSON too.
    let store = bench.store();
    fs::remove_file(store.join("log/entries")).unwrap();
    assert_eq!(one_line(&["diff", "oracle-c1-rep0", "oracle-c4-rep0"], 2)["refusals"][0]["rule"], "log-inconsistent");
    let run = bench.run(&["verify", "oracle-c1-rep0", "--json"]);
    assert_eq!((run.status, run.json().len()), (2, 2), "the log, then the capture that it no longer has");
    fs::remove_file(store.join("log/head")).unwrap();
    // Tiles that are left would give away that there was a log.
    fs::remove_dir_all(store.join("log/tile")).unwrap();
    assert_eq!(one_line(&["verify", "--all"], 2)["refusals"][0]["rule"], "nothing-to-verify");
    assert_eq!(one_line(&["show", "oracle-c1-rep0"], 2)["refusals"][0]["rule"], "root-mismatch");
}

#[test]
fn who_misspells_a_name_is_asked_what_was_meant() {
    let bench = Bench::new();
    bench.seal(&synth(&bench, "oracle-c1"));
    let file = |name: &str, text: &str| {
        let head = "schema = \"witnessmark.spec/v1\"\nworkload = \"w\"\n";
        fs::write(bench.path(name), format!("{head}{text}")).unwrap();
    };
    for (args, status, said) in [
        (
            &["explain", "row-mising"][..],
            64,
            "no rule \"row-mising\" (witnessmark explain lists them); did you mean row-missing?",
        ),
        (&["explain", "something"], 64, "no rule \"something\" (witnessmark explain lists them)\n"),
        (&["verify", "orcale-c1"], 3, "the run id \"orcale-c1\"; did you mean oracle-c1?"),
        (&["show", "candidate"], 3, "the run id \"candidate\"\n"),
    ] {
        let run = bench.run(args);
        assert_eq!(run.status, status, "{}", run.stderr);
        assert!(run.stderr.contains(said), "{}", run.stderr);
    }
    // A run may have keys of its own, so that a spec that asks for them is one.
    file(
        "good.toml",
        "[require]\nbindings = [\"corpus.sha256\", \"model\", \"scores.dtype\"]\n[pins.all]\n\"device.name\" = \"x\"\n",
    );
    let bad = "[comparison]\nshapes = [\"schedule.slot\"]\n[require]\nbindings = [\"devise.name\"]\n[pins.oracle]\n\"device.nam\" = \"x\"\n\"weather\" = 1\n";
    file("bad.toml", bad);
    let unknown = |args: &[&str]| {
        let run = bench.run(args);
        assert_eq!(run.status, 0, "{}", run.stderr);
        run.json()[0]["unknown"].clone()
    };
    assert_eq!(unknown(&["spec", "check", "good.toml", "--json"]), json!([]));
    let none = "is no binding that the format describes";
    let said = json!([
        format!("pins.oracle: \"device.nam\" {none}; did you mean device.name?"),
        format!("pins.oracle: \"weather\" {none}"),
        format!("require.bindings: \"devise.name\" {none}; did you mean device.name?"),
        format!("comparison.shapes: \"schedule.slot\" {none}; did you mean schedule.slots?"),
    ]);
    assert_eq!(unknown(&["spec", "check", "bad.toml", "--json"]), said);
    assert_eq!(unknown(&["spec", "seal", "bad.toml", "--json"]), said);
    let shown = bench.run(&["spec", "check", "bad.toml"]).stdout;
    assert_eq!(shown.matches("\n  unknown ").count(), 4, "{shown}");
}

#[test]
fn explain_knows_every_rule() {
    let bench = Bench::new();
    let list = bench.run(&["explain"]);
    assert_eq!(list.status, 0);
    assert!(list.stdout.lines().all(|line| line.chars().count() <= 100), "{}", list.stdout);
    let entries = list.stdout.lines().filter(|line| !line.starts_with(' '));
    let listed: Vec<&str> = entries.map(|line| line.split_whitespace().next().unwrap()).collect();
    let all: Vec<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
    assert_eq!(listed, all);
    for rule in all {
        let run = bench.run(&["explain", rule]);
        assert_eq!(run.status, 0, "{rule}");
        assert!(run.stdout.starts_with(&format!("{rule}\n")), "{}", run.stdout);
        for part in ["protects", "what to do", "asked"] {
            assert!(run.stdout.contains(&format!("\n  {part} ")), "{rule}: {}", run.stdout);
        }
    }
}

#[test]
fn demo() {
    let bench = Bench::new();
    let run = bench.run(&["demo"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    for part in ["VERIFIED", "REFUSED: object-digest", "REFUSED: row-swapped", "prompt 0 from position 24"] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    assert_eq!(run.stderr, "");
    assert_eq!(files(bench.folder.path()), Vec::<std::path::PathBuf>::new(), "nothing is left behind");
}

#[test]
fn a_quick_pass_says_what_it_did_not_check() {
    let bench = Bench::new();
    bench.seal(&embedded("oracle-c1-rep0"));
    let quick = bench.run(&["verify", "--quick", "oracle-c1-rep0"]);
    assert_eq!(quick.status, 0);
    assert!(quick.stdout.contains("0 rows of scores"), "{}", quick.stdout);
    assert!(quick.stdout.contains("QUICK PASS"), "{}", quick.stdout);
    for rule in ["score-nonfinite", "score-witness", "argmax-witness", "token-not-argmax", "row-swapped"] {
        assert!(quick.stdout.contains(rule), "{rule}: {}", quick.stdout);
    }
    assert!(!quick.stdout.contains("VERIFIED"), "{}", quick.stdout);
    let full = bench.run(&["verify", "oracle-c1-rep0"]);
    assert!(full.stdout.contains("\nVERIFIED") && !full.stdout.contains("QUICK"), "{}", full.stdout);
}

#[test]
fn two_processes_lose_nothing() {
    for round in 0..4 {
        let bench = Bench::new();
        let dirs: Vec<_> = (0..6).map(|n| synth(&bench, &format!("run-{round}-{n}"))).collect();
        // The store is not there yet: they make it together.
        let spawn = |dir: &std::path::PathBuf| bench.command(&["seal".as_ref(), dir.as_os_str()]).spawn().unwrap();
        let children: Vec<_> = dirs.iter().map(spawn).collect();
        let runs = children.into_iter().map(|child| Run::new(child.wait_with_output().unwrap()));
        let mut ids: Vec<String> = runs
            .map(|run| {
                assert_eq!(run.status, 0, "{}", run.stderr);
                run.stdout.trim().to_owned()
            })
            .collect();
        ids.sort();
        let mut logged: Vec<_> = bench
            .run(&["log", "show", "--json"])
            .json()
            .iter()
            .map(|entry| entry["capture"].as_str().unwrap().to_owned())
            .collect();
        logged.sort();
        assert_eq!(logged, ids);
        let all = bench.run(&["verify", "--all"]);
        assert_eq!((all.status, all.stdout.matches("\nVERIFIED").count()), (0, 6), "{}", all.stdout);
        for n in 0..6 {
            assert_eq!(bench.run(&["show", &format!("run-{round}-{n}")]).status, 0);
        }
    }
}

#[test]
fn a_store_that_was_only_begun_is_finished() {
    let bench = Bench::new();
    let dir = synth(&bench, "one");
    fs::create_dir_all(bench.store().join("objects")).unwrap();
    fs::create_dir_all(bench.store().join("refs/runs")).unwrap();
    fs::write(bench.store().join(".new-abc"), "{").unwrap();
    bench.seal(&dir);
    assert_eq!(bench.run(&["verify", "--all"]).status, 0);

    // A folder with anything else in it is not a store, and is left alone.
    let other = bench.path("other");
    fs::create_dir_all(other.join("log")).unwrap();
    fs::write(other.join("log/app.log"), "mine").unwrap();
    let run = bench.run(&["seal", "--store", other.to_str().unwrap(), dir.to_str().unwrap()]);
    assert_eq!(run.status, 3, "{}", run.stderr);
    assert_eq!(files(&other), [other.join("log/app.log")]);
}

#[test]
fn whoever_may_list_a_store_may_read_it() {
    let bench = Bench::new();
    bench.seal(&synth(&bench, "one"));
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let object = mode(&objects(&bench.store())[0]);
    for path in ["store.json", "log/head", "log/entries", "refs/runs/one"] {
        assert_eq!(mode(&bench.store().join(path)), object, "{path}");
    }
}

/// A capture whose scores take long to read: zeros, in a file with a hole.
fn long_capture(bench: &Bench) -> std::path::PathBuf {
    const VOCAB: u32 = 1 << 20;
    let mut synth = Synth::shaped("capture-only", 8, 1, 2000);
    synth.run["scores"]["vocab_size"] = json!(VOCAB);
    let dir = bench.path("long");
    synth.write(&dir);
    let file = fs::File::create(dir.join("scores.bf16")).unwrap();
    let len = u64::from(VOCAB) * 2000 * 2;
    file.set_len(len).unwrap();
    file.write_all_at(&[0], len - 1).unwrap();
    dir
}

#[test]
fn an_interrupt_leaves_nothing_and_kills() {
    let bench = Bench::new();
    let dir = long_capture(&bench);
    let other = synth(&bench, "one");
    for (store_is_there, signal, number) in [(false, "-INT", 2), (true, "-TERM", 15)] {
        if store_is_there {
            bench.seal(&other);
        }
        let before = listing(&bench.store());
        let child = bench.command(&["seal".as_ref(), dir.as_os_str()]).spawn().unwrap();
        let start = Instant::now();
        let staging = || {
            let tmp = bench.store().join("tmp");
            tmp.is_dir() && walkdir::WalkDir::new(tmp).into_iter().flatten().any(|entry| entry.file_type().is_file())
        };
        while !staging() {
            assert!(start.elapsed() < Duration::from_secs(60), "it never began to stage");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(number), "{output:?}");
        assert!(output.stdout.is_empty());
        assert_unchanged(&bench.store(), &before);
        let tmp = bench.store().join("tmp");
        assert_eq!(bench.store().exists(), store_is_there);
        assert!(!tmp.exists() || tmp.read_dir().unwrap().next().is_none(), "nothing stays staged");
    }
}

/// Names in evidence are anything: in a report they are text on one line, and say nothing to a terminal.
#[test]
fn names_do_not_speak_to_the_terminal() {
    let bench = Bench::new();
    let dir = bench.path("capture");
    let mut synth = super::synth::Synth::new("capture-only");
    synth.run["run_id"] = "r\u{1b}[31m\nVERIFIED: no\u{202e}".into();
    synth.write(&dir);
    let id = bench.seal(&dir);
    for args in [vec!["verify", &id], vec!["show", &id], vec!["log", "show"], vec!["diff", &id, &id]] {
        let run = bench.run(&args);
        assert!(run.stdout.contains("r\\u{1b}[31m\\u{a}VERIFIED: no\\u{202e}"), "{args:?}: {}", run.stdout);
        assert!(!run.stdout.contains(['\u{1b}', '\u{202e}']) && !run.stdout.contains("\nVERIFIED: no"), "{args:?}");
    }
}
