/* SPDX-License-Identifier: MIT-0
   test_state checks the state after a call. A call that is refused changes nothing, so that its
   retry has the bits of a run that was never refused; loading a file restores what later numbers
   depend on; a large header takes little time. cc -O2 -I.. test_state.c tools/lgelu.c -lm */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/isa.h"
#include <limits.h>
#include <math.h>
#include <time.h>

enum { NODES = 24, BATCH = 6, FEATURES = 5, CLASSES = 3 };
typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    unsigned char *block;
    size_t bytes;
    float x[BATCH * FEATURES], given[BATCH * 4];
    int32_t label[BATCH];
} network;

static void place(network *n, size_t batch, lgelu_mode mode)
{
    n->bytes = lgelu_net_bytes(&n->net, batch, mode);
    n->block = (unsigned char *)calloc(n->bytes ? n->bytes : 1, 1);
    if (!n->block)
        abort();
    lgelu_net_make(&n->net, n->block, n->bytes, batch, mode, 21);
}

/* Builds a network with a batch norm and a dropout before the loss. */
static void build(network *n, lgelu_map map)
{
    int x, y;
    memset(n, 0, sizeof *n);
    lgelu_net_begin(&n->net, n->nodes, NODES);
    n->net.lambda_map.map = map;
    n->net.lambda_map.temperature = map == LGELU_MAP_SOFTPLUS ? 0.25f : 0.5f;
    n->net.lambda_map.lambda_max = map == LGELU_MAP_SIGMOID ? 9.0f : 0.0f;
    x = lgelu_input(&n->net, "x", 1, 1, FEATURES);
    x = lgelu_linear(&n->net, "fc1", x, 8);
    x = lgelu_batch_norm(&n->net, "norm", x, 0.1f, 1e-5f);
    x = lgelu_gate(&n->net, "gate", x, LGELU_GATE_LAMBDA, 2);
    x = lgelu_dropout(&n->net, "drop", x, 0.5f);
    x = lgelu_linear(&n->net, "fc2", x, CLASSES);
    y = lgelu_labels(&n->net, "y", 1, CLASSES);
    lgelu_cross_entropy(&n->net, "loss", x, y);
    place(n, BATCH, LGELU_MODE_TRAIN);
    for (size_t i = 0; i < BATCH * FEATURES; i++)
        n->x[i] = lgelu_normal(1, 2, i);
    for (size_t i = 0; i < BATCH; i++)
        n->label[i] = (int32_t)(i % CLASSES);
    lgelu_net_bind(&n->net, 0, n->x);
    lgelu_net_bind(&n->net, y, n->label);
}

static void end(network *n) { free(n->block); }

static void forgive(network *n)
{
    n->net.status = LGELU_OK;
    n->net.message[0] = 0;
}

static void train(network *n, int steps)
{
    const lgelu_training plan = lgelu_training_defaults(1e-2f, 100);
    for (int i = 0; i < steps; i++) {
        lgelu_net_forward(&n->net, BATCH);
        lgelu_net_backward(&n->net, 1);
        lgelu_net_step(&n->net, &plan);
    }
}

static int same_state(const network *a, const network *b)
{
    return !memcmp(a->net.w, b->net.w, a->net.parameter_count * sizeof(float))
           && !memcmp(a->net.g, b->net.g, a->net.parameter_count * sizeof(float))
           && !memcmp(a->net.state, b->net.state, a->net.state_count * sizeof(float))
           && !memcmp(a->net.s, b->net.s, (size_t)a->net.lambda_count * sizeof(float))
           && !memcmp(a->net.lambda, b->net.lambda, (size_t)a->net.lambda_count * sizeof(float))
           && !memcmp(&a->net.loss, &b->net.loss, sizeof a->net.loss) && a->net.pass == b->net.pass
           && a->net.step == b->net.step;
}

