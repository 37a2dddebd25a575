# SPDX-License-Identifier: MIT-0
# deploy_torch.py FOLDER: the torch side of test_deploy_torch.sh.
import json, sys
import numpy as np, torch
from torch import nn
from torch.nn import functional as F

folder = sys.argv[1] + "/"
TYPES = {"F32": torch.float32, "F64": torch.float64, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64}

def read(path):
    data = open(path, "rb").read()
    n = int.from_bytes(data[:8], "little")
    header, result = json.loads(data[8:8 + n]), {}
    for name, e in header.items():
        if name == "__metadata__": continue
        first, end = e["data_offsets"]
        result[name] = torch.frombuffer(bytearray(data[8 + n + first:8 + n + end]), dtype=TYPES[e["dtype"]]).reshape(e["shape"])
    return result

def write(path, state):
    header, blobs, at = {"__metadata__": {"format": "pt", "note": "a \\ and a \""}}, [], 0
    for name, t in state.items():
        blob = t.contiguous().view(torch.uint8).numpy().tobytes() if t.dim() else t.reshape(1).view(torch.uint8).numpy().tobytes()
        kind = [k for k, v in TYPES.items() if v == t.dtype][0]
        header[name] = {"dtype": kind, "shape": list(t.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header, indent=1).encode()
    open(path, "wb").write(len(text).to_bytes(8, "little") + text + b"".join(blobs))

class Mlp(nn.Module):
    def __init__(s):
        super().__init__()
        s.fc1, s.fc2, s.fc3 = nn.Linear(20, 48), nn.Linear(48, 32), nn.Linear(32, 10)
    def forward(s, x): return s.fc3(F.gelu(s.fc2(F.gelu(s.fc1(x)))))

class LeNet(nn.Module):
    def __init__(s):
        super().__init__()
        s.conv1, s.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        s.fc1, s.fc2, s.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)
    def forward(s, x):
        x = F.max_pool2d(F.gelu(s.conv1(x)), 2)
        x = F.max_pool2d(F.gelu(s.conv2(x)), 2).flatten(1)
        return s.fc3(F.gelu(s.fc2(F.gelu(s.fc1(x)))))

class Block(nn.Module):                      # names as torchvision's
    def __init__(s, a, b, stride):
        super().__init__()
        s.conv1, s.bn1 = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b)
        s.conv2, s.bn2 = nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b)
        s.downsample = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b)) if stride > 1 else None
    def forward(s, x):
        y = s.bn2(s.conv2(F.gelu(s.bn1(s.conv1(x)))))
        return F.gelu(y + (x if s.downsample is None else s.downsample(x)))

class ResNet18(nn.Module):
    def __init__(s):
        super().__init__()
        s.conv1, s.bn1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64)
        a = 64
        for i, b in enumerate((64, 128, 256, 512)):
            setattr(s, f"layer{i + 1}", nn.Sequential(Block(a, b, 2 if i else 1), Block(b, b, 1)))
            a = b
        s.fc = nn.Linear(512, 10)
    def forward(s, x):
        x = F.gelu(s.bn1(s.conv1(x)))
        for i in range(4): x = getattr(s, f"layer{i + 1}")(x)
        return s.fc(x.mean((2, 3)))

class Conv1D(nn.Module):                     # GPT-2's: the matrix is (inputs, outputs)
    def __init__(s, outputs, inputs):
        super().__init__()
        s.weight, s.bias = nn.Parameter(torch.zeros(inputs, outputs)), nn.Parameter(torch.zeros(outputs))
    def forward(s, x): return x @ s.weight + s.bias

class Named(nn.Module):                      # an empty module to hang others on
    def __init__(s, **parts):
        super().__init__()
        for name, part in parts.items(): setattr(s, name, part)

