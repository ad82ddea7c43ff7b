//! Scores shards: one flat FLOAT column, one page a row.
//!
//! [`ScoresWriter`] takes compressed pages in key order; [`ScoresReader`] hands out pages while it hashes the very bytes it hands
//! out, then compares the tail with the one that the pages imply. Pages are decoded apart from that ([`decode_page`]), on any thread.
//! See `specs/format-v1.md`, section 8.2.

use std::io::{self, Read, Write};

use super::page::{Decompressor, Encoding, MAX_HEADER, PageHeader};
use super::thrift::Struct;
use super::{CREATED_BY, MAGIC, ShardFault};
use crate::digest::Blake3Stream;
use crate::id::ObjectId;
use crate::manifest::{Codec, ScoreShard};

/// Where this writer cuts: before the row that would bring a shard's canonical scores beyond this many bytes.
pub const CUT_BYTES: u64 = 64 << 20;
const READ_STEP: usize = 64 << 10;
const FLOAT: i32 = 4;

fn codec_number(codec: Codec) -> i32 {
    match codec {
        Codec::None => 0,
        Codec::Zstd => 6,
        Codec::Lz4 => 7,
    }
}

/// Lengths and counts in memory fit u64 on every machine there is.
fn long(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// Sizes of the pages written or read so far; all that the tail depends on.
struct Layout {
    codec: Codec,
    vocab: u32,
    /// Offset and size, header included, of each page
    pages: Vec<(u64, u32)>,
    end: u64,
    uncompressed: u64,
}

impl Layout {
    fn new(codec: Codec, vocab: u32) -> Self {
        Self { codec, vocab, pages: Vec::new(), end: long(MAGIC.len()), uncompressed: 0 }
    }

    fn push(&mut self, header_len: usize, body_len: u32) {
        let size = u32::try_from(header_len).unwrap_or(u32::MAX).saturating_add(body_len);
        self.pages.push((self.end, size));
        self.end += u64::from(size);
        self.uncompressed += long(header_len) + u64::from(self.vocab) * 4;
    }

    /// Offset index, footer and closing magic.
    fn tail(&self) -> Vec<u8> {
        let vocab = u64::from(self.vocab);
        let values = long(self.pages.len()) * vocab;
        let locations = self.pages.iter().enumerate().map(|(row, &(offset, size))| {
            Struct::default().i64(1, offset).i32(2, i32::try_from(size).unwrap_or(i32::MAX)).i64(3, long(row) * vocab)
        });
        let index = Struct::default().structs(1, locations).finish();
        let column = Struct::default()
            .i32(1, FLOAT)
            .i32s(2, &[Encoding::ByteStreamSplit.number()])
            .texts(3, &["score"])
            .i32(4, codec_number(self.codec))
            .i64(5, values)
            .i64(6, self.uncompressed)
            .i64(7, self.end - long(MAGIC.len()))
            .i64(9, long(MAGIC.len()));
        let chunk = Struct::default()
            .i64(2, 0)
            .nested(3, column)
            .i64(4, self.end)
            .i32(5, i32::try_from(index.len()).unwrap_or(i32::MAX));
        let schema =
            [Struct::default().text(4, "scores").i32(5, 1), Struct::default().i32(1, FLOAT).i32(3, 0).text(4, "score")];
        let group = Struct::default().structs(1, [chunk].into_iter()).i64(2, self.uncompressed).i64(3, values);
        let footer = Struct::default()
            .i32(1, 1)
            .structs(2, schema.into_iter())
            .i64(3, values)
            .structs(4, [group].into_iter())
            .text(6, CREATED_BY)
            .finish();
        let footer_len = u32::try_from(footer.len()).unwrap_or(u32::MAX).to_le_bytes();
        [index.as_slice(), &footer, &footer_len, MAGIC].concat()
    }
}

/// Writes a scores shard page by page.
pub struct ScoresWriter<W> {
    out: W,
    hash: Blake3Stream,
    layout: Layout,
}

impl<W: Write> ScoresWriter<W> {
    /// Starts a shard of rows of `vocab` scores.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn new(out: W, codec: Codec, vocab: u32) -> io::Result<Self> {
        let mut writer = Self { out, hash: Blake3Stream::default(), layout: Layout::new(codec, vocab) };
        writer.put(MAGIC)?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.out.write_all(bytes)
    }

    /// Adds a row: the compressed body of its page.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn push_page(&mut self, body: &[u8]) -> io::Result<()> {
        let compressed = u32::try_from(body.len()).map_err(io::Error::other)?;
        let header = PageHeader {
            uncompressed: self.layout.vocab * 4,
            compressed,
            crc: crc32fast::hash(body),
            values: self.layout.vocab,
            encoding: Encoding::ByteStreamSplit,
        }
        .encode();
        self.put(&header)?;
        self.put(body)?;
        self.layout.push(header.len(), compressed);
        Ok(())
    }

    /// Rows so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        long(self.layout.pages.len())
    }

    /// Writes offset index and footer; gives back the output and what a manifest says of the shard.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn finish(mut self) -> io::Result<(W, ScoreShard)> {
        let tail = self.layout.tail();
        self.put(&tail)?;
        self.out.flush()?;
        let shard = ScoreShard {
            bytes: self.layout.end + long(tail.len()),
            codec: self.layout.codec,
            object: ObjectId(self.hash.digest()),
            rows: self.rows(),
        };
        Ok((self.out, shard))
    }
}

