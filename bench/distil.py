#!/usr/bin/env python3
"""The step of distil.c in PyTorch (Debian: python3-torch, python3-onnx): both networks are built from the same two files, operator by
operator; the first dimension is that of images. x·sigmoid(x) is PyTorch's silu, and a product that meets a sum is its addcmul. One
image at a time and all at once, its channels-last layout and its oneDNN kernels on and off are tried; the fastest counts. One JSON line.
distil.py THREADS ORIGINAL.onnx STUDENT.onnx SIZE IMAGES [ROUNDS]   SPDX-License-Identifier: MIT-0"""
import json, os, resource, sys, time
import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from torch.nn import functional as F

threads, (original_path, student_path) = int(sys.argv[1]), sys.argv[2:4]
size, images, rounds = int(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6]) if len(sys.argv) > 6 else 3
torch.set_num_threads(threads)
clock = time.process_time if os.environ.get("OWN_TIME") else time.perf_counter  # as clock.h with OWN_TIME


def pads_of(a, x):
    top, left, bottom, right = a.get("pads", [0, 0, 0, 0])
    return (x, (top, left)) if (top, left) == (bottom, right) else (F.pad(x, (left, right, top, bottom)), (0, 0))


def conv(a, x, weight, bias=None):
    x, padding = pads_of(a, x)
    return F.conv2d(x, weight, bias, a.get("strides", 1), padding, a.get("dilations", 1), a.get("group", 1))


def max_pool(a, x):
    top, left, bottom, right = a.get("pads", [0, 0, 0, 0])
    assert (top, left) == (bottom, right) and not a.get("ceil_mode", 0)
    return F.max_pool2d(x, a["kernel_shape"], a.get("strides", 1), (top, left))


def resize(a, x, _, scales):
    assert a["mode"] == b"nearest" and a["coordinate_transformation_mode"] == b"asymmetric" and a["nearest_mode"] == b"floor"
    return F.interpolate(x, scale_factor=tuple(scales.tolist()[2:]), mode="nearest")


def cut(_, x, starts, ends, axes, steps):
    at = [slice(None)] * x.dim()
    for start, end, axis, step in zip(*(t.tolist() for t in (starts, ends, axes, steps))):
        at[axis] = slice(start, min(end, x.shape[axis]), step)
    return x[tuple(at)]


OPERATORS = {
    "Conv": conv, "MaxPool": max_pool, "Resize": resize, "Slice": cut,
    "Add": lambda a, x, y: x + y, "Sub": lambda a, x, y: x - y, "Mul": lambda a, x, y: x * y,
    "PRelu": lambda a, x, slope: F.prelu(x, slope.reshape(-1)), "Relu": lambda a, x: torch.relu(x), "Sigmoid": lambda a, x: torch.sigmoid(x), "Silu": lambda a, x: F.silu(x),
    "Addcmul": lambda a, x, y, z: torch.addcmul(z, x, y),
    "Concat": lambda a, *x: torch.cat(x, a["axis"]), "Transpose": lambda a, x: x.permute(a["perm"]),
    "Reshape": lambda a, x, shape: x.reshape([len(x)] + [n or x.shape[k + 1] for k, n in enumerate(shape.tolist()[1:])]),
}


