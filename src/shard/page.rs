//! Pages: the header in front of each, and the codecs of their bodies.
//!
//! A page of scores is one row as four byte planes (BYTE_STREAM_SPLIT of its f32 values); a page of a rows shard is one column.
//! Headers are read strictly: what does not re-encode to the same bytes is refused. See `specs/format-v1.md`, sections 8.1 and 8.2.

use std::io;

use zstd::zstd_safe;

use super::thrift::{Reader, Struct};
use super::{ShardFault, lz4};
use crate::canon::scores::Canonical;
use crate::manifest::Codec;

/// No page header is longer: six varints of at most five bytes, with their field headers.
pub const MAX_HEADER: usize = 48;
/// A plane that zstd cannot bring below this many hundredths of its size is stored as raw blocks.
const WORTHWHILE_PERCENT: usize = 95;
/// Planes are noise with a skewed distribution: looking for repeats in them costs four times what entropy coding costs, and makes them larger. Only long
/// repeats are looked for, rarely where there are none, and literals are always coded.
const ZSTD_PARAMETERS: [zstd_safe::CParameter; 4] = [
    zstd_safe::CParameter::CompressionLevel(1),
    zstd_safe::CParameter::MinMatch(7),
    zstd_safe::CParameter::TargetLength(1 << 12),
    zstd_safe::CParameter::LiteralCompressionMode(zstd_safe::ParamSwitch::Enable),
];
/// Bytes of a plane that are counted before it is compressed, and in how long pieces.
const SAMPLE: (usize, usize) = (1 << 14, 1 << 8);
const RAW_BLOCK: usize = 1 << 17;
const ZSTD_MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

/// The most bytes of a page's body that holds so many: about twice what compressors add at worst (zstd a 256th and 64 a frame, LZ4 a 255th and 16). Without a
/// limit, blocks that hold nothing would make a page of any length.
#[must_use]
pub fn max_compressed(uncompressed: u64) -> u64 {
    uncompressed.saturating_add(uncompressed / 128).saturating_add(1024)
}

/// How a page's values are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// One value after the other
    Plain,
    /// One plane for each byte of a value
    ByteStreamSplit,
}

impl Encoding {
    /// Parquet's number for it.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Encoding::Plain => 0,
            Encoding::ByteStreamSplit => 9,
        }
    }
}

/// What a page header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageHeader {
    /// Bytes of the body when decompressed
    pub uncompressed: u32,
    /// Bytes of the body
    pub compressed: u32,
    /// CRC-32 of the body
    pub crc: u32,
    /// Number of values, nulls included
    pub values: u32,
    /// Layout
    pub encoding: Encoding,
}

fn signed(value: u32) -> i32 {
    value.cast_signed()
}

impl PageHeader {
    /// The header's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let data = Struct::default().i32(1, signed(self.values)).i32(2, self.encoding.number()).i32(3, 3).i32(4, 3);
        Struct::default()
            .i32(1, 0)
            .i32(2, signed(self.uncompressed))
            .i32(3, signed(self.compressed))
            .i32(4, signed(self.crc))
            .nested(5, data)
            .finish()
    }

    /// Reads the header at the start of `bytes`; also gives its length.
    ///
    /// # Errors
    /// When the bytes are not exactly those that [`PageHeader::encode`] gives.
    pub fn decode(bytes: &[u8], encoding: Encoding) -> Result<(Self, usize), ShardFault> {
        let read = || {
            let mut reader = Reader::new(bytes);
            let _page_type = reader.i32(1)?;
            let uncompressed = u32::try_from(reader.i32(1)?).ok()?;
            let compressed = u32::try_from(reader.i32(1)?).ok()?;
            let crc = reader.i32(1)?.cast_unsigned();
            reader.nested(1)?;
            let values = u32::try_from(reader.i32(1)?).ok()?;
            for _ in 0..3 {
                reader.i32(1)?;
            }
            reader.stop()?;
            reader.stop()?;
            let header = Self { uncompressed, compressed, crc, values, encoding };
            (bytes.get(..reader.at)? == header.encode()).then_some((header, reader.at))
        };
        read().ok_or_else(|| ShardFault::new("a page header as the format writes it", "other bytes"))
    }
}

