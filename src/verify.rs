//! Verify: a sealed capture is derived again from its leaves, and every difference is named.
//!
//! Object digests, shard structure, row records, leaves, roots, capture document, bindings: what is parsed is what was hashed. Faults are
//! values ([`Outcome`]), all of them, sorted, the same at any number of threads; an error means that nothing could be decided.
//! What was not looked at is said. Never imports `seal`. See `specs/format-v1.md`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::Serialize;
use sha2::Digest as _;

use crate::binding::{MAX_RUN_JSON, MAX_VOCAB, Run, check_path, folder_and_file};
use crate::canon::document;
use crate::catalog::{Catalog, Resolved};
use crate::digest::Sha256;
use crate::facts::{Facts, Top};
use crate::id::{CaptureId, ObjectId, TokenId, long};
use crate::manifest::{
    CAPTURE_SCHEMA, CaptureDocument, MANIFEST_SCHEMA, MAX_ATTACHMENTS, MAX_DOCUMENT, MAX_ROWS, Manifest,
};
use crate::meter::Meter;
use crate::pipeline;
use crate::refusal::{Findings, NoteKind, Rule, Subject};
use crate::row::{self, Row};
use crate::rule::{self, Evidence, ScoreEvidence};
use crate::shard::rows::{self as row_shard, MAX_SHARD_ROWS};
use crate::spec::Spec;
use crate::store::{Fault, Found, Store, StoreError, io_error, open_regular};

pub mod receipt;
pub mod sample;
mod scores;

use sample::{Sample, Sampled};
use scores::ScoresPass;

/// What keeps a verify from being decided.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The store could not be read
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Asked to stop
    #[error("interrupted")]
    Interrupted,
}

/// How much of a capture is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Documents and rows: the roots are derived from the recorded score digests, and no scores shard is opened
    Rows,
    /// … and every object is hashed, but no score is derived again
    Quick,
    /// Documents, rows and attachments, and of the scores only a sample of rows, each read alone
    Sample(Sample),
    /// Everything
    Full,
}

impl Depth {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Depth::Rows => "rows",
            Depth::Quick => "quick",
            Depth::Sample(_) => "sample",
            Depth::Full => "full",
        }
    }
}

impl Serialize for Depth {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// How much was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Rows whose records were hashed into the row root
    pub rows: u64,
    /// Rows whose scores were derived again
    pub scored_rows: u64,
    /// Objects whose bytes were hashed
    pub objects: u64,
    /// Bytes of these objects
    pub bytes: u64,
}

/// A capture that passed. It can only be had from [`verify`].
#[derive(Debug)]
pub struct Verified {
    capture: CaptureId,
    depth: Depth,
    manifest: Manifest,
    run: Run,
    rows: Vec<Row>,
    tops: Vec<Option<Top>>,
}

impl Verified {
    /// Its id.
    #[must_use]
    pub fn capture(&self) -> CaptureId {
        self.capture
    }

    /// How much was looked at.
    #[must_use]
    pub fn depth(&self) -> Depth {
        self.depth
    }

    /// The manifest that was read, the first where there are several.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// run.json.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The rows in key order.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The top of a row's scores; none where they were not derived again.
    #[must_use]
    pub fn top(&self, row: usize) -> Option<Top> {
        self.tops.get(row).copied().flatten()
    }
}

/// What a verify came to.
#[derive(Debug)]
pub struct Outcome {
    /// Which capture
    pub capture: CaptureId,
    /// Its run id, where run.json could be read
    pub run_id: Option<String>,
    /// The manifests that were looked at
    pub manifests: Vec<ObjectId>,
    /// How much was asked for
    pub depth: Depth,
    /// How much was looked at
    pub checked: Checked,
    /// How the sample was drawn, where only a sample was derived again
    pub sampled: Option<Sampled>,
    /// Refusals and notes, sorted
    pub findings: Findings,
    /// The capture, when nothing was refused
    pub verified: Option<Verified>,
}

/// What to look at, besides the capture itself.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// How much
    pub depth: Depth,
    /// The folder of the model, where its files are to be compared with their declared digests
    pub model: Option<&'a Path>,
    /// The spec whose requirements the capture must meet
    pub spec: Option<&'a Spec>,
}

