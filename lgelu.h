/* clang-format off */
/* lgelu.h - v1.0.0 - λ-GELU kernels, learned hardness, exact ReLU-ization
   SPDX-License-Identifier: MIT-0

   The gate f(x; λ) = x·Φ(λx) is GELU at λ = 1 and ReLU at λ = ∞ (Φ is the normal distribution).
   This file has its kernels (forward, backward in x and in λ, scalar to AVX-512, chosen at run
   time), the rules that learn one λ per layer and then raise it until the gate is ReLU, and, on
   request, a compact trainer that takes a network from smooth training to an exact ReLU network.
   The idea is that of arXiv 2603.21991, called [L] below.

   In *one* C or C++ source file do this, and include the header without the macro everywhere else:

       #define LGELU_IMPLEMENTATION
       #include "lgelu.h"

   Ten lines to the first result (cc -O2 ten.c -lm):

       #define LGELU_IMPLEMENTATION
       #include "lgelu.h"
       #include <stdio.h>
       int main(void)
       {
           float x[4] = { -2, -0.5f, 0.5f, 2 }, y[4];
           lgelu_forward(y, x, 1, 4);                                   // GELU
           printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);
           // -0.0455003 -0.154269 0.345731 1.9545
           lgelu_forward(y, x, lgelu_lambda_for_tolerance(0.005f), 4);  // λ = 159.577, almost ReLU
           printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);
           // -0 -0 0.5 2
       }

   MAP         search for a token, brackets included, to find its section
     [1] DECLARATIONS   the manual: gate kernels, λ map, hardening, optimisers, random numbers,
                        instruction sets, accuracy, instruments, statuses; then the trainer's
                        (LGELU_TRAINER): life of a network, builders, training plans, gates and λ,
                        files; last what advanced users need: threads, custom linear layers,
                        layers and nodes, custom gates, matrix products
     [2] PLATFORM       compilers, target attributes, atomics, prefetch, refused flags, exact fma
     [3] YARDSTICK      the exact gate in double; exp, log, cos, sin and random numbers with the
                        same bits everywhere
     [4] DISPATCH       the table of kernels and the structures that they receive their work in;
                        this file includes itself once per instruction set; cpuid; public kernels
     [5] HARDNESS       λ(s), its slope and inverse, the gap to ReLU, targets, the hardening plan
     [6] OPTIMISER      AdamW and SGD on flat arrays; the update of s
     [7] INSTRUMENTS    argmax, accuracy, flips, largest change; the texts of statuses
     [8] NETWORK        a table of layers, a memory plan, a walk forward and one backward
                        (LGELU_TRAINER)
         [8a] machine: texts, errors, sizes, threads, products
         [8b] graph: nodes and their checks, jobs, memory plan, block, first weights
         [8c] layers, one after another, each with builder, workspace, forward and backward: inputs,
              linear, gates, sigmoid, sums, products, convolutions (of any window, depthwise,
              Winograd's), batch and group norm, pools, factors of channels, concatenation, views,
              embedding, positions, rotary positions, layer and RMS norm, attention, dropout,
              patches and tokens, losses
         [8d] table of layers   [8e] whole networks   [8f] running    [8g] training step
         [8h] values, gates, folding
     [9] EXCHANGE       checkpoints as safetensors, through a caller's function (LGELU_TRAINER)
         [9a] tensors of a network     [9b] copies       [9c] writing    [9d] JSON     [9e] reading
     [K] KERNELS        vocabularies (scalar, SSE2, NEON, AVX2, AVX-512, WebAssembly), METHOD, then
                        every kernel once
         [Ka] tables, vocabulary   [Kb] gate      [Kc] other gates     [Kd] 16 bits
         [Ke] stochastic gate      [Kf] optimiser [Kg] sums, softmax, norms
         [Kh] matrix product       [Ki] images

   PROMISES
     Accuracy      holds for every float x at seven λ from 1 to 10^4, in units in the last place:
                   the rows of LGELU_CLAIMS in [1], which the tests expand.
     Determinism   y[i] depends on x[i] and λ alone: not on i, n, alignment, neighbours or the
                   instruction set. Sums run over 16 virtual lanes in one order. gcc and clang, -O0
                   to -O3, contraction on or off, any number of threads: the same bits. Of libm only
                   exact functions are called: fma, sqrt, floor, frexp.
     Flags         Compiler flags that change bits are refused where the compiler lets them be seen:
                   -ffast-math and its parts, gcc's -fno-signed-zeros and
                   -fsingle-precision-constant. Clang shows neither -fno-honor-nans,
                   -fno-honor-infinities, -fno-signed-zeros, -freciprocal-math, -fapprox-func nor
                   -fdenormal-fp-math if one is given alone: don't compile this file with them.
     Rounding      The rounding mode of the calling thread, and of threads that help it, changes no
                   bit of kernels, products, optimisers and networks: they round to nearest and
                   restore the mode. Functions of single values (exact gate, λ map, plans, random
                   numbers, instruments) round as the thread does.
     Exceptions    Ordinary data raise no division by zero, invalid operation or overflow, so that a
                   program may trap these (gcc; other compilers may compute on lanes that are not
                   used). An infinite or NaN value may raise them, as may a gate where |x| or |λx|
                   is above 2^19: to avoid it there would cost each gate an instruction.
     Threads       Every function is reentrant; the only global is one atomic int, the instruction
                   set in force. A network's calls write to its block, inference too: threads that
                   call at the same time need a network each (lgelu_net_copy). A thread that waits
                   for another one spins for a moment, then yields its processor (sched_yield).
     Memory        Nothing is allocated; nothing is read or written past the n elements. A network
                   is stored in one block, which the caller provides after requesting its size. No
                   stdio, no environment, no errno. No function has a stack frame over 22 KB (gcc);
                   all run on a thread with a stack of 64 KB, at -O0 of 128 KB.
     Errors        A network's calls return a status, with one line in net.message that names the
                   layer or the byte. A call that is refused changes nothing: neither a file that is
                   refused nor a forward with a label out of range.
     Aliasing      An output may be the input itself (y = x, dx = dy); otherwise arrays don't
                   overlap.
     Special       f(±0) = ±0, f(+inf) = +inf, f(-inf) = -0, NaN gives NaN. λ may be 0 (x/2) to +inf
                   (ReLU; a negative x gives -0); a NaN or negative λ gives NaN. Gradual underflow
                   is kept. A forward passes a NaN in x on as it is; any other NaN of these kernels
                   is 7fc00000.

   OPTIONS     #define before including. Put the implementation into a file of its own: it takes
               seconds to compile.
     LGELU_IMPLEMENTATION  compiles the code here.
     LGELU_TRAINER         adds the network of sections [8] and [9]; define it wherever you include.
     LGELU_STATIC          makes every function static.
     LGELU_DEF             is the linkage of the public functions, extern unless you define it.
     LGELU_NO_SIMD         compiles the scalar kernels only.
     LGELU_NO_AVX512       compiles no kernels for AVX-512: processors that have it run those for
                           AVX2, with the same bits.
     LGELU_ASSERT          is assert(condition) unless you define it.
     LGELU_SELF            is the name under which the file includes itself, "lgelu.h" unless you
                           define it: needed only if the vendored file has another name.
     LGELU_CHECK           makes a checking build: 64 bytes behind every region of a network's block
                           (weights, gradients, statistics, values, workspace of each worker, ...)
                           are watched, and a layer that writes there makes the call return
                           LGELU_E_MEMORY with the layer and the region in net.message. The block
                           is larger. Under AddressSanitizer these bytes are poisoned while a layer
                           runs.

   VENDORING   test_vendoring.sh and test_header.sh, in tests/header, run these recipes.
     -Ofast, -ffast-math   This file refuses them. In a program that uses them, compile the file
                           with LGELU_IMPLEMENTATION as an object of its own, without them:
                               cc -O2 -c kernels.c && cc -Ofast host.c kernels.o -lm
                           or append -fno-fast-math to the flags of that file, or precede the
                           include with #pragma GCC optimize("no-fast-math") (gcc only). Each way
                           gives the same bits, also if the program flushes subnormal numbers.
     Only what is used     With LGELU_STATIC the compiler drops what a file doesn't call. As an
                           object of its own, compile with -ffunction-sections -fdata-sections and
                           link with -Wl,--gc-sections. What one call then adds to a program on
                           x86-64 (gcc 12, -O2), in KB of 1,000 bytes: everything; with
                           LGELU_NO_AVX512; and for AVX2 alone, by -march=x86-64-v3 as well:
                                               LGELU_STATIC     --gc-sections
                             lgelu_forward        20, 17, 11       24, 19, 13
                             lgelu_backward       34, 28, 20       38, 31, 22
                             lgelu_tanh_forward    9,  7,  5       13, 10,  7
                             lgelu_tanh_backward  13, 11,  6       17, 13,  9
                             lgelu_silu_forward   11,  8,  6       15, 12,  8
                             lgelu_silu_backward  22, 17, 13       25, 20, 15
                           LGELU_NO_SIMD compiles the scalar kernels alone, at their speed.
     Arguments             Outputs come first: lgelu_backward(dx, dy, x, λ, n). dx is overwritten,
                           not added to; to accumulate, add it afterwards. The channel form adds to
                           dlambda.

   NOT IN HERE  GPUs, messages between machines (a training plan calls the caller's sum), automatic
                differentiation of anything but the listed layers, file access.

   HISTORY     1.0.0  API 1.0: names with their family's prefix, callbacks that end in `user`;
                      tests/names-1.0.md lists old and new names. New kernels: SiLU, ELU. New
                      layers: RMS and group normalisation, products, sigmoid, scale,
                      concatenation, transpose, linear without biases, rotary positions,
                      grouped-query attention; convolutions and pools with any window (1-D, dilated,
                      PyTorch's ceil_mode); Llama's blocks by options of lgelu_transformer. Also
                      custom linear layers, lgelu_with_team, LGELU_CHECK, LGELU_SELF. Corrected:
                      partial batches, generation, the gradient of a convolution whose stride is
                      larger than its image, loops inside loops, floating-point exceptions,
                      running statistics that became infinite or NaN. Refused, with nothing changed:
                      gradients that are not finite, plans with numbers that no plan has, a λ below
                      1 in the next step. lgelu_net_relu and lgelu_net_set_gates return a status.
                      lgelu_net_restart begins another training on loaded weights.
                      Moved to examples/study: OUI, the mean of activations and their dead
                      fraction; lgelu_drift is gone. The memory plan takes n² steps for n nodes.
               0.2.0  a path to ReLU that keeps the score, copies by name, custom gates, a public
                      view of the graph, prepacked matrices, WebAssembly, Windows, stacks of 22 KB
               0.1.0  kernels, hardness, optimiser, instruments, dense, convolutional and
                      Transformer networks */
/* clang-format on */
#ifndef LGELU__PASS

/* ==== [1] DECLARATIONS ======================================================================== */
#ifndef LGELU_H
#define LGELU_H
#define LGELU_VERSION_MAJOR 1
#define LGELU_VERSION_MINOR 0
#define LGELU_VERSION_PATCH 0
#define LGELU_VERSION "1.0.0"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef LGELU_DEF
#ifdef LGELU_STATIC
#ifdef __GNUC__
#define LGELU_DEF static __attribute__((unused))
#else
#define LGELU_DEF static
#endif
#else
#define LGELU_DEF extern
#endif
#endif
/* Tells the compiler that argument k is stored and not read: what it points to may be filled
   later. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define LGELU__KEPT(k) __attribute__((access(none, k)))
#else
#define LGELU__KEPT(k)
#endif

/* Sources cited below: [L] λ-GELU, arXiv 2603.21991. [H] Hendrycks and Gimpel, GELU, arXiv
   1606.08415. Others are cited in full. "Our choice" marks what no source prescribes. */

/* ---- gate kernels ---- */

/* Computes y[i] = f(x[i]; λ) = x[i]·Φ(λx[i]) for n floats. y may be x. λ = 1 is GELU, λ = INFINITY
   is ReLU; λ may be anything from 0 (x/2) on, a negative or NaN λ gives NaN [L, section 2]. For
   a finite λ outside [2^-38, 2^38] it takes 20 to 300 times as long. */
LGELU_DEF void lgelu_forward(float *y, const float *x, float lambda, size_t n);

/* Computes dx[i] = dy[i]·(Φ(z) + zφ(z)) with z = λx[i], where φ is the normal density, and returns
   dL/dλ = Σ dy[i]·x[i]²φ(z). x is the forward's input. dx may be dy, or NULL if only dL/dλ is
   wanted. dx is overwritten, not added to. For λ >= 2^-10 the terms of the sum are floats: dy
   beyond 2^64 may make it infinite. */
LGELU_DEF double lgelu_backward(float *dx, const float *dy, const float *x, float lambda, size_t n);

/* Computes the gate with one λ per channel: x and y have shape (outer, channels, inner), λ has
   shape (channels). One λ per channel is our extension of [L]. */
LGELU_DEF void lgelu_forward_channels(float *y, const float *x, const float *lambda, size_t outer,
                                      size_t channels, size_t inner);

/* Computes dx as lgelu_backward does and *adds* each channel's dL/dλ to dlambda[channels]. dx may
   be dy or NULL. */
LGELU_DEF void lgelu_backward_channels(float *dx, double *dlambda, const float *dy, const float *x,
                                       const float *lambda, size_t outer, size_t channels,
                                       size_t inner);

/* Computes the tanh approximation of GELU, y = 0.5x(1 + tanh(√(2/π)(x + 0.044715x³))), as GPT-2
   uses it [H]. y may be x. */
LGELU_DEF void lgelu_tanh_forward(float *y, const float *x, size_t n);

/* Computes dx = dy times the derivative of the tanh approximation at x. dx may be dy. */
LGELU_DEF void lgelu_tanh_backward(float *dx, const float *dy, const float *x, size_t n);

/* ---- x·σ(βx): SiLU and QuickGELU ---- */

/* Computes y = x·σ(βx) for n floats, σ(z) = 1/(1 + e^-z). y may be x. β = 1 is SiLU, also called
   Swish (arXiv 1702.03118, 1710.05941), β = 1.702 is QuickGELU, β = 0 is x/2 and β = INFINITY is
   ReLU. A NaN or negative β gives NaN. */
LGELU_DEF void lgelu_silu_forward(float *y, const float *x, float beta, size_t n);

/* Computes dx = dy·f'(x) for n floats and returns dL/dβ = Σ dy·x²σ(βx)(1 - σ(βx)). dx is
   overwritten; it may be dy, or NULL if only dL/dβ is wanted. */
LGELU_DEF double lgelu_silu_backward(float *dx, const float *dy, const float *x, float beta,
                                     size_t n);

/* Compute x·σ(βx) and its derivatives in x and in β in double, one value at a time, with errors of
   a few units in the last place. */
LGELU_DEF double lgelu_exact_silu(double x, double beta);
LGELU_DEF double lgelu_exact_silu_dx(double x, double beta);
LGELU_DEF double lgelu_exact_silu_dbeta(double x, double beta);

/* Returns the largest distance of x·σ(βx) from ReLU, 0.2784645/β, which occurs at |βx| =
   1.2784645. */
LGELU_DEF float lgelu_silu_gap(float beta);

/* ---- ELU ---- */

/* Computes y = x, or e^x - 1 below 0, for n floats (arXiv 1511.07289, α = 1). y may be x. Its limit
   at -inf is -1. */
LGELU_DEF void lgelu_elu_forward(float *y, const float *x, size_t n);

/* Computes dx = dy, or dy·e^x below 0. dx may be dy. */
LGELU_DEF void lgelu_elu_backward(float *dx, const float *dy, const float *x, size_t n);

/* ---- 16-bit floats ---- */

/* Converts n 16-bit floats, each in a uint16_t, to f32, exactly. bf16 has 8 exponent and 7 fraction
   bits; IEEE f16 has 5 and 10. A NaN keeps its sign and leading bits and becomes quiet. */
LGELU_DEF void lgelu_from_bf16(float *y, const uint16_t *x, size_t n);
LGELU_DEF void lgelu_from_f16(float *y, const uint16_t *x, size_t n);

/* Rounds n floats to 16 bits, to nearest, ties to even. What is too large becomes ±inf (f16: from
   65520 on); what is too small underflows gradually to ±0. */
LGELU_DEF void lgelu_to_bf16(uint16_t *y, const float *x, size_t n);
LGELU_DEF void lgelu_to_f16(uint16_t *y, const float *x, size_t n);

/* Compute lgelu_forward on 16-bit floats: in f32, rounded once at the end. y may be x. */
LGELU_DEF void lgelu_forward_bf16(uint16_t *y, const uint16_t *x, float lambda, size_t n);
LGELU_DEF void lgelu_forward_f16(uint16_t *y, const uint16_t *x, float lambda, size_t n);

/* Compute lgelu_backward on 16-bit floats, and return dL/dλ in double. dx may be dy or NULL. */
LGELU_DEF double lgelu_backward_bf16(uint16_t *dx, const uint16_t *dy, const uint16_t *x,
                                     float lambda, size_t n);
LGELU_DEF double lgelu_backward_f16(uint16_t *dx, const uint16_t *dy, const uint16_t *x,
                                    float lambda, size_t n);

/* Compute the same for the tanh approximation, SiLU and ELU. */
LGELU_DEF void lgelu_tanh_forward_bf16(uint16_t *y, const uint16_t *x, size_t n);
LGELU_DEF void lgelu_tanh_forward_f16(uint16_t *y, const uint16_t *x, size_t n);
LGELU_DEF void lgelu_tanh_backward_bf16(uint16_t *dx, const uint16_t *dy, const uint16_t *x,
                                        size_t n);
LGELU_DEF void lgelu_tanh_backward_f16(uint16_t *dx, const uint16_t *dy, const uint16_t *x,
                                       size_t n);
LGELU_DEF void lgelu_silu_forward_bf16(uint16_t *y, const uint16_t *x, float beta, size_t n);
LGELU_DEF void lgelu_silu_forward_f16(uint16_t *y, const uint16_t *x, float beta, size_t n);
LGELU_DEF double lgelu_silu_backward_bf16(uint16_t *dx, const uint16_t *dy, const uint16_t *x,
                                          float beta, size_t n);
LGELU_DEF double lgelu_silu_backward_f16(uint16_t *dx, const uint16_t *dy, const uint16_t *x,
                                         float beta, size_t n);
LGELU_DEF void lgelu_elu_forward_bf16(uint16_t *y, const uint16_t *x, size_t n);
LGELU_DEF void lgelu_elu_forward_f16(uint16_t *y, const uint16_t *x, size_t n);
LGELU_DEF void lgelu_elu_backward_bf16(uint16_t *dx, const uint16_t *dy, const uint16_t *x,
                                       size_t n);
LGELU_DEF void lgelu_elu_backward_f16(uint16_t *dx, const uint16_t *dy, const uint16_t *x,
                                      size_t n);

/* How a gradient passes the stochastic gate: through the open gates only (straight-through), or by
   the derivative of the gate's mean, which is f. */
typedef enum { LGELU_ESTIMATE_STRAIGHT_THROUGH = 0, LGELU_ESTIMATE_MEAN } lgelu_estimate;

/* Computes the stochastic gate [H]: y[i] = x[i]·B[i], where B[i] is 1 with probability Φ(λx[i]), so
   that the mean of y is f(x; λ). B[i] is 1 if lgelu_random(seed, stream, first + i) < Φ·2^32: a
   long array may be split anywhere. A closed gate gives 0 with the sign of x. λ and special values
   are those of lgelu_forward; λ = 0 is a fair coin. y may be x. */
LGELU_DEF void lgelu_stochastic_forward(float *y, const float *x, float lambda, size_t n,
                                        uint64_t seed, uint64_t stream, uint64_t first);

/* Computes dx = dy·B with the forward's seed, stream and first, or dx = dy·f'(x; λ), as `how` says.
   Returns the derivative of the mean in λ, Σ dy·x²φ(λx), in both cases. dx is overwritten; it may
   be dy, or NULL if only the derivative is wanted. */
LGELU_DEF double lgelu_stochastic_backward(float *dx, const float *dy, const float *x, float lambda,
                                           size_t n, uint64_t seed, uint64_t stream, uint64_t first,
                                           lgelu_estimate how);

/* ---- λ map, targets and hardening ---- */

/* The map from the free parameter s to λ >= 1 [L, section 3]. Softplus is the paper's:
   λ = 1 + softplus(s/t). Sigmoid (our choice) is bounded: λ = 1 + (λmax - 1)·σ(s/t). Direct is the
   naive λ = max(1, s). */
typedef enum {
    LGELU_MAP_SOFTPLUS = 0,
    LGELU_MAP_SIGMOID,
    LGELU_MAP_DIRECT,
    LGELU_SOFTPLUS = LGELU_MAP_SOFTPLUS, /* the names before 1.0 */
    LGELU_SIGMOID = LGELU_MAP_SIGMOID,
    LGELU_DIRECT = LGELU_MAP_DIRECT
} lgelu_map;

typedef struct {
    lgelu_map map;
    float temperature; /* t; 0.1 is used where it is 0, negative, infinite or NaN */
    float lambda_max;  /* of the sigmoid map; 256 is used where it is at most 1, infinite or NaN */
} lgelu_lambda_map;

typedef lgelu_lambda_map lgelu_hardness; /* its name before 1.0 */

/* Returns λ(s), at least 1. It is finite where s/t is a finite float; a NaN s gives NaN. */
LGELU_DEF float lgelu_lambda(const lgelu_lambda_map *map, float s);

/* Returns dλ/ds at s: for softplus σ(s/t)/t. */
LGELU_DEF float lgelu_lambda_slope(const lgelu_lambda_map *map, float s);

/* Returns the s with λ(s) = lambda; NaN for a λ that the map does not reach, such as any below 1.
   At λ = 1 it is -inf, where no gradient can move s (on the direct map 1). */
LGELU_DEF float lgelu_lambda_inverse(const lgelu_lambda_map *map, float lambda);

/* Returns the largest distance of f(·; λ) from ReLU, 0.1699712/λ, which occurs at |λx| =
   0.7517915. */
LGELU_DEF float lgelu_gap(float lambda);

/* Returns the gate error of [L, section 4], ∫|Φ(λx) - [x > 0]| dx = 2/(λ√(2π)). */
LGELU_DEF float lgelu_gate_error(float lambda);

/* Returns the λ whose gap to ReLU is `gap` (our choice of target). 0 gives INFINITY; a gap above
   0.1699712 gives a λ below 1, which no map reaches. */
LGELU_DEF float lgelu_lambda_for_gap(float gap);

/* Returns the λ whose gate error is tau, the target of [L, section 4]: 0.005 gives 159.57692. 0
   gives INFINITY; a tau above 0.7978846 gives a λ below 1. */
LGELU_DEF float lgelu_lambda_for_tolerance(float tau);

/* The path of a driven λ: its value λ0 up to step `begin`, `target` from step `end` on, in between
   along the shape (the shapes are our choice): geometric or linear in λ, linear in s, or a cosine.
   If end <= begin, λ is the target from step `end` on. */
typedef enum {
    LGELU_SHAPE_GEOMETRIC = 0,
    LGELU_SHAPE_LINEAR,
    LGELU_SHAPE_LINEAR_S,
    LGELU_SHAPE_COSINE,
    LGELU_GEOMETRIC = LGELU_SHAPE_GEOMETRIC, /* the names before 1.0 */
    LGELU_LINEAR = LGELU_SHAPE_LINEAR,
    LGELU_LINEAR_S = LGELU_SHAPE_LINEAR_S,
    LGELU_COSINE = LGELU_SHAPE_COSINE
} lgelu_shape;

typedef struct {
    float target;
    long begin, end;
    lgelu_shape shape;
    /* The map, for LGELU_SHAPE_LINEAR_S; lgelu_net_step uses net.lambda_map instead. */
    lgelu_lambda_map h;
} lgelu_hardening;

/* Returns λ at this step of the plan for a gate that had λ0 when hardening began. */
LGELU_DEF float lgelu_harden(float lambda0, const lgelu_hardening *plan, long step);

/* ---- optimisers ---- */

/* AdamW (Loshchilov and Hutter, arXiv 1711.05101), decoupled and bias-corrected, eps outside the
   root, as PyTorch computes it. */
typedef struct {
    float lr, beta1, beta2, eps, weight_decay;
} lgelu_adamw;

/* Returns PyTorch's defaults: β 0.9 and 0.999, eps 1e-8, decay 0.01. */
LGELU_DEF lgelu_adamw lgelu_adamw_defaults(float lr);

/* Returns the balanced preset β1 = β2 (arXiv 2601.21739) = 0.944 (arXiv 2605.10119). */
LGELU_DEF lgelu_adamw lgelu_adamw_balanced(float lr);

/* Updates w[n] by one AdamW step with the gradient g[n]. m[n] and v[n] are the moments, zero before
   the first step; step counts from 1 (at 0 the bias correction would divide by 0). */
LGELU_DEF void lgelu_adamw_step(float *w, float *m, float *v, const float *g,
                                const lgelu_adamw *opt, long step, size_t n);

/* Updates w[n] by SGD: m = momentum·m + (g + weight_decay·w), then w -= lr·m. m[n] is zero before
   the first step. */
LGELU_DEF void lgelu_sgd_step(float *w, float *m, const float *g, float lr, float momentum,
                              float weight_decay, size_t n);

/* Updates the free parameters s[layers] by AdamW with the rate lambda_lr_scale·lr and without decay
   [L, section 3]. dlambda[layers] is dL/dλ; the slope of the map is applied here. Writes the new
   λ's to lambda. */
LGELU_DEF void lgelu_hardness_step(float *s, float *m, float *v, float *lambda,
                                   const double *dlambda, const lgelu_lambda_map *map,
                                   const lgelu_adamw *opt, float lambda_lr_scale, long step,
                                   size_t layers);

/* ---- random numbers ---- */

/* Returns 32 random bits by Philox4x32-10 (Salmon et al., SC 2011). They depend on (seed, stream,
   i) only, so that streams may be read in any order and by any thread. */
LGELU_DEF uint32_t lgelu_random(uint64_t seed, uint64_t stream, uint64_t i);

/* Returns a uniform float in [0, 1) with 24 bits. */
LGELU_DEF float lgelu_uniform(uint64_t seed, uint64_t stream, uint64_t i);

/* Returns a normal float of mean 0 and deviation 1. */
LGELU_DEF float lgelu_normal(uint64_t seed, uint64_t stream, uint64_t i);

/* Fills order[n] with a random permutation of 0 to n - 1; n is at most 2^32. */
LGELU_DEF void lgelu_shuffle(uint32_t *order, size_t n, uint64_t seed, uint64_t stream);

/* ---- instruction sets ---- */

/* The instruction sets, from the slowest to the fastest that a machine may have. WebAssembly's
   SIMD128 has NEON's number: both have four lanes, and no machine has both. Scalar on x86-64 uses
   SSE2, which each of these processors has, unless LGELU_NO_SIMD is defined or the compiler may use
   fma everywhere (-mfma). */
typedef enum {
    LGELU_ISA_SCALAR = 0,
    LGELU_ISA_NEON,
    LGELU_ISA_AVX2,
    LGELU_ISA_AVX512,
    LGELU_ISA_COUNT,
    LGELU_ISA_SIMD128 = LGELU_ISA_NEON,
    LGELU_SCALAR = LGELU_ISA_SCALAR, /* the names before 1.0 */
    LGELU_NEON = LGELU_ISA_NEON,
    LGELU_AVX2 = LGELU_ISA_AVX2,
    LGELU_AVX512 = LGELU_ISA_AVX512
} lgelu_isa_id;

/* Returns the instruction set in force, an lgelu_isa_id. */
LGELU_DEF int lgelu_isa(void);

/* Limits the instruction set to `most`, an lgelu_isa_id, for the whole process, from any thread. A
   later call replaces the limit; LGELU_ISA_AVX512 removes it. Returns the one now in force. */
LGELU_DEF int lgelu_isa_limit(int most);

/* Returns "scalar", "neon" (or "simd128"), "avx2" or "avx512"; "?" for any other value. */
LGELU_DEF const char *lgelu_isa_name(int isa);

/* Returns the lgelu_isa_id of such a name, or -1. */
LGELU_DEF int lgelu_isa_from_name(const char *name);

/* ---- accuracy ---- */

/* The accuracy promised for every float x at λ = 1, 1.693147, 2, 3, 10, 159.57691 and 10^4, one row
   X(kernel, ulp, units) each: the error in units in the last place of the exact result, and in
   units of 2^-149 where the result is below 2^-126. dx is relative also at its root; dlambda is one
   term with dy = 1. tests/kernels/sweep.c holds the kernels to these rows. */
/* clang-format off */
#define LGELU_CLAIMS(X)         \
    X(forward,      2.0, 1.0)   \
    X(dx,           2.5, 1.6)   \
    X(dlambda,      2.4, 1.2)   \
    X(tanh_forward, 2.5, 1.0)   \
    X(tanh_dx,      3.0, 1.5)
/* The same at any other λ from 1 to 10^4, held by samples of (x, λ) and the worst pairs known.
   There λx may come nearer to the root of dx at -0.7517915 than any float at those seven λ, so that
   2^-54 is added to dx's bound: it is relative from a distance of 2^-28 on, absolute (within 2^-51)
   nearer. */
#define LGELU_CLAIMS_BETWEEN(X) \
    X(forward,      2.25, 1.0)  \
    X(dx,           2.5,  1.6)  \
    X(dlambda,      3.0,  1.2)
/* The same for x·σ(βx), for every float x at β = 1, 1.702, 3, 10, 159.57691 and 10^4. silu_dx is
   relative also at its root. */
#define LGELU_SILU_CLAIMS(X)    \
    X(silu_forward, 2.5, 1.0)   \
    X(silu_dx,      5.0, 2.0)   \
    X(silu_dbeta,   4.0, 1.5)
/* The same for ELU, for every float x. */
#define LGELU_ELU_CLAIMS(X)     \
    X(elu_forward, 1.5, 1.0)    \
    X(elu_dx,      1.5, 1.0)
/* clang-format on */

/* Compute the gate in double, one value at a time, as the reference for everything above:
   xΦ(λx), Φ(λx) + λxφ(λx), and x²φ(λx) [L, section 2]. x and λ are in the range of floats: results
   whose Φ(λx) is below 2^-1074 are 0. */
LGELU_DEF double lgelu_exact(double x, double lambda);
LGELU_DEF double lgelu_exact_dx(double x, double lambda);
LGELU_DEF double lgelu_exact_dlambda(double x, double lambda);

/* ---- instruments: measures over logits ---- */

/* Returns the index of the largest of n values, the first of equals; 0 if n is 0. A NaN is passed
   over; if all are NaN the result is 0. */
LGELU_DEF size_t lgelu_argmax(const float *a, size_t n);

/* Returns the fraction of samples whose largest logit is at their label; 0 if there are no samples.
   logits has shape (samples, classes). With one class the prediction is 1 if the logit is positive,
   else 0. A label that is no class counts as a wrong prediction. */
LGELU_DEF double lgelu_accuracy(const float *logits, const int32_t *labels, size_t samples,
                                size_t classes);

/* Returns how many samples change their prediction from `before` to `after`, both (samples,
   classes). With one class the prediction is the logit's sign. */
LGELU_DEF size_t lgelu_count_flips(const float *before, const float *after, size_t samples,
                                   size_t classes);

/* Returns max |before[i] - after[i]| over n values; NaN if a difference is NaN. */
LGELU_DEF double lgelu_max_abs_diff(const float *before, const float *after, size_t n);

/* ---- statuses ---- */
typedef enum {
    LGELU_OK = 0,
    LGELU_E_ARGUMENT,  /* an argument out of its range, or a call in the wrong order */
    LGELU_E_SHAPE,     /* shapes that don't fit, or are too large */
    LGELU_E_MEMORY,    /* a block that is too small, a size that overflows, or too many nodes */
    LGELU_E_UNBOUND,   /* an input without data */
    LGELU_E_LABEL,     /* a label or token outside of its vocabulary */
    LGELU_E_LAMBDA,    /* a λ below 1, NaN, or outside of its map */
    LGELU_E_NONFINITE, /* a loss or gradient that is infinite or NaN */
    LGELU_E_FILE,      /* a file that is damaged or does not fit the network */
    LGELU_E_SUM        /* the caller's sum over machines failed */
} lgelu_status;

/* Returns a short text for a status. */
LGELU_DEF const char *lgelu_status_text(lgelu_status status);

#ifdef LGELU_TRAINER
/* clang-format off */
/* ---- the life of a network: begin, build, bytes, make, bind, forward, backward, step ----

   A network is a graph of layers over one block of memory:

       lgelu_node nodes[8];
       lgelu_net net;
       lgelu_net_begin(&net, nodes, 8);                                  // 1. begin
       int x = lgelu_input(&net, "x", 1, 1, 784);                        // 2. build
       int y = lgelu_labels(&net, "y", 1, 10);
       int z = lgelu_mlp(&net, x, (const size_t[2]){ 128, 10 }, 2, LGELU_GATE_LAMBDA, 1.05f);
       lgelu_cross_entropy(&net, "loss", z, y);
       size_t bytes = lgelu_net_bytes(&net, 64, LGELU_MODE_TRAIN);       // 3. the size of its block
       void *block = malloc(bytes);
       lgelu_net_make(&net, block, bytes, 64, LGELU_MODE_TRAIN, 1337);   // 4. its first weights
       lgelu_training plan = lgelu_training_to_relu(1e-3f, 1000);
       while (net.step < 1000) {
           lgelu_net_bind(&net, x, images);                              // 5. (64, 784) floats
           lgelu_net_bind(&net, y, classes);                             //    (64) int32_t
           lgelu_net_forward(&net, 64);                                  // 6. values and net.loss
           lgelu_net_backward(&net, 1);                                  // 7. gradients
           if (lgelu_net_step(&net, &plan)) break;                       // 8. weights and λ's
       }
       lgelu_net_relu(&net);                                             // every gate is ReLU now

   To continue a training, load its file (lgelu_net_load) into a network that is made the same way:
   net.step is then that of the file, and the loop continues. To fine-tune what was loaded with a
   new plan, call lgelu_net_restart before the loop: net.step begins at 0 again.

   A value is what a node computes, of shape (batch, rows, columns, channels), channels last; a
   vector is (1, 1, channels), a sequence (1, tokens, channels). Builders return the new node, or -1
   after an error. The first error remains in net.status, and later calls return it without doing
   anything, so that one look after building is enough; set net.status to LGELU_OK to continue. What
   lgelu_net_set_lambda, lgelu_net_print and the functions for files refuse is their own status
   alone: net.status remains LGELU_OK. Every error has one line in net.message. */
/* clang-format on */
typedef struct lgelu_net lgelu_net;
typedef struct lgelu_node lgelu_node;
typedef struct lgelu_custom_gate lgelu_custom_gate;
typedef struct lgelu_training lgelu_training;

typedef enum {
    LGELU_MODE_INFER = 0, /* forward only */
    LGELU_MODE_TRAIN,     /* forward, backward and step */
    LGELU_MODE_GENERATE   /* forward of one sample, token after token; keys and values are kept */
} lgelu_mode;

/* What programs and file formats need to know about a kind of gate, see lgelu_gate_is. */
typedef enum {
    LGELU_GATE_TRAIT_LEARNED = 1, /* its λ, or β, is learned or driven */
    LGELU_GATE_TRAIT_PHI = 2,     /* is x·Φ(λx), with one λ or one for each channel */
    LGELU_GATE_TRAIT_KERNELS = 4  /* has kernels, in f32 and on 16 bits */
} lgelu_gate_trait;

/* One row for each kind of gate: X(KIND, name in files, name in messages, family of kernels, λ of a
   gate that learns none, traits). The enum and the tables of section [8] are made from these rows;
   the section of gates in [8c] has the checklist for a new one. LAMBDA is x·Φ(λx) with a λ that is
   learned or driven; so is the β of SILU, x·σ(βx), by the same plans. New kinds are appended. */
/* clang-format off */
#define LGELU_GATES(X)                                                                          \
    X(LAMBDA, "lambda-gelu", "λ-GELU",                         phi, 1,                          \
              LGELU_GATE_TRAIT_LEARNED | LGELU_GATE_TRAIT_PHI | LGELU_GATE_TRAIT_KERNELS)       \
    X(GELU,   "gelu",        "GELU",                           phi, 1,                          \
              LGELU_GATE_TRAIT_PHI | LGELU_GATE_TRAIT_KERNELS)                                  \
    X(TANH,   "tanh-gelu",   "the tanh approximation of GELU", tanh, 1,                         \
              LGELU_GATE_TRAIT_KERNELS)                                                         \
    X(RELU,   "relu",        "ReLU",                           phi, HUGE_VALF,                  \
              LGELU_GATE_TRAIT_PHI | LGELU_GATE_TRAIT_KERNELS)                                  \
    X(SILU,   "silu",        "SiLU",                           silu, 1,                         \
              LGELU_GATE_TRAIT_LEARNED | LGELU_GATE_TRAIT_KERNELS)                              \
    X(CUSTOM, "outer",       "a custom gate",                  custom, 1, 0)                    \
    X(ELU,    "elu",         "ELU",                            elu, 1,                          \
              LGELU_GATE_TRAIT_KERNELS)
/* clang-format on */

typedef enum {
#define LGELU__ENUMERATOR(kind, file, name, family, lambda, traits) LGELU_GATE_##kind,
    LGELU_GATES(LGELU__ENUMERATOR)
#undef LGELU__ENUMERATOR
        LGELU_GATE_COUNT
} lgelu_gate_kind;

/* Returns whether a kind of gate has any of these traits (added up); 0 for an unknown kind. */
LGELU_DEF int lgelu_gate_is(int kind, unsigned traits);

/* Returns "GELU", "the tanh approximation of GELU", …; "?" for any other value. */
LGELU_DEF const char *lgelu_gate_name(int kind);

/* Computes y = f(x) for n floats by a gate of any kind with LGELU_GATE_TRAIT_KERNELS. lambda is its
   λ or β, read where the kind learns it. y may be x. */
LGELU_DEF void lgelu_gate_forward(lgelu_gate_kind kind, float *y, const float *x, float lambda,
                                  size_t n);

/* Starts an empty network whose nodes will be stored in nodes[capacity], which the caller owns and
   keeps as long as the network. Each input, layer and loss is one node; the builders of whole
   networks below say how many they add. If a node does not fit, its builder fails with
   LGELU_E_MEMORY. */
LGELU_DEF void lgelu_net_begin(lgelu_net *net, lgelu_node *nodes, int capacity);

/* Returns the bytes of the block for batches of up to `batch` samples, at least 1; 0 after an
   error. */
LGELU_DEF size_t lgelu_net_bytes(lgelu_net *net, size_t batch, lgelu_mode mode);

/* Lays the network out in memory[bytes] and sets first weights and λ's from the seed. batch and
   mode are those of lgelu_net_bytes. The network keeps pointers into the block; the caller owns it
   and frees it when the network is no longer used. memory is aligned as malloc aligns. */
LGELU_DEF lgelu_status lgelu_net_make(lgelu_net *net, void *memory, size_t bytes, size_t batch,
                                      lgelu_mode mode, uint64_t seed);

/* Binds an array to an input node: float (samples, rows, columns, channels) for lgelu_input,
   int32_t (samples, count) for lgelu_tokens and lgelu_labels. NULL unbinds. Tokens and labels are
   checked and copied by the forward; a float array is read where it is, by the backward once more,
   so leave it unchanged until then. After another array is bound the backward needs another
   forward. */
LGELU_DEF lgelu_status lgelu_net_bind(lgelu_net *net, int input, const void *data) LGELU__KEPT(3);

/* Computes all values for 1 to `batch` samples, and sets net.loss to the sum of the losses. A loss
   whose labels are unbound is left out. Fails if an input is unbound, a token or label is out of
   range (nothing has changed then), or if the loss or a running statistic becomes infinite or NaN
   (then statistics, and what dropout draws next, are as they were). */
LGELU_DEF lgelu_status lgelu_net_forward(lgelu_net *net, size_t samples);

/* Computes the gradients of loss_scale·loss for the last forward. loss_scale is 1, or 1/k if k
   backward calls make up one step: calls between two steps add up. Fails without a forward before
   it, and if loss_scale or the gradient of a custom loss is infinite or NaN. */
LGELU_DEF lgelu_status lgelu_net_backward(lgelu_net *net, float loss_scale);

/* Takes one training step by the plan: clips, updates weights, learns or drives every λ, counts
   net.step. Fails if no backward came before, if the plan's `sum` failed, or if a gradient or,
   after clipping, the square of one is not finite, if a number of the plan is out of its range, or
   if a λ of the next step would be below 1 or NaN; nothing has changed then. (To skip a batch,
   set net.status to LGELU_OK and fill net.g and net.dlambda with zeros.) */
LGELU_DEF lgelu_status lgelu_net_step(lgelu_net *net, const lgelu_training *plan);

/* Returns the value of a node after the last forward, (samples, rows, columns, channels). Results,
   which no layer except a loss reads, remain readable after forward and backward, logits among
   them. So do values that lgelu_net_keep_value named. Any other value may have been overwritten by
   a later layer; then this returns NULL. A training network does not store logits of more than
   16 MB as a whole if only a cross-entropy reads them: keep them if you read them. */
LGELU_DEF const float *lgelu_net_value(const lgelu_net *net, int node);

/* Keeps the value of a node readable after forward and backward. Call it before lgelu_net_bytes.
   Fails for a loss, which has no value, and once the network is made. */
LGELU_DEF lgelu_status lgelu_net_keep_value(lgelu_net *net, int node);

/* ---- builders: inputs, layers, losses ----

   Each takes the name of the new layer, with net.prefix before it, cut after 31 bytes; no two
   layers may have the same name. It checks its inputs and returns the index of the new node, or
   -1. */

/* Adds an input of floats, (rows, columns, channels) a sample. */
LGELU_DEF int lgelu_input(lgelu_net *net, const char *name, size_t rows, size_t columns,
                          size_t channels);

/* Adds an input of labels, `count` int32_t a sample, each from 0 to classes - 1. */
LGELU_DEF int lgelu_labels(lgelu_net *net, const char *name, size_t count, size_t classes);

/* Adds an input of tokens, `count` int32_t a sample, each from 0 to vocabulary - 1. */
LGELU_DEF int lgelu_tokens(lgelu_net *net, const char *name, size_t count, size_t vocabulary);

/* Adds y = x Wᵀ + b over the channels; W has shape (outputs, channels), b (outputs). */
LGELU_DEF int lgelu_linear(lgelu_net *net, const char *name, int x, size_t outputs);

/* Adds y = x Wᵀ over the channels, a linear layer without biases. */
LGELU_DEF int lgelu_linear_no_bias(lgelu_net *net, const char *name, int x, size_t outputs);

/* Adds y = x Eᵀ, with the matrix E (vocabulary, channels) of an embedding and no bias. */
LGELU_DEF int lgelu_linear_tied(lgelu_net *net, const char *name, int x, int embedding);

/* Adds a gate with one λ, whose first value is `lambda` (at least 1; read for LGELU_GATE_LAMBDA
   and, as β, for LGELU_GATE_SILU only). A λ of exactly 1 can be driven, but is not learned, since
   its s is -inf: begin above 1, for example at 1.05. LGELU_GATE_CUSTOM takes the gate that
   net.custom_gate points to. */
LGELU_DEF int lgelu_gate(lgelu_net *net, const char *name, int x, lgelu_gate_kind kind,
                         float lambda);

/* Adds a gate with one λ per channel (our choice). */
LGELU_DEF int lgelu_gate_channels(lgelu_net *net, const char *name, int x, float lambda);

/* Adds a custom gate, see lgelu_custom_gate below; it must remain valid as long as the network. */
LGELU_DEF int lgelu_gate_custom(lgelu_net *net, const char *name, int x,
                                const lgelu_custom_gate *gate);

/* Adds y = 1/(1 + e^-x), with an error of at most 2.5 units in the last place. It is no gate: it
   has no λ, and lgelu_net_relu leaves it as it is. */
LGELU_DEF int lgelu_sigmoid(lgelu_net *net, const char *name, int x);

/* Adds the sum of two values of equal shape, as in a residual connection. */
LGELU_DEF int lgelu_add(lgelu_net *net, const char *name, int a, int b);

/* Adds the element-wise product of two values of equal shape, y = a·b. Behind a gate it makes a
   gated unit (arXiv 2002.05202): a = gate(x Vᵀ), b = x Wᵀ is GEGLU, SwiGLU or ReGLU. lgelu_scale
   multiplies channels by factors; the product of matrices is lgelu_multiply. */
LGELU_DEF int lgelu_mul(lgelu_net *net, const char *name, int a, int b);

/* Adds a convolution with a square kernel over zero padding:
   y[r][c][o] = b[o] + Σ x[r·stride + i - padding][c·stride + j - padding][k]·W[o][i][j][k],
   k over the channels of o's group; bias = 0 leaves b out. W is the matrix (outputs,
   kernel·kernel·channels/groups), PyTorch's weight.permute(0, 2, 3, 1). groups = channels = outputs
   is a depthwise convolution. Each y is one chain of fma over (i, j, k), except that a kernel of 3
   with stride 1, padding of at most 2 and one group, from 16 channels on both sides, uses
   Winograd's F(2×2, 3×3): 2.25 times fewer products at about the same rounding error.
   net.no_winograd disables that. */
LGELU_DEF int lgelu_conv(lgelu_net *net, const char *name, int x, size_t outputs, size_t kernel,
                         size_t stride, size_t padding, size_t groups, int bias);

/* A window of any height [0] and width [1]: element (i, j) of the window of output (r, c) is the
   pixel (r·stride[0] + i·dilation[0] - padding[0], c·stride[1] + j·dilation[1] - padding[1]). A
   stride or dilation of 0 means 1. Padding is added on both sides. With its gaps a window extends
   over e = (kernel - 1)·dilation + 1 pixels, which is at most 65535, more than the padding, and at
   most pixels + 2·padding; it has (pixels + 2·padding - e)/stride + 1 positions, rounded down. */
typedef struct {
    size_t kernel[2], stride[2], padding[2], dilation[2];
} lgelu_window;

/* Adds a convolution with any window; all else is as in lgelu_conv. A window of height 1 over one
   row, (1, steps, channels), is a 1-D convolution. The window of a depthwise convolution has at
   most 225 elements. */
LGELU_DEF int lgelu_conv_window(lgelu_net *net, const char *name, int x, size_t outputs,
                                const lgelu_window *window, size_t groups, int bias);

/* Adds batch normalisation, (x - mean)/√(variance + eps)·gain + shift for each channel: with the
   batch's statistics in training, with the running ones in inference and under net.evaluate.
   Training updates running += momentum·(batch's - running), where the variance is unbiased (n - 1),
   as in PyTorch, whose values are momentum 0.1 and eps 1e-5. */
LGELU_DEF int lgelu_batch_norm(lgelu_net *net, const char *name, int x, float momentum, float eps);

/* Adds group normalisation (Wu and He, arXiv 1803.08494): the channels are `groups` groups in
   order, each normalised over all its values of one sample, (x - mean)/√(variance + eps)·gain +
   shift, with a gain and a shift for each channel. groups = channels is instance normalisation. A
   group has at least 2 values; eps is 1e-5 unless you change the node's. (ConvNeXt's LayerNorm2d,
   over the channels of each pixel, is lgelu_layer_norm.) */
LGELU_DEF int lgelu_group_norm(lgelu_net *net, const char *name, int x, size_t groups);

/* Adds layer normalisation over the channels, (x - mean)/√(variance + eps)·gain + shift. eps is
   1e-5 unless you change the node's. */
LGELU_DEF int lgelu_layer_norm(lgelu_net *net, const char *name, int x);

/* Adds RMS normalisation over the channels, x/√(mean of x² + eps)·gain (Zhang and Sennrich, arXiv
   1910.07467): no mean is subtracted and no shift added. eps is 1e-5 unless you change the
   node's. */
LGELU_DEF int lgelu_rms_norm(lgelu_net *net, const char *name, int x);

/* Adds max pooling over square windows; the kernel is at most 15, the padding, whose pixels never
   are the maximum, at most half of it. */
LGELU_DEF int lgelu_max_pool(lgelu_net *net, const char *name, int x, size_t kernel, size_t stride,
                             size_t padding);

/* Adds average pooling over square windows; padding counts as zeros in the mean. */
LGELU_DEF int lgelu_average_pool(lgelu_net *net, const char *name, int x, size_t kernel,
                                 size_t stride, size_t padding);

/* Adds max pooling with any window of at most 225 elements, without dilation, and a padding of at
   most half of it in each direction. */
LGELU_DEF int lgelu_max_pool_window(lgelu_net *net, const char *name, int x,
                                    const lgelu_window *window);

/* Adds max pooling as lgelu_max_pool_window does, with one more window in a direction where pixels
   remain behind the last one: it begins in the image or in the padding before it, and ends beyond
   the padding behind it. This is PyTorch's ceil_mode. */
LGELU_DEF int lgelu_max_pool_ceiling(lgelu_net *net, const char *name, int x,
                                     const lgelu_window *window);

/* Adds average pooling with any window without dilation; padding counts as zeros in the mean. */
LGELU_DEF int lgelu_average_pool_window(lgelu_net *net, const char *name, int x,
                                        const lgelu_window *window);

/* Adds the mean of each channel over rows and columns, (1, 1, channels). */
LGELU_DEF int lgelu_global_pool(lgelu_net *net, const char *name, int x);

/* Adds the product of x and one factor for each channel of a sample: y[r][c][k] =
   x[r][c][k]·factors[k], where factors is a node of shape (1, 1, channels of x). After a global
   pool, two linear layers and a sigmoid it completes a squeeze-and-excitation block (Hu et al.,
   arXiv 1709.01507). */
LGELU_DEF int lgelu_scale(lgelu_net *net, const char *name, int x, int factors);

/* Adds the concatenation of channels: those of a, then those of b, which has the same rows and
   columns, as in DenseNets and U-Nets. */
LGELU_DEF int lgelu_concat(lgelu_net *net, const char *name, int a, int b);

/* Adds a view of x as one vector (1, 1, rows·columns·channels), without a copy. */
LGELU_DEF int lgelu_flatten(lgelu_net *net, const char *name, int x);

/* Adds the rows of a matrix (vocabulary, channels) that the tokens select: (1, count, channels). */
LGELU_DEF int lgelu_embedding(lgelu_net *net, const char *name, int tokens, size_t channels);

/* Adds a learned vector for each position: y = x + P, P of shape (rows·columns, channels). */
LGELU_DEF int lgelu_position(lgelu_net *net, const char *name, int x);

/* Adds rotary positions (Su et al., arXiv 2104.09864) to a sequence of tokens, whose first
   heads·width channels are `heads` heads of `width` channels. In each head of token t, counted from
   0, pair number i, from 0 to width/2 - 1, is turned by the angle θ = t·base^(-2i/width) radians:
   (a, b) becomes (a·cos θ - b·sin θ, b·cos θ + a·sin θ). The pair is channels i and i + width/2 of
   the head, as in Llama and GPT-NeoX, or, if interleaved is 1, channels 2i and 2i + 1, as in the
   paper and GPT-J. The other channels stay as they are: before an attention pass the queries' heads
   plus the keys', so that values are not turned. width is even; base is above 0, usually 10000. */
LGELU_DEF int lgelu_rotary(lgelu_net *net, const char *name, int x, size_t heads, size_t width,
                           float base, int interleaved);

/* Adds multi-head attention: qkv (tokens, 3·channels) → (tokens, channels),
   softmax(q kᵀ/√(channels/heads)) v for each head; heads divides channels. causal = 1: no token
   depends on a later one, not even on one that is infinite or NaN. */
LGELU_DEF int lgelu_attention(lgelu_net *net, const char *name, int qkv, size_t heads, int causal);

/* Adds grouped-query attention (Ainslie et al., arXiv 2305.13245), which has fewer keys and values:
   qkv (tokens, (heads + 2·kv_heads)·width) → (tokens, heads·width), first the queries, then the
   keys, then the values; softmax(q kᵀ/√width) v for each head. kv_heads divides heads, and query
   head h reads key and value head h/(heads/kv_heads), rounded down. kv_heads = heads is
   lgelu_attention, kv_heads = 1 is multi-query attention. */
LGELU_DEF int lgelu_attention_grouped(lgelu_net *net, const char *name, int qkv, size_t heads,
                                      size_t kv_heads, int causal);

/* Adds dropout, which is active in training only: a value becomes 0 with probability `rate`, at
   least 0 and less than 1, or is divided by 1 - rate. A rate of 0 adds no node and returns x. */
LGELU_DEF int lgelu_dropout(lgelu_net *net, const char *name, int x, float rate);

/* Adds an image as tokens, patch by patch: (rows, columns, c) → (1, patches, side·side·c). side
   divides rows and columns. */
LGELU_DEF int lgelu_patches(lgelu_net *net, const char *name, int image, size_t side);

/* Adds x with channels and pixels, or tokens, exchanged: (rows, columns, c) → (1, c, rows·columns).
   A linear layer between two of these mixes tokens, as in MLP-Mixer. */
LGELU_DEF int lgelu_transpose(lgelu_net *net, const char *name, int x);

/* Adds one learned token in front of a sequence: (1, tokens, c) → (1, 1 + tokens, c). */
LGELU_DEF int lgelu_class_token(lgelu_net *net, const char *name, int x);

/* Adds the mean of `count` tokens or pixels, at least 1, from number `first` on, which begin at 0:
   (1, 1, channels). */
LGELU_DEF int lgelu_mean_tokens(lgelu_net *net, const char *name, int x, size_t first,
                                size_t count);

/* Adds the mean over samples (and tokens) of -log softmax(logits)[label]. labels is a node of
   lgelu_labels: logits are (1, count, classes). */
LGELU_DEF int lgelu_cross_entropy(lgelu_net *net, const char *name, int logits, int labels);

/* Adds the mean over all values of (x - target)². target is an input of x's shape. */
LGELU_DEF int lgelu_mean_squared_error(lgelu_net *net, const char *name, int x, int target);

/* Adds a loss that the caller computes: between forward and backward read the value of x and write
   dL/dx into the array that is bound to `gradient`, an input of x's shape that nothing else reads.
   The backward multiplies it by loss_scale. Unbound, the loss is left out. net.loss does not
   contain it. */
LGELU_DEF int lgelu_custom_loss(lgelu_net *net, const char *name, int x, int gradient);

/* ---- builders of whole networks: each returns the node of the logits ---- */

/* Adds linear, gate, …, linear with the widths outputs[count]: outputs[0] is the width of the first
   layer, outputs[count - 1] the number of logits. Layers are called fc1, gate1, fc2, … These are
   2·count - 1 nodes. */
LGELU_DEF int lgelu_mlp(lgelu_net *net, int x, const size_t *outputs, int count,
                        lgelu_gate_kind kind, float lambda);

/* Adds LeNet-5 with max pooling, over images of at least 12 × 12 pixels: 12 nodes. */
LGELU_DEF int lgelu_lenet(lgelu_net *net, int x, size_t classes, lgelu_gate_kind kind,
                          float lambda);

/* Adds a residual network for small images with a 3 × 3 stem: `stages` stages of `blocks` basic
   blocks, each stage with half the side and twice the width of the one before. ResNet-8 is (16, 3,
   1), ResNet-20 (16, 3, 3), ResNet-18 (64, 4, 2). These are at most 5 + stages·(7·blocks + 2)
   nodes. */
LGELU_DEF int lgelu_resnet(lgelu_net *net, int x, size_t width, int stages, int blocks,
                           size_t classes, lgelu_gate_kind kind, float lambda);

/* Transformers with normalisation before each part, and GPT-2's first weights. With 0 in the
   options from rms_norm on they have GPT-2's blocks. With rms_norm, rotary, gated and no_bias at 1
   and LGELU_GATE_SILU they have those of Llama (arXiv 2302.13971), where hidden is about 8/3·width;
   its larger and later models have fewer kv_heads. */
typedef struct {
    size_t layers, heads, width, hidden; /* hidden: of the feed-forward part, 0 is 4·width */
    lgelu_gate_kind gate;
    float lambda, dropout;
    int untied;      /* 1: the head has a matrix and biases of its own; 0: the embedding's matrix */
    float embedding; /* deviation of the first embeddings (PyTorch's own: 1); 0: as the matrices */
    int rms_norm;    /* 1: RMS normalisation; 0: layer normalisation */
    int rotary;      /* 1: rotary positions of queries and keys; 0: learned positions */
    float rotary_base; /* 0 is 10000 */
    int gated;         /* 1: the hidden part is gate(x Vᵀ)·(x Wᵀ), with one matrix more */
    int no_bias;       /* 1: the linear layers of the blocks, and an untied head, have no biases */
    size_t kv_heads;   /* heads of keys and values, which divide `heads`; 0: as many */
} lgelu_transformer;

/* The nodes that a Transformer of so many layers takes at most. */
#define LGELU_TRANSFORMER_NODES(layers) (15 * (layers) + 12)

/* Adds a GPT over a node of tokens: embedding, learned positions if there are any, blocks, norm,
   head. */
LGELU_DEF int lgelu_gpt(lgelu_net *net, int tokens, const lgelu_transformer *shape);

/* Adds a vision Transformer over patches of side·side pixels. It reads the class token, or, if
   `mean` is 1, the mean of all tokens. */
LGELU_DEF int lgelu_vit(lgelu_net *net, int image, const lgelu_transformer *shape, size_t side,
                        int mean, size_t classes);

/* ---- training plans ---- */
typedef enum {
    LGELU_RATE_COSINE = 0, /* falls to 0 along a cosine */
    LGELU_RATE_LINEAR,     /* falls to 0 along a line */
    LGELU_RATE_CONSTANT
} lgelu_rate_shape;

/* What a step does. Start from one of the presets below and change what you need. */
struct lgelu_training {
    lgelu_adamw adamw; /* lr is the peak rate; decay applies to matrices only */
    int decay_all;     /* 1: biases and normalisations decay as well; s never does */
    int sgd;           /* 1: SGD with momentum adamw.beta1 in place of AdamW, for weights and s */
    /* The rate rises over `warmup` steps, stays at its peak up to step `hold`, and then falls along
       `rate` until step `steps`. */
    long steps, warmup, hold;
    lgelu_rate_shape rate;
    float clip;            /* largest norm of the gradients; 0: any */
    float lambda_lr_scale; /* c of [L, section 3]: s learns at c times the rate */
    /* λ is learned up to hardening.begin, then driven to hardening.target; with a target of 0 it is
       learned to the end. net.lambda_map is used in place of hardening.h. */
    lgelu_hardening hardening;
    long harden_every; /* steps between two changes of a driven λ; 0 or 1: every step */
    /* If not NULL, used in place of `hardening`: returns λ number `index` in this step, or 0 where
       it is learned. lambda0 is its value before it was driven. It must depend on its arguments
       only, so that a run can be stopped and resumed. */
    float (*drive)(int index, float lambda0, long step, void *user);
    /* If not NULL: every `history_every` steps the λ's are written to its next row. Its shape is
       (steps/history_every, net.lambda_count); a step after `steps` writes no row. */
    float *history;
    long history_every;
    /* For training on several machines, if not NULL: called once a step before clipping. It
       replaces g[n] and dlambda[lambda_count] by their sums over the ranks, the same bits on each,
       and returns 0, or another value if it failed. Each rank passes its fraction of the whole
       batch as loss_scale. */
    int (*sum)(float *g, size_t n, double *dlambda, size_t lambda_count, void *user);
    void *user;
};

/* Returns a plan with AdamW's defaults, a cosine rate, c = 1 and no hardening. */
LGELU_DEF lgelu_training lgelu_training_defaults(float lr, long steps);

/* Returns our plan to ReLU: λ is learned for a quarter of the steps, then driven to 159.577 up to
   three quarters, while the rate stays at its peak; then the rate falls along a cosine and the
   weights settle at the target. */
LGELU_DEF lgelu_training lgelu_training_to_relu(float lr, long steps);

/* Returns the plan of [L, section 4]: under a cosine rate λ is learned for three quarters of the
   steps and driven to 159.577 over the last one. */
LGELU_DEF lgelu_training lgelu_training_paper(float lr, long steps);

/* Returns our plan to ReLU for a network that is already trained: λ is driven from the first step
   on, up to three quarters of the steps, without the quarter in which lgelu_training_to_relu learns
   it; the rate rises over a tenth of the steps, since the moments are new. A rate of a tenth of the
   first training's is a good start. (If nothing may be trained: examples/network/refit.h.) */
LGELU_DEF lgelu_training lgelu_training_from_trained(float lr, long steps);

/* Returns the learning rate of a step; steps count from 1. */
LGELU_DEF float lgelu_training_rate(const lgelu_training *plan, long step);

/* Returns 1 if every driven λ is at its target after `step` steps, or if the plan drives none; else
   0. Early stopping must wait for it: a network that is stopped earlier is still smooth, and its
   swap to ReLU costs score. A plan with a function `drive` has settled at its last step. */
LGELU_DEF int lgelu_training_settled(const lgelu_training *plan, long step);

/* Returns the global L2 norm of the gradients, those of the learned s included, as PyTorch's
   clip_grad_norm_ does; 0 if no backward came since the last step, or while net.status is not
   LGELU_OK. The next step scales all of them so that it is at most `most`; 0: no limit. Call it
   after the last backward of a step, for a plan whose `clip` is 0. (net.gradient_norm is the norm
   of the last step.) */
LGELU_DEF double lgelu_net_clip(lgelu_net *net, float most);

/* ---- gates, λ and weights of a made network ---- */

/* Replaces every gate by exact ReLU: the end of ReLU-ization. */
LGELU_DEF lgelu_status lgelu_net_relu(lgelu_net *net);

/* Sets every gate to a kind. Back at LGELU_GATE_LAMBDA, or at LGELU_GATE_SILU, the λ's are λ(s)
   again; those of a gate that was built without a learned λ are 1, or INFINITY if it was ReLU, and
   are learned only after lgelu_net_set_lambda. If a gate cannot be of that kind, none changes: only
   a gate that was built with functions can be LGELU_GATE_CUSTOM, and none with one λ per channel
   LGELU_GATE_SILU. */
LGELU_DEF lgelu_status lgelu_net_set_gates(lgelu_net *net, lgelu_gate_kind kind);

/* Sets net.lambda[index], and s with it, to a λ >= 1 that the map reaches; INFINITY is allowed. The
   λ's of a gate begin at the index first_lambda of its node. Fails without a change if there is no
   such λ, or if its gate learns none. */
LGELU_DEF lgelu_status lgelu_net_set_lambda(lgelu_net *net, int index, float lambda);

/* Sets every λ as the plan drives it in the step to come; the last step runs at the target.
   lgelu_net_step does this at its end. Call it where another plan takes over, say after
   lgelu_net_copy at a switch point. */
LGELU_DEF lgelu_status lgelu_net_harden(lgelu_net *net, const lgelu_training *plan);

/* Return where a node's parameters are stored: its matrix (outputs, inputs); its biases (of a
   normalisation: gains, then shifts); its running statistics (of a batch norm: means, then
   variances). NULL if it has none. After writing to a matrix set net.prepacked_valid to 0. */
LGELU_DEF float *lgelu_net_weights(const lgelu_net *net, int node);
LGELU_DEF float *lgelu_net_biases(const lgelu_net *net, int node);
LGELU_DEF float *lgelu_net_states(const lgelu_net *net, int node);

/* Copies weights, statistics, λ's and gate kinds from layers of the same name, the map of λ and the
   seed; between two training networks the optimiser's state as well. Both networks must be made.
   net.step is copied, except to a training network from one that is not. Every layer of `to`,
   dropout and losses aside, must be in `from` with the same shapes, options and inputs; `from` may
   have more layers. Thus a network for inference or generation receives the weights of the one that
   was trained. */
LGELU_DEF lgelu_status lgelu_net_copy(lgelu_net *to, const lgelu_net *from);

/* Begins a new training on the weights as they are: net.step and the optimiser's moments become
   zero, and gradients that wait for their step are dropped. Weights, statistics, kinds of gates and
   λ's stay; a plan that drives λ begins at its present value. Call it before fine-tuning weights
   that were loaded or copied; without it the next step continues the training that was saved, at
   its net.step. Fails if the network is not made for training. */
LGELU_DEF lgelu_status lgelu_net_restart(lgelu_net *net);

/* Estimates running statistics again, after gates or weights have changed: call it for the batches
   k = 1, 2, … of some data, each bound before. It computes a forward without dropout in which batch
   k counts 1/k, so that after the last one the statistics are the mean over all batches. */
LGELU_DEF lgelu_status lgelu_net_reestimate_norms(lgelu_net *net, size_t samples, long k);

/* Folds each batch normalisation that is the only reader of a convolution into its weights and
   bias, for good, in a network built for inference. The value of such a convolution is that of the
   normalisation from then on. */
LGELU_DEF lgelu_status lgelu_net_fold(lgelu_net *net);

/* Computes tokens from … from + count - 1 of one sample, in a network built for
   LGELU_MODE_GENERATE; keys and values of earlier tokens remain from earlier calls. lgelu_net_value
   then has `count` rows, with the bits of a whole forward. The bound array holds all tokens. Fails
   with LGELU_E_ARGUMENT, and the layer in net.message, unless each layer is a causal attention, a
   convolution of one pixel that is not depthwise, or of a kind with LGELU_TRAIT_TOKENWISE. */
LGELU_DEF lgelu_status lgelu_net_generate(lgelu_net *net, size_t from, size_t count);

/* ---- files: checkpoints as safetensors ----

   A training network saves weights, running statistics, AdamW moments, s, λ, gate kinds and the
   step. Its tensors are NAME.weight (outputs, inputs), NAME.bias, NAME.running_mean and
   NAME.running_var, NAME.s, NAME.lambda and NAME.lambda0; in training .weight, .bias and .s have
   moments, such as NAME.weight.m and NAME.weight.v. Other networks save no moments. */

/* Receives `bytes` bytes and returns 0 if it took all of them. It is not fwrite, which returns the
   count: `return fwrite(data, 1, bytes, (FILE *)user) != bytes;` */
typedef int lgelu_write(const void *data, size_t bytes, void *user);

/* Writes the network as one safetensors file. metadata[pairs] are keys and values to write along.
   Fails if a key occurs twice or is the format's own, if a text is not UTF-8 (nothing is written
   then), or if `write` fails. */
LGELU_DEF lgelu_status lgelu_net_save(lgelu_net *net, const char *const (*metadata)[2], int pairs,
                                      lgelu_write *write, void *user);

/* Reads a whole file from memory. Everything is checked before the first change: after an error the
   network is as it was, including a forward that waits for its backward and the tokens of a
   generation. Moments and λ's may be missing (files of other programs) and then stay; weights must
   all be there, as F32 of the right shape; a batch norm that is folded here must not be in the
   file. Values that no training has are refused with tensor and index: NaN, infinity except for s
   and λ, negative variances and second moments, λ below 1. A file holds the state between two
   steps: loading drops gradients that wait for their step, sets net.pass to 0, and sets
   net.lambda_map where the file names one. The seed, the tokens known to a generation, net.evaluate
   and the training plan are not in it. */
LGELU_DEF lgelu_status lgelu_net_load(lgelu_net *net, const void *file, size_t bytes);

/* Several networks in one file, at least one: each part's prefix, at most 31 bytes such as "" or
   "branch/", precedes its layers' names. Messages are in the first network. */
typedef struct {
    const char *prefix;
    lgelu_net *net;
} lgelu_part;

/* Writes several networks as one file. */
LGELU_DEF lgelu_status lgelu_parts_save(const lgelu_part *part, int parts,
                                        const char *const (*metadata)[2], int pairs,
                                        lgelu_write *write, void *user);

/* Reads several networks from one file; what else the file contains is ignored. */
LGELU_DEF lgelu_status lgelu_parts_load(const lgelu_part *part, int parts, const void *file,
                                        size_t bytes);

/* Writes the layers and the memory plan as text, a line a layer, then the totals. Call it after
   lgelu_net_bytes or lgelu_net_make. */
LGELU_DEF lgelu_status lgelu_net_print(lgelu_net *net, lgelu_write *write, void *user);

/* Copies the text of one metadata key to value[capacity], cut to fit. Returns 0 if there is
   none. */
LGELU_DEF int lgelu_metadata(const void *file, size_t bytes, const char *key, char *value,
                             size_t capacity);

/* A tensor of a safetensors file in memory. The fields point into the file. */
typedef struct {
    const char *name;      /* UTF-8, without a closing 0 */
    size_t name_bytes;     /* of the name */
    char dtype[8];         /* "F32", "BF16", … */
    size_t dims, shape[8]; /* the first 8 sizes, if there are more */
    const void *data;      /* little-endian, the last index first */
    size_t bytes;          /* of the data */
    size_t at;             /* the byte of the name; after an error, of what is wrong */
    const char *wrong;     /* after an error: what is wrong */
    struct {
        size_t at, end, metadata, metadata_end, members;
    } internal; /* private: where the next tensor is */
} lgelu_tensor;

/* Describes the next tensor of any safetensors file, in the order of its header; *tensor is zeros
   before the first call. Returns 1; 0 after the last one, with the data of all tensors together; or
   -1 where the file is damaged. That no name occurs twice, and that the data have no gap and no
   overlap, is left to the caller. */
LGELU_DEF int lgelu_next_tensor(const void *file, size_t bytes, lgelu_tensor *tensor);

/* ---- for advanced users: threads ---- */

/* A parallel for: run calls task(index, task_user) for every index from 0 to count - 1, in any
   order, on any threads, and returns when all are done; count is below 2^30. If run is NULL, OpenMP
   serves where the file was compiled with it. The bits of no result depend on it. A forward, a
   backward or a product calls it once: the first of the 64 tasks to arrive does the work, those on
   other threads help until it is done. */
typedef void lgelu_task(size_t index, void *task_user);
typedef struct {
    void (*run)(lgelu_task *task, void *task_user, size_t count, void *user);
    void *user;
} lgelu_threads;

/* Calls work(team, user) once, on one of the threads, and returns when it is done. Where `work`
   consists of many short parallel loops, call each as team->run(task, task_user, count,
   team->user): the other threads stay awake between them, since waking them takes longer than most
   loops. team is valid until work returns. A loop that a task starts by the same team runs on that
   task's thread. threads NULL: all on the calling thread. */
LGELU_DEF void lgelu_with_team(const lgelu_threads *threads,
                               void (*work)(const lgelu_threads *team, void *user), void *user);

/* ---- for advanced users: custom linear layers ---- */

/* Computes linear layers in place of the network, for example from weights of fewer bits: set
   net.custom_linear. A network that was built for training ignores it. For each linear layer the
   forward calls run, which either computes y (rows, outputs) = x (rows, inputs) Wᵀ + b of the node
   and returns 1, or writes nothing to y and returns 0; then the network computes the layer itself.
   During the call net->threads.run is set and runs tasks on the threads of this forward.
   examples/int8/compact.h uses it. */
typedef struct {
    int (*run)(float *y, const float *x, size_t rows, const lgelu_net *net, const lgelu_node *node,
               void *user);
    void *user;
} lgelu_custom_linear;

/* ---- for advanced users: layers and nodes ---- */

/* First weights: uniform within ±√(6/inputs) (He) or ±√(6/(inputs + outputs)) (Glorot), or
   normal. */
typedef enum { LGELU_INIT_HE = 0, LGELU_INIT_GLOROT, LGELU_INIT_NORMAL } lgelu_init;

/* What tools and file formats need to know about a kind of layer, see lgelu_op_is. */
typedef enum {
    LGELU_TRAIT_SOURCE = 1,    /* has no inputs: input, tokens, labels */
    LGELU_TRAIT_DATA = 2,      /* a source that inference reads: input, tokens */
    LGELU_TRAIT_LOSS = 4,      /* adds to the loss; nothing reads it */
    LGELU_TRAIT_TOKENWISE = 8, /* a token's value depends on that token only */
    LGELU_TRAIT_NORM = 16      /* its biases are gains, then shifts if any; gains start at 1 */
} lgelu_trait;

/* One row for each kind of layer: X(KIND, name, traits). Section [8] has the functions of each
   kind, and [8d] the checklist for a new one. The order may change: query traits instead. */
/* clang-format off */
#define LGELU_LAYERS(X)                                                                            \
    X(INPUT,          "input",              LGELU_TRAIT_SOURCE | LGELU_TRAIT_DATA)                 \
    X(TOKENS,         "tokens",             LGELU_TRAIT_SOURCE | LGELU_TRAIT_DATA                  \
                                            | LGELU_TRAIT_TOKENWISE)                               \
    X(LABELS,         "labels",             LGELU_TRAIT_SOURCE)                                    \
    X(LINEAR,         "linear",             LGELU_TRAIT_TOKENWISE)                                 \
    X(GATE,           "gate",               LGELU_TRAIT_TOKENWISE)                                 \
    X(SIGMOID,        "sigmoid",            LGELU_TRAIT_TOKENWISE)                                 \
    X(ADD,            "add",                LGELU_TRAIT_TOKENWISE)                                 \
    X(MUL,            "multiply",           LGELU_TRAIT_TOKENWISE)                                 \
    X(CONV,           "convolution",        0)                                                     \
    X(BATCH_NORM,     "batch norm",         LGELU_TRAIT_TOKENWISE | LGELU_TRAIT_NORM)              \
    X(GROUP_NORM,     "group norm",         LGELU_TRAIT_NORM)                                      \
    X(MAX_POOL,       "max pool",           0)                                                     \
    X(AVERAGE_POOL,   "average pool",       0)                                                     \
    X(SCALE,          "scale",              0)                                                     \
    X(VIEW,           "view",               LGELU_TRAIT_TOKENWISE)                                 \
    X(CONCAT,         "concatenation",      LGELU_TRAIT_TOKENWISE)                                 \
    X(EMBEDDING,      "embedding",          LGELU_TRAIT_TOKENWISE)                                 \
    X(POSITION,       "position",           LGELU_TRAIT_TOKENWISE)                                 \
    X(ROTARY,         "rotary",             LGELU_TRAIT_TOKENWISE)                                 \
    X(LAYER_NORM,     "layer norm",         LGELU_TRAIT_TOKENWISE | LGELU_TRAIT_NORM)              \
    X(RMS_NORM,       "RMS norm",           LGELU_TRAIT_TOKENWISE | LGELU_TRAIT_NORM)              \
    X(ATTENTION,      "attention",          0)                                                     \
    X(DROPOUT,        "dropout",            LGELU_TRAIT_TOKENWISE)                                 \
    X(PATCHES,        "patches",            0)                                                     \
    X(TRANSPOSE,      "transpose",          0)                                                     \
    X(CLASS_TOKEN,    "class token",        0)                                                     \
    X(MEAN_TOKENS,    "mean of tokens",     0)                                                     \
    X(CROSS_ENTROPY,  "cross-entropy",      LGELU_TRAIT_LOSS)                                      \
    X(SQUARED_ERROR,  "mean squared error", LGELU_TRAIT_LOSS)                                      \
    X(CUSTOM_LOSS,    "custom loss",        LGELU_TRAIT_LOSS)
/* clang-format on */

typedef enum {
#define LGELU__ENUMERATOR(kind, name, traits) LGELU_OP_##kind,
    LGELU_LAYERS(LGELU__ENUMERATOR)
#undef LGELU__ENUMERATOR
        LGELU_OP_COUNT
} lgelu_op;

/* Returns "linear", "convolution", …; "?" for any other value. */
LGELU_DEF const char *lgelu_op_name(int op);

/* Returns whether a kind of layer has any of these traits (added up); 0 for an unknown kind. */
LGELU_DEF int lgelu_op_is(int op, unsigned traits);

/* Returns whether node, of net, is a convolution that Winograd's algorithm computes (see
   lgelu_conv), so that its values are not plain chains of fma; 0 for every other layer. */
LGELU_DEF int lgelu_conv_is_winograd(const lgelu_net *net, const lgelu_node *node);

/* One entry of the memory plan. */
typedef struct lgelu_buffer {
    size_t bytes, at;          /* where it is in the block */
    int from, to;              /* its life, in steps of the walk forward and backward */
    struct lgelu_buffer *next; /* in a list, while the plan is made */
} lgelu_buffer;

/* A node. The builders fill it; all but the eps of a normalisation is for reading only. Positions
   and counts are in elements, and positions are valid once the network has its size. */
struct lgelu_node {
    char name[32];
    lgelu_op op;
    int inputs, input[3];                    /* how many nodes it reads, and which */
    size_t shape[3];                         /* rows, columns, channels of one sample */
    size_t weight_at, weight_count;          /* its matrix (outputs, inputs) in net.w */
    size_t bias_at, bias_count;              /* its biases in net.w */
    size_t state_at, state_count;            /* its running statistics in net.state */
    size_t window[2], stride[2], padding[2]; /* of a convolution or a pooling: rows, columns */
    size_t dilation[2], groups;
    float momentum, eps;            /* of a normalisation */
    int first_lambda, lambda_count; /* its λ's in net.lambda */
    lgelu_gate_kind gate;
    const lgelu_custom_gate *custom; /* of LGELU_GATE_CUSTOM; its parameters are the biases */
    lgelu_init init;
    float lambda0; /* the first λ */
    /* attention: heads, causal, heads of keys; rotary: heads, width, interleaved; patches: side;
       mean of tokens: first, count */
    size_t option[3];
    float base;            /* of rotary positions */
    float rate, deviation; /* of dropout; of the first weights */
    int tied;              /* 1 + the node whose matrix it uses; 0: its own */
    int folded;            /* 1: a batch norm that became a view */
    struct {
        /* 1 + where its prepacked matrix begins in net.internal.prepacked; 0: none. */
        size_t prepacked_at;
        int keep;          /* the value stays readable */
        int row;           /* of the table of layers: how it runs, as the memory plan chose */
        int learns;        /* has a gradient */
        int tokenwise;     /* can compute token after token */
        int holds;         /* which of its gradients are filled, during a backward */
        int ahead;         /* a loss: the last forward has computed gradients already */
        const void *bound; /* an input's data */
        /* The nodes in whose buffers the value and the gradient are stored. */
        int value_node, gradient_node;
        /* Value, gradient, what the forward leaves for the backward, scratch. */
        lgelu_buffer buffer[4];
        /* Links between nodes; 0: none. A reader is 1 + three times its index + the number of the
           input: the first one of this node, and the next one of each node that this one reads. */
        int reader, next_reader[3];
        int last_tied;         /* 1 + the last node that uses this one's matrix */
        int named, next_named; /* the hash table of names: its list i, and a list's next node */
    } internal;                /* private: what the memory plan and the runs store */
};

/* How long the runs of a network take. Private. */
typedef struct {
    double alone; /* ticks for each unit of work on one thread; 0 before the first measurement */
    double debt;  /* the work that one thread has to do before the team is tried again */
    unsigned runs;
} lgelu_pace;

/* A network. */
struct lgelu_net {
    /* Set these while building. */
    lgelu_init init;                      /* of the layers built next */
    float deviation;                      /* of first weights with LGELU_INIT_NORMAL; 0 is 0.02 */
    const lgelu_custom_gate *custom_gate; /* of gates of kind LGELU_GATE_CUSTOM built next */
    char prefix[24]; /* precedes the names of the layers built next: "encoder." */
    /* 1: each y of a convolution is one chain of fma; set before lgelu_net_bytes. */
    int no_winograd;
    /* 1: without training, keeps a prepacked copy of each matrix (Winograd's are 16/9 times as
       large): faster, the same bits; set before lgelu_net_bytes. */
    int prepack;
    lgelu_lambda_map lambda_map; /* of every learned λ; set before lgelu_net_make */
    lgelu_threads threads;
    /* Set these at any time. */
    lgelu_custom_linear custom_linear; /* run NULL: none */
    int evaluate; /* 1: a training network computes as in inference (statistics, no dropout) */
    /* Whether the prepacked copies agree with w: set it to 0 after writing to w. */
    int prepacked_valid;
    long step; /* steps taken */
    /* Dropout draws from seed, step and pass, the forwards since the last step. */
    uint64_t seed, pass;
    lgelu_status status; /* the first error; set it to LGELU_OK to continue */
    char message[160];
    /* Read these. */
    lgelu_node *nodes;
    int count, capacity;
    unsigned char *memory; /* the block; NULL until the network is made */
    lgelu_mode mode;
    size_t batch;
    /* w holds weight_count elements of matrices, then biases: parameter_count in all. */
    size_t parameter_count, weight_count;
    float *w, *g, *m, *v; /* weights, gradients, AdamW moments; the last three in training only */
    size_t state_count;
    float *state; /* running means and variances: no gradient, no decay, saved with the weights */
    int lambda_count;
    /* Each λ, its free parameter, the moments of that, and the λ at which hardening began. */
    float *lambda, *s, *s_m, *s_v, *lambda0;
    double *dlambda;
    size_t samples;       /* of the last forward */
    double loss;          /* of the last forward */
    double gradient_norm; /* of the last step, before clipping */
    struct {
        size_t from, tokens;  /* of the last lgelu_net_generate */
        size_t known;         /* tokens whose keys and values are stored */
        float loss_scale;     /* of the last backward */
        float gradient_scale; /* the next step multiplies gradients by it (clipping) */
        int fresh, pending;   /* the next backward overwrites; a forward waits for its backward */
        int learning;         /* the last forward was one of training */
        /* Batches in the running statistics with this one; 0: learned with momentum. */
        long estimate;
        float *state_before; /* the running statistics before a forward that changes them */
        unsigned char *arena;
        float *scratch, *prepacked; /* workspace of products; prepacked matrices */
        size_t arena_bytes, scratch_bytes, prepacked_bytes;
        int broken;         /* LGELU_CHECK: a worker wrote past its workspace */
        lgelu_pace pace[4]; /* of forwards, backwards, updates and norms of the gradient */
    } internal;             /* private: what one call leaves for the next */
};

/* ---- for advanced users: custom gates ---- */

/* A gate of the caller, wherever a builder takes a kind: see lgelu_gate_custom. Its functions
   receive n values, whole rows, the first of which is value number `first` of the node (also in a
   generation, whose calls begin at later tokens), on any thread; how a value is partitioned depends
   on the layer only. Its parameters start at `start`, are stored where lgelu_net_biases(net, node)
   points, learn without decay, and are saved and copied as biases are. */
struct lgelu_custom_gate {
    /* Computes y = f(x). y may be x. net->threads.run, where it is set, may be called; its tasks
       run on this thread. */
    void (*forward)(float *y, const float *x, size_t n, size_t first, const lgelu_net *net,
                    const lgelu_node *node, void *user);
    /* Computes dx = dy·f'(x), unless dx is NULL; dx may be dy. Adds Σ dy·∂f/∂w to dw[parameters]. x
       is the forward's input. */
    void (*backward)(float *dx, double *dw, const float *dy, const float *x, size_t n, size_t first,
                     const lgelu_net *net, const lgelu_node *node, void *user);
    size_t parameters;
    float start;
    void *user;
};

/* ---- for advanced users: matrix products ---- */

/* A matrix: element (i, j) is x[i·row_stride + j·col_stride], so that strides (columns, 1) read it
   by rows and (1, rows) read its transpose. Or, if `read` is not NULL, what read writes: the
   elements of rows i … i + rows - 1 and columns j … j + cols - 1, one row every out_stride floats
   of out. */
typedef struct {
    const float *x;
    size_t row_stride, col_stride;
    void (*read)(float *out, size_t out_stride, size_t i, size_t rows, size_t j, size_t cols,
                 const void *user);
    const void *user;
} lgelu_matrix;

/* The product C (m, n) = start + A (m, k) B (k, n) in f32. Every element of C is one chain of fma
   over k in increasing order from its start value: no partition, instruction set or number of
   threads changes a bit. Set what you don't need to zero. C and y overlap neither A nor B; y may be
   C. */
typedef struct {
    size_t m, n, k;
    float *c;
    size_t c_stride; /* C[i·c_stride + j] */
    lgelu_matrix a, b;
    const float *bias; /* the start values, bias[j]; NULL: zeros */
    int accumulate;    /* 1: the start values are C's elements instead */
    float *y;          /* if not NULL: y = gate(C; λ), computed while C is in the cache */
    size_t y_stride;
    float lambda;
    /* If not NULL: called once for each finished block of C, by the thread that computed it. */
    void (*finish)(size_t i, size_t rows, size_t j, size_t cols, const void *user);
    const void *user;
} lgelu_product;

/* Returns the bytes of workspace for a product of these sizes, or of any smaller sizes, on any
   number of threads; at most 17 MB. */
LGELU_DEF size_t lgelu_multiply_bytes(size_t m, size_t n, size_t k);

/* Computes the product. threads = NULL: on the calling thread alone. */
LGELU_DEF void lgelu_multiply(const lgelu_product *job, void *work, const lgelu_threads *threads);

/* Computes sum[j] (n) = Σ over i of x[i·x_stride + j], or adds it to sum if accumulate is 1: in
   order within 64 rows, then these sums in order. */
LGELU_DEF void lgelu_column_sums(float *sum, const float *x, size_t x_stride, size_t m, size_t n,
                                 int accumulate, const lgelu_threads *threads);
#endif /* LGELU_TRAINER */

#ifdef __cplusplus
}
#endif
#endif /* LGELU_H */

#if !defined(__cplusplus) && !defined(_MSC_VER) \
    && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L)
#ifdef LGELU_IMPLEMENTATION
#error "lgelu.h: the implementation needs C99 or later (-std=c99), or C++11"
#undef LGELU_IMPLEMENTATION /* one line says it */
#endif
#endif
#if defined(LGELU_IMPLEMENTATION) && !defined(LGELU__IMPLEMENTED)
#define LGELU__IMPLEMENTED

/* ==== [2] PLATFORM ============================================================================ */
/* What compilers and processors differ in. Everything after this section is written in its
   macros. */
#include <math.h>
#include <string.h>
#include <float.h>
#ifdef _WIN32
/* <windows.h> defines these two names as macros. They are restored after the last kernel. */
#pragma push_macro("far")
#pragma push_macro("small")
#undef far
#undef small
#endif

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) \
    || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || defined(_M_FP_FAST)
#error \
    "lgelu.h: compile this file without -ffast-math, -Ofast or /fp:fast (it needs IEEE arithmetic)"
#endif
#ifdef __NO_SIGNED_ZEROS__
#error "lgelu.h: compile this file without -fno-signed-zeros (gates distinguish -0 from 0)"
#endif
/* gcc -fsingle-precision-constant makes floats of the coefficients in double */
typedef char lgelu__without_single_precision_constant[sizeof 1.0 == sizeof(double) ? 1 : -1];
/* The values 16 and 32 of FLT_EVAL_METHOD concern half precision alone. */
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16 \
    && FLT_EVAL_METHOD != 32
#error "lgelu.h: floats are not evaluated as floats: add -msse2 -mfpmath=sse, or use -std=gnu99"
#endif

#ifndef LGELU_ASSERT
#include <assert.h>
#define LGELU_ASSERT(condition) assert(condition)
#endif

/* Asserts that a public function which has n elements to process received its arrays. A NULL there
   is a programming error, which no status reports. Every public kernel begins with it. */
#define LGELU__GIVEN(n, arrays) LGELU_ASSERT(!(n) || (arrays))

/* LGELU__CALLS is 1 where the vector operations of [K] are compiled as calls instead of being
   inlined: without optimisation inlining would need 197 KB of stack, and under a sanitizer minutes
   of compile time. */
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LGELU__CALLS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) \
    || __has_feature(thread_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define LGELU__CALLS 1
#endif
#endif
#ifndef LGELU__CALLS
#define LGELU__CALLS 0
#endif

/* The bytes behind each region of a network that nothing may write to (LGELU_CHECK). They fill a
   cache line, so that everything stays aligned. */
#ifdef LGELU_CHECK
#define LGELU__GUARD ((size_t)64)
#else
#define LGELU__GUARD ((size_t)0)
#endif
#if defined(LGELU_CHECK) && defined(__SANITIZE_ADDRESS__)
#define LGELU__POISONS 1
#elif defined(LGELU_CHECK) && defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LGELU__POISONS 1
#endif
#endif
#ifdef LGELU__POISONS
#include <sanitizer/asan_interface.h>
#define LGELU__POISON(p) __asan_poison_memory_region(p, LGELU__GUARD)
#define LGELU__UNPOISON(p) __asan_unpoison_memory_region(p, LGELU__GUARD)
#else
#define LGELU__POISON(p) ((void)(p))
#define LGELU__UNPOISON(p) ((void)(p))
#endif

/* The following macros are defined for gcc and clang, for MSVC, and for any other C99 compiler.

     LGELU__GNU           whether the extensions of gcc are available
     LGELU__ATOMIC        whether there are atomic operations, and thus threads
     LGELU__INLINE        a function that is inlined at every call
     LGELU__APART         a function that is never inlined: it is rare, or called from several
                          places, where copies would cost compile time and gain no speed
     LGELU__TARGET_...    the attribute that lets one function use an instruction set
     LGELU__GET(p)        reads the int at p, relaxed
     LGELU__SET(p, v)     writes it, relaxed
     LGELU__REPLACE(p, a, b)
                          writes b if the int at p is a
     LGELU__ADD(p, v)     adds to it, sequentially consistent, and returns the previous value */
#if defined(__GNUC__) && !defined(__TINYC__)
#define LGELU__GNU 1
#if LGELU__CALLS
#define LGELU__INLINE static __attribute__((unused))
#else
#define LGELU__INLINE static inline __attribute__((always_inline, unused))
#endif
#define LGELU__APART static __attribute__((noinline, unused))
#define LGELU__TARGET_SCALAR
#define LGELU__TARGET_NEON
#define LGELU__TARGET_SIMD128
#define LGELU__TARGET_AVX2 __attribute__((target("avx2,fma,f16c,popcnt")))
#define LGELU__TARGET_AVX512 \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,popcnt")))
/* A small processor, such as a Cortex-M0, has no atomic operations. */
#if defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_4) || defined(__wasm__)
#define LGELU__ATOMIC 1
#define LGELU__GET(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define LGELU__SET(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define LGELU__REPLACE(p, a, b)                                                   \
    do {                                                                          \
        int lgelu__was = (a);                                                     \
        (void)__atomic_compare_exchange_n(p, &lgelu__was, b, 0, __ATOMIC_RELAXED, \
                                          __ATOMIC_RELAXED);                      \
    } while (0)
#define LGELU__ADD(p, v) __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)
#endif
#elif defined(_MSC_VER)
/* MSVC needs no target attribute, and reads and writes an aligned int atomically. */
#define LGELU__GNU 0
#define LGELU__ATOMIC 1
#define LGELU__INLINE static __forceinline
#define LGELU__APART static __declspec(noinline)
#define LGELU__TARGET_SCALAR
#define LGELU__TARGET_NEON
#define LGELU__TARGET_AVX2
#define LGELU__TARGET_AVX512
#define LGELU__GET(p) (*(volatile int *)(p))
#define LGELU__SET(p, v) (*(volatile int *)(p) = (v))
#define LGELU__REPLACE(p, a, b) ((void)_InterlockedCompareExchange((volatile long *)(p), b, a))
#define LGELU__ADD(p, v) _InterlockedExchangeAdd((volatile long *)(p), v)
#else
/* Any other C99 compiler, for example tcc, compiles the scalar code. */
#define LGELU__GNU 0
#define LGELU__INLINE static inline
#define LGELU__APART static
#define LGELU__TARGET_SCALAR
#endif
#ifndef LGELU__ATOMIC
/* Everything runs on one thread. */
#define LGELU__ATOMIC 0
#define LGELU__GET(p) (*(p))
#define LGELU__SET(p, v) (*(p) = (v))
#define LGELU__REPLACE(p, a, b) ((void)(*(p) == (a) ? *(p) = (b) : (a)))
#define LGELU__ADD(p, v) ((*(p) += (v)) - (v))
#endif

#if !defined(LGELU_NO_SIMD) && (LGELU__GNU || defined(_MSC_VER)) \
    && (defined(__x86_64__) || defined(_M_X64))
#define LGELU__X86 1
#if defined(_WIN32) && defined(__GNUC__) && !defined(__clang__)
/* On Windows gcc does not align the stack to 32 bytes (gcc bug 54412), so its aligned moves of
   vectors are assembled as unaligned ones. */
__asm__(".macro vmovaps x:vararg\n vmovups \\x\n .endm\n"
        ".macro vmovapd x:vararg\n vmovupd \\x\n .endm\n"
        ".macro vmovdqa x:vararg\n vmovdqu \\x\n .endm\n"
        ".macro vmovdqa32 x:vararg\n vmovdqu32 \\x\n .endm\n"
        ".macro vmovdqa64 x:vararg\n vmovdqu64 \\x\n .endm");
#endif
#if defined(__GNUC__) && !defined(__clang__)
/* gcc 12 warns inside its own header when it compiles C++ (gcc bug 105593). */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#ifdef __GNUC__
#include <cpuid.h>
#else
#include <intrin.h>
#endif
#else
#define LGELU__X86 0
#endif
/* Whether the kernels for AVX-512 are compiled. */
#if LGELU__X86 && !defined(LGELU_NO_AVX512)
#define LGELU__AVX512 1
#else
#define LGELU__AVX512 0
#endif
#if !defined(LGELU_NO_SIMD) && LGELU__GNU && defined(__aarch64__) && defined(__ARM_NEON)
#define LGELU__ARM 1
#include <arm_neon.h>
#else
#define LGELU__ARM 0
#endif
#if !defined(LGELU_NO_SIMD) && LGELU__GNU && defined(__wasm_simd128__)
#define LGELU__WASM 1
#include <wasm_simd128.h>
#else
#define LGELU__WASM 0
#endif

/* LGELU__UNROLLED precedes a loop of constant length over arrays that must be kept in
   registers; LGELU__TWICE precedes a loop of which two rounds are compiled together. */
#if LGELU__CALLS
#define LGELU__UNROLLED
#define LGELU__TWICE
#elif defined(__clang__)
#define LGELU__UNROLLED _Pragma("clang loop unroll(full)")
#define LGELU__TWICE _Pragma("clang loop unroll_count(2)")
#elif defined(__GNUC__) && __GNUC__ >= 8
#define LGELU__UNROLLED _Pragma("GCC unroll 16")
#define LGELU__TWICE _Pragma("GCC unroll 2")
#else
#define LGELU__UNROLLED
#define LGELU__TWICE
#endif

/* LGELU__FETCH prefetches the cache line at p into the second-level cache, LGELU__NEAR into the
   first-level cache. */
#if LGELU__GNU
#define LGELU__FETCH(p) __builtin_prefetch(p, 0, 2)
#define LGELU__NEAR(p) __builtin_prefetch(p, 0, 3)
#else
#define LGELU__FETCH(p) ((void)(p))
#define LGELU__NEAR(p) ((void)(p))
#endif
/* The address of p[n], which may be past the end of the array: a prefetch there does no harm. */
#define LGELU__PAST(p, n) ((const void *)((uintptr_t)(p) + (n) * sizeof(float)))
/* In a pass over a long array p that has reached element i, prefetches once for each cache line the
   data 8 KiB ahead. This crosses the end of a page, where the prefetcher of a processor stops. */
#define LGELU__AHEAD(p, i)                            \
    do {                                              \
        if ((i) % 16 == 0)                            \
            LGELU__FETCH(LGELU__PAST(p, (i) + 2048)); \
    } while (0)

/* LGELU__TICKS reads a counter of the processor that increases at a constant rate, where there is
   one; else it is 0. */
#if LGELU__GNU && defined(__x86_64__)
#define LGELU__TICKS() ((double)__builtin_ia32_rdtsc())
#elif LGELU__GNU && defined(__aarch64__)
static inline double lgelu__ticks(void)
{
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return (double)ticks;
}
#define LGELU__TICKS() lgelu__ticks()
#else
#define LGELU__TICKS() 0.0
#endif

/* LGELU__REST is the pause instruction in the loop of a thread that waits. LGELU__YIELD lets
   another thread have the processor. */
#if LGELU__GNU && defined(__x86_64__)
#define LGELU__REST() __builtin_ia32_pause()
#elif LGELU__GNU && defined(__aarch64__)
#define LGELU__REST() __asm__ volatile("yield")
#else
#define LGELU__REST() ((void)0)
#endif
#if defined(LGELU_TRAINER) && (defined(__unix__) || defined(__APPLE__))
#include <sched.h>
#define LGELU__YIELD() sched_yield()
#else
#define LGELU__YIELD() LGELU__REST()
#endif

/* clang compiles a > b ? a : b to the maximum instruction of the processor. On x86 that instruction
   makes the same choice, but in WebAssembly and on ARM it treats NaN differently. There the
   condition is hidden from the compiler. */
#if defined(__clang__) && !defined(__x86_64__) && !defined(__i386__)
#define LGELU__OPAQUE(kind, k) __asm__("" : kind(k))
#else
#define LGELU__OPAQUE(kind, k) ((void)0)
#endif
/* LGELU__HIDE hides from the compiler how k was computed; `kind` is the constraint of its register.
   LGELU__HIDE_FLOATS does so for floats or a vector of them: a product that is hidden is not
   contracted with the sum that it enters. */
#if LGELU__GNU
#define LGELU__HIDE(kind, k) __asm__("" : kind(k))
#else
#define LGELU__HIDE(kind, k) ((void)0)
#endif
#if defined(__x86_64__) || defined(__i386__)
#define LGELU__HIDE_FLOATS(k) LGELU__HIDE("+x", k)
#elif defined(__aarch64__)
#define LGELU__HIDE_FLOATS(k) LGELU__HIDE("+w", k)
#elif defined(__wasm__)
#define LGELU__HIDE_FLOATS(k) ((void)0) /* it has no instruction that contracts */
#else
#define LGELU__HIDE_FLOATS(k) LGELU__HIDE("+m", k)
#endif

/* LGELU__LINES aligns a table to cache lines. LGELU__RARELY tells the compiler that a condition is
   seldom true. */
#if LGELU__GNU
#define LGELU__LINES __attribute__((aligned(64)))
#define LGELU__RARELY(condition) __builtin_expect(!!(condition), 0)
#else
#define LGELU__LINES
#define LGELU__RARELY(condition) (condition)
#endif

/* The kernels depend on rounding to the nearest: a sum with 1.5·2^23 finds the column of a table.
   Where the calling thread rounds otherwise, its mode is set aside during the call. Where it does
   not, the test costs less than half a nanosecond, of the 20 that 8 floats take. What is computed
   in between comes from memory and goes to memory, so that no compiler moves it past these two
   functions. */
#if LGELU__GNU && defined(__x86_64__)
/* Sets the register that holds the rounding mode. */
LGELU__APART void lgelu__set_rounding(unsigned mode)
{
    __asm__ volatile("ldmxcsr %0" : : "m"(mode) : "memory");
}

/* Sets rounding to nearest, and returns the mode that was in force. */
LGELU__INLINE unsigned lgelu__round_to_nearest(void)
{
    unsigned mode;
    __asm__ volatile("stmxcsr %0" : "=m"(mode) : : "memory");
    if (LGELU__RARELY(mode & 0x6000))
        lgelu__set_rounding(mode & ~0x6000u);
    return mode;
}

/* Restores the mode that lgelu__round_to_nearest returned. */
LGELU__INLINE void lgelu__restore_rounding(unsigned mode)
{
    unsigned now;
    if (!LGELU__RARELY(mode & 0x6000))
        return;
    /* The flags of exceptions that the call has raised are kept. */
    __asm__ volatile("stmxcsr %0" : "=m"(now) : : "memory");
    lgelu__set_rounding(now | (mode & 0x6000));
}
#elif LGELU__GNU && defined(__aarch64__)
LGELU__INLINE void lgelu__set_rounding(uint64_t mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory");
}

LGELU__INLINE unsigned lgelu__round_to_nearest(void)
{
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode) : : "memory");
    if (LGELU__RARELY(mode & 0xC00000))
        lgelu__set_rounding(mode & ~(uint64_t)0xC00000);
    return (unsigned)mode;
}

LGELU__INLINE void lgelu__restore_rounding(unsigned mode)
{
    if (LGELU__RARELY(mode & 0xC00000))
        lgelu__set_rounding(mode);
}
#else
#ifndef __wasm__ /* there the nearest is the only mode */
#include <fenv.h>
#endif
#if defined(FE_TONEAREST) && (defined(FE_UPWARD) || defined(FE_DOWNWARD) || defined(FE_TOWARDZERO))
LGELU__INLINE unsigned lgelu__round_to_nearest(void)
{
    const int mode = fegetround();
    if (LGELU__RARELY(mode != FE_TONEAREST))
        fesetround(FE_TONEAREST);
    return (unsigned)mode;
}

LGELU__INLINE void lgelu__restore_rounding(unsigned mode)
{
    if (LGELU__RARELY((int)mode != FE_TONEAREST))
        fesetround((int)mode);
}
#else /* there is no other mode */
LGELU__INLINE unsigned lgelu__round_to_nearest(void) { return 0; }
LGELU__INLINE void lgelu__restore_rounding(unsigned mode) { (void)mode; }
#endif
#endif
/* Executes a statement with rounding to nearest. Where that is all of a public function lgelu_NAME,
   lgelu__nearest_NAME computes. */
#define LGELU__TO_NEAREST(statement)                            \
    do {                                                        \
        const unsigned lgelu__mode = lgelu__round_to_nearest(); \
        statement;                                              \
        lgelu__restore_rounding(lgelu__mode);                   \
    } while (0)

#define LGELU__PASTE2(a, b) a##b
#define LGELU__PASTE(a, b) LGELU__PASTE2(a, b)

LGELU__INLINE uint32_t lgelu__bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

LGELU__INLINE float lgelu__float(uint32_t u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}

/* The NaN that every function of this file produces. The macro NAN of <math.h> is 0/0 with
   compilers without a builtin (tcc), and then has its sign set. */
#define LGELU__NAN lgelu__float(0x7FC00000)

/* lgelu__fmaf returns a*b + c rounded once.

   Where the processor has no such instruction, the product is computed in double, where it is
   exact. The sum is then rounded twice, to double and to float. The result is correct unless the
   sum is halfway between two floats or the result is below 2^-126. In these rare cases the sum is
   first rounded to odd (Boldo & Melquiond 2008).

   The function is inlined only where the scalar kernels are the ones that run: inlining halves
   their time in WebAssembly, saves a quarter elsewhere, and costs an eighth more compile time.
   Section [K] has the same method for four lanes and for a whole polynomial. */
#if defined(__FP_FAST_FMAF) || defined(FP_FAST_FMAF) || defined(__aarch64__)
#define LGELU__FAST_FMA 1
LGELU__INLINE float lgelu__fmaf(float a, float b, float c) { return fmaf(a, b, c); }
#else
#define LGELU__FAST_FMA 0
#if LGELU__X86 || LGELU__WASM
#define LGELU__MAYBE_INLINE LGELU__APART
#else
#define LGELU__MAYBE_INLINE LGELU__INLINE
#endif
/* Returns the float nearest to p + d, by way of the double nearest to it whose last bit is odd. e
   is the error of the sum s (Knuth's TwoSum). */
LGELU__APART float lgelu__to_odd(double p, double d)
{
    double s = p + d, t = s - p, e = (p - (s - t)) + (d - t);
    uint64_t i;
    memcpy(&i, &s, 8);
    if (!(i & 1) && (e < 0 || e > 0))
        i = ((e > 0) == (s > 0)) ? i + 1 : i - 1;
    memcpy(&s, &i, 8);
    return (float)s;
}

LGELU__MAYBE_INLINE float lgelu__fmaf(float a, float b, float c)
{
    const double p = (double)a * (double)b, s = p + (double)c;
    const float r = (float)s;
    uint64_t i;
    memcpy(&i, &s, 8);
    if (LGELU__RARELY((uint32_t)i << 3 == 0x80000000u || !(fabsf(r) > FLT_MIN)))
        return lgelu__to_odd(p, (double)c);
    return r;
}
#endif

/* Whether SSE2 code of four lanes takes the place of the scalar kernels. */
#define LGELU__SSE2 (LGELU__X86 && !LGELU__FAST_FMA)

/* Returns n, but at least -most and at most `most`. */
static int lgelu__limited(int n, int most)
{
    if (n > most)
        return most;
    return n < -most ? -most : n;
}

/* Returns 2^n for n from -1022 to 1023. */
static double lgelu__power_of_two(int n)
{
    const uint64_t bits = (uint64_t)(n + 1023) << 52;
    double power;
    memcpy(&power, &bits, 8);
    return power;
}

/* Returns x·2^n, rounded once, for abs(x) from 2^-120 to 2. It takes the place of ldexp, which sets
   errno where the result is 0 or infinite. The first product is exact. */
static double lgelu__scaled_by(double x, int n)
{
    const int first = lgelu__limited(n, 900);
    return x * lgelu__power_of_two(first) * lgelu__power_of_two(lgelu__limited(n - first, 1000));
}

/* The fma of MinGW's libm rounds twice, by way of long double. This one is correct: a*b = p + q
   exactly (Dekker), c + q = t + u, p + t = s + v, and u + v is rounded to odd (Boldo & Melquiond
   2008). The operands are scaled first, so that no step overflows or underflows. */
#if defined(__MINGW32__) && !defined(__FP_FAST_FMA)
static double lgelu__fma(double a, double b, double c)
{
    int ea, eb, ec;
    double ah, bh, p, q, t, u, s, v, w, e;
    uint64_t i;
    if (!(fabs(a) <= DBL_MAX) || !(fabs(b) <= DBL_MAX) || !(fabs(c) <= DBL_MAX) || !(fabs(a) > 0)
        || !(fabs(b) > 0))
        return a * b + c;
    if (!(fabs(c) > 0))
        return a * b;
    a = frexp(a, &ea);
    b = frexp(b, &eb);
    c = frexp(c, &ec);
    ea += eb;
    ec -= ea;
    /* The product is less than a quarter of the last place of c. */
    if (ec > 60)
        return lgelu__scaled_by(c, ec + ea);
    /* Where c is below the last place of the product, only its sign matters. */
    c = lgelu__scaled_by(c, ec < -120 ? -120 : ec);
    w = a * 134217729;
    ah = w - (w - a);
    w = b * 134217729;
    bh = w - (w - b);
    p = a * b;
    q = (a - ah) * (b - bh) - (((p - ah * bh) - (a - ah) * bh) - ah * (b - bh));
    t = c + q;
    w = t - c;
    u = (c - (t - w)) + (q - w);
    s = p + t;
    w = s - p;
    v = (p - (s - w)) + (t - w);
    w = u + v;
    t = w - u;
    e = (u - (w - t)) + (v - t);
    memcpy(&i, &w, 8);
    if (!(i & 1) && (e < 0 || e > 0))
        i = ((e > 0) == (w > 0)) ? i + 1 : i - 1;
    memcpy(&w, &i, 8);
    return lgelu__scaled_by(s + w, ea);
}

#define fma lgelu__fma
#endif

/* ==== [3] YARDSTICK =========================================================================== */
/* The exact gate and random numbers, with elementary functions in double that are accurate to one
   or two ulp. They replace those of libm, because neither the yardstick nor the computation of a λ,
   a learning rate or an initial weight may depend on the libm that is linked. Every product that is
   added to something is an fma. */

/* Returns exp(x + l) for a small l. */
LGELU__APART double lgelu__exp_sum(double x, double l)
{
    double n, r, p;
    int i;
    if (!(x > -745.2))
        return x != x ? x : 0;
    if (x > 709.8)
        return HUGE_VAL;
    /* x + l = n·ln 2 + r with abs(r) <= 0.35, where ln 2 is the sum of two doubles. The first fma
       is exact. */
    n = floor(fma(x, 1.4426950408889634, 0.5));
    r = fma(n, -0.6931471805599453, x) + fma(n, -2.3190468138462996e-17, l);
    /* The Taylor series of exp(r), up to r^13. */
    p = 1;
    for (i = 13; i > 1; i--)
        p = fma(p * r, 1.0 / i, 1.0);
    return lgelu__scaled_by(fma(p, r, 1.0), (int)n);
}

static double lgelu__exp(double x) { return lgelu__exp_sum(x, 0); }

/* Φ(z) and f'(z) are computed from Mills' ratio m(z) = Φ(-z)/φ(z):
     Φ(-z) = φ(z)·m(z)    f'(-z) = φ(z)·(m(z) - z)    m'(z) = z·m(z) - 1
   Here z = λx is the unrounded product h + l of two doubles, abs(z) < 40, and l enters to first
   order through m'. The table holds a polynomial in (z - 11/2)/(z + 11/2), which approximates
   (z + 5/4)·m(z) with an error of 3e-17. tests/tools/coefficients.py made the coefficients. */
static const double lgelu__mills_table[24] = {
    1.1901801538604433,      -0.30454784811505309,    0.16025256563732709,
    -0.045870411495901549,   -0.020353731740227574,   0.042262204456459833,
    -0.036876936789332848,   0.022259091992580228,    -0.009726808510571467,
    0.0027806491547351874,   -0.00023806377193651352, -0.00020444345200072286,
    9.4265572453759017e-05,  -2.8343100357035534e-06, -1.1049072377511349e-05,
    2.7126646743433887e-06,  1.0224269694701323e-06,  -5.3034076408665675e-07,
    -9.0781602912951656e-08, 8.309777082442632e-08,   1.047809419063414e-08,
    -9.8658762110393761e-09, -1.4972952193139869e-09, 3.8097939016690859e-10
};

typedef struct {
    double h, l;
} lgelu__exact_product;

/* Returns λx without rounding it. */
static lgelu__exact_product lgelu__z(double x, double lambda)
{
    lgelu__exact_product z;
    z.h = fma(lambda, x, 0.0);
    z.l = fma(lambda, x, -z.h);
    return z;
}

/* Returns the normal density φ(z) = exp(-z²/2)/√(2π). */
static double lgelu__density(lgelu__exact_product z)
{
    const double s = z.h * z.h;
    return 0.39894228040143267794
           * lgelu__exp_sum(-0.5 * s, -0.5 * fma(2 * z.h, z.l, fma(z.h, z.h, -s)));
}

/* Returns Φ(z) for k = 0, f'(z) for k = 1. Near 0 both are 1/2 plus a small term, which is computed
   from the Taylor series, so that the 1/2 is exact. */
static double lgelu__distribution(lgelu__exact_product z, int k)
{
    const double a = fabs(z.h), l = z.h < 0 ? -z.l : z.l, t = (a - 5.5) / (a + 5.5),
                 e = lgelu__density(z);
    double m = lgelu__mills_table[23];
    int i;
    if (a < 0.0001220703125)
        return fma(z.h, e * fma(z.h, z.h * (1.0 / 3), 1.0 + k), 0.5);
    for (i = 22; i >= 0; i--)
        m = fma(m, t, lgelu__mills_table[i]);
    m /= a + 1.25;
    m = k ? fma(l, fma(a, m, -2.0), m - a) : fma(l, fma(a, m, -1.0), m);
    return z.h < 0 ? e * m : fma(-e, m, 1.0);
}

LGELU_DEF double lgelu_exact(double x, double lambda)
{
    if (!(lambda >= 0) || x != x)
        return (double)LGELU__NAN;
    if (!(lambda > 0))
        return 0.5 * x;
    /* Here f is ReLU, with -0 for a negative x. (clang 14 may compile x >= 0 ? x : -0.0 to a
       maximum, which loses the sign of the 0.) */
    if (!(fabs(lambda * x) < 40))
        return x > 0 ? x : copysign(0.0, x);
    return x * lgelu__distribution(lgelu__z(x, lambda), 0);
}

/* Near the root of f', Φ(z) + zφ(z) cancels. There a Taylor series in d = z - root keeps the
   relative accuracy; the root is the sum of two doubles. */
LGELU_DEF double lgelu_exact_dx(double x, double lambda)
{
    static const double c[13] = { 0.4314939923140469,     0.388284982990552,
                                  -0.018199676398671087,  -0.1140082332972217,
                                  -0.014771522148244337,  0.019421679838189067,
                                  0.004539228379125415,   -0.002239538068073497,
                                  -0.0007448268386746817, 0.00018633974623233514,
                                  8.615947861116571e-05,  -1.121438018842664e-05,
                                  -7.74846130700372e-06 };
    lgelu__exact_product z;
    double d, p;
    int i;
    if (!(lambda >= 0) || x != x)
        return (double)LGELU__NAN;
    if (!(lambda > 0))
        return 0.5;
    if (!(fabs(lambda * x) < 40))
        return x > 0 ? 1 : 0;
    z = lgelu__z(x, lambda);
    d = (z.h + 0.7517915246935645) + (z.l - 1.4956759177009883e-17);
    if (fabs(d) < 0.125) {
        p = c[12];
        for (i = 11; i >= 0; i--)
            p = fma(p, d, c[i]);
        return p * d;
    }
    return lgelu__distribution(z, 1);
}

LGELU_DEF double lgelu_exact_dlambda(double x, double lambda)
{
    if (!(lambda >= 0) || x != x)
        return (double)LGELU__NAN;
    if (fabs(x) > DBL_MAX || (lambda > 0 && !(fabs(lambda * x) < 40)))
        return 0;
    return x * (x * lgelu__density(lgelu__z(x, lambda)));
}

/* SiLU. With a = abs(βx) and e = exp(-a),
     σ(a)·σ(-a) = g = e/(1 + e)²,  f'(-a) = g·(1 + e - a),  f'(a) = 1 - f'(-a).
   The factor 1 + e - a has its root at a = 1.2784645. */
typedef struct {
    double a, e, g, root;
} lgelu__silu_terms;

/* Returns the terms for abs(βx) < 800. Near the root, root = 1 + e - a is computed from its Taylor
   series in the distance d from the root a0 = 1 + e0, which is the sum of two doubles:
     root = d·(e0·d·(1/2 - d/6 + d²/24 - ...) - a0). */
static lgelu__silu_terms lgelu__silu(double x, double beta)
{
    const lgelu__exact_product z = lgelu__z(x, beta);
    const double low = z.h < 0 ? -z.l : z.l;
    lgelu__silu_terms t;
    double d, p = 1;
    int i;
    t.a = fabs(z.h);
    t.e = lgelu__exp_sum(-t.a, -low);
    t.g = t.e / fma(t.e, t.e + 2, 1.0);
    t.root = ((1 - t.a) + t.e) - low;
    d = (t.a - 1.2784645427610737) + (low - 1.0946994183093437e-16);
    if (fabs(d) < 0.25) {
        for (i = 14; i > 2; i--)
            p = fma(p * d, -1.0 / i, 1.0);
        t.root = d * fma(0.5 * 0.27846454276107380 * d, p, -1.2784645427610737);
    }
    return t;
}

LGELU_DEF double lgelu_exact_silu(double x, double beta)
{
    lgelu__silu_terms t;
    if (!(beta >= 0) || x != x)
        return (double)LGELU__NAN;
    if (!(beta > 0))
        return 0.5 * x;
    /* Here f is ReLU, with -0 for a negative x. */
    if (!(fabs(beta * x) < 800))
        return x > 0 ? x : copysign(0.0, x);
    t = lgelu__silu(x, beta);
    return x < 0 ? x * (t.e / (1 + t.e)) : x / (1 + t.e);
}

LGELU_DEF double lgelu_exact_silu_dx(double x, double beta)
{
    lgelu__silu_terms t;
    if (!(beta >= 0) || x != x)
        return (double)LGELU__NAN;
    if (!(beta > 0))
        return 0.5;
    if (!(fabs(beta * x) < 800))
        return x > 0 ? 1 : 0;
    t = lgelu__silu(x, beta);
    return x < 0 ? t.g * t.root : fma(-t.g, t.root, 1.0);
}

LGELU_DEF double lgelu_exact_silu_dbeta(double x, double beta)
{
    if (!(beta >= 0) || x != x)
        return (double)LGELU__NAN;
    if (fabs(x) > DBL_MAX || (beta > 0 && !(fabs(beta * x) < 800)))
        return 0;
    return x * (x * lgelu__silu(x, beta).g);
}

/* Returns the tanh approximation of GELU, x/(1 + e^-v). It has no parameter; the second argument
   gives it the type of the other exact functions. */
static double lgelu__exact_tanh(double x, double unused)
{
    const double v = x * fma(0.071354816272600248776, x * x, 1.5957691216057307118);
    double e;
    (void)unused;
    if (!(fabs(v) < 800))
        return x > 0 || x != x ? x : copysign(0.0, x);
    e = lgelu__exp(-fabs(v));
    return x < 0 ? x * (e / (1 + e)) : x / (1 + e);
}

/* Returns e^x - 1 for x in [-1, 1] from its Taylor series. */
static double lgelu__expm1(double x)
{
    double p = 1;
    int i;
    for (i = 18; i > 1; i--)
        p = fma(p * x, 1.0 / i, 1.0);
    return p * x;
}

/* Returns ELU, with an unused argument as above. */
static double lgelu__exact_elu(double x, double unused)
{
    (void)unused;
    if (!(x <= 0))
        return x;
    if (x < -40)
        return -1;
    return x < -1 ? lgelu__exp(x) - 1 : lgelu__expm1(x);
}

/* Returns the natural logarithm of x. */
LGELU__APART double lgelu__log(double x)
{
    double m, s, q, p;
    int e, i;
    if (!(x > 0))
        return x < 0 || x != x ? (double)LGELU__NAN : -HUGE_VAL;
    if (x > DBL_MAX)
        return x;
    /* x = m·2^e with m between √½ and √2, and ln m = 2·atanh(s) with s = (m - 1)/(m + 1). */
    m = frexp(x, &e);
    if (m < 0.7071067811865476) {
        m *= 2;
        e--;
    }
    s = (m - 1) / (m + 1);
    q = s * s;
    /* The series of atanh up to s^23; abs(s) <= 0.172. */
    p = 0;
    for (i = 23; i > 1; i -= 2)
        p = fma(p, q, 1.0 / i);
    /* The rounding error of the quotient s is added back. */
    p = fma(s * q, p, fma(fma(-s, m, (m - 1) - s), 1 / (m + 1), s));
    return fma((double)e, 0.6931471805599453, fma((double)e, 2.3190468138462996e-17, 2 * p));
}

/* Returns ln(1 + x). The rounding error of 1 + x is corrected to first order. */
LGELU__APART double lgelu__log1p(double x)
{
    const double u = 1 + x, c = u - 1;
    if (!(u > 0) || u > DBL_MAX)
        return lgelu__log(u);
    /* Where 1 + x is rounded to 1, the logarithm is x. */
    if (!(c != 0))
        return x;
    return lgelu__log(u) + (x - c) / u;
}

/* Returns cos(πx) for x in [0, 1]. */
static double lgelu__cospi(double x)
{
    double y = (x > 0.5 ? 1 - x : x) * 3.141592653589793, q = y * y, p = 1;
    int i;
    for (i = 22; i > 0; i -= 2)
        p = fma(p * q, -1.0 / (i * (i - 1)), 1.0);
    return x > 0.5 ? -p : p;
}

#ifdef LGELU_TRAINER
/* Returns sin(πx) for x in [0, 1]. */
static double lgelu__sinpi(double x)
{
    double y = (x > 0.5 ? 1 - x : x) * 3.141592653589793, q = y * y, p = 1;
    int i;
    for (i = 23; i > 1; i -= 2)
        p = fma(p * q, -1.0 / (i * (i - 1)), 1.0);
    return y * p;
}
#endif

/* Philox4x32-10 (Salmon et al., SC 2011) is a keyed bijection of a counter of 128 bits. The key is
   the seed, the counter is (block, stream), and block i/4 holds the random numbers i, i + 1, i + 2
   and i + 3 of the stream. Replaces the counter c by four random numbers. */
static void lgelu__philox(uint32_t c[4], uint64_t seed)
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    int r;
    for (r = 0; r < 10; r++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t a = (uint32_t)(p1 >> 32) ^ c[1] ^ k0, b = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
        c[0] = a;
        c[1] = (uint32_t)p1;
        c[2] = b;
        c[3] = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* Writes the four random numbers of a block to c. */
static void lgelu__draw(uint32_t c[4], uint64_t seed, uint64_t stream, uint64_t block)
{
    c[0] = (uint32_t)block;
    c[1] = (uint32_t)(block >> 32);
    c[2] = (uint32_t)stream;
    c[3] = (uint32_t)(stream >> 32);
    lgelu__philox(c, seed);
}

LGELU_DEF uint32_t lgelu_random(uint64_t seed, uint64_t stream, uint64_t i)
{
    uint32_t c[4];
    lgelu__draw(c, seed, stream, i >> 2);
    return c[i & 3];
}

LGELU_DEF float lgelu_uniform(uint64_t seed, uint64_t stream, uint64_t i)
{
    return (float)(lgelu_random(seed, stream, i) >> 8) * (1.0f / 16777216.0f);
}

/* Writes two normally distributed values to x, by the method of Box and Muller: the cosine and the
   sine of one random angle times one random radius. */
static void lgelu__normal_pair(double x[2], uint64_t seed, uint64_t stream, uint64_t pair)
{
    uint32_t c[4];
    double r, b;
    lgelu__draw(c, seed, stream, pair >> 1);
    r = sqrt(-2 * lgelu__log(((double)c[2 * (pair & 1)] + 0.5) * (1.0 / 4294967296.0)));
    /* The angle divided by π, in [0, 2). */
    b = (double)c[2 * (pair & 1) + 1] * (1.0 / 2147483648.0);
    x[0] = r * lgelu__cospi(b > 1 ? 2 - b : b);
    b = fabs(b - 0.5);
    x[1] = r * lgelu__cospi(b > 1 ? 2 - b : b);
}

LGELU_DEF float lgelu_normal(uint64_t seed, uint64_t stream, uint64_t i)
{
    double x[2];
    lgelu__normal_pair(x, seed, stream, i / 2);
    return (float)x[i & 1];
}

/* The shuffle of Fisher and Yates, which builds the permutation from its beginning. */
LGELU_DEF void lgelu_shuffle(uint32_t *order, size_t n, uint64_t seed, uint64_t stream)
{
    size_t i, j;
    for (i = 0; i < n; i++) {
        j = (size_t)(((uint64_t)lgelu_random(seed, stream, i) * (i + 1)) >> 32);
        order[i] = order[j];
        order[j] = (uint32_t)i;
    }
}

/* ==== [4] DISPATCH ============================================================================ */
/* The table of kernels that each instruction set provides, the structures that kernels receive, the
   choice of an instruction set at run time, and the public kernels, which call through the
   table. */

/* One update of an optimiser with the gradient scale·g. The rule of AdamW is
     w -= rate·m/(√v·root + eps) + decay·w,  fresh1 = 1 - β1,  fresh2 = 1 - β2. */
typedef struct {
    float scale, momentum, fresh1, beta2, fresh2, rate, root, eps, decay;
} lgelu__rule;

#ifdef LGELU_TRAINER
static size_t lgelu__min(size_t a, size_t b) { return a < b ? a : b; }

/* Returns the height of the next sliver of a block in which `rest` rows remain, at most `most`. The
   slivers of a block have about equal heights. A height above 9 is even, so that fewer tiles have
   to be compiled. */
static size_t lgelu__height(size_t rest, size_t most)
{
    const size_t slivers = (rest - 1) / most + 1, rows = (rest - 1) / slivers + 1,
                 even = (rows + 1) / 2 * 2;
    if (rows <= 9)
        return rows;
    return even <= rest ? even : rows - rows / 2;
}

/* The limits of a matrix product's blocks. */
enum {
    LGELU__N = 1024,       /* columns of a block of B */
    LGELU__K = 512,        /* rows of a block of B */
    LGELU__BLOCK = 196608, /* elements of a block of B */
    LGELU__ACROSS = 384,   /* rows of a block of B where A is read along its columns */
    LGELU__GROUP = 8,      /* slivers that are then copied together */
    LGELU__WORKERS = 16    /* tasks at a time that need a workspace */
};

/* Winograd's transforms: of the input, the weights, the output, and of the gradients of the output
   and of the weights. */
enum { LGELU__OF_X, LGELU__OF_W, LGELU__OF_Y, LGELU__OF_DY, LGELU__OF_DW };

/* A matrix product C = A·B that is partitioned into tasks. Each task computes one block of C. */
typedef struct {
    const lgelu_product *job;
    const struct lgelu__kernels *isa;
    size_t rows, cols;   /* of a block of C */
    size_t depth;        /* how many k are processed at a time */
    size_t worker_bytes; /* of workspace for each worker */
    int across;          /* whether A is read along its columns */
    int pack_a, pack_b;  /* whether A and B are copied */
    int panels;          /* whether B is stored in panels */
    int fused;           /* whether the first sliver of a block copies B, while it reads it */
    int by_panel;        /* whether each panel of B meets all slivers of A before the next panel */
    size_t span;         /* prepacked: columns of B that are used together; 0: all */
    int next;            /* the next task to begin */
    unsigned char *work;
    int *broken; /* LGELU_CHECK: raised when a worker wrote past its workspace; or NULL */
} lgelu__block;

/* The product of `slivers` slivers of A with `run` panels of B, over k rows of B. */
typedef struct {
    const float *a, *b;
    const float *start; /* the initial values of the sums, or NULL for 0 */
    const float *next;  /* what is prefetched: of A for the next sliver, or of B for later panels */
    const float *y;     /* the output of the gate, to be prefetched, or NULL */
    float *c;
    float *into; /* where the first sliver copies what it reads of B, or NULL */
    size_t slivers, run, k;
    size_t a_row, a_col, b_row;
    size_t b_step, into_step; /* from panel to panel of B, and of its copy */
    size_t next_panel;        /* floats from a panel of B to the one that is read after it */
    size_t start_row, c_row, y_row, next_row;
    size_t next_step; /* of next, from tile to tile */
    size_t part;      /* steps of k for each row of next */
    size_t lines;     /* cache lines of a row of next */
} lgelu__sliver;

/* The state of a task that computes the rows from i to end and the columns from j to j + n of C. It
   has reached row k0 of B. */
typedef struct {
    const lgelu__block *p;
    size_t i, end, j, n, k0;
    size_t width;   /* of a tile, in vectors */
    size_t most;    /* the maximal height of a tile, in rows */
    size_t whole;   /* panels of full width */
    size_t panels;  /* all panels */
    size_t packed;  /* panels before the first copied one */
    int fused;      /* whether the first sliver, which then has more than half of the maximal
                       height, copies B, while it reads it */
    size_t b_panel; /* floats of a copied panel */
    size_t in, at;  /* where A is copied in groups: the sliver's index in its group, and the first
                       row after the group */
    const float *ahead; /* the panels that are used next, to be prefetched, or NULL */
    float *a_pack, *b_pack, *edge;
    lgelu__sliver t;
} lgelu__block_state;

/* Images that are read as a matrix with one row for each position of the convolution's kernel. A
   row index encodes (sample, row, column) of the output grid, a column index (row, column, channel)
   of the kernel. The image row is grid row · step[0] + kernel row · dilation[0] + origin[0], and
   the image column likewise. */
typedef struct {
    const float *x;
    size_t rows, columns; /* of an image */
    size_t pixel;         /* floats from one pixel to the next */
    size_t channels;      /* of a kernel element */
    size_t across;        /* columns of the kernel */
    size_t grid[2], step[2], dilation[2];
    ptrdiff_t origin[2];
} lgelu__im2col;

/* A normalisation over the n values of a row: y = (x - mean)·r·gain + shift, r = 1/√(variance +
   eps). Without `centre`, in RMS normalisation, the mean counts as 0 and there are no shifts. */
typedef struct {
    const float *gain; /* n gains, then n shifts */
    float eps;
    int centre;
} lgelu__row_norm;

/* x·scale + shift, with one scale and one shift for each channel. scale may be NULL for 1, shift
   for 0, and x for 0. */
typedef struct {
    const float *x, *scale, *shift;
} lgelu__scaled;
#endif

/* The families of gates, as F(X, family, exact function, parameter or none). Two kernels in [K],
   family_forward and family_backward, belong to each row; the other kernels and the bodies of the
   public functions are made from them. The gates of [8c] have the checklist for a new family. A
   family without a parameter ignores λ, and the sum that it returns is 0. */
/* clang-format off */
#define LGELU__FAMILIES(F, X)               \
    F(X, phi,  lgelu_exact,       lambda)   \
    F(X, tanh, lgelu__exact_tanh, none)     \
    F(X, silu, lgelu_exact_silu,  lambda)   \
    F(X, elu,  lgelu__exact_elu,  none)
#define LGELU__FAMILY_KERNELS(X, family, exact, parameter)                                        \
    X(void, family##_forward, (float *y, const float *x, float lambda, size_t n))                 \
    X(double, family##_backward,                                                                  \
      (float *dx, const float *dy, const float *x, float lambda, size_t n))                       \
    X(void, family##_forward16,                                                                   \
      (uint16_t * y, const uint16_t *x, float lambda, int format, size_t n))                      \
    X(double, family##_backward16,                                                                \
      (uint16_t * dx, const uint16_t *dy, const uint16_t *x, float lambda, int format, size_t n))
/* clang-format on */

/* The list of the public kernels, as X(result, name, arguments). Each has a table of its own,
   indexed by instruction set, so that a linker that removes unused sections keeps the kernels that
   a program calls. With LGELU_TRAINER this list and the next also generate one table of kernels for
   each instruction set. */
#define LGELU__KERNELS(X)                                                                \
    LGELU__FAMILIES(LGELU__FAMILY_KERNELS, X)                                            \
    X(void, forward_channels,                                                            \
      (float *y, const float *x, const float *lambda, size_t outer, size_t channels,     \
       size_t inner))                                                                    \
    X(void, backward_channels,                                                           \
      (float *dx, double *dlambda, const float *dy, const float *x, const float *lambda, \
       size_t outer, size_t channels, size_t inner))                                     \
    X(void, adamw,                                                                       \
      (float *w, float *m, float *v, const float *g, const lgelu__rule *rule, size_t n)) \
    X(void, sgd,                                                                         \
      (float *w, float *m, float *v, const float *g, const lgelu__rule *rule, size_t n)) \
    X(void, from16, (float *y, const uint16_t *x, int format, size_t n))                 \
    X(void, to16, (uint16_t * y, const float *x, int format, size_t n))                  \
    /* y = v·B, where B is 1 with probability Φ(λx), else 0 */                        \
    X(void, stochastic,                                                                  \
      (float *y, const float *v, const float *x, float lambda, size_t n, uint64_t seed,  \
       uint64_t stream, uint64_t first))
#ifdef LGELU_TRAINER
/* The place of a pixel that a window or a tile would have, where the image has none. */
#define LGELU__NO_PIXEL ((size_t)-1)
#define LGELU__TRAINER_KERNELS(X)                                                                \
    X(double, square_sum, (const float *x, size_t n))                                            \
    X(void, add, (float *y, const float *a, const float *b, size_t n))                           \
    X(void, mul, (float *y, const float *a, const float *b, size_t n))                           \
    X(void, scale, (float *y, const float *x, float scale, size_t n))                            \
    /* p = exp(scale·(x - max x)), followed by zeros from n to padded. stat receives max x      \
       and Σ p. p may be x, or NULL. */                                                         \
    X(void, exp_row,                                                                             \
      (float *p, float *stat, const float *x, float scale, size_t n, size_t padded))             \
    /* Replaces x by p = exp(scale·(x - stat[0]))/stat[1], and d by scale·p·(d - Σ d·p),    \
       both followed by zeros from n to padded. */                                               \
    X(void, softmax_backward,                                                                    \
      (float *x, float *d, const float *stat, float scale, size_t n, size_t padded))             \
    X(void, normalise,                                                                           \
      (float *y, float *stat, const float *x, const lgelu__row_norm *p, size_t rows, size_t n))  \
    X(void, normalise_backward,                                                                  \
      (float *dx, float *sums, const float *dy, const float *x, const float *stat,               \
       const lgelu__row_norm *p, int add, size_t n))                                             \
    /* y = 1/(1 + e^-x), and dx = dy·y·(1 - y). y may be x, dx may be dy. */                   \
    X(void, sigmoid, (float *y, const float *x, size_t n))                                       \
    X(void, sigmoid_backward, (float *dx, const float *dy, const float *x, size_t n))            \
    /* y = a·c - b·s and z = b·c + a·s; y may be a, and z b. */                              \
    X(void, rotate,                                                                              \
      (float *y, float *z, const float *a, const float *b, const float *c, const float *s,       \
       size_t n))                                                                                \
    X(void, dropout,                                                                             \
      (float *y, const float *x, uint64_t seed, uint64_t stream, size_t first, float rate,       \
       size_t n))                                                                                \
    X(void, copy,                                                                                \
      (float *out, size_t out_row, size_t step, const lgelu_matrix *x, size_t row, size_t rows,  \
       size_t col, size_t cols))                                                                 \
    X(void, block, (const lgelu__block *p, size_t i, size_t m, size_t j, size_t n, float *work)) \
    X(void, column_sums,                                                                         \
      (float *sum, const float *x, size_t x_row, size_t m, size_t n, int accumulate))            \
    X(void, im2col,                                                                              \
      (float *out, size_t out_row, size_t i, size_t rows, size_t j, size_t cols,                 \
       const void *user))                                                                        \
    /* sum[j] = Σ a and sum[n + j] = Σ a·b over the rows */                                   \
    X(void, channel_sums, (double *sum, const float *a, const float *b, size_t rows, size_t n))  \
    X(void, affine,                                                                              \
      (float *y, const lgelu__scaled *a, const lgelu__scaled *b, size_t rows, size_t n))         \
    X(void, depthwise,                                                                           \
      (float *y, size_t n, const float *w, size_t w_tap, const float *start,                     \
       const float *const *tap, size_t taps))                                                    \
    /* winograd_in transforms 4×4 pixels of n channels into 16 matrices. Pixel k is at          \
       x + at[k], or 0 where at[k] is LGELU__NO_PIXEL. winograd_kernel transforms 3×3 weights   \
       into 16 matrices, and winograd_out 16 matrices into 2×2 pixels. */                       \
    X(void, winograd_in, (float *u, size_t step, const float *x, const size_t *at, size_t n))    \
    X(void, winograd_kernel,                                                                     \
      (float *u, size_t step, const float *w, size_t tap, size_t n, int flip))                   \
    X(void, winograd_out,                                                                        \
      (float *y, const size_t *at, const float *m, size_t step, const float *bias, int add,      \
       size_t n))                                                                                \
    /* The transposes of the last two: 2×2 pixels to 16 matrices, and these to 3×3 weights. */ \
    X(void, winograd_dy, (float *m, size_t step, const float *dy, const size_t *at, size_t n))   \
    X(void, winograd_dkernel, (float *dw, const float *u, size_t step, int add, size_t n))       \
    /* Computes columns j to end of C, at least 16 of them; m <= 8. */                           \
    X(void, few_rows, (const lgelu_product *job, size_t j, size_t end))
#define LGELU__FIELD(result, name, arguments) result(*name) arguments;
#define LGELU__ENTRY(result, name, arguments) LGELU__FN(name),
typedef struct lgelu__kernels {
    LGELU__KERNELS(LGELU__FIELD)
    LGELU__TRAINER_KERNELS(LGELU__FIELD)
    size_t rows, cols; /* of a tile of the matrix product */
} lgelu__kernels;
#endif

/* The 16-bit formats. */
enum { LGELU__F16, LGELU__BF16 };

/* Section [K], at the end of this file, is written once in terms of a small vocabulary of vector
   operations. Each include below compiles that section for another instruction set. Every function
   then has its own target attribute, so that no compiler flag is needed, and a debugger or profiler
   shows the real lines of this one file. LGELU_SELF is the name of this file, a literal because
   __FILE__ fails with a relative -I. Define it if you rename the file. */
#ifndef LGELU_SELF
#define LGELU_SELF "lgelu.h"
#endif

/* The instruction sets that [K] can be compiled for. [Ka] states what each of them can do. */
#define LGELU__PASS_SCALAR 1
#define LGELU__PASS_SSE2 2
#define LGELU__PASS_NEON 3
#define LGELU__PASS_SIMD128 4
#define LGELU__PASS_AVX2 5
#define LGELU__PASS_AVX512 6

#if LGELU__SSE2
#define LGELU__PASS LGELU__PASS_SSE2
#include LGELU_SELF
#undef LGELU__PASS
#else
#define LGELU__PASS LGELU__PASS_SCALAR
#include LGELU_SELF
#undef LGELU__PASS
#endif
#if LGELU__ARM
#define LGELU__PASS LGELU__PASS_NEON
#include LGELU_SELF
#undef LGELU__PASS
#endif
#if LGELU__WASM
#define LGELU__PASS LGELU__PASS_SIMD128
#include LGELU_SELF
#undef LGELU__PASS
#endif
#if LGELU__X86
#define LGELU__PASS LGELU__PASS_AVX2
#include LGELU_SELF
#undef LGELU__PASS
#endif
#if LGELU__AVX512
#define LGELU__PASS LGELU__PASS_AVX512
#include LGELU_SELF
#undef LGELU__PASS
#endif

/* Returns the best instruction set that both the processor and the operating system support. */
static int lgelu__detect(void)
{
#if LGELU__X86
    unsigned a, b, c, d, os;
#ifdef __GNUC__
    /* F16C, AVX, OSXSAVE, POPCNT and FMA. */
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & 0x38801000u) != 0x38801000u)
        return LGELU_ISA_SCALAR;
    __asm__ volatile("xgetbv" : "=a"(os), "=d"(d) : "c"(0));
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return LGELU_ISA_SCALAR;
#else
    int r[4];
    __cpuidex(r, 0, 0);
    if (r[0] < 7)
        return LGELU_ISA_SCALAR;
    __cpuidex(r, 1, 0);
    c = (unsigned)r[2];
    if ((c & 0x38801000u) != 0x38801000u)
        return LGELU_ISA_SCALAR;
    os = (unsigned)_xgetbv(0);
    __cpuidex(r, 7, 0);
    b = (unsigned)r[1];
#endif
    /* AVX2, and an operating system that saves the YMM registers. */
    if ((os & 0x06) != 0x06 || !(b & (1u << 5)))
        return LGELU_ISA_SCALAR;
    /* AVX-512 F, DQ, BW and VL, and an operating system that saves the ZMM registers. */
    if (!LGELU__AVX512 || (os & 0xE6) != 0xE6 || (b & 0xC0030000u) != 0xC0030000u)
        return LGELU_ISA_AVX2;
    return LGELU_ISA_AVX512;
#elif LGELU__ARM
    return LGELU_ISA_NEON;
#elif LGELU__WASM
    return LGELU_ISA_SIMD128;
#else
    return LGELU_ISA_SCALAR;
#endif
}

/* The instruction set in force, or -1 before the first call. It is the only global variable. */
static int lgelu__isa_in_force = -1;

LGELU_DEF int lgelu_isa_limit(int most)
{
    int isa = lgelu__detect();
#if LGELU__X86
    if (isa > most)
        isa = most >= LGELU_ISA_AVX2 ? most : LGELU_ISA_SCALAR;
#else
    if (isa > most)
        isa = LGELU_ISA_SCALAR;
#endif
    LGELU__SET(&lgelu__isa_in_force, isa);
    return isa;
}

/* The first call sets the best instruction set, unless another thread has set a limit meanwhile. */
LGELU_DEF int lgelu_isa(void)
{
    const int isa = LGELU__GET(&lgelu__isa_in_force);
    if (isa >= 0)
        return isa;
    LGELU__REPLACE(&lgelu__isa_in_force, -1, lgelu__detect());
    return LGELU__GET(&lgelu__isa_in_force);
}

LGELU_DEF const char *lgelu_isa_name(int isa)
{
    static const char name[LGELU_ISA_COUNT][8] = {
        "scalar",
#if LGELU__WASM
        "simd128",
#else
        "neon",
#endif
        "avx2",
        "avx512"
    };
    return isa < 0 || isa >= LGELU_ISA_COUNT ? "?" : name[isa];
}

LGELU_DEF int lgelu_isa_from_name(const char *name)
{
    int isa;
    for (isa = 0; name && isa < LGELU_ISA_COUNT; isa++) {
        if (!strcmp(name, lgelu_isa_name(isa)))
            return isa;
    }
    return -1;
}

/* Each public kernel has a table of its functions, indexed by lgelu_isa_id. */
#if LGELU__ARM
#define LGELU__FUNCTIONS(name) lgelu__##name##_scalar, lgelu__##name##_neon
#elif LGELU__WASM
#define LGELU__FUNCTIONS(name) lgelu__##name##_scalar, lgelu__##name##_simd128
#elif LGELU__AVX512
#define LGELU__FUNCTIONS(name) \
    lgelu__##name##_scalar, NULL, lgelu__##name##_avx2, lgelu__##name##_avx512
#elif LGELU__X86
#define LGELU__FUNCTIONS(name) lgelu__##name##_scalar, NULL, lgelu__##name##_avx2
#else
#define LGELU__FUNCTIONS(name) lgelu__##name##_scalar
#endif
#define LGELU__TABLE(result, name, arguments)                 \
    static result(*const lgelu__##name##_of[LGELU_ISA_COUNT]) \
        arguments = { LGELU__FUNCTIONS(name) };
LGELU__KERNELS(LGELU__TABLE)
/* The function of a public kernel for the instruction set in force. */
#define LGELU__CALL(name) lgelu__##name##_of[lgelu_isa()]

#ifdef LGELU_TRAINER
/* The tables of all kernels, indexed by lgelu_isa_id. */
/* clang-format off */
static const lgelu__kernels *const lgelu__kernels_of[LGELU_ISA_COUNT] = {
    &lgelu__kernels_scalar,
#if LGELU__ARM
    &lgelu__kernels_neon,
#elif LGELU__WASM
    &lgelu__kernels_simd128,
#else
    NULL,
#endif
#if LGELU__X86
    &lgelu__kernels_avx2,
#endif
#if LGELU__AVX512
    &lgelu__kernels_avx512
#endif
};
/* clang-format on */

/* Returns the kernels in force. */
LGELU__APART const lgelu__kernels *lgelu__k(void) { return lgelu__kernels_of[lgelu_isa()]; }
#endif

/* The public functions of each family, in f32 and on each format of 16 bits: lgelu_silu_forward,
   ... Those of x·Φ(λx), the gate of this file, are lgelu_forward, ... */
/* clang-format off */
#define lgelu_phi_forward       lgelu_forward
#define lgelu_phi_backward      lgelu_backward
#define lgelu_phi_forward_bf16  lgelu_forward_bf16
#define lgelu_phi_backward_bf16 lgelu_backward_bf16
#define lgelu_phi_forward_f16   lgelu_forward_f16
#define lgelu_phi_backward_f16  lgelu_backward_f16
#define LGELU__ARGUMENT_lambda float lambda,
#define LGELU__ARGUMENT_none
#define LGELU__VALUE_lambda lambda
#define LGELU__VALUE_none 1
#define LGELU__RESULT_lambda double
#define LGELU__RESULT_none void
#define LGELU__RETURN_lambda(sum) return sum
#define LGELU__RETURN_none(sum) (void)(sum)
/* Without a parameter there is no other result: dx is required. */
#define LGELU__HAS_RESULT_lambda(dx) 1
#define LGELU__HAS_RESULT_none(dx) (dx)

/* The compiler reports a family whose functions are not declared in [1]. */
#define LGELU__DECLARED(family, function)                                                         \
    typedef char lgelu__##family##_##function##_is_declared                                       \
        [sizeof &lgelu_##family##_##function ? 1 : -1];
#define LGELU__FAMILY(X, family, exact, parameter)                                                \
    LGELU__DECLARED(family, forward)                                                              \
    LGELU__DECLARED(family, backward)                                                             \
    LGELU_DEF void lgelu_##family##_forward(float *y, const float *x,                             \
                                            LGELU__ARGUMENT_##parameter size_t n)                 \
    {                                                                                             \
        LGELU__GIVEN(n, y && x);                                                                  \
        LGELU__TO_NEAREST(LGELU__CALL(family##_forward)(y, x, LGELU__VALUE_##parameter, n));      \
    }                                                                                             \
    LGELU_DEF LGELU__RESULT_##parameter lgelu_##family##_backward(                                \
        float *dx, const float *dy, const float *x, LGELU__ARGUMENT_##parameter size_t n)         \
    {                                                                                             \
        double sum;                                                                               \
        LGELU__GIVEN(n, LGELU__HAS_RESULT_##parameter(dx) && dy && x);                            \
        LGELU__TO_NEAREST(                                                                        \
            sum = LGELU__CALL(family##_backward)(dx, dy, x, LGELU__VALUE_##parameter, n));        \
        LGELU__RETURN_##parameter(sum);                                                           \
    }                                                                                             \
    LGELU__FAMILY16(family, parameter, bf16, LGELU__BF16)                                         \
    LGELU__FAMILY16(family, parameter, f16, LGELU__F16)

#define LGELU__FAMILY16(family, parameter, name, format)                                          \
    LGELU__DECLARED(family, forward_##name)                                                       \
    LGELU__DECLARED(family, backward_##name)                                                      \
    LGELU_DEF void lgelu_##family##_forward_##name(uint16_t *y, const uint16_t *x,                \
                                                   LGELU__ARGUMENT_##parameter size_t n)          \
    {                                                                                             \
        LGELU__GIVEN(n, y && x);                                                                  \
        LGELU__TO_NEAREST(                                                                        \
            LGELU__CALL(family##_forward16)(y, x, LGELU__VALUE_##parameter, format, n));          \
    }                                                                                             \
    LGELU_DEF LGELU__RESULT_##parameter lgelu_##family##_backward_##name(                         \
        uint16_t *dx, const uint16_t *dy, const uint16_t *x, LGELU__ARGUMENT_##parameter size_t n)\
    {                                                                                             \
        double sum;                                                                               \
        LGELU__GIVEN(n, LGELU__HAS_RESULT_##parameter(dx) && dy && x);                            \
        LGELU__TO_NEAREST(sum = LGELU__CALL(family##_backward16)(                                 \
                              dx, dy, x, LGELU__VALUE_##parameter, format, n));                   \
        LGELU__RETURN_##parameter(sum);                                                           \
    }
/* clang-format on */
LGELU__FAMILIES(LGELU__FAMILY, unused)
#undef lgelu_phi_forward
#undef lgelu_phi_backward
#undef lgelu_phi_forward_bf16
#undef lgelu_phi_backward_bf16
#undef lgelu_phi_forward_f16
#undef lgelu_phi_backward_f16

LGELU_DEF void lgelu_forward_channels(float *y, const float *x, const float *lambda, size_t outer,
                                      size_t channels, size_t inner)
{
    LGELU__GIVEN(outer && channels && inner, y && x && lambda);
    if (!outer || !channels || !inner)
        return;
    LGELU__TO_NEAREST(LGELU__CALL(forward_channels)(y, x, lambda, outer, channels, inner));
}

LGELU_DEF void lgelu_backward_channels(float *dx, double *dlambda, const float *dy, const float *x,
                                       const float *lambda, size_t outer, size_t channels,
                                       size_t inner)
{
    LGELU__GIVEN(outer && channels && inner, dlambda && dy && x && lambda);
    if (!outer || !channels || !inner)
        return;
    LGELU__TO_NEAREST(
        LGELU__CALL(backward_channels)(dx, dlambda, dy, x, lambda, outer, channels, inner));
}

/* The conversions of one 16-bit format. */
/* clang-format off */
#define LGELU__HALVES(name, format)                                                                \
    LGELU_DEF void lgelu_from_##name(float *y, const uint16_t *x, size_t n)                        \
    {                                                                                              \
        LGELU__GIVEN(n, y && x);                                                                   \
        LGELU__TO_NEAREST(LGELU__CALL(from16)(y, x, format, n));                                   \
    }                                                                                              \
    LGELU_DEF void lgelu_to_##name(uint16_t *y, const float *x, size_t n)                          \
    {                                                                                              \
        LGELU__GIVEN(n, y && x);                                                                   \
        LGELU__TO_NEAREST(LGELU__CALL(to16)(y, x, format, n));                                     \
    }
/* clang-format on */
LGELU__HALVES(bf16, LGELU__BF16)
LGELU__HALVES(f16, LGELU__F16)

LGELU_DEF void lgelu_stochastic_forward(float *y, const float *x, float lambda, size_t n,
                                        uint64_t seed, uint64_t stream, uint64_t first)
{
    LGELU__GIVEN(n, y && x);
    LGELU__TO_NEAREST(LGELU__CALL(stochastic)(y, x, x, lambda, n, seed, stream, first));
}

LGELU_DEF double lgelu_stochastic_backward(float *dx, const float *dy, const float *x, float lambda,
                                           size_t n, uint64_t seed, uint64_t stream, uint64_t first,
                                           lgelu_estimate how)
{
    double sum;
    LGELU__GIVEN(n, dy && x);
    LGELU__TO_NEAREST(
        sum = LGELU__CALL(phi_backward)(how == LGELU_ESTIMATE_MEAN ? dx : NULL, dy, x, lambda, n));
    if (dx && how != LGELU_ESTIMATE_MEAN)
        LGELU__TO_NEAREST(LGELU__CALL(stochastic)(dx, dy, x, lambda, n, seed, stream, first));
    return sum;
}

/* ==== [5] HARDNESS ============================================================================ */
/* The maps between the free parameter s and λ, the targets, and the hardening plan. */

/* Returns the temperature of a map: 0.1 if the field is not a positive, finite number. */
static double lgelu__temperature(const lgelu_lambda_map *map)
{
    return map->temperature > 0 && map->temperature <= FLT_MAX ? (double)map->temperature : 0.1;
}

/* Returns λmax - 1 of a map: 255 if the field is not finite or not above 1. */
static double lgelu__span(const lgelu_lambda_map *map)
{
    return map->lambda_max > 1 && map->lambda_max <= FLT_MAX ? (double)map->lambda_max - 1 : 255;
}

/* Returns ln(1 + e^u). */
static double lgelu__softplus(double u)
{
    return u > 0 ? u + lgelu__log1p(lgelu__exp(-u)) : lgelu__log1p(lgelu__exp(u));
}

/* Returns 1/(1 + e^-u). For u < 0 it is computed from e^u, since 1 minus the other side would
   cancel. NaN gives NaN. */
static double lgelu__sigmoid(double u)
{
    const double e = lgelu__exp(-fabs(u));
    if (u < 0)
        return e / (1 + e);
    return u >= 0 ? 1 / (1 + e) : u;
}

LGELU_DEF float lgelu_lambda(const lgelu_lambda_map *map, float s)
{
    double u = (double)s / lgelu__temperature(map);
    switch (map->map) {
    case LGELU_MAP_SOFTPLUS: return (float)(1 + lgelu__softplus(u));
    case LGELU_MAP_SIGMOID: return (float)fma(lgelu__span(map), lgelu__sigmoid(u), 1.0);
    default: return s < 1 ? 1 : s;
    }
}

LGELU_DEF float lgelu_lambda_slope(const lgelu_lambda_map *map, float s)
{
    double t = lgelu__temperature(map), u = (double)s / t;
    switch (map->map) {
    case LGELU_MAP_SOFTPLUS: return (float)(lgelu__sigmoid(u) / t);
    case LGELU_MAP_SIGMOID:
        return (float)(lgelu__span(map) * lgelu__sigmoid(u) * lgelu__sigmoid(-u) / t);
    default:
        if (s >= 1)
            return 1;
        return s < 1 ? 0 : s;
    }
}

LGELU_DEF float lgelu_lambda_inverse(const lgelu_lambda_map *map, float lambda)
{
    double d = (double)lambda - 1, r;
    if (!(d >= 0))
        return LGELU__NAN;
    switch (map->map) {
    case LGELU_MAP_SOFTPLUS:
        /* ln(e^d - 1), by the formula in which nothing cancels. */
        r = d > 1 ? d + lgelu__log1p(-lgelu__exp(-d)) : lgelu__log(lgelu__expm1(d));
        return (float)(lgelu__temperature(map) * r);
    case LGELU_MAP_SIGMOID:
        if (d > lgelu__span(map))
            return LGELU__NAN;
        return (float)(lgelu__temperature(map)
                       * (lgelu__log(d) - lgelu__log(lgelu__span(map) - d)));
    default: return lambda;
    }
}

LGELU_DEF float lgelu_gap(float lambda) { return (float)(0.16997120747990366 / (double)lambda); }

LGELU_DEF float lgelu_gate_error(float lambda)
{
    return (float)(0.79788456080286536 / (double)lambda);
}

LGELU_DEF float lgelu_silu_gap(float beta) { return (float)(0.27846454276107380 / (double)beta); }

/* A gap or gate error of the form constant/λ is its own inverse. */
LGELU_DEF float lgelu_lambda_for_gap(float gap) { return lgelu_gap(gap); }

LGELU_DEF float lgelu_lambda_for_tolerance(float tau) { return lgelu_gate_error(tau); }

LGELU_DEF float lgelu_harden(float lambda0, const lgelu_hardening *plan, long step)
{
    double p, a = (double)lambda0, b = (double)plan->target;
    if (step >= plan->end)
        return plan->target;
    if (step <= plan->begin)
        return lambda0;
    p = ((double)step - (double)plan->begin) / ((double)plan->end - (double)plan->begin);
    switch (plan->shape) {
    case LGELU_SHAPE_GEOMETRIC: return (float)(a * lgelu__exp(p * (lgelu__log(b) - lgelu__log(a))));
    case LGELU_SHAPE_LINEAR_S: {
        /* At λ = 1, s is -inf. The path begins at the smallest λ above 1 that is useful. */
        float s0 = lgelu_lambda_inverse(&plan->h, lambda0 > 1.000001f ? lambda0 : 1.000001f);
        float s1 = lgelu_lambda_inverse(&plan->h, plan->target);
        return lgelu_lambda(&plan->h, (float)fma(p, (double)s1 - (double)s0, (double)s0));
    }
    case LGELU_SHAPE_COSINE: p = fma(-0.5, lgelu__cospi(p), 0.5); break;
    default: break;
    }
    return (float)fma(p, b - a, a);
}

/* ==== [6] OPTIMISER =========================================================================== */
LGELU_DEF lgelu_adamw lgelu_adamw_defaults(float lr)
{
    lgelu_adamw o;
    o.lr = lr;
    o.beta1 = 0.9f;
    o.beta2 = 0.999f;
    o.eps = 1e-8f;
    o.weight_decay = 0.01f;
    return o;
}

LGELU_DEF lgelu_adamw lgelu_adamw_balanced(float lr)
{
    lgelu_adamw o = lgelu_adamw_defaults(lr);
    o.beta1 = 0.944f;
    o.beta2 = 0.944f;
    return o;
}

/* Returns the update of AdamW at a step, for gradients that are to be multiplied by scale. ε is
   added outside the square root, and the weight decay does not enter the moments. The bias
   corrections 1 - β^step are computed in double, once per call. The decay is applied as lr·decay
   and not as a factor 1 - lr·decay, because this factor in float has an error of up to 3e-8, which
   is 3 % of a decay of 1e-6 at each step. */
static lgelu__rule lgelu__adamw_rule(const lgelu_adamw *o, float scale, long step)
{
    double b1 = (double)o->beta1, b2 = (double)o->beta2, p1 = 1, p2 = 1, f1 = b1, f2 = b2;
    lgelu__rule r;
    memset(&r, 0, sizeof r);
    /* p1 = β1^step and p2 = β2^step, by repeated squaring. */
    while (step > 0) {
        if (step & 1) {
            p1 *= f1;
            p2 *= f2;
        }
        step >>= 1;
        f1 *= f1;
        f2 *= f2;
    }
    r.scale = scale;
    r.fresh1 = (float)(1 - b1);
    r.beta2 = o->beta2;
    r.fresh2 = (float)(1 - b2);
    r.eps = o->eps;
    r.decay = o->lr * o->weight_decay;
    r.rate = (float)((double)o->lr / fma(p1, -1.0, 1.0));
    r.root = (float)(1 / sqrt(fma(p2, -1.0, 1.0)));
    return r;
}

/* Returns the update of SGD with momentum. */
static lgelu__rule lgelu__sgd_rule(float lr, float momentum, float weight_decay, float scale)
{
    lgelu__rule r;
    memset(&r, 0, sizeof r);
    r.scale = scale;
    r.momentum = momentum;
    r.rate = lr;
    r.decay = weight_decay;
    return r;
}

static void lgelu__nearest_adamw_step(float *w, float *m, float *v, const float *g,
                                      const lgelu_adamw *opt, long step, size_t n)
{
    lgelu__rule r = lgelu__adamw_rule(opt, 1, step);
    LGELU__GIVEN(n, w && m && v && g);
    /* Steps are counted from 1: at 0 the bias corrections would divide by 0. */
    LGELU_ASSERT(step > 0);
    LGELU__CALL(adamw)(w, m, v, g, &r, n);
}

LGELU_DEF void lgelu_adamw_step(float *w, float *m, float *v, const float *g,
                                const lgelu_adamw *opt, long step, size_t n)
{
    LGELU__TO_NEAREST(lgelu__nearest_adamw_step(w, m, v, g, opt, step, n));
}

static void lgelu__nearest_sgd_step(float *w, float *m, const float *g, float lr, float momentum,
                                    float weight_decay, size_t n)
{
    lgelu__rule r = lgelu__sgd_rule(lr, momentum, weight_decay, 1);
    LGELU__GIVEN(n, w && m && g);
    LGELU__CALL(sgd)(w, m, NULL, g, &r, n);
}

LGELU_DEF void lgelu_sgd_step(float *w, float *m, const float *g, float lr, float momentum,
                              float weight_decay, size_t n)
{
    LGELU__TO_NEAREST(lgelu__nearest_sgd_step(w, m, g, lr, momentum, weight_decay, n));
}

LGELU_DEF void lgelu_hardness_step(float *s, float *m, float *v, float *lambda,
                                   const double *dlambda, const lgelu_lambda_map *map,
                                   const lgelu_adamw *opt, float lambda_lr_scale, long step,
                                   size_t layers)
{
    lgelu_adamw o = *opt;
    size_t i;
    unsigned mode;
    LGELU__GIVEN(layers, s && m && v && lambda && dlambda);
    mode = lgelu__round_to_nearest();
    o.lr = opt->lr * lambda_lr_scale;
    /* A decay of s would pull λ towards 1 + ln 2 instead of 1. */
    o.weight_decay = 0;
    for (i = 0; i < layers; i++) {
        float g = (float)(dlambda[i] * (double)lgelu_lambda_slope(map, s[i]));
        /* An infinite s belongs to λ = 1 or λ = inf, which are final. */
        if (fabsf(s[i]) <= FLT_MAX)
            lgelu_adamw_step(s + i, m + i, v + i, &g, &o, step, 1);
        lambda[i] = lgelu_lambda(map, s[i]);
    }
    lgelu__restore_rounding(mode);
}

/* ==== [7] INSTRUMENTS ========================================================================= */
LGELU_DEF size_t lgelu_argmax(const float *a, size_t n)
{
    size_t i, best = 0;
    for (i = 1; i < n; i++) {
        /* a[best] may be a NaN at first. */
        if (a[i] > a[best] || (a[best] != a[best] && a[i] == a[i]))
            best = i;
    }
    return best;
}

LGELU_DEF double lgelu_accuracy(const float *logits, const int32_t *labels, size_t samples,
                                size_t classes)
{
    size_t i, right = 0;
    for (i = 0; classes && i < samples; i++) {
        const float *row = logits + i * classes;
        const size_t predicted = classes > 1 ? lgelu_argmax(row, classes) : row[0] > 0;
        right += labels[i] >= 0 && (size_t)labels[i] == predicted;
    }
    return samples ? (double)right / (double)samples : 0;
}

LGELU_DEF size_t lgelu_count_flips(const float *before, const float *after, size_t samples,
                                   size_t classes)
{
    size_t i, flips = 0;
    for (i = 0; i < samples; i++) {
        const float *a = before + i * classes, *b = after + i * classes;
        if (classes == 1)
            flips += (*a > 0) != (*b > 0);
        else
            flips += lgelu_argmax(a, classes) != lgelu_argmax(b, classes);
    }
    return flips;
}

LGELU_DEF double lgelu_max_abs_diff(const float *before, const float *after, size_t n)
{
    double d, most = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        d = fabs((double)after[i] - (double)before[i]);
        /* NaN is the result if there is one. */
        if (d != d)
            return d;
        if (d > most)
            most = d;
    }
    return most;
}

LGELU_DEF const char *lgelu_status_text(lgelu_status status)
{
    static const char *const text[LGELU_E_SUM + 1] = {
        "no error",
        "an argument is out of its range, or calls are in the wrong order",
        "shapes do not fit, or are too large",
        "the block is too small, or a size overflows",
        "an input has no data",
        "a label or token is out of range",
        "a λ is below 1, NaN or not on its map",
        "a loss or gradient is infinite or NaN",
        "a file is damaged, or could not be written",
        "the sum over machines failed"
    };
    return (unsigned)status < sizeof text / sizeof *text ? text[status] : "unknown status";
}

#ifdef LGELU_TRAINER
/* ==== [8] NETWORK ============================================================================= */
/* A network is a list of layers, each of which reads the values of earlier ones. Terms used here:
     task     one call of a function by a parallel loop, on any thread
     range    the rows of a layer's value, or the parameters of an update, that one task processes
     block    the part of a product's result C that is computed at a time
     worker   one of a few tasks that each have a workspace, and take blocks, ranges or rounds from
              a shared counter until none remains
     team     the threads that execute a sequence of short parallel loops together
     round    as many of Winograd's tiles as the cache holds
   A task, a range and a block depend on the problem only, never on the number of threads. */
#include <limits.h>
#include <stdarg.h>

/* The four buffers of a node. */
enum { LGELU__VALUE, LGELU__GRADIENT, LGELU__AUX, LGELU__SCRATCH };

/* The maximal number of elements of the window of a depthwise convolution or a max pooling. */
enum { LGELU__TAPS = 225 };

/* Floats of a buffer on the stack, for inputs that are computed as a gate reads them. */
enum { LGELU__GATE_BUFFER = 2048 };

/* Logits of more than LGELU__LARGE bytes that only a loss reads are computed LGELU__LOGITS_ROWS
   rows at a time. */
enum { LGELU__LARGE = 1 << 24, LGELU__LOGITS_ROWS = 512 };

typedef struct lgelu__job lgelu__job;

/* Processes `rows` rows from `row` on. */
typedef void lgelu__rows_task(const lgelu__job *p, size_t row, size_t rows);

/* The arguments of a layer's functions. The layer reads x·scale + shift, plus b·b_scale + b_shift
   if b is not NULL; a scale of NULL means 1, a shift of NULL means 0. x is the value of input 0
   or, if that input is fused with this layer, what the input itself reads. The flags `add` say that
   a gradient already holds a part of its sum, to which the layer adds its own part. Only
   lgelu__backward_layer sets them. */
struct lgelu__job {
    lgelu_net *net;
    lgelu_node *node;
    const lgelu_node *from; /* input 0, or the node itself if it has no inputs */
    size_t samples;
    size_t rows, channels; /* of the layer's value; of a loss: of its input */
    size_t rows_per_task;
    lgelu__rows_task *task;
    const float *x, *scale, *shift;
    const float *b, *b_scale, *b_shift;
    const float *dy; /* the gradient of the layer's value; NULL: this is a forward */
    float *y, *aux;
    float *w, *dw;
    float *bias, *dbias;        /* bias is NULL if the layer has none */
    float *dx[2];               /* of each input; NULL if it is not needed */
    int add, add_dw, add_dbias; /* to dx[0], dw, dbias */
    float per_row;              /* loss scale / rows: the factor of each row's loss in a gradient */
    double *sum;                /* the part of aux that holds doubles */
    const int32_t *label;       /* of a cross-entropy */
};

/* How a layer runs: its row of the table in [8d]. Each kind has a row here, in the order of
   LGELU_LAYERS; the compiler compares. The memory plan may choose a variant of it, from
   LGELU__VARIANTS below. The columns are:
     forward    writes the node's value, or adds to net.loss. If it is 0, `range` does that.
     backward   reads dy and writes the gradients or adds to them. If it is 0, `range` does that.
     range      computes a part of the value or of dx, as a task of a parallel loop over rows.
     aux        returns the bytes that the forward stores for the backward.
     work       returns the bytes of net.internal.scratch that it needs, in training or not.
     prepack    returns the floats of the prepacked copy of its matrix (net.prepack), 0 if it has
                none; writes that copy for the kernels isa, unless `to` is NULL.
     traits     of those below, in addition to those of its row in LGELU_LAYERS. */
/* clang-format off */
#define LGELU__KEEPS_INPUTS    0x00100u /* the backward reads the values of the inputs */
#define LGELU__IN_PLACE        0x00200u /* the value may overwrite that of input 0 */
#define LGELU__PASSES_GRADIENT 0x00400u /* the gradient of each input equals the layer's own */
#define LGELU__ADDS_TO_DX      0x00800u /* the backward can add to dx[0] */
#define LGELU__READS_AFFINE    0x01000u /* can compute a batch norm's x·scale + shift as it reads */
#define LGELU__FUSED           0x02000u /* its value is not written: its only reader computes it */
#define LGELU__BY_SAMPLE       0x04000u /* a range is one sample, */
#define LGELU__BY_64_ROWS      0x08000u /* or 64 rows, */
#define LGELU__BY_FOUR         0x10000u /* or a multiple of four rows */
#define LGELU__LOOKUP          0x20000u /* its parameters are rows of its value */

/* X(KIND, forward, backward, range, aux, work, prepack, traits) */
#define LGELU__FUNCTIONS_OF_LAYERS(X)                                                              \
    X(INPUT,          0, 0, 0, 0, 0, 0, 0)                                                         \
    X(TOKENS,         integers_forward, 0, 0, 0, 0, 0, 0)                                          \
    X(LABELS,         integers_forward, 0, 0, 0, 0, 0, 0)                                          \
    X(LINEAR,         linear_forward, linear_backward, 0, 0, linear_work, matrix_prepack,          \
                      LGELU__KEEPS_INPUTS)                                                         \
    X(GATE,           0, gate_backward, gate_range, gate_aux, 0, 0,                                \
                      LGELU__KEEPS_INPUTS | LGELU__IN_PLACE | LGELU__READS_AFFINE)                 \
    X(SIGMOID,        0, 0, sigmoid_range, 0, 0, 0, LGELU__KEEPS_INPUTS | LGELU__IN_PLACE)         \
    X(ADD,            0, pass_backward, affine_range, 0, 0, 0,                                     \
                      LGELU__IN_PLACE | LGELU__PASSES_GRADIENT | LGELU__READS_AFFINE)              \
    X(MUL,            0, mul_backward, mul_range, 0, 0, 0, LGELU__KEEPS_INPUTS | LGELU__IN_PLACE)  \
    X(CONV,           conv_forward, conv_backward, 0, 0, conv_work, matrix_prepack,                \
                      LGELU__KEEPS_INPUTS | LGELU__ADDS_TO_DX)                                     \
    X(BATCH_NORM,     batch_norm_forward, batch_norm_backward, affine_range, batch_norm_aux, 0, 0, \
                      LGELU__KEEPS_INPUTS | LGELU__IN_PLACE)                                       \
    X(GROUP_NORM,     0, group_norm_backward, group_norm_range, group_norm_aux, 0, 0,              \
                      LGELU__KEEPS_INPUTS | LGELU__IN_PLACE | LGELU__BY_SAMPLE)                    \
    X(MAX_POOL,       0, 0, pool_range, pool_aux, 0, 0, LGELU__BY_SAMPLE)                          \
    X(AVERAGE_POOL,   0, 0, pool_range, 0, 0, 0, LGELU__BY_SAMPLE)                                 \
    X(SCALE,          0, scale_backward, scale_range, 0, 0, 0,                                     \
                      LGELU__KEEPS_INPUTS | LGELU__IN_PLACE | LGELU__BY_SAMPLE)                    \
    X(VIEW,           0, pass_backward, 0, 0, 0, 0, LGELU__PASSES_GRADIENT)                        \
    X(CONCAT,         0, concat_backward, concat_range, 0, 0, 0, 0)                                \
    X(EMBEDDING,      embedding_forward, embedding_backward, 0, 0, 0, 0,                           \
                      LGELU__KEEPS_INPUTS | LGELU__LOOKUP)                                         \
    X(POSITION,       0, position_backward, position_range, 0, 0, 0,                               \
                      LGELU__IN_PLACE | LGELU__BY_SAMPLE | LGELU__LOOKUP)                          \
    X(ROTARY,         rotary_forward, 0, rotary_range, rotary_aux, 0, 0, LGELU__IN_PLACE)          \
    X(LAYER_NORM,     0, row_norm_backward, row_norm_range, row_norm_aux, 0, 0,                    \
                      LGELU__KEEPS_INPUTS | LGELU__ADDS_TO_DX | LGELU__BY_64_ROWS)                 \
    X(RMS_NORM,       0, row_norm_backward, row_norm_range, row_norm_aux, 0, 0,                    \
                      LGELU__KEEPS_INPUTS | LGELU__ADDS_TO_DX | LGELU__BY_64_ROWS)                 \
    X(ATTENTION,      attention_forward, attention_backward, 0, attention_aux, attention_work, 0,  \
                      LGELU__KEEPS_INPUTS)                                                         \
    X(DROPOUT,        0, 0, dropout_range, 0, 0, 0, LGELU__IN_PLACE | LGELU__BY_FOUR)              \
    X(PATCHES,        0, 0, patches_range, 0, 0, 0, LGELU__BY_SAMPLE)                              \
    X(TRANSPOSE,      0, 0, transpose_range, 0, 0, 0, LGELU__BY_SAMPLE)                            \
    X(CLASS_TOKEN,    0, class_token_backward, class_token_range, 0, 0, 0,                         \
                      LGELU__BY_SAMPLE | LGELU__LOOKUP)                                            \
    X(MEAN_TOKENS,    0, 0, mean_tokens_range, 0, 0, 0, LGELU__BY_SAMPLE)                          \
    X(CROSS_ENTROPY,  cross_entropy_forward, cross_entropy_backward, 0, cross_entropy_aux, 0, 0,   \
                      LGELU__KEEPS_INPUTS)                                                         \
    X(SQUARED_ERROR,  squared_error_forward, squared_error_backward, 0, 0, 0, 0,                   \
                      LGELU__KEEPS_INPUTS)                                                         \
    X(CUSTOM_LOSS,    0, custom_loss_backward, 0, 0, 0, 0, 0)

/* The variants: X(VARIANT, KIND, applies, forward, backward, range, aux, work, prepack, traits). A
   node of the kind runs as the first variant whose function `applies` says so. Traits are all that
   the variant has. */
#define LGELU__VARIANTS(X)                                                                         \
    /* Values that are never written, because the only reader computes them itself. */             \
    X(BATCH_NORM_FUSED, BATCH_NORM,    batch_norm_fuses, batch_norm_forward, batch_norm_backward,  \
                                       0, batch_norm_aux, 0, 0,                                    \
                                       LGELU__KEEPS_INPUTS | LGELU__FUSED | LGELU_TRAIT_NORM)      \
    X(ADD_FUSED,        ADD,           add_fuses, 0, pass_backward, 0, 0, 0, 0,                    \
                                       LGELU__PASSES_GRADIENT | LGELU__FUSED)                      \
    X(LINEAR_FUSED,     LINEAR,        linear_fuses, 0, linear_fused_backward, 0,                  \
                                       linear_fused_aux, 0, 0,                                     \
                                       LGELU__KEEPS_INPUTS | LGELU__FUSED)                         \
    X(LINEAR_LOSS,      CROSS_ENTROPY, reads_fused_linear, linear_loss_forward,                    \
                                       linear_loss_backward, 0, cross_entropy_aux,                 \
                                       linear_loss_work, 0,                                        \
                                       LGELU__KEEPS_INPUTS | LGELU_TRAIT_LOSS)                     \
    /* Special algorithms for convolutions. */                                                     \
    X(DEPTHWISE,        CONV,          conv_is_depthwise, depthwise_forward, depthwise_backward,   \
                                       0, 0, depthwise_work, 0,                                    \
                                       LGELU__KEEPS_INPUTS | LGELU__ADDS_TO_DX)                    \
    X(WINOGRAD,         CONV,          conv_is_winograd, winograd_forward, winograd_backward, 0,   \
                                       0, winograd_work, winograd_prepack,                         \
                                       LGELU__KEEPS_INPUTS | LGELU__ADDS_TO_DX)
/* clang-format on */

enum {
    LGELU__LAST_KIND = LGELU_OP_COUNT - 1,
#define LGELU__ENUMERATOR(variant, kind, applies, forward, backward, range, aux, work, prepack, \
                          traits)                                                               \
    LGELU__##variant,
    LGELU__VARIANTS(LGELU__ENUMERATOR)
#undef LGELU__ENUMERATOR
        LGELU__ROWS
};

/* A row of the table. */
typedef struct {
    lgelu_status (*forward)(lgelu__job *p);
    void (*backward)(lgelu__job *p);
    lgelu__rows_task *range;
    size_t (*aux)(const lgelu__job *p);
    size_t (*work)(const lgelu__job *p, int train);
    size_t (*prepack)(const lgelu_net *net, const lgelu_node *node, const lgelu__kernels *isa,
                      float *to);
    unsigned traits;
} lgelu__layer;

/* How a node is used, which decides whether it runs as a variant. */
typedef struct {
    const lgelu_net *net;
    const lgelu_node *node;
    size_t bytes; /* of its value */
    int reader;   /* the only node that reads the value; -1: several nodes do, or the caller */
    int train;    /* the network is built for training */
} lgelu__use;

static const lgelu__layer *lgelu__layer_of(const lgelu_node *node);
static int lgelu__row_for(const lgelu__use *p);
static float lgelu__fixed_lambda(lgelu_gate_kind kind);

LGELU__APART int lgelu__is_a(const lgelu_node *node, unsigned traits)
{
    return (lgelu__layer_of(node)->traits & traits) != 0;
}

/* ---- [8a] machine: texts, errors, sizes, threads, products ---- */
static char *lgelu__format(char *p, const char *end, const char *format, ...);

/* Writes the decimal digits of u, after a minus sign if negative is 1, in front of `end`, which
   receives the closing 0. Returns where they begin. */
static const char *lgelu__digits(char *end, size_t u, int negative)
{
    *end = 0;
    do {
        *--end = (char)('0' + u % 10);
        u /= 10;
    } while (u);
    if (negative)
        *--end = '-';
    return end;
}

/* Writes n blanks, but none at `end` or later. Returns where it stopped. */
static char *lgelu__blanks(char *p, const char *end, size_t n)
{
    for (; n && p < end; n--)
        *p++ = ' ';
    return p;
}

/* Writes a text, with blanks up to `width` after it or, if to_the_right is 1, before it. */
static char *lgelu__padded(char *p, const char *end, const char *text, size_t width,
                           int to_the_right)
{
    const size_t length = strlen(text), blanks = length < width ? width - length : 0;
    if (to_the_right)
        p = lgelu__blanks(p, end, blanks);
    while (*text && p < end)
        *p++ = *text++;
    if (!to_the_right)
        p = lgelu__blanks(p, end, blanks);
    return p;
}

/* Formats into p … end: %s is a text, %n a layer (its kind and name), %z a size_t and %d a long. A
   width may follow the %; texts are aligned to the left, integers to the right. Whatever does not
   fit is cut off; *end is the last place for the closing 0. Returns where that 0 is. */
static char *lgelu__format_list(char *p, const char *end, const char *format, va_list list)
{
    for (; *format && p < end; format++) {
        char number[24], *last = number + sizeof number - 1;
        size_t width = 0;
        if (*format != '%') {
            *p++ = *format;
            continue;
        }
        format++;
        while (*format >= '0' && *format <= '9') {
            width = width * 10 + (size_t)(*format - '0');
            format++;
        }
        if (*format == 's') {
            p = lgelu__padded(p, end, va_arg(list, const char *), width, 0);
        } else if (*format == 'n') {
            const lgelu_node *node = va_arg(list, const lgelu_node *);
            p = lgelu__format(p, end, "%s '%s'", lgelu_op_name((int)node->op), node->name);
        } else if (*format == 'd') {
            const long n = va_arg(list, long);
            const size_t u = n < 0 ? 0 - (size_t)n : (size_t)n;
            p = lgelu__padded(p, end, lgelu__digits(last, u, n < 0), width, 1);
        } else {
            const size_t u = va_arg(list, size_t);
            p = lgelu__padded(p, end, lgelu__digits(last, u, 0), width, 1);
        }
    }
    *p = 0;
    return p;
}

static char *lgelu__format(char *p, const char *end, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    p = lgelu__format_list(p, end, format, list);
    va_end(list);
    return p;
}

/* Returns the length of the UTF-8 sequence that begins at p, where `bytes` bytes remain; 0 if it is
   malformed or cut off. The rows are those of table 3-7 of Unicode 15: the range of the first byte,
   that of the second one, and the length. Any further bytes are 80 to BF. */
static size_t lgelu__utf8_length(const unsigned char *p, size_t bytes)
{
    static const unsigned char row[9][5] = {
        { 0x00, 0x7F, 0x00, 0xFF, 1 }, { 0xC2, 0xDF, 0x80, 0xBF, 2 }, { 0xE0, 0xE0, 0xA0, 0xBF, 3 },
        { 0xE1, 0xEC, 0x80, 0xBF, 3 }, { 0xED, 0xED, 0x80, 0x9F, 3 }, { 0xEE, 0xEF, 0x80, 0xBF, 3 },
        { 0xF0, 0xF0, 0x90, 0xBF, 4 }, { 0xF1, 0xF3, 0x80, 0xBF, 4 }, { 0xF4, 0xF4, 0x80, 0x8F, 4 }
    };
    size_t i = 0, k, length;
    while (i < 9 && (*p < row[i][0] || *p > row[i][1]))
        i++;
    if (i == 9)
        return 0;
    length = row[i][4];
    if (length > bytes)
        return 0;
    if (length > 1 && (p[1] < row[i][2] || p[1] > row[i][3]))
        return 0;
    for (k = 2; k < length; k++) {
        if (p[k] < 0x80 || p[k] > 0xBF)
            return 0;
    }
    return length;
}

/* Returns how many bytes at the beginning of a text are well-formed UTF-8. */
static size_t lgelu__utf8(const void *text, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t i = 0;
    while (i < bytes) {
        const size_t length = lgelu__utf8_length(p + i, bytes - i);
        if (!length)
            return i;
        i += length;
    }
    return bytes;
}

/* Returns the index of the first of n values for which |factor·x| < bound is false, or n. */
static size_t lgelu__first_not_below(const float *x, size_t n, double factor, double bound)
{
    size_t i = 0;
    while (i < n && factor * fabs((double)x[i]) < bound)
        i++;
    return i;
}

/* Returns the index of the first of n values that is infinite or NaN, or n. */
static size_t lgelu__first_not_finite(const float *x, size_t n)
{
    return lgelu__first_not_below(x, n, 1, HUGE_VAL);
}

/* Names are stored in JSON without escapes. */
#define LGELU__PLAIN "must be UTF-8 without control characters, quotation marks and backslashes"
static int lgelu__is_plain_text(const char *text)
{
    const char *c = text;
    while ((unsigned char)*c >= 32 && *c != '"' && *c != '\\')
        c++;
    return !*c && lgelu__utf8(text, strlen(text)) == strlen(text);
}

/* Begins a call: returns the network's status, which keeps the first error, and clears the message
   of an earlier call that was refused. */
LGELU__APART lgelu_status lgelu__begin_call(lgelu_net *net)
{
    if (!net->status)
        net->message[0] = 0;
    return net->status;
}

/* Sets the network's status and message and returns the status. Only the first error is kept, so
   that a builder may fail and the following calls do nothing. */
static lgelu_status lgelu__fail(lgelu_net *net, lgelu_status status, const char *format, ...)
{
    va_list list;
    if (net->status)
        return net->status;
    va_start(list, format);
    lgelu__format_list(net->message, net->message + sizeof net->message - 1, format, list);
    va_end(list);
    net->status = status;
    return status;
}

/* Sets the message, but leaves the network's status LGELU_OK: for calls that changed nothing. */
#define LGELU__REFUSE(net, status_, ...) \
    ((void)lgelu__fail(net, status_, __VA_ARGS__), (net)->status = LGELU_OK, status_)

/* Products and sums of sizes, which are the largest size_t instead of overflowing. */
LGELU__APART size_t lgelu__times(size_t a, size_t b)
{
    return a && b > (size_t)-1 / a ? (size_t)-1 : a * b;
}

LGELU__APART size_t lgelu__plus(size_t a, size_t b)
{
    return b > (size_t)-1 - a ? (size_t)-1 : a + b;
}

static size_t lgelu__max(size_t a, size_t b) { return a > b ? a : b; }

/* Returns the elements of one sample of a node's value. */
static size_t lgelu__elements(const lgelu_node *node)
{
    return node->shape[0] * node->shape[1] * node->shape[2];
}

/* Returns the rows of a node's value in the current forward. */
static size_t lgelu__rows(const lgelu_net *net, const lgelu_node *node)
{
    return net->internal.tokens ? net->internal.tokens
                                : net->samples * node->shape[0] * node->shape[1];
}

/* Returns the rows of a node's matrix: the words of a table, else the outputs. */
static size_t lgelu__matrix_rows(const lgelu_node *node)
{
    return lgelu__is_a(node, LGELU__LOOKUP) ? node->weight_count / node->shape[2] : node->shape[2];
}

/* Returns a buffer of a node. A value may be stored in that of an earlier node, and a gradient in
   that of a later one. lgelu_net_generate computes values from token net.internal.from on. */
LGELU__APART float *lgelu__buffer_at(const lgelu_net *net, const lgelu_node *node, int which)
{
    const lgelu_node *owner = node;
    size_t skip = 0;
    if (which == LGELU__VALUE) {
        owner = net->nodes + node->internal.value_node;
        skip = net->internal.from * (node->op == LGELU_OP_TOKENS ? 1 : node->shape[2]);
    }
    if (which == LGELU__GRADIENT)
        owner = net->nodes + node->internal.gradient_node;
    /* Without any buffer there is no arena. */
    if (!net->internal.arena)
        return NULL;
    return (float *)(void *)(net->internal.arena + owner->internal.buffer[which].at) + skip;
}

/* Returns the value of an input of a node: the caller's array for an input of the network, and for
   labels that are not bound NULL. */
static const float *lgelu__input_value(const lgelu_net *net, const lgelu_node *node, int slot)
{
    const lgelu_node *x = net->nodes + net->nodes[node->input[slot]].internal.value_node;
    if (x->op == LGELU_OP_INPUT || (lgelu__is_a(x, LGELU_TRAIT_SOURCE) && !x->internal.bound))
        return (const float *)x->internal.bound;
    return lgelu__buffer_at(net, x, LGELU__VALUE);
}

/* Returns the scales, then the shifts, of a batch norm that is fused with its reader, the given
   node; NULL if the input is another layer. */
static const float *lgelu__input_scale(const lgelu_net *net, const lgelu_node *node, int slot)
{
    const lgelu_node *x = net->nodes + node->input[slot];
    return x->internal.row == LGELU__BATCH_NORM_FUSED ? lgelu__buffer_at(net, x, LGELU__AUX) : NULL;
}

/* ---- threads ---- */
/* Parallel loops. Nothing outside of this section depends on how threads are run. */

static void lgelu__run_serial(lgelu_task *task, void *job, size_t count, void *user)
{
    size_t i;
    (void)user;
    for (i = 0; i < count; i++)
        task(i, job);
}

/* A task that may run on another thread, whose rounding mode may be another one. */
typedef struct {
    lgelu_task *task;
    void *job;
} lgelu__rounded_task;

static void lgelu__run_rounded(size_t index, void *job)
{
    const lgelu__rounded_task *p = (const lgelu__rounded_task *)job;
    LGELU__TO_NEAREST(p->task(index, p->job));
}

/* Runs task(0, job) … task(count - 1, job), in any order; on this thread alone if threads is
   NULL. */
LGELU__APART void lgelu__parallel(const lgelu_threads *threads, lgelu_task *task, void *job,
                                  size_t count)
{
    lgelu__rounded_task rounded;
    rounded.task = task;
    rounded.job = job;
    if (!threads || !LGELU__ATOMIC || count < 2) {
        LGELU__TO_NEAREST(lgelu__run_serial(task, job, count, NULL));
        return;
    }
    if (threads->run) {
        threads->run(lgelu__run_rounded, &rounded, count, threads->user);
        return;
    }
#ifdef _OPENMP
    {
        const long n = (long)count;
        long k;
#pragma omp parallel for schedule(dynamic)
        for (k = 0; k < n; k++)
            lgelu__run_rounded((size_t)k, &rounded);
    }
#else
    lgelu__run_serial(lgelu__run_rounded, &rounded, count, NULL);
#endif
}

#if defined(_OPENMP) && LGELU__ATOMIC
#define LGELU__OPENMP 1
#else
#define LGELU__OPENMP 0
#endif

/* A team. To wake threads for each loop would take longer than most loops, so they are woken once
   for many. lgelu__with_team starts LGELU__TEAM tasks. The first that begins is the leader: it
   calls `work`, whose parallel loops run through lgelu__team_run. The others help in each loop, and
   wait between the loops.
   `state` is the number of helpers that are in a loop, plus LGELU__OPEN while they may enter it.
   The leader changes the loop only while `state` is 0.
   A task of a loop may start a loop itself: a custom gate by net->threads, or a caller's task by
   the team of lgelu_with_team. The team is `busy` then, and the inner loop runs on the thread that
   starts it: the leader would wait for itself.
   If the caller's threads run the tasks one after the other, the first does all of the work, and
   the others find it finished. */
enum { LGELU__OPEN = 65536, LGELU__TEAM = 64 };

/* The smallest number of fmas that are worth several threads: those of a product within a team, of
   a product that needs a new team, and of a run of the network. */
static const double lgelu__fma_in_team = 1e5, lgelu__fma_for_team = 2e6, lgelu__fma_for_run = 3e5;

typedef void lgelu__team_function(const lgelu_threads *team, void *user);
typedef struct {
    lgelu__team_function *work;
    void *user; /* of work */
    /* the current loop */
    lgelu_task *task;
    void *job;
    size_t count;
    int next; /* the index of the next task */
    int state;
    int busy;     /* 1: a loop is open; the leader sets it */
    int started;  /* members that have begun */
    int finished; /* 1: work has returned */
} lgelu__team;

/* Waits for a moment. Most calls spin, every 256th yields the processor. */
static void lgelu__wait(unsigned *turns)
{
    ++*turns;
    if (*turns % 256)
        LGELU__REST();
    else
        LGELU__YIELD();
}

/* Takes tasks of the current loop until none remains. */
static void lgelu__team_work(lgelu__team *team)
{
    size_t i = (size_t)LGELU__ADD(&team->next, 1);
    while (i < team->count) {
        team->task(i, team->job);
        i = (size_t)LGELU__ADD(&team->next, 1);
    }
}

/* Runs a parallel loop on the team, if the leader calls it between two loops; a task of an open
   loop runs it alone. */
static void lgelu__team_run(lgelu_task *task, void *job, size_t count, void *user)
{
    lgelu__team *team = (lgelu__team *)user;
    unsigned turns = 0;
    if (LGELU__GET(&team->busy)) {
        lgelu__run_serial(task, job, count, NULL);
        return;
    }
    LGELU__SET(&team->busy, 1);
    team->task = task;
    team->job = job;
    team->count = count;
    team->next = 0;
    LGELU__ADD(&team->state, LGELU__OPEN);
    lgelu__team_work(team);
    LGELU__ADD(&team->state, -LGELU__OPEN);
    while (LGELU__ADD(&team->state, 0))
        lgelu__wait(&turns);
    LGELU__SET(&team->busy, 0);
}

/* Helps in each loop until the leader has finished. */
static void lgelu__team_help(lgelu__team *team)
{
    unsigned turns = 0;
    while (!LGELU__GET(&team->finished)) {
        if (LGELU__GET(&team->state) < LGELU__OPEN) {
            lgelu__wait(&turns);
            continue;
        }
        /* The leader may have ended the loop since: then only leave it again. */
        if (LGELU__ADD(&team->state, 1) >= LGELU__OPEN)
            lgelu__team_work(team);
        LGELU__ADD(&team->state, -1);
        turns = 0;
    }
}

/* One member of the team, as a task. */
static void lgelu__team_join(size_t index, void *user)
{
    lgelu__team *team = (lgelu__team *)user;
    (void)index;
    if (!LGELU__ADD(&team->started, 1)) {
        const lgelu_threads threads = { lgelu__team_run, team };
        team->work(&threads, team->user);
        LGELU__SET(&team->finished, 1);
    } else {
        lgelu__team_help(team);
    }
}

/* Calls work(team, user) once; its parallel loops may use the team's threads. */
static void lgelu__with_team(const lgelu_threads *threads, lgelu__team_function *work, void *user)
{
    lgelu__team team;
    memset(&team, 0, sizeof team);
    team.work = work;
    team.user = user;
#if LGELU__OPENMP
    /* Each thread of OpenMP joins once. */
    if (!threads->run) {
#pragma omp parallel
        LGELU__TO_NEAREST(lgelu__team_join(0, &team));
        return;
    }
#endif
    lgelu__parallel(threads, lgelu__team_join, &team, LGELU__TEAM);
}

LGELU_DEF void lgelu_with_team(const lgelu_threads *threads,
                               void (*work)(const lgelu_threads *team, void *user), void *user)
{
    const lgelu_threads alone = { lgelu__run_serial, NULL };
    if (threads)
        lgelu__with_team(threads, work, user);
    else
        LGELU__TO_NEAREST(work(&alone, user));
}

/* A run whose team belongs to OpenMP ends when each of its threads has joined and left. If other
   programs occupy the processors, that may take a thousand times as long as the work. Therefore the
   time of a run is compared with that of one thread, and after a loss one thread does ten times as
   much work as could have been done meanwhile. So at most a tenth of the time is lost, except for
   what a single run loses beyond lgelu__most_debt. No result depends on it. */

/* In fmas: the work, about half a second, that one thread does at most before the team is tried
   again (a larger run is tried again after ten); and the runs, of a tenth of a second, from which
   on the team always works, since to measure one thread would take too long. */
static const double lgelu__most_debt = 5e9, lgelu__fma_for_trust = 1e9;

/* The places of lgelu_net.internal.pace. */
enum { LGELU__PACE_FORWARD, LGELU__PACE_BACKWARD, LGELU__PACE_UPDATE, LGELU__PACE_NORM };

/* Returns whether the next run of this work is one for the team. The first two, and one of every
   4096, measure the time of one thread. */
static int lgelu__team_pays(const lgelu_pace *pace, double work)
{
    if (work >= lgelu__fma_for_trust)
        return 1;
    return pace->runs >= 2 && pace->runs % 4096 && pace->debt < work;
}

/* Takes into account how long a run took, by the team or by one thread. */
static void lgelu__team_paid(lgelu_pace *pace, double work, double ticks, int team)
{
    const double each = ticks / work;
    const double most = lgelu__most_debt > 10 * work ? lgelu__most_debt : 10 * work;
    pace->runs++;
    /* Without a counter, or after one that was set, nothing is known. */
    if (!(ticks > 0) || work >= lgelu__fma_for_trust)
        return;
    if (team) {
        /* Where one thread has not been measured, it is first. */
        if (!(pace->alone > 0))
            pace->debt = most;
        else if (each > pace->alone)
            pace->debt += 10 * work * (each / pace->alone - 1);
        if (pace->debt > most)
            pace->debt = most;
        return;
    }
    pace->debt = pace->debt > work ? pace->debt - work : 0;
    /* Faster runs count at once, slower ones, which may have been interrupted, only gradually. */
    if (each < pace->alone || !(pace->alone > 0))
        pace->alone = each;
    else
        pace->alone += (each < 2 * pace->alone ? each - pace->alone : pace->alone) / 16;
}

/* ---- guards of memory regions (LGELU_CHECK) ---- */
/* A guard is LGELU__GUARD bytes behind a region, filled with a pattern that must not change while
   the region is in use. LGELU__GUARD is 0 without LGELU_CHECK. */
enum { LGELU__PATTERN = 0xC7 };

LGELU__APART void lgelu__guard_set(void *guard)
{
    size_t bytes = LGELU__GUARD;
    if (bytes) {
        memset(guard, LGELU__PATTERN, bytes);
        LGELU__POISON(guard);
    }
}

/* Returns whether a guard was written to. */
LGELU__APART int lgelu__guard_broken(void *guard)
{
    const unsigned char *byte = (const unsigned char *)guard;
    size_t n = LGELU__GUARD;
    size_t i;
    LGELU__UNPOISON(guard);
    for (i = 0; i < n; i++) {
        if (byte[i] != LGELU__PATTERN)
            return 1;
    }
    return 0;
}

/* ---- matrix products ---- */
/* Each task computes one block of C; METHOD in [K] explains how. This section partitions C into
   blocks and chooses which operands are copied into the workspace. */

/* Returns the size of equal parts of n, at most `most` each, and at least 1; a multiple of `unit`
   if there are several parts. */
static size_t lgelu__even(size_t n, size_t most, size_t unit)
{
    const size_t parts = n > most ? (n - 1) / most + 1 : 1;
    return parts == 1 ? n + !n : ((n - 1) / parts + unit) / unit * unit;
}

/* The workspace of a product has to suffice for every smaller product as well: a network that was
   made for 512 samples also runs with 384. Yet the blocks of a smaller product may be larger.
   Blocks are equal parts of m, n and k, so a k of 512 may have a depth of 256, and a k of 384 one
   of 384; a smaller depth means more columns; and fewer rows may be partitioned into more tasks. So
   the workspace does not follow from the product's own blocks, but from a bound that never
   decreases in m, n and k: lgelu__max_workers(m, n, k) · lgelu__worker_bytes(n, k).

   Why the bound holds. Take any m' <= m, n' <= n and k' <= k.
   1. lgelu__blocks never returns more than lgelu__max_workers(m', n', k'), whatever the number of
      tasks or threads; and a worker's index, never a thread's, selects its workspace.
   2. lgelu__max_workers never decreases: the number of column blocks increases with n and with the
      depth, for which it takes the largest possible one, min(k, LGELU__K); the other limit is a
      step function of m·n·k.
   3. A worker needs (columns + 32)·(depth + 1) floats for its copy of B (all panels, of at most 32
      columns, are padded, and each has one spare row), and 16·(depth + 32) for its copy of A, or
      LGELU__GROUP times as many. lgelu__even returns at most n' and at most its limit, so that
      columns <= min(n, LGELU__N), depth <= min(k, LGELU__K or LGELU__ACROSS), and columns·depth <=
      LGELU__BLOCK. Halving a block's columns only lowers the need, and so do the smaller blocks of
      products with a few rows.
   4. lgelu__worker_bytes expands (columns + 32)·(depth + 1) and inserts these three limits, which
      never decrease. */
static size_t lgelu__max_workers(size_t m, size_t n, size_t k)
{
    const size_t depth = lgelu__min(k + !k, LGELU__K);
    const size_t cols = lgelu__min(LGELU__N, LGELU__BLOCK / depth / 32 * 32);
    const size_t size = lgelu__times(lgelu__times(m, n), k);
    const size_t column_blocks = n ? (n - 1) / cols + 1 : 1;
    size_t most = LGELU__WORKERS;
    if (size < (size_t)1 << 22)
        most = column_blocks;
    else if (size < (size_t)1 << 25)
        most = lgelu__max(column_blocks, 8);
    return lgelu__min(most, LGELU__WORKERS);
}

/* Returns the floats of A that a worker copies at a time. */
static size_t lgelu__a_space(size_t depth, int across)
{
    return (across ? (size_t)LGELU__GROUP : 1) * 16 * (depth + 32);
}

/* Returns the maximal bytes of one worker's workspace, see above. */
static size_t lgelu__worker_bytes(size_t n, size_t k)
{
    const size_t cols = lgelu__min(n + !n, LGELU__N);
    size_t most = 0;
    int across;
    for (across = 0; across < 2; across++) {
        const size_t depth = lgelu__min(k + !k, across ? LGELU__ACROSS : LGELU__K);
        const size_t b = lgelu__min(cols * depth, LGELU__BLOCK) + cols + 32 * (depth + 1);
        most = lgelu__max(most, b + lgelu__a_space(depth, across));
    }
    return most * sizeof(float) + LGELU__GUARD;
}

/* Returns the number of blocks of C. */
static size_t lgelu__block_count(const lgelu__block *p, size_t m, size_t n)
{
    const size_t down = m ? (m - 1) / p->rows + 1 : 0, right = n ? (n - 1) / p->cols + 1 : 0;
    return lgelu__times(down, right);
}

/* Returns whether blocks should be halved to occupy more threads: up to 8 blocks of at least 2^21
   fmas, or LGELU__WORKERS of at least 2^26. */
static int lgelu__halve_blocks(const lgelu__block *p, size_t blocks, size_t k)
{
    const double fma = (double)p->rows * (double)p->cols * (double)k;
    if (blocks >= LGELU__WORKERS || (p->rows <= 1 && p->cols <= 32))
        return 0;
    return fma >= (blocks < 8 ? 4194304 : 134217728);
}

/* Sets the size of the blocks: what the cache holds, or smaller for several threads. Returns the
   number of workers. */
static size_t lgelu__blocks(lgelu__block *p, size_t m, size_t n, size_t k, int alone)
{
    size_t blocks;
    p->rows = m;
    p->depth = lgelu__even(k, p->across ? LGELU__ACROSS : LGELU__K, 16);
    p->cols = lgelu__even(n, lgelu__min(LGELU__N, LGELU__BLOCK / p->depth / 32 * 32), 32);
    blocks = lgelu__block_count(p, m, n);
    while (!alone && lgelu__halve_blocks(p, blocks, k)) {
        if (p->rows > p->cols || p->cols <= 32)
            p->rows -= p->rows / 2;
        else
            p->cols = (p->cols / 2 + 31) / 32 * 32;
        blocks = lgelu__block_count(p, m, n);
    }
    p->worker_bytes =
        ((p->cols + 32) * (p->depth + 1) + lgelu__a_space(p->depth, p->across)) * sizeof(float)
        + LGELU__GUARD;
    return lgelu__min(blocks, alone ? 1 : lgelu__max_workers(m, n, k));
}

/* Returns the bytes of workspace for a product of at most these sizes, on one thread or on any
   number, at any alignment. */
static size_t lgelu__workspace(size_t m, size_t n, size_t k, int alone)
{
    const size_t workers = alone ? 1 : lgelu__max_workers(m, n, k);
    return (workers * lgelu__worker_bytes(n, k) + 127) & ~(size_t)63;
}

LGELU_DEF size_t lgelu_multiply_bytes(size_t m, size_t n, size_t k)
{
    return lgelu__workspace(m, n, k, 0);
}

/* Takes blocks until none remains. */
static void lgelu__multiply_worker(size_t worker, void *user)
{
    lgelu__block *p = (lgelu__block *)user;
    const size_t m = p->job->m, n = p->job->n, down = (m + p->rows - 1) / p->rows;
    for (;;) {
        const size_t block = (size_t)LGELU__ADD(&p->next, 1);
        const size_t i = block % down * p->rows, j = block / down * p->cols;
        if (j >= n)
            return;
        p->isa->block(p, i, lgelu__min(m - i, p->rows), j, lgelu__min(n - j, p->cols),
                      (float *)(void *)(p->work + worker * p->worker_bytes));
    }
}

/* Runs the workers, and checks their guards: the last LGELU__GUARD bytes of each workspace. If C is
   a single block, this thread computes it. */
static void lgelu__multiply_workers(lgelu__block *p, size_t workers, int single,
                                    const lgelu_threads *threads)
{
    unsigned char *guard = p->work + p->worker_bytes - LGELU__GUARD;
    size_t guards = LGELU__GUARD && p->worker_bytes ? workers : 0;
    size_t i;
    for (i = 0; i < guards; i++)
        lgelu__guard_set(guard + i * p->worker_bytes);
    if (single)
        p->isa->block(p, 0, p->job->m, 0, p->job->n, (float *)(void *)p->work);
    else
        lgelu__parallel(threads, lgelu__multiply_worker, p, workers);
    for (i = 0; i < guards; i++) {
        if (lgelu__guard_broken(guard + i * p->worker_bytes) && p->broken)
            LGELU__SET(p->broken, 1);
    }
}

static void lgelu__few_rows(size_t task, void *user)
{
    const lgelu__block *p = (const lgelu__block *)user;
    p->isa->few_rows(p->job, task * p->cols, lgelu__min(p->job->n, (task + 1) * p->cols));
}

/* Computes a product of 1 to 8 rows with the transpose of a matrix, without a copy. Each task
   computes about 256 columns; the last one has at least 16, a full vector. */
static void lgelu__multiply_few_rows(lgelu__block *p, const lgelu_threads *threads)
{
    const size_t n = p->job->n;
    p->cols = lgelu__even(n, 256, 16);
    while (n % p->cols && n % p->cols < 16)
        p->cols += 16;
    lgelu__parallel(threads, lgelu__few_rows, p, (n + p->cols - 1) / p->cols);
}

static int lgelu__has_few_rows(const lgelu_product *job)
{
    const lgelu_matrix *a = &job->a, *b = &job->b;
    const int transposed = b->row_stride == 1 && b->col_stride != 1;
    return job->m && job->m <= 8 && job->n >= 16 && transposed && !b->read && !a->read;
}

/* Whether the rows of A that a tile reads evict each other, and are read often: a multiple of 4 KiB
   apart (1,024 floats) they are all in one set of a first-level cache, which often has 8 ways. */
static int lgelu__rows_compete(const lgelu__block *p)
{
    const size_t rows = p->isa->rows;
    return rows > 8 && p->job->m > 2 * rows && p->cols > 2 * p->isa->cols
           && p->job->a.row_stride % 1024 == 0;
}

/* Decides whether A and B are copied. B is copied if its columns are not contiguous, or if it is
   large and read often: rows that are a multiple of 2 KiB apart (512 floats) compete for the same
   cache lines, so that copying pays much earlier. A is copied if its columns are not contiguous or
   its rows compete; if it is read along its columns, where they are far apart. */
static void lgelu__choose_copies(lgelu__block *p)
{
    const lgelu_product *job = p->job;
    const lgelu_matrix *a = &job->a, *b = &job->b;
    const size_t slivers = b->row_stride % 512 ? p->isa->cols / 2 : 2;
    const int often = job->m > slivers * p->isa->rows;
    p->pack_b = 0;
    if (!p->panels)
        p->pack_b = b->read || b->col_stride != 1 || (b->row_stride * job->k > 16384 && often);
    /* The rows of a large B are copied as a whole instead, one after another. */
    p->fused = p->pack_b && !b->read && b->col_stride == 1 && b->row_stride * job->k <= 524288;
    if (a->read)
        p->pack_a = 1;
    else if (p->across)
        p->pack_a =
            a->col_stride > 64 && a->col_stride * job->k > 16384 && p->cols > 2 * p->isa->cols;
    else
        p->pack_a = a->col_stride != 1 || lgelu__rows_compete(p);
}

/* Makes the blocks smaller if C is a single sliver: B is then read only once, so that only a small
   part of it should be copied at a time, or, with up to six rows of A, be in use at a time. */
static void lgelu__shrink_single_sliver(lgelu__block *p, int alone)
{
    const lgelu_product *job = p->job;
    const size_t limit = job->b.row_stride % 512 && job->m > 2 ? 1048576 : 65536;
    if (job->m > p->isa->rows || !job->k || p->panels)
        return;
    if (p->pack_b) {
        p->depth = lgelu__min(p->depth, 64);
        p->cols = p->isa->cols;
    } else if (job->b.row_stride * job->k > limit && job->m <= 6) {
        p->depth = lgelu__min(p->depth, 16);
        if (alone)
            p->cols = job->n;
    }
}

/* Lets up to 64 rows share each panel of a large B, so that B is read once: a panel is copied into
   the first-level cache. With tiles of more than 8 rows a panel of a transposed B has the whole
   depth and is copied into the second level, so that each column is read for longer. Sharing does
   not pay where rows are a multiple of 4 KiB apart (1024 floats), which compete for the same cache
   lines. */
static void lgelu__share_panels(lgelu__block *p)
{
    const lgelu_product *job = p->job;
    const lgelu_matrix *a = &job->a, *b = &job->b;
    const int contiguous = b->col_stride == 1;
    const int large = (contiguous ? b->row_stride : job->n) * job->k > 65536;
    const int compete = a->row_stride % 1024 == 0 || (contiguous && b->row_stride % 1024 == 0);
    if (p->panels || p->pack_a || b->read || !large || compete)
        return;
    if (p->rows <= p->isa->rows || p->rows > 64)
        return;
    p->by_panel = 1;
    p->pack_b = 1;
    p->fused = contiguous;
    if (contiguous || p->isa->rows <= 8)
        p->depth = lgelu__min(p->depth, lgelu__even(job->k, 256, 16));
}

/* Where some slivers share a large prepacked B, they use 256 KiB of it at a time and prefetch what
   follows. Otherwise the first sliver would read B faster than memory delivers it: if B is in
   memory, this saves 2 to 3 % with 128 rows and 8 % with 32 (AVX2, Zen 4). With AVX-512, whose
   tiles need more time for the same B, it costs 2 to 9 %. */
static void lgelu__span_panels(lgelu__block *p)
{
    const lgelu_product *job = p->job;
    const int large = job->n * job->k > 65536, share = job->m > 2 * p->isa->rows;
    if (p->panels && p->isa->rows <= 8 && large && share && p->rows * p->depth <= 131072)
        p->span = 65536 / p->depth / 32 * 32;
}

/* Computes the product on this thread, or on a team. */
static void lgelu__multiply_blocks(lgelu__block *p, const lgelu_threads *team)
{
    const lgelu_product *job = p->job;
    const lgelu_matrix *a = &job->a;
    size_t workers;
    int single;
    p->work += (64 - ((uintptr_t)p->work & 63)) & 63;
    p->across = a->row_stride == 1 && a->col_stride != 1 && !a->read;
    workers = lgelu__blocks(p, job->m, job->n, job->k, !team);
    single = workers && p->rows >= job->m && p->cols >= job->n;
    if (team && p->panels && job->m <= 8 && !a->read && a->col_stride == 1) {
        /* Nothing is copied. A block is four of the widest panels. */
        p->cols = 128;
        p->worker_bytes = 0;
        workers = lgelu__min((job->n + p->cols - 1) / p->cols, LGELU__WORKERS);
        single = workers == 1;
    }
    lgelu__choose_copies(p);
    lgelu__shrink_single_sliver(p, !team);
    lgelu__share_panels(p);
    lgelu__span_panels(p);
    lgelu__multiply_workers(p, workers, single, team);
}

static void lgelu__multiply_panels(const lgelu_product *job, const lgelu__kernels *panels,
                                   void *work, const lgelu_threads *threads, int *broken);

/* Computes the product p->job on a new team. */
static void lgelu__multiply_team(const lgelu_threads *team, void *user)
{
    const lgelu__block *p = (const lgelu__block *)user;
    lgelu__multiply_panels(p->job, p->panels ? p->isa : NULL, p->work, team, p->broken);
}

/* Computes a product. If panels is not NULL, B is prepacked for these kernels: job->b.x points to
   panels of panels->cols columns with k rows each, the last one padded with zeros, and the strides
   do not count. The product then runs with these kernels, whichever are in force by now. */
static void lgelu__multiply_panels(const lgelu_product *job, const lgelu__kernels *panels,
                                   void *work, const lgelu_threads *threads, int *broken)
{
    const double fma = (double)job->m * (double)job->n * (double)job->k;
    const int in_team = threads && threads->run == lgelu__team_run;
    lgelu__block p;
    memset(&p, 0, sizeof p);
    p.job = job;
    p.isa = panels ? panels : lgelu__k();
    p.panels = panels != NULL;
    p.work = (unsigned char *)work;
    p.broken = broken;
    if (fma < (in_team ? lgelu__fma_in_team : lgelu__fma_for_team))
        threads = NULL;
    if (threads && !in_team)
        lgelu__with_team(threads, lgelu__multiply_team, &p);
    else if (!panels && lgelu__has_few_rows(job))
        lgelu__multiply_few_rows(&p, threads);
    else
        lgelu__multiply_blocks(&p, threads);
}

/* Computes a product whose B is described by job->b. */
static void lgelu__multiply(const lgelu_product *job, void *work, const lgelu_threads *threads,
                            int *broken)
{
    lgelu__multiply_panels(job, NULL, work, threads, broken);
}

LGELU_DEF void lgelu_multiply(const lgelu_product *job, void *work, const lgelu_threads *threads)
{
    LGELU__TO_NEAREST(lgelu__multiply(job, work, threads, NULL));
}

/* The arguments of lgelu_column_sums. */
typedef struct {
    float *sum;
    const float *x;
    size_t x_row, m, n;
    int accumulate;
} lgelu__sums;

static void lgelu__column_sums_task(size_t task, void *user)
{
    const lgelu__sums *p = (const lgelu__sums *)user;
    const size_t j = task * 256;
    lgelu__k()->column_sums(p->sum + j, p->x + j, p->x_row, p->m, lgelu__min(p->n - j, 256),
                            p->accumulate);
}

LGELU_DEF void lgelu_column_sums(float *sum, const float *x, size_t x_stride, size_t m, size_t n,
                                 int accumulate, const lgelu_threads *threads)
{
    lgelu__sums p = { sum, x, x_stride, m, n, accumulate };
    LGELU__GIVEN(n, sum && (!m || x));
    lgelu__parallel(m * n < 65536 ? NULL : threads, lgelu__column_sums_task, &p, (n + 255) / 256);
}

/* Returns the matrix whose rows begin every `row` floats from x on. */
LGELU__APART lgelu_matrix lgelu__matrix(const float *x, size_t row)
{
    lgelu_matrix m;
    m.x = x;
    m.row_stride = row;
    m.col_stride = 1;
    m.read = NULL;
    m.user = NULL;
    return m;
}

/* Returns the transpose of that matrix. */
LGELU__APART lgelu_matrix lgelu__transpose(const float *x, size_t row)
{
    lgelu_matrix m = lgelu__matrix(x, 1);
    m.col_stride = row;
    return m;
}

LGELU__APART lgelu_product lgelu__product_make(size_t m, size_t n, size_t k, float *c, size_t c_row,
                                               lgelu_matrix a, lgelu_matrix b)
{
    lgelu_product p;
    memset(&p, 0, sizeof p);
    p.m = m;
    p.n = n;
    p.k = k;
    p.c = c;
    p.c_stride = c_row;
    p.a = a;
    p.b = b;
    return p;
}

/* ---- [8b] graph: nodes and their checks, jobs, memory plan, block, first weights ---- */
LGELU_DEF void lgelu_net_begin(lgelu_net *net, lgelu_node *nodes, int capacity)
{
    memset(net, 0, sizeof *net);
    net->nodes = nodes;
    net->capacity = capacity;
}

/* Refuses input number k of a node, unless it is an earlier layer of a kind that the node can read:
   tokens go to embeddings only, labels to the second input of a cross-entropy only. */
static void lgelu__check_input(lgelu_net *net, const lgelu_node *node, int k)
{
    const int reads_tokens = node->op == LGELU_OP_EMBEDDING;
    const int reads_labels = node->op == LGELU_OP_CROSS_ENTROPY && k == 1;
    const lgelu_node *from;
    if (node->input[k] < 0 || node->input[k] >= net->count) {
        lgelu__fail(net, LGELU_E_ARGUMENT, "%n: input %z is no earlier layer", node, (size_t)k);
        return;
    }
    from = net->nodes + node->input[k];
    if (lgelu__is_a(from, LGELU_TRAIT_LOSS) || (from->op == LGELU_OP_TOKENS) != reads_tokens
        || (from->op == LGELU_OP_LABELS) != reads_labels) {
        lgelu__fail(net, LGELU_E_ARGUMENT, "%n: '%s' can't be its input %z", node, from->name,
                    (size_t)k);
    }
}

/* Returns how many inputs a node reads whose builder received b as the second one, -1 for none. */
static int lgelu__input_count(const lgelu_node *node, int b)
{
    if (lgelu__is_a(node, LGELU_TRAIT_SOURCE))
        return 0;
    return b < 0 ? 1 : 2;
}

/* Returns a node whose name and inputs have been checked. Its shape is that of its first input,
   which the builder changes as needed; zeros after an error. The name is cut between two
   characters. */
static lgelu_node lgelu__node(lgelu_net *net, lgelu_op op, const char *name, int a, int b)
{
    lgelu_node node;
    int k;
    memset(&node, 0, sizeof node);
    lgelu__format(node.name, node.name + sizeof node.name - 1, "%s%s", net->prefix,
                  name ? name : "");
    node.name[lgelu__utf8(node.name, strlen(node.name))] = 0;
    lgelu__begin_call(net);
    if (!name) {
        lgelu__fail(net, LGELU_E_ARGUMENT, "%s %z: its name is NULL", lgelu_op_name((int)op),
                    (size_t)net->count);
    } else if (!lgelu__is_plain_text(net->prefix) || !lgelu__is_plain_text(name)) {
        lgelu__fail(net, LGELU_E_ARGUMENT, "%s %z: its name %s", lgelu_op_name((int)op),
                    (size_t)net->count, LGELU__PLAIN);
    }
    node.op = op;
    node.internal.row = (int)op;
    node.internal.tokenwise = lgelu_op_is((int)op, LGELU_TRAIT_TOKENWISE);
    node.init = net->init;
    node.deviation = net->deviation > 0 ? net->deviation : 0.02f;
    node.input[0] = a;
    node.input[1] = b;
    node.inputs = lgelu__input_count(&node, b);
    if (net->memory)
        lgelu__fail(net, LGELU_E_ARGUMENT, "%n: the network is already made", &node);
    if (net->count >= net->capacity) {
        lgelu__fail(net, LGELU_E_MEMORY, "%n: expected at most %d nodes, the capacity", &node,
                    net->capacity > 0 ? (long)net->capacity : 0L);
    }
    for (k = 0; k < node.inputs && !net->status; k++) {
        lgelu__check_input(net, &node, k);
        if (!net->status)
            node.internal.learns |= net->nodes[node.input[k]].internal.learns;
    }
    if (node.inputs && !net->status)
        memcpy(node.shape, net->nodes[a].shape, sizeof node.shape);
    return node;
}

/* Appends the node to the network and returns its index; -1 after an error. */
static int lgelu__append(lgelu_net *net, lgelu_node *node)
{
    const size_t *s = node->shape;
    if (lgelu__times(lgelu__times(s[0], s[1]), s[2]) > (size_t)-1 / 64) {
        lgelu__fail(net, LGELU_E_SHAPE, "%n: its value of %z x %z x %z is too large", node, s[0],
                    s[1], s[2]);
    }
    if (net->status)
        return -1;
    node->internal.learns |= node->weight_count || node->bias_count || node->tied;
    net->nodes[net->count] = *node;
    return net->count++;
}

/* Appends a node that has a matrix (outputs, inputs). */
LGELU__APART int lgelu__append_with_matrix(lgelu_net *net, lgelu_node *node, size_t outputs,
                                           size_t inputs)
{
    node->weight_count = lgelu__times(outputs, inputs);
    if (!node->weight_count || node->weight_count > (size_t)-1 / 64) {
        lgelu__fail(net, LGELU_E_SHAPE, "%n: its matrix of %z x %z is empty or too large", node,
                    outputs, inputs);
    }
    return lgelu__append(net, node);
}

static int lgelu__append_source(lgelu_net *net, lgelu_op op, const char *name, size_t rows,
                                size_t columns, size_t channels)
{
    lgelu_node node = lgelu__node(net, op, name, -1, -1);
    node.shape[0] = rows;
    node.shape[1] = columns;
    node.shape[2] = channels;
    if (!rows || !columns || !channels) {
        lgelu__fail(net, LGELU_E_SHAPE, "%n: expected a shape without 0, found %z x %z x %z", &node,
                    rows, columns, channels);
    }
    return lgelu__append(net, &node);
}

/* ---- jobs: the arguments of layers, and loops over their rows ---- */

/* Returns the rows of a range: those of a sample, 64, or as many as have about 16384 values. */
static size_t lgelu__rows_per_task(const lgelu_node *node)
{
    const size_t rows = node->shape[2] < 16384 ? 16384 / node->shape[2] : 1;
    if (lgelu__is_a(node, LGELU__BY_SAMPLE))
        return node->shape[0] * node->shape[1];
    if (lgelu__is_a(node, LGELU__BY_64_ROWS))
        return 64;
    return lgelu__is_a(node, LGELU__BY_FOUR) ? (rows + 3) / 4 * 4 : rows;
}

/* Sets the fields of a job that depend on sizes only: all that the memory plan needs. */
static void lgelu__job_size(lgelu__job *p, lgelu_net *net, lgelu_node *node, size_t samples)
{
    const lgelu_node *from = node->inputs ? net->nodes + node->input[0] : node;
    const lgelu_node *rows_of = lgelu__is_a(node, LGELU_TRAIT_LOSS) ? from : node;
    memset(p, 0, sizeof *p);
    p->net = net;
    p->node = node;
    p->from = from;
    p->samples = samples;
    p->rows = lgelu__times(samples, rows_of->shape[0] * rows_of->shape[1]);
    if (net->internal.tokens)
        p->rows = net->internal.tokens;
    p->channels = rows_of->shape[2];
    p->rows_per_task = lgelu__rows_per_task(rows_of);
}

/* Sets where a job's weights, biases and their gradients are. */
static void lgelu__job_parameters(lgelu__job *p)
{
    const lgelu_net *net = p->net;
    const lgelu_node *node = p->node;
    if (net->w)
        p->w = net->w + node->weight_at;
    if (node->bias_count)
        p->bias = net->w + node->bias_at;
    if (net->g) {
        p->dw = net->g + node->weight_at;
        p->dbias = net->g + node->bias_at;
    }
}

/* Sets what a job reads: the inputs of its node or, if input 0 is a fused sum, those of the sum. */
static void lgelu__job_inputs(lgelu__job *p)
{
    const lgelu_net *net = p->net;
    const lgelu_node *reader =
        p->from->internal.row == LGELU__ADD_FUSED ? p->from : (const lgelu_node *)p->node;
    p->x = lgelu__input_value(net, reader, 0);
    p->scale = lgelu__input_scale(net, reader, 0);
    if (p->scale)
        p->shift = p->scale + p->channels;
    if (reader->op != LGELU_OP_ADD)
        return;
    p->b = lgelu__input_value(net, reader, 1);
    p->b_scale = lgelu__input_scale(net, reader, 1);
    if (p->b_scale)
        p->b_shift = p->b_scale + p->channels;
}

/* Returns the job of a node's forward. For a backward, lgelu__backward_layer adds the gradients. */
static lgelu__job lgelu__job_make(lgelu_net *net, lgelu_node *node)
{
    lgelu__job p;
    lgelu__job_size(&p, net, node, net->samples);
    p.y = lgelu__buffer_at(net, node, LGELU__VALUE);
    p.aux = lgelu__buffer_at(net, node, LGELU__AUX);
    p.sum = (double *)(void *)p.aux;
    lgelu__job_parameters(&p);
    if (!node->inputs)
        return p;
    if (node->op == LGELU_OP_CROSS_ENTROPY)
        p.label = (const int32_t *)(const void *)lgelu__input_value(net, node, 1);
    p.per_row = (float)(1 / (double)p.rows) * net->internal.loss_scale;
    lgelu__job_inputs(&p);
    return p;
}

/* Returns the number of ranges of a job's rows. */
LGELU__APART size_t lgelu__task_count(const lgelu__job *p)
{
    return (p->rows - 1) / p->rows_per_task + 1;
}

static void lgelu__rows_task_run(size_t index, void *user)
{
    const lgelu__job *p = (const lgelu__job *)user;
    const size_t row = index * p->rows_per_task;
    p->task(p, row, lgelu__min(p->rows - row, p->rows_per_task));
}

/* Calls task for each range of the job's rows, in parallel. */
LGELU__APART void lgelu__for_rows(lgelu__job *p, lgelu__rows_task *task)
{
    p->task = task;
    lgelu__parallel(&p->net->threads, lgelu__rows_task_run, p, lgelu__task_count(p));
}

/* Writes rows of what the job reads: x·scale + shift [+ b·b_scale + b_shift]. */
static void lgelu__affine(const lgelu__job *p, float *y, size_t row, size_t rows)
{
    const size_t at = row * p->channels;
    const lgelu__scaled a = { p->x + at, p->scale, p->shift };
    const lgelu__scaled b = { p->b ? p->b + at : NULL, p->b_scale, p->b_shift };
    lgelu__k()->affine(y, &a, &b, rows, p->channels);
}

static void lgelu__affine_range(const lgelu__job *p, size_t row, size_t rows)
{
    lgelu__affine(p, p->y + row * p->channels, row, rows);
}

/* ---- names ---- */

/* Returns the list of the hash table of names to which a name belongs: the node with its index
   holds 1 + the index of the first node of the list. */
static int *lgelu__list_of_name(const lgelu_net *net, const char *name)
{
    uint32_t hash = 2166136261u;
    while (*name)
        hash = (hash ^ (unsigned char)*name++) * 16777619u;
    return &net->nodes[hash % (uint32_t)net->count].internal.named;
}

/* Returns the node of a name, or NULL. Until the network is made, only nodes that have been entered
   are found. */
static const lgelu_node *lgelu__named(const lgelu_net *net, const char *name)
{
    int i = net->count ? *lgelu__list_of_name(net, name) : 0;
    while (i && strcmp(net->nodes[i - 1].name, name))
        i = net->nodes[i - 1].internal.next_named;
    return i ? net->nodes + i - 1 : NULL;
}

/* Enters the name of node i into the hash table. */
static void lgelu__enter_name(lgelu_net *net, int i)
{
    int *list = lgelu__list_of_name(net, net->nodes[i].name);
    net->nodes[i].internal.next_named = *list;
    *list = i + 1;
}

/* Refuses two layers of one name, and gates with a name that checkpoints use themselves. Enters all
   names into the hash table. */
static lgelu_status lgelu__check_unique_names(lgelu_net *net)
{
    int i;
    for (i = 0; i < net->count; i++)
        net->nodes[i].internal.named = 0;
    for (i = 0; i < net->count; i++) {
        const char *name = net->nodes[i].name;
        if (net->nodes[i].op == LGELU_OP_GATE
            && (!strcmp(name, "step") || !strcmp(name, "format") || !strcmp(name, "lambda_map"))) {
            return lgelu__fail(net, LGELU_E_ARGUMENT,
                               "gate '%s': checkpoints use that name themselves", name);
        }
        if (lgelu__named(net, name))
            return lgelu__fail(net, LGELU_E_ARGUMENT, "two layers are called '%s'", name);
        lgelu__enter_name(net, i);
    }
    return LGELU_OK;
}

/* ---- the memory plan ---- */
/* The steps of a run are numbered: 0 … n - 1 are the forward of nodes 0 … n - 1, and n … 2n - 1 the
   backward of nodes n - 1 … 0. A buffer is in use from the step of its first write to that of its
   last read. Buffers that are not in use at the same time may overlap. The largest buffer is placed
   first, each at the lowest offset where it fits.

   For n nodes, to sort and to place the buffers takes about n² short steps: milliseconds for
   hundreds of nodes, half a second for 5,000. Everything else takes about n: lists link each node
   to its readers. All of that is stored in the nodes, so that nothing is allocated. */

LGELU__APART void lgelu__buffer_set(lgelu_buffer *b, size_t bytes, int from, int to)
{
    b->bytes = bytes;
    b->from = from;
    b->to = to;
    b->at = 0;
}

/* Who reads a node's value. */
typedef struct {
    int inputs;                   /* how many inputs of other nodes it is, */
    int layers;                   /* and how many of those belong to layers that are not losses */
    int first, last, second_last; /* readers; second_last is -1 if there are fewer than two */
    int until;                    /* the step in which the value is read last */
    int scratch; /* a reader cannot add to the gradient: it needs a second buffer */
} lgelu__readers;

/* Returns the step in which a node reads its inputs last. Attention keeps keys and values from one
   call of lgelu_net_generate to the next. */
static int lgelu__last_read(const lgelu_net *net, int reader, lgelu_mode mode)
{
    const lgelu_node *node = net->nodes + reader;
    const int end = 2 * net->count;
    if (mode == LGELU_MODE_GENERATE && node->op == LGELU_OP_ATTENTION)
        return end;
    if (mode == LGELU_MODE_TRAIN && lgelu__is_a(node, LGELU__KEEPS_INPUTS))
        return end - 1 - reader;
    return reader;
}

/* Adds the next reader. In the backward the last reader writes the gradient first, and each earlier
   one adds to it. */
static void lgelu__add_reader(lgelu__readers *r, const lgelu_net *net, int reader, lgelu_mode mode)
{
    const int until = lgelu__last_read(net, reader, mode);
    if (until > r->until)
        r->until = until;
    if (!r->inputs) {
        r->first = reader;
    } else {
        if (r->last == reader || !lgelu__is_a(net->nodes + r->last, LGELU__ADDS_TO_DX))
            r->scratch = 1;
        r->second_last = r->last;
    }
    r->last = reader;
    r->inputs++;
    r->layers += !lgelu__is_a(net->nodes + reader, LGELU_TRAIT_LOSS);
}

/* Links each node to its readers, the first one first, and to the last layer that uses its
   matrix. */
static void lgelu__link_readers(lgelu_net *net)
{
    int i, k;
    for (i = 0; i < net->count; i++)
        net->nodes[i].internal.reader = net->nodes[i].internal.last_tied = 0;
    for (i = 0; i < net->count; i++) {
        if (net->nodes[i].tied)
            net->nodes[net->nodes[i].tied - 1].internal.last_tied = i + 1;
    }
    for (i = net->count - 1; i >= 0; i--) {
        lgelu_node *node = net->nodes + i;
        for (k = node->inputs - 1; k >= 0; k--) {
            int *first = &net->nodes[node->input[k]].internal.reader;
            node->internal.next_reader[k] = *first;
            *first = 1 + 3 * i + k;
        }
    }
}

/* Returns the readers of node i. */
LGELU__APART lgelu__readers lgelu__readers_of(const lgelu_net *net, int i, lgelu_mode mode)
{
    int reader = net->nodes[i].internal.reader;
    lgelu__readers r;
    memset(&r, 0, sizeof r);
    r.first = r.last = r.until = i;
    r.second_last = -1;
    while (reader) {
        const int j = (reader - 1) / 3, k = (reader - 1) % 3;
        lgelu__add_reader(&r, net, j, mode);
        reader = net->nodes[j].internal.next_reader[k];
    }
    return r;
}

/* Returns the bytes of a node's value; those of an input belong to the caller. */
static size_t lgelu__value_bytes(const lgelu_node *node, size_t batch)
{
    size_t elements = lgelu__elements(node);
    if (node->op == LGELU_OP_INPUT)
        elements = 0;
    else if (lgelu__is_a(node, LGELU_TRAIT_SOURCE))
        elements = node->shape[1];
    return lgelu__times(lgelu__times(batch, elements), sizeof(float));
}

/* Returns whether a node's value is stored in the buffer of its input 0: it is the same value, or
   it overwrites a value that nobody reads later. */
static int lgelu__shares_value(const lgelu_net *net, int i)
{
    const lgelu_node *node = net->nodes + i, *x;
    if (node->op == LGELU_OP_VIEW || node->internal.row == LGELU__BATCH_NORM_FUSED)
        return 1;
    if (!lgelu__is_a(node, LGELU__IN_PLACE))
        return 0;
    x = net->nodes + net->nodes[node->input[0]].internal.value_node;
    return !lgelu__is_a(x, LGELU_TRAIT_SOURCE) && x->internal.buffer[LGELU__VALUE].to == i;
}

/* Plans where the value of node i is stored, and for how long. What attention keeps from one call
   to the next is in use from step 0 on: otherwise an earlier layer of the next call would overwrite
   it. Results are kept until the end of the run. */
static void lgelu__plan_value(lgelu_net *net, int i, const lgelu__readers *r, size_t bytes)
{
    lgelu_node *node = net->nodes + i;
    lgelu_buffer *value = node->internal.buffer + LGELU__VALUE;
    const int end = 2 * net->count, read = r->layers || lgelu__is_a(node, LGELU_TRAIT_SOURCE);
    const int from = r->until == end ? 0 : i;
    const int to = read && !node->internal.keep ? r->until : end;
    const int shares = lgelu__shares_value(net, i);
    lgelu__buffer_set(value, bytes, from, to);
    if (shares) {
        const int x = net->nodes[node->input[0]].internal.value_node;
        lgelu_buffer *shared = net->nodes[x].internal.buffer + LGELU__VALUE;
        node->internal.value_node = x;
        if (shared->to < to)
            shared->to = to;
        if (shared->from > from)
            shared->from = from;
    }
    if (shares || lgelu__is_a(node, LGELU__FUSED))
        lgelu__buffer_set(value, 0, i, i);
}

/* Plans where the gradient of node i is stored, and the scratch buffer from which a second reader's
   part is added to it. The loss that is fused with a linear layer has that layer's gradient in its
   own scratch buffer: the logits of some rows at a time. */
static void lgelu__plan_gradient(lgelu_net *net, int i, const lgelu__readers *r, size_t bytes,
                                 int learns)
{
    const lgelu_node *node = net->nodes + i;
    lgelu_buffer *b = net->nodes[i].internal.buffer;
    const int end = 2 * net->count, back = end - 1 - i;
    const int gradient = learns && r->inputs && node->internal.row != LGELU__LINEAR_FUSED;
    lgelu__buffer_set(b + LGELU__GRADIENT, gradient ? bytes : 0, end - 1 - r->last, back);
    if (node->internal.row == LGELU__LINEAR_LOSS) {
        const size_t classes = net->nodes[node->input[0]].shape[2];
        bytes = LGELU__LOGITS_ROWS * classes * sizeof(float);
        lgelu__buffer_set(b + LGELU__SCRATCH, bytes, i, back);
    } else {
        lgelu__buffer_set(b + LGELU__SCRATCH, learns && r->scratch ? bytes : 0, end - 1 - r->last,
                          end - 1 - r->first);
    }
}

/* Plans where node i stores what its forward leaves for its backward, or for a reader with which it
   is fused. */
static void lgelu__plan_aux(lgelu_net *net, int i, const lgelu__readers *r, size_t batch,
                            int learns)
{
    lgelu_node *node = net->nodes + i;
    const lgelu__layer *layer = lgelu__layer_of(node);
    const int end = 2 * net->count;
    int until = r->until < end ? r->until : i;
    lgelu__job job;
    if (learns)
        until = end - 1 - i;
    lgelu__job_size(&job, net, node, batch);
    lgelu__buffer_set(node->internal.buffer + LGELU__AUX, layer->aux ? layer->aux(&job) : 0, i,
                      until);
}

/* Plans the buffers of node i, whose inputs have been planned. */
LGELU__APART void lgelu__plan_node(lgelu_net *net, int i, size_t batch, lgelu_mode mode)
{
    lgelu_node *node = net->nodes + i;
    const lgelu__readers r = lgelu__readers_of(net, i, mode);
    const int train = mode == LGELU_MODE_TRAIN, learns = train && node->internal.learns;
    const int reader = r.inputs == 1 && !node->internal.keep ? r.last : -1;
    const size_t bytes = lgelu__value_bytes(node, batch);
    const lgelu__use use = { net, node, bytes, reader, train };
    node->internal.value_node = node->internal.gradient_node = i;
    node->internal.row = lgelu__row_for(&use);
    lgelu__plan_value(net, i, &r, bytes);
    lgelu__plan_aux(net, i, &r, batch, learns);
    lgelu__plan_gradient(net, i, &r, bytes, learns);
}

/* Returns whether the gradient of node i can be stored in that of its last reader, which passes it
   on unchanged. Nobody may write to it before all nodes that share it have read it: if the reader
   has another input, the next reader of node i that writes must come after that input's
   backward. */
static int lgelu__can_share_gradient(const lgelu_net *net, int i, const lgelu__readers *r)
{
    const lgelu_node *node = net->nodes + i, *reader = net->nodes + r->last;
    const int other = reader->input[reader->input[0] == i];
    if (!r->inputs || !lgelu__is_a(reader, LGELU__PASSES_GRADIENT))
        return 0;
    /* A reader whose own gradient is stored elsewhere has a buffer of 0 bytes. */
    if (!node->internal.buffer[LGELU__GRADIENT].bytes
        || !reader->internal.buffer[LGELU__GRADIENT].bytes)
        return 0;
    return reader->inputs != 2 || (other != i && other > r->second_last);
}

/* Finds the gradients that need no buffer, from the last node to the first. */
static void lgelu__share_gradients(lgelu_net *net)
{
    int i;
    for (i = net->count - 1; i >= 0; i--) {
        const lgelu__readers r = lgelu__readers_of(net, i, LGELU_MODE_TRAIN);
        lgelu_buffer *own = net->nodes[i].internal.buffer + LGELU__GRADIENT;
        lgelu_buffer *shared = net->nodes[r.last].internal.buffer + LGELU__GRADIENT;
        if (!lgelu__can_share_gradient(net, i, &r))
            continue;
        net->nodes[i].internal.gradient_node = r.last;
        if (shared->to < own->to)
            shared->to = own->to;
        own->bytes = 0;
    }
}

/* ---- placing the buffers ---- */

/* Returns the bytes of a buffer that has some, in whole cache lines, with its guard. */
static size_t lgelu__buffer_bytes(const lgelu_buffer *b)
{
    return lgelu__plus(lgelu__plus(b->bytes, 63) & ~(size_t)63, LGELU__GUARD);
}

/* Returns a list of the buffers that have bytes, in the order in which they are placed: the largest
   first, and of equal ones that of the first node. */
static lgelu_buffer *lgelu__sorted(lgelu_net *net)
{
    lgelu_buffer *list = NULL;
    int i, k;
    for (i = net->count - 1; i >= 0; i--) {
        for (k = 3; k >= 0; k--) {
            lgelu_buffer *b = net->nodes[i].internal.buffer + k, **before = &list;
            if (!b->bytes)
                continue;
            while (*before && (*before)->bytes > b->bytes)
                before = &(*before)->next;
            b->next = *before;
            *before = b;
        }
    }
    return list;
}

/* Places a buffer at the lowest offset where it overlaps none of the placed ones that are in use at
   the same time, and adds it to their list, which is in the order of offsets. Returns where it
   ends. */
static size_t lgelu__place_buffer(lgelu_buffer **placed, lgelu_buffer *b)
{
    const size_t bytes = lgelu__buffer_bytes(b);
    lgelu_buffer *other;
    size_t at = 0;
    for (other = *placed; other && other->at < at + bytes; other = other->next) {
        if (other->from <= b->to && other->to >= b->from)
            at = lgelu__max(at, other->at + lgelu__buffer_bytes(other));
        if (other->at < at)
            placed = &other->next;
    }
    b->at = at;
    b->next = *placed;
    *placed = b;
    return at + bytes;
}

/* Places all buffers. Returns the bytes of the arena that holds them, (size_t)-1 on overflow. */
static size_t lgelu__place_buffers(lgelu_net *net)
{
    lgelu_buffer *b = lgelu__sorted(net), *placed = NULL;
    size_t top = 0;
    while (b) {
        lgelu_buffer *next = b->next;
        if (b->bytes > (size_t)-1 / 4 || top > (size_t)-1 / 4)
            return (size_t)-1;
        top = lgelu__max(top, lgelu__place_buffer(&placed, b));
        b = next;
    }
    return top;
}

/* Plans all buffers. Returns the bytes of the arena that holds them, (size_t)-1 on overflow. */
static size_t lgelu__plan(lgelu_net *net, size_t batch, lgelu_mode mode)
{
    int i;
    for (i = 0; i < net->count; i++) {
        if (!net->nodes[i].folded)
            net->nodes[i].internal.row = (int)net->nodes[i].op;
    }
    lgelu__link_readers(net);
    for (i = 0; i < net->count; i++)
        lgelu__plan_node(net, i, batch, mode);
    if (mode == LGELU_MODE_TRAIN)
        lgelu__share_gradients(net);
    return lgelu__place_buffers(net);
}

/* ---- the block: every array in order, each at a multiple of 64 bytes ---- */

/* Returns the floats of a node's prepacked copy (net.prepack); 0 if it has none. */
static size_t lgelu__prepacked_floats(const lgelu_net *net, const lgelu_node *node)
{
    const lgelu__layer *layer = lgelu__layer_of(node);
    return layer->prepack ? layer->prepack(net, node, NULL, NULL) : 0;
}

/* Reserves count elements of `size` bytes at *at, moves *at behind them and the guard of a checking
   build, and returns where they are in memory: NULL if there are none, or if memory is NULL because
   only the size of the block is wanted. */
LGELU__APART void *lgelu__carve(unsigned char *memory, size_t *at, size_t count, size_t size)
{
    void *p = memory ? memory + *at : NULL;
    *at = lgelu__plus(*at, lgelu__plus(lgelu__times(count, size), 63)) & ~(size_t)63;
    *at = lgelu__plus(*at, LGELU__GUARD);
    return count ? p : NULL;
}

enum { LGELU__TASK_PARAMETERS = 65536 }; /* parameters of one task of an update */
enum { LGELU__READING = 1 << 17 };       /* least workspace, in which section [9] sorts */

/* Gives each node the positions of its parameters, statistics and λ's, and counts them. In net.w
   all matrices are stored before all biases, so that an update with weight decay has one range. */
static lgelu_status lgelu__place_parameters(lgelu_net *net)
{
    size_t biases = 0;
    int i;
    net->weight_count = 0;
    net->state_count = 0;
    net->lambda_count = 0;
    for (i = 0; i < net->count; i++) {
        lgelu_node *node = net->nodes + i;
        if (node->lambda_count > 0x7FFFFFFF - net->lambda_count)
            return lgelu__fail(net, LGELU_E_MEMORY, "%n: too many λ's", node);
        node->weight_at = node->tied ? net->nodes[node->tied - 1].weight_at : net->weight_count;
        node->bias_at = biases;
        node->state_at = net->state_count;
        node->first_lambda = net->lambda_count;
        net->weight_count = lgelu__plus(net->weight_count, node->weight_count);
        net->state_count += node->state_count;
        net->lambda_count += node->lambda_count;
        biases = lgelu__plus(biases, node->bias_count);
    }
    for (i = 0; i < net->count; i++)
        net->nodes[i].bias_at += net->weight_count;
    net->parameter_count = lgelu__plus(net->weight_count, biases);
    return LGELU_OK;
}

/* Gives each node the position of its prepacked matrix, if it has one, and returns how many floats
   all of them have. */
static size_t lgelu__place_prepacked(lgelu_net *net, lgelu_mode mode)
{
    const int wanted = net->prepack && mode != LGELU_MODE_TRAIN;
    size_t total = 0;
    int i;
    for (i = 0; i < net->count; i++) {
        const size_t floats = wanted ? lgelu__prepacked_floats(net, net->nodes + i) : 0;
        net->nodes[i].internal.prepacked_at = floats ? total + 1 : 0;
        total = lgelu__plus(total, floats);
    }
    return total;
}

/* A λ, its free parameter with the moments, and the λ at which its hardening began. */
typedef struct {
    float s, m, v, lambda, lambda0;
} lgelu__hardness;

/* Returns the bytes of net.internal.scratch: the largest workspace of any layer, the sums of
   squares of the tasks that compute the gradients' norm, the λ's of the next step, or what section
   [9] sorts in. */
static size_t lgelu__scratch_bytes(lgelu_net *net, size_t batch, lgelu_mode mode)
{
    const size_t sums = net->parameter_count / LGELU__TASK_PARAMETERS * sizeof(double) + 64;
    const size_t lambdas = (size_t)net->lambda_count * sizeof(lgelu__hardness);
    size_t most = lgelu__max(LGELU__READING, lgelu__max(sums, lambdas));
    int i;
    for (i = 0; i < net->count; i++) {
        const lgelu__layer *layer = lgelu__layer_of(net->nodes + i);
        lgelu__job job;
        if (!layer->work)
            continue;
        lgelu__job_size(&job, net, net->nodes + i, batch);
        most = lgelu__max(most, layer->work(&job, mode == LGELU_MODE_TRAIN));
    }
    return most;
}

/* Sets the network's arrays to their places in memory, or to NULL where memory is NULL, and returns
   the bytes that they take. */
static size_t lgelu__place_arrays(lgelu_net *net, unsigned char *memory, lgelu_mode mode,
                                  size_t prepacked)
{
    float **const moment[3] = { &net->g, &net->m, &net->v };
    float **const of_lambda[5] = { &net->lambda, &net->s, &net->lambda0, &net->s_m, &net->s_v };
    const size_t trained = mode == LGELU_MODE_TRAIN ? net->parameter_count : 0;
    const size_t lambdas = (size_t)net->lambda_count;
    size_t at = 0;
    int i;
    net->w = (float *)lgelu__carve(memory, &at, net->parameter_count, sizeof(float));
    for (i = 0; i < 3; i++)
        *moment[i] = (float *)lgelu__carve(memory, &at, trained, sizeof(float));
    net->state = (float *)lgelu__carve(memory, &at, net->state_count, sizeof(float));
    net->internal.state_before =
        (float *)lgelu__carve(memory, &at, net->state_count, sizeof(float));
    for (i = 0; i < 5; i++)
        *of_lambda[i] = (float *)lgelu__carve(memory, &at, lambdas, sizeof(float));
    net->dlambda = (double *)lgelu__carve(memory, &at, lambdas, sizeof(double));
    net->internal.scratch = (float *)lgelu__carve(memory, &at, net->internal.scratch_bytes, 1);
    net->internal.prepacked = (float *)lgelu__carve(memory, &at, prepacked, sizeof(float));
    net->internal.prepacked_bytes = lgelu__times(prepacked, sizeof(float));
    net->internal.arena = (unsigned char *)lgelu__carve(memory, &at, net->internal.arena_bytes, 1);
    return at;
}

/* Lays the network out in memory, or only computes the size if memory is NULL. Returns the bytes of
   a block that may begin at any address, 0 after an error. */
static size_t lgelu__layout(lgelu_net *net, unsigned char *memory, size_t batch, lgelu_mode mode)
{
    size_t prepacked, bytes;
    if (!batch) {
        lgelu__fail(net, LGELU_E_ARGUMENT, "expected a batch of at least 1 sample, found 0");
        return 0;
    }
    if (memory)
        memory += (64 - ((size_t)(uintptr_t)memory & 63)) & 63;
    net->internal.arena_bytes = lgelu__plan(net, batch, mode);
    if (lgelu__place_parameters(net))
        return 0;
    prepacked = lgelu__place_prepacked(net, mode);
    net->internal.scratch_bytes = lgelu__scratch_bytes(net, batch, mode);
    bytes = lgelu__place_arrays(net, memory, mode, prepacked);
    if (bytes >= (size_t)-1 / 4) {
        lgelu__fail(net, LGELU_E_MEMORY, "a batch of %z needs more bytes than size_t can count",
                    batch);
        return 0;
    }
    return bytes + 63;
}

/* ---- guards of the block, in a checking build (LGELU_CHECK) ---- */

/* lgelu_net_make sets the guards of the network's arrays, which are poisoned while a layer runs.
   Those of a node's buffers are set only while a layer runs that may use them, since other buffers
   use the same bytes at other times. The guard of the workspace begins where the part that the
   running layer needs, for the samples of this call, ends. */

/* An array of the network; `at` is NULL if it has none. */
enum { LGELU__REGIONS = 14 };
typedef struct {
    const char *name;
    const void *at;
    size_t bytes;
} lgelu__region;

/* Returns the guard of a region. */
static void *lgelu__behind(const void *region, size_t bytes)
{
    return (void *)((uintptr_t)region + ((bytes + 63) & ~(size_t)63));
}

static void lgelu__regions(const lgelu_net *net, lgelu__region *r)
{
    const size_t floats = net->parameter_count * sizeof(float);
    const size_t hard = (size_t)net->lambda_count * sizeof(float);
    const lgelu__region all[LGELU__REGIONS] = {
        { "weights", net->w, floats },
        { "gradients", net->g, floats },
        { "first moments", net->m, floats },
        { "second moments", net->v, floats },
        { "running statistics", net->state, net->state_count * sizeof(float) },
        { "earlier statistics", net->internal.state_before, net->state_count * sizeof(float) },
        { "λ's", net->lambda, hard },
        { "free parameters of λ", net->s, hard },
        { "first λ's", net->lambda0, hard },
        { "first moments of λ", net->s_m, hard },
        { "second moments of λ", net->s_v, hard },
        { "gradients of λ", net->dlambda, (size_t)net->lambda_count * sizeof(double) },
        { "workspace", net->internal.scratch, net->internal.scratch_bytes },
        { "prepacked matrices", net->internal.prepacked, net->internal.prepacked_bytes }
    };
    memcpy(r, all, sizeof all);
}

/* Returns the name of the first array whose guard was written to, or NULL. From then on no guard of
   an array is poisoned. */
static const char *lgelu__broken_array(const lgelu_net *net)
{
    lgelu__region r[LGELU__REGIONS];
    const char *first = NULL;
    int k;
    lgelu__regions(net, r);
    for (k = 0; k < LGELU__REGIONS; k++) {
        if (r[k].at && lgelu__guard_broken(lgelu__behind(r[k].at, r[k].bytes)) && !first)
            first = r[k].name;
    }
    return first;
}

/* Sets the guards of the arrays, and poisons them if a layer is about to run. */
static void lgelu__guard_arrays(const lgelu_net *net, int poison)
{
    lgelu__region r[LGELU__REGIONS];
    int k;
    lgelu__regions(net, r);
    for (k = 0; k < LGELU__REGIONS; k++) {
        if (!r[k].at)
            continue;
        lgelu__guard_set(lgelu__behind(r[k].at, r[k].bytes));
        if (!poison)
            LGELU__UNPOISON(lgelu__behind(r[k].at, r[k].bytes));
    }
}

/* Returns the guard behind what a node may use of the workspace; NULL where that ends at the
   workspace's own guard. */
static void *lgelu__guard_of_work(lgelu_net *net, lgelu_node *node)
{
    const lgelu__layer *layer = lgelu__layer_of(node);
    size_t bytes = 0;
    lgelu__job job;
    lgelu__job_size(&job, net, node, net->samples);
    if (layer->work)
        bytes = (layer->work(&job, net->mode == LGELU_MODE_TRAIN) + 63) & ~(size_t)63;
    if (bytes + LGELU__GUARD > net->internal.scratch_bytes)
        return NULL;
    return lgelu__behind(net->internal.scratch, bytes);
}

/* Returns the guard of buffer `which` of node i; NULL if it is not in use at this time of the
   memory plan. */
static void *lgelu__guard_of_buffer(const lgelu_net *net, int i, int which, int time)
{
    const lgelu_buffer *b = net->nodes[i].internal.buffer + which;
    if (!b->bytes || b->from > time || time > b->to)
        return NULL;
    return lgelu__behind(net->internal.arena + b->at, b->bytes);
}

/* Sets all guards before a node runs, at a time of the memory plan. Fails if an array's was written
   to since the last node ran. */
static void lgelu__guards_before(lgelu_net *net, lgelu_node *node, int time)
{
    const char *array;
    void *guard;
    int i, k;
    if (!LGELU__GUARD)
        return;
    net->internal.broken = 0;
    array = lgelu__broken_array(net);
    if (array) {
        lgelu__fail(net, LGELU_E_MEMORY,
                    "%n: before it ran, something had been written past the end of the %s", node,
                    array);
    }
    lgelu__guard_arrays(net, 1);
    for (i = 0; i < net->count; i++) {
        for (k = 0; k < 4; k++) {
            guard = lgelu__guard_of_buffer(net, i, k, time);
            if (guard)
                lgelu__guard_set(guard);
        }
    }
    guard = lgelu__guard_of_work(net, node);
    if (guard)
        lgelu__guard_set(guard);
}

/* Fails if the node that ran has written to a guard of a buffer. `what` it did is for the
   message. */
static void lgelu__check_guards_of_buffers(lgelu_net *net, const lgelu_node *node, int time,
                                           const char *what)
{
    static const char *const of[4] = { "value", "gradient", "notes for the backward", "scratch" };
    int i, k;
    for (i = 0; i < net->count; i++) {
        for (k = 0; k < 4; k++) {
            void *guard = lgelu__guard_of_buffer(net, i, k, time);
            if (guard && lgelu__guard_broken(guard)) {
                lgelu__fail(net, LGELU_E_MEMORY, "%n: its %s wrote past the end of the %s of %n",
                            node, what, of[k], net->nodes + i);
            }
        }
    }
}

/* Fails if a guard was written to while the node ran. */
static void lgelu__guards_after(lgelu_net *net, lgelu_node *node, int time)
{
    const char *what = time < net->count ? "forward" : "backward", *array;
    void *guard;
    if (!LGELU__GUARD)
        return;
    array = lgelu__broken_array(net);
    if (array) {
        lgelu__fail(net, LGELU_E_MEMORY, "%n: its %s wrote past the end of the %s", node, what,
                    array);
    }
    guard = lgelu__guard_of_work(net, node);
    if (guard && lgelu__guard_broken(guard))
        lgelu__fail(net, LGELU_E_MEMORY, "%n: its %s wrote past its workspace", node, what);
    if (net->internal.broken) {
        lgelu__fail(net, LGELU_E_MEMORY,
                    "%n: its %s wrote past the workspace of a product's worker", node, what);
    }
    lgelu__check_guards_of_buffers(net, node, time, what);
}

/* ---- first weights ---- */

/* Returns the s of a λ: infinity for ReLU's on every map, and for no other λ: the largest float is
   the s of the sigmoid map's λmax, and of a λ whose s is larger. */
static float lgelu__s_of(const lgelu_lambda_map *map, float lambda)
{
    const float s = lgelu_lambda_inverse(map, lambda);
    if (lambda > FLT_MAX)
        return lambda;
    return s > FLT_MAX ? FLT_MAX : s;
}

/* Returns the λ of such an s. */
static float lgelu__lambda_of(const lgelu_lambda_map *map, float s)
{
    return s > FLT_MAX ? s : lgelu_lambda(map, s);
}

/* Random number j of a layer's matrix is that of (seed, node, j), so that tasks draw them in any
   order. */
typedef struct {
    lgelu_net *net;
    int node;
    uint64_t seed;
} lgelu__first;

/* Draws the elements from j to end - 1 of a matrix from the normal distribution. */
static void lgelu__draw_normal(const lgelu__first *p, float *w, size_t j, size_t end)
{
    const float deviation = p->net->nodes[p->node].deviation;
    for (; j < end; j += 2) {
        double x[2];
        lgelu__normal_pair(x, p->seed, (uint64_t)p->node, j / 2);
        w[j] = deviation * (float)x[0];
        if (j + 1 < end)
            w[j + 1] = deviation * (float)x[1];
    }
}

/* The same, uniformly within ±√(6/inputs) (He) or ±√(6/(inputs + outputs)) (Glorot), where each
   input of a convolution reaches as many outputs as the window has elements. */
static void lgelu__draw_uniform(const lgelu__first *p, float *w, size_t j, size_t end)
{
    const lgelu_node *node = p->net->nodes + p->node;
    const double rows = (double)lgelu__matrix_rows(node), in = (double)node->weight_count / rows;
    double out = rows;
    float bound;
    if (node->op == LGELU_OP_CONV)
        out *= (double)(node->window[0] * node->window[1]) / (double)node->groups;
    bound = (float)sqrt(6 / (node->init == LGELU_INIT_GLOROT ? in + out : in));
    for (; j < end; j++)
        w[j] = (2 * lgelu_uniform(p->seed, (uint64_t)p->node, j) - 1) * bound;
}

/* Draws one task's part of a matrix. Rows of a value are always normal. */
static void lgelu__first_range(size_t index, void *user)
{
    const lgelu__first *p = (const lgelu__first *)user;
    const lgelu_node *node = p->net->nodes + p->node;
    float *w = p->net->w + node->weight_at;
    const size_t j = index * LGELU__TASK_PARAMETERS;
    const size_t end = lgelu__min(node->weight_count, j + LGELU__TASK_PARAMETERS);
    if (node->init == LGELU_INIT_NORMAL || lgelu__is_a(node, LGELU__LOOKUP))
        lgelu__draw_normal(p, w, j, end);
    else
        lgelu__draw_uniform(p, w, j, end);
}

/* Returns the first value of bias j of node i: gains start at 1, rows of a value are normal, a
   custom gate says where its parameters start, and all others start at 0. */
static float lgelu__first_bias(const lgelu_net *net, int i, size_t j, uint64_t seed)
{
    const lgelu_node *node = net->nodes + i;
    if (node->custom)
        return node->custom->start;
    if (lgelu__is_a(node, LGELU__LOOKUP))
        return node->deviation * lgelu_normal(seed, (uint64_t)i, j);
    return lgelu__is_a(node, LGELU_TRAIT_NORM) && j < node->shape[2] ? 1.0f : 0.0f;
}

/* Sets the first parameters, statistics and λ's of node i. Returns 0 if its λ is not on the map. */
static int lgelu__first_values(lgelu_net *net, int i, uint64_t seed)
{
    const lgelu_node *node = net->nodes + i;
    const int learns = lgelu_gate_is((int)node->gate, LGELU_GATE_TRAIT_LEARNED);
    lgelu__first first;
    size_t j;
    first.net = net;
    first.node = i;
    first.seed = seed;
    lgelu__parallel(&net->threads, lgelu__first_range, &first,
                    (node->weight_count + LGELU__TASK_PARAMETERS - 1) / LGELU__TASK_PARAMETERS);
    for (j = 0; j < node->bias_count; j++)
        net->w[node->bias_at + j] = lgelu__first_bias(net, i, j, seed);
    /* Running means start at 0, running variances at 1. */
    for (j = node->state_count / 2; j < node->state_count; j++)
        net->state[node->state_at + j] = 1;
    for (j = 0; j < (size_t)node->lambda_count; j++) {
        const size_t k = (size_t)node->first_lambda + j;
        net->lambda[k] = learns ? node->lambda0 : lgelu__fixed_lambda(node->gate);
        net->s[k] = lgelu__s_of(&net->lambda_map, net->lambda[k]);
        if (learns && net->s[k] != net->s[k])
            return 0;
    }
    return 1;
}

/* ---- bytes and make ---- */

LGELU_DEF size_t lgelu_net_bytes(lgelu_net *net, size_t batch, lgelu_mode mode)
{
    if (lgelu__begin_call(net))
        return 0;
    if (net->memory) {
        lgelu__fail(net, LGELU_E_ARGUMENT, "the network is already made");
        return 0;
    }
    return lgelu__layout(net, NULL, batch, mode);
}

static lgelu_status lgelu__nearest_net_make(lgelu_net *net, void *memory, size_t bytes,
                                            size_t batch, lgelu_mode mode, uint64_t seed)
{
    const size_t need = lgelu_net_bytes(net, batch, mode);
    int i;
    if (!need || lgelu__check_unique_names(net))
        return net->status;
    if (!memory) {
        return lgelu__fail(net, LGELU_E_MEMORY, "expected a block of %z bytes, found NULL", need);
    }
    if (bytes < need) {
        return lgelu__fail(net, LGELU_E_MEMORY, "expected a block of %z bytes, found %z", need,
                           bytes);
    }
    lgelu__layout(net, (unsigned char *)memory, batch, mode);
    memset(memory, 0,
           (size_t)((unsigned char *)(void *)net->internal.scratch - (unsigned char *)memory));
    /* The workspace of products is not cleared: pages that no thread writes to use no memory. */
    if (net->internal.arena_bytes)
        memset(net->internal.arena, 0, net->internal.arena_bytes);
    if (LGELU__GUARD)
        lgelu__guard_arrays(net, 0);
    net->memory = (unsigned char *)memory;
    net->batch = batch;
    net->mode = mode;
    net->seed = seed;
    net->internal.fresh = 1;
    net->internal.gradient_scale = net->internal.loss_scale = 1;
    net->prepacked_valid = 0;
    for (i = 0; i < net->count; i++) {
        if (lgelu__first_values(net, i, seed))
            continue;
        /* After an error nothing points to the block. */
        net->memory = NULL;
        lgelu__layout(net, NULL, batch, mode);
        return lgelu__fail(net, LGELU_E_LAMBDA, "%n: its first λ is not on the network's map",
                           net->nodes + i);
    }
    return LGELU_OK;
}

LGELU_DEF lgelu_status lgelu_net_make(lgelu_net *net, void *memory, size_t bytes, size_t batch,
                                      lgelu_mode mode, uint64_t seed)
{
    lgelu_status result;
    LGELU__TO_NEAREST(result = lgelu__nearest_net_make(net, memory, bytes, batch, mode, seed));
    return result;
}

/* ---- [8c] layers: builder, workspace, forward, backward of each ---- */

/* ---- inputs: values, tokens, labels ---- */

LGELU_DEF int lgelu_input(lgelu_net *net, const char *name, size_t rows, size_t columns,
                          size_t channels)
{
    return lgelu__append_source(net, LGELU_OP_INPUT, name, rows, columns, channels);
}

LGELU_DEF int lgelu_tokens(lgelu_net *net, const char *name, size_t count, size_t vocabulary)
{
    return lgelu__append_source(net, LGELU_OP_TOKENS, name, 1, count, vocabulary);
}

LGELU_DEF int lgelu_labels(lgelu_net *net, const char *name, size_t count, size_t classes)
{
    return lgelu__append_source(net, LGELU_OP_LABELS, name, 1, count, classes);
}

/* Copies the bound integers into the node's value, which the backward reads as well. Their range
   has been checked by lgelu__check_forward. Labels are not read while tokens are generated. */
static lgelu_status lgelu__integers_forward(lgelu__job *p)
{
    const lgelu_node *node = p->node;
    const int32_t *x = (const int32_t *)node->internal.bound;
    if (!x || (node->op == LGELU_OP_LABELS && p->net->internal.tokens))
        return LGELU_OK;
    memcpy(p->y, x + p->net->internal.from, p->rows * sizeof *x);
    return LGELU_OK;
}

/* ---- the matrices of layers as operands, prepacked or not ---- */

/* The second operand of y = x Wᵀ: Wᵀ itself or, if `panels` is not NULL, a copy that is prepacked
   for these kernels. */
typedef struct {
    lgelu_matrix matrix;
    const lgelu__kernels *panels;
} lgelu__operand;

/* Returns the floats of the panels of Wᵀ, W (out, k): as many for each instruction set. */
LGELU__APART size_t lgelu__panel_floats(size_t out, size_t k)
{
    return lgelu__times(k, lgelu__plus(out, 31) / 32 * 32);
}

/* The copy of a matrix (outputs, k) in panels; a convolution with groups has none. */
static size_t lgelu__matrix_prepack(const lgelu_net *net, const lgelu_node *node,
                                    const lgelu__kernels *isa, float *to)
{
    const size_t out = node->shape[2];
    const size_t k =
        node->op == LGELU_OP_CONV ? node->weight_count / out : net->nodes[node->input[0]].shape[2];
    if (node->groups > 1)
        return 0;
    if (to) {
        const lgelu_matrix w = lgelu__transpose(net->w + node->weight_at, k);
        isa->copy(to, isa->cols, k * isa->cols, &w, 0, k, 0, out);
    }
    return lgelu__panel_floats(out, k);
}

/* Returns a node's prepacked copy, or NULL if there is no valid one. */
static const float *lgelu__prepacked_of(const lgelu_net *net, const lgelu_node *node)
{
    if (!net->prepacked_valid || !node->internal.prepacked_at)
        return NULL;
    return net->internal.prepacked + node->internal.prepacked_at - 1;
}

/* Returns the kernels for which the network's matrices are prepacked. */
static const lgelu__kernels *lgelu__prepacked_for(const lgelu_net *net)
{
    return lgelu__kernels_of[net->prepacked_valid - 1];
}

/* Returns Wᵀ of the rows of W (…, k) from `row` on. A prepacked matrix is always used as a
   whole. */
static lgelu__operand lgelu__weights(const lgelu__job *p, size_t row, size_t k)
{
    const float *prepacked = lgelu__prepacked_of(p->net, p->node);
    lgelu__operand w;
    if (prepacked) {
        w.matrix = lgelu__matrix(prepacked, 0);
        w.panels = lgelu__prepacked_for(p->net);
    } else {
        w.matrix = lgelu__transpose(p->w + row * k, k);
        w.panels = NULL;
    }
    return w;
}

/* Computes a product of a layer in the network's workspace, on its threads. */
static void lgelu__net_multiply(lgelu_net *net, const lgelu_product *job,
                                const lgelu__kernels *panels)
{
    lgelu__multiply_panels(job, panels, net->internal.scratch, &net->threads,
                           &net->internal.broken);
}

/* ---- linear layers ---- */

LGELU_DEF int lgelu_linear(lgelu_net *net, const char *name, int x, size_t outputs)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_LINEAR, name, x, -1);
    const size_t inputs = node.shape[2];
    node.bias_count = node.shape[2] = outputs;
    return lgelu__append_with_matrix(net, &node, outputs, inputs);
}

LGELU_DEF int lgelu_linear_no_bias(lgelu_net *net, const char *name, int x, size_t outputs)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_LINEAR, name, x, -1);
    const size_t inputs = node.shape[2];
    node.shape[2] = outputs;
    return lgelu__append_with_matrix(net, &node, outputs, inputs);
}

LGELU_DEF int lgelu_linear_tied(lgelu_net *net, const char *name, int x, int embedding)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_LINEAR, name, x, -1);
    const lgelu_node *table = net->nodes + embedding;
    if (embedding < 0 || embedding >= net->count || table->op != LGELU_OP_EMBEDDING) {
        lgelu__fail(net, LGELU_E_ARGUMENT, "%n: expected an embedding, whose matrix it shares",
                    &node);
    } else if (table->shape[2] != node.shape[2]) {
        lgelu__fail(net, LGELU_E_SHAPE, "%n: expected an embedding of %z channels, found %z", &node,
                    node.shape[2], table->shape[2]);
    } else {
        node.shape[2] = table->weight_count / table->shape[2];
    }
    node.tied = net->status ? 0 : embedding + 1;
    return lgelu__append(net, &node);
}

/* Returns the bytes of workspace for y (m, n) = x (m, k) Wᵀ, and for dW and dx. */
static size_t lgelu__products_bytes(size_t m, size_t n, size_t k)
{
    const size_t y = lgelu_multiply_bytes(m, n, k);
    const size_t dw = lgelu_multiply_bytes(n, k, m);
    const size_t dx = lgelu_multiply_bytes(m, k, n);
    return lgelu__max(y, lgelu__max(dw, dx));
}

static size_t lgelu__linear_work(const lgelu__job *p, int train)
{
    const size_t out = p->channels, in = p->from->shape[2];
    return train ? lgelu__products_bytes(p->rows, out, in) : lgelu_multiply_bytes(p->rows, out, in);
}

/* The linear layer: y (rows, out) = x (rows, in) Wᵀ + b, with W (out, in). */
static lgelu_status lgelu__linear_forward(lgelu__job *p)
{
    const size_t out = p->channels, in = p->from->shape[2];
    const lgelu__operand w = lgelu__weights(p, 0, in);
    const lgelu_custom_linear *custom = &p->net->custom_linear;
    lgelu_product y =
        lgelu__product_make(p->rows, out, in, p->y, out, lgelu__matrix(p->x, in), w.matrix);
    if (custom->run && p->net->mode != LGELU_MODE_TRAIN
        && custom->run(p->y, p->x, p->rows, p->net, p->node, custom->user))
        return LGELU_OK;
    y.bias = p->bias;
    lgelu__net_multiply(p->net, &y, w.panels);
    return LGELU_OK;
}

/* Computes db = Σ dy over the rows. */
LGELU__APART void lgelu__bias_backward(const lgelu__job *p)
{
    if (p->bias) {
        lgelu_column_sums(p->dbias, p->dy, p->channels, p->rows, p->channels, p->add_dbias,
                          &p->net->threads);
    }
}

/* Computes dW = dyᵀ x, db and dx = dy W. */
static void lgelu__linear_backward(lgelu__job *p)
{
    const size_t out = p->channels, in = p->from->shape[2];
    lgelu_product dw = lgelu__product_make(out, in, p->rows, p->dw, in,
                                           lgelu__transpose(p->dy, out), lgelu__matrix(p->x, in));
    lgelu_product dx;
    dw.accumulate = p->add_dw;
    lgelu__net_multiply(p->net, &dw, NULL);
    lgelu__bias_backward(p);
    if (!p->dx[0])
        return;
    dx = lgelu__product_make(p->rows, in, out, p->dx[0], in, lgelu__matrix(p->dy, out),
                             lgelu__matrix(p->w, in));
    lgelu__net_multiply(p->net, &dx, NULL);
}

/* ---- gates: y = f(x), dx = dy·f'(x), dλ = Σ dy·∂f/∂λ ---- */

/* To add a kind of gate (ELU is a small example to follow): add its row to LGELU_GATES in [1], at
   the end, then run `make -C tests test_places` until it passes. It prints what is still missing, a
   line each, in these places (counted with Mish):

   In this file, where the family is new
     1. LGELU__FAMILIES in [4]: one row.
     2. Its exact function in [3], and its kernels, forward and backward, in [Kc]. Those on 16 bits
        follow from these.
     3. [1]: the declarations of its six public functions, lgelu_elu_forward and the others, and
        the rows of its claims.
   In examples
     4. network/onnx_out.c: the operators of a file. A network with the gate in tools/onnx_nets.c of
        tests, which test_onnx evaluates.
   In tests
     5. tools/reference_net.h: the formula in double. The tests that walk the table train and
        compare the gate from then on: test_network.c, test_exceptions.c, fuzz_network.c.
     6. kernels/sweep.c: the claims, held to every float. A test of special values as test_elu.c; a
        call in test_flushing.c, test_rounding.c, test_exceptions.c and test_inside.c; a hash in
        test_same_bits.c (make record). */

/* A row of the table of gates. The kernels of its family are indexed by lgelu_isa_id. */
typedef struct {
    const char *file, *name;
    lgelu__forward_function *const *forward;
    lgelu__backward_function *const *backward;
    float lambda;
    unsigned traits;
} lgelu__gate_row;

#define lgelu__custom_forward_of NULL
#define lgelu__custom_backward_of NULL
#define LGELU__GATE(kind, file, name, family, lambda, traits) \
    { file, name, lgelu__##family##_forward_of, lgelu__##family##_backward_of, lambda, traits },
static const lgelu__gate_row lgelu__gates[LGELU_GATE_COUNT] = { LGELU_GATES(LGELU__GATE) };
#undef lgelu__custom_forward_of
#undef lgelu__custom_backward_of
#undef LGELU__GATE

LGELU_DEF int lgelu_gate_is(int kind, unsigned traits)
{
    return kind >= 0 && kind < LGELU_GATE_COUNT && (lgelu__gates[kind].traits & traits) != 0;
}

LGELU_DEF const char *lgelu_gate_name(int kind)
{
    return kind < 0 || kind >= LGELU_GATE_COUNT ? "?" : lgelu__gates[kind].name;
}

LGELU_DEF void lgelu_gate_forward(lgelu_gate_kind kind, float *y, const float *x, float lambda,
                                  size_t n)
{
    const lgelu__gate_row *row = lgelu__gates + kind;
    LGELU_ASSERT(row->forward);
    LGELU__GIVEN(n, y && x);
    if (!(row->traits & LGELU_GATE_TRAIT_LEARNED))
        lambda = row->lambda;
    LGELU__TO_NEAREST(row->forward[lgelu_isa()](y, x, lambda, n));
}

/* Returns the λ of a gate that learns none: infinity for ReLU, 1 for the others. */
static float lgelu__fixed_lambda(lgelu_gate_kind kind) { return lgelu__gates[kind].lambda; }

static int lgelu__append_gate(lgelu_net *net, const char *name, int x, lgelu_gate_kind kind,
                              float lambda, int channels)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_GATE, name, x, -1);
    const int learns = lgelu_gate_is((int)kind, LGELU_GATE_TRAIT_LEARNED);
    if ((unsigned)kind >= LGELU_GATE_COUNT)
        lgelu__fail(net, LGELU_E_ARGUMENT, "%n: unknown kind of gate %d", &node, (long)kind);
    if (kind == LGELU_GATE_CUSTOM) {
        if (net->custom_gate && net->custom_gate->forward && net->custom_gate->backward) {
            node.bias_count = net->custom_gate->parameters;
        } else {
            lgelu__fail(net, LGELU_E_ARGUMENT,
                        "%n: the custom gate or one of its functions is NULL", &node);
        }
        node.custom = net->custom_gate;
    }
    if (learns && !(lambda >= 1))
        lgelu__fail(net, LGELU_E_LAMBDA, "%n: expected a λ of at least 1", &node);
    if (channels && node.shape[2] > 0xFFFFFF) {
        lgelu__fail(net, LGELU_E_SHAPE, "%n: expected at most 16777215 channels, found %z", &node,
                    node.shape[2]);
    }
    node.gate = kind;
    /* Read if lgelu_net_set_gates changes the kind before the network is made. */
    node.lambda0 =
        learns || (unsigned)kind >= LGELU_GATE_COUNT ? lambda : lgelu__fixed_lambda(kind);
    node.lambda_count = channels ? (int)node.shape[2] : 1;
    /* Whatever its kind: lgelu_net_set_gates may replace it by one that learns its λ. */
    node.internal.learns = 1;
    return lgelu__append(net, &node);
}

LGELU_DEF int lgelu_gate(lgelu_net *net, const char *name, int x, lgelu_gate_kind kind,
                         float lambda)
{
    return lgelu__append_gate(net, name, x, kind, lambda, 0);
}

LGELU_DEF int lgelu_gate_custom(lgelu_net *net, const char *name, int x,
                                const lgelu_custom_gate *gate)
{
    const lgelu_custom_gate *before = net->custom_gate;
    int node;
    net->custom_gate = gate;
    node = lgelu__append_gate(net, name, x, LGELU_GATE_CUSTOM, 1, 0);
    net->custom_gate = before;
    return node;
}

LGELU_DEF int lgelu_gate_channels(lgelu_net *net, const char *name, int x, float lambda)
{
    return lgelu__append_gate(net, name, x, LGELU_GATE_LAMBDA, lambda, 1);
}

/* Returns whether a gate, as it was built, can be of this kind: a custom gate needs its functions,
   and of the kinds that learn only those of x·Φ(λx) can have one λ per channel. */
static int lgelu__can_be(const lgelu_node *node, lgelu_gate_kind kind)
{
    if (kind == LGELU_GATE_CUSTOM)
        return node->custom != NULL;
    return node->lambda_count == 1 || lgelu_gate_is((int)kind, LGELU_GATE_TRAIT_PHI)
           || !lgelu_gate_is((int)kind, LGELU_GATE_TRAIT_LEARNED);
}

/* Each range stores its own sums in aux: the dλ's, then the gradients of a custom gate's
   parameters. lgelu__gate_backward adds them in the order of the ranges. */

/* Returns the sums of one range. */
static size_t lgelu__gate_sums(const lgelu_node *node)
{
    return (size_t)node->lambda_count + node->bias_count;
}

static size_t lgelu__gate_aux(const lgelu__job *p)
{
    const size_t sums = lgelu__times(lgelu__task_count(p), lgelu__gate_sums(p->node));
    return lgelu__times(sums, sizeof(double));
}

/* Returns the number of the first value of a row, which a generation counts from the first token
   on. */
static size_t lgelu__first_value(const lgelu__job *p, size_t row)
{
    return (p->net->internal.from + row) * p->channels;
}

/* Computes rows of a gate's value from x. */
static void lgelu__gate_rows_forward(const lgelu__job *p, const float *x, size_t row, size_t rows)
{
    const lgelu_node *node = p->node;
    const float *lambda = p->net->lambda + node->first_lambda;
    const size_t c = p->channels, n = rows * c;
    float *y = p->y + row * c;
    if (node->gate == LGELU_GATE_CUSTOM) {
        node->custom->forward(y, x, n, lgelu__first_value(p, row), p->net, node,
                              node->custom->user);
    } else if (node->lambda_count > 1 && lgelu_gate_is((int)node->gate, LGELU_GATE_TRAIT_PHI)) {
        lgelu_forward_channels(y, x, lambda, rows, c, 1);
    } else {
        lgelu__gates[node->gate].forward[lgelu_isa()](y, x, *lambda, n);
    }
}

/* Computes rows of dx, unless it is not needed, and adds to the sums of the range. */
static void lgelu__gate_rows_backward(const lgelu__job *p, double *sums, const float *x, size_t row,
                                      size_t rows)
{
    const lgelu_node *node = p->node;
    const float *lambda = p->net->lambda + node->first_lambda;
    const size_t c = p->channels, n = rows * c;
    const float *dy = p->dy + row * c;
    float *dx = p->dx[0] ? p->dx[0] + row * c : NULL;
    if (node->gate == LGELU_GATE_CUSTOM) {
        node->custom->backward(dx, sums + node->lambda_count, dy, x, n, lgelu__first_value(p, row),
                               p->net, node, node->custom->user);
    } else if (node->lambda_count > 1 && lgelu_gate_is((int)node->gate, LGELU_GATE_TRAIT_PHI)) {
        lgelu_backward_channels(dx, sums, dy, x, lambda, rows, c, 1);
    } else {
        *sums += lgelu__gates[node->gate].backward[lgelu_isa()](dx, dy, x, *lambda, n);
    }
}

/* Computes a range of a gate's value, or of its gradients. If the input is fused with the gate, it
   is computed into a buffer, a few rows at a time. */
static void lgelu__gate_range(const lgelu__job *p, size_t row, size_t rows)
{
    const int fused = p->scale || p->b;
    const size_t c = p->channels, end = row + rows, sums = lgelu__gate_sums(p->node);
    const size_t step = fused ? LGELU__GATE_BUFFER / c : rows;
    double *sum = p->sum + row / p->rows_per_task * sums;
    float buffer[LGELU__GATE_BUFFER];
    if (p->dy)
        memset(sum, 0, sums * sizeof *sum);
    while (row < end) {
        const size_t n = lgelu__min(end - row, step);
        const float *x = fused ? buffer : p->x + row * c;
        if (fused)
            lgelu__affine(p, buffer, row, n);
        if (p->dy)
            lgelu__gate_rows_backward(p, sum, x, row, n);
        else
            lgelu__gate_rows_forward(p, x, row, n);
        row += n;
    }
}

static void lgelu__gate_backward(lgelu__job *p)
{
    const size_t n = (size_t)p->node->lambda_count, sums = lgelu__gate_sums(p->node);
    double *dlambda = p->net->dlambda + p->node->first_lambda;
    size_t i;
    lgelu__for_rows(p, lgelu__gate_range);
    if (!p->add_dbias)
        memset(dlambda, 0, n * sizeof *dlambda);
    /* The sums of parameters are added up in those of the first range. */
    for (i = 0; i < lgelu__task_count(p) * sums; i++) {
        const size_t k = i % sums;
        if (k < n)
            dlambda[k] += p->sum[i];
        else if (i >= sums)
            p->sum[k] += p->sum[i];
    }
    for (i = n; i < sums; i++) {
        const double before = p->add_dbias ? (double)p->dbias[i - n] : 0;
        p->dbias[i - n] = (float)(before + p->sum[i]);
    }
}

/* ---- sigmoid ---- */

LGELU_DEF int lgelu_sigmoid(lgelu_net *net, const char *name, int x)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_SIGMOID, name, x, -1);
    return lgelu__append(net, &node);
}

static void lgelu__sigmoid_range(const lgelu__job *p, size_t row, size_t rows)
{
    const size_t at = row * p->channels, n = rows * p->channels;
    if (p->dy)
        lgelu__k()->sigmoid_backward(p->dx[0] + at, p->dy + at, p->x + at, n);
    else
        lgelu__k()->sigmoid(p->y + at, p->x + at, n);
}

/* ---- sums: y = a + b, da = db = dy ---- */

/* Returns a node with two inputs of equal shape. A negative b, which lgelu__node would take for a
   node with one input, becomes an index that it refuses. */
static lgelu_node lgelu__node_of_pair(lgelu_net *net, lgelu_op op, const char *name, int a, int b)
{
    lgelu_node node = lgelu__node(net, op, name, a, b < 0 ? net->count : b);
    const lgelu_node *p, *q;
    if (net->status)
        return node;
    p = net->nodes + a;
    q = net->nodes + b;
    if (memcmp(p->shape, q->shape, sizeof p->shape)) {
        lgelu__fail(
            net, LGELU_E_SHAPE,
            "%n: expected inputs of one shape, found '%s' of %z x %z x %z and '%s' of %z x %z x %z",
            &node, p->name, p->shape[0], p->shape[1], p->shape[2], q->name, q->shape[0],
            q->shape[1], q->shape[2]);
    }
    return node;
}

LGELU_DEF int lgelu_add(lgelu_net *net, const char *name, int a, int b)
{
    lgelu_node node = lgelu__node_of_pair(net, LGELU_OP_ADD, name, a, b);
    return lgelu__append(net, &node);
}

/* Returns whether the value of node i can still be read in step `until`. */
static int lgelu__value_lasts(const lgelu_net *net, int i, int until)
{
    const lgelu_node *x = net->nodes + net->nodes[i].internal.value_node;
    return x->op == LGELU_OP_INPUT || x->internal.buffer[LGELU__VALUE].to >= until;
}

/* Returns whether a sum is fused with its only reader, a gate. In training the gate computes the
   sum in the forward and once more in the backward, from two values that are kept until then for
   other reasons. */
static int lgelu__add_fuses(const lgelu__use *p)
{
    const int until = 2 * p->net->count - 1 - p->reader;
    return p->train && p->reader >= 0 && p->net->nodes[p->reader].op == LGELU_OP_GATE
           && p->node->shape[2] <= LGELU__GATE_BUFFER
           && lgelu__value_lasts(p->net, p->node->input[0], until)
           && lgelu__value_lasts(p->net, p->node->input[1], until);
}

/* The backward of sums and views. The memory plan usually stores the gradient of an input where dy
   is; otherwise it is copied. */
static void lgelu__pass_backward(lgelu__job *p)
{
    int k;
    for (k = 0; k < 2; k++) {
        if (p->dx[k] && p->dx[k] != p->dy)
            memcpy(p->dx[k], p->dy, p->rows * p->channels * sizeof(float));
    }
}

/* ---- products: y = a·b, da = dy·b, db = dy·a ---- */

LGELU_DEF int lgelu_mul(lgelu_net *net, const char *name, int a, int b)
{
    lgelu_node node = lgelu__node_of_pair(net, LGELU_OP_MUL, name, a, b);
    return lgelu__append(net, &node);
}

static void lgelu__mul_range(const lgelu__job *p, size_t row, size_t rows)
{
    const size_t at = row * p->channels, n = rows * p->channels;
    const float *a = p->x + at, *b = lgelu__input_value(p->net, p->node, 1) + at;
    if (!p->dy)
        lgelu__k()->mul(p->y + at, a, b, n);
    if (p->dx[0])
        lgelu__k()->mul(p->dx[0] + at, p->dy + at, b, n);
    if (p->dx[1])
        lgelu__k()->mul(p->dx[1] + at, p->dy + at, a, n);
}

static void lgelu__mul_backward(lgelu__job *p)
{
    if (p->dx[0] || p->dx[1])
        lgelu__for_rows(p, lgelu__mul_range);
}

/* ---- windows of convolutions and pools ---- */

/* Returns a square window. */
static lgelu_window lgelu__square_window(size_t kernel, size_t stride, size_t padding)
{
    lgelu_window w;
    w.kernel[0] = w.kernel[1] = kernel;
    w.stride[0] = w.stride[1] = stride;
    w.padding[0] = w.padding[1] = padding;
    w.dilation[0] = w.dilation[1] = 1;
    return w;
}

/* Returns the caller's window with its defaults; of size 0, which is refused, for NULL. */
static lgelu_window lgelu__completed_window(const lgelu_window *window)
{
    lgelu_window w = lgelu__square_window(0, 1, 0);
    int d;
    if (!window)
        return w;
    w = *window;
    for (d = 0; d < 2; d++) {
        w.stride[d] += !w.stride[d];
        w.dilation[d] += !w.dilation[d];
    }
    return w;
}

/* Refuses a window that does not fit the pixels of a node's input in direction d. */
static void lgelu__refuse_window(lgelu_net *net, const lgelu_node *node, const lgelu_window *w,
                                 int d)
{
    if (w->dilation[d] == 1) {
        lgelu__fail(net, LGELU_E_SHAPE,
                    "%n: a window of %z with stride %z and padding %z does not fit %z pixels", node,
                    w->kernel[d], w->stride[d], w->padding[d], node->shape[d]);
    } else {
        lgelu__fail(net, LGELU_E_SHAPE,
                    "%n: a window of %z with dilation %z, stride %z and padding %z does not fit %z "
                    "pixels",
                    node, w->kernel[d], w->dilation[d], w->stride[d], w->padding[d],
                    node->shape[d]);
    }
}

/* Returns a node that reads windows of its input. Its shape is that of the windows' positions. */
static lgelu_node lgelu__node_of_window(lgelu_net *net, lgelu_op op, const char *name, int x,
                                        const lgelu_window *w)
{
    enum { MOST = 65535 };
    lgelu_node node = lgelu__node(net, op, name, x, -1);
    int d;
    node.groups = 1;
    for (d = 0; d < 2; d++) {
        const size_t pixels = node.shape[d] + 2 * w->padding[d];
        const int small = w->kernel[d] && w->kernel[d] <= MOST && w->dilation[d] <= MOST;
        const size_t extent = small ? (w->kernel[d] - 1) * w->dilation[d] + 1 : 0;
        node.window[d] = w->kernel[d];
        node.stride[d] = w->stride[d];
        node.padding[d] = w->padding[d];
        node.dilation[d] = w->dilation[d];
        if (extent && extent <= MOST && w->stride[d] && w->padding[d] < extent && pixels >= extent)
            node.shape[d] = (pixels - extent) / w->stride[d] + 1;
        else
            lgelu__refuse_window(net, &node, w, d);
    }
    return node;
}

/* ---- convolution ---- */

/* Returns whether the window of a convolution moves by one pixel at a time. */
static int lgelu__has_stride_1(const lgelu_node *node)
{
    return node->stride[0] == 1 && node->stride[1] == 1;
}

/* Returns whether each output pixel of a convolution is computed from one input pixel alone, and
   each input pixel is read. */
static int lgelu__pointwise(const lgelu_node *node)
{
    return node->window[0] == 1 && node->window[1] == 1 && lgelu__has_stride_1(node)
           && !node->padding[0] && !node->padding[1];
}

/* Returns whether each channel is a group of its own. */
static int lgelu__depthwise_groups(size_t in, size_t out, size_t groups)
{
    return groups > 1 && groups == in && groups == out;
}

/* Returns the elements of a window. */
static size_t lgelu__taps(const lgelu_node *node) { return node->window[0] * node->window[1]; }

/* Appends a convolution. */
static int lgelu__append_conv(lgelu_net *net, const char *name, int x, size_t outputs,
                              const lgelu_window *w, size_t groups, int bias)
{
    lgelu_node node = lgelu__node_of_window(net, LGELU_OP_CONV, name, x, w);
    const size_t in = node.shape[2], taps = lgelu__times(w->kernel[0], w->kernel[1]);
    const int depthwise = lgelu__depthwise_groups(in, outputs, groups);
    if (!groups || !outputs || in % groups || outputs % groups) {
        lgelu__fail(net, LGELU_E_SHAPE, "%n: %z channels to %z do not divide into %z groups", &node,
                    in, outputs, groups);
    }
    if (depthwise && taps > LGELU__TAPS) {
        lgelu__fail(net, LGELU_E_SHAPE,
                    "%n: expected a depthwise window of at most %d elements, found %z x %z", &node,
                    (long)LGELU__TAPS, w->kernel[0], w->kernel[1]);
    }
    node.groups = groups;
    node.shape[2] = outputs;
    node.bias_count = bias ? outputs : 0;
    node.internal.tokenwise = lgelu__pointwise(&node) && !depthwise;
    return lgelu__append_with_matrix(net, &node, outputs,
                                     groups ? lgelu__times(taps, in / groups) : 0);
}

LGELU_DEF int lgelu_conv(lgelu_net *net, const char *name, int x, size_t outputs, size_t kernel,
                         size_t stride, size_t padding, size_t groups, int bias)
{
    const lgelu_window w = lgelu__square_window(kernel, stride, padding);
    return lgelu__append_conv(net, name, x, outputs, &w, groups, bias);
}

LGELU_DEF int lgelu_conv_window(lgelu_net *net, const char *name, int x, size_t outputs,
                                const lgelu_window *window, size_t groups, int bias)
{
    const lgelu_window w = lgelu__completed_window(window);
    return lgelu__append_conv(net, name, x, outputs, &w, groups, bias);
}

/* METHOD. Three matrix products. P is the matrix of patches: a row for each output pixel, a column
   for each (tap row, tap column, channel). P is not stored: the product reads runs of whole pixels
   while it copies a block. y = P Wᵀ + b and dW = dyᵀ P. dx = Q W', where Q are the patches of dy
   and W' the taps in reverse order. Since W is stored as (outputs, tap row, tap column, channels),
   the columns of P and the rows of W' are contiguous. With strides s and t, the pixels of dx belong
   to s·t lattices: those whose row and column have the same remainders modulo s and t. A lattice
   meets only some of the taps, and has a product of its own, whose result is scattered into dx.

   With few channels, as in a first layer, P has few columns, and to store them takes as long as the
   product. There dW is computed without P, for each row of taps: its transpose is the sum over the
   lines of y of products (row of taps, line) · (line, outputs), whose first operand is read in
   place from a padded line of x. Each sum still runs over the pixels in order. */

/* dW of a convolution with few channels. */
enum {
    LGELU__LINE_TAPS = 24,    /* the most elements of a row of the window */
    LGELU__LINE_VALUES = 768, /* the fewest of a line of y: below, calls cost more than is saved */
    LGELU__LINE_OUTPUTS = 64  /* of a task */
};
typedef struct {
    const lgelu__job *job;
    size_t taps;         /* the elements of a row of the window */
    size_t line;         /* the floats of a padded line of x, and more */
    size_t tasks;        /* one for each row of taps and LGELU__LINE_OUTPUTS outputs */
    size_t worker_bytes; /* of workspace */
} lgelu__lines;

/* Returns whether dW is computed line by line. */
static int lgelu__has_lines(const lgelu_node *node, size_t in)
{
    return node->groups == 1 && node->dilation[1] == 1 && lgelu__taps(node) > 1
           && lgelu__times(node->window[1], in) <= LGELU__LINE_TAPS && node->shape[2] >= 16
           && node->shape[1] * node->shape[2] >= LGELU__LINE_VALUES;
}

/* Returns what the tasks of a layer that has lines have in common. */
static lgelu__lines lgelu__lines_make(const lgelu__job *job)
{
    const lgelu_node *node = job->node;
    const size_t in = job->from->shape[2];
    lgelu__lines l;
    l.job = job;
    l.taps = node->window[1] * in;
    l.line = ((node->shape[1] - 1) * node->stride[1] + node->window[1]) * in;
    l.line = (l.line + 15) / 16 * 16;
    l.tasks = node->window[0] * ((node->shape[2] - 1) / LGELU__LINE_OUTPUTS + 1);
    l.worker_bytes = (l.taps * LGELU__LINE_OUTPUTS + l.line) * sizeof(float)
                     + lgelu__workspace(l.taps, LGELU__LINE_OUTPUTS, node->shape[1], 1);
    return l;
}

static size_t lgelu__lines_bytes(const lgelu__job *job)
{
    const lgelu__lines l = lgelu__lines_make(job);
    return lgelu__min(l.tasks, LGELU__WORKERS) * l.worker_bytes;
}

/* Copies between dW and its transpose c, for one row of taps and `cols` outputs. */
static void lgelu__turn_lines(const lgelu__lines *l, float *c, float *dw, size_t cols, int back)
{
    const size_t k = l->job->node->weight_count / l->job->node->shape[2];
    size_t o, r;
    for (o = 0; o < cols; o++) {
        for (r = 0; r < l->taps; r++) {
            if (back)
                dw[o * k + r] = c[r * LGELU__LINE_OUTPUTS + o];
            else
                c[r * LGELU__LINE_OUTPUTS + o] = dw[o * k + r];
        }
    }
}

/* Computes dW of one row of taps and up to LGELU__LINE_OUTPUTS outputs. */
static void lgelu__line_task(const lgelu__lines *l, size_t task, float *c)
{
    const lgelu__job *job = l->job;
    const lgelu_node *node = job->node;
    const size_t *x = job->from->shape;
    const size_t tap = task % node->window[0], out = node->shape[2], pixels = node->shape[1];
    const size_t o = task / node->window[0] * LGELU__LINE_OUTPUTS;
    const size_t cols = lgelu__min(out - o, LGELU__LINE_OUTPUTS);
    const size_t width = (pixels - 1) * node->stride[1] + node->window[1] - node->padding[1];
    const size_t bytes = lgelu__min(width, x[1]) * x[2] * sizeof(float);
    float *line = c + l->taps * LGELU__LINE_OUTPUTS, *inside = line + node->padding[1] * x[2];
    float *dw = job->dw + o * (node->weight_count / out) + tap * l->taps;
    lgelu_product p = lgelu__product_make(l->taps, cols, pixels, c, LGELU__LINE_OUTPUTS,
                                          lgelu__transpose(line, node->stride[1] * x[2]),
                                          lgelu__matrix(job->dy + o, out));
    size_t i;
    memset(line, 0, l->line * sizeof *line);
    if (job->add_dw)
        lgelu__turn_lines(l, c, dw, cols, 0);
    for (i = 0; i < job->samples * node->shape[0]; i++) {
        /* It wraps around below 0, and is too large then. */
        const size_t row =
            i % node->shape[0] * node->stride[0] + tap * node->dilation[0] - node->padding[0];
        if (row < x[0])
            memcpy(inside, job->x + (i / node->shape[0] * x[0] + row) * x[1] * x[2], bytes);
        else
            memset(inside, 0, bytes);
        p.accumulate = job->add_dw || i > 0;
        lgelu__multiply(&p, line + l->line, NULL, &job->net->internal.broken);
        p.b.x += pixels * out;
    }
    lgelu__turn_lines(l, c, dw, cols, 1);
}

static void lgelu__line_worker(size_t worker, void *user)
{
    const lgelu__lines *l = (const lgelu__lines *)user;
    unsigned char *work = (unsigned char *)l->job->net->internal.scratch;
    size_t task;
    for (task = worker; task < l->tasks; task += LGELU__WORKERS)
        lgelu__line_task(l, task, (float *)(void *)(work + worker * l->worker_bytes));
}

/* Returns the bytes of a lattice's product, in whole cache lines, until it is scattered. */
static size_t lgelu__lattice_bytes(const lgelu_node *node, size_t pixels, size_t in)
{
    if (lgelu__has_stride_1(node))
        return 0;
    return lgelu__plus(lgelu__times(pixels, in * sizeof(float)), 63) & ~(size_t)63;
}

static size_t lgelu__conv_work(const lgelu__job *p, int train)
{
    const lgelu_node *node = p->node;
    const size_t *x = p->from->shape, *s = node->stride;
    const size_t out = p->channels / node->groups, in = x[2] / node->groups;
    const size_t taps = lgelu__taps(node);
    const size_t pixels =
        lgelu__times(p->samples, ((x[0] - 1) / s[0] + 1) * ((x[1] - 1) / s[1] + 1));
    const size_t y = lgelu_multiply_bytes(p->rows, out, taps * in);
    size_t dw, dx;
    if (!train)
        return y;
    dw = lgelu__has_lines(node, in) ? lgelu__lines_bytes(p)
                                    : lgelu_multiply_bytes(out, taps * in, p->rows);
    dx = lgelu__plus(lgelu_multiply_bytes(pixels, in, taps * out),
                     lgelu__lattice_bytes(node, pixels, in));
    return lgelu__max(y, lgelu__max(dw, dx));
}

/* Returns the images x of a node, restricted to the channels of one group. */
static lgelu__im2col lgelu__images_of_group(const float *x, const lgelu_node *node, size_t groups,
                                            size_t group)
{
    lgelu__im2col p;
    memset(&p, 0, sizeof p);
    p.channels = node->shape[2] / groups;
    p.x = x + group * p.channels;
    p.rows = node->shape[0];
    p.columns = node->shape[1];
    p.pixel = node->shape[2];
    return p;
}

/* Returns P of a group as an operand of a product, and sets *p, which the operand refers to. */
static lgelu_matrix lgelu__conv_matrix(const lgelu__job *job, size_t group, lgelu__im2col *p)
{
    const lgelu_node *node = job->node;
    lgelu_matrix x;
    int axis;
    *p = lgelu__images_of_group(job->x, job->from, node->groups, group);
    p->across = node->window[1];
    for (axis = 0; axis < 2; axis++) {
        p->step[axis] = node->stride[axis];
        p->dilation[axis] = node->dilation[axis];
        p->grid[axis] = node->shape[axis];
        p->origin[axis] = -(ptrdiff_t)node->padding[axis];
    }
    x = lgelu__matrix(p->x, p->pixel);
    if (!lgelu__pointwise(node)) {
        x.read = lgelu__k()->im2col;
        x.user = p;
    }
    return x;
}

static lgelu_status lgelu__conv_forward(lgelu__job *p)
{
    const lgelu_node *node = p->node;
    const size_t out = p->channels / node->groups, k = node->weight_count / p->channels;
    size_t g;
    for (g = 0; g < node->groups; g++) {
        lgelu__im2col patches;
        const lgelu_matrix x = lgelu__conv_matrix(p, g, &patches);
        const lgelu__operand w = lgelu__weights(p, g * out, k);
        lgelu_product y =
            lgelu__product_make(p->rows, out, k, p->y + g * out, p->channels, x, w.matrix);
        if (p->bias)
            y.bias = p->bias + g * out;
        lgelu__net_multiply(p->net, &y, w.panels);
    }
    return LGELU_OK;
}

/* A lattice of dx: the pixels first, first + stride, … It meets the taps last, last - every, … W'
   has a row for each (tap row, tap column, output) of them. */
typedef struct {
    const lgelu__job *job;
    const float *w; /* of the group */
    const float *c; /* the product before it is scattered */
    float *dx;      /* of the group */
    size_t first[2], last[2], every[2], taps[2];
    lgelu__im2col dy;
} lgelu__lattice;

/* Returns the greatest common divisor of two positive integers. */
static size_t lgelu__common_divisor(size_t a, size_t b)
{
    while (b) {
        const size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Sets a lattice's taps, its pixels and the place of dy's patches, in one direction: 0 vertically,
   1 horizontally. Pixel first + s·q meets tap i of output q + (at - i·d)/s, at = first + padding,
   if s divides at - i·d. With g the common divisor of s and d, these are the taps r, r + s/g, …,
   and their outputs are d/g apart. */
static void lgelu__lattice_axis(lgelu__lattice *l, int axis)
{
    const lgelu_node *node = l->job->node;
    const size_t s = node->stride[axis], d = node->dilation[axis], kernel = node->window[axis];
    const size_t common = lgelu__common_divisor(s, d), at = l->first[axis] + node->padding[axis];
    size_t r = 0;
    while (r < kernel && r * d % s != at % s)
        r++;
    l->every[axis] = s / common;
    l->taps[axis] = r < kernel ? (kernel - 1 - r) / l->every[axis] + 1 : 0;
    l->last[axis] = r < kernel ? r + (l->taps[axis] - 1) * l->every[axis] : 0;
    l->dy.step[axis] = 1;
    l->dy.dilation[axis] = d / common;
    l->dy.grid[axis] = (l->job->from->shape[axis] - 1 - l->first[axis]) / s + 1;
    l->dy.origin[axis] = ((ptrdiff_t)at - (ptrdiff_t)(l->last[axis] * d)) / (ptrdiff_t)s;
}

/* Returns the lattice of a group whose first pixel is (row, column). */
static lgelu__lattice lgelu__lattice_make(const lgelu__job *job, size_t group, size_t row,
                                          size_t column)
{
    const lgelu_node *node = job->node;
    lgelu__lattice l;
    l.job = job;
    l.c = job->net->internal.scratch;
    l.dx = job->dx[0] + group * (job->from->shape[2] / node->groups);
    l.dy = lgelu__images_of_group(job->dy, node, node->groups, group);
    l.w = job->w + group * l.dy.channels * (node->weight_count / node->shape[2]);
    l.first[0] = row;
    l.first[1] = column;
    lgelu__lattice_axis(&l, 0);
    lgelu__lattice_axis(&l, 1);
    l.dy.across = l.taps[1];
    return l;
}

/* Reads rows of W', for the product. */
static void lgelu__read_flipped(float *out, size_t out_row, size_t i, size_t rows, size_t j,
                                size_t cols, const void *user)
{
    const lgelu__lattice *l = (const lgelu__lattice *)user;
    const lgelu_node *node = l->job->node;
    const lgelu__kernels *isa = lgelu__k();
    const size_t channels = l->job->channels / node->groups;
    const size_t inputs = l->job->from->shape[2] / node->groups;
    lgelu_matrix w = lgelu__matrix(NULL, node->weight_count / node->shape[2]);
    while (rows) {
        const size_t tap = i / channels, output = i % channels;
        const size_t row = l->last[0] - tap / l->dy.across * l->every[0];
        const size_t column = l->last[1] - tap % l->dy.across * l->every[1];
        const size_t n = lgelu__min(rows, channels - output);
        w.x = l->w + (row * node->window[1] + column) * inputs;
        isa->copy(out, out_row, isa->cols, &w, output, n, j, cols);
        rows -= n;
        i += n;
        out += n * out_row;
    }
}

/* Stores a finished block of a lattice's product in dx, or adds it. */
static void lgelu__scatter_block(size_t i, size_t rows, size_t j, size_t cols, const void *user)
{
    const lgelu__lattice *l = (const lgelu__lattice *)user;
    const lgelu_node *node = l->job->node, *x = l->job->from;
    const size_t end = i + rows, in = x->shape[2] / node->groups;
    for (; i < end; i++) {
        const size_t line = i / l->dy.grid[1], sample = line / l->dy.grid[0];
        const size_t u = line % l->dy.grid[0] * node->stride[0] + l->first[0];
        const size_t v = i % l->dy.grid[1] * node->stride[1] + l->first[1];
        const size_t pixel = (sample * x->shape[0] + u) * x->shape[1] + v;
        const float *c = l->c + i * in + j;
        float *dx = l->dx + pixel * x->shape[2] + j;
        if (l->job->add)
            lgelu__k()->add(dx, dx, c, cols);
        else
            memcpy(dx, c, cols * sizeof *dx);
    }
}

/* Computes the pixels of dx of one lattice. */
static void lgelu__lattice_run(const lgelu__lattice *l)
{
    const lgelu__job *job = l->job;
    const lgelu_node *node = job->node;
    lgelu_net *net = job->net;
    const size_t *x = job->from->shape, in = x[2] / node->groups;
    const size_t rows = job->samples * l->dy.grid[0] * l->dy.grid[1];
    const size_t k = l->taps[0] * l->taps[1] * l->dy.channels;
    float *work = net->internal.scratch;
    lgelu_product p = lgelu__product_make(
        rows, in, k, l->dx, x[2], lgelu__matrix(l->dy.x, l->dy.pixel), lgelu__matrix(l->w, in));
    p.accumulate = job->add;
    if (!lgelu__pointwise(node)) {
        p.a.read = lgelu__k()->im2col;
        p.a.user = &l->dy;
        p.b.read = lgelu__read_flipped;
        p.b.user = l;
    }
    if (!lgelu__has_stride_1(node)) {
        p.c = work;
        p.c_stride = in;
        p.accumulate = 0;
        p.finish = lgelu__scatter_block;
        p.user = l;
        work += (rows * in + 15) / 16 * 16;
    }
    lgelu__multiply(&p, work, &net->threads, &net->internal.broken);
}

/* Returns whether a lattice of dx meets no tap, as three of four do for a window of one pixel and a
   stride of 2. */
static int lgelu__has_empty_lattice(const lgelu__job *job, size_t rows, size_t columns)
{
    int empty = 0;
    size_t r, c;
    for (r = 0; r < rows; r++)
        empty |= !lgelu__lattice_make(job, 0, r, 0).taps[0];
    for (c = 0; c < columns; c++)
        empty |= !lgelu__lattice_make(job, 0, 0, c).taps[1];
    return empty;
}

/* Clears dx of one sample. */
static void lgelu__clear_dx(size_t sample, void *user)
{
    const lgelu__job *job = (const lgelu__job *)user;
    const size_t *x = job->from->shape, size = x[0] * x[1] * x[2];
    memset(job->dx[0] + sample * size, 0, size * sizeof(float));
}

static void lgelu__conv_dx(lgelu__job *job)
{
    /* A stride may be larger than the image; lattices that begin outside of it have no pixels. */
    const size_t rows = lgelu__min(job->node->stride[0], job->from->shape[0]);
    const size_t columns = lgelu__min(job->node->stride[1], job->from->shape[1]);
    size_t g, r, c;
    /* A lattice without taps has no product: it is 0, or is left as it is where dx is added to. */
    if (!job->add && lgelu__has_empty_lattice(job, rows, columns))
        lgelu__parallel(&job->net->threads, lgelu__clear_dx, job, job->samples);
    for (g = 0; g < job->node->groups; g++) {
        for (r = 0; r < rows; r++) {
            for (c = 0; c < columns; c++) {
                const lgelu__lattice l = lgelu__lattice_make(job, g, r, c);
                if (l.taps[0] && l.taps[1])
                    lgelu__lattice_run(&l);
            }
        }
    }
}

/* Computes dW of a convolution. */
static void lgelu__conv_dw(const lgelu__job *p)
{
    const lgelu_node *node = p->node;
    const size_t c = p->channels, out = c / node->groups, k = node->weight_count / c;
    size_t g;
    if (lgelu__has_lines(node, p->from->shape[2])) {
        lgelu__lines l = lgelu__lines_make(p);
        lgelu__parallel(&p->net->threads, lgelu__line_worker, &l,
                        lgelu__min(l.tasks, LGELU__WORKERS));
        return;
    }
    for (g = 0; g < node->groups; g++) {
        lgelu__im2col patches;
        const lgelu_matrix x = lgelu__conv_matrix(p, g, &patches);
        lgelu_product dw = lgelu__product_make(out, k, p->rows, p->dw + g * out * k, k,
                                               lgelu__transpose(p->dy + g * out, c), x);
        dw.accumulate = p->add_dw;
        lgelu__net_multiply(p->net, &dw, NULL);
    }
}

static void lgelu__conv_backward(lgelu__job *p)
{
    lgelu__bias_backward(p);
    lgelu__conv_dw(p);
    if (p->dx[0])
        lgelu__conv_dx(p);
}

/* ---- depthwise convolution: one channel for each group ---- */
/* All channels of a pixel are computed together. net.internal.scratch holds the weights as (taps,
   channels), or dW in that order. */

static int lgelu__conv_is_depthwise(const lgelu__use *p)
{
    const size_t in = p->net->nodes[p->node->input[0]].shape[2], out = p->node->shape[2];
    return lgelu__depthwise_groups(in, out, p->node->groups);
}

static size_t lgelu__depthwise_work(const lgelu__job *p, int train)
{
    (void)train;
    return lgelu__times(p->node->weight_count, sizeof(float));
}

/* Sets, for each tap, the input's pixel that output pixel (row, column) reads; NULL: outside. */
static void lgelu__depthwise_inputs(const lgelu__job *p, const float **tap, const float *image,
                                    size_t row, size_t column)
{
    const lgelu_node *node = p->node;
    const size_t *x = p->from->shape;
    size_t i, j;
    for (i = 0; i < node->window[0]; i++) {
        for (j = 0; j < node->window[1]; j++) {
            /* A coordinate below 0 wraps and is too large then. */
            const size_t u = row * node->stride[0] + i * node->dilation[0] - node->padding[0];
            const size_t v = column * node->stride[1] + j * node->dilation[1] - node->padding[1];
            const int inside = u < x[0] && v < x[1];
            *tap++ = inside ? image + (u * x[1] + v) * p->channels : NULL;
        }
    }
}

/* Sets, for each tap, the output's pixel that reads input pixel (row, column) with it. */
static void lgelu__depthwise_outputs(const lgelu__job *p, const float **tap, const float *image,
                                     size_t row, size_t column)
{
    const lgelu_node *node = p->node;
    const size_t *y = node->shape, *s = node->stride;
    size_t i, j;
    for (i = 0; i < node->window[0]; i++) {
        for (j = 0; j < node->window[1]; j++) {
            /* A coordinate below 0 wraps, and is above half of the largest size then. */
            const size_t u = row + node->padding[0] - i * node->dilation[0];
            const size_t v = column + node->padding[1] - j * node->dilation[1];
            const int there =
                u % s[0] == 0 && v % s[1] == 0 && u < (size_t)-1 / 2 && v < (size_t)-1 / 2;
            const int inside = there && u / s[0] < y[0] && v / s[1] < y[1];
            *tap++ = inside ? image + (u / s[0] * y[1] + v / s[1]) * p->channels : NULL;
        }
    }
}

/* Computes one row of pixels of y. */
static void lgelu__depthwise_row(size_t index, void *user)
{
    const lgelu__job *p = (const lgelu__job *)user;
    const lgelu_node *node = p->node;
    const size_t *x = p->from->shape, c = p->channels, taps = lgelu__taps(node);
    const size_t row = index % node->shape[0], sample = index / node->shape[0];
    const float *tap[LGELU__TAPS], *image = p->x + sample * x[0] * x[1] * c;
    const lgelu__kernels *isa = lgelu__k();
    size_t column;
    for (column = 0; column < node->shape[1]; column++) {
        float *y = p->y + (index * node->shape[1] + column) * c;
        lgelu__depthwise_inputs(p, tap, image, row, column);
        isa->depthwise(y, c, p->net->internal.scratch, c, p->bias, tap, taps);
    }
}

/* Computes one row of pixels of dx. */
static void lgelu__depthwise_dx_row(size_t index, void *user)
{
    const lgelu__job *p = (const lgelu__job *)user;
    const lgelu_node *node = p->node;
    const size_t *x = p->from->shape, c = p->channels, taps = lgelu__taps(node);
    const size_t row = index % x[0], sample = index / x[0];
    const float *tap[LGELU__TAPS], *image = p->dy + sample * node->shape[0] * node->shape[1] * c;
    const lgelu__kernels *isa = lgelu__k();
    size_t column;
    for (column = 0; column < x[1]; column++) {
        float *dx = p->dx[0] + (index * x[1] + column) * c;
        lgelu__depthwise_outputs(p, tap, image, row, column);
        isa->depthwise(dx, c, p->net->internal.scratch, c, p->add ? dx : NULL, tap, taps);
    }
}

/* Computes dW of one tap and 64 channels: one chain over all pixels. */
static void lgelu__depthwise_dw(size_t index, void *user)
{
    const lgelu__job *p = (const lgelu__job *)user;
    const lgelu_node *node = p->node;
    const size_t *x = p->from->shape, *y = node->shape, c = p->channels;
    const size_t taps = lgelu__taps(node), tap = index % taps;
    const size_t i = tap / node->window[1] * node->dilation[0];
    const size_t j = tap % node->window[1] * node->dilation[1];
    const size_t first = index / taps * 64, n = lgelu__min(c - first, 64);
    const lgelu__kernels *isa = lgelu__k();
    float *sum = p->net->internal.scratch + tap * c + first;
    size_t row, column;
    memset(sum, 0, n * sizeof *sum);
    for (row = 0; row < p->samples * y[0]; row++) {
        const size_t sample = row / y[0];
        const size_t u = row % y[0] * node->stride[0] + i - node->padding[0];
        if (u >= x[0])
            continue;
        for (column = 0; column < y[1]; column++) {
            const size_t v = column * node->stride[1] + j - node->padding[1];
            const float *dy = p->dy + (row * y[1] + column) * c + first;
            const float *pixel = p->x + first;
            if (v >= x[1])
                continue;
            pixel += ((sample * x[0] + u) * x[1] + v) * c;
            isa->depthwise(sum, n, dy, 0, sum, &pixel, 1);
        }
    }
}

/* Copies the weights to net.internal.scratch as (taps, channels). */
static void lgelu__depthwise_weights(const lgelu__job *p)
{
    const size_t c = p->channels, taps = p->node->weight_count / c;
    size_t i;
    for (i = 0; i < p->node->weight_count; i++)
        p->net->internal.scratch[i % taps * c + i / taps] = p->w[i];
}

static lgelu_status lgelu__depthwise_forward(lgelu__job *p)
{
    lgelu__depthwise_weights(p);
    lgelu__parallel(&p->net->threads, lgelu__depthwise_row, p, p->samples * p->node->shape[0]);
    return LGELU_OK;
}

static void lgelu__depthwise_backward(lgelu__job *p)
{
    const size_t c = p->channels, taps = p->node->weight_count / c;
    const lgelu_threads *threads = &p->net->threads;
    size_t i;
    lgelu__bias_backward(p);
    lgelu__parallel(threads, lgelu__depthwise_dw, p, taps * ((c + 63) / 64));
    for (i = 0; i < p->node->weight_count; i++) {
        const float before = p->add_dw ? p->dw[i] : 0;
        p->dw[i] = before + p->net->internal.scratch[i % taps * c + i / taps];
    }
    if (!p->dx[0])
        return;
    lgelu__depthwise_weights(p);
    lgelu__parallel(threads, lgelu__depthwise_dx_row, p, p->samples * p->from->shape[0]);
}

/* ---- Winograd's convolution: 3×3 taps, stride 1 (Lavin & Gray, arXiv 1509.09308) ---- */
/* An output tile has 2×2 pixels, and depends on 4×4 pixels of the input. Transforms turn each input
   tile and each 3×3 kernel into 16 elements. For each of the 16, the sum over the channels is a
   matrix product (tiles, in) · (in, out); a last transform turns the 16 results into 2×2 pixels.
     y    from x and W.
     dx   is the same with dy for x, the taps in reverse order, and padding 2 - padding.
     dW   runs backwards: it transforms x and dy, multiplies their 16 elements, and transforms the
          products into 3×3 taps.
   A round is the tiles that the cache holds. With few channels, each worker computes rounds of its
   own from input to output. With many channels (`shared`), all threads share the steps of one
   round. For dW each of LGELU__WINOGRAD_WORKERS workers sums up a fixed part of the tiles.
   With many channels and few tiles (LGELU__WINOGRAD_FEW), the 16 matrices of weights take longer to
   write to memory and to read again than to multiply by. There they are not stored as a whole:
   workers transform a part of the weights, which fits the second-level cache, and multiply by it at
   once; for dW they multiply, and transform the products of a few outputs at once. Each sum has the
   same order, so that no bit changes. 512 channels of 4×4 pixels take a third of the time for dx
   and dW, and 0.4 for y (Zen 4, AVX-512). A transform reads or writes the same element of all 16
   matrices. Their sizes are mostly powers of two, so that these elements would share one set of the
   cache: LGELU__WINOGRAD_PADDING floats, a line of it, separate each matrix from the next. */
enum {
    LGELU__WINOGRAD_WORKERS = 8,
    LGELU__WINOGRAD_TILES = 8,   /* of a task of a shared round */
    LGELU__WINOGRAD_FEW = 32,    /* tiles */
    LGELU__WINOGRAD_PART = 4096, /* elements of a part of each of the 16 matrices of weights */
    LGELU__WINOGRAD_PADDING = 16,
    LGELU__WINOGRAD_PART_STEP = LGELU__WINOGRAD_PART + LGELU__WINOGRAD_PADDING
};

LGELU_DEF int lgelu_conv_is_winograd(const lgelu_net *net, const lgelu_node *node)
{
    const size_t *p = node->padding;
    return node->op == LGELU_OP_CONV && !net->no_winograd && node->window[0] == 3
           && node->window[1] == 3 && lgelu__has_stride_1(node) && node->dilation[0] == 1
           && node->dilation[1] == 1 && node->groups == 1 && p[0] == p[1] && p[0] <= 2
           && node->shape[2] >= 16 && net->nodes[node->input[0]].shape[2] >= 16;
}

static int lgelu__conv_is_winograd(const lgelu__use *p)
{
    return lgelu_conv_is_winograd(p->net, p->node);
}

typedef struct {
    const float *x, *w, *bias; /* the images that are read: x, or dy for dx */
    float *y;                  /* the images that are written: y, or dx */
    const float *dy;
    float *dw;                  /* dW; NULL: this computes images */
    const size_t *from, *to;    /* the shapes of x and y, */
    size_t in, out;             /* and their channels */
    size_t padding;             /* of x */
    size_t across, down, tiles; /* tiles in a row and a column of y, and in all samples */
    size_t round;               /* the maximal number of tiles in a round */
    size_t first, count;        /* the tiles of the current round */
    size_t tiles_of_worker;     /* dW: the tiles that one worker sums up */
    size_t part;                /* few tiles: the columns, or for dW the outputs, of a part */
    size_t u_step, m_step;      /* the floats from one of the 16 matrices to the next: in u, in m */
    size_t kernel_step;         /* and in kernel */
    size_t product_bytes;       /* the workspace for one product */
    float *u, *m;               /* the transformed tiles of x, and those of y or dy */
    float *kernel;              /* the transformed weights, or their gradient */
    unsigned char *work;        /* for products */
    int shared, add;            /* add: to y or dw */
    int flipped;                /* for dx, where the taps of w are in reverse order */
    int *broken;                /* as in lgelu__block */
    const lgelu__kernels *panels; /* NULL, or those for which kernel is prepacked */
} lgelu__winograd;

/* What workers share who take rounds, the 16 products of a round, or parts in turn. */
typedef struct {
    lgelu__winograd *p;
    int next; /* the index of the first one that nobody has taken */
} lgelu__winograd_turns;

/* Sets the fields that depend on the channels. Returns the bytes of workspace. */
static size_t lgelu__winograd_size(lgelu__winograd *p, size_t in, size_t out)
{
    size_t kernel, tiles;
    p->in = in;
    p->out = out;
    p->shared = in * out >= 65536;
    p->round = 1024;
    while (p->round > (p->shared ? 128 : 32) && p->round * (in + out) > 16384)
        p->round /= 2;
    p->product_bytes =
        lgelu__max(lgelu__workspace(p->round, out, in, 1), lgelu__workspace(out, in, p->round, 1));
    p->u_step = p->round * in + LGELU__WINOGRAD_PADDING;
    p->m_step = p->round * out + LGELU__WINOGRAD_PADDING;
    p->kernel_step = lgelu__plus(lgelu__times(in, out), LGELU__WINOGRAD_PADDING);
    tiles = 64 * (p->u_step + p->m_step);
    kernel = lgelu__times(64, p->kernel_step);
    if (p->shared)
        return lgelu__plus(kernel, tiles + LGELU__WORKERS * p->product_bytes);
    return LGELU__WINOGRAD_WORKERS * (kernel + tiles + p->product_bytes);
}

static size_t lgelu__winograd_work(const lgelu__job *job, int train)
{
    const size_t in = job->from->shape[2], out = job->channels;
    lgelu__winograd p;
    const size_t y = lgelu__winograd_size(&p, in, out);
    return train ? lgelu__max(y, lgelu__winograd_size(&p, out, in)) : y;
}

/* The transform of y's kernels, see lgelu__winograd_transform. */
static void lgelu__winograd_transform_plain(const lgelu__winograd *p, float *to, size_t step,
                                            size_t row, size_t i, size_t count, size_t o,
                                            size_t outs)
{
    const lgelu__kernels *isa = lgelu__k();
    float taps[9 * 16 * 16];
    lgelu_matrix w = lgelu__transpose(NULL, 9 * p->in);
    size_t j, k, r, some;
    for (r = 0; r < count; r += some) {
        some = lgelu__min(count - r, 16);
        for (j = 0; j < outs; j += 16) {
            /* The last 16 outputs may overlap those before them. */
            const size_t last = lgelu__min(j, outs - 16);
            for (k = 0; k < 9; k++) {
                w.x = p->w + k * p->in;
                isa->copy(taps + k * 16, 9 * 16, isa->cols, &w, i + r, some, o + last, 16);
            }
            for (k = 0; k < some; k++) {
                float *kernel = to + (r + k) * row + last;
                isa->winograd_kernel(kernel, step, taps + k * 9 * 16, 16, 16, 0);
            }
        }
    }
}

/* The same for dx, whose input channels are the outputs of W, with the taps in reverse order. A
   part reads short runs far apart, which the processor doesn't prefetch itself: to do it three rows
   ahead saves a third of the time of dx (512 channels of 4×4 pixels, Zen 4). */
static void lgelu__winograd_transform_flipped(const lgelu__winograd *p, float *to, size_t step,
                                              size_t row, size_t i, size_t count, size_t o,
                                              size_t outs)
{
    const lgelu__kernels *isa = lgelu__k();
    size_t r, j, k;
    for (r = 0; r < count; r++) {
        const float *w = p->w + (i + r) * 9 * p->out + o;
        for (k = 0; k < 9; k++) {
            for (j = 0; j < outs; j += 16)
                LGELU__FETCH(LGELU__PAST(w, (3 * 9 + k) * p->out + j));
        }
        isa->winograd_kernel(to + r * row, step, w, p->out, outs, 1);
    }
}

/* Transforms the kernels of `count` inputs and `outs` outputs, from input i and output o on, into a
   part of 16 matrices (in, out), whose rows are `row` floats apart, and the matrices `step`. */
static void lgelu__winograd_transform(const lgelu__winograd *p, float *to, size_t step, size_t row,
                                      size_t i, size_t count, size_t o, size_t outs)
{
    if (p->flipped)
        lgelu__winograd_transform_flipped(p, to, step, row, i, count, o, outs);
    else
        lgelu__winograd_transform_plain(p, to, step, row, i, count, o, outs);
}

/* Transforms the kernels of 16 inputs. */
static void lgelu__winograd_kernels(size_t task, void *user)
{
    const lgelu__winograd *p = (const lgelu__winograd *)user;
    const size_t i = 16 * task, count = lgelu__min(p->in - i, 16);
    lgelu__winograd_transform(p, p->kernel + i * p->out, p->kernel_step, p->out, i, count, 0,
                              p->out);
}

/* The prepacked copy is that of the 16 matrices, each in panels. */
static size_t lgelu__winograd_prepack(const lgelu_net *net, const lgelu_node *node,
                                      const lgelu__kernels *isa, float *to)
{
    const size_t out = node->shape[2], in = net->nodes[node->input[0]].shape[2];
    const size_t panels = lgelu__panel_floats(out, in);
    lgelu__winograd p;
    size_t task, k;
    if (!to)
        return lgelu__times(16, panels);
    memset(&p, 0, sizeof p);
    lgelu__winograd_size(&p, in, out);
    p.w = net->w + node->weight_at;
    p.kernel = net->internal.scratch;
    for (task = 0; task < (in + 15) / 16; task++)
        lgelu__winograd_kernels(task, &p);
    for (k = 0; k < 16; k++) {
        const lgelu_matrix w = lgelu__matrix(p.kernel + k * p.kernel_step, out);
        isa->copy(to + k * panels, isa->cols, in * isa->cols, &w, 0, in, 0, out);
    }
    return 16 * panels;
}

/* Sets the offsets of the side × side pixels of a tile, whose first pixel is twice the tile's
   position minus the padding; LGELU__NO_PIXEL where there is none. */
static void lgelu__winograd_pixels(const lgelu__winograd *p, size_t *at, size_t tile,
                                   const size_t *shape, size_t side, size_t padding)
{
    const size_t sample = tile / (p->across * p->down);
    const size_t row = 2 * (tile / p->across % p->down) - padding;
    const size_t column = 2 * (tile % p->across) - padding;
    size_t i, j;
    for (i = 0; i < side; i++) {
        for (j = 0; j < side; j++) {
            /* A coordinate below 0 wraps and is too large then. */
            const size_t u = row + i, v = column + j;
            const int inside = u < shape[0] && v < shape[1];
            *at++ = inside ? ((sample * shape[0] + u) * shape[1] + v) * shape[2] : LGELU__NO_PIXEL;
        }
    }
}

/* Transforms a few tiles of x and, for dW, of dy. */
static void lgelu__winograd_in(size_t task, void *user)
{
    const lgelu__winograd *p = (const lgelu__winograd *)user;
    const size_t begin = LGELU__WINOGRAD_TILES * task;
    const size_t end = lgelu__min(p->count, begin + LGELU__WINOGRAD_TILES);
    size_t t, at[16];
    for (t = begin; t < end; t++) {
        lgelu__winograd_pixels(p, at, p->first + t, p->from, 4, p->padding);
        lgelu__k()->winograd_in(p->u + t * p->in, p->u_step, p->x, at, p->in);
        if (!p->dw)
            continue;
        lgelu__winograd_pixels(p, at, p->first + t, p->to, 2, 0);
        lgelu__k()->winograd_dy(p->m + t * p->out, p->m_step, p->dy, at, p->out);
    }
}

/* Transforms a few tiles of products into pixels of y. */
static void lgelu__winograd_out(size_t task, void *user)
{
    const lgelu__winograd *p = (const lgelu__winograd *)user;
    const size_t begin = LGELU__WINOGRAD_TILES * task;
    const size_t end = lgelu__min(p->count, begin + LGELU__WINOGRAD_TILES);
    size_t t, at[4];
    for (t = begin; t < end; t++) {
        lgelu__winograd_pixels(p, at, p->first + t, p->to, 2, 0);
        lgelu__k()->winograd_out(p->y, at, p->m + t * p->out, p->m_step, p->bias, p->add, p->out);
    }
}

/* Multiplies element k of the tiles by element k of the kernels. */
static void lgelu__winograd_product(const lgelu__winograd *p, size_t k, void *work)
{
    const float *u = p->u + k * p->u_step;
    float *m = p->m + k * p->m_step;
    const size_t step = p->panels ? lgelu__panel_floats(p->out, p->in) : p->kernel_step;
    const lgelu_matrix kernel = lgelu__matrix(p->kernel + k * step, p->panels ? 0 : p->out);
    const lgelu_product job =
        lgelu__product_make(p->count, p->out, p->in, m, p->out, lgelu__matrix(u, p->in), kernel);
    lgelu__multiply_panels(&job, p->panels, work, NULL, p->broken);
}

/* Adds the product of element k of dy's and x's tiles to element k of dW. */
static void lgelu__winograd_dproduct(const lgelu__winograd *p, size_t k, void *work)
{
    const float *u = p->u + k * p->u_step, *m = p->m + k * p->m_step;
    lgelu_product job =
        lgelu__product_make(p->out, p->in, p->count, p->kernel + k * p->kernel_step, p->in,
                            lgelu__transpose(m, p->out), lgelu__matrix(u, p->in));
    job.accumulate = p->first % p->tiles_of_worker != 0;
    lgelu__multiply(&job, work, NULL, p->broken);
}

/* Takes products of the current round until none remains. */
static void lgelu__winograd_products(size_t worker, void *user)
{
    lgelu__winograd_turns *turns = (lgelu__winograd_turns *)user;
    const lgelu__winograd *p = turns->p;
    unsigned char *work = p->work + worker * p->product_bytes;
    size_t k = (size_t)LGELU__ADD(&turns->next, 1);
    while (k < 16) {
        if (p->dw)
            lgelu__winograd_dproduct(p, k, work);
        else
            lgelu__winograd_product(p, k, work);
        k = (size_t)LGELU__ADD(&turns->next, 1);
    }
}

/* Computes one round; on this thread alone if threads is NULL. */
static void lgelu__winograd_round(lgelu__winograd *p, const lgelu_threads *threads)
{
    const size_t tasks = (p->count + LGELU__WINOGRAD_TILES - 1) / LGELU__WINOGRAD_TILES;
    lgelu__winograd_turns turns = { NULL, 0 };
    turns.p = p;
    lgelu__parallel(threads, lgelu__winograd_in, p, tasks);
    lgelu__parallel(threads, lgelu__winograd_products, &turns, threads ? LGELU__WORKERS : 1);
    if (!p->dw)
        lgelu__parallel(threads, lgelu__winograd_out, p, tasks);
}

/* Computes the rounds from tile p->first to `end` one after the other. */
static void lgelu__winograd_rounds(lgelu__winograd *p, size_t end, const lgelu_threads *threads)
{
    while (p->first < end) {
        p->count = lgelu__min(end - p->first, p->round);
        lgelu__winograd_round(p, threads);
        p->first += p->count;
    }
}

/* Returns a copy of the arguments with the workspace of one worker. */
static lgelu__winograd lgelu__winograd_of_worker(const lgelu__winograd *of_all, size_t worker)
{
    lgelu__winograd p = *of_all;
    p.u += worker * 16 * (p.u_step + p.m_step);
    p.m = p.u + 16 * p.u_step;
    p.work += worker * p.product_bytes;
    return p;
}

/* Few channels, y or dx: takes rounds until none remains. */
static void lgelu__winograd_worker(size_t worker, void *user)
{
    lgelu__winograd_turns *turns = (lgelu__winograd_turns *)user;
    lgelu__winograd p = lgelu__winograd_of_worker(turns->p, worker);
    p.first = (size_t)LGELU__ADD(&turns->next, 1) * p.round;
    while (p.first < p.tiles) {
        lgelu__winograd_rounds(&p, lgelu__min(p.first + p.round, p.tiles), NULL);
        p.first = (size_t)LGELU__ADD(&turns->next, 1) * p.round;
    }
}

/* Few channels, dW: computes the rounds of the worker's part of the tiles. */
static void lgelu__winograd_dworker(size_t worker, void *user)
{
    lgelu__winograd p = lgelu__winograd_of_worker((const lgelu__winograd *)user, worker);
    p.kernel += worker * 16 * p.kernel_step;
    p.first = worker * p.tiles_of_worker;
    lgelu__winograd_rounds(&p, lgelu__min(p.tiles, p.first + p.tiles_of_worker), NULL);
}

/* Adds the workers' transformed gradients of one output, in order, and transforms the sum into
   dW. */
static void lgelu__winograd_dtaps(size_t o, void *user)
{
    const lgelu__winograd *p = (const lgelu__winograd *)user;
    const size_t step = p->kernel_step;
    float *kernel = p->kernel + o * p->in;
    size_t worker, k;
    for (worker = 1; worker * p->tiles_of_worker < p->tiles; worker++) {
        for (k = 0; k < 16; k++) {
            float *sum = kernel + k * step;
            lgelu__k()->add(sum, sum, kernel + (16 * worker + k) * step, p->in);
        }
    }
    lgelu__k()->winograd_dkernel(p->dw + o * 9 * p->in, kernel, step, p->add, p->in);
}

/* Returns into how many parts the workspace is divided: one, which all workers share, or one for
   each worker. */
static size_t lgelu__winograd_parts_of(const lgelu__winograd *p)
{
    return p->shared ? 1 : LGELU__WINOGRAD_WORKERS;
}

/* Sets what y, dx and dW have in common: images of shape `from` are read, and tiles belong to those
   of shape `to`. */
static void lgelu__winograd_begin(lgelu__winograd *p, const lgelu__job *job, const size_t *from,
                                  const size_t *to)
{
    size_t parts;
    memset(p, 0, sizeof *p);
    p->from = from;
    p->to = to;
    lgelu__winograd_size(p, from[2], to[2]);
    p->w = job->w;
    p->across = (to[1] + 1) / 2;
    p->down = (to[0] + 1) / 2;
    p->tiles = job->samples * p->across * p->down;
    p->broken = &job->net->internal.broken;
    parts = lgelu__winograd_parts_of(p);
    p->kernel = job->net->internal.scratch;
    p->u = p->kernel + parts * 16 * p->kernel_step;
    p->m = p->u + 16 * p->u_step;
    p->work = (unsigned char *)(p->u + parts * 16 * (p->u_step + p->m_step));
}

/* Few tiles: computes `cols` columns of the products of y's or dx's tiles, from column j on. */
static void lgelu__winograd_columns(const lgelu__winograd *p, size_t j, size_t cols, float *kernel,
                                    void *work)
{
    const size_t most = LGELU__WINOGRAD_PART / cols, step = LGELU__WINOGRAD_PART_STEP;
    size_t i, k;
    for (i = 0; i < p->in; i += most) {
        const size_t rows = lgelu__min(p->in - i, most);
        lgelu__winograd_transform(p, kernel, step, cols, i, rows, j, cols);
        for (k = 0; k < 16; k++) {
            lgelu_product job =
                lgelu__product_make(p->count, cols, rows, p->m + k * p->m_step + j, p->out,
                                    lgelu__matrix(p->u + k * p->u_step + i, p->in),
                                    lgelu__matrix(kernel + k * step, cols));
            job.accumulate = i > 0;
            lgelu__multiply(&job, work, NULL, p->broken);
        }
    }
}

/* Few tiles: computes dW of `rows` outputs, from output o on. */
static void lgelu__winograd_drows(const lgelu__winograd *p, size_t o, size_t rows, float *kernel,
                                  void *work)
{
    const lgelu__kernels *isa = lgelu__k();
    const size_t step = LGELU__WINOGRAD_PART_STEP;
    size_t k, r;
    for (k = 0; k < 16; k++) {
        const lgelu_product job =
            lgelu__product_make(rows, p->in, p->count, kernel + k * step, p->in,
                                lgelu__transpose(p->m + k * p->m_step + o, p->out),
                                lgelu__matrix(p->u + k * p->u_step, p->in));
        lgelu__multiply(&job, work, NULL, p->broken);
    }
    for (r = 0; r < rows; r++) {
        isa->winograd_dkernel(p->dw + (o + r) * 9 * p->in, kernel + r * p->in, step, p->add, p->in);
    }
}

/* Few tiles: takes parts until none remains. */
static void lgelu__winograd_parts(size_t worker, void *user)
{
    lgelu__winograd_turns *turns = (lgelu__winograd_turns *)user;
    const lgelu__winograd *p = turns->p;
    unsigned char *work = p->work + worker * p->product_bytes;
    float *kernel = p->kernel + worker * 16 * LGELU__WINOGRAD_PART_STEP;
    size_t o = (size_t)LGELU__ADD(&turns->next, 1) * p->part;
    while (o < p->out) {
        const size_t count = lgelu__min(p->out - o, p->part);
        if (p->dw)
            lgelu__winograd_drows(p, o, count, kernel, work);
        else
            lgelu__winograd_columns(p, o, count, kernel, work);
        o = (size_t)LGELU__ADD(&turns->next, 1) * p->part;
    }
}

/* Returns whether the weights are transformed part by part. */
static int lgelu__winograd_has_few_tiles(const lgelu__winograd *p)
{
    return p->shared && p->tiles <= LGELU__WINOGRAD_FEW && !p->panels
           && (!p->dw || p->in <= LGELU__WINOGRAD_PART);
}

/* Few tiles: computes y, dx or dW. The workers' parts are where the 16 matrices would be, which
   take more space: there are at least 65,536 weights. */
static void lgelu__winograd_few_tiles(lgelu__winograd *p, const lgelu_threads *threads)
{
    const size_t tasks = (p->tiles + LGELU__WINOGRAD_TILES - 1) / LGELU__WINOGRAD_TILES;
    lgelu__winograd_turns turns = { NULL, 0 };
    turns.p = p;
    p->count = p->tiles;
    p->part = p->dw ? LGELU__WINOGRAD_PART / p->in : 64;
    /* The transform of the weights needs a full vector. */
    while (!p->dw && p->out % p->part && p->out % p->part < 16)
        p->part += 16;
    lgelu__parallel(threads, lgelu__winograd_in, p, tasks);
    lgelu__parallel(threads, lgelu__winograd_parts, &turns, threads ? LGELU__WINOGRAD_WORKERS : 1);
    if (!p->dw)
        lgelu__parallel(threads, lgelu__winograd_out, p, tasks);
}

/* Computes y or dx, and transforms the kernels unless they are prepacked. */
static void lgelu__winograd_images(lgelu__winograd *p, const lgelu_threads *threads)
{
    lgelu__winograd_turns turns = { NULL, 0 };
    turns.p = p;
    if (lgelu__winograd_has_few_tiles(p)) {
        lgelu__winograd_few_tiles(p, threads);
        return;
    }
    if (!p->panels)
        lgelu__parallel(threads, lgelu__winograd_kernels, p, (p->in + 15) / 16);
    if (p->shared)
        lgelu__winograd_rounds(p, p->tiles, threads);
    else
        lgelu__parallel(threads, lgelu__winograd_worker, &turns, LGELU__WINOGRAD_WORKERS);
}

static lgelu_status lgelu__winograd_forward(lgelu__job *job)
{
    lgelu_net *net = job->net;
    lgelu__winograd p;
    lgelu__winograd_begin(&p, job, job->from->shape, job->node->shape);
    p.x = job->x;
    p.y = job->y;
    p.bias = job->bias;
    p.padding = job->node->padding[0];
    if (lgelu__prepacked_of(net, job->node)) {
        p.kernel = net->internal.prepacked + job->node->internal.prepacked_at - 1;
        p.panels = lgelu__prepacked_for(net);
    }
    lgelu__winograd_images(&p, &net->threads);
    return LGELU_OK;
}

static void lgelu__winograd_dx(const lgelu__job *job)
{
    lgelu__winograd p;
    lgelu__winograd_begin(&p, job, job->node->shape, job->from->shape);
    p.x = job->dy;
    p.y = job->dx[0];
    p.padding = 2 - job->node->padding[0];
    p.add = job->add;
    p.flipped = 1;
    lgelu__winograd_images(&p, &job->net->threads);
}

static void lgelu__winograd_dw(const lgelu__job *job)
{
    const lgelu_threads *threads = &job->net->threads;
    size_t parts;
    lgelu__winograd p;
    lgelu__winograd_begin(&p, job, job->from->shape, job->node->shape);
    p.x = job->x;
    p.dy = job->dy;
    p.dw = job->dw;
    p.padding = job->node->padding[0];
    p.add = job->add_dw;
    if (lgelu__winograd_has_few_tiles(&p)) {
        lgelu__winograd_few_tiles(&p, threads);
        return;
    }
    parts = lgelu__winograd_parts_of(&p);
    p.tiles_of_worker = ((p.tiles - 1) / parts / p.round + 1) * p.round;
    if (p.shared)
        lgelu__winograd_rounds(&p, p.tiles, threads);
    else
        lgelu__parallel(threads, lgelu__winograd_dworker, &p, LGELU__WINOGRAD_WORKERS);
    lgelu__parallel(threads, lgelu__winograd_dtaps, &p, p.out);
}

static void lgelu__winograd_backward(lgelu__job *job)
{
    lgelu__bias_backward(job);
    lgelu__winograd_dw(job);
    if (job->dx[0])
        lgelu__winograd_dx(job);
}

/* ---- batch norm ---- */

LGELU_DEF int lgelu_batch_norm(lgelu_net *net, const char *name, int x, float momentum, float eps)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_BATCH_NORM, name, x, -1);
    if (!(momentum >= 0) || momentum > 1 || !(eps > 0)) {
        lgelu__fail(net, LGELU_E_ARGUMENT, "%n: expected momentum from 0 to 1 and eps above 0",
                    &node);
    }
    node.momentum = momentum;
    node.eps = eps;
    /* The state holds means, then variances; the biases hold gains, then shifts. */
    node.state_count = node.bias_count = 2 * node.shape[2];
    return lgelu__append(net, &node);
}

/* y = x̂·gain + bias, x̂ = (x - mean)/√(variance + eps), for each channel. The value is computed
   as x·scale + shift. The sums over the pixels of a channel are accurate to about double precision:
   each range of rows has sums of its own, which are then added in order. A gate or a sum that reads
   the value can compute it itself; then it is not written. aux holds, in order, for each channel:
   the scales, the shifts and the three factors of the backward (floats; one row is spare), the
   means and 1/√(variance + eps) (doubles), and then the sums of each range (doubles). */

/* Returns whether the only reader computes x·scale + shift itself. */
static int lgelu__batch_norm_fuses(const lgelu__use *p)
{
    return p->reader >= 0 && p->node->shape[2] <= LGELU__GATE_BUFFER
           && lgelu__is_a(p->net->nodes + p->reader, LGELU__READS_AFFINE);
}

/* Returns the means of the channels in aux. */
static double *lgelu__batch_norm_mean(const lgelu__job *p)
{
    return (double *)(void *)(p->aux + 6 * p->channels);
}

static size_t lgelu__batch_norm_aux(const lgelu__job *p)
{
    return lgelu__times(lgelu__plus(lgelu__times(lgelu__task_count(p), 16), 40), p->channels);
}

/* Computes Σ x and Σ x·b of each channel over a range. */
static void lgelu__batch_norm_sums_range(const lgelu__job *p, size_t row, size_t rows)
{
    const size_t c = p->channels;
    double *sum = p->sum + row / p->rows_per_task * 2 * c;
    lgelu__k()->channel_sums(sum, p->x + row * c, p->b + row * c, rows, c);
}

/* Computes Σ a and Σ a·b of each channel over all rows into p->sum. */
static void lgelu__batch_norm_sums(lgelu__job *p, const float *a, const float *b)
{
    const size_t n = 2 * p->channels, sums = lgelu__task_count(p) * n;
    size_t i;
    p->sum = lgelu__batch_norm_mean(p) + n;
    p->x = a;
    p->b = b;
    lgelu__for_rows(p, lgelu__batch_norm_sums_range);
    for (i = n; i < sums; i++)
        p->sum[i % n] += p->sum[i];
}

/* Returns a·b. The volatile keeps compilers from contracting the product with a sum that it
   enters. */
static double lgelu__rounded_product(double a, double b)
{
    volatile double product = a * b;
    return product;
}

/* Returns a running value that has moved by the fraction k towards that of a batch. At k = 1 it
   forgets what it was, even if that was infinite or NaN. */
static float lgelu__moved_towards(float running, double batch, double k)
{
    return k == 1 ? (float)batch : (float)fma(k, batch - (double)running, (double)running);
}

/* Sets the mean and variance of channel i to those of this batch, and updates the running ones:
   with the momentum or, while they are estimated, as the average over the batches. The running
   variance is that of a sample, with n - 1. */
static void lgelu__batch_norm_learn(const lgelu__job *p, size_t i, double *mean, double *variance)
{
    const long batches = p->net->internal.estimate;
    const double k = batches ? 1 / (double)batches : (double)p->node->momentum;
    const double n = (double)p->rows;
    float *running_mean = p->net->state + p->node->state_at + i;
    float *running_variance = running_mean + p->channels;
    double unbiased;
    *mean = p->sum[i] / n;
    *variance = fma(-*mean, *mean, p->sum[p->channels + i] / n);
    if (*variance < 0)
        *variance = 0;
    unbiased = lgelu__rounded_product(*variance, n / (n - 1));
    *running_mean = lgelu__moved_towards(*running_mean, *mean, k);
    *running_variance = lgelu__moved_towards(*running_variance, unbiased, k);
}

/* Computes scale and shift of each channel, from the statistics of the batch or the running ones.
   The value is then written by ranges, unless its reader computes it. */
static lgelu_status lgelu__batch_norm_forward(lgelu__job *p)
{
    lgelu_net *net = p->net;
    const size_t c = p->channels;
    const float *gain = p->bias, *bias = gain + c, *running = net->state + p->node->state_at;
    float *scale = p->aux, *shift = scale + c;
    double *mean = lgelu__batch_norm_mean(p), *inverse = mean + c;
    const int learn = net->internal.learning || net->internal.estimate;
    size_t i;
    if (learn)
        lgelu__batch_norm_sums(p, p->x, p->x);
    for (i = 0; i < c; i++) {
        double m = (double)running[i], variance = (double)running[c + i];
        if (learn)
            lgelu__batch_norm_learn(p, i, &m, &variance);
        mean[i] = m;
        inverse[i] = 1 / sqrt(variance + (double)p->node->eps);
        scale[i] = (float)(inverse[i] * (double)gain[i]);
        shift[i] = (float)fma(-m, inverse[i] * (double)gain[i], (double)bias[i]);
    }
    p->scale = scale;
    p->shift = shift;
    p->b = NULL;
    return LGELU_OK;
}

/* Computes dbias = Σ dy, dgain = Σ dy·x̂ and dx = scale·(dy - dbias/n - x̂·dgain/n); the latter
   with three factors: of dy, of x, and of 1. With running statistics n is infinite: dx =
   scale·dy. */
static void lgelu__batch_norm_backward(lgelu__job *p)
{
    const size_t c = p->channels;
    const double n = p->net->internal.learning ? (double)p->rows : HUGE_VAL;
    const float *gain = p->bias, *x = p->x;
    float *g = p->dbias, *factor = p->aux + 2 * c;
    const double *mean = lgelu__batch_norm_mean(p), *inverse = mean + c;
    size_t i;
    lgelu__batch_norm_sums(p, p->dy, x);
    for (i = 0; i < c; i++) {
        const double dbias = p->sum[i];
        const double dgain =
            lgelu__rounded_product(fma(-mean[i], dbias, p->sum[c + i]), inverse[i]);
        const double k = inverse[i] * (double)gain[i];
        g[i] = (float)((p->add_dbias ? (double)g[i] : 0) + dgain);
        g[c + i] = (float)((p->add_dbias ? (double)g[c + i] : 0) + dbias);
        factor[i] = (float)k;
        factor[c + i] = (float)(-k * inverse[i] * (dgain / n));
        factor[2 * c + i] = (float)(k * fma(mean[i] * inverse[i], dgain / n, -(dbias / n)));
    }
    if (!p->dx[0])
        return;
    /* dx = dy·factor + x·factor' + factor'' */
    p->y = p->dx[0];
    p->scale = factor;
    p->shift = NULL;
    p->b_scale = factor + c;
    p->b_shift = factor + 2 * c;
    lgelu__for_rows(p, lgelu__affine_range);
}

/* ---- group norm ---- */

LGELU_DEF int lgelu_group_norm(lgelu_net *net, const char *name, int x, size_t groups)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_GROUP_NORM, name, x, -1);
    const size_t channels = node.shape[2];
    if (!groups || channels % groups) {
        lgelu__fail(net, LGELU_E_SHAPE, "%n: %z channels do not divide into %z groups", &node,
                    channels, groups);
    } else if (lgelu__elements(&node) / groups < 2) {
        lgelu__fail(net, LGELU_E_SHAPE,
                    "%n: expected groups of at least 2 values, found 1: it has no variance", &node);
    }
    node.groups = groups;
    node.eps = 1e-5f;
    /* gains, then shifts */
    node.bias_count = 2 * channels;
    return lgelu__append(net, &node);
}

/* As batch normalisation, over the groups of channels of each sample: each channel's value is
   x·scale + shift, and its dx has three factors. A task computes one sample. aux holds, for each
   sample, the sums of the channels (2·channels), the means and 1/√(variance + eps) of the groups
   (doubles), then for each sample the three factors, and then for each sample dgain and dshift
   (floats). */
typedef struct {
    double *sum, *mean, *inverse;
    float *factor, *dgain;
} lgelu__group_stats;

static size_t lgelu__group_norm_aux(const lgelu__job *p)
{
    const size_t doubles = 2 * (p->channels + p->node->groups), floats = 5 * p->channels;
    return lgelu__times(p->samples, doubles * sizeof(double) + floats * sizeof(float));
}

static lgelu__group_stats lgelu__group_stats_of(const lgelu__job *p, size_t sample)
{
    const size_t c = p->channels, groups = p->node->groups, doubles = 2 * (c + groups);
    float *floats = (float *)(void *)(p->sum + p->samples * doubles);
    lgelu__group_stats n;
    n.sum = p->sum + sample * doubles;
    n.mean = n.sum + 2 * c;
    n.inverse = n.mean + groups;
    n.factor = floats + sample * 3 * c;
    n.dgain = floats + p->samples * 3 * c + sample * 2 * c;
    return n;
}

/* Computes the statistics of a sample's groups, and the sample of the value. */
static void lgelu__group_norm_sample_forward(const lgelu__job *p, size_t row, size_t rows)
{
    const size_t c = p->channels, groups = p->node->groups, width = c / groups, at = row * c;
    const double count = (double)rows * (double)width;
    const lgelu__group_stats n = lgelu__group_stats_of(p, row / rows);
    const lgelu__scaled x = { p->x + at, n.factor, n.factor + c }, none = { NULL, NULL, NULL };
    size_t g, k;
    lgelu__k()->channel_sums(n.sum, p->x + at, p->x + at, rows, c);
    for (g = 0; g < groups; g++) {
        double sum = 0, squares = 0, variance;
        for (k = g * width; k < (g + 1) * width; k++) {
            sum += n.sum[k];
            squares += n.sum[c + k];
        }
        n.mean[g] = sum / count;
        variance = fma(-n.mean[g], n.mean[g], squares / count);
        if (variance < 0)
            variance = 0;
        n.inverse[g] = 1 / sqrt(variance + (double)p->node->eps);
        for (k = g * width; k < (g + 1) * width; k++) {
            const double scale = n.inverse[g] * (double)p->bias[k];
            n.factor[k] = (float)scale;
            n.factor[c + k] = (float)fma(-n.mean[g], scale, (double)p->bias[c + k]);
        }
    }
    lgelu__k()->affine(p->y + at, &x, &none, rows, c);
}

/* Computes dgain, dshift and dx of a sample. With d = dy·gain of n values, dx = r·(d - Σd/n -
   x̂·Σ(d·x̂)/n), r = 1/√(variance + eps). */
static void lgelu__group_norm_sample_backward(const lgelu__job *p, size_t row, size_t rows)
{
    const size_t c = p->channels, groups = p->node->groups, width = c / groups, at = row * c;
    const double count = (double)rows * (double)width;
    const lgelu__group_stats n = lgelu__group_stats_of(p, row / rows);
    const lgelu__scaled dy = { p->dy + at, n.factor, NULL };
    const lgelu__scaled x = { p->x + at, n.factor + c, n.factor + 2 * c };
    size_t g, k;
    lgelu__k()->channel_sums(n.sum, p->dy + at, p->x + at, rows, c);
    for (g = 0; g < groups; g++) {
        const double mean = n.mean[g], r = n.inverse[g];
        double sum = 0, products = 0;
        for (k = g * width; k < (g + 1) * width; k++) {
            sum = fma((double)p->bias[k], n.sum[k], sum);
            products = fma((double)p->bias[k], n.sum[c + k], products);
            n.dgain[k] = (float)(fma(-mean, n.sum[k], n.sum[c + k]) * r);
            n.dgain[c + k] = (float)n.sum[k];
        }
        sum /= count;
        products = fma(-mean, sum, products / count) * r;
        for (k = g * width; k < (g + 1) * width; k++) {
            n.factor[k] = (float)(r * (double)p->bias[k]);
            n.factor[c + k] = (float)(-r * r * products);
            n.factor[2 * c + k] = (float)(r * fma(mean * r, products, -sum));
        }
    }
    if (p->dx[0])
        lgelu__k()->affine(p->dx[0] + at, &dy, &x, rows, c);
}

static void lgelu__group_norm_range(const lgelu__job *p, size_t row, size_t rows)
{
    if (p->dy)
        lgelu__group_norm_sample_backward(p, row, rows);
    else
        lgelu__group_norm_sample_forward(p, row, rows);
}

static void lgelu__group_norm_backward(lgelu__job *p)
{
    const size_t n = 2 * p->channels;
    lgelu__for_rows(p, lgelu__group_norm_range);
    lgelu_column_sums(p->dbias, lgelu__group_stats_of(p, 0).dgain, n, p->samples, n, p->add_dbias,
                      &p->net->threads);
}

/* ---- pooling: y = max x, or Σ x·factor, over the pixels of a window ---- */

/* Appends a pooling. The padding of a maximum is limited, so that every window has a pixel. */
static int lgelu__append_pool(lgelu_net *net, lgelu_op op, const char *name, int x,
                              const lgelu_window *w)
{
    lgelu_node node = lgelu__node_of_window(net, op, name, x, w);
    const size_t taps = lgelu__times(w->kernel[0], w->kernel[1]);
    const int padded = 2 * w->padding[0] > w->kernel[0] || 2 * w->padding[1] > w->kernel[1];
    if (w->dilation[0] > 1 || w->dilation[1] > 1)
        lgelu__fail(net, LGELU_E_SHAPE, "%n: expected a window without dilation", &node);
    if (op == LGELU_OP_MAX_POOL && (taps > LGELU__TAPS || padded)) {
        lgelu__fail(net, LGELU_E_SHAPE,
                    "%n: expected a window of at most %d elements and a padding of at most half of "
                    "it, found %z x %z and %z x %z",
                    &node, (long)LGELU__TAPS, w->kernel[0], w->kernel[1], w->padding[0],
                    w->padding[1]);
    }
    return lgelu__append(net, &node);
}

LGELU_DEF int lgelu_max_pool(lgelu_net *net, const char *name, int x, size_t kernel, size_t stride,
                             size_t padding)
{
    const lgelu_window w = lgelu__square_window(kernel, stride, padding);
    return lgelu__append_pool(net, LGELU_OP_MAX_POOL, name, x, &w);
}

LGELU_DEF int lgelu_average_pool(lgelu_net *net, const char *name, int x, size_t kernel,
                                 size_t stride, size_t padding)
{
    const lgelu_window w = lgelu__square_window(kernel, stride, padding);
    return lgelu__append_pool(net, LGELU_OP_AVERAGE_POOL, name, x, &w);
}

LGELU_DEF int lgelu_max_pool_window(lgelu_net *net, const char *name, int x,
                                    const lgelu_window *window)
{
    const lgelu_window w = lgelu__completed_window(window);
    return lgelu__append_pool(net, LGELU_OP_MAX_POOL, name, x, &w);
}

LGELU_DEF int lgelu_max_pool_ceiling(lgelu_net *net, const char *name, int x,
                                     const lgelu_window *window)
{
    const lgelu_window w = lgelu__completed_window(window);
    const int y = lgelu__append_pool(net, LGELU_OP_MAX_POOL, name, x, &w);
    int d;
    for (d = 0; y >= 0 && d < 2; d++) {
        /* Counted from where the first window begins: the next window, the end of the image, and
           the end of the last window. */
        const size_t next = net->nodes[y].shape[d] * w.stride[d];
        const size_t image = net->nodes[net->nodes[y].input[0]].shape[d] + w.padding[d];
        const size_t last = next - w.stride[d] + w.kernel[d];
        net->nodes[y].shape[d] += last < image + w.padding[d] && next < image;
    }
    return y;
}

LGELU_DEF int lgelu_average_pool_window(lgelu_net *net, const char *name, int x,
                                        const lgelu_window *window)
{
    const lgelu_window w = lgelu__completed_window(window);
    return lgelu__append_pool(net, LGELU_OP_AVERAGE_POOL, name, x, &w);
}

LGELU_DEF int lgelu_global_pool(lgelu_net *net, const char *name, int x)
{
    lgelu_window w = lgelu__square_window(1, 1, 0);
    if (x >= 0 && x < net->count)
        memcpy(w.kernel, net->nodes[x].shape, sizeof w.kernel);
    return lgelu__append_pool(net, LGELU_OP_AVERAGE_POOL, name, x, &w);
}

/* aux holds, for each maximum, at which element of the window it was: the first of equal ones. Only
   that one receives the gradient. */
static size_t lgelu__pool_aux(const lgelu__job *p) { return lgelu__times(p->rows, p->channels); }

/* Returns where in its image the input's pixel under element `tap` of the window of output pixel
   (row, column) begins; LGELU__NO_PIXEL if there is none. */
static size_t lgelu__pool_pixel(const lgelu__job *p, size_t row, size_t column, size_t tap)
{
    const lgelu_node *node = p->node;
    const size_t *x = p->from->shape;
    /* A coordinate below 0 wraps and is too large then. */
    const size_t u = row * node->stride[0] + tap / node->window[1] - node->padding[0];
    const size_t v = column * node->stride[1] + tap % node->window[1] - node->padding[1];
    return u < x[0] && v < x[1] ? (u * x[1] + v) * p->channels : LGELU__NO_PIXEL;
}

/* Makes y[k] the larger of y[k] and x[k], or NaN if one of them is; which[k] becomes `tap` if that
   is x[k]. */
static void lgelu__pool_max(float *y, unsigned char *which, const float *x, size_t n,
                            unsigned char tap)
{
    size_t k;
    for (k = 0; k < n; k++) {
        if (!(x[k] <= y[k]) && y[k] >= y[k]) {
            y[k] = x[k];
            which[k] = tap;
        }
    }
}

/* Computes one pixel of a max pooling from its image x. Each window has a pixel of the image. */
static void lgelu__max_pool_forward(const lgelu__job *p, const float *x, size_t row, size_t column,
                                    float *y, unsigned char *which)
{
    const size_t taps = lgelu__taps(p->node), c = p->channels;
    size_t tap;
    int begun = 0;
    for (tap = 0; tap < taps; tap++) {
        const size_t at = lgelu__pool_pixel(p, row, column, tap);
        if (at == LGELU__NO_PIXEL)
            continue;
        if (begun) {
            lgelu__pool_max(y, which, x + at, c, (unsigned char)tap);
        } else {
            memcpy(y, x + at, c * sizeof *y);
            memset(which, (int)tap, c);
            begun = 1;
        }
    }
}

/* Adds the gradient of one pixel to that of its image, in each channel where the maximum was. */
static void lgelu__max_pool_backward(const lgelu__job *p, float *dx, size_t row, size_t column,
                                     const float *dy, const unsigned char *which)
{
    const size_t taps = lgelu__taps(p->node), c = p->channels;
    size_t tap, k;
    for (tap = 0; tap < taps; tap++) {
        const size_t at = lgelu__pool_pixel(p, row, column, tap);
        if (at == LGELU__NO_PIXEL)
            continue;
        for (k = 0; k < c; k++) {
            if (which[k] == tap)
                dx[at + k] += dy[k];
        }
    }
}

/* Returns the factor of each pixel in the mean of a window; padding counts as zeros. */
static float lgelu__pool_factor(const lgelu_node *node)
{
    return (float)(1 / ((double)node->window[0] * (double)node->window[1]));
}

/* Computes one pixel of an average pooling from its image x. */
static void lgelu__average_pool_forward(const lgelu__job *p, const float *x, size_t row,
                                        size_t column, float *y)
{
    const size_t taps = lgelu__taps(p->node), c = p->channels;
    const float factor = lgelu__pool_factor(p->node);
    size_t tap, k;
    for (k = 0; k < c; k++)
        y[k] = 0;
    for (tap = 0; tap < taps; tap++) {
        const size_t at = lgelu__pool_pixel(p, row, column, tap);
        if (at == LGELU__NO_PIXEL)
            continue;
        for (k = 0; k < c; k++)
            y[k] += x[at + k];
    }
    for (k = 0; k < c; k++)
        y[k] *= factor;
}

/* Adds the gradient of one pixel, times the factor, to each pixel of its window. A kernel computes
   the products before they are added, so that no compiler contracts the two. */
static void lgelu__average_pool_backward(const lgelu__job *p, float *dx, size_t row, size_t column,
                                         const float *dy)
{
    enum { CHANNELS = 256 };
    const size_t taps = lgelu__taps(p->node), c = p->channels;
    const float factor = lgelu__pool_factor(p->node);
    float part[CHANNELS];
    size_t first, tap, k;
    for (first = 0; first < c; first += CHANNELS) {
        const size_t n = lgelu__min(c - first, CHANNELS);
        lgelu__k()->scale(part, dy + first, factor, n);
        for (tap = 0; tap < taps; tap++) {
            const size_t at = lgelu__pool_pixel(p, row, column, tap);
            if (at == LGELU__NO_PIXEL)
                continue;
            for (k = 0; k < n; k++)
                dx[at + first + k] += part[k];
        }
    }
}

/* Computes a sample of the value, or of dx. */
static void lgelu__pool_range(const lgelu__job *p, size_t first, size_t rows)
{
    const lgelu_node *node = p->node;
    const size_t elements = lgelu__elements(p->from), image = first / rows * elements;
    const int max = node->op == LGELU_OP_MAX_POOL;
    size_t i;
    if (p->dy)
        memset(p->dx[0] + image, 0, elements * sizeof *p->dx[0]);
    for (i = 0; i < rows; i++) {
        const size_t at = (first + i) * p->channels;
        const size_t row = i / node->shape[1], column = i % node->shape[1];
        unsigned char *which = (unsigned char *)p->aux + (max ? at : 0);
        if (max && p->dy)
            lgelu__max_pool_backward(p, p->dx[0] + image, row, column, p->dy + at, which);
        else if (max)
            lgelu__max_pool_forward(p, p->x + image, row, column, p->y + at, which);
        else if (p->dy)
            lgelu__average_pool_backward(p, p->dx[0] + image, row, column, p->dy + at);
        else
            lgelu__average_pool_forward(p, p->x + image, row, column, p->y + at);
    }
}

/* ---- channels multiplied by factors: y = x·f, dx = dy·f, df = Σ dy·x over the pixels ---- */

/* A negative index of the factors becomes one that is refused. */
LGELU_DEF int lgelu_scale(lgelu_net *net, const char *name, int x, int factors)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_SCALE, name, x, factors < 0 ? net->count : factors);
    const lgelu_node *f;
    if (net->status)
        return -1;
    f = net->nodes + factors;
    if (f->shape[0] != 1 || f->shape[1] != 1 || f->shape[2] != node.shape[2]) {
        lgelu__fail(net, LGELU_E_SHAPE,
                    "%n: expected factors of 1 x 1 x %z, found '%s' of %z x %z x %z", &node,
                    node.shape[2], f->name, f->shape[0], f->shape[1], f->shape[2]);
    }
    return lgelu__append(net, &node);
}

/* Computes a sample of the value, or of the gradients. Each df is one chain of fma over the pixels
   in order, 64 of them at a time. */
static void lgelu__scale_range(const lgelu__job *p, size_t row, size_t rows)
{
    enum { PIXELS = 64 };
    const size_t c = p->channels, at = row * c, sample = row / rows;
    const float *factors = lgelu__input_value(p->net, p->node, 1) + sample * c;
    const lgelu__scaled scaled = { (p->dy ? p->dy : p->x) + at, factors, NULL };
    const lgelu__scaled none = { NULL, NULL, NULL };
    const float *pixel[PIXELS];
    float *df = p->dx[1] ? p->dx[1] + sample * c : NULL;
    size_t i, k;
    for (i = 0; df && i < rows; i += PIXELS) {
        const size_t n = lgelu__min(rows - i, PIXELS);
        for (k = 0; k < n; k++)
            pixel[k] = p->x + at + (i + k) * c;
        lgelu__k()->depthwise(df, c, p->dy + at + i * c, c, i ? df : NULL, pixel, n);
    }
    if (!p->dy)
        lgelu__k()->affine(p->y + at, &scaled, &none, rows, c);
    else if (p->dx[0])
        lgelu__k()->affine(p->dx[0] + at, &scaled, &none, rows, c);
}

static void lgelu__scale_backward(lgelu__job *p) { lgelu__for_rows(p, lgelu__scale_range); }

/* ---- concatenation of the channels of two inputs ---- */

/* A negative b becomes an index that is refused. */
LGELU_DEF int lgelu_concat(lgelu_net *net, const char *name, int a, int b)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_CONCAT, name, a, b < 0 ? net->count : b);
    const lgelu_node *p, *q;
    if (net->status)
        return -1;
    p = net->nodes + a;
    q = net->nodes + b;
    if (memcmp(p->shape, q->shape, 2 * sizeof *p->shape)) {
        lgelu__fail(net, LGELU_E_SHAPE,
                    "%n: expected inputs of the same rows and columns, found '%s' of %z x %z and "
                    "'%s' of %z x %z",
                    &node, p->name, p->shape[0], p->shape[1], q->name, q->shape[0], q->shape[1]);
    }
    node.shape[2] += q->shape[2];
    return lgelu__append(net, &node);
}

/* Copies rows of both inputs beside each other or, in the backward, rows of dy to both dx. */
static void lgelu__concat_range(const lgelu__job *p, size_t row, size_t rows)
{
    const float *b = lgelu__input_value(p->net, p->node, 1);
    const size_t first = p->from->shape[2], second = p->channels - first;
    size_t i;
    for (i = row; i < row + rows; i++) {
        const size_t at = i * p->channels;
        if (!p->dy) {
            memcpy(p->y + at, p->x + i * first, first * sizeof *p->y);
            memcpy(p->y + at + first, b + i * second, second * sizeof *p->y);
            continue;
        }
        if (p->dx[0] && p->node->input[0] == p->node->input[1]) {
            lgelu__k()->add(p->dx[0] + i * first, p->dy + at, p->dy + at + first, first);
            continue;
        }
        if (p->dx[0])
            memcpy(p->dx[0] + i * first, p->dy + at, first * sizeof *p->y);
        if (p->dx[1])
            memcpy(p->dx[1] + i * second, p->dy + at + first, second * sizeof *p->y);
    }
}

/* Where both inputs are one layer, both gradients would go to its one scratch buffer: dx[0]
   receives their sum instead. */
static void lgelu__concat_backward(lgelu__job *p)
{
    if (p->node->input[0] == p->node->input[1])
        p->dx[1] = NULL;
    lgelu__for_rows(p, lgelu__concat_range);
}

/* ---- views ---- */

LGELU_DEF int lgelu_flatten(lgelu_net *net, const char *name, int x)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_VIEW, name, x, -1);
    node.shape[2] = lgelu__elements(&node);
    node.shape[0] = node.shape[1] = 1;
    return lgelu__append(net, &node);
}

/* ---- embedding ---- */

LGELU_DEF int lgelu_embedding(lgelu_net *net, const char *name, int tokens, size_t channels)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_EMBEDDING, name, tokens, -1);
    const size_t vocabulary = node.shape[2];
    node.shape[2] = channels;
    return lgelu__append_with_matrix(net, &node, vocabulary, channels);
}

/* y[i] = row token[i] of the matrix (vocabulary, channels). */
static lgelu_status lgelu__embedding_forward(lgelu__job *p)
{
    const int32_t *token = (const int32_t *)(const void *)p->x;
    size_t i, c = p->channels;
    for (i = 0; i < p->rows; i++)
        memcpy(p->y + i * c, p->w + (size_t)token[i] * c, c * sizeof *p->y);
    return LGELU_OK;
}

/* Adds each row of dy to the matrix row of its token. A task has 64 channels and takes the rows in
   order, so that each sum has one order on any number of threads. */
static void lgelu__embedding_range(size_t task, void *user)
{
    const lgelu__job *p = (const lgelu__job *)user;
    const int32_t *token = (const int32_t *)(const void *)p->x;
    size_t i, first = task * 64, n = lgelu__min(p->channels - first, 64);
    for (i = 0; i < p->rows; i++) {
        float *sum = p->dw + (size_t)token[i] * p->channels + first;
        lgelu__k()->add(sum, sum, p->dy + i * p->channels + first, n);
    }
}

static void lgelu__embedding_backward(lgelu__job *p)
{
    if (!p->add_dw)
        memset(p->dw, 0, p->node->weight_count * sizeof *p->dw);
    lgelu__parallel(&p->net->threads, lgelu__embedding_range, p, (p->channels + 63) / 64);
}

/* ---- positions ---- */

LGELU_DEF int lgelu_position(lgelu_net *net, const char *name, int x)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_POSITION, name, x, -1);
    return lgelu__append_with_matrix(net, &node, node.shape[0] * node.shape[1], node.shape[2]);
}

/* y = x + P for whole samples. While tokens are generated, `from` is the position of the first. */
static void lgelu__position_range(const lgelu__job *p, size_t row, size_t rows)
{
    const size_t at = row * p->channels;
    lgelu__k()->add(p->y + at, p->x + at, p->w + p->net->internal.from * p->channels,
                    rows * p->channels);
}

static void lgelu__position_backward(lgelu__job *p)
{
    const size_t n = lgelu__elements(p->node);
    lgelu_column_sums(p->dw, p->dy, n, p->samples, n, p->add_dw, &p->net->threads);
    lgelu__pass_backward(p);
}

/* ---- rotary positions ---- */

/* Refuses a node whose input is no sequence of tokens, which has one row. */
static void lgelu__check_one_row(lgelu_net *net, const lgelu_node *node)
{
    if (node->shape[0] != 1) {
        lgelu__fail(net, LGELU_E_SHAPE, "%n: expected tokens in 1 row, found %z rows", node,
                    node->shape[0]);
    }
}

LGELU_DEF int lgelu_rotary(lgelu_net *net, const char *name, int x, size_t heads, size_t width,
                           float base, int interleaved)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_ROTARY, name, x, -1);
    if (!heads || !width || width % 2 || heads > node.shape[2] / width) {
        lgelu__fail(net, LGELU_E_SHAPE,
                    "%n: expected heads of an even width among %z channels, found %z of %z", &node,
                    node.shape[2], heads, width);
    }
    if (!(base > 0 && base <= FLT_MAX))
        lgelu__fail(net, LGELU_E_ARGUMENT, "%n: expected a base above 0", &node);
    lgelu__check_one_row(net, &node);
    node.option[0] = heads;
    node.option[1] = width;
    node.option[2] = interleaved != 0;
    node.base = base;
    return lgelu__append(net, &node);
}

/* The auxiliary buffer holds the cosines, then the sines of the pairs of a head, for each token of
   the call. Each forward computes them again, which costs little since all samples and heads use
   the same. The backward turns by the opposite angle. */
static size_t lgelu__rotary_aux(const lgelu__job *p)
{
    return lgelu__times(lgelu__times(p->node->shape[1], p->node->option[1]), sizeof(float));
}

/* Computes the cosines and sines of pair number `pair` for each token. */
static void lgelu__rotary_angles(size_t pair, void *user)
{
    const lgelu__job *p = (const lgelu__job *)user;
    const lgelu_net *net = p->net;
    const size_t width = p->node->option[1];
    const size_t tokens = lgelu__min(p->rows, p->node->shape[1]);
    const double power = 2 * (double)pair / (double)width;
    const double one_over_pi = 0.3183098861837907;
    const double turn = lgelu__exp(-power * lgelu__log((double)p->node->base)) * one_over_pi;
    float *c = p->aux + pair, *s = c + width / 2;
    size_t i;
    for (i = 0; i < tokens; i++) {
        /* The angle of token i divided by π, and that without its full turns, in [-1, 1]. */
        const double angle = (double)(net->internal.from + i) * turn;
        const double x = fma(-2.0, floor(fma(angle, 0.5, 0.5)), angle);
        const double sine = lgelu__sinpi(fabs(x));
        c[i * width] = (float)lgelu__cospi(fabs(x));
        s[i * width] = (float)(x < 0 ? -sine : sine);
    }
}

static lgelu_status lgelu__rotary_forward(lgelu__job *p)
{
    lgelu__parallel(&p->net->threads, lgelu__rotary_angles, p, p->node->option[1] / 2);
    return LGELU_OK;
}

/* Turns the pairs (x[2i], x[2i + 1]) of one head; by the opposite angle if `back` is 1. */
static void lgelu__rotary_interleaved(float *y, const float *x, const float *table, size_t width,
                                      int back)
{
    enum { PAIRS = 64 };
    float a[PAIRS], b[PAIRS];
    const size_t half = width / 2;
    size_t i, k;
    for (i = 0; i < half; i += PAIRS) {
        const size_t n = lgelu__min(half - i, PAIRS);
        for (k = 0; k < n; k++) {
            a[k] = x[2 * (i + k)];
            b[k] = x[2 * (i + k) + 1];
        }
        if (back)
            lgelu__k()->rotate(b, a, b, a, table + i, table + half + i, n);
        else
            lgelu__k()->rotate(a, b, a, b, table + i, table + half + i, n);
        for (k = 0; k < n; k++) {
            y[2 * (i + k)] = a[k];
            y[2 * (i + k) + 1] = b[k];
        }
    }
}

/* Computes rows of the value, or of dx. */
static void lgelu__rotary_range(const lgelu__job *p, size_t row, size_t rows)
{
    const size_t heads = p->node->option[0], width = p->node->option[1], half = width / 2;
    const size_t c = p->channels, turned = heads * width;
    const int back = p->dy != NULL;
    size_t i, h;
    for (i = row; i < row + rows; i++) {
        const float *x = (back ? p->dy : p->x) + i * c;
        const float *table = p->aux + i % p->node->shape[1] * width;
        float *y = (back ? p->dx[0] : p->y) + i * c;
        for (h = 0; h < turned; h += width) {
            if (p->node->option[2]) {
                lgelu__rotary_interleaved(y + h, x + h, table, width, back);
            } else if (back) {
                lgelu__k()->rotate(y + h + half, y + h, x + h + half, x + h, table, table + half,
                                   half);
            } else {
                lgelu__k()->rotate(y + h, y + h + half, x + h, x + h + half, table, table + half,
                                   half);
            }
        }
        if (y != x)
            memcpy(y + turned, x + turned, (c - turned) * sizeof *y);
    }
}

/* ---- layer and RMS normalisation ---- */

LGELU_DEF int lgelu_layer_norm(lgelu_net *net, const char *name, int x)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_LAYER_NORM, name, x, -1);
    node.eps = 1e-5f;
    /* gains, then shifts */
    node.bias_count = 2 * node.shape[2];
    return lgelu__append(net, &node);
}

LGELU_DEF int lgelu_rms_norm(lgelu_net *net, const char *name, int x)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_RMS_NORM, name, x, -1);
    node.eps = 1e-5f;
    /* gains alone */
    node.bias_count = node.shape[2];
    return lgelu__append(net, &node);
}

/* y = h·gain + shift with h = (x - mean)·r and r = 1/√(variance + eps) of each row; in RMS
   normalisation mean and shift are 0, and the variance is mean(x²). The auxiliary buffer holds mean
   and r of each row, then for each task the sums over its rows dgain = Σ dy·h and, if there are
   shifts, dshift = Σ dy, which the backward adds up in order. With g = dy·gain, dx = r·(g - mean(g)
   - h·mean(g·h)), in RMS normalisation without mean(g). */
static size_t lgelu__row_norm_aux(const lgelu__job *p)
{
    const size_t sums = lgelu__times(lgelu__task_count(p), p->node->bias_count);
    return lgelu__times(lgelu__plus(lgelu__times(2, p->rows), sums), sizeof(float));
}

static void lgelu__row_norm_range(const lgelu__job *p, size_t row, size_t rows)
{
    const lgelu__row_norm norm = { p->bias, p->node->eps, p->node->op == LGELU_OP_LAYER_NORM };
    const size_t c = p->channels, n = p->node->bias_count;
    float *sums = p->aux + 2 * p->rows + row / p->rows_per_task * n;
    size_t i;
    if (!p->dy) {
        lgelu__k()->normalise(p->y + row * c, p->aux + 2 * row, p->x + row * c, &norm, rows, c);
        return;
    }
    memset(sums, 0, n * sizeof *sums);
    for (i = row; i < row + rows; i++) {
        lgelu__k()->normalise_backward(p->dx[0] ? p->dx[0] + i * c : NULL, sums, p->dy + i * c,
                                       p->x + i * c, p->aux + 2 * i, &norm, p->add, c);
    }
}

static void lgelu__row_norm_backward(lgelu__job *p)
{
    const size_t n = p->node->bias_count;
    lgelu__for_rows(p, lgelu__row_norm_range);
    lgelu_column_sums(p->dbias, p->aux + 2 * p->rows, n, lgelu__task_count(p), n, p->add_dbias,
                      &p->net->threads);
}

/* ---- attention ---- */

static int lgelu__append_attention(lgelu_net *net, lgelu_node *node, size_t heads, size_t kv_heads,
                                   int causal)
{
    lgelu__check_one_row(net, node);
    node->shape[2] = node->shape[2] / lgelu__plus(heads, lgelu__times(2, kv_heads)) * heads;
    node->option[0] = heads;
    node->option[1] = causal != 0;
    node->option[2] = kv_heads;
    /* Keys and values of earlier tokens are kept. */
    node->internal.tokenwise = causal != 0;
    return lgelu__append(net, node);
}

LGELU_DEF int lgelu_attention(lgelu_net *net, const char *name, int qkv, size_t heads, int causal)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_ATTENTION, name, qkv, -1);
    if (!heads || node.shape[2] % 3 || node.shape[2] / 3 % heads) {
        lgelu__fail(net, LGELU_E_SHAPE,
                    "%n: expected a multiple of 3·heads channels, found %z channels and %z heads",
                    &node, node.shape[2], heads);
        return -1;
    }
    return lgelu__append_attention(net, &node, heads, heads, causal);
}

LGELU_DEF int lgelu_attention_grouped(lgelu_net *net, const char *name, int qkv, size_t heads,
                                      size_t kv_heads, int causal)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_ATTENTION, name, qkv, -1);
    const size_t all = lgelu__plus(heads, lgelu__times(2, kv_heads));
    if (!kv_heads || !heads || heads % kv_heads || node.shape[2] % all) {
        lgelu__fail(net, LGELU_E_SHAPE,
                    "%n: expected a multiple of heads + 2·kv_heads channels, found %z channels, %z "
                    "heads and %z for keys",
                    &node, node.shape[2], heads, kv_heads);
        return -1;
    }
    return lgelu__append_attention(net, &node, heads, kv_heads, causal);
}

/* For each head S = Q Kᵀ·scale, P = softmax(S), O = P V. The scores of 64 queries with all their
   keys are computed at a time, so that memory grows with the context and not with its square. A
   causal forward takes 32 queries, which computes fewer scores of later keys: 0.90 of the time with
   128 tokens, about the same with 1,024 (Zen 4). The forward keeps the largest score and Σ exp of
   each row, from which the backward computes the scores again. A few workers take the tasks in
   turn; each has its own part of net.internal.scratch, for scores, their gradients and the
   workspace of products. */
enum { LGELU__QUERIES = 64 }; /* queries in a block at most */

typedef struct {
    const float *x, *dy;  /* (samples, tokens, x_row): queries, keys, values; dy of y */
    float *y, *dx, *stat; /* stat: the largest score and Σ exp of each row of scores */
    float scale;          /* 1/√width */
    unsigned char *work;  /* work_bytes for each worker */
    size_t tokens, channels, heads, width;
    size_t kv_heads, group; /* heads of keys and values; how many heads of queries read each */
    size_t x_row;           /* floats of x from one token to the next */
    size_t row;             /* floats from one row of scores to the next */
    size_t queries;         /* in a block, at most */
    size_t tasks, blocks;   /* heads of queries of all samples; blocks of queries of each */
    size_t from, count;     /* the first query, as a position, and how many there are */
    size_t work_bytes;
    int causal, *broken;
} lgelu__attention_job;

/* One block of queries of one head. Positions are in elements of x, y and stat. */
typedef struct {
    size_t first;         /* the first query, as a position in the sequence */
    size_t queries, keys; /* how many queries, and how many keys the last of them sees */
    size_t q_at, k_at, v_at, y_at, stat_at;
} lgelu__attention_block;

/* Returns the floats from one row of scores to the next: whole cache lines. */
static size_t lgelu__attention_row(const lgelu_node *node)
{
    return (node->shape[1] + 15) & ~(size_t)15;
}

/* Returns the bytes of one worker's workspace: two blocks of scores, and the workspace of a product
   on one thread. For at most 64 queries, w channels of a head and t tokens, the products are (64,
   t, w), (64, w, t) and (t, w, 64). A causal attention multiplies by any number of tokens up to the
   context; since the workspace of a product suffices for every smaller one, that of the whole
   context suffices for them all. */
static size_t lgelu__attention_work_bytes(const lgelu_node *node)
{
    const size_t n = LGELU__QUERIES, t = node->shape[1], w = node->shape[2] / node->option[0];
    const size_t most =
        lgelu__max(lgelu__workspace(n, t, w, 1),
                   lgelu__max(lgelu__workspace(n, w, t, 1), lgelu__workspace(t, w, n, 1)));
    return lgelu__plus(lgelu__times(2 * n * sizeof(float), lgelu__attention_row(node)), most + 63)
           & ~(size_t)63;
}

static size_t lgelu__attention_work(const lgelu__job *p, int train)
{
    (void)train;
    return lgelu__times(LGELU__WORKERS, lgelu__attention_work_bytes(p->node));
}

static size_t lgelu__attention_aux(const lgelu__job *p)
{
    return lgelu__times(lgelu__times(p->rows, p->node->option[0]), 2 * sizeof(float));
}

/* Returns the arguments of an attention that takes `queries` queries at a time. */
static lgelu__attention_job lgelu__attention_make(const lgelu__job *job, size_t queries)
{
    lgelu_net *net = job->net;
    const lgelu_node *node = job->node;
    lgelu__attention_job p;
    p.tokens = node->shape[1];
    p.channels = node->shape[2];
    p.heads = node->option[0];
    p.width = p.channels / p.heads;
    p.kv_heads = node->option[2];
    p.group = p.heads / p.kv_heads;
    p.x_row = p.channels + 2 * p.kv_heads * p.width;
    p.scale = (float)(1 / sqrt((double)p.width));
    p.causal = node->option[1] != 0;
    p.broken = &net->internal.broken;
    p.row = lgelu__attention_row(node);
    p.work_bytes = lgelu__attention_work_bytes(node);
    p.from = net->internal.from;
    p.count = net->internal.tokens ? net->internal.tokens : p.tokens;
    /* The job's values begin with token `from`; in an attention positions count from token 0. */
    p.x = job->x - p.from * p.x_row;
    p.y = job->y - p.from * p.channels;
    p.dx = job->dx[0];
    p.dy = job->dy;
    p.stat = job->aux;
    p.work = (unsigned char *)net->internal.scratch;
    p.queries = queries;
    p.blocks = (p.count + queries - 1) / queries;
    p.tasks = job->samples * p.heads;
    return p;
}

/* Returns block number `block` of a head of queries; `head` counts those of all samples. */
static lgelu__attention_block lgelu__attention_block_of(const lgelu__attention_job *p, size_t head,
                                                        size_t block)
{
    const size_t sample = head / p->heads, channel = head % p->heads * p->width;
    const size_t kv_channel = head % p->heads / p->group * p->width;
    const size_t x_row = p->x_row, first_token = sample * p->tokens;
    lgelu__attention_block b;
    b.first = p->from + block * p->queries;
    b.queries = lgelu__min(p->from + p->count - b.first, p->queries);
    b.keys = p->causal ? b.first + b.queries : p->tokens;
    b.q_at = (first_token + b.first) * x_row + channel;
    b.k_at = first_token * x_row + p->channels + kv_channel;
    b.v_at = b.k_at + p->kv_heads * p->width;
    b.y_at = (first_token + b.first) * p->channels + channel;
    b.stat_at = 2 * (head * p->tokens + b.first);
    return b;
}

/* Returns how many keys query number i of a block sees. */
static size_t lgelu__attention_keys(const lgelu__attention_job *p, const lgelu__attention_block *b,
                                    size_t i)
{
    return p->causal ? b->first + i + 1 : b->keys;
}

/* Computes O = P V for `count` queries of a block from number i on, each of them over the keys that
   the last one sees. The rows of P have not been divided by their sums yet. */
static void lgelu__attention_outputs(const lgelu__attention_job *p, const lgelu__attention_block *b,
                                     size_t i, size_t count, const float *s, void *work)
{
    const size_t keys = lgelu__attention_keys(p, b, i + count - 1);
    float *y = p->y + b->y_at + i * p->channels;
    const lgelu_product job = lgelu__product_make(count, p->width, keys, y, p->channels,
                                                  lgelu__matrix(s + i * p->row, p->row),
                                                  lgelu__matrix(p->x + b->v_at, p->x_row));
    lgelu__multiply(&job, work, NULL, p->broken);
}

/* Computes the outputs of a block, and what the backward needs of its scores into p->stat. */
static void lgelu__attention_forward_block(const lgelu__attention_job *p,
                                           const lgelu__attention_block *b, float *s, void *work)
{
    const lgelu__kernels *isa = lgelu__k();
    const size_t row = p->row, x_row = p->x_row, c = p->channels, w = p->width;
    float *y = p->y + b->y_at, *stat = p->stat + b->stat_at;
    lgelu_product job;
    size_t i;
    /* S = Q Kᵀ */
    job = lgelu__product_make(b->queries, b->keys, w, s, row, lgelu__matrix(p->x + b->q_at, x_row),
                              lgelu__transpose(p->x + b->k_at, x_row));
    lgelu__multiply(&job, work, NULL, p->broken);
    /* Each row of S becomes exp(scale·(S - its largest)); stat receives that and the sum. */
    for (i = 0; i < b->queries; i++) {
        isa->exp_row(s + i * row, stat + 2 * i, s + i * row, p->scale,
                     lgelu__attention_keys(p, b, i), b->keys);
    }
    /* O = P V, divided by the sums at the end. In a causal attention P is 0 where a key is later
       than its query, and adds 0·v. The last query sees all keys: if its output is finite, so is
       each v, and 0·v is 0. If it is not, each other query is multiplied by its own keys alone. */
    lgelu__attention_outputs(p, b, 0, b->queries, s, work);
    if (p->causal && lgelu__first_not_finite(y + (b->queries - 1) * c, w) < w) {
        for (i = 0; i + 1 < b->queries; i++)
            lgelu__attention_outputs(p, b, i, 1, s, work);
    }
    for (i = 0; i < b->queries; i++)
        isa->scale(y + i * c, y + i * c, 1 / stat[2 * i + 1], w);
}

static void lgelu__attention_forward_worker(size_t worker, void *user)
{
    const lgelu__attention_job *p = (const lgelu__attention_job *)user;
    float *s = (float *)(void *)(p->work + worker * p->work_bytes);
    void *work = s + 2 * LGELU__QUERIES * p->row;
    size_t task;
    for (task = worker; task < p->tasks * p->blocks; task += LGELU__WORKERS) {
        const lgelu__attention_block b =
            lgelu__attention_block_of(p, task / p->blocks, task % p->blocks);
        lgelu__attention_forward_block(p, &b, s, work);
    }
}

/* Computes dQ of a block, and dK and dV of the keys that it sees: they are written if `first` is 1,
   else added to. s and ds have one block of scores each. */
static void lgelu__attention_backward_block(const lgelu__attention_job *p,
                                            const lgelu__attention_block *b, int first, float *s,
                                            float *ds, void *work)
{
    const size_t row = p->row, x_row = p->x_row, w = p->width;
    const lgelu_matrix q = lgelu__matrix(p->x + b->q_at, x_row);
    const lgelu_matrix dy = lgelu__matrix(p->dy + b->y_at, p->channels);
    lgelu_product job;
    size_t i;
    /* S = Q Kᵀ, as in the forward */
    job = lgelu__product_make(b->queries, b->keys, w, s, row, q,
                              lgelu__transpose(p->x + b->k_at, x_row));
    lgelu__multiply(&job, work, NULL, p->broken);
    /* dP = dO Vᵀ */
    job = lgelu__product_make(b->queries, b->keys, w, ds, row, dy,
                              lgelu__transpose(p->x + b->v_at, x_row));
    lgelu__multiply(&job, work, NULL, p->broken);
    /* P = softmax(S·scale) replaces S, and dS = P·(dP - Σ P·dP)·scale replaces dP. */
    for (i = 0; i < b->queries; i++) {
        lgelu__k()->softmax_backward(s + i * row, ds + i * row, p->stat + b->stat_at + 2 * i,
                                     p->scale, lgelu__attention_keys(p, b, i), b->keys);
    }
    /* dV = Pᵀ dO */
    job = lgelu__product_make(b->keys, w, b->queries, p->dx + b->v_at, x_row,
                              lgelu__transpose(s, row), dy);
    job.accumulate = !first;
    lgelu__multiply(&job, work, NULL, p->broken);
    /* dK = dSᵀ Q */
    job = lgelu__product_make(b->keys, w, b->queries, p->dx + b->k_at, x_row,
                              lgelu__transpose(ds, row), q);
    job.accumulate = !first;
    lgelu__multiply(&job, work, NULL, p->broken);
    /* dQ = dS K */
    job = lgelu__product_make(b->queries, w, b->keys, p->dx + b->q_at, x_row,
                              lgelu__matrix(ds, row), lgelu__matrix(p->x + b->k_at, x_row));
    lgelu__multiply(&job, work, NULL, p->broken);
}

/* Takes the blocks of each head from the last to the first: the last one sees all keys, so that it
   writes every row of dK and dV, and the others add to them. One worker takes all heads of queries
   that read the same keys; those after the first add to dK and dV. */
static void lgelu__attention_backward_worker(size_t worker, void *user)
{
    const lgelu__attention_job *p = (const lgelu__attention_job *)user;
    float *s = (float *)(void *)(p->work + worker * p->work_bytes),
          *ds = s + LGELU__QUERIES * p->row;
    void *work = ds + LGELU__QUERIES * p->row;
    const size_t blocks = p->group * p->blocks;
    size_t first, k;
    for (first = worker * p->group; first < p->tasks; first += LGELU__WORKERS * p->group) {
        for (k = 0; k < blocks; k++) {
            const size_t head = first + k / p->blocks;
            const lgelu__attention_block b =
                lgelu__attention_block_of(p, head, p->blocks - 1 - k % p->blocks);
            lgelu__attention_backward_block(p, &b, k == 0, s, ds, work);
        }
    }
}

/* Below 2^16 products of values, as in generating a token, other threads would cost more than they
   compute. */
static lgelu_status lgelu__attention_forward(lgelu__job *job)
{
    const int causal = job->node->option[1] != 0;
    lgelu__attention_job p =
        lgelu__attention_make(job, causal ? LGELU__QUERIES / 2 : LGELU__QUERIES);
    const int alone = p.count * p.tokens * p.channels < 65536;
    lgelu__parallel(alone ? NULL : &job->net->threads, lgelu__attention_forward_worker, &p,
                    lgelu__min(LGELU__WORKERS, p.tasks * p.blocks));
    return LGELU_OK;
}

static void lgelu__attention_backward(lgelu__job *job)
{
    lgelu__attention_job p = lgelu__attention_make(job, LGELU__QUERIES);
    if (p.dx) {
        lgelu__parallel(&job->net->threads, lgelu__attention_backward_worker, &p,
                        lgelu__min(LGELU__WORKERS, p.tasks / p.group));
    }
}

/* ---- dropout ---- */

LGELU_DEF int lgelu_dropout(lgelu_net *net, const char *name, int x, float rate)
{
    lgelu_node node;
    if (rate <= 0 && rate >= 0)
        return x;
    node = lgelu__node(net, LGELU_OP_DROPOUT, name, x, -1);
    if (!(rate > 0 && rate < 1)) {
        lgelu__fail(net, LGELU_E_ARGUMENT, "%n: expected a rate of at least 0 and less than 1",
                    &node);
    }
    node.rate = rate;
    return lgelu__append(net, &node);
}

/* Computes a range of dropout, or of its gradient. Which values are dropped depends on seed, step,
   pass, layer and index only, so that the backward draws them again and nothing is stored. */
static void lgelu__dropout_range(const lgelu__job *p, size_t row, size_t rows)
{
    const lgelu_net *net = p->net;
    const uint64_t stream = (uint64_t)1 << 63 | (uint64_t)(p->node - net->nodes) << 47
                            | (net->pass & 0xFFFF) << 31 | ((uint64_t)net->step & 0x7FFFFFFF);
    const size_t first = row * p->channels, n = rows * p->channels;
    const float *x = (p->dy ? p->dy : p->x) + first;
    float *y = (p->dy ? p->dx[0] : p->y) + first;
    if (net->internal.learning)
        lgelu__k()->dropout(y, x, net->seed, stream, first, p->node->rate, n);
    else if (y != x)
        memcpy(y, x, n * sizeof *y);
}

/* ---- images as tokens: patches, transpose, class token, mean of tokens ---- */

/* In these layers a task computes one sample. */

LGELU_DEF int lgelu_patches(lgelu_net *net, const char *name, int image, size_t side)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_PATCHES, name, image, -1);
    size_t *s = node.shape;
    if (!side || s[0] % side || s[1] % side) {
        lgelu__fail(net, LGELU_E_SHAPE, "%n: the image does not divide into squares of side %z",
                    &node, side);
    } else {
        s[1] = s[0] / side * (s[1] / side);
    }
    s[0] = 1;
    s[2] *= side * side;
    node.option[0] = side;
    return lgelu__append(net, &node);
}

/* Copies each row of the image, which has one line of each of the `across` patches beside each
   other, to these patches; in the backward the other way. i counts the rows of all samples; side
   divides those of each. */
static void lgelu__patches_range(const lgelu__job *p, size_t row, size_t rows)
{
    const size_t *x = p->from->shape;
    const size_t side = p->node->option[0], line = side * x[2], across = x[1] / side;
    const size_t first = row / rows * x[0];
    size_t i, k;
    for (i = first; i < first + x[0]; i++) {
        for (k = 0; k < across; k++) {
            const size_t at = (i * across + k) * line;
            const size_t to = ((i / side * across + k) * side + i % side) * line;
            if (p->dy)
                memcpy(p->dx[0] + at, p->dy + to, line * sizeof *p->y);
            else
                memcpy(p->y + to, p->x + at, line * sizeof *p->y);
        }
    }
}

LGELU_DEF int lgelu_transpose(lgelu_net *net, const char *name, int x)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_TRANSPOSE, name, x, -1);
    size_t *s = node.shape;
    const size_t channels = s[2];
    s[2] = s[0] * s[1];
    s[1] = channels;
    s[0] = 1;
    return lgelu__append(net, &node);
}

/* Exchanges pixels and channels of one sample, in squares whose lines stay in the cache. */
static void lgelu__transpose_range(const lgelu__job *p, size_t row, size_t rows)
{
    enum { SIDE = 16 };
    const size_t pixels = p->node->shape[2], c = p->from->shape[2], at = row / rows * pixels * c;
    const float *x = p->dy ? p->dy + at : p->x + at;
    float *y = p->dy ? p->dx[0] + at : p->y + at;
    /* The matrix that is read has `lines` rows of `length` elements. */
    const size_t lines = p->dy ? c : pixels, length = p->dy ? pixels : c;
    size_t first, left, i, k;
    for (first = 0; first < lines; first += SIDE) {
        for (left = 0; left < length; left += SIDE) {
            const size_t down = lgelu__min(lines, first + SIDE);
            const size_t right = lgelu__min(length, left + SIDE);
            for (i = first; i < down; i++) {
                for (k = left; k < right; k++)
                    y[k * lines + i] = x[i * length + k];
            }
        }
    }
}

LGELU_DEF int lgelu_class_token(lgelu_net *net, const char *name, int x)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_CLASS_TOKEN, name, x, -1);
    lgelu__check_one_row(net, &node);
    node.shape[1]++;
    node.bias_count = node.shape[2];
    return lgelu__append(net, &node);
}

/* Writes the learned token, then the sample's tokens; in the backward copies the gradients of the
   latter. */
static void lgelu__class_token_range(const lgelu__job *p, size_t row, size_t rows)
{
    const size_t c = p->channels, bytes = (rows - 1) * c * sizeof *p->y;
    const size_t at = row * c, from = (row - row / rows) * c;
    if (p->dy) {
        memcpy(p->dx[0] + from, p->dy + at + c, bytes);
    } else {
        memcpy(p->y + at, p->bias, c * sizeof *p->y);
        memcpy(p->y + at + c, p->x + from, bytes);
    }
}

static void lgelu__class_token_backward(lgelu__job *p)
{
    lgelu_column_sums(p->dbias, p->dy, lgelu__elements(p->node), p->samples, p->channels,
                      p->add_dbias, &p->net->threads);
    if (p->dx[0])
        lgelu__for_rows(p, lgelu__class_token_range);
}

LGELU_DEF int lgelu_mean_tokens(lgelu_net *net, const char *name, int x, size_t first, size_t count)
{
    lgelu_node node = lgelu__node(net, LGELU_OP_MEAN_TOKENS, name, x, -1);
    const size_t tokens = node.shape[0] * node.shape[1];
    if (!count || first >= tokens || count > tokens - first) {
        lgelu__fail(net, LGELU_E_SHAPE,
                    "%n: expected tokens among the %z of its input, found %z from %z on", &node,
                    tokens, count, first);
    }
    node.option[0] = first;
    node.option[1] = count;
    node.shape[0] = node.shape[1] = 1;
    return lgelu__append(net, &node);
}

/* Computes the mean of a sample's tokens, or their gradients. The value has one row for each
   sample, so that `rows` is 1 here. */
static void lgelu__mean_tokens_range(const lgelu__job *p, size_t row, size_t rows)
{
    const size_t c = p->channels, count = p->node->option[1], n = rows * lgelu__elements(p->from);
    const size_t at = row * n, first = at + p->node->option[0] * c;
    const float factor = (float)(1 / (double)count);
    float *y = p->y + row * c;
    size_t k;
    if (p->dy) {
        memset(p->dx[0] + at, 0, n * sizeof *y);
        for (k = 0; k < count; k++)
            lgelu__k()->scale(p->dx[0] + first + k * c, p->dy + row * c, factor, c);
    } else {
        lgelu__k()->column_sums(y, p->x + first, c, count, c, 0);
        if (count > 1)
            lgelu__k()->scale(y, y, factor, c);
    }
}

/* ---- losses: the mean over samples and tokens ---- */

/* Appends a loss, which has no value and so no shape. */
static int lgelu__append_loss(lgelu_net *net, lgelu_op op, const char *name, int x, int target)
{
    lgelu_node node = lgelu__node_of_pair(net, op, name, x, target);
    memset(node.shape, 0, sizeof node.shape);
    return lgelu__append(net, &node);
}

/* ---- cross-entropy ---- */

LGELU_DEF int lgelu_cross_entropy(lgelu_net *net, const char *name, int logits, int labels)
{
    return lgelu__append_loss(net, LGELU_OP_CROSS_ENTROPY, name, logits, labels);
}

static size_t lgelu__cross_entropy_aux(const lgelu__job *p)
{
    return lgelu__times(p->rows, sizeof(double));
}

/* Computes the loss of each row into p->sum, -log softmax(x)[label], and its gradient
   (softmax(x) - 1[label])·loss_scale/rows, if dx is wanted. dx may be stored where the logits x
   are: each row is read before it is written. Without labels the gradient is 0. */
static void lgelu__cross_entropy_range(const lgelu__job *p, size_t row, size_t rows)
{
    const size_t c = p->channels;
    size_t i;
    for (i = row; i < row + rows; i++) {
        const float *x = p->x + i * c;
        float *d = p->dx[0] ? p->dx[0] + i * c : NULL, stat[2], label_logit;
        if (!p->label) {
            memset(d, 0, c * sizeof *d);
            continue;
        }
        label_logit = x[(size_t)p->label[i]];
        lgelu__k()->exp_row(d, stat, x, 1, c, c);
        p->sum[i] = ((double)stat[0] - (double)label_logit) + lgelu__log((double)stat[1]);
        if (!d)
            continue;
        lgelu__k()->scale(d, d, p->per_row / stat[1], c);
        d[(size_t)p->label[i]] -= p->per_row;
    }
}

/* Adds the mean of the rows' losses, summed in order, to net.loss. */
static lgelu_status lgelu__cross_entropy_end(lgelu__job *p)
{
    double sum = 0;
    size_t i;
    for (i = 0; i < p->rows; i++)
        sum += p->sum[i];
    p->net->loss += sum / (double)p->rows;
    return LGELU_OK;
}

static lgelu_status lgelu__cross_entropy_forward(lgelu__job *p)
{
    if (!p->label)
        return LGELU_OK;
    lgelu__for_rows(p, lgelu__cross_entropy_range);
    return lgelu__cross_entropy_end(p);
}

static void lgelu__cross_entropy_backward(lgelu__job *p)
{
    if (p->dx[0])
        lgelu__for_rows(p, lgelu__cross_entropy_range);
}

/* ---- a linear layer and its cross-entropy, fused ---- */

/* Logits of more than LGELU__LARGE bytes that only a loss reads are computed LGELU__LOGITS_ROWS
   rows at a time, in one place. The loss of these rows is computed next, its gradient overwrites
   them, and from it follow the gradients of the linear layer: those of its parameters are stored in
   net.g, that of its input in the layer's auxiliary buffer until the backward. The forward thus
   does half of the backward. If net.g holds gradients already, or nothing is learned, the backward
   computes the logits again instead. */

/* Returns whether a linear layer is fused with its only reader, a cross-entropy. The loss computes
   the gradient of the matrix early in the backward, so that no later node may share the matrix. */
static int lgelu__linear_fuses(const lgelu__use *p)
{
    const lgelu_node *nodes = p->net->nodes, *node = p->node;
    if (!p->train || p->reader < 0 || nodes[p->reader].op != LGELU_OP_CROSS_ENTROPY
        || p->bytes <= LGELU__LARGE)
        return 0;
    return !node->tied || nodes + nodes[node->tied - 1].internal.last_tied - 1 == node;
}

static int lgelu__reads_fused_linear(const lgelu__use *p)
{
    return p->net->nodes[p->node->input[0]].internal.row == LGELU__LINEAR_FUSED;
}

static size_t lgelu__linear_fused_aux(const lgelu__job *p)
{
    return lgelu__times(p->rows, p->from->shape[2] * sizeof(float));
}

/* The loss computes the products of the linear layer. */
static size_t lgelu__linear_loss_work(const lgelu__job *p, int train)
{
    lgelu__job linear;
    lgelu__job_size(&linear, p->net, p->net->nodes + p->node->input[0], p->samples);
    return lgelu__linear_work(&linear, train);
}

/* Computes the losses of all rows, and the gradients of the linear layer if they are wanted. */
static void lgelu__logits_by_rows(const lgelu__job *p, int gradients)
{
    lgelu__job loss = *p, linear = lgelu__job_make(p->net, p->net->nodes + p->node->input[0]);
    const size_t in = linear.from->shape[2];
    size_t left = p->rows;
    linear.y = lgelu__buffer_at(p->net, p->node, LGELU__SCRATCH);
    linear.dx[0] = linear.aux;
    linear.dy = loss.x = linear.y;
    linear.add_dw = p->add_dw;
    linear.add_dbias = p->add_dbias;
    loss.dx[0] = gradients ? linear.y : NULL;
    while (left > 0) {
        const size_t rows = lgelu__min(left, LGELU__LOGITS_ROWS);
        loss.rows = rows;
        linear.rows = rows;
        lgelu__linear_forward(&linear);
        lgelu__for_rows(&loss, lgelu__cross_entropy_range);
        if (gradients)
            lgelu__linear_backward(&linear);
        /* the next rows; their gradients of parameters are added */
        linear.x += rows * in;
        linear.dx[0] += rows * in;
        linear.add_dw = 1;
        linear.add_dbias = 1;
        if (loss.label)
            loss.label += rows;
        loss.sum += rows;
        left -= rows;
    }
}

static lgelu_status lgelu__linear_loss_forward(lgelu__job *p)
{
    p->node->internal.ahead = p->label && p->net->internal.learning && p->net->internal.fresh;
    if (!p->label)
        return LGELU_OK;
    lgelu__logits_by_rows(p, p->node->internal.ahead);
    return lgelu__cross_entropy_end(p);
}

/* The forward has computed the gradients for a loss scale of 1. */
static void lgelu__linear_loss_backward(lgelu__job *p)
{
    const lgelu__job linear = lgelu__job_make(p->net, p->net->nodes + p->node->input[0]);
    const size_t in = linear.from->shape[2];
    const float scale = p->net->internal.loss_scale;
    if (!p->node->internal.ahead) {
        lgelu__logits_by_rows(p, 1);
    } else if (scale < 1 || scale > 1) {
        lgelu__k()->scale(linear.dw, linear.dw, scale, p->channels * in);
        lgelu__k()->scale(linear.dbias, linear.dbias, scale, linear.node->bias_count);
        lgelu__k()->scale(linear.aux, linear.aux, scale, p->rows * in);
    }
}

/* The loss, which ran before, has left the gradient in the auxiliary buffer. */
static void lgelu__linear_fused_backward(lgelu__job *p)
{
    if (p->dx[0])
        memcpy(p->dx[0], p->aux, p->rows * p->from->shape[2] * sizeof(float));
}

/* ---- mean squared error ---- */

LGELU_DEF int lgelu_mean_squared_error(lgelu_net *net, const char *name, int x, int target)
{
    return lgelu__append_loss(net, LGELU_OP_SQUARED_ERROR, name, x, target);
}

/* Adds the loss to net.loss, unless its target is not bound. */
static lgelu_status lgelu__squared_error_forward(lgelu__job *p)
{
    const float *target = lgelu__input_value(p->net, p->node, 1);
    const size_t n = p->rows * p->channels;
    double sum = 0;
    size_t i;
    if (!target)
        return LGELU_OK;
    for (i = 0; i < n; i++) {
        const double d = (double)p->x[i] - (double)target[i];
        sum = fma(d, d, sum);
    }
    p->net->loss += sum / (double)n;
    return LGELU_OK;
}

/* dx = (a - b)·factor */
static void lgelu__scaled_difference(float *dx, const float *a, const float *b, float factor,
                                     size_t n)
{
    size_t i;
    for (i = 0; i < n; i++)
        dx[i] = (a[i] - b[i]) * factor;
}

static void lgelu__squared_error_backward(lgelu__job *p)
{
    const float *target = lgelu__input_value(p->net, p->node, 1);
    const size_t n = p->rows * p->channels;
    const float factor = (float)(2 / (double)n) * p->net->internal.loss_scale;
    int k;
    for (k = 0; k < 2; k++) {
        if (!p->dx[k])
            continue;
        if (!target)
            memset(p->dx[k], 0, n * sizeof(float));
        else if (k == 0)
            lgelu__scaled_difference(p->dx[k], p->x, target, factor, n);
        else
            lgelu__scaled_difference(p->dx[k], target, p->x, factor, n);
    }
}

/* ---- custom losses ---- */

/* A gradient that is no input becomes -1, which is refused. */
LGELU_DEF int lgelu_custom_loss(lgelu_net *net, const char *name, int x, int gradient)
{
    if (gradient >= 0 && gradient < net->count && net->nodes[gradient].op != LGELU_OP_INPUT)
        gradient = -1;
    return lgelu__append_loss(net, LGELU_OP_CUSTOM_LOSS, name, x, gradient);
}

/* Passes on the caller's gradient, times the loss scale, or zeros where none is bound. */
static void lgelu__custom_loss_backward(lgelu__job *p)
{
    const float *gradient = lgelu__input_value(p->net, p->node, 1);
    const size_t n = p->rows * p->channels;
    if (gradient)
        lgelu__k()->scale(p->dx[0], gradient, p->net->internal.loss_scale, n);
    else
        memset(p->dx[0], 0, n * sizeof(float));
}

/* ---- [8d] the table of layers ---- */

/* clang-format off */
/* To add a kind of layer (SIGMOID is a small example to follow, RMS_NORM one with parameters): add
   its row to LGELU_LAYERS in [1], then run `make -C tests test_places` until it passes. It prints
   what is still missing, a line each, in these places (all that a trial, a normalisation to length
   1, needed). Those in this file are apart since [1] is the manual, where no private name stands,
   and since the memory plan in [8b] needs the rows before the layers follow:

   In this file
     1. LGELU__FUNCTIONS_OF_LAYERS at the top of [8]: one row with its functions. (A special
        algorithm for some nodes of a kind is a row of LGELU__VARIANTS instead.)
     2. [1]: the declaration of its builder. [8c]: its builder, which sets shape and counts, and
        these functions, side by side; the MAP names it. Its biases start at 0, with
        LGELU_TRAIT_NORM at 1, with LGELU__LOOKUP at random values. A new kernel has a row in
        LGELU__TRAINER_KERNELS of [4] and its body in [K].
     3. [9a], only if it has other tensors than a matrix and biases (lgelu__tensor_of).
   In examples
     4. network/onnx_out.c: the nodes of a file, and whether its value has channels first there, in
        two switches. test_onnx evaluates them.
   In tests
     5. tools/reference_net.h: the layer in double.
     6. fuzz/fuzz_network.c: a row of its builder, and a call where programs are drawn; a rule, if
        it changes the shape or refuses something, as a layer of two inputs does.
     7. A network with it in test_network.c, test_transformer.c or test_cnn.c, which compare it with
        its reference, in test_partial.c, test_same_bits.c (make record) and tools/onnx_nets.c; if
        it computes token by token, in test_generate.c.
   Nothing else is required. network/torch_file.c of examples names only the matrices that PyTorch
   stores in another form; bounds.c and int8.c list what they can do and refuse any other
   kind by its name. */
/* clang-format on */
/* The names and traits of each kind, as enumerators and as text. */
#define LGELU__NAME(kind, name, traits) name,
#define LGELU__TRAITS(kind, name, traits) LGELU__TRAITS_##kind = (int)(traits),
static const char *const lgelu__layer_names[] = { LGELU_LAYERS(LGELU__NAME) };
enum { LGELU_LAYERS(LGELU__TRAITS) LGELU__TRAITS_END };

#define lgelu__0 NULL /* a column without a function */
#define LGELU__ROW(forward, backward, range, aux, work, prepack, traits) \
    { lgelu__##forward, lgelu__##backward, lgelu__##range, lgelu__##aux, \
      lgelu__##work,    lgelu__##prepack,  traits },
#define LGELU__KIND(kind, forward, backward, range, aux, work, prepack, traits) \
    LGELU__ROW(forward, backward, range, aux, work, prepack,                    \
               (unsigned)LGELU__TRAITS_##kind | (traits))
#define LGELU__VARIANT(variant, kind, applies, forward, backward, range, aux, work, prepack, \
                       traits)                                                               \
    LGELU__ROW(forward, backward, range, aux, work, prepack, traits)
static const lgelu__layer lgelu__layers[] = { LGELU__FUNCTIONS_OF_LAYERS(LGELU__KIND)
                                                  LGELU__VARIANTS(LGELU__VARIANT) };
typedef char
    lgelu__layers_have_every_row[sizeof lgelu__layers / sizeof *lgelu__layers == LGELU__ROWS ? 1
                                                                                             : -1];
/* Both lists have the kinds in one order. */
enum {
#define LGELU__PLACE(kind, forward, backward, range, aux, work, prepack, traits) \
    LGELU__PLACE_##kind,
    LGELU__FUNCTIONS_OF_LAYERS(LGELU__PLACE)
};
#define LGELU__IN_ORDER(kind, name, traits) \
    typedef char lgelu__order_of_##kind[LGELU__PLACE_##kind == (int)LGELU_OP_##kind ? 1 : -1];
LGELU_LAYERS(LGELU__IN_ORDER)

static const lgelu__layer *lgelu__layer_of(const lgelu_node *node)
{
    return lgelu__layers + node->internal.row;
}

/* Returns the row by which a node runs: that of a variant of its kind, or that of the kind. */
static int lgelu__row_for(const lgelu__use *p)
{
#define LGELU__APPLIES(variant, kind, applies, forward, backward, range, aux, work, prepack, \
                       traits)                                                               \
    if (p->node->op == LGELU_OP_##kind && lgelu__##applies(p))                               \
        return LGELU__##variant;
    LGELU__VARIANTS(LGELU__APPLIES)
    return (int)p->node->op;
}
#undef lgelu__0
#undef LGELU__NAME
#undef LGELU__TRAITS
#undef LGELU__ROW
#undef LGELU__KIND
#undef LGELU__VARIANT
#undef LGELU__PLACE
#undef LGELU__IN_ORDER
#undef LGELU__APPLIES

LGELU_DEF const char *lgelu_op_name(int op)
{
    return op < 0 || op >= LGELU_OP_COUNT ? "?" : lgelu__layer_names[op];
}

LGELU_DEF int lgelu_op_is(int op, unsigned traits)
{
    return op >= 0 && op < LGELU_OP_COUNT && (lgelu__layers[op].traits & traits) != 0;
}

/* ---- [8e] whole networks ---- */
LGELU_DEF int lgelu_mlp(lgelu_net *net, int x, const size_t *outputs, int count,
                        lgelu_gate_kind kind, float lambda)
{
    char name[16];
    const char *end = name + sizeof name - 1;
    int k;
    for (k = 0; k < count && !net->status; k++) {
        lgelu__format(name, end, "fc%z", (size_t)k + 1);
        x = lgelu_linear(net, name, x, outputs[k]);
        if (k + 1 == count)
            break;
        lgelu__format(name, end, "gate%z", (size_t)k + 1);
        x = lgelu_gate(net, name, x, kind, lambda);
    }
    return net->status ? -1 : x;
}

LGELU_DEF int lgelu_lenet(lgelu_net *net, int x, size_t classes, lgelu_gate_kind kind, float lambda)
{
    x = lgelu_conv(net, "conv1", x, 6, 5, 1, 2, 1, 1);
    x = lgelu_max_pool(net, "pool1", lgelu_gate(net, "gate1", x, kind, lambda), 2, 2, 0);
    x = lgelu_conv(net, "conv2", x, 16, 5, 1, 0, 1, 1);
    x = lgelu_max_pool(net, "pool2", lgelu_gate(net, "gate2", x, kind, lambda), 2, 2, 0);
    x = lgelu_linear(net, "fc1", lgelu_flatten(net, "flatten", x), 120);
    x = lgelu_linear(net, "fc2", lgelu_gate(net, "gate3", x, kind, lambda), 84);
    return lgelu_linear(net, "fc3", lgelu_gate(net, "gate4", x, kind, lambda), classes);
}

/* Adds a convolution without biases and its batch normalisation. */
LGELU__APART int lgelu__conv_norm(lgelu_net *net, const char *conv, const char *norm, int x,
                                  size_t width, size_t kernel, size_t stride)
{
    return lgelu_batch_norm(
        net, norm, lgelu_conv(net, conv, x, width, kernel, stride, kernel / 2, 1, 0), 0.1f, 1e-5f);
}

/* Adds a basic block: two convolutions beside a connection, which has a convolution of 1 × 1 where
   the stride is 2. */
static int lgelu__basic_block(lgelu_net *net, int x, size_t width, size_t stride,
                              lgelu_gate_kind kind, float lambda)
{
    int y = lgelu__conv_norm(net, "conv1", "bn1", x, width, 3, stride);
    y = lgelu_gate(net, "gate1", y, kind, lambda);
    y = lgelu__conv_norm(net, "conv2", "bn2", y, width, 3, 1);
    if (stride > 1)
        x = lgelu__conv_norm(net, "downsample.0", "downsample.1", x, width, 1, stride);
    return lgelu_gate(net, "gate2", lgelu_add(net, "add", y, x), kind, lambda);
}

/* Names are torchvision's, such as layer1.0.conv1: a block's prefix follows the caller's. */
LGELU_DEF int lgelu_resnet(lgelu_net *net, int x, size_t width, int stages, int blocks,
                           size_t classes, lgelu_gate_kind kind, float lambda)
{
    char *prefix = net->prefix + strlen(net->prefix);
    char *end = net->prefix + sizeof net->prefix - 1;
    int stage, block;
    x = lgelu__conv_norm(net, "conv1", "bn1", x, width, 3, 1);
    x = lgelu_gate(net, "gate1", x, kind, lambda);
    for (stage = 0; stage < stages; stage++) {
        for (block = 0; block < blocks && !net->status; block++) {
            const size_t stride = stage && !block ? 2 : 1;
            lgelu__format(prefix, end, "layer%z.%z.", (size_t)stage + 1, (size_t)block);
            x = lgelu__basic_block(net, x, width, stride, kind, lambda);
        }
        width *= 2;
    }
    *prefix = 0;
    return lgelu_linear(net, "fc", lgelu_global_pool(net, "pool", x), classes);
}

/* Adds a linear layer, with biases unless the options exclude them. */
static int lgelu__transformer_linear(lgelu_net *net, const char *name, int x, size_t outputs,
                                     const lgelu_transformer *t)
{
    return t->no_bias ? lgelu_linear_no_bias(net, name, x, outputs)
                      : lgelu_linear(net, name, x, outputs);
}

/* Adds the normalisation that the options name. */
static int lgelu__transformer_norm(lgelu_net *net, const char *name, int x,
                                   const lgelu_transformer *t)
{
    return t->rms_norm ? lgelu_rms_norm(net, name, x) : lgelu_layer_norm(net, name, x);
}

/* Adds queries, keys and values, their rotary positions, and an attention. Heads that do not divide
   the width are refused by lgelu_attention. */
static int lgelu__transformer_attention(lgelu_net *net, int x, const lgelu_transformer *t,
                                        int causal)
{
    const int even = t->heads && t->width % t->heads == 0;
    const size_t heads = t->heads, kv_heads = t->kv_heads && even ? t->kv_heads : heads;
    const size_t width = even ? t->width / heads : 0;
    const size_t keys = even ? lgelu__times(kv_heads, width) : t->width;
    x = lgelu__transformer_linear(net, "attn.c_attn", x,
                                  lgelu__plus(t->width, lgelu__times(2, keys)), t);
    if (t->rotary && even) {
        const int given = !(t->rotary_base <= 0 && t->rotary_base >= 0);
        const float base = given ? t->rotary_base : 10000;
        x = lgelu_rotary(net, "attn.rotary", x, lgelu__plus(heads, kv_heads), width, base, 0);
    }
    if (kv_heads == heads)
        return lgelu_attention(net, "attn", x, heads, causal);
    return lgelu_attention_grouped(net, "attn", x, heads, kv_heads, causal);
}

/* Adds the first layers of the feed-forward part, up to the hidden values. */
static int lgelu__transformer_hidden(lgelu_net *net, int x, const lgelu_transformer *t)
{
    const size_t hidden = t->hidden ? t->hidden : lgelu__times(4, t->width);
    int y = lgelu__transformer_linear(net, "mlp.c_fc", x, hidden, t);
    y = lgelu_gate(net, "mlp.gate", y, t->gate, t->lambda);
    if (!t->gated)
        return y;
    x = lgelu__transformer_linear(net, "mlp.c_up", x, hidden, t);
    return lgelu_mul(net, "mlp.mul", y, x);
}

/* Adds a block, x + attention(norm(x)), then x + mlp(norm(x)). The matrices that write to a
   residual connection are first drawn with the deviation `narrow`, as in GPT-2, the others with
   `deviation`. */
static int lgelu__transformer_block(lgelu_net *net, int x, const lgelu_transformer *t,
                                    float deviation, float narrow, int causal)
{
    int y = lgelu__transformer_norm(net, "ln_1", x, t);
    y = lgelu__transformer_attention(net, y, t, causal);
    net->deviation = narrow;
    y = lgelu__transformer_linear(net, "attn.c_proj", y, t->width, t);
    net->deviation = deviation;
    y = lgelu_dropout(net, "attn.drop", y, t->dropout);
    x = lgelu_add(net, "attn.add", y, x);
    y = lgelu__transformer_norm(net, "ln_2", x, t);
    y = lgelu__transformer_hidden(net, y, t);
    net->deviation = narrow;
    y = lgelu__transformer_linear(net, "mlp.c_proj", y, t->width, t);
    net->deviation = deviation;
    y = lgelu_dropout(net, "mlp.drop", y, t->dropout);
    return lgelu_add(net, "mlp.add", y, x);
}

/* Adds positions, blocks and the last norm. The positions are drawn with net.deviation as it is,
   all that follows with `given`, the caller's. Names are GPT-2's, such as h.0.attn.c_attn. */
static int lgelu__transformer(lgelu_net *net, int x, const char *position, float given,
                              const lgelu_transformer *t, int causal)
{
    char *prefix = net->prefix + strlen(net->prefix);
    const size_t layers = t->layers ? t->layers : 1;
    const float deviation = given > 0 ? given : 0.02f;
    const float narrow = (float)((double)deviation / sqrt(2 * (double)layers));
    size_t b;
    if (!t->rotary)
        x = lgelu_position(net, position, x);
    net->deviation = given;
    x = lgelu_dropout(net, "drop", x, t->dropout);
    for (b = 0; b < t->layers && !net->status; b++) {
        lgelu__format(prefix, net->prefix + sizeof net->prefix - 1, "h.%z.", b);
        x = lgelu__transformer_block(net, x, t, deviation, narrow, causal);
    }
    *prefix = 0;
    net->deviation = given;
    return lgelu__transformer_norm(net, "ln_f", x, t);
}

LGELU_DEF int lgelu_gpt(lgelu_net *net, int tokens, const lgelu_transformer *shape)
{
    const lgelu_init init = net->init;
    const float deviation = net->deviation;
    int x, wte;
    net->init = LGELU_INIT_NORMAL;
    if (shape->embedding > 0)
        net->deviation = shape->embedding;
    wte = lgelu_embedding(net, "wte", tokens, shape->width);
    x = lgelu__transformer(net, wte, "wpe", deviation, shape, 1);
    if (!shape->untied) {
        x = lgelu_linear_tied(net, "lm_head", x, wte);
    } else {
        const size_t vocabulary = x < 0 ? 0 : net->nodes[tokens].shape[2];
        x = lgelu__transformer_linear(net, "lm_head", x, vocabulary, shape);
    }
    net->init = init;
    return x;
}

LGELU_DEF int lgelu_vit(lgelu_net *net, int image, const lgelu_transformer *shape, size_t side,
                        int mean, size_t classes)
{
    const lgelu_init init = net->init;
    const float deviation = net->deviation;
    int x;
    net->init = LGELU_INIT_NORMAL;
    x = lgelu_linear(net, "patch", lgelu_patches(net, "patches", image, side), shape->width);
    if (shape->embedding > 0)
        net->deviation = shape->embedding;
    if (!mean)
        x = lgelu_class_token(net, "class", x);
    x = lgelu__transformer(net, x, "position", deviation, shape, 0);
    if (mean && x >= 0)
        x = lgelu_mean_tokens(net, "take", x, 0, net->nodes[x].shape[1]);
    else
        x = lgelu_mean_tokens(net, "take", x, 0, 1);
    x = lgelu_linear(net, "head", x, classes);
    net->init = init;
    return x;
}

/* ---- [8f] running: prepacked panels, bind and keep, forward, generation, backward ---- */

/* Writes the prepacked copies of all matrices, for the instruction set in force. */
static void lgelu__prepack(lgelu_net *net)
{
    const int set = lgelu_isa();
    const lgelu__kernels *isa = lgelu__kernels_of[set];
    int i;
    for (i = 0; i < net->count; i++) {
        const lgelu_node *node = net->nodes + i;
        const size_t at = node->internal.prepacked_at;
        if (at)
            lgelu__layer_of(node)->prepack(net, node, isa, net->internal.prepacked + at - 1);
    }
    net->prepacked_valid = 1 + set;
}

/* ---- what is bound and kept ---- */

LGELU_DEF lgelu_status lgelu_net_keep_value(lgelu_net *net, int node)
{
    if (lgelu__begin_call(net))
        return net->status;
    if (net->memory)
        return lgelu__fail(net, LGELU_E_ARGUMENT, "the network is already made");
    if (node < 0 || node >= net->count || lgelu__is_a(net->nodes + node, LGELU_TRAIT_LOSS)) {
        return lgelu__fail(net, LGELU_E_ARGUMENT,
                           "expected a layer whose value to keep, found node %d", (long)node);
    }
    net->nodes[node].internal.keep = 1;
    return LGELU_OK;
}

/* Marks that weights have changed: the next backward overwrites the gradients, and values, keys and
   prepacked copies of the last forward are no longer valid. */
static void lgelu__changed(lgelu_net *net)
{
    net->internal.fresh = 1;
    net->internal.pending = 0;
    net->internal.known = 0;
    net->prepacked_valid = 0;
}

/* Returns whether a forward reads this input. The gradient of a custom loss is bound between
   forward and backward; any other input of the last forward is read once more by the backward, so
   that binding another array ends the wait for that backward. */
static int lgelu__read_in_forward(const lgelu_net *net, int input)
{
    int i, k;
    for (i = input + 1; i < net->count; i++) {
        const lgelu_node *reader = net->nodes + i;
        for (k = 0; k < reader->inputs; k++) {
            const int gradient = k == 1 && reader->op == LGELU_OP_CUSTOM_LOSS;
            if (reader->input[k] == input && !gradient)
                return 1;
        }
    }
    return 0;
}

LGELU_DEF lgelu_status lgelu_net_bind(lgelu_net *net, int input, const void *data)
{
    if (lgelu__begin_call(net))
        return net->status;
    if (input < 0 || input >= net->count || !lgelu__is_a(net->nodes + input, LGELU_TRAIT_SOURCE)) {
        return lgelu__fail(net, LGELU_E_ARGUMENT,
                           "bind: expected an input, tokens or labels, found node %d", (long)input);
    }
    if (net->nodes[input].internal.bound != data && lgelu__read_in_forward(net, input))
        net->internal.pending = 0;
    net->nodes[input].internal.bound = data;
    return LGELU_OK;
}

/* ---- a run of all layers ---- */

/* Calls run(team, user) with these threads if there is enough to compute, else with the calling
   thread alone: waking threads would take longer. The pace is that of earlier such runs. */
static void lgelu__run_with(const lgelu_threads *threads, double work, lgelu_pace *pace,
                            lgelu__team_function *run, void *user)
{
    const lgelu_threads alone = { lgelu__run_serial, NULL };
    int team = work >= lgelu__fma_for_run;
    double start;
    if (team && LGELU__OPENMP && !threads->run)
        team = lgelu__team_pays(pace, work);
    start = LGELU__TICKS();
    if (team)
        lgelu__with_team(threads, run, user);
    else
        LGELU__TO_NEAREST(run(&alone, user));
    if (work >= lgelu__fma_for_run)
        lgelu__team_paid(pace, work, LGELU__TICKS() - start, team);
}

/* Runs the layers of a network in a forward or a backward. */
static lgelu_status lgelu__run(lgelu_net *net, lgelu__team_function *run, lgelu_pace *pace)
{
    const lgelu_threads threads = net->threads;
    double work = 0;
    int i;
    for (i = 0; i < net->count; i++) {
        const lgelu_node *node = net->nodes + i;
        if (!lgelu__is_a(node, LGELU_TRAIT_SOURCE)) {
            work += (double)lgelu__rows(net, node)
                    * ((double)node->weight_count + 16 * (double)node->shape[2]);
        }
    }
    lgelu__run_with(&threads, work, pace, run, net);
    net->threads = threads;
    return net->status;
}

/* Computes the value of node i, or adds a loss to net.loss. */
static void lgelu__forward_layer(lgelu_net *net, int i)
{
    lgelu_node *node = net->nodes + i;
    const lgelu__layer *layer = lgelu__layer_of(node);
    lgelu__job job = lgelu__job_make(net, node);
    lgelu_status status = LGELU_OK;
    lgelu__guards_before(net, node, i);
    if (layer->forward)
        status = layer->forward(&job);
    if (!status && layer->range)
        lgelu__for_rows(&job, layer->range);
    lgelu__guards_after(net, node, i);
}

/* Refuses a forward that has made a running statistic infinite or NaN. */
static void lgelu__check_statistics(lgelu_net *net)
{
    int i;
    for (i = 0; i < net->count; i++) {
        const lgelu_node *node = net->nodes + i;
        const size_t n = node->state_count, c = n / 2;
        const size_t at = lgelu__first_not_finite(net->state + node->state_at, n);
        if (at < n) {
            lgelu__fail(net, LGELU_E_NONFINITE, "%n: its running %s %z would not be finite", node,
                        at < c ? "mean" : "variance", at < c ? at : at - c);
            return;
        }
    }
}

/* Runs every layer in order; losses are left out while tokens are generated. If the loss or a
   running statistic becomes infinite or NaN, the statistics are restored, and the next forward
   draws the same dropout. */
static void lgelu__run_forward(const lgelu_threads *team, void *user)
{
    lgelu_net *net = (lgelu_net *)user;
    const int trains = net->mode == LGELU_MODE_TRAIN;
    const uint64_t pass = net->pass;
    const size_t statistics = net->state_count * sizeof *net->state;
    int i, updates;
    net->threads = *team;
    if (net->prepack && !trains && net->prepacked_valid != 1 + lgelu_isa())
        lgelu__prepack(net);
    net->loss = 0;
    net->internal.loss_scale = 1;
    net->internal.learning = trains && !net->evaluate && !net->internal.estimate;
    /* Only forwards of training draw dropout, so that an evaluation between two steps changes
       nothing. */
    if (net->internal.learning)
        net->pass++;
    updates = net->state_count && (net->internal.learning || net->internal.estimate);
    if (updates)
        memcpy(net->internal.state_before, net->state, statistics);
    for (i = 0; i < net->count && !net->status; i++) {
        if (!net->internal.tokens || !lgelu__is_a(net->nodes + i, LGELU_TRAIT_LOSS))
            lgelu__forward_layer(net, i);
    }
    if (!net->status && !(fabs(net->loss) <= DBL_MAX))
        lgelu__fail(net, LGELU_E_NONFINITE, "the loss is not finite after %d steps", net->step);
    if (!net->status && updates)
        lgelu__check_statistics(net);
    if (!net->status) {
        net->internal.pending = 1;
        return;
    }
    net->pass = pass;
    if (updates)
        memcpy(net->state, net->internal.state_before, statistics);
}

/* ---- checks before a forward: whatever would refuse it is found before anything changes ---- */

/* Refuses a token or a label that is out of range, among `count` from number `from` on. */
static lgelu_status lgelu__check_integers(lgelu_net *net, const lgelu_node *node, size_t from,
                                          size_t count)
{
    const int32_t *x = (const int32_t *)node->internal.bound;
    size_t i;
    for (i = from; x && i < from + count; i++) {
        if (x[i] < 0 || (size_t)x[i] >= node->shape[2]) {
            return lgelu__fail(net, LGELU_E_LABEL, "%n: %s %z is %d, expected 0 to %z", node,
                               node->op == LGELU_OP_LABELS ? "label" : "token", i, (long)x[i],
                               node->shape[2] - 1);
        }
    }
    return LGELU_OK;
}

/* Refuses a node that would read an input without data; the second input of a loss may be
   unbound. */
static lgelu_status lgelu__check_bound(lgelu_net *net, const lgelu_node *node)
{
    const int loss = lgelu__is_a(node, LGELU_TRAIT_LOSS);
    int k;
    for (k = 0; k < node->inputs; k++) {
        const lgelu_node *x = net->nodes + node->input[k];
        const int optional = loss && k == 1;
        if (lgelu__is_a(x, LGELU_TRAIT_SOURCE) && !x->internal.bound && !optional)
            return lgelu__fail(net, LGELU_E_UNBOUND, "%n: input '%s' has no data", node, x->name);
    }
    return LGELU_OK;
}

/* Checks a forward over these samples, or, if tokens is not 0, over these tokens of one sample, for
   which labels and losses are not read. */
static lgelu_status lgelu__check_forward(lgelu_net *net, size_t samples, size_t from, size_t tokens,
                                         long estimate)
{
    const int learns = (net->mode == LGELU_MODE_TRAIN && !net->evaluate) || estimate;
    int i;
    for (i = 0; i < net->count; i++) {
        const lgelu_node *node = net->nodes + i;
        const int labels = node->op == LGELU_OP_LABELS;
        const size_t rows = tokens ? tokens : samples * node->shape[0] * node->shape[1];
        if (tokens && (labels || lgelu__is_a(node, LGELU_TRAIT_LOSS)))
            continue;
        if ((labels || node->op == LGELU_OP_TOKENS) && lgelu__check_integers(net, node, from, rows))
            return net->status;
        if (lgelu__check_bound(net, node))
            return net->status;
        if (node->op == LGELU_OP_BATCH_NORM && learns && rows < 2) {
            return lgelu__fail(
                net, LGELU_E_ARGUMENT,
                "%n: expected at least 2 pixels in the batch, found 1: it has no variance", node);
        }
    }
    return LGELU_OK;
}

/* ---- the forward of whole samples ---- */

/* Computes a forward of whole samples. estimate is the number of the batch if it estimates running
   statistics, else 0. */
static lgelu_status lgelu__forward(lgelu_net *net, size_t samples, long estimate)
{
    if (!net->memory)
        return lgelu__fail(net, LGELU_E_ARGUMENT, "forward: expected a network that is made");
    if (!samples || samples > net->batch) {
        return lgelu__fail(net, LGELU_E_ARGUMENT, "forward: expected 1 to %z samples, found %z",
                           net->batch, samples);
    }
    if (lgelu__check_forward(net, samples, 0, 0, estimate))
        return net->status;
    net->samples = samples;
    net->internal.from = 0;
    net->internal.tokens = 0;
    net->internal.known = 0;
    net->internal.pending = 0;
    net->internal.estimate = estimate;
    lgelu__run(net, lgelu__run_forward, &net->internal.pace[LGELU__PACE_FORWARD]);
    net->internal.estimate = 0;
    if (estimate)
        net->internal.pending = 0;
    else if (net->mode == LGELU_MODE_GENERATE && !net->status)
        net->internal.known = (size_t)-1; /* every token of the context */
    return net->status;
}

LGELU_DEF lgelu_status lgelu_net_forward(lgelu_net *net, size_t samples)
{
    return lgelu__begin_call(net) ? net->status : lgelu__forward(net, samples, 0);
}

LGELU_DEF lgelu_status lgelu_net_reestimate_norms(lgelu_net *net, size_t samples, long k)
{
    if (lgelu__begin_call(net))
        return net->status;
    if (k < 1) {
        return lgelu__fail(net, LGELU_E_ARGUMENT,
                           "estimate: expected a batch number of at least 1, found %d", k);
    }
    return lgelu__forward(net, samples, k);
}

/* ---- generation, token after token ---- */

/* Refuses a network with a layer that cannot compute token after token. *context receives how many
   tokens its layers have. */
static lgelu_status lgelu__check_generate(lgelu_net *net, size_t *context)
{
    int i;
    *context = 0;
    for (i = 0; i < net->count; i++) {
        const lgelu_node *node = net->nodes + i;
        if (node->op == LGELU_OP_TOKENS && !*context)
            *context = node->shape[1];
        if (node->op == LGELU_OP_LABELS || lgelu__is_a(node, LGELU_TRAIT_LOSS))
            continue;
        if (node->shape[1] != *context || !node->internal.tokenwise) {
            return lgelu__fail(net, LGELU_E_ARGUMENT, "%n: not for generating token by token",
                               node);
        }
    }
    return LGELU_OK;
}

LGELU_DEF lgelu_status lgelu_net_generate(lgelu_net *net, size_t from, size_t count)
{
    size_t context = 0;
    if (lgelu__begin_call(net))
        return net->status;
    if (!net->memory || net->mode != LGELU_MODE_GENERATE) {
        return lgelu__fail(net, LGELU_E_ARGUMENT,
                           "generate: expected a network built for LGELU_MODE_GENERATE");
    }
    if (lgelu__check_generate(net, &context))
        return net->status;
    if (!count || from > context || count > context - from) {
        return lgelu__fail(net, LGELU_E_ARGUMENT, "generate: tokens %z to %z, the context is %z",
                           from, from + count, context);
    }
    if (from > net->internal.known) {
        return lgelu__fail(net, LGELU_E_ARGUMENT,
                           "generate: tokens from %z on, but only %z before them are known", from,
                           net->internal.known);
    }
    if (lgelu__check_forward(net, 1, from, count, 0))
        return net->status;
    net->samples = 1;
    net->internal.from = from;
    net->internal.tokens = count;
    net->internal.known =
        lgelu__run(net, lgelu__run_forward, &net->internal.pace[LGELU__PACE_FORWARD])
            ? 0
            : from + count;
    return net->status;
}

/* ---- backward, from the last node to the first ---- */

/* A gradient that has a value already is added to, any other is overwritten. Only this section
   knows which: the gradient of a value has one after its first reader, that of a matrix after the
   first layer that uses it, and those of all parameters if another backward came before in this
   step. Where a layer cannot add to dx, its gradient is computed in the scratch buffer and then
   added. */
enum { LGELU__HOLDS_DY = 1, LGELU__HOLDS_DW = 2 };

/* Returns the node whose matrix a layer uses: that of a fused linear layer for its loss, that of
   the embedding for a tied layer. */
static lgelu_node *lgelu__matrix_owner(const lgelu_net *net, lgelu_node *node)
{
    if (node->internal.row == LGELU__LINEAR_LOSS)
        node = net->nodes + node->input[0];
    return node->tied ? net->nodes + node->tied - 1 : node;
}

/* Sets where the gradient of input k goes. Both inputs may be the same node: the second gradient is
   then added to the first. */
static void lgelu__backward_target(lgelu__job *job, int k)
{
    const lgelu_node *node = job->node, *x = job->net->nodes + node->input[k];
    const int holds = x->internal.holds & LGELU__HOLDS_DY;
    const int same_input = k == 1 && job->dx[0] && node->input[0] == node->input[1];
    const int through_scratch = same_input || (holds && !lgelu__is_a(node, LGELU__ADDS_TO_DX));
    if (!x->internal.learns)
        return;
    job->dx[k] = lgelu__buffer_at(job->net, x, through_scratch ? LGELU__SCRATCH : LGELU__GRADIENT);
    job->add |= holds;
}

/* Adds the gradient of input k, if it was computed in the scratch buffer, and marks it as set. */
static void lgelu__backward_add(const lgelu__job *job, int k)
{
    lgelu_node *x = job->net->nodes + job->node->input[k];
    float *dx;
    if (!job->dx[k])
        return;
    dx = lgelu__buffer_at(job->net, x, LGELU__GRADIENT);
    if (job->dx[k] != dx)
        lgelu__k()->add(dx, dx, job->dx[k], job->net->samples * lgelu__elements(x));
    x->internal.holds |= LGELU__HOLDS_DY;
}

/* Computes the gradients of node i: those of its inputs and of its parameters. */
static void lgelu__backward_layer(lgelu_net *net, int i)
{
    lgelu_node *node = net->nodes + i, *matrix = lgelu__matrix_owner(net, node);
    const lgelu__layer *layer = lgelu__layer_of(node);
    const int time = 2 * net->count - 1 - i;
    lgelu__job job = lgelu__job_make(net, node);
    int k;
    job.dy = lgelu__buffer_at(net, node, LGELU__GRADIENT);
    job.add_dbias = !net->internal.fresh;
    job.add_dw = !net->internal.fresh || (matrix->internal.holds & LGELU__HOLDS_DW);
    matrix->internal.holds |= LGELU__HOLDS_DW;
    for (k = 0; k < node->inputs; k++)
        lgelu__backward_target(&job, k);
    lgelu__guards_before(net, node, time);
    if (layer->backward)
        layer->backward(&job);
    else if (job.dx[0])
        lgelu__for_rows(&job, layer->range);
    for (k = 0; k < node->inputs; k++)
        lgelu__backward_add(&job, k);
    lgelu__guards_after(net, node, time);
}

/* Runs the backward of the layers, except for those that learn nothing, or on which no loss
   depends. */
static void lgelu__run_backward(const lgelu_threads *team, void *user)
{
    lgelu_net *net = (lgelu_net *)user;
    int i;
    net->threads = *team;
    for (i = 0; i < net->count; i++)
        net->nodes[i].internal.holds = 0;
    for (i = net->count - 1; i >= 0; i--) {
        const lgelu_node *node = net->nodes + i;
        const int has_dy =
            lgelu__is_a(node, LGELU_TRAIT_LOSS) || (node->internal.holds & LGELU__HOLDS_DY);
        if (node->internal.learns && has_dy)
            lgelu__backward_layer(net, i);
    }
    net->internal.fresh = 0;
}

/* Refuses a custom loss whose gradient, which the caller has written, is infinite or NaN. It is not
   read where nothing before the loss learns. */
static lgelu_status lgelu__check_custom_gradient(lgelu_net *net, const lgelu_node *node,
                                                 float loss_scale)
{
    const lgelu_node *x = net->nodes + node->input[0];
    const float *gradient;
    size_t i, n;
    if (node->op != LGELU_OP_CUSTOM_LOSS || !x->internal.learns)
        return LGELU_OK;
    gradient = lgelu__input_value(net, node, 1);
    n = gradient ? net->samples * lgelu__elements(x) : 0;
    for (i = 0; i < n; i++) {
        const float d = gradient[i] * loss_scale;
        if (!(fabsf(d) <= FLT_MAX)) {
            return lgelu__fail(net, LGELU_E_NONFINITE, "%n: value %z of its gradient is not finite",
                               node, i);
        }
    }
    return LGELU_OK;
}

LGELU_DEF lgelu_status lgelu_net_backward(lgelu_net *net, float loss_scale)
{
    int i;
    if (lgelu__begin_call(net))
        return net->status;
    if (net->mode != LGELU_MODE_TRAIN) {
        return lgelu__fail(net, LGELU_E_ARGUMENT,
                           "backward: expected a network built for LGELU_MODE_TRAIN");
    }
    if (!net->internal.pending)
        return lgelu__fail(net, LGELU_E_ARGUMENT, "backward: expected a forward before it");
    if (!(fabsf(loss_scale) <= FLT_MAX)) {
        return lgelu__fail(net, LGELU_E_ARGUMENT,
                           "backward: expected a finite loss scale, found infinity or NaN");
    }
    for (i = 0; i < net->count; i++) {
        if (lgelu__check_custom_gradient(net, net->nodes + i, loss_scale))
            return net->status;
    }
    /* A second backward would need the values that this one overwrites. */
    net->internal.pending = 0;
    net->internal.loss_scale = loss_scale;
    net->internal.gradient_scale = 1;
    return lgelu__run(net, lgelu__run_backward, &net->internal.pace[LGELU__PACE_BACKWARD]);
}

/* ---- [8g] the training step ---- */

/* A pass over the parameters first … first + n - 1, LGELU__TASK_PARAMETERS of them in a task: the
   update by a rule, or, if rule is NULL, the sums of squares of their gradients. */
typedef struct {
    lgelu_net *net;
    const lgelu__rule *rule;
    int sgd;
    size_t first, n;
    size_t tasks;
} lgelu__sweep;

static void lgelu__sweep_task(size_t index, void *user)
{
    const lgelu__sweep *s = (const lgelu__sweep *)user;
    const lgelu_net *net = s->net;
    const size_t i = s->first + index * LGELU__TASK_PARAMETERS;
    const size_t n = lgelu__min(s->first + s->n - i, LGELU__TASK_PARAMETERS);
    double *sums = (double *)(void *)net->internal.scratch;
    if (!s->rule)
        sums[index] = lgelu__k()->square_sum(net->g + i, n);
    else if (s->sgd)
        lgelu__k()->sgd(net->w + i, net->m + i, net->v + i, net->g + i, s->rule, n);
    else
        lgelu__k()->adamw(net->w + i, net->m + i, net->v + i, net->g + i, s->rule, n);
}

static void lgelu__sweep_run(const lgelu_threads *team, void *user)
{
    const lgelu__sweep *s = (const lgelu__sweep *)user;
    lgelu__parallel(team, lgelu__sweep_task, user, s->tasks);
}

/* Runs a pass and returns the number of its tasks. */
static size_t lgelu__sweep_over(lgelu_net *net, const lgelu__rule *rule, int sgd, size_t first,
                                size_t n)
{
    /* An update takes about as long as 16 fmas for each parameter, a square about as long as 2. */
    const double work = (rule ? 16.0 : 2.0) * (double)n;
    lgelu_pace *pace = net->internal.pace + (rule ? LGELU__PACE_UPDATE : LGELU__PACE_NORM);
    lgelu__sweep s;
    s.net = net;
    s.rule = rule;
    s.sgd = sgd;
    s.first = first;
    s.n = n;
    s.tasks = (n + LGELU__TASK_PARAMETERS - 1) / LGELU__TASK_PARAMETERS;
    lgelu__run_with(&net->threads, work, pace, lgelu__sweep_run, &s);
    return s.tasks;
}

LGELU_DEF lgelu_training lgelu_training_defaults(float lr, long steps)
{
    lgelu_training plan;
    memset(&plan, 0, sizeof plan);
    plan.adamw = lgelu_adamw_defaults(lr);
    plan.steps = steps;
    plan.lambda_lr_scale = 1;
    return plan;
}

LGELU_DEF lgelu_training lgelu_training_paper(float lr, long steps)
{
    lgelu_training plan = lgelu_training_defaults(lr, steps);
    plan.hardening.target = lgelu_lambda_for_tolerance(0.005f);
    plan.hardening.begin = steps - steps / 4;
    plan.hardening.end = steps;
    return plan;
}

LGELU_DEF lgelu_training lgelu_training_to_relu(float lr, long steps)
{
    lgelu_training plan = lgelu_training_paper(lr, steps);
    plan.hardening.end = plan.hold = plan.hardening.begin;
    plan.hardening.begin = steps / 4;
    return plan;
}

LGELU_DEF lgelu_training lgelu_training_from_trained(float lr, long steps)
{
    lgelu_training plan = lgelu_training_to_relu(lr, steps);
    plan.hardening.begin = 0;
    plan.warmup = steps / 10;
    return plan;
}

LGELU_DEF float lgelu_training_rate(const lgelu_training *plan, long step)
{
    const long flat = plan->hold > plan->warmup ? plan->hold : plan->warmup;
    double p, lr = (double)plan->adamw.lr;
    if (plan->warmup > 0 && step <= plan->warmup)
        return (float)(lr * (double)step / (double)plan->warmup);
    if (plan->rate == LGELU_RATE_CONSTANT || step <= plan->hold || plan->steps <= flat)
        return plan->adamw.lr;
    p = ((double)step - 1 - (double)flat) / ((double)plan->steps - (double)flat);
    if (!(p < 1))
        p = 1;
    return (float)(lr * (plan->rate == LGELU_RATE_LINEAR ? 1 - p : fma(0.5, lgelu__cospi(p), 0.5)));
}

/* Updates the parameters first … first + n - 1 with the rates of o. */
static void lgelu__update(lgelu_net *net, const lgelu_training *plan, const lgelu_adamw *o,
                          size_t first, size_t n)
{
    lgelu__rule rule =
        plan->sgd ? lgelu__sgd_rule(o->lr, o->beta1, o->weight_decay, net->internal.gradient_scale)
                  : lgelu__adamw_rule(o, net->internal.gradient_scale, net->step);
    lgelu__sweep_over(net, &rule, plan->sgd, first, n);
}

/* Returns the gate of λ number k, or NULL if that gate learns none. */
static lgelu_node *lgelu__gate_of(const lgelu_net *net, int k)
{
    int i = 0;
    while (net->nodes[i].first_lambda + net->nodes[i].lambda_count <= k)
        i++;
    return lgelu_gate_is((int)net->nodes[i].gate, LGELU_GATE_TRAIT_LEARNED) ? net->nodes + i : NULL;
}

/* Returns the step of the plan whose λ is in force in this step: where λ changes every few steps
   only (harden_every), the end of the current interval. The differences are unsigned, because begin
   and end may be any two values of long. */
static long lgelu__due(const lgelu_training *plan, long step)
{
    const long begin = plan->hardening.begin, end = plan->hardening.end;
    unsigned long every = plan->harden_every > 1 ? (unsigned long)plan->harden_every : 1;
    const unsigned long all = (unsigned long)end - (unsigned long)begin;
    const unsigned long done = (unsigned long)step - (unsigned long)begin;
    /* The last interval, which may be shorter, ends at `end`. */
    if (end <= begin || done >= all || (done - 1) / every >= (all - 1) / every)
        return end;
    return (long)((unsigned long)begin + ((done - 1) / every + 1) * every);
}

LGELU_DEF int lgelu_training_settled(const lgelu_training *plan, long step)
{
    /* lgelu_net_step has set λ for the next step already. */
    const long next = step < LONG_MAX ? step + 1 : step;
    if (plan->drive)
        return step >= plan->steps;
    if (!(plan->hardening.target > 0))
        return 1;
    return next > plan->hardening.begin && lgelu__due(plan, next) >= plan->hardening.end;
}

/* Returns λ number k in this step as the plan drives it, or 0 if it is learned then. It is driven
   from lambda0, the λ at which hardening began: 0 before that, when it would begin at lambda. */
static float lgelu__driven(const lgelu_net *net, const lgelu_training *plan, int k, float lambda,
                           float lambda0, long step)
{
    const float first = lambda0 >= 1 ? lambda0 : lambda;
    lgelu_hardening hardening = plan->hardening;
    if (plan->drive)
        return plan->drive(k, first, step, plan->user);
    if (!(hardening.target > 0) || step <= hardening.begin)
        return 0;
    /* LGELU_SHAPE_LINEAR_S is linear in the network's s. */
    hardening.h = net->lambda_map;
    return lgelu_harden(first, &hardening, lgelu__due(plan, step));
}

/* Returns whether λ number k is learned in the current step of the plan, or, if plan is NULL, at
   all. */
static int lgelu__learned(const lgelu_net *net, const lgelu_training *plan, int k)
{
    const float lambda = net->lambda[k];
    return lgelu__gate_of(net, k) && !(lambda > FLT_MAX)
           && (!plan || lgelu__driven(net, plan, k, lambda, net->lambda0[k], net->step) == 0);
}

/* Returns dL/ds of λ number k. */
static double lgelu__ds(const lgelu_net *net, int k)
{
    return net->dlambda[k] * (double)lgelu_lambda_slope(&net->lambda_map, net->s[k]);
}

/* Updates s and λ number k, in x, by the plan's optimiser. Under SGD an infinite s, ReLU's, stays
   as it is. */
static void lgelu__update_lambda(const lgelu_net *net, const lgelu_training *plan,
                                 const lgelu_adamw *o, int k, lgelu__hardness *x)
{
    const double dlambda = net->dlambda[k] * (double)net->internal.gradient_scale;
    const float ds = (float)(lgelu__ds(net, k) * (double)net->internal.gradient_scale);
    if (!plan->sgd) {
        lgelu_hardness_step(&x->s, &x->m, &x->v, &x->lambda, &dlambda, &net->lambda_map, o,
                            plan->lambda_lr_scale, net->step, 1);
        return;
    }
    if (fabsf(x->s) <= FLT_MAX)
        lgelu_sgd_step(&x->s, &x->m, &ds, o->lr * plan->lambda_lr_scale, o->beta1, 0, 1);
    x->lambda = lgelu_lambda(&net->lambda_map, x->s);
}

/* Returns the norm of all gradients, those of s included that are learned in this step of the
   plan. */
static double lgelu__gradient_norm(lgelu_net *net, const lgelu_training *plan)
{
    const double *sums = (const double *)(const void *)net->internal.scratch;
    const size_t tasks = lgelu__sweep_over(net, NULL, 0, 0, net->parameter_count);
    double sum = 0;
    size_t i;
    int k;
    for (i = 0; i < tasks; i++)
        sum += sums[i];
    for (k = 0; k < net->lambda_count; k++) {
        if (lgelu__learned(net, plan, k)) {
            const double ds = lgelu__ds(net, k);
            sum = fma(ds, ds, sum);
        }
    }
    return sqrt(sum);
}

/* Returns the factor that brings a norm down to `most`. */
static float lgelu__clip_factor(double norm, float most)
{
    return most > 0 && norm > (double)most ? (float)((double)most / norm) : 1;
}

LGELU_DEF double lgelu_net_clip(lgelu_net *net, float most)
{
    double norm = 0;
    if (lgelu__begin_call(net))
        return 0;
    if (net->g && !net->internal.fresh) {
        LGELU__TO_NEAREST(norm = lgelu__gradient_norm(net, NULL));
        net->internal.gradient_scale = lgelu__clip_factor(norm, most);
    }
    return norm;
}

/* Refuses a step because of a gradient: it is not finite, or its square is not. */
static lgelu_status lgelu__refuse_gradient(lgelu_net *net, const lgelu_node *node, const char *of,
                                           size_t at, double gradient)
{
    return lgelu__fail(net, LGELU_E_NONFINITE, "%n: the %sgradient of %s %z is not finite", node,
                       fabs(gradient) <= (double)FLT_MAX ? "square of the " : "", of, at);
}

/* Refuses a step whose gradients, or their squares after clipping, are not all finite floats:
   AdamW's second moment would stay infinite, its weight would never change again, and the network's
   file would be refused. factor is what the step multiplies gradients by. The norm is at least as
   large as each gradient, and finite exactly if those of weights and biases are: a square of a
   float does not overflow in double. A plan without clipping computes it for this purpose alone.
   That read of the gradients brings them into the cache for the update that follows: of a step it
   takes up to a tenth, of forward, backward and step together less than 1 % (an MLP of 670,000
   parameters in batches of 32 and 128, a GPT of 830,000, a ResNet-8). */
static lgelu_status lgelu__check_gradients(lgelu_net *net, const lgelu_training *plan, double norm,
                                           double factor)
{
    const double bound = 9223372036854775808.0; /* 2^63; from 2^64 on, the square overflows */
    size_t at;
    int i;
    for (i = 0; i < net->lambda_count; i++) {
        const double ds = fabs(lgelu__ds(net, i));
        if (!(ds <= (double)FLT_MAX && ds * factor < bound) && lgelu__learned(net, plan, i)) {
            return lgelu__fail(net, LGELU_E_NONFINITE, "%n: the %sgradient of its λ is not finite",
                               lgelu__gate_of(net, i),
                               ds <= (double)FLT_MAX ? "square of the " : "");
        }
    }
    for (i = 0; i < net->count && !(norm * factor < bound); i++) {
        const lgelu_node *node = net->nodes + i;
        const float *g = net->g + node->weight_at;
        const size_t weights = node->tied ? 0 : node->weight_count;
        at = lgelu__first_not_below(g, weights, factor, bound);
        if (at < weights)
            return lgelu__refuse_gradient(net, node, "weight", at, (double)g[at]);
        g = net->g + node->bias_at;
        at = lgelu__first_not_below(g, node->bias_count, factor, bound);
        if (at < node->bias_count)
            return lgelu__refuse_gradient(net, node, "bias", at, (double)g[at]);
    }
    return LGELU_OK;
}

/* Drives λ number k, in x, to its value in the step `next`. What is ReLU already, λ = infinity,
   stays. */
static void lgelu__harden_one(const lgelu_net *net, const lgelu_training *plan, int k, long next,
                              lgelu__hardness *x)
{
    float driven;
    if (x->lambda > FLT_MAX)
        return;
    if (!(x->lambda0 >= 1) || lgelu__driven(net, plan, k, x->lambda, x->lambda0, net->step) == 0)
        x->lambda0 = x->lambda;
    driven = lgelu__driven(net, plan, k, x->lambda, x->lambda0, next);
    if (driven != 0)
        x->lambda = driven;
}

/* Computes every λ for the step after the current one: updates those that are learned with the
   rates of o, unless it is NULL, and drives the others. The results are stored in the workspace, so
   that after an error none has changed; lgelu__write_lambdas copies them into the network. */
static lgelu_status lgelu__next_lambdas(lgelu_net *net, const lgelu_training *plan,
                                        const lgelu_adamw *o)
{
    const long next = net->step < LONG_MAX ? net->step + 1 : net->step;
    lgelu__hardness *x = (lgelu__hardness *)(void *)net->internal.scratch;
    int k;
    for (k = 0; k < net->lambda_count; k++, x++) {
        const lgelu_node *node = lgelu__gate_of(net, k);
        x->s = net->s[k];
        x->m = net->s_m[k];
        x->v = net->s_v[k];
        x->lambda = net->lambda[k];
        x->lambda0 = net->lambda0[k];
        if (!node)
            continue;
        if (o && lgelu__learned(net, plan, k))
            lgelu__update_lambda(net, plan, o, k, x);
        lgelu__harden_one(net, plan, k, next, x);
        if (!(x->lambda >= 1)) {
            return lgelu__fail(net, LGELU_E_LAMBDA, "%n: λ would be below 1 or NaN after %d steps",
                               node, net->step);
        }
    }
    return LGELU_OK;
}

/* Copies the λ's that lgelu__next_lambdas has computed into the network. */
static void lgelu__write_lambdas(lgelu_net *net)
{
    const lgelu__hardness *x = (const lgelu__hardness *)(const void *)net->internal.scratch;
    int k;
    for (k = 0; k < net->lambda_count; k++, x++) {
        net->s[k] = x->s;
        net->s_m[k] = x->m;
        net->s_v[k] = x->v;
        net->lambda[k] = x->lambda;
        net->lambda0[k] = x->lambda0;
    }
}

static lgelu_status lgelu__nearest_net_harden(lgelu_net *net, const lgelu_training *plan)
{
    if (lgelu__begin_call(net))
        return net->status;
    if (!net->memory)
        return lgelu__fail(net, LGELU_E_ARGUMENT, "harden: expected a network that is made");
    if (lgelu__next_lambdas(net, plan, NULL))
        return net->status;
    lgelu__write_lambdas(net);
    net->internal.pending = 0;
    net->internal.known = 0;
    return LGELU_OK;
}

LGELU_DEF lgelu_status lgelu_net_harden(lgelu_net *net, const lgelu_training *plan)
{
    lgelu_status result;
    LGELU__TO_NEAREST(result = lgelu__nearest_net_harden(net, plan));
    return result;
}

/* Lets the plan sum the gradients over several machines, if it has a function for that. */
static lgelu_status lgelu__sum_over_machines(lgelu_net *net, const lgelu_training *plan)
{
    const size_t lambdas = (size_t)net->lambda_count;
    if (plan->sum && plan->sum(net->g, net->parameter_count, net->dlambda, lambdas, plan->user)) {
        return lgelu__fail(net, LGELU_E_SUM, "the sum over machines failed in step %d",
                           net->step + 1);
    }
    return LGELU_OK;
}

/* Every history_every steps, copies the λ's to the next row of the plan's history. */
static void lgelu__write_history(const lgelu_net *net, const lgelu_training *plan)
{
    const size_t lambdas = (size_t)net->lambda_count;
    size_t row;
    if (!lambdas || !plan->history || plan->history_every <= 0 || net->step > plan->steps
        || net->step % plan->history_every != 0)
        return;
    row = (size_t)(net->step / plan->history_every - 1);
    memcpy(plan->history + row * lambdas, net->lambda, lambdas * sizeof *net->lambda);
}

/* Refuses a plan with numbers by which weights would become NaN, or would never be updated. AdamW
   divides by eps where a gradient is 0. */
static lgelu_status lgelu__check_plan(lgelu_net *net, const lgelu_training *plan)
{
    const lgelu_adamw *o = &plan->adamw;
    const char *expected = NULL;
    if (!(fabsf(o->lr) <= FLT_MAX))
        expected = "a finite rate";
    else if (!(fabsf(o->weight_decay) <= FLT_MAX))
        expected = "a finite weight decay";
    else if (!(fabsf(plan->lambda_lr_scale) <= FLT_MAX))
        expected = "a finite scale of the rate of λ";
    else if (plan->clip != plan->clip || plan->hardening.target != plan->hardening.target)
        expected = "a norm to clip to and a target of λ that are not NaN";
    else if (plan->sgd && !(fabsf(o->beta1) <= FLT_MAX))
        expected = "a finite momentum";
    else if (!plan->sgd && !(o->beta1 >= 0 && o->beta1 < 1 && o->beta2 >= 0 && o->beta2 < 1))
        expected = "beta1 and beta2 from 0 to less than 1";
    else if (!plan->sgd && !(o->eps > 0 && o->eps <= FLT_MAX))
        expected = "a finite eps above 0";
    if (expected)
        return lgelu__fail(net, LGELU_E_ARGUMENT, "step: expected a plan with %s", expected);
    return LGELU_OK;
}

/* Checks what could refuse a step of the plan, and computes the λ's after it. */
static lgelu_status lgelu__prepare_step(lgelu_net *net, const lgelu_training *plan,
                                        const lgelu_adamw *o)
{
    const double norm = lgelu__gradient_norm(net, plan);
    const float scale = net->internal.gradient_scale;
    const float factor = plan->clip > 0 ? lgelu__clip_factor(norm, plan->clip) : scale;
    if (lgelu__check_gradients(net, plan, norm, (double)factor))
        return net->status;
    net->internal.gradient_scale = factor;
    if (lgelu__next_lambdas(net, plan, o)) {
        net->internal.gradient_scale = scale;
        return net->status;
    }
    net->gradient_norm = norm;
    return LGELU_OK;
}

static lgelu_status lgelu__nearest_net_step(lgelu_net *net, const lgelu_training *plan)
{
    lgelu_adamw o = plan->adamw;
    if (lgelu__begin_call(net))
        return net->status;
    if (!net->memory || net->internal.fresh)
        return lgelu__fail(net, LGELU_E_ARGUMENT, "step: expected a backward before it");
    if (net->step < 0 || net->step == LONG_MAX) {
        return lgelu__fail(net, LGELU_E_ARGUMENT,
                           "step: the number of steps is %d, no other may follow", net->step);
    }
    if (lgelu__check_plan(net, plan) || lgelu__sum_over_machines(net, plan))
        return net->status;
    net->step++;
    o.lr = lgelu_training_rate(plan, net->step);
    if (lgelu__prepare_step(net, plan, &o)) {
        net->step--;
        return net->status;
    }
    lgelu__update(net, plan, &o, 0, net->weight_count);
    if (!plan->decay_all)
        o.weight_decay = 0;
    lgelu__update(net, plan, &o, net->weight_count, net->parameter_count - net->weight_count);
    lgelu__write_lambdas(net);
    lgelu__write_history(net, plan);
    lgelu__changed(net);
    net->internal.gradient_scale = 1;
    net->pass = 0;
    return LGELU_OK;
}

LGELU_DEF lgelu_status lgelu_net_step(lgelu_net *net, const lgelu_training *plan)
{
    lgelu_status result;
    LGELU__TO_NEAREST(result = lgelu__nearest_net_step(net, plan));
    return result;
}

/* ---- [8h] values, gates, folding ---- */

/* Returns a node, or NULL if the network is not made or has no such node. */
LGELU__APART const lgelu_node *lgelu__made(const lgelu_net *net, int node)
{
    return net->memory && node >= 0 && node < net->count ? net->nodes + node : NULL;
}

LGELU_DEF const float *lgelu_net_value(const lgelu_net *net, int node)
{
    const lgelu_node *x = lgelu__made(net, node), *y;
    const lgelu_buffer *b;
    if (!x || x->op == LGELU_OP_TOKENS || x->op == LGELU_OP_LABELS || lgelu__is_a(x, LGELU__FUSED))
        return NULL;
    if (net->nodes[x->internal.value_node].op == LGELU_OP_INPUT)
        return (const float *)net->nodes[x->internal.value_node].internal.bound;
    /* In the memory plan's time, a forward ends at `count` and a backward at 2·count. A value whose
       buffer is reused before the end of the last run has been overwritten. */
    b = net->nodes[x->internal.value_node].internal.buffer + LGELU__VALUE;
    if (!b->bytes || b->to < (net->internal.pending ? net->count : 2 * net->count))
        return NULL;
    /* A later layer may have overwritten it in place. */
    for (y = x + 1; y < net->nodes + net->count; y++) {
        const int same = y->internal.value_node == x->internal.value_node;
        if (same && !lgelu__is_a(y, LGELU__FUSED) && y->op != LGELU_OP_VIEW)
            return NULL;
    }
    return lgelu__buffer_at(net, x, LGELU__VALUE);
}

LGELU_DEF float *lgelu_net_weights(const lgelu_net *net, int node)
{
    const lgelu_node *x = lgelu__made(net, node);
    return x && (x->weight_count || x->tied) ? net->w + x->weight_at : NULL;
}

LGELU_DEF float *lgelu_net_biases(const lgelu_net *net, int node)
{
    const lgelu_node *x = lgelu__made(net, node);
    return x && x->bias_count ? net->w + x->bias_at : NULL;
}

LGELU_DEF float *lgelu_net_states(const lgelu_net *net, int node)
{
    const lgelu_node *x = lgelu__made(net, node);
    return x && x->state_count ? net->state + x->state_at : NULL;
}

static lgelu_status lgelu__nearest_net_set_lambda(lgelu_net *net, int index, float lambda)
{
    const float s = lgelu__s_of(&net->lambda_map, lambda);
    const long k = index, count = net->memory ? net->lambda_count : 0;
    if (lgelu__begin_call(net))
        return net->status;
    if (k < 0 || k >= count)
        return LGELU__REFUSE(net, LGELU_E_ARGUMENT, "λ %d: expected an index below %d", k, count);
    if (!(lambda >= 1) || s != s) {
        return LGELU__REFUSE(net, LGELU_E_LAMBDA,
                             "λ %d: expected a value of at least 1 that the network's map reaches",
                             k);
    }
    if (!lgelu__gate_of(net, index)) {
        return LGELU__REFUSE(net, LGELU_E_ARGUMENT, "λ %d: its gate has no λ or β that is learned",
                             k);
    }
    net->lambda[index] = lambda;
    net->s[index] = s;
    net->internal.pending = 0;
    net->internal.known = 0;
    return LGELU_OK;
}

LGELU_DEF lgelu_status lgelu_net_set_lambda(lgelu_net *net, int index, float lambda)
{
    lgelu_status result;
    LGELU__TO_NEAREST(result = lgelu__nearest_net_set_lambda(net, index, lambda));
    return result;
}

static lgelu_status lgelu__nearest_net_set_gates(lgelu_net *net, lgelu_gate_kind kind)
{
    int i, k;
    if (lgelu__begin_call(net))
        return net->status;
    if ((unsigned)kind >= LGELU_GATE_COUNT)
        return lgelu__fail(net, LGELU_E_ARGUMENT, "unknown kind of gate %d", (long)kind);
    for (i = 0; i < net->count; i++) {
        if (net->nodes[i].op == LGELU_OP_GATE && !lgelu__can_be(net->nodes + i, kind)) {
            return lgelu__fail(net, LGELU_E_ARGUMENT,
                               kind == LGELU_GATE_CUSTOM ? "%n: it was built without a custom gate"
                                                         : "%n: %s has one β for all channels",
                               net->nodes + i, lgelu_gate_name((int)kind));
        }
    }
    for (i = 0; i < net->count; i++) {
        lgelu_node *node = net->nodes + i;
        if (node->op != LGELU_OP_GATE || node->gate == kind)
            continue;
        node->gate = kind;
        for (k = node->first_lambda; net->memory && k < node->first_lambda + node->lambda_count;
             k++) {
            net->lambda[k] = lgelu_gate_is((int)kind, LGELU_GATE_TRAIT_LEARNED)
                                 ? lgelu__lambda_of(&net->lambda_map, net->s[k])
                                 : lgelu__fixed_lambda(kind);
        }
    }
    net->internal.pending = 0;
    net->internal.known = 0;
    return LGELU_OK;
}

LGELU_DEF lgelu_status lgelu_net_set_gates(lgelu_net *net, lgelu_gate_kind kind)
{
    lgelu_status result;
    LGELU__TO_NEAREST(result = lgelu__nearest_net_set_gates(net, kind));
    return result;
}

LGELU_DEF lgelu_status lgelu_net_relu(lgelu_net *net)
{
    return lgelu_net_set_gates(net, LGELU_GATE_RELU);
}

/* Returns the convolution into which a batch norm can be folded: its input, if nothing else reads
   that; or NULL. */
static lgelu_node *lgelu__foldable(const lgelu_net *net, const lgelu_node *norm)
{
    lgelu_node *conv;
    if (norm->op != LGELU_OP_BATCH_NORM)
        return NULL;
    conv = net->nodes + norm->input[0];
    if (conv->op != LGELU_OP_CONV || norm->internal.value_node != conv->internal.value_node
        || lgelu__readers_of(net, norm->input[0], LGELU_MODE_INFER).inputs != 1)
        return NULL;
    return conv;
}

/* Folds (W x + b - mean)·scale + shift into one convolution, with scale = gain/√(variance + eps): W
   becomes W·scale, and the batch norm's shifts become the biases (b - mean)·scale + shift. The
   batch norm is a view from then on. */
static void lgelu__fold(lgelu_net *net, lgelu_node *conv, lgelu_node *norm)
{
    const size_t channels = norm->shape[2], inputs = conv->weight_count / channels;
    size_t c, i;
    for (c = 0; c < channels; c++) {
        const double gain = (double)net->w[norm->bias_at + c];
        const double mean = (double)net->state[norm->state_at + c];
        const double variance = (double)net->state[norm->state_at + channels + c];
        const double scale = gain / sqrt(variance + (double)norm->eps);
        const double b = conv->bias_count ? (double)net->w[conv->bias_at + c] : 0;
        float *row = net->w + conv->weight_at + c * inputs;
        float *shift = net->w + norm->bias_at + channels + c;
        for (i = 0; i < inputs; i++)
            row[i] = (float)((double)row[i] * scale);
        *shift = (float)fma(b - mean, scale, (double)*shift);
    }
    conv->bias_at = norm->bias_at + channels;
    conv->bias_count = channels;
    norm->op = LGELU_OP_VIEW;
    norm->internal.row = LGELU_OP_VIEW;
    norm->folded = 1;
    norm->bias_count = 0;
    norm->state_count = 0;
}

static lgelu_status lgelu__nearest_net_fold(lgelu_net *net)
{
    int i;
    if (lgelu__begin_call(net))
        return net->status;
    if (!net->memory || net->mode != LGELU_MODE_INFER) {
        return lgelu__fail(net, LGELU_E_ARGUMENT,
                           "fold: expected a network built for LGELU_MODE_INFER");
    }
    for (i = 0; i < net->count; i++) {
        lgelu_node *conv = lgelu__foldable(net, net->nodes + i);
        if (conv)
            lgelu__fold(net, conv, net->nodes + i);
    }
    net->prepacked_valid = 0;
    return LGELU_OK;
}

LGELU_DEF lgelu_status lgelu_net_fold(lgelu_net *net)
{
    lgelu_status result;
    LGELU__TO_NEAREST(result = lgelu__nearest_net_fold(net));
    return result;
}

/* ==== [9] EXCHANGE ============================================================================ */

/* ---- [9a] the tensors of a network ---- */

/* A tensor of a layer. Each layer has LGELU__TENSORS of them, most of which have no data. */
typedef struct {
    const lgelu_node *node;
    const char *suffix;
    float *data;
    size_t n, dims, shape[2];
    int moment;   /* 1: a moment of AdamW */
    int of_run;   /* 1: such a moment, or the λ at which hardening began: 0 in a new training */
    int required; /* 1: a file without it is refused */
    int range;    /* what its values may be */
} lgelu__tensor;

/* What a tensor holds; a matrix, or the gains of a normalisation; biases, or its shifts; … */
enum { LGELU__MATRIX, LGELU__BIAS, LGELU__LAMBDA, LGELU__MEAN, LGELU__VARIANCE };

enum { LGELU__TENSORS = 13 };

/* What the values of a tensor may be: finite; finite and at least 0; anything but NaN, since an s
   is infinite where λ is 1 or infinite; at least 1; 0, if hardening has not begun, or finite and at
   least 1. */
enum { LGELU__FINITE, LGELU__SQUARES, LGELU__FREE, LGELU__FROM_ONE, LGELU__BEGUN };

static int lgelu__in_range(int range, float x)
{
    const int finite = x >= -FLT_MAX && x <= FLT_MAX;
    switch (range) {
    case LGELU__SQUARES: return finite && x >= 0;
    case LGELU__FREE: return x == x;
    case LGELU__FROM_ONE: return x >= 1;
    case LGELU__BEGUN: return finite && (x == 0 || x >= 1);
    default: return finite;
    }
}

static const char *lgelu__range_text(int range)
{
    static const char text[LGELU__BEGUN + 1][40] = { "a finite number",
                                                     "a finite number of at least 0",
                                                     "a number or an infinity", "λ of at least 1",
                                                     "0 or a finite λ of at least 1" };
    return text[range];
}

/* Sets where in its array tensor t of a node begins, and how many elements it has. */
static void lgelu__tensor_range(const lgelu_node *node, int role, lgelu__tensor *t, size_t *first)
{
    /* Of a normalisation gains are stored as NAME.weight and shifts as NAME.bias. An RMS norm has
       no shifts. */
    const int normalises = lgelu__is_a(node, LGELU_TRAIT_NORM);
    const size_t gains = normalises ? node->shape[2] : 0;
    switch (role) {
    case LGELU__MATRIX:
        t->n = normalises ? gains : node->weight_count;
        *first = normalises ? node->bias_at : node->weight_at;
        break;
    case LGELU__BIAS:
        t->n = node->bias_count - gains;
        *first = node->bias_at + gains;
        break;
    case LGELU__LAMBDA:
        t->n = (size_t)node->lambda_count;
        *first = (size_t)node->first_lambda;
        break;
    case LGELU__MEAN:
        t->n = node->state_count / 2;
        *first = node->state_at;
        break;
    default: /* LGELU__VARIANCE */
        t->n = node->state_count / 2;
        *first = node->state_at + t->n;
        break;
    }
}

/* Sets the shape: (outputs, inputs) for a matrix, (vocabulary, channels) or (positions, channels)
   for that of an embedding or of positions, one dimension for all others. */
static void lgelu__tensor_shape(const lgelu_node *node, int role, lgelu__tensor *t)
{
    const int is_matrix = role == LGELU__MATRIX && !lgelu__is_a(node, LGELU_TRAIT_NORM);
    t->dims = is_matrix ? 2 : 1;
    t->shape[0] = t->n;
    t->shape[1] = 1;
    if (!is_matrix)
        return;
    t->shape[0] = lgelu__matrix_rows(node);
    t->shape[1] = t->n / lgelu__max(t->shape[0], 1);
}

/* Returns tensor number `kind` of a node. Its data is NULL if the node, or the network in its mode,
   has none. */
static lgelu__tensor lgelu__tensor_of(const lgelu_net *net, const lgelu_node *node, int kind)
{
    static const struct {
        char suffix[16];
        int role, moment, required, range;
    } row[] = { { ".weight", LGELU__MATRIX, 0, 1, LGELU__FINITE },
                { ".weight.m", LGELU__MATRIX, 1, 0, LGELU__FINITE },
                { ".weight.v", LGELU__MATRIX, 1, 0, LGELU__SQUARES },
                { ".bias", LGELU__BIAS, 0, 1, LGELU__FINITE },
                { ".bias.m", LGELU__BIAS, 1, 0, LGELU__FINITE },
                { ".bias.v", LGELU__BIAS, 1, 0, LGELU__SQUARES },
                { ".s", LGELU__LAMBDA, 0, 0, LGELU__FREE },
                { ".s.m", LGELU__LAMBDA, 1, 0, LGELU__FINITE },
                { ".s.v", LGELU__LAMBDA, 1, 0, LGELU__SQUARES },
                { ".lambda", LGELU__LAMBDA, 0, 0, LGELU__FROM_ONE },
                { ".lambda0", LGELU__LAMBDA, 0, 0, LGELU__BEGUN },
                { ".running_mean", LGELU__MEAN, 0, 1, LGELU__FINITE },
                { ".running_var", LGELU__VARIANCE, 0, 1, LGELU__SQUARES } };
    /* the arrays of these rows */
    float *const array[] = { net->w,       net->m,     net->v,    net->w,   net->m,
                             net->v,       net->s,     net->s_m,  net->s_v, net->lambda,
                             net->lambda0, net->state, net->state };
    typedef char every_row[sizeof row / sizeof *row == LGELU__TENSORS
                                   && sizeof array / sizeof *array == LGELU__TENSORS
                               ? 1
                               : -1];
    lgelu__tensor t;
    size_t first = 0;
    (void)sizeof(every_row);
    lgelu__tensor_range(node, row[kind].role, &t, &first);
    lgelu__tensor_shape(node, row[kind].role, &t);
    t.node = node;
    t.suffix = row[kind].suffix;
    t.data = t.n && array[kind] ? array[kind] + first : NULL;
    t.moment = row[kind].moment;
    t.of_run = t.moment || row[kind].range == LGELU__BEGUN;
    t.required = t.data && row[kind].required;
    t.range = row[kind].range;
    return t;
}

/* Sets *t to tensor number k of the network, counted over all layers. Returns 0 after the last. */
LGELU__APART int lgelu__tensor_at(const lgelu_net *net, int k, lgelu__tensor *t)
{
    if (k / LGELU__TENSORS >= net->count)
        return 0;
    *t = lgelu__tensor_of(net, net->nodes + k / LGELU__TENSORS, k % LGELU__TENSORS);
    return 1;
}

static const char *lgelu__map_name(int map)
{
    static const char name[3][12] = { "softplus", "sigmoid", "direct" };
    return name[(unsigned)map < 2u ? map : 2];
}

/* ---- [9b] copies from one network to another, between layers of the same name ---- */

/* Returns the name of what a node reads. Dropout is passed over, because a network for inference
   may be built without it. */
static const char *lgelu__input_name(const lgelu_net *net, const lgelu_node *node, int slot)
{
    const lgelu_node *x = net->nodes + node->input[slot];
    while (x->op == LGELU_OP_DROPOUT)
        x = net->nodes + x->input[0];
    return x->name;
}

/* Returns in what a layer of `to` differs from one of `from`, so that parameters of one would
   compute other values in the other; or NULL. */
static const char *lgelu__difference(const lgelu_net *to, const lgelu_node *a,
                                     const lgelu_net *from, const lgelu_node *b)
{
    int k;
    if (a->op != b->op || a->folded != b->folded)
        return "kind";
    if (memcmp(a->shape, b->shape, sizeof a->shape))
        return "shape";
    if (a->weight_count != b->weight_count || a->bias_count != b->bias_count
        || a->state_count != b->state_count || a->lambda_count != b->lambda_count)
        return "parameters";
    if (b->op == LGELU_OP_GATE && !lgelu__can_be(a, b->gate))
        return "gate";
    if (memcmp(a->window, b->window, sizeof a->window)
        || memcmp(a->stride, b->stride, sizeof a->stride)
        || memcmp(a->padding, b->padding, sizeof a->padding)
        || memcmp(a->dilation, b->dilation, sizeof a->dilation) || a->groups != b->groups)
        return "window, stride, padding, dilation or groups";
    if (lgelu__bits(a->base) != lgelu__bits(b->base))
        return "base";
    if (memcmp(a->option, b->option, sizeof a->option))
        return a->op == LGELU_OP_ATTENTION ? "heads or mask" : "option";
    if (lgelu__bits(a->momentum) != lgelu__bits(b->momentum)
        || lgelu__bits(a->eps) != lgelu__bits(b->eps))
        return "momentum or eps";
    if (!a->tied != !b->tied
        || (a->tied && strcmp(to->nodes[a->tied - 1].name, from->nodes[b->tied - 1].name)))
        return "matrix";
    for (k = 0; k < a->inputs; k++) {
        if (strcmp(lgelu__input_name(to, a, k), lgelu__input_name(from, b, k)))
            return "inputs";
    }
    return NULL;
}

/* Refuses a copy if a layer of `to` is not in `from`, or differs there. Inputs, losses and dropout
   have nothing to copy. */
static lgelu_status lgelu__check_copy(lgelu_net *to, const lgelu_net *from)
{
    int i;
    for (i = 0; i < to->count; i++) {
        const lgelu_node *a = to->nodes + i, *b = lgelu__named(from, a->name);
        const char *difference;
        if (lgelu__is_a(a, LGELU_TRAIT_SOURCE | LGELU_TRAIT_LOSS) || a->op == LGELU_OP_DROPOUT)
            continue;
        if (!b)
            return lgelu__fail(to, LGELU_E_ARGUMENT, "copy: %n is not in the other network", a);
        difference = lgelu__difference(to, a, from, b);
        if (difference) {
            return lgelu__fail(to, LGELU_E_ARGUMENT, "copy: %n is of another %s there", a,
                               difference);
        }
    }
    return LGELU_OK;
}

LGELU_DEF lgelu_status lgelu_net_copy(lgelu_net *to, const lgelu_net *from)
{
    /* Without moments to copy, the optimiser starts from zero. */
    const int restart = to->mode == LGELU_MODE_TRAIN && from->mode != LGELU_MODE_TRAIN;
    lgelu__tensor t, o;
    int k;
    if (lgelu__begin_call(to))
        return to->status;
    if (!to->memory || !from->memory)
        return lgelu__fail(to, LGELU_E_ARGUMENT, "copy: expected two networks that are made");
    if (lgelu__check_copy(to, from))
        return to->status;
    to->lambda_map = from->lambda_map;
    for (k = 0; lgelu__tensor_at(to, k, &t); k++) {
        if (!t.data)
            continue;
        o = lgelu__tensor_of(from, lgelu__named(from, t.node->name), k % LGELU__TENSORS);
        if (t.moment && restart)
            memset(t.data, 0, t.n * sizeof *t.data);
        else if (t.data != o.data)
            memcpy(t.data, o.data, t.n * sizeof *t.data);
    }
    for (k = 0; k < to->count; k++) {
        if (to->nodes[k].op == LGELU_OP_GATE)
            to->nodes[k].gate = lgelu__named(from, to->nodes[k].name)->gate;
    }
    to->step = restart ? 0 : from->step;
    to->seed = from->seed;
    to->pass = restart ? 0 : from->pass;
    lgelu__changed(to);
    return LGELU_OK;
}

LGELU_DEF lgelu_status lgelu_net_restart(lgelu_net *net)
{
    lgelu__tensor t;
    int k;
    if (lgelu__begin_call(net))
        return net->status;
    if (!net->memory || net->mode != LGELU_MODE_TRAIN)
        return lgelu__fail(net, LGELU_E_ARGUMENT, "restart: expected a network made for training");
    for (k = 0; lgelu__tensor_at(net, k, &t); k++) {
        if (t.data && t.of_run)
            memset(t.data, 0, t.n * sizeof *t.data);
    }
    net->step = 0;
    net->pass = 0;
    lgelu__changed(net);
    return LGELU_OK;
}

/* ---- [9c] writing a safetensors file ---- */

/* The file consists of the header's length in 8 bytes, little-endian, the header in JSON, and the
   tensors without gaps. */

/* The bytes written so far. If write is NULL they are only counted. */
typedef struct {
    lgelu_write *write;
    void *user;
    size_t bytes;
    int failed;
} lgelu__out;

LGELU__APART void lgelu__put(lgelu__out *out, const void *data, size_t bytes)
{
    if (out->write && !out->failed && bytes)
        out->failed = out->write(data, bytes, out->user);
    out->bytes += bytes;
}

/* Writes a formatted text of at most 255 bytes. */
static void lgelu__print(lgelu__out *out, const char *format, ...)
{
    char text[256];
    va_list list;
    va_start(list, format);
    lgelu__put(out, text,
               (size_t)(lgelu__format_list(text, text + sizeof text - 1, format, list) - text));
    va_end(list);
}

static void lgelu__put_string(lgelu__out *out, const char *text)
{
    static const char hex[] = "0123456789abcdef";
    lgelu__put(out, "\"", 1);
    for (; *text; text++) {
        unsigned c = (unsigned char)*text;
        if (c < 32) {
            lgelu__put(out, "\\u00", 4);
            lgelu__put(out, hex + (c >> 4), 1);
            lgelu__put(out, hex + (c & 15), 1);
            continue;
        }
        if (c == '"' || c == '\\')
            lgelu__put(out, "\\", 1);
        lgelu__put(out, text, 1);
    }
    lgelu__put(out, "\"", 1);
}

/* Writes what the metadata has of a part: steps, map of λ, kinds of gates. */
static void lgelu__put_metadata(lgelu__out *out, const lgelu_part *part)
{
    const lgelu_net *net = part->net;
    int i;
    lgelu__print(out, ",\"%sstep\":\"%d\"", part->prefix, net->step);
    if (net->lambda_count) {
        lgelu__print(out, ",\"%slambda_map\":\"%s %z %z\"", part->prefix,
                     lgelu__map_name((int)net->lambda_map.map),
                     (size_t)lgelu__bits(net->lambda_map.temperature),
                     (size_t)lgelu__bits(net->lambda_map.lambda_max));
    }
    for (i = 0; i < net->count; i++) {
        if (net->nodes[i].op == LGELU_OP_GATE) {
            lgelu__print(out, ",\"%s%s\":\"%s\"", part->prefix, net->nodes[i].name,
                         lgelu__gates[net->nodes[i].gate].file);
        }
    }
}

/* Writes an entry for each tensor of a part. The first one begins at *at in the data, which
   receives where the last one ends. */
static void lgelu__put_entries(lgelu__out *out, const lgelu_part *part, size_t *at)
{
    lgelu__tensor t;
    int k;
    for (k = 0; lgelu__tensor_at(part->net, k, &t); k++) {
        const size_t begin = *at;
        if (!t.data)
            continue;
        *at += t.n * sizeof(float);
        lgelu__print(out, ",\"%s%s%s\":{\"dtype\":\"F32\",\"shape\":[%z", part->prefix,
                     t.node->name, t.suffix, t.shape[0]);
        if (t.dims > 1)
            lgelu__print(out, ",%z", t.shape[1]);
        lgelu__print(out, "],\"data_offsets\":[%z,%z]}", begin, *at);
    }
}

/* Writes the JSON header: the metadata (format, what it has of each part, the caller's pairs), then
   the entries of all tensors. */
static void lgelu__put_header(lgelu__out *out, const lgelu_part *part, int parts,
                              const char *const (*metadata)[2], int pairs)
{
    size_t at = 0;
    int i;
    lgelu__print(out, "{\"__metadata__\":{\"format\":\"lgelu\"");
    for (i = 0; i < parts; i++)
        lgelu__put_metadata(out, part + i);
    for (i = 0; i < pairs; i++) {
        lgelu__print(out, ",");
        lgelu__put_string(out, metadata[i][0]);
        lgelu__print(out, ":");
        lgelu__put_string(out, metadata[i][1]);
    }
    lgelu__print(out, "}");
    for (i = 0; i < parts; i++)
        lgelu__put_entries(out, part + i, &at);
    lgelu__print(out, "}");
}

/* Refuses parts that are in error or not made, and prefixes that no file could have. */
static lgelu_status lgelu__check_parts(const lgelu_part *part, int parts, const char *what)
{
    lgelu_net *first = part->net;
    int p;
    for (p = 0; p < parts; p++) {
        const char *prefix = part[p].prefix;
        if (lgelu__begin_call(part[p].net))
            return part[p].net->status;
        if (!part[p].net->memory) {
            return LGELU__REFUSE(first, LGELU_E_ARGUMENT, "a network must be made before it is %s",
                                 what);
        }
        if (strlen(prefix) > 31) {
            return LGELU__REFUSE(first, LGELU_E_ARGUMENT, "the prefix '%s' is longer than 31 bytes",
                                 prefix);
        }
        if (!lgelu__is_plain_text(prefix)) {
            return LGELU__REFUSE(first, LGELU_E_ARGUMENT, "part %z: its prefix %s", (size_t)p,
                                 LGELU__PLAIN);
        }
    }
    return LGELU_OK;
}

/* A name in a file has at most 31 bytes of prefix, 31 of a layer's name, and a suffix. */
enum { LGELU__KEY = 80 };

/* Writes the name of a tensor or gate in a file to `key`, and returns it. */
LGELU__APART const char *lgelu__key(char *key, const char *prefix, const char *name,
                                    const char *suffix)
{
    lgelu__format(key, key + LGELU__KEY - 1, "%s%s%s", prefix, name, suffix);
    return key;
}

/* Returns whether the format itself has this key in the metadata. */
static int lgelu__is_key_of_format(const lgelu_part *part, int parts, const char *key)
{
    /* lgelu__key always writes to it, but gcc at -O3 warns if it is not set here. */
    char other[LGELU__KEY] = "";
    int p, found = !strcmp(key, "format");
    for (p = 0; p < parts && !found; p++) {
        found = !strcmp(key, lgelu__key(other, part[p].prefix, "step", ""))
                || !strcmp(key, lgelu__key(other, part[p].prefix, "lambda_map", ""));
    }
    return found;
}

/* Returns whether one of the first `count` layers of a part has this key. */
static int lgelu__is_key_of_layer(const lgelu_part *part, int count, const char *key)
{
    char other[LGELU__KEY] = "";
    int i;
    for (i = 0; i < count; i++) {
        if (!strcmp(key, lgelu__key(other, part->prefix, part->net->nodes[i].name, "")))
            return 1;
    }
    return 0;
}

/* Refuses the name of layer i of part p if a reader would refuse it, or if it would occur twice in
   the file. */
static lgelu_status lgelu__check_layer_name(const lgelu_part *part, int parts, int p, int i)
{
    const lgelu_node *node = part[p].net->nodes + i;
    lgelu_net *first = part->net;
    char key[LGELU__KEY];
    int q, twice = 0;
    lgelu__key(key, part[p].prefix, node->name, "");
    if (!lgelu__is_plain_text(node->name)) {
        return LGELU__REFUSE(first, LGELU_E_ARGUMENT, "layer %z: its name %s", (size_t)i,
                             LGELU__PLAIN);
    }
    for (q = 0; q <= p && !twice; q++)
        twice = lgelu__is_key_of_layer(part + q, q < p ? part[q].net->count : i, key);
    if (twice)
        return LGELU__REFUSE(first, LGELU_E_ARGUMENT, "two layers are called '%s'", key);
    if (node->op == LGELU_OP_GATE && lgelu__is_key_of_format(part, parts, key)) {
        return LGELU__REFUSE(first, LGELU_E_ARGUMENT,
                             "gate '%s': checkpoints use that key themselves", key);
    }
    return LGELU_OK;
}

/* Refuses a pair of the caller's metadata that is not UTF-8, or whose key the file, or one of the
   `before` pairs before it, has already. */
static lgelu_status lgelu__check_metadata(const lgelu_part *part, int parts,
                                          const char *const (*metadata)[2], int before)
{
    const char *const *pair = metadata[before];
    int i, twice = lgelu__is_key_of_format(part, parts, pair[0]);
    for (i = 0; i < 2; i++) {
        if (lgelu__utf8(pair[i], strlen(pair[i])) < strlen(pair[i])) {
            return LGELU__REFUSE(part->net, LGELU_E_ARGUMENT, "metadata '%s' is not UTF-8",
                                 pair[0]);
        }
    }
    for (i = 0; i < parts && !twice; i++)
        twice = lgelu__is_key_of_layer(part + i, part[i].net->count, pair[0]);
    for (i = 0; i < before && !twice; i++)
        twice = !strcmp(pair[0], metadata[i][0]);
    if (twice) {
        return LGELU__REFUSE(part->net, LGELU_E_ARGUMENT,
                             "metadata '%s': the file has that key already", pair[0]);
    }
    return LGELU_OK;
}

/* Refuses names, prefixes and keys that a reader would refuse, or that would occur twice in the
   file. */
static lgelu_status lgelu__check_names(const lgelu_part *part, int parts,
                                       const char *const (*metadata)[2], int pairs)
{
    lgelu_status status = LGELU_OK;
    int p, i;
    for (p = 0; p < parts; p++) {
        for (i = 0; i < part[p].net->count && !status; i++)
            status = lgelu__check_layer_name(part, parts, p, i);
    }
    for (p = 1; p < parts && !status; p++) {
        for (i = 0; i < p && !status; i++) {
            if (!strcmp(part[p].prefix, part[i].prefix)) {
                status = LGELU__REFUSE(part->net, LGELU_E_ARGUMENT,
                                       "two parts have the prefix '%s'", part[p].prefix);
            }
        }
    }
    for (i = 0; i < pairs && !status; i++)
        status = lgelu__check_metadata(part, parts, metadata, i);
    return status;
}

/* Writes n floats little-endian, on any machine. */
static void lgelu__put_floats(lgelu__out *out, const float *x, size_t n)
{
    unsigned char bytes[256];
    size_t i = 0, b;
    while (i < n && !out->failed) {
        const size_t count = lgelu__min(n - i, sizeof bytes / 4);
        for (b = 0; b < 4 * count; b++)
            bytes[b] = (unsigned char)(lgelu__bits(x[i + b / 4]) >> (8 * (b % 4)));
        lgelu__put(out, bytes, 4 * count);
        i += count;
    }
}

/* The header is written twice: once to count its bytes, which come before it in the file. Spaces
   fill it to a multiple of 8. */
LGELU_DEF lgelu_status lgelu_parts_save(const lgelu_part *part, int parts,
                                        const char *const (*metadata)[2], int pairs,
                                        lgelu_write *write, void *user)
{
    lgelu__out out;
    lgelu__tensor t;
    lgelu_status status = lgelu__check_parts(part, parts, "saved");
    unsigned char length[8];
    size_t padded, spaces;
    int i, k, p;
    if (!status)
        status = lgelu__check_names(part, parts, metadata, pairs);
    if (status)
        return status;
    memset(&out, 0, sizeof out);
    lgelu__put_header(&out, part, parts, metadata, pairs);
    padded = (out.bytes + 7) & ~(size_t)7;
    spaces = padded - out.bytes;
    for (i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)padded >> (8 * i));
    out.bytes = 0;
    out.write = write;
    out.user = user;
    lgelu__put(&out, length, 8);
    lgelu__put_header(&out, part, parts, metadata, pairs);
    lgelu__put(&out, "       ", spaces);
    for (p = 0; p < parts; p++) {
        for (k = 0; lgelu__tensor_at(part[p].net, k, &t); k++) {
            if (t.data)
                lgelu__put_floats(&out, t.data, t.n);
        }
    }
    if (out.failed)
        return LGELU__REFUSE(part->net, LGELU_E_FILE, "the file could not be written");
    return LGELU_OK;
}

LGELU_DEF lgelu_status lgelu_net_save(lgelu_net *net, const char *const (*metadata)[2], int pairs,
                                      lgelu_write *write, void *user)
{
    const lgelu_part part = { "", net };
    return lgelu_parts_save(&part, 1, metadata, pairs, write, user);
}

LGELU_DEF lgelu_status lgelu_net_print(lgelu_net *net, lgelu_write *write, void *user)
{
    lgelu__out out;
    size_t shared = 0;
    int i, k;
    if (lgelu__begin_call(net))
        return net->status;
    memset(&out, 0, sizeof out);
    out.write = write;
    out.user = user;
    lgelu__print(
        &out,
        "layer            kind                     shape   parameters        value     gradient"
        "        other      scratch  (bytes @ place)\n");
    for (i = 0; i < net->count; i++) {
        const lgelu_node *node = net->nodes + i;
        lgelu__print(&out, "%17s%18s%3zx%3zx%5z%13z", node->name, lgelu_op_name((int)node->op),
                     node->shape[0], node->shape[1], node->shape[2],
                     node->weight_count + node->bias_count + (size_t)node->lambda_count);
        for (k = 0; k < 4; k++) {
            lgelu__print(&out, "%11z", node->internal.buffer[k].bytes);
            if (node->internal.buffer[k].bytes)
                lgelu__print(&out, "@%z", node->internal.buffer[k].at);
            shared += node->internal.buffer[k].bytes;
        }
        lgelu__print(&out, "\n");
    }
    lgelu__print(&out, "parameters %z, λ %z, buffers %z bytes in %z shared bytes\n",
                 net->parameter_count, (size_t)net->lambda_count, shared,
                 net->internal.arena_bytes);
    return out.failed ? LGELU__REFUSE(net, LGELU_E_FILE, "the plan could not be written")
                      : LGELU_OK;
}

/* ---- [9d] JSON ---- */

/* The parser reads what a header contains: objects, strings, whole numbers, and lists of these. */

/* A place in the header. After an error, `wrong` says what is wrong at byte `at`, and nothing more
   is read. Once __metadata__ has been read, its object is at bytes metadata … metadata_end - 1. */
typedef struct {
    const unsigned char *p;
    size_t at, end;
    const char *wrong;
    size_t metadata, metadata_end; /* 0 before */
} lgelu__json;

/* Records an error, unless there is one already, and returns 0. */
LGELU__APART int lgelu__wrong(lgelu__json *j, size_t at, const char *what)
{
    if (!j->wrong) {
        j->wrong = what;
        j->at = at;
    }
    return 0;
}

/* Passes over white space and returns the next byte, or -1 at the end or after an error. */
static int lgelu__peek(lgelu__json *j)
{
    while (j->at < j->end && !j->wrong
           && (j->p[j->at] == ' ' || j->p[j->at] == '\n' || j->p[j->at] == '\t'
               || j->p[j->at] == '\r'))
        j->at++;
    return j->at < j->end && !j->wrong ? j->p[j->at] : -1;
}

/* Passes over the byte c, if it is the next one, and returns whether it was. */
LGELU__APART int lgelu__skip(lgelu__json *j, int c)
{
    if (lgelu__peek(j) != c)
        return 0;
    j->at++;
    return 1;
}

/* Passes over the byte c, or records an error if another one is next. */
LGELU__APART int lgelu__need(lgelu__json *j, int c, const char *what)
{
    return lgelu__skip(j, c) ? 1 : lgelu__wrong(j, j->at, what);
}

/* Returns the value of a hexadecimal digit, or -1. */
static int lgelu__hex(unsigned c)
{
    const unsigned lower = c | 32;
    if (c - '0' < 10u)
        return (int)(c - '0');
    return lower - 'a' < 6u ? (int)(lower - 'a') + 10 : -1;
}

/* A part of the file; a string is without its quotes, with its escapes. */
typedef struct {
    const unsigned char *p;
    size_t n;
} lgelu__text;

/* Passes over an escape, of which the backslash has been read. At the end of the header it leaves
   the error to the string, which has no end. */
static int lgelu__escape(lgelu__json *j)
{
    int k;
    if (j->at >= j->end)
        return 1;
    if (!j->p[j->at] || !strchr("\"\\/bfnrtu", j->p[j->at]))
        return lgelu__wrong(j, j->at, "unknown escape");
    j->at++;
    if (j->p[j->at - 1] != 'u')
        return 1;
    for (k = 0; k < 4; k++) {
        if (j->at >= j->end || lgelu__hex(j->p[j->at]) < 0)
            return lgelu__wrong(j, j->at, "\\u needs four hexadecimal digits");
        j->at++;
    }
    return 1;
}

/* Reads a string. */
static int lgelu__string(lgelu__json *j, lgelu__text *text)
{
    if (!lgelu__need(j, '"', "expected a string"))
        return 0;
    text->p = j->p + j->at;
    while (j->at < j->end && j->p[j->at] != '"') {
        if (j->p[j->at] < 32)
            return lgelu__wrong(j, j->at, "control character in a string");
        j->at++;
        if (j->p[j->at - 1] == '\\' && !lgelu__escape(j))
            return 0;
    }
    text->n = (size_t)(j->p + j->at - text->p);
    return lgelu__need(j, '"', "the string has no end");
}

/* Reads a whole number of at least 0, without leading zeros. */
static int lgelu__number(lgelu__json *j, size_t *n)
{
    size_t first;
    lgelu__peek(j);
    first = j->at;
    *n = 0;
    while (j->at < j->end && j->p[j->at] >= '0' && j->p[j->at] <= '9') {
        const size_t digit = (size_t)(j->p[j->at] - '0');
        if (*n > ((size_t)-1 - digit) / 10)
            return lgelu__wrong(j, j->at, "the number is too large");
        *n = *n * 10 + digit;
        j->at++;
    }
    if (j->at == first)
        return lgelu__wrong(j, j->at, "expected a whole number");
    if (j->p[first] == '0' && j->at > first + 1)
        return lgelu__wrong(j, j->at, "a number starts with 0");
    return 1;
}

/* Returns whether a text is this word. */
LGELU__APART int lgelu__is(lgelu__text text, const char *word)
{
    return text.n == strlen(word) && !memcmp(text.p, word, text.n);
}

/* Reads the next member of an object up to its value, and its key; *n counts the members. Returns 0
   at the end of the object, or after an error. */
static int lgelu__member(lgelu__json *j, size_t *n, lgelu__text *key)
{
    if (!(*n)++) {
        if (!lgelu__need(j, '{', "expected '{'") || lgelu__skip(j, '}'))
            return 0;
    } else if (!lgelu__skip(j, ',')) {
        lgelu__need(j, '}', "expected '}'");
        return 0;
    }
    return lgelu__string(j, key) && lgelu__need(j, ':', "expected ':'");
}

/* ---- [9e] reading ---- */

/* Files are checked as strictly as the reference implementation of safetensors does: a header of at
   most 100 MB in valid UTF-8, no name twice, each size that of its shape, and offsets from 0 to the
   last byte of the file without a gap or an overlap. */

/* A tensor of the file; shape has the first 8 sizes. */
typedef struct {
    lgelu__text name, dtype;
    size_t from, to, dims, shape[8];
} lgelu__entry;

/* Returns the bytes of one element of a dtype, 0 for an unknown one. */
static size_t lgelu__dtype(lgelu__text text)
{
    static const struct {
        char name[8];
        size_t bytes;
    } dtype[] = { { "BOOL", 1 }, { "U8", 1 },  { "I8", 1 },  { "F8_E5M2", 1 }, { "F8_E4M3", 1 },
                  { "I16", 2 },  { "U16", 2 }, { "F16", 2 }, { "BF16", 2 },    { "I32", 4 },
                  { "U32", 4 },  { "F32", 4 }, { "I64", 8 }, { "U64", 8 },     { "F64", 8 } };
    size_t k;
    for (k = 0; k < sizeof dtype / sizeof *dtype; k++) {
        if (lgelu__is(text, dtype[k].name))
            return dtype[k].bytes;
    }
    return 0;
}

/* Reads a shape, [a, b, …]. *count receives the product of all sizes. */
static int lgelu__parse_shape(lgelu__json *j, lgelu__entry *e, size_t *count)
{
    size_t n;
    if (!lgelu__need(j, '[', "expected a shape"))
        return 0;
    if (lgelu__skip(j, ']'))
        return 1;
    do {
        if (!lgelu__number(j, &n))
            return 0;
        if (e->dims < sizeof e->shape / sizeof *e->shape)
            e->shape[e->dims] = n;
        e->dims++;
        if (n && *count > (size_t)-1 / n)
            return lgelu__wrong(j, j->at, "the shape overflows");
        *count *= n;
    } while (lgelu__skip(j, ','));
    return lgelu__need(j, ']', "expected ']'");
}

/* Reads [from, to]. */
static int lgelu__parse_offsets(lgelu__json *j, lgelu__entry *e)
{
    static const char what[] = "expected two offsets";
    return lgelu__need(j, '[', what) && lgelu__number(j, &e->from) && lgelu__need(j, ',', what)
           && lgelu__number(j, &e->to) && lgelu__need(j, ']', what);
}

/* Reads {"dtype": "F32", "shape": [..], "data_offsets": [from, to]}, the keys in any order, each
   once. */
static int lgelu__parse_entry(lgelu__json *j, lgelu__entry *e)
{
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL = 7 };
    size_t count = 1, size = 0, members = 0;
    lgelu__text text;
    int seen = 0;
    if (lgelu__peek(j) != '{')
        return lgelu__wrong(j, j->at, "expected a tensor's description");
    while (lgelu__member(j, &members, &text)) {
        int key = 0, good;
        if (lgelu__is(text, "dtype"))
            key = DTYPE;
        else if (lgelu__is(text, "shape"))
            key = SHAPE;
        else if (lgelu__is(text, "data_offsets"))
            key = OFFSETS;
        if (!key || (seen & key))
            return lgelu__wrong(j, j->at, "unknown or repeated key");
        seen |= key;
        if (key == DTYPE) {
            if (!lgelu__string(j, &e->dtype))
                return 0;
            size = lgelu__dtype(e->dtype);
            good = size ? 1 : lgelu__wrong(j, j->at, "unknown dtype");
        } else if (key == SHAPE) {
            good = lgelu__parse_shape(j, e, &count);
        } else {
            good = lgelu__parse_offsets(j, e);
        }
        if (!good)
            return 0;
    }
    if (j->wrong)
        return 0;
    if (seen != ALL)
        return lgelu__wrong(j, j->at, "a tensor needs dtype, shape and data_offsets");
    if (count > (size_t)-1 / size || e->to < e->from || e->to - e->from != count * size)
        return lgelu__wrong(j, j->at, "offsets and shape disagree");
    return 1;
}

/* Reads the next tensor of the header; *n counts members and is 0 at first. __metadata__ is passed
   over. Returns 0 after the last tensor, or after an error. */
static int lgelu__next(lgelu__json *j, size_t *n, lgelu__entry *e)
{
    lgelu__text text, other;
    size_t pairs = 0;
    if (!*n)
        j->at = 8;
    memset(e, 0, sizeof *e);
    while (lgelu__member(j, n, &e->name)) {
        if (!lgelu__is(e->name, "__metadata__")) {
            if (memchr(e->name.p, '\\', e->name.n)) {
                return lgelu__wrong(j, (size_t)(e->name.p - j->p),
                                    "a tensor's name with an escape");
            }
            return lgelu__parse_entry(j, e);
        }
        if (pairs || (j->metadata && j->metadata != j->at))
            return lgelu__wrong(j, j->at, "a second __metadata__");
        j->metadata = j->at;
        while (lgelu__member(j, &pairs, &text) && lgelu__string(j, &other)) {
        }
        j->metadata_end = j->at;
    }
    return lgelu__peek(j) < 0
               ? 0
               : lgelu__wrong(j, j->at, "bytes after the end of the header's object");
}

/* Checks the length and the encoding of the header, and sets *j to its beginning. */
static int lgelu__open(lgelu__json *j, const void *file, size_t bytes)
{
    uint64_t n = 0;
    int i;
    memset(j, 0, sizeof *j);
    j->p = (const unsigned char *)file;
    if (bytes < 8)
        return lgelu__wrong(j, bytes, "the file is shorter than 8 bytes");
    for (i = 7; i >= 0; i--)
        n = n << 8 | j->p[i];
    if (n > 100000000)
        return lgelu__wrong(j, 0, "the header is longer than 100 MB");
    if (n > bytes - 8)
        return lgelu__wrong(j, 0, "the file ends in its header");
    j->at = 8;
    j->end = 8 + (size_t)n;
    if (!n || j->p[8] != '{')
        return lgelu__wrong(j, 8, "the header does not start with '{'");
    j->at = 8 + lgelu__utf8(j->p + 8, (size_t)n);
    return j->at < j->end ? lgelu__wrong(j, j->at, "not UTF-8") : 1;
}

LGELU_DEF int lgelu_next_tensor(const void *file, size_t bytes, lgelu_tensor *tensor)
{
    lgelu__json j;
    lgelu__entry e;
    int found;
    memset(&j, 0, sizeof j);
    j.p = (const unsigned char *)file;
    if (!tensor->internal.end && !lgelu__open(&j, file, bytes)) {
        tensor->at = j.at;
        tensor->wrong = j.wrong;
        return -1;
    }
    if (tensor->internal.end) {
        j.at = tensor->internal.at;
        j.end = tensor->internal.end;
        j.metadata = tensor->internal.metadata;
        j.metadata_end = tensor->internal.metadata_end;
    }
    found = lgelu__next(&j, &tensor->internal.members, &e);
    if (found && e.to > bytes - j.end)
        found =
            lgelu__wrong(&j, (size_t)(e.name.p - j.p), "a tensor ends after the end of the file");
    tensor->at = j.at;
    tensor->wrong = j.wrong;
    tensor->internal.at = j.at;
    tensor->internal.end = j.end;
    tensor->internal.metadata = j.metadata;
    tensor->internal.metadata_end = j.metadata_end;
    tensor->data = j.p + j.end;
    tensor->bytes = bytes - j.end;
    if (!found)
        return j.wrong ? -1 : 0;
    tensor->name = (const char *)e.name.p;
    tensor->name_bytes = e.name.n;
    memset(tensor->dtype, 0, sizeof tensor->dtype);
    memcpy(tensor->dtype, e.dtype.p, e.dtype.n);
    tensor->dims = e.dims;
    memcpy(tensor->shape, e.shape, sizeof e.shape);
    tensor->data = j.p + j.end + e.from;
    tensor->bytes = e.to - e.from;
    tensor->at = (size_t)(e.name.p - j.p);
    return 1;
}

/* A header that has been checked once is read again quickly: names have no escapes, and an entry
   ends with the first '}' after its name. A mark is an entry whose name begins with the quote at
   byte `at` and that ends at byte `end`. */
typedef struct {
    lgelu__text name;
    size_t at, end;
} lgelu__mark;

/* Finds the next entry from a byte on. Returns 0 if there is none. */
static int lgelu__skim(const lgelu__json *j, size_t from, lgelu__mark *mark)
{
    const unsigned char *open, *close = NULL, *brace;
    open = (const unsigned char *)memchr(j->p + from, '"', j->end - from);
    if (open) {
        mark->at = (size_t)(open - j->p);
        mark->name.p = open + 1;
        close = (const unsigned char *)memchr(open + 1, '"', j->end - mark->at - 1);
    }
    if (!close)
        return 0;
    mark->name.n = (size_t)(close - mark->name.p);
    if (lgelu__is(mark->name, "__metadata__"))
        return lgelu__skim(j, j->metadata_end, mark);
    brace = (const unsigned char *)memchr(close, '}', j->end - (size_t)(close - j->p));
    mark->end = brace ? (size_t)(brace - j->p) : j->end;
    return 1;
}

/* Returns the length of the next string from byte *at on, and moves *at past its closing quote. */
static size_t lgelu__skim_string(const lgelu__json *j, size_t *at)
{
    size_t length = 0;
    while (j->p[*at] != '"')
        (*at)++;
    (*at)++;
    while (j->p[*at + length] != '"')
        length++;
    *at += length + 1;
    return length;
}

/* Returns where the offsets of the entry at byte `at` are. No other key or dtype is as long as
 * "data_offsets". */
static size_t lgelu__skim_to_offsets(const lgelu__json *j, size_t at)
{
    lgelu__skim_string(j, &at);
    while (lgelu__skim_string(j, &at) != strlen("data_offsets")) {
    }
    return at;
}

/* Reads the two offsets from byte `at` on. */
static void lgelu__skim_offsets(const lgelu__json *j, size_t at, size_t offset[2])
{
    int k;
    for (k = 0; k < 2; k++) {
        while (j->p[at] < '0' || j->p[at] > '9')
            at++;
        offset[k] = 0;
        while (j->p[at] >= '0' && j->p[at] <= '9') {
            offset[k] = 10 * offset[k] + (size_t)(j->p[at] - '0');
            at++;
        }
    }
}

/* ---- two checks without a list of all tensors ---- */

/* No name may occur twice, and the tensors must tile the data. Both are seen where the entries are
   visited in order, of their names or of their places. The workspace has space for some of them: a
   pass over the header takes the first ones in that order of those that no pass has taken yet, and
   sorts them. The time grows with entries times passes; a header that is in order already needs no
   pass. */
typedef struct {
    const lgelu__json *j;
    int by_place;
    uint32_t *entry; /* the byte of an entry's name or, by place, of its offsets */
    size_t space, count;
} lgelu__order;

/* Compares two names, each of which ends with a quote: below 0, 0 or above 0. */
static int lgelu__compare_names(const unsigned char *a, const unsigned char *b)
{
    while (*a == *b && *a != '"') {
        a++;
        b++;
    }
    return (int)*a - (int)*b;
}

/* Returns whether entry a comes before b. Of equal names, or places, the one that is before it in
   the header does; of tensors that begin at one place, those without data. */
static int lgelu__before(const lgelu__order *o, uint32_t a, uint32_t b)
{
    size_t of_a[2], of_b[2];
    int c;
    if (!o->by_place) {
        c = lgelu__compare_names(o->j->p + a, o->j->p + b);
        return c < 0 || (c == 0 && a < b);
    }
    lgelu__skim_offsets(o->j, a, of_a);
    lgelu__skim_offsets(o->j, b, of_b);
    if (of_a[0] != of_b[0])
        return of_a[0] < of_b[0];
    return of_a[1] < of_b[1] || (of_a[1] == of_b[1] && a < b);
}

/* Sorts the entries of a pass by Shell's method, with Knuth's gaps. */
static void lgelu__sort_pass(const lgelu__order *o)
{
    size_t gap = 1, i, k;
    while (gap < o->count / 3)
        gap = 3 * gap + 1;
    for (; gap; gap /= 3) {
        for (i = gap; i < o->count; i++) {
            const uint32_t entry = o->entry[i];
            for (k = i; k >= gap && lgelu__before(o, entry, o->entry[k - gap]); k -= gap)
                o->entry[k] = o->entry[k - gap];
            o->entry[k] = entry;
        }
    }
}

/* Takes the first entries after `last`, or of all if that is 0, and sorts them. Whenever they fill
   the space, they are sorted and the second half is dropped; from then on only entries that come
   before the last one kept are taken. The others are left to later passes. Returns whether there
   are any. */
static int lgelu__take_pass(lgelu__order *o, uint32_t last)
{
    lgelu__mark mark;
    uint32_t most = 0;
    size_t at;
    o->count = 0;
    for (at = 8; lgelu__skim(o->j, at, &mark); at = mark.end) {
        const size_t place = o->by_place ? lgelu__skim_to_offsets(o->j, mark.at) : mark.at + 1;
        const uint32_t entry = (uint32_t)place;
        if ((last && !lgelu__before(o, last, entry)) || (most && lgelu__before(o, most, entry)))
            continue;
        o->entry[o->count++] = entry;
        if (o->count == o->space) {
            lgelu__sort_pass(o);
            o->count /= 2;
            most = o->entry[o->count - 1];
        }
    }
    lgelu__sort_pass(o);
    return most != 0;
}

/* Visits all entries in order. No name may be that of the entry before it; in order of places, each
   entry begins where the one before it ends, the first at 0. *end receives where the last one
   ends. */
static int lgelu__check_order(lgelu__json *j, uint32_t *work, size_t space, int by_place,
                              size_t *end)
{
    lgelu__order o;
    uint32_t last = 0;
    size_t i, offset[2] = { 0, 0 };
    int more;
    o.j = j;
    o.by_place = by_place;
    o.entry = work;
    o.space = space;
    *end = 0;
    do {
        more = lgelu__take_pass(&o, last);
        for (i = 0; i < o.count; i++) {
            const uint32_t entry = o.entry[i];
            if (by_place)
                lgelu__skim_offsets(j, entry, offset);
            if (by_place && offset[0] != *end)
                return lgelu__wrong(j, entry, "a gap or an overlap before this tensor");
            if (!by_place && last && !lgelu__compare_names(j->p + last, j->p + entry))
                return lgelu__wrong(j, entry, "a name occurs twice");
            *end = offset[1];
            last = entry;
        }
    } while (more);
    return 1;
}

/* Checks the whole header: each entry, that no name occurs twice, and that the tensors tile
   the data. */
static int lgelu__check_header(lgelu__json *j, size_t bytes, uint32_t *work, size_t space)
{
    lgelu__entry e;
    lgelu__text last = { NULL, 0 };
    size_t members = 0, end = 0;
    int ascending = 1, tiled = 1;
    while (lgelu__next(j, &members, &e)) {
        if (last.p) {
            const int c = memcmp(last.p, e.name.p, lgelu__min(last.n, e.name.n));
            ascending &= c < 0 || (c == 0 && last.n < e.name.n);
        }
        tiled &= e.from == end;
        end = e.to;
        last = e.name;
    }
    if (j->wrong || (!tiled && !lgelu__check_order(j, work, space, 1, &end)))
        return 0;
    if (end != bytes - j->end)
        return lgelu__wrong(j, bytes, "the tensors do not end where the file ends");
    return ascending || lgelu__check_order(j, work, space, 0, &end);
}

/* Removes a word from the front of a text, and returns whether the text began with it. */
static int lgelu__strip(lgelu__text *text, const char *word)
{
    const size_t n = strlen(word);
    if (text->n < n || memcmp(text->p, word, n))
        return 0;
    text->p += n;
    text->n -= n;
    return 1;
}

/* Finds the tensor of a part that an entry names; returns 0 if there is none. The running mean of a
   folded batch norm is found although it has no data here, for a message that names it. */
static int lgelu__find_tensor(const lgelu_part *part, const lgelu__entry *e, lgelu__tensor *t)
{
    int i, k;
    for (i = 0; i < part->net->count; i++) {
        const lgelu_node *node = part->net->nodes + i;
        lgelu__text rest = e->name;
        if (!lgelu__strip(&rest, part->prefix))
            return 0;
        if (lgelu__strip(&rest, node->name)) {
            for (k = 0; k < LGELU__TENSORS; k++) {
                *t = lgelu__tensor_of(part->net, node, k);
                if (lgelu__is(rest, t->suffix)
                    && (t->data || (node->folded && !strcmp(t->suffix, ".running_mean"))))
                    return 1;
            }
        }
    }
    return 0;
}

/* Reads a float, little-endian. */
static float lgelu__float_at(const unsigned char *p)
{
    return lgelu__float((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16
                        | (uint32_t)p[3] << 24);
}

/* Writes a shape of up to two dimensions; more are written as "...". */
static void lgelu__shape_text(char text[64], const size_t *shape, size_t dims)
{
    const char *end = text + 63;
    text[0] = 0;
    if (dims == 0)
        lgelu__format(text, end, "()");
    else if (dims == 1)
        lgelu__format(text, end, "(%z)", shape[0]);
    else if (dims == 2)
        lgelu__format(text, end, "(%z, %z)", shape[0], shape[1]);
    else
        lgelu__format(text, end, "(%z, %z, ...)", shape[0], shape[1]);
}

/* Refuses an entry because of its shape. */
static lgelu_status lgelu__refuse_shape(lgelu_net *net, size_t at, const char *key,
                                        const lgelu__entry *e, const lgelu__tensor *t)
{
    char expected[64] = "", found[64] = "";
    lgelu__shape_text(expected, t->shape, t->dims);
    lgelu__shape_text(found, e->shape, e->dims);
    return LGELU__REFUSE(net, LGELU_E_FILE,
                         "safetensors: byte %z: '%s': expected shape %s, found %s", at, key,
                         expected, found);
}

/* Refuses an entry whose type, shape or values do not fit its tensor. */
static lgelu_status lgelu__check_tensor(lgelu_net *net, const lgelu__json *j, const lgelu__entry *e,
                                        const lgelu__tensor *t, const char *key)
{
    const size_t at = (size_t)(e->name.p - j->p);
    size_t i;
    if (!t->data) {
        return LGELU__REFUSE(net, LGELU_E_FILE,
                             "safetensors: byte %z: '%s' is folded into its convolution here", at,
                             key);
    }
    if (!lgelu__is(e->dtype, "F32")) {
        return LGELU__REFUSE(net, LGELU_E_FILE, "safetensors: byte %z: '%s': expected F32", at,
                             key);
    }
    if (e->dims != t->dims || e->shape[0] != t->shape[0]
        || (t->dims > 1 && e->shape[1] != t->shape[1]))
        return lgelu__refuse_shape(net, at, key, e, t);
    for (i = 0; i < t->n; i++) {
        if (!lgelu__in_range(t->range, lgelu__float_at(j->p + j->end + e->from + 4 * i))) {
            return LGELU__REFUSE(net, t->range == LGELU__FROM_ONE ? LGELU_E_LAMBDA : LGELU_E_FILE,
                                 "safetensors: byte %z: '%s': value %z: expected %s", at, key, i,
                                 lgelu__range_text(t->range));
        }
    }
    return LGELU_OK;
}

/* Returns whether the header has an entry of this name. */
static int lgelu__has_entry(const lgelu__json *j, const char *key)
{
    lgelu__mark mark;
    size_t at = 8;
    while (lgelu__skim(j, at, &mark)) {
        if (lgelu__is(mark.name, key))
            return 1;
        at = mark.end;
    }
    return 0;
}

/* Finds the key of the first required tensor that is not in a file, which lacks at least one. */
static void lgelu__find_missing(char key[LGELU__KEY], const lgelu_part *part, int parts,
                                const lgelu__json *j)
{
    lgelu__tensor t;
    int p, k;
    for (p = 0; p < parts; p++) {
        for (k = 0; lgelu__tensor_at(part[p].net, k, &t); k++) {
            if (!t.required)
                continue;
            lgelu__key(key, part[p].prefix, t.node->name, t.suffix);
            if (!lgelu__has_entry(j, key))
                return;
        }
    }
}

/* Returns how many tensors a file of these parts must have. */
static size_t lgelu__count_required(const lgelu_part *part, int parts)
{
    lgelu__tensor t;
    size_t count = 0;
    int p, k;
    for (p = 0; p < parts; p++) {
        for (k = 0; lgelu__tensor_at(part[p].net, k, &t); k++)
            count += t.required != 0;
    }
    return count;
}

/* Takes the tensors of all parts from the file. It is called twice: with change = 0 it only checks,
   so that after an error no network has changed; with change = 1 it copies. */
static lgelu_status lgelu__load_tensors(const lgelu_part *part, int parts, lgelu__json *j,
                                        int change)
{
    char key[LGELU__KEY];
    lgelu__entry e;
    lgelu__tensor t;
    size_t members = 0, i, missing = lgelu__count_required(part, parts);
    int p;
    while (lgelu__next(j, &members, &e)) {
        for (p = 0; p < parts; p++) {
            lgelu_status status;
            if (!lgelu__find_tensor(part + p, &e, &t))
                continue;
            lgelu__key(key, part[p].prefix, t.node->name, t.suffix);
            status = lgelu__check_tensor(part->net, j, &e, &t, key);
            if (status)
                return status;
            missing -= t.required != 0;
            for (i = 0; change && i < t.n; i++)
                t.data[i] = lgelu__float_at(j->p + j->end + e.from + 4 * i);
        }
    }
    if (!missing)
        return LGELU_OK;
    lgelu__find_missing(key, part, parts, j);
    return LGELU__REFUSE(part->net, LGELU_E_FILE, "safetensors: no tensor '%s'", key);
}

/* Returns the value of a key in the metadata of a header that has been read, the last one if there
   are several; p is NULL if there is none. */
static lgelu__text lgelu__look_up(lgelu__json *j, const char *key)
{
    lgelu__text value = { NULL, 0 }, text, other;
    size_t pairs = 0;
    if (j->wrong || !j->metadata)
        return value;
    j->at = j->metadata;
    while (lgelu__member(j, &pairs, &text) && lgelu__string(j, &other)) {
        if (lgelu__is(text, key))
            value = other;
    }
    return value;
}

/* Removes a whole number below 2^32 from the front of a text. Returns 0 if there is none. */
static int lgelu__strip_number(lgelu__text *text, uint64_t *number)
{
    size_t digits = 0;
    *number = 0;
    while (digits < text->n && digits < 11 && text->p[digits] >= '0' && text->p[digits] <= '9') {
        *number = 10 * *number + (uint64_t)(text->p[digits] - '0');
        digits++;
    }
    text->p += digits;
    text->n -= digits;
    return digits > 0 && *number <= 0xFFFFFFFFu;
}

/* Reads the map of the learned λ's, "softplus 1036831949 0": its kind, then the bits of temperature
   and lambda_max as whole numbers. Returns 0 if it is none. */
static int lgelu__map_of(lgelu__text text, lgelu_lambda_map *map)
{
    float *const field[2] = { &map->temperature, &map->lambda_max };
    int kind = 0, k;
    while (kind < 3 && !lgelu__strip(&text, lgelu__map_name(kind)))
        kind++;
    for (k = 0; k < 2; k++) {
        uint64_t bits;
        if (!lgelu__strip(&text, " ") || !lgelu__strip_number(&text, &bits))
            return 0;
        *field[k] = lgelu__float((uint32_t)bits);
    }
    map->map = (lgelu_map)kind;
    return kind < 3 && !text.n;
}

/* Reads a number of steps, 0 where the file has none. Returns -1 if the text is no number, or too
   large. */
static long lgelu__steps_of(lgelu__text text)
{
    long step = 0;
    size_t i;
    for (i = 0; text.p && i < text.n; i++) {
        const long digit = text.p[i] - '0';
        if (digit < 0 || digit > 9 || step > (LONG_MAX - digit) / 10)
            return -1;
        step = 10 * step + digit;
    }
    return step;
}

/* Takes a gate's kind from the file, if it names one; the λ of a gate that learns none follows from
   its kind. With change = 0 it only checks. */
static lgelu_status lgelu__load_gate(const lgelu_part *part, lgelu_net *first, lgelu_node *node,
                                     lgelu__json *j, int change)
{
    char key[LGELU__KEY];
    const lgelu__text text = lgelu__look_up(j, lgelu__key(key, part->prefix, node->name, ""));
    int kind = 0, h;
    while (text.p && kind < LGELU_GATE_COUNT && !lgelu__is(text, lgelu__gates[kind].file))
        kind++;
    if (text.p && (kind == LGELU_GATE_COUNT || !lgelu__can_be(node, (lgelu_gate_kind)kind))) {
        return LGELU__REFUSE(first, LGELU_E_FILE, "safetensors: gate '%s' is of no known kind",
                             key);
    }
    if (!change)
        return LGELU_OK;
    if (text.p)
        node->gate = (lgelu_gate_kind)kind;
    if (lgelu_gate_is((int)node->gate, LGELU_GATE_TRAIT_LEARNED))
        return LGELU_OK;
    for (h = 0; h < node->lambda_count; h++)
        part->net->lambda[node->first_lambda + h] = lgelu__fixed_lambda(node->gate);
    return LGELU_OK;
}

/* Takes steps, maps of λ and kinds of gates from the file. With change = 0 it only checks. */
static lgelu_status lgelu__load_metadata(const lgelu_part *part, int parts, lgelu__json *j,
                                         int change)
{
    char key[LGELU__KEY];
    int p, i;
    for (p = 0; p < parts; p++) {
        lgelu_net *net = part[p].net;
        lgelu_lambda_map map = net->lambda_map;
        lgelu_status status;
        lgelu__text text = lgelu__look_up(j, lgelu__key(key, part[p].prefix, "step", ""));
        const long step = lgelu__steps_of(text);
        if (step < 0) {
            return LGELU__REFUSE(part->net, LGELU_E_FILE,
                                 "safetensors: '%s': expected a number of steps", key);
        }
        text = lgelu__look_up(j, lgelu__key(key, part[p].prefix, "lambda_map", ""));
        if (text.p && !lgelu__map_of(text, &map)) {
            return LGELU__REFUSE(part->net, LGELU_E_FILE, "safetensors: '%s': expected a map of λ",
                                 key);
        }
        for (i = 0; i < net->count; i++) {
            if (net->nodes[i].op != LGELU_OP_GATE)
                continue;
            status = lgelu__load_gate(part + p, part->net, net->nodes + i, j, change);
            if (status)
                return status;
        }
        if (!change)
            continue;
        /* The file holds the state between two steps: no forward has been computed since. */
        net->step = step;
        net->pass = 0;
        net->lambda_map = map;
        lgelu__changed(net);
    }
    return LGELU_OK;
}

/* The workspace holds nothing between two calls, so that the checks can sort in it. */
LGELU_DEF lgelu_status lgelu_parts_load(const lgelu_part *part, int parts, const void *file,
                                        size_t bytes)
{
    lgelu_net *first = part->net;
    lgelu_status status = lgelu__check_parts(part, parts, "loaded");
    uint32_t *work = (uint32_t *)(void *)first->internal.scratch;
    lgelu__json j;
    int change;
    if (status)
        return status;
    if (!lgelu__open(&j, file, bytes)
        || !lgelu__check_header(&j, bytes, work, first->internal.scratch_bytes / sizeof *work))
        return LGELU__REFUSE(first, LGELU_E_FILE, "safetensors: byte %z: %s", j.at, j.wrong);
    for (change = 0; change < 2 && !status; change++) {
        status = lgelu__load_tensors(part, parts, &j, change);
        if (!status)
            status = lgelu__load_metadata(part, parts, &j, change);
    }
    return status;
}

LGELU_DEF lgelu_status lgelu_net_load(lgelu_net *net, const void *file, size_t bytes)
{
    const lgelu_part part = { "", net };
    return lgelu_parts_load(&part, 1, file, bytes);
}

LGELU_DEF int lgelu_metadata(const void *file, size_t bytes, const char *key, char *value,
                             size_t capacity)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    lgelu__json j;
    lgelu__text text;
    lgelu__entry e;
    size_t i, k, out = 0, members = 0;
    if (!capacity || !lgelu__open(&j, file, bytes))
        return 0;
    while (lgelu__next(&j, &members, &e)) {
    }
    text = lgelu__look_up(&j, key);
    if (!text.p)
        return 0;
    for (i = 0; i < text.n && out + 1 < capacity; i++) {
        char c = (char)text.p[i];
        if (c == '\\') {
            const char *f = strchr(from, text.p[++i]);
            unsigned code = 0;
            if (f) {
                c = to[f - from];
            } else { /* \u00XX alone; other code points read '?' */
                for (k = 0; k < 4; k++)
                    code = code * 16 + (unsigned)lgelu__hex(text.p[++i]);
                c = code && code < 128 ? (char)code : '?';
            }
        }
        value[out++] = c;
    }
    value[out] = 0;
    return 1;
}
#endif /* LGELU_TRAINER */
#undef fma
#ifdef _WIN32
#pragma pop_macro("small")
#pragma pop_macro("far")
#endif
#endif /* LGELU_IMPLEMENTATION */

#else /* LGELU__PASS */
/* ==== [K] KERNELS ============================================================================= */
/* ---- [Ka] tables, vocabulary ---- */
/* What all instruction sets share is compiled with the first of them: the tables of coefficients,
   made by tests/tools/coefficients.py, and the constants that are prepared for one λ. */
#ifdef LGELU__SHARED
#undef LGELU__FIRST_PASS
#else
#define LGELU__SHARED 1
#define LGELU__FIRST_PASS 1
/* A table of coefficients has sixteen columns, one for each interval; columns 8 to 15 are those for
   x < 0. Its rows are written as a macro of three macros: EVEN and ODD receive columns 0 to 7 of a
   row that is even or odd about interval 0, EACH all sixteen. Where sums are computed in double
   (LGELU__SUMS_IN_DOUBLE below), there is a copy of columns 8 to 15 in double. */
#define LGELU__EVEN(a, b, c, d, e, f, g, h)            \
    {                                                  \
        a, b, c, d, e, f, g, h, a, h, g, f, e, d, c, b \
    }
#define LGELU__ODD(a, b, c, d, e, f, g, h)                                     \
    {                                                                          \
        a, b, c, d, e, f, g, h, -(a), -(h), -(g), -(f), -(e), -(d), -(c), -(b) \
    }
#define LGELU__EACH(a, b, c, d, e, f, g, h, ...) \
    {                                            \
        a, b, c, d, e, f, g, h, __VA_ARGS__      \
    }
#define LGELU__EVEN_BELOW(a, b, c, d, e, f, g, h) \
    {                                             \
        a, h, g, f, e, d, c, b                    \
    }
#define LGELU__ODD_BELOW(a, b, c, d, e, f, g, h)       \
    {                                                  \
        -(a), -(h), -(g), -(f), -(e), -(d), -(c), -(b) \
    }
#define LGELU__EACH_BELOW(a, b, c, d, e, f, g, h, ...) \
    {                                                  \
        __VA_ARGS__                                    \
    }
#if LGELU__FAST_FMA
#define LGELU__COEFFICIENTS(name, table, rows)                                                 \
    static const float lgelu__##name[rows][16] LGELU__LINES = { table(LGELU__EVEN, LGELU__ODD, \
                                                                      LGELU__EACH) };
#else
#define LGELU__COEFFICIENTS(name, table, rows)                                                 \
    static const float lgelu__##name[rows][16] LGELU__LINES = { table(LGELU__EVEN, LGELU__ODD, \
                                                                      LGELU__EACH) };          \
    static const double lgelu__##name##_in_double[rows][8] = { table(                          \
        LGELU__EVEN_BELOW, LGELU__ODD_BELOW, LGELU__EACH_BELOW) };
#endif
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdouble-promotion"
#endif
/* clang-format off */
/* Row 0 is minus the centre of each interval. Rows 1 to 7 are Φ(z) in powers of the distance from
   the centre. */
#define LGELU__MIDDLE_ROWS(EVEN, ODD, EACH) \
    ODD(0, -0.45501706f, -0.861040771f, -1.29509878f, \
        -1.70118785f, -2.16407847f, -2.52405167f, -2.97953248f), \
    EACH(0.5f, 0.675451517f, 0.805392206f, 0.902356923f, \
         0.955546141f, 0.984770836f, 0.994199456f, 0.998556557f, \
         0.5f, 0.00144344312f, 0.00580054382f, 0.0152291637f, \
         0.0444538593f, 0.0976430774f, 0.194607794f, 0.324548483f), \
    EVEN(0.398942262f, 0.359709412f, 0.275371492f, 0.172461897f, \
         0.0938592926f, 0.0383670442f, 0.0165006239f, 0.00471151667f), \
    ODD(0, -0.0818369091f, -0.118553005f, -0.111677684f, \
        -0.0798361823f, -0.0415146165f, -0.0208242275f, -0.00701905042f), \
    EVEN(-0.0664878339f, -0.0475400127f, -0.0118675763f, 0.0194668975f, \
         0.0296279825f, 0.0235527959f, 0.0147708049f, 0.00618587714f), \
    ODD(0, 0.0190410689f, 0.0223137941f, 0.0123177227f, \
        0.000708013715f, -0.00582577102f, -0.00584908621f, -0.00343900872f), \
    EVEN(0.00987367332f, 0.00539924903f, -0.00206198194f, -0.00606671441f, \
         -0.00465588551f, -0.00102622504f, 0.000717398536f, 0.00112184219f), \
    ODD(0, -0.00276814774f, -0.00272747572f, -0.000496188586f, \
        0.00118045183f, 0.00119133084f, 0.000465362391f, -5.5816985e-05f)
LGELU__COEFFICIENTS(middle, LGELU__MIDDLE_ROWS, 8)
/* Row 0 is minus the centre of each interval. Rows 1 to 7 are f'(z) = Φ(z) + zφ(z) in powers of the
   distance from the centre. */
#define LGELU__SLOPE_ROWS(EVEN, ODD, EACH) \
    ODD(0, -0.568276048f, -0.751791537f, -1.31742227f, \
        -1.73099208f, -2.15848684f, -2.60030866f, -2.94105959f), \
    EACH(0.5f, 0.907981634f, 1, 1.12682688f, 1.11264229f, 1.06837666f, 1.03063452f, 1.01389289f, \
         0.5f, -0.0138929468f, -0.0306345802f, -0.0683766603f, \
         -0.112642229f, -0.126826882f, -5.22731192e-09f, 0.0920183659f), \
    EVEN(0.797884464f, 0.569290817f, 0.431493968f, 0.0442881733f, \
         -0.088852413f, -0.103260882f, -0.0646248311f, -0.035110224f), \
    ODD(0, -0.354662776f, -0.388284832f, -0.249849468f, \
        -0.0774673298f, 0.0276223663f, 0.0487308428f, 0.0361022167f), \
    EVEN(-0.265944749f, -0.104293235f, -0.018192349f, 0.143414214f, \
         0.118850477f, 0.0446998887f, -0.00540535059f, -0.0160785839f), \
    ODD(0, 0.117137901f, 0.113962255f, 0.0177497044f, \
        -0.0384805873f, -0.0403553173f, -0.0156925227f, -0.00150568038f), \
    EVEN(0.0590998232f, 0.00968086999f, -0.0151479496f, -0.0384779312f, \
         -0.0134317866f, 0.00856703054f, 0.0109237619f, 0.00560512766f), \
    ODD(0, -0.0215279646f, -0.0164047033f, 0.00326555152f, \
        0.0117078209f, 0.00570134493f, -0.00106901117f, -0.00267160172f)
LGELU__COEFFICIENTS(slope, LGELU__SLOPE_ROWS, 8)
#define LGELU__BELL 0.992787714
/* LGELU__BELL·φ(z) in powers of the same distance. */
#define LGELU__BELL_ROWS(EVEN, ODD, EACH) \
    EVEN(0.396064997f, 0.337008953f, 0.298563629f, 0.166297376f, \
         0.0885362029f, 0.0385534503f, 0.0134741869f, 0.00524178753f), \
    ODD(0, -0.19151412f, -0.224457636f, -0.219083861f, \
        -0.153255463f, -0.0832171142f, -0.0350370444f, -0.015416408f), \
    EVEN(-0.198032871f, -0.114088126f, -0.0649094731f, 0.0611642599f, \
         0.0883740112f, 0.0705348849f, 0.0388164409f, 0.0200493839f), \
    ODD(0, 0.0854473338f, 0.0910915658f, 0.0461677201f, \
        9.35774005e-05f, -0.0230106208f, -0.0219658446f, -0.0145170214f), \
    EVEN(0.0495235845f, 0.016300451f, -0.000897432619f, -0.0305016357f, \
         -0.0221513435f, -0.00522552198f, 0.00457901554f, 0.00566286361f), \
    ODD(0, -0.0196996424f, -0.0183646195f, -0.00120159541f, \
        0.00761133293f, 0.006850156f, 0.0020137208f, -0.000406679552f), \
    EVEN(-0.0083934674f, -0.00341405091f, 0.00387384999f, 0.00556476414f, \
         0.00197005924f, -0.00136033155f, -0.0017525889f, -0.000780430157f)
LGELU__COEFFICIENTS(bell, LGELU__BELL_ROWS, 7)
/* 2^f - 1 in powers of f, beginning with the first power. */
static const float lgelu__exp2[6] = {
    0.693147182f, 0.240226433f, 0.0555035882f, 0.00961900223f, 0.00133913022f, 0.000151967208f
};
/* (1 - zQ(z)/φ(z))/w in powers of w = 1/z². */
static const float lgelu__tail[7] = {
    0.999988556f, -2.99683022f, 14.6954298f, -90.3431168f, 524.334595f, -2131.43286f, 4112.5791f
};
/* -√(8/π)·log2(e)·(1, 0.044715) and √(8/π)·(1, 0.134145), each value as the sum of two floats. */
static const float lgelu__tanh[8] = {
    -2.30220795f, -2.5136697e-07f, -0.102943242f, 2.01619854e-09f,
    1.59576988f, -7.60596436e-07f, 0.214064449f, -2.54083421e-10f
};
/* Row 0 is minus the centre of each interval. Rows 1 to 8 are the derivative f'(-w) of the tanh
   approximation in powers of the distance from the centre. */
static const float lgelu__tanh_slope[9][8] = {
    { -0.405029297f, -0.752461433f, -1.25097656f, -1.81030273f,
      -2.35302734f, -2.84912109f, -3.33959961f, -3.84985352f },
    { 0.193942785f, -4.88057683e-09f, -0.122571647f, -0.105912782f,
      -0.0501922965f, -0.0172254909f, -0.0041782991f, -0.000635555014f },
    { -0.674281299f, -0.430400074f, -0.080641754f, 0.0978472754f,
      0.0900778621f, 0.0433672182f, 0.0136566535f, 0.00262348191f },
    { 0.286297739f, 0.387518436f, 0.275886446f, 0.0530476086f,
      -0.0439526066f, -0.0418859161f, -0.0189790893f, -0.004850653f },
    { 0.175799772f, 0.0157812499f, -0.135557935f, -0.104090638f,
      -0.0195086934f, 0.014306685f, 0.0136195887f, 0.00516124628f },
    { -0.102419518f, -0.113940671f, -0.0283484068f, 0.0405373238f,
      0.0295845531f, 0.00585780432f, -0.00404813886f, -0.00329314033f },
    { -0.0305969641f, 0.0166673791f, 0.0394853018f, 0.00708724558f,
      -0.0102800829f, -0.00724567333f, -0.00121024565f, 0.00106230017f },
    { 0.0234531406f, 0.0194804873f, -0.00426212465f, -0.00970749464f,
      -0.00107377418f, 0.00226373691f, 0.00151448802f, 9.11510288e-05f },
    { 0.00729943486f, -0.00559038809f, -0.00551528763f, 0.00147442671f,
      0.00205515651f, 0.000475762907f, -0.000409344881f, -0.000311164011f }
};
/* e0·(e^-d - 1 + d)/d² in powers of d, where 1 + e0 is the root of 1 + e^-a - a. */
static const float lgelu__silu_root[5] = {
    0.139232278f, -0.046410691f, 0.0116022779f, -0.00232483121f, 0.000392375223f
};
/* clang-format on */
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif
/* Two tables for AVX2. Bits 4j to 4j + 2 of lgelu__lanes[m] are the j-th lane of the mask m of
   eight lanes. The same bits of LGELU__PLACES(m) are the number of lanes of m below lane j. */
#define LGELU__BIT(m, j) ((uint32_t)((m) >> j & 1))
#define LGELU__PLACES(m)                                                  \
    LGELU__BIT(m, 0) * 0x11111110u + LGELU__BIT(m, 1) * 0x11111100u       \
        + LGELU__BIT(m, 2) * 0x11111000u + LGELU__BIT(m, 3) * 0x11110000u \
        + LGELU__BIT(m, 4) * 0x11100000u + LGELU__BIT(m, 5) * 0x11000000u \
        + LGELU__BIT(m, 6) * 0x10000000u
#define LGELU__LANE(m, j) (LGELU__BIT(m, j) * j << ((LGELU__PLACES(m)) >> 4 * j & 15) * 4)
#define LGELU__LANES(m)                                                           \
    LGELU__LANE(m, 1) | LGELU__LANE(m, 2) | LGELU__LANE(m, 3) | LGELU__LANE(m, 4) \
        | LGELU__LANE(m, 5) | LGELU__LANE(m, 6) | LGELU__LANE(m, 7)
#define LGELU__4(f, m) f((m)), f((m) + 1), f((m) + 2), f((m) + 3)
#define LGELU__16(f, m) LGELU__4(f, m), LGELU__4(f, m + 4), LGELU__4(f, m + 8), LGELU__4(f, m + 12)
#define LGELU__64(f, m) \
    LGELU__16(f, m), LGELU__16(f, m + 16), LGELU__16(f, m + 32), LGELU__16(f, m + 48)
static const uint32_t lgelu__lanes[256] = { LGELU__64(LGELU__LANES, 0), LGELU__64(LGELU__LANES, 64),
                                            LGELU__64(LGELU__LANES, 128),
                                            LGELU__64(LGELU__LANES, 192) };
/* lgelu__places[m][j] is the number of lanes of the mask m of four lanes that are below lane j. */
static const int32_t lgelu__places[16][4] = {
    { 0, 0, 0, 0 }, { 0, 1, 1, 1 }, { 0, 0, 1, 1 }, { 0, 1, 2, 2 }, { 0, 0, 0, 1 }, { 0, 1, 1, 2 },
    { 0, 0, 1, 2 }, { 0, 1, 2, 3 }, { 0, 0, 0, 0 }, { 0, 1, 1, 1 }, { 0, 0, 1, 1 }, { 0, 1, 2, 2 },
    { 0, 0, 0, 1 }, { 0, 1, 1, 2 }, { 0, 0, 1, 2 }, { 0, 1, 2, 3 }
};

/* The bits of the float 2^n. For n = 128 they are those of inf; larger ones are NaN. */
#define LGELU__TWO(n) ((int32_t)((uint32_t)(127 + (n)) << 23))
/* The integer that v_times2 takes for a factor 2^n. */
#define LGELU__EXPONENT(n) ((n) * (1 << 23))
/* 1.5·2^23. The sum of a float with it is rounded to the nearest integer n, and its bits are
   LGELU__ROUND_BITS + n. */
#define LGELU__ROUND 12582912.0f
#define LGELU__ROUND_BITS 0x4B400000

/* The constants of one λ. Those of the tail take longer to compute, and are prepared when an
   element needs them; until then c is 0. */
typedef struct {
    float lambda;
    float step;  /* λ/0.42: one over the width of an interval of x */
    float last;  /* 3.1/λ: the middle ends here */
    float left;  /* up to here f is -0, and x²φ is 0 */
    float right; /* from here on f is x */
    float scale; /* 2^2e with 2^e <= λ < 2^(e+1): the unit of x² in the backward's tail */
    float e, el; /* e + el = -½·log2(e)·λ², with a relative error of 2^-49 */
    float w;     /* 1/λ² */
    float c, cl; /* c(1 + cl) = 1/(λ√(2π)), or λ/√(2π) in the backward */
    float deep;  /* below this exponent a result may be below 2^-126 */
} lgelu__constants;

/* An array of this many floats fits no cache. */
enum { LGELU__STREAM = 8 << 20 };

/* Returns the number of floats from an address to the beginning of the next cache line. */
static size_t lgelu__to_line(uintptr_t at) { return (64 - (at & 63)) / 4 % 16; }

/* Returns whether the fast path serves this λ, which is so from 2^-38 to 2^38: the squares of x and
   λ and their rounding errors are normal numbers, and f(x) is x/2 for abs(x) below 2^-63. */
static int lgelu__ordinary(float lambda)
{
    return lambda >= 3.6379788e-12f && lambda <= 2.7487791e11f;
}

/* The same for the backward, from 2^-10 on, where x² is up to 10/λ² in the middle. For a smaller λ
   sums in float might overflow, and x²φ might be significant where φ is not. */
static int lgelu__ordinary_backward(float lambda)
{
    return lambda >= 9.765625e-4f && lgelu__ordinary(lambda);
}

/* Returns x rounded to float. Where gcc 12 vectorises doubles at -O3, it drops the rounding of
   (double)(float)x; the volatile prevents this. */
LGELU__INLINE float lgelu__rounded(double x)
{
    volatile float f = (float)x;
    return f;
}

/* Returns c and sets cl such that c(1 + cl) = x. */
LGELU__INLINE float lgelu__split(double x, float *cl)
{
    const float c = lgelu__rounded(x);
    *cl = (float)((x - (double)c) / x);
    return c;
}

/* Returns the constants of λ, without those of the tail. Beyond left/λ and right/λ the gate, or its
   slope, is that of ReLU. */
LGELU__INLINE lgelu__constants lgelu__prepare(float lambda, float left, float right)
{
    lgelu__constants g = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    const float r = 1 / lambda;
    g.lambda = lambda;
    g.step = lambda * 2.3809524f;
    g.last = 3.1f * r;
    g.left = left * r;
    g.right = right * r;
    g.scale = lgelu__float((2 * (lgelu__bits(lambda) >> 23) - 127) << 23);
    return g;
}

/* At the left limit f is -2^-150, half of the smallest float. */
LGELU__INLINE lgelu__constants lgelu__prepare_forward(float lambda)
{
    return lgelu__prepare(lambda, lambda < 1 ? -16.5f : -14.44f, 5.6f);
}

/* Completes the constants by those of the tail; c is 1/(λ√(2π)) or λ/√(2π). */
LGELU__INLINE void lgelu__prepare_tail(lgelu__constants *g, double c)
{
    const double l = (double)g->lambda;
    g->e = lgelu__rounded(-0.72134752044448170368 * (l * l));
    g->el = (float)fma(-0.72134752044448170368, l * l, -(double)g->e);
    g->w = (float)(1 / (l * l));
    g->c = lgelu__split(c, &g->cl);
    g->deep = LGELU__ROUND + (float)(4 - (int)(lgelu__bits(g->c) >> 23));
}

/* Completes the constants for the forward, unless they are complete. */
LGELU__INLINE void lgelu__prepare_forward_tail(lgelu__constants *g)
{
    if (!(g->c > 0))
        lgelu__prepare_tail(g, 0.39894228040143267794 / (double)g->lambda);
}

/* The constants of SiLU for one β. */
typedef struct {
    float beta;
    float h, l;     /* h + l = -β·log2(e) */
    float edge;     /* the forward divides up to here; above f is x, below -edge it may be tiny */
    float left;     /* where f(-left) is -0 */
    float last;     /* the backward's fast path ends here, with e^-a about 2^-46 */
    float far_last; /* from here on dy·f'(-x) is 0 for every dy */
} lgelu__silu_constants;

/* The distances of the edges follow from the largest exponent n of E = e^-z. The result x/(1 + E)
   is at least 2^-126 while n <= 126, where E is also finite, and n <= 130 - log2(β), where abs(x)
   is at least 2^5/β. It is -0 for n >= 160 - log2(β), as abs(x) is then at most 2^7.1/β. */
LGELU__INLINE lgelu__silu_constants lgelu__prepare_silu(float beta)
{
    const double k = 1.4426950408889634074 * (double)beta;
    const int exponent = (int)(lgelu__bits(beta) >> 23) - 127;
    const int most = exponent < 4 ? 125 : 129 - exponent;
    lgelu__silu_constants s;
    s.beta = beta;
    s.h = lgelu__rounded(-k);
    s.l = (float)(-k - (double)s.h);
    s.edge = (float)((double)most / k);
    s.left = (float)((double)(160 - exponent) / k);
    s.last = (float)(46 / k);
    s.far_last = (float)(320 / k);
    return s;
}

/* Returns x rounded to float, ties to even. Below 2^-126 this is done in integers, so that no
   processor mode that flushes subnormal numbers has an influence: x is counted in units of 2^-149,
   and adding 2^52 rounds it to a whole number of them. */
static float lgelu__narrow(double x)
{
    const double least = 1.17549435082228751e-38, units = 7.13623846352979940529e44;
    const double magic = 4503599627370496.0;
    uint64_t bits;
    double a = fabs(x);
    if (x != x)
        return lgelu__float(0x7FC00000);
    if (!(a < least))
        return (float)x;
    memcpy(&bits, &x, 8);
    a *= units;
    return lgelu__float((uint32_t)((a + magic) - magic) | (uint32_t)(bits >> 63 << 31));
}

/* Returns x as a double. A subnormal number is converted in integers, likewise. */
static double lgelu__wide(float x)
{
    const double unit = 1.40129846432481707e-45;
    const uint32_t bits = lgelu__bits(x), magnitude = bits & 0x7FFFFFFFu;
    if (magnitude >= 0x00800000u)
        return (double)x;
    return (bits >> 31 ? -unit : unit) * (double)magnitude;
}

#ifdef LGELU_TRAINER
/* Returns the sigmoid of any x, rounded once. A NaN is returned as it is. */
LGELU__APART float lgelu__sigmoid_far(float x)
{
    const double a = lgelu__wide(x), e = lgelu__exp(-fabs(a));
    if (a != a)
        return lgelu__float(lgelu__bits(x));
    return lgelu__narrow(a < 0 ? e / (1 + e) : 1 / (1 + e));
}

/* Returns dy times the slope of the sigmoid at any x, rounded once. */
LGELU__APART float lgelu__sigmoid_far_backward(float dy, float x)
{
    const double e = lgelu__exp(-fabs(lgelu__wide(x)));
    return lgelu__narrow(lgelu__wide(dy) * (e / ((1 + e) * (1 + e))));
}
#endif

/* Conversions of f16 where there is no instruction for them. */
static float lgelu__from_f16(uint16_t h)
{
    uint32_t a = h & 0x7FFFu, s = (uint32_t)(h & 0x8000) << 16;
    /* A subnormal f16 is a multiple of 2^-24. */
    if (a < 0x0400)
        return lgelu__float(lgelu__bits((float)a * 5.9604644775390625e-8f) | s);
    return lgelu__float(((a << 13) + (a < 0x7C00 ? 112u << 23 : 224u << 23))
                        | (a > 0x7C00 ? 0x400000u : 0) | s);
}

static uint16_t lgelu__to_f16(float x)
{
    uint32_t u = lgelu__bits(x), a = u & 0x7FFFFFFFu, s = (u ^ a) >> 16;
    if (a > 0x7F800000u)
        return (uint16_t)(s | 0x7E00 | (a >> 13 & 0x3FF));
    /* From 65520 on the result is inf. */
    if (a >= 0x477FF000u)
        return (uint16_t)(s | 0x7C00);
    /* Below 2^-14 the result is subnormal, a multiple of 2^-24. */
    if (a < 0x38800000u)
        return (uint16_t)(s | ((lgelu__bits(lgelu__float(a) + 0.5f) - 0x3F000000u)));
    return (uint16_t)(s | ((a - (112u << 23) + 0xFFF + (a >> 13 & 1)) >> 13));
}

/* Adds the 16 virtual lanes of a sum in their one order; the result is total[0]. */
static void lgelu__fold16(double *total)
{
    int i;
    LGELU__UNROLLED
    for (i = 0; i < 8; i++)
        total[i] += total[i + 8];
    LGELU__UNROLLED
    for (i = 0; i < 4; i++)
        total[i] += total[i + 4];
    total[0] = (total[0] + total[2]) + (total[1] + total[3]);
}

/* The state of a backward pass. */
typedef struct {
    size_t i;     /* the current element */
    size_t count; /* packed elements */
    size_t pairs; /* pairs of vectors that have packed elements */
    float *small; /* sums of terms that are kept in a smaller unit */
} lgelu__cursor;

/* What an instruction set provides of the gate: the forward of a block, and the backward of a block
   and its limit for λ = inf. The rest is compiled once. */
typedef void lgelu__forward_block(float *y, const float *x, lgelu__constants *gate, size_t n);
typedef size_t lgelu__forward_past(float *y, const float *x, lgelu__constants *gate, size_t n,
                                   lgelu__forward_block *block);
typedef void lgelu__backward_block(float *dx, double *total, const float *dy, const float *x,
                                   lgelu__constants *gate, double unit, size_t n);
typedef void lgelu__relu_backward(float *dx, const float *dy, const float *x, size_t n);
typedef void lgelu__silu_backward_block(float *dx, double *total, const float *dy, const float *x,
                                        const lgelu__silu_constants *s, size_t n);

/* A family of gates as an exact function and as kernels; one without a parameter ignores λ. */
typedef double lgelu__exact_function(double x, double lambda);
typedef void lgelu__forward_function(float *y, const float *x, float lambda, size_t n);
typedef double lgelu__backward_function(float *dx, const float *dy, const float *x, float lambda,
                                        size_t n);

/* The forward for a λ or β so small or large that products would not be normal numbers. */
LGELU__APART void lgelu__forward_extreme(float *y, const float *x, float lambda, size_t n,
                                         lgelu__exact_function *exact)
{
    const double l = lgelu__wide(lambda);
    size_t i;
    for (i = 0; i < n; i++) {
        if ((lgelu__bits(x[i]) & 0x7FFFFFFF) > LGELU__TWO(128))
            y[i] = lgelu__float(lgelu__bits(x[i]));
        else
            y[i] = lgelu__narrow(exact(lgelu__wide(x[i]), l));
    }
}

/* The backward for such a λ or β, with the derivatives in x and in λ. Returns the sum. */
LGELU__APART double lgelu__backward_extreme(float *dx, const float *dy, const float *x,
                                            float lambda, size_t n, lgelu__exact_function *slope,
                                            lgelu__exact_function *derivative)
{
    const double l = lgelu__wide(lambda);
    double sum = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        const double d = lgelu__wide(dy[i]), a = lgelu__wide(x[i]);
        sum = fma(d, derivative(a, l), sum);
        if (dx)
            dx[i] = lgelu__narrow(d * slope(a, l));
    }
    return sum;
}

/* Returns 1 if f(x) > t for a midpoint t of two 16-bit values. Near 0 the double nearest to f(x) is
   x/2, which is below f(x). */
static uint32_t lgelu__above(double t, double x, double lambda, lgelu__exact_function *exact)
{
    return fabs(lambda * x) < 1e-8 || exact(x, lambda) >= t;
}

/* The constants of the stochastic gate. It evaluates Φ(-abs(λx)) as Φ(-m·x'), where m in [1, 2) is
   λ without its power of two. x' is abs(x)·s1·s2, and for a subnormal x its bits times s1·s3; it is
   at least `least`, where Q is 1/2, and at most cap. */
typedef struct {
    float m, s1, s2, s3, least, cap;
} lgelu__coin;

static lgelu__coin lgelu__prepare_coin(float lambda)
{
    /* These are the constants for λ = inf, where x' is 8. */
    lgelu__coin c = { 1, 0, 1, 1, 8, 8 };
    int k;
    if (lambda > FLT_MAX)
        return c;
    c.least = 8.6736174e-19f; /* 2^-60 */
    c.m = (float)(2 * frexp(lgelu__wide(lambda), &k));
    k--;
    /* The power of two is distributed over two factors, so that neither is subnormal. */
    c.s1 = (float)lgelu__scaled_by(1, k / 2);
    c.s2 = (float)lgelu__scaled_by(1, k - k / 2);
    c.s3 = k < 46 ? 0 : (float)lgelu__scaled_by(1, k - k / 2 - 149);
    /* λ = 0 gives Φ(0). */
    if (!(c.m > 0)) {
        c.m = 1;
        c.cap = 0;
    }
    return c;
}
#endif

/* INSTRUCTION SETS. Each one states here, once, its names, its sizes and what it can do:

     LGELU__SUFFIX         the end of the name of each of its functions
     LGELU__TARGET         the attribute of each of its functions
     v_lanes               floats in a vector: 1, 4, 8 or 16
     v_rows                rows of a tile of the matrix product, which is two vectors wide and fills
                           the registers
     v_flat                rows of a tile of four vectors; 1: there is no such tile (default)
     v_few                 rows of A that a product with few rows takes at a time; default 8
     v_deep                floats of each row that v_turn_deep transposes; default 4, as v_turn
     LGELU__INTEL          whether the intrinsics are Intel's (_mm_, _mm256_, _mm512_); default 0
     LGELU__HAS_FMA        whether a fused multiply-add is an instruction; default 1. Without it the
                           type d_t and its operations are needed.
     LGELU__FMA_IS_CALL    whether v_fma is then a call, which halves the compile time; default 0
     LGELU__SUMS_IN_DOUBLE whether the gate then evaluates its polynomials in double; default 0
     LGELU__HAS_MASKS      whether a mask has one bit for each lane, and compares, loads and stores
                           take a mask; default 0
     LGELU__HAS_TABLE16    whether one instruction looks up a table of sixteen floats; default 0
     LGELU__HAS_COMPRESS   whether v_pack and v_unpack are instructions; default 0
     LGELU__HAS_ANY        whether m_any is an instruction; default 0
     LGELU__HAS_RANGE      whether v_least and v_most are instructions; default 0
     LGELU__HAS_STREAM     whether v_stream stores past the caches; default 0

   To add an instruction set:
     1. Give it a number LGELU__PASS_... and an include in [4], next to the others.
     2. Define LGELU__TARGET_... in [2], for gcc and for MSVC, and include the header of its
        intrinsics there.
     3. Add a value to lgelu_isa_id in [1], which is ordered by speed, a name to lgelu_isa_name, a
        column to LGELU__FUNCTIONS and a table to lgelu__kernels_of, in that order. Let
        lgelu__detect recognise it, and lgelu_isa_limit choose the next lower one where it is above
        the limit.
     4. State its capabilities here. Whatever has a default may be left out. Among Intel's sets
        LGELU__HAS_FMA also selects the operations that AVX2 has and SSE2 lacks: a set without fma
        defines these itself. v_lanes == 4 selects the loads and stores of a part of a vector that
        copy floats one by one.
     5. Define those types and operations below that have no default, on the model of NEON, whose
        block is the plainest. Every function that has vectors carries LGELU__TARGET, by
        LGELU__WORD or beside LGELU__APART: without it the compiler refuses the first intrinsic.
     6. `make -C tests test_kernels test_half test_fma test_gemm test_same_bits` must pass. The
        tests walk lgelu_isa_id, so that they run the new set; only `detection` of test_kernels.c,
        which asks the compiler's library, has to know it. The hashes in tests/hashes.txt hold for
        every instruction set. Files of examples/deploy that choose among instruction sets by name
        (compact.c, least_squares.c) treat an unknown one as the set below it, or as scalar. */
#if LGELU__PASS == LGELU__PASS_SCALAR
#define LGELU__SUFFIX _scalar
#define LGELU__TARGET LGELU__TARGET_SCALAR
#define v_lanes 1
#define v_rows 4
#define v_few 2
#define LGELU__HAS_FMA LGELU__FAST_FMA
#define LGELU__SUMS_IN_DOUBLE !LGELU__FAST_FMA
#elif LGELU__PASS == LGELU__PASS_SSE2
/* A multiply-add is a call here, which leaves nothing in registers, so that tiles are small. */
#define LGELU__SUFFIX _scalar
#define LGELU__TARGET LGELU__TARGET_SCALAR
#define v_lanes 4
#define v_rows 2
#define v_few 2
#define LGELU__INTEL 1
#define LGELU__HAS_FMA 0
#define LGELU__FMA_IS_CALL 1
#define LGELU__SUMS_IN_DOUBLE 1
#define LGELU__HAS_RANGE 1
#define LGELU__HAS_STREAM 1
#elif LGELU__PASS == LGELU__PASS_NEON
#define LGELU__SUFFIX _neon
#define LGELU__TARGET LGELU__TARGET_NEON
#define v_lanes 4
#define v_rows 12
#define LGELU__HAS_ANY 1
#elif LGELU__PASS == LGELU__PASS_SIMD128
#define LGELU__SUFFIX _simd128
#define LGELU__TARGET LGELU__TARGET_SIMD128
#define v_lanes 4
#define v_rows 4
#define LGELU__HAS_FMA 0
#define LGELU__HAS_ANY 1
#elif LGELU__PASS == LGELU__PASS_AVX2
#define LGELU__SUFFIX _avx2
#define LGELU__TARGET LGELU__TARGET_AVX2
#define v_lanes 8
#define v_rows 6
#define LGELU__INTEL 1
#define LGELU__HAS_COMPRESS 1
#define LGELU__HAS_STREAM 1
#elif LGELU__PASS == LGELU__PASS_AVX512
#define LGELU__SUFFIX _avx512
#define LGELU__TARGET LGELU__TARGET_AVX512
#define v_lanes 16
#define v_rows 14
#define v_flat 6
#define v_deep 16
#define LGELU__INTEL 1
#define LGELU__HAS_MASKS 1
#define LGELU__HAS_TABLE16 1
#define LGELU__HAS_COMPRESS 1
#define LGELU__HAS_RANGE 1
#define LGELU__HAS_STREAM 1
#endif
#ifndef v_flat
#define v_flat 1
#endif
#ifndef v_few
#define v_few 8
#endif
#ifndef v_deep
#define v_deep 4
#endif
#ifndef LGELU__INTEL
#define LGELU__INTEL 0
#endif
#ifndef LGELU__HAS_FMA
#define LGELU__HAS_FMA 1
#endif
#ifndef LGELU__FMA_IS_CALL
#define LGELU__FMA_IS_CALL 0
#endif
#ifndef LGELU__SUMS_IN_DOUBLE
#define LGELU__SUMS_IN_DOUBLE 0
#endif
#ifndef LGELU__HAS_MASKS
#define LGELU__HAS_MASKS 0
#endif
#ifndef LGELU__HAS_TABLE16
#define LGELU__HAS_TABLE16 0
#endif
#ifndef LGELU__HAS_COMPRESS
#define LGELU__HAS_COMPRESS 0
#endif
#ifndef LGELU__HAS_ANY
#define LGELU__HAS_ANY 0
#endif
#ifndef LGELU__HAS_RANGE
#define LGELU__HAS_RANGE 0
#endif
#ifndef LGELU__HAS_STREAM
#define LGELU__HAS_STREAM 0
#endif

/* LGELU__FN(name) is the name of a function, type or constant of this instruction set. LGELU__WORD
   declares an operation of the vocabulary. LGELU__UNROLL precedes a loop that is unrolled. */
#define LGELU__FN(name) LGELU__PASTE(lgelu__, LGELU__PASTE(name, LGELU__SUFFIX))
#define LGELU__WORD LGELU__INLINE LGELU__TARGET
/* Where a multiply-add is a call, unrolled loops would be as fast and a sixth larger. */
#if LGELU__FMA_IS_CALL
#define LGELU__UNROLL
#else
#define LGELU__UNROLL LGELU__UNROLLED
#endif

/* VOCABULARY. The kernels are written in the following types and operations alone. A type name
   begins with v (floats), n (32-bit integers), m (masks), i (indices), s (16-bit values) or d
   (doubles), and an operation with the letter of its operands. An instruction set defines about
   fifty of them. The others have defaults, which follow from the rest. */
/* clang-format off */
#define v_t        LGELU__FN(v_t)          /* v_lanes floats */
#define n_t        LGELU__FN(n_t)          /* v_lanes integers of 32 bits, which wrap around */
#define m_t        LGELU__FN(m_t)          /* a mask: true or false in each lane */
#define i_t        LGELU__FN(i_t)          /* indices into a table of eight floats */
#define s_t        LGELU__FN(s_t)          /* v_lanes 16-bit values */
#define b_t        LGELU__FN(b_t)          /* an unsigned integer that holds m_bits */
#define v_load     LGELU__FN(v_load)       /* (p) */
#define v_load_n   LGELU__FN(v_load_n)     /* (p, n) the first n, then 0; n may exceed v_lanes */
#define v_load_or  LGELU__FN(v_load_or)    /* (p, n, a) the first n, then those of a; n < v_lanes */
#define v_store    LGELU__FN(v_store)      /* (p, a) */
#define v_store_n  LGELU__FN(v_store_n)    /* (p, a, n) writes only the first n */
#define v_stream   LGELU__FN(v_stream)     /* (p, a) past the caches; p is aligned */
#define v_fence    LGELU__FN(v_fence)      /* () orders such stores before later ones */
#define v_set      LGELU__FN(v_set)        /* (float) in every lane */
#define v_add      LGELU__FN(v_add)        /* a + b */
#define v_sub      LGELU__FN(v_sub)        /* a - b */
#define v_mul      LGELU__FN(v_mul)        /* a·b */
#define v_div      LGELU__FN(v_div)        /* a/b */
#define v_sqrt     LGELU__FN(v_sqrt)       /* √a */
#define v_fma      LGELU__FN(v_fma)        /* a·b + c, rounded once */
#define v_fms      LGELU__FN(v_fms)        /* a·b - c */
#define v_fnma     LGELU__FN(v_fnma)       /* c - a·b */
#define v_abs      LGELU__FN(v_abs)        /* a without its sign; NaN also loses it */
#define v_max      LGELU__FN(v_max)        /* a > b ? a : b */
#define v_least    LGELU__FN(v_least)      /* the smaller of abs(a), abs(b); NaN: either */
#define v_most     LGELU__FN(v_most)       /* the larger of abs(a), abs(b); NaN: either */
#define v_sign     LGELU__FN(v_sign)       /* (a, b) a, which is not negative, with the sign of b */
#define v_times2   LGELU__FN(v_times2)     /* (a, n) a·2^k, where n is k shifted up by 23 */
#define v_lt       LGELU__FN(v_lt)         /* a < b */
#define v_lt_of    LGELU__FN(v_lt_of)      /* (k, a, b) k and a < b */
#define v_nge      LGELU__FN(v_nge)        /* not a >= b: a < b, or one is NaN */
#define v_select   LGELU__FN(v_select)     /* k ? a : b */
#define v_bits     LGELU__FN(v_bits)       /* reinterprets floats as integers */
#define v_float    LGELU__FN(v_float)      /* reinterprets integers as floats */
#define v_whole    LGELU__FN(v_whole)      /* (n) converts integers to floats */
#define v_cut      LGELU__FN(v_cut)        /* (a) converts floats to integers, towards 0 */
#define v_index    LGELU__FN(v_index)      /* (n) the index n mod 8 */
#define v_table    LGELU__FN(v_table)      /* (t, i) t[i] in each lane, t of eight floats */
/* Tables of sixteen columns hold a function of x, columns 8 to 15 for x < 0. With
   LGELU__HAS_TABLE16 all columns are looked up. The others look up the half for x < 0 at
   v_fold(x) = -abs(x): the function is odd about its value at 0, apart from a constant 1, which
   v_base subtracts where x > 0, and a sign, which v_turned then changes. Both ways give the same
   bits. */
#define v_fold     LGELU__FN(v_fold)       /* x, or -abs(x) */
#define t_t        LGELU__FN(t_t)          /* a row of a table that LGELU__ROWS declares */
#define r_t        LGELU__FN(r_t)          /* such a row, ready to be looked up */
#define v_row      LGELU__FN(v_row)        /* (t) makes it so */
#define v_signed   LGELU__FN(v_signed)     /* (r, i) r[i] in each lane */
#define v_base     LGELU__FN(v_base)       /* (c, x) c, or c - 1 */
#define v_turned   LGELU__FN(v_turned)     /* (dy, x) dy, or -dy */
/* v_turn(t, p, row) transposes v_lanes rows of four floats: t[q] is p[q], p[row + q], ...
   v_turn_deep(t, p, row) transposes v_lanes rows of v_deep floats.
   v_pack(p, a, k) writes the lanes k of a contiguously, then up to v_lanes floats of any value.
   v_unpack(p, t, m_bits(k)) writes the contiguous floats t to the lanes k of p, and nothing else.
   Both return the number of lanes in k. */
#define v_turn     LGELU__FN(v_turn)
#if v_deep > 4
#define v_turn_deep LGELU__FN(v_turn_deep)
#else
#define v_turn_deep v_turn
#endif
#define v_pack     LGELU__FN(v_pack)
#define v_unpack   LGELU__FN(v_unpack)
/* A sum has 16 virtual lanes, whatever v_lanes is: v_parts vectors. The vector at element i is
   added to vector i/v_lanes mod v_parts of the sum. v_total(a) returns the sum of these lanes in
   one order: it adds those that are 8 apart, then 4, 2 and 1. */
#define v_parts    (16 / v_lanes)
#define v_total    LGELU__FN(v_total)
#define m_and      LGELU__FN(m_and)        /* a & b */
#define m_or       LGELU__FN(m_or)         /* a | b */
#define m_less     LGELU__FN(m_less)       /* a & ~b */
#define m_any      LGELU__FN(m_any)        /* whether a lane is true */
#define m_all      LGELU__FN(m_all)        /* whether all lanes are true */
#define m_some     LGELU__FN(m_some)       /* whether a lane of a or of b is true */
#define m_bits     LGELU__FN(m_bits)       /* an integer whose bit j is lane j */
#define n_set      LGELU__FN(n_set)        /* (int32_t) in every lane */
#define n_add      LGELU__FN(n_add)
#define n_sub      LGELU__FN(n_sub)
#define n_and      LGELU__FN(n_and)
#define n_or       LGELU__FN(n_or)
#define n_xor      LGELU__FN(n_xor)
#define n_max      LGELU__FN(n_max)
#define n_min      LGELU__FN(n_min)
#define n_up       LGELU__FN(n_up)         /* (a, k) a << k */
#define n_down     LGELU__FN(n_down)       /* (a, k) a >> k, unsigned */
#define n_gt       LGELU__FN(n_gt)         /* a > b, signed */
#define n_select   LGELU__FN(n_select)     /* k ? a : b */
#define n_product  LGELU__FN(n_product)    /* (low, a, b) high and *low halves of a·b, unsigned */
#define s_load     LGELU__FN(s_load)       /* (p, n) as v_load_n */
#define s_store    LGELU__FN(s_store)      /* (p, a, n) as v_store_n */
#define s_wide     LGELU__FN(s_wide)       /* zero-extended to 32 bits */
#define s_narrow   LGELU__FN(s_narrow)     /* (n) the low halves */
#define v_from_f16 LGELU__FN(v_from_f16)   /* f16 to float */
#define v_to_f16   LGELU__FN(v_to_f16)     /* float to f16, ties to even */
/* Without LGELU__HAS_FMA, sums are computed in double. A vector of four lanes is then two d_t, the
   halves h = 0 and 1, and a vector of one lane is one. */
#define d_t        LGELU__FN(d_t)          /* one or two doubles */
#define d_half     LGELU__FN(d_half)       /* (v_t a, h) half h of a */
#define d_signed   LGELU__FN(d_signed)     /* (t, i, h) half h of a row of doubles */
#define d_fma      LGELU__FN(d_fma)        /* a·b + c; the product of floats is exact */
#define d_float    LGELU__FN(d_float)      /* rounded to float precision, ties in any direction */
#define v_round    LGELU__FN(v_round)      /* (s) both halves rounded to floats */
#define d_last     LGELU__FN(d_last)       /* (s) the last 32 bits of each double of both halves */
/* clang-format on */

/* The operations that SSE2, AVX2 and AVX-512 name alike. LGELU__MM adds the prefix of an intrinsic,
   LGELU__SI the prefix and the type of integer registers. */
#if LGELU__INTEL
#if v_lanes == 16
#define LGELU__MM(f) LGELU__PASTE(_mm512_, f)
#define LGELU__SI(f) LGELU__PASTE(LGELU__PASTE(_mm512_, f), si512)
#define LGELU__PS(a) _mm512_castsi512_ps(a)
typedef __m512 v_t;
typedef __m512i n_t, i_t;
typedef __mmask16 m_t;
typedef __m256i s_t;
typedef uint16_t b_t;
#elif v_lanes == 8
#define LGELU__MM(f) LGELU__PASTE(_mm256_, f)
#define LGELU__SI(f) LGELU__PASTE(LGELU__PASTE(_mm256_, f), si256)
#define LGELU__PS(a) _mm256_castsi256_ps(a)
typedef __m256 v_t, m_t;
typedef __m256i n_t, i_t;
typedef __m128i s_t;
typedef uint8_t b_t;
#else
#define LGELU__MM(f) LGELU__PASTE(_mm_, f)
#define LGELU__SI(f) LGELU__PASTE(LGELU__PASTE(_mm_, f), si128)
#define LGELU__PS(a) _mm_castsi128_ps(a)
typedef __m128 v_t, m_t;
typedef __m128i n_t, s_t;
typedef struct {
    int k[4];
} i_t;

typedef uint8_t b_t;
#endif

LGELU__WORD v_t v_load(const float *p) { return LGELU__MM(loadu_ps)(p); }
LGELU__WORD void v_store(float *p, v_t a) { LGELU__MM(storeu_ps)(p, a); }
LGELU__WORD void v_stream(float *p, v_t a) { LGELU__MM(stream_ps)(p, a); }
LGELU__WORD void v_fence(void) { _mm_sfence(); }
LGELU__WORD v_t v_set(float a) { return LGELU__MM(set1_ps)(a); }
LGELU__WORD v_t v_add(v_t a, v_t b) { return LGELU__MM(add_ps)(a, b); }
LGELU__WORD v_t v_sub(v_t a, v_t b) { return LGELU__MM(sub_ps)(a, b); }
LGELU__WORD v_t v_mul(v_t a, v_t b) { return LGELU__MM(mul_ps)(a, b); }
LGELU__WORD v_t v_div(v_t a, v_t b) { return LGELU__MM(div_ps)(a, b); }
LGELU__WORD v_t v_sqrt(v_t a) { return LGELU__MM(sqrt_ps)(a); }
LGELU__WORD v_t v_abs(v_t a) { return LGELU__MM(andnot_ps)(v_set(-0.0f), a); }
LGELU__WORD v_t v_max(v_t a, v_t b) { return LGELU__MM(max_ps)(a, b); }
LGELU__WORD n_t v_bits(v_t a) { return LGELU__SI(castps_)(a); }
LGELU__WORD v_t v_float(n_t a) { return LGELU__PS(a); }
LGELU__WORD v_t v_whole(n_t a) { return LGELU__MM(cvtepi32_ps)(a); }
LGELU__WORD n_t v_cut(v_t a) { return LGELU__MM(cvttps_epi32)(a); }
LGELU__WORD n_t n_set(int32_t a) { return LGELU__MM(set1_epi32)(a); }
LGELU__WORD n_t n_add(n_t a, n_t b) { return LGELU__MM(add_epi32)(a, b); }
LGELU__WORD n_t n_sub(n_t a, n_t b) { return LGELU__MM(sub_epi32)(a, b); }
LGELU__WORD n_t n_and(n_t a, n_t b) { return LGELU__SI(and_)(a, b); }
LGELU__WORD n_t n_or(n_t a, n_t b) { return LGELU__SI(or_)(a, b); }
LGELU__WORD n_t n_xor(n_t a, n_t b) { return LGELU__SI(xor_)(a, b); }
/* AVX2 and AVX-512, which are the sets of Intel with an fma. */
#if LGELU__HAS_FMA
LGELU__WORD v_t v_fma(v_t a, v_t b, v_t c) { return LGELU__MM(fmadd_ps)(a, b, c); }
LGELU__WORD v_t v_fms(v_t a, v_t b, v_t c) { return LGELU__MM(fmsub_ps)(a, b, c); }
LGELU__WORD v_t v_fnma(v_t a, v_t b, v_t c) { return LGELU__MM(fnmadd_ps)(a, b, c); }
LGELU__WORD i_t v_index(n_t a) { return a; }
LGELU__WORD n_t n_max(n_t a, n_t b) { return LGELU__MM(max_epi32)(a, b); }
LGELU__WORD n_t n_min(n_t a, n_t b) { return LGELU__MM(min_epi32)(a, b); }
LGELU__WORD n_t s_wide(s_t a) { return LGELU__MM(cvtepu16_epi32)(a); }
LGELU__WORD v_t v_from_f16(s_t a) { return LGELU__MM(cvtph_ps)(a); }
#endif
/* SSE2 and AVX2, where a mask is a vector. */
#if !LGELU__HAS_MASKS
LGELU__WORD m_t m_and(m_t a, m_t b) { return LGELU__MM(and_ps)(a, b); }
LGELU__WORD m_t m_or(m_t a, m_t b) { return LGELU__MM(or_ps)(a, b); }
LGELU__WORD m_t m_less(m_t a, m_t b) { return LGELU__MM(andnot_ps)(b, a); }
LGELU__WORD unsigned m_bits(m_t a) { return (unsigned)LGELU__MM(movemask_ps)(a); }
LGELU__WORD n_t n_up(n_t a, int k) { return LGELU__MM(slli_epi32)(a, k); }
LGELU__WORD n_t n_down(n_t a, int k) { return LGELU__MM(srli_epi32)(a, k); }
LGELU__WORD m_t n_gt(n_t a, n_t b) { return v_float(LGELU__MM(cmpgt_epi32)(a, b)); }

LGELU__WORD v_t v_base(v_t c, v_t x)
{
    return v_sub(c, LGELU__MM(andnot_ps)(v_float(LGELU__MM(srai_epi32)(v_bits(x), 31)), v_set(1)));
}

LGELU__WORD v_t v_turned(v_t dy, v_t x)
{
    return LGELU__MM(xor_ps)(dy, LGELU__MM(andnot_ps)(x, v_set(-0.0f)));
}
#endif
#endif

/* The operations of each instruction set alone. */
#if LGELU__PASS == LGELU__PASS_AVX512
/* The mask of the first n lanes. */
LGELU__WORD m_t LGELU__FN(first)(size_t n) { return (m_t)((1u << n) - 1u); }

LGELU__WORD v_t v_load_n(const float *p, size_t n)
{
    return n < 16 ? _mm512_maskz_loadu_ps(LGELU__FN(first)(n), p) : v_load(p);
}

LGELU__WORD v_t v_load_or(const float *p, size_t n, v_t a)
{
    return _mm512_mask_loadu_ps(a, LGELU__FN(first)(n), p);
}

LGELU__WORD void v_store_n(float *p, v_t a, size_t n)
{
    if (n < 16)
        _mm512_mask_storeu_ps(p, LGELU__FN(first)(n), a);
    else
        v_store(p, a);
}

LGELU__WORD m_t v_lt(v_t a, v_t b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }

LGELU__WORD m_t v_lt_of(m_t k, v_t a, v_t b)
{
    return _mm512_mask_cmp_ps_mask(k, a, b, _CMP_LT_OQ);
}

LGELU__WORD m_t v_nge(v_t a, v_t b) { return _mm512_cmp_ps_mask(a, b, _CMP_NGE_UQ); }
LGELU__WORD v_t v_select(m_t k, v_t a, v_t b) { return _mm512_mask_blend_ps(k, b, a); }
/* The macro by which gcc 12 defines this intrinsic converts a sign. */
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif
LGELU__WORD v_t v_least(v_t a, v_t b) { return _mm512_range_ps(a, b, 10); }
LGELU__WORD v_t v_most(v_t a, v_t b) { return _mm512_range_ps(a, b, 11); }
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif
LGELU__WORD v_t v_table(const float *t, i_t i)
{
    return _mm512_permutexvar_ps(i, _mm512_broadcast_f32x8(_mm256_loadu_ps(t)));
}

LGELU__WORD v_t v_fold(v_t x) { return x; }
typedef v_t r_t;
LGELU__WORD v_t v_signed(r_t r, i_t i) { return _mm512_permutexvar_ps(i, r); }

LGELU__WORD v_t v_base(v_t c, v_t x)
{
    (void)x;
    return c;
}

LGELU__WORD v_t v_turned(v_t dy, v_t x)
{
    (void)x;
    return dy;
}

/* Four floats of each of the rows 0, 4, 8 and 12. */
LGELU__WORD v_t LGELU__FN(row)(const float *p, size_t row)
{
    v_t x =
        _mm512_insertf32x4(_mm512_castps128_ps512(_mm_loadu_ps(p)), _mm_loadu_ps(p + 4 * row), 1);
    return _mm512_insertf32x4(_mm512_insertf32x4(x, _mm_loadu_ps(p + 8 * row), 2),
                              _mm_loadu_ps(p + 12 * row), 3);
}

LGELU__WORD void v_turn_deep(v_t t[16], const float *p, size_t row)
{
    v_t x[16], a, b, c, d;
    int q, r;
    LGELU__UNROLL
    for (q = 0; q < 16; q += 4) {
        /* Hidden, or gcc keeps the addresses of all rows in memory. */
        LGELU__HIDE("+r", p);
        LGELU__UNROLL
        for (r = 0; r < 4; r++)
            t[r] = v_load(p + (size_t)r * row);
        a = _mm512_unpacklo_ps(t[0], t[1]);
        b = _mm512_unpackhi_ps(t[0], t[1]);
        c = _mm512_unpacklo_ps(t[2], t[3]);
        d = _mm512_unpackhi_ps(t[2], t[3]);
        x[q] = _mm512_shuffle_ps(a, c, 0x44);
        x[q + 1] = _mm512_shuffle_ps(a, c, 0xEE);
        x[q + 2] = _mm512_shuffle_ps(b, d, 0x44);
        x[q + 3] = _mm512_shuffle_ps(b, d, 0xEE);
        p += 4 * row;
    }
    /* Of four rows, x[q] now has the columns q, q + 4, q + 8 and q + 12. */
    LGELU__UNROLL
    for (q = 0; q < 4; q++) {
        a = _mm512_shuffle_f32x4(x[q], x[q + 4], 0x44);
        b = _mm512_shuffle_f32x4(x[q], x[q + 4], 0xEE);
        c = _mm512_shuffle_f32x4(x[q + 8], x[q + 12], 0x44);
        d = _mm512_shuffle_f32x4(x[q + 8], x[q + 12], 0xEE);
        t[q] = _mm512_shuffle_f32x4(a, c, 0x88);
        t[q + 4] = _mm512_shuffle_f32x4(a, c, 0xDD);
        t[q + 8] = _mm512_shuffle_f32x4(b, d, 0x88);
        t[q + 12] = _mm512_shuffle_f32x4(b, d, 0xDD);
    }
}

LGELU__WORD m_t m_and(m_t a, m_t b) { return (m_t)(a & b); }
LGELU__WORD m_t m_or(m_t a, m_t b) { return (m_t)(a | b); }
LGELU__WORD m_t m_less(m_t a, m_t b) { return (m_t)(a & ~b); }
LGELU__WORD unsigned m_bits(m_t a) { return a; }
LGELU__WORD int m_some(m_t a, m_t b) { return !_kortestz_mask16_u8(a, b); }
LGELU__WORD n_t n_up(n_t a, int k) { return _mm512_slli_epi32(a, (unsigned)k); }
LGELU__WORD n_t n_down(n_t a, int k) { return _mm512_srli_epi32(a, (unsigned)k); }
LGELU__WORD m_t n_gt(n_t a, n_t b) { return _mm512_cmpgt_epi32_mask(a, b); }
/* The even lanes of a and the odd lanes of b. */
LGELU__WORD n_t LGELU__FN(odd)(n_t a, n_t b) { return _mm512_mask_blend_epi32(0xAAAA, a, b); }

LGELU__WORD size_t v_pack(float *p, v_t a, m_t k)
{
    v_store(p, _mm512_maskz_compress_ps(k, a));
    return (size_t)_mm_popcnt_u32(k);
}

LGELU__WORD size_t v_unpack(float *p, const float *t, unsigned k)
{
    _mm512_mask_storeu_ps(p, (m_t)k, _mm512_maskz_expandloadu_ps((m_t)k, t));
    return (size_t)_mm_popcnt_u32(k);
}

LGELU__WORD s_t s_load(const uint16_t *p, size_t n)
{
    return n < 16 ? _mm256_maskz_loadu_epi16(LGELU__FN(first)(n), p)
                  : _mm256_loadu_si256((const __m256i *)p);
}

LGELU__WORD void s_store(uint16_t *p, s_t a, size_t n)
{
    if (n < 16)
        _mm256_mask_storeu_epi16(p, LGELU__FN(first)(n), a);
    else
        _mm256_storeu_si256((__m256i *)p, a);
}

LGELU__WORD s_t s_narrow(n_t a) { return _mm512_cvtepi32_epi16(a); }

LGELU__WORD s_t v_to_f16(v_t a)
{
    return _mm512_maskz_cvtps_ph(0xFFFF, a, _MM_FROUND_TO_NEAREST_INT);
}
#elif LGELU__PASS == LGELU__PASS_AVX2
/* The mask of the first n lanes. */
LGELU__WORD n_t LGELU__FN(first)(size_t n)
{
    return _mm256_cmpgt_epi32(n_set((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

LGELU__WORD v_t v_load_n(const float *p, size_t n)
{
    return n < 8 ? _mm256_maskload_ps(p, LGELU__FN(first)(n)) : v_load(p);
}

LGELU__WORD v_t v_load_or(const float *p, size_t n, v_t a)
{
    const n_t k = LGELU__FN(first)(n);
    return _mm256_blendv_ps(a, _mm256_maskload_ps(p, k), v_float(k));
}

LGELU__WORD void v_store_n(float *p, v_t a, size_t n)
{
    if (n < 8)
        _mm256_maskstore_ps(p, LGELU__FN(first)(n), a);
    else
        v_store(p, a);
}

LGELU__WORD m_t v_lt(v_t a, v_t b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
LGELU__WORD m_t v_nge(v_t a, v_t b) { return _mm256_cmp_ps(a, b, _CMP_NGE_UQ); }
LGELU__WORD v_t v_select(m_t k, v_t a, v_t b) { return _mm256_blendv_ps(b, a, k); }
LGELU__WORD v_t v_table(const float *t, i_t i) { return _mm256_permutevar8x32_ps(v_load(t), i); }

/* Four floats of each of the rows 0 and 4. */
LGELU__WORD v_t LGELU__FN(row)(const float *p, size_t row)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + 4 * row),
                                1);
}

/* The even lanes of a and the odd lanes of b. */
LGELU__WORD n_t LGELU__FN(odd)(n_t a, n_t b) { return _mm256_blend_epi32(a, b, 0xAA); }

LGELU__WORD size_t v_pack(float *p, v_t a, m_t k)
{
    const n_t lanes = n_set((int32_t)lgelu__lanes[m_bits(k)]),
              shift = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    v_store(p, _mm256_permutevar8x32_ps(a, _mm256_srlv_epi32(lanes, shift)));
    return (size_t)_mm_popcnt_u32(m_bits(k));
}

/* Four floats of t in the order of their places. */
LGELU__WORD __m128 LGELU__FN(spread)(const float *t, unsigned k)
{
    return _mm_permutevar_ps(_mm_loadu_ps(t), _mm_loadu_si128((const __m128i *)lgelu__places[k]));
}

LGELU__WORD size_t v_unpack(float *p, const float *t, unsigned k)
{
    const n_t bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const unsigned low = k & 15;
    const v_t a = _mm256_castps128_ps256(LGELU__FN(spread)(t, low));
    _mm256_maskstore_ps(
        p, _mm256_cmpeq_epi32(n_and(n_set((int)k), bit), bit),
        _mm256_insertf128_ps(a, LGELU__FN(spread)(t + _mm_popcnt_u32(low), k >> 4), 1));
    return (size_t)_mm_popcnt_u32(k);
}

LGELU__WORD s_t LGELU__FN(s_read)(const uint16_t *p) { return _mm_loadu_si128((const s_t *)p); }
LGELU__WORD void LGELU__FN(s_write)(uint16_t *p, s_t a) { _mm_storeu_si128((s_t *)p, a); }

LGELU__WORD s_t s_narrow(n_t a)
{
    a = n_and(a, n_set(0xFFFF));
    return _mm_packus_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
}

LGELU__WORD s_t v_to_f16(v_t a) { return _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT); }
#elif LGELU__PASS == LGELU__PASS_SSE2
typedef __m128d d_t;

LGELU__WORD d_t d_half(v_t a, int h) { return _mm_cvtps_pd(h ? _mm_movehl_ps(a, a) : a); }
LGELU__WORD d_t d_fma(d_t a, d_t b, d_t c) { return _mm_add_pd(_mm_mul_pd(a, b), c); }

LGELU__WORD d_t d_float(d_t a)
{
    const __m128i half = _mm_set_epi32(0, 1 << 28, 0, 1 << 28),
                  mask = _mm_set_epi32(-1, -(1 << 29), -1, -(1 << 29));
    return _mm_castsi128_pd(_mm_and_si128(_mm_add_epi64(_mm_castpd_si128(a), half), mask));
}

LGELU__WORD v_t v_round(const d_t *s)
{
    return _mm_movelh_ps(_mm_cvtpd_ps(s[0]), _mm_cvtpd_ps(s[1]));
}

LGELU__WORD n_t d_last(const d_t *s)
{
    return _mm_castps_si128(_mm_shuffle_ps(_mm_castpd_ps(s[0]), _mm_castpd_ps(s[1]), 0x88));
}

LGELU__WORD m_t v_lt(v_t a, v_t b) { return _mm_cmplt_ps(a, b); }
LGELU__WORD m_t v_nge(v_t a, v_t b) { return _mm_cmpnge_ps(a, b); }

LGELU__WORD v_t v_least(v_t a, v_t b) { return _mm_min_ps(v_abs(a), v_abs(b)); }

/* The instruction returns b where a is NaN, so that such lanes are set. */
LGELU__WORD v_t v_most(v_t a, v_t b)
{
    return _mm_or_ps(_mm_max_ps(v_abs(a), v_abs(b)), _mm_cmpunord_ps(a, b));
}

LGELU__WORD v_t v_select(m_t k, v_t a, v_t b)
{
    return _mm_or_ps(_mm_and_ps(k, a), _mm_andnot_ps(k, b));
}

LGELU__WORD i_t v_index(n_t a)
{
    i_t i;
    a = n_and(a, n_set(7));
    i.k[0] = _mm_extract_epi16(a, 0);
    i.k[1] = _mm_extract_epi16(a, 2);
    i.k[2] = _mm_extract_epi16(a, 4);
    i.k[3] = _mm_extract_epi16(a, 6);
    return i;
}

LGELU__WORD v_t v_table(const float *t, i_t i)
{
    return _mm_setr_ps(t[i.k[0]], t[i.k[1]], t[i.k[2]], t[i.k[3]]);
}

LGELU__WORD d_t d_signed(const double *t, i_t i, int h)
{
    return _mm_loadh_pd(_mm_load_sd(t + i.k[2 * h]), t + i.k[2 * h + 1]);
}

/* Four floats of row 0. */
LGELU__WORD v_t LGELU__FN(row)(const float *p, size_t row)
{
    (void)row;
    return v_load(p);
}

LGELU__WORD n_t n_max(n_t a, n_t b) { return v_bits(v_select(n_gt(a, b), v_float(a), v_float(b))); }
LGELU__WORD n_t n_min(n_t a, n_t b) { return v_bits(v_select(n_gt(a, b), v_float(b), v_float(a))); }

/* The even lanes of a and the odd lanes of b. */
LGELU__WORD n_t LGELU__FN(odd)(n_t a, n_t b)
{
    const v_t k = v_float(_mm_set_epi32(-1, 0, -1, 0));
    return v_bits(v_select(k, v_float(b), v_float(a)));
}

LGELU__WORD s_t LGELU__FN(s_read)(const uint16_t *p) { return _mm_loadl_epi64((const s_t *)p); }
LGELU__WORD void LGELU__FN(s_write)(uint16_t *p, s_t a) { _mm_storel_epi64((s_t *)p, a); }
LGELU__WORD n_t s_wide(s_t a) { return _mm_unpacklo_epi16(a, _mm_setzero_si128()); }

LGELU__WORD s_t s_narrow(n_t a)
{
    return _mm_shuffle_epi32(_mm_shufflehi_epi16(_mm_shufflelo_epi16(a, 0x08), 0x08), 0x08);
}
#elif LGELU__PASS == LGELU__PASS_SIMD128
typedef v128_t v_t, n_t, m_t, i_t, s_t;
typedef uint8_t b_t;

LGELU__WORD v_t v_load(const float *p) { return wasm_v128_load(p); }
LGELU__WORD void v_store(float *p, v_t a) { wasm_v128_store(p, a); }
LGELU__WORD v_t v_set(float a) { return wasm_f32x4_splat(a); }
LGELU__WORD v_t v_add(v_t a, v_t b) { return wasm_f32x4_add(a, b); }
LGELU__WORD v_t v_sub(v_t a, v_t b) { return wasm_f32x4_sub(a, b); }
LGELU__WORD v_t v_mul(v_t a, v_t b) { return wasm_f32x4_mul(a, b); }
LGELU__WORD v_t v_div(v_t a, v_t b) { return wasm_f32x4_div(a, b); }
LGELU__WORD v_t v_sqrt(v_t a) { return wasm_f32x4_sqrt(a); }
typedef v128_t d_t;

LGELU__WORD d_t d_half(v_t a, int h)
{
    return wasm_f64x2_promote_low_f32x4(h ? wasm_i64x2_shuffle(a, a, 1, 1) : a);
}

LGELU__WORD d_t d_fma(d_t a, d_t b, d_t c) { return wasm_f64x2_add(wasm_f64x2_mul(a, b), c); }
LGELU__WORD n_t d_last(const d_t *s) { return wasm_i32x4_shuffle(s[0], s[1], 0, 2, 4, 6); }

LGELU__WORD v_t v_round(const d_t *s)
{
    return wasm_i64x2_shuffle(wasm_f32x4_demote_f64x2_zero(s[0]),
                              wasm_f32x4_demote_f64x2_zero(s[1]), 0, 2);
}

LGELU__WORD v_t v_max(v_t a, v_t b) { return wasm_f32x4_pmax(b, a); }
LGELU__WORD m_t v_lt(v_t a, v_t b) { return wasm_f32x4_lt(a, b); }
LGELU__WORD m_t v_nge(v_t a, v_t b) { return wasm_v128_not(wasm_f32x4_ge(a, b)); }
LGELU__WORD v_t v_select(m_t k, v_t a, v_t b) { return wasm_v128_bitselect(a, b, k); }
LGELU__WORD n_t v_bits(v_t a) { return a; }
LGELU__WORD v_t v_float(n_t a) { return a; }
LGELU__WORD v_t v_whole(n_t a) { return wasm_f32x4_convert_i32x4(a); }
LGELU__WORD n_t v_cut(v_t a) { return wasm_i32x4_trunc_sat_f32x4(a); }
LGELU__WORD n_t n_set(int32_t a) { return wasm_i32x4_splat(a); }
LGELU__WORD n_t n_add(n_t a, n_t b) { return wasm_i32x4_add(a, b); }
LGELU__WORD n_t n_sub(n_t a, n_t b) { return wasm_i32x4_sub(a, b); }
LGELU__WORD n_t n_and(n_t a, n_t b) { return wasm_v128_and(a, b); }
LGELU__WORD n_t n_or(n_t a, n_t b) { return wasm_v128_or(a, b); }
LGELU__WORD n_t n_xor(n_t a, n_t b) { return wasm_v128_xor(a, b); }
LGELU__WORD n_t n_max(n_t a, n_t b) { return wasm_i32x4_max(a, b); }
LGELU__WORD n_t n_min(n_t a, n_t b) { return wasm_i32x4_min(a, b); }
LGELU__WORD n_t n_up(n_t a, int k) { return wasm_i32x4_shl(a, (uint32_t)k); }
LGELU__WORD n_t n_down(n_t a, int k) { return wasm_u32x4_shr(a, (uint32_t)k); }
LGELU__WORD m_t n_gt(n_t a, n_t b) { return wasm_i32x4_gt(a, b); }
LGELU__WORD m_t m_and(m_t a, m_t b) { return wasm_v128_and(a, b); }
LGELU__WORD m_t m_or(m_t a, m_t b) { return wasm_v128_or(a, b); }
LGELU__WORD m_t m_less(m_t a, m_t b) { return wasm_v128_andnot(a, b); }
LGELU__WORD unsigned m_bits(m_t a) { return (unsigned)wasm_i32x4_bitmask(a); }
LGELU__WORD int m_any(m_t a) { return wasm_v128_any_true(a); }

/* The index of a float becomes the indices of its four bytes. */
LGELU__WORD i_t v_index(n_t a)
{
    return wasm_i32x4_add(wasm_i32x4_mul(wasm_v128_and(a, n_set(7)), n_set(0x04040404)),
                          n_set(0x03020100));
}

LGELU__WORD v_t v_table(const float *t, i_t i)
{
    /* A swizzle gives 0 where the index is out of range, so the halves of the table are combined by
       an or. */
    const v128_t other = wasm_i8x16_swizzle(v_load(t + 4), wasm_i8x16_sub(i, wasm_i8x16_splat(16)));
    return wasm_v128_or(wasm_i8x16_swizzle(v_load(t), i), other);
}

LGELU__WORD v_t v_base(v_t c, v_t x)
{
    return v_sub(c, wasm_v128_andnot(v_set(1), wasm_i32x4_shr(x, 31)));
}

LGELU__WORD v_t v_turned(v_t dy, v_t x)
{
    return wasm_v128_xor(dy, wasm_v128_andnot(n_set(INT32_MIN), x));
}

LGELU__WORD void v_turn(v_t t[4], const float *p, size_t row)
{
    const v_t x = v_load(p), y = v_load(p + row), z = v_load(p + 2 * row), w = v_load(p + 3 * row);
    const v_t a = wasm_i32x4_shuffle(x, y, 0, 4, 1, 5), b = wasm_i32x4_shuffle(x, y, 2, 6, 3, 7),
              c = wasm_i32x4_shuffle(z, w, 0, 4, 1, 5), d = wasm_i32x4_shuffle(z, w, 2, 6, 3, 7);
    t[0] = wasm_i64x2_shuffle(a, c, 0, 2);
    t[1] = wasm_i64x2_shuffle(a, c, 1, 3);
    t[2] = wasm_i64x2_shuffle(b, d, 0, 2);
    t[3] = wasm_i64x2_shuffle(b, d, 1, 3);
}

LGELU__WORD n_t n_product(n_t *low, n_t a, n_t b)
{
    const v128_t p = wasm_u64x2_extmul_low_u32x4(a, b), q = wasm_u64x2_extmul_high_u32x4(a, b);
    *low = wasm_i32x4_shuffle(p, q, 0, 2, 4, 6);
    return wasm_i32x4_shuffle(p, q, 1, 3, 5, 7);
}

LGELU__WORD s_t LGELU__FN(s_read)(const uint16_t *p) { return wasm_v128_load64_zero(p); }
LGELU__WORD void LGELU__FN(s_write)(uint16_t *p, s_t a) { wasm_v128_store64_lane(p, a, 0); }
LGELU__WORD n_t s_wide(s_t a) { return wasm_u32x4_extend_low_u16x8(a); }
LGELU__WORD s_t s_narrow(n_t a) { return wasm_i16x8_shuffle(a, a, 0, 2, 4, 6, 0, 2, 4, 6); }
#elif LGELU__PASS == LGELU__PASS_NEON
typedef float32x4_t v_t;
typedef int32x4_t n_t;
typedef uint32x4_t m_t;
typedef uint8x16_t i_t;
typedef uint16x4_t s_t;
typedef uint8_t b_t;

LGELU__WORD v_t v_load(const float *p) { return vld1q_f32(p); }
LGELU__WORD void v_store(float *p, v_t a) { vst1q_f32(p, a); }
LGELU__WORD v_t v_set(float a) { return vdupq_n_f32(a); }
LGELU__WORD v_t v_add(v_t a, v_t b) { return vaddq_f32(a, b); }
LGELU__WORD v_t v_sub(v_t a, v_t b) { return vsubq_f32(a, b); }
LGELU__WORD v_t v_mul(v_t a, v_t b) { return vmulq_f32(a, b); }
LGELU__WORD v_t v_div(v_t a, v_t b) { return vdivq_f32(a, b); }
LGELU__WORD v_t v_sqrt(v_t a) { return vsqrtq_f32(a); }
LGELU__WORD v_t v_fma(v_t a, v_t b, v_t c) { return vfmaq_f32(c, a, b); }
LGELU__WORD v_t v_fms(v_t a, v_t b, v_t c) { return vnegq_f32(vfmsq_f32(c, a, b)); }
LGELU__WORD v_t v_fnma(v_t a, v_t b, v_t c) { return vfmsq_f32(c, a, b); }

LGELU__WORD v_t v_max(v_t a, v_t b)
{
    m_t k = vcgtq_f32(a, b);
    LGELU__OPAQUE("+w", k);
    return vbslq_f32(k, a, b);
}

LGELU__WORD m_t v_lt(v_t a, v_t b) { return vcltq_f32(a, b); }
LGELU__WORD m_t v_nge(v_t a, v_t b) { return vmvnq_u32(vcgeq_f32(a, b)); }
LGELU__WORD v_t v_select(m_t k, v_t a, v_t b) { return vbslq_f32(k, a, b); }
LGELU__WORD n_t v_bits(v_t a) { return vreinterpretq_s32_f32(a); }
LGELU__WORD v_t v_float(n_t a) { return vreinterpretq_f32_s32(a); }
LGELU__WORD v_t v_whole(n_t a) { return vcvtq_f32_s32(a); }
LGELU__WORD n_t v_cut(v_t a) { return vcvtq_s32_f32(a); }
LGELU__WORD n_t n_set(int32_t a) { return vdupq_n_s32(a); }
LGELU__WORD n_t n_add(n_t a, n_t b) { return vaddq_s32(a, b); }
LGELU__WORD n_t n_sub(n_t a, n_t b) { return vsubq_s32(a, b); }
LGELU__WORD n_t n_and(n_t a, n_t b) { return vandq_s32(a, b); }
LGELU__WORD n_t n_or(n_t a, n_t b) { return vorrq_s32(a, b); }
LGELU__WORD n_t n_xor(n_t a, n_t b) { return veorq_s32(a, b); }
LGELU__WORD n_t n_max(n_t a, n_t b) { return vmaxq_s32(a, b); }
LGELU__WORD n_t n_min(n_t a, n_t b) { return vminq_s32(a, b); }
LGELU__WORD n_t n_up(n_t a, int k) { return vshlq_s32(a, vdupq_n_s32(k)); }

LGELU__WORD n_t n_down(n_t a, int k)
{
    return vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(a), vdupq_n_s32(-k)));
}

LGELU__WORD m_t n_gt(n_t a, n_t b) { return vcgtq_s32(a, b); }
LGELU__WORD m_t m_and(m_t a, m_t b) { return vandq_u32(a, b); }
LGELU__WORD m_t m_or(m_t a, m_t b) { return vorrq_u32(a, b); }
LGELU__WORD m_t m_less(m_t a, m_t b) { return vbicq_u32(a, b); }

LGELU__WORD unsigned m_bits(m_t a)
{
    const m_t bit = { 1, 2, 4, 8 };
    return vaddvq_u32(vandq_u32(a, bit));
}

LGELU__WORD int m_any(m_t a) { return vmaxvq_u32(a) != 0; }

/* The index of a float becomes the indices of its four bytes. v_table reads the table by one load,
   since gcc 12 would move two loads through the stack. */
LGELU__WORD i_t v_index(n_t a)
{
    n_t b = vaddq_s32(vmulq_s32(vandq_s32(a, vdupq_n_s32(7)), vdupq_n_s32(0x04040404)),
                      vdupq_n_s32(0x03020100));
    return vreinterpretq_u8_s32(b);
}

LGELU__WORD v_t v_table(const float *t, i_t i)
{
    return vreinterpretq_f32_u8(vqtbl2q_u8(vld1q_u8_x2((const uint8_t *)t), i));
}

LGELU__WORD v_t v_base(v_t c, v_t x)
{
    return vsubq_f32(c, v_float(vbicq_s32(v_bits(v_set(1)), vshrq_n_s32(v_bits(x), 31))));
}

LGELU__WORD v_t v_turned(v_t dy, v_t x)
{
    return v_float(veorq_s32(v_bits(dy), vbicq_s32(n_set(INT32_MIN), v_bits(x))));
}

LGELU__WORD void v_turn(v_t t[4], const float *p, size_t row)
{
    float32x4x2_t a = vtrnq_f32(vld1q_f32(p), vld1q_f32(p + row)),
                  b = vtrnq_f32(vld1q_f32(p + 2 * row), vld1q_f32(p + 3 * row));
    t[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
    t[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
    t[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
    t[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}

LGELU__WORD n_t n_product(n_t *low, n_t a, n_t b)
{
    uint32x4_t u = vreinterpretq_u32_s32(a), v = vreinterpretq_u32_s32(b);
    uint32x4_t p = vreinterpretq_u32_u64(vmull_u32(vget_low_u32(u), vget_low_u32(v))),
               q = vreinterpretq_u32_u64(vmull_high_u32(u, v));
    *low = vreinterpretq_s32_u32(vuzp1q_u32(p, q));
    return vreinterpretq_s32_u32(vuzp2q_u32(p, q));
}

LGELU__WORD s_t LGELU__FN(s_read)(const uint16_t *p) { return vld1_u16(p); }
LGELU__WORD void LGELU__FN(s_write)(uint16_t *p, s_t a) { vst1_u16(p, a); }
LGELU__WORD n_t s_wide(s_t a) { return vreinterpretq_s32_u32(vmovl_u16(a)); }
LGELU__WORD s_t s_narrow(n_t a) { return vmovn_u32(vreinterpretq_u32_s32(a)); }
LGELU__WORD v_t v_from_f16(s_t a) { return vcvt_f32_f16(vreinterpret_f16_u16(a)); }
LGELU__WORD s_t v_to_f16(v_t a) { return vreinterpret_u16_f16(vcvt_f16_f32(a)); }
#else
typedef float v_t;
typedef int32_t n_t, i_t;
typedef int m_t;
typedef uint16_t s_t;
typedef uint8_t b_t;

LGELU__WORD v_t v_load(const float *p) { return *p; }
LGELU__WORD v_t v_load_n(const float *p, size_t n) { return n ? *p : 0; }
LGELU__WORD v_t v_load_or(const float *p, size_t n, v_t a) { return n ? *p : a; }
LGELU__WORD void v_store(float *p, v_t a) { *p = a; }

LGELU__WORD void v_store_n(float *p, v_t a, size_t n)
{
    if (n)
        *p = a;
}

LGELU__WORD v_t v_set(float a) { return a; }
LGELU__WORD v_t v_add(v_t a, v_t b) { return a + b; }
LGELU__WORD v_t v_sub(v_t a, v_t b) { return a - b; }
LGELU__WORD v_t v_mul(v_t a, v_t b) { return a * b; }
LGELU__WORD v_t v_div(v_t a, v_t b) { return a / b; }
LGELU__WORD v_t v_sqrt(v_t a) { return sqrtf(a); }
LGELU__WORD v_t v_fma(v_t a, v_t b, v_t c) { return lgelu__fmaf(a, b, c); }
LGELU__WORD v_t v_fms(v_t a, v_t b, v_t c) { return lgelu__fmaf(a, b, -c); }
LGELU__WORD v_t v_fnma(v_t a, v_t b, v_t c) { return lgelu__fmaf(-a, b, c); }
typedef double d_t;

LGELU__WORD d_t d_half(v_t a, int h)
{
    (void)h;
    return (double)a;
}

LGELU__WORD d_t d_signed(const double *t, i_t i, int h)
{
    (void)h;
    return t[i];
}

LGELU__WORD d_t d_fma(d_t a, d_t b, d_t c) { return a * b + c; }
LGELU__WORD d_t d_float(d_t a) { return (double)(float)a; }
LGELU__WORD v_t v_round(const d_t *s) { return (float)*s; }

LGELU__WORD n_t d_last(const d_t *s)
{
    uint64_t i;
    memcpy(&i, s, 8);
    return (n_t)(uint32_t)i;
}

LGELU__WORD v_t v_max(v_t a, v_t b)
{
    int k = a > b;
    LGELU__OPAQUE("+r", k);
    return k ? a : b;
}

LGELU__WORD m_t v_lt(v_t a, v_t b) { return a < b; }
LGELU__WORD m_t v_nge(v_t a, v_t b) { return !(a >= b); }
LGELU__WORD v_t v_select(m_t k, v_t a, v_t b) { return k ? a : b; }
LGELU__WORD n_t v_bits(v_t a) { return (n_t)lgelu__bits(a); }
LGELU__WORD v_t v_float(n_t a) { return lgelu__float((uint32_t)a); }
LGELU__WORD v_t v_whole(n_t a) { return (float)a; }
/* Out of range the result is that of x86. */
LGELU__WORD n_t v_cut(v_t a) { return fabsf(a) < 2147483648.0f ? (n_t)a : INT32_MIN; }
LGELU__WORD n_t n_set(int32_t a) { return a; }
LGELU__WORD n_t n_add(n_t a, n_t b) { return (n_t)((uint32_t)a + (uint32_t)b); }
LGELU__WORD n_t n_sub(n_t a, n_t b) { return (n_t)((uint32_t)a - (uint32_t)b); }
LGELU__WORD n_t n_and(n_t a, n_t b) { return a & b; }
LGELU__WORD n_t n_or(n_t a, n_t b) { return a | b; }
LGELU__WORD n_t n_xor(n_t a, n_t b) { return a ^ b; }
LGELU__WORD n_t n_max(n_t a, n_t b) { return a > b ? a : b; }
LGELU__WORD n_t n_min(n_t a, n_t b) { return a < b ? a : b; }
LGELU__WORD n_t n_up(n_t a, int k) { return (n_t)((uint32_t)a << k); }
LGELU__WORD n_t n_down(n_t a, int k) { return (n_t)((uint32_t)a >> k); }
LGELU__WORD m_t n_gt(n_t a, n_t b) { return a > b; }
LGELU__WORD m_t m_and(m_t a, m_t b) { return a & b; }
LGELU__WORD m_t m_or(m_t a, m_t b) { return a | b; }
LGELU__WORD m_t m_less(m_t a, m_t b) { return a && !b; }
LGELU__WORD unsigned m_bits(m_t a) { return (unsigned)a; }
LGELU__WORD i_t v_index(n_t a) { return a & 7; }
LGELU__WORD v_t v_table(const float *t, i_t i) { return t[i]; }
LGELU__WORD v_t v_base(v_t c, v_t x) { return lgelu__bits(x) >> 31 ? c : c - 1; }

LGELU__WORD v_t v_turned(v_t dy, v_t x)
{
    return lgelu__float(lgelu__bits(dy) ^ (~lgelu__bits(x) & 0x80000000u));
}

LGELU__WORD void v_turn(v_t t[4], const float *p, size_t row)
{
    (void)row;
    memcpy(t, p, 4 * sizeof *t);
}

LGELU__WORD n_t n_product(n_t *low, n_t a, n_t b)
{
    uint64_t p = (uint64_t)(uint32_t)a * (uint32_t)b;
    *low = (n_t)(uint32_t)p;
    return (n_t)(uint32_t)(p >> 32);
}

LGELU__WORD s_t LGELU__FN(s_read)(const uint16_t *p) { return *p; }
LGELU__WORD void LGELU__FN(s_write)(uint16_t *p, s_t a) { *p = a; }
LGELU__WORD n_t s_wide(s_t a) { return a; }
LGELU__WORD s_t s_narrow(n_t a) { return (s_t)((uint32_t)a & 0xFFFFu); }
LGELU__WORD v_t v_from_f16(s_t h) { return lgelu__from_f16(h); }
LGELU__WORD s_t v_to_f16(v_t a) { return lgelu__to_f16(a); }
#endif

/* DEFAULTS. The operations that follow from others. */
#if !LGELU__HAS_ANY
LGELU__WORD int m_any(m_t a) { return m_bits(a) != 0; }
#endif

#if !LGELU__HAS_FMA
/* Whether a sum in double is so close to the midpoint of two floats that rounding it again may
   be wrong. */
LGELU__WORD m_t LGELU__FN(tie)(const d_t *s)
{
    return n_gt(n_set(INT32_MIN + 1), n_up(d_last(s), 3));
}
#endif

#if !LGELU__HAS_FMA && v_lanes == 4
/* v_fma for the rare lanes in which the sum in double is not enough. */
LGELU__APART LGELU__TARGET v_t LGELU__FN(fma_one_by_one)(v_t a, v_t b, v_t c)
{
    float x[4], y[4], z[4];
    int j;
    v_store(x, a);
    v_store(y, b);
    v_store(z, c);
    for (j = 0; j < 4; j++)
        x[j] = lgelu__fmaf(x[j], y[j], z[j]);
    return v_load(x);
}

/* The method of lgelu__fmaf for two lanes at a time. A lane is tiny if its result is from 2^-149 to
   2^-126; a result of 0 is never wrong. */
#if LGELU__FMA_IS_CALL
#define LGELU__FMA_LINKAGE LGELU__APART LGELU__TARGET
#else
#define LGELU__FMA_LINKAGE LGELU__WORD
#endif
LGELU__FMA_LINKAGE v_t v_fma(v_t a, v_t b, v_t c)
{
    d_t s[2];
    v_t r;
    m_t tiny;
    s[0] = d_fma(d_half(a, 0), d_half(b, 0), d_half(c, 0));
    s[1] = d_fma(d_half(a, 1), d_half(b, 1), d_half(c, 1));
    r = v_round(s);
    tiny = n_gt(n_set(INT32_MIN + (1 << 24)), n_add(n_up(v_bits(r), 1), n_set(INT32_MAX)));
    return LGELU__RARELY(m_any(m_or(LGELU__FN(tie)(s), tiny))) ? LGELU__FN(fma_one_by_one)(a, b, c)
                                                               : r;
}

LGELU__WORD v_t v_fms(v_t a, v_t b, v_t c)
{
    return v_fma(a, b, v_float(n_xor(v_bits(c), n_set(INT32_MIN))));
}

LGELU__WORD v_t v_fnma(v_t a, v_t b, v_t c)
{
    return v_fma(v_float(n_xor(v_bits(a), n_set(INT32_MIN))), b, c);
}

LGELU__APART LGELU__TARGET v_t v_from_f16(s_t a)
{
    uint16_t t[4];
    float x[4];
    int j;
    LGELU__FN(s_write)(t, a);
    for (j = 0; j < 4; j++)
        x[j] = lgelu__from_f16(t[j]);
    return v_load(x);
}

LGELU__APART LGELU__TARGET s_t v_to_f16(v_t a)
{
    uint16_t t[4];
    float x[4];
    int j;
    v_store(x, a);
    for (j = 0; j < 4; j++)
        t[j] = lgelu__to_f16(x[j]);
    return LGELU__FN(s_read)(t);
}
#endif

#if v_lanes == 4
LGELU__APART LGELU__TARGET v_t v_load_or(const float *p, size_t n, v_t a)
{
    float t[4];
    v_store(t, a);
    memcpy(t, p, n * sizeof *t);
    return v_load(t);
}

LGELU__APART LGELU__TARGET void LGELU__FN(store_tail)(float *p, v_t a, size_t n)
{
    float t[4];
    v_store(t, a);
    memcpy(p, t, n * sizeof *t);
}

LGELU__WORD v_t v_load_n(const float *p, size_t n)
{
    return n < 4 ? v_load_or(p, n, v_set(0)) : v_load(p);
}

LGELU__WORD void v_store_n(float *p, v_t a, size_t n)
{
    if (n < 4)
        LGELU__FN(store_tail)(p, a, n);
    else
        v_store(p, a);
}
#endif

LGELU__WORD n_t n_select(m_t k, n_t a, n_t b)
{
    return v_bits(v_select(k, v_float(a), v_float(b)));
}

LGELU__WORD v_t v_sign(v_t a, v_t b)
{
    return v_float(n_or(v_bits(a), n_and(v_bits(b), n_set(INT32_MIN))));
}

LGELU__WORD v_t v_times2(v_t a, n_t n) { return v_float(n_add(v_bits(a), n)); }
LGELU__WORD int m_all(m_t a) { return m_bits(a) == (1u << v_lanes) - 1; }

#if !LGELU__HAS_TABLE16
LGELU__WORD v_t v_fold(v_t x) { return v_float(n_or(v_bits(x), n_set(INT32_MIN))); }
typedef float t_t[16];
#define LGELU__ROWS(to, name) const t_t *const to = LGELU__FN(hidden)(lgelu__##name)
#if v_lanes == 8
typedef v_t r_t;
LGELU__WORD r_t v_row(const float *t)
{
    r_t r = v_load(t + 8);
    LGELU__HIDE("+x", r);
    return r;
}

LGELU__WORD v_t v_signed(r_t r, i_t i) { return _mm256_permutevar8x32_ps(r, i); }
#else
typedef const float *r_t;
LGELU__WORD r_t v_row(const float *t) { return t + 8; }
LGELU__WORD v_t v_signed(r_t r, i_t i) { return v_table(r, i); }
#endif

/* Returns t, hidden from gcc, which would copy each row into a constant of its own. */
LGELU__WORD const t_t *LGELU__FN(hidden)(const t_t *t)
{
    LGELU__HIDE("+r", t);
    return t;
}
#else
typedef v_t t_t;
LGELU__WORD r_t v_row(t_t t) { return t; }

/* Loads a table into registers, likewise. */
LGELU__WORD void LGELU__FN(rows)(t_t *to, const float *t, const int rows)
{
    int k;
    LGELU__HIDE("+r", t);
    LGELU__UNROLL
    for (k = 0; k < rows; k++)
        to[k] = v_load(t + 16 * k);
}

#define LGELU__ROWS(to, name)          \
    t_t to[sizeof lgelu__##name / 64]; \
    LGELU__FN(rows)(to, lgelu__##name[0], sizeof to / sizeof *to)
#endif

#if !LGELU__HAS_MASKS
LGELU__WORD int m_some(m_t a, m_t b) { return m_any(m_or(a, b)); }
LGELU__WORD m_t v_lt_of(m_t k, v_t a, v_t b) { return m_and(k, v_lt(a, b)); }

LGELU__WORD s_t s_load(const uint16_t *p, size_t n)
{
    uint16_t t[v_lanes] = { 0 };
    if (n < v_lanes)
        memcpy(t, p, n * sizeof *t);
    return LGELU__FN(s_read)(n < v_lanes ? t : p);
}

LGELU__WORD void s_store(uint16_t *p, s_t a, size_t n)
{
    uint16_t t[v_lanes];
    LGELU__FN(s_write)(n < v_lanes ? t : p, a);
    if (n < v_lanes)
        memcpy(p, t, n * sizeof *t);
}
#endif

#if !LGELU__INTEL
LGELU__WORD v_t v_abs(v_t a) { return v_float(n_and(v_bits(a), n_set(INT32_MAX))); }

LGELU__WORD float v_total(const v_t *a)
{
    float s[16];
    int i;
    for (i = 0; i < 16; i += v_lanes)
        v_store(s + i, a[i / v_lanes]);
    LGELU__UNROLL
    for (i = 0; i < 8; i++)
        s[i] += s[i + 8];
    LGELU__UNROLL
    for (i = 0; i < 4; i++)
        s[i] += s[i + 4];
    return (s[0] + s[2]) + (s[1] + s[3]);
}
#endif

#if !LGELU__HAS_STREAM
LGELU__WORD void v_stream(float *p, v_t a) { v_store(p, a); }
LGELU__WORD void v_fence(void) {}
#endif

#if !LGELU__HAS_COMPRESS
LGELU__WORD size_t v_pack(float *p, v_t a, m_t k)
{
    float t[v_lanes];
    size_t n = 0, j;
    v_store(t, a);
    for (j = 0; j < v_lanes; j++) {
        p[n] = t[j];
        n += m_bits(k) >> j & 1;
    }
    return n;
}

LGELU__WORD size_t v_unpack(float *p, const float *t, unsigned k)
{
    size_t n = 0, j;
    for (j = 0; j < v_lanes; j++) {
        if (k >> j & 1)
            p[j] = t[n++];
    }
    return n;
}
#endif

#if LGELU__INTEL
LGELU__WORD void v_turn(v_t t[4], const float *p, size_t row)
{
    v_t x[4], a, b, c, d;
    int q;
    LGELU__UNROLL
    for (q = 0; q < 4; q++)
        x[q] = LGELU__FN(row)(p + (size_t)q * row, row);
    a = LGELU__MM(unpacklo_ps)(x[0], x[1]);
    b = LGELU__MM(unpackhi_ps)(x[0], x[1]);
    c = LGELU__MM(unpacklo_ps)(x[2], x[3]);
    d = LGELU__MM(unpackhi_ps)(x[2], x[3]);
    t[0] = LGELU__MM(shuffle_ps)(a, c, 0x44);
    t[1] = LGELU__MM(shuffle_ps)(a, c, 0xEE);
    t[2] = LGELU__MM(shuffle_ps)(b, d, 0x44);
    t[3] = LGELU__MM(shuffle_ps)(b, d, 0xEE);
}

LGELU__WORD float v_total(const v_t *a)
{
    __m128 s;
#if v_lanes == 16
    const __m256 half =
        _mm256_add_ps(_mm512_castps512_ps256(a[0]), _mm512_extractf32x8_ps(a[0], 1));
    s = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
#elif v_lanes == 8
    const __m256 half = _mm256_add_ps(a[0], a[1]);
    s = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
#else
    s = _mm_add_ps(_mm_add_ps(a[0], a[2]), _mm_add_ps(a[1], a[3]));
#endif
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}

LGELU__WORD n_t n_product(n_t *low, n_t a, n_t b)
{
    n_t even = LGELU__MM(mul_epu32)(a, b),
        odd = LGELU__MM(mul_epu32)(LGELU__MM(srli_epi64)(a, 32), LGELU__MM(srli_epi64)(b, 32));
    *low = LGELU__FN(odd)(even, LGELU__MM(slli_epi64)(odd, 32));
    return LGELU__FN(odd)(LGELU__MM(srli_epi64)(even, 32), odd);
}

#undef LGELU__MM
#undef LGELU__SI
#undef LGELU__PS
#endif

#if !LGELU__HAS_RANGE
LGELU__WORD v_t v_least(v_t a, v_t b) { return v_float(n_min(v_bits(v_abs(a)), v_bits(v_abs(b)))); }
LGELU__WORD v_t v_most(v_t a, v_t b) { return v_float(n_max(v_bits(v_abs(a)), v_bits(v_abs(b)))); }
#endif

/* ---- [Kb] the gate ---- */
/* METHOD. Let z = λx and Q(z) = Φ(-z). The product λx is never rounded: each reduction of the
   argument is one fma of λ and x.

   The middle, abs(z) <= 3.1. Φ is approximated on 15 intervals of width 0.42 around the multiples
   of 0.42, so that rounding z/0.42 to the nearest integer gives the interval, and both signs are
   treated alike. d = λx - centre is computed by one fma, Φ is a polynomial of degree 6 in d, and
   y = xΦ. The centres are chosen near the multiples, such that Φ there is almost a float, for z < 0
   as well as z > 0 (Gal's method), and among many such centres the one with the smallest sum of the
   other rounding errors.

   The tail, beyond the middle. y = max(x, 0) - aQ with a = abs(x) and
     aQ = 2^(e·x²)·(1 - w·P(w))/(λ√(2π)),  e = -½·log2(e)·λ²,  w = 1/z².
   x² is used with its rounding error, which an fma gives, and e is the sum of two floats. P and
   2^f - 1 are polynomials of degree 6. Results below 2^-126 are rounded by an addition and
   assembled in integers.

   f'. In the middle it is approximated like Φ, on the same intervals. One centre is next to the
   root of f' at -0.7517915, so that the result is relatively accurate there. In the tail it is
     z·exp(-z²/2)/√(2π)·(1 - w(1 - w·P(w)))
   for z < 0, and 1 minus that at abs(z) for z > 0.

   x²φ, the derivative in λ. In the middle LGELU__BELL·φ is a polynomial in the d of f'. In the tail
   x²φ follows from the same exponential, in units of 1/4^⌊log2 λ⌋.

   Branches. A pair of vectors whose elements are all in the middle, and not tiny, needs the table
   alone. From any other pair, the elements of the tail for which f is neither x nor -0 are packed,
   and processed later in full vectors. Which path an element takes depends on its value alone,
   never on its neighbours: a branch only skips what no lane needs. The branch comes before the
   arithmetic, so that no arithmetic is done on subnormal numbers, which is slow.

   Long arrays are prefetched (LGELU__AHEAD), and the results of the longest are stored past the
   caches. tests/tools/coefficients.py made the coefficients. */
#define v_gate LGELU__FN(v_gate)
typedef struct {
    v_t lambda, step, last, left, right, scale, e, el, w, c, cl, deep;
} v_gate;

#define v_fields(X) \
    X(lambda) X(step) X(last) X(left) X(right) X(scale) X(e) X(el) X(w) X(c) X(cl) X(deep)

/* The constants of one λ, in every lane. */
LGELU__WORD v_gate LGELU__FN(same)(const lgelu__constants *p)
{
    v_gate g;
#define v_field(f) g.f = v_set(p->f);
    v_fields(v_field)
#undef v_field
        return g;
}

/* The constants of v_lanes λ's, one for each lane. */
LGELU__APART LGELU__TARGET void LGELU__FN(various)(v_gate *g, const lgelu__constants *p)
{
    float t[v_lanes];
    int j;
#define v_field(f)                \
    for (j = 0; j < v_lanes; j++) \
        t[j] = p[j].f;            \
    g->f = v_load(t);
    v_fields(v_field)
#undef v_field
}

/* Every kernel processes two vectors side by side, statement by statement. A polynomial is one
   chain of fmas, each of which waits for the one before; meanwhile the processor executes the chain
   of the other vector. v_each executes its statements for u = 0 and u = 1, v_many for u from 0 to
   w - 1. */
#define v_each(...)         \
    do {                    \
        {                   \
            enum { u = 0 }; \
            __VA_ARGS__;    \
        }                   \
        {                   \
            enum { u = 1 }; \
            __VA_ARGS__;    \
        }                   \
    } while (0)
#define v_many(...)               \
    do {                          \
        int u;                    \
        LGELU__UNROLL             \
        for (u = 0; u < w; u++) { \
            __VA_ARGS__;          \
        }                         \
    } while (0)

/* load2 reads the next two vectors of an array in which n elements remain, followed by zeros.
   store2 writes them. */
LGELU__WORD void LGELU__FN(load2)(v_t *a, const float *p, size_t n)
{
    if (!LGELU__RARELY(n < 2 * v_lanes)) {
        v_each(a[u] = v_load(p + u * v_lanes));
        return;
    }
    a[0] = v_load_n(p, n);
    a[1] = n > v_lanes ? v_load_n(p + v_lanes, n - v_lanes) : v_set(0);
}

/* The same for fewer than two vectors, followed by those of b. */
LGELU__WORD void LGELU__FN(load2_or)(v_t *a, const float *p, size_t n, v_t b)
{
    a[0] = n < v_lanes ? v_load_or(p, n, b) : v_load(p);
    a[1] = n > v_lanes ? v_load_or(p + v_lanes, n - v_lanes, b) : b;
}

LGELU__WORD void LGELU__FN(store2)(float *p, const v_t *a, size_t n)
{
    if (!LGELU__RARELY(n < 2 * v_lanes)) {
        v_each(v_store(p + u * v_lanes, a[u]));
        return;
    }
    v_store_n(p, a[0], n);
    if (n > v_lanes)
        v_store_n(p + v_lanes, a[1], n - v_lanes);
}

/* Replaces every NaN by 7fc00000, since the sign and payload of a NaN that arithmetic produces
   depend on the processor. */
LGELU__WORD v_t LGELU__FN(one_nan)(v_t a)
{
    return v_select(n_gt(v_bits(v_abs(a)), n_set(LGELU__TWO(128))), v_float(n_set(0x7FC00000)), a);
}

/* Whether a lane of w masks is true. k is not const: gcc 12 would warn under -fsanitize=address
   that it may be uninitialised. */
LGELU__WORD int LGELU__FN(any)(m_t *k, const int w)
{
    return w == 2 ? m_some(k[0], k[1]) : m_any(k[0]);
}

/* e = (2^f - 1 - f·ln 2)/f for abs(f) <= 1/2. f is not const, likewise. */
LGELU__WORD void LGELU__FN(exp2m1)(v_t *e, v_t *f, const int w)
{
    int k;
    v_many(e[u] = v_set(lgelu__exp2[5]));
    LGELU__UNROLL
    for (k = 4; k > 0; k--)
        v_many(e[u] = v_fma(f[u], e[u], v_set(lgelu__exp2[k])));
}

/* p = P(v), the polynomial of the tail. */
LGELU__WORD void LGELU__FN(tail)(v_t *p, const v_t *v, const int w)
{
    int k;
    v_many(p[u] = v_set(lgelu__tail[6]));
    LGELU__UNROLL
    for (k = 5; k >= 0; k--)
        v_many(p[u] = v_fma(v[u], p[u], v_set(lgelu__tail[k])));
}

/* r = r·2^e for r >= 0 and e >= -255, assembled in integers; e is shifted up by 23. A result below
   2^-126 is rounded by adding 2^-26 to it, times 2^100. */
LGELU__WORD void LGELU__FN(assemble)(v_t *r, const n_t *e, const int w)
{
    const n_t big = n_set(LGELU__TWO(-26));
    n_t s[2];
    m_t low[2];
    v_many(s[u] = n_add(v_bits(r[u]), e[u]));
    v_many(low[u] = n_gt(n_set(LGELU__TWO(-126)), s[u]));
    v_many(r[u] = v_float(s[u]));
    if (!LGELU__FN(any)(low, w))
        return;
    v_many(s[u] = n_max(n_add(s[u], n_set(LGELU__EXPONENT(100))), n_set(LGELU__TWO(-67))));
    v_many(s[u] = n_sub(v_bits(v_add(v_float(s[u]), v_float(big))), big));
    v_many(r[u] = v_select(low[u], v_float(s[u]), r[u]));
}

/* a/2 for a >= 0, rounded to nearest even, in integers. */
LGELU__WORD v_t LGELU__FN(half)(v_t a)
{
    n_t b = v_bits(a), s = n_down(n_add(b, n_and(n_down(b, 1), n_set(1))), 1);
    return v_float(
        n_select(n_gt(n_set(LGELU__TWO(-125)), b), s, n_sub(b, n_set(LGELU__EXPONENT(1)))));
}

/* r = -c(1 + e - d)·2^-100, rounded once. Below 2^-26 the sum with 2^-26 is rounded to a multiple
   of 2^-49, which becomes 2^-149. */
LGELU__WORD void LGELU__FN(lowered)(v_t *r, const v_t *c, const v_t *e, const v_t *d, const int w)
{
    const n_t sign = n_set(INT32_MIN), two = n_set(LGELU__TWO(-26));
    const v_t big = v_float(two);
    v_t t[2], f[2];
    v_many(r[u] = v_fma(c[u], v_sub(e[u], d[u]), c[u]));
    v_many(t[u] = v_add(c[u], big));
    v_many(f[u] = v_fma(c[u], e[u], v_fnma(c[u], d[u], v_sub(c[u], v_sub(t[u], big)))));
    v_many(t[u] = v_times2(v_add(t[u], f[u]), n_sub(sign, two)));
    v_many(r[u] = v_select(v_lt(r[u], big), t[u],
                           v_times2(r[u], n_sub(sign, n_set(LGELU__EXPONENT(100))))));
}

/* exp(-z²/2) = (1 + l)·2^n, where n is the integer in the low bits of t; s = x². */
LGELU__WORD void LGELU__FN(gauss)(v_t *l, v_t *t, v_t *s, const v_t *x, const v_gate *g,
                                  const int w)
{
    const v_t magic = v_set(LGELU__ROUND);
    v_t f[2], r[2];
    v_many(s[u] = v_mul(x[u], x[u]));
    v_many(t[u] = v_fma(s[u], g->e, magic));
    v_many(r[u] = v_fms(x[u], x[u], s[u]));
    v_many(f[u] = v_fma(s[u], g->e, v_sub(magic, t[u])));
    v_many(r[u] = v_fma(r[u], g->e, v_mul(s[u], g->el)));
    v_many(f[u] = v_add(f[u], r[u]));
    LGELU__FN(exp2m1)(l, f, w);
    v_many(l[u] = v_fma(f[u], l[u], v_set(lgelu__exp2[0])));
    v_many(l[u] = v_fma(f[u], l[u], v_set(0)));
}

/* The gate in the tail, in place: max(x, 0) - aQ with aQ = exp(-z²/2)·(1 - w·P(w))/(λ√(2π)). */
LGELU__WORD void LGELU__FN(beyond)(v_t *x, const v_gate *g, const int w)
{
    const v_t one = v_set(1);
    v_t s[2], l[2], t[2], v[2], p[2], r[2];
    m_t deep[2];
    int is_deep;
    LGELU__FN(gauss)(l, t, s, x, g, w);
    v_many(v[u] = v_div(g->w, s[u]));
    LGELU__FN(tail)(p, v, w);
    v_many(p[u] = v_fms(v[u], p[u], g->cl));
    v_many(r[u] = v_fnma(p[u], v_add(l[u], one), l[u]));
    v_many(r[u] = v_fma(r[u], g->c, g->c));
    v_many(deep[u] = v_lt(t[u], g->deep));
    v_many(r[u] = v_times2(r[u], n_up(v_bits(t[u]), 23)));
    /* Where f is deep, r has no meaning, and may be a signalling NaN. There f is what `lowered`
       computes, whose subnormal values must not go through a sum: FTZ would make them 0. */
    is_deep = LGELU__FN(any)(deep, w);
    if (is_deep) {
        v_many(t[u] =
                   v_times2(v_times2(g->c, n_set(LGELU__EXPONENT(100))), n_up(v_bits(t[u]), 23)));
        v_many(p[u] = v_mul(p[u], v_add(l[u], one)));
        LGELU__FN(lowered)(v, t, l, p, w);
        v_many(r[u] = v_select(deep[u], v_set(0), r[u]));
    }
    v_many(x[u] = v_sub(v_max(v_set(-0.0f), x[u]), r[u]));
    if (is_deep) {
        v_many(x[u] = v_select(deep[u], v[u], x[u]));
    }
}

/* xΦ(λx) in the middle, in place. */
LGELU__WORD void LGELU__FN(middle_by_fma)(v_t *x, const v_gate *g, const t_t *table, const int w)
{
    v_t a[2], d[2], q[2], t[2];
    i_t i[2];
    r_t r = v_row(table[0]);
    int k;
    v_many(a[u] = v_fold(x[u]));
    v_many(t[u] = v_fma(a[u], g->step, v_set(LGELU__ROUND)));
    v_many(i[u] = v_index(v_bits(t[u])));
    v_many(d[u] = v_fma(a[u], g->lambda, v_signed(r, i[u])));
    r = v_row(table[7]);
    v_many(q[u] = v_signed(r, i[u]));
    LGELU__UNROLL
    for (k = 6; k > 1; k--) {
        r = v_row(table[k]);
        v_many(q[u] = v_fma(d[u], q[u], v_signed(r, i[u])));
    }
    r = v_row(table[1]);
    v_many(q[u] = v_fma(d[u], q[u], v_base(v_signed(r, i[u]), x[u])));
    v_many(x[u] = v_mul(a[u], q[u]));
}
#if LGELU__SUMS_IN_DOUBLE
/* The same in double, with each sum rounded to float, which halves the time with SSE2. No sum is
   below 2^-126. Whether one of them was close to the midpoint of two floats is tested once, after
   all of them; then they are computed again, fma by fma. */
LGELU__APART LGELU__TARGET v_t LGELU__FN(middle_again)(v_t x, const v_gate *g)
{
    LGELU__ROWS(table, middle);
    LGELU__FN(middle_by_fma)(&x, g, table, 1);
    return x;
}

/* The arguments of a pair of vectors: the intervals, the distances from the centres in two halves
   for each vector, and the lanes in which a sum was close to a midpoint of two floats. */
typedef struct {
    i_t i[2];
    d_t d[2][2];
    m_t tie[2];
} LGELU__FN(place);

#define v_both(...)         \
    do {                    \
        {                   \
            enum { h = 0 }; \
            __VA_ARGS__;    \
        }                   \
        if (v_lanes > 1) {  \
            enum { h = 1 }; \
            __VA_ARGS__;    \
        }                   \
    } while (0)

/* Finds the intervals of a = v_fold(x). The last bits of a sum with 1.5·2^52 are the interval. */
LGELU__WORD void LGELU__FN(find)(LGELU__FN(place) * p, const v_t *a, const v_gate *g,
                                 const double *centre)
{
    d_t b[2][2];
    v_each(v_both(b[u][h] = d_half(a[u], h)));
    v_each(v_both(p->d[u][h] =
                      d_fma(b[u][h], d_half(g->step, h), d_half(v_set(6755399441055744.0f), h))));
    v_each(p->i[u] = v_index(d_last(p->d[u])));
    v_each(v_both(p->d[u][h] = d_fma(b[u][h], d_half(g->lambda, h), d_signed(centre, p->i[u], h))));
    v_each(p->tie[u] = LGELU__FN(tie)(p->d[u]));
    v_each(v_both(p->d[u][h] = d_float(p->d[u][h])));
}

/* One step of Horner's rule, q = d·q + c. q is rounded to float before the step, not after it. */
LGELU__WORD void LGELU__FN(step)(d_t (*q)[2], LGELU__FN(place) * p, const double *c)
{
    v_each(v_both(q[u][h] = d_fma(p->d[u][h], d_float(q[u][h]), d_signed(c, p->i[u], h))));
    v_each(p->tie[u] = m_or(p->tie[u], LGELU__FN(tie)(q[u])));
}

LGELU__APART LGELU__TARGET void LGELU__FN(middle_pair)(v_t *x, const v_gate *g)
{
    LGELU__FN(place) p;
    v_t a[2], base[2];
    d_t q[2][2];
    int k;
    v_each(a[u] = v_fold(x[u]));
    LGELU__FN(find)(&p, a, g, lgelu__middle_in_double[0]);
    v_each(base[u] = v_base(v_signed(v_row(lgelu__middle[1]), p.i[u]), x[u]));
    v_each(v_both(q[u][h] = d_signed(lgelu__middle_in_double[7], p.i[u], h)));
    LGELU__UNROLL
    for (k = 6; k > 1; k--)
        LGELU__FN(step)(q, &p, lgelu__middle_in_double[k]);
    v_each(v_both(q[u][h] = d_fma(p.d[u][h], d_float(q[u][h]), d_half(base[u], h))));
    v_each(p.tie[u] = m_or(p.tie[u], LGELU__FN(tie)(q[u])));
    v_each(x[u] = LGELU__RARELY(m_any(p.tie[u])) ? LGELU__FN(middle_again)(x[u], g)
                                                 : v_mul(a[u], v_round(q[u])));
}

LGELU__WORD void LGELU__FN(middle)(v_t *x, const v_gate *g, const t_t *table, const int w)
{
    (void)table;
    if (w == 2)
        LGELU__FN(middle_pair)(x, g);
    else
        *x = LGELU__FN(middle_again)(*x, g);
}
#else
LGELU__WORD void LGELU__FN(middle)(v_t *x, const v_gate *g, const t_t *table, const int w)
{
    LGELU__FN(middle_by_fma)(x, g, table, w);
}
#endif

/* The elements of a block that are processed later: those of the tail for which f is neither x nor
   -0. x holds them contiguously, followed by fillers; at and lanes say of which pairs of vectors
   and in which lanes they were. */
enum { LGELU__FN(stretch) = v_lanes < 4 ? 512 : 3968 };
typedef struct {
    float x[LGELU__FN(stretch) + 32];
    uint16_t at[LGELU__FN(stretch) / v_lanes / 2];
    b_t lanes[LGELU__FN(stretch) / v_lanes / 2][2];
} LGELU__FN(later);

/* Returns 0 if all elements of w vectors are in the middle, and not tiny. Else `far` receives the
   lanes that are not, r their results unless they are also in `between`, the lanes of the tail for
   which f is neither x nor -0. */
LGELU__WORD int LGELU__FN(forward_sort)(v_t *x, v_t *r, m_t *far, m_t *between, const v_gate *g,
                                        const int w)
{
    const m_t small = v_nge(v_least(x[0], x[w - 1]), v_float(n_set(LGELU__TWO(-63))));
    v_t a[2];
    m_t tiny[2];
    if (!m_some(small, v_nge(g->last, v_most(x[0], x[w - 1]))))
        return 0;
    v_many(a[u] = v_abs(x[u]));
    v_many(r[u] = v_max(v_set(-0.0f), x[u]));
    /* A tiny f is x/2, computed in integers because x may be subnormal. */
    if (m_any(small)) {
        v_many(tiny[u] = n_gt(n_set(LGELU__TWO(-63)), v_bits(a[u])));
        v_many(r[u] = v_select(tiny[u], v_sign(LGELU__FN(half)(a[u]), x[u]), r[u]));
        v_many(x[u] = v_select(tiny[u], g->right, x[u]));
        v_many(a[u] = v_abs(x[u]));
    }
    /* A NaN is also far, and its result is x. */
    v_many(far[u] = v_nge(g->last, a[u]));
    v_many(between[u] = v_lt_of(v_lt_of(far[u], g->left, x[u]), x[u], g->right));
    return 1;
}

/* Evaluates the middle where x is sorted by forward_sort; `sorted` is what that returned. r is the
   result in the lanes that are far. The middle is in this one place, so that it is compiled once.
 */
LGELU__WORD void LGELU__FN(forward_sorted)(v_t *x, const v_t *r, const m_t *far, int sorted,
                                           const v_gate *g, const t_t *table, const int w)
{
    const int all = sorted && m_all(m_and(far[0], far[w - 1]));
    if (!all)
        LGELU__FN(middle)(x, g, table, w);
    if (sorted)
        v_many(x[u] = all ? r[u] : v_select(far[u], r[u], x[u]));
}

/* Evaluates the tail for `count` packed elements, which fillers follow, in place. */
LGELU__APART LGELU__TARGET void LGELU__FN(forward_tail)(float *x, lgelu__constants *gate,
                                                        size_t count)
{
    v_gate g;
    size_t i;
    lgelu__prepare_forward_tail(gate);
    g = LGELU__FN(same)(gate);
    /* One vector at a time is as fast as two, since the processor overlaps the rounds. */
    for (i = 0; i < count; i += v_lanes) {
        v_t a = v_load(x + i);
        LGELU__FN(beyond)(&a, &g, 1);
        v_store(x + i, a);
    }
}

/* The gate of at most `stretch` elements. */
LGELU__APART LGELU__TARGET void LGELU__FN(forward_block)(float *y, const float *x,
                                                         lgelu__constants *gate, size_t n)
{
    const v_gate g = LGELU__FN(same)(gate);
    LGELU__FN(later) todo;
    v_t a[2], r[2];
    m_t far[2], between[2];
    size_t i, j, count = 0, pairs = 0;
    int sorted;
    LGELU__ROWS(table, middle);
    for (i = 0; i < n; i += 2 * v_lanes) {
        if (LGELU__RARELY(n - i < 2 * v_lanes)) {
            LGELU__FN(load2_or)(a, x + i, n - i, g.last);
        } else {
            if (n > 1024)
                v_each(LGELU__AHEAD(x, i + u * v_lanes));
            v_each(a[u] = v_load(x + i + u * v_lanes));
        }
        sorted = LGELU__FN(forward_sort)(a, r, far, between, &g, 2);
        if (sorted && m_some(between[0], between[1])) {
            todo.at[pairs] = (uint16_t)i;
            v_each(todo.lanes[pairs][u] = (b_t)m_bits(between[u]);
                   count += v_pack(todo.x + count, a[u], between[u]));
            pairs++;
        }
        LGELU__FN(forward_sorted)(a, r, far, sorted, &g, table, 2);
        LGELU__FN(store2)(y + i, a, n - i);
    }
    if (!count)
        return;
    v_each(v_store(todo.x + count + u * v_lanes, g.last));
    LGELU__FN(forward_tail)(todo.x, gate, count);
    j = 0;
    for (i = 0; i < pairs; i++)
        v_each(j += v_unpack(y + todo.at[i] + u * v_lanes, todo.x + j, todo.lanes[i][u]));
}

/* The limit λ = inf: ReLU, where a negative x gives -0 and NaN remains as it is. */
LGELU__APART LGELU__TARGET void LGELU__FN(relu)(float *y, const float *x, lgelu__constants *gate,
                                                size_t n)
{
    size_t i;
    (void)gate;
    for (i = 0; i < n; i += v_lanes) {
        const v_t a = v_load_n(x + i, n - i);
        const m_t below =
            m_less(n_gt(n_set(0), v_bits(a)), n_gt(v_bits(v_abs(a)), n_set(LGELU__TWO(128))));
        v_store_n(y + i, v_select(below, v_set(-0.0f), a), n - i);
    }
}

/* The gate of a large array, whose speed memory limits. Returns how many elements are done. It
   takes 128 elements at a time, two cache lines from each of four pages, so that several banks of
   memory work at once. x is prefetched four pages ahead, and y is stored past the caches. */
LGELU__APART LGELU__TARGET size_t LGELU__FN(forward_past)(float *y, const float *x,
                                                          lgelu__constants *gate, size_t n,
                                                          lgelu__forward_block *block)
{
    enum { line = 16, page = 1024, vectors = line / v_lanes };
    float buffer[128 + line], *t = buffer + lgelu__to_line((uintptr_t)buffer);
    size_t i = lgelu__to_line((uintptr_t)y), at, j, v;
    block(y, x, gate, i);
    for (; n - i >= 8 * page; i += 4 * page) {
        for (at = i; at < i + page; at += 2 * line) {
            /* Line j of the eight is at line j / 4 of page j mod 4. */
            for (j = 0; j < 8; j++) {
                const float *from = x + at + j % 4 * page + j / 4 * line;
                LGELU__FETCH(from + 4 * page);
                LGELU__UNROLL
                for (v = 0; v < vectors; v++)
                    v_store(t + j * line + v * v_lanes, v_load(from + v * v_lanes));
            }
            block(t, t, gate, 128);
            for (j = 0; j < 8; j++) {
                float *to = y + at + j % 4 * page + j / 4 * line;
                LGELU__UNROLL
                for (v = 0; v < vectors; v++)
                    v_stream(to + v * v_lanes, v_load(t + j * line + v * v_lanes));
            }
        }
    }
    v_fence();
    return i;
}

#ifdef LGELU__FIRST_PASS
/* The gate by an instruction set's `block`, of at most `stretch` elements, and `past`. */
LGELU__APART void lgelu__forward_by(float *y, const float *x, float lambda, size_t n,
                                    lgelu__forward_block *block, size_t stretch,
                                    lgelu__forward_past *past)
{
    lgelu__constants gate;
    size_t i, m;
    if (!(lambda > FLT_MAX) && !lgelu__ordinary(lambda)) {
        lgelu__forward_extreme(y, x, lambda, n, lgelu_exact);
        return;
    }
    gate = lgelu__prepare_forward(lambda);
    i = y != x && n >= LGELU__STREAM ? past(y, x, &gate, n, block) : 0;
    for (; i < n; i += m) {
        m = n - i < stretch ? n - i : stretch;
        block(y + i, x + i, &gate, m);
    }
}
#endif

static LGELU__TARGET void LGELU__FN(phi_forward)(float *y, const float *x, float lambda, size_t n)
{
    lgelu__forward_by(y, x, lambda, n,
                      lambda > FLT_MAX ? LGELU__FN(relu) : LGELU__FN(forward_block),
                      LGELU__FN(stretch), LGELU__FN(forward_past));
}

/* The constants of λ and the tables of the backward. */
typedef struct {
    const v_gate *gate;
    const t_t *slope, *bell;
} LGELU__FN(slopes);

/* The backward in the middle: dx = dy·f', and p·s = dy·x²φ·LGELU__BELL. */
LGELU__WORD void LGELU__FN(slope_middle_by_fma)(v_t *dx, v_t *p, v_t *s, const v_t *dy,
                                                const v_t *x, const LGELU__FN(slopes) * tables,
                                                const int w)
{
    const v_gate *const g = tables->gate;
    const t_t *const slope = tables->slope, *const bell = tables->bell;
    v_t a[2], t[2], d[2], q[2], b[2];
    i_t i[2];
    r_t r = v_row(slope[0]), e = v_row(bell[6]);
    int k;
    v_many(a[u] = v_fold(x[u]));
    v_many(t[u] = v_fma(a[u], g->step, v_set(LGELU__ROUND)));
    v_many(i[u] = v_index(v_bits(t[u])));
    v_many(d[u] = v_fma(a[u], g->lambda, v_signed(r, i[u])));
    v_many(b[u] = v_signed(e, i[u]));
    r = v_row(slope[7]);
    v_many(q[u] = v_signed(r, i[u]));
    LGELU__UNROLL
    for (k = 5; k > 1; k--) {
        e = v_row(bell[k]);
        v_many(b[u] = v_fma(d[u], b[u], v_signed(e, i[u])));
        r = v_row(slope[k + 1]);
        v_many(q[u] = v_fma(d[u], q[u], v_signed(r, i[u])));
    }
    e = v_row(bell[1]);
    v_many(b[u] = v_fma(d[u], b[u], v_signed(e, i[u])));
    e = v_row(bell[0]);
    v_many(b[u] = v_fma(d[u], b[u], v_signed(e, i[u])));
    r = v_row(slope[1]);
    v_many(q[u] = v_fma(v_mul(d[u], d[u]), q[u], v_base(v_signed(r, i[u]), x[u])));
    /* The linear term is added last, since it is the whole value near the root. */
    r = v_row(slope[2]);
    v_many(q[u] = v_fma(d[u], v_signed(r, i[u]), q[u]));
    v_many(s[u] = v_mul(a[u], a[u]));
    v_many(p[u] = v_mul(dy[u], b[u]));
    v_many(dx[u] = v_mul(v_turned(dy[u], x[u]), q[u]));
}

#if LGELU__SUMS_IN_DOUBLE && v_lanes > 1
/* The same in double, like middle_pair above. */
LGELU__APART LGELU__TARGET void LGELU__FN(slope_middle_again)(v_t *dx, v_t *p, v_t *s,
                                                              const v_t *dy, const v_t *x,
                                                              const v_gate *g)
{
    LGELU__ROWS(slope, slope);
    LGELU__ROWS(bell, bell);
    const LGELU__FN(slopes) tables = { g, slope, bell };
    int u;
    for (u = 0; u < 2; u++) {
        LGELU__FN(slope_middle_by_fma)(dx + u, p + u, s + u, dy + u, x + u, &tables, 1);
    }
}

LGELU__APART LGELU__TARGET void LGELU__FN(slope_middle)(v_t *dx, v_t *p, v_t *s, const v_t *dy,
                                                        const v_t *x,
                                                        const LGELU__FN(slopes) * tables)
{
    LGELU__FN(place) at;
    v_t a[2], d[2], base[2];
    d_t q[2][2], b[2][2];
    int k;
    v_each(a[u] = v_fold(x[u]));
    LGELU__FN(find)(&at, a, tables->gate, lgelu__slope_in_double[0]);
    v_each(base[u] = v_base(v_signed(v_row(lgelu__slope[1]), at.i[u]), x[u]));
    v_each(v_both(b[u][h] = d_signed(lgelu__bell_in_double[6], at.i[u], h)));
    v_each(v_both(q[u][h] = d_signed(lgelu__slope_in_double[7], at.i[u], h)));
    LGELU__UNROLL
    for (k = 5; k >= 0; k--) {
        LGELU__FN(step)(b, &at, lgelu__bell_in_double[k]);
        if (k > 1)
            LGELU__FN(step)(q, &at, lgelu__slope_in_double[k + 1]);
    }
    v_each(d[u] = v_round(at.d[u]); d[u] = v_mul(d[u], d[u]));
    v_each(v_both(q[u][h] = d_fma(d_half(d[u], h), d_float(q[u][h]), d_half(base[u], h))));
    v_each(at.tie[u] = m_or(at.tie[u], LGELU__FN(tie)(q[u])));
    v_each(v_both(q[u][h] = d_fma(at.d[u][h], d_signed(lgelu__slope_in_double[2], at.i[u], h),
                                  d_float(q[u][h]))));
    v_each(at.tie[u] = m_or(at.tie[u], LGELU__FN(tie)(q[u])));
    v_each(s[u] = v_mul(a[u], a[u]));
    v_each(p[u] = v_mul(dy[u], v_round(b[u])));
    v_each(dx[u] = v_mul(v_turned(dy[u], x[u]), v_round(q[u])));
    if (LGELU__RARELY(m_some(at.tie[0], at.tie[1])))
        LGELU__FN(slope_middle_again)(dx, p, s, dy, x, tables->gate);
}
#else
LGELU__WORD void LGELU__FN(slope_middle)(v_t *dx, v_t *p, v_t *s, const v_t *dy, const v_t *x,
                                         const LGELU__FN(slopes) * tables)
{
    LGELU__FN(slope_middle_by_fma)(dx, p, s, dy, x, tables, 2);
}
#endif

/* a·2^100 for abs(a) below 2^-27. The bits of a subnormal number count units of 2^-149. */
LGELU__WORD v_t LGELU__FN(raised)(v_t a)
{
    const n_t b = v_bits(v_abs(a));
    return v_sign(v_select(n_gt(n_set(LGELU__TWO(-126)), b),
                           v_mul(v_whole(b), v_float(n_set(LGELU__TWO(-49)))),
                           v_times2(v_abs(a), n_set(LGELU__EXPONENT(100)))),
                  a);
}

/* The backward in the tail, from the middle up to 16.5/λ, with E = exp(-z²/2):
     f'(-z) = -z·E/√(2π)·(1 - w(1 - w·P(w))),  f'(z) = 1 - f'(-z).
   dy is replaced by dx, and x by the term dy·x²E·scale·2^-20 of the sum, which cannot overflow. If
   E is faint (below 2^-60) or dy is thin (below 2^-30), x becomes 0, and `small` receives the term
   as 2^100·dy·x²E·scale. */
LGELU__WORD void LGELU__FN(slope_beyond)(v_t *dy, v_t *x, v_t *small, const v_gate *g, const int w)
{
    const v_t one = v_set(1), zero = v_set(0), c = v_mul(g->c, v_set(0.0625f));
    const n_t faintest = n_set(LGELU__ROUND_BITS - 60);
    v_t s[2], l[2], t[2], f[2], v[2], p[2], r[2];
    n_t n[2], e[2], y[2];
    m_t faint[2], odd[2], whole[2];
    /* E = (1 + l)·2^n. */
    LGELU__FN(gauss)(l, t, s, x, g, w);
    v_many(v[u] = v_div(g->w, s[u]));
    v_many(n[u] = n_up(v_bits(t[u]), 23));
    v_many(faint[u] = n_gt(faintest, v_bits(t[u])));
    v_many(s[u] = v_mul(s[u], g->scale));
    v_many(s[u] = v_fma(l[u], s[u], s[u]));
    v_many(s[u] = v_times2(s[u], n_add(n[u], n_select(faint[u], n_set(LGELU__EXPONENT(100)),
                                                      n_set(LGELU__EXPONENT(-20))))));
    v_many(s[u] = v_mul(dy[u], s[u]));
    v_many(small[u] = v_select(faint[u], s[u], zero));
    v_many(s[u] = v_select(faint[u], zero, s[u]));
    LGELU__FN(tail)(p, v, w);
    v_many(p[u] = v_fnma(v[u], p[u], one));
    v_many(p[u] = v_fms(v[u], p[u], g->cl));
    v_many(p[u] = v_fnma(p[u], v_add(l[u], one), l[u]));
    v_many(r[u] = v_mul(v_abs(x[u]), c));
    /* -f'(-z) = r·2^(n + 4), where dy·r cannot overflow. */
    v_many(r[u] = v_fma(r[u], p[u], r[u]));
    v_many(e[u] = n_add(n[u], n_set(LGELU__EXPONENT(4))));
    /* f = f'(z). */
    v_many(f[u] = v_add(one, v_times2(r[u], n_max(e[u], n_set(LGELU__EXPONENT(-56))))));
    v_many(p[u] = v_mul(dy[u], r[u]));
    v_many(y[u] = v_bits(v_abs(dy[u])));
    v_many(whole[u] = n_gt(n_set(0), v_bits(x[u])));
    /* odd: dy is thin, inf or NaN. The subtraction maps the bits of all other values to the lowest
       integers. */
    v_many(odd[u] = n_gt(n_sub(y[u], n_set(LGELU__TWO(-30) + INT32_MIN)),
                         n_set(LGELU__TWO(128) - LGELU__TWO(-30) + INT32_MIN - 1)));
    if (LGELU__FN(any)(odd, w)) {
        v_t h[2];
        m_t thin[2];
        v_many(thin[u] = n_gt(n_set(LGELU__TWO(-30)), y[u]));
        v_many(h[u] = v_select(thin[u], LGELU__FN(raised)(dy[u]), dy[u]));
        v_many(p[u] = v_mul(h[u], v_select(whole[u], r[u], v_mul(f[u], v_set(0.0625f)))));
        v_many(n[u] = n_sub(v_bits(t[u]), n_set(LGELU__ROUND_BITS)));
        v_many(y[u] = n_up(n_max(n_sub(n_select(whole[u], n[u], n_set(0)), n_set(96)), n_set(-255)),
                           23));
        v_many(e[u] = n_select(thin[u], y[u], e[u]));
        v_many(f[u] = v_select(whole[u], v_sub(zero, r[u]), f[u]));
        v_many(whole[u] = m_or(thin[u], m_less(whole[u], odd[u])));
        v_many(v[u] = v_mul(v_mul(x[u], x[u]), g->scale));
        v_many(v[u] = v_fma(l[u], v[u], v[u]));
        /* h·2^n below 2^-126 counts as 0. n may be as small as -197. */
        v_many(h[u] = v_select(n_gt(n_add(n_down(v_bits(v_abs(h[u])), 23), n[u]), n_set(0)),
                               v_times2(h[u], n_up(n[u], 23)), zero));
        v_many(v[u] = v_mul(v[u], h[u]));
        v_many(small[u] = v_select(thin[u], v[u], small[u]));
        v_many(s[u] = v_select(thin[u], zero, s[u]));
    }
    v_many(r[u] = v_abs(p[u]));
    LGELU__FN(assemble)(r, e, w);
    v_many(r[u] = v_sign(r[u], v_float(n_xor(v_bits(dy[u]), v_bits(x[u])))));
    v_many(dy[u] = v_select(whole[u], r[u], v_mul(dy[u], f[u])));
    v_many(x[u] = s[u]);
}

/* The elements of a block of the backward that are processed later: those of the tail, up to
   16.5/λ. */
typedef struct {
    float x[2048 + 32], dy[2048 + 32];
    uint16_t at[1024 / v_lanes];
    b_t lanes[1024 / v_lanes][2];
} LGELU__FN(later_slope);

/* The backward of a pair of vectors: dx, and p·s = dy·x²φ·LGELU__BELL. The elements of the tail are
   packed into todo instead, and `at` counts them. Terms of a tiny x or a thin dy are added to
   at->small as 2^100·scale·dy·x²E. Returns 1 if there was such a term. */
LGELU__WORD int LGELU__FN(slope_pair)(v_t *dx, v_t *p, v_t *s, LGELU__FN(later_slope) * todo,
                                      lgelu__cursor *at, const v_t *dy, const v_t *x,
                                      const LGELU__FN(slopes) * tables)
{
    const v_gate *const g = tables->gate;
    const v_t zero = v_set(0), one = v_set(1), least = v_float(n_set(LGELU__TWO(-63)));
    /* n_gt(below, bits + bias) tests 0 < a < 2^-63 as an unsigned comparison. */
    const n_t bias = n_set(INT32_MAX), below = n_set(LGELU__TWO(-63) - 1 + INT32_MIN);
    v_t a[2], y[2], z[2];
    m_t far[2], between[2], thin[2], tiny[2],
        few = v_nge(v_least(v_least(x[0], x[1]), v_least(dy[0], dy[1])), least);
    /* Whether some x are tiny, and some dy are thin. */
    int short_x = 0, short_dy = 0;
    if (!m_some(few, v_nge(g->last, v_most(x[0], x[1])))) {
        LGELU__FN(slope_middle)(dx, p, s, dy, x, tables);
        return 0;
    }
    v_each(a[u] = v_abs(x[u]));
    v_each(far[u] = v_lt(g->last, a[u]));
    v_each(between[u] = v_lt_of(far[u], a[u], g->right));
    v_each(z[u] = v_select(far[u], zero, x[u]));
    v_each(y[u] = dy[u]);
    /* Without short_x and short_dy the next two are not used. */
    v_each(tiny[u] = far[u]; thin[u] = far[u]);
    if (m_any(few)) {
        v_each(tiny[u] = n_gt(below, n_add(v_bits(a[u]), bias)));
        v_each(thin[u] = n_gt(below, n_add(v_bits(v_abs(dy[u])), bias)));
        short_x = m_some(tiny[0], tiny[1]);
        short_dy = m_some(thin[0], thin[1]);
    }
    if (short_x)
        v_each(z[u] = v_select(tiny[u], zero, z[u]));
    if (short_dy) {
        v_each(thin[u] = m_less(thin[u], n_gt(v_bits(a[u]), n_set(LGELU__TWO(128)))));
        v_each(y[u] = v_select(thin[u], LGELU__FN(raised)(dy[u]), dy[u]));
    }
    if (m_some(between[0], between[1])) {
        todo->at[at->pairs] = (uint16_t)at->i;
        v_each(todo->lanes[at->pairs][u] = (b_t)m_bits(between[u]);
               v_pack(todo->dy + at->count, dy[u], between[u]);
               at->count += v_pack(todo->x + at->count, x[u], between[u]));
        at->pairs++;
    }
    if (m_all(m_and(far[0], far[1]))) {
        /* The product keeps a NaN of dy. */
        v_each(p[u] = v_mul(y[u], zero));
        v_each(s[u] = zero; dx[u] = zero);
    } else {
        LGELU__FN(slope_middle)(dx, p, s, y, z, tables);
    }
    v_each(dx[u] = v_select(far[u], v_mul(y[u], v_select(v_lt(zero, x[u]), one, zero)), dx[u]));
    /* x² below 2^-220 counts as 0, and so does its product with dy where that is subnormal. */
    if (short_x) {
        n_t n[2];
        if (short_dy)
            v_each(tiny[u] = m_less(tiny[u], thin[u]));
        v_each(z[u] = v_select(m_and(tiny[u], n_gt(v_bits(a[u]), n_set(LGELU__TWO(-110)))), a[u],
                               zero));
        v_each(z[u] = v_mul(z[u], v_float(n_set(LGELU__TWO(50)))));
        v_each(z[u] = v_mul(v_mul(z[u], z[u]), g->scale));
        v_each(n[u] = n_add(n_down(v_bits(v_abs(dy[u])), 23), n_down(v_bits(z[u]), 23)));
        v_each(z[u] = v_select(n_gt(n[u], n_set(127)), z[u], zero));
        v_each(float *to = at->small + ((at->i + u * v_lanes) & 15);
               v_store(to, v_fma(v_select(tiny[u], dy[u], zero), z[u], v_load(to))));
    }
    if (short_dy) {
        v_t r[2];
        n_t n[2];
        v_each(r[u] = v_mul(v_select(thin[u], p[u], zero),
                            v_set((float)(2.50662827463100050242 / LGELU__BELL))));
        v_each(float *to = at->small + ((at->i + u * v_lanes) & 15);
               v_store(to, v_fma(r[u], v_mul(s[u], g->scale), v_load(to))));
        v_each(p[u] = v_select(thin[u], zero, p[u]));
        v_each(r[u] = v_abs(dx[u]));
        v_each(n[u] = n_set(LGELU__EXPONENT(-100)));
        LGELU__FN(assemble)(r, n, 2);
        v_each(dx[u] = v_select(thin[u], v_sign(r[u], dx[u]), dx[u]));
    }
    return short_x | short_dy;
}

/* total[j] += part[j]·unit, and part[j] = 0. It is called after at most 256 terms, so that a sum in
   float has at most 16 of them in each of the 16 virtual lanes. */
LGELU__WORD void LGELU__FN(flush)(double *total, float *part, double unit)
{
    int j;
    for (j = 0; j < 16; j++) {
        total[j] = fma((double)part[j], unit, total[j]);
        part[j] = 0;
    }
}

/* The same for a sum in vectors. part is 0 before and after. */
LGELU__WORD void LGELU__FN(flush_sum)(double *total, v_t *sum, float *part, double unit)
{
    size_t q;
    for (q = 0; q < v_parts; q++) {
        v_store(part + q * v_lanes, sum[q]);
        sum[q] = v_set(0);
    }
    LGELU__FN(flush)(total, part, unit);
}

/* Evaluates the backward's tail for `count` packed elements, in place, and adds the terms of the
   sum to total and to small. part is 0 before and after. */
LGELU__APART LGELU__TARGET void LGELU__FN(backward_tail)(LGELU__FN(later_slope) * todo,
                                                         size_t count, double *total, float *part,
                                                         float *small, lgelu__constants *gate,
                                                         double unit)
{
    v_gate g;
    size_t j, at;
    if (!(gate->c > 0))
        lgelu__prepare_tail(gate, fma(0.39894228040143267794, (double)gate->lambda, 0.0));
    g = LGELU__FN(same)(gate);
    /* The fillers add 0 to the sums. */
    v_each(v_store(todo->x + count + u * v_lanes, g.last);
           v_store(todo->dy + count + u * v_lanes, v_set(0)));
    for (j = 0; j < count; j += v_lanes) {
        v_t a = v_load(todo->x + j), b = v_load(todo->dy + j), c;
        LGELU__FN(slope_beyond)(&b, &a, &c, &g, 1);
        v_store(todo->dy + j, b);
        at = j & 15;
        v_store(part + at, v_add(v_load(part + at), a));
        v_store(small + at, v_add(v_load(small + at), c));
        if (((j + v_lanes) & 255) == 0)
            LGELU__FN(flush)(total, part, unit * 1048576);
    }
    LGELU__FN(flush)(total, part, unit * 1048576);
}

/* The backward of at most 2048 elements: writes dx, and adds to the 16 virtual lanes of total first
   the terms of the middle, then those of the tail, then the small ones, each in the order of the
   elements. unit is the unit of the latter two. */
LGELU__APART LGELU__TARGET void LGELU__FN(backward_block)(float *dx, double *total, const float *dy,
                                                          const float *x, lgelu__constants *gate,
                                                          double unit, size_t n)
{
    v_gate g = LGELU__FN(same)(gate);
    LGELU__FN(later_slope) todo;
    float part[16] = { 0 }, small[16] = { 0 };
    lgelu__cursor at = { 0, 0, 0, NULL };
    v_t sum[v_parts + 1], a[2], b[2];
    size_t i, j;
    int rare = 0;
    LGELU__ROWS(slope, slope);
    LGELU__ROWS(bell, bell);
    const LGELU__FN(slopes) tables = { &g, slope, bell };
    at.small = small;
    for (j = 0; j < v_parts; j++)
        sum[j] = v_set(0);
    for (j = 0; j * 2 * v_lanes < n; j++) {
        v_t d[2], p[2], s[2];
        i = j * 2 * v_lanes;
        LGELU__FN(load2)(a, x + i, n - i);
        LGELU__FN(load2)(b, dy + i, n - i);
        v_each(LGELU__AHEAD(x, i + u * v_lanes); LGELU__AHEAD(dy, i + u * v_lanes));
        at.i = i;
        rare |= LGELU__FN(slope_pair)(d, p, s, &todo, &at, b, a, &tables);
        v_each(sum[(2 * j + u) % v_parts] = v_fma(p[u], s[u], sum[(2 * j + u) % v_parts]));
        if (((i + 2 * v_lanes) & 255) == 0 || i + 2 * v_lanes >= n) {
            LGELU__FN(flush_sum)(total, sum, part, 1 / LGELU__BELL);
        }
        if (dx)
            LGELU__FN(store2)(dx + i, d, n - i);
    }
    if (at.count) {
        LGELU__FN(backward_tail)(&todo, at.count, total, part, small, gate, unit);
        j = 0;
        for (i = 0; dx && i < at.pairs; i++)
            v_each(j += v_unpack(dx + todo.at[i] + u * v_lanes, todo.dy + j, todo.lanes[i][u]));
    }
    if (at.count || rare)
        LGELU__FN(flush)(total, small, unit * 7.88860905221011805e-31);
}

/* The backward of the limit λ = inf. */
LGELU__APART LGELU__TARGET void LGELU__FN(relu_backward)(float *dx, const float *dy, const float *x,
                                                         size_t n)
{
    const v_t zero = v_set(0);
    size_t i;
    for (i = 0; dx && i < n; i += v_lanes) {
        const v_t a = v_load_n(x + i, n - i), b = v_load_n(dy + i, n - i);
        const m_t above =
            m_and(n_gt(v_bits(a), n_set(0)), n_gt(n_set(LGELU__TWO(128) + 1), v_bits(a)));
        /* Adding 0 turns a -0 of v_max into 0. */
        const v_t r = v_mul(b, v_add(v_max(zero, a), zero));
        v_store_n(dx + i, LGELU__FN(one_nan)(v_select(above, b, r)), n - i);
    }
}

#ifdef LGELU__FIRST_PASS
/* The backward of a large array, like forward_past: dx is stored past the caches, block by block.
   Returns how many elements are done. */
static size_t lgelu__backward_past(float *dx, double *total, const float *dy, const float *x,
                                   lgelu__constants *g, double unit, size_t n,
                                   lgelu__backward_block *block)
{
    const size_t head = lgelu__to_line((uintptr_t)dx), rest = (16 - head) % 16, end = 2048 - rest;
    /* t has the same offset within a cache line as dx. */
    float buffer[2048 + 32], *t = buffer + lgelu__to_line((uintptr_t)buffer) + rest;
    size_t i, j;
    for (i = 0; n - i >= 2048; i += 2048) {
        block(t, total, dy + i, x + i, g, unit, 2048);
        memcpy(dx + i, t, head * sizeof *t);
        for (j = head; j < end; j += v_lanes)
            v_stream(dx + i + j, v_load(t + j));
        memcpy(dx + i + end, t + end, (2048 - end) * sizeof *t);
    }
    v_fence();
    return i;
}

/* Returns the sum of a backward. If dx has a NaN, so has the sum: then every NaN becomes the one of
   this file. */
LGELU__APART double lgelu__backward_end(float *dx, double sum, size_t n)
{
    size_t i;
    if (!(sum != sum))
        return sum;
    for (i = 0; dx && i < n; i += v_lanes)
        v_store_n(dx + i, LGELU__FN(one_nan)(v_load_n(dx + i, n - i)), n - i);
    return (double)LGELU__NAN;
}

/* The backward by an instruction set's functions. */
LGELU__APART double lgelu__backward_by(float *dx, const float *dy, const float *x, float lambda,
                                       size_t n, lgelu__backward_block *block,
                                       lgelu__relu_backward *relu)
{
    lgelu__constants g;
    double total[16] = { 0 }, unit;
    size_t i = 0;
    if (lambda > FLT_MAX) {
        relu(dx, dy, x, n);
        return 0;
    }
    if (!lgelu__ordinary_backward(lambda)) {
        total[0] =
            lgelu__backward_extreme(dx, dy, x, lambda, n, lgelu_exact_dx, lgelu_exact_dlambda);
        return lgelu__backward_end(dx, total[0], n);
    }
    g = lgelu__prepare(lambda, -16.5f, 16.5f);
    unit = 0.39894228040143267794 / (double)g.scale;
    if (dx && dx != dy && dx != x && n >= LGELU__STREAM)
        i = lgelu__backward_past(dx, total, dy, x, &g, unit, n, block);
    for (; i < n; i += 2048)
        block(dx ? dx + i : dx, total, dy + i, x + i, &g, unit, n - i < 2048 ? n - i : 2048);
    lgelu__fold16(total);
    return lgelu__backward_end(dx, total[0], n);
}
#endif

static LGELU__TARGET double LGELU__FN(phi_backward)(float *dx, const float *dy, const float *x,
                                                    float lambda, size_t n)
{
    return lgelu__backward_by(dx, dy, x, lambda, n, LGELU__FN(backward_block),
                              LGELU__FN(relu_backward));
}

/* One λ per channel. If inner is not 1, the elements of a channel are contiguous. If it is 1, eight
   channels and 256 rows at a time are transposed into such arrays, and transposed back. The forward
   transposes only channels that fill no vector or have an extreme λ. */

/* Transposes a matrix: to[c][r] = from[r][c]. The eight channels fill no vector of 16 lanes, so
   that AVX-512 has the function of AVX2. */
#if v_lanes > 8
#define v_transpose lgelu__turn_avx2
#else
#define v_transpose LGELU__FN(turn)
static LGELU__TARGET void LGELU__FN(turn)(float *to, size_t to_row, const float *from,
                                          size_t from_row, size_t rows, size_t columns)
{
    size_t r, c, q;
    for (r = 0; r + v_lanes <= rows; r += v_lanes) {
        for (c = 0; c + 4 <= columns; c += 4) {
            v_t t[4];
            v_turn(t, from + r * from_row + c, from_row);
            LGELU__UNROLL
            for (q = 0; q < 4; q++)
                v_store(to + (c + q) * to_row + r, t[q]);
        }
        for (; c < columns; c++) {
            for (q = r; q < r + v_lanes; q++)
                to[c * to_row + q] = from[q * from_row + c];
        }
    }
    for (; r < rows; r++) {
        for (c = 0; c < columns; c++)
            to[c * to_row + r] = from[r * from_row + c];
    }
}
#endif

LGELU__APART LGELU__TARGET v_t LGELU__FN(beyond_one)(v_t x, const v_gate *g)
{
    LGELU__FN(beyond)(&x, g, 1);
    return x;
}

/* The gate of v_lanes channels, with a λ for each lane. Nothing is packed, since the constants of a
   packed element would have to be packed with it. */
static LGELU__TARGET void LGELU__FN(forward_lanes)(float *y, const float *x, lgelu__constants *gate,
                                                   size_t rows, size_t row)
{
    v_gate g, tail;
    size_t i, k;
    LGELU__ROWS(table, middle);
    LGELU__FN(various)(&g, gate);
    tail = g;
    for (i = 0; i < rows; i += 2) {
        const size_t at[2] = { i * row, (i + 1 < rows ? i + 1 : i) * row };
        v_t a[2], r[2], z[2];
        m_t far[2], between[2];
        int sorted;
        v_each(a[u] = v_load(x + at[u]));
        sorted = LGELU__FN(forward_sort)(a, r, far, between, &g, 2);
        if (sorted)
            v_each(z[u] = v_select(between[u], a[u], g.last));
        LGELU__FN(forward_sorted)(a, r, far, sorted, &g, table, 2);
        if (sorted) {
            /* The constants of the tail are prepared when an element first needs them. */
            if (m_some(between[0], between[1]) && !(gate->c > 0)) {
                for (k = 0; k < v_lanes; k++)
                    lgelu__prepare_forward_tail(gate + k);
                LGELU__FN(various)(&tail, gate);
            }
            v_each(if (m_any(between[u])) {
                z[u] = LGELU__FN(beyond_one)(z[u], &tail);
                a[u] = v_select(between[u], z[u], a[u]);
            });
        }
        v_each(v_store(y + at[u], a[u]));
    }
}

static LGELU__TARGET void LGELU__FN(forward_channels)(float *y, const float *x, const float *lambda,
                                                      size_t outer, size_t channels, size_t inner)
{
    size_t c, o, j, k, m, w, rows, at, ordinary;
    lgelu__constants gate[16];
    float t[8][256];
    if (inner != 1) {
        for (c = 0; c < channels; c++) {
            for (o = 0; o < outer; o++) {
                LGELU__FN(phi_forward)
                (y + (o * channels + c) * inner, x + (o * channels + c) * inner, lambda[c], inner);
            }
        }
        return;
    }
    for (c = 0; c < channels; c += 16) {
        m = channels - c < 16 ? channels - c : 16;
        for (ordinary = 0; ordinary < m && lgelu__ordinary(lambda[c + ordinary]); ordinary++)
            gate[ordinary] = lgelu__prepare_forward(lambda[c + ordinary]);
        for (o = 0; o < outer; o += 256) {
            rows = outer - o < 256 ? outer - o : 256;
            at = o * channels + c;
            for (j = 0; j + v_lanes <= ordinary; j += v_lanes)
                LGELU__FN(forward_lanes)(y + at + j, x + at + j, gate + j, rows, channels);
            for (; j < m; j += w) {
                w = m - j < 8 ? m - j : 8;
                v_transpose(t[0], 256, x + at + j, channels, rows, w);
                for (k = 0; k < w; k++)
                    LGELU__FN(phi_forward)(t[k], t[k], lambda[c + j + k], rows);
                v_transpose(y + at + j, channels, t[0], 256, w, rows);
            }
        }
    }
}

static LGELU__TARGET void LGELU__FN(backward_channels)(float *dx, double *dlambda, const float *dy,
                                                       const float *x, const float *lambda,
                                                       size_t outer, size_t channels, size_t inner)
{
    size_t c, o, j, m, rows, at;
    float t[8][256], s[8][256];
    for (c = 0; inner != 1 && c < channels; c++) {
        for (o = 0; o < outer; o++) {
            at = (o * channels + c) * inner;
            dlambda[c] +=
                LGELU__FN(phi_backward)(dx ? dx + at : dx, dy + at, x + at, lambda[c], inner);
        }
    }
    for (c = 0; inner == 1 && c < channels; c += 8) {
        for (o = 0; o < outer; o += 256) {
            at = o * channels + c;
            m = channels - c < 8 ? channels - c : 8;
            rows = outer - o < 256 ? outer - o : 256;
            v_transpose(t[0], 256, x + at, channels, rows, m);
            v_transpose(s[0], 256, dy + at, channels, rows, m);
            for (j = 0; j < m; j++) {
                dlambda[c + j] +=
                    LGELU__FN(phi_backward)(dx ? s[j] : NULL, s[j], t[j], lambda[c + j], rows);
            }
            if (dx)
                v_transpose(dx + at, channels, s[0], 256, m, rows);
        }
    }
}

/* ---- [Kc] other gates: the tanh approximation, SiLU, ELU ---- */
/* METHOD. f = xσ(v) = x/(1 + E) with E = e^-v = 2^(x(A + Bx²)) has no cancellation for either sign,
   and is accurate to less than 3 ulp with one division. x² is used with its rounding error, and
   A + Bx² is the sum of two floats. This path is for 2^-30 <= abs(x) <= 9.75. For other x, f is
   x/2, x or -0, except from -11 to -9.75, where it is the tiny -abs(x)·E. f' is tabulated like that
   of the gate for abs(x) < 3.99. Beyond, f'(-w) = E(P + E(1 - 2P)) with P = 1 - wv'(w) and E =
   e^-v(w). */

/* -log2(e)·v = n + f, where n is the integer in the low bits of t. */
LGELU__WORD void LGELU__FN(tanh_exponent)(v_t *t, v_t *f, const v_t *x, const int w)
{
    const v_t magic = v_set(LGELU__ROUND), A = v_set(lgelu__tanh[0]), B = v_set(lgelu__tanh[2]);
    v_t s[2], l[2], g[2], h[2];
    v_many(s[u] = v_mul(x[u], x[u]));
    v_many(l[u] = v_fms(x[u], x[u], s[u]));
    v_many(g[u] = v_fma(s[u], B, A));
    v_many(h[u] = v_fma(s[u], v_set(lgelu__tanh[3]), v_set(lgelu__tanh[1])));
    v_many(t[u] = v_fma(x[u], g[u], magic));
    v_many(s[u] = v_fma(s[u], B, v_sub(A, g[u])));
    v_many(h[u] = v_fma(l[u], B, h[u]));
    v_many(f[u] = v_fma(x[u], g[u], v_sub(magic, t[u])));
    v_many(f[u] = v_fma(x[u], v_add(s[u], h[u]), f[u]));
}

/* Returns y with its lanes `out` corrected, in which abs(x) is below 2^-30 or above 9.75. Like most
   functions for rare lanes it takes one vector, and is called for each of the two. */
LGELU__APART LGELU__TARGET v_t LGELU__FN(tanh_rest)(v_t y, v_t x, m_t out)
{
    const m_t tiny = n_gt(n_set(LGELU__TWO(-30)), v_bits(v_abs(x))),
              deep = m_and(v_lt(x, v_set(-9.75f)), v_lt(v_set(-11), x));
    v_t c, t, f, e, r;
    y = v_select(out, v_max(v_set(-0.0f), x), y);
    if (m_any(tiny))
        y = v_select(tiny, v_sign(LGELU__FN(half)(v_abs(x)), x), y);
    if (!m_any(deep))
        return y;
    c = v_select(deep, x, v_set(-10));
    LGELU__FN(tanh_exponent)(&t, &f, &c, 1);
    f = v_sub(v_set(0), f);
    LGELU__FN(exp2m1)(&e, &f, 1);
    e = v_fma(f, v_fma(f, e, v_set(lgelu__exp2[0])), v_set(0));
    c = v_times2(v_abs(c), n_up(n_sub(n_set(LGELU__ROUND_BITS + 100), v_bits(t)), 23));
    t = v_set(0);
    LGELU__FN(lowered)(&r, &c, &e, &t, 1);
    return v_select(deep, r, y);
}

static LGELU__TARGET void LGELU__FN(tanh_forward)(float *y, const float *x, float unused, size_t n)
{
    const v_t one = v_set(1);
    /* 0x411C0000 is 9.75. */
    const n_t least = n_set(LGELU__TWO(-30) + INT32_MIN),
              most = n_set(0x411C0000 - LGELU__TWO(-30) + INT32_MIN);
    size_t i;
    (void)unused;
    for (i = 0; i < n; i += 2 * v_lanes) {
        v_t a[2], c[2], t[2], f[2], e[2];
        m_t out[2];
        int any;
        v_each(LGELU__AHEAD(x, i + u * v_lanes));
        LGELU__FN(load2)(a, x + i, n - i);
        v_each(out[u] = n_gt(n_sub(v_bits(v_abs(a[u])), least), most));
        any = m_some(out[0], out[1]);
        v_each(c[u] = a[u]);
        if (any)
            v_each(c[u] = v_select(out[u], one, a[u]));
        LGELU__FN(tanh_exponent)(t, f, c, 2);
        LGELU__FN(exp2m1)(e, f, 2);
        v_each(e[u] = v_fma(f[u], e[u], v_set(lgelu__exp2[0])));
        v_each(e[u] = v_fma(f[u], e[u], one));
        v_each(e[u] = v_times2(e[u], n_up(v_bits(t[u]), 23)));
        v_each(c[u] = v_div(c[u], v_add(one, e[u])));
        if (any)
            v_each(c[u] = LGELU__FN(tanh_rest)(c[u], a[u], out[u]));
        LGELU__FN(store2)(y + i, c, n - i);
    }
}

/* dx = dy·s·2^n, assembled in integers; NaN where x is NaN. A dy in the lanes `thin` is below 2^-27
   and so small that dy·s might be below 2^-126. */
LGELU__WORD void LGELU__FN(assemble_product)(v_t *dx, const v_t *dy, const v_t *x, const v_t *s,
                                             n_t *n, m_t *thin, const int w)
{
    v_t d[2], p[2];
    v_many(d[u] = dy[u]);
    if (LGELU__FN(any)(thin, w)) {
        v_many(d[u] = v_select(thin[u], LGELU__FN(raised)(dy[u]), dy[u]));
        v_many(n[u] = n_select(thin[u], n_sub(n[u], n_set(100)), n[u]));
    }
    v_many(p[u] = v_mul(d[u], s[u]));
    v_many(d[u] = v_select(n_gt(n_set(-255), n[u]), v_set(0), v_abs(p[u])));
    v_many(n[u] = n_up(n_max(n[u], n_set(-255)), 23));
    LGELU__FN(assemble)(d, n, w);
    /* 0, inf and NaN are the result as they are. */
    v_many(n[u] = n_add(v_bits(v_abs(p[u])), n_set(INT32_MAX)));
    v_many(dx[u] = v_select(n_gt(n_set(LGELU__TWO(128) - 1 + INT32_MIN), n[u]), v_sign(d[u], p[u]),
                            p[u]));
    v_many(dx[u] = LGELU__FN(one_nan)(
               v_select(n_gt(v_bits(v_abs(x[u])), n_set(LGELU__TWO(128))), x[u], dx[u])));
}

/* The bits of 3.99, where the table of f' ends. */
enum { LGELU__FN(tanh_last) = 0x407F5C28 };

/* The backward of two vectors in which an abs(x) is beyond the table, an abs(dy) is below 2^-80 but
   not 0, or something is NaN. dx = dy·s·2^n is assembled in integers. */
LGELU__APART LGELU__TARGET void LGELU__FN(tanh_slope_rest)(v_t *dx, const v_t *dy, const v_t *x,
                                                           const v_t *slope)
{
    const v_t zero = v_set(0), one = v_set(1), C = v_set(lgelu__tanh[4]), D = v_set(lgelu__tanh[6]);
    const n_t last = n_set(LGELU__FN(tanh_last)), none = n_set(0);
    v_t w[2], t[2], f[2], e[2], h[2], p[2], s[2];
    n_t n[2], b[2];
    m_t far[2], left[2], thin[2];
    v_each(b[u] = v_bits(v_abs(x[u])));
    v_each(left[u] = n_gt(none, v_bits(x[u])));
    v_each(far[u] = n_gt(b[u], last));
    /* w is abs(x), limited to 3.99 and 11. */
    v_each(w[u] = v_float(n_max(last, n_min(n_set(0x41300000), b[u]))));
    LGELU__FN(tanh_exponent)(t, f, w, 2);
    LGELU__FN(exp2m1)(e, f, 2);
    v_each(e[u] = v_fma(f[u], v_fma(f[u], e[u], v_set(lgelu__exp2[0])), zero));
    v_each(n[u] = n_sub(v_bits(t[u]), n_set(LGELU__ROUND_BITS)));
    v_each(t[u] = v_mul(w[u], w[u]));
    v_each(h[u] = v_fma(t[u], D, C));
    v_each(p[u] = v_add(v_fma(t[u], D, v_sub(C, h[u])),
                        v_fma(t[u], v_set(lgelu__tanh[7]), v_set(lgelu__tanh[5]))));
    v_each(p[u] = v_fnma(w[u], h[u], v_fnma(w[u], p[u], one)));
    /* h = E. */
    v_each(h[u] = v_times2(v_add(e[u], one), n_up(n_max(n[u], n_set(-100)), 23)));
    v_each(p[u] = v_fma(h[u], v_fnma(v_set(2), p[u], one), p[u]));
    /* f'(-w) = s·2^n. */
    v_each(s[u] = v_fma(e[u], p[u], p[u]));
    /* p = f'(w). */
    v_each(p[u] = v_sub(one, v_times2(s[u], n_up(n_max(n[u], n_set(-100)), 23))));
    v_each(n[u] = n_select(n_gt(b[u], n_set(0x412FFFFF)), n_set(-300), n_add(n[u], n_set(10))));
    /* 2^10 is moved from s to n, since dy·s must not overflow. */
    v_each(s[u] = v_select(left[u], v_times2(s[u], n_set(LGELU__EXPONENT(-10))), p[u]));
    v_each(s[u] = v_select(far[u], s[u], slope[u]));
    v_each(n[u] = n_select(m_and(far[u], left[u]), n[u], none));
    v_each(thin[u] = n_gt(n_set(LGELU__TWO(-100)), v_bits(v_abs(dy[u]))));
    LGELU__FN(assemble_product)(dx, dy, x, s, n, thin, 2);
}

static LGELU__TARGET double LGELU__FN(tanh_backward)(float *dx, const float *dy, const float *x,
                                                     float unused, size_t n)
{
    const v_t one = v_set(1), least = v_float(n_set(LGELU__TWO(-80)));
    const n_t last = n_set(LGELU__FN(tanh_last));
    size_t i;
    (void)unused;
    for (i = 0; dx && i < n; i += 2 * v_lanes) {
        v_t a[2], b[2], w[2], d[2], q[2];
        i_t j[2];
        m_t out[2];
        int k;
        v_each(LGELU__AHEAD(x, i + u * v_lanes); LGELU__AHEAD(dy, i + u * v_lanes));
        LGELU__FN(load2)(a, x + i, n - i);
        LGELU__FN(load2)(b, dy + i, n - i);
        v_each(w[u] = v_float(n_max(n_set(LGELU__TWO(-40)), v_bits(v_abs(a[u])))));
        v_each(j[u] = v_index(n_down(v_bits(v_fma(w[u], v_set(2), v_set(8))), 20)));
        v_each(d[u] = v_add(w[u], v_table(lgelu__tanh_slope[0], j[u])));
        v_each(q[u] = v_table(lgelu__tanh_slope[8], j[u]));
        LGELU__UNROLL
        for (k = 7; k > 2; k--)
            v_each(q[u] = v_fma(d[u], q[u], v_table(lgelu__tanh_slope[k], j[u])));
        v_each(q[u] = v_fma(v_mul(d[u], d[u]), q[u], v_table(lgelu__tanh_slope[1], j[u])));
        v_each(q[u] = v_fma(d[u], v_table(lgelu__tanh_slope[2], j[u]), q[u]));
        v_each(q[u] = v_select(n_gt(n_set(0), v_bits(a[u])), q[u], v_sub(one, q[u])));
        v_each(out[u] = m_and(v_nge(v_abs(b[u]), least), n_gt(v_bits(v_abs(b[u])), n_set(0))));
        v_each(out[u] = m_or(out[u], n_gt(v_bits(w[u]), last)));
        if (m_some(out[0], out[1])) {
            /* Copies, since what a function receives by its address is kept in memory. */
            v_t r[4][2];
            v_each(r[1][u] = b[u]; r[2][u] = a[u]; r[3][u] = q[u]);
            LGELU__FN(tanh_slope_rest)(r[0], r[1], r[2], r[3]);
            v_each(d[u] = r[0][u]);
        } else {
            v_each(d[u] = v_mul(b[u], q[u]));
        }
        LGELU__FN(store2)(dx + i, d, n - i);
    }
    return 0;
}

/* ---- SiLU ---- */
/* METHOD. f = xσ(z) = x/(1 + E) with z = βx and E = e^-z = 2^(x·(h + l)), where h + l = -β·log2(e)
   is the sum of two floats, so that z is never rounded. There is no cancellation for either sign.
   This path is for 2^-63 <= abs(x) <= edge. For other x, f is x/2, x or -0, or for x < -edge a
   result that may be below 2^-126.

   The backward uses a = abs(z) and e = e^-a <= 1:
     g = e/(1 + e)²,  f'(-a) = g·(1 + e - a),  f'(a) = 1 - f'(-a),  dβ = Σ dy·x²g.
   1 + e - a is computed from a as the sum of two floats, and within 1/4 of its root at 1.2784645
   from a Taylor series in the distance from the root, so that f' is relatively accurate there. */

/* E = 2^(x·(h + l)) = (1 + f·p)·2^n, where n is the integer in the low bits of t. */
LGELU__WORD void LGELU__FN(sigmoid_exponential)(v_t *p, v_t *f, v_t *t, const v_t *x,
                                                const lgelu__silu_constants *s, const int w)
{
    const v_t magic = v_set(LGELU__ROUND), h = v_set(s->h), l = v_set(s->l);
    v_many(t[u] = v_fma(x[u], h, magic));
    v_many(f[u] = v_fma(x[u], h, v_sub(magic, t[u])));
    v_many(f[u] = v_fma(x[u], l, f[u]));
    LGELU__FN(exp2m1)(p, f, w);
    v_many(p[u] = v_fma(f[u], p[u], v_set(lgelu__exp2[0])));
}

/* Returns y with its lanes `out` corrected, in which abs(x) is below 2^-63 or above edge, or x is
   NaN. For x < -edge it is x·2^-n·(1 + p), since 1 + E is E there. */
LGELU__APART LGELU__TARGET v_t LGELU__FN(silu_rest)(v_t y, v_t x, m_t out,
                                                    const lgelu__silu_constants *s)
{
    const v_t zero = v_set(0), edge = v_set(s->edge), left = v_set(s->left);
    const m_t tiny = n_gt(n_set(LGELU__TWO(-63)), v_bits(v_abs(x))),
              deep = m_and(v_lt(x, v_sub(zero, edge)), v_lt(v_sub(zero, left), x));
    v_t c, t, e, f, r;
    y = v_select(out, v_max(v_set(-0.0f), x), y);
    if (m_any(tiny))
        y = v_select(tiny, v_sign(LGELU__FN(half)(v_abs(x)), x), y);
    if (!m_any(deep))
        return y;
    c = v_select(deep, v_abs(x), edge);
    LGELU__FN(sigmoid_exponential)(&e, &f, &t, &c, s, 1);
    e = v_fma(f, e, zero);
    c = v_times2(c, n_up(n_sub(v_bits(t), n_set(LGELU__ROUND_BITS - 100)), 23));
    t = zero;
    LGELU__FN(lowered)(&r, &c, &e, &t, 1);
    return v_select(deep, r, y);
}

static LGELU__TARGET void LGELU__FN(silu_forward)(float *y, const float *x, float beta, size_t n)
{
    const v_t one = v_set(1);
    const n_t least = n_set(LGELU__TWO(-63) + INT32_MIN);
    lgelu__silu_constants s;
    n_t most;
    size_t i;
    if (beta > FLT_MAX) {
        LGELU__FN(relu)(y, x, NULL, n);
        return;
    }
    if (!lgelu__ordinary(beta)) {
        lgelu__forward_extreme(y, x, beta, n, lgelu_exact_silu);
        return;
    }
    s = lgelu__prepare_silu(beta);
    most = n_set((int32_t)(lgelu__bits(s.edge) - LGELU__TWO(-63)) + INT32_MIN);
    for (i = 0; i < n; i += 2 * v_lanes) {
        v_t a[2], c[2], t[2], e[2], f[2];
        m_t out[2];
        int any;
        v_each(LGELU__AHEAD(x, i + u * v_lanes));
        LGELU__FN(load2)(a, x + i, n - i);
        v_each(out[u] = n_gt(n_sub(v_bits(v_abs(a[u])), least), most));
        any = m_some(out[0], out[1]);
        v_each(c[u] = a[u]);
        if (any)
            v_each(c[u] = v_select(out[u], v_set(s.last), a[u]));
        LGELU__FN(sigmoid_exponential)(e, f, t, c, &s, 2);
        v_each(e[u] = v_fma(f[u], e[u], one));
        v_each(e[u] = v_times2(e[u], n_up(v_bits(t[u]), 23)));
        v_each(c[u] = v_div(c[u], v_add(one, e[u])));
        if (any)
            v_each(c[u] = LGELU__FN(silu_rest)(c[u], a[u], out[u], &s));
        LGELU__FN(store2)(y + i, c, n - i);
    }
}

/* f' and g at w = abs(x), limited to 2^-63 and last. */
LGELU__WORD void LGELU__FN(silu_slope)(v_t *slope, v_t *g, v_t *w, const v_t *x,
                                       const lgelu__silu_constants *s)
{
    const v_t one = v_set(1), beta = v_set(s->beta), root = v_set(1.27846456f);
    const n_t least = n_set(LGELU__TWO(-63)), last = n_set((int32_t)lgelu__bits(s->last));
    v_t e[2], f[2], t[2], m[2], d[2], q[2];
    int k;
    v_each(w[u] = v_float(n_min(last, n_max(least, v_bits(v_abs(x[u]))))));
    LGELU__FN(sigmoid_exponential)(e, f, t, w, s, 2);
    v_each(e[u] = v_times2(v_fma(f[u], e[u], one), n_up(v_bits(t[u]), 23)));
    v_each(g[u] = v_div(e[u], v_fma(e[u], v_add(e[u], v_set(2)), one)));
    /* m = 1 + e - a, where a = q + t. */
    v_each(q[u] = v_mul(w[u], beta));
    v_each(t[u] = v_fms(w[u], beta, q[u]));
    v_each(m[u] = v_sub(v_add(v_sub(one, q[u]), e[u]), t[u]));
    /* d is the distance from the root. */
    v_each(d[u] = v_sub(v_fms(w[u], beta, root), v_set(-1.29792825e-08f)));
    v_each(q[u] = v_set(lgelu__silu_root[4]));
    LGELU__UNROLL
    for (k = 3; k >= 0; k--)
        v_each(q[u] = v_fma(d[u], q[u], v_set(lgelu__silu_root[k])));
    v_each(q[u] = v_mul(d[u], v_fms(d[u], q[u], root)));
    v_each(m[u] = v_select(v_lt(v_abs(d[u]), v_set(0.25f)), q[u], m[u]));
    v_each(q[u] = v_mul(g[u], m[u]));
    v_each(slope[u] = v_select(n_gt(n_set(0), v_bits(x[u])), q[u], v_sub(one, q[u])));
}

/* What the backward of a vector computes: dx, and the terms of the sum. */
typedef struct {
    v_t dx, terms;
} LGELU__FN(silu_result);

/* The backward of a vector in which an abs(x) is far (above last) or tiny (below 2^-45), an abs(dy)
   is thin (below 2^-63), or something is NaN. terms are those of the other lanes; those of such
   lanes become 0, and are added to `small` in units of 2^-100. dx = dy·slope·2^n is assembled in
   integers. e^-a = p·2^n. */
LGELU__APART LGELU__TARGET LGELU__FN(silu_result)
    LGELU__FN(silu_slope_rest)(float *small, v_t terms, v_t dy, v_t x, v_t slope, v_t g,
                               const lgelu__silu_constants *s)
{
    const v_t zero = v_set(0), one = v_set(1), beta = v_set(s->beta);
    const n_t none = n_set(0), bias = n_set(INT32_MAX), last = n_set((int32_t)lgelu__bits(s->last)),
              end = n_set((int32_t)lgelu__bits(s->far_last)), b = v_bits(v_abs(x)),
              size = v_bits(v_abs(dy));
    m_t thin = n_gt(n_set(LGELU__TWO(-63) - 1 + INT32_MIN), n_add(size, bias));
    const m_t left = n_gt(none, v_bits(x)), far = n_gt(b, last),
              tiny = n_gt(n_set(LGELU__TWO(-45) - 1 + INT32_MIN), n_add(b, bias)),
              odd = m_or(m_or(far, tiny), thin), nan = n_gt(b, n_set(LGELU__TWO(128)));
    /* Where x is so far that f' is 0 or 1, and dy is an ordinary number, nothing else is needed. */
    const m_t ends = m_less(m_less(far, m_or(n_gt(end, b), nan)),
                            m_or(n_gt(size, n_set(LGELU__TWO(128) - 1)), thin));
    LGELU__FN(silu_result) result;
    v_t w, p, a, m, h;
    n_t n, k;
    result.terms = v_select(odd, zero, terms);
    if (!m_any(m_less(odd, ends))) {
        m = v_select(left, v_set(-0.0f), one);
        result.dx = v_mul(dy, v_select(ends, m, slope));
        return result;
    }
    w = v_float(n_max(last, n_min(end, b)));
    LGELU__FN(sigmoid_exponential)(&p, &h, &a, &w, s, 1);
    p = v_fma(h, p, one);
    n = n_sub(v_bits(a), n_set(LGELU__ROUND_BITS));
    /* m = 1 - a, since 1 + e - a is that beyond last. 2^10 is moved from the slope to n, since
       dy·slope must not overflow. */
    a = v_mul(w, beta);
    m = v_sub(v_sub(one, a), v_fms(w, beta, a));
    m = v_times2(v_mul(p, m), n_set(LGELU__EXPONENT(-10)));
    slope = v_select(far, v_select(left, m, one), slope);
    /* The terms dy·g·x², with g = e^-a for a far x. */
    k = n_select(thin, n, n_add(n, n_set(100)));
    p = v_times2(p, n_up(n_max(k, n_set(-63)), 23));
    p = v_select(n_gt(n_set(-63), k), zero, p);
    p = v_select(far, p, g);
    h = v_select(thin, LGELU__FN(raised)(dy), dy);
    p = v_mul(h, p);
    a = v_mul(v_select(tiny, LGELU__FN(raised)(v_abs(x)), zero), v_float(n_set(LGELU__TWO(-50))));
    w = v_select(far, w, v_abs(x));
    w = v_select(m_less(tiny, thin), a, w);
    w = v_select(v_lt(w, v_float(n_set(LGELU__TWO(-63)))), zero, w);
    p = v_mul(p, v_mul(w, w));
    p = v_select(nan, x, p);
    p = v_select(odd, p, zero);
    p = v_select(v_lt(v_abs(p), v_float(n_set(LGELU__TWO(-100)))), zero, p);
    v_store(small, v_add(v_load(small), p));
    /* dx */
    n = n_select(n_gt(end, b), n_add(n, n_set(10)), n_set(-300));
    n = n_select(m_and(far, left), n, none);
    LGELU__FN(assemble_product)(&result.dx, &dy, &x, &slope, &n, &thin, 1);
    return result;
}

/* dx for at most 2048 elements, and what they add to the 16 virtual lanes of total. A term of the
   sum below 2^-100 counts as 0, so that no sum is subnormal. */
LGELU__APART LGELU__TARGET void LGELU__FN(silu_backward_block)(float *dx, double *total,
                                                               const float *dy, const float *x,
                                                               const lgelu__silu_constants *s,
                                                               size_t n)
{
    const n_t least = n_set(LGELU__TWO(-45) + INT32_MIN),
              most = n_set((int32_t)lgelu__bits(s->last) - LGELU__TWO(-45) + INT32_MIN);
    const v_t zero = v_set(0), thin = v_float(n_set(LGELU__TWO(-63))),
              faint = v_float(n_set(LGELU__TWO(-100)));
    float part[16] = { 0 }, small[16] = { 0 };
    v_t sum[v_parts + 1];
    size_t i, j;
    int rare = 0;
    for (j = 0; j < v_parts; j++)
        sum[j] = zero;
    for (j = 0; j * 2 * v_lanes < n; j++) {
        v_t a[2], b[2], d[2], t[2], w[2], g[2], slope[2];
        m_t out[2];
        i = j * 2 * v_lanes;
        LGELU__FN(load2)(a, x + i, n - i);
        LGELU__FN(load2)(b, dy + i, n - i);
        v_each(LGELU__AHEAD(x, i + u * v_lanes); LGELU__AHEAD(dy, i + u * v_lanes));
        LGELU__FN(silu_slope)(slope, g, w, a, s);
        v_each(out[u] = n_gt(n_sub(v_bits(v_abs(a[u])), least), most));
        v_each(out[u] = m_or(out[u], v_lt(v_abs(b[u]), thin)));
        v_each(d[u] = v_mul(b[u], slope[u]));
        v_each(t[u] = v_mul(v_mul(b[u], g[u]), v_mul(w[u], w[u])));
        if (m_some(out[0], out[1])) {
            v_each(const LGELU__FN(silu_result) rest = LGELU__FN(silu_slope_rest)(
                       small + ((i + u * v_lanes) & 15), t[u], b[u], a[u], slope[u], g[u], s);
                   d[u] = rest.dx; t[u] = rest.terms);
            rare = 1;
        }
        v_each(t[u] = v_select(v_lt(v_abs(t[u]), faint), zero, t[u]));
        v_each(sum[(2 * j + u) % v_parts] = v_add(sum[(2 * j + u) % v_parts], t[u]));
        if (((i + 2 * v_lanes) & 255) == 0 || i + 2 * v_lanes >= n) {
            LGELU__FN(flush_sum)(total, sum, part, 1);
        }
        if (dx)
            LGELU__FN(store2)(dx + i, d, n - i);
    }
    if (rare)
        LGELU__FN(flush)(total, small, 7.88860905221011805e-31);
}

#ifdef LGELU__FIRST_PASS
/* The backward of SiLU by an instruction set's functions. */
LGELU__APART double lgelu__silu_backward_by(float *dx, const float *dy, const float *x, float beta,
                                            size_t n, lgelu__silu_backward_block *block,
                                            lgelu__relu_backward *relu)
{
    lgelu__silu_constants s;
    double total[16] = { 0 };
    size_t i;
    if (beta > FLT_MAX) {
        relu(dx, dy, x, n);
        return 0;
    }
    if (!lgelu__ordinary_backward(beta)) {
        total[0] = lgelu__backward_extreme(dx, dy, x, beta, n, lgelu_exact_silu_dx,
                                           lgelu_exact_silu_dbeta);
        return lgelu__backward_end(dx, total[0], n);
    }
    s = lgelu__prepare_silu(beta);
    for (i = 0; i < n; i += 2048)
        block(dx ? dx + i : dx, total, dy + i, x + i, &s, n - i < 2048 ? n - i : 2048);
    lgelu__fold16(total);
    return lgelu__backward_end(dx, total[0], n);
}
#endif

static LGELU__TARGET double LGELU__FN(silu_backward)(float *dx, const float *dy, const float *x,
                                                     float beta, size_t n)
{
    return lgelu__silu_backward_by(dx, dy, x, beta, n, LGELU__FN(silu_backward_block),
                                   LGELU__FN(relu_backward));
}

/* ---- ELU ---- */
/* METHOD. x = n·ln 2 + r with abs(r) <= 0.35, and e^x = (1 + q)·2^n, where q = e^r - 1 is the
   Taylor series up to r^7, whose error is 5e-9. f = q·2^n + (2^n - 1), in which 2^n - 1 is exact
   where it matters, and 0 for x > -0.34: nothing cancels there, since r is x itself. For x > 0 and
   for abs(x) < 2^-25 f is x. */

/* Computes q and n for x <= 0. */
LGELU__WORD void LGELU__FN(elu_exponential)(v_t *q, n_t *n, const v_t *x)
{
    const v_t magic = v_set(LGELU__ROUND);
    /* 1/7!, 1/6!, ..., 1/2!. */
    static const float factorial[6] = { 1.98412698e-4f, 1.38888889e-3f, 8.33333333e-3f,
                                        4.16666667e-2f, 1.66666667e-1f, 0.5f };
    v_t t[2], r[2], p[2];
    int k;
    v_each(t[u] = v_fma(x[u], v_set(1.44269504f), magic));
    v_each(n[u] = n_sub(v_bits(t[u]), n_set(LGELU__ROUND_BITS)));
    v_each(t[u] = v_sub(t[u], magic));
    v_each(r[u] = v_fnma(t[u], v_set(0.693359375f), x[u]));
    v_each(r[u] = v_fnma(t[u], v_set(-2.12194440e-4f), r[u]));
    v_each(p[u] = v_set(factorial[0]));
    LGELU__UNROLL
    for (k = 1; k < 6; k++)
        v_each(p[u] = v_fma(r[u], p[u], v_set(factorial[k])));
    v_each(q[u] = v_fma(v_mul(r[u], r[u]), p[u], r[u]));
}

static LGELU__TARGET void LGELU__FN(elu_forward)(float *y, const float *x, float unused, size_t n)
{
    const v_t one = v_set(1);
    /* As integers the floats from -2^-25 to -inf are those between these two. */
    const n_t before = n_set(LGELU__TWO(-25) - 1 + INT32_MIN),
              behind = n_set(LGELU__TWO(128) + 1 + INT32_MIN);
    size_t i;
    (void)unused;
    for (i = 0; i < n; i += 2 * v_lanes) {
        v_t a[2], w[2], q[2];
        n_t k[2];
        m_t curved[2];
        v_each(LGELU__AHEAD(x, i + u * v_lanes));
        LGELU__FN(load2)(a, x + i, n - i);
        v_each(curved[u] = m_and(n_gt(v_bits(a[u]), before), n_gt(behind, v_bits(a[u]))));
        v_each(w[u] = v_max(v_select(curved[u], a[u], v_set(-1)), v_set(-32)));
        LGELU__FN(elu_exponential)(q, k, w);
        v_each(w[u] = v_times2(one, n_up(k[u], 23)));
        v_each(q[u] = v_fma(w[u], q[u], v_sub(w[u], one)));
        v_each(a[u] = v_select(curved[u], q[u], a[u]));
        LGELU__FN(store2)(y + i, a, n - i);
    }
}

/* Returns dx of a vector in which an x is below -40, an abs(dy) is below 2^-40 but not 0, or
   something is NaN. dx = dy·(1 + q)·2^n is assembled in integers. 2^10 is moved from the factor to
   n, since dy·(1 + q) must not overflow. */
LGELU__APART LGELU__TARGET v_t LGELU__FN(elu_slope_rest)(v_t dy, v_t x, v_t q, n_t n)
{
    const v_t one = v_set(1);
    const m_t left = n_gt(n_set(0), v_bits(x));
    m_t thin = n_gt(n_set(LGELU__TWO(-100)), v_bits(v_abs(dy)));
    v_t s = v_times2(v_add(one, q), n_set(LGELU__EXPONENT(-10))), dx;
    s = v_select(left, s, one);
    n = n_select(left, n_add(n, n_set(10)), n_set(0));
    LGELU__FN(assemble_product)(&dx, &dy, &x, &s, &n, &thin, 1);
    return dx;
}

static LGELU__TARGET double LGELU__FN(elu_backward)(float *dx, const float *dy, const float *x,
                                                    float unused, size_t n)
{
    const v_t zero = v_set(0), one = v_set(1), least = v_float(n_set(LGELU__TWO(-40)));
    /* 0x42200000 is 40, 0x43480000 is 200. */
    const n_t far = n_set(0x42200000), most = n_set(0x43480000), end = n_set(LGELU__TWO(128));
    size_t i;
    (void)unused;
    for (i = 0; dx && i < n; i += 2 * v_lanes) {
        v_t a[2], b[2], w[2], d[2], q[2];
        n_t k[2];
        m_t left[2], out[2];
        v_each(LGELU__AHEAD(x, i + u * v_lanes); LGELU__AHEAD(dy, i + u * v_lanes));
        LGELU__FN(load2)(a, x + i, n - i);
        LGELU__FN(load2)(b, dy + i, n - i);
        v_each(left[u] = n_gt(n_set(0), v_bits(a[u])));
        v_each(w[u] = v_sub(zero, v_float(n_min(most, v_bits(v_abs(a[u]))))));
        v_each(w[u] = v_select(left[u], w[u], zero));
        LGELU__FN(elu_exponential)(q, k, w);
        v_each(out[u] = m_and(v_nge(v_abs(b[u]), least), n_gt(v_bits(v_abs(b[u])), n_set(0))));
        v_each(out[u] = m_or(out[u], n_gt(v_bits(v_abs(a[u])), n_select(left[u], far, end))));
        if (m_some(out[0], out[1])) {
            v_each(d[u] = LGELU__FN(elu_slope_rest)(b[u], a[u], q[u], k[u]));
        } else {
            v_each(w[u] = v_times2(v_add(one, q[u]), n_up(k[u], 23)));
            v_each(d[u] = v_mul(b[u], w[u]));
        }
        LGELU__FN(store2)(dx + i, d, n - i);
    }
    return 0;
}

#ifdef LGELU_TRAINER
/* ---- the sigmoid ---- */
/* METHOD. y = 1/(1 + E) with E = e^-x as above, and dx = dy·e/(1 + e)² with e = e^-abs(x), for
   abs(x) <= 80, where E and the results are normal numbers. Every other lane is computed in
   double. */

/* Returns which lanes have an abs(x) above 80, or a NaN. */
LGELU__WORD m_t LGELU__FN(beyond_80)(v_t x) { return n_gt(v_bits(v_abs(x)), n_set(0x42A00000)); }

static LGELU__TARGET void LGELU__FN(sigmoid)(float *y, const float *x, size_t n)
{
    const v_t one = v_set(1), most = v_set(80);
    const lgelu__silu_constants s = lgelu__prepare_silu(1);
    float lane[2][2 * v_lanes];
    size_t i, k;
    for (i = 0; i < n; i += 2 * v_lanes) {
        v_t a[2], c[2], t[2], e[2], f[2];
        m_t out[2];
        LGELU__FN(load2)(a, x + i, n - i);
        v_each(out[u] = LGELU__FN(beyond_80)(a[u]));
        v_each(c[u] = v_select(out[u], most, a[u]));
        LGELU__FN(sigmoid_exponential)(e, f, t, c, &s, 2);
        v_each(e[u] = v_times2(v_fma(f[u], e[u], one), n_up(v_bits(t[u]), 23)));
        v_each(c[u] = v_div(one, v_add(one, e[u])));
        if (m_some(out[0], out[1])) {
            v_each(v_store(lane[0] + u * v_lanes, a[u]));
            v_each(v_store(lane[1] + u * v_lanes, c[u]));
            for (k = 0; k < 2 * v_lanes; k++) {
                if (!(fabsf(lane[0][k]) <= 80))
                    lane[1][k] = lgelu__sigmoid_far(lane[0][k]);
            }
            v_each(c[u] = v_load(lane[1] + u * v_lanes));
        }
        LGELU__FN(store2)(y + i, c, n - i);
    }
}

static LGELU__TARGET void LGELU__FN(sigmoid_backward)(float *dx, const float *dy, const float *x,
                                                      size_t n)
{
    const v_t one = v_set(1), two = v_set(2), most = v_set(80);
    const lgelu__silu_constants s = lgelu__prepare_silu(1);
    float lane[3][2 * v_lanes];
    size_t i, k;
    for (i = 0; i < n; i += 2 * v_lanes) {
        v_t a[2], b[2], c[2], t[2], e[2], f[2];
        m_t out[2];
        LGELU__FN(load2)(a, x + i, n - i);
        LGELU__FN(load2)(b, dy + i, n - i);
        v_each(out[u] = LGELU__FN(beyond_80)(a[u]));
        v_each(c[u] = v_select(out[u], most, v_abs(a[u])));
        v_each(out[u] = m_or(out[u], n_gt(v_bits(v_abs(b[u])), n_set(LGELU__TWO(128) - 1))));
        LGELU__FN(sigmoid_exponential)(e, f, t, c, &s, 2);
        v_each(e[u] = v_times2(v_fma(f[u], e[u], one), n_up(v_bits(t[u]), 23)));
        v_each(c[u] = v_mul(b[u], v_div(e[u], v_fma(e[u], v_add(e[u], two), one))));
        if (m_some(out[0], out[1])) {
            v_each(v_store(lane[0] + u * v_lanes, a[u]));
            v_each(v_store(lane[1] + u * v_lanes, b[u]));
            v_each(v_store(lane[2] + u * v_lanes, c[u]));
            for (k = 0; k < 2 * v_lanes; k++) {
                if (!(fabsf(lane[0][k]) <= 80) || !(fabsf(lane[1][k]) <= FLT_MAX))
                    lane[2][k] = lgelu__sigmoid_far_backward(lane[1][k], lane[0][k]);
            }
            v_each(c[u] = v_load(lane[2] + u * v_lanes));
        }
        LGELU__FN(store2)(dx + i, c, n - i);
    }
}
#endif

#undef v_gate
#undef v_fields
#undef v_many
#undef v_transpose
#undef v_both

/* ---- [Kd] 16-bit formats ---- */
LGELU__WORD v_t LGELU__FN(from_bf16)(s_t a)
{
    n_t b = n_up(s_wide(a), 16), quiet = n_or(b, n_set(0x00400000));
    return v_float(n_select(n_gt(n_and(b, n_set(INT32_MAX)), n_set(0x7F800000)), quiet, b));
}

/* The conversion is done in integers, because the processor's instruction flushes subnormal
   numbers. */
LGELU__WORD s_t LGELU__FN(to_bf16)(v_t a)
{
    n_t b = v_bits(a), high = n_down(b, 16),
        r = n_add(n_add(b, n_set(0x7FFF)), n_and(high, n_set(1)));
    m_t nan = n_gt(n_and(b, n_set(INT32_MAX)), n_set(0x7F800000));
    return s_narrow(n_select(nan, n_or(high, n_set(0x40)), n_down(r, 16)));
}

static LGELU__TARGET void LGELU__FN(from16)(float *y, const uint16_t *x, int format, size_t n)
{
    size_t i;
    if (format == LGELU__F16) {
        for (i = 0; i < n; i += v_lanes)
            v_store_n(y + i, v_from_f16(s_load(x + i, n - i)), n - i);
    } else {
        for (i = 0; i < n; i += v_lanes)
            v_store_n(y + i, LGELU__FN(from_bf16)(s_load(x + i, n - i)), n - i);
    }
}

static LGELU__TARGET void LGELU__FN(to16)(uint16_t *y, const float *x, int format, size_t n)
{
    size_t i;
    if (format == LGELU__F16) {
        for (i = 0; i < n; i += v_lanes)
            s_store(y + i, v_to_f16(v_load_n(x + i, n - i)), n - i);
    } else {
        for (i = 0; i < n; i += v_lanes)
            s_store(y + i, LGELU__FN(to_bf16)(v_load_n(x + i, n - i)), n - i);
    }
}

/* Rounding twice, to float and to 16 bits, is wrong where the float is the midpoint t of two 16-bit
   values, which is one float in 2^13 for f16, one in 2^16 for bf16, and every other one for
   subnormal bf16. Such a t is moved by one unit towards the exact f(x), which is never a midpoint.
   Midpoints below the normal numbers of f16 need no correction. */
static LGELU__TARGET void LGELU__FN(settle)(float *t, const uint16_t *x, float lambda, int format,
                                            size_t n, lgelu__exact_function *exact)
{
    /* The bits of a float that its 16-bit value lacks, and those of a midpoint. */
    const int32_t low = format == LGELU__F16 ? 0x1FFF : 0xFFFF;
    const int32_t half = format == LGELU__F16 ? 0x1000 : 0x8000;
    const n_t one = n_set(1);
    float a;
    size_t i, j;
    for (i = 0; i < n; i += v_lanes) {
        const n_t bits = n_and(v_bits(v_load_n(t + i, n - i)), n_set(low));
        if (!m_any(n_gt(one, n_xor(bits, n_set(half)))))
            continue;
        for (j = i; j < n && j < i + v_lanes; j++) {
            const uint32_t b = lgelu__bits(t[j]), negative = b >> 31;
            uint32_t above;
            if ((b & (uint32_t)low) != (uint32_t)half)
                continue;
            LGELU__FN(from16)(&a, x + j, format, 1);
            above = lgelu__above(lgelu__wide(t[j]), lgelu__wide(a), lgelu__wide(lambda), exact);
            t[j] = lgelu__float(above != negative ? b + 1 : b - 1);
        }
    }
}

/* A forward on 16-bit values, block by block. */
static LGELU__TARGET void LGELU__FN(half_forward)(uint16_t *y, const uint16_t *x, float lambda,
                                                  int format, size_t n,
                                                  lgelu__forward_function *forward,
                                                  lgelu__exact_function *exact)
{
    float t[1024];
    size_t i, m;
    for (i = 0; i < n; i += m) {
        m = n - i < 1024 ? n - i : 1024;
        LGELU__FN(from16)(t, x + i, format, m);
        forward(t, t, lambda, m);
        if (lgelu__wide(lambda) > 0)
            LGELU__FN(settle)(t, x + i, lambda, format, m, exact);
        LGELU__FN(to16)(y + i, t, format, m);
    }
}

/* A backward on 16-bit values, block by block. */
static LGELU__TARGET double LGELU__FN(half_backward)(uint16_t *dx, const uint16_t *dy,
                                                     const uint16_t *x, float lambda, int format,
                                                     size_t n, lgelu__backward_function *backward)
{
    float t[1024], d[1024];
    double sum = 0;
    size_t i, m;
    for (i = 0; i < n; i += m) {
        /* backward ends with a product. The volatile keeps the compiler from contracting it with
           the sum. */
        volatile double part;
        m = n - i < 1024 ? n - i : 1024;
        LGELU__FN(from16)(t, x + i, format, m);
        LGELU__FN(from16)(d, dy + i, format, m);
        part = backward(dx ? d : NULL, d, t, lambda, m);
        if (dx)
            LGELU__FN(to16)(dx + i, d, format, m);
        sum += part;
    }
    return sum;
}

/* The kernels of each family on 16 bits. */
/* clang-format off */
#define LGELU__FORMS(X, family, exact, parameter)                                                 \
    static LGELU__TARGET void LGELU__FN(family##_forward16)(                                      \
        uint16_t *y, const uint16_t *x, float lambda, int format, size_t n)                       \
    {                                                                                             \
        LGELU__FN(half_forward)(y, x, lambda, format, n, LGELU__FN(family##_forward), exact);     \
    }                                                                                             \
    static LGELU__TARGET double LGELU__FN(family##_backward16)(                                   \
        uint16_t *dx, const uint16_t *dy, const uint16_t *x, float lambda, int format, size_t n)  \
    {                                                                                             \
        return LGELU__FN(half_backward)(dx, dy, x, lambda, format, n,                             \
                                        LGELU__FN(family##_backward));                            \
    }
/* clang-format on */
LGELU__FAMILIES(LGELU__FORMS, unused)
#undef LGELU__FORMS

/* ---- [Ke] the stochastic gate ---- */
/* METHOD. Q = Φ(-abs(λx)) is the forward at -x' divided by -x', where a power of two was moved from
   λ to x, which does not change λx. Its relative error is at most 2^-22. T is Q·2^32 rounded to the
   nearest integer. The less likely outcome occurs for x <= 0, where it is an open gate, if R < T,
   and for x > 0, where it is a closed gate, if ~R < T. Hence B = [R < Φ·2^32] never decreases as x
   increases, and its probability differs from Φ by at most 2^-22·Q + 2^-32. */

/* Writes 4·v_lanes random numbers of a stream to r, beginning with number 4·block. */
LGELU__WORD void LGELU__FN(random)(float *r, uint64_t seed, uint64_t stream, uint64_t block)
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    float t[4][v_lanes];
    n_t a, b, c, d, p, q, low_p, low_q;
    int i;
    for (i = 0; i < v_lanes; i++) {
        uint64_t count = (block + (uint64_t)i) & (UINT64_MAX >> 2);
        t[0][i] = lgelu__float((uint32_t)count);
        t[1][i] = lgelu__float((uint32_t)(count >> 32));
    }
    a = v_bits(v_load(t[0]));
    b = v_bits(v_load(t[1]));
    c = n_set((int32_t)(uint32_t)stream);
    d = n_set((int32_t)(uint32_t)(stream >> 32));
    for (i = 0; i < 10; i++) {
        p = n_product(&low_p, a, n_set((int32_t)0xD2511F53u));
        q = n_product(&low_q, c, n_set((int32_t)0xCD9E8D57u));
        a = n_xor(n_xor(q, b), n_set((int32_t)k0));
        c = n_xor(n_xor(p, d), n_set((int32_t)k1));
        b = low_q;
        d = low_p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    v_store(t[0], v_float(a));
    v_store(t[1], v_float(b));
    v_store(t[2], v_float(c));
    v_store(t[3], v_float(d));
    for (i = 0; i < v_lanes; i++) {
        r[4 * i] = t[0][i];
        r[4 * i + 1] = t[1][i];
        r[4 * i + 2] = t[2][i];
        r[4 * i + 3] = t[3][i];
    }
}

static LGELU__TARGET void LGELU__FN(stochastic)(float *y, const float *v, const float *x,
                                                float lambda, size_t n, uint64_t seed,
                                                uint64_t stream, uint64_t first)
{
    const v_t zero = v_set(0);
    const n_t minus = n_set(INT32_MIN);
    float r[512 + 4 * v_lanes], w[512], f[512];
    lgelu__coin p;
    size_t i, j, m, skip = (size_t)(first & 3);
    if (!(lambda >= 0)) {
        for (i = 0; i < n; i++)
            y[i] = x[i] != x[i] ? x[i] : lgelu__float(0x7FC00000);
        return;
    }
    p = lgelu__prepare_coin(lambda);
    for (i = 0; i < n; i += m) {
        m = n - i < 512 ? n - i : 512;
        for (j = 0; j < skip + m; j += 4 * v_lanes)
            LGELU__FN(random)(r + j, seed, stream, (first >> 2) + (i + j) / 4);
        for (j = 0; j < m; j += v_lanes) {
            v_t a = v_abs(v_load_n(x + i + j, m - j));
            m_t tiny = n_gt(n_set(0x00800000), v_bits(a));
            a = v_mul(v_mul(v_select(tiny, v_whole(v_bits(a)), a), v_set(p.s1)),
                      v_select(tiny, v_set(p.s3), v_set(p.s2)));
            /* v_lt selects cap also for the NaN 0·inf. */
            v_store(w + j, v_sub(zero, v_max(v_select(v_lt(a, v_set(p.cap)), a, v_set(p.cap)),
                                             v_set(p.least))));
        }
        LGELU__FN(phi_forward)(f, w, p.m, j);
        for (j = 0; j < m; j += v_lanes) {
            v_t a = v_load_n(x + i + j, m - j), open = v_load_n(v + i + j, m - j),
                shut = v_float(n_and(v_bits(open), minus));
            /* t = -T. */
            n_t t = v_cut(
                v_fma(v_div(v_load(f + j), v_load(w + j)), v_set(-4294967296.0f), v_set(-0.5f)));
            /* Adding 2^31 maps the unsigned order to the signed order. */
            n_t s = n_add(v_bits(v_load(r + skip + j)), minus);
            m_t plus = n_gt(v_bits(a), n_set(0)), rare,
                nan = n_gt(v_bits(v_abs(a)), n_set(LGELU__TWO(128)));
            rare = n_gt(n_sub(minus, t), n_select(plus, n_sub(n_set(-1), s), s));
            open = v_select(rare, v_select(plus, shut, open), v_select(plus, open, shut));
            v_store_n(y + i + j, v_select(nan, a, open), m - j);
        }
    }
}

/* ---- [Kf] optimiser ---- */
static LGELU__TARGET void LGELU__FN(adamw)(float *w, float *mean, float *square, const float *g,
                                           const lgelu__rule *o, size_t n)
{
    const v_t scale = v_set(o->scale), fresh1 = v_set(o->fresh1), fresh2 = v_set(o->fresh2),
              beta2 = v_set(o->beta2), rate = v_set(o->rate), root = v_set(o->root),
              eps = v_set(o->eps), decay = v_set(o->decay);
    size_t i;
    for (i = 0; i < n; i += v_lanes) {
        v_t a = v_load_n(mean + i, n - i), b = v_load_n(square + i, n - i),
            q = v_load_n(g + i, n - i), d = v_mul(q, scale);
        LGELU__AHEAD(w, i);
        LGELU__AHEAD(mean, i);
        LGELU__AHEAD(square, i);
        LGELU__AHEAD(g, i);
        a = v_fnma(fresh1, v_fnma(q, scale, a), a);
        b = v_fma(v_mul(fresh2, d), d, v_mul(beta2, b));
        v_store_n(mean + i, a, n - i);
        v_store_n(square + i, b, n - i);
        d = v_load_n(w + i, n - i);
        v_store_n(w + i,
                  v_sub(d, v_fma(rate, v_div(a, v_fma(v_sqrt(b), root, eps)), v_mul(decay, d))),
                  n - i);
    }
}

static LGELU__TARGET void LGELU__FN(sgd)(float *w, float *mean, float *square, const float *g,
                                         const lgelu__rule *o, size_t n)
{
    const v_t scale = v_set(o->scale), rate = v_set(o->rate), momentum = v_set(o->momentum),
              decay = v_set(o->decay);
    size_t i;
    (void)square;
    for (i = 0; i < n; i += v_lanes) {
        v_t a = v_load_n(w + i, n - i), b = v_fma(v_load_n(g + i, n - i), scale, v_mul(decay, a));
        b = v_fma(momentum, v_load_n(mean + i, n - i), b);
        v_store_n(mean + i, b, n - i);
        v_store_n(w + i, v_fnma(rate, b, a), n - i);
    }
}

#ifdef LGELU_TRAINER
/* Returns Σ x². The products are exact in double, so that contraction cannot change a bit. The
   compiler vectorises the loops over the 16 lanes. */
static LGELU__TARGET double LGELU__FN(square_sum)(const float *x, size_t n)
{
    double sum[16] = { 0 };
    size_t i, j;
    for (i = 0; i + 16 <= n; i += 16) {
        LGELU__AHEAD(x, i);
        for (j = 0; j < 16; j++)
            sum[j] += (double)x[i + j] * (double)x[i + j];
    }
    for (j = 0; i + j < n; j++)
        sum[j] += (double)x[i + j] * (double)x[i + j];
    for (j = 8; j > 0; j >>= 1) {
        for (i = 0; i < j; i++)
            sum[i] += sum[i + j];
    }
    return sum[0];
}

/* ---- [Kg] sums, softmax, normalisations ---- */
static LGELU__TARGET void LGELU__FN(add)(float *y, const float *a, const float *b, size_t n)
{
    size_t i;
    for (i = 0; i < n; i += v_lanes) {
        LGELU__AHEAD(a, i);
        LGELU__AHEAD(b, i);
        LGELU__AHEAD(y, i);
        v_store_n(y + i, v_add(v_load_n(a + i, n - i), v_load_n(b + i, n - i)), n - i);
    }
}

static LGELU__TARGET void LGELU__FN(mul)(float *y, const float *a, const float *b, size_t n)
{
    size_t i;
    for (i = 0; i < n; i += v_lanes) {
        LGELU__AHEAD(a, i);
        LGELU__AHEAD(b, i);
        LGELU__AHEAD(y, i);
        v_store_n(y + i, v_mul(v_load_n(a + i, n - i), v_load_n(b + i, n - i)), n - i);
    }
}

static LGELU__TARGET void LGELU__FN(scale)(float *y, const float *x, float scale, size_t n)
{
    const v_t s = v_set(scale);
    size_t i;
    for (i = 0; i < n; i += v_lanes)
        v_store_n(y + i, v_mul(v_load_n(x + i, n - i), s), n - i);
}

static LGELU__TARGET void LGELU__FN(rotate)(float *y, float *z, const float *a, const float *b,
                                            const float *c, const float *s, size_t n)
{
    size_t i;
    for (i = 0; i < n; i += v_lanes) {
        const v_t u = v_load_n(a + i, n - i), v = v_load_n(b + i, n - i);
        const v_t cosine = v_load_n(c + i, n - i), sine = v_load_n(s + i, n - i);
        v_store_n(y + i, v_fnma(v, sine, v_mul(u, cosine)), n - i);
        v_store_n(z + i, v_fma(u, sine, v_mul(v, cosine)), n - i);
    }
}

/* The functions of Transformers. Sums have 16 virtual lanes. A load beyond n gives zeros, which add
   nothing. */

/* Returns e^x for x <= 0: x = n·ln 2 + r with abs(r) <= 0.35, and the Taylor series up to r^7,
   whose error is 5e-9. Below -87 the result is 0. */
LGELU__WORD v_t LGELU__FN(exp)(v_t x)
{
    const v_t magic = v_set(LGELU__ROUND);
    /* 1/7!, 1/6!, ..., 1/0!. */
    static const float factorial[8] = {
        1.98412698e-4f, 1.38888889e-3f, 8.33333333e-3f, 4.16666667e-2f, 1.66666667e-1f, 0.5f, 1, 1
    };
    v_t n = v_sub(v_fma(x, v_set(1.44269504f), magic), magic), r, p = v_set(factorial[0]);
    int k;
    r = v_fnma(n, v_set(-2.12194440e-4f), v_fnma(n, v_set(0.693359375f), x));
    LGELU__UNROLL
    for (k = 1; k < 8; k++)
        p = v_fma(r, p, v_set(factorial[k]));
    return v_select(v_lt(x, v_set(-87)), v_set(0),
                    v_mul(p, v_float(n_up(n_add(v_cut(n), n_set(127)), 23))));
}

/* The first n lanes of a, followed by zeros. */
LGELU__WORD v_t LGELU__FN(head)(v_t a, size_t n)
{
    float t[v_lanes];
    if (n >= v_lanes)
        return a;
    v_store(t, v_set(0));
    v_store_n(t, a, n);
    return v_load(t);
}

/* Returns the largest of n values; a NaN among them may be passed over. */
LGELU__WORD float LGELU__FN(largest)(const float *x, size_t n)
{
    v_t a[v_parts];
    float lane[16];
    size_t i, j;
    for (j = 0; j < v_parts; j++)
        a[j] = v_set(-HUGE_VALF);
    /* The last 16 may overlap those before, which does not change a maximum. */
    for (i = 0; i < n && n >= 16; i += 16) {
        const float *const from = x + (i < n - 16 ? i : n - 16);
        LGELU__UNROLL
        for (j = 0; j < v_parts; j++)
            a[j] = v_max(v_load(from + j * v_lanes), a[j]);
    }
    for (j = 0; j < v_parts; j++)
        v_store(lane + j * v_lanes, a[j]);
    for (i = 0; i < n && n < 16; i++)
        lane[i] = x[i];
    LGELU__UNROLL
    for (i = 0; i < 8; i++)
        lane[i] = lane[i + 8] > lane[i] ? lane[i + 8] : lane[i];
    LGELU__UNROLL
    for (i = 0; i < 4; i++)
        lane[i] = lane[i + 4] > lane[i] ? lane[i + 4] : lane[i];
    LGELU__UNROLL
    for (i = 0; i < 2; i++)
        lane[i] = lane[i + 2] > lane[i] ? lane[i + 2] : lane[i];
    return lane[1] > lane[0] ? lane[1] : lane[0];
}

static LGELU__TARGET void LGELU__FN(exp_row)(float *p, float *stat, const float *x, float scale,
                                             size_t n, size_t padded)
{
    const v_t c = v_set(scale);
    const float largest = LGELU__FN(largest)(x, n);
    const v_t shift = v_set(largest);
    v_t a[v_parts];
    size_t i, j;
    stat[0] = largest;
    for (j = 0; j < v_parts; j++)
        a[j] = v_set(0);
    for (i = 0; i < n; i += 16) {
        LGELU__UNROLL
        for (j = 0; j < v_parts; j++) {
            const size_t at = i + j * v_lanes;
            v_t e;
            if (at >= n)
                continue;
            e = LGELU__FN(exp)(v_mul(v_sub(v_load_n(x + at, n - at), shift), c));
            if (p)
                v_store_n(p + at, e, n - at);
            a[j] = v_add(a[j], LGELU__FN(head)(e, n - at));
        }
    }
    for (i = n; p && i < padded; i++)
        p[i] = 0;
    stat[1] = v_total(a);
}

static LGELU__TARGET void LGELU__FN(softmax_backward)(float *x, float *d, const float *stat,
                                                      float scale, size_t n, size_t padded)
{
    const v_t c = v_set(scale), shift = v_set(stat[0]), over = v_set(1 / stat[1]);
    v_t a[v_parts], mean;
    size_t i, q;
    for (q = 0; q < v_parts; q++)
        a[q] = v_set(0);
    for (i = 0; i < n; i += 16) {
        LGELU__UNROLL
        for (q = 0; q < v_parts; q++) {
            const size_t at = i + q * v_lanes;
            v_t p;
            if (at >= n)
                continue;
            p = v_mul(LGELU__FN(exp)(v_mul(v_sub(v_load_n(x + at, n - at), shift), c)), over);
            v_store_n(x + at, p, n - at);
            a[q] = v_fma(v_load_n(d + at, n - at), LGELU__FN(head)(p, n - at), a[q]);
        }
    }
    mean = v_set(v_total(a));
    for (i = 0; i < n; i += v_lanes) {
        v_store_n(d + i,
                  v_mul(v_mul(v_load_n(x + i, n - i), c), v_sub(v_load_n(d + i, n - i), mean)),
                  n - i);
    }
    for (i = n; i < padded; i++)
        x[i] = d[i] = 0;
}

/* x - mean of a vector of a row, or x alone. */
LGELU__WORD v_t LGELU__FN(centred)(const float *x, size_t i, size_t n, v_t mean, const int centre)
{
    const v_t a = v_load_n(x + i, n - i);
    return centre ? v_sub(a, mean) : a;
}

/* dy·gain. The fma with 0 rounds it before it enters a sum, so that its distance from the mean is
   exactly 0 where there is one channel. */
LGELU__WORD v_t LGELU__FN(gained)(const float *dy, const float *gain, size_t i, size_t n,
                                  const int centre)
{
    const v_t d = v_load_n(dy + i, n - i), g = v_load_n(gain + i, n - i);
    return centre ? v_fma(d, g, v_set(0)) : v_mul(d, g);
}

/* y = (x - mean)·r·gain + shift of two rows, which may be the same one. stat receives the mean, 0
   if it is not subtracted, and r. y may be x. */
LGELU__WORD void LGELU__FN(normalise_pair)(float *const *y, float *const *stat,
                                           const float *const *x, const lgelu__row_norm *p,
                                           size_t n)
{
    const float *const gains = p->gain;
    const int centre = p->centre;
    v_t a[2][v_parts], mean[2], r[2], d[2];
    float s[2];
    size_t i, q;
    int pass;
    v_each(stat[u][0] = 0; mean[u] = v_set(0));
    /* The first pass computes the mean, the second the mean square of the distance from it. */
    for (pass = !centre; pass < 2; pass++) {
        for (q = 0; q < v_parts; q++)
            v_each(a[u][q] = v_set(0));
        for (i = 0; i < n; i += 16) {
            v_each(LGELU__AHEAD(pass && centre ? y[u] : x[u], i));
            LGELU__UNROLL
            for (q = 0; q < v_parts; q++) {
                const size_t at = i + q * v_lanes;
                if (at >= n)
                    continue;
                v_each(d[u] = v_sub(v_load_n(x[u] + at, n - at), mean[u]));
                v_each(d[u] = LGELU__FN(head)(d[u], n - at));
                v_each(a[u][q] = pass ? v_fma(d[u], d[u], a[u][q]) : v_add(a[u][q], d[u]));
            }
        }
        v_each(s[u] = v_total(a[u]) / (float)n);
        if (!pass)
            v_each(stat[u][0] = s[u]; mean[u] = v_set(s[u]));
    }
    v_each(stat[u][1] = s[u] = 1 / sqrtf(s[u] + p->eps); r[u] = v_set(s[u]));
    for (i = 0; i < n; i += v_lanes) {
        const v_t gain = v_load_n(gains + i, n - i);
        /* Adding -0 changes nothing. */
        const v_t shift = centre ? v_load_n(gains + n + i, n - i) : v_set(-0.0f);
        v_each(d[u] = v_mul(v_sub(v_load_n(x[u] + i, n - i), mean[u]), r[u]));
        v_each(v_store_n(y[u] + i, v_fma(d[u], gain, shift), n - i));
    }
}

/* Two rows at a time, side by side, since a row often waits for its sums, which have one order. The
   last of an odd number of rows is computed twice, which takes as long as once. */
static LGELU__TARGET void LGELU__FN(normalise)(float *y, float *stat, const float *x,
                                               const lgelu__row_norm *p, size_t rows, size_t n)
{
    size_t i;
    for (i = 0; i < rows; i += 2) {
        const size_t next = i + 1 < rows ? i + 1 : i;
        float *to[2], *stats[2];
        const float *from[2];
        to[0] = y + i * n;
        to[1] = y + next * n;
        stats[0] = stat + 2 * i;
        stats[1] = stat + 2 * next;
        from[0] = x + i * n;
        from[1] = x + next * n;
        LGELU__FN(normalise_pair)(to, stats, from, p, n);
    }
}

/* The backward of normalise. With h = (x - mean)·r and g = dy·gain:
     dgain += dy·h,  dshift += dy,  dx = r·(g - mean(g) - h·mean(g·h)),
   without dshift and mean(g) if no mean was subtracted. sums holds dgain, then dshift. dx is added
   to its previous value if add is 1. */
LGELU__WORD void LGELU__FN(normalise_row_backward)(float *dx, float *sums, const float *dy,
                                                   const float *x, const float *stat,
                                                   const lgelu__row_norm *p, int add, size_t n)
{
    const int centre = p->centre;
    v_t a[2][v_parts], mean = v_set(stat[0]), r = v_set(stat[1]), b = v_set(0), c;
    size_t i, q;
    for (q = 0; q < v_parts; q++)
        a[0][q] = a[1][q] = v_set(0);
    for (i = 0; i < n; i += 16) {
        LGELU__AHEAD(dy, i);
        LGELU__AHEAD(x, i);
        if (dx)
            LGELU__AHEAD(dx, i);
        LGELU__UNROLL
        for (q = 0; q < v_parts; q++) {
            const size_t at = i + q * v_lanes;
            v_t d, g, h;
            if (at >= n)
                continue;
            d = v_load_n(dy + at, n - at);
            g = LGELU__FN(gained)(dy, p->gain, at, n, centre);
            h = v_mul(LGELU__FN(centred)(x, at, n, mean, centre), r);
            v_store_n(sums + at, v_fma(d, h, v_load_n(sums + at, n - at)), n - at);
            if (centre) {
                v_store_n(sums + n + at, v_add(d, v_load_n(sums + n + at, n - at)), n - at);
                a[0][q] = v_add(a[0][q], g);
            }
            a[1][q] = v_fma(g, h, a[1][q]);
        }
    }
    if (!dx)
        return;
    if (centre)
        b = v_set(v_total(a[0]) / (float)n);
    c = v_set(v_total(a[1]) / (float)n);
    for (i = 0; i < n; i += v_lanes) {
        const v_t h = v_mul(LGELU__FN(centred)(x, i, n, mean, centre), r);
        const v_t g = LGELU__FN(gained)(dy, p->gain, i, n, centre);
        const v_t before = add ? v_load_n(dx + i, n - i) : v_set(0);
        v_store_n(dx + i, v_fma(r, v_fnma(h, c, centre ? v_sub(g, b) : g), before), n - i);
    }
}

static LGELU__TARGET void LGELU__FN(normalise_backward)(float *dx, float *sums, const float *dy,
                                                        const float *x, const float *stat,
                                                        const lgelu__row_norm *p, int add, size_t n)
{
    const lgelu__row_norm centred = { p->gain, p->eps, 1 }, plain = { p->gain, p->eps, 0 };
    if (p->centre)
        LGELU__FN(normalise_row_backward)(dx, sums, dy, x, stat, &centred, add, n);
    else
        LGELU__FN(normalise_row_backward)(dx, sums, dy, x, stat, &plain, add, n);
}

/* y = x/(1 - rate) where the random number of (seed, stream, first + i) is at least rate, else 0.
   first is a multiple of 4. */
static LGELU__TARGET void LGELU__FN(dropout)(float *y, const float *x, uint64_t seed,
                                             uint64_t stream, size_t first, float rate, size_t n)
{
    const n_t minus = n_set(INT32_MIN),
              limit = n_set((int32_t)((uint32_t)(rate * 16777216.0f) << 8 ^ 0x80000000u));
    float r[4 * v_lanes];
    size_t i, j;
    for (i = 0; i < n; i += 4 * v_lanes) {
        LGELU__FN(random)(r, seed, stream, ((uint64_t)first + i) / 4);
        for (j = 0; j < 4 * v_lanes && i + j < n; j += v_lanes) {
            /* Adding 2^31 maps the unsigned order to the signed order. */
            m_t drop = n_gt(limit, n_add(v_bits(v_load(r + j)), minus));
            v_store_n(y + i + j,
                      v_mul(v_load_n(x + i + j, n - i - j),
                            v_select(drop, v_set(0), v_set(1 / (1 - rate)))),
                      n - i - j);
        }
    }
}
#endif

#ifdef LGELU_TRAINER
/* ---- [Kh] matrix product ---- */
/* METHOD. A tile of C, v_rows × 2 vectors, is kept in registers while k runs. Each step of k loads
   two vectors of a row of B and broadcasts one element of each row of A: v_rows + 2 loads for
   2·v_rows fmas. A sliver is as many rows of A as a tile is high, and a panel is as many columns of
   B as a tile is wide. The slivers of a block have about equal heights, and the tile is unrolled
   for each height, so that the lower edge costs nothing. At the right edge a tile works on a copy.
   Where all of B fits the first-level cache, a tile of v_flat × 4 vectors needs fewer loads (10 for
   24 fmas), which pays where two threads run on one core. Small products process all slivers of one
   height at once.

   A task computes one block of C, from the first k to the last, in a workspace of its own. No task
   waits for another, and copies stay in the cache of the core that made them. k advances in blocks
   of LGELU__K, so that a sliver stays in the first-level cache while panels stream past it out of
   the second-level cache. Between the blocks the sums are stored in C, which changes no bit. B is
   copied panel by panel where it cannot be read in place. Where a few slivers share a large B, each
   panel meets all of them before the next one. A is copied only where it is read along
   its columns, eight slivers together, so that neighbouring cache lines are read together.

   A tile prefetches the part of C of the next tile, the y that the gate will write and, spread over
   its steps, a part of the A of the next sliver, or of the next eight where they are copied. A copy
   prefetches what it reads a little later.

   With one zmm fma a cycle (Zen 4) or two (Emerald Rapids), the tile alone reaches 99 % of the
   peak. Whole products reach 83 to 96 % of it on the latter (bench/gemm.c). */

/* n steps of k. The loop is unrolled twice, which lets the processor predict its end. n is hidden,
   so that gcc tests it after each step: it would otherwise compile a third step for an odd n, which
   adds 16 KB to all tiles. Where `into` is not NULL, which the compiler knows, the rows of B are
   also copied to *into: a branch in each step costs up to a fifth of the speed (Zen 3, see
   bench/README.md). */
LGELU__WORD void LGELU__FN(steps)(size_t rows, size_t vectors, v_t (*sum)[4], const float **g,
                                  const float **h, float **into, const lgelu__sliver *p, size_t n)
{
    const size_t a_row = p->a_row, a_col = p->a_col, b_row = p->b_row,
                 ahead = p->k > 16 ? 16 * b_row : 0;
    v_t t[4], x;
    size_t i, v;
    LGELU__TWICE
    for (; n; n--) {
        LGELU__HIDE("+r", n);
        LGELU__UNROLL
        for (v = 0; v < vectors; v++)
            t[v] = v_load(*h + v * v_lanes);
        if (into) {
            LGELU__UNROLL
            for (v = 0; v < vectors; v++)
                v_store(*into + v * v_lanes, t[v]);
            *into += 2 * v_lanes;
            /* Prefetch the same row of the next panel, at the ends of cache lines: if B is not
               aligned, the first one also has the end of this panel. */
            LGELU__UNROLL
            for (v = 0; v < vectors * v_lanes; v += 16)
                LGELU__FETCH(LGELU__PAST(*h, p->next_panel + v + 15));
        } else {
            /* Rows of B may be too far apart for the processor to prefetch them itself. */
            LGELU__UNROLL
            for (v = 0; v < vectors * v_lanes; v += 16)
                LGELU__NEAR(LGELU__PAST(*h, ahead + v));
        }
        LGELU__UNROLL
        for (i = 0; i < rows; i++) {
            x = v_set(g[i / 5][i % 5 * a_row]);
            LGELU__UNROLL
            for (v = 0; v < vectors; v++)
                sum[i][v] = v_fma(x, t[v], sum[i][v]);
        }
        g[0] += a_col;
        g[1] += a_col;
        g[2] += a_col;
        *h += b_row;
    }
}

/* Prefetches `rows` rows of `vectors` vectors. Functions that only prefetch are inlined, since gcc
   removes calls of them. */
LGELU__WORD void LGELU__FN(prefetch_rows)(const float *p, size_t row, size_t rows, size_t vectors)
{
    size_t v;
    for (; rows; rows--) {
        for (v = 0; v < vectors; v++)
            LGELU__FETCH(p + v * v_lanes);
        p += row;
    }
}

/* One tile of `rows` rows and `vectors` vectors. */
LGELU__WORD void LGELU__FN(tile)(size_t rows, size_t vectors, const lgelu__sliver *p)
{
    /* g points to the rows 0, 5 and 10 of A. Four offsets and three pointers fit the integer
       registers. */
    const float *g[3], *h = p->b, *next = p->next;
    float *into = p->into;
    v_t sum[v_rows][4];
    size_t i, v, l, n;
    LGELU__UNROLL
    for (i = 0; i < 3; i++)
        g[i] = p->a + (5 * i < rows ? 5 * i * p->a_row : 0);
    LGELU__UNROLL
    for (i = 0; i < rows; i++) {
        LGELU__UNROLL
        for (v = 0; v < vectors; v++)
            sum[i][v] = v_set(0);
    }
    if (p->start) {
        LGELU__UNROLL
        for (i = 0; i < rows; i++) {
            LGELU__UNROLL
            for (v = 0; v < vectors; v++)
                sum[i][v] = v_load(p->start + i * p->start_row + v * v_lanes);
        }
    }
    for (l = p->k; l; l -= n) {
        n = l < p->part ? l : p->part;
        for (v = 0; v < p->lines; v++)
            LGELU__FETCH(LGELU__PAST(next, 16 * v));
        /* Only tiles of two vectors copy, and only high ones: see lgelu__block_state. */
        if (vectors == 2 && 2 * rows > v_rows && into)
            LGELU__FN(steps)(rows, vectors, sum, g, &h, &into, p, n);
        else
            LGELU__FN(steps)(rows, vectors, sum, g, &h, NULL, p, n);
        next += p->next_row;
    }
    LGELU__UNROLL
    for (i = 0; i < rows; i++) {
        LGELU__UNROLL
        for (v = 0; v < vectors; v++)
            v_store(p->c + i * p->c_row + v * v_lanes, sum[i][v]);
    }
}

/* A sliver of one row. Two chains of fmas would wait for each other, so four panels are processed
   side by side. Advances p past every four panels. */
static LGELU__TARGET void LGELU__FN(thin)(lgelu__sliver *p)
{
    for (; p->run >= 4; p->run -= 4) {
        const float *a = p->a, *b = p->b;
        v_t sum[8], x;
        size_t l, v;
        LGELU__UNROLL
        for (v = 0; v < 8; v++)
            sum[v] = p->start ? v_load(p->start + v * v_lanes) : v_set(0);
        for (l = p->k; l; l--) {
            x = v_set(*a);
            LGELU__UNROLL
            for (v = 0; v < 8; v++)
                sum[v] = v_fma(x, v_load(b + v / 2 * p->b_step + v % 2 * v_lanes), sum[v]);
            a += p->a_col;
            b += p->b_row;
        }
        LGELU__UNROLL
        for (v = 0; v < 8; v++)
            v_store(p->c + v * v_lanes, sum[v]);
        p->b += 4 * p->b_step;
        p->c += 8 * v_lanes;
        if (p->start)
            p->start += 8 * v_lanes;
    }
}

/* Each size of a tile is a function, which compiles faster by a tenth than one function with all of
   them. LGELU__HEIGHTS lists the heights that lgelu__height returns. */
#define LGELU__TILE(r)                                                           \
    LGELU__APART LGELU__TARGET void LGELU__FN(tile1_##r)(const lgelu__sliver *p) \
    {                                                                            \
        LGELU__FN(tile)(r, 1, p);                                                \
    }                                                                            \
    LGELU__APART LGELU__TARGET void LGELU__FN(tile2_##r)(const lgelu__sliver *p) \
    {                                                                            \
        LGELU__FN(tile)(r, 2, p);                                                \
    }
#define LGELU__CASE(r)                              \
    case 4 * r: tile = LGELU__FN(tile1_##r); break; \
    case 4 * r + 1:                                 \
        tile = LGELU__FN(tile2_##r);                \
        break;
#if v_rows > 12
#define LGELU__HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(12) X(14)
#elif v_rows > 6
#define LGELU__HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(12)
#elif v_rows > 4
#define LGELU__HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#elif v_rows > 2
#define LGELU__HEIGHTS(X) X(1) X(2) X(3) X(4)
#else
#define LGELU__HEIGHTS(X) X(1) X(2)
#endif
LGELU__HEIGHTS(LGELU__TILE)

/* All tiles of the slivers. A flat tile, which has 4 to 6 rows, is inlined here; all others are
   functions. */
static LGELU__TARGET void LGELU__FN(all_tiles)(size_t rows, size_t vectors,
                                               const lgelu__sliver *from)
{
    const size_t wide = (vectors + 1) / 2 * 2 * v_lanes;
    lgelu__sliver p = *from;
    void (*tile)(const lgelu__sliver *) = NULL;
    size_t slivers, run;
    switch (4 * rows + vectors - 1) {
        LGELU__HEIGHTS(LGELU__CASE) default : break;
    }
    for (slivers = 0; slivers < from->slivers; slivers++) {
        p.a = from->a + slivers * rows * from->a_row;
        p.b = from->b;
        if (slivers && from->into) {
            p.b = from->into;
            p.b_row = 2 * v_lanes;
        }
        p.into = slivers ? NULL : from->into;
        p.c = from->c + slivers * rows * from->c_row;
        if (from->start)
            p.start = from->start + slivers * rows * from->start_row;
        for (run = from->run; run; run--) {
            /* Prefetch C for the next panel. */
            if (run > 1 && p.k > 64)
                LGELU__FN(prefetch_rows)(p.c + wide, p.c_row, rows, vectors);
            /* Prefetch y for the gate. */
            if (p.y)
                LGELU__FN(prefetch_rows)(p.y + (p.c - from->c), p.y_row, rows, vectors);
#if v_flat > 1
            if (!tile) {
                switch (rows) {
                case 4: LGELU__FN(tile)(4, 4, &p); break;
                case 5: LGELU__FN(tile)(5, 4, &p); break;
                default: LGELU__FN(tile)(6, 4, &p); break;
                }
            } else
#endif
                tile(&p);
            if (p.start)
                p.start += wide;
            p.c += wide;
            p.b += from->b_step;
            if (p.into)
                p.into += from->into_step;
            p.next += from->next_step;
        }
    }
}

#undef LGELU__TILE
#undef LGELU__CASE
#undef LGELU__HEIGHTS

/* Copies elements of a matrix that has a function `read`, panel by panel. The rest of a narrow last
   panel becomes 0. */
LGELU__APART LGELU__TARGET void LGELU__FN(copy_read)(float *out, size_t out_row, size_t step,
                                                     const lgelu_matrix *x, size_t row, size_t rows,
                                                     size_t col, size_t cols)
{
    const size_t w = step == 2 * v_lanes ? cols : 2 * v_lanes;
    size_t i, j;
    for (j = 0; j < cols; j += w) {
        for (i = 0; cols - j < w && i < rows; i++) {
            v_store(out + i * out_row, v_set(0));
            v_store(out + i * out_row + v_lanes, v_set(0));
        }
        x->read(out, out_row, row, rows, col + j, cols - j < w ? cols - j : w, x->user);
        out += step;
    }
}

/* Copies `rows` rows, which are 4 or v_deep, of a panel whose columns are contiguous and lie
   col_stride apart. Prefetching the next panel was slower (Zen 3, Zen 5). */
LGELU__WORD void LGELU__FN(copy_turned)(float *out, size_t out_row, const float *in,
                                        size_t col_stride, const size_t rows)
{
    v_t t[v_deep];
    size_t v, l;
    for (v = 0; v < 2; v++) {
        if (rows == 4)
            v_turn(t, in, col_stride);
        else
            v_turn_deep(t, in, col_stride);
        LGELU__UNROLL
        for (l = 0; l < rows; l++)
            v_store(out + l * out_row, t[l]);
        in += v_lanes * col_stride;
        out += v_lanes;
    }
}

/* Copies rows × cols elements of x, beginning at (row, col), as whole vectors padded with zeros.
   After every two vectors the output advances by `step`. */
static LGELU__TARGET void LGELU__FN(copy)(float *out, size_t out_row, size_t step,
                                          const lgelu_matrix *x, size_t row, size_t rows,
                                          size_t col, size_t cols)
{
    size_t i, j, l, w;
    const float *in = x->x;
    if (x->read) {
        LGELU__FN(copy_read)(out, out_row, step, x, row, rows, col, cols);
        return;
    }
    in += row * x->row_stride + col * x->col_stride;
    if (x->col_stride == 1 && cols <= v_lanes) {
        for (i = 0; i < rows; i++) {
            v_store(out, v_load_n(in, cols));
            in += x->row_stride;
            out += out_row;
        }
    } else if (x->col_stride == 1) {
        for (i = 0; i < rows; i++) {
            const float *next = rows - i > 8 ? in + 8 * x->row_stride : in;
            float *o = out;
            for (j = 0; j + 2 * v_lanes <= cols; j += 2 * v_lanes) {
                LGELU__FETCH(next + j);
                LGELU__FETCH(next + j + v_lanes);
                v_store(o, v_load(in + j));
                v_store(o + v_lanes, v_load(in + j + v_lanes));
                o += step;
            }
            if (j < cols)
                v_store(o, v_load_n(in + j, cols - j));
            if (j + v_lanes < cols)
                v_store(o + v_lanes, v_load_n(in + j + v_lanes, cols - j - v_lanes));
            in += x->row_stride;
            out += out_row;
        }
    } else {
        for (j = 0; j < cols; j += w) {
            float *o = out;
            w = lgelu__min(cols - j, 2 * v_lanes);
            i = 0;
            /* Whole panels at a time, since a cache line may have both vectors of a row. */
            if (x->row_stride == 1 && w == 2 * v_lanes) {
                for (; i + v_deep <= rows; i += v_deep) {
                    LGELU__FN(copy_turned)(o, out_row, in + i, x->col_stride, v_deep);
                    o += v_deep * out_row;
                }
                for (; i + 4 <= rows; i += 4) {
                    LGELU__FN(copy_turned)(o, out_row, in + i, x->col_stride, 4);
                    o += 4 * out_row;
                }
            }
            for (; i < rows; i++) {
                v_store(o, v_set(0));
                if (w > v_lanes)
                    v_store(o + v_lanes, v_set(0));
                for (l = 0; l < w; l++)
                    o[l] = in[i * x->row_stride + l * x->col_stride];
                o += out_row;
            }
            in += w * x->col_stride;
            out += step;
        }
    }
}

/* Whether the tiles of a group of slivers prefetch the next group. Lower tiles take too little time
   for that: there, each 16 columns of A are prefetched while those before are copied, which saves
   4 to 9 % of the time of AᵀB (AVX2, Zen 3). */
#define v_tall (v_rows > 8)

/* Prefetches up to 16 columns of A, from `column` of the block on, for a group of slivers. */
LGELU__WORD void LGELU__FN(prefetch_group)(const lgelu__block_state *b, size_t row, size_t column)
{
    const lgelu_matrix *a = &b->p->job->a;
    const size_t end = lgelu__min(b->t.k, column + 16);
    size_t i, k;
    for (k = column; k < end; k++) {
        for (i = 0; i < LGELU__GROUP * v_rows + 16; i += 16)
            LGELU__FETCH(LGELU__PAST(a->x, row + i + (b->k0 + k) * a->col_stride));
    }
}

/* Sets where the tiles of the rows from `row` on read A: in place, or from a copy that is made
   here. */
static LGELU__TARGET void LGELU__FN(place_a)(lgelu__block_state *b, size_t row, size_t rows)
{
    const lgelu_matrix *a = &b->p->job->a;
    lgelu__sliver *t = &b->t;
    if (!b->p->pack_a) {
        t->a = a->x + row * a->row_stride + b->k0 * a->col_stride;
        t->a_row = a->row_stride;
        t->a_col = a->col_stride;
    } else if (b->p->across) {
        /* A group of slivers is copied side by side, 16 columns of A at a time. */
        enum { wide = v_tall ? 16 : 8 };
        lgelu_matrix turned = *a;
        size_t k, q, high;
        turned.row_stride = a->col_stride;
        turned.col_stride = 1;
        t->a_row = 1;
        t->a_col = wide;
        t->a = b->a_pack + b->in * t->k * wide;
        if (!b->in) {
            for (k = 0; k < t->k; k += 16) {
                if (!v_tall)
                    LGELU__FN(prefetch_group)(b, row, k + 16);
                b->at = row;
                for (q = 0; q < LGELU__GROUP && b->at < b->end; q++) {
                    high = lgelu__height(b->end - b->at, b->most);
                    LGELU__FN(copy)
                    (b->a_pack + (q * t->k + k) * wide, wide, 2 * v_lanes, &turned, b->k0 + k,
                     lgelu__min(t->k - k, 16), b->at, high);
                    b->at += high;
                }
            }
        }
    } else {
        t->a = b->a_pack;
        /* An odd number of cache lines spreads the rows over the sets of the cache. */
        t->a_row = ((t->k + 15) / 16 | 1) * 16;
        t->a_col = 1;
        LGELU__FN(copy)(b->a_pack, t->a_row, 2 * v_lanes, a, row, rows, b->k0, t->k);
    }
}

/* Lets the tiles prefetch nothing. */
static LGELU__TARGET void LGELU__FN(prefetch_none)(lgelu__block_state *b)
{
    lgelu__sliver *t = &b->t;
    t->next = b->a_pack;
    t->next_row = 0;
    t->next_step = 0;
    t->part = t->k;
    t->lines = 0;
}

/* Sets which part of A the tiles prefetch: the rows of the next sliver, or, if they are tall, two
   cache lines of half of the rows of the next group. */
static LGELU__TARGET void LGELU__FN(prefetch_a)(lgelu__block_state *b, size_t next)
{
    const lgelu_matrix *a = &b->p->job->a;
    lgelu__sliver *t = &b->t;
    if (!a->read && a->col_stride == 1 && next < b->end) {
        t->next = a->x + next * a->row_stride + b->k0;
        t->next_row = a->row_stride;
        t->next_step = lgelu__min((t->k - 1) / b->panels + 1, 32);
    } else if (v_tall && b->p->across && b->at < b->end) {
        const size_t half = LGELU__GROUP / 2;
        t->next =
            a->x + b->at + b->in % half * 32 + (b->k0 + b->in / half * (t->k / 2)) * a->col_stride;
        t->next_row = a->col_stride;
        t->next_step = lgelu__min(t->k / 2 / b->panels + 1, 16) * a->col_stride;
    } else {
        return;
    }
    t->part = t->k / 16 + 1;
    t->lines = 2;
}

/* Lets the tiles of some rows prefetch their part of the panels ahead. */
static LGELU__TARGET void LGELU__FN(prefetch_ahead)(lgelu__block_state *b, size_t row, size_t rows)
{
    const size_t m = b->end - b->i, wide = 2 * v_lanes;
    lgelu__sliver *t = &b->t;
    t->next = b->ahead + t->k * (row - b->i) / m * wide;
    t->next_row = 32;
    t->next_step = b->p->job->k * wide;
    t->part = m * 32 / (rows * wide);
    t->lines = 2;
}

/* Lets the tiles of panel q of a transposed B prefetch the panel that is copied next, each of them
   some columns. On a Zen 4 with AVX-512 this saves 8 to 18 % of the time where 16 or 49 rows share
   9.4 MB, and 4 % where 32 rows share 1.6 MB; with AVX2 0 to 6 %. */
static LGELU__TARGET void LGELU__FN(prefetch_columns)(lgelu__block_state *b, size_t q, size_t row,
                                                      size_t tall)
{
    const lgelu_matrix *x = &b->p->job->b;
    const size_t m = b->end - b->i, wide = 2 * v_lanes, count = (wide * tall + m - 1) / m;
    const int last = q + 1 == b->panels;
    const size_t column = b->j + (last ? 0 : (q + 1) * wide) + wide * (row - b->i) / m;
    lgelu__sliver *t = &b->t;
    t->next = x->x + column * x->col_stride + (last ? b->k0 + t->k : b->k0);
    t->next_row = x->col_stride;
    t->next_step = count * x->col_stride;
    t->part = (t->k + count - 1) / count;
    t->lines = t->k / 16 + 1;
}

/* Finds panel q of B for the rows from `row` on: where it is stored, in the copy, or both for the
   sliver that copies it while it reads it. */
static LGELU__TARGET void LGELU__FN(place_b)(lgelu__block_state *b, size_t q, size_t row)
{
    const lgelu__block *p = b->p;
    const lgelu_product *job = p->job;
    const size_t col = b->j + q * 2 * v_lanes;
    /* A block that is computed panel by panel has the copy of one panel only. */
    const size_t copied = p->by_panel || q < b->packed ? 0 : q - b->packed;
    float *copy = b->b_pack + copied * b->b_panel;
    lgelu__sliver *t = &b->t;
    t->into = NULL;
    t->b_row = 2 * v_lanes;
    t->b_step = b->b_panel;
    if (p->panels) {
        t->b_step = job->k * 2 * v_lanes;
        t->b = job->b.x + (col * job->k + b->k0 * 2 * v_lanes);
    } else if (q < b->packed || (b->fused && row == b->i && q < b->whole)) {
        t->b_row = job->b.row_stride;
        t->b_step = b->width * v_lanes;
        t->b = job->b.x + b->k0 * t->b_row + col;
        if (b->fused) {
            t->into = copy;
            t->into_step = b->b_panel;
            /* After the last panel follow the next rows of B. */
            t->next_panel = 2 * v_lanes;
            if (p->by_panel && q + 1 == b->whole)
                t->next_panel = t->k * t->b_row - q * 2 * v_lanes;
        }
    } else {
        t->b = copy;
    }
}

/* The tiles of some rows in all whole panels (q = 0) or in the last, narrow panel. Where a vector
   would write past the columns of C, the tile works on a copy. If gate is 1, y is prefetched. */
static LGELU__TARGET void LGELU__FN(tiles)(lgelu__block_state *b, size_t q, size_t row, size_t rows,
                                           size_t tall, int gate)
{
    const lgelu__block *p = b->p;
    const lgelu_product *job = p->job;
    const size_t cols = b->n - q * 2 * v_lanes, col = b->j + q * 2 * v_lanes,
                 w = cols > v_lanes ? cols - v_lanes : 0;
    const int cut = cols < 2 * v_lanes && cols != v_lanes;
    float *c = job->c + row * job->c_stride + col, *edge = b->edge;
    lgelu__sliver *t = &b->t;
    size_t i;
    t->c = c;
    t->c_row = job->c_stride;
    t->start_row = job->c_stride;
    t->start = NULL;
    LGELU__FN(place_b)(b, q, row);
    if (b->k0 || job->accumulate) {
        t->start = c;
    } else if (job->bias) {
        t->start = job->bias + col;
        t->start_row = 0;
    }
    if (cut) {
        for (i = 0; t->start && i < rows; i++) {
            v_store(edge + i * 2 * v_lanes, v_load_n(t->start + i * t->start_row, cols));
            v_store(edge + (i * 2 + 1) * v_lanes,
                    v_load_n(t->start + i * t->start_row + (w ? v_lanes : 0), w));
        }
        if (t->start) {
            t->start = edge;
            t->start_row = 2 * v_lanes;
        }
        t->c = edge;
        t->c_row = 2 * v_lanes;
    }
    t->y = gate ? job->y + row * job->y_stride + col : NULL;
    t->y_row = job->y_stride;
    t->run = q < b->whole && !p->by_panel ? (b->whole - q) * 2 / b->width : 1;
    if (tall == 1 && b->width == 2)
        LGELU__FN(thin)(t);
    if (t->run)
        LGELU__FN(all_tiles)(tall, w ? b->width : 1, t);
    if (cut) {
        for (i = 0; i < rows; i++) {
            v_store_n(c + i * job->c_stride, v_load(edge + i * 2 * v_lanes), cols);
            if (w)
                v_store_n(c + i * job->c_stride + v_lanes, v_load(edge + (i * 2 + 1) * v_lanes), w);
        }
    }
}

/* Applies the gate and the caller's function to rows that are final, while they are in the
   cache. */
static LGELU__TARGET void LGELU__FN(rows_done)(const lgelu_product *job, size_t row, size_t rows,
                                               size_t j, size_t n)
{
    /* Rows that are contiguous are treated as one array. */
    const size_t high = job->c_stride == n && job->y_stride == n ? rows : 1;
    size_t i;
    for (i = row; job->y && i < row + rows; i += high) {
        LGELU__FN(phi_forward)
        (job->y + i * job->y_stride + j, job->c + i * job->c_stride + j, job->lambda, high * n);
    }
    if (job->finish)
        job->finish(row, rows, j, n, job->user);
}

/* Multiplies the slivers of a block with one panel after another, so that each panel is read from
   memory once and its copy stays in the first-level cache for all slivers. */
static LGELU__TARGET void LGELU__FN(panel_by_panel)(lgelu__block_state *b)
{
    const lgelu__block *p = b->p;
    const lgelu_product *job = p->job;
    size_t q, row, rows, tall;
    LGELU__FN(prefetch_none)(b);
    for (q = 0; q < b->panels; q++) {
        if (!(b->fused && q < b->whole)) {
            LGELU__FN(copy)
            (b->b_pack, 2 * v_lanes, b->b_panel, &job->b, b->k0, b->t.k, b->j + q * 2 * v_lanes,
             lgelu__min(b->n - q * 2 * v_lanes, 2 * v_lanes));
        }
        for (row = b->i; row < b->end; row += rows) {
            tall = lgelu__height(b->end - row, b->most);
            rows = tall;
            /* A narrow panel has a copy of one sliver's C. */
            while (q < b->whole && row + rows < b->end
                   && lgelu__height(b->end - row - rows, b->most) == tall)
                rows += tall;
            b->t.slivers = rows / tall;
            LGELU__FN(place_a)(b, row, rows);
            if (!p->fused)
                LGELU__FN(prefetch_columns)(b, q, row, tall);
            LGELU__FN(tiles)(b, q, row, rows, tall, 0);
        }
    }
    if (b->k0 + b->t.k == job->k)
        LGELU__FN(rows_done)(job, b->i, b->end - b->i, b->j, b->n);
}

/* Multiplies one sliver of a block after another with all panels, which are copied before, or by
   the first sliver. */
static LGELU__TARGET void LGELU__FN(sliver_by_sliver)(lgelu__block_state *b)
{
    const lgelu__block *p = b->p;
    const lgelu_product *job = p->job;
    const size_t m = b->end - b->i, n = b->n, k = b->t.k;
    /* The first panel that is copied before any tile. */
    const size_t copied = b->fused ? b->whole : b->packed;
    /* If brief, k is too short for prefetching to pay. */
    const int last = b->k0 + k == job->k, brief = k <= 128;
    size_t row, rows, tall;
    if (copied < b->panels) {
        LGELU__FN(copy)
        (b->b_pack + (copied - b->packed) * b->b_panel, 2 * v_lanes, b->b_panel, &job->b, b->k0, k,
         b->j + copied * 2 * v_lanes, n - copied * 2 * v_lanes);
    }
    b->in = 0;
    for (row = b->i; row < b->end; row += rows) {
        tall = lgelu__height(b->end - row, b->most);
        rows = tall;
        /* Small products process all slivers of one height at once. */
        if (brief && !p->pack_a && !(b->fused && row == b->i) && m * n <= 65536
            && b->whole == b->panels) {
            while (row + rows < b->end && lgelu__height(b->end - row - rows, b->most) == tall)
                rows += tall;
        }
        b->t.slivers = rows / tall;
        LGELU__FN(prefetch_none)(b);
        LGELU__FN(place_a)(b, row, rows);
        if (b->ahead && !brief)
            LGELU__FN(prefetch_ahead)(b, row, rows);
        else if (!brief)
            LGELU__FN(prefetch_a)(b, row + rows);
        if (b->whole)
            LGELU__FN(tiles)(b, 0, row, rows, tall, job->y && last && !brief);
        if (b->whole < b->panels)
            LGELU__FN(tiles)(b, b->whole, row, rows, tall, job->y && last && !brief);
        if (last)
            LGELU__FN(rows_done)(job, row, rows, b->j, n);
        b->in = (b->in + 1) % LGELU__GROUP;
    }
}

/* Sets how many columns of a block, which has those from `first` to `end`, are used together from
   b->j on, and which panels are used after them. */
static LGELU__TARGET void LGELU__FN(columns)(lgelu__block_state *b, size_t first, size_t end)
{
    const lgelu__block *p = b->p;
    const lgelu_product *job = p->job;
    b->n = p->span ? lgelu__min(end - b->j, p->span) : end - b->j;
    b->whole = b->n / (2 * v_lanes);
    b->panels = (b->n + 2 * v_lanes - 1) / (2 * v_lanes);
    /* A narrow last panel is always copied, unless all of B is stored in panels. */
    b->packed = p->panels ? b->panels : b->whole;
    if (p->pack_b)
        b->packed = 0;
    b->ahead = NULL;
    if (p->span && b->j + b->n < end)
        b->ahead = job->b.x + ((b->j + b->n) * job->k + b->k0 * 2 * v_lanes);
    else if (p->span && b->k0 + b->t.k < job->k)
        b->ahead = job->b.x + (first * job->k + (b->k0 + b->t.k) * 2 * v_lanes);
}

/* Computes one block of C, from the first k to the last. */
static LGELU__TARGET void LGELU__FN(block)(const lgelu__block *p, size_t i, size_t m, size_t j,
                                           size_t n, float *work)
{
    const lgelu_product *job = p->job;
    float edge[v_rows * 2 * v_lanes];
    /* Flat tiles are for a B that fits the first-level cache and slivers of 4 to 6 rows. */
    const int flat = v_flat > 1 && !p->pack_a && !p->pack_b && !p->panels && job->k * n <= 8192
                     && n % (4 * v_lanes) == 0 && m > 3 && m != 7;
    lgelu__block_state b;
    const size_t end = j + n;
    b.p = p;
    b.i = i;
    b.end = i + m;
    b.at = i;
    b.edge = edge;
    b.width = flat ? 4 : 2;
    b.most = flat ? v_flat : v_rows;
    /* The first of several slivers has more than half of the maximal height. */
    b.fused = p->fused && m > v_rows;
    b.a_pack = work;
    b.b_pack = work + (p->across ? (size_t)LGELU__GROUP : 1) * 16 * (p->depth + 32);
    for (b.k0 = 0; b.k0 < job->k || !b.k0; b.k0 += p->depth) {
        b.t.k = lgelu__min(job->k - b.k0, p->depth);
        b.b_panel = (b.t.k + 1) * 2 * v_lanes;
        for (b.j = j; b.j < end; b.j += b.n) {
            LGELU__FN(columns)(&b, j, end);
            if (p->by_panel)
                LGELU__FN(panel_by_panel)(&b);
            else
                LGELU__FN(sliver_by_sliver)(&b);
        }
    }
}

/* The sums of the columns of one or four vectors. Rows are summed in groups of 64. */
LGELU__WORD void LGELU__FN(column_sum)(size_t vectors, float *sum, const float *x, size_t x_row,
                                       size_t m, size_t n, int accumulate)
{
    v_t s[4], t[4];
    size_t i, v, rest;
    LGELU__UNROLL
    for (v = 0; v < vectors; v++) {
        t[v] = v_set(0);
        if (accumulate)
            t[v] = vectors > 1 ? v_load(sum + v * v_lanes) : v_load_n(sum, n);
    }
    rest = m;
    while (rest) {
        LGELU__UNROLL
        for (v = 0; v < vectors; v++)
            s[v] = v_set(0);
        i = rest < 64 ? rest : 64;
        rest -= i;
        for (; i; i--) {
            LGELU__UNROLL
            for (v = 0; v < vectors; v++)
                s[v] = v_add(s[v], vectors > 1 ? v_load(x + v * v_lanes) : v_load_n(x, n));
            x += x_row;
        }
        LGELU__UNROLL
        for (v = 0; v < vectors; v++)
            t[v] = v_add(t[v], s[v]);
    }
    if (vectors == 1) {
        v_store_n(sum, t[0], n);
    } else {
        LGELU__UNROLL
        for (v = 0; v < vectors; v++)
            v_store(sum + v * v_lanes, t[v]);
    }
}

static LGELU__TARGET void LGELU__FN(column_sums)(float *sum, const float *x, size_t x_row, size_t m,
                                                 size_t n, int accumulate)
{
    size_t j = 0;
    for (; j + 4 * v_lanes <= n; j += 4 * v_lanes)
        LGELU__FN(column_sum)(4, sum + j, x + j, x_row, m, n - j, accumulate);
    for (; j < n; j += v_lanes)
        LGELU__FN(column_sum)(1, sum + j, x + j, x_row, m, n - j, accumulate);
}

/* A few rows times a matrix whose columns are contiguous, such as x·Wᵀ for one token at a time. W
   is read once and transposed in registers. Each element of C is the same chain of fmas as in a
   tile. One or two rows take two vectors of columns side by side, since two chains of fmas overlap.
   The second vector is `lag` elements of k behind the first: where columns are a multiple of 4 KiB
   apart, their cache lines would otherwise replace each other. Five or seven rows process their
   last one twice. k is a multiple of v_deep. */
LGELU__WORD void LGELU__FN(few)(size_t m, size_t vectors, const lgelu_product *job, size_t k,
                                const float *a, size_t last, const float *b, float *sums)
{
    enum { lag = 64 };
    const size_t a_row = job->a.row_stride, a_col = job->a.col_stride, b_col = job->b.col_stride;
    const float *low = a + last * a_row;
    v_t sum[8], t[v_deep];
    size_t i, l, q, v, step;
    LGELU__UNROLL
    for (i = 0; i < m * vectors; i++)
        sum[i] = v_load(sums + i * v_lanes);
    for (step = 0; step < k + (vectors - 1) * lag; step += v_deep) {
        LGELU__UNROLL
        for (v = 0; v < vectors; v++) {
            const float *from = b + v * v_lanes * b_col, *x, *y;
            /* Before its first element, l is larger than any k. */
            l = step - v * lag;
            if (vectors > 1 && l >= k)
                continue;
            /* Prefetch the same part of the next columns, unless whole cache lines are read, which
               Zen 5 follows by itself, and faster. */
            LGELU__UNROLL
            for (i = 0; v_deep < 16 && i < v_lanes; i += 4)
                LGELU__NEAR(LGELU__PAST(from, (vectors * b_col + l) * v_lanes + i * 4));
            v_turn_deep(t, from + l, b_col);
            x = a - v * lag * a_col;
            y = low - v * lag * a_col;
            LGELU__UNROLL
            for (q = 0; q < v_deep; q++) {
                sum[(m - 1) * vectors + v] = v_fma(v_set(*y), t[q], sum[(m - 1) * vectors + v]);
                LGELU__UNROLL
                for (i = 0; i + 1 < m; i++)
                    sum[i * vectors + v] = v_fma(v_set(x[i * a_row]), t[q], sum[i * vectors + v]);
                x += a_col;
                y += a_col;
                /* Hidden, or gcc keeps the addresses of 16 elements in memory. */
                if (v_deep > 4) {
                    LGELU__HIDE("+r", x);
                    LGELU__HIDE("+r", y);
                }
            }
        }
        a += v_deep * a_col;
        low += v_deep * a_col;
    }
    LGELU__UNROLL
    for (i = 0; i < m * vectors; i++)
        v_store(sums + i * v_lanes, sum[i]);
}

/* A number of vectors and of rows that few is compiled for. With AVX-512 each is a function: in one
   function all of them would take half as long again to compile. AVX2 would lose up to a tenth of
   its speed by the calls. */
#if v_deep > 4
#define LGELU__FEW_LINKAGE LGELU__APART LGELU__TARGET
#else
#define LGELU__FEW_LINKAGE LGELU__WORD
#endif
#define LGELU__FEW(vectors, r)                                                                \
    LGELU__FEW_LINKAGE void LGELU__FN(few##vectors##_##r)(const lgelu_product *job, size_t k, \
                                                          const float *a, size_t last,        \
                                                          const float *b, float *sums)        \
    {                                                                                         \
        LGELU__FN(few)(r, vectors, job, k, a, last, b, sums);                                 \
    }
#define LGELU__CASE(vectors, r)                                                  \
    case 8 * vectors + r:                                                        \
        LGELU__FN(few##vectors##_##r)                                            \
        (job, tail - head, a + head * job->a.col_stride, m - 1, b + head, sums); \
        break;
#if v_few > 2
#define LGELU__HEIGHTS(X) X(1, 1) X(1, 2) X(1, 3) X(1, 4) X(1, 6) X(1, 8) X(2, 1) X(2, 2)
#else
#define LGELU__HEIGHTS(X) X(1, 1) X(1, 2) X(2, 1) X(2, 2)
#endif
LGELU__HEIGHTS(LGELU__FEW)

/* The k from first to end: those before few_head, and the last ones, fewer than v_deep. */
static LGELU__TARGET void LGELU__FN(few_rest)(size_t m, size_t wide, const lgelu_product *job,
                                              const float *a, const float *b, float *sums,
                                              size_t first, size_t end)
{
    const size_t b_col = job->b.col_stride;
    v_t t[4];
    size_t i, j, l, q, n;
    for (l = first; l < end; l += n) {
        n = end - l < 4 ? 1 : 4;
        for (j = 0; j < wide; j += v_lanes) {
            if (n == 4) {
                v_turn(t, b + j * b_col + l, b_col);
            } else {
                float column[v_lanes];
                for (i = 0; i < v_lanes; i++)
                    column[i] = b[(j + i) * b_col + l];
                t[0] = v_load(column);
            }
            for (i = 0; i < m; i++) {
                const float *x = a + i * job->a.row_stride + l * job->a.col_stride;
                v_t sum = v_load(sums + i * wide + j);
                for (q = 0; q < n; q++)
                    sum = v_fma(v_set(x[q * job->a.col_stride]), t[q], sum);
                v_store(sums + i * wide + j, sum);
            }
        }
    }
}

/* Returns the number of elements of each column of B before its first whole cache line, where
   columns are a multiple of 4 KiB apart and v_turn_deep reads as many floats as a line has. Read
   from there, no load touches two lines. Otherwise each line is needed in two steps, and the lines
   of the other columns, all in one set of the first-level cache, have replaced it before the
   second: 512 columns of 1,024 floats took 1.9 times as long on Zen 4. */
LGELU__WORD size_t LGELU__FN(few_head)(const lgelu_product *job)
{
    const size_t line = 16, past = (uintptr_t)job->b.x / sizeof(float) % line;
    if (v_deep < line || job->b.col_stride % 1024 || job->k < 256)
        return 0;
    return (line - past) % line;
}

static LGELU__TARGET void LGELU__FN(few_rows)(const lgelu_product *job, size_t first, size_t end)
{
    enum { most = v_few };
    const size_t head = LGELU__FN(few_head)(job), tail = job->k - (job->k - head) % v_deep;
    float sums[(most + 2) * v_lanes];
    size_t i, j, v, m, row, again, high, vectors, wide;
    for (j = first; j < end; j += wide) {
        vectors = job->m <= 2 && end - j >= 2 * v_lanes ? 2 : 1;
        wide = vectors * v_lanes;
        for (row = 0; row < job->m; row += m) {
            const float *a = job->a.x + row * job->a.row_stride, *b;
            float *c;
            /* The last vector may overlap the one before. The first `again` columns of it are not
               written again. */
            again = j + wide > end ? j + wide - end : 0;
            b = job->b.x + (j - again) * job->b.col_stride;
            c = job->c + row * job->c_stride + j - again;
            m = lgelu__min(job->m - row, most);
            high = m < 5 ? m : (m + 1) / 2 * 2;
            for (i = 0; i < high; i++) {
                for (v = 0; v < wide; v += v_lanes) {
                    v_t start = v_set(0);
                    if (i < m && job->accumulate)
                        start = v_load(c + i * job->c_stride + v);
                    else if (job->bias)
                        start = v_load(job->bias + j - again + v);
                    v_store(sums + i * wide + v, start);
                }
            }
            if (head)
                LGELU__FN(few_rest)(m, wide, job, a, b, sums, 0, head);
            switch (8 * vectors + high) {
            default: break; LGELU__HEIGHTS(LGELU__CASE)
            }
            if (tail < job->k)
                LGELU__FN(few_rest)(m, wide, job, a, b, sums, tail, job->k);
            for (i = 0; i < m; i++) {
                for (v = again; v < wide; v += v_lanes)
                    v_store_n(c + i * job->c_stride + v, v_load(sums + i * wide + v), wide - v);
            }
        }
    }
    for (i = 0; job->y && i < job->m; i++) {
        LGELU__FN(phi_forward)
        (job->y + i * job->y_stride + first, job->c + i * job->c_stride + first, job->lambda,
         end - first);
    }
    if (job->finish)
        job->finish(0, job->m, first, end - first, job->user);
}

#undef LGELU__FEW
#undef LGELU__FEW_LINKAGE
#undef LGELU__CASE
#undef LGELU__HEIGHTS

/* ---- [Ki] images ---- */
/* Copies n floats. */
LGELU__WORD void LGELU__FN(copy_run)(float *y, const float *x, size_t n)
{
    for (; n >= v_lanes; n -= v_lanes) {
        v_store(y, v_load(x));
        x += v_lanes;
        y += v_lanes;
    }
    if (n)
        v_store_n(y, v_load_n(x, n), n);
}

/* Writes n elements of an image's line of `line` elements, from element `at`: 0 outside of it. */
LGELU__WORD void LGELU__FN(copy_padded)(float *out, size_t n, const float *line_of, size_t line,
                                        ptrdiff_t at)
{
    const ptrdiff_t end = at + (ptrdiff_t)n;
    size_t before = 0, after = 0;
    if (end <= 0 || at >= (ptrdiff_t)line) {
        before = n;
    } else {
        if (at < 0)
            before = (size_t)-at;
        if (end > (ptrdiff_t)line)
            after = (size_t)end - line;
    }
    memset(out, 0, before * sizeof *out);
    if (before < n)
        LGELU__FN(copy_run)(out + before, line_of + (at + (ptrdiff_t)before), n - before - after);
    memset(out + n - after, 0, after * sizeof *out);
}

/* Writes `rows` rows of n elements, which begin `step` elements apart in an image's line, the first
   at element `at`. The rows in the middle need no padding. */
LGELU__WORD void LGELU__FN(copy_line)(float *out, size_t out_row, size_t rows, size_t n,
                                      const float *line_of, size_t line, ptrdiff_t at, size_t step)
{
    const ptrdiff_t beyond = (ptrdiff_t)line - (ptrdiff_t)n - at;
    const size_t inside = at < 0 ? ((size_t)-at + step - 1) / step : 0;
    const size_t end = beyond < 0 ? 0 : lgelu__min(rows, (size_t)beyond / step + 1);
    size_t r;
    for (r = 0; r < rows && r < inside; r++)
        LGELU__FN(copy_padded)(out + r * out_row, n, line_of, line, at + (ptrdiff_t)(r * step));
    for (; r < end; r++)
        LGELU__FN(copy_run)(out + r * out_row, line_of + (at + (ptrdiff_t)(r * step)), n);
    for (; r < rows; r++)
        LGELU__FN(copy_padded)(out + r * out_row, n, line_of, line, at + (ptrdiff_t)(r * step));
}

/* METHOD. A patch of an image consists of one run of contiguous elements for each row of the
   convolution's kernel, or for each element of the kernel where a group has only a part of the
   channels, or where a dilation separates them. A run that extends past the image is padded with
   zeros. Writes `rows` rows of `cols` elements, from row i and column j of the matrix on: run by
   run, and for each the rows whose pixels share a line of the image. */
static LGELU__TARGET void LGELU__FN(im2col)(float *out, size_t out_row, size_t i, size_t rows,
                                            size_t j, size_t cols, const void *from)
{
    const lgelu__im2col *p = (const lgelu__im2col *)from;
    /* A run is a whole row of the kernel, or one of its elements. */
    const int whole = p->pixel == p->channels && p->dilation[1] == 1;
    const size_t run = whole ? p->channels * p->across : p->channels;
    const size_t across = whole ? 1 : p->across, line = p->columns * p->pixel;
    /* The stride of a single pixel may have any size. */
    const size_t step = p->grid[1] > 1 ? p->step[1] * p->pixel : 1;
    while (cols) {
        const size_t first = j % run, n = lgelu__min(run - first, cols);
        const size_t tap = j / run % across, tap_row = j / run / across;
        size_t column = i % p->grid[1], row = i / p->grid[1] % p->grid[0],
               sample = i / p->grid[1] / p->grid[0], left = rows;
        float *o = out;
        while (left) {
            const size_t count = lgelu__min(p->grid[1] - column, left);
            /* It wraps around below 0, and then also fails the test y < rows. */
            const size_t y = row * p->step[0] + (size_t)p->origin[0] + tap_row * p->dilation[0];
            const ptrdiff_t pixel =
                (ptrdiff_t)(column * p->step[1] + tap * p->dilation[1]) + p->origin[1];
            /* Of a line outside of the image no element is read. */
            const size_t readable = y < p->rows ? line : 0;
            const float *image = p->x + sample * p->rows * line;
            LGELU__FN(copy_line)
            (o, out_row, count, n, readable ? image + y * line : image, readable,
             pixel * (ptrdiff_t)p->pixel + (ptrdiff_t)first, step);
            o += count * out_row;
            left -= count;
            column = 0;
            row++;
            if (row == p->grid[0]) {
                row = 0;
                sample++;
            }
        }
        out += n;
        j += n;
        cols -= n;
    }
}

/* y = start + Σ tap[t]·w[t] for n channels, over the elements t of the kernel in order. A tap that
   is NULL is outside of the image; start may be NULL for 0. */
static LGELU__TARGET void LGELU__FN(depthwise)(float *y, size_t n, const float *w, size_t w_tap,
                                               const float *start, const float *const *tap,
                                               size_t taps)
{
    size_t i, t;
    for (i = 0; i < n; i += v_lanes) {
        v_t sum = start ? v_load_n(start + i, n - i) : v_set(0);
        for (t = 0; t < taps; t++) {
            if (tap[t])
                sum = v_fma(v_load_n(tap[t] + i, n - i), v_load_n(w + t * w_tap + i, n - i), sum);
        }
        v_store_n(y + i, sum, n - i);
    }
}

/* Winograd's transforms are products T·x·Tᵀ, and winograd_line applies T to one line (a, b, c, d):
     of the input      T = Bᵀ = (1 0 -1 0; 0 1 1 0; 0 -1 1 0; 0 1 0 -1)
     of the weights    T = G = (1 0 0; ½ ½ ½; ½ -½ ½; 0 0 1)
     of the output     T = Aᵀ = (1 1 1 0; 0 1 -1 -1)
     of dy             T = A
     of dW             T = Gᵀ */
LGELU__WORD void LGELU__FN(winograd_line)(v_t *y, size_t step, int of, v_t a, v_t b, v_t c, v_t d)
{
    const v_t half = v_set(0.5f);
    v_t sum = v_mul(of == LGELU__OF_DW ? v_add(b, c) : v_add(a, c), half);
    LGELU__HIDE_FLOATS(sum);
    switch (of) {
    case LGELU__OF_X:
        y[0] = v_sub(a, c);
        y[step] = v_add(b, c);
        y[2 * step] = v_sub(c, b);
        y[3 * step] = v_sub(b, d);
        break;
    case LGELU__OF_W:
        b = v_mul(b, half);
        LGELU__HIDE_FLOATS(b);
        y[0] = a;
        y[step] = v_add(sum, b);
        y[2 * step] = v_sub(sum, b);
        y[3 * step] = c;
        break;
    case LGELU__OF_Y:
        y[0] = v_add(v_add(a, b), c);
        y[step] = v_sub(v_sub(b, c), d);
        break;
    case LGELU__OF_DY:
        y[0] = a;
        y[step] = v_add(a, b);
        y[2 * step] = v_sub(a, b);
        y[3 * step] = v_sub(v_set(0), b);
        break;
    default:
        b = v_mul(v_sub(b, c), half);
        LGELU__HIDE_FLOATS(b);
        y[0] = v_add(a, sum);
        y[step] = b;
        y[2 * step] = v_add(sum, d);
        break;
    }
}

/* Transforms x (n, n) to y (m, m), first the rows, then the columns. */
LGELU__WORD void LGELU__FN(winograd)(v_t *y, const v_t *x, int of, size_t n, size_t m)
{
    const v_t none = v_set(0);
    v_t t[16];
    size_t k;
    LGELU__UNROLL
    for (k = 0; k < n; k++) {
        LGELU__FN(winograd_line)
        (t + k * m, 1, of, x[k * n], x[k * n + 1], n > 2 ? x[k * n + 2] : none,
         n > 3 ? x[k * n + 3] : none);
    }
    LGELU__UNROLL
    for (k = 0; k < m; k++) {
        LGELU__FN(winograd_line)
        (y + k, m, of, t[k], t[m + k], n > 2 ? t[2 * m + k] : none, n > 3 ? t[3 * m + k] : none);
    }
}

/* There are at least v_lanes channels, and the last vector may overlap the one before. */
#define v_step(j, n) ((n) - (j) < 2 * v_lanes && (n) - (j) > v_lanes ? (n)-v_lanes - (j) : v_lanes)
static LGELU__TARGET void LGELU__FN(winograd_in)(float *u, size_t step, const float *x,
                                                 const size_t *at, size_t n)
{
    v_t t[16], y[16];
    size_t j, k;
    for (j = 0; j < n; j += v_step(j, n)) {
        LGELU__UNROLL
        for (k = 0; k < 16; k++)
            t[k] = at[k] != LGELU__NO_PIXEL ? v_load(x + at[k] + j) : v_set(0);
        LGELU__FN(winograd)(y, t, LGELU__OF_X, 4, 4);
        LGELU__UNROLL
        for (k = 0; k < 16; k++)
            v_store(u + k * step + j, y[k]);
    }
}

static LGELU__TARGET void LGELU__FN(winograd_kernel)(float *u, size_t step, const float *w,
                                                     size_t tap, size_t n, int flip)
{
    v_t t[9], y[16];
    size_t j, k;
    for (j = 0; j < n; j += v_step(j, n)) {
        LGELU__UNROLL
        for (k = 0; k < 9; k++)
            t[k] = v_load(w + (flip ? 8 - k : k) * tap + j);
        LGELU__FN(winograd)(y, t, LGELU__OF_W, 3, 4);
        LGELU__UNROLL
        for (k = 0; k < 16; k++)
            v_store(u + k * step + j, y[k]);
    }
}

/* This transform and the next one process the columns first, the way their lines are stored. */
static LGELU__TARGET void LGELU__FN(winograd_out)(float *y, const size_t *at, const float *m,
                                                  size_t step, const float *bias, int add, size_t n)
{
    v_t t[16], z[4];
    size_t j, k;
    for (j = 0; j < n; j += v_lanes) {
        LGELU__UNROLL
        for (k = 0; k < 16; k++)
            t[k] = v_load_n(m + (k % 4 * 4 + k / 4) * step + j, n - j);
        LGELU__FN(winograd)(z, t, LGELU__OF_Y, 4, 2);
        LGELU__UNROLL
        for (k = 0; k < 4; k++) {
            if (at[k] != LGELU__NO_PIXEL) {
                float *to = y + at[k] + j;
                v_t v = z[k % 2 * 2 + k / 2];
                if (bias)
                    v = v_add(v, v_load_n(bias + j, n - j));
                if (add)
                    v = v_add(v, v_load_n(to, n - j));
                v_store_n(to, v, n - j);
            }
        }
    }
}

static LGELU__TARGET void LGELU__FN(winograd_dy)(float *m, size_t step, const float *dy,
                                                 const size_t *at, size_t n)
{
    v_t t[4], y[16];
    size_t j, k;
    for (j = 0; j < n; j += v_step(j, n)) {
        LGELU__UNROLL
        for (k = 0; k < 4; k++)
            t[k % 2 * 2 + k / 2] = at[k] != LGELU__NO_PIXEL ? v_load(dy + at[k] + j) : v_set(0);
        LGELU__FN(winograd)(y, t, LGELU__OF_DY, 2, 4);
        LGELU__UNROLL
        for (k = 0; k < 16; k++)
            v_store(m + k * step + j, y[k % 4 * 4 + k / 4]);
    }
}

static LGELU__TARGET void LGELU__FN(winograd_dkernel)(float *dw, const float *u, size_t step,
                                                      int add, size_t n)
{
    v_t t[16], y[9];
    size_t j, k;
    for (j = 0; j < n; j += v_lanes) {
        LGELU__UNROLL
        for (k = 0; k < 16; k++)
            t[k] = v_load_n(u + k * step + j, n - j);
        LGELU__FN(winograd)(y, t, LGELU__OF_DW, 4, 3);
        LGELU__UNROLL
        for (k = 0; k < 9; k++) {
            v_store_n(dw + k * n + j, add ? v_add(v_load_n(dw + k * n + j, n - j), y[k]) : y[k],
                      n - j);
        }
    }
}

/* Computes Σ a and Σ a·b over the rows, each as the sum of two floats. The rounding errors of sums
   (Knuth's TwoSum) and products (an fma) are summed separately. The result has 48 bits on every
   instruction set. */
static LGELU__TARGET void LGELU__FN(channel_sums)(double *sum, const float *a, const float *b,
                                                  size_t rows, size_t n)
{
    float lane[4][v_lanes];
    size_t i, j, k;
    for (j = 0; j < n; j += v_lanes) {
        v_t s = v_set(0), s_low = s, d = s, d_low = s, x, y, p, t, z;
        for (i = 0; i < rows; i++) {
            x = n - j < v_lanes ? v_load_n(a + i * n + j, n - j) : v_load(a + i * n + j);
            y = n - j < v_lanes ? v_load_n(b + i * n + j, n - j) : v_load(b + i * n + j);
            t = v_add(s, x);
            z = v_sub(t, s);
            s_low = v_add(s_low, v_add(v_sub(s, v_sub(t, z)), v_sub(x, z)));
            s = t;
            p = v_mul(x, y);
            t = v_add(d, p);
            z = v_sub(t, d);
            d_low = v_add(d_low, v_sub(v_add(v_sub(d, v_sub(t, z)), v_sub(p, z)), v_fnma(x, y, p)));
            d = t;
        }
        v_store(lane[0], s);
        v_store(lane[1], s_low);
        v_store(lane[2], d);
        v_store(lane[3], d_low);
        for (k = 0; k < v_lanes && j + k < n; k++) {
            sum[j + k] = (double)lane[0][k] + (double)lane[1][k];
            sum[n + j + k] = (double)lane[2][k] + (double)lane[3][k];
        }
    }
}

/* x·k + c of n channels; k and c may be NULL for 1 and 0. */
LGELU__WORD v_t LGELU__FN(term)(const float *x, const float *k, const float *c, size_t j, size_t n)
{
    v_t v = v_load_n(x + j, n - j);
    if (k && c)
        return v_fma(v, v_load_n(k + j, n - j), v_load_n(c + j, n - j));
    if (k) {
        v = v_mul(v, v_load_n(k + j, n - j));
        LGELU__HIDE_FLOATS(v);
    }
    return v;
}

static LGELU__TARGET void LGELU__FN(affine)(float *y, const lgelu__scaled *one,
                                            const lgelu__scaled *two, size_t rows, size_t n)
{
    const float *a = one->x, *ka = one->scale, *ca = one->shift, *b = two->x, *kb = two->scale,
                *cb = two->shift;
    size_t j;
    for (; rows; rows--) {
        for (j = 0; j < n; j += v_lanes) {
            v_t v = LGELU__FN(term)(a, ka, ca, j, n);
            LGELU__AHEAD(a, j);
            LGELU__AHEAD(y, j);
            if (b) {
                LGELU__AHEAD(b, j);
                v = v_add(v, LGELU__FN(term)(b, kb, cb, j, n));
            }
            v_store_n(y + j, v, n - j);
        }
        y += n;
        a += n;
        if (b)
            b += n;
    }
}
#endif

#ifdef LGELU_TRAINER
static const lgelu__kernels LGELU__FN(kernels) = { LGELU__KERNELS(LGELU__ENTRY)
                                                       LGELU__TRAINER_KERNELS(LGELU__ENTRY) v_rows,
                                                   2 * v_lanes };
#endif

/* The names of the vocabulary are removed, so that the next instruction set can define them. */
#undef v_t
#undef n_t
#undef m_t
#undef i_t
#undef s_t
#undef b_t
#undef v_load
#undef v_load_n
#undef v_store
#undef v_store_n
#undef v_stream
#undef v_fence
#undef v_set
#undef v_add
#undef v_sub
#undef v_mul
#undef v_div
#undef v_sqrt
#undef v_fma
#undef v_fms
#undef v_fnma
#undef v_abs
#undef v_max
#undef v_least
#undef v_most
#undef v_sign
#undef v_times2
#undef v_lt
#undef v_lt_of
#undef v_nge
#undef v_select
#undef v_bits
#undef v_float
#undef v_whole
#undef v_cut
#undef v_index
#undef v_table
#undef v_fold
#undef v_signed
#undef v_base
#undef v_turned
#undef v_turn
#undef v_turn_deep
#undef LGELU__ROWS
#undef t_t
#undef r_t
#undef v_row
#undef v_load_or
#undef v_pack
#undef v_unpack
#undef v_parts
#undef v_total
#undef m_and
#undef m_or
#undef m_less
#undef m_any
#undef m_all
#undef m_some
#undef m_bits
#undef n_set
#undef n_add
#undef n_sub
#undef n_and
#undef n_or
#undef n_xor
#undef n_max
#undef n_min
#undef n_up
#undef n_down
#undef n_gt
#undef n_select
#undef n_product
#undef s_load
#undef s_store
#undef s_wide
#undef s_narrow
#undef v_from_f16
#undef v_to_f16
#undef d_t
#undef d_half
#undef d_signed
#undef d_fma
#undef d_float
#undef v_round
#undef d_last
#undef v_lanes
#undef v_rows
#undef v_flat
#undef v_tall
#undef v_few
#undef v_deep
#undef v_each
#undef v_step
#undef LGELU__WORD
#undef LGELU__UNROLL
#undef LGELU__FMA_LINKAGE
#undef LGELU__FN
#undef LGELU__SUFFIX
#undef LGELU__TARGET
#undef LGELU__INTEL
#undef LGELU__HAS_FMA
#undef LGELU__FMA_IS_CALL
#undef LGELU__SUMS_IN_DOUBLE
#undef LGELU__HAS_MASKS
#undef LGELU__HAS_TABLE16
#undef LGELU__HAS_COMPRESS
#undef LGELU__HAS_ANY
#undef LGELU__HAS_RANGE
#undef LGELU__HAS_STREAM
#endif /* LGELU__PASS */
