/* SPDX-License-Identifier: MIT-0

   instruments.h: measures of the experiments over activations, weights and curves. Those over
   logits are in lgelu.h. */
#ifndef INSTRUMENTS_H
#define INSTRUMENTS_H
#include <stddef.h>
#include <stdint.h>

/* Returns the fraction of n activations that are at most 0: "Dead %" of "Impact of Activation
   Curvature on Transformer Stability: GELU vs. ReLU", a blog study of 2026, over 100; 0 if n is
   0. */
double dead_fraction(const float *a, size_t n);

/* Returns the mean of n activations, "Act Mean" of that study; 0 if n is 0. */
double mean_activation(const float *a, size_t n);

/* Returns OUI in its batch form (arXiv 2603.09950, 2605.10161) for one layer: with s_j the samples
   whose unit j is above 0, the mean over j of min(s_j, B - s_j)/⌊B/2⌋, where B is the number of
   samples. Returns 0 if B < 2. As published it takes the outputs of linear and convolution layers
   before their gates, and of maps one random pixel a sample (width = channels). */
double oui_batch(const float *a, size_t samples, size_t width);

/* Returns OUI in its pairwise form (arXiv 2504.17160) for one layer: the mean over sample pairs of
   min(h, ⌊w/2⌋)/⌊w/2⌋, h being the Hamming distance of the bits a > 0. a has shape (samples,
   width); pair[k] holds two sample indices. Returns 0 without pairs or if the width is below 2. It
   is not interchangeable with the batch form. */
double oui_pairwise(const float *a, size_t width, const uint32_t (*pair)[2], size_t pairs);

/* Returns A_k (arXiv 2602.08333): the fraction of n activation bits a > 0 that differ from
   `previous`; 0 if n is 0. */
double pattern_change(const float *a, const float *previous, size_t n);

/* Returns W_k (arXiv 2602.08333): the L2 norm of w - previous, n values each. */
double weight_change(const float *w, const float *previous, size_t n);

/* Smooths a curve in place: c[k] = keep·c[k-1] + (1 - keep)·c[k]. */
void smooth_curve(double *curve, size_t n, double keep);

/* Returns the first k from which on the curve stays below q times its maximum, n if there is none
   (our definition of decay time). */
size_t decay_time(const double *curve, size_t n, double q);

/* Returns ω1, the mean absolute first difference of a curve (arXiv 2601.21739); 0 if n < 2. */
double roughness(const double *curve, size_t n);

/* Returns Spearman's rank correlation of a[n] and b[n], ties averaged; NaN if one of them is
   constant or has a NaN. It takes n² comparisons, and needs no memory. */
double spearman(const float *a, const float *b, size_t n);
#endif
