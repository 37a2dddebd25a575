/* SPDX-License-Identifier: MIT-0

   fuzz_study passes damaged checkpoints in memory to examples/study. tools/fuzz.h explains how to
   run it.

   fuzz_study has two targets. `state` reads the values of all runs as one text after a digit that
   selects the study. An accepted state is written and read again without a change; if all runs of
   the study are done, tables, findings, figures, CSV and JSON are made of it. `checkpoint` reads a
   whole file that begins with the options. An accepted file is saved, loaded and saved again
   without a change. Files that require more than a small study are skipped, because a caller can
   skip them too. */
#define LGELU_TRAINER
#include "tools/fuzz.h"
#include "lgelu.h"
#include <errno.h>
#include <fcntl.h>
/* This renames the main of the program, and a member with the same name. */
#define main study_main
#include "options.c"
#include "checkpoint.c"
#include "study.c"

/* ---- Files: all are in memory; of those written, only the checkpoint is kept ---- */
static const char checkpoint_name[] = "kept.st";
/* The file that is read. */
static struct {
    const uint8_t *p;
    size_t n;
} given;

static struct {
    char *p;
    size_t n;
} kept_file, other_file;

int output_begin(output *o)
{
    const int keep = !strcmp(o->path, checkpoint_name);
    if (keep) {
        free(kept_file.p);
        kept_file.p = NULL;
    } else {
        free(other_file.p);
        other_file.p = NULL;
    }
    o->f = keep ? open_memstream(&kept_file.p, &kept_file.n)
                : open_memstream(&other_file.p, &other_file.n);
    return o->f ? 0 : -1;
}

int output_try(output *o, const char *path)
{
    memset(o, 0, sizeof *o);
    snprintf(o->path, sizeof o->path, "%s", path);
    return 0;
}

int output_over(output *o, const char *path) { return output_try(o, path); }

/* No file of the fuzzer is a file of the disk. */
void output_inputs(int (*reads)(const void *user, const char *path), const void *user)
{
    (void)reads;
    (void)user;
}

int output_same(const char *a, const char *b) { return !strcmp(a, b); }

const char *output_error(void) { return strerror(errno); }

int output_end(output *o)
{
    int bad = fclose(o->f);
    o->f = NULL;
    return bad;
}

void output_drop(output *o)
{
    if (o->f)
        fclose(o->f);
    o->f = NULL;
}

int output_append(output *o, const char *path, int replace)
{
    (void)replace;
    return output_try(o, path) || output_begin(o);
}

int output_close(output *o)
{
    if (o->f)
        output_drop(o);
    return 0;
}

int output_folder(const char *path)
{
    (void)path;
    return 0;
}

unsigned char *output_read(const char *path, size_t *bytes)
{
    unsigned char *p = (unsigned char *)fuzz_room(given.n + 1);
    (void)path;
    if (given.n)
        memcpy(p, given.p, given.n);
    p[given.n] = 0;
    *bytes = given.n;
    return p;
}

/* ---- Small studies ---- */
enum { STUDIES = 4 };
#define SMALL                                                                                    \
    "study", "", "--net", "sine", "--hidden", "2", "--seeds", "2", "--epochs", "2", "--steps",   \
        "4", "--batch", "2", "--holdout", "4", "--test-samples", "4", "--threads", "1", "--svg", \
        "figures", "--csv", "a.csv", "--json", "a.json", "--save", (char *)checkpoint_name
static const char *const more[STUDIES][12] = {
    { "swap", "--arms", "gelu,hardened,switched" },
    { "path", "--arms", "gelu,hardened", "--lr", "1e-3" },
    { "grid", "--t", "0.1,1", "--c", "1,3", "--init", "soft,hard", "--norm", "none" },
    { "reparam", "--map", "softplus,direct", "--lr", "1e-3,1e-1", "--c", "1", "--decay-s", "none",
      "--optimiser", "adamw" }
};

