//! `phase-mismatch`: prefill, decode and recomputed are what the lengths say.

use super::{About, Applies, Bench};
use crate::binding::Request;
use crate::refusal::{Rule, Subject};
use crate::row::{Phase, Row};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "A row's phase follows from position, query_len and kv_len (left padding and chunked prefill allowed for): scores of a forward pass over \
               the whole prefix never stand in for decode.",
    remedy: "Label the row by what the engine did; a later position scored by a pass that began inside the prompt is recomputed.",
    applies: Applies::Always,
};

pub(super) fn check(bench: &mut Bench<'_>) {
    let speculation = bench.evidence.run.speculation;
    let mut unmeasured = 0;
    for (request, rows) in bench.sound_groups() {
        let mut padding = None;
        for row in rows {
            let Some((pad, start, query)) = measure(request, row) else {
                unmeasured += 1;
                if (row.key.position == 0) != (row.phase == Phase::Prefill) {
                    bench.refuse_row(
                        Rule::PhaseMismatch,
                        row,
                        "prefill at position 0 and nowhere else",
                        row.phase.name(),
                    );
                }
                continue;
            };
            if pad < 0 || pad != *padding.get_or_insert(pad) {
                let expected = match padding {
                    Some(first) if first >= 0 && pad >= 0 => format!("{first} positions of padding, as before"),
                    _ => "kv_len of at least prompt and position".to_owned(),
                };
                bench.refuse_row(Rule::PhaseMismatch, row, expected, format!("{pad}"));
                continue;
            }
            let prompt = length(request);
            let in_prompt = start < prompt;
            let derived = match (row.key.position, in_prompt) {
                (0, true) => Some(Phase::Prefill),
                (0, false) => None,
                (_, true) => Some(Phase::Recomputed),
                (_, false) => Some(Phase::Decode),
            };
            let long_decode = derived == Some(Phase::Decode) && query != 1 && !speculation;
            if derived != Some(row.phase) || long_decode {
                let expected = match derived {
                    None => "a first position whose pass began inside the prompt".to_owned(),
                    Some(_) if long_decode => "query_len 1, since no speculation is declared".to_owned(),
                    Some(phase) => {
                        format!("{} (the pass began at {start}, the prompt has {prompt} tokens)", phase.name())
                    }
                };
                bench.refuse_row(
                    Rule::PhaseMismatch,
                    row,
                    expected,
                    format!("{} with query_len {query}", row.phase.name()),
                );
            }
        }
        let recomputed = rows.iter().filter(|row| row.phase == Phase::Recomputed).count();
        if recomputed > 0 {
            let text =
                format!("{}: {recomputed} recomputed rows, a stratum of their own", Subject::Request(request.key));
            bench.findings.note(crate::refusal::NoteKind::Observed, text);
        }
    }
    if unmeasured > 0 {
        let why = format!("{unmeasured} rows without query_len and kv_len, judged by position only");
        bench.findings.not_checkable(Rule::PhaseMismatch, why);
    }
}

fn length(request: &Request) -> i64 {
    i64::try_from(request.prompt_token_ids.len()).unwrap_or(i64::MAX)
}

/// Padding, first position of the forward pass, and its length.
fn measure(request: &Request, row: &Row) -> Option<(i64, i64, i64)> {
    let (kv, query) = (i64::from(row.kv_len?), i64::from(row.query_len?));
    let pad = kv - length(request) - i64::from(row.key.position);
    Some((pad, (kv - pad - query).max(0), query))
}
