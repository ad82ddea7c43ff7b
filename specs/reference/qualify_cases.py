#!/usr/bin/env python3
"""Small made-up qualifications and calibrations, derived by a witnessmark program and by qualify.py: the same bytes.

    qualify_cases.py WITNESSMARK [FIRST LAST]    cases FIRST to LAST - 1, by seed (without them 0 to 39)

What a case is made of is drawn from its seed: captures of a few tokens over 24 token ids, with ties, choices left out,
shapes left out, masks, recomputed rows, other paths, early ends, baselines that do not repeat, scores that no adapter
took, runs that never ended, logs of other stores, specs that leave out what they may or ask for one thing more than
once, and now and then a fault. Then, from the same store, calibrations: partitions, rules and plans drawn anew, runs
sealed again under another name or role, with other slots, or as ones that never ended, captures named that should not
be, tables and partitions that no spec may have. Refusals agree where both refuse by the same rules.
Exit status: 0 the same everywhere, 2 not.
"""
import collections, contextlib, io, json, os, random, re, shutil, subprocess, sys, tempfile
import numpy as np
sys.dont_write_bytecode = True
import qualify, verify

VOCABULARY = 24
FAULTS = [None] * 70 + ["partial", "prompt", "corpus", "slots", "weights", "sampling", "forced", "tokenizer", "late",
                        "reused", "unnamed", "sampled", "masked", "fewer", "rerun", "torn", "listed"]
CALIBRATIONS = 3  # of each case
ELSEWHERE = 77  # a concurrency that no spec has

def write(path, data):
    with open(path, "wb") as f:
        f.write(data)

def lines(rows):
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)

