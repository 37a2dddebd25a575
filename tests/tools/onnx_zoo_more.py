# SPDX-License-Identifier: MIT-0
# onnx_zoo_more.py FOLDER [NAME...]: the networks of onnx_zoo.py, then more, after families that it does not have. What differs
# in them is how layers are written: pads on one side, attention over pixels, positions and masks that are made inside the model.
import sys

sys.dont_write_bytecode = True
from onnx_zoo import *


# ---- convolutional networks ----


class ResNeXtBlock(nn.Module):
    """torchvision.models.resnet.Bottleneck with groups and base_width"""

    def __init__(self, a, width, b, stride=1, groups=4):
        super().__init__()
        self.conv1 = nn.Conv2d(a, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, groups=groups, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, b, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(b)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride > 1 or a != b:
            self.downsample = nn.Sequential(nn.AvgPool2d(2, stride, ceil_mode=True, count_include_pad=False)
                                            if stride > 1 else nn.Identity(), nn.Conv2d(a, b, 1, 1, bias=False),
                                            nn.BatchNorm2d(b))

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


def resnext():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU(True),
                                      nn.Conv2d(4, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(True))
            self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
            self.layer1 = ResNeXtBlock(8, 8, 16)
            self.layer2 = ResNeXtBlock(16, 16, 32, 2)
            self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
            self.fc = nn.Linear(32, 10)

        def forward(self, x):
            x = self.layer2(self.layer1(self.maxpool(self.stem(x))))
            return self.fc(torch.flatten(self.avgpool(x), 1))
    return Net()


class BasicConv2d(nn.Module):
    def __init__(self, a, b, **kwargs):
        super().__init__()
        self.conv = nn.Conv2d(a, b, bias=False, **kwargs)
        self.bn = nn.BatchNorm2d(b, eps=0.001)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)), inplace=True)


def inception_v3():
    class A(nn.Module):
        def __init__(self, a):
            super().__init__()
            self.branch1x1 = BasicConv2d(a, 4, kernel_size=1)
            self.branch5x5_1 = BasicConv2d(a, 4, kernel_size=1)
            self.branch5x5_2 = BasicConv2d(4, 6, kernel_size=5, padding=2)
            self.branch_pool = BasicConv2d(a, 4, kernel_size=1)

        def forward(self, x):
            p = F.avg_pool2d(x, kernel_size=3, stride=1, padding=1)
            return torch.cat([self.branch1x1(x), self.branch5x5_2(self.branch5x5_1(x)), self.branch_pool(p)], 1)

    class B(nn.Module):
        def __init__(self, a):
            super().__init__()
            self.branch3x3 = BasicConv2d(a, 6, kernel_size=3, stride=2)

        def forward(self, x):
            return torch.cat([self.branch3x3(x), F.max_pool2d(x, kernel_size=3, stride=2)], 1)

    class C(nn.Module):
        def __init__(self, a):
            super().__init__()
            self.a = BasicConv2d(a, 4, kernel_size=1)
            self.b = BasicConv2d(4, 5, kernel_size=(1, 7), padding=(0, 3))
            self.c = BasicConv2d(5, 6, kernel_size=(7, 1), padding=(3, 0))

        def forward(self, x):
            return torch.cat([self.a(x), self.c(self.b(self.a(x)))], 1)

    class E(nn.Module):
        def __init__(self, a):
            super().__init__()
            self.a = BasicConv2d(a, 4, kernel_size=1)
            self.b = BasicConv2d(4, 4, kernel_size=(1, 3), padding=(0, 1))
            self.c = BasicConv2d(4, 4, kernel_size=(3, 1), padding=(1, 0))

        def forward(self, x):
            y = self.a(x)
            y = torch.cat([self.b(y), self.c(y)], 1)
            return torch.cat([y, self.a(F.avg_pool2d(x, 3, 1, 1))], 1)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = BasicConv2d(3, 8, kernel_size=3, stride=2)
            self.a = A(8)
            self.b = B(14)
            self.c = C(20)
            self.e = E(10)
            self.fc = nn.Linear(12, 10)

        def forward(self, x):
            x_ch0 = torch.unsqueeze(x[:, 0], 1) * (0.229 / 0.5) + (0.485 - 0.5) / 0.5
            x_ch1 = torch.unsqueeze(x[:, 1], 1) * (0.224 / 0.5) + (0.456 - 0.5) / 0.5
            x_ch2 = torch.unsqueeze(x[:, 2], 1) * (0.225 / 0.5) + (0.406 - 0.5) / 0.5
            x = torch.cat((x_ch0, x_ch1, x_ch2), 1)
            x = self.e(self.c(self.b(self.a(self.conv(x)))))
            x = F.adaptive_avg_pool2d(x, (1, 1))
            return self.fc(torch.flatten(F.dropout(x, training=self.training), 1))
    return Net()


def xception():
    class Separable(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.conv1 = nn.Conv2d(a, a, 3, 1, 1, groups=a, bias=False)
            self.pointwise = nn.Conv2d(a, b, 1, bias=False)

        def forward(self, x):
            return self.pointwise(self.conv1(x))

    class Block(nn.Module):
        def __init__(self, a, b, stride):
            super().__init__()
            self.skip = nn.Conv2d(a, b, 1, stride, bias=False)
            self.skipbn = nn.BatchNorm2d(b)
            self.rep = nn.Sequential(nn.ReLU(inplace=False), Separable(a, b), nn.BatchNorm2d(b),
                                     nn.ReLU(inplace=True), Separable(b, b), nn.BatchNorm2d(b), nn.MaxPool2d(3,
                                             stride, 1))

        def forward(self, x):
            y = self.rep(x)
            y += self.skipbn(self.skip(x))
            return y
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 0, bias=False), nn.BatchNorm2d(8), nn.ReLU(True), Block(8, 12, 2),
                         Block(12, 16, 2), nn.ReLU(), *head(16))


