# SPDX-License-Identifier: MIT-0
# torch_refit.py FOLDER PROGRAM: lgelu.refit on modules beside the same engine on a file that PyTorch exports with its constants
# folded (PROGRAM: tools/onnx_relu.c), and what it promises else: which gates stay and why, layers of all kinds, modules that make
# their weights, functions, errors that leave the model as it was.
import copy, inspect, pickle, subprocess, sys, threading, warnings
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
import lgelu, lgelu_refit, torch_networks

warnings.filterwarnings("ignore")
folder, program = sys.argv[1:]
torch.set_num_threads(1)
failed = 0


def verdict(good, name, why=""):
    global failed
    print(f"ok {name}" if good else f"FAIL {name}: {why}", flush=True)
    failed |= not good


def case(name):
    def run(test):
        torch.manual_seed(5)
        try:
            why = test()
            verdict(not why, name, why)
        except Exception as e:
            verdict(False, name, f"{type(e).__name__}: {(str(e).splitlines() or [''])[0]} (line {e.__traceback__.tb_next.tb_lineno})")
    return run


def outputs(net, batches):
    """All floating point outputs of the batches, one after another."""
    call = lambda b: net(**b) if isinstance(b, dict) else net(*b) if isinstance(b, tuple) else net(b)
    with torch.no_grad():
        return torch.cat([t.float().reshape(-1) for b in batches for t in lgelu_refit._tensors(call(b)) if t.is_floating_point()])


def change(net, batches, y):
    return lgelu_refit._distance(outputs(net, batches), y)


def better(net, batches, limit=0.8, gates=None, **options):
    """A reason why the refitted network is not nearer to the original than `limit` of the cold swap, or has other gates."""
    y, cold, report = outputs(net.eval(), batches), copy.deepcopy(net), []
    cold = lgelu.refit(cold, batches, what="cold")
    got = lgelu.refit(net, batches, report=report, **options)
    a, b = change(got, batches, y), change(cold, batches, y)
    if gates is not None and sum(bool(r.get("replaced")) for r in report) != gates:
        return f"{sum(bool(r.get('replaced')) for r in report)} gates replaced, expected {gates}: {report}"
    said = [r["change"] for r in report if r["kind"] == "output"]
    if len(said) == 1 and abs(said[0] - a) > 1e-3 * (1 + a): return f"the report has a change of {said[0]}, the module of {a}"
    return "" if a < limit * b else f"a change of {a:.3g}, the cold swap's {b:.3g}: {report}"


def gates_of(report):
    return {r["name"]: r for r in report if r["kind"] == "gate"}


# ---- beside the engine on a file ----
def mlp(gate): return nn.Sequential(nn.Linear(20, 48), gate, nn.Linear(48, 32), copy.deepcopy(gate), nn.Linear(32, 6))


class Residual(nn.Module):
    def __init__(self, gate):
        super().__init__()
        self.a, self.b, self.n = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.c, self.d, self.g = nn.Conv2d(8, 12, 3, 2, 1, groups=2), nn.Linear(12, 5), gate
        with torch.no_grad():
            self.n.running_mean.normal_()
            self.n.running_var.uniform_(0.5, 2)
            self.n.weight.uniform_(0.5, 1.5)

    def forward(self, x):
        x = self.g(self.a(x))
        x = self.g(self.c(self.g(x + self.n(self.b(x)))))
        return self.d(x.mean((2, 3)))