class Case:
    def __init__(self, seed, folder):
        self.draw, self.folder, self.runs, self.entries = random.Random(seed), folder, {}, []
        pick = self.draw.choice
        self.stops, self.extraction = pick([0, 0, 0, 0.2]), pick([None] * 3 + ["adapter", "engine"])
        self.tokens, self.samples, self.fault = pick([1, 3, 3, 4, 6, 6]), pick([1, 1, 2]), pick(FAULTS)
        self.prompts = [[self.draw.randrange(VOCABULARY) for _ in range(pick([1, 2, 3]))] for _ in range(pick([1, 2, 3]))]
        self.span, self.seed, self.masked = pick([3, 8, 200]), seed, pick([[]] * 5 + [[3]])
        self.any_tie, self.left_out, self.shapes = pick([0, 0, 1]), pick([0, 0, 0, 0.3, 1]), pick(["none", "all", "all", "some"])
        self.recomputed, self.half = pick([0, 0, 0, 0.3]), pick([True, False])
        for concurrency in pick([[1], [1], [1, 4], [2, 10, 33]]):
            self.stratum(concurrency)
        self.early, self.torn = [], pick([True] + [False] * 5) or self.fault == "torn"
        candidates = [name for name in self.runs if "-candidate-" in name]
        if candidates and self.fault == "rerun":  # a candidate's run, seen before the spec was declared
            self.again(pick(candidates), "elsewhere", requested_concurrency=ELSEWHERE)
            self.early.append("elsewhere")
        if self.runs and self.torn:
            self.again(pick(list(self.runs)), "torn", partial=True)
        self.spec(pick)
        self.other_spec(random.Random(f"{seed} spec"))

    def again(self, source, run_id, partial=False, nonce=None, role=None, **schedule):
        """The rows of a run as another capture; with a nonce, or as one that never ended, it is a run of its own."""
        a, b = (os.path.join(self.folder, "captures", name) for name in (source, run_id))
        shutil.copytree(a, b)
        run = {**self.runs[source], "run_id": run_id, "schedule": {**self.runs[source]["schedule"], **schedule}}
        run["role"] = role or run["role"]
        nonce = nonce or (run_id if partial else None)
        if nonce:
            with open(os.path.join(b, "rows.jsonl")) as f:
                rows = [json.loads(line) for line in f]
            run["run_nonce"] = nonce
            write(os.path.join(b, "rows.jsonl"), lines({**row, "run_nonce": nonce} for row in rows))
        if partial:
            os.remove(os.path.join(b, "run.json"))
        write(os.path.join(b, "run.json.partial" if partial else "run.json"), json.dumps(run).encode())

    def stratum(self, concurrency):
        pick, noise = self.draw.choice, self.draw.choice([0, 0, 0, 0.05, 0.3])
        def add(role, mode, count, changed=0, sources=None):
            for n in range(count):
                self.run(f"{pick('abc')}-{role}-{mode}-c{concurrency}-{n}", role, mode, concurrency, changed, sources and pick(sources))
            if count or pick([True] + [False] * 9):
                self.entries.append((role, mode, concurrency, pick([count] * 19 + [count + 1]) or 1, pick([None, "held-out"])))
        if pick([True] * 5 + [False]):
            add("oracle", "baseline", pick([0, 1] + [2] * 9 + [3]), pick([0, 0, 0, 0.1]))
        add("oracle", "capture-only", pick([0, 1] + [2] * 9), pick([0, 0, noise]))
        free = [name for name in self.runs if f"oracle-capture-only-c{concurrency}-" in name]
        if free:
            add("oracle", "self-replay", pick([0, 1, 2]), pick([0, 0, noise]), free)
            add("oracle", "common-replay", pick([0, 1, 2]), pick([0, noise]), free)
            add("candidate", "common-replay", pick([0, 1, 1, 1, 2]), pick([0, 0, noise, 0.1]), free)
        add("candidate", "capture-only", pick([0, 0, 1]), pick([0, noise]))

    def scores(self, prefix, changed, masked):
        """The scores at a prefix: always the same, but for what is changed."""
        world = random.Random(f"{self.seed} {prefix}")
        f = [world.randrange(self.span) / 4 - 1 for _ in range(VOCABULARY)]
        for _ in range(world.choice([1, 1, 2])):
            f[world.randrange(VOCABULARY)] = self.span / 4
        f = [x + self.draw.choice([-0.25, 0.25, 0.5]) if self.draw.random() < changed else x for x in f]
        return np.array([-np.inf if i in masked else x for i, x in enumerate(f)], "<f4")

    def run(self, run_id, role, mode, concurrency, changed, source):
        draw, fault = self.draw, self.fault if self.fault == "weights" or self.draw.random() < 0.5 else None
        requests, rows, scores = [], [], []
        nonce = None if self.fault == "unnamed" else "one" if fault == "reused" else run_id
        masked = [5] if fault == "masked" else self.masked
        samples = 1 if fault == "fewer" and role == "candidate" else self.samples
        for prompt, sample in ((p, s) for p in range(len(self.prompts)) for s in range(samples)):
            before = self.prompts[prompt] + ([1] if fault == "prompt" else [])
            replayed = source and next(r for r in self.runs[source]["requests"]
                                       if (r["prompt_index"], r["sample_index"]) == (prompt, sample))
            forced = source and replayed["output_token_ids"]
            stops = replayed["finish_reason"] == "stop" if source else draw.random() < self.stops
            output = []
            for position in range(len(forced) if source else draw.randint(1, self.tokens) if stops else self.tokens):
                prefix = before + output
                f = self.scores(prefix, changed, masked)
                best = np.flatnonzero(f == f.max()).tolist()
                own = draw.choice(best) if self.any_tie else best[0]
                again = position > 0 and draw.random() < self.recomputed
                row = {"request_id": f"{prompt}-{sample}", "prompt_index": prompt, "sample_index": sample, "position": position,
                       "phase": "prefill" if position == 0 else "recomputed" if again else "decode",
                       "prefix_sha256": verify.sha256(np.array(prefix, "<u4").tobytes()).hex(),
                       "token_id": forced[position] if source else own}
                if mode != "baseline" and draw.random() >= self.left_out:
                    row["sampled_token_id"] = best[-1] if fault == "sampled" else own
                elif mode == "baseline" and fault == "sampled":
                    row["sampled_token_id"] = VOCABULARY - 1
                if nonce:
                    row["run_nonce"] = nonce
                if source:
                    row["forced_token_id"] = row["token_id"]
                shape = {"batch_size": concurrency, "kv_len": len(prefix), "query_len": len(prefix) if again or not position else 1}
                kept = {"none": 0, "all": 1, "some": 0.8}[self.shapes]
                row.update({name: n for name, n in shape.items() if draw.random() < kept})
                output.append(row["token_id"])
                if fault != "partial" or position != 1:
                    rows.append(row)
                    scores.append(f)
            r = {"request_id": f"{prompt}-{sample}", "prompt_index": prompt, "sample_index": sample, "prompt_token_ids": before,
                 "output_token_ids": output, "finish_reason": "stop" if stops else "length"}
            if fault == "partial":
                r["positions"] = [n for n in range(len(output)) if n != 1]
            if source:
                r["continuation"] = {"run_id": source, "request_id": r["request_id"]}
            elif fault == "forced":
                r["continuation"] = {"token_ids": output}
            requests.append(r)
        run = {"schema": "witnessmark.run/v1", "run_id": run_id, "run_nonce": nonce, "role": role, "mode": mode, "engine": {"name": "made up"},
               "model": {"transform": None, "weights_dtype": "other" if (fault, role) == ("weights", "candidate") else "same"},
               "tokenizer": {"files": [{"path": "t", "sha256": ("1" if fault == "tokenizer" else "0") * 64}]},
               "sampling": {"method": "other" if fault == "sampling" else "greedy"},
               "schedule": {"requested_concurrency": concurrency, "slots": 99 if fault == "slots" else concurrency},
               "requests": requests}
        folder = os.path.join(self.folder, "captures", run_id)
        os.makedirs(folder)
        if mode != "baseline":
            name, dtype, file = ("float16", "<f2", "scores.f16") if self.half else ("float32", "<f4", "scores.f32")
            run["scores"] = {"dtype": name, "rows": len(rows), "vocab_size": VOCABULARY, "masked_token_ids": masked}
            run["extraction"] = self.extraction
            write(os.path.join(folder, file), np.array(scores).astype(dtype).tobytes())
        write(os.path.join(folder, "rows.jsonl"), lines(rows))
        write(os.path.join(folder, "run.json"), json.dumps(run).encode())
        self.runs[run_id] = run

    def spec(self, pick):
        corpus = {"prompts": self.prompts + ([[0]] if self.fault == "corpus" else []), "schema": "witnessmark.corpus/v1"}
        concurrencies = sorted({entry[2] for entry in self.entries})
        phases, margin = pick([["prefill", "decode"], ["prefill", "decode", "recomputed"]][bool(self.recomputed):]), pick([None, None, 0.0, 0.05, 0.5, 1.0])
        text = f"""schema = "witnessmark.spec/v1"
workload = "case {self.seed}"
claim = "{pick(["strict"] * 3 + ["diagnostic"])}"
rules = "{qualify.RULES}"
numerics = "{qualify.NUMERICS}"
[require]
max_recomputed = {1000 if "recomputed" in phases else 0}
[corpus]
sha256 = "{qualify.digest(corpus)}"
requests = {len(self.prompts)}
new_tokens = {self.tokens}
[strata]
concurrency = {concurrencies}
phases = {json.dumps(phases)}
[comparison]
gate = "strict"
shapes = {pick(['[]', '["schedule.slots"]'])}
observed_shape = "{pick(["any"] * 12 + ["equal"])}"
""" + (f"inertness_margin = {margin}\n" if margin is not None else "")
        for role, mode, concurrency, repetitions, partition in self.entries:
            names = [name for name in self.runs if name[2:].startswith(f"{role}-{mode}-c{concurrency}-")]
            other = [name for name in self.runs if f"-{role}-" in name and name not in names] if self.fault == "listed" else []
            if names + other and pick([bool(other)] + [False] * 9 + [True]):  # some by name, and the others by what they are
                text += f'[[runs]]\nrole = "{role}"\nmode = "{mode}"\nconcurrency = [{concurrency}]\nrepetitions = 1\n'
                text += f'run_ids = {json.dumps(pick([names + other[:1], (other or names)[:1]]))}\n'
                text += f'partition = "{partition}"\n' if partition else ""
            text += f'[[runs]]\nrole = "{role}"\nmode = "{mode}"\nconcurrency = [{concurrency}]\nrepetitions = {repetitions}\n'
            text += f'partition = "{partition}"\n' if partition else ""
        write(os.path.join(self.folder, "spec.toml"), text.encode())

    def other_spec(self, draw):
        """The same spec without keys that it may leave out; with entries of runs that lack the same."""
        path, leave_out, again = os.path.join(self.folder, "spec.toml"), draw.random() < 0.3, draw.random() < 0.2
        with open(path) as f:
            head, *runs = f.read().split("[[runs]]\n")
        optional = ["claim", "rules", "numerics", "sha256", "gate", "shapes", "observed_shape"]
        if leave_out:
            gone = [key for key in optional if draw.random() < 0.6]
            head = "".join(line for line in head.splitlines(True) if line.split(" = ")[0] not in gone)
            if draw.random() < 0.3:
                head = head[:head.index("[comparison]")]
            if draw.random() < 0.6:
                head = head.replace("[require]\nmax_recomputed = 0\n", "")
            if draw.random() < 0.5:
                runs = [re.sub("partition = .*\n", "", entry) for entry in runs]
        if again and runs:
            entry = draw.choice(runs)
            runs += [re.sub("run_ids = .*\n", "", entry) + draw.choice(["", 'run_ids = ["none"]\n', "run_ids = []\n"]) for _ in range(3)]
        write(path, "[[runs]]\n".join([head, *runs]).encode())

    # What a calibration is made of, drawn apart from all of the above.

    def more_runs(self, draw):
        """Names of what else is sealed: runs of the store once more."""
        found = []
        for n in range(draw.choice([0, 0, 0, 0, 1, 1, 2])):
            source = draw.choice(list(self.runs))
            name = f"{source}-{n}" if draw.random() < 0.6 else f"z-{n}"
            role = draw.choice([None, None, None, "candidate", "oracle"])
            nonce = draw.choice([None, name, name])
            schedule = draw.choice([{}] * 5 + [{"slots": 99}, {"step": 4}, {"requested_concurrency": ELSEWHERE}])
            self.again(source, name, draw.random() < 0.2, nonce or self.runs[source]["run_nonce"], role, **schedule)
            found.append(name)
        return found

    def calibration(self, draw, name, extra):
        """Another spec: its runs in partitions, and a rule. Returns the runs that it may calibrate by."""
        pick, strata, entries, planned = draw.choice, sorted({e[2] for e in self.entries}), [], {}
        tidy, wrong = draw.random() < 0.5, draw.random() < 0.06  # a plan that the runs fulfil; one that no spec may have
        def some(names): return sorted(n for n in names if draw.random() < 0.6)
        with open(os.path.join(self.folder, "spec.toml")) as f:
            head = f.read().split("[[runs]]\n")[0]
        if draw.random() < 0.15:
            head = re.sub("(requests|new_tokens) = .*", lambda m: f"{m[1]} = {pick([1, 2, 3, 59])}", head)
        if draw.random() < 0.1:
            head = re.sub('gate = .*', 'gate = "other"', head)
        if draw.random() < 0.1:
            shapes = pick([[], ["schedule.slots"], ["schedule.step"], ["engine.name", "sampling.method"]])
            head = re.sub("shapes = .*", f"shapes = {json.dumps(shapes)}", head)
        def entry(role, mode, concurrency, partition, run_ids=None):
            keys = {"role": role, "mode": mode, "concurrency": concurrency, "partition": partition, "run_ids": run_ids,
                    "repetitions": len(run_ids or names) or 1 if tidy else pick([1, 1, 2, 2, 3, 20])}
            planned.update(dict.fromkeys((run_ids or names) if partition == "calibration" else []))
            entries.append("".join(f"{key} = {json.dumps(v)}\n" for key, v in keys.items() if v is not None))
        places = [e[:3] for e in self.entries]
        if not tidy and pick([True, False, False]):
            modes = ["baseline", "capture-only", "self-replay"]
            places.append((pick(["oracle", "candidate"]), pick(modes), pick(strata)))
        for role, mode, n in dict.fromkeys(places):
            names = [x for x in (*self.runs, *extra) if x[2:].startswith(f"{role}-{mode}-c{n}-") or x[0] == "z"]
            kind = pick(["held-out"] * 6 + [None] * 2 if role == "candidate" else
                        ["calibration"] * 6 + ["split"] * 4 + [None, "held-out"])
            alone = all(place[:2] != (role, mode) or place[2] == n for place in places)
            wide = alone and kind != "split" and pick([True] + [False] * 5) and not (tidy or wrong)
            concurrency = strata if wide else [n]
            if tidy and role == "oracle":
                kind = "calibration" if mode == "baseline" else "split" if len(names) > 1 else None
            if wrong and pick([True, False]):
                kind = pick(["calibration", "both"])
            if kind == "both":
                entry(role, mode, concurrency, "calibration", pick([None, [], some(names)]))
                entry(role, mode, concurrency, "held-out", pick([None, [], some(names)]))
            elif kind == "split":
                held = names[:1] if tidy else some(names)
                parts = [("calibration", [x for x in names if x not in held] or ["none"]), ("held-out", held or ["other"])]
                for part in draw.sample(parts, 2):
                    entry(role, mode, concurrency, *part)
            else:
                if not tidy and pick([True] + [False] * 4):  # some of them go before, with another partition or none
                    entry(role, mode, concurrency, pick([None, kind]), some(names))
                entry(role, mode, concurrency, kind)
                if not tidy and pick([True] + [False] * 6):
                    entry(role, mode, concurrency, pick([None, kind]), pick([None, [], some(names)]))
        if pick([True, False]):
            draw.shuffle(entries)
        def share(): return pick([0.5, 0.5, 0.5, 0.4, 0.35, 0.05, 0.000123, 0.000001, draw.randint(1, 500_000) / 10**6])
        rule, table = pick(["maximum"] * 5 + ["share"] * 5 + [None]), {"alpha": share()}
        if rule == "share":
            table.update(share=share(), margin=pick([0, 0.0, -0.0, 0.01, 1e-7, 2.5, 1e21]))
        table["rule"] = rule
        if draw.random() < 0.06:
            table[pick(list(table))] = pick(["other", 0, -0.5, 0.6, 1, 0.0000005, 0.1234567, float("inf"), float("nan"), True])
        text = "[[runs]]\n".join([head, *entries])
        if rule:
            values = {key: json.dumps(v).replace("Infinity", "inf").replace("NaN", "nan") for key, v in table.items()}
            text += "[calibration]\n" + "".join(f"{key} = {v}\n" for key, v in values.items())
        write(os.path.join(self.folder, name), text.encode())
        return list(planned)

