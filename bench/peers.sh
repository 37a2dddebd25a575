#!/bin/sh
# The training step of lgelu.h beside PyTorch's (Debian: python3-torch), interleaved, the fastest round of each.
# Debian's OpenBLAS may pick slow kernels on a CPU it does not know: the core types below are tried first and the best one is
# kept. OMP_WAIT_POLICY=passive keeps PyTorch's waiting threads off the few cores.            SPDX-License-Identifier: MIT-0
set -eu
cd "$(dirname "$0")"
build=${BUILD:-build}
python=${PYTHON:-/usr/bin/python3}
rounds=${ROUNDS:-3}
cores=$(nproc 2>/dev/null || echo 1)
[ "$cores" -gt 2 ] && cores=2
export OMP_WAIT_POLICY=passive
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT INT TERM

torch=0
if "$python" -c 'import torch' 2>/dev/null; then
    torch=1
    best=
    for core in SkylakeX Haswell Zen; do
        ms=$(OPENBLAS_CORETYPE=$core "$python" step.py 1 2 | sed 's/.*"step_ms": \([0-9.]*\).*/\1/')
        echo "OPENBLAS_CORETYPE=$core: PyTorch's step takes $ms ms on one thread"
        best=$(printf '%s\n%s %s\n' "$best" "$ms" "$core" | sed '/^$/d' | sort -n | head -1)
    done
    OPENBLAS_CORETYPE=${best#* }
    export OPENBLAS_CORETYPE
    echo "kept: OPENBLAS_CORETYPE=$OPENBLAS_CORETYPE OMP_WAIT_POLICY=$OMP_WAIT_POLICY"
else
    echo "PyTorch: skipped (apt-get install python3-torch)"
fi

table() {
    echo
    echo "$1; fastest of $rounds interleaved rounds"
    awk -v RS='\n' '
    function field(name,   s) { s = $0; sub(".*\"" name "\": \"?", "", s); sub("[\",}].*", "", s); return s }
    {
        peer = field("peer"); key = peer "|" field("threads")
        if (!(key in step)) { order[++n] = key; step[key] = forward[key] = 1e9; peak[key] = 0 }
        if (field("step_ms") + 0 < step[key])       step[key] = field("step_ms") + 0
        if (field("forward_ms") + 0 < forward[key]) forward[key] = field("forward_ms") + 0
        if (field("peak_mb") + 0 > peak[key])       peak[key] = field("peak_mb") + 0
        if (peer == "lgelu.h") ours[field("threads")] = key
    }
    END {
        printf "%-22s %7s %9s %11s %9s   %s\n", "", "threads", "step ms", "forward ms", "peak MB", "ours / theirs: step, forward, memory"
        for (i = 1; i <= n; i++) {
            key = order[i]; split(key, part, "|")
            printf "%-22s %7s %9.3f %11.3f %9.1f", part[1], part[2], step[key], forward[key], peak[key]
            o = ours[part[2]]
            if (o != key) printf "   %.2f  %.2f  %.3f", step[o] / step[key], forward[o] / forward[key], peak[o] / peak[key]
            printf "\n"
        }
    }' "$lines"
    : > "$lines"
}
threads=$([ "$cores" -gt 1 ] && echo "1 2" || echo 1)

for round in $(seq "$rounds"); do for n in $threads; do
    OMP_NUM_THREADS=$n "$build/step" 5 >> "$lines"
    [ $torch = 0 ] || OMP_NUM_THREADS=$n "$python" step.py "$n" 5 >> "$lines"
done; done
table "training step, MLP 784-512-256-128-10, batch 128, exact GELU, AdamW"

for vocabulary in 65 50304; do
    for round in $(seq "$rounds"); do for n in $threads; do
        OMP_NUM_THREADS=$n "$build/gpt" $vocabulary 2 >> "$lines"
        [ $torch = 0 ] || OMP_NUM_THREADS=$n "$python" gpt.py "$n" $vocabulary 2 >> "$lines"
    done; done
    table "training step, GPT of 6 layers, width 384, 6 heads, context 128, batch 8, vocabulary $vocabulary, exact GELU, AdamW, clipping"
done
