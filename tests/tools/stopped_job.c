/* SPDX-License-Identifier: MIT-0
   stopped_job.c: a training example, 2_mlp or EXAMPLE, as test_resume.sh needs it: Ctrl-C in the middle of step $STOP_AT of the
   process, and a weight that is no number after step $NAN_AT. */
#ifndef EXAMPLE
#define EXAMPLE "../../examples/2_mlp.c"
#endif
#define LGELU_IMPLEMENTATION
#include "../../examples/job.h"
#include <math.h>
#include <signal.h>
#include <stdlib.h>

static lgelu_status step_and_stop(lgelu_net *net, const lgelu_training *plan)
{
    static long steps;
    const char *stop = getenv("STOP_AT"), *nan_at = getenv("NAN_AT");
    lgelu_status status = lgelu_net_step(net, plan);
    steps++;
    if (stop && atol(stop) == steps) raise(SIGINT);
    if (nan_at && atol(nan_at) == steps) net->w[0] = NAN;
    return status;
}
#define lgelu_net_step step_and_stop
#include EXAMPLE