/* Two networks of the same calls, but that one is refused before each forward. */
static void refused_forwards(void)
{
    const lgelu_training plan = lgelu_training_defaults(1e-2f, 100);
    network a, b;
    int refused = 1;
    build(&a, LGELU_MAP_SOFTPLUS);
    build(&b, LGELU_MAP_SOFTPLUS);
    for (int step = 0; step < 4; step++) {
        b.label[BATCH - 1] = step % 2 ? -1 : CLASSES;
        refused &= lgelu_net_forward(&b.net, BATCH) == LGELU_E_LABEL;
        forgive(&b);
        b.label[BATCH - 1] = a.label[BATCH - 1];
        lgelu_net_bind(&b.net, 0, NULL);
        refused &= lgelu_net_forward(&b.net, BATCH) == LGELU_E_UNBOUND;
        forgive(&b);
        lgelu_net_bind(&b.net, 0, b.x);
        /* A batch norm over one value is refused. */
        refused &= lgelu_net_forward(&b.net, 1) == LGELU_E_ARGUMENT;
        forgive(&b);
        lgelu_net_forward(&a.net, BATCH);
        lgelu_net_forward(&b.net, BATCH);
        b.label[0] = 99;
        /* The forward before this one still waits for its backward. */
        refused &= lgelu_net_forward(&b.net, BATCH) == LGELU_E_LABEL;
        forgive(&b);
        refused &= lgelu_net_reestimate_norms(&b.net, BATCH, 1) == LGELU_E_LABEL;
        forgive(&b);
        b.label[0] = a.label[0];
        lgelu_net_backward(&a.net, 1);
        lgelu_net_backward(&b.net, 1);
        lgelu_net_step(&a.net, &plan);
        lgelu_net_step(&b.net, &plan);
    }
    lgelu_net_forward(&a.net, BATCH);
    lgelu_net_forward(&b.net, BATCH);
    check(refused, "a forward with a wrong label, no data or one value is refused", "one was not");
    check(!b.net.status && same_state(&a, &b),
          "a refused forward changes no statistic, no pass and no bit of what follows",
          "%s; passes %lu and %lu", b.net.message, (unsigned long)a.net.pass,
          (unsigned long)b.net.pass);
    end(&a);
    end(&b);
}

/* One value that is too large, infinite or NaN: in training and in an estimate, with the loss and
 * without it, before any forward and before the backward of another one. */
static void forwards_that_are_not_finite(void)
{
    static const float evil[] = { 3e38f, INFINITY, -INFINITY, NAN };
    network a, b;
    int refused = 1;
    build(&a, LGELU_MAP_SOFTPLUS);
    build(&b, LGELU_MAP_SOFTPLUS);
    for (size_t k = 0; k < sizeof evil / sizeof *evil; k++) {
        const float was = b.x[7];
        for (int way = 0; way < 4; way++) {
            const int labels = (int)b.net.count - 2;
            b.x[7] = evil[k];
            if (way & 1)
                lgelu_net_bind(&b.net, labels, NULL);
            refused &= (way & 2 ? lgelu_net_reestimate_norms(&b.net, BATCH, way)
                                : lgelu_net_forward(&b.net, BATCH))
                       == LGELU_E_NONFINITE;
            forgive(&b);
            refused &= lgelu_net_backward(&b.net, 1) == LGELU_E_ARGUMENT;
            forgive(&b);
            lgelu_net_bind(&b.net, labels, b.label);
        }
        b.x[7] = was;
        train(&a, 1);
        train(&b, 1);
    }
    check(refused, "a forward whose loss or statistics are not finite is refused", "one was not");
    check(!b.net.status && same_state(&a, &b),
          "a forward that is not finite changes no statistic, no pass and no bit of what follows",
          "%s; running means %g and %g", b.net.message, (double)a.net.state[0],
          (double)b.net.state[0]);
    /* Statistics that are beyond repair by a mean are forgotten by the first batch. */
    static const float lost[] = { NAN, INFINITY, -INFINITY, 1e20f, -3e38f };
    for (int k = 1; k <= 2; k++)
        lgelu_net_reestimate_norms(&a.net, BATCH, k);
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
        for (size_t j = 0; j < b.net.state_count; j++)
            b.net.state[j] = lost[i];
        for (int k = 1; k <= 2; k++)
            lgelu_net_reestimate_norms(&b.net, BATCH, k);
        check(!b.net.status && !memcmp(a.net.state, b.net.state, a.net.state_count * sizeof(float)),
              "an estimate from running statistics that are lost", "from %g: %s, mean %g, not %g",
              (double)lost[i], b.net.message, (double)b.net.state[0], (double)a.net.state[0]);
    }
    b.net.state[0] = NAN;
    check(lgelu_net_forward(&b.net, BATCH) == LGELU_E_NONFINITE && strstr(b.net.message, "'norm'")
              && strstr(b.net.message, "mean 0"),
          "training with a running mean of NaN is refused", "%s", b.net.message);
    end(&a);
    end(&b);
}

