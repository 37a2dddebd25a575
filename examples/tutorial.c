/* SPDX-License-Identifier: MIT-0

   tutorial.c: see tutorial.h */
#include "part.h" /* comes first, since it asks the system headers for POSIX */
#include "../lgelu.h"
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
    for (int isa = LGELU_ISA_SCALAR; isa <= LGELU_ISA_AVX512; isa++) {
        if (!strcmp(name, lgelu_isa_name(isa))) {
            lgelu_isa_limit(isa);
            return 0;
        }
    }
    return -1;
}

int tutorial_write(const char *path, int (*write)(void *user, FILE *file), void *user)
{
    return part_replace(path, write, user);
}

#if LGELU_VERSION_MAJOR < 1
size_t lgelu_argmax(const float *a, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++) {
        if (a[i] > a[best])
            best = i;
    }
    return best;
}
#endif