/* The studies after planning, with no run done. */
static study ready[STUDIES];

static void sound_study(const study *s, int good)
{
    if (good && !s->error[0])
        return;
    fprintf(stderr, "%s\n", s->error);
    abort();
}

static void options_of(study *s, int which)
{
    char *argument[40] = { SMALL };
    int n = 0;
    while (argument[n])
        n++;
    argument[1] = (char *)more[which][0];
    for (int i = 1; i < 12 && more[which][i]; i++)
        argument[n++] = (char *)more[which][i];
    memset(s, 0, sizeof *s);
    sound_study(s, !study_options(s, n, argument));
}

/* Plans a study as run_all does. */
static int plan_of(study *s)
{
    char error[1400];
    if (task_load(&s->task, &s->config, error, sizeof error))
        return study_fail(s, "%s", error);
    if (plan_make(s) || checkpoint_keep_options(s)
        || (s->experiment->check && s->experiment->check(s)))
        return -1;
    s->workers = 1;
    return measure_network(s);
}

/* Restores a study to its state after plan_of. */
static void forget(study *s)
{
    for (int i = 0; i < s->run_count; i++) {
        free(s->runs[i].numbers);
        s->runs[i].numbers = NULL;
        s->runs[i].done = 0;
        s->runs[i].count = s->runs[i].room = 0;
    }
    for (int i = 0; i < s->family_count; i++) {
        family *f = s->families + i;
        trainer_close(f->trainer);
        f->trainer = NULL;
        f->next = f->inside = f->done = 0;
    }
    while (s->quantities)
        free(s->quantity[--s->quantities]);
    free(s->findings);
    s->findings = NULL;
    s->finding_count = 0;
    s->steps_done = 0;
    s->failed = s->stopped = 0;
    s->error[0] = 0;
}

static study *study_of(int which)
{
    study *s = ready + which;
    if (!s->runs) {
        options_of(s, which);
        sound_study(s, !plan_of(s));
    }
    return s;
}

static void one_line(const study *s)
{
    if (strchr(s->error, '\n') || (s->failed && !s->error[0]))
        abort();
}

static int quiet = -1;

static void hush(void) /* Discards what a study prints. */
{
    int none;
    fflush(stdout);
    if ((quiet = dup(1)) < 0 || (none = open("/dev/null", O_WRONLY)) < 0 || dup2(none, 1) < 0)
        abort();
    close(none);
}

static void speak(void)
{
    fflush(stdout);
    if (dup2(quiet, 1) < 0)
        abort();
    close(quiet);
}

/* ---- State ---- */
static int read_state(study *s, const char *text, size_t n)
{
    tape r = { NULL, 0, 0, 1, 0 };
    r.text = (char *)fuzz_room(n + 1);
    memcpy(r.text, text, n);
    r.text[n] = 0;
    state(&r, s);
    if (!r.bad && r.text[r.at + strspn(r.text + r.at, " ")])
        r.bad = 1;
    free(r.text);
    return r.bad ? -1 : 0;
}

static char *write_state(study *s)
{
    tape w = { NULL, 0, 0, 0, 0 };
    state(&w, s);
    if (w.bad || !w.text)
        abort();
    return w.text;
}

static void holds_together(const study *s)
{
    for (const run *r = s->runs; r < s->runs + s->run_count; r++) {
        for (size_t i = 0; i < r->count; i++) {
            const number *n = r->numbers + i;
            if (n->quantity < 0 || n->quantity >= s->quantities || n->gate < -1
                || n->gate >= MAX_GATES || n->epoch < -1)
                abort();
        }
    }
    for (const family *f = s->families; f < s->families + s->family_count; f++) {
        if (f->next < 0 || f->next > f->count || (f->inside && f->next >= f->count))
            abort();
    }
}

