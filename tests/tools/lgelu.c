/* SPDX-License-Identifier: MIT-0   The implementation alone, compiled once per configuration and
   linked to the tests. */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "../../lgelu.h"
