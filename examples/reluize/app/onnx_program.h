/* SPDX-License-Identifier: MIT-0

   onnx_program.h: what the programs onnx_run and onnx_c share: messages, options of the form
   NAME=TEXT, arrays of NumPy as inputs, and the model's file. */
#ifndef ONNX_PROGRAM_H
#define ONNX_PROGRAM_H
#include "onnx_run.h"
#include "npy.h"
#include "output.h"
#include <stdio.h>

enum { MOST_PAIRS = 256 };

/* NAME=TEXT, as an option gives it. */
typedef struct {
    char *name, *text;
    int used;
} pair;

typedef struct {
    pair of[MOST_PAIRS];
    int count;
} pairs;

/* Prints "PROGRAM: " and a message, and returns 1. */
int fail(const char *format, ...);

/* Divides text at its last '='. Returns 0, or 1 after a message: it has none, or the name is there
   already. */
int add_pair(pairs *p, const char *option, char *text);
/* Returns the text that an option gives to a name, or NULL. */
const char *text_of(pairs *p, const char *name);

/* Copies a name, cut to fit, into name[bytes]. */
void copy_name(const deploy_span *s, char *name, size_t bytes);

/* The text that --dim gives to an open dimension, by its name or by INPUT.AXIS; NULL: none. */
const char *open_dimension(pairs *dim, const char *input, int axis, const deploy_span *name);

/* Sets dim[] to the declared dimensions of an input; size() finds that of an open one. Returns 0,
   or 1 after a message of size(). */
typedef int open_size(const char *input, int axis, const deploy_span *name, int64_t *size);
int declared_sizes(const onnx_declared *d, const char *input, open_size *size, int64_t *dim);

/* The type of npy files for an onnx_type; -1: none. bfloat16 is read and written as float. */
int npy_type_of(int type);

/* Reads an input of a run from a file. Returns the tensor, or NULL after a message. */
onnx_tensor *read_input(onnx_run *r, const onnx_value *v, const char *path);

/* An lgelu_write to a FILE. */
int put(const void *data, size_t bytes, void *user);

/* The program: --help prints `usage`; `parse` takes the options, of which *model is the file;
   `work` does the rest. Both return 0, or 1 after a message. Returns the exit status. */
typedef struct {
    const char *name, *usage;
    int (*parse)(int argc, char **argv);
    const char *const *model;
    int (*work)(const onnx_graph *g);
} program;
int program_main(const program *p, int argc, char **argv);

/* The external data of the model, for output_read_part. */
output_parts *program_external(void);

#endif
