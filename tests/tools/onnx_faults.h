/* SPDX-License-Identifier: MIT-0

   onnx_faults.h: faults of a reader of ONNX files, for test_onnx_faults.sh, which includes this in
   a copy of onnx_in.c. A node whose name in the file begins with "fault" is read wrongly, in the
   way that the rest of the name says; onnx_in.c itself reads the same file correctly.

       fault as OP          as another operator
       fault drop NAME      without this attribute
       fault swap I K       with inputs I and K exchanged
       fault omit I         without input I
       fault outputs        with its first two outputs exchanged
       fault turn           two of its dimensions of the same size exchanged
       fault shift N        its elements N places further on
       fault matrix         its matrix transposed
       fault scale          1.25 times as large, or with another epsilon
       fault unmasked       scores without their mask */

/* Exchanges two dimensions of the same size, the last ones that there are. */
static void fault_turn(onnx_view *v)
{
    int i, k;
    for (i = v->atoms - 1; i > 0; i--) {
        for (k = i - 1; k >= 0; k--) {
            if (v->a[i].size == v->a[k].size && v->a[k].stride != ONNX_BATCH) {
                const int64_t stride = v->a[i].stride;
                v->a[i].stride = v->a[k].stride;
                v->a[k].stride = stride;
                return;
            }
        }
    }
}

static void fault_scale(onnx_item *y)
{
    int i;
    for (i = 0; i < 4; i++) {
        y->p[i] *= y->function ? 1 : 1.25;
        y->arg[i] *= 1.25;
    }
    y->scale *= 1.25;
    y->eps += 0.5;
}

/* A node that can be changed. */
typedef struct {
    onnx_node node;
    int input[8], output[8];
    onnx_attribute attribute[8];
} fault_node;

/* Changes the node before it is read. */
static void fault_before(fault_node *f, const char *what, const char *with)
{
    onnx_node *n = &f->node;
    int k;
    if (!strcmp(what, "as")) {
        n->op.p = (const unsigned char *)with;
        n->op.n = strlen(with);
    }
    for (k = 0; k < n->attributes && !strcmp(what, "drop"); k++) {
        if (onnx_is(&f->attribute[k].name, with))
            f->attribute[k--] = f->attribute[--n->attributes];
    }
    if (!strcmp(what, "swap")) {
        const int a = with[0] - '0', b = with[2] - '0', x = f->input[a];
        f->input[a] = f->input[b];
        f->input[b] = x;
    }
    if (!strcmp(what, "omit"))
        f->input[with[0] - '0'] = -1;
    if (!strcmp(what, "outputs")) {
        const int x = f->output[0];
        f->output[0] = f->output[1];
        f->output[1] = x;
    }
}

/* Changes what the node was read as. */
static void fault_after(onnx_model *m, const onnx_node *n, const char *what, const char *with)
{
    onnx_item *y = m->value + n->output[0];
    if (!strcmp(what, "turn"))
        fault_turn(&y->v);
    if (!strcmp(what, "shift"))
        y->v.base += atoi(with);
    if (!strcmp(what, "matrix"))
        m->layer[y->layer].transposed ^= 1;
    if (!strcmp(what, "scale"))
        fault_scale(y);
    if (!strcmp(what, "unmasked"))
        y->causal = 0;
}

static int fault_read(onnx_model *m, const onnx_node *sound,
                      int (*read)(onnx_model *m, const onnx_node *n))
{
    static char text[32][2][32]; /* of all nodes with faults: operators stay */
    static int used;
    char name[64], (*word)[32] = text[used % 32];
    fault_node f;
    onnx_node *n = &f.node;
    size_t k;
    f.node = *sound;
    snprintf(name, sizeof name, "%.*s", (int)n->name.n, (const char *)n->name.p);
    if (strncmp(name, "fault", 5) || n->inputs > 8 || n->outputs > 8 || n->attributes > 8
        || sscanf(name, "fault %31s %31[^\n]", word[0], word[1]) < 1)
        return read(m, sound);
    used++;
    memcpy(f.input, n->input, (size_t)n->inputs * sizeof *f.input);
    memcpy(f.output, n->output, (size_t)n->outputs * sizeof *f.output);
    memcpy(f.attribute, n->attribute, (size_t)n->attributes * sizeof *f.attribute);
    n->input = f.input;
    n->output = f.output;
    n->attribute = f.attribute;
    fault_before(&f, word[0], word[1]);
    for (k = 0; k < sizeof onnx_operators / sizeof *onnx_operators; k++) {
        if (onnx_text_is(n->op, onnx_operators[k].op))
            read = onnx_operators[k].read;
    }
    if (!read(m, n))
        return 0;
    fault_after(m, n, word[0], word[1]);
    return 1;
}
