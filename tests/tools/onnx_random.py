# SPDX-License-Identifier: MIT-0
# onnx_random.py FILE SEED COUNT [--only OPERATOR,...] [--nodes N] [--known FILE] [--floats 1]: random ONNX graphs with their inputs,
# grown operator by operator, for onnx_random.js (ONNX Runtime), onnx_random.c (the evaluator) and onnx_c_random.c (C files). With
# --floats 1 no other floating-point type is drawn than float, and few operands are inputs.
#
# A graph begins with two or three inputs. Each step takes an operator and a value that it can read, draws its attributes, and makes
# the other operands: values of the graph, new inputs, initializers or nodes Constant. Shapes come from onnx.shape_inference. What
# the package onnx knows (opsets up to 17 in Debian's) passes onnx.checker; later opsets are checked by ONNX Runtime alone.
# --known names a file with lines OPERATOR TYPE OPSET that ONNX Runtime refuses; such nodes are not made.
#
# FILE is a sequence of cases: the number of inputs and each input as a tensor, then the model twice, with its last values and with
# all values as outputs. A tensor: name, type, rank, dimensions, bytes, data. Numbers are little-endian.
import random
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")
for name, kind in (("float", float), ("int", int), ("bool", bool), ("object", object)):
    setattr(np, name, kind)
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference
import onnx_random_more
from onnx_random_more import Impossible
from onnx_tensors import CODE, case_bytes

TYPE = {v: k for k, v in CODE.items()}
FLOATS, REALS = ("f4", "f8", "f2"), ("f4", "f8")
WHOLES = ("i8", "i4", "i1", "u1", "i2", "u2", "u4", "u8")
INPUTS = ["f8", "f2", "i8", "i4", "u1", "b1"]
GIVEN = 0.4  # how often an operand becomes an input
if "--floats" in sys.argv:
    FLOATS = REALS = ("f4",)
    WHOLES, INPUTS, GIVEN = ("i8", "i4"), ["i8", "b1"], 0.1
NEWEST = onnx.defs.onnx_opset_version()



class Graph:
    def __init__(self, seed, known):
        self.r = random.Random(seed)
        self.n = np.random.default_rng(seed)
        self.opset = self.r.randint(9, 24)
        self.known = known
        self.nodes, self.inputs, self.initializers = [], [], []
        self.kind, self.shape, self.value, self.tame, self.hidden = {}, {}, {}, set(), set()
        self.pool, self.used, self.count = [], set(), 0
        self.ops, self.domains = [], {""}

    # ---- names and values ----
    def name(self):
        self.count += 1
        return f"v{self.count}"

    def numbers(self, kind, shape, least=None, most=None):
        n = self.n
        if kind == "b1":
            return n.random(shape) < 0.5
        if kind[0] in "iu":
            low = (0 if kind[0] == "u" else -5) if least is None else least
            return n.integers(low, 6 if most is None else most + 1, shape).astype(kind)
        x = n.standard_normal(shape) if least is None else n.uniform(least, most, shape)
        return np.asarray(x).astype(kind)

    def known_value(self, name, array, tame=True):
        array = np.asarray(array)
        self.kind[name], self.shape[name] = array.dtype.str[1:], list(array.shape)
        if tame:
            self.tame.add(name)
        return name

    def given(self, array):
        """A new input of the graph."""
        name = self.known_value(self.name(), array)
        self.inputs.append((name, np.asarray(array)))
        return name

    def constant(self, array):
        """An initializer, or a node Constant."""
        array = np.asarray(array)
        name = self.known_value(self.name(), array)
        self.value[name] = array
        if self.r.random() < 0.3:
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        elif self.r.random() < 0.3 and array.dtype.str[1:] in ("f4", "i8", "i4", "f8"):
            code = CODE[array.dtype.str[1:]]
            self.initializers.append(helper.make_tensor(name, code, array.shape, array.flatten().tolist()))
        else:
            self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def fresh(self, kind, shape, least=None, most=None):
        """A new operand of this type and shape: an input or a constant, or a value of the graph that fits."""
        if least is None and self.r.random() < 0.3:
            fits = [v for v in self.pool if self.kind[v] == kind and self.shape[v] == list(shape)]
            if fits:
                return self.r.choice(fits)
        array = self.numbers(kind, shape, least, most)
        return self.given(array) if self.r.random() < GIVEN else self.constant(array)

    def ints(self, *x, kind="i8"):
        return self.constant(np.array(x, dtype=kind))

    def pick(self, kinds=FLOATS, rank=None, least=0, most=9, good=None):
        fits = [v for v in self.pool if self.kind[v] in kinds and (rank is None or len(self.shape[v]) == rank)
                and least <= len(self.shape[v]) <= most and (good is None or good(self.shape[v]))]
        if fits and self.r.random() < 0.8:
            return self.r.choice(fits[-4:] if self.r.random() < 0.5 else fits)
        if rank is None:
            rank = self.r.randint(least, min(most, 4))
        shape = [self.r.randint(1, 5) for _ in range(rank)]
        if good is not None and not good(shape):
            raise Impossible
        kind = kinds[0] if self.r.random() < 0.6 else self.r.choice(kinds)
        return self.fresh_input(kind, shape)

    def fresh_input(self, kind, shape):
        v = self.given(self.numbers(kind, shape))
        self.pool.append(v)
        return v

    def calm(self, x):
        """A value like x of moderate size."""
        if x in self.tame:
            return x
        if self.opset < 12 and self.kind[x] not in REALS:
            raise Impossible
        return self.node("Tanh", [x], tame=True)

    def positive(self, x):
        kind = self.kind[x]
        x = self.node("Abs", [self.calm(x)], tame=True)
        return self.node("Add", [x, self.constant(np.array(0.5, dtype=kind))], tame=True)

    # ---- nodes ----
    def node(self, op, inputs, outputs=1, tame=False, shapes=None, kinds=None, readable=True, body_checked=True, **attributes):
        """Adds a node. Its outputs' types and shapes are inferred, unless they are given. Returns the first output's name."""
        first = next((self.kind.get(i, "") for i in inputs if i), "")
        if f"{op} {first} {self.opset}" in self.known:
            raise Impossible
        names = [self.name() if k not in attributes.get("_skip", ()) else "" for k in range(outputs)]
        attributes = {k: v for k, v in attributes.items() if k != "_skip" and v is not None}
        n = helper.make_node(op, inputs, names, **attributes)
        self.domains.add(n.domain)
        if shapes is None or kinds is None:
            shapes, kinds = self.infer(n, names)
        self.nodes.append(n)
        self.ops.append(op)
        for name, shape, kind in zip(names, shapes, kinds):
            if not name:
                continue
            self.kind[name] = kind
            if shape is not None:
                self.shape[name] = list(shape)
                if tame:
                    self.tame.add(name)
                if readable and None not in shape and int(np.prod(shape)) <= 4000 and len(shape) <= 6:
                    self.pool.append(name)
        for i in inputs:
            self.used.add(i)
        return names[0]

    def hide(self, op, inputs, **attributes):
        """Adds a node whose value is no output of the graph. Returns its name."""
        name = self.name()
        self.nodes.append(helper.make_node(op, inputs, [name], **{k: v for k, v in attributes.items() if v is not None}))
        self.ops.append(op)
        self.hidden.add(name)
        self.used.update(inputs)
        return name

    def infer(self, n, names):
        infos, constants, seen = [], [], set()
        for i in n.input:
            if not i or i in seen:
                continue
            seen.add(i)
            if i in self.value:
                constants.append(numpy_helper.from_array(self.value[i], i))
            else:
                infos.append(helper.make_tensor_value_info(i, CODE[self.kind[i]], self.shape[i]))
        outs = [helper.make_empty_tensor_value_info(o) for o in names if o]
        g = helper.make_graph([n], "one", infos, outs, constants)
        m = helper.make_model(g, opset_imports=[helper.make_opsetid("", min(self.opset, NEWEST))])
        try:
            m = shape_inference.infer_shapes(m, check_type=True, strict_mode=True, data_prop=True)
        except Exception as e:
            raise Impossible from e
        found = {o.name: o.type.tensor_type for o in m.graph.output}
        shapes, kinds = [], []
        for o in names:
            t = found.get(o)
            if o and (t is None or t.elem_type not in TYPE):
                raise Impossible
            dims = [d.dim_value if d.HasField("dim_value") else None for d in t.shape.dim] if o and t.HasField("shape") else None
            if o and dims is None:
                raise Impossible
            shapes.append(dims)
            kinds.append(TYPE[t.elem_type] if o else "")
        return shapes, kinds

    # ---- the whole ----
    def model(self, everything):
        made = [o for n in self.nodes for o in n.output if o and o not in self.hidden]
        read = {i for n in self.nodes for i in n.input}
        outs = made if everything else [o for o in made if o not in read] or made[-1:]
        infos = []
        renamed = random.Random(self.count)
        for name, array in self.inputs:
            dims = [f"{name}_{k}" if self.open and renamed.random() < 0.5 else d for k, d in enumerate(array.shape)]
            infos.append(helper.make_tensor_value_info(name, CODE[array.dtype.str[1:]], dims))
        outs = [helper.make_tensor_value_info(o, CODE[self.kind[o]], self.shape.get(o, [])) for o in outs]
        g = helper.make_graph(self.nodes, "random", infos, outs, self.initializers)
        sets = [helper.make_opsetid(d, 1 if d else self.opset) for d in sorted(self.domains)]
        m = helper.make_model(g, opset_imports=sets, ir_version=8)
        if not everything and self.opset <= NEWEST and self.domains == {""} and "SimplifiedLayerNormalization" not in self.ops:
            onnx.checker.check_model(m)
        return m.SerializeToString()


