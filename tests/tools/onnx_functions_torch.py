# SPDX-License-Identifier: MIT-0
"""onnx_functions_torch.py FOLDER: networks that PyTorch exports with a function for each module, NAME.onnx, and without, NAME_flat.onnx;
their inputs in NAME.npy."""
import sys
import numpy as np
import onnx
import torch
from torch import nn

folder = sys.argv[1]


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first, self.norm, self.second = nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.Conv2d(channels, channels, 1)
        self.gate, self.last = nn.SiLU(), nn.SiLU()

    def forward(self, x):
        return self.last(x + self.second(self.gate(self.norm(self.first(x)))))


torch.manual_seed(1)
NETWORKS = {
    "residual": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.SiLU(), Block(8), Block(8), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)), (3, 8, 8)),
    "transformer": (nn.Sequential(nn.Linear(8, 16), nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, activation="gelu", batch_first=True),
                                  nn.Linear(16, 4)), (6, 8)),
    "perceptron": (nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 16), nn.GELU(approximate="tanh"), nn.Linear(16, 4)), (8,)),
}
for name, (net, shape) in NETWORKS.items():
    # in evaluation PyTorch 1.13 takes a path through the encoder that cannot be exported
    net.train(name == "transformer")
    mode = torch.onnx.TrainingMode.PRESERVE if name == "transformer" else torch.onnx.TrainingMode.EVAL
    for functions in False, True:
        torch.onnx.export(net, torch.randn(2, *shape), f"{folder}/{name}{'' if functions else '_flat'}.onnx", opset_version=15, input_names=["x"],
                          output_names=["y"], dynamic_axes={"x": {0: "n"}, "y": {0: "n"}}, export_modules_as_functions=functions, training=mode)
    # the exporter gives the output of a function a name of its own
    file = f"{folder}/{name}.onnx"
    model = onnx.load(file)
    model.graph.node[-1].output[0] = model.graph.output[0].name = "y"
    onnx.save(model, file)
    np.save(f"{folder}/{name}.npy", torch.randn(200, *shape).numpy())
