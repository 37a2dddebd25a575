# SPDX-License-Identifier: MIT-0
# onnx_torch.py FOLDER: networks as PyTorch's exporter writes them, with inputs and PyTorch's outputs; prints the list that
# onnx_evaluate.c reads.
import io, math, sys, warnings
import torch
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")
folder = sys.argv[1]
torch.manual_seed(7)

class NewGELU(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))

class HalfFirst(nn.Module):                  # another order of the products
    def forward(self, x):
        return (x * 0.5) * (1.0 + torch.erf(x / math.sqrt(2.0)))

class Phi(nn.Module):                        # as it is defined
    def forward(self, x):
        return x * torch.distributions.Normal(0.0, 1.0).cdf(x)

class Lambda(nn.Module):                     # λ-GELU as somebody may have trained it
    def __init__(self, channels=None):
        super().__init__()
        self.channels = channels
        self.l = nn.Parameter(1 + 3 * torch.rand(channels or 1))
    def forward(self, x):
        l = self.l if not self.channels or x.dim() == 2 else self.l[:, None, None]
        return x * 0.5 * (1 + torch.erf(l * x / math.sqrt(2.0)))

class Block(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b)
        self.conv2, self.bn2 = nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b)
        self.act = nn.GELU()
        self.downsample = nn.Identity()
        if stride > 1: self.downsample = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b))
    def forward(self, x):
        return self.act(self.bn2(self.conv2(self.act(self.bn1(self.conv1(x))))) + self.downsample(x))

def resnet(mean):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.GELU())
            self.layer = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2))
            self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(16, 10)
        def forward(self, x):
            x = self.layer(self.stem(x))
            if mean == 0: return self.fc(torch.flatten(self.pool(x), 1))
            return self.fc(x.mean([2, 3]) if mean == 1 else x.mean((-1, -2), keepdim=True).squeeze(-1).squeeze(-1))
    return Net()

