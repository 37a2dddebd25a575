/* SPDX-License-Identifier: MIT-0

   fuzz_onnx: damaged ONNX files into onnx_open, onnx_build and onnx_fill; how to run it:
   tools/fuzz.h.

   What is refused must say why; what is accepted must become a network that runs, can be written,
   and is then read and written again, and again, the last two files being of the same length.
   Damage starts from sound files: networks of each kind of layer; half of it is to fields of the
   protocol buffer, whose lengths stay right. */
#define LGELU_TRAINER
#include "tools/fuzz.h"
#include "tools/fuzz_proto.h"
#include "lgelu.h"
#include "onnx_out.c"
#include "onnx_in.c"
#include "tools/onnx_open.h"
#include "tools/nets.h"

enum { SEEDS = 8, NODES = 64, BLOCK = 1 << 22, FILE_ROOM = 1 << 16, MEMORY = 1 << 26 };
typedef struct {
    unsigned char byte[FILE_ROOM];
    size_t size;
} file;

static union {
    unsigned char byte[BLOCK];
    float f;
} scratch;

static unsigned char *const block = scratch.byte;
/* The inputs of the networks. */
static const float zeros[1 << 18];
static char reason[160];

static int keep(const void *data, size_t size, void *user)
{
    file *f = (file *)user;
    if (size > FILE_ROOM - f->size)
        return 1;
    memcpy(f->byte + f->size, data, size);
    f->size += size;
    return 0;
}

static void fuzz_seeds(void)
{
    static lgelu_node nodes[NODES];
    static const size_t outputs[2] = { 3, 2 };
    static const char *const name[SEEDS] = { "mlp",  "resnet", "vit",   "gpt",
                                             "conv", "take",   "llama", "rotary" };
    static file sound;
    lgelu_transformer shape = {
        .layers = 1, .heads = 2, .width = 4, .hidden = 6, .gate = LGELU_GATE_LAMBDA, .lambda = 2
    };
    const lgelu_transformer llama = llama_shape(1, 2, 1, 8, 3);
    lgelu_net net;
    int k, x;
    for (k = 0; k < SEEDS; k++) {
        onnx_options o = { -1, 0, NULL, ONNX_CHANNELS_FIRST, NULL };
        lgelu_net_begin(&net, nodes, NODES);
        if (k == 3) {
            x = lgelu_tokens(&net, "tokens", 3, 5);
            lgelu_gpt(&net, x, &shape);
        } else if (k == 6) {
            x = lgelu_tokens(&net, "tokens", 3, 5);
            lgelu_gpt(&net, x, &llama);
        } else if (k == 7) {
            x = lgelu_linear(&net, "f", lgelu_input(&net, "x", 1, 3, 2), 8);
            lgelu_linear(&net, "g", lgelu_rotary(&net, "r", x, 1, 6, 100, 1), 2);
        } else {
            x = k == 0 ? lgelu_input(&net, "x", 1, 1, 4) : lgelu_input(&net, "x", 4, 4, 2);
            if (k == 0)
                lgelu_mlp(&net, x, outputs, 2, LGELU_GATE_LAMBDA, 1.5f);
            if (k == 1)
                lgelu_resnet(&net, x, 2, 2, 1, 3, LGELU_GATE_GELU, 1);
            if (k == 2)
                lgelu_vit(&net, x, &shape, 2, 0, 3);
            if (k == 4) {
                x = lgelu_conv(
                    &net, "c",
                    lgelu_gate_channels(&net, "g", lgelu_average_pool(&net, "a", x, 2, 1, 1), 2), 2,
                    3, 1, 1, 2, 1);
            }
            if (k == 4) {
                lgelu_linear(&net, "fc",
                             lgelu_flatten(&net, "f", lgelu_max_pool(&net, "m", x, 2, 2, 0)), 2);
            }
            if (k == 5) {
                lgelu_mlp(&net, lgelu_mean_tokens(&net, "t", lgelu_position(&net, "p", x), 3, 4),
                          outputs, 2, LGELU_GATE_TANH, 1);
            }
        }
        if (lgelu_net_make(&net, block, BLOCK, 1, LGELU_MODE_INFER, 1))
            abort();
        sound.size = 0;
        if (onnx_save(&net, &o, block + BLOCK - NODES, keep, &sound, reason))
            abort();
        fuzz_seed("onnx", name[k], sound.byte, sound.size);
    }
}

