# SPDX-License-Identifier: MIT-0
# test_torch_relus.sh: the statistics of examples/torch/relus.py: temperatures, divergences, marks after Holm's correction, and the tables of
# a short run.
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
out=build/torch_relus
. tools/verdict.sh
python=$(python_with torch,numpy)
if [ -z "$python" ]; then echo "skip relus.py: $no_torch"; exit 0; fi
rm -rf $out
mkdir -p $out
torch_libraries
PYTHONPATH=../examples/torch PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH PYTHONDONTWRITEBYTECODE
$python tools/torch_relus.py $out/runs 2> $out/err || bad=1
[ -s $out/err ] && { echo "FAIL torch_relus.py: $(tail -n 1 $out/err)"; bad=1; }
exit $bad
