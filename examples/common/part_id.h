/* SPDX-License-Identifier: MIT-0

   part_id.h: which files a program reads, so that no output replaces one of them. Files are
   distinguished by their identity (device and inode; on Windows the volume and the file's index),
   not by their names: a link leads to the same file.

       struct part_list read = { NULL, 0, 0 };
       if (part_note(&read, path)) ...              after each fopen for reading; true: no memory
       if (part_noted(&read, output)) ...           before an output is written; true: refuse it
       free(read.id); */
#ifndef PART_ID_H
#define PART_ID_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef _WIN32
#include <io.h>
/* This is declared here, since <windows.h> defines many common names. */
struct _BY_HANDLE_FILE_INFORMATION;
__declspec(dllimport) int __stdcall GetFileInformationByHandle(
    void *file, struct _BY_HANDLE_FILE_INFORMATION *about);
#else
#include <sys/stat.h>
#endif
typedef struct {
    uint64_t volume, file;
} part_id;

struct part_list {
    part_id *id;
    size_t count, room;
};

/* Stores the identity of a regular file, or of a folder, after links were followed. Returns -1 if
   there is none. */
static inline int part_identify(part_id *id, const char *path, int folder)
{
#ifdef _WIN32
    /* The fields of that struct: attributes, three times, volume, size, links, index. */
    uint32_t about[13];
    FILE *f = folder ? NULL : fopen(path, "rb");
    int good;
    if (!f)
        return -1;
    good = GetFileInformationByHandle((void *)_get_osfhandle(_fileno(f)),
                                      (struct _BY_HANDLE_FILE_INFORMATION *)(void *)about);
    fclose(f);
    if (!good)
        return -1;
    id->volume = about[7];
    id->file = (uint64_t)about[11] << 32 | about[12];
#else
    struct stat about;
    if (stat(path, &about) || !(folder ? S_ISDIR(about.st_mode) : S_ISREG(about.st_mode)))
        return -1;
    id->volume = (uint64_t)about.st_dev;
    id->file = (uint64_t)about.st_ino;
#endif
    return 0;
}

/* Records that this file is read. Only regular files are recorded. Returns -1 if memory runs out.
 */
static inline int part_note(struct part_list *list, const char *path)
{
    part_id id, *more;
    if (part_identify(&id, path, 0))
        return 0;
    if (list->count == list->room) {
        more = (part_id *)realloc(list->id, (2 * list->room + 16) * sizeof id);
        if (!more)
            return -1;
        list->id = more;
        list->room = 2 * list->room + 16;
    }
    list->id[list->count++] = id;
    return 0;
}

/* Returns 1 if path leads to a file that was recorded. */
static inline int part_noted(const struct part_list *list, const char *path)
{
    part_id id;
    if (!list || part_identify(&id, path, 0))
        return 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->id[i].volume == id.volume && list->id[i].file == id.file)
            return 1;
    }
    return 0;
}
#endif
