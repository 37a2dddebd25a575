/* SPDX-License-Identifier: MIT-0

   onnx_run_loss.c: the losses of onnx_run.h: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
 */
#include "onnx_layers.h"

/* The scores (batch, classes, places...), and what each place counts. */
typedef struct {
    const onnx_tensor *x, *label, *weight;
    size_t batch, classes, places;
    int ignores;
    int64_t ignored; /* the label of places that do not count */
} loss_plan;

static int onnx_loss_begin(onnx_call *c, loss_plan *p, const onnx_tensor *x)
{
    const onnx_attribute *ignored = onnx_attribute_of(c, "ignore_index");
    int d;
    memset(p, 0, sizeof *p);
    p->x = x;
    p->label = c->in[1];
    p->weight = onnx_in_of(c, 2);
    p->ignores = ignored != NULL;
    p->ignored = ignored ? ignored->i : 0;
    if (x->rank < 2 || p->label->rank != x->rank - 1 || p->label->dim[0] != x->dim[0]
        || !onnx_is_float(x->type) || (p->label->type != ONNX_I32 && p->label->type != ONNX_I64))
        return onnx_refuse_call(c,
                                "expected scores (batch, classes, ...) and a label for each place");
    p->batch = (size_t)x->dim[0];
    p->classes = (size_t)x->dim[1];
    p->places = 1;
    for (d = 2; d < x->rank; d++) {
        if (p->label->dim[d - 1] != x->dim[d])
            return onnx_refuse_call(c, "the labels have another shape than the scores");
        p->places *= (size_t)x->dim[d];
    }
    if (p->weight && (p->weight->count != p->classes || !onnx_is_float(p->weight->type)))
        return onnx_refuse_call(c, "expected %z weights", p->classes);
    return 0;
}

/* The loss of a place and its weight. Returns 0, or -1: its label is no class. */
static int onnx_loss_place(const loss_plan *p, size_t i, double *loss, double *weight)
{
    const int64_t label = onnx_tensor_whole(p->label, i);
    *loss = *weight = 0;
    if (p->ignores && label == p->ignored)
        return 0;
    if (label < 0 || label >= (int64_t)p->classes)
        return -1;
    *weight = p->weight ? onnx_tensor_real(p->weight, (size_t)label) : 1;
    *loss = -onnx_tensor_real(p->x, (i / p->places * p->classes + (size_t)label) * p->places
                                        + i % p->places);
    *loss = onnx_times_f64(*loss, *weight);
    return 0;
}

/* Output 0 of the logarithms of probabilities. */
static int onnx_loss_of(onnx_call *c, const onnx_tensor *x)
{
    const int none = onnx_text_is(c, "reduction", "none", "mean"),
              sum = onnx_text_is(c, "reduction", "sum", "mean");
    double loss, weight, all = 0, weights = 0;
    loss_plan p;
    onnx_tensor *y;
    size_t i;
    if (!none && !sum && !onnx_text_is(c, "reduction", "mean", "mean"))
        return onnx_refuse_call(c, "attribute reduction has an unknown value");
    if (onnx_loss_begin(c, &p, x))
        return -1;
    y = onnx_out(c, 0, c->in[0]->type, none ? p.label->rank : 0, p.label->dim);
    if (!y)
        return -1;
    for (i = 0; i < p.label->count; i++) {
        if (onnx_loss_place(&p, i, &loss, &weight))
            return onnx_refuse_call(c, "label %d is not one of %z classes",
                                    onnx_tensor_whole(p.label, i), p.classes);
        if (none)
            onnx_tensor_set_real(y, i, loss);
        all += loss;
        weights += weight;
    }
    if (!none)
        onnx_tensor_set_real(y, 0, sum ? all : all / weights);
    return 0;
}

static int onnx_loss_likelihood(onnx_call *c)
{
    return onnx_need(c, 2) ? -1 : onnx_loss_of(c, c->in[0]);
}

static int onnx_loss_cross_entropy(onnx_call *c)
{
    onnx_attribute axis = onnx_attribute_int("axis", 1);
    onnx_tensor *logarithm;
    int failed;
    if (onnx_need(c, 2) || onnx_apply(c, "LogSoftmax", &axis, 1, c->in, 1, &logarithm, 1))
        return -1;
    failed = onnx_loss_of(c, logarithm);
    if (!failed && c->outputs > 1 && c->wanted[1])
        c->out[1] = logarithm;
    else
        onnx_tensor_free(logarithm);
    return failed;
}

const onnx_operator onnx_loss_operators[] = {
    { "NegativeLogLikelihoodLoss", 12, onnx_loss_likelihood, NULL },
    { "SoftmaxCrossEntropyLoss", 12, onnx_loss_cross_entropy, NULL },
    { NULL, 0, NULL, NULL },
};
