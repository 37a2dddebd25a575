#!/usr/bin/env python3
"""The step of gpt.c in PyTorch (Debian: python3-torch): same shapes, tied weights, exact GELU, AdamW, clipping. One JSON line.
gpt.py THREADS [VOCABULARY [ROUNDS]]   SPDX-License-Identifier: MIT-0"""
import json, math, resource, sys, time
import torch
from torch import nn
from torch.nn import functional as F

threads = int(sys.argv[1])
vocabulary = int(sys.argv[2]) if len(sys.argv) > 2 else 65
rounds, steps, layers, heads, width, context, batch = int(sys.argv[3]) if len(sys.argv) > 3 else 5, 3, 6, 6, 384, 128, 8
torch.set_num_threads(threads)
torch.manual_seed(1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(context, context)).bool().logical_not()[None, None])

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, heads, c // heads).transpose(1, 2) for y in self.c_attn(x).split(width, 2))
        a = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(c // heads))
        a = F.softmax(a.masked_fill(self.mask[:, :, :t, :t], -math.inf), -1)
        return self.c_proj((a @ v).transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(width), Attention(), nn.LayerNorm(width)
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.c_proj(F.gelu(self.c_fc(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.h, self.ln_f = nn.ModuleList(Block() for _ in range(layers)), nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, 0, 0.02)
        self.head.weight = self.wte.weight

    def forward(self, i):
        x = self.wte(i) + self.wpe(torch.arange(i.shape[1]))
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))


net = GPT()
x, y = torch.randint(0, vocabulary, (batch, context)), torch.randint(0, vocabulary, (batch, context))
best = {"step_ms": 1e9, "forward_ms": 1e9}
for foreach in (False, True):                    # the faster of its two AdamW loops counts
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0.01, foreach=foreach)
    for i in range((rounds * steps + 1) // 2 + 1):
        start = time.perf_counter()
        opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(x).view(-1, vocabulary), y.view(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        if i:
            best["step_ms"] = min(best["step_ms"], (time.perf_counter() - start) * 1e3)
    del opt
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
with torch.no_grad():
    for i in range(rounds + 1):
        start = time.perf_counter()
        net(x)
        if i:
            best["forward_ms"] = min(best["forward_ms"], (time.perf_counter() - start) * 1e3)
print(json.dumps({"peer": "PyTorch " + torch.__version__, "threads": threads, "vocabulary": vocabulary, "step_ms": round(best["step_ms"], 2),
                  "forward_ms": round(best["forward_ms"], 2), "peak_mb": round(peak, 1), "loss": round(loss.item(), 6)}))
