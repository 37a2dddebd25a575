/* SPDX-License-Identifier: MIT-0

   test_deploy_files checks safetensors files with PyTorch's names and .npy files without other
   tools: round trips, and one message for each kind of damage. test_deploy_torch.sh compares both
   with torch and numpy.

       cc -O2 -I.. test_deploy_files.c tools/lgelu.c -lm -o test_deploy_files && ./test_deploy_files
 */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "tools/deploy_nets.h"
#include "npy.c"
#include "torch_file.c"

static int full(const void *data, size_t n, void *user)
{
    (void)user;
    (void)data;
    (void)n;
    return 1;
}

static void set_length(memory_file *f, size_t n)
{
    for (int k = 0; k < 8; k++)
        f->data[k] = (unsigned char)(k < 4 ? n >> (8 * k) : 0);
}

/* Makes a file of this header and `bytes` bytes of values. */
static memory_file safetensors(const char *header, size_t bytes)
{
    memory_file f = { NULL, 0, 0 };
    static const unsigned char zeros[64];
    memory_append(zeros, 8, &f);
    memory_append(header, strlen(header), &f);
    memory_append(zeros, bytes, &f);
    set_length(&f, strlen(header));
    return f;
}

static void round_trips(void)
{
    static float x[19 * 19 * 3];
    for (int which = NET_MLP; which < NETS; which++) {
        static const int fold[NETS] = { 0, 0, 0, 1, 0 };
        deploy_net d, e;
        memory_file f = { NULL, 0, 0 };
        torch_names how;
        char name[80];
        int good;
        memset(&how, 0, sizeof how);
        if (which == NET_MIXED)
            how.loose = 1;
        net_make(&d, which, 19, LGELU_GATE_LAMBDA, 1, 4);
        net_prepacks = 1;
        net_make(&e, which, 19, LGELU_GATE_LAMBDA, 1, 5);
        net_prepacks = 0;
        for (int k = 0; k < 19 * 19 * 3; k++)
            x[k] = lgelu_normal(1, 4, (uint64_t)k);
        net_run(&e, x, 1);
        if (which == NET_MIXED) {
            for (int k = 0; k < d.net.count; k++) {
                if (d.nodes[k].name[0] == '*')
                    strcpy(d.nodes[k].name, strcpy(e.nodes[k].name, "mix"));
            }
        }
        for (int folded = 0; folded <= fold[which]; folded++) {
            if (folded) {
                lgelu_net_fold(&d.net);
                lgelu_net_fold(&e.net);
            }
            f.size = 0;
            good = !torch_write(&d.net, &how, memory_append, &f)
                   && !torch_read(&e.net, &how, f.data, f.size);
            snprintf(name, sizeof name, "torch: %s%s is written and read with the same bits",
                     net_name[which], folded ? ", folded," : "");
            check(good && !memcmp(d.net.w, e.net.w, d.net.weight_count * sizeof(float)), name,
                  "%s %s", d.net.message, e.net.message);
            for (int i = 0; i < d.net.count && good; i++) {
                if (d.nodes[i].bias_count) {
                    good = !memcmp(d.net.w + d.nodes[i].bias_at, e.net.w + e.nodes[i].bias_at,
                                   d.nodes[i].bias_count * sizeof(float));
                }
            }
            check(good, name, "other biases");
            /* The batch normalisation of this network keeps its statistics, because it can't be
             * folded. */
            if (which == NET_MIXED)
                continue;
            snprintf(name, sizeof name,
                     "torch: %s%s runs as the other after that, with packed matrices, too",
                     net_name[which], folded ? ", folded," : "");
            check(!memcmp(net_run(&d, x, 1), net_run(&e, x, 1),
                          net_size(&d, d.output) * sizeof(float)),
                  name, "other bits");
        }
        free(f.data);
        free(d.block);
        free(e.block);
    }
}