static float below_one(int hardness, float lambda0, long step, void *user)
{
    (void)hardness;
    (void)lambda0;
    (void)step;
    (void)user;
    return 0.5f;
}

/* A plan with one number that no plan has, and one that drives λ below 1. */
static void refused_plans(void)
{
    static const struct {
        const char *name;
        int sgd, drives;
        size_t field;
        float value;
    } wrong[] = {
        { "NaN as rate", 0, 0, offsetof(lgelu_training, adamw.lr), NAN },
        { "an infinite rate", 1, 0, offsetof(lgelu_training, adamw.lr), -INFINITY },
        { "beta1 1", 0, 0, offsetof(lgelu_training, adamw.beta1), 1 },
        { "beta1 below 0", 0, 0, offsetof(lgelu_training, adamw.beta1), -0.5f },
        { "an infinite momentum", 1, 0, offsetof(lgelu_training, adamw.beta1), INFINITY },
        { "beta2 1", 0, 0, offsetof(lgelu_training, adamw.beta2), 1 },
        { "NaN as beta2", 0, 0, offsetof(lgelu_training, adamw.beta2), NAN },
        { "eps 0", 0, 0, offsetof(lgelu_training, adamw.eps), 0 },
        { "an infinite eps", 0, 0, offsetof(lgelu_training, adamw.eps), INFINITY },
        { "NaN as decay", 1, 0, offsetof(lgelu_training, adamw.weight_decay), NAN },
        { "NaN as norm", 0, 0, offsetof(lgelu_training, clip), NAN },
        { "an infinite scale of λ's rate", 0, 0, offsetof(lgelu_training, lambda_lr_scale),
          INFINITY },
        { "NaN as target", 0, 0, offsetof(lgelu_training, hardening.target), NAN },
        { "a λ below 1", 0, 1, 0, 0 },
        { "a λ below 1 with SGD", 1, 1, 0, 0 },
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        const lgelu_training good = lgelu_training_defaults(1e-2f, 100);
        lgelu_training plan = good;
        network a, b;
        lgelu_status status;
        build(&a, LGELU_MAP_SOFTPLUS);
        build(&b, LGELU_MAP_SOFTPLUS);
        train(&a, 1);
        train(&b, 1);
        plan.sgd = wrong[k].sgd;
        plan.clip = 1e-3f;
        if (wrong[k].drives)
            plan.drive = below_one;
        else
            memcpy((unsigned char *)&plan + wrong[k].field, &wrong[k].value, sizeof(float));
        lgelu_net_forward(&a.net, BATCH);
        lgelu_net_forward(&b.net, BATCH);
        lgelu_net_backward(&a.net, 1);
        lgelu_net_backward(&b.net, 1);
        status = lgelu_net_step(&b.net, &plan);
        check(status == (wrong[k].drives ? LGELU_E_LAMBDA : LGELU_E_ARGUMENT) && b.net.message[0],
              "a plan is refused", "with %s: status %d", wrong[k].name, (int)status);
        forgive(&b);
        lgelu_net_step(&a.net, &good);
        lgelu_net_step(&b.net, &good);
        train(&a, 1);
        train(&b, 1);
        check(!b.net.status && same_state(&a, &b), "a refused step changes nothing",
              "by %s: it changed something", wrong[k].name);
        end(&a);
        end(&b);
    }
}

