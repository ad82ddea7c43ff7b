"""The vectors of section 11, made by verify.py, and what they have to withstand. Run as verify.py --make-vectors."""
import base64, json, os, re, struct, sys, tempfile
import numpy as np
import handed, shards, verify as v

HERE = os.path.dirname(os.path.abspath(__file__))
README = """Vectors of the witnessmark format, version 1 (specs/format-v1.md, section 11). `specs/reference/verify.py --make-vectors`
writes them and `--self-test` compares them. Digests and byte strings are lower-case hexadecimal; a score is the eight
digits of its f32 bit pattern (1.0 is 3f800000).

canonical-scores.json   rows of scores: the tag, the canonical scores, the score digest (section 4). Rows marked
                        `refused` have a canonical form, but are refused as score-nonfinite in a capture.
row-records.json        rows as in rows.jsonl, with their score digest: record, leaf hash, entry of the score tree;
                        below them both roots of all these rows in key order (sections 3.2 and 5); `refuse`: lines of
                        rows.jsonl that break section 3.1
chain.json              the chain of section 3.3: a run nonce and links in the order of captured_seq
trees.json              entries and their Merkle tree hash; a capture's trees and a log with entries are never empty
canonical-json.json     `encode`: JSON texts and their canonical form; `documents`: texts that are documents;
                        `refuse_as_document` and `refuse_as_foreign`: texts that break section 2.2 or 2.1 (`hex` where they
                        are not UTF-8); `accept_as_foreign`: texts that only section 2.1 allows
capture-document.json   capture documents, their canonical bytes and capture ids (section 6); paths that are refused
scores-none.parquet     scores shard, codec none
scores-zstd.parquet     scores shard, codec zstd, all frames of raw blocks, so that no compressor has a say
rows.parquet            rows shard
shards.json             what the three files hold, their BLAKE3, and `flips`: the offsets of the bytes whose change, to any
                        other value, a reader of the shard must refuse (that is all of them), `raw_frames`: the BLAKE3 of the
                        frame of raw blocks of a plane whose byte i is i mod 251
log.json                log entries, head documents for each size, file names of refs (section 9)
proofs.json             `inclusion` and `consistency`: paths of trees over the entries `0`, `1`, `2`, … in ASCII (RFC 9162); `rows`
                        and `logs`: whole proofs, as they are written (sections 12 and 13.3); `refuse`: the same with one
                        thing changed; `samples`: what is drawn of a capture (section 15)
"""

def h(label): return v.sha256(label.encode()).hex()
def floats(row): return np.array([int(x, 16) for x in row], "<u4").view("<f4")

# ---- What only vectors need: writing, where verify.py reads -------------------------------------------------------

def row_from_json(o):
    """A row as the shard has it, from an object of rows.jsonl (and its score digest)."""
    shapes = {"int32": v.INT32, "int64": v.INT64, "string": v.NAME, "digest": v.DIGEST}
    shapes = {"row": v.INT64, **{name: shapes[kind] for name, kind in shards.COLUMNS},
              "phase": {"prefill", "decode", "recomputed"}, "x": lambda x: v.FLAT(v.encode(x).decode("utf-8"))}
    o = {"sample_index": 0, **{name: x for name, x in o.items() if x is not None}}
    for name, x in o.items():
        v.require(name in shapes and v.fits(x, shapes[name]), "schema-invalid", name)
    v.require(o.keys() >= set(shards.REQUIRED), "schema-invalid", "a required field is not there")
    convert = {"digest": bytes.fromhex, "int32": int, "int64": int, "string": str}
    row = {name: convert[kind](o[name]) for name, kind in shards.COLUMNS if name in o and name != "x"}
    return {**row, "x": v.encode(o["x"]).decode("utf-8")} if "x" in o else row

def chain(run_nonce, links):
    """3.3; links are (prefix_sha256, token_id, SHA-256 of the scores or 32 zero bytes), in the order of captured_seq."""
    step = v.sha256((run_nonce or "").encode("utf-8"))
    for prefix, token, scores in links:
        step = v.sha256(step + prefix + struct.pack("<I", token) + scores)
        yield step

