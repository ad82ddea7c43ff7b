//! Mutations that know what JSON and TOML are, beside libFuzzer's own that know bytes.
//!
//! A byte changed at random mostly ends a text for its parser; a value that becomes another value, a key that is gone or stands twice, gets to what is
//! behind. A text that ends or has a space between any two of its tokens gets to what is before. Every text in an input (between line feeds, 0xff bytes, or behind a bundle's length) can be the one that is changed.

use fastrand::Rng;
use libfuzzer_sys::fuzzer_mutate;
use witnessmark::canon::json::Json;

/// Where the texts of an input are.
#[derive(Clone, Copy)]
pub enum Frame {
    /// The whole input, or each of its lines
    Lines,
    /// As [`Frame::Lines`], and the whole input may be TOML
    Spec,
    /// The header of a bundle, whose length stands before it
    Bundle,
}

/// Changes `data[..size]` and gives back how long it is now, at most `max`.
pub fn mutate(frame: Frame, data: &mut [u8], size: usize, max: usize, seed: u32) -> usize {
    let mut rng = Rng::with_seed(u64::from(seed));
    if rng.bool()
        && let Some(changed) = structured(frame, &data[..size], &mut rng)
        && changed.len() <= max.min(data.len())
    {
        data[..changed.len()].copy_from_slice(&changed);
        return changed.len();
    }
    fuzzer_mutate(data, size, max)
}

fn structured(frame: Frame, input: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    match frame {
        Frame::Spec => {
            let changed = if rng.u8(..) < 170 { toml(input, rng) } else { tokens(input, rng) };
            changed.or_else(|| lines(input, rng))
        }
        Frame::Lines => lines(input, rng),
        Frame::Bundle => {
            let start = input.iter().position(|&byte| byte == b'\n')? + 1;
            let (len, rest) = input.get(start..)?.split_first_chunk::<8>()?;
            let header = rest.get(..usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
            let changed = if rng.u8(..) < 170 { json(header, rng)? } else { tokens(header, rng)? };
            let len = u64::try_from(changed.len()).ok()?.to_le_bytes();
            Some([&input[..start], &len, &changed, &rest[header.len()..]].concat())
        }
    }
}

fn lines(input: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let ends = |&byte: &u8| byte == b'\n' || byte == 0xff;
    let lines: Vec<&[u8]> = input.split(ends).filter(|line| line.len() > 1).collect();
    let line = *rng.choice(&lines)?;
    let changed = if rng.u8(..) < 170 { json(line, rng)? } else { tokens(line, rng)? };
    let start = line.as_ptr() as usize - input.as_ptr() as usize;
    Some([&input[..start], &changed, &input[start + line.len()..]].concat())
}

fn json(text: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let mut root = Json::parse(text).ok()?;
    for _ in 0..rng.usize(1..4) {
        change(&mut root, rng);
    }
    // Mostly canonical: what is not is refused before anybody looks at what it says.
    let canonical = if rng.u8(..) < 240 { root.to_canonical().ok() } else { None };
    Some(canonical.unwrap_or_else(|| root.to_text()).into_bytes())
}

/// Puts something between two tokens of a text, takes away what is between two places, or ends it there.
fn tokens(text: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let edges: Vec<usize> = (0..text.len()).filter(|&at| b"{}[]:,=\"\n ".contains(&text[at])).collect();
    let at = *rng.choice(&edges)? + usize::from(rng.bool());
    let (before, after) = text.split_at(at);
    match rng.u8(..10) {
        0 => Some(before.to_vec()),
        1 => {
            let to = *rng.choice(&edges)?;
            (to > at).then(|| [before, &text[to..]].concat())
        }
        // Escapes, whole, halved and wrong, at any place: most places are in strings.
        2 | 3 => {
            let (before, after) = text.split_at(rng.usize(..=text.len()));
            let any = [
                r"\n",
                r"\/",
                r"\x",
                r"\u00E9",
                r"\u0000",
                r"\u12",
                r"\uzzzz",
                r"\ud83d",
                r"\ude00",
                "\u{1f600}",
                "\u{1}",
                "\\",
            ];
            let escapes: String = (0..rng.usize(1..6)).map(|_| any[rng.usize(..any.len())]).collect();
            Some([before, escapes.as_bytes(), after].concat())
        }
        4 | 5 => Some([before, rng.choice([" ", "\n", "\t", "\r", "  "])?.as_bytes(), after].concat()),
        _ => {
            let any = [
                "{", "}", "[", "]", ":", ",", "\"", "null", "true", "-1", "1.5", "1e99", "[]", "{}", "\"x\"", "\\u",
                "=", "x",
            ];
            Some([before, rng.choice(any)?.as_bytes(), after].concat())
        }
    }
}

/// Changes a value somewhere below `root`.
fn change(root: &mut Json, rng: &mut Rng) {
    let other = pick(root, rng).clone();
    let target = pick(root, rng);
    match target {
        Json::Object(members) if !members.is_empty() && rng.u8(..) < 200 => {
            let at = rng.usize(..members.len());
            match rng.u8(..6) {
                0 => drop(members.remove(at)),
                1 => members.push(members[at].clone()),
                2 => members[at].0 = text(&members[at].0, rng),
                3 => members.push((text("", rng), other)),
                4 => members[at].1 = other,
                _ => members[at].1 = constant(rng),
            }
        }
        Json::Array(items) if !items.is_empty() && rng.u8(..) < 200 => {
            let at = rng.usize(..items.len());
            match rng.u8(..5) {
                0 => drop(items.remove(at)),
                1 => items.insert(at, items[at].clone()),
                2 => items.swap(at, 0),
                3 => items.push(other),
                _ => items.truncate(at),
            }
        }
        Json::String(old) if rng.u8(..) < 170 => *old = text(old, rng),
        Json::Number(old) if rng.u8(..) < 170 => *old = number(old, rng),
        target if rng.bool() => *target = other,
        target => *target = constant(rng),
    }
}

/// A value of the tree, each about as likely as any other.
fn pick<'j>(root: &'j mut Json, rng: &mut Rng) -> &'j mut Json {
    let mut left = rng.usize(..count(root));
    nth(root, &mut left).expect("there are so many")
}

