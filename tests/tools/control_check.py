# SPDX-License-Identifier: MIT-0
# control_check.py CSV JSON computes the findings of `study control` again from its CSV: which runs are good, their ranks, the intervals
# between deciles that are fitted to other tasks and seeds, and their precision and recall on the seed that was left out. It fails if a
# mean differs from that in the JSON file.
import csv
import json
import math
import sys
from collections import defaultdict

DECILES = [(low, high) for low in range(10) for high in range(low + 1, 11)]
RULES = {
    "learning rate alone": ["lr"], "early return": ["return"], "clipped fraction": ["clip_share"], "KL": ["kl"], "flips": ["flips"],
    "OUI of both": ["oui_actor", "oui_critic"], "early return and OUI": ["return", "oui_actor", "oui_critic"],
    "early return and rate": ["return", "lr"],
}


def read(path, config):
    runs = defaultdict(dict)
    tenth, last = config["epochs"] // 10, config["epochs"]
    for row in csv.DictReader(open(path)):
        run = runs[row["arm"], row["env"], float(row["lr"]), int(row["seed"])]
        if row["quantity"] == "last_100" and row["epoch"] == str(last):
            run["end"] = float(row["value"])
        elif row["epoch"] == str(tenth):
            run[row["quantity"]] = float(row["value"])
    arms = defaultdict(list)
    for (arm, task, lr, seed), run in runs.items():
        arms[arm].append(dict(run, task=task, lr=lr, seed=seed))
    return arms


def prepare(runs, at_random):
    for task in {r["task"] for r in runs}:
        mine = [r for r in runs if r["task"] == task]
        rates = sorted({r["lr"] for r in mine})
        mean = [sum(r["end"] for r in mine if r["lr"] == lr) / sum(r["lr"] == lr for r in mine) for lr in rates]
        bar = at_random[task] + 0.9 * (max(mean) - at_random[task])
        for r in mine:
            r["good"] = r["end"] >= bar
            r["best"] = r["lr"] == rates[mean.index(max(mean))]
        for signal in {s for rule in RULES.values() for s in rule}:
            for r in mine:
                own = [o[signal] for o in mine if o["seed"] == r["seed"]]
                r["own " + signal] = (2 * sum(v < r[signal] for v in own) + sum(v == r[signal] for v in own)) / (2 * len(own))
                less = sum(o[signal] < r[signal] for o in mine)
                equal = sum(o[signal] == r[signal] for o in mine)
                r["tenth " + signal] = 10 * (2 * less + equal) // (2 * len(mine))      # of the rank, rounded down


def inside(r, signal, interval):
    return interval[0] <= r["tenth " + signal] < interval[1]


RECALLS = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1]


def fit(known, rule, recall):
    need = math.ceil(recall * sum(r["good"] for r in known) - 1e-9)
    best, choice = (-1, 1), None                     # so many good runs of so many: the highest fraction, then the most

    def go(left, signals, chosen):
        nonlocal best, choice
        if sum(r["good"] for r in left) < need:
            return
        if not signals:
            right, better = sum(r["good"] for r in left), 0
            if left:
                better = right * best[1] - best[0] * len(left) or right - best[0]
            if better > 0:
                best, choice = (right, len(left)), chosen
            return
        for interval in DECILES:
            go([r for r in left if inside(r, signals[0], interval)], signals[1:], chosen + [interval])
    go(known, RULES[rule], [])
    return choice


# Returns for each seed the precision and recall, on that seed, of a rule that was fitted to one recall without it, and the precision
# of keeping all runs.
def fitted(runs, rule, same_task, recall):
    out = {}
    for seed in sorted({r["seed"] for r in runs}):
        held_all, kept = [r for r in runs if r["seed"] == seed], []
        for task in {r["task"] for r in runs}:
            choice = fit([r for r in runs if r["seed"] != seed and (r["task"] == task) == same_task], rule, recall)
            kept += [r for r in held_all if r["task"] == task and choice
                     and all(inside(r, s, i) for s, i in zip(RULES[rule], choice))]
        good = sum(r["good"] for r in held_all)
        base, right = good / len(held_all), sum(r["good"] for r in kept)
        out[seed] = (right / len(kept) if kept else base, right / good if good else None, base)
    return out


# Returns for each seed the precision interpolated between the two fits whose mean recalls on the omitted seeds enclose 0.8, and the
# precision of keeping all runs.
def precision(runs, rule, same_task):
    at = [fitted(runs, rule, same_task, recall) for recall in RECALLS]
    reached = []
    for level in at:
        known = [q[1] for q in level.values() if q[1] is not None]
        reached.append(sum(known) / len(known))
    high = 0
    while high < len(RECALLS) - 1 and reached[high] < 0.8:
        high += 1
    low, weight = max(high - 1, 0), 0
    if reached[low] >= 0.8:
        high = low
    elif reached[high] > reached[low]:
        weight = min(1, (0.8 - reached[low]) / (reached[high] - reached[low]))
    return {seed: (at[low][seed][0] + weight * (at[high][seed][0] - at[low][seed][0]), at[low][seed][2]) for seed in at[0]}


