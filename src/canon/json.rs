//! JSON, strictly read and canonically written.
//!
//! Reads RFC 8259 text as adapters write it: any escapes, spacing and floats, but unique keys (also when the case of
//! ASCII letters is ignored: some readers match keys that way), no lone surrogates, no byte order mark. Numbers stay
//! as they were written, so a seed of 2^64 − 1 is never rounded. Writes RFC 8785 over a subset without reals.
//! See `specs/format-v1.md`, section 2.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The deepest nesting that is read.
pub const MAX_DEPTH: usize = 64;

/// The most values of one text, where each key of an object counts as one. A value of two bytes takes some fifty in memory, so the
/// length of a text alone does not bound what it costs to read.
pub const MAX_VALUES: usize = 8 << 20;

/// The largest magnitude of an integer in a canonical document: 2^53 − 1.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// A JSON value. Numbers are kept as written; objects keep the order in which they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as it was written
    Number(String),
    /// A string, unescaped
    String(String),
    /// An array
    Array(Vec<Json>),
    /// An object, keys unique
    Object(Vec<(String, Json)>),
}

/// Why a text is not acceptable JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub struct JsonError {
    /// What is wrong
    pub what: String,
    /// Where, in bytes from the start
    pub at: usize,
    /// Whether it is only too much: more than [`MAX_VALUES`]
    pub over_limit: bool,
}

impl JsonError {
    /// A text that is wrong.
    pub fn new(what: impl Into<String>, at: usize) -> Self {
        Self { what: what.into(), at, over_limit: false }
    }
}

impl Json {
    /// Reads a whole text.
    ///
    /// # Errors
    /// What is wrong and where. Nothing is accepted in part.
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        let text = std::str::from_utf8(bytes).map_err(|error| JsonError::new("not UTF-8", error.valid_up_to()))?;
        let mut parser = Parser { text, at: 0, values: 0 };
        let value = parser.value(0)?;
        parser.space();
        if parser.at == text.len() { Ok(value) } else { Err(parser.error("something after the value")) }
    }

    /// The value under `key` of an object; null counts as absent.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Json> {
        let Json::Object(members) = self else { return None };
        members.iter().find(|(name, _)| name == key).map(|(_, value)| value).filter(|value| **value != Json::Null)
    }

    /// The name of the value's type, with its article, for messages.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Number(_) => "a number",
            Json::String(_) => "a string",
            Json::Array(_) => "an array",
            Json::Object(_) => "an object",
        }
    }

    /// The value as compact JSON, for people: numbers and the order of keys as they were written.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, false);
        out
    }

    /// The canonical bytes (format section 2.2).
    ///
    /// # Errors
    /// When the value is outside the subset: a real, or an integer beyond ±(2^53 − 1).
    pub fn to_canonical(&self) -> Result<String, JsonError> {
        self.check_subset()?;
        let mut out = String::new();
        self.write(&mut out, true);
        Ok(out)
    }

    fn check_subset(&self) -> Result<(), JsonError> {
        match self {
            Json::Number(text) if !is_canonical_integer(text) => {
                Err(JsonError::new(format!("{text} is not an integer within ±(2^53 − 1)"), 0))
            }
            Json::Array(items) => items.iter().try_for_each(Json::check_subset),
            Json::Object(members) => members.iter().try_for_each(|(_, value)| value.check_subset()),
            _ => Ok(()),
        }
    }

    fn write(&self, out: &mut String, sorted: bool) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(true) => out.push_str("true"),
            Json::Bool(false) => out.push_str("false"),
            Json::Number(text) => out.push_str(text),
            Json::String(text) => write_string(text, out),
            Json::Array(items) => {
                out.push('[');
                for (n, item) in items.iter().enumerate() {
                    if n > 0 {
                        out.push(',');
                    }
                    item.write(out, sorted);
                }
                out.push(']');
            }
            Json::Object(members) => {
                let mut order: Vec<&(String, Json)> = members.iter().collect();
                if sorted {
                    order.sort_by(|a, b| utf16_order(&a.0, &b.0));
                }
                out.push('{');
                for (n, (key, value)) in order.into_iter().enumerate() {
                    if n > 0 {
                        out.push(',');
                    }
                    write_string(key, out);
                    out.push(':');
                    value.write(out, sorted);
                }
                out.push('}');
            }
        }
    }
}

/// RFC 8785 section 3.2.3: keys are sorted by UTF-16 code units.
fn utf16_order(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

/// RFC 8785 section 3.2.2.2.
fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some((plain, special, after)) = split_at_special(rest) {
        out.push_str(plain);
        match special {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            8 => out.push_str("\\b"),
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            12 => out.push_str("\\f"),
            b'\r' => out.push_str("\\r"),
            // Writing to a String cannot fail.
            c => drop(write!(out, "\\u{c:04x}")),
        }
        rest = after;
    }
    out.push_str(rest);
    out.push('"');
}

