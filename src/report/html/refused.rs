//! Refusals: what was refused, rule by rule, with what each rule protects and what to do.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::refusal::{Refusal, Rule};
use crate::rule::about;

/// Refusals of one rule that are listed before the rest is counted.
const SHOWN: usize = 24;

/// A section a rule, in the order of reports.
pub(super) fn by_rule(refusals: &[Refusal]) -> Markup {
    let mut by_rule: BTreeMap<Rule, Vec<&Refusal>> = BTreeMap::new();
    for refusal in refusals {
        by_rule.entry(refusal.rule).or_default().push(refusal);
    }
    html! {
        @for (rule, group) in by_rule {
            section {
                h2 { code { (rule) } }
                p { strong { "Protects " } (about(rule).protects) }
                p { strong { "What to do " } (about(rule).remedy) }
                @for refusal in group.iter().take(SHOWN) {
                    dl.refusal {
                        div { dt { "About" } dd { (refusal.subject) } }
                        div { dt { "Expected" } dd { (refusal.expected) } }
                        div { dt { "Found" } dd { (refusal.found) } }
                    }
                }
                @if group.len() > SHOWN { p.omitted { "and " (group.len() - SHOWN) " more; " code { "--json" } " lists all" } }
            }
        }
    }
}
