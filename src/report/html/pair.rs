//! Two captures beside each other: counts in words, strips, plots, the rows that chose otherwise, statistics.

use maud::{Markup, html};

use super::marks::{Mark, number};
use super::plots::plots;
use super::strips::strips;
use super::tables;
use crate::qualify::result::Statistics;
use crate::qualify::{Outcome, RowLine};
use crate::report::text::count;
use crate::verify::Verified;

/// Rows with another token that are listed.
const FLIPS: usize = 24;

/// Two captures and their common rows.
pub(super) struct Pair<'a> {
    /// What the two are called: oracle and candidate, or A and B
    pub(super) names: [&'a str; 2],
    /// The oracle, or A
    pub(super) a: &'a Verified,
    /// The candidate, or B
    pub(super) b: &'a Verified,
    /// What they say of each other, in key order
    pub(super) rows: &'a [RowLine],
    /// By phase; none where all rows are equal to the bit
    pub(super) statistics: Vec<(&'a str, Option<&'a Statistics>)>,
}

impl Pair<'_> {
    /// How much speaks against the second: other tokens, undecided ties, then rows that are not equal to the bit.
    pub(super) fn against(&self) -> (usize, usize, usize) {
        let differing = self.rows.iter().filter(|row| !row.bitwise).count();
        (self.seen(Mark::Flip), self.seen(Mark::Undecided), differing)
    }

    fn seen(&self, mark: Mark) -> usize {
        self.rows.iter().filter(|row| Mark::of(Some(row)) == mark).count()
    }

    /// Everything that can be seen.
    pub(super) fn pictures(&self) -> Markup {
        let bitwise = self.rows.iter().filter(|row| row.bitwise).count();
        let absent = self.b.rows().len().saturating_sub(self.rows.len());
        let rows = u64::try_from(self.rows.len()).unwrap_or(u64::MAX);
        html! {
            p {
                strong { (count(rows, "row")) } " at equal prefixes: " (bitwise) " equal to the bit, "
                strong { (self.seen(Mark::Flip)) " with another token" } ", " (self.seen(Mark::Undecided)) " ties undecided."
                @if absent > 0 { " " (absent) " rows of " span.run { (self.b.run().run_id) } " have no row beside them: other prefixes, or no scores." }
            }
            @if !self.rows.is_empty() {
                (strips(self.b.rows(), self.rows))
                @if bitwise < self.rows.len() { (plots(self.rows, self.names)) } @else { p { "Nothing to plot: every divergence is 0." } }
                (self.flips())
                @for (phase, statistics) in &self.statistics { (tables::statistics(self.names, phase, *statistics)) }
            }
        }
    }

    fn flips(&self) -> Markup {
        let flips: Vec<(&RowLine, u32, u32)> = self
            .rows
            .iter()
            .filter_map(|row| match row.outcome {
                Outcome::Flip(a, b) => Some((row, a.0, b.0)),
                _ => None,
            })
            .collect();
        html! {
            @if !flips.is_empty() {
                div.scroll tabindex="0" role="region" aria-label="Rows with another token" {
                    table {
                        caption { "Rows with another token" @if flips.len() > FLIPS { ", the first " (FLIPS) " of " (flips.len()) } }
                        thead { tr { th scope="col" { "Row" } th.n scope="col" { (self.names[0]) } th.n scope="col" { (self.names[1]) } th.n scope="col" { "Margin" } th.n scope="col" { "KL" } } }
                        tbody {
                            @for (row, a, b) in flips.iter().take(FLIPS) {
                                tr { th scope="row" { (row.key) } td.n { (a) } td.n { (b) } td.n { (number(row.stats.margin)) } td.n { (number(row.stats.kl)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
