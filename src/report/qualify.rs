//! Text for results: the verdict first, a line a stratum, then what speaks against it.

use std::collections::BTreeMap;

use super::stats::brief;
use super::text::Page;
use crate::id::CaptureId;
use crate::qualify::Derivation;
use crate::qualify::result::{Comparison, Place, Repeatability, ResultDocument, Stratum, Verdict};

/// Positions that are listed before the rest is counted.
const SHOWN: usize = 12;

/// A result for a terminal.
#[must_use]
pub fn result(derived: &Derivation) -> String {
    let result = &derived.result;
    let mut page = Page(String::new());
    let names: BTreeMap<CaptureId, &str> =
        result.captures.iter().map(|line| (line.capture, line.run_id.as_str())).collect();
    page.line(format_args!("{}  {}", verdict(result), result.workload));
    cite(&mut page, derived);
    page.line(format_args!(
        "  {:<12} {:<22} {:<26} {:>5} {:>5} {:>12}  because",
        "stratum", "verdict", "oracle repeats", "rows", "flips", "KL max"
    ));
    for stratum in &result.strata {
        line(&mut page, stratum);
    }
    for stratum in &result.strata {
        details(&mut page, stratum, &names);
    }
    for cross in result.cross_strata.iter().filter(|cross| cross.differing > 0) {
        let (from, to) = (cross.from, cross.concurrency);
        let label = format!("c{from} → c{to}");
        let places = places(cross.first.iter());
        page.words(&label, &format!("the oracle itself chooses differently at {} of {} common prefixes, first at {places}: reported, never pooled", cross.differing, cross.common));
    }
    for found in &result.inertness {
        let label = format!("inert, c{}", found.concurrency);
        let (base, captured, replays) = (&found.baseline, &found.captured, &found.replays);
        page.words(&label, &format!(
            "{} {}: baselines differ in {} of {} tokens, captures from baselines in {} of {}, self-replays in {} of {} rows",
            found.role, found.verdict, base.mismatched, base.compared, captured.mismatched, captured.compared, replays.differing, replays.rows - replays.unmatched
        ));
    }
    for missing in &result.pending {
        page.field("missing", missing);
    }
    for note in &derived.findings.notes {
        page.words("note", &note.text);
    }
    page.0
}

/// A result that was derived again.
#[must_use]
pub fn derived_again(derived: &Derivation, require: Option<Verdict>) -> String {
    let mut page = Page(String::new());
    page.line(format_args!("VERIFIED: the result follows from {} captures, to the byte", derived.captures.len()));
    page.field("verdict", verdict(&derived.result));
    cite(&mut page, derived);
    if let Some(wanted) = require.filter(|wanted| *wanted != derived.result.verdict) {
        page.line(format_args!("NOT MET: {} was required", wanted.name()));
    }
    page.0
}

/// The verdict, with what is missing.
#[must_use]
pub fn verdict(result: &ResultDocument) -> String {
    match result.verdict {
        Verdict::Pending if !result.pending.is_empty() => format!("PENDING: {}", result.pending.join("; ")),
        Verdict::Pending => {
            let pending = result.strata.iter().filter(|stratum| stratum.verdict == Verdict::Pending);
            let what = pending.map(|stratum| format!("{} {}", name(stratum), stratum.reasons.join(", ")));
            format!("PENDING: {}", what.collect::<Vec<_>>().join("; "))
        }
        verdict => verdict.name().to_owned(),
    }
}

fn cite(page: &mut Page, derived: &Derivation) {
    page.field("result SHA", derived.sha256());
    page.field("qualification", derived.result.qualification);
    page.field("spec", derived.result.spec);
}

pub(super) fn name(stratum: &Stratum) -> String {
    format!("c{} {}", stratum.concurrency, stratum.phase)
}

/// The comparison that speaks most against the candidate: most flips, then most rows.
pub(super) fn worst(stratum: &Stratum) -> Option<&Comparison> {
    stratum.comparisons.iter().max_by_key(|comparison| (comparison.flips.len(), comparison.rows))
}

/// Whether the oracle repeats, in a few words.
pub(super) fn repeats(found: &Repeatability) -> String {
    match found.verdict.as_str() {
        "differs" => format!("no: {} of {} prefixes", found.differing.len(), found.groups),
        "repeats" => format!("yes: {} prefixes", found.groups),
        _ => "not shown: no repeat".to_owned(),
    }
}

fn line(page: &mut Page, stratum: &Stratum) {
    let oracle = repeats(&stratum.repeatability);
    let worst = worst(stratum);
    let rows = worst.map_or("-".to_owned(), |comparison| comparison.rows.to_string());
    let flips = worst.map_or("-".to_owned(), |comparison| comparison.flips.len().to_string());
    let kl = worst.map_or("-".to_owned(), |comparison| {
        comparison.statistics.as_ref().map_or("0".to_owned(), |statistics| brief(statistics.kl.max))
    });
    let (name, verdict, reasons) = (name(stratum), stratum.verdict.name(), stratum.reasons.join(", "));
    let text = format!("  {name:<12} {verdict:<22} {oracle:<26} {rows:>5} {flips:>5} {kl:>12}  {reasons}");
    page.line(text.trim_end());
}

fn details(page: &mut Page, stratum: &Stratum, names: &BTreeMap<CaptureId, &str>) {
    let label = name(stratum);
    let run = |capture: &CaptureId| names.get(capture).copied().unwrap_or("?");
    if let Some(comparison) = worst(stratum).filter(|comparison| !comparison.flips.is_empty()) {
        let keys = comparison.flips.iter().map(|flip| Place {
            position: flip.position,
            prompt_index: flip.prompt_index,
            sample_index: flip.sample_index,
        });
        let keys: Vec<Place> = keys.collect();
        let text = format!(
            "{} chooses another token than {} at {}{}",
            run(&comparison.candidate),
            run(&comparison.oracle),
            places(keys.iter()),
            match stratum.comparisons.len() {
                0 | 1 => String::new(),
                all => format!("; the worst of {all} comparisons (--json has all)"),
            }
        );
        page.words(&label, &text);
    }
    let undecided: usize = stratum.comparisons.iter().map(|comparison| comparison.tie_undecided.len()).sum();
    if undecided > 0 {
        page.words(&label, &format!("{undecided} ties without a witness of what was chosen (sampled_token_id)"));
    }
    for differing in &stratum.repeatability.differing {
        let choices: Vec<String> = differing.choices.iter().map(ToString::to_string).collect();
        let place = Place {
            position: differing.position,
            prompt_index: differing.prompt_index,
            sample_index: differing.sample_index,
        };
        let margin = brief(differing.margin);
        page.words(
            &label,
            &format!("the oracle chose {} at {}, margin {margin}", choices.join(" and "), places([place].iter())),
        );
    }
}

/// Places as (prompt, position); with the sample where there is more than one.
pub(super) fn places<'p>(places: impl ExactSizeIterator<Item = &'p Place>) -> String {
    let more = places.len().saturating_sub(SHOWN);
    let shown: Vec<String> = places
        .take(SHOWN)
        .map(|place| match place.sample_index {
            0 => format!("({},{})", place.prompt_index, place.position),
            sample => format!("({}/{sample},{})", place.prompt_index, place.position),
        })
        .collect();
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", shown.join(" "))
}
