/* test_exchange checks checkpoints: a loaded network equals the saved one bit for bit, a resumed
   run ends like an uninterrupted one, and every damaged file is refused with a position and a
   reason while the network does not change. SPDX-License-Identifier: MIT-0 */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/bits.h"
#include "tools/check.h"
#include "tools/isa.h"
#include "tools/nets.h"
#include "tools/saved_state.h"
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

enum { INPUTS = 6, HIDDEN = 9, CLASSES = 4, BATCH = 8, STEPS = 40 };

static int refuse(const void *data, size_t size, void *user)
{
    (void)data;
    return (*(size_t *)user -= size) > (size_t)-1 / 2;
}

typedef struct {
    lgelu_node node[16];
    lgelu_net net;
    int x, labels, logits;
    void *memory;
    float data[BATCH * INPUTS];
    int32_t label[BATCH];
} model;

static void make(model *m, lgelu_mode mode, lgelu_gate_kind kind, uint64_t seed)
{
    const size_t outputs[3] = { HIDDEN, HIDDEN, CLASSES };
    size_t need;
    lgelu_net_begin(&m->net, m->node, 16);
    m->x = lgelu_input(&m->net, "x", 1, 1, INPUTS);
    m->labels = lgelu_labels(&m->net, "labels", 1, CLASSES);
    m->logits = lgelu_mlp(&m->net, m->x, outputs, 3, kind, 1.7f);
    lgelu_cross_entropy(&m->net, "loss", m->logits, m->labels);
    need = lgelu_net_bytes(&m->net, BATCH, mode);
    m->memory = malloc(need);
    lgelu_net_make(&m->net, m->memory, need, BATCH, mode, seed);
    lgelu_net_bind(&m->net, m->x, m->data);
    lgelu_net_bind(&m->net, m->labels, m->label);
}

/* Trains up to a number of steps. The data depend only on the step. */
static void train(model *m, long steps)
{
    lgelu_training plan = lgelu_training_defaults(0.01f, STEPS);
    plan.hardening.target = 160;
    plan.hardening.begin = STEPS / 2;
    plan.hardening.end = STEPS;
    while (m->net.step < steps) {
        uint64_t step = (uint64_t)m->net.step;
        int i;
        for (i = 0; i < BATCH * INPUTS; i++)
            m->data[i] = lgelu_uniform(3, step, (uint64_t)i) - 0.5f;
        for (i = 0; i < BATCH; i++)
            m->label[i] = (int32_t)(lgelu_random(4, step, (uint64_t)i) % CLASSES);
        lgelu_net_forward(&m->net, BATCH);
        lgelu_net_backward(&m->net, 1);
        lgelu_net_step(&m->net, &plan);
    }
}

static int same(const model *a, const model *b, int moments)
{
    size_t p = a->net.parameter_count * sizeof(float),
           h = (size_t)a->net.lambda_count * sizeof(float);
    return a->net.step == b->net.step && !memcmp(a->net.w, b->net.w, p)
           && !memcmp(a->net.lambda, b->net.lambda, h) && !memcmp(a->net.s, b->net.s, h)
           && (!moments
               || (!memcmp(a->net.m, b->net.m, p) && !memcmp(a->net.v, b->net.v, p)
                   && !memcmp(a->net.s_m, b->net.s_m, h) && !memcmp(a->net.s_v, b->net.s_v, h)));
}

/* ---- Damaged files ---- */
static int n_wrong, n_message, n_changed;
static char last[160];

static void expect_refusal(model *m, const model *was, const void *file, size_t size,
                           const char *why)
{
    lgelu_status status = lgelu_net_load(&m->net, file, size);
    memcpy(last, m->net.message, sizeof last);
    n_wrong += status == LGELU_OK;
    n_message += status != LGELU_OK && !strstr(m->net.message, why);
    n_changed += !same(m, was, 1);
    m->net.message[0] = 0;
}

/* Makes a file of a header text and tensor bytes. */
static memory_file forge(const char *header, size_t tensor_bytes)
{
    memory_file b = { NULL, 0, 0 };
    unsigned char zero[64] = { 0 }, length[8];
    size_t n = strlen(header), i;
    for (i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)n >> (8 * i));
    memory_append(length, 8, &b);
    memory_append(header, n, &b);
    for (i = 0; i < tensor_bytes; i++)
        memory_append(zero, 1, &b);
    return b;
}

