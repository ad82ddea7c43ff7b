//! Drill: every known corruption, done to a scratch copy of a verified capture, must be refused by its own rule.
//!
//! In comes a verified capture, out goes one [`Trial`] for each corruption of the tables in `drill/`: what was done, which rule had to refuse it, and
//! what the real `seal` or the real `verify` said. Always holds: the store is only read, and the same seed makes the same corruptions. What cannot be
//! tried on this evidence, or cannot be seen by anyone who has only this store, is said and never counted as refused. See `specs/format-v1.md`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::canon::json::JsonError;
use crate::catalog::{Catalog, Resolved, write_ref};
use crate::export::{ExportError, write_capture};
use crate::id::{CaptureId, Nanos, ObjectId};
use crate::log::Log;
use crate::manifest::{Act, Codec, TOOL};
use crate::meter::Meter;
use crate::refusal::{Findings, Refusal, Rule};
use crate::seal::{Batch, Outcome, SealError};
use crate::store::{Fault, Store, StoreError, io_error};
use crate::verify::{self, Depth, Verified, VerifyError, verify};

mod dice;
mod draft;
mod evidence;
mod forge;
mod sealed;

use dice::Dice;
use draft::{Draft, Source};
use forge::Replica;

/// What keeps a drill from being held.
#[derive(Debug, thiserror::Error)]
pub enum DrillError {
    /// The store or the scratch folder could not be used
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The capture could not be copied
    #[error(transparent)]
    Export(ExportError),
    /// A corrupted document could not be written
    #[error("cannot write a document: {0}")]
    Document(#[from] JsonError),
    /// The evidence is refused, or changes, without any corruption
    #[error("the scratch copy is not the capture: {0}")]
    Control(String),
    /// Asked to stop
    #[error("interrupted")]
    Interrupted,
}

impl From<ExportError> for DrillError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Interrupted => Self::Interrupted,
            error => Self::Export(error),
        }
    }
}

impl From<SealError> for DrillError {
    fn from(error: SealError) -> Self {
        match error {
            SealError::Interrupted => Self::Interrupted,
            SealError::Store(error) => error.into(),
            SealError::Document(error) => error.into(),
        }
    }
}

impl From<VerifyError> for DrillError {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Interrupted => Self::Interrupted,
            VerifyError::Store(error) => error.into(),
        }
    }
}

impl From<Fault> for DrillError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Error(error) => error.into(),
            Fault::Refused(refusal) => Self::Control(refusal.to_string()),
        }
    }
}

/// What must happen to a corruption.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expect {
    /// Exactly these rules refuse it
    Refusal(Vec<Rule>),
    /// No rule can tell, since every digest was made anew: but the capture id is another one
    AnotherId,
    /// Nothing in this store can tell; in words, what could
    Undetectable(&'static str),
}

impl Expect {
    fn rule(rule: Rule) -> Self {
        Self::Refusal(vec![rule])
    }
}

/// Why a corruption was not made.
enum Skip {
    NotApplicable(String),
    Failed(DrillError),
}

impl<E: Into<DrillError>> From<E> for Skip {
    fn from(error: E) -> Self {
        Skip::Failed(error.into())
    }
}

fn not_applicable<T>(why: impl Into<String>) -> Result<T, Skip> {
    Err(Skip::NotApplicable(why.into()))
}

/// A corruption that is known, without evidence to do it to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Known {
    /// Its name
    pub name: &'static str,
    /// Where it is done: in the capture directory, or in the store
    pub place: Place,
    /// What is done
    pub does: &'static str,
}

/// Where a corruption is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// In the capture directory; the real seal judges it
    Capture,
    /// In the store; the real verify judges it
    Store,
    /// In the store, with every digest above it made anew; the real verify judges it
    Rehashed,
}

/// What became of a corruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Refused, by its own rule and no other
    Refused,
    /// Accepted, as another capture: only the capture id, a signature over it or an outside copy of a root tells
    AnotherId,
    /// This evidence has nothing that it could be done to
    NotApplicable,
    /// Accepted, and nothing in this store could tell
    UndetectableHere,
    /// Refused, but not by exactly its own rule
    OtherRule,
    /// Accepted, though a rule should have refused it
    Survived,
}

impl Verdict {
    /// Whether the verifier failed.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Verdict::OtherRule | Verdict::Survived)
    }
}

