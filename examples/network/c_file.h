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

   The file, and the header that c_file_write_header writes, may be compiled as C++11 and later,
   too. Both define

       digits_inputs, digits_outputs, digits_work      numbers of floats
       digits_ROWS, digits_COLUMNS, digits_CHANNELS    the shape of the input
       digits_AT(row, column, channel)                 where an input is in x

   Windows may have any height, width, stride, padding and dilation.

   Copy c_file.[ch], c_file_name.h, decimal.h and deploy.h beside lgelu.h. */
#ifndef C_FILE_H
#define C_FILE_H
#include "deploy.h"

/* Returns whether a function may have this name: an identifier of at most 40 characters that is no
   reserved word of C or C++ and no name of the C library. */
int c_file_is_name(const char *name);

/* Writes node `output` of a network that is made and whose gates are ReLU. name is the function's,
   see c_file_is_name. After an error the network is as before and net->message says what was
   wrong. */
lgelu_status c_file_write(lgelu_net *net, int output, const char *name, lgelu_write *write,
                          void *user);

/* Writes the header of such a file, in the same way. */
lgelu_status c_file_write_header(lgelu_net *net, int output, const char *name, lgelu_write *write,
                                 void *user);
#endif
