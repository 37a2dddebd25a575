/* SPDX-License-Identifier: MIT-0

   test_ten_steps: ten whole AdamW steps of a small network with learned λ's against double
   precision: loss by the interpreter of reference_net.h, gradients by its differences, AdamW and
   λ(s) from their formulas.

       cc -std=c99 -O2 -I.. test_ten_steps.c tools/lgelu.c -lm -o test_ten_steps && ./test_ten_steps
   [BEFORE AFTER]

   BEFORE and AFTER: where to leave both networks as safetensors, for test_torch.sh. */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/isa.h"
#include "tools/reference_net.h"

enum { INPUTS = 6, CLASSES = 3, BATCH = 24, STEPS = 10, NODES = 12 };
static const double lr = 0.01, decay = 0.1, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, c = 3,
                    t = 0.1; /* test_torch.sh has them, too */

static double lambda_of(double s) { return 1 + log1p(exp(s / t)); }
static double slope_of(double s) { return 1 / (t * (1 + exp(-s / t))); }

/* the fourth-order central difference of the loss along one number */
static double difference(reference_net *r, double *at)
{
    const double h = 1e-4, x = *at;
    double sum = 0;
    for (int side = -2; side <= 2; side++) {
        if (!side)
            continue;
        *at = x + side * h;
        sum += (side == 2 ? -1 : side == 1 ? 8 : side == -1 ? -8 : 1) * reference_forward(r);
    }
    *at = x;
    return sum / (12 * h);
}

typedef struct {
    double w, m, v;
} adam;

static void adam_step(adam *a, double g, double rate, double weight_decay, int step)
{
    a->w *= 1 - rate * weight_decay;
    a->m = beta1 * a->m + (1 - beta1) * g;
    a->v = beta2 * a->v + (1 - beta2) * g * g;
    a->w -= rate * (a->m / (1 - pow(beta1, step))) / (sqrt(a->v / (1 - pow(beta2, step))) + eps);
}

/* ‖a - b‖/‖b‖ */
static double apart(const float *a, const adam *b, size_t n)
{
    double off = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        off += ((double)a[i] - b[i].w) * ((double)a[i] - b[i].w);
        norm += b[i].w * b[i].w;
    }
    return sqrt(off / norm);
}

static int put(const void *data, size_t bytes, void *user)
{
    return fwrite(data, 1, bytes, (FILE *)user) != bytes;
}

static int leave(lgelu_net *net, const char *path)
{
    FILE *f = path ? fopen(path, "wb") : NULL;
    int bad = path && (!f || lgelu_net_save(net, NULL, 0, put, f));
    if (f && fclose(f))
        bad = 1;
    return bad;
}

