# SPDX-License-Identifier: MIT-0
# onnx_same.py BEFORE.onnx AFTER.onnx ...: what a conversion must not change, of one pair of files or several: inputs, outputs and their
# shapes, opsets, metadata, and every node but those of gates (Relu is new, or Sub, Mul, Add beside it) and the elements of initializers
# and of nodes Constant. Prints the first difference, with the file.
import sys

import onnx


def attributes(n):
    """The attributes of a node; of tensors in a Constant, type and shape."""
    return [(a.name, a.t.data_type, list(a.t.dims)) if n.op_type == "Constant" and a.HasField("t") else a for a in n.attribute]


def difference(before, after):
    """What changed and must not; None: nothing."""
    for field in ("ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string"):
        if getattr(before, field) != getattr(after, field):
            return f"{field} changed"
    for field in ("opset_import", "metadata_props", "functions"):
        if list(getattr(before, field)) != list(getattr(after, field)):
            return f"{field} changed"
    for field in ("input", "output"):
        if list(getattr(before.graph, field)) != list(getattr(after.graph, field)):
            return f"{field} changed"
    if after.ir_version <= onnx.IR_VERSION:  # the checker knows no later ones
        onnx.checker.check_model(after)
    kept = {n.output[0]: n for n in before.graph.node}
    for n in after.graph.node:
        old = kept.get(n.output[0])
        new = n.op_type in ("Relu", "Add", "Mul", "Sub")
        if not new and (old is None or old.op_type != n.op_type or attributes(old) != attributes(n)):
            if not any(o.op_type == n.op_type and attributes(o) == attributes(n) and o.name == n.name for o in before.graph.node):
                return f"node '{n.name}' ({n.op_type}) was not in the file"
    sizes = {t.name: (t.data_type, list(t.dims)) for t in before.graph.initializer}
    for t in after.graph.initializer:
        if t.name in sizes and sizes[t.name] != (t.data_type, list(t.dims)):
            return f"initializer '{t.name}' has another type or shape"
    return None


for before, after in zip(sys.argv[1::2], sys.argv[2::2]):
    why = difference(onnx.load(before), onnx.load(after))
    if why:
        sys.exit(f"{after}: {why}")
