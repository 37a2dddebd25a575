# SPDX-License-Identifier: MIT-0
"""relus.py: how many ReLUs a gate does a finished network need? Networks are trained until their hold-out loss stops falling, then
converted with 1, 2, 3 and 6 ReLUs in place of each gate, with and without a refit of the matrices behind them (lgelu.refit).

    make -C examples relus                      (LGELU_DATA names the folder of the data sets)
    python3 relus.py [--data FOLDER] [--table FILE] [--only EXPRESSION] [--seeds N] [--seed N] [--short] [--train] [--out FOLDER] [--svg FILE]
                     [--reluize FILE] [--steps N,N,...] [--arms EXPRESSION]

FILE is a table of numbers whose last column is the target. Rows whose data are not there are left out. For each network and seed --out
keeps the trained smooth network (.pt, and .onnx for reluize) and what was measured (.json). What is there already is not run again, so
that a training that was stopped continues, an arm that is missing is added, and conversions are run again after a .json is removed; the
table is of all that is there, and with --seeds 0 of nothing else. --arms chooses those to run by a regular expression, such as
'cold|biases|refit|tempered'.
--train only trains. --svg draws the figure. --short trains for some steps only, with few samples, to try the program. An MLP takes
seconds, a ResNet-18 some minutes, the texts of 20,000 steps half an hour each. --steps 100,400 prints another table instead: refits
with so many steps of distillation (lgelu.refit(steps=N)), and what takes the same time without them, with the divergence, or for a
regression the change in percent.

Arms, beside the smooth network:

    cold K             each gate is replaced by K ReLUs, nothing else
    biases             cold 1, then the mean error of each matrix is subtracted from its biases
    refit K            K ReLUs, and the matrices behind them are solved for again, without labels
    within             as many ReLUs in each gate as it needs: reluize --within 0.002 (FILE, and onnx_run in its folder; left out where they
                       are not built, and for regressions)
    distilled, x10     cold 1, then Adam on the smooth network's outputs, without labels, for the processor time that refit 1 took, or ten
                       times it; of two rates the one that the hold-out prefers after the shorter time
    labels             cold 1, then Adam with labels for that time, at the better of the same rates
    tempered           the smooth network itself, its logits divided by a temperature that the hold-out chooses: the control of
                       classifiers, since a better calibrated network has a lower cross-entropy and not one prediction that differs

All conversions take 4,096 training inputs of an MLP, 1,024 images of the other networks, and 256 windows of 64 characters.

The rule. What decides is, for a text, the rise of the test loss over the smooth network's: cross-entropy in nats, within ±0.002; for a
regression points of R² lost, within ±0.2; for images the divergence KL(smooth, converted), below 0.002 nats. The 95 % interval over
the seeds (Student's t) is inside: seen; outside: not seen; else not decidable. Fewer than five seeds decide nothing. Refit 1 less
biases: a fall of what decides, above 0. Holm's correction is over all of these: ✓ and ✗ are verdicts that it leaves, (✓) and (✗) those that it
removes. The margins were fixed before the first run, when images were judged by cross-entropy, too. Those runs showed that it also
measures calibration, and the divergence took its place before the later ones; six ReLUs, `within` and `tempered` are of later runs as
well. For images the rise of the cross-entropy is printed as it is, and between networks that both have the temperature of the
hold-out. Half of the 95 % interval over the test samples of one network, averaged over the seeds, says what another test set would
change, and decides nothing. Time is processor time of one thread, of the conversion with its export and its check, or of the
training, and beside it that of an epoch.

Training stops after 60 epochs at most, that of photographs, which are shifted and mirrored at random, after 24, and the networks of text
follow nanoGPT's schedule: 2,000 steps, or ten times as many."""
import argparse, copy, json, os, re, subprocess, sys, tempfile, time, warnings
from dataclasses import dataclass
from typing import Callable
import numpy as np
import torch
from torch import nn
import convert
import lgelu

warnings.filterwarnings("ignore")
here = os.path.dirname(os.path.abspath(__file__))
RATES, NATS, POINTS, SPAN = (1e-4, 1e-3), 0.002, 0.2, convert.CONTEXT
COUNTS = (1, 2, 3, 6)
ARMS = [f"cold {k}" for k in COUNTS] + ["biases"] + [f"refit {k}" for k in COUNTS] + ["distilled", "distilled x10", "labels", "within"]
ARMS.append("tempered")


# ---- data: (x, y) of training, hold-out and test ----
def divided(x, y, counts, test):
    train, held = counts
    return (x[:train], y[:train]), (x[train:train + held], y[train:train + held]), test


def sine(options):
    x = torch.rand(4096, 1, generator=torch.Generator().manual_seed(7)) * 2 * np.pi - np.pi
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


