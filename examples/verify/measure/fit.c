/* SPDX-License-Identifier: MIT-0
   fit.c: the constants of one, two or three ReLUs a gate, fitted by the converter of ONNX files
   (../../reluize/passes/onnx_relu.h) to what each channel's gate gives for training images without
   their classes. The smooth network goes to the converter as the ONNX file that onnx_out.h writes.
   Weights stay as they are, since the certificate compares two networks that differ in their gates
   alone: a refit, which the converter does otherwise, is left out. Two and three ReLUs have a term
   that is linear in the gate's input, as the converter's own have. */
#include "measure.h"
#include "onnx_out.h"
#include "onnx_relu.h"

enum { FIT_IMAGES = 512 };

/* Adds training images to a conversion. */
static void add_images(onnx_relu *c, const onnx_graph *g, const lgelu_node *input)
{
    const size_t count = data.train < FIT_IMAGES ? data.train : FIT_IMAGES;
    const int image = deploy_size(input) != input->shape[2];
    const int64_t dim[4] = { (int64_t)count, (int64_t)input->shape[image ? 0 : 2],
                             (int64_t)input->shape[1], (int64_t)input->shape[2] };
    onnx_tensor *x = onnx_tensor_make(c->run, ONNX_F32, image ? 4 : 2, dim);
    const onnx_tensor *in = x;
    if (!x || g->top.inputs != 1)
        fail("%s", "no memory for the images of a conversion");
    data_batch((float *)x->data, NULL, &data, DATA_TRAIN, NULL, 0, count);
    if (onnx_relu_add(c, &in))
        fail("%s", c->message);
    onnx_tensor_free(x);
}

/* Copies the constants of the converted gates, in their order, to those of w. */
static void take_gates(network *w, const onnx_relu *c)
{
    int gate = 0;
    for (int i = 0; i < w->net.count; i++) {
        const onnx_relu_gate *from = c->gate + gate;
        if (!pieces_is(w->nodes + i))
            continue;
        if (gate == c->gates || from->replaced != w->several.relus || !from->kink
            || from->channels != w->nodes[i].shape[2])
            fail("the converter left gate '%s' as it is", w->nodes[i].name);
        if (pieces_set(&w->net, i, from->base, from->line, from->slope, from->kink))
            fail("gate '%s' has too many channels", w->nodes[i].name);
        gate++;
    }
    if (gate != c->gates)
        fail("%s", "the converter found other gates than the network has");
}

void network_fit(network *w, network *smooth)
{
    const onnx_options form = { smooth->output, 1, NULL, ONNX_CHANNELS_LAST, NULL };
    onnx_relu_options o = onnx_relu_defaults();
    deploy_memory file = { NULL, 0, 0 };
    void *work = malloc(onnx_save_bytes(&smooth->net));
    char message[160];
    onnx_graph *g;
    onnx_relu *c;
    if (!work || onnx_save(&smooth->net, &form, work, deploy_append, &file, message))
        fail("%s", work ? message : "no memory");
    g = onnx_graph_open(file.p, file.n, NULL, NULL, message);
    if (!g)
        fail("%s", message);
    o.what = ONNX_RELU_COLD;
    o.relus = w->several.relus;
    o.fitted = 1;
    o.line = o.relus > 1;
    c = onnx_relu_begin(g, &o, message);
    if (!c)
        fail("%s", message);
    add_images(c, g, smooth->nodes + smooth->input);
    if (onnx_relu_convert(c))
        fail("%s", c->message);
    take_gates(w, c);
    onnx_relu_end(c);
    onnx_graph_close(g);
    free(file.p);
    free(work);
}
