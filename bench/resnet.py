#!/usr/bin/env python3
"""The training step and the inference of resnet.c in PyTorch (Debian: python3-torch): same shapes, same optimiser, exact GELU.
Its channels-last layout and its batch normalisation folded into the convolution are tried as well; the faster counts. One JSON
line.   resnet.py THREADS [ROUNDS] [GATE: gelu or relu]   SPDX-License-Identifier: MIT-0"""
import json, resource, sys, time
import torch
from torch import nn

threads, rounds = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
gate = {"gelu": nn.GELU, "relu": nn.ReLU}[sys.argv[3] if len(sys.argv) > 3 else "gelu"]
torch.set_num_threads(threads)
torch.manual_seed(1)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1, self.gate1 = nn.BatchNorm2d(outputs), gate()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2, self.gate2 = nn.BatchNorm2d(outputs), gate()
        self.short = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, 0, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.gate1(self.norm1(self.conv1(x)))
        return self.gate2(self.norm2(self.conv2(y)) + self.short(x))


def resnet18(classes):
    layers, inputs = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), gate()], 64
    for outputs, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(Block(inputs, outputs, stride))
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


def fold(net):
    from torch.nn.utils.fusion import fuse_conv_bn_eval
    for m in [net] + list(net.modules()):
        if isinstance(m, Block):
            m.conv1, m.norm1 = fuse_conv_bn_eval(m.conv1, m.norm1), nn.Identity()
            m.conv2, m.norm2 = fuse_conv_bn_eval(m.conv2, m.norm2), nn.Identity()
            if len(m.short):
                m.short = fuse_conv_bn_eval(m.short[0], m.short[1])
    net[0], net[1] = fuse_conv_bn_eval(net[0], net[1]), nn.Identity()
    return net


best = {}


def measure(name, work):
    work()
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        best[name] = min(best.get(name, 1e9), (time.perf_counter() - start) * 1e3)


loss_of = nn.CrossEntropyLoss()
y = torch.randint(0, 100, (32,))
for layout in (torch.contiguous_format, torch.channels_last):
    x = (torch.rand(32, 3, 32, 32) * 2 - 1).contiguous(memory_format=layout)
    net = resnet18(100).to(memory_format=layout)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.01, foreach=True)

    def step():
        opt.zero_grad(set_to_none=True)
        loss_of(net(x), y).backward()
        opt.step()

    def forward():
        with torch.no_grad():
            net(x)

    measure("step_ms", step)
    net.eval()
    measure("forward_ms", forward)
    if layout == torch.contiguous_format:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024     # of the plain training run alone
        first = dict(best)
    opt = None
    net = fold(net)
    measure("forward_ms", forward)
print(json.dumps({"peer": "PyTorch " + torch.__version__, "threads": threads, "step_ms": round(best["step_ms"], 2),
                  "forward_ms": round(best["forward_ms"], 2), "peak_mb": round(peak, 1),
                  "plain_step_ms": round(first["step_ms"], 2), "plain_forward_ms": round(first["forward_ms"], 2)}))
