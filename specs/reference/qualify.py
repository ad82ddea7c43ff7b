#!/usr/bin/env python3
"""A second derivation of results and calibrations, written from specs/qualification-v1.md and numerics-v1.md alone.

    qualify.py STORE SPEC-FILE [NAME ...] [-o FILE]    derive the result of a spec; FILE gets its document
    qualify.py STORE RESULT-SHA | QUALIFICATION        derive a result of the log again: it is the same, to the byte
    qualify.py STORE --calibrate SPEC-FILE [NAME ...] [-o FILE]    derive the calibration of a spec (section 9)

A NAME is a capture id or a run id. One line: `<verdict> result=… qualification=… spec=…`, of a calibration `<verdict>
calibration=… spec=…`; or `REFUSED <rule>: <why>` for each rule of section 4 or 9 that is broken. The captures that are
taken are verified as verify.py does; what a spec demands of one capture alone (spec-v1.md) is not asked. All scores are
held in memory.
Exit status: 0 derived, whatever the verdict; 2 refused; 3 could not be read.
"""
import itertools, os, sys, tomllib
import numpy as np
sys.dont_write_bytecode = True
import numerics, verify
from verify import Refused, document, encode, require, sha256

RULES, NUMERICS = "witnessmark.rules/v1", "witnessmark.numerics/v1"
PHASES = ["prefill", "decode", "recomputed"]
REPLAYS = {"self-replay", "common-replay"}
STATISTICS = ["js", "kl", "kl_reverse", "margin", "max_abs_delta", "tv"]

def digest(v): return sha256(encode(v)).hex()
def get(v, path):
    """What stands at a dotted path, None where nothing does."""
    for name in path.split("."):
        v = v.get(name) if isinstance(v, dict) else None
    return v

def written(c, path):
    """What a capture declares, type, number and order of keys as they are written."""
    return repr(get(c.run, path))

# ---- The store ------------------------------------------------------------------------------------------------------

def entries(logs, act):
    return [e for log in logs for _, e in sorted(log.items()) if e["act"] == act]

def request_key(r): return r["prompt_index"], r.get("sample_index") or 0
def shape(row): return row["batch_size"], row["query_len"], row["kv_len"]
def matched(a, b): return shape(a) == shape(b) and None not in shape(a)
def bitwise(a, b): return a["score_digest"] == b["score_digest"]

class Capture:
    """A capture of the log: what its run.json says, and after `read` its rows by (key, prefix), keys ascending."""
    def __init__(self, root, capture_id, manifests):
        self.id, self.manifests = capture_id, manifests
        self.object = lambda name, size=None: verify.read_object(root, name, size)
        m = document(self.object(manifests[0]), verify.MANIFEST, limit=2**26)
        require(digest(m["capture"]) == capture_id, "root-mismatch", "the manifest carries another capture")
        self.run, self.complete = verify.read_run(self.object, m)[0], m["capture"]["complete"]
        self.role, self.mode, self.run_id = self.run.get("role"), self.run["mode"], self.run["run_id"]
        self.concurrency = get(self.run, "schedule.requested_concurrency")
        self.scored, self.row_root = self.mode != "baseline", m["capture"]["row_root"]
        self.nonce, self.extraction = self.run.get("run_nonce"), self.run.get("extraction") or "adapter"
        self.requests = dict(sorted((request_key(r), r) for r in self.run["requests"]))

    def same_run(self, other):
        nonce = self.nonce is not None and self.nonce == other.nonce
        return nonce or self.id == other.id or self.scored and other.scored and self.row_root == other.row_root

    def order(self):
        return self.role.encode(), self.concurrency, self.mode.encode(), self.run_id.encode(), self.id

    def read(self):
        for manifest in self.manifests:
            rows = verify.verify_capture(self.object, manifest, self.id, self.look)[1]
        self.rows = {(verify.key(row), row["prefix_sha256"]): row for row in rows}

    def look(self, row, f):
        """Keeps a row's scores, the token ids that have the highest, its margin and its choice."""
        highest = f.max()
        best = np.flatnonzero(f == highest).tolist()
        second = float(f[f < highest].max(initial=-np.inf))
        choice = row["token_id"] if self.mode == "capture-only" else row["sampled_token_id"]
        row.update(scores=f, best=best, margin=0.0 if len(best) > 1 else float(highest) - second)
        row["choice"] = best[0] if choice is None and len(best) == 1 else choice