/* A gate's first λ is that of its kind where the kind learns none, whatever was passed, also if the
 * kind is changed before the network is made. */
static void first_lambdas(void)
{
    static const float passed[] = { NAN, 0, 5, INFINITY };
    for (size_t k = 0; k < sizeof passed / sizeof *passed; k++) {
        network n;
        int x;
        memset(&n, 0, sizeof n);
        lgelu_net_begin(&n.net, n.nodes, NODES);
        x = lgelu_input(&n.net, "x", 1, 1, FEATURES);
        x = lgelu_gate(&n.net, "relu", x, LGELU_GATE_RELU, passed[k]);
        lgelu_gate(&n.net, "gelu", x, LGELU_GATE_GELU, passed[k]);
        lgelu_net_set_gates(&n.net, LGELU_GATE_LAMBDA);
        place(&n, 1, LGELU_MODE_TRAIN);
        check(!n.net.status && n.net.lambda[0] > 3e38f && n.net.lambda[1] == 1,
              "the kind of gates is changed before the network is made", "%s: λ %g and %g",
              n.net.message, n.net.status ? 0 : (double)n.net.lambda[0],
              n.net.status ? 0 : (double)n.net.lambda[1]);
        end(&n);
    }
}

static void build_custom_loss(network *n)
{
    int x, t;
    memset(n, 0, sizeof *n);
    lgelu_net_begin(&n->net, n->nodes, NODES);
    x = lgelu_input(&n->net, "x", 1, 1, FEATURES);
    x = lgelu_linear(&n->net, "fc", x, 4);
    t = lgelu_input(&n->net, "gradient", 1, 1, 4);
    lgelu_custom_loss(&n->net, "loss", x, t);
    place(n, BATCH, LGELU_MODE_TRAIN);
    for (size_t i = 0; i < BATCH * FEATURES; i++)
        n->x[i] = lgelu_normal(1, 2, i);
    for (size_t i = 0; i < BATCH * 4; i++)
        n->given[i] = lgelu_normal(3, 4, i);
    lgelu_net_bind(&n->net, 0, n->x);
    lgelu_net_bind(&n->net, t, n->given);
}

/* If a gradient is not finite, the sum of the backwards before it is kept, and so is the forward.
 */
static void refused_backward(void)
{
    network a, b;
    lgelu_status status;
    build_custom_loss(&a);
    build_custom_loss(&b);
    for (int k = 0; k < 2; k++) {
        lgelu_net_forward(&a.net, BATCH);
        lgelu_net_forward(&b.net, BATCH);
        if (k == 0)
            lgelu_net_backward(&b.net, 0.5f);
        if (k == 0)
            lgelu_net_backward(&a.net, 0.5f);
    }
    b.given[7] = (float)INFINITY;
    status = lgelu_net_backward(&b.net, 0.5f);
    forgive(&b);
    b.given[7] = a.given[7];
    lgelu_net_backward(&a.net, 0.5f);
    lgelu_net_backward(&b.net, 0.5f);
    check(status == LGELU_E_NONFINITE && !b.net.status && same_state(&a, &b),
          "a refused backward keeps the sum of those before it, and its forward", "status %d, %s",
          (int)status, b.net.message);
    end(&a);
    end(&b);
}

/* λ of the second gate cannot be driven there: the first one's does not change either. */
static float drive(int hardness, float lambda0, long step, void *user)
{
    (void)user;
    (void)step;
    return hardness ? 0.5f : lambda0 + 3;
}

