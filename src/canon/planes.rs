//! Byte planes: the bytes of many values, first all first bytes, then all second ones (Parquet's BYTE_STREAM_SPLIT).
//!
//! Values come in as bytes and go out as planes, or the other way; the slices of a call hold equally many values. The loops are written so that
//! compilers make whole vectors of them: through integers of the value's width, in blocks of a constant size, the last one padded.

/// Values of a block.
const LANES: usize = 64;

/// Joins two planes to values of two bytes.
pub(super) fn join2([low, high]: [&[u8]; 2], out: &mut [u8]) {
    for ((value, &low), &high) in out.as_chunks_mut::<2>().0.iter_mut().zip(low).zip(high) {
        *value = [low, high];
    }
}

/// Joins four planes to values of four bytes.
pub(super) fn join4(planes: [&[u8]; 4], out: &mut [u8]) {
    let [a, b, c, d] = planes.map(|plane| plane.as_chunks::<LANES>());
    let (blocks, rest) = out.as_chunks_mut();
    for ((((out, a), b), c), d) in blocks.iter_mut().zip(a.0).zip(b.0).zip(c.0).zip(d.0) {
        join4_block([a, b, c, d], out);
    }
    let mut last = [0; 4 * LANES];
    join4_block([&padded(a.1), &padded(b.1), &padded(c.1), &padded(d.1)], &mut last);
    unpad(&last, rest);
}

fn join4_block([a, b, c, d]: [&[u8; LANES]; 4], out: &mut [u8; 4 * LANES]) {
    let (low, high) = (join_words(a, b), join_words(c, d));
    for ((value, low), high) in out.as_chunks_mut::<4>().0.iter_mut().zip(low).zip(high) {
        *value = (u32::from(low) | u32::from(high) << 16).to_le_bytes();
    }
}

fn join_words(low: &[u8; LANES], high: &[u8; LANES]) -> [u16; LANES] {
    let mut words = [0; LANES];
    for ((word, &low), &high) in words.iter_mut().zip(low).zip(high) {
        *word = u16::from_le_bytes([low, high]);
    }
    words
}

/// Splits values of two bytes into their planes.
pub(super) fn split2(values: &[u8], planes: [&mut [u8]; 2]) {
    let [a, b] = planes.map(|plane| plane.as_chunks_mut::<LANES>());
    let (blocks, rest) = values.as_chunks::<{ 2 * LANES }>();
    for ((values, a), b) in blocks.iter().zip(a.0).zip(b.0) {
        unzip(values, a, b);
    }
    let (mut last_a, mut last_b) = ([0; LANES], [0; LANES]);
    unzip(&padded::<{ 2 * LANES }>(rest), &mut last_a, &mut last_b);
    unpad(&last_a, a.1);
    unpad(&last_b, b.1);
}

/// Splits values of four bytes into their planes.
pub(super) fn split4(values: &[u8], planes: [&mut [u8]; 4]) {
    let [a, b, c, d] = planes.map(|plane| plane.as_chunks_mut::<LANES>());
    let (blocks, rest) = values.as_chunks();
    for ((((values, a), b), c), d) in blocks.iter().zip(a.0).zip(b.0).zip(c.0).zip(d.0) {
        split4_block(values, [a, b, c, d]);
    }
    let mut last = [[0; LANES]; 4];
    split4_block(&padded(rest), last.each_mut());
    last.iter().zip([a.1, b.1, c.1, d.1]).for_each(|(last, rest)| unpad(last, rest));
}

fn split4_block(values: &[u8; 4 * LANES], [a, b, c, d]: [&mut [u8; LANES]; 4]) {
    let (mut ac, mut bd) = ([0; 2 * LANES], [0; 2 * LANES]);
    unzip(values, &mut ac, &mut bd);
    unzip(&ac, a, c);
    unzip(&bd, b, d);
}

/// First bytes and second bytes of pairs.
fn unzip<const N: usize>(pairs: &[u8], first: &mut [u8; N], second: &mut [u8; N]) {
    for ((first, second), &pair) in first.iter_mut().zip(second).zip(pairs.as_chunks::<2>().0) {
        let word = u16::from_le_bytes(pair);
        *first = (word & 0xff) as u8;
        *second = (word >> 8) as u8;
    }
}

/// Whether all bytes are zero in the bits of `mask`.
pub(super) fn is_clear(plane: &[u8], mask: u8) -> bool {
    let (blocks, rest) = plane.as_chunks::<LANES>();
    let clear = |block: &[u8; LANES]| block.iter().fold(0, |any, byte| any | byte) & mask == 0;
    blocks.iter().all(clear) && clear(&padded(rest))
}

fn padded<const N: usize>(rest: &[u8]) -> [u8; N] {
    let mut block = [0; N];
    block.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    block
}

fn unpad(block: &[u8], rest: &mut [u8]) {
    rest.iter_mut().zip(block).for_each(|(to, from)| *to = *from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_split_is_joined() {
        for len in [0, 1, 63, 64, 65, 1000] {
            let values: Vec<u8> = (0..len * 4).map(|n| u8::try_from(n * 7 % 251).unwrap()).collect();
            let planes: [Vec<u8>; 4] = [0, 1, 2, 3].map(|k| values.iter().skip(k).step_by(4).copied().collect());
            let mut split = [0; 4].map(|_| vec![0; len]);
            let mut joined = vec![0; len * 4];
            split4(&values, split.each_mut().map(Vec::as_mut_slice));
            join4(split.each_ref().map(Vec::as_slice), &mut joined);
            assert!(split == planes && joined == values, "{len}");

            let values = &values[..len * 2];
            let mut split = [0; 2].map(|_| vec![0; len]);
            let mut joined = vec![0; len * 2];
            split2(values, split.each_mut().map(Vec::as_mut_slice));
            join2(split.each_ref().map(Vec::as_slice), &mut joined);
            assert!(split[1].iter().eq(values.iter().skip(1).step_by(2)) && joined == values, "{len}");
        }
    }

    #[test]
    fn no_byte_is_overlooked() {
        for len in [1, 64, 65, 200] {
            for at in 0..len {
                let mut plane = vec![0x20; len];
                assert!(is_clear(&plane, 0x1f));
                plane[at] = 1;
                assert!(!is_clear(&plane, 0x1f), "{len} {at}");
            }
        }
    }
}
