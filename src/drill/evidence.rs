//! Corruptions of the capture directory: what adapters, engines and people get wrong before anything is sealed.
//!
//! Each entry of [`MUTATIONS`] changes a [`Draft`] and says which rule must refuse it. It breaks that rule and no other: what an honest adapter would
//! have written along with it (row counts, digests of the scores that it wrote, numbers without a gap) is written along.

use std::sync::Arc;

use super::dice::Dice;
use super::draft::{Draft, FileChange};
use super::{Expect, Skip, not_applicable};
use crate::binding::FinishReason;
use crate::canon::json::Json;
use crate::canon::scores::{Canonical, Dtype};
use crate::digest::Sha256;
use crate::id::{Nanos, TokenId};
use crate::refusal::Rule;
use crate::row::{Phase, Row};

/// A known corruption of the capture directory.
pub(super) struct Mutation {
    pub(super) name: &'static str,
    pub(super) does: &'static str,
    /// Its name when it is brought into the store with every digest above it made anew, where that is tried too
    pub(super) rehashed: Option<&'static str>,
    pub(super) corrupt: fn(&mut Draft<'_, '_>, &mut Dice) -> Result<Plan, Skip>,
}

/// What was done and what must follow.
pub(super) struct Plan {
    pub(super) expect: Expect,
    pub(super) detail: String,
}

fn refused(rule: Rule, detail: impl Into<String>) -> Result<Plan, Skip> {
    Ok(Plan { expect: Expect::rule(rule), detail: detail.into() })
}

macro_rules! mutations {
    ($($name:literal $(+ $rehashed:literal)? : $corrupt:ident, $does:literal;)*) => {
        [$(Mutation { name: $name, does: $does, rehashed: mutations!(@ $($rehashed)?), corrupt: $corrupt },)*]
    };
    (@) => { None };
    (@ $rehashed:literal) => { Some($rehashed) };
}

/// All of them, in the order of a drill. A name after `+` is the corruption with everything rehashed in the store.
pub(super) const MUTATIONS: &[Mutation] = &mutations! {
    "score-bit" + "rehashed-score-bit": score_bit, "one bit of one score is flipped";
    "score-nan" + "rehashed-score-nan": score_nan, "one score is NaN";
    "score-minus-inf": score_minus_inf, "a row becomes [x, −Inf, −Inf, …]";
    "scores-in-rank-order" + "rehashed-scores-in-rank-order": rank_order, "the scores of a request stand in rank order instead of by token id";
    "scores-swapped-in-request" + "rehashed-scores-swapped": swapped_in_request, "two rows of a request have each other's scores";
    "scores-swapped-across-requests": swapped_across_requests, "two rows of two requests have each other's scores";
    "rows-shifted" + "rehashed-rows-shifted": rows_shifted, "the scores of a request stand one position too early, with their digests";
    "row-copied" + "rehashed-row-copied": row_copied, "a row has the scores of another request's row, with their digests";
    "witness-altered": witness_altered, "the digest that was made at capture time is another";
    "scores-truncated": scores_truncated, "the scores file ends too early";
    "scores-trailing": scores_trailing, "the scores file goes on after the last row";
    "argmax-altered" + "rehashed-argmax-altered": argmax_altered, "a row's argmax is another token";
    "runner-up-altered": runner_up_altered, "a row's runner-up is another token";
    "token-not-argmax" + "rehashed-token-not-argmax": token_not_argmax, "a greedy token is not the one with the highest score";
    "output-altered" + "rehashed-output-altered": output_altered, "output_token_ids is not what the rows consumed";
    "token-beyond-vocabulary": token_beyond_vocabulary, "a prompt has a token id that the vocabulary does not have";
    "prompt-altered": prompt_altered, "a prompt has another token than the one that was consumed";
    "prefix-altered" + "rehashed-prefix-altered": prefix_altered, "a row's prefix_sha256 is another";
    "prefill-as-decode" + "rehashed-prefill-as-decode": prefill_as_decode, "the first position is labelled decode";
    "decode-as-prefill": decode_as_prefill, "a later position is labelled prefill";
    "whole-prefix-as-decode": whole_prefix_as_decode, "a forward pass over the whole prefix is labelled decode";
    "row-missing": row_missing, "a row is left out with its scores, and counts are patched";
    "row-line-missing": row_line_missing, "a line is left out of rows.jsonl";
    "row-duplicated": row_duplicated, "a row stands twice";
    "row-unexpected": row_unexpected, "a request has a row after its last token";
    "rows-reordered": rows_reordered, "two lines of rows.jsonl change places and the scores do not";
    "request-ids-duplicated": request_ids_duplicated, "two requests have one request_id";
    "request-ids-swapped" + "rehashed-request-ids-swapped": request_ids_swapped, "two requests have each other's request_id";
    "replay-truncated": replay_truncated, "a replay stops half way";
    "replay-truncated-output-cut": replay_truncated_output_cut, "a replay stops half way, and output_token_ids is cut to match";
    "forcing-altered": forcing_altered, "a token is forced where the mode forces none, or another one";
    "forced-before-capture" + "rehashed-forced-before-capture": forced_before_capture, "a row is captured after its token was forced, by sequence numbers";
    "forced-before-capture-clock": forced_before_capture_clock, "a row is captured after its token was forced, by clocks alone";
    "modified-before-capture": modified_before_capture, "a row is captured after a processor changed its scores";
    "callback-skipped" + "rehashed-callback-skipped": callback_skipped, "a callback number is left out";
    "callback-repeated": callback_repeated, "a callback number stands twice";
    "times-swapped": times_swapped, "two rows of a request have each other's times";
    "nonce-of-another-run" + "rehashed-nonce-of-another-run": nonce_of_another_run, "a row carries the nonce of another run";
    "chain-broken": chain_broken, "a row's chain_sha256 is another";
    "torn-tail": torn_tail, "rows.jsonl ends inside a line";
    "run-json-missing": run_json_missing, "run.json, the end mark, is not there";
    "key-twice-in-run-json": key_twice_in_run_json, "run.json has a key twice";
    "key-twice-in-row": key_twice_in_row, "a row has a key twice";
    "score-bit-witnessed" + "rehashed-score-bit-witnessed": score_bit_witnessed, "one bit of one score, and every digest at capture time made anew";
    "model-altered" + "rehashed-model-altered": model_altered, "the digest of the model, and every digest above it";
    "tokenizer-altered" + "rehashed-tokenizer-altered": tokenizer_altered, "the digest of the tokenizer, and every digest above it";
    "kv-dtype-altered" + "rehashed-kv-dtype-altered": kv_dtype_altered, "the dtype of the KV cache, and every digest above it";
    "execution-altered" + "rehashed-execution-altered": execution_altered, "the execution mode, and every digest above it";
    "schedule-altered" + "rehashed-schedule-altered": schedule_altered, "the shape of the schedule, and every digest above it";
};

