/* SPDX-License-Identifier: MIT-0
   mpi_random.c FIRST LAST: trains the random network of each seed by the ranks of MPI
   (examples/common/shards.h), a few steps on shards that are smaller than the batch that it is made
   for, and prints a hash of weights, statistics, λ and losses. For test_mpi.sh: the lines are the
   same on any number of ranks and any instruction set. */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "lgelu.h"
#include "shards.h"

enum { NODES = 40, SHARDS = 8, MOST = 12, STEPS = 3 };
static lgelu_net net;
static lgelu_node nodes[NODES];
static uint64_t seed, drawn;
static size_t draw(size_t n) { return lgelu_random(seed, 3, drawn++) % n; }

static int build(int *in, int *labels, size_t *classes)
{
    const int picture = draw(3) != 0;
    const size_t layers = 1 + draw(4);
    char name[32];
    int a, before = -1;
    drawn = 1;
    lgelu_net_begin(&net, nodes, NODES);
    a = *in = picture ? lgelu_input(&net, "x", 4 + draw(6), 4 + draw(6), 1 + draw(4))
                      : lgelu_input(&net, "x", 1, 1, 1 + draw(40));
    for (size_t k = 0; k < layers; k++) {
        snprintf(name, sizeof name, "layer%d", (int)k);
        if (nodes[a].shape[0] * nodes[a].shape[1] == 1 || !draw(5)) {
            a = lgelu_linear(&net, name, a, 1 + draw(40));
        } else {
            const size_t window = 1 + 2 * draw(2);
            a = lgelu_conv(&net, name, a, 1 + draw(20), window, 1 + draw(2), window / 2, 1, 1);
        }
        snprintf(name, sizeof name, "norm%d", (int)k);
        if (!draw(3))
            a = lgelu_batch_norm(&net, name, a, 0.1f, 1e-5f);
        else if (!draw(3))
            a = lgelu_layer_norm(&net, name, a);
        snprintf(name, sizeof name, "gate%d", (int)k);
        a = draw(3) ? lgelu_gate(&net, name, a, LGELU_GATE_LAMBDA, 1.05f)
                    : lgelu_gate_channels(&net, name, a, 1.05f);
        snprintf(name, sizeof name, "add%d", (int)k);
        if (before >= 0 && !memcmp(nodes[a].shape, nodes[before].shape, sizeof nodes[a].shape))
            a = lgelu_add(&net, name, a, before);
        snprintf(name, sizeof name, "drop%d", (int)k);
        if (!draw(4))
            a = lgelu_dropout(&net, name, a, 0.3f);
        before = a;
    }
    if (nodes[a].shape[0] * nodes[a].shape[1] > 1)
        a = draw(2) ? lgelu_flatten(&net, "flat", a) : lgelu_global_pool(&net, "mean", a);
    *classes = 2 + draw(8);
    a = lgelu_linear(&net, "logits", a, *classes);
    *labels = lgelu_labels(&net, "y", 1, *classes);
    return lgelu_cross_entropy(&net, "loss", a, *labels);
}

static int train(shards *s, int in, int labels, size_t classes, size_t batch)
{
    const size_t *shape = nodes[in].shape, size = shape[0] * shape[1] * shape[2],
                 n = 2 + draw(batch - 1);
    lgelu_training plan = lgelu_training_to_relu(1e-2f, STEPS);
    float *x = (float *)malloc(batch * size * sizeof *x);
    int32_t y[MOST];
    if (!x)
        return -1;
    plan.sum = shards_sum;
    plan.user = s;
    plan.clip = 1;
    lgelu_net_bind(&net, in, x);
    lgelu_net_bind(&net, labels, y);
    for (uint64_t step = 0; step < STEPS; step++) {
        shards_step(s);
        for (int k = s->first; k < s->end; k++) {
            const uint64_t stream = 1000 + step * SHARDS + (uint64_t)k;
            for (size_t i = 0; i < n * size; i++)
                x[i] = lgelu_normal(seed, stream, i);
            for (size_t i = 0; i < n; i++)
                y[i] = (int32_t)(lgelu_random(seed, stream + 500, i) % classes);
            net.pass = (uint64_t)k;
            lgelu_net_forward(&net, n);
            lgelu_net_backward(&net, 1.0f / SHARDS);
            shards_push(s);
        }
        lgelu_net_step(&net, &plan);
    }
    free(x);
    return net.status != LGELU_OK;
}

int main(int argc, char **argv)
{
    const char *isa = getenv("LGELU_ISA");
    shards s;
    MPI_Init(&argc, &argv);
    for (int k = LGELU_ISA_SCALAR; isa && k < LGELU_ISA_COUNT; k++) {
        if (!strcmp(isa, lgelu_isa_name(k)))
            lgelu_isa_limit(k);
    }
    for (seed = (uint64_t)atoi(argv[1]); seed <= (uint64_t)atoi(argv[2]); seed++) {
        size_t classes, bytes, batch;
        uint64_t hash, mine;
        void *block;
        int in, labels, bad;
        drawn = 0;
        shards_begin(&s, "mpi_random");
        if (shards_divide(&s, SHARDS))
            return 2;
        batch = 3 + lgelu_random(seed, 7, 0) % (MOST - 2);
        build(&in, &labels, &classes);
        bytes = lgelu_net_bytes(&net, batch, LGELU_MODE_TRAIN);
        block = malloc(bytes + 1);
        bad = lgelu_net_make(&net, block, bytes, batch, LGELU_MODE_TRAIN, seed) != LGELU_OK;
        /* not every drawn shape is a network, but then on no rank */
        if (bad) {
            if (!s.rank)
                printf("%lu none\n", (unsigned long)seed);
            free(block);
            continue;
        }
        bad = shards_allocate(&s, &net) || train(&s, in, labels, classes, batch);
        if (shards_failed(&s, bad, "training", net.message))
            return 1;
        mine = deploy_hash(deploy_hash(1, net.w, net.parameter_count * sizeof *net.w), net.state,
                           net.state_count * sizeof *net.state);
        mine = deploy_hash(
            deploy_hash(mine, net.lambda, (size_t)net.lambda_count * sizeof *net.lambda), &s.loss,
            sizeof s.loss);
        if (shards_failed(&s, !shards_agree(&s, &hash), "weights", "not those of the other ranks"))
            return 1;
        if (!s.rank)
            printf("%lu %016llx\n", (unsigned long)seed, (unsigned long long)mine);
        free(s.stack);
        free(block);
    }
    return MPI_Finalize();
}
