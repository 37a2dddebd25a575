#include "job.h"
int job_figures(job *j) { (void)j; return 0; }
