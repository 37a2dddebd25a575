# SPDX-License-Identifier: MIT-0
# onnx_c_quantized.py FILE SEED COUNT LAYERS [floats|rows|whole]: random networks in 8 bits for onnx_c_random.c --integers, in the format of onnx_random.py: a
# QuantizeLinear and a DequantizeLinear behind the input and each of at most LAYERS layers. Layers: convolutions of any kind, products, sums, products of
# two values, pools, means, moves, interpolation, and functions of one value of several nodes. Grids fit the values (NumPy evaluates nothing here:
# each layer's range is estimated from its weights). floats: with layers, too, that are computed in floats between two grids, such as
# normalisations, and values that are read as bytes and as floats. rows: products of matrices and batches of them, means, and what
# may stand at the end of a network, one of them a network, whatever LAYERS is. whole: without biases in floats, with which the evaluator
# does not compute in integers: of all other layers, C files have exactly its integers.
import sys

import numpy as np

for name, kind in (("float", float), ("int", int), ("bool", bool), ("object", object)):
    setattr(np, name, kind)
import onnx
from onnx import helper, numpy_helper
from onnx_tensors import case_bytes


class Net:
    def __init__(self, seed, whole=False):
        self.whole = whole
        self.n = np.random.default_rng(seed)
        self.nodes, self.constants, self.count = [], [], 0
        self.signed = self.n.random() < 0.3

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def constant(self, array):
        name = self.name()
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, inputs, **attributes):
        name = self.name()
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def quantize(self, x, low, high, scale=None, zero=None):
        """x between low and high on a grid; returns the dequantized value with its scale and zero point."""
        if scale is None:
            low, high = min(low, 0), max(high, 0)
            scale = np.float32(max(high - low, 1e-3) / 255)
            zero = int(np.clip(round(-low / scale), 0, 255)) - (128 if self.signed else 0)
        kind = np.int8 if self.signed else np.uint8
        s, z = self.constant(np.float32(scale)), self.constant(kind(zero))
        q = self.node("QuantizeLinear", [x, s, z])
        return self.node("DequantizeLinear", [q, s, z]), scale, zero

    def weights(self, shape, axis):
        """Weights of 8 bits, a scale for each position of an axis or one for all."""
        each = self.n.random() < 0.7
        scale = (0.002 + 0.02 * self.n.random(shape[axis] if each else ())).astype("f4")
        if each and self.n.random() < 0.2:
            scale[0] = 1e-25  # a channel whose weights are next to nothing
        zero = np.zeros(shape[axis] if each else (), "i1")
        q = self.n.integers(-127, 128, shape).astype("i1")
        a = {"axis": axis} if each else {}
        return self.node("DequantizeLinear", [self.constant(q), self.constant(scale), self.constant(zero)], **a), scale

    def bias(self, n, scale):
        if self.n.random() < 0.3 and not self.whole:
            return self.constant(self.n.normal(0, 0.3, n).astype("f4"))
        q = self.n.integers(-3000, 3000, n).astype("i4")
        s = np.broadcast_to(scale, n).astype("f4")
        return self.node("DequantizeLinear", [self.constant(q), self.constant(s), self.constant(np.zeros(n, "i4"))], axis=0)


