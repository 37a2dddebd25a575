/* SPDX-License-Identifier: MIT-0
   task.c: the samples of study.h: training part, hold-out, test. The hold-out is drawn from the
   training samples once, by a seed of its own, so that it is the same in every run. */
#include "study.h"
#include "text.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* The streams of random numbers of the first pass, and the seed of the hold-out. */
enum { SHUFFLE = 1 << 20, AUGMENT = 1 << 21, HOLDOUT_SEED = 7 };
/* Numbers of samples; those of text are contexts, evenly over their part. */
enum { MAX_HOLDOUT = 5000, TEXT_HOLDOUT = 512, TEXT_TEST = 4096 };

static int fail(char *error, size_t room, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error, room, format, list);
    va_end(list);
    return -1;
}

uint64_t task_hash(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)data;
    while (bytes--)
        hash = (hash ^ *p++) * UINT64_C(0x100000001B3);
    return hash;
}

static size_t at_most(size_t n, long limit)
{
    return limit > 0 && n > (size_t)limit ? (size_t)limit : n;
}

/* Reads images or a table. */
static int load_data(task *t, const config *c, char *error, size_t room)
{
    data_set *d = &t->data;
    char adult[1024];
    const char *where = c->data, *folder = getenv("LGELU_DATA");
    const int table = t->net->data == FROM_TABLE;
    size_t train, size;
    if (table && !where) {
        if (!folder || snprintf(adult, sizeof adult, "%s/adult", folder) >= (int)sizeof adult) {
            return fail(error, room,
                        "--data: a table is needed, or $LGELU_DATA/adult (get_data.sh fetches it)");
        }
        where = adult;
    }
    if (data_read(d, where, "study"))
        return fail(error, room, "%s", d->error);
    if (!d->train_x && strcmp(t->net->name, "mlp") && !table) {
        return fail(error, room, "--data: %s is a table, and --net %s is for images", d->name,
                    t->net->name);
    }
    train = at_most(d->train, c->samples);
    size = data_size(d);
    snprintf(t->name, sizeof t->name, "%s", d->name);
    t->samples = d->train_x ? "images" : "rows";
    t->regression = !d->classes;
    t->score = table && d->classes == 2 ? "auc" : "accuracy";
    if (t->regression)
        t->score = "loss";
    t->numbers = size;
    t->labels = 1;
    t->classes = t->regression ? 1 : d->classes;
    t->count[PART_TEST] = at_most(d->test, c->test_samples);
    t->count[PART_HOLDOUT] =
        c->holdout >= 0 ? (size_t)c->holdout : at_most(train / 10, MAX_HOLDOUT);
    if (t->count[PART_HOLDOUT] >= train) {
        return fail(error, room, "--holdout: %zu, but there are %zu training %s",
                    t->count[PART_HOLDOUT], train, t->samples);
    }
    t->count[PART_TRAIN] = train - t->count[PART_HOLDOUT];
    if (!(t->order = (uint32_t *)malloc((train + 1) * sizeof *t->order)))
        return fail(error, room, "out of memory");
    if (t->count[PART_HOLDOUT]) {
        lgelu_shuffle(t->order, train, HOLDOUT_SEED, 0);
    } else {
        for (size_t i = 0; i < train; i++)
            t->order[i] = (uint32_t)i;
    }
    for (int i = 0; i < 2; i++) {
        const size_t n = i ? t->count[PART_TEST] : train;
        const unsigned char *y = i ? d->test_y : d->train_y;
        if (d->train_x) {
            t->fingerprint = task_hash(t->fingerprint, i ? d->test_x : d->train_x, n * size);
        } else {
            t->fingerprint =
                task_hash(t->fingerprint, i ? d->test_row : d->train_row, n * size * sizeof(float));
        }
        if (y) {
            t->fingerprint = task_hash(t->fingerprint, y, n);
        } else {
            t->fingerprint =
                task_hash(t->fingerprint, i ? d->test_target : d->train_target, n * sizeof(float));
        }
    }
    return 0;
}

/* y = sin 2x: training draws x from [-π, π], hold-out and test lie evenly there, the test between
   the places of the hold-out */
static int load_sine(task *t, const config *c)
{
    snprintf(t->name, sizeof t->name, "sin 2x");
    t->samples = "points";
    t->score = "loss";
    t->regression = 1;
    t->numbers = t->labels = t->classes = 1;
    t->count[PART_TRAIN] = (size_t)c->batch;
    t->count[PART_HOLDOUT] = c->holdout >= 0 ? (size_t)c->holdout : 500;
    t->count[PART_TEST] = c->test_samples ? (size_t)c->test_samples : 2000;
    return 0;
}

static void point(float x, float *to, int32_t *y)
{
    const float target = (float)sin(2 * (double)x);
    *to = x;
    memcpy(y, &target, sizeof target);
}

