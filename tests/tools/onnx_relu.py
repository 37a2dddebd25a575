# SPDX-License-Identifier: MIT-0
# onnx_relu.py FOLDER PROGRAM: models with gates in every spelling and with each kind of matrix, converted by tools/onnx_relu.c. What
# is found is compared with what was built, new weights with normal equations solved by NumPy, and the edits with what they should be.
import math, subprocess, sys
import numpy as np
np.__dict__.update((name, kind) for name, kind in (("float", float), ("int", int), ("bool", bool), ("object", object))
                   if name not in np.__dict__)
import onnx
from onnx import TensorProto, helper, numpy_helper

folder, program = sys.argv[1:3]
random = np.random.RandomState(5)


def say(good, name, why=""):
    print(f"ok {name}" if good else f"FAIL {name}: {why}")


class Model:
    """Nodes and initializers, one after another; `put` returns the name of the new value."""

    def __init__(self, shape, type=np.float32):
        self.nodes, self.constants, self.shape, self.type, self.count = [], [], list(shape), type, 0

    def constant(self, value, type=None):
        self.count += 1
        array = np.asarray(value, dtype=type or self.type)
        self.constants.append(numpy_helper.from_array(array, f"c{self.count}"))
        return f"c{self.count}"

    def put(self, op, *inputs, name=None, **attributes):
        self.count += 1
        name = name or f"v{self.count}"
        inputs = [i if isinstance(i, str) else self.constant(i) for i in inputs]
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"n_{name}", **attributes))
        return name

    def save(self, file, outputs=("y",), opset=15, functions=()):
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.type)) if hasattr(helper, "np_dtype_to_tensor_dtype") \
            else onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[np.dtype(self.type)]
        graph = helper.make_graph(self.nodes, "graph", [helper.make_tensor_value_info("x", kind, ["batch"] + self.shape)],
                                  [helper.make_tensor_value_info(o, kind, None) for o in outputs], self.constants)
        domains = sorted({"", *(n.domain for n in self.nodes)})
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, 1 if d else opset) for d in domains], producer_name="someone",
                                  functions=list(functions))
        model.metadata_props.add(key="key", value="stays")
        onnx.save(model, f"{folder}/{file}.onnx")


def convert(file, data, *options):
    np.save(f"{folder}/{file}.npy", data)
    job = subprocess.run([program, f"{folder}/{file}.onnx", f"{folder}/{file}.relu.onnx", f"x={folder}/{file}.npy", *options],
                         capture_output=True, text=True)
    if job.returncode:
        say(0, f"{file} converts", job.stderr.strip())
        return None, []
    return onnx.load(f"{folder}/{file}.relu.onnx"), job.stdout.splitlines()


def normal(*shape, scale=1.0):
    return (random.standard_normal(shape) * scale).astype(np.float32)


# ---- gates ----
HALF, ROOT = math.sqrt(2), math.sqrt(2 / math.pi)


def gelu(m, z):
    return m.put("Mul", m.put("Mul", z, m.put("Add", m.put("Erf", m.put("Div", z, HALF)), 1.0)), 0.5, name="gate")


def gelu_other_order(m, z):
    e = m.put("Add", 1.0, m.put("Erf", m.put("Mul", m.put("Identity", z), 1 / HALF)))
    return m.put("Mul", m.put("Mul", 0.5, z), e, name="gate")


def gelu_tanh(m, z):
    cube = m.put("Pow", z, 3.0)
    t = m.put("Tanh", m.put("Mul", m.put("Add", z, m.put("Mul", cube, 0.044715)), ROOT))
    return m.put("Mul", m.put("Mul", z, 0.5), m.put("Add", t, 1.0), name="gate")


def gelu_tanh_products(m, z):
    cube = m.put("Mul", m.put("Mul", z, z), z)
    t = m.put("Tanh", m.put("Mul", m.put("Add", z, m.put("Mul", cube, [[0.044715]])), ROOT))
    return m.put("Mul", m.put("Mul", z, 0.5), m.put("Add", t, 1.0), name="gate")


def silu(m, z):
    return m.put("Mul", z, m.put("Sigmoid", z), name="gate")


def silu_exp(m, z):
    return m.put("Div", z, m.put("Add", 1.0, m.put("Exp", m.put("Neg", z))), name="gate")


def silu_left(m, z):
    """z (1 - e / (1 + e)) with e = exp(-z), which is infinite far on the left; mish_log overflows on the right."""
    power = m.put("Exp", m.put("Neg", z))
    return m.put("Mul", z, m.put("Sub", 1.0, m.put("Div", power, m.put("Add", power, 1.0))), name="gate")


def quick_gelu(m, z):
    return m.put("Mul", m.put("Sigmoid", m.put("Mul", z, 1.702)), z, name="gate")


def mish(m, z):
    return m.put("Mul", z, m.put("Tanh", m.put("Softplus", z)), name="gate")


def mish_log(m, z):
    return m.put("Mul", z, m.put("Tanh", m.put("Log", m.put("Add", m.put("Exp", z), 1.0))), name="gate")


def hardswish_clip(m, z):
    return m.put("Div", m.put("Mul", z, m.put("Clip", m.put("Add", z, 3.0), 0.0, 6.0)), 6.0, name="gate")


def hardswish_hard_sigmoid(m, z):
    return m.put("Mul", z, m.put("HardSigmoid", z, alpha=1 / 6), name="gate")


def elu_where(m, z):
    return m.put("Where", m.put("Greater", z, 0.0), z, m.put("Sub", m.put("Exp", z), 1.0), name="gate")


def one(op, **attributes):
    return lambda m, z: m.put(op, z, name="gate", **attributes)


def softplus_log(m, z):
    return m.put("Log", m.put("Add", m.put("Exp", z), 1.0), name="gate")


def swish_by_channel(m, z):
    beta = np.linspace(0.5, 2, 24, dtype=np.float32)
    return m.put("Mul", z, m.put("Sigmoid", m.put("Mul", z, beta)), name="gate")


def unnamed(m, z):
    return m.put("Add", m.put("Softplus", z), m.put("Mul", 0.5, m.put("Tanh", z)), name="gate")


def maximum(m, z):
    return m.put("Max", z, 0.0, name="gate")


def leaky_prelu(m, z):
    return m.put("PRelu", z, np.full(24, 0.1), name="gate")


def relu6(m, z):
    return m.put("Clip", z, 0.0, 6.0, name="gate")


