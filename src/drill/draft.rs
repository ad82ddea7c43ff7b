//! Draft: a copy of a capture directory while it is being corrupted.
//!
//! Holds run.json, rows and where each row's scores come from; nothing is read or written that a corruption does not touch. Rows stand in key order,
//! as in an export.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::dice::Dice;
use super::{DrillError, Skip, not_applicable};
use crate::binding::{Request, Run, ScoresDeclaration};
use crate::canon::json::Json;
use crate::canon::scores::{Canonical, Dtype};
use crate::digest::{Sha256, Sha256Stream};
use crate::export::row_json;
use crate::id::{RequestKey, TokenId};
use crate::row::Row;
use crate::store::io_error;
use crate::verify::Verified;

/// The capture directory that drafts are copies of.
pub(super) struct Source<'a> {
    pub(super) capture: &'a Verified,
    /// Where it was exported to
    pub(super) dir: PathBuf,
    run_bytes: Vec<u8>,
    scores: Option<File>,
    /// Run ids whose outputs the verifier can look up
    pub(super) visible: Vec<String>,
}

impl<'a> Source<'a> {
    pub(super) fn new(capture: &'a Verified, dir: PathBuf, visible: Vec<String>) -> Result<Self, DrillError> {
        let name = if capture.manifest().capture.complete { "run.json" } else { "run.json.partial" };
        let path = dir.join(name);
        let run_bytes = fs::read(&path).map_err(io_error("read", path))?;
        let scores = match &capture.run().scores {
            None => None,
            Some(declared) => {
                let path = dir.join(declared.dtype.file_name());
                Some(File::open(&path).map_err(io_error("open", path))?)
            }
        };
        Ok(Self { capture, dir, run_bytes, scores, visible })
    }
}

/// Where the scores of a row come from.
enum Scores {
    /// The row of the original with this number
    Kept(usize),
    /// These bytes, in the dtype of the file
    Changed(Vec<u8>),
}

/// What is done to the files themselves, after they are written.
pub(super) enum FileChange {
    RunMissing,
    /// Cut so many bytes off the end of rows.jsonl
    RowsCut(usize),
    RowsSwapped(usize, usize),
    /// These bytes stand twice, as a member of an object: before the last brace of run.json
    RunMember(&'static str),
    /// … and of the first line of rows.jsonl
    RowMember(&'static str),
    ScoresCut(u64),
    ScoresLonger(u64),
}

/// The copy.
pub(super) struct Draft<'s, 'a> {
    source: &'s Source<'a>,
    run: Option<Json>,
    pub(super) rows: Vec<Row>,
    scores: Vec<Scores>,
    /// Whether scores are others than in the original, or stand elsewhere
    moved: bool,
    pub(super) change: Option<FileChange>,
}

impl<'s, 'a> Draft<'s, 'a> {
    pub(super) fn new(source: &'s Source<'a>) -> Result<Self, DrillError> {
        let rows = source.capture.rows().to_vec();
        let scores = if source.scores.is_some() { (0..rows.len()).map(Scores::Kept).collect() } else { Vec::new() };
        Ok(Self { source, run: None, rows, scores, moved: false, change: None })
    }

    /// run.json of the original.
    pub(super) fn run(&self) -> &'a Run {
        self.source.capture.run()
    }

    /// What run.json says of the scores; a baseline has none to corrupt.
    pub(super) fn declared(&self) -> Result<&'a ScoresDeclaration, Skip> {
        match &self.run().scores {
            Some(declared) => Ok(declared),
            None => not_applicable("a baseline has no scores"),
        }
    }

    /// The number of token ids.
    pub(super) fn vocab(&self) -> Result<usize, Skip> {
        Ok(usize::try_from(self.declared()?.vocab_size).unwrap_or(usize::MAX))
    }

    /// One of the rows that `accept` takes.
    pub(super) fn find(&self, dice: &mut Dice, why: &str, accept: impl Fn(&Row) -> bool) -> Result<usize, Skip> {
        let fit: Vec<usize> = (0..self.rows.len()).filter(|&n| accept(&self.rows[n])).collect();
        dice.pick(&fit).map_or_else(|| not_applicable(why), Ok)
    }

