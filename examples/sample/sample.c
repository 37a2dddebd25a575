/* SPDX-License-Identifier: MIT-0

   sample: makes the sample network of the repository, and images for it as an array.

       make -C examples sample          trains cnn_silu.onnx again: the same bytes on every machine
       build/sample network FILE.onnx
       build/sample images FILE.npy     the first 400 test images of pictures/, as bytes

   cnn_silu.onnx is a residual network with SiLU that tells the ten classes of pictures/. It is what
   README's first command and the page convert. Its inputs are pixels divided by 255, which is what
   reluize makes of images, so that the command needs no option for them. */
#define LGELU_TRAINER
#include "../../lgelu.h"
#include "data.h"
#include "npy.h"
#include "onnx_out.h"
#include "output.h"
#include <stdlib.h>

enum { BATCH = 64, EPOCHS = 4, WIDTH = 8, STAGES = 3, NODES = 40, IMAGES = 400 };

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "sample: %s: %s\n", what, why);
    return 1;
}

/* An lgelu_write to a file of output.h. */
static int write_bytes(const void *p, size_t n, void *user)
{
    return fwrite(p, 1, n, ((output *)user)->f) != n;
}

/* ---- the network ---- */
typedef struct {
    lgelu_net net;
    lgelu_node nodes[NODES];
    void *memory;
    int input, labels, logits;
    float *x;
    int32_t y[BATCH];
} model;

static int make_model(model *m, const data_set *data)
{
    lgelu_net *net = &m->net;
    lgelu_net_begin(net, m->nodes, NODES);
    m->input = lgelu_input(net, "images", data->height, data->width, data->channels);
    m->logits = lgelu_resnet(net, m->input, WIDTH, STAGES, 1, data->classes, LGELU_GATE_SILU, 1);
    m->labels = lgelu_labels(net, "classes", 1, data->classes);
    lgelu_cross_entropy(net, "loss", m->logits, m->labels);

    const size_t bytes = lgelu_net_bytes(net, BATCH, LGELU_MODE_TRAIN);
    m->memory = malloc(bytes ? bytes : 1);
    m->x = (float *)malloc(BATCH * data_size(data) * sizeof *m->x);
    if (!m->x || lgelu_net_make(net, m->memory, bytes, BATCH, LGELU_MODE_TRAIN, 1) != LGELU_OK)
        return fail("network", m->x ? net->message : "out of memory");
    return 0;
}

/* Fills a batch with training images order[first], order[first + 1], ... Pixels become 0 to 1. */
static void fill_batch(model *m, const data_set *data, const uint32_t *order, size_t first)
{
    const size_t size = data_size(data);
    for (size_t i = 0; i < BATCH; i++) {
        const unsigned char *image = data->train_x + order[first + i] * size;
        for (size_t k = 0; k < size; k++)
            m->x[i * size + k] = (float)image[k] / 255;
        m->y[i] = data->train_y[order[first + i]];
    }
}

static int train(model *m, const data_set *data)
{
    const size_t batches = data->train / BATCH;
    const lgelu_training plan = lgelu_training_defaults(3e-3f, (long)batches * EPOCHS);
    uint32_t *order = (uint32_t *)malloc(data->train * sizeof *order);
    if (!order)
        return fail("training", "out of memory");
    lgelu_net_bind(&m->net, m->input, m->x);
    lgelu_net_bind(&m->net, m->labels, m->y);
    for (long epoch = 1; epoch <= EPOCHS; epoch++) {
        double loss = 0;
        lgelu_shuffle(order, data->train, 1, (uint64_t)m->net.step);
        for (size_t k = 0; k < batches && m->net.status == LGELU_OK; k++) {
            fill_batch(m, data, order, k * BATCH);
            lgelu_net_forward(&m->net, BATCH);
            loss += m->net.loss / (double)batches;
            lgelu_net_backward(&m->net, 1);
            lgelu_net_step(&m->net, &plan);
        }
        printf("epoch %ld of %d: loss %.4f\n", epoch, EPOCHS, loss);
        fflush(stdout);
    }
    free(order);
    return m->net.status == LGELU_OK ? 0 : fail("training", m->net.message);
}

/* Writes the network with its batch norms folded into the convolutions. */
static int write_network(model *m, output *o)
{
    const onnx_options options = { m->logits, 1, "logits", ONNX_CHANNELS_FIRST,
                                   "The sample network of lgelu.h. " };
    char message[160];
    void *work = malloc(onnx_save_bytes(&m->net));
    const int bad =
        !work || onnx_save(&m->net, &options, work, write_bytes, o, message) != LGELU_OK;
    if (bad)
        fail("the file", work ? message : "out of memory");
    free(work);
    return bad;
}

static int make_network(const data_set *data, output *o)
{
    static model m;
    const int bad = make_model(&m, data) || train(&m, data) || write_network(&m, o);
    free(m.memory);
    free(m.x);
    return bad;
}

/* ---- the images ---- */
static int write_images(const data_set *data, output *o)
{
    const size_t shape[4] = { IMAGES, data->channels, data->height, data->width };
    if (data->test < IMAGES)
        return fail("images", "expected at least 400 for the test");
    if (npy_write(NPY_U8, data->test_x, shape, 4, write_bytes, o) != LGELU_OK)
        return fail("images", "they could not be written");
    return 0;
}

int main(int argc, char **argv)
{
    static data_set data;
    output o;
    if (argc != 3 || (strcmp(argv[1], "network") && strcmp(argv[1], "images"))) {
        fputs("usage: sample network FILE.onnx | sample images FILE.npy\n", stderr);
        return 2;
    }
    if (data_read(&data, "pictures", argv[0]))
        return fail("pictures", data.error);
    if (output_try(&o, argv[2]) || output_begin(&o))
        return fail(argv[2], output_error());
    const int bad = !strcmp(argv[1], "network") ? make_network(&data, &o) : write_images(&data, &o);
    data_free(&data);
    if (bad) {
        output_drop(&o);
        return 1;
    }
    return output_end(&o) ? fail(argv[2], output_error()) : 0;
}
