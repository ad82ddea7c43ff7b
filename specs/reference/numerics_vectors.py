"""The vectors of section 10 of specs/numerics-v1.md. Run as numerics.py --make-vectors and --self-test.

Bits are those of numerics.py; what they should be near to is computed by the textbook formulas with 60 decimal digits.
"""
import json, math, os, struct, sys
from decimal import Context, Decimal, localcontext
import numpy as np
import numerics as n

HERE = os.path.dirname(os.path.abspath(__file__))
CORPORA = os.path.join(HERE, "..", "..", "corpora")
FILE = "vectors.json"
CUT = "oracle-c1-rep0", "oracle-c4-rep0"
NEAR_TIE = 0.5
NOISE = 1e-40  # where 60 digits have cancelled; what is smaller is given as 0
RELATIVE = 1e-13
ABSOLUTE = {"kl": NOISE, "kl_reverse": NOISE, "js": NOISE, "tv": 1e-14}

def f32(*values): return np.array(values, np.float32)
def hex32(row): return [f"{bits:08x}" for bits in np.asarray(row, np.float32).view(np.uint32).tolist()]
def hex64(x): return struct.pack(">d", x).hex()

# ---- Inputs ---------------------------------------------------------------------------------------------------------

def splitmix(seed, i):
    x = (seed + (i + 1) * 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31

def generate(vocab, seed, scale, shift, mask_oracle=0, mask_candidate=0):
    """Both rows: integers of 24 bits times 2^-scale; they differ by integers of 24 - shift bits, times 2^-scale."""
    a, b = np.empty(vocab, np.float32), np.empty(vocab, np.float32)
    for i in range(vocab):
        x = splitmix(seed, i)
        base, step = (x >> 40) - 2**23, (x % 2**24 - 2**23) >> shift
        masked = [m > 0 and i % m == m - 1 for m in (mask_oracle, mask_candidate)]
        a[i] = -np.inf if masked[0] else math.ldexp(base, -scale)
        b[i] = -np.inf if masked[1] else math.ldexp(base + step, -scale)
    return a, b

INF = math.inf
EXPLICIT = {
    "one token": (f32(3.5), f32(-2.0)),
    "two tokens": (f32(0, 1), f32(1, 0)),
    "equal rows": (f32(1, 2, 3, 0.5), f32(1, 2, 3, 0.5)),
    "a common offset": (f32(1, 2, 3, 0.5), f32(5, 6, 7, 4.5)),
    "ties: the lowest id of each side, maxima that meet": (f32(4, 7, 7, 1), f32(4, 6, 7, 7)),
    "ties: maxima that do not meet": (f32(7, 7, 1, 1), f32(1, 1, 7, 7)),
    "more ties than the top has places": (f32(*[2] * 14), f32(*[1] * 4, *[2] * 10)),
    "zeros of both signs tie": (f32(-0.0, 0.0, -1), f32(0.0, -0.0, -1)),
    "one-hot against one-hot": (f32(1e4, 0, 0), f32(0, 1e4, 0)),
    "one-hot against itself, less sure": (f32(100, 0, 0), f32(50, 0, 0)),
    "logits of 1e4": (f32(1e4, 9999.5, -1e4), f32(1e4, 9998.5, -1e4)),
    "the whole range of f32": (f32(3.4e38, -3.4e38), f32(-3.4e38, 3.4e38)),
    "subnormals": (f32(1e-45, -1e-45, 3e-39), f32(-1e-45, 1e-45, 0)),
    "beyond EXP's floor: no probability on either side": (f32(0, -690.5, -700), f32(0, -700, -691)),
    "just above EXP's floor": (f32(0, -690), f32(0, -689.5)),
    "the same tokens masked": (f32(1, -INF, 2, -INF), f32(2, -INF, 1, -INF)),
    "a token masked by the candidate": (f32(1, 0, 2), f32(1, -INF, 2)),
    "a token masked by the oracle": (f32(1, -INF, 2), f32(1, 0, 2)),
    "the oracle's argmax masked by the candidate": (f32(3, 0, 2), f32(-INF, 0, 2)),
    "one unmasked token": (f32(-INF, 5), f32(-INF, -5)),
    "nothing in common": (f32(0, -INF), f32(-INF, 0)),
    "d at the border of the series": (f32(0, 0.25, 0.5), f32(0, 0, 0)),
}
GENERATED = {
    **{f"vocabulary of {v}": dict(vocab=v, seed=v, scale=20, shift=3) for v in (2, 15, 16, 17, 31, 33, 1000)},
    "KL near 1e-18": dict(vocab=1000, seed=1, scale=30, shift=22),
    "KL near 1e-14": dict(vocab=1000, seed=2, scale=30, shift=16),
    "KL near 1e-10": dict(vocab=1000, seed=3, scale=30, shift=9),
    "KL near 1e-6": dict(vocab=1000, seed=4, scale=30, shift=2),
    "KL near 1e-4": dict(vocab=1000, seed=5, scale=20, shift=9),
    "large logits that differ by little": dict(vocab=1000, seed=6, scale=10, shift=23),
    "large logits that differ by much": dict(vocab=1000, seed=7, scale=10, shift=0),
    "the same masks": dict(vocab=1000, seed=8, scale=20, shift=4, mask_oracle=3, mask_candidate=3),
    "other masks": dict(vocab=1000, seed=9, scale=20, shift=4, mask_oracle=6, mask_candidate=4),
    "a whole vocabulary, close": dict(vocab=49152, seed=10, scale=20, shift=6),
    "a whole vocabulary, apart": dict(vocab=49152, seed=11, scale=19, shift=0),
}

# ---- What the statistics should be near to --------------------------------------------------------------------------

def truth(a, b):
    """KL both ways (infinite where masks differ), JS and TV by their definitions, with 60 digits."""
    with localcontext(Context(prec=60, Emin=-10**9, Emax=10**9)):
        def log_probabilities(row):
            x = [None if v == -INF else Decimal(float(v)) for v in row]
            top = max(v for v in x if v is not None)
            log_sum = top + sum((v - top).exp() for v in x if v is not None).ln()
            return [None if v is None else v - log_sum for v in x]
        zero, two = Decimal(0), Decimal(2)
        kl, reverse, js, tv = zero, zero, zero, zero
        for la, lb in zip(log_probabilities(a), log_probabilities(b)):
            p, q = (zero if v is None else v.exp() for v in (la, lb))
            if la is not None and lb is not None:
                kl, reverse = kl + p * (la - lb), reverse + q * (lb - la)
            elif la is not None or lb is not None:
                kl = reverse = Decimal(INF)
            middle = ((p + q) / 2).ln() if p + q else zero
            js += (p * (la - middle) if p else zero) / 2 + (q * (lb - middle) if q else zero) / 2
            tv += abs(p - q) / 2
        def text(v): return "inf" if v == INF else f"{v:.25e}" if v > NOISE else "0"
        return {name: text(v) for name, v in (("kl", kl), ("kl_reverse", reverse), ("js", js), ("tv", tv))}

# ---- Vectors --------------------------------------------------------------------------------------------------------

def result(stats):
    return {name: hex64(v) if isinstance(v, float) else v for name, v in stats.items()}

def cases():
    for name, (a, b) in EXPLICIT.items():
        yield {"name": name, "oracle": hex32(a), "candidate": hex32(b)}, a, b, truth(a, b)
    for name, form in GENERATED.items():
        a, b = generate(**form)
        yield {"name": name, "generated": form}, a, b, truth(a, b)
    left, right = (n.capture(os.path.join(CORPORA, "smollm2-h200-cut", name)) for name in CUT)
    for row, key in enumerate(left):
        form = {"name": f"row {row} of two captures", "captures": list(CUT), "row": row}
        yield form, left[key], right[key], truth(left[key], right[key]) if row == 1 else None

REALS = (0.0, -0.0, 1.0, -1.5, 0.1, 123456789.0, 1e20, 123456789012345680000.0, 1e21, 1.5e300, 1e-6, 1.25e-6, 1e-7, 1.5e-7,
         5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 1 / 3, 2.0**53, 4.35, 1e23, INF, -INF)

def make():
    vectors, rows = [], []
    for form, a, b, near in cases():
        stats = n.compare(a, b)
        rows.append(stats)
        vectors.append({**form, "result": result(stats), **({"near": near} if near else {})})
    def text(v): return {k: n.real(x) if isinstance(x, float) else x for k, x in v.items()} if isinstance(v, dict) else v
    summary = {name: text(v) for name, v in n.summarise(rows, NEAR_TIE).items()}
    lines = ",\n".join("  " + json.dumps(v) for v in vectors)
    reals = json.dumps([[hex64(x), n.real(x)] for x in REALS])
    return f'{{"rows": [\n{lines}\n],\n"near_tie": {NEAR_TIE}, "summary": {json.dumps(summary)},\n"reals": {reals}}}\n'

def plain(a, b):
    """The usual formulas in float64, with NumPy's own exp, log and sums."""
    la, lb = (r.astype(np.float64) - r.max() for r in (a, b))
    la, lb = (r - np.log(np.exp(r).sum()) for r in (la, lb))
    p, q = np.exp(la), np.exp(lb)
    middle = np.log((p + q) / 2)
    return {"kl": (p * (la - lb)).sum(), "kl_reverse": (q * (lb - la)).sum(),
            "js": ((p * (la - middle)).sum() + (q * (lb - middle)).sum()) / 2, "tv": abs(p - q).sum() / 2}

def self_test():
    made = make()
    with open(os.path.join(CORPORA, "numerics", FILE), encoding="utf-8") as f:
        assert f.read() == made, f"{FILE} is not what is made now"
    rows = json.loads(made)["rows"]
    for row in rows:
        for name, near in row.get("near", {}).items():
            got = struct.unpack(">d", bytes.fromhex(row["result"][name]))[0]
            off = abs(Decimal(got) - Decimal(near)) if got < INF else Decimal(0 if near == "inf" else INF)
            allowed = Decimal(ABSOLUTE[name]) + (0 if near == "inf" else Decimal(RELATIVE) * Decimal(near))
            assert off <= allowed, f"{row['name']}: {name} is {got}, not {near}"
    a, b = (n.capture(os.path.join(CORPORA, "smollm2-h200-cut", name)) for name in CUT)
    for key in a:
        stats = n.compare(a[key], b[key])
        for name, x in plain(a[key], b[key]).items():
            assert abs(x - stats[name]) < 1e-12, f"{key}: {name} {x} {stats[name]}"
    print(f"{len(rows)} rows of statistics are as they are made and near to what they stand for")

def main(args):
    if args[0] == "--make-vectors" and len(args) == 2:
        os.makedirs(args[1], exist_ok=True)
        with open(os.path.join(args[1], FILE), "w", encoding="utf-8", newline="") as f:
            f.write(make())
    elif args == ["--self-test"]:
        try:
            self_test()
        except AssertionError as e:
            print(f"self-test: {e}", file=sys.stderr)
            return 2
    else:
        print(n.__doc__, file=sys.stderr)
        return 3
    return 0
