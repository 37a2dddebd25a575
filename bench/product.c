/* SPDX-License-Identifier: MIT-0
   product: the matrix product alone, compiled to assembly by neon.sh. */
#define LGELU_TRAINER
#define LGELU_STATIC
#define LGELU_IMPLEMENTATION
#include "../lgelu.h"

void product(const lgelu_product *p, void *work);
void product(const lgelu_product *p, void *work) { lgelu_multiply(p, work, NULL); }