class GEGLU(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.inp, self.norm, self.wi, self.act = nn.Linear(20, dim), nn.LayerNorm(dim), nn.Linear(dim, 48), nn.GELU()
        self.wo, self.head = nn.Linear(24, dim), nn.Linear(dim, 5)

    def forward(self, x):
        x = self.inp(x)
        value, gate = self.wi(self.norm(x)).chunk(2, dim=-1)
        return self.head(x + self.wo(self.act(gate) * value))


fitted = dict(relus=1, fitted=True, line=True)
for name, make, shape, options in (
        ("mlp_silu", lambda: mlp(nn.SiLU()), (400, 20), dict(relus=1)), ("mlp_gelu_3", lambda: mlp(nn.GELU()), (400, 20), dict(relus=3)),
        ("mlp_fitted", lambda: mlp(nn.SiLU()), (400, 20), fitted), ("cnn_gelu", lambda: Residual(nn.GELU()), (96, 3, 9, 9), dict(relus=1)),
        ("geglu", GEGLU, (400, 20), dict(relus=1))):
    @case(f"{name}: the outputs of the engine on the exported file")
    def _():
        net, x = make().eval(), torch.randn(*shape)
        y = outputs(net, [x])
        torch.onnx.export(net, x[:2], f"{folder}/{name}.onnx", opset_version=16, input_names=["x"], output_names=["y"],
                          dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
        np.save(f"{folder}/{name}.npy", x.numpy())
        words = [w for key, value in options.items() for w in ["--" + key] + ([] if value is True else [str(value)])]
        job = subprocess.run([program, f"{folder}/{name}.onnx", f"{folder}/{name}.relu.onnx", f"x={folder}/{name}.npy", *words],
                             capture_output=True, text=True)
        if job.returncode: return job.stderr
        got = lgelu.refit(net, x.split(32), **options, rows=2 ** 30 if name == "cnn_gelu" else 0)
        with lgelu_refit._File(open(f"{folder}/{name}.relu.onnx", "rb").read()) as file:
            theirs, = file.values(["x"], [x], ["y"])
        mine, them = change(got, [x], y), lgelu_refit._distance(theirs.reshape(-1), y)
        if options == fitted and not all(isinstance(net[k], lgelu_refit.Relus) and net[k].line is not None for k in (1, 3)): return f"no line: {net}"
        if got is not net or any(isinstance(m, (nn.GELU, nn.SiLU)) for m in net.modules()): return "a smooth gate is left"
        return "" if mine < 1.05 * them + 1e-4 else f"a change of {mine:.4g}, the file's {them:.4g}"

# ---- networks after Hugging Face ----
for name in torch_networks.networks:
    @case(f"{name}: in one call, nearer than the cold swap, and nearer still with three ReLUs a gate")
    def _():
        net, batches = torch_networks.make(name)
        y, apart = outputs(net, batches), {}
        for what, relus in ("cold", 1), ("full", 1), ("full", 3):
            other, report = copy.deepcopy(net), []
            if lgelu.refit(other, batches, what=what, relus=relus, report=report) is not other: return "not in place"
            left = [m for m in other.modules() if type(m).__name__ in ("NewGELUActivation", "QuickGELUActivation", "SiLU")
                    or getattr(m, "act", None) is F.gelu]
            if left: return f"{len(left)} gates are left: {[r for r in report if r['kind'] == 'gate']}"
            apart[what, relus] = change(other, batches, y)
        print(f"# {name}: " + ", ".join(f"{k[0]} {k[1]}: {v:.3g}" for k, v in apart.items()))
        good = apart["full", 1] < 0.8 * apart["cold", 1] and apart["full", 3] < 0.7 * apart["full", 1]
        return "" if good else str(apart)

# ---- which gates stay ----
@case("a Softplus that is an output stays, and the report says why")
def _():
    net, x, report = nn.Sequential(nn.Linear(20, 30), nn.GELU(), nn.Linear(30, 4), nn.Softplus()), torch.randn(200, 20), []
    lgelu.refit(net, x.split(50), report=report)
    stays = [g for g in gates_of(report).values() if g["function"] == "Softplus"]
    return "" if isinstance(net[3], nn.Softplus) and isinstance(net[1], nn.ReLU) and stays and "output" in stays[0]["why"] else str(report)

@case("tanh stays with a reason; Hardswish, ELU and a custom gate are replaced")
def _():
    class Custom(nn.Module):
        def forward(self, x): return x * torch.sigmoid(1.3 * x) * 1.7
    net = nn.Sequential(nn.Linear(20, 30), nn.Hardswish(), nn.Linear(30, 30), nn.Tanh(), nn.Linear(30, 30), Custom(), nn.Linear(30, 30),
                        nn.ELU(), nn.Linear(30, 4))
    x, report = torch.randn(300, 20), []
    lgelu.refit(net, x.split(50), report=report)
    kinds = [type(m).__name__ for m in net][1::2]
    of = gates_of(report)
    good = kinds[1] == "Tanh" and all(k in ("ReLU", "Relus") for k in (kinds[0], kinds[2], kinds[3])) and of["3"]["why"] \
        and [of[k]["function"] for k in "1357"] == ["Hardswish", "tanh", "Custom", "ELU"]
    return "" if good else f"{kinds}, {report}"

class Auxiliary(nn.Module):
    """Gates that are no gate of its file: of a head that is called in training alone, of a constant, and one that tanh follows."""

    def __init__(self):
        super().__init__()
        self.first, self.gate, self.second, self.head, self.last = nn.Linear(20, 30), Squareplus(), nn.Linear(30, 30), nn.Linear(30, 5), nn.Softplus()
        self.more, self.of_constant, self.constant = nn.Sequential(nn.Linear(30, 5), nn.SiLU()), nn.GELU(), nn.Parameter(torch.randn(30))
        self.inside, self.bounded = nn.ELU(), nn.Tanh()

    def forward(self, x):
        x = self.second(self.gate(self.first(x))) + self.of_constant(self.constant)
        y = self.last(self.head(self.bounded(self.inside(x))))
        return (y, self.more(x)) if self.training else y

class Squareplus(nn.Module):
    def forward(self, x): return (x + (x * x + 1).sqrt()) / 2

@case("each gate is in the report by its module: a custom one, one of a head that is not called, of a constant, inside another")
def _():
    net, report = Auxiliary(), []
    lgelu.refit(net, torch.randn(200, 20).split(50), report=report)
    of = gates_of(report)
    if not of["gate"]["replaced"] or of["gate"]["function"] != "Squareplus": return str(of["gate"])
    reasons = {"last": "it is an output of the model", "/model/bounded/Tanh": "saturates", "more.1": "not called", "of_constant": "do not depend on the inputs",
               "inside": "part of a gate with what follows"}
    wrong = [r for name, r in of.items() if name != "gate" and (r["replaced"] or reasons[name] not in r["why"])]
    return "" if len(of) == 6 and not wrong else str(wrong or of)

@case("nn.TransformerEncoder with \"gelu\", in training's path and in the fast one")
def _():
    layer = nn.TransformerEncoderLayer(12, 3, 24, dropout=0.0, activation="gelu", batch_first=True)
    net, x = nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Linear(12, 4)).eval(), torch.randn(64, 7, 12)
    why = better(net, x.split(16), gates=2)
    slow = net(x).detach()
    return why or ("" if lgelu_refit._distance(outputs(net, [x]), slow.reshape(-1)) < 1e-4 else "the fast path computes something else")

@case("a λ-GELU is a gate like others")
def _():
    return better(mlp(lgelu.LambdaGELU(1.5)), torch.randn(300, 20).split(50), gates=2)

# ---- layers of all kinds ----
class Named(nn.Linear):
    def forward(self, x): return super().forward(x) * 1.0

class Unpacked(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.act, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.GELU(), nn.Linear(8, 5)
    def forward(self, x):
        b, c, _, _ = x.size()
        x = self.act(self.a(x))
        return self.b(x.view(b, 8, -1).transpose(1, 2)).mean(1)

def parametrized():
    net = mlp(nn.GELU())
    nn.utils.weight_norm(net[2])
    nn.utils.spectral_norm(net[4])
    return net

class Orthogonal(nn.Module):
    def forward(self, w): return w - w.mean()

def parametrized_new():
    net = mlp(nn.GELU())
    nn.utils.parametrize.register_parametrization(net[2], "weight", Orthogonal())
    return net

for name, make, shape in (
        ("Conv1d with padding='same', even and odd", lambda: nn.Sequential(nn.Conv1d(3, 8, 3, padding="same"), nn.SiLU(), nn.Conv1d(
            8, 6, 4, padding="same"), nn.SiLU(), nn.Conv1d(6, 4, 3)), (48, 3, 20)),
        ("Conv3d", lambda: nn.Sequential(nn.Conv3d(1, 6, 3), nn.SiLU(), nn.Conv3d(6, 4, 3, groups=2)), (32, 1, 6, 6, 6)),
        ("transposed convolutions", lambda: nn.Sequential(nn.ConvTranspose2d(3, 8, 3, 2), nn.SiLU(), nn.ConvTranspose2d(8, 4, 4, 2, 1)),
         (32, 3, 5, 5)),
        ("a subclass of Linear", lambda: nn.Sequential(nn.Linear(20, 30), nn.SiLU(), Named(30, 6)), (300, 20)),
        ("a Linear without biases gets some", lambda: nn.Sequential(nn.Linear(20, 30), nn.SiLU(), nn.Linear(30, 6, bias=False)), (300, 20)),
        ("sizes that are unpacked", Unpacked, (64, 3, 6, 6)),
        ("weight_norm and spectral_norm", parametrized, (300, 20)), ("a parametrization", parametrized_new, (300, 20)),
        ("one gate in several places", lambda: Residual(nn.GELU()), (64, 3, 9, 9))):
    @case(f"{name}: nearer than the cold swap")
    def _():
        net, x = make(), torch.randn(*shape)
        why, twice = better(net, x.split(16)), None
        if why: return why
        twice = outputs(net, [x])
        net.train()
        net.eval()
        if any(True for m in net.modules() if nn.utils.parametrize.is_parametrized(m) or m._forward_pre_hooks): return "hooks are left"
        return "" if torch.equal(outputs(net, [x]), twice) else "another forward computes something else"

# ---- types, steps, files, functions ----
class Forward(nn.Module):
    """A network with a forward of its own."""

    def __init__(self, forward):
        super().__init__()
        self.net, self.count, self.function = mlp(nn.GELU()), 0, forward

    def forward(self, *args): return self.function(self, *args)


for kind in torch.float64, torch.bfloat16, torch.float16:
    @case(f"a model in {kind}: converted in float, its weights in its own type")
    def _():
        net, x = mlp(nn.SiLU()), torch.randn(300, 20)
        y, cold = outputs(net, [x]), lgelu.refit(copy.deepcopy(net), x.split(50), what="cold")
        got = lgelu.refit(net.to(kind), x.to(kind).split(50))
        if any(p.dtype != kind for p in got.parameters()): return "another type"
        return "" if change(copy.deepcopy(got).float(), [x], y) < 0.8 * change(cold, [x], y) else "not nearer"

@case("steps of distillation come nearer, without labels")
def _():
    net, x, report = mlp(nn.SiLU()), torch.randn(400, 20), []
    y, plain = outputs(net, [x]), lgelu.refit(copy.deepcopy(net), x.split(50))
    lgelu.refit(net, x.split(50), steps=100, lr=1e-3, report=report)
    a, b = change(net, [x], y), change(plain, [x], y)
    return "" if a < b and any(r["kind"] == "distillation" and r["after"] < r["before"] for r in report) else f"{a:.3g}, without {b:.3g}"

class Block(nn.Module):
    """A block of a ResNet. With `shared` one module is both of its gates, as most people write it."""
    def __init__(self, width, gate, shared):
        super().__init__()
        self.a, self.b = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.norm1, self.norm2, self.act = nn.BatchNorm2d(width), nn.BatchNorm2d(width), gate()
        self.last = self.act if shared else gate()

    def forward(self, x): return self.last(self.norm2(self.b(self.act(self.norm1(self.a(x))))) + x)

class Acts(Block):
    """The same by one name."""
    def forward(self, x): return self.act(self.norm2(self.b(self.act(self.norm1(self.a(x))))) + x)

def resnet(kind, shared): return nn.Sequential(nn.Conv2d(3, 6, 3), kind(6, nn.SiLU, shared), kind(6, nn.SiLU, shared), nn.Conv2d(6, 4, 3)).eval()

class Calls(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(20, 30), nn.Linear(30, 4)
    def forward(self, x): return self.b(F.gelu(self.a(x)))

def far(y, t, variance=None): return float((y - t).square().mean() / (t.var(unbiased=False) if variance is None else variance))

def variances_of(teacher, batches, gates):
    """Those of what the gates read, over all of these batches."""
    return [torch.cat(of).var(unbiased=False) for of in zip(*(reads_of(teacher, [x], gates)[1] for x in batches))]

def reads_of(net, inputs, gates):
    """What a network makes, and what these modules of it read."""
    read, hooks = [], [g.register_forward_pre_hook(lambda m, args: read.append(args[0].clone())) for g in gates]
    with torch.no_grad(): y = net(*inputs)
    for h in hooks: h.remove()
    return y, read

def losses(net, teacher, batches, learned):
    """Of an mlp: the squares of the outputs over their variance, and those of what its gates read over that in the batches `learned`,
    the means over the batches."""
    outputs, inside, (first, second) = 0, 0, variances_of(teacher, learned, [teacher[1], teacher[3]])
    for x in batches:
        (y, a), (t, b) = reads_of(net, [x], [net[1], net[3]]), reads_of(teacher, [x], [teacher[1], teacher[3]])
        outputs += far(y, t) / len(batches)
        inside += (far(a[0], b[0], first) + far(a[1], b[1], second)) / 2 / len(batches)
    return outputs, inside

def lost(net, teacher, batches, learned): return sum(losses(net, teacher, batches, learned))

def distilled(net, batches, **options):
    """A refitted copy, and the entry of its distillation."""
    report = []
    got = lgelu.refit(copy.deepcopy(net), batches, report=report, **options)
    entry, = [r for r in report if r["kind"] == "distillation"]
    return got, entry

def same_state(a, b): return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values()))

@case("the held-out share decides: what is kept is the best state on the last eighth of the batches, at worst the closed form of the others")
def _():
    net, good, seen = mlp(nn.SiLU()), list(torch.randn(400, 20).split(25)), []
    bad = [0.05 * x for x in good[:14]] + good[14:]                           # steps on these lead away from the last two
    for batches, steps, lr in (good, 40, 1e-4), (good, 40, 1e-3), (bad, 40, 1e-3), (good, 40, 1e9), (good, 1, 1e-4):
        plain, held = lgelu.refit(copy.deepcopy(net), batches[:14]), batches[14:]
        got, entry = distilled(net, batches, steps=steps, lr=lr)
        seen.append(entry["step"])
        if abs(entry["after"] - lost(got, net, held, batches[:14])) > 1e-4 or entry["name"] != "the last 2 of 16 batches":
            return f"{entry}, the module has {lost(got, net, held, batches[:14])}"
        if abs(entry["before"] - lost(plain, net, held, batches[:14])) > 1e-4 or entry["after"] > entry["before"]: return str(entry)
        if same_state(got, plain) != (entry["step"] == 0): return f"{entry}, and the weights are not those of this step"
    return "" if seen[2] == seen[3] == 0 and seen[0] and seen[1] else f"the best states are those of steps {seen}"

@case("a rate that is not given follows from how far the start is from the original")
def _():
    net, batches, rates = mlp(nn.SiLU()), list(torch.randn(400, 20).split(25)), []
    for options in dict(relus=3), dict(what="cold"):
        plain = lgelu.refit(copy.deepcopy(net), batches[:14], **options)
        _, entry = distilled(net, batches, steps=40, **options)
        _, inside = losses(plain, net, batches[14:], batches[:14])
        rates.append(min(max(inside ** 0.5 / 30, 3e-4), 3e-3))
        if abs(entry["lr"] / rates[-1] - 1) > 1e-3: return f"{entry}, not {rates[-1]}"
    if entry["after"] >= entry["before"]: return f"nothing is gained behind a cold swap: {entry}"
    return "" if 3e-4 < rates[0] < rates[1] <= 3e-3 else f"the rates {rates} are not what this case is for"

@case("steps of a model whose outputs are -inf in places, by squares and as classes")
def _():
    x = torch.randn(800, 20)
    net = Forward(lambda m, x: m.net(x).masked_fill(torch.arange(6) > 3, -float("inf")))
    net.net[0].weight.data.mul_(4)
    for options in dict(), dict(classes=-1):
        _, entry = distilled(net, x.split(25), steps=100, lr=1e-4, **options)
        if not entry["after"] < entry["before"] < 1: return str(entry)

@case("steps of a classifier: the divergence of logits, of probabilities and of their logarithms is one and the same")
def _():
    x, seen = torch.randn(400, 20), []
    for last in lambda y: y, lambda y: y.softmax(-1), lambda y: y.log_softmax(-1):
        torch.manual_seed(3)
        net = Forward(lambda m, x, last=last: (last(y := m.net(x)), y[:, :2]))
        net.net[4].weight.data.mul_(6)
        got, entry = distilled(net, x.split(25), steps=30, lr=3e-4, classes=1)
        now, then = got.net(x[350:]).log_softmax(-1), net.net(x[350:]).log_softmax(-1)
        expected = float((then.exp() * (then - now)).sum(-1).mean())
        first, second = variances_of(net.net, x[:350].split(25), [net.net[1], net.net[3]])
        for z in x[350:].split(25):
            (y, a), (t, b) = (reads_of(n.net, [z], [n.net[1], n.net[3]]) for n in (got, net))
            expected += (far(y[:, :2], t[:, :2]) + (far(a[0], b[0], first) + far(a[1], b[1], second)) / 2) / 2
        if abs(entry["after"] / expected - 1) > 1e-3 or not entry["after"] < entry["before"]: return f"{entry}, expected {expected}"
        seen.append(entry["after"])
    return "" if max(seen) < 1.001 * min(seen) else str(seen)

@case("steps: what the gates read is a target, too, and Relus learn; the loss is the sum of both")
def _():
    net, x = resnet(Acts, True), torch.randn(64, 3, 7, 7)
    kept, entry = lgelu_refit._Distillation.losses, []
    def losses(job, tensors):
        outputs, inside = kept(job, tensors)
        nets = job.student.model, job.teacher.model
        (y, a), (t, b) = (reads_of(n, tensors, [n[1].act, n[2].act]) for n in nets)
        entry.append((float(outputs), far(y, t), float(inside), sum(far(*of) for of in zip(a, b, variances)) / len(a), len(a)))
        return outputs, inside
    variances = variances_of(net, x[:56].split(8), [net[1].act, net[2].act])
    lgelu_refit._Distillation.losses = losses
    try: got, told = distilled(net, x.split(8), steps=20, lr=1e-4, relus=2)
    finally: lgelu_refit._Distillation.losses = kept
    wrong = [e for e in entry if abs(e[0] / e[1] - 1) > 1e-4 or abs(e[2] / e[3] - 1) > 1e-4 or e[4] != 4]
    if wrong or len(entry) != 41 or told["step"] == 0: return f"{told}: {wrong or len(entry)}"
    if abs(told["before"] - entry[0][0] - entry[0][2]) > 1e-6: return f"{told}: the first loss is no sum of {entry[0]}"
    before = lgelu.refit(net, x[:56].split(8), relus=2)
    if torch.equal(before[1].act[0].kink, got[1].act[0].kink): return "a kink has not moved"
    return "" if not any(b.requires_grad for b in got.buffers()) else "a kink has a gradient"

@case("steps: each weight moves as a multiple of the norm of its output channel, so that scaled layers train alike")
def _():
    x = torch.randn(400, 20)
    def made(scale):
        torch.manual_seed(3)
        net = nn.Sequential(nn.Linear(20, 48), nn.SiLU(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 6))
        with torch.no_grad():
            for p in net[2].parameters(): p.mul_(scale)
            net[4].weight.div_(scale)
        return net
    a, b = (distilled(made(scale), x.split(25), steps=60, lr=2e-4) for scale in (1, 8))
    moved = lgelu.refit(made(1), x[:350].split(25))
    if torch.equal(moved[2].weight, a[0][2].weight) or not a[1]["step"]: return "the weights have not moved"
    apart = lgelu_refit._distance(b[0](x), a[0](x)) / lgelu_refit._distance(moved(x), a[0](x))
    for p, axis, size in ((nn.Conv2d(4, 6, 3).weight, 0, (6, 1, 1, 1)), (nn.ConvTranspose2d(4, 6, 3).weight, 1, (1, 6, 1, 1))):
        if lgelu_refit._scale(p, axis).shape != size: return str(lgelu_refit._scale(p, axis).shape)
    zero = torch.zeros(2, 3)
    zero[0] = 3
    if not torch.allclose(lgelu_refit._scale(zero, 0), torch.tensor([[27 ** 0.5], [4.5 ** 0.5]])): return str(lgelu_refit._scale(zero, 0))
    return "" if apart < 0.2 else f"{apart} of the way apart"

def of_rows(m, x):
    """What distillation makes of a layer that has read x."""
    w = lgelu_refit._Whitened(m)
    hook = m.register_forward_hook(w.add)
    y = m(x)
    hook.remove()
    return w, y

@case("steps along whitened gradients: a quadratic is reached in one, of a Linear and of convolutions; the deviations are those of the outputs")
def _():
    mixed = torch.randn(400, 12).double() @ torch.diag(torch.logspace(-2, 0, 12).double()) + 1
    layers = ((nn.Linear(12, 5), mixed), (nn.Linear(12, 5, bias=False), mixed.reshape(4, 100, 12)),
              (nn.Conv2d(6, 4, (3, 2), stride=(2, 1), padding=(2, 1), dilation=(2, 1), groups=2), torch.randn(4, 6, 9, 8)),
              (nn.Conv2d(4, 4, 3, groups=4), torch.randn(4, 9, 9)), (nn.Conv1d(6, 4, 3, stride=2, padding=1, dilation=2), torch.randn(9, 6, 9)))
    for m, x in layers:
        m, x = m.double(), x.double()
        aim = copy.deepcopy(m)
        for p in aim.parameters(): p.data.add_(torch.randn_like(p))
        w, y = of_rows(m, x)
        (0.5 * (y - aim(x)).square().sum() * len(m.weight) / y.numel()).backward()
        w.invert(0)
        with torch.no_grad():
            g, wanted = w.matrix([p.grad for p in w.weights]), w.matrix(w.weights) - w.matrix(list(aim.parameters()))
            reached, plain = (float((v - wanted).norm() / wanted.norm()) for v in (w.turned(g), g))
            y = y.movedim(-1 if isinstance(m, nn.Linear) else -m.weight.dim() + 1, -1).reshape(-1, len(m.weight))
            expected = y.square().mean(0).sqrt() if m.bias is None else y.std(0, unbiased=False)
            deviation = float((w.deviation.reshape(-1) / expected - 1).abs().max())
            before = w.matrix(w.weights)
            w.step(1e-3)                                                      # the first: its norm is that of the change of the outputs
            first = (m(x).movedim(-1 if isinstance(m, nn.Linear) else -m.weight.dim() + 1, -1).reshape(-1, len(m.weight)) - y)
            part = (first.square().mean(0).sqrt() / expected).max()
        if reached > 1e-6 or plain < 0.1 or deviation > 1e-6: return f"{m}: {reached}, the plain gradient {plain}, a deviation {deviation}"
        if not 0.0005 < part < 0.00101 or torch.equal(before, w.matrix(w.weights)): return f"{m}: a step changes an output by {part}"

@case("steps along whitened gradients: at most 512 rows of a call; which modules keep Adam")
def _():
    for m, x in ((nn.Linear(3, 2), torch.randn(9000, 3)), (nn.Conv2d(3, 2, 3), torch.randn(40, 3, 12, 12)), (nn.Conv2d(3, 2, 3), torch.randn(1, 3, 60, 60))):
        w, _ = of_rows(m, x)
        if not 400 <= w.rows < 1024: return f"{m}: {w.rows} rows"
    fits, tied = lgelu_refit._Whitened.fits, nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4))
    tied[2].weight = tied[0].weight
    if [w.m for w in lgelu_refit._whitened(tied)] != [tied[1]]: return "a shared weight"
    no = nn.ConvTranspose2d(3, 3, 3), nn.Linear(1536, 2), nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect"), nn.Conv3d(2, 2, 3), nn.LayerNorm(4)
    yes = nn.Linear(1536, 2, bias=False), nn.Linear(1535, 2), nn.Conv1d(4, 4, 3, groups=4)
    return "" if all(map(fits, yes)) and not any(map(fits, no)) else str([fits(m) for m in yes + no])

