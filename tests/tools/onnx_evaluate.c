/* SPDX-License-Identifier: MIT-0

   onnx_evaluate LIST FOLDER LIMIT: evaluates each network of the list (NAME, type and shape of the
   input, shape of the output) from FOLDER/NAME.onnx on NAME.in; its first output is NAME.out up to
   LIMIT of the largest element. */
#include "folder.h"
#include "onnx_network.h"

int main(int argc, char **argv)
{
    char line[1024];
    FILE *list;
    int bad = 0, count = 0;
    double most = 0;
    if (argc != 4 || !(list = fopen(argv[1], "r")))
        return 2;
    while (fgets(line, sizeof line, list)) {
        network n;
        double apart;
        network_open(&n, argv[2], line);
        apart = network_difference(&n);
        if (!(apart <= atof(argv[3]))) {
            printf("FAIL %s: its outputs differ by %.3g of the largest %s\n", n.name, apart, n.why);
            bad = 1;
        }
        most = fmax(most, apart);
        network_close(&n);
        count++;
    }
    fclose(list);
    printf("# %d networks evaluated, the largest difference %.2g of the largest output\n", count,
           most);
    printf("%s their outputs are the same to %s of the largest\n", bad || !count ? "FAIL" : "ok",
           argv[3]);
    return bad || !count;
}
