# SPDX-License-Identifier: MIT-0
# reluize_branches.py FOLDER: rate.onnx, a network with nodes If for test_reluize_c.sh, like a public voice detector: a condition on the
# sampling rate, an input, with a gate in each branch, and behind it one on a shape. x.npy are its samples, one.npy the first one,
# rate.npy is a sampling rate.
import sys

import numpy as np

for name, kind in (("float", float), ("int", int), ("bool", bool), ("object", object)):
    setattr(np, name, kind)
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = sys.argv[1]
rng = np.random.default_rng(3)
node, tensor = helper.make_node, numpy_helper.from_array


def value(name, kind=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def branch(name):
    """A layer with SiLU, whose weights are those of this branch, then one operator or another, by the number of its outputs."""
    then = helper.make_graph([node("MatMul", ["g", "w2"], ["u"])], "then", [], [value("u")])
    other = helper.make_graph([node("Exp", ["g"], ["u"])], "other", [], [value("u")])
    nodes = [node("MatMul", ["x", "w1"], ["z"]), node("Sigmoid", ["z"], ["s"]), node("Mul", ["z", "s"], ["g"]), node("Shape", ["g"], ["shape"]),
             node("Gather", ["shape", "last"], ["size"]), node("Equal", ["size", "width"], ["wide"]),
             node("If", ["wide"], ["y1"], name="inside", then_branch=then, else_branch=other)]
    constants = [tensor(rng.normal(0, 0.5, s).astype("f4"), n) for n, s in (("w1", (8, 16)), ("w2", (16, 3)))]
    return helper.make_graph(nodes, name, [], [value("y1")], constants + [tensor(np.int64(1), "last"), tensor(np.int64(16), "width")])


nodes = [node("Equal", ["sr", "most"], ["fast"]), node("If", ["fast"], ["y"], name="rate", then_branch=branch("then"), else_branch=branch("else"))]
graph = helper.make_graph(nodes, "rate", [value("x", shape=["n", 8]), value("sr", TensorProto.INT64, [])], [value("y", shape=["n", 3])],
                          [tensor(np.int64(16000), "most")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model)
onnx.save(model, f"{folder}/rate.onnx")
x = rng.normal(0, 1, (400, 8)).astype("f4")
np.save(f"{folder}/x.npy", x)
np.save(f"{folder}/one.npy", x[:1])
np.save(f"{folder}/rate.npy", np.int64(16000))
