//! Proofs: Merkle paths by published vectors and by every size up to 64, and the proof of a row, whole and corrupted in every way.

use std::fs;

use witnessmark::digest::Sha256;
use witnessmark::merkle::{
    Size, consistency_path, inclusion_path, is_consistent, leaf_hash, node_hash, root_from_inclusion, root_of,
};

use witnessmark::catalog::Catalog;
use witnessmark::manifest::Manifest;
use witnessmark::prove::prove_row;
use witnessmark::refusal::Rule;
use witnessmark::shard::rows::{self, Records};
use witnessmark::store::{Fault, Store};

use crate::forge::Forge;
use crate::support::{Bench, embedded, files};

fn digest(text: &str) -> Sha256 {
    text.parse().unwrap()
}

/// The leaves of the certificate-transparency test vectors, which transparency-dev/merkle (proof/verify_test.go) still uses.
fn published_leaves() -> Vec<Sha256> {
    let entries: [&[u8]; 8] = [
        b"",
        b"\x00",
        b"\x10",
        b"\x20\x21",
        b"\x30\x31",
        b"\x40\x41\x42\x43",
        b"\x50\x51\x52\x53\x54\x55\x56\x57",
        b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
    ];
    entries.into_iter().map(leaf_hash).collect()
}

const ROOTS: [&str; 8] = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];