static void refusals(void)
{
#define TENSORS                                                                   \
    "\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}," \
    "\"fc1.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]}"
    static const struct {
        const char *header;
        size_t bytes;
        const char *says;
    } row[] = {
        { "{" TENSORS "}", 32, NULL },
        { "{" TENSORS "}  \n", 32, NULL },
        { "{\"__metadata__\":{\"a\":\"b\\\"\"}," TENSORS "}", 32, NULL },
        { "{" TENSORS "}", 31, "a tensor ends after the end of the file" },
        { "{" TENSORS "}", 33, "do not end where the file ends" },
        { "{" TENSORS "} x", 32, "bytes after the end of the header" },
        { "{}", 0, "no tensor 'fc1.weight'" },
        { "", 0, "the header does not start with '{'" },
        { "{" TENSORS, 32, "expected" },
        { "[1]", 0, "the header does not start with '{'" },
        { "{" TENSORS ",\"fc2.weight\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[32,32]}}",
          32, "no layer of the network has" },
        { "{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]},\"fc1.bias\":{\"dtype\":\"F32\","
          "\"shape\":[2],\"data_offsets\":[24,32]}}",
          32, "not of shape 2 x 3" },
        { "{\"fc1.weight\":{\"dtype\":\"I32\",\"shape\":[2,3],\"data_offsets\":[0,24]},\"fc1.bias\":{\"dtype\":\"F32\","
          "\"shape\":[2],\"data_offsets\":[24,32]}}",
          32, "holds no floats" },
        { "{\"fc1.weight\":{\"dtype\":\"F99\",\"shape\":[2,3],\"data_offsets\":[0,24]}}", 24,
          "unknown dtype" },
        { "{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,20]}}", 20,
          "disagree" },
        { "{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967297,3],\"data_offsets\":[0,24]}}",
          24, "the shape overflows" },
        { "{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,24]}}",
          24, "the number is too large" },
        { "{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24],\"x\":1}}",
          24, "unknown or repeated key" },
        { "{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,2,3],\"data_offsets\":[0,24]}}",
          24, "not of shape 2 x 3" },
        { "{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]}}", 32,
          "a gap or an overlap" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[2],"
          "\"data_offsets\":[4,12]}}",
          12, "a gap or an overlap" }
    };
    static const size_t sizes[1] = { 2 };
    static const char header[] = "{" TENSORS "}";
    torch_names how;
    deploy_net d;
    memory_file f;
    memset(&how, 0, sizeof how);
    lgelu_net_begin(&d.net, d.nodes, NET_NODES);
    int x = lgelu_input(&d.net, "x", 1, 1, 3);
    lgelu_mlp(&d.net, x, sizes, 1, LGELU_GATE_RELU, 1);
    size_t bytes = lgelu_net_bytes(&d.net, 1, LGELU_MODE_INFER);
    check(torch_write(&d.net, &how, full, NULL) == LGELU_E_ARGUMENT,
          "torch: a network that is not made is refused", "%s", d.net.message);
    d.block = malloc(bytes);
    if (!d.block || lgelu_net_make(&d.net, d.block, bytes, 1, LGELU_MODE_INFER, 1)) {
        check(0, "network", "%s", d.net.message);
        return;
    }
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        char name[120];
        float before[8], after[8];
        f = safetensors(row[k].header, row[k].bytes);
        for (int i = 0; i < 8; i++)
            d.net.w[i] = before[i] = 1;
        lgelu_status status = torch_read(&d.net, &how, f.data, f.size);
        memcpy(after, d.net.w, sizeof after);
        snprintf(name, sizeof name, "torch: %s",
                 row[k].says ? row[k].says : "a sound file is read");
        if (!row[k].says) {
            check(!status && !(after[0] > 0), name, "%s", d.net.message);
        } else {
            check(status == LGELU_E_FILE && strstr(d.net.message, row[k].says)
                      && !memcmp(before, after, sizeof before),
                  name, "%s", d.net.message);
        }
        free(f.data);
    }
    f = safetensors(header, 32);
    size_t passed = 0;
    for (size_t cut = 0; cut < f.size; cut++)
        passed += !torch_read(&d.net, &how, f.data, cut);
    check(!passed, "torch: a file cut off anywhere is refused", "%lu cuts pass",
          (unsigned long)passed);
    memset(f.data, 255, 8);
    check(torch_read(&d.net, &how, f.data, f.size) && strstr(d.net.message, "longer than 100 MB"),
          "torch: a header longer than 100 MB", "%s", d.net.message);
    check(torch_write(&d.net, &how, full, NULL) == LGELU_E_FILE, "torch: a full disk is reported",
          "%s", d.net.message);
    how.prefix = "a\"b";
    check(torch_write(&d.net, &how, full, NULL) == LGELU_E_ARGUMENT,
          "torch: a name that can't stand in a file", "%s", d.net.message);
    check(!d.net.status, "torch: a refusal leaves the network as it was", "%d", (int)d.net.status);
    free(f.data);
    free(d.block);
}

