# SPDX-License-Identifier: MIT-0
# onnx_relu_near.py FOLDER: outputs of ONNX Runtime (FOLDER/NAME.out, .cold.out, .relu.out): the refit is nearer to the original than
# the cold swap on inputs that it has not seen.
import sys
import numpy as np

folder = sys.argv[1]
for line in open(f"{folder}/list"):
    name = line.split("\t")[0]
    if "." in name:
        continue
    original, cold, relu = (np.fromfile(f"{folder}/{name}{kind}.out", "<f4").astype(np.float64) for kind in ("", ".cold", ".relu"))
    far, near = np.sqrt(np.mean((cold - original) ** 2)), np.sqrt(np.mean((relu - original) ** 2))
    good = near < 0.7 * far
    print(f"ok {name}: nearer than the cold swap in ONNX Runtime" if good else
          f"FAIL {name}: nearer than the cold swap in ONNX Runtime: {near:.4g} and {far:.4g}")
