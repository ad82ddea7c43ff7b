//! Text for a terminal: each function renders one value, whole, and looks at nothing else.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use crate::binding::{FinishReason, Run};
use crate::canon::json::Json;
use crate::diff::{Change, Diff, Scores, Shapes};
use crate::digest::Sha256;
use crate::id::{ObjectId, RowKey, long};
use crate::log::Log;
use crate::manifest::{Act, Manifest};
use crate::refusal::{Findings, Note, NoteKind, Refusal, Rule};
use crate::rule::claim::{judged_calibrations, judged_claims};
use crate::rule::{Applies, about};
use crate::seal::Sealed;
use crate::shown::printable;
use crate::spec::Spec;
use crate::verify::sample::Sampled;
use crate::verify::{Depth, Outcome};

/// Refusals of one rule that are listed before the rest is counted.
const SHOWN: usize = 4;
/// Rows of a diff that are listed before the rest is counted.
const SHOWN_ROWS: usize = 12;
/// Width of the first column.
const LABEL: usize = 18;

/// The first twelve digits of an id, for tables whose ids stand whole elsewhere.
#[must_use]
pub fn short(id: &impl std::fmt::Display) -> String {
    id.to_string().chars().take(12).collect()
}

/// A number of bytes.
#[must_use]
pub fn bytes(count: u64) -> String {
    indicatif::DecimalBytes(count).to_string()
}

