# SPDX-License-Identifier: MIT-0
# test_analyse.sh: the quick part of analyse.sh: the header by cppcheck and gcc -fanalyzer; the rest: make analyse
OUT=build/test_analyse
export OUT
for part in 'cppcheck planted' 'cppcheck header' 'gcc planted' 'gcc header'; do
    sh analyse.sh "$part" | grep -v '^skip clang-tidy'
done | sort -u
