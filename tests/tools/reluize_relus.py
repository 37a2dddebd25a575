# SPDX-License-Identifier: MIT-0
# reluize_relus.py FOLDER: writes ONNX files and their inputs: a perceptron and a convolutional network with SiLU, the first one also
# with external data and with weights of 8 bits; perceptrons with leaky ReLUs, tanh, dropout, an infinite output, strange names; a
# network whose output is an image of one channel; one with several rows for each sample, whose first column is a score; a perceptron
# that normalises its inputs.
# reluize_relus.py FOLDER NAME OTHER.npy BOUND: compares the values of NAME.y.npy with others; fails if they differ by more than
# BOUND of the largest.
import sys
import numpy as np
np.__dict__.update((name, kind) for name, kind in (("float", float), ("int", int), ("bool", bool), ("object", object))
                   if name not in np.__dict__)
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = sys.argv[1]
random = np.random.RandomState(3)


def normal(*shape, scale):
    return (random.standard_normal(shape) * scale).astype(np.float32)


def save(name, shape, layers, batch="batch", **how):
    nodes, constants, x = [], [], "x"
    for i, (op, values, attributes) in enumerate(layers):
        y = "y" if i + 1 == len(layers) else f"v{i}"
        names = [f"c{i}_{k}" for k in range(len(values))]
        constants += [numpy_helper.from_array(v, n) for v, n in zip(values, names)]
        if op == "SiLU":
            nodes.append(helper.make_node("Sigmoid", [x], [f"s{i}"]))
            nodes.append(helper.make_node("Mul", [x, f"s{i}"], [y]))
        else:
            nodes.append(helper.make_node(op, [x] + names, [y], **attributes))
        x = y
    graph = helper.make_graph(nodes, "graph", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch] + shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)]), f"{folder}/{name}.onnx", **how)
    np.save(f"{folder}/{name}.npy", normal(500, *shape, scale=1))


silu = ("SiLU", [], {})
if len(sys.argv) == 2:
    perceptron = [("Gemm", [normal(16, 24, scale=0.5), normal(24, scale=0.3)], {}), silu,
                  ("Gemm", [normal(24, 24, scale=0.4), normal(24, scale=0.3)], {}), silu,
                  ("Gemm", [normal(24, 5, scale=0.4), normal(5, scale=0.3)], {})]
    save("perceptron", [16], perceptron)
    save("external", [16], perceptron, save_as_external_data=True, all_tensors_to_one_file=True, location="external.bin",
         size_threshold=0)
    save("images", [3, 8, 8], [("Conv", [normal(8, 3, 3, 3, scale=0.3), normal(8, scale=0.3)], {"pads": [1, 1, 1, 1]}), silu,
                               ("Conv", [normal(8, 8, 3, 3, scale=0.2), normal(8, scale=0.3)], {"pads": [1, 1, 1, 1]}), silu,
                               ("GlobalAveragePool", [], {}), ("Flatten", [], {}),
                               ("Gemm", [normal(8, 5, scale=0.8), normal(5, scale=0.3)], {})])
    save("mask", [3, 8, 8], [("Conv", [normal(8, 3, 3, 3, scale=0.3)], {"pads": [1, 1, 1, 1]}), silu,
                             ("Conv", [normal(1, 8, 1, 1, scale=0.5)], {})])
    rows = [("MatMul", [normal(16, 24, scale=0.5)], {}), silu, ("MatMul", [normal(24, 4, scale=0.4)], {})]
    save("rows", [7, 16], rows)
    save("fixed", [7, 16], rows, batch=1)
    first, last = [normal(16, 24, scale=0.5), normal(24, scale=0.3)], [normal(24, 5, scale=0.4), normal(5, scale=0.3)]
    save("leaky", [16], [("Gemm", first, {}), ("LeakyRelu", [], {"alpha": 0.2}), ("Gemm", [normal(24, 24, scale=0.4), normal(24, scale=0.3)], {}),
                         ("PRelu", [random.uniform(0, 0.5, 24).astype(np.float32)], {}), ("Gemm", last, {})])
    save("infinite", [16], [("Gemm", first, {}), silu, ("Gemm", [last[0], np.array([0, np.inf, 0, 0, 0], np.float32)], {})])
    # so large that what a refit adds up is no number any more
    huge = normal(500, 16, scale=1)
    huge[4::10] = 3e38
    np.save(f"{folder}/huge.npy", huge)
    np.save(f"{folder}/labels.npy", np.where(np.arange(500) == 7, np.nan, 0).astype(np.float32))
    save("tanh", [16], [("Gemm", first, {}), ("Tanh", [], {}), ("Gemm", last, {})])
    narrow = onnx.load(f"{folder}/perceptron.onnx")
    for node in [n for n in narrow.graph.node if n.op_type == "Gemm"][1:]:
        weight = next(c for c in narrow.graph.initializer if c.name == node.input[1])
        values = numpy_helper.to_array(weight)
        step = np.float32(np.abs(values).max() / 127)
        narrow.graph.initializer.extend([numpy_helper.from_array(np.round(values / step).astype(np.int8), f"{weight.name}_8"),
                                         numpy_helper.from_array(step, f"{weight.name}_step")])
        narrow.graph.node.insert(0, helper.make_node("DequantizeLinear", [f"{weight.name}_8", f"{weight.name}_step"], [weight.name]))
        narrow.graph.initializer.remove(weight)
    onnx.save(narrow, f"{folder}/narrow.onnx")
    two = onnx.load(f"{folder}/perceptron.onnx")
    two.graph.output.append(helper.make_tensor_value_info("v3", TensorProto.FLOAT, None))
    onnx.save(two, f"{folder}/two.onnx")
    # the first output, which is scored, is a gate itself: no refit changes it
    two.graph.output.insert(0, helper.make_tensor_value_info("v1", TensorProto.FLOAT, None))
    onnx.save(two, f"{folder}/gate.onnx")
    for name, training in ("random", True), ("still", False):
        save(name, [16], [*perceptron[:2], ("Dropout", [np.float32(0.5), np.array(training)], {}), *perceptron[2:]])
    # names of other bytes than UTF-8, and of more bytes than a file can keep
    head = [("MatMul", [normal(16, 24, scale=0.5)], {}), silu, ("MatMul", [normal(24, 4, scale=0.4)], {})]
    save("named", [16], head)
    with open(f"{folder}/named.onnx", "rb") as file:
        content = file.read()
    with open(f"{folder}/named.onnx", "wb") as file:
        file.write(content.replace(b"v1", b"\xff\xc3"))
    long = onnx.load_from_string(content)
    for node in long.graph.node:
        for names in node.input, node.output:
            names[:] = ["v" * 10000 if name == "v0" else name for name in names]
    onnx.save(long, f"{folder}/long.onnx")
    # what a policy of reinforcement learning does to its observations first
    save("normalised", [16], [("Sub", [normal(1, 16, scale=0.5)], {}), ("Div", [random.uniform(0.5, 1.5, (1, 16)).astype(np.float32)], {}),
                              *perceptron])
else:
    a = np.load(f"{folder}/{sys.argv[2]}.y.npy")
    b = np.load(f"{folder}/{sys.argv[3]}").reshape(a.shape)
    apart = float(np.abs(a - b).max() / np.abs(a).max())
    if not apart <= float(sys.argv[4]):
        sys.exit(f"{apart} of the largest value")
