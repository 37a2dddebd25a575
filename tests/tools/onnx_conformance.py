# SPDX-License-Identifier: MIT-0
# onnx_conformance.py models|cases FOLDER [PUBLISHED]: the node tests of the package onnx, which computes their outputs by NumPy; or
# those of a folder PUBLISHED in the layout of the ONNX repository (NAME/model.onnx, NAME/test_data_set_0/input_0.pb, ...).
# models: FOLDER/NAME.onnx, and the list of these files on stdout.
# cases: beside each model FOLDER/NAME.data, an ONNX file whose initializers are the inputs (i0, i1, ...) and the expected outputs
# (o0, o1, ...), sequences as onnx_cases.c explains it; on stdout NAME, operator, and the reason if the case is left out, for it.
import collections
import glob
import os
import re
import sys
import warnings
import numpy

warnings.filterwarnings("ignore")
for name, kind in (("float", float), ("int", int), ("bool", bool), ("object", object)):
    setattr(numpy, name, kind)
import onnx
from onnx import helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

TRAINING = "ai.onnx.preview.training"
# operators that no exporter of PyTorch writes for the networks that are read, by why they are left out
LEFT_OUT = {
    "an operator on texts": ["StringNormalizer", "TfIdfVectorizer", "StringConcat", "StringSplit", "RegexFullMatch"],
    "it reads image files": ["ImageDecoder"],
    "an experimental operator": ["FlexAttention"],
    "random: the expected output is drawn by NumPy": ["Bernoulli", "RandomUniformLike"],
}
CASES = {
    "random: the expected output is drawn by NumPy": [
        "test_training_dropout_default", "test_training_dropout_default_mask", "test_training_dropout", "test_training_dropout_mask"],
    "a conversion to texts": ["test_cast_FLOAT_to_STRING", "test_castlike_FLOAT_to_STRING", "test_castlike_FLOAT_to_STRING_expanded"],
}
# what the expected values, or the constants of a function's body, are rounded to
ROUNDED = {"test_roialign": "2e-4", "test_hannwindow": "1e-4", "test_hammingwindow": "1e-4", "test_blackmanwindow": "1e-4",
           "test_averagepool_2d_ceil_last_window_starts_on_pad": "1e-3"}


def reason(case):
    """Returns why a case is left out, or an empty text."""
    graph = case.model.graph
    nodes = graph.node
    if any(n.domain == TRAINING for n in nodes) or any(n.domain == TRAINING for n in case.model.opset_import):
        return "an operator of training"
    for why, names in CASES.items():
        if case.name in names:
            return why
    if any(n.domain == "ai.onnx.ml" for n in nodes):
        return "an operator of trees and encoders, which no network has"
    for why, operators in LEFT_OUT.items():
        if any(n.op_type in operators for n in nodes):
            return why
    for value in [*graph.input, *graph.output]:
        if value.type.tensor_type.elem_type in (14, 15):
            return "complex numbers"
    for value, given in zip(graph.input, case.data_sets[0][0]):
        if value.type.WhichOneof("value") != "tensor_type":
            continue
        dims = value.type.tensor_type.shape.dim
        shape = given.dims if isinstance(given, onnx.TensorProto) else numpy.asarray(given).shape
        if [d.dim_value for d in dims if d.dim_value] != [n for n, d in zip(shape, dims) if d.dim_value] or len(dims) != len(shape):
            return "the data have another shape than the model declares"
    return ""


def tensors(name, value, kind):
    """Returns the TensorProtos of a value of this TypeProto."""
    what = kind.WhichOneof("value")
    if isinstance(value, onnx.OptionalProto):
        field = {1: "tensor_value", 3: "sequence_value"}.get(value.elem_type)
        value = getattr(value, field) if field else None
    if isinstance(value, onnx.SequenceProto):
        value = list(value.tensor_values)
    if what == "optional_type" and value is not None:
        return tensors(name, value, kind.optional_type.elem_type)
    if what == "tensor_type":
        return [tensor(name, value, kind.tensor_type.elem_type)]
    length = numpy_helper.from_array(numpy.array(-1 if value is None else len(value), "int64"), name + "#")
    elem = kind.sequence_type.elem_type.tensor_type.elem_type
    return [length] + [tensor(f"{name}.{k}", x, elem) for k, x in enumerate([] if value is None else value)]


