#!/bin/sh
# SPDX-License-Identifier: MIT-0
# mpi.sh: runs examples/tutorials/5_mpi.c on 1, 2, 4 and 8 ranks of this machine and measures the processor seconds and bytes of a step. From
# them a model computes the time of a step on 16 to 1,024 machines. make -C bench mpi; NETS="mlp gpt" selects networks.
NETS=${NETS:-mlp resnet8 resnet18 gpt}
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMP_NUM_THREADS STEPS
prof=build/mpi_prof
# The bytes are Open MPI's count of what it sends between ranks, also inside collectives.
one()
{
    net=$1 ranks=$2
    shift 2
    case $net in gpt) data=../lgelu.h ;; *) data=../examples/pictures ;; esac
    case $net in mlp) STEPS=50 ;; resnet8) STEPS=12 ;; resnet18) STEPS=2 ;; *) STEPS=6 ;; esac
    rm -f build/mpi.st $prof.*
    mpirun -q --oversubscribe -np $ranks --mca pml_monitoring_enable 2 --mca pml_monitoring_enable_output 3 \
        --mca pml_monitoring_filename $prof build/mpi --net $net --data $data --file build/mpi.st --epochs 100 "$@" \
        > build/mpi.out || exit 1
    awk -v net=$net '/^measured/ { ranks = $2; steps = $4; n = $6; seconds = $8 }
        /^[EI]\t/ { out[$2] += $4; into[$3] += $4 }
        END {
            for (k in out) if (out[k] > most_out) most_out = out[k]
            for (k in into) if (into[k] > most_in) most_in = into[k]
            printf "%s %d %d %.6f %.0f %.0f\n", net, ranks, n, seconds, most_out / steps, most_in / steps
        }' build/mpi.out $(ls $prof.*.prof 2> /dev/null)
}
for net in $NETS; do for ranks in 1 2 4 8; do one $net $ranks; done; done > build/mpi.table
case " $NETS " in
*' mlp '*) for ranks in 16 32; do one mlp $ranks --shards 32 | sed 's/^mlp/mlp,32/'; done >> build/mpi.table ;;
esac
awk '
function mb(x) { return sprintf("%.3f", x / 1e6) }
BEGIN {
    print "Measured: a step of 8 shards of 16 samples (gpt: of 16 x 64 tokens; mlp,32: 32 shards) on this machine, each"
    print "rank one thread. Seconds: processor time outside MPI, the least of some steps, of the slowest rank. MB a step and"
    print "rank: what Open MPI counts, all its messages.\n"
    split("network,numbers n,ranks,seconds,MB out,MB in,8n(R-1)/R", h, ",")
    printf "%-10s %10s %6s %12s %10s %10s %14s\n", h[1], h[2], h[3], h[4], h[5], h[6], h[7]
}
{
    printf "%-10s %10d %6d %12.4f %10s %10s %14s\n", $1, $3, $2, $4, mb($5), mb($6), mb(8 * $3 * ($2 - 1) / $2)
    if ($1 ~ /,/) next
    if (!($1 in n)) order[++nets] = $1
    n[$1] = $3; t[$1, $2] = $4
}
END {
    print "\nModelled, nothing of it measured: R machines of one such core each, S = 1,024 shards of 16 samples; the bits are"
    print "the same for every R."
    print "  T(R) = S/R c + u + 2(R-1)(a + 4n/(R B)) + 2 log2(R) a"
    print "  c: a shard, u: what every rank does once a step (sum of the upper levels, optimiser); from the seconds above,"
    print "     T(1) = 8c + u, T(8) = c + u. Check: what that gives on 2 and 4 ranks beside what was measured."
    print "  a: latency of a message, B: bytes a second in and, at once, out of a machine. R - 1 messages of n/R numbers for"
    print "     the sums, as many for gathering; nothing overlaps with computing; the network has full bisection; all machines"
    print "     are equally fast."
    print "  --shards 1024 costs each rank log2(S/R) + 2 times n numbers of memory. With 8 shards no more than 8 ranks have work."
    link[1] = "10 Gb/s";  net_a[1] = 30e-6; net_b[1] = 1.2e9
    link[2] = "100 Gb/s"; net_a[2] = 2e-6;  net_b[2] = 12e9
    for (i = 1; i <= nets; i++) {
        k = order[i]
        c = (t[k, 1] - t[k, 8]) / 7; u = t[k, 8] - c
        printf "\n%s: c = %.5f s, u = %.5f s; 2 ranks %.4f s (measured %.4f), 4 ranks %.4f s (measured %.4f)", k, c, u,
            4 * c + u, t[k, 2], 2 * c + u, t[k, 4]
        printf "; 1 rank, 1,024 shards: %.2f s\n", 1024 * c + u
        printf "%-10s %6s %12s", "network", "ranks", "computing, s"
        for (l = 1; l <= 2; l++) printf " %22s %10s %10s", link[l] ": exchange, s", "step, s", "efficiency"
        printf "\n"
        for (R = 16; R <= 1024; R *= 4) {
            work = 1024 / R * c + u
            printf "%-10s %6d %12.4f", k, R, work
            for (l = 1; l <= 2; l++) {
                a = net_a[l]; B = net_b[l]
                x = 2 * (R - 1) * (a + 4 * n[k] / (R * B)) + 2 * log(R) / log(2) * a
                printf " %22.4f %10.4f %9.0f%%", x, work + x, 100 * (1024 * c + u) / (R * (work + x))
            }
            printf "\n"
        }
    }
    print "\n10 Gb/s: a = 30 microseconds, B = 1.2 GB/s. 100 Gb/s: a = 2 microseconds, B = 12 GB/s. Efficiency: T(1) / (R T(R))."
}' build/mpi.table
