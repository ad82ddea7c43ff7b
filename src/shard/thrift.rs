//! Apache Thrift compact protocol: the few pieces that our pages and footers need.
//!
//! [`Struct`] writes fields in ascending order, integers as the shortest zigzag varints. [`Reader`] reads back what a page header
//! holds, strictly. See `specs/format-v1.md`, section 8, and the Thrift compact protocol specification.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A varint: seven bits a byte, lowest first.
pub(super) fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or(0);
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

/// A struct that is being written.
#[derive(Default)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    fn header(&mut self, id: u8, kind: u8) {
        let delta = id.saturating_sub(self.last);
        self.last = id;
        self.bytes.push(delta << 4 | kind);
    }

    /// An i32 field.
    pub(super) fn i32(mut self, id: u8, value: i32) -> Self {
        self.header(id, I32);
        write_varint(zigzag(i64::from(value)), &mut self.bytes);
        self
    }

    /// An i64 field. Sizes and counts: beyond 2^63 − 1 nothing gets here.
    pub(super) fn i64(mut self, id: u8, value: u64) -> Self {
        self.header(id, I64);
        write_varint(zigzag(i64::try_from(value).unwrap_or(i64::MAX)), &mut self.bytes);
        self
    }

    /// A string field.
    pub(super) fn text(mut self, id: u8, value: &str) -> Self {
        self.header(id, BINARY);
        write_text(value, &mut self.bytes);
        self
    }

    /// A struct field.
    pub(super) fn nested(mut self, id: u8, value: Struct) -> Self {
        self.header(id, STRUCT);
        self.bytes.extend(value.finish());
        self
    }

    /// A list of structs.
    pub(super) fn structs(mut self, id: u8, items: impl ExactSizeIterator<Item = Struct>) -> Self {
        self.list(id, STRUCT, items.len());
        for item in items {
            self.bytes.extend(item.finish());
        }
        self
    }

    /// A list of i32.
    pub(super) fn i32s(mut self, id: u8, items: &[i32]) -> Self {
        self.list(id, I32, items.len());
        for &item in items {
            write_varint(zigzag(i64::from(item)), &mut self.bytes);
        }
        self
    }

    /// A list of strings.
    pub(super) fn texts(mut self, id: u8, items: &[&str]) -> Self {
        self.list(id, BINARY, items.len());
        for item in items {
            write_text(item, &mut self.bytes);
        }
        self
    }

    /// The header of a list of structs that are written apart.
    pub(super) fn open_structs(mut self, id: u8, len: usize) -> Vec<u8> {
        self.list(id, STRUCT, len);
        self.bytes
    }

    /// The header of a struct field that is written apart.
    pub(super) fn open_nested(mut self, id: u8) -> Vec<u8> {
        self.header(id, STRUCT);
        self.bytes
    }

    /// The bytes so far, without an end.
    pub(super) fn open(self) -> Vec<u8> {
        self.bytes
    }

    fn list(&mut self, id: u8, kind: u8, len: usize) {
        self.header(id, LIST);
        match u8::try_from(len) {
            Ok(len) if len < 15 => self.bytes.push(len << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                write_varint(u64::try_from(len).unwrap_or(u64::MAX), &mut self.bytes);
            }
        }
    }

    /// The bytes, closed.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    write_varint(u64::try_from(text.len()).unwrap_or(u64::MAX), out);
    out.extend_from_slice(text.as_bytes());
}

/// Reads fields that must stand where they are expected.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    /// Bytes taken so far
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Takes a byte.
    pub(super) fn byte(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied()?;
        self.at = self.at.checked_add(1)?;
        Some(byte)
    }

    /// Takes the header of an i32 field that follows its predecessor by `delta`, and its value.
    pub(super) fn i32(&mut self, delta: u8) -> Option<i32> {
        (self.byte()? == delta << 4 | I32).then_some(())?;
        let raw = self.varint()?;
        let value = (raw >> 1).cast_signed() ^ (raw & 1).cast_signed().checked_neg()?;
        i32::try_from(value).ok()
    }

    /// Takes the header of an i64 field that follows its predecessor by `delta`, and its value, which is not negative.
    pub(super) fn i64(&mut self, delta: u8) -> Option<u64> {
        (self.byte()? == delta << 4 | I64).then_some(())?;
        let raw = self.varint()?;
        (raw & 1 == 0).then_some(raw >> 1)
    }

    /// Takes the header of a list of `len` structs.
    pub(super) fn structs(&mut self, delta: u8, len: u64) -> Option<()> {
        (self.byte()? == delta << 4 | LIST).then_some(())?;
        let head = self.byte()?;
        let found = if head == 0xf0 | STRUCT { self.varint()? } else { u64::from(head >> 4) };
        (head & 0xf == STRUCT && found == len).then_some(())
    }

    /// Takes exactly these bytes.
    pub(super) fn exact(&mut self, expected: &[u8]) -> Option<()> {
        let end = self.at.checked_add(expected.len())?;
        (self.bytes.get(self.at..end)? == expected).then(|| self.at = end)
    }

    /// Takes the header of a struct field.
    pub(super) fn nested(&mut self, delta: u8) -> Option<()> {
        (self.byte()? == delta << 4 | STRUCT).then_some(())
    }

    /// Takes the end of a struct.
    pub(super) fn stop(&mut self) -> Option<()> {
        (self.byte()? == 0).then_some(())
    }

    /// Takes a varint of at most ten bytes.
    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64_u32).step_by(7) {
            let byte = self.byte()?;
            let low = u64::from(byte & 0x7f);
            if shift == 63 && low > 1 {
                return None;
            }
            value |= low << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_round_trip() {
        for value in [0, 1, -1, 63, 64, -64, -65, i32::MAX, i32::MIN] {
            let bytes = Struct::default().i32(3, value).finish();
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.i32(3), Some(value));
            assert_eq!(reader.stop(), Some(()));
            assert_eq!(reader.at, bytes.len());
        }
        assert_eq!(Reader::new(&[0xff; 11]).varint(), None);
        assert_eq!(Reader::new(&[0x80]).varint(), None);
    }

    #[test]
    fn long_lists_have_the_long_header() {
        let bytes = Struct::default().i32s(2, &[0; 15]).finish();
        assert_eq!(bytes.get(..3), Some(&[0x29, 0xf5, 15][..]));
    }
}