/// Verifies a capture by every manifest that `resolved` lists.
///
/// # Errors
/// When the store cannot be read.
///
/// # Refusals
/// In [`Outcome::findings`]: every rule that a capture alone can show.
pub fn verify(
    catalog: &Catalog<'_>,
    resolved: &Resolved,
    options: Options<'_>,
    meter: &Meter,
) -> Result<Outcome, VerifyError> {
    verify_up_to(u64::MAX, catalog, resolved, options, meter)
}

/// Verifies many captures and hands the outcomes to `report`, in order. Small ones are verified ahead of their turn, on all threads at once;
/// `wanted` says of which it is worth while. Outcomes are those of [`verify`], one after the other, and an error is met in its turn.
///
/// # Errors
/// The first of `report`, which is given a way to verify the capture whose turn it is.
///
/// # Refusals
/// As [`verify`].
pub fn verify_each<E: Send>(
    catalog: &Catalog<'_>,
    subjects: &[Resolved],
    options: Options<'_>,
    meter: &Meter,
    wanted: impl Fn(&Resolved) -> bool + Sync,
    mut report: impl FnMut(&Resolved, &mut dyn FnMut() -> Result<Outcome, VerifyError>) -> Result<(), E> + Send,
) -> Result<(), E> {
    let mut next = subjects.iter();
    let set = || (0..SMALL_AT_ONCE).map(|_| (None, None)).collect();
    pipeline::run(
        [set(), set()],
        |(subject, _)| {
            *subject = next.next();
            Ok(subject.is_some())
        },
        |(subject, ahead)| {
            let subject = subject.filter(|subject| wanted(subject));
            let small = |subject| verify_small(catalog, subject, options, meter);
            *ahead = subject.and_then(small);
        },
        |(subject, ahead)| {
            let Some(subject) = subject.take() else { return Ok(()) };
            let verify = || ahead.take().map_or_else(|| verify(catalog, subject, options, meter), Ok);
            report(subject, &mut { verify })
        },
    )
}

/// How many small captures may be verified at once, whatever the number of threads, and as many may wait to be reported.
const SMALL_AT_ONCE: usize = 16;
/// The most bytes of a small capture, its scores as f32.
const SMALL: u64 = 256 << 10;

/// What [`verify`] would say of a small capture; none for a larger one, and where an error stands in the way.
fn verify_small(catalog: &Catalog<'_>, resolved: &Resolved, options: Options<'_>, meter: &Meter) -> Option<Outcome> {
    let outcome = verify_up_to(SMALL, catalog, resolved, options, meter).ok()?;
    // Its own limits or this one: it is looked at again, alone.
    let over = outcome.findings.refusals.iter().any(|refusal| refusal.rule == Rule::LimitExceeded);
    (!over).then_some(outcome)
}

/// As [`verify`]; a capture of more than `most` bytes is refused by limit-exceeded as soon as its manifest tells.
fn verify_up_to(
    most: u64,
    catalog: &Catalog<'_>,
    resolved: &Resolved,
    options: Options<'_>,
    meter: &Meter,
) -> Result<Outcome, VerifyError> {
    let mut outcome = Outcome {
        capture: resolved.capture,
        run_id: None,
        manifests: resolved.manifests.clone(),
        depth: options.depth,
        checked: Checked::default(),
        sampled: None,
        findings: Findings::default(),
        verified: None,
    };
    let mut verified = None;
    for manifest in &resolved.manifests {
        let (findings, checked) = (Findings::default(), Checked::default());
        let mut pass = Pass { catalog, options, meter, most, findings, checked, sampled: None };
        let found = pass.manifest(manifest, resolved.capture)?;
        outcome.checked.rows += pass.checked.rows;
        outcome.checked.scored_rows += pass.checked.scored_rows;
        outcome.checked.objects += pass.checked.objects;
        outcome.checked.bytes += pass.checked.bytes;
        outcome.findings.absorb(pass.findings);
        outcome.sampled = outcome.sampled.or(pass.sampled);
        if let Some(found) = found {
            outcome.run_id.get_or_insert(found.run.run_id.clone());
            verified.get_or_insert(found);
        }
    }
    if resolved.manifests.is_empty() {
        outcome.findings.refuse(Rule::NothingToVerify, Subject::Capture, "a manifest in the log", "none");
    }
    outcome.findings = outcome.findings.sorted();
    outcome.verified = verified.filter(|_| outcome.findings.refusals.is_empty());
    Ok(outcome)
}

