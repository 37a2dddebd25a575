/* SPDX-License-Identifier: MIT-0

   test_control checks the parts of the experiment `control`. It compares its elementary functions
   with libm, the tasks with trajectories that control_reference.py makes from the published
   equations, advantages with their definition as a sum, and the policy's gradient with central
   differences of its loss. PPO as a whole must learn to balance the pole, with the same bits on
   every instruction set.

       make -C tests test_control */
#define LGELU_TRAINER
#include "elementary.c"
#include "environments.c"
#include "instruments.c"
#include "ppo.c"
#include "tools/check.h"
#include "tools/control_reference.h"
#include "tools/isa.h"

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))
static double noise(uint64_t stream, uint64_t i) { return (double)lgelu_normal(31, stream, i); }
/* Returns the larger value, or NaN if either is NaN. */
static double larger(double a, double b) { return b > a || b != b ? b : a; }

static void elementary(void)
{
    double sines = 0, exps = 0, logs = 0, a, b;
    for (int i = 0; i < 20000; i++) {
        const double x = 40 * noise(1, (uint64_t)i), y = same_exp(x / 2);
        same_sincos(x, &a, &b);
        sines = larger(larger(sines, fabs(a - sin(x))), fabs(b - cos(x)));
        exps = larger(exps, fabs(y / exp(x / 2) - 1));
        logs = larger(logs, fabs(same_log(y) - log(y)) / larger(1, fabs(log(y))));
    }
    check(sines < 5e-16, "sine and cosine", "%g off", sines);
    check(exps < 5e-16, "exp", "%g off", exps);
    check(logs < 5e-16, "log", "%g off", logs);
    same_sincos(0, &a, &b);
    check(!(a > 0 || a < 0 || b < 1 || b > 1), "sine and cosine of 0", "%g, %g", a, b);
    check(!(same_exp(0) > 1 || same_exp(0) < 1 || same_exp(-1e9) > 0 || same_exp(1e9) < HUGE_VAL
            || fabs(same_log(1)) > 0),
          "exp and log: ends", "%g", same_exp(0));
}

/* Plants an error that the test must detect: a task whose gravity is wrong by a thousandth. */
static int heavier(double *s, int action, double *reward)
{
    const double before = s[1];
    const int ended = rod_step(s, action, reward);
    s[0] -= 0.05 * s[1];
    s[1] += 0.001 * (s[1] - before);
    s[0] += 0.05 * s[1];
    return ended;
}

static double follow(int (*instead)(double *, int, double *), int which, int *wrong)
{
    double off = 0;
    for (int i = 0; i < COUNT(control_reference); i++) {
        const environment *env = environment_table + control_reference[i].task;
        const control_state *at = control_reference[i].at;
        double s[ENV_STATE], sum = 0, reward;
        int ended = 0;
        if (control_reference[i].task != which)
            continue;
        memcpy(s, at->state, sizeof s);
        for (int t = 1; control_reference[i].actions[t - 1]; t++) {
            ended = (instead ? instead : env->step)(s, control_reference[i].actions[t - 1] - '0',
                                                    &reward);
            sum += reward;
            if (t != at[1].steps) {
                *wrong += ended;
                continue;
            }
            at++;
            for (int k = 0; k < ENV_STATE; k++)
                off = larger(off, fabs(s[k] - at->state[k]) / larger(1, fabs(at->state[k])));
            off = larger(off, fabs(sum - at->sum) / larger(1, fabs(at->sum)));
            *wrong += ended != at->ended;
        }
    }
    return off;
}

static void trajectories(void)
{
    for (int which = 0; which < environment_count; which++) {
        int wrong = 0;
        const double off = follow(NULL, which, &wrong);
        char name[96];
        snprintf(name, sizeof name, "%s: trajectories of the published equations",
                 environment_table[which].title);
        check(off < 1e-8 && !wrong, name, "%g off, %d ends that differ", off, wrong);
    }
    {
        int wrong = 0;
        const double off = follow(heavier, 2, &wrong);
        check(off > 1e-5, "control: another gravity is noticed", "%g off", off);
    }
    if (system("python3 -c pass > /dev/null 2>&1")) {
        check_skip("trajectories as control_reference.py makes them", "no python3");
    } else {
        check(!system("python3 tools/control_reference.py --check tools/control_reference.h"),
              "trajectories as control_reference.py makes them", "they differ");
        check(
            !system(
                "sed 's/0.05, -0.08/0.05, -0.09/' tools/control_reference.h > build/control_reference.wrong")
                && system(
                    "python3 tools/control_reference.py --check build/control_reference.wrong 2> /dev/null"),
            "control: a changed number is noticed", "it is not");
    }
}