/* "$LGELU_DATA/..." is a default: without that file the text is this repository's own */
static const char *text_path(const config *c, char *path, size_t room)
{
    static const char start[] = "$LGELU_DATA/";
    const char *where = c->data ? c->data : c->text, *folder = getenv("LGELU_DATA");
    FILE *f;
    if (!where || strncmp(where, start, sizeof start - 1))
        return where;
    if (!folder || (size_t)snprintf(path, room, "%s/%s", folder, where + sizeof start - 1) >= room)
        return NULL;
    if (!(f = fopen(path, "rb")))
        return NULL;
    fclose(f);
    return path;
}

/* Reads a text: eight tenths are for training, one is held out, one is for the test. */
static int load_text(task *t, const config *c, char *error, size_t room)
{
    text *w = (text *)calloc(1, sizeof *w);
    char path[1024];
    size_t n, tenth, context = (size_t)c->context;
    if (!(t->words = w))
        return fail(error, room, "out of memory");
    if (text_read(w, text_path(c, path, sizeof path)))
        return fail(error, room, "%s", w->error);
    w->marked = c->marks;
    if ((c->bpe ? text_byte_pairs(w, c->bpe) : text_characters(w)) != 0)
        return fail(error, room, "%s", w->error);
    n = at_most(w->tokens, c->samples ? c->samples * c->context : 0);
    tenth = n / 10;
    if (tenth <= context + 1) {
        return fail(error, room,
                    "%s: %zu tokens are too few: a tenth of them must be more than the "
                    "context of %zu",
                    w->name, n, context);
    }
    snprintf(t->name, sizeof t->name, "%s", w->name);
    t->samples = "contexts";
    t->score = "loss";
    t->numbers = t->labels = context;
    t->classes = w->vocabulary;
    t->from[PART_TRAIN] = 0;
    t->from[PART_HOLDOUT] = n - 2 * tenth;
    t->from[PART_TEST] = n - tenth;
    t->from[3] = n;
    if (!c->holdout)
        t->from[PART_HOLDOUT] = t->from[PART_TEST];
    t->count[PART_TRAIN] = t->from[PART_HOLDOUT] / context;
    t->count[PART_HOLDOUT] =
        c->holdout ? at_most((tenth - 1) / context, c->holdout > 0 ? c->holdout : TEXT_HOLDOUT) : 0;
    t->count[PART_TEST] =
        at_most((tenth - 1) / context, c->test_samples ? c->test_samples : TEXT_TEST);
    t->fingerprint = task_hash(t->fingerprint, w->token, n * sizeof *w->token);
    return 0;
}

/* What counts as level: --margin, or that of the network. A table of numbers has its own scale: a
   hundredth of the variance of its training targets. */
static void set_margin(task *t, const config *c)
{
    t->margin = t->net->margin;
    t->margin_text = t->net->margin_text;
    if (c->margin > 0) {
        t->margin = c->margin;
        t->margin_text = "--margin";
    } else if (t->regression && t->net->data != FROM_SINE) {
        const size_t n = t->count[PART_TRAIN] + t->count[PART_HOLDOUT];
        double mean = 0, variance = 0;
        for (size_t i = 0; i < n; i++)
            mean += (double)t->data.train_target[i] / (double)n;
        for (size_t i = 0; i < n; i++) {
            const double away = (double)t->data.train_target[i] - mean;
            variance += away * away / (double)n;
        }
        t->margin = variance / 100;
        t->margin_text = "a hundredth of the variance of the training targets";
    }
}

int task_load(task *t, const config *c, char *error, size_t room)
{
    const char *wrong;
    int bad;
    t->net = net_table + c->net;
    t->fingerprint = UINT64_C(0xCBF29CE484222325);
    switch (t->net->data) {
    case FROM_TEXT: bad = load_text(t, c, error, room); break;
    case FROM_SINE: bad = load_sine(t, c); break;
    default: bad = load_data(t, c, error, room); break;
    }
    if (bad)
        return -1;
    t->percent = strcmp(t->score, "loss") != 0;
    t->sign = t->percent ? 1 : -1;
    t->unit = t->regression ? "squared error" : "nats";
    if (t->percent)
        t->unit = "points";
    set_margin(t, c);
    wrong = t->net->check(t, c);
    if (wrong)
        return fail(error, room, "%s", wrong);
    if (t->order && (size_t)c->batch > t->count[PART_TRAIN]) {
        return fail(error, room, "--batch: %ld, but there are %zu training %s", c->batch,
                    t->count[PART_TRAIN], t->samples);
    }
    /* The last, incomplete batch is left out. Its samples are others in each pass. */
    t->pass_steps = (long)(t->count[PART_TRAIN] / (size_t)c->batch);
    if (!t->pass_steps)
        t->pass_steps = 1;
    return 0;
}

int task_reads(const void *t, const char *path)
{
    const task *from = (const task *)t;
    return data_reads(&from->data, path)
           || (from->words && text_reads((const text *)from->words, path));
}

void task_free(task *t)
{
    data_free(&t->data);
    if (t->words)
        text_free((text *)t->words);
    free(t->words);
    free(t->order);
}

