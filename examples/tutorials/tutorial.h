/* SPDX-License-Identifier: MIT-0

   tutorial.h: what the five tutorials share and what has nothing to do with networks: options on
   the command line, the instruction set, and files that are replaced as a whole. Compile tutorial.c
   along with the tutorial.

       const char *path = "out.txt";
       long epochs = 12;
       const tutorial_option options[] = { { "--save", &path, NULL, 0, 0 },
                                           { "--epochs", NULL, &epochs, 1, 1000 } };
       int status = tutorial_options(argc, argv, "usage: ...\n", options, 2);
       if (status >= 0)
           return status;
       if (tutorial_write(path, write_it, &result))
           perror(path); */
#ifndef TUTORIAL_H
#define TUTORIAL_H
#include <stdio.h>

/* An option is a name followed by a value. Exactly one of text and number is not NULL. */
typedef struct {
    const char *name;  /* "--epochs" */
    const char **text; /* receives the value as it is */
    long *number;      /* receives the value as a whole number */
    long least, most;  /* the numbers that are allowed */
} tutorial_option;

/* Reads the options argv[1], argv[2], ... Returns -1 if the program continues. Otherwise it returns
   the exit status: 0 after a single --help, with `usage` on standard output, and 2 after a mistake,
   with `usage` on standard error. A usage of NULL prints nothing. */
int tutorial_options(int argc, char **argv, const char *usage, const tutorial_option *options,
                     int count);

/* Limits the library to the instruction set that the environment variable LGELU_ISA names; the
   header itself reads no environment. Returns 0, or -1 for a name that does not exist. */
int tutorial_limit_isa(void);

/* Writes a file and puts it in the place of `path` only when it is complete and on the disk. If
   anything fails, or the process is killed, the earlier file is still there. `write` prints the
   contents to `file` and returns 0 if it succeeded. Returns 0, or -1 with errno. A plain fopen,
   fwrite and fclose would work as well, but an interrupted run could leave half a file. */
int tutorial_write(const char *path, int (*write)(FILE *file, void *user), void *user);
#endif
