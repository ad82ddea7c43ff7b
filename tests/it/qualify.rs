//! Results of the whole captures, where they are there: what the shipped spec comes to, and that it comes to the same everywhere.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::support::{Bench, embedded, root, shared_captures};
use super::synth::Synth;

const SPEC: &str = "specs/smollm2-h200.toml";

/// A bench whose store has the shipped spec, then the captures of these names; all where none is named.
fn bench(names: &[&str], codec: &str) -> Option<Bench> {
    let folder = shared_captures()?;
    let bench = Bench::new();
    let spec = root().join(SPEC);
    assert_eq!(bench.run(&["spec", "seal", spec.to_str().unwrap()]).status, 0);
    let mut all: Vec<String> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    all.sort();
    let mut args = vec!["seal".to_owned(), "--codec".to_owned(), codec.to_owned()];
    let wanted = |name: &&String| names.is_empty() || names.contains(&name.as_str());
    args.extend(all.iter().filter(wanted).map(|name| folder.join(name).to_str().unwrap().to_owned()));
    let sealed = bench.run(&args);
    assert_eq!(sealed.status, 0, "{}", sealed.stderr);
    Some(bench)
}

fn qualify(bench: &Bench, more: &[&str]) -> (i32, Value) {
    let spec = root().join(SPEC);
    let mut args = vec!["qualify", spec.to_str().unwrap(), "--json"];
    args.extend(more);
    let run = bench.run(&args);
    (run.status, run.json().pop().unwrap_or(Value::Null))
}

fn stratum<'v>(result: &'v Value, concurrency: u32, phase: &str) -> &'v Value {
    let strata = result["result"]["strata"].as_array().unwrap();
    strata.iter().find(|s| s["concurrency"] == concurrency && s["phase"] == phase).unwrap()
}

fn id(result: &Value, run_id: &str) -> Value {
    let captures = result["result"]["captures"].as_array().unwrap();
    captures.iter().find(|capture| capture["run_id"] == run_id).unwrap()["capture"].clone()
}

fn places(list: &Value) -> Vec<(u64, u64)> {
    let number = |value: &Value| value.as_u64().unwrap();
    list.as_array().unwrap().iter().map(|at| (number(&at["prompt_index"]), number(&at["position"]))).collect()
}

#[test]
fn the_whole_captures_show_how_the_oracle_differs_and_how_many_runs_a_rule_would_need() {
    let Some(bench) = bench(&[], "zstd") else { return };
    let spec = root().join("specs/smollm2-h200-calibration.toml");
    let spec = spec.to_str().unwrap();
    let before = bench.run(&["log", "show", "--json"]).stdout;
    let run = bench.run(&["calibrate", spec, "--json"]);
    let found = run.json().pop().unwrap();
    assert_eq!((run.status, &found["verdict"]), (1, &json!("INSUFFICIENT_EVIDENCE")), "{found}");
    let replays =
        found["calibration"]["counts"].as_array().unwrap().iter().find(|line| line["mode"] == "common-replay");
    let line = replays.unwrap();
    assert_eq!((&line["found"], &line["held_out"], &line["needs"]), (&json!(2), &json!(1), &json!(19)));
    let strata = found["calibration"]["strata"].as_array().unwrap();
    let decode =
        |concurrency: u32| strata.iter().find(|s| s["concurrency"] == concurrency && s["phase"] == "decode").unwrap();
    // c1 repeats to the bit; c4's replays differ from each other, and choose differently at (0, 26) alone.
    assert!(decode(1)["noise"].as_array().unwrap().iter().all(|noise| noise["statistics"].is_null()));
    assert_eq!(places(&decode(4)["repeatability"]["differing"]), [(0, 26)]);
    assert!(decode(4)["noise"].as_array().unwrap().iter().any(|noise| !noise["statistics"].is_null()));
    let refused = bench.run(&["calibrate", spec, "oracle-c1-rep0", "candidate-eager-c4"]);
    assert_eq!(refused.status, 2);
    assert!(refused.stdout.contains("calibration-contaminated"), "{}", refused.stdout);
    assert_eq!(bench.run(&["log", "show", "--json"]).stdout, before, "calibrate only reads");
}

