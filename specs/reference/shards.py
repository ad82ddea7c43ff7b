"""Rows shards and scores shards as Parquet files whose every byte is decided: section 8 of specs/format-v1.md.

Files are read by pyarrow; then what was read is encoded again and compared. What is not as the format has it is a
ValueError (`shard-noncanonical`).
"""
import itertools, re, struct, zlib
import pyarrow as pa, pyarrow.parquet as pq

COLUMNS = [tuple(column.split(":")) for column in (  # section 3.1: the key, then the fields by tag
    "prompt_index:int32 sample_index:int32 position:int32 request_id:string phase:string prefix_sha256:digest "
    "token_id:int32 sampled_token_id:int32 forced_token_id:int32 argmax:int32 runner_up:int32 captured_seq:int64 "
    "forced_seq:int64 step:int64 captured_at_ns:int64 forced_at_ns:int64 scores_modified_at_ns:int64 batch_size:int32 "
    "query_len:int32 kv_len:int32 scores_sha256:digest scores_blake3:digest chain_sha256:digest run_nonce:string "
    "x:string score_digest:digest").split()]
REQUIRED = [name for name, _ in COLUMNS[:7]]

def value(kind, v):
    """The bytes of a value, as in a row record and in PLAIN encoding."""
    if kind == "digest":
        return v
    return v.encode("utf-8") if kind == "string" else struct.pack("<i" if kind == "int32" else "<q", v)

def require(holds, why):
    if not holds:
        raise ValueError(why)

# ---- The compact protocol: a value is a pair, its type and its bytes ------------------------------------------------

def varint(n): return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)
def i32(n): return 5, varint(n << 1 ^ n >> 63)
def i64(n): return 6, varint(n << 1 ^ n >> 63)
def text(s): return 8, varint(len(s)) + s.encode("ascii")

def array(items):
    kind, count = items[0][0], len(items)
    head = bytes([count << 4 | kind]) if count < 15 else bytes([0xF0 | kind]) + varint(count)
    return 9, head + b"".join(b for _, b in items)

def fields(numbered):
    out, last = b"", 0
    for n, (kind, b) in numbered.items():
        out, last = out + bytes([(n - last) << 4 | kind]) + b, n
    return 12, out + b"\0"

# ---- Files ----------------------------------------------------------------------------------------------------------

def page_header(raw_size, body, values, encoding):
    data = fields({1: i32(values), 2: i32(encoding), 3: i32(3), 4: i32(3)})
    crc = (zlib.crc32(body) ^ 2**31) - 2**31
    return fields({1: i32(0), 2: i32(raw_size), 3: i32(len(body)), 4: i32(crc), 5: data})[1]

def parquet(name, rows, codec, columns):
    """A whole file. A column is (name, kind, required, encoding, values a page, pages), a page (raw size, bytes)."""
    out, total, chunks = bytearray(b"PAR1"), 0, []
    schema = [fields({4: text(name), 5: i32(len(columns))})]
    for column, kind, required, encoding, values, pages in columns:
        start, raw, locations = len(out), 0, []
        for n, (raw_size, body) in enumerate(pages):
            head = page_header(raw_size, body, values, encoding)
            locations.append(fields({1: i64(len(out)), 2: i32(len(head) + len(body)), 3: i64(n * values)}))
            out += head + body
            raw += len(head) + raw_size
        physical = i32({"int32": 1, "int64": 2, "float": 4, "string": 6, "digest": 7}[kind])
        length = {2: i32(32)} if kind == "digest" else {}
        logical = {6: i32(0), 10: fields({1: fields({})})} if kind == "string" else {}
        schema.append(fields({1: physical, **length, 3: i32(int(not required)), 4: text(column), **logical}))
        encodings = array([i32(encoding)] if required else [i32(encoding), i32(3)])
        metadata = fields({1: physical, 2: encodings, 3: array([text(column)]), 4: i32(codec),
                           5: i64(values * len(pages)), 6: i64(raw), 7: i64(len(out) - start), 9: i64(start)})
        chunk = {2: i64(0), 3: metadata}
        if name == "scores":
            index = fields({1: array(locations)})[1]
            chunk.update({4: i64(len(out)), 5: i32(len(index))})
            out += index
        total += raw
        chunks.append(fields(chunk))
    group = fields({1: array(chunks), 2: i64(total), 3: i64(rows)})
    footer = fields({1: i32(1), 2: array(schema), 3: i64(rows), 4: array([group]),
                     6: text("witnessmark version 1.0.0")})[1]
    return bytes(out + footer + struct.pack("<I", len(footer)) + b"PAR1")

