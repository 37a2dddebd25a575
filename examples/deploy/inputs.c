/* SPDX-License-Identifier: MIT-0
   inputs.c: see inputs.h. */
#include "inputs.h"

/* The place in the file of element i in C's order. */
static size_t inputs_place(const npy *a, size_t i)
{
    size_t place = 0, rest = i, k, j;
    if (!a->fortran)
        return i;
    for (k = a->dims; k--; rest /= a->shape[k]) {
        size_t step = rest % a->shape[k];
        for (j = 0; j < k; j++)
            step *= a->shape[j];
        place += step;
    }
    return place;
}

static lgelu_status inputs_open_array(inputs *d, const void *file, size_t bytes, size_t vocabulary)
{
    size_t i, row = 1;
    if (npy_read(&d->array, file, bytes))
        return deploy_refuse(d->message, LGELU_E_FILE, "%s", d->array.message);
    for (i = 1; i < d->array.dims; i++)
        row *= d->array.shape[i];
    if (!d->array.dims || row != d->size) {
        return deploy_refuse(d->message, LGELU_E_SHAPE,
                             "expected rows of %z elements, found rows of %z", d->size,
                             d->array.dims ? row : 0);
    }
    d->count = d->array.shape[0];
    for (i = 0; i < d->array.count; i++) {
        const double x = npy_at(&d->array, i);
        if (!(x - x <= 0))
            return deploy_refuse(d->message, LGELU_E_FILE, "element %z is not finite", i);
        if (d->tokens && !(x >= 0 && x < (double)vocabulary && floor(x) >= x)) {
            return deploy_refuse(d->message, LGELU_E_FILE,
                                 "element %z is no token: expected an integer below %z", i,
                                 vocabulary);
        }
    }
    return LGELU_OK;
}

static lgelu_status inputs_open_text(inputs *d, size_t bytes, size_t vocabulary)
{
    unsigned char seen[256];
    size_t i, different = 0;
    memset(seen, 0, sizeof seen);
    for (i = 0; i < bytes; i++)
        seen[d->bytes[i]] = 1;
    for (i = 0; i < 256; i++) {
        d->token_of[i] = (int32_t)(vocabulary == 256 ? i : different);
        different += seen[i];
    }
    if (vocabulary != 256 && different != vocabulary) {
        return deploy_refuse(d->message, LGELU_E_SHAPE,
                             "a text of %z different characters, expected %z, the vocabulary of "
                             "the network; give its tokens as .npy",
                             different, vocabulary);
    }
    d->text = 1;
    d->count = bytes ? (bytes - 1) / d->size : 0;
    return LGELU_OK;
}

lgelu_status inputs_open(inputs *d, const void *file, size_t bytes, const lgelu_node *node,
                         onnx_form form)
{
    const size_t *s = node->shape;
    const int array = bytes > 6 && !memcmp(file, "\x93NUMPY", 6);
    lgelu_status status;
    memset(d, 0, sizeof *d);
    d->tokens = node->op == LGELU_OP_TOKENS;
    d->size = d->tokens ? s[1] : s[0] * s[1] * s[2];
    d->bytes = (const unsigned char *)file;
    d->form = form;
    memcpy(d->shape, s, sizeof d->shape);
    if (!array && !d->tokens) {
        return deploy_refuse(d->message, LGELU_E_FILE,
                             "this is no .npy array, and the network takes no tokens");
    }
    status = array ? inputs_open_array(d, file, bytes, s[2]) : inputs_open_text(d, bytes, s[2]);
    if (!status && !d->count)
        return deploy_refuse(d->message, LGELU_E_SHAPE, "there is no input in it");
    return status;
}

void inputs_get(const inputs *d, size_t i, void *x, int32_t *next)
{
    const size_t channels = d->shape[2], pixels = d->shape[0] * d->shape[1];
    const int turned = !d->tokens && pixels > 1 && d->form == ONNX_CHANNELS_FIRST;
    float *values = (float *)x;
    int32_t *tokens = (int32_t *)x;
    size_t k;
    for (k = 0; k < d->size; k++) {
        const size_t from = turned ? k % channels * pixels + k / channels : k;
        if (d->text)
            tokens[k] = d->token_of[d->bytes[i * d->size + k]];
        else if (d->tokens)
            tokens[k] = (int32_t)npy_at(&d->array, inputs_place(&d->array, i * d->size + from));
        else
            values[k] = (float)npy_at(&d->array, inputs_place(&d->array, i * d->size + from));
    }
    for (k = 0; next && k < d->size; k++)
        next[k] = d->token_of[d->bytes[i * d->size + k + 1]];
}
