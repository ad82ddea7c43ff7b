//! `row-missing` and `replay-truncated`: every promised position has its row.

use super::{About, Applies, Bench};
use crate::binding::FinishReason;
use crate::refusal::{Rule, Subject};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "For every generated token there is a row; a request that ended for the reason length has all the tokens that were asked for.",
    remedy: "Find out which callback was skipped, and capture again. A request that ended early must say why (finish_reason stop or abort).",
    applies: Applies::Always,
};

pub(super) fn check(bench: &mut Bench<'_>) {
    let run = bench.evidence.run;
    for group in 0..bench.groups.len() {
        let (request, rows) = (bench.groups[group].request, bench.groups[group].rows);
        let expected = request.expected_positions();
        let has = |position: &u32| rows.binary_search_by_key(position, |row| row.key.position).is_ok();
        let missing: Vec<u32> = expected.iter().copied().filter(|position| !has(position)).collect();
        let tail = expected.len() - missing.len();
        let subject = Subject::Request(request.key);
        if let (Some(first), Some(last)) = (missing.first(), missing.last()) {
            let truncated = run.mode.is_replay() && tail > 0 && expected.get(tail) == Some(first);
            let rule = if truncated { Rule::ReplayTruncated } else { Rule::RowMissing };
            let which =
                if first == last { format!("position {first}") } else { format!("positions {first} to {last}") };
            let found = format!("{} rows, {} missing ({which})", rows.len(), missing.len());
            bench.refuse(rule, subject, format!("{} rows", expected.len()), found);
            bench.broken.insert(request.key);
            continue;
        }
        let output = request.output_token_ids.len();
        if let Some(asked) = run.max_new_tokens
            && request.finish_reason == Some(FinishReason::Length)
            && u64::try_from(output).is_ok_and(|output| output != asked)
        {
            // Under replay the output is the continuation's: a short one did not follow it to its end.
            let rule = if run.mode.is_replay() { Rule::ContinuationMismatch } else { Rule::RowMissing };
            let expected = format!("{asked} tokens, since finish_reason is length");
            bench.refuse(rule, subject, expected, format!("{output} tokens"));
        }
    }
}