SPELLINGS = [
    (gelu, "GELU", "smooth"), (gelu_other_order, "GELU", "smooth"), (gelu_tanh, "GELU, tanh form", "smooth"),
    (gelu_tanh_products, "GELU, tanh form", "smooth"), (silu, "SiLU", "smooth"), (silu_exp, "SiLU", "smooth"),
    (quick_gelu, "QuickGELU", "smooth"), (mish, "Mish", "smooth"), (mish_log, "Mish", "smooth"),
    (hardswish_clip, "Hardswish", "smooth"), (hardswish_hard_sigmoid, "Hardswish", "smooth"), (one("HardSwish"), "Hardswish", "smooth"),
    (elu_where, "ELU", "smooth"), (one("Elu"), "ELU", "smooth"), (one("Selu"), "SELU", "smooth"), (one("Celu"), "ELU", "smooth"),
    (one("Softplus"), "Softplus", "smooth"), (softplus_log, "Softplus", "smooth"), (swish_by_channel, "unnamed", "smooth"),
    (unnamed, "unnamed", "smooth"), (one("LeakyRelu"), "leaky ReLU", "leaky"), (leaky_prelu, "leaky ReLU", "leaky"),
    (one("Relu"), "ReLU", "relu"), (maximum, "ReLU", "relu"), (relu6, "ReLU6", "pieces"), (one("Abs"), "abs", "pieces"),
    (one("HardSigmoid", alpha=1 / 6), "hardsigmoid", "pieces"), (one("Tanh"), "tanh", "stays"), (one("Sigmoid"), "sigmoid", "stays"),
    (one("Erf"), "erf", "stays"),
]


def mlp(m, gate, behind=None):
    z = m.put("Add", m.put("MatMul", "x", normal(16, 24, scale=0.4), name="h"), normal(24), name="z")
    a = gate(m, z)
    a = behind(m, a) if behind else a
    return m.put("Gemm", a, normal(24, 8, scale=0.3), normal(8), name="y")


def gate_line(lines):
    found = [l for l in lines if l.startswith("gate ")]
    return found[0] if len(found) == 1 else f"{len(found)} gates: {found}"


def ops(model):
    return [n.op_type for n in model.graph.node]


def test_spellings(spellings, first=0):
    data = normal(64, 16)
    for k, (gate, name, kind) in enumerate(spellings, first):
        m = Model([16])
        mlp(m, gate)
        file = f"gate{k}"
        m.save(file)
        model, lines = convert(file, data)
        if model is None:
            continue
        line, title = gate_line(lines), f"gate {k}, {name}"
        say(line.startswith(f"gate z -> gate: {name}, {kind},"), f"{title}: found, from z to the gate", line)
        wanted = ["MatMul", "Add", "Relu", "Gemm"]
        plain = ops(model) == (wanted if name != "SELU" else ["MatMul", "Add", "Relu", "Mul", "Gemm"])
        same = open(f"{folder}/{file}.onnx", "rb").read() == open(f"{folder}/{file}.relu.onnx", "rb").read()
        say(plain if kind == "smooth" else same, f"{title}: {'one ReLU' if kind == 'smooth' else 'the file stays'}", ops(model))


def test_fused():
    """Gates of com.microsoft; those that add a bias get it back as the kink of their ReLU."""
    data, bias = normal(64, 16), normal(24)
    for op, name, add in (("Gelu", "GELU", None), ("QuickGelu", "QuickGELU", None), ("FastGelu", "GELU, tanh form", None),
                          ("BiasGelu", "GELU", bias), ("FastGelu", "GELU, tanh form", bias)):
        m = Model([16])
        first = normal(16, 24, scale=0.4)
        z = m.put("MatMul", "x", first, name="z")
        a = m.put(op, z, *([add] if add is not None else []), name="gate", domain="com.microsoft")
        last = [normal(24, 8, scale=0.3), normal(8)]
        m.put("Gemm", a, *last, name="y")
        file = op if add is None else f"{op}_bias"
        m.save(file)
        model, lines = convert(file, data, "--what", "cold")
        if model is None:
            continue
        title = f"{op}{' with a bias' if add is not None else ''}"
        say(gate_line(lines).startswith(f"gate z -> gate: {name}, smooth, slope 1,"), f"{title}: found", lines)
        say(ops(model) == ["MatMul"] + ["Sub"] * (add is not None) + ["Relu", "Gemm"], f"{title}: one ReLU", ops(model))
        if add is not None:
            kink = [numpy_helper.to_array(c) for c in model.graph.initializer if c.name == node_of(model, model.graph.node[1].output[0]).input[1]]
            near(kink[0].flatten(), -bias, f"{title}: its kink is where the bias has it")
        model, lines = convert(file, data, "--relus", "3")
        error = [float(l.split("error ")[1].split()[0].rstrip(",")) for l in lines if l.startswith("gate ") and "error " in l]
        say(error and error[0] < 0.05, f"{title}: three ReLUs are near it", lines)


def test_hidden():
    """What is smooth inside a function of the model, or inside an operator that has several inputs, stays and is named."""
    data = normal(64, 16)
    m = Model([16])
    h = m.put("MatMul", "x", normal(16, 24, scale=0.4))
    inner = [helper.make_node("Sigmoid", ["z"], ["s"]), helper.make_node("Mul", ["z", "s"], ["a"])]
    own = [helper.make_opsetid("", 15), helper.make_opsetid("mine", 1)]
    functions = [helper.make_function("mine", "swish", ["z"], ["a"], inner, own),
                 helper.make_function("mine", "calls", ["z"], ["a"], [helper.make_node("swish", ["z"], ["a"], domain="mine")], own)]
    m.put("Gemm", m.put("calls", h, domain="mine"), normal(24, 8, scale=0.3), normal(8), name="y")
    m.save("hidden_function", functions=functions)
    functions[0].name = "Swish"
    functions[1].node[0].op_type = "Swish"
    m.save("hidden_named", functions=functions)
    for file in "hidden_function", "hidden_named":
        model, lines = convert(file, data)
        gates = [line for line in lines if line.startswith("gate ")]
        say(len(gates) == 1 and "Sigmoid, stays" in gates[0] and "it is in a function of the model" in gates[0],
            f"a gate in a function is named once: {file}", lines)
    m = Model([16])
    h = m.put("MatMul", "x", normal(16, 24, scale=0.4))
    bias = m.put("ReduceSum", h, m.constant([0], np.int64), keepdims=0)
    a = m.put("BiasGelu", h, bias, domain="com.microsoft")
    m.put("Gemm", a, normal(24, 8, scale=0.3), normal(8), name="y")
    m.save("hidden_bias")
    model, lines = convert("hidden_bias", data)
    say("BiasGelu, stays" in gate_line(lines), "a gate whose bias is computed is named", lines)
    m = Model([16])
    a = m.put("FusedGemm", "x", normal(16, 24, scale=0.4), domain="com.microsoft", activation="Softplus")
    m.put("Gemm", a, normal(24, 8, scale=0.3), normal(8), name="y")
    m.save("hidden_fused")
    model, lines = convert("hidden_fused", data)
    say("Softplus, stays" in gate_line(lines), "a gate in a fused matrix is named", lines)


