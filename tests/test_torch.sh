# SPDX-License-Identifier: MIT-0
# test_torch.sh: the ten steps of test_ten_steps.c by PyTorch in double, from the same safetensors to the same safetensors.
CC=${CC:-cc}
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
out=build/torch
mkdir -p $out
python=
for p in python3 /usr/bin/python3; do $p -c 'import torch' 2> /dev/null && { python=$p; break; }; done
if [ -z "$python" ]; then echo "skip ten AdamW steps by PyTorch: not installed (Debian: python3-torch)"; exit 0; fi
$CC -std=c99 -O2 -I.. test_ten_steps.c -o $out/ten_steps -lm || exit 1
$out/ten_steps $out/before.safetensors $out/after.safetensors > $out/log || exit 1
$python - $out/before.safetensors $out/after.safetensors <<'PYTHON'
import json, math, sys, torch

def read(path):
    data = open(path, "rb").read()
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + n])
    def tensor(e):
        first, end = e["data_offsets"]
        return torch.frombuffer(bytearray(data[8 + n + first:8 + n + end]), dtype=torch.float32).reshape(e["shape"]).double()
    return {name: tensor(e) for name, e in header.items() if name != "__metadata__"}

before, after = read(sys.argv[1]), read(sys.argv[2])
lr, decay, c, t, steps, batch, inputs = 0.01, 0.1, 3, 0.1, 10, 24, 6
x = torch.tensor([(i * i * 7 % 61 - 30) / 16 for i in range(batch * inputs)], dtype=torch.float64).reshape(batch, inputs)
y = torch.tensor([i * i % 7 % 3 for i in range(batch)])
p = {name: torch.nn.Parameter(value) for name, value in before.items() if name.endswith((".weight", ".bias", ".s"))}
lam = lambda s: 1 + torch.nn.functional.softplus(s / t)
optimiser = torch.optim.AdamW([
    {"params": [v for k, v in p.items() if k.endswith(".weight")], "lr": lr, "weight_decay": decay},
    {"params": [v for k, v in p.items() if k.endswith(".bias")], "lr": lr, "weight_decay": 0},
    {"params": [v for k, v in p.items() if k.endswith(".s")], "lr": lr * c, "weight_decay": 0}])
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
for step in range(steps):
    h = x
    for i in 1, 2, 3:
        h = h @ p[f"fc{i}.weight"].T + p[f"fc{i}.bias"]
        if i < 3: h = h * (1 + torch.erf(lam(p[f"gate{i}.s"]) * h / math.sqrt(2))) / 2
    optimiser.zero_grad()
    torch.nn.functional.cross_entropy(h, y).backward()
    optimiser.step()
    cosine.step()
worst = 0
for name, value in p.items():
    mine, theirs = (after[name], value) if not name.endswith(".s") else (after[name[:-2] + ".lambda"], lam(value))
    worst = max(worst, float((mine - theirs).norm() / theirs.norm()))
print(f"# PyTorch {torch.__version__}: relative difference after ten steps {worst:.2g}")
print("ok ten AdamW steps: those of PyTorch to 1e-6" if worst < 1e-6 else f"FAIL ten AdamW steps: those of PyTorch to 1e-6: {worst:.3g}")
sys.exit(worst >= 1e-6)
PYTHON