/// One corruption and what became of it.
#[derive(Debug, Clone, Serialize)]
pub struct Trial {
    /// Which
    #[serde(flatten)]
    pub known: Known,
    /// What became of it, the worst of all its cases
    pub verdict: Verdict,
    /// In how many cases it was tried
    pub cases: usize,
    /// The rules that had to refuse it
    pub expected: Vec<Rule>,
    /// The rules that did
    pub found: Vec<Rule>,
    /// One of the refusals
    pub refusal: Option<Refusal>,
    /// What exactly was done, in the case that decided; or why it was not, or what could tell
    pub detail: String,
}

impl Trial {
    /// Of a corruption that was not made.
    fn not_made(known: Known, why: String) -> Self {
        Self {
            known,
            verdict: Verdict::NotApplicable,
            cases: 0,
            expected: Vec::new(),
            found: Vec::new(),
            refusal: None,
            detail: why,
        }
    }
}

/// A whole drill.
#[derive(Debug, Clone, Serialize)]
pub struct Drill {
    /// The capture
    pub capture: CaptureId,
    /// Its run id
    pub run_id: String,
    /// The seed
    pub seed: u64,
    /// All trials, in the order of the tables
    pub trials: Vec<Trial>,
}

impl Drill {
    /// How many trials ended so.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.trials.iter().filter(|trial| trial.verdict == verdict).count()
    }

    /// Whether no corruption survived or was refused by another rule than its own, and at least one was refused.
    #[must_use]
    pub fn passed(&self) -> bool {
        let caught = self.trials.iter().any(|trial| matches!(trial.verdict, Verdict::Refused | Verdict::AnotherId));
        caught && !self.trials.iter().any(|trial| trial.verdict.is_failure())
    }
}

/// All known corruptions, in the order of a drill.
#[must_use]
pub fn known() -> Vec<Known> {
    let capture = evidence::MUTATIONS.iter().map(|m| Known { name: m.name, place: Place::Capture, does: m.does });
    let store = sealed::MUTATIONS.iter().map(|m| Known { name: m.name, place: Place::Store, does: m.does });
    let rehashed = evidence::MUTATIONS
        .iter()
        .filter_map(|mutation| Some(Known { name: mutation.rehashed?, place: Place::Rehashed, does: mutation.does }));
    capture.chain(store).chain(rehashed).collect()
}

/// What to do.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// Only the corruptions with these names; all where there are none
    pub only: &'a [String],
    /// Chooses rows, scores and bytes
    pub seed: u64,
}

/// Holds a drill. `watch` is told of each corruption before it is tried.
///
/// # Errors
/// When the store or the scratch folder cannot be used, or the untouched scratch copy is not accepted as the same capture.
pub fn drill(
    catalog: &Catalog<'_>,
    capture: &Verified,
    options: Options<'_>,
    meter: &Meter,
    watch: &mut dyn FnMut(&Known),
) -> Result<Drill, DrillError> {
    let scratch = tempfile::Builder::new().prefix("witnessmark-drill-").tempdir();
    let scratch = scratch.map_err(io_error("make", "a scratch folder"))?;
    let range = Range::prepare(catalog, capture, scratch.path(), meter)?;
    range.check_controls()?;
    let mut trials = Vec::new();
    let wanted = |known: &Known| options.only.is_empty() || options.only.iter().any(|name| name == known.name);
    for known in known().into_iter().filter(wanted) {
        if meter.is_stopped() {
            return Err(DrillError::Interrupted);
        }
        watch(&known);
        trials.push(range.hold(known, options.seed)?);
    }
    let run_id = capture.run().run_id.clone();
    Ok(Drill { capture: capture.capture(), run_id, seed: options.seed, trials })
}

/// Writes a corrupted copy of the capture directory `dir` as the new folder `to`, to be looked at or judged; gives the rules that must refuse it, or
/// why it cannot be made. `capture` is what `dir` was exported from.
///
/// # Errors
/// When it cannot be written.
#[doc(hidden)]
pub fn corrupt(
    capture: &Verified,
    dir: &Path,
    name: &str,
    seed: u64,
    to: &Path,
) -> Result<Result<Vec<Rule>, String>, DrillError> {
    let Some(mutation) = evidence::MUTATIONS.iter().find(|mutation| mutation.name == name) else {
        return Ok(Err("no such corruption".to_owned()));
    };
    let source = Source::new(capture, dir.to_owned(), Vec::new())?;
    let mut draft = Draft::new(&source)?;
    match (mutation.corrupt)(&mut draft, &mut Dice::new(seed, name)) {
        Ok(plan) => {
            draft.write(to)?;
            let rules = if let Expect::Refusal(rules) = plan.expect { rules } else { Vec::new() };
            Ok(Ok(rules))
        }
        Err(Skip::NotApplicable(why)) => Ok(Err(why)),
        Err(Skip::Failed(error)) => Err(error),
    }
}

