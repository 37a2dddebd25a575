# SPDX-License-Identifier: MIT-0
# test_mpi.sh: the data-parallel example computes the same bits for every network on 1, 2, 4 and 8 ranks, also if it is resumed on
# another number of ranks. The test also checks the bytes that ranks exchange, ranks that are killed at random moments, memory and files
# that fail on one rank, ranks with other options or data, and errors. KILLS=30: so many ranks are killed; NETWORKS=300 random networks.
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
OMP_NUM_THREADS=1
OMPI_MCA_btl_vader_single_copy_mechanism=none     # else Open MPI itself may say that it can't read a killed rank's memory
OMPI_MCA_mpi_yield_when_idle=1                    # ranks that wait leave the processors to other tests
export OMPI_MCA_mpi_yield_when_idle OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMP_NUM_THREADS OMPI_MCA_btl_vader_single_copy_mechanism
out=build/mpi
if ! command -v mpicc > /dev/null || ! command -v mpirun > /dev/null; then
    echo "skip 5_mpi: no mpicc and mpirun here (Debian: libopenmpi-dev openmpi-bin)"
    exit 0
fi
. tools/job.sh
# what the variants of the program have in common is compiled once
for part in common/data common/text tutorials/tutorial; do $CC -std=c99 -O1 -c ../examples/$part.c -o $out/$(basename $part).o || exit 1; done
sources="$(declared ../examples/tutorials/5_mpi.c) $out/data.o $out/text.o $out/tutorial.o $IMPLEMENTATION"
mpicc -std=c99 -O2 $sources -o $out/5_mpi -lm || exit 1
tiny $out/tiny 12
tiny $out/smaller 6
head -c 10000 ../examples/common/data.c > $out/words
mpirun="mpirun -q --oversubscribe"
# run RANKS NAME ARGUMENTS: what it prints into NAME, its file into NAME.st
run()
{
    ranks=$1 name=$2
    shift 2
    $mpirun -np $ranks $out/5_mpi --data $data --file $out/$name.st "$@" > $out/$name 2> $out/$name.err
}
weights() { sed -n 's/^ranks [0-9]*   weights \([0-9a-f]*\)$/\1/p' $out/$1; }
# equal NAME NAME: both runs finished, with the same bits.
equal() { [ "$(weights $1)" ] && [ "$(weights $1)" = "$(weights $2)" ] && cmp $out/$1.st $out/$2.st > /dev/null 2>&1; }
for net in mlp lenet resnet8 resnet18 vit gpt; do
    data=$out/tiny epochs=2 others='2 4 8'
    case $net in gpt) data=$out/words ;; mlp) epochs=4 ;; resnet18) data=$out/smaller epochs=1 others=4 ;; esac
    run 1 $net --net $net --epochs $epochs
    verdict $([ $? = 0 ] && [ "$(weights $net)" ] && [ "$(grep -c '^epoch' $out/$net)" = $epochs ]; echo $?) \
        "5_mpi: $net on one rank" "$(grep -m1 . $out/$net.err)"
    for ranks in $others; do
        rm -f $out/more.st
        run $ranks more --net $net --epochs $epochs
        verdict $(equal more $net; echo $?) "5_mpi: $net on $ranks ranks: the same bits" \
            "$(tail -1 $out/more), $(tail -1 $out/$net), $(grep -m1 . $out/more.err)"
        verdict $([ "$(grep '^epoch' $out/more)" = "$(grep '^epoch' $out/$net)" ]; echo $?) \
            "5_mpi: $net on $ranks ranks: the same losses" "$(cat $out/more)"
    done
    [ $epochs -gt 1 ] || continue
    rm -f $out/more.st
    run 2 more --net $net --epochs $epochs --until 1
    run 4 more --net $net --epochs $epochs
    verdict $(grep -q 'resumes after epoch 1' $out/more && equal more $net; echo $?) \
        "5_mpi: $net, an epoch on 2 ranks and the rest on 4: the same bits" "$(cat $out/more $out/more.err)"
done
data=$out/tiny
# The file is in the folder of rank 0; the other ranks run in another folder.
mkdir $out/there $out/here
run 2 begun --until 2 --epochs 4
cp $out/begun.st $out/here/more.st
at="$PWD/$out/5_mpi --data $PWD/$data --file more.st --epochs 4"
$mpirun -np 1 -wdir $out/here $at : -np 3 -wdir $out/there $at > $out/more 2> $out/more.err
cp $out/here/more.st $out/more.st
verdict $(grep -q 'resumes after epoch 2' $out/more && equal more mlp && [ -z "$(ls $out/there)" ]; echo $?) \
    "5_mpi: only rank 0 needs to see the file" "$(cat $out/more $out/more.err; ls $out/there)"
