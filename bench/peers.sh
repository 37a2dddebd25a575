#!/bin/sh
# SPDX-License-Identifier: MIT-0
# peers.sh: compares the training steps of lgelu.h with those of PyTorch (Debian: python3-torch). The rounds are interleaved, and the
# fastest of each is reported.
# Debian's OpenBLAS may pick slow kernels on a CPU it does not know: the core types below are tried first and the best one is
# kept. OMP_WAIT_POLICY=passive keeps waiting threads of PyTorch from using processor time. The reference BLAS is refused. The load by
# other programs is measured before each round and reported.
set -eu
cd "$(dirname "$0")"
build=${BUILD:-build}
python=${PYTHON:-/usr/bin/python3}
rounds=${ROUNDS:-3}
cores=$(nproc 2>/dev/null || echo 1)
[ "$cores" -gt 2 ] && cores=2
export OMP_WAIT_POLICY=passive
lines=$(mktemp)
busy=$(mktemp)
kernels=$(mktemp)
trap 'rm -f "$lines" "$busy" "$kernels"' EXIT INT TERM

torch=0
if "$python" -c 'import torch' 2>/dev/null; then
    torch=1
    status=0
    blas=$("$python" blas.py) || status=$?
    echo "PyTorch's matrix products: $blas"
    if [ $status != 0 ]; then
        echo "peers: refused. On Debian: apt-get install libopenblas0 (where it is there: update-alternatives --config libblas.so.3-$(uname -m)-linux-gnu)" >&2
        exit 1
    fi
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

# measure PROGRAM TITLE ROUNDS [ARGUMENT]: runs PROGRAM and PROGRAM.py in turn and prints the table.
measure() {
    : > "$lines"
    : > "$busy"
    for round in $(seq "$rounds"); do
        [ "$cores" = 1 ] || "$build/busy" >> "$busy"
        for threads in 1 $([ "$cores" -gt 1 ] && echo 2); do
            OMP_NUM_THREADS=$threads "$build/$1" ${4-} "$3" >> "$lines"
            [ $torch = 0 ] || OMP_NUM_THREADS=$threads "$python" "$1.py" "$threads" ${4-} "$3" >> "$lines"
        done
    done
    echo
    echo "$2; fastest of $rounds interleaved rounds"
    table
    told_busy
}
told_busy() {
    awk '{ if ($2 > worst) worst = $2; if ($3 > stolen) stolen = $3 }
    worst > 1.25 || stolen > 5 { busy = 1 }
    END { if (NR) printf "two threads at once: a fixed loop takes %.2f times as long as alone, %.1f %% of the time was stolen%s\n", worst, stolen,
          busy ? ": A BUSY MACHINE, don'"'"'t trust the figures of two threads" : "" }' "$busy"
}
table() {
awk -v RS='\n' '
function field(name,   s) { s = $0; sub(".*\"" name "\": \"?", "", s); sub("[\",}].*", "", s); return s }
{
    peer = field("peer"); key = peer "|" field("threads")
    if (!(key in step)) { order[++n] = key; step[key] = forward[key] = 1e9; peak[key] = 0 }
    if (field("step_ms") + 0 < step[key])       step[key] = field("step_ms") + 0
    if (field("forward_ms") + 0 < forward[key]) forward[key] = field("forward_ms") + 0
    if (/reading_ms/) { if (!(key in token) || field("token_ms") + 0 < token[key]) token[key] = field("token_ms") + 0
                        if (!(key in reading) || field("reading_ms") + 0 < reading[key]) reading[key] = field("reading_ms") + 0 }
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
        if (key in token) printf "   a token %.2f ms, %.2f times reading the weights", token[key], token[key] / reading[key]
        printf "\n"
    }
}' "$lines"
}

# runtime: finds ONNX Runtime: the library of npm's onnxruntime-node, or the one that ONNXRUNTIME names.
runtime() {
    case $(uname -m) in x86_64) arch=x64 ;; aarch64) arch=arm64 ;; *) arch=none ;; esac
    for folder in ${NODE_PATH:-../tests/build/onnxruntime/node_modules}; do
        for library in "$folder"/onnxruntime-node/bin/napi-v*/linux/$arch/libonnxruntime.so.1; do
            [ -n "${ONNXRUNTIME-}" ] || [ ! -e "$library" ] || ONNXRUNTIME=$library
        done
    done
    echo
    if [ -z "${ONNXRUNTIME-}" ]; then
        echo "ONNX Runtime: skipped (npm install --ignore-scripts --prefix tests/build/onnxruntime onnxruntime-node)"
        return 1
    fi
    export ONNXRUNTIME
}

