/* SPDX-License-Identifier: MIT-0
   stopped_job.c: linked to a program with -Wl,--wrap=lgelu_net_step, see stoppable in job.sh:
   Ctrl-C in the middle of step $STOP_AT of the process, and a weight that is no number after step
   $NAN_AT. */
#define LGELU_TRAINER
#include "../../lgelu.h"
#include <math.h>
#include <signal.h>
#include <stdlib.h>

lgelu_status __real_lgelu_net_step(lgelu_net *net, const lgelu_training *plan);
lgelu_status __wrap_lgelu_net_step(lgelu_net *net, const lgelu_training *plan);

lgelu_status __wrap_lgelu_net_step(lgelu_net *net, const lgelu_training *plan)
{
    static long steps;
    long step;
    const char *stop = getenv("STOP_AT"), *nan_at = getenv("NAN_AT");
    lgelu_status status = __real_lgelu_net_step(net, plan);
#ifdef _OPENMP
#pragma omp atomic capture
#endif
    step = ++steps;
    if (stop && atol(stop) == step)
        raise(SIGINT);
    if (nan_at && atol(nan_at) == step)
        net->w[0] = NAN;
    return status;
}
