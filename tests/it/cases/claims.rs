//! The cases of `corpora/claims`: what comes of several captures together. Each starts from the same small campaign of one oracle and one candidate that
//! passes, made of an embedded real capture, and states what is different.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use rayon::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};
use witnessmark::catalog::Catalog;
use witnessmark::digest::Sha256;
use witnessmark::id::Nanos;
use witnessmark::log::Log;
use witnessmark::manifest::DocumentAct;
use witnessmark::meter::Meter;
use witnessmark::qualify::{calibration, claimed, find};
use witnessmark::refusal::Rule;
use witnessmark::rule::claim::{Known, judge_calibration_some, judge_claim_some, judged_calibrations, judged_claims};
use witnessmark::spec::Spec;
use witnessmark::store::Store;
use witnessmark::verify::{Depth, Options, verify};

use super::capture::Capture;
use super::edit::{CaptureEdit, Edit};
use crate::schemas::Schema;
use crate::support::{Bench, root};

/// A case.toml.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    #[serde(skip)]
    pub(super) name: String,
    title: String,
    /// Row of the public reports that it stands for, or where it was seen
    #[serde(default)]
    seen_in: Option<String>,
    /// Whether the oracle is calibrated, by calibration.toml, instead of a candidate judged by spec.toml
    #[serde(default)]
    calibrate: bool,
    /// Captures of the campaign that there are not
    #[serde(default)]
    without: Vec<String>,
    /// Captures that are there as well: each a copy of another
    #[serde(default)]
    more: BTreeMap<String, String>,
    /// Captures that are there as well: each of the very run of another
    #[serde(default)]
    again: BTreeMap<String, String>,
    /// The same, but sealed before all else
    #[serde(default)]
    early: BTreeMap<String, String>,
    /// Texts of the spec that are replaced
    #[serde(default)]
    spec: Vec<Replace>,
    /// When the spec is put into the log
    #[serde(default)]
    declared: Declared,
    /// Exactly these captures, by name; empty: whatever has a place
    #[serde(default)]
    named: Vec<String>,
    /// A text of the result that somebody replaces before he puts it into the log himself
    #[serde(default)]
    forged: Option<Replace>,
    #[serde(default)]
    edit: Vec<EditOf>,
    /// Exactly the rules that are refused, sorted
    #[serde(default)]
    pub(super) refused: Vec<String>,
    /// The verdict where nothing is refused
    #[serde(default)]
    verdict: Option<String>,
    /// The reasons of some strata
    #[serde(default)]
    reasons: BTreeMap<String, Vec<String>>,
    /// What must be said
    #[serde(default)]
    says: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Replace {
    from: String,
    to: String,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Declared {
    #[default]
    Before,
    After,
    Never,
}

/// An edit of one capture.
#[derive(Debug, Deserialize)]
#[serde(try_from = "toml::Table")]
struct EditOf {
    of: Vec<String>,
    edit: ClaimEdit,
}

#[derive(Debug)]
enum ClaimEdit {
    Capture(CaptureEdit),
    /// The candidate's last token is another, and so are its scores: whatever witnesses there are agree
    Choose(usize),
    /// The last token ids have no scores any more
    Narrow(usize),
}

impl TryFrom<toml::Table> for EditOf {
    type Error = toml::de::Error;

    fn try_from(mut table: toml::Table) -> Result<Self, Self::Error> {
        let of: toml::Value = table.remove("of").expect("whose capture is edited");
        let of = match of {
            toml::Value::String(name) => vec![name],
            list => list.try_into()?,
        };
        let number = |table: &toml::Table| {
            table
                .get("token")
                .or(table.get("by"))
                .and_then(toml::Value::as_integer)
                .and_then(|n| usize::try_from(n).ok())
        };
        let edit = match table.get("op").and_then(toml::Value::as_str) {
            Some("choose") => ClaimEdit::Choose(number(&table).expect("a token")),
            Some("narrow") => ClaimEdit::Narrow(number(&table).expect("by how many")),
            _ => match Edit::try_from(table)? {
                Edit::Capture(edit) => ClaimEdit::Capture(edit),
                other => panic!("not an edit of a capture: {other:?}"),
            },
        };
        Ok(EditOf { of, edit })
    }
}

const WITNESSES: [&str; 4] = ["scores_sha256", "argmax", "runner_up", "f32_sha256_at_capture"];

pub(super) fn load() -> Vec<Claim> {
    let mut claims = Vec::new();
    for entry in fs::read_dir(root().join("corpora/claims")).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() {
            continue;
        }
        let text = fs::read_to_string(path.join("case.toml")).unwrap();
        let mut claim: Claim = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        claim.name = path.file_name().unwrap().to_string_lossy().into_owned();
        claims.push(claim);
    }
    claims.sort_by(|a, b| a.name.cmp(&b.name));
    claims
}