/// The place of a row, for people.
fn at(draft: &Draft<'_, '_>, row: usize) -> String {
    draft.rows[row].key.to_string()
}

fn flip_bit(draft: &mut Draft<'_, '_>, row: usize, dice: &mut Dice) -> Result<TokenId, Skip> {
    let token = draft.lesser_token(row, dice)?;
    let size = draft.declared()?.dtype.size();
    let mut bytes = draft.bytes(row)?;
    let place = usize::try_from(token.0).unwrap_or(usize::MAX).saturating_mul(size);
    // The lowest bit of a finite score: what comes of it is finite and one step away.
    bytes.iter_mut().skip(place).take(1).for_each(|byte| *byte ^= 1);
    draft.set_bytes(row, bytes);
    Ok(token)
}

fn score_bit(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let row = draft.scored(dice)?;
    let token = flip_bit(draft, row, dice)?;
    let detail = format!("{}, token id {token}", at(draft, row));
    let whole = draft.declared()?.f32_sha256_at_capture.is_some() && !draft.run().is_partial();
    if draft.is_witnessed(row) || whole {
        return refused(Rule::ScoreWitness, detail);
    }
    let how = "no digest was made at capture time: scores_sha256 or scores_blake3 on each row would tell";
    Ok(Plan { expect: Expect::Undetectable(how), detail })
}

fn score_bit_witnessed(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let row = draft.scored(dice)?;
    let token = flip_bit(draft, row, dice)?;
    draft.witness_anew(row)?;
    draft.witness_all_anew()?;
    draft.chain_anew()?;
    Ok(Plan { expect: Expect::AnotherId, detail: format!("{}, token id {token}", at(draft, row)) })
}

fn encode(dtype: Dtype, f32_bits: u32, f16_bits: u16) -> Vec<u8> {
    match dtype {
        Dtype::F16 => f16_bits.to_le_bytes().to_vec(),
        Dtype::Bf16 => f32_bits.to_le_bytes()[2..].to_vec(),
        Dtype::F32 => f32_bits.to_le_bytes().to_vec(),
    }
}

