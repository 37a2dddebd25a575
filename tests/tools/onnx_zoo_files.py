# SPDX-License-Identifier: MIT-0
# onnx_zoo_files.py FOLDER [NAME...]: networks that no graph of lgelu.h represents, as people have them: several inputs and outputs,
# masks, dense outputs, recurrent layers, open sizes, resized and transposed convolutions, parametrized weights, after the families of
# torchvision, timm, Hugging Face, Ultralytics and Paddle. Each is exported twice, with and without constant folding, beside an array
# for each input. A line for each file: NAME, then INPUT=ARRAY for each input.
import math
import sys

sys.dont_write_bytecode = True
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SAMPLES = 24
folder, only = sys.argv[1], sys.argv[2:]


class Swin(nn.Module):
    """timm.models.swin_transformer: windows, one of two blocks shifted, relative positions"""

    def __init__(self, width=16, window=4, heads=2):
        super().__init__()
        self.window, self.heads = window, heads
        self.embed = nn.Conv2d(3, width, 2, 2)
        self.blocks = nn.ModuleList(nn.ModuleDict({
            "norm1": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width), "proj": nn.Linear(width, width),
            "norm2": nn.LayerNorm(width), "fc1": nn.Linear(width, 4 * width), "fc2": nn.Linear(4 * width, width)}) for _ in range(2))
        self.bias = nn.Parameter(0.02 * torch.randn(2, heads, window ** 2, window ** 2))
        self.head = nn.Linear(width, 10)

    def attend(self, block, k, x):
        b, h, w, c = x.shape
        n = self.window
        if k:
            x = torch.roll(x, (-n // 2, -n // 2), (1, 2))
        x = x.view(b, h // n, n, w // n, n, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, n * n, c)
        q, key, v = block["qkv"](x).reshape(-1, n * n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        a = ((q * (c // self.heads) ** -0.5) @ key.transpose(-2, -1) + self.bias[k].unsqueeze(0)).softmax(-1)
        x = block["proj"]((a @ v).transpose(1, 2).reshape(-1, n * n, c))
        x = x.view(b, h // n, w // n, n, n, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        return torch.roll(x, (n // 2, n // 2), (1, 2)) if k else x

    def forward(self, x):
        x = self.embed(x).permute(0, 2, 3, 1)
        for k, block in enumerate(self.blocks):
            x = x + self.attend(block, k, block["norm1"](x))
            x = x + block["fc2"](F.gelu(block["fc1"](block["norm2"](x))))
        return self.head(x.mean((1, 2)))


class Recurrent(nn.Module):
    """a tagger: linear layers with SiLU before and behind a recurrent layer"""

    def __init__(self, kind, both=False):
        super().__init__()
        self.first = nn.Linear(6, 12)
        self.rnn = kind(12, 10, batch_first=True, bidirectional=both)
        self.last = nn.Sequential(nn.Linear(20 if both else 10, 16), nn.GELU(), nn.Linear(16, 4))

    def forward(self, x):
        return self.last(self.rnn(F.silu(self.first(x)))[0])


class UNet(nn.Module):
    def __init__(self, up):
        super().__init__()
        block = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.SiLU())
        self.down1, self.down2, self.middle = block(3, 8), block(8, 16), block(16, 16)
        self.up = up
        self.raise1 = nn.ConvTranspose2d(16, 16, 2, 2) if up == "transpose" else None
        self.out1, self.out2 = block(32, 8), nn.Conv2d(16, 3, 1)

    def larger(self, x):
        if self.up == "transpose":
            return self.raise1(x)
        return F.interpolate(x, scale_factor=2, mode=self.up, align_corners=False if self.up == "bilinear" else None)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.middle(F.max_pool2d(b, 2))
        d = self.out1(torch.cat([self.larger(c), b], 1))
        return self.out2(torch.cat([F.interpolate(d, scale_factor=2.0, mode="nearest"), a], 1))


def attention(q, k, v, heads, mask=None):
    shape = lambda t: t.view(t.shape[0], t.shape[1], heads, -1).transpose(1, 2)
    q, k, v = shape(q), shape(k), shape(v)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + mask
    return (scores.softmax(-1) @ v).transpose(1, 2).reshape(q.shape[0], q.shape[2], -1)


class Bert(nn.Module):
    """transformers' BertModel: token types, a mask as an input, a pooler; two outputs"""

    def __init__(self, width=16, vocabulary=30):
        super().__init__()
        self.words, self.types = nn.Embedding(vocabulary, width), nn.Embedding(2, width)
        self.places = nn.Embedding(32, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "q": nn.Linear(width, width), "k": nn.Linear(width, width), "v": nn.Linear(width, width), "o": nn.Linear(width, width),
            "norm1": nn.LayerNorm(width), "up": nn.Linear(width, 32), "down": nn.Linear(32, width), "norm2": nn.LayerNorm(width)})
            for _ in range(2))
        self.pooler = nn.Linear(width, width)

    def forward(self, input_ids, attention_mask, token_type_ids):
        mask = (1.0 - attention_mask[:, None, None, :].to(torch.float32)) * torch.finfo(torch.float32).min
        at = torch.arange(input_ids.shape[1]).expand((1, -1))
        x = self.norm(self.words(input_ids) + self.types(token_type_ids) + self.places(at))
        for b in self.layers:
            x = b["norm1"](x + b["o"](attention(b["q"](x), b["k"](x), b["v"](x), 2, mask)))
            x = b["norm2"](x + b["down"](F.gelu(b["up"](x))))
        return x, torch.tanh(self.pooler(x[:, 0]))


class Clip(nn.Module):
    """two towers, of images and of texts, with QuickGELU"""

    def __init__(self, width=16):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 4, 4, bias=False)
        self.words = nn.Embedding(30, width)
        self.towers = nn.ModuleList(nn.ModuleDict({
            "norm1": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width), "o": nn.Linear(width, width), "norm2": nn.LayerNorm(width),
            "fc1": nn.Linear(width, 32), "fc2": nn.Linear(32, width), "out": nn.Linear(width, 8, bias=False)}) for _ in range(2))
        self.scale = nn.Parameter(torch.tensor(2.0))

    def tower(self, b, x):
        x = x + b["o"](attention(*b["qkv"](b["norm1"](x)).chunk(3, -1), 2))
        h = b["fc1"](b["norm2"](x))
        x = b["out"]((x + b["fc2"](h * torch.sigmoid(1.702 * h))).mean(1))
        return x / x.norm(dim=-1, keepdim=True)

    def forward(self, pixel_values, input_ids):
        image = self.tower(self.towers[0], self.patch(pixel_values).flatten(2).transpose(1, 2))
        text = self.tower(self.towers[1], self.words(input_ids))
        return (image * text).sum(-1, keepdim=True) * self.scale.exp(), image, text


class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(2, 12, 1)
        self.filters = nn.ModuleList(nn.Conv1d(12, 24, 2, dilation=2 ** k) for k in range(3))
        self.skips = nn.ModuleList(nn.Conv1d(12, 24, 1) for _ in range(3))
        self.last = nn.Sequential(nn.GELU(), nn.Conv1d(12, 16, 1), nn.GELU(), nn.Conv1d(16, 5, 1))

    def forward(self, x):
        x, total = self.first(x), 0
        for k, (f, s) in enumerate(zip(self.filters, self.skips)):
            a, b = f(F.pad(x, (2 ** k, 0))).chunk(2, 1)
            skip, more = s(torch.tanh(a) * torch.sigmoid(b)).chunk(2, 1)
            x, total = x + more, total + skip
        return self.last(total)


class Detector(nn.Module):
    """YOLO-like: sliced input, three scales, decoded and concatenated"""

    def __init__(self):
        super().__init__()
        block = lambda a, b, s=1: nn.Sequential(nn.Conv2d(a, b, 3, s, 1, bias=False), nn.BatchNorm2d(b), nn.SiLU())
        self.stem, self.a, self.b, self.c = block(12, 8), block(8, 8, 2), block(8, 16, 2), block(16, 16)
        self.pools = nn.ModuleList(nn.MaxPool2d(k, 1, k // 2) for k in (3, 5))
        self.join = nn.Conv2d(48, 16, 1)
        self.heads = nn.ModuleList(nn.Conv2d(c, 7, 1) for c in (24, 16))

    def forward(self, images):
        x = torch.cat([images[..., ::2, ::2], images[..., 1::2, ::2], images[..., ::2, 1::2], images[..., 1::2, 1::2]], 1)
        a = self.a(self.stem(x))
        c = self.c(self.b(a))
        c = F.silu(self.join(torch.cat([c] + [p(c) for p in self.pools], 1)))
        up = torch.cat([F.interpolate(c, scale_factor=2.0), a], 1)
        out = []
        for head, y, stride in zip(self.heads, (up, c), (4, 8)):
            y = head(y).flatten(2).transpose(1, 2)
            out.append(torch.cat([y[..., :2] * stride, y[..., 2:4].exp() * stride, y[..., 4:].sigmoid()], -1))
        return torch.cat(out, 1)


class PaddleMobile(nn.Module):
    """MobileNetV3 as Paddle writes it: hard swish as clip(x + 3, 0, 6)·x/6 behind normalisations that are not folded; open size"""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False),
                                    nn.Conv2d(8, 16, 1, bias=False)])
        self.norms = nn.ModuleList(nn.BatchNorm2d(c) for c in (8, 8, 16))
        self.squeeze, self.excite = nn.Conv2d(16, 4, 1), nn.Conv2d(4, 16, 1)
        self.head = nn.Linear(16, 5)

    def forward(self, image):
        x = image
        for conv, norm in zip(self.convs, self.norms):
            x = norm(conv(x))
            x = x * torch.clamp(x + 3.0, 0.0, 6.0) / 6.0
        s = torch.clamp(self.excite(F.relu(self.squeeze(x.mean((2, 3), keepdim=True)))) * 0.2 + 0.5, 0, 1)
        return self.head((x * s).mean((2, 3))).softmax(-1)


class Llama(nn.Module):
    """transformers' LlamaModel: RMS norms, rotary positions by halves, SwiGLU, a causal mask"""

    def __init__(self, width=16, heads=2, layers=2):
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(30, width)
        lin = lambda a, b: nn.Linear(a, b, bias=False)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "q": lin(width, width), "k": lin(width, width), "v": lin(width, width), "o": lin(width, width), "gate": lin(width, 40),
            "up": lin(width, 40), "down": lin(40, width)}) for _ in range(layers))
        self.gains = nn.Parameter(torch.ones(2 * layers + 1, width))
        self.head = lin(width, 30)
        half = width // heads // 2
        self.register_buffer("frequency", 1.0 / 10000 ** (torch.arange(half) / half))

    def norm(self, x, k):
        return self.gains[k] * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    def turn(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    def forward(self, input_ids):
        b, n = input_ids.shape
        angle = torch.arange(n)[:, None] * self.frequency[None]
        cos, sin = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
        mask = torch.triu(torch.full((n, n), float("-inf")), 1)
        x = self.embed(input_ids)
        for k, l in enumerate(self.layers):
            y = self.norm(x, 2 * k)
            q, key, v = (l[name](y).view(b, n, self.heads, -1).transpose(1, 2) for name in "qkv")
            q, key = self.turn(q, cos, sin), self.turn(key, cos, sin)
            a = (q @ key.transpose(-2, -1) / math.sqrt(q.shape[-1]) + mask).softmax(-1)
            x = x + l["o"]((a @ v).transpose(1, 2).reshape(b, n, -1))
            y = self.norm(x, 2 * k + 1)
            x = x + l["down"](F.silu(l["gate"](y)) * l["up"](y))
        return self.head(self.norm(x, -1))


class T5(nn.Module):
    """a T5 encoder block of version 1.1: relative positions by a table, gated GELU in its tanh form, no biases"""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        lin = lambda a, b: nn.Linear(a, b, bias=False)
        self.embed, self.bias = nn.Embedding(30, width), nn.Embedding(8, heads)
        self.q, self.k, self.v, self.o = (lin(width, width) for _ in range(4))
        self.wi0, self.wi1, self.wo = lin(width, 40), lin(width, 40), lin(40, width)
        self.gains = nn.Parameter(torch.ones(2, width))

    def forward(self, input_ids):
        n = input_ids.shape[1]
        away = torch.arange(n)[None, :] - torch.arange(n)[:, None]
        bias = self.bias(torch.clamp(away + 4, 0, 7)).permute(2, 0, 1).unsqueeze(0)
        x = self.embed(input_ids)
        norm = lambda t, g: g * (t * torch.rsqrt(t.pow(2).mean(-1, keepdim=True) + 1e-6))
        y = norm(x, self.gains[0])
        x = x + self.o(attention(self.q(y), self.k(y), self.v(y), self.heads, bias))
        y = norm(x, self.gains[1])
        g = self.wi0(y)
        g = 0.5 * g * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (g + 0.044715 * torch.pow(g, 3.0))))
        return x + self.wo(g * self.wi1(y))


