#!/usr/bin/env python3
"""saved_state.py: writes tools/saved_state.h, a checkpoint that another program than lgelu.h has written, and what the network in
it computes. The network is linear 3 to 4, batch norm, λ-GELU, layer norm, linear 4 to 2. Each number of the file occurs once, so
that two tensors that are exchanged show; the file's order of tensors is that of no network. The outputs are computed in double.

    python3 tools/saved_state.py > tools/saved_state.h

Python 3 alone. SPDX-License-Identifier: MIT-0"""
import json, math, struct

INPUTS, HIDDEN, OUTPUTS, SAMPLES = 3, 4, 2, 5
EPS_BATCH, EPS_LAYER = 1e-3, 1e-5
PARAMETERS = {"fc.weight": [HIDDEN, INPUTS], "fc.bias": [HIDDEN], "bn.weight": [HIDDEN], "bn.bias": [HIDDEN], "gate.s": [1],
              "ln.weight": [HIDDEN], "ln.bias": [HIDDEN], "head.weight": [OUTPUTS, HIDDEN], "head.bias": [OUTPUTS]}
STATE = {"gate.lambda": [1], "gate.lambda0": [1], "bn.running_mean": [HIDDEN], "bn.running_var": [HIDDEN]}


def shapes():
    """Every tensor of the network, in the order of their names read from the end."""
    found = dict(STATE)
    for name, shape in PARAMETERS.items():
        found.update({name: shape, name + ".m": shape, name + ".v": shape})
    return sorted(found.items(), key=lambda pair: pair[0][::-1])


def values():
    """Numbers that occur once: (k·101 mod 257)/128, of which those that may be negative are less 257/256, λ's more 1."""
    found, k = {}, 0
    for name, shape in shapes():
        positive = name.endswith((".v", ".running_var"))
        shift = 1 if ".lambda" in name else 0 if positive else -257 / 256
        found[name] = [(k + i) * 101 % 257 / 128 + shift + (1 / 128 if positive else 0) for i in range(math.prod(shape))]
        k += math.prod(shape)
    numbers = [x for row in found.values() for x in row]
    assert k < 257 and len(set(numbers)) == len(numbers)
    return found


def outputs(t, x):
    """What the network computes from one sample, by the names of its tensors."""
    def linear(name, x):
        rows = [t[name + ".weight"][i * len(x):(i + 1) * len(x)] for i in range(len(t[name + ".bias"]))]
        return [sum(w * v for w, v in zip(row, x)) + b for row, b in zip(rows, t[name + ".bias"])]
    x = linear("fc", x)
    x = [(v - mean) / math.sqrt(variance + EPS_BATCH) * gain + shift for v, mean, variance, gain, shift in
         zip(x, t["bn.running_mean"], t["bn.running_var"], t["bn.weight"], t["bn.bias"])]
    x = [v * 0.5 * math.erfc(-t["gate.lambda"][0] * v / math.sqrt(2)) for v in x]
    mean = sum(x) / len(x)
    root = math.sqrt(sum((v - mean) ** 2 for v in x) / len(x) + EPS_LAYER)
    x = [(v - mean) / root * gain + shift for v, gain, shift in zip(x, t["ln.weight"], t["ln.bias"])]
    return linear("head", x)


def file_of(tensors):
    header, data = {"__metadata__": {"step": "7"}}, b""
    for name, shape in shapes():
        packed = struct.pack("<%df" % len(tensors[name]), *tensors[name])
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + data


def main():
    tensors = values()
    data = [[(5 * i + 3 * j) % 7 / 4 - 0.75 for j in range(INPUTS)] for i in range(SAMPLES)]
    content = file_of(tensors)
    print("/* Written by tools/saved_state.py: a checkpoint, inputs, and the outputs of its network.\n   SPDX-License-Identifier: MIT-0 */")
    print("/* clang-format off */")
    print("static const unsigned char saved_file[%d] = {" % len(content))
    for at in range(0, len(content), 24):
        print("    " + ",".join(str(byte) for byte in content[at:at + 24]) + ",")
    print("};")
    print("static const char *const saved_name[%d] = {" % len(tensors))
    for name in tensors:
        print('    "%s",' % name)
    print("};")
    print("static const float saved_x[%d] = {" % (SAMPLES * INPUTS))
    for row in data:
        print("    " + ", ".join("%rf" % v for v in row) + ",")
    print("};")
    print("static const double saved_y[%d] = {" % (SAMPLES * OUTPUTS))
    for row in data:
        print("    " + ", ".join("%.12g" % v for v in outputs(tensors, row)) + ",")
    print("};")
    print("/* clang-format on */")


if __name__ == "__main__":
    main()
