#!/usr/bin/env python3
"""A second verifier of witnessmark stores, written from specs/format-v1.md alone.

    verify.py STORE [CAPTURE-ID | RUN-ID ...]   verify these captures, or all that the log and its bundles have
    verify.py FILE                              verify a bundle, or check the proof of a row or of a log's growth
    verify.py --make-vectors DIR                write the vectors of section 11
    verify.py --self-test                       corpora/vectors holds these vectors, and what they refuse is refused

It checks log, refs, objects, documents, shards, records, both roots and the capture id; of the rules of section 10.1
only prefixes, finite scores, scores_sha256, argmax and runner_up.
Exit status: 0 verified, 2 refused, 3 could not be read.
"""
import hashlib, itertools, json, os, re, stat, struct, sys
import blake3, numpy as np
sys.dont_write_bytecode = True
import shards

class Refused(Exception):
    def __init__(self, rule, why):
        super().__init__(f"{rule}: {why}")

def require(holds, rule, why):
    if not holds:
        raise Refused(rule, why)

def sha256(b): return hashlib.sha256(b).digest()
def object_id(b): return blake3.blake3(b).hexdigest()

# ---- 2. JSON -------------------------------------------------------------------------------------------------------

def ordered(v):
    """The value with its keys in canonical order; refuses what no document can hold."""
    if isinstance(v, list):
        return [ordered(item) for item in v]
    if isinstance(v, dict):
        return {k: ordered(v[k]) for k in sorted(v, key=lambda k: k.encode("utf-16-be"))}
    scalar = v is None or type(v) in (bool, str) or type(v) is int and abs(v) < 2**53
    require(scalar, "json-not-canonical", "a number that is no integer within 2^53")
    return v

def encode(v):
    """The canonical bytes of a value. Python escapes in strings what RFC 8785 escapes, and as it does."""
    return json.dumps(ordered(v), ensure_ascii=False, separators=(",", ":")).encode("utf-8")

class Number(str):
    """A number that no schema calls an integer: with a fraction, an exponent, -0."""
    __repr__ = str.__str__

def depth(v):
    nested = v.values() if isinstance(v, dict) else v if isinstance(v, list) else None
    return 0 if nested is None else 1 + max(map(depth, nested), default=0)

def count(v):
    """Values and keys."""
    if isinstance(v, dict):
        return 1 + len(v) + sum(map(count, v.values()))
    return 1 + sum(map(count, v)) if isinstance(v, list) else 1

