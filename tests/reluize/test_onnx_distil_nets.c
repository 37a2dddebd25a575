/* SPDX-License-Identifier: MIT-0
   test_onnx_distil_nets.c: some steps of distillation (onnx_distil.h) of small networks: how many
   elements and inner values take part, where gradients end, the losses of each step, and the
   numbers of the file that is written; or why a pair of networks is refused. test_onnx_distil has
   losses and steps beside their definitions. */
#define LGELU_TRAINER
#include "onnx_distil.h"
#include "tools/onnx_found.h"

/* original: NULL: the student with SiLU in place of Relu. options: see distil. */
typedef struct {
    const char *name, *options, *original, *student, *expected;
} test_case;

#define LAYERS                                                                              \
    "x : 6 4; u[5,4] ~ 0.9; b[5] = 1 -1 0.5 0.1 0; h = Gemm x u b | transB=1; y = Relu h; " \
    "w[5,3] ~ 1; "                                                                          \
    "d[3] = 1 2 3; o = Gemm y w d"
static const test_case cases[] = {
    { "layers", "", NULL, LAYERS "; -> o",
      "43 elements, 1 inner values. 0.012629 and 0 of 4. 0.0094707 and 0.00031538 of 4. "
      "0.0076667 and 0.00098734 of 4. u 0.216421; b 0.554521; w 0.344439; d 9.05312; " },
    { "many steps", "steps=40", NULL, LAYERS "; -> o",
      "43 elements, 1 inner values. 0.012629 and 0 of 4. 0.0094707 and 0.00031538 of 4. "
      "0.0076667 and 0.00098734 of 4. 0.0039481 and 0.00032686 of 4. u 0.281305; b "
      "0.69038; w 0.413916; d 9.1207; " },
    { "without whitening", "whiten=0", NULL, LAYERS "; -> o",
      "43 elements, 1 inner values. 0.012629 and 0 of 4. 0.0092532 and 0.0010505 of 4. "
      "0.0061689 and 0.00081183 of 4. u 0.187855; b 0.667858; w 0.439641; d 9.04682; " },
    { "without inner values", "inner=0", NULL, LAYERS "; -> o",
      "43 elements, 1 inner values. 0.012629 and 0 of 4. 0.0094707 and 0.00031538 of 4. "
      "0.0075796 and 0.0011069 of 4. u 0.203495; b 0.569831; w 0.344459; d 9.05311; " },
    { "two slots", "slots=2", NULL, LAYERS "; -> o",
      "43 elements, 1 inner values. 0.014179 and 0 of 4. 0.011079 and 0.00030131 of 4. "
      "0.0086721 and 0.0010238 of 4. u 0.226238; b 0.558119; w 0.321511; d 9.07561; " },
    { "another rate", "rate=0.1", NULL, LAYERS "; -> o",
      "43 elements, 1 inner values. 0.012629 and 0 of 4. 0.071809 and 0.031538 of 4. "
      "0.014273 and 0.0091827 of 4. u 0.729285; b 0.438822; w 0.338619; d 9.04493; " },
    { "classes by logits", "class=1", NULL, LAYERS "; -> o",
      "43 elements, 1 inner values. 0.038344 and 0 of 4. 0.032832 and 0.00029712 of 4. "
      "0.025852 and 0.001005 of 4. u 0.164992; b 0.591705; w 0.426246; d 9.03941; " },
    { "classes by probabilities", "class=1", NULL, LAYERS "; p = Softmax o | axis=1; -> p",
      "43 elements, 2 inner values. 0.038344 and 0.0063146 of 4. 0.032546 and 0.0049961 of "
      "4. 0.025631 and 0.0042982 of 4. u 0.170865; b 0.587089; w 0.407253; d 9.04496; " },
    { "classes along the first axis", "class=0", NULL, LAYERS "; -> o",
      "43 elements, 1 inner values. 0.010534 and 0 of 4. 0.011593 and 0.00047719 of 4. "
      "0.0092337 and 0.00052923 of 4. u 0.272814; b 0.645001; w 0.560777; d 8.88436; " },
    { "detections", "", NULL,
      LAYERS
      "; s[2]i = 2 1; box logit = Split o s | axis=1; p = Sigmoid logit; y2 = Concat box p | "
      "axis=1; -> "
      "y2",
      "43 elements, 2 inner values. 0.4344 and 0.0063146 of 4. 0.37257 and 0.0048803 of 4. "
      "0.25749 and 0.0043017 of 4. u 0.237136; b 0.553853; w 0.354485; d 9.04547; " },
    { "detections with a score", "score=2", NULL,
      LAYERS
      "; s[2]i = 1 2; box logit = Split o s | axis=1; p = Sigmoid logit; y2 = Concat box p | "
      "axis=1; -> "
      "y2",
      "43 elements, 2 inner values. 0.31428 and 0.0063146 of 4. 0.26882 and 0.0049072 of "
      "4. 0.18785 and 0.004335 of 4. u 0.175456; b 0.583655; w 0.321484; d 9.03821; " },
    { "the second of two outputs", "class=1 output=1", NULL, LAYERS "; a = Relu o; -> a o",
      "43 elements, 1 inner values. 0.11097 and 0 of 4. 0.11145 and 0.00030836 of 4. "
      "0.084834 and 0.0010289 of 4. u 0.113268; b 0.575094; w 0.463655; d 8.93238; " },
    { "labels of classes", "class=1 labels=1", NULL, LAYERS "; -> o",
      "43 elements, 1 inner values. 8.7894 and 0 of 4. 9.3456 and 0 of 4. 6.1149 and 0 of "
      "4. u 0.257863; b 0.468522; w 0.383809; d 8.97474; " },
    { "labels of targets", "labels=1", NULL, LAYERS "; -> o",
      "43 elements, 1 inner values. 26.248 and 0 of 4. 19.572 and 0 of 4. 18.029 and 0 of "
      "4. u 0.109386; b 0.501248; w 0.273378; d 8.86624; " },
    { "the original and labels of classes", "class=1 label_weight=0.5", NULL, LAYERS "; -> o",
      "43 elements, 1 inner values. 4.4331 and 0 of 4. 4.7113 and 0.00036869 of 4. 3.0822 "
      "and 0.0011346 of 4. u 0.253573; b 0.473209; w 0.377084; d 8.98825; " },
    { "the original and labels of targets", "label_weight=0.01", NULL, LAYERS "; -> o",
      "43 elements, 1 inner values. 0.27511 and 0 of 4. 0.20721 and 0.0003094 of 4. "
      "0.19021 and 0.0011225 of 4. u 0.122718; b 0.496494; w 0.313417; d 8.90709; " },
    { "labels of classes by probabilities", "class=1 labels=1", NULL,
      LAYERS "; p = Softmax o | axis=1; -> p",
      "43 elements, 2 inner values. 8.7894 and 0 of 4. 9.3456 and 0 of 4. 6.1149 and 0 of "
      "4. u 0.257863; b 0.468522; w 0.383809; d 8.97474; " },
    { "MatMul and Add", "", NULL,
      "x : 6 4; u[4,5] ~ 0.9; m = MatMul x u; b[5] = 1 -1 0.5 0.1 0; h = Add m b; y = Relu h; "
      "w[5,3] ~ 1; o = "
      "MatMul y w; -> o",
      "40 elements, 1 inner values. 0.07385 and 0 of 4. 0.046148 and 0.00038797 of 4. "
      "0.04208 and 0.0008516 of 4. u 0.60028; b 0.566729; w 0.519669; " },
    { "an Add whose first operand is the biases", "", NULL,
      "x : 6 4; u[4,5] ~ 0.9; m = MatMul x u; b[5] = 1 -1 0.5 0.1 0; h = Add b m; y = Relu h; "
      "w[5,3] ~ 1; o = MatMul y w; -> o",
      "40 elements, 1 inner values. 0.07385 and 0 of 4. 0.046148 and 0.00038797 of 4. "
      "0.04208 and 0.0008516 of 4. u 0.60028; b 0.566729; w 0.519669; " },
    { "an inner value of half the size in the student", "half=1", NULL, LAYERS "; -> o",
      "43 elements, 1 inner values. 0.012629 and 2.4316 of 4. 0.011226 and 2.0156 of 4. "
      "0.0095009 and 1.9198 of 4. u 0.219907; b 0.647704; w 0.359985; d 9.05264; " },
    { "an inner value whose channels have sizes of their own in the student", "channels=1", NULL,
      LAYERS "; -> o",
      "43 elements, 1 inner values. 0.012629 and 2.2536 of 4. 0.012183 and 2.4571 of 4. "
      "0.010483 and 2.1368 of 4. u -0.0110451; b 0.562004; w 0.351147; d 9.05343; " },
    { "a matrix on the left", "", NULL,
      "x : 1 4 5; u[5,4] ~ 0.9; h = MatMul u x; y = Relu h; w[3,5] ~ 1; o = MatMul w y; -> o",
      "35 elements, 1 inner values. 3.5662 and 0 of 4. 6.2079 and 0.0022913 of 4. 7.7551 "
      "and 0.0068009 of 4. u 0.0820584; w -0.479799; " },
    { "convolutions", "", NULL,
      "x : 1 3 5 6; k[4,3,3,3] ~ 0.4; b[4] = 0.1 -0.2 0.3 0; c = Conv x k b | pads=1,1,1,1; g = "
      "Relu c; "
      "v[4,2,3,1] ~ 0.5; e = Conv g v | group=2; f = Relu e; w[4,1,2,2] ~ 1; o = Conv f w | "
      "group=4 strides=2,2; "
      "-> o",
      "152 elements, 2 inner values. 0.49824 and 0.012241 of 4. 0.38732 and 0.012402 of 4. "
      "0.32843 and 0.012851 of 4. k -0.142439; b 0.375304; v -1.3682; w 0.673625; " },
    { "transposed convolutions", "", NULL,
      "x : 1 3 4 4; k[3,4,2,2] ~ 0.6; c = ConvTranspose x k | strides=2,2; g = Relu c; w[2,4,1,1] "
      "~ 1; o = Conv "
      "g w; -> o",
      "56 elements, 1 inner values. 0.9036 and 0 of 4. 0.70157 and 0.0060013 of 4. 0.53181 "
      "and 0.019328 of 4. k -0.0643036; w 3.8074; " },
    { "a normalisation of layers", "", NULL,
      "x : 6 4; u[4,4] ~ 1; h = MatMul x u; s[4] = 1 2 1 0.5; t[4] = 0 1 0 0; n = "
      "LayerNormalization h s t; y = "
      "Relu n; w[4,3] ~ 1; o = MatMul y w; -> o",
      "36 elements, 1 inner values. 0.040124 and 0 of 4. 0.035559 and 0.00038888 of 4. "
      "0.023058 and 0.0010336 of 4. u -5.43305; s 6.55875; t 1.38294; w 0.66329; " },
    { "constants of a gate", "",
      "x : 6 4; u[4,4] ~ 1; h = MatMul x u; y = Softplus h; w[4,3] ~ 1; o = MatMul y w; -> o",
      "x : 6 4; u[4,4] ~ 1; h = MatMul x u; y_kink[4] = 0.1 0.2 0.3 0.4; y_Sub = Sub h y_kink; "
      "y_Relu = Relu "
      "y_Sub; y_slope[4] = 1 1.1 0.9 1; y_Mul = Mul y_Relu y_slope; y_base = 0.2; y = Add y_Mul "
      "y_base; w[4,3] "
      "~ 1; o = MatMul y w; -> o",
      "37 elements, 1 inner values. 0.49879 and 0 of 4. 0.66594 and 0.0002925 of 4. "
      "0.44006 and 0.0012892 of 4. u -5.5527; y_kink 1.71422; y_slope 6.18354; y_base "
      "0.205809; w 0.580684; " },
    { "a table of tokens", "", NULL,
      "x :i 6; e[8,4] ~ 1; g = Gather e x; y = Relu g; w[4,3] ~ 1; o = MatMul y w; -> o",
      "12 elements, 0 inner values. 0.60222 and 0 of 4. 0.56463 and 0 of 4. 0.47521 and 0 "
      "of 4. w 0.532223; " },
    { "a table of tokens, with labels", "labels=1 class=1", NULL,
      "x :i 6; e[8,4] ~ 1; g = Gather e x; y = Relu g; w[4,3] ~ 1; o = MatMul y w; -> o",
      "44 elements, 0 inner values. 4.8935 and 0 of 4. 4.613 and 0 of 4. 4.3026 and 0 of "
      "4. e 5.56275; w 0.584987; " },
    { "an LSTM", "", NULL,
      "x : 3 2 3; u[3,3] ~ 1; h = MatMul x u; y = Relu h; w[1,8,3] ~ 1; r[1,8,2] ~ 1; b[1,16] ~ "
      "1; o = LSTM y w r "
      "b | hidden_size=2; -> o",
      "65 elements, 1 inner values. 0.21485 and 0 of 4. 0.1535 and 0.00034135 of 4. "
      "0.46426 and 0.0011166 of 4. u 0.569729; w 3.4317; r -9.68406; b 7.83377; " },
    { "a weight of two nodes", "", NULL,
      "x : 6 4; u[4,4] ~ 0.8; h = MatMul x u; y = Relu h; i = MatMul y u; z = Relu i; w[4,3] ~ 1; "
      "o = MatMul z w; "
      "-> o",
      "28 elements, 2 inner values. 0.14796 and 0.069312 of 4. 0.12868 and 0.061211 of 4. "
      "0.14672 and 0.052759 of 4. u -4.27733; w 0.581105; " },
    { "gradients end", "", NULL,
      "x : 6 4; u[4,4] ~ 0.8; h = MatMul x u; y = Relu h; s = SequenceConstruct y; k[1]i = 0; "
      "r = SequenceAt s k; w[4,3] ~ 1; o = MatMul r w; -> o",
      "28 elements, 1 inner values, ends at 3. 0.088859 and 0 of 4. 0.05858 and 0 of 4. "
      "0.07571 and 0.00010302 of 4. u -4.37263; w 0.508642; " },
    { "nothing to train", "", NULL, "x : 6 4; y = Relu x; -> y",
      "0 elements, 0 inner values. 0.10724 and 0 of 4. 0.10141 and 0 of 4. 0.098635 and 0 "
      "of 4. " },
    { "another number of outputs", "", LAYERS "; -> o y", LAYERS "; -> o",
      "43 elements, 1 inner values. 0 and 0 of 4. 0 and 0 of 4. 0.00025226 and 0.00013138 "
      "of 4. u 0.239838; b 0.695492; w 0.385931; d 8.94143; " },
    { "an output that is inside of the student", "", LAYERS "; -> y", LAYERS "; -> o",
      "43 elements, 1 inner values. 0 and 0 of 4. 0 and 0 of 4. 0 and 4.1842e-05 of 4. u "
      "0.244842; b 0.701668; w 0.349219; " },
    { "another number of inputs", "", "v : 2; " LAYERS "; -> o", LAYERS "; -> o",
      "43 elements, 1 inner values. an input could not be set" },
    { "a limit of memory", "memory=200", NULL, LAYERS "; -> o",
      "initializer 'u': a value of 128 bytes beside 192 bytes exceeds the limit of 200" },
};

