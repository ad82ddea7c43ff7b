#!/usr/bin/env python3
"""A second verifier of witnessmark stores, written from specs/format-v1.md alone.

    verify.py STORE [CAPTURE-ID | RUN-ID ...]   verify these captures, or all that the log says were sealed
    verify.py --make-vectors DIR                write the vectors of section 11
    verify.py --self-test                       the vectors in corpora/vectors are these, and pyarrow reads the shards

It asks for the log, the objects, the documents, the shards, the records, both roots and the capture id; of the rules
of section 10.1 only for prefixes, outputs, finite scores, score witnesses and argmax witnesses (and 3.3, the chain).
Exit status: 0 verified, 2 refused, 3 could not be read.
"""
import hashlib, itertools, json, os, re, stat, struct, sys, zlib
import blake3, numpy as np, pyarrow as pa, pyarrow.parquet as pq

class Refused(Exception):
    def __init__(self, rule, why):
        super().__init__(f"{rule}: {why}")
        self.rule = rule

def require(holds, rule, why):
    if not holds:
        raise Refused(rule, why)

def sha256(b): return hashlib.sha256(b).digest()
def object_id(b): return blake3.blake3(b).hexdigest()

# ---- 2. JSON -------------------------------------------------------------------------------------------------------

ESCAPES = {**{chr(c): f"\\u{c:04x}" for c in range(32)},
           "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}

def encode(v):
    """The canonical text of a value, as bytes."""
    if v is None or v is True or v is False:
        return {None: b"null", True: b"true", False: b"false"}[v]
    if isinstance(v, int):
        require(abs(v) < 2**53, "json-not-canonical", f"integer {v}")
        return b"%d" % v
    if isinstance(v, str):
        return ('"' + "".join(ESCAPES.get(c, c) for c in v) + '"').encode("utf-8")  # a lone surrogate raises
    if isinstance(v, list):
        return b"[" + b",".join(map(encode, v)) + b"]"
    require(isinstance(v, dict), "json-not-canonical", f"a {type(v).__name__}")
    return b"{" + b",".join(encode(k) + b":" + encode(v[k]) for k in sorted(v, key=lambda k: k.encode("utf-16-be"))) + b"}"

def walk(v, depth=0):
    """Nesting of at most 64, no lone surrogate."""
    if isinstance(v, str):
        v.encode("utf-8")
    elif isinstance(v, (dict, list)):
        require(depth < 64, "limit-exceeded", "nesting of JSON")
        for item in v if isinstance(v, list) else itertools.chain(v, v.values()):
            walk(item, depth + 1)
    return v

class Number(str):
    """A number that is no integer, kept as it is written."""

def parse(data, fold):
    """RFC 8259 JSON in UTF-8, keys unique (`fold`: also without regard to the case of ASCII letters)."""
    lower = {c: c + 32 for c in range(65, 91)} if fold else {}
    def unique(pairs):
        require(len({k.translate(lower) for k, _ in pairs}) == len(pairs), "json-not-canonical", "a key twice")
        return dict(pairs)
    def integer(s): return int(s) if len(s) < 40 else Number(s)
    def constant(s): raise ValueError(s)
    try:
        return walk(json.loads(data.decode("utf-8"), object_pairs_hook=unique, parse_int=integer,
                               parse_float=Number, parse_constant=constant))
    except RecursionError:
        raise Refused("limit-exceeded", "nesting of JSON")
    except ValueError as e:  # not UTF-8, not JSON, a lone surrogate
        raise Refused("json-not-canonical", str(e))

def foreign(data): return parse(data, True)

def document(data, shape=None):
    v = parse(data, False)
    require(encode(v) == data, "json-not-canonical", "does not re-encode to its own bytes")
    require(shape is None or fits(v, shape), "json-not-canonical", "is not as its schema says")
    return v

def fits(v, shape):
    if isinstance(shape, dict):
        return isinstance(v, dict) and v.keys() == shape.keys() and all(fits(v[k], shape[k]) for k in shape)
    if isinstance(shape, list):
        return isinstance(v, list) and all(fits(i, shape[0]) for i in v)
    if isinstance(shape, tuple):  # other keys are free
        return isinstance(v, dict) and all(fits(v.get(k), shape[0][k]) for k in shape[0])
    if isinstance(shape, set):
        return isinstance(v, str) and v in shape
    return shape(v)

def TEXT(v): return type(v) is str
def BOOL(v): return isinstance(v, bool)
def NAT(v): return type(v) is int and v >= 0
def INT(v): return NAT(v) and v < 2**31
def HEX(v): return TEXT(v) and re.fullmatch("[0-9a-f]{64}", v) is not None
def DECIMAL(v): return TEXT(v) and re.fullmatch("0|[1-9][0-9]{0,18}", v) is not None and int(v) < 2**63
def ORIGIN(v): return TEXT(v) and re.fullmatch("[0-9a-f]{32}", v) is not None
def maybe(shape): return lambda v: v is None or fits(v, shape)

CAPTURE = {"attachments": [{"blake3": HEX, "bytes": NAT, "path": TEXT}], "complete": BOOL, "row_root": HEX, "rows": NAT,
           "run_json": {"bytes": NAT, "sha256": HEX}, "schema": {"witnessmark.capture/v1"}, "score_root": maybe(HEX),
           "vocab_size": maybe(NAT)}
MANIFEST = {"capture": CAPTURE, "row_shards": [{"bytes": NAT, "object": HEX, "rows": NAT}], "run_object": HEX,
            "schema": {"witnessmark.manifest/v1"}, "writer": {"name": TEXT, "version": TEXT},
            "score_shards": [{"bytes": NAT, "codec": {"none", "zstd", "lz4"}, "object": HEX, "rows": NAT}]}
STORE = {"origin": ORIGIN, "schema": {"witnessmark.store/v1"}}
ENTRY = {"act": TEXT, "at": DECIMAL, "capture": HEX, "manifest": HEX, "schema": {"witnessmark.entry/v1"}, "tool": TEXT}
HEAD = {"bytes": DECIMAL, "origin": ORIGIN, "root": HEX, "schema": {"witnessmark.head/v1"}, "size": NAT}
REF = {"capture": HEX, "name": TEXT, "schema": {"witnessmark.ref/v1"}}
RUN = ({"schema": {"witnessmark.run/v1"}, "run_nonce": maybe(TEXT), "requests": [
           ({"request_id": TEXT, "prompt_index": INT, "sample_index": maybe(INT), "prompt_token_ids": [INT],
             "output_token_ids": [INT]},)],
        "scores": maybe(({"dtype": {"bfloat16", "float16", "float32"}, "vocab_size": INT,
             "masked_token_ids": maybe([INT]), "f32_sha256_at_capture": maybe(HEX)},))},)

# ---- 3. Rows, 4. scores, 5. trees ----------------------------------------------------------------------------------

COLUMNS = [(name, kind, n < 7) for n, (name, kind) in enumerate(  # (name, kind, required); from the fourth on, tag = n - 2
    line.split(":") for line in "prompt_index:int32 sample_index:int32 position:int32 request_id:string phase:string "
    "prefix_sha256:digest token_id:int32 sampled_token_id:int32 forced_token_id:int32 argmax:int32 runner_up:int32 "
    "captured_seq:int64 forced_seq:int64 step:int64 captured_at_ns:int64 forced_at_ns:int64 scores_modified_at_ns:int64 "
    "batch_size:int32 query_len:int32 kv_len:int32 scores_sha256:digest scores_blake3:digest chain_sha256:digest "
    "run_nonce:string x:string score_digest:digest".split())]

def value(kind, v):
    return v if kind == "digest" else v.encode("utf-8") if kind == "string" else struct.pack("<i" if kind == "int32" else "<q", v)

def row_from_json(o):
    """A row as the shard has it, from an object of rows.jsonl (and its score digest)."""
    o = {"sample_index": 0, **{k: v for k, v in o.items() if v is not None and k != "row"}}
    convert = {"digest": bytes.fromhex, "int32": int, "int64": int}
    row = {name: convert.get(kind, str)(o[name]) for name, kind, _ in COLUMNS if name in o and name != "x"}
    return {**row, "x": encode(o["x"]).decode("utf-8")} if "x" in o else row

def key(row): return struct.pack("<III", row["prompt_index"], row["sample_index"], row["position"])

def record(row):
    out = b"witnessmark.row/v1\0" + key(row)
    for tag, (name, kind, _) in enumerate(COLUMNS[3:], 1):
        if row.get(name) is not None:
            v = value(kind, row[name])
            out += struct.pack("<BI", tag, len(v)) + v
    return out

def score_entry(row): return b"witnessmark.score/v1\0" + key(row) + row["prefix_sha256"] + row["score_digest"]

def as_bf16(f): return (f.view("<u4") >> 16).astype("<u2").tobytes(), (f.view("<u4") & 0xFFFF) == 0
def as_f16(f):
    with np.errstate(all="ignore"):
        h = f.astype("<f2")
    return h.tobytes(), (h.astype("<f4").view("<u4") == f.view("<u4")) & ~np.isnan(f)
def as_f32(f): return f.tobytes(), np.ones(len(f), bool)

def canonical_scores(f):
    for tag, form in (1, as_bf16), (2, as_f16), (3, as_f32):
        data, exact = form(f)
        if exact.all():
            return tag, data

def score_digest(f):
    tag, data = canonical_scores(f)
    return blake3.blake3(bytes([tag]) + data, derive_key_context="witnessmark 2026-11-30 score digest v1").digest()

def mth(entries):
    if len(entries) <= 1:
        return sha256(b"\0" + entries[0]) if entries else sha256(b"")
    k = 1 << (len(entries) - 1).bit_length() - 1
    return sha256(b"\1" + mth(entries[:k]) + mth(entries[k:]))

def chain(run_nonce, links):
    """3.3; links are (prefix_sha256, token_id, SHA-256 of the scores or 32 zero bytes), in the order of captured_seq."""
    step = sha256((run_nonce or "").encode("utf-8"))
    for prefix, token, scores in links:
        step = sha256(step + prefix + struct.pack("<I", token) + scores)
        yield step

# ---- 8. Shards -----------------------------------------------------------------------------------------------------
# A value of the compact protocol is a pair: its type and its bytes.

def varint(n): return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)
def i32(n): return 5, varint(n << 1 ^ n >> 63)
def i64(n): return 6, varint(n << 1 ^ n >> 63)
def text(s): return 8, varint(len(s)) + s.encode("ascii")
def array(items):
    head = [len(items) << 4 | items[0][0]] if len(items) < 15 else [0xF0 | items[0][0], *varint(len(items))]
    return 9, bytes(head) + b"".join(b for _, b in items)
