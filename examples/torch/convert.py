# SPDX-License-Identifier: MIT-0
"""convert.py: what finished networks of PyTorch lose when they become ReLU networks. Each network is trained here for a few minutes,
exported as ONNX, and converted by reluize without training or labels: a table with a row for each.

    make -C examples convert                    (LGELU_DATA names the folder of the data sets)
    python3 convert.py [--data FOLDER] [--only EXPRESSION] [--seeds N] [--seed N] [--epochs N] [--samples N] [--margin POINTS]
        [--threads N] [--short] [--out FOLDER]

FOLDER has fashion-mnist/ (IDX files), cifar10/ (batches, *.bin) and text/tinyshakespeare.txt, text/tinystories_sample.txt; a row whose
data are not there is left out. Without --data the images of this repository are used, and no text. --only chooses the rows whose name
matches a regular expression, such as 'gpt|residual'. --seeds says how many, --seed which one is first. --epochs and --samples change how
long each network is trained. --short trains for some steps only, to try the program. Columns:

    smooth to refitted     test accuracy in percent, or nats for a text; means over the seeds
    statistics             after the cold swap, with the statistics of batch norms estimated again
    gain                   of the refitted network over the smooth one; below 0 where the conversion loses
    verdict                with several seeds
    flips                  predictions that differ from the smooth network's, after the cold swap and after the refit, in percent
    refit / epoch, s       processor time of the refit, and of one epoch of training, both with --threads threads

The rule of the verdict: the gain is above -0.15 points (--margin), or above -0.005 nats. As in the study, its 95 % interval decides (Student's
t over the seeds), and fewer than five seeds decide nothing. Where there are several networks on images, or several on texts, a last row has
their mean gain: the mean over the networks is taken for each seed, so that the seed remains the unit of repetition. Holm's correction is over
all verdicts of the table.

ResNet-18 with 64 to 512 channels is in the table only if --only names it (resnet18_64): its epoch takes a quarter of an hour."""
import argparse, gzip, json, os, re, subprocess, sys, time, warnings
import numpy as np
import torch
from torch import nn
from train import pictures

warnings.filterwarnings("ignore")
here = os.path.dirname(os.path.abspath(__file__))
CONTEXT = 64
T95 = [12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.30600, 2.26216]     # Student's t, 1 to 9 degrees of freedom
LEAST_SEEDS = 5


# ---- data: (x, y) for training and for the test, as reluize reads them, and its options ----
def fashion(folder):
    def idx(name, head):
        with gzip.open(f"{folder}/{name}.gz") as f:
            return np.frombuffer(f.read(), np.uint8)[head:]
    parts = []
    for part in "train", "t10k":
        x = idx(f"{part}-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28)
        parts.append((x, idx(f"{part}-labels-idx1-ubyte", 8)))
    return parts, [0.286], [0.353]


def photographs(folder):
    parts = [], []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".bin"):
            records = np.fromfile(f"{folder}/{name}", np.uint8).reshape(-1, 3073)
            parts[name.startswith("test")].append(records)
    parts = [np.concatenate(p) for p in parts]
    return [(p[:, 1:].reshape(-1, 3, 32, 32), p[:, 0]) for p in parts], [0.491, 0.482, 0.447], [0.247, 0.243, 0.262]


def tiles(folder):
    """the images of this repository, which train.py reads as values of mean 0 and deviation 1"""
    parts = []
    for x, y in pictures(folder):
        steps = torch.unique(x)                     # four greys, 0, 85, 170 and 255
        parts.append(((torch.bucketize(x, steps) * 85).to(torch.uint8).numpy().reshape(-1, 1, 28, 28), y.numpy()))
    return parts, [0.1], [0.3]


def text(file):
    """windows of tokens, of which every fifth is for the test, and the tokens that follow"""
    token = np.fromfile(file, np.uint8)
    if token.max() < 128:
        token = np.unique(token, return_inverse=True)[1]
    count = (len(token) - 1) // CONTEXT
    x, y = (token[k:k + count * CONTEXT].reshape(count, CONTEXT).astype(np.int64) for k in (0, 1))
    test = np.arange(count) % 5 == 4
    return [(x[~test], y[~test]), (x[test][:500], y[test][:500])], None, None


SETS = {"fashion": ("Fashion-MNIST", fashion, "fashion-mnist"), "photographs": ("photographs", photographs, "cifar10"),
        "tiles": ("images of the repository", tiles, ""),
        "shakespeare": ("Shakespeare", text, "text/tinyshakespeare.txt"), "stories": ("TinyStories", text, "text/tinystories_sample.txt")}


