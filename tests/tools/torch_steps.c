/* SPDX-License-Identifier: MIT-0

   torch_steps mlp|resnet8 FOLDER: the first 200 AdamW steps, of 1,000 that were planned, of a
   network with learned λ's on noisy templates of ten classes; for test_torch_steps.sh. Leaves in
   FOLDER the first weights (before.safetensors), all samples, channels last (x.f32, y.i32), and
   each step's loss (ours.txt). A line on standard output tells the plan. */
#define LGELU_TRAINER
#include "lgelu.h"
#include "isa.h"
#include "folder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 64, STEPS = 200, PLANNED = 1000, BATCHES = 20, CLASSES = 10 };

int main(int argc, char **argv)
{
    static lgelu_node node[NODES];
    static const size_t outputs[4] = { 512, 256, 128, CLASSES };
    const int mlp = argc == 3 && !strcmp(argv[1], "mlp");
    const size_t side = mlp ? 28 : 16, channels = mlp ? 1 : 3, numbers = side * side * channels,
                 batch = mlp ? 128 : 32;
    const size_t samples = BATCHES * batch;
    /* of the templates: neither learned at once nor noise alone */
    const float strength = mlp ? 0.08f : 0.25f;
    lgelu_training plan = lgelu_training_defaults(1e-3f, PLANNED);
    lgelu_net net;
    FILE *f;
    if (argc != 3 || (!mlp && strcmp(argv[1], "resnet8"))) {
        fprintf(stderr, "usage: torch_steps mlp|resnet8 FOLDER\n");
        return 2;
    }
    isa_from_environment();
    plan.lambda_lr_scale = 3;

    lgelu_net_begin(&net, node, NODES);
    const int in = lgelu_input(&net, "x", side, side, channels);
    const int logits =
        mlp ? lgelu_mlp(&net, lgelu_flatten(&net, "flat", in), outputs, 4, LGELU_GATE_LAMBDA,
                        1.6931472f)
            : lgelu_resnet(&net, in, 16, 3, 1, CLASSES, LGELU_GATE_LAMBDA, 1.6931472f);
    const int labels = lgelu_labels(&net, "y", 1, CLASSES);
    lgelu_cross_entropy(&net, "loss", logits, labels);
    const size_t bytes = lgelu_net_bytes(&net, batch, LGELU_MODE_TRAIN);
    void *block = malloc(bytes ? bytes : 1);
    if (!block || lgelu_net_make(&net, block, bytes, batch, LGELU_MODE_TRAIN, 7)) {
        fprintf(stderr, "%s\n", net.message);
        return 1;
    }

    float *x = (float *)malloc(samples * numbers * sizeof *x),
          *template = (float *)malloc(CLASSES * numbers * sizeof *template);
    int32_t *y = (int32_t *)malloc(samples * sizeof *y);
    if (!x || !template || !y) {
        fprintf(stderr, "torch_steps: out of memory\n");
        return 1;
    }
    for (size_t i = 0; i < CLASSES * numbers; i++)
        template[i] = lgelu_uniform(7, 1, i) - 0.5f;
    for (size_t i = 0; i < samples; i++) {
        y[i] = (int32_t)(lgelu_uniform(7, 2, i) * CLASSES) % CLASSES;
        for (size_t k = 0; k < numbers; k++) {
            x[i * numbers + k] = strength * template[(size_t)y[i] * numbers + k]
                                 + lgelu_uniform(7, 3, i * numbers + k) - 0.5f;
        }
    }
    f = in_folder(argv[2], "x", ".f32", "wb");
    fwrite(x, sizeof *x, samples * numbers, f);
    done(f);
    f = in_folder(argv[2], "y", ".i32", "wb");
    fwrite(y, sizeof *y, samples, f);
    done(f);
    f = in_folder(argv[2], "before", ".safetensors", "wb");
    if (lgelu_net_save(&net, NULL, 0, put, f)) {
        fprintf(stderr, "%s\n", net.message);
        return 1;
    }
    done(f);

    f = in_folder(argv[2], "ours", ".txt", "wb");
    for (size_t step = 0; step < STEPS; step++) {
        const size_t first = step % BATCHES * batch;
        lgelu_net_bind(&net, in, x + first * numbers);
        lgelu_net_bind(&net, labels, y + first);
        if (lgelu_net_forward(&net, batch) || lgelu_net_backward(&net, 1)) {
            fprintf(stderr, "%s\n", net.message);
            return 1;
        }
        fprintf(f, "%.17g\n", net.loss);
        if (lgelu_net_step(&net, &plan)) {
            fprintf(stderr, "%s\n", net.message);
            return 1;
        }
    }
    done(f);
    printf("%s %d %d %d %zu %zu %zu %.9g %.9g %.9g %.9g\n", argv[1], STEPS, PLANNED, BATCHES, batch,
           side, channels, (double)plan.adamw.lr, (double)plan.adamw.weight_decay,
           (double)plan.lambda_lr_scale, 0.1);
    free(x);
    free(template);
    free(y);
    free(block);
    return 0;
}