# ---- 2. Which captures ----------------------------------------------------------------------------------------------

def entry_of(spec, c):
    """The first entry that has a place for a capture, None where none has."""
    for entry in spec["runs"]:
        place = (c.role, c.mode) == (entry["role"], entry["mode"]) and c.concurrency in entry["concurrency"]
        if place and c.run_id in (entry.get("run_ids") or [c.run_id]):
            return entry

def partition_of(spec, c): return (entry_of(spec, c) or {}).get("partition")

def listed(spec, captures):
    return [{"capture": c.id, "concurrency": c.concurrency, "mode": c.mode, "partition": partition_of(spec, c),
             "role": c.role, "run_id": c.run_id} for c in captures]

def read_captures(root, logs):
    """All captures of the logs, by id."""
    manifests = verify.captures_of(entries(logs, "seal"))
    return {i: Capture(root, i, list(manifests[i])) for i in manifests}

def torn(captures):
    """Reads the captures; those that never ended meet no spec."""
    for c in captures:
        c.read()
    return [("torn-capture", c.run_id) for c in captures if not c.complete]

def choose(root, known, spec, names):
    """The captures that are taken, and those that have no place where they must have one."""
    if names is None:
        found = [c for c in known.values() if c.complete]
    else:
        refs = verify.read_refs(root)
        ids = [name if name in known else refs.get(name) for name in names]
        require(all(i in known for i in ids), "nothing-to-verify", "no such capture")
        found = [known[i] for i in dict.fromkeys(ids)]
    by_name = {run_id for entry in spec["runs"] for run_id in entry.get("run_ids", [])}
    placed = [c for c in found if entry_of(spec, c) is not None]
    return placed, [c for c in found if c not in placed and (names is not None or c.run_id in by_name)]

def missing(spec, entries, captures):
    """What is pending of these entries; equal lines may come more than once."""
    for entry in entries:
        for n in entry["concurrency"]:
            count = sum(entry_of(spec, c) is entry and c.concurrency == n for c in captures)
            if count < entry["repetitions"]:
                yield f"{entry['role']} {entry['mode']} c{n}: {count} of {entry['repetitions']}"

# ---- 4. Protocol rules ----------------------------------------------------------------------------------------------

def declared_before(logs, spec_id, c, known):
    """Whether in some log, and in every one that has both, the spec's act stands before the first seal entry of the run."""
    seen = []
    for log in logs:
        acts = [i for i, e in log.items() if e["act"] == "spec" and e["subject"] == spec_id]
        seals = [i for i, e in log.items() if e["act"] == "seal" and c.same_run(known[e["capture"]])]
        if acts and seals:
            seen.append(min(acts) < min(seals))
    return bool(seen) and all(seen)

def prompts(c):
    """The prompts by prompt index; None where samples of one differ, or indices are left out."""
    found = {}
    for (index, _), r in c.requests.items():
        if found.setdefault(index, r["prompt_token_ids"]) != r["prompt_token_ids"]:
            return None
    return [found[i] for i in range(len(found))] if set(found) == set(range(len(found))) else None

def tokenizer_files(c):
    files = get(c.run, "tokenizer.files")
    return files and {(f["path"], f["sha256"]) for f in files}

def differ(values):
    return any(v != values[0] for v in values)

def undeclared(comparison, captures):
    for c, path in itertools.product(captures, comparison["shapes"]):
        if get(c.run, path) is None:
            yield "shape-mismatch", f"{c.run_id} does not declare {path}"