@case("steps behind the closed form of three ill-conditioned networks gain more than as many of Adam at the same rate")
def _():
    gains, whitened = [0, 0], lgelu_refit._whitened
    for seed in 1, 2, 3:
        torch.manual_seed(seed)
        net, x = mlp(nn.SiLU()), torch.randn(1600, 20) @ torch.randn(20, 20) @ torch.diag(torch.logspace(-2, 0, 20)) @ torch.randn(20, 20) / 4 + 0.5
        try:
            for k, found in enumerate((whitened, lambda model: [])):
                lgelu_refit._whitened = found
                _, entry = distilled(net, x.split(100), steps=100, lr=3e-3)
                gains[k] += entry["before"] - entry["after"]
        finally: lgelu_refit._whitened = whitened
    return "" if gains[0] > 1.2 * gains[1] > 0 else f"gains of {gains}"

@case("steps: the same seed gives the same bits, another one others; the global random numbers stay; augment sees copies of the batches")
def _():
    class Scaled(nn.Module):
        def __init__(self): super().__init__(); self.net = mlp(nn.SiLU())
        def forward(self, input, scale): return self.net(input) * scale
    net, seen = Scaled(), []
    batches = [dict(input=x, scale=torch.tensor(2.0)) for x in torch.randn(400, 20).split(25)]
    whole, state = copy.deepcopy(batches), torch.get_rng_state()
    a, b, c = (distilled(net, batches, steps=30, lr=1e-3, seed=s)[0] for s in (1, 1, 2))
    if not torch.equal(state, torch.get_rng_state()): return "the global random numbers moved"
    if not same_state(a, b) or same_state(a, c): return "the seed"
    def augment(batch):
        seen.append(sorted(batch))
        batch["input"].mul_(-1)
        return batch
    d, _ = distilled(net, batches, steps=30, lr=1e-3, augment=augment)
    if seen != [["input", "scale"]] * 30 or same_state(a, d): return f"augment was called {len(seen)} times"
    return "" if all(torch.equal(x["input"], y["input"]) for x, y in zip(whole, batches)) else "the batches were changed"

