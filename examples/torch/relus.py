# SPDX-License-Identifier: MIT-0
"""relus.py: how many ReLUs a gate does a finished network need? Networks are trained until their hold-out loss stops falling, then
converted with 1, 2 and 3 ReLUs in place of each gate, with and without a refit of the matrices behind them (lgelu.refit).

    make -C examples relus                      (LGELU_DATA names the folder of the data sets)
    python3 relus.py [--data FOLDER] [--table FILE] [--only EXPRESSION] [--seeds N] [--seed N] [--short] [--out FOLDER] [--svg FILE]

FILE is a table of numbers whose last column is the target. Rows whose data are not there are left out. --out keeps one small file for each
network and seed; what is there already is not run again, and the table is of all that is there. --svg draws the figure. --short trains for
some steps only, to try the program.

Arms, beside the smooth network:

    cold K             each gate is replaced by K ReLUs, nothing else
    biases             cold 1, then the mean error of each matrix is subtracted from its biases
    refit K            K ReLUs, and the matrices behind them are solved for again, without labels
    distilled, x10     cold 1, then Adam on the smooth network's outputs, without labels, for the processor time that refit 1 took, or ten
                       times it; of two rates the one that the hold-out prefers after the shorter time
    labels             cold 1, then Adam with labels for that time, at the better of the same rates

The rule, fixed before the first run. What decides is the rise of the test loss over the smooth network's: cross-entropy in nats, within
±0.002; for a regression points of R² lost, within ±0.2. The 95 % interval over the seeds (Student's t) is inside: seen; outside: not
seen; else not decidable. Fewer than five seeds decide nothing. Refit 1 less biases: a fall of the loss above 0. Holm's correction is over
all of these. The column `samples` has half of the 95 % interval over the test samples of one network, the mean of the seeds: it says what
another test set would change, and decides nothing. Flips and the divergence KL(smooth, converted) are on the test samples, too. Time is
processor time of one thread, of the conversion with its export and its check, or of the training, and beside it that of an epoch."""
import argparse, copy, json, os, re, sys, time, warnings
import numpy as np
import torch
from torch import nn
import convert
import lgelu

warnings.filterwarnings("ignore")
here = os.path.dirname(os.path.abspath(__file__))
INPUTS, RATES, NATS, POINTS = 4096, (1e-4, 1e-3), 0.002, 0.2
ARMS = ["cold 1", "cold 2", "cold 3", "biases", "refit 1", "refit 2", "refit 3", "distilled", "distilled x10", "labels"]


# ---- data: (x, y) of training, hold-out and test ----
def divided(x, y, counts, test):
    train, held = counts
    return (x[:train], y[:train]), (x[train:train + held], y[train:train + held]), test


def sine(options):
    x = torch.rand(INPUTS, 1, generator=torch.Generator().manual_seed(7)) * 2 * np.pi - np.pi
    even = lambda n: (torch.arange(n).float()[:, None] + 0.5) / n * 2 * np.pi - np.pi
    return [(v, torch.sin(2 * v)) for v in (x, even(500), even(2000))]


def table(options):
    """Every row whose fields are numbers, in a fixed random order; columns of mean 0 and deviation 1 in the training part."""
    rows = []
    with open(options.table) as f:
        for line in f:
            try: rows.append([float(v) for v in re.split(r"[,;\s]+", line.strip())])
            except ValueError: pass
    v = torch.tensor(rows)[torch.randperm(len(rows), generator=torch.Generator().manual_seed(7))]
    train, held = 6 * len(v) // 10, 2 * len(v) // 10
    v = (v - v[:train].mean(0)) / v[:train].std(0)
    return divided(v[:, :-1], v[:, -1:], (train, held), (v[train + held:, :-1], v[train + held:, -1:]))


def images(name, counts, test):
    def read(options):
        _, reader, path = convert.SETS[name]
        parts, mean, std = reader(f"{options.data}/{path}" if path else os.path.join(here, "..", "pictures"))
        (x, y), (u, v) = ((convert.ready(a, mean, std), torch.from_numpy(b).long()) for a, b in parts)
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(7))
        return divided(x[order], y[order], counts, (u[:test], v[:test]))
    return read


def windows(options):
    parts, _, _ = convert.text(f"{options.data}/{convert.SETS['shakespeare'][2]}")
    (x, y), (u, v) = ((torch.from_numpy(a), torch.from_numpy(b).long()) for a, b in parts)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(7))
    return divided(x[order], y[order], (1600, 200), (u, v))


def mlp(first, second):
    def make(shape, classes, gate):
        return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), first), gate(), nn.Linear(first, second), gate(),
                             nn.Linear(second, classes))
    return make


