# SPDX-License-Identifier: MIT-0
# test_model.sh: a thousand runs of fuzz_network.c, random calls against a model that knows which must fail, without sanitizers.
${CC:-cc} -std=c99 -O1 -I.. fuzz_network.c ${IMPLEMENTATION:-tools/lgelu.c} -o build/model -lm || { echo "FAIL random calls against a model: does not compile"; exit 1; }
exec build/model 1000
