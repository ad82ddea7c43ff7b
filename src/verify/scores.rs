//! The pass over the scores: pages in key order, hashed as they are read, derived again on many threads.
//!
//! A full pass reads the shards as one stream and hashes every byte it hands out; a sample reads drawn pages by position. Out come the facts of
//! each row and what is wrong with shards and pages; rules judge them later. One fault is named once: a shard with the wrong digest is refused for that,
//! with the rows in which the damage shows. See `specs/format-v1.md`, sections 8.2 and 10.1.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Seek};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::{Pass, VerifyError, long};
use crate::binding::ScoresDeclaration;
use crate::canon::scores::{Canonical, Dtype};
use crate::digest::{Sha256, Sha256Stream};
use crate::facts::Facts;
use crate::id::ObjectId;
use crate::manifest::ScoreShard;
use crate::pipeline;
use crate::refusal::{Refusal, Rule, Subject};
use crate::row::Row;
use crate::shard::ShardFault;
use crate::shard::page::Decompressor;
use crate::shard::scores::{PageIndex, RawPage, ScoresReader, decode_page};
use crate::store::{Fault, Store, StoreError, io_error};

/// What the pass over the scores shards leaves behind.
pub(super) struct ScoresPass {
    pub(super) facts: Vec<Option<Facts>>,
    pub(super) f32_sha256: Option<Sha256>,
}

thread_local! {
    /// One a thread: of slots there are several, and to make a decompressor takes longer than to decompress a small capture.
    static TOOLS: RefCell<Tools> = RefCell::default();
}

/// What a thread needs to work on a row.
#[derive(Default)]
struct Tools {
    decompressor: Decompressor,
    room: Vec<u8>,
    scratch: Vec<u8>,
}

/// Rows that one thread works on at a time.
struct Slot {
    rows: Vec<RowWork>,
    filled: usize,
}

#[derive(Default)]
struct RowWork {
    index: usize,
    page: RawPage,
    canonical: Canonical,
    result: Option<Result<Facts, ShardFault>>,
}

/// The shards of a capture as one stream of pages.
struct PageStream<'p> {
    store: &'p Store,
    shards: std::slice::Iter<'p, ScoreShard>,
    vocab: u32,
    open: Option<(ScoresReader<BufReader<File>>, &'p ScoreShard)>,
    number: usize,
    /// Rows of the shards before the open one, and pages taken from it
    base: usize,
    taken: usize,
    ends: Vec<ShardEnd>,
}

/// What became of a shard once all its bytes were read.
struct ShardEnd {
    object: ObjectId,
    number: usize,
    first_row: usize,
    rows: usize,
    bytes: u64,
    /// The id of the bytes that were read; none where they could not be
    found: Option<ObjectId>,
    fault: Option<ShardFault>,
    refused: Option<Refusal>,
}

impl<'p> PageStream<'p> {
    /// The next page that can be found, with its row; none after the last shard.
    fn next(&mut self, page: &mut RawPage) -> Result<Option<usize>, VerifyError> {
        loop {
            if self.open.is_none() && !self.open_next()? {
                return Ok(None);
            }
            let Some((reader, shard)) = &mut self.open else { return Ok(None) };
            let path = self.store.root().join(Store::object_path(&shard.object));
            match reader.next_page(page).map_err(io_error("read", path))? {
                Ok(true) => {
                    self.taken += 1;
                    return Ok(Some(self.base + self.taken - 1));
                }
                Ok(false) => self.close(None)?,
                Err(fault) => self.close(Some(fault))?,
            }
        }
    }

