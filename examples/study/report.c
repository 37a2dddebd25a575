/* SPDX-License-Identifier: MIT-0
   report.c: everything that lies in --out as one page that needs nothing else: findings on top,
   then each experiment with its command, its figures and its tables. No script, nor would one in
   the folder's files run: what is read from them is text or an image. Light and dark, on paper,
   too. */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#include "study.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_PARTS = 256, NAME = 128, MAX_BYTES = 1 << 26 };
static const char style[] =
    ":root{color-scheme:light dark;--ink:#222;--soft:#666;--rule:#ddd;--paper:#fff;--good:#117733;--bad:#b34700}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#ddd;--soft:#999;--rule:#444;--paper:#181818;--good:#6fc28a;--bad:#f0a070}}\n"
    "body{font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu "
    "Sans',sans-serif;color:var(--ink);background:var(--paper);"
    "max-width:60rem;margin:2rem auto;padding:0 1rem}\n"
    "h1{font-size:1.6rem}h2{font-size:1.25rem;margin-top:3rem;border-top:1px solid var(--rule);padding-top:1rem}\n"
    "p.how{color:var(--soft);font-size:.85rem;overflow-wrap:anywhere}code,pre{font-family:ui-monospace,'DejaVu Sans "
    "Mono',monospace}\n"
    "table{border-collapse:collapse;font-size:.85rem;width:100%}th,td{text-align:left;padding:.25rem .5rem;border-bottom:1px "
    "solid var(--rule);"
    "vertical-align:top}td.n{white-space:nowrap}td.seen{color:var(--good)}td.not{color:var(--bad)}td.open{color:var(--soft)}\n"
    "figure{margin:1rem 0;background:#fff;border-radius:6px;padding:.25rem}figure img{width:100%;height:auto;display:block}\n"
    "pre{font-size:.62rem;line-height:1.35;overflow-x:auto;border:1px solid var(--rule);border-radius:6px;padding:.5rem}\n"
    "@media print{:root{--ink:#000;--soft:#444;--rule:#bbb;--paper:#fff}body{max-width:none;margin:0}"
    "figure,tr{break-inside:avoid}"
    "h2{break-after:avoid}pre{white-space:pre-wrap;overflow-wrap:anywhere}}\n";

static void put_html(FILE *f, const char *text, size_t n)
{
    for (; n--; text++) {
        switch (*text) {
        case '&': fputs("&amp;", f); break;
        case '<': fputs("&lt;", f); break;
        case '>': fputs("&gt;", f); break;
        case '"': fputs("&quot;", f); break;
        default: fputc(*text, f);
        }
    }
}

static void put_text(FILE *f, const char *before, const char *text, const char *behind)
{
    fputs(before, f);
    put_html(f, text, strlen(text));
    fputs(behind, f);
}

/* "name": value of a line of our own JSON: a text without its quotes (escapes go), a number or an
   array as they stand; 0: none */
static int field(char *value, size_t room, const char *line, const char *end, const char *name)
{
    char key[64];
    const char *p;
    size_t n = 0;
    snprintf(key, sizeof key, "\"%s\": ", name);
    for (p = line; p < end && strncmp(p, key, strlen(key)); p++) {
    }
    *value = 0;
    if (p >= end)
        return 0;
    p += strlen(key);
    if (*p == '"') {
        for (p++; p < end && *p != '"' && n + 1 < room; p++) {
            if (*p == '\\')
                p++;
            value[n++] = *p;
        }
    } else {
        for (int depth = 0; p < end && n + 1 < room && (depth || (*p != ',' && *p != '}')); p++) {
            depth += (*p == '[') - (*p == ']');
            value[n++] = *p;
        }
    }
    value[n] = 0;
    return 1;
}

/* NULL: not there, or s->error says what is wrong with it */
static char *read_part(study *s, const char *stem, const char *end, size_t *bytes)
{
    char path[OUTPUT_PATH], *text;
    struct stat file;
    if (snprintf(path, sizeof path, "%s/%s%s", s->config.out, stem, end) >= (int)sizeof path) {
        study_fail(s, "--out: the path is too long");
        return NULL;
    }
    if (!stat(path, &file) && (!S_ISREG(file.st_mode) || file.st_size > MAX_BYTES)) {
        study_fail(s, "--out: %s: not a file that a page has room for", path);
        return NULL;
    }
    text = (char *)output_read(path, bytes);
    if (!text && errno != ENOENT)
        study_fail(s, "--out: %s: %s", path, strerror(errno));
    return text;
}

