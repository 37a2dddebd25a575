# SPDX-License-Identifier: MIT-0
# test_kill.sh: sends SIGKILL at calls that use memory or files, and at random moments (5 for each program; KILLS=50 sets that number
# and includes each call). It also tests a full disk, a read-only disk, and two processes with one file. A file under its final name must
# be complete; the next run with the same names must end with the usual result and leave no temporary file.
out=build/kill
. tools/job.sh
kills=${KILLS:-5}
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
breakable study $STUDY
breakable 4_gpt $(declared ../examples/tutorials/4_gpt.c) ../examples/common/text.c ../examples/tutorials/tutorial.c
breakable reluize $RELUIZE
breakable onnx_nets tools/onnx_nets.c ../examples/network/onnx_out.c ../examples/common/data.c
breakable 1_gate $(declared ../examples/tutorials/1_gate.c) ../examples/tutorials/tutorial.c
breakable 2_mlp $(declared ../examples/tutorials/2_mlp.c) ../examples/common/data.c ../examples/tutorials/tutorial.c
mkdir -p $out/nets && $out/onnx_nets $out/nets > $out/nets.out || exit 1
tiny $out/tiny
head -c 3000 ../README.md > $out/text.txt
three_classes 60 > $out/table.csv

exec=                            # exec: the shell makes way, so that its number is the program's
small="--data $PWD/$out/tiny --hidden 8 --seeds 2 --epochs 2 --batch 90 --arms gelu,hardened,switched --threads 1 --save-every 1"
run_study() { $exec $out/study swap $small --csv $1/a.csv --json $1/a.json --svg $1/figures --save $1/a.st; }
go_study()
{
    [ -e $1/a.st ] || { run_study $1; return; }
    $exec $out/study swap --resume $1/a.st --save-every 1 --csv $1/a.csv --json $1/a.json --svg $1/figures
}
run_gpt()     { $exec $out/4_gpt train $out/text.txt --file $1/a.gpt --size '1 x 8, context 8, batch 4, steps 9, seed 1'; }
run_reluize() { $exec $out/reluize $out/nets/mlp_lambda.onnx --data $out/table.csv -o $1/a.onnx --epochs 1 --batch 20; }
run_gate()    { $exec $out/1_gate $1/a.svg; }
run_mlp()     { $exec $out/2_mlp --data $out/tiny --epochs 1 --save $1/a.safetensors; }
go_gpt()      { run_gpt $1; }
go_reluize()  { run_reluize $1; }
go_gate()     { run_gate $1; }
go_mlp()      { run_mlp $1; }
programs='study gpt reluize gate mlp'
mkdir -p $out/good
for program in $programs; do
    mkdir -p $out/good/$program
    run_$program $out/good/$program > $out/good.out 2> $out/err || { echo "FAIL $program: $(cat $out/err)"; exit; }
done

# whole PROGRAM FOLDER [ended]: what is there under a final name is what it should be, or a checkpoint on its way, which go_ reads
whole()
{
    for file in $(cd $2 && find . -type f ! -name '*.part'); do
        case $file in *.st|*.gpt|*.distil) [ "$3" ] || continue ;; esac
        cmp $2/$file $out/good/$1/$file > /dev/null 2>&1 || { echo "$file is cut or left over"; return 1; }
    done
    [ "$3" ] || return 0
    [ "$(cd $2 && find . | sort)" = "$(cd $out/good/$1 && find . | sort)" ] ||
        { echo "other files: $(cd $2 && find . | sort | tr '\n' ' ')"; return 1; }
}
# After a kill in FOLDER: the files are complete, and the next run continues to the end.
resumed()
{
    why=$(whole $1 $2) || return 1
    [ "$(find $2 -name '*.part')" ] && parts=$((parts + 1))
    go_$1 $2 > $out/out 2> $out/err || { why="it does not go on: $(cat $out/err)"; return 1; }
    why=$(whole $1 $2 ended)
}
# each call of few, ever fewer of many, and the last twelve: what is written at the end is
each_call()
{
    n=1
    killed=0
    parts=0
    rm -rf $out/run $out/missed
    mkdir -p $out/run
    (export FAULT_KILL=1 FAULT_MISSED=$out/missed FAULT_AT=1000000; run_$1 $out/run) > $out/out 2> $out/err
    calls=$(cat $out/missed)
    while [ $n -le $calls ]; do
        rm -rf $out/run
        mkdir -p $out/run
        (export FAULT_KILL=1 FAULT_AT=$n; run_$1 $out/run) > $out/out 2> $out/err
        killed=$((killed + 1))
        resumed $1 $out/run || { echo "FAIL $1: killed at call $n: $why"; return; }
        if [ "$KILLS" ]; then n=$((n + 1))
        elif [ $n -ge $((calls - 12)) ]; then n=$((n + 1))
        else n=$((n + 1 + n / 8)); [ $n -le $((calls - 11)) ] || n=$((calls - 11)); fi
    done
    verdict $([ $killed -gt 5 ] && [ $parts -gt 0 ]; echo $?) \
        "$1: SIGKILL at $killed of $calls calls, $parts of them while a file was written: nothing lost or left" \
        "$parts temporaries"
}
at_random()
{
    done=0
    parts=0
    rm -rf $out/run
    mkdir -p $out/run
    most=$2
    while [ $done -lt $kills ]; do
        (exec=exec; go_$1 $out/run) > $out/out 2> $out/err &
        sleep 0.$(od -An -N2 -tu2 /dev/urandom | awk -v most=$most '{ printf "%03d", 2 + $1 % most }')
        # The program had already ended: the next kill comes sooner.
        if kill -KILL $! 2> /dev/null; then done=$((done + 1)); most=$((most + 4)); else most=$((most / 2 + 2)); fi
        [ $most -lt 900 ] || most=900
        wait $! 2> /dev/null
        why=$(whole $1 $out/run) || { echo "FAIL $1: killed at a random moment: $why"; return; }
        [ $((done % 3)) = 0 ] || continue
        resumed $1 $out/run || { echo "FAIL $1: killed at random moments: $why"; return; }
        rm -rf $out/run
        mkdir -p $out/run
    done 2> /dev/null
    resumed $1 $out/run
    verdict $? "$1: SIGKILL at $done random moments: nothing lost, nothing left" "$why"
}
for program in $programs; do each_call $program; done
at_random study 150
at_random gpt 40
at_random reluize 60
at_random gate 60
at_random mlp 40