# name: what the table calls it, colour in the figure, data, what they need, maker, batch, rate
NETWORKS = {
    "sine": ("MLP, sin 2x", "#D55E00", sine, "", mlp(64, 64), 64, 3e-3),
    "table": ("MLP, a table", "#997700", table, "table", mlp(64, 64), 64, 3e-3),
    "mlp": ("MLP, images", "#0072B2", images("tiles", (9000, 1000), 2500), "", mlp(128, 64), 128, 1e-3),
    "gpt": ("GPT 2 x 32, text", "#117733", windows, "data", convert.gpt(2, 32), 16, 3e-3),
    "cnn": ("CNN with batch norm", "#AA4499", images("fashion", (6000, 1000), 5000), "data",
            lambda s, c, g: convert.cnn(s, c, g, True), 64, 3e-3),
}
ROWS = [f"{net}-{gate}" for net in NETWORKS for gate in convert.GATES]


# ---- training and evaluation ----
def outputs(net, x):
    net.eval()
    with torch.no_grad():
        return torch.cat([net(v) for v in x.split(250)])


def losses(z, y):
    """One value for each label: cross-entropy, or the squared error."""
    if z.shape == y.shape:
        return (z - y).square().flatten()
    return nn.functional.cross_entropy(z.flatten(0, -2), y.flatten(), reduction="none")


def batches_of(x, y, size):
    order = torch.randperm(len(x))
    return ((x[k], y[k]) for k in order.split(size) if len(k) == size)


def train(net, part, held, batch, rate, short):
    """Until the hold-out loss stops falling: after two epochs without a fall the best weights so far are taken, and a rate of 0.3 times
    the last one; after the third time, or 60 epochs, the best weights are the network. Returns the epochs and the processor time of one."""
    best, weights, since, drops, epoch, start = np.inf, copy.deepcopy(net.state_dict()), 0, 0, 0, time.process_time()
    optimiser = torch.optim.AdamW(net.parameters(), rate, weight_decay=0.01)
    while drops < 3 and epoch < (2 if short else 60):
        net.train()
        for x, y in batches_of(*part, batch):
            optimiser.zero_grad(set_to_none=True)
            losses(net(x), y).mean().backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1)
            optimiser.step()
        epoch += 1
        loss = losses(outputs(net, held[0]), held[1]).mean().item()
        if loss < best:
            best, weights, since = loss, copy.deepcopy(net.state_dict()), 0
            continue
        since += 1
        if since == 2:
            net.load_state_dict(weights)
            since, drops = 0, drops + 1
            for group in optimiser.param_groups:
                group["lr"] *= 0.3
    net.load_state_dict(weights)
    return epoch, (time.process_time() - start) / epoch


def tune(net, teacher, part, batch, rate, seconds):
    """Adam for this processor time, towards a teacher's outputs (with the running statistics as they are), or without one towards labels."""
    net = copy.deepcopy(net)
    optimiser = torch.optim.Adam(net.parameters(), rate)
    start = time.process_time()
    while True:
        for x, y in batches_of(*part, batch):
            if time.process_time() - start >= seconds:
                return net
            net.train(teacher is None)
            optimiser.zero_grad(set_to_none=True)
            z = net(x)
            if teacher is None:
                loss = losses(z, y).mean()
            else:
                with torch.no_grad():
                    w = teacher(x)
                loss = divergence(w, z).mean() if w.shape != y.shape else (w - z).square().mean()
            loss.backward()
            optimiser.step()


def divergence(a, b):
    p, q = (nn.functional.log_softmax(v.flatten(0, -2), -1) for v in (a, b))
    return (p.exp() * (p - q)).sum(-1)