/* Makes the results of a study as run_all does at its end. */
static void results(study *s)
{
    const experiment *e = s->experiment;
    hush();
    if (output_try(&s->csv, "a.csv") || output_try(&s->json, "a.json"))
        abort();
    if (!stat_claims(s) && !(e->report ? e->report(s) : show_table(s))) {
        show_findings(s);
        if (!record_csv(s) && !record_json(s) && e->figures)
            e->figures(s);
    }
    speak();
    one_line(s);
}

static int one_state(const uint8_t *p, size_t n)
{
    study *s;
    char *text, *again;
    int done = 1;
    if (!n)
        return 0;
    s = study_of(p[0] % STUDIES);
    forget(s);
    if (read_state(s, (const char *)p + 1, n - 1)) {
        one_line(s);
        return 0;
    }
    holds_together(s);
    text = write_state(s);
    forget(s);
    if (read_state(s, text, strlen(text)))
        abort();
    again = write_state(s);
    if (strcmp(text, again))
        abort();
    free(text);
    free(again);
    for (int i = 0; i < s->family_count; i++)
        done &= s->families[i].done;
    if (done)
        results(s);
    return 1;
}

/* ---- A whole checkpoint ---- */
static int small(const study *s)
{
    const config *c = &s->config;
    long widths = 0, count = 0;
    if (strcmp(net_table[c->net].name, "sine") || !s->experiment || s->experiment->main
        || !c->hidden)
        return 0;
    for (const char *p = c->hidden; *p; p++) {
        char *end;
        const long n = strtol(p, &end, 10);
        widths += n < 0 || n > 64 ? 64 : n;
        if (!*(p = end) || ++count > 8)
            break;
    }
    return widths < 32 && c->batch <= 16 && c->holdout >= 0 && c->holdout <= 16
           && c->test_samples > 0 && c->test_samples <= 16 && c->epochs <= 8
           && s->variants * c->seeds <= 16;
}

static int load(study *s, const void *p, size_t n)
{
    given.p = (const uint8_t *)p;
    given.n = n;
    s->config.resume = "given.st";
    s->config.save = checkpoint_name;
    if (checkpoint_options(s) || check(s) || !small(s))
        return -1;
    s->usage = 0;
    return plan_of(s) || checkpoint_load(s) ? -1 : 0;
}

static int one_checkpoint(const uint8_t *p, size_t n)
{
    static study base, s;
    static char *first;
    size_t bytes;
    if (!base.experiment)
        options_of(&base, 0);
    s = base;
    memset(s.given, 0, sizeof s.given);
    s.experiment = NULL;
    if (load(&s, p, n)) {
        one_line(&s);
        free_all(&s);
        return 0;
    }
    holds_together(&s);
    free(kept_file.p);
    kept_file.p = NULL;
    if (checkpoint_save(&s)) {
        one_line(&s);
        free_all(&s);
        return 1;
    }
    free_all(&s);
    /* The networks of this study are not saved. */
    if (!kept_file.p)
        return 1;
    first = kept_file.p;
    bytes = kept_file.n;
    kept_file.p = NULL;
    s = base;
    memset(s.given, 0, sizeof s.given);
    s.experiment = NULL;
    if (load(&s, first, bytes) || checkpoint_save(&s) || !kept_file.p) {
        fprintf(stderr, "%s\n", s.error);
        abort();
    }
    if (kept_file.n != bytes || memcmp(kept_file.p, first, bytes))
        abort();
    free_all(&s);
    free(first);
    return 1;
}

