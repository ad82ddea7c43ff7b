//! run.json: what a run is bound to, and which rows it promises.
//!
//! In come the raw bytes, out comes a [`Run`] that cannot hold what the schema forbids, or all the faults. The bytes are what
//! is sealed; a `Run` is parsed from them at each use and never copied anywhere. Unknown keys are kept and so bound. A key
//! with the value null counts as absent. See `specs/format-v1.md`, section 10, and `schemas/run.schema.json`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::canon::json::Json;
use crate::canon::scores::Dtype;
use crate::digest::Sha256;
use crate::id::{RequestKey, TokenId};
use crate::refusal::{Refusal, Rule, Subject};
use crate::row::Row;
use crate::row::{MAX_INT32, MAX_INT64, MAX_NAME, integer};

/// `schema` of run.json.
pub const RUN_SCHEMA: &str = "witnessmark.run/v1";
/// The largest run.json, in bytes.
pub const MAX_RUN_JSON: u64 = 64 << 20;
/// The largest vocabulary.
pub const MAX_VOCAB: u64 = 1 << 24;

/// Bindings that identify a run. A plain verify lists those that run.json does not give.
pub const IDENTIFYING: [&str; 26] = [
    "corpus",
    "device.name",
    "device.runtime",
    "engine.attention",
    "engine.binary_sha256",
    "engine.commit",
    "engine.execution",
    "engine.name",
    "engine.version",
    "extraction",
    "model.files",
    "model.id",
    "model.kv_dtype",
    "model.transform",
    "model.weights_dtype",
    "role",
    "run_nonce",
    "sampling.max_new_tokens",
    "sampling.method",
    "schedule.prefix_caching",
    "schedule.requested_concurrency",
    "schedule.slots",
    "schedule.speculation",
    "schedule.step",
    "tokenizer.files",
    "tokenizer.vocab_size",
];

/// Keys that two runs of one configuration do not share. They are no bindings: `diff` counts them as incidental.
const INCIDENTAL: [&str; 5] = ["cut_from", "requests", "run_id", "run_nonce", "scores.f32_sha256_at_capture"];

/// All bindings that the format describes. run.json may give others too.
pub const DESCRIBED: [&str; 51] = [
    "corpus",
    "cut_from.note",
    "cut_from.run_json_sha256",
    "device.kind",
    "device.name",
    "device.runtime",
    "engine.attention",
    "engine.binary_sha256",
    "engine.commit",
    "engine.execution",
    "engine.framework",
    "engine.name",
    "engine.version",
    "eos_token_ids",
    "extraction",
    "mode",
    "model.files",
    "model.id",
    "model.kv_dtype",
    "model.transform",
    "model.weights_dtype",
    "requests",
    "role",
    "rows",
    "run_id",
    "run_nonce",
    "sampling.ignore_eos",
    "sampling.max_new_tokens",
    "sampling.method",
    "sampling.seed",
    "sampling.temperature",
    "sampling.tie",
    "schedule.batching",
    "schedule.prefix_caching",
    "schedule.requested_concurrency",
    "schedule.slots",
    "schedule.speculation",
    "schedule.step",
    "schema",
    "scores.byte_order",
    "scores.dtype",
    "scores.f32_sha256_at_capture",
    "scores.file",
    "scores.kind",
    "scores.masked_token_ids",
    "scores.rows",
    "scores.semantic_point",
    "scores.vocab_size",
    "tokenizer.files",
    "tokenizer.source",
    "tokenizer.vocab_size",
];

/// Whether the format describes what is at a dotted path, something below it, or what it is a part of.
#[must_use]
pub fn is_described(path: &str) -> bool {
    let within =
        |part: &str, whole: &str| part.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    DESCRIBED.iter().any(|known| within(path, known) || within(known, path))
}

/// How a run was driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Tokens only: the engine without instrumentation
    Baseline,
    /// Scores captured, nothing forced
    CaptureOnly,
    /// Forced along its own tokens
    SelfReplay,
    /// Forced along another run's tokens
    CommonReplay,
}

impl Mode {
    /// All modes with their names in run.json.
    pub const ALL: [(&str, Mode); 4] = [
        ("baseline", Mode::Baseline),
        ("capture-only", Mode::CaptureOnly),
        ("self-replay", Mode::SelfReplay),
        ("common-replay", Mode::CommonReplay),
    ];

    /// The name in run.json.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }

    /// Whether tokens are forced.
    #[must_use]
    pub fn is_replay(self) -> bool {
        matches!(self, Mode::SelfReplay | Mode::CommonReplay)
    }
}

/// Whose run it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The engine that is judged
    Candidate,
    /// The engine that it is compared with
    Oracle,
}

impl Role {
    /// Both.
    pub const ALL: [Role; 2] = [Role::Candidate, Role::Oracle];

    /// The name in run.json.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::Candidate => "candidate",
            Role::Oracle => "oracle",
        }
    }
}

/// Why a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinishReason {
    /// It had all the tokens that were asked for
    Length,
    /// A stop condition
    Stop,
    /// It was given up
    Abort,
}

/// What a replay forces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Continuation {
    /// The run and the request whose tokens are forced
    pub source: Option<(String, String)>,
    /// The tokens themselves
    pub token_ids: Option<Vec<TokenId>>,
}

/// What an output is to the run that a replay names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Course {
    /// The run is not there, never ended, or has no such request, as what was cut from one may not
    Unseen,
    /// It may be there: who looks it up asks again when all captures are
    Later,
    /// What the run generated for the request, or one of the captures that have its run id
    Followed,
    /// Something else; this is what the run generated
    Left(Vec<TokenId>),
}

impl Course {
    /// What `output` is to what a run `generated`.
    #[must_use]
    pub fn of(output: &[TokenId], generated: &[TokenId]) -> Self {
        if output == generated { Self::Followed } else { Self::Left(generated.to_vec()) }
    }

    /// What an output is to one of two runs of the same id: to the one that it follows, or else to the one that was seen, the first of both.
    #[must_use]
    pub fn or(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Followed => self,
            Self::Unseen | Self::Later => other(),
            Self::Left(_) => match other() {
                Self::Followed => Self::Followed,
                _ => self,
            },
        }
    }
}

/// One request of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its name in this run
    pub request_id: String,
    /// Its place in the workload
    pub key: RequestKey,
    /// The prompt
    pub prompt_token_ids: Vec<TokenId>,
    /// What was generated, as the engine returned it
    pub output_token_ids: Vec<TokenId>,
    /// Why it ended
    pub finish_reason: Option<FinishReason>,
    /// What was forced
    pub continuation: Option<Continuation>,
    /// The positions that a partial capture kept, ascending
    pub positions: Option<Vec<u32>>,
}

impl Request {
    /// The positions that must each have one row, ascending.
    #[must_use]
    pub fn expected_positions(&self) -> Vec<u32> {
        let all = || (0..).take(self.output_token_ids.len()).collect();
        self.positions.clone().unwrap_or_else(all)
    }
}

/// What run.json says of the scores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoresDeclaration {
    /// dtype of the scores file
    pub dtype: Dtype,
    /// Number of rows
    pub rows: u64,
    /// Values a row, 1 to 2^24; larger only in a run that is about to be refused
    pub vocab_size: u64,
    /// Token ids whose score must be −Inf, ascending
    pub masked_token_ids: Vec<u32>,
    /// SHA-256 of all scores as f32, rows in key order
    pub f32_sha256_at_capture: Option<Sha256>,
}

/// A file that run.json identifies by its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredFile {
    /// Where in run.json: `model` or `tokenizer`
    pub of: &'static str,
    /// Path below the model's folder
    pub path: String,
    /// SHA-256 of the file
    pub sha256: Sha256,
    /// Its size
    pub bytes: Option<u64>,
}

/// A parsed run.json.
#[derive(Debug, Clone)]
pub struct Run {
    json: Json,
    /// Name of the run
    pub run_id: String,
    /// A value that every row of this run carries
    pub run_nonce: Option<String>,
    /// How the run was driven
    pub mode: Mode,
    /// Whether it claims that the adapter itself took the scores; false for engine-side extraction
    pub adapter_extraction: bool,
    /// The scores; none in a baseline
    pub scores: Option<ScoresDeclaration>,
    /// The requests, as run.json orders them
    pub requests: Vec<Request>,
    /// Whether `sampling.method` is greedy; none when it is not given
    pub greedy: Option<bool>,
    /// `sampling.max_new_tokens`
    pub max_new_tokens: Option<u64>,
    /// Whether speculation is declared
    pub speculation: bool,
    /// Model and tokenizer files
    pub files: Vec<DeclaredFile>,
}