/// A noun with its number.
#[must_use]
pub fn count(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// A number of log entries.
#[must_use]
pub fn entries(number: u64) -> String {
    if number == 1 { "1 entry".to_owned() } else { format!("{number} entries") }
}

/// How many differ, or that none does.
fn differing(number: usize) -> String {
    match number {
        0 => "equal".to_owned(),
        1 => "1 differs".to_owned(),
        _ => format!("{number} differ"),
    }
}

pub(super) struct Page(pub(super) String);

impl Page {
    pub(super) fn line(&mut self, text: impl std::fmt::Display) {
        self.0.push_str(&printable(&text.to_string()));
        self.0.push('\n');
    }

    pub(super) fn field(&mut self, label: &str, text: impl std::fmt::Display) {
        self.line(format_args!("  {label:<LABEL$} {text}"));
    }

    /// Words after a label, broken into lines of a readable width.
    pub(super) fn words(&mut self, label: &str, text: &str) {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        self.list(label, &words, "");
    }

    /// A list after a label, broken into lines of a readable width.
    fn list(&mut self, label: &str, items: &[String], separator: &str) {
        let mut label = label;
        let mut line = String::new();
        for (n, item) in items.iter().enumerate() {
            let item = if n + 1 < items.len() { format!("{item}{separator}") } else { item.clone() };
            if !line.is_empty() && line.chars().count() + item.chars().count() > 80 {
                self.field(label, line.trim_end());
                label = "";
                line.clear();
            }
            line.push_str(&item);
            line.push(' ');
        }
        if !line.is_empty() {
            self.field(label, line.trim_end());
        }
    }
}

/// Refusals, by rule, each with what to do. `of` says what they are about.
#[must_use]
pub fn refusals(refusals: &[Refusal], of: &str) -> String {
    let mut page = Page(String::new());
    let mut by_rule: BTreeMap<Rule, Vec<&Refusal>> = BTreeMap::new();
    for refusal in refusals {
        by_rule.entry(refusal.rule).or_default().push(refusal);
    }
    for (rule, group) in by_rule {
        for refusal in group.iter().take(SHOWN) {
            page.line(format_args!("REFUSED: {rule}: {of}{}", refusal.subject));
            page.field("expected", &refusal.expected);
            page.field("found", &refusal.found);
        }
        if group.len() > SHOWN {
            page.line(format_args!("  … and {} more of {rule} (--json lists all)", group.len() - SHOWN));
        }
        page.words("what to do", about(rule).remedy);
    }
    page.0
}

fn notes(page: &mut Page, notes: &[Note]) {
    let of = |kind: NoteKind| -> Vec<String> {
        notes.iter().filter(|note| note.kind == kind).map(|note| note.text.clone()).collect()
    };
    page.list("unbound", &of(NoteKind::Unbound), ",");
    for (kind, label) in [
        (NoteKind::DeclaredNotSeen, "declared, not seen"),
        (NoteKind::NotCheckable, "not checkable"),
        (NoteKind::Undecided, "undecided"),
        (NoteKind::Observed, "observed"),
    ] {
        for (n, text) in of(kind).into_iter().enumerate() {
            page.field(if n == 0 { label } else { "" }, text);
        }
    }
}

/// What sealing a directory came to, for stderr: the id itself goes to stdout.
#[must_use]
pub fn sealed(sealed: &Sealed) -> String {
    let mut page = Page(String::new());
    let document = &sealed.document.capture;
    let what = if sealed.already {
        format!("already sealed at entry {}, nothing written", sealed.entry)
    } else {
        format!("sealed at entry {}", sealed.entry)
    };
    page.line(format_args!("{}: {what}", sealed.name));
    page.field("rows", rows_text(document.rows, document.vocab_size));
    page.field("row root", document.row_root);
    if let Some(root) = document.score_root {
        page.field("score root", root);
    }
    page.field("stored", stored_text(&sealed.document));
    for note in sealed.findings.notes.iter().filter(|note| note.kind == NoteKind::Observed) {
        page.field("observed", &note.text);
    }
    page.0
}

fn rows_text(rows: u64, vocab: Option<u64>) -> String {
    match vocab {
        Some(vocab) => format!("{rows} × {vocab} scores"),
        None => format!("{rows}, tokens only"),
    }
}

fn stored_text(manifest: &Manifest) -> String {
    let stored: u64 = manifest.score_shards.iter().map(|shard| shard.bytes).sum();
    let Some(vocab) = manifest.capture.vocab_size else { return "no scores".to_owned() };
    let raw = u128::from(manifest.capture.rows) * u128::from(vocab) * 4;
    let per_mille = (u128::from(stored) * 1000).checked_div(raw).unwrap_or(0);
    let codec = manifest.score_shards.first().map_or("", |shard| shard.codec.name());
    let shards = count(long(manifest.score_shards.len()), "scores shard");
    format!("{} in {shards}, {codec}: {}.{:03} of f32", bytes(stored), per_mille / 1000, per_mille % 1000)
}

/// What a verify came to.
#[must_use]
pub fn outcome(outcome: &Outcome, spec: Option<&Spec>) -> String {
    let mut page = Page(String::new());
    page.line(format_args!("capture {}", outcome.capture));
    if let Some(run_id) = &outcome.run_id {
        page.field("run", run_id);
    }
    let checked = outcome.checked;
    let manifests =
        if outcome.manifests.len() > 1 { format!(", {} manifests", outcome.manifests.len()) } else { String::new() };
    page.field(
        "checked",
        format_args!(
            "{}, {} of scores, {} ({}){manifests}",
            count(checked.rows, "row"),
            count(checked.scored_rows, "row"),
            count(checked.objects, "object"),
            bytes(checked.bytes)
        ),
    );
    if let Some(spec) = spec {
        let digest = spec.sha256.map_or_else(String::new, |digest| format!(", SHA-256 {digest}"));
        page.field("spec", format_args!("{}{digest}", spec.workload));
    }
    if let Some(verified) = &outcome.verified {
        let document = &verified.manifest().capture;
        page.field("row root", document.row_root);
        if let Some(root) = document.score_root {
            page.field("score root", root);
        }
    }
    notes(&mut page, &outcome.findings.notes);
    page.0.push_str(&refusals(&outcome.findings.refusals, ""));
    verdict(outcome).lines().for_each(|line| page.line(line));
    page.0
}

fn verdict(outcome: &Outcome) -> String {
    let broken = long(outcome.findings.refusals.len());
    if broken > 0 {
        return format!("NOT VERIFIED: {}", count(broken, "refusal"));
    }
    if outcome.verified.as_ref().is_some_and(|verified| !verified.manifest().capture.complete) {
        return "INCOMPLETE: nothing was refused, but the run never ended; this evidence can never qualify".to_owned();
    }
    let scored = outcome.verified.as_ref().is_some_and(|verified| verified.run().scores.is_some());
    match outcome.depth {
        Depth::Full => "VERIFIED: every byte, and every rule that the witnesses allow".to_owned(),
        Depth::Quick if scored => {
            "QUICK PASS: every byte hashed, both roots derived from recorded digests. No score was derived again:\n\
             score-nonfinite, score-witness, row-swapped, argmax-witness and token-not-argmax were not asked"
                .to_owned()
        }
        Depth::Quick => "QUICK PASS: every byte hashed; a baseline has no scores to derive again".to_owned(),
        Depth::Sample(_) => sample_verdict(outcome.sampled),
        Depth::Rows => "ROWS ONLY: no scores shard was opened".to_owned(),
    }
}

fn sample_verdict(sampled: Option<Sampled>) -> String {
    let Some(sampled) = sampled else { return "SAMPLE PASS: a baseline has no scores to draw from".to_owned() };
    let percent = |damaged| 100.0 * sampled.caught(damaged);
    format!(
        "SAMPLE PASS: {} of {} rows of scores derived again, drawn by seed {}; all documents and row records.\n\
         One damaged row would have been caught with probability {:.2} %, at least one of ten with {:.2} %.\n\
         The other scores were neither hashed nor derived; f32_sha256_at_capture and chain_sha256 were not asked",
        sampled.drawn,
        sampled.rows,
        sampled.sample.seed,
        percent(1),
        percent(10)
    )
}

/// Faults of the store itself, not of one capture.
#[must_use]
pub fn store_findings(findings: &Findings) -> String {
    refusals(&findings.refusals, "store: ")
}

/// What a rule is for.
#[must_use]
pub fn explain(rule: Rule) -> String {
    let mut page = Page(String::new());
    let about = about(rule);
    page.line(rule);
    page.words("protects", about.protects);
    page.words("what to do", about.remedy);
    page.field("asked", asked(rule));
    page.0
}

/// When a rule is asked, and by which commands.
#[must_use]
pub fn asked(rule: Rule) -> &'static str {
    let calibrating = judged_calibrations().contains(&rule);
    match about(rule).applies {
        Applies::Always => "always",
        Applies::WithModel => "with verify --model DIR, or with a spec",
        Applies::WithSpec => "with a spec: seal --spec, verify --spec",
        Applies::Qualification if !calibrating => "when a result is derived: qualify, verify RESULT",
        Applies::Qualification if judged_claims().contains(&rule) => {
            "when captures are judged together: qualify, verify RESULT, calibrate"
        }
        Applies::Qualification => "when the oracle is calibrated: calibrate",
    }
}

