# SPDX-License-Identifier: MIT-0
# onnx_gates.py FOLDER: networks with the gates and functions that PyTorch's exporter writes, SiLU, QuickGELU, Swish, ELU, Mish,
# Hardswish, leaky ReLU, sigmoid and tanh, with inputs and PyTorch's outputs; prints the list that onnx_evaluate.c reads.
import sys, warnings
import torch
from torch import nn

warnings.filterwarnings("ignore")
folder = sys.argv[1]
torch.manual_seed(11)
torch.set_num_threads(1)

class Swish(nn.Module):
    def __init__(self, beta):
        super().__init__()
        self.beta = beta
    def forward(self, x):
        return torch.sigmoid(self.beta * x) * x

class Formula(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f
    def forward(self, x):
        return self.f(x)

gates = {"silu": nn.SiLU(), "quick": Formula(lambda x: x * torch.sigmoid(1.702 * x)), "swish": Swish(0.5), "elu": nn.ELU(0.7),
         "hardswish": nn.Hardswish(),
         "leaky": nn.LeakyReLU(), "leaky_2": nn.LeakyReLU(0.2), "mish": nn.Mish(), "mish_formula": Formula(lambda x: torch.tanh(nn.functional.softplus(x)) * x),
         "sigmoid": nn.Sigmoid(), "tanh": nn.Tanh(), "twice": Formula(lambda x: x * torch.sigmoid(torch.sigmoid(x))),
         "half": Formula(lambda x: 0.5 * x * torch.sigmoid(x)), "shifted": Formula(lambda x: x * torch.sigmoid(x * 2 - 1))}

def export(net, x, name):
    torch.onnx.export(net.eval(), x[:2], f"{folder}/{name}.onnx", opset_version=16, input_names=["x"], output_names=["logits"],
                      dynamic_axes={"x": {0: "n"}, "logits": {0: "n"}})

for name, gate in gates.items():
    mlp = nn.Sequential(nn.Linear(20, 32), gate, nn.Linear(32, 24), gate, nn.Linear(24, 10))
    cnn = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1), nn.BatchNorm2d(8), gate, nn.Conv2d(8, 12, 3, 2, 1), gate,
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 10))
    for kind, net, shape in (("mlp", mlp, (64, 20)), ("cnn", cnn, (16, 3, 9, 9))):
        x = 3 * torch.randn(shape)
        export(net, x, f"{kind}_{name}")
        with torch.no_grad(): y = net(x)
        x.numpy().tofile(f"{folder}/{kind}_{name}.in")
        y.numpy().tofile(f"{folder}/{kind}_{name}.out")
        print(f"{kind}_{name}", "float32", ",".join(map(str, shape)), ",".join(map(str, y.shape)), sep="\t")