class Attention(nn.Module):
    def __init__(self, width, heads, kind):
        super().__init__()
        self.h, self.kind = heads, kind
        if kind == "split": self.q, self.k, self.v = (nn.Linear(width, width, bias=i > 0) for i in range(3))
        elif kind == "torch": self.mha = nn.MultiheadAttention(width, heads, batch_first=True)
        elif kind == "interleaved": self.qkv = nn.Linear(width, 3 * width)
        else: self.qkv = nn.Linear(width, 3 * width, bias=kind != "chunk")
        self.proj = nn.Linear(width, width)
    def forward(self, x):
        B, N, C = x.shape
        h = self.h
        if self.kind == "torch": return self.mha(x, x, x, need_weights=False)[0]
        if self.kind == "timm": q, k, v = self.qkv(x).reshape(B, N, 3, h, C // h).permute(2, 0, 3, 1, 4).unbind(0)
        elif self.kind == "interleaved":
            q, k, v = self.qkv(x).reshape(B, N, h, 3 * (C // h)).transpose(1, 2).chunk(3, -1)
        elif self.kind == "chunk": q, k, v = (t.view(B, N, h, C // h).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        else: q, k, v = (f(x).view(B, -1, h, C // h).permute(0, 2, 1, 3) for f in (self.q, self.k, self.v))
        if self.kind == "split": a = ((q / math.sqrt(C // h)) @ k.transpose(-1, -2)).softmax(-1)
        else: a = (q @ k.transpose(-2, -1) * (C // h) ** -0.5).softmax(-1)
        return self.proj((a @ v).transpose(1, 2).reshape(B, N, C))

class Encoder(nn.Module):
    def __init__(self, width, heads, kind, eps=1e-5):
        super().__init__()
        self.ln1, self.ln2, self.attn = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps), Attention(width, heads, kind)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))

class ViT(nn.Module):
    def __init__(self, kind="timm", head="class", patch="conv", eps=1e-5):
        super().__init__()
        self.head_kind, self.patch_kind = head, patch
        self.patch = nn.Conv2d(3, 24, 4, 4) if patch == "conv" else nn.Linear(48, 24)
        tokens = 12 + (head != "mean")
        self.cls = nn.Parameter(torch.randn(1, 1, 24))
        self.pos = nn.Parameter(torch.randn(1, tokens, 24) * 0.3)
        self.blocks = nn.Sequential(*[Encoder(24, 3, kind, eps) for _ in range(2)])
        self.norm, self.fc = nn.LayerNorm(24, eps), nn.Linear(24, 10)
    def forward(self, x):
        if self.patch_kind == "conv": x = self.patch(x).flatten(2).transpose(1, 2)
        else:
            b, c, h, w = x.shape
            x = x.reshape(b, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 1, 3, 5)
            x = self.patch(x.reshape(b, (h // 4) * (w // 4), c * 16))
        if self.head_kind != "mean":
            many = x.shape[0]
            x = torch.cat((self.cls.repeat(many, 1, 1) if self.head_kind == "repeat" else self.cls.expand(many, -1, -1), x), dim=1)
        x = self.norm(self.blocks(x + self.pos))
        return self.fc(x.mean(1) if self.head_kind == "mean" else x[:, 0])

class GPT(nn.Module):                        # as small GPTs are written: a buffer for the mask, tied head
    def __init__(self, context=8, words=30, width=24, heads=3, mask="fill"):
        super().__init__()
        self.h, self.mask = heads, mask
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(context, width)
        self.ln1, self.ln2, self.lnf = (nn.LayerNorm(width) for _ in range(3))
        self.attn, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), NewGELU(), nn.Linear(4 * width, width))
        self.register_buffer("bias", torch.tril(torch.ones(2 * context, 2 * context)).view(1, 1, 2 * context, 2 * context))
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.wte.weight
    def forward(self, i):
        B, T = i.shape
        x = self.wte(i) + self.wpe(torch.arange(0, T, device=i.device))
        y = self.ln1(x)
        q, k, v = (t.view(B, T, self.h, -1).transpose(1, 2) for t in self.attn(y).split(x.shape[2], dim=2))
        a = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        if self.mask == "fill": a = a.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        elif self.mask == "add": a = a + (1 - self.bias[:, :, :T, :T]) * -10000.0
        else: a = torch.where(self.bias[:, :, :T, :T].bool(), a, torch.tensor(-3e38))
        x = x + self.proj((F.softmax(a, dim=-1) @ v).transpose(1, 2).contiguous().view(B, T, -1))
        return self.head(self.lnf(x + self.mlp(self.ln2(x))))

class Bert(nn.Module):                       # a text classifier as Hugging Face's BERT is written, without a padding mask
    def __init__(self, words=30, context=8, width=24, pooler=False):
        super().__init__()
        self.word, self.position, self.kind = nn.Embedding(words, width), nn.Embedding(2 * context, width), nn.Embedding(2, width)
        self.register_buffer("position_ids", torch.arange(2 * context).expand((1, -1)))
        self.norm, self.layer, self.head = nn.LayerNorm(width), Encoder(width, 3, "split"), nn.Linear(width, 4)
        self.pooler = nn.Linear(width, width) if pooler else None
    def forward(self, ids):
        positions = self.position_ids[:, : ids.size(1)]
        kinds = torch.zeros_like(ids)
        x = self.word(ids) + self.kind(kinds)
        x = self.layer(self.norm(x + self.position(positions)))[:, 0]
        return self.head(x if self.pooler is None else torch.tanh(self.pooler(x)))

def disturb(net):
    for name, p in net.named_buffers():
        if name.endswith("running_mean"): p.copy_(torch.randn_like(p) / 4)
        if name.endswith("running_var"): p.copy_(0.5 + torch.rand_like(p))
    for name, p in net.named_parameters():
        if p.dim() == 1 and not name.endswith(".l"): p.data += torch.randn_like(p) / 4
    return net

def case(name, net, shape, opset=17, batch=3, dynamic=True, tokens=0, keep=False, fold=True):
    net = disturb(net).eval()
    x = torch.randint(0, tokens, (batch, *shape)) if tokens else torch.randn(batch, *shape)
    with torch.no_grad(): y = net(x)
    torch.onnx.export(net, x, f"{folder}/{name}.onnx", opset_version=opset, input_names=["input"], output_names=["output"],
                      do_constant_folding=fold,
                      training=torch.onnx.TrainingMode.PRESERVE if keep else torch.onnx.TrainingMode.EVAL,
                      dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}} if dynamic else None)
    x.numpy().tofile(f"{folder}/{name}.in")
    y.numpy().astype("<f4").tofile(f"{folder}/{name}.out")
    print(name, "int64" if tokens else "float32", ",".join(map(str, x.shape)), ",".join(map(str, y.shape)), sep="\t")

mlp = lambda act: nn.Sequential(nn.Flatten(), nn.Linear(12, 20), act(), nn.Dropout(0.1), nn.Linear(20, 20), act(),
                                nn.Linear(20, 5))
for opset in range(11, 18): case(f"mlp_gelu_{opset}", mlp(nn.GELU), (12,), opset)
case("mlp_fixed", mlp(nn.GELU), (12,), 13, 1, False)
case("mlp_fixed_3", mlp(nn.GELU), (3, 4), 13, 3, False)
case("mlp_tanh", mlp(lambda: nn.GELU(approximate="tanh")), (12,))
case("mlp_new_gelu", mlp(NewGELU), (12,), 12)
case("mlp_half_first", mlp(HalfFirst), (12,), 15)
case("mlp_phi", mlp(Phi), (12,), 15)
case("mlp_phi_unfolded", mlp(Phi), (12,), 12, fold=False)
case("mlp_lambda", mlp(Lambda), (12,), 15)
case("mlp_lambda_channels", mlp(lambda: Lambda(20)), (12,), 15)
case("mlp_relu", mlp(nn.ReLU), (12,), 15)
norms = nn.Sequential(nn.Linear(12, 20), nn.BatchNorm1d(20), nn.GELU(), nn.LayerNorm(20), nn.Linear(20, 4))
case("mlp_norm", norms, (12,), 16, keep=True)
for opset in 12, 16:
    case(f"mlp_bare_norm_{opset}", nn.Sequential(nn.Linear(12, 20), nn.LayerNorm(20, elementwise_affine=False), nn.GELU(),
                                                 nn.Linear(20, 4)), (12,), opset)
class RMSNorm(nn.Module):                    # as Llama's is written; form: three more ways to divide by the root
    def __init__(self, width, eps=1e-3, form=0, gain=True):
        super().__init__()
        self.form, self.eps = form, eps
        self.weight = nn.Parameter(torch.ones(width)) if gain else None
    def forward(self, x):
        square = x.pow(2) if self.form < 2 else x * x
        mean = square.mean(-1, keepdim=True) + self.eps
        y = (x * torch.rsqrt(mean), x / torch.sqrt(mean), torch.rsqrt(mean) * x, x * mean ** -0.5)[self.form]
        return y if self.weight is None else self.weight * y if self.form % 2 else y * self.weight
for form in range(4):
    case(f"mlp_rms_norm_{form}", nn.Sequential(RMSNorm(12, 0.5, form), nn.Linear(12, 20), nn.GELU(), RMSNorm(20, form=form),
                                               nn.Linear(20, 4)), (12,), 17 if form < 2 else 12)
case("mlp_bare_rms_norm", nn.Sequential(nn.Linear(12, 20), RMSNorm(20, gain=False), nn.GELU(), RMSNorm(20, gain=False)), (12,), 17)
case("tokens_rms_norm", nn.Sequential(RMSNorm(12), nn.Linear(12, 20), nn.GELU(), RMSNorm(20)), (5, 12), 17)
class GLU(nn.Module):                        # gated units: GEGLU, SwiGLU, ReGLU
    def __init__(self, gate, bias=True):
        super().__init__()
        self.gate, self.fc, self.up = gate, nn.Linear(12, 20, bias=bias), nn.Linear(12, 20, bias=bias)
        self.out = nn.Linear(20, 12, bias=bias)
    def forward(self, x): return x + self.out(self.gate(self.fc(x)) * self.up(x))
for name, gate in ("gelu", nn.GELU()), ("tanh", NewGELU()), ("silu", nn.SiLU()), ("relu", nn.ReLU()):
    case(f"glu_{name}", nn.Sequential(GLU(gate), nn.Linear(12, 3)), (12,), 17)
    case(f"glu_{name}_tokens", nn.Sequential(GLU(gate, False), RMSNorm(12)), (5, 12), 13)
class Squared(nn.Module):
    def forward(self, x): return F.relu(x) ** 2
case("squared_relu", nn.Sequential(nn.Linear(12, 20), Squared(), nn.Linear(20, 3)), (12,), 17)
def rotate_half(x):                          # as Llama's and GPT-NeoX's are written
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)
def rotate_every_two(x):                     # as GPT-J's is written
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
def repeat_kv(x, n):
    B, heads, T, width = x.shape
    return x if n == 1 else x[:, :, None].expand(B, heads, n, T, width).reshape(B, heads * n, T, width)
class Llama(nn.Module):                      # kind: separate or fused matrices, and how pairs are chosen
    def __init__(self, words=30, context=8, heads=4, kv_heads=2, width=6, kind="separate", base=10000.0, gate=NewGELU()):
        super().__init__()
        self.h, self.kv, self.w, self.kind, self.gate = heads, kv_heads, width, kind, gate
        size, rows = heads * width, (heads + 2 * kv_heads) * width
        self.word = nn.Embedding(words, size)
        if kind == "separate":
            self.q, self.k, self.v = (nn.Linear(size, n * width, bias=False) for n in (heads, kv_heads, kv_heads))
        else: self.qkv = nn.Linear(size, rows)
        self.o, self.head = nn.Linear(size, size, bias=False), nn.Linear(size, words, bias=False)
        self.ln1, self.ln2, self.lnf = RMSNorm(size), RMSNorm(size), RMSNorm(size)
        self.fc, self.up, self.down = (nn.Linear(*s, bias=False) for s in ((size, 20), (size, 20), (20, size)))
        angle = torch.outer(torch.arange(2 * context).float(), base ** (-torch.arange(0, width, 2).float() / width))
        angle = torch.repeat_interleave(angle, 2, -1) if kind == "every_two" else torch.cat((angle, angle), -1)
        self.register_buffer("cos", angle.cos()[None, None])
        self.register_buffer("sin", angle.sin()[None, None])
        self.register_buffer("mask", torch.full((2 * context, 2 * context), float("-inf")).triu(1))
    def turn(self, x):
        T = x.shape[2]
        quarter = rotate_every_two if self.kind == "every_two" else rotate_half
        return x * self.cos[:, :, :T] + quarter(x) * self.sin[:, :, :T]
    def forward(self, i):
        B, T = i.shape
        x = self.word(i)
        y = self.ln1(x)
        if self.kind == "separate": q, k, v = self.q(y), self.k(y), self.v(y)
        else: q, k, v = self.qkv(y).split((self.h * self.w, self.kv * self.w, self.kv * self.w), dim=2)
        q, k, v = (t.view(B, T, -1, self.w).transpose(1, 2) for t in (q, k, v))
        q, k = self.turn(q), self.turn(k)
        k, v = repeat_kv(k, self.h // self.kv), repeat_kv(v, self.h // self.kv)
        a = q @ k.transpose(2, 3) / math.sqrt(self.w) + self.mask[:T, :T]
        x = x + self.o((F.softmax(a, dim=-1) @ v).transpose(1, 2).reshape(B, T, -1))
        y = self.ln2(x)
        return self.head(self.lnf(x + self.down(self.gate(self.fc(y)) * self.up(y))))
for kind in "separate", "fused", "every_two":
    case(f"llama_{kind}", Llama(kind=kind), (8,), 17, tokens=30)
    case(f"llama_{kind}_fixed", Llama(kind=kind, kv_heads=1), (8,), 13, 1, False, tokens=30)
case("llama_silu", Llama(gate=nn.SiLU()), (8,), 17, tokens=30)
case("llama_plain", Llama(kv_heads=4, gate=nn.GELU()), (8,), 14, tokens=30)
case("llama_base", Llama(base=500000.0, heads=2, kv_heads=1, width=10, gate=nn.ReLU()), (8,), 17, tokens=30)
lenet = lambda: nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.GELU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.GELU(),
                              nn.AvgPool2d(2), nn.Flatten(), nn.Linear(400, 32), nn.GELU(), nn.Linear(32, 10))
case("lenet", lenet(), (1, 28, 28))
case("lenet_fixed", lenet(), (1, 28, 28), 11, 1, False)
groups = nn.Sequential(nn.Conv2d(3, 6, 3, groups=3), Lambda(6), nn.Conv2d(6, 6, 3, 2, 1, groups=6, bias=False), nn.GELU(),
                       nn.AvgPool2d(3, 2, 1), nn.Flatten(1), nn.Linear(24, 3))
case("conv_lambda", groups, (3, 9, 9), 14)
class View(nn.Module):
    def __init__(self): super().__init__(); self.f, self.c, self.l = nn.Linear(1, 1), nn.Conv2d(1, 4, 3), nn.Linear(16, 3)
    def forward(self, x):
        x = F.gelu(F.max_pool2d(self.c(x.view(x.shape[0], 1, 6, 6)), 2))
        return self.l(x.view(x.size(0), -1))
case("view", View(), (36,))
class Last(nn.Module):                       # a picture that comes channels last
    def __init__(self): super().__init__(); self.c, self.l = nn.Conv2d(3, 4, 3), nn.Linear(4, 3)
    def forward(self, x): return self.l(F.gelu(self.c(x.permute(0, 3, 1, 2))).mean((2, 3)))
case("channels_last", Last(), (7, 6, 3))
for mean in range(3):
    case(f"resnet_folded_{mean}", resnet(mean), (3, 8, 8), 17 - 2 * mean)
    case(f"resnet_kept_{mean}", resnet(mean), (3, 8, 8), 17 - 2 * mean, keep=True)
case("resnet_fixed", resnet(0), (3, 8, 8), 13, 1, False)
class Standard(nn.Module):                   # pixels made mean 0 and deviation 1 inside the network
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.49, 0.48, 0.45])[:, None, None])
        self.register_buffer("std", torch.tensor([0.25, 0.24, 0.26])[:, None, None])
    def forward(self, x): return (x - self.mean) / self.std
case("standard", nn.Sequential(Standard(), resnet(0)), (3, 8, 8))
case("standard_unfolded", nn.Sequential(Standard(), resnet(0)), (3, 8, 8), 13, fold=False)
pads = nn.Sequential(nn.ZeroPad2d(1), nn.Conv2d(3, 4, 3), nn.GELU(), nn.ZeroPad2d((2, 2, 2, 2)), nn.Conv2d(4, 5, 5, 2), nn.GELU(),
                     nn.Flatten(), nn.Linear(80, 3))
for opset in 11, 14, 17: case(f"zero_pad_{opset}", pads, (3, 8, 8), opset)
case("zero_pad_unfolded", pads, (3, 8, 8), 13, fold=False)
case("windows", nn.Sequential(nn.Conv2d(3, 8, (3, 1), 1, (1, 0)), nn.GELU(), nn.Conv2d(8, 8, (2, 3), (1, 2), (1, 2), (1, 2), 4),
                              nn.GELU(), nn.MaxPool2d((2, 1)), nn.AvgPool2d((1, 2), padding=(0, 1)), nn.ZeroPad2d((2, 2, 0, 0)),
                              nn.Conv2d(8, 6, (1, 4), bias=False), nn.BatchNorm2d(6), nn.Flatten(), nn.Linear(150, 5)), (3, 9, 11))
case("atrous", nn.Sequential(nn.Conv2d(3, 6, 3, padding=2, dilation=2), nn.GELU(), nn.Conv2d(6, 6, 3, 2, 3, 3, 6), nn.GELU(),
                             nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5)), (3, 9, 11))
def sequence(head):
    body = [nn.Conv1d(3, 8, 5, padding=2), nn.BatchNorm1d(8), nn.GELU(), nn.MaxPool1d(2), nn.Conv1d(8, 8, 3, 2, 2, 2, groups=8, bias=False),
            nn.GELU(), nn.Conv1d(8, 6, 1), nn.AvgPool1d(2)]
    return nn.Sequential(*body, *({"flat": [nn.Flatten(), nn.Linear(18, 5)], "none": [],
                                   "pool": [nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(6, 5)]}[head]))
for head in "flat", "pool", "none":
    case(f"sequence_{head}", sequence(head), (3, 24))
    case(f"sequence_{head}_fixed", sequence(head), (3, 24), 11, 1, False)
case("sequence_norm_first", nn.Sequential(nn.BatchNorm1d(3), nn.Conv1d(3, 4, 3), nn.GELU(), nn.Flatten(), nn.Linear(40, 5)), (3, 12))
class TokensConv(nn.Module):                 # tokens (N, T, C), as texts have them
    def __init__(self):
        super().__init__()
        self.c, self.h = nn.Conv1d(6, 8, 3, padding=1), nn.Linear(8, 5)
    def forward(self, x): return self.h(F.gelu(self.c(x.transpose(1, 2))).mean(2))
case("tokens_conv", TokensConv(), (7, 6))

for groups in 1, 4, 8:
    case(f"group_norm_{groups}", nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(groups, 8), nn.GELU(), nn.Conv2d(8, 8, 3, 2),
                                               nn.GroupNorm(groups, 8, 1e-3), nn.GELU(), nn.Flatten(), nn.Linear(72, 5)), (3, 10, 10))
    case(f"group_norm_{groups}_fixed", nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(groups, 8), nn.GELU(), nn.Flatten(),
                                                     nn.Linear(512, 5)), (3, 10, 10), 11, 1, False)