/// All rules with what they protect, in short.
#[must_use]
pub fn rules() -> String {
    let mut page = Page(String::new());
    for rule in Rule::ALL {
        let protects = about(*rule).protects;
        let end = [": ", "; ", ". "].iter().filter_map(|mark| protects.find(mark)).min().unwrap_or(protects.len());
        let first = protects.get(..end).unwrap_or(protects).trim_end_matches('.');
        let mut line = format!("{rule:<24}");
        for word in first.split_whitespace() {
            if line.chars().count() + word.chars().count() >= 100 {
                page.line(&line);
                line = " ".repeat(24);
            }
            line.push(' ');
            line.push_str(word);
        }
        page.line(line);
    }
    page.0
}

/// A spec, and what it leaves open.
#[must_use]
pub fn spec(spec: &Spec) -> String {
    let mut page = Page(String::new());
    page.line(format_args!("spec {}", spec.sha256.map_or_else(String::new, |id| id.to_string())));
    page.field("workload", &spec.workload);
    let pins = spec.pins.all.len() + spec.pins.oracle.len() + spec.pins.candidate.len();
    page.field(
        "pins",
        format_args!(
            "{pins} bindings, {}, {}",
            count(long(spec.pins.model_files.len()), "model file"),
            count(long(spec.pins.tokenizer_files.len()), "tokenizer file")
        ),
    );
    for runs in &spec.runs {
        let at: Vec<String> = runs.concurrency.iter().map(|n| format!("c{n}")).collect();
        let partition = runs.partition.map_or(String::new(), |partition| format!(", {}", partition.name()));
        let what = format!("{} {}", runs.role.name(), runs.mode.name());
        page.field("runs", format_args!("{what:<24} {:<8} {} each{partition}", at.join(" "), runs.repetitions));
    }
    for undescribed in spec.undescribed() {
        page.words("unknown", &undescribed);
    }
    for open in spec.open() {
        page.words("open", &open);
    }
    page.0
}