def raw_frame(plane):
    """The zstd frame of raw blocks of section 8.2."""
    blocks = [plane[i:i + 131072] for i in range(0, len(plane), 131072)]
    heads = [len(b) << 3 | (n == len(blocks) - 1) for n, b in enumerate(blocks)]
    return b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(plane)) + b"".join(
        struct.pack("<I", head)[:3] + block for head, block in zip(heads, blocks))

def scores_shard(scores, codec):
    """A file of [rows, vocab] scores that no compressor has a say in."""
    form = {"none": lambda plane: plane, "zstd": raw_frame}[codec]
    planes = [[row.view("u1").reshape(-1, 4)[:, k].tobytes() for k in range(4)] for row in scores]
    return shards.scores_shard(scores.shape[1], codec, [b"".join(map(form, row)) for row in planes])

# ---- The vectors --------------------------------------------------------------------------------------------------

def canonical_scores():
    rows = {
        "one value": ["3f800000"],
        "bf16 and f16 both hold these: bf16 is tried first": ["3f800000", "c0000000", "00000000", "3f000000"],
        "only bf16: beyond the range of f16": ["7f7f0000", "7e000000", "3f800000"],
        "only bf16: below the range of f16": ["0d800000", "80800000"],
        "bf16 subnormals": ["00010000", "007f0000", "80010000"],
        "minus zero": ["80000000", "00000000"],
        "the smallest f16 subnormal is a bf16 too": ["33800000"],
        "only f16: 0.1 and its neighbour": ["3dccc000", "3dcce000"],
        "only f16: the largest": ["477fe000", "c77fe000"],
        "only f16: subnormals": ["387fc000", "b87fc000", "33800000", "34400000"],
        "only f16, with minus zero": ["3dccc000", "80000000", "00000000"],
        "f32: 0.1": ["3dcccccd"],
        "f32: 65520 rounds to infinity in f16": ["477ff000"],
        "f32: 2^-25 is no f16, 0.1 is no bf16": ["33000000", "3dccc000"],
        "f32: one value beyond f16, one that only f16 holds": ["7f000000", "3dccc000"],
        "f32: an f32 subnormal": ["00000001"],
        "f32: an f32 subnormal that f16 would flush, among f16": ["00000001", "3dccc000"],
        "f32: a bf16 subnormal among f16": ["00010000", "3dccc000"],
        "f32: a last bit of one value in a row of bf16": ["3f800000", "40000000", "40400001"],
        "masked: minus infinity with bf16": ["ff800000", "3f800000"],
        "masked: minus infinity with f16": ["ff800000", "3dccc000"],
        "masked: minus infinity with f32": ["ff800000", "3dcccccd"],
        "refused: a NaN that bf16 holds": ["7fc00000", "3f800000"],
        "refused: a NaN that f16 could hold": ["7fc02000", "3f800000"],
    }
    out = []
    for name, row in rows.items():
        tag, data = v.canonical_scores(floats(row))
        out.append({"name": name, "f32": row, "tag": tag, "canonical": data.hex(), "score_digest": v.score_digest(floats(row)).hex()})
    return out

BASE = {"request_id": "r-0", "prompt_index": 0, "sample_index": 0, "position": 0, "phase": "prefill",
        "prefix_sha256": h("prefix 0"), "token_id": 7042}
ALL = {"row": 3, "request_id": "r-1", "prompt_index": 1, "sample_index": 2, "position": 3, "phase": "decode",
       "prefix_sha256": h("prefix 3"), "token_id": 1, "sampled_token_id": 2, "forced_token_id": 1, "argmax": 2, "runner_up": 0,
       "captured_seq": 10, "forced_seq": 11, "step": 12, "captured_at_ns": 1796035146852887425,
       "forced_at_ns": 1796035146852887426, "scores_modified_at_ns": 1796035146852887427, "batch_size": 4, "query_len": 1,
       "kv_len": 9, "scores_sha256": h("scores"), "scores_blake3": h("scores blake3"), "chain_sha256": h("chain"),
       "run_nonce": "e63b2912138c81c9", "x": {"note": "kept", "n": -7}, "score_digest": h("digest 3")}

