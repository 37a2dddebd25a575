# SPDX-License-Identifier: MIT-0
# test_mpi.sh: the data-parallel example on one rank and on two: the same loss within rounding, and the same bits each time.
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
out=build/mpi
if ! command -v mpicc > /dev/null || ! command -v mpirun > /dev/null; then echo "skip 6_mpi: no mpicc and mpirun here (Debian: libopenmpi-dev openmpi-bin)"; exit 0; fi
. tools/job.sh
mpicc -std=c99 -O2 $(declared ../examples/6_mpi.c) ../examples/data.c $IMPLEMENTATION -o $out/6_mpi -lm || exit 1
run() { mpirun --oversubscribe -np $1 $out/6_mpi 3 ../examples/pictures 1280 > $out/$2 2> $out/$2.err || { echo "FAIL 6_mpi on $1: $(grep -m1 . $out/$2.err)"; exit 1; }; }
run 1 one
run 2 two
run 2 again
run 3 three
verdict $(cmp $out/two $out/again > /dev/null 2>&1 && grep -q '^ranks 2  *weights [0-9a-f]*$' $out/two; echo $?) "6_mpi: two runs of two ranks end with the same bits" "$(tail -1 $out/two), $(tail -1 $out/again)"
for ranks in two three; do
    far=$(paste $out/one $out/$ranks | awk '/^epoch/ { for (i = 1; i < NF; i++) if ($i == "loss") x[++n] = $(i + 1) }
        END { for (i = 1; i < n; i += 2) { d = x[i] - x[i + 1]; if (d < 0) d = -d; if (d > 2e-5 * x[i]) print x[i], x[i + 1] } if (n != 6) print n " losses" }')
    verdict $([ -z "$far" ]; echo $?) "6_mpi: one rank and $ranks reach the same loss within rounding" "$far"
done