/* GPT-2's matrices are transposed, and its head has two names. */
static void gpt2(void)
{
    static const lgelu_transformer shape = {
        .layers = 1, .heads = 2, .width = 8, .gate = LGELU_GATE_GELU, .lambda = 1
    };
    static lgelu_node nodes[32];
    lgelu_net net;
    memory_file f = { NULL, 0, 0 };
    torch_names how;
    memset(&how, 0, sizeof how);
    lgelu_net_begin(&net, nodes, 32);
    lgelu_gpt(&net, lgelu_tokens(&net, "tokens", 6, 11), &shape);
    size_t bytes = lgelu_net_bytes(&net, 1, LGELU_MODE_INFER), n;
    void *block = malloc(bytes);
    if (!block || lgelu_net_make(&net, block, bytes, 1, LGELU_MODE_INFER, 1)) {
        check(0, "gpt", "%s", net.message);
        return;
    }
    how.prefix = "transformer.";
    how.conv1d = 1;
    how.tied = 1;
    float *w = (float *)malloc(net.parameter_count * sizeof *w);
    if (!w)
        abort();
    memcpy(w, net.w, net.parameter_count * sizeof *w);
    check(!torch_write(&net, &how, memory_append, &f), "torch: GPT-2 with Conv1D is written", "%s",
          net.message);
    n = (size_t)f.data[0] | (size_t)f.data[1] << 8;
    char *head = (char *)malloc(n + 1);
    if (!head)
        abort();
    memcpy(head, f.data + 8, n);
    head[n] = 0;
    check(strstr(head, "\"transformer.h.0.attn.c_attn.weight\":{\"dtype\":\"F32\",\"shape\":[8,24]")
              && strstr(head,
                        "\"transformer.h.0.mlp.c_proj.weight\":{\"dtype\":\"F32\",\"shape\":[32,8]")
              && strstr(head, "\"transformer.lm_head.weight\":{\"dtype\":\"F32\",\"shape\":[11,8]")
              && strstr(head, "\"transformer.wpe.weight\":{\"dtype\":\"F32\",\"shape\":[6,8]"),
          "torch: with GPT-2's names and shapes", "%s", head);
    free(head);
    for (size_t i = 0; i < net.parameter_count; i++)
        net.w[i] = 0;
    check(!torch_read(&net, &how, f.data, f.size)
              && !memcmp(w, net.w, net.parameter_count * sizeof *w),
          "torch: and read with the same bits", "%s", net.message);
    free(w);
    free(f.data);
    free(block);
}