# inference beside ONNX Runtime on the same exported files
onnx() {
    runtime || return 0
    : > "$lines"
    : > "$busy"
    for round in $(seq "$rounds"); do
        [ "$cores" = 1 ] || "$build/busy" >> "$busy"
        for model in mlp resnet gpt; do for batch in 1 32; do for threads in 1 $([ "$cores" -gt 1 ] && echo 2); do
            for which in ours runtime; do               # both as they come: who waits for work looks for it a while before it sleeps
                env -u OMP_WAIT_POLICY OMP_NUM_THREADS=$threads "$build/onnx" $which $model $batch >> "$lines"
            done
        done; done; done
    done
    echo "inference, the MLP, ResNet-18 (batch norm folded) and the GPT (vocabulary 65), exact GELU; fastest of $rounds interleaved rounds"
    awk '
    function field(name,   s) { s = $0; sub(".*\"" name "\": \"?", "", s); sub("[\",}].*", "", s); return s }
    {
        key = field("model") " " field("batch") " " field("threads")
        ms = field("forward_ms") + 0
        if (!(key in ours)) { order[++n] = key; ours[key] = theirs[key] = 1e9 }
        if (field("peer") == "lgelu.h") { if (ms < ours[key]) ours[key] = ms } else { name = field("peer"); if (ms < theirs[key]) theirs[key] = ms }
        if (field("difference") + 0 > worst) worst = field("difference") + 0
    }
    END {
        printf "%-8s %6s %8s %12s %22s %14s\n", "", "batch", "threads", "lgelu.h ms", name " ms", "ours / theirs"
        for (i = 1; i <= n; i++) {
            split(order[i], part, " ")
            printf "%-8s %6s %8s %12.3f %22.3f %14.2f\n", part[1], part[2], part[3], ours[order[i]], theirs[order[i]], ours[order[i]] / theirs[order[i]]
        }
        printf "outputs differ by at most %.1e of the largest\n", worst
    }' "$lines"
    told_busy
}

# the literal evaluation of exported files beside ONNX Runtime, on one thread
onnx_run() {
    runtime || return 0
    : > "$lines"
    : > "$busy"
    for round in $(seq "$rounds"); do
        [ "$cores" = 1 ] || "$build/busy" >> "$busy"
        for model in resnet vit gpt; do for which in ours runtime; do
            OMP_NUM_THREADS=1 "$build/onnx_run" $which $model 32 >> "$lines"
        done; done
    done
    echo "literal evaluation, batch 32, one thread: ResNet-18 (3x32x32), a vision Transformer (256 patches) and a GPT (128 tokens) of 6 layers"
    echo "and width 384, exact GELU; fastest of $rounds interleaved rounds"
    awk '
    function field(name,   s) { s = $0; sub(".*\"" name "\": \"?", "", s); sub("[\",}].*", "", s); return s }
    {
        key = field("model"); ms = field("forward_ms") + 0
        if (!(key in ours)) { order[++n] = key; ours[key] = theirs[key] = 1e9 }
        if (field("peer") == "lgelu.h") { if (ms < ours[key]) ours[key] = ms } else { name = field("peer"); if (ms < theirs[key]) theirs[key] = ms }
    }
    END {
        printf "%-8s %14s %22s %16s\n", "", "onnx_run.h ms", name " ms", "onnx_run / theirs"
        for (i = 1; i <= n; i++)
            printf "%-8s %14.1f %22.1f %16.2f\n", order[i], ours[order[i]], theirs[order[i]], ours[order[i]] / theirs[order[i]]
    }' "$lines"
    told_busy
}