run 2 shards --shards 16 --epochs 4
run 4 more4 --shards 16 --epochs 4
verdict $(equal shards more4 && [ "$(weights shards)" != "$(weights mlp)" ]; echo $?) \
    "5_mpi: 16 shards have bits of their own, the same on 2 and 4 ranks" "$(cat $out/shards $out/more4 $out/more4.err)"

# ---- random networks, on shards smaller than the batch they are made for, on other ranks and other instruction sets ----
mpicc -std=c99 -O2 -I.. $(declared tools/mpi_random.c) $IMPLEMENTATION -o $out/mpi_random -lm || exit 1
networks=${NETWORKS:-100}
$mpirun -np 1 $out/mpi_random 1 $networks > $out/random 2> $out/random.err
verdict $([ $? = 0 ] && [ "$(wc -l < $out/random)" = $networks ] && [ "$(grep -c none $out/random)" -lt $((networks / 4)) ]; echo $?) \
    "5_mpi: $networks random networks on one rank" "$(grep -m1 . $out/random.err)"
for how in 'avx2 2' 'scalar 4' 'avx512 8'; do
    LGELU_ISA=${how% *} $mpirun -np ${how#* } $out/mpi_random 1 $networks > $out/more 2> $out/more.err
    cmp $out/random $out/more > $out/cmp 2>&1
    verdict $? "5_mpi: $networks random networks on ${how#* } ranks, ${how% *}: the same bits" "$(cat $out/cmp; grep -m1 . $out/more.err)"
done

# ---- 2n numbers out of a rank and into it, less the part that stays: as Open MPI counts what it sends ----
if ompi_info 2> /dev/null | grep -q 'MCA pml: monitoring'; then
    mpicc -std=c99 -O2 ../bench/mpi.c $sources -o $out/counted -lm || exit 1
    for ranks in 2 8 16; do
        rm -f $out/more.st $out/prof.*
        STEPS=3 $mpirun -np $ranks --mca pml_monitoring_enable 2 --mca pml_monitoring_enable_output 3 \
            --mca pml_monitoring_filename $out/prof $out/counted --net resnet8 --shards 16 --epochs 9 --data $data \
            --file $out/more.st > $out/more 2> $out/more.err
        why=$(awk '/^measured/ { ranks = $2; steps = $4; n = $6 }
            /^[EI]\t/ { out[$2] += $4; into[$3] += $4 }
            END {
                if (!n) { print "nothing measured"; exit }
                most = 8 * n * (ranks - 1) / ranks
                for (k = 0; k < ranks; k++) {
                    o = out[k] / steps; i = into[k] / steps
                    if (o < most || i < most || o > 1.01 * most || i > 1.01 * most)
                        print "rank " k ": " o " out, " i " in, not " most
                }
            }' $out/more $out/prof.*.prof 2>&1)
        verdict $([ -z "$why" ]; echo $?) "5_mpi: $ranks ranks: 8n(R - 1)/R bytes a step out of each and into it" \
            "$why $(cat $out/more.err)"
    done
else
    echo "skip 5_mpi: bytes between ranks: this MPI does not count them (Open MPI's pml monitoring)"
fi

# ---- a rank is killed: the others report it in a line each and end; a resumed run has the same bits on any number of ranks ----
mkfifo $out/lines
random() { od -An -N2 -tu2 /dev/urandom | awk -v n="$1" '{ print $1 % n }'; }
of() { cat /proc/[0-9]*/stat 2> /dev/null | awk -v parent=$1 '$4 == parent { print $1 }'; }
# killed RANKS EPOCHS MILLISECONDS: runs until so many epochs and then so much time have passed, kills a rank; $status, $killed,
# $seconds
killed()
{
    timeout 100 $mpirun -np $1 $out/5_mpi --net resnet8 --data $data --epochs 40 --file $out/killed.st > $out/lines \
        2> $out/killed.err &
    job=$!
    exec 3< $out/lines
    left=$2
    while [ $left -gt 0 ] && read -r line <&3; do
        echo "$line" >> $out/killed
        case $line in epoch*) left=$((left - 1)) ;; esac
    done
    sleep $(awk -v n=$3 'BEGIN { print n / 1000 }')
    set -- $(for p in $(of $job); do of $p; done)
    killed=0
    if [ $# -gt 0 ]; then
        shift $(random $#)
        kill -9 $1 2> /dev/null && killed=1
    fi
    seconds=$(date +%s)
    cat <&3 >> $out/killed
    exec 3<&-
    wait $job 2> /dev/null
    status=$?
    seconds=$(($(date +%s) - seconds))
}
run 2 alone --net resnet8 --epochs 40
verdict $([ "$(weights alone)" ]; echo $?) "5_mpi: 40 epochs undisturbed" "$(cat $out/alone.err)"
killed 4 3 0
said=$(grep -c '^5_mpi: ended' $out/killed.err)
lines=$(wc -l < $out/killed.err)
# mpirun allows each rank a second for its message, which may be too short on a busy machine.
verdict $([ $killed = 1 ] && [ $status != 0 ] && [ $seconds -le 15 ] && [ $said -ge 1 ] && [ $said -le 3 ] && [ "$lines" = $said ]; echo $?) \
    "5_mpi: one of 4 ranks killed: the others end with a line each, and nothing else" "status $status, $seconds s, $(cat $out/killed.err)"
kills=1 bad=
while [ $kills -lt ${KILLS:-10} ]; do
    ranks=$((1 << $(random 4))) epochs=$(random 13) wait=$(random 300)
    [ $epochs != 0 ] || wait=$(random 1500)
    [ $kills -gt 2 ] || { epochs=$((epochs % 4 + 1)); wait=$((wait % 20)); }      # three times before it is done
    killed $ranks $epochs $wait
    [ $killed = 1 ] || break
    kills=$((kills + 1))
    # A rank that has not left MPI_Init prints nothing; a rank that has finished may have ended with status 0.
    if [ $status = 124 ] || [ $seconds -gt 15 ] || grep -v '^5_mpi: ended' $out/killed.err > /dev/null; then
        bad="$ranks ranks, $epochs epochs, $wait ms: status $status, $seconds s, $(cat $out/killed.err)"
    fi
done
verdict $([ -z "$bad" ]; echo $?) "5_mpi: ranks killed at random moments: the others end soon, by nothing but that line" "$bad"
run 2 killed --net resnet8 --epochs 40
verdict $([ $kills -gt 2 ] && equal killed alone; echo $?) \
    "5_mpi: after ranks were killed, on other numbers of them: the same bits" \
    "$kills kills, $(tail -1 $out/killed), $(tail -1 $out/alone), $(cat $out/killed.err)"
rm -f $out/killed.st.*.part              # of a rank 0 that was killed while it wrote

# ---- a rank's memory or file fails: one line on status 1, the file whole, and no temporary ----
mpicc -std=gnu99 -O1 -w tools/faults.c $sources $wrap -o $out/faulty -lm || exit 1
run 2 good --epochs 2
run 2 half --epochs 2 --until 1
# faults RANK SETTING: the second epoch with it on that rank
faults()
{
    cp $out/half.st $out/fault.st
    first= last=
    if [ $1 = 0 ]; then first="env $2"; else last="env $2"; fi
    timeout 100 $mpirun --mca btl self,tcp -np 1 $first $out/faulty --data $data --epochs 2 --file $out/fault.st \
        : -np 1 $last $out/faulty --data $data --epochs 2 --file $out/fault.st > $out/fault 2> $out/fault.err
    status=$?
    if [ $status = 0 ]; then equal fault good
    else
        told=$((told + 1))
        [ $status = 1 ] && [ "$(wc -l < $out/fault.err)" = 1 ] && grep -q '^5_mpi: ' $out/fault.err &&
            { cmp $out/fault.st $out/half.st || cmp $out/fault.st $out/good.st; } > /dev/null 2>&1
    fi && [ -z "$(find $out -name '*.part')" ] || why="$why; rank $1, $2: status $status, $(cat $out/fault.err)"
}
why= told=0
faults 0 FAULT_BYTES=20000
verdict $([ -z "$why" ] && [ $told = 1 ] && grep -q -e '--file: .*fault.st: ' $out/fault.err; echo $?) \
    "5_mpi: no space for the file: one line, status 1, the old file stays" "$why$(cat $out/fault.err)"
why= told=0
for rank in 0 1; do
    rm -f $out/missed
    n=$((1 + $(random 3)))
    while [ ! -e $out/missed ] && [ $n -lt 200 ]; do faults $rank "FAULT_AT=$n FAULT_MISSED=$out/missed"; n=$((n + 3)); done
done
verdict $([ -z "$why" ] && [ $told -gt 3 ]; echo $?) \
    "5_mpi: every third call of memory and files fails on one rank: one line or the same bits" "$told told$why"

# ---- refused ----
refuse() # STATUS WHAT TEXT: as the last run ended
{
    said=$(grep -c '^5_mpi: \|^usage: ' $out/more.err)
    verdict $([ $ended = $1 ] && [ $said = 1 ] && grep -q -e "$3" $out/more.err; echo $?) "5_mpi: $2: one line, status $1" \
        "status $ended, $(cat $out/more.err)"
}
# ---- a rank that runs something else: one line from every rank, status 1, before the first step ----
# other WHAT TEXT FIRST LAST: FIRST are the options of ranks 0 to 2, LAST those of rank 3
other()
{
    rm -f $out/more.st
    timeout 60 $mpirun -np 3 $out/5_mpi --file $out/more.st $3 : -np 1 $out/5_mpi --file $out/more.st $4 > $out/more 2> $out/more.err
    ended=$?
    said=$(grep -c -e "^5_mpi: rank [0-3]: $2: not the same on all ranks: here " $out/more.err)
    verdict $([ $ended = 1 ] && [ $said = 4 ] && [ ! -e $out/more.st ] && ! grep -q epoch $out/more; echo $?) \
        "5_mpi: a rank with $1: one line from every rank, status 1" "status $ended, $(cat $out/more.err)"
}
mkdir -p $out/tiny_other $out/copy
cp $out/tiny/* $out/tiny_other
cp $out/tiny/* $out/copy
printf '\200' | dd of=$out/tiny_other/train-images-idx3-ubyte bs=1 seek=5000 conv=notrunc 2> $out/dd.err
other 'another network' options "--data $data" "--data $data --net resnet8"
other 'other epochs' options "--data $data" "--data $data --epochs 4"
other 'other shards' options "--data $data --shards 16" "--data $data --shards 8"
other 'an option that does not exist' options "--data $data" "--data $data --bogus 1"
other 'one other pixel' --data "--data $data" "--data $out/tiny_other"
other 'another text' --data '--net gpt --data ../examples/common/data.c' '--net gpt --data ../examples/common/text.c'
rm -f $out/more.st
timeout 60 $mpirun -np 1 $out/5_mpi --file $out/more.st --data $data --epochs 4 : \
    -np 1 $out/5_mpi --file $out/more.st --data $out/copy --epochs 4 > $out/more 2> $out/more.err
verdict $(equal more mlp; echo $?) "5_mpi: the same data in another folder are the same" "$(cat $out/more $out/more.err)"

# ---- refused by all ranks ----
rm -f $out/more.st
run 3 more; ended=$?
refuse 2 '3 ranks are refused' '^usage: '
run 2 more --bogus 1; ended=$?
refuse 2 'an unknown option is refused' '^usage: '
run 2 more --net vgg; ended=$?
refuse 2 'an unknown network is refused' '^usage: '
run 4 more --shards 2; ended=$?
refuse 2 'fewer shards than ranks are refused' '^usage: '
run 4 more --data $out/nowhere; ended=$?
refuse 1 'no data' '--data: .*nowhere'
run 4 more --file $out/nowhere/a.st; ended=$?
refuse 1 'no folder to write to' '--file: .*nowhere'
LGELU_ISA=avx3 run 4 more; ended=$?
refuse 1 'an unknown LGELU_ISA' 'LGELU_ISA: expected scalar, neon'
for arguments in '--net resnet8' '--shards 16' '--epochs 5'; do
    cp $out/good.st $out/more.st
    run 4 more $arguments; ended=$?
    refuse 1 "a file kept without $arguments is refused" 'more.st: '
    verdict $(cmp $out/more.st $out/good.st > /dev/null; echo $?) "5_mpi: it stays as it was" "changed"
done
if [ -e /dev/full ]; then
    rm -f $out/more.st
    $out/5_mpi --data $data --file $out/more.st > /dev/full 2> $out/more.err; ended=$?       # mpirun would be in between
    refuse 1 'standard output on a full device' 'standard output'
fi
head -c 30000 $out/good.st > $out/more.st
run 4 more --epochs 2; ended=$?
refuse 1 'a cut file is refused' 'more.st: '
exit 0
