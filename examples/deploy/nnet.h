/* SPDX-License-Identifier: MIT-0

   nnet.h: the .nnet text format (Stanford Intelligent Systems Laboratory) of dense ReLU networks,
   for Marabou, Reluplex and NNV.

       if (nnet_write(&net, logits, NULL, write, user)) puts(net.message);      limits, or NULL: see
   nnet_limits nnet n; if (nnet_read(&n, file, bytes)) puts(n.message); lgelu_net_begin(&net, nodes,
   capacity); x = lgelu_input(&net, "x", 1, 1, n.size[0]); logits = nnet_build(&n, &net, x);
       ... lgelu_net_bytes, lgelu_net_make; nnet_fill(&n, &net, logits);
       nnet_free(&n);

   A .nnet file clips inputs to minima and maxima, takes (x - mean)/range and gives y·range + mean;
   these stand in the struct and are the caller's to do. Copy nnet.[ch] and deploy.h beside lgelu.h.
 */
#ifndef NNET_H
#define NNET_H
#include "deploy.h"

/* [inputs]; written as given */
typedef struct {
    const double *low, *high, *mean, *range;
    double out_mean, out_range;
} nnet_limits;

typedef struct {
    size_t layers, *size; /* size[0] inputs, size[k] outputs of layer k, 1 to layers */
    double *low, *high, *mean,
        *range; /* of each input; mean and range have one more, for the outputs */
    float *w;   /* layer by layer: (outputs, inputs), then biases */
    char message[160];
} nnet;

/* NULL: ±1e6, 0, 1 */
lgelu_status nnet_write(lgelu_net *net, int output, const nnet_limits *limits, lgelu_write *write,
                        void *user);
lgelu_status nnet_read(nnet *n, const void *file, size_t bytes);
int nnet_build(const nnet *n, lgelu_net *net,
               int x); /* the node of the outputs; names fc1, gate1, fc2, ... */
lgelu_status nnet_fill(const nnet *n, lgelu_net *net, int output);
void nnet_free(nnet *n);
#endif
