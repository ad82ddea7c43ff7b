//! Diff: what changed between two captures, for an auditor.
//!
//! Two verified captures go in, a [`Diff`] comes out: bindings, shapes, requests, rows, tokens, scores, and what is incidental to a run.
//! Scores are compared only at identical prefixes; rows with equal score digests are equal without being read. It describes and
//! never judges: whether a claim may be made is another question, and where shapes differ the comparison says so.
//! Pure: scores come through [`ScorePairs`].

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::canon::scores::Canonical;
use crate::id::{CaptureId, RequestKey, RowKey, TokenId, long};
use crate::row::{FIELDS, Row};
use crate::verify::{Depth, Verified};

/// Fields of a row that two runs of one configuration do not share.
const INCIDENTAL: [&str; 13] = [
    "request_id",
    "captured_seq",
    "forced_seq",
    "step",
    "captured_at_ns",
    "forced_at_ns",
    "scores_modified_at_ns",
    "batch_size",
    "query_len",
    "kv_len",
    "scores_sha256",
    "chain_sha256",
    "run_nonce",
];
/// Fields that have a section of their own.
const ELSEWHERE: [&str; 8] =
    ["prompt_index", "sample_index", "position", "prefix_sha256", "token_id", "argmax", "runner_up", "score_digest"];
/// Fields that say in which company a row was computed.
const SHAPE: [&str; 3] = ["batch_size", "query_len", "kv_len"];

/// Which parts to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Parts {
    /// Bindings, attachments and declared shapes
    pub bindings: bool,
    /// Requests, rows, tokens
    pub rows: bool,
    /// Scores
    pub scores: bool,
}

impl Parts {
    /// All of them.
    pub const ALL: Parts = Parts { bindings: true, rows: true, scores: true };
}

/// One of the two captures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Side {
    /// Its id
    pub capture: CaptureId,
    /// Its run id
    pub run_id: String,
    /// How much of it was verified before
    pub depth: Depth,
}

/// A value on both sides; none where it is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Where: a dotted path in run.json, an attachment's path, a field
    pub path: String,
    /// In A
    pub a: Option<String>,
    /// In B
    pub b: Option<String>,
}

/// In which company rows were computed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Shapes {
    /// Declared shapes that differ
    pub declared: Vec<Change>,
    /// Declared shapes that a side does not give
    pub undeclared: Vec<Change>,
    /// Common rows whose batch_size, query_len and kv_len agree
    pub matched_rows: u64,
    /// Common rows in which one of them differs
    pub unmatched_rows: u64,
    /// Common rows that do not record them on both sides
    pub unrecorded_rows: u64,
}

impl Shapes {
    /// Whether anything differs, so that the comparison only describes.
    #[must_use]
    pub fn differ(&self) -> bool {
        !self.declared.is_empty() || self.unmatched_rows > 0
    }
}

/// Where a request's tokens part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TokenChange {
    /// The request
    pub request: RequestKey,
    /// The first position at which they differ
    pub position: u32,
    /// The token there in A
    pub a: Option<TokenId>,
    /// The token there in B
    pub b: Option<TokenId>,
    /// Positions that differ from there on, ends included
    pub differing: u64,
}

/// Two rows at one prefix whose scores differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScoreChange {
    /// The row
    pub key: RowKey,
    /// The largest |score in A − score in B|, in f64
    pub max_abs_delta: f64,
    /// The lowest token id that has it
    pub token_id: TokenId,
    /// The lowest token id with the highest score in A
    pub argmax_a: TokenId,
    /// The same in B
    pub argmax_b: TokenId,
}

/// Scores of the rows that both captures have.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Scores {
    /// Rows at identical prefixes with bitwise equal scores
    pub equal_rows: u64,
    /// Rows at identical prefixes with other scores, in key order
    pub differing: Vec<ScoreChange>,
    /// Rows at identical prefixes whose vocabularies have another size
    pub other_vocab_rows: u64,
    /// Rows after the tokens parted: not comparable
    pub other_prefix_rows: u64,
    /// Rows that have scores on one side only
    pub one_sided_rows: u64,
    /// Rows that have scores on neither side
    pub unscored_rows: u64,
    /// Scores shards that are one object in both, and were not opened
    pub shared_objects: u64,
}

