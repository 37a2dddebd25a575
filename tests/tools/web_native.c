/* SPDX-License-Identifier: MIT-0
   web_native.c: what the page computes, computed here: `gate λ x` one gate, `train SET SMOOTH
   HARDENING` a training run, its swap and its refit, in the order in which tools/web.js has them.
 */
#include "../../examples/web/web.c"
#include <stdio.h>
#include <stdlib.h>

static int report(int swapped)
{
    if (view(SIDE, swapped))
        return 1;
    printf("%d %.17g", step(), loss());
    for (int i = 0; i < layers(); i++)
        printf(" %.17g", (double)lambda(i));
    printf(" %d %.17g %.17g %u\n", flips(), max_change(), score(swapped), (unsigned)weights_hash());
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "gate")) {
        const float l = strtof(argv[2], NULL), x = strtof(argv[3], NULL);
        printf("%.17g %.17g %.17g %.17g %.17g %.17g %u\n", (double)gate(x, l),
               (double)gate_dx(x, l), exact((double)x, (double)l), exact_dx((double)x, (double)l),
               (double)gap(l), (double)gate_error(l), (unsigned)curves_hash(l));
        return 0;
    }
    if (argc == 5 && !strcmp(argv[1], "train")) {
        const int hardening = atoi(argv[4]);
        if (begin(atoi(argv[2])) || train(atoi(argv[3])) || report(0) || report(1) || mend()
            || report(REFITTED))
            return 1;
        harden(hardening);
        return train(hardening) || report(0) || report(1);
    }
    fprintf(stderr, "usage: web_native gate LAMBDA X | train SET SMOOTH HARDENING\n");
    return 2;
}
