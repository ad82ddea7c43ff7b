//! What two captures have apart, in words.

use maud::{Markup, html};

use crate::diff::{Diff, Scores};
use crate::report::text::count;

/// Requests whose tokens part that are listed.
const SHOWN: usize = 24;

/// A line a kind of difference.
pub(super) fn changes(diff: &Diff) -> Markup {
    let number = |len: usize, one: &str| count(u64::try_from(len).unwrap_or(u64::MAX), one);
    html! {
        ul {
            li { strong { "Bindings: " } @if diff.bindings.is_empty() { "equal." } @else { (number(diff.bindings.len(), "binding")) " differ." } }
            @if !diff.attachments.is_empty() { li { strong { "Attachments: " } (diff.attachments.len()) " differ." } }
            li {
                strong { "Shapes: " }
                @if diff.shapes.differ() { "they differ, so this only describes: no claim about an engine follows from it. " } @else { "no difference seen. " }
                (diff.shapes.matched_rows) " rows computed in equal shapes, " (diff.shapes.unmatched_rows) " in others, " (diff.shapes.unrecorded_rows) " without a record."
            }
            li {
                strong { "Requests: " } (diff.requests_common) " in both, " (diff.requests_only_a.len()) " only in A, " (diff.requests_only_b.len()) " only in B, "
                (diff.prompts.len()) " with another prompt."
            }
            li {
                strong { "Rows: " } (diff.rows_common) " in both, " (diff.rows_only_a.len()) " only in A, " (diff.rows_only_b.len()) " only in B."
                @for (field, rows) in &diff.row_fields { " " code { (field) } " differs in " (rows) "." }
            }
            li {
                strong { "Tokens: " }
                @if diff.tokens.is_empty() { "equal." } @else { "they part in " (number(diff.tokens.len(), "request")) ":" }
                @if !diff.tokens.is_empty() {
                    ul {
                        @for change in diff.tokens.iter().take(SHOWN) {
                            @let token = |token: Option<crate::id::TokenId>| token.map_or("none".to_owned(), |token| token.to_string());
                            li { (change.request) " from position " (change.position) ": token " (token(change.a)) " → " (token(change.b)) ", " (count(change.differing, "position")) " in all" }
                        }
                    }
                    @if diff.tokens.len() > SHOWN { p.omitted { "and " (diff.tokens.len() - SHOWN) " more" } }
                }
            }
            @if let Some(scores) = &diff.scores { li { strong { "Scores: " } (self::scores(scores)) } }
            @if !diff.incidental.is_empty() {
                li { strong { "Incidental to a run: " } @for (n, field) in diff.incidental.keys().enumerate() { @if n > 0 { ", " } code { (field) } } "." }
            }
        }
    }
}

fn scores(scores: &Scores) -> Markup {
    let others = [
        (scores.other_prefix_rows, "after the tokens parted"),
        (scores.other_vocab_rows, "with vocabularies of other sizes"),
        (scores.one_sided_rows, "with scores on one side only"),
        (scores.unscored_rows, "without scores"),
    ];
    html! {
        (scores.equal_rows) " rows equal to the bit, " (scores.differing.len()) " not."
        @for (rows, why) in others { @if rows > 0 { " " (rows) " " (why) ": not comparable." } }
    }
}
