# SPDX-License-Identifier: MIT-0
# onnx_check.py LIST FOLDER: onnx.checker, with shapes inferred, on each network of the list that onnx_nets printed; the layers
# that must be there (-NAME: must not; named: the output has a name of its own), opset and IR, a free batch, the shapes that the
# list says.
import sys
import onnx

bad = 0
for line in open(sys.argv[1]):
    name, kind, given, result, must = line.rstrip("\n").split("\t")[:5]
    try:
        model = onnx.load(f"{sys.argv[2]}/{name}.onnx")
        onnx.checker.check_model(model, full_check=True)
        graph = model.graph
        ops = {n.op_type for n in graph.node} | ({"named"} if graph.output[0].name == "logits of it" else set())
        assert model.ir_version == 8 and [(o.domain, o.version) for o in model.opset_import] == [("", 17)], "opset or IR"
        for op in must.split():
            assert (op.lstrip("-") in ops) != op.startswith("-"), f"{op}: there are {sorted(ops)}"
        for value, shape in (graph.input[0], given), (graph.output[0], result):
            dims = [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
            assert dims == ["N"] + [int(d) for d in shape.split(",")[1:]], f"{value.name} is {dims}, not {shape}"
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True).graph.output[0]
        assert len(inferred.type.tensor_type.shape.dim) == len(result.split(","))
        relu = not ops & {"Erf", "Tanh"}
        assert ("not ReLU" in model.doc_string) != relu and model.doc_string.startswith("A test. "), model.doc_string
    except Exception as e:
        bad += 1
        print(f"FAIL {name}: onnx.checker: {str(e).splitlines()[0]}")
print(f"# onnx {onnx.__version__}: {bad} of the files refused")
print("ok every file passes onnx.checker" if not bad else "FAIL every file passes onnx.checker")
sys.exit(bad != 0)
