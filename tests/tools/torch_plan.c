/* SPDX-License-Identifier: MIT-0
   torch_plan: prints the trainer's learning rates and λ's under both plans, for two gates whose
   weights and λ's are not trained (rate 0). Each line has the plan, the number of steps, the next
   step, its rate as a fraction of the peak, and the λ's in hex. test_torch_module.sh compares them.
 */
#define LGELU_TRAINER
#include "../../lgelu.h"
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    static const long lengths[] = { 1, 2, 3, 4, 7, 40, 101 };
    for (int paper = 0; paper < 2; paper++) {
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            const float data[4] = { 1, -1, 0.5f, 2 };
            lgelu_node nodes[8];
            lgelu_net net;
            lgelu_net_begin(&net, nodes, 8);
            const int x = lgelu_input(&net, "x", 1, 1, 4),
                      target = lgelu_input(&net, "target", 1, 1, 4);
            const int a =
                lgelu_gate(&net, "a", lgelu_linear(&net, "fc", x, 4), LGELU_GATE_LAMBDA, 1.05f);
            lgelu_mean_squared_error(&net, "loss",
                                     lgelu_gate(&net, "b", a, LGELU_GATE_LAMBDA, 2.5f), target);
            const size_t bytes = lgelu_net_bytes(&net, 1, LGELU_MODE_TRAIN);
            void *memory = malloc(bytes ? bytes : 1);
            lgelu_net_make(&net, memory, bytes, 1, LGELU_MODE_TRAIN, 1);
            const lgelu_training peak =
                paper ? lgelu_training_paper(1, lengths[k]) : lgelu_training_to_relu(1, lengths[k]);
            lgelu_training plan = peak;
            plan.adamw.lr = 0;
            lgelu_net_bind(&net, x, data);
            lgelu_net_bind(&net, target, data);
            lgelu_net_harden(&net, &plan);
            while (net.step < lengths[k]) {
                printf("%s %ld %ld %a %a %a\n", paper ? "paper" : "to_relu", lengths[k],
                       net.step + 1, (double)lgelu_training_rate(&peak, net.step + 1),
                       (double)net.lambda[0], (double)net.lambda[1]);
                lgelu_net_forward(&net, 1);
                lgelu_net_backward(&net, 1);
                if (lgelu_net_step(&net, &plan)) {
                    fprintf(stderr, "%s\n", net.message);
                    return 1;
                }
            }
            free(memory);
        }
    }
    return 0;
}
