//! Drills on real and made-up captures: every corruption that applies is refused by its own rule, and nothing else happens.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use witnessmark::canon::scores::Dtype;
use witnessmark::digest::{Blake3, Sha256};
use witnessmark::drill::{Drill, Verdict, known};
use witnessmark::report;

use super::support::{Bench, embedded, files, shared_captures};
use super::synth::Synth;

/// Writes a made-up capture of this mode that has every witness there is: numbers, times, digests, chain, `x`, attachments, and scores that only f32 holds.
pub fn witnessed(mode: &str, dir: &Path) {
    let mut synth = Synth::new(mode);
    synth.rows.iter_mut().enumerate().for_each(|(at, row)| row["x"] = json!({"slot": at, "lane": "β"}));
    let files = |name: &str| json!([{"path": name, "sha256": Sha256::of(name.as_bytes()).to_string()}]);
    synth.run["engine"] = json!({"name": "none", "execution": "eager"});
    synth.run["model"] = json!({"files": files("model"), "kv_dtype": "bfloat16"});
    synth.run["tokenizer"] = json!({"files": files("tokenizer")});
    synth.dtype = Dtype::F32;
    synth.scores[2][5] = 0.1;
    synth.rewitness();
    synth.digest_all();
    synth.chain();
    synth.write(dir);
    fs::create_dir_all(dir.join("attachments/logs")).unwrap();
    fs::write(dir.join("attachments/logs/engine.txt"), "started\n").unwrap();
    fs::write(dir.join("attachments/config.toml"), "").unwrap();
}

/// The trials of a drill by name, and its summary; the drill must pass.
fn held(bench: &Bench, what: &str, more: &[&str]) -> (BTreeMap<String, Value>, Value) {
    let run = bench.run(&[&["--json", "drill", what], more].concat());
    let mut lines: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = lines.pop().expect(&run.stderr);
    let failed: Vec<&Value> =
        lines.iter().filter(|line| ["survived", "other-rule"].contains(&line["verdict"].as_str().unwrap())).collect();
    assert!(failed.is_empty(), "{what}: {failed:#?}");
    assert_eq!((run.status, &summary["passed"]), (0, &Value::Bool(true)), "{}", run.stderr);
    (lines.into_iter().map(|line| (line["name"].as_str().unwrap().to_owned(), line)).collect(), summary)
}

fn with(trials: &BTreeMap<String, Value>, verdict: &str) -> Vec<String> {
    trials.iter().filter(|(_, trial)| trial["verdict"] == verdict).map(|(name, _)| name.clone()).collect()
}

#[test]
fn the_embedded_captures_pass_and_are_left_alone() {
    let bench = Bench::new();
    for name in ["oracle-c1-rep0", "oracle-c4-rep0"] {
        bench.seal(&embedded(name));
    }
    let digests = || files(&bench.store()).iter().map(|file| Blake3::of(&fs::read(file).unwrap())).collect::<Vec<_>>();
    let before = digests();
    for name in ["oracle-c1-rep0", "oracle-c4-rep0"] {
        let (trials, _) = held(&bench, name, &[]);
        assert_eq!(trials.len(), known().len());
        // Partial, never forced, without chain and attachments: all else applies.
        let none = [
            "attachment-byte",
            "callback-skipped",
            "chain-broken",
            "forced-before-capture",
            "forced-before-capture-clock",
            "rehashed-callback-skipped",
            "rehashed-forced-before-capture",
            "replay-truncated",
            "replay-truncated-output-cut",
        ];
        assert_eq!(with(&trials, "not-applicable"), none);
        assert_eq!(with(&trials, "undetectable-here"), ["log-rewritten", "log-rolled-back"]);
    }
    assert_eq!(digests(), before);
}

#[test]
fn on_a_replay_with_every_witness_every_corruption_applies() {
    let bench = Bench::new();
    let dir = bench.folder.path().join("replay");
    witnessed("self-replay", &dir);
    let id = bench.seal(&dir);
    for seed in ["0", "1", "2"] {
        let (trials, summary) = held(&bench, &id, &["--seed", seed]);
        assert_eq!(with(&trials, "not-applicable"), Vec::<String>::new());
        assert_eq!(summary["survived"], 0);
    }
    let dir = bench.folder.path().join("capture-only");
    witnessed("capture-only", &dir);
    let (trials, _) = held(&bench, &bench.seal(&dir), &[]);
    assert_eq!(trials["token-not-argmax"]["found"], json!(["token-not-argmax"]));
}

