/* SPDX-License-Identifier: MIT-0
   several_relus.h: random constants of gates of several ReLUs (examples/verify/pieces.h), for
   tests. Include after deploy_nets.h and pieces.c. */
#ifndef SEVERAL_RELUS_H
#define SEVERAL_RELUS_H

enum { SEVERAL_WIDEST = 40 };

/* Draws the constants of all gates of several ReLUs: slopes of either sign, kinks near 0. `moved`
   is added to each kink. */
static inline void several_draw(lgelu_net *net, uint64_t seed, float moved)
{
    static float base[SEVERAL_WIDEST], line[SEVERAL_WIDEST], slope[PIECES_MOST * SEVERAL_WIDEST],
        kink[PIECES_MOST * SEVERAL_WIDEST];
    int i;
    for (i = 0; i < net->count; i++) {
        size_t k;
        if (!pieces_is(net->nodes + i))
            continue;
        for (k = 0; k < SEVERAL_WIDEST; k++) {
            base[k] = 0.2f * lgelu_normal(seed, 40 + (uint64_t)i, k);
            line[k] = 0.3f * lgelu_normal(seed, 60 + (uint64_t)i, k);
        }
        for (k = 0; k < PIECES_MOST * SEVERAL_WIDEST; k++) {
            slope[k] = 0.3f + 0.6f * lgelu_normal(seed, 80 + (uint64_t)i, k);
            kink[k] = 0.5f * lgelu_normal(seed, 100 + (uint64_t)i, k) + moved;
        }
        pieces_set(net, i, base, line, slope, kink);
    }
}
#endif
