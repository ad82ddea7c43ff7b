//! `witnessmark calibrate`.

use super::args::CalibrateArgs;
use super::progress::Progress;
use super::{CliError, Context, Status, spec};
use crate::catalog::Catalog;
use crate::qualify::Answer;
use crate::qualify::calibration::{Sufficiency, calibrate, find};
use crate::report::calibration as text;
use crate::store::Store;

pub(super) fn run(context: &mut Context<'_>, args: &CalibrateArgs) -> Result<Status, CliError> {
    let store = Store::open(&context.store)?;
    let catalog = Catalog::load(&store)?;
    if !catalog.log.refusals.is_empty() {
        return context.refused("store: ", &catalog.log.refusals);
    }
    let Some((spec, _)) = spec::find(context, &catalog, &args.spec)? else { return Ok(Status::Refused) };
    let subjects = if args.captures.is_empty() {
        find(&catalog, &spec)
    } else {
        args.captures.iter().map(|name| catalog.resolve(name, false)).collect::<Result<Vec<_>, _>>()?
    };
    let progress = Progress::start(context, "calibrating");
    let answer = calibrate(&catalog, &spec, &subjects, &context.meter);
    drop(progress);
    let calibration = match answer? {
        Answer::Refused(findings) => return context.refused("", &findings.refusals),
        Answer::Derived(calibration) => calibration,
    };
    if let Some(file) = &args.output {
        context.document(&calibration.bytes, Some(file))?;
    }
    if context.json {
        context.out.json(&serde_json::json!({
            "calibration_sha256": calibration.sha256(), "verdict": calibration.document.verdict,
            "calibration": calibration.document, "notes": calibration.findings.notes,
        }))?;
    } else {
        context.out.print(&text::calibration(&calibration))?;
    }
    let enough = calibration.document.verdict == Sufficiency::Calibrated;
    Ok(if enough { Status::Good } else { Status::Negative })
}
