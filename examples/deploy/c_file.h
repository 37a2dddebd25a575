/* SPDX-License-Identifier: MIT-0

   c_file.h: a ReLU network as one C file that needs no library.

       lgelu_net_relu(&net);
       if (c_file_write(&net, logits, "digits", write, user)) puts(net.message);

   The file holds the weights and `void digits(float *y, const float *x, float *work)`. It includes
   only headers of the C library, calls no malloc and changes no global. It compiles alone with any
   C99 compiler and gives the same bits as the network it came from: each value is the same chain of
   fma, by hardware or by an exact fmaf in the file. This holds for plain chains; a convolution that
   would use Winograd's algorithm is refused, so set net.no_winograd before the network is made.

   Layers: linear, convolution, batch normalisation (folded by lgelu_net_fold or not), gates that
   are ReLU, sums, pooling, views. x and y have rows, columns, channels last, as in lgelu.h.

   Copy c_file.[ch] and deploy.h beside lgelu.h. */
#ifndef C_FILE_H
#define C_FILE_H
#include "deploy.h"

/* Writes node `output` of a network that is made and whose gates are ReLU. name is the function's,
   an identifier of C of at most 40 letters. After an error the network is as before and
   net->message says what was wrong. */
lgelu_status c_file_write(lgelu_net *net, int output, const char *name, lgelu_write *write,
                          void *user);
#endif
