/* SPDX-License-Identifier: MIT-0

   fuzz_exchange passes damaged safetensors files to lgelu_net_load, lgelu_parts_load and
   lgelu_metadata. tools/fuzz.h explains how to run it.

   safetensors: one network, one that trains and one that doesn't. parts: two networks, after a
   forward that waits for its backward. What is refused must leave the networks as they were; what
   is accepted must be saved, loaded and saved again as the same bytes. */
#define LGELU_TRAINER
#include "tools/fuzz.h"
#include "lgelu.h"

enum { NODES = 8, BLOCK = 1 << 18, ROOM = 1 << 14, TRAINS = 2, INFERS = 3 };
typedef struct {
    unsigned char byte[ROOM];
    size_t size;
} file;

/* Two networks are parts of one file and two are alone; each is made twice: after a forward, and
 * with other weights. */
static lgelu_node node[4][NODES];
static lgelu_net net[4];
static union {
    unsigned char byte[BLOCK];
    double align;
} memory[4];

static struct {
    lgelu_net net;
    unsigned char byte[BLOCK];
} kept[4][2];

static size_t bytes[4];
static const lgelu_part part[2] = { { "", &net[0] }, { "branch/", &net[1] } };
static const float data[4] = { 1, 2, -1, 0.5f };
static const int32_t label[2] = { 1, 0 };
static const char *const metadata[2][2] = { { "option.lr", "0.001" }, { "note", "\"\\\n\x01 λ" } };

static int put(const void *p, size_t size, void *user)
{
    file *f = (file *)user;
    if (size > ROOM - f->size)
        return 1;
    memcpy(f->byte + f->size, p, size);
    f->size += size;
    return 0;
}

static void make(int k, uint64_t seed)
{
    static const size_t outputs[2] = { 3, 2 };
    const lgelu_mode mode = k == INFERS ? LGELU_MODE_INFER : LGELU_MODE_TRAIN;
    memset(memory[k].byte, 0, BLOCK);
    lgelu_net_begin(net + k, node[k], NODES);
    int x = lgelu_input(net + k, "x", 1, 1, 2),
        logits = lgelu_mlp(net + k, x, outputs, 2, LGELU_GATE_LAMBDA, 1.7f);
    int y = lgelu_labels(net + k, "y", 1, 2);
    if (k >= TRAINS) {
        logits =
            lgelu_layer_norm(net + k, "norm", lgelu_batch_norm(net + k, "bn", logits, 0.1f, 1e-5f));
    }
    lgelu_cross_entropy(net + k, "loss", logits, y);
    bytes[k] = lgelu_net_bytes(net + k, 2, mode);
    if (bytes[k] > BLOCK || lgelu_net_make(net + k, memory[k].byte, bytes[k], 2, mode, seed))
        abort();
    lgelu_net_bind(net + k, x, data);
    lgelu_net_bind(net + k, y, label);
}

static void make_all(void)
{
    for (int k = 0; k < 4; k++) {
        for (int other = 0; other < 2; other++) {
            make(k, (uint64_t)(1 + k + 10 * other));
            if (!other && lgelu_net_forward(net + k, 2))
                abort();
            kept[k][other].net = net[k];
            memcpy(kept[k][other].byte, memory[k].byte, BLOCK);
        }
    }
}

/* Returns the number of bytes below the scratch memory, in which loading sorts. Weights, moments
 * and λ's are below it, values above. */
static size_t below(int k)
{
    return (size_t)((unsigned char *)net[k].internal.scratch - memory[k].byte);
}

static size_t above(int k) { return below(k) + net[k].internal.scratch_bytes; }

static void back(int k, int other)
{
    net[k] = kept[k][other].net;
    memcpy(memory[k].byte, kept[k][other].byte, below(k));
    memcpy(memory[k].byte + above(k), kept[k][other].byte + above(k), bytes[k] - above(k));
}

