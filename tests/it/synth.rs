//! A small whole capture, made up, with every witness right: tests change one thing in it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use witnessmark::canon::scores::{Canonical, Dtype, f32_bits_to_f16};
use witnessmark::digest::{Sha256, hex};

/// Score of the engine's choice; the runner-up has [`SECOND`], all others less than 8.
pub const BEST: f32 = 12.0;
pub const SECOND: f32 = 10.0;

/// A capture that is not written yet. Rows and scores stand in the order of the file: by step, then by request.
#[derive(Debug, Clone)]
pub struct Synth {
    pub run: Value,
    pub rows: Vec<Value>,
    /// `[row][token]`; empty in a baseline
    pub scores: Vec<Vec<f32>>,
    pub dtype: Dtype,
}

fn choice(vocab: u32, request: u32, position: u32) -> u32 {
    (7 + 11 * request + 5 * position) % vocab
}

fn score(vocab: u32, request: u32, position: u32, token: u32) -> f32 {
    let best = choice(vocab, request, position);
    if token == best {
        return BEST;
    }
    if token == (best + 1) % vocab {
        return SECOND;
    }
    let noise = (token * 31 + token * token * 3 + request * 17 + position * 7) % 64;
    f32::from(u8::try_from(noise).unwrap()) / 8.0
}

impl Synth {
    /// Three requests of five tokens over a vocabulary of 50, at concurrency 3.
    pub fn new(mode: &str) -> Self {
        Self::shaped(mode, 50, 3, 5)
    }

    pub fn shaped(mode: &str, vocab: u32, requests: u32, tokens: u32) -> Self {
        let replay = mode.ends_with("replay");
        let id = |request: u32| format!("synth-{mode}-p{request}");
        // A common replay forces another token than the engine chose, once.
        let consumed = |request: u32, position: u32| {
            let other = mode == "common-replay" && (request, position) == (0, 2);
            (choice(vocab, request, position) + if other { 3 } else { 0 }) % vocab
        };
        let longest = requests + 1;
        let mut rows = Vec::new();
        let mut scores = Vec::new();
        let mut seq = 0;
        for position in 0..tokens {
            for request in 0..requests {
                let best = choice(vocab, request, position);
                let mut row = json!({
                    "request_id": id(request), "prompt_index": request, "position": position,
                    "phase": if position == 0 { "prefill" } else { "decode" },
                    "token_id": consumed(request, position),
                    "step": position + 1,
                    "batch_size": requests,
                    "query_len": if position == 0 { longest } else { 1 },
                    "kv_len": longest + position,
                    "captured_at_ns": 1_796_035_146_000_000_000_u64 + u64::from(position) * 1000,
                    "run_nonce": "5a5a",
                });
                let mut next = || {
                    seq += 1;
                    seq
                };
                row["captured_seq"] = json!(next());
                if mode != "baseline" {
                    row["sampled_token_id"] = json!(best);
                    row["argmax"] = json!(best);
                    row["runner_up"] = json!((best + 1) % vocab);
                    // To be filled in: these witnesses are there.
                    row["scores_sha256"] = json!("");
                    row["scores_blake3"] = json!("");
                    scores.push((0..vocab).map(|token| score(vocab, request, position, token)).collect());
                }
                if replay {
                    row["forced_token_id"] = json!(consumed(request, position));
                    row["forced_seq"] = json!(next());
                    row["forced_at_ns"] = json!(row["captured_at_ns"].as_u64().unwrap() + 10);
                }
                rows.push(row);
            }
        }
        let requests: Vec<Value> = (0..requests)
            .map(|request| {
                let output: Vec<u32> = (0..tokens).map(|position| consumed(request, position)).collect();
                let prompt: Vec<u32> = (0..request + 2).map(|n| (request + n) % vocab).collect();
                let mut value = json!({
                    "request_id": id(request), "prompt_index": request,
                    "prompt_token_ids": prompt, "output_token_ids": output, "finish_reason": "length",
                });
                if replay {
                    value["continuation"] = json!({ "token_ids": output });
                }
                value
            })
            .collect();
        let mut run = json!({
            "schema": "witnessmark.run/v1", "run_id": format!("synth-{mode}"), "run_nonce": "5a5a",
            "role": "oracle", "mode": mode, "extraction": "adapter",
            "sampling": { "method": "greedy", "max_new_tokens": tokens },
            "schedule": { "requested_concurrency": requests.len(), "slots": requests.len(), "step": 64 },
            "requests": requests,
        });
        if mode != "baseline" {
            run["scores"] = json!({ "byte_order": "little", "vocab_size": vocab });
        }
        let mut synth = Self { run, rows, scores, dtype: Dtype::Bf16 };
        synth.rewitness();
        synth
    }

    /// The place of a row in the file.
    pub fn at(&self, request: u32, position: u32) -> usize {
        let is = |row: &Value| row["prompt_index"] == request && row["position"] == position;
        self.rows.iter().position(is).unwrap()
    }

    pub fn row(&mut self, request: u32, position: u32) -> &mut Value {
        let at = self.at(request, position);
        &mut self.rows[at]
    }

    pub fn scores(&mut self, request: u32, position: u32) -> &mut Vec<f32> {
        let at = self.at(request, position);
        &mut self.scores[at]
    }