def test_statistics():
    """The elementary parts of a normalisation, of a softmax and of a one-hot code are no functions that stay; a sigmoid of a mean is."""
    m = Model([16])
    tokens = m.put("Cast", m.put("Mul", m.put("Abs", "x"), 4.0), to=TensorProto.INT64)
    ones = m.put("Cast", m.put("Equal", m.put("Unsqueeze", tokens, m.constant([2], np.int64)), m.constant(np.arange(6), np.int64)), to=TensorProto.FLOAT)
    h = m.put("MatMul", m.put("Reshape", ones, m.constant([0, 96], np.int64)), normal(96, 24, scale=0.3))
    mean = m.put("Mul", m.put("ReduceSum", h, m.constant([1], np.int64)), 1 / 24)
    square = m.put("Mul", m.put("ReduceSum", m.put("Mul", h, h), m.constant([1], np.int64)), 1 / 24)
    variance = m.put("Max", m.put("Sub", square, m.put("Mul", mean, mean)), 0.0)
    wide = m.put("Add", m.put("Expand", variance, m.constant([1, 24], np.int64)), 1e-5)
    h = m.put("Mul", m.put("Sub", h, mean), m.put("Reciprocal", m.put("Sqrt", wide)))
    h = m.put("MatMul", gelu(m, m.put("MatMul", h, normal(24, 24, scale=0.3), name="z")), normal(24, 8, scale=0.3))
    power = m.put("Exp", m.put("Sub", h, m.put("ReduceMax", h, axes=[1])))
    h = m.put("Mul", power, m.put("Reciprocal", m.put("ReduceSum", power, m.constant([1], np.int64))))
    m.put("Mul", h, m.put("Sigmoid", m.put("ReduceMean", h, axes=[1])), name="y")
    m.save("statistics")
    model, lines = convert("statistics", normal(64, 16))
    kinds = sorted(l.split(": ")[1].split(",")[0] for l in lines if ", smooth," in l or ", stays," in l)
    say(kinds == ["GELU", "sigmoid"], "parts of a normalisation, a softmax and a one-hot code are not named, a sigmoid is", f"{kinds} {lines}")
    m = Model([16])
    a = silu(m, m.put("MatMul", "x", normal(16, 24, scale=0.4), name="z"))
    mean = m.put("ReduceMean", m.put("Mul", a, a), axes=[1])
    m.put("MatMul", m.put("Div", a, m.put("Sqrt", m.put("Add", mean, 1e-5))), normal(24, 8, scale=0.3), name="y")
    m.save("squares")
    model, lines = convert("squares", normal(64, 16))
    say("SiLU, smooth" in gate_line(lines), "the squares of a normalisation behind a gate are not named", lines)


def test_wider():
    """A gate whose constant makes its output wider than its input cannot be replaced by ReLUs of the input; the reason is named."""
    m = Model([16])
    z = m.put("MatMul", "x", normal(16, 1, scale=0.4), name="z")
    m.put("MatMul", swish_by_channel(m, z), normal(24, 8, scale=0.3), name="y")
    m.save("wider")
    model, lines = convert("wider", normal(64, 16))
    say("another shape" in gate_line(lines) and "Relu" not in ops(model), "a gate that is wider than its input", lines)


def test_branch():
    """A gate that only a branch of an If reads, and a matrix in it, is replaced, as the matrix stays."""
    m = Model([16])
    silu(m, m.put("MatMul", "x", normal(16, 24, scale=0.4), name="z"))
    other = m.constant(normal(24, 8, scale=0.3))
    branch = [helper.make_graph([helper.make_node("MatMul", [v, other], [f"b_{v}"])], v, [], [helper.make_tensor_value_info(f"b_{v}", TensorProto.FLOAT, None)])
              for v in ("gate", "z")]
    positive = m.put("Greater", m.put("ReduceSum", "x", keepdims=0), 0.0)
    m.put("If", positive, name="y", then_branch=branch[0], else_branch=branch[1])
    m.save("branch")
    model, lines = convert("branch", normal(64, 16))
    say("SiLU, smooth" in gate_line(lines) and "replaced 1," in gate_line(lines) and "Relu" in ops(model), "a gate that a branch reads", lines)


