//! Ingest: a capture directory, as an engine adapter wrote it, becomes run, rows and a way to the scores.
//!
//! Reads run.json and rows.jsonl whole and checks that the scores file has the size they promise; scores are read later, row by row, by
//! position. Rows come out in key order, each with its place in the file. All faults are found, not the first. Reads nothing but
//! regular files. See `specs/format-v1.md`, sections 3 and 10.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use crate::binding::{MAX_RUN_JSON, MAX_VOCAB, Run, ScoresDeclaration, check_path};
use crate::canon::json::Json;
use crate::manifest::{MAX_ATTACHMENTS, MAX_ROWS};
use crate::refusal::{Findings, NoteKind, Refusal, Rule, Subject};
use crate::row::{Interner, Row};
use crate::store::{Found, StoreError, io_error, open_regular};

const RUN: &str = "run.json";
/// Where a writer keeps run.json until its run ends.
const PARTIAL: &str = "run.json.partial";
const ROWS: &str = "rows.jsonl";
const ATTACHMENTS: &str = "attachments";
/// The longest line of rows.jsonl, in bytes.
const MAX_LINE: u64 = 1 << 20;

/// What becomes of a capture that never ended: without run.json, or with a torn last row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Torn {
    /// It is refused
    Refused,
    /// Its whole rows are kept, as evidence that can never qualify
    Kept,
}

/// A capture that was read and may be judged.
#[derive(Debug)]
pub struct Capture {
    /// Whether its run ended
    pub complete: bool,
    /// run.json, parsed, or run.json.partial where the run never ended
    pub run: Run,
    /// The same, as it is
    pub run_bytes: Vec<u8>,
    /// The rows in key order
    pub rows: Vec<Row>,
    /// For each of them its row in the scores file
    pub places: Vec<u64>,
    /// The scores file; none in a baseline
    pub scores: Option<File>,
    /// Attachments: path below `attachments/` and open file, sorted by path
    pub attachments: Vec<(String, File)>,
}

