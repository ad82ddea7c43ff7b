//! Every rule's call site matters: without it, what the rule refuses is no longer refused by it.

use std::fs;
use std::path::Path;

use witnessmark::binding::Course;
use witnessmark::canon::scores::{Canonical, Dtype};
use witnessmark::catalog::Catalog;
use witnessmark::digest::Sha256;
use witnessmark::drill::{Place, corrupt, known};
use witnessmark::export::export;
use witnessmark::facts::Facts;
use witnessmark::ingest::{Torn, open_capture};
use witnessmark::manifest::Codec;
use witnessmark::meter::Meter;
use witnessmark::refusal::{Findings, Rule};
use witnessmark::rule::{Evidence, ScoreEvidence, judge, judge_some, judged};
use witnessmark::verify::{Depth, Options, Verified, verify};

use super::drill::witnessed;
use super::made_up::sealed;
use super::support::Bench;

/// Asks `judge` about a capture directory, as `seal` does; none where the directory is refused before any rule about rows.
fn judged_by(dir: &Path, judge: &dyn Fn(&Evidence<'_>) -> Findings) -> Option<Vec<Rule>> {
    let (capture, _) = open_capture(dir, Torn::Refused).unwrap();
    let capture = capture?;
    let declared = capture.run.scores.as_ref().unwrap();
    let bytes = fs::read(dir.join(declared.dtype.file_name())).unwrap();
    let row_bytes = usize::try_from(declared.vocab_size).unwrap() * declared.dtype.size();
    let (mut facts, mut all, mut wide) = (Vec::new(), Vec::new(), Vec::new());
    let mut canonical = Canonical::default();
    for (row, place) in capture.rows.iter().zip(&capture.places) {
        let start = usize::try_from(*place).unwrap() * row_bytes;
        canonical.set_from_file_row(declared.dtype, &bytes[start..start + row_bytes]);
        facts.push(Some(Facts::derive(&canonical, row, declared, &mut Vec::new())));
        canonical.write_as(Dtype::F32, &mut wide);
        all.extend_from_slice(&wide);
    }
    let scores = ScoreEvidence { facts: &facts, f32_sha256: Some(Sha256::of(&all)) };
    let evidence = Evidence {
        run: &capture.run,
        rows: &capture.rows,
        scores: Some(scores),
        continuations: &|_, _, _| Course::Unseen,
        elsewhere: &|_| std::collections::BTreeMap::new(),
    };
    Some(judge(&evidence).refusals.into_iter().map(|refusal| refusal.rule).collect())
}

/// A made-up capture, sealed, verified and exported as `out`: corruptions start from an export.
fn exported(root: &Path, dir: &Path, out: &Path) -> Verified {
    let (store, sealed) = sealed(root, dir, Codec::Zstd);
    let catalog = Catalog::load(&store).unwrap();
    let resolved = catalog.resolve(&sealed.capture.to_string(), true).unwrap();
    let options = Options { depth: Depth::Full, model: None, spec: None };
    let capture = verify(&catalog, &resolved, options, &Meter::default()).unwrap().verified.unwrap();
    export(&store, &capture, out, &Meter::default()).unwrap().unwrap();
    capture
}

#[test]
fn every_call_site_matters() {
    let bench = Bench::new();
    let folder = bench.folder.path();
    let mut unseen = judged();
    for name in ["self-replay", "capture-only"] {
        let made_up = folder.join(format!("{name}-made-up"));
        witnessed(name, &made_up);
        let dir = folder.join(name);
        let capture = exported(&folder.join(format!("{name}-store")), &made_up, &dir);
        assert_eq!(judged_by(&dir, &|evidence| judge(evidence)), Some(Vec::new()));
        for known in known().into_iter().filter(|known| known.place == Place::Capture) {
            let to = folder.join(format!("{name}-{}", known.name));
            let Ok(expected) = corrupt(&capture, &dir, known.name, 0, &to).unwrap() else { continue };
            let Some(found) = judged_by(&to, &|evidence| judge(evidence)) else { continue };
            assert!(expected.iter().all(|rule| found.contains(rule)), "{}: {found:?}", known.name);
            for rule in judged() {
                let without = judged_by(&to, &|evidence| judge_some(evidence, &|other| other != rule)).unwrap();
                // row-missing also asks whether a replay followed its continuation to the end.
                let elsewhere = rule == Rule::ContinuationMismatch && known.name == "replay-truncated-output-cut";
                assert!(elsewhere || !without.contains(&rule), "{} is still refused by {rule}", known.name);
                if found.contains(&rule) {
                    unseen.retain(|unseen| *unseen != rule);
                }
            }
        }
    }
    assert_eq!(unseen, [], "no corruption shows that these are asked");
}
