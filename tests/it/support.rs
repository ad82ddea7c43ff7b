//! What tests share: capture directories to start from, a store in a temporary folder, and the command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// The repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// An embedded capture, cut from a real one: `oracle-c1-rep0` or `oracle-c4-rep0`.
pub fn embedded(name: &str) -> PathBuf {
    root().join("corpora/smollm2-h200-cut").join(name)
}

/// The whole real captures, where they are beside the repository; says so on stderr where they are not.
pub fn shared_captures() -> Option<PathBuf> {
    let folder = root().join("../shared/captures/smollm2-h200");
    if !folder.is_dir() {
        eprintln!("not run: no captures at {}", folder.display());
        return None;
    }
    Some(folder)
}

/// A place to work in, with a store.
pub struct Bench {
    pub folder: TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    pub fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Runs `witnessmark` on this bench's store.
    pub fn run<A: AsRef<std::ffi::OsStr>>(&self, args: &[A]) -> Run {
        let output = Command::new(env!("CARGO_BIN_EXE_witnessmark"))
            .current_dir(self.folder.path())
            .env("WITNESSMARK_STORE", self.store())
            .args(args)
            .output()
            .unwrap();
        Run::new(output)
    }

    /// Seals a directory, which must succeed; gives the capture id.
    pub fn seal(&self, dir: &Path) -> String {
        let run = self.run(&["seal".as_ref(), dir.as_os_str()]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        run.stdout.trim().to_owned()
    }

    /// A copy of a capture directory that may be changed.
    pub fn copy(&self, from: &Path, name: &str) -> PathBuf {
        let to = self.folder.path().join(name);
        copy_folder(from, &to);
        to
    }
}

/// What a command did.
pub struct Run {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    fn new(output: Output) -> Self {
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