fn score_nan(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let row = draft.scored(dice)?;
    let dtype = draft.declared()?.dtype;
    let token = dice.below(draft.vocab()?);
    let mut bytes = draft.bytes(row)?;
    let nan = encode(dtype, 0x7fc0_0000, 0x7e00);
    let place = token * dtype.size();
    bytes.splice(place..place + dtype.size(), nan);
    draft.set_bytes(row, bytes);
    refused(Rule::ScoreNonfinite, format!("{}, token id {token}", at(draft, row)))
}

fn score_minus_inf(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let row = draft.scored(dice)?;
    let dtype = draft.declared()?.dtype;
    let mut bytes = draft.bytes(row)?;
    if bytes.len() <= dtype.size() * 2 || !draft.declared()?.masked_token_ids.is_empty() {
        return not_applicable("a mask, or a vocabulary of one or two");
    }
    let minus_inf = encode(dtype, 0xff80_0000, 0xfc00);
    bytes.chunks_exact_mut(dtype.size()).skip(1).for_each(|value| value.copy_from_slice(&minus_inf));
    draft.set_bytes(row, bytes);
    refused(Rule::ScoreNonfinite, at(draft, row))
}

/// Whether the recorded argmax does not have the highest of these scores.
fn argmax_is_wrong(row: &Row, scores: &Canonical) -> bool {
    let max = scores.scan(&[]).max;
    row.argmax.is_some_and(|argmax| scores.get(argmax.0).is_none_or(|score| score < max))
}

fn rank_order(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let dtype = draft.declared()?.dtype;
    let group = draft.group(dice, 1)?;
    let mut wrong = false;
    for row in group.clone() {
        let scores = draft.canonical(row)?;
        let bytes = draft.bytes(row)?;
        let mut values = Vec::new();
        scores.widen_into(&mut values);
        let mut ranked: Vec<(f32, &[u8])> = values.into_iter().zip(bytes.chunks_exact(dtype.size())).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        let ranked = ranked.into_iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
        draft.set_bytes(row, ranked);
        draft.witness_anew(row)?;
        wrong |= argmax_is_wrong(&draft.rows[row], &draft.canonical(row)?);
    }
    draft.witness_all_anew()?;
    if !wrong {
        return not_applicable("rows carry no argmax, or it is the first token id");
    }
    refused(Rule::ArgmaxWitness, draft.rows[group.start].request().to_string())
}

fn swap_scores(draft: &mut Draft<'_, '_>, a: usize, b: usize) -> Result<Plan, Skip> {
    let (of_a, of_b) = (draft.bytes(a)?, draft.bytes(b)?);
    draft.set_bytes(a, of_b);
    draft.set_bytes(b, of_a);
    refused(Rule::RowSwapped, format!("{} and {}", at(draft, a), at(draft, b)))
}

/// Two rows with different scores and digests made at capture time, that `accept` takes.
fn pair(draft: &Draft<'_, '_>, dice: &mut Dice, accept: impl Fn(&Row, &Row) -> bool) -> Result<(usize, usize), Skip> {
    draft.declared()?;
    if !(0..draft.rows.len()).any(|row| draft.is_witnessed(row)) {
        return not_applicable("rows carry neither scores_sha256 nor scores_blake3");
    }
    let a = draft.scored(dice)?;
    let fits = |row: &Row| accept(&draft.rows[a], row) && row.score_digest != draft.rows[a].score_digest;
    let b = draft.find(dice, "there is no second row for it", |row| {
        fits(row) && (row.scores_sha256.is_some() || row.scores_blake3.is_some())
    })?;
    Ok((a, b))
}

fn swapped_in_request(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let (a, b) = pair(draft, dice, |a, b| a.request() == b.request())?;
    swap_scores(draft, a, b)
}

fn swapped_across_requests(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let (a, b) = pair(draft, dice, |a, b| a.request() != b.request())?;
    swap_scores(draft, a, b)
}

fn rows_shifted(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    draft.declared()?;
    let group = draft.group(dice, 2)?;
    let first = draft.bytes(group.start)?;
    let mut wrong = false;
    for row in group.clone() {
        let next = if row + 1 < group.end { draft.bytes(row + 1)? } else { first.clone() };
        draft.set_bytes(row, next);
        draft.witness_anew(row)?;
        wrong |= argmax_is_wrong(&draft.rows[row], &draft.canonical(row)?);
    }
    draft.witness_all_anew()?;
    if !wrong {
        return not_applicable("rows carry no argmax, or neighbours have the same");
    }
    refused(Rule::ArgmaxWitness, draft.rows[group.start].request().to_string())
}

