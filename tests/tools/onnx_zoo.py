# SPDX-License-Identifier: MIT-0
# onnx_zoo.py FOLDER [NAME...]: small untrained networks after the families of torchvision, timm and Hugging Face, built with
# PyTorch's own modules and exported: FOLDER/NAME.onnx, with an input and PyTorch's output. Prints a list: the name, type and
# shape of the input, and the shape of the output.
import math, sys, warnings
import torch
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")
folder, wanted = sys.argv[1], sys.argv[2:]
torch.set_num_threads(1)


def disturb(net):
    """Gives every parameter that PyTorch begins at 0 or 1, and every running statistic, a value of its own."""
    for name, p in net.named_buffers():
        if name.endswith("running_mean"):
            p.copy_(torch.randn_like(p) / 4)
        if name.endswith("running_var"):
            p.copy_(0.5 + torch.rand_like(p))
    for name, p in net.named_parameters():
        if p.dim() == 1:
            p.data += torch.randn_like(p) / 8
    return net


def case(make, shape, tokens=0, batch=4, opset=16, names=("output",), dynamic=True):
    name = make.__name__
    if wanted and name not in wanted:
        return
    torch.manual_seed(sum(map(ord, name)))
    net = disturb(make()).eval()
    x = torch.randint(1, tokens, (batch, *shape)) if tokens else torch.randn(batch, *shape)
    with torch.no_grad():
        y = net(x)
    first = y[0] if isinstance(y, tuple) else y
    torch.onnx.export(net, x, f"{folder}/{name}.onnx", opset_version=opset, input_names=["input"], output_names=list(names),
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=True,
                      dynamic_axes={n: {0: "batch"} for n in ("input", *names)} if dynamic else None)
    x.numpy().tofile(f"{folder}/{name}.in")
    first.numpy().astype("<f4").tofile(f"{folder}/{name}.out")
    print(name, "int64" if tokens else "float32", ",".join(map(str, x.shape)), ",".join(map(str, first.shape)), sep="\t")


class Residual(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.body = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.body(x)


def conv_bn(a, b, kernel=3, stride=1, groups=1, act=nn.ReLU):
    """torchvision.ops.Conv2dNormActivation"""
    layers = [nn.Conv2d(a, b, kernel, stride, (kernel - 1) // 2, groups=groups, bias=False), nn.BatchNorm2d(b)]
    return nn.Sequential(*layers, *([act()] if act else []))


def head(channels, classes=10):
    return nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)


# ---- convolutional networks of torchvision ----

class Bottleneck(nn.Module):
    def __init__(self, a, width, b, stride=1, act=nn.ReLU, norm=nn.BatchNorm2d):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(a, width, 1, bias=False), norm(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), norm(width)
        self.conv3, self.bn3 = nn.Conv2d(width, b, 1, bias=False), norm(b)
        self.act = act()
        self.downsample = None
        if stride > 1 or a != b:
            self.downsample = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), norm(b))

    def forward(self, x):
        y = self.act(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(self.act(self.bn2(self.conv2(y)))))
        return self.act(y + (x if self.downsample is None else self.downsample(x)))


def resnet():
    return nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
                         nn.MaxPool2d(3, 2, 1), Bottleneck(8, 4, 16), Bottleneck(16, 8, 32, 2), *head(32))


def resnet_group_norm():
    norm = lambda width: nn.GroupNorm(2, width)
    return nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1, bias=False), norm(8), nn.GELU(), nn.MaxPool2d(3, 2, 1),
                         Bottleneck(8, 4, 16, 1, nn.GELU, norm), Bottleneck(16, 8, 32, 2, nn.GELU, norm), *head(32))


def vgg_bn():
    layers, a = [], 3
    for b in 8, "M", 16, "M", 16, 16, "M":
        if b == "M":
            layers.append(nn.MaxPool2d(2, 2))
        else:
            layers += [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True)]
            a = b
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d((2, 2)), nn.Flatten(), nn.Linear(64, 32), nn.ReLU(True),
                         nn.Dropout(), nn.Linear(32, 32), nn.ReLU(True), nn.Dropout(), nn.Linear(32, 10))


