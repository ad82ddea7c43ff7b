//! `continuation-mismatch`: a replay forced the tokens that it says it forced.

use super::{About, Applies, Bench};
use crate::id::{RequestKey, TokenId};
use crate::refusal::{NoteKind, Refusal, Rule, Subject};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Under replay every row was forced to its token, and the output is the continuation that run.json names, to its end. \
               Outside replay nothing was forced. A comparison at identical prefixes needs this.",
    remedy: "Capture the replay again along the whole continuation, or correct which run it replays.",
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
        let named =
            continuation.source.as_ref().and_then(|(run, request)| (bench.evidence.continuations)(run, request));
        if named.is_none()
            && let Some((source, _)) = &continuation.source
        {
            bench.findings.note(NoteKind::DeclaredNotSeen, format!("continuation: the tokens of run {source}"));
        }
        for tokens in [continuation.token_ids.clone(), named].into_iter().flatten() {
            bench.findings.refusals.extend(leaves_its_course(request.key, &tokens, output));
        }
    }
}

/// The refusal of a replay whose output is not what it follows.
#[must_use]
pub fn leaves_its_course(request: RequestKey, course: &[TokenId], output: &[TokenId]) -> Option<Refusal> {
    if course == output {
        return None;
    }
    let same = course.iter().zip(output).take_while(|(a, b)| a == b).count();
    let expected = format!("the continuation's {} tokens", course.len());
    let found = format!("{} tokens, the first {same} of them equal", output.len());
    Some(Refusal::new(Rule::ContinuationMismatch, Subject::Request(request), expected, found))
}
