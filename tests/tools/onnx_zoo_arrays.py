# SPDX-License-Identifier: MIT-0
# onnx_zoo_arrays.py FOLDER: reads the list that onnx_zoo_more.py prints, writes inputs for each network, random values that are spread
# as those of its example, and prints the list of files and arrays as onnx_zoo_files.py does.
# NAME.once.npy has the samples of one run, for a file that fixes its batch.
import sys

import numpy as np

folder = sys.argv[1]
for line in sys.stdin:
    name, kind, shape, *_ = line.rstrip("\n").split("\t")
    shape = tuple(map(int, shape.split(",")))
    example = np.fromfile(f"{folder}/{name}.in", dtype="<i8" if kind == "int64" else "<f4").reshape(shape)
    samples = 24 if 24 % shape[0] == 0 else 8 * shape[0]
    random = np.random.default_rng(1)
    if kind == "int64":
        x = random.integers(0, example.max() + 1, (samples, *shape[1:]))
    else:
        x = (random.standard_normal((samples, *shape[1:])) * example.std() + example.mean()).astype("<f4")
    np.save(f"{folder}/{name}.input.npy", x)
    np.save(f"{folder}/{name}.once.npy", x[:shape[0]])
    print(name, f"input={name}.input.npy", sep="\t")
