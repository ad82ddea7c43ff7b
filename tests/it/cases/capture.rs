//! A capture in memory: the bases that cases start from, and the edits that can be made to one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use witnessmark::canon::scores::{Canonical, Dtype};
use witnessmark::digest::{Sha256, hex};

use super::edit::{CaptureEdit, to_json};
use crate::support::embedded;

/// A row of rows.jsonl.
pub(super) type JsonRow = Map<String, Value>;

/// What a capture directory holds.
#[derive(Clone)]
pub(super) struct Capture {
    pub run: Value,
    pub rows: Vec<JsonRow>,
    /// One for each row; none in a baseline
    pub scores: Vec<Vec<f32>>,
    pub dtype: Dtype,
}

impl Capture {
    /// The base of that name.
    pub(super) fn base(name: &str) -> Self {
        match name {
            "partial" => Self::read(&embedded("oracle-c1-rep0")),
            "partial-c4" => Self::read(&embedded("oracle-c4-rep0")),
            "full" => Self::whole("oracle-c1-rep0"),
            "full-c4" => Self::whole("oracle-c4-rep0"),
            "replay" => Self::replay(),
            "baseline" => Self::baseline(),
            _ => panic!("no base {name:?}"),
        }
    }

    fn read(dir: &Path) -> Self {
        let run = serde_json::from_slice(&fs::read(dir.join("run.json")).unwrap()).unwrap();
        let lines = fs::read_to_string(dir.join("rows.jsonl")).unwrap();
        let rows: Vec<JsonRow> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let bytes = fs::read(dir.join("scores.bf16")).unwrap();
        let wide = |half: &[u8; 2]| f32::from_bits(u32::from(u16::from_le_bytes(*half)) << 16);
        let halves = bytes.as_chunks::<2>().0;
        let scores = halves.chunks(halves.len() / rows.len()).map(|row| row.iter().map(wide).collect()).collect();
        Self { run, rows, scores, dtype: Dtype::Bf16 }
    }

    /// A whole capture out of an embedded one: prompt 0 with its first token, prompt 1 with its first three.
    fn whole(name: &str) -> Self {
        let mut capture = Self::read(&embedded(name));
        capture.drop_rows(&[1, 2, 3, 4, 5]);
        let run = capture.run.as_object_mut().unwrap();
        run.remove("cut_from");
        run["run_id"] = json!(name.replace("rep0", "whole"));
        run["sampling"]["max_new_tokens"] = json!(3);
        for (request, tokens, reason) in [(0, 1, "stop"), (1, 3, "length")] {
            let request = run["requests"][request].as_object_mut().unwrap();
            request.remove("positions");
            request["output_token_ids"].as_array_mut().unwrap().truncate(tokens);
            request["finish_reason"] = json!(reason);
        }
        for (number, row) in capture.in_order_of_capture().into_iter().enumerate() {
            capture.rows[row]["captured_seq"] = json!(number + 1);
        }
        capture
    }

    /// The whole capture as a replay of its own tokens.
    fn replay() -> Self {
        let mut capture = Self::whole("oracle-c1-rep0");
        capture.run["run_id"] = json!("replay-c1-whole");
        capture.run["mode"] = json!("common-replay");
        for request in capture.run["requests"].as_array_mut().unwrap() {
            request["continuation"] = json!({ "token_ids": request["output_token_ids"] });
        }
        for (number, row) in capture.in_order_of_capture().into_iter().enumerate() {
            let row = &mut capture.rows[row];
            row["captured_seq"] = json!(2 * number + 1);
            row["forced_seq"] = json!(2 * number + 2);
            row["forced_token_id"] = row["token_id"].clone();
            row["forced_at_ns"] = json!(row["captured_at_ns"].as_u64().unwrap() + 1000);
        }
        capture
    }

    /// The whole capture without instrumentation.
    fn baseline() -> Self {
        let mut capture = Self::whole("oracle-c1-rep0");
        let run = capture.run.as_object_mut().unwrap();
        run.remove("scores");
        run["run_id"] = json!("baseline-c1-whole");
        run["mode"] = json!("baseline");
        for row in &mut capture.rows {
            for field in [
                "argmax",
                "runner_up",
                "sampled_token_id",
                "scores_sha256",
                "captured_seq",
                "captured_at_ns",
                "query_len",
                "kv_len",
            ] {
                row.remove(field);
            }
        }
        capture.scores.clear();
        capture
    }