enum { STEPS = 3, EACH = 4 };

/* The student's text with SiLU in place of its gates. */
static void smooth(const char *text, char *to)
{
    const char *at;
    size_t n = 0;
    for (; (at = strstr(text, " = Relu ")) != NULL; text = at + strcspn(at, ";")) {
        const char *name = at, *input = at + strlen(" = Relu ");
        while (name > text && name[-1] != ' ')
            name--;
        n += (size_t)sprintf(to + n, "%.*ss_%.*s = Sigmoid %.*s; %.*s = Mul %.*s s_%.*s",
                             (int)(name - text), text, (int)(at - name), name,
                             (int)strcspn(input, ";"), input, (int)(at - name), name,
                             (int)strcspn(input, ";"), input, (int)(at - name), name);
    }
    strcpy(to + n, text);
}

static void set_labels(onnx_distil *d, size_t slot, const onnx_graph *g, size_t n, int classes)
{
    double label[64];
    const size_t count = classes ? 6 : 18;
    (void)g;
    for (size_t i = 0; i < count; i++)
        label[i] = classes ? (double)((i + n) % 3) : (double)lgelu_uniform(3, n, i);
    onnx_distil_label(d, slot, label, count);
}

static int set_input(onnx_distil *d, size_t slot, const onnx_graph *g, size_t n)
{
    onnx_tensor *in[4] = { NULL };
    for (int k = 0; k < g->top.inputs; k++)
        in[k] = input_of(onnx_distil_run(d, slot), g, k, 1, n);
    return onnx_distil_set(d, slot, in);
}