    /// The rows of each request.
    pub(super) fn groups(&self) -> Vec<Range<usize>> {
        let mut start = 0;
        let chunks = self.rows.chunk_by(|a, b| a.request() == b.request());
        chunks
            .map(|chunk| {
                start += chunk.len();
                start - chunk.len()..start
            })
            .collect()
    }

    /// One of the requests with at least `least` rows.
    pub(super) fn group(&self, dice: &mut Dice, least: usize) -> Result<Range<usize>, Skip> {
        let fit: Vec<(usize, usize)> = self
            .groups()
            .into_iter()
            .filter(|group| group.len() >= least)
            .map(|group| (group.start, group.end))
            .collect();
        match dice.pick(&fit) {
            Some((start, end)) => Ok(start..end),
            None => not_applicable(format!("no request has {least} rows")),
        }
    }

    /// The request with this key, and its place in run.json.
    pub(super) fn request(&self, key: RequestKey) -> Result<(usize, &'a Request), Skip> {
        let found = self.run().requests.iter().enumerate().find(|(_, request)| request.key == key);
        found.map_or_else(|| not_applicable("no such request"), Ok)
    }

    /// Whether the verifier can look up what the request is forced along.
    pub(super) fn continuation_is_visible(&self, request: &Request) -> bool {
        request.continuation.as_ref().is_some_and(|continuation| {
            let named = continuation.source.as_ref().is_some_and(|(run, _)| self.source.visible.contains(run));
            continuation.token_ids.is_some() || named
        })
    }

    /// Whether a digest that was made at capture time covers the row's scores.
    pub(super) fn is_witnessed(&self, row: usize) -> bool {
        self.rows[row].scores_sha256.is_some() || self.rows[row].scores_blake3.is_some()
    }

    /// A row with scores that no other row has, bit for bit, and with a digest made at capture time, where any has one.
    pub(super) fn scored(&self, dice: &mut Dice) -> Result<usize, Skip> {
        self.declared()?;
        let witnessed = (0..self.rows.len()).any(|row| self.is_witnessed(row));
        let unique = |row: &Row| {
            self.source.capture.rows().iter().filter(|other| other.score_digest == row.score_digest).count() == 1
        };
        let fits = |row: &Row| !witnessed || row.scores_sha256.is_some() || row.scores_blake3.is_some();
        self.find(dice, "no row has scores of its own", |row| fits(row) && unique(row))
    }

    /// The scores of a row as they stand in the file.
    pub(super) fn bytes(&self, row: usize) -> Result<Vec<u8>, Skip> {
        let declared = self.declared()?;
        let (Some(file), Some(scores)) = (&self.source.scores, self.scores.get(row)) else {
            return not_applicable("a baseline has no scores");
        };
        Ok(read_row(file, declared, scores).map_err(io_error("read", declared.dtype.file_name()))?)
    }

    /// … and in canonical form.
    pub(super) fn canonical(&self, row: usize) -> Result<Canonical, Skip> {
        let mut canonical = Canonical::default();
        canonical.set_from_file_row(self.declared()?.dtype, &self.bytes(row)?);
        Ok(canonical)
    }

    pub(super) fn set_bytes(&mut self, row: usize, bytes: Vec<u8>) {
        if let Some(scores) = self.scores.get_mut(row) {
            *scores = Scores::Changed(bytes);
            self.moved = true;
        }
    }

    /// Makes the digests of a row's scores anew, as an adapter does that writes what it hashed.
    pub(super) fn witness_anew(&mut self, row: usize) -> Result<(), Skip> {
        let bytes = self.bytes(row)?;
        let blake3 = self.canonical(row)?.digest();
        let row = &mut self.rows[row];
        row.scores_sha256 = row.scores_sha256.map(|_| Sha256::of(&bytes));
        row.scores_blake3 = row.scores_blake3.map(|_| blake3);
        Ok(())
    }

    /// Makes the digest of all scores anew, where run.json has one.
    pub(super) fn witness_all_anew(&mut self) -> Result<(), Skip> {
        if self.declared()?.f32_sha256_at_capture.is_none() {
            return Ok(());
        }
        let (mut stream, mut wide) = (Sha256Stream::default(), Vec::new());
        for row in 0..self.rows.len() {
            self.canonical(row)?.write_as(Dtype::F32, &mut wide);
            stream.update(&wide);
        }
        self.set("scores.f32_sha256_at_capture", Json::String(stream.digest().to_string()))
    }