def record_of(fields):
    out, last = b"", 0
    for n, (kind, b) in fields.items():
        out, last = out + bytes([(n - last) << 4 | kind]) + b, n
    return 12, out + b"\0"

def page_header(raw_size, body, values, encoding):
    data = record_of({1: i32(values), 2: i32(encoding), 3: i32(3), 4: i32(3)})
    crc = (zlib.crc32(body) ^ 2**31) - 2**31
    return record_of({1: i32(0), 2: i32(raw_size), 3: i32(len(body)), 4: i32(crc), 5: data})[1]

def parquet(name, rows, codec, columns):
    """A whole file; a column is (name, kind, required, encoding, values of a page, pages), a page (size uncompressed, bytes)."""
    out, total, chunks = bytearray(b"PAR1"), 0, []
    schema = [record_of({4: text(name), 5: i32(len(columns))})]
    for column, kind, required, encoding, values, pages in columns:
        start, raw, locations = len(out), 0, []
        for n, (raw_size, body) in enumerate(pages):
            head = page_header(raw_size, body, values, encoding)
            locations.append(record_of({1: i64(len(out)), 2: i32(len(head) + len(body)), 3: i64(n * values)}))
            out += head + body
            raw += len(head) + raw_size
        kind_no = {"int32": 1, "int64": 2, "float": 4, "string": 6, "digest": 7}[kind]
        schema.append(record_of({1: i32(kind_no), **({2: i32(32)} if kind == "digest" else {}), 3: i32(int(not required)),
                                 4: text(column), **({6: i32(0), 10: record_of({1: record_of({})})} if kind == "string" else {})}))
        encodings = array([i32(encoding)] + ([] if required else [i32(3)]))
        chunk = {2: i64(0), 3: record_of({1: i32(kind_no), 2: encodings, 3: array([text(column)]), 4: i32(codec),
                 5: i64(values * len(pages)), 6: i64(raw), 7: i64(len(out) - start), 9: i64(start)})}
        if name == "scores":
            index = record_of({1: array(locations)})[1]
            chunk.update({4: i64(len(out)), 5: i32(len(index))})
            out += index
        total += raw
        chunks.append(record_of(chunk))
    group = record_of({1: array(chunks), 2: i64(total), 3: i64(rows)})
    footer = record_of({1: i32(1), 2: array(schema), 3: i64(rows), 4: array([group]), 6: text("witnessmark version 1.0.0")})[1]
    return bytes(out + footer + struct.pack("<I", len(footer)) + b"PAR1")