/// What a verifier said of a corrupted copy.
struct Answer {
    findings: Findings,
    /// The capture that was accepted, where one was
    accepted: Option<CaptureId>,
}

/// Where corruptions are tried: copies of capture directory and store.
struct Range<'a> {
    scratch: &'a Path,
    meter: &'a Meter,
    source: Source<'a>,
    replica: Replica<'a>,
    complete: bool,
    /// A store with the runs that the capture refers to, and without the capture
    bare: PathBuf,
}

impl<'a> Range<'a> {
    fn prepare(
        catalog: &Catalog<'_>,
        capture: &'a Verified,
        scratch: &'a Path,
        meter: &'a Meter,
    ) -> Result<Self, DrillError> {
        let dir = scratch.join("capture");
        fs::create_dir(&dir).map_err(io_error("make", &dir))?;
        if let Err(refusal) = write_capture(catalog.store(), capture, &dir, meter)? {
            return Err(DrillError::Control(refusal.to_string()));
        }
        let referred = referred(catalog, capture);
        let bare = scratch.join("bare");
        copy_referred(catalog, &bare, &referred)?;
        let whole = scratch.join("store");
        let own = catalog.manifests_of(capture.capture()).into_iter().find(|id| {
            // A capture may have several manifests: this is the one that was verified.
            let bytes = crate::canon::document::encode(capture.manifest()).unwrap_or_default();
            ObjectId(crate::digest::Blake3::of(&bytes)) == *id
        });
        let own = own.ok_or_else(|| DrillError::Control("its manifest is not in the log".to_owned()))?;
        let store = copy_referred(catalog, &whole, &referred)?;
        for (id, _, _) in capture.manifest().objects().into_iter().chain([(own, 0, String::new())]) {
            copy_object(catalog.store(), &whole, &id)?;
        }
        Log::append(&store, &[Act::Seal(capture.capture(), own)], AT, TOOL)?;
        write_ref(&store, &capture.run().run_id, capture.capture())?;
        let names = referred.into_iter().map(|(name, _, _)| name).collect();
        Ok(Self {
            scratch,
            meter,
            source: Source::new(capture, dir, names)?,
            replica: Replica::new(capture, whole, own)?,
            complete: capture.manifest().capture.complete,
            bare,
        })
    }

    /// Without any corruption, the scratch copies must be accepted as the same capture.
    fn check_controls(&self) -> Result<(), DrillError> {
        let capture = self.source.capture.capture();
        let resolved = Resolved { capture, manifests: vec![self.replica.manifest_id] };
        let mut answers = vec![self.ask_verify(&self.replica.root, &resolved)?];
        if self.complete {
            answers.push(self.ask_seal(&self.source.dir)?);
        }
        for answer in answers {
            if answer.accepted != Some(capture) {
                let why = answer.findings.refusals.first().map(Refusal::to_string);
                return Err(DrillError::Control(why.unwrap_or_else(|| "another capture id".to_owned())));
            }
        }
        Ok(())
    }

    fn hold(&self, known: Known, seed: u64) -> Result<Trial, DrillError> {
        let mut dice = Dice::new(seed, known.name);
        let cases = match known.place {
            Place::Capture => self.hold_capture(known.name, &mut dice),
            Place::Store => self.hold_store(known.name, &mut dice),
            Place::Rehashed => self.hold_rehashed(known.name, &mut dice),
        };
        match cases {
            Ok(cases) => Ok(self.judge(known, cases)),
            Err(Skip::Failed(error)) => Err(error),
            Err(Skip::NotApplicable(why)) => Ok(Trial::not_made(known, why)),
        }
    }