static void starts(void)
{
    for (int which = 0; which < environment_count; which++) {
        const environment *env = environment_table + which;
        double low[2] = { 9, 9 }, high[2] = { -9, -9 }, s[ENV_STATE];
        float x[ENV_NUMBERS] = { 0 };
        char name[96];
        int finite = 1;
        for (uint64_t i = 0; i < 4000; i++) {
            env->start(s, 5, i);
            for (int k = 0; k < 2; k++) {
                low[k] = fmin(low[k], s[k]);
                high[k] = fmax(high[k], s[k]);
            }
            env->look(s, x);
            for (int k = 0; k < env->numbers; k++)
                finite &= fabs((double)x[k]) < 4;
        }
        const double most = which == 0 ? 0.05 : which == 1 ? 0.1 : 3.141592653589793;
        snprintf(name, sizeof name, "%s: where episodes begin", env->title);
        check(finite && high[0] <= most && high[0] > 0.99 * most && low[0] >= -most
                  && low[0] < -0.99 * most && high[1] > 0.9 * (which == 2 ? 1 : most),
              name, "%g to %g", low[0], high[0]);
    }
    double s[ENV_STATE] = { 0.5, -1.25, 2, -3 };
    float x[ENV_NUMBERS], y[ENV_NUMBERS];
    links_look(s, x);
    rod_look(s, y);
    check(fabs((double)x[0] - cos(0.5)) < 1e-7 && fabs((double)x[1] - sin(0.5)) < 1e-7
              && fabs((double)x[2] - cos(-1.25)) < 1e-7 && fabs((double)x[3] - sin(-1.25)) < 1e-7
              && fabs((double)x[4] - 2) < 1e-7 && fabs((double)x[5] + 3) < 1e-7
              && fabs((double)y[0] - cos(0.5)) < 1e-7 && fabs((double)y[2] + 1.25) < 1e-7,
          "what is seen of a state", "something else");
}

/* Compares advantages with A_t = Σ over l of (discount·gae)^l·δ_{t+l}, up to the end of the
 * episode. */
static void advantages(void)
{
    enum { STEPS = 40, ACTORS = 3 };
    float reward[STEPS * ACTORS], value[STEPS * ACTORS], last[ACTORS], a[STEPS * ACTORS],
        target[STEPS * ACTORS];
    unsigned char ended[STEPS * ACTORS];
    const double discount = 0.97, gae = 0.9;
    double off = 0, off_targets = 0;
    for (int i = 0; i < STEPS * ACTORS; i++) {
        reward[i] = (float)noise(2, (uint64_t)i);
        value[i] = (float)noise(3, (uint64_t)i);
        ended[i] = lgelu_random(31, 4, (uint64_t)i) % 7 == 0;
    }
    /* One episode ends with the horizon, another continues. */
    ended[(STEPS - 1) * ACTORS] = 1;
    ended[(STEPS - 1) * ACTORS + 1] = 0;
    for (int e = 0; e < ACTORS; e++)
        last[e] = (float)noise(5, (uint64_t)e);
    ppo_advantages(a, target, reward, value, ended, last, discount, gae, STEPS, ACTORS);
    for (int e = 0; e < ACTORS; e++) {
        for (int t = 0; t < STEPS; t++) {
            double sum = 0, weight = 1;
            for (int l = t; l < STEPS; l++) {
                const int i = l * ACTORS + e;
                const double next = ended[i]        ? 0
                                    : l + 1 < STEPS ? (double)value[i + ACTORS]
                                                    : (double)last[e];
                sum += weight * ((double)reward[i] + discount * next - (double)value[i]);
                weight *= discount * gae;
                if (ended[i])
                    break;
            }
            off = larger(off, fabs(sum - (double)a[t * ACTORS + e]));
            off_targets = larger(off_targets, fabs(sum + (double)value[t * ACTORS + e]
                                                   - (double)target[t * ACTORS + e]));
        }
    }
    check(off < 1e-6 && off_targets < 1e-6, "advantages and targets are the sums that define them",
          "%g, %g off", off, off_targets);
    ppo_normalise(a, STEPS * ACTORS);
    double mean = 0, squares = 0;
    for (int i = 0; i < STEPS * ACTORS; i++) {
        mean += (double)a[i] / (STEPS * ACTORS);
        squares += (double)a[i] * (double)a[i] / (STEPS * ACTORS);
    }
    check(fabs(mean) < 1e-6 && fabs(squares - 1) < 1e-6, "normalised: mean 0, deviation 1",
          "%g, %g", mean, squares);
}