impl Run {
    /// Reads run.json.
    ///
    /// # Refusals
    /// json-not-canonical, schema-invalid, path-escape, limit-exceeded: all faults, not the first.
    pub fn parse(bytes: &[u8]) -> Result<Run, Vec<Refusal>> {
        let json = Json::parse(bytes).map_err(|error| {
            let subject = Subject::File("run.json".to_owned());
            vec![Refusal::new(Rule::from(&error), subject, "strict JSON", error.to_string())]
        })?;
        let mut reader = Reader { faults: Vec::new() };
        let run = reader.run(json);
        if reader.faults.is_empty() { Ok(run) } else { Err(reader.faults) }
    }

    /// The whole of run.json.
    #[must_use]
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// The run without its requests, which are nearly all of it: what tells it from other runs.
    #[must_use]
    pub fn without_requests(mut self) -> Self {
        self.requests = Vec::new();
        if let Json::Object(members) = &mut self.json {
            members.retain(|(key, _)| key != "requests");
            members.shrink_to_fit();
        }
        self
    }

    /// The requests by their keys; where a key stands twice, the first.
    #[must_use]
    pub fn requests_by_key(&self) -> BTreeMap<RequestKey, &Request> {
        let mut map = BTreeMap::new();
        for request in &self.requests {
            map.entry(request.key).or_insert(request);
        }
        map
    }

    /// Whether only some positions were kept.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.requests.iter().any(|request| request.positions.is_some())
    }

    /// The run as far as these rows show it, where it never ended (format section 10.2). Each request has the positions and, where they go on, the
    /// tokens of its rows; what only an end decides is not asked: why a request ended, how long its continuation was, how many rows there are.
    pub fn cut_to(&mut self, rows: &[Row]) {
        if let Some(scores) = &mut self.scores {
            scores.rows = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        }
        let mut own: BTreeMap<RequestKey, Vec<&Row>> = BTreeMap::new();
        for row in rows {
            own.entry(row.request()).or_default().push(row);
        }
        for request in &mut self.requests {
            let mut positions = Vec::new();
            for row in own.get(&request.key).into_iter().flatten() {
                let place = usize::try_from(row.key.position).unwrap_or(usize::MAX);
                if place == request.output_token_ids.len() {
                    request.output_token_ids.push(row.token_id);
                }
                if place < request.output_token_ids.len() {
                    positions.push(row.key.position);
                }
            }
            positions.dedup();
            request.positions = Some(positions);
            request.finish_reason = None;
            request.continuation = None;
        }
    }

    /// The value at a dotted path; null counts as a value here, since `"transform": null` says that there was none.
    #[must_use]
    pub fn binding(&self, path: &str) -> Option<&Json> {
        path.split('.').try_fold(&self.json, |json, key| match json {
            Json::Object(members) => members.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        })
    }

    /// The [`IDENTIFYING`] bindings that run.json does not give.
    #[must_use]
    pub fn unbound(&self) -> Vec<&'static str> {
        IDENTIFYING.into_iter().filter(|path| self.binding(path).is_none()).collect()
    }

    /// All bindings, flattened: dotted path and value as JSON, sorted by path. Without what is incidental to one run.
    #[must_use]
    pub fn bindings(&self) -> BTreeMap<String, String> {
        let mut out = BTreeMap::new();
        flatten(&self.json, String::new(), &mut out);
        out
    }

    /// Whose run it is, where run.json says so.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        let Some(Json::String(found)) = self.binding("role") else { return None };
        Role::ALL.into_iter().find(|role| role.name() == found)
    }

    /// So many sequences some batch must have had for the requested concurrency to be reached: as many as were requested, or as there are requests.
    /// None where nothing was requested: of 0 it cannot be said that it was reached.
    #[must_use]
    pub fn batch_wanted(&self) -> Option<u64> {
        let requests = u64::try_from(self.requests.len()).unwrap_or(u64::MAX);
        let wanted = self.requested_concurrency().map(|requested| u64::from(requested).min(requests));
        wanted.filter(|wanted| *wanted > 0)
    }

    /// `schedule.requested_concurrency`.
    #[must_use]
    pub fn requested_concurrency(&self) -> Option<u32> {
        let found = integer(self.binding("schedule.requested_concurrency")?, MAX_INT32)?;
        u32::try_from(found).ok()
    }

    /// Where `mode` and the declared slots and step put this run: what claims about two runs must agree on.
    #[must_use]
    pub fn declared_shape(&self) -> BTreeMap<&'static str, Option<String>> {
        ["schedule.requested_concurrency", "schedule.slots", "schedule.step"]
            .into_iter()
            .map(|path| (path, self.binding(path).filter(|json| **json != Json::Null).map(Json::to_text)))
            .collect()
    }
}