def row_records():
    rows = [
        ("only the required fields", BASE),
        ("sample_index absent, null for absent", {**{k: x for k, x in BASE.items() if k != "sample_index"}, "position": 1,
                                                  "argmax": None, "x": None, "phase": "decode"}),
        ("a score digest", {**BASE, "position": 2, "phase": "recomputed", "score_digest": h("digest 2")}),
        ("all fields", ALL),
        ("strings beyond ASCII", {**BASE, "prompt_index": 2, "request_id": "d\u00e9j\u00e0-e\u0301-\U0001f600-\u6587", "run_nonce": "\u6587"}),
        ("x: keys whose order in UTF-16 and in UTF-8 differ, an empty key, escapes",
         {**BASE, "prompt_index": 3, "x": {"\ue000": 1, "\U0001f600": 2, "\uffff": 3, "": "", "\u0007": "\"\\/\n\u007f\u2028", "B": 4}}),
        ("x: the largest integers", {**BASE, "prompt_index": 4, "x": {"max": 2**53 - 1, "min": 1 - 2**53, "zero": 0}}),
        ("x: an empty object", {**BASE, "prompt_index": 5, "x": {}}),
        ("the largest numbers", {**BASE, "prompt_index": 2**31 - 1, "sample_index": 2**31 - 1, "position": 2**31 - 1, "phase": "decode",
                                 "token_id": 2**31 - 1, "captured_seq": 2**63 - 1, "captured_at_ns": 2**63 - 1, "kv_len": 2**31 - 1}),
    ]
    base = json.dumps(BASE)
    def other(old, new):
        assert base.count(old) == 1
        return base.replace(old, new)
    refuse = [
        ("a key that no schema knows", other('"token_id"', '"note": "", "token_id"')),
        ("a score digest", other('"token_id"', '"score_digest": "%s", "token_id"' % h("digest"))),
        ("no token_id", other(', "token_id": 7042', "")), ("token_id null", other("7042", "null")),
        ("minus zero", other('"position": 0', '"position": -0')), ("a fraction", other('"position": 0', '"position": 0.0')),
        ("an exponent", other("7042", "7042e0")), ("below zero", other("7042", "-1")), ("2^31", other("7042", "2147483648")),
        ("2^63", other('"token_id"', '"step": 9223372036854775808, "token_id"')), ("an integer in a string", other("7042", '"7042"')),
        ("a boolean for an integer", other("7042", "true")), ("an empty request_id", other('"r-0"', '""')),
        ("a request_id of 1025 bytes", other("r-0", "r" * 1025)), ("an empty run_nonce", other('"token_id"', '"run_nonce": "", "token_id"')),
        ("a phase that there is not", other('"prefill"', '"Prefill"')), ("a digest in upper case", other(h("prefix 0"), h("prefix 0").upper())),
        ("a digest of 63 digits", other(h("prefix 0"), h("prefix 0")[1:])), ("a row number below zero", other('{', '{"row": -1, ')),
        *((f"x: {what}", other('"token_id"', f'"x": {x}, "token_id"')) for what, x in (
            ("null in it", '{"a": null}'), ("a boolean in it", '{"a": true}'), ("a float in it", '{"a": 1.5}'), ("minus zero in it", '{"a": -0}'),
            ("2^53 in it", '{"a": 9007199254740992}'), ("an object in it", '{"a": {}}'), ("an array in it", '{"a": []}'), ("an array", "[]"),
            ("a string", '"{}"'))),
    ]
    out, parsed = [], [row_from_json(o) for _, o in rows]
    for (name, o), row in zip(rows, parsed):
        entry = {"name": name, "row": o, "record": v.record(row).hex(), "leaf": v.mth([v.record(row)]).hex()}
        if "score_digest" in o:
            entry["score_entry"] = v.score_entry(row).hex()
        out.append(entry)
    scored = [v.score_entry(row) for row in parsed if "score_digest" in row]
    return {"rows": out, "row_root": v.mth([v.record(row) for row in parsed]).hex(),
            "score_root_of_those_with_a_score_digest": v.mth(scored).hex(), "refuse": [{"why": why, "text": t} for why, t in refuse]}