    /// Leaves a row out, with its scores, as if it had never been captured.
    pub fn drop_row(&mut self, request: u32, position: u32) {
        let at = self.at(request, position);
        self.rows.remove(at);
        if !self.scores.is_empty() {
            self.scores.remove(at);
        }
        self.rewitness();
    }

    /// Removes a field of all rows.
    pub fn without(&mut self, fields: &[&str]) {
        for row in &mut self.rows {
            fields.iter().for_each(|field| drop(row.as_object_mut().unwrap().remove(*field)));
        }
    }

    /// Numbers the callbacks again, without gaps.
    pub fn renumber(&mut self) {
        let mut seq = 0;
        for row in &mut self.rows {
            for field in ["captured_seq", "forced_seq"] {
                if row.get(field).is_some() {
                    seq += 1;
                    row[field] = json!(seq);
                }
            }
        }
    }

    /// Row numbers, prefix hashes, digests and totals, from requests and scores as they are now. Witnesses that a row does not
    /// have stay away.
    pub fn rewitness(&mut self) {
        for at in 0..self.rows.len() {
            let bytes = self.file_row(at);
            let row = &mut self.rows[at];
            row["row"] = json!(at);
            let mut requests = self.run["requests"].as_array().unwrap().iter();
            let Some(request) = requests.find(|request| request["request_id"] == row["request_id"]) else { continue };
            let ids = |key: &str| -> Vec<u32> {
                let ids = request[key].as_array().unwrap().iter();
                ids.map(|id| u32::try_from(id.as_u64().unwrap()).unwrap()).collect()
            };
            let position = usize::try_from(row["position"].as_u64().unwrap()).unwrap();
            let prefix = ids("prompt_token_ids").into_iter().chain(ids("output_token_ids").into_iter().take(position));
            let prefix: Vec<u8> = prefix.flat_map(u32::to_le_bytes).collect();
            row["prefix_sha256"] = json!(Sha256::of(&prefix).to_string());
            if row.get("scores_sha256").is_some() {
                row["scores_sha256"] = json!(Sha256::of(&bytes).to_string());
            }
            if row.get("scores_blake3").is_some() {
                let mut canonical = Canonical::default();
                canonical.set_from_file_row(self.dtype, &bytes);
                row["scores_blake3"] = json!(hex(&canonical.digest().0));
            }
        }
        if let Some(scores) = self.run.get_mut("scores") {
            scores["rows"] = json!(self.rows.len());
            scores["dtype"] = json!(self.dtype.name());
            scores["file"] = json!(self.dtype.file_name());
        }
    }

    /// Makes it a run of its own, by name and nonce.
    pub fn of_run(&mut self, run_id: &str, nonce: &str) {
        self.run["run_id"] = json!(run_id);
        self.run["run_nonce"] = json!(nonce);
        for row in &mut self.rows {
            row["run_nonce"] = json!(nonce);
        }
    }

    /// Adds a chain over all rows.
    pub fn chain(&mut self) {
        let nonce = self.run["run_nonce"].as_str().unwrap_or_default();
        let mut previous = Sha256::of(nonce.as_bytes());
        for at in 0..self.rows.len() {
            let scores = if self.scores.is_empty() { [0; 32] } else { Sha256::of(&self.file_row(at)).0 };
            let row = &mut self.rows[at];
            let prefix: Sha256 = row["prefix_sha256"].as_str().unwrap().parse().unwrap();
            let token = u32::try_from(row["token_id"].as_u64().unwrap()).unwrap();
            previous = Sha256::of(&[&previous.0, &prefix.0, &token.to_le_bytes()[..], &scores].concat());
            row["chain_sha256"] = json!(previous.to_string());
        }
    }

    /// Adds the digest of all scores as f32, rows in key order.
    pub fn digest_all(&mut self) {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        let key = |at: &usize| (self.rows[*at]["prompt_index"].as_u64(), self.rows[*at]["position"].as_u64());
        order.sort_by_key(key);
        let all: Vec<u8> = order.iter().flat_map(|at| &self.scores[*at]).flat_map(|s| s.to_le_bytes()).collect();
        self.run["scores"]["f32_sha256_at_capture"] = json!(Sha256::of(&all).to_string());
    }

    fn file_row(&self, at: usize) -> Vec<u8> {
        let encode = |score: &f32| -> Vec<u8> {
            let bits = score.to_bits();
            match self.dtype {
                Dtype::Bf16 => ((bits >> 16) as u16).to_le_bytes().to_vec(),
                Dtype::F16 => f32_bits_to_f16(bits).unwrap().to_le_bytes().to_vec(),
                Dtype::F32 => bits.to_le_bytes().to_vec(),
            }
        };
        self.scores.get(at).map(|row| row.iter().flat_map(encode).collect()).unwrap_or_default()
    }

    pub fn write(&self, dir: &Path) {
        fs::create_dir_all(dir).unwrap();
        let rows: String = self.rows.iter().map(|row| format!("{row}\n")).collect();
        fs::write(dir.join("rows.jsonl"), rows).unwrap();
        if !self.scores.is_empty() {
            let scores: Vec<u8> = (0..self.scores.len()).flat_map(|at| self.file_row(at)).collect();
            fs::write(dir.join(self.dtype.file_name()), scores).unwrap();
        }
        fs::write(dir.join("run.json"), self.run.to_string()).unwrap();
    }
}