fn flatten(json: &Json, path: String, out: &mut BTreeMap<String, String>) {
    if INCIDENTAL.contains(&path.as_str()) {
        return;
    }
    let join = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match json {
        Json::Object(members) if !members.is_empty() => {
            for (key, value) in members {
                flatten(value, join(key), out);
            }
        }
        Json::Array(items) if !items.is_empty() => {
            for (n, value) in items.iter().enumerate() {
                flatten(value, format!("{path}[{n}]"), out);
            }
        }
        _ => {
            out.insert(path, json.to_text());
        }
    }
}

/// A path below a folder: relative, `/` between components, nothing that could lead out of it.
///
/// # Errors
/// What is wrong with it.
pub fn check_path(path: &str) -> Result<(), &'static str> {
    if path.is_empty() || path.len() > MAX_NAME {
        return Err("an empty or overlong path");
    }
    if path.chars().any(|c| c == '\\' || c == ':' || c < ' ') {
        return Err("a backslash, colon or control character");
    }
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err("an absolute path, or a component that is empty, . or ..");
    }
    Ok(())
}

/// The first of some paths that is a folder on the way to another: no file system has both.
#[must_use]
pub fn folder_and_file<'p>(paths: &BTreeSet<&'p str>) -> Option<&'p str> {
    let folders = |path: &'p str| path.match_indices('/').filter_map(move |(at, _)| path.get(..at));
    paths.iter().flat_map(|path| folders(path)).find(|folder| paths.contains(folder))
}

struct Reader {
    faults: Vec<Refusal>,
}

impl Reader {
    fn fault(&mut self, rule: Rule, path: &str, expected: impl Into<String>, found: impl Into<String>) {
        self.faults.push(Refusal::new(rule, Subject::Binding(path.to_owned()), expected, found));
    }

    /// `None` with a fault noted when the value is there and wrong, or required and not there.
    fn want<'a, T>(
        &mut self,
        json: &'a Json,
        (path, key): (&str, &str),
        required: bool,
        expected: &str,
        read: impl FnOnce(&'a Json) -> Option<T>,
    ) -> Option<T> {
        let value = json.get(key);
        let read = value.and_then(read);
        if read.is_none() && (required || value.is_some()) {
            let found = value.map_or("nothing".to_owned(), |value| {
                let text = value.to_text();
                if text.len() <= 80 { text } else { value.type_name().to_owned() }
            });
            self.fault(Rule::SchemaInvalid, &join(path, key), expected, found);
        }
        read
    }

    fn name(&mut self, json: &Json, place: (&str, &str), required: bool) -> Option<String> {
        self.want(json, place, required, "a string of 1 to 1024 bytes", |value| match value {
            Json::String(text) if !text.is_empty() && text.len() <= MAX_NAME => Some(text.clone()),
            _ => None,
        })
    }

    fn int(&mut self, json: &Json, place: (&str, &str), required: bool, max: u64) -> Option<u64> {
        self.want(json, place, required, &format!("an integer from 0 to {max}"), |value| integer(value, max))
    }

    fn ids(&mut self, json: &Json, place: (&str, &str), required: bool) -> Option<Vec<u32>> {
        self.want(json, place, required, "an array of integers from 0 to 2^31 − 1", |value| match value {
            Json::Array(items) => {
                items.iter().map(|item| integer(item, MAX_INT32).and_then(|n| u32::try_from(n).ok())).collect()
            }
            _ => None,
        })
    }

    fn ascending(&mut self, json: &Json, place: (&str, &str)) -> Option<Vec<u32>> {
        let ids = self.ids(json, place, false)?;
        if !ids.is_sorted_by(|a, b| a < b) {
            self.fault(Rule::SchemaInvalid, &join(place.0, place.1), "strictly ascending integers", "another order");
        }
        Some(ids)
    }

    fn tokens(&mut self, json: &Json, place: (&str, &str), required: bool) -> Option<Vec<TokenId>> {
        self.ids(json, place, required).map(|ids| ids.into_iter().map(TokenId).collect())
    }

