# SPDX-License-Identifier: MIT-0
# test_sweep.sh: compares every 4001st float and some random pairs with LGELU_CLAIMS. `make sweep` tests all floats.
. tools/verdict.sh
mkdir -p build
${CC:-cc} -std=c99 -O2 -DLINKED -I.. -I. kernels/sweep.c ${IMPLEMENTATION:-tools/lgelu.c} -o build/sweep_strided -lm || { echo "FAIL sweep: does not compile"; exit 1; }
exec build/sweep_strided --stride 4001 --random 200000