static void refused_harden(void)
{
    network n;
    lgelu_training plan = lgelu_training_defaults(1e-2f, 100);
    float before[2];
    lgelu_status status;
    int x;
    memset(&n, 0, sizeof n);
    lgelu_net_begin(&n.net, n.nodes, NODES);
    x = lgelu_input(&n.net, "x", 1, 1, FEATURES);
    x = lgelu_gate(&n.net, "first", x, LGELU_GATE_LAMBDA, 2);
    lgelu_gate(&n.net, "second", x, LGELU_GATE_LAMBDA, 2);
    place(&n, 1, LGELU_MODE_TRAIN);
    memcpy(before, n.net.lambda, sizeof before);
    plan.drive = drive;
    status = lgelu_net_harden(&n.net, &plan);
    check(status == LGELU_E_LAMBDA && !memcmp(before, n.net.lambda, sizeof before),
          "a refused harden changes no λ", "status %d, λ %g and %g", (int)status,
          (double)n.net.lambda[0], (double)n.net.lambda[1]);
    forgive(&n);
    /* After the last step that can be counted, the λ's are those of the end. */
    plan = lgelu_training_to_relu(1e-2f, 100);
    n.net.step = LONG_MAX - 1;
    status = lgelu_net_harden(&n.net, &plan);
    memcpy(before, n.net.lambda, sizeof before);
    n.net.lambda[0] = n.net.lambda[1] = 2;
    n.net.step = LONG_MAX;
    check(!status && before[0] > 2 && !lgelu_net_harden(&n.net, &plan)
              && !memcmp(before, n.net.lambda, sizeof before),
          "hardening after the last step that can be counted", "λ %g and %g", (double)before[0],
          (double)n.net.lambda[0]);
    end(&n);
}

/* Tokens beyond the vocabulary are refused, and the known tokens are kept. */
static void refused_generate(void)
{
    static int32_t token[8] = { 1, 2, 3, 0, 1, 2, 3, 0 };
    network n;
    lgelu_status status;
    int x;
    memset(&n, 0, sizeof n);
    lgelu_net_begin(&n.net, n.nodes, NODES);
    x = lgelu_tokens(&n.net, "tokens", 8, 4);
    x = lgelu_embedding(&n.net, "embedding", x, 6);
    x = lgelu_attention(&n.net, "attention", x, 1, 1);
    lgelu_linear(&n.net, "fc", x, 4);
    place(&n, 1, LGELU_MODE_GENERATE);
    lgelu_net_bind(&n.net, 0, token);
    lgelu_net_generate(&n.net, 0, 4);
    token[4] = 4;
    status = lgelu_net_generate(&n.net, 4, 1);
    forgive(&n);
    token[4] = 1;
    check(status == LGELU_E_LABEL && !lgelu_net_generate(&n.net, 4, 1),
          "a refused generate leaves the known tokens known", "%s", n.net.message);
    end(&n);
}

static void loading(void)
{
    const lgelu_training plan = lgelu_training_defaults(1e-2f, 100);
    memory_file file = { NULL, 0, 0 };
    network a, b;
    double loss;
    build(&a, LGELU_MAP_SOFTPLUS);
    train(&a, 3);
    lgelu_net_save(&a.net, NULL, 0, memory_append, &file);
    lgelu_net_forward(&a.net, BATCH);
    loss = a.net.loss;
    build(&b, LGELU_MAP_SOFTPLUS);
    train(&b, 1);
    lgelu_net_forward(&b.net, BATCH);
    lgelu_net_forward(&b.net, BATCH);
    lgelu_net_backward(&b.net, 1);
    lgelu_net_load(&b.net, file.data, file.size);
    lgelu_net_forward(&b.net, BATCH);
    check(!(b.net.loss < loss) && !(b.net.loss > loss),
          "after loading, dropout draws what the saved run drew",
          "a loss of %.17g, the saved run had %.17g", b.net.loss, loss);
    lgelu_net_load(&b.net, file.data, file.size);
    check(lgelu_net_step(&b.net, &plan) == LGELU_E_ARGUMENT,
          "loading drops gradients that wait for a step", "a step was taken with them");
    end(&b);
    for (int map = 0; map < 3; map++) {
        network c;
        memory_file other = { NULL, 0, 0 };
        build(&c, (lgelu_map)map);
        train(&c, 2);
        lgelu_net_save(&c.net, NULL, 0, memory_append, &other);
        build(&b, LGELU_MAP_DIRECT);
        b.net.lambda_map.temperature = 7;
        lgelu_net_load(&b.net, other.data, other.size);
        train(&b, 2);
        train(&c, 2);
        check(!b.net.status && same_state(&b, &c) && b.net.lambda_map.map == c.net.lambda_map.map,
              "loading restores the map of the λ's: training continues with the same bits",
              "map %d: λ %g and %g", map, (double)b.net.lambda[0], (double)c.net.lambda[0]);
        free(other.data);
        end(&b);
        end(&c);
    }
    free(file.data);
    end(&a);
}

