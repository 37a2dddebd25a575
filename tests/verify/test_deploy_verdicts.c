/* SPDX-License-Identifier: MIT-0

   test_deploy_verdicts: the verdicts of examples/deploy/measure follow the study's rule. An
   interval inside of the margin is "level", one outside of it "more" or "less", any other decides
   nothing, wherever its mean is; nor do fewer than five seeds decide.

       make -C tests test_deploy_verdicts */
#include "tools/check.h"
#include "findings.c"
#include "interval.c"

wishes wish;

/* What findings.c needs of the program around it. */
void fail(const char *how, const char *what)
{
    fprintf(stderr, how, what);
    exit(1);
}

void *room_for(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (!p)
        fail("%s", "no memory");
    return p;
}

/* Checks the verdict on arms whose paired differences have this mean and this deviation. */
static void verdict(const char *name, long seeds, double mean, double deviation, double margin,
                    const char *expected)
{
    static const char *const quantity[1] = { "points" }, *const row[1] = { "all" };
    const rule r = { "hardened loses more than relu", 0, 0, HARDENED, 0, RELU, margin };
    stat_decision d;
    double v[MOST_SEEDS], m = 0, s;
    wish.seeds = seeds;
    for (long i = 0; i < seeds; i++)
        v[i] = (double)(i * i % 7);
    m = stat_mean(v, seeds);
    s = stat_deviation(v, seeds);
    table_begin(quantity, 1, row, 1);
    for (long i = 0; i < seeds; i++) {
        /* Both arms share a part that differs from seed to seed. */
        put(0, 0, RELU, i, 100.0 * (double)i);
        put(0, 0, HARDENED, i, 100.0 * (double)i + mean + deviation * (v[i] - m) / s);
    }
    d = decision_of(&r);
    check(!strcmp(decision_word(&r, &d), expected), name, "%g (%g to %g), margin %g: %s, not %s",
          d.mean, d.low, d.high, margin, decision_word(&r, &d), expected);
    check(seeds >= STAT_SEEDS ? d.p >= 0 && (d.p < 0.05) == (expected[0] != 'n') : !(d.p >= 0),
          "its p-value agrees", "%s: p = %g", name, d.p);
}

/* Checks that the printed lines have the verdicts, and which of them Holm's correction leaves. */
static void printed(void)
{
    static const char *const quantity[2] = { "points", "seconds" }, *const row[1] = { "all" };
    static const rule r[2] = { { "hardened loses more than relu", 0, 0, HARDENED, 0, RELU, 0.2 },
                               { "hardened takes longer than relu", 1, 0, HARDENED, 0, RELU,
                                 0.2 } };
    static const double wobble[5] = { -0.2, -0.1, 0, 0.1, 0.2 };
    char text[2000] = "";
    FILE *f;
    wish.seeds = 5;
    table_begin(quantity, 2, row, 1);
    for (long i = 0; i < 5; i++) {
        for (int q = 0; q < 2; q++)
            put(q, 0, RELU, i, 1);
        put(0, 0, HARDENED, i, 1 - 0.27 + wobble[i]);
        put(1, 0, HARDENED, i, 1 + 9 + wobble[i]);
    }
    f = tmpfile();
    if (!f) {
        check_skip("printed findings", "no temporary file");
        return;
    }
    decide(f, r, 2);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    check(strstr(text, "-  not decidable at this size") != NULL, "printed: not decidable", "%s",
          text);
    check(strstr(text, "survives  more") != NULL, "printed: more, and it survives", "%s", text);
    check(strstr(text, "2 differences are tested, 1 are decided, 1 survive") != NULL,
          "printed: how many", "%s", text);
}

int main(void)
{
    verdict("an interval inside of the margin", 5, 0.05, 0.05, 0.2, "level");
    verdict("an interval above the margin", 5, 0.5, 0.05, 0.2, "more");
    verdict("an interval below the margin", 5, -0.5, 0.05, 0.2, "less");
    verdict("a mean outside of the margin, an interval across it", 5, -0.27, 0.2, 0.2,
            "not decidable at this size");
    verdict("a mean inside of the margin, an interval across it", 5, 0.15, 0.2, 0.2,
            "not decidable at this size");
    verdict("twenty seeds", 20, -0.27, 0.05, 0.2, "less");
    verdict("four seeds", 4, 0, 0.001, 0.2, "not decidable at this size");
    printed();
    return check_end();
}