def inverted(a, b, stride, expand, act):
    hidden = a * expand
    layers = [conv_bn(a, hidden, 1, act=act)] if expand > 1 else []
    body = layers + [conv_bn(hidden, hidden, 3, stride, hidden, act), nn.Conv2d(hidden, b, 1, bias=False), nn.BatchNorm2d(b)]
    return Residual(*body) if stride == 1 and a == b else nn.Sequential(*body)


def mobilenet_v2():
    return nn.Sequential(conv_bn(3, 8, 3, 2, act=nn.ReLU6), inverted(8, 8, 1, 1, nn.ReLU6), inverted(8, 12, 2, 3, nn.ReLU6),
                         inverted(12, 12, 1, 3, nn.ReLU6), conv_bn(12, 32, 1, act=nn.ReLU6), *head(32))


class SqueezeExcitation(nn.Module):
    """torchvision.ops.SqueezeExcitation"""

    def __init__(self, channels, squeeze, act=nn.ReLU, scale=nn.Sigmoid):
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1, self.fc2 = nn.Conv2d(channels, squeeze, 1), nn.Conv2d(squeeze, channels, 1)
        self.activation, self.scale_activation = act(), scale()

    def forward(self, x):
        return self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(x))))) * x


def mobilenet_v3():
    def block(a, hidden, b, kernel, stride, excite, act):
        body = [conv_bn(a, hidden, 1, act=act), conv_bn(hidden, hidden, kernel, stride, hidden, act)]
        if excite:
            body.append(SqueezeExcitation(hidden, 8, nn.ReLU, nn.Hardsigmoid))
        body.append(conv_bn(hidden, b, 1, act=None))
        return Residual(*body) if stride == 1 and a == b else nn.Sequential(*body)
    return nn.Sequential(conv_bn(3, 8, 3, 2, act=nn.Hardswish), block(8, 16, 8, 3, 1, True, nn.ReLU),
                         block(8, 24, 12, 5, 2, False, nn.Hardswish), block(12, 24, 12, 5, 1, True, nn.Hardswish),
                         conv_bn(12, 24, 1, act=nn.Hardswish), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 32),
                         nn.Hardswish(), nn.Dropout(0.2), nn.Linear(32, 10))


def efficientnet():
    def block(a, b, stride, expand):
        hidden = a * expand
        body = ([conv_bn(a, hidden, 1, act=nn.SiLU)] if expand > 1 else []) + [
            conv_bn(hidden, hidden, 3, stride, hidden, nn.SiLU), SqueezeExcitation(hidden, max(1, a // 4), nn.SiLU),
            conv_bn(hidden, b, 1, act=None)]
        return Residual(*body) if stride == 1 and a == b else nn.Sequential(*body)
    return nn.Sequential(conv_bn(3, 8, 3, 2, act=nn.SiLU), block(8, 8, 1, 1), block(8, 12, 2, 4), block(12, 12, 1, 4),
                         conv_bn(12, 32, 1, act=nn.SiLU), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2),
                         nn.Linear(32, 10))


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x):
        return F.layer_norm(x.permute(0, 2, 3, 1), self.normalized_shape, self.weight, self.bias, self.eps).permute(0, 3, 1, 2)


class Permute(nn.Module):
    def __init__(self, *dims):
        super().__init__()
        self.dims = dims

    def forward(self, x):
        return torch.permute(x, self.dims)


class CNBlock(nn.Module):
    """torchvision.models.convnext.CNBlock"""

    def __init__(self, dim):
        super().__init__()
        self.block = nn.Sequential(nn.Conv2d(dim, dim, 7, padding=3, groups=dim), Permute(0, 2, 3, 1), nn.LayerNorm(dim, 1e-6),
                                   nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim), Permute(0, 3, 1, 2))
        self.layer_scale = nn.Parameter(torch.rand(dim, 1, 1))

    def forward(self, x):
        return self.layer_scale * self.block(x) + x


def convnext():
    return nn.Sequential(nn.Conv2d(3, 8, 4, 4), LayerNorm2d(8, eps=1e-6), CNBlock(8), LayerNorm2d(8, eps=1e-6),
                         nn.Conv2d(8, 16, 2, 2), CNBlock(16), nn.AdaptiveAvgPool2d(1), LayerNorm2d(16, eps=1e-6), nn.Flatten(1),
                         nn.Linear(16, 10))


