"""What is handed to somebody who has no store: the proof of a row, the proof of a log's growth, a bundle; and which rows
a sample draws. Sections 12 to 15 of specs/format-v1.md, with the algorithms of RFC 9162 as it writes them.
"""
import base64, binascii, os, struct
import numpy as np
import shards, verify as v

MAGIC = b"witnessmark.bundle/v1\n"
PATH = [v.DIGEST]
ROW_PROOF = {"capture": v.CAPTURE, "path": PATH, "record": str, "row": v.COUNT, "schema": {"witnessmark.proof/v1"},
             "scores": v.maybe({"base64": str, "dtype": set(v.DTYPES)}), "tree_size": v.COUNT}
LOG_PROOF = {"new_root": v.DIGEST, "new_size": v.COUNT, "old_root": v.DIGEST, "old_size": v.COUNT, "origin": str,
             "path": PATH, "schema": {"witnessmark.log-proof/v1"}}
HEADER = {"entries": [{"entry": v.LOGGED, "index": v.COUNT, "path": PATH}], "head": v.HEAD,
          "objects": [{"bytes": v.COUNT, "object": v.DIGEST}], "schema": {"witnessmark.bundle/v1"}}

def proved(holds, why):
    v.require(holds, "proof-invalid", why)

# ---- Paths ---------------------------------------------------------------------------------------------------------

def node(left, right): return v.sha256(b"\1" + left + right)

def below(n):
    """The largest power of two below n."""
    return 1 << (n - 1).bit_length() - 1

def inclusion(entries, m):
    """RFC 9162 section 2.1.3.1."""
    if len(entries) == 1:
        return []
    k = below(len(entries))
    if m < k:
        return inclusion(entries[:k], m) + [v.mth(entries[k:])]
    return inclusion(entries[k:], m - k) + [v.mth(entries[:k])]

def consistency(entries, m, known=True):
    """RFC 9162 section 2.1.4.1; none from or to nothing."""
    if m == len(entries) or m == 0:
        return [] if known or m == 0 else [v.mth(entries)]
    k = below(len(entries))
    if m <= k:
        return consistency(entries[:k], m, known) + [v.mth(entries[k:])]
    return consistency(entries[k:], m - k, False) + [v.mth(entries[:k])]

def root_from_inclusion(leaf, index, size, path):
    """RFC 9162 section 2.1.3.2; None where the path does not fit."""
    if index >= size:
        return None
    fn, sn, r = index, size - 1, leaf
    for p in path:
        if sn == 0:
            return None
        if fn & 1 or fn == sn:
            r = node(p, r)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = node(r, p)
        fn, sn = fn >> 1, sn >> 1
    return r if sn == 0 else None