@case("steps on a device that is named, of a model in bfloat16 and of a graph of torch.fx")
def _():
    x = torch.randn(400, 20)
    net = mlp(nn.SiLU()).bfloat16()
    got, entry = distilled(net, x.bfloat16().split(25), steps=60, lr=2e-4, device="cpu")
    if not entry["step"] or got[0].weight.dtype != torch.bfloat16: return str(entry)
    calls, entry = distilled(Calls(), x.split(25), steps=60, lr=2e-4)
    return "" if entry["step"] and isinstance(calls, torch.fx.GraphModule) else str(entry)

class Branches(Calls):
    def forward(self, x):
        b, c = x.size()
        return super().forward(x if c == 20 and bool(x.sum() > -1e9) else x * 2)

@case("a forward that calls F.gelu: a graph is returned, the model stays as it is")
def _():
    net, x = Calls().train(), torch.randn(200, 20)
    kept, y = copy.deepcopy(net.state_dict()), outputs(net, [x])
    got = lgelu.refit(net, x.split(50))
    if not isinstance(got, torch.fx.GraphModule) or not net.training: return "no graph, or another mode"
    if any(not torch.equal(a, b) for a, b in zip(kept.values(), net.state_dict().values())): return "the model was changed"
    return "" if 0 < change(got, [x], y) < 0.3 else f"a change of {change(got, [x], y)}"

