/* SPDX-License-Identifier: MIT-0

   onnx_c_inside.h: what the writers of C files share. Private to onnx_c*.c.

   A writer of an operator is a function that writes the C function of one node: the arrays that it
   needs, its head (onnx_c_function), its body line by line, its end. The whole file is written
   twice: first to nowhere, to learn which constants and helpers it needs. */
#ifndef ONNX_C_INSIDE_H
#define ONNX_C_INSIDE_H
#include "onnx_c.h"
#include "onnx_layers.h"

enum { ONNX_C_TEXT = 512, ONNX_C_OPERANDS = 64 };

/* The arrays of values, one for each type of elements. */
typedef enum {
    ONNX_C_F32,
    ONNX_C_I64,
    ONNX_C_I32,
    ONNX_C_U8, /* uint8 and bool */
    ONNX_C_I8,
    ONNX_C_ARENAS
} onnx_c_arena;

/* A value of the main graph. */
typedef struct {
    const onnx_tensor *x; /* its type and shape, and, if it is known, its elements */
    int known;            /* it does not depend on the inputs */
    int type;    /* of its elements in the file: that of x, or, on a grid, bytes or int32 */
    int on_grid; /* element q stands for scale·(q - zero) */
    float scale;
    int zero;
    int host;                  /* the value whose storage it uses; itself: its own */
    int input, output;         /* its number among those of the function, or -1 */
    int first, last;           /* the nodes that make it and read it last; -1: none */
    size_t at;                 /* of its storage, in elements */
    int copy_first, copy_last; /* the nodes that read it as floats first and last; -1: none */
    size_t copy_at;            /* of these floats */
    unsigned char written;     /* its elements are in the file already */
} onnx_c_value;

struct onnx_c_operator;
struct onnx_c_region;

typedef struct {
    const struct onnx_c_operator *row;
    struct onnx_c_region *region; /* of integer files: what this node computes; or NULL */
    int live;                     /* an output depends on it */
    int floats;                   /* in an integer file: it is computed in floats */
    int loop;             /* the node whose loop computes it: itself, unless it is element-wise */
    int is_view;          /* its output is an input in another shape */
    int over;             /* the input value that its output is written over, or -1 */
    size_t work, work_at; /* floats that it needs beside its values, and where they are */
} onnx_c_node;

struct onnx_c {
    onnx_run *run;
    const onnx_graph *graph;
    char name[64];
    onnx_c_value *value;
    onnx_c_node *node;
    size_t arena[ONNX_C_ARENAS]; /* elements */
    unsigned char *keep;         /* run->keep, as it was */
    int integers;                /* 1: what is between grids is computed in integers */
    int floats;                  /* nodes of an integer file that are computed in floats */
    unsigned char *leave;        /* by node: not 0: its integers were refused, it has floats */
    int at;                      /* the node that is written */
    int lacks_memory;            /* an allocation failed: nothing replaces what needed it */
    uint64_t helpers;            /* a bit for each that the file needs */
    deploy_out out;
    int depth; /* of blocks */
    char message[160];
};

/* A row of a table of operators. */
typedef struct onnx_c_operator {
    const char *op;
    enum { ONNX_C_LAYER, ONNX_C_MOVE, ONNX_C_ELEMENT, ONNX_C_REGION } kind;
    /* Refuses a node that it cannot write, by onnx_c_refuse; NULL: it writes all that evaluate. */
    int (*check)(onnx_c *c, int node);
    int (*write)(onnx_c *c, int node); /* 0, or -1 with a message; NULL for ONNX_C_ELEMENT */
    /* ONNX_C_ELEMENT: writes the expression of operands $0, $1, ... */
    const char *expression;
} onnx_c_operator;

extern const onnx_c_operator onnx_c_layer_operators[];     /* products, convolutions */
extern const onnx_c_operator onnx_c_rows_operators[];      /* pools, reductions, norms, Softmax */
extern const onnx_c_operator onnx_c_move_operators[];      /* Slice, Concat, Resize, ... */
extern const onnx_c_operator onnx_c_math_operators[];      /* element by element */
extern const onnx_c_operator onnx_c_recurrent_operators[]; /* LSTM, GRU, RNN */

/* ---- what a node is ---- */

/* The row of a node's operator, or NULL. */
const onnx_c_operator *onnx_c_find_operator(const onnx_node *n);

/* Writes "node 'NAME' (OP): " and the text to the message, unless it has one. Returns -1. */
int onnx_c_refuse(onnx_c *c, int node, const char *format, ...);

/* Refuses a node whose operator no table has. Returns -1. */
int onnx_c_no_operator(onnx_c *c, int node);

/* Replaces the message by "out of memory" and sets lacks_memory. Returns -1. */
int onnx_c_no_memory(onnx_c *c);

