# SPDX-License-Identifier: MIT-0
# onnx_tensors.py: the format of the cases that onnx_random.py and onnx_mutants.py make: see onnx_random.py.
import struct

import numpy as np

CODE = {"f4": 1, "u1": 2, "i1": 3, "u2": 4, "i2": 5, "i4": 6, "i8": 7, "b1": 9, "f2": 10, "f8": 11, "u4": 12, "u8": 13}


def tensor_bytes(name, array):
    text, data = name.encode(), np.ascontiguousarray(array).tobytes()
    head = struct.pack("<I", len(text)) + text + struct.pack("<II", CODE[array.dtype.str[1:]], array.ndim)
    return head + struct.pack(f"<{array.ndim}q", *array.shape) + struct.pack("<Q", len(data)) + data


def case_bytes(inputs, models):
    """A case: its inputs, names and arrays, and the model with its last values and with all values as outputs."""
    tensors = b"".join(tensor_bytes(name, array) for name, array in inputs)
    return struct.pack("<I", len(inputs)) + tensors + b"".join(struct.pack("<I", len(m)) + m for m in models)
