//! Scores shards: one flat FLOAT column, one page a row.
//!
//! [`ScoresWriter`] takes compressed pages in key order; [`ScoresReader`] hands out pages while it hashes the very bytes it hands
//! out, then compares the tail with the one that the pages imply. Pages are decoded apart from that ([`decode_page`]), on any thread.
//! See `specs/format-v1.md`, section 8.2.

use std::io::{self, Read, Write};

use super::page::{Decompressor, Encoding, MAX_HEADER, PageHeader, max_compressed};
use super::thrift::{Reader, Struct};
use super::{CREATED_BY, MAGIC, ShardFault};
use crate::digest::Blake3Stream;
use crate::id::{ObjectId, long};
use crate::manifest::{Codec, ScoreShard};

/// Where this writer cuts: before the row that would bring a shard's canonical scores beyond this many bytes.
pub const CUT_BYTES: u64 = 64 << 20;
const READ_STEP: usize = 64 << 10;
const FLOAT: i32 = 4;
/// Length of the footer, and the closing magic.
const TRAILER: usize = 8;
/// No footer is longer: some forty bytes of names, and a dozen varints.
const MAX_FOOTER: u32 = 1024;
/// No page location is longer: three varints with their field headers, and an end.
const MAX_LOCATION: u64 = 32;

fn codec_number(codec: Codec) -> i32 {
    match codec {
        Codec::None => 0,
        Codec::Zstd => 6,
        Codec::Lz4 => 7,
    }
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

    /// Whether the body of a page with this header may be read: only then is room made for it.
    fn check_len(&self, header: &PageHeader) -> Result<(), ShardFault> {
        let most = max_compressed(u64::from(self.vocab) * 4);
        if u64::from(header.compressed) <= most {
            return Ok(());
        }
        let found = format!("a page that claims {} bytes", header.compressed);
        Err(ShardFault::new(format!("at most the {most} bytes that a row of {} scores may take", self.vocab), found))
    }

    /// Whether the pages follow each other from the opening magic on.
    fn is_contiguous(&self) -> bool {
        let mut end = long(MAGIC.len());
        self.pages.iter().all(|&(offset, size)| {
            let follows = offset == end;
            end = offset.saturating_add(u64::from(size));
            follows
        })
    }

    /// Offset index, footer and closing magic.
    fn tail(&self) -> Vec<u8> {
        let vocab = u64::from(self.vocab);
        let values = long(self.pages.len()) * vocab;
        let locations = self.pages.iter().enumerate().map(|(row, &(offset, size))| {
            Struct::default().i64(1, offset).i32(2, i32::try_from(size).unwrap_or(i32::MAX)).i64(3, long(row) * vocab)
        });
        let index = Struct::default().structs(1, locations).finish();
        let column = column_start(self.codec, values)
            .i64(6, self.uncompressed)
            .i64(7, self.end - long(MAGIC.len()))
            .i64(9, long(MAGIC.len()));
        let chunk = Struct::default()
            .i64(2, 0)
            .nested(3, column)
            .i64(4, self.end)
            .i32(5, i32::try_from(index.len()).unwrap_or(i32::MAX));
        let group = Struct::default().structs(1, [chunk].into_iter()).i64(2, self.uncompressed).i64(3, values);
        let footer = footer_start(values).structs(4, [group].into_iter()).text(6, CREATED_BY).finish();
        let footer_len = u32::try_from(footer.len()).unwrap_or(u32::MAX).to_le_bytes();
        [index.as_slice(), &footer, &footer_len, MAGIC].concat()
    }
}

/// A column's metadata up to the sizes, which depend on the pages.
fn column_start(codec: Codec, values: u64) -> Struct {
    Struct::default()
        .i32(1, FLOAT)
        .i32s(2, &[Encoding::ByteStreamSplit.number()])
        .texts(3, &["score"])
        .i32(4, codec_number(codec))
        .i64(5, values)
}

/// The footer up to its row group.
fn footer_start(values: u64) -> Struct {
    let root = Struct::default().text(4, "scores").i32(5, 1);
    let column = Struct::default().i32(1, FLOAT).i32(3, 0).text(4, "score");
    Struct::default().i32(1, 1).structs(2, [root, column].into_iter()).i64(3, values)
}

