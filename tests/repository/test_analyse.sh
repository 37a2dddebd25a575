# SPDX-License-Identifier: MIT-0
# test_analyse.sh: runs the fast part of analyse.sh: cppcheck over everything, and gcc -fanalyzer over the header. `make analyse` runs
# the rest.
OUT=build/test_analyse
export OUT
for part in cppcheck 'gcc planted' 'gcc header'; do
    sh analyse.sh "$part" | grep -v '^skip clang-tidy'
done