/* A network with a learned λ, built for training or inference, on the data of `build`. */
static void build_to_relu(network *n, lgelu_mode mode)
{
    int x, y;
    memset(n, 0, sizeof *n);
    lgelu_net_begin(&n->net, n->nodes, NODES);
    x = lgelu_input(&n->net, "x", 1, 1, FEATURES);
    x = lgelu_linear(&n->net, "fc1", x, 8);
    x = lgelu_gate(&n->net, "gate", x, LGELU_GATE_LAMBDA, 2);
    x = lgelu_linear(&n->net, "fc2", x, CLASSES);
    y = lgelu_labels(&n->net, "y", 1, CLASSES);
    lgelu_cross_entropy(&n->net, "loss", x, y);
    place(n, BATCH, mode);
    for (size_t i = 0; i < BATCH * FEATURES; i++)
        n->x[i] = lgelu_normal(1, 2, i);
    for (size_t i = 0; i < BATCH; i++)
        n->label[i] = (int32_t)(i % CLASSES);
    lgelu_net_bind(&n->net, 0, n->x);
    lgelu_net_bind(&n->net, y, n->label);
}

/* README's loop: takes steps until the plan ends. Returns how many. */
static long follow(network *n, long steps)
{
    const lgelu_training plan = lgelu_training_to_relu(1e-2f, steps);
    long taken = 0;
    while (n->net.step < steps) {
        lgelu_net_forward(&n->net, BATCH);
        lgelu_net_backward(&n->net, 1);
        if (lgelu_net_step(&n->net, &plan))
            break;
        taken++;
    }
    return taken;
}

/* Fine-tuning: a plan of fewer steps than the training in the file had. */
static void restarting(void)
{
    memory_file file = { NULL, 0, 0 };
    network first, tuned, weights, control;
    long taken;
    build_to_relu(&first, LGELU_MODE_TRAIN);
    follow(&first, 40);
    lgelu_net_save(&first.net, NULL, 0, memory_append, &file);

    build_to_relu(&tuned, LGELU_MODE_TRAIN);
    lgelu_net_load(&tuned.net, file.data, file.size);
    taken = follow(&tuned, 12);
    check(taken == 0 && tuned.net.step == 40,
          "a loaded training is at its last step: a shorter plan takes none", "%ld steps", taken);
    lgelu_net_restart(&tuned.net);
    check(tuned.net.lambda[0] >= 159
              && !memcmp(tuned.net.w, first.net.w, first.net.parameter_count * sizeof(float)),
          "restart keeps weights and λ's", "λ %g", (double)tuned.net.lambda[0]);
    lgelu_net_set_lambda(&tuned.net, 0, 3);
    taken = follow(&tuned, 12);
    check(taken == 12 && tuned.net.step == 12 && tuned.net.lambda[0] > 159,
          "after restart the plan runs, and drives λ from its present value", "%ld steps, λ %g",
          taken, (double)tuned.net.lambda[0]);

    /* The control: the weights alone, by way of a network for inference, which has no moments. */
    build_to_relu(&weights, LGELU_MODE_INFER);
    lgelu_net_load(&weights.net, file.data, file.size);
    build_to_relu(&control, LGELU_MODE_TRAIN);
    lgelu_net_copy(&control.net, &weights.net);
    control.net.lambda0[0] = 0;
    lgelu_net_set_lambda(&control.net, 0, 3);
    follow(&control, 12);
    check(same_state(&tuned, &control), "restart has the bits of a new training of these weights",
          "λ %.9g and %.9g", (double)tuned.net.lambda[0], (double)control.net.lambda[0]);
    check(lgelu_net_restart(&weights.net) == LGELU_E_ARGUMENT,
          "a network for inference is not restarted", "%s", weights.net.message);
    end(&first);
    end(&tuned);
    end(&weights);
    end(&control);
    free(file.data);
}