def split(data, count):
    """The compressed bytes of the first `count` pages, believing the page headers: the file is re-encoded from them later."""
    at, bodies = 4, []
    def number():  # after the byte of a field header
        nonlocal at
        n, shift, at = 0, 0, at + 1
        while True:
            require(at < len(data) and shift < 64, "shard-noncanonical", "no page header")
            n, shift, at = n | (data[at] & 127) << shift, shift + 7, at + 1
            if data[at - 1] < 128:
                return n >> 1
    for _ in range(count):
        _, _, size, _ = number(), number(), number(), number()
        at += 1
        _, _, _, _ = number(), number(), number(), number()
        bodies.append(data[at + 2:at + 2 + size])
        at += 2 + size
    return bodies

def read_with_pyarrow(data):
    try:
        return pq.read_table(pa.BufferReader(data), page_checksum_verification=True)
    except Exception as e:
        raise Refused("shard-noncanonical", f"pyarrow: {e}")

CODECS = {"none": 0, "zstd": 6, "lz4": 7}

def scores_parquet(vocab, codec, bodies):
    pages = [(4 * vocab, body) for body in bodies]
    return parquet("scores", len(pages) * vocab, CODECS[codec], [("score", "float", True, 9, vocab, pages)])

def planes(f): return [f.view("u1").reshape(-1, 4)[:, k].tobytes() for k in range(4)]

