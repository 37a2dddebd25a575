# SPDX-License-Identifier: MIT-0
# onnx_c_refused.py FOLDER: graphs of one operator in a form that C files do not have, each beside one that differs in nothing else and
# is written. Prints a line for each: the file, a tab, and what the refusal says, or nothing.
import sys

import numpy as np

for name, kind in (("float", float), ("int", int), ("bool", bool), ("object", object)):
    setattr(np, name, kind)
import onnx
from onnx import TensorProto, helper, numpy_helper

folder, count = sys.argv[1], 0


def write(says, op, shapes, constants=(), outputs=("y",), opset=17, kinds=None, **attributes):
    """A graph of one node 'n', whose first inputs are those of the network; constants: of the others, None where there is none."""
    global count
    count += 1
    inputs = [f"x{k}" for k in range(len(shapes))]
    given = [helper.make_tensor_value_info(x, kind, shape) for x, kind, shape in zip(inputs, kinds or [TensorProto.FLOAT] * len(inputs), shapes)]
    values = [(f"c{k}", c) for k, c in enumerate(constants)]
    node = helper.make_node(op, inputs + ["" if c is None else name for name, c in values], list(outputs), name="n", **attributes)
    seen = [helper.make_tensor_value_info(y, TensorProto.UNDEFINED, None) for y in outputs if y and not y.startswith("unread")]
    for value in seen:
        value.ClearField("type")
    graph = helper.make_graph([node], "graph", given, seen, [numpy_helper.from_array(c, name) for name, c in values if c is not None])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), f"{folder}/form{count}.onnx")
    print(f"form{count}.onnx", f"node 'n' ({op}): {says}" if says else "", sep="\t")


def f(*shape):
    return np.linspace(-1, 1, int(np.prod(shape)), dtype="f4").reshape(shape)


def whole(*x, kind="i8"):
    return np.array(x, dtype=kind)


w, r = f(1, 8, 3), f(1, 8, 2)
for last in ("Tanh", "TANH", "Softsign"):
    write("" if last.upper() == "TANH" else "activation 'Softsign' is not available", "LSTM", [[3, 1, 3]], [w, r], hidden_size=2,
          activations=["Sigmoid", "Tanh", last])
for steps in (3, 2):
    write("" if steps == 3 else "sequences of different lengths are not available", "LSTM", [[3, 1, 3]], [w, r, None, whole(steps, kind="i4")],
          hidden_size=2)
for peepholes in ([], [f(1, 6)]):
    write("peephole connections are not available" if peepholes else "", "LSTM", [[3, 1, 3]], [w, r, None, None, None, None, *peepholes],
          hidden_size=2)
for places in ("unread", "places"):
    write("" if places == "unread" else "the places of maxima are not available", "MaxPool", [[1, 2, 4, 4]], outputs=("y", places),
          kernel_shape=[2, 2])
for mean in ("unread", "mean"):
    write("" if mean == "unread" else "its second output is not available", "LayerNormalization", [[2, 3]], [f(3)], outputs=("y", mean))
for training in (0, 1):
    write("it is in training mode" if training else "", "BatchNormalization", [[2, 3]], [f(3), f(3), f(3), f(3) + 2],
          outputs=("y", "unread1", "unread2") if training else ("y",), training_mode=training)
for to, says in ((TensorProto.INT64, ""), (TensorProto.BOOL, ""), (TensorProto.INT32, "a conversion of float to int32 is not available"),
                 (TensorProto.UINT8, "a conversion of float to uint8 is not available")):
    write(says, "Cast", [[2, 3]], to=to)
for reduction in ("none", "add"):
    write("" if reduction == "none" else "reduction 'add' is not available", "ScatterND", [[4]], [whole([1], [3]), f(2)], reduction=reduction)
for mode in ("half_pixel", "tf_crop_and_resize"):
    write("" if mode == "half_pixel" else "interpolation with tf_crop_and_resize is not available", "Resize", [[1, 1, 4, 4]],
          [whole(0, 0, 0, 0, 1, 1, 1, 1, kind="f4"), whole(1, 1, 2, 2, kind="f4")], mode="linear", coordinate_transformation_mode=mode)
write("", "Gather", [[4, 2]], [whole(3, 0)])
write("input 1 depends on the inputs of the network", "Gather", [[4, 2], [2]], kinds=[TensorProto.FLOAT, TensorProto.INT64])
write("", "Sign", [[3]])
write("input 0 is of type int64; expected float", "Sign", [[3]], kinds=[TensorProto.INT64])
for many in (64, 65):
    write("" if many == 64 else "it has more than 64 inputs", "Sum", [[2]], [f(2)] * (many - 1))
for many in (64, 65):
    write("" if many == 64 else "it has more than 64 outputs", "Split", [[many]], outputs=[f"y{k}" for k in range(many)], axis=0)
for opset in (6, 7):
    attributes = {"axis": 0, "broadcast": 1} if opset == 6 else {}
    write("attribute axis of opset 6 is not supported" if opset == 6 else "", "Add", [[3]], [f(3)], opset=opset, **attributes)
for scale in (f(4), f(3, 4)):
    write("" if scale.ndim == 1 else "scale or bias has not the shape of a row", "LayerNormalization", [[2, 3, 4]], [scale])
