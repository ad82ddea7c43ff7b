//! A log's tiles in its store: derived from the entries, written after the head, compared and never believed.
//!
//! See `specs/format-v1.md`, section 13.1.

use super::Log;
use crate::merkle::tile::{Levels, Tile};
use crate::refusal::{Refusal, Rule, Subject};
use crate::store::{Fault, NEW, Store, StoreError, io_error};

const TILES: &str = "log/tile";
const MAX_TILE: u64 = 8192;

impl Log {
    /// Compares every tile that is there with the one that the entries imply. Tiles may be absent; none may be ahead of the head.
    ///
    /// # Errors
    /// When the store cannot be read.
    ///
    /// # Refusals
    /// log-inconsistent, and what a file of the store can be refused for.
    pub fn check_tiles(&self, store: &Store) -> Result<Vec<Refusal>, StoreError> {
        let levels = Levels::new(&self.leaves);
        let mut refusals = Vec::new();
        let mut ahead = Vec::new();
        for name in store.walk(TILES)?.into_iter().filter(|name| !name.contains(NEW)) {
            let path = format!("{TILES}/{name}");
            let found = match store.read_file(&path, MAX_TILE) {
                Ok(found) => found,
                Err(Fault::Error(error)) => return Err(error),
                Err(Fault::Refused(refusal)) => {
                    refusals.push(refusal);
                    continue;
                }
            };
            // A partial tile whose full one has just been written may vanish.
            let Some(found) = found else { continue };
            let subject = Subject::File(path);
            match Tile::from_path(&name).map(|tile| levels.bytes(&tile)) {
                Some(Some(expected)) if expected == found => {}
                Some(Some(_)) => {
                    let expected = "the hashes that the entries imply";
                    refusals.push(Refusal::new(Rule::LogInconsistent, subject, expected, "others"));
                }
                Some(None) => ahead.push(subject),
                None => {
                    refusals.push(Refusal::new(Rule::LogInconsistent, subject, "a tile of the log", "no tile's path"))
                }
            }
        }
        // Tiles are written after the head: one that is ahead even of the head of now is left from a log that was put back.
        if !ahead.is_empty() && Log::load(store)?.tree.size() == self.tree.size() {
            let expected = format!("no tile of a log of more than {} entries", self.tree.size());
            refusals.extend(
                ahead.into_iter().map(|subject| Refusal::new(Rule::LogInconsistent, subject, expected.clone(), "one")),
            );
        }
        Ok(refusals)
    }

    /// Writes the tiles that are not there yet. A partial tile stays until its full one is there.
    pub(super) fn write_tiles(&self, store: &Store) -> Result<(), StoreError> {
        let levels = Levels::new(&self.leaves);
        for tile in levels.tiles() {
            let path = format!("{TILES}/{}", tile.path());
            if store.has_file(&path)? {
                continue;
            }
            store.replace_file(&path, &levels.bytes(&tile).unwrap_or_default())?;
            let partial = store.root().join(format!("{TILES}/{}.p", tile.full_path()));
            if tile.is_full()
                && let Err(error) = std::fs::remove_dir_all(&partial)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                return Err(io_error("remove", partial)(error));
            }
        }
        Ok(())
    }
}