fn row_copied(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let from = draft.scored(dice)?;
    let (request, prefix) = (draft.rows[from].request(), draft.rows[from].prefix_sha256);
    let several = draft.groups().len() > 1;
    let to = draft.find(dice, "there is no row with another prefix", |row| {
        row.prefix_sha256 != prefix && (!several || row.request() != request)
    })?;
    let bytes = draft.bytes(from)?;
    draft.set_bytes(to, bytes);
    draft.witness_anew(to)?;
    refused(Rule::RowDuplicatedContent, format!("{} on {}", at(draft, from), at(draft, to)))
}

fn flipped(mut digest: [u8; 32]) -> [u8; 32] {
    digest[0] ^= 1;
    digest
}

fn witness_altered(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let row = draft.scored(dice)?;
    if !draft.is_witnessed(row) {
        return not_applicable("rows carry neither scores_sha256 nor scores_blake3");
    }
    let place = at(draft, row);
    let row = &mut draft.rows[row];
    if let Some(digest) = &mut row.scores_sha256 {
        digest.0 = flipped(digest.0);
    } else if let Some(digest) = &mut row.scores_blake3 {
        digest.0 = flipped(digest.0);
    }
    refused(Rule::ScoreWitness, place)
}

fn scores_truncated(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let row_bytes = draft.vocab()? * draft.declared()?.dtype.size();
    // An empty file is nothing-to-verify.
    let bytes = 1 + dice.below(row_bytes.saturating_sub(1).max(1));
    draft.change = Some(FileChange::ScoresCut(u64::try_from(bytes).unwrap_or(1)));
    refused(Rule::ScoresShort, format!("{bytes} bytes"))
}

fn scores_trailing(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let bytes = 1 + dice.below(draft.vocab()? * draft.declared()?.dtype.size());
    draft.change = Some(FileChange::ScoresLonger(u64::try_from(bytes).unwrap_or(1)));
    refused(Rule::ScoresTrailing, format!("{bytes} bytes"))
}

fn argmax_altered(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    draft.declared()?;
    let row = draft.find(dice, "rows carry no argmax", |row| row.argmax.is_some())?;
    let token = draft.lesser_token(row, dice)?;
    draft.rows[row].argmax = Some(token);
    refused(Rule::ArgmaxWitness, format!("{}, token id {token}", at(draft, row)))
}

fn runner_up_altered(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    draft.declared()?;
    let both = |row: &Row| row.argmax.is_some() && row.runner_up.is_some();
    let row = draft.find(dice, "rows carry no runner_up", both)?;
    let token = draft.lesser_token(row, dice)?;
    draft.rows[row].runner_up = Some(token);
    refused(Rule::ArgmaxWitness, format!("{}, token id {token}", at(draft, row)))
}

/// The path of a row's token in run.json's output.
fn output_path(draft: &Draft<'_, '_>, row: usize) -> Result<String, Skip> {
    let key = draft.rows[row].key;
    Ok(format!("requests.{}.output_token_ids.{}", draft.request(key.request)?.0, key.position))
}

fn number(token: TokenId) -> Json {
    Json::Number(token.to_string())
}

fn token_not_argmax(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    draft.declared()?;
    if draft.run().greedy != Some(true) {
        return not_applicable("sampling.method is not greedy");
    }
    let row = draft.find(dice, "tokens are forced, and rows carry no sampled_token_id", |row| {
        row.sampled_token_id.is_some() || row.forced_token_id.is_none()
    })?;
    let token = draft.lesser_token(row, dice)?;
    let key = draft.rows[row].key;
    let forced = draft.rows[row].forced_token_id.is_some();
    let changed = &mut draft.rows[row];
    changed.sampled_token_id = changed.sampled_token_id.map(|_| token);
    if !forced {
        changed.token_id = token;
        let path = output_path(draft, row)?;
        draft.set(&path, number(token))?;
        draft.prefixes_anew(key.request)?;
    }
    refused(Rule::TokenNotArgmax, format!("{key}, token id {token}"))
}

