# SPDX-License-Identifier: MIT-0
# log.sh LOG COMMAND...: runs a test and writes its lines to LOG, then its processor time and its exit status as the last lines. A warning
# of the compiler, which make has written to build/NAME.warnings, is a failed case. It
# always succeeds: sum.sh decides whether the test failed. With TOTAL, the number of tests of this run, a terminal shows how many have ended.
log=$1
shift
"$@" > "$log" 2>&1
status=$?
times > "$log.times"
awk 'FNR == 2 { split($1 "m" $2, t, /[ms]+/); s = t[1] * 60 + t[2] + t[3] * 60 + t[4] } END { printf "time %.1f\n", s }' "$log.times" >> "$log"
rm -f "$log.times"
warnings=${log%.log}.warnings
[ ! -s "$warnings" ] || echo "FAIL compiles without a warning: $(grep -m1 -E 'warning|error' "$warnings")" >> "$log"
echo "exit $status" >> "$log"
[ "$TOTAL" ] && [ -t 2 ] || exit 0
basename "$log" .log >> build/progress
printf '\r%4d of %d ended: %-34s' "$(wc -l < build/progress)" "$TOTAL" "$(tail -n 1 build/progress)" >&2
[ "$(wc -l < build/progress)" -lt "$TOTAL" ] || echo >&2
