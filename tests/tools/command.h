/* SPDX-License-Identifier: MIT-0
   command.h: commands that a test runs, and files that it writes for them. */
#ifndef COMMAND_H
#define COMMAND_H
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Runs a command of the shell, formatted as by printf; returns what system() does. */
static inline int run(const char *format, ...)
{
    char command[800];
    va_list list;
    va_start(list, format);
    vsnprintf(command, sizeof command, format, list);
    va_end(list);
    return system(command);
}

/* An lgelu_write to a FILE. */
static inline int to_file(const void *data, size_t n, void *user)
{
    return fwrite(data, 1, n, (FILE *)user) != n;
}
#endif
