//! Qualify: from a spec and sealed captures to a result, the same to the byte for whoever derives it.
//!
//! Captures are found, verified in full, judged together (`rule::claim`), and only then compared. What is missing makes a result PENDING, what is broken gives
//! no result. Nothing here reads a clock, and nothing of a store, a log or a codec gets into a result. See `specs/qualification-v1.md`.

use std::collections::BTreeSet;

use crate::binding::{Role, Run};
use crate::canon::document;
use crate::canon::json::JsonError;
use crate::catalog::{Catalog, KnownRuns, Resolved, read_document, read_manifest};
use crate::digest::Sha256;
use crate::id::CaptureId;
use crate::manifest::{Document, DocumentAct};
use crate::meter::Meter;
use crate::refusal::{Findings, Refusal, Rule, Subject};
use crate::rule::claim::{Claimed, Declared, Inertness, Known, Mismatches, inertness, judge_claim, same_run};
use crate::spec::{Claim, NUMERICS, RULES, Runs, Spec};
use crate::store::{Fault, StoreError};
use crate::verify::{Depth, Options, Verified, VerifyError, verify};

pub mod calibration;
pub mod result;
mod stratum;

use result::{
    CaptureLine, Counted, InertnessLine, Inputs, QUALIFICATION_SCHEMA, RESULT_SCHEMA, Replayed, ResultDocument, Verdict,
};
pub use stratum::{Outcome, RowLine, Rows};

