//! The rules that compare a run's bindings with a spec's pins: one loop, and each binding's own rule.

use super::SpecBench;
use crate::binding::Run;
use crate::canon::json::Json;
use crate::refusal::{Rule, Subject};
use crate::spec::Spec;

/// The rule that a pinned path belongs to.
fn rule_of(path: &str) -> Rule {
    match path {
        "engine.execution" => return Rule::ExecutionMismatch,
        "model.weights_dtype" | "scores.dtype" => return Rule::DtypeMismatch,
        "model.kv_dtype" => return Rule::KvDtypeMismatch,
        "scores.vocab_size" => return Rule::VocabMismatch,
        _ => {}
    }
    match path.split('.').next() {
        Some("model") => Rule::ModelMismatch,
        Some("tokenizer") => Rule::TokenizerMismatch,
        Some("engine") => Rule::EngineMismatch,
        Some("sampling") => Rule::SamplingMismatch,
        Some("corpus") => Rule::CorpusMismatch,
        _ => Rule::BindingMismatch,
    }
}

/// Whether a path is about scores, which a baseline does not have.
pub(super) fn is_asked(path: &str, run: &Run) -> bool {
    run.scores.is_some() || !path.starts_with("scores.")
}

pub(super) fn check(bench: &mut SpecBench<'_>) {
    let (run, spec) = (bench.run, bench.spec);
    for (path, pin) in spec.pins_for(run) {
        if !is_asked(path, run) {
            continue;
        }
        let subject = Subject::Binding(path.to_owned());
        match run.binding(path) {
            None | Some(Json::Null) => {
                bench.findings.refuse(Rule::BindingMissing, subject, pin.to_text(), "nothing");
            }
            Some(value) if !pin.matches(value) => {
                bench.findings.refuse(rule_of(path), subject, pin.to_text(), value.to_text());
            }
            Some(_) => {}
        }
    }
    // A spec that pins no transform pins its absence.
    if !spec.pins_for(run).contains_key("model.transform")
        && let Some(transform) = run.binding("model.transform").filter(|value| **value != Json::Null)
    {
        let subject = Subject::Binding("model.transform".to_owned());
        bench.findings.refuse(Rule::ModelMismatch, subject, "none, since the spec pins none", transform.to_text());
    }
    check_files(bench, run, spec);
}

fn check_files(bench: &mut SpecBench<'_>, run: &Run, spec: &Spec) {
    for (of, rule, pinned) in [
        ("model", Rule::ModelMismatch, &spec.pins.model_files),
        ("tokenizer", Rule::TokenizerMismatch, &spec.pins.tokenizer_files),
    ] {
        let declared = || run.files.iter().filter(move |file| file.of == of);
        let subject = |path: &str| Subject::Binding(format!("{of}.files {path:?}"));
        for (path, digest) in pinned {
            let expected = format!("SHA-256 {digest}");
            // A path may stand there twice: then both are what the run was made with.
            let mut same = declared().filter(|file| file.path == *path).peekable();
            if same.peek().is_none() {
                bench.findings.refuse(Rule::BindingMissing, subject(path), &expected, "no such file");
            }
            for file in same.filter(|file| file.sha256.to_string() != *digest) {
                bench.findings.refuse(rule, subject(path), &expected, file.sha256.to_string());
            }
        }
        if pinned.is_empty() {
            continue;
        }
        for file in declared().filter(|file| !pinned.contains_key(&file.path)) {
            bench.findings.refuse(rule, subject(&file.path), "only files that the spec pins", file.sha256.to_string());
        }
    }
}