static void headers(void)
{
    static const struct {
        const char *header;
        size_t data;
        const char *why;
    } bad[] = {
        { "", 0, "byte 8: the header does not start" },
        { " {}", 0, "byte 8: the header does not start" },
        { "[]", 0, "does not start" },
        { "{", 0, "byte 9: expected a string" },
        { "{}x", 0, "byte 10: bytes after the end" },
        { "{}", 1, "byte 11: the tensors do not end" },
        { "{\"a\":{}}", 0, "byte 15: a tensor needs dtype" },
        { "{\"a\":{\"dtype\":\"F31\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "unknown dtype" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8,
          "offsets and shape disagree" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4,
          "expected a whole number" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, "expected ']'" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[01],\"data_offsets\":[0,4]}}", 4,
          "a number starts with 0" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]}}", 4,
          sizeof(size_t) < 8 ? "the number is too large" : "the shape overflows" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387905],\"data_offsets\":[0,4]}}", 4,
          sizeof(size_t) < 8 ? "the number is too large" : "offsets and shape disagree" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,4]}}", 4,
          "the number is too large" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4,
          "offsets and shape disagree" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8,
          "a gap or an overlap" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
          4, "a gap or an overlap" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
          8, "a name occurs twice" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "a tensor needs" },
        { "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
          "unknown or repeated key" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"extra\":1}}", 4,
          "unknown or repeated key" },
        { "{\"a\":{\"dtypo\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
          "byte 22: unknown or repeated key" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 3,
          "do not end where the file ends" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5,
          "do not end where the file ends" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[4,4]}}",
          8, "a gap or an overlap" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[8,8]}}",
          8, "no tensor 'fc1.weight'" },
        { "{\"__metadata__\":{\"k\":1}}", 0, "expected a string" },
        { "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "a second __metadata__" },
        { "{\"a\x01\":{}}", 0, "control character" },
        { "{\"a\\x\":{}}", 0, "unknown escape" },
        { "{\"a\\", 0, "byte 12: the string has no end" },
        { "{\"\xff\":{}}", 0, "not UTF-8" },
        { "{\"\xc0\xaf\":{}}", 0, "not UTF-8" },
        { "{\"\xed\xa0\x80\":{}}", 0, "not UTF-8" },
        { "{\"\xe2\x82\x41\":{}}", 0, "not UTF-8" },
        { "{\"\xf4\x80\x80\xc0\":{}}", 0, "not UTF-8" },
        { "{\"a\\u0041\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
          "a tensor's name with an escape" },
        { "{\"a\\u12G4\":{}}", 0, "byte 15: \\u needs four" },
        { "{\"a\\u12\":{}}", 0, "byte 15: \\u needs four" },
        { "{\"__metadata__\":{\"step\":\"12x\"}}", 0, "no tensor 'fc1.weight'" },
        { "{}", 0, "no tensor 'fc1.weight'" },
        { "{\"\xe2\x82\xbf\":{}}", 0, "a tensor needs dtype" },
        { "{\"\xe2\x80\x80\":{}}", 0, "a tensor needs dtype" },
        { "{\"\xf4\x80\x80\x80\":{}}", 0, "a tensor needs dtype" },
        { "{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4,
          "found ()" },
        { "{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}", 12,
          "byte 10: 'fc1.weight': expected shape (9, 6), found (3)" },
        { "{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[3,1],\"data_offsets\":[0,12]}}", 12,
          "found (3, 1)" },
        { "{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[3,1,1],\"data_offsets\":[0,12]}}", 12,
          "found (3, 1, ...)" },
        { "{\"fc1.weight\":{\"dtype\":\"F16\",\"shape\":[3,1],\"data_offsets\":[0,6]}}", 6,
          "byte 10: 'fc1.weight': expected F32" }
    };
    /* Tensors of any type may be in a file beside those that are read. */
    static const struct {
        char name[8];
        int bytes;
    } types[] = { { "BOOL", 1 }, { "U8", 1 },  { "I8", 1 },  { "F8_E5M2", 1 }, { "F8_E4M3", 1 },
                  { "I16", 2 },  { "U16", 2 }, { "F16", 2 }, { "BF16", 2 },    { "I32", 4 },
                  { "U32", 4 },  { "F32", 4 }, { "I64", 8 }, { "U64", 8 },     { "F64", 8 } };
    static model m, was;
    size_t i, far = 0;
    make(&m, LGELU_MODE_TRAIN, LGELU_GATE_LAMBDA, 1);
    make(&was, LGELU_MODE_TRAIN, LGELU_GATE_LAMBDA, 1);
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        memory_file b = forge(bad[i].header, bad[i].data);
        n_wrong = n_message = n_changed = 0;
        expect_refusal(&m, &was, b.data, b.size, bad[i].why);
        check(!n_wrong && !n_message && !n_changed, "exchange.header",
              "%s: got '%s', expected '%s'", bad[i].header, last, bad[i].why);
        free(b.data);
    }
    for (i = 0; i < sizeof types / sizeof *types; i++) {
        char header[256];
        memory_file b;
        snprintf(header, sizeof header,
                 "{\"a\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,%d]}}", types[i].name,
                 3 * types[i].bytes);
        b = forge(header, 3 * (size_t)types[i].bytes);
        n_wrong = n_message = n_changed = 0;
        expect_refusal(&m, &was, b.data, b.size, "no tensor 'fc1.weight'");
        check(!n_wrong && !n_message && !n_changed, "exchange.type", "%s: got '%s'", types[i].name,
              last);
        free(b.data);
    }
    n_wrong = n_message = n_changed = 0;
    for (i = 0; i < 8; i++)
        expect_refusal(&m, &was, "\0\0\0\0\0\0\0", i, "shorter than 8");
    expect_refusal(&m, &was, "\1\0\0\0\0\0\0\0", 8, "ends in its header");
    expect_refusal(&m, &was, "\1\341\365\5\0\0\0\0", 8, "longer than 100 MB");
    expect_refusal(&m, &was, "\377\377\377\377\377\377\377\377", 8, "longer than 100 MB");
    expect_refusal(&m, &was, "\7\0\0\0\0\0\0\0{\"\\\0\":}", 15, "byte 11: unknown escape");
    check(!n_wrong && !n_message && !n_changed, "exchange.length", "%d accepted, %d other messages",
          n_wrong, n_message);
    (void)far;
    free(m.memory);
    free(was.memory);
}

static void round_trip(void)
{
    static const char *const metadata[2][2] = { { "seed", "1337" },
                                                { "note", "a \"quoted\" \\ text\n" } };
    static model a, b, whole, infer;
    memory_file file = { NULL, 0, 0 }, again = { NULL, 0, 0 }, end_a = { NULL, 0, 0 },
                end_b = { NULL, 0, 0 };
    char text[64];
    size_t k, room, stopped;
    long at;
    make(&a, LGELU_MODE_TRAIN, LGELU_GATE_LAMBDA, 1);
    make(&whole, LGELU_MODE_TRAIN, LGELU_GATE_LAMBDA, 1);
    train(&whole, STEPS);
    check(lgelu_net_save(&whole.net, metadata, 2, memory_append, &end_a) == LGELU_OK,
          "exchange.save", "%s", whole.net.message);
    /* The run stops at any step and continues in a new network with other initial weights. */
    for (at = 1; at < STEPS; at += 6) {
        train(&a, at);
        file.size = 0;
        lgelu_net_save(&a.net, metadata, 2, memory_append, &file);
        make(&b, LGELU_MODE_TRAIN, LGELU_GATE_LAMBDA, 99);
        if (!check(lgelu_net_load(&b.net, file.data, file.size) == LGELU_OK, "exchange.load", "%s",
                   b.net.message))
            return;
        check(same(&a, &b, 1), "exchange.same_after_load", "step %ld", at);
        again.size = 0;
        lgelu_net_save(&b.net, metadata, 2, memory_append, &again);
        check(again.size == file.size && !memcmp(again.data, file.data, file.size),
              "exchange.same_file", "step %ld", at);
        train(&b, STEPS);
        end_b.size = 0;
        lgelu_net_save(&b.net, metadata, 2, memory_append, &end_b);
        check(end_a.size == end_b.size && !memcmp(end_a.data, end_b.data, end_a.size),
              "exchange.resume_is_bit_identical", "step %ld", at);
        free(b.memory);
    }
    check(file.size % 8 == 0 || file.size > 8, "exchange.size", "%lu", (unsigned long)file.size);
    check(lgelu_metadata(file.data, file.size, "note", text, sizeof text)
              && !strcmp(text, metadata[1][1]),
          "exchange.metadata", "'%s'", text);
    check(lgelu_metadata(file.data, file.size, "seed", text, sizeof text)
              && !strcmp(text, metadata[0][1]),
          "exchange.metadata_first", "'%s'", text);
    check(lgelu_metadata(file.data, file.size, "note", text, 4) && !strcmp(text, "a \""),
          "exchange.metadata_cut", "'%s'", text);
    check(!lgelu_metadata(file.data, file.size, "absent", text, sizeof text),
          "exchange.metadata_absent", "found '%s'", text);

    /* The file stores the kinds of gates, and an inference network can load a training file. */
    lgelu_net_relu(&whole.net);
    file.size = 0;
    lgelu_net_save(&whole.net, NULL, 0, memory_append, &file);
    make(&infer, LGELU_MODE_INFER, LGELU_GATE_LAMBDA, 5);
    check(lgelu_net_load(&infer.net, file.data, file.size) == LGELU_OK && same(&infer, &whole, 0),
          "exchange.infer", "%s", infer.net.message);
    check(infer.node[3].gate == LGELU_GATE_RELU && infer.net.lambda[0] > 1e30f,
          "exchange.gate_kind", "kind %d", (int)infer.node[3].gate);

    /* The disk becomes full at each of these sizes. */
    for (stopped = 0, k = 0, room = 0; room < file.size; room += 97, k++) {
        size_t left = room;
        stopped += lgelu_net_save(&whole.net, NULL, 0, refuse, &left) == LGELU_E_FILE
                   && whole.net.status == LGELU_OK;
    }
    check(stopped == k, "exchange.full_disk", "%lu of %lu reported", (unsigned long)stopped,
          (unsigned long)k);

    /* The file is truncated at every byte. */
    for (n_wrong = n_changed = 0, k = 0; k < file.size; k++) {
        unsigned char *cut = (unsigned char *)malloc(k + 1);
        memcpy(cut, file.data, k);
        expect_refusal(&a, &a, cut, k, "");
        free(cut);
    }
    check(!n_wrong, "exchange.cut", "%d cut files were accepted", n_wrong);
    free(file.data);
    free(again.data);
    free(end_a.data);
    free(end_b.data);
    free(a.memory);
    free(whole.memory);
    free(infer.memory);
}