/// A spec that is in the log, for stderr: its id goes to stdout.
#[must_use]
pub fn spec_sealed(spec: &Spec, place: usize, new: bool) -> String {
    let mut page = Page(String::new());
    let how = if new { "in the log at entry" } else { "already in the log at entry" };
    page.line(format_args!(
        "spec of {} {how} {place}: candidates that are sealed after it can be judged by it",
        spec.workload
    ));
    for undescribed in spec.undescribed() {
        page.words("unknown", &undescribed);
    }
    for open in spec.open() {
        page.words("open", &open);
    }
    page.0
}

/// The log, a line an entry.
#[must_use]
pub fn log(log: &Log, origin: &str, names: &dyn Fn(&crate::id::CaptureId) -> String) -> String {
    let mut page = Page(String::new());
    let entries = entries(long(log.entries.len()));
    // What a refused log has is not what its head says it has.
    if log.refusals.is_empty() {
        page.line(format_args!("origin {origin}, {entries}, root {}", log.root()));
    } else {
        page.line(format_args!("origin {origin}, {entries} that could be read"));
    }
    for (n, entry) in log.entries.iter().enumerate() {
        let at = utc(&entry.at);
        match entry.act {
            Act::Seal(capture, _) => page.line(format_args!("{n:>5}  seal     {capture}  {at}  {}", names(&capture))),
            Act::Document(act, document) => {
                page.line(format_args!("{n:>5}  {:<7}  {}  {at}", act.name(), document.subject));
            }
        }
    }
    page.0
}

/// Unix nanoseconds as UTC to the second.
fn utc(nanos: &str) -> String {
    let time = |nanos: u64| UNIX_EPOCH.checked_add(Duration::from_nanos(nanos));
    let time = nanos.parse().ok().and_then(time);
    time.map_or("—".to_owned(), |time| humantime::format_rfc3339_seconds(time).to_string())
}

/// A capture, as its documents describe it.
#[must_use]
pub fn show(manifest: &Manifest, manifests: &[ObjectId], run: &Run, capture: &crate::id::CaptureId) -> String {
    let mut page = Page(String::new());
    let document = &manifest.capture;
    page.line(format_args!("capture {capture}"));
    page.field("run", &run.run_id);
    page.field("rows", rows_text(document.rows, document.vocab_size));
    page.field("row root", document.row_root);
    page.field("score root", document.score_root.map_or("none".to_owned(), |root: Sha256| root.to_string()));
    page.field("run.json", format_args!("{} SHA-256 {}", bytes(document.run_json.bytes), document.run_json.sha256));
    for manifest in manifests {
        page.field("manifest", manifest);
    }
    for shard in &manifest.row_shards {
        page.field("rows shard", format_args!("{} {} rows, {}", shard.object, shard.rows, bytes(shard.bytes)));
    }
    for shard in &manifest.score_shards {
        let codec = shard.codec.name();
        page.field(
            "scores shard",
            format_args!("{} {} rows, {}, {codec}", shard.object, shard.rows, bytes(shard.bytes)),
        );
    }
    for attachment in &document.attachments {
        page.field(
            "attachment",
            format_args!("{} {}, {}", attachment.blake3, bytes(attachment.bytes), attachment.path),
        );
    }
    page.line("bindings");
    for (path, value) in run.bindings() {
        page.line(format_args!("  {path:<34} {value}"));
    }
    page.line("requests");
    for request in &run.requests {
        let reason = match request.finish_reason {
            Some(FinishReason::Length) => "length",
            Some(FinishReason::Stop) => "stop",
            Some(FinishReason::Abort) => "abort",
            None => "no reason given",
        };
        let kept = request.positions.as_ref().map(|kept| format!(", {} kept", kept.len())).unwrap_or_default();
        let (prompt, output) = (request.prompt_token_ids.len(), request.output_token_ids.len());
        let lengths = format!("{prompt} + {output} tokens{kept}, {reason}");
        page.line(format_args!(
            "  {:<10} {lengths:<34} {}",
            request.key.to_string(),
            prompt_text(run, &request.request_id)
        ));
    }
    page.0
}