def protocol(spec, spec_id, captures, logs, known):
    """Yields (rule, why) for what does not hold."""
    corpus, comparison = spec["corpus"], spec["comparison"]
    oracles = [c for c in captures if c.role == "oracle"]
    candidates = [c for c in captures if c.role == "candidate"]
    if comparison["gate"] != "strict":
        yield "gate-not-ratified", comparison["gate"]
    for c in captures:
        if get(c.run, "sampling.method") != "greedy":
            yield "sampling-mismatch", c.run_id
        if c.role == "candidate" and not declared_before(logs, spec_id, c, known):
            yield "spec-not-predeclared", c.run_id
        covered = len({index for index, _ in c.requests}) >= corpus["requests"]
        whole = all(r.get("positions") is None and (len(r["output_token_ids"]) >= corpus["new_tokens"]
                    or r.get("finish_reason") == "stop") for r in c.requests.values())
        if not covered or not whole:
            yield "coverage-overclaimed", c.run_id
        prompted = prompts(c)
        if covered and "sha256" in corpus and (prompted is None or
                        digest({"prompts": prompted, "schema": "witnessmark.corpus/v1"}) != corpus["sha256"]):
            yield "corpus-mismatch", c.run_id
        if c.mode not in REPLAYS:
            forced = any(row[name] is not None for row in c.rows.values()
                         for name in ("forced_token_id", "forced_seq", "forced_at_ns"))
            other = any(row["sampled_token_id"] not in (None, row["token_id"]) for row in c.rows.values())
            if forced or other or any(r.get("continuation") is not None for r in c.requests.values()):
                yield "forced-output-claimed", c.run_id
    yield from undeclared(comparison, captures)
    for a, b in itertools.combinations(captures, 2):
        if a.same_run(b):
            yield "run-reused", f"{a.run_id} {b.run_id}"
    seen = {}
    for c in captures:
        for at, r in c.requests.items():
            if seen.setdefault(at, r["prompt_token_ids"]) != r["prompt_token_ids"]:
                yield "prefix-mismatch", f"{c.run_id} {at}"
    scores = [c.run["scores"] for c in captures if c.scored]
    if differ([(s["vocab_size"], s.get("masked_token_ids") or []) for s in scores]):
        yield "vocab-mismatch", "scores.vocab_size or masked_token_ids"
    for value in tokenizer_files, lambda c: get(c.run, "tokenizer.vocab_size"):
        if differ([v for v in map(value, captures) if v is not None]):
            yield "tokenizer-mismatch", "files or vocab_size"
    for o, c in itertools.product(oracles, candidates):
        scored = o.scored and c.scored
        pairs = [(row, c.rows[at]) for at, row in o.rows.items() if at in c.rows] if scored else []
        if o.concurrency == c.concurrency:
            if scored and not o.requests.keys() <= c.requests.keys():
                yield "coverage-overclaimed", f"{c.run_id} lacks requests of {o.run_id}"
            for path in "schedule.slots", "schedule.step":
                if written(o, path) != written(c, path):
                    yield "shape-mismatch", f"{o.run_id} {c.run_id} {path}"
            if comparison.get("observed_shape") == "equal" and not all(matched(a, b) for a, b in pairs):
                yield "shape-mismatch", f"{o.run_id} {c.run_id} rows"
        if any(written(o, path) != written(c, path) for path in ("model.transform", "model.weights_dtype")):
            if any(bitwise(a, b) for a, b in pairs):
                yield "score-reused", f"{o.run_id} {c.run_id}"

# ---- 5. Inertness ---------------------------------------------------------------------------------------------------

def tokens_apart(pairs):
    compared = mismatched = 0
    for a, b in pairs:
        for at in a.requests.keys() & b.requests.keys():
            x, y = a.requests[at]["output_token_ids"], b.requests[at]["output_token_ids"]
            compared += max(len(x), len(y))
            mismatched += sum(s != t for s, t in itertools.zip_longest(x, y))
    return {"compared": compared, "interval": numerics.interval(mismatched, compared), "mismatched": mismatched}

