//! What tests share: capture directories to start from, a store in a temporary folder, and the command.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

use serde_json::Value;
use tempfile::TempDir;
use witnessmark::catalog::{Catalog, Resolved};
use witnessmark::meter::Meter;
use witnessmark::store::Store;
use witnessmark::verify::{Depth, Options, verify};

/// The repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// An embedded capture, cut from a real one: `oracle-c1-rep0` or `oracle-c4-rep0`.
pub fn embedded(name: &str) -> PathBuf {
    root().join("corpora/smollm2-h200-cut").join(name)
}

/// The folder of the whole real captures, too large for the repository: WITNESSMARK_CAPTURES names it. A test that needs them and has none says on
/// the terminal, past the harness that keeps what a passing test prints, that it was skipped.
pub fn shared_captures() -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "where the captures are is said from outside")]
    let named = std::env::var_os("WITNESSMARK_CAPTURES").filter(|path| !path.is_empty());
    let folder = named.map(PathBuf::from).unwrap_or_else(|| root().join("../shared/captures")).join("smollm2-h200");
    if folder.is_dir() {
        return Some(folder);
    }
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("SKIPPED: {test}: no captures at {} (WITNESSMARK_CAPTURES)\n", folder.display());
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
    None
}

/// A place to work in, with a store.
pub struct Bench {
    pub folder: TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    /// In memory, where the machine has a place for that: for tests that write much and need no disk.
    pub fn quick() -> Self {
        let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new());
        Self { folder: folder.unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn store(&self) -> PathBuf {
        self.path("store")
    }

    /// `witnessmark` on this bench's store, not started yet.
    pub fn command<A: AsRef<std::ffi::OsStr>>(&self, args: &[A]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_witnessmark"));
        command.current_dir(self.folder.path()).env("WITNESSMARK_STORE", self.store()).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs `witnessmark` on this bench's store.
    pub fn run<A: AsRef<std::ffi::OsStr>>(&self, args: &[A]) -> Run {
        Run::new(self.command(args).output().unwrap())
    }

    /// Runs `witnessmark seal`.
    pub fn try_seal(&self, dir: &Path) -> Run {
        self.run(&["seal".as_ref(), dir.as_os_str()])
    }

    /// Seals a directory, which must succeed; gives the capture id.
    pub fn seal(&self, dir: &Path) -> String {
        let run = self.try_seal(dir);
        assert_eq!(run.status, 0, "{}", run.stderr);
        run.stdout.trim().to_owned()
    }

    /// A copy of a capture directory that may be changed.
    pub fn copy(&self, from: &Path, name: &str) -> PathBuf {
        let to = self.path(name);
        copy_folder(from, &to);
        to
    }
}

/// What a command did.
#[derive(Debug)]
pub struct Run {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    pub fn new(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The ids of the rules that were refused, sorted, each once, from either stream.
    pub fn refused(&self) -> Vec<String> {
        let text = format!("{}\n{}", self.stdout, self.stderr);
        let refusals = text.lines().filter_map(|line| line.strip_prefix("REFUSED: "));
        let mut rules: Vec<String> = refusals.filter_map(|line| line.split(':').next()).map(str::to_owned).collect();
        rules.sort();
        rules.dedup();
        rules
    }

    /// stdout as JSON lines.
    pub fn json(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
    }
}

/// Copies a folder and makes the copy writable.
pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::write(&target, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

/// All files below a folder, sorted.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let walk = walkdir::WalkDir::new(folder).sort_by_file_name();
    walk.into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| entry.into_path())
        .collect()
}

/// All files below a folder with their size and time of change; nothing where there is no folder.
pub fn listing(folder: &Path) -> BTreeMap<PathBuf, (u64, SystemTime)> {
    let paths = if folder.exists() { files(folder) } else { Vec::new() };
    let describe = |path: PathBuf| {
        let metadata = fs::metadata(&path).unwrap();
        (path, (metadata.len(), metadata.modified().unwrap()))
    };
    paths.into_iter().map(describe).collect()
}

/// Asserts that nothing below a folder was added, removed, or written to.
pub fn assert_unchanged(folder: &Path, before: &BTreeMap<PathBuf, (u64, SystemTime)>) {
    let after = listing(folder);
    let changed: Vec<_> = after.iter().filter(|(path, state)| before.get(*path) != Some(state)).collect();
    let gone: Vec<_> = before.keys().filter(|path| !after.contains_key(*path)).collect();
    assert!(changed.is_empty() && gone.is_empty(), "new or changed: {changed:?}; gone: {gone:?}");
}

/// The objects of a store, sorted.
pub fn objects(store: &Path) -> Vec<PathBuf> {
    files(&store.join("objects"))
}

/// Rule ids as a set.
pub fn set<'r>(rules: &[&'r str]) -> BTreeSet<&'r str> {
    rules.iter().copied().collect()
}

/// Verifies all captures of a store in this process, with its log and refs: the ids of the rules that refuse. `Err` where
/// nothing could be decided.
pub fn refusals_of(store: &Path, depth: Depth) -> Result<BTreeSet<&'static str>, String> {
    let store = Store::open(store).map_err(|error| error.to_string())?;
    let catalog = Catalog::load(&store).map_err(|error| error.to_string())?;
    let mut refusals = [catalog.log.refusals.clone(), catalog.refusals.clone()].concat();
    let mut rules = BTreeSet::new();
    if catalog.captures().is_empty() {
        rules.insert("nothing-to-verify");
    }
    for capture in catalog.captures() {
        let resolved = Resolved { capture, manifests: catalog.manifests_of(capture) };
        let options = Options { depth, model: None, spec: None };
        let outcome = verify(&catalog, &resolved, options, &Meter::default()).map_err(|error| error.to_string())?;
        assert_eq!(outcome.verified.is_some(), outcome.findings.refusals.is_empty());
        refusals.extend(outcome.findings.refusals);
    }
    rules.extend(refusals.iter().map(|refusal| refusal.rule.id()));
    Ok(rules)
}