# Returns for each seed the fraction of the way from a random policy to the best mean of `relu`, as a mean over the tasks. The learning
# rate is the best one of the other half of the seeds.
def shares(runs, relu, at_random):
    out = {}
    for seed in sorted({r["seed"] for r in runs}):
        ways = []
        for task in sorted({r["task"] for r in runs}):
            ends = defaultdict(dict)
            for r in runs:
                if r["task"] == task:
                    ends[r["lr"]][r["seed"]] = r["end"]
            lr = max(sorted(ends), key=lambda k: sum(v for s, v in ends[k].items() if (s - seed) % 2))
            best = [r["end"] for r in relu if r["task"] == task and r["best"]]
            ways.append((ends[lr][seed] - at_random[task]) / (sum(best) / len(best) - at_random[task]))
        out[seed] = sum(ways) / len(ways)
    return out


def main():
    data = json.load(open(sys.argv[2]))
    arms = read(sys.argv[1], data["config"])
    # The return of a random policy is in the table of the text file next to the JSON file.
    at_random = {}
    for line in open(sys.argv[2][:-5] + ".txt"):
        if "a random policy returns" in line:
            at_random[line.split("-")[0].lower()] = float(line.split("returns ")[1].split(";")[0])
    for runs in arms.values():
        prepare(runs, at_random)
    known, compared = {}, 0

    def screened(arm, rule, same):
        if (arm, rule, same) not in known:
            known[arm, rule, same] = precision(arms[arm], rule, same)
        return known[arm, rule, same]
    for finding in data["findings"]:
        name, want, near = finding["claim"], None, 1e-6
        arm = name.split(": ")[0] if len(arms) > 1 else list(arms)[0]
        runs = arms[arm]
        if len(arms) > 1:
            name = name[len(arm) + 2:]
        if name == "return, fraction of the way, less ReLU's: median":            # what a random policy returns is known to a tenth
            a, b, near = shares(runs, arms["relu"], at_random), shares(arms["relu"], arms["relu"], at_random), 2e-3
            want = [a[s] - b[s] for s in a]
        elif name == "OUI's precision less ReLU's":
            a, b = screened(arm, "OUI of both", False), screened("relu", "OUI of both", False)
            want = [a[s][0] - b[s][0] for s in a]
        elif name.startswith("asymmetry"):
            want = [sum(r["own oui_actor"] - r["own oui_critic"] for r in g) / len(g)
                    for g in ([r for r in runs if r["seed"] == s and r["good"]] for s in {r["seed"] for r in runs}) if g]
        elif " less " in name:
            same = name.startswith("same task: ")
            a, b = (name[11:] if same else name).split(" less ")
            of = screened(arm, a, same)
            want = [of[s][0] - (of[s][1] if b == "keeping all" else screened(arm, b, same)[s][0]) for s in of]
        elif "mean rank of good runs" in name:
            signal = "oui_actor" if name.startswith("actor") else "oui_critic"
            good = [[r["own " + signal] for r in runs if r["seed"] == s and r["good"]] for s in {r["seed"] for r in runs}]
            want = [sum(g) / len(g) for g in good if g]
        elif "at its best rate" in name:
            task = name.split()[0]
            want = []
            for seed in sorted({r["seed"] for r in runs}):                 # the rate that is best on the other half of the seeds
                others = defaultdict(float)
                for r in runs:
                    if r["task"] == task:
                        others[r["lr"]] += r["end"] if (r["seed"] - seed) % 2 else 0
                lr = max(sorted(others), key=others.get)
                want += [r["end"] for r in runs if r["task"] == task and r["seed"] == seed and r["lr"] == lr]
        if want:
            want.sort()
            middle = (want[(len(want) - 1) // 2] + want[len(want) // 2]) / 2
            mean = middle if "median" in finding["claim"] else sum(want) / len(want)
            if abs(mean - finding["mean"]) > near * max(1, abs(mean)) or len(want) != finding["seeds"]:
                sys.exit("%s: %s over %s, expected %.9g over %d"
                         % (finding["claim"], finding["mean"], finding["seeds"], mean, len(want)))
            compared += 1
    if compared < 12 * len(arms):
        sys.exit("%d findings compared, expected %d or more" % (compared, 12 * len(arms)))


main()