def inertness(role, concurrency, captures, margin, replayed):
    """The entry of the result, and whether instrumentation is refused; `replayed` where the spec asks for replays."""
    own = [c for c in captures if (c.role, c.concurrency) == (role, concurrency)]
    of = lambda mode: [c for c in own if c.mode == mode]
    baseline = tokens_apart(itertools.combinations(of("baseline"), 2))
    captured = tokens_apart(itertools.product(of("baseline"), of("capture-only")))
    pairs = []
    for replay, source in itertools.product(of("self-replay"), [c for c in own if c.scored]):
        for (at, prefix), row in replay.rows.items():
            named = (replay.requests[at[:2]].get("continuation") or {}).get("run_id") == source.run_id
            if named and (at, prefix) in source.rows:
                pairs.append((row, source.rows[at, prefix]))
    same_shape = [(a, b) for a, b in pairs if matched(a, b)]
    differing = sum(not bitwise(a, b) for a, b in same_shape)
    replays = {"differing": differing, "rows": len(pairs), "unmatched": len(pairs) - len(same_shape)}
    verdict, refused = "inert", False
    if 0 in (baseline["compared"], captured["compared"]) or replayed and not same_shape:
        verdict = "PENDING"
    elif baseline["mismatched"] == 0:
        refused = captured["mismatched"] > 0 or differing > 0
    elif margin is None or \
            captured["interval"][1] / 1e6 > baseline["mismatched"] / baseline["compared"] + margin:
        verdict = "INSUFFICIENT_EVIDENCE"
    return {"baseline": baseline, "captured": captured, "concurrency": concurrency, "replays": replays, "role": role,
            "verdict": verdict}, refused

def inertnesses(spec, captures, roles):
    """The entries of some roles, and the rules that they break."""
    places = lambda mode: {(e["role"], n) for e in spec["runs"] if e["mode"] == mode for n in e["concurrency"]}
    margin, entries, broken = spec["comparison"].get("inertness_margin"), [], []
    for role, n in sorted(places("baseline"), key=lambda at: (at[0].encode(), at[1])):
        if role in roles:
            entry, refused = inertness(role, n, captures, margin, (role, n) in places("self-replay"))
            entries.append(entry)
            broken += [("instrumentation-not-inert", f"{role} c{n}")] if refused else []
    return entries, broken

# ---- 6. Strata ------------------------------------------------------------------------------------------------------

def place(at): return {"position": at[0][2], "prompt_index": at[0][0], "sample_index": at[0][1]}

def summary(found):
    def spread(name):
        s = numerics.spread([r[name] for r in found])
        return {k: s[k] if k == "infinite" else numerics.real(s[k]) for k in ("infinite", "max", "mean", "median", "p99")}
    return {"rows": len(found), "top1": sum(r["oracle_argmax"] == r["candidate_argmax"] for r in found),
            "top10": sum(r["overlap"][-1] for r in found), **{name: spread(name) for name in STATISTICS}}

class Statistics:
    """Remembers rows of equal scores."""
    def __init__(self):
        self.known = {}

    def row(self, a, b):
        names = a["score_digest"], b["score_digest"]
        if names not in self.known:
            self.known[names] = numerics.compare(a["scores"], b["scores"])
        return self.known[names]

    def over(self, common):
        """The statistics over all of the common rows, and for each request; none where all are bitwise equal."""
        if all(bitwise(a, b) for _, a, b in common):
            return None, []
        found = [(at[0][:2], self.row(a, b)) for at, a, b in common]
        requests = [{"prompt_index": p, "sample_index": s, "statistics": summary([r for _, r in group])}
                    for (p, s), group in itertools.groupby(found, key=lambda item: item[0])]
        return summary([r for _, r in found]), requests

def common_rows(a, b, phase):
    """Rows of a and b at equal keys and prefixes, and of one phase, keys ascending."""
    return [(at, row, b.rows[at]) for at, row in a.rows.items()
            if at in b.rows and row["phase"] == b.rows[at]["phase"] == phase]

def compare(candidate, oracle, phase, statistics):
    common, flips, undecided = common_rows(oracle, candidate, phase), [], []
    for at, o, c in common:
        # A choice that is known is one token id; one that is not could be any with the highest score.
        sides = [[row["choice"]] if row["choice"] is not None else row["best"] for row in (o, c)]
        if not set(sides[0]) & set(sides[1]):
            flips.append({**place(at), "candidate": sides[1][0], "margin": numerics.real(o["margin"]), "oracle": sides[0][0]})
        elif o["choice"] is None or c["choice"] is None:
            undecided.append(place(at))
    overall, requests = statistics.over(common)
    return {"bitwise": sum(bitwise(o, c) for _, o, c in common), "candidate": candidate.id, "flips": flips,
            "oracle": oracle.id, "requests": requests, "rows": len(common), "statistics": overall,
            "tie_undecided": undecided, "ties": sum(o["margin"] == 0 for _, o, _ in common),
            "unmatched": sum(not matched(o, c) for _, o, c in common)}