OPERATORS = {}


def operator(*names, since=1, until=99):
    def add(function):
        for name in names:
            OPERATORS.setdefault(name, []).append((since, until, function))
        return function
    return add


# ---- one input, element by element ----
@operator("Abs", "Neg", "Relu", "Identity", "Sign", since=9)
def _(g, op):
    kinds = FLOATS if op == "Relu" else FLOATS + ("i8", "i4", "i1")
    if op == "Sign":
        kinds = REALS + ("i8", "i4", "i1")
    x = g.pick(kinds)
    g.node(op, [x], tame=x in g.tame)


# ONNX Runtime does not round between two operators that it computes half in float for, so that what jumps is not given half.
@operator("Tanh", "Sigmoid", "Erf", "Softsign", "Sin", "Cos", "Atan", since=9)
def _(g, op):
    g.node(op, [g.pick(FLOATS)], tame=True)


@operator("Exp", "Softplus", "Elu", "Selu", "LeakyRelu", "HardSigmoid", "ThresholdedRelu", "Celu", "HardSwish", "Mish", "Tan",
          "Sinh", "Cosh", "Asinh", "Shrink", "Ceil", "Floor", "Round", "Gelu")
def _(g, op):
    since = {"Celu": 12, "HardSwish": 14, "Mish": 18, "Round": 11, "Gelu": 20, "ThresholdedRelu": 10}.get(op, 9)
    if g.opset < since:
        raise Impossible
    x = g.calm(g.pick(REALS if op in ("Ceil", "Floor", "Round", "ThresholdedRelu", "Shrink", "Tan") else FLOATS))
    a = {}
    if g.r.random() < 0.6:
        if op in ("Elu", "Selu", "LeakyRelu", "HardSigmoid", "ThresholdedRelu", "Celu"):
            a["alpha"] = round(g.r.uniform(0.1, 1.5), 3)
        if op == "Selu":
            a["gamma"] = round(g.r.uniform(0.5, 1.5), 3)
        if op == "HardSigmoid":
            a["beta"] = round(g.r.uniform(0.1, 0.7), 3)
        if op == "Shrink":
            a.update(lambd=round(g.r.uniform(0.1, 1), 3), bias=round(g.r.uniform(-0.5, 0.5), 3))
        if op == "Gelu":
            a["approximate"] = g.r.choice(["none", "tanh"])
    given = {"shapes": [g.shape[x]], "kinds": [g.kind[x]]} if op in ("Mish", "Gelu") else {}
    g.node(op, [x], tame=True, **given, **a)


@operator("Log", "Sqrt", "Reciprocal", "Acosh", "Asin", "Acos", "Atanh")
def _(g, op):
    x = g.pick(REALS)
    x = g.positive(x)
    if op == "Acosh":
        x = g.node("Add", [x, g.constant(np.array(1, dtype=g.kind[x]))], tame=True)
    if op in ("Asin", "Acos", "Atanh"):
        x = g.node("Tanh", [x], tame=True)
        x = g.node("Mul", [x, g.constant(np.array(0.9, dtype=g.kind[x]))], tame=True)
    g.node(op, [x], tame=True)


@operator("IsNaN", "IsInf", "Not")
def _(g, op):
    if op == "IsInf" and g.opset < 10:
        raise Impossible
    g.node(op, [g.pick(("b1",) if op == "Not" else REALS if op == "IsInf" else FLOATS)])


@operator("Clip")
def _(g, op):
    low, high = sorted([g.r.uniform(-2, 2), g.r.uniform(-2, 2)])
    if g.opset < 11:
        x = g.pick(("f4",))
        g.node(op, [x], tame=True, min=low if g.r.random() < 0.7 else None, max=high if g.r.random() < 0.7 else None)
        return
    x = g.pick(FLOATS + (("i8", "i4", "u1", "i1") if g.opset >= 12 else ()))
    k = g.kind[x]
    low, high = (low, high) if k in FLOATS else (int(abs(low)), int(abs(high)) + 2)
    ends = [g.constant(np.array(v, dtype=k)) if g.r.random() < 0.8 else "" for v in (low, high)]
    while ends and not ends[-1]:
        ends.pop()
    g.node(op, [x] + ends, tame=True)


@operator("Cast")
def _(g, op):
    x = g.pick(FLOATS + WHOLES + ("b1",))
    k = g.kind[x]
    to = g.r.choice(["f4", "f4", "f8", "f2", "i8", "i4", "i1", "u1", "b1", "i2", "u2", "u4", "u8"] if k != "f2" else ["f4", "f8"])
    if k in FLOATS and to in WHOLES:
        x = g.calm(x)
        if to[0] == "u":
            x = g.node("Abs", [x], tame=True)
    g.node(op, [x], tame=x in g.tame, to=CODE[to])


@operator("CastLike", since=15)
def _(g, op):
    x = g.pick(FLOATS + ("i4", "i8"))
    y = g.pick(FLOATS + ("i4", "i8") if g.kind[x] != "f2" else FLOATS)
    if g.kind[x] in FLOATS:
        x = g.calm(x)
    g.node(op, [x, y], tame=x in g.tame)


@operator("Dropout")
def _(g, op):
    x = g.pick(FLOATS)
    if g.opset < 12:
        g.node(op, [x], tame=x in g.tame, ratio=0.4)
    else:
        g.node(op, [x] + ([g.constant(np.array(0.3, dtype="f4"))] if g.r.random() < 0.5 else []), g.r.choice([1, 2]),
               tame=x in g.tame)


# ---- several inputs, element by element ----
def beside(g, x, kind=None, least=None, most=None):
    """An operand that is broadcast with x."""
    shape = list(g.shape[x])
    kind = kind or g.kind[x]
    if least is None:
        fits = [v for v in g.pool if g.kind[v] == kind and broadcast(g.shape[v], shape)]
        if fits and g.r.random() < 0.6:
            return g.r.choice(fits)
    for k in range(len(shape)):
        if g.r.random() < 0.3:
            shape[k] = 1
    shape = shape[g.r.randint(0, len(shape)) if g.r.random() < 0.4 else 0:]
    if g.r.random() < 0.1 and len(shape) < 4:
        shape = [g.r.randint(1, 3)] * (len(g.shape[x]) + 1 - len(shape)) + shape if len(shape) == len(g.shape[x]) else shape
    return g.fresh(kind, shape, least, most)