# ---- networks ----
def conv(inputs, outputs, side, stride, normalised):
    layers = [nn.Conv2d(inputs, outputs, side, stride, side // 2, bias=not normalised)]
    return layers + [nn.BatchNorm2d(outputs)] if normalised else layers


def mlp(shape, classes, gate):
    layers, width = [nn.Flatten()], int(np.prod(shape))
    for n in 512, 256, 128:
        layers += [nn.Linear(width, n), gate()]
        width = n
    return nn.Sequential(*layers, nn.Linear(width, classes))


def cnn(shape, classes, gate, normalised=False):
    layers, inputs = [], shape[0]
    for n in 16, 32, 64:
        layers += conv(inputs, n, 3, 1, normalised) + [gate(), nn.MaxPool2d(2)]
        inputs = n
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * (shape[1] // 8) ** 2, classes))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride, gate):
        super().__init__()
        self.body = nn.Sequential(*conv(inputs, outputs, 3, stride, True), gate(), *conv(outputs, outputs, 3, 1, True))
        self.short = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.short = nn.Sequential(*conv(inputs, outputs, 1, stride, True))
        self.gate = gate()

    def forward(self, x):
        return self.gate(self.body(x) + self.short(x))


def residual(shape, classes, gate, stem=5, start=2, widths=(16, 32, 64), each=2):
    layers, inputs = conv(shape[0], widths[0], stem, start, True) + [gate()], widths[0]
    for n in widths:
        for k in range(each):
            layers.append(Block(inputs, n, 2 if not k and n != widths[0] else 1, gate))
            inputs = n
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.all, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("later", torch.triu(torch.full((1, 1, CONTEXT, CONTEXT), float("-inf")), 1))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.all(x).split(c, 2))
        weights = torch.softmax(q @ k.transpose(-2, -1) * (c // self.heads) ** -0.5 + self.later[:, :, :t, :t], -1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, c))


class Layer(nn.Module):
    def __init__(self, width, heads, gate):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(width), Attention(width, heads), nn.LayerNorm(width)
        self.body = nn.Sequential(nn.Linear(width, 4 * width), gate(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.body(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary, gate, layers, width):
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(CONTEXT, width)
        self.layers = nn.Sequential(*(Layer(width, 4, gate) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, 0, 0.02)

    def forward(self, i):
        return self.head(self.norm(self.layers(self.token(i) + self.place(torch.arange(i.shape[1])))))


def gpt(layers, width):
    return lambda shape, vocabulary, gate: GPT(vocabulary, gate, layers, width)


# name: what the table calls it, its maker, epochs, largest number of training samples, batch, rate
NETWORKS = {
    "mlp": ("MLP 784-512-256-128-10", mlp, 3, 60000, 128, 2e-3),
    "cnn": ("CNN, 3 convolutions", cnn, 3, 24000, 64, 3e-3),
    "cnn_bn": ("CNN, batch norm", lambda s, c, g: cnn(s, c, g, True), 3, 24000, 64, 3e-3),
    "residual": ("residual CNN, 6 blocks", residual, 3, 24000, 64, 5e-3),
    "resnet18": ("ResNet-18, 16 to 128 channels", lambda s, c, g: residual(s, c, g, 3, 1, (16, 32, 64, 128)), 3, 14000, 64, 5e-3),
    "resnet18_64": ("ResNet-18, 64 to 512 channels", lambda s, c, g: residual(s, c, g, 3, 1, (64, 128, 256, 512)), 1, 14000, 64, 2e-3),
    "gpt4x128": ("GPT 4 x 128", gpt(4, 128), 1, 14000, 16, 2e-3),
    "gpt8x96": ("GPT 8 x 96", gpt(8, 96), 1, 14000, 16, 2e-3),
    "gpt12x64": ("GPT 12 x 64", gpt(12, 64), 1, 14000, 16, 2e-3),
}
GATES = {"gelu": nn.GELU, "silu": nn.SiLU}
ROWS = [f"{net}-{gate}@{data}" for data, nets in (
    ("fashion", ("mlp", "cnn", "cnn_bn", "residual")), ("shakespeare", ("gpt4x128", "gpt8x96", "gpt12x64")),
    ("photographs", ("mlp", "cnn_bn", "residual", "resnet18", "resnet18_64")), ("stories", ("gpt4x128",)), ("tiles", ("mlp", "cnn_bn")))
    for net in nets for gate in GATES]


# ---- the work ----
def ready(x, mean, std):
    """Images of bytes as the network takes them; tokens as they are."""
    if mean is None:
        return torch.from_numpy(x)
    shape = (1, -1, 1, 1)
    return (torch.from_numpy(x).float() / 255 - torch.tensor(mean).view(shape)) / torch.tensor(std).view(shape)


def train(net, x, y, prepare, spec, short):
    """Trains with AdamW and a rate that rises and falls. Returns the processor time of an epoch."""
    epochs, most, batch, rate = spec
    count = min(most, len(x))
    steps = 20 if short else count // batch
    optimiser = torch.optim.AdamW(net.parameters(), rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, epochs * steps)
    start = time.process_time()
    for epoch in range(epochs):
        order = torch.randperm(count)
        for step in range(steps):
            pick = order[step * batch:][:batch].numpy()
            optimiser.zero_grad(set_to_none=True)
            z = net(prepare(x[pick]))
            nn.functional.cross_entropy(z.reshape(-1, z.shape[-1]), torch.from_numpy(y[pick]).long().reshape(-1)).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1)
            optimiser.step()
            schedule.step()
    return (time.process_time() - start) / epochs


def measure(net, x, y, prepare):
    """accuracy in percent, or nats"""
    net.eval()
    with torch.no_grad():
        z = torch.cat([net(prepare(x[k:k + 250])) for k in range(0, len(x), 250)])
    y = torch.from_numpy(y).long()
    if z.dim() == 3:
        return nn.functional.cross_entropy(z.flatten(0, 1), y.flatten()).item()
    return 100 * (z.argmax(1) == y).double().mean().item()


def convert(row, seed, options):
    """One network, from its training to reluize's report."""
    net_name, gate, data_name = re.split("[-@]", row)
    name, maker, epochs, most, *spec = NETWORKS[net_name]
    spec = [options.epochs or epochs, options.samples or most] + spec
    _, reader, path = SETS[data_name]
    path = f"{options.data}/{path}" if path else os.path.join(here, "..", "pictures")
    (train_part, test_part), mean, std = reader(path)
    torch.manual_seed(seed)
    torch.set_num_threads(options.threads)
    classes = int(max(train_part[1].max(), test_part[1].max())) + 1
    if mean is None and classes > 128:
        classes = 256
    net = maker(train_part[0].shape[1:], classes, GATES[gate])
    prepare = lambda x: ready(x, mean, std)
    epoch = train(net, *train_part, prepare, spec, options.short)
    score = measure(net, *test_part, prepare)
    file = f"{options.out}/{net_name}_{gate}_{data_name}_{seed}"
    torch.onnx.export(net, prepare(test_part[0][:1]), file + ".onnx", opset_version=17, training=torch.onnx.TrainingMode.PRESERVE,
                      input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
    command = [options.reluize, file + ".onnx", "--data", path, "-o", file + ".relu.onnx", "--report", file + ".json", "--biases", "--quiet"]
    if mean is not None:
        command += ["--mean", ",".join(map(str, mean)), "--std", ",".join(map(str, std))]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS=str(options.threads)))
    if done.returncode:
        sys.exit(f"convert.py: {row}: {done.stderr.strip().splitlines()[-1]}")
    with open(file + ".json") as f:
        report = json.load(f)
    key = "score" if mean is not None else "nats"
    if abs(report["before"][key] - score) > (0.05 if mean is not None else 1e-3):
        sys.exit(f"convert.py: {row}: PyTorch's score is {score:.4f}, reluize's {report['before'][key]:.4f}")
    scores = [report[k][key] if k in report else np.nan for k in ("before", "cold", "cold_statistics", "biases", "refitted")]
    count = len(test_part[1]) * (1 if mean is not None else CONTEXT)
    flips = [100 * report[k]["flips"] / count for k in ("cold", "refitted")]
    work = report["refitted"]["processor_seconds"]
    return scores, flips, [work, epoch]


# ---- verdicts, as in interval.h ----
def tail(t, freedom):
    """The probability that Student's t is above `t`, which is not negative: with t = √freedom · tan a its density is cos(a)^(freedom - 1)."""
    a = np.linspace(0, np.pi / 2, 20001)
    density = np.cos(a) ** (freedom - 1)
    rest = a >= np.arctan(t / freedom ** 0.5)
    return 0.5 * density[rest].sum() / density.sum()


def pool(gains):
    """One value a seed for several networks, each with a row of gains, one a seed."""
    return np.mean(gains, 0)


def interval(values):
    """The mean of one value a seed, and half of its 95 % interval; NaN for one seed."""
    v = np.asarray(values, float)
    return v.mean(), T95[len(v) - 2] * v.std(ddof=1) / len(v) ** 0.5 if len(v) > 1 else np.nan


def decide(values, least):
    """The verdict on "above `least`", and its p-value, NaN where nothing was tested."""
    mean, half = interval(values)
    if len(values) < LEAST_SEEDS:
        return "not decidable", np.nan
    error = half / T95[len(values) - 2]
    p = 2 * tail(abs(mean - least) / error, len(values) - 1) if error > 0 else float(mean == least)
    return "seen" if mean - half > least else "not seen" if mean + half <= least else "not decidable", p


def holm(p):
    """Which of these p-values survive Holm's correction at 5 %; those that are NaN were not tested."""
    tested = [k for k in np.argsort(p) if p[k] >= 0]
    survivors = []
    for done, k in enumerate(tested):
        if p[k] > 0.05 / (len(tested) - done):
            break
        survivors.append(int(k))
    return sorted(survivors), len(tested)


def gain_cells(gains, text, margin):
    """The table's cells of a gain and its verdict, and the verdict's p-value."""
    digits = 4 if text else 2
    mean, half = interval(gains)
    if len(gains) < 2:
        return [f"{mean:+.{digits}f}", ""], np.nan
    verdict, p = decide(gains, -0.005 if text else -margin)
    return [f"{mean:+.{digits}f} ({mean - half:+.{digits}f} to {mean + half:+.{digits}f})", verdict], p


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", default=os.environ.get("LGELU_DATA", ""))
    p.add_argument("--only", default="")
    p.add_argument("--seeds", type=int, default=1)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--epochs", type=int, default=0)
    p.add_argument("--samples", type=int, default=0)
    p.add_argument("--margin", type=float, default=0.15)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--short", action="store_true")
    p.add_argument("--out", default=os.path.join(here, "..", "build", "convert"))
    p.add_argument("--reluize", default=os.path.join(here, "..", "build", "reluize"))
    options = p.parse_args()
    if not 1 <= options.seeds <= 10:
        p.error("--seeds: expected 1 to 10")
    if options.epochs < 0 or not (options.samples == 0 or options.samples >= 64):
        p.error("--epochs: expected 1 or more; --samples: expected 64 or more")
    if not options.margin >= 0:
        p.error("--margin: expected 0 or more")
    os.makedirs(options.out, exist_ok=True)
    has = lambda row: os.path.exists(f"{options.data}/{SETS[row.split('@')[1]][2]}") if options.data else row.endswith("@tiles")
    rows = [row for row in ROWS if has(row) and (re.search(options.only, row) if options.only else "resnet18_64" not in row)]
    if not rows:
        sys.exit("convert.py: no row with these data and this name; the rows are " + ", ".join(ROWS))
    print("| network | data | smooth | cold swap | statistics | biases corrected | refitted | gain | verdict | flips, %, cold → refitted "
          "| refit / epoch, s |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    gains, names, p = {False: [], True: []}, [], []
    for row in rows:
        runs = [convert(row, seed, options) for seed in range(options.seed, options.seed + options.seeds)]
        scores, flips, seconds = (np.array(a) for a in zip(*runs))
        net, gate, data = re.split("[-@]", row)
        is_text = net.startswith("gpt")
        names.append(f"{NETWORKS[net][0]}, {'GELU' if gate == 'gelu' else 'SiLU'}")
        gains[is_text].append((scores[:, 4] - scores[:, 0]) * (-1 if is_text else 1))
        verdict, value = gain_cells(gains[is_text][-1], is_text, options.margin)
        p.append(value)
        cells = [names[-1], SETS[data][0]] + ["" if np.isnan(v) else f"{v:.{4 if is_text else 2}f}" for v in scores.mean(0)] + verdict
        cells += ["{:.2f} → {:.2f}".format(*flips.mean(0)), "{:.1f} / {:.1f}".format(*seconds.mean(0))]
        print("| " + " | ".join(cells) + " |", flush=True)
    for is_text, group in gains.items():
        if len(group) > 1:
            names.append(f"mean of {len(group)} networks")
            verdict, value = gain_cells(pool(group), is_text, options.margin)
            p.append(value)
            print("| " + " | ".join([names[-1]] + 6 * [""] + verdict + ["", ""]) + " |")
    survivors, tested = holm(p)
    if tested:
        print(f"\n{tested} gains are tested; {len(survivors)} verdicts survive Holm's correction: "
              + "; ".join(f"{names[k]} (p = {p[k]:.1g})" for k in survivors))


if __name__ == "__main__":
    main()
