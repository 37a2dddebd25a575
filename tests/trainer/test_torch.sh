# SPDX-License-Identifier: MIT-0
# test_torch.sh: PyTorch computes the ten steps of test_ten_steps.c in double, from the same safetensors to the same safetensors; the
# values and gradients of RMS norms and of a GPT with Llama's blocks; and the logits of a GPT from the weights that gpt_logits.c saves.
CC=${CC:-cc}
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
out=build/torch
mkdir -p $out
. tools/verdict.sh
python=$(python_with torch)
if [ -z "$python" ]; then echo "skip ten AdamW steps, RMS norms, Llama's blocks and a GPT's logits by PyTorch: $no_torch"; exit 0; fi
$CC -std=c99 -O2 -I.. -I. trainer/test_ten_steps.c ${IMPLEMENTATION:-tools/lgelu.c} -o $out/ten_steps -lm || exit 1
$out/ten_steps $out/before.safetensors $out/after.safetensors > $out/log || exit 1
$CC -std=c99 -O2 -I.. tools/gpt_logits.c ${IMPLEMENTATION:-tools/lgelu.c} -o $out/gpt_logits -lm && $out/gpt_logits $out/gpt.safetensors $out/gpt.tokens $out/gpt.logits || exit 1
$CC -std=c99 -O2 -I.. tools/rms_norm_torch.c ${IMPLEMENTATION:-tools/lgelu.c} -o $out/rms_norm -lm || exit 1
$out/rms_norm $out/rms.safetensors $out/rms.data $out/rms.result || exit 1
$CC -std=c99 -O2 -I.. tools/modern_torch.c ${IMPLEMENTATION:-tools/lgelu.c} -o $out/modern -lm || exit 1
$out/modern $out/modern.safetensors $out/modern.tokens $out/modern.logits $out/modern.gradients || exit 1
cat > $out/safetensors.py <<'PYTHON'
import json, torch

def read(path):
    data = open(path, "rb").read()
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + n])
    def tensor(e):
        first, end = e["data_offsets"]
        return torch.frombuffer(bytearray(data[8 + n + first:8 + n + end]), dtype=torch.float32).reshape(e["shape"]).double()
    return {name: tensor(e) for name, e in header.items() if name != "__metadata__"}
PYTHON
PYTHONPATH=$out $python - $out/before.safetensors $out/after.safetensors <<'PYTHON' || exit 1
import math, sys, torch
from safetensors import read

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
PYTHONPATH=$out $python - $out/rms.safetensors $out/rms.data $out/rms.result <<'PYTHON' || exit 1
import sys, torch
from torch.nn import functional as F
from safetensors import read

names = "fc.weight", "fc.bias", "norm1.weight", "out.weight", "out.bias", "norm2.weight"
saved = read(sys.argv[1])
extra = sorted(name for name in saved if name.startswith("norm") and not name.startswith(("norm1.weight", "norm2.weight")))
w = {name: torch.nn.Parameter(saved[name]) for name in names}
width, inputs = w["fc.weight"].shape
raw = lambda path: torch.frombuffer(bytearray(open(path, "rb").read()), dtype=torch.float32).double()
data, result = raw(sys.argv[2]), raw(sys.argv[3])
rows = len(data) // (inputs + width)
x, target = data[:rows * inputs].view(rows, inputs), data[rows * inputs:].view(rows, width)
norm = lambda x, name, eps: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w[name + ".weight"]
h = F.linear(x, w["fc.weight"], w["fc.bias"])
y = norm(F.linear(norm(h, "norm1", 0.125), w["out.weight"], w["out.bias"]) + h, "norm2", 1e-5)
F.mse_loss(y, target).backward()
worst, at = 0, 0
for theirs in [y.detach(), *(w[name].grad for name in names)]:
    ours = result[at:at + theirs.numel()].view(theirs.shape)
    at += theirs.numel()
    worst = max(worst, float((ours - theirs).norm() / theirs.norm()))
good = worst <= 1e-6 and at == len(result) and not extra
print(f"# PyTorch {torch.__version__}: relative difference of an RMS norm's values and gradients {worst:.2g}")
print("ok RMS norms: values and gradients of PyTorch to 1e-6, tensors of PyTorch's names" if good else
      f"FAIL RMS norms: values and gradients of PyTorch to 1e-6: {worst:.3g}, {at} of {len(result)} values, also {extra}")
sys.exit(not good)
PYTHON
PYTHONPATH=$out $python - $out/modern.safetensors $out/modern.tokens $out/modern.logits $out/modern.gradients <<'PYTHON' || exit 1
import sys, torch
from torch.nn import functional as F
from safetensors import read

