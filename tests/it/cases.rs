//! The cases of `corpora/refuse` and `corpora/accept`: small stated edits of real captures, and what must come of each.
//!
//! A refused seal must name exactly the rules of its case and leave the store as it was. Where a case is a capture, the same capture is sealed once more by a
//! forger who asks no rule: `verify` must then name the same rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Deserialize;
use witnessmark::refusal::Rule;

use crate::support::{Bench, Run, files, root};

mod capture;
mod claims;
mod edit;
mod files;
mod forge;
mod handed;

use capture::Capture;
use edit::{Edit, ForgerEdit, Place};
use forge::Forger;

/// A case.toml.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(skip)]
    name: String,
    /// What went wrong, in one sentence
    title: String,
    /// Where it was seen
    #[serde(default)]
    seen_in: Option<String>,
    /// What is edited; none where the directory has nothing in it
    #[serde(default)]
    base: Option<String>,
    /// Bases that are in the store already
    #[serde(default)]
    before: Vec<String>,
    /// Bases that are sealed by the same command, before the case's own directory
    #[serde(default)]
    beside: Vec<String>,
    #[serde(default)]
    edit: Vec<Edit>,
    /// Given as --spec
    #[serde(default)]
    spec: Option<String>,
    /// Files of a folder that is given as --model
    #[serde(default)]
    model: Option<BTreeMap<String, String>>,
    /// `seal`, `verify` with options, or a whole command line on what was handed on; the default is what the edits end with
    #[serde(default)]
    command: Option<String>,
    /// Options of the command
    #[serde(default)]
    args: Vec<String>,
    /// Exactly the rules that are refused, sorted
    refused: Vec<String>,
    /// What a verify of the same capture refuses where that is something else
    #[serde(default)]
    forged: Option<Vec<String>>,
    #[serde(default)]
    status: Option<i32>,
    /// What must be said
    #[serde(default)]
    says: Vec<String>,
    /// A base whose capture id this capture must have
    #[serde(default)]
    same_id_as: Option<String>,
}

fn load(folder: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(root().join("corpora").join(folder)).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(path.join("case.toml")).unwrap();
        let mut case: Case = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        case.name = path.file_name().unwrap().to_string_lossy().into_owned();
        cases.push(case);
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

/// Everything below a folder: paths with their bytes.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    if !folder.exists() {
        return BTreeMap::new();
    }
    let lock = |path: &PathBuf| path.ends_with("log/lock");
    files(folder).into_iter().filter(|path| !lock(path)).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// One case on its bench.
struct Trial<'c> {
    case: &'c Case,
    bench: Bench,
    capture: Option<Capture>,
    /// Whether the capture is sealed and what is edited is the store
    stored: bool,
    /// Whether files of the directory are edited
    in_files: bool,
    /// Whether something was handed on, which the case is about
    handed: bool,
    faults: Vec<String>,
    said: String,
}

impl<'c> Trial<'c> {
    fn new(case: &'c Case) -> Self {
        let capture = case.base.as_deref().map(Capture::base);
        let bench = Bench::new();
        Self {
            case,
            bench,
            capture,
            stored: false,
            in_files: false,
            handed: false,
            faults: Vec::new(),
            said: String::new(),
        }
    }

    fn dir(&self) -> PathBuf {
        self.bench.folder.path().join("capture")
    }

    fn run(&mut self, args: &[&str]) -> Run {
        let run = self.bench.run(args);
        self.said.push_str(&run.stdout);
        self.said.push_str(&run.stderr);
        run
    }

    fn write_base(&self, name: &str) -> String {
        let dir = self.bench.folder.path().join(format!("base-{name}"));
        Capture::base(name).write(&dir);
        dir.to_str().unwrap().to_owned()
    }

    fn write_capture(&self) {
        fs::create_dir_all(self.dir()).unwrap();
        if let Some(capture) = &self.capture {
            capture.write(&self.dir());
        }
    }

    /// Options that seal and verify share.
    fn options(&self) -> Vec<String> {
        let mut options = Vec::new();
        if let Some(spec) = &self.case.spec {
            let path = self.bench.folder.path().join("spec.toml");
            let head = "schema = \"witnessmark.spec/v1\"\nworkload = \"cases\"\n";
            fs::write(&path, format!("{head}{spec}")).unwrap();
            options.extend(["--spec".to_owned(), path.to_str().unwrap().to_owned()]);
        }
        options
    }

