//! `coverage-overclaimed`: a capture covers what the spec says is covered.

use std::collections::BTreeSet;

use super::claim::{ClaimBench, Claimed};
use super::{About, Applies};
use crate::binding::FinishReason;
use crate::refusal::{Rule, Subject};
use crate::spec::Corpus;

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "A claim about a corpus rests on all of it: every prompt, every token that was asked for. A part is never called the whole.",
    remedy: "Capture the rest, or declare a spec of what there is before the candidate runs.",
    applies: Applies::Qualification,
};

pub(super) fn check(bench: &mut ClaimBench<'_>) {
    covers_oracles(bench);
    let Some(corpus) = &bench.spec.corpus else { return };
    for claimed in bench.captures {
        if covers(bench, claimed, corpus) {
            check_digest(bench, claimed, corpus);
        }
    }
}

/// Whether the capture has all prompts; refuses what it lacks.
fn covers(bench: &mut ClaimBench<'_>, claimed: &Claimed<'_>, corpus: &Corpus) -> bool {
    let mut refuse = |subject, expected: String, found: String| {
        bench.refuse(Rule::CoverageOverclaimed, claimed.subject(subject), expected, found);
    };
    let prompts: BTreeSet<u32> = claimed.run.requests.iter().map(|request| request.key.prompt_index).collect();
    let count = u64::try_from(prompts.len()).unwrap_or(u64::MAX);
    let all = count >= u64::from(corpus.requests);
    if !all {
        refuse(Subject::Capture, format!("{} prompts", corpus.requests), count.to_string());
    }
    for request in &claimed.run.requests {
        if request.positions.is_some() {
            refuse(Subject::Request(request.key), "all positions".to_owned(), "some".to_owned());
        }
        let tokens = request.output_token_ids.len();
        let short = u64::try_from(tokens).is_ok_and(|tokens| tokens < u64::from(corpus.new_tokens));
        if short && request.finish_reason != Some(FinishReason::Stop) {
            let expected = format!("{} new tokens, or a request that stopped", corpus.new_tokens);
            refuse(Subject::Request(request.key), expected, tokens.to_string());
        }
    }
    all
}

/// A candidate has the requests of the oracles that it is compared with.
fn covers_oracles(bench: &mut ClaimBench<'_>) {
    for (candidate, oracle) in bench.pairs() {
        if candidate.run.scores.is_none() || oracle.run.scores.is_none() {
            continue;
        }
        let requests = candidate.run.requests_by_key();
        for key in oracle.run.requests_by_key().into_keys().filter(|key| !requests.contains_key(key)) {
            let expected = format!("the request, which {} has", oracle.run.run_id);
            bench.refuse(Rule::CoverageOverclaimed, candidate.subject(Subject::Request(key)), expected, "none");
        }
    }
}

fn check_digest(bench: &mut ClaimBench<'_>, claimed: &Claimed<'_>, corpus: &Corpus) {
    let Some(expected) = &corpus.sha256 else { return };
    let found = crate::spec::corpus_digest(claimed.run).map(|digest| digest.to_string());
    if found.as_ref() != Some(expected) {
        let found = found.unwrap_or_else(|| "prompts that are not 0 to n − 1, or not one for all samples".to_owned());
        let subject = claimed.subject(Subject::Binding("requests".to_owned()));
        bench.refuse(Rule::CorpusMismatch, subject, format!("prompts of corpus {expected}"), found);
    }
}
