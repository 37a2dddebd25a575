# SPDX-License-Identifier: MIT-0
"""train.py: an MLP of PyTorch on the repository's pictures (or, with --data FOLDER, the four IDX files of the MNIST family): λ
learned, driven to 159.577, every gate swapped to nn.ReLU; beside it the same network with nn.GELU, swapped cold.

    python3 train.py [--data FOLDER] [--out FOLDER] [--epochs 12] [--paper] [--channels] [--seed 1]

Prints a score before and after each swap, how many predictions it flips and the largest change of a logit; writes gelu.onnx,
lgelu.onnx (before the swap) and relu.onnx, and relu.pt for load_state_dict."""
import argparse, gzip, os, struct, sys, warnings, zlib
import numpy as np
import torch
from torch import nn
import lgelu

here = os.path.dirname(os.path.abspath(__file__))

# ---- files: no output replaces one that is read ----
inputs = []
def reading(path):
    inputs.append(path)
    return path

def writing(path):
    for other in inputs:
        if os.path.exists(path) and os.path.samefile(path, other):
            sys.exit(f"train.py: {path}: this file is read as data, and is not replaced")
    return path

# ---- data ----
def sheet(path):
    """the 2,500 tiles of 28 x 28 of one sheet, a PNG of 2-bit greys, row by row; tile i shows class i mod 10"""
    data, at, packed = open(reading(path), "rb").read(), 8, b""
    width, height, depth = struct.unpack(">IIB", data[16:25])
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IDAT": packed += data[at + 8:at + 8 + size]
        at += 12 + size
    if depth != 2 or data[25] != 0: raise ValueError(f"{path}: expected 2-bit greys")
    row, lines, above = width // 4, zlib.decompress(packed), np.zeros(width // 4 + 1, np.uint8)
    pixels = np.empty((height, row), np.uint8)
    for r in range(height):
        kind, line = lines[r * (row + 1)], np.frombuffer(lines, np.uint8, row, r * (row + 1) + 1)
        now = np.zeros(row + 1, np.uint8)                                     # one byte in front, 0
        if kind < 3: now[1:] = (line, np.cumsum(line, dtype=np.uint8), line + above[1:])[kind]
        else:
            for i in range(row):
                a, b, c = int(now[i]), int(above[i + 1]), int(above[i])
                if kind == 3: guess = (a + b) // 2
                else: guess = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
                now[i + 1] = (int(line[i]) + guess) & 255
        pixels[r], above = now[1:], now
    pixels = np.stack([pixels >> shift & 3 for shift in (6, 4, 2, 0)], -1).reshape(height, width)
    tiles = pixels.reshape(height // 28, 28, width // 28, 28).transpose(0, 2, 1, 3).reshape(-1, 28, 28)
    return tiles * 85, np.arange(len(tiles)) % 10

def pictures(folder):
    """train and test as x (n, 784) of mean 0 and deviation 1, and classes"""
    if os.path.exists(f"{folder}/train_0.png"):
        names = [f"train_{i}" for i in range(4)], ["test_0"]
        parts = [tuple(map(np.concatenate, zip(*(sheet(f"{folder}/{name}.png") for name in part)))) for part in names]
    else:
        def idx(name, head):
            path = f"{folder}/{name}"
            file = gzip.open(reading(path + ".gz")) if os.path.exists(path + ".gz") else open(reading(path), "rb")
            return np.frombuffer(file.read(), np.uint8)[head:]
        parts = [(idx(f"{part}-images-idx3-ubyte", 16).reshape(-1, 28, 28), idx(f"{part}-labels-idx1-ubyte", 8))
                 for part in ("train", "t10k")]
    mean, deviation = parts[0][0].mean(), parts[0][0].std()
    ready = lambda x: torch.tensor((x.reshape(len(x), -1) - mean) / deviation, dtype=torch.float32)
    return [(ready(x), torch.tensor(y.astype(np.int64))) for x, y in parts]

# ---- the job ----
def mlp(act, sizes=(784, 512, 256, 128, 10)):
    layers = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers += [nn.Linear(a, b)] + ([act(b)] if i < len(sizes) - 2 else [])
    return nn.Sequential(*layers)

def train(model, data, epochs, plan_of, batch=128, lr=1e-3):
    x, y = data
    steps = epochs * (len(x) // batch)
    plan = plan_of(steps)
    optimizer = torch.optim.AdamW(lgelu.parameter_groups(model, lr, 0.01))
    hardening = lgelu.Hardening(model, plan, optimizer) if lgelu.gates(model) else None
    cosine = None if hardening else torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: plan.rate(step + 1))
    for epoch in range(epochs):
        for pick in torch.randperm(len(x))[:len(x) // batch * batch].split(batch):
            optimizer.zero_grad(set_to_none=True)
            nn.functional.cross_entropy(model(x[pick]), y[pick]).backward()
            optimizer.step()
            (hardening or cosine).step()
        if hardening and (epoch + 1) % 3 == 0:
            print(f"# epoch {epoch + 1}: λ " + " ".join(f"{float(g.lam.mean()):.5g}" for g in hardening.gates))
    return model.eval()

def logits(model, x):
    with torch.no_grad(): return torch.cat([model(part) for part in x.split(500)])

def export(model, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, torch.zeros(2, 784), path, opset_version=16, input_names=["pixels"], output_names=["logits"],
                          dynamic_axes={"pixels": {0: "n"}, "logits": {0: "n"}})

def report(name, model, swap, x, y):
    score = lambda z: 100 * float((z.argmax(1) == y).float().mean())
    before = logits(model, x)
    after = logits(swap(model), x)
    flips = int((before.argmax(1) != after.argmax(1)).sum())
    print(f"{name:8}  before {score(before):6.2f}  after {score(after):6.2f}  flips {flips} of {len(y)}  "
          f"max Δlogit {float((before - after).abs().max()):.2g}")

def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default=here + "/../pictures")
    p.add_argument("--out", default=here + "/../build/torch")
    p.add_argument("--epochs", type=int, default=12)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--paper", action="store_true", help="the paper's plan in place of ours")
    p.add_argument("--channels", action="store_true", help="one λ for each unit")
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    plan_of = lgelu.Plan.paper if a.paper else lgelu.Plan.to_relu
    data, (x, y) = pictures(a.data)
    for name in "gelu.onnx", "lgelu.onnx", "relu.onnx", "relu.pt", "relu.in", "relu.out": writing(f"{a.out}/{name}")

    torch.manual_seed(a.seed)
    gelu = train(mlp(lambda width: nn.GELU()), data, a.epochs, plan_of)
    export(gelu, a.out + "/gelu.onnx")
    def cold(model):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")                                   # that these gates have not been driven
            return lgelu.to_relu(lgelu.replace_gelu(model))
    report("gelu", gelu, cold, x, y)

    torch.manual_seed(a.seed)
    gate = lambda width: lgelu.LambdaGELU(channels=width if a.channels else None, axis=-1)
    hardened = train(mlp(gate), data, a.epochs, plan_of)
    export(hardened, a.out + "/lgelu.onnx")
    report("hardened", hardened, lgelu.to_relu, x, y)
    export(hardened, a.out + "/relu.onnx")
    torch.save(hardened.state_dict(), a.out + "/relu.pt")
    x.numpy().tofile(a.out + "/relu.in")
    logits(hardened, x).numpy().tofile(a.out + "/relu.out")

if __name__ == "__main__": main()