    fn verify_options(&self) -> Vec<String> {
        let mut options = self.options();
        if let Some(model) = &self.case.model {
            let folder = self.bench.folder.path().join("model");
            fs::create_dir_all(&folder).unwrap();
            for (name, text) in model {
                fs::write(folder.join(name), text).unwrap();
            }
            options.extend(["--model".to_owned(), folder.to_str().unwrap().to_owned()]);
        }
        options
    }

    /// Writes the directory and, where an edit is about the store, seals it.
    fn reach(&mut self, place: Place) {
        if !self.in_files && !self.stored {
            self.write_capture();
        }
        match place {
            Place::Capture => {
                assert!(!self.stored, "the capture is sealed already");
                self.in_files = true;
            }
            Place::Store if !self.stored => {
                self.seal_bases();
                self.bench.seal(&self.dir());
                self.stored = true;
            }
            Place::Store | Place::Beside => {}
        }
    }

    fn seal_bases(&self) {
        for base in self.case.before.iter().chain(&self.case.beside) {
            self.bench.seal(Path::new(&self.write_base(base)));
        }
    }

    fn edit(&mut self) {
        for edit in &self.case.edit {
            match edit {
                Edit::Capture(edit) => {
                    assert!(!self.in_files && !self.stored, "the capture is written already");
                    self.capture.as_mut().unwrap().edit(edit);
                }
                Edit::File(edit) => {
                    self.reach(edit.place);
                    let store = self.bench.store();
                    let path = match edit.place {
                        Place::Capture => self.dir().join(&edit.path),
                        Place::Store => Forger { root: &store }.path(&edit.path),
                        Place::Beside => self.bench.path(&edit.path),
                    };
                    files::edit(&edit.act, &path, &self.bench.folder.path().join("aside"));
                }
                Edit::Forger(edit) => {
                    match edit {
                        ForgerEdit::StoreMake => self.stored = true,
                        ForgerEdit::Forge { .. } => {
                            self.seal_bases();
                            self.stored = true;
                        }
                        _ => self.reach(Place::Store),
                    }
                    let empty = || Capture::base("baseline");
                    let capture = self.capture.clone().unwrap_or_else(empty);
                    Forger { root: &self.bench.store() }.edit(edit, &capture);
                }
                Edit::Handed(edit) => {
                    self.reach(Place::Store);
                    self.handed = true;
                    handed::edit(edit, &self.bench);
                }
            }
        }
    }

    fn expect(&mut self, what: &str, run: &Run, refused: &[String], status: i32) {
        if run.refused() != refused || run.status != status {
            let (found, code) = (run.refused(), run.status);
            let output = format!("{}{}", run.stdout, run.stderr);
            self.faults.push(format!(
                "{}: {what}: expected {refused:?} with status {status}, found {found:?} with status {code}\n{output}",
                self.case.name
            ));
        }
    }

    fn play(mut self) -> Vec<String> {
        let case = self.case;
        self.edit();
        let default = if self.stored { "verify" } else { "seal" };
        let command = case.command.as_deref().unwrap_or(default);
        let status = case.status.unwrap_or(if case.refused.is_empty() { 0 } else { 2 });
        if command == "seal" {
            self.seal(status);
        } else {
            self.reach(Place::Store);
            let mut args: Vec<String> = command.split(' ').map(str::to_owned).collect();
            if !self.handed {
                args.push("--all".to_owned());
                args.extend(self.verify_options());
            }
            args.extend(case.args.iter().cloned());
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let run = self.run(&args);
            self.expect(command, &run, &case.refused, status);
        }
        for text in case.says.iter().filter(|text| !self.said.contains(text.as_str())) {
            self.faults.push(format!("{}: does not say {text:?}:\n{}", case.name, self.said));
        }
        self.faults
    }

    fn seal(&mut self, status: i32) {
        let case = self.case;
        if !self.in_files {
            self.write_capture();
        }
        for base in &case.before {
            self.bench.seal(Path::new(&self.write_base(base)));
        }
        let before = snapshot(&self.bench.store());
        let mut args = vec!["seal".to_owned()];
        args.extend(self.options());
        args.extend(case.args.iter().cloned());
        args.extend(case.beside.iter().map(|base| self.write_base(base)));
        args.push(self.dir().to_str().unwrap().to_owned());
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let run = self.run(&args);
        self.expect("seal", &run, &case.refused, status);
        if case.refused.is_empty() {
            let mut args = vec!["verify".to_owned(), "--all".to_owned()];
            args.extend(self.verify_options());
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let verified = self.run(&args);
            self.expect("verify", &verified, &[], 0);
            self.check_id(&run);
        } else if case.beside.is_empty() && snapshot(&self.bench.store()) != before {
            self.faults.push(format!("{}: a refused seal changed the store", case.name));
        }
        if !self.in_files && !self.stored {
            self.verify_forged();
        }
    }