def network(seed, most, mode):
    floats, whole = mode == ["floats"], mode == ["whole"]
    g = Net(seed, whole)
    n = g.n
    one = n.random() < 0.3
    shape = [1, int(n.integers(2, 9)), int(n.integers(4, 10))] if one else [1, int(n.integers(2, 7)), int(n.integers(4, 9)), int(n.integers(4, 9))]
    x, s, z = g.quantize("x", -2.0, 2.0)
    start, kinds = list(shape), []
    for _ in range(int(n.integers(1, most + 1))):
        dims, c = len(shape) - 2, shape[1]
        op = str(n.choice(["conv", "depthwise", "transposed", "table", "channel", "add", "mul", "max", "average", "mean", "concat", "move", "pad", "resize", "same"] + floats * ["softmax", "norm", "row", "both"]))
        kinds.append(op)
        if op in ("conv", "depthwise"):
            group = c if op == "depthwise" else int(n.choice([1, 1, 2]) if c % 2 == 0 else 1)
            out = c if op == "depthwise" else 2 * int(n.integers(1, 5))
            window = [int(min(n.integers(1, 4), d)) for d in shape[2:]]
            stride = [int(n.integers(1, 3)) for _ in range(dims)]
            pads = [int(n.integers(0, 2)) for _ in range(2 * dims)]
            w, ws = g.weights([out, c // group] + window, 0)
            y = g.node("Conv", [x, w] + ([g.bias(out, s * ws)] if n.random() < 0.7 else []), strides=stride, pads=pads, group=group)
            shape = [1, out] + [(d + pads[k] + pads[dims + k] - window[k]) // stride[k] + 1 for k, d in enumerate(shape[2:])]
            if n.random() < 0.3:
                y = g.node("Relu", [y])
            x, s, z = g.quantize(y, -3.0, 3.0)
        elif op == "transposed":
            out, stride, group = 2 * int(n.integers(1, 3)), int(n.integers(1, 3)), int(n.choice([1, 2])) if c % 2 == 0 else 1
            if max(shape[2:]) > 12:
                continue
            w, ws = g.weights([c, out // group] + [3] * dims, 1)
            y = g.node("ConvTranspose", [x, w, g.bias(out, np.resize(s * ws, out))], strides=[stride] * dims, pads=[1] * (2 * dims), group=group)
            shape = [1, out] + [(d - 1) * stride + 1 for d in shape[2:]]
            x, s, z = g.quantize(y, -3.0, 3.0)
        elif op == "table":
            y = g.node(str(n.choice(["Sigmoid", "Tanh", "LeakyRelu", "HardSwish", "Elu", "Abs"])), [x])
            if n.random() < 0.5:
                y = g.node("Mul", [x, y])
            x, s, z = g.quantize(y, -1.0, 2.5)
        elif op == "channel":
            parts = []
            for _ in range(2):
                t = g.node("Relu", [g.node("Sub", [x, g.constant(n.normal(0, 1, [c] + [1] * dims).astype("f4"))])])
                parts.append(g.node("Mul", [t, g.constant(n.normal(0, 1, [c] + [1] * dims).astype("f4"))]))
            x, s, z = g.quantize(g.node("Add", parts), -3.0, 3.0)
        elif op in ("add", "mul"):
            other, t, _ = g.quantize(g.node("Tanh", [x]), -1.0, 1.0)
            if op == "mul" and n.random() < 0.5:
                pooled, _, _ = g.quantize(g.node("GlobalAveragePool", [x]), -2.0, 2.0)
                other, _, _ = g.quantize(g.node("Sigmoid", [pooled]), 0.0, 1.0)
            y = g.node("Mul" if op == "mul" else str(n.choice(["Add", "Sub"])), [x, other])
            x, s, z = g.quantize(g.node("Relu", [y]) if n.random() < 0.3 else y, -3.0, 3.0)
        elif op in ("max", "average"):
            if min(shape[2:]) < 3:
                continue
            pads = [int(n.integers(0, 2)) for _ in range(2 * dims)]
            a = {"count_include_pad": int(n.integers(0, 2))} if op == "average" else {}
            if n.random() < 0.3:
                a["ceil_mode"] = 1
            y = g.node("MaxPool" if op == "max" else "AveragePool", [x], kernel_shape=[2] * dims, strides=[2] * dims, pads=pads, **a)
            # a last window begins inside of the image or the pads before it
            fits = [d + pads[k] + pads[dims + k] - 2 for k, d in enumerate(shape[2:])]
            more = [int("ceil_mode" in a and r % 2 and (r // 2 + 1) * 2 < d + pads[k]) for k, (r, d) in enumerate(zip(fits, shape[2:]))]
            shape = shape[:2] + [r // 2 + 1 + m for r, m in zip(fits, more)]
            x, s, z = g.quantize(y, -3.0, 3.0, *((s, z) if op == "max" else ()))
        elif op == "mean":
            axes = [k for k in range(1, dims + 2) if n.random() < 0.4] or [dims + 1]
            y = g.node("ReduceMean", [x], axes=[k - int(n.integers(0, 2)) * len(shape) for k in axes])
            shape = [1 if k in axes else d for k, d in enumerate(shape)]
            x, s, z = g.quantize(g.node("Relu", [y]) if n.random() < 0.3 else y, -1.0, 1.0)
        elif op == "concat":
            other, _, _ = g.quantize(g.node("Tanh", [x]), -1.0, 1.0)
            axis = int(n.integers(1, dims + 2))
            if shape[axis] > 16:
                continue
            x, s, z = g.quantize(g.node("Concat", [x, other], axis=axis), -2.0, 2.0)
            shape[axis] *= 2
        elif op == "move":
            order = [0, 1] + [int(k) + 2 for k in n.permutation(dims)]
            x = g.node("Transpose", [x], perm=order)
            shape = [shape[k] for k in order]
            x, s, z = g.quantize(x, 0, 0, s, z)
        elif op == "pad":
            if max(shape[2:]) > 12:
                continue
            pads = [0, 0] + [1] * dims + [0, 0] + [0] * dims
            y = g.node("Pad", [x, g.constant(np.array(pads, "i8")), g.constant(np.float32(0))])
            shape = shape[:2] + [d + 1 for d in shape[2:]]
            x, s, z = g.quantize(y, 0, 0, s, z)
        elif op == "resize":
            if max(shape[2:]) > 12:
                continue
            sizes = shape[:2] + [int(n.integers(1, 2 * d + 1)) for d in shape[2:]]
            mode = str(n.choice(["linear", "cubic"])) if dims == 2 else "linear"
            way = str(n.choice(["half_pixel", "align_corners", "asymmetric"]))
            y = g.node("Resize", [x, "", "", g.constant(np.array(sizes, "i8"))], mode=mode, coordinate_transformation_mode=way)
            shape = sizes
            x, s, z = g.quantize(g.node("Relu", [y]) if n.random() < 0.3 else y, -2.0, 2.0)
        elif op == "softmax":
            x, s, z = g.quantize(g.node("Softmax", [x], axis=int(n.integers(1, dims + 2))), 0.0, 1.0)
        elif op in ("norm", "row"):
            y = g.node("Sub", [x, g.node("ReduceMean", [x], axes=[-1] if op == "row" else [1, 2])])
            variance = g.node("Add", [g.node("ReduceMean", [g.node("Mul", [y, y])], axes=[1]), g.constant(np.float32(0.1))])
            x, s, z = g.quantize(g.node("Div", [y, g.node("Sqrt", [variance])]), -3.0, 3.0)
        elif op == "both":
            out = 2 * int(n.integers(1, 3))
            w, ws = g.weights([out, c] + [1] * dims, 0)
            y = g.node("Conv", [x, w])
            a, _, _ = g.quantize(y, -3.0, 3.0)
            b, _, _ = g.quantize(g.node("Softplus", [g.node("ReduceMax", [y], axes=[1])]), 0.0, 3.0)
            x, s, z = g.quantize(g.node("Mul", [a, b]), -3.0, 3.0)
            shape[1] = out
        else:
            x, s, z = g.quantize(x, -1.5, 2.5)
    end = "bytes" if most == 1 or whole else str(n.choice(["bytes", "gemm", "mean", "matmul"]))
    kinds.append(end)
    if floats and n.random() < 0.5:
        x = g.node(str(n.choice(["Tanh", "Exp", "Transpose"])), [x])
        shape = shape[::-1] if g.nodes[-1].op_type == "Transpose" else shape
        end = "floats"
    if end in ("gemm", "matmul"):
        flat = g.node("Flatten", [x])
        k = int(np.prod(shape[1:]))
        if k <= 3000:
            w, ws = g.weights([k, 5], 1)
            x = g.node("Gemm", [flat, w, g.bias(5, s * ws)]) if end == "gemm" else g.node("Add", [g.node("MatMul", [flat, w]), g.constant(n.normal(0, 1, 5).astype("f4"))])
            shape = [1, 5]
    elif end == "mean":
        x = g.node("Flatten", [g.node("GlobalAveragePool", [x])])
        shape = shape[:2]
    return case_of(g, start, x, shape)


def rows(seed):
    """One product, mean or convolution, and what is behind it."""
    g = Net(seed)
    n = g.n
    kind = str(n.choice(["gemm", "matmul", "two", "mean", "plane", "conv", "sums"]))
    lead = [int(n.integers(1, 4)) for _ in range(int(n.integers(0, 3)) if kind in ("matmul", "two", "mean") else 0)]
    inner, out = int(n.integers(2, 9)), int(n.integers(2, 9))
    start = lead + [int(n.integers(1, 5)), inner]
    if kind in ("plane", "conv"):
        start = [int(n.integers(1, 4)), inner, int(n.integers(3, 6)), int(n.integers(3, 6))]
    x, s, z = g.quantize("x", -2.0, 2.0)
    if kind in ("gemm", "sums"):
        turned = n.random() < 0.5
        w, ws = g.weights([out, inner] if turned else [inner, out], 0 if turned else 1)
        y = g.node("Gemm", [x, w] + ([g.bias(out, s * ws)] if n.random() < 0.7 else []), transB=int(turned))
        shape = [start[0], out]
    elif kind == "matmul":
        w, _ = g.weights([inner, out], 1)
        y = g.node("MatMul", [x, w])
        if n.random() < 0.6:
            terms = [y, g.constant(n.normal(0, 1, out).astype("f4"))]
            y = g.node("Add", terms if n.random() < 0.5 else terms[::-1])
        shape = start[:-1] + [out]
    elif kind == "two":
        turn = list(range(len(start)))
        turn[-2:] = turn[-1], turn[-2]
        other, _, _ = g.quantize(g.node("Tanh", [x]), -1.0, 1.0)
        y = g.node("MatMul", [x, g.node("Transpose", [other], perm=turn)])
        if n.random() < 0.5:
            y = g.node("Mul" if n.random() < 0.5 else "Div", [y, g.constant(np.float32(0.5 + n.random()))])
        shape = start[:-1] + [start[-2]]
    elif kind == "mean":
        kept, last = int(n.integers(0, 2)), int(n.integers(1, len(start)))
        y = g.node("ReduceMean", [x], axes=list(range(-last, 0)), keepdims=kept)
        shape = start[:-last] + [1] * last * kept
    elif kind == "plane":
        y = g.node("GlobalAveragePool", [x])
        shape = start[:2] + [1, 1]
    else:
        w, ws = g.weights([out, inner, 2, 2], 0)
        y = g.node("Conv", [x, w] + ([g.bias(out, s * ws)] if n.random() < 0.7 else []))
        shape = [start[0], out, start[2] - 1, start[3] - 1]
    behind = str(n.choice(["grid", "relu", "clip"])) if kind != "sums" else str(n.choice(["sums", "sigmoid", "softmax", "reshape"]))
    if behind == "relu":
        y = g.node("Relu", [y])
    elif behind == "clip":
        y = g.node("Clip", [y, g.constant(np.float32(-0.5)), g.constant(np.float32(1.5))])
    elif behind in ("sigmoid", "softmax"):
        if n.random() < 0.5:
            y, _, _ = g.quantize(y, -4.0, 4.0)
        y = g.node("Sigmoid", [y]) if behind == "sigmoid" else g.node("Softmax", [y], axis=-1)
    elif behind == "reshape":
        shape = [int(np.prod(shape)), 1]
        y = g.node("Reshape", [y, g.constant(np.array(shape, "i8"))])
    if kind != "sums":
        y, _, _ = g.quantize(y, -3.0, 3.0)
    return case_of(g, start, y, shape)


def case_of(g, start, x, shape):
    """The case of a network with the output x."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(g.nodes, "quantized", [value("x", 1, start)], [value(x, 1, shape)], g.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    onnx.checker.check_model(model)
    data = model.SerializeToString()
    return case_bytes([("x", g.n.normal(0, 1, start).astype("f4"))], [data, b""])


def main():
    seed = int(sys.argv[2])
    with open(sys.argv[1], "wb") as f:
        for k in range(int(sys.argv[3])):
            number = seed * 1000003 + k
            f.write(rows(number) if sys.argv[5:] == ["rows"] else network(number, int(sys.argv[4]), sys.argv[5:]))


main()