/// What two captures have apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diff {
    /// Which parts were compared; what a part that was not says is empty
    pub compared: Parts,
    /// The first
    pub a: Side,
    /// The second
    pub b: Side,
    /// Bindings that were added, removed or changed
    pub bindings: Vec<Change>,
    /// Attachments that were added, removed or changed (BLAKE3)
    pub attachments: Vec<Change>,
    /// In which company rows were computed
    pub shapes: Shapes,
    /// Requests only in A
    pub requests_only_a: Vec<RequestKey>,
    /// Requests only in B
    pub requests_only_b: Vec<RequestKey>,
    /// Requests whose prompts differ
    pub prompts: Vec<RequestKey>,
    /// Requests in both
    pub requests_common: u64,
    /// Rows only in A
    pub rows_only_a: Vec<RowKey>,
    /// Rows only in B
    pub rows_only_b: Vec<RowKey>,
    /// Rows in both
    pub rows_common: u64,
    /// Fields of common rows that differ, with the number of rows, without tokens, scores and what is incidental
    pub row_fields: BTreeMap<&'static str, u64>,
    /// Where tokens part
    pub tokens: Vec<TokenChange>,
    /// Scores; none where they were not compared
    pub scores: Option<Scores>,
    /// Incidental fields that differ, with the number of rows
    pub incidental: BTreeMap<&'static str, u64>,
}

impl Diff {
    /// Whether nothing differs; with `strict` what is incidental counts too.
    #[must_use]
    pub fn is_identical(&self, strict: bool) -> bool {
        let scores = self.scores.as_ref().is_none_or(|scores| {
            scores.differing.is_empty()
                && scores.other_vocab_rows == 0
                && scores.other_prefix_rows == 0
                && scores.one_sided_rows == 0
                // Where scores alone were asked for, nothing compared is nothing equal.
                && (scores.equal_rows > 0 || self.compared.bindings || self.compared.rows)
        });
        self.bindings.is_empty()
            && self.attachments.is_empty()
            && self.requests_only_a.is_empty()
            && self.requests_only_b.is_empty()
            && self.prompts.is_empty()
            && self.rows_only_a.is_empty()
            && self.rows_only_b.is_empty()
            && self.row_fields.is_empty()
            && self.tokens.is_empty()
            && scores
            && (!strict || (self.incidental.is_empty() && self.a.run_id == self.b.run_id))
    }
}

/// Gives the scores of a row of A and a row of B, by their indices; both rise from call to call.
pub trait ScorePairs {
    /// Why scores could not be had.
    type Error;
    /// The two rows.
    ///
    /// # Errors
    /// When scores could not be had.
    fn pair(&mut self, a: usize, b: usize) -> Result<(&Canonical, &Canonical), Self::Error>;
}

/// Compares two captures.
///
/// # Errors
/// When scores could not be had.
pub fn diff<S: ScorePairs>(a: &Verified, b: &Verified, parts: Parts, scores: &mut S) -> Result<Diff, S::Error> {
    let side = |capture: &Verified| Side {
        capture: capture.capture(),
        run_id: capture.run().run_id.clone(),
        depth: capture.depth(),
    };
    let mut diff = Diff {
        compared: parts,
        a: side(a),
        b: side(b),
        bindings: Vec::new(),
        attachments: Vec::new(),
        shapes: Shapes::default(),
        requests_only_a: Vec::new(),
        requests_only_b: Vec::new(),
        prompts: Vec::new(),
        requests_common: 0,
        rows_only_a: Vec::new(),
        rows_only_b: Vec::new(),
        rows_common: 0,
        row_fields: BTreeMap::new(),
        tokens: Vec::new(),
        scores: None,
        incidental: BTreeMap::new(),
    };
    let common = common_rows(a.rows(), b.rows(), &mut diff);
    if parts.bindings {
        compare_bindings(a, b, &mut diff);
    }
    compare_fields(a.rows(), b.rows(), &common, &mut diff);
    if parts.rows {
        compare_requests(a, b, &mut diff);
    } else {
        diff.rows_only_a.clear();
        diff.rows_only_b.clear();
        diff.row_fields.clear();
    }
    if parts.scores {
        diff.scores = Some(compare_scores(a, b, &common, scores)?);
    }
    Ok(diff)
}