def run(row, seed, options):
    """Trains one network, converts it in every way, and returns what was measured."""
    net_name, gate = row.split("-")
    _, _, reader, _, maker, batch, rate = NETWORKS[net_name]
    part, held, test = reader(options)
    torch.manual_seed(seed)
    is_regression = part[1].dtype == torch.float32
    net = maker(part[0].shape[1:], 1 if is_regression else int(max(part[1].max(), test[1].max())) + 1, convert.GATES[gate])
    epochs, epoch_seconds = train(net, part, held, batch, rate, options.short)
    z = outputs(net, test[0])
    before = losses(z, test[1])
    spread = test[1].var(unbiased=False).item() if is_regression else 1
    inputs = list(part[0][:INPUTS].split(256))
    result = {"row": row, "seed": seed, "epochs": epochs, "epoch_seconds": epoch_seconds, "loss": before.mean().item(),
              "score": 100 * (1 - before.mean().item() / spread) if is_regression
              else 100 * (z.argmax(-1) == test[1]).double().mean().item(), "arms": {}}

    def measure(name, converted, seconds):
        w = outputs(converted, test[0])
        rise = (losses(w, test[1]) - before).double() * (100 / spread if is_regression else 1)
        arm = {"rise": rise.mean().item(), "samples": 1.96 * rise.std().item() / len(rise) ** 0.5, "seconds": seconds}
        if not is_regression:
            arm["flips"] = 100 * (w.argmax(-1) != z.argmax(-1)).double().mean().item()
            arm["divergence"] = divergence(z, w).double().mean().item()
        result["arms"][name] = arm

    def converted(what, relus):
        start = time.process_time()
        return lgelu.refit(copy.deepcopy(net), inputs, what=what, relus=relus), time.process_time() - start

    cold, _ = converted("cold", 1)
    for name, what, relus in [(f"cold {k}", "cold", k) for k in (1, 2, 3)] + [("biases", "biases", 1)] + \
            [(f"refit {k}", "full", k) for k in (1, 2, 3)]:
        measure(name, *converted(what, relus))
    seconds = result["arms"]["refit 1"]["seconds"]
    for name, teacher, longer in (("distilled", net, 10), ("labels", None, 0)):
        tried = [(losses(outputs(tuned, held[0]), held[1]).mean().item(), k, tuned)
                 for k in RATES for tuned in [tune(cold, teacher, part, batch, k, seconds)]]
        _, best, tuned = min(tried, key=lambda t: t[:2])
        measure(name, tuned, seconds)
        if longer:
            measure(f"{name} x{longer}", tune(cold, teacher, part, batch, best, longer * seconds), longer * seconds)
    return result


# ---- the table ----
def interval(values):
    mean, half = convert.interval(values)
    return mean, mean - half, mean + half


def verdict(values, least, most):
    """As in the study: the interval inside, outside, or neither; and the larger p-value of the two ends."""
    mean, low, high = interval(values)
    if len(values) < convert.LEAST_SEEDS:
        return "not decidable", np.nan
    error = (high - mean) / convert.T95[len(values) - 2]
    p = max(2 * convert.tail(abs(mean - end) / error, len(values) - 1) if error > 0 else float(mean == end)
            for end in (least, most) if np.isfinite(end))
    return "seen" if low >= least and high <= most else "not seen" if high < least or low > most else "not decidable", p


def print_tables(runs):
    """Prints a table of all rows and arms, and what survives the correction."""
    names, p = [], []
    print("| network | epochs | smooth | arm | rise (95 %, seeds) | verdict | ± samples | flips, % | divergence | s |\n" + "|---" * 10 + "|")
    for row, group in runs.items():
        net, gate = row.split("-")
        title = f"{NETWORKS[net][0]}, {'GELU' if gate == 'gelu' else 'SiLU'}"
        get = lambda arm, key: [r["arms"][arm].get(key, np.nan) for r in group]
        is_regression = "flips" not in group[0]["arms"]["cold 1"]
        margin, digits = (POINTS, 3) if is_regression else (NATS, 4)
        for k, arm in enumerate(ARMS):
            word, value = verdict(get(arm, "rise"), -margin, margin)
            names.append(f"{title}, {arm}")
            p.append(value)
            cells = [title, "{:.0f}".format(np.mean([r["epochs"] for r in group])), "{:.2f}".format(np.mean([r["score"] for r in group]))
                     + (" %" if not is_regression else " R²")] if not k else ["", "", ""]
            cells += [arm, "{:+.{d}f} ({:+.{d}f} to {:+.{d}f})".format(*interval(get(arm, "rise")), d=digits), word,
                      f"{np.mean(get(arm, 'samples')):.{digits}f}"]
            cells += ["", ""] if is_regression else [f"{np.mean(get(arm, 'flips')):.2f}", f"{np.mean(get(arm, 'divergence')):.5f}"]
            print("| " + " | ".join(cells + [f"{np.mean(get(arm, 'seconds')):.2f}"]) + " |")
        gain = np.subtract(get("biases", "rise"), get("refit 1", "rise"))
        word, value = verdict(gain, 0, np.inf)
        names.append(f"{title}, refit 1 less biases")
        p.append(value)
        print("| | | | biases less refit 1 | {:+.{d}f} ({:+.{d}f} to {:+.{d}f}) | {} | | | | {:.2f} an epoch |".format(
            *interval(gain), word, np.mean([r["epoch_seconds"] for r in group]), d=digits))
    survivors, tested = convert.holm(p)
    if tested:
        print(f"\n{tested} differences are tested; {len(survivors)} verdicts survive Holm's correction: "
              + "; ".join(names[k] for k in survivors))


