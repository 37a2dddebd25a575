/* SPDX-License-Identifier: MIT-0

   c_file_int8.h: a quantized network (int8.h) as one C99 file for microcontrollers, with the
   integers of int8_run. The file needs memcpy and, for the entry that takes floats, the compiler's
   float routines; nothing else: no allocation, no library. Weights are const arrays; values are in
   one static buffer, laid out by a memory plan whose size the first lines of the file name.

       if (c_file_int8_write(&q, "digits", write, user, message)) puts(message);

   writes
       void digits_bytes(int32_t *y, const uint8_t *x);   x on the grid that the file names
       void digits(int32_t *y, const float *x);           left out where digits_NO_FLOAT is defined
   and, where digits_MAIN is defined, a main that reads bytes and prints logits.

   The file, and the header that c_file_int8_write_header writes, may be compiled as C++11 and
   later, too. Both define

       digits_inputs, digits_outputs, digits_work      numbers of inputs, outputs, bytes of values
       digits_ROWS, digits_COLUMNS, digits_CHANNELS    the shape of the input
       digits_AT(row, column, channel)                 where an input is in x
       digits_SCALE, digits_ZERO, digits_MOST          byte q, 0 to MOST, is SCALE·(q - ZERO)
       digits_STEP                                     output y[k] is STEP·y[k]

   Windows may have any height, width, stride, padding and dilation. Copy c_file_int8.[ch],
   c_file_name.h, int8.[ch], int8_product.[ch], decimal.h and deploy.h beside lgelu.h. */
#ifndef C_FILE_INT8_H
#define C_FILE_INT8_H
#include "int8.h"

/* Returns whether a function may have this name: an identifier of at most 40 characters that is no
   reserved word of C or C++ and no name of the C library. */
int c_file_int8_is_name(const char *name);

/* Writes the file, after int8_finish. Fails with LGELU_E_ARGUMENT, LGELU_E_MEMORY or LGELU_E_FILE
   (write refused), and says why in message. */
lgelu_status c_file_int8_write(const int8_net *q, const char *name, lgelu_write *write, void *user,
                               char message[160]);

/* Writes the header of such a file, in the same way. */
lgelu_status c_file_int8_write_header(const int8_net *q, const char *name, lgelu_write *write,
                                      void *user, char message[160]);
#endif
