/* SPDX-License-Identifier: MIT-0

   nnet.h: the .nnet text format (Stanford Intelligent Systems Laboratory) of dense ReLU networks,
   which Marabou, Reluplex and NNV read.

   Writing:
       if (nnet_write(&net, logits, NULL, write, user)) puts(net.message);

   Reading:
       nnet n;
       if (nnet_read(&n, file, bytes)) puts(n.message);
       lgelu_net_begin(&net, nodes, capacity);
       x = lgelu_input(&net, "x", 1, 1, n.size[0]);
       logits = nnet_build(&n, &net, x);
       lgelu_net_bytes and lgelu_net_make, as for every network
       nnet_fill(&n, &net, logits);
       nnet_free(&n);

   A .nnet file also says that inputs are clipped to minima and maxima and scaled as
   (x - mean)/range, and that the result is y·range + mean. These numbers are in the struct;
   applying them is up to the caller.

   Copy nnet.[ch], decimal.h and deploy.h beside lgelu.h. */
#ifndef NNET_H
#define NNET_H
#include "deploy.h"

/* What is written about the inputs, [inputs], and the outputs. */
typedef struct {
    const double *low, *high, *mean, *range;
    double out_mean, out_range;
} nnet_limits;

typedef struct {
    size_t layers, *size; /* size[0] inputs; size[k] outputs of layer k, from 1 to layers */
    double *low, *high;   /* [inputs] */
    double *mean, *range; /* [inputs + 1]: the last one is that of the outputs */
    float *w;             /* for each layer its matrix (outputs, inputs), then its biases */
    char message[160];
} nnet;

/* Writes node `output`. limits NULL: minima -1e6, maxima 1e6, means 0, ranges 1. After an error
   the network is as before and net->message says what was wrong. */
lgelu_status nnet_write(lgelu_net *net, int output, const nnet_limits *limits, lgelu_write *write,
                        void *user);

/* Reads a file. After an error n->message says what was wrong, and nothing needs to be freed. */
lgelu_status nnet_read(nnet *n, const void *file, size_t bytes);

/* Adds the layers fc1, gate1, fc2, ... behind node x; returns the node of the outputs. */
int nnet_build(const nnet *n, lgelu_net *net, int x);

/* Copies the weights into a network that nnet_build built and lgelu_net_make made. */
lgelu_status nnet_fill(const nnet *n, lgelu_net *net, int output);

/* Frees everything. */
void nnet_free(nnet *n);
#endif