#[test]
fn the_whole_captures_come_to_one_result() {
    let Some(bench) = bench(&[], "zstd") else { return };
    let (status, result) = qualify(&bench, &[]);
    assert_eq!((status, &result["verdict"]), (1, &json!("NOT_ACCEPTED")), "{result}");

    // Baselines repeat and equal the captured tokens, self-replays are bitwise equal: the instrument is inert.
    for found in result["result"]["inertness"].as_array().unwrap() {
        assert_eq!(found["verdict"], "inert");
        assert_eq!((&found["baseline"]["mismatched"], &found["captured"]["mismatched"]), (&json!(0), &json!(0)));
        let replays = &found["replays"];
        assert_eq!(
            (&replays["rows"], &replays["unmatched"], &replays["differing"]),
            (&json!(162), &json!(0), &json!(0))
        );
    }
    // c1 repeats to the bit.
    for (phase, rows) in [("prefill", 6), ("decode", 156)] {
        let repeats = &stratum(&result, 1, phase)["repeatability"];
        assert_eq!(
            (&repeats["verdict"], &repeats["groups"], &repeats["bitwise"]),
            (&json!("repeats"), &json!(rows), &json!(rows))
        );
        assert_eq!(stratum(&result, 1, phase)["reasons"], json!(["no-candidate"]));
    }
    // c4 does not repeat at one prefix, and the candidate flips at six.
    assert_eq!(stratum(&result, 4, "prefill")["verdict"], "ACCEPTED");
    let decode = stratum(&result, 4, "decode");
    assert_eq!((&decode["verdict"], &decode["reasons"]), (&json!("NOT_ACCEPTED"), &json!(["oracle-differs", "flip"])));
    assert_eq!(places(&decode["repeatability"]["differing"]), [(0, 26)]);
    let reference = id(&result, "oraclereplay-c4-rep0");
    let comparisons = decode["comparisons"].as_array().unwrap();
    let comparison = comparisons.iter().find(|comparison| comparison["oracle"] == reference).unwrap();
    assert_eq!(places(&comparison["flips"]), [(0, 24), (0, 26), (3, 3), (4, 20), (4, 24), (5, 6)]);
    // Free runs agree in all tokens, in 112 rows to the bit.
    let (a, b) = (id(&result, "oracle-c4-rep0"), id(&result, "oracle-c4-rep2"));
    let bitwise: u64 = ["prefill", "decode"]
        .into_iter()
        .flat_map(|phase| stratum(&result, 4, phase)["noise"].as_array().unwrap())
        .filter(|noise| noise["a"] == a && noise["b"] == b)
        .map(|noise| noise["bitwise"].as_u64().unwrap())
        .sum();
    assert_eq!(bitwise, 112);
    // What changes from c1 to c4 is reported and not pooled.
    assert_eq!(places(&result["result"]["cross_strata"][0]["first"]), [(0, 24)]);

    the_same_again(&bench, &result);
}

/// From one thread, from another codec, by its SHA, and from a bundle.
fn the_same_again(bench: &Bench, result: &Value) {
    let sha = result["result_sha256"].as_str().unwrap();
    assert_eq!(qualify(bench, &["--threads", "1", "--dry-run"]).1["result_sha256"], sha);
    let other = self::bench(&[], "lz4").unwrap();
    assert_eq!(qualify(&other, &[]).1["result_sha256"], sha);

    for name in [sha, &sha[..12], result["qualification"].as_str().unwrap()] {
        let verified = bench.run(&["verify", name]);
        assert_eq!(verified.status, 0, "{}{}", verified.stdout, verified.stderr);
        assert!(verified.stdout.contains(sha), "{}", verified.stdout);
    }
    assert_eq!(bench.run(&["verify", sha, "--require", "ACCEPTED"]).status, 1);
    assert_eq!(bench.run(&["verify", sha, "--require", "NOT_ACCEPTED"]).status, 0);

    let file = bench.path("result.wmb");
    let file = file.to_str().unwrap();
    assert_eq!(bench.run(&["bundle", sha, "-o", file]).status, 0);
    let auditor = Bench::new();
    let verified = auditor.run(&["verify", file]);
    assert_eq!(verified.status, 0, "{}", verified.stdout);
    assert!(verified.stdout.contains(&format!("result SHA         {sha}")), "{}", verified.stdout);
    assert_eq!(auditor.run(&["unbundle", file]).status, 0);
    assert_eq!(auditor.run(&["verify", sha]).status, 0);
    assert_eq!(qualify(&auditor, &["--dry-run"]).1["result_sha256"], sha);
}

#[test]
fn what_is_missing_is_pending() {
    let names = ["baseline-c1-rep0", "baseline-c1-rep1", "oracle-c1-rep0"];
    let Some(bench) = bench(&names, "none") else { return };
    let (status, result) = qualify(&bench, &[]);
    assert_eq!((status, &result["verdict"]), (1, &json!("PENDING")));
    let pending = result["result"]["pending"].as_array().unwrap();
    assert!(pending.contains(&json!("oracle capture-only c1: 1 of 2")), "{pending:?}");
    assert!(pending.contains(&json!("oracle self-replay c1: 0 of 1")), "{pending:?}");
    for phase in ["prefill", "decode"] {
        assert_eq!(stratum(&result, 1, phase)["repeatability"]["verdict"], "PENDING");
        assert_eq!(
            stratum(&result, 1, phase)["reasons"],
            json!(["oracle-not-repeated", "no-candidate", "inertness-pending"])
        );
    }
}

