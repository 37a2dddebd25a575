# SPDX-License-Identifier: MIT-0
# onnx_steps.py LIST FOLDER: each network of the list once more, as NAME.inside.onnx, with every layer's whole numbers as outputs.
import sys
import onnx

for line in open(sys.argv[1]):
    name, layers = line.split("\t")[0], line.rstrip("\n").split("\t")[-1].split()
    model = onnx.load(f"{sys.argv[2]}/{name}.onnx")
    for layer in layers:
        name_of_steps = f"{layer.split(':')[0]}/steps"
        model.graph.output.append(onnx.helper.make_tensor_value_info(name_of_steps, onnx.TensorProto.UINT8, None))
    onnx.save(model, f"{sys.argv[2]}/{name}.inside.onnx")
