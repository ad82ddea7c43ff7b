//! Rows shards: the typed columns of the row record, for SQL and for `verify`.
//!
//! Rows go in and come out; one page a column, PLAIN, uncompressed. Reading ends with encoding the rows again and comparing all
//! bytes, so a file that is read holds its rows and nothing else. See `specs/format-v1.md`, section 8.3.

use super::page::{Encoding, PageHeader};
use super::thrift::{Reader, Struct, write_varint};
use super::{CREATED_BY, MAGIC, ShardFault};
use crate::id::long;
use crate::row::{FIELDS, Field, Interner, Kind, ROW_DOMAIN, Row, Value, is_canonical_x};

/// The most rows of one shard.
pub const MAX_SHARD_ROWS: u64 = 65_536;
/// Where this writer cuts: before the row that would bring a shard's row records beyond this many bytes.
pub const CUT_BYTES: usize = 64 << 20;

/// The most bytes of a file of `rows` rows, of which a shard has [`MAX_SHARD_ROWS`] at most: what their fields can take, two bytes a field for whether it
/// is there, headers and footer.
#[must_use]
pub fn max_bytes(rows: u64) -> u64 {
    rows.min(MAX_SHARD_ROWS).saturating_mul(MAX_ROW_BYTES).saturating_add(64 << 10)
}

/// A row of the longest texts, with every other field: `x`, two names, a phase, integers and digests.
const MAX_ROW_BYTES: u64 = 68 << 10;

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
    let columns = Column::all(file, count)?;
    // The first column is required: four bytes a row are there before room is made for the rows.
    let there = columns.first().map_or(0, |column| column.values.len() / 4);
    let mut rows = vec![Row::default(); there];
    let mut interner = Interner::default();
    for (index, column) in columns.into_iter().enumerate() {
        decode_column(column, index, &mut rows, &mut interner).map_err(|fault| fault.in_page(long(index)))?;
    }
    if encode(&rows) == file {
        Ok(rows)
    } else {
        Err(ShardFault::new("the bytes that its rows imply", "other bytes in headers, levels or footer"))
    }
}

fn decode_column(
    mut column: Column<'_>,
    index: usize,
    rows: &mut [Row],
    interner: &mut Interner,
) -> Result<(), ShardFault> {
    let field = column.field;
    for row in rows.iter_mut() {
        let Some(bytes) = column.next()? else { continue };
        let value = value(field.kind, bytes, interner).ok_or_else(|| column.short())?;
        if let (Value::Text(text), "x") = (&value, field.name)
            && !is_canonical_x(text)
        {
            return Err(ShardFault::new("x: an object of strings and integers in canonical form", "another text"));
        }
        row.set(index, value)
            .map_err(|fault| ShardFault::new(format!("{}: {}", fault.field, fault.expected), fault.found))?;
    }
    if column.values.is_empty() {
        Ok(())
    } else {
        Err(ShardFault::new("no bytes after the values", column.values.len().to_string()))
    }
}

fn value(kind: Kind, bytes: &[u8], interner: &mut Interner) -> Option<Value> {
    Some(match kind {
        Kind::Int32 => Value::Int32(u32::from_le_bytes(bytes.try_into().ok()?)),
        Kind::Int64 => Value::Int64(u64::from_le_bytes(bytes.try_into().ok()?)),
        Kind::Digest => Value::Digest(bytes.try_into().ok()?),
        Kind::Text => Value::Text(interner.intern(std::str::from_utf8(bytes).ok()?)),
    })
}

/// The row records of a shard's file, one after the other, as its columns have them. Whether they are records of rows, and whether the rest of
/// the file is what they imply, is not looked at: for one who has a root to compare them with.
pub struct Records<'a> {
    columns: Vec<Column<'a>>,
    left: u64,
}

impl<'a> Records<'a> {
    /// Of `count` rows.
    ///
    /// # Errors
    /// When the file does not begin with a page of so many values for each column.
    pub fn new(file: &'a [u8], count: u64) -> Result<Self, ShardFault> {
        Ok(Self { columns: Column::all(file, count)?, left: count })
    }

    /// Writes the next record into `out`, replacing what is there; false after the last.
    ///
    /// # Errors
    /// When a column is too short.
    pub fn next(&mut self, out: &mut Vec<u8>) -> Result<bool, ShardFault> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(false) };
        self.left = left;
        out.clear();
        out.extend_from_slice(ROW_DOMAIN);
        for (page, column) in self.columns.iter_mut().enumerate() {
            let Some(bytes) = column.next().map_err(|fault| fault.in_page(long(page)))? else { continue };
            if column.field.tag != 0 {
                out.push(column.field.tag);
                out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
            }
            out.extend_from_slice(bytes);
        }
        Ok(true)
    }
}

