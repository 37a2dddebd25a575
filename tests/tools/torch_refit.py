# SPDX-License-Identifier: MIT-0
# torch_refit.py FOLDER PROGRAM: lgelu.refit on PyTorch's side, beside the program torch_refit on the same networks and inputs:
# the weights agree to 1e-4 of the largest; and what lgelu.refit promises else.
import copy, subprocess, sys, warnings
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
import lgelu

warnings.filterwarnings("ignore")
folder, program = sys.argv[1:]
torch.manual_seed(5)
failed = 0

def verdict(good, name, why=""):
    global failed
    print(f"ok {name}" if good else f"FAIL {name}: {why}")
    failed |= not good

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

def weights(model):
    """all of them in the order of the layers, as lgelu.h keeps them"""
    rows = []
    for m in model.modules():
        if isinstance(m, nn.Conv2d): rows.append(m.weight.permute(0, 2, 3, 1))
        elif isinstance(m, (nn.Linear, nn.BatchNorm2d)): rows.append(m.weight)
        else: continue
        if m.bias is not None: rows.append(m.bias)
    return [r.detach().reshape(-1) for r in rows]

def mlp(gate): return nn.Sequential(nn.Linear(20, 48), gate, nn.Linear(48, 32), gate, nn.Linear(32, 6))
for name, net, x in (("mlp_silu", mlp(nn.SiLU()), torch.randn(600, 20)), ("mlp_gelu", mlp(nn.GELU()), torch.randn(600, 20)),
                     ("cnn_gelu", Residual(nn.GELU()), torch.randn(160, 3, 9, 9))):
    net.eval()
    x.numpy().tofile(f"{folder}/{name}.in")
    torch.onnx.export(net, x[:2], f"{folder}/{name}.onnx", opset_version=16, input_names=["x"], output_names=["y"],
                      training=torch.onnx.TrainingMode.PRESERVE, dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
    job = subprocess.run([program, folder, name, str(len(x))], capture_output=True, text=True)
    before, y, report = copy.deepcopy(net), net(x).detach(), []
    got = lgelu.refit(net, x.split(32), rows=2 ** 30, estimate=False, report=report)
    theirs = torch.from_numpy(np.fromfile(f"{folder}/{name}.refit", np.float32)) if not job.returncode else torch.zeros(0)
    at, worst = 0, 0.0
    for ours in weights(net):
        other = theirs[at:at + len(ours)]
        at += len(ours)
        worst = max(worst, float((ours - other).abs().max() / other.abs().max()) if len(other) == len(ours) else 9.0)
    verdict(worst <= 1e-4 and at == len(theirs), f"{name}: the weights of refit.h, to 1e-4 of the largest", f"{worst:.2g}; {job.stderr}")
    print(f"# {name}: {worst:.1e};", *(f"{r['name']} {r['outcome']} {r['ridge']:g}" for r in report), sep=" ")
    cold = copy.deepcopy(before)
    for module in cold.modules():
        for key, m in list(module._modules.items()):
            if isinstance(m, (nn.GELU, nn.SiLU)): setattr(module, key, nn.ReLU())
    error = [float((m(x) - y).abs().mean()) for m in (cold, net)]
    verdict(got is net and error[1] < 0.5 * error[0], f"{name}: in place, less than half of the cold swap's change", f"{error}")
    verdict(not any(isinstance(m, (nn.GELU, nn.SiLU)) for m in net.modules()), f"{name}: no smooth gate is left")

class Calls(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(20, 30), nn.Linear(30, 4)
    def forward(self, x): return self.b(F.gelu(self.a(x)))
x = torch.randn(200, 20)
net = Calls().train()
y = copy.deepcopy(net)(x).detach()
got = lgelu.refit(net, x.split(50))
verdict(isinstance(got, torch.fx.GraphModule) and float((got(x) - y).abs().mean()) < 0.05 and net.training,
        "a forward that calls F.gelu: a graph is returned, the mode stays")

def refused(name, kind, words, call):
    try: call()
    except kind as e: verdict(words in str(e), name, str(e))
    else: verdict(False, name, "nothing was raised")
net = mlp(nn.GELU())
kept = copy.deepcopy(net.state_dict())
refused("too few inputs", ValueError, "expected at least 8", lambda: lgelu.refit(net, [x[:7]]))
refused("values that are not finite", ValueError, "not finite", lambda: lgelu.refit(net, [x[:100], torch.full((50, 20), float("nan"))]))
refused("no smooth gate", ValueError, "no smooth gate", lambda: lgelu.refit(nn.Linear(3, 3), [x]))
verdict(all(torch.equal(a, b) for a, b in zip(kept.values(), net.state_dict().values())) and isinstance(net[1], nn.GELU),
        "after an error the model is as it was")
sys.exit(failed)
