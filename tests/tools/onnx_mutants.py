# SPDX-License-Identifier: MIT-0
# onnx_mutants.py FILE SEED COUNT PUBLISHED: random changes of the node tests of a folder PUBLISHED in the layout of the ONNX repository
# (NAME/model.onnx, NAME/test_data_set_0/input_0.pb, ...), in the format of onnx_random.py, for onnx_random.js and onnx_random.c.
#
# It knows nothing of any operator: what is changed is attributes (other values, values of another test of the same operator, none),
# types, shapes and elements of inputs (sizes 0 and 1, scalars, other ranks, infinities), inputs and outputs that are left out, inputs
# that become constants, and the opset. ONNX Runtime refuses more than a third of them; the others are compared. What it computes
# otherwise than ONNX says is left out: see deviates.
import random
import sys

import numpy as np

from onnx_conformance import published
import onnx
from onnx import helper, numpy_helper
from onnx_tensors import CODE, case_bytes

KINDS = {"f": ["f4", "f4", "f8", "f2"], "i": ["i8", "i4", "i4", "i1", "i2"], "u": ["u1", "u1", "u2", "u4", "u8"], "b": ["b1"]}
# their values are random; Dropout is, in training
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"}
NEWEST = 24  # what ONNX Runtime 1.30 knows; of later opsets it gives values that were never computed


def arrays(case):
    """The inputs of a case as arrays, or None if one is no tensor of numbers."""
    found = []
    for info, value in zip(case.model.graph.input, case.data_sets[0][0]):
        if not isinstance(value, onnx.TensorProto) or value.data_type not in CODE.values() or not info.name:
            return None
        found.append((info.name, numpy_helper.to_array(value)))
    return found if len(found) == len(case.model.graph.input) else None


def read(folder):
    cases, known = [], {}
    for case in published(folder):
        given = arrays(case)
        nodes = case.model.graph.node
        later = any(s.domain == "" and s.version > NEWEST for s in case.model.opset_import)
        if given is None or any(n.op_type in RANDOM for n in nodes) or len(nodes) > 8 or later:
            continue
        cases.append((case, given))
        for n in nodes:
            for a in n.attribute:
                known.setdefault(n.op_type, {}).setdefault(a.name, []).append(a)
    return cases, known


def change_number(r, x):
    return r.choice([0, 1, -1, 2, x + 1, x - 1, -x, 2 * x, x])


def change_attribute(r, n, known):
    names = list(known.get(n.op_type, {}))
    if not names:
        return
    name = r.choice(names)
    own = [a for a in n.attribute if a.name == name]
    if own and r.random() < 0.2:
        n.attribute.remove(own[0])
        return
    if not own or r.random() < 0.3:
        other = r.choice(known[n.op_type][name])
        for a in own:
            n.attribute.remove(a)
        n.attribute.add().CopyFrom(other)
        return
    a = own[0]
    if a.type == onnx.AttributeProto.INT:
        a.i = change_number(r, a.i)
    elif a.type == onnx.AttributeProto.FLOAT:
        a.f = r.choice([0.0, 1.0, -a.f, 2 * a.f, 0.5 * a.f, a.f + 0.1])
    elif a.type in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS):
        values = list(a.ints if a.type == onnx.AttributeProto.INTS else a.floats)
        how = r.random()
        if how < 0.15:
            r.shuffle(values)
        elif how < 0.25 and values:
            values.pop()
        elif how < 0.35:
            values.append(r.choice(values or [1]))
        elif values:
            k = r.randrange(len(values))
            values[k] = change_number(r, values[k])
        if a.type == onnx.AttributeProto.INTS:
            a.ClearField("ints")
            a.ints.extend(int(v) for v in values)
        else:
            a.ClearField("floats")
            a.floats.extend(values)


def numbers(n, shape, kind, like):
    """Elements of this type, of about the size of those of `like`."""
    low, high = (float(like.min()), float(like.max())) if like.size and np.isfinite(like.astype("f8")).all() else (0, 3)
    if kind == "b1":
        return n.random(shape) < 0.5
    if kind[0] in "iu":
        low, high = int(max(low, -100)), int(min(high, 100))
        if kind[0] == "u":
            low = max(low, 0)
        return n.integers(low, max(high, low) + 1, shape).astype(kind)
    return (n.standard_normal(shape) * 2 if low < 0 else n.uniform(low, high + 0.5, shape)).astype(kind)


def other_size(r, shape):
    """The shape with another size everywhere, where this one is."""
    old, new = r.choice([d for s in shape for d in s] or [1]), r.choice([0, 1, 1, 2, 3, 4, 5, 7])
    return [[new if d == old else d for d in s] for s in shape]