def derive(program, case):
    """What each side says of the qualification, then of calibrations: a document, or the rules that are broken."""
    path, pick = lambda name: os.path.join(case.folder, name), case.draw.choice
    def witnessmark(*args, store="store"):
        done = subprocess.run([program, "--quiet", "--store", path(store), *args], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr
    def act(*args, store="store"):
        status, said = witnessmark(*args, store=store)
        if status:
            raise SystemExit(f"case {case.seed}: {said}")
        return said.split()
    def seal(names, store="store"):
        folders = [path(f"captures/{name}") for name in names]
        return act("seal", "--incomplete", "--codec", pick(["zstd", "lz4", "none"]), *folders, store=store) if names else []
    # Candidates may come from another store's log, which has the spec or does not; so may what was sealed here, too.
    declare = lambda store="store": act("spec", "seal", path("spec.toml"), store=store)
    candidates = [name for name in case.runs if "-candidate-" in name]
    away = candidates if candidates and pick([True] + [False] * 4) else []
    twice, declared, after = pick([True, True, False]), pick([True, True, False]), pick([True] + [False] * 4)
    seal(case.early + (list(case.runs) if case.fault == "late" else []))
    declare()
    seal(([name for name in case.runs if twice or name not in away]) + ["torn"] * case.torn)
    if away:
        if declared and not after:
            declare("away")
        ids = seal(away, "away")
        if declared and after:
            declare("away")
        witnessmark("qualify", path("spec.toml"), "--output", path("away-result"), store="away")  # a bundle of it has the spec
        if os.path.exists(path("away-result")):
            with open(path("away-result"), "rb") as f:
                ids = [verify.sha256(f.read()).hex()]
        act("bundle", "--output", path("bundle"), *ids, store="away")
        act("unbundle", path("bundle"))
    by_name = case.fault == "torn" or pick([True] + [False] * 9)
    named = [name for name in case.runs if twice or name not in away] if by_name else []
    named += ["torn"] if case.fault == "torn" and case.torn else []
    def both(command, option, spec, names):
        """A pair: what the program says, and what qualify.py does."""
        for name in "first", "second":
            if os.path.exists(path(name)):
                os.remove(path(name))
        first = witnessmark(command, path(spec), *names, "--output", path("first"))
        with contextlib.redirect_stdout(io.StringIO()) as said:
            second = qualify.main([path("store"), *option, path(spec), *names, "-o", path("second")]), said.getvalue()
        for name, (status, said) in ("first", first), ("second", second):
            if os.path.exists(path(name)):
                with open(path(name), "rb") as f:
                    yield f.read()
            else:
                yield status, sorted(set(re.findall("REFUSED:? ([a-z-]+)", said)))
    yield tuple(both("qualify", [], "spec.toml", named))
    draw = random.Random(f"{case.seed} calibration")
    extra = case.more_runs(draw)
    seal(extra, "third")
    if extra and draw.random() < 0.3:  # known from another log only
        act("bundle", "--output", path("third-bundle"), *extra, store="third")
        act("unbundle", path("third-bundle"))
    else:
        seal(extra)
    refs = verify.read_refs(path("store"))
    for _ in range(CALIBRATIONS):
        planned = case.calibration(draw, "calibration.toml", extra)
        names = draw.sample(sorted(refs), min(len(refs), draw.choice([0, 0, 1, 2]))) if draw.random() < 0.5 else []
        if names or draw.random() < 0.3:  # with what the spec calibrates by; some twice, by id and by name
            names += [name for name in planned if name in refs and draw.random() < 0.9]
            names += [refs[name] for name in names if draw.random() < 0.1]
        yield tuple(both("calibrate", ["--calibrate"], "calibration.toml", names))

def main(args):
    if not args:
        print(__doc__, file=sys.stderr)
        return 3
    outcomes, status = (collections.Counter(), collections.Counter()), 0
    for seed in range(*map(int, args[1:] or (0, 40))):
        with tempfile.TemporaryDirectory() as folder:
            case = Case(seed, folder)
            if not (case.runs and case.entries):
                continue
            for n, (first, second) in enumerate(derive(args[0], case)):
                what = f"calibration {n}" if n else "qualification"
                if first != second:
                    said = [x if type(x) is tuple else "a document" for x in (first, second)]
                    print(f"case {seed}, {what}: {said[0]}, and qualify.py says {said[1]}")
                    status = 2
                outcomes[bool(n)]["refused" if type(second) is tuple else json.loads(second)["verdict"]] += 1
    for what, found in zip(("qualify", "calibrate"), outcomes):
        print(f"{what}:", ", ".join(f"{n} {name}" for name, n in sorted(found.items())), "differ" if status else "agree")
    return status

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
