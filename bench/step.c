/* SPDX-License-Identifier: MIT-0
   step [rounds [gate]]: measures one training step of the multilayer perceptron 784-512-256-128-10
   with batch 128, exact GELU and AdamW (forward, loss, backward, update), and inference. It prints
   one JSON line with the fastest round, for peers.sh. With the name of another gate it measures
   steps with that gate and with GELU in turn and prints the ratio of their times: silu, or elu,
   which is a custom gate of examples/study/gates_other.h.
   step ROUNDS shared: measures the training steps of small networks with OpenMP's threads and with
   one thread in turn, first on idle processors, then beside one busy process for each of them, and
   prints the ratios of the whole times. */
#include "net.h"
#include "gates_other.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 128, INPUTS = 784, STEPS = 20 };
static const size_t OUTPUTS[4] = { 512, 256, 128, 10 };
static float x[BATCH * INPUTS];
static int32_t label[BATCH];
static other_gate elu;

static void *build(lgelu_net *net, lgelu_node *nodes, lgelu_mode mode, lgelu_gate_kind gate)
{
    int in, labels;
    lgelu_net_begin(net, nodes, 16);
    if (gate == LGELU_GATE_CUSTOM) {
        other_gate_make(&elu, &net->lambda_map);
        net->custom_gate = &elu.outer;
    }
    in = lgelu_input(net, "x", 1, 1, INPUTS);
    labels = lgelu_labels(net, "labels", 1, OUTPUTS[3]);
    lgelu_cross_entropy(net, "loss", lgelu_mlp(net, in, OUTPUTS, 4, gate, 1), labels);
    return make(net, BATCH, mode, in, x, labels, label);
}

/* Runs the tasks on the calling thread. */
static void one_thread(lgelu_task *task, void *task_user, size_t count, void *user)
{
    size_t i;
    (void)user;
    for (i = 0; i < count; i++)
        task(i, task_user);
}

/* The networks whose steps are measured with OpenMP's threads. */
typedef struct {
    const char *name;
    size_t batch;
    int calls; /* steps without a pause */
    int (*build)(lgelu_net *net, int *labels);
} shared_net;

static int small_mlp(lgelu_net *net, int *labels)
{
    static const size_t outputs[3] = { 64, 64, 10 };
    const int in = lgelu_input(net, "x", 1, 1, 64);
    *labels = lgelu_labels(net, "labels", 1, 10);
    lgelu_cross_entropy(net, "loss", lgelu_mlp(net, in, outputs, 3, LGELU_GATE_GELU, 1), *labels);
    return in;
}

static int mlp(lgelu_net *net, int *labels)
{
    const int in = lgelu_input(net, "x", 1, 1, INPUTS);
    *labels = lgelu_labels(net, "labels", 1, OUTPUTS[3]);
    lgelu_cross_entropy(net, "loss", lgelu_mlp(net, in, OUTPUTS, 4, LGELU_GATE_GELU, 1), *labels);
    return in;
}

static int lenet(lgelu_net *net, int *labels)
{
    const int in = lgelu_input(net, "x", 28, 28, 1);
    *labels = lgelu_labels(net, "labels", 1, 10);
    lgelu_cross_entropy(net, "loss", lgelu_lenet(net, in, 10, LGELU_GATE_GELU, 1), *labels);
    return in;
}

static const shared_net SHARED[] = { { "MLP 64-64-64-10, batch 64", 64, 100, small_mlp },
                                     { "MLP 784-512-256-128-10, batch 16", 16, 20, mlp },
                                     { "MLP 784-512-256-128-10, batch 128", 128, 5, mlp },
                                     { "LeNet-5 on 28 x 28, batch 16", 16, 20, lenet } };

