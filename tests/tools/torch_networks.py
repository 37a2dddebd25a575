# SPDX-License-Identifier: MIT-0
# torch_networks.py: six small networks written after the structure of Hugging Face's modelling code: BERT, GPT-2, Llama, ViT, CLIP
# and T5, with gates as modules (ACT2FN), outputs as dictionaries, tied embeddings, masks, and sizes taken apart by unpacking.
import math
from collections import OrderedDict
import torch
from torch import nn
from torch.nn import functional as F


class ModelOutput(OrderedDict):
    """transformers.utils.ModelOutput: a dictionary with attributes, without the entries that are None"""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **{k: v for k, v in kwargs.items() if v is not None})
        self.__dict__.update(self)


class GELUActivation(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.functional.gelu

    def forward(self, input):
        return self.act(input)


class NewGELUActivation(nn.Module):
    def forward(self, input):
        return 0.5 * input * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (input + 0.044715 * torch.pow(input, 3.0))))


class QuickGELUActivation(nn.Module):
    def forward(self, input):
        return input * torch.sigmoid(1.702 * input)


ACT2FN = {"gelu": GELUActivation, "gelu_new": NewGELUActivation, "quick_gelu": QuickGELUActivation, "silu": nn.SiLU}


def disturb(net, seed):
    """Weights and biases that are not those of the beginning."""
    torch.manual_seed(seed)
    for p in net.parameters():
        p.data += torch.randn_like(p) * (0.3 if p.dim() == 1 else 0.02)
    return net.eval()


# ---- BERT ----

class BertSelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.size = heads, dim // heads
        self.query, self.key, self.value = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)

    def transpose_for_scores(self, x):
        return x.view(x.size()[:-1] + (self.heads, self.size)).permute(0, 2, 1, 3)

    def forward(self, hidden_states, attention_mask=None):
        q, k, v = (self.transpose_for_scores(f(hidden_states)) for f in (self.query, self.key, self.value))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.size)
        if attention_mask is not None:
            scores = scores + attention_mask
        context = torch.matmul(F.softmax(scores, dim=-1), v).permute(0, 2, 1, 3).contiguous()
        return (context.view(context.size()[:-2] + (self.heads * self.size,)),)


class BertLayer(nn.Module):
    def __init__(self, dim, heads, act):
        super().__init__()
        self.attention = nn.ModuleDict({"self": BertSelfAttention(dim, heads), "output": nn.Linear(dim, dim),
                                        "LayerNorm": nn.LayerNorm(dim, 1e-12)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(dim, 4 * dim), "intermediate_act_fn": ACT2FN[act]()})
        self.output = nn.ModuleDict({"dense": nn.Linear(4 * dim, dim), "LayerNorm": nn.LayerNorm(dim, 1e-12)})

    def forward(self, x, mask):
        a = self.attention["output"](self.attention["self"](x, mask)[0])
        x = self.attention["LayerNorm"](a + x)
        y = self.output["dense"](self.intermediate["intermediate_act_fn"](self.intermediate["dense"](x)))
        return self.output["LayerNorm"](y + x)


class Bert(nn.Module):
    """BertForSequenceClassification: embeddings, encoder, pooler with tanh, classifier"""

    def __init__(self, dim=24, layers=2, words=50, positions=16):
        super().__init__()
        self.word_embeddings, self.position_embeddings = nn.Embedding(words, dim, padding_idx=0), nn.Embedding(positions, dim)
        self.token_type_embeddings, self.norm = nn.Embedding(2, dim), nn.LayerNorm(dim, 1e-12)
        self.layer = nn.ModuleList(BertLayer(dim, 3, "gelu") for _ in range(layers))
        self.pooler, self.activation, self.classifier = nn.Linear(dim, dim), nn.Tanh(), nn.Linear(dim, 3)
        self.register_buffer("position_ids", torch.arange(positions).expand((1, -1)))

    def forward(self, input_ids=None, attention_mask=None, token_type_ids=None, return_dict=None):
        b, n = input_ids.size()
        if token_type_ids is None:
            token_type_ids = torch.zeros((b, n), dtype=torch.long, device=input_ids.device)
        mask = (1.0 - attention_mask[:, None, None, :].to(self.norm.weight.dtype)) * torch.finfo(self.norm.weight.dtype).min
        x = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        x = self.norm(x + self.position_embeddings(self.position_ids[:, :n]))
        for layer in self.layer:
            x = layer(x, mask)
        pooled = self.activation(self.pooler(x[:, 0]))
        return ModelOutput(loss=None, logits=self.classifier(pooled), last_hidden_state=x)


