/* SPDX-License-Identifier: MIT-0

   test_onnx_files checks the files of onnx_out.h without third-party tools: what can't be written,
   gates, names, and batch normalisations that are folded.

       cc -O2 -I.. test_onnx_files.c tools/lgelu.c -lm -o test_onnx_files && ./test_onnx_files */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "int8.c"
#include "onnx_out.c"

enum { NODES = 64 };
static lgelu_node nodes[2][NODES];
static lgelu_net net[2];
static char why[160];
static const onnx_options plain_options = { -1, 0, NULL, ONNX_CHANNELS_FIRST, NULL };

static void *make_net(int k)
{
    const size_t bytes = lgelu_net_bytes(net + k, 2, LGELU_MODE_INFER);
    void *memory = malloc(bytes ? bytes : 1);
    if (!bytes || lgelu_net_make(net + k, memory, bytes, 2, LGELU_MODE_INFER, 7)) {
        printf("FAIL a network: %s\n", net[k].message);
        exit(1);
    }
    return memory;
}

static int refused(const onnx_options *o, lgelu_status status, const char *text, const char *name)
{
    memory_file file = { NULL, 0, 0 };
    unsigned char work[NODES];
    const lgelu_status got = onnx_save(net, o, work, memory_append, &file, why);
    free(file.data);
    return check(got == status && strstr(why, text) && !net[0].status, name, "status %d: %s",
                 (int)got, why);
}

static int room_for(const void *data, size_t n, void *user)
{
    size_t *left = (size_t *)user;
    (void)data;
    if (n > *left)
        return 1;
    *left -= n;
    return 0;
}

static int memory_has(const memory_file *file, const char *text)
{
    const size_t n = strlen(text);
    size_t i;
    for (i = 0; i + n <= file->size; i++) {
        if (!memcmp((const char *)file->data + i, text, n))
            return 1;
    }
    return 0;
}

static void what_cannot_be_written(void)
{
    onnx_options o = plain_options;
    unsigned char work[NODES];
    void *memory;
    memory_file whole = { NULL, 0, 0 };
    size_t left;
    int x, a;
    lgelu_net_begin(net, nodes[0], NODES);
    x = lgelu_input(net, "x", 1, 1, 3);
    lgelu_linear(net, "a", x, 2);
    refused(&o, LGELU_E_ARGUMENT, "must be made before", "a network that was not made");
    lgelu_net_begin(net, nodes[0], NODES);
    lgelu_linear(net, "x.weight", lgelu_linear(net, "x", lgelu_input(net, "in", 1, 1, 3), 2), 2);
    memory = make_net(0);
    refused(&o, LGELU_E_ARGUMENT,
            "layer 'x.weight': another layer has this name or uses it for a part",
            "a layer with the name of a part");
    o.node = 0;
    refused(&o, LGELU_E_ARGUMENT, "no layer between input and output", "an input as the output");
    o.node = 9;
    refused(&o, LGELU_E_ARGUMENT, "no such output", "an output that is not there");
    free(memory);
    o.node = -1;
    lgelu_net_begin(net, nodes[0], NODES);
    a = lgelu_linear(net, "a", lgelu_input(net, "in", 1, 1, 3), 2);
    lgelu_cross_entropy(net, "loss", a, lgelu_labels(net, "labels", 1, 2));
    memory = make_net(0);
    o.node = net[0].count - 1;
    refused(&o, LGELU_E_ARGUMENT, "losses are not written", "a loss as the output");
    o.node = -1;
    o.output = "in";
    refused(&o, LGELU_E_ARGUMENT, "the output and this layer have the same name",
            "an output with the input's name");
    o.output = "\xff";
    refused(&o, LGELU_E_ARGUMENT, "must be UTF-8", "an output whose name is not UTF-8");
    o.output = "\xed\xa0\x80";
    refused(&o, LGELU_E_ARGUMENT, "must be UTF-8", "an output whose name has a surrogate");
    o.output = "gelu/half";
    refused(&o, LGELU_E_ARGUMENT, "reserved", "an output with the name of a constant of gates");
    o.output = "";
    refused(&o, LGELU_E_ARGUMENT, "1 to 63 bytes", "an output without a name");
    o.output = NULL;
    check(!onnx_save(net, &o, work, memory_append, &whole, why),
          "the logits before a loss are written", "%s", why);
    for (left = 0, a = 1; left < whole.size && a; left++) {
        size_t rest = left;
        a = onnx_save(net, &o, work, room_for, &rest, why) == LGELU_E_FILE;
    }
    check(a, "a disk that is full, at each byte, is reported", "not with %zu bytes: %s", left, why);
    free(whole.data);
    free(memory);
    /* The constants of a GELU are gelu/half and gelu/one; the shape of a value y is y:shape. */
    lgelu_net_begin(net, nodes[0], NODES);
    a = lgelu_linear(net, "gelu/half", lgelu_input(net, "in", 1, 1, 3), 2);
    lgelu_gate(net, "gate", a, LGELU_GATE_GELU, 1);
    memory = make_net(0);
    o.output = NULL;
    refused(&o, LGELU_E_ARGUMENT, "layer 'gelu/half': this name is reserved",
            "a layer with the name of a constant of gates");
    free(memory);
    lgelu_net_begin(net, nodes[0], NODES);
    a = lgelu_linear(net, "y:shape", lgelu_input(net, "in", 1, 1, 3), 2);
    lgelu_gate(net, "gate", a, LGELU_GATE_LAMBDA, HUGE_VALF);
    memory = make_net(0);
    o.output = NULL;
    memset(&whole, 0, sizeof whole);
    onnx_save(net, &o, work, memory_append, &whole, why);
    check(whole.size && memory_has(&whole, "Its gates are ReLU."),
          "gates at an infinite lambda are described as ReLU", "%s", why);
    free(whole.data);
    o.output = "y";
    refused(&o, LGELU_E_ARGUMENT, "the output and this layer have the same name",
            "a layer with the name of a part of the output");
    free(memory);
}

