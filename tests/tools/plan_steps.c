/* SPDX-License-Identifier: MIT-0

   plan_steps.c: how many steps it takes to plan, make and copy networks of 500 and of 2,000 nodes.
   A step is a basic block of lgelu.h, whose implementation is compiled with
   -fsanitize-coverage=trace-pc and so calls a function of this file at each; this file is compiled
   without it. Four times the nodes may take at most eight times the steps: quadratic time is
   sixteen times, n log n with these numbers five times. To sort and to place the buffers may take
   quadratic time, but no more, so that planning and making may take twenty times the steps; with
   the argument "unplaced" a copy of lgelu.h is measured that does neither, and has to plan within
   eight times. test_plan_steps.sh compiles and runs both. */
#define LGELU_TRAINER
#include "lgelu.h"
#include "check.h"

static unsigned long steps;

void __sanitizer_cov_trace_pc(void);

void __sanitizer_cov_trace_pc(void) { steps++; }

enum { SMALL = 500, LARGE = 4 * SMALL, WIDTH = 4 };

/* Layers that follow each other, in pairs of a matrix and a gate. */
enum shape { CHAIN, WIDTHS, RESIDUAL, DENSE, TIED, TOKENS, SHAPES };

static const char *const shape_name[SHAPES] = {
    "a chain",
    "a chain of random widths",
    "a residual network",
    "a network whose sums all read the first layer",
    "a network whose layers share a matrix, each with a loss",
    "a transformer"
};

/* Appends layers to what x is the last of. first is the first layer, table an embedding. */
static int layers(lgelu_net *net, enum shape shape, int x, int first, int table, int i)
{
    char name[32];
    size_t width = WIDTH;
    int y = x;
    if (shape == WIDTHS)
        width = 1 + lgelu_random(1, 1, (uint64_t)i) % 64;
    snprintf(name, sizeof name, "linear%d", i);
    if (shape == TIED) {
        y = lgelu_linear_tied(net, name, x, table);
        snprintf(name, sizeof name, "labels%d", i);
        x = lgelu_labels(net, name, 8, 600000);
        snprintf(name, sizeof name, "loss%d", i);
        lgelu_cross_entropy(net, name, y, x);
        return first;
    }
    if (shape == TOKENS) {
        y = lgelu_linear(net, name, x, 3 * WIDTH);
        snprintf(name, sizeof name, "attention%d", i);
        y = lgelu_attention(net, name, y, 1, 1);
    } else {
        y = lgelu_linear(net, name, x, width);
    }
    snprintf(name, sizeof name, "gate%d", i);
    y = lgelu_gate(net, name, y, LGELU_GATE_GELU, 1);
    snprintf(name, sizeof name, "sum%d", i);
    if (shape == RESIDUAL || shape == TOKENS)
        return lgelu_add(net, name, x, y);
    return shape == DENSE ? lgelu_add(net, name, y, first) : y;
}

static void build(lgelu_net *net, lgelu_node *nodes, int count, enum shape shape)
{
    int i, x, first, table = -1;
    lgelu_net_begin(net, nodes, count);
    if (shape == TIED || shape == TOKENS) {
        x = lgelu_tokens(net, "tokens", 8, shape == TIED ? 600000 : 8);
        first = table = lgelu_embedding(net, "table", x, WIDTH);
    } else {
        first = lgelu_linear(net, "first", lgelu_input(net, "x", 1, 1, WIDTH), WIDTH);
    }
    x = first;
    for (i = 0; net->count + 4 <= count; i++)
        x = layers(net, shape, x, first, table, i);
}

/* Counts the steps of planning and, if `make` is 1, of making and of copying a network. */
static void count(enum shape shape, int nodes, lgelu_mode mode, int make, unsigned long counted[3])
{
    lgelu_node *of[2];
    lgelu_net net[2];
    void *block[2] = { NULL, NULL };
    int k;
    for (k = 0; k < 2; k++) {
        of[k] = (lgelu_node *)calloc((size_t)nodes, sizeof *of[k]);
        if (!of[k])
            abort();
        build(&net[k], of[k], nodes, shape);
        steps = 0;
        const size_t bytes = lgelu_net_bytes(&net[k], 1, mode);
        counted[0] = steps;
        counted[1] = counted[2] = 0;
        if (!make)
            continue;
        block[k] = malloc(bytes);
        steps = 0;
        lgelu_net_make(&net[k], block[k], bytes, 1, mode, 1);
        counted[1] = steps;
    }
    if (make) {
        steps = 0;
        lgelu_net_copy(&net[0], &net[1]);
        counted[2] = steps;
    }
    check(!net[0].status && !net[1].status, "the network is made", "%s: %s%s", shape_name[shape],
          net[0].message, net[1].message);
    for (k = 0; k < 2; k++) {
        free(block[k]);
        free(of[k]);
    }
}

int main(int argc, char **argv)
{
    static const char *const what[3] = { "planned", "made", "copied" };
    static const lgelu_mode modes[3] = { LGELU_MODE_TRAIN, LGELU_MODE_INFER, LGELU_MODE_GENERATE };
    static const char *const mode_name[3] = { "training", "inference", "generation" };
    static const unsigned long most[3] = { 20, 20, 8 };
    const int unplaced = argc > 1 && !strcmp(argv[1], "unplaced");
    unsigned long few[3], many[3];
    for (int shape = 0; shape < SHAPES; shape++) {
        for (int m = 0; m < (shape == TOKENS ? 3 : 2); m++) {
            /* A shared matrix of 600,000 rows is planned only. */
            const int make = shape != TIED && !unplaced;
            count((enum shape)shape, SMALL, modes[m], make, few);
            count((enum shape)shape, LARGE, modes[m], make, many);
            for (int k = 0; k < (make ? 3 : 1); k++) {
                const unsigned long times = unplaced ? 8 : most[k];
                char name[200];
                snprintf(name, sizeof name,
                         "%s is %s for %s%s: four times the nodes take at most %lu times the steps",
                         shape_name[shape], what[k], mode_name[m],
                         unplaced ? ", but for the placing of buffers" : "", times);
                check(few[k] && many[k] < times * few[k], name,
                      "%d nodes take %lu steps, %d take %lu", SMALL, few[k], LARGE, many[k]);
            }
        }
    }
    return check_end();
}