def refused(name, kind, words, call):
    try: call()
    except kind as e: verdict(words in str(e), name, str(e))
    except Exception as e: verdict(False, name, f"{type(e).__name__}: {e}")
    else: verdict(False, name, "nothing was raised")

torch.manual_seed(5)
x = torch.randn(200, 20)
refused("where it cannot be traced, the error names the function and offers the file", ValueError, "onnx=",
        lambda: lgelu.refit(Branches(), x.split(50)))

@case("onnx= writes the converted network, and the model stays as it is")
def _():
    net = Branches().eval()
    y = outputs(net, [x])
    lgelu.refit(net, x.split(50), onnx=f"{folder}/branches.onnx")
    if change(net, [x], y) > 0: return "the model was changed"
    with lgelu_refit._File(open(f"{folder}/branches.onnx", "rb").read()) as file:
        theirs, = file.values(["input_0"], [x], ["output_0"])
    return "" if 0 < lgelu_refit._distance(theirs.reshape(-1), y) < 0.3 else "not the network"

# ---- errors ----
net = mlp(nn.GELU())
kept = copy.deepcopy(net.state_dict())
refused("too few inputs", ValueError, "expected at least 8", lambda: lgelu.refit(net, [x[:7]]))
refused("values that are not finite", ValueError, "not finite", lambda: lgelu.refit(net, [x[:50], torch.full((50, 20), float("nan"))]))
refused("steps without a batch to hold out", ValueError, "two batches or more", lambda: lgelu.refit(net, [x], steps=5))
refused("augment without steps", ValueError, "augment changes the batches of steps=N", lambda: lgelu.refit(net, [x], augment=lambda b: b))
refused("classes along an axis that the output does not have", RuntimeError, "cannot be trained: IndexError", lambda: lgelu.refit(net, x.split(50), steps=5, classes=3))
refused("steps of a model that has no gradient", RuntimeError, "cannot be trained: RuntimeError: one of the variables needed for gradient",
        lambda: lgelu.refit(Forward(lambda m, x: torch.sigmoid(m.net(x)).mul_(2)), x.split(50), steps=5))
