#!/usr/bin/env python3
"""The statistics of specs/numerics-v1.md, with the bits that it decides, written from it alone.

    numerics.py ORACLE CANDIDATE      compare two capture directories, rows matched by key
    numerics.py --make-vectors DIR    write the vectors of section 10
    numerics.py --self-test           corpora/numerics holds these vectors; the plain formulas agree

NumPy's elementwise +, -, *, / of float64 are those of IEEE 754, one rounding each, so arrays give the bits of scalars. Its sums
and its exp and log are not used.
"""
import json, math, os, sys
from fractions import Fraction
import numpy as np
sys.dont_write_bytecode = True

TOP_K = (1, 5, 10)
MASKED = -2.0 ** 130
LN2_HI, LN2_LO = 6.93147180369123816490e-01, 1.90821492927058770002e-10

# ---- 1. Sums --------------------------------------------------------------------------------------------------------

def sum16(x):
    x = np.asarray(x, np.float64)
    rows = np.zeros((1 + -(-len(x) // 16), 16))  # a first row of +0, where each lane starts
    rows[1:].reshape(-1)[:len(x)] = x
    lanes = np.add.accumulate(rows, axis=0)[-1]
    for half in 8, 4, 2, 1:
        lanes = lanes[:half] + lanes[half:2 * half]
    return float(lanes[0])

# ---- 2. Elementary functions ----------------------------------------------------------------------------------------

def nearest(numerator, denominator):
    """The binary64 nearest to a fraction."""
    return float(Fraction(numerator, denominator))

def horner(c, x):
    total = np.full_like(x, c[-1])
    for term in reversed(c[:-1]):
        total = total * x + term
    return total

EXP = [nearest(1, math.factorial(k)) for k in range(13)]
LN = [nearest(1, 2 * k + 1) for k in range(11)]

def exp(x):
    at = np.where(x > -690.0, x, -690.0)
    rounded = at * 1.4426950408889634 + 6755399441055744.0
    k = rounded - 6755399441055744.0
    r = (at - k * LN2_HI) - k * LN2_LO
    value = horner(EXP, r) * np.ldexp(1.0, k.astype(np.int64))
    return np.where(x < -690.0, 0.0, value)

def ln(x):
    m, e = np.frexp(x)  # m in [1/2, 1)
    m, e = m * 2.0, (e - 1).astype(np.float64)
    high = m > 1.4142135623730951
    m, e = np.where(high, m * 0.5, m), np.where(high, e + 1.0, e)
    s = (m - 1.0) / (m + 1.0)
    series = (s + s) * horner(LN, s * s)
    return e * LN2_HI + (e * LN2_LO + series)

# ---- 3. The top of a row --------------------------------------------------------------------------------------------

def top(row):
    """The unmasked tokens of the ten highest scores, equal ones by id."""
    order = np.argsort(-row.astype(np.float64), kind="stable")[:TOP_K[-1]]
    return [int(t) for t in order if row[t] > -np.inf]

# ---- 4, 5. Probabilities and terms ----------------------------------------------------------------------------------

def below(row, maximum):
    y = row.astype(np.float64) - maximum
    return np.where(y > MASKED, y, MASKED)

COSH = [nearest(1, math.factorial(2 * k + 2)) for k in range(6)]
SINH = [nearest(1, math.factorial(2 * k + 3)) for k in range(5)]
JS = [nearest(*f) for f in ((1, 4), (-1, 32), (1, 288), (-17, 46080), (31, 806400), (-691, 174182400), (5461, 13412044800))]

def near(p, q, d):
    t = d * d
    even = t * horner(COSH, t)
    odd = (d * t) * horner(SINH, t)
    phi = even + odd
    return p * phi, q * (even - odd), ((p + q) * 0.5) * (t * horner(JS, t)), abs(p * (d + phi))

def far(p, q, d):
    w, total = q - p, p + q
    low, high = np.where(w > 0, p, q), np.where(w > 0, q, p)
    ratio = np.divide(high + high, total, out=np.ones_like(total), where=total > 0)
    return w - p * d, q * d - w, total * ln(ratio) - low * abs(d), abs(w)

def compare(a, b):
    """The statistics of two rows of float32 scores, as section 6 names them."""
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    if len(a) != len(b) or not ((a < np.inf) & (b < np.inf)).all() or not (a > -np.inf).any() or not (b > -np.inf).any():
        raise ValueError("these are not rows of scores over one vocabulary")
    tops = top(a), top(b)
    argmax = tops[0][0], tops[1][0]
    max_a, max_b = float(a[argmax[0]]) + 0.0, float(b[argmax[1]]) + 0.0
    y_a, y_b = below(a, max_a), below(b, max_b)
    e_a, e_b = exp(y_a), exp(y_b)
    s_a, s_b = sum16(e_a), sum16(e_b)
    shift = float(ln(np.array([s_b]))[0]) - float(ln(np.array([s_a]))[0])
    p, q, d = e_a * (1.0 / s_a), e_b * (1.0 / s_b), (y_b - y_a) - shift
    with np.errstate(over="ignore", invalid="ignore"):  # in the half of each pair that is not taken
        kl, reverse, js, tv = (sum16(np.where(abs(d) < 0.25, n, f)) for n, f in zip(near(p, q, d), far(p, q, d)))
    masked_a, masked_b = a == -np.inf, b == -np.inf
    differences = int((masked_a != masked_b).sum())
    both = ~(masked_a | masked_b)
    delta = abs(b[both].astype(np.float64) - a[both].astype(np.float64))
    second = float(a[tops[0][1]]) if len(tops[0]) > 1 else -math.inf
    return {
        "kl": math.inf if differences else kl, "kl_reverse": math.inf if differences else reverse,
        "js": 0.5 * js, "tv": 0.5 * tv, "max_abs_delta": float(delta.max(initial=0.0)), "margin": max_a - second,
        "oracle_argmax": argmax[0], "candidate_argmax": argmax[1],
        "maxima_meet": bool(((a == a[argmax[0]]) & (b == b[argmax[1]])).any()), "rank": int((b > b[argmax[0]]).sum()),
        "overlap": [len(set(tops[0][:k]) & set(tops[1][:k])) for k in TOP_K], "mask_differences": differences}

# ---- 7. Many rows ---------------------------------------------------------------------------------------------------

REALS = "kl kl_reverse js tv max_abs_delta margin".split()

def spread(values):
    n, ordered = len(values), sorted(values)
    return {"mean": sum16(values) / n, "median": ordered[-(-n // 2) - 1], "p99": ordered[-(-99 * n // 100) - 1],
            "max": ordered[-1], "infinite": sum(v == math.inf for v in values)}

def summarise(rows, near_tie):
    return {
        "rows": len(rows), **{name: spread([r[name] for r in rows]) for name in REALS},
        "agree": sum(r["oracle_argmax"] == r["candidate_argmax"] for r in rows),
        "maxima_meet": sum(r["maxima_meet"] for r in rows), "near_ties": sum(r["margin"] <= near_tie for r in rows),
        "overlap": [sum(r["overlap"][i] for r in rows) for i in range(len(TOP_K))],
        "max_rank": max(r["rank"] for r in rows), "mask_differences": sum(r["mask_differences"] > 0 for r in rows)}

# ---- 8. Reals as text -----------------------------------------------------------------------------------------------

def real(x):
    """ECMAScript's Number::toString, from the digits of repr, which are the shortest too."""
    if x in (0.0, math.inf, -math.inf):
        return {0.0: "0", math.inf: "inf", -math.inf: "-inf"}[x]
    sign, mantissa = ("-" if x < 0 else ""), repr(abs(x))
    mantissa, _, exponent = mantissa.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    n = len(digits) - len(fraction) + int(exponent or 0)  # 0.DIGITS × 10^n
    digits = digits.rstrip("0")
    k = len(digits)
    if k <= n <= 21:
        return sign + digits + "0" * (n - k)
    if 0 < n <= 21:
        return sign + digits[:n] + "." + digits[n:]
    if -6 < n <= 0:
        return sign + "0." + "0" * -n + digits
    tail = f"e{n - 1:+d}"
    return sign + digits[0] + ("." + digits[1:] if k > 1 else "") + tail

# ---- 9. The interval of a share --------------------------------------------------------------------------------------

MILLION = 10**6

def at_most(k, n, j):
    """The probability of k hits of n or fewer, where each hits with a probability of j in a million."""
    whole, hit, miss = ln(np.array([1e6, j, MILLION - j], np.float64))
    hit, miss = hit - whole, miss - whole
    i = np.arange(1, k + 1, dtype=np.float64)
    steps = (ln(n - i + 1) - ln(i)) + (hit - miss)
    logs = np.add.accumulate(np.concatenate([[n * miss], steps]))
    return float(np.add.accumulate(exp(np.minimum(logs, 0.0)))[-1])

def last(holds, high=MILLION):
    low = 0
    while high - low > 1:
        middle = low + (high - low) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low

def interval(hits, count):
    """The exact 95 % interval of a share, in parts per million; None of nothing."""
    if count == 0:
        return None
    return [0 if hits == 0 else last(lambda j: 1.0 - at_most(hits - 1, count, j) <= 0.025),
            MILLION if hits == count else 1 + last(lambda j: at_most(hits, count, j) > 0.025)]

def bound(n, a):
    """What a share is at most where none of n hit, wrong with a probability of a in a million."""
    return MILLION if n == 0 else 1 + last(lambda j: at_most(0, n, j) > a / 1e6)

def least(j, a):
    """How many there must be, and none hit, for `bound` to be at most j."""
    return 1 + last(lambda n: at_most(0, n, j) > a / 1e6, 2**24)

# ---- Captures -------------------------------------------------------------------------------------------------------

def capture(folder):
    """Key to row of scores, keys ascending."""
    with open(os.path.join(folder, "run.json"), encoding="utf-8") as f:
        declared = json.load(f)["scores"]
    path = os.path.join(folder, declared["file"])
    kind = {"bfloat16": "<u2", "float16": "<f2", "float32": "<f4"}[declared["dtype"]]
    scores = np.fromfile(path, kind)
    if kind == "<u2":
        scores = (scores.astype(np.uint32) << 16).view(np.float32)
    scores = scores.astype(np.float32).reshape(-1, declared["vocab_size"])
    with open(os.path.join(folder, "rows.jsonl"), encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    keys = [(r["prompt_index"], r.get("sample_index") or 0, r["position"]) for r in rows]
    return dict(sorted(zip(keys, scores), key=lambda pair: pair[0]))

def main(args):
    if args[:1] in (["--make-vectors"], ["--self-test"]):
        import numerics_vectors
        return numerics_vectors.main(args)
    if len(args) != 2 or args[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 3
    a, b = map(capture, args)
    summary = summarise([compare(a[key], b[key]) for key in a if key in b], 0.0)
    for name, value in summary.items():
        print(name, *([f"{k}={real(v)}" for k, v in value.items()] if isinstance(value, dict) else [value]))
    return 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
