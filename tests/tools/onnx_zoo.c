/* SPDX-License-Identifier: MIT-0
   onnx_zoo LIST FOLDER AGAIN: for each network of the list that onnx_zoo.py prints: it is read, its
   outputs are PyTorch's to 1e-4 of the largest, a few training steps lower its loss, and it is
   written to the folder AGAIN, with its inputs and outputs, and read from there. Prints one line
   for each: its name, and "in" or "refused", "trained", "out", "in again" with the reason where
   something failed. */
#define LGELU_TRAINER
#include "../../lgelu.h"
#include "onnx_out.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "folder.h"
#include "onnx_open.h"

enum { STEPS = 6 };

typedef struct {
    char name[64], type[16], given[64], result[64], refused[128];
    size_t batch;
    unsigned char *file, *x, *y; /* the network, its input, PyTorch's output */
    size_t bytes, in_bytes, out_bytes;
    onnx_model *model;
    opened from;
    char why[300];
} animal;

typedef struct {
    lgelu_net net;
    lgelu_node *nodes;
    void *memory;
    float *x, *target;
    int32_t *token, *label;
    int in, out;
} body;

static size_t size_of(const lgelu_node *node)
{
    return node->shape[0] * node->shape[1] * node->shape[2];
}

/* Reorders from channels first to channels last, or back. */
static void turn(float *y, const float *x, const size_t *shape, size_t batch, int back)
{
    const size_t pixels = shape[0] * shape[1], c = shape[2];
    size_t b, i, k;
    for (b = 0; b < batch; b++) {
        for (i = 0; i < pixels; i++) {
            for (k = 0; k < c; k++) {
                const size_t last = (b * pixels + i) * c + k, first = (b * c + k) * pixels + i;
                y[back ? first : last] = x[back ? last : first];
            }
        }
    }
}

static int refuse(animal *a, const char *text)
{
    snprintf(a->why, sizeof a->why, "%s", text);
    return 0;
}

static int read_file(animal *a)
{
    char message[160];
    a->model = open_model(&a->from, a->file, a->bytes, 0, message);
    return a->model ? 1 : refuse(a, message);
}

/* Adds the loss that fits the output: of classes, of tokens, or of numbers. */
static int add_loss(body *b)
{
    const size_t *s = b->nodes[b->out].shape;
    int answer;
    if (s[2] > 1 && s[0] == 1) {
        answer = lgelu_labels(&b->net, "zoo.labels", s[0] * s[1], s[2]);
        lgelu_cross_entropy(&b->net, "zoo.loss", b->out, answer);
    } else {
        answer = lgelu_input(&b->net, "zoo.target", s[0], s[1], s[2]);
        lgelu_mean_squared_error(&b->net, "zoo.loss", b->out, answer);
    }
    return answer;
}

static int grow(animal *a, body *b, int learn)
{
    const lgelu_mode mode = learn ? LGELU_MODE_TRAIN : LGELU_MODE_INFER;
    size_t bytes, i;
    int answer = -1;
    memset(b, 0, sizeof *b);
    b->nodes = calloc((size_t)onnx_nodes(a->model) + 2, sizeof *b->nodes);
    lgelu_net_begin(&b->net, b->nodes, onnx_nodes(a->model) + 2);
    b->out = onnx_build(a->model, &b->net, learn, &b->in);
    if (b->out >= 0 && learn)
        answer = add_loss(b);
    bytes = lgelu_net_bytes(&b->net, a->batch, mode);
    b->memory = malloc(bytes + 1);
    if (b->out < 0 || !bytes || lgelu_net_make(&b->net, b->memory, bytes, a->batch, mode, 1)
        || onnx_fill(a->model, &b->net))
        return refuse(a, b->net.message);
    b->x = malloc(a->in_bytes + 1);
    b->token = malloc(a->in_bytes + 1);
    b->label = calloc(a->batch * size_of(b->nodes + b->out), sizeof *b->label);
    b->target = calloc(a->batch * size_of(b->nodes + b->out), sizeof *b->target);
    memcpy(b->x, a->x, a->in_bytes);
    if (!strcmp(a->type, "int64")) {
        for (i = 0; i < a->in_bytes / 8; i++) {
            int64_t t;
            memcpy(&t, a->x + 8 * i, 8);
            b->token[i] = (int32_t)t;
        }
    } else if (onnx_input(a->model) == ONNX_CHANNELS_FIRST || onnx_input(a->model) == ONNX_ROW) {
        turn(b->x, (float *)(void *)a->x, b->nodes[b->in].shape, a->batch, 0);
    }
    lgelu_net_bind(&b->net, b->in, strcmp(a->type, "int64") ? (void *)b->x : b->token);
    if (learn) {
        for (i = 0; i < a->batch * size_of(b->nodes + b->out) / b->nodes[b->out].shape[2]; i++) {
            b->label[i] = (int32_t)((i * 7 + 3) % b->nodes[b->out].shape[2]);
            b->target[i] = (float)(i % 3);
        }
        lgelu_net_bind(&b->net, answer,
                       b->nodes[answer].op == LGELU_OP_LABELS ? (void *)b->label : b->target);
    }
    return 1;
}

static void end(body *b)
{
    free(b->nodes);
    free(b->memory);
    free(b->x);
    free(b->token);
    free(b->label);
    free(b->target);
}

