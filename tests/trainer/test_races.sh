# SPDX-License-Identifier: MIT-0
# test_races.sh: runs test_threads.c under ThreadSanitizer: networks that are trained on a user's threads, and 8 threads that train
# their own networks beside one that infers and one that calls lgelu_isa_limit. The runs on OpenMP are omitted, because ThreadSanitizer
# does not know the synchronisation of its library and would report false races.
. tools/verdict.sh
tsan=build/test_threads_tsan
name="training on a user's threads under ThreadSanitizer"
fixed=                                  # an old sanitizer can't start where a new kernel lays out memory at random
setarch -R true 2> /dev/null && fixed='setarch -R'
if ! ${CC:-cc} -std=c99 -O0 -g -fsanitize=thread -I.. -I. trainer/test_threads.c tools/lgelu.c -o $tsan -lm -pthread 2> /dev/null; then
    echo "skip $name: not here"
    exit 0
fi
log=$(TSAN_OPTIONS=exitcode=66 timeout 300 $fixed $tsan --short 2>&1)
status=$?
if echo "$log" | grep -q 'unexpected memory mapping'; then echo "skip $name: it can't start here"
elif [ $status = 0 ]; then echo "ok $name: $(echo "$log" | grep -c '^ok') cases, no data race"
else echo "FAIL $name: status $status, $(echo "$log" | grep -m1 -E 'WARNING|FAIL|SUMMARY')"; fi
