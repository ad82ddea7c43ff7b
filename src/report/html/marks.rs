//! Marks: how one row looks in a strip and in a plot. Each differs by shape as well as by colour.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};

use crate::canon::real::Real;
use crate::qualify::{Outcome, RowLine};
use crate::report::stats::brief;
use crate::row::Phase;

/// Up to this margin a row that agrees is drawn as a near tie: one step of bf16 between 16 and 32, where the top scores of language models mostly lie. It
/// decides nothing.
const NEAR_TIE: f64 = 0.125;

/// What there is to see at a position; what a reader looks for first comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    Flip,
    Undecided,
    NearTie,
    Agrees,
    Bitwise,
    Absent,
}

impl Mark {
    /// Of a row; of a position that was not compared without one.
    pub(super) fn of(row: Option<&RowLine>) -> Self {
        let Some(row) = row else { return Mark::Absent };
        match row.outcome {
            Outcome::Flip(..) => Mark::Flip,
            Outcome::Undecided => Mark::Undecided,
            Outcome::Agrees if row.bitwise => Mark::Bitwise,
            Outcome::Agrees if row.stats.is_near_tie(NEAR_TIE) => Mark::NearTie,
            Outcome::Agrees => Mark::Agrees,
        }
    }

    /// The cell in a strip.
    pub(super) fn cell(self) -> &'static str {
        match self {
            Mark::Flip => "#cell-flip",
            Mark::Undecided => "#cell-undecided",
            Mark::NearTie => "#cell-near",
            Mark::Agrees => "#cell-agrees",
            Mark::Bitwise => "#cell-bitwise",
            Mark::Absent => "#cell-absent",
        }
    }

    /// What it means.
    pub(super) fn words(self) -> &'static str {
        match self {
            Mark::Flip => "another token (flip)",
            Mark::Undecided => "tie, undecided",
            Mark::NearTie => "same token, margin at most 0.125",
            Mark::Agrees => "same token",
            Mark::Bitwise => "scores equal to the bit",
            Mark::Absent => "not compared",
        }
    }
}

/// The dot in a plot: its shape is the outcome's or else the phase's.
pub(super) fn dot(row: &RowLine) -> &'static str {
    match (Mark::of(Some(row)), row.phase) {
        (Mark::Flip, _) => "#dot-flip",
        (Mark::Undecided, _) => "#dot-undecided",
        (_, Phase::Decode) => "#dot-decode",
        (_, Phase::Prefill) => "#dot-prefill",
        (_, Phase::Recomputed) => "#dot-recomputed",
    }
}

/// What a row says when it is pointed at.
pub(super) fn title(row: &RowLine) -> String {
    let stats = &row.stats;
    let tokens = match row.outcome {
        Outcome::Flip(a, b) => format!("token {a} → {b}"),
        _ if stats.agrees() => format!("token {}", stats.oracle_argmax),
        _ => format!("argmax {} and {}", stats.oracle_argmax, stats.candidate_argmax),
    };
    let [margin, kl] = [stats.margin, stats.kl].map(number);
    format!("{}, {}: {tokens}, margin {margin}, KL {kl}; {}", row.key, row.phase.name(), Mark::of(Some(row)).words())
}

/// A real as a person reads it, without zeros that say nothing.
pub(super) fn number(value: f64) -> String {
    let Some(real) = Real::new(value) else { return "not a number".to_owned() };
    let text = brief(real);
    if text.contains('.') && !text.contains('e') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// The legend of strips: what there is in them, and how often.
pub(super) fn cells(counts: &BTreeMap<Mark, u64>) -> Markup {
    html! {
        ul.legend {
            @for (mark, count) in counts.iter().rev() {
                li { svg viewBox="0 0 10 10" aria-hidden="true" { (used(mark.cell())) } (mark.words()) ": " (count) }
            }
        }
    }
}

/// The legend of plots: what there is in them.
pub(super) fn dots(rows: &[&RowLine]) -> Markup {
    let all = [
        ("#dot-decode", "decode"),
        ("#dot-prefill", "prefill"),
        ("#dot-recomputed", "recomputed"),
        ("#dot-undecided", "tie, undecided"),
        ("#dot-flip", "another token (flip)"),
    ];
    html! {
        ul.legend {
            @for (shape, words) in all.into_iter().filter(|(shape, _)| rows.iter().any(|row| dot(row) == *shape)) {
                li { svg viewBox="-6 -6 12 12" aria-hidden="true" { (used(shape)) } (words) }
            }
        }
    }
}

fn used(href: &str) -> Markup {
    PreEscaped(format!("<use href=\"{href}\"/>"))
}

/// The shapes, once a page.
pub(super) fn symbols() -> Markup {
    PreEscaped(SYMBOLS.lines().map(str::trim).collect())
}

const SYMBOLS: &str = r#"<svg class="symbols" aria-hidden="true"><defs>
    <g id="cell-bitwise"><rect class="bitwise" x=".5" y=".5" width="9" height="9" rx="1.5"/><path class="ink" d="M3 4h4M3 6h4"/></g>
    <g id="cell-agrees"><rect class="agrees" x=".5" y=".5" width="9" height="9" rx="1.5"/></g>
    <g id="cell-near"><rect class="agrees" x=".5" y=".5" width="9" height="9" rx="1.5"/><circle class="paper" cx="5" cy="5" r="1.7"/></g>
    <g id="cell-undecided"><rect class="undecided" x=".5" y=".5" width="9" height="9" rx="1.5"/><path class="line" d="M2.5 7.5L7.5 2.5"/></g>
    <g id="cell-flip"><rect class="flip" x=".5" y=".5" width="9" height="9" rx="1.5"/><path class="line" d="M2.7 2.7l4.6 4.6M7.3 2.7L2.7 7.3"/></g>
    <g id="cell-absent"><rect class="absent" x="1" y="1" width="8" height="8" rx="1.5"/></g>
    <g id="dot-decode"><circle class="agrees" r="3"/></g>
    <g id="dot-prefill"><circle class="hollow" r="3"/></g>
    <g id="dot-recomputed"><rect class="hollow" x="-3" y="-3" width="6" height="6"/></g>
    <g id="dot-undecided"><path class="undecided" d="M0 -4.5L4.5 3.5H-4.5z"/></g>
    <g id="dot-flip"><path class="cross" d="M-4 -4L4 4M4 -4L-4 4"/></g>
</defs></svg>"#;