fn count(json: &Json) -> usize {
    1 + match json {
        Json::Array(items) => items.iter().map(count).sum(),
        Json::Object(members) => members.iter().map(|(_, value)| count(value)).sum(),
        _ => 0,
    }
}

fn nth<'j>(json: &'j mut Json, left: &mut usize) -> Option<&'j mut Json> {
    if *left == 0 {
        return Some(json);
    }
    *left -= 1;
    match json {
        Json::Array(items) => items.iter_mut().find_map(|item| nth(item, left)),
        Json::Object(members) => members.iter_mut().find_map(|(_, value)| nth(value, left)),
        _ => None,
    }
}

fn text(old: &str, rng: &mut Rng) -> String {
    match rng.u8(..8) {
        0 => String::new(),
        1 => old.to_uppercase(),
        2 => format!("{old}{old}"),
        3 => number("1", rng),
        4 => "0123456789abcdef".repeat(4),
        5 => {
            (*rng.choice(&["..", "a/b", "\0", "\u{1f600}", "é", "+", " ", "x\ny", "sha256"]).expect("some")).to_owned()
        }
        _ => {
            let mut bytes = old.as_bytes().to_vec();
            let len = bytes.len();
            bytes.resize(len + 8, 0);
            let size = fuzzer_mutate(&mut bytes, len, len + 8);
            bytes.truncate(size);
            String::from_utf8_lossy(&bytes).into_owned()
        }
    }
}

fn number(old: &str, rng: &mut Rng) -> String {
    let near = old.parse::<i128>().unwrap_or_default();
    match rng.u8(..6) {
        0 => (near + 1).to_string(),
        1 => (near - 1).to_string(),
        2 => format!("{near}.5"),
        3 => rng.u16(..).to_string(),
        _ => {
            let edge = 1_i128 << rng.choice([0_u32, 7, 8, 15, 16, 24, 31, 32, 53, 63, 64]).expect("some");
            (edge + i128::from(rng.i8(-1..=1))).to_string()
        }
    }
}

fn constant(rng: &mut Rng) -> Json {
    match rng.u8(..7) {
        0 => Json::Null,
        1 => Json::Bool(rng.bool()),
        2 => Json::Array(Vec::new()),
        3 => Json::Object(Vec::new()),
        4 => Json::String(text("a", rng)),
        _ => Json::Number(number("0", rng)),
    }
}

/// The same for TOML, by way of JSON: dates become strings.
fn toml(input: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let table: toml::Table = std::str::from_utf8(input).ok()?.parse().ok()?;
    let changed = json(&serde_json::to_vec(&table).ok()?, rng)?;
    let value: serde_json::Value = serde_json::from_slice(&changed).ok()?;
    Some(toml::to_string(&value).ok()?.into_bytes())
}