def parse(data):
    """Strict JSON, as section 2.1 has it."""
    lower = {ord(c): c.lower() for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
    def unique(pairs):
        require(len({k.translate(lower) for k, _ in pairs}) == len(pairs), "json-not-canonical", "a key twice")
        return dict(pairs)
    def integer(s): return Number(s) if s == "-0" or len(s) > 40 else int(s)
    def constant(s): raise ValueError(s)
    try:
        v = json.loads(data.decode("utf-8"), object_pairs_hook=unique, parse_int=integer, parse_float=Number,
                       parse_constant=constant)
        require(depth(v) <= 64, "json-not-canonical", "nesting of JSON")
        require(count(v) <= 2**23, "limit-exceeded", "values of JSON")
        json.dumps(v, ensure_ascii=False).encode("utf-8")  # fails for a lone surrogate
        return v
    except RecursionError:
        raise Refused("json-not-canonical", "nesting of JSON")
    except ValueError as e:
        raise Refused("json-not-canonical", str(e))

def document(data, shape=None, limit=2**16):
    require(len(data) <= limit, "limit-exceeded", f"a document of {len(data)} bytes")
    v = parse(data)
    require(encode(v) == data, "json-not-canonical", "does not re-encode to its own bytes")
    require(shape is None or fits(v, unversioned(shape)), "json-not-canonical", "is not as its schema says")
    require(shape is None or fits(v, shape), "schema-invalid", "is of another version")
    return v

def unversioned(shape):
    """The same shape of a document of any version."""
    if isinstance(shape, list):
        return [unversioned(shape[0])]
    if isinstance(shape, tuple):
        return tuple(map(unversioned, shape))
    if not isinstance(shape, dict):
        return shape
    return {k: str if k == "schema" else unversioned(inner) for k, inner in shape.items()}

def fits(v, shape):
    """A dict asks for exactly these keys, a tuple for these among others, or of several for one of them as it is, a list
    for items of one shape, a set for one of its names, a type for a value of just that type."""
    if isinstance(shape, dict):
        return isinstance(v, dict) and v.keys() == shape.keys() and all(fits(v[k], shape[k]) for k in shape)
    if isinstance(shape, tuple):
        if len(shape) > 1:
            return any(fits(v, one) for one in shape)
        return isinstance(v, dict) and all(fits(v.get(k), shape[0][k]) for k in shape[0])
    if isinstance(shape, list):
        return isinstance(v, list) and all(fits(item, shape[0]) for item in v)
    if isinstance(shape, set):
        return type(v) is str and v in shape
    return type(v) is shape if isinstance(shape, type) else shape(v)

def maybe(shape): return lambda v: v is None or fits(v, shape)
def digits(n): return lambda v: type(v) is str and re.fullmatch("[0-9a-f]{%d}" % n, v) is not None
def below(n): return lambda v: type(v) is int and 0 <= v < n
def NAME(v): return type(v) is str and 1 <= len(v.encode("utf-8")) <= 1024
def DECIMAL(v): return type(v) is str and re.fullmatch("0|[1-9][0-9]{0,18}", v) is not None and int(v) < 2**63
COUNT, INT32, INT64, DIGEST, ORIGIN = below(2**53), below(2**31), below(2**63), digits(64), digits(32)

SHARD = {"bytes": COUNT, "object": DIGEST, "rows": COUNT}
CAPTURE = {"attachments": [{"blake3": DIGEST, "bytes": COUNT, "path": str}], "complete": bool, "row_root": DIGEST,
           "rows": COUNT, "run_json": {"bytes": COUNT, "sha256": DIGEST}, "schema": {"witnessmark.capture/v1"},
           "score_root": maybe(DIGEST), "vocab_size": maybe(COUNT)}
MANIFEST = {"capture": CAPTURE, "row_shards": [SHARD], "run_object": DIGEST, "schema": {"witnessmark.manifest/v1"},
            "score_shards": [{**SHARD, "codec": {"none", "zstd", "lz4"}}], "writer": {"name": str, "version": str}}
STORE = {"origin": ORIGIN, "schema": {"witnessmark.store/v1"}}
HEAD = {"bytes": DECIMAL, "origin": ORIGIN, "root": DIGEST, "schema": {"witnessmark.head/v1"}, "size": COUNT}
ENTRY = {"act": {"seal"}, "at": DECIMAL, "capture": DIGEST, "manifest": DIGEST, "schema": {"witnessmark.entry/v1"},
         "tool": str}
ACT = {"act": {"spec", "qualify"}, "at": DECIMAL, "object": DIGEST, "schema": {"witnessmark.act/v1"}, "subject": DIGEST,
       "tool": str}
LOGGED = ENTRY, ACT
REF = {"capture": DIGEST, "name": NAME, "schema": {"witnessmark.ref/v1"}}
REQUEST = {"request_id": NAME, "prompt_index": INT32, "sample_index": maybe(INT32), "prompt_token_ids": [INT32],
           "output_token_ids": [INT32]}
SCORES = {"dtype": {"bfloat16", "float16", "float32"}, "rows": INT64, "vocab_size": INT64,
          "masked_token_ids": maybe([INT32])}
RUN = ({"schema": {"witnessmark.run/v1"}, "run_id": NAME, "run_nonce": maybe(NAME), "requests": [(REQUEST,)],
        "mode": {"baseline", "capture-only", "self-replay", "common-replay"}, "scores": maybe((SCORES,))},)

# ---- 3. Rows, 4. scores, 5. trees ----------------------------------------------------------------------------------

def key(row): return row["prompt_index"], row["sample_index"], row["position"]

def record(row):
    out = b"witnessmark.row/v1\0" + struct.pack("<III", *key(row))
    for tag, (name, kind) in enumerate(shards.COLUMNS[3:], 1):
        if row.get(name) is not None:
            v = shards.value(kind, row[name])
            out += struct.pack("<BI", tag, len(v)) + v
    return out

def score_entry(row):
    return b"witnessmark.score/v1\0" + struct.pack("<III", *key(row)) + row["prefix_sha256"] + row["score_digest"]

# A row of scores in a dtype, and which of its values that dtype holds exactly.
def as_bf16(f): return (f.view("<u4") >> 16).astype("<u2").tobytes(), (f.view("<u4") & 0xFFFF) == 0
def as_f16(f):
    with np.errstate(all="ignore"):
        h = f.astype("<f2")
    return h.tobytes(), (h.astype("<f4").view("<u4") == f.view("<u4")) & ~np.isnan(f)
def as_f32(f): return f.tobytes(), np.ones(len(f), bool)
DTYPES = {"bfloat16": as_bf16, "float16": as_f16, "float32": as_f32}

def canonical_scores(f):
    for tag, form in enumerate(DTYPES.values(), 1):
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

# ---- 9. The store --------------------------------------------------------------------------------------------------

def read_file(root, *parts):
    """The bytes of a regular file in real folders; None where there is none."""
    path = root
    try:
        for n, part in enumerate(parts, 1):
            path, regular = os.path.join(path, part), stat.S_ISREG if n == len(parts) else stat.S_ISDIR
            require(regular(os.lstat(path).st_mode), "not-a-regular-file", "/".join(parts[:n]))
        with open(path, "rb") as f:
            return f.read()
    except FileNotFoundError:
        return None

def read_object(root, name, size=None):
    data = read_file(root, "objects", name[:2], name[2:])
    require(data is not None, "object-missing", name)
    require(object_id(data) == name and size in (None, len(data)), "object-digest", name)
    return data

def check_log(data, head, origin):
    """The entries that the head vouches for."""
    require(head["origin"] == origin, "log-inconsistent", "the head has another origin")
    size = int(head["bytes"])
    lines = data[:size].split(b"\n")
    agree = len(data) >= size and lines.pop() == b"" and len(lines) == head["size"]
    require(agree, "log-inconsistent", "the entries have another size than the head says")
    require(mth(lines).hex() == head["root"], "log-inconsistent", "the root of the entries is not the head's")
    return [document(line, LOGGED) for line in lines]

def read_log(root):
    store = read_file(root, "store.json")
    if store is None:
        raise FileNotFoundError("there is no store.json")
    head, entries = read_file(root, "log", "head"), read_file(root, "log", "entries") or b""
    require(head is not None or not entries, "log-inconsistent", "entries without a head")
    return check_log(entries, document(head, HEAD), document(store, STORE)["origin"]) if head is not None else []

def ref_name(run_id):
    data = run_id.encode("utf-8")
    name = "".join(chr(b) if re.match(b"[a-z0-9._-]", bytes([b])) else f"%{b:02x}" for b in data)
    name = "%2e" + name[1:] if name.startswith(".") else name
    return "sha256-" + sha256(data).hex() if len(name) > 200 or run_id.startswith("sha256-") else name

def read_refs(root):
    """The captures that run ids name. No ref has a leading dot: that is one still being written."""
    refs, folder = {}, os.path.join(root, "refs", "runs")
    for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if not file.startswith("."):
            ref = document(read_file(root, "refs", "runs", file), REF)
            require(ref_name(ref["name"]) == file, "json-not-canonical", f"the ref {file} is of another name")
            refs[ref["name"]] = ref["capture"]
    return refs

# ---- 6. and 7. Documents, 8. rows, 10. rules -----------------------------------------------------------------------

def check_capture(c):
    """What the shape of a capture document does not say."""
    paths = [a["path"].encode("utf-8") for a in c["attachments"]]
    require(len(paths) <= 65536, "limit-exceeded", "attachments")
    require(paths == sorted(set(paths)), "json-not-canonical", "attachments out of order or twice")
    for path in paths:
        plain = not re.search(rb"[\0-\x1f\\:]", path) and not {b"", b".", b".."} & set(path.split(b"/"))
        require(plain and len(path) <= 1024, "path-escape", repr(path))
        folders = (path[:n] for n, byte in enumerate(path) if byte == 0x2F)
        require(not any(folder in paths for folder in folders), "path-escape", "a file that is also a folder")
    rows, vocab = c["rows"], c["vocab_size"]
    require(rows > 0, "nothing-to-verify", "a capture without rows")
    require(rows < 2**31 and (vocab is None or 1 <= vocab <= 2**24), "limit-exceeded", "rows or vocabulary")
    require((c["score_root"] is None) == (vocab is None), "tree-size", "one of score_root and vocab_size")

def check_shards(m):
    """Row counts of shards against the capture's."""
    rows, scored = m["capture"]["rows"], m["capture"]["score_root"] is not None
    for kind, want in ("row_shards", rows), ("score_shards", rows if scored else 0):
        counts = [shard["rows"] for shard in m[kind]]
        require(0 not in counts, "nothing-to-verify", kind)
        require(sum(counts) == want, "tree-size", kind)
    require(all(shard["rows"] <= 65536 for shard in m["row_shards"]), "limit-exceeded", "rows of a rows shard")

def read_run(read, m):
    """run.json, and what it says of the scores."""
    c = m["capture"]
    require(c["run_json"]["bytes"] <= 2**26, "limit-exceeded", "run.json")
    data = read(m["run_object"], c["run_json"]["bytes"])
    require(sha256(data).hex() == c["run_json"]["sha256"], "root-mismatch", "run.json")
    run = parse(data)
    require(fits(run, RUN), "schema-invalid", "run.json")
    spec = run.get("scores")
    require((spec is None) == (run["mode"] == "baseline"), "schema-invalid", "scores in a baseline, or none")
    require((spec["vocab_size"] if spec else None) == c["vocab_size"], "vocab-mismatch", "scores.vocab_size")
    require(spec is None or not c["complete"] or spec["rows"] == c["rows"], "tree-size", "scores.rows")
    return run, spec

def read_shard(read, *args):
    try:
        return read(*args)
    except ValueError as e:
        raise Refused("shard-noncanonical", str(e))

def FLAT(text):
    """The `x` of a row: a canonical object of strings and integers."""
    try:
        x = document(text.encode("utf-8"))
    except Refused:
        return False
    return isinstance(x, dict) and all(type(item) in (str, int) for item in x.values())

def check_cells(row):
    shapes = {"int32": INT32, "int64": INT64, "string": NAME, "digest": bytes}
    for name, kind in shards.COLUMNS:
        shape = {"phase": {"prefill", "decode", "recomputed"}, "x": FLAT}.get(name, shapes[kind])
        require(row[name] is None or fits(row[name], shape), "shard-noncanonical", f"{name} {row[name]!r}")

def go_on(row, requests):
    """10.2: the output of a run that never ended goes on with the tokens of its rows."""
    request = requests.get((row["request_id"], row["prompt_index"], row["sample_index"]))
    if request and row["position"] == len(request["output_token_ids"]):
        request["output_token_ids"].append(row["token_id"])

def check_prefix(row, requests):
    name, at = f"{row['request_id']} position {row['position']}", row["position"]
    request = requests.get((row["request_id"], row["prompt_index"], row["sample_index"]))
    require(request, "request-mismatch", name)
    require(at < len(request["output_token_ids"]), "row-unexpected", name)
    prefix = np.array(request["prompt_token_ids"] + request["output_token_ids"][:at], "<u4").tobytes()
    require(sha256(prefix) == row["prefix_sha256"], "prefix-mismatch", name)

def check_scores(row, f, spec):
    name, masked = f"{row['request_id']} position {row['position']}", spec.get("masked_token_ids") or []
    finite = np.flatnonzero(~np.isfinite(f)).tolist() == masked and np.all(f[masked] == -np.inf)
    require(finite, "score-nonfinite", name)
    data, exact = DTYPES[spec["dtype"]](f)
    require(score_digest(f) == row["score_digest"] and exact.all(), "score-witness", name)
    require(row["scores_sha256"] in (None, sha256(data)), "score-witness", name)
    a, b = row["argmax"], row["runner_up"]
    require(all(token is None or token < len(f) for token in (a, b)), "vocab-mismatch", name)
    require(a is None or f[a] == f.max(), "argmax-witness", name)
    require(None in (a, b) or a != b and f[b] == np.delete(f, a).max(), "argmax-witness", name)

def captures_of(entries):
    """Captures, and the manifests of each, in the order of their entries."""
    captures = {}
    for entry in entries:
        if entry["act"] == "seal":
            captures.setdefault(entry["capture"], {})[entry["manifest"]] = None
    return captures

def read_document(read, act):
    """The bytes of a spec or a result that the log has."""
    data = read(act["object"])
    require(len(data) <= 2**26, "limit-exceeded", "a document of the log")
    require(sha256(data).hex() == act["subject"], "root-mismatch", f"the {act['act']} in the log")
    if act["act"] == "qualify":
        result = document(data, limit=2**26)
        require(isinstance(result, dict) and result.get("schema") == "witnessmark.result/v1", "json-not-canonical", "no result")
    return data

def verify_capture(read, manifest_id, capture_id, keep=lambda row, scores: None):
    """run.json, the rows, and a line of what was found. `read` gives an object's bytes, by its id and length; `keep` gets each row and its scores."""
    m = document(read(manifest_id), MANIFEST, limit=2**26)
    c = m["capture"]
    require(sha256(encode(c)).hex() == capture_id, "root-mismatch", "the manifest carries another capture")
    check_capture(c)
    check_shards(m)
    for a in c["attachments"]:
        read(a["blake3"], a["bytes"])
    run, spec = read_run(read, m)

    rows = []
    for shard in m["row_shards"]:
        rows += read_shard(shards.read_rows, read(shard["object"], shard["bytes"]), shard["rows"])
    for a, b in itertools.pairwise(map(key, rows)):
        require(a < b, "row-duplicated" if a == b else "shard-noncanonical", f"rows {a} and {b}")
    requests = {(r["request_id"], r["prompt_index"], r.get("sample_index") or 0): r for r in run["requests"]}
    for row in rows:
        check_cells(row)
        require((row["score_digest"] is None) == (spec is None), "root-mismatch", "a score digest too many or too few")
    require(mth([record(row) for row in rows]).hex() == c["row_root"], "root-mismatch", "row root")
    score_root = mth([score_entry(row) for row in rows]).hex() if spec else None
    require(score_root == c["score_root"], "root-mismatch", "score root")
    for row in rows:
        if not c["complete"]:
            go_on(row, requests)
        check_prefix(row, requests)

    left = iter(rows)
    for shard in m["score_shards"]:
        data = read(shard["object"], shard["bytes"])
        for f in read_shard(shards.read_scores, data, shard["rows"], c["vocab_size"], shard["codec"]):
            row = next(left)
            check_scores(row, f, spec)
            keep(row, f)
    return run, rows, f"ok rows={c['rows']} row_root={c['row_root']} score_root={score_root or 'null'}"

def read_known(root):
    """The store's own log, and that of each bundle in it, of which a part is known: index to entry."""
    import handed
    own = read_log(root)
    return [dict(enumerate(own)), *handed.read_bundles(root, own)]

def verify(root, names):
    status = 0
    def read(name, size=None): return read_object(root, name, size)
    try:
        known = [entry for log in read_known(root) for entry in log.values()]
        for entry in known:
            if entry["act"] != "seal":
                read_document(read, entry)
        captures, refs = captures_of(known), read_refs(root)
        require(names or captures, "nothing-to-verify", "neither the log nor a bundle in the store has a capture")
    except Refused as e:
        print(f"log REFUSED {e}")
        return 2
    for name in names or captures:
        capture = name if name in captures else refs.get(name)
        if capture is None:
            print(f"{name}: no such capture", file=sys.stderr)
            status = 3
            continue
        try:
            require(capture in captures, "nothing-to-verify", "not in the log")
            lines = {verify_capture(read, manifest, capture)[-1] for manifest in captures[capture]}
            print(capture, *lines)
        except Refused as e:
            print(f"{capture} REFUSED {e}")
            status = max(status, 2)
    return status

def check_file(path):
    import handed
    try:
        handed.check_file(path)
        return 0
    except Refused as e:
        print(f"{path} REFUSED {e}")
        return 2

def main(args):
    if args[:1] in (["--make-vectors"], ["--self-test"]):
        import vectors
        return vectors.main(args)
    if not args or args[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 3
    try:
        return check_file(args[0]) if os.path.isfile(args[0]) else verify(args[0], args[1:])
    except OSError as e:
        print(f"{args[0]} cannot be read: {e}", file=sys.stderr)
        return 3

if __name__ == "__main__":
    sys.modules["verify"] = sys.modules["__main__"]  # one Refused, whoever imports it
    sys.exit(main(sys.argv[1:]))