class NFNet(nn.Module):
    """timm's NFNet: scaled gates, standardised weights, skips with a factor"""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 3, 2, 1)
        self.convs = nn.ModuleList(nn.Conv2d(12, 12, 3, 1, 1) for _ in range(4))
        self.gain = nn.Parameter(torch.ones(4, 12, 1, 1, 1))
        self.head = nn.Linear(12, 10)

    def conv(self, k, x):
        w = self.convs[k].weight
        w = (w - w.mean((1, 2, 3), keepdim=True)) / (w.var((1, 2, 3), keepdim=True) + 1e-5).sqrt() / math.sqrt(108)
        return F.conv2d(x, w * self.gain[k], self.convs[k].bias, 1, 1)

    def forward(self, x):
        act = lambda t: F.gelu(t) * 1.7015043497085571
        x = self.stem(x)
        for k in (0, 2):
            x = x + 0.2 * self.conv(k + 1, act(self.conv(k, act(x))))
        return self.head(act(x).mean((2, 3)))


class Cross(nn.Module):
    """a decoder of queries that attend to an image, as in DETR; boxes and classes as two outputs"""

    def __init__(self, width=16):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.SiLU(), nn.Conv2d(width, width, 3, 2, 1))
        self.queries = nn.Parameter(torch.randn(1, 5, width))
        self.q, self.kv, self.o = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.ffn = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.classes = nn.Linear(width, 4)
        self.boxes = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 4), nn.Sigmoid())

    def forward(self, x):
        m = self.backbone(x).flatten(2).transpose(1, 2)
        k, v = self.kv(m).chunk(2, -1)
        t = self.queries.expand(x.shape[0], -1, -1)
        t = self.norm1(t + self.o(attention(self.q(t), k, v, 2)))
        t = self.norm2(t + self.ffn(t))
        return self.classes(t), self.boxes(t)


