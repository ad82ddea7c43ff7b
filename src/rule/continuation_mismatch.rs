//! `continuation-mismatch`: a replay forced the tokens that it says it forced.

use super::{About, Applies, Bench};
use crate::binding::Course;
use crate::id::{RequestKey, TokenId};
use crate::refusal::{Note, NoteKind, Refusal, Rule, Subject};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Under replay every row was forced to its token, and the output is the continuation that run.json names, to its end. \
               Outside replay nothing was forced. A comparison at identical prefixes needs this.",
    remedy: "Capture the replay again along the whole continuation, or correct which run, and which of its requests, it replays.",
    applies: Applies::Always,
};

pub(super) fn check(bench: &mut Bench<'_>) {
    let run = bench.evidence.run;
    for row in bench.evidence.rows {
        let expected = run.mode.is_replay().then_some(row.token_id);
        if row.forced_token_id != expected {
            let show = |token: Option<TokenId>| token.map_or("none".to_owned(), |token| token.to_string());
            let expected = format!("forced_token_id {} in mode {}", show(expected), run.mode.name());
            bench.refuse_row(Rule::ContinuationMismatch, row, expected, show(row.forced_token_id));
        }
    }
    if !run.mode.is_replay() {
        return;
    }
    for (request, _) in bench.sound_groups() {
        let Some(continuation) = &request.continuation else {
            let why = format!("{} names no continuation", request.key);
            bench.findings.not_checkable(Rule::ContinuationMismatch, why);
            continue;
        };
        let output = &request.output_token_ids;
        if let Some(tokens) = &continuation.token_ids {
            bench.findings.refusals.extend(departs(request.key, "its own continuation", tokens, output));
        }
        let Some((source, name)) = &continuation.source else { continue };
        // What a run generated is no evidence for itself.
        let course =
            if *source == run.run_id { Course::Unseen } else { (bench.evidence.continuations)(source, name, output) };
        if course == Course::Unseen {
            bench.findings.notes.push(unseen(source));
        }
        bench.findings.refusals.extend(departs_from(request.key, (source, name), &course, output));
    }
}

/// The note that a run which a replay follows was not seen.
#[must_use]
pub fn unseen(source: &str) -> Note {
    Note { kind: NoteKind::DeclaredNotSeen, text: format!("continuation: the tokens of run {source}") }
}

/// The refusal of a replay whose `output` left the course of the request that it follows, a run and one of its requests; none where that was not seen.
#[must_use]
pub fn departs_from(
    request: RequestKey,
    (run, name): (&str, &str),
    course: &Course,
    output: &[TokenId],
) -> Option<Refusal> {
    let Course::Left(tokens) = course else { return None };
    departs(request, &format!("request {name} of run {run}"), tokens, output)
}

fn departs(request: RequestKey, what: &str, course: &[TokenId], output: &[TokenId]) -> Option<Refusal> {
    if course == output {
        return None;
    }
    let same = course.iter().zip(output).take_while(|(a, b)| a == b).count();
    let expected = format!("the {} tokens of {what}", course.len());
    let found = format!("{} tokens, the first {same} of them equal", output.len());
    Some(Refusal::new(Rule::ContinuationMismatch, Subject::Request(request), expected, found))
}
