//! The pass over a capture's scores: rows in key order, read by position, made canonical, digested and compressed on many threads, cut into shards.
//!
//! See `specs/format-v1.md`, sections 5 and 8.2.

use std::fs::File;
use std::io::{self, BufWriter};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Mutex;

use super::SealError;
use crate::binding::ScoresDeclaration;
use crate::canon::scores::{Canonical, Dtype};
use crate::digest::{Sha256, Sha256Stream};
use crate::facts::Facts;
use crate::id::long;
use crate::ingest::Capture;
use crate::manifest::{Codec, ScoreShard};
use crate::meter::Meter;
use crate::pipeline;
use crate::row::Row;
use crate::shard::page::Compressor;
use crate::shard::scores::{CUT_BYTES, ScoresWriter, page_crc};
use crate::store::{Staging, io_error};

/// What the pass over the scores leaves behind.
pub(super) struct ScoresPass {
    pub(super) shards: Vec<ScoreShard>,
    pub(super) facts: Vec<Option<Facts>>,
    pub(super) f32_sha256: Option<Sha256>,
}

/// Stages the scores of a capture; nothing where it has none.
///
/// # Errors
/// When the scores cannot be read, or a shard cannot be written.
pub(super) fn stage(
    staging: &mut Staging<'_>,
    codec: Codec,
    meter: &Meter,
    capture: &Capture,
) -> Result<Option<ScoresPass>, SealError> {
    let (Some(declared), Some(file)) = (&capture.run.scores, &capture.scores) else { return Ok(None) };
    let rows = &capture.rows;
    let vocab = u32::try_from(declared.vocab_size).unwrap_or(u32::MAX);
    let row_bytes = usize::try_from(vocab).unwrap_or(0) * declared.dtype.size();
    meter.expect(long(row_bytes) * long(rows.len()));
    let slot = |rows| Ok::<_, SealError>(Slot::new(rows));
    let sets = pipeline::sets(rows.len(), usize::try_from(vocab).unwrap_or(0) * 4, slot)?;
    // As many as work at once: of slots there are several a thread.
    let tools: Mutex<Vec<Tools>> = Mutex::default();
    let mut next = rows.iter().zip(&capture.places).peekable();
    let mut output = ShardOutput {
        staging,
        codec,
        vocab,
        open: None,
        canonical_bytes: 0,
        shards: Vec::new(),
        facts: Vec::with_capacity(rows.len()),
        f32_stream: declared.f32_sha256_at_capture.map(|_| Sha256Stream::default()),
        wide: Vec::new(),
    };
    pipeline::run(
        sets,
        |slot: &mut Slot| {
            if meter.is_stopped() {
                return Err(SealError::Interrupted);
            }
            slot.filled = 0;
            for work in &mut slot.rows {
                let Some((row, &place)) = next.next() else { break };
                work.row = Some(row.clone());
                work.raw.resize(row_bytes, 0);
                file.read_exact_at(&mut work.raw, place * long(row_bytes))
                    .map_err(io_error("read", declared.dtype.file_name()))?;
                slot.filled += 1;
            }
            Ok(slot.filled > 0)
        },
        |slot| {
            let idle = tools.lock().ok().and_then(|mut tools| tools.pop());
            match idle.map_or_else(|| Tools::new(codec), Ok) {
                Ok(mut own) => {
                    slot.work(declared, &mut own);
                    if let Ok(mut idle) = tools.lock() {
                        idle.push(own);
                    }
                }
                Err(error) => slot.error = Some(error),
            }
        },
        |slot| {
            for work in slot.rows.iter().take(slot.filled) {
                output.push(work)?;
                meter.add(long(row_bytes));
            }
            if let Some(error) = slot.error.take() {
                return Err(io_error("compress", "a row of scores")(error).into());
            }
            Ok(())
        },
    )?;
    output.finish().map(Some)
}

/// Rows that one thread works on at a time.
struct Slot {
    rows: Vec<RowWork>,
    filled: usize,
    error: Option<io::Error>,
}

/// What a thread needs to work on a row.
struct Tools {
    compressor: Compressor,
    scratch: Vec<u8>,
}

impl Tools {
    fn new(codec: Codec) -> io::Result<Self> {
        Ok(Self { compressor: Compressor::new(codec)?, scratch: Vec::new() })
    }
}

#[derive(Default)]
struct RowWork {
    row: Option<Row>,
    raw: Vec<u8>,
    canonical: Canonical,
    facts: Option<Facts>,
    body: Vec<u8>,
    crc: u32,
}

impl Slot {
    fn new(rows: usize) -> Self {
        Self { rows: (0..rows).map(|_| RowWork::default()).collect(), filled: 0, error: None }
    }

    fn work(&mut self, declared: &ScoresDeclaration, tools: &mut Tools) {
        for work in self.rows.iter_mut().take(self.filled) {
            let Some(row) = &work.row else { continue };
            work.canonical.set_from_file_row(declared.dtype, &work.raw);
            work.facts = Some(Facts::derive(&work.canonical, row, declared, &mut tools.scratch));
            if let Err(error) = tools.compressor.compress_row(&work.canonical, &mut work.body) {
                self.error = Some(error);
            }
            work.crc = page_crc(&work.body);
        }
    }
}

const WRITE_SCORES: &str = "write a scores shard into the store";

type OpenShard = (ScoresWriter<BufWriter<File>>, PathBuf);

/// Takes finished pages in key order and cuts shards.
struct ShardOutput<'w, 'a> {
    staging: &'w mut Staging<'a>,
    codec: Codec,
    vocab: u32,
    open: Option<OpenShard>,
    canonical_bytes: u64,
    shards: Vec<ScoreShard>,
    facts: Vec<Option<Facts>>,
    f32_stream: Option<Sha256Stream>,
    wide: Vec<u8>,
}

impl ShardOutput<'_, '_> {
    fn push(&mut self, work: &RowWork) -> Result<(), SealError> {
        if let Some(stream) = &mut self.f32_stream {
            work.canonical.write_as(Dtype::F32, &mut self.wide);
            stream.update(&self.wide);
        }
        self.facts.push(work.facts);
        let bytes = long(work.canonical.bytes().len());
        if self.canonical_bytes + bytes > CUT_BYTES {
            self.close()?;
        }
        self.canonical_bytes += bytes;
        let (writer, _) = match &mut self.open {
            Some(open) => open,
            None => {
                let (file, path) = self.staging.new_file(WRITE_SCORES)?;
                let writer =
                    ScoresWriter::new(file, self.codec, self.vocab).map_err(self.staging.error(WRITE_SCORES))?;
                self.open.insert((writer, path))
            }
        };
        writer.push_page_with(&work.body, work.crc).map_err(self.staging.error(WRITE_SCORES))?;
        Ok(())
    }

    fn close(&mut self) -> Result<(), SealError> {
        self.canonical_bytes = 0;
        let Some((writer, path)) = self.open.take() else { return Ok(()) };
        let (_, shard) = writer.finish().map_err(self.staging.error(WRITE_SCORES))?;
        self.staging.add(shard.object, path);
        self.shards.push(shard);
        Ok(())
    }

    fn finish(mut self) -> Result<ScoresPass, SealError> {
        self.close()?;
        let f32_sha256 = self.f32_stream.map(|stream| stream.digest());
        Ok(ScoresPass { shards: self.shards, facts: self.facts, f32_sha256 })
    }
}