    fn open_next(&mut self) -> Result<bool, VerifyError> {
        let Some(shard) = self.shards.next() else { return Ok(false) };
        let role = format!("scores shard {}", self.number);
        let file = match self.store.open_object(&shard.object, Some(shard.bytes), &role) {
            Ok((file, _)) => file,
            Err(Fault::Error(error)) => return Err(error.into()),
            Err(Fault::Refused(refusal)) => {
                self.end(shard, None, None, Some(refusal));
                return self.open_next();
            }
        };
        let path = self.store.root().join(Store::object_path(&shard.object));
        // For the headers, and for pages that are as small; longer reads go past the buffer.
        let file = BufReader::with_capacity(8 << 10, file);
        let (reader, start) = ScoresReader::new(file, shard, self.vocab).map_err(io_error("read", path))?;
        self.open = Some((reader, shard));
        if let Err(fault) = start {
            self.close(Some(fault))?;
            return self.open_next();
        }
        Ok(true)
    }

    fn close(&mut self, fault: Option<ShardFault>) -> Result<(), VerifyError> {
        let Some((reader, shard)) = self.open.take() else { return Ok(()) };
        let path = self.store.root().join(Store::object_path(&shard.object));
        let (found, tail) = reader.finish().map_err(io_error("read", path))?;
        self.end(shard, Some(found), fault.or(tail.err()), None);
        Ok(())
    }

    fn end(
        &mut self,
        shard: &ScoreShard,
        found: Option<ObjectId>,
        fault: Option<ShardFault>,
        refused: Option<Refusal>,
    ) {
        let rows = usize::try_from(shard.rows).unwrap_or(usize::MAX);
        let (number, first_row, bytes) = (self.number, self.base, shard.bytes);
        self.ends.push(ShardEnd { object: shard.object, number, first_row, rows, bytes, found, fault, refused });
        self.number += 1;
        self.base = self.base.saturating_add(rows);
        self.taken = 0;
    }
}

/// A few pages of a capture, each read alone, found through the offset index of its shard.
struct SampleStream<'p> {
    store: &'p Store,
    shards: std::slice::Iter<'p, ScoreShard>,
    drawn: std::iter::Peekable<std::vec::IntoIter<usize>>,
    vocab: u32,
    open: Option<OpenShard>,
    /// The shard that is open, or the next one
    number: usize,
    /// Rows of the shards up to the open one, with it
    end: usize,
    refusals: Vec<Refusal>,
    /// Rows whose page cannot be found
    faults: Vec<(usize, ShardFault)>,
}

struct OpenShard {
    file: File,
    /// Where in the file the object begins
    start: u64,
    index: PageIndex,
    first_row: usize,
    path: PathBuf,
}

impl OpenShard {
    fn page(&self, row: usize, page: &mut RawPage) -> Result<Result<(), ShardFault>, StoreError> {
        let mut read_at = |out: &mut [u8], at: u64| self.file.read_exact_at(out, self.start.saturating_add(at));
        let place = long(row.saturating_sub(self.first_row));
        self.index.page(place, &mut read_at, page).map_err(io_error("read", &self.path))
    }
}

impl<'p> SampleStream<'p> {
    /// The page of the next row drawn, of those that can be found; none after the last. Every shard is opened, also where no row of it was drawn.
    fn next(&mut self, page: &mut RawPage) -> Result<Option<usize>, VerifyError> {
        loop {
            let Some(row) = self.drawn.next_if(|row| *row < self.end) else {
                let Some(shard) = self.shards.next() else { return Ok(None) };
                self.open_next(shard)?;
                continue;
            };
            let Some(open) = &self.open else { continue };
            match open.page(row, page)? {
                Ok(()) => return Ok(Some(row)),
                Err(fault) => self.faults.push((row, fault)),
            }
        }
    }