def test_regions():
    data = normal(64, 16)
    m = Model([16])  # a factor behind the gate and a normalisation before it stay outside
    scale = [np.abs(normal(24)) + 0.5, normal(24), normal(24), np.abs(normal(24)) + 0.5]
    z = m.put("BatchNormalization", m.put("MatMul", "x", normal(16, 24, scale=0.4)), *scale, name="z")
    m.put("MatMul", m.put("Mul", gelu(m, z), 1.7015), normal(24, 8), name="y")
    m.save("outside")
    model, lines = convert("outside", data)
    say(gate_line(lines).startswith("gate z -> gate: GELU, smooth, slope 1,")
        and ops(model) in (["MatMul", "BatchNormalization", "Relu", "Mul", "MatMul"],
                           ["MatMul", "BatchNormalization", "Relu", "Mul", "MatMul", "Add"]),
        "a factor behind a gate and a normalisation before it stay", f"{lines} {ops(model)}")
    m = Model([16])  # what else reads an inner node keeps it
    z = m.put("MatMul", "x", normal(16, 24, scale=0.4), name="z")
    s = m.put("Sigmoid", z, name="s")
    m.put("MatMul", m.put("Mul", z, s), normal(24, 8), name="y")
    m.put("MatMul", s, normal(24, 8), name="y2")
    m.save("inner", ("y", "y2"))
    model, lines = convert("inner", data)
    kinds = sorted(l.split(": ")[1].split(",")[0] for l in lines if l.startswith("gate "))
    say(kinds == ["SiLU", "sigmoid"] and "Sigmoid" in ops(model) and "Relu" in ops(model),
        "an inner node that is read elsewhere stays", f"{kinds} {ops(model)}")
    m = Model([16])  # a residual around the gate
    z = m.put("MatMul", "x", normal(16, 24, scale=0.4), name="z")
    m.put("MatMul", m.put("Add", z, gelu(m, z)), normal(24, 8), name="y")
    m.save("around")
    model, lines = convert("around", data)
    say(gate_line(lines).startswith("gate z -> gate: GELU, smooth, slope 1,"), "a sum of z and its gate", lines)
    m = Model([16])  # an output head
    m.put("Softplus", m.put("MatMul", "x", normal(16, 24)), name="y")
    m.save("head")
    model, lines = convert("head", data)
    say("stays" in gate_line(lines) and "no matrix is behind it" in gate_line(lines), "Softplus as an output stays", lines)
    m = Model([16])
    m.put("Einsum", silu(m, m.put("MatMul", "x", np.eye(16))), np.ones((16, 8)), name="y", equation="nk,km->nm")
    m.save("behind_einsum")
    model, lines = convert("behind_einsum", data)
    say("stays" in gate_line(lines) and "with constant weights is behind it" in gate_line(lines), "a gate that an Einsum reads stays", lines)


# ---- matrices, beside NumPy ----
def gate_value(z):
    return z * 0.5 * (1 + np.vectorize(math.erf)(z.astype(np.float64) / HALF))


def solve(columns, missing, group_inputs, rho):
    """Normal equations; columns (rows, K), missing (rows, m)."""
    a = np.concatenate([columns, np.ones((len(columns), 1))], 1)
    g = a.T @ a
    ridge = rho * np.trace(g[:group_inputs, :group_inputs]) / group_inputs
    g[np.arange(group_inputs), np.arange(group_inputs)] += ridge
    return np.linalg.solve(g, a.T @ missing)


def constants_of(model):
    return {c.name: numpy_helper.to_array(c) for c in model.graph.initializer}


def node_of(model, output):
    for n in model.graph.node:
        if output in n.output:
            return n


def near(a, b, name, limit=2e-4):
    worst = np.abs(np.asarray(a, np.float64) - b).max() / np.abs(b).max() if np.shape(a) == np.shape(b) else np.inf
    say(worst <= limit, name, f"differs by {worst:.3g} of the largest, shapes {np.shape(a)} and {np.shape(b)}")


def before_gate(rows=400):
    data = normal(rows, 16)
    w = normal(16, 24, scale=0.5)
    z = data @ w
    return data, w, np.maximum(z, 0).astype(np.float64), gate_value(z)


def test_products():
    rho = 0.01
    for form in ("added", "bare", "transposed", "gemm", "left"):
        data, w, relu, smooth = before_gate()
        v, b = normal(24, 8, scale=0.4), normal(8)
        m = Model([16])
        a = gelu(m, m.put("MatMul", "x", w, name="z"))
        if form == "added":
            m.put("Add", m.put("MatMul", a, v), b, name="y")
        elif form == "bare":
            m.put("MatMul", a, v, name="y")
        elif form == "transposed":
            m.put("Add", b, m.put("MatMul", a, m.put("Transpose", v.T.copy())), name="y")
        elif form == "gemm":
            m.put("Gemm", a, v.T.copy(), b, name="y", transB=1, alpha=0.5)
        else:
            t = m.put("Unsqueeze", a, m.constant([2], np.int64))
            m.put("Add", m.put("MatMul", v.T.copy(), t), b[:, None].copy(), name="y")
        m.save(form)
        model, lines = convert(form, data, "--ridge", str(rho))
        if model is None:
            continue
        factor = 0.5 if form == "gemm" else 1
        change = solve(relu, (smooth - relu) @ v * factor, 24, rho)
        c = constants_of(model)
        last = node_of(model, "y")
        product = last
        while product.op_type not in ("MatMul", "Gemm"):
            product = [node_of(model, i) for i in product.input if node_of(model, i) is not None][0]
        weight = [c[i] for i in product.input if i in c][0]
        bias = c[last.input[2]] if form == "gemm" else [c[i] for i in last.input if i in c][0]
        old = 0 if form == "bare" else b
        new = v + change[:24] / factor
        near(weight, new.T if form in ("gemm", "left") else new, f"product, {form}: the weights of NumPy's normal equations")
        near(bias.ravel(), old + change[24], f"product, {form}: its biases")


def convolve(x, w, stride, pad, dilation, groups):
    """(N, C, H, W) by (M, C / groups, kh, kw): the rows of each group, and the outputs."""
    n, channels = x.shape[:2]
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    kh, kw = w.shape[2:]
    high = (x.shape[2] - dilation * (kh - 1) - 1) // stride + 1
    wide = (x.shape[3] - dilation * (kw - 1) - 1) // stride + 1
    each, outs, rows, y = channels // groups, w.shape[0] // groups, [], []
    for g in range(groups):
        patches = np.zeros((n, high, wide, each, kh, kw))
        for i in range(kh):
            for j in range(kw):
                part = x[:, g * each:(g + 1) * each, i * dilation:i * dilation + stride * high:stride,
                         j * dilation:j * dilation + stride * wide:stride]
                patches[..., i, j] = part.transpose(0, 2, 3, 1)
        rows.append(patches.reshape(n * high * wide, -1))
        y.append(rows[-1] @ w[g * outs:(g + 1) * outs].reshape(outs, -1).T.astype(np.float64))
    return rows, y


