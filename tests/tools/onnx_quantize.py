# SPDX-License-Identifier: MIT-0
# onnx_quantize.py FILE SEED COUNT [equal]: random ONNX graphs of layers that onnx_int8.h can quantize, and of others between them,
# with an input each, for onnx_quantize.c. FILE has the format of onnx_random.py. A graph is a chain of layers with branches: each step
# reads one of the last values, or two of one shape. equal: convolutions whose channels differ in size, gates, and depthwise
# convolutions.
import random
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")
for old, kind in (("float", float), ("int", int), ("bool", bool), ("object", object)):
    setattr(np, old, kind)
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference
from onnx_tensors import case_bytes


class Graph:
    def __init__(self, seed):
        self.r, self.n = random.Random(seed), np.random.default_rng(seed)
        self.opset = self.r.choice((11, 12, 13, 13, 14, 15, 16, 17, 17))
        self.nodes, self.initializers, self.shape, self.count = [], [], {}, 0
        rank = self.r.choice((2, 2, 3, 3, 4, 4, 4, 4))
        batch = self.r.choice((1, 1, 2, 4))
        shape = [batch] + ([self.r.randint(2, 12)] if rank == 2 else [self.r.randint(1, 9), self.r.randint(2, 9)]
                           if rank == 3 else [self.r.randint(1, 8), self.r.randint(3, 10), self.r.randint(3, 10)])
        self.input = (self.name(shape), np.asarray(self.n.standard_normal(shape), dtype="f4"))
        self.last = [self.input[0]]

    def name(self, shape):
        self.count += 1
        self.shape[f"v{self.count}"] = list(shape)
        return f"v{self.count}"

    def constant(self, array):
        name = self.name(np.shape(array))
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape, scale=1.0):
        w = self.n.standard_normal(shape) * scale / np.sqrt(max(1, np.prod(shape[1:])))
        if self.r.random() < 0.1:
            w[0] = 0
        return self.constant(w.astype("f4"))

    def bias(self, n):
        return self.constant((0.3 * self.n.standard_normal(n)).astype("f4"))

    def node(self, op, inputs, outputs=1, **attributes):
        """Adds a node; its shapes are inferred. Returns its outputs, or its only one."""
        names = [f"v{self.count + 1 + k}" for k in range(outputs)]
        node = helper.make_node(op, inputs, names, **attributes)
        known = [helper.make_tensor_value_info(i, TensorProto.FLOAT, self.shape[i]) for i in inputs
                 if i and i not in {t.name for t in self.initializers}]
        constants = [t for t in self.initializers if t.name in inputs]
        graph = helper.make_graph([node], "g", known, [helper.make_empty_tensor_value_info(n) for n in names], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        done = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        for value in done.graph.output:
            dims = [d.dim_value for d in value.type.tensor_type.shape.dim]
            if not value.type.tensor_type.HasField("shape") or any(d < 1 for d in dims):
                raise ValueError("no shape")
            self.name(dims)
        self.nodes.append(node)
        self.last = (self.last + names)[-5:]
        return names if outputs > 1 else names[0]

    def ints(self, *x):
        return self.constant(np.array(x, dtype="i8"))

    # ---- layers ----
    def conv(self, x):
        s = self.shape[x]
        spatial = len(s) - 2
        groups = self.r.choice([g for g in (1, 1, 2, s[1]) if s[1] % g == 0])
        out = groups * self.r.randint(1, 6)
        kernel = [self.r.randint(1, min(3, d)) for d in s[2:]]
        w = self.weight(out, s[1] // groups, *kernel)
        inputs = [x, w] + ([self.bias(out)] if self.r.random() < 0.7 else [])
        pads = [self.r.randint(0, (k - 1) // 2 + (k > 1)) for k in kernel]
        return self.node("Conv", inputs, group=groups, kernel_shape=kernel, pads=pads + pads,
                         strides=[self.r.choice((1, 1, 2)) for _ in kernel])

    def unequal(self, x):
        s = self.shape[x]
        out, spatial = self.r.randint(2, 8), len(s) - 2
        size = 2.0 ** self.n.uniform(-5, 5, out)
        w = self.n.standard_normal((out, s[1]) + (1,) * spatial) * size.reshape((out, 1) + (1,) * spatial) / np.sqrt(s[1])
        b = [self.constant((0.3 * size * self.n.standard_normal(out)).astype("f4"))] if self.r.random() < 0.7 else []
        y = self.node("Conv", [x, self.constant(w.astype("f4"))] + b)
        y = self.gate(self.norm(y) if self.r.random() < 0.3 else y)
        times, kernel = self.r.randint(1, 2), [self.r.randint(1, min(3, d)) for d in s[2:]]
        v = self.n.standard_normal([out * times, 1] + kernel) / np.repeat(size, times).reshape([-1, 1] + [1] * spatial)
        b = [self.bias(out * times)] if self.r.random() < 0.7 else []
        return self.node("Conv", [y, self.constant(v.astype("f4"))] + b, group=out, kernel_shape=kernel)

    def conv_transpose(self, x):
        s = self.shape[x]
        groups = self.r.choice([g for g in (1, 1, 2) if s[1] % g == 0])
        out = self.r.randint(1, 4)
        kernel = [self.r.randint(1, 3) for _ in s[2:]]
        w = self.weight(s[1], out, *kernel)
        inputs = [x, w] + ([self.bias(out * groups)] if self.r.random() < 0.7 else [])
        return self.node("ConvTranspose", inputs, group=groups, kernel_shape=kernel, strides=[self.r.choice((1, 2)) for _ in kernel])

    def norm(self, x):
        c = self.shape[x][1]
        p = [self.constant((self.n.uniform(0.5, 1.5, c)).astype("f4")), self.bias(c), self.bias(c),
             self.constant((self.n.uniform(0.5, 1.5, c)).astype("f4"))]
        return self.node("BatchNormalization", [x] + p)

    def gemm(self, x):
        k, n, turned = self.shape[x][1], self.r.randint(1, 12), self.r.randint(0, 1)
        w = self.weight(n, k) if turned else self.weight(k, n)
        inputs = [x, w] + ([self.bias(n)] if self.r.random() < 0.8 else [])
        return self.node("Gemm", inputs, transB=turned)

    def matmul(self, x):
        k, n = self.shape[x][-1], self.r.randint(1, 12)
        y = self.node("MatMul", [x, self.weight(k, n)])
        return self.node("Add", [y, self.bias(n)]) if self.r.random() < 0.6 else y

    def product(self, x):
        rank = len(self.shape[x])
        turned = self.node("Transpose", [x], perm=list(range(rank - 2)) + [rank - 1, rank - 2])
        return self.node("MatMul", [x, turned])

    def gate(self, x):
        kind = self.r.choice(("Relu", "Relu", "Relu", "Clip", "Sigmoid", "SiLU", "GELU", "LeakyRelu", "HardSigmoid", "Tanh", "Elu", "pieces"))
        if kind == "Clip":
            return self.node("Clip", [x, self.constant(np.float32(0)), self.constant(np.float32(self.r.choice((1, 6))))])
        if kind == "SiLU":
            return self.node("Mul", [x, self.node("Sigmoid", [x])])
        if kind == "GELU":
            y = self.node("Erf", [self.node("Div", [x, self.constant(np.float32(np.sqrt(2)))])])
            y = self.node("Mul", [x, self.node("Add", [y, self.constant(np.float32(1))])])
            return self.node("Mul", [y, self.constant(np.float32(0.5))])
        if kind == "pieces":
            a = self.node("Mul", [self.node("Relu", [self.node("Sub", [x, self.constant(np.float32(0.3))])]), self.constant(np.float32(0.8))])
            return self.node("Add", [a, self.node("Mul", [x, self.constant(np.float32(0.1))])])
        return self.node(kind, [x])

    def pair(self, x):
        same = [v for v in self.last if self.shape[v] == self.shape[x] and v != x]
        if not same:
            raise ValueError("no other value")
        return self.node(self.r.choice(("Add", "Add", "Mul", "Sub")), [x, self.r.choice(same)])

    def pool(self, x):
        if len(self.shape[x]) < 3:
            raise ValueError("no image")
        kind = self.r.choice(("MaxPool", "AveragePool", "GlobalAveragePool"))
        if kind == "GlobalAveragePool":
            return self.node(kind, [x])
        kernel = [self.r.randint(1, min(3, d)) for d in self.shape[x][2:]]
        return self.node(kind, [x], kernel_shape=kernel, strides=[self.r.choice((1, 2)) for _ in kernel])

    def move(self, x):
        s = self.shape[x]
        kind = self.r.choice(("Reshape", "Transpose", "Slice", "Concat", "Split", "Pad", "Unsqueeze", "Flatten", "Gather", "Resize"))
        if kind == "Reshape":
            return self.node(kind, [x, self.ints(s[0], -1)])
        if kind == "Transpose":
            perm = list(range(1, len(s)))
            self.r.shuffle(perm)
            return self.node(kind, [x], perm=[0] + perm)
        if kind == "Slice":
            axis = self.r.randrange(1, len(s))
            return self.node(kind, [x, self.ints(0), self.ints(max(1, s[axis] - 1)), self.ints(axis)])
        if kind == "Concat":
            like = [v for v in self.last if len(self.shape[v]) == len(s) and self.shape[v][0] == s[0] and self.shape[v][2:] == s[2:]]
            return self.node(kind, [x] + self.r.sample(like, self.r.randint(1, min(2, len(like)))), axis=1)
        if kind == "Split":
            if s[1] < 2:
                raise ValueError("too narrow")
            sizes = [1, s[1] - 1]
            if self.opset < 13:
                return self.node(kind, [x], 2, axis=1, split=sizes)[1]
            return self.node(kind, [x, self.ints(*sizes)], 2, axis=1)[1]
        if kind == "Pad":
            return self.node(kind, [x, self.ints(*([0] * (len(s) - 1) + [1] + [0] * (len(s) - 1) + [1]))])
        if kind == "Unsqueeze":
            if len(s) > 3:
                raise ValueError("too many dimensions")
            return self.node(kind, [x], axes=[1]) if self.opset < 13 else self.node(kind, [x, self.ints(1)])
        if kind == "Gather":
            return self.node(kind, [x, self.constant(np.array([0, s[-1] - 1], dtype="i8"))], axis=len(s) - 1)
        if kind == "Resize":
            if len(s) != 4:
                raise ValueError("no image")
            roi = "" if self.opset > 12 else self.constant(np.array([], dtype="f4"))
            return self.node(kind, [x, roi, self.constant(np.array([1, 1, 2, 2], dtype="f4"))], mode="nearest",
                             coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        return self.node(kind, [x])

    def float_only(self, x):
        return self.node("Softmax", [x], axis=len(self.shape[x]) - 1)

    def step(self):
        x = self.last[-1] if self.r.random() < 0.75 else self.r.choice(self.last)
        rank = len(self.shape[x])
        layers = [self.gate, self.gate, self.pair, self.pool, self.move]
        if rank > 2:
            layers += [self.conv] * 4 + [self.conv_transpose]
        if rank == 2:
            layers += [self.gemm] * 3
        if rank < 4:
            layers += [self.matmul] * 2
        if rank in (3, 4):
            layers += [self.product]
        if rank > 2 and self.nodes and self.nodes[-1].op_type == "Conv" and x == self.last[-1]:
            layers += [self.norm] * 3
        if self.r.random() < 0.05:
            layers = [self.float_only]
        self.r.choice(layers)(x)

    def model(self):
        read = {i for n in self.nodes for i in n.input}
        outs = [o for n in self.nodes for o in n.output if o not in read]
        info = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, "g", [info(self.input[0], TensorProto.FLOAT, self.input[1].shape)],
                                  [info(o, TensorProto.FLOAT, self.shape[o]) for o in outs], self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 8
        onnx.checker.check_model(model)
        return model


def grow(seed, equal):
    g = Graph(seed)
    if equal:
        for _ in range(g.r.randint(1, 3) if len(g.shape[g.input[0]]) > 2 else 0):
            g.unequal(g.last[-1])
        return g
    wanted = g.r.randint(2, 9)
    for _ in range(4 * wanted):
        if len(g.nodes) >= wanted:
            break
        kept = (len(g.nodes), len(g.initializers), g.count, list(g.last))
        try:
            g.step()
        except (ValueError, IndexError, shape_inference.InferenceError, onnx.checker.ValidationError):
            del g.nodes[kept[0]:], g.initializers[kept[1]:]
            g.count, g.last = kept[2], kept[3]
        else:
            if np.prod(g.shape[g.last[-1]]) > 20000:
                break
    return g


def main():
    path, seed, count, equal = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), "equal" in sys.argv[4:]
    with open(path, "wb") as f:
        for k in range(count):
            g = grow(seed * 1000003 + k, equal)
            if not g.nodes:
                continue
            model = g.model().SerializeToString()
            f.write(case_bytes([g.input], [model, model]))


main()