/// Compresses pages; buffers and contexts are reused.
pub struct Compressor {
    codec: Codec,
    zstd: zstd_safe::CCtx<'static>,
    planes: Vec<u8>,
    room: Vec<u8>,
}

impl Compressor {
    /// For one codec.
    ///
    /// # Errors
    /// When libzstd has no memory for a context.
    pub fn new(codec: Codec) -> io::Result<Self> {
        let mut zstd = zstd_safe::CCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
        for parameter in ZSTD_PARAMETERS {
            zstd.set_parameter(parameter).map_err(zstd_error)?;
        }
        Ok(Self { codec, zstd, planes: Vec::new(), room: Vec::new() })
    }

    /// The body of the page of a row, into `out`, replacing what is there.
    ///
    /// # Errors
    /// When a compressor fails.
    pub fn compress_row(&mut self, scores: &Canonical, out: &mut Vec<u8>) -> io::Result<()> {
        if self.codec == Codec::None {
            scores.write_planes(out);
            return Ok(());
        }
        let mut planes = std::mem::take(&mut self.planes);
        scores.write_planes(&mut planes);
        let result = self.compress(&planes, out);
        self.planes = planes;
        result
    }

    /// Compresses the planes of a row, `[4, vocab]`, into `out`, replacing what is there.
    ///
    /// # Errors
    /// When a compressor fails.
    pub fn compress(&mut self, planes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        out.clear();
        match self.codec {
            Codec::None => out.extend_from_slice(planes),
            Codec::Lz4 => {
                self.room.resize(lz4_flex::block::get_maximum_output_size(planes.len()), 0);
                let len = lz4_flex::block::compress_into(planes, &mut self.room).map_err(io::Error::other)?;
                out.extend_from_slice(&self.room[..len]);
            }
            Codec::Zstd => {
                for plane in planes.chunks_exact((planes.len() / 4).max(1)) {
                    self.compress_plane(plane, out)?;
                }
            }
        }
        Ok(())
    }

    fn compress_plane(&mut self, plane: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        if looks_random(plane) {
            write_raw_frame(plane, out);
            return Ok(());
        }
        self.room.resize(zstd_safe::compress_bound(plane.len()), 0);
        let len = self.zstd.compress2(self.room.as_mut_slice(), plane).map_err(zstd_error)?;
        if len * 100 < plane.len() * WORTHWHILE_PERCENT {
            out.extend_from_slice(&self.room[..len]);
        } else {
            write_raw_frame(plane, out);
        }
        Ok(())
    }
}

/// Whether no entropy coder could bring the plane below [`WORTHWHILE_PERCENT`], by a sample of it: its collision entropy, −log₂ Σ p², is at most
/// Shannon's, and both are near 8 bits where a raw block is as good. A plane that is shorter than the sample is not looked at.
fn looks_random(plane: &[u8]) -> bool {
    let (sample, piece) = SAMPLE;
    if plane.len() < sample {
        return false;
    }
    let mut counts = [0_u64; 256];
    for piece in plane.chunks(plane.len() / (sample / piece)).filter_map(|part| part.get(..piece)) {
        for &byte in piece {
            counts[usize::from(byte)] += 1;
        }
    }
    let total = counts.iter().sum::<u64>();
    // 2^(8 × 0.95) = 194
    counts.iter().map(|count| count * count).sum::<u64>() * 194 < total * total
}

