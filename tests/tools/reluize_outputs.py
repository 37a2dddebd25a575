# SPDX-License-Identifier: MIT-0
# reluize_outputs.py FOLDER: writes ONNX files and their inputs on which it matters what is scored: networks that are ReLU already, of
# continuous outputs, with a softmax or a name, of images; with outputs whose size depends on the data; with leaky ReLUs below a
# maximum; with functions that stay; with weights among the inputs; a convolutional network that is large enough for trials.
import sys
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = sys.argv[1]
random = np.random.RandomState(5)


def normal(*shape, scale=1.0):
    return (random.standard_normal(shape) * scale).astype(np.float32)


def save(name, shape, nodes, constants, outputs=("y",), weights_as_inputs=(), batch="n"):
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch] + shape)]
    inputs += [helper.make_tensor_value_info(w, TensorProto.FLOAT, list(constants[w].shape)) for w in weights_as_inputs]
    kinds = {"selected": TensorProto.INT64}
    graph = helper.make_graph(nodes, "graph", inputs,
                              [helper.make_tensor_value_info(o, kinds.get(o, TensorProto.FLOAT), None) for o in outputs],
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)]), f"{folder}/{name}.onnx")


def perceptron(gate, constants=None, last="y"):
    """A Gemm, nodes of a gate from h to g, and a Gemm."""
    weights = {"a": normal(8, 16, scale=0.5), "ab": normal(16, scale=0.3), "b": normal(16, 4, scale=0.4), "bb": normal(4, scale=0.3)}
    nodes = [helper.make_node("Gemm", ["x", "a", "ab"], ["h"])] + gate + [helper.make_node("Gemm", ["g", "b", "bb"], [last])]
    return nodes, {**weights, **(constants or {})}


silu = [helper.make_node("Sigmoid", ["h"], ["s"]), helper.make_node("Mul", ["h", "s"], ["g"])]
np.save(f"{folder}/x.npy", normal(300, 8))
np.save(f"{folder}/same.npy", np.repeat(normal(10, 8), 30, axis=0))

save("relu", [8], *perceptron([helper.make_node("Relu", ["h"], ["g"])]))
save("tanh", [8], *perceptron([helper.make_node("Tanh", ["h"], ["g"])]))
save("policy", [8], *perceptron([helper.make_node("Elu", ["h"], ["g"])]))
nodes, constants = perceptron(silu, last="scores")
save("softmax", [8], nodes + [helper.make_node("Softmax", ["scores"], ["y"])], constants)
save("named", [8], *perceptron(silu, last="logits"), outputs=["logits"])

# positive scores are selected, as a non-maximum suppression does
nodes, constants = perceptron(silu, last="scores")
save("selected", [8], nodes + [helper.make_node("Greater", ["scores", "zero"], ["above"]), helper.make_node("NonZero", ["above"], ["selected"])],
     {**constants, "zero": np.float32(0)}, outputs=["selected"])
save("both", [8], nodes + [helper.make_node("Greater", ["scores", "zero"], ["above"]), helper.make_node("NonZero", ["above"], ["selected"])],
     {**constants, "zero": np.float32(0)}, outputs=["selected", "scores"])

save("leaky_max", [8], *perceptron([helper.make_node("LeakyRelu", ["h"], ["l"], alpha=0.2), helper.make_node("Max", ["l", "least"], ["g"])],
                                   {"least": np.float32(-0.31)}))

# squeeze and excite: a hard sigmoid stays beside a gate that is replaced
save("squeeze", [3, 8, 8], [helper.make_node("Conv", ["x", "a", "ab"], ["h"], pads=[1, 1, 1, 1])] + silu + [
    helper.make_node("GlobalAveragePool", ["g"], ["p"]), helper.make_node("Conv", ["p", "d"], ["q"]),
    helper.make_node("HardSigmoid", ["q"], ["t"]), helper.make_node("Mul", ["g", "t"], ["m"]), helper.make_node("Conv", ["m", "b"], ["o"]),
    helper.make_node("GlobalAveragePool", ["o"], ["e"]), helper.make_node("Flatten", ["e"], ["y"])],
     {"a": normal(8, 3, 3, 3, scale=0.3), "ab": normal(8, scale=0.3), "d": normal(8, 8, 1, 1, scale=0.4), "b": normal(4, 8, 1, 1, scale=0.5)})
