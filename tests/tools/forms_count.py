# SPDX-License-Identifier: MIT-0
# forms_count.py INPUT=N,C,H,W NAME=FILE.onnx...: for each network the bytes of its files in floats and, where FILE.8.1.onnx is beside it,
# in 8 bits, and the operations of the one in floats for one input: multiplications with a sum (MAC) of its matrices, and elements that
# each operator makes which computes one element from one of each input. Operators that move elements are left out, and so are those
# whose shape onnx does not infer, of which the number is printed. Needs onnx.
import collections
import os
import sys

import onnx
from onnx import numpy_helper, shape_inference

MATRICES = {'Conv', 'Gemm', 'MatMul'}
POINTWISE = ('Relu', 'PRelu', 'LeakyRelu', 'Sigmoid', 'HardSigmoid', 'HardSwish', 'Clip', 'Softmax', 'Tanh', 'Erf', 'Exp', 'Add', 'Sub', 'Mul', 'Div',
             'BatchNormalization')


def fixed(path, name, dims):
    """The model with the size of its input, and the shapes of its values."""
    model = onnx.load(path)
    for value in model.graph.input:
        if value.name == name:
            for axis, size in zip(value.type.tensor_type.shape.dim, dims):
                axis.dim_value = size
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField('shape')
    model = shape_inference.infer_shapes(model, data_prop=True)
    graph = model.graph
    shape = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in [*graph.value_info, *graph.input, *graph.output]
             if v.type.tensor_type.HasField('shape')}
    shape.update({t.name: list(t.dims) for t in graph.initializer})
    for node in graph.node:
        if node.op_type == 'Constant':
            shape[node.output[0]] = list(numpy_helper.to_array(node.attribute[0].t).shape)
    return graph, shape


def elements(shape):
    n = 1
    for size in shape:
        n *= size
    return n


def operations(graph, shape):
    """Multiplications with a sum, elements by operator, and the operators without a shape."""
    macs, made, unknown = 0, collections.Counter(), 0
    for node in graph.node:
        if node.op_type not in MATRICES and node.op_type not in POINTWISE:
            continue
        if node.output[0] not in shape:
            unknown += 1
            continue
        y = elements(shape[node.output[0]])
        if node.op_type == 'Conv':
            macs += y * elements(shape[node.input[1]][1:])
        elif node.op_type in MATRICES:
            macs += y * shape[node.input[0]][-1]
        else:
            made[node.op_type] += y
    return macs, made, unknown


def size(path):
    return '%d' % (os.path.getsize(path) // 1024) if os.path.exists(path) else ''


def main():
    name, dims = sys.argv[1].split('=')
    networks, left_out = [arg.split('=', 1) for arg in sys.argv[2:]], []
    counted = [operations(*fixed(path, name, [int(d) for d in dims.split(',')])) for _, path in networks]
    used = [op for op in POINTWISE if any(op in made for _, made, _ in counted)]
    print('| network | KB, floats | KB, 8 bits | 10^6 MAC | all pointwise | %s |' % ' | '.join(used))
    print('|%s' % ('---|' * (5 + len(used))))
    for (row, path), (macs, made, unknown) in zip(networks, counted):
        cells = ['%.2f' % (made[op] / 1e6) if made[op] else '' for op in used]
        print('| %s | %s | %s | %.1f | %.2f | %s |' % (row, size(path), size(path[:-5] + '.8.1.onnx'), macs / 1e6, sum(made.values()) / 1e6,
                                                       ' | '.join(cells)))
        if unknown:
            left_out.append('%s %d' % (row, unknown))
    if left_out:
        print('\noperators without a shape, left out: %s' % ', '.join(left_out))


main()
