#!/usr/bin/env python3
"""Instruction counts of the hot loops: a guard against slowdowns that no noise can hide or feign.

  instructions.py [--update] [--work DIR]

Seals and verifies one small capture under valgrind's callgrind, one thread, and compares the instructions that each run took with
those in benches/instructions.json. Fails where one is over by more than the tolerance; says so where it is under, so that
the gain is kept: `--update` writes what was counted. Counts are those of the instruction set that valgrind shows programs (AVX2, no AVX-512), so they
differ from machine to machine only where compilers and libraries do; update them with the toolchain.

Needs numpy and valgrind.
"""
import argparse, json, pathlib, re, shutil, subprocess, sys

import bench

TOLERANCE = 0.03
ROWS, VOCAB = 8, 50_000
EXPECTED = pathlib.Path(__file__).with_suffix(".json")


def count(out, *command):
    """Instructions of one run; the program's own start is the same in all of them."""
    result = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", str(bench.BINARY), "--quiet", "--threads", "1", *map(str, command)],
        capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"failed: {command}\n{result.stderr}")
    return int(re.search(r"Collected : (\d+)", result.stderr)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--work", default=bench.ROOT / "target/bench/instructions")
    args = parser.parse_args()
    subprocess.run(["cargo", "build", "--release", "--locked", "--quiet"], check=True, cwd=bench.ROOT)
    work = pathlib.Path(args.work).resolve()
    found = {}
    for name, bf16 in (("bf16", True), ("f32", False)):
        capture = work / name
        bench.make_capture(capture, ROWS, VOCAB, bf16, tokens=ROWS)
        values = ROWS * VOCAB
        for codec in ("zstd", "lz4", "none"):
            store = work / f"store-{name}-{codec}"
            shutil.rmtree(store, ignore_errors=True)
            runs = {"seal": ("seal", "--codec", codec, capture), "verify": ("verify", "--all"), "quick": ("verify", "--all", "--quick")}
            for act, command in runs.items():
                found[f"{act} {name} {codec}"] = round(count(work / "callgrind.out", "--store", store, *command) / values, 2)
    if args.update:
        EXPECTED.write_text(json.dumps(found, indent=2) + "\n")
    expected = json.loads(EXPECTED.read_text())
    worse = False
    print("instructions per score, expected → found")
    for name, now in found.items():
        before = expected.get(name, 0)
        over = now > before * (1 + TOLERANCE)
        worse |= over
        mark = "  MORE" if over else "  less: --update keeps it" if now < before * (1 - TOLERANCE) else ""
        print(f"{name:20} {before:8.2f} → {now:8.2f}{mark}")
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
