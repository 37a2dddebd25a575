/* SPDX-License-Identifier: MIT-0
   reading.h: the rate at which memory is read, for benchmarks that include net.h. */
/* Returns the GB/s at which one thread reads memory: 256 MB by sums of their columns. */
static double reading(void)
{
    const size_t rows = 16384, columns = 4096;
    float *x = (float *)calloc(rows * columns, sizeof *x), *sum = (float *)malloc(columns * 4);
    double fastest = 1e30, t;
    size_t i;
    int round;
    if (!x || !sum)
        exit(1);
    for (i = 0; i < rows * columns; i += 512)
        x[i] = 1;
    for (round = 0; round < 20; round++) {
        t = now();
        /* four rows at a time, so that four pages are read side by side */
        for (i = 0; i < rows; i += 4)
            lgelu_column_sums(sum, x + i * columns, columns, 4, columns, 1, NULL);
        t = now() - t;
        if (t < fastest)
            fastest = t;
    }
    free(x);
    free(sum);
    return (double)rows * (double)columns * 4e-9 / fastest;
}