# whole numbers beside ONNX Runtime on the same QDQ files, and beside our own f32
int8() {
    runtime || return 0
    : > "$lines"
    : > "$busy"
    for round in $(seq "$rounds"); do
        [ "$cores" = 1 ] || "$build/busy" >> "$busy"
        for model in small mlp lenet resnet; do for batch in 1 32; do for threads in 1 $([ "$cores" -gt 1 ] && echo 2); do
            for which in ours runtime float; do
                env -u OMP_WAIT_POLICY OMP_NUM_THREADS=$threads "$build/int8" $which $model $batch "${SECONDS_EACH:-1}" >> "$lines"
            done
        done; done; done
    done
    echo "inference in 8 bits, ReLU networks, batch norm folded: MLP 784-128-64-10 (small) and 784-512-256-128-10, LeNet-5, ResNet-18;"
    echo "fastest of $rounds interleaved rounds, $(sed -n 's/.*"set": "\([^"]*\)".*/\1/p' "$lines" | head -n 1)"
    awk '
    function field(name,   s) { s = $0; sub(".*\"" name "\": \"?", "", s); sub("[\",}].*", "", s); return s }
    {
        key = field("model") " " field("batch") " " field("threads")
        peer = field("peer")
        if (peer ~ /^ONNX/) { name = peer; peer = "runtime" }
        ms = field("forward_ms") + 0
        if (!(key in seen)) { order[++n] = key; seen[key] = 1 }
        if (!((key, peer) in best) || ms < best[key, peer]) best[key, peer] = ms
        if (field("difference") + 0 > worst) worst = field("difference") + 0
    }
    END {
        printf "%-8s %6s %8s %10s %22s %10s %15s %11s\n", "", "batch", "threads", "int8 ms", name " ms", "f32 ms", "int8 / theirs", "int8 / f32"
        for (i = 1; i <= n; i++) {
            k = order[i]
            split(k, part, " ")
            printf "%-8s %6s %8s %10.4f %22.4f %10.4f %15.2f %11.2f\n", part[1], part[2], part[3], best[k, "int8"], best[k, "runtime"], \
                best[k, "f32"], best[k, "int8"] / best[k, "runtime"], best[k, "int8"] / best[k, "f32"]
        }
        printf "logits differ by at most %.1e of the largest\n", worst
    }' "$lines"
    told_busy
}

# a step of distillation of a detector: $LGELU_DATA has it, and photographs with which reluize makes the student
distil() {
    model=${LGELU_DATA-}/photos/yolox_nano_coco.onnx
    student=$build/yolox_nano_relu.onnx
    echo
    if [ ! -e "$model" ]; then
        echo "distillation: skipped (LGELU_DATA names no folder with photos/yolox_nano_coco.onnx)"
        return 0
    fi
    if [ ! -e "$student" ]; then
        make -s -C ../examples build/reluize
        ../examples/build/reluize "$model" --data "$LGELU_DATA/photos/objects" --raw --samples 8 --line --class-axis none --quiet \
            -o "$student" > /dev/null
    fi
    measure distil 'a step of distillation, YOLOX-nano, 320 x 320, one ReLU and a linear term (PRelu) a gate; milliseconds an image; forward: the original' \
        3 "$model $student 320 4"
    awk '
    function field(name,   s) { s = $0; sub(".*\"" name "\": \"?", "", s); sub("[\",}].*", "", s); return s }
    function apart(a, b) { return a > b ? a / b - 1 : b / a - 1 }
    {
        if (!n++) { loss = field("loss") + 0; gradient = field("gradient") + 0 }
        if (apart(field("loss") + 0, loss) > worst) worst = apart(field("loss") + 0, loss)
        if (apart(field("gradient") + 0, gradient) > worst) worst = apart(field("gradient") + 0, gradient)
    }
    END { printf "losses and norms of gradients differ by at most %.1e of themselves\n", worst; exit worst > 1e-3 }' "$lines"
}

# QDQ files in the evaluator beside ONNX Runtime, on one thread. The two take turns inside of the program
qdq() {
    runtime || return 0
    : > "$lines"
    : > "$busy"
    for round in $(seq "$rounds"); do
        [ "$cores" = 1 ] || "$build/busy" >> "$busy"
        OMP_NUM_THREADS=1 "$build/qdq" "${SECONDS_EACH:-1}" mlp resnet vit ${FILES-} >> "$lines"
    done
    echo "QDQ files, batch 1, one thread: an MLP 784-512-256-128-10, ResNet-18 (3x32x32), a vision Transformer (6 x 384, 256 patches) and FILES;"
    echo "fastest of $rounds interleaved rounds; apart: the mean difference of the outputs beside their mean magnitude"
    awk '
    function field(name,   s) { s = $0; sub(".*\"" name "\": \"?", "", s); sub("[\",}].*", "", s); return s }
    {
        key = field("model"); name = field("peer")
        if (!(key in ours)) { order[++n] = key; ours[key] = theirs[key] = 1e9 }
        if (field("ours_ms") + 0 < ours[key]) ours[key] = field("ours_ms") + 0
        if (field("theirs_ms") + 0 < theirs[key]) theirs[key] = field("theirs_ms") + 0
        apart[key] = field("apart")
    }
    END {
        printf "%-28s %14s %22s %16s %9s\n", "", "onnx_run.h ms", name " ms", "onnx_run / theirs", "apart"
        for (i = 1; i <= n; i++)
            printf "%-28s %14.3f %22.3f %16.2f %9s\n", order[i], ours[order[i]], theirs[order[i]], ours[order[i]] / theirs[order[i]], apart[order[i]]
    }' "$lines"
    told_busy
}

# the first table of README.md and of bench/README.md, in Markdown: one thread of this machine
summary() {
    : > "$lines"
    export OMP_NUM_THREADS=1
    have_runtime=0
    runtime > /dev/null && have_runtime=1
    for round in $(seq "$rounds"); do
        "$build/kernels" --json "$kernels" > /dev/null
        cat "$kernels" >> "$lines"
        [ $have_runtime = 0 ] || for model in resnet gpt; do for which in ours runtime; do
            "$build/onnx" $which $model 1 | sed "s/$/ inference $model/" >> "$lines"
        done; done
        [ $torch = 0 ] || for model in step resnet gpt; do
            vocabulary=
            [ $model != gpt ] || vocabulary=65
            { "$build/$model" $vocabulary 3 && "$python" $model.py 1 $vocabulary 3; } | sed "s/$/ training $model/" >> "$lines"
        done
    done
    echo
    awk '
    function field(name,   s) { s = $0; sub(".*\"" name "\": \"?", "", s); sub("[\",}].*", "", s); return s }
    function text(name,   s) { s = $0; sub(".*\"" name "\": \"", "", s); sub("\".*", "", s); return s }
    function release(peer) { sub(/\.[0-9]+[a-z0-9]*$/, "", peer); return peer }
    function least(key, value) { if (!(key in best) || value < best[key]) best[key] = value }
    /"group"/ && field("n") == 3072 && text("data") == "N(0,1)" {
        name = text("name")
        if (name ~ /^lgelu_/) { name = "ours " field("isa"); fastest = field("isa") }
        least(field("group") " " field("lambda") " " name, field("ns") + 0)
    }
    / inference (resnet|gpt)$/ {
        ours = field("peer") == "lgelu.h"
        if (!ours) runtime = release(text("peer"))
        least("inference " $NF " " ours, field("forward_ms") + 0)
    }
    / training (step|resnet|gpt)$/ {
        ours = field("peer") == "lgelu.h"
        if (!ours) torch = release(text("peer"))
        least("training " $NF " " ours, field("step_ms") + 0)
    }
    function kernel(title, group, lambda, isa, eigen, rest,   key) {
        key = group " " lambda " "
        if (!((key "ours " isa) in best)) return
        printf "| %s, λ = %s, %s | %.2f ns an element | ", title, lambda, label[isa], best[key "ours " isa]
        printf "%s |\n", (key eigen) in best ? sprintf("Eigen %.2f%s", best[key eigen], rest) : "Eigen is not installed"
    }
    function part(title, key, peer) {
        if ((key " 0") in best) printf "| %s | %.2f of the time | %s |\n", title, best[key " 1"] / best[key " 0"], peer
    }
    END {
        label["scalar"] = "scalar"; label["sse2"] = "SSE2"; label["avx2"] = "AVX2"; label["avx512"] = "AVX-512"; label["neon"] = "NEON"
        print "| one thread | lgelu.h | beside |"
        print "|---|---|---|"
        limits = sprintf(", ReLU %.2f, memcpy %.2f", best["forward 1 ReLU loop"], best["forward 1 memcpy"])
        kernel("forward", "forward", 1, fastest, "Eigen, native", limits)
        if (fastest != "avx2") kernel("forward", "forward", 1, "avx2", "Eigen, AVX2", "")
        kernel("forward", "forward", 30, fastest, "Eigen, native", ": noise in the tail")
        kernel("backward with dλ", "backward", 1, fastest, "Eigen, native", ", without dλ")
        part("inference, ResNet-18, batch 1", "inference resnet", runtime)
        part("inference, GPT 6 × 384, 128 tokens", "inference gpt", runtime)
        part("training step, MLP, batch 128", "training step", torch)
        part("training step, ResNet-18, batch 32", "training resnet", torch)
        part("training step, GPT 6 × 384, batch 8", "training gpt", torch)
    }' "$lines"
}

for peer in ${ONLY:-step resnet gpt onnx onnx_run int8 distil}; do case $peer in
summary) summary ;;
onnx)   onnx ;;
onnx_run) onnx_run ;;
int8)   int8; qdq ;;
qdq)    qdq ;;
distil) distil ;;
step)   measure step 'training step, MLP 784-512-256-128-10, batch 128, exact GELU, AdamW' 5 ;;
resnet) measure resnet 'training step, ResNet-18 (3x3 stem, 100 classes, 3x32x32), batch 32, exact GELU, AdamW; forward: batch norm folded' 3 ;;
gpt)    for vocabulary in 65 50304; do
            measure gpt "training step, GPT of 6 layers, width 384, 6 heads, context 128, batch 8, vocabulary $vocabulary, exact GELU, AdamW, clipping" 2 $vocabulary
        done ;;
*)      echo "peers: '$peer' is none of summary, step, resnet, gpt, onnx, onnx_run, int8, qdq, distil"; exit 1 ;;
esac; done