def raw_frame(plane):
    blocks = [plane[i:i + 131072] for i in range(0, len(plane), 131072)]
    heads = [len(b) << 3 | (n == len(blocks) - 1) for n, b in enumerate(blocks)]
    return b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(plane)) + b"".join(
        struct.pack("<I", h)[:3] + b for h, b in zip(heads, blocks))

def scores_shard(scores, codec):
    form = {"none": lambda p: p, "zstd": raw_frame}[codec]
    return scores_parquet(scores.shape[1], codec, [b"".join(map(form, planes(row))) for row in scores])

def check_frames(body, vocab):
    """Four zstd frames with a content size of one plane, no dictionary, no checksum, and nothing else."""
    for _ in range(4):
        require(body[:4] == b"\x28\xb5\x2f\xfd" and len(body) > 5, "shard-noncanonical", "no zstd frame")
        d = body[4]
        require(d & 0b00011111 == 0 and d & 0b11100000, "shard-noncanonical", "zstd: checksum, dictionary or no content size")
        width = (1, 2, 4, 8)[d >> 6]
        at = 5 + (0 if d & 0x20 else 1)  # window descriptor
        size = int.from_bytes(body[at:at + width], "little") + (256 if width == 2 else 0)
        require(size == vocab, "shard-noncanonical", "a zstd frame that is not one plane")
        body, last = body[at + width:], False
        while not last:
            require(len(body) >= 3, "shard-noncanonical", "a zstd frame that ends early")
            head = int.from_bytes(body[:3], "little")
            last, kind, size = head & 1, head >> 1 & 3, head >> 3
            require(kind < 3, "shard-noncanonical", "a zstd block of a reserved type")
            body = body[3 + (1 if kind == 1 else size):]
    require(body == b"", "shard-noncanonical", "bytes after the fourth zstd frame")