saved, gradients = read(sys.argv[1]), read(sys.argv[4])
w = {name: torch.nn.Parameter(value) for name, value in saved.items() if name.endswith(".weight")}
biases = [name for name in saved if name.endswith(".bias")]
raw = lambda path, kind: torch.frombuffer(bytearray(open(path, "rb").read()), dtype=kind)
context, heads, kv_heads, layers = 21, 6, 2, sum(name.endswith("ln_1.weight") for name in w)
width = w["wte.weight"].shape[1] // heads
tokens, labels = raw(sys.argv[2], torch.int32).long().view(2, -1, context)
ours = raw(sys.argv[3], torch.float32).double().view(*tokens.shape, -1)
linear = lambda x, name: x @ w[name + ".weight"].T
norm = lambda x, name: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * w[name + ".weight"]
angle = torch.outer(torch.arange(context).double(), 10000.0 ** (-torch.arange(0, width, 2).double() / width))
angle = torch.cat((angle, angle), -1)
def turned(x): # as in Hugging Face's Llama
    a, b = x.chunk(2, -1)
    return x * angle.cos() + torch.cat((-b, a), -1) * angle.sin()
mask = torch.full((context, context), float("-inf")).double().triu(1)
x = w["wte.weight"][tokens]
for i in range(layers):
    qkv = linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").view(*tokens.shape, -1, width).transpose(1, 2)
    q, k, v = qkv.split((heads, kv_heads, kv_heads), 1)
    q, k = turned(q), turned(k)
    k, v = (y.repeat_interleave(heads // kv_heads, 1) for y in (k, v))
    a = F.softmax(q @ k.transpose(2, 3) / width ** 0.5 + mask, -1) @ v
    x = x + linear(a.transpose(1, 2).reshape(x.shape), f"h.{i}.attn.c_proj")
    y = norm(x, f"h.{i}.ln_2")
    x = x + linear(F.silu(linear(y, f"h.{i}.mlp.c_fc")) * linear(y, f"h.{i}.mlp.c_up"), f"h.{i}.mlp.c_proj")
theirs = linear(norm(x, "ln_f"), "lm_head")
F.cross_entropy(theirs.flatten(0, 1), labels.flatten()).backward()
worst = float((ours - theirs).norm() / theirs.norm())
for name, value in w.items():
    worst = max(worst, float((gradients[name] - value.grad).norm() / value.grad.norm()))
good = worst <= 2e-6 and not biases and len(w) == 3 + 7 * layers
print(f"# PyTorch {torch.__version__}: relative difference of the logits and gradients of Llama's blocks {worst:.2g}")
print("ok Llama's blocks: logits and gradients of PyTorch to 2e-6" if good else
      f"FAIL Llama's blocks: logits and gradients of PyTorch to 2e-6: {worst:.3g}, {len(w)} weights, biases {biases}")
sys.exit(not good)
PYTHON
PYTHONPATH=$out $python - $out/gpt.safetensors $out/gpt.tokens $out/gpt.logits <<'PYTHON'
import sys, torch
from torch.nn import functional as F
from safetensors import read

w = {name: value.float() for name, value in read(sys.argv[1]).items()}
context, width = w["wpe.weight"].shape
heads, layers = 4, sum(name.endswith("ln_1.bias") for name in w)
raw = lambda path, kind: torch.frombuffer(bytearray(open(path, "rb").read()), dtype=kind)
tokens = raw(sys.argv[2], torch.int32).long().view(-1, context)
ours = raw(sys.argv[3], torch.float32).view(*tokens.shape, -1)
linear = lambda x, name: F.linear(x, w[name + ".weight"], w[name + ".bias"])
norm = lambda x, name: F.layer_norm(x, (width,), w[name + ".weight"], w[name + ".bias"])
mask = torch.full((context, context), float("-inf")).triu(1)
x = w["wte.weight"][tokens] + w["wpe.weight"]
for i in range(layers):
    q, k, v = (y.view(*tokens.shape, heads, -1).transpose(1, 2) for y in linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").split(width, 2))
    a = F.softmax(q @ k.transpose(2, 3) / (width // heads) ** 0.5 + mask, -1) @ v
    x = x + linear(a.transpose(1, 2).reshape(x.shape), f"h.{i}.attn.c_proj")
    x = x + linear(F.gelu(linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh"), f"h.{i}.mlp.c_proj")
theirs = norm(x, "ln_f") @ w["wte.weight"].T
worst = float((ours - theirs).abs().max())
print(f"# PyTorch {torch.__version__}: logits of {layers} layers differ by {worst:.2g}; they lie in {float(theirs.min()):.1f} to {float(theirs.max()):.1f}")
print("ok a GPT's logits: those of PyTorch to 1e-4" if worst <= 1e-4 else f"FAIL a GPT's logits: those of PyTorch to 1e-4: {worst:.3g}")
sys.exit(not worst <= 1e-4)
PYTHON