/* ---- Damage that follows the format, and valid files ---- */
/* Damages one word: replaces it by another number or word, doubles it, removes it or moves it. */
static size_t word_damage(uint8_t *p, size_t n, size_t room, fuzz_dice *d)
{
    size_t from[2], to[2];
    char piece[64], number[24];
    for (int k = 0; k < 2; k++) {
        from[k] = n > 1 ? 1 + fuzz_draw(d) % (n - 1) : n;
        while (from[k] < n && p[from[k] - 1] != ' ')
            from[k]++;
        for (to[k] = from[k]; to[k] < n && p[to[k]] != ' ';)
            to[k]++;
        if (to[k] >= n || to[k] - from[k] >= sizeof piece)
            return n;
    }
    memcpy(piece, p + from[1], to[1] - from[1]);
    snprintf(number, sizeof number, "%d", (int)(fuzz_draw(d) % 8) - 1);
    switch (fuzz_draw(d) % 5) {
    case 0: return fuzz_replace(p, n, room, from[0], to[0] - from[0], number, strlen(number));
    case 1: return fuzz_replace(p, n, room, from[0], to[0] - from[0], piece, to[1] - from[1]);
    case 2:
        piece[to[1] - from[1]] = ' ';
        return fuzz_replace(p, n, room, from[0], 0, piece, to[1] - from[1] + 1);
    case 3: return fuzz_replace(p, n, room, from[0], to[0] - from[0] + 1, NULL, 0);
    default: {
        piece[to[1] - from[1]] = 0;
        snprintf(number, sizeof number, "%.6g", strtod(piece, NULL) + (fuzz_draw(d) % 2 ? 1 : -1));
        return fuzz_replace(p, n, room, from[0], to[0] - from[0], number, strlen(number));
    }
    }
}

static void fuzz_state_seed(study *s, int which, const char *name)
{
    char *text = write_state(s), *all = (char *)fuzz_room(strlen(text) + 2);
    sprintf(all, "%d%s", which, text);
    fuzz_seed("state", name, all, strlen(all));
    free(all);
    free(text);
}

static long steps_left;

static void stop_soon(trainer *w)
{
    if (!--steps_left)
        w->study->stopped = 1;
}

/* Makes one checkpoint of a study that has been trained to its end, and one of a study halfway.
 * They are not stored in corpus/, because options change, and the contents of a checkpoint with
 * them. */
static void fuzz_seeds(void)
{
    static const char *const end = "ended", *const half = "halfway";
    if (fuzz_folder)
        return;
    for (int which = 0; which < STUDIES; which++) {
        for (int halfway = 0; halfway < 2; halfway++) {
            study *s;
            experiment stops;
            const experiment *whole;
            static study file;
            if (fuzz_is("state")) {
                s = study_of(which);
                forget(s);
            } else {
                s = &file;
                options_of(s, which);
                sound_study(s, !plan_of(s));
            }
            whole = s->experiment;
            stops = *whole;
            stops.step = stop_soon;
            steps_left = which ? 9 : 3;
            if (halfway)
                s->experiment = &stops;
            hush();
            study_train(s);
            speak();
            s->experiment = whole;
            sound_study(s, 1);
            if (fuzz_is("state")) {
                fuzz_state_seed(s, which, halfway ? half : end);
                continue;
            }
            s->stopped = 0;
            if (checkpoint_save(s) || !kept_file.p)
                abort();
            fuzz_seed("checkpoint", halfway ? half : end, kept_file.p, kept_file.n);
            free_all(s);
        }
    }
}

static const fuzz_reader *fuzz_readers(void)
{
    static const char *const words[] = { "nan",       "inf",      "-1",      "1e9",  "1e300", " ",
                                         "accuracy ", "holdout ", "lambda ", "0x10", NULL };
    static const char *const options[] = { "sine",         "mlp",       "swap",   "grid",
                                           "ablation",     "control",   "report", "option.lr",
                                           "option.seeds", "axes",      "lr,c",   "c,lr",
                                           "1e-3,1e-2",    "paper",     "direct", "sgd",
                                           "batch",        "gelu,relu", "bf16",   "0.trunk/",
                                           "1.branch/",    NULL };
    static const fuzz_reader reader[] = { { "state", 5000, one_state, words, word_damage, NULL },
                                          { "checkpoint", 2000, one_checkpoint, options,
                                            fuzz_header_damage, fuzz_header_mend },
                                          { NULL, 0, NULL, NULL, NULL, NULL } };
    return reader;
}
