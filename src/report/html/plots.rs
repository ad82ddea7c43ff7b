//! Plots: the divergence of every row, by its position and by the oracle's margin.
//!
//! Across, places are shares of the width and nothing is scaled: lines, dots and letters have one size on a phone and on a desk.

use maud::{Markup, PreEscaped, html};

use super::marks::{Mark, dot, dots, title};
use crate::qualify::RowLine;

/// Dots in a plot, those with most to see first.
const DOTS: usize = 2_000;
/// Height of a drawing, and what of it lies above and below the plot, in pixels.
const HEIGHT: f64 = 272.0;
const ABOVE: f64 = 14.0;
const BELOW: f64 = 24.0;
/// Where plots begin and end across, in percent: labels of the axis upwards stand before.
const LEFT: f64 = 13.0;
const RIGHT: f64 = 97.0;
/// Ticks on an axis, about.
const TICKS: usize = 6;

/// Both plots, with what their shapes mean.
pub(super) fn plots(rows: &[RowLine], [a, b]: [&str; 2]) -> Markup {
    let mut rows: Vec<&RowLine> = rows.iter().collect();
    let (all, shown) = (rows.len(), rows.len().min(DOTS));
    rows.sort_by(|a, b| {
        Mark::of(Some(a))
            .min(Mark::Agrees)
            .cmp(&Mark::of(Some(b)).min(Mark::Agrees))
            .then(b.stats.kl.total_cmp(&a.stats.kl))
    });
    rows.truncate(shown);
    // What there is most to see in is drawn last, on top.
    rows.reverse();
    let up = Axis::log(rows.iter().map(|row| row.stats.kl));
    let position = |row: &RowLine| f64::from(row.key.position);
    let along = Axis::linear(rows.iter().map(|row| row.key.position).max().unwrap_or(0));
    let margins = Axis::log(rows.iter().map(|row| row.stats.margin));
    html! {
        (dots(&rows))
        div.plots {
            (plot("Divergence by position", &format!("KL({a}‖{b}) in nats, upwards; position, rightwards"), &rows, (&along, &position), &up))
            (plot("Divergence by margin", &format!("KL({a}‖{b}) in nats, upwards; margin of {a}, its highest score less its second, rightwards"), &rows, (&margins, &|row| row.stats.margin), &up))
        }
        @if shown < all { p.omitted { "Drawn are the " (shown) " of " (all) " rows with most to see: other tokens, ties, then the largest divergences." } }
    }
}

fn plot(name: &str, axes: &str, rows: &[&RowLine], across: (&Axis, &dyn Fn(&RowLine) -> f64), up: &Axis) -> Markup {
    let (axis, value) = across;
    let x = |share: f64| LEFT + (RIGHT - LEFT) * share;
    let y = |share: f64| HEIGHT - BELOW - (HEIGHT - BELOW - ABOVE) * share;
    let mut drawing = String::new();
    for (share, label) in up.ticks() {
        let y = y(share);
        drawing.push_str(&format!(
            "<line x1=\"0\" x2=\"100%\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text x=\"0\" y=\"{:.1}\">{label}</text>",
            y - 4.0
        ));
    }
    for (share, label) in axis.ticks() {
        let x = x(share);
        drawing.push_str(&format!("<line x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"{:.1}\" y2=\"{:.1}\"/><text class=\"across\" x=\"{x:.2}%\" y=\"{:.1}\">{label}</text>", HEIGHT - BELOW, HEIGHT - BELOW + 5.0, HEIGHT - 5.0));
    }
    for row in rows {
        let (x, y) = (x(axis.at(value(row))), y(up.at(row.stats.kl)));
        let words = html! { title { (title(row)) } }.into_string();
        drawing.push_str(&format!("<use href=\"{}\" x=\"{x:.2}%\" y=\"{y:.1}\">{words}</use>", dot(row)));
    }
    let flips = rows.iter().filter(|row| Mark::of(Some(row)) == Mark::Flip).count();
    let label = format!("{name}: {} rows, {flips} with another token. {axes}", rows.len());
    html! {
        figure.plot {
            figcaption { strong { (name) } " " (axes) "." }
            svg height=(HEIGHT) role="img" aria-label=(label) { (PreEscaped(drawing)) }
        }
    }
}

