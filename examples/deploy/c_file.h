/* SPDX-License-Identifier: MIT-0

   c_file.h: a ReLU network as one C file that needs nothing of us.

       lgelu_net_relu(&net);
       if (c_file_write(&net, logits, "digits", write, user)) puts(net.message);

   The file holds the weights and `void digits(float *y, const float *x, float *work)`; no include
   but those of the C library, no malloc, no global that changes. It compiles alone with any C99
   compiler and gives the bits of the network it came from: each number is the same chain of fma, by
   hardware, or by an exact fmaf of its own where there is none. That holds of plain chains: a
   convolution that would go by Winograd's algorithm is refused, unless the network was made with
   net.direct. Layers: linear, convolution, batch normalisation (folded by lgelu_net_fold or not),
   gates that are ReLU, sums, pooling, views. x and y are laid out as here: rows, columns, channels
   last. Copy c_file.[ch] and deploy.h beside lgelu.h. */
#ifndef C_FILE_H
#define C_FILE_H
#include "deploy.h"

/* net: made, its gates ReLU; output: a node; name: an identifier of C, at most 40 letters. After an
   error the text is in net->message */
lgelu_status c_file_write(lgelu_net *net, int output, const char *name, lgelu_write *write,
                          void *user);
#endif
