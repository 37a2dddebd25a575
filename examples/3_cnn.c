/* SPDX-License-Identifier: MIT-0

   3_cnn: the main job with a convolutional network: trained smooth, hardened, made a ReLU network without a loss.

       make cnn                                                        builds it and trains on the repository's own pictures
       cc -O2 -fopenmp 3_cnn.c job.c job_figures.c data.c -lm -o 3_cnn && ./3_cnn --help
       ./3_cnn --data cifar-10-batches-bin --arch resnet18 --augment crop-flip --epochs 30

   Batch normalisation fixes the scale before most gates, so that λ means something there (lgelu.h, [L, 3]). The five arms that are
   compared, options and figures are in job.h. */
#define LGELU_IMPLEMENTATION
#include "job.h"

enum { RESNET8, LENET, RESNET18, VIT };                     /* the first is the default */
static int arch, augment;
static long width = 16;

/* pictures → network → logits, with softmax cross-entropy on top */
static int build(lgelu_net *net, const job *j, lgelu_gate_kind gate, float lambda)
{
    const data_set *d = &j->data;
    int x = lgelu_input (net, "pictures", d->height, d->width, d->channels);
    int y = lgelu_labels(net, "classes", 1, d->classes), logits;
    if (arch == LENET)        logits = lgelu_lenet (net, x, d->classes, gate, lambda);
    else if (arch == RESNET8) logits = lgelu_resnet(net, x, (size_t)width, 3, 1, d->classes, gate, lambda);
    else if (arch == VIT) {                                 /* squares of 4 x 4 as tokens; learns well from --lr 1e-3 on down */
        const lgelu_transformer t = { 4, 4, 4 * (size_t)width, 0, gate, lambda, 0, 0 };
        logits = lgelu_vit(net, x, &t, 4, 1, d->classes);
    } else                    logits = lgelu_resnet(net, x, 64, 4, 2, d->classes, gate, lambda);
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

static const char *check(job *j)
{
    static const char *const name[4] = { "ResNet-8", "LeNet", "ResNet-18", "ViT" };
    if (arch == RESNET8) snprintf(j->network, sizeof j->network, "%s, %ld to %ld channels", name[arch], width, 4 * width);
    else if (arch == VIT) snprintf(j->network, sizeof j->network, "%s of 4 blocks, %ld channels, squares of 4", name[arch], 4 * width);
    else snprintf(j->network, sizeof j->network, "%s", name[arch]);
    j->padding = augment ? 4 : 0;
    j->mirror = augment == 2;
    return NULL;
}

static void defaults(job_config *c)                         /* two minutes on two cores */
{
    c->seeds = 1;
    c->epochs = 4;
    c->batch = 64;
    c->lr = 3e-3;
}

int main(int argc, char **argv)
{
    static job_option own[] = {
        { "arch",    "NET",   "the network", JOB_CHOICE, &arch, 0, 0, 0, "resnet8|lenet|resnet18|vit" },
        { "width",   "N",     "channels of the first stage of resnet8; a quarter of vit's", JOB_WHOLE, &width, 1, 1024, 0, NULL },
        { "augment", "HOW",   "of training pictures: moved by up to 4 pixels, and mirrored", JOB_CHOICE, &augment, 0, 0, 0, "none|crop|crop-flip" } };
    static const job_program program = { "3_cnn", "a convolutional network on pictures: GELU, learned λ-GELU, hardened, ReLU, switched",
                                         own, 3, check, build, train, defaults };
    return job_main(&program, argc, argv);
}