/* Copies a context and, as labels, the tokens that follow each of its tokens. */
static void window(const task *t, size_t at, int32_t *x, int32_t *y)
{
    const int32_t *token = ((const text *)t->words)->token + at;
    memcpy(x, token, t->numbers * sizeof *x);
    memcpy(y, token + 1, t->labels * sizeof *y);
}

void task_samples(const task *t, part which, size_t first, size_t n, void *x, int32_t *y)
{
    const size_t many = t->count[which];
    if (t->order) {
        const uint32_t *pick = NULL;
        if (which != PART_TEST)
            pick = t->order + (which == PART_HOLDOUT ? t->count[PART_TRAIN] : 0);
        data_batch((float *)x, t->regression ? NULL : y, &t->data,
                   which == PART_TEST ? DATA_TEST : DATA_TRAIN, pick, first, n);
        for (size_t i = 0; t->regression && i < n; i++) {
            const float *target = which == PART_TEST ? t->data.test_target : t->data.train_target;
            memcpy(y + i, target + (pick ? pick[first + i] : first + i), sizeof *y);
        }
        return;
    }
    for (size_t k = first; k < first + n; k++) {
        if (t->net->data == FROM_SINE) {
            point((float)(3.14159265358979
                          * (2 * ((double)k + (which == PART_TEST ? 0.25 : 0.75)) / (double)many
                             - 1)),
                  (float *)x + (k - first), y + (k - first));
        } else {
            size_t room = t->from[which + 1] - t->from[which] - t->numbers - 1;
            window(t, t->from[which] + (many > 1 ? (size_t)((uint64_t)k * room / (many - 1)) : 0),
                   (int32_t *)x + (k - first) * t->numbers, y + (k - first) * t->labels);
        }
    }
}

/* Copies a training batch, which depends on seed and step alone: it is the same in every arm. */
void task_batch(const task *t, const config *c, uint64_t seed, long step, void *x, int32_t *y,
                uint32_t *order, long *order_pass)
{
    const data_set *d = &t->data;
    const size_t batch = (size_t)c->batch, first = (size_t)(step % t->pass_steps) * batch;
    const long pass = step / t->pass_steps;
    /* Points and contexts are drawn from random places. */
    if (!t->order) {
        for (size_t i = 0; i < batch; i++) {
            if (t->net->data == FROM_SINE) {
                point((2 * lgelu_uniform(seed, (uint64_t)(SHUFFLE + step), i) - 1) * 3.14159265f,
                      (float *)x + i, y + i);
            } else {
                window(t,
                       (size_t)(((uint64_t)lgelu_random(seed, (uint64_t)step, i)
                                 * (t->from[PART_HOLDOUT] - t->numbers))
                                >> 32),
                       (int32_t *)x + i * t->numbers, y + i * t->labels);
            }
        }
        return;
    }
    if (pass != *order_pass) {
        lgelu_shuffle(order, t->count[PART_TRAIN], seed, (uint64_t)(SHUFFLE + pass));
        for (size_t i = 0; i < t->count[PART_TRAIN]; i++)
            order[i] = t->order[order[i]];
        *order_pass = pass;
    }
    data_batch((float *)x, t->regression ? NULL : y, d, DATA_TRAIN, order, first, batch);
    for (size_t i = 0; i < batch; i++) {
        const size_t k = order[first + i];
        if (t->regression)
            memcpy(y + i, d->train_target + k, sizeof *y);
        if (c->augment && d->train_x) {
            data_augment((float *)x + i * t->numbers, d->train_x + k * t->numbers, d, 4,
                         c->augment == 2, lgelu_random(seed, (uint64_t)(AUGMENT + pass), k));
        }
    }
}

/* ---- the area under the curve: the fraction of pairs in the right order ---- */
typedef struct {
    double score;
    int32_t label;
} scored_sample;

static int by_score(const void *a, const void *b)
{
    double p = ((const scored_sample *)a)->score, q = ((const scored_sample *)b)->score;
    return p < q ? -1 : p > q;
}

double task_auc(const double *score, const int32_t *label, size_t n)
{
    scored_sample *j = (scored_sample *)malloc((n + 1) * sizeof *j);
    double below = 0, right = 0, positive = 0;
    if (!j)
        return (double)NAN;
    for (size_t i = 0; i < n; i++) {
        j[i].score = score[i];
        j[i].label = label[i];
    }
    qsort(j, n, sizeof *j, by_score);
    /* Of ties, half count as being in the right order. */
    for (size_t i = 0, k; i < n; i = k) {
        double ones = 0, zeros = 0;
        for (k = i; k < n && !(j[k].score > j[i].score); k++) {
            if (j[k].label)
                ones++;
            else
                zeros++;
        }
        right += ones * (below + zeros / 2);
        below += zeros;
        positive += ones;
    }
    free(j);
    return positive > 0 && below > 0 ? 100 * (right / (positive * below)) : (double)NAN;
}
