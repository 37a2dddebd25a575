# SPDX-License-Identifier: MIT-0
# siblings_check.py FILE.csv FILE.json: computes again, from the values of the runs, what the studies sweep, regimes, betas, stability,
# gates and oui say of them. Silent when all agrees; else the first difference, and status 1.
import csv, json, math, os, sys

def near(a, b, what):
    if not abs(a - b) <= 2e-6 * max(1, abs(a), abs(b)): sys.exit(f"{what}: {a!r} against {b!r}")

name = os.path.basename(sys.argv[1]).split("_")[0]
rows = list(csv.DictReader(open(sys.argv[1])))
axes = [k for k in rows[0] if k not in ("arm", "seed", "epoch", "gate", "quantity", "value")]
found = json.load(open(sys.argv[2]))
percent = found["config"]["score"] != "loss"
sign, usable = (1 if percent else -1), (1.5 if percent else 0.1)
one, curve = {}, {}                          # (axes, arm, seed, quantity[, gate]): a number, or by epochs
for r in rows:
    key = tuple(r[a] for a in axes), r["arm"], int(r["seed"]), r["quantity"], r["gate"]
    if r["epoch"]: curve.setdefault(key, {})[int(r["epoch"])] = float(r["value"])
    else: one[key] = float(r["value"])
seeds = sorted({k[2] for k in list(one) + list(curve)})
runs = sorted({k[:3] for k in list(one) + list(curve)})
mean = lambda v: sum(v) / len(v)
checked = 0

def finding(text, values):
    global checked
    f = [f for f in found["findings"] if f["claim"] == text]
    if not f: sys.exit(f"no finding '{text}'")
    near(f[0]["mean"], mean(values), text)
    checked += 1

def smooth(v):
    v = v[:]
    for i in range(1, len(v)): v[i] = 0.9 * v[i - 1] + 0.1 * v[i]
    return v

def end_of(run): return curve[run + ("holdout", "")][max(curve[run + ("holdout", "")])]

def slope(x, y):
    a, b = mean(x), mean(y)
    return sum((p - a) * (q - b) for p, q in zip(x, y)) / sum((p - a) ** 2 for p in x)

if name == "regimes":
    for run in runs:
        for which in "patterns", "weights", "random":
            steps = curve[run + ("step_" + which, "")]
            v = smooth([steps[k] for k in sorted(steps)][10:])
            for percents in 50, 25, 10:
                late = [i for i, x in enumerate(v) if not x < percents / 100 * max(v)]
                after = late[-1] + 1 if late else 0
                near(one[run + (f"tau_{which}_{percents}", "")], (after + 1 if after < len(v) else len(v)) + 10, f"{run} τ {which}")
                checked += 1