def broadcast(a, b):
    return all(x == y or 1 in (x, y) for x, y in zip(reversed(a), reversed(b)))


@operator("Add", "Sub", "Mul")
def _(g, op):
    x = g.pick(FLOATS + ("i8", "i4") + (("i1", "u1", "i2") if g.opset >= 14 else ()))
    y = beside(g, x)
    if op == "Mul":
        x, y = (g.calm(x), g.calm(y)) if g.kind[x] in FLOATS else (x, y)
    if op == "Mul" and g.kind[x] not in FLOATS and not {x, y} <= g.tame:
        raise Impossible
    pair = [x, y] if g.r.random() < 0.5 else [y, x]
    g.node(op, pair, tame={x, y} <= g.tame and op != "Mul" and g.kind[x] in FLOATS)


@operator("Div")
def _(g, op):
    x = g.pick(FLOATS + ("i8", "i4"))
    if g.kind[x] in FLOATS:
        y = g.positive(beside(g, x))
    else:
        y = beside(g, x, least=1, most=4)
    g.node(op, [x, y])


@operator("Mod", since=10)
def _(g, op):
    x = g.pick(REALS + ("i8", "i4"))
    real = g.kind[x] in FLOATS
    y = g.positive(beside(g, x)) if real else beside(g, x, least=1, most=4)
    g.node(op, [g.calm(x) if real else x, y], fmod=1 if real else g.r.choice([0, 1]))


@operator("Pow")
def _(g, op):
    x = g.pick(REALS)
    base = g.positive(x)
    power = g.constant(np.array(g.r.choice([2, 3, 0.5, -1, 1.7]), dtype=g.kind[x])) if g.r.random() < 0.6 else beside(g, base)
    if g.opset >= 12 and g.r.random() < 0.2:
        power = g.constant(np.array(g.r.choice([2, 3]), dtype=g.r.choice(["i4", "i8", "f8", "f4"])))
    g.node(op, [base, power if power in g.tame else g.calm(power)])


@operator("PRelu")
def _(g, op):
    x = g.pick(REALS, least=1)
    g.node(op, [x, g.fresh(g.kind[x], g.shape[x][-1:] if g.r.random() < 0.5 else [1])])


@operator("Max", "Min", "Sum", "Mean")
def _(g, op):
    x = g.pick(FLOATS + (("i8", "i4") if op in ("Max", "Min") and g.opset >= 12 else ()))
    g.node(op, [x] + [beside(g, x) for _ in range(g.r.randint(0, 2))])