for affine in False, True:
    case(f"instance_norm_{affine}", nn.Sequential(nn.Conv2d(3, 8, 3), nn.InstanceNorm2d(8, affine=affine), nn.GELU(),
                                                  nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)), (3, 10, 10))
case("group_norm_row", nn.Sequential(nn.Conv1d(3, 8, 3), nn.GroupNorm(2, 8), nn.GELU(), nn.Flatten(), nn.Linear(80, 5)), (3, 12))
class Dense(nn.Module):                      # as torchvision's DenseNet joins its features
    def __init__(self, layers):
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, 1, 1)
        self.layers = nn.ModuleList(nn.Sequential(nn.BatchNorm2d(6 + 4 * k), nn.GELU(), nn.Conv2d(6 + 4 * k, 4, 3, 1, 1, bias=False))
                                    for k in range(layers))
        self.head = nn.Sequential(nn.BatchNorm2d(6 + 4 * layers), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                  nn.Linear(6 + 4 * layers, 5))
    def forward(self, x):
        features = [self.stem(x)]
        for layer in self.layers: features.append(layer(torch.cat(features, 1)))
        return self.head(torch.cat(features, 1))
case("dense", Dense(4), (3, 8, 8))
case("dense_deep", Dense(20), (3, 4, 4), 11, 1, False)
class Join(nn.Module):                       # tokens beside their neighbours' features, vectors beside inputs
    def __init__(self): super().__init__(); self.a, self.b = nn.Linear(6, 8), nn.Linear(14, 5)
    def forward(self, x): return self.b(torch.cat((F.gelu(self.a(x)), x), -1))