def bert():
    ids = torch.randint(1, 50, (96, 12))
    mask = (torch.arange(12)[None] < torch.randint(5, 13, (96, 1))).long()
    return Bert(), [{"input_ids": ids[i:i + 16], "attention_mask": mask[i:i + 16]} for i in range(0, 96, 16)]


# ---- GPT-2 ----

class Conv1D(nn.Module):
    def __init__(self, nf, nx):
        super().__init__()
        self.nf, self.weight, self.bias = nf, nn.Parameter(torch.randn(nx, nf) * 0.2), nn.Parameter(torch.zeros(nf))

    def forward(self, x):
        size_out = x.size()[:-1] + (self.nf,)
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(size_out)


class GPT2Attention(nn.Module):
    def __init__(self, dim, heads, positions):
        super().__init__()
        self.register_buffer("bias", torch.tril(torch.ones((positions, positions), dtype=torch.bool)).view(1, 1, positions, positions))
        self.heads, self.c_attn, self.c_proj = heads, Conv1D(3 * dim, dim), Conv1D(dim, dim)

    def forward(self, x):
        q, k, v = (t.view(t.size()[:-1] + (self.heads, -1)).permute(0, 2, 1, 3) for t in self.c_attn(x).split(x.shape[-1], dim=2))
        w = torch.matmul(q, k.transpose(-1, -2)) / (v.size(-1) ** 0.5)
        query_length, key_length = q.size(-2), k.size(-2)
        causal = self.bias[:, :, key_length - query_length:key_length, :key_length]
        w = torch.where(causal, w, torch.full([], torch.finfo(w.dtype).min, dtype=w.dtype))
        y = torch.matmul(F.softmax(w, dim=-1), v).permute(0, 2, 1, 3).contiguous()
        return self.c_proj(y.view(y.size()[:-2] + (-1,)))


class GPT2Block(nn.Module):
    def __init__(self, dim, heads, positions):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(dim), GPT2Attention(dim, heads, positions), nn.LayerNorm(dim)
        self.mlp = nn.ModuleDict({"c_fc": Conv1D(4 * dim, dim), "c_proj": Conv1D(dim, 4 * dim), "act": ACT2FN["gelu_new"]()})

    def forward(self, x):
        x = self.attn(self.ln_1(x)) + x
        return x + self.mlp["c_proj"](self.mlp["act"](self.mlp["c_fc"](self.ln_2(x))))


class GPT2LMHeadModel(nn.Module):
    def __init__(self, dim=24, layers=2, words=50, positions=16):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, dim), nn.Embedding(positions, dim)
        self.h, self.ln_f = nn.ModuleList(GPT2Block(dim, 3, positions) for _ in range(layers)), nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, words, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, input_ids, use_cache=False):
        input_shape = input_ids.size()
        position_ids = torch.arange(0, input_shape[-1], dtype=torch.long).unsqueeze(0).view(-1, input_shape[-1])
        x = self.wte(input_ids) + self.wpe(position_ids)
        for block in self.h:
            x = block(x)
        return ModelOutput(logits=self.lm_head(self.ln_f(x)).view(input_shape + (-1,)), past_key_values=None)


def gpt2():
    return GPT2LMHeadModel(), list(torch.randint(0, 50, (96, 12)).split(16))


# ---- Llama ----

class LlamaRMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x):
        dtype = x.dtype
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * x.to(dtype)