    fn open_next(&mut self, shard: &'p ScoreShard) -> Result<(), VerifyError> {
        let role = format!("scores shard {}", self.number);
        let first_row = self.end;
        self.number += 1;
        self.end = self.end.saturating_add(usize::try_from(shard.rows).unwrap_or(usize::MAX));
        self.open = None;
        let (mut file, _) = match self.store.open_object(&shard.object, Some(shard.bytes), &role) {
            Ok(found) => found,
            Err(Fault::Error(error)) => return Err(error.into()),
            Err(Fault::Refused(refusal)) => {
                self.refusals.push(refusal);
                return Ok(());
            }
        };
        if self.drawn.peek().is_none_or(|row| *row >= self.end) {
            return Ok(());
        }
        let path = self.store.root().join(Store::object_path(&shard.object));
        let start = file.stream_position().map_err(io_error("read", &path))?;
        let mut read_at = |out: &mut [u8], at: u64| file.read_exact_at(out, start.saturating_add(at));
        match PageIndex::read(&mut read_at, shard, self.vocab).map_err(io_error("read", &path))? {
            Ok(index) => self.open = Some(OpenShard { file, start, index, first_row, path }),
            Err(fault) => {
                let subject = Subject::Object(shard.object, role);
                self.refusals.push(Refusal::new(Rule::ShardNoncanonical, subject, fault.expected, fault.found));
            }
        }
        Ok(())
    }
}

/// Where a pass over the scores gets its pages.
enum Pages<'p> {
    All(Box<PageStream<'p>>),
    Drawn(Box<SampleStream<'p>>),
}

impl Pages<'_> {
    fn next(&mut self, page: &mut RawPage) -> Result<Option<usize>, VerifyError> {
        match self {
            Pages::All(stream) => stream.next(page),
            Pages::Drawn(stream) => stream.next(page),
        }
    }
}

impl ScoresPass {
    pub(super) fn read(
        pass: &mut Pass<'_, '_>,
        shards: &[ScoreShard],
        declared: &ScoresDeclaration,
        vocab: u32,
        rows: &[Row],
        sample: Option<Vec<usize>>,
    ) -> Result<Self, VerifyError> {
        let meter = pass.meter;
        if sample.is_none() {
            shards.iter().for_each(|shard| meter.expect(shard.bytes));
        }
        let row_bytes = usize::try_from(vocab).unwrap_or(0) * 4;
        let count = sample.as_ref().map_or(rows.len(), Vec::len);
        let sets = pipeline::sets(count, row_bytes, |rows| Ok::<_, VerifyError>(Slot::new(rows)))?;
        let store = pass.catalog.store();
        let shards = shards.iter();
        let mut pages = match sample {
            None => Pages::All(Box::new(PageStream {
                store,
                shards,
                vocab,
                open: None,
                number: 0,
                base: 0,
                taken: 0,
                ends: Vec::new(),
            })),
            Some(drawn) => Pages::Drawn(Box::new(SampleStream {
                store,
                shards,
                drawn: drawn.into_iter().peekable(),
                vocab,
                open: None,
                number: 0,
                end: 0,
                refusals: Vec::new(),
                faults: Vec::new(),
            })),
        };
        let mut facts: Vec<Option<Facts>> = vec![None; rows.len()];
        let mut faults: BTreeMap<usize, ShardFault> = BTreeMap::new();
        let mut f32_stream = declared.f32_sha256_at_capture.map(|_| Sha256Stream::default());
        let mut wide = Vec::new();
        pipeline::run(
            sets,
            |slot: &mut Slot| {
                if meter.is_stopped() {
                    return Err(VerifyError::Interrupted);
                }
                slot.filled = 0;
                for work in &mut slot.rows {
                    let Some(index) = pages.next(&mut work.page)? else { break };
                    work.index = index;
                    slot.filled += 1;
                    meter.add(work.page.body_len());
                }
                Ok(slot.filled > 0)
            },
            |slot| slot.work(declared, vocab, rows),
            |slot| {
                for work in slot.rows.iter_mut().take(slot.filled) {
                    match work.result.take() {
                        Some(Ok(found)) => {
                            if let Some(stream) = &mut f32_stream {
                                work.canonical.write_as(Dtype::F32, &mut wide);
                                stream.update(&wide);
                            }
                            if let Some(place) = facts.get_mut(work.index) {
                                *place = Some(found);
                            }
                        }
                        Some(Err(fault)) => {
                            faults.insert(work.index, fault);
                        }
                        None => {}
                    }
                }
                Ok(())
            },
        )?;
        match pages {
            Pages::All(stream) => {
                for end in stream.ends {
                    pass.judge_shard(end, rows, &mut facts, &mut faults);
                }
            }
            Pages::Drawn(stream) => {
                pass.findings.refusals.extend(stream.refusals);
                for (index, fault) in faults.into_iter().chain(stream.faults) {
                    if let Some(row) = rows.get(index) {
                        pass.refuse(Rule::ShardNoncanonical, Subject::Row(row.key), fault.expected, fault.found);
                    }
                }
            }
        }
        pass.checked.scored_rows += long(facts.iter().flatten().count());
        let whole = facts.iter().all(Option::is_some);
        let f32_sha256 = f32_stream.filter(|_| whole).map(|stream| stream.digest());
        Ok(Self { facts, f32_sha256 })
    }
}

