//! Which room may use which: the table of ARCHITECTURE.md against every path in src/.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::support;

/// For each room its line, its place in the line, and whether bars stand in the line.
type Rooms = BTreeMap<String, (usize, usize, bool)>;

/// Reads the block that starts with ```` ```layers ````. A line has rooms, three spaces or more, and prose; a bar in it keeps its rooms apart.
fn rooms(architecture: &str) -> Rooms {
    let (_, rest) = architecture.split_once("```layers\n").expect("a block of layers");
    let (block, _) = rest.split_once("```").expect("the end of the block");
    let mut rooms = Rooms::new();
    for (number, line) in block.lines().filter(|line| !line.trim().is_empty()).enumerate() {
        let (names, _prose) = line.split_once("   ").expect(line);
        let barred = names.contains('|');
        for (place, name) in names.split(['|', ' ']).filter(|name| !name.is_empty()).enumerate() {
            let twice = rooms.insert(name.to_owned(), (number, place, barred));
            assert_eq!(twice, None, "{name} stands twice");
        }
    }
    rooms
}

fn allowed(rooms: &Rooms, room: &str, used: &str) -> bool {
    let ((line, place, barred), Some(&(above, left, _))) = (rooms[room], rooms.get(used)) else { return false };
    room == used || above < line || above == line && left < place && !barred
}

/// Source without comments, and with nothing in its texts and characters.
fn code(source: &str) -> String {
    let mut out = String::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let skip = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(hashes) = raw_string(rest) {
            let close = format!("\"{hashes}");
            let start = rest.find('"').unwrap() + 1;
            rest[start..].find(&close).map_or(rest.len(), |end| start + end + close.len())
        } else if c == '"' {
            let mut escaped = true;
            let closes = |c: char| {
                let end = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                end
            };
            rest.find(closes).map_or(rest.len(), |end| end + 1)
        } else if c == '\'' {
            // A character, or else a lifetime.
            let mut chars = rest.char_indices().skip(1);
            match (chars.next(), chars.next()) {
                (Some((_, '\\')), Some(_)) => rest[3..].find('\'').map_or(rest.len(), |end| end + 4),
                (Some(_), Some((at, '\''))) => at + 1,
                _ => 0,
            }
        } else {
            0
        };
        if skip == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            out.push(' ');
            rest = &rest[skip..];
        }
    }
    out
}

/// The hashes of a raw string that starts here.
fn raw_string(text: &str) -> Option<String> {
    let after = text.strip_prefix('r').or_else(|| text.strip_prefix("br"))?;
    let hashes: String = after.chars().take_while(|&c| c == '#').collect();
    after[hashes.len()..].starts_with('"').then_some(hashes)
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// First names after `prefix` wherever it stands, those in braces too.
fn names_after(code: &str, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| is_name(c) || c == ':') {
            continue;
        }
        let after = code[at + prefix.len()..].trim_start();
        let Some(group) = after.strip_prefix('{') else {
            names.push(after.chars().take_while(|&c| is_name(c)).collect());
            continue;
        };
        let (mut depth, mut start) = (0, true);
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                c if start && is_name(c) => {
                    names.push(group[at..].chars().take_while(|&c| is_name(c)).collect());
                    start = false;
                }
                _ => {}
            }
        }
    }
    names.sort();
    names.dedup();
    names
}

/// Rooms that a file of `room` uses; `depth` is 0 for `room.rs` itself, 1 for a file in the folder `room/`.
fn used(rooms: &Rooms, source: &str, depth: usize) -> Vec<String> {
    let code = code(source);
    let mut used = names_after(&code, "crate::");
    // As many `super` as lead to the root. A module inside a file has one more, and then they name the file's own items.
    let to_root = "super::".repeat(depth + 1);
    used.extend(names_after(&code, &to_root).into_iter().filter(|name| rooms.contains_key(name)));
    used
}

fn violations(rooms: &Rooms, files: &[(String, String)]) -> Vec<String> {
    let mut out = Vec::new();
    for (path, source) in files {
        let parts: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
        let room = parts[0];
        if !rooms.contains_key(room) {
            out.push(format!("{path}: not in the table"));
            continue;
        }
        for used in used(rooms, source, parts.len() - 1) {
            if !allowed(rooms, room, &used) {
                out.push(format!("{path} uses {used}"));
            }
        }
    }
    out
}