static void names(void)
{
    static const char *const metadata[5][2] = {
        { "step", "3" }, { "format", "pt" }, { "gate1", "relu" }, { "note", "a" }, { "note", "b" }
    };
    static model m;
    memory_file b = { NULL, 0, 0 };
    make(&m, LGELU_MODE_INFER, LGELU_GATE_GELU, 1);
    check(lgelu_net_save(&m.net, metadata, 1, memory_append, &b) == LGELU_E_ARGUMENT && !b.size
              && strstr(m.net.message, "'step'"),
          "exchange.metadata_of_our_own", "%s", m.net.message);
    check(lgelu_net_save(&m.net, metadata + 1, 1, memory_append, &b) == LGELU_E_ARGUMENT && !b.size,
          "exchange.metadata_of_our_own", "%s", m.net.message);
    check(lgelu_net_save(&m.net, metadata + 2, 1, memory_append, &b) == LGELU_E_ARGUMENT && !b.size,
          "exchange.metadata_of_a_gate", "%s", m.net.message);
    check(lgelu_net_save(&m.net, metadata + 3, 2, memory_append, &b) == LGELU_E_ARGUMENT && !b.size,
          "exchange.metadata_twice", "%s", m.net.message);
    memcpy(m.node[4].name, "fc1", 4);
    check(lgelu_net_save(&m.net, NULL, 0, memory_append, &b) == LGELU_E_ARGUMENT
              && strstr(m.net.message, "fc1") && !b.size,
          "exchange.twin_names", "%s", m.net.message);
    memcpy(m.node[4].name, "x", 2);
    check(lgelu_net_save(&m.net, NULL, 0, memory_append, &b) == LGELU_E_ARGUMENT
              && strstr(m.net.message, "two layers are called 'x'") && !b.size,
          "exchange.twin_of_the_input", "%s", m.net.message);
    memcpy(m.node[4].name, "f\"1", 4);
    check(lgelu_net_save(&m.net, NULL, 0, memory_append, &b) == LGELU_E_ARGUMENT && !b.size,
          "exchange.bad_name", "%s", m.net.message);
    /* Only a gate's name is a key of the metadata. */
    memcpy(m.node[4].name, "step", 5);
    check(!lgelu_net_save(&m.net, NULL, 0, memory_append, &b) && b.size, "exchange.layer_step",
          "%s", m.net.message);
    b.size = 0;
    memcpy(m.node[4].name, "fc2", 4);
    memcpy(m.node[3].name, "step", 5);
    check(lgelu_net_save(&m.net, NULL, 0, memory_append, &b) == LGELU_E_ARGUMENT && !b.size
              && strstr(m.net.message, "gate 'step': checkpoints use that key"),
          "exchange.gate_step", "%s", m.net.message);
    free(b.data);
    free(m.memory);
}

/* Other programs read a file by its names, types and shapes, so all of them are compared here. */
static void shapes(void)
{
    static const char *const expected[] = { "\"table.weight\":{\"dtype\":\"F32\",\"shape\":[7,5],",
                                            "\"place.weight\":{\"dtype\":\"F32\",\"shape\":[3,5],",
                                            "\"norm.weight\":{\"dtype\":\"F32\",\"shape\":[5],",
                                            "\"norm.bias\":{\"dtype\":\"F32\",\"shape\":[5],",
                                            "\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,5],",
                                            "\"fc.bias\":{\"dtype\":\"F32\",\"shape\":[2],",
                                            "\"gate.lambda\":{\"dtype\":\"F32\",\"shape\":[1]," };
    static lgelu_node node[8];
    lgelu_net net;
    memory_file file = { NULL, 0, 0 };
    size_t i, need;
    void *memory;
    int x;
    lgelu_net_begin(&net, node, 8);
    x = lgelu_embedding(&net, "table", lgelu_tokens(&net, "x", 3, 7), 5);
    x = lgelu_layer_norm(&net, "norm", lgelu_position(&net, "place", x));
    x = lgelu_linear(&net, "fc", x, 2);
    lgelu_gate(&net, "gate", x, LGELU_GATE_LAMBDA, 2);
    need = lgelu_net_bytes(&net, 1, LGELU_MODE_INFER);
    memory = malloc(need);
    lgelu_net_make(&net, memory, need, 1, LGELU_MODE_INFER, 1);
    check(!lgelu_net_save(&net, NULL, 0, memory_append, &file), "exchange.shapes", "%s",
          net.message);
    /* The header ends where the tensors begin. */
    file.data[8 + file.data[0] + 256 * file.data[1]] = 0;
    for (i = 0; i < sizeof expected / sizeof *expected; i++) {
        check(strstr((char *)file.data + 8, expected[i]) != NULL, "exchange.shape", "no %s in %s",
              expected[i], (char *)file.data + 8);
    }
    free(file.data);
    free(memory);
}

