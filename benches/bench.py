#!/usr/bin/env python3
"""Speed of witnessmark, as ratios against public tools in the same run.

  bench.py [--rows 768] [--vocab 151936] [--rounds 7] [--threads 2] [--work DIR] [--write]

Builds the release binary and its inputs (a capture of bf16-valued scores and one of true f32, both as f32 files, in the shape of
a 151,936-token vocabulary), seals each with every codec, checks that all of it verifies and that ids do not depend on the
codec, and only then times. Every round runs every subject once, interleaved; a figure is the median over rounds of the
ratio to `b3sum` of the raw f32 file in the same round (above 1: faster than b3sum). CPU seconds and peak memory are those of
the process (wait4). `--write` puts the table into benches/README.md.

Needs numpy; `cargo install b3sum --root target/bench-tools` is run when it is missing. Other peers are used where they are found:
sha256sum, model_signing (PyPI), restic.
"""
import argparse, datetime, hashlib, json, os, pathlib, platform, shutil, statistics, subprocess, sys, time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = ROOT / "target/release/witnessmark"
TOKENS = 128


def make_capture(folder, rows, vocab, bf16):
    """A capture whose rows have the spread of real logits and one clear maximum."""
    if (folder / "run.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20261130)
    requests, lines = [], []
    with open(folder / "scores.f32", "wb") as scores:
        for prompt in range(rows // TOKENS):
            prefix = [int(token) for token in rng.integers(0, vocab, 6)]
            output = []
            for position in range(TOKENS):
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
    run = {"schema": "witnessmark.run/v1", "run_id": folder.name, "role": "oracle", "mode": "capture-only",
           "sampling": {"method": "greedy", "max_new_tokens": TOKENS},
           "scores": {"file": "scores.f32", "dtype": "float32", "byte_order": "little", "rows": len(lines), "vocab_size": vocab},
           "requests": requests}
    (folder / "run.json").write_text(json.dumps(run))


def run(command, **kwargs):
    """Wall seconds, CPU seconds and peak memory in MiB of a command that must succeed."""
    start = time.perf_counter()
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **kwargs)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        sys.exit(f"failed ({status}): {' '.join(map(str, command))}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def output(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def seal(store, codec, capture):
    shutil.rmtree(store, ignore_errors=True)
    return run([BINARY, "--quiet", "--threads", ARGS.threads, "--store", store, "seal", "--codec", codec, capture])


def peers(raw, work):
    """Public tools that read the same bytes."""
    found = {}
    if tool := shutil.which("sha256sum"):
        found["sha256sum"] = lambda tool=tool: run([tool, raw])
    if tool := shutil.which("model_signing"):
        key, signature = work / "key.pem", work / f"{raw.parent.name}.sig"
        if not key.exists():
            output("openssl", "ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", key)
            output("openssl", "ec", "-in", key, "-pubout", "-out", work / "key.pub")
        output(tool, "sign", "key", raw.parent, "--private_key", key, "--signature", signature)
        found["model_signing verify"] = lambda tool=tool: run(
            [tool, "verify", "key", raw.parent, "--public_key", work / "key.pub", "--signature", signature])
    if tool := shutil.which("restic"):
        environment = os.environ | {"RESTIC_PASSWORD": "bench", "GOMAXPROCS": str(ARGS.threads)}
        repository = work / f"restic-{raw.parent.name}"
        shutil.rmtree(repository, ignore_errors=True)
        for command in (["init"], ["backup", raw]):
            subprocess.run([tool, "-r", repository, *command], check=True, capture_output=True, env=environment)
        found["restic check --read-data"] = lambda tool=tool: run([tool, "-r", repository, "check", "--read-data", "--no-cache"], env=environment)
    return found


def b3sum():
    tool = ROOT / "target/bench-tools/bin/b3sum"
    if not tool.exists():
        subprocess.run(["cargo", "install", "--quiet", "b3sum", "--root", ROOT / "target/bench-tools"], check=True)
    return tool


def main():
    subprocess.run(["cargo", "build", "--release", "--locked", "--quiet"], check=True, cwd=ROOT)
    work = pathlib.Path(ARGS.work or ROOT / "target/bench").resolve()
    hash_tool = b3sum()
    table = []
    for name, bf16 in (("bf16-valued", True), ("true f32", False)):
        capture = work / ("bf16" if bf16 else "f32")
        make_capture(capture, ARGS.rows, ARGS.vocab, bf16)
        raw = capture / "scores.f32"
        size = raw.stat().st_size
        subjects = {"b3sum": lambda raw=raw: run([hash_tool, "--num-threads", ARGS.threads, raw])}
        ids, stored = set(), {}
        for codec in ("zstd", "lz4", "none"):
            store = work / f"store-{capture.name}-{codec}"
            seal(store, codec, capture)
            ids.add(json.loads(output(BINARY, "--store", store, "--json", "verify", "--all"))["capture"])
            shards = json.loads(output(BINARY, "--store", store, "--json", "show", capture.name))["manifest"]["score_shards"]
            stored[codec] = sum(shard["bytes"] for shard in shards) / size
            verify = [BINARY, "--threads", ARGS.threads, "--store", store, "verify", "--all"]
            subjects[f"verify, {codec}"] = lambda verify=verify: run(verify)
            subjects[f"verify --quick, {codec}"] = lambda verify=verify: run([*verify, "--quick"])
            scratch = work / f"scratch-{codec}"
            subjects[f"seal, {codec}"] = lambda scratch=scratch, codec=codec, capture=capture: seal(scratch, codec, capture)
        if len(ids) != 1:
            sys.exit(f"the capture id depends on the codec: {ids}")
        subjects |= peers(raw, work)
        samples = {subject: [] for subject in subjects}
        for _ in range(ARGS.rounds):
            for subject, measure in subjects.items():
                samples[subject].append(measure())
        for subject, runs in samples.items():
            ratio = statistics.median(base[0] / own[0] for base, own in zip(samples["b3sum"], runs))
            seconds, cpu, memory = (statistics.median(run[part] for run in runs) for part in range(3))
            codec = subject.rsplit(" ", 1)[-1] if subject.startswith("seal") else ""
            kept = f"{stored[codec]:.3f}" if codec else ""
            table.append(f"| {name} | {subject} | {ratio:.2f} | {seconds:.3f} | {cpu / size * 1e9:.2f} | {memory:.0f} | {kept} |")
    head = [
        f"{datetime.date.today()}, {platform.machine()}, {ARGS.threads} threads of {os.cpu_count()}, warm cache, "
        f"{ARGS.rows} rows × {ARGS.vocab} scores = {size / 1e6:.0f} MB as f32, medians of {ARGS.rounds} interleaved rounds; "
        f"{output(BINARY, '--version').strip()}, {output(hash_tool, '--version').strip()}.", "",
        "| scores | what | speed, b3sum = 1 | s | CPU s per GB | peak MiB | stored / raw f32 |", "|---|---|---|---|---|---|---|"]
    text = "\n".join(head + table)
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
    parser.add_argument("--work")
    parser.add_argument("--write", action="store_true")
    ARGS = parser.parse_args()
    main()