def noise(a, b, phase, statistics):
    common = common_rows(a, b, phase)
    return {"a": a.id, "b": b.id, "bitwise": sum(bitwise(x, y) for _, x, y in common), "rows": len(common),
            "statistics": statistics.over(common)[0], "unmatched": sum(not matched(x, y) for _, x, y in common)}

def noises(oracles, phase, statistics):
    pairs = (noise(a, b, phase, statistics) for a, b in itertools.combinations(oracles, 2))
    return [x for x in pairs if x["rows"]]

def known_choices(rows): return {row["choice"] for row in rows} - {None}

def groups_of(oracles, phase):
    groups = {}
    for o in oracles:
        for at, row in o.rows.items():
            if row["phase"] == phase:
                groups.setdefault(at, []).append(row)
    return groups

def repeatability(groups):
    several = {at: rows for at, rows in sorted(groups.items()) if len(rows) > 1}
    differing = [{**place(at), "choices": sorted(known_choices(rows)),
                  "margin": numerics.real(min(row["margin"] for row in rows))}
                 for at, rows in several.items() if len(known_choices(rows)) > 1]
    return {"bitwise": sum(all(bitwise(rows[0], row) for row in rows) for rows in several.values()),
            "differing": differing, "groups": len(several), "single": len(groups) - len(several),
            "verdict": "differs" if differing else "repeats" if several else "PENDING"}

def after(key, r):
    """Where a request would go on after its last token."""
    return (*key, len(r["output_token_ids"])), sha256(np.array(r["prompt_token_ids"] + r["output_token_ids"], "<u4").tobytes())

def strata_of(concurrency, spec, captures, inert, statistics):
    """The strata of one concurrency."""
    phases = sorted(spec["strata"]["phases"], key=PHASES.index)
    here = [c for c in captures if c.concurrency == concurrency and c.scored]
    oracles = [c for c in here if c.role == "oracle"]
    candidates = [c for c in here if c.role == "candidate"]
    pairs = list(itertools.product(candidates, oracles))
    comparisons = {p: [x for c, o in pairs for x in [compare(c, o, p, statistics)] if x["rows"]] for p in phases}
    ends = [(c, after(key, r)) for c in candidates for key, r in c.requests.items()
            if len(r["output_token_ids"]) < spec["corpus"]["new_tokens"]]
    inert = {i["role"]: i["verdict"] for i in inert if i["concurrency"] == concurrency}
    unshown = any(c.extraction != "adapter" and c.role not in inert for c in here)
    first_flip = {}  # of each candidate and request
    for x in itertools.chain(*comparisons.values()):
        for flip in x["flips"]:
            of = x["candidate"], flip["prompt_index"], flip["sample_index"]
            first_flip[of] = min(flip["position"], first_flip.get(of, flip["position"]))
    for phase in phases:
        groups = groups_of(oracles, phase)
        repeats, rows = repeatability(groups), [(c, at) for c in candidates for at in c.rows if c.rows[at]["phase"] == phase]
        without = [(c, at) for c, at in rows if at not in groups] + [(c, at) for c, at in ends if at in groups]
        uncompared = sum(first_flip.get((c.id, *at[0][:2]), 2**31) >= at[0][2] for c, at in without)
        unrepeated = sum(len(groups.get(at, [])) == 1 for _, at in rows)
        table = [
            ("oracle-differs", repeats["verdict"] == "differs", "NOT_ACCEPTED"),
            ("flip", any(x["flips"] for x in comparisons[phase]), "NOT_ACCEPTED"),
            ("oracle-not-repeated", repeats["verdict"] == "PENDING" or unrepeated > 0, "PENDING"),
            ("no-candidate", not comparisons[phase], "PENDING"),
            ("uncompared-rows", uncompared > 0, "PENDING"),
            ("inertness-pending", "PENDING" in inert.values() or unshown, "PENDING"),
            ("tie-undecided", any(x["tie_undecided"] for x in comparisons[phase]), "INSUFFICIENT_EVIDENCE"),
            ("inertness-undecided", "INSUFFICIENT_EVIDENCE" in inert.values(), "INSUFFICIENT_EVIDENCE")]
        verdicts = [verdict for _, holds, verdict in table if holds]
        yield {"comparisons": comparisons[phase], "concurrency": concurrency, "noise": noises(oracles, phase, statistics),
               "phase": phase, "reasons": [reason for reason, holds, _ in table if holds], "repeatability": repeats,
               "uncompared": uncompared, "unrepeated": unrepeated, "verdict": (verdicts + ["ACCEPTED"])[0]}

