//! What is said: verdicts, notes, names and subjects, in words and in JSON, and what is not said by mistake.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::forge::Forge;
use crate::support::{Bench, Run, copy_folder, embedded, listing};
use crate::synth::Synth;

/// Seals a made-up capture; gives its id.
fn sealed(bench: &Bench, mode: &str, dir: &str, edit: impl FnOnce(&mut Synth)) -> String {
    let mut synth = Synth::new(mode);
    edit(&mut synth);
    let dir = bench.path(dir);
    synth.write(&dir);
    bench.seal(&dir)
}

#[test]
fn sixty_four_digits_are_only_ever_an_id() {
    let bench = Bench::quick();
    let one = sealed(&bench, "capture-only", "one", |_| {});
    let nobody = "0".repeat(64);
    for name in [&one, &nobody] {
        let mut synth = Synth::new("capture-only");
        synth.run["note"] = json!(name);
        synth.write(&bench.path(name));
        let run = bench.run(&["seal", "--as", name, bench.path(name).to_str().unwrap()]);
        assert_eq!(run.status, 0, "{}", run.stderr);
    }
    // A file of that name is no bundle either.
    for name in [&one, &nobody] {
        fs::remove_dir_all(bench.path(name)).unwrap();
        fs::write(bench.path(name), "no bundle").unwrap();
    }
    assert_eq!(bench.run(&["show", &one, "--json"]).json()[0]["capture"], one.as_str());
    let run = bench.run(&["verify", &one]);
    assert!(run.status == 0 && run.stdout.starts_with(&format!("capture {one}\n")), "{}", run.stdout);
    for command in ["show", "verify"] {
        let run = bench.run(&[command, &nobody]);
        assert_eq!((run.status, run.refused()), (3, Vec::new()), "{command}: {}", run.stderr);
    }
}

#[test]
fn witnesses_of_some_rows_are_not_taken_for_those_of_all() {
    let bench = Bench::quick();
    let id = sealed(&bench, "capture-only", "one", |synth| {
        for field in ["argmax", "runner_up", "scores_sha256", "scores_blake3"] {
            synth.rows[4].as_object_mut().unwrap().remove(field);
        }
    });
    let run = bench.run(&["verify", &id]);
    for part in ["argmax-witness: 1 of 15 rows carry no argmax", "score-witness: 1 of 15 rows carry neither"] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
}

#[test]
fn a_run_that_never_ended_is_not_verified_but_incomplete() {
    let bench = Bench::quick();
    let mut forge = Forge::of(&embedded("oracle-c1-rep0"));
    let mut manifest = forge.manifest();
    manifest.capture.complete = false;
    forge.publish(&bench.store(), &manifest);
    let run = bench.run(&["verify", "--all"]);
    assert!(run.stdout.contains("\nINCOMPLETE: ") && !run.stdout.contains("VERIFIED"), "{}", run.stdout);
}

#[test]
fn what_is_refused_beside_the_captures_has_the_last_word() {
    let bench = Bench::quick();
    bench.seal(&embedded("oracle-c1-rep0"));
    assert_eq!(bench.run(&["bundle", "oracle-c1-rep0", "-o", "b.wmb"]).status, 0);
    let mut bytes = fs::read(bench.path("b.wmb")).unwrap();
    bytes.push(0);
    fs::write(bench.path("b.wmb"), bytes).unwrap();
    let run = bench.run(&["verify", "b.wmb"]);
    assert_eq!((run.status, run.refused()), (2, vec!["object-unlisted".to_owned()]));
    let last = run.stdout.lines().last().unwrap();
    assert_eq!(last, "NOT VERIFIED: what is refused above is not a capture but what it came in");
}

#[test]
fn a_diff_says_what_it_did_not_compare() {
    let bench = Bench::quick();
    let scored = sealed(&bench, "capture-only", "scored", |_| {});
    let baseline = sealed(&bench, "baseline", "baseline", |_| {});
    let run = bench.run(&["diff", &scored, &baseline, "--only", "scores"]);
    assert_eq!(run.status, 1, "{}", run.stdout);
    assert!(run.stdout.contains("    15 rows with scores on one side only\n"), "{}", run.stdout);
    assert_eq!(run.stdout.matches(" not compared\n").count(), 2, "{}", run.stdout);
    assert!(run.stdout.ends_with("DIFFERENT\n"));
    let run = bench.run(&["diff", &scored, &baseline, "--only", "rows"]);
    assert!(run.stdout.contains("  scores             not compared\n"), "{}", run.stdout);
    // Nothing compared is nothing equal.
    assert_eq!(bench.run(&["diff", &baseline, &baseline, "--only", "scores"]).status, 1);
}

#[test]
fn a_bundle_of_this_origin_and_another_log_is_refused_before_anything_is_kept() {
    let (bench, twin) = (Bench::quick(), Bench::quick());
    sealed(&bench, "capture-only", "one", |_| {});
    copy_folder(&bench.store(), &twin.store());
    bench.seal(&embedded("oracle-c1-rep0"));
    twin.seal(&embedded("oracle-c4-rep0"));
    assert_eq!(bench.run(&["bundle", "oracle-c1-rep0", "-o", "b.wmb"]).status, 0);
    let before = listing(&twin.store());
    let bundle = bench.path("b.wmb");
    let run = twin.run(&["unbundle", bundle.to_str().unwrap()]);
    assert_eq!((run.status, run.refused()), (2, vec!["log-inconsistent".to_owned()]));
    crate::support::assert_unchanged(&twin.store(), &before);
}

