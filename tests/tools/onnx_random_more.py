# SPDX-License-Identifier: MIT-0
# onnx_random_more.py: the operators of onnx_random.py that opsets from 17 on have, those on spectra, losses, sequences, and those of
# the domain com.microsoft that ONNX Runtime computes on a processor. The package onnx does not know most of them, so that their
# shapes are given here.
import numpy as np
from onnx import TensorProto, helper

MS = "com.microsoft"


class Impossible(Exception):
    """This operator cannot be added here."""


def floats(g, shape, kind="f4"):
    """A value of moderate size: one of the graph that has this shape, or a new one."""
    return g.calm(g.fresh(kind, shape))


def register(operator, window, image):
    """Adds the operators to the table of onnx_random.py."""
    # ---- opsets from 17 on ----
    @operator("GroupNormalization", since=18)
    def _(g, op):
        groups, each = g.r.randint(1, 3), g.r.randint(1, 2)
        c = groups * each
        x = g.fresh_input("f4", [g.r.randint(1, 2), c] + [g.r.randint(2, 4) for _ in range(g.r.randint(1, 2))])
        n = c if g.opset >= 21 else groups
        g.node(op, [x, g.fresh("f4", [n]), g.fresh("f4", [n])], num_groups=groups, epsilon=g.r.choice([None, 1e-2]), shapes=[g.shape[x]],
               kinds=["f4"])

    @operator("RMSNormalization", since=23)
    def _(g, op):
        x = g.pick(("f4",), least=1)
        rank = len(g.shape[x])
        axis = g.r.randint(-rank, rank - 1)
        shape = g.shape[x][axis:] if axis else g.shape[x]
        g.node(op, [x, g.fresh("f4", shape)], axis=axis, epsilon=g.r.choice([None, 1e-2]), shapes=[g.shape[x]], kinds=["f4"])

    @operator("Swish", since=24)
    def _(g, op):
        x = g.calm(g.pick(("f4",)))
        g.node(op, [x], alpha=g.r.choice([None, 1.7]), shapes=[g.shape[x]], kinds=["f4"], tame=True)

    @operator("Attention", since=23)
    def _(g, op):
        b, h, s, t, d, e = (g.r.randint(1, 3) for _ in range(6))
        shared = g.r.choice([1, h])
        a = {"is_causal": g.r.choice([None, 1]) if s == t else None, "scale": g.r.choice([None, 0.5]), "softcap": g.r.choice([None, None, 2.0])}
        if g.r.random() < 0.5:
            ins = [floats(g, [b, h, s, d]), floats(g, [b, shared, t, d]), floats(g, [b, shared, t, e])]
            shape = [b, h, s, e]
        else:
            ins = [floats(g, [b, s, h * d]), floats(g, [b, t, shared * d]), floats(g, [b, t, shared * e])]
            shape = [b, s, h * e]
            a.update(q_num_heads=h, kv_num_heads=shared)
        if g.r.random() < 0.4:
            ins.append(floats(g, g.r.choice([[s, t], [1, 1, s, t], [b, h, s, t]])))
        g.node(op, ins, shapes=[shape], kinds=["f4"], tame=True, **a)

    @operator("RotaryEmbedding", since=23)
    def _(g, op):
        b, h, s, d = g.r.randint(1, 2), g.r.randint(1, 3), g.r.randint(1, 4), 2 * g.r.randint(1, 3)
        caches = [floats(g, [7, d // 2]), floats(g, [7, d // 2])]
        position = g.constant(g.numbers("i8", [b, s], 0, 6))
        flat = g.r.random() < 0.5
        shape = [b, s, h * d] if flat else [b, h, s, d]
        x = floats(g, shape)
        g.node(op, [x] + caches + [position], shapes=[shape], kinds=["f4"], num_heads=h if flat else None, interleaved=g.r.choice([None, 1]))

    @operator("TensorScatter", since=24)
    def _(g, op):
        b, t, d = g.r.randint(1, 3), g.r.randint(2, 5), g.r.randint(1, 3)
        n = g.r.randint(1, t)
        circular = g.r.random() < 0.5
        places = g.constant(g.numbers("i8", [b], 0, t - 1 if circular else t - n))
        x = g.fresh("f4", [b, t, d])
        g.node(op, [x, g.fresh("f4", [b, n, d]), places], shapes=[g.shape[x]], kinds=["f4"], mode="circular" if circular else None,
               axis=g.r.choice([None, 1]))

    @operator("CenterCropPad", since=18)
    def _(g, op):
        x = g.pick(("f4", "i8"), least=1, most=4)
        shape = [g.r.randint(1, 6) for _ in g.shape[x]]
        g.node(op, [x, g.ints(*shape)], shapes=[shape], kinds=[g.kind[x]])

    @operator("Col2Im", since=18)
    def _(g, op):
        b, c, h, w = g.r.randint(1, 2), g.r.randint(1, 2), g.r.randint(2, 5), g.r.randint(2, 5)
        kh, kw = g.r.randint(1, 2), g.r.randint(1, 2)
        x = floats(g, [b, c * kh * kw, (h - kh + 1) * (w - kw + 1)])
        g.node(op, [x, g.ints(h, w), g.ints(kh, kw)], shapes=[[b, c, h, w]], kinds=["f4"])

    @operator("AffineGrid", since=20)
    def _(g, op):
        n, h, w = g.r.randint(1, 2), g.r.randint(1, 4), g.r.randint(1, 4)
        g.node(op, [floats(g, [n, 2, 3]), g.ints(n, 2, h, w)], shapes=[[n, h, w, 2]], kinds=["f4"], align_corners=g.r.choice([None, 1]))

    @operator("DeformConv", since=19)
    def _(g, op):
        b, each, groups, out = g.r.randint(1, 2), g.r.randint(1, 2), g.r.randint(1, 2), g.r.randint(1, 2)
        shared, h, w = g.r.choice([1, groups]), g.r.randint(2, 5), g.r.randint(2, 5)
        k = [g.r.randint(1, 2), g.r.randint(1, 2)]
        oh, ow = h - k[0] + 1, w - k[1] + 1
        x = floats(g, [b, each * groups, h, w])
        ins = [x, floats(g, [out * groups, each] + k), g.fresh("f4", [b, shared * 2 * k[0] * k[1], oh, ow])]
        if g.r.random() < 0.6:
            ins.append(g.fresh("f4", [out * groups]))
            if g.r.random() < 0.6:
                ins.append(floats(g, [b, shared * k[0] * k[1], oh, ow]))
        g.node(op, ins, shapes=[[b, out * groups, oh, ow]], kinds=["f4"], group=groups, offset_group=shared, kernel_shape=k)

    @operator("GridSample", since=20)
    def _(g, op):
        # places in the middle between two elements, too
        n = g.r.choice([2, 3])
        x = image(g, n=n, kind="f4")
        size = g.shape[x][2:]
        to = [g.r.randint(1, 3) for _ in size]
        grid = g.n.integers(-2 * max(size), 2 * max(size) + 1, [g.shape[x][0]] + to + [n]) / (2.0 * max(size))
        g.node(op, [x, g.constant(grid.astype("f4"))], shapes=[g.shape[x][:2] + to], kinds=["f4"],
               mode=g.r.choice([None, "nearest", "linear"]), padding_mode=g.r.choice([None, "border", "reflection"]),
               align_corners=g.r.choice([None, 0, 1]))

    # ---- spectra and losses ----
    @operator("DFT", since=17)
    def _(g, op):
        n, parts = g.r.randint(2, 9), g.r.choice([1, 2])
        sided = parts == 1 and g.r.random() < 0.5
        inverse = parts == 2 and g.r.random() < 0.5
        x = floats(g, [g.r.randint(1, 3), n, parts])
        length = g.r.choice([n, n - 1, n + 2])
        a = {"onesided": 1 if sided else None, "inverse": 1 if inverse else None}
        if g.opset < 20:
            a["axis"] = 1
        g.node(op, [x, g.constant(np.array(length, "i8"))], shapes=[[g.shape[x][0], length // 2 + 1 if sided else length, 2]], kinds=["f4"], **a)

    @operator("STFT", since=17)
    def _(g, op):
        length, n, step = g.r.randint(5, 12), g.r.randint(2, 5), g.r.randint(1, 3)
        x = floats(g, [g.r.randint(1, 2), length, 1])
        sided = g.r.choice([0, 1])
        window_ = g.constant(g.numbers("f4", [n])) if g.r.random() < 0.6 else ""
        g.node(op, [x, g.constant(np.array(step, "i8")), window_, g.constant(np.array(n, "i8"))], onesided=sided,
               shapes=[[g.shape[x][0], (length - n) // step + 1, n // 2 + 1 if sided else n, 2]], kinds=["f4"])

    @operator("HannWindow", "HammingWindow", "BlackmanWindow", since=17)
    def _(g, op):
        n = g.r.randint(3, 9)
        g.node(op, [g.constant(np.array(n, "i8"))], periodic=g.r.choice([None, 0, 1]), shapes=[[n]], kinds=["f4"], tame=True)

    @operator("MelWeightMatrix", since=17)
    def _(g, op):
        bands, n = g.r.randint(1, 6), g.r.choice([8, 16, 20])
        ins = [g.constant(np.array(v, "i8")) for v in (bands, n, 8192)] + [g.constant(np.array(v, "f4")) for v in (0.0, 4000.0)]
        g.node(op, ins, shapes=[[n // 2 + 1, bands]], kinds=["f4"])

    @operator("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", since=12)
    def _(g, op):
        shape = [g.r.randint(1, 3), g.r.randint(1, 4)] + [g.r.randint(1, 3) for _ in range(g.r.randint(0, 2))]
        places = shape[:1] + shape[2:]
        ins = [floats(g, shape), g.constant(g.numbers("i8", places, 0, shape[1] - 1))]
        if g.r.random() < 0.4:
            ins.append(g.fresh("f4", [shape[1]], 0.5, 1.5))
        how = g.r.choice([None, "mean", "sum", "none"])
        ignored = int(g.value[ins[1]].flatten()[0]) if g.r.random() < 0.2 and how != "mean" and how else None
        both = op.startswith("Soft") and g.r.random() < 0.5
        g.node(op, ins, 2 if both else 1, reduction=how, ignore_index=ignored, shapes=[places if how == "none" else [], shape], kinds=["f4", "f4"])

    # ---- values that are no outputs: sequences, and types of few bits ----
    @operator("SplitToSequence", since=11)
    def _(g, op):
        x = g.pick(("f4", "i8"), least=1, most=3)
        axis = g.r.randint(0, len(g.shape[x]) - 1)
        n = g.shape[x][axis]
        sequence = g.hide("SplitToSequence", [x, g.constant(np.array(g.r.randint(1, n), "i8"))], axis=axis)
        if g.r.random() < 0.3:
            sequence = g.hide("SequenceInsert", [sequence, x])
            n += g.shape[x][axis]
        g.node("ConcatFromSequence", [sequence], axis=axis, shapes=[g.shape[x][:axis] + [n] + g.shape[x][axis + 1:]], kinds=[g.kind[x]])

    @operator("SequenceConstruct", since=11)
    def _(g, op):
        x = g.pick(("f4",), least=1, most=3)
        parts = [g.fresh("f4", g.shape[x]) for _ in range(g.r.randint(1, 3))] + [x]
        sequence = g.hide(op, parts)
        at = g.r.randint(-len(parts), len(parts) - 1)
        if g.r.random() < 0.5:
            g.node("SequenceAt", [sequence, g.constant(np.array(at, "i8"))], shapes=[g.shape[x]], kinds=["f4"])
        else:
            g.node("ConcatFromSequence", [sequence], new_axis=1, axis=0, shapes=[[len(parts)] + g.shape[x]], kinds=["f4"])

    @operator("CastNarrow", since=21)
    def _(g, op):
        x = g.calm(g.pick(("f4",), least=1))
        big = g.node("Mul", [x, g.constant(np.array(7.4, "f4"))])
        to = g.r.choice([TensorProto.UINT8, 21, 22])
        if to == 21:
            big = g.node("Abs", [big])
        g.node("Cast", [g.hide("Cast", [big], to=to)], shapes=[g.shape[x]], kinds=["f4"], to=1)

    @operator("QuantizeNarrow", since=21)
    def _(g, op):
        # 4 bits, per axis or in blocks
        n, m = g.r.randint(1, 3), 2 * g.r.randint(1, 3)
        x = floats(g, [n, m])
        block = g.r.choice([0, 2])
        scale = g.constant(g.numbers("f4", [n, m // 2] if block else [m], 0.05, 0.3))
        a = {"axis": 1, "block_size": block or None}
        code = g.hide("QuantizeLinear", [x, scale], output_dtype=g.r.choice([21, 22]), **a)
        g.node("DequantizeLinear", [code, scale], shapes=[[n, m]], kinds=["f4"], tame=True, **a)

    # ---- com.microsoft ----
    def ms(g, op, ins, shapes, kinds=None, outputs=None, tame=False, **a):
        return g.node(op, ins, outputs or len(shapes), domain=MS, shapes=shapes, kinds=kinds or ["f4"] * len(shapes), tame=tame, **a)

    def eighth(g, x, most=16):
        """A scale that is a power of 2, so that no rounding depends on the order of products."""
        return g.constant(np.array(2.0 ** -g.r.randint(0, 4), "f4"))

    def zero(g, kind, most=5):
        return g.constant(np.array(g.r.randint(0, most), kind))

    @operator("ms.Gelu", "ms.FastGelu", "ms.QuickGelu", "ms.BiasGelu")
    def _(g, op):
        x = g.calm(g.pick(("f4",), least=1))
        bias = op == "ms.BiasGelu" or (op == "ms.FastGelu" and g.r.random() < 0.5)
        a = {"alpha": g.r.choice([None, 1.0])} if op == "ms.QuickGelu" else {}
        ms(g, op[3:], [x] + ([g.fresh("f4", g.shape[x][-1:])] if bias else []), [g.shape[x]], tame=True, **a)

    @operator("ms.FusedMatMul")
    def _(g, op):
        batch, m, k, n = [g.r.randint(1, 3) for _ in range(g.r.randint(0, 2))], g.r.randint(1, 4), g.r.randint(1, 4), g.r.randint(1, 4)
        turned = [g.r.choice([0, 1]), g.r.choice([0, 1])]
        x = floats(g, batch + ([k, m] if turned[0] else [m, k]))
        y = floats(g, batch + ([n, k] if turned[1] else [k, n]))
        ms(g, "FusedMatMul", [x, y], [batch + [m, n]], transA=turned[0], transB=turned[1], alpha=g.r.choice([None, 0.5]))

    @operator("ms.FusedGemm")
    def _(g, op):
        m, k, n = g.r.randint(1, 4), g.r.randint(1, 4), g.r.randint(1, 4)
        turned = g.r.choice([0, 1])
        ins = [floats(g, [m, k]), floats(g, [n, k] if turned else [k, n]), floats(g, [n])]
        name = g.r.choice(["Relu", "LeakyRelu", "Tanh", "Sigmoid"])
        ms(g, "FusedGemm", ins, [[m, n]], transB=turned, alpha=g.r.choice([None, 0.5]), activation=name, activation_alpha=0.2)

    @operator("ms.FusedConv")
    def _(g, op):
        x = image(g, n=2, kind="f4")
        c, out = g.shape[x][1], g.r.randint(1, 3)
        k = [g.r.randint(1, min(2, s)) for s in g.shape[x][2:]]
        shape = [g.shape[x][0], out] + [s - q + 1 for s, q in zip(g.shape[x][2:], k)]
        name, given = g.r.choice([("Relu", None), ("LeakyRelu", [0.3]), ("Clip", [-0.5, 1.0]), ("HardSigmoid", [0.2, 0.4]), ("Sigmoid", None)])
        ins = [x, floats(g, [out, c] + k), floats(g, [out])]
        if g.r.random() < 0.3:
            ins.append(floats(g, shape))
        ms(g, "FusedConv", ins, [shape], kernel_shape=k, activation=name, activation_params=given)

    @operator("ms.SkipLayerNormalization", "ms.SkipSimplifiedLayerNormalization")
    def _(g, op):
        shape = [g.r.randint(1, 2), g.r.randint(1, 3), g.r.randint(3, 8)]
        simple = "Simplified" in op
        ins = [g.fresh_input("f4", shape), g.fresh_input("f4", shape), g.fresh("f4", shape[-1:])]
        if not simple:
            ins.append(g.fresh("f4", shape[-1:]))
        if g.r.random() < 0.5:
            ins.append(g.fresh("f4", shape[-1:]))
        skipped = g.r.random() < 0.3
        ms(g, op[3:], ins, [shape] * (4 if skipped else 1), outputs=4 if skipped else 1, epsilon=1e-3, _skip=(1, 2))

    @operator("SimplifiedLayerNormalization")
    def _(g, op):
        x = g.pick(("f4",), least=1)
        g.node(op, [x, g.fresh("f4", g.shape[x][-1:])], shapes=[g.shape[x]], kinds=["f4"], epsilon=g.r.choice([None, 1e-2]))

    @operator("ms.EmbedLayerNormalization")
    def _(g, op):
        b, s, d = g.r.randint(1, 2), g.r.randint(1, 4), g.r.randint(3, 6)
        segments = g.r.random() < 0.6
        table = lambda *shape: g.constant(g.numbers("f4", list(shape)))
        ins = [g.constant(g.numbers("i4", [b, s], 0, 4)), g.constant(g.numbers("i4", [b, s], 0, 1)) if segments else "", table(5, d),
               table(s, d), table(2, d) if segments else "", table(d), table(d)]
        if g.r.random() < 0.5:
            ins.append(g.constant(g.numbers("i4", [b, s], 0, 1)))
        ms(g, "EmbedLayerNormalization", ins, [[b, s, d], [b]], kinds=["f4", "i4"], epsilon=1e-3)

    @operator("ms.Attention")
    def _(g, op):
        b, s, d, h, size = g.r.randint(1, 2), g.r.randint(1, 4), g.r.randint(1, 5), g.r.randint(1, 3), g.r.randint(1, 3)
        ins = [floats(g, [b, s, d]), floats(g, [d, 3 * h * size]), floats(g, [3 * h * size])]
        past = g.r.randint(1, 3) if g.r.random() < 0.3 else 0
        mask = g.r.choice(["", "lengths", "keys"])
        if mask == "lengths":
            ins.append(g.constant(g.numbers("i4", [b], 1, s + past)))
        elif mask == "keys":
            ins.append(g.constant(np.concatenate([np.ones((b, 1)), g.n.integers(0, 2, (b, s + past - 1))], 1).astype("i4")))
        elif past:
            ins.append("")
        if past:
            ins.append(floats(g, [2, b, h, past, size]))
        shapes = [[b, s, h * size]] + ([[2, b, h, s + past, size]] if past else [])
        ms(g, "Attention", ins, shapes, tame=True, num_heads=h, unidirectional=g.r.choice([None, 1]) if mask != "lengths" else None,
           scale=g.r.choice([None, 0.7]))

    @operator("ms.MultiHeadAttention")
    def _(g, op):
        b, s, t, h, size, other = g.r.randint(1, 2), g.r.randint(1, 4), g.r.randint(1, 4), g.r.randint(1, 3), g.r.randint(1, 3), g.r.randint(1, 3)
        ins = [floats(g, [b, s, h * size]), floats(g, [b, t, h * size]), floats(g, [b, t, h * other])]
        bias = g.r.random() < 0.4
        ins.append(floats(g, [2 * h * size + h * other]) if bias else "")
        ins.append(g.constant(np.concatenate([np.ones((b, 1)), g.n.integers(0, 2, (b, t - 1))], 1).astype("i4")) if g.r.random() < 0.4 else "")
        if g.r.random() < 0.4:
            ins.append(floats(g, [g.r.choice([1, b]), g.r.choice([1, h]), s, t]))
        while not ins[-1]:
            ins.pop()
        ms(g, "MultiHeadAttention", ins, [[b, s, h * other]], tame=True, num_heads=h, scale=g.r.choice([None, 0.7]))

    @operator("ms.GroupQueryAttention")
    def _(g, op):
        b, s, shared, each, size, past = 1, g.r.randint(1, 4), g.r.randint(1, 2), g.r.randint(1, 3), 16, g.r.randint(0, 3)
        h = shared * each
        s = s if not past else 1
        ins = [floats(g, [b, s, h * size]), floats(g, [b, s, shared * size]), floats(g, [b, s, shared * size])]
        ins += [floats(g, [b, shared, past, size]), floats(g, [b, shared, past, size])] if past else ["", ""]
        ins += [g.constant(np.full(b, past + s - 1, "i4")), g.constant(np.array(past + s, "i4"))]
        turned = g.r.random() < 0.5
        if turned:
            ins += [floats(g, [8, size // 2]), floats(g, [8, size // 2])]
        ms(g, "GroupQueryAttention", ins, [[b, s, h * size], [b, shared, past + s, size], [b, shared, past + s, size]], tame=True, num_heads=h,
           kv_num_heads=shared, do_rotary=1 if turned else None, local_window_size=g.r.choice([None, 2]))

    @operator("ms.RotaryEmbedding")
    def _(g, op):
        b, h, s, d = g.r.randint(1, 2), g.r.randint(1, 3), g.r.randint(1, 4), 2 * g.r.randint(1, 3)
        position = g.constant(g.numbers("i8", [1], 0, 3)) if g.r.random() < 0.5 else g.constant(g.numbers("i8", [b, s], 0, 6))
        flat = g.r.random() < 0.5
        shape = [b, s, h * d] if flat else [b, h, s, d]
        ms(g, "RotaryEmbedding", [floats(g, shape), position, floats(g, [7, d // 2]), floats(g, [7, d // 2])], [shape],
           interleaved=g.r.choice([None, 1]))

    @operator("ms.QLinearAdd", "ms.QLinearMul")
    def _(g, op):
        x = g.pick(("u1", "i1"), least=1, most=4)
        kind, shape = g.kind[x], list(g.shape[x])
        other = g.fresh(kind, shape if g.r.random() < 0.7 else [1])
        ins = [x, eighth(g, x), zero(g, kind), other, eighth(g, x), zero(g, kind), eighth(g, x), zero(g, kind)]
        ms(g, op[3:], ins, [shape], kinds=[kind])

    @operator("ms.QLinearSigmoid", "ms.QLinearLeakyRelu")
    def _(g, op):
        x = g.pick(("u1", "i1"), least=1, most=4)
        kind = g.kind[x]
        # a scale from which no value of the sigmoid is half-way between two results
        to = g.constant(np.array(1 / 256, "f4")) if "Sigmoid" in op else eighth(g, x)
        a = {"alpha": 0.25} if "Leaky" in op else {}
        ms(g, op[3:], [x, eighth(g, x), zero(g, kind), to, zero(g, kind)], [g.shape[x]], kinds=[kind], **a)

    @operator("ms.QLinearGlobalAveragePool")
    def _(g, op):
        shape, last = [g.r.randint(1, 2), g.r.randint(1, 3), 2, 2], g.r.choice([0, 1])
        x = g.fresh("u1", [shape[0], 2, 2, shape[1]] if last else shape)
        ms(g, op[3:], [x, eighth(g, x), zero(g, "u1"), eighth(g, x), zero(g, "u1")], [[shape[0], 1, 1, shape[1]] if last else shape[:2] + [1, 1]],
           kinds=["u1"], channels_last=last)

    @operator("ms.QLinearConcat")
    def _(g, op):
        x = g.pick(("u1",), least=1, most=3)
        axis = g.r.randint(0, len(g.shape[x]) - 1)
        ins, n = [eighth(g, x), zero(g, "u1")], 0
        for _ in range(g.r.randint(1, 3)):
            ins += [g.fresh("u1", g.shape[x]), eighth(g, x), zero(g, "u1")]
            n += g.shape[x][axis]
        ms(g, op[3:], ins, [g.shape[x][:axis] + [n] + g.shape[x][axis + 1:]], kinds=["u1"], axis=axis)

    @operator("ms.QGemm")
    def _(g, op):
        m, k, n, turned = g.r.randint(1, 3), g.r.randint(1, 4), g.r.randint(1, 3), g.r.choice([0, 1])
        x, w = g.fresh("u1", [m, k]), g.fresh("i1", [n, k] if turned else [k, n])
        ins = [x, eighth(g, x), zero(g, "u1"), w, eighth(g, x), zero(g, "i1"), g.fresh("i4", [n])]
        out = g.r.random() < 0.5
        if out:
            ins += [eighth(g, x), zero(g, "u1")]
        ms(g, "QGemm", ins, [[m, n]], kinds=["u1" if out else "f4"], transB=turned)

    @operator("ms.MatMulIntegerToFloat", "ms.DynamicQuantizeMatMul")
    def _(g, op):
        m, k, n = g.r.randint(1, 3), g.r.randint(1, 4), g.r.randint(1, 3)
        w, scale = g.fresh(g.r.choice(["i1", "u1"]), [k, n]), g.constant(np.array([0.02], "f4"))
        bias = [g.fresh("f4", [n])] if g.r.random() < 0.5 else []
        zero_w = zero(g, g.kind[w])
        if "ToFloat" in op:
            ins = [g.fresh("u1", [m, k]), w, g.constant(np.array([0.1], "f4")), scale, zero(g, "u1"), zero_w]
        else:
            ins = [floats(g, [m, k]), w, scale, zero_w]
        ms(g, op[3:], ins + bias, [[m, n]])

    @operator("ms.QAttention")
    def _(g, op):
        b, s, d, h, size = g.r.randint(1, 2), g.r.randint(1, 4), g.r.randint(1, 5), g.r.randint(1, 3), g.r.randint(1, 3)
        ins = [g.fresh("u1", [b, s, d]), g.fresh("i1", [d, 3 * h * size]), floats(g, [3 * h * size]), g.constant(np.array([0.1], "f4")),
               g.constant(np.array([0.05], "f4")), "", g.constant(np.array([3], "u1")), g.constant(np.array([1], "i1"))]
        ms(g, "QAttention", ins, [[b, s, h * size]], num_heads=h, unidirectional=g.r.choice([None, 1]))

    @operator("ms.MatMulNBits")
    def _(g, op):
        m, k, n, block = g.r.randint(1, 3), g.r.randint(1, 40), g.r.randint(1, 3), 16
        blocks = -(-k // block)
        ins = [floats(g, [m, k]), g.constant(g.n.integers(0, 256, [n, blocks, block // 2]).astype("u1")), g.fresh("f4", [n * blocks], 0.01, 0.1)]
        ins[2] = g.constant(g.numbers("f4", [n * blocks], 0.01, 0.1))
        if g.r.random() < 0.5:
            ins.append(g.constant(g.n.integers(0, 256, [n * ((blocks + 1) // 2)]).astype("u1")))
        ms(g, "MatMulNBits", ins, [[m, n]], K=k, N=n, bits=4, block_size=block)

    @operator("ms.NhwcMaxPool")
    def _(g, op):
        b, h, w, c = g.r.randint(1, 2), g.r.randint(2, 5), g.r.randint(2, 5), g.r.randint(1, 3)
        k = [g.r.randint(1, 2), g.r.randint(1, 2)]
        kind = g.r.choice(["u1", "i1"])
        ms(g, "NhwcMaxPool", [g.fresh(kind, [b, h, w, c])], [[b, h - k[0] + 1, w - k[1] + 1, c]], kinds=[kind], kernel_shape=k)

    @operator("QLinearMatMul", since=10)
    def _(g, op):
        m, k, n = g.r.randint(1, 3), g.r.randint(1, 4), g.r.randint(1, 3)
        x, w = g.fresh("u1", [m, k]), g.fresh("u1", [k, n])
        g.node(op, [x, eighth(g, x), zero(g, "u1"), w, eighth(g, x), zero(g, "u1"), eighth(g, x), zero(g, "u1")], shapes=[[m, n]], kinds=["u1"])

    @operator("QLinearConv", since=10)
    def _(g, op):
        x = g.fresh("u1", [1, 2, g.r.randint(3, 5), g.r.randint(3, 5)])
        a = window(g, op, 2, g.shape[x][2:])
        a.pop("auto_pad", None)
        out = g.r.randint(1, 3)
        w = g.fresh("u1", [out, 2] + a["kernel_shape"])
        ins = [x, eighth(g, x), zero(g, "u1"), w, eighth(g, x), zero(g, "u1"), eighth(g, x), zero(g, "u1")]
        if g.r.random() < 0.5:
            ins.append(g.constant(g.numbers("i4", [out])))
        g.node(op, ins, **a)