case("concat_tokens", Join(), (7, 6))
case("concat_vectors", Join(), (6,))

class Excite(nn.Module):                     # squeeze-and-excitation, as torchvision, timm and others write it
    def __init__(self, c, form):
        super().__init__()
        layer = (lambda a, b: nn.Conv2d(a, b, 1)) if form in ("conv", "mean") else nn.Linear
        self.form, self.pool = form, nn.AdaptiveAvgPool2d(1)
        self.f = nn.Sequential(layer(c, 3), nn.GELU(), layer(3, c), nn.Sigmoid())
    def forward(self, x):
        if self.form == "conv": return self.f(self.pool(x)) * x
        if self.form == "mean": return x * self.f(x.mean((2, 3), keepdim=True))
        y = self.f(self.pool(x).view(x.shape[0], -1)).view(x.shape[0], -1, 1, 1)
        return x * (y.expand_as(x) if self.form == "expand" else y)
def excited(form):
    return nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1), nn.GELU(), Excite(8, form), nn.Conv2d(8, 6, 3, 2, 1), nn.GELU(), Excite(6, form),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5))
for form in "conv", "mean", "view", "expand":
    case(f"excite_{form}", excited(form), (3, 8, 8))
    case(f"excite_{form}_fixed", excited(form), (3, 8, 8), 11, 1, False)