static void small_things(void)
{
    lgelu_net net;
    lgelu_node node[1];
    lgelu_training plan = lgelu_training_defaults(1e-2f, 10);
    float history[4] = { 1, 2, 3, 4 };
    network n;
    lgelu_net_begin(&net, node, -5);
    lgelu_input(&net, "x", 1, 1, 3);
    check(net.status == LGELU_E_MEMORY && strstr(net.message, "at most 0 nodes"),
          "a capacity below 0 is one of 0", "%s", net.message);
    build_custom_loss(&n);
    plan.history = history;
    plan.history_every = 1;
    lgelu_net_forward(&n.net, BATCH);
    lgelu_net_backward(&n.net, 1);
    check(!lgelu_net_step(&n.net, &plan) && history[0] < 2 && history[3] > 3,
          "a history without gates", "%s", n.net.message);
    end(&n);
    lgelu_net_begin(&net, node, 1);
    memset(&n, 0, sizeof n);
    lgelu_net_begin(&n.net, n.nodes, NODES);
    n.net.lambda_map.map = LGELU_MAP_SIGMOID;
    n.net.lambda_map.lambda_max = 3;
    lgelu_gate(&n.net, "gate", lgelu_input(&n.net, "x", 1, 1, 3), LGELU_GATE_LAMBDA, 8);
    place(&n, 1, LGELU_MODE_TRAIN);
    check(n.net.status == LGELU_E_LAMBDA && !n.net.w && !n.net.g && !n.net.lambda && !n.net.memory,
          "a refused make keeps no pointer into the block", "status %d", (int)n.net.status);
    end(&n);
}

/* A header of `tensors` empty tensors of names in a random order, perhaps with a name or a place
   that is wrong. */
typedef enum { SOUND, ONE_NAME_TWICE, BACKWARDS, OVERLAP, HOLE, INSIDE } flaw;

static unsigned char *header(size_t tensors, flaw what, size_t *bytes)
{
    unsigned char *file = (unsigned char *)malloc(96 * tensors + 4096);
    size_t at = 8;
    if (!file)
        abort();
    file[at++] = '{';
    for (size_t i = 0; i < tensors; i++) {
        size_t name = (i * 7919 + 13) % tensors, from = 0, to = 0;
        if (what == ONE_NAME_TWICE && i == tensors - 2)
            name = (5 * 7919 + 13) % tensors;
        if (what >= BACKWARDS) {
            from = tensors - 1 - i;
            to = from + 1;
        }
        if (what == OVERLAP && i == tensors / 2) {
            to = from + 2;
            from = from + 1;
        }
        if (what == HOLE && i == tensors / 2)
            to = from;
        if (what == INSIDE && i == 1)
            to = from;
        if (what == INSIDE && i == 2)
            to = from + 2;
        if (what == INSIDE && i == 3)
            from = to = from + 2;
        at += (size_t)sprintf(
            (char *)file + at,
            "%s\"t%zu\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[%zu,%zu]}",
            i ? "," : "", name, to - from, from, to);
    }
    file[at++] = '}';
    for (int k = 0; k < 8; k++)
        file[k] = (unsigned char)((at - 8) >> 8 * k);
    if (what >= BACKWARDS) {
        file = (unsigned char *)realloc(file, at + tensors);
        if (!file)
            abort();
        memset(file + at, 0, tensors);
        at += tensors;
    }
    *bytes = at;
    return file;
}

