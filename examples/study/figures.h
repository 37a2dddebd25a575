/* SPDX-License-Identifier: MIT-0
   figures.h: what the figures of experiments share. */
#ifndef FIGURES_H
#define FIGURES_H
#include "study.h"
#include "svg.h"

typedef struct {
    svg s;
    output out;
} figure;

/* NAME_what.svg in --svg, with a title that states the finding and a line below it: data, network,
   seeds, and a note */
int figure_open(study *s, figure *f, const char *what, int width, int height, const char *title,
                const char *note);
int figure_close(study *s, figure *f);

enum { BAND_POINTS = 2048 };
typedef struct {
    double x[BAND_POINTS], mean[BAND_POINTS], low[BAND_POINTS], high[BAND_POINTS];
    int n;
} band;

int figure_band(const study *s, band *b, long variant, int arm, const char *quantity, int gate,
                long first);
void figure_draw(svg *s, const svg_panel *p, const band *b, const char *ink, double width,
                 const char *dash);
void figure_range(double *low, double *high, double v); /* widens it to hold v */
int figure_findings(study *s);
#endif
