/* SPDX-License-Identifier: MIT-0
   nets.c: the networks of --net, one row each. */
#include "study.h"
#include <stdlib.h>
#include <string.h>

const char net_names[] = "mlp|lenet|resnet8|resnet18|vit|gpt|tabular|sine";

/* ---- mlp, tabular, sine: (linear → [batch normalisation] → gate) for each hidden width → linear →
   logits, or the number ---- */
static const char *check_mlp(task *t, const config *c)
{
    const char *p = c->hidden;
    char *name = t->network, *end = name + sizeof t->network;
    name += snprintf(name, (size_t)(end - name), "%zu", t->numbers);
    for (t->layers = 0; *p; t->layers++) {
        char *after;
        long n = strtol(p, &after, 10);
        if (after == p || n < 1 || n > 65536 || t->layers == 8
            || (*after && (*after != ',' || !after[1])))
            return "--hidden: one to eight widths from 1 to 65536, such as 512,256,128";
        t->widths[t->layers] = (size_t)n;
        name += snprintf(name, (size_t)(end - name), "-%ld", n);
        p = *after ? after + 1 : after;
    }
    snprintf(name, (size_t)(end - name), "-%zu%s", t->regression ? 1 : t->classes,
             c->norm ? " with batch normalisation" : "");
    return NULL;
}

static int build_mlp(lgelu_net *net, const task *t, const config *c, lgelu_gate_kind gate,
                     float lambda)
{
    int h = lgelu_input(net, "x", 1, 1, t->numbers);
    int y = t->regression ? lgelu_input(net, "target", 1, 1, 1)
                          : lgelu_labels(net, "classes", 1, t->classes);
    for (int i = 0; i < t->layers; i++) {
        char fc[16], norm[16], name[16];
        snprintf(fc, sizeof fc, "fc%d", i + 1);
        snprintf(norm, sizeof norm, "norm%d", i + 1);
        snprintf(name, sizeof name, "gate%d", i + 1);
        h = lgelu_linear(net, fc, h, t->widths[i]);
        if (c->norm)
            h = lgelu_batch_norm(net, norm, h, 0.1f, 1e-5f);
        h = lgelu_gate(net, name, h, gate, lambda);
    }
    h = lgelu_linear(net, t->regression ? "number" : "logits", h, t->regression ? 1 : t->classes);
    if (t->regression)
        lgelu_mean_squared_error(net, "loss", h, y);
    else
        lgelu_cross_entropy(net, "loss", h, y);
    return h;
}

/* ---- pictures ---- */
static const char *check_pictures(task *t, const config *c)
{
    const char *name = t->net->name;
    if (!strcmp(name, "resnet8")) {
        snprintf(t->network, sizeof t->network, "ResNet-8, %ld to %ld channels", c->width,
                 4 * c->width);
    } else if (!strcmp(name, "resnet18")) {
        snprintf(t->network, sizeof t->network, "ResNet-18");
    } else {
        snprintf(t->network, sizeof t->network, "LeNet");
    }
    return NULL;
}

static int build_pictures(lgelu_net *net, const task *t, const config *c, lgelu_gate_kind gate,
                          float lambda)
{
    const data_set *d = &t->data;
    const char *name = t->net->name;
    int x = lgelu_input(net, "x", d->height, d->width, d->channels);
    int y = lgelu_labels(net, "classes", 1, d->classes), logits;
    if (!strcmp(name, "lenet"))
        logits = lgelu_lenet(net, x, d->classes, gate, lambda);
    else if (!strcmp(name, "resnet8"))
        logits = lgelu_resnet(net, x, (size_t)c->width, 3, 1, d->classes, gate, lambda);
    else
        logits = lgelu_resnet(net, x, 64, 4, 2, d->classes, gate, lambda);
    lgelu_cross_entropy(net, "loss", logits, y);
    return logits;
}

/* ---- Transformers ---- */
static const char *check_transformer(task *t, const config *c)
{
    if (c->width % c->heads)
        return "--heads: the width can't be shared out to so many";
    if (t->net->data == FROM_TEXT) {
        snprintf(t->network, sizeof t->network, "GPT of %ld x %ld, context %ld", c->layers,
                 c->width, c->context);
    } else {
        snprintf(t->network, sizeof t->network, "ViT of %ld x %ld, squares of 4", c->layers,
                 c->width);
    }
    return NULL;
}

