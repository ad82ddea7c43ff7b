#!/usr/bin/env python3
"""Cuts a capture down to a few rows, as a partial capture that is small enough to keep beside the sources.

    cut.py SOURCE TARGET PROMPT:POSITIONS ...

SOURCE is the folder of a capture (run.json, rows.jsonl and the scores file), TARGET the folder to make. Each further
argument keeps the requests of one prompt_index, at these positions: 0:0,22-26 keeps positions 0 and 22 to 26 of
prompt 0. Requests of other prompts are left out. Both cuts of corpora/smollm2-h200-cut were made with

    cut.py oracle-c1-rep0 smollm2-h200-cut/oracle-c1-rep0 0:0,22-26 1:0-2
    cut.py oracle-c4-rep0 smollm2-h200-cut/oracle-c4-rep0 0:0,22-26 1:0-2

What is kept is kept byte for byte: the lines of rows.jsonl but for the number in `row`, the rows of the scores file,
and of run.json all values and their order, except that

  * `requests` holds the kept requests only, each with the list of its `positions`;
  * `scores.rows` is the number of rows kept;
  * `scores.f32_sha256_at_capture` is gone, because it is a digest of rows that are not here;
  * `cut_from` is added, with the SHA-256 of the run.json that the cut was made from.

Only the standard library is needed. Exit status: 0 made, 3 could not be made.
"""
import hashlib, json, os, re, sys

WIDTH = {"bfloat16": 2, "float16": 2, "float32": 4}
NOTE = "A partial capture: these requests at these positions, cut by corpora/cut.py from the capture of this run.json."


def positions(text):
    """"0,22-26" as [0, 22, 23, 24, 25, 26]."""
    kept = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        kept.update(range(int(first), int(last or first) + 1))
    return sorted(kept)


def cut_run(data, keep, rows):
    """The run.json of the cut. It has the layout of the original: one space of indentation, no line feed at the end."""
    run = json.loads(data)
    if json.dumps(run, indent=1, ensure_ascii=False).encode() != data:
        raise ValueError("run.json has another layout than this script writes")
    run["requests"] = [{**r, "positions": keep[r["prompt_index"]]} for r in run["requests"] if r["prompt_index"] in keep]
    if run.get("scores"):
        run["scores"]["rows"] = rows
        run["scores"].pop("f32_sha256_at_capture", None)
    run["cut_from"] = {"run_json_sha256": hashlib.sha256(data).hexdigest(), "note": NOTE}
    return json.dumps(run, indent=1, ensure_ascii=False).encode()


def cut_rows(data, keep):
    """The kept lines, renumbered, and the numbers that they had."""
    lines, numbers = [], []
    for number, line in enumerate(data.decode().splitlines(keepends=True)):
        row = json.loads(line)
        if row["position"] not in keep.get(row["prompt_index"], ()):
            continue
        if row.get("chain_sha256"):
            raise ValueError("the rows are chained: a chain does not survive a cut")
        renumbered, found = re.subn(r'^(\{"row": )\d+', rf"\g<1>{len(lines)}", line)
        if found != 1 or json.loads(renumbered) != {**row, "row": len(lines)}:
            raise ValueError(f"line {number + 1} does not begin with its number")
        lines.append(renumbered)
        numbers.append(number)
    if len(lines) != sum(map(len, keep.values())):
        raise ValueError(f"{len(lines)} rows are there of {sum(map(len, keep.values()))}")
    return "".join(lines).encode(), numbers


def cut_scores(path, scores, lines, numbers):
    """The scores of the kept rows, each compared with its row's scores_sha256 where it has one."""
    width, out = scores["vocab_size"] * WIDTH[scores["dtype"]], []
    with open(path, "rb") as file:
        for number, line in zip(numbers, lines.splitlines()):
            file.seek(number * width)
            out.append(file.read(width))
            witness = json.loads(line).get("scores_sha256")
            if len(out[-1]) != width or witness not in (None, hashlib.sha256(out[-1]).hexdigest()):
                raise ValueError(f"the scores of row {number} are not the row's")
    return b"".join(out)


def main(args):
    try:
        source, target, *rest = args
        keep = {int(prompt): positions(kept) for prompt, kept in (arg.split(":") for arg in rest)}
        if not keep:
            raise ValueError("no positions")
    except ValueError:
        print(__doc__, file=sys.stderr)
        return 3
    def read(name):
        with open(os.path.join(source, name), "rb") as file:
            return file.read()
    try:
        run = read("run.json")
        rows, numbers = cut_rows(read("rows.jsonl"), keep)
        files = {"run.json": cut_run(run, keep, len(numbers)), "rows.jsonl": rows}
        scores = json.loads(run).get("scores")
        if scores:
            files[scores["file"]] = cut_scores(os.path.join(source, scores["file"]), scores, rows, numbers)
        os.makedirs(target, exist_ok=True)
        for name, data in files.items():
            with open(os.path.join(target, name), "wb") as file:
                file.write(data)
    except (OSError, ValueError) as error:
        print(f"{source}: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