def across(concurrencies, captures):
    rows = {n: {} for n in concurrencies}
    for c in captures:
        if c.role == "oracle" and c.scored and c.concurrency in rows:
            for at, row in c.rows.items():
                rows[c.concurrency].setdefault(at, []).append(row)
    start = concurrencies[0]
    for n in concurrencies[1:]:
        common = sorted(rows[start].keys() & rows[n].keys())
        differing = [at for at in common if known_choices(rows[start][at]) != known_choices(rows[n][at])]
        first = [place(next(group)) for _, group in itertools.groupby(differing, key=lambda at: at[0][:2])]
        yield {"common": len(common), "concurrency": n, "differing": len(differing), "first": first, "from": start}

# ---- 7. The result document -----------------------------------------------------------------------------------------

def judge(claim, pending, strata):
    verdicts = {s["verdict"] for s in strata}
    if claim == "diagnostic":
        return "PENDING" if pending else "DIAGNOSTIC_COMPLETE"
    if "NOT_ACCEPTED" in verdicts:
        return "NOT_ACCEPTED"
    if pending or "PENDING" in verdicts:
        return "PENDING"
    return "INSUFFICIENT_EVIDENCE" if "INSUFFICIENT_EVIDENCE" in verdicts else "ACCEPTED"

def partitions(runs):
    """What is held out is no oracle's calibration run, and known by name where it could be one."""
    calibrating = [e for e in runs if e.get("partition") == "calibration"]
    require(all(e["role"] == "oracle" for e in calibrating), "schema-invalid", "calibration by a candidate")
    for a, b in itertools.combinations(runs, 2):
        here = (a["role"], a["mode"]) == (b["role"], b["mode"]) and set(a["concurrency"]) & set(b["concurrency"])
        if here and a.get("partition") != b.get("partition"):
            names = [set(e.get("run_ids", [])) for e in (a, b)]
            require(all(names) and not names[0] & names[1], "schema-invalid", f"{a['mode']} kept for different things")

def read_rule(table):
    """The rule as the calibration document has it; shares in parts per million."""
    def share(x):
        n = round(x * 10**6) if type(x) is float and 0 < x <= 0.5 else 0
        require(n and n / 10**6 == x, "schema-invalid", f"{x} is no share")
        return n
    keys = {"maximum": {"rule", "alpha"}, "share": {"rule", "alpha", "share", "margin"}}
    require(table.keys() == keys.get(table.get("rule")), "schema-invalid", "another rule, or not its keys")
    margin = table.get("margin", 0.0)
    require(type(margin) in (int, float) and 0 <= margin < float("inf"), "schema-invalid", "calibration.margin")
    return {"alpha": share(table["alpha"]), "margin": numerics.real(float(margin)) if "margin" in table else None,
            "name": table["rule"], "share": share(table["share"]) if "share" in table else None}

def read_spec(data):
    require(len(data) <= 2**20, "limit-exceeded", "the spec")
    try:
        spec = tomllib.loads(data.decode("utf-8"))
    except ValueError as e:
        raise Refused("schema-invalid", str(e))
    versions = {"schema": "witnessmark.spec/v1", "rules": RULES, "numerics": NUMERICS}
    spec = {"claim": "strict", "rules": RULES, "numerics": NUMERICS, **spec}
    require(all(spec.get(key) == version for key, version in versions.items()), "schema-invalid", "of another version")
    parts = ["workload", "corpus", "strata", "runs"]
    require(all(spec.get(part) for part in parts), "schema-invalid", "the spec holds no whole plan")
    require(spec["claim"] in ("strict", "diagnostic"), "schema-invalid", "another claim")
    partitions(spec["runs"])
    if "calibration" in spec:
        spec["calibration"] = read_rule(spec["calibration"])
    return {**spec, "comparison": {"gate": "strict", "shapes": [], **spec.get("comparison", {})}}