/// The prompt's text, where run.json gives one.
fn prompt_text(run: &Run, request_id: &str) -> String {
    let Some(Json::Array(requests)) = run.json().get("requests") else { return String::new() };
    let id = Json::String(request_id.to_owned());
    let request = requests.iter().find(|request| request.get("request_id") == Some(&id));
    let text = request.and_then(|request| request.get("prompt")).map(Json::to_text).unwrap_or_default();
    if text.chars().count() <= 60 { text } else { format!("{}…\"", text.chars().take(58).collect::<String>()) }
}

fn change(page: &mut Page, change: &Change) {
    let show = |value: &Option<String>| value.clone().unwrap_or_else(|| "absent".to_owned());
    let (a, b) = (show(&change.a), show(&change.b));
    if a.chars().count() + b.chars().count() <= 60 {
        page.line(format_args!("    {:<34} {a} → {b}", change.path));
    } else {
        page.line(format_args!("    {}", change.path));
        page.line(format_args!("      A  {a}"));
        page.line(format_args!("      B  {b}"));
    }
}

/// What two captures have apart.
#[must_use]
pub fn diff(diff: &Diff, strict: bool) -> String {
    let mut page = Page(String::new());
    for (label, side) in [("A", &diff.a), ("B", &diff.b)] {
        page.line(format_args!("{label}  {}  {}", side.capture, side.run_id));
    }
    page.line("");
    let compared = diff.compared;
    if compared.bindings {
        diff_bindings(&mut page, diff)
    } else {
        page.field("bindings", "not compared")
    }
    if compared.rows {
        diff_rows(&mut page, diff)
    } else {
        page.field("rows", "not compared")
    }
    match &diff.scores {
        Some(scores) => self::scores(&mut page, scores),
        None => page.field("scores", "not compared"),
    }
    let incidental: Vec<String> = diff.incidental.keys().map(|field| (*field).to_owned()).collect();
    let names = if diff.a.run_id == diff.b.run_id { Vec::new() } else { vec!["run_id".to_owned()] };
    page.list("incidental", &[names, incidental].concat(), ",");
    page.line("");
    page.line(if diff.is_identical(strict) { "IDENTICAL" } else { "DIFFERENT" });
    page.0
}

fn diff_bindings(page: &mut Page, diff: &Diff) {
    page.field("bindings", differing(diff.bindings.len()));
    diff.bindings.iter().for_each(|item| change(page, item));
    if !diff.attachments.is_empty() {
        page.field("attachments", differing(diff.attachments.len()));
        diff.attachments.iter().for_each(|item| change(page, item));
    }
    shapes(page, &diff.shapes);
}

fn diff_rows(page: &mut Page, diff: &Diff) {
    let only = |n: usize, side: &str| if n > 0 { format!(", {n} only in {side}") } else { String::new() };
    page.field(
        "requests",
        format_args!(
            "{} in both{}{}{}",
            diff.requests_common,
            only(diff.requests_only_a.len(), "A"),
            only(diff.requests_only_b.len(), "B"),
            if diff.prompts.is_empty() {
                String::new()
            } else {
                format!(", {} with another prompt", diff.prompts.len())
            }
        ),
    );
    page.field(
        "rows",
        format_args!(
            "{} in both{}{}",
            diff.rows_common,
            only(diff.rows_only_a.len(), "A"),
            only(diff.rows_only_b.len(), "B")
        ),
    );
    keys(page, "only in A", &diff.rows_only_a);
    keys(page, "only in B", &diff.rows_only_b);
    for (field, rows) in &diff.row_fields {
        page.line(format_args!("    {field} differs in {}", count(*rows, "row")));
    }
    if diff.tokens.is_empty() {
        page.field("tokens", "equal");
    } else {
        let requests = count(long(diff.tokens.len()), "request");
        page.field("tokens", format_args!("part in {requests}"));
        for change in &diff.tokens {
            let show = |token: Option<crate::id::TokenId>| token.map_or("none".to_owned(), |token| token.to_string());
            page.line(format_args!(
                "    {} from position {}: {} → {}, {} in all",
                change.request,
                change.position,
                show(change.a),
                show(change.b),
                count(change.differing, "position")
            ));
        }
    }
}

