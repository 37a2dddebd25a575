/* SPDX-License-Identifier: MIT-0

   output.h: files that are either whole or as they were.

       output o;
       if (output_try(&o, path)) ...         before the work: can it be written?
       if (output_begin(&o)) ...             after it: write to o.f
       if (output_end(&o)) ...               on the disk under its name

   If output_end fails, errno says why, and the old file is still there.

   No output replaces what the program reads: files of output_read are remembered, those that
   output_inputs names are asked for, and output_try, output_append and output_end refuse them, by
   identity and not by name; output_error then says so.

   A file is written beside its place, under a name that no other process uses (part.h), and
   renamed when it is on the disk. A symbolic link is followed first, so that it stays one. What is
   no file (a device, a FIFO, standard output) is opened and written plainly. */
#ifndef OUTPUT_H
#define OUTPUT_H
#include <stdio.h>

enum { OUTPUT_PATH = 1024 };
typedef struct {
    FILE *f;
    int plain; /* no file: kept open from output_try on */
    int over;  /* set behind output_over: it may replace what was read */
    char path[OUTPUT_PATH],
        part[OUTPUT_PATH + 40]; /* links followed; the name while it is written */
} output;

int output_try(output *o, const char *path); /* 0, or -1 with errno */
int output_over(output *o,
                const char *path); /* the same, and a file of output_read may be replaced */
/* what else is read: reads(user, path) is 1 where path leads to such a file */
void output_inputs(int (*reads)(const void *user, const char *path), const void *user);
int output_same(const char *a, const char *b); /* 1: they lead to one file, or to one place */
const char *output_error(void);                /* what errno says, or that the file is an input */
int output_begin(output *o);
int output_end(output *o);
void output_drop(output *o); /* leaves everything as it was */
int output_append(output *o, const char *path,
                  int replace); /* a file that grows by lines: flushed with fflush by the caller */
int output_close(output *o);    /* of output_append */
int output_folder(const char *path); /* makes it if it isn't there */
unsigned char *output_read(const char *path,
                           size_t *bytes); /* a whole file, and a 0 behind it; NULL with errno */

/* Files in the folder of another one, such as the external data of an ONNX model. Begin with
   { path, NULL }. Each is read once, by output_read, and stays until output_forget_parts. */
typedef struct {
    const char *beside; /* the path of the other file */
    struct output_part *first;
} output_parts;
/* Returns `bytes` bytes from byte `from` on of the file `name`; NULL with a line in message[160].
   user is an output_parts. */
const void *output_read_part(const char *name, size_t from, size_t bytes, char *message,
                             void *user);
void output_forget_parts(output_parts *p);
#endif
