//! LZ4 blocks, read: a block and the room for what it holds go in, the room comes out full, or a fault.
//!
//! A row's zero planes are one match that overlaps itself over some hundred thousand bytes, which general decoders copy in steps of its offset;
//! here the part that is copied doubles. Nothing is allocated, and every index is checked. Writing is `lz4_flex`'s. See `specs/format-v1.md`,
//! section 8.2.

/// The shortest match; lengths in a token count from it.
const MIN_MATCH: usize = 4;
/// A token's length that is continued in the bytes after it.
const CONTINUED: usize = 15;
/// Copies of up to this many bytes are made as one of exactly as many, where there is room.
const WIDE: usize = 16;

/// Decompresses `block` into `out`, all of it.
///
/// # Errors
/// What is wrong with a block that does not hold exactly as many bytes.
pub(super) fn decompress(block: &[u8], out: &mut [u8]) -> Result<(), &'static str> {
    const CUT: &str = "a block that is cut off";
    const LONGER: &str = "a block of more bytes";
    let (mut from, mut to) = (0, 0);
    loop {
        let token = *block.get(from).ok_or(CUT)?;
        from += 1;
        let literals = read_length(block, &mut from, usize::from(token >> 4)).ok_or(CUT)?;
        if literals <= WIDE
            && let Some(source) = block.get(from..from + WIDE)
            && let Some(target) = out.get_mut(to..to + WIDE)
        {
            target.copy_from_slice(source);
            if to + literals > out.len() {
                return Err(LONGER);
            }
        } else {
            let source = block.get(from..).and_then(|rest| rest.get(..literals)).ok_or(CUT)?;
            let target = out.get_mut(to..).and_then(|rest| rest.get_mut(..literals)).ok_or(LONGER)?;
            target.copy_from_slice(source);
        }
        (from, to) = (from + literals, to + literals);
        if from == block.len() {
            return if to == out.len() { Ok(()) } else { Err("a block of fewer bytes") };
        }
        let Some(&[low, high]) = block.get(from..from + 2) else { return Err(CUT) };
        from += 2;
        let offset = usize::from(u16::from_le_bytes([low, high]));
        let length = read_length(block, &mut from, usize::from(token & 15)).ok_or(CUT)? + MIN_MATCH;
        if offset == 0 || offset > to {
            return Err("a match with what is not there");
        }
        if length > out.len() - to {
            return Err(LONGER);
        }
        copy_match(out, to, offset, length);
        to += length;
    }
}

/// A length that a token begins, with the bytes that continue it.
fn read_length(block: &[u8], at: &mut usize, begun: usize) -> Option<usize> {
    let mut length = begun;
    if begun == CONTINUED {
        loop {
            let more = *block.get(*at)?;
            *at += 1;
            length += usize::from(more);
            if more != u8::MAX {
                break;
            }
        }
    }
    Some(length)
}

/// Copies `length` bytes that begin `offset` before `to`; where they overlap, what was copied is copied on.
fn copy_match(out: &mut [u8], to: usize, offset: usize, length: usize) {
    let start = to - offset;
    if length <= WIDE && offset >= WIDE && out.len() - to >= WIDE {
        out.copy_within(start..start + WIDE, to);
        return;
    }
    let (mut at, end) = (to, to + length);
    while at < end {
        // From the start of the match to here the bytes repeat with a period of `offset`.
        let step = (at - start).min(end - at);
        out.copy_within(start..start + step, at);
        at += step;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(n: usize) -> u8 {
        u8::try_from(n.wrapping_mul(0x9E37_79B1) >> 13 & 0xff).unwrap()
    }

    #[test]
    fn what_lz4_flex_writes_is_read() {
        for len in [0, 1, 5, 13, 20, 64, 1000, 70_000, 300_000] {
            let kinds: [&dyn Fn(usize) -> u8; 5] = [&|_| 0, &noise, &|n| noise(n) & 3, &|n| noise(n % 7), &|n| {
                if n % 97 < 40 { 7 } else { noise(n) & 31 }
            }];
            for kind in kinds {
                let bytes: Vec<u8> = (0..len).map(kind).collect();
                let block = lz4_flex::block::compress(&bytes);
                let mut out = vec![0xee; len];
                assert_eq!(decompress(&block, &mut out), Ok(()), "{len}");
                assert!(out == bytes, "{len}");
                assert!(decompress(&block, &mut vec![0; len + 1]).is_err());
                if len > 0 {
                    assert!(decompress(&block, &mut vec![0; len - 1]).is_err());
                }
            }
        }
    }

    #[test]
    fn damaged_blocks_are_answered_as_lz4_flex_does() {
        let bytes: Vec<u8> = (0..600).map(|n| if n % 97 < 40 { 7 } else { noise(n) & 31 }).collect();
        let block = lz4_flex::block::compress(&bytes);
        for at in 0..block.len() {
            for flip in [1, 0x10, 0x80, 0xff] {
                let mut damaged = block.clone();
                damaged[at] ^= flip;
                for block in [&damaged[..], &damaged[..at]] {
                    let (mut ours, mut theirs) = (vec![0; bytes.len()], vec![0; bytes.len()]);
                    let good =
                        lz4_flex::block::decompress_into(block, &mut theirs).is_ok_and(|len| len == theirs.len());
                    assert_eq!(decompress(block, &mut ours).is_ok(), good, "{at} {flip}");
                    assert!(!good || ours == theirs, "{at} {flip}");
                }
            }
        }
    }
}
