# SPDX-License-Identifier: MIT-0
# onnx_c_branches.py FOLDER: networks with nodes If for test_onnx_c.sh. rate.onnx is like a public voice detector: a condition on the
# sampling rate, an input; in its branches, conditions on shapes, and names and constants that both branches have. data.onnx has a
# condition on an element of the input. x.npy is an input, rate16000.npy and rate8000.npy are sampling rates.
import sys

import numpy as np

for name, kind in (("float", float), ("int", int), ("bool", bool), ("object", object)):
    setattr(np, name, kind)
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = sys.argv[1]
rng = np.random.default_rng(5)
node, tensor = helper.make_node, numpy_helper.from_array


def value(name, kind=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def branch(name, width, inner):
    """A product with a constant of this branch, then one operator or another, by a condition on the shape."""
    then = helper.make_graph([node(inner, ["t"], ["u"], name="n")], "then", [], [value("u")])
    other = helper.make_graph([node("Neg", ["t"], ["u"], name="n")], "other", [], [value("u")])
    nodes = [node("MatMul", ["h", "w"], ["t"], name="product"), node("Shape", ["t"], ["s"]), node("Gather", ["s", "last"], ["size"]),
             node("Equal", ["size", "width"], ["wide"]), node("If", ["wide"], ["y1"], name="inside", then_branch=then, else_branch=other),
             node("Identity", ["h"], ["y2"])]
    constants = [tensor(rng.normal(0, 1, (6, 4)).astype("f4"), "w"), tensor(np.int64(1), "last"), tensor(np.int64(width), "width")]
    return helper.make_graph(nodes, name, [], [value("y1"), value("y2")], constants)


def save(name, nodes, inputs, constants):
    graph = helper.make_graph(nodes, name, inputs, [value("a", shape=[1, 4]), value("b", shape=[1, 6])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, f"{folder}/{name}.onnx")


x = value("x", shape=[1, 6])
choose = node("If", ["fast"], ["a", "b"], name="rate", then_branch=branch("then", 4, "Tanh"), else_branch=branch("else", 5, "Exp"))
save("rate", [node("Abs", ["x"], ["h"]), node("Equal", ["sr", "most"], ["fast"]), choose], [x, value("sr", TensorProto.INT64, [])],
     [tensor(np.int64(16000), "most")])
save("data", [node("Abs", ["x"], ["h"]), node("ReduceMax", ["x"], ["top"], keepdims=0), node("Greater", ["top", "zero"], ["fast"]), choose], [x],
     [tensor(np.float32(0), "zero")])
np.save(f"{folder}/x.npy", rng.normal(0, 1, (1, 6)).astype("f4"))
for rate in 16000, 8000:
    np.save(f"{folder}/rate{rate}.npy", np.int64(rate))
