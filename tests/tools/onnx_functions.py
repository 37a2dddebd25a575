# SPDX-License-Identifier: MIT-0
"""onnx_functions.py FOLDER: networks with functions of the model, for test_onnx_inline.sh. Each NAME.onnx takes x, (n, 8) in NAME.npy.
NAME_flat.onnx is the same network without functions, where there is one.

    onnx_functions.py FOLDER check FILE...   what was written has no functions, and onnx accepts it
"""
import os, sys
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

folder, rng = sys.argv[1], np.random.default_rng(1)
OPSETS = [helper.make_opsetid("", 15), helper.make_opsetid("lib", 1)]


def weight(name, *shape):
    return numpy_helper.from_array((0.5 * rng.standard_normal(shape)).astype(np.float32), name)


def reference(node, name, of):
    """Gives a node of a function an attribute that is one of the call."""
    a = onnx.AttributeProto(name=name, ref_attr_name=of, type=onnx.AttributeProto.FLOAT)
    node.attribute.append(a)
    return node


def function(name, inputs, outputs, nodes, attributes=(), opsets=OPSETS):
    return helper.make_function("lib", name, inputs, outputs, nodes, opsets, list(attributes))


def with_default(f, name, value):
    """Adds an attribute_proto, field 11, which this version of the package may not know."""
    a = helper.make_attribute(name, value).SerializeToString()
    f.MergeFromString(bytes([11 << 3 | 2, len(a)]) + a)
    return f


def call(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, domain="lib", **attributes)


def save(name, nodes, weights, functions):
    value = lambda name, size: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size])
    graph = helper.make_graph(nodes, name, [value("x", 8)], [value("y", 4)], weights)
    model = helper.make_model(graph, opset_imports=OPSETS if functions else OPSETS[:1], ir_version=8, functions=functions)
    onnx.save(model, os.path.join(folder, name + ".onnx"))
    np.save(os.path.join(folder, name + ".npy"), rng.standard_normal((200, 8)).astype(np.float32))


def swish(x, y, prefix="", beta=None):
    """β by reference to the attribute of the call, or a number."""
    constant = helper.make_node("Constant", [], [prefix + "b"], **({} if beta is None else {"value_float": beta}))
    return [reference(constant, "value_float", "beta") if beta is None else constant,
            helper.make_node("Mul", [x, prefix + "b"], [prefix + "t"], name="scale"), helper.make_node("Sigmoid", [prefix + "t"], [prefix + "s"]),
            helper.make_node("Mul", [x, prefix + "s"], [y])]


def nested():
    """Layers in functions in functions, as exporters write them: each is called twice; a name of the main graph is in the way."""
    layer = function("layer", ["x", "w", "b"], ["y"], [helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="gemm"),
                                                      reference(call("swish", ["h"], ["y"]), "beta", "beta")], ["beta"])
    gate = with_default(function("swish", ["x"], ["y"], swish("x", "y")), "beta", 1.0)
    weights = [weight("first/h", 8, 16), weight("b1", 16), weight("w2", 16, 16), weight("b2", 16), weight("w3", 16, 4)]
    nodes = [helper.make_node("layer", ["x", "first/h", "b1"], ["h"], name="first", domain="lib", beta=1.7),
             helper.make_node("layer", ["h", "w2", "b2"], ["s"], name="first", domain="lib"), helper.make_node("MatMul", ["s", "w3"], ["y"])]
    save("nested", nodes, weights, [layer, gate])
    flat = [helper.make_node("Gemm", ["x", "first/h", "b1"], ["g"])] + swish("g", "h", "1", 1.7)
    flat += [helper.make_node("Gemm", ["h", "w2", "b2"], ["k"])] + swish("k", "s", "2", 1.0)
    save("nested_flat", flat + nodes[2:], weights, [])


def branches():
    """A function with an If, whose branches read the function's values and have initializers of their own; calls in a branch."""
    out = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
    then = helper.make_graph([helper.make_node("Add", ["h", "one"], ["t"]), call("swish", ["t"], ["then_y"])], "then", [], [out("then_y")],
                             [numpy_helper.from_array(np.float32([0.25]), "one")])
    other = helper.make_graph([helper.make_node("Identity", ["h"], ["else_y"])], "else", [], [out("else_y")])
    choose = function("choose", ["x", "flag"], ["y"], [helper.make_node("Neg", ["x"], ["h"]), helper.make_node(
        "If", ["flag"], ["y"], then_branch=then, else_branch=other)])
    gate = with_default(function("swish", ["x"], ["y"], swish("x", "y")), "beta", 1.0)
    top = helper.make_graph([call("swish", ["b"], ["top_y"], beta=0.5)], "top", [], [out("top_y")])
    flags = [numpy_helper.from_array(np.bool_(v), n) for n, v in (("yes", True), ("no", False))]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), call("choose", ["h", "yes"], ["a"]), call("choose", ["a", "no"], ["b"]),
             helper.make_node("If", ["yes"], ["c"], then_branch=top, else_branch=helper.make_graph(
                 [helper.make_node("Identity", ["b"], ["o"])], "other", [], [out("o")])),
             call("swish", ["c"], ["d"]), helper.make_node("MatMul", ["d", "v"], ["y"])]
    save("branches", nodes, flags + [weight("w", 8, 16), weight("v", 16, 4)], [choose, gate])


def copies():
    """Outputs that are inputs, one value as two outputs, inputs that a call leaves out, outputs that it does not name."""
    several = function("several", ["x", "low", "high"], ["same", "y", "again", "unused"],
                       [helper.make_node("Clip", ["x", "low", "high"], ["y2"]), helper.make_node("Softplus", ["y2"], ["unused"]),
                        helper.make_node("Identity", ["y2"], ["y"])])
    several.output[0], several.output[2] = "x", "y"
    gate = with_default(function("swish", ["x"], ["y"], swish("x", "y")), "beta", 1.0)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), call("several", ["h", "", "most"], ["a", "b", "c"]), call("several", ["c"], ["", "e"]),
             helper.make_node("Sum", ["a", "b", "c", "e"], ["f"]), call("swish", ["f"], ["g"]), helper.make_node("MatMul", ["g", "v"], ["y"])]
    save("copies", nodes, [weight("w", 8, 16), weight("v", 16, 4), numpy_helper.from_array(np.float32(1.5), "most")], [several, gate])


def other_opset():
    """A function of another opset than the model keeps its call."""
    opsets = [helper.make_opsetid("", 14), OPSETS[1]]
    kept = function("kept", ["x"], ["y"], swish("x", "y", beta=1.0), opsets=opsets)
    gate = with_default(function("swish", ["x"], ["y"], swish("x", "y")), "beta", 1.0)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), call("kept", ["h"], ["k"]), call("swish", ["k"], ["s"], beta=2.0),
             helper.make_node("MatMul", ["s", "v"], ["y"])]
    save("opset", nodes, [weight("w", 8, 16), weight("v", 16, 4)], [kept, gate])


def check(files):
    for file in files:
        model = onnx.load(os.path.join(folder, file))
        onnx.checker.check_model(model, full_check=True)
        if model.functions:
            sys.exit(f"{file} has functions: {[f.name for f in model.functions]}")


if sys.argv[2:3] == ["check"]:
    check(sys.argv[3:])
else:
    nested()
    branches()
    copies()
    other_opset()