/* ---- which parts there are: "swap_mlp", in the order of the experiments, then of the names ----
 */
typedef struct {
    char stem[NAME];
    int experiment;
} piece;

static int by_place(const void *a, const void *b)
{
    const piece *p = (const piece *)a, *q = (const piece *)b;
    return p->experiment != q->experiment ? p->experiment - q->experiment
                                          : strcmp(p->stem, q->stem);
}

static int experiment_of(const char *stem)
{
    for (int i = 0; i < experiment_count; i++) {
        const size_t n = strlen(experiment_table[i]->name);
        if (!strncmp(stem, experiment_table[i]->name, n) && stem[n] == '_')
            return i;
    }
    return -1;
}

/* names in a folder with this end, without it; with a beginning where one is given */
static int list(const char *folder, const char *begin, const char *end, piece *out)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    int n = 0;
    if (!d)
        return -1;
    while ((e = readdir(d)) != NULL) {
        const size_t length = strlen(e->d_name), tail = strlen(end);
        if (length <= tail || length - tail >= NAME || strcmp(e->d_name + length - tail, end))
            continue;
        if (begin && (strncmp(e->d_name, begin, strlen(begin)) || e->d_name[strlen(begin)] != '_'))
            continue;
        if (experiment_of(e->d_name) < 0)
            continue;
        if (n == MAX_PARTS) {
            closedir(d);
            errno = E2BIG;
            return -1;
        }
        memcpy(out[n].stem, e->d_name, length - tail);
        out[n].stem[length - tail] = 0;
        out[n++].experiment = experiment_of(e->d_name);
    }
    closedir(d);
    qsort(out, (size_t)n, sizeof *out, by_place);
    return n;
}

/* ---- the parts of a page ---- */
static void put_finding(FILE *f, const char *stem, const char *line, const char *end)
{
    char text[256], rule[160], mean[64], interval[128], seeds[32], verdict[64], survives[16];
    double low, high;
    if (!field(text, sizeof text, line, end, "claim"))
        return;
    field(rule, sizeof rule, line, end, "rule");
    field(mean, sizeof mean, line, end, "mean");
    field(interval, sizeof interval, line, end, "interval");
    field(seeds, sizeof seeds, line, end, "seeds");
    field(verdict, sizeof verdict, line, end, "verdict");
    field(survives, sizeof survives, line, end, "survives_holm");
    put_text(f, "<tr><td class=\"n\"><a href=\"#", stem, "\">");
    put_text(f, "", stem, "</a></td><td>");
    put_text(f, "", text, "");
    fprintf(f, "</td><td class=\"n\">%.3g", decimal_read(mean, NULL));
    if (*interval == '[') {
        char *next, *last;
        low = decimal_read(interval + 1, &next);
        high = *next == ',' ? decimal_read(next + 1, &last) : 0;
        if (*next == ',' && last > next + 1)
            fprintf(f, " (%.3g to %.3g)", low, high);
    }
    put_text(f, "</td><td>", rule, "</td><td>");
    put_text(f, "", seeds, "</td><td class=\"");
    fputs(!strcmp(verdict, "seen") ? "seen" : !strcmp(verdict, "not seen") ? "not" : "open", f);
    put_text(f, "\">", verdict, "</td>");
    fprintf(f, "<td>%s</td></tr>\n", !strcmp(survives, "true") ? "yes" : "no");
}

static void put_findings(FILE *f, study *s, const piece *p)
{
    size_t bytes;
    char *text = read_part(s, p->stem, ".json", &bytes), *line, *end;
    for (line = text; line && *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        put_finding(f, p->stem, line, end);
    }
    free(text);
}

