/* SPDX-License-Identifier: MIT-0
   checkpoint.c: --save and --resume. The file holds the options that the bits depend on, the
   numbers of all runs so far, and the networks of each family in training with their optimisers. No
   clock goes in. */
#include "study.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct {
    char text[MAX_OPTIONS * (OPTION_TEXT + 64)];
    const char *pair[MAX_OPTIONS + 4][2];
    int pairs;
} kept;

static int keeps(const option *o) { return o->matters != OPT_HOW; }

/* Returns whether an option says where samples are, which may change: they are compared. */
static int is_place(const option *o)
{
    return !strcmp(o->name, "data") || !strcmp(o->name, "text") || !strcmp(o->name, "bpe");
}

/* ==== options ==== */
/* Orders the axes as in the file: runs are numbered by them. */
static void order_axes(study *s, const char *names)
{
    for (int k = 0; k < s->axes; k++, names += *names == ',') {
        const size_t n = strcspn(names, ",");
        for (int i = k; i < s->axes; i++) {
            if (strlen(s->axis[i].option->name) == n
                && !strncmp(names, s->axis[i].option->name, n)) {
                const axis other = s->axis[k];
                s->axis[k] = s->axis[i];
                s->axis[i] = other;
                break;
            }
        }
        names += n;
    }
}

/* What wasn't given comes from the checkpoint; what was must agree with it. */
int checkpoint_options(study *s)
{
    static char text[MAX_OPTIONS][4 * OPTION_TEXT];
    const char *path = s->config.resume;
    char key[64], word[4 * OPTION_TEXT];
    /* Errors from here on are the file's, not the command's. */
    s->usage = 0;
    if (!(s->file = output_read(path, &s->file_bytes)))
        return study_fail(s, "--resume: %s: %s", path, strerror(errno));
    if (!lgelu_metadata(s->file, s->file_bytes, "study", word, sizeof word)
        || (s->experiment && strcmp(word, s->experiment->name))) {
        return study_fail(s, "--resume: %s: is no checkpoint of %s", path,
                          s->experiment ? s->experiment->name : "a study");
    }
    for (int i = 0; i < experiment_count; i++) {
        if (!strcmp(experiment_table[i]->name, word))
            s->experiment = experiment_table[i];
    }
    if (!s->experiment) {
        return study_fail(
            s, "--resume: %s: is of an experiment '%.60s', which this program has not", path, word);
    }
    for (int i = 0; i < option_count; i++) {
        const option *o = option_table + i;
        if (!keeps(o))
            continue;
        snprintf(key, sizeof key, "option.%s", o->name);
        if (!lgelu_metadata(s->file, s->file_bytes, key, text[i], sizeof text[i]))
            return study_fail(s, "--resume: %s: has no --%s", path, o->name);
        if (s->given[i] && !is_place(o)) {
            option_list(word, sizeof word, s, o);
            s->usage = 1;
            if (strcmp(word, text[i])) {
                return study_fail(s, "--%s: %s, but %s was begun with %s", o->name, word, path,
                                  text[i]);
            }
            s->usage = 0;
        } else if (!s->given[i]) {
            if (*text[i] && option_take(s, o, text[i]))
                return -1;
            if (!*text[i] && o->kind == KIND_TEXT)
                *(const char **)(void *)((char *)&s->config + o->offset) = NULL;
        }
    }
    if (lgelu_metadata(s->file, s->file_bytes, "axes", word, sizeof word))
        order_axes(s, word);
    if (!s->config.save)
        s->config.save = path;
    s->usage = 1;
    return 0;
}

int checkpoint_keep_options(study *s)
{
    char *at = kept.text, *end = at + sizeof kept.text;
    const char *(*p)[2] = kept.pair;
    (*p)[0] = "study";
    (*p++)[1] = s->experiment->name;
    (*p)[0] = "data";
    (*p++)[1] = at;
    at += snprintf(at, (size_t)(end - at), "%016llx", (unsigned long long)s->task.fingerprint) + 1;
    (*p)[0] = "axes";
    (*p++)[1] = at;
    for (int k = 0; k < s->axes; k++)
        at += snprintf(at, (size_t)(end - at), "%s%s", k ? "," : "", s->axis[k].option->name);
    *at++ = 0;
    for (int i = 0; i < option_count; i++) {
        if (keeps(option_table + i)) {
            (*p)[0] = at;
            at += snprintf(at, (size_t)(end - at), "option.%s", option_table[i].name) + 1;
            (*p++)[1] = at;
            option_list(at, (size_t)(end - at), s, option_table + i);
            at += strlen(at) + 1;
        }
    }
    kept.pairs = (int)(p - kept.pair);
    return 0;
}

/* ==== the state: numbers as one text, written and read by the same lines ==== */
typedef struct {
    char *text;
    size_t at, room;
    int reading, bad;
} tape;

