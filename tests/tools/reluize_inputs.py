# SPDX-License-Identifier: MIT-0
# reluize_inputs.py FOLDER: writes pairs of files that compute the same, and their inputs: NAME_batch.onnx takes samples in its first
# dimension, NAME.onnx takes one sample alone: a vector, an image, a sequence of tokens, or, with a state as recurrent layers have it,
# a vector beside a state for one sample and a number. reluize_inputs.py FOLDER NAME: compares the reports of a pair.
import json
import sys
import numpy as np
np.__dict__.update((name, kind) for name, kind in (("float", float), ("int", int), ("bool", bool), ("object", object))
                   if name not in np.__dict__)
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = sys.argv[1]
random = np.random.RandomState(7)
F, I = TensorProto.FLOAT, TensorProto.INT64


def normal(*shape, scale=1.0):
    return (random.standard_normal(shape) * scale).astype(np.float32)


def save(name, inputs, rank, nodes, constants):
    """nodes: lines OPERATOR INPUT... > OUTPUT KEY=WHOLE...; rank: of y"""
    made = []
    for line in nodes:
        left, right = line.split(" > ")
        output, *keys = right.split()
        op, *names = left.split()
        made.append(helper.make_node(op, ["" if n == "-" else n for n in names], [output],
                                     **{k: [int(v) for v in x.split(",")] if "," in x else int(x) for k, x in (p.split("=") for p in keys)}))
    graph = helper.make_graph(made, "graph", [helper.make_tensor_value_info(n, kind, shape) for n, kind, shape in inputs],
                              [helper.make_tensor_value_info("y", F, [None] * rank)],
                              [numpy_helper.from_array(v, n) for n, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), f"{folder}/{name}.onnx")


def array(name, x):
    np.save(f"{folder}/{name}.npy", x)


def silu(x):
    return [f"Sigmoid {x} > {x}s", f"Mul {x} {x}s > {x}g"]


def write():
    head = ["MatMul a w > b", "Add b v > c", *silu("c"), "MatMul cg w2 > y"]
    layers = {"w": normal(16, 24, scale=0.5), "v": normal(24, scale=0.3), "w2": normal(24, 5, scale=0.4)}
    x = normal(500, 16)
    array("vector", x)
    np.savetxt(f"{folder}/vector.csv", x, delimiter=",", fmt="%.9g")
    for name, shape in (("vector", [16]), ("vector_batch", ["batch", 16])):
        save(name, [("x", F, shape)], len(shape), ["Identity x > a", *head], layers)
    # the size is open, too, where there is no batch
    save("open", [("x", F, ["n"])], 1, ["Identity x > a", *head], layers)

    conv = ["Conv a k l > b pads=1,1,1,1", *silu("b"), "GlobalAveragePool bg > d", "Flatten d > e", "MatMul e w > y"]
    filters = {"k": normal(8, 3, 3, 3, scale=0.4), "l": normal(8, scale=0.3), "w": normal(8, 5), "axes": np.array([0])}
    array("image", normal(300, 3, 8, 8))
    save("image", [("x", F, [3, 8, 8])], 2, ["Unsqueeze x axes > a", *conv], filters)
    save("image_batch", [("x", F, ["batch", 3, 8, 8])], 2, ["Identity x > a", *conv], filters)

    text = ["Gather table x > e", "MatMul e w > c", *silu("c"), "MatMul cg w2 > y"]
    table = {"table": normal(20, 16), "w": layers["w"], "w2": layers["w2"]}
    array("tokens", random.randint(0, 20, (300, 7)))
    save("tokens", [("x", I, [7])], 2, text, table)
    save("tokens_batch", [("x", I, ["batch", 7])], 3, text, table)

    # Concat refuses more samples than the state has
    merge = ["Gather h two > g", "Cast rate > r to=1", "Mul g r > q", "Concat x q > a axis=1", *head]
    state, two = normal(2, 1, 8), {"two": np.array(1)}
    joined = {**layers, "w": normal(24, 24, scale=0.5)}
    array("state", x)
    array("state_h", state)
    array("state_rate", np.array(2))
    # a state for each sample, as an array with one dimension more than the input
    array("state_each", np.repeat(state[None], 500, 0))
    array("state_second", np.repeat(state, 500, 1))
    save("state", [("x", F, ["batch", 16]), ("h", F, [2, "batch", 8]), ("rate", I, [])], 2, merge, {**joined, **two})
    # a second input of two numbers for each sample, as detectors take the size of an image: for each sample, or one for all
    sized = ["Cast size > r to=1", "MatMul r s > q", "Add x q > a", *head]
    small = {**layers, "s": normal(2, 16, scale=0.02)}
    array("size_x", x[:1])
    array("size_one", np.array([[64, 48]]))
    array("size_each", np.repeat([[64, 48]], 500, 0))
    array("size_three", np.repeat([[64, 48]], 3, 0))
    save("size", [("size", I, ["batch", 2]), ("x", F, ["batch", 16])], 2, sized, small)
    save("state_batch", [("x", F, ["batch", 16])], 2,
         ["Shape x > s", "Gather s zero > n", "Concat n eight > m axis=0", "Expand q m > z", "Concat x z > a axis=1", *head],
         {**joined, "zero": np.array([0]), "eight": np.array([8]), "q": 2 * state[1]})


def compare(name):
    one, many = (json.load(open(f"{folder}/{n}.json")) for n in (name, sys.argv[3]))
    for way in ("cold", "refitted"):
        for key in ("mean_dlogit", "max_dlogit"):
            a, b = one[way][key], many[way][key]
            if not (b > 0 and abs(a - b) <= 1e-3 * b):
                sys.exit(f"{way}: {key} is {a}, with a batch {b}")


if len(sys.argv) == 2:
    write()
else:
    compare(sys.argv[2])