static void arrays(void)
{
    static const double values[4] = { 1, -2, 100, 0 };
    static const size_t shape[2] = { 2, 2 };
    static const struct {
        const char *head, *says;
    } row[] = { { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", NULL },
                { "{'shape':(4,),'descr':'>f4','fortran_order':True}", NULL },
                { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", "more or fewer" },
                { "{'descr': '<f4', 'fortran_order': False}", "and nothing else" },
                { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), 'x': 1}",
                  "unknown or repeated key" },
                { "{'descr': '<c8', 'fortran_order': False, 'shape': (2,)}", "not known here" },
                { "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}",
                  "expected a type" },
                { "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (4,)}", "True or False" },
                { "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 4, 4)}",
                  "whole number" },
                { "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967297)}",
                  "more or fewer" },
                { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,2,2)}",
                  "more than 12" },
                { "{'descr': '<f4', 'fortran_order': False, 'shape': (4", "expected ','" },
                { "", "expected '{'" } };
    memory_file f = { NULL, 0, 0 };
    char name[256];
    npy a;
    for (int type = NPY_F32; type <= NPY_BOOL; type++) {
        unsigned char data[32];
        int good = 1;
        memset(data, 0, sizeof data);
        for (int k = 0; k < 4; k++) {
            const float v = (float)values[k];
            const double d = values[k];
            const int64_t n = (int64_t)values[k];
            uint16_t h;
            const size_t item = npy_types[type].item;
            const uint16_t s = (uint16_t)n;
            const uint32_t w = (uint32_t)n;
            const unsigned char c = (unsigned char)n;
            lgelu_to_f16(&h, &v, 1);
            memcpy(data + (size_t)k * item,
                   type == NPY_F32   ? (const void *)&v
                   : type == NPY_F64 ? (const void *)&d
                   : type == NPY_F16 ? (const void *)&h
                   : item == 1       ? (const void *)&c
                   : item == 2       ? (const void *)&s
                   : item == 4       ? (const void *)&w
                                     : (const void *)&n,
                   item);
        }
        f.size = 0;
        good = !npy_write((npy_type)type, data, shape, 2, memory_append, &f)
               && !npy_read(&a, f.data, f.size) && a.dims == 2 && a.count == 4
               && a.type == (npy_type)type && (size_t)(a.data - f.data) % 64 == 0
               && !memcmp(a.data, data, 4 * a.item);
        for (size_t k = 0; k < 4 && good; k++) {
            good = values[k] >= 0 || type <= NPY_I64 ? !(fabs(npy_at(&a, k) - values[k]) > 0)
                                                     : npy_at(&a, k) > 200;
        }
        snprintf(name, sizeof name, ".npy: %s is written and read", npy_types[type].name);
        check(good, name, "%s", a.message);
        float part[2] = { 0, 0 };
        npy_floats(part, &a, 1, 2);
        snprintf(name, sizeof name, ".npy: a part of %s as floats", npy_types[type].name);
        check(!(fabs((double)part[0] - (double)(float)npy_at(&a, 1)) > 0)
                  && !(fabs((double)part[1] - (double)(float)npy_at(&a, 2)) > 0),
              name, "%g %g", (double)part[0], (double)part[1]);
    }
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        const size_t n = strlen(row[k].head);
        unsigned char start[10] = {
            0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)n, (unsigned char)(n >> 8)
        };
        f.size = 0;
        memory_append(start, 10, &f);
        memory_append(row[k].head, n, &f);
        memory_append(values, 16, &f);
        snprintf(name, sizeof name, ".npy: %s",
                 row[k].says ? row[k].says : "a sound header is read");
        lgelu_status status = npy_read(&a, f.data, f.size);
        check(row[k].says ? status == LGELU_E_FILE && strstr(a.message, row[k].says) : !status,
              name, "%s", a.message);
    }
    const float table[6] = { 1, 2, 3, 4, 5, 6 };
    const size_t three[2] = { 2, 3 };
    float y[6];
    f.size = 0;
    npy_write(NPY_F32, table, three, 2, memory_append, &f);
    npy_read(&a, f.data, f.size);
    /* This is a (2, 3) array whose rows run fastest: 1 3 5, 2 4 6. */
    a.fortran = 1;
    npy_floats(y, &a, 0, a.count);
    check(y[1] > 2.5f && y[1] < 3.5f && y[3] > 1.5f && y[3] < 2.5f, ".npy: Fortran's order",
          "%g %g", (double)y[1], (double)y[3]);
    float part[2] = { 0, 0 };
    npy_floats(part, &a, 3, 2);
    check(!memcmp(part, y + 3, sizeof part), ".npy: a part in Fortran's order", "%g %g",
          (double)part[0], (double)part[1]);
    float copy[6];
    npy_copy(copy, &a);
    check(!memcmp(copy, y, sizeof y), ".npy: a copy in C's order", "%g %g", (double)copy[1],
          (double)copy[3]);
    a.fortran = 0;
    npy_copy(copy, &a);
    check(!memcmp(copy, table, sizeof table), ".npy: a copy", "%g", (double)copy[1]);
    unsigned char reversed[6 * 4];
    for (size_t k = 0; k < sizeof reversed; k++)
        reversed[k] = a.data[k / 4 * 4 + 3 - k % 4];
    a.data = reversed;
    a.big = 1;
    npy_copy(copy, &a);
    check(!memcmp(copy, table, sizeof table), ".npy: a copy of the other byte order", "%g",
          (double)copy[1]);
    npy_read(&a, f.data, f.size);
    size_t passed = 0;
    for (size_t cut = 0; cut < f.size; cut++)
        passed += !npy_read(&a, f.data, cut);
    check(!passed, ".npy: a file cut off anywhere is refused", "%lu cuts pass",
          (unsigned long)passed);
    free(f.data);
}

/* A network of gates and pools alone can be made and has nothing to save. */
static void without_parameters(void)
{
    deploy_net d;
    memory_file f = { NULL, 0, 0 };
    torch_names how;
    memset(&how, 0, sizeof how);
    lgelu_net_begin(&d.net, d.nodes, NET_NODES);
    d.input = lgelu_input(&d.net, "x", 4, 4, 2);
    d.output = lgelu_flatten(
        &d.net, "f",
        lgelu_max_pool(&d.net, "p", lgelu_gate(&d.net, "g", d.input, LGELU_GATE_RELU, 1), 2, 2, 0));
    check(torch_write(&d.net, &how, memory_append, &f) == LGELU_E_ARGUMENT
              && strstr(d.net.message, "must be made before"),
          "torch: a network that is not made is refused", "%s", d.net.message);
    const size_t bytes = lgelu_net_bytes(&d.net, 1, LGELU_MODE_INFER);
    d.block = malloc(bytes);
    if (!d.block || lgelu_net_make(&d.net, d.block, bytes, 1, LGELU_MODE_INFER, 1)) {
        check(0, "network", "%s", d.net.message);
        return;
    }
    check(!torch_write(&d.net, &how, memory_append, &f) && f.size >= 10
              && !torch_read(&d.net, &how, f.data, f.size),
          "torch: a network without parameters is written and read", "%s", d.net.message);
    free(f.data);
    free(d.block);
}

int main(void)
{
    round_trips();
    refusals();
    gpt2();
    arrays();
    without_parameters();
    return check_end();
}