/// The CRC that stands in the header of a page with this body.
#[must_use]
pub fn page_crc(body: &[u8]) -> u32 {
    crc32fast::hash(body)
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
        self.hash.update_wide(bytes);
        self.out.write_all(bytes)
    }

    /// Adds a row: the compressed body of its page.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn push_page(&mut self, body: &[u8]) -> io::Result<()> {
        self.push_page_with(body, page_crc(body))
    }

    /// As [`ScoresWriter::push_page`], with the CRC made elsewhere: [`page_crc`].
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn push_page_with(&mut self, body: &[u8], crc: u32) -> io::Result<()> {
        let compressed = u32::try_from(body.len()).map_err(io::Error::other)?;
        let header = PageHeader {
            uncompressed: self.layout.vocab * 4,
            compressed,
            crc,
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
        let from_carry = len.min(self.carry.len());
        let from_input = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(len - from_carry);
        // Not cleared: what is written over need not be made zero first.
        out.resize(from_carry + from_input, 0);
        let (carried, read) = out.split_at_mut(from_carry);
        for (to, from) in carried.iter_mut().zip(self.carry.drain(..from_carry)) {
            *to = from;
        }
        self.input.read_exact(read)?;
        self.hash.update_wide(read);
        self.remaining -= long(from_input);
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
        if let Err(fault) = self.layout.check_len(&header) {
            return Ok(Err(fault.in_page(index)));
        }
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

/// Reads from a place of the shard's bytes: all of the buffer, or nothing.
pub type ReadAt<'r> = dyn FnMut(&mut [u8], u64) -> io::Result<()> + 'r;

/// Where the pages of a scores shard lie, by its own offset index: one row can be read without the others.
///
/// The index is read strictly: index, footer and closing magic must be the ones that its own page sizes imply. Only the sum of the header
/// lengths is taken from the footer, as nothing short of reading every header shows it. What lies in a page is bound by the row's score digest.
pub struct PageIndex {
    layout: Layout,
}

impl PageIndex {
    /// Reads the index at the end of `shard`, whose rows have `vocab` scores.
    ///
    /// # Errors
    /// When it cannot be read. The inner result is the fault of a shard that does not end as its own pages imply.
    pub fn read(read_at: &mut ReadAt<'_>, shard: &ScoreShard, vocab: u32) -> io::Result<Result<Self, ShardFault>> {
        let fault = || Ok(Err(ShardFault::new("the offset index and footer that the pages imply", "other bytes")));
        let end = long(TRAILER);
        let mut trailer = [0; TRAILER];
        let Some(trailer_at) = shard.bytes.checked_sub(end) else { return fault() };
        read_at(&mut trailer, trailer_at)?;
        let [a, b, c, d, ..] = trailer;
        let footer_len = u32::from_le_bytes([a, b, c, d]);
        let footer_at = trailer_at.checked_sub(u64::from(footer_len));
        let (Some(footer_at), true) = (footer_at, footer_len <= MAX_FOOTER) else { return fault() };
        let mut footer = vec![0; usize::try_from(footer_len).unwrap_or(0)];
        read_at(&mut footer, footer_at)?;
        let values = shard.rows.saturating_mul(u64::from(vocab));
        let sizes = read_sizes(&footer, shard.codec, values);
        let Some((uncompressed, index_at)) = sizes else { return fault() };
        let headers = uncompressed.checked_sub(values.saturating_mul(4));
        let most = shard.rows.saturating_mul(long(MAX_HEADER));
        let index_len =
            footer_at.checked_sub(index_at).filter(|len| *len <= shard.rows.saturating_mul(MAX_LOCATION) + 16);
        let (Some(index_len), true) = (index_len, headers.is_some_and(|len| len <= most)) else { return fault() };
        let mut tail = vec![0; usize::try_from(index_len).unwrap_or(0)];
        read_at(&mut tail, index_at)?;
        let Some(pages) = read_locations(&tail, shard.rows) else { return fault() };
        tail.extend(footer);
        tail.extend(trailer);
        let end = pages.last().map_or(0, |&(offset, size)| offset.saturating_add(u64::from(size)));
        let layout = Layout { codec: shard.codec, vocab, pages, end, uncompressed };
        if layout.is_contiguous() && layout.tail() == tail { Ok(Ok(Self { layout })) } else { fault() }
    }

    /// Reads the page of the row at `row` of the shard, from 0.
    ///
    /// # Errors
    /// When it cannot be read. The inner result is the fault of a page that does not begin with its header.
    pub fn page(&self, row: u64, read_at: &mut ReadAt<'_>, page: &mut RawPage) -> io::Result<Result<(), ShardFault>> {
        let place = usize::try_from(row).ok().and_then(|row| self.layout.pages.get(row));
        let Some(&(offset, size)) = place else { return Ok(Err(ShardFault::new("a page", "none").in_page(row))) };
        let size = usize::try_from(size).unwrap_or(0);
        let mut start = vec![0; size.min(MAX_HEADER)];
        read_at(&mut start, offset)?;
        let (header, len) = match PageHeader::decode(&start, Encoding::ByteStreamSplit) {
            Ok(found) => found,
            Err(fault) => return Ok(Err(fault.in_page(row))),
        };
        let body_len = size - len;
        if u64::from(header.compressed) != long(body_len) {
            let found = format!("a page that claims {} bytes", header.compressed);
            return Ok(Err(ShardFault::new(format!("the {body_len} bytes of the offset index"), found).in_page(row)));
        }
        if let Err(fault) = self.layout.check_len(&header) {
            return Ok(Err(fault.in_page(row)));
        }
        page.body.resize(body_len, 0);
        read_at(&mut page.body, offset.saturating_add(long(len)))?;
        page.header = Some(header);
        page.codec = Some(self.layout.codec);
        Ok(Ok(()))
    }
}

/// Uncompressed size, headers included, and where the index begins.
fn read_sizes(footer: &[u8], codec: Codec, values: u64) -> Option<(u64, u64)> {
    let mut reader = Reader::new(footer);
    reader.exact(&footer_start(values).open_structs(4, 1))?;
    reader.exact(&Struct::default().open_structs(1, 1))?;
    reader.exact(&Struct::default().i64(2, 0).open_nested(3))?;
    reader.exact(&column_start(codec, values).open())?;
    let uncompressed = reader.i64(1)?;
    let compressed = reader.i64(1)?;
    Some((uncompressed, compressed.checked_add(long(MAGIC.len()))?))
}

/// Offset and size of each page.
fn read_locations(index: &[u8], rows: u64) -> Option<Vec<(u64, u32)>> {
    let mut reader = Reader::new(index);
    reader.structs(1, rows)?;
    let mut pages = Vec::new();
    for _ in 0..rows {
        let (offset, size) = (reader.i64(1)?, reader.i32(1)?);
        reader.i64(1)?;
        reader.stop()?;
        pages.push((offset, u32::try_from(size).ok()?));
    }
    Some(pages)
}

/// Checks a page and gives the planes of its row, `[4, vocab]`: decompressed into `room`, which is resized, or the page's own bytes.
///
/// # Errors
/// When header, CRC or body are not those of a row of `vocab` scores.
pub fn decode_page<'a>(
    page: &'a RawPage,
    vocab: u32,
    decompressor: &mut Decompressor,
    room: &'a mut Vec<u8>,
) -> Result<&'a [u8], ShardFault> {
    let (Some(header), Some(codec)) = (page.header, page.codec) else { return Err(ShardFault::new("a page", "none")) };
    let size = u64::from(vocab) * 4;
    if header.values != vocab || u64::from(header.uncompressed) != size {
        let found = format!("{} values in {} bytes", header.values, header.uncompressed);
        return Err(ShardFault::new(format!("{vocab} values in {size} bytes"), found));
    }
    let crc = page_crc(&page.body);
    if crc != header.crc {
        return Err(ShardFault::new(format!("page CRC {:08x}", header.crc), format!("{crc:08x}")));
    }
    room.resize(usize::try_from(size).unwrap_or(0), 0);
    decompressor.decompress(codec, &page.body, room)
}
