//! A first spec from captures: every pin that they show, filled in.
//!
//! What all captures have in common is pinned for all, what those of one role have in common for that role. What they do not show is left out, and
//! `spec check` says that it is open. See `specs/spec-v1.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{Pin, SPEC_SCHEMA, corpus_digest};
use crate::binding::{IDENTIFYING, Role, Run};
use crate::canon::json::Json;
use crate::row::{FIELDS, Row};
use crate::shown::{is_obeyed, printable};

/// Bindings that are pinned where captures give them.
const PINNED: [&str; 22] = [
    "model.id",
    "model.weights_dtype",
    "model.kv_dtype",
    "model.transform",
    "tokenizer.vocab_size",
    "scores.vocab_size",
    "scores.dtype",
    "scores.semantic_point",
    "sampling.method",
    "sampling.temperature",
    "sampling.max_new_tokens",
    "sampling.ignore_eos",
    "engine.name",
    "engine.version",
    "engine.commit",
    "engine.binary_sha256",
    "engine.framework",
    "engine.attention",
    "engine.execution",
    "device.name",
    "device.runtime",
    "schedule.prefix_caching",
];

/// Writes a spec that these captures meet, each a run with its rows in key order.
#[must_use]
pub fn draft(captures: &[(&Run, &[Row])]) -> String {
    let mut text = String::new();
    // A String takes whatever is written to it, so this never fails.
    if write(&mut text, captures).is_err() {
        text.clear();
    }
    text
}

fn write(out: &mut String, captures: &[(&Run, &[Row])]) -> std::fmt::Result {
    let runs: Vec<&Run> = captures.iter().map(|(run, _)| *run).collect();
    let workload = runs.first().and_then(|run| text_of(run, "model.id")).unwrap_or_else(|| "workload".to_owned());
    writeln!(out, "# A draft from {}.", runs.iter().map(|run| printable(&run.run_id)).collect::<Vec<_>>().join(", "))?;
    writeln!(out, "schema = {}", quoted(SPEC_SCHEMA))?;
    writeln!(out, "workload = {}", quoted(&workload.to_lowercase()))?;
    writeln!(
        out,
        "# strict: the candidate must choose the oracle's tokens; diagnostic: describe, and accept nothing."
    )?;
    writeln!(out, "claim = \"strict\"")?;
    plan(out, &runs)?;
    require(out, captures, &runs)?;
    pins(out, &runs)
}

fn plan(out: &mut String, runs: &[&Run]) -> std::fmt::Result {
    let prompts: BTreeSet<u32> = runs.iter().flat_map(|run| run.requests.iter().map(|r| r.key.prompt_index)).collect();
    let digests: BTreeSet<_> = runs.iter().map(|run| corpus_digest(run)).collect();
    let longest = runs.iter().flat_map(|run| run.requests.iter().map(|r| r.output_token_ids.len())).max();
    let tokens = runs.iter().filter_map(|run| run.max_new_tokens).max();
    writeln!(out, "\n[corpus]")?;
    if let (Some(Some(digest)), 1) = (digests.first(), digests.len()) {
        writeln!(out, "sha256 = \"{digest}\"")?;
    }
    writeln!(out, "requests = {}", prompts.len())?;
    writeln!(out, "new_tokens = {}", tokens.unwrap_or_else(|| longest.map_or(1, |n| u64::try_from(n).unwrap_or(1))))?;
    // A run that requests nothing has no place in a plan.
    let requested = |run: &Run| run.requested_concurrency().filter(|requested| *requested > 0);
    let concurrencies: BTreeSet<u32> = runs.iter().filter_map(|run| requested(run)).collect();
    if concurrencies.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n[strata]\nconcurrency = {}\nphases = [\"prefill\", \"decode\"]", numbers(&concurrencies))?;
    let mut places: BTreeMap<(&str, &str), BTreeMap<u32, u32>> = BTreeMap::new();
    for run in runs {
        if let (Some(role), Some(concurrency)) = (run.role(), requested(run)) {
            let counts = places.entry((role.name(), run.mode.name())).or_default();
            *counts.entry(concurrency).or_default() += 1;
        }
    }
    for ((role, mode), counts) in places {
        let by_count =
            counts.into_iter().fold(BTreeMap::<u32, BTreeSet<u32>>::new(), |mut map, (concurrency, count)| {
                map.entry(count).or_default().insert(concurrency);
                map
            });
        for (repetitions, concurrency) in by_count {
            writeln!(out, "\n[[runs]]\nrole = \"{role}\"\nmode = \"{mode}\"\nconcurrency = {}", numbers(&concurrency))?;
            writeln!(out, "repetitions = {repetitions}")?;
        }
    }
    Ok(())
}

