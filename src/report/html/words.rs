//! What a result says in words: why it is what it is and what would change it, how the oracle does by itself, what capturing does.

use maud::{Markup, html};

use super::marks::number;
use super::tone;
use crate::qualify::result::{Counted, Place, ResultDocument, Stratum};
use crate::report::qualify::{name, places, worst};

/// Prefixes at which the oracle chose differently that are listed.
const DIFFERING: usize = 12;

/// The reasons of every stratum, and what is missing.
pub(super) fn why(result: &ResultDocument) -> Markup {
    html! {
        div.reasons {
            @for stratum in &result.strata {
                div class=(format!("reason {}", tone(stratum.verdict).class())) {
                    h3 { (tone(stratum.verdict).sign()) (name(stratum)) " " span.name { (stratum.verdict.name()) } }
                    @if stratum.reasons.is_empty() { p { "Nothing speaks against it." } }
                    @for reason in &stratum.reasons {
                        @let (what, change) = because(result, stratum, reason);
                        p { (what) }
                        @if !change.is_empty() { p.change { "Would change it: " (change) } }
                    }
                }
            }
        }
        @if result.pending.is_empty() { p { "Nothing that the spec asks for is missing." } } @else {
            h3 { "Missing, and asked for by the spec" }
            ul { @for missing in &result.pending { li { (missing) } } }
        }
    }
}

/// A reason (`specs/qualification-v1.md`, section 6) in words, and what would change it.
fn because(result: &ResultDocument, stratum: &Stratum, reason: &str) -> (String, &'static str) {
    let repeats = &stratum.repeatability;
    match reason {
        "oracle-differs" => (
            format!(
                "The oracle itself chose different tokens at {} of {} equal prefixes.",
                repeats.differing.len(),
                repeats.groups
            ),
            "an oracle that repeats here. The strict gate has nothing to hold a candidate against otherwise.",
        ),
        "flip" => (
            worst(stratum).map_or_else(String::new, |found| {
                let run = |id| {
                    result.captures.iter().find(|line| line.capture == id).map_or("?", |line| line.run_id.as_str())
                };
                let (flips, rows) = (found.flips.len(), found.rows);
                format!(
                    "{} chose another token than {} at {flips} of {rows} rows.",
                    run(found.candidate),
                    run(found.oracle)
                )
            }),
            "a candidate that chooses the oracle's token at every common prefix.",
        ),
        "oracle-not-repeated" => ("No oracle row was captured twice.".to_owned(), "a second oracle capture."),
        "no-candidate" => {
            ("No candidate has a row in common with an oracle.".to_owned(), "a candidate capture at this concurrency.")
        }
        "uncompared-rows" => (
            format!("{} rows of candidates have no oracle row at their prefix.", stratum.uncompared),
            "an oracle capture along the same tokens (common-replay).",
        ),
        "inertness-pending" => (
            "Whether capturing changes the run has not been shown.".to_owned(),
            "two baselines and a capture-only run at this concurrency.",
        ),
        "tie-undecided" => {
            let ties: usize = stratum.comparisons.iter().map(|found| found.tie_undecided.len()).sum();
            (format!("{ties} tied rows have no witness of what was chosen."), "captures that record sampled_token_id.")
        }
        "inertness-undecided" => (
            "The baselines do not repeat, so that what capturing changes cannot be told from it.".to_owned(),
            "baselines that repeat, or a margin that the spec declared beforehand.",
        ),
        other => (other.to_owned(), ""),
    }
}

/// Whether the oracle repeats, in each stratum and from one concurrency to another.
pub(super) fn oracle(result: &ResultDocument) -> Markup {
    html! {
        ul {
            @for stratum in &result.strata {
                @let found = &stratum.repeatability;
                li {
                    strong { (name(stratum)) } ": "
                    @match found.verdict.as_str() {
                        "repeats" => { "repeats. It chose one token at each of " (found.groups) " prefixes that were captured more than once" },
                        "differs" => { "does not repeat. It chose different tokens at " (found.differing.len()) " of " (found.groups) " prefixes that were captured more than once" },
                        _ => { "not shown to repeat: no prefix was captured twice" },
                    }
                    "; the scores are equal to the bit at " (found.bitwise) ". " (found.single) " prefixes were captured once."
                    @if !found.differing.is_empty() {
                        ul {
                            @for differing in found.differing.iter().take(DIFFERING) {
                                @let choices = differing.choices.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
                                li { "prompt " (differing.prompt_index) @if differing.sample_index > 0 { " sample " (differing.sample_index) } " position " (differing.position) ": tokens " (choices) ", margin " (number(differing.margin.get())) }
                            }
                        }
                        @if found.differing.len() > DIFFERING { p.omitted { "and " (found.differing.len() - DIFFERING) " more" } }
                    }
                }
            }
            @for cross in &result.cross_strata {
                li {
                    strong { "c" (cross.from) " to c" (cross.concurrency) } ": "
                    @if cross.differing == 0 { "the oracle chooses the same at all " (cross.common) " common prefixes." } @else {
                        "the oracle itself chooses differently at " (cross.differing) " of " (cross.common) " common prefixes, first at (prompt, position) "
                        (places(cross.first.iter() as std::slice::Iter<'_, Place>)) ". It is reported, judges nothing, and strata are never pooled."
                    }
                }
            }
        }
    }
}

/// What capturing and forcing did to runs.
pub(super) fn inertness(result: &ResultDocument) -> Markup {
    html! {
        @if result.inertness.is_empty() { p { "The spec has no baselines, so it is not asked here." } } @else {
            ul {
                @for found in &result.inertness {
                    li {
                        strong { (found.role) " c" (found.concurrency) ": " (found.verdict) "." }
                        " Baselines differ from each other in " (counted(&found.baseline)) ". Captured runs differ from baselines in " (counted(&found.captured))
                        ". Self-replays have other scores in " (found.replays.differing) " of " (found.replays.rows - found.replays.unmatched) " rows"
                        @if found.replays.unmatched > 0 { ", of which " (found.replays.unmatched) " were computed in other shapes" } "."
                    }
                }
            }
        }
    }
}

fn counted(counts: &Counted) -> String {
    let percent = |millionths: u32| number(f64::from(millionths) / 10_000.0);
    let interval = counts.interval.map_or_else(String::new, |(low, high)| {
        format!(" (exact 95 % interval {} to {} %)", percent(low), percent(high))
    });
    format!("{} of {} tokens{interval}", counts.mismatched, counts.compared)
}