def chains():
    out = []
    for nonce in "e63b2912138c81c9", None:
        links = [{"prefix_sha256": h(f"prefix {n}"), "token_id": 7 * n, "scores_sha256": h(f"scores {n}") if nonce else None} for n in range(3)]
        raw = [(bytes.fromhex(x["prefix_sha256"]), x["token_id"], bytes.fromhex(x["scores_sha256"] or "00" * 32)) for x in links]
        for link, step in zip(links, chain(nonce, raw)):
            link["chain_sha256"] = step.hex()
        out.append({"run_nonce": nonce, "links": links})
    return out

def trees():
    entries = [b"", b"\x00", b"one", b"\x01" * 64, *(b"entry %d" % n for n in range(4, 9))]
    return [{"entries": [e.hex() for e in entries[:n]], "mth": v.mth(entries[:n]).hex()} for n in (1, 2, 3, 4, 5, 7, 8, 9)]

def canonical_json():
    encode = ['{"b": 1, "a": [true, false, null, {}, []]}', '{"\\ue000":1,"\\ud83d\\ude00":2,"\\u00e9":3,"e\\u0301":4,"e":5}',
              '{"a":1,"B":2,"10":3,"9":4}', '"\\u0000\\u0008\\u0009\\u000a\\u000b\\u000c\\u000d\\u001f\\u0020\\u0022\\u005c\\u002f\\u007f\\u2028\\ud83d\\ude00"',
              '[9007199254740991,-9007199254740991,0,-1]', ' {\n "" : "" } ', '"\\/"', '{"a":{"c":1,"b":{"e":1,"d":2}}}']
    documents = ['{}', '[]', 'null', '0', '{"B":1,"a":2}', '"\u00e9\u007f\u2028\U0001f600"', '[' * 64 + ']' * 64]
    refuse = [("a key twice", '{"a":1,"a":1}'), ("a key twice once unescaped", '{"a":1,"\\u0061":1}'), ("keys equal without regard to case", '{"A":1,"a":2}'), ("a float", '{"a":1.0}'), ("an exponent", '1e3'),
              ("minus zero", '-0'), ("2^53", '9007199254740992'), ("minus 2^53", '-9007199254740992'), ("a larger integer", '9223372036854775807'),
              ("a leading zero", '01'), ("a plus sign", '+1'), ("an escape of a printable character", '"\\u0041"'), ("an escaped solidus", '"\\/"'),
              ("a line feed as \\u000a", '"\\u000a"'), ("upper-case hexadecimal", '"\\u001F"'), ("an escape of a character beyond ASCII", '"\\u00e9"'),
              ("unsorted keys", '{"b":1,"a":2}'), ("keys sorted by UTF-8", '{"\ue000":1,"\U0001f600":2}'), ("white space", '{"a": 1}'),
              ("a line feed at the end", '{}\n'), ("white space before", ' {}'), ("a lone surrogate", '"\\ud800"'), ("a low surrogate first", '"\\ude00\\ud83d"'),
              ("trailing bytes", '{}x'), ("two values", '{}{}'), ("a NUL after the value", '{}\0'), ("nothing", ''), ("NaN", 'NaN'), ("Infinity", '-Infinity'),
              ("a trailing comma", '[1,]'), ("single quotes", "{'a':1}"), ("a raw control character", '"\t"'), ("a comment", '{}//'),
              ("an unfinished value", '{"a":'), ("nesting of 65", '[' * 65 + ']' * 65)]
    broken = [("a byte order mark", "efbbbf7b7d"), ("a byte that is no UTF-8", "22ff22"), ("an overlong form", "22c08022"),
              ("a surrogate in UTF-8", "22eda08022"), ("UTF-16", "fffe7b007d00")]
    fold = [("a key twice", '{"a":1,"a":1}'), ("a key twice once unescaped", '{"a":1,"\\u0061":1}'), ("keys equal without regard to case", '{"a":1,"A":2}'),
            ("the same, deeper", '[{"x":{"run_ID":1,"run_id":2}}]'), ("a lone surrogate", '{"a":"\\ud800"}'), ("a lone surrogate in a key", '{"\\udc00":1}'),
            ("NaN", '[NaN]'), ("trailing bytes", '{} {}'), ("a leading zero", '[01]'), ("a raw control character", '"\n"'), ("nesting of 65", '[' * 65 + ']' * 65)]
    accept = [' {"b" : 1.0e-5, "a" : -0 }\r\n', '"\\u0041\\/\\ud83d\\ude00"', '{"\u00e9":1,"\u00c9":2}', '[1e400,123456789012345678901234567890]',
              '{"a":null,"b":{"a":1}}', '[' * 64 + ']' * 64]
    hexed = [{"why": why, "hex": x} for why, x in broken]
    return {"encode": [{"json": t, "canonical": v.encode(v.parse(t.encode())).decode()} for t in encode],
            "documents": documents, "refuse_as_document": [{"why": why, "text": t} for why, t in refuse] + hexed,
            "refuse_as_foreign": [{"why": why, "text": t} for why, t in fold] + hexed, "accept_as_foreign": accept}