def tensor(name, value, elem):
    """Returns a TensorProto of an array or a list of strings; bfloat16 is 16 bits, which NumPy does not have."""
    if isinstance(value, onnx.TensorProto):
        t = onnx.TensorProto()
        t.CopyFrom(value)
        t.name = name
        return t
    value = numpy.asarray(value)
    if elem == onnx.TensorProto.STRING:
        data = [s if isinstance(s, bytes) else str(s).encode() for s in value.flatten()]
        return helper.make_tensor(name, elem, value.shape, data)
    if elem == onnx.TensorProto.BFLOAT16:
        t = onnx.TensorProto(name=name, data_type=elem, dims=value.shape)
        if value.dtype != numpy.uint16:
            value = (value.astype("<f4").view("<u4") >> 16).astype("<u2")
        t.raw_data = value.astype("<u2").tobytes()
        return t
    return numpy_helper.from_array(numpy.ascontiguousarray(value).reshape(value.shape), name)


def write_data(path, case, inputs, outputs):
    graph = case.model.graph
    data = []
    for k, x in enumerate(inputs):
        data += tensors(f"i{k}", x, graph.input[k].type)
    for k, y in enumerate(outputs):
        data += tensors(f"o{k}", y, graph.output[k].type)
    g = helper.make_graph([], "data", [], [], data)
    with open(path, "wb") as f:
        f.write(helper.make_model(g).SerializeToString())


Published = collections.namedtuple("Published", "name model data_sets bytes")


def value_of(path, kind):
    """Returns the tensor, sequence or optional value of a file, which has this TypeProto."""
    proto = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}.get(kind.WhichOneof("value"), onnx.TensorProto)()
    with open(path, "rb") as f:
        proto.ParseFromString(f.read())
    return proto


def published(folder):
    """The cases of a folder, their first data set each."""
    for path in sorted(glob.glob(f"{folder}/*/model.onnx")):
        with open(path, "rb") as f:
            data = f.read()
        model = onnx.ModelProto()
        model.ParseFromString(data)
        values = []
        for which, infos in (("input", model.graph.input), ("output", model.graph.output)):
            files = glob.glob(os.path.join(os.path.dirname(path), "test_data_set_0", which + "_*.pb"))
            files.sort(key=lambda name: int(re.findall(r"\d+", name)[-1]))
            values.append([value_of(name, info.type) for name, info in zip(files, infos)])
        yield Published(os.path.basename(os.path.dirname(path)), model, [values], data)


def main():
    mode, folder = sys.argv[1:3]
    numpy.random.seed(1)
    seen = set()
    for case in published(sys.argv[3]) if len(sys.argv) > 3 else collect_testcases(None):
        if case.name in seen:
            continue
        seen.add(case.name)
        with open(f"{folder}/{case.name}.onnx", "wb") as f:
            f.write(case.bytes if len(sys.argv) > 3 else case.model.SerializeToString())
        if mode == "models":
            print(f"{folder}/{case.name}.onnx")
            continue
        why = reason(case)
        if not why:
            inputs, outputs = case.data_sets[0]
            write_data(f"{folder}/{case.name}.data", case, inputs, outputs)
            why = next(("~" + limit for start, limit in ROUNDED.items() if case.name.startswith(start)), "")
        operators = [n.op_type for n in case.model.graph.node]
        # an expanded function belongs to the operator that its name gives
        print(case.name, operators[0] if len(operators) == 1 else "expanded functions", why, sep="\t")


if __name__ == "__main__":
    main()
