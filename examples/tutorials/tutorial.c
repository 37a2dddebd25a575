/* SPDX-License-Identifier: MIT-0

   tutorial.c: see tutorial.h */
#include "part.h" /* comes first, since it asks the system headers for POSIX */
#include "../../lgelu.h"
#include "tutorial.h"
#include <stdlib.h>

/* Stores the value of one option. Returns 0 if it is allowed. */
static int store(const tutorial_option *option, const char *value)
{
    if (option->text) {
        *option->text = value;
        return 0;
    }
    char *end;
    const long number = strtol(value, &end, 10);
    if (end == value || *end || number < option->least || number > option->most)
        return -1;
    *option->number = number;
    return 0;
}

int tutorial_options(int argc, char **argv, const char *usage, const tutorial_option *options,
                     int count)
{
    const int help = argc == 2 && !strcmp(argv[1], "--help");
    int mistake = argc % 2 == 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        int k = 0;
        while (k < count && strcmp(argv[i], options[k].name) != 0)
            k++;
        if (k == count || store(&options[k], argv[i + 1]))
            mistake = 1;
    }
    if (!help && !mistake)
        return -1;
    if (usage)
        fputs(usage, help ? stdout : stderr);
    return help ? 0 : 2;
}

int tutorial_limit_isa(void)
{
    const char *name = getenv("LGELU_ISA");
    if (!name || !*name)
        return 0;
    const int isa = lgelu_isa_from_name(name);
    if (isa < 0)
        return -1;
    lgelu_isa_limit(isa);
    return 0;
}

/* part.h passes `user` first. */
typedef struct {
    int (*write)(FILE *file, void *user);
    void *user;
} writer;

static int fill(void *user, FILE *file)
{
    const writer *w = (const writer *)user;
    return w->write(file, w->user);
}

int tutorial_write(const char *path, int (*write)(FILE *file, void *user), void *user)
{
    writer w = { write, user };
    return part_replace(path, fill, &w);
}
