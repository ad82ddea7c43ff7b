//! Capture directories with one thing wrong: the exact rules that refuse them, the exit status, and a store that is as it was. And
//! directories that look wrong and are not.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use witnessmark::canon::scores::Dtype;

use crate::support::{Bench, Run, assert_unchanged, embedded, files, listing, objects};
use crate::synth::{BEST, Synth};

const ROW_BYTES: usize = 49_152 * 2;

/// Seals a directory into a store that is not there, and into one that holds a capture: both must refuse it, by exactly these
/// rules, and be as they were.
struct Judge {
    bench: Bench,
    faults: Vec<String>,
}

impl Judge {
    fn new() -> Self {
        let bench = Bench::quick();
        let mut other = Synth::new("baseline");
        other.run["run_id"] = json!("another");
        other.write(&bench.path("another"));
        bench.seal(&bench.path("another"));
        Self { bench, faults: Vec::new() }
    }

    /// An embedded capture in a fresh folder.
    fn embedded(&self) -> PathBuf {
        self.fresh();
        self.bench.copy(&embedded("oracle-c1-rep0"), "capture")
    }

    fn fresh(&self) -> PathBuf {
        let dir = self.bench.path("capture");
        if dir.is_dir() {
            fs::remove_dir_all(&dir).unwrap();
        } else if dir.exists() {
            fs::remove_file(&dir).unwrap();
        }
        dir
    }

    fn expect(&mut self, name: &str, dir: &Path, status: i32, rules: &[&str]) {
        let nowhere = self.bench.path("nowhere");
        let before = listing(&self.bench.store());
        for store in [&nowhere, &self.bench.store()] {
            let args = [OsStr::new("seal"), OsStr::new("--store"), store.as_os_str(), dir.as_os_str()];
            let run = self.bench.run(&args);
            if (run.status, run.refused()) != (status, rules.iter().map(|&rule| rule.to_owned()).collect()) {
                let found = format!("{} {:?}\n{}", run.status, run.refused(), run.stderr);
                self.faults.push(format!("{name}: expected {status} {rules:?}, found {found}"));
            }
            if !run.stdout.is_empty() || run.stderr.is_empty() {
                self.faults.push(format!("{name}: stdout {:?}, stderr {:?}", run.stdout, run.stderr));
            }
        }
        if nowhere.exists() {
            self.faults.push(format!("{name}: a store was made"));
            fs::remove_dir_all(&nowhere).unwrap();
        }
        if listing(&self.bench.store()) != before {
            self.faults.push(format!("{name}: the store was changed"));
        }
    }

    /// Refused, with status 2.
    fn refused(&mut self, name: &str, dir: &Path, rules: &[&str]) {
        self.expect(name, dir, 2, rules);
    }

    fn verdict(self) {
        assert!(self.faults.is_empty(), "{} cases:\n{}", self.faults.len(), self.faults.join("\n"));
    }
}

fn edit_run(dir: &Path, edit: impl FnOnce(&mut Value)) {
    let path = dir.join("run.json");
    let mut run: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    edit(&mut run);
    fs::write(path, run.to_string()).unwrap();
}