/* Writes or reads a word without spaces. */
static void word(tape *r, char *w, size_t room)
{
    if (r->bad)
        return;
    if (r->reading) {
        size_t n;
        r->at += strspn(r->text + r->at, " ");
        n = strcspn(r->text + r->at, " ");
        if (!n || n >= room) {
            r->bad = 1;
            return;
        }
        memcpy(w, r->text + r->at, n);
        w[n] = 0;
        r->at += n;
    } else {
        size_t n = strlen(w);
        if (r->room < r->at + n + 2) {
            char *more = (char *)realloc(r->text, r->room = 2 * r->room + n + 65536);
            if (!more) {
                r->bad = 1;
                return;
            }
            r->text = more;
        }
        memcpy(r->text + r->at, w, n);
        strcpy(r->text + r->at + n, " ");
        r->at += n + 1;
    }
}

static void real(tape *r, double *v)
{
    char text[40], *end;
    if (!r->reading) {
        snprintf(text, sizeof text, "%.15g", *v);
        double back = decimal_read(text, NULL);
        if (back < *v || back > *v)
            snprintf(text, sizeof text, "%.17g", *v);
    }
    word(r, text, sizeof text);
    if (r->reading && !r->bad) {
        *v = decimal_read(text, &end);
        r->bad = *end != 0;
    }
}

static long whole(tape *r, long v, long least, long most)
{
    double d = (double)v;
    real(r, &d);
    if (!(d >= (double)least && d <= (double)most)) {
        r->bad = 1;
        d = (double)least;
    }
    return (long)d;
}

/* Ranks the quantities by their names: their indices depend on which thread was first. */
static void ranks(const study *s, short rank[MAX_QUANTITIES], short by_rank[MAX_QUANTITIES])
{
    for (int q = 0; q < s->quantities; q++) {
        rank[q] = 0;
        for (int k = 0; k < s->quantities; k++)
            rank[q] = (short)(rank[q] + (strcmp(s->quantity[k], s->quantity[q]) < 0));
        by_rank[rank[q]] = (short)q;
    }
}

/* Writes or reads a run; quantity maps the file's indices to the study's, or back. */
static void run_state(tape *r, study *s, run *x, const short *quantity, int quantities)
{
    const long many = 1000000000;
    size_t count;
    x->done = (int)whole(r, x->done, 0, 1);
    count = (size_t)whole(r, (long)x->count, 0, many);
    if (r->reading)
        x->count = 0;
    for (size_t i = 0; i < count && !r->bad; i++) {
        number n = { 0, 0, 0, 0 };
        if (!r->reading) {
            n = x->numbers[i];
            n.quantity = quantity[n.quantity];
        }
        n.quantity = (short)whole(r, n.quantity, 0, quantities - 1);
        n.epoch = (int)whole(r, n.epoch, -1, many);
        n.gate = (short)whole(r, n.gate, -1, MAX_GATES - 1);
        real(r, &n.value);
        if (r->reading && !r->bad
            && record(s, x, s->quantity[quantity[n.quantity]], n.epoch, n.gate, n.value))
            r->bad = 1;
    }
}

static void state(tape *r, study *s)
{
    short quantity[MAX_QUANTITIES], by_rank[MAX_QUANTITIES];
    const int quantities = (int)whole(r, s->quantities, 0, MAX_QUANTITIES);
    const long many = 1000000000;
    if (!r->reading)
        ranks(s, quantity, by_rank);
    for (int q = 0; q < quantities; q++) {
        char name[64] = "";
        if (!r->reading)
            snprintf(name, sizeof name, "%s", s->quantity[by_rank[q]]);
        word(r, name, sizeof name);
        if (r->bad)
            return;
        if (r->reading && (quantity[q] = (short)record_quantity(s, name)) < 0) {
            study_fail(s, "out of memory");
            r->bad = 1;
            return;
        }
    }
    s->steps_done = whole(r, s->steps_done, 0, 2000000000);
    if (whole(r, s->run_count, 0, many) != s->run_count
        || whole(r, s->family_count, 0, many) != s->family_count)
        r->bad = 1;
    for (int i = 0; i < s->run_count && !r->bad; i++)
        run_state(r, s, s->runs + i, quantity, quantities);
    for (int i = 0; i < s->family_count && !r->bad; i++) {
        family *f = s->families + i;
        int seated = (int)whole(r, f->trainer != NULL, 0, 1);
        f->next = (int)whole(r, f->next, 0, f->count);
        f->inside = (int)whole(r, f->inside, 0, f->next < f->count);
        f->done = (int)whole(r, f->done, 0, 1);
        if (!seated || r->bad)
            continue;
        if (r->reading && trainer_open(s, f, &f->trainer)) {
            r->bad = 1;
            return;
        }
        if (r->reading && f->inside) {
            f->trainer->which = BRANCH;
            f->trainer->run = s->runs + f->branches[f->next].run;
        }
        for (int k = 0; k < 2; k++) {
            real(r, f->trainer->loss_sum + k);
            f->trainer->loss_steps[k] = whole(r, f->trainer->loss_steps[k], 0, many);
        }
    }
}

