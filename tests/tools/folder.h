/* SPDX-License-Identifier: MIT-0
   folder.h: the files that a generator leaves for a test's other side. What can't be written ends
   the program. */
#include <stdio.h>
#include <stdlib.h>

/* FOLDER/NAMEend, opened as fopen says */
static inline FILE *in_folder(const char *folder, const char *name, const char *end,
                              const char *how)
{
    char path[1024];
    FILE *f;
    snprintf(path, sizeof path, "%s/%s%s", folder, name, end);
    f = fopen(path, how);
    if (!f) {
        perror(path);
        exit(1);
    }
    return f;
}

/* whole, or the program ends */
static inline void done(FILE *f)
{
    if (ferror(f) || fclose(f)) {
        perror("a file could not be written");
        exit(1);
    }
}

/* what lgelu_net_save and its kin call */
static inline int put(const void *data, size_t bytes, void *user)
{
    return fwrite(data, 1, bytes, (FILE *)user) != bytes;
}

/* Returns the bytes of FOLDER/NAMEend and their number; the caller frees them. */
static inline unsigned char *slurp(const char *folder, const char *name, const char *end,
                                   size_t *bytes)
{
    FILE *f = in_folder(folder, name, end, "rb");
    unsigned char *p;
    fseek(f, 0, SEEK_END);
    *bytes = (size_t)ftell(f);
    rewind(f);
    p = (unsigned char *)malloc(*bytes + 1);
    if (!p || fread(p, 1, *bytes, f) != *bytes)
        exit(1);
    fclose(f);
    return p;
}
