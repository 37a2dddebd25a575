/* SPDX-License-Identifier: MIT-0
   round_trip_data DATA FOLDER: images as PyTorch and chips read them, for test_round_trip.sh:
   FOLDER/train.bin and FOLDER/test.bin, records of a class and the pixels, a byte each. */
#include "folder.h"
#include "data.h"

static void keep(const char *folder, const char *name, const unsigned char *x,
                 const unsigned char *y, size_t count, size_t size)
{
    FILE *f = in_folder(folder, name, ".bin", "wb");
    size_t i;
    for (i = 0; i < count; i++) {
        put(y + i, 1, f);
        put(x + i * size, size, f);
    }
    done(f);
}

int main(int argc, char **argv)
{
    data_set d;
    if (argc != 3)
        return 2;
    if (data_read(&d, argv[1], argv[0])) {
        fprintf(stderr, "%s\n", d.error);
        return 1;
    }
    keep(argv[2], "train", d.train_x, d.train_y, d.train, data_size(&d));
    keep(argv[2], "test", d.test_x, d.test_y, d.test, data_size(&d));
    data_free(&d);
    return 0;
}
