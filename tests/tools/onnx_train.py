# SPDX-License-Identifier: MIT-0
# onnx_train.py FOLDER: PyTorch trains a GELU MLP, one with the tanh formula, one with SiLU and a small ResNet with batch norms, and exports
# them, the norms kept: FOLDER/NAME.onnx. The data stands in FOLDER/data as IDX files: pictures of Fashion-MNIST where
# $LGELU_DATA has it, else blurred blots on noise, the class saying where they lie.
import gzip, os, struct, sys, warnings
import numpy as np
import torch
from torch import nn

warnings.filterwarnings("ignore")
torch.manual_seed(3)
torch.set_num_threads(1)
folder = sys.argv[1]
real = os.path.join(os.environ.get("LGELU_DATA", ""), "fashion-mnist")
random = np.random.default_rng(5)

def made(n):
    y = random.integers(0, 10, n).astype(np.uint8)
    r, c = np.mgrid[0:28, 0:28]
    x = random.integers(0, 120, (n, 28, 28)).astype(float)
    for k in range(3):
        row, column = 6 + 3 * (y * 7 % 10 * (k + 1) % 6), 6 + 3 * (y * 3 % 10 * (k + 2) % 6)
        row, column = row + random.integers(-2, 3, n), column + random.integers(-2, 3, n)
        x += 130 * np.exp(-((r - row[:, None, None]) ** 2 + (c - column[:, None, None]) ** 2) / 8)
    return np.clip(x, 0, 255).astype(np.uint8), y

def read(part, n):
    if not os.path.exists(f"{real}/{part}-images-idx3-ubyte.gz"): return made(n)
    x = np.frombuffer(gzip.open(f"{real}/{part}-images-idx3-ubyte.gz").read(), np.uint8)[16:].reshape(-1, 28, 28)
    return x[:n], np.frombuffer(gzip.open(f"{real}/{part}-labels-idx1-ubyte.gz").read(), np.uint8)[8:][:n]

os.makedirs(f"{folder}/data", exist_ok=True)
data = {part: read(part, n) for part, n in (("train", 4000), ("t10k", 2000))}
for part, (x, y) in data.items():
    open(f"{folder}/data/{part}-images-idx3-ubyte", "wb").write(struct.pack(">4I", 0x803, *x.shape) + x.tobytes())
    open(f"{folder}/data/{part}-labels-idx1-ubyte", "wb").write(struct.pack(">2I", 0x801, len(y)) + y.tobytes())
x, test_x = ((torch.tensor(data[part][0]).float() / 255 - 0.3)[:, None] / 0.35 for part in ("train", "t10k"))
y, test_y = (torch.tensor(data[part][1]).long() for part in ("train", "t10k"))

class Block(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b)
        self.conv2, self.bn2 = nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b)
        self.short = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b)) if stride > 1 else nn.Identity()
        self.gelu = nn.GELU()
    def forward(self, x):
        return self.gelu(self.bn2(self.conv2(self.gelu(self.bn1(self.conv1(x))))) + self.short(x))

def mlp(act): return nn.Sequential(nn.Flatten(), nn.Linear(784, 64), act, nn.Linear(64, 64), act, nn.Linear(64, 10))
nets = {"mlp": mlp(nn.GELU()), "mlp_tanh": mlp(nn.GELU(approximate="tanh")), "mlp_silu": mlp(nn.SiLU()),
        "resnet": nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.GELU(), Block(8, 8, 1),
                                Block(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))}
for name, net in nets.items():
    optimiser = torch.optim.AdamW(net.parameters(), 2e-3)
    epochs = 4
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs * (len(x) // 64))
    for epoch in range(epochs):
        for pick in torch.randperm(len(x)).split(64):
            if len(pick) < 64: continue
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(x[pick]), y[pick]).backward()
            optimiser.step()
            schedule.step()
    net.eval()
    with torch.no_grad(): logits = net(test_x)
    score = 100 * float((logits.argmax(1) == test_y).float().mean())
    torch.onnx.export(net, x[:2], f"{folder}/{name}.onnx", opset_version=16, input_names=["picture"], output_names=["logits"],
                      training=torch.onnx.TrainingMode.PRESERVE, dynamic_axes={"picture": {0: "n"}, "logits": {0: "n"}})
    test_x.numpy().tofile(f"{folder}/{name}.in")
    logits.numpy().tofile(f"{folder}/{name}.out")
    print(name, "float32", "2000,1,28,28", "2000,10", f"{score:.2f}", sep="\t")
