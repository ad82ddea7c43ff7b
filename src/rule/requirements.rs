//! The rules that compare a run and its rows with a spec's `[require]` table.

use super::SpecBench;
use super::pins::is_asked;
use crate::canon::json::Json;
use crate::refusal::{Rule, Subject};
use crate::row::{FIELDS, Phase};

pub(super) fn check(bench: &mut SpecBench<'_>) {
    bindings(bench);
    engine(bench);
    schedule(bench);
    rows(bench);
}

fn subject(path: &str) -> Subject {
    Subject::Binding(path.to_owned())
}

fn bindings(bench: &mut SpecBench<'_>) {
    let (run, require) = (bench.run, &bench.spec.require);
    for path in require.bindings.iter().filter(|path| is_asked(path, run)) {
        // `"transform": null` says that there is none; everywhere else null says nothing.
        let given = run.binding(path).is_some_and(|value| *value != Json::Null || path == "model.transform");
        if !given {
            bench.findings.refuse(Rule::BindingMissing, subject(path), "a value", "nothing");
        }
    }
    if require.extraction.is_empty() {
        return;
    }
    let expected = || require.extraction.iter().cloned().collect::<Vec<_>>().join(" or ");
    match run.binding("extraction") {
        Some(Json::String(found)) if require.extraction.contains(found) => {}
        Some(found) if *found != Json::Null => {
            bench.findings.refuse(Rule::BindingMismatch, subject("extraction"), expected(), found.to_text());
        }
        _ => bench.findings.refuse(Rule::BindingMissing, subject("extraction"), expected(), "nothing"),
    }
}

fn engine(bench: &mut SpecBench<'_>) {
    let (run, require) = (bench.run, &bench.spec.require);
    let text = |path: &str| match run.binding(path) {
        Some(Json::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if require.engine_bound
        && text("engine.binary_sha256").is_none_or(|digest| digest.parse::<crate::digest::Sha256>().is_err())
    {
        let commit = text("engine.commit");
        let hex = |commit: &str| commit.len() >= 40 && commit.bytes().all(|c| c.is_ascii_hexdigit());
        if commit.is_none_or(|commit| !hex(commit)) {
            let expected = "a whole commit (40 digits or more, not dirty), or engine.binary_sha256";
            bench.findings.refuse(Rule::EngineUnbound, subject("engine.commit"), expected, commit.unwrap_or("nothing"));
        }
    }
    if let Some(expected) = &require.execution {
        match text("engine.execution") {
            None => bench.findings.refuse(Rule::BindingMissing, subject("engine.execution"), expected, "nothing"),
            Some(found) if found != expected => {
                bench.findings.refuse(Rule::ExecutionMismatch, subject("engine.execution"), expected, found);
            }
            Some(_) => {}
        }
    }
}

/// Must be declared, and declared off.
fn off(bench: &mut SpecBench<'_>, path: &str, rule: Rule) {
    match bench.run.binding(path) {
        Some(Json::Bool(false)) => {}
        Some(Json::String(text)) if text == "none" && rule == Rule::SpeculationActive => {}
        None | Some(Json::Null) => bench.findings.refuse(Rule::BindingMissing, subject(path), "false", "nothing"),
        Some(value) => bench.findings.refuse(rule, subject(path), "false", value.to_text()),
    }
}

fn schedule(bench: &mut SpecBench<'_>) {
    let (run, rows, require) = (bench.run, bench.rows, &bench.spec.require);
    if require.no_prefix_cache {
        off(bench, "schedule.prefix_caching", Rule::PrefixCacheActive);
    }
    if require.no_speculation {
        off(bench, "schedule.speculation", Rule::SpeculationActive);
    }
    if require.concurrency_reached {
        let path = "schedule.requested_concurrency";
        let Some(wanted) = run.batch_wanted() else {
            let found = run.binding(path).map_or("nothing".to_owned(), Json::to_text);
            bench.findings.refuse(Rule::BindingMissing, subject(path), "an integer from 1 on", found);
            return;
        };
        let reached = rows.iter().filter_map(|row| row.batch_size).max().map(u64::from);
        if reached.unwrap_or(0) < wanted {
            let expected = format!("a row of batch_size {wanted} or more");
            let found = reached.map_or("no row that gives its batch_size".to_owned(), |most| format!("at most {most}"));
            bench.findings.refuse(Rule::ConcurrencyNotReached, Subject::Capture, expected, found);
        }
    }
}

fn rows(bench: &mut SpecBench<'_>) {
    let (run, rows, require) = (bench.run, bench.rows, &bench.spec.require);
    // A baseline carries no witnesses: it is the engine without instrumentation.
    let asked = require
        .witnesses
        .iter()
        .filter(|name| run.scores.is_some() && (run.mode.is_replay() || !name.starts_with("forced_")));
    for name in asked {
        let Some(index) = FIELDS.iter().position(|field| field.name == name) else { continue };
        for row in rows.iter().filter(|row| row.get(index).is_none()) {
            bench.findings.refuse(Rule::WitnessMissing, Subject::Row(row.key), format!("a {name}"), "none");
        }
    }
    let recomputed = rows.iter().filter(|row| row.phase == Phase::Recomputed).count();
    if u64::try_from(recomputed).is_ok_and(|count| count > require.max_recomputed) {
        let expected = format!("at most {} recomputed rows", require.max_recomputed);
        bench.findings.refuse(Rule::RowRecomputed, Subject::Capture, expected, recomputed.to_string());
    }
    let rows = u64::try_from(rows.len()).unwrap_or(u64::MAX);
    let bytes = run.scores.as_ref().map_or(0, |scores| rows.saturating_mul(scores.vocab_size).saturating_mul(4));
    for (most, found, what) in
        [(require.max_rows, rows, "rows"), (require.max_score_bytes, bytes, "bytes of scores as f32")]
    {
        if let Some(most) = most.filter(|most| found > *most) {
            let expected = format!("at most {most} {what}");
            bench.findings.refuse(Rule::LimitExceeded, Subject::Capture, expected, found.to_string());
        }
    }
    let Some(window) = require.window else { return };
    for request in &run.requests {
        let length = request.prompt_token_ids.len() + request.output_token_ids.len();
        if u64::try_from(length).is_ok_and(|length| length > window) {
            let subject = Subject::Request(request.key);
            bench.findings.refuse(
                Rule::RecordOverWindow,
                subject,
                format!("at most {window} tokens"),
                length.to_string(),
            );
        }
    }
}