class Network:
    """Nodes as (function, attributes, inputs, outputs), with the two fusions that PyTorch has functions for."""

    def __init__(self, path, learned):
        graph = onnx.load(path).graph
        self.value = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in graph.initializer}
        self.input, self.output = graph.input[0].name, [v.name for v in graph.output]
        self.convolved, self.learned, nodes = [], {}, []
        readers = {}
        for n in graph.node:
            for name in n.input:
                readers.setdefault(name, []).append(n)
            if n.op_type == "Constant":
                self.value[n.output[0]] = torch.from_numpy(numpy_helper.to_array(n.attribute[0].t).copy())
        for n in graph.node:
            op, inputs, alone = n.op_type, list(n.input), [len(readers.get(o, [])) == 1 for o in n.output]
            if op == "Constant":
                continue
            if op == "Conv":
                self.convolved.append(n.output[0])
            for name in inputs if learned and op in ("Conv", "Add", "Sub", "Mul", "PRelu") else []:
                if name in self.value and self.value[name].is_floating_point():
                    self.learned[name] = self.value[name].requires_grad_()
            last = nodes[-1] if nodes else None
            if op == "Mul" and last and last[0] == "Sigmoid" and last[2] == [i for i in inputs if i != last[3]] and last[4]:
                nodes[-1] = ("Silu", {}, last[2], n.output[0], alone[0])
            elif op == "Add" and last and last[0] == "Mul" and last[3] in inputs and last[4] and inputs[0] != inputs[1]:
                nodes[-1] = ("Addcmul", {}, last[2] + [i for i in inputs if i != last[3]], n.output[0], alone[0])
            else:
                nodes.append((op, {a.name: helper.get_attribute_value(a) for a in n.attribute}, inputs, n.output[0], alone[0]))
        self.nodes = [(OPERATORS[op], a, inputs, output) for op, a, inputs, output, _ in nodes]
        last_reader = {name: k for k, node in enumerate(self.nodes) for name in node[2]}
        kept = set(self.output) | set(self.convolved) | set(self.value)
        self.dead = [[] for _ in self.nodes]
        for name, k in last_reader.items():
            if name not in kept:
                self.dead[k].append(name)

    def __call__(self, x):
        value = dict(self.value)
        value[self.input] = x
        for (function, a, inputs, output), dead in zip(self.nodes, self.dead):
            value[output] = function(a, *(value.get(name) for name in inputs))
            for name in dead:
                value.pop(name, None)
        return value


original, student = Network(original_path, False), Network(student_path, True)
targets = list(zip(original.output, student.output)) + [(n, n) for n in student.convolved if n in set(original.convolved)]
count = images * 3 * size * size
pixels = (np.arange(3 * size * size, dtype=np.uint32) * np.uint32(2654435761) >> np.uint32(24)).astype(np.float32)
x = torch.from_numpy(pixels.reshape(1, 3, size, size)).repeat(images, 1, 1, 1)
loss_of_step = 0


def run_step(x, at_once):
    global loss_of_step
    loss_of_step = 0
    for parameter in student.learned.values():
        parameter.grad = None
    for image in [x] if at_once else x.split(1):
        with torch.no_grad():
            t = original(image)
        s = student(image)
        loss = sum((s[b] - t[a]).square().flatten(1).sum(1).div(t[a].square().flatten(1).sum(1)).sum() for a, b in targets)
        loss.backward()
        loss_of_step += float(loss) / images


def run_forward(x, _):
    with torch.no_grad():
        original(x[:1])


best, how = {}, {}
for onednn in (True, False):
    torch.backends.mkldnn.enabled = onednn
    for layout in (torch.contiguous_format, torch.channels_last):
        for at_once in (False, True) if images > 1 else (False,):
            for name, work, per in (("step_ms", run_step, images), ("forward_ms", run_forward, 1)):
                for k in range(rounds + 1):
                    start = clock()
                    work(x.contiguous(memory_format=layout), at_once)
                    ms = (clock() - start) / per * 1e3
                    if ms < best.get(name, 1e9):
                        best[name] = ms
                        how[name] = ("oneDNN" if onednn else "own kernels") + (", channels last" if layout == torch.channels_last else "") \
                            + (", all images at once" if at_once else "")
gradient = sum(float(p.grad.double().square().sum()) for p in student.learned.values() if p.grad is not None) ** 0.5 / images
print(json.dumps({"peer": "PyTorch " + torch.__version__, "threads": threads, "images": images, "step_ms": round(best["step_ms"], 3),
                  "forward_ms": round(best["forward_ms"], 3),
                  "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
                  "loss": round(loss_of_step, 6), "gradient": round(gradient, 6), "how": how["step_ms"]}))
