/* SPDX-License-Identifier: MIT-0
   locale_check.c FILE.csv: every reader and writer of numbers in examples and the reader of
   tables, in the locale that locale_start.c has set; their results and what they refuse go to
   standard output as bytes, to be compared. */
#define LGELU_TRAINER
#include "lgelu.h"
#include "check.h"
#include "deploy_nets.h"
#include "data.h"
#include "net_c.h"
#include "int8.h"
#include "mip.h"
#include "nnet.h"
#include "npy.h"
#include "torch_file.h"

static unsigned char kept[1 << 20];
static size_t kept_bytes;

static int put(const void *data, size_t n, void *user)
{
    (void)user;
    if (kept_bytes + n > sizeof kept)
        return 1;
    memcpy(kept + kept_bytes, data, n);
    kept_bytes += n;
    return fwrite(data, 1, n, stdout) != n;
}

static void said(const char *what, lgelu_status status, const char *message)
{
    printf("\n[%s: %s]\n", what, status ? message : "ok");
    kept_bytes = 0;
}

static void raw(const void *p, size_t n) { fwrite(p, 1, n, stdout); }

int main(int argc, char **argv)
{
    static const char property[] =
        "(declare-const X_0 Real)(declare-const X_1 Real)(declare-const Y_0 Real)\n"
        "(declare-const Y_1 Real)(declare-const Y_2 Real)\n(assert (<= X_0 0.75))(assert (>= X_0 -2.5e-1))\n"
        "(assert (<= X_1 1.125))(assert (>= X_1 .5))(assert (<= Y_0 0.1))\n";
    static const char comma[] =
        "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (<= X_0 0,75))";
    static const char solved[] =
        "Optimal - objective value 0.125\n  1 t 0.125 0\n  2 x0 0.375 0\n  3 x1 6.25e-1 0\n";
    double x[2] = { 0, 0 };
    const float values[4] = { 0.1f, -2.5f, 1e-30f, 3.25f };
    const size_t shape[1] = { 4 };
    char message[160] = "";
    const onnx_options onnx = { -1, 1, NULL, ONNX_FLAT, NULL };
    const torch_names names = { NULL, 0, 0 };
    deploy_net d;
    net_file file;
    bounds_net b;
    vnnlib p;
    nnet n;
    data_set set;
    void *work;
    unsigned char *copy;
    size_t bytes;
    (void)net_prepacks;
    (void)net_keeps;
    (void)check_skip;
    net_make(&d, NET_SMALL, 0, LGELU_GATE_RELU, 1, 5);
    said("vnnlib_read", vnnlib_read(&p, property, sizeof property - 1), p.message);
    raw(p.low, 2 * sizeof *p.low);
    raw(p.high, 2 * sizeof *p.high);
    said("vnnlib_write", vnnlib_write(&p, NULL, put, NULL), p.message);
    said("bounds", bounds_make(&b, &d.net, d.output, BOUNDS_AS_RELU), b.message);
    said("bounds", bounds_run(&b, p.low, p.high, BOUNDS_LINEAR), b.message);
    said("mip_write", mip_write(&b, &p, 0, 1e-5, put, NULL), b.message);
    printf("%d", (int)mip_read(x, 2, solved, sizeof solved - 1));
    raw(x, sizeof x);
    bounds_free(&b);
    vnnlib_free(&p);
    printf("%d %s\n", (int)vnnlib_read(&p, comma, sizeof comma - 1), p.message);
    kept_bytes = 0;
    printf("%d\n", (int)nnet_write(&d.net, d.output, NULL, put, NULL));
    bytes = kept_bytes;
    copy = (unsigned char *)malloc(bytes);
    memcpy(copy, kept, bytes);
    said("nnet_read", nnet_read(&n, copy, bytes), n.message);
    said("nnet_fill", nnet_fill(&n, &d.net, d.output), d.net.message);
    raw(d.net.w, d.net.parameter_count * sizeof *d.net.w);
    nnet_free(&n);
    if (net_file_make(&file, &d.net, d.output))
        return 1;
    said("onnx_c", net_file_write(&file, "small", 0, stdout, NULL) ? LGELU_E_FILE : LGELU_OK,
         file.message);
    net_file_free(&file);
    said("npy_write", npy_write(NPY_F32, values, shape, 1, put, NULL), "");
    said("torch_write", torch_write(&d.net, &names, put, NULL), d.net.message);
    work = malloc(onnx_save_bytes(&d.net));
    said("onnx_save", onnx_save(&d.net, &onnx, work, put, NULL, message), message);
    if (argc > 1) {
        said("table", data_read(&set, argv[1], argv[0]) ? LGELU_E_FILE : LGELU_OK, set.error);
        if (set.train_row)
            raw(set.train_row, set.train * data_size(&set) * sizeof(float));
        data_free(&set);
    }
    free(copy);
    free(work);
    free(d.block);
    return 0;
}