static int as_before(int k)
{
    const unsigned char *was = kept[k][0].byte, *is = memory[k].byte;
    return !memcmp(was, is, below(k))
           && !memcmp(was + above(k), is + above(k), bytes[k] - above(k));
}

static int files(const uint8_t *p, size_t n, const lgelu_part *of, int parts)
{
    static file first, second;
    char text[40];
    const int k0 = (int)(of->net - net);
    unsigned char *exactly = fuzz_exactly(p, n);
    if (!kept[0][0].net.count)
        make_all();
    for (int k = k0; k < k0 + parts; k++)
        back(k, 0);
    for (int k = 0; k < 2; k++) {
        if (lgelu_metadata(exactly, n, metadata[k][0], text, 1 + n % sizeof text)
            && !memchr(text, 0, sizeof text))
            abort();
    }
    lgelu_status status =
        parts == 1 ? lgelu_net_load(of->net, exactly, n) : lgelu_parts_load(of, parts, exactly, n);
    free(exactly);
    if (status) {
        for (int k = k0; k < k0 + parts; k++) {
            if (net[k].status || net[k].step
                || net[k].internal.pending != kept[k][0].net.internal.pending || !as_before(k))
                abort();
        }
        if (strncmp(of->net->message, "safetensors: ", 13) || strchr(of->net->message, '\n'))
            abort();
        return 0;
    }
    first.size = second.size = 0;
    if (lgelu_parts_save(of, parts, metadata, 2, put, &first))
        abort();
    for (int k = k0; k < k0 + parts; k++)
        back(k, 1);
    if (lgelu_parts_load(of, parts, first.byte, first.size)
        || lgelu_parts_save(of, parts, metadata, 2, put, &second))
        abort();
    if (first.size != second.size || memcmp(first.byte, second.byte, first.size))
        abort();
    return 1;
}

static int parts(const uint8_t *p, size_t n) { return files(p, n, part, 2); }

static int alone(const uint8_t *p, size_t n)
{
    const lgelu_part one[2] = { { "", &net[TRAINS] }, { "", &net[INFERS] } };
    const int trains = files(p, n, one, 1), infers = files(p, n, one + 1, 1);
    return trains || infers;
}

/* ---- Valid files ---- */
static void fuzz_seeds(void)
{
    static file whole;
    if (!kept[0][0].net.count)
        make_all();
    for (int k = 0; k < 4; k++)
        back(k, 1);
    net[0].step = net[TRAINS].step = 123456;
    lgelu_net_relu(net + 1);
    whole.size = 0;
    if (lgelu_parts_save(part, 2, metadata, 2, put, &whole))
        abort();
    fuzz_seed("parts", "two", whole.byte, whole.size);
    for (int k = TRAINS; k <= INFERS; k++) {
        const lgelu_part one = { "", net + k };
        whole.size = 0;
        if (lgelu_parts_save(&one, 1, metadata, 2, put, &whole))
            abort();
        fuzz_seed("safetensors", k == TRAINS ? "trained" : "inference", whole.byte, whole.size);
    }
}

static const fuzz_reader *fuzz_readers(void)
{
    static const char *const word[] = { "\"dtype\":\"F32\"",
                                        "\"BF16\"",
                                        "\"F64\"",
                                        "\"shape\":[",
                                        "\"data_offsets\":[0,",
                                        "__metadata__",
                                        "branch/",
                                        "lambda",
                                        "step",
                                        "\\u0041",
                                        "\\ud83d\\ude42",
                                        "{}",
                                        "[]",
                                        ",",
                                        ":",
                                        "}",
                                        "null",
                                        "true",
                                        NULL };
    static const fuzz_reader reader[] = {
        { "safetensors", 20000, alone, word, fuzz_header_damage, fuzz_header_mend },
        { "parts", 20000, parts, word, fuzz_header_damage, fuzz_header_mend },
        { NULL, 0, NULL, NULL, NULL, NULL }
    };
    return reader;
}