#[test]
fn a_transformed_model_is_refused_and_without_its_label_not_accepted() {
    let oracles = ["baseline-c1-rep0", "baseline-c1-rep1", "oracle-c1-rep0", "oracle-c1-rep1", "selfreplay-c1-rep0"];
    let Some(bench) = bench(&[&oracles[..], &["candidate-int4-c1"]].concat(), "zstd") else { return };
    let spec = root().join(SPEC);
    let named: Vec<&str> = oracles.into_iter().chain(["candidate-int4-c1"]).collect();
    let mut args = vec!["qualify", spec.to_str().unwrap(), "--json"];
    args.extend(&named);
    let refused = bench.run(&args);
    assert_eq!(refused.status, 2);
    assert!(
        refused.stdout.contains("model-mismatch") && refused.stdout.contains("model.transform"),
        "{}",
        refused.stdout
    );

    let dir = bench.copy(&shared_captures().unwrap().join("candidate-int4-c1"), "lied");
    let text = fs::read_to_string(dir.join("run.json")).unwrap();
    let mut run: Value = serde_json::from_str(&text).unwrap();
    run["model"]["transform"] = Value::Null;
    run["run_id"] = json!("candidate-c1");
    fs::write(dir.join("run.json"), run.to_string()).unwrap();
    bench.seal(&dir);
    let (status, result) = qualify(&bench, &[]);
    assert_eq!((status, &result["verdict"]), (1, &json!("NOT_ACCEPTED")));
    let flips = |phase| stratum(&result, 1, phase)["comparisons"][0]["flips"].as_array().unwrap().len();
    assert_eq!(flips("prefill") + flips("decode"), 81);
}

/// Statistics between captures at different concurrencies, which no result pools.
#[test]
fn statistics_are_the_known_ones() {
    let names = ["oracle-c1-rep0", "oraclereplay-c4-rep0", "candidate-int4-c1"];
    let Some(bench) = bench(&names, "zstd") else { return };
    let all = |a: &str, b: &str| {
        let run = bench.run(&["stats", a, b, "--json"]);
        assert_eq!(run.status, 0, "{}{}", run.stdout, run.stderr);
        run.json()[0]["phases"].as_array().unwrap().iter().find(|phase| phase["phase"] == "all").unwrap().clone()
    };
    let near = |value: &Value, expected: f64| {
        let found: f64 = value.as_str().unwrap().parse().unwrap();
        assert!((found - expected).abs() <= expected * 1e-5 + 5e-9, "{found}, not {expected}");
    };
    let close = all("oracle-c1-rep0", "oraclereplay-c4-rep0");
    near(&close["statistics"]["kl"]["mean"], 0.00053441);
    near(&close["statistics"]["kl"]["max"], 0.00867101);
    near(&close["statistics"]["kl_reverse"]["mean"], 0.00052853);
    assert_eq!(places(&close["flips"]), [(0, 24)]);
    let far = all("oracle-c1-rep0", "candidate-int4-c1");
    near(&far["statistics"]["kl"]["mean"], 0.83365);
    near(&far["statistics"]["kl_reverse"]["mean"], 1.22324);
    assert_eq!(far["flips"].as_array().unwrap().len(), 81);
    // A capture beside itself is a reproduction.
    let same = all("oracle-c1-rep0", "oracle-c1-rep0");
    assert_eq!((&same["bitwise"], &same["statistics"]["kl"]["max"]), (&json!(162), &json!("0")));
}

/// A draft of what captures show is a spec that they meet; what they do not show is left open.
#[test]
fn drafts_fit_the_captures_that_they_are_from() {
    let bench = Bench::new();
    for (name, folder) in [("example", root().join("corpora/example")), ("oracle-c1-rep0", embedded("oracle-c1-rep0"))]
    {
        bench.seal(&folder);
        let file = bench.path(&format!("{name}.toml"));
        let file = file.to_str().unwrap();
        let run_id: Value = serde_json::from_slice(&fs::read(folder.join("run.json")).unwrap()).unwrap();
        let run_id = run_id["run_id"].as_str().unwrap();
        let drafted = bench.run(&["spec", "draft", "--from", run_id, "-o", file]);
        assert_eq!(drafted.status, 0, "{}{}", drafted.stdout, drafted.stderr);
        let checked = bench.run(&["spec", "check", file]);
        assert_eq!(checked.status, 0, "{}{}", checked.stdout, checked.stderr);
        let verified = bench.run(&["verify", run_id, "--spec", file]);
        assert_eq!(verified.status, 0, "{}", verified.stdout);
    }
}

