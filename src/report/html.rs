//! Pages for a browser, for whoever would rather look than read: one file each, with nothing that runs and nothing that is loaded.
//!
//! A value goes in, a page comes out, the same to the byte for the same value. What comes from evidence is escaped by the type that holds markup, and no page
//! has a control character or a mark that turns the direction of writing (`frame`). However large the evidence, a page stays small enough to
//! open: what is left out is said. A page is no evidence: it says how to derive what it shows again.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::text::count;
use crate::diff::Diff;
use crate::id::CaptureId;
use crate::qualify::result::{ResultDocument, Statistics, Verdict};
use crate::qualify::{Derivation, Rows};
use crate::refusal::{Note, Refusal};
use crate::stats::Stats;
use crate::verify::Verified;

mod changes;
mod frame;
mod marks;
mod pair;
mod plots;
mod refused;
mod strips;
mod tables;
mod words;

use frame::{Tone, banner, ids, page};
use pair::Pair;

/// Comparisons that are drawn at one concurrency, worst first.
const DRAWN: usize = 4;

/// The page of a result that was derived again.
#[must_use]
pub fn result(derived: &Derivation) -> String {
    let result = &derived.result;
    let sha = derived.sha256();
    let captures = count(u64::try_from(derived.captures.len()).unwrap_or(u64::MAX), "capture");
    let body = html! {
        header {
            p.kind { "Qualification result, derived again from " (captures) ", to the byte" }
            h1 { (result.workload) }
            (banner(tone(result.verdict), word(result.verdict), result.verdict.name()))
            (ids(&[("Result SHA-256", &sha), ("Qualification", &result.qualification), ("Spec", &result.spec)]))
        }
        section { h2 { "Why, and what would change it" } (words::why(result)) }
        section { h2 { "Strata" } p.lead { "Each concurrency and phase apart, never pooled. Numbers are those of the comparison that speaks most against the candidate. KL is KL(oracle‖candidate) in nats." } (tables::strata(result)) }
        @for concurrency in concurrencies(result) { (at(derived, concurrency)) }
        section { h2 { "The oracle by itself" } (words::oracle(result)) }
        section { h2 { "Does capturing change the run?" } (words::inertness(result)) }
        section { h2 { "Bindings side by side" } (bindings(derived)) }
        section { h2 { "Captures" } (tables::captures(result)) }
        (notes(&derived.findings.notes))
        footer { (frame::of_result(&sha)) }
    };
    page(&format!("{}: {}", word(result.verdict), result.workload), &body)
}

/// The page of what two captures have apart, with the statistics of their common rows.
#[must_use]
pub fn diff(diff: &Diff, stats: &Stats, a: &Verified, b: &Verified) -> String {
    let same = diff.is_identical(false);
    let (tone, word) = if same { (Tone::Good, "Identical") } else { (Tone::Plain, "Different") };
    let statistics = stats.phases.iter().filter(|phase| phase.phase != "all");
    let pair = Pair {
        names: ["A", "B"],
        a,
        b,
        rows: &stats.rows,
        statistics: statistics.map(|phase| (phase.phase, Some(&phase.statistics))).collect(),
    };
    let body = html! {
        header {
            p.kind { "Two captures, every byte verified again" }
            h1 { "A " span.run { (diff.a.run_id) } " and B " span.run { (diff.b.run_id) } }
            (banner(tone, word, "a description: it judges nothing"))
            (ids(&[("Capture A", &diff.a.capture), ("Capture B", &diff.b.capture)]))
        }
        section { h2 { "What changed" } (changes::changes(diff)) }
        section { h2 { "Scores at equal prefixes" } (pair.pictures()) }
        section { h2 { "Bindings side by side" } (tables::side_by_side(("A", a), ("B", b))) }
        footer { (frame::of_diff(&diff.a.capture, &diff.b.capture)) }
    };
    page(&format!("{word}: {} and {}", diff.a.run_id, diff.b.run_id), &body)
}