static void put_base64(FILE *f, const unsigned char *p, size_t n)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const unsigned all = (unsigned)p[i] << 16 | (i + 1 < n ? (unsigned)p[i + 1] << 8 : 0)
                             | (i + 2 < n ? p[i + 2] : 0);
        fputc(digit[all >> 18], f);
        fputc(digit[all >> 12 & 63], f);
        fputc(i + 1 < n ? digit[all >> 6 & 63] : '=', f);
        fputc(i + 2 < n ? digit[all & 63] : '=', f);
    }
}

/* Writes the section of one experiment and returns how many figures it has. */
static int put_piece(FILE *f, study *s, const piece *p, piece *figures)
{
    size_t bytes;
    char value[2048], *text = read_part(s, p->stem, ".jsonl", &bytes);
    int n;
    put_text(f, "<h2 id=\"", p->stem, "\">");
    put_text(f, "", p->stem, "</h2>\n");
    put_text(f, "<p>", experiment_table[p->experiment]->about, "</p>\n");
    if (text && field(value, sizeof value, text, text + strcspn(text, "\n"), "command")) {
        put_text(f, "<p class=\"how\"><code>", value, "</code>");
        if (field(value, sizeof value, text, text + strcspn(text, "\n"), "commit"))
            put_text(f, ", commit ", value, "");
        fputs("</p>\n", f);
    }
    free(text);
    n = list(s->config.out, p->stem, ".svg", figures);
    if (n < 0)
        study_fail(s, "--out: %s: %s", s->config.out, strerror(errno));
    for (int i = 0; i < n; i++) {
        if ((text = read_part(s, figures[i].stem, ".svg", &bytes)) != NULL) {
            put_text(f, "<figure><img alt=\"", figures[i].stem,
                     "\" src=\"data:image/svg+xml;base64,");
            put_base64(f, (const unsigned char *)text, bytes);
            fputs("\"></figure>\n", f);
            free(text);
        }
    }
    if ((text = read_part(s, p->stem, ".txt", &bytes)) != NULL) {
        put_text(f, "<pre>", text + strspn(text, "\n"), "</pre>\n");
        free(text);
    }
    return n > 0 ? n : 0;
}

static int report_main(study *s)
{
    static piece pieces[MAX_PARTS], figures[MAX_PARTS];
    char path[OUTPUT_PATH];
    output o;
    int n, shown = 0;
    if (!s->config.out)
        return study_fail(s, "--out: the folder with what is to be reported");
    n = list(s->config.out, NULL, ".json", pieces);
    if (n < 0)
        return study_fail(s, "--out: %s: %s", s->config.out, strerror(errno));
    if (!n)
        return study_fail(s, "--out: %s: nothing was run with this as its --out", s->config.out);
    if (snprintf(path, sizeof path, "%s/report.html", s->config.out) >= (int)sizeof path)
        return study_fail(s, "--out: the path is too long");
    if (output_try(&o, path) || output_begin(&o))
        return study_fail(s, "--out: %s: %s", path, output_error());
    fprintf(
        o.f,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
        "content=\"width=device-width,initial-scale=1\">\n"
        "<title>lgelu.h: experiments</title>\n<style>\n%s</style>\n</head>\n<body>\n<h1>lgelu.h: experiments</h1>\n"
        "<p>A claim is <em>seen</em> where the 95&nbsp;%% interval over at least five seeds lies inside of the range that "
        "was set before the run, "
        "<em>not seen</em> where it lies outside, else <em>not decidable at this size</em>.</p>\n"
        "<table>\n<tr><th>experiment</th><th>claim</th><th>mean (95 %% "
        "interval)</th><th>range</th><th>seeds</th><th>verdict</th><th>survives Holm</th></tr>\n",
        style);
    for (int i = 0; i < n; i++)
        put_findings(o.f, s, pieces + i);
    fprintf(o.f, "</table>\n");
    for (int i = 0; i < n; i++)
        shown += put_piece(o.f, s, pieces + i, figures);
    fprintf(o.f, "</body>\n</html>\n");
    if (s->error[0]) {
        output_drop(&o);
        return -1;
    }
    if (output_end(&o))
        return study_fail(s, "--out: %s: %s", path, output_error());
    printf("%s: %d experiment%s, %d figures\n", path, n, n > 1 ? "s" : "", shown);
    return 0;
}

const experiment report_experiment = {
    .name = "report",
    .about = "all that was run with the same --out as one page, report.html",
    .main = report_main
};
