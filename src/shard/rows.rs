//! Rows shards: the typed columns of the row record, for SQL and for `verify`.
//!
//! Rows go in and come out; one page a column, PLAIN, uncompressed. Reading ends with encoding the rows again and comparing all
//! bytes, so a file that is read holds its rows and nothing else. See `specs/format-v1.md`, section 8.3.

use super::page::{Encoding, PageHeader};
use super::thrift::{Reader, Struct, write_varint};
use super::{CREATED_BY, MAGIC, ShardFault};
use crate::id::long;
use crate::row::{FIELDS, Field, Interner, Kind, Row, Value, is_canonical_x};

/// The most rows of one shard.
pub const MAX_SHARD_ROWS: u64 = 65_536;
/// Where this writer cuts: before the row that would bring a shard's row records beyond this many bytes.
pub const CUT_BYTES: usize = 64 << 20;

fn physical_type(kind: Kind) -> i32 {
    match kind {
        Kind::Int32 => 1,
        Kind::Int64 => 2,
        Kind::Text => 6,
        Kind::Digest => 7,
    }
}

/// The file of `rows`, which are one shard's.
#[must_use]
pub fn encode(rows: &[Row]) -> Vec<u8> {
    let count = long(rows.len());
    let mut file = MAGIC.to_vec();
    let mut total = 0;
    let mut chunks = Vec::new();
    for (index, field) in FIELDS.iter().enumerate() {
        let body = encode_column(rows, index, field);
        let size = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let header = PageHeader {
            uncompressed: size,
            compressed: size,
            crc: crc32fast::hash(&body),
            values: u32::try_from(count).unwrap_or(u32::MAX),
            encoding: Encoding::Plain,
        }
        .encode();
        let bytes = long(header.len() + body.len());
        let offset = long(file.len());
        file.extend(header);
        file.extend(body);
        total += bytes;
        let encodings: &[i32] = if field.required { &[0] } else { &[0, 3] };
        let column = Struct::default()
            .i32(1, physical_type(field.kind))
            .i32s(2, encodings)
            .texts(3, &[field.name])
            .i32(4, 0)
            .i64(5, count)
            .i64(6, bytes)
            .i64(7, bytes)
            .i64(9, offset);
        chunks.push(Struct::default().i64(2, 0).nested(3, column));
    }
    let root = Struct::default().text(4, "rows").i32(5, i32::try_from(FIELDS.len()).unwrap_or(i32::MAX));
    let columns = FIELDS.iter().map(schema_element);
    let schema: Vec<Struct> = std::iter::once(root).chain(columns).collect();
    let group = Struct::default().structs(1, chunks.into_iter()).i64(2, total).i64(3, count);
    let footer = Struct::default()
        .i32(1, 1)
        .structs(2, schema.into_iter())
        .i64(3, count)
        .structs(4, [group].into_iter())
        .text(6, CREATED_BY)
        .finish();
    let len = u32::try_from(footer.len()).unwrap_or(u32::MAX);
    file.extend(footer);
    file.extend(len.to_le_bytes());
    file.extend(MAGIC);
    file
}

fn schema_element(field: &Field) -> Struct {
    let element = Struct::default().i32(1, physical_type(field.kind));
    let element = if field.kind == Kind::Digest { element.i32(2, 32) } else { element };
    let element = element.i32(3, i32::from(!field.required)).text(4, field.name);
    if field.kind == Kind::Text {
        let string = Struct::default().nested(1, Struct::default());
        element.i32(6, 0).nested(10, string)
    } else {
        element
    }
}

