# SPDX-License-Identifier: MIT-0
# round_trip.py FOLDER: trains an MLP and a convolutional network with GELU on FOLDER/train.bin (records of a class and 28 x 28 pixels)
# in PyTorch and exports them as FOLDER/NAME.onnx, for test_round_trip.sh. Prints NAME and its accuracy on FOLDER/test.bin.
import sys, warnings
import numpy as np
import torch
from torch import nn

warnings.filterwarnings("ignore")
folder = sys.argv[1]
torch.manual_seed(11)
torch.set_num_threads(1)

def records(name):
    a = np.fromfile(f"{folder}/{name}.bin", np.uint8).reshape(-1, 785)
    return torch.from_numpy(a[:, 1:] / np.float32(255)).reshape(-1, 1, 28, 28), torch.from_numpy(a[:, 0].astype(np.int64))

x, y = records("train")
test_x, test_y = records("test")
networks = {
    "mlp": nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.GELU(), nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 10)),
    "cnn": nn.Sequential(nn.Conv2d(1, 8, 5, 2, 2), nn.GELU(), nn.Conv2d(8, 16, 3, 2, 1), nn.GELU(), nn.Flatten(), nn.Linear(784, 10)),
}
for name, net in networks.items():
    epochs = max(3, 90000 // len(x))
    steps = epochs * (len(x) // 64)
    optimiser = torch.optim.AdamW(net.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, steps)
    for step in range(steps):
        if step % (len(x) // 64) == 0: order = torch.randperm(len(x))
        pick = order[step % (len(x) // 64) * 64:][:64]
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(x[pick]), y[pick]).backward()
        optimiser.step()
        schedule.step()
    net.eval()
    with torch.no_grad():
        right = (net(test_x).argmax(1) == test_y).double().mean().item()
    torch.onnx.export(net, test_x[:1], f"{folder}/{name}.onnx", opset_version=17, training=torch.onnx.TrainingMode.PRESERVE,
                      input_names=["x"], output_names=["logits"], dynamic_axes={"x": {0: "n"}, "logits": {0: "n"}})
    print(name, "%.4f" % (100 * right))