case("sigmoid_last", nn.Sequential(nn.Linear(12, 20), nn.GELU(), nn.Linear(20, 3), nn.Sigmoid()), (12,))
case("sigmoid_image", nn.Sequential(nn.Conv2d(3, 6, 3), nn.Sigmoid(), nn.Conv2d(6, 2, 1), nn.Sigmoid()), (3, 8, 8))

class ConvNeXt(nn.Module):
    def __init__(self, scale=False):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(8, 1, 1)) if scale else 1
        self.stem, self.dw, self.norm = nn.Conv2d(3, 8, 2, 2), nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.LayerNorm(8)
        self.a, self.b, self.head = nn.Linear(8, 16), nn.Linear(16, 8), nn.Linear(8, 5)
    def forward(self, x):
        x = self.stem(x)
        x = x + self.scale * self.b(F.gelu(self.a(self.norm(self.dw(x).permute(0, 2, 3, 1))))).permute(0, 3, 1, 2)
        return self.head(x.mean([-2, -1]))
case("convnext", ConvNeXt(), (3, 8, 8))
case("convnext_scale", ConvNeXt(True), (3, 8, 8))
case("convnext_scale_13", ConvNeXt(True), (3, 8, 8), 13)
for kind in "timm", "torch", "split", "chunk", "interleaved":
    for opset in 17, 14, 11:
        case(f"vit_{kind}_{opset}", ViT(kind), (3, 12, 16), opset)
    case(f"vit_{kind}_fixed", ViT(kind), (3, 12, 16), 13, 1, False)
    case(f"vit_{kind}_unfolded", ViT(kind), (3, 12, 16), 13, fold=False)
for opset in 17, 12: case(f"vit_repeat_{opset}", ViT(head="repeat"), (3, 12, 16), opset)
case("vit_mean", ViT(head="mean"), (3, 12, 16))
case("vit_rearranged", ViT(patch="linear"), (3, 12, 16))
case("vit_eps", ViT(eps=1e-3), (3, 12, 16))
case("vit_eps_formula", ViT(eps=1e-3), (3, 12, 16), 12)
for mask in "fill", "add", "where":
    case(f"gpt_{mask}", GPT(mask=mask), (8,), 17, tokens=30)
    case(f"gpt_{mask}_13", GPT(mask=mask), (8,), 13, tokens=30)
    case(f"gpt_{mask}_fixed", GPT(mask=mask), (8,), 14, 1, False, tokens=30)
for opset in 11, 13, 17: case(f"bert_{opset}", Bert(), (8,), opset, tokens=30)
case("bert_unfolded", Bert(), (8,), 14, tokens=30, fold=False)
case("bert_fixed", Bert(), (8,), 13, 1, False, tokens=30)
