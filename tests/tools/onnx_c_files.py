# SPDX-License-Identifier: MIT-0
# onnx_c_files.py RELUIZE COMPARE FOLDER OUT [INPUT.AXIS=SIZE...]: every .onnx file under FOLDER through reluize (ReLU in place of its
# gates, 8 bits) and through the writer of C files. Prints a table with a row for each file:
#   ReLU       how many gates were replaced, or the reason for a refusal
#   8 bits     the layers that have 8 bits in the file of --int8, and the size of that file beside the converted one's
#   C          "bits": the C file of the converted file (of the file itself, where its conversion is refused) compiles without a warning
#              as C and as C++ and has the evaluator's bits in all outputs; or the reason for a refusal
#   C, 8 bits  the C file in 8 bits beside the evaluator of the file of --int8: the largest difference of an output in steps of its grid
#              (of sums and floats: in 256ths of the largest), the part of the elements that are more than half a step apart, and how many
#              nodes are computed in floats; or the reason
# COMPARE is onnx_c_random. Inputs are drawn: floats from N(0, 1), whole numbers below 256. Of dimensions that a file leaves open, the
# first one is 1, those of images are 96, others 16, unless INPUT.AXIS=SIZE says otherwise. Status 1: a C file differs, or does not compile.
import json
import os
import re
import subprocess
import sys

import numpy as np

for name, kind in (("float", float), ("int", int), ("bool", bool), ("object", object)):
    setattr(np, name, kind)
import onnx
from onnx_tensors import case_bytes

KINDS = {1: "f4", 2: "u1", 6: "i4", 7: "i8", 9: "b1", 11: "f8"}
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-tautological-compare", "-shared", "-fPIC"]
COMPILERS = [["gcc", "-std=c99", "-O2", "-march=native", *WARNINGS], ["g++", "-x", "c++", "-std=c++11", "-O1", *WARNINGS]]


def inputs_of(model, sizes):
    """The inputs that are no weights: names, types and shapes; whether the first dimension is open or 1."""
    weights = {w.name for w in model.graph.initializer}
    for value in model.graph.input:
        if value.name in weights:
            continue
        kind = value.type.tensor_type
        dims = [d.dim_value if d.HasField("dim_value") else 0 for d in kind.shape.dim]
        shape = [sizes.get(f"{value.name}.{k}", d or (1 if k == 0 else 96 if len(dims) == 4 else 16)) for k, d in enumerate(dims)]
        yield value.name, kind.elem_type, shape, bool(dims) and dims[0] < 2


def drawn(n, kind, shape):
    if kind in (1, 11):
        return n.normal(0, 1, shape).astype(KINDS[kind])
    return n.integers(0, 2 if kind == 9 else 256, shape).astype(KINDS[kind])


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def reason(text):
    """The last line of an error, without the program's name and the file's."""
    lines = [line for line in text.strip().split("\n") if line]
    return re.sub(r"^.*?(node '|input '|output ')", r"\1", lines[-1])[:160] if lines else "no message"


def c_file(compare, out, path, inputs, *options):
    """The C file of a model beside the evaluator: the counts and the lines of both compilers, or the reason for a refusal."""
    with open(path, "rb") as f:
        data = f.read()
    with open(f"{out}/case", "wb") as f:
        f.write(case_bytes(inputs, [data, b""]))
    said = [run(compare, *options, f"{out}/case", out, *compiler)[1] for compiler in COMPILERS]
    good = all(re.search("counts 1 written, 0 refused, 0 differ, 0 do not compile", text) for text in said)
    return good, said[0]


def row(reluize, compare, out, path, sizes):
    n = np.random.default_rng(1)
    arguments, inputs = [], []
    described = list(inputs_of(onnx.load(path), sizes))
    samples = 40 if sum(np.prod(shape) for _, _, shape, _ in described) < 1e5 else 20
    for k, (name, kind, shape, batch) in enumerate(described):
        x = drawn(n, kind, [samples] + shape[batch:])
        np.save(f"{out}/x{k}.npy", x)
        arguments += ["--data", f"{name}={out}/x{k}.npy"]
        inputs.append((name, x[0].reshape(shape)))
    relu, eight, report = (f"{out}/{name}" for name in ("relu.onnx", "int8.onnx", "report.json"))
    for name in (relu, eight):
        if os.path.exists(name):
            os.remove(name)
    command = [reluize, path, *arguments, "--quiet", "--class-axis", "none", "-o", relu, "--report", report]
    status, _, errors = run(*command)
    gates = reason(errors) if status else f"{len(json.load(open(report)).get('gates', []))} gates"
    written = path if status else relu
    good, said = c_file(compare, out, written, inputs)
    c = "bits" if good else reason(said.split("counts")[0])
    bad = not good and "REFUSED" not in said
    status, _, errors = run(*command, "--int8", eight)
    if status:
        return [gates, reason(errors), c, "-"], bad
    found = re.search(r"\bin 8 bits: (\d+) layers", " ".join(json.load(open(report)).get("notes", [])))
    small = f"{found.group(1) + ' layers, ' if found else ''}{os.path.getsize(eight) / os.path.getsize(written):.2f}"
    good, said = c_file(compare, out, eight, inputs, "--integers", "1000")
    apart = re.search(r"# (\d+) of (\d+) elements are apart, by at most ([\d.]+) steps", said)
    c8 = reason(said.split("# ")[0])
    if good:
        floats = int((re.findall(r"floats (\d+)", said) or ["0"])[0])
        c8 = f"{apart.group(3)}; {100 * int(apart.group(1)) / max(1, int(apart.group(2))):.2f} %" + (f"; {floats} nodes in floats" if floats else "")
    return [gates, small, c, c8], bad or (not good and "REFUSED" not in said)


def main():
    reluize, compare, folder, out, *sizes = sys.argv[1:]
    sizes = {name: int(size) for name, size in (text.rsplit("=", 1) for text in sizes)}
    os.makedirs(out, exist_ok=True)
    bad = False
    print("| file | ReLU | 8 bits | C | C in 8 bits |\n|---|---|---|---|---|", flush=True)
    for path in sorted(os.path.join(d, f) for d, _, files in os.walk(folder) for f in files if f.endswith(".onnx")):
        cells, wrong = row(reluize, compare, out, path, sizes)
        bad |= wrong
        print(f"| {os.path.relpath(path, folder)} | " + " | ".join(cells) + " |", flush=True)
    return bad


sys.exit(main())