fn encode_column(rows: &[Row], index: usize, field: &Field) -> Vec<u8> {
    let mut levels = Vec::new();
    let mut values = Vec::new();
    let mut run = (false, 0_u64);
    let mut end_run = |(present, len): (bool, u64)| {
        if len > 0 {
            write_varint(len << 1, &mut levels);
            levels.push(u8::from(present));
        }
    };
    for row in rows {
        let value = row.get(index);
        if value.is_some() == run.0 {
            run.1 += 1;
        } else {
            end_run(run);
            run = (value.is_some(), 1);
        }
        match value {
            None => {}
            Some(Value::Int32(n)) => values.extend(n.to_le_bytes()),
            Some(Value::Int64(n)) => values.extend(n.to_le_bytes()),
            Some(Value::Digest(digest)) => values.extend(digest),
            Some(Value::Text(text)) => {
                values.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
                values.extend(text.as_bytes());
            }
        }
    }
    end_run(run);
    if field.required {
        return values;
    }
    let mut body = u32::try_from(levels.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
    body.extend(levels);
    body.extend(values);
    body
}

/// The rows of a shard's file.
///
/// # Errors
/// When the bytes are not exactly those that [`encode`] gives for `count` rows.
pub fn decode(file: &[u8], count: u64) -> Result<Vec<Row>, ShardFault> {
    let mut rest = file.strip_prefix(MAGIC).ok_or_else(|| ShardFault::new("PAR1 at the start", "other bytes"))?;
    let mut rows = Vec::new();
    let mut interner = Interner::default();
    for (index, field) in FIELDS.iter().enumerate() {
        let page = long(index);
        let (header, len) = PageHeader::decode(rest, Encoding::Plain).map_err(|fault| fault.in_page(page))?;
        let size = usize::try_from(header.compressed).unwrap_or(usize::MAX);
        let body = rest.get(len..).and_then(|rest| rest.get(..size)).ok_or_else(|| {
            let found = format!("a page that claims {size} bytes");
            ShardFault::new(format!("at most the {} bytes that are left", rest.len()), found).in_page(page)
        })?;
        if u64::from(header.values) != count {
            let fault = ShardFault::new(format!("{count} values"), header.values.to_string());
            return Err(fault.in_page(page));
        }
        if index == 0 {
            // The first column is required: four bytes a row are there before room is made for the rows.
            if long(body.len()) != count * 4 {
                let fault = ShardFault::new(format!("{} bytes", count * 4), body.len().to_string());
                return Err(fault.in_page(page));
            }
            rows.resize(body.len() / 4, Row::default());
        }
        decode_column(body, index, field, &mut rows, &mut interner).map_err(|fault| fault.in_page(page))?;
        rest = rest.get(len + size..).unwrap_or_default();
    }
    if encode(&rows) == file {
        Ok(rows)
    } else {
        Err(ShardFault::new("the bytes that its rows imply", "other bytes in headers, levels or footer"))
    }
}

fn decode_column(
    body: &[u8],
    index: usize,
    field: &Field,
    rows: &mut [Row],
    interner: &mut Interner,
) -> Result<(), ShardFault> {
    let short = || ShardFault::new(format!("values of {} for every row", field.name), "too few bytes");
    let (levels, mut values) = if field.required {
        (None, body)
    } else {
        let (len, rest) = body.split_first_chunk::<4>().ok_or_else(short)?;
        let len = usize::try_from(u32::from_le_bytes(*len)).map_err(|_| short())?;
        let (levels, values) = rest.split_at_checked(len).ok_or_else(short)?;
        (Some(levels), values)
    };
    let mut levels = levels.map(|bytes| (Reader::new(bytes), bytes));
    let mut run = (true, u64::MAX);
    if levels.is_some() {
        run = (false, 0);
    }
    for row in rows.iter_mut() {
        while run.1 == 0 {
            let (reader, bytes) = levels.as_mut().ok_or_else(short)?;
            let len = reader.varint().ok_or_else(short)?;
            let level = bytes.get(reader.at).copied().ok_or_else(short)?;
            reader.at += 1;
            run = (level == 1, len >> 1);
        }
        run.1 -= 1;
        if !run.0 {
            continue;
        }
        let value = take_value(field.kind, &mut values, interner).ok_or_else(short)?;
        if let (Value::Text(text), "x") = (&value, field.name)
            && !is_canonical_x(text)
        {
            return Err(ShardFault::new("x: an object of strings and integers in canonical form", "another text"));
        }
        row.set(index, value)
            .map_err(|fault| ShardFault::new(format!("{}: {}", fault.field, fault.expected), fault.found))?;
    }
    if values.is_empty() { Ok(()) } else { Err(ShardFault::new("no bytes after the values", values.len().to_string())) }
}

fn take_value(kind: Kind, values: &mut &[u8], interner: &mut Interner) -> Option<Value> {
    fn take<'a, const N: usize>(values: &mut &'a [u8]) -> Option<&'a [u8; N]> {
        let (head, rest) = values.split_first_chunk()?;
        *values = rest;
        Some(head)
    }
    Some(match kind {
        Kind::Int32 => Value::Int32(u32::from_le_bytes(*take(values)?)),
        Kind::Int64 => Value::Int64(u64::from_le_bytes(*take(values)?)),
        Kind::Digest => Value::Digest(*take(values)?),
        Kind::Text => {
            let len = usize::try_from(u32::from_le_bytes(*take(values)?)).ok()?;
            let (text, rest) = values.split_at_checked(len)?;
            *values = rest;
            Value::Text(interner.intern(std::str::from_utf8(text).ok()?))
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::id::{RequestKey, RowKey, TokenId};

    fn sample() -> Vec<Row> {
        (0..9_u32)
            .map(|n| Row {
                key: RowKey { request: RequestKey { prompt_index: n / 3, sample_index: 0 }, position: n % 3 },
                request_id: Arc::from(format!("r{}", n / 3)),
                token_id: TokenId(n),
                argmax: (n % 2 == 0).then_some(TokenId(n)),
                captured_seq: Some(u64::from(n)),
                x: (n == 4).then(|| Arc::from(r#"{"a":1}"#)),
                ..Row::default()
            })
            .collect()
    }

    #[test]
    fn rows_round_trip() {
        let rows = sample();
        assert_eq!(decode(&encode(&rows), 9).unwrap(), rows);
    }

    #[test]
    fn no_byte_can_change_unseen() {
        let rows = sample();
        let file = encode(&rows);
        for at in 0..file.len() {
            let mut bad = file.clone();
            bad[at] ^= 0x41;
            assert!(decode(&bad, 9).map_or(true, |other| other != rows), "byte {at}");
            assert!(decode(&file[..at], 9).is_err(), "cut at {at}");
        }
        assert!(decode(&[file.as_slice(), b"x"].concat(), 9).is_err());
    }
}