class Geglu(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 48), nn.Linear(24, 6)

    def forward(self, x):
        a, b = self.up(x).chunk(2, -1)
        return self.down(F.gelu(a) * b)


class Decoder(nn.Module):
    """an image from a vector, by transposed convolutions"""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 64)
        self.rest = nn.Sequential(nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.BatchNorm2d(8), nn.SiLU(),
                                  nn.ConvTranspose2d(8, 3, 3, 2, 1, output_padding=1))

    def forward(self, x):
        return self.rest(F.gelu(self.first(x)).view(-1, 16, 2, 2))


class Ragged(nn.Module):
    """sizes read from the input while it runs"""

    def __init__(self):
        super().__init__()
        self.conv, self.last = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8, 4)

    def forward(self, x):
        x = F.silu(self.conv(x))
        b, c, _, _ = x.size()
        return self.last(x.view(b, c, -1).mean(-1))


images = ("x", (3, 16, 16), "float")
tokens = ("input_ids", (7,), 30)
mlp = lambda act: nn.Sequential(nn.Linear(8, 24), act, nn.Linear(24, 24), act, nn.Linear(24, 5))
NETWORKS = {
    "swin": (Swin, [images]), "gru": (lambda: Recurrent(nn.GRU), [("x", (9, 6), "float")]),
    "lstm": (lambda: Recurrent(nn.LSTM), [("x", (9, 6), "float")]),
    "lstm_both": (lambda: Recurrent(nn.LSTM, True), [("x", (9, 6), "float")]),
    "rnn": (lambda: Recurrent(nn.RNN), [("x", (9, 6), "float")]),
    "unet_transpose": (lambda: UNet("transpose"), [images]), "unet_nearest": (lambda: UNet("nearest"), [images]),
    "unet_bilinear": (lambda: UNet("bilinear"), [images]),
    "bert": (Bert, [tokens, ("attention_mask", (7,), 2), ("token_type_ids", (7,), 2)]),
    "clip": (Clip, [("pixel_values", (3, 16, 16), "float"), tokens]), "wavenet": (WaveNet, [("x", (2, 20), "float")]),
    "detector": (Detector, [("images", (3, 32, 32), "float")]), "paddle_mobilenet": (PaddleMobile, [("image", (3, 20, 28), "float")]),
    "llama": (Llama, [tokens]), "t5": (T5, [tokens]), "nfnet": (NFNet, [images]), "cross": (Cross, [images]),
    "geglu": (Geglu, [("x", (8,), "float")]), "ragged": (Ragged, [images]),
    "weight_norm": (lambda: nn.Sequential(nn.utils.weight_norm(nn.Linear(8, 24)), nn.GELU(), nn.utils.weight_norm(nn.Linear(24, 5))),
                    [("x", (8,), "float")]),
    "spectral_norm": (lambda: nn.Sequential(nn.Linear(8, 24), nn.SiLU(), nn.utils.spectral_norm(nn.Linear(24, 5))),
                      [("x", (8,), "float")]),
    "decoder": (Decoder, [("x", (6,), "float")]),
    "conv3d": (lambda: nn.Sequential(nn.Conv3d(1, 8, 3, padding=1), nn.GELU(), nn.Conv3d(8, 8, 3, 2), nn.SiLU(), nn.Flatten(),
                                     nn.Linear(8 * 2 * 3 * 3, 4)), [("x", (1, 6, 8, 8), "float")]),
    "mish": (lambda: mlp(nn.Mish()), [("x", (8,), "float")]), "softplus": (lambda: mlp(nn.Softplus()), [("x", (8,), "float")]),
    "elu": (lambda: mlp(nn.ELU()), [("x", (8,), "float")]), "hardswish": (lambda: mlp(nn.Hardswish()), [("x", (8,), "float")]),
    "selu": (lambda: mlp(nn.SELU()), [("x", (8,), "float")])}