    /// Writes the capture directory.
    pub(super) fn write(&self, dir: &Path) {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("run.json"), self.run_bytes()).unwrap();
        let lines: String = self.rows.iter().map(|row| serde_json::to_string(row).unwrap() + "\n").collect();
        fs::write(dir.join("rows.jsonl"), lines).unwrap();
        if !self.scores.is_empty() {
            fs::write(dir.join(self.dtype.file_name()), self.raw_rows().concat()).unwrap();
        }
    }

    /// run.json.
    pub(super) fn run_bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(&self.run).unwrap()
    }

    /// The scores as the file holds them, a row each.
    pub(super) fn raw_rows(&self) -> Vec<Vec<u8>> {
        let raw = |scores: &Vec<f32>| -> Vec<u8> {
            match self.dtype {
                Dtype::Bf16 => scores.iter().flat_map(|score| score.to_le_bytes()[2..].to_vec()).collect(),
                Dtype::F32 => scores.iter().flat_map(|score| score.to_le_bytes()).collect(),
                Dtype::F16 => panic!("no base has float16 scores"),
            }
        };
        self.scores.iter().map(raw).collect()
    }

    /// The scores in canonical form, a row each.
    pub(super) fn canonical(&self) -> Vec<Canonical> {
        let canonical = |raw: Vec<u8>| {
            let mut canonical = Canonical::default();
            canonical.set_from_file_row(self.dtype, &raw);
            canonical
        };
        self.raw_rows().into_iter().map(canonical).collect()
    }

    fn in_order_of_capture(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by_key(|&row| self.rows[row].get("captured_seq").and_then(Value::as_u64));
        order
    }

    fn drop_rows(&mut self, rows: &[usize]) {
        let keep = |index: &usize| !rows.contains(index);
        let order: Vec<usize> = (0..self.rows.len()).filter(keep).collect();
        self.take_rows(&order);
    }

    /// The rows of these places, in this order, with their scores; numbers and counts follow.
    fn take_rows(&mut self, order: &[usize]) {
        self.rows = order.iter().map(|&row| self.rows[row].clone()).collect();
        if !self.scores.is_empty() {
            self.scores = order.iter().map(|&row| self.scores[row].clone()).collect();
            self.run["scores"]["rows"] = json!(order.len());
        }
        for (number, row) in self.rows.iter_mut().enumerate() {
            row["row"] = json!(number);
        }
    }

    fn chosen(&self, row: Option<usize>) -> Vec<usize> {
        row.map_or_else(|| (0..self.rows.len()).collect(), |row| vec![row])
    }

    /// Makes one edit.
    pub(super) fn edit(&mut self, edit: &CaptureEdit) {
        match edit {
            CaptureEdit::RunSet { path, value } => set(&mut self.run, path, Some(to_json(value))),
            CaptureEdit::RunNull { path } => set(&mut self.run, path, Some(Value::Null)),
            CaptureEdit::RunRemove { path } => set(&mut self.run, path, None),
            CaptureEdit::RowSet { row, field, value } => {
                for row in self.chosen(*row) {
                    self.rows[row].insert(field.clone(), to_json(value));
                }
            }
            CaptureEdit::RowRemove { row, field } => {
                for row in self.chosen(*row) {
                    assert!(self.rows[row].remove(field).is_some(), "row {row} has no {field}");
                }
            }
            CaptureEdit::RowFrom { row, base, from } => {
                let other = Self::base(base);
                self.rows[*row] = other.rows[*from].clone();
                self.scores[*row] = other.scores[*from].clone();
            }
            CaptureEdit::RowsDrop { rows } => self.drop_rows(rows),
            CaptureEdit::RowsDuplicate { row } => {
                let order: Vec<usize> = (0..self.rows.len()).chain([*row]).collect();
                self.take_rows(&order);
            }
            CaptureEdit::RowsOrder { order } => self.take_rows(order),
            CaptureEdit::ScoresSwap { a, b } => self.scores.swap(*a, *b),
            CaptureEdit::ScoresCopy { from, to } => self.scores[*to] = self.scores[*from].clone(),
            CaptureEdit::ScoresFrom { row, base, from } => self.scores[*row] = Self::base(base).scores[*from].clone(),
            CaptureEdit::ScoresShift { rows } => {
                let taken: Vec<Vec<f32>> = rows.iter().map(|&row| self.scores[row].clone()).collect();
                for (n, &row) in rows.iter().enumerate() {
                    self.scores[row] = taken[(n + 1) % rows.len()].clone();
                }
            }
            CaptureEdit::ScoresFlipBit { row, token, bit } => {
                let score = &mut self.scores[*row][*token];
                let shift = if self.dtype == Dtype::Bf16 { bit + 16 } else { *bit };
                *score = f32::from_bits(score.to_bits() ^ (1 << shift));
            }
            CaptureEdit::ScoresSet { row, token, value } => {
                for row in self.chosen(*row) {
                    self.scores[row][*token] = *value;
                }
            }
            CaptureEdit::ScoresFill { row, from, value } => self.scores[*row][*from..].fill(*value),
            CaptureEdit::ScoresRankOrder => self.scores.iter_mut().for_each(|row| row.sort_by(|a, b| b.total_cmp(a))),
            CaptureEdit::ScoresTie { row, token } => {
                let highest = self.scores[*row].iter().copied().fold(f32::NEG_INFINITY, f32::max);
                self.scores[*row][*token] = highest;
            }
            CaptureEdit::ScoresAsFloat32 => {
                self.dtype = Dtype::F32;
                self.run["scores"]["dtype"] = json!(self.dtype.name());
                self.run["scores"]["file"] = json!(self.dtype.file_name());
            }
            CaptureEdit::Rehash { witnesses } => witnesses.iter().for_each(|witness| self.rehash(witness)),
        }
    }

    /// Recomputes a witness, as an adapter would have that was wrong from the start.
    fn rehash(&mut self, witness: &str) {
        let digests = |rows: Vec<Vec<u8>>| rows.iter().map(|row| Sha256::of(row).to_string()).collect::<Vec<_>>();
        let values: Vec<Value> = match witness {
            "prefix_sha256" => self.rows.iter().map(|row| json!(self.prefix(row))).collect(),
            "scores_sha256" => digests(self.raw_rows()).into_iter().map(Value::from).collect(),
            "scores_blake3" => self.canonical().iter().map(|row| json!(row.digest().to_string())).collect(),
            "argmax" => self.scores.iter().map(|row| json!(highest(row, None))).collect(),
            "runner_up" => self.scores.iter().map(|row| json!(highest(row, Some(highest(row, None))))).collect(),
            "chain_sha256" => self.chain(),
            "f32_sha256_at_capture" => {
                let wide: Vec<u8> = self.scores.iter().flatten().flat_map(|score| score.to_le_bytes()).collect();
                self.run["scores"]["f32_sha256_at_capture"] = json!(Sha256::of(&wide).to_string());
                return;
            }
            _ => panic!("{witness:?} cannot be recomputed"),
        };
        for (row, value) in self.rows.iter_mut().zip(values) {
            row.insert(witness.to_owned(), value);
        }
    }

    fn prefix(&self, row: &JsonRow) -> String {
        let requests = self.run["requests"].as_array().unwrap();
        let request = requests.iter().find(|request| request["prompt_index"] == row["prompt_index"]).unwrap();
        let output = request["output_token_ids"].as_array().unwrap().iter();
        let consumed = output.take(usize::try_from(row["position"].as_u64().unwrap()).unwrap());
        let tokens = request["prompt_token_ids"].as_array().unwrap().iter().chain(consumed);
        let id = |token: &Value| u32::try_from(token.as_u64().unwrap()).unwrap().to_le_bytes();
        Sha256::of(&tokens.flat_map(id).collect::<Vec<u8>>()).to_string()
    }

    fn chain(&self) -> Vec<Value> {
        let digest = |text: &Value| text.as_str().unwrap().parse::<Sha256>().unwrap().0;
        let raw = self.raw_rows();
        let mut previous = Sha256::of(self.run["run_nonce"].as_str().unwrap_or_default().as_bytes());
        let mut links = BTreeMap::new();
        for index in self.in_order_of_capture() {
            let row = &self.rows[index];
            let token = u32::try_from(row["token_id"].as_u64().unwrap()).unwrap();
            let mut bytes = [previous.0, digest(&row["prefix_sha256"])].concat();
            bytes.extend(token.to_le_bytes());
            bytes.extend(raw.get(index).map_or([0; 32], |row| Sha256::of(row).0));
            previous = Sha256::of(&bytes);
            links.insert(index, json!(hex(&previous.0)));
        }
        links.into_values().collect()
    }
}

