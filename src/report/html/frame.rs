//! What every page has: the head, the banner, ids to cite, and the foot that says how to check it and what it does not show.

use std::fmt::Display;

use maud::{Markup, PreEscaped, html};

use super::marks;
use crate::shown::printable;

const STYLE: &str = include_str!("style.css");
/// Nothing is loaded and nothing runs, whatever a page came to hold.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// What a verdict feels like. Each has a sign of its own, so that it does not rest on colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Good,
    Bad,
    Open,
    Plain,
}

impl Tone {
    pub(super) fn class(self) -> &'static str {
        match self {
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Open => "open",
            Tone::Plain => "plain",
        }
    }

    /// A tick, a cross, three dots, a bar.
    fn path(self) -> &'static str {
        match self {
            Tone::Good => "M5 12.5l4.5 4.5L19 7.5",
            Tone::Bad => "M6 6l12 12M18 6L6 18",
            Tone::Open => "M5 12h.01M12 12h.01M19 12h.01",
            Tone::Plain => "M5 12h14",
        }
    }

    pub(super) fn sign(self) -> Markup {
        html! { svg.sign viewBox="0 0 24 24" aria-hidden="true" { path d=(self.path()) {} } }
    }
}

/// The verdict, large.
pub(super) fn banner(tone: Tone, word: &str, beside: &str) -> Markup {
    html! {
        p class=(format!("banner {}", tone.class())) {
            (tone.sign()) strong { (word) } " " span.beside { (beside) }
        }
    }
}

/// Ids, whole, each to be selected with one click.
pub(super) fn ids(ids: &[(&str, &dyn Display)]) -> Markup {
    html! { dl.ids { @for (name, id) in ids { div { dt { (name) } dd { code { (id.to_string()) } } } } } }
}

/// A whole page. Markup has neither control characters nor marks that turn the direction of writing, so those in `body` come from evidence: they are shown as
/// escapes here, where no place can be forgotten.
pub(super) fn page(title: &str, body: &Markup) -> String {
    let title = html! { title { (title) } }.into_string();
    let body = html! { body { (marks::symbols()) main { (body) } } }.into_string();
    let head = html! {
        (PreEscaped("<meta charset=\"utf-8\"/><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"))
        (PreEscaped(format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"/>")))
        (PreEscaped("<meta name=\"color-scheme\" content=\"light dark\"/>"))
        (PreEscaped(printable(&title)))
        style { (PreEscaped(STYLE)) }
    };
    let head = head.into_string();
    let body = printable(&body);
    format!("<!DOCTYPE html>\n<html lang=\"en\"><head>{head}</head>\n{body}</html>\n")
}

/// The foot of a result.
pub(super) fn of_result(sha: &impl Display) -> Markup {
    html! {
        h2 { "How to check this page" }
        p { "The page is a picture, not evidence. Cite the result SHA. Whoever has the store, or a bundle, derives every number here again:" }
        (command(&format!("witnessmark verify {sha}")))
        p {
            "Defined in " cite { "specs/qualification-v1.md" } ": Protocol rules (4), Inertness (5), Strata (6), Statistics (6.1), The result document (7); and in "
            cite { "specs/numerics-v1.md" } ", operation by operation."
        }
        (limits())
    }
}

/// The foot of a diff.
pub(super) fn of_diff(a: &impl Display, b: &impl Display) -> Markup {
    html! {
        h2 { "How to check this page" }
        p { "The page is a picture, not evidence. Cite both capture ids. Whoever has the store, or a bundle, gets the same again:" }
        (command(&format!("witnessmark diff {a} {b}")))
        (command(&format!("witnessmark stats {a} {b}")))
        p { "Defined in " cite { "specs/format-v1.md" } " (what a capture id binds) and " cite { "specs/numerics-v1.md" } " (statistics)." }
        (limits())
    }
}

/// The foot of a refusal.
pub(super) fn of_refused(what: &str) -> Markup {
    html! {
        h2 { "How to check this page" }
        (command(&format!("witnessmark verify {what}")))
        p { code { "witnessmark explain RULE" } " says of any rule what it protects. Defined in " cite { "specs/format-v1.md" } " and " cite { "specs/qualification-v1.md" } "." }
    }
}

fn command(line: &str) -> Markup {
    html! { p.command { code { (line) } } }
}

fn limits() -> Markup {
    html! {
        h2 { "What it does not show" }
        p {
            "That the runs happened, or when: times, and the order in which the log took things, rest on whoever sealed, unless a signed checkpoint was kept elsewhere. "
            "Nor that a producer who lies consistently did not invent the rows. It shows that what was sealed is what was verified, and that these numbers follow from it."
        }
    }
}