def capture_documents():
    def capture(attachments, baseline=False, complete=True):
        return {"attachments": [{"blake3": v.object_id(p.encode()), "bytes": n, "path": p} for n, p in enumerate(attachments)], "complete": complete,
                "row_root": h("row root"), "rows": 162, "run_json": {"bytes": 4826, "sha256": h("run.json")}, "schema": "witnessmark.capture/v1",
                "score_root": None if baseline else h("score root"), "vocab_size": None if baseline else 49152}
    names = ["\U0001f600", "\ue000", "e\u0301", "\u00e9", "a", "A", "logs/engine.txt", "logs-2", "logs/a b~", "...", ".x", "\u007f"]
    ordered = sorted(names, key=lambda p: p.encode())
    documents = {"no attachments": capture([]), "a baseline": capture([], baseline=True), "never ended": capture(["log.txt"], complete=False),
                 "attachments by the UTF-8 bytes of their paths": capture(ordered)}
    refuse = [["b", "a"], ["a", "a"], [""], ["/a"], ["a/"], ["a//b"], ["."], [".."], ["a/../b"], ["./a"], ["a\\b"], ["c:"], ["a\u001fb"], ["a\0"],
              ["\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"), "\ue000"]]
    out = []
    for name, c in documents.items():
        data = v.encode(c)
        out.append({"name": name, "document": c, "canonical": data.decode(), "capture_id": v.sha256(data).hex()})
    return {"documents": out, "refuse_attachment_paths": refuse}

