//! Whatever is changed in a store is refused: by somebody who cannot hash, and by somebody who can.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rayon::prelude::*;
use witnessmark::binding::MAX_VOCAB;
use witnessmark::canon::document;
use witnessmark::canon::scores::{Canonical, Dtype};
use witnessmark::catalog::Catalog;
use witnessmark::digest::Sha256;
use witnessmark::id::TokenId;
use witnessmark::manifest::{Attachment, Codec, MAX_ATTACHMENTS, MAX_ROWS, Manifest};
use witnessmark::row;
use witnessmark::shard::rows::{self, MAX_SHARD_ROWS};
use witnessmark::store::Store;
use witnessmark::verify::Depth;

use crate::forge::{self, Forge, long};
use crate::support::{Bench, copy_folder, embedded, files, objects, refusals_of, set};
use crate::synth::Synth;

fn sealed() -> Bench {
    let bench = Bench::quick();
    bench.seal(&embedded("oracle-c1-rep0"));
    bench.seal(&embedded("oracle-c4-rep0"));
    assert_eq!(refusals_of(&bench.store(), Depth::Full), Ok(BTreeSet::new()));
    bench
}

fn synth_dir(bench: &Bench, synth: &Synth) -> PathBuf {
    let dir = bench.path("capture");
    synth.write(&dir);
    dir
}

fn is_shard(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PAR1")
}

/// Rule ids of a full verify of a store that can be opened.
fn rules(store: &Path) -> BTreeSet<&'static str> {
    refusals_of(store, Depth::Full).unwrap()
}

fn flips(bytes: &[u8]) -> Vec<usize> {
    let everything = bytes.len() < 4096;
    let chosen = |at: &usize| everything || at.is_multiple_of(1009) || *at < 64 || *at + 700 >= bytes.len();
    (0..bytes.len()).filter(chosen).collect()
}

#[test]
fn no_byte_of_an_object_can_change_unseen() {
    let bench = sealed();
    // Each object in a store of its own, so that they can be worked on at once.
    let paths: Vec<PathBuf> =
        objects(&bench.store()).iter().map(|path| path.strip_prefix(bench.store()).unwrap().to_owned()).collect();
    assert_eq!(paths.len(), 8, "two captures of run.json, rows, scores and manifest");
    let tried: usize = paths
        .par_iter()
        .enumerate()
        .map(|(n, path)| {
            let store = bench.path(&format!("store-{n}"));
            copy_folder(&bench.store(), &store);
            let path = store.join(path);
            let mut bytes = fs::read(&path).unwrap();
            let flips = flips(&bytes);
            for (count, &at) in flips.iter().enumerate() {
                bytes[at] ^= 1 << (at % 8);
                fs::write(&path, &bytes).unwrap();
                bytes[at] ^= 1 << (at % 8);
                // Documents and rows are read at any depth; scores are hashed by a quick pass and decoded by a full one.
                let depth = match bytes.len() > 100_000 {
                    false => Depth::Rows,
                    true if count % 4 == 0 => Depth::Full,
                    true => Depth::Quick,
                };
                assert_eq!(refusals_of(&store, depth), Ok(set(&["object-digest"])), "{} byte {at}", path.display());
            }
            fs::write(&path, &bytes).unwrap();
            assert_eq!(rules(&store), set(&[]), "the store is as it was");
            flips.len()
        })
        .sum();
    assert!(tried > 10_000, "{tried}");
}

#[test]
fn no_byte_of_the_log_or_of_store_json_can_change_unseen() {
    let bench = sealed();
    for name in ["log/entries", "log/head", "store.json"] {
        let path = bench.store().join(name);
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 7);
            fs::write(&path, &bad).unwrap();
            match refusals_of(&bench.store(), Depth::Rows) {
                Err(_) => assert_eq!(name, "store.json", "only a store that is none cannot be decided: byte {at}"),
                Ok(rules) => assert!(!rules.is_empty(), "{name} byte {at}"),
            }
        }
        for bad in [&good[..good.len() - 1], &good[..0]] {
            fs::write(&path, bad).unwrap();
            assert!(
                refusals_of(&bench.store(), Depth::Rows).is_ok_and(|rules| !rules.is_empty()) || name == "store.json"
            );
        }
        fs::write(&path, &good).unwrap();
    }
    // Bytes beyond the head are an append that was not finished: ignored, and gone after the next seal.
    let entries = bench.store().join("log/entries");
    let good = fs::read(&entries).unwrap();
    fs::write(&entries, [&good[..], b"{\"act\":\"se"].concat()).unwrap();
    assert_eq!(rules(&bench.store()), set(&[]));
    let dir = synth_dir(&bench, &Synth::new("baseline"));
    bench.seal(&dir);
    let after = fs::read_to_string(&entries).unwrap();
    assert!(after.as_bytes().starts_with(&good) && after.lines().count() == 3, "{after}");
    assert_eq!(rules(&bench.store()), set(&[]));
}

