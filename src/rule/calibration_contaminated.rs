//! `calibration-contaminated`: a calibration rests on oracle runs alone.

use super::claim::{ClaimBench, same_run};
use super::{About, Applies};
use crate::binding::Role;
use crate::refusal::{Rule, Subject};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "A calibration sees the oracle only, never the candidate. What is called noise is how the oracle differs from itself; a threshold that has seen the candidate is fitted to what it is to judge.",
    remedy: "Name oracle captures of the spec's calibration partition only, or none: then all of them are taken.",
    applies: Applies::Qualification,
};

pub(super) fn check(bench: &mut ClaimBench<'_>) {
    for claimed in bench.captures {
        let mut candidates = bench.known.iter().filter(|known| known.run.role() == Some(Role::Candidate));
        let found = match claimed.role {
            Some(Role::Oracle) => {
                let kin = candidates.find_map(|known| Some((same_run(&claimed.known(), known)?, known)));
                kin.map(|(what, known)| format!("the {what} of {}, a candidate's", known.run.run_id))
            }
            Some(Role::Candidate) => Some("a candidate's".to_owned()),
            None => Some("a capture of no role".to_owned()),
        };
        if let Some(found) = found {
            bench.refuse(
                Rule::CalibrationContaminated,
                claimed.subject(Subject::Capture),
                "an oracle's capture",
                found,
            );
        }
    }
}
