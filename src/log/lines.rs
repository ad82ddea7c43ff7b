//! The lines of a log's entries, one at a time: a line takes no more memory than an entry may have, however long it is.

use std::io::{self, BufRead, BufReader, Read};

use crate::digest::Sha256;
use crate::id::long;
use crate::manifest::MAX_ENTRY;
use crate::merkle::LeafStream;

const BUFFER: usize = 1 << 18;

/// A reader of lines.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    text: Vec<u8>,
}

/// A line.
pub(super) struct Line<'l> {
    /// Its bytes, without the line feed; none where they are too many for an entry
    pub(super) text: Option<&'l [u8]>,
    /// How many they are
    pub(super) bytes: u64,
    /// Leaf hash of them all
    pub(super) leaf: Sha256,
}

impl<R: Read> Lines<R> {
    /// Of what gives `bytes` bytes, as far as is known.
    pub(super) fn new(reader: R, bytes: u64) -> Self {
        let buffer = usize::try_from(bytes).unwrap_or(BUFFER).clamp(1, BUFFER);
        Self { reader: BufReader::with_capacity(buffer, reader), text: Vec::new() }
    }

    /// The next line; none after the last.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.text.clear();
        self.reader.by_ref().take(long(MAX_ENTRY) + 1).read_until(b'\n', &mut self.text)?;
        if self.text.is_empty() {
            return Ok(None);
        }
        let mut ended = self.text.pop_if(|byte| *byte == b'\n').is_some();
        let mut bytes = long(self.text.len());
        let mut leaf = LeafStream::default();
        leaf.update(&self.text);
        while !ended {
            let part = self.reader.fill_buf()?;
            if part.is_empty() {
                break;
            }
            let end = part.iter().position(|&byte| byte == b'\n');
            let (part, used) = end.map_or((part, part.len()), |end| (part.split_at(end).0, end + 1));
            leaf.update(part);
            bytes += long(part.len());
            ended = end.is_some();
            self.reader.consume(used);
        }
        let text = (bytes <= long(MAX_ENTRY)).then_some(self.text.as_slice());
        Ok(Some(Line { text, bytes, leaf: leaf.digest() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merkle::leaf_hash;

    #[test]
    fn lines_of_every_length_have_their_leaf() {
        let lengths = [0, 1, MAX_ENTRY - 1, MAX_ENTRY, MAX_ENTRY + 1, BUFFER - 1, BUFFER, 3 * BUFFER, 5];
        let expected: Vec<Vec<u8>> = lengths.iter().map(|&len| vec![b'a'; len]).collect();
        for (end, bytes) in [("\n", 0), ("\n", u64::MAX), ("", 1 << 16)] {
            let file = expected.join(&b'\n');
            let file = [&file, end.as_bytes()].concat();
            let mut lines = Lines::new(file.as_slice(), bytes);
            for expected in &expected {
                let line = lines.next().unwrap().unwrap();
                assert_eq!((line.bytes, line.leaf), (long(expected.len()), leaf_hash(expected)));
                assert_eq!(line.text, (expected.len() <= MAX_ENTRY).then_some(expected.as_slice()));
            }
            assert!(lines.next().unwrap().is_none());
        }
    }
}