def is_consistent(old, old_root, new, new_root, path):
    """RFC 9162 section 2.1.4.2, and section 13.3 where the log was empty or did not grow."""
    nothing = v.sha256(b"")
    if old == 0 or old >= new:
        roots = old_root == nothing if old == 0 else (old, old_root) == (new, new_root)
        return roots and not path and (new > 0 or new_root == nothing)
    if not path:
        return False
    path = [old_root, *path] if old & (old - 1) == 0 else path
    fn, sn = old - 1, new - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = path[0]
    for c in path[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            fr, sr = node(c, fr), node(c, sr)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = node(sr, c)
        fn, sn = fn >> 1, sn >> 1
    return fr == old_root and sr == new_root and sn == 0

# ---- 12. The proof of a row ----------------------------------------------------------------------------------------

def parse_record(data):
    """The row of a record: what encodes to just these bytes."""
    head = b"witnessmark.row/v1\0"
    try:
        proved(data.startswith(head), "not a row record")
        row = dict(zip(("prompt_index", "sample_index", "position"), struct.unpack_from("<III", data, len(head))))
        at = len(head) + 12
        while at < len(data):
            tag, length = struct.unpack_from("<BI", data, at)
            name, kind = shards.COLUMNS[tag + 2]
            value, at = data[at + 5:at + 5 + length], at + 5 + length
            read = {"int32": lambda b: struct.unpack("<i", b)[0], "int64": lambda b: struct.unpack("<q", b)[0],
                    "digest": bytes, "string": lambda b: b.decode("utf-8")}[kind]
            row[name] = read(value)
        row = {**{name: None for name, _ in shards.COLUMNS}, **row}
        v.check_cells(row)
        proved(all(row[name] is not None for name in shards.REQUIRED) and v.record(row) == data, "not a row record")
        return row
    except (struct.error, IndexError, UnicodeDecodeError, v.Refused):
        raise v.Refused("proof-invalid", "not a row record")

def check_row_proof(p):
    c = p["capture"]
    proved(p["tree_size"] == c["rows"], "tree_size is not the capture's rows")
    try:
        data = bytes.fromhex(p["record"])
    except ValueError:
        data = b""
    proved(data.hex() == p["record"], "a record that is not in hexadecimal digits")
    row = parse_record(data)
    root = root_from_inclusion(v.sha256(b"\0" + data), p["row"], p["tree_size"], list(map(bytes.fromhex, p["path"])))
    proved(root is not None and root.hex() == c["row_root"], "the path does not lead to the row root")
    if p["scores"] is not None:
        check_proved_scores(p["scores"], c["vocab_size"], row["score_digest"])
    return f"ok capture={v.sha256(v.encode(c)).hex()} row={p['row']} of {p['tree_size']}"

def check_proved_scores(scores, vocab, digest):
    try:
        data = base64.b64decode(scores["base64"], validate=True)
    except binascii.Error:
        data = b""
    proved(base64.b64encode(data).decode() == scores["base64"], "scores that are not base64")
    kind = {"bfloat16": "<u2", "float16": "<f2", "float32": "<f4"}[scores["dtype"]]
    proved(len(data) % np.dtype(kind).itemsize == 0, "scores that are cut")
    f = np.frombuffer(data, kind)
    f = (f.astype("<u4") << 16).view("<f4") if scores["dtype"] == "bfloat16" else f.astype("<f4")
    proved(len(f) == vocab, "another number of scores than the vocabulary")
    form = (list(v.DTYPES).index(scores["dtype"]) + 1, data)
    proved(v.canonical_scores(f) == form and v.score_digest(f) == digest, "scores that are not the record's")

# ---- 13.3 The proof of growth --------------------------------------------------------------------------------------

def check_log_proof(p):
    old, new = bytes.fromhex(p["old_root"]), bytes.fromhex(p["new_root"])
    holds = is_consistent(p["old_size"], old, p["new_size"], new, list(map(bytes.fromhex, p["path"])))
    proved(holds, "the path does not lead to both roots")
    return f"ok origin={p['origin']} entries {p['old_size']} to {p['new_size']} new_root={p['new_root']}"

# ---- 14. Bundles ---------------------------------------------------------------------------------------------------

def read_header(data):
    """The header of a bundle, its entries proved."""
    header = v.document(data, HEADER, limit=2**26)
    entries, head = header["entries"], header["head"]
    v.require(entries, "nothing-to-verify", "no entries")
    places = [e["index"] for e in entries]
    v.require(places == sorted(set(places)), "json-not-canonical", "entries in another order")
    size = 0
    for e in entries:
        line = v.encode(e["entry"])
        v.require(len(line) <= 2**16, "limit-exceeded", f"entry {e['index']}")
        root = root_from_inclusion(v.sha256(b"\0" + line), e["index"], head["size"], list(map(bytes.fromhex, e["path"])))
        proved(root is not None and root.hex() == head["root"], f"entry {e['index']} is not proved")
        size += len(line) + 1
    agree = size == int(head["bytes"]) if len(entries) == head["size"] else size < int(head["bytes"])
    v.require(agree, "log-inconsistent", "the head's bytes are not those of the entries")
    return header

def read_bundles(root, own):
    """What is known of the log of each bundle in a store, index to entry; `own` are the entries of the store's own log."""
    origin = v.document(v.read_file(root, "store.json"), v.STORE)["origin"]
    folder, logs, lines = os.path.join(root, "refs", "bundles"), [], [v.encode(e) for e in own]
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if not name.startswith("."):
            data = v.read_file(root, "refs", "bundles", name)
            v.require(v.sha256(data).hex() == name, "json-not-canonical", f"the bundle {name}")
            header = read_header(data)
            head = header["head"]
            if head["origin"] == origin:
                first = lines[:head["size"]]
                begins = len(first) == head["size"] and v.mth(first).hex() == head["root"]
                begins = begins and sum(len(line) + 1 for line in first) == int(head["bytes"])
                v.require(begins, "log-inconsistent", f"the log does not begin with the entries of the bundle {name}")
            logs.append({e["index"]: e["entry"] for e in header["entries"]})
    return logs

class Bundle:
    """A bundle as something that objects are read from."""
    def __init__(self, data):
        start = len(MAGIC) + 8
        v.require(data[:len(MAGIC)] == MAGIC and len(data) >= start, "schema-invalid", "not a bundle")
        length = int.from_bytes(data[len(MAGIC):start], "little")
        v.require(length <= 2**26, "limit-exceeded", "the header")
        header = read_header(data[start:start + length])
        self.entries, listed = [e["entry"] for e in header["entries"]], header["objects"]
        self.objects, at = {}, start + length
        for o in listed:
            self.objects.setdefault(o["object"], data[at:at + o["bytes"]])
            at += o["bytes"]
        v.require(at >= len(data), "object-unlisted", "bytes behind the last object")
        implied = self.implied()
        for there, needed, rule in (listed, implied, "object-unlisted"), (implied, listed, "object-missing"):
            v.require(all(o in needed for o in there), rule, "objects that are not those of the manifests")
        v.require(listed == implied, "json-not-canonical", "objects in another order")

    def read(self, name, size=None):
        data = self.objects.get(name)
        v.require(data is not None, "object-missing", name)
        v.require(v.object_id(data) == name and size in (None, len(data)), "object-digest", name)
        return data

    def implied(self):
        out = {}
        for e in self.entries:
            if e["act"] != "seal":
                out.setdefault(e["object"], len(v.read_document(self.read, e)))
                continue
            name = e["manifest"]
            data = self.read(name)
            m = v.document(data, v.MANIFEST, limit=2**26)
            out.setdefault(name, len(data))
            out.setdefault(m["run_object"], m["capture"]["run_json"]["bytes"])
            for shard in m["row_shards"] + m["score_shards"]:
                out.setdefault(shard["object"], shard["bytes"])
            for a in m["capture"]["attachments"]:
                out.setdefault(a["blake3"], a["bytes"])
        return [{"bytes": size, "object": name} for name, size in out.items()]

# ---- 15. Samples ---------------------------------------------------------------------------------------------------

def sample(capture, rows, ppm, seed):
    """The places that are drawn, ascending."""
    count = max(1, -(-rows * ppm // 1_000_000))
    def rank(i): return v.sha256(b"witnessmark.sample/v1\0" + bytes.fromhex(capture) + struct.pack("<QQ", seed, i))
    return sorted(sorted(range(rows), key=rank)[:count])

# ---- A file --------------------------------------------------------------------------------------------------------

def check_file(path):
    with open(path, "rb") as f:
        data = f.read()
    if data.startswith(MAGIC):
        bundle = Bundle(data)
        captures = v.captures_of(bundle.entries)
        v.require(captures, "nothing-to-verify", "the bundle has no capture")
        for capture, manifests in captures.items():
            print(capture, *{v.verify_capture(bundle.read, m, capture)[-1] for m in manifests})
        return
    print(check_text(data))

def check_text(data):
    """A proof, of either kind."""
    v.require(len(data) <= 2**27, "limit-exceeded", "a proof")
    schema = v.parse(data)
    schema = schema.get("schema") if isinstance(schema, dict) else None
    kinds = {"witnessmark.proof/v1": (ROW_PROOF, check_row_proof), "witnessmark.log-proof/v1": (LOG_PROOF, check_log_proof)}
    v.require(schema in kinds, "schema-invalid", "neither a bundle nor a proof")
    shape, check = kinds[schema]
    return check(v.document(data, shape, limit=2**27))