# Two processes run at once with the same names.
for program in $programs; do
    rm -rf $out/run
    mkdir -p $out/run
    run_$program $out/run > $out/out.1 2> $out/err.1 &
    run_$program $out/run > $out/out 2> $out/err
    one=$?
    wait $!
    two=$?
    why=$(whole $program $out/run ended)
    verdict $([ "$one $two" = "0 0" ] && [ -z "$why" ]; echo $?) "$program: two processes with one file" \
        "status $one and $two, $why $(cat $out/err $out/err.1)"
done

# A temporary file of a running process is not removed, nor is a file that is not a temporary file of these programs.
cat > $out/holder.c <<'END'
#include "../../../examples/common/part.h"
int main(int argc, char **argv)
{
    char part[PART_ROOM];
    FILE *f = part_open(part, argv[argc - 1]);
    if (!f || fputs("held", f) < 0 || fflush(f) || puts(part) < 0 || fflush(stdout)) return 1;
    getchar();
    return 0;
}
END
if $CC -std=c99 $WARNINGS -Werror $out/holder.c -o $out/holder; then
    rm -rf $out/run
    mkdir -p $out/run
    mkfifo $out/go
    $out/holder $out/run/a.gpt < $out/go > $out/held &
    exec 3> $out/go
    wait_until [ -s $out/held ]
    ln -s ../text.txt $out/run/a.gpt.lgelu1.part
    mkfifo $out/run/a.gpt.lgelu2.part
    run_gpt $out/run > $out/out 2> $out/err
    status=$?
    exec 3>&-
    wait $!
    [ $status = 0 ] && cmp $out/run/a.gpt $out/good/gpt/a.gpt && [ "$(cat $out/run/a.gpt.lgelu0.part)" = held ] &&
        [ -L $out/run/a.gpt.lgelu1.part ] && [ -p $out/run/a.gpt.lgelu2.part ] && [ $(wc -c < $out/text.txt) = 3000 ] &&
        [ ! -e $out/run/a.gpt.lgelu3.part ]
    verdict $? "a temporary that another process writes, a link and a pipe are passed over" \
        "status $status, $(cat $out/err), $(ls $out/run)"
else echo "FAIL part.h compiles without a warning: it does not"; fi

# A full disk and a read-only disk, if this user may mount them.
mkdir -p $out/disk
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=8m tmpfs $out/disk 2> /dev/null; then
    trap 'umount $out/disk' EXIT
    for program in $programs; do
        for how in full read-only; do
            rm -rf $out/disk/*
            cp -r $out/good/$program/. $out/disk 2> $out/err
            why=$(whole $program $out/disk ended) || { echo "FAIL $program: its files do not fit on a small disk"; continue; }
            if [ $how = full ]; then cat /dev/zero > $out/disk/fill 2> /dev/null; else mount -o remount,ro $out/disk; fi
            # The checkpoint is that of a finished run: the run begins again and replaces the files.
            (run_$program $out/disk) > $out/out 2> $out/err
            status=$?
            [ $how = full ] && rm -f $out/disk/fill || mount -o remount,rw $out/disk
            why=$(whole $program $out/disk ended)
            case $how in full) word='No space left' ;; *) word='Read-only' ;; esac
            [ $status = 1 ] && [ -z "$why" ] && grep -q "$word\|can't be" $out/err &&
                [ "$(grep -c -E '^(study|4_gpt|reluize|1_gate|2_mlp): ' $out/err)" = 1 ]
            verdict $? "$program: a disk that is $how: one line, what was there stays" \
                "status $status, $why $(cat $out/err)"
            go_$program $out/disk > $out/out 2> $out/err && why=$(whole $program $out/disk ended)
            verdict $? "$program: and with space again it ends with the same files" "$why $(cat $out/err)"
        done
    done
else echo "skip a disk that is full: only root may mount one"; fi
exit 0