/// Indices of rows with equal keys; notes the keys of the others.
fn common_rows(a: &[Row], b: &[Row], diff: &mut Diff) -> Vec<(usize, usize)> {
    let mut common = Vec::new();
    let (mut at_a, mut at_b) = (0, 0);
    loop {
        match (a.get(at_a), b.get(at_b)) {
            (Some(row_a), Some(row_b)) if row_a.key == row_b.key => {
                common.push((at_a, at_b));
                at_a += 1;
                at_b += 1;
            }
            (Some(row_a), other) if other.is_none_or(|row_b| row_a.key < row_b.key) => {
                diff.rows_only_a.push(row_a.key);
                at_a += 1;
            }
            (_, Some(row_b)) => {
                diff.rows_only_b.push(row_b.key);
                at_b += 1;
            }
            _ => break,
        }
    }
    diff.rows_common = long(common.len());
    common
}

fn changes(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> Vec<Change> {
    let paths: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let change = |path: &String| Change { path: path.clone(), a: a.get(path).cloned(), b: b.get(path).cloned() };
    paths.into_iter().map(change).filter(|change| change.a != change.b).collect()
}

fn compare_bindings(a: &Verified, b: &Verified, diff: &mut Diff) {
    diff.bindings = changes(&a.run().bindings(), &b.run().bindings());
    let attachments = |capture: &Verified| {
        let attachments = capture.manifest().capture.attachments.iter();
        attachments.map(|attachment| (attachment.path.clone(), attachment.blake3.to_string())).collect()
    };
    diff.attachments = changes(&attachments(a), &attachments(b));
    let (shape_a, shape_b) = (a.run().declared_shape(), b.run().declared_shape());
    for (path, value_a) in shape_a {
        let value_b = shape_b.get(path).cloned().flatten();
        let change = Change { path: path.to_owned(), a: value_a, b: value_b };
        if change.a.is_none() || change.b.is_none() {
            diff.shapes.undeclared.push(change);
        } else if change.a != change.b {
            diff.shapes.declared.push(change);
        }
    }
}

fn compare_fields(a: &[Row], b: &[Row], common: &[(usize, usize)], diff: &mut Diff) {
    for (row_a, row_b) in pairs(a, b, common) {
        let (mut recorded, mut same_shape) = (true, true);
        for (index, field) in FIELDS.iter().enumerate() {
            let (value_a, value_b) = (row_a.get(index), row_b.get(index));
            let same = value_a == value_b;
            if SHAPE.contains(&field.name) {
                recorded &= value_a.is_some() && value_b.is_some();
                same_shape &= same;
            }
            // The adapter's own score digest says what the derived one says.
            if same || ELSEWHERE.contains(&field.name) || field.name == "scores_blake3" {
                continue;
            }
            let counts = if INCIDENTAL.contains(&field.name) { &mut diff.incidental } else { &mut diff.row_fields };
            *counts.entry(field.name).or_default() += 1;
        }
        let shapes = &mut diff.shapes;
        match (recorded, same_shape) {
            (false, _) => shapes.unrecorded_rows += 1,
            (true, true) => shapes.matched_rows += 1,
            (true, false) => shapes.unmatched_rows += 1,
        }
    }
}

fn pairs<'r>(a: &'r [Row], b: &'r [Row], common: &'r [(usize, usize)]) -> impl Iterator<Item = (&'r Row, &'r Row)> {
    common.iter().filter_map(|&(at_a, at_b)| Some((a.get(at_a)?, b.get(at_b)?)))
}

