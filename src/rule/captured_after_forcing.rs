//! `captured-after-forcing`: scores were taken before anything was done to them.

use super::{About, Applies, Bench};
use crate::refusal::{NoteKind, Rule};
use crate::row::Row;

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Scores were captured before a token was forced and before any processor changed them. Scores taken after forcing show the replay, not the engine.",
    remedy: "Copy the scores first, then force. Where the engine extracts them itself, declare extraction engine or after-id-replay and leave scores_modified_at_ns out.",
    applies: Applies::Always,
};

pub(super) fn check(bench: &mut Bench<'_>) {
    let mut undecided = 0;
    let mut unwitnessed = 0;
    for row in bench.evidence.rows {
        match forcing(row) {
            Order::Before => {}
            Order::After(expected, found) => bench.refuse_row(Rule::CapturedAfterForcing, row, expected, found),
            Order::Undecided => undecided += 1,
            Order::Unwitnessed => unwitnessed += 1,
        }
        let Some(modified) = row.scores_modified_at_ns else { continue };
        if !bench.evidence.run.adapter_extraction {
            let expected = "no scores_modified_at_ns, since the engine extracts the scores";
            bench.refuse_row(Rule::CapturedAfterForcing, row, expected, modified.0.to_string());
        } else if let Some(captured) = row.captured_at_ns {
            if modified < captured {
                let expected = format!("scores_modified_at_ns after the capture at {}", captured.0);
                bench.refuse_row(Rule::CapturedAfterForcing, row, expected, modified.0.to_string());
            } else if modified == captured {
                undecided += 1;
            }
        } else {
            bench.refuse_row(Rule::CapturedAfterForcing, row, "a captured_at_ns before the scores changed", "none");
        }
    }
    if undecided > 0 {
        let text = format!("captured-after-forcing: {undecided} rows with equal clocks and no sequence numbers");
        bench.findings.note(NoteKind::Undecided, text);
    }
    if unwitnessed > 0 {
        let why = format!("{unwitnessed} forced rows without sequence numbers or times");
        bench.findings.not_checkable(Rule::CapturedAfterForcing, why);
    }
}

enum Order {
    Before,
    After(String, String),
    Undecided,
    Unwitnessed,
}

/// Sequence numbers decide; clocks only where there are none.
fn forcing(row: &Row) -> Order {
    if let (Some(captured), Some(forced)) = (row.captured_seq, row.forced_seq) {
        if forced < captured {
            return Order::After(format!("forced_seq after captured_seq {captured}"), forced.to_string());
        }
        // Equal numbers are row-duplicated's.
        return Order::Before;
    }
    match (row.captured_at_ns, row.forced_at_ns) {
        (Some(captured), Some(forced)) if forced < captured => {
            Order::After(format!("forced_at_ns after captured_at_ns {}", captured.0), forced.0.to_string())
        }
        (Some(captured), Some(forced)) if forced == captured => Order::Undecided,
        (Some(_), Some(_)) => Order::Before,
        _ if row.forced_token_id.is_some() => Order::Unwitnessed,
        _ => Order::Before,
    }
}