#[test]
fn refs_lead_to_what_they_name_or_nowhere() {
    let bench = sealed();
    let path = bench.store().join("refs/runs/oracle-c1-rep0");
    let good = fs::read(&path).unwrap();
    let id = bench.run(&["show", "oracle-c1-rep0", "--json"]).json()[0]["capture"].as_str().unwrap().to_owned();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&path, &bad).unwrap();
        let store = Store::open(&bench.store()).unwrap();
        let catalog = Catalog::load(&store).unwrap();
        let refused: Vec<_> = catalog.refusals.iter().map(|refusal| refusal.rule.id()).collect();
        match catalog.by_run_id("oracle-c1-rep0") {
            // A digit of the id: another id, of nothing that this store has.
            Some(capture) => {
                assert_ne!(capture.to_string(), id, "byte {at}");
                assert_eq!(catalog.resolve("oracle-c1-rep0", false).unwrap().manifests, []);
            }
            None => assert_eq!(refused, ["json-not-canonical"], "byte {at}"),
        }
    }
    let dangling = String::from_utf8(good.clone()).unwrap().replace(&id, &"0".repeat(64));
    fs::write(&path, dangling).unwrap();
    let run = bench.run(&["verify", "oracle-c1-rep0"]);
    assert_eq!((run.status, run.refused()), (2, vec!["nothing-to-verify".to_owned()]));
    for (name, bad) in [("not JSON", &b"{"[..]), ("empty", b""), ("another name's", &good)] {
        let path = if name == "another name's" { bench.store().join("refs/runs/x") } else { path.clone() };
        fs::write(&path, bad).unwrap();
        assert_eq!(rules(&bench.store()), set(&["json-not-canonical"]), "{name}");
        fs::write(&path, &good).unwrap();
    }
    fs::remove_file(&path).unwrap();
    symlink("x", &path).unwrap();
    assert!(rules(&bench.store()).contains("not-a-regular-file"));
}

#[test]
fn objects_that_are_not_there_or_not_themselves() {
    let bench = sealed();
    let good = objects(&bench.store());
    let restore = bench.path("good");
    copy_folder(&bench.store(), &restore);
    for (n, path) in good.iter().enumerate() {
        let bytes = fs::read(path).unwrap();
        let time = path.metadata().unwrap().modified().unwrap();
        let expect = |rule: &'static str, what: &str| {
            for depth in [Depth::Full, Depth::Quick] {
                assert_eq!(refusals_of(&bench.store(), depth), Ok(set(&[rule])), "{what}: {}", path.display());
            }
        };
        let write = |bytes: &[u8]| {
            fs::write(path, bytes).unwrap();
            File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        };

        write(&bytes[..bytes.len() - 1]);
        expect("object-digest", "cut");
        write(&[&bytes[..], b"x"].concat());
        expect("object-digest", "one byte more");
        write(&[]);
        expect("object-digest", "empty");
        // The same length, other content: another object's beginning.
        let other = fs::read(&good[(n + 1) % good.len()]).unwrap();
        let swapped: Vec<u8> = other.iter().copied().cycle().take(bytes.len()).collect();
        write(&swapped);
        expect("object-digest", "another's bytes");

        fs::remove_file(path).unwrap();
        expect("object-missing", "removed");
        fs::create_dir(path).unwrap();
        expect("not-a-regular-file", "a folder");
        fs::remove_dir(path).unwrap();
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        expect("not-a-regular-file", "a pipe");
        fs::remove_file(path).unwrap();
        symlink(restore.join(path.strip_prefix(bench.store()).unwrap()), path).unwrap();
        expect("not-a-regular-file", "a link to the very object");
        fs::remove_file(path).unwrap();
        symlink("/nowhere", path).unwrap();
        expect("not-a-regular-file", "a link to nothing");
        fs::remove_file(path).unwrap();
        write_new(path, &bytes);

        let folder = path.parent().unwrap();
        let aside = bench.path("aside");
        fs::rename(folder, &aside).unwrap();
        symlink(&aside, folder).unwrap();
        expect("not-a-regular-file", "its folder a link");
        fs::remove_file(folder).unwrap();
        fs::rename(&aside, folder).unwrap();
    }
    assert_eq!(rules(&bench.store()), set(&[]));

    // Two objects change places.
    let (a, b) = (fs::read(&good[0]).unwrap(), fs::read(&good[1]).unwrap());
    write_new(&good[0], &b);
    write_new(&good[1], &a);
    assert_eq!(rules(&bench.store()), set(&["object-digest"]));
}