static void parts(void)
{
    static const char *const bad[1][2] = { { "note", "\xc3(" } };
    static model a, b, c, d;
    lgelu_part two[2], other[2];
    memory_file file = { NULL, 0, 0 }, one = { NULL, 0, 0 };
    make(&a, LGELU_MODE_TRAIN, LGELU_GATE_LAMBDA, 1);
    make(&b, LGELU_MODE_TRAIN, LGELU_GATE_LAMBDA, 2);
    make(&c, LGELU_MODE_TRAIN, LGELU_GATE_LAMBDA, 3);
    make(&d, LGELU_MODE_TRAIN, LGELU_GATE_LAMBDA, 4);
    train(&a, 3);
    train(&b, 5);
    lgelu_net_relu(&b.net);
    two[0].prefix = "";
    two[0].net = &a.net;
    two[1].prefix = "branch/";
    two[1].net = &b.net;
    other[0] = two[0];
    other[0].net = &c.net;
    other[1] = two[1];
    other[1].net = &d.net;
    check(lgelu_parts_save(two, 2, NULL, 0, memory_append, &file) == LGELU_OK,
          "exchange.two_nets.save", "%s", a.net.message);
    check(lgelu_parts_load(other, 2, file.data, file.size) == LGELU_OK && same(&a, &c, 1)
              && same(&b, &d, 1),
          "exchange.two_nets.load", "%s", c.net.message);
    check(c.node[3].gate == LGELU_GATE_LAMBDA && d.node[3].gate == LGELU_GATE_RELU,
          "exchange.two_nets.gates", "%d, %d", (int)c.node[3].gate, (int)d.node[3].gate);
    check(lgelu_net_load(&d.net, file.data, file.size) == LGELU_OK && same(&a, &d, 1),
          "exchange.two_nets.first_alone", "%s", d.net.message);
    other[1].prefix = "twig/";
    check(lgelu_parts_load(other, 2, file.data, file.size) == LGELU_E_FILE
              && strstr(c.net.message, "twig/fc1.weight") && same(&a, &c, 1) && same(&a, &d, 1),
          "exchange.two_nets.missing", "%s", c.net.message);
    other[1].prefix = "a prefix that is far longer than 31 bytes";
    check(lgelu_parts_load(other, 2, file.data, file.size) == LGELU_E_ARGUMENT
              && lgelu_parts_save(other, 2, NULL, 0, memory_append, &one) == LGELU_E_ARGUMENT
              && !one.size,
          "exchange.two_nets.prefix", "%s", c.net.message);
    other[1].prefix = "a\"b";
    check(lgelu_parts_load(other, 2, file.data, file.size) == LGELU_E_ARGUMENT
              && lgelu_parts_save(other, 2, NULL, 0, memory_append, &one) == LGELU_E_ARGUMENT
              && !one.size,
          "exchange.two_nets.bad_prefix", "%s", c.net.message);
    other[1].prefix = "";
    check(lgelu_parts_save(other, 2, NULL, 0, memory_append, &one) == LGELU_E_ARGUMENT && !one.size,
          "exchange.two_nets.twin_names", "%s", c.net.message);
    check(lgelu_net_save(&a.net, bad, 1, memory_append, &one) == LGELU_E_ARGUMENT && !one.size,
          "exchange.metadata_not_utf8", "%s", a.net.message);
    free(file.data);
    free(one.data);
    free(a.memory);
    free(b.memory);
    free(c.memory);
    free(d.memory);
}

/* Makes a chain of `layers` linear layers of width one, with names of the greatest length. */
static void *chain(lgelu_net *net, lgelu_node *node, int layers, lgelu_mode mode, uint64_t seed)
{
    char name[32];
    void *memory;
    int x, i;
    size_t need;
    lgelu_net_begin(net, node, layers + 1);
    strcpy(net->prefix, "λλλλλλλλλλ.");
    x = lgelu_input(net, "x", 1, 1, 1);
    for (i = 0; i < layers; i++) {
        snprintf(name, sizeof name, "%05dλλλ", i);
        x = lgelu_linear(net, name, x, 1);
    }
    need = lgelu_net_bytes(net, 1, mode);
    memory = malloc(need);
    if (!memory || lgelu_net_make(net, memory, need, 1, mode, seed))
        check(0, "exchange.chain", "%s", net->message);
    return memory;
}

/* Saves and loads networks of very different size in one file, in either order, and the small one
 * alone: a load skips other tensors of the file. */
static void many_tensors(void)
{
    enum { MANY = 3000 };
    static lgelu_node node[4][MANY + 1];
    lgelu_net small, large, small2, large2;
    lgelu_part part[2], other[2];
    memory_file file = { NULL, 0, 0 }, end = { NULL, 0, 0 };
    void *memory[4] = { chain(&small, node[0], 1, LGELU_MODE_INFER, 1),
                        chain(&large, node[1], MANY, LGELU_MODE_INFER, 2),
                        chain(&small2, node[2], 1, LGELU_MODE_INFER, 3),
                        chain(&large2, node[3], MANY, LGELU_MODE_INFER, 4) };
    char header[200];
    size_t i;
    for (i = 0; i < small.parameter_count; i++)
        small.w[i] = small2.w[i] + 1;
    part[0].net = &small;
    part[0].prefix = "small/";
    part[1].net = &large;
    part[1].prefix = "";
    other[0] = part[0];
    other[1] = part[1];
    other[0].net = &small2;
    other[1].net = &large2;
    check(lgelu_parts_save(part, 2, NULL, 0, memory_append, &file) == LGELU_OK,
          "exchange.many.save", "%s", small.message);
    check(lgelu_parts_load(other, 2, file.data, file.size) == LGELU_OK
              && !memcmp(small.w, small2.w, small.parameter_count * sizeof(float))
              && !memcmp(large.w, large2.w, large.parameter_count * sizeof(float)),
          "exchange.many.small_part_first", "%s", small2.message);
    small2.w[0] = 9;
    check(lgelu_parts_load(other, 1, file.data, file.size) == LGELU_OK
              && small2.w[0] < small.w[0] + 1,
          "exchange.many.small_alone", "%s", small2.message);
    free(file.data);

    /* There are more tensors than any sorting buffer holds, the last one first. One file has a
     * hole, one has a name twice, and one has neither. */
    for (int wrong = 0; wrong < 3; wrong++) {
        size_t n = 20000, k, at = 8;
        memory_file b = { NULL, 0, 0 };
        memory_append("12345678{", 9, &b);
        for (k = n; k--;) {
            i = (size_t)sprintf(
                header, "%s\"%s%05d\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%d,%d]}",
                k + 1 < n ? "," : "",
                k == 1   ? "λλλλλλλλλλ.00000λλ.weight"
                : k == 2 ? "λλλλλλλλλλ.00000λλ.bias"
                         : "t",
                (int)(wrong == 2 && k == n - 1 ? 77 : k), k == 1 ? "1,1" : "1",
                (int)(4 * (k + (wrong == 1 && k == n / 2))),
                (int)(4 * (k + 1 + (wrong == 1 && k == n / 2))));
            if (k == 1 || k == 2) {
                char *five = strstr(header, k == 1 ? "weight" : "bias") + (k == 1 ? 6 : 4);
                memmove(five, five + 5, strlen(five + 5) + 1);
                i -= 5;
            }
            memory_append(header, i, &b);
        }
        memory_append("}", 1, &b);
        for (k = b.size - at, i = 0; i < 8; i++)
            b.data[i] = (unsigned char)((uint64_t)k >> (8 * i));
        /* These four bytes are the float 1. */
        for (k = 0; k < n; k++)
            memory_append("\0\0\200\77", 4, &b);
        lgelu_status status = lgelu_net_load(&small, b.data, b.size);
        if (wrong) {
            check(status == LGELU_E_FILE
                      && strstr(small.message,
                                wrong == 1 ? "a gap or an overlap" : "a name occurs twice"),
                  "exchange.many.wrong", "%d: '%s'", wrong, small.message);
        } else {
            check(!status && small.w[0] >= 1 && small.w[0] <= 1 && small.w[1] >= 1,
                  "exchange.many.reversed", "%s", small.message);
        }
        free(b.data);
    }
    free(end.data);
    for (i = 0; i < 4; i++)
        free(memory[i]);
}