#[test]
fn published_inclusion_proofs_come_out_and_hold() {
    let leaves = published_leaves();
    for (size, root) in (1..).zip(ROOTS) {
        assert_eq!(root_of(&leaves[..size]), digest(root));
    }
    let cases: [(u64, usize, &[&str]); 5] = [
        (0, 1, &[]),
        (
            0,
            8,
            &[
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ],
        ),
        (
            5,
            8,
            &[
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
        ),
        (2, 3, &["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]),
        (
            1,
            5,
            &[
                "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            ],
        ),
    ];
    for (index, size, path) in cases {
        let path: Vec<Sha256> = path.iter().map(|node| digest(node)).collect();
        assert_eq!(inclusion_path(&leaves[..size], index).unwrap(), path);
        let leaf = leaves[usize::try_from(index).unwrap()];
        let found = root_from_inclusion(leaf, index, size.try_into().unwrap(), &path);
        assert_eq!(found, Some(digest(ROOTS[size - 1])));
    }
}

#[test]
fn published_consistency_proofs_come_out_and_hold() {
    let leaves = published_leaves();
    let cases: [(usize, usize, &[&str]); 5] = [
        (1, 1, &[]),
        (
            1,
            8,
            &[
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ],
        ),
        (
            6,
            8,
            &[
                "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
        ),
        (
            2,
            5,
            &[
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            ],
        ),
        (
            6,
            7,
            &[
                "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
                "b08693ec2e721597130641e8211e7eedccb4c26413963eee6c1e2ed16ffb1a5f",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
        ),
    ];
    for (old, new, path) in cases {
        let path: Vec<Sha256> = path.iter().map(|node| digest(node)).collect();
        assert_eq!(consistency_path(&leaves[..new], old.try_into().unwrap()).unwrap(), path);
        assert!(is_consistent(size(&leaves, old), size(&leaves, new), &path));
    }
}

fn size(leaves: &[Sha256], size: usize) -> Size {
    Size { size: size.try_into().unwrap(), root: root_of(&leaves[..size]) }
}

fn many() -> Vec<Sha256> {
    (0..64_u8).map(|n| leaf_hash(&[n, n, n])).collect()
}

/// All ways to spoil a path that leave it a list of hashes.
fn spoiled(path: &[Sha256], foreign: Sha256) -> Vec<Vec<Sha256>> {
    let mut out = vec![[path, &[foreign]].concat(), [&[foreign], path].concat()];
    for n in 0..path.len() {
        let mut other = path.to_vec();
        other[n].0[7] ^= 8;
        out.push(other);
        let mut other = path.to_vec();
        other.remove(n);
        out.push(other);
        let mut other = path.to_vec();
        other.insert(n, foreign);
        out.push(other);
    }
    out
}

#[test]
fn every_row_of_every_tree_up_to_64_is_proved_and_no_spoiled_proof_holds() {
    let leaves = many();
    for n in 1..=leaves.len() {
        let (tree, count) = (&leaves[..n], u64::try_from(n).unwrap());
        let root = root_of(tree);
        for index in 0..count {
            let leaf = leaves[usize::try_from(index).unwrap()];
            let path = inclusion_path(tree, index).unwrap();
            assert_eq!(root_from_inclusion(leaf, index, count, &path), Some(root));
            for other in (0..=count + 1).filter(|other| *other != index) {
                assert_ne!(root_from_inclusion(leaf, other, count, &path), Some(root), "row {index} as {other} of {n}");
            }
            // Another tree size is refused by its root: trees of two sizes share none.
            for other in (1..=64).filter(|other| *other != n) {
                let other = size(&leaves, other);
                assert_ne!(root_from_inclusion(leaf, index, other.size, &path), Some(other.root));
            }
            for path in spoiled(&path, leaf) {
                assert_ne!(root_from_inclusion(leaf, index, count, &path), Some(root));
            }
        }
        assert_eq!(inclusion_path(tree, count), None);
    }
    assert_eq!(inclusion_path(&[], 0), None);
    assert_eq!(root_from_inclusion(leaves[0], 0, 0, &[]), None);
}

#[test]
fn an_inner_node_is_no_leaf() {
    let leaves = many();
    let inner = node_hash(&leaves[0], &leaves[1]);
    // The path of leaf 0 without its first node is right for the inner node, and fits no tree of that size.
    let path = inclusion_path(&leaves[..8], 0).unwrap();
    assert_eq!(root_from_inclusion(inner, 0, 8, &path[1..]), None);
    // In a tree of half the size it fits, so what is offered must hash as a leaf: 0x00 in front, where the node has 0x01.
    let preimage = [leaves[0].0, leaves[1].0].concat();
    assert_ne!(leaf_hash(&preimage), inner);
    assert_ne!(root_from_inclusion(leaf_hash(&preimage), 0, 4, &path[1..]), Some(root_of(&leaves[..8])));
}

#[test]
fn every_growth_up_to_64_is_proved_and_no_spoiled_proof_holds() {
    let leaves = many();
    for new in 0..=leaves.len() {
        for old in 0..=new {
            let (a, b) = (size(&leaves, old), size(&leaves, new));
            let path = consistency_path(&leaves[..new], a.size).unwrap();
            assert!(is_consistent(a, b, &path), "{old} to {new}");
            assert!(old == new || !is_consistent(b, a, &path));
            for path in spoiled(&path, leaves[0]) {
                assert!(!is_consistent(a, b, &path), "{old} to {new}");
            }
            if old > 0 && old < new {
                for other in [a.size - 1, a.size + 1] {
                    assert!(!is_consistent(Size { size: other, ..a }, b, &path), "{old} as {other} to {new}");
                }
                let mut rewritten = leaves.clone();
                rewritten[old - 1].0[0] ^= 1;
                assert!(!is_consistent(size(&rewritten, old), b, &path));
                assert!(!is_consistent(a, size(&rewritten, new), &path));
            }
        }
    }
    assert_eq!(consistency_path(&leaves[..3], 4), None);
    // A log of nothing has one root, also as the later of two.
    let nothing = size(&leaves, 0);
    assert!(!is_consistent(nothing, Size { size: 0, root: leaves[0] }, &[]));
}

/// A bench with the c1 capture sealed, and the proof of its row `0:22` with scores.
fn proved() -> (Bench, String, String) {
    let bench = Bench::new();
    let id = bench.seal(&embedded("oracle-c1-rep0"));
    let run = bench.run(&["prove", "oracle-c1-rep0", "0:22", "--scores"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    (bench, id, run.stdout)
}

fn check(bench: &Bench, proof: &str) -> crate::support::Run {
    fs::write(bench.folder.path().join("proof.json"), proof).unwrap();
    bench.run(&["check-proof", "proof.json"])
}

#[test]
fn a_row_is_proved_offline() {
    let (bench, id, proof) = proved();
    fs::remove_dir_all(bench.store()).unwrap();
    let run = check(&bench, &proof);
    assert_eq!((run.status, run.refused()), (0, vec![]));
    assert!(run.stdout.contains(&id));
    assert_eq!(bench.run(&["check-proof", "proof.json", "--capture", &id]).status, 0);
    let other = "0".repeat(64);
    let run = bench.run(&["check-proof", "proof.json", "--capture", &other]);
    assert_eq!((run.status, run.refused()), (2, vec!["proof-invalid".to_owned()]));
    assert_eq!(bench.run(&["check-proof", "proof.json", "--old-root", &other]).status, 64);
    assert_eq!(bench.run(&["check-proof", "nowhere.json"]).status, 3);
}

#[test]
fn every_row_is_proved_whatever_the_codec_and_only_its_own_page_is_needed() {
    for codec in ["zstd", "lz4", "none"] {
        let bench = Bench::new();
        let dir = embedded("oracle-c4-rep0");
        assert_eq!(bench.run(&["seal".as_ref(), "--codec".as_ref(), codec.as_ref(), dir.as_os_str()]).status, 0);
        let rows = fs::read_to_string(dir.join("rows.jsonl")).unwrap();
        let keys = rows.lines().map(|line| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            format!("{}:{}", row["prompt_index"], row["position"])
        });
        let keys: Vec<String> = keys.collect();
        for key in &keys {
            let run = bench.run(&["prove", "oracle-c4-rep0", key, "--scores", "-o", "proof.json"]);
            assert_eq!(run.status, 0, "{codec} {key}: {}{}", run.stdout, run.stderr);
            assert_eq!(bench.run(&["check-proof", "proof.json"]).status, 0);
            fs::remove_file(bench.path("proof.json")).unwrap();
        }
        // A damaged page keeps its own row from being proved with scores, and no other.
        let largest = crate::support::files(&bench.store().join("objects"));
        let shard = largest.iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
        let good = fs::read(shard).unwrap();
        let mut bytes = good.clone();
        bytes[1000] ^= 1;
        fs::write(shard, bytes).unwrap();
        let refused = keys.iter().filter(|key| bench.run(&["prove", "oracle-c4-rep0", key, "--scores"]).status == 2);
        assert_eq!(refused.count(), 1, "{codec}");
        // An index or a footer that is not the one that the pages imply is refused, though every page is whole.
        for from_end in [1, 6, 20, 100, 200] {
            let mut bytes = good.clone();
            let at = bytes.len() - from_end;
            bytes[at] ^= 1;
            fs::write(shard, bytes).unwrap();
            let run = bench.run(&["prove", "oracle-c4-rep0", &keys[0], "--scores"]);
            assert_eq!((run.status, run.refused()), (2, vec!["shard-noncanonical".to_owned()]), "{codec} {from_end}");
        }
        assert_eq!(bench.run(&["prove", "oracle-c4-rep0", &keys[0]]).status, 0);
    }
}

#[test]
fn no_row_is_proved_from_a_damaged_rows_shard() {
    let (bench, ..) = proved();
    let is_rows = |path: &std::path::PathBuf| {
        let bytes = fs::read(path).unwrap();
        bytes.starts_with(b"PAR1") && bytes.windows(12).any(|window| window == b"prompt_index")
    };
    let shard = files(&bench.store().join("objects")).into_iter().find(is_rows).unwrap();
    let good = fs::read(&shard).unwrap();
    for at in (0..good.len()).step_by(61) {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&shard, bad).unwrap();
        let run = bench.run(&["prove", "oracle-c1-rep0", "0:22"]);
        assert_eq!((run.status, run.refused()), (2, vec!["object-digest".to_owned()]), "byte {at}");
    }
}

/// Who can hash gets no further than the row root: what is proved is right, whatever else the shard has.
#[test]
fn no_row_is_proved_from_a_rows_shard_that_was_hashed_again() {
    let bench = Bench::quick();
    let mut forge = Forge::of(&embedded("oracle-c1-rep0"));
    forge.cut = 4;
    let good = forge.manifest();
    let (rows, root) = (forge.rows.clone(), bench.store());
    let mut prove = |row: usize, edit: &dyn Fn(&mut Forge, &mut Manifest)| {
        let mut manifest = good.clone();
        edit(&mut forge, &mut manifest);
        forge.publish(&root, &manifest);
        let store = Store::open(&root).unwrap();
        let catalog = Catalog::load(&store).unwrap();
        let resolved = catalog.resolve("forged", false).unwrap();
        match prove_row(&catalog, &resolved, rows[row].key, false) {
            Ok(proof) => Ok(proof.unwrap().check().unwrap().row == rows[row]),
            Err(Fault::Refused(refusal)) => Err(refusal.rule),
            Err(Fault::Error(error)) => panic!("{error}"),
        }
    };
    let shard = rows::encode(&rows[..4]);
    for row in [0, 1, rows.len() - 1] {
        assert_eq!(prove(row, &|_, _| {}), Ok(true), "as it was sealed");
        let token = |forge: &mut Forge, manifest: &mut Manifest| {
            let mut other = rows[..4].to_vec();
            other[1].token_id.0 ^= 1;
            manifest.row_shards[0] = forge.row_shard(rows::encode(&other), 4);
        };
        assert_eq!(prove(row, &token), Err(Rule::RootMismatch), "another token in the second row");
        assert_eq!(prove(row, &|_, m| m.row_shards.swap(0, 1)), Err(Rule::RootMismatch));
        assert_eq!(prove(row, &|_, m| m.row_shards.truncate(1)), Err(Rule::TreeSize));
        assert_eq!(prove(row, &|_, m| m.row_shards.clear()), Err(Rule::TreeSize));
        assert_eq!(prove(row, &|_, m| m.row_shards[0].rows = 3), Err(Rule::ShardNoncanonical));
        for at in (row..shard.len()).step_by(37) {
            let cut = |forge: &mut Forge, m: &mut Manifest| m.row_shards[0] = forge.row_shard(shard[..at].to_vec(), 4);
            assert_ne!(prove(row, &cut), Ok(false), "cut at {at}");
            let flip = |forge: &mut Forge, m: &mut Manifest| {
                let mut bytes = shard.clone();
                bytes[at] ^= 0x41;
                m.row_shards[0] = forge.row_shard(bytes, 4);
            };
            assert_ne!(prove(row, &flip), Ok(false), "byte {at}");
        }
    }
    assert_eq!(
        prove(0, &|forge, m| m.row_shards[0] = forge.row_shard(shard[..400].to_vec(), 4)),
        Err(Rule::ShardNoncanonical)
    );
    // A capture that claims more rows than it has, and one with its rows twice: their own ids bind that.
    let claimed = |_: &mut Forge, m: &mut Manifest| m.capture.rows += 1;
    assert_eq!(prove(0, &claimed), Err(Rule::TreeSize));
    let twice = |_: &mut Forge, m: &mut Manifest| {
        let again = m.row_shards.clone();
        m.row_shards.extend(again);
        m.capture.rows *= 2;
    };
    assert_eq!(prove(0, &twice), Err(Rule::RowDuplicated));
}

#[test]
fn scores_that_a_row_has_are_never_left_out_of_its_proof() {
    let bench = Bench::quick();
    let mut forge = Forge::of(&embedded("oracle-c1-rep0"));
    let (good, root) = (forge.manifest(), bench.store());
    let (vocab, rows) = (good.capture.vocab_size, good.score_shards[0].rows);
    for (vocab, rows, expected) in [
        (vocab, rows, None),
        (None, rows, Some(Rule::LimitExceeded)),
        (Some((1 << 53) - 1), rows, Some(Rule::LimitExceeded)),
        (vocab, 0, Some(Rule::TreeSize)),
        (vocab, rows + 1, Some(Rule::TreeSize)),
        (vocab, u64::MAX >> 12, Some(Rule::TreeSize)),
    ] {
        let mut manifest = good.clone();
        manifest.capture.vocab_size = vocab;
        manifest.score_shards[0].rows = rows;
        forge.publish(&root, &manifest);
        let store = Store::open(&root).unwrap();
        let catalog = Catalog::load(&store).unwrap();
        let resolved = catalog.resolve("forged", false).unwrap();
        match prove_row(&catalog, &resolved, forge.rows[0].key, true) {
            Ok(proof) => assert!(expected.is_none() && proof.unwrap().check().unwrap().scores.is_some()),
            Err(Fault::Refused(refusal)) => assert_eq!(Some(refusal.rule), expected),
            Err(Fault::Error(error)) => panic!("{error}"),
        }
    }
}

/// A capture of what is no row: its root is right, and still nothing is proved.
#[test]
fn a_record_that_is_no_rows_is_not_proved() {
    let bench = Bench::quick();
    let mut forge = Forge::of(&embedded("oracle-c1-rep0"));
    let mut manifest = forge.manifest();
    let good = rows::encode(&forge.rows);
    let at = good.windows(6).position(|window| window == b"decode").unwrap();
    let mut bytes = good.clone();
    bytes[at..at + 6].copy_from_slice(b"DECODE");
    let mut records = Records::new(&bytes, manifest.capture.rows).unwrap();
    let (mut record, mut leaves) = (Vec::new(), Vec::new());
    while records.next(&mut record).unwrap() {
        leaves.push(leaf_hash(&record));
    }
    manifest.capture.row_root = root_of(&leaves);
    manifest.row_shards[0] = forge.row_shard(bytes, manifest.capture.rows);
    forge.publish(&bench.store(), &manifest);
    let keys: Vec<String> =
        forge.rows.iter().map(|row| format!("{}:{}", row.key.request.prompt_index, row.key.position)).collect();
    let refused: Vec<Vec<String>> = keys.iter().map(|key| bench.run(&["prove", "forged", key]).refused()).collect();
    assert_eq!(refused.iter().filter(|rules| rules.is_empty()).count(), keys.len() - 1);
    assert!(refused.contains(&vec!["shard-noncanonical".to_owned()]), "{refused:?}");
}

#[test]
fn what_cannot_be_proved_is_told_apart() {
    let (bench, ..) = proved();
    for (args, status) in [
        (["prove", "oracle-c1-rep0", "0:999"], 3),
        (["prove", "nothing-of-the-kind", "0:22"], 3),
        (["prove", "oracle-c1-rep0", "22"], 64),
        (["prove", "oracle-c1-rep0", "0:0:0:22"], 64),
        (["prove", "oracle-c1-rep0", "0:0:22"], 0),
    ] {
        assert_eq!(bench.run(&args).status, status, "{args:?}");
    }
}

/// Changes a proof as JSON and writes it back in canonical form: members sorted, no space.
fn edited(proof: &str, edit: impl FnOnce(&mut serde_json::Value)) -> String {
    let mut value: serde_json::Value = serde_json::from_str(proof).unwrap();
    edit(&mut value);
    value.to_string()
}

#[test]
fn every_corruption_of_a_proof_is_refused_by_name() {
    let (bench, _, proof) = proved();
    type Edit = fn(&mut serde_json::Value);
    let edits: [(&str, &str, Edit); 15] = [
        ("another row", "proof-invalid", |p| p["row"] = 2.into()),
        ("a row beyond the tree", "proof-invalid", |p| p["row"] = 99.into()),
        ("another tree size", "proof-invalid", |p| p["tree_size"] = 8.into()),
        ("another size in both places", "proof-invalid", |p| {
            p["tree_size"] = 5.into();
            p["capture"]["rows"] = 5.into();
        }),
        ("a path that is cut", "proof-invalid", |p| drop(p["path"].as_array_mut().unwrap().pop())),
        ("a path that is longer", "proof-invalid", |p| {
            let node = p["path"][0].clone();
            p["path"].as_array_mut().unwrap().push(node);
        }),
        ("no path", "proof-invalid", |p| p["path"] = serde_json::json!([])),
        ("another record", "proof-invalid", |p| {
            let record = p["record"].as_str().unwrap().replacen("0001", "0002", 1);
            p["record"] = record.into();
        }),
        ("an inner node as the record", "proof-invalid", |p| {
            let nodes = format!("{}{}", p["path"][0].as_str().unwrap(), p["path"][1].as_str().unwrap());
            p["record"] = nodes.into();
        }),
        ("a record in upper case", "proof-invalid", |p| {
            p["record"] = p["record"].as_str().unwrap().to_uppercase().into()
        }),
        ("another row root", "proof-invalid", |p| p["capture"]["row_root"] = "0".repeat(64).into()),
        ("other scores", "proof-invalid", |p| {
            let text = p["scores"]["base64"].as_str().unwrap();
            p["scores"]["base64"] = format!("AAAA{}", &text[4..]).into();
        }),
        ("scores in another dtype", "proof-invalid", |p| p["scores"]["dtype"] = "float16".into()),
        ("another schema", "schema-invalid", |p| p["schema"] = "witnessmark.proof/v2".into()),
        ("one key more", "json-not-canonical", |p| p["note"] = "trust me".into()),
    ];
    for (what, rule, edit) in edits {
        let run = check(&bench, &edited(&proof, edit));
        assert_eq!((run.status, run.refused()), (2, vec![rule.to_owned()]), "{what}: {}", run.stdout);
    }
    for bad in [String::new(), "{}".to_owned(), format!("{proof}\n"), proof.replacen(':', ": ", 1)] {
        assert_eq!(check(&bench, &bad).status, 2);
    }
    // Nothing that decides can change and leave the id: what is left of the capture document only names another capture.
    let other = edited(&proof, |p| p["capture"]["complete"] = false.into());
    let run = check(&bench, &other);
    assert_eq!(run.status, 0);
    let id = bench.run(&["show", "oracle-c1-rep0", "--json"]).stdout;
    let id = serde_json::from_str::<serde_json::Value>(&id).unwrap()["capture"].as_str().unwrap().to_owned();
    assert!(!run.stdout.contains(&id));
    assert_eq!(bench.run(&["check-proof", "proof.json", "--capture", &id]).status, 2);
}

#[test]
fn no_byte_of_a_proof_can_change_under_its_capture_id() {
    let (bench, id, _) = proved();
    let proof = bench.run(&["prove", "oracle-c1-rep0", "0:22"]).stdout;
    let id: witnessmark::id::CaptureId = id.parse().unwrap();
    for at in 0..proof.len() {
        let mut bytes = proof.clone().into_bytes();
        bytes[at] ^= 1;
        let holds = match witnessmark::proof::Proof::parse(&bytes) {
            Ok(witnessmark::proof::Proof::Row(proof)) => proof.check().is_ok_and(|claim| claim.capture == id),
            _ => false,
        };
        assert!(!holds, "byte {at}");
    }
}