/* Returns how many files are accepted whose last tensor ends before the data does. The end of that
   tensor is the only place that is wrong; it is a different one in each file. */
static size_t accepted_ends(network *n, size_t first, size_t last)
{
    unsigned char *file = (unsigned char *)calloc(last + 256, 1);
    size_t accepted = 0;
    if (!file)
        abort();
    for (size_t d = first; d <= last; d++) {
        const int length =
            sprintf((char *)file + 8,
                    "{\"b\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[%zu,%zu]},"
                    "\"a\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}",
                    d, d + 5, d, d);
        for (int k = 0; k < 8; k++)
            file[k] = (unsigned char)(k < 4 ? length >> 8 * k : 0);
        accepted += !lgelu_net_load(&n->net, file, 8 + (size_t)length + d + 6);
        forgive(n);
    }
    free(file);
    return accepted;
}

/* JSON may have blanks between all its tokens. */
static void blanks(network *n)
{
    static const char text[] =
        "{\n\r\t \"a\"\n:\r{\t\"dtype\" : \"U8\"\n,\r\"shape\"\t:\r\n[\n1\r]\t,"
        "\n\"data_offsets\":\r[\n0\t,\r1\n]\r}\n}";
    unsigned char file[8 + sizeof text] = { sizeof text - 1 };
    memcpy(file + 8, text, sizeof text - 1);
    check(!lgelu_net_load(&n->net, file, sizeof file), "a header with blanks between all tokens",
          "%s", n->net.message);
    forgive(n);
}

static void headers(void)
{
    static const char *const name[] = { "sound",
                                        "a name that occurs twice",
                                        "places in falling order",
                                        "two tensors of one place",
                                        "a hole",
                                        "an empty tensor inside another" };
    network n;
    size_t bytes;
    double seconds;
    clock_t start;
    unsigned char *file;
    memset(&n, 0, sizeof n);
    lgelu_net_begin(&n.net, n.nodes, NODES);
    lgelu_flatten(&n.net, "flat", lgelu_input(&n.net, "x", 1, 1, 3));
    place(&n, 1, LGELU_MODE_INFER);
    for (size_t tensors = 60; tensors <= 60000; tensors *= 1000) {
        for (int what = 0; what <= INSIDE; what++) {
            const int good = what == SOUND || what == BACKWARDS;
            char text[96];
            lgelu_status got;
            file = header(tensors, (flaw)what, &bytes);
            got = lgelu_net_load(&n.net, file, bytes);
            snprintf(text, sizeof text, "a header of %zu tensors: %s", tensors, name[what]);
            check(got == (good ? LGELU_OK : LGELU_E_FILE), text, "status %d, %s", (int)got,
                  n.net.message);
            free(file);
        }
    }
    for (size_t tensors = 5000; tensors <= 40000; tensors += 5000) {
        char text[96];
        file = header(tensors, SOUND, &bytes);
        snprintf(text, sizeof text, "a header of %zu tensors", tensors);
        check(!lgelu_net_load(&n.net, file, bytes), text, "%s", n.net.message);
        forgive(&n);
        free(file);
    }
    blanks(&n);
    {
        const size_t accepted = accepted_ends(&n, 1, 100);
        check(!accepted, "100 headers whose tensors end before the data does", "%zu accepted",
              accepted);
    }
    file = header(100000, SOUND, &bytes);
    start = clock();
    lgelu_net_load(&n.net, file, bytes);
    seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    printf("# a header of 100000 empty tensors, %.1f MB: %.3f s\n", (double)bytes / 1e6, seconds);
    check(seconds < 1, "a header of 100000 tensors takes less than a second of processor time",
          "%.2f s", seconds);
    free(file);
    end(&n);
}

int main(void)
{
    isa_from_environment();
    refused_forwards();
    forwards_that_are_not_finite();
    refused_backward();
    refused_plans();
    first_lambdas();
    refused_harden();
    refused_generate();
    loading();
    restarting();
    small_things();
    headers();
    return check_end();
}