def shard_files():
    bits = [["3f800000", "c0490000", "00000000", "80000000", "3dccc000"], ["3dcccccd", "00000001", "7f7fffff", "ff7fffff", "477ff000"],
            ["3f000000", "3e000000", "00010000", "477f0000", "c1200000"]]
    long = [[f"{0x3f800000 + 65536 * n + 8192 * (n % 3):08x}", f"{0xbf800000 - 65536 * n:08x}", "00000000"] for n in range(16)]
    rows = [{**BASE}, {**BASE, "position": 1, "phase": "decode", "token_id": 3, "step": 1, "captured_seq": 1, "request_id": "d\u00e9j\u00e0", "score_digest": h("a")},
            {**BASE, "position": 2, "phase": "decode", "token_id": 4, "step": 2, "captured_seq": 2, "x": {"k": "v"}, "score_digest": h("b")}, ALL]
    files = {"scores-none.parquet": scores_shard(np.array([floats(r) for r in bits]), "none"),
             "scores-zstd.parquet": scores_shard(np.array([floats(r) for r in long]), "zstd"),
             "rows.parquet": shards.rows_shard([row_from_json(o) for o in rows])}
    inputs = {"scores-none.parquet": {"codec": "none", "vocab_size": 5, "scores": bits}, "rows.parquet": {"rows": rows},
              "scores-zstd.parquet": {"codec": "zstd", "vocab_size": 3, "scores": long}}
    index = [{"file": name, **inputs[name], "bytes": len(data), "blake3": v.object_id(data), "flips": list(range(len(data)))} for name, data in files.items()]
    frames = [raw_frame(bytes(i % 251 for i in range(n))) for n in (1, 251, 131071, 131072, 131073, 262144, 300000)]
    return files, {"shards": index, "raw_frames": [{"plane_bytes": int.from_bytes(f[5:9], "little"), "frame_bytes": len(f), "blake3": v.object_id(f)} for f in frames]}

def logs():
    origin, out = h("origin")[:32], []
    lines = [v.encode({"act": "seal", "at": str(1796035146852887425 + n), "capture": h(f"capture {n}"), "manifest": h(f"manifest {n}"),
                       "schema": "witnessmark.entry/v1", "tool": "witnessmark 0.1.0"}).decode() for n in range(5)]
    for n in range(1, 6):
        size = sum(len(x) + 1 for x in lines[:n])
        head = {"bytes": str(size), "origin": origin, "root": v.mth([x.encode() for x in lines[:n]]).hex(), "schema": "witnessmark.head/v1", "size": n}
        out.append({"head": head, "canonical": v.encode(head).decode()})
    runs = ["oracle-c1-rep0", "A", "a", ".", "..", ".hidden", "a/b", "a b", "%41", "\u00e9", "e\u0301", "CON", "a:b\\c", "x" * 200, "x" * 201,
            "A" * 66, "A" * 67, "sha256-" + h("x" * 201), "sha256-", "sha256", "SHA256-x"]
    return {"origin": origin, "entries": lines, "heads": out, "unfinished_append": lines[0] + "\n" + lines[1] + "\n" + lines[2][:40],
            "unfinished_append_size": 2, "refs": [{"run_id": r, "file": v.ref_name(r)} for r in runs]}