/// Another token id, of the vocabulary where there is one.
fn another(draft: &Draft<'_, '_>, token: TokenId) -> TokenId {
    let limit = draft.run().scores.as_ref().map_or(u64::MAX, |scores| scores.vocab_size);
    let next = token.0 ^ 1;
    TokenId(if u64::from(next) < limit { next } else { token.0.saturating_sub(1) })
}

fn output_altered(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    // The last token that has a row: no later prefix has it.
    let row = draft.group(dice, 1)?.end - 1;
    let token = another(draft, draft.rows[row].token_id);
    let (_, request) = draft.request(draft.rows[row].request())?;
    let mut rules = vec![Rule::OutputMismatch];
    if draft.run().mode.is_replay() && draft.continuation_is_visible(request) {
        // Two facts: the output is not what the rows consumed, and not what was to be forced.
        rules.push(Rule::ContinuationMismatch);
    }
    let path = output_path(draft, row)?;
    draft.set(&path, number(token))?;
    Ok(Plan { expect: Expect::Refusal(rules), detail: format!("{}, token id {token}", at(draft, row)) })
}

/// A request with a prompt, as its place in run.json and a place in the prompt.
fn prompt_place(draft: &Draft<'_, '_>, dice: &mut Dice) -> Result<(usize, usize, usize), Skip> {
    let row = draft.group(dice, 1)?.start;
    let (number, request) = draft.request(draft.rows[row].request())?;
    if request.prompt_token_ids.is_empty() {
        return not_applicable("the prompt is empty");
    }
    Ok((row, number, dice.below(request.prompt_token_ids.len())))
}

fn token_beyond_vocabulary(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let vocab = draft.vocab()?;
    let (row, request, place) = prompt_place(draft, dice)?;
    draft.set(&format!("requests.{request}.prompt_token_ids.{place}"), Json::Number(vocab.to_string()))?;
    let key = draft.rows[row].request();
    draft.prefixes_anew(key)?;
    refused(Rule::VocabMismatch, format!("{key}, token id {vocab}"))
}

fn prompt_altered(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let (row, request, place) = prompt_place(draft, dice)?;
    let key = draft.rows[row].request();
    let old = draft.request(key)?.1.prompt_token_ids[place];
    let token = another(draft, old);
    draft.set(&format!("requests.{request}.prompt_token_ids.{place}"), number(token))?;
    refused(Rule::PrefixMismatch, format!("{key}, prompt token {place}: {old} → {token}"))
}

fn prefix_altered(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    // Where another row has the very same scores, they would stand under two prefixes as well.
    let row = if draft.run().scores.is_some() { draft.scored(dice)? } else { draft.group(dice, 1)?.start };
    let prefix = &mut draft.rows[row].prefix_sha256;
    *prefix = Sha256(flipped(prefix.0));
    refused(Rule::PrefixMismatch, at(draft, row))
}

fn relabel(draft: &mut Draft<'_, '_>, dice: &mut Dice, from: Phase, to: Phase) -> Result<Plan, Skip> {
    let row = draft.find(dice, &format!("no row is labelled {}", from.name()), |row| row.phase == from)?;
    draft.rows[row].phase = to;
    refused(Rule::PhaseMismatch, at(draft, row))
}

fn prefill_as_decode(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    relabel(draft, dice, Phase::Prefill, Phase::Decode)
}

fn decode_as_prefill(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    relabel(draft, dice, Phase::Decode, Phase::Prefill)
}

fn whole_prefix_as_decode(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let measured = |row: &Row| row.phase == Phase::Decode && row.kv_len.is_some() && row.query_len.is_some();
    let row = draft.find(dice, "no decode row carries query_len and kv_len", measured)?;
    let prompt = draft.request(draft.rows[row].request())?.1.prompt_token_ids.len();
    if prompt == 0 {
        return not_applicable("the prompt is empty");
    }
    let whole = u32::try_from(prompt).unwrap_or(u32::MAX).saturating_add(draft.rows[row].key.position);
    draft.rows[row].query_len = Some(whole);
    refused(Rule::PhaseMismatch, format!("{}, query_len {whole}", at(draft, row)))
}

fn row_missing(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    // Under replay the last row is replay-truncated's.
    let least = if draft.run().mode.is_replay() { 2 } else { 1 };
    let group = draft.group(dice, least)?;
    if draft.rows.len() < 2 {
        return not_applicable("there is one row");
    }
    let row = group.start + dice.below(group.len() - least + 1);
    let place = at(draft, row);
    draft.remove(row);
    draft.declare_rows()?;
    refused(Rule::RowMissing, place)
}