    /// Makes the chain anew, where there is one.
    pub(super) fn chain_anew(&mut self) -> Result<(), Skip> {
        let mut order: Vec<usize> = (0..self.rows.len()).filter(|row| self.rows[*row].chain_sha256.is_some()).collect();
        order.sort_by_key(|row| self.rows[*row].captured_seq);
        let mut chain = Sha256::of(self.run().run_nonce.as_deref().unwrap_or_default().as_bytes());
        for index in order {
            let scores = Sha256::of(&self.bytes(index)?);
            let row = &mut self.rows[index];
            let mut link = Sha256Stream::default();
            for part in [&chain.0[..], &row.prefix_sha256.0, &row.token_id.0.to_le_bytes(), &scores.0] {
                link.update(part);
            }
            chain = link.digest();
            row.chain_sha256 = Some(chain);
        }
        Ok(())
    }

    /// Leaves a row out, with its scores.
    pub(super) fn remove(&mut self, row: usize) {
        self.rows.remove(row);
        self.take_scores(row);
    }

    fn take_scores(&mut self, row: usize) {
        if row < self.scores.len() {
            self.scores.remove(row);
            self.moved = true;
        }
    }

    /// Adds a row at `place` with the scores of the row at `from`.
    pub(super) fn insert(&mut self, place: usize, row: Row, from: usize) -> Result<(), Skip> {
        if !self.scores.is_empty() {
            let bytes = self.bytes(from)?;
            self.scores.insert(place, Scores::Changed(bytes));
            self.moved = true;
        }
        self.rows.insert(place, row);
        Ok(())
    }

    /// Leaves a line out of rows.jsonl and the scores as they are.
    pub(super) fn remove_line(&mut self, row: usize) {
        self.rows.remove(row);
    }

    /// Makes run.json declare as many rows of scores as there are.
    pub(super) fn declare_rows(&mut self) -> Result<(), Skip> {
        if self.scores.is_empty() {
            return Ok(());
        }
        self.set("scores.rows", Json::Number(self.rows.len().to_string()))
    }

    /// The value at a dotted path of run.json, to be changed; arrays by number.
    pub(super) fn at(&mut self, path: &str) -> Result<&mut Json, Skip> {
        let run = self.run();
        let json = self.run.get_or_insert_with(|| run.json().clone());
        find_mut(json, path).map_or_else(|| not_applicable(format!("run.json has no {path}")), Ok)
    }

    pub(super) fn set(&mut self, path: &str, value: Json) -> Result<(), Skip> {
        *self.at(path)? = value;
        Ok(())
    }

    /// Computes the prefix digests of a request's rows from run.json as it is now.
    pub(super) fn prefixes_anew(&mut self, key: RequestKey) -> Result<(), Skip> {
        let text = self.run.as_ref().unwrap_or(self.run().json()).to_text();
        let Ok(run) = Run::parse(text.as_bytes()) else { return not_applicable("run.json cannot be changed so") };
        let Some(request) = run.requests.iter().find(|request| request.key == key) else { return Ok(()) };
        for row in self.rows.iter_mut().filter(|row| row.request() == key) {
            let consumed = usize::try_from(row.key.position).unwrap_or(usize::MAX);
            let mut stream = Sha256Stream::default();
            let tokens = request.prompt_token_ids.iter().chain(request.output_token_ids.iter().take(consumed));
            tokens.for_each(|token| stream.update(&token.0.to_le_bytes()));
            row.prefix_sha256 = stream.digest();
        }
        Ok(())
    }

    /// A token id of the vocabulary whose score is below the highest.
    pub(super) fn lesser_token(&self, row: usize, dice: &mut Dice) -> Result<TokenId, Skip> {
        let scores = self.canonical(row)?;
        let mut values = Vec::new();
        scores.widen_into(&mut values);
        let second = scores.scan(&self.declared()?.masked_token_ids).second;
        let lesser: Vec<u32> =
            (0_u32..).zip(values).filter(|(_, value)| value.is_finite() && *value < second).map(|(id, _)| id).collect();
        dice.pick(&lesser)
            .map_or_else(|| not_applicable("all scores of the row are among the two highest"), |id| Ok(TokenId(id)))
    }