def proofs():
    entries = [b"%d" % n for n in range(9)]
    hexed = lambda path: [p.hex() for p in path]
    inclusion = [{"size": n, "index": m, "path": hexed(handed.inclusion(entries[:n], m)), "root": v.mth(entries[:n]).hex()}
                 for n in (1, 2, 3, 5, 8, 9) for m in range(n)]
    consistency = [{"old_size": m, "new_size": n, "path": hexed(handed.consistency(entries[:n], m)), "old_root": v.mth(entries[:m]).hex(),
                    "new_root": v.mth(entries[:n]).hex()} for n in (1, 4, 5, 7, 9) for m in range(n + 1)]
    scores = [["3f800000", "c0000000"], ["3dccc000", "3dcce000"], ["3dcccccd", "3f800000"]]  # bf16, f16, f32
    rows = [row_from_json({**BASE, "position": n, "phase": "decode" if n else "prefill"}) for n in range(3)]
    for row, f in zip(rows, scores):
        row["score_digest"] = v.score_digest(floats(f))
    records = [v.record(row) for row in rows]
    capture = {"attachments": [], "complete": True, "row_root": v.mth(records).hex(), "rows": 3,
               "run_json": {"bytes": 2, "sha256": h("{}")}, "schema": "witnessmark.capture/v1",
               "score_root": v.mth(list(map(v.score_entry, rows))).hex(), "vocab_size": 2}
    whole = []
    for n, f in enumerate(scores):
        tag, data = v.canonical_scores(floats(f))
        given = {"base64": base64.b64encode(data).decode(), "dtype": list(v.DTYPES)[tag - 1]}
        whole.append({"capture": capture, "path": hexed(handed.inclusion(records, n)), "record": records[n].hex(), "row": n,
                      "schema": "witnessmark.proof/v1", "scores": given if n != 1 else None, "tree_size": 3})
    grown = [{"new_root": c["new_root"], "new_size": c["new_size"], "old_root": c["old_root"], "old_size": c["old_size"],
              "origin": h("origin")[:32], "path": c["path"], "schema": "witnessmark.log-proof/v1"} for c in consistency if c["new_size"] == 7]
    row, log = whole[0], grown[3]
    leaf = v.sha256(b"\0" + records[2]).hex()
    refuse = [
        ("another row", {**row, "row": 1}), ("a row beyond the tree", {**row, "row": 3}), ("another tree size", {**row, "tree_size": 4}),
        ("another tree size in both places", {**row, "tree_size": 5, "capture": {**capture, "rows": 5}}),
        ("a path that is cut", {**row, "path": row["path"][:-1]}), ("a path that is longer", {**row, "path": row["path"] + [leaf]}),
        ("an inner node as a record", {**row, "record": "".join(row["path"])}), ("a record in upper case", {**row, "record": row["record"].upper()}),
        ("the last leaf counted twice", {**whole[2], "row": 3, "tree_size": 4, "capture": {**capture, "rows": 4}, "path": [leaf] + whole[2]["path"]}),
        ("scores of another row", {**row, "scores": whole[2]["scores"]}), ("scores in a wider dtype", {**row, "scores": {
            "base64": base64.b64encode(floats(scores[0]).tobytes()).decode(), "dtype": "float32"}}),
        ("scores of a row that has another number of them", {**row, "capture": {**capture, "vocab_size": 3}}),
        ("an older log of another size", {**log, "old_size": 2}), ("a newer log of another size", {**log, "new_size": 9}),
        ("roots changed places", {**log, "old_root": log["new_root"], "new_root": log["old_root"]}), ("no path", {**log, "path": []}),
        ("a path that is longer", {**log, "path": log["path"] + [leaf]})]
    samples = [{"capture": h(f"capture {n}"), "rows": rows, "ppm": ppm, "seed": str(seed), "drawn": handed.sample(h(f"capture {n}"), rows, ppm, seed)}
               for n, (rows, ppm, seed) in enumerate([(162, 50_000, 7), (162, 50_000, 2**64 - 1), (1, 1, 0), (9, 1_000_000, 3), (10, 100_001, 1)])]
    return {"inclusion": inclusion, "consistency": consistency, "rows": [v.encode(p).decode() for p in whole], "logs": [v.encode(p).decode() for p in grown],
            "refuse": [{"why": why, "text": v.encode(p).decode()} for why, p in refuse], "samples": samples}

def dumps(value):
    item = r'(?:-?\d+|"[0-9a-f]{8}")'  # lists of numbers and of bit patterns stand on one line
    flat = re.compile(r"\[\s+(%s(?:,\s+%s)*)\s+\]" % (item, item))
    return flat.sub(lambda m: "[" + " ".join(m[1].split()) + "]", json.dumps(value, indent=1)) + "\n"

def make(folder):
    os.makedirs(folder, exist_ok=True)
    files, index = shard_files()
    texts = {"canonical-scores.json": canonical_scores(), "row-records.json": row_records(), "chain.json": chains(), "trees.json": trees(),
             "canonical-json.json": canonical_json(), "capture-document.json": capture_documents(), "shards.json": index, "log.json": logs(),
             "proofs.json": proofs()}
    files = {**files, "README.md": README.encode(), **{name: dumps(x).encode() for name, x in texts.items()}}
    for name, data in files.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
    return files

def refused(function, *args):
    try:
        function(*args)
    except v.Refused:
        return True
    return False