/* ==== the file ==== */
enum { MAX_SEATS = 1024 };
static struct {
    lgelu_part part[2 * MAX_SEATS];
    char prefix[2 * MAX_SEATS][32];
    int count;
    lgelu_net none;
} parts;

/* Collects the networks in training. A branch that has not begun has none. */
static void collect(study *s)
{
    parts.count = 0;
    /* If all runs are done there is no network, and this one receives the message. */
    parts.part->net = &parts.none;
    for (int i = 0; i < s->family_count && parts.count < 2 * MAX_SEATS; i++) {
        const family *f = s->families + i;
        for (int k = 0; f->trainer && k < 1 + f->inside; k++) {
            snprintf(parts.prefix[parts.count], sizeof parts.prefix[0], "%d.%s/", i,
                     k ? "branch" : "trunk");
            parts.part[parts.count].prefix = parts.prefix[parts.count];
            parts.part[parts.count++].net = f->trainer->net + k;
        }
    }
}

/* Returns whether the networks compute finite losses: otherwise the next step would find NaN, and
   the old file would be replaced. */
static int sound(study *s)
{
    for (int i = 0; i < s->family_count; i++) {
        trainer *w = s->families[i].trainer;
        size_t n = s->task.count[PART_TRAIN] < (size_t)s->config.batch ? s->task.count[PART_TRAIN]
                                                                       : (size_t)s->config.batch;
        if (!w || s->axes)
            continue;
        task_samples(&s->task, PART_TRAIN, 0, n, w->x, w->y);
        for (int k = 0; k < 1 + s->families[i].inside; k++) {
            lgelu_net *net = w->net + k;
            const uint64_t pass = net->pass;
            if (net->status)
                return 0;
            net->evaluate = 1;
            lgelu_net_bind(net, 0, w->x);
            lgelu_net_bind(net, 1, w->y);
            lgelu_net_forward(net, n);
            net->evaluate = 0;
            net->pass = pass;
            /* The next step reports it. */
            if (net->status == LGELU_E_NONFINITE) {
                net->status = LGELU_OK;
                return 0;
            }
        }
    }
    return 1;
}

static int put(const void *data, size_t bytes, void *user)
{
    return fwrite(data, 1, bytes, (FILE *)user) != bytes;
}

/* Saves the study. No thread may train meanwhile. */
int checkpoint_save(study *s)
{
    const char *path = s->config.save;
    tape r = { NULL, 0, 0, 0, 0 };
    output o;
    lgelu_status status;
    if (!sound(s))
        return 0;
    state(&r, s);
    if (r.bad || !r.text) {
        free(r.text);
        return study_fail(s, "out of memory");
    }
    collect(s);
    kept.pair[kept.pairs][0] = "state";
    kept.pair[kept.pairs][1] = r.text;
    const char *from = s->config.resume;
    if ((from && output_same(path, from) ? output_over : output_try)(&o, path)
        || output_begin(&o)) {
        free(r.text);
        return study_fail(s, "--save: %s: %s", path, output_error());
    }
    errno = 0;
    status = lgelu_parts_save(parts.part, parts.count, (const char *const(*)[2])kept.pair,
                              kept.pairs + 1, put, o.f);
    free(r.text);
    if (status) {
        const char *why = status == LGELU_E_FILE ? strerror(errno) : parts.part->net->message;
        output_drop(&o);
        return study_fail(s, "--save: %s: %s", path, why);
    }
    if (output_end(&o))
        return study_fail(s, "--save: %s: %s", path, output_error());
    s->saved = 1;
    s->saved_at = clock_now();
    return 0;
}

int checkpoint_load(study *s)
{
    const char *path = s->config.resume;
    char print[32];
    tape r = { NULL, 0, 0, 1, 0 };
    if (!s->file)
        return 0;
    if (!lgelu_metadata(s->file, s->file_bytes, "data", print, sizeof print)
        || strcmp(print, kept.pair[1][1])) {
        return study_fail(s, "--data: %s: other samples than those that %s was begun with",
                          s->task.name, path);
    }
    if (!(r.text = (char *)malloc(s->file_bytes)))
        return study_fail(s, "out of memory");
    if (!lgelu_metadata(s->file, s->file_bytes, "state", r.text, s->file_bytes))
        r.bad = 1;
    else
        state(&r, s);
    if (!r.bad && r.text[r.at + strspn(r.text + r.at, " ")])
        r.bad = 1;
    free(r.text);
    if (r.bad)
        return study_fail(s, "--resume: %s: its state can't be read", path);
    collect(s);
    if (parts.count && lgelu_parts_load(parts.part, parts.count, s->file, s->file_bytes))
        return study_fail(s, "--resume: %s: %s", path, parts.part->net->message);
    s->steps_before = s->steps_done;
    s->saved = !strcmp(path, s->config.save);
    free(s->file);
    s->file = NULL;
    return 0;
}
