/* SPDX-License-Identifier: MIT-0

   environments.h: three tasks of control with a few actions each, as their papers and Gymnasium's
   documentation have them:

       double state[ENV_STATE], reward;
       env->start(state, seed, stream);
       do {
           env->look(state, x);
           ended = env->step(state, action, &reward);
       } while (!ended && ++steps < env->limit);

   Everything is computed in double, with the same bits on every machine.

   CartPole-v1: A. G. Barto, R. S. Sutton, C. W. Anderson: Neuronlike adaptive elements that can
   solve difficult learning control problems, IEEE Trans. SMC 13(5), 1983: the equations of motion,
   here without friction. As in Gymnasium: a cart of 1, a pole of 0.1 whose half length is 0.5,
   forces of ±10, Euler steps of 0.02, ends at ±2.4 and ±12 degrees, 1 a step, at most 500.

   Acrobot-v1: R. S. Sutton: Generalization in reinforcement learning: successful examples using
   sparse coarse coding, NIPS 8, 1996: masses, lengths and inertias 1, centres of mass 0.5, torques
   of -1, 0, 1 at the elbow, speeds within ±4π and ±9π, g = 9.8. As in Gymnasium: one Runge-Kutta
   step of 0.2, -1 a step until the tip is 1 above the pivot, at most 500.

   Pendulum-v1: Gymnasium: a rod of mass 1 and length 1, g = 10, Euler steps of 0.05, speed within
   ±8, reward -(θ² + 0.1 θ'² + 0.001 u²) with θ = 0 upright, 200 steps. Its torque is a number in
   [-2, 2]; here it is one of -2, 0, 2. */
#ifndef ENVIRONMENTS_H
#define ENVIRONMENTS_H
#include <stdint.h>

enum { ENV_STATE = 4, ENV_NUMBERS = 6, ENV_ACTIONS = 3 };
typedef struct {
    const char *name, *title;
    int numbers, actions; /* that are seen; to choose from */
    long limit;           /* steps of an episode: where it is cut off it has not ended */
    double aim; /* the return at which it counts as solved; NaN: no such number is published */
    /* what a learner does with them: it sees numbers times scale, and learns reward times
       reward_scale at this discount */
    float scale[ENV_NUMBERS];
    double reward_scale, discount;
    void (*start)(double *state, uint64_t seed, uint64_t stream);
    int (*step)(double *state, int action, double *reward); /* 1: the episode has ended */
    void (*look)(const double *state, float *x);
} environment;

extern const environment environment_table[];
extern const int environment_count;
#endif
