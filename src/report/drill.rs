//! A drill as text: which rule refused what, then everything that nobody should overlook.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::text::count;
use crate::drill::{Drill, Known, Place, Trial, Verdict};
use crate::shown::printable;

/// Width of a line.
const WIDTH: usize = 100;
/// Width of a column of rules.
const LABEL: usize = 24;
/// Width of a column of corruptions.
const NAME: usize = 32;

/// A label and words after it, broken into lines.
fn list(out: &mut String, label: &str, width: usize, items: &[&str]) {
    let mut line = format!("  {label:<width$}");
    let indent = line.chars().count();
    for item in items {
        if line.chars().count() + 1 + item.chars().count() > WIDTH && line.chars().count() > indent {
            let _ignored = writeln!(out, "{}", line.trim_end());
            line = " ".repeat(indent);
        }
        line.push(' ');
        line.push_str(item);
    }
    let _ignored = writeln!(out, "{}", line.trim_end());
}

fn section(out: &mut String, title: &str, trials: &[&Trial]) {
    if trials.is_empty() {
        return;
    }
    let _ignored = writeln!(out, "\n{title}");
    for trial in trials {
        let words: Vec<&str> = trial.detail.split_whitespace().collect();
        list(out, trial.known.name, NAME, &words);
    }
}

fn failure(out: &mut String, trial: &Trial) {
    let rules = |rules: &[crate::refusal::Rule]| -> String {
        if rules.is_empty() {
            return "nothing".to_owned();
        }
        rules.iter().map(|rule| rule.id()).collect::<Vec<_>>().join(", ")
    };
    let word = if trial.verdict == Verdict::Survived { "SURVIVED" } else { "REFUSED BY ANOTHER RULE" };
    let _ignored = writeln!(out, "{word}: {}: {}", trial.known.name, trial.known.does);
    let expected = if trial.expected.is_empty() { "no refusal".to_owned() } else { rules(&trial.expected) };
    for (label, text) in
        [("done", trial.detail.as_str()), ("own rule", &expected), ("refused by", &rules(&trial.found))]
    {
        let _ignored = writeln!(out, "  {label:<LABEL$} {text}");
    }
}

/// A whole drill.
#[must_use]
pub fn drill(drill: &Drill) -> String {
    let mut out = String::new();
    let of = |verdict: Verdict| -> Vec<&Trial> { drill.trials.iter().filter(|t| t.verdict == verdict).collect() };
    let _ignored = writeln!(
        out,
        "capture {}\n  {:<LABEL$} {}, seed {}",
        drill.capture,
        "run",
        printable(&drill.run_id),
        drill.seed
    );
    let mut by_rule: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for trial in of(Verdict::Refused) {
        let rules: Vec<&str> = trial.expected.iter().map(|rule| rule.id()).collect();
        by_rule.entry(rules.join(" + ")).or_default().push(trial.known.name);
    }
    if !by_rule.is_empty() {
        let _ignored = writeln!(out, "\nrefused by its own rule, and by no other");
    }
    by_rule.iter().for_each(|(rule, names)| list(&mut out, rule, LABEL, names));
    let another: Vec<&Trial> = of(Verdict::AnotherId);
    if !another.is_empty() {
        let title = "caught by the capture id alone: another id, which only who kept the first one can tell";
        let _ignored = writeln!(out, "\n{title}");
        list(&mut out, "another capture id", LABEL, &another.iter().map(|trial| trial.known.name).collect::<Vec<_>>());
    }
    section(&mut out, "undetectable here", &of(Verdict::UndetectableHere));
    section(&mut out, "not applicable to this evidence, and not counted", &of(Verdict::NotApplicable));
    out.push('\n');
    drill.trials.iter().filter(|trial| trial.verdict.is_failure()).for_each(|trial| failure(&mut out, trial));
    let number = |verdict: Verdict| drill.count(verdict);
    let failed = number(Verdict::Survived) + number(Verdict::OtherRule);
    let _ignored = writeln!(
        out,
        "{}: {} refused by their own rule, {} caught by the capture id, {} undetectable here, {} not applicable, {failed} failed",
        count(u64::try_from(drill.trials.len()).unwrap_or(u64::MAX), "corruption"),
        number(Verdict::Refused),
        number(Verdict::AnotherId),
        number(Verdict::UndetectableHere),
        number(Verdict::NotApplicable),
    );
    out.push_str(if drill.passed() {
        "DRILL PASSED: every corruption that applies was refused by its own rule, or is listed above with what alone would tell\n"
    } else if failed > 0 {
        "DRILL FAILED\n"
    } else {
        "DRILL FAILED: nothing was tried\n"
    });
    out
}

/// All known corruptions.
#[must_use]
pub fn known(known: &[Known]) -> String {
    let mut out = String::new();
    for (place, title) in [
        (Place::Capture, "in the capture directory, before seal"),
        (Place::Store, "in the store, before verify"),
        (Place::Rehashed, "in the store, with every digest above made anew up to the capture id"),
    ] {
        let _ignored = writeln!(out, "{title}");
        for known in known.iter().filter(|known| known.place == place) {
            let _ignored = writeln!(out, "  {:<NAME$} {}", known.name, known.does);
        }
    }
    out
}