int main(int argc, char **argv)
{
    static lgelu_node node[NODES];
    static float x[BATCH * INPUTS];
    static int32_t y[BATCH];
    const size_t outputs[3] = { 8, 7, CLASSES };
    lgelu_net net;
    lgelu_training plan = lgelu_training_defaults((float)lr, STEPS);
    reference_net r;
    double worst = 0, worst_loss = 0, first = 0;
    isa_from_environment();
    lgelu_net_begin(&net, node, NODES);
    int in = lgelu_input(&net, "x", 1, 1, INPUTS),
        logits = lgelu_mlp(&net, in, outputs, 3, LGELU_GATE_LAMBDA, 1.6931472f);
    int labels = lgelu_labels(&net, "y", 1, CLASSES);
    lgelu_cross_entropy(&net, "loss", logits, labels);
    size_t bytes = lgelu_net_bytes(&net, BATCH, LGELU_MODE_TRAIN), n = net.parameter_count, k;
    void *block = malloc(bytes);
    if (!bytes || !block || lgelu_net_make(&net, block, bytes, BATCH, LGELU_MODE_TRAIN, 1))
        abort();
    for (size_t i = net.weight_count; i < n; i++)
        net.w[i] = (float)((int)(i * 29 % 31) - 15) / 64;
    for (size_t i = 0; i < BATCH * INPUTS; i++)
        x[i] = (float)((int)(i * i * 7 % 61) - 30) / 16;
    for (int i = 0; i < BATCH; i++)
        y[i] = i * i % 7 % CLASSES;
    lgelu_net_bind(&net, in, x);
    lgelu_net_bind(&net, labels, y);
    plan.adamw.weight_decay = (float)decay;
    plan.lambda_lr_scale = (float)c;
    if (leave(&net, argc > 2 ? argv[1] : NULL)) {
        printf("FAIL ten steps: %s cannot be written\n", argv[1]);
        return 1;
    }

    k = (size_t)net.lambda_count;
    adam *w = (adam *)calloc(n, sizeof *w), s[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
    double *g = (double *)malloc((n + k) * sizeof *g);
    if (!w || !g || k != 2)
        abort();
    reference_begin(&r, &net);
    for (size_t i = 0; i < n; i++)
        w[i].w = (double)net.w[i];
    for (size_t i = 0; i < k; i++)
        s[i].w = (double)net.s[i];
    for (int step = 1; step <= STEPS; step++) {
        const double rate =
            (double)plan.adamw.lr * (0.5 + 0.5 * cos(3.14159265358979323846 * (step - 1) / STEPS));
        if (lgelu_net_forward(&net, BATCH) || lgelu_net_backward(&net, 1))
            abort();
        if (step == 1)
            first = net.loss;
        for (size_t i = 0; i < n; i++)
            r.w[i] = w[i].w;
        for (size_t i = 0; i < k; i++)
            r.lambda[i] = lambda_of(s[i].w);
        worst_loss = fmax(worst_loss, fabs(net.loss / reference_forward(&r) - 1));
        for (size_t i = 0; i < n; i++)
            g[i] = difference(&r, r.w + i);
        for (size_t i = 0; i < k; i++)
            g[n + i] = difference(&r, r.lambda + i);
        for (size_t i = 0; i < n; i++) {
            adam_step(w + i, g[i], rate, i < net.weight_count ? (double)plan.adamw.weight_decay : 0,
                      step);
        }
        for (size_t i = 0; i < k; i++)
            adam_step(s + i, g[n + i] * slope_of(s[i].w), rate * c, 0, step);
        if (lgelu_net_step(&net, &plan))
            abort();
        for (int l = 0; l < net.count; l++) {
            if (node[l].weight_count) {
                worst = fmax(worst, apart(net.w + node[l].weight_at, w + node[l].weight_at,
                                          node[l].weight_count));
            }
            if (node[l].bias_count) {
                worst = fmax(
                    worst, apart(net.w + node[l].bias_at, w + node[l].bias_at, node[l].bias_count));
            }
        }
        for (size_t i = 0; i < k; i++)
            worst = fmax(worst, fabs((double)net.lambda[i] / lambda_of(s[i].w) - 1));
    }
    printf("# ten AdamW steps against double: loss %.2g, weights, biases and λ's %.2g\n",
           worst_loss, worst);
    check(worst_loss < 1e-6, "ten AdamW steps: the losses are those of double to 1e-6", "%.3g",
          worst_loss);
    check(worst < 1e-6, "ten AdamW steps: every matrix, bias and λ is that of double to 1e-6",
          "%.3g", worst);
    check(net.loss < first - 0.05 && fabs((double)net.lambda[0] - 1.6931472) > 0.1,
          "ten AdamW steps: they lead somewhere", "loss %g after %g, λ %g", net.loss, first,
          (double)net.lambda[0]);
    if (leave(&net, argc > 2 ? argv[2] : NULL)) {
        printf("FAIL ten steps: %s cannot be written\n", argv[2]);
        return 1;
    }
    reference_end(&r);
    free(w);
    free(g);
    free(block);
    return check_end();
}