def rotate_half(x):
    return torch.cat((-x[..., x.shape[-1] // 2:], x[..., : x.shape[-1] // 2]), dim=-1)


class LlamaAttention(nn.Module):
    def __init__(self, dim, heads, kv):
        super().__init__()
        self.heads, self.kv, self.size = heads, kv, dim // heads
        self.q_proj, self.o_proj = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.k_proj, self.v_proj = (nn.Linear(dim, kv * self.size, bias=False) for _ in range(2))
        self.register_buffer("inv_freq", 1.0 / (10000 ** (torch.arange(0, self.size, 2).float() / self.size)))

    def forward(self, x, attention_mask):
        bsz, q_len, _ = x.size()
        shape = lambda t, h: t.view(bsz, q_len, h, self.size).transpose(1, 2)
        q, k, v = shape(self.q_proj(x), self.heads), shape(self.k_proj(x), self.kv), shape(self.v_proj(x), self.kv)
        freqs = torch.outer(torch.arange(q_len, dtype=self.inv_freq.dtype), self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        cos, sin = emb.cos()[None, None].to(x.dtype), emb.sin()[None, None].to(x.dtype)
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        n = self.heads // self.kv
        k, v = (t[:, :, None, :, :].expand(bsz, self.kv, n, q_len, self.size).reshape(bsz, self.heads, q_len, self.size) for t in (k, v))
        w = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.size) + attention_mask
        y = torch.matmul(F.softmax(w, dim=-1, dtype=torch.float32).to(q.dtype), v)
        return self.o_proj(y.transpose(1, 2).contiguous().reshape(bsz, q_len, -1))


class LlamaMLP(nn.Module):
    def __init__(self, dim, width):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(dim, width, bias=False), nn.Linear(dim, width, bias=False)
        self.down_proj, self.act_fn = nn.Linear(width, dim, bias=False), ACT2FN["silu"]()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class LlamaDecoderLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.self_attn, self.mlp = LlamaAttention(dim, 4, 2), LlamaMLP(dim, 3 * dim)
        self.input_layernorm, self.post_attention_layernorm = LlamaRMSNorm(dim), LlamaRMSNorm(dim)

    def forward(self, x, mask):
        x = x + self.self_attn(self.input_layernorm(x), mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class LlamaForCausalLM(nn.Module):
    def __init__(self, dim=24, layers=2, words=50):
        super().__init__()
        self.embed_tokens, self.layers = nn.Embedding(words, dim), nn.ModuleList(LlamaDecoderLayer(dim) for _ in range(layers))
        self.norm, self.lm_head = LlamaRMSNorm(dim), nn.Linear(dim, words, bias=False)

    def forward(self, input_ids):
        b, n = input_ids.shape
        x = self.embed_tokens(input_ids)
        mask = torch.triu(torch.full((n, n), torch.finfo(x.dtype).min), diagonal=1)[None, None].expand(b, 1, n, n)
        for layer in self.layers:
            x = layer(x, mask)
        return ModelOutput(logits=self.lm_head(self.norm(x)))


def llama():
    return LlamaForCausalLM(), list(torch.randint(0, 50, (96, 12)).split(16))


# ---- ViT ----

class ViT(nn.Module):
    """ViTForImageClassification: a convolution to patches, a class token, pre-norm layers"""

    def __init__(self, dim=24, layers=2, size=12, patch=4):
        super().__init__()
        self.projection, self.cls_token = nn.Conv2d(3, dim, patch, patch), nn.Parameter(torch.randn(1, 1, dim) * 0.2)
        self.position_embeddings = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, dim) * 0.2)
        self.layer = nn.ModuleList(ViTLayer(dim) for _ in range(layers))
        self.layernorm, self.classifier = nn.LayerNorm(dim, 1e-12), nn.Linear(dim, 5)

    def forward(self, pixel_values):
        batch_size, _, _, _ = pixel_values.shape
        x = self.projection(pixel_values).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(batch_size, -1, -1), x), dim=1) + self.position_embeddings
        for layer in self.layer:
            x = layer(x)
        return ModelOutput(logits=self.classifier(self.layernorm(x)[:, 0, :]))


