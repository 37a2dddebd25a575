# SPDX-License-Identifier: MIT-0
"""torch_convert.py: the intervals, verdicts and corrections of examples/torch/convert.py hold what they promise."""
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "torch"))
import numpy as np
import convert
import relus

bad = 0


def check(good, name, saw):
    global bad
    print(f"ok {name}" if good else f"FAIL {name}: {saw}")
    bad |= not good


# R's pt(t, n, lower.tail = FALSE)
known = [(1, 1, 0.25), (2.77644511, 4, 0.025), (4.60409487, 4, 0.005), (2.26215716, 9, 0.025)]
known += [(t, n + 1, 0.025) for n, t in enumerate(convert.T95)]
worst = max(abs(convert.tail(t, n) / p - 1) for t, n, p in known)
check(worst < 2e-3, "tails of Student's t", worst)

# Eight networks of a seed share an effect of that seed. An interval over 8 · 5 values would cover far less than 95 %.
random = np.random.default_rng(29)
hits, draws = 0, 4000
for _ in range(draws):
    gains = 0.4 + random.normal(size=(1, 5)) + random.normal(size=(8, 5))
    mean, half = convert.interval(convert.pool(gains))
    hits += abs(mean - 0.4) <= half
check(0.93 <= hits / draws <= 0.97, "the mean over networks that share the seeds is covered in 93 to 97 %", hits / draws)

# A verdict is given exactly where the p-value is below 0.05.
differ, verdicts = 0, set()
for _ in range(2000):
    gains = random.normal(size=5) + random.uniform(-3, 3)
    verdict, p = convert.decide(gains, -0.15)
    mean, half = convert.interval(gains)
    expected = "seen" if mean - half > -0.15 else "not seen" if mean + half <= -0.15 else "not decidable"
    differ += verdict != expected or (p < 0.05) != (verdict != "not decidable")
    verdicts.add(verdict)
check(not differ and len(verdicts) == 3, "a verdict is given exactly where its p-value is below 0.05", (differ, verdicts))
verdict, p = convert.decide([0.5, 0.5, 0.51, 0.5], 0)
check(verdict == "not decidable" and not p >= 0, "four seeds decide nothing", (verdict, p))
cells, p = convert.gain_cells([0.0049, 0.0051, 0.005, 0.0049, 0.0051], True, 0.15)
check(cells == ["+0.0050 (+0.0049 to +0.0051)", "seen"], "the cells of a text", cells)
cells, p = convert.gain_cells([-0.2, -0.21, -0.19, -0.2, -0.2], False, 0.15)
check(cells[1] == "not seen" and p < 0.05, "a loss beyond the margin is not passed", cells)
check(convert.gain_cells([-0.2], False, 0.15)[0] == ["-0.20", ""], "one seed has no interval", convert.gain_cells([-0.2], False, 0.15))

# 0.005 ≤ 0.05/4, 0.01 ≤ 0.05/3, 0.03 > 0.05/2
saw = convert.holm([0.01, 0.04, 0.03, 0.005, float("nan")])
check(saw == ([0, 3], 4), "Holm's correction of four values", saw)

# "Within ±1" of five values: its p-value is that of the end that is harder to exclude.
near, far = np.array([-0.1, 0.0, 0.1, 0.0, 0.0]), np.array([1.9, 2.0, 2.1, 2.0, 2.0])
edge = np.array([0.9, 1.0, 1.1, 1.0, 1.0])
words = [relus.verdict(v, -1, 1) for v in (near, far, edge, near[:4])]
check([w for w, _ in words] == ["seen", "not seen", "not decidable", "not decidable"], "verdicts of a range with two ends", words)
check(words[0][1] < 1e-3 and words[1][1] < 1e-3 and words[2][1] > 0.9 and np.isnan(words[3][1]), "p-values of a range with two ends", words)

sys.exit(bad)
