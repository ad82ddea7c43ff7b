//! Text for people: what anybody wrote into evidence, with nothing in it that a terminal or a page would obey.

/// Whether a character does something instead of being seen: controls, and those that turn the text around them.
#[must_use]
pub fn is_obeyed(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}');
    turns || c.is_control()
}

/// A text from evidence as one line that says nothing to a terminal: control characters, line ends and marks that turn the direction of
/// writing are shown as escapes, so that no name can pass for a line of the report.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_obeyed(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}
