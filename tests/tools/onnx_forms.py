# SPDX-License-Identifier: MIT-0
# onnx_forms.py FOLDER: forms that PyTorch's exporter of today or other tools write, up to opset 25, made by hand:
# FOLDER/NAME.onnx and NAME.in, listed in FOLDER/list.
import sys
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

folder = sys.argv[1]
random = np.random.default_rng(1)
good = open(f"{folder}/list", "w")
def w(*shape): return (random.standard_normal(shape) / 2).astype(np.float32)
def n(op, ins, outs, **a): return h.make_node(op, ins.split(), outs.split(), **a)
def arrays(d): return [nh.from_array(np.asarray(v), k) if not isinstance(v, onnx.TensorProto) else v for k, v in d.items()]

def graph(nodes, shape, result, init, kind=T.FLOAT):
    return h.make_graph(nodes, "g", [h.make_tensor_value_info("x", kind, ["N", *shape])],
                        [h.make_tensor_value_info("y", T.FLOAT, ["N", *result])], arrays(init))
def model(g, opset, ir=8): return h.make_model(g, opset_imports=[h.make_opsetid("", opset)], ir_version=ir)
def ceiling_of(size, k, s, p):
    out = -(-(size + 2 * p - k) // s) + 1
    return out - ((out - 1) * s >= size + p)
def case(name, nodes, shape, result, opset=20, ir=9, ceiling=None, change=None, **init):
    if ceiling: result = (result[0], *(ceiling_of(size, *ceiling) for size in shape[1:]))
    m = model(graph(nodes, shape, result, init), opset, ir)
    if change: change(m)
    onnx.save(m, f"{folder}/{name}.onnx")
    (random.standard_normal((3, *shape))).astype("<f4").tofile(f"{folder}/{name}.in")
    print(name, "float32", ",".join(map(str, (3, *shape))), ",".join(map(str, (3, *result))), sep="\t", file=good)
ints = lambda *a: np.array(a, np.int64)
# before IR 4 each constant is an input as well
def with_inputs(m): m.graph.input.extend(h.make_tensor_value_info(t.name, t.data_type, t.dims) for t in m.graph.initializer)

mlp = lambda act: [n("Gemm", "x a b", "h", transB=1), *act, n("Gemm", "g c d", "y", transB=1)]
p = dict(a=w(6, 4), b=w(6), c=w(3, 6), d=w(3))
case("gelu", mlp([n("Gelu", "h", "g")]), (4,), (3,), **p)
case("gelu_tanh", mlp([n("Gelu", "h", "g", approximate="tanh")]), (4,), (3,), **p)
case("half", [n("Cast", "a16", "a", to=T.FLOAT), n("Cast", "b16", "b", to=T.FLOAT), n("Cast", "c64", "c", to=T.FLOAT),
     *mlp([n("Gelu", "h", "g")])], (4,), (3,), a16=p["a"].astype(np.float16), b16=p["b"].astype(np.float16), c64=p["c"].astype(np.float64), d=p["d"])
case("bfloat16", [n("Cast", "a16", "a", to=T.FLOAT), *mlp([n("Gelu", "h", "g")])], (4,), (3,),
     a16=h.make_tensor("a16", T.BFLOAT16, (6, 4), (p["a"].view(np.uint32) >> 16).astype(np.uint16).tobytes(),
         raw=True), b=p["b"], c=p["c"], d=p["d"])
case("lists", mlp([n("Gelu", "h", "g")]), (4,), (3,), **{k: h.make_tensor(k, T.FLOAT, v.shape, v.ravel().tolist()) for k,
    v in p.items()})
case("gemm", [n("Gemm", "x a b", "h", alpha=0.5, beta=2.0), n("Gelu", "h", "g"), n("Gemm", "g c d", "y")], (4,), (3,), a=w(4, 6),
    b=w(1, 6), c=w(6, 3), d=w(1))
case("left", [n("MatMul", "x a", "h"), n("Add", "b h", "i"), n("Div", "i r", "e0"), n("Erf", "e0", "e1"),
    n("Add", "one e1", "e2"), n("Mul", "half e2", "e3"),
     n("Mul", "e3 i", "g"), n("MatMul", "g c", "y")], (4,), (3,), a=w(4, 6), b=w(6), c=w(6, 3), r=np.float32(2 ** 0.5), one=np.float32(1), half=np.float32([0.5]))
case("constants", [n("Constant", "", "r", value_float=2 ** -0.5), n("Constant", "", "one", value_float=1.0),
    n("Constant", "", "half", value=nh.from_array(np.float32(0.5))),
     n("Constant", "", "s", value_ints=[-1, 2, 3]), n("Gemm", "x a b", "h", transB=1), n("Reshape", "h s", "i"), n("Mul", "i r",
         "e0"), n("Erf", "e0", "e1"),
     n("Add", "e1 one", "e2"), n("Mul", "i e2", "e3"), n("Mul", "e3 half", "g3"), n("Flatten", "g3", "g"), n("Gemm", "g c d",
         "y", transB=1)], (4,), (3,), **p)
conv = dict(k=w(6, 3, 3, 3), b=w(6), c=w(5, 6), d=w(5))
for keep, opset in (0, 18), (1, 20), (1, 17):
    axes = dict(axes=[2, 3]) if opset < 18 else {}
    case(f"space_{opset}", [n("Conv", "x k b", "h", pads=[1] * 4), n("Relu", "h", "g"),
        n("ReduceMean", "g" if axes else "g ax", "m", keepdims=keep, **axes),
         *([n("Squeeze", "m ax", "v")] if keep else [n("Identity", "m", "v")]), n("Gemm", "v c d", "y",
             transB=1)], (3, 6, 5), (5,), opset, ax=ints(2, 3), **conv)
for opset in 21, 22, 23, 24, 25:
    case(f"opset_{opset}", [n("Pad", "x p", "q"), n("Conv", "q k b", "h"), n("Gelu", "h", "g"), n("BatchNormalization", "g s b m e", "i"),
        n("AveragePool", "i", "j", kernel_shape=[2, 2]), n("Reshape", "j r", "l"), n("Unsqueeze", "l u", "o"), n("Squeeze", "o u", "v"),
         n("Gemm", "v f d", "y", transB=1)], (3, 6, 5), (5,), opset, ir=10, p=ints(0, 0, 1, 1, 0, 0, 1, 1), s=w(6), m=w(6), e=np.abs(w(6)),
             r=ints(0, -1), u=ints(2), f=w(5, 120), **conv)
for opset in 7, 8:
    case(f"opset_{opset}", [n("Pad", "x", "q", pads=[0, 0, 1, 1, 0, 0, 1, 1]), n("Conv", "q k b", "h"), n("BatchNormalization", "h s b m e", "i"),
        n("Relu", "i", "g"), n("MaxPool", "g", "j", kernel_shape=[2, 2]), n("Dropout", "j", "l"), n("Flatten", "l", "v"),
         n("Gemm", "v f d", "o", transB=1), n("Sigmoid", "o", "u"), n("Mul", "o u", "y")], (3, 6, 5), (5,), opset, ir=3, change=with_inputs,
             s=w(6), m=w(6), e=np.abs(w(6)), f=w(5, 120), **conv)
case("one_channel_last", [n("Reshape", "x r", "i"), n("Conv", "i k b", "h", pads=[1] * 4), n("Relu", "h", "g"), n("MaxPool", "g", "p",
    kernel_shape=[2, 2], strides=[2, 2]), n("Transpose", "p", "t", perm=[0, 2, 3, 1]), n("Reshape", "t s", "v"), n("MatMul", "v f", "y")],
        (8, 6, 1), (5,), 15, r=ints(-1, 1, 8, 6), s=ints(-1, 72), k=w(6, 1, 3, 3), b=w(6), f=w(72, 5))
case("same", [n("Conv", "x k b", "h", auto_pad="SAME_UPPER", kernel_shape=[3, 3]), n("Relu", "h", "g"),
    n("AveragePool", "g", "p", kernel_shape=[2, 2], strides=[2, 2],
     auto_pad="VALID"), n("GlobalAveragePool", "p", "m"), n("Flatten", "m", "v", axis=-3), n("Gemm", "v c d", "y", transB=1)], (3, 6, 5), (5,), **conv)
case("pad", [n("Pad", "x p", "q"), n("Conv", "q k b", "h"), n("Relu", "h", "g"), n("Pad", "g p2", "g2"),
    n("AveragePool", "g2", "m", kernel_shape=[3, 3], count_include_pad=1),
     n("Flatten", "m", "v"), n("Gemm", "v f d", "y", transB=1)], (3, 6, 5), (5,), p=ints(0, 0, 1, 1, 0, 0, 1, 1), p2=ints(0, 0, 1, 1, 0, 0, 1, 1), f=w(5, 180), **conv)
case("same_row", [n("Conv", "x k b", "h", dilations=[1, 1], strides=[2, 2], pads=[1] * 4),
    n("BatchNormalization", "h s b m v", "i", epsilon=1e-3), n("Relu", "i", "g"),
     n("Transpose", "g", "t", perm=[0, 2, 3, 1]), n("Reshape", "t r", "q"), n("MatMul", "q f",
         "y")], (3, 6, 5), (5,), s=w(6), m=w(6), v=np.abs(w(6)), r=ints(0, -1), f=w(54, 5), **conv)

case("added", [n("Conv", "x k", "h0"), n("Add", "h0 b", "h"), n("Gelu", "h", "g"), n("GlobalAveragePool", "g", "m"),
    n("Flatten", "m", "v"),
    n("MatMul", "v f", "y0"), n("Add", "e y0", "y")], (3, 6, 5), (5,), k=conv["k"], b=w(6, 1, 1), f=w(6, 5), e=w(1, 5))

# ReLU6, bounds from below alone and on both sides of 0, and Hardsigmoid: ReLUs
case("relu6", mlp([n("Clip", "h lo hi", "g")]), (4,), (3,), lo=np.float32(0), hi=np.float32(0.6), **p)
case("clip", mlp([n("Clip", "h lo hi", "g")]), (4,), (3,), lo=np.float32(-0.3), hi=np.float32(0.4), **p)
case("clip_below", mlp([n("Clip", "h lo", "g")]), (4,), (3,), lo=np.float32(-0.5), **p)
case("clip_read_twice", [n("Clip", "x lo hi", "h"), n("Gemm", "h a b", "i", transB=1), n("Gemm", "h a b", "j", transB=1, alpha=2.0),
    n("Add", "i j", "k"), n("Clip", "k lo hi", "y")], (4,), (6,), lo=np.float32(-0.3), hi=np.float32(0.4), a=p["a"], b=p["b"])
case("hard_sigmoid", mlp([n("HardSigmoid", "h", "g", alpha=0.7, beta=0.4)]), (4,), (3,), **p)
# a layer normalisation of images over their channels; class tokens before tokens
case("norm_first", [n("ReduceMean", "x ax", "m"), n("Sub", "x m", "c"), n("Pow", "c two", "q"), n("ReduceMean", "q ax", "v"),
    n("Add", "v eps", "ve"), n("Sqrt", "ve", "sd"), n("Div", "c sd", "z"), n("Mul", "g z", "zg"), n("Add", "zg b", "i"),
    n("Conv", "i k", "y")], (3, 5, 4), (2, 5, 4), 18, ax=ints(1), two=np.float32(2), eps=np.float32(1e-6), g=w(3, 1, 1), b=w(3, 1, 1),
    k=w(2, 3, 1, 1))
case("two_class_tokens", [n("Shape", "x", "s", end=1), n("Concat", "s one one", "t", axis=0), n("Expand", "c t", "ce"),
    n("Expand", "d t", "de"), n("Concat", "ce de x", "z", axis=1), n("MatMul", "z f", "y")], (3, 6), (5, 4), one=ints(1), c=w(1, 1, 6),
    d=w(1, 1, 6), f=w(6, 4))

# channels that Split and Slice choose, and a channel shuffle, from weights and behind other layers; constants for each of them
split2 = n("Split", "h", "p q", axis=1)
case("halves", [n("Gemm", "x a b", "h", transB=1), split2, n("Sigmoid", "q", "s"), n("Mul", "p s", "r"), n("Sub", "r p", "t"),
    n("Gemm", "t c d", "y", transB=1)], (4,), (3,), 17, a=w(12, 4), b=w(12), c=w(3, 6), d=w(3))
case("halves_of_gates", [n("Gemm", "x a b", "g", transB=1), n("Relu", "g", "h"), split2, n("Mul", "q f", "r"), n("Add", "r p", "t"),
    n("Gemm", "t c d", "y", transB=1)], (4,), (3,), 17, a=w(12, 4), b=w(12), c=w(3, 6), d=w(3), f=w(6))
case("image_halves", [n("Conv", "x k b", "h"), split2, n("Slice", "h i0 i4 i1", "u"), n("Relu", "q", "r"), n("Add", "r p", "s"),
    n("Mul", "u f", "t"), n("Sub", "t s", "z"), n("GlobalAveragePool", "z", "m"), n("Flatten", "m", "y")], (3, 5, 6), (3,), 17, i0=ints(1),
    i4=ints(4), i1=ints(1), f=w(3, 1, 1), **conv)
case("shuffle", [n("Conv", "x k b", "h"), n("Relu", "h", "g"), n("Reshape", "g s5", "r"), n("Transpose", "r", "t", perm=[0, 2, 1, 3, 4]),
    n("Reshape", "t s4", "u"), n("BatchNormalization", "u s bb m v", "i"), n("Mul", "u f", "z"), n("Add", "i z", "j"),
    n("Conv", "j kk", "y", group=6)], (3, 5, 6), (6, 3, 4), 17, s5=ints(0, 2, 3, 3, 4), s4=ints(0, 6, 3, 4), s=w(6), bb=w(6), m=w(6),
    v=np.abs(w(6)), f=w(6, 1, 1), kk=w(6, 1, 1, 1), **conv)
# channels of several layers, joined: images, tokens and vectors
case("joined", [n("Conv", "x k b", "h"), n("Relu", "h", "g"), n("Conv", "g k1", "i"), n("Concat", "g i h g", "j", axis=1),
    n("BatchNormalization", "j s bb m v", "z"), n("Conv", "z kk", "y")], (3, 5, 6), (2, 3, 4), 17, k1=w(2, 6, 1, 1), s=w(20), bb=w(20), m=w(20),
    v=np.abs(w(20)), kk=w(2, 20, 1, 1), **conv)
case("joined_vectors", [n("Gemm", "x a b", "h", transB=1), n("Tanh", "h", "t"), n("Concat", "t x h", "g", axis=-1), n("Gemm", "g c d", "y",
    transB=1)], (4,), (3,), a=w(6, 4), b=w(6), c=w(3, 16), d=w(3))
case("joined_tokens", [n("MatMul", "x f", "h"), n("Concat", "x h", "g", axis=2), n("MatMul", "g k", "y")], (5, 6), (5, 3), f=w(6, 4), k=w(10, 3))
# the largest values of an image and of many tokens; windows that end beyond the image
case("largest", [n("Conv", "x k b", "h"), n("GlobalMaxPool", "h", "p"), n("ReduceMax", "h", "q", axes=[2, 3]), n("Add", "p q", "r"),
    n("Flatten", "r", "y")], (3, 20, 33), (6,), 17, **conv)
case("largest_token", [n("MatMul", "x f", "h"), n("ReduceMax", "h", "y", axes=[1], keepdims=0)], (1001, 3), (4,), 17, f=w(3, 4))
for window_, stride_, pad_, size in (2, 2, 0, 7), (3, 2, 0, 8), (3, 2, 1, 8), (2, 3, 1, 9), (3, 3, 1, 8):
    case(f"ceiling_{window_}{stride_}{pad_}{size}", [n("MaxPool", "x", "h", kernel_shape=[window_] * 2, strides=[stride_] * 2, pads=[pad_] * 4, ceil_mode=1),
        n("Conv", "h k1", "y")], (3, size, size + 1), (2, "rows", "columns"), 17, k1=w(2, 3, 1, 1), ceiling=(window_, stride_, pad_))
# functions that are no gates: layers; gates with a factor
case("tanh_layer", mlp([n("Tanh", "h", "t"), n("Mul", "t two", "u"), n("Add", "u b", "g")]), (4,), (3,), two=np.float32(2), **p)
case("sigmoid_layer", mlp([n("Add", "h b", "h1"), n("Sigmoid", "h1", "t"), n("Sigmoid", "t", "u"), n("Sub", "one u", "g")]), (4,), (3,),
    one=np.float32(1), **p)
case("tanh_times_sigmoid", mlp([n("Tanh", "h", "t"), n("Sigmoid", "h", "s"), n("Mul", "t s", "u"), n("Add", "u t", "g")]), (4,), (3,), **p)
case("double_gelu", mlp([n("Erf", "h", "e"), n("Add", "e one", "f"), n("Mul", "h f", "g")]), (4,), (3,), one=np.float32(1), **p)
case("half_silu", mlp([n("Sigmoid", "h", "s"), n("Mul", "h s", "t"), n("Mul", "t half", "u"), n("Add", "u h", "g")]), (4,), (3,),
    half=np.float32(0.5), **p)
# tokens mixed by a matrix, with a constant for each token
case("mixed_tokens", [n("LayerNormalization", "x ln", "z"), n("Transpose", "z", "t", perm=[0, 2, 1]), n("MatMul", "t f", "u0"), n("Add",
    "u0 fb", "u1"), n("Relu", "u1", "u"), n("MatMul", "u g", "v0"), n("Mul", "v0 gs", "v"), n("Transpose", "v", "r", perm=[0, 2, 1]),
    n("Add", "x r", "y")], (5, 6), (5, 6), ln=w(6), f=w(5, 7), fb=w(7), g=w(7, 5), gs=w(5))
case("constant_per_token", [n("MatMul", "x f", "z"), n("Transpose", "z", "t", perm=[0, 2, 1]), n("Mul", "t gs", "u"), n("Add", "u gb", "v"),
    n("Transpose", "v", "r", perm=[0, 2, 1]), n("Add", "x r", "y")], (5, 6), (5, 6), f=w(6, 6), gs=w(5), gb=w(5))

def attention(name, body, opset=18, heads=2, width=8, T_=5, qkv=True, **init):
    nodes = [n("LayerNormalization", "x ln", "z", axis=-1), *([n("MatMul", "z wqkv", "q0"),
        n("Add", "q0 bqkv", "qkv")] if qkv else []), *body,
             n("MatMul", "p v", "o0"), n("Transpose", "o0", "o1", perm=[0, 2, 1, 3]), n("Reshape", "o1 back", "o2"), n("MatMul",
                 "o2 wo", "y")]
    case(name, nodes, (T_, width), (T_, width), opset, ln=w(width), wqkv=w(width, 3 * width), bqkv=w(3 * width),
        wo=w(width, width), back=ints(0, T_, width), **init)
split = [n("Split", "qkv", "q1 k1 v1", axis=-1, num_outputs=3), *[n("Reshape", f"{c}1 hd", f"{c}2") for c in "qkv"],
    n("Transpose", "q2", "q", perm=[0, 2, 1, 3]),
         n("Transpose", "v2", "v", perm=[0, 2, 1, 3]), n("Transpose", "k2", "k", perm=[0, 2, 3, 1])]
hd = dict(hd=ints(0, 0, 2, 4))
tail = [n("MatMul", "q k", "s0"), n("Mul", "s0 sc", "s"), n("Softmax", "s", "p", axis=-1)]
attention("attention_split", [*split, *tail], **hd, sc=np.float32(0.5))
# scaled_dot_product_attention: the root of the scale on both sides, from the shape of q
attention("attention_scaled", [*split, n("Shape", "q", "sh"), n("Slice", "sh i3 i4", "d"), n("Cast", "d", "df", to=T.FLOAT),
    n("Sqrt", "df", "r0"), n("Div", "one r0", "r1"),
     n("Sqrt", "r1", "r2"), n("Mul", "q r2", "qs"), n("Mul", "k r2", "ks"), n("MatMul", "qs ks", "s"), n("Softmax", "s", "p",
         axis=-1)], **hd, one=np.float32([1]), i3=ints(3), i4=ints(4))
# the same as PyTorch 2's other exporter has it: batch and heads made one to turn k, constants cast like their partners
attention("attention_squeezed", [n("Split", "qkv", "q1 k1 v1", axis=-1, num_outputs=3), *[n("Reshape", f"{c}1 hd", f"{c}2") for c in "qkv"],
    *[n("Transpose", f"{c}2", f"{c}{'' if c == 'v' else 3}", perm=[0, 2, 1, 3]) for c in "qkv"],
    n("Shape", "k3", "last", start=-1), n("Shape", "k3", "second", start=-2, end=-1), n("Shape", "k3", "first", end=-2),
    n("Concat", "open second last", "s3", axis=0), n("Reshape", "k3 s3", "k4", allowzero=0), n("Transpose", "k4", "k5", perm=[0, 2, 1]),
    n("Concat", "first last second", "s4", axis=0), n("Reshape", "k5 s4", "k6"), n("Shape", "q3", "sh"), n("Gather", "sh minus", "d"),
    n("CastLike", "d q3", "df"), n("Sqrt", "df", "r0"), n("Constant", "", "one", value_float=1.0), n("Div", "one r0", "r1"),
    n("Sqrt", "r1", "r2"), n("CastLike", "r2 q3", "r3"), n("Mul", "q3 r3", "q"), n("Mul", "k6 r3", "k"), n("MatMul", "q k", "s"),
    n("Softmax", "s", "p", axis=-1)], **hd, open=ints(-1), minus=np.int64(-1))
causal = np.tril(np.ones((5, 5), bool))
attention("attention_mask", [*split, n("MatMul", "q k", "s0"), n("Div", "s0 sc", "s1"), n("Add", "s1 mask", "s"),
    n("Softmax", "s", "p")], **hd, sc=np.float32(2),
     mask=np.where(causal, 0, -np.inf).astype(np.float32)[None, None])
attention("attention_where", [*split, n("MatMul", "q k", "s0"), n("Mul", "s0 sc", "s1"), n("Where", "keep s1 low", "s"),
    n("Softmax", "s", "p")], **hd, sc=np.float32(0.7), keep=causal,
     low=np.float32(-1e30))
attention("attention_not", [*split, n("MatMul", "q k", "s0"), n("Mul", "s0 sc", "s1"), n("Not", "keep", "shut"),
    n("Where", "shut low s1", "s"), n("Softmax", "s", "p")], **hd, sc=np.float32(0.5),
     keep=causal, low=np.float32(-3e38))
var = [n("ReduceMean", "x ax", "m"), n("Sub", "x m", "c"), n("Mul", "c c", "q"), n("ReduceMean", "q ax", "v"),
    n("Add", "v eps", "ve"), n("Pow", "ve half", "sd"),
       n("Div", "c sd", "z"), n("Mul", "z g", "zg"), n("Add", "zg b", "i"), n("MatMul", "i f", "y")]
case("norm", var, (5, 8), (5, 3), 18, ax=ints(-1), eps=np.float32(1e-3), half=np.float32(0.5), g=w(8), b=w(8), f=w(8, 3))

# what stands before and beside layers: pixels made mean 0 and deviation 1, bytes, a factor a channel (LayerScale), x - 0 in Φ
tiny = dict(k=w(4, 3, 3, 3), f=w(5, 4), d=w(5))
pooled = [n("Conv", "z k", "h", pads=[1] * 4), n("Gelu", "h", "g"), n("GlobalAveragePool", "g", "m"), n("Flatten", "m", "v"),
          n("Gemm", "v f d", "y", transB=1)]
case("standard", [n("Sub", "x mean", "c"), n("Div", "c dev", "z"), *pooled], (3, 6, 5), (5,), mean=w(1, 3, 1, 1),
    dev=1 + np.abs(w(3, 1, 1)), **tiny)
case("bytes", [n("Div", "x big", "c"), n("Sub", "c half", "d0"), n("Mul", "d0 two", "z"), *pooled], (3, 6, 5), (5,),
    big=np.float32(255), half=np.float32(0.5), two=np.float32(2), **tiny)
case("layer_scale", [n("Gemm", "x a b", "h", transB=1), n("Mul", "scale h", "i"), n("Add", "x i", "j"), n("Gelu", "j", "g"),
    n("Mul", "g two", "k"), n("Gemm", "k c d", "y", transB=1)], (4,), (3,), a=w(4, 4), b=w(4), c=w(3, 4), d=w(3), scale=w(4),
    two=np.float32(2))
case("cdf", mlp([n("Sub", "h zero", "h0"), n("Mul", "h0 inv", "e0"), n("Erf", "e0", "e1"), n("Add", "e1 one", "e2"),
    n("Mul", "half e2", "e3"), n("Mul", "h e3", "g")]), (4,), (3,), zero=np.float32(0), inv=np.float32(0.5 ** 0.5),
    one=np.float32(1), half=np.float32(0.5), **p)
case("tile", [n("Shape", "x", "sh"), n("Gather", "sh i0", "N"), n("Unsqueeze", "N ax", "N1"), n("Concat", "N1 o o", "r", axis=0),
    n("Tile", "cls r", "c"), n("Concat", "c x", "t", axis=1), n("MatMul", "t f", "u"), n("ReduceMean", "u ax1", "y", keepdims=0)],
    (5, 8), (3,), i0=np.int64(0), ax=ints(0), ax1=ints(1), o=ints(1), cls=w(1, 1, 8), f=w(8, 3))
# a normalisation without gain and shift in front of GELU's formula
case("norm_bare", [*var[:7], n("Div", "z r", "e0"), n("Erf", "e0", "e1"), n("Add", "e1 one", "e2"), n("Mul", "z e2", "e3"),
    n("Mul", "e3 half", "i"), n("MatMul", "i f", "y")], (5, 8), (5, 3), 18, ax=ints(-1), eps=np.float32(1e-3), half=np.float32(0.5),
    r=np.float32(2 ** 0.5), one=np.float32(1), f=w(8, 3))

# ---- what was once read as another network: equal to ONNX Runtime here, refused below ----
# an attribute without a value is 0
def bare(name):
    def change(m):
        for a in [a for node in m.graph.node for a in node.attribute if a.name == name]:
            for field in "f", "i": a.ClearField(field)
    return change
square = dict(a=w(4, 3), b=w(3))
case("bare_alpha", [n("Gemm", "x a b", "y", alpha=1.0)], (4,), (3,), change=bare("alpha"), **square)
case("bare_beta", [n("HardSigmoid", "x", "h", beta=0.5), n("Gemm", "h a b", "y")], (4,), (3,), change=bare("beta"), **square)
case("bare_keepdims", [n("ReduceMean", "x", "h", axes=[1], keepdims=0), n("Gemm", "h a b", "y")], (5, 4), (3,), 17,
    change=bare("keepdims"), **square)
# a normalisation of what has a gain, or of a root mean square normalisation
def rms_rows(x, y, i):
    return [n("Pow", f"{x} two", f"q{i}"), n("ReduceMean", f"q{i}", f"v{i}", axes=[-1]), n("Add", f"v{i} eps", f"ve{i}"),
            n("Sqrt", f"ve{i}", f"sd{i}"), n("Div", f"{x} sd{i}", y)]
def norm_rows(x, y, i):
    return [n("ReduceMean", x, f"m{i}", axes=[-1]), n("Sub", f"{x} m{i}", f"c{i}"), *rms_rows(f"c{i}", y, i)]
rows = dict(two=np.float32(2), eps=np.float32(1e-3))
affine = [n("Mul", "z2 g2", "z3"), n("Add", "z3 b2", "z4"), n("MatMul", "z4 f", "y")]
case("gain_before_norm", [*norm_rows("x", "z", 1), n("Mul", "z g", "zg"), *norm_rows("zg", "z2", 2), n("MatMul", "z2 f", "y")], (5, 8),
    (5, 3), 17, g=w(8), f=w(8, 3), **rows)
case("gains_before_norm", [*norm_rows("x", "z", 1), n("Mul", "z g", "zg"), *norm_rows("zg", "z2", 2), *affine], (5, 8), (5, 3), 17, g=w(8),
    g2=w(8), b2=w(8), f=w(8, 3), **rows)
case("rms_before_norm", [*rms_rows("x", "z", 1), *norm_rows("z", "z2", 2), *affine], (5, 8), (5, 3), 17, g2=w(8), b2=w(8), f=w(8, 3), **rows)
# scaled queries that become a layer after their product with the keys
attention("attention_read_twice", [*[n("MatMul", f"z w{c}", f"{c}1") for c in "qkv"], *split[1:], n("Mul", "q sc", "qs"), n("MatMul", "qs k", "s"), n("ReduceMean", "qs ax2", "unused"),
    n("Softmax", "s", "p", axis=-1)], qkv=False, wq=w(8, 8), wk=w(8, 8), wv=w(8, 8), **hd,
    sc=np.float32(0.3), ax2=ints(2))
# zeros of a Pad that a factor or a square leaves 0
pads = dict(p=ints(0, 0, 1, 1, 0, 0, 1, 1), **conv)
case("pad_factor", [n("Pad", "x p", "z"), n("Mul", "z f", "h"), n("Conv", "h k b", "y")], (3, 6, 5), (6, 6, 5), 17, f=w(3, 1, 1), **pads)
case("pad_square", [n("Pad", "x p", "z"), n("Pow", "z two", "h"), n("Conv", "h k b", "y")], (3, 6, 5), (6, 6, 5), 17, two=np.float32(2), **pads)
case("clip_wide", mlp([n("Clip", "h lo hi", "g")]), (4,), (3,), lo=np.float32(-16), hi=np.float32(16), **p)
case("bool_factor", [n("Cast", "i", "t", to=T.BOOL), n("Cast", "t", "j", to=T.INT32), n("Cast", "j", "f", to=T.FLOAT), n("Mul", "x f", "h"),
    n("Gemm", "h a b", "y")], (4,), (3,), i=np.array([[0, 5, 0, 2]]), **square)
case("integer_quotient", [n("Div", "i j", "q"), n("Cast", "q", "f", to=T.FLOAT), n("Mul", "x f", "h"), n("Gemm", "h a b", "y")], (4,), (3,),
    i=np.int64(-7), j=np.int64(2), **square)

# weights that are computed: rounded, or divided as integers
for name_, to in ("half", T.FLOAT16), ("int8", T.INT8):
    case("cast_" + name_, [n("Cast", "a", "h", to=to), n("Cast", "h", "i", to=T.FLOAT), n("Gemm", "x i b", "y")], (4,), (3,),
        a=square["a"] if to != T.INT8 else 100 * np.arange(12).reshape(4, 3), b=square["b"])
case("cast_like", [n("CastLike", "a half", "h"), n("Cast", "h", "i", to=T.FLOAT), n("Gemm", "x i b", "y")], (4,), (3,), half=np.float16(1), **square)
case("integer_quotients", [n("Div", "i j", "q"), n("Cast", "q", "f", to=T.FLOAT), n("Gemm", "x f b", "y")], (4,), (3,),
    i=np.arange(12).reshape(4, 3), j=np.int64(2), b=w(3))
case("integer_quotient_of_one", [n("Div", "i j", "q"), n("Cast", "q", "f", to=T.FLOAT), n("Mul", "x f", "h"), n("Gemm", "h a b", "y")], (4,), (3,),
    i=np.array([[7]]), j=np.array([[2]]), **square)