/// Reads the capture directory `dir`.
///
/// # Errors
/// When the directory is not there or something in it cannot be read.
///
/// # Refusals
/// Without a capture: what kept it from being read. With one: nothing, or notes.
pub fn open_capture(dir: &Path, torn: Torn) -> Result<(Option<Capture>, Findings), StoreError> {
    let listed = fs::read_dir(dir).map_err(io_error("open the capture directory", dir))?;
    let mut names = Vec::new();
    for entry in listed {
        names.push(entry.map_err(io_error("list", dir))?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let mut ingest = Ingest { dir: dir.to_owned(), torn, complete: true, findings: Findings::default() };
    let capture = ingest.capture(&names)?;
    let findings = ingest.findings;
    Ok((capture.filter(|_| findings.refusals.is_empty()), findings))
}

struct Ingest {
    dir: PathBuf,
    torn: Torn,
    /// Whether the run ended, as far as is known
    complete: bool,
    findings: Findings,
}

impl Ingest {
    fn refuse(&mut self, rule: Rule, file: &str, expected: impl Into<String>, found: impl Into<String>) {
        self.findings.refuse(rule, Subject::File(file.to_owned()), expected, found);
    }

    fn open(&mut self, name: &str) -> Result<Option<(File, u64)>, StoreError> {
        match open_regular(&self.dir.join(name), true)? {
            Found::File(file, len) => return Ok(Some((file, len))),
            Found::NotRegular(what) => self.refuse(Rule::NotARegularFile, name, "a regular file", what),
            Found::Nothing => self.refuse(Rule::TornCapture, name, "the file", "none"),
        }
        Ok(None)
    }

    fn capture(&mut self, names: &[String]) -> Result<Option<Capture>, StoreError> {
        let has = |file: &str| names.iter().any(|name| name == file);
        self.complete = has(RUN);
        let file_name = if !self.complete && self.torn == Torn::Kept && has(PARTIAL) { PARTIAL } else { RUN };
        if !has(file_name) {
            let begun = names.iter().any(|name| name == ROWS || name == PARTIAL || is_scores(name));
            if begun {
                let expected = "run.json, which is written last and marks the end of a run";
                self.refuse(Rule::TornCapture, RUN, expected, "none: the capture never ended");
            } else {
                self.findings.refuse(
                    Rule::NothingToVerify,
                    Subject::Capture,
                    "a capture directory with run.json",
                    "none",
                );
            }
            return Ok(None);
        }
        let Some((file, len)) = self.open(file_name)? else { return Ok(None) };
        if len > MAX_RUN_JSON {
            self.refuse(
                Rule::LimitExceeded,
                file_name,
                format!("at most {MAX_RUN_JSON} bytes"),
                format!("{len} bytes"),
            );
            return Ok(None);
        }
        let mut run_bytes = Vec::new();
        file.take(MAX_RUN_JSON).read_to_end(&mut run_bytes).map_err(io_error("read", self.dir.join(file_name)))?;
        let run = match Run::parse(&run_bytes) {
            Ok(run) => Some(run),
            Err(refusals) => {
                self.findings.refusals.extend(refusals);
                None
            }
        };
        let rows = self.rows()?;
        let attachments = self.attachments(names)?;
        self.note_strays(names, file_name, run.as_ref());
        let (Some(mut run), Some(mut rows)) = (run, rows) else { return Ok(None) };
        let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        if run.requests.is_empty() || count == 0 {
            let found = format!("{} requests, {count} rows", run.requests.len());
            self.findings.refuse(Rule::NothingToVerify, Subject::Capture, "requests and rows", found);
            return Ok(None);
        }
        let scores = match &run.scores {
            Some(declared) => self.scores(declared, &mut rows)?,
            None => None,
        };
        let mut order: Vec<(Row, u64)> = rows.into_iter().zip(0..).collect();
        order.sort_by_key(|(row, place)| (row.key, *place));
        let (rows, places): (Vec<Row>, Vec<u64>) = order.into_iter().unzip();
        if !self.complete {
            run.cut_to(&rows);
            let text = format!("the run never ended; its {} whole rows are kept and can never qualify", rows.len());
            self.findings.note(NoteKind::Observed, text);
        }
        Ok(Some(Capture { complete: self.complete, run, run_bytes, rows, places, scores, attachments }))
    }

    fn rows(&mut self) -> Result<Option<Vec<Row>>, StoreError> {
        let Some((file, _)) = self.open(ROWS)? else { return Ok(None) };
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let mut interner = Interner::default();
        let mut rows = Vec::new();
        let mut line = Vec::new();
        let faults = self.findings.refusals.len();
        // After a line that is no JSON: how many rows it stands for is not known, so neither is where the next ones should.
        let mut lost = false;
        for number in 1.. {
            line.clear();
            let read = reader.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut line);
            if read.map_err(io_error("read", self.dir.join(ROWS)))? == 0 {
                break;
            }
            let subject = Subject::Line(ROWS.to_owned(), number);
            if line.pop() != Some(b'\n') {
                let overlong = u64::try_from(line.len()).is_ok_and(|len| len >= MAX_LINE);
                if self.torn == Torn::Kept && !overlong {
                    self.complete = false;
                    break;
                }
                let (rule, expected) = if overlong {
                    (Rule::LimitExceeded, format!("at most {MAX_LINE} bytes"))
                } else {
                    (Rule::TornCapture, "a newline at the end of every line".to_owned())
                };
                self.findings.refuse(rule, subject, expected, "a line without an end");
                break;
            }
            if number > MAX_ROWS {
                self.findings.refuse(Rule::LimitExceeded, subject, format!("at most {MAX_ROWS} rows"), "more");
                break;
            }
            lost |= self.row(&line, number, lost, &mut interner, &mut rows).is_none();
        }
        Ok((self.findings.refusals.len() == faults).then_some(rows))
    }

    /// None where the line is no JSON.
    fn row(
        &mut self,
        line: &[u8],
        number: u64,
        lost: bool,
        interner: &mut Interner,
        rows: &mut Vec<Row>,
    ) -> Option<()> {
        let subject = || Subject::Line(ROWS.to_owned(), number);
        let json = match Json::parse(line) {
            Ok(json) => json,
            Err(error) => {
                self.findings.refuse(Rule::JsonNotCanonical, subject(), "strict JSON", error.to_string());
                return None;
            }
        };
        match Row::from_json(&json, interner) {
            Ok((row, stated)) => {
                if let Some(stated) = stated.filter(|&stated| stated != number - 1 && !lost) {
                    let expected = format!("row {}: rows stand in the order of the scores", number - 1);
                    self.findings.refuse(Rule::RowsMisnumbered, subject(), expected, format!("row {stated}"));
                }
                rows.push(row);
            }
            Err(faults) => {
                for fault in faults {
                    let expected = format!("{}: {}", fault.field, fault.expected);
                    self.findings.refuse(Rule::SchemaInvalid, subject(), expected, fault.found);
                }
            }
        }
        Some(())
    }

    /// The scores file. Of a run that never ended, rows go as far as their scores.
    fn scores(&mut self, declared: &ScoresDeclaration, rows: &mut Vec<Row>) -> Result<Option<File>, StoreError> {
        let name = declared.dtype.file_name();
        let Some((file, len)) = self.open(name)? else { return Ok(None) };
        if len == 0 {
            self.refuse(Rule::NothingToVerify, name, "scores", "0 bytes");
            return Ok(None);
        }
        let size = u64::try_from(declared.dtype.size()).unwrap_or(u64::MAX);
        let promised = u128::from(declared.rows) * u128::from(declared.vocab_size) * u128::from(size);
        let expected =
            format!("{promised} bytes ({} rows × {} scores × {size} bytes)", declared.rows, declared.vocab_size);
        let short = u128::from(len) < promised;
        if self.torn == Torn::Kept && (short || !self.complete) && declared.vocab_size <= MAX_VOCAB {
            self.complete = false;
            let whole = usize::try_from(len / (declared.vocab_size * size)).unwrap_or(usize::MAX);
            rows.truncate(whole);
            if rows.is_empty() {
                self.refuse(Rule::NothingToVerify, name, "the scores of one row", format!("{len} bytes"));
            }
            return Ok(Some(file));
        }
        if u128::from(len) != promised {
            let rule = if short { Rule::ScoresShort } else { Rule::ScoresTrailing };
            self.refuse(rule, name, expected, format!("{len} bytes"));
            return Ok(None);
        }
        if declared.vocab_size > MAX_VOCAB {
            let found = declared.vocab_size.to_string();
            self.refuse(Rule::LimitExceeded, name, format!("a vocabulary of at most {MAX_VOCAB}"), found);
            return Ok(None);
        }
        let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        if declared.rows != count {
            let rule = if count < declared.rows { Rule::RowMissing } else { Rule::RowUnexpected };
            let expected = format!("{} lines, one for each row of scores", declared.rows);
            self.refuse(rule, ROWS, expected, format!("{count} lines"));
            return Ok(None);
        }
        Ok(Some(file))
    }

    fn attachments(&mut self, names: &[String]) -> Result<Vec<(String, File)>, StoreError> {
        if !names.iter().any(|name| name == ATTACHMENTS) {
            return Ok(Vec::new());
        }
        let root = self.dir.join(ATTACHMENTS);
        // As below it, no link is followed.
        let kind = fs::symlink_metadata(&root).map_err(io_error("stat", &root))?.file_type();
        if !kind.is_dir() {
            self.refuse(Rule::NotARegularFile, ATTACHMENTS, "a folder", "a link or no folder");
            return Ok(Vec::new());
        }
        let mut paths = Vec::new();
        for entry in WalkDir::new(&root).follow_links(false) {
            let entry = entry.map_err(|error| {
                let path = error.path().unwrap_or(&root).to_owned();
                io_error("list", path)(error.into())
            })?;
            if !entry.file_type().is_dir() {
                paths.push(entry.into_path());
            }
        }
        if paths.len() > MAX_ATTACHMENTS {
            let found = paths.len().to_string();
            self.refuse(Rule::LimitExceeded, ATTACHMENTS, format!("at most {MAX_ATTACHMENTS} files"), found);
            return Ok(Vec::new());
        }
        let mut out = Vec::new();
        for path in paths {
            let below = path.strip_prefix(&root).unwrap_or(&path);
            let label = format!("{ATTACHMENTS}/{}", below.display());
            let Some(name) = below.to_str() else {
                self.refuse(Rule::PathEscape, &label, "a path in UTF-8", "other bytes");
                continue;
            };
            if let Err(why) = check_path(name) {
                self.refuse(Rule::PathEscape, &label, "a plain relative path", why);
                continue;
            }
            match open_regular(&path, false)? {
                Found::File(file, _) => out.push((name.to_owned(), file)),
                Found::NotRegular(_) | Found::Nothing => {
                    self.refuse(Rule::NotARegularFile, &label, "a regular file", "a link, pipe or device");
                }
            }
        }
        out.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
        Ok(out)
    }

    fn note_strays(&mut self, names: &[String], run_file: &str, run: Option<&Run>) {
        let scores = run.and_then(|run| run.scores.as_ref()).map(|scores| scores.dtype.file_name());
        let known = |name: &str| [run_file, ROWS, ATTACHMENTS].contains(&name) || Some(name) == scores;
        let strays: Vec<&str> = names.iter().map(String::as_str).filter(|name| !known(name)).collect();
        if !strays.is_empty() {
            let text = format!("not sealed, since it is no part of a capture: {}", strays.join(", "));
            self.findings.note(NoteKind::Observed, text);
        }
    }
}

fn is_scores(name: &str) -> bool {
    crate::canon::scores::Dtype::ALL.iter().any(|dtype| dtype.file_name() == name)
}

/// Refusals as findings.
impl From<Vec<Refusal>> for Findings {
    fn from(refusals: Vec<Refusal>) -> Self {
        Self { refusals, notes: Vec::new() }
    }
}
