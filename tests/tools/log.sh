# SPDX-License-Identifier: MIT-0
# log.sh LOG COMMAND...: runs a test and writes its lines to LOG, then its processor time and its exit status as the last lines. It
# always succeeds: sum.sh decides whether the test failed.
log=$1
shift
"$@" > "$log" 2>&1
status=$?
times > "$log.times"
awk 'FNR == 2 { split($1 "m" $2, t, /[ms]+/); s = t[1] * 60 + t[2] + t[3] * 60 + t[4] } END { printf "time %.1f\n", s }' "$log.times" >> "$log"
rm -f "$log.times"
echo "exit $status" >> "$log"
