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
       fault add            a constant or a size that is larger
       fault lost           a constant that is 0 */

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

static void fault_scale(onnx_value *y)
{
    int i;
    for (i = 0; i < 4; i++) {
        y->p[i] *= y->function ? 1 : 1.25;
        y->arg[i] *= 1.25;
    }
    y->scale *= 1.25;
    y->eps += 0.5;
}

static void fault_add(onnx_value *y)
{
    int i;
    y->b += 0.5;
    for (i = 0; i < ONNX_FEW; i++)
        y->few[i].c += !y->few[i].n;
}

static void fault_lose(onnx_value *y)
{
    y->a = y->b = 0;
    y->test = ONNX_NO_TEST;
    memset(y->few, 0, sizeof y->few);
}

/* Changes the node before it is read. */
static void fault_before(onnx_node *n, const char *what, const char *with)
{
    int k;
    if (!strcmp(what, "as")) {
        n->op.p = (const unsigned char *)with;
        n->op.n = strlen(with);
    }
    for (k = 0; k < n->attributes && !strcmp(what, "drop"); k++) {
        deploy_span body;
        onnx_node one;
        memset(&one, 0, sizeof one);
        one.attributes = 1;
        one.attribute[0] = n->attribute[k];
        if (onnx_attribute(&one, with, &body))
            n->attribute[k--] = n->attribute[--n->attributes];
    }
    if (!strcmp(what, "swap")) {
        const int a = with[0] - '0', b = with[2] - '0', x = n->in[a];
        n->in[a] = n->in[b];
        n->in[b] = x;
    }
    if (!strcmp(what, "omit"))
        n->in[with[0] - '0'] = -1;
    if (!strcmp(what, "outputs")) {
        const deploy_span x = n->out[0];
        n->out[0] = n->out[1];
        n->out[1] = x;
    }
}

/* Changes what the node was read as. */
static void fault_after(onnx_model *m, const onnx_node *n, const char *what, const char *with)
{
    onnx_value *y = m->value + onnx_find(m, n->out[0]);
    if (!strcmp(what, "turn"))
        fault_turn(&y->v);
    if (!strcmp(what, "shift"))
        y->v.base += atoi(with);
    if (!strcmp(what, "matrix"))
        m->layer[y->layer].transposed ^= 1;
    if (!strcmp(what, "scale"))
        fault_scale(y);
    if (!strcmp(what, "add"))
        fault_add(y);
    if (!strcmp(what, "lost"))
        fault_lose(y);
}

static int fault_read(onnx_model *m, const onnx_node *sound,
                      int (*read)(onnx_model *m, const onnx_node *n))
{
    static char text[32][2][32]; /* of all nodes with faults: operators stay */
    static int used;
    char name[64], (*word)[32] = text[used % 32];
    onnx_node n = *sound;
    size_t k;
    snprintf(name, sizeof name, "%.*s", (int)n.name.n, (const char *)n.name.p);
    if (strncmp(name, "fault", 5) || sscanf(name, "fault %31s %31[^\n]", word[0], word[1]) < 1)
        return read(m, &n);
    used++;
    fault_before(&n, word[0], word[1]);
    for (k = 0; k < sizeof onnx_operators / sizeof *onnx_operators; k++) {
        if (onnx_text_is(n.op, onnx_operators[k].op))
            read = onnx_operators[k].read;
    }
    if (!read(m, &n))
        return 0;
    fault_after(m, &n, word[0], word[1]);
    return 1;
}
