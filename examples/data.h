/* SPDX-License-Identifier: MIT-0

   data.h: the pictures that every example trains on. Compile data.c along with the example.

       data_set d;
       if (data_read(&d, argc > 1 ? argv[1] : NULL, argv[0])) { fprintf(stderr, "%s\n", d.error); return 1; }
       ... d.train_x holds d.train pictures of d.channels x d.height x d.width bytes, d.train_y their classes ...
       data_free(&d);

   The folder may hold the repository's own sheets (pictures/); the four IDX files of the MNIST family, packed (.gz) or not;
   binary batches of CIFAR-10 or CIFAR-100, *.bin, those that start with "test" for the test; or pictures in any format that
   stb_image reads, in a folder per class, these in train/ and test/, or without those two: then every fifth is a test picture.
   Such pictures are resized to DATA_SIDE x DATA_SIDE in colour; d.note names the broken ones, which are left out.
   NULL takes $LGELU_DATA/fashion-mnist when it is there, else the sheets.

   Plain C with malloc. Nothing in here prints or exits: a failure is one line in d.error that names the file and the byte. */
#ifndef DATA_H
#define DATA_H
#include <stddef.h>
#include <stdint.h>

/* The sheets. Tile k, counted along the rows, shows class k mod 10, so every column of tiles holds one class. */
enum {
    SHEET_SIDE = 28, SHEET_ACROSS = 50, SHEET_PIXELS = SHEET_SIDE * SHEET_ACROSS,     /* 50 x 50 tiles of 28 x 28 pixels */
    SHEET_TILES = SHEET_ACROSS * SHEET_ACROSS, SHEET_CLASSES = 10,
    SHEET_TRAIN = 4, SHEET_TEST = 1                                      /* train_0.png ... train_3.png, test_0.png */
};
extern const char *const data_sheet_class[SHEET_CLASSES];

typedef struct {
    char name[64];                                   /* "Fashion-MNIST", or the folder's name */
    size_t train, test, channels, height, width, classes;
    unsigned char *train_x, *test_x;                 /* [picture][channel][row][column] */
    unsigned char *train_y, *test_y;
    const char *const *class_name;                   /* [classes] */
    char **names;                                    /* those read from the folder, or NULL */
    size_t skipped;                                  /* broken pictures left out */
    double mean[3], deviation[3];                    /* of each channel over the training pictures, a byte being 0 to 255 */
    float value[3][256];                             /* (byte - mean) / deviation */
    char error[1400], note[1400];                    /* note: one line about what was left out, or "" */
} data_set;
enum { DATA_SIDE = 32 };

int  data_read(data_set *d, const char *folder, const char *program);          /* program: argv[0]. 0, or -1 and d->error */
void data_free(data_set *d);
size_t data_size(const data_set *d);                                           /* bytes of one picture */
void data_floats(float *y, const unsigned char *x, const data_set *d, size_t pictures);   /* [picture][row][column][channel], mean 0, deviation 1 */
/* one picture, moved by up to `padding` pixels each way over a black frame and, where asked for, mirrored half of the time, as
   the 32 random bits say */
void data_augment(float *y, const unsigned char *x, const data_set *d, size_t padding, int mirror, uint32_t random);
uint32_t data_crc32(uint32_t crc, const unsigned char *p, size_t n);           /* of gzip and PNG; starts at 0 */
#endif