/// A page as it stands in the file; nothing about it is believed yet but that its header is well-formed.
#[derive(Debug, Default, Clone)]
pub struct RawPage {
    header: Option<PageHeader>,
    codec: Option<Codec>,
    body: Vec<u8>,
}

impl RawPage {
    /// The body, compressed.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Bytes of the body.
    #[must_use]
    pub fn body_len(&self) -> u64 {
        long(self.body.len())
    }
}

/// Reads a scores shard from its first byte to its last.
pub struct ScoresReader<R> {
    input: R,
    hash: Blake3Stream,
    /// Bytes of the object that were not taken yet
    remaining: u64,
    /// Bytes that were taken and belong to what comes next
    carry: Vec<u8>,
    layout: Layout,
    rows: u64,
}

impl<R: Read> ScoresReader<R> {
    /// Starts to read `shard`, whose rows have `vocab` scores. `input` gives the object's bytes, as many as the manifest says.
    ///
    /// # Errors
    /// When the input cannot be read. The inner result is the fault of a file that does not start as a shard does.
    pub fn new(input: R, shard: &ScoreShard, vocab: u32) -> io::Result<(Self, Result<(), ShardFault>)> {
        let mut reader = Self {
            input,
            hash: Blake3Stream::default(),
            remaining: shard.bytes,
            carry: Vec::new(),
            layout: Layout::new(shard.codec, vocab),
            rows: shard.rows,
        };
        let mut magic = Vec::new();
        reader.take(MAGIC.len(), &mut magic)?;
        let good = if magic == MAGIC { Ok(()) } else { Err(ShardFault::new("PAR1 at the start", "other bytes")) };
        Ok((reader, good))
    }

    /// Takes up to `len` bytes, fewer only at the end of the object, into `out`, replacing what is there.
    fn take(&mut self, len: usize, out: &mut Vec<u8>) -> io::Result<()> {
        out.clear();
        let from_carry = len.min(self.carry.len());
        out.extend(self.carry.drain(..from_carry));
        while out.len() < len && self.remaining > 0 {
            let step = (len - out.len()).min(READ_STEP).min(usize::try_from(self.remaining).unwrap_or(READ_STEP));
            let start = out.len();
            out.resize(start + step, 0);
            let Some(target) = out.get_mut(start..) else { break };
            self.input.read_exact(target)?;
            self.hash.update(target);
            self.remaining -= long(step);
        }
        Ok(())
    }

    /// The next page, into `page`; false after the last one.
    ///
    /// # Errors
    /// When the input cannot be read. The inner result is a fault after which no page can be found any more.
    pub fn next_page(&mut self, page: &mut RawPage) -> io::Result<Result<bool, ShardFault>> {
        let index = long(self.layout.pages.len());
        if index == self.rows {
            return Ok(Ok(false));
        }
        let mut start = Vec::new();
        self.take(MAX_HEADER, &mut start)?;
        let (header, len) = match PageHeader::decode(&start, Encoding::ByteStreamSplit) {
            Ok(found) => found,
            Err(fault) => return Ok(Err(fault.in_page(index))),
        };
        self.carry.splice(..0, start.into_iter().skip(len));
        let there = self.remaining.saturating_add(long(self.carry.len()));
        if u64::from(header.compressed) > there {
            let found = format!("a page that claims {} bytes", header.compressed);
            return Ok(Err(ShardFault::new(format!("at most the {there} bytes that are left"), found).in_page(index)));
        }
        self.take(usize::try_from(header.compressed).unwrap_or(usize::MAX), &mut page.body)?;
        page.header = Some(header);
        page.codec = Some(self.layout.codec);
        self.layout.push(len, header.compressed);
        Ok(Ok(true))
    }

    /// Reads what is left, compares it with the tail that the pages imply, and gives the id of all bytes read. Where pages
    /// were not all found, only the id means anything.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub fn finish(mut self) -> io::Result<(ObjectId, Result<(), ShardFault>)> {
        let expected = self.layout.tail();
        let mut found = Vec::new();
        self.take(expected.len(), &mut found)?;
        let whole = self.remaining == 0 && self.carry.is_empty();
        let mut rest = Vec::new();
        while self.remaining > 0 {
            self.take(READ_STEP, &mut rest)?;
        }
        let same = whole && found == expected;
        let good = if same {
            Ok(())
        } else {
            let what = if found == expected { "more bytes after it" } else { "other bytes" };
            Err(ShardFault::new("the offset index and footer that the pages imply, and the end", what))
        };
        Ok((ObjectId(self.hash.digest()), good))
    }
}

/// Checks and decompresses a page into the planes of its row; `planes` is resized to `[4, vocab]`.
///
/// # Errors
/// When header, CRC or body are not those of a row of `vocab` scores.
pub fn decode_page(
    page: &RawPage,
    vocab: u32,
    decompressor: &mut Decompressor,
    planes: &mut Vec<u8>,
) -> Result<(), ShardFault> {
    let (Some(header), Some(codec)) = (page.header, page.codec) else { return Err(ShardFault::new("a page", "none")) };
    let size = u64::from(vocab) * 4;
    if header.values != vocab || u64::from(header.uncompressed) != size {
        let found = format!("{} values in {} bytes", header.values, header.uncompressed);
        return Err(ShardFault::new(format!("{vocab} values in {size} bytes"), found));
    }
    let crc = crc32fast::hash(&page.body);
    if crc != header.crc {
        return Err(ShardFault::new(format!("page CRC {:08x}", header.crc), format!("{crc:08x}")));
    }
    planes.resize(usize::try_from(size).unwrap_or(0), 0);
    decompressor.decompress(codec, &page.body, planes)
}
