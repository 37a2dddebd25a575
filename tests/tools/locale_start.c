/* SPDX-License-Identifier: MIT-0
   locale_start.c: linked into a program, it sets the locale of the environment before main, as a
   host with a user interface does. With COMMA set the program ends with 77 unless numbers have a
   decimal comma then. For test_locale.sh. */
#include <locale.h>
#include <stdlib.h>

__attribute__((constructor)) static void start(void)
{
    setlocale(LC_ALL, "");
    if (getenv("COMMA") && *localeconv()->decimal_point != ',')
        exit(77);
}