    /// run.json as it stands now.
    pub(super) fn run_bytes(&self) -> Vec<u8> {
        self.run.as_ref().map_or_else(|| self.source.run_bytes.clone(), |json| json.to_text().into_bytes())
    }

    /// The scores of a row in the file's dtype, where they are others than those of the original row in the same place.
    pub(super) fn changed(&self, row: usize) -> Option<&[u8]> {
        match self.scores.get(row) {
            Some(Scores::Changed(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// Writes the directory: files that were not touched are links to the original's.
    pub(super) fn write(&self, dir: &Path) -> Result<(), DrillError> {
        Ok(self.write_files(dir).map_err(io_error("write", dir))?)
    }

    fn write_files(&self, dir: &Path) -> io::Result<()> {
        super::link_tree(&self.source.dir, dir)?;
        let replace = |name: &str, bytes: &[u8]| {
            fs::remove_file(dir.join(name))?;
            fs::write(dir.join(name), bytes)
        };
        let mut lines: Vec<String> =
            self.rows.iter().zip(0..).map(|(row, number)| row_json(row, number).to_text() + "\n").collect();
        let mut run = self.run_bytes();
        match &self.change {
            Some(FileChange::RowsSwapped(a, b)) => lines.swap(*a, *b),
            Some(FileChange::RowMember(member)) => lines.iter_mut().take(1).for_each(|line| add_member(line, member)),
            Some(FileChange::RunMember(member)) => {
                let mut text = String::from_utf8_lossy(&run).into_owned();
                add_member(&mut text, member);
                run = text.into_bytes();
            }
            _ => {}
        }
        let mut rows = lines.concat();
        if let Some(FileChange::RowsCut(bytes)) = self.change {
            rows.truncate(rows.len().saturating_sub(bytes));
        }
        replace("rows.jsonl", rows.as_bytes())?;
        match self.change {
            Some(FileChange::RunMissing) => fs::remove_file(dir.join("run.json"))?,
            _ => replace("run.json", &run)?,
        }
        self.write_scores(dir)
    }

    fn write_scores(&self, dir: &Path) -> io::Result<()> {
        let resized = matches!(self.change, Some(FileChange::ScoresCut(_) | FileChange::ScoresLonger(_)));
        let (Some(declared), Some(file)) = (&self.run().scores, &self.source.scores) else { return Ok(()) };
        if !self.moved && !resized {
            return Ok(());
        }
        let path = dir.join(declared.dtype.file_name());
        fs::remove_file(&path)?;
        let mut out = BufWriter::with_capacity(1 << 18, File::create_new(&path)?);
        for scores in &self.scores {
            match scores {
                Scores::Changed(bytes) => out.write_all(bytes)?,
                kept @ Scores::Kept(_) => out.write_all(&read_row(file, declared, kept)?)?,
            }
        }
        let out = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        let len = out.metadata()?.len();
        match self.change {
            Some(FileChange::ScoresCut(bytes)) => out.set_len(len.saturating_sub(bytes)),
            Some(FileChange::ScoresLonger(bytes)) => out.set_len(len + bytes),
            _ => Ok(()),
        }
    }
}

fn read_row(file: &File, declared: &ScoresDeclaration, scores: &Scores) -> io::Result<Vec<u8>> {
    match scores {
        Scores::Changed(bytes) => Ok(bytes.clone()),
        Scores::Kept(row) => {
            let len = usize::try_from(declared.vocab_size).map_err(io::Error::other)? * declared.dtype.size();
            let mut bytes = vec![0; len];
            file.read_exact_at(&mut bytes, u64::try_from(row * len).map_err(io::Error::other)?)?;
            Ok(bytes)
        }
    }
}

/// The value at a dotted path; arrays by number.
pub(super) fn find_mut<'j>(json: &'j mut Json, path: &str) -> Option<&'j mut Json> {
    path.split('.').try_fold(json, |json, key| match json {
        Json::Object(members) => members.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value),
        Json::Array(items) => key.parse::<usize>().ok().and_then(|n| items.get_mut(n)),
        _ => None,
    })
}

fn add_member(text: &mut String, member: &str) {
    if let Some(end) = text.rfind('}') {
        text.insert_str(end, member);
    }
}