    fn digest(&mut self, json: &Json, place: (&str, &str), required: bool) -> Option<Sha256> {
        self.want(json, place, required, "64 lower-case hexadecimal digits", |value| match value {
            Json::String(text) => text.parse().ok(),
            _ => None,
        })
    }

    /// One of the names of `options`.
    fn choice<T: Copy>(
        &mut self,
        json: &Json,
        place: (&str, &str),
        required: bool,
        options: &[(&str, T)],
    ) -> Option<T> {
        let names: Vec<&str> = options.iter().map(|(name, _)| *name).collect();
        self.want(json, place, required, &format!("one of {}", names.join(", ")), |value| match value {
            Json::String(text) => options.iter().find(|(name, _)| name == text).map(|(_, value)| *value),
            _ => None,
        })
    }

    fn section<'a>(&mut self, json: &'a Json, key: &str) -> &'a Json {
        self.want(json, ("", key), false, "an object", |value| matches!(value, Json::Object(_)).then_some(value))
            .unwrap_or(&Json::Null)
    }

    fn run(&mut self, json: Json) -> Run {
        self.choice(&json, ("", "schema"), true, &[(RUN_SCHEMA, ())]);
        let run_id = self.name(&json, ("", "run_id"), true).unwrap_or_default();
        let run_nonce = self.name(&json, ("", "run_nonce"), false);
        let mode = self.choice(&json, ("", "mode"), true, &Mode::ALL);
        self.choice(&json, ("", "role"), false, &[("oracle", ()), ("candidate", ())]);
        let extractions = [("adapter", true), ("engine", false), ("after-id-replay", false)];
        let adapter_extraction = self.choice(&json, ("", "extraction"), false, &extractions).unwrap_or(true);
        let rows = self.name(&json, ("", "rows"), false);
        if let Some(rows) = rows.filter(|rows| rows != "rows.jsonl") {
            let rule = if check_path(&rows).is_err() { Rule::PathEscape } else { Rule::SchemaInvalid };
            self.fault(rule, "rows", "rows.jsonl", format!("{rows:?}"));
        }

        let scores = self.scores(&json, mode);
        let sampling = self.section(&json, "sampling");
        let greedy = self
            .want(sampling, ("sampling", "method"), false, "a string", |value| match value {
                Json::String(text) => Some(text.clone()),
                _ => None,
            })
            .map(|method| method == "greedy");
        let max_new_tokens = self.int(sampling, ("sampling", "max_new_tokens"), false, MAX_INT32);
        let schedule = self.section(&json, "schedule");
        let speculation = match schedule.get("speculation") {
            None | Some(Json::Bool(false)) => false,
            Some(Json::String(text)) => text != "none",
            Some(_) => true,
        };
        let mut files = Vec::new();
        for of in ["model", "tokenizer"] {
            let section = self.section(&json, of);
            self.files(of, section, &mut files);
        }
        let requests = self.requests(&json);
        Run {
            run_id,
            run_nonce,
            mode: mode.unwrap_or(Mode::Baseline),
            adapter_extraction,
            scores,
            requests,
            greedy,
            max_new_tokens,
            speculation,
            files,
            json,
        }
    }

    /// Where the mode is not known, scores are read if there are any: whether there should be is not asked.
    fn scores(&mut self, json: &Json, mode: Option<Mode>) -> Option<ScoresDeclaration> {
        let scores = self.section(json, "scores");
        match (mode, *scores == Json::Null) {
            (Some(Mode::Baseline), false) => {
                self.fault(Rule::SchemaInvalid, "scores", "no scores in a baseline", "scores");
                return None;
            }
            (None | Some(Mode::Baseline), true) => return None,
            (Some(_), true) => {
                self.fault(Rule::SchemaInvalid, "scores", "an object in every mode but baseline", "nothing");
                return None;
            }
            (_, false) => {}
        }
        let dtypes = Dtype::ALL.map(|dtype| (dtype.name(), dtype));
        let dtype = self.choice(scores, ("scores", "dtype"), true, &dtypes);
        let file = self.name(scores, ("scores", "file"), false);
        if let (Some(dtype), Some(file)) = (dtype, file)
            && file != dtype.file_name()
        {
            let rule = if check_path(&file).is_err() { Rule::PathEscape } else { Rule::SchemaInvalid };
            let expected = format!("{} for dtype {}", dtype.file_name(), dtype.name());
            self.fault(rule, "scores.file", expected, format!("{file:?}"));
        }
        self.choice(scores, ("scores", "byte_order"), false, &[("little", ())]);
        let rows = self.int(scores, ("scores", "rows"), true, MAX_INT64);
        let vocab_size = self.int(scores, ("scores", "vocab_size"), true, MAX_INT64);
        if vocab_size == Some(0) {
            self.fault(Rule::SchemaInvalid, "scores.vocab_size", "1 or more", "0");
        }
        let masked_token_ids = self.ascending(scores, ("scores", "masked_token_ids")).unwrap_or_default();
        let f32_sha256_at_capture = self.digest(scores, ("scores", "f32_sha256_at_capture"), false);
        Some(ScoresDeclaration {
            dtype: dtype?,
            rows: rows?,
            vocab_size: vocab_size?,
            masked_token_ids,
            f32_sha256_at_capture,
        })
    }

    fn files(&mut self, of: &'static str, section: &Json, out: &mut Vec<DeclaredFile>) {
        let files = self.want(section, (of, "files"), false, "an array of files", |value| match value {
            Json::Array(items) => Some(items),
            _ => None,
        });
        for (n, item) in files.into_iter().flatten().enumerate() {
            let place = format!("{of}.files[{n}]");
            let path = self.name(item, (&place, "path"), true);
            let sha256 = self.digest(item, (&place, "sha256"), true);
            let bytes = self.int(item, (&place, "bytes"), false, MAX_INT64);
            if let Some(path) = &path
                && let Err(why) = check_path(path)
            {
                self.fault(Rule::PathEscape, &join(&place, "path"), "a path below one folder", why);
            }
            if let (Some(path), Some(sha256)) = (path, sha256) {
                out.push(DeclaredFile { of, path, sha256, bytes });
            }
        }
    }

    fn requests(&mut self, json: &Json) -> Vec<Request> {
        let items = self.want(json, ("", "requests"), true, "an array of requests", |value| match value {
            Json::Array(items) => Some(items),
            _ => None,
        });
        let Some(items) = items else { return Vec::new() };
        let mut out = Vec::new();
        for (n, item) in items.iter().enumerate() {
            let place = format!("requests[{n}]");
            out.extend(self.request(item, &place));
        }
        out
    }

    fn request(&mut self, item: &Json, place: &str) -> Option<Request> {
        let request_id = self.name(item, (place, "request_id"), true);
        let prompt_index = self.int(item, (place, "prompt_index"), true, MAX_INT32);
        let sample_index = self.int(item, (place, "sample_index"), false, MAX_INT32).unwrap_or(0);
        let prompt_token_ids = self.tokens(item, (place, "prompt_token_ids"), true);
        let output_token_ids = self.tokens(item, (place, "output_token_ids"), true);
        let reasons = [("length", FinishReason::Length), ("stop", FinishReason::Stop), ("abort", FinishReason::Abort)];
        let finish_reason = self.choice(item, (place, "finish_reason"), false, &reasons);
        let continuation = self
            .want(item, (place, "continuation"), false, "an object", |value| {
                matches!(value, Json::Object(_)).then_some(value)
            })
            .map(|value| self.continuation(value, &join(place, "continuation")));
        let positions = self.ascending(item, (place, "positions"));
        if let (Some(positions), Some(output)) = (&positions, &output_token_ids)
            && let Some(last) = positions.last().filter(|&&last| !fits(last, output.len()))
        {
            let expected = format!("positions below {}, the length of output_token_ids", output.len());
            self.fault(Rule::SchemaInvalid, &join(place, "positions"), expected, last.to_string());
        }
        Some(Request {
            request_id: request_id?,
            key: RequestKey {
                prompt_index: u32::try_from(prompt_index?).ok()?,
                sample_index: u32::try_from(sample_index).ok()?,
            },
            prompt_token_ids: prompt_token_ids?,
            output_token_ids: output_token_ids?,
            finish_reason,
            continuation,
            positions,
        })
    }

    fn continuation(&mut self, json: &Json, place: &str) -> Continuation {
        let token_ids = self.tokens(json, (place, "token_ids"), false);
        let named = json.get("run_id").is_some() || json.get("request_id").is_some() || token_ids.is_none();
        let run_id = self.name(json, (place, "run_id"), named);
        let request_id = self.name(json, (place, "request_id"), named);
        Continuation { source: run_id.zip(request_id), token_ids }
    }
}

fn fits(position: u32, len: usize) -> bool {
    usize::try_from(position).is_ok_and(|position| position < len)
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