/// What keeps a result from being derived, or found not derivable.
#[derive(Debug, thiserror::Error)]
pub enum QualifyError {
    /// The store could not be read
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A capture could not be verified
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// Asked to stop
    #[error("interrupted")]
    Interrupted,
    /// A number beyond what a document may hold
    #[error("the result cannot be written: {0}")]
    Document(#[from] JsonError),
}

/// What deriving came to.
#[derive(Debug)]
pub enum Answer<T = Derivation> {
    /// Something was broken: no verdict
    Refused(Findings),
    /// A result, or a calibration
    Derived(Box<T>),
}

/// A result, with what it was derived from.
#[derive(Debug)]
pub struct Derivation {
    /// The document
    pub result: ResultDocument,
    /// Its canonical bytes
    pub bytes: Vec<u8>,
    /// What else a reader must know: notes on captures and on the claim
    pub findings: Findings,
    /// The captures, in the order of the document
    pub captures: Vec<Verified>,
    /// What every comparison of a candidate with an oracle gave, row by row
    pub rows: Vec<Rows>,
}

impl Derivation {
    /// The result SHA.
    #[must_use]
    pub fn sha256(&self) -> Sha256 {
        Sha256::of(&self.bytes)
    }
}

/// The captures of a store that a spec has in mind: those with a place in it, and runs that it names.
#[must_use]
pub fn find(catalog: &Catalog<'_>, spec: &Spec) -> Vec<Resolved> {
    let named = |run: &Run| spec.runs.iter().any(|runs| runs.run_ids.contains(&run.run_id));
    search(catalog, &|run| named(run) || spec.place(run).is_some())
}

/// The captures that ended and whose run is wanted.
fn search(catalog: &Catalog<'_>, wants: &dyn Fn(&Run) -> bool) -> Vec<Resolved> {
    let wanted = |resolved: &Resolved| {
        let read = |id| read_manifest(catalog.store(), id, resolved.capture).ok();
        let manifest = resolved.manifests.iter().find_map(read);
        if manifest.as_ref().is_some_and(|manifest| !manifest.capture.complete) {
            return false;
        }
        // What cannot be read cannot be ruled out: verifying it will say why.
        let run = manifest.and_then(|manifest| catalog.run(&manifest));
        run.is_none_or(|run| wants(&run))
    };
    catalog.subjects().into_iter().filter(wanted).collect()
}

/// Captures that are good evidence each by itself, in the order of a result.
struct Gathered {
    spec_id: Sha256,
    captures: Vec<Verified>,
    /// What the logs name
    runs: KnownRuns,
    findings: Findings,
}

/// Verifies all subjects in full, and against the spec; the refusals where one of them is broken, or the spec is no plan. What the logs name must be there, or
/// nobody knows what it would have spoken against.
fn gather(
    catalog: &Catalog<'_>,
    spec: &Spec,
    subjects: &[Resolved],
    meter: &Meter,
) -> Result<Result<Gathered, Findings>, QualifyError> {
    let mut findings = Findings::default();
    let Some(spec_id) = spec.sha256.filter(|_| spec.is_a_plan()) else {
        let subject = Subject::File("the spec".to_owned());
        findings.refuse(Rule::SchemaInvalid, subject, "corpus, strata and runs", "a spec without one of them");
        return Ok(Err(findings));
    };
    findings.refusals.extend(catalog.log.refusals.iter().chain(&catalog.refusals).cloned());
    let runs = match catalog.runs()? {
        Ok(runs) => runs,
        Err(refusals) => {
            findings.refusals.extend(refusals);
            KnownRuns::new()
        }
    };
    if !findings.refusals.is_empty() {
        return Ok(Err(findings.sorted()));
    }
    let mut captures = Vec::new();
    let options = Options { depth: Depth::Full, model: None, spec: Some(spec) };
    for subject in subjects {
        let outcome = verify(catalog, subject, options, meter)?;
        let name = outcome.run_id.unwrap_or_else(|| subject.capture.to_string());
        let refusals = outcome.findings.refusals.into_iter();
        findings.refusals.extend(refusals.map(|r| Refusal { subject: r.subject.of_run(&name), ..r }));
        captures.extend(outcome.verified);
    }
    if !findings.refusals.is_empty() {
        return Ok(Err(findings.sorted()));
    }
    captures.sort_by_cached_key(order);
    captures.dedup_by_key(|capture| capture.capture());
    for capture in captures.iter().filter(|capture| capture.run().greedy != Some(true)) {
        let subject = Subject::Binding("sampling.method".to_owned()).of_run(&capture.run().run_id);
        findings.refuse(Rule::SamplingMismatch, subject, "greedy: the gate compares choices", "another, or none");
    }
    Ok(Ok(Gathered { spec_id, captures, runs, findings }))
}

/// Derives the result of `spec` over `subjects`.
///
/// # Errors
/// When the store cannot be read, or somebody asked to stop.
///
/// # Refusals
/// In [`Answer::Refused`]: every rule that a capture alone can break, and those of `specs/qualification-v1.md`, section 4.
pub fn qualify(
    catalog: &Catalog<'_>,
    spec: &Spec,
    subjects: &[Resolved],
    meter: &Meter,
) -> Result<Answer, QualifyError> {
    let Gathered { spec_id, captures, runs, mut findings } = match gather(catalog, spec, subjects, meter)? {
        Ok(gathered) => gathered,
        Err(findings) => return Ok(Answer::Refused(findings)),
    };
    let claimed = claimed(catalog, &runs, spec_id, &captures);
    findings.absorb(judge_claim(spec, &claimed));
    if !findings.refusals.is_empty() {
        return Ok(Answer::Refused(findings.sorted()));
    }
    let inertness = inertness(spec, &claimed);
    let derived = match stratum::derive(catalog.store(), spec, &captures, &inertness, meter) {
        Ok(derived) => derived,
        Err(Fault::Refused(refusal)) => return Ok(Answer::Refused(vec![refusal].into())),
        Err(Fault::Error(_)) if meter.is_stopped() => return Err(QualifyError::Interrupted),
        Err(Fault::Error(error)) => return Err(error.into()),
    };
    let pending = pending(spec, &captures, &|_| true);
    let ids = captures.iter().map(Verified::capture).collect();
    let inputs = Inputs {
        captures: ids,
        numerics: NUMERICS.to_owned(),
        rules: RULES.to_owned(),
        schema: QUALIFICATION_SCHEMA.to_owned(),
        spec: spec_id,
    };
    let verdict = verdict(spec, &pending, derived.strata.iter().map(|stratum| stratum.verdict).collect());
    let result = ResultDocument {
        captures: captures.iter().map(|capture| line(spec, capture)).collect(),
        cross_strata: derived.cross_strata,
        inertness: inertness.iter().map(inertness_line).collect(),
        numerics: NUMERICS.to_owned(),
        pending,
        qualification: inputs.id()?,
        rules: RULES.to_owned(),
        schema: RESULT_SCHEMA.to_owned(),
        spec: spec_id,
        strata: derived.strata,
        verdict,
        workload: spec.workload.clone(),
    };
    let bytes = document::encode(&result)?;
    Ok(Answer::Derived(Box::new(Derivation {
        result,
        bytes,
        findings: findings.sorted(),
        captures,
        rows: derived.rows,
    })))
}

/// Captures as `rule::claim` judges them.
#[doc(hidden)]
#[must_use]
pub fn claimed<'c>(
    catalog: &Catalog<'_>,
    runs: &KnownRuns,
    spec: Sha256,
    captures: &'c [Verified],
) -> Vec<Claimed<'c>> {
    let claimed = |capture: &'c Verified| Claimed {
        capture: capture.capture(),
        row_root: capture.manifest().capture.row_root,
        run: capture.run(),
        rows: capture.rows(),
        role: capture.run().role(),
        concurrency: capture.run().requested_concurrency(),
        declared: match capture.run().role() {
            Some(Role::Candidate) => declared(catalog, runs, spec, capture),
            _ => Declared::Never,
        },
    };
    captures.iter().map(claimed).collect()
}

