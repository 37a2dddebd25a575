/* SPDX-License-Identifier: MIT-0

   svg.h: drawing, with nothing but stdio.

       svg s;
       svg_panel p = { 60, 50, 400, 300, 0, 12, 80, 92, 0, 0 };
       svg_begin(&s, f, 800, 400, "What it shows");
       svg_axes(&s, &p, "epoch", "accuracy (%)", 6, 5);
       svg_line(&s, &p, x, y, n, "#0072B2", 2, NULL);
       svg_end(&s);

   f is an open file. The numbers of a panel are its place on the sheet, then the ranges of x and y.
   What has a coordinate that is not finite is not drawn.

   Colours are those of Okabe & Ito and of Tol, told apart by the colour-blind; text is dark enough
   for white paper. */
#ifndef SVG_H
#define SVG_H
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#ifdef __GNUC__
#define SVG_PRINTF(text, list) __attribute__((format(printf, text, list)))
#else
#define SVG_PRINTF(text, list)
#endif

#define SVG_INK "#222222"
#define SVG_GREY "#666666"
#define SVG_RULE "#E4E4E4"

/* ---- the sheet ---- */
typedef struct {
    FILE *f;
    int clips;
} svg;

typedef struct {
    double left, top, width, height, x0, x1, y0, y1;
    int x_log, y_log;
} svg_panel;

static inline void svg_begin(svg *s, FILE *f, int width, int height, const char *title)
{
    s->f = f;
    s->clips = 0;
    fprintf(
        s->f,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" "
        "font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif\">\n"
        "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#FFFFFF\"/>\n",
        width, height, width, height, title);
}

static inline void svg_end(svg *s) { fprintf(s->f, "</svg>\n"); }

static inline int svg_is_place(double x, double y)
{
    return fabs(x) < HUGE_VAL && fabs(y) < HUGE_VAL;
}

/* anchor: 's' start, 'm' middle, 'e' end; a negative size is bold */
SVG_PRINTF(7, 8)

static inline void svg_text(svg *s, double x, double y, char anchor, double size,
                            const char *colour, const char *format, ...)
{
    char text[512];
    const char *c, *at = "";
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (!svg_is_place(x, y))
        return;
    if (anchor == 'm')
        at = " text-anchor=\"middle\"";
    else if (anchor == 'e')
        at = " text-anchor=\"end\"";
    fprintf(s->f, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%g\" fill=\"%s\"%s%s>", x, y, fabs(size),
            colour, at, size < 0 ? " font-weight=\"600\"" : "");
    for (c = text; *c; c++) {
        const int begins = c == text || c[-1] == ' ' || c[-1] == '(';
        switch (*c) {
        case '&': fputs("&amp;", s->f); break;
        case '<': fputs("&lt;", s->f); break;
        case '>': fputs("&gt;", s->f); break;
        /* a minus sign before a number */
        case '-': fputs(begins && c[1] >= '0' && c[1] <= '9' ? "−" : "-", s->f); break;
        default: fputc(*c, s->f);
        }
    }
    fputs("</text>\n", s->f);
}

static inline void svg_rule(svg *s, double x1, double y1, double x2, double y2, const char *colour,
                            double width, const char *dash)
{
    if (!svg_is_place(x1, y1) || !svg_is_place(x2, y2))
        return;
    fprintf(
        s->f,
        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"%g\"%s%s%s/>\n",
        x1, y1, x2, y2, colour, width, dash ? " stroke-dasharray=\"" : "", dash ? dash : "",
        dash ? "\"" : "");
}

static inline void svg_box(svg *s, double x, double y, double width, double height,
                           const char *colour, double opacity)
{
    if (!svg_is_place(x, y))
        return;
    fprintf(
        s->f,
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\" fill-opacity=\"%g\"/>\n",
        x, y, width > 0 ? width : 0, height > 0 ? height : 0, colour, opacity);
}

static inline void svg_dot(svg *s, double x, double y, double r, const char *fill,
                           const char *stroke)
{
    if (!svg_is_place(x, y))
        return;
    fprintf(
        s->f,
        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%g\" fill=\"%s\" stroke=\"%s\" stroke-width=\"1\"/>\n",
        x, y, r, fill, stroke);
}

/* ---- a panel: numbers to places ---- */
static inline double svg_fraction(double v, double a, double b, int log_scale)
{
    return log_scale ? (log(v) - log(a)) / (log(b) - log(a)) : (v - a) / (b - a);
}

static inline double svg_x(const svg_panel *p, double v)
{
    return p->left + p->width * svg_fraction(v, p->x0, p->x1, p->x_log);
}

static inline double svg_y(const svg_panel *p, double v)
{
    return p->top + p->height * (1 - svg_fraction(v, p->y0, p->y1, p->y_log));
}

/* Round numbers between a and b, about `about` of them: steps of 1, 2 or 5 times a power of ten,
   decades on a log scale, with 2 and 5 between them when there are few; none if `about` is 0.
   Returns how many. */
