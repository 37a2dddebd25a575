/* peer_loops.c once more, compiled with -O3 -march=native -ffast-math.  SPDX-License-Identifier:
   MIT-0 */
#define PEER(name) peer_libmvec##name
#include "peer_loops.c"