class ViTLayer(nn.Module):
    def __init__(self, dim, act="gelu"):
        super().__init__()
        self.attention, self.output = BertSelfAttention(dim, 3), nn.Linear(dim, dim)
        self.layernorm_before, self.layernorm_after = nn.LayerNorm(dim, 1e-12), nn.LayerNorm(dim, 1e-12)
        self.fc1, self.intermediate_act_fn, self.fc2 = nn.Linear(dim, 4 * dim), ACT2FN[act](), nn.Linear(4 * dim, dim)

    def forward(self, x, mask=None):
        x = self.output(self.attention(self.layernorm_before(x), mask)[0]) + x
        return self.fc2(self.intermediate_act_fn(self.fc1(self.layernorm_after(x)))) + x


def vit():
    return ViT(), [{"pixel_values": x} for x in torch.randn(96, 3, 12, 12).split(16)]


# ---- CLIP ----

class CLIP(nn.Module):
    """CLIPModel: two towers, their projections, and the similarity of the embeddings, texts by images"""

    def __init__(self, dim=24, words=50, positions=10):
        super().__init__()
        self.token_embedding, self.position_embedding = nn.Embedding(words, dim), nn.Embedding(positions, dim)
        self.text_layers = nn.ModuleList(ViTLayer(dim, "quick_gelu") for _ in range(2))
        self.text_norm, self.text_projection = nn.LayerNorm(dim), nn.Linear(dim, 16, bias=False)
        self.vision, self.visual_projection = ViT(dim), nn.Linear(5, 16, bias=False)
        for layer in self.vision.layer:
            layer.intermediate_act_fn = ACT2FN["quick_gelu"]()
        self.logit_scale = nn.Parameter(torch.tensor(2.6592))

    def text_features(self, input_ids):
        b, n = input_ids.size()
        x = self.token_embedding(input_ids) + self.position_embedding(torch.arange(n)[None])
        mask = torch.triu(torch.full((n, n), torch.finfo(x.dtype).min), diagonal=1)[None, None].expand(b, 1, n, n)
        for layer in self.text_layers:
            x = layer(x, mask)
        x = self.text_norm(x)
        return self.text_projection(x[torch.arange(b), input_ids.to(torch.int).argmax(dim=-1)])

    def forward(self, input_ids, pixel_values):
        image = self.visual_projection(self.vision(pixel_values)["logits"])
        text = self.text_features(input_ids)
        image, text = (e / e.norm(p=2, dim=-1, keepdim=True) for e in (image, text))
        logits = torch.matmul(text, image.t()) * self.logit_scale.exp()
        return ModelOutput(logits_per_image=logits.t(), logits_per_text=logits, text_embeds=text, image_embeds=image)


def clip():
    ids, pixels = torch.randint(0, 50, (96, 10)), torch.randn(96, 3, 12, 12)
    return CLIP(), [{"input_ids": ids[i:i + 16], "pixel_values": pixels[i:i + 16]} for i in range(0, 96, 16)]


# ---- T5 ----

class T5Attention(nn.Module):
    def __init__(self, dim, heads, relative=False, causal=False):
        super().__init__()
        self.n_heads, self.size, self.causal = heads, dim // heads, causal
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        if relative:
            self.relative_attention_bias = nn.Embedding(32, heads)
        self.relative = relative

    def compute_bias(self, query_length, key_length):
        distance = torch.arange(key_length)[None, :] - torch.arange(query_length)[:, None]
        if self.causal:
            distance = torch.min(distance, torch.zeros_like(distance))
        bucket = distance.clamp(-15, 16) + 15
        return self.relative_attention_bias(bucket).permute([2, 0, 1]).unsqueeze(0)

    def forward(self, x, mask, key_value_states=None, position_bias=None):
        batch_size, seq_length = x.shape[:2]
        source = x if key_value_states is None else key_value_states
        shape = lambda states: states.view(batch_size, -1, self.n_heads, self.size).transpose(1, 2)
        scores = torch.matmul(shape(self.q(x)), shape(self.k(source)).transpose(3, 2))
        if position_bias is None:
            length = source.shape[1]
            bias = self.compute_bias(seq_length, length) if self.relative else torch.zeros((1, self.n_heads, seq_length, length))
            position_bias = bias + mask if mask is not None else bias
        scores += position_bias
        y = torch.matmul(F.softmax(scores.float(), dim=-1).type_as(scores), shape(self.v(source)))
        return self.o(y.transpose(1, 2).contiguous().view(batch_size, -1, self.n_heads * self.size)), position_bias


