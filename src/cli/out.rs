//! Where text goes: results to one side, prose to the other; a reader that went away is noticed, not panicked over.

use std::io::{self, BufWriter, IsTerminal, Write};

use serde::Serialize;

use super::CliError;
use crate::shown::printable;

/// Both output streams.
pub(super) struct Out {
    results: Box<dyn Write + Send>,
    /// None: prose goes where results go
    prose: Option<Box<dyn Write + Send>>,
    paint: bool,
}

const BOLD_RED: &str = "\x1b[1;31m";
const BOLD_GREEN: &str = "\x1b[1;32m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// Words at the start of a line that carry the answer.
const PAINTED: [(&str, &str); 14] = [
    ("REFUSED BY ANOTHER RULE", BOLD_RED),
    ("REFUSED", BOLD_RED),
    ("NOT VERIFIED", BOLD_RED),
    ("DIFFERENT", BOLD_RED),
    ("SURVIVED", BOLD_RED),
    ("DRILL FAILED", BOLD_RED),
    ("DRILL PASSED", BOLD_GREEN),
    ("VERIFIED", BOLD_GREEN),
    ("QUICK PASS", BOLD_GREEN),
    ("SAMPLE PASS", BOLD_GREEN),
    ("PROVED", BOLD_GREEN),
    ("IDENTICAL", BOLD_GREEN),
    ("── ", BOLD),
    ("$ ", BOLD),
];

/// Lines of anybody's, with nothing in them that a terminal would obey.
pub(super) fn quoted(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| match line.strip_suffix('\n') {
        Some(line) => printable(line) + "\n",
        None => printable(line),
    });
    lines.collect()
}

impl Out {
    /// stdout and stderr.
    pub(super) fn terminal() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the cli room reads the environment")]
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            paint: io::stdout().is_terminal() && !plain,
            results: Box::new(BufWriter::new(io::stdout())),
            prose: Some(Box::new(io::stderr())),
        }
    }

    /// Prose joins the results from here on: a story is read in order.
    pub(super) fn join(&mut self) {
        self.prose = None;
    }

    /// A result.
    pub(super) fn print(&mut self, text: &str) -> Result<(), CliError> {
        let painted = if self.paint { paint(text) } else { text.to_owned() };
        self.results.write_all(painted.as_bytes()).map_err(broken)
    }

    /// A result to the byte: no colour, no line feed of ours.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        self.results.write_all(bytes).map_err(broken)
    }

    /// A result as one line of JSON.
    pub(super) fn json<T: Serialize>(&mut self, value: &T) -> Result<(), CliError> {
        let line = serde_json::to_string(value).map_err(|error| CliError::Failed(error.to_string()))?;
        self.print(&format!("{line}\n"))
    }

    /// Prose. What it quotes may be anything: it says nothing to a terminal but its own line ends.
    pub(super) fn say(&mut self, text: &str) -> Result<(), CliError> {
        let text = quoted(text);
        let text = text.as_str();
        match &mut self.prose {
            Some(prose) => prose.write_all(text.as_bytes()).map_err(broken),
            None => self.print(text),
        }
    }

    /// Everything out.
    pub(super) fn flush(&mut self) -> Result<(), CliError> {
        self.results.flush().map_err(broken)
    }
}

fn broken(error: io::Error) -> CliError {
    match error.kind() {
        io::ErrorKind::BrokenPipe => CliError::BrokenPipe,
        _ => CliError::Failed(format!("cannot write output: {error}")),
    }
}

fn paint(text: &str) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        match PAINTED.iter().find(|(word, _)| line.starts_with(word)) {
            Some((word, colour)) => {
                out.push_str(colour);
                out.push_str(word);
                out.push_str(PLAIN);
                out.push_str(line.strip_prefix(word).unwrap_or_default());
            }
            None => out.push_str(line),
        }
    }
    out
}