/* Computes, in double, the loss as it is written in the paper, of which central differences are
 * taken. */
static double loss_of(const double *z, const int *action, const double *then,
                      const float *advantage, double clip, double weight, int k, int n)
{
    double loss = 0;
    for (int i = 0; i < n; i++) {
        double sum = 0, entropy = 0, ratio, within;
        for (int j = 0; j < k; j++)
            sum += exp(z[i * k + j]);
        for (int j = 0; j < k; j++)
            entropy -= exp(z[i * k + j]) / sum * (z[i * k + j] - log(sum));
        ratio = exp(z[i * k + action[i]] - log(sum) - then[i]);
        within = fmin(fmax(ratio, 1 - clip), 1 + clip);
        loss -=
            (fmin(ratio * (double)advantage[i], within * (double)advantage[i]) + weight * entropy)
            / n;
    }
    return loss;
}

static void gradient(void)
{
    enum { N = 60 };
    for (int k = 2; k <= ENV_ACTIONS; k++) {
        float logits[N * ENV_ACTIONS], d[N * ENV_ACTIONS], advantage[N];
        double z[N * ENV_ACTIONS], then[N], seen[3] = { 0, 0, 0 }, off = 0, most = 0, loss,
                                            beyond = 0, kl = 0;
        int action[N];
        char name[96];
        for (int i = 0; i < N * k; i++)
            z[i] = (double)(logits[i] = (float)noise(6, (uint64_t)i));
        for (int i = 0; i < N; i++) {
            double log_p[ENV_ACTIONS], ratio;
            same_log_softmax(log_p, logits + i * k, (size_t)k);
            action[i] = (int)(lgelu_random(31, 7, (uint64_t)i) % (uint32_t)k);
            advantage[i] = (float)noise(8, (uint64_t)i);
            /* The ratios are beyond either bound and between them, with either sign, but never so
             * near to a bound that a difference crosses it. */
            ratio = i % 4 == 0 ? 0.6 : i % 4 == 1 ? 1.5 : i % 4 == 2 ? 0.95 : 1.1;
            then[i] = log_p[action[i]] - log(ratio);
            beyond += i % 4 < 2;
            kl += ratio - 1 - log(ratio);
        }
        loss = ppo_policy_loss(d, seen, logits, action, then, advantage, 0.2, 0.01, k, N);
        check(fabs(loss - loss_of(z, action, then, advantage, 0.2, 0.01, k, N)) < 1e-12, "the loss",
              "%g", loss);
        check(!(seen[0] > beyond || seen[0] < beyond) && fabs(seen[1] - kl) < 1e-9,
              "clipped share and KL", "%g %g", seen[0], seen[1]);
        for (int i = 0; i < N * k; i++) {
            const double was = z[i], h = 1e-6;
            double up, down;
            z[i] = was + h;
            up = loss_of(z, action, then, advantage, 0.2, 0.01, k, N);
            z[i] = was - h;
            down = loss_of(z, action, then, advantage, 0.2, 0.01, k, N);
            z[i] = was;
            off = larger(off, fabs((up - down) / (2 * h) - (double)d[i]));
            most = larger(most, fabs((double)d[i]));
        }
        snprintf(name, sizeof name, "%d actions: gradient against central differences", k);
        check(off < 1e-8 && most > 1e-3, name, "%g off of %g", off, most);
    }
}

/* ---- A run ---- */
typedef struct {
    ppo_look at[101];
    long n, updates, stop;
} seen_run;

static int look(void *user, const ppo_look *s)
{
    seen_run *r = (seen_run *)user;
    r->at[r->n++] = *s;
    return 0;
}

static int halt(void *user)
{
    seen_run *r = (seen_run *)user;
    return r->stop && ++r->updates > r->stop;
}

static int train(seen_run *r, const environment *env, const ppo_plan *p, char *message)
{
    static float probe[PPO_PROBE * ENV_NUMBERS];
    r->n = r->updates = 0;
    ppo_probe(probe, env);
    return ppo_train(p, env, probe, look, halt, r, message, 200);
}