/// Documents of the log are objects like others: damaged ones are named, collected they are not.
#[test]
fn documents_are_kept_and_looked_at() {
    let bench = Bench::new();
    let spec = root().join(SPEC);
    let sealed = bench.run(&["spec", "seal", spec.to_str().unwrap()]);
    assert_eq!(sealed.status, 0, "{}", sealed.stderr);
    bench.seal(&root().join("corpora/example"));
    assert_eq!(bench.run(&["verify", "--all"]).status, 0);
    let swept = bench.run(&["gc", "--delete", "--now"]);
    assert_eq!(swept.status, 0, "{}{}", swept.stdout, swept.stderr);
    assert_eq!(bench.run(&["qualify", sealed.stdout.trim(), "--dry-run"]).status, 1, "the spec is still there");

    let object = spec_object(&bench.store());
    let mut bytes = fs::read(&object).unwrap();
    bytes[40] ^= 1;
    fs::remove_file(&object).unwrap();
    fs::write(&object, bytes).unwrap();
    let damaged = bench.run(&["verify", "--all"]);
    assert_eq!(damaged.status, 2, "{}", damaged.stdout);
    assert!(damaged.stdout.contains("object-digest"), "{}", damaged.stdout);
}

fn spec_object(store: &Path) -> std::path::PathBuf {
    let entries = fs::read_to_string(store.join("log/entries")).unwrap();
    let entry: Value = serde_json::from_str(entries.lines().next().unwrap()).unwrap();
    let object = entry["object"].as_str().unwrap();
    store.join("objects").join(&object[..2]).join(&object[2..])
}

/// Nothing is reached where nothing was requested, whatever the rows say.
#[test]
fn a_concurrency_of_nothing_is_not_reached() {
    let bench = Bench::quick();
    let spec = "schema = \"witnessmark.spec/v1\"\nworkload = \"w\"\n[require]\nconcurrency_reached = true\n";
    fs::write(bench.path("spec.toml"), spec).unwrap();
    for (requested, sized, rules) in [
        (json!(0), false, &["binding-missing"][..]),
        (json!(0), true, &["binding-missing"]),
        (json!("3"), true, &["binding-missing"]),
        (json!(3), false, &["concurrency-not-reached"]),
        (json!(3), true, &[]),
    ] {
        let mut synth = Synth::new("capture-only");
        synth.run["schedule"]["requested_concurrency"] = requested.clone();
        if !sized {
            synth.rows.iter_mut().for_each(|row| drop(row.as_object_mut().unwrap().remove("batch_size")));
        }
        let dir = bench.path("capture");
        synth.write(&dir);
        let run = bench.run(&["seal", dir.to_str().unwrap(), "--spec", "spec.toml", "--store", "other"]);
        assert_eq!(run.refused(), rules, "{requested} {sized}: {}", run.stderr);
    }
    let mut synth = Synth::new("capture-only");
    synth.run["schedule"]["requested_concurrency"] = json!(0);
    synth.write(&bench.path("capture"));
    bench.seal(&bench.path("capture"));
    assert_eq!(bench.run(&["spec", "draft", "--from", "synth-capture-only", "-o", "draft.toml"]).status, 0);
    assert_eq!(bench.run(&["verify", "synth-capture-only", "--spec", "draft.toml"]).status, 0);
}

/// A draft is read before it is sealed: what evidence says turns nothing around in it and begins no line.
#[test]
fn drafts_show_what_turns_text_around() {
    let bench = Bench::quick();
    let name = "a\u{202e}b\nclaim = \"diagnostic\"\u{85}\u{7f}\u{2066}";
    let mut synth = Synth::new("capture-only");
    synth.run["run_id"] = json!(name);
    synth.run["model"] = json!({ "id": name });
    synth.write(&bench.path("capture"));
    let id = bench.seal(&bench.path("capture"));
    assert_eq!(bench.run(&["spec", "draft", "--from", &id, "-o", "draft.toml"]).status, 0);
    let draft = fs::read_to_string(bench.path("draft.toml")).unwrap();
    let first = draft.lines().next().unwrap();
    assert!(first.contains("a\\u{202e}b\\u{a}claim"), "{first}");
    assert!(draft.contains(r#""model.id" = "a\u202eb\nclaim = \"diagnostic\"\u0085\u007f\u2066""#), "{draft}");
    assert!(draft.chars().all(|c| c == '\n' || !witnessmark::shown::is_obeyed(c)), "{draft:?}");
    let verified = bench.run(&["verify", &id, "--spec", "draft.toml"]);
    assert_eq!(verified.status, 0, "{}", verified.stdout);
}