/* Reads a model. Returns 0 if it is refused and 1 if a network was written to `to`. */
static int through(const unsigned char *p, size_t n, file *to)
{
    size_t need = 0, size_;
    void *memory = NULL;
    opened from;
    onnx_model *m = open_model(&from, p, n, MEMORY, reason);
    lgelu_node *nodes = m ? (lgelu_node *)calloc((size_t)onnx_nodes(m) + 1, sizeof *nodes) : NULL;
    int in_, out = -1;
    lgelu_net net;
    if (!m && (!*reason || !memchr(reason, 0, sizeof reason)))
        abort();
    if (nodes) {
        onnx_options o = { -1, 0, NULL, ONNX_CHANNELS_FIRST, NULL };
        lgelu_net_begin(&net, nodes, onnx_nodes(m));
        out = onnx_build(m, &net, 0, &in_);
        if (out >= 0)
            need = lgelu_net_bytes(&net, 1, LGELU_MODE_INFER);
        if (out >= 0 && need && need < BLOCK)
            memory = malloc(need);
        if (memory && !lgelu_net_make(&net, memory, need, 1, LGELU_MODE_INFER, 1)) {
            /* The builder has checked the whole model, so filling the network must succeed. */
            if (onnx_fill(m, &net))
                abort();
            size_ = 0;
            for (int i = 0; i < net.count; i++) {
                const size_t *shape = net.nodes[i].shape, all = shape[0] * shape[1] * shape[2];
                if (lgelu_op_is((int)net.nodes[i].op, LGELU_TRAIT_DATA) && all > size_)
                    size_ = all;
            }
            if (size_ <= sizeof zeros / sizeof *zeros) {
                for (int i = 0; i < net.count; i++) {
                    if (lgelu_op_is((int)net.nodes[i].op, LGELU_TRAIT_DATA))
                        lgelu_net_bind(&net, i, zeros);
                }
                lgelu_net_forward(&net, 1);
                /* Weights may be so large that no value is finite. */
                net.status = LGELU_OK;
            }
            o.node = out;
            o.input = onnx_input(m);
            o.output = onnx_output(m);
            to->size = 0;
            if (onnx_save(&net, &o, block, keep, to, reason)) {
                if (!*reason)
                    abort();
                out = -1;
            }
        } else {
            out = -1;
        }
    }
    free(memory);
    free(nodes);
    close_model(&from);
    return out >= 0;
}

static int onnx(const uint8_t *p, size_t n)
{
    static file first, second;
    unsigned char *exactly = fuzz_exactly(p, n);
    int good;
    good = through(exactly, n, &first);
    free(exactly);
    if (!good)
        return 0;
    if (!through(first.byte, first.size, &second)) {
        fprintf(stderr, "what was written is refused: %s\n", reason);
        abort();
    }
    if (!through(second.byte, second.size, &first)) {
        fprintf(stderr, "what was written again is refused: %s\n", reason);
        abort();
    }
    if (first.size != second.size) {
        fprintf(stderr, "%zu bytes, then %zu\n", first.size, second.size);
        abort();
    }
    return 1;
}

static const fuzz_reader *fuzz_readers(void)
{
    static const char *const word[] = {
        "Conv",     "Gemm",         "MatMul", "Reshape",   "Transpose", "axis",
        "perm",     "kernel_shape", "pads",   "group",     "strides",   "Concat",
        "Slice",    "Gather",       "Shape",  "Unsqueeze", "Softmax",   "LayerNormalization",
        "Constant", "value",        NULL
    };
    static const fuzz_reader list[] = { { "onnx", 20000, onnx, word, fuzz_proto, NULL },
                                        { NULL, 0, NULL, NULL, NULL, NULL } };
    return list;
}