#[test]
fn rooms_use_only_what_stands_above() {
    let rooms = rooms(&fs::read_to_string(support::root().join("ARCHITECTURE.md")).unwrap());
    let src = support::root().join("src");
    let paths = support::files(&src).into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "rs"));
    let mut files: Vec<(String, String)> = paths
        .map(|path| (path.strip_prefix(&src).unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap()))
        .collect();
    // The crate's root is no room, and the binary sees the library from outside.
    let root = files.extract_if(.., |(path, _)| path == "lib.rs" || path == "main.rs").collect::<Vec<_>>();
    assert_eq!(root.len(), 2);
    assert_eq!(violations(&rooms, &files), [] as [String; 0]);

    let there: BTreeSet<&str> = files.iter().map(|(path, _)| path.split(['/', '.']).next().unwrap()).collect();
    let listed: BTreeSet<&str> = rooms.keys().map(String::as_str).collect();
    assert_eq!(there, listed, "rooms of src/ and of the table");
    let lib = root.iter().find(|(path, _)| path == "lib.rs").unwrap();
    let modules: BTreeSet<&str> =
        lib.1.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    assert_eq!(modules, listed, "modules of lib.rs and rooms of the table");
    assert!(files.iter().map(|(_, source)| names_after(&code(source), "crate::").len()).sum::<usize>() > 100);
}

const TABLE: &str = "
# A house

```layers
cellar                 stones
floor  stairs          wood
kitchen | bath         water
roof                   tiles, and a floor or kitchen in its prose
```
";

fn found(path: &str, source: &str) -> Vec<String> {
    violations(&rooms(TABLE), &[(path.to_owned(), source.to_owned())])
}

#[test]
fn the_table_is_read() {
    let rooms = rooms(TABLE);
    assert_eq!(rooms.keys().collect::<Vec<_>>(), ["bath", "cellar", "floor", "kitchen", "roof", "stairs"]);
    for (room, used, good) in [
        ("roof", "cellar", true),
        ("roof", "bath", true),
        ("cellar", "roof", false),
        ("stairs", "floor", true),
        ("floor", "stairs", false),
        ("bath", "kitchen", false),
        ("kitchen", "bath", false),
        ("bath", "bath", true),
        ("roof", "attic", false),
    ] {
        assert_eq!(allowed(&rooms, room, used), good, "{room} uses {used}");
    }
}

#[test]
fn a_use_that_violates_is_found() {
    for (path, source, expected) in [
        ("floor.rs", "use crate::roof::Tile;", "floor.rs uses roof"),
        ("floor.rs", "fn g(x: crate::roof::Tile) {}", "floor.rs uses roof"),
        ("floor/board.rs", "use crate::{cellar, roof::{self, Tile}};", "floor/board.rs uses roof"),
        ("floor/board.rs", "use crate::{cellar::{a, b}, roof};", "floor/board.rs uses roof"),
        ("floor.rs", "let x = \"\\\"//\"; crate::roof::f();", "floor.rs uses roof"),
        ("floor.rs", "let x = ('\"', '\\''); crate::roof::f();", "floor.rs uses roof"),
        ("floor.rs", "fn f<'a>(x: &'a u8) { r#\"\"\"#; crate::roof::f(); }", "floor.rs uses roof"),
        ("floor.rs", "use super::roof;", "floor.rs uses roof"),
        ("floor/board.rs", "use super::super::roof;", "floor/board.rs uses roof"),
        ("bath.rs", "use crate::kitchen;", "bath.rs uses kitchen"),
        ("bath.rs", "use crate::garage;", "bath.rs uses garage"),
        ("garage.rs", "", "garage.rs: not in the table"),
    ] {
        assert_eq!(found(path, source), [expected], "{source}");
    }
}

#[test]
fn a_use_that_does_not_violate_is_left_alone() {
    for (path, source) in [
        ("roof.rs", "use crate::{cellar, bath::Tub}; use crate::roof::x;"),
        ("floor.rs", "// crate::roof\n/* crate::roof */ /// [`crate::roof`]\n const X: &str = \"crate::roof\";"),
        ("floor.rs", "const X: &str = r#\"crate::roof \" crate::roof\"#;"),
        ("floor/board.rs", "use super::roof; mod tests { use super::*; }"),
        ("floor.rs", "use other_crate::roof; use std::crate_::roof;"),
    ] {
        assert_eq!(found(path, source), [] as [String; 0], "{source}");
    }
}

#[test]
#[should_panic(expected = "stands twice")]
fn a_room_stands_once() {
    rooms("```layers\nfloor   one\nfloor   two\n```");
}
