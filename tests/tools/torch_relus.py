# SPDX-License-Identifier: MIT-0
# torch_relus.py FOLDER: the statistics of examples/torch/relus.py. The temperature that a hold-out chooses is the one that its labels were
# drawn with; the divergence is that of PyTorch; a verdict that Holm's correction removes has its mark in brackets; and the tables of a short
# run have what was measured: the tempered network flips nothing, and its cross-entropy beside itself is 0.
import json, os, subprocess, sys
import numpy as np
import torch
import relus

folder = sys.argv[1]
failed = 0


def verdict(good, name, why=""):
    global failed
    print(f"ok {name}" if good else f"FAIL {name}: {why}", flush=True)
    failed |= not good


torch.manual_seed(3)
z = 3 * torch.randn(20000, 5)
for true in (0.5, 1.0, 2.5):
    y = torch.distributions.Categorical(logits=z / true).sample()
    found = relus.temperature(z, y)
    verdict(abs(found / true - 1) < 0.05, f"the temperature of labels drawn at {true:g}", f"{found:g}")
a, b = torch.randn(2, 100, 5)
expected = torch.nn.functional.kl_div(b.log_softmax(-1), a.log_softmax(-1), reduction="batchmean", log_target=True).item()
verdict(abs(relus.divergence(a, b).mean().item() - expected) < 1e-6, "KL(smooth, converted)", f"{relus.divergence(a, b).mean().item()}, {expected}")

findings = relus.Findings()
narrow, edge, wide = np.array([0, 1, 2, 1, 0]) * 1e-5, np.array([-13, -5, 0, 5, 13]) * 1e-4, np.array([-9, 9, -9, 9, 0]) * 1e-3
cells = [findings.cell("narrow", narrow, -0.002, 0.002, 4), findings.cell("edge", edge, -0.002, 0.002, 4),
         findings.cell("wide", wide, -0.002, 0.002, 4), findings.cell("outside", 1 + narrow, -0.002, 0.002, 4)]
alone = findings.marked(cells[1])
for k in range(10):
    findings.cell(f"other {k}", wide, -0.002, 0.002, 4)
marks = [findings.marked(cell).split(" ", 3)[3:] for cell in cells]
verdict(relus.verdict(edge, -0.002, 0.002)[0] == "seen" and marks == [["✓"], ["(✓)"], [], ["✗"]], "a verdict that Holm's correction removes is in brackets",
        f"{marks}, alone {alone}")
verdict(findings.cell("one seed", [0.5], 0, 1, 2) == "+0.50" and findings.cell("missing", [np.nan, 1], 0, 1, 2) == "", "one seed and missing values", "")

program = os.path.join(os.path.dirname(relus.__file__), "relus.py")
done = subprocess.run([sys.executable, program, "--only", "^(mlp|sine)-silu", "--short", "--seeds", "2", "--arms", "cold 1|biases|refit 1|tempered",
                       "--out", folder, "--reluize", "none"], capture_output=True, text=True, env=dict(os.environ, LGELU_DATA=""))
verdict(done.returncode == 0, "a short run", done.stderr.strip().splitlines()[-1:] if done.stderr else "")
for title in "KL(smooth, converted) of images", "Flips, %", "Rise of the loss", "Rise of the cross-entropy of images":
    verdict(f"\n{title}" in "\n" + done.stdout, f"it prints a table: {title}", done.stdout[:200])
arms = json.load(open(f"{folder}/mlp-silu-1.json"))["arms"] if done.returncode == 0 else {}
tempered = arms.get("tempered", {})
verdict(tempered.get("flips") == 0 and tempered.get("rise", 1) != 0 and abs(tempered.get("tempered_rise", 1)) < 1e-5,
        "a temperature changes the cross-entropy and no prediction", f"{tempered}")
refit, cold = arms.get("refit 1", {}), arms.get("cold 1", {})
verdict(refit.get("divergence", 1) < cold.get("divergence", 0) and "tempered_rise" in refit, "the refit is nearer than the cold swap", f"{refit}, {cold}")
sys.exit(failed)