/* Any file, tensor by tensor: types, shapes of more dimensions than are kept, data. */
static void tensors_one_by_one(void)
{
    static const char header[] =
        "{\"__metadata__\":{\"a\":\"b\"},"
        "\"half\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[8,20]},"
        "\"\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
        "\"deep\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,2,2],\"data_offsets\":[20,24]}}";
    memory_file f = forge(header, 24);
    const unsigned char *data = (const unsigned char *)f.data + 8 + strlen(header);
    lgelu_tensor t;
    int good, cut_off = 1;
    memset(&t, 0, sizeof t);
    good = lgelu_next_tensor(f.data, f.size, &t) == 1 && t.name_bytes == 4
           && !memcmp(t.name, "half", 4) && !strcmp(t.dtype, "BF16") && t.dims == 2
           && t.shape[0] == 2 && t.shape[1] == 3 && t.data == data + 8 && t.bytes == 12
           && !memcmp((const char *)f.data + t.at, "half", 4);
    good &= lgelu_next_tensor(f.data, f.size, &t) == 1 && t.name_bytes == 0
            && !strcmp(t.dtype, "I64") && t.dims == 0 && t.data == data && t.bytes == 8;
    good &= lgelu_next_tensor(f.data, f.size, &t) == 1 && !strcmp(t.dtype, "U8") && t.dims == 9
            && t.shape[7] == 2 && t.data == data + 20 && t.bytes == 4;
    good &= lgelu_next_tensor(f.data, f.size, &t) == 0 && t.data == data && t.bytes == 24;
    check(good, "exchange.tensors_one_by_one", "%s", t.wrong ? t.wrong : "other tensors");
    for (size_t bytes = 0; bytes < f.size; bytes++) {
        int found;
        memset(&t, 0, sizeof t);
        do {
            found = lgelu_next_tensor(f.data, bytes, &t);
        } while (found > 0);
        cut_off &= found < 0 && t.wrong && t.at <= f.size;
    }
    check(cut_off, "exchange.tensors_of_a_file_that_is_cut_off", "one is accepted");
    free(f.data);
}

/* A refused file changes nothing: a generation continues, and a backward still has its forward. */
static void refused(void)
{
    enum { T = 12, V = 7 };
    static lgelu_node node[64];
    static model m, was;
    lgelu_transformer shape = {
        .layers = 2, .heads = 2, .width = 8, .gate = LGELU_GATE_LAMBDA, .lambda = 2
    };
    const int32_t token[T] = { 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5 };
    float logits[V];
    memory_file file = { NULL, 0, 0 }, b = { NULL, 0, 0 };
    lgelu_net net;
    void *memory;
    size_t need;
    int x, i;
    /* This is a valid file of another network. */
    memory = chain(&net, node, 60, LGELU_MODE_INFER, 1);
    lgelu_net_save(&net, NULL, 0, memory_append, &b);
    free(memory);
    make(&m, LGELU_MODE_TRAIN, LGELU_GATE_LAMBDA, 1);
    lgelu_net_begin(&net, node, 64);
    x = lgelu_tokens(&net, "tokens", T, V);
    i = lgelu_gpt(&net, x, &shape);
    need = lgelu_net_bytes(&net, 1, LGELU_MODE_GENERATE);
    memory = malloc(need);
    lgelu_net_make(&net, memory, need, 1, LGELU_MODE_GENERATE, 3);
    lgelu_net_bind(&net, x, token);
    lgelu_net_generate(&net, 0, 5);
    lgelu_net_generate(&net, 5, 1);
    memcpy(logits, lgelu_net_value(&net, i), sizeof logits);
    lgelu_net_generate(&net, 0, 5);
    check(lgelu_net_load(&net, b.data, b.size) == LGELU_E_FILE && !net.status, "exchange.refused",
          "%s", net.message);
    lgelu_net_generate(&net, 5, 1);
    check(!net.status && !memcmp(logits, lgelu_net_value(&net, i), sizeof logits),
          "exchange.refused.generation_goes_on", "%s", net.message);
    lgelu_net_save(&net, NULL, 0, memory_append, &file);
    check(!lgelu_net_load(&net, file.data, file.size)
              && lgelu_net_generate(&net, 6, 1) == LGELU_E_ARGUMENT
              && strstr(net.message, "only 0 before"),
          "exchange.loaded.generation_begins_anew", "%s", net.message);
    make(&was, LGELU_MODE_TRAIN, LGELU_GATE_LAMBDA, 1);
    for (i = 0; i < BATCH * INPUTS; i++)
        m.data[i] = was.data[i] = (float)(i % 7) / 7;
    lgelu_net_forward(&m.net, BATCH);
    lgelu_net_forward(&was.net, BATCH);
    lgelu_net_load(&m.net, b.data, b.size);
    lgelu_net_backward(&m.net, 1);
    lgelu_net_backward(&was.net, 1);
    check(!m.net.status && !memcmp(m.net.g, was.net.g, m.net.parameter_count * sizeof(float)),
          "exchange.refused.backward_goes_on", "%s", m.net.message);
    free(memory);
    free(b.data);
    free(file.data);
    free(m.memory);
    free(was.memory);
}