class MetaLayerNorm(nn.Module):
    """LayerNorm of Meta's ConvNeXt, channels first"""

    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight, self.bias, self.eps = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim)), eps

    def forward(self, x):
        u = x.mean(1, keepdim=True)
        s = (x - u).pow(2).mean(1, keepdim=True)
        x = (x - u) / torch.sqrt(s + self.eps)
        return self.weight[:, None, None] * x + self.bias[:, None, None]


def convnext_meta():
    class Block(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.dwconv, self.norm = nn.Conv2d(dim, dim, 7, padding=3, groups=dim), nn.LayerNorm(dim, 1e-6)
            self.pwconv1, self.pwconv2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
            self.gamma = nn.Parameter(torch.rand(dim))

        def forward(self, x):
            y = self.norm(self.dwconv(x).permute(0, 2, 3, 1))
            y = self.gamma * self.pwconv2(F.gelu(self.pwconv1(y)))
            return x + y.permute(0, 3, 1, 2)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(nn.Conv2d(3, 8, 4, 4), MetaLayerNorm(8), Block(8), MetaLayerNorm(8),
                                          nn.Conv2d(8, 16, 2, 2), Block(16))
            self.norm, self.head = nn.LayerNorm(16, 1e-6), nn.Linear(16, 10)

        def forward(self, x):
            return self.head(self.norm(self.features(x).mean([-2, -1])))
    return Net()


def densenet():
    class Layer(nn.Module):
        def __init__(self, a):
            super().__init__()
            self.norm1, self.conv1 = nn.BatchNorm2d(a), nn.Conv2d(a, 16, 1, bias=False)
            self.norm2, self.conv2 = nn.BatchNorm2d(16), nn.Conv2d(16, 4, 3, padding=1, bias=False)

        def forward(self, features):
            x = self.conv1(F.relu(self.norm1(torch.cat(features, 1))))
            return self.conv2(F.relu(self.norm2(x)))

    class Block(nn.Module):
        def __init__(self, a):
            super().__init__()
            self.layers = nn.ModuleList(Layer(a + 4 * i) for i in range(3))

        def forward(self, x):
            features = [x]
            for layer in self.layers:
                features.append(layer(features))
            return torch.cat(features, 1)
    return nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(True), nn.MaxPool2d(3, 2, 1), Block(8),
                         nn.BatchNorm2d(20), nn.ReLU(True), nn.Conv2d(20, 10, 1, bias=False), nn.AvgPool2d(2, 2), Block(10),
                         nn.BatchNorm2d(22), nn.ReLU(True), *head(22))