struct Pass<'p, 'a> {
    catalog: &'p Catalog<'a>,
    options: Options<'p>,
    meter: &'p Meter,
    /// The most bytes, scores as f32, that are looked at
    most: u64,
    findings: Findings,
    checked: Checked,
    sampled: Option<Sampled>,
}

impl Pass<'_, '_> {
    fn store(&self) -> &Store {
        self.catalog.store()
    }

    fn refuse(&mut self, rule: Rule, subject: Subject, expected: impl Into<String>, found: impl Into<String>) {
        self.findings.refuse(rule, subject, expected, found);
    }

    /// `None`, with the refusal noted, where a rule was broken.
    fn keep<T>(&mut self, result: Result<T, Fault>) -> Result<Option<T>, VerifyError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Fault::Error(error)) => Err(error.into()),
            Err(Fault::Refused(refusal)) => {
                self.findings.refusals.push(refusal);
                Ok(None)
            }
        }
    }

    fn count(&mut self, bytes: u64) {
        self.checked.objects += 1;
        self.checked.bytes += bytes;
    }

    fn manifest(&mut self, id: &ObjectId, capture: CaptureId) -> Result<Option<Verified>, VerifyError> {
        let subject = || Subject::Object(*id, "manifest".to_owned());
        let read = self.store().read_object(id, None, self.most.min(MAX_DOCUMENT), "manifest");
        let Some(bytes) = self.keep(read)? else { return Ok(None) };
        self.count(long(bytes.len()));
        let manifest: Manifest = match document::decode(&bytes) {
            Ok(manifest) => manifest,
            Err(error) => {
                self.refuse(Rule::from(&error), subject(), "a canonical manifest", error.to_string());
                return Ok(None);
            }
        };
        match manifest.capture.id() {
            Ok(found) if found == capture => {}
            Ok(found) => self.refuse(
                Rule::RootMismatch,
                subject(),
                format!("the document of capture {capture}"),
                found.to_string(),
            ),
            Err(error) => self.refuse(Rule::from(&error), subject(), "a canonical capture document", error.to_string()),
        }
        if !self.check_document(&manifest, &subject()) {
            return Ok(None);
        }
        let bytes = manifest.bytes();
        if bytes > self.most {
            self.refuse(Rule::LimitExceeded, subject(), format!("at most {} bytes", self.most), bytes.to_string());
            return Ok(None);
        }
        let mut run = self.run(&manifest)?;
        let counted = run.as_ref().is_none_or(|run| self.check_run(run, &manifest.capture));
        let rows = self.rows(&manifest, counted)?;
        if let (false, Some(run), Some(rows)) = (manifest.capture.complete, &mut run, &rows) {
            run.cut_to(rows);
        }
        let mut tops = Vec::new();
        if let (Some(run), Some(rows)) = (&run, &rows) {
            let scores = self.scores(&manifest, capture, run, rows)?;
            let evidence = ScoreEvidence {
                facts: scores.as_ref().map_or(&[], |scores| scores.facts.as_slice()),
                f32_sha256: scores.as_ref().and_then(|scores| scores.f32_sha256),
            };
            let catalog = self.catalog;
            let continuations = |run: &str, request: &str, output: &[TokenId]| catalog.course(run, request, output);
            let elsewhere = |digests: &BTreeSet<[u8; 32]>| catalog.rows_with(digests, &run.run_id);
            tops = evidence.facts.iter().map(|facts| facts.as_ref().map(Facts::top)).collect();
            let scores = scores.is_some().then_some(evidence);
            let evidence = Evidence { run, rows, scores, continuations: &continuations, elsewhere: &elsewhere };
            self.findings.absorb(rule::judge(&evidence));
            if let Some(spec) = self.options.spec {
                self.findings.absorb(rule::judge_spec(run, rows, manifest.capture.complete, spec));
            }
            self.check_model(run)?;
            self.note_unseen(run);
        } else {
            self.hash_objects(
                &manifest.score_shards.iter().map(|s| (s.object, s.bytes)).collect::<Vec<_>>(),
                "scores shard",
            )?;
        }
        let attachments: Vec<(ObjectId, u64)> = manifest
            .capture
            .attachments
            .iter()
            .map(|attachment| (ObjectId(attachment.blake3), attachment.bytes))
            .collect();
        self.hash_objects(&attachments, "attachment")?;
        let verified =
            run.zip(rows).map(|(run, rows)| Verified { capture, depth: self.options.depth, manifest, run, rows, tops });
        Ok(verified)
    }

    /// Whether what the document says is possible at all.
    fn check_document(&mut self, manifest: &Manifest, subject: &Subject) -> bool {
        let before = self.findings.refusals.len();
        let document = &manifest.capture;
        let mut refuse =
            |rule, expected: String, found: String| self.findings.refuse(rule, subject.clone(), expected, found);
        for (found, expected) in [(&manifest.schema, MANIFEST_SCHEMA), (&document.schema, CAPTURE_SCHEMA)] {
            if found != expected {
                refuse(Rule::SchemaInvalid, format!("schema {expected}"), found.clone());
            }
        }
        if document.rows > MAX_ROWS {
            refuse(Rule::LimitExceeded, format!("at most {MAX_ROWS} rows"), document.rows.to_string());
        }
        let in_rows = manifest.row_shards.iter().map(|shard| shard.rows);
        let in_scores = manifest.score_shards.iter().map(|shard| shard.rows);
        let hollow = in_rows.clone().chain(in_scores.clone()).any(|rows| rows == 0);
        if document.rows == 0 || manifest.row_shards.is_empty() || hollow {
            refuse(Rule::NothingToVerify, "rows, and one or more in every shard".to_owned(), "none".to_owned());
        }
        if let Some(rows) = in_rows.clone().find(|rows| *rows > MAX_SHARD_ROWS) {
            refuse(Rule::LimitExceeded, format!("at most {MAX_SHARD_ROWS} rows a rows shard"), rows.to_string());
        }
        let sum = |rows: &mut dyn Iterator<Item = u64>| rows.map(u128::from).sum::<u128>();
        let adds_up = |total: u128| hollow || total == u128::from(document.rows);
        let total = sum(&mut in_rows.clone());
        if !adds_up(total) {
            refuse(Rule::TreeSize, format!("{} rows in rows shards", document.rows), total.to_string());
        }
        match (document.vocab_size, document.score_root) {
            (None, None) if manifest.score_shards.is_empty() => {}
            (Some(vocab), Some(_)) => {
                if vocab == 0 || vocab > MAX_VOCAB {
                    refuse(Rule::LimitExceeded, format!("a vocabulary of 1 to {MAX_VOCAB}"), vocab.to_string());
                }
                let total = sum(&mut in_scores.clone());
                if !adds_up(total) {
                    refuse(Rule::TreeSize, format!("{} rows in scores shards", document.rows), total.to_string());
                }
            }
            _ => {
                let expected = "vocab_size, score_root and scores shards, or none of them".to_owned();
                refuse(Rule::TreeSize, expected, "some of them".to_owned());
            }
        }
        let attachments = &document.attachments;
        if attachments.len() > MAX_ATTACHMENTS {
            refuse(
                Rule::LimitExceeded,
                format!("at most {MAX_ATTACHMENTS} attachments"),
                attachments.len().to_string(),
            );
        }
        if !attachments.is_sorted_by(|a, b| a.path.as_bytes() < b.path.as_bytes()) {
            refuse(
                Rule::JsonNotCanonical,
                "attachments sorted by path, each once".to_owned(),
                "another order".to_owned(),
            );
        }
        for attachment in attachments {
            if let Err(why) = check_path(&attachment.path) {
                refuse(Rule::PathEscape, format!("{:?} to be a plain relative path", attachment.path), why.to_owned());
            }
        }
        if let Some(path) = folder_and_file(&attachments.iter().map(|attachment| attachment.path.as_str()).collect()) {
            refuse(Rule::PathEscape, format!("{path:?} to be a file or a folder"), "both".to_owned());
        }
        self.findings.refusals.len() == before
    }

    fn run(&mut self, manifest: &Manifest) -> Result<Option<Run>, VerifyError> {
        let declared = manifest.capture.run_json;
        let read = self.store().read_object(&manifest.run_object, Some(declared.bytes), MAX_RUN_JSON, "run.json");
        let Some(bytes) = self.keep(read)? else { return Ok(None) };
        self.count(declared.bytes);
        let found = Sha256::of(&bytes);
        if found != declared.sha256 {
            let subject = Subject::Object(manifest.run_object, "run.json".to_owned());
            self.refuse(Rule::RootMismatch, subject, format!("SHA-256 {}", declared.sha256), found.to_string());
        }
        match Run::parse(&bytes) {
            Ok(run) => Ok(Some(run)),
            Err(refusals) => {
                self.findings.refusals.extend(refusals);
                Ok(None)
            }
        }
    }

    /// Whether run.json counts the rows that the document counts.
    fn check_run(&mut self, run: &Run, document: &CaptureDocument) -> bool {
        let subject = |path: &str| Subject::Binding(path.to_owned());
        let vocab = run.scores.as_ref().map(|scores| scores.vocab_size);
        if vocab != document.vocab_size {
            let show = |vocab: Option<u64>| vocab.map_or("none".to_owned(), |vocab| vocab.to_string());
            self.refuse(Rule::VocabMismatch, subject("scores.vocab_size"), show(document.vocab_size), show(vocab));
        }
        if let Some(scores) = &run.scores
            && document.complete
            && scores.rows != document.rows
        {
            self.refuse(Rule::TreeSize, subject("scores.rows"), document.rows.to_string(), scores.rows.to_string());
            return false;
        }
        true
    }

    /// All rows, with row root and score root derived from them; none where a shard cannot be read, or where these cannot be the rows that were
    /// captured, since run.json has another number of them.
    fn rows(&mut self, manifest: &Manifest, counted: bool) -> Result<Option<Vec<Row>>, VerifyError> {
        let mut rows: Vec<Row> = Vec::new();
        let mut whole = true;
        for (number, shard) in manifest.row_shards.iter().enumerate() {
            let role = format!("rows shard {number}");
            let read =
                self.store().read_object(&shard.object, Some(shard.bytes), row_shard::max_bytes(shard.rows), &role);
            let Some(bytes) = self.keep(read)? else {
                whole = false;
                continue;
            };
            self.count(shard.bytes);
            self.meter.add(shard.bytes);
            match row_shard::decode(&bytes, shard.rows) {
                Ok(more) => rows.extend(more),
                Err(fault) => {
                    whole = false;
                    self.refuse(
                        Rule::ShardNoncanonical,
                        Subject::Object(shard.object, role),
                        fault.expected,
                        fault.found,
                    );
                }
            }
        }
        if !whole || !counted {
            return Ok(None);
        }
        let document = &manifest.capture;
        self.checked.rows += long(rows.len());
        let mut ordered = true;
        for pair in rows.windows(2) {
            if let [a, b] = pair
                && a.key > b.key
            {
                ordered = false;
                self.refuse(
                    Rule::ShardNoncanonical,
                    Subject::Row(b.key),
                    "rows in key order",
                    format!("after {}", a.key),
                );
                whole = false;
            }
        }
        // What follows, roots included, is about rows in key order.
        if !whole {
            return Ok(None);
        }
        if let Some(row) = rows.iter().find(|row| row.score_digest.is_some() != document.score_root.is_some()) {
            let expected = "a score digest on every row, or on none in a baseline";
            self.refuse(Rule::RootMismatch, Subject::Row(row.key), expected, "another");
        }
        let (row_root, score_root) = row::roots(&rows);
        if row_root != document.row_root {
            self.refuse(
                Rule::RootMismatch,
                Subject::Capture,
                format!("row root {}", document.row_root),
                row_root.to_string(),
            );
        }
        if score_root != document.score_root {
            let show = |root: Option<Sha256>| root.map_or("none".to_owned(), |root| root.to_string());
            let expected = format!("score root {}", show(document.score_root));
            self.refuse(Rule::RootMismatch, Subject::Capture, expected, show(score_root));
        }
        // The rules take rows in key order; one fault is named once.
        Ok(ordered.then_some(rows))
    }

    fn hash_objects(&mut self, objects: &[(ObjectId, u64)], role: &str) -> Result<(), VerifyError> {
        if self.options.depth == Depth::Rows {
            return Ok(());
        }
        for (number, (id, bytes)) in objects.iter().enumerate() {
            self.meter.expect(*bytes);
            let meter = self.meter;
            let checked = self.store().check_object(id, *bytes, &format!("{role} {number}"), &|step| meter.add(step));
            if self.keep(checked)?.is_some() {
                self.count(*bytes);
            }
            if self.meter.is_stopped() {
                return Err(VerifyError::Interrupted);
            }
        }
        Ok(())
    }

    fn scores(
        &mut self,
        manifest: &Manifest,
        capture: CaptureId,
        run: &Run,
        rows: &[Row],
    ) -> Result<Option<ScoresPass>, VerifyError> {
        let Some(declared) = &run.scores else { return Ok(None) };
        let vocab = manifest.capture.vocab_size.and_then(|vocab| u32::try_from(vocab).ok());
        let derives = matches!(self.options.depth, Depth::Full | Depth::Sample(_));
        if !derives || Some(declared.vocab_size) != manifest.capture.vocab_size {
            let shards: Vec<(ObjectId, u64)> = manifest.score_shards.iter().map(|s| (s.object, s.bytes)).collect();
            self.hash_objects(&shards, "scores shard")?;
            return Ok(None);
        }
        let Some(vocab) = vocab else { return Ok(None) };
        let sample = match self.options.depth {
            Depth::Sample(sample) => {
                let drawn = sample.draw(capture, rows.len());
                self.sampled = Some(Sampled { sample, drawn: long(drawn.len()), rows: long(rows.len()) });
                Some(drawn)
            }
            _ => None,
        };
        let pass = ScoresPass::read(self, &manifest.score_shards, declared, vocab, rows, sample)?;
        Ok(Some(pass))
    }

    fn check_model(&mut self, run: &Run) -> Result<(), VerifyError> {
        let Some(folder) = self.options.model else { return Ok(()) };
        // A folder that is not there is a slip of who asks, and says nothing about the files.
        std::fs::read_dir(folder).map_err(io_error("open", folder))?;
        for declared in &run.files {
            let rule = if declared.of == "model" { Rule::ModelMismatch } else { Rule::TokenizerMismatch };
            let path = folder.join(&declared.path);
            let subject = Subject::Binding(format!("{}.files {:?}", declared.of, declared.path));
            let expected = format!("SHA-256 {}", declared.sha256);
            match open_regular(&path, true)? {
                Found::File(file, _) => {
                    let found = sha256_file(file, self.meter).map_err(io_error("read", &path))?;
                    if found != declared.sha256 {
                        self.refuse(rule, subject, expected, found.to_string());
                    }
                }
                Found::Nothing => self.refuse(rule, subject, expected, format!("no file at {}", path.display())),
                Found::NotRegular(what) => {
                    self.refuse(rule, subject, expected, format!("{what} at {}", path.display()))
                }
            }
        }
        Ok(())
    }

    fn note_unseen(&mut self, run: &Run) {
        for path in run.unbound() {
            self.findings.note(NoteKind::Unbound, path);
        }
        if self.options.model.is_none() {
            for of in ["model", "tokenizer"] {
                let files = run.files.iter().filter(|file| file.of == of).count();
                if files > 0 {
                    let text = format!("{of}.files: {files} by SHA-256 (--model DIR looks at them)");
                    self.findings.note(NoteKind::DeclaredNotSeen, text);
                }
            }
        }
        for path in ["engine.binary_sha256", "engine.commit", "corpus.sha256"] {
            if run.binding(path).is_some() {
                self.findings.note(NoteKind::DeclaredNotSeen, path);
            }
        }
    }
}

fn sha256_file(mut file: File, meter: &Meter) -> io::Result<Sha256> {
    let mut hash = sha2::Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let len = file.read(&mut buffer)?;
        if len == 0 {
            return Ok(Sha256(hash.finalize().into()));
        }
        hash.update(buffer.get(..len).unwrap_or_default());
        meter.add(long(len));
    }
}