/* Whether the outputs are PyTorch's; they are then in *ours in the file's order. */
static int agrees(animal *a, float **ours)
{
    body b;
    double worst = 0, largest = 0;
    size_t i, n;
    if (!grow(a, &b, 0))
        return 0;
    n = a->batch * size_of(b.nodes + b.out);
    if (lgelu_net_forward(&b.net, a->batch) || !lgelu_net_value(&b.net, b.out))
        return refuse(a, b.net.message);
    if (n != a->out_bytes / 4)
        return refuse(a, "another number of outputs");
    *ours = malloc(a->out_bytes);
    memcpy(*ours, lgelu_net_value(&b.net, b.out), a->out_bytes);
    if (onnx_result(a->model) == ONNX_CHANNELS_FIRST || onnx_result(a->model) == ONNX_ROW)
        turn(*ours, lgelu_net_value(&b.net, b.out), b.nodes[b.out].shape, a->batch, 1);
    for (i = 0; i < n; i++) {
        const double theirs = (double)((float *)(void *)a->y)[i];
        const double d = fabs(theirs - (double)(*ours)[i]);
        largest = fmax(largest, fabs(theirs));
        worst = d <= worst ? worst : d;
    }
    end(&b);
    snprintf(a->why, sizeof a->why, "its outputs differ by %.3g of the largest", worst / largest);
    return worst <= 1e-4 * largest;
}

/* A few steps of training lower the loss. */
static int trains(animal *a)
{
    const lgelu_training plan = lgelu_training_defaults(1e-3f, 1000);
    double first = 0;
    body b;
    int step;
    if (!grow(a, &b, 1))
        return 0;
    for (step = 0; step <= STEPS; step++) {
        if (lgelu_net_forward(&b.net, a->batch))
            return refuse(a, b.net.message);
        if (!step)
            first = b.net.loss;
        if (lgelu_net_backward(&b.net, 1) || lgelu_net_step(&b.net, &plan))
            return refuse(a, b.net.message);
    }
    snprintf(a->why, sizeof a->why, "its loss went from %g to %g", first, b.net.loss);
    step = b.net.loss < first;
    end(&b);
    return step;
}

static int writes(animal *a, const char *again, const float *ours)
{
    onnx_options o = { -1, 0, NULL, ONNX_CHANNELS_FIRST, "A test." };
    char message[160];
    void *work;
    body b;
    FILE *f;
    int bad;
    if (!grow(a, &b, 0))
        return 0;
    work = malloc(onnx_save_bytes(&b.net));
    o.node = b.out;
    o.output = onnx_output(a->model);
    o.input = onnx_input(a->model);
    f = in_folder(again, a->name, ".onnx", "wb");
    bad = onnx_save(&b.net, &o, work, put, f, message) != LGELU_OK;
    done(f);
    free(work);
    end(&b);
    if (bad)
        return refuse(a, message);
    f = in_folder(again, a->name, ".in", "wb");
    put(a->x, a->in_bytes, f);
    done(f);
    f = in_folder(again, a->name, ".out", "wb");
    put(ours, a->out_bytes, f);
    done(f);
    return 1;
}

/* Whether the file that was written is read as the same network. */
static int returns(animal *a, const char *again)
{
    animal back = *a;
    float *ours = NULL;
    int good;
    back.file = slurp(again, a->name, ".onnx", &back.bytes);
    good = read_file(&back) && agrees(&back, &ours);
    memcpy(a->why, back.why, sizeof a->why);
    free(ours);
    close_model(&back.from);
    free(back.file);
    return good;
}

/* One row of the table: what was done, or why it was not. */
static void one(animal *a, const char *again)
{
    float *ours = NULL;
    if (!read_file(a)) {
        printf("%s\trefused\t%s\t%s\n", a->name, a->why, a->refused);
        return;
    }
    if (!agrees(a, &ours))
        printf("%s\tnot in\t%s\n", a->name, a->why);
    else if (!trains(a))
        printf("%s\tnot trained\t%s\n", a->name, a->why);
    else if (!writes(a, again, ours))
        printf("%s\tnot out\t%s\n", a->name, a->why);
    else if (!returns(a, again))
        printf("%s\tnot in again\t%s\n", a->name, a->why);
    else
        printf("%s\tdone\n", a->name);
    free(ours);
}

int main(int argc, char **argv)
{
    char line[1024];
    FILE *list;
    if (argc < 4 || !(list = fopen(argv[1], "r")))
        return 2;
    while (fgets(line, sizeof line, list)) {
        animal a;
        memset(&a, 0, sizeof a);
        sscanf(line, "%63[^\t]\t%15[^\t]\t%63[^\t]\t%63[^\t\n]\t%127[^\n]", a.name, a.type, a.given,
               a.result, a.refused);
        a.batch = (size_t)atoi(a.given);
        a.file = slurp(argv[2], a.name, ".onnx", &a.bytes);
        a.x = slurp(argv[2], a.name, ".in", &a.in_bytes);
        a.y = slurp(argv[2], a.name, ".out", &a.out_bytes);
        one(&a, argv[3]);
        fflush(stdout);
        close_model(&a.from);
        free(a.file);
        free(a.x);
        free(a.y);
    }
    fclose(list);
    return 0;
}
