# SPDX-License-Identifier: MIT-0
# sparse_run.sh gpt|llama TEXT STEPS OUT [LAYERS WIDTH]: what are the zeros of a language model worth whose gates became one ReLU each?
# Trains it for STEPS steps in the folder OUT, or continues what is there; converts it in closed form, and from there and from a cold
# swap distils it on the training part of the text, for so many steps as DISTIL says (with RATE, the largest rate); and prints the
# tables of sparse_table.c. WINDOWS (0: all) and ROUNDS are its arguments. One thread. What is in OUT is not made again, so a run that
# was stopped continues.
#
#     DISTIL=2000 sh tests/tools/sparse_run.sh gpt tinyshakespeare.txt 20000 run
set -e
[ $# = 4 ] || [ $# = 6 ] || { sed -n '2,/^set/p' "$0" | sed '$d' >&2; exit 2; }
tests=$(cd "$(dirname "$0")/.." && pwd)
net=$1 text=$2 steps=$3 out=$4
shift 4
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
MAKEFLAGS='' make -s -C "$tests" build/sparse_train build/sparse_table > /dev/null
MAKEFLAGS='' make -s -C "$tests/../examples" build/reluize > /dev/null
reluize=$tests/../examples/build/reluize
mkdir -p "$out"
[ -e "$out/$net.npy" ] || "$tests/build/sparse_train" "$net" "$text" "$steps" "$out" "$@" >&2
convert()
{
    to=$out/$net.$1
    shift
    [ -e "$to.txt" ] || { "$reluize" "$out/$net.onnx" --data "$out/$net.npy" --samples 256 -o "$to.onnx" "$@" > "$to.part" && mv "$to.part" "$to.txt"; }
}
convert closed
convert distilled --steps "${DISTIL:-2000}" ${RATE:+--rate "$RATE"}
convert cold --cold --steps "${DISTIL:-2000}" ${RATE:+--rate "$RATE"}
"$tests/build/sparse_table" "$net" "$text" "${WINDOWS:-0}" "${ROUNDS:-20}" "$out/$net.onnx" "cold swap, distilled=$out/$net.cold.onnx" \
    "closed form=$out/$net.closed.onnx" "distilled=$out/$net.distilled.onnx"