    fn hold_capture(&self, name: &str, dice: &mut Dice) -> Result<Vec<Case>, Skip> {
        if !self.complete {
            return not_applicable("the run never ended: seal refuses it as it is");
        }
        let mutation = evidence::MUTATIONS.iter().find(|mutation| mutation.name == name);
        let Some(mutation) = mutation else { return not_applicable("no such corruption") };
        let mut draft = Draft::new(&self.source)?;
        let plan = (mutation.corrupt)(&mut draft, dice)?;
        let work = self.work_folder()?;
        let dir = work.path().join("capture");
        draft.write(&dir)?;
        Ok(vec![Case { detail: plan.detail, expect: plan.expect, answer: self.ask_seal(&dir)? }])
    }

    fn hold_store(&self, name: &str, dice: &mut Dice) -> Result<Vec<Case>, Skip> {
        let mutation = sealed::MUTATIONS.iter().find(|mutation| mutation.name == name);
        let Some(mutation) = mutation else { return not_applicable("no such corruption") };
        let mut cases = Vec::new();
        for tampered in (mutation.corrupt)(&self.replica, dice)? {
            cases.push(self.try_tampered(tampered)?);
        }
        Ok(cases)
    }

    /// A corruption of the capture, brought into the store by somebody who makes every digest above it anew.
    fn hold_rehashed(&self, name: &str, dice: &mut Dice) -> Result<Vec<Case>, Skip> {
        let mutation = evidence::MUTATIONS.iter().find(|mutation| mutation.rehashed == Some(name));
        let Some(mutation) = mutation else { return not_applicable("no such corruption") };
        let mut draft = Draft::new(&self.source)?;
        let plan = (mutation.corrupt)(&mut draft, dice)?;
        let forged = self.replica.forge_draft(&draft)?;
        let tampered = forge::Tampered { detail: plan.detail, expect: plan.expect, ..forged };
        Ok(vec![self.try_tampered(tampered)?])
    }

    fn try_tampered(&self, tampered: forge::Tampered) -> Result<Case, DrillError> {
        let work = self.work_folder()?;
        let root = work.path().join("store");
        link_tree(&self.replica.root, &root).map_err(io_error("copy to", &root))?;
        for (path, change) in &tampered.changes {
            change.apply(&root.join(path)).map_err(io_error("tamper with", root.join(path)))?;
        }
        let answer = self.ask_verify(&root, &tampered.resolved)?;
        Ok(Case { detail: tampered.detail, expect: tampered.expect, answer })
    }

    fn work_folder(&self) -> Result<tempfile::TempDir, DrillError> {
        let made = tempfile::Builder::new().prefix("work-").tempdir_in(self.scratch);
        Ok(made.map_err(io_error("make a folder in", self.scratch))?)
    }

    /// The real seal, into a store that knows what the capture refers to.
    fn ask_seal(&self, dir: &Path) -> Result<Answer, DrillError> {
        let work = self.work_folder()?;
        let root = work.path().join("store");
        link_tree(&self.bare, &root).map_err(io_error("copy to", &root))?;
        let store = Store::open(&root)?;
        let mut batch = Batch::new(&store, Codec::Lz4, None, self.meter)?;
        batch.add(dir, None)?;
        let outcome = batch.commit(AT)?.into_iter().next();
        Ok(match outcome {
            Some(Outcome::Sealed(sealed)) => Answer { accepted: Some(sealed.capture), findings: Findings::default() },
            Some(Outcome::Refused(findings)) => Answer { accepted: None, findings },
            None => Answer { accepted: None, findings: Findings::default() },
        })
    }

    /// The real verify: the store's log and refs, and every manifest of the capture.
    fn ask_verify(&self, root: &Path, resolved: &Resolved) -> Result<Answer, DrillError> {
        let store = Store::open(root)?;
        let catalog = Catalog::load(&store)?;
        let options = verify::Options { depth: Depth::Full, model: None, spec: None };
        let outcome = verify(&catalog, resolved, options, self.meter)?;
        let mut findings = Findings::from([catalog.log.refusals.clone(), catalog.refusals.clone()].concat());
        findings.absorb(outcome.findings);
        let accepted = (findings.refusals.is_empty() && outcome.verified.is_some()).then_some(outcome.capture);
        Ok(Answer { findings: findings.sorted(), accepted })
    }