def self_test():
    with tempfile.TemporaryDirectory() as folder:
        files = make(folder)
    kept = os.path.join(HERE, "..", "..", "corpora", "vectors")
    assert sorted(os.listdir(kept)) == sorted(files), "other files in corpora/vectors"
    for name, data in files.items():
        with open(os.path.join(kept, name), "rb") as f:
            assert f.read() == data, f"{name} is not what is made now"
    for s in json.loads(files["shards.json"])["shards"]:
        data = files[s["file"]]
        if "rows" in s:
            def read(d): return v.read_shard(shards.read_rows, d, len(s["rows"]))
            want = [{**{name: None for name, _ in shards.COLUMNS}, **row_from_json(o)} for o in s["rows"]]
            assert read(data) == want, "rows.parquet reads differently"
        else:
            def read(d): return v.read_shard(shards.read_scores, d, len(s["scores"]), s["vocab_size"], s["codec"])
            want = [floats(r).tobytes() for r in s["scores"]]
            assert [r.tobytes() for r in read(data)] == want, f"{s['file']} reads differently"
        for at in s["flips"]:
            for mask in 1, 0x10, 0x80, 0xFF:
                assert refused(read, data[:at] + bytes([data[at] ^ mask]) + data[at + 1:]), f"{s['file']}: a flip at {at} passes"
        for other in data + b"\0", data[:-1], b"", data[:4] + b"\0" + data[4:]:
            assert refused(read, other), f"{s['file']}: other lengths pass"
    texts = json.loads(files["canonical-json.json"])
    def raw(t): return bytes.fromhex(t["hex"]) if "hex" in t else t["text"].encode("utf-8")
    assert all(refused(v.document, raw(t)) for t in texts["refuse_as_document"]), "a document that should be refused"
    assert all(refused(v.parse, raw(t)) for t in texts["refuse_as_foreign"]), "JSON that should be refused"
    for t in texts["accept_as_foreign"]:
        v.parse(t.encode())
    for t in texts["documents"] + [t["canonical"] for t in texts["encode"]]:
        v.document(t.encode())
    for t in json.loads(files["row-records.json"])["refuse"]:
        o = v.parse(t["text"].encode())
        assert "score_digest" in o or refused(row_from_json, o), f"a row that should be refused: {t['why']}"
    captures = json.loads(files["capture-document.json"])
    for c in captures["documents"]:
        v.check_capture(v.document(c["canonical"].encode(), v.CAPTURE))
    for paths in captures["refuse_attachment_paths"]:
        c = {**captures["documents"][0]["document"], "attachments": [{"path": p, "bytes": 0, "blake3": h("")} for p in paths]}
        assert refused(v.check_capture, c), f"{paths} pass"
    log = json.loads(files["log.json"])
    text = "".join(e + "\n" for e in log["entries"]).encode()
    for n, head in enumerate(log["heads"], 1):
        assert len(v.check_log(text, v.document(head["canonical"].encode(), v.HEAD), log["origin"])) == n
    v.check_log(log["unfinished_append"].encode(), log["heads"][1]["head"], log["origin"])
    assert refused(v.check_log, log["unfinished_append"].encode(), log["heads"][2]["head"], log["origin"])
    proofs = json.loads(files["proofs.json"])
    for p in proofs["rows"] + proofs["logs"]:
        handed.check_text(p.encode())
    for p in proofs["refuse"]:
        assert refused(handed.check_text, p["text"].encode()), f"a proof that should be refused: {p['why']}"
    print(f"{len(files)} files of vectors are as they are made; shards read and flips refused")

def main(args):
    if args[0] == "--make-vectors" and len(args) == 2:
        make(args[1])
    elif args == ["--self-test"]:
        try:
            self_test()
        except AssertionError as e:
            print(f"self-test: {e}", file=sys.stderr)
            return 2
    else:
        print(v.__doc__, file=sys.stderr)
        return 3
    return 0