def dense(outputs, inputs): return nn.Linear(inputs, outputs)
class Transformer(nn.Module):
    def __init__(s, linear, causal, c=32, heads=4, layers=2):
        super().__init__()
        s.causal, s.heads = causal, heads
        s.h = nn.ModuleList([Named(ln_1=nn.LayerNorm(c), ln_2=nn.LayerNorm(c),
                                   attn=Named(c_attn=linear(3 * c, c), c_proj=linear(c, c)),
                                   mlp=Named(c_fc=linear(4 * c, c), c_proj=linear(c, 4 * c))) for _ in range(layers)])
        s.ln_f = nn.LayerNorm(c)
    def blocks(s, x):
        b, t, c = x.shape
        for h in s.h:
            q, k, v = (z.reshape(b, t, s.heads, c // s.heads).transpose(1, 2) for z in h.attn.c_attn(h.ln_1(x)).split(c, 2))
            a = q @ k.transpose(2, 3) / (c // s.heads) ** 0.5
            if s.causal: a = a.masked_fill(torch.triu(torch.ones(t, t, dtype=torch.bool), 1), -1e30)
            x = x + h.attn.c_proj((a.softmax(3) @ v).transpose(1, 2).reshape(b, t, c))
            x = x + h.mlp.c_proj(F.gelu(h.mlp.c_fc(h.ln_2(x))))
        return s.ln_f(x)

class GptBody(Transformer):
    def __init__(s):
        super().__init__(Conv1D, True)
        s.wte, s.wpe = nn.Embedding(50, 32), nn.Embedding(24, 32)
    def forward(s, x): return s.blocks(s.wte(x) + s.wpe(torch.arange(x.shape[1]))) @ s.wte.weight.T

class Gpt(nn.Module):
    def __init__(s):
        super().__init__()
        s.transformer = GptBody()
    def forward(s, x): return s.transformer(x)

class Vit(Transformer):
    def __init__(s):
        super().__init__(dense, False)
        s.patch, s.head = nn.Conv2d(3, 32, 4, 4), nn.Linear(32, 10)
        s.position = nn.Embedding(7, 32)
        s.register_parameter("class", nn.Parameter(torch.zeros(1, 1, 32)))
    def forward(s, x):
        x = s.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((s.get_parameter("class").expand(len(x), 1, 32), x), 1) + s.position.weight
        return s.head(s.blocks(x)[:, 0])

torch.manual_seed(1)
for name, kind in ("mlp", Mlp), ("lenet", LeNet), ("resnet18", ResNet18), ("vit", Vit), ("gpt", Gpt):
    net = kind()
    state = read(f"{folder}{name}.safetensors")
    try: net.load_state_dict(state, strict=True)
    except RuntimeError as e:
        print(f"FAIL {name}: load_state_dict:", " ".join(str(e).split()))
        continue
    net = net.double().eval()
    given, want = np.load(f"{folder}{name}.x.npy"), np.load(f"{folder}{name}.y.npy")
    x = torch.from_numpy(given)
    if name == "gpt": x = x.long()
    else: x = x.double().permute(0, 3, 1, 2) if x.shape[1] > 1 else x.double().reshape(3, -1)
    def logits():
        with torch.no_grad(): return net(x).reshape(want.shape).numpy()
    error = np.abs(logits() - want).max() / np.abs(want).max()
    if error < 1e-4: print(f"ok {name}: load_state_dict(strict=True) and the same logits")
    else: print(f"FAIL {name}: logits off by {error:g} of the largest")
    with torch.no_grad():                    # other weights, and back; each type's own rounding is torch's to do first
        for p in net.parameters(): p.add_(torch.randn_like(p) * p.abs().mean() * 0.3)
    kept = {k: v.clone() for k, v in net.state_dict().items()}
    for word in ("F32", "F64", "F16", "BF16") if name == "mlp" else ("F32",):
        small = {k: v.to(TYPES[word]) if v.is_floating_point() else v for k, v in kept.items()}
        net.load_state_dict({k: v.double() if v.is_floating_point() else v for k, v in small.items()})
        write(f"{folder}{name}.{word}.safetensors", small)
        np.save(f"{folder}{name}.{word}.x.npy", given)
        np.save(f"{folder}{name}.{word}.y.npy", logits())           # float64
    if name == "lenet":
        write(f"{folder}{name}.fortran.safetensors", small)
        np.save(f"{folder}{name}.fortran.x.npy", np.asfortranarray(given.astype(">f8")))
        np.save(f"{folder}{name}.fortran.y.npy", np.asfortranarray(logits().astype(np.float32)))