/// A zstd frame (RFC 8878, section 3.1.1) of raw blocks: decodes at the speed of a copy.
fn write_raw_frame(plane: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&ZSTD_MAGIC);
    out.push(0xA0);
    out.extend_from_slice(&u32::try_from(plane.len()).unwrap_or(u32::MAX).to_le_bytes());
    let mut blocks = plane.chunks(RAW_BLOCK).peekable();
    while let Some(block) = blocks.next() {
        let last = u32::from(blocks.peek().is_none());
        let header = u32::try_from(block.len()).unwrap_or(u32::MAX) << 3 | last;
        out.extend_from_slice(&header.to_le_bytes()[..3]);
        out.extend_from_slice(block);
    }
}

/// Decompresses pages; the context is reused.
#[derive(Default)]
pub struct Decompressor {
    zstd: zstd_safe::DCtx<'static>,
}

impl Decompressor {
    /// For all codecs.
    ///
    /// # Errors
    /// When libzstd has no memory for a context.
    pub fn new() -> io::Result<Self> {
        Ok(Self { zstd: zstd_safe::DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)? })
    }

    /// The planes of a row, `[4, vocab]`, that a page's body holds: decompressed into `planes`, which has their length, or the body itself where
    /// it is not compressed.
    ///
    /// # Errors
    /// When the body is not what the codec's row of the table in format section 8.2 says, to the last byte.
    pub fn decompress<'a>(
        &mut self,
        codec: Codec,
        body: &'a [u8],
        planes: &'a mut [u8],
    ) -> Result<&'a [u8], ShardFault> {
        match codec {
            Codec::None if body.len() == planes.len() => return Ok(body),
            Codec::None => {
                let found = format!("{} bytes", body.len());
                return Err(ShardFault::new(format!("{} bytes", planes.len()), found));
            }
            Codec::Lz4 => {
                let expected = planes.len();
                lz4::decompress(body, planes)
                    .map_err(|found| ShardFault::new(format!("an LZ4 block of {expected} bytes"), found))?;
            }
            Codec::Zstd => {
                let mut rest = body;
                for plane in planes.chunks_exact_mut((planes.len() / 4).max(1)) {
                    rest = self.decompress_plane(rest, plane)?;
                }
                if !rest.is_empty() {
                    return Err(ShardFault::new("four zstd frames a page", format!("{} bytes after them", rest.len())));
                }
            }
        }
        Ok(planes)
    }

    fn decompress_plane<'a>(&mut self, body: &'a [u8], plane: &mut [u8]) -> Result<&'a [u8], ShardFault> {
        let fault = |found: String| Err(ShardFault::new("a zstd frame of a plane", found));
        let whole = zstd_safe::find_frame_compressed_size(body).ok().filter(|&len| len <= body.len());
        let (Some(len), true) = (whole, body.starts_with(&ZSTD_MAGIC)) else {
            return fault("no zstd frame".to_owned());
        };
        let (frame, rest) = body.split_at(len);
        // Descriptor (RFC 8878, section 3.1.1.1.1): no unused or reserved bit, no checksum, no dictionary.
        if frame.get(4).is_none_or(|descriptor| descriptor & 0b0001_1111 != 0) {
            return fault("a frame with a checksum, a dictionary or a bit that is reserved".to_owned());
        }
        let stated = zstd_safe::get_frame_content_size(frame).ok().flatten();
        if stated != u64::try_from(plane.len()).ok() {
            return fault(format!("a frame that states a content size of {stated:?}"));
        }
        match self.zstd.decompress(plane, frame) {
            Ok(len) if len == plane.len() => Ok(rest),
            Ok(len) => fault(format!("{len} bytes in the frame")),
            Err(code) => fault(zstd_safe::get_error_name(code).to_owned()),
        }
    }
}