/* A call of the evaluator for a node, by which its attributes are read; in: 64 places. */
void onnx_c_call(const onnx_c *c, int node, onnx_call *call, const onnx_tensor **in);

/* The value of input or output k, or -1; its tensor, or NULL. */
int onnx_c_input(const onnx_c *c, int node, int k);
int onnx_c_output(const onnx_c *c, int node, int k);
const onnx_tensor *onnx_c_tensor(const onnx_c *c, int value);
/* Returns whether input k is there and does not depend on the network's inputs. */
int onnx_c_is_known(const onnx_c *c, int node, int k);

/* Refuses unless input k is known or left out, or unless it is of floats. */
int onnx_c_needs_known(onnx_c *c, int node, int k);
int onnx_c_needs_floats(onnx_c *c, int node, int inputs);

/* Refuses outputs that the file cannot hold. */
int onnx_c_check_outputs(onnx_c *c, int node);

/* Returns the arena of a type, or -1; the type's name in C. */
int onnx_c_arena_of(int type);
const char *onnx_c_type(int type);

/* The values that a node's function receives, none twice where it is element-wise: those that are
   not known. Returns how many. */
int onnx_c_operands(const onnx_c *c, int node, int *value);

/* ---- element-wise nodes (onnx_c_math.c) ---- */
/* Returns the values from outside that the loop of a node reads, known ones among them. */
int onnx_c_math_operands(const onnx_c *c, int node, int *value);
int onnx_c_math_write(onnx_c *c, int node);
/* Moving nodes (onnx_c_move.c): whether the output is the input in another shape; -1: refused. */
int onnx_c_move_is_view(onnx_c *c, int node);
/* Returns whether a node interpolates: it is a Resize that is not to the nearest. */
int onnx_c_is_resampled(const onnx_c *c, int node);
/* Returns whether input k of a moving node holds elements that are moved. */
int onnx_c_move_is_data(const onnx_node *n, int k);

/* ---- pools and reductions, in files of floats and of integers (onnx_c_rows.c) ---- */
/* Writes the loops over taps; taps outside of the image are passed over. row receives the index of
   the element. */
void onnx_c_pool_taps(onnx_c *c, const onnx_window *w, int dims, char *row);
/* Writes how many elements windows count, in arrays where these are not all the same; count
   receives the expression for a window, ONNX_C_TEXT bytes. Returns the count where all are the
   same, 0, or -1 with a message. */
int64_t onnx_c_pool_count(onnx_c *c, int node, const onnx_window *w, int dims, int pads,
                          char *count);
/* Writes the loops over the dimensions of x before `end` that are reduced (which 1), or that are
   not (0); index receives the place of the element. */
void onnx_c_reduce_loops(onnx_c *c, const onnx_tensor *x, const unsigned char *reduced, int which,
                         int end, char *index);

/* ---- integer files (onnx_c_int8.c) ---- */
/* Finds what each node computes in integers. Returns 0, or -1 with a message. */
int onnx_c_int8_plan(onnx_c *c);
/* The values that a region reads. Returns how many. */
int onnx_c_int8_operands(const onnx_c *c, int node, int *value);
/* The name of the table through which a moving node reads input k, or an empty text. */
const char *onnx_c_int8_table(const onnx_c *c, int node, int k, char *to); /* 48 bytes */
/* Writes the tables of a moving node. */
void onnx_c_int8_tables(onnx_c *c, int node);
/* The number nearest to x on the grid of a value. */
int64_t onnx_c_on_grid(const onnx_c_value *v, double x);
void onnx_c_int8_free(onnx_c *c);
/* Returns whether a node is a function of one byte that may be written over it. */
int onnx_c_int8_is_table(const onnx_c *c, int node);
/* Makes a node the end of a layer whose sums become floats, which nothing but nodes in floats
   reads. Returns 0, or -1: it is none. */
int onnx_c_int8_floats(onnx_c *c, int node);
/* Forgets what a node computes in integers. */
void onnx_c_int8_forget(onnx_c *c, int node);
/* Makes a node the end of a layer whose sums of 32 bits are kept. Returns 0, or -1 with a message.
 */
int onnx_c_int8_sums(onnx_c *c, int node);
/* Puts a value on a grid. */
void onnx_c_int8_hold(onnx_c *c, int value, int type, float scale, int zero);

/* ---- functions of a byte that consist of lines (onnx_c_lines.c) ---- */
typedef struct {
    int kinks, shift, start_shift;
    int missed;      /* bytes that are a step off, and are listed */
    int16_t *number; /* for each channel: start, slope; place of a kink, change of the slope; ... */
} onnx_c_lines;

/* Finds the lines of `entries` functions: y are their values (256, entries) before a grid, table
   their bytes (entries, 256). l->number is NULL if they are no such lines; free it. Returns 0, or
   -1: no memory. */
