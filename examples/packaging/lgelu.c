/* SPDX-License-Identifier: MIT-0   The implementation, for builds that want a library: with
   -DLGELU_TRAINER all of it. */
#define LGELU_IMPLEMENTATION
#include "lgelu.h"