def characters(options):
    """As nanoGPT divides the text: the first nine tenths are for training, windows in their order. The last tenth is its validation part;
    here every fifth window of it is the hold-out, the others are the test."""
    token = np.fromfile(f"{options.data}/{convert.SETS['shakespeare'][2]}", np.uint8)
    token = torch.from_numpy(np.unique(token, return_inverse=True)[1].astype(np.int64))
    parts = []
    for part in token[:len(token) * 9 // 10], token[len(token) * 9 // 10:]:
        count = (len(part) - 1) // SPAN
        parts.append([part[k:k + count * SPAN].view(count, -1) for k in (0, 1)])
    (x, y), (u, v) = parts
    test = torch.arange(len(u)) % 5 < 4
    return (x, y), (u[~test], v[~test]), (u[test], v[test])


def mlp(first, second):
    def make(shape, classes, gate):
        return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), first), gate(), nn.Linear(first, second), gate(),
                             nn.Linear(second, classes))
    return make


class NanoBlock(nn.Module):
    """nanoGPT's block without biases, or Llama's: RMS norms, rotary positions, and silu(a)·b in place of gelu(a)."""
    def __init__(self, width, heads, gate, llama):
        super().__init__()
        self.heads, self.llama = heads, llama
        hidden = 8 * round(width / 3) if llama else 4 * width
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
        if not llama:
            self.norm1, self.norm2 = ScaledNorm(width), ScaledNorm(width)
        self.all, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.gate, self.down = nn.Linear(width, hidden, bias=False), gate(), nn.Linear(hidden, width, bias=False)
        if llama:
            self.open = nn.Linear(width, hidden, bias=False)
            angle = torch.arange(SPAN)[:, None] * 1e4 ** -(torch.arange(0, width // heads, 2) / (width // heads))
            self.register_buffer("cos", angle.cos().repeat(1, 2))
            self.register_buffer("sin", angle.sin().repeat(1, 2))
        self.register_buffer("later", torch.triu(torch.full((1, 1, SPAN, SPAN), float("-inf")), 1))

    def turned(self, x):
        if not self.llama:
            return x
        t, half = x.shape[2], x.shape[3] // 2
        return x * self.cos[:t] + torch.cat([-x[..., half:], x[..., :half]], -1) * self.sin[:t]

    def attention(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.all(x).split(c, 2))
        weights = self.turned(q) @ self.turned(k).transpose(-2, -1) * (c // self.heads) ** -0.5 + self.later[:, :, :t, :t]
        return self.out((torch.softmax(weights, -1) @ v).transpose(1, 2).reshape(b, t, c))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        return x + self.down(self.gate(self.open(y)) * self.up(y) if self.llama else self.gate(self.up(y)))


class ScaledNorm(nn.Module):
    """A layer norm without a bias."""
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return nn.functional.layer_norm(x, self.weight.shape, self.weight, None, 1e-5)


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * self.weight


class NanoGPT(nn.Module):
    """nanoGPT's smallest published network (4 layers, 4 heads, width 128, context 64), or a Llama of that size."""
    def __init__(self, vocabulary, gate, llama, layers=4, heads=4, width=128):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.place = None if llama else nn.Embedding(SPAN, width)
        self.layers = nn.Sequential(*(NanoBlock(width, heads, gate, llama) for _ in range(layers)))
        self.norm = RMSNorm(width) if llama else ScaledNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.normal_(p, 0, 0.02 / (2 * layers) ** 0.5 if name.endswith(("out.weight", "down.weight")) else 0.02)
        self.head.weight = self.token.weight

    def forward(self, i):
        x = self.token(i)
        if self.place is not None:
            x = x + self.place(torch.arange(i.shape[1]))
        return self.head(self.norm(self.layers(x)))


class ViT(nn.Module):
    """A vision Transformer on 16 squares, whose mean is read by the head."""
    def __init__(self, shape, classes, gate, layers=4, width=64):
        super().__init__()
        self.squares = nn.Conv2d(shape[0], width, shape[1] // 4, shape[1] // 4)
        self.place = nn.Parameter(0.02 * torch.randn(1, 16, width))
        self.layers = nn.Sequential(*(convert.Layer(width, 4, gate) for _ in range(layers)))
        for layer in self.layers:
            layer.attention.later.zero_()
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.squares(x).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.layers(x + self.place)).mean(1))


def resnet(shape, classes, gate):
    return convert.residual(shape, classes, gate, 3, 2, (16, 32, 64, 128))


def resnet64(shape, classes, gate):
    return convert.residual(shape, classes, gate, 3, 1, (64, 128, 256, 512))


def nano(llama):
    return lambda shape, vocabulary, gate: NanoGPT(vocabulary, gate, llama)


def moved(x):
    """The images, each shifted by up to four pixels and half of them mirrored."""
    height, width = x.shape[2:]
    padded, down, right = nn.functional.pad(x, (4, 4, 4, 4)), *torch.randint(0, 9, (2, len(x)))
    rows, columns = down[:, None] + torch.arange(height), right[:, None] + torch.arange(width)
    columns = torch.where(torch.rand(len(x), 1) < 0.5, columns.flip(1), columns)
    image = torch.arange(len(x))[:, None, None]
    return padded.permute(0, 2, 3, 1)[image, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2).contiguous()


@dataclass
class Network:
    """A kind of network, its data, and how it is trained."""
    kind: str                                   # the column of the figure
    title: str                                  # in the tables and the figure
    ink: str
    read: Callable                              # (training, hold-out, test) from the options
    need: str                                   # the option without which there are no data
    make: Callable                              # from the shape of an input, the number of classes and a gate
    batch: int
    rate: float
    inputs: int = 1024                          # for the refit
    gates: tuple = ("gelu", "silu")
    most: int = 60                              # epochs
    steps: int = 0                              # of nanoGPT's schedule, in place of epochs
    change: Callable = lambda x: x              # of a batch of training inputs

    @property
    def of_images(self):
        return self.kind == "Images" or self.title == "MLP, images"


NETWORKS = {
    "sine": Network("MLPs", "MLP, sin 2x", "#D55E00", sine, "", mlp(64, 64), 64, 3e-3, 4096),
    "table": Network("MLPs", "MLP, a table", "#997700", table, "table", mlp(64, 64), 64, 3e-3, 4096),
    "mlp": Network("MLPs", "MLP, images", "#0072B2", images("tiles", (9000, 1000), 2500), "", mlp(128, 64), 128, 1e-3, 4096),
    "resnetf": Network("Images", "ResNet-18, Fashion-MNIST", "#44AA99", images("fashion", (4000, 1000), 10000), "data", resnet, 64, 3e-3),
    "vitf": Network("Images", "ViT 4 x 64, Fashion-MNIST", "#CC6677", images("fashion", (4000, 1000), 10000), "data", ViT, 64, 1e-3),
    "resnet": Network("Images", "ResNet-18, photographs", "#332288", images("photographs", (9000, 1000), 5000), "data", resnet, 64, 3e-3,
                      most=24, change=moved),
    "vit": Network("Images", "ViT 4 x 64, photographs", "#882255", images("photographs", (9000, 1000), 5000), "data", ViT, 64, 1e-3,
                   most=24, change=moved),
    "gpt": Network("Text", "GPT 4 x 128, 2,000 steps", "#999933", characters, "data", nano(False), 12, 1e-3, 256, gates=("gelu",), steps=2000),
    "llama": Network("Text", "Llama-like 4 x 128, 2,000 steps", "#AA4499", characters, "data", nano(True), 12, 1e-3, 256, steps=2000),
    "gpt10": Network("Text", "GPT 4 x 128, 20,000 steps", "#117733", characters, "data", nano(False), 12, 1e-3, 256, gates=("gelu",), steps=20000),
    "llama10": Network("Text", "Llama-like 4 x 128, 20,000 steps", "#222222", characters, "data", nano(True), 12, 1e-3, 256, gates=("silu",),
                       steps=20000),
    "resnet64": Network("Images", "ResNet-18, 64 to 512 channels", "#666666", images("photographs", (9000, 1000), 5000), "data", resnet64, 64, 2e-3,
                        gates=("silu",), most=2, change=moved),
}
ROWS = [f"{name}-{gate}" for name, network in NETWORKS.items() for gate in network.gates]
LARGE = ("resnet64",)                           # only if --only names it


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


class Progress:
    """A training as it is: kept in a file each minute, and taken up from there after a stop."""
    SECONDS = 60

    def __init__(self, path, net, optimiser):
        self.path, self.net, self.optimiser, self.began = path, net, optimiser, time.process_time()
        self.values, self.seconds, self.saved = {"done": 0}, 0, time.time()
        if os.path.exists(path):
            kept = torch.load(path)
            net.load_state_dict(kept["net"])
            optimiser.load_state_dict(kept["optimiser"])
            torch.set_rng_state(kept["random"])
            self.values, self.seconds = kept["values"], kept["seconds"]

    def spent(self):
        return self.seconds + time.process_time() - self.began

    def save(self):
        if time.time() - self.saved < self.SECONDS:
            return
        torch.save({"net": self.net.state_dict(), "optimiser": self.optimiser.state_dict(), "random": torch.get_rng_state(),
                    "values": self.values, "seconds": self.spent()}, self.path + ".new")
        os.replace(self.path + ".new", self.path)
        self.saved = time.time()


def train_steps(net, part, held, network, steps, path):
    """nanoGPT's training: windows that begin anywhere, AdamW with β .9 and .99, weight decay 0.1 of matrices, a rate that rises for 100 steps
    and falls as a cosine to a tenth. An epoch is as many windows as the training part has."""
    stream = torch.cat([part[0].flatten(), part[1][-1, -1:]])
    matrices, others = ([p for p in net.parameters() if (p.dim() > 1) == big] for big in (True, False))
    optimiser = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0}], betas=(0.9, 0.99))
    state, span = Progress(path, net, optimiser), torch.arange(SPAN)
    state.values.setdefault("held", [])
    while state.values["done"] < steps:
        step = state.values["done"]
        rise_or_fall = step / 100 if step < 100 else 0.55 + 0.45 * np.cos(np.pi * (step - 100) / (steps - 100))
        for group in optimiser.param_groups:
            group["lr"] = network.rate * rise_or_fall
        net.train()
        window = torch.randint(len(stream) - SPAN, (network.batch, 1)) + span
        optimiser.zero_grad(set_to_none=True)
        losses(net(stream[window]), stream[window + 1]).mean().backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1)
        optimiser.step()
        state.values["done"] += 1
        if state.values["done"] % max(steps // 20, 1) == 0:
            state.values["held"].append(losses(outputs(net, held[0]), held[1]).mean().item())
            print(f"step {state.values['done']}: hold-out {state.values['held'][-1]:.4f}, {state.spent():.0f} s", file=sys.stderr, flush=True)
        state.save()
    epochs = steps * network.batch / len(part[0])
    return {"epochs": epochs, "epoch_seconds": state.spent() / epochs, "held": state.values["held"]}


def train(net, part, held, network, most, path):
    """Until the hold-out loss stops falling: after two epochs without a fall the best weights so far are taken, and a rate of 0.3 times
    the last one; after the third time, or `most` epochs, the best weights are the network."""
    optimiser = torch.optim.AdamW(net.parameters(), network.rate, weight_decay=0.01)
    state = Progress(path, net, optimiser)
    v = state.values
    if not v["done"]:
        v.update(best=np.inf, weights=copy.deepcopy(net.state_dict()), since=0, drops=0, held=[])
    while v["drops"] < 3 and v["done"] < most:
        net.train()
        for x, y in batches_of(*part, network.batch):
            optimiser.zero_grad(set_to_none=True)
            losses(net(network.change(x)), y).mean().backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1)
            optimiser.step()
        v["done"] += 1
        loss = losses(outputs(net, held[0]), held[1]).mean().item()
        v["held"].append(loss)
        print(f"epoch {v['done']}: hold-out {loss:.4f}, {state.spent():.0f} s", file=sys.stderr, flush=True)
        if loss < v["best"]:
            v.update(best=loss, weights=copy.deepcopy(net.state_dict()), since=0)
        else:
            v["since"] += 1
        if v["since"] == 2:
            net.load_state_dict(v["weights"])
            v.update(since=0, drops=v["drops"] + 1)
            for group in optimiser.param_groups:
                group["lr"] *= 0.3
        state.save()
    net.load_state_dict(v["weights"])
    return {"epochs": v["done"], "epoch_seconds": state.spent() / v["done"], "held": v["held"]}