def derive(root, spec_bytes, names):
    """The result document, or the rules that are broken."""
    spec, spec_id, logs = read_spec(spec_bytes), sha256(spec_bytes).hex(), verify.read_known(root)
    known = read_captures(root, logs)
    captures, placeless = choose(root, known, spec, names)
    broken = torn(captures + placeless)
    if broken:
        return None, broken
    captures.sort(key=Capture.order)
    broken = [("mode-missing", f"{c.run_id} has no place") for c in placeless]
    broken += protocol(spec, spec_id, captures, logs, known)
    inert, refused = inertnesses(spec, captures, {"candidate", "oracle"})
    if broken + refused:
        return None, broken + refused
    statistics = Statistics()
    concurrencies, pending = sorted(spec["strata"]["concurrency"]), sorted(set(missing(spec, spec["runs"], captures)), key=str.encode)
    strata = [s for n in concurrencies for s in strata_of(n, spec, captures, inert, statistics)]
    qualification = digest({"captures": [c.id for c in captures], "numerics": NUMERICS, "rules": RULES,
                            "schema": "witnessmark.qualification/v1", "spec": spec_id})
    return {"captures": listed(spec, captures),
            "cross_strata": list(across(concurrencies, captures)), "inertness": inert, "numerics": NUMERICS,
            "pending": pending, "qualification": qualification, "rules": RULES, "schema": "witnessmark.result/v1",
            "spec": spec_id, "strata": strata, "verdict": judge(spec["claim"], pending, strata),
            "workload": spec["workload"]}, []

# ---- 9. Calibrations ------------------------------------------------------------------------------------------------

ASKED = {"sampling-mismatch", "run-reused", "coverage-overclaimed", "corpus-mismatch", "forced-output-claimed",
         "prefix-mismatch", "vocab-mismatch", "tokenizer-mismatch"}

def calibration_rules(spec, spec_id, captures, logs, known):
    """Yields (rule, why) for what does not hold."""
    for rule, why in protocol(spec, spec_id, captures, logs, known):
        if rule in ASKED:
            yield rule, why
    yield from undeclared(spec["comparison"], captures)
    for c in captures:
        of_run = [k for k in known.values() if k.same_run(c)]
        if c.role != "oracle" or any(k.role == "candidate" for k in of_run):
            yield "calibration-contaminated", c.run_id
        if c.role == "oracle" and any(k.role == "oracle" and partition_of(spec, k) == "held-out" for k in of_run):
            yield "heldout-opened-early", c.run_id
        if c.role == "oracle" and partition_of(spec, c) is None:
            yield "mode-missing", f"{c.run_id} has no place in a partition"
        first = next(k for k in captures if k.concurrency == c.concurrency)
        for path in "schedule.slots", "schedule.step":
            if written(c, path) != written(first, path):
                yield "shape-mismatch", f"{first.run_id} {c.run_id} {path}"

