//! `heldout-opened-early`: what is held out is not looked at before there is something to try on it.

use super::claim::{ClaimBench, same_run};
use super::{About, Applies};
use crate::binding::{Role, Run};
use crate::refusal::{Rule, Subject};
use crate::spec::Partition;

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "A held-out run stays out of the calibration. It shows whether a rule holds on what it was not made from; once it went into the calibration it shows nothing any more.",
    remedy: "Leave held-out captures out of the calibration. If one was meant for it, write a new spec that says so, and make another held-out run.",
    applies: Applies::Qualification,
};

pub(super) fn check(bench: &mut ClaimBench<'_>) {
    let spec = bench.spec;
    let held_out = |run: &Run| spec.partition_of(run) == Some(Partition::HeldOut);
    for claimed in bench.captures.iter().filter(|claimed| claimed.role == Some(Role::Oracle)) {
        // A run that is sealed as a candidate's too is another rule's.
        let oracles = bench.known.iter().filter(|known| known.run.role() == Some(Role::Oracle));
        let mut kin = oracles.filter(|known| held_out(known.run));
        let found = if held_out(claimed.run) {
            "a held-out one".to_owned()
        } else if let Some((what, known)) = kin.find_map(|known| Some((same_run(&claimed.known(), known)?, known))) {
            format!("the {what} of {}, which is held out", known.run.run_id)
        } else {
            continue;
        };
        let expected = "a capture of the calibration partition";
        bench.refuse(Rule::HeldoutOpenedEarly, claimed.subject(Subject::Capture), expected, found);
    }
}