/// The captures of the campaign, by run id.
fn campaign() -> BTreeMap<String, Capture> {
    let named = |name: &str, base: &str, role: &str, mode: &str| {
        let mut capture = Capture::base(base);
        capture.run["run_id"] = json!(name);
        capture.run["role"] = json!(role);
        capture.run["mode"] = json!(mode);
        if mode.ends_with("replay") {
            for request in capture.run["requests"].as_array_mut().unwrap() {
                request["continuation"] = json!({ "run_id": "oracle-a", "request_id": request["request_id"] });
            }
        }
        of_its_own_run(&mut capture, name);
        (name.to_owned(), capture)
    };
    BTreeMap::from([
        named("baseline-a", "baseline", "oracle", "baseline"),
        named("baseline-b", "baseline", "oracle", "baseline"),
        named("oracle-a", "full", "oracle", "capture-only"),
        named("oracle-b", "full", "oracle", "capture-only"),
        named("self-a", "replay", "oracle", "self-replay"),
        named("candidate", "replay", "candidate", "common-replay"),
    ])
}

/// Gives a capture a nonce that no other has.
fn of_its_own_run(capture: &mut Capture, nonce: &str) {
    capture.run["run_nonce"] = json!(nonce);
    for row in &mut capture.rows {
        row.insert("run_nonce".to_owned(), json!(nonce));
    }
}

fn edit(capture: &mut Capture, edit: &ClaimEdit) {
    match edit {
        ClaimEdit::Capture(edit) => capture.edit(edit),
        ClaimEdit::Choose(token) => {
            let last = capture.rows.len() - 1;
            let replay = capture.run["mode"].as_str().unwrap().ends_with("replay");
            let row = &mut capture.rows[last];
            row.insert("sampled_token_id".to_owned(), json!(token));
            if !replay {
                row["token_id"] = json!(token);
                let requests = capture.run["requests"].as_array_mut().unwrap();
                let output =
                    requests.iter_mut().find(|request| request["prompt_index"] == row["prompt_index"]).unwrap();
                *output["output_token_ids"].as_array_mut().unwrap().last_mut().unwrap() = json!(token);
            }
            if !capture.scores.is_empty() {
                let highest = capture.scores[last].iter().copied().fold(f32::NEG_INFINITY, f32::max);
                capture.scores[last][*token] = highest * 2.0;
                rehash(capture);
            }
        }
        ClaimEdit::Narrow(by) => {
            for row in &mut capture.scores {
                row.truncate(row.len() - by);
            }
            let vocab = capture.scores[0].len();
            capture.run["scores"]["vocab_size"] = json!(vocab);
            rehash(capture);
        }
    }
}

fn rehash(capture: &mut Capture) {
    let witnesses = WITNESSES.map(str::to_owned).to_vec();
    capture.edit(&CaptureEdit::Rehash { witnesses });
}

