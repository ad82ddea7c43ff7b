#!/usr/bin/env python3
"""Speed of witnessmark, as ratios against public tools in the same run.

  bench.py [--rows 768] [--vocab 151936] [--rounds 7] [--threads 2] [--small 10000] [--big 4] [--work DIR] [--write]

Builds the release binary and its inputs, checks that all of it verifies and that ids do not depend on the codec, and only then
times. Every round runs every subject once, interleaved; a figure is the median over rounds of the ratio to the baseline of its
part in the same round (above 1: faster). CPU seconds and peak memory are those of the process (wait4). Parts:

  scores    a capture of bf16-valued scores and one of true f32, both as f32 files; baseline `b3sum` of the raw file
  small     many captures of 4 rows x 512 scores; baselines: `b3sum` of the same objects, and temp file + one sync + rename of them
  single    one row proved from a capture of --big GB (0: left out), two captures that share their scores compared, one more
            act appended to logs of 1 and of many entries; no baseline, but times and bytes read

`--write` puts the tables into benches/README.md. Needs numpy, and `cargo install` for b3sum when it is missing. Other peers are used
where they are found, and said to be missing otherwise: sha256sum, dd, model_signing (PyPI), restic, pyarrow.
"""
import argparse, datetime, hashlib, json, os, pathlib, platform, shutil, statistics, subprocess, sys, time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = ROOT / "target/release/witnessmark"
TOKENS = 128
MISSING = []


