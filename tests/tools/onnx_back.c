/* SPDX-License-Identifier: MIT-0
   onnx_back LIST FOLDER LIMIT [TO]: reads each network of the list (NAME, type and shape of the
   input, shape of the output) from FOLDER/NAME.onnx and runs it on NAME.in; its outputs are those
   in NAME.out up to LIMIT of the largest. Then, with TO, writes it and its outputs there again. */
#define LGELU_TRAINER
#include "../../lgelu.h"
#include "onnx_out.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "folder.h"
#include "onnx_open.h"

/* Reorders from (N, channels, rows, columns) to channels last, or back. */
static void turn(float *y, const float *x, const size_t *shape, size_t batch, int back)
{
    const size_t pixels = shape[0] * shape[1], c = shape[2];
    size_t b, i, k;
    for (b = 0; b < batch; b++) {
        for (i = 0; i < pixels; i++) {
            for (k = 0; k < c; k++) {
                const size_t last = (b * pixels + i) * c + k, first = (b * c + k) * pixels + i;
                if (back)
                    y[first] = x[last];
                else
                    y[last] = x[first];
            }
        }
    }
}

static int dims(const char *text)
{
    int n = 1;
    for (; *text; text++)
        n += *text == ',';
    return n;
}

int main(int argc, char **argv)
{
    char line[1024], *name, *type, *given, message[160];
    FILE *list;
    int bad = 0, count = 0;
    double most = 0;
    if (argc < 4 || !(list = fopen(argv[1], "r")))
        return 2;
    while (fgets(line, sizeof line, list)) {
        size_t bytes, in_bytes, out_bytes, batch, i, n;
        unsigned char *file, *x, *y;
        void *memory;
        opened o;
        onnx_model *m;
        lgelu_node *nodes;
        lgelu_net net;
        float *turned, *ours;
        int32_t *token;
        int in, out;
        double worst = 0, largest = 0;
        name = strtok(line, "\t");
        type = strtok(NULL, "\t");
        given = strtok(NULL, "\t");
        count++;
        file = slurp(argv[2], name, ".onnx", &bytes);
        x = slurp(argv[2], name, ".in", &in_bytes);
        y = slurp(argv[2], name, ".out", &out_bytes);
        batch = (size_t)atoi(given);
        m = open_model(&o, file, bytes, 0, message);
        if (!m) {
            printf("FAIL %s is read: %s\n", name, message);
            bad = 1;
            continue;
        }
        nodes = calloc((size_t)onnx_nodes(m), sizeof *nodes);
        lgelu_net_begin(&net, nodes, onnx_nodes(m));
        out = onnx_build(m, &net, 0, &in);
        n = lgelu_net_bytes(&net, batch, LGELU_MODE_INFER);
        memory = malloc(n + 1);
        if (out < 0 || lgelu_net_make(&net, memory, n, batch, LGELU_MODE_INFER, 1)
            || onnx_fill(m, &net)) {
            printf("FAIL %s is read: %s\n", name, net.message);
            bad = 1;
            continue;
        }
        turned = malloc(in_bytes + 1);
        token = malloc(in_bytes + 1);
        ours = malloc(out_bytes + 1);
        memcpy(turned, x, in_bytes);
        if (!strcmp(type, "int64")) {
            for (i = 0; i < in_bytes / 8; i++) {
                int64_t t;
                memcpy(&t, x + 8 * i, 8);
                token[i] = (int32_t)t;
            }
        } else if (dims(given) == 4 ? onnx_input(m) == ONNX_CHANNELS_FIRST
                                    : onnx_input(m) == ONNX_ROW) {
            turn(turned, (float *)(void *)x, nodes[in].shape, batch, 0);
        }
        lgelu_net_bind(&net, in, strcmp(type, "int64") ? (void *)turned : token);
        lgelu_net_forward(&net, batch);
        if (net.status || !lgelu_net_value(&net, out)) {
            printf("FAIL %s is read: %s\n", name, net.message);
            bad = 1;
            continue;
        }
        if (batch * nodes[out].shape[0] * nodes[out].shape[1] * nodes[out].shape[2]
            != out_bytes / 4) {
            printf("FAIL %s is read: %zu values\n", name, nodes[out].shape[2]);
            bad = 1;
            continue;
        }
        memcpy(ours, lgelu_net_value(&net, out), out_bytes);
        if (onnx_result(m) == ONNX_CHANNELS_FIRST || onnx_result(m) == ONNX_ROW)
            turn(ours, lgelu_net_value(&net, out), nodes[out].shape, batch, 1);
        for (i = 0; i < out_bytes / 4; i++) {
            const double theirs = (double)((float *)(void *)y)[i],
                         d = fabs(theirs - (double)ours[i]);
            largest = fmax(largest, fabs(theirs));
            if (!(d <= worst))
                worst = d;
        }
        if (!(worst <= atof(argv[3]) * largest)) {
            printf("FAIL %s is read: its outputs differ by %.3g of the largest\n", name,
                   worst / largest);
            bad = 1;
        }
        most = fmax(most, worst / largest);
        if (argc > 4) {
            onnx_options how = { -1, 0, NULL, ONNX_CHANNELS_FIRST, "A test." };
            FILE *f = in_folder(argv[4], name, ".onnx", "wb");
            void *more = malloc(onnx_save_bytes(&net));
            how.node = out;
            how.output = onnx_output(m);
            how.input = onnx_input(m);
            if (onnx_save(&net, &how, more, put, f, message)) {
                printf("FAIL %s is written again: %s\n", name, message);
                bad = 1;
            }
            done(f);
            free(more);
            f = in_folder(argv[4], name, ".in", "wb");
            put(x, in_bytes, f);
            done(f);
            f = in_folder(argv[4], name, ".out", "wb");
            put(ours, out_bytes, f);
            done(f);
        }
        close_model(&o);
        free(file);
        free(x);
        free(y);
        free(nodes);
        free(memory);
        free(turned);
        free(token);
        free(ours);
    }
    fclose(list);
    printf("# %d networks read, the largest difference %.2g of the largest output\n", count, most);
    printf("%s their outputs are the same to %s of the largest\n", bad ? "FAIL" : "ok", argv[3]);
    return bad;
}