impl Pass<'_, '_> {
    /// One fault is named once: a shard with the wrong digest is refused for that, with the rows in which the damage shows.
    fn judge_shard(
        &mut self,
        end: ShardEnd,
        rows: &[Row],
        facts: &mut [Option<Facts>],
        faults: &mut BTreeMap<usize, ShardFault>,
    ) {
        let range = end.first_row..end.first_row.saturating_add(end.rows).min(rows.len());
        let subject = Subject::Object(end.object, format!("scores shard {}", end.number));
        if let Some(refusal) = end.refused {
            self.findings.refusals.push(refusal);
            return;
        }
        self.count(end.bytes);
        if end.found != Some(end.object) {
            let damaged: Vec<String> = range
                .clone()
                .filter(|index| {
                    let derived = facts.get(*index).and_then(Option::as_ref).map(|facts| facts.digest);
                    derived.is_none() || rows.get(*index).is_some_and(|row| row.score_digest != derived)
                })
                .filter_map(|index| rows.get(index).map(|row| row.key.to_string()))
                .collect();
            let found = end.found.map_or("nothing".to_owned(), |found| found.to_string());
            let places = match damaged.as_slice() {
                [] => "no row of scores is touched".to_owned(),
                [one] => format!("the damage shows at {one}"),
                [first, .., last] => format!("the damage shows at {} rows, {first} to {last}", damaged.len()),
            };
            self.refuse(Rule::ObjectDigest, subject, format!("BLAKE3 {}", end.object), format!("{found}; {places}"));
            for index in range {
                if let Some(place) = facts.get_mut(index) {
                    *place = None;
                }
                faults.remove(&index);
            }
            return;
        }
        if let Some(fault) = end.fault {
            self.refuse(Rule::ShardNoncanonical, subject, fault.expected, fault.found);
        }
        for index in range {
            if let (Some(fault), Some(row)) = (faults.remove(&index), rows.get(index)) {
                self.refuse(Rule::ShardNoncanonical, Subject::Row(row.key), fault.expected, fault.found);
            }
        }
    }
}

impl Slot {
    fn new(rows: usize) -> Self {
        Self { rows: (0..rows).map(|_| RowWork::default()).collect(), filled: 0 }
    }

    fn work(&mut self, declared: &ScoresDeclaration, vocab: u32, rows: &[Row]) {
        TOOLS.with_borrow_mut(|Tools { decompressor, room, scratch }| {
            for work in self.rows.iter_mut().take(self.filled) {
                let Some(row) = rows.get(work.index) else { continue };
                let decoded = decode_page(&work.page, vocab, decompressor, room);
                work.result = Some(decoded.map(|planes| {
                    work.canonical.set_from_planes(planes);
                    Facts::derive(&work.canonical, row, declared, scratch)
                }));
            }
        });
    }
}