def tf_efficientnet_same():
    """timm's tf_ models: TF SAME padding, one-sided at stride 2 (Conv2dSame)"""

    class Conv2dSame(nn.Conv2d):
        def forward(self, x):
            ih, iw = x.size()[-2:]
            kh, kw = self.weight.size()[-2:]

            def pad(i, k, s):
                return max((math.ceil(i / s) - 1) * s + (k - 1) + 1 - i, 0)
            ph, pw = (pad(ih, kh, self.stride[0]), pad(iw, kw, self.stride[1]))
            if ph > 0 or pw > 0:
                x = F.pad(x, [pw // 2, pw - pw // 2, ph // 2, ph - ph // 2])
            return F.conv2d(x, self.weight, self.bias, self.stride, (0, 0), self.dilation, self.groups)
    return nn.Sequential(Conv2dSame(3, 8, 3, 2, bias=False), nn.BatchNorm2d(8), nn.SiLU(), Conv2dSame(8, 8, 5, 2,
            groups=8, bias=False), nn.BatchNorm2d(8), nn.SiLU(), Conv2dSame(8, 12, 3, 1), nn.ReLU(), *head(12))


def ghostnet():
    def hard_sigmoid(x):
        return F.relu6(x + 3.0) / 6.0

    class SE(nn.Module):
        def __init__(self, a):
            super().__init__()
            self.avg_pool = nn.AdaptiveAvgPool2d(1)
            self.conv_reduce = nn.Conv2d(a, 4, 1)
            self.act1 = nn.ReLU(True)
            self.conv_expand = nn.Conv2d(4, a, 1)

        def forward(self, x):
            x_se = self.avg_pool(x)
            x_se = self.conv_expand(self.act1(self.conv_reduce(x_se)))
            return x * hard_sigmoid(x_se)

    class Ghost(nn.Module):
        def __init__(self, a, b, relu=True):
            super().__init__()
            self.oup = b
            init = math.ceil(b / 2)
            new = init
            self.primary_conv = nn.Sequential(nn.Conv2d(a, init, 1, 1, 0, bias=False), nn.BatchNorm2d(init),
                                              nn.ReLU(True) if relu else nn.Sequential())
            self.cheap_operation = nn.Sequential(nn.Conv2d(init, new, 3, 1, 1, groups=init, bias=False),
                                                 nn.BatchNorm2d(new), nn.ReLU(True) if relu else nn.Sequential())

        def forward(self, x):
            x1 = self.primary_conv(x)
            return torch.cat([x1, self.cheap_operation(x1)], dim=1)[:, :self.oup, :, :]

    class Bottle(nn.Module):
        def __init__(self, a, mid, b, stride, se):
            super().__init__()
            self.stride = stride
            self.ghost1 = Ghost(a, mid)
            if stride > 1:
                self.conv_dw = nn.Conv2d(mid, mid, 3, stride, 1, groups=mid, bias=False)
                self.bn_dw = nn.BatchNorm2d(mid)
            self.se = SE(mid) if se else None
            self.ghost2 = Ghost(mid, b, False)
            self.shortcut = nn.Sequential() if a == b and stride == 1 else nn.Sequential(nn.Conv2d(a, a, 3, stride, 1,
                    groups=a, bias=False), nn.BatchNorm2d(a), nn.Conv2d(a, b, 1, bias=False), nn.BatchNorm2d(b))

        def forward(self, x):
            residual = x
            x = self.ghost1(x)
            if self.stride > 1:
                x = self.bn_dw(self.conv_dw(x))
            if self.se is not None:
                x = self.se(x)
            x = self.ghost2(x)
            x += self.shortcut(residual)
            return x
    return nn.Sequential(conv_bn(3, 8, 3, 2), Bottle(8, 12, 8, 1, False), Bottle(8, 14, 11, 2, True), nn.Conv2d(11,
            16, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Conv2d(16, 24, 1), nn.ReLU(), nn.Flatten(1), nn.Linear(24,
                    10))


def repvgg():
    class Block(nn.Module):
        def __init__(self, a, b, stride):
            super().__init__()
            self.nonlinearity = nn.ReLU()
            self.rbr_identity = nn.BatchNorm2d(a) if a == b and stride == 1 else None
            self.rbr_dense = conv_bn(a, b, 3, stride, act=None)
            self.rbr_1x1 = conv_bn(a, b, 1, stride, act=None)

        def forward(self, x):
            id_out = 0 if self.rbr_identity is None else self.rbr_identity(x)
            return self.nonlinearity(self.rbr_dense(x) + self.rbr_1x1(x) + id_out)
    return nn.Sequential(Block(3, 8, 2), Block(8, 8, 1), Block(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(16, 10))


def poolformer():
    class Pooling(nn.Module):
        def __init__(self):
            super().__init__()
            self.pool = nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)

        def forward(self, x):
            return self.pool(x) - x

    class Block(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.norm1 = nn.GroupNorm(1, dim)
            self.norm2 = nn.GroupNorm(1, dim)
            self.token_mixer = Pooling()
            self.fc1 = nn.Conv2d(dim, 4 * dim, 1)
            self.fc2 = nn.Conv2d(4 * dim, dim, 1)
            self.layer_scale_1 = nn.Parameter(torch.rand(dim))
            self.layer_scale_2 = nn.Parameter(torch.rand(dim))

        def forward(self, x):
            x = x + self.layer_scale_1.unsqueeze(-1).unsqueeze(-1) * self.token_mixer(self.norm1(x))
            return x + self.layer_scale_2.unsqueeze(-1).unsqueeze(-1) * self.fc2(F.gelu(self.fc1(self.norm2(x))))

    class Net(nn.Module):
        def __init__(self, dim=8):
            super().__init__()
            self.patch_embed = nn.Conv2d(3, dim, 7, 4, 2)
            self.network = nn.Sequential(Block(dim), Block(dim))
            self.norm = nn.GroupNorm(1, dim)
            self.head = nn.Linear(dim, 10)

        def forward(self, x):
            return self.head(self.norm(self.network(self.patch_embed(x))).mean([-2, -1]))
    return Net()


def metaformer_conv():
    """ConvFormer: StarReLU, separable convolutions, channels last"""

    class StarReLU(nn.Module):
        def __init__(self):
            super().__init__()
            self.relu = nn.ReLU(True)
            self.scale = nn.Parameter(torch.ones(1))
            self.bias = nn.Parameter(torch.zeros(1))

        def forward(self, x):
            return self.scale * self.relu(x) ** 2 + self.bias

    class SepConv(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.pwconv1 = nn.Linear(dim, 2 * dim, bias=False)
            self.act1 = StarReLU()
            self.dwconv = nn.Conv2d(2 * dim, 2 * dim, 7, padding=3, groups=2 * dim, bias=False)
            self.pwconv2 = nn.Linear(2 * dim, dim, bias=False)

        def forward(self, x):
            x = self.act1(self.pwconv1(x)).permute(0, 3, 1, 2)
            return self.pwconv2(self.dwconv(x).permute(0, 2, 3, 1))

    class Net(nn.Module):
        def __init__(self, dim=8):
            super().__init__()
            self.stem = nn.Conv2d(3, dim, 7, 4, 2)
            self.norm1 = nn.LayerNorm(dim, 1e-06)
            self.mix = SepConv(dim)
            self.norm2 = nn.LayerNorm(dim, 1e-06)
            self.fc1 = nn.Linear(dim, 4 * dim, bias=False)
            self.act = StarReLU()
            self.fc2 = nn.Linear(4 * dim, dim, bias=False)
            self.head = nn.Linear(dim, 10)

        def forward(self, x):
            x = self.stem(x).permute(0, 2, 3, 1)
            x = x + self.mix(self.norm1(x))
            x = x + self.fc2(self.act(self.fc1(self.norm2(x))))
            return self.head(x.mean((1, 2)))
    return Net()


def eca_net():
    class ECA(nn.Module):
        def __init__(self, k=3):
            super().__init__()
            self.avg_pool = nn.AdaptiveAvgPool2d(1)
            self.conv = nn.Conv1d(1, 1, k, padding=(k - 1) // 2, bias=False)
            self.sigmoid = nn.Sigmoid()

        def forward(self, x):
            y = self.avg_pool(x)
            y = self.conv(y.squeeze(-1).transpose(-1, -2)).transpose(-1, -2).unsqueeze(-1)
            y = self.sigmoid(y)
            return x * y.expand_as(x)
    return nn.Sequential(conv_bn(3, 8, 3, 2), ECA(), conv_bn(8, 8), ECA(), *head(8))


def prelu_net():
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.PReLU(), nn.Conv2d(8, 8, 3, 1, 1), nn.PReLU(8), *head(8))


def res2net():
    class Block(nn.Module):
        def __init__(self, a, scale=4):
            super().__init__()
            self.width = a // scale
            self.scale = scale
            self.conv1 = nn.Conv2d(a, a, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(a)
            self.convs = nn.ModuleList((nn.Conv2d(self.width, self.width, 3, 1, 1, bias=False) for _ in range(scale
                    - 1)))
            self.bns = nn.ModuleList((nn.BatchNorm2d(self.width) for _ in range(scale - 1)))
            self.conv3 = nn.Conv2d(a, a, 1, bias=False)
            self.bn3 = nn.BatchNorm2d(a)

        def forward(self, x):
            out = F.relu(self.bn1(self.conv1(x)))
            spx = torch.split(out, self.width, 1)
            spo, sp = ([], spx[0])
            for i, (conv, bn) in enumerate(zip(self.convs, self.bns)):
                sp = spx[i] if i == 0 else sp + spx[i]
                sp = F.relu(bn(conv(sp)))
                spo.append(sp)
            spo.append(spx[3])
            return F.relu(self.bn3(self.conv3(torch.cat(spo, 1))) + x)
    return nn.Sequential(conv_bn(3, 8, 3, 2), Block(8), Block(8), *head(8))


def cspdarknet():
    act = nn.SiLU

    class C3(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.cv1 = conv_bn(a, b // 2, 1, act=act)
            self.cv2 = conv_bn(a, b // 2, 1, act=act)
            self.cv3 = conv_bn(b, b, 1, act=act)
            self.m = Residual(conv_bn(b // 2, b // 2, 1, act=act), conv_bn(b // 2, b // 2, 3, act=act))

        def forward(self, x):
            return self.cv3(torch.cat((self.m(self.cv1(x)), self.cv2(x)), 1))

    class SPPF(nn.Module):
        def __init__(self, a):
            super().__init__()
            self.cv1 = conv_bn(a, a // 2, 1, act=act)
            self.cv2 = conv_bn(a * 2, a, 1, act=act)
            self.m = nn.MaxPool2d(5, 1, 2)

        def forward(self, x):
            x = self.cv1(x)
            y1 = self.m(x)
            y2 = self.m(y1)
            return self.cv2(torch.cat((x, y1, y2, self.m(y2)), 1))
    return nn.Sequential(conv_bn(3, 8, 6 - 1, 2, act=act), C3(8, 8), conv_bn(8, 16, 3, 2, act=act), SPPF(16),
                         *head(16))


def ibn_instance():
    class IBN(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.half = c // 2
            self.IN = nn.InstanceNorm2d(c // 2, affine=True)
            self.BN = nn.BatchNorm2d(c - c // 2)

        def forward(self, x):
            a, b = torch.split(x, self.half, 1)
            return torch.cat((self.IN(a.contiguous()), self.BN(b.contiguous())), 1)
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), IBN(8), nn.ReLU(), *head(8))


def lightcnn_mfm():
    class MFM(nn.Module):
        def __init__(self, a, b, k=3, s=1, p=1):
            super().__init__()
            self.filter = nn.Conv2d(a, 2 * b, k, s, p)
            self.b = b

        def forward(self, x):
            x = self.filter(x)
            a, b = torch.split(x, self.b, 1)
            return torch.max(a, b)
    return nn.Sequential(MFM(3, 8), nn.MaxPool2d(2, 2, ceil_mode=True), MFM(8, 8), *head(8))


def unet_nearest():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = conv_bn(3, 8)
            self.b = conv_bn(8, 16)
            self.c = conv_bn(24, 8)
            self.up = nn.Upsample(scale_factor=2, mode="nearest")
            self.out = nn.Conv2d(8, 2, 1)

        def forward(self, x):
            a = self.a(x)
            return self.out(self.c(torch.cat([a, self.up(self.b(F.max_pool2d(a, 2)))], 1)))
    return Net()


# ---- vision transformers ----


class TBlock(nn.Module):
    def __init__(self, dim, heads=3, mlp=Mlp):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, 1e-06)
        self.attn = Attention(dim, heads)
        self.norm2 = nn.LayerNorm(dim, 1e-06)
        self.mlp = mlp(dim, 2 * dim)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


def simple_vit():
    """lucidrains' SimpleViT: einops Rearrange as reshape and permute, fixed sincos positions"""

    class Net(nn.Module):
        def __init__(self, dim=12):
            super().__init__()
            self.n1 = nn.LayerNorm(48)
            self.proj = nn.Linear(48, dim)
            self.n2 = nn.LayerNorm(dim)
            self.register_buffer("pe", torch.randn(16, dim))
            self.blocks = nn.Sequential(TBlock(dim), TBlock(dim))
            self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 10))

        def forward(self, x):
            b = x.shape[0]
            x = x.view(b, 3, 4, 4, 4, 4).permute(0, 2, 4, 3, 5, 1).reshape(b, 16, 48)
            x = self.n2(self.proj(self.n1(x))) + self.pe
            return self.head(self.blocks(x).mean(dim=1))
    return Net()


def gmlp_conv1d():
    """the paper's: the spatial projection is a Conv1d of kernel 1 over tokens"""

    class SGU(nn.Module):
        def __init__(self, d_ffn, seq_len):
            super().__init__()
            self.norm = nn.LayerNorm(d_ffn)
            self.spatial_proj = nn.Conv1d(seq_len, seq_len, kernel_size=1)

        def forward(self, x):
            u, v = x.chunk(2, dim=-1)
            return u * self.spatial_proj(self.norm(v))

    class Block(nn.Module):
        def __init__(self, dim, tokens):
            super().__init__()
            self.norm = nn.LayerNorm(dim)
            self.fc1 = nn.Linear(dim, 24)
            self.gate = SGU(12, tokens)
            self.fc2 = nn.Linear(12, dim)

        def forward(self, x):
            return x + self.fc2(self.gate(F.gelu(self.fc1(self.norm(x)))))
    return nn.Sequential(PatchEmbed(4, 12), Block(12, 16), Block(12, 16), MeanTokens(), nn.Linear(12, 10))


def cvt():
    """depthwise convolutions as projections of q, k and v"""

    class Attn(nn.Module):
        def __init__(self, dim, heads=3):
            super().__init__()
            dw = lambda: nn.Sequential(nn.Conv2d(dim, dim, 3, padding=1, groups=dim, bias=False), nn.BatchNorm2d(dim))
            self.cq = dw()
            self.ck = dw()
            self.cv = dw()
            self.q = nn.Linear(dim, dim)
            self.k = nn.Linear(dim, dim)
            self.v = nn.Linear(dim, dim)
            self.proj = nn.Linear(dim, dim)
            self.heads = heads

        def forward(self, x, h, w):
            B, N, C = x.shape
            y = x.transpose(1, 2).reshape(B, C, h, w)
            q, k, v = (p(c(y).flatten(2).transpose(1, 2)).view(B, N, self.heads, -1).transpose(1, 2) for p,
                       c in ((self.q, self.cq), (self.k, self.ck), (self.v, self.cv)))
            a = (q @ k.transpose(-2, -1) * (C // self.heads) ** (-0.5)).softmax(-1)
            return self.proj((a @ v).transpose(1, 2).reshape(B, N, C))

    class Net(nn.Module):
        def __init__(self, dim=12):
            super().__init__()
            self.patch = nn.Conv2d(3, dim, 7, 4, 2)
            self.norm = nn.LayerNorm(dim)
            self.attn = Attn(dim)
            self.norm2 = nn.LayerNorm(dim)
            self.mlp = Mlp(dim, 24)
            self.head = nn.Linear(dim, 10)

        def forward(self, x):
            x = self.patch(x).flatten(2).transpose(1, 2)
            x = x + self.attn(self.norm(x), 4, 4)
            x = x + self.mlp(self.norm2(x))
            return self.head(x.mean(1))
    return Net()


def coatnet():
    """MBConv stages, then attention over pixels without relative bias"""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.s0 = nn.Sequential(conv_bn(3, 8, 3, 2, act=nn.GELU), conv_bn(8, 8, act=nn.GELU))
            self.s1 = nn.Sequential(nn.BatchNorm2d(8), conv_bn(8, 16, 1, act=nn.GELU), conv_bn(16, 16, 3, 2, 16,
                    nn.GELU), SqueezeExcitation(16, 4, nn.GELU), nn.Conv2d(16, 12, 1))
            self.block = TBlock(12)
            self.norm = nn.LayerNorm(12)
            self.head = nn.Linear(12, 10)

        def forward(self, x):
            x = self.s1(self.s0(x))
            n, c, h, w = x.shape
            x = self.block(x.flatten(2).transpose(1, 2))
            x = self.norm(x).transpose(1, 2).reshape(n, c, h, w)
            return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))
    return Net()


def conv_stem_vit():
    """CLIP: a norm before the blocks, QuickGELU, MultiheadAttention with the batch in dimension 1"""

    class QuickGELU(nn.Module):
        def forward(self, x):
            return x * torch.sigmoid(1.702 * x)

    class Block(nn.Module):
        def __init__(self, d, heads=3):
            super().__init__()
            self.attn = nn.MultiheadAttention(d, heads)
            self.ln_1 = nn.LayerNorm(d)
            self.ln_2 = nn.LayerNorm(d)
            self.c_fc = nn.Linear(d, 4 * d)
            self.gelu = QuickGELU()
            self.c_proj = nn.Linear(4 * d, d)

        def forward(self, x):
            y = self.ln_1(x)
            x = x + self.attn(y, y, y, need_weights=False, attn_mask=None)[0]
            return x + self.c_proj(self.gelu(self.c_fc(self.ln_2(x))))

    class Net(nn.Module):
        def __init__(self, d=12):
            super().__init__()
            self.conv1 = nn.Conv2d(3, d, 4, 4, bias=False)
            self.class_embedding = nn.Parameter(torch.randn(d))
            self.positional_embedding = nn.Parameter(torch.randn(17, d))
            self.ln_pre = nn.LayerNorm(d)
            self.blocks = nn.Sequential(Block(d), Block(d))
            self.ln_post = nn.LayerNorm(d)
            self.proj = nn.Parameter(torch.randn(d, 10))

        def forward(self, x):
            x = self.conv1(x)
            x = x.reshape(x.shape[0], x.shape[1], -1).permute(0, 2, 1)
            x = torch.cat([self.class_embedding.to(x.dtype) + torch.zeros(x.shape[0], 1, x.shape[-1], dtype=x.dtype),
                           x], dim=1)
            x = self.ln_pre(x + self.positional_embedding.to(x.dtype))
            x = self.blocks(x.permute(1, 0, 2)).permute(1, 0, 2)
            return self.ln_post(x[:, 0, :]) @ self.proj
    return Net()


def bot_net():
    """Bottleneck transformer / non-local block without normalisation by convolution"""

    class NonLocal(nn.Module):
        def __init__(self, c, d=6):
            super().__init__()
            self.theta = nn.Conv2d(c, d, 1)
            self.phi = nn.Conv2d(c, d, 1)
            self.g = nn.Conv2d(c, d, 1)
            self.out = nn.Conv2d(d, c, 1)
            self.d = d

        def forward(self, x):
            n = x.size(0)
            t = self.theta(x).view(n, self.d, -1).permute(0, 2, 1)
            p = self.phi(x).view(n, self.d, -1)
            g = self.g(x).view(n, self.d, -1).permute(0, 2, 1)
            y = torch.matmul(F.softmax(torch.matmul(t, p), dim=-1), g)
            y = y.permute(0, 2, 1).contiguous().view(n, self.d, *x.size()[2:])
            return x + self.out(y)
    return nn.Sequential(conv_bn(3, 8, 3, 2), NonLocal(8), *head(8))


def cait():
    class TalkingHead(nn.Module):
        def __init__(self, dim, heads=3):
            super().__init__()
            self.heads = heads
            self.scale = (dim // heads) ** (-0.5)
            self.qkv = nn.Linear(dim, 3 * dim)
            self.proj = nn.Linear(dim, dim)
            self.proj_l = nn.Linear(heads, heads)
            self.proj_w = nn.Linear(heads, heads)

        def forward(self, x):
            B, N, C = x.shape
            qkv = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
            q, k, v = (qkv[0] * self.scale, qkv[1], qkv[2])
            attn = q @ k.transpose(-2, -1)
            attn = self.proj_l(attn.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
            attn = attn.softmax(dim=-1)
            attn = self.proj_w(attn.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
            x = (attn @ v).transpose(1, 2).reshape(B, N, C)
            return self.proj(x)

    class Net(nn.Module):
        def __init__(self, dim=12):
            super().__init__()
            self.patch = PatchEmbed(4, dim)
            self.attn = TalkingHead(dim)
            self.head = nn.Linear(dim, 10)

        def forward(self, x):
            x = self.patch(x)
            return self.head((x + self.attn(x)).mean(1))
    return Net()


# ---- text ----


def distilbert():
    class Attn(nn.Module):
        def __init__(self, dim, heads=3):
            super().__init__()
            self.n_heads = heads
            self.dim = dim
            self.q_lin = nn.Linear(dim, dim)
            self.k_lin = nn.Linear(dim, dim)
            self.v_lin = nn.Linear(dim, dim)
            self.out_lin = nn.Linear(dim, dim)

        def forward(self, x):
            bs, n, dim = x.size()
            d = dim // self.n_heads
            shape = lambda t: t.view(bs, -1, self.n_heads, d).transpose(1, 2)
            q, k, v = (shape(self.q_lin(x)), shape(self.k_lin(x)), shape(self.v_lin(x)))
            q = q / math.sqrt(d)
            w = nn.functional.softmax(torch.matmul(q, k.transpose(2, 3)), dim=-1)
            c = torch.matmul(w, v)
            return self.out_lin(c.transpose(1, 2).contiguous().view(bs, -1, self.n_heads * d))

    class Block(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.attention = Attn(dim)
            self.sa_layer_norm = nn.LayerNorm(dim, 1e-12)
            self.lin1 = nn.Linear(dim, 24)
            self.lin2 = nn.Linear(24, dim)
            self.output_layer_norm = nn.LayerNorm(dim, 1e-12)

        def forward(self, x):
            x = self.sa_layer_norm(self.attention(x) + x)
            return self.output_layer_norm(self.lin2(F.gelu(self.lin1(x))) + x)

    class Net(nn.Module):
        def __init__(self, dim=12):
            super().__init__()
            self.word_embeddings = nn.Embedding(30, dim, padding_idx=0)
            self.position_embeddings = nn.Embedding(16, dim)
            self.LayerNorm = nn.LayerNorm(dim, 1e-12)
            self.layer = nn.Sequential(Block(dim), Block(dim))
            self.pre_classifier = nn.Linear(dim, dim)
            self.classifier = nn.Linear(dim, 2)

        def forward(self, ids):
            seq = ids.size(1)
            position_ids = torch.arange(seq, dtype=torch.long, device=ids.device).unsqueeze(0).expand_as(ids)
            x = self.LayerNorm(self.word_embeddings(ids) + self.position_embeddings(position_ids))
            x = self.layer(x)[:, 0]
            return self.classifier(F.dropout(F.relu(self.pre_classifier(x)), 0.2, False))
    return Net()


def distilbert_masked():
    """as exported with attention_mask computed inside: ones"""

    class Net(nn.Module):
        def __init__(self, dim=12):
            super().__init__()
            self.inner = distilbert()

        def forward(self, ids):
            mask = torch.ones(ids.shape)
            x = self.inner.LayerNorm(self.inner.word_embeddings(ids))
            a = self.inner.layer[0].attention
            bs, n, dim = x.size()
            shape = lambda t: t.view(bs, -1, 3, 4).transpose(1, 2)
            q, k, v = (shape(a.q_lin(x)), shape(a.k_lin(x)), shape(a.v_lin(x)))
            scores = torch.matmul(q / 2.0, k.transpose(2, 3))
            m = (mask == 0).view(bs, 1, 1, n).expand_as(scores)
            scores = scores.masked_fill(m, torch.tensor(torch.finfo(scores.dtype).min))
            c = torch.matmul(F.softmax(scores, -1), v)
            return self.inner.classifier(a.out_lin(c.transpose(1, 2).contiguous().view(bs, -1, 12))[:, 0])
    return Net()


def albert():
    class Net(nn.Module):
        def __init__(self, dim=12):
            super().__init__()
            self.embeddings = BertEmbeddings(6)
            self.map = nn.Linear(6, dim)
            self.layer = BertLayer(dim)
            self.pooler = nn.Linear(dim, dim)
            self.classifier = nn.Linear(dim, 3)

        def forward(self, ids):
            x = self.map(self.embeddings(ids))
            for _ in range(3):
                x = self.layer(x)
            return self.classifier(torch.tanh(self.pooler(x[:, 0])))
    return Net()


def squeezebert():
    """Conv1d of kernel 1 with groups, channels first, LayerNorm by permute"""

    class SBLN(nn.LayerNorm):
        def forward(self, x):
            return nn.LayerNorm.forward(self, x.permute(0, 2, 1)).permute(0, 2, 1)

    class Attn(nn.Module):
        def __init__(self, cin, heads=3, groups=2):
            super().__init__()
            self.heads = heads
            self.d = cin // heads
            self.query, self.key, self.value = (nn.Conv1d(cin, cin, 1, groups=groups) for _ in range(3))

        def forward(self, x):
            tr = lambda t: t.view(t.size()[0], self.heads, self.d, t.size()[-1]).permute(0, 1, 3, 2)
            trk = lambda t: t.view(t.size()[0], self.heads, self.d, t.size()[-1])
            q, k, v = (tr(self.query(x)), trk(self.key(x)), tr(self.value(x)))
            p = F.softmax(torch.matmul(q, k) / math.sqrt(self.d), -1)
            y = torch.matmul(p, v).permute(0, 1, 3, 2).contiguous()
            return y.view(y.size()[0], self.heads * self.d, y.size()[-1])

    class Layer(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.attention = Attn(dim)
            self.c1 = nn.Conv1d(dim, dim, 1)
            self.l1 = SBLN(dim, 1e-12)
            self.c2 = nn.Conv1d(dim, 24, 1, groups=2)
            self.c3 = nn.Conv1d(24, dim, 1, groups=2)
            self.l3 = SBLN(dim, 1e-12)

        def forward(self, x):
            x = self.l1(self.c1(self.attention(x)) + x)
            return self.l3(self.c3(F.gelu(self.c2(x))) + x)

    class Net(nn.Module):
        def __init__(self, dim=12):
            super().__init__()
            self.embeddings = BertEmbeddings(dim)
            self.layer = Layer(dim)
            self.classifier = nn.Linear(dim, 3)

        def forward(self, ids):
            x = self.layer(self.embeddings(ids).permute(0, 2, 1)).permute(0, 2, 1)
            return self.classifier(x[:, 0])
    return Net()


class Conv1D(nn.Module):
    def __init__(self, nf, nx):
        super().__init__()
        self.nf = nf
        self.weight = nn.Parameter(torch.randn(nx, nf) / 4)
        self.bias = nn.Parameter(torch.zeros(nf))

    def forward(self, x):
        size_out = x.size()[:-1] + (self.nf,)
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(size_out)


def gpt2_classifier():
    """GPT2ForSequenceClassification: last token; where mask as of transformers 4.2x"""

    class Block(nn.Module):
        def __init__(self, d, heads=3):
            super().__init__()
            self.ln_1 = nn.LayerNorm(d)
            self.ln_2 = nn.LayerNorm(d)
            self.heads = heads
            self.c_attn = Conv1D(3 * d, d)
            self.c_proj = Conv1D(d, d)
            self.c_fc = Conv1D(4 * d, d)
            self.m_proj = Conv1D(d, 4 * d)
            self.register_buffer("bias", torch.tril(torch.ones((16, 16), dtype=torch.uint8)).view(1, 1, 16, 16))
            self.register_buffer("masked_bias", torch.tensor(-10000.0))

        def forward(self, x):
            y = self.ln_1(x)
            q, k, v = self.c_attn(y).split(12, dim=2)
            sp = lambda t: t.view(t.size()[:-1] + (self.heads, 4)).permute(0, 2, 1, 3)
            q, k, v = (sp(q), sp(k), sp(v))
            w = torch.matmul(q, k.transpose(-1, -2))
            w = w / torch.full([], v.size(-1) ** 0.5, dtype=w.dtype)
            ql, kl = (q.size(-2), k.size(-2))
            causal = self.bias[:, :, kl - ql:kl, :kl].to(torch.bool)
            w = torch.where(causal, w, self.masked_bias.to(w.dtype))
            w = F.softmax(w, dim=-1)
            y = torch.matmul(w, v).permute(0, 2, 1, 3).contiguous()
            x = x + self.c_proj(y.view(y.size()[:-2] + (12,)))
            y = self.c_fc(self.ln_2(x))
            y = 0.5 * y * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (y + 0.044715 * torch.pow(y, 3.0))))
            return x + self.m_proj(y)

    class Net(nn.Module):
        def __init__(self, d=12):
            super().__init__()
            self.wte = nn.Embedding(30, d)
            self.wpe = nn.Embedding(16, d)
            self.h = nn.Sequential(Block(d), Block(d))
            self.ln_f = nn.LayerNorm(d)
            self.score = nn.Linear(d, 3, bias=False)

        def forward(self, ids):
            shape = ids.size()
            ids = ids.view(-1, shape[-1])
            pos = torch.arange(0, shape[-1], dtype=torch.long).unsqueeze(0).view(-1, shape[-1])
            x = self.ln_f(self.h(self.wte(ids) + self.wpe(pos)))
            x = x.view(shape + (x.size(-1),))
            return self.score(x)[:, -1]
    return Net()


def rotate_half(x):
    x1, x2 = (x[..., :x.shape[-1] // 2], x[..., x.shape[-1] // 2:])
    return torch.cat((-x2, x1), dim=-1)


def rope(T, width, base=10000.0):
    inv = 1.0 / base ** (torch.arange(0, width, 2).float() / width)
    f = torch.einsum("i,j->ij", torch.arange(T).float(), inv)
    e = torch.cat((f, f), dim=-1)
    return (e.cos()[None, None], e.sin()[None, None])


def plain_mlp(act, bias=True):
    class M(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.fc1 = nn.Linear(d, 24, bias=bias)
            self.fc2 = nn.Linear(24, d, bias=bias)

        def forward(self, x):
            return self.fc2(act(self.fc1(x)))
    return M


class DecoderAttention(nn.Module):
    def __init__(self, d, heads=3, kv=3, bias=True, partial=1.0, o_bias=False, base=10000.0, T=8, width=None):
        super().__init__()
        self.heads = heads
        self.kv = kv
        self.w = width or d // heads
        self.rot = int(self.w * partial)
        self.q_proj = nn.Linear(d, heads * self.w, bias=bias)
        self.k_proj = nn.Linear(d, kv * self.w, bias=bias)
        self.v_proj = nn.Linear(d, kv * self.w, bias=bias)
        self.o_proj = nn.Linear(heads * self.w, d, bias=o_bias)
        c, s = rope(T, self.rot, base)
        self.register_buffer("cos", c)
        self.register_buffer("sin", s)
        self.register_buffer("mask", torch.triu(torch.full((T, T), torch.finfo(torch.float32).min), 1)[None, None])

    def turn(self, x):
        if self.rot == self.w:
            return x * self.cos + rotate_half(x) * self.sin
        a, b = (x[..., :self.rot], x[..., self.rot:])
        return torch.cat((a * self.cos + rotate_half(a) * self.sin, b), dim=-1)

    def forward(self, x):
        b, t, _ = x.size()
        q = self.turn(self.q_proj(x).view(b, t, self.heads, self.w).transpose(1, 2))
        k = self.turn(self.k_proj(x).view(b, t, self.kv, self.w).transpose(1, 2))
        v = self.v_proj(x).view(b, t, self.kv, self.w).transpose(1, 2)
        n = self.heads // self.kv
        if n > 1:
            k, v = (z[:, :, None, :, :].expand(b, self.kv, n, t, self.w).reshape(b, self.heads, t, self.w)
                    for z in (k, v))
        a = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.w)
        a = F.softmax(a + self.mask, dim=-1, dtype=torch.float32).to(q.dtype)
        y = torch.matmul(a, v).transpose(1, 2).contiguous().reshape(b, t, self.heads * self.w)
        return self.o_proj(y)


def decoder(attention, norm, mlp, d=12, tie=False, parallel=False, scale=None):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.input_layernorm = norm(d)
            self.self_attn = attention()
            self.post = norm(d)
            self.mlp = mlp(d)

        def forward(self, x):
            if parallel:
                return x + self.self_attn(self.input_layernorm(x)) + self.mlp(self.post(x))
            x = x + self.self_attn(self.input_layernorm(x))
            return x + self.mlp(self.post(x))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed_tokens = nn.Embedding(30, d)
            self.layers = nn.Sequential(Block(), Block())
            self.norm = norm(d)
            self.lm_head = nn.Linear(d, 30, bias=False)
            if tie:
                self.lm_head.weight = self.embed_tokens.weight

        def forward(self, ids):
            x = self.embed_tokens(ids)
            if scale:
                x = x * scale
            return self.lm_head(self.norm(self.layers(x)))
    return Net()


class HfRMSNorm(nn.Module):
    """LlamaRMSNorm of transformers"""

    def __init__(self, d, eps=1e-06):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.variance_epsilon = eps

    def forward(self, h):
        t = h.dtype
        h = h.to(torch.float32)
        variance = h.pow(2).mean(-1, keepdim=True)
        h = h * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * h.to(t)


class GemmaRMSNorm(nn.Module):
    def __init__(self, d, eps=1e-06):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(d))

    def forward(self, x):
        out = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)
        return (out * (1.0 + self.weight.float())).type_as(x)


def gated(act):
    class M(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.gate_proj = nn.Linear(d, 20, bias=False)
            self.up_proj = nn.Linear(d, 20, bias=False)
            self.down_proj = nn.Linear(20, d, bias=False)

        def forward(self, x):
            return self.down_proj(act(self.gate_proj(x)) * self.up_proj(x))
    return M


def qwen2():
    return decoder(lambda: DecoderAttention(16, 4, 2, True, base=1000000.0), HfRMSNorm, gated(F.silu), 16)


def gemma():
    return decoder(lambda: DecoderAttention(12, 3, 1, False), GemmaRMSNorm,
                   gated(lambda x: F.gelu(x, approximate="tanh")), 12, tie=True, scale=12 ** 0.5)


def gpt_neox():
    return decoder(lambda: DecoderAttention(16, 2, 2, True, 0.25 * 2, True), nn.LayerNorm, plain_mlp(F.gelu), 16,
                   parallel=True)


def t5_encoder():
    class Attn(nn.Module):
        def __init__(self, d=12, heads=3):
            super().__init__()
            self.h = heads
            self.w = d // heads
            self.q = nn.Linear(d, d, bias=False)
            self.k = nn.Linear(d, d, bias=False)
            self.v = nn.Linear(d, d, bias=False)
            self.o = nn.Linear(d, d, bias=False)
            self.rel = nn.Embedding(15, heads)

        def forward(self, x):
            b, n, d = x.shape
            sp = lambda t: t.view(b, -1, self.h, self.w).transpose(1, 2)
            s = torch.matmul(sp(self.q(x)), sp(self.k(x)).transpose(3, 2))
            c = torch.arange(n, dtype=torch.long)
            bias = self.rel(c[None, :] - c[:, None] + 7).permute([2, 0, 1]).unsqueeze(0)
            s = s + bias
            y = torch.matmul(F.softmax(s.float(), dim=-1).type_as(s), sp(self.v(x)))
            return self.o(y.transpose(1, 2).contiguous().view(b, -1, d))
    return decoder(Attn, HfRMSNorm, gated(NewGELU()), 12)


def hf_clip_text():
    class Attn(nn.Module):
        def __init__(self, d=12, heads=3):
            super().__init__()
            self.h = heads
            self.w = d // heads
            self.scale = (d // heads) ** (-0.5)
            self.k_proj, self.v_proj, self.q_proj, self.out_proj = (nn.Linear(d, d) for _ in range(4))

        def _shape(self, t, n, b):
            return t.view(b, n, self.h, self.w).transpose(1, 2).contiguous()

        def forward(self, x, mask):
            b, n, d = x.size()
            q = self.q_proj(x) * self.scale
            k, v = (self._shape(self.k_proj(x), -1, b), self._shape(self.v_proj(x), -1, b))
            s = (b * self.h, -1, self.w)
            q, k, v = (self._shape(q, n, b).view(*s), k.view(*s), v.view(*s))
            a = torch.bmm(q, k.transpose(1, 2))
            a = a.view(b, self.h, n, n) + mask
            a = F.softmax(a.view(b * self.h, n, n), dim=-1)
            y = torch.bmm(a, v).view(b, self.h, n, self.w).transpose(1, 2).reshape(b, n, d)
            return self.out_proj(y)

    class Net(nn.Module):
        def __init__(self, d=12):
            super().__init__()
            self.e = nn.Embedding(30, d)
            self.p = nn.Embedding(8, d)
            self.a = Attn(d)
            self.n1 = nn.LayerNorm(d)
            self.n2 = nn.LayerNorm(d)
            self.f1 = nn.Linear(d, 24)
            self.f2 = nn.Linear(24, d)
            self.o = nn.Linear(d, 5, bias=False)
            self.register_buffer("ids", torch.arange(8).expand((1, -1)))

        def forward(self, ids):
            x = self.e(ids) + self.p(self.ids[:, :ids.shape[-1]])
            b, n = ids.shape
            mask = torch.full((n, n), torch.finfo(x.dtype).min)
            mask = torch.triu(mask, diagonal=1).unsqueeze(0).expand(b, 1, n, n)
            x = x + self.a(self.n1(x), mask)
            y = self.f1(self.n2(x))
            return self.o((x + self.f2(y * torch.sigmoid(1.702 * y)))[:, -1])
    return Net()


def mamba_conv():
    """the short causal depthwise convolution of Mamba, cut at the end, with a SiLU gate"""

    class Net(nn.Module):
        def __init__(self, d=8):
            super().__init__()
            self.e = nn.Embedding(30, d)
            self.inp = nn.Linear(d, 32)
            self.conv = nn.Conv1d(16, 16, 4, groups=16, padding=3)
            self.out = nn.Linear(16, d)
            self.h = nn.Linear(d, 4)

        def forward(self, ids):
            x, z = self.inp(self.e(ids)).chunk(2, dim=-1)
            x = F.silu(self.conv(x.transpose(1, 2))[..., :8]).transpose(1, 2)
            return self.h(self.out(x * F.silu(z)).mean(1))
    return Net()


# ---- signals, points and tables ----


def resnet1d():
    class Block(nn.Module):
        def __init__(self, a, b, stride):
            super().__init__()
            self.conv1 = nn.Conv1d(a, b, 7, stride, 3, bias=False)
            self.bn1 = nn.BatchNorm1d(b)
            self.conv2 = nn.Conv1d(b, b, 7, 1, 3, bias=False)
            self.bn2 = nn.BatchNorm1d(b)
            self.down = nn.Sequential(nn.Conv1d(a, b, 1, stride, bias=False),
                                      nn.BatchNorm1d(b)) if stride > 1 or a != b else nn.Identity()

        def forward(self, x):
            return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.down(x))
    return nn.Sequential(nn.Conv1d(2, 8, 15, 2, 7, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.MaxPool1d(3, 2, 1),
                         Block(8, 8, 1), Block(8, 16, 2), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 5))


def tcn():
    class Chomp1d(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.n = n

        def forward(self, x):
            return x[:, :, :-self.n].contiguous()

    class Block(nn.Module):
        def __init__(self, a, b, d, k=3):
            super().__init__()
            pad = (k - 1) * d
            self.net = nn.Sequential(nn.utils.weight_norm(nn.Conv1d(a, b, k, padding=pad, dilation=d)), Chomp1d(pad),
                                     nn.ReLU(), nn.Dropout(0.2),
                                     nn.utils.weight_norm(nn.Conv1d(b, b, k, padding=pad, dilation=d)), Chomp1d(pad),
                                     nn.ReLU(), nn.Dropout(0.2))
            self.downsample = nn.Conv1d(a, b, 1) if a != b else None

        def forward(self, x):
            return F.relu(self.net(x) + (x if self.downsample is None else self.downsample(x)))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.tcn = nn.Sequential(Block(2, 8, 1), Block(8, 8, 2), Block(8, 8, 4))
            self.linear = nn.Linear(8, 5)

        def forward(self, x):
            return self.linear(self.tcn(x)[:, :, -1])
    return Net()


def tcn_pad():
    class Causal(nn.Module):
        def __init__(self, a, b, k, d):
            super().__init__()
            self.pad = (k - 1) * d
            self.conv = nn.Conv1d(a, b, k, dilation=d)

        def forward(self, x):
            return self.conv(F.pad(x, (self.pad, 0)))
    return nn.Sequential(Causal(2, 8, 3, 1), nn.ReLU(), Causal(8, 8, 3, 2), nn.ReLU(), Causal(8, 8, 2, 4), nn.ReLU(),
                         nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(8, 5))


def wavenet_valid():
    """the original: convolutions without padding, the residual is cut"""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv1d(2, 8, 1)
            self.f = nn.Conv1d(8, 8, 2, dilation=2)
            self.g = nn.Conv1d(8, 8, 2, dilation=2)
            self.r = nn.Conv1d(8, 8, 1)
            self.head = nn.Linear(8, 5)

        def forward(self, x):
            x = self.first(x)
            y = self.r(torch.tanh(self.f(x)) * torch.sigmoid(self.g(x)))
            x = y + x[:, :, -y.size(2):]
            return self.head(x.mean(-1))
    return Net()


def pointnet():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv1d(3, 8, 1)
            self.conv2 = nn.Conv1d(8, 16, 1)
            self.bn1 = nn.BatchNorm1d(8)
            self.bn2 = nn.BatchNorm1d(16)
            self.fc1 = nn.Linear(16, 12)
            self.fc2 = nn.Linear(12, 5)
            self.bn3 = nn.BatchNorm1d(12)

        def forward(self, x):
            x = F.relu(self.bn1(self.conv1(x)))
            x = self.bn2(self.conv2(x))
            x = torch.max(x, 2, keepdim=True)[0]
            x = x.view(-1, 16)
            return self.fc2(F.relu(self.bn3(self.fc1(x))))
    return Net()


def deepsets():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.phi = nn.Sequential(nn.Linear(6, 16), nn.ELU(), nn.Linear(16, 16))
            self.rho = nn.Sequential(nn.Linear(16, 8), nn.ELU(), nn.Linear(8, 5))

        def forward(self, x):
            return self.rho(self.phi(x).mean(1))
    return Net()


def deepsets_sum():
    net = deepsets()
    net.forward = lambda x: net.rho(net.phi(x).sum(1))
    return net


def conformer_block():
    class Conv(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.norm = nn.LayerNorm(d)
            self.p1 = nn.Conv1d(d, 2 * d, 1)
            self.dw = nn.Conv1d(d, d, 5, padding=2, groups=d)
            self.bn = nn.BatchNorm1d(d)
            self.p2 = nn.Conv1d(d, d, 1)

        def forward(self, x):
            y = F.glu(self.p1(self.norm(x).transpose(1, 2)), dim=1)
            return x + self.p2(F.silu(self.bn(self.dw(y)))).transpose(1, 2)

    class Net(nn.Module):
        def __init__(self, d=12):
            super().__init__()
            self.inp = nn.Linear(6, d)
            self.ff = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 24), nn.SiLU(), nn.Linear(24, d))
            self.attn = Attention(d, 3)
            self.conv = Conv(d)
            self.norm = nn.LayerNorm(d)
            self.head = nn.Linear(d, 4)

        def forward(self, x):
            x = self.inp(x)
            x = x + 0.5 * self.ff(x)
            x = x + self.attn(self.norm(x))
            return self.head(self.norm(self.conv(x)).mean(1))
    return Net()


def log_softmax_head():
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(approximate="tanh"), nn.Linear(16, 3), nn.LogSoftmax(dim=-1))


def snn():
    return nn.Sequential(nn.Linear(8, 16), nn.SELU(), nn.AlphaDropout(0.1), nn.Linear(16, 16), nn.SELU(),
                         nn.Linear(16, 3))


for make in resnext, inception_v3, xception, tf_efficientnet_same, ghostnet, repvgg:
    case(make, (3, 32, 32))
for make in metaformer_conv, eca_net, prelu_net, res2net, cspdarknet, ibn_instance, lightcnn_mfm:
    case(make, (3, 32, 32))
for make in simple_vit, gmlp_conv1d, cvt, coatnet, conv_stem_vit, bot_net:
    case(make, (3, 16, 16))
for make in distilbert, distilbert_masked, albert, squeezebert, gpt2_classifier, hf_clip_text, mamba_conv, qwen2, gemma:
    case(make, (8,), 30)
for make in resnet1d, tcn, tcn_pad, wavenet_valid:
    case(make, (2, 64))
case(pointnet, (3, 20))
for make in deepsets, deepsets_sum, conformer_block:
    case(make, (10, 6))
case(snn, (8,))


# the batch is that of the example, as without dynamic_axes: what is repeated for it becomes a constant
def vit_fixed():
    return vit()


def convnext_opset_9():
    return convnext()


def bert_fixed():
    return bert()


case(vit_fixed, (3, 16, 16), dynamic=False)
case(bert_fixed, (8,), 30, dynamic=False)
case(convnext_opset_9, (3, 32, 32), opset=9)
case(poolformer, (3, 32, 32))
case(cait, (3, 16, 16))
case(gpt_neox, (8,), 30)
case(t5_encoder, (8,), 30)
case(unet_nearest, (3, 12, 12))
case(log_softmax_head, (8,))
