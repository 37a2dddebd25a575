# SPDX-License-Identifier: MIT-0
# torch_models.py: small models written after the published structure of torchvision's, timm's, diffusers' and others' (torch_networks.py
# has Hugging Face's), for torch_refit_models.py. Each function at the end returns a model and its batches.
import math
from collections import OrderedDict, namedtuple
import torch
from torch import nn
from torch.nn import functional as F


def normal(*shape):
    return torch.randn(*shape)


def batches(size, *shape, batch=16):
    return list(torch.randn(size, *shape).split(batch))


def trained(net):
    """Running statistics, scales and shifts that are not those of the beginning."""
    for m in net.modules():
        if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.running_mean is not None:
            m.running_mean.normal_(0, 0.3)
            m.running_var.uniform_(0.5, 2)
            if m.affine:
                m.weight.data.uniform_(0.5, 1.5)
                m.bias.data.normal_(0, 0.3)
    return net


class StochasticDepth(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        return x * torch.empty([x.shape[0]] + [1] * (x.ndim - 1)).bernoulli_(1 - self.p)


# ---- torchvision: ResNet, EfficientNet, MobileNetV3, ConvNeXt, VisionTransformer ----

class BasicBlock(nn.Module):
    def __init__(self, inplanes, planes, act, stride=1, downsample=None):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False), nn.BatchNorm2d(planes)
        self.act, self.downsample = act(), downsample

    def forward(self, x):
        identity = x
        out = self.act(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.act(out)


class ResNet(nn.Module):
    def __init__(self, act, width=8):
        super().__init__()
        self.conv1, self.bn1, self.act = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), act()
        self.maxpool, self.avgpool = nn.MaxPool2d(3, 2, 1), nn.AdaptiveAvgPool2d((1, 1))
        down = nn.Sequential(nn.Conv2d(width, 2 * width, 1, 2, bias=False), nn.BatchNorm2d(2 * width))
        self.layer1 = nn.Sequential(BasicBlock(width, width, act), BasicBlock(width, width, act))
        self.layer2 = nn.Sequential(BasicBlock(width, 2 * width, act, 2, down), BasicBlock(2 * width, 2 * width, act))
        self.fc = nn.Linear(2 * width, 10)

    def forward(self, x):
        x = self.layer2(self.layer1(self.maxpool(self.act(self.bn1(self.conv1(x))))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class ConvNormActivation(nn.Sequential):
    def __init__(self, inputs, outputs, kernel, act, stride=1, groups=1):
        layers = [nn.Conv2d(inputs, outputs, kernel, stride, (kernel - 1) // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]
        super().__init__(*layers, *([act(inplace=True)] if act else []))


class SqueezeExcitation(nn.Module):
    def __init__(self, channels, squeeze, activation, scale_activation):
        super().__init__()
        self.avgpool, self.activation, self.scale_activation = nn.AdaptiveAvgPool2d(1), activation(), scale_activation()
        self.fc1, self.fc2 = nn.Conv2d(channels, squeeze, 1), nn.Conv2d(squeeze, channels, 1)

    def forward(self, x):
        return self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(x))))) * x


class MBConv(nn.Module):
    def __init__(self, inputs, outputs, act, squeeze_act, scale_act, kernel=3, stride=1):
        super().__init__()
        wide = 4 * inputs
        self.block = nn.Sequential(ConvNormActivation(inputs, wide, 1, act), ConvNormActivation(wide, wide, kernel, act, stride, wide),
                                   SqueezeExcitation(wide, inputs // 4, squeeze_act, scale_act), ConvNormActivation(wide, outputs, 1, None))
        self.residual, self.stochastic_depth = stride == 1 and inputs == outputs, StochasticDepth(0.2)

    def forward(self, x):
        y = self.block(x)
        if self.residual:
            y = self.stochastic_depth(y)
            y += x
        return y


def inverted(act, squeeze_act, scale_act, classifier):
    features = nn.Sequential(ConvNormActivation(3, 8, 3, act, 2), MBConv(8, 8, act, squeeze_act, scale_act),
                             MBConv(8, 12, act, squeeze_act, scale_act, 5, 2), ConvNormActivation(12, 24, 1, act))
    return trained(nn.Sequential(OrderedDict(features=features, avgpool=nn.AdaptiveAvgPool2d(1), flatten=nn.Flatten(), classifier=classifier)))


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x):
        x = F.layer_norm(x.permute(0, 2, 3, 1), self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class Permute(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.dims = dims

    def forward(self, x):
        return torch.permute(x, self.dims)


class CNBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.block = nn.Sequential(nn.Conv2d(dim, dim, 7, padding=3, groups=dim), Permute([0, 2, 3, 1]), nn.LayerNorm(dim, 1e-6),
                                   nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim), Permute([0, 3, 1, 2]))
        self.layer_scale, self.stochastic_depth = nn.Parameter(torch.full((dim, 1, 1), 0.3)), StochasticDepth(0.1)

    def forward(self, x):
        y = self.stochastic_depth(self.layer_scale * self.block(x))
        y += x
        return y


class EncoderBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.ln_1, self.ln_2, self.dropout = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.Dropout(0.1)
        self.self_attention = nn.MultiheadAttention(dim, 2, dropout=0.1, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * dim, dim), nn.Dropout(0.1))

    def forward(self, input):
        torch._assert(input.dim() == 3, f"Expected (batch_size, seq_length, hidden_dim) got {input.shape}")
        x = self.ln_1(input)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x) + input
        return x + self.mlp(self.ln_2(x))


