#!/usr/bin/env python3
"""The step of step.c in PyTorch (Debian: python3-torch): same shapes, same optimiser, exact GELU. One JSON line.
step.py THREADS [ROUNDS]   SPDX-License-Identifier: MIT-0"""
import json, resource, sys, time
import torch

threads, rounds, steps = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10, 20
torch.set_num_threads(threads)
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(784, 512), torch.nn.GELU(), torch.nn.Linear(512, 256), torch.nn.GELU(),
                          torch.nn.Linear(256, 128), torch.nn.GELU(), torch.nn.Linear(128, 10))
x, y = torch.rand(128, 784) * 2 - 1, torch.randint(0, 10, (128,))
loss_of, best = torch.nn.CrossEntropyLoss(), {}
for foreach in (False, True):                    # the faster of its two AdamW loops counts
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.01, foreach=foreach)

    def step():
        opt.zero_grad(set_to_none=True)
        loss = loss_of(net(x), y)
        loss.backward()
        opt.step()

    def forward():
        with torch.no_grad():
            net(x)

    for name, work in (("step_ms", step), ("forward_ms", forward)):
        for _ in range(3):
            work()
        for _ in range(rounds):
            start = time.perf_counter()
            for _ in range(steps):
                work()
            best[name] = min(best.get(name, 1e9), (time.perf_counter() - start) / steps * 1e3)
print(json.dumps({"peer": "PyTorch " + torch.__version__, "threads": threads, "step_ms": round(best["step_ms"], 4),
                  "forward_ms": round(best["forward_ms"], 4),
                  "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)}))