fn compare_requests(a: &Verified, b: &Verified, diff: &mut Diff) {
    let (requests_a, requests_b) = (a.run().requests_by_key(), b.run().requests_by_key());
    let only = |these: &BTreeMap<RequestKey, _>, those: &BTreeMap<RequestKey, _>| -> Vec<RequestKey> {
        these.keys().filter(|key| !those.contains_key(key)).copied().collect()
    };
    diff.requests_only_a = only(&requests_a, &requests_b);
    diff.requests_only_b = only(&requests_b, &requests_a);
    for (key, request_a) in &requests_a {
        let Some(request_b) = requests_b.get(key) else { continue };
        diff.requests_common += 1;
        if request_a.prompt_token_ids != request_b.prompt_token_ids {
            diff.prompts.push(*key);
        }
        let (out_a, out_b) = (&request_a.output_token_ids, &request_b.output_token_ids);
        let longest = out_a.len().max(out_b.len());
        let differs = |&position: &usize| out_a.get(position) != out_b.get(position);
        let mut differing = (0..longest).filter(differs);
        if let Some(position) = differing.next() {
            diff.tokens.push(TokenChange {
                request: *key,
                position: u32::try_from(position).unwrap_or(u32::MAX),
                a: out_a.get(position).copied(),
                b: out_b.get(position).copied(),
                differing: 1 + long(differing.count()),
            });
        }
    }
}

fn compare_scores<S: ScorePairs>(
    a: &Verified,
    b: &Verified,
    common: &[(usize, usize)],
    source: &mut S,
) -> Result<Scores, S::Error> {
    let mut out = Scores::default();
    let objects = |capture: &Verified| -> BTreeSet<_> {
        capture.manifest().score_shards.iter().map(|shard| shard.object).collect()
    };
    out.shared_objects = long(objects(a).intersection(&objects(b)).count());
    let same_vocab = a.manifest().capture.vocab_size == b.manifest().capture.vocab_size;
    for &(at_a, at_b) in common {
        let (Some(row_a), Some(row_b)) = (a.rows().get(at_a), b.rows().get(at_b)) else { continue };
        if row_a.prefix_sha256 != row_b.prefix_sha256 {
            out.other_prefix_rows += 1;
        } else if row_a.score_digest.is_none() && row_b.score_digest.is_none() {
            out.unscored_rows += 1;
        } else if row_a.score_digest.is_none() || row_b.score_digest.is_none() {
            out.one_sided_rows += 1;
        } else if row_a.score_digest == row_b.score_digest {
            out.equal_rows += 1;
        } else if same_vocab {
            let (scores_a, scores_b) = source.pair(at_a, at_b)?;
            out.differing.push(compare_row(row_a.key, scores_a, scores_b));
        } else {
            out.other_vocab_rows += 1;
        }
    }
    Ok(out)
}

fn compare_row(key: RowKey, a: &Canonical, b: &Canonical) -> ScoreChange {
    let (mut wide_a, mut wide_b) = (Vec::new(), Vec::new());
    a.widen_into(&mut wide_a);
    b.widen_into(&mut wide_b);
    let (mut max_abs_delta, mut token) = (0.0_f64, 0_u32);
    for (id, (score_a, score_b)) in (0_u32..).zip(wide_a.iter().zip(&wide_b)) {
        // Two masked scores (−Inf both) differ by NaN, which is larger than nothing; one masked score differs by infinity.
        let delta = (f64::from(*score_a) - f64::from(*score_b)).abs();
        if delta > max_abs_delta {
            (max_abs_delta, token) = (delta, id);
        }
    }
    let argmax = |scores: &Canonical| TokenId(scores.scan(&[]).argmax);
    ScoreChange { key, max_abs_delta, token_id: TokenId(token), argmax_a: argmax(a), argmax_b: argmax(b) }
}