fn shapes(page: &mut Page, shapes: &Shapes) {
    if shapes.differ() {
        page.field("shapes", "differ — descriptive only: no claim about an engine follows from this");
        let declared: Vec<&str> = shapes.declared.iter().map(|change| change.path.as_str()).collect();
        if !declared.is_empty() {
            page.line(format_args!("    declared otherwise: {}", declared.join(", ")));
        }
    } else {
        page.field("shapes", "no difference seen");
    }
    let (matched, unmatched) = (shapes.matched_rows, shapes.unmatched_rows);
    if matched + unmatched > 0 {
        page.line(format_args!(
            "    {} computed in equal shapes (batch_size, query_len, kv_len), {unmatched} in others",
            count(matched, "row")
        ));
    }
    let undeclared: Vec<&str> = shapes.undeclared.iter().map(|change| change.path.as_str()).collect();
    if !undeclared.is_empty() {
        page.line(format_args!("    not declared on both sides: {}", undeclared.join(", ")));
    }
}

fn keys(page: &mut Page, label: &str, keys: &[RowKey]) {
    for key in keys.iter().take(SHOWN_ROWS) {
        page.line(format_args!("    {label}: {key}"));
    }
    if keys.len() > SHOWN_ROWS {
        page.line(format_args!("    … and {} more {label} (--json lists all)", keys.len() - SHOWN_ROWS));
    }
}

fn scores(page: &mut Page, scores: &Scores) {
    let comparable = scores.equal_rows + long(scores.differing.len());
    page.field(
        "scores",
        format_args!("{} of {} at identical prefixes bitwise equal", scores.equal_rows, count(comparable, "row")),
    );
    if scores.shared_objects > 0 {
        page.line(format_args!("    {} shared, not opened", count(scores.shared_objects, "scores object")));
    }
    for (rows, why) in [
        (scores.other_prefix_rows, "after the tokens parted: not comparable"),
        (scores.other_vocab_rows, "with vocabularies of other sizes: not comparable"),
        (scores.one_sided_rows, "with scores on one side only"),
        (scores.unscored_rows, "without scores on either side"),
    ] {
        if rows > 0 {
            page.line(format_args!("    {} {why}", count(rows, "row")));
        }
    }
    if scores.differing.is_empty() {
        return;
    }
    let flips: Vec<_> = scores.differing.iter().filter(|change| change.argmax_a != change.argmax_b).collect();
    let largest = scores.differing.iter().map(|change| change.max_abs_delta).fold(0.0, f64::max);
    page.line(format_args!(
        "    {} {}, max |Δ| {largest}; the argmax changes in {}",
        count(long(scores.differing.len()), "row"),
        if scores.differing.len() == 1 { "differs" } else { "differ" },
        flips.len()
    ));
    // What changes the argmax comes first: it is what a reader looks for.
    let others = scores.differing.iter().filter(|change| change.argmax_a == change.argmax_b);
    let ordered: Vec<_> = flips.iter().copied().chain(others).collect();
    for change in ordered.iter().take(SHOWN_ROWS) {
        let argmax = if change.argmax_a == change.argmax_b {
            format!("argmax {} in both", change.argmax_a)
        } else {
            format!("argmax {} → {}", change.argmax_a, change.argmax_b)
        };
        let delta = change.max_abs_delta;
        page.line(format_args!(
            "    {:<24} max |Δ| {delta:<10} at token id {:<7} {argmax}",
            change.key.to_string(),
            change.token_id
        ));
    }
    if ordered.len() > SHOWN_ROWS {
        let more = count(long(ordered.len() - SHOWN_ROWS), "more row");
        page.line(format_args!("    … and {more} (--json lists all)"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        assert_eq!(utc("0"), "1970-01-01T00:00:00Z");
        assert_eq!(utc("951782400000000000"), "2000-02-29T00:00:00Z");
        assert_eq!(utc("1796035146852887425"), "2026-11-30T10:39:06Z");
        assert_eq!(utc("later"), "—");
    }
}
