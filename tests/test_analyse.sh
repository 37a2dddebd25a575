# SPDX-License-Identifier: MIT-0
# test_analyse.sh: the quick part of analyse.sh: cppcheck over everything, gcc -fanalyzer over the header; the rest: make analyse
OUT=build/test_analyse
export OUT
for part in cppcheck 'gcc planted' 'gcc header'; do
    sh analyse.sh "$part" | grep -v '^skip clang-tidy'
done