/* What the metadata states is true, or the file is refused. */
static void metadata_told(void)
{
    static model a, b, was;
    static const struct {
        const char *from, *to, *why;
    } change[] = {
        { "\"step\":\"1234567\"", "\"step\":\"12x4567\"", "'step': expected a number of steps" },
        { "\"step\":\"1234567\"", "\"step\":\"-234567\"", "'step': expected a number of steps" },
        { "\"gate1\":\"relu\"", "\"gate1\":\"mish\"", "gate 'gate1' is of no known kind" }
    };
    memory_file file = { NULL, 0, 0 };
    size_t i, k;
    make(&a, LGELU_MODE_TRAIN, LGELU_GATE_LAMBDA, 1);
    make(&b, LGELU_MODE_TRAIN, LGELU_GATE_LAMBDA, 2);
    make(&was, LGELU_MODE_TRAIN, LGELU_GATE_LAMBDA, 2);
    a.net.step = LONG_MAX;
    lgelu_net_save(&a.net, NULL, 0, memory_append, &file);
    check(!lgelu_net_load(&b.net, file.data, file.size) && b.net.step == LONG_MAX,
          "exchange.step.largest", "%ld %s", b.net.step, b.net.message);
    free(b.memory);
    make(&b, LGELU_MODE_TRAIN, LGELU_GATE_LAMBDA, 2);
    a.net.step = 1234567;
    lgelu_net_relu(&a.net);
    for (i = 0; i < sizeof change / sizeof *change; i++) {
        file.size = 0;
        lgelu_net_save(&a.net, NULL, 0, memory_append, &file);
        for (k = 8; memcmp(file.data + k, change[i].from, strlen(change[i].from)); k++) {
        }
        memcpy(file.data + k, change[i].to, strlen(change[i].to));
        n_wrong = n_message = n_changed = 0;
        expect_refusal(&b, &was, file.data, file.size, change[i].why);
        check(!n_wrong && !n_message && !n_changed, "exchange.metadata_wrong", "%s: '%s'",
              change[i].to, last);
    }
    /* A gate of a kind without a λ takes no λ from a file. */
    file.size = 0;
    lgelu_net_save(&a.net, NULL, 0, memory_append, &file);
    for (k = 8; memcmp(file.data + k, "gate1.lambda\"", 13); k++) {
    }
    file.data[k] = 'G';
    check(!lgelu_net_load(&b.net, file.data, file.size) && b.net.lambda[0] > 1e30f
              && b.node[3].gate == LGELU_GATE_RELU,
          "exchange.gate_kind_alone", "λ = %g %s", (double)b.net.lambda[0], b.net.message);
    free(file.data);
    free(a.memory);
    free(b.memory);
    free(was.memory);
}

/* A network whose normalisation has been folded refuses a file and a copy of one that still has it,
 * and the other way round. */
static void folded(void)
{
    static lgelu_node node[2][8];
    static float picture[48];
    lgelu_net net[2];
    void *memory[2];
    memory_file file = { NULL, 0, 0 };
    size_t need, i;
    int k;
    for (k = 0; k < 2; k++) {
        int x;
        lgelu_net_begin(net + k, node[k], 8);
        x = lgelu_input(net + k, "x", 4, 4, 3);
        lgelu_batch_norm(net + k, "bn", lgelu_conv(net + k, "conv", x, 5, 3, 1, 1, 1, 1), 0.1f,
                         1e-5f);
        need = lgelu_net_bytes(net + k, 1, LGELU_MODE_INFER);
        memory[k] = malloc(need);
        lgelu_net_make(net + k, memory[k], need, 1, LGELU_MODE_INFER, (uint64_t)k);
        lgelu_net_bind(net + k, x, picture);
        for (i = 0; i < net[k].state_count; i++)
            net[k].state[i] = 2 + (float)i;
    }
    lgelu_net_save(net, NULL, 0, memory_append, &file);
    lgelu_net_fold(net + 1);
    float w = net[1].w[0];
    check(lgelu_net_load(net + 1, file.data, file.size) == LGELU_E_FILE
              && strstr(net[1].message, "'bn.running_mean' is folded") && net[1].w[0] >= w
              && net[1].w[0] <= w,
          "exchange.folded", "%s", net[1].message);
    check(lgelu_net_copy(net + 1, net) == LGELU_E_ARGUMENT
              && strstr(net[1].message, "'bn' is of another kind"),
          "exchange.folded.copy", "%s", net[1].message);
    net[1].status = LGELU_OK;
    file.size = 0;
    lgelu_net_save(net + 1, NULL, 0, memory_append, &file);
    check(lgelu_net_load(net, file.data, file.size) == LGELU_E_FILE
              && strstr(net[0].message, "'bn.weight'"),
          "exchange.folded.file", "%s", net[0].message);
    check(!lgelu_net_load(net + 1, file.data, file.size), "exchange.folded.both", "%s",
          net[1].message);
    free(memory[0]);
    free(memory[1]);
    free(file.data);
}

static void printed(void)
{
    static lgelu_node node[8];
    lgelu_net net;
    memory_file text = { NULL, 0, 0 };
    int x;
    size_t i, total = 0, column;
    lgelu_net_begin(&net, node, 8);
    /* Two gradients are added here. */
    x = lgelu_linear(&net, "f1", lgelu_input(&net, "x", 1, 1, 3), 5);
    x = lgelu_add(&net, "sum", lgelu_linear(&net, "f2", x, 5), lgelu_linear(&net, "f3", x, 5));
    lgelu_mean_squared_error(&net, "loss", x, lgelu_input(&net, "t", 1, 1, 5));
    lgelu_net_bytes(&net, 4, LGELU_MODE_TRAIN);
    check(!lgelu_net_print(&net, memory_append, &text), "exchange.print", "%s", net.message);
    memory_append("", 1, &text);
    check(strstr((char *)text.data, "scratch") && node[1].internal.buffer[3].bytes,
          "exchange.print.scratch", "%s", text.data);
    for (i = 0; i < 8; i++) {
        for (column = 0; column < 4; column++)
            total += i < (size_t)net.count ? node[i].internal.buffer[column].bytes : 0;
    }
    {
        char expected[40];
        snprintf(expected, sizeof expected, "buffers %lu bytes", (unsigned long)total);
        check(strstr((char *)text.data, expected) != NULL, "exchange.print.total", "%s in %s",
              expected, text.data);
        snprintf(expected, sizeof expected, "%lu@",
                 (unsigned long)node[1].internal.buffer[3].bytes);
        check(strstr(strstr((char *)text.data, "f1"), expected) != NULL,
              "exchange.print.scratch_listed", "%s in %s", expected, text.data);
    }
    free(text.data);
}