elif name == "betas":
    for run in runs:
        steps = curve[run + ("step_update", "")]
        v = [steps[k] for k in sorted(steps)][(len(steps) + 1) // 10:]
        s = smooth(v)
        rough = mean([abs(b - a) for a, b in zip(s, s[1:])])
        near(one[run + ("omega1", "")], rough, f"{run} ω1")
        near(one[run + ("omega1_share", "")], rough / mean(v), f"{run} ω1 by the norm")
    for b1 in sorted({r[0][0] for r in runs}):
        finding(f"β1 {b1}: log10 bend, β2 = β1 over the others", [math.log10(one[((b1, b1), "gelu", s, "bend", "")]) -
                mean([math.log10(one[r + ("bend", "")]) for r in runs if r[0][0] == b1 != r[0][1] and r[2] == s]) for s in seeds])
elif name == "sweep":
    c, init = axes.index("c"), axes.index("init")
    multipliers = sorted({r[0][c] for r in runs if r[0][c]}, key=float)
    def best(which, start, seed):
        return [v for k, v in one.items() if k[0][c] == which and k[0][init] == start and k[1:4] == ("lgelu", seed, "best")][0]
    for start in sorted({r[0][init] for r in runs if r[0][init]}):
        finding(f"init {start}: the best score at c = {multipliers[-1]} is that at c = {multipliers[0]}",
                [sign * (best(multipliers[-1], start, s) - best(multipliers[0], start, s)) for s in seeds])
elif name == "stability":
    for run in runs:
        near(one[run + ("dead_percent", "")], 100 * mean([v for k, v in one.items() if k[:4] == run + ("dead",)]), f"{run} Dead %")
    rates = sorted({r[0][0] for r in runs}, key=float)
    for arm in "relu", "lgelu", "hardened":
        finding(f"loss of {arm} less GELU's grows with the rate, a decade", [slope([math.log10(float(r)) for r in rates],
                [one[((r,), arm, s, "before", "")] - one[((r,), "gelu", s, "before", "")] for r in rates]) for s in seeds])
elif name == "gates":
    lr = axes.index("lr")
    rates = sorted({r[0][lr] for r in runs}, key=float)
    def at(setting, rate): return setting[:lr] + (rate,) + setting[lr:]
    settings = sorted({r[0][:lr] + r[0][lr + 1:] for r in runs})
    others = axes[:lr] + axes[lr + 1:]
    words = ["warm-up" if a == "warmup" else a for a in others]
    def width(setting, arm, seed):
        v = [sign * end_of((at(setting, r), arm, seed)) for r in rates]
        v = [max(x - max(v) + usable, -20 * usable) for x in v]
        sum_ = 0
        for i in range(1, len(v)):
            steps, inside = 100000, 0                                  # counted, not solved for
            for k in range(steps): inside += v[i - 1] + (v[i] - v[i - 1]) * (k + 0.5) / steps >= 0
            sum_ += inside / steps * math.log10(float(rates[i]) / float(rates[i - 1]))
        return sum_
    def score(setting, arm, seed):
        best = max(rates, key=lambda r: mean([sign * end_of((at(setting, r), arm, k)) for k in seeds]))
        return one[(at(setting, best), arm, seed, "before", "")]
    widths = {(w, a, s): width(w, a, s) for w in settings for a in ("gelu", "relu", "swish") for s in seeds}
    for w in settings:
        text = ", ".join(f"{a} {v}" for a, v in zip(words, w)) or "all runs"
        for arm, what in ("relu", "ReLU"), ("swish", "Swish"):
            f = [f for f in found["findings"] if f["claim"] == f"{text}: decades, {what} less GELU"][0]
            if abs(f["mean"] - mean([widths[w, arm, s] - widths[w, "gelu", s] for s in seeds])) > 1e-3: sys.exit(f"{text}: width, {arm}")
        for arm, what in ("tanh", "the tanh form"), ("silu", "SiLU"), ("elu", "ELU"), ("stochastic", "the stochastic gate"):
            finding(f"{text}: {what} scores as GELU", [sign * (score(w, arm, s) - score(w, "gelu", s)) for s in seeds])
    for k, word in enumerate(words):
        values = list(dict.fromkeys(dict(r)[others[k]] for r in rows if r[others[k]]))      # as they were given
        for v in values[1:]:
            pairs = [(w, w[:k] + (values[0],) + w[k + 1:]) for w in settings if w[k] == v]
            f = [f for f in found["findings"] if f["claim"] == f"{word} {v}, relu: decades that it adds to the band"][0]
            if abs(f["mean"] - mean([mean([widths[a, "relu", s] - widths[b, "relu", s] for a, b in pairs]) for s in seeds])) > 1e-3:
                sys.exit(f"{word} {v}: width")
            finding(f"{word} {v}, elu: what it adds to the score", [mean([sign * (score(a, "elu", s) - score(b, "elu", s)) for a, b in pairs]) for s in seeds])
    hardness = lambda arm: {v for r, v in ((r, float(r["value"])) for r in rows if r["quantity"] == "lambda" and r["arm"] == arm and r["epoch"] != "0")}
    if hardness("silu") != {1.0} or hardness("stochastic") != {1.0} or len(hardness("swish")) < 4 or len(hardness("lgelu")) < 4: sys.exit("λ and β")
    checked += 1
elif name == "oui":
    for run in runs:
        for form in "oui_pairwise", "oui_batch_before":
            values = [x for k, v in curve.items() if k[:4] == run + (form,) for x in v.values()]
            if not values or not all(0 <= x <= 1 for x in values): sys.exit(f"{run} {form} is no share")
            checked += 1
if not checked: sys.exit(f"{name}: nothing was checked")