def squeezenet():
    class Fire(nn.Module):
        def __init__(self, a, squeeze, expand):
            super().__init__()
            self.squeeze, self.act = nn.Conv2d(a, squeeze, 1), nn.ReLU(inplace=True)
            self.expand1x1, self.expand3x3 = nn.Conv2d(squeeze, expand, 1), nn.Conv2d(squeeze, expand, 3, padding=1)

        def forward(self, x):
            x = self.act(self.squeeze(x))
            return torch.cat([self.act(self.expand1x1(x)), self.act(self.expand3x3(x))], 1)
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, ceil_mode=True), Fire(8, 4, 8), Fire(16, 4, 8),
                         nn.MaxPool2d(3, 2, ceil_mode=True), Fire(16, 6, 12), nn.Dropout(0.5), nn.Conv2d(24, 10, 1),
                         nn.ReLU(True), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def shufflenet_v2():
    def shuffle(x, groups=2):
        n, c, h, w = x.size()
        return torch.transpose(x.view(n, groups, c // groups, h, w), 1, 2).contiguous().view(n, c, h, w)

    class Unit(nn.Module):
        def __init__(self, a, b, stride):
            super().__init__()
            half, self.stride = b // 2, stride
            inner = a if stride > 1 else half
            self.branch1 = nn.Sequential(conv_bn(a, a, 3, stride, a, None), conv_bn(a, half, 1)) if stride > 1 else None
            self.branch2 = nn.Sequential(conv_bn(inner, half, 1), conv_bn(half, half, 3, stride, half, None),
                                         conv_bn(half, half, 1))

        def forward(self, x):
            if self.stride == 1:
                x1, x2 = x.chunk(2, dim=1)
                return shuffle(torch.cat((x1, self.branch2(x2)), dim=1))
            return shuffle(torch.cat((self.branch1(x), self.branch2(x)), dim=1))
    return nn.Sequential(conv_bn(3, 8, 3, 2), nn.MaxPool2d(3, 2, 1), Unit(8, 16, 2), Unit(16, 16, 1), conv_bn(16, 32, 1), *head(32))


def regnet_y():
    class Block(nn.Module):
        def __init__(self, a, b, stride):
            super().__init__()
            self.proj = conv_bn(a, b, 1, stride, act=None) if stride > 1 or a != b else None
            self.f = nn.Sequential(conv_bn(a, b, 1), conv_bn(b, b, 3, stride, b // 4), SqueezeExcitation(b, a // 4),
                                   conv_bn(b, b, 1, act=None))
            self.act = nn.ReLU(True)

        def forward(self, x):
            return self.act((x if self.proj is None else self.proj(x)) + self.f(x))
    return nn.Sequential(conv_bn(3, 8, 3, 2), Block(8, 8, 1), Block(8, 16, 2), Block(16, 16, 1), *head(16))


def googlenet():
    class Inception(nn.Module):
        def __init__(self, a):
            super().__init__()
            self.branch1 = conv_bn(a, 4, 1)
            self.branch2 = nn.Sequential(conv_bn(a, 4, 1), conv_bn(4, 6, 3))
            self.branch3 = nn.Sequential(conv_bn(a, 2, 1), conv_bn(2, 4, 3))
            self.branch4 = nn.Sequential(nn.MaxPool2d(3, 1, 1, ceil_mode=True), conv_bn(a, 2, 1))

        def forward(self, x):
            return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)
    return nn.Sequential(conv_bn(3, 8, 7, 2), nn.MaxPool2d(3, 2, ceil_mode=True), Inception(8),
                         nn.MaxPool2d(3, 2, ceil_mode=True), Inception(16), nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(),
                         nn.Dropout(0.2), nn.Linear(16, 10))


def unet():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            double = lambda a, b: nn.Sequential(conv_bn(a, b), conv_bn(b, b))
            self.inc, self.down, self.pool = double(3, 8), double(8, 16), nn.MaxPool2d(2)
            self.up, self.conv, self.outc = nn.ConvTranspose2d(16, 8, 2, 2), double(16, 8), nn.Conv2d(8, 2, 1)

        def forward(self, x):
            a = self.inc(x)
            return self.outc(self.conv(torch.cat([a, self.up(self.down(self.pool(a)))], 1)))
    return Net()


# ---- of timm ----

def darknet():
    act = lambda: nn.LeakyReLU(0.1, inplace=True)
    def stage(a, b):
        return nn.Sequential(conv_bn(a, b, 3, 2, act=act), Residual(conv_bn(b, b // 2, 1, act=act), conv_bn(b // 2, b, 3, act=act)))
    return nn.Sequential(conv_bn(3, 8, act=act), stage(8, 12), stage(12, 16), *head(16))


def convmixer():
    def block(dim):
        return nn.Sequential(Residual(nn.Conv2d(dim, dim, 5, groups=dim, padding=2), nn.GELU(), nn.BatchNorm2d(dim)),
                             nn.Conv2d(dim, dim, 1), nn.GELU(), nn.BatchNorm2d(dim))
    return nn.Sequential(nn.Conv2d(3, 12, 4, 4), nn.GELU(), nn.BatchNorm2d(12), block(12), block(12), *head(12))


class Mlp(nn.Module):
    """timm.layers.Mlp"""

    def __init__(self, a, hidden, act=nn.GELU):
        super().__init__()
        self.fc1, self.act, self.fc2, self.drop = nn.Linear(a, hidden), act(), nn.Linear(hidden, a), nn.Dropout(0.1)

    def forward(self, x):
        return self.drop(self.fc2(self.drop(self.act(self.fc1(x)))))


class PatchEmbed(nn.Module):
    """timm.layers.PatchEmbed"""

    def __init__(self, side, dim):
        super().__init__()
        self.proj = nn.Conv2d(3, dim, side, side)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class MeanTokens(nn.Module):
    def forward(self, x):
        return x.mean(dim=1)


def mlp_mixer():
    class Block(nn.Module):
        def __init__(self, dim, tokens):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(dim, 1e-6), nn.LayerNorm(dim, 1e-6)
            self.mlp_tokens, self.mlp_channels = Mlp(tokens, 8), Mlp(dim, 4 * dim)

        def forward(self, x):
            x = x + self.mlp_tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
            return x + self.mlp_channels(self.norm2(x))
    return nn.Sequential(PatchEmbed(4, 12), Block(12, 16), Block(12, 16), nn.LayerNorm(12, 1e-6), MeanTokens(), nn.Linear(12, 10))


def resmlp():
    class Affine(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.alpha, self.beta = nn.Parameter(torch.rand(1, 1, dim)), nn.Parameter(torch.rand(1, 1, dim))

        def forward(self, x):
            return torch.addcmul(self.beta, self.alpha, x)

    class Block(nn.Module):
        def __init__(self, dim, tokens):
            super().__init__()
            self.norm1, self.norm2, self.linear_tokens = Affine(dim), Affine(dim), nn.Linear(tokens, tokens)
            self.mlp_channels = Mlp(dim, 4 * dim)
            self.ls1, self.ls2 = nn.Parameter(torch.rand(dim)), nn.Parameter(torch.rand(dim))

        def forward(self, x):
            x = x + self.ls1 * self.linear_tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
            return x + self.ls2 * self.mlp_channels(self.norm2(x))
    return nn.Sequential(PatchEmbed(4, 12), Block(12, 16), Block(12, 16), Affine(12), MeanTokens(), nn.Linear(12, 10))


class Attention(nn.Module):
    """timm.layers.Attention"""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        a = ((q * self.scale) @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.proj((a @ v).transpose(1, 2).reshape(B, N, C))


def deit():
    class Block(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.norm1, self.attn, self.norm2, self.mlp = nn.LayerNorm(dim, 1e-6), Attention(dim, 3), nn.LayerNorm(dim, 1e-6), \
                Mlp(dim, 4 * dim)

        def forward(self, x):
            x = x + self.attn(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class Net(nn.Module):
        def __init__(self, dim=12):
            super().__init__()
            self.patch_embed, self.blocks = PatchEmbed(4, dim), nn.Sequential(Block(dim), Block(dim))
            self.cls_token, self.pos_embed = nn.Parameter(torch.randn(1, 1, dim)), nn.Parameter(torch.randn(1, 18, dim))
            self.dist_token = nn.Parameter(torch.randn(1, 1, dim))
            self.norm, self.head, self.head_dist = nn.LayerNorm(dim, 1e-6), nn.Linear(dim, 10), nn.Linear(dim, 10)

        def forward(self, x):
            x = self.patch_embed(x)
            x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), self.dist_token.expand(x.shape[0], -1, -1), x), dim=1)
            x = self.norm(self.blocks(x + self.pos_embed))
            return (self.head(x[:, 0]) + self.head_dist(x[:, 1])) / 2
    return Net()


def vit():
    class Block(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(dim, 1e-6), nn.LayerNorm(dim, 1e-6)
            self.self_attention = nn.MultiheadAttention(dim, 3, batch_first=True)
            self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * dim, dim), nn.Dropout(0.1))

        def forward(self, x):
            y = self.ln_1(x)
            x = x + self.self_attention(y, y, y, need_weights=False)[0]
            return x + self.mlp(self.ln_2(x))

    class Net(nn.Module):
        def __init__(self, dim=12):
            super().__init__()
            self.conv_proj, self.dim = nn.Conv2d(3, dim, 4, 4), dim
            self.class_token, self.pos_embedding = nn.Parameter(torch.randn(1, 1, dim)), nn.Parameter(torch.randn(1, 17, dim))
            self.layers, self.ln, self.head = nn.Sequential(Block(dim), Block(dim)), nn.LayerNorm(dim, 1e-6), nn.Linear(dim, 10)

        def forward(self, x):
            n = x.shape[0]
            x = self.conv_proj(x).reshape(n, self.dim, 16).permute(0, 2, 1)
            x = torch.cat([self.class_token.expand(n, -1, -1), x], dim=1)
            return self.head(self.ln(self.layers(x + self.pos_embedding))[:, 0])
    return Net()


def swin():
    class Net(nn.Module):
        def __init__(self, dim=12):
            super().__init__()
            self.patch, self.attn = nn.Conv2d(3, dim, 2, 2), Attention(dim, 3)
            self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, 10)

        def forward(self, x):
            x = self.patch(x).permute(0, 2, 3, 1)
            b, h, w, c = x.shape
            y = torch.roll(self.norm(x), (-2, -2), (1, 2))
            y = y.view(b, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
            y = self.attn(y).view(b, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
            return self.head((x + torch.roll(y, (2, 2), (1, 2))).mean((1, 2)))
    return Net()


# ---- text, after Hugging Face ----

class SelfAttention(nn.Module):
    """BertSelfAttention and BertSelfOutput"""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.query, self.key, self.value = heads, nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.dense = nn.Linear(dim, dim)

    def split(self, x):
        return x.view(x.size()[:-1] + (self.heads, -1)).permute(0, 2, 1, 3)

    def forward(self, x):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        a = F.softmax(torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1]), dim=-1)
        y = torch.matmul(a, v).permute(0, 2, 1, 3).contiguous()
        return self.dense(y.view(y.size()[:-2] + (-1,)))


class BertLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attention, self.norm1, self.norm2 = SelfAttention(dim, 3), nn.LayerNorm(dim, 1e-12), nn.LayerNorm(dim, 1e-12)
        self.intermediate, self.output = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        x = self.norm1(self.attention(x) + x)
        return self.norm2(self.output(F.gelu(self.intermediate(x))) + x)


class BertEmbeddings(nn.Module):
    def __init__(self, dim, words=30, positions=16):
        super().__init__()
        self.word, self.position, self.kind = nn.Embedding(words, dim, padding_idx=0), nn.Embedding(positions, dim), nn.Embedding(2, dim)
        self.norm = nn.LayerNorm(dim, 1e-12)
        self.register_buffer("position_ids", torch.arange(positions).expand((1, -1)))

    def forward(self, ids):
        kinds = torch.zeros_like(ids)
        x = self.word(ids) + self.kind(kinds)
        return self.norm(x + self.position(self.position_ids[:, : ids.size(1)]))


def bert():
    class Net(nn.Module):
        def __init__(self, dim=12):
            super().__init__()
            self.embeddings, self.encoder = BertEmbeddings(dim), nn.Sequential(BertLayer(dim), BertLayer(dim))
            self.pooler, self.classifier = nn.Linear(dim, dim), nn.Linear(dim, 3)

        def forward(self, ids):
            x = self.encoder(self.embeddings(ids))
            return self.classifier(torch.tanh(self.pooler(x[:, 0])))
    return Net()


def text_classifier():
    class Net(nn.Module):
        def __init__(self, dim=12):
            super().__init__()
            self.embedding, self.position = nn.Embedding(30, dim), nn.Parameter(torch.randn(8, dim))
            layer = nn.TransformerEncoderLayer(dim, 3, 24, activation="gelu", batch_first=True)
            self.encoder, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(dim, 4)

        def forward(self, ids):
            x = self.embedding(ids) * math.sqrt(12) + self.position
            return self.head(self.encoder(x).mean(dim=1))
    return Net()


def padded_text_classifier():
    class Net(nn.Module):
        def __init__(self, dim=12):
            super().__init__()
            self.embedding, self.attn, self.head = nn.Embedding(30, dim), nn.MultiheadAttention(dim, 3, batch_first=True), nn.Linear(dim, 4)

        def forward(self, ids):
            x = self.embedding(ids)
            return self.head(self.attn(x, x, x, key_padding_mask=ids == 0, need_weights=False)[0].mean(1))
    return Net()


class NewGELU(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


def gpt2():
    class Conv1D(nn.Module):
        def __init__(self, b, a):
            super().__init__()
            self.nf, self.weight, self.bias = b, nn.Parameter(torch.randn(a, b) / 4), nn.Parameter(torch.zeros(b))

        def forward(self, x):
            size = x.size()[:-1] + (self.nf,)
            return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(size)

    class Block(nn.Module):
        def __init__(self, dim, heads=3, context=8):
            super().__init__()
            self.heads, self.ln_1, self.ln_2 = heads, nn.LayerNorm(dim), nn.LayerNorm(dim)
            self.c_attn, self.c_proj, self.c_fc, self.m_proj = Conv1D(3 * dim, dim), Conv1D(dim, dim), Conv1D(4 * dim, dim), Conv1D(dim, 4 * dim)
            self.act = NewGELU()
            self.register_buffer("bias", torch.tril(torch.ones(context, context, dtype=torch.bool)).view(1, 1, context, context))

        def attention(self, x):
            q, k, v = (t.view(t.size()[:-1] + (self.heads, -1)).permute(0, 2, 1, 3) for t in self.c_attn(x).split(x.shape[-1], dim=2))
            a = torch.matmul(q, k.transpose(-1, -2)) / (v.size(-1) ** 0.5)
            n, m = q.size(-2), k.size(-2)
            a = torch.where(self.bias[:, :, m - n: m, :m], a, torch.full([], torch.finfo(a.dtype).min))
            y = torch.matmul(F.softmax(a, dim=-1), v).permute(0, 2, 1, 3).contiguous()
            return self.c_proj(y.view(y.size()[:-2] + (-1,)))

        def forward(self, x):
            x = x + self.attention(self.ln_1(x))
            return x + self.m_proj(self.act(self.c_fc(self.ln_2(x))))

    class Net(nn.Module):
        def __init__(self, dim=12):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(30, dim), nn.Embedding(8, dim)
            self.h, self.ln_f, self.lm_head = nn.Sequential(Block(dim), Block(dim)), nn.LayerNorm(dim), nn.Linear(dim, 30, bias=False)
            self.lm_head.weight = self.wte.weight

        def forward(self, ids):
            position = torch.arange(0, ids.shape[-1], dtype=torch.long).unsqueeze(0).view(-1, ids.shape[-1])
            return self.lm_head(self.ln_f(self.h(self.wte(ids) + self.wpe(position))))
    return Net()


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x):
        variance = x.to(torch.float32).pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + self.eps))


def llama():
    class Block(nn.Module):
        def __init__(self, dim, heads=4, kv=2, context=8):
            super().__init__()
            self.heads, self.kv, self.width = heads, kv, dim // heads
            self.norm1, self.norm2 = RMSNorm(dim), RMSNorm(dim)
            self.q, self.o = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
            self.k, self.v = (nn.Linear(dim, kv * self.width, bias=False) for _ in range(2))
            self.gate, self.up, self.down = nn.Linear(dim, 24, bias=False), nn.Linear(dim, 24, bias=False), nn.Linear(24, dim, bias=False)
            angle = torch.outer(torch.arange(context).float(), 10000 ** (-torch.arange(0, self.width, 2).float() / self.width))
            angle = torch.cat((angle, angle), dim=-1)
            self.register_buffer("cos", angle.cos()[None, None])
            self.register_buffer("sin", angle.sin()[None, None])
            self.register_buffer("mask", torch.triu(torch.full((context, context), torch.finfo(torch.float32).min), 1)[None, None])

        def rotate(self, x):
            a, b = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2:]
            return x * self.cos + torch.cat((-b, a), dim=-1) * self.sin

        def attention(self, x):
            b, t, c = x.shape
            q = self.rotate(self.q(x).view(b, t, self.heads, self.width).transpose(1, 2))
            k = self.rotate(self.k(x).view(b, t, self.kv, self.width).transpose(1, 2))
            v = self.v(x).view(b, t, self.kv, self.width).transpose(1, 2)
            n = self.heads // self.kv
            k, v = (z[:, :, None].expand(b, self.kv, n, t, self.width).reshape(b, self.heads, t, self.width) for z in (k, v))
            a = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.width) + self.mask
            y = torch.matmul(F.softmax(a, dim=-1, dtype=torch.float32), v).transpose(1, 2).contiguous()
            return self.o(y.reshape(b, t, c))

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            y = self.norm2(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    class Net(nn.Module):
        def __init__(self, dim=16):
            super().__init__()
            self.embed_tokens, self.layers, self.norm = nn.Embedding(30, dim), nn.Sequential(Block(dim), Block(dim)), RMSNorm(dim)
            self.lm_head = nn.Linear(dim, 30, bias=False)

        def forward(self, ids):
            return self.lm_head(self.norm(self.layers(self.embed_tokens(ids))))
    return Net()


def geglu():
    class Net(nn.Module):
        def __init__(self, dim=12):
            super().__init__()
            self.inp, self.norm, self.wi, self.wo, self.head = nn.Linear(20, dim), nn.LayerNorm(dim), nn.Linear(dim, 48), \
                nn.Linear(24, dim), nn.Linear(dim, 5)

        def forward(self, x):
            x = self.inp(x)
            value, gate = self.wi(self.norm(x)).chunk(2, dim=-1)
            return self.head(x + self.wo(F.gelu(gate) * value))
    return Net()


def text_cnn():
    class Net(nn.Module):
        def __init__(self, dim=8):
            super().__init__()
            self.embedding, self.head = nn.Embedding(30, dim), nn.Linear(18, 4)
            self.convs = nn.ModuleList(nn.Conv1d(dim, 6, k) for k in (2, 3, 4))

        def forward(self, ids):
            x = self.embedding(ids).transpose(1, 2)
            return self.head(torch.cat([F.relu(c(x)).max(dim=2)[0] for c in self.convs], 1))
    return Net()


def embedding_bag():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.fc = nn.Embedding(30, 8), nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))

        def forward(self, ids):
            return self.fc(self.embedding(ids).mean(1))
    return Net()