fn write_new(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_store_may_be_linked_as_a_whole() {
    let bench = sealed();
    let link = bench.path("link");
    symlink(bench.store(), &link).unwrap();
    assert_eq!(rules(&link), set(&[]), "the root may be a link");

    let hard = bench.path("hard");
    for path in files(&bench.store()) {
        let to = hard.join(path.strip_prefix(bench.store()).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::hard_link(&path, to).unwrap();
    }
    assert_eq!(rules(&hard), set(&[]), "as `cp -al` makes it");

    for folder in ["objects", "log"] {
        let (path, aside) = (bench.store().join(folder), bench.path("aside"));
        fs::rename(&path, &aside).unwrap();
        symlink(&aside, &path).unwrap();
        assert!(rules(&bench.store()).contains("not-a-regular-file"), "{folder}");
        fs::remove_file(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
    }
}

#[test]
fn seven_damaged_objects_are_all_named() {
    let bench = Bench::quick();
    let mut forge = Forge::of(&synth_dir(&bench, &Synth::new("capture-only")));
    forge.cut = 1;
    let manifest = forge.manifest();
    forge.publish(&bench.store(), &manifest);
    assert_eq!(rules(&bench.store()), set(&[]));
    let mut damaged: Vec<String> = Vec::new();
    for (number, shard) in manifest.score_shards.iter().enumerate().step_by(2).take(7) {
        let path = bench.store().join(Store::object_path(&shard.object));
        let mut bytes = fs::read(&path).unwrap();
        bytes[80] ^= 1;
        fs::write(&path, bytes).unwrap();
        damaged.push(format!("scores shard {number} {}", shard.object));
    }
    for args in [&["verify", "forged", "--json"][..], &["verify", "forged", "--json", "--quick"]] {
        let run = bench.run(args);
        assert_eq!(run.status, 2);
        let refusals = run.json()[0]["refusals"].as_array().unwrap().clone();
        assert!(refusals.iter().all(|refusal| refusal["rule"] == "object-digest"), "{refusals:?}");
        let named = |subject: &&String| refusals.iter().any(|refusal| refusal["subject"] == subject.as_str());
        assert_eq!((refusals.len(), damaged.iter().filter(named).count()), (7, 7));
    }
}

/// A forger with a whole made-up capture in shards of four rows.
fn forger(bench: &Bench) -> Forge {
    let mut forge = Forge::of(&synth_dir(bench, &Synth::new("capture-only")));
    forge.cut = 4;
    forge
}

fn forged(bench: &Bench, forge: &mut Forge, manifest: &Manifest) -> BTreeSet<&'static str> {
    forge.publish(&bench.store(), manifest);
    rules(&bench.store())
}

#[test]
fn scores_that_were_hashed_again_are_refused() {
    let bench = Bench::quick();
    for codec in Codec::ALL {
        let mut forge = forger(&bench);
        forge.codec = codec;
        let manifest = forge.manifest();
        assert_eq!(forged(&bench, &mut forge, &manifest), set(&[]), "as it was sealed: {codec:?}");

        // Within a shard, across shards, across requests.
        for (a, b) in [(0, 1), (1, 7), (2, 14)] {
            forge.scores.swap(a, b);
            let manifest = forge.manifest();
            assert_eq!(forged(&bench, &mut forge, &manifest), set(&["row-swapped"]), "{a} {b} {codec:?}");
            forge.scores.swap(a, b);
        }
        let (token, mut values) = (20, Vec::new());
        forge.scores[3].widen_into(&mut values);
        values[token] += 0.125;
        forge.scores[3] = canonical(&values);
        let manifest = forge.manifest();
        assert_eq!(forged(&bench, &mut forge, &manifest), set(&["score-witness"]), "one score, {codec:?}");
        forge.scores[3] = forge.scores[2].clone();
        let manifest = forge.manifest();
        assert_eq!(forged(&bench, &mut forge, &manifest), set(&["row-duplicated-content"]), "a copy, {codec:?}");
    }

    // Who also writes the score digest of the row, and so another capture, still meets the adapter's own witnesses.
    let mut forge = forger(&bench);
    let (token, mut values) = (20, Vec::new());
    forge.scores[3].widen_into(&mut values);
    values[token] += 0.125;
    forge.scores[3] = canonical(&values);
    forge.rows[3].score_digest = Some(forge.scores[3].digest());
    let manifest = forge.manifest();
    assert_eq!(forged(&bench, &mut forge, &manifest), set(&["score-witness"]));
    // The roots of the first capture do not fit it.
    let mut old = manifest.clone();
    old.capture = forger(&bench).manifest().capture;
    assert_eq!(forged(&bench, &mut forge, &old), set(&["root-mismatch", "score-witness"]));
}

fn canonical(values: &[f32]) -> Canonical {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut canonical = Canonical::default();
    canonical.set_from_file_row(Dtype::F32, &bytes);
    canonical
}

#[test]
fn manifests_that_were_hashed_again_are_refused() {
    let bench = Bench::quick();
    let mut forge = forger(&bench);
    let good = forge.manifest();
    let edited = |edit: &dyn Fn(&mut Manifest)| {
        let mut manifest = good.clone();
        edit(&mut manifest);
        manifest
    };
    let cases: Vec<(&str, Manifest, &[&str])> = vec![
        ("a rows shard dropped", edited(&|m| m.row_shards.truncate(3)), &["tree-size"]),
        ("a scores shard dropped", edited(&|m| m.score_shards.truncate(3)), &["tree-size"]),
        (
            "both dropped",
            edited(&|m| {
                m.row_shards.truncate(3);
                m.score_shards.truncate(3);
            }),
            &["tree-size"],
        ),
        ("all scores dropped", edited(&|m| m.score_shards.clear()), &["tree-size"]),
        (
            "an empty manifest",
            edited(&|m| {
                m.capture.rows = 0;
                m.row_shards.clear();
                m.score_shards.clear();
            }),
            &["nothing-to-verify"],
        ),
        (
            "a shard of no rows",
            edited(&|m| {
                let mut empty = m.row_shards[0];
                empty.rows = 0;
                m.row_shards.push(empty);
            }),
            &["nothing-to-verify"],
        ),
        ("no rows, and shards of them", edited(&|m| m.capture.rows = 0), &["nothing-to-verify", "tree-size"]),
        ("rows, and no shard of them", edited(&|m| m.row_shards.clear()), &["nothing-to-verify", "tree-size"]),
        ("a shard twice", edited(&|m| m.row_shards.push(m.row_shards[3])), &["tree-size"]),
        (
            "totals beyond 64 bits",
            edited(&|m| {
                m.row_shards.iter_mut().for_each(|shard| shard.rows = (1 << 53) - 1);
            }),
            &["limit-exceeded", "tree-size"],
        ),
        (
            "a rows shard with another count",
            edited(&|m| {
                m.row_shards[0].rows = 3;
                m.row_shards[3].rows = 4;
            }),
            &["shard-noncanonical"],
        ),
        (
            "another codec's name",
            edited(&|m| {
                m.score_shards.iter_mut().for_each(|shard| shard.codec = Codec::Lz4);
            }),
            &["shard-noncanonical"],
        ),
        ("rows shards in another order", edited(&|m| m.row_shards.swap(0, 1)), &["shard-noncanonical"]),
        ("another schema", edited(&|m| m.schema = "witnessmark.manifest/v2".to_owned()), &["schema-invalid"]),
        ("another capture schema", edited(&|m| m.capture.schema = "x".to_owned()), &["schema-invalid"]),
        ("another vocabulary", edited(&|m| m.capture.vocab_size = Some(51)), &["vocab-mismatch"]),
        ("a vast vocabulary", edited(&|m| m.capture.vocab_size = Some(1 << 40)), &["limit-exceeded"]),
        ("no vocabulary", edited(&|m| m.capture.vocab_size = None), &["tree-size"]),
        ("an empty vocabulary", edited(&|m| m.capture.vocab_size = Some(0)), &["limit-exceeded"]),
        (
            "scores shards of a baseline",
            edited(&|m| (m.capture.vocab_size, m.capture.score_root) = (None, None)),
            &["tree-size"],
        ),
        ("another row root", edited(&|m| m.capture.row_root = Sha256([7; 32])), &["root-mismatch"]),
        ("another score root", edited(&|m| m.capture.score_root = Some(Sha256([7; 32]))), &["root-mismatch"]),
        ("another run.json digest", edited(&|m| m.capture.run_json.sha256 = Sha256([7; 32])), &["root-mismatch"]),
        ("another run.json length", edited(&|m| m.capture.run_json.bytes += 1), &["object-digest"]),
        ("another shard length", edited(&|m| m.score_shards[1].bytes += 1), &["object-digest"]),
        ("scores shards in another order", edited(&|m| m.score_shards.swap(0, 1)), &["row-swapped"]),
        (
            "a scores shard in place of another",
            edited(&|m| m.score_shards[1] = m.score_shards[0]),
            &["row-duplicated-content"],
        ),
    ];
    for (name, manifest, expected) in cases {
        assert_eq!(forged(&bench, &mut forge, &manifest), set(expected), "{name}");
    }

    // Who drops the last shards, patches all totals and roots, and logs the new capture id, still meets run.json.
    let mut short = good.clone();
    let (rows, _) = (short.row_shards.pop().unwrap(), short.score_shards.pop().unwrap());
    short.capture.rows -= rows.rows;
    let left = forge.rows.len() - usize::try_from(rows.rows).unwrap();
    let (row_root, score_root) = row::roots(&forge.rows[..left]);
    (short.capture.row_root, short.capture.score_root) = (row_root, score_root);
    assert_eq!(forged(&bench, &mut forge, &short), set(&["tree-size"]));

    // A log that says the manifest is of another capture.
    forge.publish(&bench.store(), &good);
    let store = Store::open(&bench.store()).unwrap();
    let id = forge.put(document::encode(&good).unwrap());
    forge::write_log(&store, &[(short.capture.id().unwrap(), id)]);
    assert_eq!(rules(&bench.store()), set(&["root-mismatch"]));

    // Attachments that lead out of the folder, or stand twice.
    let attachment = |path: &str| witnessmark::manifest::Attachment {
        blake3: good.run_object.0,
        bytes: good.capture.run_json.bytes,
        path: path.to_owned(),
    };
    let cases: [(&[&str], &[&str]); 5] = [
        (&["a", "b/c"], &[]),
        (&["../x"], &["path-escape"]),
        (&["/etc/passwd"], &["path-escape"]),
        (&["a", "a"], &["json-not-canonical"]),
        (&["b", "a"], &["json-not-canonical"]),
    ];
    for (paths, expected) in cases {
        let manifest = edited(&|m| m.capture.attachments = paths.iter().map(|path| attachment(path)).collect());
        assert_eq!(forged(&bench, &mut forge, &manifest), set(expected), "{paths:?}");
    }

    // More bytes than can be counted, of objects that have other lengths.
    let vast = |n: usize| Attachment { bytes: (1 << 53) - 1, ..attachment(&format!("{n:04}")) };
    let manifest = edited(&|m| m.capture.attachments = (0..2049).map(vast).collect());
    assert_eq!(manifest.bytes(), u64::MAX);
    assert_eq!(forged(&bench, &mut forge, &manifest), set(&["object-digest"]));
}

#[test]
fn a_manifest_may_reach_every_limit_and_not_pass_it() {
    let bench = Bench::quick();
    let mut forge = forger(&bench);
    let good = forge.manifest();
    let attachment = Attachment { blake3: good.run_object.0, bytes: good.capture.run_json.bytes, path: "a".to_owned() };
    // What reaches a limit is refused all the same, but not by it: nothing of such a size is made for this.
    let reach = |limit: &str, most: u64| {
        let mut manifest = good.clone();
        match limit {
            "rows" => manifest.capture.rows = most,
            "rows of a shard" => manifest.row_shards[0].rows = most,
            "vocabulary" => manifest.capture.vocab_size = Some(most),
            _ => manifest.capture.attachments = vec![attachment.clone(); usize::try_from(most).unwrap()],
        }
        manifest
    };
    for (limit, most, at, beyond) in [
        ("rows", MAX_ROWS, &["tree-size"][..], &["limit-exceeded", "tree-size"][..]),
        ("rows of a shard", MAX_SHARD_ROWS, &["tree-size"], &["limit-exceeded", "tree-size"]),
        ("vocabulary", MAX_VOCAB, &["vocab-mismatch"], &["limit-exceeded"]),
        ("attachments", long(MAX_ATTACHMENTS), &["json-not-canonical"], &["json-not-canonical", "limit-exceeded"]),
    ] {
        assert_eq!(forged(&bench, &mut forge, &reach(limit, most)), set(at), "{limit}");
        assert_eq!(forged(&bench, &mut forge, &reach(limit, most + 1)), set(beyond), "{limit}");
    }
}

#[test]
fn a_vast_rows_shard_is_refused_before_it_is_read() {
    let bench = Bench::quick();
    let mut forge = forger(&bench);
    let mut manifest = forge.manifest();
    let shard = &mut manifest.row_shards[0];
    let path = bench.store().join(Store::object_path(&shard.object));
    shard.bytes = 1 << 42;
    forge.publish(&bench.store(), &manifest);
    // A hole of terabytes takes a block or two.
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(1 << 42).unwrap();
    assert_eq!(rules(&bench.store()), set(&["limit-exceeded"]));
    let prove = || {
        let run = bench.run(&["prove", "forged", "0:0"]);
        assert_eq!((run.status, run.refused()), (2, vec!["limit-exceeded".to_owned()]), "{}", run.stderr);
    };
    prove();
    // Nor by a manifest that claims as many rows: a shard has 65,536 of them at most.
    manifest.row_shards[0].rows = 1 << 40;
    forge.publish(&bench.store(), &manifest);
    let path = bench.store().join(Store::object_path(&manifest.row_shards[0].object));
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(1 << 42).unwrap();
    prove();
}

#[test]
fn a_damaged_shard_is_refused_with_the_rows_in_which_the_damage_shows() {
    let bench = Bench::quick();
    let mut forge = forger(&bench);
    forge.codec = Codec::None;
    let good = forge.manifest();
    let said = |bytes: &[u8]| {
        fs::write(bench.store().join(Store::object_path(&good.score_shards[1].object)), bytes).unwrap();
        let run = bench.run(&["verify", "forged", "--json"]);
        let refusal = run.json()[0]["refusals"][0].clone();
        assert_eq!((run.status, run.json()[0]["refusals"].as_array().unwrap().len()), (2, 1), "{refusal}");
        assert_eq!(refusal["rule"], "object-digest");
        refusal["found"].as_str().unwrap().split_once("; ").unwrap().1.to_owned()
    };
    forge.publish(&bench.store(), &good);
    let keys: Vec<String> = forge.rows.iter().map(|row| row.key.to_string()).collect();
    let bytes = fs::read(bench.store().join(Store::object_path(&good.score_shards[1].object))).unwrap();
    let mut bad = bytes.clone();
    *bad.last_mut().unwrap() ^= 1;
    assert_eq!(said(&bad), "no row of scores is touched");
    // A page that is none, then whole pages of other scores.
    bad.clone_from(&bytes);
    bad[80] ^= 1;
    assert_eq!(said(&bad), format!("the damage shows at {}", keys[4]));
    let mut bodies = forge.bodies()[4..8].to_vec();
    for (page, words) in [(2, format!("at {}", keys[6])), (1, format!("at 2 rows, {} to {}", keys[5], keys[6]))] {
        bodies[page][7] ^= 1;
        let shard = forge.score_shard(&bodies);
        forge.publish(&bench.store(), &good);
        let other = fs::read(bench.store().join(Store::object_path(&shard.object))).unwrap();
        assert_eq!(said(&other), format!("the damage shows {words}"));
    }
}

#[test]
fn documents_in_another_spelling_are_refused() {
    let bench = Bench::quick();
    let mut forge = forger(&bench);
    let manifest = forge.manifest();
    let text = String::from_utf8(document::encode(&manifest).unwrap()).unwrap();
    let spellings = [
        text.replacen(':', ": ", 1),
        text.replacen("{\"capture\"", "{\"a\":1,\"capture\"", 1),
        text.replacen("\"rows\":15", "\"rows\":15.0", 1),
        text.replacen("\"complete\":true", "\"complete\":true,\"complete\":true", 1),
        text.replacen("\"writer\"", "\"\\u0077riter\"", 1),
        format!("{text}\n"),
        text.replacen(",\"vocab_size\":50", "", 1),
    ];
    for spelling in spellings {
        assert_ne!(spelling, text);
        let id = forge.put(spelling.clone().into_bytes());
        forge.publish(&bench.store(), &manifest);
        let store = Store::open(&bench.store()).unwrap();
        forge::write_log(&store, &[(manifest.capture.id().unwrap(), id)]);
        assert_eq!(rules(&bench.store()), set(&["json-not-canonical"]), "{spelling}");
    }
}

#[test]
fn a_log_that_was_hashed_again() {
    let bench = Bench::quick();
    let mut forge = forger(&bench);
    let manifest = forge.manifest();
    forge.publish(&bench.store(), &manifest);
    let store = Store::open(&bench.store()).unwrap();
    let id = forge.put(document::encode(&manifest).unwrap());
    let good = forge::entry(manifest.capture.id().unwrap(), id);
    forge::write_entries(&store, std::slice::from_ref(&good));
    assert_eq!(rules(&bench.store()), set(&[]));
    for (schema, at, rule) in [
        ("witnessmark.entry/v2", good.at.as_str(), "schema-invalid"),
        (good.schema.as_str(), "yesterday", "json-not-canonical"),
    ] {
        let entry = witnessmark::manifest::Entry { schema: schema.to_owned(), at: at.to_owned(), ..good.clone() };
        forge::write_entries(&store, &[entry]);
        assert_eq!(rules(&bench.store()), set(&[rule]), "{schema} {at}");
    }
}

#[test]
fn rows_that_were_hashed_again_are_refused() {
    let bench = Bench::quick();
    type Edit = fn(&mut Forge);
    let cases: [(&str, Edit, &[&str]); 12] = [
        ("unsorted rows", |f| f.rows.swap(1, 2), &["shard-noncanonical"]),
        ("unsorted rows of two shards", |f| f.rows.swap(3, 4), &["shard-noncanonical"]),
        ("a row twice", |f| f.rows[2] = f.rows[1].clone(), &["row-duplicated", "row-missing", "score-witness"]),
        ("a row without a score digest", |f| f.rows[2].score_digest = None, &["root-mismatch"]),
        ("another prefix", |f| f.rows[2].prefix_sha256 = Sha256([1; 32]), &["prefix-mismatch"]),
        ("another token", |f| f.rows[2].token_id = TokenId(0), &["output-mismatch", "token-not-argmax"]),
        ("another argmax", |f| f.rows[2].argmax = Some(TokenId(0)), &["argmax-witness"]),
        ("another nonce", |f| f.rows[2].run_nonce = Some(Arc::from("6b6b")), &["run-mixed"]),
        ("another request id", |f| f.rows[2].request_id = Arc::from("q"), &["request-mismatch"]),
        ("x that is not JSON", |f| f.rows[2].x = Some(Arc::from("{")), &["shard-noncanonical"]),
        ("x that is not canonical", |f| f.rows[2].x = Some(Arc::from("{\"a\": 1}")), &["shard-noncanonical"]),
        ("x that holds a list", |f| f.rows[2].x = Some(Arc::from("{\"a\":[]}")), &["shard-noncanonical"]),
    ];
    for (name, edit, expected) in cases {
        let mut forge = forger(&bench);
        edit(&mut forge);
        let manifest = forge.manifest();
        assert_eq!(forged(&bench, &mut forge, &manifest), set(expected), "{name}");
    }
}

#[test]
fn shards_with_something_to_hide_are_refused() {
    let bench = Bench::quick();
    let mut forge = forger(&bench);
    forge.cut = 100;
    let good = forge.manifest();
    let bytes = |forge: &mut Forge, id| {
        forge.publish(&bench.store(), &good);
        fs::read(bench.store().join(Store::object_path(&id))).unwrap()
    };
    let scores = bytes(&mut forge, good.score_shards[0].object);
    let rows = bytes(&mut forge, good.row_shards[0].object);
    assert!(is_shard(&scores) && is_shard(&rows));
    let hidden = |file: &[u8], at: usize| [&file[..at], b"payload", &file[at..]].concat();
    let footer = |file: &[u8]| {
        let len = file.len();
        len - 8 - usize::try_from(u32::from_le_bytes(file[len - 8..len - 4].try_into().unwrap())).unwrap()
    };
    for file in [&scores, &rows] {
        for at in [0, 4, footer(file), file.len() - 8, file.len()] {
            let mut manifest = good.clone();
            let bad = hidden(file, at);
            if file == &scores {
                manifest.score_shards[0].bytes = long(bad.len());
                manifest.score_shards[0].object = forge.put(bad);
            } else {
                manifest.row_shards[0] = forge.row_shard(bad, manifest.row_shards[0].rows);
            }
            let found = forged(&bench, &mut forge, &manifest);
            assert_eq!(found, set(&["shard-noncanonical"]), "at {at} of {}", file.len());
        }
    }

    // Pages that claim more than there is, less, or nothing.
    let bodies = forge.bodies();
    for page in [0, 7, 14] {
        for (name, body) in [
            ("empty", Vec::new()),
            ("cut", bodies[page][..bodies[page].len() - 1].to_vec()),
            ("longer", [&bodies[page][..], b"x"].concat()),
            ("another codec", vec![0; 200]),
            ("a skippable frame", [&[0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 9], &bodies[page][..]].concat()),
        ] {
            let mut bad = bodies.clone();
            bad[page] = body;
            let mut manifest = good.clone();
            manifest.score_shards[0] = forge.score_shard(&bad);
            let found = forged(&bench, &mut forge, &manifest);
            assert_eq!(found, set(&["shard-noncanonical"]), "page {page} {name}");
        }
    }
    // A page fewer, a page more.
    for bad in [bodies[..14].to_vec(), [&bodies[..], &bodies[..1]].concat()] {
        let mut manifest = good.clone();
        manifest.score_shards[0] = witnessmark::manifest::ScoreShard { rows: 15, ..forge.score_shard(&bad) };
        assert_eq!(forged(&bench, &mut forge, &manifest), set(&["shard-noncanonical"]), "{} pages", bad.len());
    }
    for file in [&scores, &rows] {
        claim_everything(&bench, &mut forge, &good, file, file == &scores);
    }
}

/// The first page header claims i32::MAX bytes, or values, or fewer than nothing.
fn claim_everything(bench: &Bench, forge: &mut Forge, good: &Manifest, file: &[u8], scores: bool) {
    // Fields 2, 3 and 5.1 of the header, as zigzag varints; MAX is 0xFEFFFFFF0F, −1 is 0x01.
    let varint = |at: usize| (at..).find(|&at| file[at] & 0x80 == 0).unwrap() + 1;
    let uncompressed = 4 + 3;
    let compressed = varint(uncompressed) + 1;
    let values = varint(varint(compressed) + 1) + 2;
    for start in [uncompressed, compressed, values] {
        for claim in [&[0xfe, 0xff, 0xff, 0xff, 0x0f][..], &[0x01], &[0x00], &[0xff; 10]] {
            let bad = [&file[..start], claim, &file[varint(start)..]].concat();
            let mut manifest = good.clone();
            if scores {
                manifest.score_shards[0].bytes = long(bad.len());
                manifest.score_shards[0].object = forge.put(bad);
            } else {
                manifest.row_shards[0] = forge.row_shard(bad, 15);
            }
            let found = forged(bench, forge, &manifest);
            assert_eq!(found, set(&["shard-noncanonical"]), "{claim:x?} at {start}");
        }
    }
}

/// A zstd frame of one raw block with this descriptor, and blocks that hold nothing in front of it.
fn frame(plane: &[u8], descriptor: u8, nothing: &[u8]) -> Vec<u8> {
    let window: &[u8] = if descriptor & 0x20 == 0 { &[0] } else { &[] };
    let width = 1 << (descriptor >> 6);
    let block = u32::try_from(plane.len()).unwrap() << 3 | 1;
    let size = &long(plane.len()).to_le_bytes()[..width];
    [&[0x28, 0xb5, 0x2f, 0xfd, descriptor], window, size, nothing, &block.to_le_bytes()[..3], plane].concat()
}

/// A capture of which the page of row 2 is `page`, of its planes; what every reader of that page refuses.
fn of_page(bench: &Bench, page: impl Fn(&[&[u8]]) -> Vec<u8>) -> BTreeSet<String> {
    let mut forge = forger(bench);
    let mut manifest = forge.manifest();
    let mut planes = Vec::new();
    forge.scores[2].write_planes(&mut planes);
    let mut bodies = forge.bodies()[..4].to_vec();
    bodies[2] = page(&planes.chunks_exact(planes.len() / 4).collect::<Vec<_>>());
    manifest.score_shards[0] = forge.score_shard(&bodies);
    forge.publish(&bench.store(), &manifest);
    // Row 2 is that of prompt 0, position 2.
    let readers: [&[&str]; 3] = [
        &["verify", "forged"],
        &["verify", "forged", "--sample", "100%", "--seed", "1"],
        &["prove", "forged", "0:2", "--scores"],
    ];
    let said = readers.map(|args| {
        let run = bench.run(args);
        assert_eq!(run.status, if run.refused().is_empty() { 0 } else { 2 }, "{args:?}: {}", run.stderr);
        run.refused().into_iter().collect::<BTreeSet<_>>()
    });
    assert!(said.iter().all(|refused| *refused == said[0]), "{said:?}");
    said.into_iter().next().unwrap()
}

#[test]
fn frames_with_bits_that_are_unused_or_reserved_are_refused() {
    let bench = Bench::quick();
    let refused = |descriptor: u8| {
        of_page(&bench, |planes| planes.iter().flat_map(|plane| frame(plane, descriptor, &[])).collect())
    };
    for descriptor in [0xA0, 0x20, 0xE0, 0x80] {
        assert_eq!(refused(descriptor), BTreeSet::new(), "{descriptor:#x}");
        // The unused bit, the reserved bit, a checksum, a dictionary.
        for bit in [0x10, 0x08, 0x04, 0x02, 0x01] {
            let expected = BTreeSet::from(["shard-noncanonical".to_owned()]);
            assert_eq!(refused(descriptor | bit), expected, "{:#x}", descriptor | bit);
        }
    }
}

#[test]
fn a_page_may_reach_its_limit_and_not_pass_it() {
    let bench = Bench::quick();
    // Blocks of no bytes, raw or repeated, in front of the first plane: a page of 4 × 50 bytes takes 248 in raw frames, and may take 200 + 1 + 1024.
    let refused = |raw: usize, repeated: usize| {
        let nothing = [[0, 0, 0].repeat(raw), [2, 0, 0, b'A'].repeat(repeated)].concat();
        of_page(&bench, |planes| {
            let filled = planes.iter().enumerate().map(|(n, plane)| (plane, if n == 0 { &nothing[..] } else { &[] }));
            let body: Vec<u8> = filled.flat_map(|(plane, nothing)| frame(plane, 0xA0, nothing)).collect();
            assert_eq!(body.len(), 248 + raw * 3 + repeated * 4);
            body
        })
    };
    assert_eq!(refused(3, 242), BTreeSet::new(), "1225 bytes");
    for (raw, repeated) in [(2, 243), (0, 2000), (2000, 0)] {
        assert_eq!(refused(raw, repeated), BTreeSet::from(["shard-noncanonical".to_owned()]), "{raw} {repeated}");
    }
}

#[test]
fn shards_cut_at_every_byte_are_refused() {
    let bench = Bench::quick();
    let dir = synth_dir(&bench, &Synth::shaped("capture-only", 8, 2, 2));
    let mut forge = Forge::of(&dir);
    let good = forge.manifest();
    forge.publish(&bench.store(), &good);
    assert_eq!(rules(&bench.store()), set(&[]));
    let read = |id| fs::read(bench.store().join(Store::object_path(&id))).unwrap();
    let scores = read(good.score_shards[0].object);
    let rows = read(good.row_shards[0].object);
    let cut = |scores_shard: bool, file: &[u8], len: usize| {
        let mut manifest = good.clone();
        let bytes = &file[..len];
        let id = witnessmark::id::ObjectId(witnessmark::digest::Blake3::of(bytes));
        if scores_shard {
            (manifest.score_shards[0].bytes, manifest.score_shards[0].object) = (long(len), id);
        } else {
            (manifest.row_shards[0].bytes, manifest.row_shards[0].object) = (long(len), id);
        }
        let document = document::encode(&manifest).unwrap();
        let manifest_id = witnessmark::id::ObjectId(witnessmark::digest::Blake3::of(&document));
        forge::put_object(&bench.store(), &id, bytes);
        forge::put_object(&bench.store(), &manifest_id, &document);
        let store = Store::open(&bench.store()).unwrap();
        forge::write_log(&store, &[(good.capture.id().unwrap(), manifest_id)]);
        let found = rules(&bench.store());
        assert_eq!(found, set(&["shard-noncanonical"]), "{len} of {} bytes", file.len());
        for id in [id, manifest_id] {
            fs::remove_file(bench.store().join(Store::object_path(&id))).unwrap();
        }
    };
    for (is_scores, file) in [(true, &scores), (false, &rows)] {
        (0..file.len()).for_each(|len| cut(is_scores, file, len));
    }
    // The same for a rows shard alone, and for one that says it has other rows.
    for count in [0, 3, 5, 1 << 31, u64::from(u32::MAX)] {
        assert!(rows::decode(&rows, count).is_err(), "{count}");
    }
}

#[test]
fn a_file_that_is_no_store() {
    let bench = sealed();
    let other = bench.path("plain");
    fs::create_dir(&other).unwrap();
    for (what, args) in [(&other, ["verify", "--all"]), (&bench.path("nowhere"), ["log", "show"])] {
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).chain([OsStr::new("--store"), what.as_os_str()]).collect();
        let run = bench.run(&args);
        assert_eq!(run.status, 3, "{}", run.stderr);
    }
}