/// The lowest token id with the highest score, `but` aside.
fn highest(scores: &[f32], but: Option<usize>) -> usize {
    let mut best: Option<usize> = None;
    for token in (0..scores.len()).filter(|&token| Some(token) != but) {
        if best.is_none_or(|best| scores[token] > scores[best]) {
            best = Some(token);
        }
    }
    best.unwrap()
}

/// Sets or removes what stands at a dotted path; numbers are places in arrays, the number of its items is the place after the last.
pub(super) fn set(json: &mut Value, path: &str, value: Option<Value>) {
    let (folders, name) = path.rsplit_once('.').map_or(("", path), |(folders, name)| (folders, name));
    let mut at = json;
    for part in folders.split('.').filter(|part| !part.is_empty()) {
        at = match at {
            Value::Array(items) => &mut items[part.parse::<usize>().unwrap()],
            Value::Object(members) => members.entry(part).or_insert_with(|| json!({})),
            _ => panic!("{path}: nothing there"),
        };
    }
    match (at, value) {
        (Value::Array(items), Some(value)) => match name.parse::<usize>().unwrap() {
            end if end == items.len() => items.push(value),
            place => items[place] = value,
        },
        (Value::Array(items), None) => drop(items.remove(name.parse().unwrap())),
        (Value::Object(members), Some(value)) => drop(members.insert(name.to_owned(), value)),
        (Value::Object(members), None) => assert!(members.remove(name).is_some(), "{path}: nothing there"),
        _ => panic!("{path}: nothing there"),
    }
}