def lstm():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.lstm, self.head = nn.Embedding(30, 8), nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 4)

        def forward(self, ids):
            return self.head(self.lstm(self.embedding(ids))[0][:, -1])
    return Net()


def crnn():
    """What reads lines of text: convolutions, then columns of the image in both directions"""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.SiLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, (2, 1), 1), nn.SiLU())
            self.lstm, self.gru = nn.LSTM(32, 6, bidirectional=True), nn.GRU(12, 6, 2, bidirectional=True)
            self.head = nn.Linear(12, 5)

        def forward(self, x):
            x = self.body(x).flatten(1, 2).permute(2, 0, 1)
            return self.head(self.gru(self.lstm(x)[0])[0]).transpose(0, 1)
    return Net()


# ---- sound and tables ----

def audio_m5():
    def block(a, b, kernel, stride=1):
        return [nn.Conv1d(a, b, kernel, stride), nn.BatchNorm1d(b), nn.GELU(), nn.MaxPool1d(4)]
    return nn.Sequential(*block(1, 8, 20, 4), *block(8, 16, 3), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 10))


def wavenet():
    class Layer(nn.Module):
        def __init__(self, c, dilation):
            super().__init__()
            self.filter, self.gate = nn.Conv1d(c, c, 3, padding=dilation, dilation=dilation), nn.Conv1d(c, c, 3, padding=dilation, dilation=dilation)
            self.skip, self.residual = nn.Conv1d(c, c, 1), nn.Conv1d(c, c, 1)

        def forward(self, x):
            y = torch.tanh(self.filter(x)) * torch.sigmoid(self.gate(x))
            return x + self.residual(y), self.skip(y)

    class Net(nn.Module):
        def __init__(self, c=8):
            super().__init__()
            self.first, self.layers = nn.Conv1d(1, c, 1), nn.ModuleList(Layer(c, 2 ** i) for i in range(3))
            self.last, self.head = nn.Conv1d(c, c, 1), nn.Linear(c, 5)

        def forward(self, x):
            x, total = self.first(x), 0
            for layer in self.layers:
                x, skip = layer(x)
                total = total + skip
            return self.head(F.relu(self.last(F.relu(total))).mean(-1))
    return Net()