refused("no smooth gate", ValueError, "no smooth gate", lambda: lgelu.refit(nn.Linear(20, 3), [x]))
refused("another `what`", ValueError, "'cold'", lambda: lgelu.refit(net, [x], what="all"))
pruned = mlp(nn.GELU())
nn.utils.prune.l1_unstructured(pruned[2], "weight", 0.5)
refused("a pruned weight", ValueError, "layer '2'", lambda: lgelu.refit(pruned, [x]))


def counted(m, x):
    m.count += 1
    return m.net(x) * m.count


lazy = nn.Sequential(nn.LazyLinear(4), nn.GELU(), nn.Linear(4, 4))
refused("a tensor of a type that ONNX files do not have here", ValueError, "input_0 is of type torch.complex64",
        lambda: lgelu.refit(net, [x.to(torch.complex64)]))
refused("batches with labels", ValueError, "cannot be called with batch 0, whose elements are the arguments of its forward: TypeError",
        lambda: lgelu.refit(net, [(x, torch.zeros(200))]))
refused("batches with labels: what to write", ValueError, "[x for x, _ in loader]", lambda: lgelu.refit(net, [(x, torch.zeros(200))]))
refused("a report that is no list", TypeError, "report is a list, not dict", lambda: lgelu.refit(net, [x], report={}))
refused("a folder that is missing, by the name that was given", FileNotFoundError, "'nowhere/relu.onnx'",
        lambda: lgelu.refit(net, [x], onnx="nowhere/relu.onnx"))
refused("inputs of another width", ValueError, "cannot be called with batch 0", lambda: lgelu.refit(net, [x[:, :7]]))
refused("arrays in place of tensors", ValueError, "batch 0 has no tensor; it is of type ndarray", lambda: lgelu.refit(net, [x.numpy()]))
refused("batches of other kinds", ValueError, "input_0 of batch 1 has 3 dimensions", lambda: lgelu.refit(net, [x, x[None]]))
refused("batches with other numbers among their arguments", ValueError, "batch 1 has other arguments than batch 0 beside its tensors",
        lambda: lgelu.refit(Forward(lambda m, x, k: m.net(x) * k), [(x, 1.0), (x, 2.0)]))
refused("a forward that draws random numbers", ValueError, "two calls of the model with the same inputs differ",
        lambda: lgelu.refit(Forward(lambda m, x: m.net(F.dropout(x, 0.1, True))), [x]))
refused("a forward that keeps a state", ValueError, "two calls of the model with the same inputs differ", lambda: lgelu.refit(Forward(counted), [x]))
refused("sizes that the export holds as numbers", RuntimeError, "so that all batches need the same shapes",
        lambda: lgelu.refit(Forward(lambda m, x: m.net(x).view(int(x.shape[0]), 2, 3).sum(1)), x.split(48)))
refused("no tensor among the outputs", ValueError, "the model returns no tensor", lambda: lgelu.refit(Forward(lambda m, x: str(m.net(x))), [x]))
refused("other numbers of outputs", ValueError, "returns 2 tensors for batch 1, 1 for batch 0",
        lambda: lgelu.refit(Forward(lambda m, x: [m.net(x)] * (1 if len(x) == 100 else 2)), [x[:100], x[:50]]))
refused("weights without values", ValueError, "module '0': 'weight' has no values yet", lambda: lgelu.refit(lazy, [x]))
refused("what cannot be copied", ValueError, "the model cannot be copied: TypeError: cannot pickle",
        lambda: lgelu.refit(Forward(threading.Lock()), [x]))
refused("a function in place of a model", TypeError, "expected an nn.Module, found function", lambda: lgelu.refit(lambda x: x, [x]))