/// One case, up to its last command; the faults.
fn play(claim: &Claim) -> Vec<String> {
    let bench = Bench::new();
    let mut captures = campaign();
    for (name, of) in &claim.more {
        let mut copy = captures[of].clone();
        copy.run["run_id"] = json!(name);
        of_its_own_run(&mut copy, name);
        captures.insert(name.clone(), copy);
    }
    for (name, of) in claim.again.iter().chain(&claim.early) {
        let mut copy = captures[of].clone();
        copy.run["run_id"] = json!(name);
        captures.insert(name.clone(), copy);
    }
    for EditOf { of, edit: change } in &claim.edit {
        for name in of {
            edit(captures.get_mut(name).unwrap_or_else(|| panic!("{}: no capture {name}", claim.name)), change);
        }
    }
    let spec = write_spec(claim, &bench);
    let declare = || {
        let run = bench.run(&["spec", "seal", &spec]);
        assert_eq!(run.status, 0, "{}: {}{}", claim.name, run.stdout, run.stderr);
    };
    for name in claim.early.keys() {
        let dir = bench.path(name);
        captures.remove(name).unwrap().write(&dir);
        bench.seal(&dir);
    }
    if claim.declared == Declared::Before {
        declare();
    }
    for (name, capture) in captures.iter().filter(|(name, _)| !claim.without.contains(name)) {
        let dir = bench.path(name);
        capture.write(&dir);
        let run = bench.try_seal(&dir);
        if run.status != 0 {
            return vec![format!("{}: {name}: {}{}", claim.name, run.stdout, run.stderr)];
        }
    }
    if claim.declared == Declared::After {
        declare();
    }
    let command = if claim.calibrate { "calibrate" } else { "qualify" };
    let mut args = vec![command.to_owned(), spec, "--json".to_owned()];
    args.extend(claim.named.iter().cloned());
    let mut run = bench.run(&args);
    let mut faults = Vec::new();
    if let Some(forged) = &claim.forged {
        let result = run.json().last().unwrap()["result"].to_string();
        assert_eq!(result.matches(&forged.from).count(), 1, "{}: {result}", claim.name);
        let bytes = result.replace(&forged.from, &forged.to).into_bytes();
        let store = Store::open(&bench.store()).unwrap();
        let (document, ..) = Log::declare(&store, DocumentAct::Qualify, &bytes, Nanos(1), "test 1").unwrap();
        run = bench.run(&["verify", &document.subject.to_string(), "--json"]);
    }
    let lines = run.json();
    let found = lines.last().cloned().unwrap_or(Value::Null);
    let verdict = found["verdict"].as_str().map(str::to_owned);
    let status = match (&claim.verdict, claim.refused.is_empty()) {
        (Some(verdict), true) => i32::from(!["ACCEPTED", "CALIBRATED"].contains(&verdict.as_str())),
        (None, false) => 2,
        _ => panic!("{}: a verdict or refusals", claim.name),
    };
    let refusals = found["refusals"].as_array().into_iter().flatten();
    let refused: BTreeSet<String> = refusals.map(|refusal| refusal["rule"].as_str().unwrap().to_owned()).collect();
    let refused: Vec<String> = refused.into_iter().collect();
    if refused != claim.refused || verdict != claim.verdict || run.status != status {
        faults.push(format!(
            "{}: expected {:?} {:?} {status}, found {refused:?} {verdict:?} {}\n{}{}",
            claim.name, claim.refused, claim.verdict, run.status, run.stdout, run.stderr
        ));
    }
    let strata: BTreeMap<String, Vec<String>> = found["result"]["strata"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|stratum| {
            let reasons =
                stratum["reasons"].as_array().unwrap().iter().map(|reason| reason.as_str().unwrap().to_owned());
            (format!("c{} {}", stratum["concurrency"], stratum["phase"].as_str().unwrap()), reasons.collect())
        })
        .collect();
    for (stratum, reasons) in &claim.reasons {
        if strata.get(stratum) != Some(reasons) {
            faults.push(format!("{}: {stratum}: expected {reasons:?}, found {strata:?}", claim.name));
        }
    }
    let said = format!("{}{}", run.stdout, run.stderr);
    for text in claim.says.iter().filter(|text| !said.contains(text.as_str())) {
        faults.push(format!("{}: does not say {text:?}:\n{said}", claim.name));
    }
    for rule in refused.iter().filter(|_| claim.forged.is_none()) {
        if !call_site_matters(&bench, claim, rule) {
            faults.push(format!("{}: {rule} is refused without its call site", claim.name));
        }
    }
    // The same document comes of one thread, to the byte, and the text says no less.
    if let Some(calibration) = found["calibration_sha256"].as_str() {
        let file = bench.path("calibration.json");
        args.retain(|arg| arg != "--json");
        args.extend(["--threads", "1", "-o", file.to_str().unwrap()].map(str::to_owned));
        let again = bench.run(&args);
        let bytes = fs::read(&file).unwrap();
        let document: Value = serde_json::from_slice(&bytes).unwrap();
        Schema::new("calibration").must_take(&document);
        let short = document["counts"].as_array().unwrap().iter();
        let short: Vec<String> = short
            .filter(|line| line["verdict"] == "INSUFFICIENT_EVIDENCE")
            .map(|line| format!(" needs {} {} ", line["needs"], line["counted"].as_str().unwrap()))
            .collect();
        let headline = again.stdout.lines().next().unwrap_or_default();
        if !short.is_empty() && !short.iter().any(|needs| headline.contains(needs)) {
            faults.push(format!("{}: {headline:?} names none of {short:?}", claim.name));
        }
        let same = Sha256::of(&bytes).to_string() == calibration && document == found["calibration"];
        if !same || again.status != status || !again.stdout.contains(calibration) {
            faults.push(format!("{}: calibrated again: {}{}", claim.name, again.stdout, again.stderr));
        }
    }
    if found["result"].is_object() {
        Schema::new("result").must_take(&found["result"]);
    }
    // What was derived can be derived again, by its SHA and by its qualification.
    if let (Some(result), None) = (found["result_sha256"].as_str(), &claim.forged) {
        for name in [result, found["result"]["qualification"].as_str().unwrap()] {
            let again = bench.run(&["verify", name]);
            if again.status != 0 {
                faults.push(format!("{}: verify {name}: {}{}", claim.name, again.stdout, again.stderr));
            }
        }
    }
    faults
}