def regression():
    return nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.SiLU(), nn.Linear(32, 32), nn.ELU(), nn.Linear(32, 1))


def tabular_resnet():
    """The ResNet of 'Revisiting deep learning models for tabular data'"""
    block = lambda: Residual(nn.BatchNorm1d(16), nn.Linear(16, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 16), nn.Dropout(0.1))
    return nn.Sequential(nn.Linear(8, 16), block(), block(), nn.BatchNorm1d(16), nn.GELU(), nn.Linear(16, 3))


for make in (resnet, resnet_group_norm, vgg_bn, mobilenet_v2, mobilenet_v3, efficientnet, convnext, convnext_meta, densenet,
             squeezenet, shufflenet_v2, regnet_y, googlenet, darknet, convmixer):
    case(make, (3, 32, 32))
for make in mlp_mixer, resmlp, deit, vit:
    case(make, (3, 16, 16))
for make in bert, text_classifier, gpt2, llama, text_cnn, embedding_bag:
    case(make, (8,), 30)
case(audio_m5, (1, 400))
case(wavenet, (1, 64))
case(geglu, (20,))
case(regression, (8,))
case(tabular_resnet, (8,))
case(unet, (3, 16, 16))
case(swin, (3, 16, 16))
case(padded_text_classifier, (8,), 30)
case(lstm, (8,), 30)
case(crnn, (1, 16, 24))
