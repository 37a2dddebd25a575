# SPDX-License-Identifier: MIT-0
# sum.sh LOG...: prints what failed and what was skipped, one line for each program with its processor time (without compilation), and
# of more than five programs the slowest five, and the sum as the last line. It fails if a case failed. A program that ends with another status and without a FAIL is a failed case.
awk '
function close_log() {
    if (name == "") return
    if (status != "0" && !failed) {
        printf "FAIL %s: ended with status %s%s\n", name, status, last == "" ? "" : ": " last
        failed = 1
    }
    if (status == "0" && !passed && !failed && !skipped) { printf "FAIL %s: checked nothing\n", name; failed = 1 }
    printf "%-34s %7.1f s %5d passed%s%s\n", name, seconds, passed, failed ? ", " failed " failed" : "", skipped ? ", " skipped " skipped" : ""
    programs++
    time[name] = seconds
    all_passed += passed; all_failed += failed; all_skipped += skipped
}
FNR == 1 {
    close_log()
    name = FILENAME
    sub(/^.*\//, "", name)
    sub(/\.log$/, "", name)
    passed = failed = skipped = seconds = 0
    status = "unknown"
    last = ""
}
/^ok /   { passed++; next }
/^FAIL / { failed++; sub(/^FAIL /, "FAIL " name ": "); print; next }
/^skip / { skipped++; sub(/^skip /, "skip " name ": "); print; next }
/^time [0-9.]+$/ { seconds = $2; next }
/^exit [0-9]+$/ { status = $2; next }
/^#/     { next }
{ last = $0 }
END {
    close_log()
    for (i = 0; i < 5 && programs > 5; i++) {
        slowest = ""
        for (name in time) if (slowest == "" || time[name] > time[slowest]) slowest = name
        printf "%s %s %.0f s", i ? "," : "slowest:", slowest, time[slowest]
        delete time[slowest]
    }
    if (programs > 5) printf "\n"
    printf "%d passed, %d failed%s\n", all_passed, all_failed, all_skipped ? ", " all_skipped " skipped" : ""
    exit all_failed > 0
}' "$@"