@case("weights that share memory are left with a reason, and weights made in inference mode are set")
def _():
    net, report = nn.Sequential(nn.Linear(20, 20), nn.GELU(), nn.Linear(20, 20), nn.GELU(), nn.Linear(20, 6)), []
    net[2].weight = nn.Parameter(net[0].weight.data)
    kept, y = net[0].weight.detach().clone(), outputs(net, [x])
    lgelu.refit(net, x.split(50), report=report)
    entry, = [r for r in report if r["name"] == "2"]
    if "shares its memory" not in entry["why"] or not torch.equal(net[0].weight, kept): return str(entry)
    if abs(report[-1]["change"] - change(net, [x], y)) > 1e-3: return f"the report has {report[-1]}"
    with torch.inference_mode(): net, batches = mlp(nn.GELU()), x.clone().split(50)
    return better(net, batches)

@case("a full refit by one ReLU a gate that leaves an output far away warns, with the change that the report has; no other one does")
def _():
    def said(scale, **options):
        net, report = nn.Sequential(nn.Linear(20, 4), nn.SiLU(), nn.Linear(4, 3)), []
        with torch.no_grad(): net[0].weight.mul_(scale), net[2].bias.zero_()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lgelu.refit(net, [x], report=report, **options)
        return [str(w.message) for w in caught], report[-1]["change"]
    (far, change), (near, little), quiet = said(0.5), said(200.0), [said(0.5, what="cold"), said(0.5, relus=3)]
    if change < 0.2 or len(far) != 1 or f"changes by {change:.2g} of" not in far[0]: return f"{change}: {far}"
    return "" if little < 0.2 and not near and not any(of[0] for of in quiet) else f"{little}: {near}, {quiet}"

def apart(forms, batches, **options):
    """The reports of networks that are written in several ways, refitted; or what differs."""
    made = []
    for net in forms:
        report = []
        got = lgelu.refit(net, batches, report=report, **options)
        made.append((outputs(got, batches), report, got))
    same = all(torch.equal(made[0][0], y) for y, _, _ in made)
    return made, "" if same else f"{options}: the outputs differ by {[change(net, batches, made[0][0]) for _, _, net in made]}"

images = torch.randn(96, 3, 7, 7)
@case("self.act called twice in a block: refitted as two modules are, to the bit; each call has its own ReLUs")
def _():
    near = {}
    for options in dict(), dict(relus=3), dict(fitted=True), dict(relus=2, line=True), dict(what="cold", relus=3):
        forms = resnet(Block, False), resnet(Block, True), resnet(Acts, True)
        for net in forms: net.load_state_dict(forms[0].state_dict())
        y = outputs(forms[0], [images])
        made, why = apart(forms, images.split(32), **options)
        if why: return why
        report, net = made[2][1:]
        if [g["calls"] for g in report if g["kind"] == "gate" and g["replaced"]] != [[1], [2], [1], [2]]: return str(report)
        kind = nn.ReLU if not options else lgelu_refit.PerCall
        if type(net[1].act) is not kind: return f"{options}: {net[1].act}"
        near[str(options)] = change(net, [images], y)
    return "" if near["{'relus': 3}"] < near["{}"] / 4 else str(near)

@case("a block that is called twice has ReLUs for each of its four calls, as four gates have")
def _():
    class Repeated(nn.Module):
        def __init__(self, gates):
            super().__init__()
            self.first, self.a, self.b, self.last = nn.Linear(20, 16), nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 4)
            self.gates = nn.ModuleList([nn.GELU() for _ in range(gates)])
        def forward(self, x):
            x = self.first(x)
            for k in range(2):
                gates = [self.gates[(2 * k + i) % len(self.gates)] for i in range(2)]
                x = x + gates[1](self.b(gates[0](self.a(x))))
            return self.last(x)
    forms = Repeated(1), Repeated(2), Repeated(4)
    for net in forms: net.load_state_dict(forms[0].state_dict())
    made, why = apart(forms, x.split(50), relus=3)
    if why: return why
    kinds = [[(type(g).__name__, len(g)) for g in net.gates if isinstance(g, nn.ModuleList)] for _, _, net in made]
    return "" if kinds == [[("PerCall", 4)], [("PerCall", 2)] * 2, []] else str(kinds)

@case("modules for each call: saved, copied, pickled, traced, exported, by torch.fx, behind a forward that failed, in part of a model")
def _():
    net, inputs = resnet(Acts, True), images[:32]
    lgelu.refit(net, images.split(32), relus=3)
    y = outputs(net, [inputs])
    loaded = copy.deepcopy(net)
    for m in loaded.modules():
        if isinstance(m, lgelu_refit.Relus): m.kink.zero_()
    loaded.load_state_dict(net.state_dict())
    forms = dict(loaded=loaded, pickled=pickle.loads(pickle.dumps(net)), traced=torch.jit.trace(net, inputs[:2]), fx=torch.fx.symbolic_trace(net),
                 inside=nn.Sequential(nn.Identity(), net))
    for name, form in forms.items():
        if not torch.allclose(outputs(form, [inputs]), y, atol=1e-6): return f"{name}: {change(form, [inputs], y)}"
    broken = net[2].b.register_forward_pre_hook(lambda m, args: 1 / 0)
    try: net(inputs)
    except ZeroDivisionError: broken.remove()
    if net[2].act.next != 1 or not torch.equal(outputs(net, [inputs]), y): return "behind a forward that failed"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.onnx.export(net, inputs, f"{folder}/per_call.onnx", input_names=["x"], output_names=["y"])
    with lgelu_refit._File(open(f"{folder}/per_call.onnx", "rb").read()) as file: written, = file.values(["x"], [inputs], ["y"])
    if not torch.allclose(written.reshape(-1), y, atol=1e-5): return "the exported file"
    return "" if not any(issubclass(w.category, torch.jit.TracerWarning) for w in caught) else f"{caught[0].message}"