#[test]
fn a_request_of_the_asked_length_has_no_more_tokens_than_asked() {
    let bench = Bench::quick();
    for (mode, rule) in [("capture-only", "row-missing"), ("self-replay", "continuation-mismatch")] {
        let mut synth = Synth::new(mode);
        synth.run["sampling"]["max_new_tokens"] = json!(4);
        synth.write(&bench.path(mode));
        let run = bench.try_seal(&bench.path(mode));
        assert_eq!((run.status, run.refused()), (2, vec![rule.to_owned()]), "{}", run.stderr);
        assert!(run.stderr.contains("5 tokens"), "{}", run.stderr);
    }
}

#[test]
fn threads_beyond_use_are_not_started() {
    let bench = Bench::quick();
    let mut command = bench.command(&["--threads", "5000", "unbundle", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while !bench.store().join("store.json").exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:")).unwrap();
    assert!(threads.trim().parse::<u32>().unwrap() < 300, "{threads}");
}

#[test]
fn a_log_that_cannot_be_read_is_not_shown_as_empty() {
    let bench = Bench::quick();
    sealed(&bench, "capture-only", "one", |_| {});
    assert!(bench.run(&["log", "show"]).stdout.contains(", 1 entry, root "));
    let head = bench.store().join("log/head");
    for (text, rule) in [("{", "json-not-canonical"), (" ".repeat(70_000).as_str(), "limit-exceeded")] {
        fs::write(&head, text).unwrap();
        let run = bench.run(&["log", "show"]);
        assert_eq!((run.status, run.refused()), (2, vec![rule.to_owned()]));
        assert!(run.stdout.starts_with("REFUSED: ") && !run.stdout.contains("entries,"), "{}", run.stdout);
        // What to do is not to split a capture.
        assert!(rule != "limit-exceeded" || run.stdout.contains("Of a log"), "{}", run.stdout);
        let run = bench.run(&["log", "show", "--json"]);
        assert_eq!((&run.json()[0]["of"], &run.json()[0]["refusals"][0]["rule"]), (&json!("store"), &json!(rule)));
    }
}

#[test]
fn json_says_of_what_it_speaks() {
    let bench = Bench::quick();
    let id = sealed(&bench, "capture-only", "one", |_| {});
    let unknown = bench.run(&["verify", "nobody", "--json"]);
    assert_eq!((unknown.status, &unknown.json()[0]["name"]), (3, &json!("nobody")));
    assert!(unknown.json()[0]["error"].as_str().unwrap().contains("nobody"));
    fs::write(bench.path("bad.json"), "{}").unwrap();
    assert_eq!(bench.run(&["check-proof", "bad.json", "--json"]).json()[0]["of"], "bad.json");
    let run = bench.run(&["prove", &id, "0:1", "-o", "proof.json", "--json"]);
    assert_eq!((run.status, &run.json()[0]["file"], &run.json()[0]["capture"]), (0, &json!("proof.json"), &json!(id)));
    let run = bench.run(&["log", "prove", "0", "-o", "growth.json", "--json"]);
    assert_eq!((run.status, &run.json()[0]["new_size"]), (0, &json!(1)));
}

#[test]
fn a_drill_is_the_same_for_the_same_seed() {
    let bench = Bench::quick();
    let id = sealed(&bench, "capture-only", "one", |_| {});
    let hold = || bench.run(&["--json", "drill", &id, "--only", "log-entry-altered", "--only", "log-head-altered"]);
    let (first, second) = (hold(), hold());
    assert_eq!((first.status, first.stdout), (0, second.stdout));
}

#[test]
fn a_name_that_is_taken_is_told_by_the_name_that_was_given() {
    let bench = Bench::quick();
    sealed(&bench, "capture-only", "one", |_| {});
    let mut synth = Synth::new("capture-only");
    synth.run["note"] = json!("another");
    synth.write(&bench.path("two"));
    let subject = |args: &[&str]| {
        let run = bench.run(&[args, &["--json"]].concat());
        let refusal: Value = run.json()[0]["refusals"][0].clone();
        assert_eq!((run.status, &refusal["rule"]), (2, &json!("name-taken")));
        refusal["subject"].as_str().unwrap().to_owned()
    };
    assert_eq!(subject(&["seal", "two"]), "run.json run_id");
    assert_eq!(subject(&["seal", "two", "--as", "synth-capture-only"]), "the capture");
}

#[test]
fn small_words() {
    let bench = Bench::quick();
    let one = sealed(&bench, "capture-only", "one", |_| {});
    let two = sealed(&bench, "capture-only", "two", |synth| {
        synth.run["run_id"] = json!("two");
        synth.run["note"] = json!("another");
    });
    assert!(bench.run(&["diff", &one, &two]).stdout.contains("  bindings           1 differs\n"));

    // A directory that was not sealed yet.
    bench.copy(&embedded("oracle-c1-rep0"), "fresh");
    let run = bench.run(&["verify", "fresh"]);
    assert!(run.status == 3 && run.stderr.contains("witnessmark seal fresh"), "{}", run.stderr);

    // A name on the command line says nothing to the terminal, and stays on its line.
    let run = bench.run(&["seal", "no\u{1b}[31m\nerror: none"]);
    assert!(run.status == 3 && !run.stderr.contains('\u{1b}') && run.stderr.lines().count() == 1, "{}", run.stderr);

    // An empty variable is none.
    let mut command = bench.command(&["log", "show"]);
    let run = Run::new(command.env("WITNESSMARK_STORE", "").output().unwrap());
    assert!(run.status == 3 && run.stderr.contains("witnessmark-store"), "{}", run.stderr);

    // Help that nobody could read is no help.
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    assert_eq!(bench.command(&["--help"]).stdout(full).status().unwrap().code(), Some(3));
}
