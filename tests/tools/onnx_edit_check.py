# SPDX-License-Identifier: MIT-0
# onnx_edit_check.py FOLDER COUNT: makes the edits that onnx_edit lists in FOLDER/NUMBER.a and .b with the package onnx, and
# compares: the messages must be equal, and every node, initializer and input that no edit concerns must have the same bytes.
import sys
import numpy, onnx
from onnx import TensorProto, helper, numpy_helper

folder, count = sys.argv[1], int(sys.argv[2])
FIELDS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data", "external_data")


def set_numbers(tensor, k):
    i = numpy.arange(int(numpy.prod(tensor.dims, dtype=numpy.int64))) % 1000
    had_raw = tensor.HasField("raw_data")
    for field in FIELDS:
        tensor.ClearField(field)
    if tensor.data_location == TensorProto.EXTERNAL:
        tensor.ClearField("data_location")
    x = i - k if tensor.data_type == TensorProto.INT64 else i * 0.5 - k
    kind = {TensorProto.FLOAT: "<f4", TensorProto.DOUBLE: "<f8", TensorProto.INT64: "<i8"}[tensor.data_type]
    tensor.raw_data = x.astype(kind).tobytes()
    if not len(i) and not had_raw:
        tensor.ClearField("raw_data")


def new_node(source, to, attributes):
    n = helper.make_node("Identity", [source], [to], name=to)
    if attributes:
        for name, value in (("ints", [1, -2, 300]), ("int", -2), ("floats", [0.25, -1e-3]), ("float", 0.25), ("text", "a text")):
            n.attribute.append(helper.make_attribute(name, value))
    return n


def edited(model, edits):
    g = model.graph
    before, gone, dropped = {}, set(), set()
    for kind, *what in edits:
        if kind == "data":
            set_numbers(g.initializer[int(what[0])], int(what[0]))
        elif kind == "node data":
            tensor = next(a.t for a in g.node[int(what[0])].attribute if a.name == "value")
            set_numbers(tensor, int(what[0]))
        elif kind == "insert":
            before.setdefault(int(what[0]), []).append(new_node(what[1], what[2], int(what[3])))
        elif kind == "input":
            g.node[int(what[0])].input[int(what[1])] = what[2]
        elif kind == "output":
            g.node[int(what[0])].output[int(what[1])] = what[2]
        elif kind == "remove":
            gone.add(int(what[0]))
        elif kind == "drop":
            dropped.add(g.initializer[int(what[0])].name)
        elif kind == "add":
            g.initializer.append(numpy_helper.from_array(numpy.arange(1, 7, dtype="<f4").reshape(2, 3), what[0]))
            if model.ir_version < 4:
                g.input.append(helper.make_tensor_value_info(what[0], TensorProto.FLOAT, [2, 3]))
    nodes = [n for i, node in enumerate([*g.node, None]) for n in before.get(i, []) + ([node] if i not in gone else []) if n]
    nodes = [n.SerializeToString() for n in nodes]
    del g.node[:]
    for n in nodes:
        g.node.add().ParseFromString(n)
    for field in (g.initializer, g.input):
        for i in reversed(range(len(field))):
            if field[i].name in dropped:
                del field[i]
    return model


bad = done = 0
for number in range(count):
    for kind in "ab":
        lines = [line.rstrip("\n").split("\t") for line in open(f"{folder}/{number}.{kind}")]
        expected = edited(onnx.load(lines[0][1], load_external_data=False), lines[1:])
        found = onnx.load(f"{folder}/{number}.{kind}.onnx", load_external_data=False)
        done += 1
        if found != expected:
            bad += 1
            if bad <= 5:
                print(f"# {lines[0][1]}, {number}.{kind}: another model than with the same edits by the package onnx")
print(f"# {done} files with edits")
print("FAIL" if bad or not done else "ok", "files with edits differ from the original by exactly these edits" + (f": {bad} do not" if bad else ""))
sys.exit(bad > 0)