def read_scores(data, rows, vocab, codec):
    bodies = split(data, rows)
    require(scores_parquet(vocab, codec, bodies) == data, "shard-noncanonical", "a scores shard that re-encodes differently")
    for body in bodies if codec == "zstd" else ():
        check_frames(body, vocab)
    scores = read_with_pyarrow(data)["score"].to_numpy().astype("<f4", copy=False).reshape(-1, vocab)
    require(codec != "none" or scores_shard(scores, codec) == data, "shard-noncanonical", "planes that re-encode differently")
    return scores

def rows_parquet(count, bodies):
    return parquet("rows", count, 0, [(*column, 0, count, [(len(b), b)]) for column, b in zip(COLUMNS, bodies)])

def rows_shard(rows):
    bodies = []
    for name, kind, required in COLUMNS:
        cells = [row.get(name) for row in rows]
        runs = b"".join(varint(len(list(g)) << 1) + bytes([level]) for level, g in itertools.groupby(c is not None for c in cells))
        plain = [value(kind, c) for c in cells if c is not None]
        body = b"".join(struct.pack("<I", len(v)) + v for v in plain) if kind == "string" else b"".join(plain)
        bodies.append(body if required else struct.pack("<I", len(runs)) + runs + body)
    return rows_parquet(len(rows), bodies)

def read_rows(data, count):
    same = rows_parquet(count, split(data, len(COLUMNS))) == data
    require(same, "shard-noncanonical", "a rows shard that re-encodes differently")
    try:
        rows = read_with_pyarrow(data).to_pylist()
    except UnicodeDecodeError as e:
        raise Refused("shard-noncanonical", str(e))
    require(rows_shard(rows) == data, "shard-noncanonical", "rows that re-encode differently")
    for name, kind, _ in COLUMNS:
        require(not kind.startswith("int") or all((row[name] or 0) >= 0 for row in rows), "limit-exceeded", name)
    return rows

# ---- 9. The store --------------------------------------------------------------------------------------------------

def read_file(root, *parts):
    path = root
    for n, part in enumerate(parts, 1):
        path, regular = os.path.join(path, part), stat.S_ISREG if n == len(parts) else stat.S_ISDIR
        require(regular(os.lstat(path).st_mode), "not-a-regular-file", "/".join(parts[:n]))
    with open(path, "rb") as f:
        return f.read()

def read_object(root, name, size=None):
    try:
        data = read_file(root, "objects", name[:2], name[2:])
    except FileNotFoundError:
        raise Refused("object-missing", name)
    require(object_id(data) == name and size in (None, len(data)), "object-digest", name)
    return data

def check_log(data, head, origin):
    """The entries that the head vouches for."""
    require(head["origin"] == origin, "log-inconsistent", "the head has another origin")
    size = int(head["bytes"])
    lines = data[:size].split(b"\n")
    require(len(data) >= size and lines.pop() == b"" and len(lines) == head["size"], "log-inconsistent", "size or bytes")
    require(mth(lines).hex() == head["root"], "log-inconsistent", "the root of the entries is not the head's")
    return [document(line, ENTRY) for line in lines]

def ref_name(run_id):
    name = "".join(chr(b) if re.match(b"[a-z0-9._-]", bytes([b])) else f"%{b:02x}" for b in run_id.encode("utf-8"))
    name = "%2e" + name[1:] if name.startswith(".") else name
    return name if len(name) <= 200 else "sha256-" + sha256(run_id.encode("utf-8")).hex()