/* The memory plans of the builders' networks: which bytes each layer has, and where. */
static void plans(void)
{
    static const size_t widths[] = { 9, 7, 4 };
    static const uint64_t recorded[2][5] = {
        { 0xd8bda4a48d2cfcfeu, 0x1b0a0f891d58b204u, 0x5e2dc163fb95ef52u, 0x791462aeb99b7411u,
          0xb8d47dab4e158d11u },
        { 0x011ed344da6408e0u, 0x186e75d7f367c524u, 0x031d177fab5b22f8u, 0x137e194732f48e53u,
          0x83d6c93275e0bc02u }
    };
    static const char *const names[] = { "mlp", "lenet", "resnet", "gpt", "vit" };
    static lgelu_node node[128];
    lgelu_transformer shape = gpt_shape(2, 2, 12, LGELU_GATE_LAMBDA, 2);
    int k, mode;
    shape.dropout = 0.1f;
    for (mode = 0; mode < 2; mode++) {
        for (k = 0; k < 5; k++) {
            memory_file text = { NULL, 0, 0 };
            uint64_t hash = HASH_START;
            char name[64];
            lgelu_net net;
            lgelu_init init;
            float deviation;
            size_t i;
            int x;
            lgelu_net_begin(&net, node, 128);
            init = net.init;
            deviation = net.deviation;
            x = k == 3 ? lgelu_tokens(&net, "x", 8, 11)
                       : lgelu_input(&net, "x", k ? 28 : 1, k ? 28 : 1, k ? 3 : 784);
            if (k == 0)
                x = lgelu_mlp(&net, x, widths, 3, LGELU_GATE_LAMBDA, 2);
            else if (k == 1)
                x = lgelu_lenet(&net, x, 10, LGELU_GATE_LAMBDA, 2);
            else if (k == 2)
                x = lgelu_resnet(&net, x, 8, 3, 1, 10, LGELU_GATE_LAMBDA, 2);
            else if (k == 3)
                x = lgelu_gpt(&net, x, &shape);
            else
                x = lgelu_vit(&net, x, &shape, 7, 0, 10);
            if (mode)
                lgelu_cross_entropy(&net, "loss", x,
                                    lgelu_labels(&net, "y", k == 3 ? 8 : 1,
                                                 k == 0   ? 4
                                                 : k == 3 ? 11
                                                          : 10));
            check(net.init == init && !memcmp(&net.deviation, &deviation, sizeof deviation),
                  "exchange.plan.init", "%s: the builder changes how later layers are initialised",
                  names[k]);
            lgelu_net_bytes(&net, 6, mode ? LGELU_MODE_TRAIN : LGELU_MODE_INFER);
            lgelu_net_print(&net, memory_append, &text);
            for (i = 0; i < text.size; i++)
                hash = hash_word(hash, text.data[i], 1);
            snprintf(name, sizeof name, "exchange.plan.%s.%s", names[k], mode ? "train" : "infer");
            check(!net.status && hash == recorded[mode][k], name, "%016llx %s",
                  (unsigned long long)hash, net.message);
            free(text.data);
        }
    }
}

/* ---- Beside a file of another program ---- */
/* Returns where a tensor's bytes begin, found by its name alone, and how many there are; NULL if
 * the file has no such tensor. */
static const unsigned char *tensor_named(const unsigned char *file, size_t size, const char *name,
                                         size_t *bytes)
{
    size_t header = 0, from = 0, to = 0;
    char key[64], text[8192];
    const char *entry;
    for (int i = 8; i--;)
        header = header << 8 | file[i];
    if (header + 8 > size || header >= sizeof text)
        return NULL;
    memcpy(text, file + 8, header);
    text[header] = 0;
    snprintf(key, sizeof key, "\"%s\":{", name);
    entry = strstr(text, key);
    entry = entry ? strstr(entry, "\"data_offsets\":[") : NULL;
    if (!entry || sscanf(entry, "\"data_offsets\":[%zu,%zu]", &from, &to) != 2 || to < from
        || 8 + header + to > size)
        return NULL;
    *bytes = to - from;
    return file + 8 + header + from;
}

static void make_saved(model *m, lgelu_mode mode)
{
    size_t need;
    int y;
    lgelu_net_begin(&m->net, m->node, 16);
    m->x = lgelu_input(&m->net, "x", 1, 1, 3);
    y = lgelu_batch_norm(&m->net, "bn", lgelu_linear(&m->net, "fc", m->x, 4), 0.1f, 1e-3f);
    y = lgelu_gate(&m->net, "gate", y, LGELU_GATE_LAMBDA, 5);
    m->logits = lgelu_linear(&m->net, "head", lgelu_layer_norm(&m->net, "ln", y), 2);
    need = lgelu_net_bytes(&m->net, 5, mode);
    m->memory = malloc(need);
    lgelu_net_make(&m->net, m->memory, need, 5, mode, 1);
}

/* Returns how many tensors of `file` are in `other` with the same bytes. */
static int tensors_alike(const unsigned char *file, size_t size, const unsigned char *other,
                         size_t other_size)
{
    int alike = 0;
    for (size_t i = 0; i < sizeof saved_name / sizeof *saved_name; i++) {
        size_t n = 0, k = 0;
        const unsigned char *a = tensor_named(file, size, saved_name[i], &n),
                            *b = tensor_named(other, other_size, saved_name[i], &k);
        if (a && b && n == k && !memcmp(a, b, n))
            alike++;
        else
            printf("# tensor %s\n", saved_name[i]);
    }
    return alike;
}

/* A layer's arrays in the network, beside the tensors of their names. */
typedef struct {
    const char *name;
    const float *data;
} array_of;