class VisionTransformer(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.conv_proj, self.class_token = nn.Conv2d(3, dim, 8, 8), nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embedding, self.ln = nn.Parameter(normal(1, 17, dim) * 0.1), nn.LayerNorm(dim)
        self.layers, self.heads = nn.Sequential(EncoderBlock(dim), EncoderBlock(dim)), nn.Sequential(OrderedDict(head=nn.Linear(dim, 10)))

    def forward(self, x):
        n, _, h, w = x.shape
        torch._assert(h == 32 and w == 32, "Wrong image height!")
        x = self.conv_proj(x).flatten(2).permute(0, 2, 1)
        x = torch.cat([self.class_token.expand(n, -1, -1), x], dim=1) + self.pos_embedding
        return self.heads(self.ln(self.layers(x))[:, 0])


# ---- timm: Swin, MLP-Mixer; OpenAI's CLIP ----

class Mlp(nn.Module):
    def __init__(self, dim, hidden, out=None):
        super().__init__()
        self.fc1, self.act, self.drop1 = nn.Linear(dim, hidden), nn.GELU(), nn.Dropout(0.1)
        self.fc2, self.drop2 = nn.Linear(hidden, out or dim), nn.Dropout(0.1)

    def forward(self, x):
        return self.drop2(self.fc2(self.drop1(self.act(self.fc1(x)))))


def window_partition(x, size):
    B, H, W, C = x.shape
    return x.view(B, H // size, size, W // size, size, C).permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, size, size, C)


def window_reverse(windows, size, H, W):
    B = int(windows.shape[0] / (H * W / size / size))
    return windows.view(B, H // size, W // size, size, size, -1).permute(0, 1, 3, 2, 4, 5).contiguous().view(B, H, W, -1)


class WindowAttention(nn.Module):
    def __init__(self, dim, size, heads):
        super().__init__()
        self.heads, self.scale, n = heads, (dim // heads) ** -0.5, size * size
        self.relative_position_bias_table = nn.Parameter(normal((2 * size - 1) ** 2, heads) * 0.1)
        self.register_buffer("relative_position_index", torch.randint(0, (2 * size - 1) ** 2, (n, n)))
        self.qkv, self.proj, self.proj_drop = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), nn.Dropout(0.1)

    def forward(self, x, mask=None):
        B_, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B_, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        bias = self.relative_position_bias_table[self.relative_position_index.view(-1)].view(N, N, -1).permute(2, 0, 1).contiguous()
        attn = (q * self.scale) @ k.transpose(-2, -1) + bias.unsqueeze(0)
        if mask is not None:
            windows = mask.shape[0]
            attn = attn.view(B_ // windows, windows, self.heads, N, N) + mask.unsqueeze(1).unsqueeze(0)
            attn = attn.view(-1, self.heads, N, N)
        return self.proj_drop(self.proj((attn.softmax(-1) @ v).transpose(1, 2).reshape(B_, N, C)))


class SwinBlock(nn.Module):
    def __init__(self, dim, resolution, size=4, shift=0):
        super().__init__()
        self.resolution, self.size, self.shift = resolution, size, shift
        self.norm1, self.attn, self.norm2, self.mlp = nn.LayerNorm(dim), WindowAttention(dim, size, 2), nn.LayerNorm(dim), Mlp(dim, 4 * dim)
        windows = (resolution // size) ** 2
        mask = torch.zeros(windows, size * size, size * size).masked_fill(torch.rand(windows, 1, size * size) < 0.3, -100.0)
        self.register_buffer("attn_mask", mask if shift else None)

    def forward(self, x):
        H = W = self.resolution
        B, L, C = x.shape
        assert L == H * W, "input feature has wrong size"
        y = self.norm1(x).view(B, H, W, C)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = window_partition(y, self.size).view(-1, self.size * self.size, C)
        y = self.attn(y, mask=self.attn_mask).view(-1, self.size, self.size, C)
        y = window_reverse(y, self.size, H, W)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y.view(B, H * W, C)
        return x + self.mlp(self.norm2(x))


class Swin(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj, self.blocks = nn.Conv2d(3, 16, 4, 4), nn.Sequential(SwinBlock(16, 8), SwinBlock(16, 8, shift=2))
        self.norm, self.reduction, self.last = nn.LayerNorm(64), nn.Linear(64, 32, bias=False), SwinBlock(32, 4)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = self.blocks(self.proj(x).flatten(2).transpose(1, 2))
        B, L, C = x.shape
        x = x.view(B, 8, 8, C)
        x = torch.cat([x[:, i::2, j::2, :] for j in range(2) for i in range(2)], -1).view(B, -1, 4 * C)
        return self.head(self.last(self.reduction(self.norm(x))).mean(1))


class MixerBlock(nn.Module):
    def __init__(self, dim, tokens):
        super().__init__()
        self.norm1, self.mlp_tokens = nn.LayerNorm(dim), Mlp(tokens, 24)
        self.norm2, self.mlp_channels = nn.LayerNorm(dim), Mlp(dim, 4 * dim)

    def forward(self, x):
        x = x + self.mlp_tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.mlp_channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.blocks = nn.Conv2d(3, 16, 8, 8), nn.Sequential(MixerBlock(16, 16), MixerBlock(16, 16))
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.stem(x).flatten(2).transpose(1, 2))).mean(dim=1))


class QuickGELU(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)


class ResidualAttentionBlock(nn.Module):
    def __init__(self, dim, mask=None):
        super().__init__()
        self.attn, self.ln_1, self.ln_2, self.attn_mask = nn.MultiheadAttention(dim, 2), nn.LayerNorm(dim), nn.LayerNorm(dim), mask
        self.mlp = nn.Sequential(OrderedDict(c_fc=nn.Linear(dim, 4 * dim), gelu=QuickGELU(), c_proj=nn.Linear(4 * dim, dim)))

    def attention(self, x):
        self.attn_mask = self.attn_mask.to(dtype=x.dtype, device=x.device) if self.attn_mask is not None else None
        return self.attn(x, x, x, need_weights=False, attn_mask=self.attn_mask)[0]

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class CLIP(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.conv1, self.class_embedding = nn.Conv2d(3, dim, 8, 8, bias=False), nn.Parameter(normal(dim) * 0.2)
        self.visual_positions, self.visual = nn.Parameter(normal(17, dim) * 0.2), nn.Sequential(ResidualAttentionBlock(dim))
        self.ln_pre, self.ln_post, self.proj = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.Parameter(normal(dim, 8) * 0.3)
        mask = torch.empty(10, 10).fill_(float("-inf")).triu_(1)
        self.token_embedding, self.positions = nn.Embedding(50, dim), nn.Parameter(normal(10, dim) * 0.2)
        self.transformer, self.ln_final = nn.Sequential(ResidualAttentionBlock(dim, mask)), nn.LayerNorm(dim)
        self.text_projection, self.logit_scale = nn.Parameter(normal(dim, 8) * 0.3), nn.Parameter(torch.ones([]) * 2.6)

    def encode_image(self, x):
        x = self.conv1(x.type(self.conv1.weight.dtype))
        x = x.reshape(x.shape[0], x.shape[1], -1).permute(0, 2, 1)
        first = self.class_embedding + torch.zeros(x.shape[0], 1, x.shape[-1], dtype=x.dtype, device=x.device)
        x = self.ln_pre(torch.cat([first, x], dim=1) + self.visual_positions)
        return self.ln_post(self.visual(x.permute(1, 0, 2)).permute(1, 0, 2)[:, 0, :]) @ self.proj

    def encode_text(self, text):
        x = self.transformer((self.token_embedding(text) + self.positions).permute(1, 0, 2)).permute(1, 0, 2)
        return self.ln_final(x)[torch.arange(x.shape[0]), text.argmax(dim=-1)] @ self.text_projection

    def forward(self, image, text):
        a, b = self.encode_image(image), self.encode_text(text)
        a, b = a / a.norm(dim=1, keepdim=True), b / b.norm(dim=1, keepdim=True)
        logits = self.logit_scale.exp() * a @ b.t()
        return logits, logits.t()


# ---- Whisper, a U-Net of pictures, a U-Net of diffusion, WaveNet ----

class WhisperAttention(nn.Module):
    def __init__(self, dim, heads=2):
        super().__init__()
        self.heads, self.q_proj, self.k_proj = heads, nn.Linear(dim, dim), nn.Linear(dim, dim, bias=False)
        self.v_proj, self.out_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, source=None, mask=None):
        b, n, d = x.size()
        source = x if source is None else source
        m = source.size(1)
        shape = lambda t, length: t.view(b, length, self.heads, d // self.heads).transpose(1, 2).reshape(b * self.heads, length, -1)
        q, k, v = shape(self.q_proj(x) * (d // self.heads) ** -0.5, n), shape(self.k_proj(source), m), shape(self.v_proj(source), m)
        w = torch.bmm(q, k.transpose(1, 2))
        if w.size() != (b * self.heads, n, m):
            raise ValueError(f"attention weights of size {w.size()}")
        if mask is not None:
            w = w + mask
        y = torch.bmm(F.dropout(F.softmax(w, dim=-1), 0.1, self.training), v)
        return self.out_proj(y.view(b, self.heads, n, -1).transpose(1, 2).reshape(b, n, d))


class GELUActivation(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = F.gelu

    def forward(self, x):
        return self.act(x)


class WhisperLayer(nn.Module):
    def __init__(self, dim, decoder):
        super().__init__()
        self.self_attn, self.self_attn_layer_norm = WhisperAttention(dim), nn.LayerNorm(dim)
        self.encoder_attn = WhisperAttention(dim) if decoder else None
        self.encoder_attn_layer_norm = nn.LayerNorm(dim) if decoder else None
        self.fc1, self.fc2, self.activation_fn = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim), GELUActivation()
        self.final_layer_norm = nn.LayerNorm(dim)

    def forward(self, x, source=None, mask=None):
        x = x + self.self_attn(self.self_attn_layer_norm(x), mask=mask)
        if self.encoder_attn is not None:
            x = x + self.encoder_attn(self.encoder_attn_layer_norm(x), source)
        x = x + self.fc2(self.activation_fn(self.fc1(self.final_layer_norm(x))))
        if x.dtype == torch.float16 and (torch.isinf(x).any() or torch.isnan(x).any()):
            x = torch.clamp(x, -1e4, 1e4)
        return x


class Whisper(nn.Module):
    """Its stem calls nn.functional.gelu; with `modules` it has an nn.GELU instead."""

    def __init__(self, modules, dim=16):
        super().__init__()
        self.conv1, self.conv2, self.act = nn.Conv1d(10, dim, 3, padding=1), nn.Conv1d(dim, dim, 3, 2, 1), nn.GELU() if modules else None
        self.embed_positions = nn.Embedding(20, dim).requires_grad_(False)
        self.encoder, self.encoder_norm = nn.ModuleList([WhisperLayer(dim, False)]), nn.LayerNorm(dim)
        self.embed_tokens, self.positions = nn.Embedding(50, dim, padding_idx=0), nn.Embedding(12, dim)
        self.decoder, self.decoder_norm = nn.ModuleList([WhisperLayer(dim, True)]), nn.LayerNorm(dim)
        self.proj_out = nn.Linear(dim, 50, bias=False)
        self.proj_out.weight = self.embed_tokens.weight

    def forward(self, input_features, decoder_input_ids):
        act = self.act or nn.functional.gelu
        x = act(self.conv2(act(self.conv1(input_features))))
        x = x.permute(0, 2, 1) + self.embed_positions.weight
        for layer in self.encoder:
            x = layer(x)
        x, n = self.encoder_norm(x), decoder_input_ids.shape[1]
        y = self.embed_tokens(decoder_input_ids) + self.positions.weight[:n]
        mask = torch.full((n, n), torch.finfo(y.dtype).min).triu(1)
        for layer in self.decoder:
            y = layer(y, x, mask)
        return OrderedDict(logits=self.proj_out(self.decoder_norm(y)), encoder_last_hidden_state=x)


class DoubleConv(nn.Sequential):
    def __init__(self, inputs, outputs):
        super().__init__(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.SiLU(inplace=True),
                         nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.SiLU(inplace=True))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inc, self.down1 = DoubleConv(3, 8), nn.Sequential(nn.MaxPool2d(2), DoubleConv(8, 16))
        self.down2, self.up1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(16, 16)), nn.ConvTranspose2d(16, 8, 2, 2)
        self.conv1, self.up2 = DoubleConv(24, 8), nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.conv2, self.outc = DoubleConv(16, 8), nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.inc(x)
        b = self.down1(a)
        y = self.up1(self.down2(b))
        height, width = b.size()[2] - y.size()[2], b.size()[3] - y.size()[3]
        y = F.pad(y, [width // 2, width - width // 2, height // 2, height - height // 2])
        y = self.conv1(torch.cat([b, y], dim=1))
        return self.outc(self.conv2(torch.cat([a, self.up2(y)], dim=1)))


class ResnetBlock2D(nn.Module):
    """One nn.SiLU is called for pictures and for the time, whose values are those of other blocks."""

    def __init__(self, inputs, outputs, time):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, inputs), nn.Conv2d(inputs, outputs, 3, 1, 1)
        self.norm2, self.conv2, self.dropout = nn.GroupNorm(4, outputs), nn.Conv2d(outputs, outputs, 3, 1, 1), nn.Dropout(0.0)
        self.time_emb_proj, self.nonlinearity = nn.Linear(time, outputs), nn.SiLU()
        self.conv_shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else None

    def forward(self, x, temb):
        h = self.conv1(self.nonlinearity(self.norm1(x)))
        h = h + self.time_emb_proj(self.nonlinearity(temb))[:, :, None, None]
        h = self.conv2(self.dropout(self.nonlinearity(self.norm2(h))))
        return (x if self.conv_shortcut is None else self.conv_shortcut(x)) + h


class DiffusionUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear_1, self.act, self.linear_2 = nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 16)
        self.conv_in, self.first, self.down = nn.Conv2d(3, 8, 3, padding=1), ResnetBlock2D(8, 8, 16), nn.Conv2d(8, 8, 3, 2, 1)
        self.middle, self.up, self.last = ResnetBlock2D(8, 16, 16), nn.Conv2d(16, 16, 3, padding=1), ResnetBlock2D(24, 8, 16)
        self.conv_norm_out, self.conv_act, self.conv_out = nn.GroupNorm(4, 8), nn.SiLU(), nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, sample, timestep):
        angle = timestep[:, None].float() * torch.exp(-math.log(10000) * torch.arange(4, dtype=torch.float32) / 4)[None]
        temb = self.linear_2(self.act(self.linear_1(torch.cat([angle.sin(), angle.cos()], dim=-1))))
        skip = self.first(self.conv_in(sample), temb)
        h = F.interpolate(self.middle(self.down(skip), temb), scale_factor=2.0, mode="nearest")
        h = self.last(torch.cat([self.up(h), skip], dim=1), temb)
        return self.conv_out(self.conv_act(self.conv_norm_out(h)))


class WaveNet(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        wn, self.channels = nn.utils.weight_norm, channels
        self.start = wn(nn.Conv1d(4, channels, 1))
        self.inner = nn.ModuleList(wn(nn.Conv1d(channels, 2 * channels, 3, dilation=2 ** i, padding=2 ** i)) for i in range(2))
        self.res_skip = nn.ModuleList(wn(nn.Conv1d(channels, 2 * channels, 1)) for _ in range(2))
        self.end = nn.Sequential(nn.SiLU(), nn.Conv1d(channels, channels, 1), nn.SiLU(), nn.Conv1d(channels, 4, 1))

    def forward(self, x):
        x = self.start(x)
        total = torch.zeros_like(x)
        for inner, res_skip in zip(self.inner, self.res_skip):
            y = inner(x)
            y = res_skip(torch.tanh(y[:, :self.channels]) * torch.sigmoid(y[:, self.channels:]))
            x, total = x + y[:, :self.channels], total + y[:, self.channels:]
        return self.end(total)


# ---- layers of other kinds ----

class Recurrent(nn.Module):
    """A recurrent layer between gates."""

    def __init__(self, kind, directions, layers):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(6, 16), nn.SiLU(), nn.Linear(16, 10), nn.GELU())
        self.rnn = kind(10, 12, layers, batch_first=True, bidirectional=directions == 2)
        self.head = nn.Sequential(nn.Linear(12 * directions, 24), nn.SiLU(), nn.Linear(24, 3))

    def forward(self, x):
        y, _ = self.rnn(self.stem(x))
        return self.head(y[:, -1])


class Attention(nn.Module):
    """nn.MultiheadAttention that reads gates: slices of in_proj_weight are matrices of their own."""

    def __init__(self, kdim=None):
        super().__init__()
        self.q, self.act, self.k, self.act2 = nn.Linear(20, 16), nn.GELU(), nn.Linear(20, kdim or 16), nn.SiLU()
        self.attention, self.out = nn.MultiheadAttention(16, 2, batch_first=True, kdim=kdim, vdim=kdim), nn.Linear(16, 4)

    def forward(self, x, y):
        k = self.act2(self.k(y))
        return self.out(self.attention(self.act(self.q(x)), k, k)[0])


class MaskedLM(nn.Module):
    """BERT's head: its weight is the embedding's, its bias a parameter of another module, too."""

    def __init__(self, dim=16):
        super().__init__()
        self.embedding, self.dense, self.act, self.norm = nn.Embedding(50, dim), nn.Linear(dim, dim), nn.GELU(), nn.LayerNorm(dim)
        self.decoder, self.bias = nn.Linear(dim, 50), nn.Parameter(normal(50) * 0.1)
        self.decoder.weight, self.decoder.bias = self.embedding.weight, self.bias

    def forward(self, ids):
        return self.decoder(self.act(self.dense(self.embedding(ids))))


class Pyramid(nn.Module):
    """A detector's head that is shared by levels."""

    def __init__(self):
        super().__init__()
        self.a, self.b = (nn.Sequential(nn.Conv2d(c, 8, 3, 2, 1), nn.SiLU()) for c in (3, 8))
        self.inner, self.outer, self.act, self.head = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 1), nn.SiLU(), nn.Conv2d(8, 6, 3, padding=1)

    def forward(self, x):
        a = self.a(x)
        low = self.inner(self.b(a))
        high = self.outer(a) + F.interpolate(low, size=a.shape[-2:], mode="nearest")
        return [self.head(self.act(level)) for level in (high, low)]


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router, self.experts = nn.Linear(20, 3), nn.ModuleList(Mlp(20, 32, 6) for _ in range(3))

    def forward(self, x):
        p = self.router(x).softmax(-1)
        return sum(p[:, i:i + 1] * e(x) for i, e in enumerate(self.experts))


class Ranking(nn.Module):
    """A recommender: an EmbeddingBag, features that are no pictures."""

    def __init__(self):
        super().__init__()
        self.bag, self.bottom = nn.EmbeddingBag(50, 8, mode="sum"), nn.Sequential(nn.Linear(6, 16), nn.SiLU(), nn.Linear(16, 8), nn.SiLU())
        self.top = nn.Sequential(nn.Linear(9, 16), nn.SiLU(), nn.Linear(16, 1), nn.Sigmoid())

    def forward(self, dense, ids):
        x, e = self.bottom(dense), self.bag(ids)
        return self.top(torch.cat([x, (x * e).sum(1, keepdim=True)], dim=1)).squeeze(1)


class LowRank(nn.Linear):
    """A Linear with an adapter (LoRA)."""

    def __init__(self, inputs, outputs, rank=4):
        super().__init__(inputs, outputs)
        self.A, self.B = nn.Parameter(normal(rank, inputs) * 0.1), nn.Parameter(normal(outputs, rank) * 0.1)

    def forward(self, x):
        return F.linear(x, self.weight, self.bias) + x @ self.A.t() @ self.B.t() * 0.5


class Standardized(nn.Conv2d):
    def forward(self, x):
        variance, mean = torch.var_mean(self.weight, dim=[1, 2, 3], keepdim=True, unbiased=False)
        return F.conv2d(x, (self.weight - mean) / (variance + 1e-5).sqrt(), self.bias, self.stride, self.padding, self.dilation, self.groups)


class Bare(nn.Module):
    """Weights that belong to no layer: `kind` is "parameters", "buffer" or "tensor"."""

    def __init__(self, kind):
        super().__init__()
        self.first, self.act, w = nn.Linear(20, 40), nn.GELU(), normal(40, 6) * 0.2
        if kind == "parameters":
            self.w = nn.ParameterList([nn.Parameter(w)])
        elif kind == "buffer":
            self.register_buffer("w", w)
        else:
            self.w = w

    def forward(self, x):
        return self.act(self.first(x)) @ (self.w[0] if isinstance(self.w, nn.ParameterList) else self.w)


class Einsum(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.act = nn.Parameter(normal(20, 4, 5) * 0.2), nn.Parameter(normal(4, 5, 8) * 0.2), nn.GELU()
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        return self.out(torch.einsum("bhk,hko->bo", self.act(torch.einsum("bd,dhk->bhk", x, self.a)), self.b))


class Twice(nn.Module):
    """A block that is called twice: its weights serve both calls."""

    def __init__(self):
        super().__init__()
        self.inp, self.block, self.out = nn.Linear(20, 16), Mlp(16, 40), nn.Linear(16, 4)

    def forward(self, x):
        x = self.inp(x)
        x = x + self.block(x)
        return self.out(x + self.block(x))


Result = namedtuple("Result", "loss logits hidden_states")


class Nested(nn.Module):
    """Outputs in a nest, among things that are no tensors, and arguments by keyword."""

    def __init__(self):
        super().__init__()
        self.a, self.act, self.b, self.c = nn.Linear(20, 40), nn.SiLU(), nn.Linear(40, 30), nn.Linear(30, 4)

    def forward(self, x, *, scale=None, flags=(), return_dict=True):
        h = self.b(self.act(self.a(x)))
        y = self.c(h) if scale is None else self.c(h) * scale
        return {"result": Result(None, y, (h, [h.mean(-1)])), "count": 3, "name": "x"}


class Branch(nn.Module):
    """Which way it goes depends on the data."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        if torch.isnan(x).any():
            raise ValueError("not a number")
        return self.net(x) if x.mean() > 0 else self.net(-x)


class Functions(nn.Module):
    """Gates that are calls or expressions in a forward: `kind` is "calls", "expressions" or "branches"."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.a, self.b, self.c = kind, nn.Linear(20, 40), nn.Linear(40, 30), nn.Linear(30, 6)

    def forward(self, x):
        y = self.a(x)
        if self.kind == "expressions":
            y = self.b(y * torch.sigmoid(y))
            return self.c(0.5 * y * (1.0 + torch.erf(y / math.sqrt(2.0))))
        if self.kind == "branches" and x.sum() > 1e9:
            y = -y
        return self.c(F.silu(self.b(F.gelu(y))))


class GEGLU(nn.Module):
    """diffusers: F.gelu in a method of the layer."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.proj = nn.Linear(inputs, 2 * outputs)

    def gelu(self, gate):
        return F.gelu(gate)

    def forward(self, x):
        x, gate = self.proj(x).chunk(2, dim=-1)
        return x * self.gelu(gate)


class Slope(nn.Module):
    """Swish with a learned slope for each channel."""

    def __init__(self, channels):
        super().__init__()
        self.beta = nn.Parameter(torch.rand(1, channels, 1, 1) + 0.5)

    def forward(self, x):
        return x * torch.sigmoid(self.beta * x)


def mlp(gate, *sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), gate()]
    return nn.Sequential(*layers[:-1])


def rows():
    return batches(320, 20, batch=40)


def images(count=48, size=32, batch=16):
    return batches(count, 3, size, size, batch=batch)


def pairs(*lists):
    return list(zip(*lists))


def hooks():
    net = mlp(nn.SiLU, 20, 40, 30, 6).requires_grad_(False)
    net[1].register_forward_hook(lambda m, args, y: y * 2.0)
    net[3].register_forward_pre_hook(lambda m, args: (args[0] + 0.5,))
    return net, rows()


def parametrized():
    net = mlp(nn.GELU, 20, 40, 30, 6).train()
    nn.utils.parametrizations.spectral_norm(net[2])
    nn.utils.parametrizations.orthogonal(net[4])
    return net, rows()


def weight_normed():
    net = mlp(nn.SiLU, 20, 40, 30, 6).train()
    nn.utils.weight_norm(net[0])
    nn.utils.weight_norm(net[2], dim=1)
    nn.utils.spectral_norm(net[4])
    return net, rows()


def padded():
    wn = nn.utils.weight_norm
    return nn.Sequential(wn(nn.Conv1d(3, 8, 5, padding="same")), nn.ELU(), wn(nn.Conv1d(8, 8, 4, padding="same", dilation=2)), nn.Mish(),
                         nn.Conv1d(8, 4, 3, padding="same", padding_mode="circular"), nn.SiLU(), nn.Conv1d(4, 4, 3, padding="valid")), \
        batches(64, 3, 24)


def normalised():
    return trained(nn.Sequential(nn.Linear(20, 40), nn.BatchNorm1d(40, track_running_stats=False), nn.SiLU(),
                                 nn.Linear(40, 30, bias=False), nn.BatchNorm1d(30, affine=False), nn.GELU(), nn.Linear(30, 6))), rows()


def instances():
    net = nn.Sequential(nn.Conv1d(3, 8, 3), nn.InstanceNorm1d(8, affine=True, track_running_stats=True), nn.SiLU(), nn.Conv1d(8, 4, 3))
    net[1].running_mean.normal_()
    return net, batches(64, 3, 24)


def in_place():
    gates = nn.SiLU, nn.ELU, nn.Hardswish, nn.Mish, nn.SELU, nn.CELU
    layers = [nn.SiLU(inplace=True)]                      # writes to the input itself
    for gate in gates:
        layers += [nn.Linear(20, 20), gate(inplace=True), nn.Dropout(0.1, inplace=True)]
    return nn.Sequential(*layers, nn.Linear(20, 6)).train(), rows()


def encoder():
    layer = nn.TransformerEncoderLayer(16, 2, 32, 0.1, "gelu", batch_first=True, norm_first=True)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.out = nn.TransformerEncoder(layer, 2), nn.Linear(16, 4)

        def forward(self, x, padding):
            return self.out(self.encoder(x, src_key_padding_mask=padding))
    return Model(), pairs(batches(48, 7, 16), (torch.arange(7)[None] > torch.randint(3, 8, (48, 1))).split(16))


def video():
    return trained(nn.Sequential(nn.Conv3d(3, 8, 3, padding=1, bias=False), nn.BatchNorm3d(8), nn.SiLU(True), nn.MaxPool3d(2),
                                 nn.Conv3d(8, 12, (1, 3, 3), padding=(0, 1, 1)), nn.SiLU(True), nn.Conv3d(12, 12, (3, 1, 1), padding=(1, 0, 0)),
                                 nn.GELU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(12, 4))), batches(24, 3, 4, 8, 8, batch=8)


def generator():
    return trained(nn.Sequential(nn.ConvTranspose2d(8, 16, 4, 1, 0, bias=False), nn.BatchNorm2d(16), nn.SiLU(True),
                                 nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8), nn.GELU(),
                                 nn.ConvTranspose2d(8, 8, 3, 2, 1, 1, groups=2), nn.SiLU(), nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Tanh())), \
        batches(48, 8, 1, 1)


def whisper(modules):
    return lambda: (Whisper(modules).train(), [dict(input_features=x, decoder_input_ids=ids)
                                               for x, ids in zip(batches(48, 10, 40), torch.randint(0, 50, (48, 12)).split(16))])


def quantized():
    return torch.ao.quantization.quantize_dynamic(mlp(nn.GELU, 20, 40, 30, 6), {nn.Linear}), rows()


def small(net):
    """A function that makes `net` from no arguments, with rows for its input."""
    return lambda: (net(), rows())


models = {
    "resnet_silu": lambda: (trained(ResNet(lambda: nn.SiLU(inplace=True))).train(), images()),
    "resnet_gelu": lambda: (trained(ResNet(nn.GELU)).to(memory_format=torch.channels_last), images()),
    "efficientnet": lambda: (inverted(nn.SiLU, lambda: nn.SiLU(inplace=True), nn.Sigmoid,
                                      nn.Sequential(nn.Dropout(0.2, inplace=True), nn.Linear(24, 10))).train(), images()),
    "mobilenetv3": lambda: (inverted(nn.Hardswish, nn.ReLU, nn.Hardsigmoid, nn.Sequential(
        nn.Linear(24, 32), nn.Hardswish(inplace=True), nn.Dropout(0.2, inplace=True), nn.Linear(32, 10))), images()),
    "convnext": lambda: (nn.Sequential(nn.Conv2d(3, 12, 4, 4), LayerNorm2d(12), CNBlock(12), CNBlock(12), LayerNorm2d(12),
                                       nn.AdaptiveAvgPool2d(1), nn.Flatten(1), nn.Linear(12, 10)).train(), images()),
    "vision_transformer": lambda: (VisionTransformer().train(), images()),
    "swin": lambda: (Swin(), images()),
    "mixer": lambda: (Mixer(), images()),
    "clip": lambda: (CLIP(), pairs(images(), torch.randint(0, 50, (48, 10)).split(16))),
    "whisper": whisper(True),
    "whisper_calls": whisper(False),
    "unet": lambda: (trained(UNet()), images(24, 16, 8)),
    "diffusion": lambda: (DiffusionUNet(), pairs(images(32, 16, 8), torch.randint(0, 1000, (32,)).split(8))),
    "wavenet": lambda: (WaveNet(), batches(48, 4, 40)),
    "video": video,
    "generator": generator,
    "encoder": encoder,
    "lstm": lambda: (Recurrent(nn.LSTM, 1, 1), batches(96, 9, 6)),
    "lstm_2": lambda: (Recurrent(nn.LSTM, 2, 2), batches(96, 9, 6)),
    "gru": lambda: (Recurrent(nn.GRU, 1, 1), batches(96, 9, 6)),
    "gru_2": lambda: (Recurrent(nn.GRU, 2, 1), batches(96, 9, 6)),
    "rnn_2": lambda: (Recurrent(nn.RNN, 2, 1), batches(96, 9, 6)),
    "attention": lambda: (Attention(), pairs(batches(64, 5, 20), batches(64, 7, 20))),
    "attention_kdim": lambda: (Attention(12), pairs(batches(64, 5, 20), batches(64, 7, 20))),
    "masked_lm": lambda: (MaskedLM(), list(torch.randint(0, 50, (96, 9)).split(16))),
    "pyramid": lambda: (Pyramid(), images(32, 16, 8)),
    "experts": small(Experts),
    "ranking": lambda: (Ranking(), pairs(batches(128, 6, batch=32), torch.randint(0, 50, (128, 5)).split(32))),
    "low_rank": small(lambda: nn.Sequential(LowRank(20, 40), nn.GELU(), LowRank(40, 30), nn.SiLU(), LowRank(30, 6))),
    "standardized": lambda: (nn.Sequential(Standardized(3, 8, 3), nn.SiLU(), Standardized(8, 8, 3), nn.SiLU(), nn.AdaptiveAvgPool2d(1),
                                           nn.Flatten(), nn.Linear(8, 4)), images(size=12)),
    "bare_parameters": small(lambda: Bare("parameters")),
    "bare_buffer": small(lambda: Bare("buffer")),
    "bare_tensor": small(lambda: Bare("tensor")),
    "einsum": small(Einsum),
    "twice": small(Twice),
    "nested": lambda: (Nested(), [dict(x=x, scale=torch.tensor(2.0), flags=[1], return_dict=True) for x in rows()]),
    "hooks": hooks,
    "parametrized": parametrized,
    "weight_normed": weight_normed,
    "padded": padded,
    "normalised": normalised,
    "instances": instances,
    "in_place": in_place,
    "slopes": lambda: (nn.Sequential(nn.Conv2d(3, 8, 3), Slope(8), nn.Conv2d(8, 4, 3)), images(size=12)),
    "piecewise": small(lambda: nn.Sequential(nn.Linear(20, 40), nn.PReLU(40), nn.Linear(40, 30), nn.RReLU(), nn.Linear(30, 30), nn.ReLU6(),
                                             nn.Linear(30, 30), nn.SiLU(), nn.Linear(30, 6))),
    "glu": small(lambda: nn.Sequential(nn.Linear(20, 40), nn.GLU(), nn.Linear(20, 30), nn.SiLU(), nn.Linear(30, 5))),
    "softplus_head": small(lambda: nn.Sequential(nn.Linear(20, 40), nn.Softplus(), nn.Linear(40, 2), nn.Softplus())),
    "calls": small(lambda: Functions("calls")),
    "expressions": small(lambda: Functions("expressions")),
    "branches": small(lambda: Functions("branches")),
    "geglu": small(lambda: nn.Sequential(nn.Linear(20, 12), GEGLU(12, 24), nn.Dropout(0.0), nn.Linear(24, 6))),
    "data_parallel": small(lambda: nn.DataParallel(mlp(nn.GELU, 20, 40, 30, 6))),
    "branch": small(lambda: Branch(mlp(nn.GELU, 20, 40, 30, 6))),
    "scripted": small(lambda: torch.jit.script(mlp(nn.GELU, 20, 40, 30, 6))),
    "scripted_part": small(lambda: nn.Sequential(torch.jit.script(mlp(nn.GELU, 20, 40, 30)), nn.SiLU(), nn.Linear(30, 6))),
    "traced": small(lambda: torch.jit.trace(mlp(nn.GELU, 20, 40, 30, 6), torch.zeros(2, 20))),
    "quantized": quantized,
    "bilinear": small(lambda: Branch(nn.Bilinear(8, 8, 3))),
}
