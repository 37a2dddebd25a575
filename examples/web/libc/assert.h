/* SPDX-License-Identifier: MIT-0 */
#ifndef ASSERT_H
#define ASSERT_H
#define assert(condition) ((condition) ? (void)0 : __builtin_trap())
#endif
