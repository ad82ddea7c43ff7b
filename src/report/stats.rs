//! Text for statistics between two captures.

use super::text::Page;
use crate::canon::real::Real;
use crate::qualify::result::{SpreadLine, Statistics};
use crate::stats::Stats;

/// Rows that are listed before the rest is counted.
const SHOWN: usize = 12;

/// A real as a person reads it: five significant digits.
#[must_use]
pub fn brief(real: Real) -> String {
    let value = real.get();
    match value.abs() {
        size if size.is_infinite() => real.to_string(),
        size if size <= 0.0 => "0".to_owned(),
        size if (1e-4..1.0).contains(&size) => format!("{value:.6}"),
        size if (1.0..1e5).contains(&size) => format!("{value:.4}"),
        _ => format!("{value:.4e}"),
    }
}

/// Statistics between two captures, a table a phase.
#[must_use]
pub fn stats(found: &Stats) -> String {
    let mut page = Page(String::new());
    page.line(format_args!("a  {}  {}", found.a.0, found.a.1));
    page.line(format_args!("b  {}  {}", found.b.0, found.b.1));
    if found.phases.is_empty() {
        page.line("nothing in common: no row of equal key and prefix has scores on both sides");
    }
    for phase in &found.phases {
        let rows = phase.statistics.rows;
        page.line(format_args!(
            "{}: {rows} rows at equal prefixes, {} bitwise equal, top-1 equal in {}, top-10 overlap {} of {}",
            phase.phase,
            phase.bitwise,
            phase.statistics.top1,
            phase.statistics.top10,
            rows.saturating_mul(10)
        ));
        table(&mut page, &phase.statistics);
        let flips: Vec<String> = phase.flips.iter().take(SHOWN).map(ToString::to_string).collect();
        if !flips.is_empty() {
            let more = phase.flips.len().saturating_sub(SHOWN);
            let rest = if more > 0 { format!(", and {more} more (--json lists all)") } else { String::new() };
            page.words("argmax differs", &format!("{}{rest}", flips.join(", ")));
        }
        if phase.unmatched > 0 {
            page.field("shapes differ", format_args!("in {} rows: descriptive only", phase.unmatched));
        }
    }
    if found.not_common > 0 {
        page.field(
            "not common",
            format_args!("{} rows of b: another prefix, no such row, or no scores", found.not_common),
        );
    }
    page.0
}

/// One line a statistic.
pub(super) fn table(page: &mut Page, statistics: &Statistics) {
    page.line(format_args!("  {:<18} {:>12} {:>12} {:>12} {:>12}", "", "mean", "median", "p99", "max"));
    let lines: [(&str, &SpreadLine); 6] = [
        ("KL(a‖b), nats", &statistics.kl),
        ("KL(b‖a), nats", &statistics.kl_reverse),
        ("JS, nats", &statistics.js),
        ("total variation", &statistics.tv),
        ("max |Δlogit|", &statistics.max_abs_delta),
        ("margin of a", &statistics.margin),
    ];
    for (name, spread) in lines {
        let [mean, median, p99, max] = [spread.mean, spread.median, spread.p99, spread.max].map(brief);
        let infinite = if spread.infinite > 0 { format!("  {} inf", spread.infinite) } else { String::new() };
        page.line(format_args!("  {name:<18} {mean:>12} {median:>12} {p99:>12} {max:>12}{infinite}"));
    }
}