np.save(f"{folder}/images.npy", normal(60, 3, 8, 8))
# a detector with two anchors at each place: what is behind the samples are no classes; one that takes four channels
for name, channels in ("anchors", 3), ("four", 4):
    save(name, [channels, 8, 8], [helper.make_node("Conv", ["x", "a"], ["h"], pads=[1, 1, 1, 1])] + silu + [
        helper.make_node("Conv", ["g", "b"], ["o"]), helper.make_node("Reshape", ["o", "places"], ["y"])],
         {"a": normal(8, channels, 3, 3, scale=0.3), "b": normal(12, 8, 1, 1, scale=0.5), "places": np.array([-1, 2, 6, 8, 8])})

# a weight that is an input, too; and one whose biases alone can change: what it reads is a constant but for its mean
nodes = [helper.make_node("MatMul", ["x", "W"], ["h"])] + silu + [helper.make_node("MatMul", ["g", "V"], ["y"])]
save("weights", [8], nodes, {"W": normal(8, 8, scale=0.5), "V": normal(8, 4, scale=0.5)}, weights_as_inputs=["V"])

# sigmoids that are outputs of the same kind, beside each other
nodes, constants = perceptron(silu, last="scores")
save("sigmoids", [8], nodes + [helper.make_node("Sigmoid", ["scores"], [f"y{k}"]) for k in range(3)], constants,
     outputs=[f"y{k}" for k in range(3)])

# depthwise and pointwise convolutions, 1.2 million elements an image
constants, nodes, x = {}, [], "x"
for k, (channels, into) in enumerate([(3, 24), (24, 24), (24, 8)]):
    constants[f"d{k}"] = normal(channels, 1, 3, 3, scale=0.4)
    constants[f"p{k}"] = normal(into, channels, 1, 1, scale=1 / channels ** 0.5)
    nodes += [helper.make_node("Conv", [x, f"d{k}"], [f"u{k}"], group=channels, pads=[1, 1, 1, 1]),
              helper.make_node("Conv", [f"u{k}", f"p{k}"], [f"h{k}"])]
    if k < 2:
        nodes += [helper.make_node("Sigmoid", [f"h{k}"], [f"s{k}"]), helper.make_node("Mul", [f"h{k}", f"s{k}"], [f"g{k}"])]
    x = f"g{k}"
nodes += [helper.make_node("GlobalAveragePool", ["h2"], ["e"]), helper.make_node("Flatten", ["e"], ["y"])]
save("large", [3, 96, 96], nodes, constants, batch=1)
images = normal(560, 3, 96, 96)
np.save(f"{folder}/large.npy", (images + normal(560, 3, 1, 1)).astype(np.float16).astype(np.float32))

# a sample is the whole input
nodes = [helper.make_node("MatMul", ["x", "A"], ["h"])] + silu + [helper.make_node("MatMul", ["g", "B"], ["y"])]
save("single", [], nodes, {"A": normal(8, 16, scale=0.5), "B": normal(16, 4, scale=0.4)}, batch=8)
# a value of which one channel is a thousand times as wide as the other, which alone is read
wide = np.zeros((8, 2), np.float32)
wide[0, 0], wide[1, 1] = 1000, 1
save("wide", [8], [helper.make_node("MatMul", ["x", "A"], ["h"]), helper.make_node("MatMul", ["h", "B"], ["y"])],
     {"A": wide, "B": np.asarray([[0, 0], [1, -1]], np.float32)})