    fn judge(&self, known: Known, cases: Vec<Case>) -> Trial {
        let count = cases.len();
        let trials = cases.into_iter().map(|case| self.judge_case(known, case, count));
        // Of equal verdicts the first case stands for all.
        trials
            .reduce(|worst, trial| if trial.verdict > worst.verdict { trial } else { worst })
            .unwrap_or_else(|| Trial::not_made(known, "nothing to do it to".to_owned()))
    }

    fn judge_case(&self, known: Known, case: Case, cases: usize) -> Trial {
        let mut found: Vec<Rule> = case.answer.findings.refusals.iter().map(|refusal| refusal.rule).collect();
        found.sort();
        found.dedup();
        let refused = !found.is_empty();
        let another = case.answer.accepted.is_some_and(|id| id != self.source.capture.capture());
        let mut detail = case.detail;
        let (expected, verdict) = match case.expect {
            Expect::Refusal(rules) if rules == found => (rules, Verdict::Refused),
            Expect::AnotherId if !refused && another => (Vec::new(), Verdict::AnotherId),
            Expect::Undetectable(how) if !refused => {
                detail = format!("{detail}; {how}");
                (Vec::new(), Verdict::UndetectableHere)
            }
            Expect::Refusal(rules) => (rules, if refused { Verdict::OtherRule } else { Verdict::Survived }),
            Expect::AnotherId | Expect::Undetectable(_) => {
                (Vec::new(), if refused { Verdict::OtherRule } else { Verdict::Survived })
            }
        };
        let refusal = case.answer.findings.refusals.into_iter().next();
        Trial { known, verdict, cases, expected, found, refusal, detail }
    }
}

struct Case {
    detail: String,
    expect: Expect,
    answer: Answer,
}

/// The time of every act in a scratch store: equal seeds give equal answers, whenever the drill is held.
const AT: Nanos = Nanos(0);

/// Run id, capture and manifest of each run whose tokens the capture was forced along, where the store has them.
fn referred(catalog: &Catalog<'_>, capture: &Verified) -> Vec<(String, CaptureId, ObjectId)> {
    let sources = capture.run().requests.iter().filter_map(|request| request.continuation.as_ref()?.source.clone());
    let mut names: Vec<String> = sources.map(|(run, _)| run).collect();
    names.sort();
    names.dedup();
    let known = names.into_iter().filter_map(|name| {
        let id = catalog.by_run_id(&name).filter(|id| *id != capture.capture())?;
        let manifest = catalog.manifest(id)?;
        let bytes = crate::canon::document::encode(&manifest).ok()?;
        Some((name, id, ObjectId(crate::digest::Blake3::of(&bytes))))
    });
    known.collect()
}

/// A store at `root` with the documents of the runs in `referred`: enough to look up their tokens.
fn copy_referred(
    catalog: &Catalog<'_>,
    root: &Path,
    referred: &[(String, CaptureId, ObjectId)],
) -> Result<Store, DrillError> {
    let store = Store::create(root, catalog.store().origin().to_owned())?;
    let mut acts = Vec::new();
    for (name, capture, manifest_id) in referred {
        let Some(manifest) = catalog.manifest(*capture) else { continue };
        copy_object(catalog.store(), root, manifest_id)?;
        copy_object(catalog.store(), root, &manifest.run_object)?;
        acts.push(Act::Seal(*capture, *manifest_id));
        write_ref(&store, name, *capture)?;
    }
    Log::append(&store, &acts, AT, TOOL)?;
    Ok(store)
}

/// Copies the bytes: a link would let a corruption reach the store.
fn copy_object(from: &Store, root: &Path, id: &ObjectId) -> Result<(), DrillError> {
    let path = Store::object_path(id);
    let target = root.join(&path);
    let copy = || -> io::Result<()> {
        fs::create_dir_all(target.parent().unwrap_or(root))?;
        let mut out = fs::File::create(&target)?;
        io::copy(&mut fs::File::open(from.root().join(&path))?, &mut out)?;
        Ok(())
    };
    Ok(copy().map_err(io_error("copy", path))?)
}

/// The same folders with links to the same files: whoever changes one puts another file in its place.
fn link_tree(from: &Path, to: &Path) -> io::Result<()> {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry?;
        let target = to.join(entry.path().strip_prefix(from).unwrap_or(entry.path()));
        if entry.file_type().is_dir() {
            fs::create_dir_all(target)?;
        } else {
            fs::hard_link(entry.path(), target)?;
        }
    }
    Ok(())
}
