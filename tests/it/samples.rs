//! Sampled verifies: which rows, what they catch, and that they never claim more.

use std::fs;

use witnessmark::store::Store;

use crate::forge::Forge;
use crate::support::{Bench, embedded, files};
use crate::synth::Synth;

fn verify(bench: &Bench, share: &str, seed: &str) -> serde_json::Value {
    let run = bench.run(&["verify", "oracle-c1-rep0", "--sample", share, "--seed", seed, "--json"]);
    assert!(matches!(run.status, 0 | 2), "{}", run.stderr);
    let line: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(line["verified"] == true, run.status == 0);
    line
}

#[test]
fn a_sample_says_what_it_is() {
    let bench = Bench::new();
    bench.seal(&embedded("oracle-c1-rep0"));
    let line = verify(&bench, "30%", "7");
    let sample = &line["sample"];
    assert_eq!(
        (&line["depth"], &sample["seed"], &sample["drawn"], &sample["rows"]),
        (&"sample".into(), &"7".into(), &3.into(), &9.into())
    );
    assert_eq!(line["checked"]["scored_rows"], 3);
    assert!((sample["caught_1"].as_f64().unwrap() - 3.0 / 9.0).abs() < 1e-12);
    let run = bench.run(&["verify", "oracle-c1-rep0", "--sample", "30%"]);
    assert!(run.stdout.contains("SAMPLE PASS: 3 of 9 rows"), "{}", run.stdout);
    assert!(run.stdout.contains("seed"));
    assert!(!run.stdout.contains("VERIFIED"));
    // Even a sample of all rows is no full pass.
    let run = bench.run(&["verify", "oracle-c1-rep0", "--sample", "100%"]);
    assert!(run.stdout.contains("9 of 9 rows") && !run.stdout.contains("VERIFIED"), "{}", run.stdout);
    for bad in ["0%", "101%", "-1%", "5.00001%", "five", "", "%"] {
        assert_eq!(bench.run(&["verify", "oracle-c1-rep0", "--sample", bad]).status, 64, "{bad:?}");
    }
    assert_eq!(bench.run(&["verify", "oracle-c1-rep0", "--seed", "1"]).status, 64);
}

#[test]
fn a_damage_is_caught_exactly_where_it_is_drawn() {
    let bench = Bench::new();
    bench.seal(&embedded("oracle-c1-rep0"));
    let objects = files(&bench.store().join("objects"));
    let shard = objects.iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = fs::read(shard).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(shard, bytes).unwrap();
    let caught = (0..40).filter(|seed| {
        let line = verify(&bench, "30%", &seed.to_string());
        if line["verified"] == false {
            assert_eq!(line["refusals"][0]["rule"], "shard-noncanonical");
        }
        line["verified"] == false
    });
    // Three of nine rows: 13.3 expected, standard deviation 3.
    let caught = caught.count();
    assert!((3..=25).contains(&caught), "{caught} of 40");
    assert_eq!(verify(&bench, "100%", "0")["verified"], false);
}

#[test]
fn a_shard_that_is_gone_is_refused_whatever_was_drawn() {
    let bench = Bench::new();
    bench.seal(&embedded("oracle-c1-rep0"));
    let objects = files(&bench.store().join("objects"));
    let shard = objects.iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    fs::remove_file(shard).unwrap();
    let run = bench.run(&["verify", "oracle-c1-rep0", "--sample", "1%"]);
    assert_eq!((run.status, run.refused()), (2, vec!["object-missing".to_owned()]));
}

#[test]
fn rows_are_drawn_from_every_shard_and_every_shard_is_named_by_its_number() {
    let bench = Bench::new();
    let dir = bench.path("capture");
    Synth::new("capture-only").write(&dir);
    let mut forge = Forge::of(&dir);
    forge.cut = 4;
    let manifest = forge.manifest();
    forge.publish(&bench.store(), &manifest);
    let all = ["verify", "forged", "--sample", "100%", "--json"];
    let line = bench.run(&all).json().remove(0);
    assert_eq!((&line["verified"], &line["checked"]["scored_rows"]), (&true.into(), &15.into()));
    for (number, shard) in manifest.score_shards.iter().enumerate() {
        let path = bench.store().join(Store::object_path(&shard.object));
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let refusals = bench.run(&all).json()[0]["refusals"].clone();
        let subject = format!("scores shard {number} {}", shard.object);
        assert_eq!(refusals[0]["subject"], subject.as_str(), "{refusals}");
        fs::write(&path, bytes).unwrap();
    }
}