static lgelu_transformer transformer(const config *c, lgelu_gate_kind gate, float lambda)
{
    lgelu_transformer shape;
    memset(&shape, 0, sizeof shape);
    shape.layers = (size_t)c->layers;
    shape.heads = (size_t)c->heads;
    shape.width = (size_t)c->width;
    shape.gate = gate;
    shape.lambda = lambda;
    shape.dropout = (float)c->dropout;
    shape.untied = c->untied;
    shape.embedding = (float)c->embed_deviation;
    return shape;
}

static int build_vit(lgelu_net *net, const task *t, const config *c, lgelu_gate_kind gate,
                     float lambda)
{
    const lgelu_transformer shape = transformer(c, gate, lambda);
    const data_set *d = &t->data;
    int x = lgelu_input(net, "x", d->height, d->width, d->channels);
    int y = lgelu_labels(net, "classes", 1, d->classes),
        logits = lgelu_vit(net, x, &shape, 4, 1, d->classes);
    lgelu_cross_entropy(net, "loss", logits, y);
    return logits;
}

static int build_gpt(lgelu_net *net, const task *t, const config *c, lgelu_gate_kind gate,
                     float lambda)
{
    const lgelu_transformer shape = transformer(c, gate, lambda);
    int x = lgelu_tokens(net, "tokens", (size_t)c->context, t->classes),
        y = lgelu_labels(net, "next", (size_t)c->context, t->classes);
    int logits = lgelu_gpt(net, x, &shape);
    lgelu_cross_entropy(net, "loss", logits, y);
    return logits;
}

const net_row net_table[] = {
    { "mlp", "784-512-256-128-10 on pictures", "--hidden 512,256,128",
      "--samples 2000 --test-samples 1000 --epochs 4 --seeds 1", "", "--lr 5e-4,1e-3,2e-3",
      FROM_PICTURES, 0, check_mlp, build_mlp },
    { "lenet", "LeNet-5 on pictures", "--batch 64 --epochs 8 --lr 2e-3",
      "--samples 1000 --test-samples 500 --epochs 3 --seeds 1", "", "--lr 1e-3,2e-3,4e-3",
      FROM_PICTURES, 0, check_pictures, build_pictures },
    { "resnet8", "a residual network with batch normalisation",
      "--width 16 --batch 64 --epochs 8 --lr 8e-3 --weight-decay 0.05",
      "--width 4 --samples 600 --test-samples 300 --epochs 3 --seeds 1 --reestimate 20", "",
      "--lr 4e-3,8e-3", FROM_PICTURES, 1, check_pictures, build_pictures },
    { "resnet18", "11 million weights: hours",
      "--batch 64 --epochs 30 --lr 3e-3 --weight-decay 0.05 --augment crop-flip --seeds 1",
      "--samples 40 --test-samples 10 --holdout 8 --batch 16 --epochs 1 --seeds 1 --reestimate 4",
      "", "--lr 1e-3,3e-3", FROM_PICTURES, 1, check_pictures, build_pictures },
    { "vit", "a Transformer on squares of 4 x 4 pixels",
      "--layers 4 --heads 4 --width 64 --batch 64 --epochs 8 --lr 1e-3",
      "--layers 2 --width 16 --heads 2 --samples 1000 --test-samples 500 --epochs 3 --seeds 1", "",
      "--lr 5e-4,1e-3", FROM_PICTURES, 0, check_transformer, build_vit },
    { "gpt", "a decoder on text, by characters or byte pairs",
      "--size tiny --lr 1e-3 --clip 1 --epochs 20",
      "--layers 2 --width 16 --heads 2 --context 16 --steps 60 --epochs 3 --holdout 32 --test-samples 64 --seeds 1",
      "--size full", "--lr 1e-3,3e-3,1e-2", FROM_TEXT, 0, check_transformer, build_gpt },
    { "tabular", "128-64-32 on a table, such as UCI's Adult",
      "--hidden 128,64,32 --batch 128 --epochs 8",
      "--samples 3000 --test-samples 1500 --epochs 4 --seeds 1", "", "--lr 5e-4,1e-3,2e-3",
      FROM_TABLE, 0, check_mlp, build_mlp },
    { "sine", "1-64-64-1 learns sin 2x: a regression",
      "--hidden 64,64 --batch 64 --steps 2000 --epochs 20 --lr 3e-3 --weight-decay 0 --holdout 500",
      "--steps 300 --epochs 3 --seeds 1", "", "--lr 1e-3,3e-3,1e-2", FROM_SINE, 0, check_mlp,
      build_mlp },
    { NULL, NULL, NULL, NULL, NULL, NULL, FROM_PICTURES, 0, NULL, NULL }
};