/// The order of captures in a result.
fn order(capture: &Verified) -> (&'static str, u32, &'static str, String, CaptureId) {
    let run = capture.run();
    let role = run.role().map_or("", |role| role.name());
    (role, run.requested_concurrency().unwrap_or(0), run.mode.name(), run.run_id.clone(), capture.capture())
}

/// When the spec was put into the logs that name a capture's run. Each log counts under its own head: places of two heads mean nothing together.
fn declared(catalog: &Catalog<'_>, runs: &KnownRuns, spec: Sha256, capture: &Verified) -> Declared {
    let own = Known { run: capture.run(), row_root: capture.manifest().capture.row_root };
    let is_run_of = |id: CaptureId| {
        let same = |(run, row_root): &(Run, Sha256)| same_run(&own, &Known { run, row_root: *row_root }).is_some();
        id == capture.capture() || runs.get(&id).is_none_or(same)
    };
    let is_spec = |(act, document): (DocumentAct, Document)| act == DocumentAct::Spec && document.subject == spec;
    let mut answer = Declared::Never;
    for log in catalog.logs() {
        let declared = log.iter().find(|(_, entry)| entry.document().is_some_and(is_spec));
        let sealed = log.iter().find(|(_, entry)| entry.sealed().is_some_and(|(id, _)| is_run_of(id)));
        match (declared, sealed) {
            (Some((declared, _)), Some((sealed, _))) if declared < sealed => answer = Declared::Before,
            (Some(_), Some(_)) => return Declared::After,
            _ => {}
        }
    }
    answer
}

/// What the spec wants, in the entries that are meant, and there is not.
fn pending(spec: &Spec, captures: &[Verified], meant: &dyn Fn(&Runs) -> bool) -> Vec<String> {
    let mut pending = Vec::new();
    for (number, runs) in spec.runs.iter().enumerate().filter(|(_, runs)| meant(runs)) {
        for &concurrency in &runs.concurrency {
            let here = |run: &Run| {
                spec.place(run).is_some_and(|(found, _)| found == number)
                    && run.requested_concurrency() == Some(concurrency)
            };
            let found = captures.iter().filter(|capture| here(capture.run())).count();
            if u32::try_from(found).is_ok_and(|found| found < runs.repetitions) {
                let (role, mode) = (runs.role.name(), runs.mode.name());
                pending.push(format!("{role} {mode} c{concurrency}: {found} of {}", runs.repetitions));
            }
        }
    }
    pending.sort();
    pending.dedup();
    pending
}

fn verdict(spec: &Spec, pending: &[String], strata: BTreeSet<Verdict>) -> Verdict {
    match spec.claim {
        Claim::Diagnostic if pending.is_empty() => Verdict::DiagnosticComplete,
        Claim::Diagnostic => Verdict::Pending,
        Claim::Strict if strata.contains(&Verdict::NotAccepted) => Verdict::NotAccepted,
        Claim::Strict if !pending.is_empty() || strata.contains(&Verdict::Pending) => Verdict::Pending,
        Claim::Strict if strata.contains(&Verdict::InsufficientEvidence) => Verdict::InsufficientEvidence,
        Claim::Strict => Verdict::Accepted,
    }
}

fn line(spec: &Spec, capture: &Verified) -> CaptureLine {
    let run = capture.run();
    CaptureLine {
        capture: capture.capture(),
        concurrency: run.requested_concurrency().unwrap_or(0),
        mode: run.mode.name().to_owned(),
        partition: spec.partition_of(run).map(|partition| partition.name().to_owned()),
        role: run.role().map_or("", |role| role.name()).to_owned(),
        run_id: run.run_id.clone(),
    }
}

fn inertness_line(found: &Inertness) -> InertnessLine {
    let counted = |counts: &Mismatches| Counted {
        compared: counts.compared,
        interval: counts.interval(),
        mismatched: counts.mismatched,
    };
    InertnessLine {
        baseline: counted(&found.baseline),
        captured: counted(&found.captured),
        concurrency: found.concurrency,
        replays: Replayed {
            differing: found.replays.differing,
            rows: found.replays.rows,
            unmatched: found.replays.unmatched,
        },
        role: found.role.name().to_owned(),
        verdict: found.verdict.to_owned(),
    }
}

/// A result that is in the store, with the bytes of its spec.
#[derive(Debug)]
pub struct Recorded {
    /// The entry's document
    pub document: Document,
    /// The result
    pub result: ResultDocument,
    /// Its bytes
    pub bytes: Vec<u8>,
}