@case("of a module that is called twice one call stays, as its gate is no smooth one there; hooks run once a call")
def _():
    class Half(nn.Module):
        def __init__(self, gate):
            super().__init__()
            self.a, self.b, self.act = nn.Linear(20, 48), nn.Linear(48, 6), gate
        def forward(self, x): return self.act(self.b(self.act(self.a(x))))
    for gate in nn.Softplus(), F.softplus:
        net, report, seen = Half(gate), [], []
        if isinstance(gate, nn.Module): gate.register_forward_hook(lambda m, args, y: seen.append(y.shape[1]))
        y = outputs(net, [x])
        lgelu.refit(net, x.split(50), report=report, relus=2)
        kept = [(g["calls"], g["replaced"]) for g in report if g["kind"] == "gate"]
        if kept != [([1], 2), ([2], 0)]: return str(report)
        seen.clear()
        z = net(x)
        if seen not in ([], [48, 6]) or bool(seen) != isinstance(gate, nn.Module): return f"hooks: {seen}"
        if not torch.equal(z, F.softplus(net.b(net.act[0](net.a(x))))): return f"not what it computes: {net.act}"
        if not change(net, [x], y) < 0.1: return f"a change of {change(net, [x], y)}"

@case("one tensor, or one dictionary, is one batch; inputs that the model writes to stay as they are")
def _():
    net, kept = nn.Sequential(nn.SiLU(inplace=True), *mlp(nn.SiLU())), x.clone()
    a, b = lgelu.refit(copy.deepcopy(net), x), lgelu.refit(copy.deepcopy(net), {"input": x})
    return "" if torch.equal(x, kept) and torch.equal(outputs(a, [kept.clone()]), outputs(b, [kept.clone()])) else f"{a} and {b}"

kept_relu, lgelu_refit._replacement = lgelu_refit._replacement, lambda gate, info: nn.ReLU6()
with torch.no_grad(): net[0].weight.mul_(40)
kept = copy.deepcopy(net.state_dict())
refused("a module that computes something else than the converted file", RuntimeError, "first behind gate '1'",
        lambda: lgelu.refit(net, [x]))
lgelu_refit._replacement = kept_relu
verdict(all(torch.equal(a, b) for a, b in zip(kept.values(), net.state_dict().values())) and isinstance(net[1], nn.GELU),
        "after an error the model is as it was")


# ---- a failure at any line while the model is changed ----
class Everything(nn.Module):
    """Each kind of change: weights in place and in slices, new biases, shifts of a normalisation, gates as modules and functions,
    parametrizations, parameters that are untied, a buffer, hooks, a fast path."""

    def __init__(self):
        super().__init__()
        self.first, self.act, self.norm = nn.Linear(10, 12), nn.GELU(), nn.BatchNorm1d(12)
        self.second, self.third = nn.Linear(12, 12, bias=False), nn.utils.weight_norm(nn.Linear(12, 12))
        self.fourth = nn.utils.parametrizations.orthogonal(nn.Linear(12, 12))
        self.fifth, self.kept, self.rnn = nn.Linear(12, 12, bias=False), F.silu, nn.LSTM(12, 6)
        self.layer = nn.TransformerEncoderLayer(6, 2, 12, 0.0, "gelu", batch_first=True)
        self.head, self.twin = nn.Linear(6, 6, bias=False), nn.Linear(6, 6, bias=False)
        self.twin.weight = self.head.weight
        self.register_buffer("last", torch.randn(6, 3))
        self.handles = [self.act.register_forward_hook(lambda m, args, y: None)]

    def forward(self, x):
        x = self.norm(self.second(self.act(self.first(x))))
        x = self.fifth(self.kept(self.fourth(self.kept(self.third(self.act(x))))))
        x = self.layer(self.rnn(self.kept(x)[:, None])[0])[:, 0]
        return self.kept(self.twin(self.kept(self.head(x)))) @ self.last


def everything(net):
    """All that a model is and has: its modules' types and attributes, the objects, and the elements of the tensors."""
    found = []
    for path, m in net.named_modules():
        for name, value in vars(m).items():
            inside = list(value.items()) if isinstance(value, dict) else None
            found.append((path, type(m), id(m), name, id(value), inside and [(k, id(v)) for k, v in inside]))
    return found, [t.clone() for t in net.state_dict().values()]


class Planted(BaseException):
    """A failure, or the user's interruption."""


def fail_at(line, call):
    """Calls a function that fails at one of the lines that are executed while the model is changed and checked: lines of
    lgelu_refit.py and of what removes parametrizations, and the beginning of each other function. Returns whether the line was
    reached."""
    count, files = 0, ("lgelu_refit.py", "parametrize.py", "weight_norm.py")

    def tracer(frame, event, value):
        nonlocal count
        if frame.f_code.co_flags & inspect.CO_GENERATOR: return None          # what is raised while one is closed is lost
        if event == "call" or (event == "line" and frame.f_code.co_filename.endswith(files)):
            count += 1
            if count == line:
                sys.settrace(None)
                raise Planted()
        return tracer

    def traced(name):
        function = getattr(lgelu_refit, name)

        def planted(*args):
            sys.settrace(tracer)
            try: return function(*args)
            finally: sys.settrace(None)
        return function, planted

    names = "_commit", "_check_model_itself"
    kept = {name: traced(name) for name in names}
    for name in names: setattr(lgelu_refit, name, kept[name][1])
    try: call()
    except Planted: return True
    finally:
        for name in names: setattr(lgelu_refit, name, kept[name][0])
    return False


@case("a failure at each line that sets something in the model: the model is as it was")
def _():
    net, x, kept = Everything().eval(), torch.randn(64, 10), []
    with torch.no_grad():
        for p in net.parameters(): p.add_(0.1 * torch.randn_like(p))
    apply = lgelu_refit._Job.apply
    lgelu_refit._Job.apply = lambda job, *args: kept.append((job, args))
    try: lgelu.refit(net, list(x.split(16)), untie=True, relus=2)
    finally: lgelu_refit._Job.apply = apply
    (job, args), before, line = kept[0], everything(net), 0
    while fail_at(line := line + 1, lambda: apply(job, *args)):
        now = everything(net)
        if now[0] != before[0]: return f"line {line}: {[b for a, b in zip(now[0], before[0]) if a != b][:3]}"
        if not all(torch.equal(a, b) for a, b in zip(now[1], before[1])): return f"line {line}: other elements"
    print(f"# {line} lines")
    if line < 500: return f"{line} lines"
    if isinstance(net.act, nn.GELU) or net.second.bias is not None or torch.equal(net.last, before[1][-1]): return "at the end the model is not changed"
    net.handles[0].remove()
    return "" if not net.act._forward_hooks else "a hook cannot be removed"
sys.exit(failed)
