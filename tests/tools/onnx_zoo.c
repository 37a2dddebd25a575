/* SPDX-License-Identifier: MIT-0

   onnx_zoo LIST FOLDER AGAIN: for each network of the list that onnx_zoo.py prints: its evaluation
   has PyTorch's outputs to 1e-4 of the largest, some steps of training over its graph lower its
   loss (onnx_distil.h, with targets as labels), and the file with the new weights is written to the
   folder AGAIN, with the input and what that file computes from it. Prints a line for each network:
   its name, the number of trained weights, and "done", or what failed and why. */
#include "folder.h"
#include "onnx_distil.h"
#include "onnx_network.h"

enum { STEPS = 6 };

static int append(const void *p, size_t n, void *user)
{
    return fwrite(p, 1, n, (FILE *)user) == n ? 0 : -1;
}

/* A target for each value of the output: every third is 0, 1 and 2. Returns 0, or -1 with n->why.
 */
static int train(network *n, onnx_distil *d, double *first, double *last)
{
    const size_t targets = n->out_bytes / sizeof(float);
    double *target = (double *)calloc(targets + 1, sizeof *target);
    int step;
    size_t i;
    for (i = 0; i < targets; i++)
        target[i] = (double)(i % 3);
    for (step = 0; step <= STEPS; step++) {
        onnx_distil_loss loss = { 0, 0, 0 };
        onnx_tensor *x = network_input(n, onnx_distil_run(d, 0));
        onnx_distil_begin_step(d);
        if (onnx_distil_set(d, 0, &x) || onnx_distil_label(d, 0, target, targets)
            || onnx_distil_pass(d, 1, step < STEPS, &loss))
            break;
        *first = step ? *first : loss.outputs;
        *last = loss.outputs;
        if (step < STEPS)
            onnx_distil_update(d, 1e-3);
    }
    free(target);
    snprintf(n->why, sizeof n->why, "%s", onnx_distil_message(d));
    return step > STEPS ? 0 : -1;
}

/* Writes the trained network, its input and its output to the folder `again`. */
static int write(network *n, onnx_distil *d, const char *again)
{
    FILE *f = in_folder(again, n->name, ".onnx", "wb");
    onnx_edit *e;
    onnx_distil_keep(d);
    e = onnx_distil_edit(d);
    if (!e || onnx_edit_write(e, append, f, n->why))
        return -1;
    onnx_edit_end(e);
    done(f);
    f = in_folder(again, n->name, ".in", "wb");
    put(n->x, n->in_bytes, f);
    done(f);
    f = in_folder(again, n->name, ".out", "wb");
    put(n->y, n->out_bytes, f);
    done(f);
    return 0;
}

/* Computes AGAIN/NAME.out from the file that was written. */
static int evaluate(const char *again, const char *line)
{
    network n;
    const onnx_tensor *y;
    FILE *f;
    int bad = network_open(&n, again, line);
    if (!bad) {
        onnx_run_set(n.run, n.graph->top.input[0], network_input(&n, n.run));
        bad = onnx_run_all(n.run) != LGELU_OK;
    }
    y = bad ? NULL : onnx_run_get(n.run, n.graph->top.output[0]);
    if (y) {
        f = in_folder(again, n.name, ".out", "wb");
        put(y->data, y->count * sizeof(float), f);
        done(f);
    }
    network_close(&n);
    return y ? 0 : -1;
}

static void one(network *n, const char *again, const char *line)
{
    onnx_distil_options o = onnx_distil_defaults();
    double apart, first = 0, last = 0;
    onnx_distil *d;
    apart = network_difference(n);
    if (!(apart <= 1e-4)) {
        printf("%s\t0\tits outputs differ by %.3g of the largest %s\n", n->name, apart, n->why);
        return;
    }
    o.labels = 1;
    o.run.single_thread = 1;
    d = onnx_distil_begin(n->graph, n->graph, &o, n->why);
    if (!d) {
        printf("%s\t0\tno training: %s\n", n->name, n->why);
        return;
    }
    printf("%s\t%zu\t", n->name, onnx_distil_elements(d));
    if (onnx_distil_ended(d, 0) >= 0)
        printf("no gradient passes %.*s\n", (int)n->graph->top.node[onnx_distil_ended(d, 0)].op.n,
               (const char *)n->graph->top.node[onnx_distil_ended(d, 0)].op.p);
    else if (train(n, d, &first, &last))
        printf("training failed: %s\n", n->why);
    else if (!(last < first))
        printf("its loss went from %g to %g\n", first, last);
    else if (write(n, d, again) || evaluate(again, line))
        printf("the new file is not written or evaluated: %s\n", n->why);
    else
        printf("done\n");
    onnx_distil_end(d);
}

int main(int argc, char **argv)
{
    char line[1024];
    FILE *list;
    if (argc != 4 || !(list = fopen(argv[1], "r")))
        return 2;
    while (fgets(line, sizeof line, list)) {
        network n;
        network_open(&n, argv[2], line);
        one(&n, argv[3], line);
        fflush(stdout);
        network_close(&n);
    }
    fclose(list);
    return 0;
}
