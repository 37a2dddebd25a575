/* SPDX-License-Identifier: MIT-0
   peer_libmvec.c: the loops of peer_loops.c, compiled with -O3 -march=native -ffast-math. */
#define PEER(name) peer_libmvec##name
#include "peer_loops.c"
