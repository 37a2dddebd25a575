# SPDX-License-Identifier: MIT-0
# onnx_c_processors.py FOLDER: a handful of networks, NAME.onnx with an input x and an output y of floats, and NAME.npy, a sample of x, for
# test_onnx_c.sh: what their C files compute on another processor. Prints the names.
import sys

import numpy as np

for name, kind in (("float", float), ("int", int), ("bool", bool), ("object", object)):
    setattr(np, name, kind)
import onnx
from onnx import helper, numpy_helper

folder = sys.argv[1]
rng = np.random.default_rng(11)


class Net:
    def __init__(self, name, *shape):
        self.name, self.shape, self.nodes, self.constants = name, list(shape), [], []

    def weights(self, *shape):
        name = f"w{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape).astype("f4"), name))
        return name

    def numbers(self, *values):
        name = f"w{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values), name))
        return name

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[-1]

    def save(self, *shape):
        self.nodes[-1].output[-1] = "y"
        value = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, self.name, [value("x", 1, self.shape)], [value("y", 1, list(shape))], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, f"{folder}/{self.name}.onnx")
        np.save(f"{folder}/{self.name}.npy", rng.normal(0, 1, self.shape).astype("f4"))
        print(self.name)


g = Net("image", 1, 3, 11, 13)
h = g.node("Conv", "x", g.weights(8, 3, 3, 3), g.weights(8), strides=[2, 2], pads=[1, 1, 1, 1])
h = g.node("Mul", h, g.node("Sigmoid", h))
h = g.node("Conv", h, g.weights(8, 1, 3, 3), pads=[1, 1, 1, 1], group=8)
h = g.node("Clip", h, g.numbers(np.float32(-1)), g.numbers(np.float32(2)))
h = g.node("Resize", h, "", "", g.numbers(1, 8, 9, 10), mode="cubic")
h = g.node("AveragePool", g.node("MaxPool", h, kernel_shape=[2, 2]), kernel_shape=[3, 3], strides=[2, 2])
h = g.node("ConvTranspose", h, g.weights(8, 4, 2, 2), strides=[2, 2])
g.node("GlobalAveragePool", h)
g.save(1, 4, 1, 1)

g = Net("attention", 1, 7, 16)
x = g.node("ReduceMean", "x", axes=[-1])
x = g.node("Sub", "x", x)
x = g.node("Div", x, g.node("Sqrt", g.node("Add", g.node("ReduceMean", g.node("Mul", x, x), axes=[-1]), g.numbers(np.float32(1e-5)))))
a, b = g.node("MatMul", x, g.weights(16, 16)), g.node("MatMul", x, g.weights(16, 16))
s = g.node("Softmax", g.node("Div", g.node("MatMul", a, g.node("Transpose", b, perm=[0, 2, 1])), g.numbers(np.float32(4))), axis=-1)
h = g.node("MatMul", g.node("MatMul", s, x), g.weights(16, 32))
h = g.node("Mul", h, g.node("Add", g.node("Erf", g.node("Div", h, g.numbers(np.float32(np.sqrt(2))))), g.numbers(np.float32(1))))
g.node("MatMul", h, g.weights(32, 5))
g.save(1, 7, 5)

g = Net("recurrent", 6, 1, 5)
h = g.node("LSTM", "x", g.weights(1, 32, 5), g.weights(1, 32, 8), g.weights(1, 64), outputs=2, hidden_size=8)
h = g.node("Reshape", h, g.numbers(1, 1, 8))
h = g.node("GRU", h, g.weights(1, 18, 8), g.weights(1, 18, 6), g.weights(1, 36), outputs=2, hidden_size=6)
g.node("Tanh", h)
g.save(1, 1, 6)

g = Net("table", 4, 9)
h = g.node("Gemm", "x", g.weights(9, 33), g.weights(33))
h = g.node("Gemm", g.node("Elu", h), g.weights(20, 33), g.weights(20), transB=1)
h = g.node("Softplus", g.node("BatchNormalization", h, *(g.weights(20) for _ in range(3)), g.numbers(*np.linspace(0.5, 2, 20).astype("f4"))))
g.node("LogSoftmax", h, axis=-1)
g.save(4, 20)