static void outer_forward(float *y, const float *x, size_t n, size_t first, const lgelu_net *of,
                          const lgelu_node *gate, void *user)
{
    (void)user;
    (void)first;
    (void)of;
    (void)gate;
    memmove(y, x, n * sizeof *y);
}

static void outer_backward(float *dx, double *dw, const float *dy, const float *x, size_t n,
                           size_t first, const lgelu_net *of, const lgelu_node *gate, void *user)
{
    (void)user;
    (void)dw;
    (void)x;
    (void)first;
    (void)of;
    (void)gate;
    for (size_t i = 0; dx && i < n; i++)
        dx[i] = dy[i];
}

static void a_gate_of_ones_own(void)
{
    static const lgelu_custom_gate outer = { outer_forward, outer_backward, 0, 0, NULL };
    const int8_options options = { 8, 8, 1, 0 };
    int8_net q;
    int a;
    void *memory;
    lgelu_net_begin(net, nodes[0], NODES);
    net->custom_gate = &outer;
    a = lgelu_linear(net, "a", lgelu_input(net, "in", 1, 1, 3), 4);
    a = lgelu_linear(net, "b", lgelu_gate(net, "own", a, LGELU_GATE_CUSTOM, 1), 2);
    memory = make_net(0);
    refused(&plain_options, LGELU_E_ARGUMENT, "'own'", "a custom gate is refused by name");
    check(int8_make(&q, net, a, &options) == LGELU_E_ARGUMENT && strstr(q.message, "'own'"),
          "a custom gate is refused in a quantized network, too", "%s", q.message);
    int8_free(&q);
    lgelu_net_relu(net);
    check(!int8_make(&q, net, a, &options), "not once it is ReLU", "%s", q.message);
    int8_free(&q);
    free(memory);
}

/* Folding while writing gives the file of the folded network. */
static void batch_norms_are_folded(void)
{
    memory_file folded = { NULL, 0, 0 }, again = { NULL, 0, 0 };
    unsigned char work[NODES];
    onnx_options o = plain_options;
    void *memory;
    size_t k;
    lgelu_net_begin(net, nodes[0], NODES);
    lgelu_resnet(net, lgelu_input(net, "picture", 8, 8, 3), 4, 2, 1, 5, LGELU_GATE_LAMBDA, 2);
    memory = make_net(0);
    for (k = 0; k < net[0].state_count; k++)
        net[0].state[k] += (float)(k % 7) / 8;
    o.fold = 1;
    check(!onnx_save(net, &o, work, memory_append, &folded, why) && !lgelu_net_fold(net)
              && !onnx_save(net, &o, work, memory_append, &again, why) && folded.size == again.size
              && !memcmp(folded.data, again.data, again.size),
          "folding while writing gives the file of the folded network", "%zu bytes, %zu",
          folded.size, again.size);
    free(memory);
    free(folded.data);
    free(again.data);
}

/* ---- names ---- */

/* Reads a varint and moves *p behind it. */
static size_t varint(const unsigned char **p)
{
    size_t x = 0;
    int shift = 0;
    for (; **p & 128; (*p)++, shift += 7)
        x |= (size_t)(**p & 127) << shift;
    x |= (size_t) * (*p)++ << shift;
    return x;
}

/* Calls `use` with each field of a message that has a length. */
typedef void field_user(int field, const unsigned char *p, size_t n, void *user);
static void each_field(const unsigned char *p, size_t n, field_user *use, void *user)
{
    const unsigned char *const end = p + n;
    while (p < end) {
        const size_t tag = varint(&p);
        if ((tag & 7) == 0) {
            varint(&p);
        } else if ((tag & 7) == 5) {
            p += 4;
        } else {
            const size_t length = varint(&p);
            use((int)(tag >> 3), p, length, user);
            p += length;
        }
    }
}

enum { MOST_NAMES = 2000 };
typedef struct {
    const unsigned char *p[MOST_NAMES];
    size_t n[MOST_NAMES];
    size_t count;
    int wanted; /* the field of a name in the message that is read now */
} name_list;

static void add_name(int field, const unsigned char *p, size_t n, void *user)
{
    name_list *list = (name_list *)user;
    if (field == list->wanted && list->count < MOST_NAMES) {
        list->p[list->count] = p;
        list->n[list->count++] = n;
    }
}