def settle(net, x):
    """Running statistics that fit, so that a network of random weights computes something."""
    net.train()
    with torch.no_grad():
        for _ in range(20):
            net(*x)
    return net.eval()


for name, (make, inputs) in NETWORKS.items():
    if only and name not in only:
        continue
    torch.manual_seed(sum(map(ord, name)))
    net = make()
    x = [torch.randn(SAMPLES, *shape) if kind == "float" else torch.randint(0, kind, (SAMPLES, *shape)) for _, shape, kind in inputs]
    if name == "bert":
        x[1][:, 0] = 1
    net = settle(net, [t[:8] for t in x])
    names = [n for n, _, _ in inputs]
    with torch.no_grad():
        y = net(*x)
    outputs = [f"y{k}" for k in range(len(y))] if isinstance(y, tuple) else ["y"]
    for n, t in zip(names, x):
        np.save(f"{folder}/{name}.{n}.npy", t.numpy())
    sizes = {2: "height", 3: "width"} if name == "paddle_mobilenet" else {}
    for fold in (False, True):
        file = f"{name}_{'folded' if fold else 'plain'}"
        torch.onnx.export(net, tuple(x), f"{folder}/{file}.onnx", opset_version=14, input_names=names, output_names=outputs,
                          do_constant_folding=fold, dynamic_axes={n: {0: "batch", **(sizes if n in names else {})} for n in names + outputs})
        print(file, *(f"{n}={name}.{n}.npy" for n in names), sep="\t")