def trained(row, seed, options):
    """The smooth network, from its file if it is there: (network, its data, what its training took)."""
    name, gate = row.split("-")
    network = NETWORKS[name]
    part, held, test = network.read(options)
    if options.short:
        held, test = ([v[::max(len(v) // 500, 1)] for v in pair] for pair in (held, test))
    torch.manual_seed(seed)
    is_regression = part[1].dtype == torch.float32
    net = network.make(part[0].shape[1:], 1 if is_regression else int(max(part[1].max(), test[1].max())) + 1, convert.GATES[gate])
    file = f"{options.out}/{row}-{seed}"
    if os.path.exists(file + ".pt"):
        kept = torch.load(file + ".pt")
        net.load_state_dict(kept["net"])
        return net.eval(), (part, held, test), kept["facts"]
    if network.steps:
        facts = train_steps(net, part, held, network, 20 if options.short else network.steps, file + ".part")
    else:
        facts = train(net, part, held, network, 2 if options.short else network.most, file + ".part")
    torch.onnx.export(net.eval(), test[0][:1], file + ".onnx", opset_version=17, training=torch.onnx.TrainingMode.PRESERVE,
                      input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
    torch.save({"net": net.state_dict(), "facts": facts}, file + ".new")
    os.replace(file + ".new", file + ".pt")
    if os.path.exists(file + ".part"):
        os.remove(file + ".part")
    return net, (part, held, test), facts


def tune(net, teacher, part, network, rate, seconds):
    """Adam for this processor time, towards a teacher's outputs (with the running statistics as they are), or without one towards labels."""
    net = copy.deepcopy(net)
    optimiser = torch.optim.Adam(net.parameters(), rate)
    start = time.process_time()
    while True:
        for x, y in batches_of(*part, network.batch):
            if time.process_time() - start >= seconds:
                return net
            net.train(teacher is None)
            optimiser.zero_grad(set_to_none=True)
            x = network.change(x)
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


def temperature(z, y):
    """By what logits have to be divided for the smallest cross-entropy, from 1/4 to 4: over its logarithm there is one minimum."""
    low, high, golden = np.log(0.25), np.log(4), (5 ** 0.5 - 1) / 2
    loss = lambda t: losses(z / np.exp(t), y).double().mean().item()
    while high - low > 1e-4:
        a, b = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, b) if loss(a) < loss(b) else (a, high)
    return np.exp((low + high) / 2)


def within(file, inputs, parts, program):
    """For each of the parts the outputs of the network that reluize --within writes, and its ReLUs a gate."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/data.npy", torch.cat(inputs).numpy())
        threads = {**os.environ, "OMP_NUM_THREADS": "1"}
        call = lambda *command: subprocess.run(command, env=threads, check=True, stdout=subprocess.DEVNULL)
        call(program, file, "--data", f"{folder}/data.npy", "--within", str(NATS), "-o", f"{folder}/out.onnx", "--report", f"{folder}/report.json",
             "--quiet")
        gates = [gate["relus"] for gate in json.load(open(f"{folder}/report.json"))["gates"] if gate["relus"]]

        def converted(x):
            y = []
            for part in x.split(250):
                np.save(f"{folder}/x.npy", part.numpy())
                call(os.path.join(os.path.dirname(program), "onnx_run"), f"{folder}/out.onnx", "--input", f"x={folder}/x.npy",
                     "--output", f"y={folder}/y.npy", "--threads", "1")
                y.append(torch.from_numpy(np.load(f"{folder}/y.npy")))
            return torch.cat(y)
        return [converted(x) for x in parts], np.mean(gates)


def lacking(result, options):
    """The arms that can be run and are not in the result."""
    can = {"within": os.path.exists(options.reluize) and result["classifies"], "tempered": result["classifies"]}
    return [arm for arm in ARMS if arm not in result["arms"] and can.get(arm, True) and re.search(options.arms, arm)]


def run(row, seed, options, result):
    """Trains one network, or takes it from its file, converts it in every way that is not in the result, and returns the result."""
    net, (part, held, test), facts = trained(row, seed, options)
    network, classifies = NETWORKS[row.split("-")[0]], part[1].dtype != torch.float32
    z = outputs(net, test[0])
    before = losses(z, test[1])
    spread = 1 if classifies else test[1].var(unbiased=False).item()
    inputs = list(part[0][:network.inputs // (8 if options.short else 1)].split(256))
    result = {"row": row, "seed": seed, **facts, "classifies": classifies, "loss": before.mean().item(),
              "score": 100 * (z.argmax(-1) == test[1]).double().mean().item() if classifies
              else 100 * (1 - before.mean().item() / spread), "arms": result.get("arms", {})}

    z_held = outputs(net, held[0])
    degrees = temperature(z_held, held[1]) if classifies else 1
    tempered = z / degrees

    def measure(name, w, w_held, seconds):
        rise = (losses(w, test[1]) - before).double() * (1 if classifies else 100 / spread)
        arm = {"rise": rise.mean().item(), "samples": 1.96 * rise.std().item() / len(rise) ** 0.5, "seconds": seconds}
        if classifies:
            arm["flips"] = 100 * (w.argmax(-1) != z.argmax(-1)).double().mean().item()
            arm["divergence"] = divergence(z, w).double().mean().item()
            after = losses(w / temperature(w_held, held[1]), test[1])
            arm["tempered_rise"] = (after - losses(tempered, test[1])).double().mean().item()
        result["arms"][name] = arm

    def measure_net(name, other, seconds):
        measure(name, outputs(other, test[0]), outputs(other, held[0]), seconds)

    def converted(what, relus):
        start = time.process_time()
        return lgelu.refit(copy.deepcopy(net), inputs, what=what, relus=relus), time.process_time() - start

    names = lacking(result, options)
    for name in names:
        what, _, relus = name.partition(" ")
        if what in ("cold", "biases", "refit"):
            measure_net(name, *converted("full" if what == "refit" else what, int(relus or 1)))
    if "tempered" in names:
        measure("tempered", tempered, z_held / degrees, 0)
    if "distilled" in names or "labels" in names:
        cold, _ = converted("cold", 1)
        seconds = result["arms"]["refit 1"]["seconds"]
    for name, teacher in ("distilled", net), ("labels", None):
        if name in names:
            tried = [(losses(outputs(tuned, held[0]), held[1]).mean().item(), k, tuned)
                     for k in RATES for tuned in [tune(cold, teacher, part, network, k, seconds)]]
            _, best, tuned = min(tried, key=lambda t: t[:2])
            measure_net(name, tuned, seconds)
            if teacher:
                measure_net(f"{name} x10", tune(cold, teacher, part, network, best, 10 * seconds), 10 * seconds)
    if "within" in names:
        start = os.times()
        (w, w_held), relus = within(f"{options.out}/{row}-{seed}.onnx", inputs, (test[0], held[0]), options.reluize)
        end = os.times()
        measure("within", w, w_held, end.children_user + end.children_system - start.children_user - start.children_system)
        result["arms"]["within"]["relus"] = relus
    return result


# ---- steps of distillation behind a refit ----
def print_steps(rows, counts, options):
    """Prints for each network a refit, the same with each number of steps, and what takes their time without them: a refit of more
    inputs, or steps behind a cold swap; and a refit with three ReLUs."""
    print("| network | conversion | inputs | s | divergence | flips, % |\n|---|---|---|---|---|---|")
    for row, seed in ((row, seed) for seed in range(options.seed, options.seed + options.seeds) for row in rows):
        net, (part, _, test), _ = trained(row, seed, options)
        network, most = NETWORKS[row.split("-")[0]], NETWORKS[row.split("-")[0]].inputs // (8 if options.short else 1)
        z = outputs(net, test[0])

        def measure(name, inputs, **more):
            start = time.process_time()
            classes = None if z.shape[-1] == 1 else -1
            other = lgelu.refit(copy.deepcopy(net), list(part[0][:inputs].split(network.batch)), classes=classes, **more)
            seconds = time.process_time() - start
            w = outputs(other, test[0])
            apart = 100 * (w - z).norm().item() / z.norm().item() if z.shape[-1] == 1 else divergence(z, w).double().mean().item()
            flips = 0 if z.shape[-1] == 1 else 100 * (w.argmax(-1) != z.argmax(-1)).double().mean().item()
            print(f"| {title_of(row)} | {name} | {min(inputs, len(part[0]))} | {seconds:.1f} | {apart:.5f} | {flips:.2f} |", flush=True)
            return seconds

        measure("refit", most)
        measure("refit, 3 ReLUs", most, relus=3)
        for count in counts:
            longest = measure(f"refit, {count} steps", most, steps=count)
            measure(f"cold, {count} steps", most, what="cold", steps=count)
        inputs, seconds = most, 0
        while seconds < longest and inputs < len(part[0]):
            inputs *= 2
            seconds = measure("refit", inputs)


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


def title_of(row):
    name, gate = row.split("-")
    return f"{NETWORKS[name].title}, {'GELU' if gate == 'gelu' else 'SiLU'}"


def of_arm(group, arm, key):
    return [run["arms"].get(arm, {}).get(key, np.nan) for run in group]


def is_regression(group):
    return not group[0]["classifies"]


class Findings:
    """The differences that are tested. Which verdicts Holm's correction leaves is known when all are: cells hold the number of a
    difference until then."""
    SIGNS = {"seen": "✓", "not seen": "✗", "not decidable": ""}

    def __init__(self):
        self.names, self.words, self.p = [], [], []

    def cell(self, name, values, least, most, digits):
        """A mean, half of its interval, and the place of a mark; one seed has neither. Nothing where a seed has no value."""
        if np.isnan(values).any():
            return ""
        if len(values) == 1:
            return f"{values[0]:+.{digits}f}"
        word, p = verdict(values, least, most)
        self.names.append(name)
        self.words.append(word)
        self.p.append(p)
        mean, half = convert.interval(values)
        return f"{mean:+.{digits}f} ± {half:.{digits}f}<{len(self.names) - 1}>"

    def marked(self, cell):
        """The cell with ✓ (seen) or ✗ (not seen), in brackets where Holm's correction removes the verdict."""
        survivors, _ = convert.holm(self.p)

        def mark(found):
            k = int(found[1])
            sign = self.SIGNS[self.words[k]]
            if not sign:
                return ""
            return f" {sign}" if k in survivors else f" ({sign})"
        return re.sub(r"<(\d+)>", mark, cell)

    def print(self, title, rows):
        """A table, of which the first row is the head; nothing if it has no other."""
        if len(rows) > 1:
            lines = [rows[0], ["---"] * len(rows[0])] + rows[1:]
            print(f"{title}:\n\n" + "\n".join("| " + " | ".join(self.marked(cell) for cell in row) + " |" for row in lines) + "\n")


def smooth_cell(group):
    mean = lambda key: np.mean([run[key] for run in group])
    if NETWORKS[group[0]["row"].split("-")[0]].kind == "Text":
        score = f"{mean('loss'):.4f} nats"
    else:
        score = f"{mean('score'):.2f} " + ("R²" if is_regression(group) else "%")
    return f"{score}, {mean('epochs'):.0f}"


def means(group, key, arms, digits):
    """The means of several arms in one cell; a dash where one was not run in every seed."""
    has = lambda arm: all(key in run["arms"].get(arm, {}) for run in group)
    return ", ".join(f"{np.mean(of_arm(group, arm, key)):.{digits}f}" if has(arm) else "–" for arm in arms)


def print_tables(runs):
    """A row for each network: what decides with each arm; flips, the calibration of images, what another test set would change, and
    the time."""
    findings = Findings()
    shown, refits = ["cold 1", "biases", "refit 1", "refit 2", "refit 3", "refit 6", "within"], ["refit 1", "refit 2", "refit 3", "refit 6"]
    others = ["cold 2", "cold 3", "cold 6", "distilled", "distilled x10", "labels"]
    rise, apart = ([["network", "smooth, epochs"] + shown + ["ReLUs a gate"]] for _ in range(2))
    flips, calibration = [["network"] + shown], [["network", "the smooth one, tempered"] + shown]
    more, cost = [["network"] + others + ["biases less refit 1"]], [["network", "± rise over the test samples", "s; an epoch"]]
    for row, group in runs.items():
        title, digits, margin = title_of(row), 2 if is_regression(group) else 4, POINTS if is_regression(group) else NATS
        of_images = NETWORKS[row.split("-")[0]].of_images
        key, least = ("divergence", -np.inf) if of_images else ("rise", -margin)
        cells = lambda arms: [findings.cell(f"{title}, {arm}", of_arm(group, arm, key), least, margin, digits) for arm in arms]
        seeds = "one seed" if len(group) == 1 else f"{len(group)} seeds"
        (apart if of_images else rise).append([f"{title}, {seeds}", smooth_cell(group)] + cells(shown) + [means(group, "relus", ["within"], 1)])
        gain = np.subtract(of_arm(group, "biases", key), of_arm(group, "refit 1", key))
        more.append([title] + cells(others) + [findings.cell(f"{title}, biases less refit 1", gain, 0, np.inf, digits)])
        if not is_regression(group):
            flips.append([title] + [means(group, "flips", [arm], 2) for arm in shown])
        if of_images:
            calibration.append([title, means(group, "rise", ["tempered"], 4)]
                               + [" → ".join(means(group, what, [arm], 4) for what in ("rise", "tempered_rise")) for arm in shown])
        cost.append([title, means(group, "samples", refits, digits),
                     means(group, "seconds", refits, 2) + f"; {np.mean([run['epoch_seconds'] for run in group]):.1f}"])
    findings.print("KL(smooth, converted) of images", apart)
    findings.print("Flips, %", flips)
    findings.print("Rise of the loss", rise)
    findings.print("Rise of the cross-entropy of images → the same between tempered networks", calibration)
    findings.print("Other arms, by what decides", more)
    findings.print("Refits 1, 2, 3 and 6", cost)
    print("✓, ✗: seen, not seen; in brackets where Holm's correction over all of these removes the verdict")


# ---- the figure ----
class Sheet:
    """An SVG file."""
    def __init__(self, width, height, title):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
                      "font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif\">",
                      f"<title>{title}</title>", '<rect width="100%" height="100%" fill="#FFFFFF"/>']

    def text(self, x, y, words, anchor="start", size=12, ink="#222222", weight="400"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" fill="{ink}" text-anchor="{anchor}">'
                          f"{words}</text>")

    def line(self, points, ink, width=1.5, dash=False):
        dash = ' stroke-dasharray="5 3"' if dash else ""
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline fill="none" stroke="{ink}" stroke-width="{width}"{dash} points="{points}"/>')

    def bar(self, x, a, b, ink):
        self.parts.append(f'<line x1="{x:.1f}" y1="{a:.1f}" x2="{x:.1f}" y2="{b:.1f}" stroke="{ink}" stroke-width="1.5"/>')

    def dot(self, x, y, ink):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{ink}" stroke="#FFFFFF"/>')

    def band(self, left, top, width, height):
        self.parts.append(f'<rect x="{left}" y="{top:.1f}" width="{width}" height="{height:.1f}" fill="#117733" fill-opacity="0.10"/>')

    def rule(self, left, right, y):
        self.parts.append(f'<path d="M{left} {y:.1f}H{right}" stroke="#E4E4E4"/>')

    def write(self, path):
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(path + ".part", "w") as f:
            f.write("\n".join(self.parts) + "\n</svg>\n")
        os.replace(path + ".part", path)


def rise_in_margins(group, arm):
    """The mean and its interval; that of a single seed is over the test samples."""
    unit = POINTS if is_regression(group) else NATS
    mean, low, high = interval(of_arm(group, arm, "rise"))
    if len(group) == 1:
        half = group[0]["arms"][arm]["samples"]
        low, high = mean - half, mean + half
    return mean / unit, low / unit, high / unit


def draw_panel(sheet, runs, what, left, top, width, height):
    """One kind of networks, without or with the refit. The axis is linear within a margin and logarithmic beyond."""
    place = lambda v: np.arcsinh(np.clip(v, -5, 3000))
    y = lambda v: top + height * (place(3000) - place(v)) / (place(3000) - place(-5))
    sheet.band(left, y(1), width, y(-1) - y(1))
    for v in (-1, 0, 1, 10, 100, 1000):
        sheet.rule(left, left + width, y(v))
        sheet.text(left - 6, y(v) + 4, f"{v}".replace("-", "−"), "end", 11, "#666666")
    for column, k in enumerate(COUNTS):
        sheet.text(left + width * (column + 0.5) / len(COUNTS), top + height + 16, f"{k}", "middle", 11, "#666666")
    for n, (row, group) in enumerate(runs.items()):
        name, gate = row.split("-")
        ink, points = NETWORKS[name].ink, []
        for column, k in enumerate(COUNTS):
            if np.isnan(of_arm(group, f"{what} {k}", "rise")).any():
                continue
            mean, low, high = rise_in_margins(group, f"{what} {k}")
            x = left + width * (column + 0.5) / len(COUNTS) + 5 * (n - (len(runs) - 1) / 2)
            points.append((x, y(mean)))
            sheet.bar(x, y(low), y(high), ink)
        sheet.line(points, ink, dash=gate == "silu")
        for point in points:
            sheet.dot(*point, ink)


def draw(runs, path):
    """A column of panels for each kind of networks: gates replaced, and refitted."""
    seeds = [len(group) for group in runs.values()]
    width, height, step = 190, 200, 265
    networks = [NETWORKS[name] for name in dict.fromkeys(row.split("-")[0] for row in runs)]
    kinds = list(dict.fromkeys(network.kind for network in networks))
    top = 100 + 17 * max(sum(network.kind == kind for network in networks) for kind in kinds)
    sheet = Sheet(max(62 + step * len(kinds), 740), top + 2 * height + 110, "Loss above the smooth network over ReLUs a gate")
    sheet.text(20, 30, "Loss above the smooth network by ReLUs in place of each gate", size=17, weight="600")
    sheet.text(20, 50, "One margin (green) is 0.002 nats, of regressions 0.2 points of R². Solid: GELU, dashed: SiLU.", ink="#666666")
    words = f"95 % intervals over {max(seeds)} seeds" + ("; of single networks, over the test samples" if min(seeds) == 1 < max(seeds) else "")
    sheet.text(20, 67, words, ink="#666666")
    for column, kind in enumerate(kinds):
        left = 62 + step * column
        some = {row: group for row, group in runs.items() if NETWORKS[row.split("-")[0]].kind == kind}
        sheet.text(left, 92, kind, weight="600")
        for k, network in enumerate(n for n in networks if n.kind == kind):
            sheet.text(left, 110 + 17 * k, network.title, ink=network.ink)
        for panel, (what, words) in enumerate((("cold", "gates replaced"), ("refit", "and refitted"))):
            at = top + 20 + panel * (height + 45)
            sheet.text(left, at - 8, f"{words}: rise, in margins", size=11, ink="#666666")
            draw_panel(sheet, some, what, left, at, width, height)
        sheet.text(left + width / 2, at + height + 32, "ReLUs in place of each gate", "middle", 11, "#666666")
    sheet.write(path)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", default=os.environ.get("LGELU_DATA", ""))
    p.add_argument("--table", default="")
    p.add_argument("--only", default="")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--short", action="store_true")
    p.add_argument("--train", action="store_true", help="only train, convert nothing")
    p.add_argument("--out", default=os.path.join(here, "..", "build", "relus"))
    p.add_argument("--svg", default="")
    p.add_argument("--steps", type=lambda s: [int(n) for n in s.split(",")], help="instead, a table of refits with so many steps of distillation")
    p.add_argument("--arms", default="", help="the arms to run, as a regular expression")
    p.add_argument("--reluize", default=os.path.join(here, "..", "build", "reluize"))
    options = p.parse_args()
    if not 0 <= options.seeds <= 10:
        p.error("--seeds: expected 0 to 10")
    torch.set_num_threads(1)
    os.makedirs(options.out, exist_ok=True)
    rows = [row for row in ROWS if (re.search(options.only, row) if options.only else row.split("-")[0] not in LARGE)]
    if not rows:
        sys.exit("relus.py: no row with this name; the rows are " + ", ".join(ROWS))
    if options.steps:
        return print_steps(rows, options.steps, options)
    for seed in range(options.seed, options.seed + options.seeds):
        for row in rows:
            need, path = NETWORKS[row.split("-")[0]].need, f"{options.out}/{row}-{seed}.json"
            if need and not getattr(options, need):
                continue
            result = json.load(open(path)) if os.path.exists(path) else {}
            if result and not lacking(result, options):
                continue
            if options.train:
                trained(row, seed, options)
                continue
            result = run(row, seed, options, result)
            with open(path + ".part", "w") as f:
                json.dump(result, f, indent=1)
            os.replace(path + ".part", path)
    runs = {row: [json.load(open(f"{options.out}/{row}-{seed}.json")) for seed in range(1, 100)
                  if os.path.exists(f"{options.out}/{row}-{seed}.json")] for row in rows}
    runs = {row: group for row, group in runs.items() if group}
    if options.train:
        return
    if not runs:
        sys.exit("relus.py: no result; the data are not there")
    print_tables(runs)
    if options.svg:
        draw(runs, options.svg)


if __name__ == "__main__":
    main()
