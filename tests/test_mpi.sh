# SPDX-License-Identifier: MIT-0
# test_mpi.sh: the data-parallel example: the same bits on 1, 2, 4 and 8 ranks, also resumed on another number of them, for a network with
# batch normalisation, too; what is refused.
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
OMP_NUM_THREADS=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMP_NUM_THREADS
out=build/mpi
if ! command -v mpicc > /dev/null || ! command -v mpirun > /dev/null; then echo "skip 5_mpi: no mpicc and mpirun here (Debian: libopenmpi-dev openmpi-bin)"; exit 0; fi
. tools/job.sh
mpicc -std=c99 -O2 $(declared ../examples/5_mpi.c) ../examples/data.c ../examples/text.c $IMPLEMENTATION -o $out/5_mpi -lm || exit 1
tiny $out/tiny
# run RANKS NAME ARGUMENTS: what it prints into NAME, its file into NAME.st
run() { ranks=$1; name=$2; shift 2; mpirun --oversubscribe -np $ranks $out/5_mpi --data $out/tiny --file $out/$name.st "$@" > $out/$name 2> $out/$name.err; }
weights() { sed -n 's/^ranks [0-9]*   weights \([0-9a-f]*\)$/\1/p' $out/$1; }
for net in mlp resnet; do
    run 1 $net --net $net --epochs 4
    verdict $([ $? = 0 ] && [ "$(weights $net)" ] && [ "$(grep -c '^epoch' $out/$net)" = 4 ]; echo $?) "5_mpi: $net on one rank" "$(grep -m1 . $out/$net.err)"
    for ranks in 2 4 8; do
        run $ranks more --net $net --epochs 4
        verdict $([ "$(weights more)" = "$(weights $net)" ] && cmp $out/more.st $out/$net.st > /dev/null 2>&1; echo $?) "5_mpi: $net on $ranks ranks: the same bits" \
            "$(tail -1 $out/more), $(tail -1 $out/$net), $(grep -m1 . $out/more.err)"
        verdict $([ "$(grep '^epoch' $out/more)" = "$(grep '^epoch' $out/$net)" ]; echo $?) "5_mpi: $net on $ranks ranks: the same losses" "$(cat $out/more)"
        rm -f $out/more.st
    done
    run 2 more --net $net --epochs 4 --until 2
    run 4 more --net $net --epochs 4
    verdict $(grep -q 'goes on after epoch 2' $out/more && [ "$(weights more)" = "$(weights $net)" ]; echo $?) "5_mpi: $net, two epochs on 2 ranks and two on 4: the same bits" \
        "$(cat $out/more $out/more.err)"
    rm -f $out/more.st
done
run 3 more
verdict $([ $? = 2 ] && grep -q '^usage: ' $out/more.err; echo $?) "5_mpi: 3 ranks are refused with status 2" "$(grep -m1 . $out/more.err)"
run 2 more --bogus 1
verdict $([ $? = 2 ] && grep -q '^usage: ' $out/more.err; echo $?) "5_mpi: an unknown option is refused with status 2" "$(grep -m1 . $out/more.err)"
run 2 more --data $out/nowhere
verdict $([ $? = 1 ] && grep -q 'nowhere' $out/more.err; echo $?) "5_mpi: no data: status 1" "$(grep -m1 . $out/more.err)"
LGELU_ISA=avx3 run 2 more
verdict $([ $? = 1 ] && grep -q 'LGELU_ISA: expected scalar, neon' $out/more.err; echo $?) "5_mpi: an unknown LGELU_ISA: status 1" "$(grep -m1 . $out/more.err)"
cp $out/mlp.st $out/more.st
run 2 more --net resnet
verdict $([ $? = 1 ] && grep -q 'more.st: ' $out/more.err && cmp $out/more.st $out/mlp.st > /dev/null; echo $?) "5_mpi: another network's file is refused" "$(grep -m1 . $out/more.err)"
exit 0