/// The page of something that was refused; `what` is what was asked for.
#[must_use]
pub fn refused(what: &str, refusals: &[Refusal]) -> String {
    let number = count(u64::try_from(refusals.len()).unwrap_or(u64::MAX), "refusal");
    let body = html! {
        header {
            p.kind { "Evidence that was verified again" }
            h1.what { (what) }
            (banner(Tone::Bad, "Refused", &number))
            p.lead { "A refusal gives no verdict: there is nothing to cite until what is named here is answered." }
        }
        (refused::by_rule(refusals))
        footer { (frame::of_refused(what)) }
    };
    page(&format!("Refused: {what}"), &body)
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Accepted => Tone::Good,
        Verdict::NotAccepted => Tone::Bad,
        Verdict::Pending | Verdict::InsufficientEvidence => Tone::Open,
        Verdict::DiagnosticComplete => Tone::Plain,
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Accepted => "Accepted",
        Verdict::NotAccepted => "Not accepted",
        Verdict::DiagnosticComplete => "Diagnostic complete",
        Verdict::InsufficientEvidence => "Insufficient evidence",
        Verdict::Pending => "Pending",
    }
}

fn concurrencies(result: &ResultDocument) -> BTreeSet<u32> {
    result.strata.iter().map(|stratum| stratum.concurrency).collect()
}

fn capture(derived: &Derivation, id: CaptureId) -> Option<&Verified> {
    derived.captures.iter().find(|capture| capture.capture() == id)
}

/// What was compared at a concurrency, worst first.
fn pairs(derived: &Derivation, concurrency: u32) -> Vec<Pair<'_>> {
    let here = derived.rows.iter().filter(|rows| rows.concurrency == concurrency);
    let mut pairs: Vec<Pair<'_>> = here.filter_map(|rows| pair(derived, rows)).collect();
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.against()));
    pairs
}

fn pair<'a>(derived: &'a Derivation, rows: &'a Rows) -> Option<Pair<'a>> {
    let (oracle, candidate) = (rows.oracle, rows.candidate);
    let mut statistics: Vec<(&str, Option<&Statistics>)> = Vec::new();
    for stratum in derived.result.strata.iter().filter(|stratum| stratum.concurrency == rows.concurrency) {
        let here = stratum.comparisons.iter().filter(|found| found.oracle == oracle && found.candidate == candidate);
        statistics.extend(here.map(|found| (stratum.phase.as_str(), found.statistics.as_ref())));
    }
    Some(Pair {
        names: ["oracle", "candidate"],
        a: capture(derived, oracle)?,
        b: capture(derived, candidate)?,
        rows: &rows.rows,
        statistics,
    })
}

/// All that was compared at a concurrency, in pictures; nothing where nothing was.
fn at(derived: &Derivation, concurrency: u32) -> Markup {
    let pairs = pairs(derived, concurrency);
    let more = pairs.len().saturating_sub(DRAWN);
    html! {
        @if !pairs.is_empty() {
            section {
                h2 { "c" (concurrency) ": candidate beside oracle" }
                @for (n, pair) in pairs.iter().take(DRAWN).enumerate() {
                    details open=[(n == 0).then_some("open")] {
                        summary { span.run { (pair.b.run().run_id) } " beside " span.run { (pair.a.run().run_id) } }
                        article { (pair.pictures()) }
                    }
                }
                @if more > 0 { p.omitted { "The other " (more) " comparisons at c" (concurrency) " speak less against the candidate and are not drawn." } }
            }
        }
    }
}

/// The bindings of the worst comparison at each concurrency.
fn bindings(derived: &Derivation) -> Markup {
    let worst: Vec<(u32, Pair<'_>)> = concurrencies(&derived.result)
        .into_iter()
        .filter_map(|concurrency| Some((concurrency, pairs(derived, concurrency).into_iter().next()?)))
        .collect();
    html! {
        @if worst.is_empty() { p { "There is no candidate to lay beside an oracle." } }
        @for (concurrency, pair) in &worst {
            h3 { "c" (concurrency) ": " span.run { (pair.a.run().run_id) } " and " span.run { (pair.b.run().run_id) } }
            (tables::side_by_side(("Oracle", pair.a), ("Candidate", pair.b)))
        }
    }
}

fn notes(notes: &[Note]) -> Markup {
    html! {
        @if !notes.is_empty() {
            section { h2 { "Notes" } ul { @for note in notes { li { (note.text) } } } }
        }
    }
}
