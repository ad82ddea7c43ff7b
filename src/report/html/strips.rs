//! Strips: a line a request, a cell a position, so that where two captures part is seen at once.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};

use super::marks::{Mark, cells, title};
use crate::id::RequestKey;
use crate::qualify::RowLine;
use crate::row::Row;

/// Requests that are drawn, those with most to see first.
const REQUESTS: usize = 200;
/// Positions of a request that are drawn.
const POSITIONS: u32 = 2048;
/// Cells that are drawn in all.
const CELLS: usize = 10_000;
/// Cells in a line, so that a line fits a phone.
const LINE: u32 = 64;
/// Width and height of a cell in a drawing.
const CELL: u32 = 10;

type Strip<'a> = BTreeMap<u32, Option<&'a RowLine>>;

/// All rows of a capture, in strips; those that have something beside them, in `compared`.
pub(super) fn strips(all: &[Row], compared: &[RowLine]) -> Markup {
    let mut strips: BTreeMap<RequestKey, Strip<'_>> = BTreeMap::new();
    for row in all {
        strips.entry(row.key.request).or_default().insert(row.key.position, None);
    }
    for row in compared {
        strips.entry(row.key.request).or_default().insert(row.key.position, Some(row));
    }
    let requests = strips.len();
    let mut counts: BTreeMap<Mark, u64> = BTreeMap::new();
    for row in strips.values().flat_map(BTreeMap::values) {
        *counts.entry(Mark::of(*row)).or_default() += 1;
    }
    let longest = strips.values().filter_map(|strip| strip.keys().next_back()).max().copied().unwrap_or(0);
    let positions = longest.saturating_add(1).min(POSITIONS);
    let shown = REQUESTS.min(CELLS / usize::try_from(positions).unwrap_or(CELLS)).max(1);
    let strips = worst(strips, shown);
    let columns = positions.min(LINE);
    html! {
        figure.strips style=(format!("--columns:{columns}")) {
            figcaption { "A strip a request, a cell a position" @if positions > LINE { ", " (LINE) " to a line" } "." }
            (cells(&counts))
            (ruler(columns))
            @for (request, strip) in &strips {
                div.strip { span.name { (request) } (drawing(*request, strip, positions)) }
            }
            @if strips.len() < requests { p.omitted { "Drawn are the " (strips.len()) " of " (requests) " requests with most to see." } }
            @if longest >= positions { p.omitted { "Drawn are the first " (positions) " positions of up to " (longest.saturating_add(1)) "." } }
        }
    }
}

/// The strips with most to see, in key order.
fn worst(strips: BTreeMap<RequestKey, Strip<'_>>, shown: usize) -> Vec<(RequestKey, Strip<'_>)> {
    let seen = |strip: &Strip<'_>, mark: Mark| strip.values().filter(|row| Mark::of(**row) == mark).count();
    let mut all: Vec<_> = strips.into_iter().collect();
    all.sort_by_cached_key(|(key, strip)| {
        std::cmp::Reverse((seen(strip, Mark::Flip), seen(strip, Mark::Undecided), std::cmp::Reverse(*key)))
    });
    all.truncate(shown);
    all.sort_by_key(|(key, _)| *key);
    all
}

/// Numbers of positions, over the columns.
fn ruler(columns: u32) -> Markup {
    let step = if columns > 40 { 16 } else { 8 };
    let ticks = (0..columns).step_by(step).map(|position| {
        let left = 100.0 * (f64::from(position) + 0.5) / f64::from(columns);
        (position, format!("left:{left:.2}%"))
    });
    html! {
        div.strip.ruler aria-hidden="true" {
            span.name { "position" }
            div { @for (position, left) in ticks { span style=(left) { (position) } } }
        }
    }
}

fn drawing(request: RequestKey, strip: &Strip<'_>, positions: u32) -> Markup {
    let columns = positions.min(LINE);
    let lines = strip.keys().next_back().map_or(1, |last| (*last).min(positions.saturating_sub(1)) / LINE + 1);
    let mut cells = String::new();
    let mut counts: BTreeMap<Mark, u64> = BTreeMap::new();
    for (position, row) in strip.range(..positions) {
        let mark = Mark::of(*row);
        *counts.entry(mark).or_default() += 1;
        let (x, y) = (position % LINE * CELL, position / LINE * CELL);
        let words = match row {
            Some(row) => title(row),
            None => format!("{request} position {position}: {}", mark.words()),
        };
        let words = html! { title { (words) } }.into_string();
        cells.push_str(&format!("<use href=\"{}\" x=\"{x}\" y=\"{y}\">{words}</use>", mark.cell()));
    }
    let counts: Vec<String> = counts.iter().map(|(mark, count)| format!("{count} {}", mark.words())).collect();
    html! {
        svg viewBox=(format!("0 0 {} {}", columns * CELL, lines * CELL)) role="img" aria-label=(format!("{request}: {}", counts.join(", "))) {
            (PreEscaped(cells))
        }
    }
}
