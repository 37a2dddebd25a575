/* SPDX-License-Identifier: MIT-0

   findings.c: the values of a measurement, its tables, and the verdicts on its questions.

   One rule decides, the study's (interval.h): the difference of two arms, paired by seed, has
   a 95 % interval by Student's t. If the interval is inside of ± margin, the arms are level; if it
   is outside, one has more or less; otherwise, and with fewer than five seeds, nothing is decided.
   The mean alone decides nothing. */
#include "measure.h"
#include <math.h>

FILE *csv_file;
const char *const arm_name[ARMS] = { "gelu",     "cold", "refitted", "hardened", "relu",
                                     "switched", "one",  "two",      "three" };

static struct {
    const char *name;
    double v[MOST_ROWS][ARMS][MOST_SEEDS];
} table[MOST_QUANTITIES];

static const char *row_name[MOST_ROWS];
static int quantities, rows;

void table_begin(const char *const *names, int quantity_count, const char *const *row,
                 int row_count)
{
    quantities = quantity_count;
    rows = row_count;
    for (int q = 0; q < quantities; q++) {
        table[q].name = names[q];
        for (int i = 0; i < MOST_ROWS * ARMS; i++) {
            for (int seed = 0; seed < MOST_SEEDS; seed++)
                table[q].v[i / ARMS][i % ARMS][seed] = (double)NAN;
        }
    }
    for (int i = 0; i < rows; i++)
        row_name[i] = row[i];
}

void put(int q, int row, int arm, long seed, double v)
{
    table[q].v[row][arm][seed] = v;
    if (csv_file) {
        fprintf(csv_file, "\"%s\",\"%s\",%s,%ld,%.9g\n", row_name[row], table[q].name,
                arm_name[arm], seed + wish.first_seed, v);
    }
}

stat_decision decision_of(const rule *r)
{
    double d[MOST_SEEDS];
    for (long i = 0; i < wish.seeds; i++) {
        d[i] = table[r->quantity].v[r->row][r->arm][i]
               - table[r->quantity].v[r->other_row][r->other][i];
    }
    return stat_decide_mean(d, wish.seeds, -r->margin, r->margin);
}

const char *decision_word(const rule *r, const stat_decision *d)
{
    if (!strcmp(d->verdict, "seen"))
        return "level";
    if (strcmp(d->verdict, "not seen"))
        return d->verdict;
    return d->low >= r->margin ? "more" : "less";
}

void decide(FILE *f, const rule *r, int count)
{
    stat_decision *d = (stat_decision *)room_for((size_t)count, sizeof *d);
    double *p = (double *)room_for((size_t)count, sizeof *p);
    int *survives = (int *)room_for((size_t)count, sizeof *survives), tested, decided = 0, held = 0;
    for (int i = 0; i < count; i++) {
        d[i] = decision_of(r + i);
        p[i] = d[i].p;
    }
    tested = stat_holm(p, count, survives);
    printf(
        "\nFindings: the mean difference, its 95 %% interval, the range that counts as level, the "
        "verdict's p-value,\nwhether it survives Holm's correction, the verdict\n");
    for (int i = 0; i < count; i++) {
        fprintf(f, "  %-78s %+8.3g (%+.3g to %+.3g)  ±%g", r[i].question, d[i].mean, d[i].low,
                d[i].high, r[i].margin);
        if (p[i] >= 0)
            fprintf(f, "  p %.2g", p[i]);
        fprintf(f, "  %s  %s\n", survives[i] ? "survives" : "-", decision_word(r + i, d + i));
        decided += p[i] < 0.05;
        held += survives[i];
    }
    fprintf(f, "%d differences are tested, %d are decided, %d survive Holm's correction\n", tested,
            decided, held);
    free(d);
    free(p);
    free(survives);
}

/* Returns whether there is any value of this quantity, row and arm; -1 stands for any of them. */
static int there(int quantity, int row, int arm)
{
    for (int q = 0; q < quantities; q++) {
        for (int r = 0; r < rows; r++) {
            for (int a = 0; a < ARMS; a++) {
                if ((quantity < 0 || q == quantity) && (row < 0 || r == row)
                    && (arm < 0 || a == arm) && isfinite(table[q].v[r][a][0]))
                    return 1;
            }
        }
    }
    return 0;
}

/* Prints the mean and the standard deviation over the seeds. */
static void show_cell(const double *v)
{
    const double deviation = wish.seeds > 1 ? stat_deviation(v, wish.seeds) : 0;
    double mean = stat_mean(v, wish.seeds);
    char cell[40];
    if (!isfinite(mean)) {
        printf("%18s", "-");
        return;
    }
    /* what rounding leaves of a sum that is 0 */
    if (fabs(mean) < 1e-12)
        mean = 0;
    snprintf(cell, sizeof cell, "%.4g ± %.2g", mean, deviation);
    /* The character ± has two bytes. */
    printf("%19s", cell);
}

void show(const char *title, const char *before_row)
{
    printf("%s\nmean ± standard deviation over %ld seeds\n", title, wish.seeds);
    for (int row = 0; row < rows; row++) {
        char name[80];
        snprintf(name, sizeof name, "%s%s%s", before_row, before_row[0] ? " " : "", row_name[row]);
        printf("\n%-36s", name);
        for (int arm = 0; arm < ARMS; arm++) {
            if (there(-1, -1, arm))
                printf("%18s", arm_name[arm]);
        }
        printf("\n");
        for (int q = 0; q < quantities; q++) {
            if (there(q, row, -1)) {
                /* The character µ has two bytes. */
                int wide = 34;
                for (const char *c = table[q].name; *c; c++)
                    wide += (*c & 0xC0) == 0x80;
                printf("  %-*s", wide, table[q].name);
                for (int arm = 0; arm < ARMS; arm++) {
                    if (there(-1, -1, arm))
                        show_cell(table[q].v[row][arm]);
                }
                printf("\n");
            }
        }
    }
}