static int run_steps(onnx_distil *d, const test_case *c, const onnx_graph *g, size_t slots)
{
    const int classes = option(c->options, "class", -1) >= 0;
    for (size_t k = 0; k < slots; k++) {
        if (set_input(d, k, g, 50 + k))
            return -1;
    }
    if (onnx_distil_learn(d, slots))
        return -1;
    const size_t steps = (size_t)option(c->options, "steps", STEPS);
    for (size_t step = 0; step < steps; step++) {
        onnx_distil_loss loss = { 0, 0, 0 };
        onnx_distil_begin_step(d);
        for (size_t i = 0; i < EACH; i += slots) {
            for (size_t k = 0; k < slots; k++) {
                if (set_input(d, k, g, EACH * step + i + k))
                    return -1;
                if (option(c->options, "labels", 0) > 0
                    || option(c->options, "label_weight", 0) > 0)
                    set_labels(d, k, g, EACH * step + i + k, classes);
            }
            if (onnx_distil_pass(d, slots, 1, &loss))
                return -1;
        }
        if (onnx_distil_update(d, option(c->options, "rate", 0.01)))
            return -1;
        if (step < STEPS || step + 1 == steps)
            add("%.5g and %.5g of %lu. ", plain(loss.outputs), plain(loss.inner),
                (unsigned long)loss.inputs);
    }
    return 0;
}

