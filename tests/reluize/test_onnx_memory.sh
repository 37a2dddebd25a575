# SPDX-License-Identifier: MIT-0
# test_onnx_memory.sh: what reluize's passes do with memory (tools/onnx_memory.c). On random graphs, each pass frees all that it
# allocates, reads nothing that it has not set, writes nothing behind the end of a block, and where memory lacks, whichever call it is
# that fails, refuses with a message. Needs GNU ld's --wrap. RUNS=N: at most N calls that fail for each graph
# but the first ones.
# STAGE=PASS: only this pass.
CC=${CC:-cc}
out=build/onnx_memory
mkdir -p $out
. tools/verdict.sh
reluize=../examples/reluize
ALLOCATIONS='-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free'
onnx=$(python_with onnx)
[ -n "$onnx" ] || { echo "skip memory of reluize's passes: $no_onnx"; exit 0; }
parts=$(built $reluize/ops/*.c $reluize/passes/*.c $reluize/onnx/*.c ../examples/common/output.c)
$CC -std=c99 -O1 $WARNINGS $ALLOCATIONS tools/onnx_memory.c $parts ${IMPLEMENTATION:-tools/lgelu.c} -lm -o $out/onnx_memory || exit 1
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
cases onnx_quantize $out/layers 1 30 && cases onnx_quantize $out/chains 2 10 equal && cases onnx_c_quantized $out/integers 3 40 2 &&
    cases onnx_c_quantized $out/mixed 5 20 2 floats &&
    cases onnx_random $out/windows 4 40 --floats 1 --nodes 2 --only Conv,ConvTranspose,MaxPool,AveragePool,Resize,MatMul,Gemm,Concat,Pad &&
    cases onnx_random $out/rows 5 40 --floats 1 --nodes 2 --only LSTM,GRU,RNN,LayerNormalization,BatchNormalization,Softmax,ArgMax,Gather,Slice,Split,ReduceMean &&
    cases onnx_random $out/parts 6 40 --floats 1 --nodes 2 --only Attention,ms.Attention,ms.MultiHeadAttention,ms.GroupQueryAttention,ms.SkipLayerNormalization,ms.BiasGelu,ms.FusedConv,ms.FusedMatMul > /dev/null
verdict $? 'graphs are made'
# memory PASS FILE...
memory()
{
    pass=$1
    stage $pass || return
    shift
    $out/onnx_memory $pass ${RUNS:-40} "$@" > $out/found 2> $out/err
    verdict $? "memory of $pass: $(tail -n 1 $out/found)" "$(grep FAIL $out/found | head -n 1) $(tail -n 1 $out/err)"
}
memory c $out/windows $out/rows
memory back $out/windows $out/rows $out/parts
RUNS=${RUNS:-200} memory integers $out/integers $out/mixed
memory relu $out/layers
memory line $out/layers
memory distil $out/layers
memory int8 $out/layers
memory gram $out/layers
memory equal $out/layers $out/chains
exit $bad