def mutate(r, n, case, given, known):
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    shapes, values = [list(a.shape) for _, a in given], [a for _, a in given]
    kinds = [a.dtype.str[1:] for a in values]
    fresh = [False] * len(values)
    constant = [False] * len(values)
    for _ in range(r.choice([1, 1, 2, 2, 3, 4])):
        what = r.randrange(9)
        node = r.choice(model.graph.node)
        k = r.randrange(len(values)) if values else 0
        if what in (0, 1):
            change_attribute(r, node, known)
        elif what == 2 and values:
            new = other_size(r, shapes)
            fresh = [f or a != b for f, a, b in zip(fresh, new, shapes)]
            shapes = new
        elif what == 3 and values:
            how = r.randrange(4)
            if how == 0 and shapes[k]:
                shapes[k][r.randrange(len(shapes[k]))] = r.choice([0, 1, 1, 2, 3])
            elif how == 1 and shapes[k]:
                shapes[k].pop(r.randrange(len(shapes[k])))
            elif how == 2 and len(shapes[k]) < 5:
                shapes[k].insert(r.randint(0, len(shapes[k])), r.choice([1, 2]))
            else:
                r.shuffle(shapes[k])
            fresh[k] = True
        elif what == 4 and values:
            # all inputs of one type change it together
            new, old = r.choice(KINDS.get(kinds[k][0], ["f4"])), kinds[k]
            if r.random() < 0.2:
                new = r.choice(list(CODE))
            for j in range(len(values)):
                if kinds[j] == old and (j == k or r.random() < 0.9):
                    kinds[j] = new
        elif what == 5 and values:
            fresh[k] = True
        elif what == 6 and len(node.input) > 1:
            j = r.randrange(1, len(node.input))
            if r.random() < 0.6:
                del node.input[j:]
            else:
                node.input[j] = ""
        elif what == 7:
            for s in model.opset_import:
                if s.domain == "":
                    s.version = r.choice([s.version, r.randint(7, NEWEST)])
        elif values:
            constant[k] = True
    graph = model.graph
    read_names = {i for node in graph.node for i in node.input}
    inputs = []
    del graph.input[:]
    for j, (name, value) in enumerate(given):
        if name not in read_names and len(graph.node) == 1:
            continue
        if fresh[j]:
            value = numbers(n, shapes[j], kinds[j], value)
            if kinds[j][0] == "f" and value.size and r.random() < 0.15:
                value.reshape(-1)[r.randrange(value.size)] = r.choice([0.0, -0.0, np.inf, -np.inf, 1e4, 1e-7])
        value = np.asarray(value)
        with np.errstate(all="ignore"):
            value = value.astype(kinds[j])
        if constant[j]:
            graph.initializer.append(numpy_helper.from_array(value, name))
        else:
            inputs.append((name, value))
            graph.input.append(helper.make_tensor_value_info(name, CODE[kinds[j]], value.shape))
    made = [o for node in graph.node for o in node.output if o]
    outs = [o.name for o in graph.output if o.name in made]
    del graph.output[:]
    del graph.value_info[:]
    models = []
    for names in (outs, made):
        del graph.output[:]
        for name in names:
            graph.output.add().name = name
        models.append(model.SerializeToString())
    return (None, None) if deviates(model, inputs) else (inputs, models)


def deviates(model, inputs):
    """Whether ONNX Runtime 1.30 departs here from what ONNX says, so that a difference says nothing."""
    given = {name: array for name, array in inputs}
    for t in model.graph.initializer:
        given[t.name] = numpy_helper.to_array(t)
    for n in model.graph.node:
        a = {x.name: x for x in n.attribute}
        text = lambda name: a[name].s if name in a else b""
        read = [given[i] for i in n.input if i in given]
        # an empty axis that is reduced stays empty there; ONNX says that it becomes 1
        if n.op_type.startswith(("Reduce", "Arg")) and any(x.size == 0 for x in given.values()):
            return True
        # the sizes of windows with gaps do not follow from the inputs' sizes alone there, as ONNX says that they do
        if text("auto_pad").startswith(b"SAME") and "dilations" in a and set(a["dilations"].ints) != {1}:
            return True
        # indices that are no whole numbers are not truncated there
        if n.op_type == "OneHot" and read and read[0].dtype.kind == "f":
            return True
        # indices are those of the larger output there
        if n.op_type == "MaxUnpool" and len(n.input) > 2:
            return True
        # corners of sizes that are no whole numbers
        if n.op_type == "Resize" and text("coordinate_transformation_mode") == b"align_corners":
            return True
        # whether an infinite neighbour of weight 0 counts is left open
        if n.op_type in ("Resize", "Upsample", "GridSample", "DeformConv", "RoiAlign") and not all(
                np.isfinite(x.astype("f8")).all() for x in read):
            return True
        # masked scores are the least number there, and -inf in ONNX
        if n.op_type == "Attention" and "qk_matmul_output_mode" in a:
            return True
    return False


def main():
    path, seed, count, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    only = sys.argv[5] if len(sys.argv) > 5 else ""
    cases, known = read(folder)
    cases = [c for c in cases if only in c[0].name]
    made = 0
    with open(path, "wb") as f:
        for k in range(count):
            r, n = random.Random(seed * 1000003 + k), np.random.default_rng(seed * 1000003 + k)
            case, given = r.choice(cases)
            inputs, models = mutate(r, n, case, given, known)
            if inputs is None:
                continue
            made += 1
            f.write(case_bytes(inputs, models))
    print(made, 0)


if __name__ == "__main__":
    main()