#[test]
fn a_seed_decides_what_is_done() {
    let bench = Bench::new();
    bench.seal(&embedded("oracle-c4-rep0"));
    let details = |seed: &str| {
        let only =
            ["--only", "score-bit", "--only", "scores-pages-swapped", "--only", "rows-shard-byte", "--seed", seed];
        held(&bench, "oracle-c4-rep0", &only).0.into_values().map(|trial| trial["detail"].clone()).collect::<Vec<_>>()
    };
    let first = details("7");
    assert_eq!(first.len(), 3);
    assert_eq!(first, details("7"));
    assert_ne!(first, details("8"));
}

#[test]
fn names_are_listed_and_unknown_ones_are_usage_errors() {
    let bench = Bench::new();
    let list = bench.run(&["drill", "--list"]);
    assert_eq!(list.status, 0);
    assert!(known().iter().all(|known| list.stdout.contains(known.name)));
    let mut names: Vec<&str> = known().iter().map(|known| known.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), known().len(), "a name stands twice");
    bench.seal(&embedded("oracle-c1-rep0"));
    assert_eq!(bench.run(&["drill", "oracle-c1-rep0", "--only", "no-such"]).status, 64);
    assert_eq!(bench.run(&["drill"]).status, 64);
    assert_eq!(bench.run(&["drill", "no-such-run"]).status, 3);
}

#[test]
fn evidence_that_is_refused_anyway_is_not_drilled() {
    let bench = Bench::new();
    bench.seal(&embedded("oracle-c1-rep0"));
    let shard =
        files(&bench.store().join("objects")).into_iter().max_by_key(|file| file.metadata().unwrap().len()).unwrap();
    let mut bytes = fs::read(&shard).unwrap();
    bytes[5000] ^= 1;
    fs::write(&shard, bytes).unwrap();
    let run = bench.run(&["drill", "oracle-c1-rep0"]);
    assert_eq!((run.status, run.refused()), (2, vec!["object-digest".to_owned()]));
}

#[test]
fn a_corruption_that_survives_fails_the_drill_and_is_shown() {
    let bench = Bench::new();
    let id = bench.seal(&embedded("oracle-c1-rep0"));
    let trial = |verdict| witnessmark::drill::Trial {
        known: known()[0],
        verdict,
        cases: 1,
        expected: vec![witnessmark::refusal::Rule::ScoreWitness],
        found: Vec::new(),
        refusal: None,
        detail: "one bit".to_owned(),
    };
    let drill = |verdicts: &[Verdict]| Drill {
        capture: id.parse().unwrap(),
        run_id: "r".to_owned(),
        seed: 0,
        trials: verdicts.iter().map(|verdict| trial(*verdict)).collect(),
    };
    assert!(drill(&[Verdict::Refused, Verdict::NotApplicable, Verdict::UndetectableHere]).passed());
    for bad in [Verdict::Survived, Verdict::OtherRule] {
        let drill = drill(&[Verdict::Refused, bad]);
        assert!(!drill.passed());
        assert!(report::drill::drill(&drill).ends_with("1 failed\nDRILL FAILED\n"));
    }
    // Nothing tried is nothing shown.
    assert!(!drill(&[Verdict::NotApplicable]).passed());
    assert!(!drill(&[]).passed());
}

#[test]
fn whole_real_captures_pass() {
    let Some(captures) = shared_captures() else { return };
    let bench = Bench::new();
    let seal = |name: &str| bench.seal(&captures.join(name));
    // The replay's tokens are those of a run that is there.
    for name in ["oracle-c1-rep0", "oraclereplay-c4-rep0", "baseline-c1-rep0"] {
        seal(name);
    }
    let (trials, _) = held(&bench, "oraclereplay-c4-rep0", &[]);
    assert_eq!(with(&trials, "not-applicable"), ["attachment-byte", "chain-broken"]);
    assert_eq!(trials["output-altered"]["found"], json!(["output-mismatch", "continuation-mismatch"]));
    held(&bench, "baseline-c1-rep0", &[]);
}