int onnx_c_lines_find(onnx_c_lines *l, const float *y, const uint8_t *table, size_t entries,
                      const onnx_c_value *grid);
/* Writes the loops over the elements of each channel. */
int onnx_c_lines_write(onnx_c *c, int node, const onnx_c_lines *l, const uint8_t *table, int from,
                       int to, size_t entries, size_t inner);

/* ---- sums, differences and products of two bytes (onnx_c_pairs.c) ---- */
enum { ONNX_C_PAIR_MOST = 64 };

/* With a, b the integers less their zero points: (a·m + b·n) / 2^shift, or a·b·m / 2^shift, on the
   grid of y and within its limits. n of a difference is negative. */
typedef struct {
    char op; /* '+', '-' or '*' */
    const onnx_c_value *a, *b, *y;
    int64_t least, most, m, n;
    int shift;
    int listed; /* pairs of bytes whose result is another one: both, and the result */
    uint8_t list[ONNX_C_PAIR_MOST][3];
} onnx_c_pair;

/* Changes m and n by so little that the results are those of the evaluator, and lists what differs
   still. Returns 0, 1: the list is too short, or -1: no memory. */
int onnx_c_pair_fit(onnx_c_pair *p);

/* ---- nodes of integer files that are computed in floats (onnx_c_mixed.c) ---- */
/* Each returns 0, or -1 with a message: a node is computed in floats; so is a QuantizeLinear, whose
   output's grid is set; the floats of a value can be read. */
int onnx_c_mixed_node(onnx_c *c, int node);
int onnx_c_mixed_quantize(onnx_c *c, int node);
int onnx_c_mixed_value(onnx_c *c, int value);
/* Returns whether a node reads the floats of a value that is on a grid, as a copy: loops read the
   bytes themselves. */
int onnx_c_mixed_copies(const onnx_c *c, int node, int value);
/* The type of a value as a node reads it. */
int onnx_c_mixed_type(const onnx_c *c, int node, int value);
/* Notes the helpers that make copies. */
void onnx_c_mixed_use_copies(onnx_c *c);
/* Writes the calls that make the copies which a node is the first to read. */
void onnx_c_mixed_put_copies(onnx_c *c, int node);
/* Writes the names of the nodes that are computed in floats. */
void onnx_c_mixed_put_list(onnx_c *c);

/* ---- writing ---- */
enum { ONNX_C_HELPERS = 38 };

/* Notes the helpers whose names an expression calls. */
void onnx_c_use_called(onnx_c *c, const char *expression);
/* Writes the helpers that are noted, each behind those that it calls (onnx_c_helpers.c). */
void onnx_c_put_helpers(onnx_c *c);
/* Adds the helpers that noted helpers call. */
void onnx_c_close_helpers(onnx_c *c);

/* Writes what holds the elements of a value in the function of the network. */
void onnx_c_put_pointer(onnx_c *c, int value);
/* Writes a text inside of a comment: what could end it becomes an underscore. */
void onnx_c_put_comment(deploy_out *o, const deploy_span *text);

/* Write a line, indented; the head of a block and its brace; the end of a block. */
void onnx_c_line(onnx_c *c, const char *format, ...);
void onnx_c_open(onnx_c *c, const char *format, ...);
void onnx_c_close(onnx_c *c);
/* Opens a loop of a variable from 0 to n - 1. */
void onnx_c_for(onnx_c *c, const char *variable, size_t n);

/* Writes an array of a known value's elements, unless it is in the file already: c<value>_. */
void onnx_c_constant(onnx_c *c, int value);
/* Writes an array of floats or of indices: NAME<node>_. */
void onnx_c_floats(onnx_c *c, const char *name, int node, const float *x, size_t n);
void onnx_c_wholes(onnx_c *c, const char *name, int node, const int64_t *x, size_t n);
/* Writes a number as C reads it. */
void onnx_c_real(onnx_c *c, double x);
void onnx_c_float_text(char *to, float x);   /* 32 bytes */
void onnx_c_real_text(char *to, double x);   /* 48 bytes */
void onnx_c_whole_text(char *to, int64_t x); /* 48 bytes */

/* Writes the constants that a node reads as they are, a comment, and the head of its function. */
void onnx_c_function(onnx_c *c, int node);
/* Returns whether output k of a node is passed to its function. */
int onnx_c_has_output(const onnx_c *c, int node, int k);
/* The name of input k inside of the function: x<k>, or that of a constant. */
const char *onnx_c_name(const onnx_c *c, int node, int k, char *to); /* 48 bytes */

/* Makes "(index * n + t2)" of an index, for letter t and dimension 2: an index with one dimension
   more, of size n. */
void onnx_c_nest(char *index, int64_t n, const char *letter, int dimension);

/* Appends " + variable·factor" to an index, or nothing if the factor is 0. */
void onnx_c_term(char *index, const char *variable, size_t factor);
#endif
