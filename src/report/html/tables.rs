//! Tables: strata, statistics, bindings of two captures, captures.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::frame::Tone;
use crate::canon::real::Real;
use crate::qualify::result::{ResultDocument, SpreadLine, Statistics, Stratum};
use crate::report::qualify::{name, worst};
use crate::report::stats::brief;
use crate::verify::Verified;

/// Bindings that are listed, and letters of a value.
const BINDINGS: usize = 300;
const LETTERS: usize = 240;

/// A line a stratum; on a narrow page a card a stratum, each number under its name.
pub(super) fn strata(result: &ResultDocument) -> Markup {
    let heads =
        ["Verdict", "Oracle repeats?", "Rows", "Flips", "Ties", "Undecided", "KL mean", "KL p99", "KL max", "Top-1"];
    html! {
        table.cards role="table" {
            caption { "Strata" }
            thead role="rowgroup" { tr role="row" { th scope="col" role="columnheader" { "Stratum" } @for (n, head) in heads.iter().enumerate() { th.n[n > 1] scope="col" role="columnheader" { (head) } } } }
            tbody role="rowgroup" {
                @for stratum in &result.strata {
                    @let tone = super::tone(stratum.verdict);
                    tr role="row" {
                        th scope="row" role="rowheader" { (name(stratum)) }
                        @for (n, (head, value)) in heads.iter().zip(values(stratum)).enumerate() {
                            td.n[n > 1].wide[n < 2] role="cell" data-name=(head) { @if n == 0 { (badge(tone, &value)) } @else { (value) } }
                        }
                    }
                }
            }
        }
    }
}

fn badge(tone: Tone, value: &str) -> Markup {
    html! { span class=(format!("badge {}", tone.class())) { (tone.sign()) (value) } }
}

fn values(stratum: &Stratum) -> [String; 10] {
    let repeats = &stratum.repeatability;
    let oracle = match repeats.verdict.as_str() {
        "differs" => format!("no: {} of {} prefixes", repeats.differing.len(), repeats.groups),
        "repeats" => format!("yes: {} prefixes", repeats.groups),
        _ => "not shown".to_owned(),
    };
    let none = || "–".to_owned();
    let worst = worst(stratum);
    let of = |value: &dyn Fn(&crate::qualify::result::Comparison) -> String| worst.map_or_else(none, value);
    let kl = |part: fn(&SpreadLine) -> Real| {
        of(&|found| found.statistics.as_ref().map_or("0".to_owned(), |statistics| brief(part(&statistics.kl))))
    };
    [
        stratum.verdict.name().to_owned(),
        oracle,
        of(&|found| found.rows.to_string()),
        of(&|found| found.flips.len().to_string()),
        of(&|found| found.ties.to_string()),
        of(&|found| found.tie_undecided.len().to_string()),
        kl(|spread| spread.mean),
        kl(|spread| spread.p99),
        kl(|spread| spread.max),
        of(&|found| {
            let equal = found.statistics.as_ref().map_or(found.rows, |statistics| statistics.top1);
            format!("{equal} of {}", found.rows)
        }),
    ]
}

/// The statistics of one phase.
pub(super) fn statistics([a, b]: [&str; 2], phase: &str, statistics: Option<&Statistics>) -> Markup {
    let Some(statistics) = statistics else {
        return html! { p { "Statistics, " (phase) ": all 0, every row is equal to the bit." } };
    };
    let lines: [(String, &SpreadLine); 6] = [
        (format!("KL({a}‖{b}), nats"), &statistics.kl),
        (format!("KL({b}‖{a}), nats"), &statistics.kl_reverse),
        ("Jensen-Shannon, nats".to_owned(), &statistics.js),
        ("Total variation".to_owned(), &statistics.tv),
        ("Max |Δ score|".to_owned(), &statistics.max_abs_delta),
        (format!("Margin of {a}"), &statistics.margin),
    ];
    html! {
        details {
            summary { "Statistics, " (phase) ": " (statistics.rows) " rows, top-1 equal in " (statistics.top1) ", top-10 overlap " (statistics.top10) " of " (statistics.rows.saturating_mul(10)) }
            div.scroll tabindex="0" role="region" aria-label=(format!("Statistics, {phase}")) {
                table {
                    caption { "Statistics, " (phase) }
                    thead { tr { th scope="col" { "Statistic" } @for head in ["Mean", "Median", "p99", "Max", "Infinite"] { th.n scope="col" { (head) } } } }
                    tbody {
                        @for (name, spread) in lines {
                            tr {
                                th scope="row" { (name) }
                                @for value in [spread.mean, spread.median, spread.p99, spread.max] { td.n { (brief(value)) } }
                                td.n { (spread.infinite) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The bindings of two captures: what differs first, what is equal behind a click.
pub(super) fn side_by_side(a: (&str, &Verified), b: (&str, &Verified)) -> Markup {
    let (of_a, of_b) = (a.1.run().bindings(), b.1.run().bindings());
    let paths: BTreeSet<&String> = of_a.keys().chain(of_b.keys()).collect();
    let (equal, differing): (Vec<&String>, Vec<&String>) =
        paths.into_iter().partition(|path| of_a.get(*path) == of_b.get(*path));
    let table = |paths: &[&String], caption: &str, marked: bool| {
        let value =
            |of: &BTreeMap<String, String>, path: &str| of.get(path).map_or("absent".to_owned(), |text| cut(text));
        html! {
            table.bindings {
                caption { (caption) }
                thead { tr { th scope="col" { "Binding" } th scope="col" { (a.0) } th scope="col" { (b.0) } } }
                tbody {
                    @for path in paths.iter().take(BINDINGS) {
                        tr.differs[marked] { th scope="row" { (cut(path)) } td { (value(&of_a, path)) } td { (value(&of_b, path)) } }
                    }
                }
            }
            @if paths.len() > BINDINGS { p.omitted { "Listed are the first " (BINDINGS) " of " (paths.len()) "." } }
        }
    };
    html! {
        @if differing.is_empty() { p { "No binding differs." } } @else { (table(&differing, &format!("{} differ", differing.len()), true)) }
        details { summary { (equal.len()) " are equal" } (table(&equal, &format!("{} are equal", equal.len()), false)) }
    }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= LETTERS { text.to_owned() } else { text.chars().take(LETTERS).chain(['…']).collect() }
}

/// The captures that a result rests on.
pub(super) fn captures(result: &ResultDocument) -> Markup {
    html! {
        ul.captures {
            @for line in &result.captures {
                li {
                    span.run { (line.run_id) } " "
                    span.what { (line.role) ", " (line.mode) ", c" (line.concurrency) @if let Some(partition) = &line.partition { ", " (partition) } }
                    code { (line.capture.to_string()) }
                }
            }
        }
    }
}
