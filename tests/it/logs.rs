//! The log: growth proofs, tiles, signed checkpoints, and a log that is put back.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use witnessmark::id::{CaptureId, Nanos, ObjectId};
use witnessmark::log::Log;
use witnessmark::manifest::{Act, Codec};
use witnessmark::merkle::{leaf_hash, root_of};
use witnessmark::meter::Meter;
use witnessmark::seal::{Batch, Outcome};
use witnessmark::store::Store;

use crate::support::{Bench, assert_unchanged, copy_folder, embedded, files, listing};

/// Acts that nothing stands behind: enough for a log.
fn grow(store: &Store, count: u16) {
    let size = u16::try_from(Log::load(store).unwrap().size().size).unwrap();
    let act = |n: u16| {
        let mut bytes = [0; 32];
        bytes[..2].copy_from_slice(&n.to_le_bytes());
        Act::Seal(CaptureId(witnessmark::digest::Sha256(bytes)), ObjectId(witnessmark::digest::Blake3(bytes)))
    };
    let acts: Vec<_> = (size..size + count).map(act).collect();
    Log::append(store, &acts, Nanos(1), "test 1").unwrap();
}

fn store(bench: &Bench) -> Store {
    Store::create(&bench.store(), "00".repeat(16)).unwrap()
}

/// A store with a log of so many entries, signed by the key `key`.
fn signed(bench: &Bench, entries: u16) -> Store {
    let store = store(bench);
    grow(&store, entries);
    bench.run(&["log", "keygen", "-o", "key"]);
    assert_eq!(bench.run(&["log", "sign", "--key", "key"]).status, 0);
    store
}

