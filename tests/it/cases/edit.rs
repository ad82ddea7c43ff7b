//! The edits that a case.toml can state.

use serde::Deserialize;
use serde_json::Value;

/// Any edit.
#[derive(Debug, Deserialize)]
#[serde(try_from = "toml::Table")]
pub(super) enum Edit {
    Capture(CaptureEdit),
    File(FileEdit),
    Forger(ForgerEdit),
    Handed(HandedEdit),
}

impl TryFrom<toml::Table> for Edit {
    type Error = toml::de::Error;

    fn try_from(mut table: toml::Table) -> Result<Self, Self::Error> {
        let op = table.get("op").and_then(toml::Value::as_str).unwrap_or_default();
        let kind = op.split('-').next().unwrap_or_default();
        Ok(match kind {
            "file" | "folder" => {
                let path = table.remove("path").map_or_else(|| Ok(String::new()), toml::Value::try_into)?;
                let place = table.remove("in").map_or_else(|| Ok(Place::Capture), toml::Value::try_into)?;
                Edit::File(FileEdit { act: table.try_into()?, path, place })
            }
            "forge" | "manifest" | "rehang" | "log" | "store" => Edit::Forger(table.try_into()?),
            "command" | "document" => Edit::Handed(table.try_into()?),
            _ => Edit::Capture(table.try_into()?),
        })
    }
}

/// An edit of a capture, before it is written or sealed.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum CaptureEdit {
    /// A value of run.json, by dotted path
    RunSet {
        path: String,
        value: toml::Value,
    },
    RunNull {
        path: String,
    },
    RunRemove {
        path: String,
    },
    /// A field of a row, or of all rows
    RowSet {
        row: Option<usize>,
        field: String,
        value: toml::Value,
    },
    RowRemove {
        row: Option<usize>,
        field: String,
    },
    /// A row of another base, with its scores, in the place of this one
    RowFrom {
        row: usize,
        base: String,
        from: usize,
    },
    RowsDrop {
        rows: Vec<usize>,
    },
    /// A row once more, at the end
    RowsDuplicate {
        row: usize,
    },
    RowsOrder {
        order: Vec<usize>,
    },
    ScoresSwap {
        a: usize,
        b: usize,
    },
    ScoresCopy {
        from: usize,
        to: usize,
    },
    ScoresFrom {
        row: usize,
        base: String,
        from: usize,
    },
    /// Each of these rows gets the scores of the next, the last those of the first
    ScoresShift {
        rows: Vec<usize>,
    },
    /// One bit of one score, in the dtype of the file
    ScoresFlipBit {
        row: usize,
        token: usize,
        bit: u32,
    },
    ScoresSet {
        row: Option<usize>,
        token: usize,
        value: f32,
    },
    /// All scores from this token id on
    ScoresFill {
        row: usize,
        from: usize,
        value: f32,
    },
    /// Every row's scores from the highest to the lowest
    ScoresRankOrder,
    /// Gives a token the highest score of its row
    ScoresTie {
        row: usize,
        token: usize,
    },
    /// The same scores in a file of another dtype
    #[serde(rename = "scores-as-float32")]
    ScoresAsFloat32,
    /// Recomputes witnesses from what is there now
    Rehash {
        witnesses: Vec<String>,
    },
}

/// An edit of a file: of the capture directory, of the store after sealing, or of what was handed on from it. `@manifest`, `@run`, `@rows`,
/// `@scores` and `@attachment` are the objects of the capture that was sealed last.
#[derive(Debug)]
pub(super) struct FileEdit {
    pub act: FileAct,
    pub path: String,
    pub place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Place {
    Capture,
    Store,
    /// Beside the store: proofs, bundles, checkpoints, keys
    Beside,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum FileAct {
    /// Adds a text, times over
    FileAppend {
        text: String,
        times: Option<usize>,
    },
    /// Puts a text before byte `at`
    FileInsert {
        at: usize,
        text: String,
    },
    /// Cuts bytes off the end
    FileCut {
        bytes: usize,
    },
    /// Makes a file as long as this, with a hole
    FileResize {
        bytes: u64,
    },
    FileWrite {
        text: String,
    },
    /// The only place where `from` stands
    FileReplace {
        from: String,
        to: String,
    },
    /// XORs bytes; negative places count from the end
    FileFlip {
        at: i64,
        bytes: usize,
    },
    FileRemove,
    FileRename {
        to: String,
    },
    /// A symbolic link in the place of a file or folder, which is moved away
    FileLink,
    /// The same for the folder that a file lies in
    FolderLink,
    /// A second name elsewhere for each file
    FileHardLink,
    FileFifo,
    FolderMake,
}

/// An edit by somebody who knows the format and hashes everything above it again.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum ForgerEdit {
    /// Seals the capture as it is now without asking a rule, with at most `cut` rows a shard, in key order or in that of the file
    Forge {
        cut: Option<usize>,
        file_order: Option<bool>,
    },
    /// A value of the manifest, by dotted path
    ManifestSet {
        path: String,
        value: toml::Value,
    },
    ManifestNull {
        path: String,
    },
    ManifestRemove {
        path: String,
    },
    /// Names an object by the bytes that it has now: `manifest`, `run`, `rows`, `scores`, or the `log`
    Rehang {
        role: String,
    },
    /// Takes the last entry out of the log: out of its entries, its head, or both
    LogRollBack {
        entries: bool,
        head: bool,
    },
    /// Makes a store with nothing in it
    StoreMake,
}

/// Makes, and edits, what is handed to somebody who has no store: a proof, a bundle, a checkpoint.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum HandedEdit {
    /// Runs `witnessmark` on the store that the capture was sealed into; it must succeed
    Command {
        line: String,
    },
    /// A value of a proof, or of the header of a bundle, by dotted path; written back in canonical form
    DocumentSet {
        file: String,
        path: String,
        value: toml::Value,
    },
    DocumentRemove {
        file: String,
        path: String,
    },
}

/// A TOML value as JSON.
pub(super) fn to_json(value: &toml::Value) -> Value {
    serde_json::to_value(value).unwrap()
}
