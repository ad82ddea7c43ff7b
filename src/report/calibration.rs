//! Text for calibrations: whether the counts carry the rule, then how the oracle differs from itself.

use std::collections::BTreeMap;

use super::stats::brief;
use super::text::Page;
use crate::id::CaptureId;
use crate::qualify::calibration::{Calibration, CalibrationDocument, CountLine, NoiseLine, RuleLine, Sufficiency};
use crate::qualify::result::Noise;
use crate::spec::calibration::CalibrationRule;

/// A calibration for a terminal.
#[must_use]
pub fn calibration(calibration: &Calibration) -> String {
    let document = &calibration.document;
    let mut page = Page(String::new());
    page.line(format_args!("{}  {}", verdict(document), document.workload));
    page.field("calibration SHA", calibration.sha256());
    page.field("spec", document.spec);
    if let Some(line) = &document.rule {
        page.words("rule", &rule(line));
    }
    for line in &document.counts {
        page.words(&format!("c{} {}", line.concurrency, line.mode), &count(line));
    }
    page.line(format_args!(
        "  {:<12} {:<26} {:>5} {:>12} {:>12}  most between",
        "stratum", "oracle repeats", "rows", "KL mean", "KL max"
    ));
    let names: BTreeMap<CaptureId, &str> =
        document.captures.iter().map(|line| (line.capture, line.run_id.as_str())).collect();
    for stratum in &document.strata {
        page.line(noise(stratum, &names).trim_end());
    }
    for missing in &document.pending {
        page.field("missing", missing);
    }
    page.words("note", "no threshold comes of this, and nothing is accepted by it: the gate is strict");
    for note in &calibration.findings.notes {
        page.words("note", &note.text);
    }
    page.0
}

fn verdict(document: &CalibrationDocument) -> String {
    match document.verdict {
        Sufficiency::Pending => format!("PENDING: {}", document.pending.join("; ")),
        Sufficiency::InsufficientEvidence => {
            let short = document.counts.iter().filter(|line| line.verdict == Sufficiency::InsufficientEvidence);
            let most = short.max_by_key(|line| line.needs);
            let needs = most.map_or(String::new(), |line| format!("needs {} {}", line.needs, line.counted));
            format!("INSUFFICIENT_EVIDENCE: {needs}")
        }
        verdict @ Sufficiency::Calibrated => verdict.name().to_owned(),
    }
}

fn rule(line: &RuleLine) -> String {
    let percent = |ppm: u32| format!("{} %", f64::from(ppm) / 1e4);
    match line.name {
        CalibrationRule::Maximum => format!(
            "maximum: no held-out run lies beyond the largest calibration run, wrong in at most {} of campaigns",
            percent(line.alpha)
        ),
        CalibrationRule::Share => format!(
            "share: at most {} of units exceed the oracle's own noise by {} nats, wrong in at most {} of campaigns",
            line.share.map_or_else(String::new, percent),
            line.margin.map_or_else(String::new, |margin| margin.to_string()),
            percent(line.alpha)
        ),
    }
}

fn count(line: &CountLine) -> String {
    let bound = line.bound.map_or(String::new(), |ppm| {
        format!("; with none beyond, the share is known to be at most {} %", f64::from(ppm) / 1e4)
    });
    let verdict = line.verdict.name();
    if line.held_out == 0 {
        return format!("{verdict}: nothing is held out, {} of {} calibration runs", line.found, line.planned);
    }
    format!(
        "{verdict}: needs {} {}, the plan has {}; {} of {} calibration runs, {} held out{bound}",
        line.needs, line.counted, line.units, line.found, line.planned, line.held_out,
    )
}

fn noise(stratum: &NoiseLine, names: &BTreeMap<CaptureId, &str>) -> String {
    let repeats = super::qualify::repeats(&stratum.repeatability);
    let largest = |noise: &&Noise| noise.statistics.as_ref().map_or(0.0, |statistics| statistics.kl.max.get());
    let worst = stratum.noise.iter().max_by(|a, b| largest(a).total_cmp(&largest(b)));
    let name = format!("c{} {}", stratum.concurrency, stratum.phase);
    let Some(worst) = worst else { return format!("  {name:<12} {repeats:<26} {:>5}", "-") };
    if worst.statistics.is_none() {
        return format!("  {name:<12} {repeats:<26} {:>5} {:>12} {:>12}  any two: equal to the bit", worst.rows, 0, 0);
    }
    let run = |capture: &CaptureId| names.get(capture).copied().unwrap_or("?");
    let (mean, max) = worst
        .statistics
        .as_ref()
        .map_or(("0".to_owned(), "0".to_owned()), |statistics| (brief(statistics.kl.mean), brief(statistics.kl.max)));
    format!(
        "  {name:<12} {repeats:<26} {:>5} {mean:>12} {max:>12}  {} and {}",
        worst.rows,
        run(&worst.a),
        run(&worst.b)
    )
}