fn require(out: &mut String, captures: &[(&Run, &[Row])], runs: &[&Run]) -> std::fmt::Result {
    let given = |run: &Run, path: &str| {
        run.binding(path).is_some_and(|value| *value != Json::Null || path == "model.transform")
    };
    let bindings = IDENTIFYING.into_iter().filter(|path| runs.iter().all(|run| given(run, path)));
    writeln!(out, "\n[require]\nbindings = {}", strings(bindings))?;
    let scored = || captures.iter().filter(|(run, _)| run.scores.is_some());
    let witnessed = |index: usize, name: &str| {
        let asked = |run: &Run| run.mode.is_replay() || !name.starts_with("forced_");
        scored().filter(|(run, _)| asked(run)).all(|(_, rows)| rows.iter().all(|row| row.get(index).is_some()))
            && scored().any(|(run, _)| asked(run))
    };
    let optional = FIELDS.iter().enumerate().filter(|(_, field)| !field.required && field.name != "score_digest");
    let witnesses = optional.filter(|(index, field)| witnessed(*index, field.name)).map(|(_, field)| field.name);
    writeln!(out, "witnesses = {}", strings(witnesses))?;
    let extractions: BTreeSet<String> = runs.iter().filter_map(|run| text_of(run, "extraction")).collect();
    if !extractions.is_empty() {
        writeln!(out, "extraction = {}", strings(extractions.iter().map(String::as_str)))?;
    }
    let off = |path: &str| runs.iter().all(|run| matches!(run.binding(path), Some(Json::Bool(false))));
    writeln!(out, "no_prefix_cache = {}", off("schedule.prefix_caching"))?;
    writeln!(out, "no_speculation = {}", off("schedule.speculation"))?;
    let bound = |run: &&Run| text_of(run, "engine.commit").or(text_of(run, "engine.binary_sha256")).is_some();
    writeln!(out, "engine_bound = {}", runs.iter().all(bound))?;
    let widest = |rows: &[Row]| rows.iter().filter_map(|row| row.batch_size).max().map_or(0, u64::from);
    let reached = captures.iter().all(|(run, rows)| run.batch_wanted().is_some_and(|wanted| widest(rows) >= wanted));
    writeln!(out, "concurrency_reached = {reached}\nmax_recomputed = 0")?;
    let lengths = runs.iter().flat_map(|run| run.requests.iter());
    let window = lengths.map(|request| request.prompt_token_ids.len() + request.output_token_ids.len()).max();
    writeln!(out, "window = {}", window.unwrap_or(1))
}

fn pins(out: &mut String, runs: &[&Run]) -> std::fmt::Result {
    let mut tables: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for path in PINNED {
        let mut by_role: BTreeMap<Option<Role>, BTreeSet<String>> = BTreeMap::new();
        for run in runs.iter().filter(|run| run.scores.is_some() || !path.starts_with("scores.")) {
            let value = run.binding(path).and_then(toml).unwrap_or_default();
            by_role.entry(run.role()).or_default().insert(value);
        }
        let all: BTreeSet<&String> = by_role.values().flatten().collect();
        let engine = path.starts_with("engine.") || path == "model.transform";
        // An engine is that of its role, also where only one role has been seen.
        if let (Some(value), 1, false) = (all.first(), all.len(), engine && by_role.len() == 1) {
            if !value.is_empty() {
                tables.entry("all").or_default().push(format!("{} = {value}", quoted(path)));
            }
            continue;
        }
        for (role, values) in by_role {
            if let (Some(role), Some(value), 1) = (role, values.first(), values.len())
                && !value.is_empty()
            {
                tables.entry(role.name()).or_default().push(format!("{} = {value}", quoted(path)));
            }
        }
    }
    for table in ["all", "oracle", "candidate"] {
        if let Some(lines) = tables.get(table) {
            writeln!(out, "\n[pins.{table}]\n{}", lines.join("\n"))?;
        }
    }
    for (table, of) in [("model_files", "model"), ("tokenizer_files", "tokenizer")] {
        let files = |run: &&Run| -> BTreeSet<(String, String)> {
            let files = run.files.iter().filter(|file| file.of == of);
            files.map(|file| (file.path.clone(), file.sha256.to_string())).collect()
        };
        let sets: BTreeSet<_> = runs.iter().map(files).collect();
        if let (Some(files), 1) = (sets.first().filter(|files| !files.is_empty()), sets.len()) {
            writeln!(out, "\n[pins.{table}]")?;
            for (path, digest) in files {
                writeln!(out, "{} = \"{digest}\"", quoted(path))?;
            }
        }
    }
    Ok(())
}

fn text_of(run: &Run, path: &str) -> Option<String> {
    match run.binding(path) {
        Some(Json::String(text)) => Some(text.clone()),
        _ => None,
    }
}

/// A value as TOML; none where a pin cannot hold it.
fn toml(json: &Json) -> Option<String> {
    match json {
        Json::Bool(value) => Some(value.to_string()),
        Json::String(text) => Some(quoted(text)),
        Json::Number(text) if text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok() => Some(text.clone()),
        Json::Number(text) => {
            let real = text.parse::<f64>().ok().filter(|value| Pin::Real(*value).matches(json));
            real.map(|value| format!("{value:?}"))
        }
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

/// A basic string: what JSON escapes, TOML escapes the same way. What else a terminal would obey is escaped too: a draft is read before it is sealed.
fn quoted(text: &str) -> String {
    let json = Json::String(text.to_owned()).to_text();
    let escaped = |c: char| if is_obeyed(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    json.chars().map(escaped).collect()
}

fn strings<'a>(items: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", items.map(quoted).collect::<Vec<_>>().join(", "))
}

fn numbers(items: &BTreeSet<u32>) -> String {
    format!("[{}]", items.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is drafted from a number is a pin that it meets; none where no pin can be.
    #[test]
    fn a_drafted_number_meets_its_pin() {
        for text in ["0", "-7", "1.5", "1e-310", "9007199254740993", "18446744073709551615", "100000000000000000000"] {
            let json = Json::Number(text.to_owned());
            let pin: BTreeMap<String, Pin> = toml::from_str(&format!("x = {}", super::toml(&json).unwrap())).unwrap();
            assert!(pin["x"].matches(&json), "{text}");
        }
        assert_eq!(super::toml(&Json::Number("36893488147419103233".to_owned())), None);
    }
}