/// Whether a rule is asked by its own call site: without it, nobody refuses by it. True of rules that are asked elsewhere.
fn call_site_matters(bench: &Bench, claim: &Claim, rule: &str) -> bool {
    let judged = if claim.calibrate { judged_calibrations() } else { judged_claims() };
    let Some(rule) = judged.into_iter().find(|judged| judged.id() == rule) else { return true };
    let store = Store::open(&bench.store()).unwrap();
    let catalog = Catalog::load(&store).unwrap();
    let text = fs::read_to_string(bench.path("spec.toml")).unwrap();
    let spec = Spec::parse(&text).unwrap();
    let subjects = if claim.named.is_empty() {
        if claim.calibrate { calibration::find(&catalog, &spec) } else { find(&catalog, &spec) }
    } else {
        claim.named.iter().map(|name| catalog.resolve(name, false).unwrap()).collect()
    };
    let options = Options { depth: Depth::Rows, model: None, spec: None };
    let captures: Vec<_> = subjects
        .iter()
        .map(|subject| verify(&catalog, subject, options, &Meter::default()).unwrap().verified.unwrap())
        .collect();
    let runs = catalog.runs().unwrap().unwrap();
    let claimed = claimed(&catalog, &runs, spec.sha256.unwrap(), &captures);
    let known: Vec<Known<'_>> = runs.values().map(|(run, row_root)| Known { run, row_root: *row_root }).collect();
    let refuses = |keep: &dyn Fn(Rule) -> bool| {
        let findings = if claim.calibrate {
            judge_calibration_some(&spec, &claimed, &known, keep)
        } else {
            judge_claim_some(&spec, &claimed, keep)
        };
        findings.refusals.iter().any(|refusal| refusal.rule == rule)
    };
    refuses(&|_| true) && !refuses(&|other| other != rule)
}

fn write_spec(claim: &Claim, bench: &Bench) -> String {
    let file = if claim.calibrate { "calibration.toml" } else { "spec.toml" };
    let mut text = fs::read_to_string(root().join("corpora/claims").join(file)).unwrap();
    for Replace { from, to } in &claim.spec {
        assert_eq!(text.matches(from.as_str()).count(), 1, "{}: {from:?} in the spec", claim.name);
        text = text.replace(from, to);
    }
    let path: PathBuf = bench.path("spec.toml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn every_claim_comes_to_what_its_case_says() {
    let claims = load();
    assert!(claims.iter().all(|claim| !claim.title.is_empty() && claim.seen_in.as_deref() != Some("")));
    let faults: Vec<String> = claims.par_iter().flat_map_iter(play).collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_question_about_a_claim_has_a_case() {
    for (calibrate, judged) in [(false, judged_claims()), (true, judged_calibrations())] {
        let cases = load().into_iter().filter(|claim| claim.calibrate == calibrate);
        let named: BTreeSet<String> = cases.flat_map(|claim| claim.refused).collect();
        let asked: BTreeSet<String> = judged.into_iter().map(|rule: Rule| rule.id().to_owned()).collect();
        let open: Vec<&String> = asked.difference(&named).collect();
        assert!(open.is_empty(), "asked, and no case: {open:?}");
    }
}