fn zstd_error(code: usize) -> io::Error {
    io::Error::other(zstd_safe::get_error_name(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Blake3;
    use crate::id::long;

    fn planes(vocab: usize) -> Vec<u8> {
        let noise = |n: usize| u8::try_from(n.wrapping_mul(0x9E37_79B1) >> 24 & 0xff).unwrap();
        (0..vocab * 4).map(|n| if n < vocab * 2 { 0 } else { noise(n) }).collect()
    }

    #[test]
    fn every_codec_gives_back_the_planes() {
        for codec in Codec::ALL {
            for vocab in [1, 7, 200_000] {
                let planes = planes(vocab);
                let mut body = Vec::new();
                Compressor::new(codec).unwrap().compress(&planes, &mut body).unwrap();
                let mut again = vec![0xee; planes.len()];
                let found = Decompressor::new().unwrap().decompress(codec, &body, &mut again).unwrap() == planes;
                assert!(found, "{codec:?} {vocab}");
                body.push(0);
                assert!(
                    Decompressor::new().unwrap().decompress(codec, &body, &mut again).is_err(),
                    "{codec:?} {vocab}"
                );
            }
        }
    }

    #[test]
    fn no_compressor_reaches_the_limit_of_a_page() {
        for vocab in (1..300_usize).chain((300..1 << 24).step_by(9973)).chain([1 << 24]) {
            let (size, zstd) = (vocab * 4, zstd_safe::compress_bound(vocab) * 4);
            // LZ4_compressBound
            let lz4 = size + size / 255 + 16;
            assert!(long(zstd.max(lz4)) < max_compressed(long(size)), "{vocab}");
        }
        let noise: Vec<u8> = (0..25_000_u32).flat_map(|n| Blake3::of(&n.to_le_bytes()).0).collect();
        for codec in Codec::ALL {
            let mut body = Vec::new();
            Compressor::new(codec).unwrap().compress(&noise, &mut body).unwrap();
            assert!(body.len() >= noise.len() && long(body.len()) <= max_compressed(long(noise.len())), "{codec:?}");
        }
    }

    #[test]
    fn noise_is_stored_raw_and_what_is_skewed_is_coded() {
        let vocab = 200_000;
        let skewed = |n: usize| u8::try_from(n.wrapping_mul(0x9E37_79B1).leading_zeros()).unwrap();
        let planes: Vec<u8> = [planes(vocab)[vocab * 3..].to_vec(), (0..vocab).map(skewed).collect()].concat();
        for (plane, raw) in planes.chunks(vocab).zip([true, false]) {
            let mut body = Vec::new();
            Compressor::new(Codec::Zstd).unwrap().compress_plane(plane, &mut body).unwrap();
            assert_eq!(looks_random(plane), raw);
            assert_eq!(body.len() > vocab, raw, "{}", body.len());
            assert!(raw || body.len() < vocab / 2, "{}", body.len());
        }
        assert!(!looks_random(&planes[..SAMPLE.0 - 1]));
    }

    #[test]
    fn skippable_and_missing_frames_are_refused() {
        let planes = planes(1000);
        let mut body = Vec::new();
        Compressor::new(Codec::Zstd).unwrap().compress(&planes, &mut body).unwrap();
        let mut decompressor = Decompressor::new().unwrap();
        let mut out = vec![0; planes.len()];
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 1, 2], body.as_slice()].concat();
        assert!(decompressor.decompress(Codec::Zstd, &skippable, &mut out).is_err());
        for cut in 0..body.len() {
            assert!(decompressor.decompress(Codec::Zstd, &body[..cut], &mut out).is_err(), "{cut}");
        }
    }

    #[test]
    fn headers_round_trip_and_nothing_else_is_read() {
        let header =
            PageHeader { uncompressed: 600, compressed: 77, crc: 0xdead_beef, values: 150, encoding: Encoding::Plain };
        let bytes = header.encode();
        assert!(bytes.len() <= MAX_HEADER);
        assert_eq!(PageHeader::decode(&bytes, Encoding::Plain).unwrap(), (header, bytes.len()));
        assert!(PageHeader::decode(&bytes, Encoding::ByteStreamSplit).is_err());
        for cut in 0..bytes.len() {
            assert!(PageHeader::decode(&bytes[..cut], Encoding::Plain).is_err());
        }
    }
}