/// The result that a name stands for: a result SHA, a qualification id, or a prefix of eight digits or more. All that it could mean.
///
/// # Errors
/// When the store cannot be read.
///
/// # Refusals
/// What a document can be refused for; json-not-canonical where it is no result.
pub fn recorded(catalog: &Catalog<'_>, name: &str) -> Result<Vec<Recorded>, Fault> {
    let mut found: Vec<Recorded> = Vec::new();
    for (_, document) in catalog.documents().filter(|(act, _)| *act == DocumentAct::Qualify) {
        if found.iter().any(|recorded| recorded.document == document) {
            continue;
        }
        let named = document.subject.to_string().starts_with(name);
        match read_result(catalog, &document) {
            Ok(recorded) if named || recorded.result.qualification.to_string().starts_with(name) => {
                found.push(recorded)
            }
            // Another result's damage is not this name's.
            Ok(_) => {}
            Err(Fault::Refused(_)) if !named => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(found)
}

/// The result that an entry of the log names.
///
/// # Errors
/// When the store cannot be read.
///
/// # Refusals
/// What a document can be refused for; json-not-canonical where it is no result.
pub fn read_result(catalog: &Catalog<'_>, document: &Document) -> Result<Recorded, Fault> {
    let bytes = read_document(catalog.store(), document)?;
    let result = parse_result(document, &bytes).map_err(Fault::Refused)?;
    Ok(Recorded { document: *document, result, bytes })
}

/// The result in the bytes of a document whose digests are known to be right.
///
/// # Refusals
/// json-not-canonical where it is none.
pub fn parse_result(document: &Document, bytes: &[u8]) -> Result<ResultDocument, Refusal> {
    document::decode(bytes).map_err(|error| {
        let subject = Subject::Object(document.object, "result".to_owned());
        Refusal::new(Rule::JsonNotCanonical, subject, "a canonical result", error.to_string())
    })
}

/// The spec that a result cites, from the store.
///
/// # Errors
/// When the store cannot be read.
///
/// # Refusals
/// object-missing where no log has it, and what a document or a spec can be refused for.
pub fn recorded_spec(catalog: &Catalog<'_>, spec: Sha256) -> Result<(Spec, Document), Fault> {
    let mut specs = catalog.documents().filter(|(act, _)| *act == DocumentAct::Spec).map(|(_, document)| document);
    let subject = Subject::File(format!("spec {spec}"));
    let Some(document) = specs.find(|document| document.subject == spec) else {
        return Err(Fault::Refused(Refusal::new(Rule::ObjectMissing, subject, "the spec in the log", "none")));
    };
    let bytes = read_document(catalog.store(), &document)?;
    let invalid = |found: String| Fault::Refused(Refusal::new(Rule::SchemaInvalid, subject.clone(), "a spec", found));
    let text = String::from_utf8(bytes).map_err(|error| invalid(error.to_string()))?;
    let spec = Spec::parse(&text).map_err(|error| invalid(error.to_string()))?;
    Ok((spec, document))
}

/// Derives a recorded result again, from the captures and the spec that it cites.
///
/// # Errors
/// As [`qualify`].
///
/// # Refusals
/// As [`qualify`]; object-missing for what it cites and is not there; result-mismatch where another result follows.
pub fn derive_again(catalog: &Catalog<'_>, recorded: &Recorded, meter: &Meter) -> Result<Answer, QualifyError> {
    let spec = match recorded_spec(catalog, recorded.result.spec) {
        Ok((spec, _)) => spec,
        Err(Fault::Refused(refusal)) => return Ok(Answer::Refused(vec![refusal].into())),
        Err(Fault::Error(error)) => return Err(error.into()),
    };
    let mut findings = Findings::default();
    let mut subjects = Vec::new();
    for line in &recorded.result.captures {
        let manifests = catalog.manifests_of(line.capture);
        if manifests.is_empty() {
            let subject = Subject::Capture.of_run(&line.run_id);
            findings.refuse(Rule::ObjectMissing, subject, format!("capture {}", line.capture), "none in the log");
        }
        subjects.push(Resolved { capture: line.capture, manifests });
    }
    if !findings.refusals.is_empty() {
        return Ok(Answer::Refused(findings.sorted()));
    }
    let answer = qualify(catalog, &spec, &subjects, meter)?;
    if let Answer::Derived(derived) = &answer
        && derived.bytes != recorded.bytes
    {
        let subject = Subject::File(format!("result {}", recorded.document.subject));
        let at = derived.bytes.iter().zip(&recorded.bytes).take_while(|(a, b)| a == b).count();
        let found = format!("result {}, other from byte {at} on", derived.sha256());
        let expected = "the result that follows from its captures and spec";
        findings.refuse(Rule::ResultMismatch, subject, expected, found);
        return Ok(Answer::Refused(findings));
    }
    Ok(answer)
}
