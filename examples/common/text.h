/* SPDX-License-Identifier: MIT-0

   text.h: text as token numbers, one a character or GPT-2's byte pairs. Compile text.c along with
   the example.

       text t;
       if (text_read(&t, path) || text_characters(&t)) { fprintf(stderr, "%s\n", t.error); return 1;
   }
       ... t.token holds t.tokens numbers below t.vocabulary ...
       text_free(&t);

   Bytes that are not UTF-8 are separate characters, so that decoding restores every byte
   string. Plain C with malloc; nothing in here prints or exits: a failure is one line in t.error.
   Only regular files up to 1 GiB are read. */
#ifndef TEXT_H
#define TEXT_H
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct {
    unsigned char *p;
    size_t n, capacity;
} text_bytes;

typedef struct {
    char name[128];   /* of the file, or "this repository" */
    text_bytes bytes; /* the corpus */
    int32_t *token;
    size_t tokens; /* the corpus in numbers */
    size_t vocabulary;
    uint32_t *character; /* characters: each number's code point, increasing; 0x110000 + b is the
                            byte b */
    text_bytes *piece;   /* byte pairs: the bytes of each number */
    struct text_pair *pair;
    size_t pairs;       /* and what two of them become */
    int32_t first[256]; /* and the number of a byte alone */
    int marked;
    int32_t mark;            /* set marked before text_byte_pairs: <|endoftext|> is that token */
    struct part_list *files; /* those that text_read and text_byte_pairs have read: text_reads */
    char error[512];
} text;

int text_read(text *t,
              const char *path); /* a file; NULL: the sources and documents of this repository */
int text_load(text *t, const char *path,
              text_bytes *out); /* appends a regular file's bytes, free out->p; 1: there is none */
/* 1: path leads, by whatever name or link, to a file that text_read or text_byte_pairs has read */
int text_reads(const text *t, const char *path);
int text_characters(text *t); /* the vocabulary: the characters of t->bytes. Encodes them */
int text_vocabulary_list(const text *t,
                         text_bytes *out); /* appends the characters' code points, "a 20 21", and a
                                              zero; of byte pairs the zero alone */
int text_vocabulary(text *t, const char *list); /* such a list back; no corpus */
int text_byte_pairs(
    text *t, const char *folder); /* GPT-2's, from vocab.bpe and encoder.json. Encodes t->bytes */
/* into a new array (free it); -1 and t->error for a character that the vocabulary has not */
int text_encode(text *t, const void *bytes, size_t n, int32_t **token, size_t *tokens);
int text_decode(text *t, const int32_t *token, size_t tokens,
                text_bytes *out); /* appends; free out->p */
/* x: `contexts` pieces of the tokens first .. first + tokens - 1, each `context` tokens long, from
   places that depend on seed and draw alone; y: of each token the next one. tokens > context */
void text_batch(int32_t *x, int32_t *y, const text *t, size_t first, size_t tokens, size_t context,
                size_t contexts, uint64_t seed, uint64_t draw);
uint64_t text_hash(const text *t); /* of the tokens (FNV-1a) */
void text_free(text *t);
#endif
