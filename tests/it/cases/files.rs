//! Edits of files: what damage, and what tampering without hashing again, do to a folder.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::edit::FileAct;
use crate::support::files;

/// Makes one edit to the file or folder at `path`. Times are put back: nothing shows but the bytes. What is moved away goes to `aside`.
pub(super) fn edit(act: &FileAct, path: &Path, aside: &Path) {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    match act {
        FileAct::FileAppend { text, times } => change(path, |bytes| {
            bytes.extend(text.repeat(times.unwrap_or(1)).bytes());
        }),
        FileAct::FileInsert { at, text } => change(path, |bytes| {
            bytes.splice(at..at, text.bytes());
        }),
        FileAct::FileCut { bytes: cut } => change(path, |bytes| bytes.truncate(bytes.len() - cut)),
        FileAct::FileResize { bytes } => {
            fs::OpenOptions::new().write(true).open(path).unwrap().set_len(*bytes).unwrap();
        }
        FileAct::FileWrite { text } => {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        FileAct::FileReplace { from, to } => change(path, |bytes| {
            let text = String::from_utf8(bytes.clone()).unwrap();
            assert_eq!(text.matches(from.as_str()).count(), 1, "{from:?} in {}", path.display());
            *bytes = text.replace(from.as_str(), to).into_bytes();
        }),
        FileAct::FileFlip { at, bytes: count } => change(path, |bytes| {
            let from_end = bytes.len().checked_add_signed(isize::try_from(*at).unwrap());
            let start = usize::try_from(*at).ok().or(from_end).unwrap();
            bytes[start..start + count].iter_mut().for_each(|byte| *byte ^= 0xff);
        }),
        FileAct::FileRemove => fs::remove_file(path).unwrap(),
        FileAct::FileRename { to } => fs::rename(path, path.with_file_name(to)).unwrap(),
        FileAct::FileLink => link(path, aside),
        FileAct::FolderLink => link(path.parent().unwrap(), aside),
        FileAct::FileHardLink => {
            for (n, file) in files(path).iter().enumerate() {
                fs::create_dir_all(aside).unwrap();
                fs::hard_link(file, aside.join(n.to_string())).unwrap();
            }
        }
        FileAct::FileFifo => {
            if path.exists() {
                fs::remove_file(path).unwrap();
            }
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        }
        FileAct::FolderMake => fs::create_dir_all(path).unwrap(),
    }
    let regular = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
    if let Ok(modified) = modified
        && regular
    {
        File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
    }
}

fn change(path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    edit(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// Moves what is at `path` away and leaves a link to it.
fn link(path: &Path, aside: &Path) {
    fs::create_dir_all(aside).unwrap();
    let moved = aside.join(path.file_name().unwrap());
    fs::rename(path, &moved).unwrap();
    symlink(&moved, path).unwrap();
}
