//! `token-not-argmax`: greedy decoding took a best token.

use super::argmax_witness::equal;
use super::{About, Applies, Bench};
use crate::refusal::{NoteKind, Rule};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Where sampling is greedy the engine's own choice has the highest score, and so has the consumed token where nothing was forced: the scores are the ones \
               that the engine sampled from.",
    remedy: "The scores are of another position, or a processor ran between capture and sampling. Declare it, or capture at the point of sampling.",
    applies: Applies::Always,
};

pub(super) fn check(bench: &mut Bench<'_>) {
    match bench.evidence.run.greedy {
        Some(true) => {}
        other => {
            let why = match other {
                Some(_) => "sampling.method is not \"greedy\"",
                None => "run.json does not give sampling.method",
            };
            bench.findings.not_checkable(Rule::TokenNotArgmax, why);
            return;
        }
    }
    let (mut tied, mut other_maximum) = (0, 0);
    for (index, row, facts) in bench.unnamed() {
        // Where a row is missing or too many, scores stand beside other tokens: that fault is named already.
        if bench.broken.contains(&row.request()) {
            continue;
        }
        let max = facts.scan.max;
        let choices = [
            ("token", (row.forced_token_id.is_none()).then_some((row.token_id, facts.at_token))),
            ("sampled token", row.sampled_token_id.map(|token| (token, facts.at_sampled))),
        ];
        let bad = choices.into_iter().find_map(|(what, choice)| {
            let (token, score) = choice?;
            (!equal(score, max)).then_some((what, token, score))
        });
        if let Some((what, token, score)) = bad {
            let expected = format!("a greedy {what} with the highest score {max:?} (token id {})", facts.scan.argmax);
            let found = format!("token id {token} with {:?}", score.unwrap_or(f32::NAN));
            bench.name_scores(Rule::TokenNotArgmax, index, expected, found);
        }
        if facts.scan.max_count > 1 {
            tied += 1;
            let choice = row.sampled_token_id.or(row.forced_token_id.is_none().then_some(row.token_id));
            other_maximum += i32::from(choice.is_some_and(|token| token.0 != facts.scan.argmax));
        }
    }
    if tied > 0 {
        let rows = if tied == 1 { "1 row has its".to_owned() } else { format!("{tied} rows have their") };
        let text = format!("{rows} highest score tied; the engine took another than the lowest id in {other_maximum}");
        bench.findings.note(NoteKind::Observed, text);
    }
}
