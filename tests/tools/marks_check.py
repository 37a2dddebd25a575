# SPDX-License-Identifier: MIT-0
# marks_check.py RESULTS.md: the marks of conversions in section "ReLUs a gate" follow from the figures beside them. A cell "+0.0016 ± 0.0008"
# of a row "..., 5 seeds" is a mean and half of its 95 % interval (Student's t). Inside of the margin it is ✓, outside ✗; in brackets where
# Holm's correction over the table removes it. Figures are rounded: a mark is wrong only if no values that round to them would have it.
# Rises of the cross-entropy of images decide nothing and have no marks. Prints each mark that is wrong, then how many cells were looked at.
import re, sys
from math import atan, cos, inf, pi, sqrt

T95 = {3: 4.30265, 4: 3.18245, 5: 2.77645, 6: 2.57058, 10: 2.26216}
CELL = re.compile(r"^([-+]\d+\.(\d+)) ± (\d+\.\d+)(?: (\(?[✓✗]\)?))?$")


def tail(t, freedom):
    """The probability that Student's t is above t."""
    steps, sums = 4000, [0, 0]
    for k in range(steps):
        a = (k + 0.5) * pi / 2 / steps
        sums[a >= atan(t / sqrt(freedom))] += cos(a) ** (freedom - 1)
    return 0.5 * sums[1] / sum(sums)


def decision(mean, half, seeds, low, high):
    word = "✓" if mean - half >= low and mean + half <= high else "✗" if mean + half < low or mean - half > high else ""
    error = half / T95[seeds]
    ends = [end for end in (low, high) if abs(end) < inf]
    distance = min(abs(mean - end) for end in ends)
    return word, 2 * tail(distance / error, seeds - 1) if error > 0 else float(distance == 0)


def survivors(p):
    left = set()
    for done, k in enumerate(sorted(range(len(p)), key=lambda k: p[k])):
        if p[k] > 0.05 / (len(p) - done):
            break
        left.add(k)
    return left


def tables(lines):
    """The rows of each table of the section."""
    inside, found = False, []
    for line in lines:
        if line.startswith("#"):
            inside = line.strip() == "## ReLUs a gate"
        elif inside and line.startswith("|"):
            if not found or found[-1] is None:
                found.append([])
            found[-1].append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif found and found[-1] is not None:
            found.append(None)
    return [table for table in found if table]


def check(table):
    """The marks of one table: how many cells, and what is wrong."""
    of_divergence = table[0][0].startswith("KL")
    cells, wrong, unmarked = [], [], 0
    for row in table[2:]:
        seeds = re.search(r"(\d+) seeds", row[0])
        is_image = re.search("images|Fashion-MNIST|photographs", row[0])
        for name, cell in zip(table[0], row):
            m = CELL.match(cell)
            if not m or not seeds:
                continue
            if is_image and not of_divergence:
                unmarked += 1
                if m[4]:
                    wrong.append(f"{row[0]}, {name}: a mark where none is due")
                continue
            margin = 0.2 if "R²" in row[1] else 0.002
            step = 0.5 * 10 ** -len(m[2])
            near = [decision(float(m[1]) + a * step, max(float(m[3]) + b * step, 0), int(seeds[1]), -inf if of_divergence else -margin, margin)
                    for a in (-1, 0, 1) for b in (-1, 0, 1)]
            cells.append((f"{row[0]}, {name}", m[4] or "", {w for w, _ in near}, min(p for _, p in near), max(p for _, p in near)))
    surely, perhaps = survivors([c[4] for c in cells]), survivors([c[3] for c in cells])
    for k, (name, mark, words, _, _) in enumerate(cells):
        may = {w if not w or k in surely else f"({w})" for w in words if k in surely or k not in perhaps}
        may |= {form for w in words if k in perhaps and k not in surely for form in ((w, f"({w})") if w else ("",))}
        if mark not in may:
            wrong.append(f"{name}: '{mark}', expected {' or '.join(repr(m) for m in sorted(may))}")
    return len(cells) + unmarked, wrong


def main():
    looked, wrong = 0, []
    for table in tables(open(sys.argv[1], encoding="utf-8")):
        count, other = check(table)
        looked += count
        wrong += other
    print("\n".join(wrong + [f"{looked} cells"]))
    sys.exit(1 if wrong or not looked else 0)


if __name__ == "__main__":
    main()
