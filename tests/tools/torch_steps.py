# SPDX-License-Identifier: MIT-0
# torch_steps.py FOLDER mlp|resnet8 STEPS PLANNED BATCHES BATCH SIDE CHANNELS LR DECAY C T: what torch_steps.c trained, trained by
# PyTorch in double and, with SINGLE=1, as the yardstick of what single precision can do, by PyTorch in single.
import json, math, os, sys
import numpy as np, torch
from torch import nn
from torch.nn import functional as F

folder, name = sys.argv[1:3]
steps, planned, batches, batch, side, channels = map(int, sys.argv[3:9])
lr, decay, c, t = map(float, sys.argv[9:13])


class Gate(nn.Module):                       # λ = 1 + softplus(s/t)
    def __init__(self):
        super().__init__()
        self.s = nn.Parameter(torch.zeros(1))
    def forward(self, x):
        return x * (1 + torch.erf((1 + F.softplus(self.s / t)) * x / math.sqrt(2))) / 2


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        for i, (a, b) in enumerate(((side * side * channels, 512), (512, 256), (256, 128), (128, 10)), 1):
            setattr(self, f"fc{i}", nn.Linear(a, b))
            if i < 4: setattr(self, f"gate{i}", Gate())
    def forward(self, x):
        x = x.permute(0, 2, 3, 1).flatten(1)
        for i in 1, 2, 3: x = getattr(self, f"gate{i}")(getattr(self, f"fc{i}")(x))
        return self.fc4(x)


class Block(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.conv1, self.bn1, self.gate1 = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), Gate()
        self.conv2, self.bn2, self.gate2 = nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b), Gate()
        self.downsample = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b)) if stride > 1 else nn.Sequential()
    def forward(self, x):
        return self.gate2(self.bn2(self.conv2(self.gate1(self.bn1(self.conv1(x))))) + self.downsample(x))


class ResNet8(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1, self.gate1 = nn.Conv2d(channels, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), Gate()
        for i, (a, b, stride) in enumerate(((16, 16, 1), (16, 32, 2), (32, 64, 2)), 1):
            setattr(self, f"layer{i}", nn.Sequential(Block(a, b, stride)))
        self.fc = nn.Linear(64, 10)
    def forward(self, x):
        x = self.gate1(self.bn1(self.conv1(x)))
        return self.fc(self.layer3(self.layer2(self.layer1(x))).mean((2, 3)))


def weights():
    data = open(folder + "/before.safetensors", "rb").read()
    n = int.from_bytes(data[:8], "little")
    for key, e in json.loads(data[8:8 + n]).items():
        if key == "__metadata__": continue
        first, end = e["data_offsets"]
        yield key, torch.frombuffer(bytearray(data[8 + n + first:8 + n + end]), dtype=torch.float32).reshape(e["shape"])


def train(kind):
    net = {"mlp": Mlp, "resnet8": ResNet8}[name]().to(kind)
    state, left = net.state_dict(), set(net.state_dict())
    for key, value in weights():
        if key not in state: continue        # moments, λ beside its s
        to = state[key]
        if to.dim() == 4:                    # ours: (outputs, rows, columns, inputs)
            value = value.reshape(to.shape[0], to.shape[2], to.shape[3], to.shape[1]).permute(0, 3, 1, 2)
        to.copy_(value.reshape(to.shape))
        left.discard(key)
    left = [key for key in left if "running" not in key and "num_batches" not in key]
    if left: sys.exit(f"FAIL {name}: no first weights for {left}")
    group = lambda test, rate, wd: {"params": [v for k, v in net.named_parameters() if test(k, v)], "lr": rate, "weight_decay": wd}
    optimiser = torch.optim.AdamW([group(lambda k, v: v.dim() > 1, lr, decay), group(lambda k, v: k.endswith(".s") or k == "s", lr * c, 0),
                                   group(lambda k, v: v.dim() == 1 and not k.endswith(".s"), lr, 0)])
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, planned)
    x = torch.from_numpy(np.fromfile(folder + "/x.f32", "<f4").reshape(-1, side, side, channels)).permute(0, 3, 1, 2).contiguous().to(kind)
    y = torch.from_numpy(np.fromfile(folder + "/y.i32", "<i4")).long()
    losses = []
    for step in range(steps):
        at = slice(step % batches * batch, (step % batches + 1) * batch)
        optimiser.zero_grad()
        loss = F.cross_entropy(net(x[at]), y[at])
        loss.backward()
        losses.append(loss.item())
        optimiser.step()
        cosine.step()
    return np.array(losses)


torch.set_num_threads(1)
ours, double = np.loadtxt(folder + "/ours.txt"), train(torch.float64)
worst = abs(ours / double - 1)
single = f"; PyTorch in single {abs(train(torch.float32) / double - 1).max():.2g}" if os.environ.get("SINGLE") else ""
print(f"# {name}: loss {double[0]:.4f} to {double[-1]:.4f} in {steps} steps; relative to PyTorch {torch.__version__} in double at most "
      f"{worst.max():.2g} (step {worst.argmax() + 1}){single}")
def check(good, text): print(("ok " if good else "FAIL ") + f"{name}: {text}")
check(len(ours) == steps and worst.max() < 1e-4, f"{steps} steps: the losses are those of PyTorch to 1e-4")
check(double[-batches:].mean() < double[0] / 2, f"{steps} steps: they lead somewhere")