/* Hashes all values of all measurements of a run. They depend on everything that was computed
 * before them. */
static uint32_t hash(const seen_run *r)
{
    uint32_t h = 2166136261u;
    for (long i = 0; i < r->n; i++) {
        const ppo_look *p = r->at + i;
        const double x[10] = { p->early,    p->late, p->oui[0],     p->oui[1],  p->flips[0],
                               p->flips[1], p->kl,   p->clip_share, p->entropy, p->value_loss };
        for (int k = 0; k < 10; k++) {
            uint64_t bits_of;
            memcpy(&bits_of, x + k, 8);
            for (int b = 0; b < 64; b += 8)
                h = (h ^ (uint32_t)(bits_of >> b & 255)) * 16777619u;
        }
        h = (h ^ (uint32_t)p->steps ^ (uint32_t)p->episodes << 16) * 16777619u;
    }
    return h;
}

static void runs(void)
{
    static seen_run a, b;
    static float probe[PPO_PROBE * ENV_NUMBERS];
    static const double random_return[3] = { 22, -499, -1230 }, slack[3] = { 4, 3, 60 };
    static const uint32_t recorded[3] = { 0x1D020056u, 0x67F7D36Eu, 0xEB65C065u };
    char message[200], name[96];
    for (int which = 0; which < environment_count; which++) {
        const double r = ppo_probe(probe, environment_table + which);
        snprintf(name, sizeof name, "%s: what a random policy returns",
                 environment_table[which].title);
        check(fabs(r - random_return[which]) < slack[which], name, "%g", r);
    }
    for (int which = 0; which < environment_count; which++) {
        ppo_plan p = ppo_defaults(3e-3f, 8192, 3);
        int bad;
        p.looks = 4;
        bad = train(&a, environment_table + which, &p, message);
        bad |= train(&b, environment_table + which, &p, message);
        snprintf(name, sizeof name, "%s: the same run again", environment_table[which].title);
        check(!bad && a.n == 5 && a.at[4].steps == 8192 && hash(&a) == hash(&b), name,
              "%ld looks, %s", a.n, message);
        snprintf(name, sizeof name, "%s: a run of 8,192 steps, the same bits everywhere",
                 environment_table[which].title);
        check(hash(&a) == recorded[which], name, "0x%08Xu", (unsigned)hash(&a));
        const int isa = lgelu_isa();
        lgelu_isa_limit(LGELU_ISA_SCALAR);
        bad = train(&b, environment_table + which, &p, message);
        lgelu_isa_limit(isa);
        snprintf(name, sizeof name, "%s: the same run without vectors",
                 environment_table[which].title);
        check(!bad && hash(&a) == hash(&b), name, "other numbers, %s", message);
        p.seed = 4;
        bad = train(&b, environment_table + which, &p, message);
        check(!bad && hash(&a) != hash(&b), "control: another seed is another run", "%s", message);
    }
    {
        ppo_plan p = ppo_defaults(1e-3f, 200000, 1);
        double least = HUGE_VAL;
        for (p.seed = 1; p.seed <= 3; p.seed++)
            least = train(&a, environment_table, &p, message) ? -1 : fmin(least, a.at[20].late);
        check(least >= 475, "CartPole: 475 over 100 episodes on each of three seeds", "%g %s",
              least, message);
        p.seed = 1;
        p.training.adamw.lr = 1e-5f;
        train(&b, environment_table, &p, message);
        check(b.at[20].late < 100, "control: not at a rate of 1e-5", "%g", b.at[20].late);
        p.gate = LGELU_GATE_LAMBDA;
        p.lambda = 1.693147f;
        p.steps = 4096;
        p.looks = 4;
        p.training.adamw.lr = 1e-3f;
        check(!train(&a, environment_table, &p, message) && a.n == 5 && a.at[4].kl > 0, "learned λ",
              "%s", message);
        p.training.adamw.lr = 1e30f;
        check(train(&a, environment_table, &p, message) == 1 && strstr(message, "update "),
              "a run that diverges says so", "%s", message);
        p.training.adamw.lr = 1e-3f;
        a.stop = 2;
        check(train(&a, environment_table, &p, message) == -1 && a.n == 3, "a run that is stopped",
              "%ld looks", a.n);
    }
}

int main(void)
{
    isa_from_environment();
    elementary();
    trajectories();
    starts();
    advantages();
    gradient();
    runs();
    return check_end();
}