/* Prints one line: the times of a training step on one thread and on OpenMP's, and their ratio. */
static void measure_shared(const shared_net *of, const char *beside, int rounds)
{
    lgelu_node nodes[2][32];
    lgelu_net net[2];
    void *memory[2];
    lgelu_training plan = lgelu_training_defaults(1e-3f, 1000000);
    double whole[2] = { 0, 0 };
    int k, r;
    for (k = 0; k < 2; k++) {
        int in, labels;
        lgelu_net_begin(net + k, nodes[k], 32);
        if (!k)
            net[k].threads.run = one_thread;
        in = of->build(net + k, &labels);
        memory[k] = make(net + k, of->batch, LGELU_MODE_TRAIN, in, x, labels, label);
    }
    for (r = 0; r < rounds; r++) {
        for (k = 0; k < 2; k++) {
            double start = now(), best = 1e30;
            measure(net + k, of->batch, &plan, of->calls, &best);
            whole[k] += now() - start;
        }
    }
    printf("%-34s %-23s one thread %8.1f us, %d threads %8.1f us, ratio %.2f\n", of->name, beside,
           1e6 * whole[0] / rounds / of->calls, threads(), 1e6 * whole[1] / rounds / of->calls,
           whole[1] / whole[0]);
    fflush(stdout);
    if (net[0].loss != net[1].loss)
        fprintf(stderr, "the losses differ\n");
    for (k = 0; k < 2; k++)
        free(memory[k]);
}

static void measure_all_shared(const char *beside, int rounds)
{
    size_t i;
    for (i = 0; i < sizeof SHARED / sizeof *SHARED; i++)
        measure_shared(SHARED + i, beside, rounds);
}

static void measure_beside_others(int rounds)
{
    enum { MOST = 256 };
    pid_t busy[MOST];
    long n = sysconf(_SC_NPROCESSORS_ONLN), i;
    measure_all_shared("no other process", rounds);
    if (n > MOST)
        n = MOST;
    for (i = 0; i < n; i++) {
        busy[i] = fork();
        if (!busy[i]) {
            alarm(600);
            for (;;)
                *(volatile float *)x = 0;
        }
    }
    measure_all_shared("one for each processor", rounds);
    for (i = 0; i < n; i++) {
        if (busy[i] > 0) {
            kill(busy[i], SIGKILL);
            waitpid(busy[i], NULL, 0);
        }
    }
}

int main(int argc, char **argv)
{
    lgelu_node nodes[2][16];
    lgelu_net net, infer;
    lgelu_training plan = lgelu_training_defaults(1e-3f, 1000000);
    int rounds = argc > 1 ? atoi(argv[1]) : 10, r;
    double best = 1e30, forward = 1e30;
    size_t i;
    void *memory[2];
    lgelu_gate_kind gate = LGELU_GATE_GELU;
    const char *other = argc > 2 ? argv[2] : NULL;

    isa_from_environment();
    for (i = 0; i < BATCH * INPUTS; i++)
        x[i] = 2 * lgelu_uniform(1, 2, i) - 1;
    for (i = 0; i < BATCH; i++)
        label[i] = (int32_t)(lgelu_random(1, 3, i) % OUTPUTS[3]);
    if (other && !strcmp(other, "shared")) {
        measure_beside_others(rounds);
        return 0;
    }
    if (other && !strcmp(other, "silu")) {
        gate = LGELU_GATE_SILU;
    } else if (other && !strcmp(other, "elu")) {
        gate = LGELU_GATE_CUSTOM;
        elu.kind = OTHER_ELU;
    } else if (other) {
        fprintf(stderr, "step: the gate is silu or elu, not %s\n", other);
        return 2;
    }
    memory[0] = build(&net, nodes[0], LGELU_MODE_TRAIN, LGELU_GATE_GELU);
    memory[1] = build(&infer, nodes[1], other ? LGELU_MODE_TRAIN : LGELU_MODE_INFER, gate);
    if (!other)
        lgelu_net_copy(&infer, &net);
    for (r = 0; r < rounds; r++) {
        measure(&net, BATCH, &plan, STEPS, &best);
        measure(&infer, BATCH, other ? &plan : NULL, STEPS, &forward);
    }
    if (other) {
        printf("one step: GELU %.3f ms, %s %.3f ms, %.2f times as long\n", 1e3 * best, other,
               1e3 * forward, forward / best);
        return 0;
    }
    printf(
        "{\"peer\": \"lgelu.h\", \"isa\": \"%s\", \"threads\": %d, \"step_ms\": %.4f, \"forward_ms\": %.4f, \"peak_mb\": %.1f, \"loss\": %.6f}\n",
        lgelu_isa_name(lgelu_isa()), threads(), 1e3 * best, 1e3 * forward, peak_mb(), net.loss);
    free(memory[0]);
    free(memory[1]);
    return 0;
}