static inline int svg_ticks(double *tick, int most, double a, double b, int log_scale, int about)
{
    int n = 0, k;
    if (about < 1 || !svg_is_place(a, b) || !(a < b) || (log_scale && !(a > 0)))
        return 0;
    /* a shorter one has room for even steps */
    if (log_scale && b > 6 * a) {
        double decades = log10(b / a), every = decades > about ? ceil(decades / about) : 1, e;
        for (e = floor(log10(a)); e <= log10(b) + 1e-9; e += every) {
            for (k = 1; k < 10; k++) {
                double v = k * pow(10, e);
                const int between = (k == 2 || k == 5) && 3 * decades <= about + 1.5;
                if ((k == 1 || between) && v > a * 0.999 && v < b * 1.001 && n < most)
                    tick[n++] = v;
            }
        }
    } else {
        const double raw = (b - a) / about, unit = pow(10, floor(log10(raw))), wanted = raw / unit;
        double step = 10 * unit, i;
        if (wanted < 1.5)
            step = unit;
        else if (wanted < 3.5)
            step = 2 * unit;
        else if (wanted < 7.5)
            step = 5 * unit;
        for (i = ceil(a / step - 1e-6); i <= floor(b / step + 1e-6) && n < most; i++)
            tick[n++] = i * step;
    }
    return n;
}

static inline void svg_number(char text[32], double v)
{
    /* a power of ten */
    if (v > 0 && (v < 0.9e-3 || v > 1.1e4)) {
        static const char *const digit[10] = { "⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹" };
        int e = (int)floor(log10(v) + 1e-6), size = e < 0 ? -e : e;
        double head = v / pow(10, e);
        char lead[16] = "";
        if (fabs(head - 1) > 0.01)
            snprintf(lead, sizeof lead, "%.2g·", head);
        snprintf(text, 32, "%s10%s%s%s", lead, e < 0 ? "⁻" : "",
                 size > 9 ? digit[size / 10 % 10] : "", digit[size % 10]);
    } else {
        snprintf(text, 32, "%.6g", fabs(v) < 1e-12 ? 0.0 : v);
    }
}

/* Writes the label of tick i of n, on a linear scale with as many decimals as the steps need. */
static inline void svg_tick_text(char text[32], const double *tick, int i, int n, int log_scale)
{
    double step = n > 1 ? tick[1] - tick[0] : 1;
    int decimals = step < 0.99 ? (int)ceil(-log10(step) - 1e-6) : 0;
    if (log_scale || n < 2 || decimals > 9)
        svg_number(text, tick[i]);
    else
        snprintf(text, 32, "%.*f", decimals, fabs(tick[i]) < step / 2 ? 0.0 : tick[i]);
}

static inline void svg_axes(svg *s, const svg_panel *p, const char *x_name, const char *y_name,
                            int x_about, int y_about)
{
    double tick[64];
    char text[32];
    int n = svg_ticks(tick, 64, p->y0, p->y1, p->y_log, y_about), i;
    for (i = 0; i < n; i++) {
        double y = svg_y(p, tick[i]);
        svg_tick_text(text, tick, i, n, p->y_log);
        svg_rule(s, p->left, y, p->left + p->width, y, SVG_RULE, 1, NULL);
        svg_text(s, p->left - 8, y + 4, 'e', 12, SVG_GREY, "%s", text);
    }
    n = svg_ticks(tick, 64, p->x0, p->x1, p->x_log, x_about);
    for (i = 0; i < n; i++) {
        double x = svg_x(p, tick[i]);
        svg_tick_text(text, tick, i, n, p->x_log);
        svg_rule(s, x, p->top + p->height, x, p->top + p->height + 4, SVG_GREY, 1, NULL);
        svg_text(s, x, p->top + p->height + 18, 'm', 12, SVG_GREY, "%s", text);
    }
    svg_rule(s, p->left, p->top + p->height, p->left + p->width, p->top + p->height, SVG_GREY, 1,
             NULL);
    if (x_name) {
        svg_text(s, p->left + p->width / 2, p->top + p->height + 36, 'm', 12, SVG_INK, "%s",
                 x_name);
    }
    if (y_name)
        svg_text(s, p->left, p->top - 10, 's', 12, SVG_INK, "%s", y_name);
}

/* What is drawn between these two is cut off at the panel's edge. */
static inline void svg_clip(svg *s, const svg_panel *p)
{
    fprintf(
        s->f,
        "<clipPath id=\"c%d\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/></clipPath>\n<g "
        "clip-path=\"url(#c%d)\">\n",
        s->clips, p->left, p->top - 2, p->width + 2, p->height + 2, s->clips);
    s->clips++;
}

static inline void svg_unclip(svg *s) { fprintf(s->f, "</g>\n"); }

/* Returns how far, in pixels, point i lies from the straight line between points a and b */
static inline double svg_bend(const svg_panel *p, const double *x, const double *y, int a, int i,
                              int b)
{
    double ax = svg_x(p, x[a]), ay = svg_y(p, y[a]), bx = svg_x(p, x[b]) - ax,
           by = svg_y(p, y[b]) - ay;
    double length = sqrt(bx * bx + by * by);
    return length > 0 ? fabs(bx * (svg_y(p, y[i]) - ay) - by * (svg_x(p, x[i]) - ax)) / length : 0;
}

