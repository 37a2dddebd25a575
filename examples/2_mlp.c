/* SPDX-License-Identifier: MIT-0

   2_mlp: a classifier of pictures, trained smooth, hardened, made a ReLU network without a loss.

       make run                                                        builds it and trains on the repository's own pictures
       cc -O2 -fopenmp 2_mlp.c job.c job_figures.c data.c -lm -o 2_mlp && ./2_mlp --help

   Here stand the network and its training loop; the five arms that are compared, options and figures are in job.h. */
#define LGELU_IMPLEMENTATION
#include "job.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_HIDDEN = 8 };
static const char *hidden = "512,256,128";
static size_t width[MOST_HIDDEN];
static int layers;

/* pictures → (linear → gate) for each hidden width → linear → logits, with softmax cross-entropy on top */
static int build(lgelu_net *net, const job *j, lgelu_gate_kind gate, float lambda)
{
    int h = lgelu_input (net, "pictures", 1, 1, data_size(&j->data));
    int y = lgelu_labels(net, "classes", 1, j->data.classes);
    for (int i = 0; i < layers; i++) {
        char fc[16], name[16];
        snprintf(fc, sizeof fc, "fc%d", i + 1);
        snprintf(name, sizeof name, "gate%d", i + 1);
        h = lgelu_linear(net, fc, h, width[i]);
        h = lgelu_gate  (net, name, h, gate, lambda);       /* x Φ(λx): its λ is learned along with the weights */
    }
    int logits = lgelu_linear(net, "logits", h, j->data.classes);
    lgelu_cross_entropy(net, "loss", logits, y);
    return logits;
}

/* A step never needs its status read here: errors stick to the network, and job_go looks at them. */
static void train(lgelu_net *net, job *j, const lgelu_training *plan, long last)
{
    while (job_go(j, net, last)) {
        size_t samples = job_batch(j, net->step);
        lgelu_net_bind(net, 0, j->x);
        lgelu_net_bind(net, 1, j->y);
        lgelu_net_forward (net, samples);
        lgelu_net_backward(net, 1);
        lgelu_net_step    (net, plan);                      /* AdamW, the cosine rate, and λ: learned, then driven */
    }
}

/* "512,256,128" → width[], and the network's name for the table */
static const char *check(job *j)
{
    const char *p = hidden;
    char *name = j->network, *end = name + sizeof j->network;
    name += snprintf(name, (size_t)(end - name), "%zu", data_size(&j->data));
    for (layers = 0; *p; layers++) {
        char *after;
        long n = strtol(p, &after, 10);
        if (after == p || n < 1 || n > 65536 || layers == MOST_HIDDEN || (*after && (*after != ',' || !after[1])))
            return "--hidden: one to eight widths from 1 to 65536, such as 512,256,128";
        width[layers] = (size_t)n;
        name += snprintf(name, (size_t)(end - name), "-%ld", n);
        p = *after ? after + 1 : after;
    }
    if (!layers) return "--hidden: one to eight widths from 1 to 65536, such as 512,256,128";
    snprintf(name, (size_t)(end - name), "-%zu", j->data.classes);
    return NULL;
}

int main(int argc, char **argv)
{
    static job_option own[] = { { "hidden", "LIST", "widths of the hidden layers", JOB_TEXT, &hidden, 0, 0, 0, NULL } };
    static const job_program program = { "2_mlp", "a multilayer perceptron on pictures: GELU, learned λ-GELU, hardened, ReLU, switched",
                                         own, 1, check, build, train, NULL };
    return job_main(&program, argc, argv);
}