def test_convolution(groups, residual):
    rho, name = 0.01, f"convolution, {groups} groups" + (", behind a normalisation and a sum" if residual else "")
    data, v, w = normal(40, 3, 8, 8), normal(8, 3, 1, 1), normal(8, 8 // groups, 3, 3, scale=0.3)
    scale, shift, mean, variance = np.abs(normal(8)) + 0.5, normal(8), normal(8), np.abs(normal(8)) + 0.5
    stride, dilation, pad = (1, 1, 1) if residual else (2, 2, 1)
    m = Model([3, 8, 8])
    z = m.put("Conv", "x", v, name="z", kernel_shape=[1, 1])
    a = gelu(m, z)
    y = m.put("Conv", a, w, name="c", kernel_shape=[3, 3], strides=[stride] * 2, dilations=[dilation] * 2, pads=[pad] * 4, group=groups)
    if residual:
        m.put("Add", m.put("BatchNormalization", y, scale, shift, mean, variance), a, name="y")
    else:
        m.put("Identity", y, name="y")
    file = f"conv{groups}{residual}"
    m.save(file)
    model, lines = convert(file, data, "--ridge", str(rho))
    if model is None:
        return
    z = np.einsum("ncij,mc->nmij", data.astype(np.float64), v[:, :, 0, 0])
    relu, smooth = np.maximum(z, 0), gate_value(z)
    rows, now = convolve(relu, w, stride, pad, dilation, groups)
    wanted = convolve(smooth, w, stride, pad, dilation, groups)[1]
    outs = 8 // groups
    new, bias = [], []
    for g in range(groups):
        part = slice(g * outs, (g + 1) * outs)
        factor = (scale / np.sqrt(variance + 1e-5))[part] if residual else np.ones(outs)
        missing = (wanted[g] - now[g]) * factor
        if residual:
            missing = missing + (smooth - relu).transpose(0, 2, 3, 1).reshape(-1, 8)[:, part]
        change = solve(rows[g], missing, rows[g].shape[1], rho) / factor
        new.append(w[part] + change[:-1].T.reshape(outs, *w.shape[1:]))
        bias.append(change[-1])
    c, node = constants_of(model), node_of(model, "c")
    near(c[node.input[1]], np.concatenate(new), f"{name}: the weights of NumPy's normal equations")
    near(c[node.input[2]] if len(node.input) > 2 else 0, np.concatenate(bias), f"{name}: a bias is added")


def test_by_rows(groups, biased, summed):
    """A convolution of which few rows are taken multiplies these alone. With an Identity behind it, it is evaluated as a whole."""
    data, v, w = normal(80, 3, 24, 24), normal(6, 3, 1, 1), normal(4, 6 // groups, 3, 3, scale=0.3)
    bias, weights = normal(4), []
    for alone in (1, 0):
        m = Model([3, 24, 24])
        a = gelu(m, m.put("Conv", "x", v, name="z", kernel_shape=[1, 1]))
        y = m.put("Conv", a, w, *([bias] if biased else []), name="c", kernel_shape=[3, 3], pads=[1] * 4, group=groups)
        y = y if alone else m.put("Identity", y)
        m.put("Add", m.put("Conv", "x", v[:4]), y, name="y") if summed else m.put("Relu", y, name="y")
        m.save(f"rows{alone}")
        model, lines = convert(f"rows{alone}", data)
        weights.append([constants_of(model)[i] for i in node_of(model, "c").input if i in constants_of(model)] if model else [])
    same = len(weights[0]) == 2 and all(np.array_equal(p, q) for p, q in zip(*weights))
    say(same and not np.array_equal(weights[0][0], w), f"few rows of a convolution in {groups} groups, {'a' if biased else 'no'} bias"
        f"{', a sum' if summed else ''}: the bits of all rows", f"{[p.ravel()[:2] for p in weights[0] + weights[1]]}")


def test_transposed(groups):
    rho, file = 0.01, f"transposed{groups}"
    data, v, w, b = normal(30, 3, 5, 5), normal(8, 3, 1, 1), normal(8, 6 // groups, 3, 3, scale=0.3), normal(6)
    stride, pad, size = 2, 1, 9
    m = Model([3, 5, 5])
    a = gelu(m, m.put("Conv", "x", v, kernel_shape=[1, 1]))
    m.put("ConvTranspose", a, w, b, name="y", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], group=groups)
    m.save(file)
    model, lines = convert(file, data, "--ridge", str(rho))
    if model is None:
        return
    z = np.einsum("ncij,mc->nmij", data.astype(np.float64), v[:, :, 0, 0])
    relu, smooth = np.maximum(z, 0), gate_value(z)

    def rows(x, g):
        each = 8 // groups
        to = np.zeros((len(x), size, size, each, 3, 3))
        for i in range(5):
            for j in range(5):
                for p in range(3):
                    for q in range(3):
                        r, c = i * stride + p - pad, j * stride + q - pad
                        if 0 <= r < size and 0 <= c < size:
                            to[:, r, c, :, p, q] = x[:, g * each:(g + 1) * each, i, j]
        return to.reshape(len(x) * size * size, -1)

    new, bias = np.zeros(w.shape), np.zeros(6)
    for g in range(groups):
        part, outs = slice(g * 8 // groups, (g + 1) * 8 // groups), 6 // groups
        weight = w[part].transpose(0, 2, 3, 1).reshape(-1, outs)
        change = solve(rows(relu, g), (rows(smooth, g) - rows(relu, g)) @ weight, len(weight), rho)
        new[part] = (weight + change[:-1]).reshape(8 // groups, 3, 3, outs).transpose(0, 3, 1, 2)
        bias[g * outs:(g + 1) * outs] = b[g * outs:(g + 1) * outs] + change[-1]
    c, node = constants_of(model), node_of(model, "y")
    near(c[node.input[1]], new, f"transposed convolution, {groups} groups: the weights of NumPy's normal equations")
    near(c[node.input[2]], bias, f"transposed convolution, {groups} groups: its biases")


def test_recurrent(op, gates):
    rho, size = 0.01, 6
    data, v = normal(12, 40, 16), normal(16, 24, scale=0.5)
    w, r, b = normal(1, gates * size, 24, scale=0.3), normal(1, gates * size, size, scale=0.3), normal(1, 2 * gates * size)
    m = Model([40, 16])
    a = gelu(m, m.put("MatMul", "x", v))
    m.put("Squeeze", m.put(op, a, w, r, b, hidden_size=size), m.constant([1], np.int64), name="y")
    m.save(op)
    model, lines = convert(op, data, "--ridge", str(rho), "--batch", "12")
    if model is None:
        return
    z = (data @ v).reshape(-1, 24)
    relu, smooth = np.maximum(z, 0).astype(np.float64), gate_value(z)
    change = solve(relu, (smooth - relu) @ w[0].T, 24, rho)
    c = constants_of(model)
    node = [n for n in model.graph.node if n.op_type == op][0]
    near(c[node.input[1]][0], w[0] + change[:-1].T, f"{op}: the input matrix of NumPy's normal equations")
    near(c[node.input[3]][0], b[0] + np.concatenate([change[-1], np.zeros(gates * size)]), f"{op}: its biases")
    say(np.array_equal(c[node.input[2]], r), f"{op}: the recurrent matrix stays")


def write_list():
    """For ONNX Runtime: originals, cold swaps and refits of some models, with inputs that the refit has not seen."""
    with open(f"{folder}/list", "w") as out:
        for file in ("edits", "conv10", "conv11", "transposed2", "shared", "LSTM", "several3", "BiasGelu_bias"):
            data = np.load(f"{folder}/{file}.npy")
            seen = normal(*data.shape)
            subprocess.run([program, f"{folder}/{file}.onnx", f"{folder}/{file}.cold.onnx", "--what", "cold"], check=True,
                           capture_output=True)
            for kind in ("", ".cold", ".relu"):
                seen.tofile(f"{folder}/{file}{kind}.in")
                print(f"{file}{kind}", "float32", ",".join(map(str, seen.shape)), 0, sep="\t", file=out)


def test_shared_and_half():
    data = normal(200, 16)
    m = Model([16])
    w = m.constant(normal(24, 24, scale=0.3))
    a = gelu(m, m.put("MatMul", "x", normal(16, 24, scale=0.5)))
    h = m.put("MatMul", a, w, name="first")
    m.put("MatMul", m.put("Mul", h, m.put("Sigmoid", h)), w, name="y")
    m.save("shared")
    model, lines = convert("shared", data)
    used = [n.input[1] for n in model.graph.node if n.op_type == "MatMul"]
    say(len(set(used)) == 3 and w not in used, "a matrix that two nodes share has a copy for each", used)
    m = Model([16], np.float16)
    a = gelu(m, m.put("MatMul", "x", normal(16, 24, scale=0.5)))
    m.put("Gemm", a, normal(24, 8, scale=0.3), normal(8), name="y")
    m.save("half")
    model, lines = convert("half", data.astype(np.float16))
    types = {c.data_type for c in model.graph.initializer}
    say(types == {TensorProto.FLOAT16} and any("changed" in l for l in lines), "half stays half", f"{types} {lines}")


def test_several():
    data = normal(512, 16)
    for count in (2, 3, 5):
        m = Model([16])
        mlp(m, silu)
        m.save(f"several{count}")
        model, lines = convert(f"several{count}", data, "--relus", str(count))
        error = float(gate_line(lines).split("error ")[1])
        say(ops(model).count("Relu") == count and "Sigmoid" not in ops(model) and error < (0.06, 0.03, 0.03)[(2, 3, 5).index(count)],
            f"{count} ReLUs a gate, nearer with each", f"{ops(model)} {error}")
    m = Model([16])
    mlp(m, one("LeakyRelu", alpha=0.2))
    m.save("leaky")
    model, lines = convert("leaky", data, "--relus", "2", "--leaky")
    say("error " in gate_line(lines) and float(gate_line(lines).split("error ")[1]) < 1e-6 and "LeakyRelu" not in ops(model)
        and "replaced 1," in gate_line(lines) and ops(model).count("Relu") == 1,
        "a leaky form with two pieces is exact, and the report counts its one ReLU", lines)


def test_slopes():
    """PReLU before a convolution as PyTorch exports it: one learned slope for all channels, and one for each, some below 0."""
    data = normal(64, 3, 6, 6)
    for name, slope in (("one slope", [[[0.3]]]), ("slopes of both signs", np.linspace(0.4, -0.2, 8).reshape(8, 1, 1))):
        m = Model([3, 6, 6])
        z = m.put("Conv", "x", normal(8, 3, 1, 1), name="z", kernel_shape=[1, 1])
        m.put("Conv", m.put("PRelu", z, slope, name="gate"), normal(4, 8, 3, 3, scale=0.3), name="y", kernel_shape=[3, 3])
        file = f"slopes{len(np.ravel(slope))}"
        m.save(file)
        model, lines = convert(file, data, "--relus", "2", "--leaky")
        say(gate_line(lines).startswith("gate z -> gate: leaky ReLU, leaky,"), f"PRelu of {name} is found", lines)
        say(model and ops(model).count("Relu") == 1 and "PRelu" not in ops(model) and float(gate_line(lines).split("error ")[1]) < 1e-6,
            f"PRelu of {name} is exact as a ReLU and a line", lines)


def test_one():
    """One fitted ReLU: its kink and slope are in the matrix before it, its constant in those behind it, unless something else reads
    them. With a line it is a PRelu."""
    data = normal(512, 3, 8, 8)

    def net(file, head):
        m = Model([3, 8, 8])
        z = m.put("Conv", "x", normal(8, 3, 3, 3), normal(8), name="z", kernel_shape=[3, 3])
        gate = silu(m, z)
        head(m, z, gate, m.put("Conv", gate, normal(6, 8, 1, 1), normal(6), name="h", kernel_shape=[1, 1]))
        m.save(file)

    net("one", lambda m, z, gate, h: m.put("Identity", h, name="y"))
    for options, gate in (([], "Relu"), (["--line"], "PRelu")):
        model, lines = convert("one", data, "--fitted", *options)
        say(ops(model) == ["Conv", gate, "Conv", "Identity"], f"one fitted ReLU {options} is one node", ops(model))
    net("read_before", lambda m, z, gate, h: m.put("Concat", m.put("Abs", z), h, name="y", axis=1))
    model, lines = convert("read_before", data, "--fitted")
    say(ops(model) == ["Conv", "Sub", "Relu", "Mul", "Conv", "Abs", "Concat"], "kink and slope stay where others read the matrix", ops(model))
    net("read_behind", lambda m, z, gate, h: m.put("Concat", gate, h, name="y", axis=1))
    model, lines = convert("read_behind", data, "--fitted")
    say(ops(model) == ["Conv", "Relu", "Add", "Conv", "Concat"], "the constant stays where others read the gate", ops(model))
    m = Model([16])
    mlp(m, gelu)
    m.save("tokens")
    model, lines = convert("tokens", normal(512, 16), "--fitted", "--line")
    say(ops(model) == ["MatMul", "Add", "PRelu", "Gemm"], "one fitted ReLU behind a MatMul and its bias", ops(model))


def evaluate(model, x):
    """The file's outputs by NumPy, of the operators that gates become and of MatMul."""
    values = {"": None, "x": x, **constants_of(model)}
    kind = {"Relu": lambda a: np.maximum(a, 0), "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "MatMul": np.matmul,
            "PRelu": lambda a, below: np.where(a < 0, below * a, a)}
    for n in model.graph.node:
        a = {b.name: helper.get_attribute_value(b) for b in n.attribute}
        given = [values[i] for i in n.input]
        if n.op_type == "Gemm":
            y = a.get("alpha", 1) * (given[0] @ (given[1].T if a.get("transB") else given[1]))
            values[n.output[0]] = y + a.get("beta", 1) * given[2] if len(given) > 2 else y
        else:
            values[n.output[0]] = kind[n.op_type](*given)
    return values["y"]


def test_folded():
    """Kink and slope in the matrix before a gate, of each form that it has, beside the same network whose z is an output as well, so
    that kink and slope are nodes: the same values."""
    data = normal(512, 16)
    w, b, v = normal(16, 24, scale=0.4), normal(24), normal(24, 8, scale=0.3)
    forms = {"MatMul": lambda m: m.put("MatMul", "x", w, name="z"), "MatMul and Add": lambda m: m.put("Add", m.put("MatMul", "x", w), b, name="z"),
             "Add before a MatMul": lambda m: m.put("Add", b, m.put("MatMul", "x", w), name="z"), "Gemm": lambda m: m.put("Gemm", "x", w, b, name="z"),
             "Gemm without biases": lambda m: m.put("Gemm", "x", w, name="z"),
             "Gemm with factors": lambda m: m.put("Gemm", "x", w.T.copy(), b, name="z", transB=1, alpha=0.7, beta=1.7),
             "Gemm with one bias": lambda m: m.put("Gemm", "x", w, [0.4], name="z", beta=0.5)}
    for form, before in forms.items():
        for options in (["--fitted"], ["--fitted", "--line"]):
            values, folded = [], None
            for outputs in (("y",), ("y", "z")):
                m = Model([16])
                m.put("Gemm", silu(m, before(m)), v, b[:8].copy(), name="y")
                m.save("folded", outputs)
                model, lines = convert("folded", data, *options, "--what", "cold")
                values.append(evaluate(model, data))
                folded = folded or ops(model)
            apart = np.abs(values[0] - values[1]).max() / np.abs(values[1]).max()
            say(apart < 1e-5 and folded.count("PRelu" if "--line" in options else "Relu") == 1 and not {"Sub", "Mul"} & set(folded),
                f"a gate behind {form}, {options}: kink and slope are in the matrix, and the values are the same", f"{apart} {folded}")


def test_left():
    """Matrices that the caller leaves, or whose biases it keeps."""
    data, names = normal(300, 16), ("h", "y")
    m = Model([16])
    h = m.put("Gemm", silu(m, m.put("MatMul", "x", normal(16, 24, scale=0.5))), normal(24, 24, scale=0.3), normal(24), name="h")
    m.put("Gemm", m.put("Mul", h, m.put("Sigmoid", h)), normal(24, 8, scale=0.3), normal(8), name="y")
    m.save("left")
    old = constants_of(onnx.load(f"{folder}/left.onnx"))
    for name in names:
        for option, changed in (("--leave", (0, 0)), ("--keep-bias", (1, 0))):
            model, lines = convert("left", data, option, name)
            new = constants_of(model)
            for other in names:
                # shapes tell the constants apart, whose names may be new
                shapes = [(24, 24), (24,)] if other == "h" else [(24, 8), (8,)]
                found = tuple(int(not any(c.shape == shape and any(np.array_equal(c, o) for o in old.values()) for c in new.values()))
                              for shape in shapes)
                wanted = changed if other == name else (found[0], 1)
                line = [l for l in lines if l.startswith(f"layer {other} ")]
                why = len(line) == 1 and ("its caller wants it so" in line[0]) == (option == "--leave" and other == name)
                say(found == wanted and why, f"{option} {name}: weights and biases of {other} {'change' if wanted[1] else 'are kept as they should be'}",
                    f"{found} {line}")


def test_errors():
    """The largest error of a gate's replacement on [-6, 6], with kinks chosen from values that are even there."""
    data = np.linspace(-6, 6, 4001, dtype=np.float32)[:, None]
    gates = {"GELU": gelu, "SiLU": silu, "Mish": mish, "Hardswish": hardswish_clip, "ELU": one("Elu", alpha=1.0),
             "leaky": one("LeakyRelu", alpha=0.1), "Softplus": softplus_log}
    z = data.astype(np.float64)
    truth = {"GELU": z * np.vectorize(lambda t: (1 + math.erf(t / math.sqrt(2))) / 2)(z), "SiLU": z / (1 + np.exp(-z)),
             "Mish": z * np.tanh(np.log1p(np.exp(z))), "Hardswish": z * np.clip(z + 3, 0, 6) / 6,
             "ELU": np.where(z > 0, z, np.expm1(z)), "leaky": np.where(z > 0, z, 0.1 * z), "Softplus": np.log1p(np.exp(z))}
    for name, gate in gates.items():
        errors = []
        for count in (1, 2, 3):
            m = Model([1])
            m.put("MatMul", gate(m, m.put("MatMul", "x", np.ones((1, 1)))), np.ones((1, 1)), name="y")
            m.save("error")
            model, lines = convert("error", data, "--relus", str(count), "--leaky", "--what", "cold")
            errors.append(float(np.abs(evaluate(model, data) - truth[name]).max()))
        exact = name == "leaky" and errors[1] < 1e-5
        say(errors[1] < errors[0] and (errors[2] < errors[1] or exact) and errors[2] < 0.16,
            f"largest error with 1, 2, 3 ReLUs: {name} {errors[0]:.3f} {errors[1]:.3f} {errors[2]:.3f}", errors)


def least(columns, target):
    """The mean square that least squares leave."""
    found = np.linalg.lstsq(columns, target, rcond=None)[0]
    return ((columns @ found - target) ** 2).mean()


def test_fitted():
    """Fitted ReLUs beside the best kinks of a dense grid, found by NumPy; a bias shifts what the gate reads."""
    data = np.sort(random.standard_normal(600) * 1.5).astype(np.float32)[:, None]
    shift = 0.7
    z = data.astype(np.float64) + shift
    truth, grid = z / (1 + np.exp(-z)), np.linspace(z.min(), z.max(), 60)[1:-1]
    for line in (False, True):
        base = np.concatenate([np.ones_like(z), z] if line else [np.ones_like(z)], 1)
        hinge = [np.maximum(z - t, 0) for t in grid]
        best = [min(least(np.concatenate([base, a], 1), truth) for a in hinge),
                min(least(np.concatenate([base, a, b], 1), truth) for i, a in enumerate(hinge) for b in hinge[:i])]
        for count in (1, 2, 3, 6):
            m = Model([1])
            m.put("MatMul", silu(m, m.put("Add", m.put("MatMul", "x", np.ones((1, 1))), [shift])), np.ones((1, 1)), name="y")
            m.save("fitted")
            model, lines = convert("fitted", data, "--relus", str(count), "--fitted", "--what", "cold", *["--line"] * line)
            error = ((evaluate(model, data) - truth) ** 2).mean()
            title = f"{count} fitted ReLUs{' and a line' if line else ''}"
            limit = 1.1 * best[count - 1] if count < 3 else 0.5 * best[1]
            say(error < limit, f"{title}: as near as the best of a dense grid", f"{error:.3g}, {best}")
            found = ops(model).count("PRelu" if line and count == 1 else "Relu")
            say(found == count, f"{title}: so many ReLUs in the file", ops(model))


def test_drift():
    """Behind other gates, fitted ReLUs come near what the original's gate gave, not what a gate would make of what it reads now:
    without a refit, too, the last gate's outputs keep their means."""
    data = normal(1024, 6)
    m, a, before = Model([6]), "x", data.astype(np.float64)
    for k in range(5):
        w, b = normal(6, 6, scale=0.9), normal(6)
        a = silu(m, m.put("Add", m.put("MatMul", a, w), b, name=f"z{k}"))
        z = before @ w + b
        before = z / (1 + np.exp(-z))
        m.nodes[-1].name, m.nodes[-1].output[0] = f"n_gate{k}", f"gate{k}"
        a = f"gate{k}"
    m.put("MatMul", a, np.eye(6), name="y")
    m.save("drift")
    model, lines = convert("drift", data, "--relus", "2", "--what", "cold")
    moved = float((np.abs((evaluate(model, data) - before).mean(0)) / before.std(0)).max())
    say(moved < 2e-3, f"behind four gates the means of a fitted gate move by {moved:.5f} deviations at most", lines)


def test_stacked():
    data = normal(400, 6, 16)
    for stack, word in ((1, "changed"), (6, "several matrices")):
        m = Model([6, 16])
        a = gelu(m, m.put("MatMul", "x", normal(16, 24, scale=0.5)))
        m.put("MatMul", a, normal(stack, 24, 8, scale=0.3), name="y")
        m.save("stacked")
        model, lines = convert("stacked", data)
        found = [l for l in lines if l.startswith("layer y")]
        say(len(found) == 1 and word in found[0], f"a MatMul with a weight of shape ({stack}, 24, 8): {word}", lines)


def test_memory():
    data = normal(512, 16)
    m = Model([16])
    mlp(m, gelu)
    m.save("memory")
    model, lines = convert("memory", data, "--memory", "60000", "--batch", "32")
    kept = [int(l.split()[1]) for l in lines if l.startswith("kept ")]
    say(kept and 0 < kept[0] < 16 and "Erf" not in ops(model), "beyond the memory limit fewer inputs are kept", lines)


def test_bfloat16():
    data = normal(400, 16)
    m = Model([16])
    a = silu(m, m.put("MatMul", "x", normal(16, 24, scale=0.5)))
    m.put("MatMul", a, normal(24, 8, scale=0.3), name="y")
    m.save("bfloat16")
    model = onnx.load(f"{folder}/bfloat16.onnx")
    for c in model.graph.initializer:
        bits = numpy_helper.to_array(c).astype(np.float32).view(np.uint32) >> 16
        c.raw_data, c.data_type = bits.astype(np.uint16).tobytes(), TensorProto.BFLOAT16
    for v in list(model.graph.input) + list(model.graph.output):
        v.type.tensor_type.elem_type = TensorProto.BFLOAT16
    onnx.save(model, f"{folder}/bfloat16.onnx")
    model, lines = convert("bfloat16", data, "--relus", "2")
    types = {c.data_type for c in model.graph.initializer}
    say(types == {TensorProto.BFLOAT16} and any(l.startswith("layer y") and "changed" in l for l in lines), "bfloat16 stays bfloat16",
        f"{types} {lines}")


def test_edits():
    m = Model([16])
    mlp(m, gelu)
    m.save("edits")
    old = onnx.load(f"{folder}/edits.onnx")
    new, lines = convert("edits", normal(200, 16))
    gone = [n.name for n in old.graph.node if n.name not in {k.name for k in new.graph.node}]
    more = [n.op_type for n in new.graph.node if n.name not in {k.name for k in old.graph.node}]
    a, b = constants_of(old), constants_of(new)
    changed = [k for k in b if k in a and not np.array_equal(a[k], b[k])]
    dropped = [k for k in a if k not in b]
    gemm = node_of(old, "y")
    say(len(gone) == 5 and more == ["Relu"] and sorted(changed) == sorted(gemm.input[1:]) and len(dropped) == 3
        and not [k for k in b if k not in a], "the edits are the gate and the matrix behind it", f"{gone} {more} {changed} {dropped}")
    same = old.producer_name == new.producer_name and old.metadata_props[0].value == new.metadata_props[0].value \
        and list(old.graph.input) == list(new.graph.input) and list(old.graph.output) == list(new.graph.output)
    say(same, "names, inputs, outputs and metadata stay")


test_spellings(SPELLINGS)
test_regions()
test_products()
for groups in (1, 2, 8):
    test_convolution(groups, 0)
test_convolution(1, 1)
test_transposed(1)
test_transposed(2)
test_recurrent("LSTM", 4)
test_recurrent("GRU", 3)
test_recurrent("RNN", 1)
test_shared_and_half()
test_several()
test_slopes()
test_errors()
test_fitted()
test_drift()
test_stacked()
test_memory()
test_bfloat16()
test_edits()
test_fused()
test_hidden()
for groups, biased, summed in ((1, 1, 0), (2, 1, 1), (1, 0, 1)):
    test_by_rows(groups, biased, summed)
test_statistics()
test_branch()
test_one()
test_folded()
test_left()
write_list()
# these come last, since the others depend on what was drawn before
test_spellings([(silu_left, "SiLU", "smooth")], len(SPELLINGS))
test_wider()