/* The numbers of the file that is written, without those that did not change. */
static void add_written(const onnx_distil *d, const onnx_graph *before)
{
    char said[160] = "";
    memory_file file = { NULL, 0, 0 };
    onnx_edit *e = onnx_distil_edit(d);
    onnx_edit_write(e, memory_append, &file, said);
    onnx_edit_end(e);
    onnx_graph *g = onnx_graph_open(file.data, file.size, NULL, NULL, said);
    onnx_run *old = onnx_run_begin(before, NULL, said),
             *run = g ? onnx_run_begin(g, NULL, said) : NULL;
    for (int v = 0; run && v < g->values; v++) {
        const onnx_tensor *x = run->constant[v];
        if (!x || !onnx_is_float(x->type) || g->value[v].maker >= 0)
            continue;
        if (v < before->values && old->constant[v] && fabs(mixed(x) - mixed(old->constant[v])) <= 0)
            continue;
        add_name(g, v);
        add(" %.6g; ", mixed(x));
    }
    add("%s", said);
    if (run)
        onnx_run_end(run);
    onnx_run_end(old);
    onnx_graph_close(g);
    free(file.data);
}

static void distil(const test_case *c, const onnx_graph *original, const onnx_graph *student)
{
    static const float half[2] = { 0.5f, 8 }; /* the second one is no part of it */
    static const float each[5] = { 0.5f, 1, 2, -1, 0.25f }, shift[5] = { 0, 0.1f, 0, 0.2f, 0 };
    onnx_distil_map map = { 0, 0, 1, half, NULL };
    onnx_distil_options o = onnx_distil_defaults();
    char said[160] = "";
    o.slots = (size_t)option(c->options, "slots", 1);
    o.inner = option(c->options, "inner", o.inner);
    o.output = (int)option(c->options, "output", o.output);
    o.class_axis = (int)option(c->options, "class", o.class_axis);
    o.labels = (int)option(c->options, "labels", 0);
    o.label_weight = option(c->options, "label_weight", 0);
    o.score = (long)option(c->options, "score", (double)o.score);
    o.whiten = (int)option(c->options, "whiten", o.whiten);
    if (option(c->options, "half", 0) > 0) {
        map.value = onnx_graph_find(original, "h");
        o.map = &map;
        o.maps = 1;
    }
    if (option(c->options, "channels", 0) > 0) {
        const onnx_distil_map by_channel = { onnx_graph_find(original, "h"), -1, 5, each, shift };
        map = by_channel;
        o.map = &map;
        o.maps = 1;
    }
    o.run.memory = (size_t)option(c->options, "memory", 0);
    o.run.single_thread = 1;
    onnx_distil *d = onnx_distil_begin(original, student, &o, said);
    if (!d) {
        add("%s", said);
        return;
    }
    add("%lu elements, %lu inner values", (unsigned long)onnx_distil_elements(d),
        (unsigned long)onnx_distil_targets(d));
    for (int k = 0; onnx_distil_ended(d, k) >= 0; k++)
        add(", ends at %d", onnx_distil_ended(d, k));
    add(". ");
    if (run_steps(d, c, original, o.slots)) {
        add("%s", onnx_distil_message(d));
    } else {
        onnx_distil_keep(d);
        add_written(d, student);
    }
    onnx_distil_end(d);
}

static void check_case(const test_case *c)
{
    static char text[TEXT_MOST];
    char said[160] = "";
    if (c->original)
        strcpy(text, c->original);
    else
        smooth(c->student, text);
    const memory_file first = text_model(text, 17), second = text_model(c->student, 17);
    onnx_graph *original = onnx_graph_open(first.data, first.size, NULL, NULL, said);
    onnx_graph *student = onnx_graph_open(second.data, second.size, NULL, NULL, said);
    found_text[0] = 0;
    if (original && student)
        distil(c, original, student);
    else
        add("%s", said);
    check(!strcmp(found_text, c->expected), c->name, "%s", found_text);
    onnx_graph_close(original);
    onnx_graph_close(student);
    free(first.data);
    free(second.data);
}

int main(void)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_case(cases + k);
    return check_end();
}