fn row_line_missing(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    draft.declared()?;
    if draft.rows.len() < 2 {
        return not_applicable("there is one row");
    }
    let row = dice.below(draft.rows.len());
    let place = at(draft, row);
    draft.remove_line(row);
    refused(Rule::RowMissing, place)
}

fn row_duplicated(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let row = dice.below(draft.rows.len());
    let copy = draft.rows[row].clone();
    draft.insert(row + 1, copy, row)?;
    draft.declare_rows()?;
    refused(Rule::RowDuplicated, at(draft, row))
}

fn row_unexpected(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let last = draft.group(dice, 1)?.end - 1;
    let output = draft.request(draft.rows[last].request())?.1.output_token_ids.len();
    let numbers = draft.rows.iter().flat_map(|row| [row.captured_seq, row.forced_seq]).flatten();
    let next = numbers.max().map_or(0, |max| max + 1);
    let mut row = draft.rows[last].clone();
    row.key.position = u32::try_from(output).unwrap_or(u32::MAX);
    row.captured_seq = row.captured_seq.map(|_| next);
    row.forced_seq = row.forced_seq.map(|_| next + 1);
    draft.insert(last + 1, row, last)?;
    draft.declare_rows()?;
    refused(Rule::RowUnexpected, at(draft, last + 1))
}

fn rows_reordered(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    if draft.rows.len() < 2 {
        return not_applicable("there is one row");
    }
    let first = dice.below(draft.rows.len() - 1);
    draft.change = Some(FileChange::RowsSwapped(first, first + 1));
    refused(Rule::RowsMisnumbered, format!("{} and {}", at(draft, first), at(draft, first + 1)))
}

/// Two requests with rows.
fn two_requests(draft: &Draft<'_, '_>, dice: &mut Dice) -> Result<(usize, usize), Skip> {
    let groups = draft.groups();
    if groups.len() < 2 {
        return not_applicable("there is one request");
    }
    let a = dice.below(groups.len() - 1);
    Ok((groups[a].start, groups[a + 1].start))
}

fn request_ids_duplicated(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let (a, b) = two_requests(draft, dice)?;
    let id = Arc::clone(&draft.rows[a].request_id);
    let key = draft.rows[b].request();
    let path = format!("requests.{}.request_id", draft.request(key)?.0);
    draft.set(&path, Json::String(id.to_string()))?;
    for row in draft.rows.iter_mut().filter(|row| row.request() == key) {
        row.request_id = Arc::clone(&id);
    }
    refused(Rule::RequestMismatch, format!("{key} as {id:?}"))
}

fn request_ids_swapped(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let (a, b) = two_requests(draft, dice)?;
    for (of, to) in [(a, b), (b, a)] {
        let id = draft.rows[of].request_id.to_string();
        let path = format!("requests.{}.request_id", draft.request(draft.rows[to].request())?.0);
        draft.set(&path, Json::String(id))?;
    }
    refused(Rule::RequestMismatch, format!("{} and {}", draft.rows[a].request(), draft.rows[b].request()))
}

