/* SPDX-License-Identifier: MIT-0

   data.h: what the examples train on, pictures or a table of numbers. Compile data.c along with the
   example.

       data_set d;
       if (data_read(&d, argc > 1 ? argv[1] : NULL, argv[0])) {
           fprintf(stderr, "%s\n", d.error);
           return 1;
       }
       data_batch(x, y, &d, DATA_TRAIN, NULL, 0, 128);    the first 128 samples and their classes
       data_free(&d);

   A folder may hold the repository's own sheets (pictures/); the four IDX files of the MNIST
   family, packed (.gz) or not; binary batches of CIFAR-10 or CIFAR-100, *.bin, those that start
   with "test" for the test; or pictures as PNG, JPEG, BMP, GIF, TGA or PNM, in a folder per class,
   these in train/ and test/, or without those two: then every fifth is a test picture. Such
   pictures are resized to DATA_SIDE x DATA_SIDE in colour; broken ones are left out: d.note counts
   them and names the first. NULL takes $LGELU_DATA/fashion-mnist when it is there, else the sheets.

   A table is a text file of fields between commas, semicolons or tabs, or a folder with train.csv
   and test.csv or with NAME.data and NAME.test (UCI's Adult); of a file alone every fifth row is
   for the test. A byte order mark before the first field is passed over. Numbers become mean 0 and
   deviation 1, a column of words an input for each word, one of them 1. Means, deviations and words
   are those of the training rows; what is unknown (empty, ?, NA, nan), and words that only the test
   has, leave zeros. The last column, or FILE:COLUMN, is what to tell: a class where it holds words
   or at most 32 different whole numbers, else a number (d.classes is 0 then). Rows without it are
   left out.

   Plain C with malloc. Nothing in here prints or exits: a failure is one line in d.error that names
   the file and the byte. Only regular files of bounded size are read; broken input costs time and
   memory in proportion to that size. */
#ifndef DATA_H
#define DATA_H
#include <stddef.h>
#include <stdint.h>

/* The sheets. Tile k, counted along the rows, shows class k mod 10, so every column of tiles holds
   one class. */
enum {
    SHEET_SIDE = 28,
    SHEET_ACROSS = 50,
    SHEET_PIXELS = SHEET_SIDE * SHEET_ACROSS, /* 50 x 50 tiles of 28 x 28 pixels */
    SHEET_TILES = SHEET_ACROSS * SHEET_ACROSS,
    SHEET_CLASSES = 10,
    SHEET_TRAIN = 4,
    SHEET_TEST = 1 /* train_0.png ... train_3.png, test_0.png */
};

extern const char *const data_sheet_class[SHEET_CLASSES];

typedef struct {
    char name[64]; /* "Fashion-MNIST", "CIFAR-10", or the last part of the path */
    size_t train, test, channels, height, width,
        classes; /* a table has 1 x 1 and its inputs as channels */
    unsigned char *train_x,
        *test_x;                 /* pictures: [picture][channel][row][column]; of a table NULL */
    float *train_row, *test_row; /* a table: [row][input]; of pictures NULL */
    unsigned char *train_y, *test_y; /* classes; where there are none, */
    float *train_target,
        *test_target; /* a table's numbers to tell, made mean 0 and deviation 1 from */
    double target_mean, target_deviation;
    const char *const *class_name; /* [classes] */
    char **names,
        **input_name; /* those read from files, or NULL; a table's inputs, "age", "sex=Male" */
    size_t skipped;   /* broken pictures, or rows without class or number, left out */
    double mean[3],
        deviation[3];        /* of each channel over the training pictures, a byte being 0 to 255 */
    float value[3][256];     /* (byte - mean) / deviation */
    struct part_list *files; /* those that were read: data_reads */
    char error[1400], note[1400]; /* note: one line about what was left out, or "" */
} data_set;

#define DATA_MARK \
    "\xEF\xBB\xBF" /* UTF-8's byte order mark, with which some programs begin a text */
enum { DATA_SIDE = 32 };
enum { DATA_TRAIN, DATA_TEST };
typedef enum {
    DATA_GUESS,
    DATA_CLASS,
    DATA_NUMBER
} data_kind; /* what a table's column is: see above */

enum { DATA_NO_CLASSES = -2 };
/* program: argv[0]. Returns 0, or -1 and d->error, or, of a folder with nothing of this kind, which
   may have pictures without classes, DATA_NO_CLASSES and d->error. */
int data_read(data_set *d, const char *where, const char *program);
/* the same; pictures of a folder per class become this large, 1 to 4096 pixels each way, in colour
   (3) or grey (1) */
int data_read_as(data_set *d, const char *where, const char *program, size_t channels,
                 size_t height, size_t width);
/* Reads the pictures of a folder without classes, of which every fifth is for the test: d->classes
   is 0 then. Returns 0, or -1 and d->error. */
int data_read_pictures(data_set *d, const char *folder, size_t channels, size_t height,
                       size_t width);
/* test NULL: every fifth row; column NULL: the last, else its name or number from 1 */
int data_read_table(data_set *d, const char *train, const char *test, const char *column,
                    data_kind kind);
void data_free(data_set *d);
/* 1: path leads, by whatever name or link, to a file that this set was read from; an output there
   would replace it */
int data_reads(const data_set *d, const char *path);
size_t data_size(const data_set *d); /* numbers of one sample */
/* samples pick[first], pick[first + 1], ..., or with NULL first, first + 1, ...; x as floats of
   mean 0 and deviation 1, pictures [sample][row][column][channel]; y their classes, or NULL */
void data_batch(float *x, int32_t *y, const data_set *d, int test, const uint32_t *pick,
                size_t first, size_t samples);
void data_floats(float *y, const unsigned char *x, const data_set *d,
                 size_t pictures); /* such floats from bytes */
/* one picture, moved by up to `padding` pixels each way over a black frame and, where asked for,
   mirrored half of the time, as the 32 random bits say */
void data_augment(float *y, const unsigned char *x, const data_set *d, size_t padding, int mirror,
                  uint32_t random);
uint32_t data_crc32(uint32_t crc, const unsigned char *p,
                    size_t n); /* of gzip and PNG; starts at 0 */
#endif
