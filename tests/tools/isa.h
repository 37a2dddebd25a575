/* SPDX-License-Identifier: MIT-0
   isa.h: LGELU_ISA=scalar|neon|avx2|avx512 caps a test program; the header itself reads no
   environment. Include after lgelu.h. */
#ifndef ISA_H
#define ISA_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the instruction set now in force; a name that lgelu.h does not know ends the program. */
static inline int isa_from_environment(void)
{
    const char *name = getenv("LGELU_ISA");
    const int isa = lgelu_isa_from_name(name);
    if (!name || !*name)
        return lgelu_isa();
    if (isa >= 0)
        return lgelu_isa_limit(isa);
    fprintf(stderr, "LGELU_ISA=%s is none of scalar, neon, avx2, avx512\n", name);
    exit(2);
}
#endif