/* Collects what a graph defines: inputs, tensors, and outputs of nodes. */
static void add_part(int field, const unsigned char *p, size_t n, void *user)
{
    name_list *list = (name_list *)user;
    list->wanted = field == 1 ? 2 : field == 5 ? 8 : field == 11 ? 1 : 0;
    if (list->wanted)
        each_field(p, n, add_name, list);
}

static void add_graph(int field, const unsigned char *p, size_t n, void *user)
{
    if (field == 7)
        each_field(p, n, add_part, user);
}

/* Returns a name that a file defines twice, or NULL. */
static const char *twice(const memory_file *file, name_list *list)
{
    static char name[100];
    list->count = 0;
    each_field(file->data, file->size, add_graph, list);
    for (size_t i = 0; i < list->count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (list->n[i] == list->n[k] && !memcmp(list->p[i], list->p[k], list->n[i])) {
                snprintf(name, sizeof name, "%.*s", (int)list->n[i], (const char *)list->p[i]);
                return name;
            }
        }
    }
    return NULL;
}

static uint64_t seed, drawn;
static size_t draw(size_t n) { return (size_t)(lgelu_random(seed, 3, drawn++) % n); }

/* Adds a random layer on a sequence of tokens, under a name that another layer's parts have. */
static int hostile_layer(lgelu_net *n, const char *name, int a)
{
    const lgelu_window w = { { 1, 1 + draw(2) }, { 1, 1 }, { 0, 0 }, { 1, 1 } };
    const size_t c = n->nodes[a].shape[2];
    switch (draw(8)) {
    case 0: return lgelu_conv_window(n, name, a, 12, &w, 1, 1);
    case 1: return lgelu_rotary(n, name, a, 1 + draw(2), 2 + 2 * draw(2), 10000, (int)draw(2));
    case 2: return lgelu_class_token(n, name, a);
    case 3: return lgelu_layer_norm(n, name, a);
    case 4: return lgelu_gate(n, name, a, draw(2) ? LGELU_GATE_TANH : LGELU_GATE_LAMBDA, 1.5f);
    case 5: return lgelu_transpose(n, name, lgelu_transpose(n, "transposed", a));
    case 6: return lgelu_attention(n, name, lgelu_linear(n, "qkv", a, 3 * c), 2, 1);
    default: return lgelu_linear(n, name, a, 12);
    }
}

/* Random graphs whose layers have the names of other layers' parts, or nearly: each name in a file
   is unique, and the file is read again; or the graph is refused by the layer's name. */
static void hostile_names(void)
{
    static const char *const names[] = {
        "class1",       "class1.line", "first",        "class1/line", "first.line", "class1/first",
        "class1.first", "line",        "class1:shape", "a.weight",    "a",          "x.cos",
        "heads",        "rest",        "class1_line",  "shape"
    };
    enum { NAMES = sizeof names / sizeof *names, GRAPHS = 600 };
    static name_list list;
    size_t written = 0, clashes = 0, others = 0, defined = 0;
    const char *found = NULL;
    for (seed = 1; seed <= GRAPHS && !found; seed++) {
        memory_file file = { NULL, 0, 0 };
        unsigned char work[NODES];
        const size_t shift = lgelu_random(seed, 4, 0) % NAMES,
                     layers = 2 + lgelu_random(seed, 4, 1) % 4;
        onnx_options o = plain_options;
        void *memory;
        int a;
        drawn = 0;
        o.input = draw(2) ? ONNX_CHANNELS_LAST : ONNX_CHANNELS_FIRST;
        lgelu_net_begin(net, nodes[0], NODES);
        a = lgelu_input(net, "in", 1, 3 + draw(4), 12);
        for (size_t k = 0; k < layers && a >= 0; k++)
            a = hostile_layer(net, names[(shift + k * 5) % NAMES], a);
        const size_t bytes = net[0].status ? 0 : lgelu_net_bytes(net, 2, LGELU_MODE_INFER);
        memory = malloc(bytes ? bytes : 1);
        if (!bytes || lgelu_net_make(net, memory, bytes, 2, LGELU_MODE_INFER, seed)) {
            others++;
        } else if (onnx_save(net, &o, work, memory_append, &file, why)) {
            if (strstr(why, "another layer has this name"))
                clashes++;
            else
                found = why;
        } else {
            found = twice(&file, &list);
            defined += list.count;
            written++;
        }
        free(memory);
        free(file.data);
    }
    printf("# %u graphs written with %u names, %u refused by a name, %u no networks\n",
           (unsigned)written, (unsigned)defined, (unsigned)clashes, (unsigned)others);
    check(!found && written > GRAPHS / 4 && defined > 10 * written,
          "every name of a graph is unique, whatever its layers are called", "seed %u: %s",
          (unsigned)seed - 1, found ? found : "too few graphs");
}

int main(void)
{
    hostile_names();
    what_cannot_be_written();
    a_gate_of_ones_own();
    batch_norms_are_folded();
    return check_end();
}