/// Splits at the first byte that a string has only as an escape, or that ends it.
fn split_at_special(text: &str) -> Option<(&str, u8, &str)> {
    let at = text.bytes().position(is_special)?;
    let (plain, rest) = text.split_at_checked(at)?;
    Some((plain, *rest.as_bytes().first()?, rest.get(1..)?))
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..=0x1f)
}

/// Whether a number is written as a canonical document writes it.
fn is_canonical_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let negative_zero = digits.len() != text.len() && digits == "0";
    !negative_zero
        && digits.bytes().all(|c| c.is_ascii_digit())
        && digits.parse::<u64>().is_ok_and(|value| value <= MAX_SAFE_INTEGER)
}

/// Whether a key stands among the members already. `folded` is filled, with their keys, only once they are many.
fn is_twice(key: &str, members: &[(String, Json)], folded: &mut BTreeSet<String>) -> bool {
    const FEW: usize = 16;
    if members.len() < FEW {
        return members.iter().any(|(other, _)| other.eq_ignore_ascii_case(key));
    }
    if folded.is_empty() {
        folded.extend(members.iter().map(|(other, _)| other.to_ascii_lowercase()));
    }
    !folded.insert(key.to_ascii_lowercase())
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    values: usize,
}

impl Parser<'_> {
    fn error(&self, what: impl Into<String>) -> JsonError {
        JsonError::new(what, self.at)
    }

    /// Counts a value, or a key, that is about to be read.
    fn count(&mut self) -> Result<(), JsonError> {
        self.values = self.values.saturating_add(1);
        if self.values <= MAX_VALUES {
            return Ok(());
        }
        let over_limit = true;
        Err(JsonError { over_limit, ..self.error(format!("more than {MAX_VALUES} values and keys")) })
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn bump(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at = self.at.saturating_add(1);
        Some(byte)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.bump();
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), JsonError> {
        if self.eat(byte) { Ok(()) } else { Err(self.error(format!("expected '{}'", char::from(byte)))) }
    }

    fn value(&mut self, depth: usize) -> Result<Json, JsonError> {
        let below = depth.saturating_add(1);
        self.space();
        self.count()?;
        match self.peek() {
            None => Err(self.error("the text ends where a value should stand")),
            Some(b'{' | b'[') if below > MAX_DEPTH => Err(self.error(format!("nested deeper than {MAX_DEPTH}"))),
            Some(b'"') => self.string().map(Json::String),
            Some(b'{') => self.object(below),
            Some(b'[') => self.array(below),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => {
                for (word, value) in [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))] {
                    if self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
                        self.at = self.at.saturating_add(word.len());
                        return Ok(value);
                    }
                }
                Err(self.error("expected a value"))
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.expect(b'[')?;
        let mut items = Vec::new();
        self.space();
        if self.eat(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(depth)?);
            self.space();
            if self.eat(b']') {
                // Room for more, in millions of small arrays, would be most of what they take.
                items.shrink_to_fit();
                return Ok(Json::Array(items));
            }
            self.expect(b',')?;
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.expect(b'{')?;
        let mut members = Vec::new();
        let mut folded = BTreeSet::new();
        self.space();
        if self.eat(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.space();
            self.count()?;
            let start = self.at;
            let key = self.string()?;
            if is_twice(&key, &members, &mut folded) {
                let what = format!("the key {key:?} stands twice (letter case aside) in one object");
                return Err(JsonError::new(what, start));
            }
            self.space();
            self.expect(b':')?;
            members.push((key, self.value(depth)?));
            self.space();
            if self.eat(b'}') {
                members.shrink_to_fit();
                return Ok(Json::Object(members));
            }
            self.expect(b',')?;
        }
    }

    fn number(&mut self) -> Result<Json, JsonError> {
        let start = self.at;
        self.eat(b'-');
        if !self.eat(b'0') {
            self.digits()?;
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            if !self.eat(b'+') {
                self.eat(b'-');
            }
            self.digits()?;
        }
        Ok(Json::Number(self.text.get(start..self.at).unwrap_or_default().to_owned()))
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.bump();
        }
        if self.at == start { Err(self.error("expected a digit")) } else { Ok(()) }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.expect(b'"')?;
        let mut out = String::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let plain = split_at_special(rest).map_or(rest, |(plain, ..)| plain);
            out.push_str(plain);
            self.at = self.at.saturating_add(plain.len());
            match self.bump() {
                Some(b'"') => return Ok(out),
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => return Err(self.error("a control character in a string")),
                None => return Err(self.error("the text ends inside a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        Ok(match self.bump() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.error("an unknown escape")),
        })
    }

    fn unicode_escape(&mut self) -> Result<char, JsonError> {
        let first = self.hex4()?;
        let mut units = vec![first];
        if (0xd800..0xdc00).contains(&first) && self.eat(b'\\') && self.eat(b'u') {
            units.push(self.hex4()?);
        }
        char::decode_utf16(units)
            .collect::<Result<String, _>>()
            .ok()
            .and_then(|text| text.chars().next())
            .ok_or_else(|| self.error("a lone surrogate"))
    }

    fn hex4(&mut self) -> Result<u16, JsonError> {
        let end = self.at.saturating_add(4);
        let digits = self.text.get(self.at..end).filter(|text| text.bytes().all(|c| c.is_ascii_hexdigit()));
        let unit = digits.and_then(|text| u16::from_str_radix(text, 16).ok());
        self.at = end.min(self.text.len());
        unit.ok_or_else(|| self.error("expected four hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_kept_as_written() {
        for text in ["18446744073709551615", "-0.0", "1e400", "0.1", "-0"] {
            assert_eq!(Json::parse(text.as_bytes()).unwrap(), Json::Number(text.to_owned()));
        }
        for text in ["01", "+1", ".5", "1.", "NaN", "Infinity", "1e", "--1", "0x1"] {
            assert!(Json::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn keys_are_unique_after_unescaping_and_case_folding() {
        for text in [r#"{"a":1,"a":2}"#, r#"{"result":1,"Result":2}"#, r#"{"result":1,"r\u0065sult":2}"#] {
            assert!(Json::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Json::parse(br#"{"a":{"a":1},"b":{"a":1}}"#).is_ok());
    }

    #[test]
    fn depth_is_bounded() {
        let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(Json::parse(deep(MAX_DEPTH).as_bytes()).is_ok());
        assert!(Json::parse(deep(MAX_DEPTH + 1).as_bytes()).is_err());
        assert!(Json::parse(deep(100_000).as_bytes()).is_err());
    }

    #[test]
    fn values_and_keys_are_counted() {
        // The array itself is one.
        let empty = |n: usize| format!("[[]{}]", ",[]".repeat(n - 2));
        assert!(Json::parse(empty(MAX_VALUES).as_bytes()).is_ok());
        assert!(Json::parse(empty(MAX_VALUES + 1).as_bytes()).is_err_and(|error| error.over_limit));
        // Each of these is an object, a key and a value.
        let objects = |n: usize| format!("[{{\"a\":[]}}{}]", ",{\"a\":[]}".repeat(n - 1));
        assert!(Json::parse(objects(MAX_VALUES / 3 + 1).as_bytes()).is_err_and(|error| error.over_limit));
        assert!(Json::parse(b"[1,").is_err_and(|error| !error.over_limit));
    }

    #[test]
    fn what_is_no_canonical_number_is_found_at_any_depth() {
        for text in ["1.5", "[1.5]", r#"{"a":[{"b":1.5}]}"#, "[9007199254740992]", "[-0]"] {
            assert!(Json::parse(text.as_bytes()).unwrap().to_canonical().is_err(), "{text}");
        }
        let text = r#"{"a":[-9007199254740991,0]}"#;
        assert_eq!(Json::parse(text.as_bytes()).unwrap().to_canonical().unwrap(), text);
    }

    #[test]
    fn members_are_found_and_null_is_none() {
        let text = r#"{"b":[1.50,"\n"],"a":null,"c":true}"#;
        let json = Json::parse(text.as_bytes()).unwrap();
        assert_eq!(json.to_text(), text);
        assert_eq!(json.get("c"), Some(&Json::Bool(true)));
        assert_eq!(["a", "d"].map(|key| json.get(key)), [None, None]);
        let names = ["null", "false", "1", "\"\"", "[]", "{}"];
        let names = names.map(|text| Json::parse(text.as_bytes()).unwrap().type_name());
        assert_eq!(names, ["null", "a boolean", "a number", "a string", "an array", "an object"]);
    }

    #[test]
    fn every_character_comes_back_wherever_it_stands() {
        for c in (0..0x250).filter_map(char::from_u32).chain("€😀".chars()) {
            for text in [format!("{c}"), format!("a{c}"), format!("{c}a"), format!("é{c}{c}€\"")] {
                let json = Json::String(text.clone());
                let written = json.to_canonical().unwrap();
                assert_eq!(written, serde_json::to_string(&text).unwrap());
                assert_eq!(Json::parse(written.as_bytes()).unwrap(), json);
            }
        }
        let text = Json::String("\u{8}\t\n\u{c}\r\u{0}\u{1f}\"\\/\u{7f}".to_owned()).to_text();
        assert_eq!(text, "\"\\b\\t\\n\\f\\r\\u0000\\u001f\\\"\\\\/\u{7f}\"");
        for text in ["\"a", "\"a\\", "\"a\nb\"", "\"a\u{1f}\""] {
            assert!(Json::parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn surrogates() {
        assert_eq!(Json::parse(br#""\ud83d\ude00""#).unwrap(), Json::String("😀".to_owned()));
        for text in [r#""\ud83d""#, r#""\ude00""#, r#""\ud83dx""#, r#""\ud83d\n""#, r#""\ud83d\ud83d""#] {
            assert!(Json::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