@operator("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
def _(g, op):
    if g.opset < 12 and op.endswith("OrEqual"):
        raise Impossible
    kinds = ("i8", "i4", "b1") if op == "Equal" else REALS + ("i8", "i4")
    x = g.pick(kinds + (("f4",) if g.opset >= 11 else ()))
    g.node(op, [x, beside(g, x)])


@operator("And", "Or", "Xor")
def _(g, op):
    x = g.pick(("b1",))
    g.node(op, [x, beside(g, x)])


@operator("BitShift", since=11)
def _(g, op):
    x = g.pick(("u1", "u4", "u8"))
    g.node(op, [x, g.fresh(g.kind[x], g.shape[x], 0, 3)], direction=g.r.choice(["LEFT", "RIGHT"]))


@operator("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", since=18)
def _(g, op):
    x = g.pick(("i4", "i8", "u1"))
    g.node(op, [x] if op == "BitwiseNot" else [x, g.fresh(g.kind[x], g.shape[x])], shapes=[g.shape[x]], kinds=[g.kind[x]])


@operator("Where")
def _(g, op):
    x = g.pick(("f4", "f8", "i8", "i4", "u1", "f2"))
    g.node(op, [beside(g, x, "b1"), x, beside(g, x)])


# ---- along axes ----
def some_axes(g, rank, least=1):
    axes = sorted(g.r.sample(range(rank), g.r.randint(min(least, rank), rank)))
    return [a - rank if g.r.random() < 0.3 else a for a in axes]


@operator("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
          "ReduceLogSum", "ReduceLogSumExp")
def _(g, op):
    x = g.pick(REALS + (("i4", "i8") if op in ("ReduceSum", "ReduceMax", "ReduceMin") else ()) + ("f2",) * ("Log" not in op),
               least=1)
    if g.kind[x] in FLOATS:
        x = g.positive(x) if op == "ReduceLogSum" else g.calm(x)
    rank = len(g.shape[x])
    axes = some_axes(g, rank)
    if 0 in g.shape[x]:
        # ONNX Runtime ignores negative axes where there is no element: it leaves (0) as (0), where ONNX says (1)
        axes = [a % rank for a in axes]
    keep = g.r.choice([0, 1, None])
    by_input = g.opset >= (13 if op == "ReduceSum" else 18)
    empty = g.r.random() < 0.2
    real = sorted(a % rank for a in axes) if not empty else list(range(rank))
    noop = 1 if by_input and empty and g.r.random() < 0.3 else None
    shape = [1 if k in real else d for k, d in enumerate(g.shape[x]) if k not in real or keep != 0]
    if noop:
        shape = g.shape[x]
    given = {"shapes": [shape], "kinds": [g.kind[x]]}
    if by_input:
        g.node(op, [x] + ([] if empty else [g.ints(*axes)]), keepdims=keep, noop_with_empty_axes=noop, **given)
    else:
        if g.opset < 11:
            axes = [a % rank for a in axes]
        g.node(op, [x], keepdims=keep, axes=None if empty else axes, **given)


@operator("ArgMax", "ArgMin")
def _(g, op):
    x = g.pick(("f4", "f8", "i4", "i8"), least=1)
    rank = len(g.shape[x])
    a = {"axis": g.r.randint(-rank if g.opset >= 11 else 0, rank - 1), "keepdims": g.r.choice([0, 1, None])}
    if g.opset >= 12:
        a["select_last_index"] = g.r.choice([0, 1, None])
    g.node(op, [x], **a)


@operator("CumSum", since=11)
def _(g, op):
    x = g.pick(("f4", "f8", "i4", "i8"), least=1)
    rank = len(g.shape[x])
    axis = np.array(g.r.randint(-rank, rank - 1), dtype=g.r.choice(["i4", "i8"]))
    if g.kind[x] in FLOATS:
        x = g.calm(x)
    g.node(op, [x, g.constant(axis)], exclusive=g.r.choice([0, 1, None]), reverse=g.r.choice([0, 1, None]))


@operator("Softmax", "LogSoftmax", "Hardmax")
def _(g, op):
    x = g.pick(REALS + (("f2",) if op != "Hardmax" else ()), least=1)
    rank = len(g.shape[x])
    g.node(op, [x], tame=op != "LogSoftmax",
           axis=g.r.choice([None, g.r.randint(-rank if g.opset >= 11 else 0, rank - 1)]))


@operator("TopK", since=10)
def _(g, op):
    x = g.pick(("f4", "f8", "i8", "i4"), least=1)
    rank = len(g.shape[x])
    axis = g.r.randint(-rank, rank - 1) if g.opset >= 11 else g.r.randint(0, rank - 1)
    a = {} if g.opset < 11 else {"largest": g.r.choice([0, 1, None]), "sorted": 1}
    k = g.r.randint(1, g.shape[x][axis])
    g.node(op, [x, g.ints(k)], 2, axis=axis, **a)


@operator("LpNormalization")
def _(g, op):
    x = g.pick(REALS, least=1)
    rank = len(g.shape[x])
    y = g.positive(x)
    g.node(op, [y], tame=True, axis=g.r.randint(-rank, rank - 1), p=g.r.choice([1, 2]))


# ---- shapes and indices ----
@operator("Reshape")
def _(g, op):
    x = g.pick(FLOATS + ("i8", "b1", "u1", "i4"))
    count = int(np.prod(g.shape[x]))
    shape, left = [], count
    while left > 1 and len(shape) < 5:
        f = g.r.choice([d for d in range(1, left + 1) if left % d == 0])
        shape.append(f)
        left //= f
    shape += [left] if left > 1 or not shape else []
    to = list(shape)
    if g.r.random() < 0.4:
        to[g.r.randrange(len(to))] = -1
    for k in range(min(len(to), len(g.shape[x]))):
        if to[k] == g.shape[x][k] and g.r.random() < 0.5:
            to[k] = 0
    if g.r.random() < 0.1:
        to = [-1]
    g.node(op, [x, g.ints(*to)], tame=x in g.tame, shapes=[shape if to != [-1] else [count]], kinds=[g.kind[x]])


@operator("Flatten")
def _(g, op):
    x = g.pick(FLOATS + ("i8",))
    rank = len(g.shape[x])
    g.node(op, [x], tame=x in g.tame, axis=g.r.choice([None if rank else 0, g.r.randint(-rank if g.opset >= 11 else 0, rank)]))


@operator("Transpose")
def _(g, op):
    x = g.pick(FLOATS + ("i8", "b1", "u1"))
    perm = list(range(len(g.shape[x])))
    g.r.shuffle(perm)
    g.node(op, [x], tame=x in g.tame, perm=perm if perm and g.r.random() < 0.8 else None)


@operator("Unsqueeze", "Squeeze")
def _(g, op):
    x = g.pick(FLOATS + ("i8", "b1"), most=4)
    rank = len(g.shape[x])
    if op == "Unsqueeze":
        n = g.r.randint(1, 2)
        axes = g.r.sample(range(rank + n), n)
        if g.opset >= 11 and g.r.random() < 0.4:
            axes = [a - rank - n for a in axes]
    else:
        ones = [k for k, d in enumerate(g.shape[x]) if d == 1]
        if not ones:
            x = g.node("Unsqueeze", [x] + ([g.ints(0)] if g.opset >= 13 else []), tame=x in g.tame,
                       **({} if g.opset >= 13 else {"axes": [0]}))
            ones, rank = [0], rank + 1
        axes = g.r.sample(ones, g.r.randint(1, len(ones)))
        if g.opset >= 11 and g.r.random() < 0.4:
            axes = [a - rank for a in axes]
        if g.r.random() < 0.2:
            axes = []
    if g.opset >= 13:
        g.node(op, [x] + ([g.ints(*axes)] if axes else []), tame=x in g.tame)
    else:
        g.node(op, [x], tame=x in g.tame, axes=axes or None)


@operator("Concat")
def _(g, op):
    x = g.pick(FLOATS + ("i8", "b1"), least=1)
    rank = len(g.shape[x])
    axis = g.r.randint(-rank if g.opset >= 11 else 0, rank - 1)
    parts = [x]
    for _ in range(g.r.randint(0, 2)):
        shape = list(g.shape[x])
        shape[axis] = g.r.randint(1, 3)
        parts.append(g.fresh(g.kind[x], shape))
    g.r.shuffle(parts)
    g.node(op, parts, tame=set(parts) <= g.tame, axis=axis)


@operator("Split")
def _(g, op):
    x = g.pick(("f4", "f8", "i8", "i4"), least=1)
    rank = len(g.shape[x])
    axis = g.r.randint(-rank if g.opset >= 11 else 0, rank - 1)
    size = g.shape[x][axis]
    equal = [n for n in (2, 3, 4) if size % n == 0]
    if g.opset >= 18 and g.r.random() < 0.4:
        n = g.r.randint(1, min(3, size))
        part = -(-size // n)
        sizes = [part] * (size // part) + ([size % part] if size % part else [])
        if len(sizes) != n:
            raise Impossible
        shapes = [[s if k == axis % rank else d for k, d in enumerate(g.shape[x])] for s in sizes]
        g.node(op, [x], n, shapes=shapes, kinds=[g.kind[x]] * n, axis=axis, num_outputs=n)
    elif equal and g.r.random() < 0.4 and g.opset < 18:
        g.node(op, [x], g.r.choice(equal), tame=x in g.tame, axis=axis)
    else:
        n = g.r.randint(1, min(3, size))
        cut = sorted(g.r.sample(range(1, size), n - 1)) if n > 1 else []
        sizes = [b - a for a, b in zip([0] + cut, cut + [size])]
        if g.opset >= 13:
            g.node(op, [x, g.ints(*sizes)], n, tame=x in g.tame, axis=axis)
        else:
            g.node(op, [x], n, tame=x in g.tame, axis=axis, split=sizes)


@operator("Slice")
def _(g, op):
    x = g.pick(FLOATS + ("i8", "i4"), least=1)
    rank = len(g.shape[x])
    axes = sorted(g.r.sample(range(rank), g.r.randint(1, rank)))
    starts, ends, steps = [], [], []
    for a in axes:
        d = g.shape[x][a]
        s, e = sorted(g.r.sample(range(d + 1), 2)) if d else (0, 1)
        step = 1
        if g.opset >= 10 and g.r.random() < 0.4:
            step = g.r.choice([2, 3, -1, -2])
        if step < 0:
            s, e = e - 1, s - 1
            e = -(10 ** 9) if e < 0 else e
        elif e == d and g.r.random() < 0.4:
            e = 2 ** 63 - 1 if g.opset >= 10 else 2 ** 31 - 1
        if 0 < s and g.r.random() < 0.3:
            s -= d
        if 0 < e < d and g.r.random() < 0.3:
            e -= d
        starts.append(s), ends.append(e), steps.append(step)
    if g.opset < 10:
        g.node(op, [x], tame=x in g.tame, starts=starts, ends=ends, axes=axes if axes != list(range(len(axes))) else None)
        return
    if g.opset >= 11 and g.r.random() < 0.4:
        axes = [a - rank for a in axes]
    kind = g.r.choice(["i8", "i4"]) if max(ends) < 2 ** 31 else "i8"
    ins = [x, g.ints(*starts, kind=kind), g.ints(*ends, kind=kind), g.ints(*axes, kind=kind)]
    if any(s != 1 for s in steps) or g.r.random() < 0.3:
        ins.append(g.ints(*steps, kind=kind))
    g.node(op, ins, tame=x in g.tame)


@operator("Gather")
def _(g, op):
    x = g.pick(FLOATS + ("i8", "b1"), least=1)
    rank = len(g.shape[x])
    axis = g.r.randint(-rank, rank - 1)
    d = g.shape[x][axis]
    index = g.numbers(g.r.choice(["i8", "i4"]), [g.r.randint(1, 3) for _ in range(g.r.randint(0, 2))], -d if g.opset >= 11 else 0, d - 1)
    g.node(op, [x, g.constant(index) if g.r.random() < 0.6 else g.given(index)], tame=x in g.tame, axis=axis)


@operator("GatherElements", since=11)
def _(g, op):
    x = g.pick(FLOATS + ("i8", "i4"), least=1)
    rank = len(g.shape[x])
    axis = g.r.randint(-rank, rank - 1)
    shape = [g.r.randint(1, d) for d in g.shape[x]]
    shape[axis] = g.r.randint(1, 4)
    d = g.shape[x][axis]
    g.node(op, [x, g.fresh(g.r.choice(["i8", "i4"]), shape, -d, d - 1)], tame=x in g.tame, axis=axis)


@operator("GatherND", since=11)
def _(g, op):
    x = g.pick(REALS + ("i8",), least=1)
    rank = len(g.shape[x])
    batch = g.r.randint(0, min(1, rank - 1)) if g.opset >= 12 else 0
    last = g.r.randint(1, rank - batch)
    shape = g.shape[x][:batch] + [g.r.randint(1, 3) for _ in range(g.r.randint(0, 1) if batch == 0 else g.r.randint(0, 1))]
    if batch and len(shape) < batch:
        raise Impossible
    index = np.stack([g.numbers("i8", shape, -g.shape[x][batch + k], g.shape[x][batch + k] - 1) for k in range(last)], -1)
    out = list(index.shape[:-1]) + g.shape[x][batch + last:]
    g.node(op, [x, g.constant(index)], tame=x in g.tame, shapes=[out], kinds=[g.kind[x]], batch_dims=batch or None)


@operator("ScatterElements", "Scatter")
def _(g, op):
    if (op == "Scatter") != (g.opset < 11):
        raise Impossible
    x = g.pick(("f4", "f8", "i8"), least=1)
    rank = len(g.shape[x])
    axis = g.r.randint(-rank if op != "Scatter" else 0, rank - 1)
    d = g.shape[x][axis]
    shape = [g.r.randint(1, k) for k in g.shape[x]]
    how = None
    if g.opset >= 16:
        how = g.r.choice([None, "none", "add", "mul"] + (["max", "min"] if g.opset >= 18 else []))
    if how in (None, "none"):
        # each element is written once
        column = np.array(g.n.permutation(d)[:shape[axis]])
        view = [1] * rank
        view[axis] = shape[axis]
        index = np.broadcast_to(column.reshape(view), shape).astype("i8")
    else:
        index = g.numbers("i8", shape, -d, d - 1)
    g.node(op, [x, g.constant(index), g.fresh(g.kind[x], shape)], shapes=[g.shape[x]], kinds=[g.kind[x]], axis=axis, reduction=how)


@operator("ScatterND", since=11)
def _(g, op):
    x = g.pick(("f4", "f8", "i8"), least=1)
    rank = len(g.shape[x])
    last = g.r.randint(1, rank)
    how = g.r.choice([None, "none", "add", "mul"] + (["max", "min"] if g.opset >= 18 else [])) if g.opset >= 16 else None
    n = g.r.randint(1, 3)
    rows = list(np.ndindex(*g.shape[x][:last]))
    if how in (None, "none"):
        rows = g.r.sample(rows, min(n, len(rows)))
    else:
        rows = [g.r.choice(rows) for _ in range(n)]
    index = np.array(rows, dtype="i8")
    g.node(op, [x, g.constant(index), g.fresh(g.kind[x], [len(rows)] + g.shape[x][last:])], shapes=[g.shape[x]], kinds=[g.kind[x]],
           reduction=how)


@operator("Expand")
def _(g, op):
    x = g.pick(FLOATS + ("i8", "b1"), most=3)
    to = [g.r.choice([1, d]) if d > 1 else g.r.randint(1, 3) for d in g.shape[x]]
    if g.r.random() < 0.4:
        to = [g.r.randint(1, 3)] + to
    g.node(op, [x, g.ints(*to)], tame=x in g.tame)


@operator("Tile")
def _(g, op):
    x = g.pick(("f4", "f8", "i8", "i4"), least=1, most=4)
    g.node(op, [x, g.ints(*[g.r.randint(1, 3) for _ in g.shape[x]])], tame=x in g.tame)


@operator("Pad")
def _(g, op):
    x = g.pick(("f4", "f8") + (("i8", "i4") if g.opset >= 13 else ()), least=1, most=4)
    rank = len(g.shape[x])
    mode = g.r.choice([None, "constant", "reflect", "edge"] + (["wrap"] if g.opset >= 19 else []))
    most = [2 if mode in (None, "constant", "edge") else min(2, d - 1) for d in g.shape[x]]
    pads = [g.r.randint(0, m) for m in most + most]
    if mode in (None, "constant") and g.r.random() < 0.3:
        k = g.r.randrange(rank)
        if g.shape[x][k] > 2:
            pads[k] = -1
    axes = None
    if g.opset >= 18 and g.r.random() < 0.5:
        axes = some_axes(g, rank)
        real = [a % rank for a in axes]
        pads = [pads[a] for a in real] + [pads[a + rank] for a in real]
    full = [0] * (2 * rank)
    for k, a in enumerate(real if axes else range(rank)):
        full[a], full[a + rank] = pads[k], pads[k + len(pads) // 2]
    shape = [d + full[k] + full[k + rank] for k, d in enumerate(g.shape[x])]
    value = g.r.choice([0, 1, 2])
    given = {"shapes": [shape], "kinds": [g.kind[x]], "tame": x in g.tame}
    if g.opset < 11:
        g.node(op, [x], mode=mode, pads=pads, value=float(value), **given)
        return
    ins = [x, g.ints(*pads)]
    if value and mode in (None, "constant"):
        ins.append(g.constant(np.array(value, dtype=g.kind[x])))
    if axes:
        ins += [""] * (3 - len(ins)) + [g.ints(*axes)]
    g.node(op, ins, mode=mode, **given)


@operator("DepthToSpace", "SpaceToDepth")
def _(g, op):
    b = 2
    c, h, w = g.r.randint(1, 3), g.r.randint(1, 3), g.r.randint(1, 3)
    shape = [g.r.randint(1, 2), c * 4, h, w] if op == "DepthToSpace" else [g.r.randint(1, 2), c, h * 2, w * 2]
    x = g.fresh("f4", shape)
    mode = g.r.choice([None, "DCR", "CRD"]) if op == "DepthToSpace" and g.opset >= 11 else None
    g.node(op, [x], tame=True, blocksize=b, mode=mode)


@operator("Shape", "Size")
def _(g, op):
    x = g.pick(FLOATS + ("i8", "b1"))
    rank = len(g.shape[x])
    a = {}
    shape = [rank] if op == "Shape" else []
    if op == "Shape" and g.opset >= 15 and g.r.random() < 0.5:
        a = {"start": g.r.randint(-rank - 1, rank), "end": g.r.choice([None, g.r.randint(-rank, rank + 1)])}
        at = lambda k: min(max(k + rank if k < 0 else k, 0), rank)
        shape = [max(0, (rank if a["end"] is None else at(a["end"])) - at(a["start"]))]
    g.node(op, [x], shapes=[shape], kinds=["i8"], readable=shape != [0], **a)


@operator("ConstantOfShape")
def _(g, op):
    shape = [g.r.randint(1, 4) for _ in range(g.r.randint(0, 3))]
    kind = g.r.choice(["f4", "f8", "i8", "i4", "b1"])
    value = numpy_helper.from_array(np.array([1], dtype=kind)) if g.r.random() < 0.7 else None
    g.node(op, [g.constant(np.array(shape, dtype="i8"))], shapes=[shape], kinds=[kind if value else "f4"], tame=True, value=value)


@operator("Range", since=11)
def _(g, op):
    kind = g.r.choice(["i8", "i4", "f4", "f8"])
    start, step, n = g.r.randint(-3, 3), g.r.choice([1, 2, -1, -2]), g.r.randint(1, 6)
    parts = [g.constant(np.array(v, dtype=kind)) for v in (start, start + step * n, step)]
    g.node(op, parts, shapes=[[n]], kinds=[kind])


@operator("OneHot")
def _(g, op):
    depth = g.r.randint(2, 4)
    x = g.fresh(g.r.choice(["i8", "i4"]), [g.r.randint(1, 4) for _ in range(g.r.randint(1, 2))], 0, depth - 1)
    rank = len(g.shape[x])
    values = g.constant(np.array([0.5, 2], dtype=g.r.choice(["f4", "i8"])))
    depth = g.constant(np.array(depth, dtype="i8"))
    axis = g.r.randint(-rank - 1, rank)
    shape = list(g.shape[x])
    shape.insert(axis % (rank + 1), int(g.value[depth]))
    g.node(op, [x, depth, values], shapes=[shape], kinds=[g.kind[values]], axis=axis)


@operator("NonZero", "Unique", "Compress")
def _(g, op):
    if op == "Unique" and g.opset < 11:
        raise Impossible
    x = g.pick(("f4", "i8") if op != "NonZero" else ("f4", "i8", "b1", "i4"), least=1)
    if op == "NonZero":
        g.node(op, [x], shapes=[[len(g.shape[x]), None]], kinds=["i8"])
    elif op == "Unique":
        axis = g.r.choice([None, g.r.randint(-len(g.shape[x]), len(g.shape[x]) - 1)])
        n = g.r.randint(1, 4)
        shape = [None] if axis is None else [None if k == axis % len(g.shape[x]) else d for k, d in enumerate(g.shape[x])]
        g.node(op, [x], n, shapes=[shape] + [[None]] * (n - 1), kinds=[g.kind[x]] + ["i8"] * (n - 1), axis=axis, sorted=g.r.choice([None, 0, 1]))
    else:
        axis = g.r.choice([None, g.r.randint(-len(g.shape[x]) if g.opset >= 11 else 0, len(g.shape[x]) - 1)])
        size = int(np.prod(g.shape[x])) if axis is None else g.shape[x][axis]
        shape = [None] if axis is None else [None if k == axis % len(g.shape[x]) else d for k, d in enumerate(g.shape[x])]
        g.node(op, [x, g.fresh("b1", [g.r.randint(1, size)])], shapes=[shape], kinds=[g.kind[x]], axis=axis)


@operator("Trilu", since=14)
def _(g, op):
    x = g.pick(("f4", "f8", "i8"), least=2)
    g.node(op, [x] + ([g.constant(np.array(g.r.randint(-3, 3), dtype="i8"))] if g.r.random() < 0.6 else []), tame=x in g.tame,
           upper=g.r.choice([0, 1, None]))


@operator("EyeLike")
def _(g, op):
    x = g.pick(("f4", "f8", "i8"), rank=2)
    g.node(op, [x], tame=True, k=g.r.choice([None, 1, -1]), dtype=g.r.choice([None, 1, 7]))


@operator("ReverseSequence", since=10)
def _(g, op):
    x = g.pick(REALS, least=2)
    t = g.r.randint(0, 1)
    n = g.fresh("i8", [g.shape[x][1 - t]], 1, g.shape[x][t])
    g.node(op, [x, n], tame=x in g.tame, time_axis=t, batch_axis=1 - t)


# ---- products ----
@operator("MatMul")
def _(g, op):
    x = g.calm(g.pick(REALS + ("f2",) * (g.r.random() < 0.3), least=1, most=4))
    k = g.shape[x][-1]
    shape = [k, g.r.randint(1, 5)] if g.r.random() < 0.8 else [k]
    if len(g.shape[x]) > 2 and len(shape) == 2 and g.r.random() < 0.4:
        shape = [g.r.choice([1, d]) for d in g.shape[x][:-2]] + shape
    g.node(op, [x, g.fresh(g.kind[x], shape)])


@operator("Gemm")
def _(g, op):
    ta, tb = g.r.choice([None, 0, 1]), g.r.choice([None, 0, 1])
    x = g.calm(g.pick(REALS, rank=2))
    m, k = g.shape[x] if not ta else g.shape[x][::-1]
    n = g.r.randint(1, 5)
    w = g.fresh(g.kind[x], [n, k] if tb else [k, n])
    ins = [x, w]
    if g.opset < 11 or g.r.random() < 0.7:
        ins.append(g.fresh(g.kind[x], g.r.choice([[n], [m, n], [1, n], [m, 1], [1], []])))
    g.node(op, ins, transA=ta, transB=tb, alpha=g.r.choice([None, 0.5, 2.0]), beta=g.r.choice([None, 0.25, 0.0]))


@operator("Einsum", since=12)
def _(g, op):
    text, shapes = g.r.choice([("ij,jk->ik", ([2, 3], [3, 4])), ("bij,bjk->bik", ([2, 3, 4], [2, 4, 2])), ("bhid,bhjd->bhij", ([2, 2, 3, 4], [2, 2, 5, 4])),
                               ("ij->ji", ([2, 3],)), ("ij->", ([2, 3],)), ("ii->i", ([3, 3],)), ("ij,ij->i", ([2, 3], [2, 3])), ("i,j->ij", ([2], [3])),
                               ("...ij,jk->...ik", ([2, 3, 4], [4, 2])), ("bi,ij,bj->b", ([2, 3], [3, 4], [2, 4])), ("ij,jk", ([2, 3], [3, 4]))])
    kind = g.r.choice(["f4", "f4", "f8"])
    g.node(op, [g.fresh(kind, s) for s in shapes], equation=text)


def window(g, op, n, size):
    """Attributes of a window over n dimensions, and its extents."""
    k = [g.r.randint(1, min(3, s)) for s in size]
    a = {"kernel_shape": k}
    if g.r.random() < 0.6:
        a["strides"] = [g.r.randint(1, 2) for _ in k]
    dilated = op in ("Conv", "ConvTranspose", "ConvInteger", "QLinearConv") or (op == "MaxPool" and g.opset >= 10)
    if dilated and g.r.random() < 0.3:
        a["dilations"] = [g.r.randint(1, 2) if (q - 1) * 2 + 1 <= s else 1 for q, s in zip(k, size)]
    if g.r.random() < 0.3:
        a["auto_pad"] = g.r.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
        if a["auto_pad"] != "VALID":
            a.pop("dilations", None)
    elif g.r.random() < 0.6:
        a["pads"] = [g.r.randint(0, q - 1) for q in k + k]
    return a


def image(g, channels=None, n=None, kind=None):
    n = n or g.r.choice([1, 2, 2, 2, 3])
    kind = kind or ("f4" if g.r.random() < 0.85 else "f8")
    fits = [v for v in g.pool if g.kind[v] == kind and len(g.shape[v]) == n + 2 and (channels is None or g.shape[v][1] == channels)]
    if fits and g.r.random() < 0.6:
        return g.calm(g.r.choice(fits))
    shape = [g.r.randint(1, 2), channels or g.r.randint(1, 4)] + [g.r.randint(2, 7 if n < 3 else 4) for _ in range(n)]
    v = g.fresh(kind, shape)
    return g.calm(v)


@operator("Conv")
def _(g, op):
    x = image(g)
    n, c = len(g.shape[x]) - 2, g.shape[x][1]
    a = window(g, op, n, g.shape[x][2:])
    group = g.r.choice([k for k in range(1, c + 1) if c % k == 0])
    out = group * g.r.randint(1, 3)
    ins = [x, g.fresh(g.kind[x], [out, c // group] + a["kernel_shape"])]
    if g.r.random() < 0.5:
        ins.append(g.fresh(g.kind[x], [out]))
    if g.r.random() < 0.2:
        a.pop("kernel_shape")
    g.node(op, ins, group=group if group > 1 else None, **a)


@operator("ConvTranspose")
def _(g, op):
    x = image(g, kind="f4")
    n, c = len(g.shape[x]) - 2, g.shape[x][1]
    a = window(g, op, n, g.shape[x][2:])
    if g.opset < 11 or n == 1:
        a.pop("auto_pad", None)
    group = g.r.choice([k for k in range(1, c + 1) if c % k == 0])
    out = g.r.randint(1, 3)
    if a.get("auto_pad", "VALID") == "VALID" and "strides" in a and g.r.random() < 0.4:
        a["output_padding"] = [g.r.randint(0, s - 1) for s in a["strides"]]
    ins = [x, g.fresh(g.kind[x], [c, out] + a["kernel_shape"])]
    if g.r.random() < 0.5:
        ins.append(g.fresh(g.kind[x], [out * group]))
    g.node(op, ins, group=group if group > 1 else None, **a)


@operator("MaxPool", "AveragePool", "LpPool")
def _(g, op):
    x = image(g, kind="f4" if op != "MaxPool" else None)
    n = len(g.shape[x]) - 2
    a = window(g, op, n, g.shape[x][2:])
    if g.opset >= 10 and op != "LpPool" and a.get("auto_pad") is None:
        a["ceil_mode"] = g.r.choice([0, 1, None])
    if op == "AveragePool":
        a["count_include_pad"] = g.r.choice([0, 1, None])
    if op == "LpPool":
        a["p"] = g.r.choice([1, 2, 3, None])
    g.node(op, [x], 2 if op == "MaxPool" and g.r.random() < 0.3 else 1, **a)


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def _(g, op):
    g.node(op, [image(g, kind="f4")])


@operator("BatchNormalization")
def _(g, op):
    x = image(g)
    c, k = g.shape[x][1], g.kind[x]
    ins = [x, g.fresh(k, [c]), g.fresh(k, [c]), g.fresh(k, [c]), g.fresh(k, [c], 0.5, 2)]
    g.node(op, ins, shapes=[g.shape[x]], kinds=[k], epsilon=g.r.choice([None, 1e-3]), momentum=g.r.choice([None, 0.7]))


@operator("InstanceNormalization")
def _(g, op):
    # values that vary, since the quotient of two roundings is no value to compare
    c = g.r.randint(1, 3)
    x = g.fresh_input("f4", [g.r.randint(1, 3), c] + [g.r.randint(2, 5) for _ in range(g.r.randint(1, 3))])
    g.node(op, [x, g.fresh("f4", [c]), g.fresh("f4", [c])], epsilon=g.r.choice([None, 1e-2]))


@operator("LayerNormalization", since=17)
def _(g, op):
    x = g.pick(REALS, least=1)
    rank = len(g.shape[x])
    axis = g.r.randint(-rank, rank - 1)
    shape, k = g.shape[x][axis:] if axis else g.shape[x], g.kind[x]
    if int(np.prod(shape)) < 2:
        raise Impossible
    g.node(op, [x, g.fresh(k, shape)] + ([g.fresh(k, shape)] if g.r.random() < 0.7 else []), tame=True, axis=axis, epsilon=g.r.choice([None, 1e-2]),
           shapes=[g.shape[x]], kinds=[k])


@operator("MeanVarianceNormalization")
def _(g, op):
    x = g.fresh_input("f4", [g.r.randint(1, 3), g.r.randint(1, 3), g.r.randint(3, 5), g.r.randint(2, 5)])
    g.node(op, [x], shapes=[g.shape[x]], kinds=["f4"], axes=g.r.choice([None, [0, 2, 3], [2, 3]]))


@operator("LRN")
def _(g, op):
    x = image(g, n=2, kind="f4")
    g.node(op, [x], size=g.r.choice([1, 3, 5]), alpha=g.r.choice([None, 0.1]), beta=g.r.choice([None, 0.5]), bias=g.r.choice([None, 2.0]))


@operator("Resize")
def _(g, op):
    x = image(g, n=g.r.choice([1, 2, 2, 2]), kind="f4")
    size = g.shape[x]
    mode = g.r.choice(["nearest", "linear"] + (["cubic"] if g.opset >= 11 and len(size) == 4 else []))
    if g.opset < 10:
        raise Impossible
    scale = [1.0, 1.0] + [g.r.choice([0.5, 1.0, 1.5, 2.0, 3.0, 0.7]) for _ in size[2:]]
    shape = [int(np.floor(np.float32(d) * np.float32(s))) for d, s in zip(size, scale)]
    if 0 in shape:
        raise Impossible
    a = {"mode": mode}
    if g.opset == 10:
        g.node(op, [x, g.constant(np.array(scale, "f4"))], shapes=[shape], kinds=["f4"], tame=True, **a)
        return
    a["coordinate_transformation_mode"] = g.r.choice([None, "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"])
    if mode == "nearest":
        a["nearest_mode"] = g.r.choice([None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        a["cubic_coeff_a"] = g.r.choice([None, -0.5])
        a["exclude_outside"] = g.r.choice([None, 1])
    if g.opset >= 18 and mode != "nearest" and g.r.random() < 0.3:
        a["antialias"] = 1
    roi = g.constant(np.array([], "f4")) if g.opset < 13 else ""
    # ONNX's tests and ONNX Runtime differ on the corners of a size that is no whole number, where it decreases
    corners = a["coordinate_transformation_mode"] == "align_corners"
    fractional = any(s < 1 and d * s != n for s, d, n in zip(scale, size, shape))
    if g.r.random() < 0.5 and not (corners and fractional):
        ins = [x, roi, g.constant(np.array(scale, "f4"))]
    else:
        shape = size[:2] + [g.r.randint(1, 2 * d) for d in size[2:]]
        ins = [x, roi, g.constant(np.array([], "f4")) if g.opset < 13 else "", g.ints(*shape)]
    g.node(op, ins, shapes=[shape], kinds=["f4"], **a)


@operator("Upsample", until=9)
def _(g, op):
    x = image(g, n=2, kind="f4")
    scale = [1, 1, g.r.choice([1, 2, 1.5]), g.r.choice([1, 2, 3])]
    shape = [int(d * s) for d, s in zip(g.shape[x], scale)]
    g.node(op, [x, g.constant(np.array(scale, "f4"))], shapes=[shape], kinds=["f4"], mode=g.r.choice([None, "nearest", "linear"]))


@operator("GridSample", since=16, until=19)
def _(g, op):
    x = image(g, n=2, kind="f4")
    grid = g.fresh("f4", [g.shape[x][0], g.r.randint(1, 3), g.r.randint(1, 3), 2], -1.4, 1.4)
    modes = ["linear", "cubic"] if g.opset >= 20 else ["bilinear", "bicubic"]
    shape = g.shape[x][:2] + g.shape[grid][1:3]
    g.node(op, [x, grid], shapes=[shape], kinds=["f4"], mode=g.r.choice([None, "nearest"] + modes),
           padding_mode=g.r.choice([None, "zeros", "border", "reflection"]), align_corners=g.r.choice([None, 0, 1]))


@operator("RoiAlign", since=10)
def _(g, op):
    x = image(g, n=2, kind="f4")
    n = g.r.randint(1, 3)
    corner = g.n.uniform(0, 3, (n, 2))
    rois = g.constant(np.concatenate([corner, corner + g.n.uniform(0.5, 4, (n, 2))], 1).astype("f4"))
    batch = g.constant(g.numbers("i8", [n], 0, g.shape[x][0] - 1))
    a = {"coordinate_transformation_mode": g.r.choice([None, "output_half_pixel"])} if g.opset >= 16 else {}
    h, w = g.r.randint(1, 3), g.r.randint(1, 3)
    g.node(op, [x, rois, batch], shapes=[[n, g.shape[x][1], h, w]], kinds=["f4"], output_height=h, output_width=w, sampling_ratio=g.r.choice([None, 1, 2]),
           spatial_scale=g.r.choice([None, 0.5]), mode=g.r.choice([None, "avg"]), **a)


# ---- integers of networks in 8 bits ----
@operator("QuantizeLinear", since=10)
def _(g, op):
    x = g.calm(g.pick(("f4",)))
    ins = [x, g.constant(np.array(g.r.choice([0.05, 0.1, 0.0123]), "f4"))]
    kind = "u1"
    if g.r.random() < 0.7:
        kind = g.r.choice(["u1", "i1"])
        ins.append(g.constant(np.array(g.r.randint(0, 10), kind)))
    g.node(op, ins, shapes=[g.shape[x]], kinds=[kind])


@operator("DequantizeLinear", since=10)
def _(g, op):
    x = g.pick(("u1", "i1"), least=1)
    ins = [x, g.constant(np.array(0.1, "f4"))]
    a = {}
    if g.opset >= 13 and g.r.random() < 0.5:
        axis = g.r.randint(0, len(g.shape[x]) - 1)
        a["axis"] = axis
        ins = [x, g.constant(g.numbers("f4", [g.shape[x][axis]], 0.1, 0.5)), g.constant(g.numbers(g.kind[x], [g.shape[x][axis]], 0, 5))]
    g.node(op, ins, tame=True, shapes=[g.shape[x]], kinds=["f4"], **a)


@operator("DynamicQuantizeLinear", since=11)
def _(g, op):
    x = g.calm(g.pick(("f4",), least=1))
    g.node(op, [x], 3, shapes=[g.shape[x], [], []], kinds=["u1", "f4", "u1"])


@operator("MatMulInteger", since=10)
def _(g, op):
    x = g.pick(("u1", "i1"), least=2, most=3)
    w = g.fresh(g.r.choice(["u1", "i1"]), [g.shape[x][-1], g.r.randint(1, 4)])
    zero = [g.constant(np.array(2, g.kind[x])), g.constant(np.array(1, g.kind[w]))] if g.r.random() < 0.5 else []
    g.node(op, [x, w] + zero)


@operator("ConvInteger", since=10)
def _(g, op):
    x = g.fresh("u1", [1, 2, g.r.randint(3, 5), g.r.randint(3, 5)])
    a = window(g, op, 2, g.shape[x][2:])
    a.pop("auto_pad", None)
    w = g.fresh("u1", [g.r.randint(1, 3), 2] + a["kernel_shape"])
    g.node(op, [x, w] + ([g.constant(np.array(3, "u1"))] if g.r.random() < 0.5 else []), **a)


# ---- recurrent layers and control flow ----
@operator("LSTM", "GRU", "RNN")
def _(g, op):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    x = g.calm(g.pick(("f4",), rank=3))
    t, b, n = g.shape[x]
    h = g.r.randint(1, 4)
    direction = g.r.choice([None, "forward", "reverse", "bidirectional"])
    d = 2 if direction == "bidirectional" else 1
    ins = [x, g.fresh("f4", [d, gates * h, n]), g.fresh("f4", [d, gates * h, h])]
    more = [g.fresh("f4", [d, 2 * gates * h]) if g.r.random() < 0.7 else "",
            g.fresh("i4", [b], 1, t) if g.r.random() < 0.3 else "",
            g.fresh("f4", [d, b, h]) if g.r.random() < 0.4 else ""]
    if op == "LSTM":
        more += [g.fresh("f4", [d, b, h]) if g.r.random() < 0.4 else "", g.fresh("f4", [d, 3 * h]) if g.r.random() < 0.2 else ""]
    while more and not more[-1]:
        more.pop()
    a = {"hidden_size": h, "direction": direction, "clip": g.r.choice([None, None, 0.8])}
    if op == "GRU":
        a["linear_before_reset"] = g.r.choice([None, 0, 1])
    if op == "RNN" and g.r.random() < 0.3:
        a["activations"] = [g.r.choice(["Relu", "Sigmoid", "Tanh"])] * d
    shapes = [[t, d, b, h], [d, b, h], [d, b, h]][:3 if op == "LSTM" else 2]
    g.node(op, ins + more, len(shapes), tame=True, shapes=shapes, kinds=["f4"] * len(shapes), **a)


def body(g, name, inputs, shapes, make):
    """A small graph: make(names) gives nodes and output names."""
    nodes, outputs, kinds, dims = make([n for n, _, _ in inputs])
    infos = [helper.make_tensor_value_info(n, CODE[k], s) for n, k, s in inputs]
    outs = [helper.make_tensor_value_info(n, CODE[k], s) for n, k, s in zip(outputs, kinds, dims)]
    return helper.make_graph(nodes, name, infos, outs)


@operator("If")
def _(g, op):
    x = g.pick(REALS)
    condition = g.fresh("b1", [])
    branches = {}
    for which, inner in (("then_branch", g.r.choice(["Relu", "Neg", "Abs"])), ("else_branch", g.r.choice(["Tanh", "Sigmoid", "Identity"]))):
        out = g.name()
        branches[which] = body(g, which, [], None, lambda _: ([helper.make_node(inner, [x], [out])], [out], [g.kind[x]], [g.shape[x]]))
    g.used.add(x)
    g.node(op, [condition], shapes=[g.shape[x]], kinds=[g.kind[x]], tame=x in g.tame, **branches)


@operator("Loop", since=11)
def _(g, op):
    x = g.calm(g.pick(("f4",), most=3))
    i, c, s, t, u, k = (g.name() for _ in range(6))
    trips = g.r.choice([0, 1, 2, 3, 4])
    nodes = [helper.make_node("Tanh", [s], [t]), helper.make_node("Add", [t, x], [u]), helper.make_node("Identity", [c], [k])]
    infos = [helper.make_tensor_value_info(i, 7, []), helper.make_tensor_value_info(c, 9, []), helper.make_tensor_value_info(s, 1, g.shape[x])]
    outs = [helper.make_tensor_value_info(k, 9, []), helper.make_tensor_value_info(u, 1, g.shape[x]), helper.make_tensor_value_info(t, 1, g.shape[x])]
    if g.r.random() < 0.3:
        outs[2] = helper.make_empty_tensor_value_info(t)
    graph = helper.make_graph(nodes, "body", infos, outs)
    count = g.constant(np.array(trips, "i8"))
    condition = g.constant(np.array(True)) if g.r.random() < 0.5 else ""
    g.node(op, [count, condition, x], 2, shapes=[g.shape[x], [trips] + g.shape[x]], kinds=["f4", "f4"], body=graph)


@operator("Scan")
def _(g, op):
    x = g.calm(g.pick(("f4",), least=2, most=3))
    row = g.shape[x][1:]
    s, e, t, u = (g.name() for _ in range(4))
    nodes = [helper.make_node("Add", [s, e], [t]), helper.make_node("Tanh", [t], [u])]
    graph = helper.make_graph(nodes, "body", [helper.make_tensor_value_info(s, 1, row), helper.make_tensor_value_info(e, 1, row)],
                              [helper.make_tensor_value_info(t, 1, row), helper.make_tensor_value_info(u, 1, row)])
    a = {"scan_input_directions": [1]} if g.r.random() < 0.3 else {}
    if g.r.random() < 0.3:
        a["scan_output_directions"] = [1]
    g.node(op, [g.fresh("f4", row), x], 2, shapes=[row, g.shape[x]], kinds=["f4", "f4"], num_scan_inputs=1, body=graph, **a)


onnx_random_more.register(operator, window, image)


def grow(seed, only, most, known):
    """A graph of 1 to `most` steps, or None where nothing could be added."""
    g = Graph(seed, known)
    g.open = g.r.random() < 0.3
    base = [g.r.randint(1, 5) for _ in range(g.r.randint(1, 4))]
    for _ in range(g.r.randint(1, 2)):
        kind = "f4" if g.r.random() < 0.75 else g.r.choice(INPUTS)
        g.fresh_input(kind, base if g.r.random() < 0.5 else base[g.r.randint(0, len(base) - 1):])
    names = [n for n in (only or sorted(OPERATORS)) if any(s <= g.opset <= u for s, u, _ in OPERATORS[n])]
    steps, tries = g.r.randint(1, most), 0
    while names and steps and tries < 40:
        tries += 1
        op = g.r.choice(names)
        keep = (len(g.nodes), len(g.pool), len(g.inputs), len(g.initializers), len(g.ops))
        try:
            since, until, function = next(row for row in OPERATORS[op] if row[0] <= g.opset <= row[1])
            function(g, op)
            steps -= 1
        except (Impossible, ValueError):
            # ValueError: NumPy cannot draw what the operator would need, as the place of an element in a value that has none
            del g.nodes[keep[0]:], g.pool[keep[1]:], g.inputs[keep[2]:], g.initializers[keep[3]:], g.ops[keep[4]:]
    return g if g.ops else None


def main():
    path, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    options = dict(zip(sys.argv[4::2], sys.argv[5::2]))
    only = [o for o in options.get("--only", "").split(",") if o]
    most = int(options.get("--nodes", 6))
    known = set(open(options["--known"]).read().split("\n")) if "--known" in options else set()
    made = unsound = 0
    with open(path, "wb") as f:
        for k in range(count):
            g = grow(seed * 1000003 + k, only, most, known)
            if g is None:
                continue
            try:
                models = [g.model(False), g.model(True)]
            except onnx.checker.ValidationError as e:
                unsound += 1
                print(f"# graph {k} of seed {seed}: onnx.checker: {str(e).splitlines()[0]}", file=sys.stderr)
                continue
            made += 1
            f.write(case_bytes(g.inputs, models))
    print(made, unsound)


main()