class T5DenseGatedActDense(nn.Module):
    def __init__(self, dim, width):
        super().__init__()
        self.wi_0, self.wi_1, self.wo = nn.Linear(dim, width, bias=False), nn.Linear(dim, width, bias=False), nn.Linear(width, dim, bias=False)
        self.dropout, self.act = nn.Dropout(0.1), ACT2FN["gelu_new"]()

    def forward(self, x):
        return self.wo(self.dropout(self.act(self.wi_0(x)) * self.wi_1(x)))


class T5Block(nn.Module):
    def __init__(self, dim, decoder, first):
        super().__init__()
        self.norms = nn.ModuleList(LlamaRMSNorm(dim) for _ in range(3))
        self.self_attention = T5Attention(dim, 3, first, decoder)
        self.cross_attention = T5Attention(dim, 3) if decoder else None
        self.ff = T5DenseGatedActDense(dim, 3 * dim)

    def forward(self, x, mask, bias, encoded=None, encoder_mask=None):
        y, bias = self.self_attention(self.norms[0](x), mask, position_bias=bias)
        x = x + y
        if self.cross_attention is not None:
            x = x + self.cross_attention(self.norms[1](x), encoder_mask, encoded)[0]
        return x + self.ff(self.norms[2](x)), bias


class T5(nn.Module):
    """T5ForConditionalGeneration: an encoder and a decoder on shared embeddings, which are the output's matrix as well"""

    def __init__(self, dim=24, words=50):
        super().__init__()
        self.dim, self.shared = dim, nn.Embedding(words, dim)
        self.encoder, self.decoder = (nn.ModuleList(T5Block(dim, d, i == 0) for i in range(2)) for d in (False, True))
        self.encoder_norm, self.decoder_norm = LlamaRMSNorm(dim), LlamaRMSNorm(dim)
        self.lm_head = nn.Linear(dim, words, bias=False)
        self.lm_head.weight = self.shared.weight

    def forward(self, input_ids, attention_mask, decoder_input_ids):
        least = torch.finfo(self.shared.weight.dtype).min
        mask = (1.0 - attention_mask[:, None, None, :].to(self.shared.weight.dtype)) * least
        x, bias = self.shared(input_ids), None
        for block in self.encoder:
            x, bias = block(x, mask, bias)
        encoded, y, bias = self.encoder_norm(x), self.shared(decoder_input_ids), None
        n = decoder_input_ids.shape[1]
        causal = torch.triu(torch.full((n, n), least), diagonal=1)[None, None]
        for block in self.decoder:
            y, bias = block(y, causal, bias, encoded, mask)
        return ModelOutput(logits=self.lm_head(self.decoder_norm(y) * (self.dim ** -0.5)), encoder_last_hidden_state=encoded)


def t5():
    ids, to = torch.randint(0, 50, (96, 10)), torch.randint(0, 50, (96, 8))
    mask = (torch.arange(10)[None] < torch.randint(5, 11, (96, 1))).long()
    part = lambda i: {"input_ids": ids[i:i + 16], "attention_mask": mask[i:i + 16], "decoder_input_ids": to[i:i + 16]}
    return T5(), [part(i) for i in range(0, 96, 16)]


networks = {f.__name__: f for f in (bert, gpt2, llama, vit, clip, t5)}


def make(name, seed=7):
    """(network, batches)"""
    torch.manual_seed(seed)
    net, batches = networks[name]()
    return disturb(net, seed), batches