def check_capture(c):
    """What the shape of a capture document does not say."""
    paths = [a["path"].encode("utf-8") for a in c["attachments"]]
    require(paths == sorted(set(paths)), "json-not-canonical", "attachments out of order or twice")
    require(len(paths) <= 65536 and all(len(p) <= 1024 for p in paths), "limit-exceeded", "attachments")
    for p in paths:
        good = not re.search(rb"[\0-\x1f\\:]", p) and not {b"", b".", b".."} & set(p.split(b"/"))
        require(good, "path-escape", repr(p))
    require((c["score_root"] is None) == (c["vocab_size"] is None), "json-not-canonical", "one of score_root and vocab_size")
    require(c["vocab_size"] is None or 1 <= c["vocab_size"] <= 2**24, "limit-exceeded", "vocabulary")
    require(c["rows"] < 2**31, "limit-exceeded", "rows")

def check_row(row, run, requests, vocab):
    for name, _, _ in COLUMNS:
        v = row[name]
        require(name not in ("request_id", "run_nonce") or v is None or len(v.encode()) <= 1024, "limit-exceeded", name)
        require(not name.endswith("token_id") or v is None or vocab is None or v < vocab, "vocab-mismatch", name)
    require(row["phase"] in ("prefill", "decode", "recomputed"), "schema-invalid", "phase")
    if row["x"] is not None:
        require(len(row["x"].encode()) <= 65536, "limit-exceeded", "x")
        x = document(row["x"].encode())
        flat = isinstance(x, dict) and all(isinstance(v, str) or type(v) is int for v in x.values())
        require(flat, "schema-invalid", "x")
    r, at = requests.get(row["request_id"]), row["position"]
    same = r and (r["prompt_index"], r.get("sample_index") or 0) == (row["prompt_index"], row["sample_index"])
    require(same, "request-mismatch", row["request_id"])
    require(at < len(r["output_token_ids"]), "row-unexpected", f"{row['request_id']} position {at}")
    prefix = np.array(r["prompt_token_ids"] + r["output_token_ids"][:at], "<u4")
    require(sha256(prefix.tobytes()) == row["prefix_sha256"], "prefix-mismatch", f"{row['request_id']} position {at}")
    require(r["output_token_ids"][at] == row["token_id"], "output-mismatch", f"{row['request_id']} position {at}")

def check_scores(row, f, spec):
    """The witnesses of one row of scores; the SHA-256 of the scores in the dtype of the scores file."""
    name, masked = f"{row['request_id']} position {row['position']}", spec.get("masked_token_ids") or []
    require(np.flatnonzero(~np.isfinite(f)).tolist() == masked and np.all(f[masked] == -np.inf), "score-nonfinite", name)
    data, exact = {"bfloat16": as_bf16, "float16": as_f16, "float32": as_f32}[spec["dtype"]](f)
    require(exact.all() and row["scores_sha256"] in (None, sha256(data)), "score-witness", name)
    require(row["scores_blake3"] in (None, score_digest(f)), "score-witness", name)
    a, b = row["argmax"], row["runner_up"]
    require(all(i is None or i < len(f) for i in (a, b)), "vocab-mismatch", name)
    require(a is None or f[a] == f.max(), "argmax-witness", name)
    require(None in (a, b) or a != b and f[b] == np.delete(f, a).max(), "argmax-witness", name)
    return sha256(data)

