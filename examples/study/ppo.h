/* SPDX-License-Identifier: MIT-0

   ppo.h: proximal policy optimisation with an actor and a critic of their own, on environments side
   by side.

   Sources  J. Schulman, F. Wolski, P. Dhariwal, A. Radford, O. Klimov: Proximal policy optimization
   algorithms, arXiv 1707.06347 J. Schulman, P. Moritz, S. Levine, M. Jordan, P. Abbeel: generalized
   advantage estimation, arXiv 1506.02438 F. Pardo, A. Tavakoli, V. Levdik, P. Kormushev: Time
   limits in reinforcement learning, arXiv 1712.00378: where an episode is cut off by its limit,
   what would have come after is worth what the critic says. */
#ifndef PPO_H
#define PPO_H
#define LGELU_TRAINER
#include "../../lgelu.h"
#include "environments.h"

enum { PPO_HIDDEN = 4, PPO_PROBE = 256, PPO_ACTORS = 64 };
typedef struct {
    size_t hidden[PPO_HIDDEN];
    int layers; /* of both networks, at most PPO_HIDDEN */
    lgelu_gate_kind gate;
    float lambda;
    lgelu_lambda_map hardness;
    lgelu_training training;   /* its steps are ppo_train's to set */
    size_t actors;             /* environments side by side, at most PPO_ACTORS */
    size_t horizon;            /* steps of each between two updates */
    size_t batch;              /* samples of a training step */
    int passes;                /* over the samples of an update */
    double gae, clip, entropy; /* λ of the advantages, bound of the ratio, weight of the bonus */
    long steps, looks; /* of all environments together; how often in a run `look` is called */
    uint64_t seed;
} ppo_plan;

ppo_plan ppo_defaults(float lr, long steps, uint64_t seed);
long ppo_updates(const ppo_plan *plan); /* steps, rounded up to whole updates */

/* What is known at a look. The last four are means since the look before. */
typedef struct {
    long look, steps, episodes;
    /* Mean return of the last 20 and 100 episodes that ended; of all episodes so far if none has.
     */
    double early, late;
    /* Of actor and critic, means over the hidden layers: batch OUI of the values before the gates
       on the probe, and the fraction of their signs that changed. */
    double oui[2], flips[2];
    double clip_share, kl, entropy, value_loss;
} ppo_look;

/* Trains. Returns 0; 1 if some number was not finite; -1 if look or halt returned other than 0, or
   with a message if there is no memory or the plan has too many actors. probe has the shape
   (PPO_PROBE, env->numbers). look is called at the start (look 0), then `looks` times, halt before
   each update. */
int ppo_train(const ppo_plan *plan, const environment *env, const float *probe,
              int (*look)(void *user, const ppo_look *seen), int (*halt)(void *user), void *user,
              char *message, size_t room);

/* Stores PPO_PROBE states that a policy without preference sees, in episodes of its own, and
   returns its mean return. */
double ppo_probe(float *probe, const environment *env);

/* ---- its parts ---- */
/* Computes advantages and targets, from the last step on: A = δ + discount·gae·(1 - ended)·A', δ =
   reward + discount·(1 - ended)·value' - value; arrays (steps, actors), last: the values after the
   last step. target = A + value */
void ppo_advantages(float *advantage, float *target, const float *reward, const float *value,
                    const unsigned char *ended, const float *last, double discount, double gae,
                    size_t steps, size_t actors);
/* Brings n numbers to mean 0 and deviation 1. */
void ppo_normalise(float *advantage, size_t n);
/* L = -mean of min(ratio·A, within(ratio, 1 ± clip)·A) - weight·mean of the entropy, ratio =
   p(action)/p_then(action), and its gradient; seen: the sums of [ratio beyond 1 ± clip], of ratio -
   1 - log ratio and of the entropy are added to. NULL: no gradient, no sums */
double ppo_policy_loss(float *dlogits, double seen[3], const float *logits, const int *action,
                       const double *log_p_then, const float *advantage, double clip,
                       double entropy, int actions, size_t n);
#endif