def make_capture(folder, rows, vocab, bf16, run_id=None, seed=20261130, tokens=TOKENS):
    """A capture whose rows have the spread of real logits and one clear maximum."""
    if (folder / "run.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    requests, lines = [], []
    with open(folder / "scores.f32", "wb") as scores:
        for prompt in range(rows // tokens):
            prefix = [int(token) for token in rng.integers(0, vocab, 6)]
            output = []
            for position in range(tokens):
                row = (rng.standard_normal(vocab, dtype="f4") * 2.2 - 1).astype("<f4")
                row[rng.integers(0, vocab)] = 18 + rng.random()
                if bf16:
                    row = (row.view("<u4") & 0xFFFF0000).view("<f4")
                second, first = np.argpartition(row, -2)[-2:]
                if row[second] > row[first]:
                    first, second = second, first
                consumed = np.array(prefix + output, dtype="<u4").tobytes()
                lines.append({
                    "row": len(lines), "request_id": f"r{prompt}", "prompt_index": prompt, "position": position,
                    "phase": "decode" if position else "prefill", "prefix_sha256": hashlib.sha256(consumed).hexdigest(),
                    "token_id": int(first), "argmax": int(first), "runner_up": int(second),
                    "captured_seq": len(lines) + 1, "captured_at_ns": 10**18 + len(lines),
                })
                output.append(int(first))
                scores.write(row.tobytes())
            requests.append({"request_id": f"r{prompt}", "prompt_index": prompt, "prompt_token_ids": prefix,
                             "output_token_ids": output, "finish_reason": "length"})
    (folder / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = {"schema": "witnessmark.run/v1", "run_id": run_id or folder.name, "role": "oracle", "mode": "capture-only",
           "sampling": {"method": "greedy", "max_new_tokens": tokens},
           "scores": {"file": "scores.f32", "dtype": "float32", "byte_order": "little", "rows": len(lines), "vocab_size": vocab},
           "requests": requests}
    (folder / "run.json").write_text(json.dumps(run))


def run(command, **kwargs):
    """Wall seconds, CPU seconds, peak memory in MiB and bytes read of a command that must succeed."""
    start = time.perf_counter()
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **kwargs)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    seconds = time.perf_counter() - start
    try:
        read = int(pathlib.Path(f"/proc/{process.pid}/io").read_text().split()[1])
    except OSError:
        read = 0
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"failed ({status}): {' '.join(map(str, command))}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, read


def output(*command, **kwargs):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **kwargs).stdout


def witnessmark(store, *command):
    return [BINARY, "--quiet", "--threads", ARGS.threads, "--store", store, *command]


def seal(store, codec, *captures):
    shutil.rmtree(store, ignore_errors=True)
    return run(witnessmark(store, "seal", "--codec", codec, *captures))


def tool(name):
    found = shutil.which(name)
    if not found and name not in MISSING:
        MISSING.append(name)
    return found


def peers(raw, work, shards):
    """Public tools that read, or copy, the same bytes."""
    found = {}
    if sha := tool("sha256sum"):
        found["sha256sum"] = lambda: run([sha, raw])
    if dd := tool("dd"):
        copy = work / "copy"
        found["dd conv=fsync (a copy)"] = lambda: run([dd, f"if={raw}", f"of={copy}", "bs=1M", "conv=fsync"])
    found["numpy: read, all finite, argmax"] = lambda: run(
        [sys.executable, "-c", "import sys, numpy as np\nfor row in np.memmap(sys.argv[1], '<f4', 'r').reshape(-1, int(sys.argv[2])):\n"
         "  assert np.isfinite(row).all(); row.argmax()", raw, ARGS.vocab])
    try:
        import pyarrow  # noqa: F401
        found["pyarrow: read the zstd shards"] = lambda: run(
            [sys.executable, "-c", "import sys, pyarrow as pa, pyarrow.parquet as pq\npa.set_cpu_count(int(sys.argv[1]))\n"
             "for path in sys.argv[2:]:\n  pq.ParquetFile(path, page_checksum_verification=True).read()", ARGS.threads, *shards])
    except ImportError:
        MISSING.append("pyarrow")
    if signing := tool("model_signing"):
        key, signature = work / "key.pem", work / f"{raw.parent.name}.sig"
        if not key.exists():
            output("openssl", "ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", key)
            output("openssl", "ec", "-in", key, "-pubout", "-out", work / "key.pub")
        output(signing, "sign", "key", raw.parent, "--private_key", key, "--signature", signature)
        found["model_signing verify"] = lambda: run(
            [signing, "verify", "key", raw.parent, "--public_key", work / "key.pub", "--signature", signature])
    if restic := tool("restic"):
        environment = os.environ | {"RESTIC_PASSWORD": "bench", "GOMAXPROCS": str(ARGS.threads)}
        repository = work / f"restic-{raw.parent.name}"
        shutil.rmtree(repository, ignore_errors=True)
        for command in (["init"], ["backup", raw]):
            subprocess.run([restic, "-r", repository, *command], check=True, capture_output=True, env=environment)
        found["restic check --read-data"] = lambda: run([restic, "-r", repository, "check", "--read-data", "--no-cache"], env=environment)
    return found


def b3sum():
    path = ROOT / "target/bench-tools/bin/b3sum"
    if not path.exists():
        subprocess.run(["cargo", "install", "--quiet", "b3sum", "--root", ROOT / "target/bench-tools"], check=True)
    return path


def measure(subjects, rounds):
    samples = {subject: [] for subject in subjects}
    for _ in range(rounds):
        for subject, timed in subjects.items():
            samples[subject].append(timed())
    return samples


def median(runs, part):
    return statistics.median(run[part] for run in runs)


def ratio(base, own):
    return statistics.median(b[0] / o[0] for b, o in zip(base, own))


def shard_paths(store, name):
    shards = json.loads(output(BINARY, "--store", store, "--json", "show", name))["manifest"]["score_shards"]
    return [(shard["bytes"], store / "objects" / shard["object"][:2] / shard["object"][2:]) for shard in shards]


def scores_part(work, hash_tool):
    table = ["| scores | what | speed, b3sum = 1 | s | CPU s per GB | peak MiB | stored / raw f32 |", "|---|---|---|---|---|---|---|"]
    for name, bf16 in (("bf16-valued", True), ("true f32", False)):
        capture = work / ("bf16" if bf16 else "f32")
        make_capture(capture, ARGS.rows, ARGS.vocab, bf16)
        raw = capture / "scores.f32"
        # Written anew, in large pieces: a file that came into the page cache in small ones is mapped at half the speed, which would flatter us.
        shutil.copyfile(raw, work / "raw")
        (work / "raw").replace(raw)
        size = raw.stat().st_size
        subjects = {"b3sum": lambda raw=raw: run([hash_tool, "--num-threads", ARGS.threads, raw])}
        ids, stored, zstd_shards = set(), {}, []
        for codec in ("zstd", "lz4", "none"):
            store = work / f"store-{capture.name}-{codec}"
            seal(store, codec, capture)
            ids.add(json.loads(output(BINARY, "--store", store, "--json", "verify", "--all"))["capture"])
            shards = shard_paths(store, capture.name)
            stored[codec] = sum(bytes for bytes, _ in shards) / size
            zstd_shards = zstd_shards or [path for _, path in shards]
            verify = witnessmark(store, "verify", "--all")
            subjects[f"verify, {codec}"] = lambda verify=verify: run(verify)
            subjects[f"verify --quick, {codec}"] = lambda verify=verify: run([*verify, "--quick"])
            scratch = work / f"scratch-{codec}"
            subjects[f"seal, {codec}"] = lambda scratch=scratch, codec=codec, capture=capture: seal(scratch, codec, capture)
        if len(ids) != 1:
            sys.exit(f"the capture id depends on the codec: {ids}")
        subjects |= peers(raw, work, zstd_shards)
        samples = measure(subjects, ARGS.rounds)
        for subject, runs in samples.items():
            codec = subject.rsplit(" ", 1)[-1] if subject.startswith("seal") else ""
            kept = f"{stored[codec]:.3f}" if codec else ""
            table.append(f"| {name} | {subject} | {ratio(samples['b3sum'], runs):.2f} | {median(runs, 0):.3f} | "
                         f"{median(runs, 1) / size * 1e9:.2f} | {median(runs, 2):.0f} | {kept} |")
    return [f"{ARGS.rows} rows × {ARGS.vocab} scores = {size / 1e6:.0f} MB as f32, {ARGS.rounds} rounds.", "", *table]


WRITE = """import os, pathlib, sys
source, target = map(pathlib.Path, sys.argv[1:])
files = [path for path in (source / "objects").rglob("*") if path.is_file()]
for n, path in enumerate(files):
    (target / str(n)).write_bytes(path.read_bytes())
os.sync()
for n, path in enumerate(files):
    folder = target / "objects" / path.parent.name
    folder.mkdir(parents=True, exist_ok=True)
    os.rename(target / str(n), folder / path.name)
"""


def small_part(work, hash_tool):
    folder, store, scratch = work / "small", work / "store-small", work / "scratch-small"
    for n in range(ARGS.small):
        make_capture(folder / f"c{n:05d}", 4, 512, True, seed=n, tokens=4)
    captures = sorted(folder.iterdir())[:ARGS.small]
    seal(store, "zstd", *captures)
    objects = [path for path in (store / "objects").rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in objects)
    names = work / "small-objects"
    names.write_text("\0".join(map(str, objects)))
    lines = output(BINARY, "--store", store, "--json", "verify", "--all").splitlines()
    if sum(json.loads(line)["verified"] for line in lines) != len(captures):
        sys.exit("a small capture did not verify")

    def write():
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        return run([sys.executable, "-c", WRITE, store, scratch])

    subjects = {
        "b3sum of the objects": lambda: run(["xargs", "-0", "-a", names, hash_tool, "--num-threads", ARGS.threads]),
        "verify --all": lambda: run(witnessmark(store, "verify", "--all")),
        "temp files, one sync, renames": write,
        "seal, one command": lambda: seal(scratch, "zstd", *captures),
    }
    samples = measure(subjects, max(1, ARGS.rounds // 2))
    base = {"verify --all": "b3sum of the objects", "seal, one command": "temp files, one sync, renames"}
    table = ["| what | times as long as the baseline above it | s | CPU s | peak MiB |", "|---|---|---|---|---|"]
    for subject, runs in samples.items():
        times = f"{1 / ratio(samples[base[subject]], runs):.1f}" if subject in base else "1"
        table.append(f"| {subject} | {times} | {median(runs, 0):.2f} | {median(runs, 1):.2f} | {median(runs, 2):.0f} |")
    return [f"{len(captures)} captures of 4 rows × 512 scores, {len(objects)} objects, {size / 1e6:.0f} MB.", "", *table]


def single_part(work):
    table = ["| what | ms | KiB read | peak MiB |", "|---|---|---|---|"]

    def row(subject, command):
        runs = [run(command) for _ in range(ARGS.rounds)]
        table.append(f"| {subject} | {median(runs, 0) * 1e3:.0f} | {median(runs, 3) / 1024:.0f} | {median(runs, 2):.0f} |")

    one, twin, store = work / "bf16", work / "twin", work / "store-twin"
    if not twin.exists():
        twin.mkdir()
        for path in one.iterdir():
            if path.name == "run.json":
                (twin / path.name).write_text(path.read_text().replace('"run_id": "bf16"', '"run_id": "twin"'))
            else:
                os.link(path, twin / path.name)
    seal(store, "zstd", one, twin)
    row("diff of two captures that share all scores", witnessmark(store, "diff", "bf16", "twin"))
    for entries, path in ((1, work / "store-bf16-zstd"), (ARGS.small, work / "store-small")):
        if not path.exists():
            continue
        copy, extra = work / "store-append", work / "extra"
        make_capture(extra, 4, 512, True, seed=10**9, tokens=4)

        def append():
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(path, copy, copy_function=os.link)
            return run(witnessmark(copy, "seal", extra))

        runs = [append() for _ in range(3)]
        table.append(f"| one small capture sealed after {entries} others | {median(runs, 0) * 1e3:.0f} | {median(runs, 3) / 1024:.0f} | {median(runs, 2):.0f} |")
    if ARGS.big:
        rows = int(ARGS.big * 1e9 / ARGS.vocab / 4 / TOKENS) * TOKENS
        big, store = work / "big", work / "store-big"
        make_capture(big, rows, ARGS.vocab, True)
        sealed = seal(store, "zstd", big)
        table.append(f"| seal {ARGS.big:g} GB ({rows} rows) | {sealed[0] * 1e3:.0f} | {sealed[3] / 1024:.0f} | {sealed[2]:.0f} |")
        row(f"prove one row of {ARGS.big:g} GB, its scores with it", witnessmark(store, "prove", "big", "1:17", "--scores"))
        verify = run(witnessmark(store, "verify", "--all"))
        table.append(f"| verify {ARGS.big:g} GB ({rows} rows) | {verify[0] * 1e3:.0f} | {verify[3] / 1024:.0f} | {verify[2]:.0f} |")
    return ["Medians; warm cache.", "", *table]


def main():
    subprocess.run(["cargo", "build", "--release", "--locked", "--quiet"], check=True, cwd=ROOT)
    work = pathlib.Path(ARGS.work or ROOT / "target/bench").resolve()
    work.mkdir(parents=True, exist_ok=True)
    hash_tool = b3sum()
    parts = [scores_part(work, hash_tool)]
    if ARGS.small:
        parts.append(small_part(work, hash_tool))
    parts.append(single_part(work))
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    missing = f" Not found here, so not in the table: {', '.join(MISSING)}." if MISSING else ""
    head = (f"{datetime.date.today()}, {cpu}, {ARGS.threads} threads of {os.cpu_count()}, warm cache, interleaved medians; "
            f"{output(BINARY, '--version').strip()}, {output(hash_tool, '--version').strip()}, numpy {np.__version__}.{missing}")
    text = "\n\n".join([head, *("\n".join(part) for part in parts)])
    print(text)
    if ARGS.write:
        readme = ROOT / "benches/README.md"
        before, _, rest = readme.read_text().partition("<!-- table -->")
        _, _, after = rest.partition("<!-- end -->")
        readme.write_text(f"{before}<!-- table -->\n\n{text}\n\n<!-- end -->{after}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=768)
    parser.add_argument("--vocab", type=int, default=151_936)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--small", type=int, default=10_000)
    parser.add_argument("--big", type=float, default=4)
    parser.add_argument("--work")
    parser.add_argument("--write", action="store_true")
    ARGS = parser.parse_args()
    main()
