# SPDX-License-Identifier: MIT-0
# test_model.sh: makes a thousand runs of fuzz_network.c without sanitizers: random calls are compared with a model that predicts which
# of them must fail.
. tools/verdict.sh
${CC:-cc} -std=c99 -O1 -I.. -I. fuzz/fuzz_network.c ${IMPLEMENTATION:-tools/lgelu.c} -o build/model -lm || { echo "FAIL random calls against a model: does not compile"; exit 1; }
exec build/model 1000
