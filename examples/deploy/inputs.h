/* SPDX-License-Identifier: MIT-0

   inputs.h: inputs for a network from a file in memory: the rows of an .npy array, as the ONNX file
   declares its input, or the windows of a text.

       inputs d;
       if (inputs_open(&d, file, bytes, &nodes[input], ONNX_CHANNELS_FIRST)) puts(d.message);
       for (i = 0; i < d.count; i++) inputs_get(&d, i, x, NULL);          one input, d.size values

   An array has any numeric type and the shape (N, ...), with as many elements in each row as the
   network takes; values are used as they are. A network of tokens takes integers, or a text, which
   is any file that is no array: its tokens are bytes where the vocabulary is 256, else the
   characters that occur in it, numbered in their order, of which there must be as many as the
   vocabulary has. Window i begins at byte i·T for T tokens of an input.

   Nothing is allocated: the file must remain in memory. Copy inputs.[ch] beside lgelu.h, with
   npy.[ch], onnx_out.h, int8.h and deploy.h. */
#ifndef INPUTS_H
#define INPUTS_H
#include "npy.h"
#include "onnx_out.h" /* for onnx_form */

typedef struct {
    size_t count, size; /* inputs; values or tokens of each */
    int text;           /* 1: windows of a text, whose labels are known: the next tokens */
    char message[160];
    /* ---- private ---- */
    npy array;
    const unsigned char *bytes;
    size_t shape[3];
    onnx_form form;
    int tokens;
    int32_t token_of[256];
} inputs;

/* node: the network's input node (values or tokens). form: the order of an image's values in the
   array. 0, or LGELU_E_FILE, LGELU_E_SHAPE and d->message. */
lgelu_status inputs_open(inputs *d, const void *file, size_t bytes, const lgelu_node *node,
                         onnx_form form);

/* Writes input i to x: size floats, channels last, or size tokens (int32_t). next: the token after
   each, of a text; or NULL. */
void inputs_get(const inputs *d, size_t i, void *x, int32_t *next);
#endif