static int arrays_alike(const lgelu_net *net, const lgelu_node *node)
{
    /* fc, bn, gate, ln, head follow the input. */
    const lgelu_node *fc = node + 1, *bn = node + 2, *ln = node + 4, *head = node + 5;
    const array_of row[] = { { "fc.weight", net->w + fc->weight_at },
                             { "fc.weight.m", net->m + fc->weight_at },
                             { "fc.weight.v", net->v + fc->weight_at },
                             { "fc.bias", net->w + fc->bias_at },
                             { "fc.bias.m", net->m + fc->bias_at },
                             { "fc.bias.v", net->v + fc->bias_at },
                             { "bn.weight", net->w + bn->bias_at },
                             { "bn.bias", net->w + bn->bias_at + 4 },
                             { "bn.weight.m", net->m + bn->bias_at },
                             { "bn.bias.v", net->v + bn->bias_at + 4 },
                             { "bn.running_mean", net->state + bn->state_at },
                             { "bn.running_var", net->state + bn->state_at + 4 },
                             { "gate.s", net->s },
                             { "gate.s.m", net->s_m },
                             { "gate.s.v", net->s_v },
                             { "gate.lambda", net->lambda },
                             { "gate.lambda0", net->lambda0 },
                             { "ln.weight", net->w + ln->bias_at },
                             { "ln.bias", net->w + ln->bias_at + 4 },
                             { "ln.weight.v", net->v + ln->bias_at },
                             { "ln.bias.m", net->m + ln->bias_at + 4 },
                             { "head.weight", net->w + head->weight_at },
                             { "head.bias.v", net->v + head->bias_at } };
    int alike = 1;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        size_t n = 0;
        const unsigned char *t = tensor_named(saved_file, sizeof saved_file, row[i].name, &n);
        for (size_t k = 0; t && k < n / 4; k++, t += 4) {
            const uint32_t bits =
                (uint32_t)t[0] | (uint32_t)t[1] << 8 | (uint32_t)t[2] << 16 | (uint32_t)t[3] << 24;
            alike &= bits == to_bits(row[i].data[k]);
        }
        alike &= t != NULL;
    }
    return alike;
}

/* A file that Python wrote loads into the arrays that its names say, computes what Python computes
 * from the tensors of these names, and is saved with the same bytes under each name. */
static void beside_another_program(void)
{
    static model m, infer;
    memory_file file = { NULL, 0, 0 };
    const int tensors = (int)(sizeof saved_name / sizeof *saved_name);
    double worst = 0;
    int alike;
    make_saved(&m, LGELU_MODE_TRAIN);
    lgelu_net_load(&m.net, saved_file, sizeof saved_file);
    check(!m.net.status && m.net.step == 7, "exchange.other_program_loads", "%s", m.net.message);
    check(arrays_alike(&m.net, m.node), "exchange.other_program_arrays", "an array differs");
    lgelu_net_save(&m.net, NULL, 0, memory_append, &file);
    alike = tensors_alike(saved_file, sizeof saved_file, file.data, file.size);
    check(alike == tensors, "exchange.other_program_saves", "%d of %d tensors", alike, tensors);

    make_saved(&infer, LGELU_MODE_INFER);
    lgelu_net_load(&infer.net, saved_file, sizeof saved_file);
    lgelu_net_bind(&infer.net, infer.x, saved_x);
    lgelu_net_forward(&infer.net, 5);
    for (int i = 0; i < 10 && !infer.net.status; i++) {
        const double off = fabs((double)lgelu_net_value(&infer.net, infer.logits)[i] - saved_y[i]);
        if (!(off <= worst))
            worst = off;
    }
    check(!infer.net.status && worst < 1e-5, "exchange.other_program_values", "off by %.3g %s",
          worst, infer.net.message);
    free(file.data);
    free(m.memory);
    free(infer.memory);
}

/* Replaces a value of the fixture by one that no training has: the file is refused with tensor and
 * index, and no array changes. What is unusual, but may be, is accepted. */
static void values_of_no_training(void)
{
    static const struct {
        const char *name;
        size_t index;
        float value;
        const char *expected; /* NULL: accepted */
    } row[] = { { "fc.weight", 5, NAN, "a finite number" },
                { "fc.weight", 0, -INFINITY, "a finite number" },
                { "fc.bias", 3, INFINITY, "a finite number" },
                { "bn.weight", 1, NAN, "a finite number" },
                { "head.weight.m", 7, NAN, "a finite number" },
                { "head.weight.v", 7, -1e-30f, "a finite number of at least 0" },
                { "head.bias.v", 1, INFINITY, "a finite number of at least 0" },
                { "ln.bias.m", 2, INFINITY, "a finite number" },
                { "bn.running_mean", 0, NAN, "a finite number" },
                { "bn.running_var", 3, -0.25f, "a finite number of at least 0" },
                { "bn.running_var", 2, NAN, "a finite number of at least 0" },
                { "gate.s", 0, NAN, "a number or an infinity" },
                { "gate.s.m", 0, NAN, "a finite number" },
                { "gate.s.v", 0, -1, "a finite number of at least 0" },
                { "gate.lambda", 0, 0.5f, "λ of at least 1" },
                { "gate.lambda", 0, NAN, "λ of at least 1" },
                { "gate.lambda0", 0, INFINITY, "0 or a finite λ of at least 1" },
                { "gate.lambda0", 0, 0.5f, "0 or a finite λ of at least 1" },
                { "gate.lambda0", 0, NAN, "0 or a finite λ of at least 1" },
                { "gate.lambda0", 0, 0, NULL },
                { "gate.lambda", 0, INFINITY, NULL },
                { "gate.s", 0, -INFINITY, NULL },
                { "bn.running_var", 1, 0, NULL },
                { "fc.weight", 11, FLT_MAX, NULL } };
    static model m;
    static unsigned char file[sizeof saved_file];
    make_saved(&m, LGELU_MODE_TRAIN);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char name[64], why[96] = "";
        size_t n;
        const uint32_t bits = to_bits(row[i].value);
        lgelu_status status;
        lgelu_net_load(&m.net, saved_file, sizeof saved_file);
        memcpy(file, saved_file, sizeof file);
        size_t at = (size_t)(tensor_named(file, sizeof file, row[i].name, &n) - file);
        for (int k = 0; k < 4; k++)
            file[at + 4 * row[i].index + (size_t)k] = (unsigned char)(bits >> 8 * k);
        status = lgelu_net_load(&m.net, file, sizeof file);
        snprintf(name, sizeof name, "exchange.value %g in %s", (double)row[i].value, row[i].name);
        if (!row[i].expected) {
            check(!status, name, "%s", m.net.message);
            continue;
        }
        snprintf(why, sizeof why, "'%s': value %zu: expected %s", row[i].name, row[i].index,
                 row[i].expected);
        check(status && !m.net.status && strstr(m.net.message, why) && arrays_alike(&m.net, m.node),
              name, "status %d, '%s'", (int)status, m.net.message);
    }
    free(m.memory);
}

int main(void)
{
    isa_from_environment();
    round_trip();
    beside_another_program();
    values_of_no_training();
    headers();
    names();
    shapes();
    parts();
    many_tensors();
    tensors_one_by_one();
    refused();
    metadata_told();
    folded();
    printed();
    plans();
    return check_end();
}
