/* SPDX-License-Identifier: MIT-0
   certificate.c: what the swap to ReLU can do to a logit, whatever the input, in exact arithmetic.
   A gate is at most g = 0.1699712/λ from ReLU and ReLU passes on at most its input's change, so
   with d the L2 norm of the change

       linear  d = ‖W‖ d        gate  d = d + g √width        logit k  ‖row k of W‖ d

   The spectral norms are those of verify/bounds.h, which also proves bounds of what f32 gives, in a
   box of inputs. Its names and those of study.h meet in no other file. */
#include "bounds.h"

/* study.h has this line, too */
double logit_certificate(const lgelu_net *net, int logits, double *room);

static double row_norm(const float *w, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)w[i] * (double)w[i];
    return sqrt(sum);
}

/* room: twice as many numbers as the input has. Negative where the network has other layers */
double logit_certificate(const lgelu_net *net, int logits, double *room)
{
    const lgelu_node *x = net->nodes;
    const size_t n = x->shape[0] * x->shape[1] * x->shape[2];
    bounds_certificate c;
    double d = 0, most = -1;
    if (bounds_certificate_make(&c, net, logits))
        return most;
    /* the norms don't depend on the box */
    for (size_t i = 0; i < 2 * n; i++)
        room[i] = 0;
    if (!bounds_certificate_run(&c, room, room + n, BOUNDS_INTERVAL)) {
        int i = 1;
        for (; i <= logits; i++) {
            const lgelu_node *y = net->nodes + i;
            if (!c.difference.needed[i])
                continue;
            if (y->op == LGELU_OP_LINEAR && i == logits) {
                for (size_t k = 0; k < y->shape[2]; k++) {
                    const size_t in = net->nodes[y->input[0]].shape[2];
                    const double change = row_norm(net->w + y->weight_at + k * in, in) * d;
                    if (change > most)
                        most = change;
                }
            } else if (y->op == LGELU_OP_LINEAR) {
                d *= c.difference.node[i].weight_norm;
            } else if (y->op == LGELU_OP_GATE && y->lambda_count == 1) {
                d += (double)lgelu_gap(net->lambda[y->first_lambda])
                     * sqrt((double)(y->shape[0] * y->shape[1] * y->shape[2]));
            } else {
                break;
            }
        }
        if (i <= logits)
            most = -1;
    }
    bounds_certificate_free(&c);
    return most;
}