/* A point is left out while the straight line that replaces it stays within a thirtieth of a pixel.
 */
static inline void svg_line(svg *s, const svg_panel *p, const double *x, const double *y, int n,
                            const char *colour, double width, const char *dash)
{
    int i, kept = 0, some = 0;
    fprintf(s->f,
            "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%g\" stroke-linejoin=\"round\" "
            "stroke-linecap=\"%s\"%s%s%s points=\"",
            colour, width, dash ? "butt" : "round", dash ? " stroke-dasharray=\"" : "",
            dash ? dash : "", dash ? "\"" : "");
    for (i = 0; i < n; i++) {
        if (i > kept && i + 1 < n && svg_bend(p, x, y, kept, i, i + 1) < 0.03
            && svg_bend(p, x, y, kept, (kept + i + 1) / 2, i + 1) < 0.03)
            continue;
        kept = i;
        if (svg_is_place(svg_x(p, x[i]), svg_y(p, y[i])))
            fprintf(s->f, "%s%.1f,%.1f", some++ ? " " : "", svg_x(p, x[i]), svg_y(p, y[i]));
    }
    fprintf(s->f, "\"/>\n");
}

static inline void svg_band(svg *s, const svg_panel *p, const double *x, const double *low,
                            const double *high, int n, const char *colour)
{
    int i;
    fprintf(s->f, "<polygon fill=\"%s\" fill-opacity=\"0.12\" points=\"", colour);
    for (i = 0; i < n; i++) {
        if (svg_is_place(svg_x(p, x[i]), svg_y(p, high[i])))
            fprintf(s->f, "%.1f,%.1f ", svg_x(p, x[i]), svg_y(p, high[i]));
    }
    for (i = n - 1; i >= 0; i--) {
        if (svg_is_place(svg_x(p, x[i]), svg_y(p, low[i])))
            fprintf(s->f, "%.1f,%.1f%s", svg_x(p, x[i]), svg_y(p, low[i]), i ? " " : "");
    }
    fprintf(s->f, "\"/>\n");
}

/* Draws a dashed vertical with its name beside it, at the panel's foot or head. */
static inline void svg_mark(svg *s, const svg_panel *p, double x, const char *name, int head)
{
    svg_rule(s, svg_x(p, x), p->top, svg_x(p, x), p->top + p->height, SVG_GREY, 1, "3 3");
    svg_text(s, svg_x(p, x) + 4, head ? p->top + 12 : p->top + p->height - 6, 's', 11, SVG_GREY,
             "%s", name);
}

/* ---- labels at the ends of lines: each as near its line as the others allow, with a thin line to
   it where it had to move ---- */
typedef struct {
    double y;
    const char *colour;
    char text[96];
} svg_label;

static inline void svg_labels(svg *s, svg_label *label, int n, double x, double top, double bottom,
                              double apart)
{
    double y[64];
    int order[64], i, k, again;
    if (n > 64)
        n = 64;
    /* sorted by place, ties as given */
    for (i = 0; i < n; i++) {
        for (k = i; k > 0 && label[order[k - 1]].y > label[i].y; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
    for (i = 0; i < n; i++)
        y[i] = label[order[i]].y;
    /* neighbours push each other apart */
    for (again = 0; again < 500; again++) {
        for (i = 0; i + 1 < n; i++) {
            double push = (apart - (y[i + 1] - y[i])) / 2;
            if (push > 0) {
                y[i] -= push;
                y[i + 1] += push;
            }
        }
        if (n && y[0] < top)
            y[0] = top;
        if (n && y[n - 1] > bottom)
            y[n - 1] = bottom;
    }
    for (i = 0; i < n; i++) {
        const svg_label *l = label + order[i];
        svg_rule(s, x + 3, l->y, x + 15, y[i], l->colour, 1, NULL);
        svg_text(s, x + 19, y[i] + 4, 's', 12, l->colour, "%s", l->text);
    }
}

/* ---- a ramp of colours from first to last, dark violet over green to ochre (the readable part of
   viridis) ---- */
static inline const char *svg_ramp(char colour[8], double fraction)
{
    static const int stop[5][3] = {
        { 68, 1, 84 }, { 49, 104, 142 }, { 31, 140, 125 }, { 90, 160, 50 }, { 190, 140, 0 }
    };
    const double v = fmax(0, fmin(fraction, 1));
    const int i = v >= 1 ? 3 : (int)(v * 4);
    const double p = v * 4 - i;
    /* no number, no colour */
    if (!(fraction >= -HUGE_VAL))
        return strcpy(colour, "#DDDDDD");
    snprintf(colour, 8, "#%02X%02X%02X",
             (unsigned)(stop[i][0] + p * (stop[i + 1][0] - stop[i][0])) & 255u,
             (unsigned)(stop[i][1] + p * (stop[i + 1][1] - stop[i][1])) & 255u,
             (unsigned)(stop[i][2] + p * (stop[i + 1][2] - stop[i][2])) & 255u);
    return colour;
}
#endif
