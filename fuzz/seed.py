#!/usr/bin/env python3
"""Fills fuzz/corpus/ with real files: seed.py STORE (a store sealed from corpora/smollm2-h200-cut, or any other)."""
import json, pathlib, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
VECTORS = HERE.parent / "corpora/vectors"
CUT = HERE.parent / "corpora/smollm2-h200-cut"


def put(target, name, data):
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def words():
    """All names of fields and fixed values, for -dict=fuzz/corpus/words.dict."""
    found = {"\\\"", "\\\\u0000", "[[runs]]\\x0a", "2147483648", "9007199254740993", "18446744073709551616"}

    def walk(node):
        if isinstance(node, dict):
            found.update(f"\\\"{key}\\\":" for key in node.get("properties", {}) if isinstance(node.get("properties"), dict))
            found.update(f"\\\"{value}\\\"" for value in [*node.get("enum", []), node.get("const")] if isinstance(value, str))
            for child in node.values():
                walk(child)
        elif isinstance(node, list):
            for child in node:
                walk(child)

    for path in (HERE.parent / "schemas").glob("*.json"):
        walk(json.loads(path.read_text()))
    (HERE / "corpus").mkdir(exist_ok=True)
    (HERE / "corpus/words.dict").write_text("".join(f'"{word}"\n' for word in sorted(found)))


def bundles(store, entries):
    """Bundles of every capture and every result of the log; of what is large, the header and what else fits an input."""
    program = HERE.parent / "target/release/witnessmark"
    with tempfile.TemporaryDirectory() as folder:
        for number, entry in enumerate(entries):
            name = {"seal": "capture", "qualify": "subject"}.get(entry["act"])
            if name:
                bundle = pathlib.Path(folder) / str(number)
                subprocess.run([program, "--quiet", "--store", store, "bundle", entry[name], "--output", bundle], check=True)
                put("bundle", f"{entry['act']}-{number}", bundle.read_bytes()[:12000])


def main(store):
    words()
    store = pathlib.Path(store)
    for capture in CUT.iterdir():
        put("run_json", capture.name, (capture / "run.json").read_bytes())
        put("rows_jsonl", capture.name, (capture / "rows.jsonl").read_bytes())
    for path in (store / "objects").rglob("*"):
        if path.is_file() and path.stat().st_size < 1 << 16:
            data = path.read_bytes()
            if data.startswith(b"PAR1"):
                put("rows_shard", path.name, bytes([9]) + data)
            elif data.startswith((b"{\"captures\"", b"# ")):
                put("claims", path.name, data)
            elif data.startswith(b"{\"capture\""):
                put("documents", path.name, data)
                put("documents", path.name + "-capture", json.dumps(json.loads(data)["capture"], sort_keys=True, separators=(",", ":")).encode())
    for path in (HERE.parent / "specs").glob("*.toml"):
        put("claims", path.name, path.read_bytes())
    head, entries = ((store / "log" / name).read_bytes() for name in ("head", "entries"))
    put("log", "real", head + b"\xff" + entries)
    put("log", "entries", b"\xff" + entries)
    put("documents", "head", head)
    parsed = [json.loads(line) for line in entries.splitlines()]
    for line, entry in zip(entries.splitlines(), parsed):
        put("documents", "entry-" + entry["act"], line)
    bundles(store, parsed)
    for index, shard in enumerate(json.loads((VECTORS / "shards.json").read_text()).get("shards", [])):
        name = shard.get("file", "")
        if not name.startswith("scores"):
            continue
        codec = {"zstd": 0, "lz4": 1, "none": 2}["zstd" if "zstd" in name else "none"]
        shape = (shard["vocab_size"] - 1) * 3 + codec
        put("scores_shard", str(index), bytes([shape % 256, len(shard["scores"])]) + (VECTORS / name).read_bytes())


if __name__ == "__main__":
    main(sys.argv[1])