def read_with_pyarrow(data):
    try:
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        table = file.read(use_threads=False)
        table.validate(full=True)
        return table
    except Exception as e:
        raise ValueError(f"pyarrow: {e}")

# ---- Rows shards ----------------------------------------------------------------------------------------------------

def rows_shard(rows):
    columns = []
    for name, kind in COLUMNS:
        cells = [row.get(name) for row in rows]
        runs = [(present, len(list(run))) for present, run in itertools.groupby(c is not None for c in cells)]
        levels = b"".join(varint(length << 1) + bytes([present]) for present, length in runs)
        values = [value(kind, c) for c in cells if c is not None]
        body = b"".join(struct.pack("<I", len(v)) + v for v in values) if kind == "string" else b"".join(values)
        body = body if name in REQUIRED else struct.pack("<I", len(levels)) + levels + body
        columns.append((name, kind, name in REQUIRED, 0, len(rows), [(len(body), body)]))
    return parquet("rows", len(rows), 0, columns)

def read_rows(data, count):
    """The rows: name and value of each column, None where a row has none."""
    table = read_with_pyarrow(data)
    types = {"int32": pa.int32(), "int64": pa.int64(), "string": pa.string(), "digest": pa.binary(32)}
    columns = [(field.name, field.type) for field in table.schema]
    same = table.num_rows == count and columns == [(name, types[kind]) for name, kind in COLUMNS]
    require(same, "other rows or columns")
    rows = table.to_pylist()
    require(rows_shard(rows) == data, "a rows shard that re-encodes differently")
    return rows

# ---- Scores shards --------------------------------------------------------------------------------------------------

def scores_shard(vocab, codec, bodies):
    """A file of pages that are compressed already."""
    pages = [(4 * vocab, body) for body in bodies]
    codec = {"none": 0, "zstd": 6, "lz4": 7}[codec]
    return parquet("scores", len(pages) * vocab, codec, [("score", "float", True, 9, vocab, pages)])

PAGE_HEADER = re.compile(rb"\x15\x00\x15N\x15N\x15N\x1c\x15N\x15N\x15\x06\x15\x06\x00\x00".replace(
    b"N", rb"([\x80-\xff]{0,4}[\x00-\x7f])"), re.DOTALL)

def split(data, count, vocab):
    """The bytes of the first `count` pages. Only their lengths are believed: the file is made of them again."""
    at, bodies, most = 4, [], 4 * vocab + 4 * vocab // 128 + 1024
    for _ in range(count):
        header = PAGE_HEADER.match(data, at)
        require(header, "no page header")
        size = sum((b & 127) << 7 * n for n, b in enumerate(header[2])) >> 1
        require(size <= most, "a page that is longer than any compressor makes it")
        bodies.append(data[header.end():header.end() + size])
        at = header.end() + size
    return bodies

def check_frames(body, vocab):
    """Four zstd frames, each with the content size of one plane, no dictionary, no checksum; and nothing else."""
    for _ in range(4):
        require(body[:4] == b"\x28\xb5\x2f\xfd" and len(body) > 5, "no zstd frame")
        descriptor = body[4]
        require(descriptor & 0b00011111 == 0, "zstd: a checksum, a dictionary or reserved bits")
        require(descriptor & 0b11100000, "zstd: no content size")
        width = (1, 2, 4, 8)[descriptor >> 6]
        at = 5 if descriptor & 0b00100000 else 6  # a window descriptor comes first
        size = int.from_bytes(body[at:at + width], "little") + (256 if width == 2 else 0)
        require(size == vocab, "a zstd frame that is not one plane")
        body, last = body[at + width:], False
        while not last:
            require(len(body) >= 3, "a zstd frame that ends early")
            head = int.from_bytes(body[:3], "little")
            last, kind, size = head & 1, head >> 1 & 3, head >> 3
            require(kind < 3, "a zstd block of a reserved type")
            body = body[3 + (1 if kind == 1 else size):]
    require(body == b"", "bytes after the fourth zstd frame")

def read_scores(data, rows, vocab, codec):
    """The scores, [rows, vocab], float32."""
    bodies = split(data, rows, vocab)
    require(scores_shard(vocab, codec, bodies) == data, "a scores shard that re-encodes differently")
    for body in bodies:
        if codec == "zstd":
            check_frames(body, vocab)
        require(codec != "none" or len(body) == 4 * vocab, "a page that is not four planes")
    return read_with_pyarrow(data)["score"].to_numpy().astype("<f4", copy=False).reshape(-1, vocab)