    fn check_id(&mut self, run: &Run) {
        let Some(base) = &self.case.same_id_as else { return };
        let other = Bench::new();
        let dir = other.folder.path().join("base");
        Capture::base(base).write(&dir);
        if run.stdout.trim() != other.seal(&dir) {
            self.faults.push(format!("{}: another id than that of {base}", self.case.name));
        }
    }

    /// The same capture in a store that a forger wrote.
    fn verify_forged(&mut self) {
        let refused = self.case.forged.as_ref().unwrap_or(&self.case.refused).clone();
        let Some(capture) = self.capture.clone() else { return };
        self.bench = Bench::new();
        self.seal_bases();
        if !(Forger { root: &self.bench.store() }).forge(&capture, usize::MAX, true) {
            return;
        }
        let options = self.verify_options();
        let args: Vec<&str> = ["verify", "--all"].into_iter().chain(options.iter().map(String::as_str)).collect();
        let run = self.run(&args);
        let status = if refused.is_empty() { 0 } else { 2 };
        self.expect("verify of what a forger sealed", &run, &refused, status);
    }
}

fn play(cases: &[Case]) {
    let faults: Vec<String> = cases.par_iter().flat_map_iter(|case| Trial::new(case).play()).collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_refuse_case_is_refused_by_exactly_its_rules() {
    let cases = load("refuse");
    assert!(cases.iter().all(|case| !case.refused.is_empty()));
    play(&cases);
}

#[test]
fn every_accept_case_is_accepted() {
    let cases = load("accept");
    assert!(cases.iter().all(|case| case.refused.is_empty()));
    play(&cases);
}

#[test]
fn every_rule_has_a_case_and_every_case_names_rules() {
    let (cases, claims) = (load("refuse"), claims::load());
    let named: BTreeSet<&str> = cases
        .iter()
        .flat_map(|case| &case.refused)
        .chain(cases.iter().flat_map(|case| case.forged.iter().flatten()))
        .chain(claims.iter().flat_map(|claim| &claim.refused))
        .map(String::as_str)
        .collect();
    let known: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
    let unknown: Vec<&&str> = named.difference(&known).collect();
    assert!(unknown.is_empty(), "cases name what is no rule: {unknown:?}");
    let open: Vec<&&str> = known.difference(&named).collect();
    assert!(open.is_empty(), "rules without a case: {open:?}");
    for case in &cases {
        assert!(case.refused.is_sorted_by(|a, b| a < b), "{}: refused is not sorted", case.name);
        assert!(!case.title.is_empty() && case.seen_in.as_deref() != Some(""), "{}", case.name);
    }
}

#[test]
fn the_specifications_mention_every_rule_and_no_other() {
    let mut mentioned = BTreeSet::new();
    for document in ["specs/format-v1.md", "specs/spec-v1.md", "specs/qualification-v1.md"] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        mentioned.extend(rules_in(&text));
    }
    let known: BTreeSet<String> = Rule::ALL.iter().map(|rule| rule.id().to_owned()).collect();
    let missing: Vec<&String> = known.difference(&mentioned).collect();
    assert!(missing.is_empty(), "rules that no document mentions: {missing:?}");
    let unknown: Vec<&String> = mentioned.difference(&known).collect();
    assert!(unknown.is_empty(), "documents mention what is no rule: {unknown:?}");
}

/// What stands in backquotes and has the shape of a rule's id: words of letters, joined by hyphens. Words of other vocabularies are left out.
fn rules_in(text: &str) -> BTreeSet<String> {
    const OTHERS: [&str; 12] = [
        "capture-only",
        "self-replay",
        "common-replay",
        "after-id-replay",
        "held-out",
        "oracle-differs",
        "oracle-not-repeated",
        "no-candidate",
        "uncompared-rows",
        "inertness-pending",
        "tie-undecided",
        "inertness-undecided",
    ];
    let words = text.split('`').skip(1).step_by(2).flat_map(|code| code.split(", "));
    let shaped = |word: &&str| {
        word.contains('-')
            && word.split('-').all(|part| !part.is_empty() && part.bytes().all(|c| c.is_ascii_lowercase()))
    };
    words.filter(shaped).filter(|word| !OTHERS.contains(word)).map(str::to_owned).collect()
}
