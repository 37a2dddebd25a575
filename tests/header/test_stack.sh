# SPDX-License-Identifier: MIT-0
# test_stack.sh: no function of lgelu.h uses more than $BOUND bytes of the stack, by gcc's own count of its frames at -O0 and -O2
# (Debian: gcc); the largest is named. Every public kernel, two networks, saving and loading run on a thread of 64 KB at -O2, and of
# 128 KB (musl's default) at -O0, on each instruction set.
dir=build/stack
bound=${BOUND:-22000}
mkdir -p $dir
if ! echo 'int x;' | gcc -fstack-usage -x c -c - -o $dir/probe.o 2> /dev/null; then echo "skip frames on the stack: no gcc with -fstack-usage here"; exit 0; fi
for level in -O0 -O2; do
    # make has compiled the implementation at -O2, with a count if it is gcc
    object=$dir/lgelu.o openmp=
    if [ $level = -O2 ] && [ "${IMPLEMENTATION%% *}" = build/lgelu.o ] && [ -s build/lgelu.su ]; then
        object=build/lgelu.o
        openmp=${IMPLEMENTATION#build/lgelu.o}
        cp build/lgelu.su $dir
    elif ! gcc -std=c99 $level -fstack-usage -c tools/lgelu.c -o $object; then echo "FAIL frames at $level: lgelu.h does not compile"; continue; fi
    sort -t "$(printf '\t')" -k2,2nr $dir/lgelu.su | awk -F '\t' -v level=$level -v bound=$bound '
        { name = $1; sub(/.*:/, "", name) }
        $3 == "dynamic" { open_ended = open_ended " " name }
        NR == 1 { most = $2; largest = name }
        END {
            printf "# %s: the largest of %d frames is %d bytes, %s\n", level, NR, most, largest
            printf "%s frames at %s: none is larger than %d bytes%s\n", NR && most <= bound ? "ok" : "FAIL", level, bound, NR && most <= bound ? "" : ": " largest " takes " most
            printf "%s frames at %s: all have a bound%s\n", open_ended ? "FAIL" : "ok", level, open_ended ? ":" open_ended : ""
        }'
    bytes=65536
    [ $level = -O2 ] || bytes=131072
    if ! gcc -std=c99 -O1 -D_DEFAULT_SOURCE -I.. tools/small_stack.c $object $openmp -o $dir/small_stack -lm -pthread; then echo "FAIL small stacks at $level: the program does not compile"; continue; fi
    OMP_NUM_THREADS=1 $dir/small_stack $bytes $level || [ $? = 1 ] || echo "FAIL small stacks at $level: a crash on a thread of $bytes bytes"
done