def check_manifest(root, manifest_id, capture_id):
    m = document(read_object(root, manifest_id), MANIFEST)
    c = m["capture"]
    require(sha256(encode(c)).hex() == capture_id, "root-mismatch", "the manifest carries another capture")
    check_capture(c)
    for a in c["attachments"]:
        read_object(root, a["blake3"], a["bytes"])
    run_bytes = read_object(root, m["run_object"], c["run_json"]["bytes"])
    require(sha256(run_bytes).hex() == c["run_json"]["sha256"], "root-mismatch", "run.json")
    run, vocab = foreign(run_bytes), c["vocab_size"]
    require(fits(run, RUN), "schema-invalid", "run.json")
    spec, requests = run.get("scores"), {r["request_id"]: r for r in run["requests"]}
    require((spec["vocab_size"] if spec else None) == vocab, "vocab-mismatch", "run.json and capture document")
    for kind in "row_shards", "score_shards":
        counts = [s["rows"] for s in m[kind]]
        want = c["rows"] if kind == "row_shards" or spec else 0
        require(min(counts, default=1) > 0 and sum(counts) == want, "tree-size", kind)
    rows = []
    for s in m["row_shards"]:
        require(s["rows"] <= 65536, "limit-exceeded", "rows of a rows shard")
        rows += read_rows(read_object(root, s["object"], s["bytes"]), s["rows"])
    keys = [(r["prompt_index"], r["sample_index"], r["position"]) for r in rows]
    for a, b in zip(keys, keys[1:]):
        require(a < b, "row-duplicated" if a == b else "shard-noncanonical", f"keys {a} and {b}")
    native, whole, left = {}, hashlib.sha256(), iter(rows)
    for s in m["score_shards"]:
        for f in read_scores(read_object(root, s["object"], s["bytes"]), s["rows"], vocab, s["codec"]):
            row = next(left)
            require(score_digest(f) == row["score_digest"], "root-mismatch", f"score digest of row {row['request_id']} {row['position']}")
            native[id(row)] = check_scores(row, f, spec)
            whole.update(f.tobytes())
    require(spec or all(r["score_digest"] is None for r in rows), "root-mismatch", "a score digest in a baseline")
    require(mth([record(r) for r in rows]).hex() == c["row_root"], "root-mismatch", "row root")
    score_root = mth([score_entry(r) for r in rows]).hex() if spec else None
    require(score_root == c["score_root"], "root-mismatch", "score root")
    for row in rows:
        check_row(row, run, requests, vocab)
    witness = spec and spec.get("f32_sha256_at_capture")
    require(witness in (None, whole.hexdigest()), "score-witness", "f32_sha256_at_capture")
    if any(r["chain_sha256"] for r in rows):
        require(all(r["chain_sha256"] and r["captured_seq"] is not None for r in rows), "run-mixed", "a row outside of the chain")
        rows.sort(key=lambda r: r["captured_seq"])
        links = [(r["prefix_sha256"], r["token_id"], native.get(id(r), bytes(32))) for r in rows]
        require(list(chain(run.get("run_nonce"), links)) == [r["chain_sha256"] for r in rows], "run-mixed", "chain")
    return f"ok rows={c['rows']} row_root={c['row_root']} score_root={score_root or 'null'}"

def verify(root, names):
    try:
        origin = document(read_file(root, "store.json"), STORE)["origin"]
        head = document(read_file(root, "log", "head"), HEAD)
        sealed = [e for e in check_log(read_file(root, "log", "entries"), head, origin) if e["act"] == "seal"]
        status, known = 0, list(dict.fromkeys(e["capture"] for e in sealed))
    except Refused as e:
        print(f"log REFUSED {e}")
        return 2
    for name in names or known:
        try:
            capture = name
            if name not in known:
                ref = document(read_file(root, "refs", "runs", ref_name(name)), REF)
                capture = ref["capture"]
                require(ref["name"] == name and capture in known, "log-inconsistent", "a ref that the log does not bear out")
            for line in dict.fromkeys(check_manifest(root, e["manifest"], capture) for e in sealed if e["capture"] == capture):
                print(capture, line)
        except Refused as e:
            status = max(status, 2)
            print(f"{capture} REFUSED {e}")
        except OSError as e:
            status = 3
            print(f"{name} cannot be read: {e.strerror}", file=sys.stderr)
    return status

def main(args):
    if args[:1] in (["--make-vectors"], ["--self-test"]):
        sys.dont_write_bytecode = True
        import vectors
        return vectors.main(args)
    if not args or args[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 3
    try:
        return verify(args[0], args[1:])
    except OSError as e:
        print(f"{args[0]}: cannot be read: {e}", file=sys.stderr)
        return 3

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