#[test]
fn growth_is_proved_and_checked_offline() {
    let bench = Bench::new();
    grow(&store(&bench), 7);
    let run = bench.run(&["log", "prove", "3", "-o", "growth.json"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let proof: serde_json::Value =
        serde_json::from_slice(&fs::read(bench.folder.path().join("growth.json")).unwrap()).unwrap();
    assert_eq!((&proof["old_size"], &proof["new_size"]), (&3.into(), &7.into()));
    let root = |key: &str| proof[key].as_str().unwrap().to_owned();
    fs::remove_dir_all(bench.store()).unwrap();
    for command in [&["check-proof", "growth.json"][..], &["log", "check", "growth.json"]] {
        let run = bench.run(command);
        assert_eq!(run.status, 0, "{}", run.stdout);
    }
    let (old, new) = (root("old_root"), root("new_root"));
    assert_eq!(bench.run(&["log", "check", "growth.json", "--old-root", &old, "--new-root", &new]).status, 0);
    let run = bench.run(&["log", "check", "growth.json", "--old-root", &new]);
    assert_eq!((run.status, run.refused()), (2, vec!["proof-invalid".to_owned()]));
    let mut bad = proof.clone();
    bad["old_size"] = 4.into();
    fs::write(bench.folder.path().join("growth.json"), bad.to_string()).unwrap();
    let run = bench.run(&["check-proof", "growth.json"]);
    assert_eq!((run.status, run.refused()), (2, vec!["proof-invalid".to_owned()]));
}

#[test]
fn sizes_that_are_not_there_are_a_wrong_command_line() {
    let bench = Bench::new();
    grow(&store(&bench), 2);
    for sizes in [&["3"][..], &["2", "1"], &["1", "3"]] {
        assert_eq!(bench.run(&[&["log", "prove"], sizes].concat()).status, 64, "{sizes:?}");
    }
    assert_eq!(bench.run(&["log", "prove", "0"]).status, 0);
}

#[test]
fn an_act_is_logged_once_wherever_it_stands() {
    let bench = Bench::quick();
    let store = store(&bench);
    grow(&store, 3);
    let acts: Vec<Act> = Log::load(&store).unwrap().entries.iter().map(|entry| entry.act).collect();
    let new =
        Act::Seal(CaptureId(witnessmark::digest::Sha256([9; 32])), ObjectId(witnessmark::digest::Blake3([9; 32])));
    let places = Log::append(&store, &[new, acts[1], new, acts[2]], Nanos(2), "test 1").unwrap();
    assert_eq!(places, [(3, true), (1, false), (3, false), (2, false)]);
    assert_eq!(Log::append(&store, &[acts[0], new], Nanos(3), "test 1").unwrap(), [(0, false), (3, false)]);
    let log = Log::load(&store).unwrap();
    assert_eq!((log.entries.len(), log.refusals), (4, vec![]));
}

#[test]
fn a_seal_appends_to_the_log_as_it_is_under_the_lock() {
    let bench = Bench::quick();
    let store = store(&bench);
    grow(&store, 2);
    let meter = Meter::default();
    let prepared = || {
        let mut batch = Batch::new(&store, Codec::None, None, &meter).unwrap();
        batch.add(&embedded("oracle-c1-rep0"), None).unwrap();
        batch
    };
    let (first, second, third) = (prepared(), prepared(), prepared());
    // It grows in between …
    grow(&store, 3);
    match first.commit(Nanos(2)).unwrap().as_slice() {
        [Outcome::Sealed(sealed)] => assert_eq!((sealed.entry, sealed.already), (5, false)),
        other => panic!("{other:?}"),
    }
    match second.commit(Nanos(3)).unwrap().as_slice() {
        [Outcome::Sealed(sealed)] => assert_eq!((sealed.entry, sealed.already), (5, true)),
        other => panic!("{other:?}"),
    }
    let log = Log::load(&store).unwrap();
    assert_eq!((log.entries.len(), log.refusals), (6, vec![]));
    // … or is damaged: an entry that nobody would look at otherwise is enough.
    let entries = bench.store().join("log/entries");
    let mut bytes = fs::read(&entries).unwrap();
    let at = bytes.windows(6).position(|window| window == b"test 1").unwrap();
    bytes[at] = b'T';
    fs::write(&entries, &bytes).unwrap();
    match third.commit(Nanos(4)).unwrap().as_slice() {
        [Outcome::Refused(findings)] => assert_eq!(findings.refusals[0].rule.id(), "log-inconsistent"),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read(&entries).unwrap(), bytes);
}

#[test]
fn tiles_grow_with_the_log() {
    let bench = Bench::new();
    let store = store(&bench);
    let tiles = || {
        let root = bench.store().join("log/tile");
        let paths = files(&root).into_iter();
        paths.map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    grow(&store, 1);
    grow(&store, 4);
    assert_eq!(tiles(), ["0/000.p/1", "0/000.p/5"]);
    grow(&store, 251);
    // The full tile is there, so its partial ones are gone.
    assert_eq!(tiles(), ["0/000", "1/000.p/1"]);
    grow(&store, 44);
    assert_eq!(tiles(), ["0/000", "0/001.p/44", "1/000.p/1"]);
    assert_eq!(fs::metadata(bench.store().join("log/tile/0/000")).unwrap().len(), 8192);
    let log = Log::load(&store).unwrap();
    assert_eq!(log.check_tiles(&store).unwrap(), []);
    // Tiles may be absent, and come back with the next append.
    fs::remove_dir_all(bench.store().join("log/tile")).unwrap();
    assert_eq!(log.check_tiles(&store).unwrap(), []);
    grow(&store, 1);
    assert_eq!(tiles(), ["0/000", "0/001.p/45", "1/000.p/1"]);
}

#[test]
fn a_tile_that_is_not_the_logs_is_refused() {
    let bench = Bench::new();
    bench.seal(&embedded("oracle-c1-rep0"));
    bench.seal(&embedded("oracle-c4-rep0"));
    let tile = bench.store().join("log/tile/0/000.p/2");
    let good = fs::read(&tile).unwrap();
    let mut bad = good.clone();
    bad[40] ^= 1;
    let verify = || bench.run(&["verify", "--all", "--quick"]);
    assert_eq!(verify().status, 0);
    for (bytes, path) in [(&bad, "0/000.p/2"), (&good, "0/000.p/1"), (&good, "0/000.p/3"), (&good, "0/stray")] {
        let path = bench.store().join("log/tile").join(path);
        let before = fs::read(&path).ok();
        fs::write(&path, bytes).unwrap();
        let run = verify();
        assert_eq!((run.status, run.refused()), (2, vec!["log-inconsistent".to_owned()]), "{}", path.display());
        match before {
            Some(before) => fs::write(&path, before).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
    }
    assert_eq!(verify().status, 0);
}

/// A log of these entries, with a head that covers `bytes` of them and says that they are `size`.
fn write_log(bench: &Bench, entries: &[u8], bytes: u64, size: u64) {
    let head = serde_json::json!({
        "bytes": bytes.to_string(), "origin": "00".repeat(16), "root": "0".repeat(64), "schema": "witnessmark.head/v1", "size": size,
    });
    fs::write(bench.store().join("log/entries"), entries).unwrap();
    fs::write(bench.store().join("log/head"), head.to_string()).unwrap();
}

#[test]
fn a_log_of_nothing_but_faults_is_not_read_to_its_end() {
    let bench = Bench::quick();
    store(&bench);
    write_log(&bench, &b"x\n".repeat(30_000), 60_000, 30_000);
    let run = bench.run(&["log", "show", "--json"]);
    assert_eq!(run.status, 2);
    assert!(run.stdout.contains("10001 faults before line 10002; what follows was not read"), "{}", run.stdout);
    // An entry may have 64 KiB and no more, and it ends with its line.
    for (line, rule) in [("x".repeat(65_536), "json-not-canonical"), ("x".repeat(65_537), "limit-exceeded")] {
        for end in ["\n", ""] {
            let entries = [line.as_str(), end].concat();
            write_log(&bench, entries.as_bytes(), u64::try_from(entries.len()).unwrap(), 2);
            let run = bench.run(&["log", "show"]);
            let mut expected = [rule.to_owned(), "log-inconsistent".to_owned()];
            expected.sort_unstable();
            let mut refused = run.refused();
            refused.sort_unstable();
            assert_eq!((run.status, refused), (2, expected.to_vec()), "{}", run.stderr);
            let partial = "a length that ends with a whole line";
            let said = bench.run(&["log", "show", "--json"]).stdout;
            assert_eq!(said.contains(partial), end.is_empty(), "{said}");
        }
    }
    // What is said of a long text is short.
    let long = format!("{{\"{0}\":1,\"{0}\":2}}\n", "k".repeat(30_000));
    write_log(&bench, long.as_bytes(), u64::try_from(long.len()).unwrap(), 1);
    let run = bench.run(&["log", "show", "--json"]);
    assert!(run.stdout.contains(" bytes more") && run.stdout.len() < 10_000, "{}", run.stdout.len());
}

#[test]
fn holes_are_not_read() {
    let bench = Bench::quick();
    let store = store(&bench);
    let entries = bench.store().join("log/entries");
    write_log(&bench, b"", 1 << 33, 3);
    fs::File::options().write(true).open(&entries).unwrap().set_len(1 << 33).unwrap();
    let run = bench.run(&["log", "show"]);
    assert_eq!((run.status, run.refused()), (2, vec!["log-inconsistent".to_owned()]), "{}", run.stderr);
    write_log(&bench, b"", 1 << 40, 1 << 40);
    fs::File::options().write(true).open(&entries).unwrap().set_len(1 << 40).unwrap();
    let run = bench.run(&["log", "show"]);
    assert_eq!((run.status, run.refused()), (2, vec!["limit-exceeded".to_owned()]), "{}", run.stderr);
    // What lies beyond the head is nobody's, and the next append cuts it off.
    fs::remove_file(bench.store().join("log/head")).unwrap();
    fs::remove_file(&entries).unwrap();
    grow(&store, 3);
    let len = fs::metadata(&entries).unwrap().len();
    fs::File::options().write(true).open(&entries).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(bench.run(&["log", "show"]).status, 0);
    grow(&store, 1);
    assert_eq!(fs::metadata(&entries).unwrap().len(), len / 3 * 4);
}

/// Puts the entries and the head of a log as it was back into a store.
fn put_back(bench: &Bench, old: &std::path::Path) {
    for file in ["entries", "head"] {
        fs::copy(old.join(file), bench.store().join("log").join(file)).unwrap();
    }
}

#[test]
fn a_log_that_is_put_back_is_seen_by_who_kept_a_checkpoint() {
    let bench = Bench::new();
    bench.seal(&embedded("oracle-c1-rep0"));
    let old = bench.folder.path().join("old-log");
    copy_folder(&bench.store().join("log"), &old);
    bench.seal(&embedded("oracle-c4-rep0"));
    assert_eq!(bench.run(&["log", "keygen", "-o", "key"]).status, 0);
    assert_eq!(bench.run(&["log", "sign", "--key", "key", "-o", "kept"]).status, 0);
    let kept = ["verify", "--all", "--quick", "--checkpoint", "kept", "--verifier-key", "key.pub"];
    let run = bench.run(&kept);
    assert_eq!(run.status, 0, "{}", run.stdout);
    assert!(!run.stdout.contains("rest on the sealer"));

    put_back(&bench, &old);
    let run = bench.run(&kept);
    assert_eq!((run.status, run.refused()), (2, vec!["log-inconsistent".to_owned()]));
    // Without one the tile of the second entry, and the checkpoint in the store, still give it away …
    let all = ["verify", "--all", "--quick"];
    let run = bench.run(&all);
    assert_eq!((run.status, run.refused()), (2, vec!["log-inconsistent".to_owned()]));
    // … until those are put back too: then nobody can tell, and it is said.
    fs::remove_dir_all(bench.store().join("log/tile")).unwrap();
    fs::remove_file(bench.store().join("log/checkpoint")).unwrap();
    fs::remove_file(bench.store().join("refs/runs/oracle-c4-rep0")).unwrap();
    let run = bench.run(&all);
    assert_eq!(run.status, 0, "{}", run.stdout);
    assert!(run.stdout.contains("the order and the times of the log rest on the sealer"));
    let run = bench.run(&kept);
    assert_eq!((run.status, run.refused()), (2, vec!["log-inconsistent".to_owned()]));
}

#[test]
fn a_checkpoint_of_an_older_log_holds_for_what_grew_from_it() {
    let bench = Bench::new();
    bench.seal(&embedded("oracle-c1-rep0"));
    bench.run(&["log", "keygen", "-o", "key"]);
    bench.run(&["log", "sign", "--key", "key", "-o", "kept"]);
    bench.seal(&embedded("oracle-c4-rep0"));
    let run = bench.run(&["verify", "--checkpoint", "kept", "--json"]);
    assert_eq!(run.status, 0, "{}", run.stdout);
    let line: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&line["size"], &line["log_size"], &line["signature_checked"]), (&1.into(), &2.into(), &false.into()));
}

#[test]
fn signatures_are_checked_by_the_key_that_is_given() {
    let bench = Bench::new();
    bench.seal(&embedded("oracle-c1-rep0"));
    for key in ["mine", "other"] {
        let run = bench.run(&["log", "keygen", "-o", key]);
        assert_eq!(run.status, 0, "{}", run.stderr);
    }
    let public = bench.run(&["log", "keygen", "-o", "mine"]);
    assert_eq!(public.status, 3, "a key is never written over");
    bench.run(&["log", "sign", "--key", "mine", "-o", "kept"]);
    let path = bench.folder.path().join("kept");
    let verify = |key: &str| bench.run(&["verify", "--checkpoint", "kept", "--verifier-key", key]);
    let key = fs::read_to_string(bench.folder.path().join("mine.pub")).unwrap();
    assert_eq!(verify(key.trim()).status, 0);
    let run = verify("other.pub");
    assert_eq!((run.status, run.refused()), (2, vec!["signature-invalid".to_owned()]));
    let note = fs::read_to_string(&path).unwrap();
    for (bad, rule) in [
        (note.replacen("\n1\n", "\n2\n", 1), "signature-invalid"),
        (note.replacen("witnessmark/", "witnessmork/", 1), "signature-invalid"),
        (note.trim_end().to_owned(), "schema-invalid"),
        (String::new(), "schema-invalid"),
    ] {
        fs::write(&path, bad).unwrap();
        let run = verify("mine.pub");
        assert_eq!((run.status, run.refused()), (2, vec![rule.to_owned()]));
        assert!(run.stdout.contains(&format!("REFUSED: {rule}: kept\n")), "not a file of the store: {}", run.stdout);
    }
    assert_eq!(verify("no+such+key").status, 64);
    assert_eq!(verify("nowhere").status, 3);
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(bench.folder.path().join("mine")).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "a signing key is for its owner's eyes");
}

#[test]
fn nothing_is_signed_that_contradicts_what_was_signed() {
    let bench = Bench::new();
    bench.seal(&embedded("oracle-c1-rep0"));
    let old = bench.folder.path().join("old-log");
    copy_folder(&bench.store().join("log"), &old);
    bench.seal(&embedded("oracle-c4-rep0"));
    bench.run(&["log", "keygen", "-o", "key"]);
    assert_eq!(bench.run(&["log", "sign", "--key", "key"]).status, 0);
    put_back(&bench, &old);
    let run = bench.run(&["log", "sign", "--key", "key"]);
    assert_eq!((run.status, run.refused()), (2, vec!["log-inconsistent".to_owned()]));
}

/// Reads a published log as a client does that has nothing else: the checkpoint, then bundles and tiles of the size that it names.
fn entries_published(dir: &std::path::Path) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(dir.join("checkpoint")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let (size, root): (usize, _) = (lines[1].parse().unwrap(), lines[2]);
    // 〈N〉 of fewer than a thousand bundles.
    let path = |of: &str, n: usize, width: usize| match width {
        256 => dir.join(format!("tile/{of}/{n:03}")),
        width => dir.join(format!("tile/{of}/{n:03}.p/{width}")),
    };
    let mut entries = Vec::new();
    for n in 0..size.div_ceil(256) {
        let width = (size - n * 256).min(256);
        let bundle = fs::read(path("entries", n, width)).unwrap();
        let mut rest = bundle.as_slice();
        let mut hashes = Vec::new();
        while let Some((len, after)) = rest.split_first_chunk::<2>() {
            let (entry, after) = after.split_at(usize::from(u16::from_be_bytes(*len)));
            hashes.extend(leaf_hash(entry).0);
            entries.push(entry.to_vec());
            rest = after;
        }
        assert_eq!(fs::read(path("0", n, width)).unwrap(), hashes);
    }
    assert_eq!(entries.len(), size);
    let leaves: Vec<_> = entries.iter().map(|entry| leaf_hash(entry)).collect();
    assert_eq!(STANDARD.encode(root_of(&leaves).0), root);
    for (n, full) in leaves.chunks_exact(256).enumerate() {
        let above = fs::read(path("1", 0, leaves.len() / 256)).unwrap();
        assert_eq!(above[n * 32..][..32], root_of(full).0);
    }
    entries
}

#[test]
fn what_is_published_is_read_with_nothing_else() {
    let bench = Bench::new();
    let store = store(&bench);
    let dir = bench.folder.path().join("web/log");
    let publish = || bench.run(&["log", "publish", "web/log", "--json"]);
    let sign = || assert_eq!(bench.run(&["log", "sign", "--key", "key"]).status, 0);
    grow(&store, 300);
    bench.run(&["log", "keygen", "-o", "key"]);
    let unsigned = publish();
    assert_eq!(unsigned.status, 3, "{}", unsigned.stderr);
    assert!(!dir.exists());
    sign();
    // What was not signed is not published.
    grow(&store, 7);
    let first = publish();
    assert_eq!((first.status, &first.json()[0]["written"]), (0, &5.into()), "{}", first.stderr);
    let lines = |count: usize| {
        let text = fs::read_to_string(bench.store().join("log/entries")).unwrap();
        text.lines().take(count).map(|line| line.as_bytes().to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(entries_published(&dir), lines(300));
    let before = listing(&dir);
    let again = publish();
    assert_eq!((&again.json()[0]["written"], &again.json()[0]["there"]), (&0.into(), &5.into()));
    grow(&store, 300);
    sign();
    assert_eq!(publish().status, 0);
    assert_eq!(entries_published(&dir), lines(607));
    let after = listing(&dir);
    let changed: Vec<_> = before.iter().filter(|(path, there)| after.get(*path) != Some(there)).collect();
    assert!(changed.iter().all(|(path, _)| path.ends_with("checkpoint")), "{changed:?}");
}

#[test]
fn nothing_is_published_over_another_log() {
    let bench = Bench::new();
    let store = signed(&bench, 3);
    let dir = bench.folder.path().join("web");
    let publish = |dir: &str| {
        let run = bench.run(&["log", "publish", dir]);
        (run.status, run.refused())
    };
    let inconsistent = || (2, vec!["log-inconsistent".to_owned()]);
    let log = bench.store().join("log");
    std::os::unix::fs::symlink(&log, bench.folder.path().join("link")).unwrap();
    for inside in
        [bench.store(), log.join("new/folder"), "nothing/../store/log".into(), "link".into(), "link/new".into()]
    {
        assert_eq!(publish(inside.to_str().unwrap()).0, 64, "{}", inside.display());
    }
    assert!(!bench.folder.path().join("nothing").exists());
    assert_eq!(publish("web"), (0, vec![]));
    let old = fs::read(bench.store().join("log/checkpoint")).unwrap();
    grow(&store, 1);
    bench.run(&["log", "sign", "--key", "key"]);
    assert_eq!(publish("web"), (0, vec![]));
    // An older checkpoint put back into the store is not published over a newer one.
    let newer = fs::read(bench.store().join("log/checkpoint")).unwrap();
    fs::write(bench.store().join("log/checkpoint"), old).unwrap();
    assert_eq!(publish("web"), inconsistent());
    fs::write(bench.store().join("log/checkpoint"), &newer).unwrap();
    // Also what only an older checkpoint covers.
    for path in ["tile/0/000.p/3", "tile/entries/000.p/3", "tile/0/000.p/4", "tile/entries/000.p/4"] {
        let good = fs::read(dir.join(path)).unwrap();
        fs::write(dir.join(path), [&good[..good.len() - 1], b"x"].concat()).unwrap();
        assert_eq!(publish("web"), inconsistent(), "{path}");
        fs::write(dir.join(path), good).unwrap();
    }
    for ahead in ["tile/0/000.p/5", "tile/entries/001", "tile/1/000"] {
        fs::create_dir_all(dir.join(ahead).parent().unwrap()).unwrap();
        fs::write(dir.join(ahead), "of a longer log").unwrap();
        assert_eq!(publish("web"), inconsistent(), "{ahead}");
        fs::remove_file(dir.join(ahead)).unwrap();
    }
    assert_eq!(publish("web"), (0, vec![]));
    fs::remove_file(dir.join("tile/0/000.p/4")).unwrap();
    std::os::unix::fs::symlink(bench.store().join("log/entries"), dir.join("tile/0/000.p/4")).unwrap();
    assert_eq!(publish("web"), (2, vec!["not-a-regular-file".to_owned()]));
    fs::remove_file(dir.join("tile/0/000.p/4")).unwrap();
    fs::create_dir(bench.folder.path().join("linked")).unwrap();
    std::os::unix::fs::symlink(log.join("tile"), bench.folder.path().join("linked/tile")).unwrap();
    fs::write(log.join("tile/.new-abc"), "an append at work").unwrap();
    let before = listing(&bench.store());
    assert_eq!(publish("linked"), (2, vec!["not-a-regular-file".to_owned()]));
    assert_unchanged(&bench.store(), &before);
    assert!(!log.join("tile/entries").exists());
    fs::rename(log.join("checkpoint"), log.join("moved")).unwrap();
    std::os::unix::fs::symlink("moved", log.join("checkpoint")).unwrap();
    assert_eq!(publish("elsewhere"), (2, vec!["not-a-regular-file".to_owned()]));
    fs::rename(log.join("moved"), log.join("checkpoint")).unwrap();
    // Another store's log, of the same size.
    let other = Bench::new();
    let there = Store::create(&other.store(), "01".repeat(16)).unwrap();
    grow(&there, 4);
    fs::copy(bench.folder.path().join("key"), other.folder.path().join("key")).unwrap();
    other.run(&["log", "sign", "--key", "key"]);
    let run = other.run(&["log", "publish", dir.to_str().unwrap()]);
    assert_eq!((run.status, run.refused()), inconsistent(), "{}", run.stderr);
    assert_eq!(fs::read(dir.join("checkpoint")).unwrap(), newer);
}

#[test]
fn what_others_signed_beside_it_stays() {
    let bench = Bench::new();
    let store = signed(&bench, 2);
    bench.run(&["log", "keygen", "-o", "other"]);
    let publish = |key: &str| bench.run(&["log", "publish", "web", "--verifier-key", key]);
    let run = publish("other.pub");
    assert_eq!((run.status, run.refused()), (2, vec!["signature-invalid".to_owned()]));
    assert_eq!(publish("key.pub").status, 0);
    let checkpoint = bench.folder.path().join("web/checkpoint");
    let cosigned = fs::read_to_string(&checkpoint).unwrap() + "\u{2014} witness AAAAAAAA\n";
    fs::write(&checkpoint, &cosigned).unwrap();
    // What a killed publisher left of tiles goes; what else is there is not looked at.
    let left =
        ["web/tile/0/.new-def", "web/tile/entries/.new-abc", "web/.new-ghi"].map(|name| bench.folder.path().join(name));
    left.iter().for_each(|file| fs::write(file, "x").unwrap());
    assert_eq!(publish("key.pub").status, 0);
    assert_eq!(fs::read_to_string(&checkpoint).unwrap(), cosigned);
    assert_eq!(left.map(|file| file.exists()), [false, false, true]);
    // Signed once more, by another key: then both have signed it.
    bench.run(&["log", "sign", "--key", "other"]);
    assert_eq!(publish("other.pub").status, 0);
    let all = fs::read_to_string(&checkpoint).unwrap();
    assert!(all.starts_with(&cosigned) && all.len() > cosigned.len(), "{all}");
    for key in ["key.pub", "other.pub"] {
        let run = bench.run(&["verify", "--checkpoint", "web/checkpoint", "--verifier-key", key]);
        assert_eq!(run.status, 0, "{}", run.stdout);
    }
    // A signature that does not hold spoils the note for its key, and goes.
    let (rest, signed) = all.trim_end().rsplit_once(' ').unwrap();
    let mut bytes = STANDARD.decode(signed).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&checkpoint, format!("{rest} {}\n", STANDARD.encode(bytes))).unwrap();
    assert_eq!(publish("other.pub").status, 0);
    let run = bench.run(&["verify", "--checkpoint", "web/checkpoint", "--verifier-key", "other.pub"]);
    assert_eq!(run.status, 0, "{}", run.stdout);
    grow(&store, 1);
    bench.run(&["log", "sign", "--key", "key"]);
    assert_eq!(publish("key.pub").status, 0);
    assert_eq!(entries_published(&bench.folder.path().join("web")).len(), 3);
}

#[test]
fn who_publishes_at_once_publishes_one_after_the_other() {
    let bench = Bench::new();
    let store = signed(&bench, 250);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let run = bench.run(&["log", "publish", "web"]);
                    assert_eq!(run.status, 0, "{}", run.stderr);
                }
            });
        }
        for _ in 0..5 {
            grow(&store, 3);
            assert_eq!(bench.run(&["log", "sign", "--key", "key"]).status, 0);
        }
    });
    assert_eq!(bench.run(&["log", "publish", "web"]).status, 0);
    assert_eq!(entries_published(&bench.folder.path().join("web")).len(), 265);
}

#[test]
fn a_log_that_grew_and_was_signed_while_it_was_read_is_not_refused() {
    let bench = Bench::new();
    let store = signed(&bench, 3);
    let read = Log::load(&store).unwrap();
    grow(&store, 1);
    bench.run(&["log", "sign", "--key", "key"]);
    assert_eq!(read.check_own_checkpoint(&store).unwrap().unwrap().head.size, 4);
}