fn edit_row(dir: &Path, line: usize, edit: impl FnOnce(&mut Value)) {
    let path = dir.join("rows.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut row: Value = serde_json::from_str(&lines[line]).unwrap();
    edit(&mut row);
    lines[line] = row.to_string();
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

fn replace(path: &Path, from: &str, to: &[u8]) {
    let bytes = fs::read(path).unwrap();
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
    fs::write(path, [&bytes[..at], to, &bytes[at + from.len()..]].concat()).unwrap();
}

fn resize(path: &Path, change: isize) {
    let mut bytes = fs::read(path).unwrap();
    let len = bytes.len().checked_add_signed(change).unwrap();
    bytes.resize(len, 0x3f);
    fs::write(path, bytes).unwrap();
}

#[test]
fn directories_that_are_no_capture() {
    let mut judge = Judge::new();
    let dir = judge.fresh();
    judge.expect("missing", &dir, 3, &[]);
    fs::write(&dir, "x").unwrap();
    judge.expect("a file", &dir, 3, &[]);
    fs::remove_file(&dir).unwrap();
    fs::create_dir(&dir).unwrap();
    judge.refused("empty", &dir, &["nothing-to-verify"]);
    fs::write(dir.join("notes.txt"), "x").unwrap();
    judge.refused("something else", &dir, &["nothing-to-verify"]);
    fs::write(dir.join("run.json.partial"), "{}").unwrap();
    judge.refused("only run.json.partial", &dir, &["torn-capture"]);

    type Edit = fn(&Path);
    let cases: [(&str, Edit, &[&str]); 20] = [
        ("no run.json", |d| fs::remove_file(d.join("run.json")).unwrap(), &["torn-capture"]),
        (
            "run.json still partial",
            |d| fs::rename(d.join("run.json"), d.join("run.json.partial")).unwrap(),
            &["torn-capture"],
        ),
        ("a torn last line", |d| resize(&d.join("rows.jsonl"), -40), &["torn-capture"]),
        ("no last newline", |d| resize(&d.join("rows.jsonl"), -1), &["torn-capture"]),
        ("no rows.jsonl", |d| fs::remove_file(d.join("rows.jsonl")).unwrap(), &["torn-capture"]),
        ("no scores", |d| fs::remove_file(d.join("scores.bf16")).unwrap(), &["torn-capture"]),
        ("no rows", |d| fs::write(d.join("rows.jsonl"), "").unwrap(), &["nothing-to-verify"]),
        ("0 bytes of scores", |d| fs::write(d.join("scores.bf16"), "").unwrap(), &["nothing-to-verify"]),
        ("no requests", |d| edit_run(d, |run| run["requests"] = json!([])), &["nothing-to-verify"]),
        ("scores a byte short", |d| resize(&d.join("scores.bf16"), -1), &["scores-short"]),
        ("scores a row short", |d| resize(&d.join("scores.bf16"), -98_304), &["scores-short"]),
        ("scores a byte long", |d| resize(&d.join("scores.bf16"), 1), &["scores-trailing"]),
        ("scores a row long", |d| resize(&d.join("scores.bf16"), 98_304), &["scores-trailing"]),
        ("a line short", |d| drop_line(d, 8), &["row-missing"]),
        (
            "a line long",
            |d| {
                drop_line(d, 8);
                resize(&d.join("scores.bf16"), -2 * 98_304);
                edit_run(d, |run| run["scores"]["rows"] = json!(7));
            },
            &["row-unexpected"],
        ),
        (
            "rows.jsonl a folder",
            |d| {
                fs::remove_file(d.join("rows.jsonl")).unwrap();
                fs::create_dir(d.join("rows.jsonl")).unwrap();
            },
            &["not-a-regular-file"],
        ),
        ("run.json a pipe", |d| pipe(&d.join("run.json")), &["not-a-regular-file"]),
        ("rows.jsonl a pipe", |d| pipe(&d.join("rows.jsonl")), &["not-a-regular-file"]),
        ("scores a pipe", |d| pipe(&d.join("scores.bf16")), &["not-a-regular-file"]),
        (
            "two things at once",
            |d| {
                resize(&d.join("scores.bf16"), 1);
                fs::create_dir(d.join("attachments")).unwrap();
                pipe(&d.join("attachments/p"));
            },
            &["not-a-regular-file", "scores-trailing"],
        ),
    ];
    for (name, edit, rules) in cases {
        let dir = judge.embedded();
        edit(&dir);
        judge.refused(name, &dir, rules);
    }
    judge.verdict();
}

fn drop_line(dir: &Path, line: usize) {
    let path = dir.join("rows.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let kept: String = text.lines().enumerate().filter(|(n, _)| *n != line).map(|(_, l)| format!("{l}\n")).collect();
    fs::write(path, kept).unwrap();
}

fn pipe(path: &Path) {
    drop(fs::remove_file(path));
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn totals_that_no_file_has() {
    let mut judge = Judge::new();
    let start = Instant::now();
    for vast in [1_u64 << 31, (1 << 31) - 1, (1 << 63) - 1] {
        for (rows, vocab) in [(Some(vast), None), (None, Some(vast)), (Some(vast), Some(vast))] {
            let dir = judge.embedded();
            edit_run(&dir, |run| {
                let scores = &mut run["scores"];
                rows.into_iter().for_each(|rows| scores["rows"] = json!(rows));
                vocab.into_iter().for_each(|vocab| scores["vocab_size"] = json!(vocab));
            });
            judge.refused(&format!("rows {rows:?} vocab {vocab:?}"), &dir, &["scores-short"]);
        }
    }
    for field in ["rows", "vocab_size"] {
        let dir = judge.embedded();
        edit_run(&dir, |run| run["scores"][field] = json!(1_u64 << 63));
        judge.refused(&format!("{field} 2^63"), &dir, &["schema-invalid"]);
    }
    // The file has the size, and the vocabulary is beyond the limit.
    let dir = judge.embedded();
    edit_run(&dir, |run| {
        run["scores"]["rows"] = json!(1);
        run["scores"]["vocab_size"] = json!((1 << 24) + 1);
    });
    fs::File::create(dir.join("scores.bf16")).unwrap().set_len(((1 << 24) + 1) * 2).unwrap();
    judge.refused("vocabulary of 2^24 + 1", &dir, &["limit-exceeded"]);
    assert!(start.elapsed() < Duration::from_secs(20), "nothing is read or allocated for a claim");
    judge.verdict();
}

#[test]
fn json_that_is_not() {
    let mut judge = Judge::new();
    let run = |dir: &Path| dir.join("run.json");
    let rows = |dir: &Path| dir.join("rows.jsonl");
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let role = "\"role\": \"oracle\",";
    let twice = |key: &str| format!("{role} \"{key}\": \"oracle\",").into_bytes();
    let in_run: Vec<(&str, &str, Vec<u8>)> = vec![
        ("not UTF-8", "capital", b"c\xffpital".to_vec()),
        ("overlong UTF-8", "capital", b"c\xc1\xa1pital".to_vec()),
        ("a surrogate in UTF-8", "capital", b"c\xed\xa0\x80pital".to_vec()),
        ("a byte order mark", "{", b"\xef\xbb\xbf{".to_vec()),
        ("a key twice", role, twice("role")),
        ("a key twice, escaped", role, twice("r\\u006fle")),
        ("a key twice, in another case", role, twice("Role")),
        ("result and r\\u0065sult", role, format!("{role} \"result\": 1, \"r\\u0065sult\": 1,").into_bytes()),
        ("a key twice, deep", "\"kind\": \"cuda\",", b"\"kind\": \"cuda\", \"KIND\": 1,".to_vec()),
        ("a lone high surrogate", role, format!("{role} \"note\": \"\\ud800\",").into_bytes()),
        ("a lone low surrogate", role, format!("{role} \"note\": \"\\udc00x\",").into_bytes()),
        ("NaN", role, format!("{role} \"t\": NaN,").into_bytes()),
        ("a leading zero", role, format!("{role} \"t\": 01,").into_bytes()),
        ("a comment", role, format!("{role} /* */").into_bytes()),
        ("a trailing comma", "\"role\"", b",\"role\"".to_vec()),
        ("a NUL", role, format!("{role} \"t\": \"\0\",").into_bytes()),
        ("deep nesting", role, format!("{role} \"deep\": {deep},").into_bytes()),
    ];
    for (name, from, to) in in_run {
        let dir = judge.embedded();
        replace(&run(&dir), from, &to);
        judge.refused(&format!("run.json: {name}"), &dir, &["json-not-canonical"]);
    }
    let in_rows: Vec<(&str, &str, Vec<u8>)> = vec![
        ("not UTF-8", "prefill", b"pref\xffll".to_vec()),
        ("a key twice", "\"row\": 0,", b"\"row\": 0, \"row\": 0,".to_vec()),
        ("a key twice, in another case", "\"row\": 0,", b"\"row\": 0, \"Row\": 0,".to_vec()),
        ("a key twice, escaped", "\"row\": 0,", b"\"row\": 0, \"r\\u006fw\": 0,".to_vec()),
        ("a lone surrogate", "\"row\": 0,", b"\"row\": 0, \"x\": {\"a\": \"\\ud800\"},".to_vec()),
        ("deep nesting", "\"row\": 0,", format!("\"row\": 0, \"x\": {deep},").into_bytes()),
        ("two objects in a line", "}\n{", b"} {".to_vec()),
        ("an empty line", "}\n{", b"}\n\n{".to_vec()),
        ("an object over two lines", "\"row\": 0,", b"\"row\":\n0,".to_vec()),
    ];
    for (name, from, to) in in_rows {
        let dir = judge.embedded();
        replace(&rows(&dir), from, &to);
        // Also where lines became more or fewer: one fault is named once.
        judge.refused(&format!("rows.jsonl: {name}"), &dir, &["json-not-canonical"]);
    }
    let dir = judge.embedded();
    fs::write(run(&dir), "").unwrap();
    judge.refused("run.json empty", &dir, &["json-not-canonical"]);
    // Small in bytes and large in memory.
    let dir = judge.embedded();
    let many = format!("{role} \"many\": [0{}],", ",0".repeat(8 << 20));
    replace(&run(&dir), role, many.as_bytes());
    judge.refused("run.json of many values", &dir, &["limit-exceeded"]);
    // A line of 2 MiB, and the longest that may stand.
    let pad = |dir: &Path, len: usize| {
        let line = fs::read_to_string(rows(dir)).unwrap().lines().next().unwrap().len();
        replace(&rows(dir), "}\n", format!("}}{}\n", " ".repeat(len - line)).as_bytes());
    };
    for len in [2 << 20, (1 << 20) + 1] {
        let dir = judge.embedded();
        pad(&dir, len);
        judge.refused(&format!("a line of {len} bytes"), &dir, &["limit-exceeded"]);
    }
    let dir = judge.embedded();
    pad(&dir, 1 << 20);
    judge.bench.seal(&dir);
    judge.verdict();
}

#[test]
fn values_that_no_schema_has() {
    let mut judge = Judge::new();
    let long = "n".repeat(1025);
    let in_run: Vec<(&str, Value)> = vec![
        ("/schema", json!("witnessmark.run/v2")),
        ("/schema", json!(1)),
        ("/schema", json!(null)),
        ("/run_id", json!("")),
        ("/run_id", json!(7)),
        ("/run_id", json!(long)),
        ("/run_nonce", json!(7)),
        ("/mode", json!("replay")),
        ("/mode", json!(null)),
        ("/role", json!("judge")),
        ("/extraction", json!("guess")),
        ("/sampling", json!([])),
        ("/sampling/method", json!(1)),
        ("/sampling/max_new_tokens", json!(27.0)),
        ("/sampling/max_new_tokens", json!(-1)),
        ("/sampling/max_new_tokens", json!(1_u64 << 31)),
        ("/schedule", json!("c4")),
        ("/model", json!("SmolLM2")),
        ("/model/files", json!({})),
        ("/model/files", json!("SmolLM2.gguf")),
        ("/model/files/0", json!("SmolLM2.gguf")),
        ("/model/files/0/sha256", json!("B179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53")),
        ("/model/files/0/sha256", json!("b179")),
        ("/model/files/0/sha256", json!(null)),
        ("/model/files/0/path", json!(7)),
        ("/model/files/0/bytes", json!("98362432")),
        ("/tokenizer/files", json!(7)),
        ("/rows", json!("other.jsonl")),
        ("/rows", json!(7)),
        ("/scores", json!(null)),
        ("/scores", json!("scores.bf16")),
        ("/scores/file", json!("scores.f32")),
        ("/scores/dtype", json!("int8")),
        ("/scores/dtype", json!("float32")),
        ("/scores/byte_order", json!("big")),
        ("/scores/rows", json!("9")),
        ("/scores/rows", json!(9.0)),
        ("/scores/vocab_size", json!(0)),
        ("/scores/vocab_size", json!(-1)),
        ("/scores/masked_token_ids", json!([2, 1])),
        ("/scores/masked_token_ids", json!([1, 1])),
        ("/scores/masked_token_ids", json!(7)),
        ("/scores/f32_sha256_at_capture", json!("0")),
        ("/requests", json!({})),
        ("/requests/0", json!([])),
        ("/requests/0/request_id", json!(0)),
        ("/requests/0/prompt_index", json!("0")),
        ("/requests/0/prompt_index", json!(-1)),
        ("/requests/0/sample_index", json!(0.5)),
        ("/requests/0/prompt_token_ids", json!("The capital")),
        ("/requests/0/prompt_token_ids/0", json!(-1)),
        ("/requests/0/output_token_ids/0", json!(1_u64 << 31)),
        ("/requests/0/output_token_ids/0", json!(null)),
        ("/requests/0/finish_reason", json!("eos")),
        ("/requests/0/continuation", json!("oracle")),
        ("/requests/0/continuation", json!({ "run_id": "x" })),
        ("/requests/0/continuation", json!({})),
        ("/requests/0/positions", json!([24, 22])),
        ("/requests/0/positions", json!([0, 27])),
    ];
    for (path, value) in in_run {
        let dir = judge.embedded();
        let name = format!("run.json {path} {}", value.to_string().chars().take(60).collect::<String>());
        edit_run(&dir, |run| set_at(run, path, value));
        judge.refused(&name, &dir, &["schema-invalid"]);
    }
    let hex = "a".repeat(64);
    let in_rows: Vec<(&str, Value)> = vec![
        ("logits", json!(1)),
        ("score_digest", json!(hex)),
        ("token_id", json!("7042")),
        ("token_id", json!(7042.0)),
        ("token_id", json!(-1)),
        ("token_id", json!(1_u64 << 31)),
        ("token_id", json!(null)),
        ("request_id", json!(null)),
        ("request_id", json!(long)),
        ("prompt_index", json!(null)),
        ("position", json!(null)),
        ("phase", json!("warmup")),
        ("phase", json!(null)),
        ("prefix_sha256", json!(null)),
        ("prefix_sha256", json!("A".repeat(64))),
        ("prefix_sha256", json!("abc")),
        ("captured_seq", json!(1_u64 << 63)),
        ("captured_at_ns", json!("1796035146852887425")),
        ("kv_len", json!(true)),
        ("row", json!("0")),
        ("x", json!([1])),
        ("x", json!({ "a": 0.5 })),
        ("x", json!({ "a": [1] })),
        ("x", json!({ "a": true })),
        ("x", json!({ "a": 1_u64 << 53 })),
        ("x", json!({ "a": "y".repeat(65 << 10) })),
    ];
    for (key, value) in in_rows {
        let dir = judge.embedded();
        let name = format!("rows.jsonl {key} {}", value.to_string().chars().take(60).collect::<String>());
        edit_row(&dir, 4, |row| row[key] = value);
        judge.refused(&name, &dir, &["schema-invalid"]);
    }
    let dir = judge.embedded();
    replace(&dir.join("rows.jsonl"), "{", b"[{");
    replace(&dir.join("rows.jsonl"), "}", b"}]");
    judge.refused("a row that is a list", &dir, &["schema-invalid"]);
    let dir = judge.fresh();
    let mut baseline = Synth::new("baseline");
    baseline.run["scores"] = json!({ "dtype": "bfloat16", "rows": 15, "vocab_size": 50 });
    baseline.write(&dir);
    judge.refused("scores of a baseline", &dir, &["schema-invalid"]);
    judge.verdict();
}

fn set_at(run: &mut Value, path: &str, value: Value) {
    let (parent, key) = path.rsplit_once('/').unwrap();
    let parent = run.pointer_mut(parent).unwrap();
    match key.parse::<usize>() {
        Ok(index) => parent[index] = value,
        Err(_) => parent[key] = value,
    }
}

#[test]
fn paths_that_lead_out() {
    let mut judge = Judge::new();
    let escapes = ["../x", "/etc/passwd", "C:\\x", "a\\b", "a:b", "a/../b", "a//b", "./a", "a/.", "a\u{0}b", "a\nb"];
    for path in escapes {
        for place in ["/scores/file", "/rows", "/model/files/0/path", "/tokenizer/files/0/path"] {
            let dir = judge.embedded();
            edit_run(&dir, |run| set_at(run, place, json!(path)));
            judge.refused(&format!("{place} {path:?}"), &dir, &["path-escape"]);
        }
    }
    let attach = |dir: &Path, name: &[u8]| {
        fs::create_dir_all(dir.join("attachments")).unwrap();
        fs::write(dir.join("attachments").join(OsStr::from_bytes(name)), "x").unwrap();
    };
    for name in [&b"a\\b"[..], b"C:x", b"a\nb", b"\x01", b"caf\xe9"] {
        let dir = judge.embedded();
        attach(&dir, name);
        judge.refused(&format!("attachment {name:?}"), &dir, &["path-escape"]);
    }
    type Make = fn(&Path);
    let odd: [(&str, Make); 5] = [
        ("a link", |path| symlink("/etc/passwd", path).unwrap()),
        ("a link to nothing", |path| symlink("nowhere", path).unwrap()),
        ("a link to a folder", |path| symlink("/etc", path).unwrap()),
        ("a pipe", pipe),
        ("a socket", |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap())),
    ];
    for (name, make) in odd {
        let dir = judge.embedded();
        fs::create_dir(dir.join("attachments")).unwrap();
        make(&dir.join("attachments/a"));
        judge.refused(&format!("attachment: {name}"), &dir, &["not-a-regular-file"]);
        // And the folder of the attachments itself.
        let dir = judge.embedded();
        make(&dir.join("attachments"));
        judge.refused(&format!("attachments: {name}"), &dir, &["not-a-regular-file"]);
    }
    judge.verdict();
}

#[test]
fn stores_that_cannot_be_used() {
    let bench = Bench::quick();
    let dir = embedded("oracle-c1-rep0");
    let seal = |store: &Path| -> Run {
        bench.run(&[OsStr::new("seal"), dir.as_os_str(), OsStr::new("--store"), store.as_os_str()])
    };
    let file = bench.path("file");
    fs::write(&file, "mine").unwrap();
    assert_eq!(seal(&file).status, 3);
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    assert_eq!(seal(&file.join("below")).status, 3);

    let other = bench.path("other");
    assert_eq!(seal(&other).status, 0);
    for schema in ["witnessmark.store/v2", "other"] {
        let text = format!("{{\"origin\":\"{}\",\"schema\":\"{schema}\"}}", "0".repeat(32));
        fs::write(other.join("store.json"), text).unwrap();
        let before = listing(&other);
        for args in [&["seal", dir.to_str().unwrap()][..], &["verify", "--all"], &["log", "show"]] {
            let run = bench.run(&[args, &["--store", other.to_str().unwrap()]].concat());
            assert_eq!(run.status, 3, "{args:?}: {}", run.stderr);
            assert!(run.stderr.contains(schema), "{}", run.stderr);
        }
        assert_unchanged(&other, &before);
    }

    // WITNESSMARK_STORE is the store of every command; --store goes before it.
    assert!(!bench.store().exists());
    bench.seal(&dir);
    assert!(bench.store().join("store.json").is_file());
    let named = bench.path("named");
    assert_eq!(seal(&named).status, 0);
    assert_eq!(bench.run(&["verify", "oracle-c1-rep0", "--store", "named"]).status, 0);
    let mut command = bench.command(&["log", "show"]);
    let run = Run::new(command.env_remove("WITNESSMARK_STORE").output().unwrap());
    assert_eq!(run.status, 3, "the default store is witnessmark-store, which is not there");
    assert!(run.stderr.contains("witnessmark-store"), "{}", run.stderr);
}

/// A file system in memory at a folder, if we may make one.
struct Tmpfs(PathBuf);

impl Tmpfs {
    fn new(at: PathBuf, size: &str) -> Option<Self> {
        fs::create_dir(&at).unwrap();
        let options = format!("size={size}");
        let made = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none"]).arg(&at).output();
        if made.is_ok_and(|output| output.status.success()) {
            return Some(Self(at));
        }
        eprintln!("not run: no right to mount a tmpfs");
        None
    }

    fn remount(&self, options: &str) {
        let done = Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.0).status();
        assert!(done.unwrap().success());
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(&self.0).status());
    }
}

#[test]
fn a_full_disk_and_one_that_cannot_be_written() {
    let bench = Bench::quick();
    let Some(disk) = Tmpfs::new(bench.path("disk"), "256k") else { return };
    let store = disk.0.join("store");
    let mut small = Synth::new("baseline");
    let seal = |dir: &Path| bench.run(&[OsStr::new("seal"), dir.as_os_str(), OsStr::new("--store"), store.as_os_str()]);

    // The store cannot hold it: nothing stays, neither of a store that was made for it nor of one that was there.
    let big = embedded("oracle-c1-rep0");
    let run = seal(&big);
    assert_eq!((run.status, run.stdout.as_str()), (3, ""), "{}", run.stderr);
    assert!(run.stderr.contains("space"), "{}", run.stderr);
    assert!(!store.exists());
    small.write(&bench.path("small"));
    assert_eq!(seal(&bench.path("small")).status, 0);
    let before = listing(&store);
    let run = seal(&big);
    assert_eq!((run.status, run.stdout.as_str()), (3, ""), "{}", run.stderr);
    assert_unchanged(&store, &before);
    // What fits is sealed beside what does not.
    small.run["run_id"] = json!("beside");
    small.write(&bench.path("beside"));
    let run = bench.run(&[
        OsStr::new("seal"),
        big.as_os_str(),
        bench.path("beside").as_os_str(),
        OsStr::new("--store"),
        store.as_os_str(),
    ]);
    assert_eq!((run.status, run.stdout.lines().count()), (3, 1), "{}", run.stderr);
    assert_eq!(bench.run(&["verify", "--all", "--store", store.to_str().unwrap()]).status, 0);

    let before = listing(&store);
    disk.remount("ro");
    small.run["run_id"] = json!("later");
    small.write(&bench.path("later"));
    assert_eq!(seal(&bench.path("later")).status, 3);
    assert_unchanged(&store, &before);
    for args in [&["verify", "--all"][..], &["log", "show"], &["diff", "beside", "synth-baseline"]] {
        let run = bench.run(&[args, &["--store", store.to_str().unwrap()]].concat());
        assert_eq!(run.status, 0, "{args:?} only reads: {}", run.stderr);
    }
}

#[test]
fn one_bad_directory_among_good_ones() {
    let bench = Bench::quick();
    let bad = bench.copy(&embedded("oracle-c1-rep0"), "bad");
    resize(&bad.join("scores.bf16"), 1);
    let (c1, c4) = (embedded("oracle-c1-rep0"), embedded("oracle-c4-rep0"));
    let run = bench.run(&[OsStr::new("seal"), c1.as_os_str(), bad.as_os_str(), c4.as_os_str()]);
    assert_eq!((run.status, run.refused()), (2, vec!["scores-trailing".to_owned()]));
    assert_eq!(run.stdout.lines().count(), 2);
    assert!(run.stderr.contains(bad.to_str().unwrap()), "{}", run.stderr);
    let run = bench.run(&[OsStr::new("seal"), OsStr::new("nowhere"), bad.as_os_str(), c4.as_os_str()]);
    assert_eq!((run.status, run.stdout.lines().count()), (3, 1));
    let all = bench.run(&["verify", "--all"]);
    assert_eq!((all.status, all.stdout.matches("\nVERIFIED").count()), (0, 2));
}

type Edit = fn(&mut Synth);

fn values(row: &mut Value, fields: &[(&str, Value)]) {
    fields.iter().for_each(|(field, value)| row[*field] = value.clone());
}

fn swap_scores(s: &mut Synth, a: (u32, u32), b: (u32, u32)) {
    let (a, b) = (s.at(a.0, a.1), s.at(b.0, b.1));
    s.scores.swap(a, b);
}

/// Another run's capture that a replay follows, sealed as `synth-capture-only`.
fn follow(s: &mut Synth) {
    for n in 0..3 {
        let source = json!({ "run_id": "synth-capture-only", "request_id": format!("synth-capture-only-p{n}") });
        s.run["requests"][n]["continuation"] = source;
    }
}

fn cut_output(s: &mut Synth, request: usize, len: usize) {
    s.run["requests"][request]["output_token_ids"].as_array_mut().unwrap().truncate(len);
}

/// A token without the best score, consumed unforced.
fn second_choice(s: &mut Synth) {
    let token = usize::try_from(s.row(0, 1)["token_id"].as_u64().unwrap()).unwrap();
    let other = (token + 5) % 50;
    s.scores(0, 1)[other] = 13.0;
    values(s.row(0, 1), &[("argmax", json!(other)), ("runner_up", json!(token)), ("sampled_token_id", json!(null))]);
    s.rewitness();
}

const CASES: &[(&str, &str, Edit, &[&str])] = &[
    // Which rows there are.
    ("a row missing", "capture-only", |s| s.drop_row(0, 2), &["row-missing"]),
    ("the first row missing", "capture-only", |s| s.drop_row(1, 0), &["row-missing"]),
    ("the last row missing", "capture-only", |s| s.drop_row(2, 4), &["row-missing"]),
    ("a row of a baseline missing", "baseline", |s| s.drop_row(0, 2), &["row-missing"]),
    ("a row inside a replay missing", "self-replay", |s| s.drop_row(0, 2), &["row-missing"]),
    (
        "a request without rows",
        "self-replay",
        |s| (0..5).for_each(|position| s.drop_row(1, position)),
        &["row-missing"],
    ),
    // Case 4: one row fewer than tokens, the rest shifted.
    (
        "a row missing, the others shifted",
        "capture-only",
        |s| {
            s.drop_row(0, 2);
            for position in [3, 4] {
                s.row(0, position)["position"] = json!(position - 1);
            }
        },
        &["row-missing"],
    ),
    (
        "an output shorter than asked for",
        "capture-only",
        |s| {
            cut_output(s, 2, 4);
            s.drop_row(2, 4);
        },
        &["row-missing"],
    ),
    (
        "a replay that stops early",
        "self-replay",
        |s| {
            s.drop_row(1, 3);
            s.drop_row(1, 4);
        },
        &["replay-truncated"],
    ),
    ("a common replay that stops early", "common-replay", |s| s.drop_row(0, 4), &["replay-truncated"]),
    (
        "a replay that stops early, output cut to match",
        "self-replay",
        |s| {
            cut_output(s, 1, 3);
            s.drop_row(1, 3);
            s.drop_row(1, 4);
            s.renumber();
        },
        &["continuation-mismatch"],
    ),
    (
        "the same, said to have stopped, callbacks not renumbered",
        "self-replay",
        |s| {
            cut_output(s, 1, 3);
            s.run["requests"][1]["finish_reason"] = json!("stop");
            s.drop_row(1, 3);
            s.drop_row(1, 4);
        },
        &["continuation-mismatch", "sequence-gap"],
    ),
    (
        "a row twice",
        "capture-only",
        |s| {
            let at = s.at(1, 2);
            s.rows.push(s.rows[at].clone());
            s.scores.push(s.scores[at].clone());
            s.rewitness();
        },
        &["row-duplicated"],
    ),
    ("a sequence number twice", "capture-only", |s| s.row(1, 2)["captured_seq"] = json!(1), &["row-duplicated"]),
    (
        "a callback numbered as its own forcing",
        "self-replay",
        |s| {
            let seq = s.row(0, 0)["captured_seq"].clone();
            s.row(0, 0)["forced_seq"] = seq;
        },
        &["row-duplicated"],
    ),
    (
        "a row beyond the output",
        "capture-only",
        |s| {
            let at = s.at(2, 4);
            let mut row = s.rows[at].clone();
            values(&mut row, &[("position", json!(5)), ("captured_seq", json!(16)), ("kv_len", json!(9))]);
            s.rows.push(row);
            let mut scores = s.scores[at].clone();
            scores[0] += 0.125;
            s.scores.push(scores);
            s.rewitness();
        },
        &["row-unexpected"],
    ),
    (
        "a row that a partial capture does not list",
        "capture-only",
        |s| {
            for n in 0..3 {
                s.run["requests"][n]["positions"] = json!([0, 1, 2, 3, 4]);
            }
            s.run["requests"][1]["positions"] = json!([0, 1, 3, 4]);
        },
        &["row-unexpected"],
    ),
    (
        "a listed position without a row",
        "capture-only",
        |s| {
            s.run["requests"][1]["positions"] = json!([0, 1, 2, 3, 4]);
            s.drop_row(1, 4);
        },
        &["row-missing"],
    ),
    // Whose rows they are.
    (
        "a row of an unknown request id",
        "capture-only",
        |s| s.row(0, 2)["request_id"] = json!("somebody"),
        &["request-mismatch"],
    ),
    (
        "a row with another request's id",
        "capture-only",
        |s| s.row(0, 2)["request_id"] = json!("synth-capture-only-p1"),
        &["request-mismatch"],
    ),
    (
        "a row of an unknown prompt",
        "capture-only",
        |s| s.row(0, 2)["prompt_index"] = json!(7),
        &["request-mismatch", "row-missing"],
    ),
    (
        "two requests with one id",
        "capture-only",
        |s| s.run["requests"][1]["request_id"] = json!("synth-capture-only-p0"),
        &["request-mismatch"],
    ),
    (
        "two requests with one key",
        "capture-only",
        |s| {
            let again = s.run["requests"][2].clone();
            s.run["requests"].as_array_mut().unwrap().push(again);
            s.run["requests"][3]["request_id"] = json!("again");
        },
        &["request-mismatch"],
    ),
    // Tokens.
    (
        "an output unlike the rows",
        "capture-only",
        |s| s.run["requests"][0]["output_token_ids"][4] = json!(0),
        &["output-mismatch"],
    ),
    (
        "an output unlike the rows, early",
        "baseline",
        |s| {
            s.run["requests"][0]["output_token_ids"][1] = json!(0);
            s.rewitness();
        },
        &["output-mismatch"],
    ),
    (
        "a token unlike the output",
        "capture-only",
        |s| s.row(0, 1)["token_id"] = json!(0),
        &["output-mismatch", "token-not-argmax"],
    ),
    (
        "a prompt encoded again",
        "capture-only",
        |s| s.run["requests"][1]["prompt_token_ids"][0] = json!(9),
        &["prefix-mismatch"],
    ),
    (
        "a prefix of another position",
        "capture-only",
        |s| s.row(1, 2)["prefix_sha256"] = json!("0".repeat(64)),
        &["prefix-mismatch"],
    ),
    (
        "a prompt token beyond the vocabulary",
        "capture-only",
        |s| {
            s.run["requests"][1]["prompt_token_ids"][0] = json!(50);
            s.rewitness();
        },
        &["vocab-mismatch"],
    ),
    (
        "a mask beyond the vocabulary",
        "capture-only",
        |s| s.run["scores"]["masked_token_ids"] = json!([50]),
        &["vocab-mismatch"],
    ),
    (
        "a runner-up beyond the vocabulary",
        "capture-only",
        |s| s.row(0, 0)["runner_up"] = json!(50),
        &["argmax-witness", "vocab-mismatch"],
    ),
    // Forcing.
    (
        "a token forced outside a replay",
        "capture-only",
        |s| {
            let token = s.row(0, 1)["token_id"].clone();
            s.row(0, 1)["forced_token_id"] = token;
        },
        &["continuation-mismatch"],
    ),
    (
        "a token forced in a baseline",
        "baseline",
        |s| {
            let token = s.row(0, 1)["token_id"].clone();
            s.row(0, 1)["forced_token_id"] = token;
        },
        &["continuation-mismatch"],
    ),
    (
        "a replay that forces another token than it consumes",
        "self-replay",
        |s| s.row(0, 1)["forced_token_id"] = json!(0),
        &["continuation-mismatch"],
    ),
    (
        "a replay that leaves its own course",
        "common-replay",
        |s| s.run["requests"][0]["continuation"]["token_ids"][3] = json!(0),
        &["continuation-mismatch"],
    ),
    (
        "a replay of a longer continuation",
        "common-replay",
        |s| s.run["requests"][0]["continuation"]["token_ids"].as_array_mut().unwrap().push(json!(1)),
        &["continuation-mismatch"],
    ),
    ("a replay unlike the run that it names", "common-replay", follow, &["continuation-mismatch"]),
    (
        "forced before captured, by number",
        "self-replay",
        |s| values(s.row(0, 0), &[("captured_seq", json!(2)), ("forced_seq", json!(1))]),
        &["captured-after-forcing"],
    ),
    (
        "forced before captured, by clock",
        "self-replay",
        |s| {
            s.without(&["captured_seq", "forced_seq"]);
            let before = s.row(0, 0)["captured_at_ns"].as_u64().unwrap() - 1;
            s.row(0, 0)["forced_at_ns"] = json!(before);
        },
        &["captured-after-forcing"],
    ),
    (
        "scores changed before they were captured",
        "capture-only",
        |s| {
            let before = s.row(0, 0)["captured_at_ns"].as_u64().unwrap() - 1;
            s.row(0, 0)["scores_modified_at_ns"] = json!(before);
        },
        &["captured-after-forcing"],
    ),
    (
        "a time of change where the engine extracts",
        "capture-only",
        |s| {
            s.run["extraction"] = json!("engine");
            let after = s.row(0, 0)["captured_at_ns"].as_u64().unwrap() + 1;
            s.row(0, 0)["scores_modified_at_ns"] = json!(after);
        },
        &["captured-after-forcing"],
    ),
    // Callbacks and clocks.
    ("a callback skipped", "capture-only", |s| s.row(2, 4)["captured_seq"] = json!(16), &["sequence-gap"]),
    (
        "callbacks from 2",
        "capture-only",
        |s| {
            for row in &mut s.rows {
                row["captured_seq"] = json!(row["captured_seq"].as_u64().unwrap() + 1);
            }
        },
        &["sequence-gap"],
    ),
    ("a row without its number", "capture-only", |s| s.row(2, 4)["captured_seq"] = json!(null), &["sequence-gap"]),
    ("a forcing callback skipped", "self-replay", |s| s.row(2, 4)["forced_seq"] = json!(31), &["sequence-gap"]),
    (
        "two positions at one time",
        "capture-only",
        |s| {
            let time = s.row(0, 1)["captured_at_ns"].clone();
            s.row(0, 2)["captured_at_ns"] = time;
        },
        &["time-order"],
    ),
    (
        "two positions in the wrong order",
        "baseline",
        |s| {
            let (a, b) = (s.row(0, 1)["captured_at_ns"].clone(), s.row(0, 2)["captured_at_ns"].clone());
            s.row(0, 1)["captured_at_ns"] = b;
            s.row(0, 2)["captured_at_ns"] = a;
        },
        &["time-order"],
    ),
    // Shapes.
    ("a prefill labelled decode", "capture-only", |s| s.row(0, 0)["phase"] = json!("decode"), &["phase-mismatch"]),
    ("a decode labelled prefill", "capture-only", |s| s.row(0, 1)["phase"] = json!("prefill"), &["phase-mismatch"]),
    (
        "a decode labelled recomputed",
        "capture-only",
        |s| s.row(0, 1)["phase"] = json!("recomputed"),
        &["phase-mismatch"],
    ),
    (
        "a whole prefix labelled decode",
        "capture-only",
        |s| {
            let all = s.row(0, 3)["kv_len"].clone();
            s.row(0, 3)["query_len"] = all;
        },
        &["phase-mismatch"],
    ),
    (
        "a decode of two, no speculation declared",
        "capture-only",
        |s| s.row(0, 3)["query_len"] = json!(2),
        &["phase-mismatch"],
    ),
    ("a cache that is too short", "capture-only", |s| s.row(2, 2)["kv_len"] = json!(3), &["phase-mismatch"]),
    ("padding that changes", "capture-only", |s| s.row(0, 2)["kv_len"] = json!(9), &["phase-mismatch"]),
    (
        "the wrong phase, without lengths",
        "baseline",
        |s| {
            s.without(&["query_len", "kv_len"]);
            s.row(0, 2)["phase"] = json!("prefill");
        },
        &["phase-mismatch"],
    ),
    // One run.
    ("a row of another run", "capture-only", |s| s.row(1, 1)["run_nonce"] = json!("6b6b"), &["run-mixed"]),
    ("a row of no run", "capture-only", |s| s.row(1, 1)["run_nonce"] = json!(null), &["run-mixed"]),
    ("rows of a run that run.json does not name", "capture-only", |s| s.run["run_nonce"] = json!(null), &["run-mixed"]),
    (
        "a broken chain",
        "capture-only",
        |s| {
            s.chain();
            s.row(1, 1)["chain_sha256"] = json!("0".repeat(64));
        },
        &["run-mixed"],
    ),
    (
        "a chain of other scores",
        "capture-only",
        |s| {
            s.chain();
            s.scores(1, 1)[20] += 0.125;
            s.rewitness();
        },
        &["run-mixed"],
    ),
    (
        "a chain with a link missing, in a baseline",
        "baseline",
        |s| {
            s.chain();
            s.row(1, 1)["chain_sha256"] = json!(null);
        },
        &["run-mixed"],
    ),
    ("rows numbered otherwise", "capture-only", |s| s.rows[3]["row"] = json!(4), &["rows-misnumbered"]),
    (
        "rows numbered from 1",
        "baseline",
        |s| {
            for row in &mut s.rows {
                row["row"] = json!(row["row"].as_u64().unwrap() + 1);
            }
        },
        &["rows-misnumbered"],
    ),
    // Scores.
    (
        "NaN",
        "capture-only",
        |s| {
            s.scores(0, 2)[11] = f32::NAN;
            s.rewitness();
        },
        &["score-nonfinite"],
    ),
    (
        "NaN as f32, witnesses not taken again",
        "capture-only",
        |s| {
            s.dtype = Dtype::F32;
            s.rewitness();
            s.scores(0, 2)[11] = f32::NAN;
        },
        &["score-nonfinite"],
    ),
    (
        "+Inf",
        "capture-only",
        |s| {
            s.scores(0, 2)[11] = f32::INFINITY;
            s.rewitness();
        },
        &["score-nonfinite"],
    ),
    (
        "one score and nothing else",
        "capture-only",
        |s| {
            let scores = s.scores(0, 2);
            (1..50).for_each(|token| scores[token] = f32::NEG_INFINITY);
            s.rewitness();
        },
        &["score-nonfinite"],
    ),
    (
        "a masked token with a score in one row",
        "capture-only",
        |s| {
            mask(s);
            s.scores(0, 2)[47] = 1.0;
            s.rewitness();
        },
        &["score-nonfinite"],
    ),
    (
        "one request's scores in another",
        "capture-only",
        |s| {
            for position in 0..5 {
                let scores = s.scores(0, position).clone();
                *s.scores(1, position) = scores;
            }
        },
        &["row-duplicated-content"],
    ),
    (
        "one row's scores in another, digests taken again",
        "capture-only",
        |s| {
            let scores = s.scores(0, 1).clone();
            *s.scores(1, 2) = scores;
            s.rewitness();
        },
        &["row-duplicated-content"],
    ),
    ("scores swapped within a request", "capture-only", |s| swap_scores(s, (0, 1), (0, 2)), &["row-swapped"]),
    ("scores swapped across requests", "self-replay", |s| swap_scores(s, (0, 1), (2, 3)), &["row-swapped"]),
    (
        "scores swapped, only SHA-256 there",
        "capture-only",
        |s| {
            s.without(&["scores_blake3"]);
            swap_scores(s, (0, 1), (0, 2));
        },
        &["row-swapped"],
    ),
    (
        "scores swapped, only BLAKE3 there",
        "capture-only",
        |s| {
            s.without(&["scores_sha256"]);
            swap_scores(s, (0, 1), (0, 2));
        },
        &["row-swapped"],
    ),
    (
        "scores swapped, no digests there",
        "capture-only",
        |s| {
            s.without(&["scores_sha256", "scores_blake3"]);
            swap_scores(s, (0, 1), (0, 2));
        },
        &["argmax-witness"],
    ),
    (
        "scores swapped, only a digest of all there",
        "capture-only",
        |s| {
            s.without(&["scores_sha256", "scores_blake3", "argmax", "runner_up", "sampled_token_id"]);
            s.run["sampling"]["method"] = json!("multinomial");
            s.digest_all();
            swap_scores(s, (0, 1), (0, 2));
        },
        &["score-witness"],
    ),
    (
        "a request's scores shifted by one position, no digests there",
        "capture-only",
        |s| {
            s.without(&["scores_sha256", "scores_blake3"]);
            (0..4).for_each(|position| swap_scores(s, (0, position), (0, position + 1)));
        },
        &["argmax-witness"],
    ),
    ("a score changed by a bit", "capture-only", |s| flip(s), &["score-witness"]),
    (
        "a score changed by a bit, only SHA-256 there",
        "capture-only",
        |s| {
            s.without(&["scores_blake3"]);
            flip(s);
        },
        &["score-witness"],
    ),
    (
        "a score changed by a bit, only BLAKE3 there",
        "capture-only",
        |s| {
            s.without(&["scores_sha256"]);
            flip(s);
        },
        &["score-witness"],
    ),
    ("another argmax", "capture-only", |s| s.row(0, 1)["argmax"] = json!(0), &["argmax-witness"]),
    (
        "a runner-up that is the argmax",
        "capture-only",
        |s| {
            let argmax = s.row(0, 1)["argmax"].clone();
            s.row(0, 1)["runner_up"] = argmax;
        },
        &["argmax-witness"],
    ),
    ("another runner-up", "capture-only", |s| s.row(0, 1)["runner_up"] = json!(0), &["argmax-witness"]),
    (
        "scores in rank order",
        "capture-only",
        |s| {
            for at in 0..s.scores.len() {
                s.scores[at].sort_by(|a, b| b.total_cmp(a));
            }
            s.rewitness();
        },
        &["argmax-witness"],
    ),
    ("a greedy token without the best score", "capture-only", second_choice, &["token-not-argmax"]),
    (
        "an own choice without the best score, under replay",
        "common-replay",
        |s| {
            let runner_up = s.row(1, 1)["runner_up"].clone();
            s.row(1, 1)["sampled_token_id"] = runner_up;
        },
        &["token-not-argmax"],
    ),
    // Several at once: all are named.
    (
        "three faults in three requests",
        "capture-only",
        |s| {
            s.row(0, 1)["argmax"] = json!(0);
            s.row(1, 0)["phase"] = json!("decode");
            s.row(2, 2)["run_nonce"] = json!("x");
        },
        &["argmax-witness", "phase-mismatch", "run-mixed"],
    ),
];

fn flip(s: &mut Synth) {
    let score = &mut s.scores(0, 1)[20];
    *score = f32::from_bits(score.to_bits() ^ 1 << 16);
}

fn mask(s: &mut Synth) {
    s.run["scores"]["masked_token_ids"] = json!([46, 47]);
    for row in &mut s.scores {
        row[46] = f32::NEG_INFINITY;
        row[47] = f32::NEG_INFINITY;
    }
    s.rewitness();
}

#[test]
fn every_rule_of_rows() {
    let mut judge = Judge::new();
    let oracle = judge.bench.path("oracle");
    Synth::new("capture-only").write(&oracle);
    judge.bench.seal(&oracle);
    for &(name, mode, edit, rules) in CASES {
        let mut synth = Synth::new(mode);
        edit(&mut synth);
        // A name of its own, so that nothing but the rule refuses it. Where another run is needed, it is in the store.
        synth.run["run_id"] = json!("edited");
        let dir = judge.fresh();
        synth.write(&dir);
        if name.contains("the run that it names") {
            let run = judge.bench.try_seal(&dir);
            assert_eq!((run.status, run.refused()), (2, vec![rules[0].to_owned()]), "{name}: {}", run.stderr);
        } else {
            judge.refused(name, &dir, rules);
        }
    }
    judge.verdict();
}

/// A replay that says it follows request n of `source` with its request n.
fn replay(mode: &str, run_id: &str, source: &str) -> Synth {
    let source_mode = match source {
        "oracle" => "capture-only",
        "good" => "self-replay",
        "bad" => "common-replay",
        _ => mode,
    };
    let mut replay = Synth::new(mode);
    for n in 0..3 {
        let request = format!("synth-{source_mode}-p{n}");
        replay.run["requests"][n]["continuation"] = json!({ "run_id": source, "request_id": request });
    }
    replay.of_run(run_id, run_id);
    replay.rewitness();
    replay
}

#[test]
fn a_replay_is_held_against_its_source_in_whatever_order_they_are_named() {
    let mut oracle = Synth::new("capture-only");
    oracle.of_run("oracle", "5a5a");
    // `bad` departs from the oracle. Of a run that is refused nobody can say what follows it.
    let captures = [
        ("oracle", oracle, None, false),
        ("good", replay("self-replay", "good", "oracle"), None, false),
        ("bad", replay("common-replay", "bad", "oracle"), Some("continuation-mismatch"), false),
        ("like-bad", replay("common-replay", "like-bad", "bad"), None, true),
        ("unlike-good", replay("common-replay", "unlike-good", "good"), Some("continuation-mismatch"), false),
        ("itself", replay("common-replay", "itself", "itself"), None, true),
    ];
    let source = Bench::quick();
    for (name, synth, ..) in &captures {
        synth.write(&source.path(name));
    }
    let orders = [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [2, 0, 3, 4, 1, 5], [3, 2, 1, 0, 5, 4], [4, 3, 2, 0, 5, 1]];
    let alone = Bench::quick();
    for (name, _, refused, _) in &captures {
        if refused.is_none() {
            alone.seal(&source.path(name));
        }
    }
    let stored = objects(&alone.store()).len();
    for order in orders {
        let bench = Bench::quick();
        let dirs = order.map(|place: usize| source.path(captures[place].0));
        let mut command = vec![PathBuf::from("seal"), PathBuf::from("--json")];
        command.extend(dirs);
        let sealed = bench.run(&command);
        assert_eq!((sealed.status, sealed.json().len()), (2, order.len()), "{}", sealed.stderr);
        // What is refused leaves nothing.
        assert_eq!(objects(&bench.store()).len(), stored, "{order:?}");
        for (line, place) in sealed.json().iter().zip(order) {
            let (name, _, refused, unseen) = &captures[place];
            let rule = line["refusals"][0]["rule"].as_str();
            assert_eq!(rule, *refused, "{name} in {order:?}: {line}");
            let notes = line["notes"].to_string();
            assert_eq!(
                refused.is_none() && notes.contains("continuation: the tokens"),
                *unseen,
                "{name} in {order:?}: {notes}"
            );
        }
        let verified = bench.run(&["verify", "--all"]);
        assert_eq!((verified.status, verified.stdout.matches("\nVERIFIED").count()), (0, 4), "{}", verified.stdout);
        assert_eq!(verified.stdout.matches("continuation: the tokens").count(), 2, "{}", verified.stdout);
    }
}

#[test]
fn a_replay_is_held_against_the_run_of_that_run_id_whatever_it_was_sealed_as() {
    let bench = Bench::quick();
    let seal = |synth: &Synth, dir: &str, name: &str| {
        synth.write(&bench.path(dir));
        bench.run(&[Path::new("seal"), &bench.path(dir), Path::new("--as"), Path::new(name)])
    };
    let unseen = |name: &str| {
        let run = bench.run(&["verify", name]);
        assert_eq!(run.status, 0, "{}", run.stdout);
        run.stdout.contains("continuation: the tokens")
    };
    let mut oracle = Synth::new("capture-only");
    oracle.of_run("oracle", "5a5a");
    assert_eq!(seal(&oracle, "oracle", "kept").status, 0);

    // What only a ref calls so is another run: these are not its tokens.
    let mut stranger = replay("common-replay", "stranger", "oracle");
    for request in stranger.run["requests"].as_array_mut().unwrap() {
        request["continuation"]["run_id"] = json!("kept");
    }
    assert_eq!(seal(&stranger, "stranger", "stranger").status, 0);
    assert!(unseen("stranger"));

    let run = seal(&replay("common-replay", "bad", "oracle"), "bad", "bad");
    assert_eq!((run.status, run.refused()), (2, vec!["continuation-mismatch".to_owned()]), "{}", run.stderr);
    assert_eq!(seal(&replay("self-replay", "good", "oracle"), "good", "good").status, 0);
    assert!(!unseen("good"));

    // Two runs of one id: it follows one of them, in the store, in a bundle, and in a store that the bundle was put into.
    let mut second = Synth::new("common-replay");
    for n in 0..3 {
        let id = json!(format!("synth-capture-only-p{n}"));
        for row in second.rows.iter_mut().filter(|row| row["prompt_index"] == n) {
            row["request_id"] = id.clone();
        }
        second.run["requests"][n]["request_id"] = id;
    }
    second.of_run("oracle", "6b6b");
    second.rewitness();
    let run = seal(&second, "second", "oracle");
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert_eq!(seal(&replay("common-replay", "bad", "oracle"), "bad", "bad").status, 0);
    assert!(!unseen("bad") && !unseen("good"));
    assert_eq!(bench.run(&["bundle", "kept", "oracle", "bad", "good", "-o", "b.wmb"]).status, 0);
    let other = Bench::quick();
    fs::copy(bench.path("b.wmb"), other.path("b.wmb")).unwrap();
    for args in [&["verify", "b.wmb"][..], &["unbundle", "b.wmb"], &["verify", "--all"]] {
        let run = other.run(args);
        assert_eq!(run.status, 0, "{args:?}: {}", run.stdout);
        assert!(!run.stdout.contains("continuation: the tokens"), "{}", run.stdout);
    }
}

#[test]
fn a_run_that_is_refused_here_may_be_in_the_store() {
    let source = Bench::quick();
    let mut oracle = Synth::new("capture-only");
    oracle.of_run("oracle", "5a5a");
    // Only a replay follows: what else names a continuation is not asked.
    let mut named = Synth::new("capture-only");
    named.of_run("named", "named");
    for n in 0..3 {
        named.run["requests"][n]["continuation"] =
            json!({ "run_id": "bad", "request_id": format!("synth-common-replay-p{n}") });
    }
    named.rewitness();
    for (name, synth) in [
        ("oracle", oracle),
        ("bad", replay("common-replay", "bad", "oracle")),
        ("follower", replay("self-replay", "follower", "bad")),
        ("named", named),
    ] {
        synth.write(&source.path(name));
    }
    for order in [
        ["oracle", "bad", "follower", "named"],
        ["named", "follower", "oracle", "bad"],
        ["bad", "named", "follower", "oracle"],
    ] {
        let bench = Bench::quick();
        // Its course was nowhere then.
        bench.seal(&source.path("bad"));
        let mut command = vec![PathBuf::from("seal"), PathBuf::from("--json")];
        command.extend(order.map(|name| source.path(name)));
        let sealed = bench.run(&command);
        let refused: Vec<&str> = sealed
            .json()
            .iter()
            .zip(order)
            .filter(|(line, _)| line["status"] == "refused")
            .map(|(_, name)| name)
            .collect();
        let expected: Vec<&str> = order.into_iter().filter(|name| ["bad", "follower"].contains(name)).collect();
        assert_eq!(refused, expected, "{}", sealed.stdout);
    }
}

#[test]
fn a_replay_of_what_is_not_there_and_of_a_run_that_never_ended() {
    let bench = Bench::quick();
    let dir = bench.path("broken-off");
    let mut oracle = Synth::new("capture-only");
    oracle.of_run("oracle", "5a5a");
    for n in 0..3 {
        oracle.run["requests"][n]["output_token_ids"] = json!([]);
    }
    oracle.write(&dir);
    fs::rename(dir.join("run.json"), dir.join("run.json.partial")).unwrap();
    let follower = bench.path("follower");
    replay("self-replay", "follower", "oracle").write(&follower);
    // What it would have generated is not known, in one command or in two.
    let sealed = bench.run(&[Path::new("seal"), Path::new("--incomplete"), &dir, &follower]);
    assert_eq!(sealed.status, 0, "{}", sealed.stderr);
    assert_eq!(bench.run(&["verify", "--all"]).status, 0);
    let other = bench.path("other");
    replay("self-replay", "other", "oracle").write(&other);
    assert_eq!(bench.try_seal(&other).status, 0);

    // A run that is there and has no such request.
    let bench = Bench::quick();
    let dir = bench.path("oracle");
    Synth::new("capture-only").write(&dir);
    bench.seal(&dir);
    let mut lost = Synth::new("self-replay");
    follow(&mut lost);
    lost.run["requests"][1]["continuation"]["request_id"] = json!("another");
    lost.run["run_id"] = json!("lost");
    lost.write(&bench.path("lost"));
    let run = bench.try_seal(&bench.path("lost"));
    // What was cut from a run has not all of its requests: not seen, and not refused.
    assert_eq!(run.status, 0, "{}", run.stderr);
    let verified = bench.run(&["verify", "lost"]);
    assert_eq!(verified.status, 0, "{}", verified.stdout);
    assert!(verified.stdout.contains("continuation: the tokens of run synth-capture-only"), "{}", verified.stdout);
}

#[test]
fn no_case_refuses_for_something_else() {
    // The captures that cases start from are good ones.
    let bench = Bench::quick();
    for mode in ["baseline", "capture-only", "self-replay", "common-replay"] {
        for (dtype, chained) in [(Dtype::Bf16, false), (Dtype::F16, true), (Dtype::F32, true)] {
            let mut synth = Synth::new(mode);
            synth.dtype = dtype;
            synth.rewitness();
            if chained {
                synth.chain();
            }
            if mode != "baseline" {
                synth.digest_all();
            }
            synth.run["run_id"] = json!(format!("{mode}-{}", dtype.name()));
            let dir = bench.path(&format!("{mode}-{}", dtype.name()));
            synth.write(&dir);
            bench.seal(&dir);
        }
    }
    let all = bench.run(&["verify", "--all"]);
    assert_eq!((all.status, all.stdout.matches("\nVERIFIED").count()), (0, 12), "{}", all.stdout);
    assert!(!all.stdout.contains("not checkable"), "every witness is there: {}", all.stdout);
}

/// Edits that break no rule, with a note that must be made of them, or that must not be a note.
const GOOD: &[(&str, &str, Edit, &str)] = &[
    (
        "a tie in which the engine took the other maximum",
        "capture-only",
        |s| {
            let token = usize::try_from(s.row(0, 1)["token_id"].as_u64().unwrap()).unwrap();
            s.scores(0, 1)[token - 1] = BEST;
            let at = token - 1;
            s.row(0, 1)["runner_up"] = json!(at);
            s.rewitness();
        },
        "1 row has its highest score tied; the engine took another than the lowest id in 1",
    ),
    (
        "a tie of +0 and -0",
        "capture-only",
        |s| {
            let token = usize::try_from(s.row(0, 1)["token_id"].as_u64().unwrap()).unwrap();
            let scores = s.scores(0, 1);
            scores.iter_mut().for_each(|score| *score = -1.0);
            scores[token] = -0.0;
            scores[token - 1] = 0.0;
            let at = token - 1;
            values(s.row(0, 1), &[("argmax", json!(token)), ("runner_up", json!(at))]);
            s.rewitness();
        },
        "1 row has its highest score tied",
    ),
    (
        "a recorded argmax that is the other maximum",
        "capture-only",
        |s| {
            let token = usize::try_from(s.row(0, 1)["token_id"].as_u64().unwrap()).unwrap();
            s.scores(0, 1)[token + 2] = BEST;
            values(s.row(0, 1), &[("argmax", json!(token + 2)), ("runner_up", json!(token))]);
            s.rewitness();
        },
        "tied",
    ),
    ("masked tokens", "capture-only", mask, ""),
    (
        "equal clocks and no numbers",
        "self-replay",
        |s| {
            s.without(&["captured_seq", "forced_seq"]);
            for row in &mut s.rows {
                row["forced_at_ns"] = row["captured_at_ns"].clone();
            }
        },
        "captured-after-forcing: 15 rows with equal clocks",
    ),
    (
        "scores changed after they were captured",
        "capture-only",
        |s| {
            for row in &mut s.rows {
                row["scores_modified_at_ns"] = json!(row["captured_at_ns"].as_u64().unwrap() + 1);
            }
        },
        "",
    ),
    (
        "callbacks from 0",
        "capture-only",
        |s| {
            for row in &mut s.rows {
                row["captured_seq"] = json!(row["captured_seq"].as_u64().unwrap() - 1);
            }
        },
        "",
    ),
    (
        "a whole prefix computed again, and said so",
        "capture-only",
        |s| {
            let all = s.row(0, 3)["kv_len"].clone();
            values(s.row(0, 3), &[("query_len", all), ("phase", json!("recomputed"))]);
        },
        "1 recomputed rows",
    ),
    (
        "speculation, declared",
        "capture-only",
        |s| {
            s.run["schedule"]["speculation"] = json!({ "method": "ngram" });
            s.row(0, 3)["query_len"] = json!(2);
        },
        "",
    ),
    ("a chunked prefill", "capture-only", |s| s.row(2, 0)["query_len"] = json!(1), ""),
    (
        "a stop before all tokens",
        "capture-only",
        |s| {
            cut_output(s, 2, 4);
            s.run["requests"][2]["finish_reason"] = json!("stop");
            s.drop_row(2, 4);
        },
        "",
    ),
    (
        "a request that gave nothing",
        "capture-only",
        |s| {
            cut_output(s, 2, 0);
            s.run["requests"][2]["finish_reason"] = json!("abort");
            (0..5).for_each(|position| s.drop_row(2, position));
            s.renumber();
        },
        "",
    ),
    (
        "a partial capture",
        "capture-only",
        |s| {
            s.run["requests"][1]["positions"] = json!([0, 4]);
            (1..4).for_each(|position| s.drop_row(1, position));
            s.digest_all();
        },
        "sequence-gap: a partial capture has gaps by design",
    ),
    (
        "no witness that may be left out",
        "capture-only",
        |s| {
            let kept = ["request_id", "prompt_index", "position", "phase", "token_id", "prefix_sha256"];
            let fields: Vec<String> = s.rows[0].as_object().unwrap().keys().cloned().collect();
            let gone: Vec<&str> = fields.iter().map(String::as_str).filter(|field| !kept.contains(field)).collect();
            s.without(&gone);
            s.run.as_object_mut().unwrap().remove("run_nonce");
            s.run.as_object_mut().unwrap().remove("sampling");
        },
        "rows carry neither scores_sha256 nor scores_blake3",
    ),
    (
        "samples of one prompt",
        "capture-only",
        |s| {
            for n in 0..3 {
                values(&mut s.run["requests"][n], &[("prompt_index", json!(0)), ("sample_index", json!(n))]);
            }
            let prompt = s.run["requests"][2]["prompt_token_ids"].clone();
            (0..3).for_each(|n| s.run["requests"][n]["prompt_token_ids"] = prompt.clone());
            for row in &mut s.rows {
                row["sample_index"] = row["prompt_index"].clone();
                row["prompt_index"] = json!(0);
            }
            s.rewitness();
            // The prefixes of first tokens are one prefix: equal scores there would be right, too.
            let first = s.scores[0].clone();
            s.scores[1].clone_from(&first);
            for field in ["argmax", "runner_up", "sampled_token_id", "token_id"] {
                s.rows[1][field] = s.rows[0][field].clone();
            }
            s.run["requests"][1]["output_token_ids"][0] = s.rows[0]["token_id"].clone();
            s.rewitness();
        },
        "",
    ),
    (
        "x",
        "capture-only",
        |s| {
            s.row(1, 1)["x"] = json!({ "wave": 3, "note": "é\u{1f600}\n", "n": -9_007_199_254_740_991_i64 });
        },
        "",
    ),
    ("a replay whose course is in the store", "self-replay", follow, ""),
    (
        "a replay whose course is nowhere",
        "self-replay",
        |s| {
            follow(s);
            for n in 0..3 {
                s.run["requests"][n]["continuation"]["run_id"] = json!("elsewhere");
            }
        },
        "continuation: the tokens of run elsewhere",
    ),
    (
        "sampling that is not greedy",
        "capture-only",
        |s| {
            second_choice(s);
            s.run["sampling"]["method"] = json!("multinomial");
        },
        "token-not-argmax: sampling.method is not \"greedy\"",
    ),
    ("engine-side extraction", "capture-only", |s| s.run["extraction"] = json!("engine"), ""),
    (
        "a vocabulary with subnormals",
        "capture-only",
        |s| {
            s.scores(0, 1)[20] = f32::from_bits(0x0001_0000);
            s.scores(0, 1)[21] = -0.0;
            s.rewitness();
        },
        "",
    ),
];

#[test]
fn what_looks_wrong_and_is_not() {
    let mut faults = Vec::new();
    for &(name, mode, edit, note) in GOOD {
        let bench = Bench::quick();
        Synth::new("capture-only").write(&bench.path("oracle"));
        bench.seal(&bench.path("oracle"));
        let mut synth = Synth::new(mode);
        edit(&mut synth);
        synth.run["run_id"] = json!("edited");
        let dir = bench.path("edited");
        synth.write(&dir);
        let sealed = bench.try_seal(&dir);
        let verified = bench.run(&["verify", "edited"]);
        if (sealed.status, verified.status) != (0, 0) || !verified.stdout.contains("\nVERIFIED") {
            faults.push(format!("{name}: {}\n{}", sealed.stderr, verified.stdout));
        } else if !verified.stdout.contains(note) {
            faults.push(format!("{name}: no note {note:?}\n{}", verified.stdout));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn run_json_is_sealed_as_it_is_and_shown_exactly() {
    let bench = Bench::quick();
    let dir = bench.copy(&embedded("oracle-c1-rep0"), "capture");
    let manifest = r#"{\"capture\":{},\"schema\":\"witnessmark.manifest/v1\"}"#;
    let extra = concat!(
        "\"role\" :\t\"or\\u0061cle\" ,\r\n \"seed\": 18446744073709551615, \"big\": 1e400, \"zero\": -0.0, ",
        "\"t\": 0.10, \"unknown\": {\"é\": [null, true, \"\\ud83d\\ude00\"]},"
    );
    replace(&dir.join("run.json"), "\"role\": \"oracle\",", extra.as_bytes());
    replace(&dir.join("run.json"), "The capital of France is", manifest.as_bytes());
    let bytes = fs::read(dir.join("run.json")).unwrap();
    bench.seal(&dir);
    assert_eq!(bench.run(&["verify", "oracle-c1-rep0"]).status, 0);
    let shown = bench.run(&["show", "oracle-c1-rep0", "--json"]);
    for exact in ["18446744073709551615", "1e400", "-0.0", "0.10", "\"role\":\"oracle\"", "😀"] {
        assert!(shown.stdout.contains(exact), "{exact}: {}", shown.stdout);
    }
    assert!(shown.stdout.contains(&format!("\"prompt\":\"{manifest}\"")), "{}", shown.stdout);
    let kept = files(&bench.store().join("objects")).into_iter().filter(|path| fs::read(path).unwrap() == bytes);
    assert_eq!(kept.count(), 1, "the bytes themselves are an object");
}

#[test]
fn attachments_are_kept_apart_byte_for_byte() {
    let bench = Bench::quick();
    let dir = bench.copy(&embedded("oracle-c1-rep0"), "capture");
    let plain = bench.seal(&dir);
    let names = ["A", "a", "e\u{301}", "logs/engine 1.txt", "logs/x/empty", "\u{e9}"];
    for name in names {
        let path = dir.join("attachments").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, if name.ends_with("empty") { "" } else { name }).unwrap();
    }
    fs::create_dir(dir.join("attachments/empty folder")).unwrap();
    let run = bench.run(&["seal", "--as", "attached", dir.to_str().unwrap()]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert_ne!(run.stdout.trim(), plain, "attachments are part of the capture");
    let shown = bench.run(&["show", "attached", "--json"]).json();
    let listed: Vec<_> = shown[0]["manifest"]["capture"]["attachments"].as_array().unwrap().clone();
    let paths: Vec<_> = listed.iter().map(|attachment| attachment["path"].as_str().unwrap()).collect();
    assert_eq!(paths, names, "sorted by their bytes");
    assert_eq!(bench.run(&["verify", "--all"]).status, 0);
    let diff = bench.run(&["diff", &plain, "attached", "--json"]);
    assert_eq!((diff.status, diff.json()[0]["attachments"].as_array().unwrap().len()), (1, 6));
    // Each is an object that is looked at.
    for attachment in &listed {
        let id = attachment["blake3"].as_str().unwrap();
        let path = bench.store().join("objects").join(&id[..2]).join(&id[2..]);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, [&bytes[..], b"!"].concat()).unwrap();
        let run = bench.run(&["verify", "attached"]);
        assert_eq!((run.status, run.refused()), (2, vec!["object-digest".to_owned()]));
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn the_embedded_captures_are_left_padded() {
    // kv_len exceeds prompt and position in the c4 capture, and it is accepted for what it is.
    let bench = Bench::quick();
    let dir = bench.copy(&embedded("oracle-c4-rep0"), "capture");
    let first: Value =
        serde_json::from_str(fs::read_to_string(dir.join("rows.jsonl")).unwrap().lines().next().unwrap()).unwrap();
    assert_eq!((&first["kv_len"], &first["position"]), (&json!(7), &json!(0)), "a prompt of five tokens");
    bench.seal(&dir);
    assert_eq!(fs::metadata(dir.join("scores.bf16")).unwrap().len(), u64::try_from(9 * ROW_BYTES).unwrap());
}

/// A mode that is none says nothing of the scores.
#[test]
fn an_unknown_mode_is_one_fault() {
    let bench = Bench::quick();
    for mode in [json!("capture_only"), json!("tap"), Value::Null] {
        for (of, faults) in [("capture-only", 1), ("baseline", 1)] {
            let mut synth = Synth::new(of);
            synth.run["mode"] = mode.clone();
            synth.write(&bench.path("capture"));
            let run = bench.try_seal(&bench.path("capture"));
            let named = run.stderr.matches("REFUSED: ").count() + run.stdout.matches("REFUSED: ").count();
            assert_eq!(
                (run.status, run.refused(), named),
                (2, vec!["schema-invalid".to_owned()], faults),
                "{}",
                run.stderr
            );
            fs::remove_dir_all(bench.path("capture")).unwrap();
        }
    }
}