/// Where values lie on an axis, as shares of its length.
#[derive(Debug, Clone, Copy)]
enum Axis {
    /// From 0 to this
    Linear(u32),
    /// From a power of ten to the logarithm of the largest value, with a place below for exact zeros, and one above for infinity where there is any
    Log { low: i32, high: f64, infinite: bool },
}

/// Where zeros, the lowest power, the largest value, and infinity lie.
const ZERO: f64 = 0.02;
const LOW: f64 = 0.13;
const HIGH: f64 = 0.92;
const INFINITE: f64 = 0.99;

impl Axis {
    fn linear(max: u32) -> Self {
        Axis::Linear(max.max(1))
    }

    fn log(values: impl Iterator<Item = f64>) -> Self {
        let (mut least, mut most, mut infinite) = (f64::INFINITY, 0.0_f64, false);
        for value in values {
            infinite |= value.is_infinite();
            if value > 0.0 && value.is_finite() {
                (least, most) = (least.min(value), most.max(value));
            }
        }
        let low = (-30..3).rev().find(|power| 10_f64.powi(*power) <= least).filter(|_| most > 0.0).unwrap_or(-6);
        Axis::Log { low, high: most.log10().max(f64::from(low) + 1.0), infinite }
    }

    fn at(self, value: f64) -> f64 {
        match self {
            Axis::Linear(max) => value / f64::from(max),
            Axis::Log { .. } if value <= 0.0 => ZERO,
            Axis::Log { .. } if value.is_infinite() => INFINITE,
            Axis::Log { low, high, .. } => {
                let share = (value.log10() - f64::from(low)) / (high - f64::from(low));
                LOW + (HIGH - LOW) * share.clamp(0.0, 1.0)
            }
        }
    }

    fn ticks(self) -> Vec<(f64, String)> {
        match self {
            Axis::Linear(max) => {
                let steps = (0..9).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u32.pow(power)));
                let step = steps
                    .into_iter()
                    .find(|step| usize::try_from(max / step).is_ok_and(|ticks| ticks <= TICKS))
                    .unwrap_or(max);
                let ticks = (0..=max / step).map(|n| n * step);
                ticks.map(|tick| (self.at(f64::from(tick)), tick.to_string())).collect()
            }
            Axis::Log { low, high, infinite } => {
                let powers: Vec<i32> = (low..).take_while(|power| f64::from(*power) <= high).collect();
                let step = powers.len().div_ceil(TICKS).max(1);
                let mut ticks = vec![(ZERO, "0".to_owned())];
                ticks.extend(
                    powers.into_iter().step_by(step).map(|power| (self.at(10_f64.powi(power)), ten_to_the(power))),
                );
                ticks.extend(infinite.then(|| (INFINITE, "∞".to_owned())));
                ticks
            }
        }
    }
}

/// A power of ten as people write it.
fn ten_to_the(power: i32) -> String {
    match power {
        0 => "1".to_owned(),
        1 => "10".to_owned(),
        _ => {
            let power = power.to_string();
            let raised = power.chars().map(|c| match c {
                '-' => '⁻',
                '1' => '¹',
                '2' => '²',
                '3' => '³',
                '4' => '⁴',
                '5' => '⁵',
                '6' => '⁶',
                '7' => '⁷',
                '8' => '⁸',
                '9' => '⁹',
                _ => '⁰',
            });
            format!("10{}", raised.collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_a_place_for_every_value() {
        let axis = Axis::log([0.0, 3e-7, 0.02, f64::INFINITY].into_iter());
        let places = [0.0, 3e-7, 1e-4, 0.02, f64::INFINITY].map(|value| axis.at(value));
        assert!(places.is_sorted() && places.iter().all(|at| (0.0..=1.0).contains(at)), "{places:?}");
        let labels: Vec<String> = axis.ticks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["0", "10⁻⁷", "10⁻⁶", "10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "∞"]);
        for nothing in [vec![], vec![0.0], vec![1.0]] {
            let axis = Axis::log(nothing.into_iter());
            assert!(axis.ticks().iter().all(|(at, _)| (0.0..=1.0).contains(at)));
        }
        assert_eq!(Axis::linear(26).ticks().last().map(|(_, label)| label.as_str()), Some("25"));
        assert_eq!(Axis::linear(u32::MAX).ticks().first().map(|(at, _)| *at), Some(0.0));
    }
}