def counts(spec, rule, captures):
    def planned(role, partition, mode, n):
        return min(2**32 - 1, sum(e["repetitions"] for e in spec["runs"] if n in e["concurrency"]
                                  and (e["role"], e.get("partition"), e["mode"]) == (role, partition, mode)))
    a, million = rule["alpha"], 10**6
    lines = {(n, e["mode"]) for e in spec["runs"] if e.get("partition") == "calibration" for n in e["concurrency"]}
    for n, mode in sorted((n, mode) for n, mode in lines if mode != "baseline"):
        plan, candidates = planned("oracle", "calibration", mode, n), planned("candidate", "held-out", mode, n)
        held_out = max(candidates, planned("oracle", "held-out", mode, n))
        found = sum((c.concurrency, c.mode) == (n, mode) for c in captures)
        if rule["name"] == "maximum":
            counted, units, bound = "calibration runs", plan, None
            needs = max(1, -(-held_out * (million - a) // a))
        else:
            counted, units = ("held-out units", 0) if not candidates else \
                             ("held-out requests", spec["corpus"]["requests"]) if n == 1 else ("held-out runs", candidates)
            needs, bound = numerics.least(rule["share"], a), numerics.bound(units, a)
        verdict = "INSUFFICIENT_EVIDENCE" if units < needs else "PENDING" if found < plan or not held_out else "CALIBRATED"
        yield {"bound": bound, "concurrency": n, "counted": counted, "found": found, "held_out": held_out, "mode": mode,
               "needs": needs, "planned": plan, "units": units, "verdict": verdict}

def calibrate(root, spec_bytes, names):
    """The calibration document, or the rules that are broken."""
    spec, spec_id, logs = read_spec(spec_bytes), sha256(spec_bytes).hex(), verify.read_known(root)
    known = read_captures(root, logs)
    placed, placeless = choose(root, known, spec, names)
    captures = placed + placeless if names else [c for c in placed if partition_of(spec, c) == "calibration"]
    broken = torn(captures)
    if broken:
        return None, broken
    inert, refused = inertnesses(spec, captures, {"oracle"})
    broken = [*calibration_rules(spec, spec_id, captures, logs, known), *refused]
    if broken:
        return None, broken
    captures.sort(key=Capture.order)
    rule, statistics, strata = spec.get("calibration"), Statistics(), []
    lines = list(counts(spec, rule, captures)) if rule else []
    pending = set(missing(spec, [e for e in spec["runs"] if e.get("partition") == "calibration"], captures))
    pending |= {f"runs: nothing is held out of {x['mode']} c{x['concurrency']}" for x in lines if not x["held_out"]}
    if not lines:
        pending.add("runs: no oracle with scores in the calibration partition" if rule else
                    "calibration: the spec fixes no rule")
    phases = sorted(spec["strata"]["phases"], key=PHASES.index)
    for n, phase in itertools.product(sorted(spec["strata"]["concurrency"]), phases):
        oracles = [c for c in captures if c.concurrency == n and c.scored]
        strata.append({"concurrency": n, "noise": noises(oracles, phase, statistics), "phase": phase,
                       "repeatability": repeatability(groups_of(oracles, phase))})
    insufficient = any(x["verdict"] == "INSUFFICIENT_EVIDENCE" for x in lines)
    return {"captures": listed(spec, captures), "counts": lines, "inertness": inert, "numerics": NUMERICS,
            "pending": sorted(pending, key=str.encode), "rule": rule, "rules": RULES, "schema": "witnessmark.calibration/v1",
            "spec": spec_id, "strata": strata, "workload": spec["workload"],
            "verdict": "INSUFFICIENT_EVIDENCE" if insufficient else "PENDING" if pending else "CALIBRATED"}, []

def sealed(root, name):
    """Spec, captures and bytes of a result that the log has, by its SHA or its qualification."""
    logs = verify.read_known(root)
    def read(name): return verify.read_object(root, name)
    for act in entries(logs, "qualify"):
        data = verify.read_document(read, act)
        result = document(data, limit=2**26)
        if name in (act["subject"], result["qualification"]):
            specs = [e for e in entries(logs, "spec") if e["subject"] == result["spec"]]
            require(specs, "object-missing", "the log has not the spec")
            return verify.read_document(read, specs[0]), [c["capture"] for c in result["captures"]], data
    raise FileNotFoundError(f"neither a file nor a result of the log: {name}")

def main(args):
    output = args.pop(args.index("-o") + 1) if "-o" in args[:-1] else None
    calibrating = args[1:2] == ["--calibrate"]
    args = [a for a in args if a not in ("-o", "--calibrate")]
    if len(args) < 2 or args[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 3
    root, what, names, before = args[0], args[1], args[2:] or None, None
    try:
        if os.path.isfile(what):
            with open(what, "rb") as f:
                spec = f.read()
        elif calibrating:
            raise FileNotFoundError(what)
        else:
            spec, names, before = sealed(root, what)
        result, broken = (calibrate if calibrating else derive)(root, spec, names)
        if result:
            data = encode(result)
            require(before in (None, data), "result-mismatch", "derived again it is another")
    except Refused as e:
        print(f"REFUSED {e}")
        return 2
    except OSError as e:
        print(f"{root} cannot be read: {e}", file=sys.stderr)
        return 3
    for rule, why in broken:
        print(f"REFUSED {rule}: {why}")
    if broken:
        return 2
    ids = {"calibration" if calibrating else "result": sha256(data).hex(), **result}
    names = ["calibration"] if calibrating else ["result", "qualification"]
    print(result["verdict"], *(f"{name}={ids[name]}" for name in [*names, "spec"]))
    if output:
        with open(output, "wb") as f:
            f.write(data)
    return 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