/// What is left of a column: which rows have a value, and the values.
struct Column<'a> {
    field: &'static Field,
    /// Where not all rows have one
    levels: Reader<'a>,
    run: (bool, u64),
    values: &'a [u8],
}

impl<'a> Column<'a> {
    /// All columns of a file of `count` rows, each as its page's body has it.
    fn all(file: &'a [u8], count: u64) -> Result<Vec<Self>, ShardFault> {
        let mut rest = file.strip_prefix(MAGIC).ok_or_else(|| ShardFault::new("PAR1 at the start", "other bytes"))?;
        let mut columns = Vec::with_capacity(FIELDS.len());
        for (page, field) in (0..).zip(&FIELDS) {
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
            if page == 0 && long(body.len()) != count * 4 {
                let fault = ShardFault::new(format!("{} bytes", count * 4), body.len().to_string());
                return Err(fault.in_page(page));
            }
            columns.push(Self::of(field, body).map_err(|fault| fault.in_page(page))?);
            rest = rest.get(len + size..).unwrap_or_default();
        }
        Ok(columns)
    }

    fn of(field: &'static Field, body: &'a [u8]) -> Result<Self, ShardFault> {
        let mut column = Self { field, levels: Reader::new(&[]), run: (true, u64::MAX), values: body };
        if !field.required {
            let (len, rest) = body.split_first_chunk::<4>().ok_or_else(|| column.short())?;
            let parts = usize::try_from(u32::from_le_bytes(*len)).ok().and_then(|len| rest.split_at_checked(len));
            let (levels, values) = parts.ok_or_else(|| column.short())?;
            column = Self { field, levels: Reader::new(levels), run: (false, 0), values };
        }
        Ok(column)
    }

    /// The bytes of the next row's value, as a record has them; none where the row has no value.
    fn next(&mut self) -> Result<Option<&'a [u8]>, ShardFault> {
        while self.run.1 == 0 {
            let run = self.levels.varint().and_then(|len| Some((self.levels.byte()? == 1, len >> 1)));
            self.run = run.ok_or_else(|| self.short())?;
        }
        self.run.1 -= 1;
        if !self.run.0 {
            return Ok(None);
        }
        let len = match self.field.kind {
            Kind::Int32 => Some(4),
            Kind::Int64 => Some(8),
            Kind::Digest => Some(32),
            Kind::Text => self.values.split_first_chunk().and_then(|(len, rest)| {
                self.values = rest;
                usize::try_from(u32::from_le_bytes(*len)).ok()
            }),
        };
        let parts = len.and_then(|len| self.values.split_at_checked(len));
        let (value, rest) = parts.ok_or_else(|| self.short())?;
        self.values = rest;
        Ok(Some(value))
    }

    fn short(&self) -> ShardFault {
        ShardFault::new(format!("values of {} for every row", self.field.name), "too few bytes")
    }
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
    fn rows_at_every_limit_stay_below_the_limit_of_their_shard() {
        let name: Arc<str> = "n".repeat(crate::row::MAX_NAME).into();
        let mut row = Row { request_id: Arc::clone(&name), ..Row::default() };
        for (index, field) in FIELDS.iter().enumerate() {
            let value = match field.kind {
                Kind::Int32 => Value::Int32(1),
                Kind::Int64 => Value::Int64(1),
                Kind::Digest => Value::Digest([1; 32]),
                Kind::Text if field.name == "phase" => Value::Text("prefill".into()),
                Kind::Text if field.name == "x" => {
                    Value::Text(format!(r#"{{"a":"{}"}}"#, "x".repeat(crate::row::MAX_X - 8)).into())
                }
                Kind::Text => Value::Text(Arc::clone(&name)),
            };
            row.set(index, value).unwrap();
        }
        for count in [1, 2, 40] {
            // Fields that come and go have the longest levels.
            let rows: Vec<Row> =
                (0..count).map(|n| if n % 2 == 0 { row.clone() } else { sample()[n % 9].clone() }).collect();
            let (file, limit) = (encode(&rows), max_bytes(long(count)));
            assert!(long(file.len()) <= limit);
            assert_eq!(decode(&file, long(count)).unwrap(), rows);
        }
        assert!(
            max_bytes(1) - max_bytes(0) - long(encode(&[row]).len() - encode(&[]).len()) < 2048,
            "and not far below"
        );
    }

    #[test]
    fn the_records_are_those_of_the_rows() {
        let rows = sample();
        let file = encode(&rows);
        let (mut records, mut found, mut expected) = (Records::new(&file, 9).unwrap(), Vec::new(), Vec::new());
        for row in &rows {
            row.write_record(&mut expected);
            assert_eq!(records.next(&mut found), Ok(true));
            assert_eq!(found, expected);
        }
        assert_eq!(records.next(&mut found), Ok(false));
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
