/* SPDX-License-Identifier: MIT-0

   npy.h: arrays as numpy.save and numpy.load have them (.npy, versions 1 to 3).

   Writing:
       const size_t shape[2] = { 100, 784 };
       if (npy_write(NPY_F32, x, shape, 2, write, user)) ...

   Reading:
       npy a;
       if (npy_read(&a, file, bytes)) puts(a.message);
       float *y = malloc(a.count * sizeof *y);      a.shape[0], ..., a.shape[a.dims - 1]
       npy_floats(y, &a, 0, a.count);               in C's order, whatever the file's order is
       npy_copy(z, &a);                             the same in the file's type, a.item bytes each

   Types: f2, f4, f8, i1 to i8, u1 to u8, bool; of either byte order when read, little-endian when
   written. Nothing is allocated.

   Copy npy.[ch], decimal.h and deploy.h beside lgelu.h. */
#ifndef NPY_H
#define NPY_H
#include "deploy.h"

typedef enum {
    NPY_F32 = 0,
    NPY_F64,
    NPY_F16,
    NPY_I8,
    NPY_I16,
    NPY_I32,
    NPY_I64,
    NPY_U8,
    NPY_U16,
    NPY_U32,
    NPY_U64,
    NPY_BOOL
} npy_type;

enum { NPY_DIMS = 12 };
typedef struct {
    npy_type type;
    size_t dims, shape[NPY_DIMS], count;
    size_t item;               /* bytes of an element */
    int fortran, big;          /* the first index runs fastest; big-endian */
    const unsigned char *data; /* inside the file */
    char message[160];
} npy;

/* Writes an array of this shape in C's order. Returns LGELU_E_ARGUMENT for more than NPY_DIMS
   dimensions, LGELU_E_FILE if write failed. */
lgelu_status npy_write(npy_type type, const void *data, const size_t *shape, size_t dims,
                       lgelu_write *write, void *user);

/* Reads the head of a file; the data stays where it is. After an error: a->message. */
lgelu_status npy_read(npy *a, const void *file, size_t bytes);

/* Returns element i in the file's order. */
double npy_at(const npy *a, size_t i);

/* Returns which element of the file's order is element i of C's order. */
size_t npy_place(const npy *a, size_t i);

/* Converts elements first to first + count - 1 of C's order to float, y[count]. */
void npy_floats(float *y, const npy *a, size_t first, size_t count);

/* Copies all elements to y in C's order, without changing their type: a->count elements of a->item
   bytes, in the machine's byte order. */
void npy_copy(void *y, const npy *a);
#endif
