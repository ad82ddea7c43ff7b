//! Fetch: rows of scores of a capture that was verified, one after the other.
//!
//! A [`Cursor`] goes forward through a capture's scores shards, opens only those that hold a wanted row, decompresses only wanted pages, and
//! hands out nothing whose digest is not the one that the row record binds. See `specs/format-v1.md`, section 8.2.

use std::fs::File;
use std::io;

use crate::canon::scores::Canonical;
use crate::manifest::ScoreShard;
use crate::refusal::{Refusal, Rule, Subject};
use crate::row::Row;
use crate::shard::page::Decompressor;
use crate::shard::scores::{RawPage, ScoresReader, decode_page};
use crate::store::{Fault, Store, io_error};
use crate::verify::Verified;

/// A place in the scores of a capture.
pub struct Cursor<'a> {
    store: &'a Store,
    rows: &'a [Row],
    shards: std::iter::Enumerate<std::slice::Iter<'a, ScoreShard>>,
    vocab: u32,
    open: Option<Open>,
    /// Rows of the shards that were passed
    base: usize,
    page: RawPage,
    decompressor: Decompressor,
    room: Vec<u8>,
    scores: Canonical,
}

struct Open {
    shard: ScoreShard,
    number: usize,
    /// None while no row of the shard was wanted
    reader: Option<ScoresReader<File>>,
    taken: usize,
}

impl<'a> Cursor<'a> {
    /// Before the first row.
    ///
    /// # Errors
    /// When there is no memory for a decompressor.
    pub fn new(store: &'a Store, capture: &'a Verified) -> io::Result<Self> {
        let manifest = capture.manifest();
        Ok(Self {
            store,
            rows: capture.rows(),
            shards: manifest.score_shards.iter().enumerate(),
            vocab: manifest.capture.vocab_size.and_then(|vocab| u32::try_from(vocab).ok()).unwrap_or(0),
            open: None,
            base: 0,
            page: RawPage::default(),
            decompressor: Decompressor::new()?,
            room: Vec::new(),
            scores: Canonical::default(),
        })
    }

    /// The scores of the row at `index` in key order. Indices must rise from call to call.
    ///
    /// # Errors
    /// When the store cannot be read, or holds other scores than the row record binds.
    pub fn row(&mut self, index: usize) -> Result<&Canonical, Fault> {
        let Some(row) = self.rows.get(index) else { return Err(self.lost(index, "no such row")) };
        loop {
            let Some(open) = &self.open else {
                let Some((number, shard)) = self.shards.next() else {
                    return Err(self.lost(index, "no shard with it"));
                };
                self.open = Some(Open { shard: *shard, number, reader: None, taken: 0 });
                continue;
            };
            let rows = usize::try_from(open.shard.rows).unwrap_or(usize::MAX);
            if index < self.base.saturating_add(rows) {
                break;
            }
            self.base = self.base.saturating_add(rows);
            self.open = None;
        }
        self.seek(index)?;
        let decoded = decode_page(&self.page, self.vocab, &mut self.decompressor, &mut self.room);
        let planes = decoded.map_err(|fault| {
            Fault::Refused(Refusal::new(Rule::ShardNoncanonical, Subject::Row(row.key), fault.expected, fault.found))
        })?;
        self.scores.set_from_planes(planes);
        let digest = self.scores.digest();
        if row.score_digest == Some(digest) {
            return Ok(&self.scores);
        }
        let expected = row.score_digest.map_or("no scores".to_owned(), |digest| format!("score digest {digest}"));
        Err(Fault::Refused(Refusal::new(Rule::ScoreWitness, Subject::Row(row.key), expected, digest.to_string())))
    }

    /// Brings the page of the row into `self.page`, from the open shard.
    fn seek(&mut self, index: usize) -> Result<(), Fault> {
        let wanted = index - self.base;
        let Some(open) = &mut self.open else { return Err(self.lost(index, "no shard with it")) };
        let path = self.store.root().join(Store::object_path(&open.shard.object));
        let noncanonical = |fault: crate::shard::ShardFault, open: &Open| {
            let subject = Subject::Object(open.shard.object, format!("scores shard {}", open.number));
            Fault::Refused(Refusal::new(Rule::ShardNoncanonical, subject, fault.expected, fault.found))
        };
        if open.reader.is_none() {
            let role = format!("scores shard {}", open.number);
            let (file, _) = self.store.open_object(&open.shard.object, Some(open.shard.bytes), &role)?;
            let (reader, start) = ScoresReader::new(file, &open.shard, self.vocab).map_err(io_error("read", &path))?;
            start.map_err(|fault| noncanonical(fault, open))?;
            open.reader = Some(reader);
        }
        while open.taken <= wanted {
            let Some(reader) = &mut open.reader else { break };
            let more = reader.next_page(&mut self.page).map_err(io_error("read", &path))?;
            if !more.map_err(|fault| noncanonical(fault, open))? {
                return Err(self.lost(index, "a shard that ends before it"));
            }
            open.taken += 1;
        }
        Ok(())
    }

    fn lost(&self, index: usize, found: &str) -> Fault {
        let subject = self.rows.get(index).map_or(Subject::Capture, |row| Subject::Row(row.key));
        Fault::Refused(Refusal::new(Rule::TreeSize, subject, "a page of scores", found))
    }
}