# ---- the figure ----
def draw(runs, path):
    """The rise in margins over ReLUs a gate, without and with the refit; the axis is linear within a margin and logarithmic beyond."""
    place = lambda v: np.arcsinh(v) / np.arcsinh(1000)
    top, height, width = 96, 300, 250
    high, low = place(3000), place(-2)
    y = lambda v: top + height * (high - place(np.clip(v, -2, 3000))) / (high - low)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="800" height="470" viewBox="0 0 800 470" role="img" font-family="system-ui, '
           "-apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif\">",
           "<title>Loss above the smooth network over ReLUs a gate</title>", '<rect width="100%" height="100%" fill="#FFFFFF"/>']
    text = lambda x, y, words, anchor="start", size=12, ink="#222222", weight="": out.append(
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{ink}" text-anchor="{anchor}"{weight}>{words}</text>')
    line = lambda x1, y1, x2, y2, ink, w=1, dash="": out.append(
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{ink}" stroke-width="{w}"{dash}/>')
    most = max(len(group) for group in runs.values())
    text(24, 32, "Loss above the smooth network by ReLUs a gate", size=17, weight=' font-weight="600"')
    text(24, 53, f"{most} seeds each, 95 % intervals; solid GELU, dashed SiLU; unit: the margin, 0.002 nats or 0.2 points of R²", ink="#666666")
    for panel, (what, words) in enumerate((("cold", "gates replaced, nothing else"), ("refit", "and the matrices behind them refitted"))):
        left = 70 + panel * (width + 40)
        out.append(f'<rect x="{left}" y="{y(1):.1f}" width="{width}" height="{y(-1) - y(1):.1f}" fill="#117733" fill-opacity="0.10"/>')
        text(left, top - 12, words)
        for v in (-1, 0, 1, 10, 100, 1000):
            line(left, y(v), left + width, y(v), "#E4E4E4")
            if not panel:
                text(left - 8, y(v) + 4, f"{v}".replace("-", "−"), "end", ink="#666666")
        for k in (1, 2, 3):
            text(left + width * (k - 0.5) / 3, top + height + 18, f"{k}", "middle", ink="#666666")
        text(left + width / 2, top + height + 40, "ReLUs in place of each gate", "middle")
        for n, (row, group) in enumerate(runs.items()):
            net, gate = row.split("-")
            ink, unit = NETWORKS[net][1], NATS if "flips" in group[0]["arms"]["cold 1"] else POINTS
            dash = "" if gate == "gelu" else ' stroke-dasharray="5 3"'
            points = []
            for k in (1, 2, 3):
                mean, a, b = (v / unit for v in interval([r["arms"][f"{what} {k}"]["rise"] for r in group]))
                x = left + width * (k - 0.5) / 3 + 5 * (n - (len(runs) - 1) / 2)
                points.append(f"{x:.1f},{y(mean):.1f}")
                line(x, y(a), x, y(b), ink, 1.5)
                out.append(f'<circle cx="{x:.1f}" cy="{y(mean):.1f}" r="3" fill="{ink}" stroke="#FFFFFF"/>')
            out.append(f'<polyline fill="none" stroke="{ink}" stroke-width="1.5"{dash} points="{" ".join(points)}"/>')
    for n, net in enumerate(dict.fromkeys(row.split("-")[0] for row in runs)):
        text(70 + 2 * width + 52, top + 20 + 22 * n, NETWORKS[net][0], ink=NETWORKS[net][1])
    text(24, 458, "The green band is within the margin.", ink="#666666")
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path + ".part", "w") as f:
        f.write("\n".join(out) + "\n</svg>\n")
    os.replace(path + ".part", path)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", default=os.environ.get("LGELU_DATA", ""))
    p.add_argument("--table", default="")
    p.add_argument("--only", default="")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--short", action="store_true")
    p.add_argument("--out", default=os.path.join(here, "..", "build", "relus"))
    p.add_argument("--svg", default="")
    options = p.parse_args()
    if not 0 <= options.seeds <= 10:
        p.error("--seeds: expected 0 to 10")
    torch.set_num_threads(1)
    os.makedirs(options.out, exist_ok=True)
    rows = [row for row in ROWS if re.search(options.only, row)]
    if not rows:
        sys.exit("relus.py: no row with this name; the rows are " + ", ".join(ROWS))
    for seed in range(options.seed, options.seed + options.seeds):
        for row in rows:
            need, path = NETWORKS[row.split("-")[0]][3], f"{options.out}/{row}-{seed}.json"
            if os.path.exists(path) or (need and not getattr(options, need)):
                continue
            result = run(row, seed, options)
            with open(path + ".part", "w") as f:
                json.dump(result, f, indent=1)
            os.replace(path + ".part", path)
    runs = {row: [json.load(open(f"{options.out}/{row}-{seed}.json")) for seed in range(1, 100)
                  if os.path.exists(f"{options.out}/{row}-{seed}.json")] for row in rows}
    runs = {row: group for row, group in runs.items() if group}
    if not runs:
        sys.exit("relus.py: no result; the data are not there")
    print_tables(runs)
    if options.svg:
        draw(runs, options.svg)


if __name__ == "__main__":
    main()