/// Leaves out the second half of a request's rows; gives a row of what is left, and how many those are.
fn truncate(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<(usize, usize), Skip> {
    if !draft.run().mode.is_replay() {
        return not_applicable("nothing is replayed in this mode");
    }
    let group = draft.group(dice, 2)?;
    let kept = group.len() / 2;
    (group.start + kept..group.end).rev().for_each(|row| draft.remove(row));
    draft.declare_rows()?;
    Ok((group.start, kept))
}

fn replay_truncated(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let (row, kept) = truncate(draft, dice)?;
    refused(Rule::ReplayTruncated, format!("{} after {kept} rows", draft.rows[row].request()))
}

fn replay_truncated_output_cut(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    if draft.run().is_partial() {
        return not_applicable("a partial capture keeps listed positions");
    }
    let (row, kept) = truncate(draft, dice)?;
    let key = draft.rows[row].request();
    let (number, request) = draft.request(key)?;
    let output = request.output_token_ids.iter().take(kept).map(|token| self::number(*token)).collect();
    draft.set(&format!("requests.{number}.output_token_ids"), Json::Array(output))?;
    // An engine that stops makes no callbacks that it could have skipped.
    let mut numbers: Vec<u64> =
        draft.rows.iter().flat_map(|row| [row.captured_seq, row.forced_seq]).flatten().collect();
    numbers.sort_unstable();
    let first = numbers.first().copied().unwrap_or(0);
    let dense = |old: u64| numbers.binary_search(&old).ok().and_then(|n| u64::try_from(n).ok()).map(|n| first + n);
    for row in &mut draft.rows {
        row.captured_seq = row.captured_seq.and_then(dense);
        row.forced_seq = row.forced_seq.and_then(dense);
    }
    if draft.run().scores.is_some() {
        draft.witness_all_anew()?;
    }
    let detail = format!("{key} after {kept} rows");
    let asked = request.finish_reason == Some(FinishReason::Length)
        && draft.run().max_new_tokens.is_some_and(|asked| u64::try_from(kept).is_ok_and(|kept| kept < asked));
    if asked || draft.continuation_is_visible(request) {
        return refused(Rule::ContinuationMismatch, detail);
    }
    let how =
        "the run that was replayed is not in this store, and sampling.max_new_tokens is not given: either would tell";
    Ok(Plan { expect: Expect::Undetectable(how), detail })
}

fn forcing_altered(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let row = dice.below(draft.rows.len());
    let token = draft.rows[row].token_id;
    let forced = if draft.run().mode.is_replay() { another(draft, token) } else { token };
    draft.rows[row].forced_token_id = Some(forced);
    refused(Rule::ContinuationMismatch, format!("{}, token id {forced}", at(draft, row)))
}

fn forced_before_capture(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let both = |row: &Row| row.captured_seq.is_some() && row.forced_seq.is_some();
    let row = draft.find(dice, "nothing is forced in this mode, or rows carry no sequence numbers", both)?;
    let changed = &mut draft.rows[row];
    std::mem::swap(&mut changed.captured_seq, &mut changed.forced_seq);
    refused(Rule::CapturedAfterForcing, at(draft, row))
}

fn forced_before_capture_clock(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let both = |row: &Row| row.captured_at_ns.is_some_and(|at| at.0 > 0) && row.forced_at_ns.is_some();
    let row = draft.find(dice, "nothing is forced in this mode, or rows carry no times", both)?;
    // Sequence numbers decide where there are any.
    for row in &mut draft.rows {
        (row.captured_seq, row.forced_seq) = (None, None);
    }
    draft.rows[row].forced_at_ns = draft.rows[row].captured_at_ns.map(|at| Nanos(at.0 - 1));
    refused(Rule::CapturedAfterForcing, at(draft, row))
}

fn modified_before_capture(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    draft.declared()?;
    let timed = |row: &Row| row.captured_at_ns.is_some_and(|at| at.0 > 0);
    let row = draft.find(dice, "rows carry no captured_at_ns", timed)?;
    draft.rows[row].scores_modified_at_ns = draft.rows[row].captured_at_ns.map(|at| Nanos(at.0 - 1));
    refused(Rule::CapturedAfterForcing, at(draft, row))
}

fn callback_skipped(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    if draft.run().is_partial() {
        return not_applicable("a partial capture has gaps by design");
    }
    let first = draft.rows.iter().filter_map(|row| row.captured_seq).min();
    let row = draft.find(dice, "rows carry no captured_seq", |row| row.captured_seq > first)?;
    let Some(skipped) = draft.rows[row].captured_seq else { return not_applicable("rows carry no captured_seq") };
    let later = |number: u64| if number >= skipped { number + 1 } else { number };
    for row in &mut draft.rows {
        row.captured_seq = row.captured_seq.map(later);
        row.forced_seq = row.forced_seq.map(later);
    }
    refused(Rule::SequenceGap, format!("number {skipped}"))
}

fn callback_repeated(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let first = draft.rows.iter().filter_map(|row| row.captured_seq).min();
    let row = draft.find(dice, "rows carry no captured_seq", |row| row.captured_seq > first)?;
    // An earlier number: the row is still captured before it is forced.
    draft.rows[row].captured_seq = first;
    refused(Rule::RowDuplicated, at(draft, row))
}

fn times_swapped(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let group = draft.group(dice, 2)?;
    let a = group.start + dice.below(group.len() - 1);
    let pair = draft.rows.get_mut(a..a + 2);
    let Some([first, second]) = pair else { return not_applicable("no request has 2 rows") };
    if first.captured_at_ns.is_none() || second.captured_at_ns.is_none() {
        return not_applicable("rows carry no captured_at_ns");
    }
    std::mem::swap(&mut first.captured_at_ns, &mut second.captured_at_ns);
    std::mem::swap(&mut first.forced_at_ns, &mut second.forced_at_ns);
    std::mem::swap(&mut first.scores_modified_at_ns, &mut second.scores_modified_at_ns);
    refused(Rule::TimeOrder, format!("{} and {}", at(draft, a), at(draft, a + 1)))
}

fn nonce_of_another_run(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let row = draft.find(dice, "rows carry no run_nonce", |row| row.run_nonce.is_some())?;
    let nonce = draft.rows[row].run_nonce.as_deref().unwrap_or_default();
    draft.rows[row].run_nonce = Some(Arc::from(if nonce == "another-run" { "another" } else { "another-run" }));
    refused(Rule::RunMixed, at(draft, row))
}

fn chain_broken(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    if draft.run().is_partial() {
        return not_applicable("the chain of a partial capture is not judged");
    }
    let row = draft.find(dice, "rows carry no chain_sha256", |row| row.chain_sha256.is_some())?;
    draft.rows[row].chain_sha256 = draft.rows[row].chain_sha256.map(|chain| Sha256(flipped(chain.0)));
    refused(Rule::RunMixed, at(draft, row))
}

fn torn_tail(draft: &mut Draft<'_, '_>, dice: &mut Dice) -> Result<Plan, Skip> {
    let bytes = 1 + dice.below(16);
    draft.change = Some(FileChange::RowsCut(bytes));
    refused(Rule::TornCapture, format!("{bytes} bytes"))
}

fn run_json_missing(draft: &mut Draft<'_, '_>, _: &mut Dice) -> Result<Plan, Skip> {
    draft.change = Some(FileChange::RunMissing);
    refused(Rule::TornCapture, "run.json")
}

fn key_twice_in_run_json(draft: &mut Draft<'_, '_>, _: &mut Dice) -> Result<Plan, Skip> {
    draft.change = Some(FileChange::RunMember(",\"run_id\":\"another-run\""));
    refused(Rule::JsonNotCanonical, "run_id")
}

fn key_twice_in_row(draft: &mut Draft<'_, '_>, _: &mut Dice) -> Result<Plan, Skip> {
    draft.change = Some(FileChange::RowMember(",\"position\":1"));
    refused(Rule::JsonNotCanonical, "position")
}

/// Changes the first of these places of run.json that is there.
fn rebind(draft: &mut Draft<'_, '_>, paths: &[&str]) -> Result<Plan, Skip> {
    for path in paths {
        let Ok(place) = draft.at(path) else { continue };
        if let Some(other) = super::sealed::another_value(place) {
            let detail = format!("{path}: {} → {}", place.to_text(), other.to_text());
            *place = other;
            return Ok(Plan { expect: Expect::AnotherId, detail });
        }
    }
    not_applicable(format!("run.json does not give {}", paths.join(" or ")))
}

/// Where a run is bound to its model.
pub(super) const MODEL: &[&str] = &["model.files.0.sha256", "model.id"];
/// … to its tokenizer.
pub(super) const TOKENIZER: &[&str] = &["tokenizer.files.0.sha256", "tokenizer.source", "tokenizer.id"];
/// … to the dtype of its KV cache.
pub(super) const KV_DTYPE: &[&str] = &["model.kv_dtype"];
/// … to its execution mode.
pub(super) const EXECUTION: &[&str] = &["engine.execution"];
/// … to the shape of its schedule.
pub(super) const SCHEDULE: &[&str] = &["schedule.step", "schedule.slots", "schedule.requested_concurrency"];

fn model_altered(draft: &mut Draft<'_, '_>, _: &mut Dice) -> Result<Plan, Skip> {
    rebind(draft, MODEL)
}

fn tokenizer_altered(draft: &mut Draft<'_, '_>, _: &mut Dice) -> Result<Plan, Skip> {
    rebind(draft, TOKENIZER)
}

fn kv_dtype_altered(draft: &mut Draft<'_, '_>, _: &mut Dice) -> Result<Plan, Skip> {
    rebind(draft, KV_DTYPE)
}

fn execution_altered(draft: &mut Draft<'_, '_>, _: &mut Dice) -> Result<Plan, Skip> {
    rebind(draft, EXECUTION)
}

fn schedule_altered(draft: &mut Draft<'_, '_>, _: &mut Dice) -> Result<Plan, Skip> {
    rebind(draft, SCHEDULE)
}
