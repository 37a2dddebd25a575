/* SPDX-License-Identifier: MIT-0

   onnx_graph.h: an ONNX file as a graph of nodes, attributes, constants, inputs and outputs, and
   the same file with edits, in which every byte that is not edited is as it was.

       onnx_graph *g = onnx_graph_open(file, bytes, NULL, NULL, message);    NULL: see message
       for (i = 0; i < g->top.nodes; i++)
           ... g->top.node[i].op, g->value[g->top.node[i].output[0]].name ...
       onnx_edit *e = onnx_edit_begin(g);
       onnx_edit_constant(e, weight, &tensor);         other numbers
       onnx_edit_input(e, node, 1, "other");           another input of a node
       onnx_edit_insert(e, before, &new_node);         a new node
       onnx_edit_write(e, write, user, message);       the whole file, through the caller's function
       onnx_edit_end(e);
       onnx_graph_close(g);

   The graph refers to the bytes of the file, which must stay until it is closed. It is not changed
   by edits: to see them, open what onnx_edit_write wrote.

   Every name of a value is looked up once: nodes refer to values by their index in g->value. Values
   of subgraphs (the branches of If, the bodies of Loop and Scan) are in the same array; a name in a
   subgraph that the subgraph does not define is the value of the enclosing graph.

   Nodes are in an order in which they can be evaluated: that of the file, unless it is not sorted.

   Checked when a file is opened: the protobuf encoding, that every input of a node is known, that
   no value is made twice, that there is no circle, and that each constant has as much data as its
   type and shape require. Anything else, such as operators, attributes and shapes,
   is checked by whoever uses it (onnx_run.h). An attribute or a field that is present without a
   value is 0 or empty, as proto3 says. Functions of the model (local functions) are part of the
   graph as nodes of their domain; onnx_graph_inline writes a file in which their nodes stand
   instead.

   Memory is allocated with malloc and calloc, and released by onnx_graph_close and onnx_edit_end.
   Nothing is printed or opened, except through the caller's function for external data.

   Copy onnx_graph.[ch], decimal.h and deploy.h beside lgelu.h. */
#ifndef ONNX_GRAPH_H
#define ONNX_GRAPH_H
#include "deploy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The types of elements, numbered as in TensorProto.DataType. */
typedef enum {
    ONNX_UNDEFINED = 0,
    ONNX_F32 = 1,
    ONNX_U8 = 2,
    ONNX_I8 = 3,
    ONNX_U16 = 4,
    ONNX_I16 = 5,
    ONNX_I32 = 6,
    ONNX_I64 = 7,
    ONNX_STRING = 8,
    ONNX_BOOL = 9,
    ONNX_F16 = 10,
    ONNX_F64 = 11,
    ONNX_U32 = 12,
    ONNX_U64 = 13,
    ONNX_C64 = 14,
    ONNX_C128 = 15,
    ONNX_BF16 = 16,
    ONNX_F8_E4M3FN = 17, /* the narrow types: one byte an element in memory */
    ONNX_F8_E4M3FNUZ = 18,
    ONNX_F8_E5M2 = 19,
    ONNX_F8_E5M2FNUZ = 20,
    ONNX_U4 = 21,
    ONNX_I4 = 22,
    ONNX_F4_E2M1 = 23,
    ONNX_F8_E8M0 = 24,
    ONNX_U2 = 25,
    ONNX_I2 = 26,
    ONNX_TYPES
} onnx_type;

/* More dimensions are refused. */
enum { ONNX_MOST_RANK = 12 };

/* A constant as the file holds it: an initializer, or the tensor of an attribute. */
typedef struct {
    deploy_span name;
    int type, rank; /* onnx_type, or a number that this file does not know */
    int64_t dim[ONNX_MOST_RANK];
    size_t count;      /* of elements */
    deploy_span data;  /* little-endian elements, or the payload of a packed or repeated field */
    int field;         /* where data is: 9 raw_data, 13 an external file, else the typed field */
    deploy_span proto; /* the whole TensorProto */
} onnx_constant;

/* The kinds of attributes, numbered as in AttributeProto.AttributeType. */
typedef enum {
    ONNX_ATTR_NONE = 0,
    ONNX_ATTR_FLOAT = 1,
    ONNX_ATTR_INT = 2,
    ONNX_ATTR_TEXT = 3,
    ONNX_ATTR_TENSOR = 4,
    ONNX_ATTR_GRAPH = 5,
    ONNX_ATTR_FLOATS = 6,
    ONNX_ATTR_INTS = 7,
    ONNX_ATTR_TEXTS = 8,
    ONNX_ATTR_TENSORS = 9,
    ONNX_ATTR_GRAPHS = 10
} onnx_attribute_kind;

struct onnx_subgraph;

typedef struct {
    deploy_span name;
    int kind;                    /* onnx_attribute_kind, by the field `type` or by what is there */
    float f;                     /* ONNX_ATTR_FLOAT */
    int64_t i;                   /* ONNX_ATTR_INT */
    deploy_span text;            /* ONNX_ATTR_TEXT; its bytes need not be text */
    size_t count;                /* of floats, ints or texts */
    float *floats;               /* ONNX_ATTR_FLOATS */
    int64_t *ints;               /* ONNX_ATTR_INTS */
    deploy_span *texts;          /* ONNX_ATTR_TEXTS */
    onnx_constant *tensor;       /* ONNX_ATTR_TENSOR */
    struct onnx_subgraph *graph; /* ONNX_ATTR_GRAPH */
    deploy_span reference;       /* ref_attr_name: in a function, the attribute of the call */
    deploy_span proto;           /* the whole AttributeProto */
} onnx_attribute;

typedef struct {
    deploy_span name, op, domain; /* domain: empty for ai.onnx */
    int *input, *output;          /* values; -1: left out */
    int inputs, outputs;
    onnx_attribute *attribute;
    int attributes;
    deploy_span proto; /* the whole NodeProto */
} onnx_node;

/* What the file declares about a value: its type, and its shape if it has one. */
typedef struct {
    int type;                             /* ONNX_UNDEFINED: not declared, or no tensor */
    int rank;                             /* -1: not declared */
    int64_t dim[ONNX_MOST_RANK];          /* -1: open */
    deploy_span dim_name[ONNX_MOST_RANK]; /* of an open dimension, such as "batch"; or empty */
} onnx_declared;

typedef struct {
    deploy_span name;
    int maker;       /* the node of its graph that computes it, or -1 */
    int constant;    /* the index in g->constant of its initializer, or -1 */
    int is_input;    /* an input of its graph; one that has a constant as well is a default */
    int is_output;   /* of the graph that makes it */
    int readers;     /* inputs of nodes that read it, those in subgraphs among them */
    int last_reader; /* the last node of its own graph that reads it, or holds a subgraph that
                        does; -1: none */
    int depth;       /* 0: of the main graph */
    onnx_declared declared; /* by input, output or value_info */
} onnx_value;

typedef struct onnx_subgraph {
    deploy_span name;
    onnx_node *node; /* each behind those that compute its inputs */
    int nodes;
    int *at; /* by place in the file: the node that is there; NULL: they are in the file's order */
    int *input,
        *output; /* values; inputs that are only initializers' defaults are not among them */
    int inputs, outputs;
    int first_constant, constants; /* in g->constant */
    int depth;
    int scope;         /* private */
    deploy_span proto; /* the whole GraphProto */
} onnx_subgraph;

typedef struct {
    deploy_span domain, name;
    deploy_span *input, *output, *attribute;
    int inputs, outputs, attributes;
    onnx_attribute *with_default; /* attributes that a call may leave out */
    int defaults;
    onnx_subgraph body; /* its values have a depth of 1 and more */
    int opset;          /* of ai.onnx; 0: not declared */
} onnx_function;

typedef struct onnx_graph {
    deploy_span file;
    deploy_span producer; /* which program wrote the file */
    int64_t ir_version;
    int opset; /* of ai.onnx; 0: not declared */
    onnx_subgraph top;
    onnx_value *value;
    int values;
    onnx_constant *constant;
    int constants;
    onnx_function *function;
    int functions;
    void *memory; /* private */
} onnx_graph;

/* Returns `bytes` bytes from byte `from` on of the file `location` in the model's folder, in memory
   that stays until the graph is closed; NULL with a line in message (160 bytes) if it cannot.
   output_read_part of ../output.h is one. */
typedef const void *onnx_external(const char *location, size_t from, size_t bytes, char *message,
                                  void *user);

/* Opens a file. external NULL: a file with external data is refused. Returns NULL after an error,
   with one line in message (160 bytes). */
onnx_graph *onnx_graph_open(const void *file, size_t bytes, onnx_external *external, void *user,
                            char *message);
void onnx_graph_close(onnx_graph *g);

/* Returns the value of this name in the main graph, or -1. */
int onnx_graph_find(const onnx_graph *g, const char *name);

/* Calls see(value, user) for each value of the main graph that a node reads, also in subgraphs. */
void onnx_graph_reads(const onnx_graph *g, const onnx_node *n, void see(int value, void *user),
                      void *user);

/* Returns the node of the main graph that alone reads a value, as one of its own inputs, or -1:
   none, several, or the value is an output. */
int onnx_graph_only_reader(const onnx_graph *g, int value);

/* Returns whether a node has a subgraph as an attribute, as If, Loop and Scan have. */
int onnx_graph_inside(const onnx_node *n);

/* Returns the function of the model that a node calls, or NULL. */
const onnx_function *onnx_graph_called(const onnx_graph *g, const onnx_node *n);

/* A call of a function of the model, and the call in whose function it stands; NULL: the main
   graph. */
typedef struct onnx_function_call {
    const onnx_function *f;
    const onnx_node *node;
    const struct onnx_function_call *outer;
} onnx_function_call;

/* Returns what an attribute of a node means in a function: itself, or, where it refers to an
   attribute of the call, that or its default; NULL: the call has none. *in is the call of the
   function in which the node stands, and becomes that in which the attribute stands. */
const onnx_attribute *onnx_graph_meant(const onnx_attribute *a, const onnx_function_call **in);

/* Returns an attribute of a node by name, or NULL. */
const onnx_attribute *onnx_graph_attribute(const onnx_node *n, const char *name);
/* Return a number of a node, 0 where it has no value, or `otherwise` if it has no such attribute.
 */
int64_t onnx_graph_int(const onnx_node *n, const char *name, int64_t otherwise);
double onnx_graph_float(const onnx_node *n, const char *name, double otherwise);

/* Returns a C string as a text with its length. */
deploy_span onnx_text(const char *text);
/* Returns whether a text that may lack a final 0 is this C string. */
int onnx_is(const deploy_span *text, const char *name);

/* Returns the bytes of one element (a string: sizeof(deploy_span)), or 0 if the type is unknown. */
size_t onnx_type_bytes(int type);

/* Returns "float", "int64", ...; "unknown" for other numbers. */
const char *onnx_type_name(int type);

/* Copies the elements of a constant to `to` (count · onnx_type_bytes bytes), whatever field holds
   them; half and bfloat16 as 16 bits, bool and narrow types as one byte, strings as deploy_span.
   Returns 0, or -1 if an element is out of its type's range. */
int onnx_constant_read(const onnx_constant *c, void *to);

/* Writes the same network without functions of the model: in place of each call stand the nodes of
   its function, with names that no other value or node has. What does not call stays as it is.
   A call also stays if its function declares another opset of ai.onnx than the model, if it names
   more inputs or outputs than the function has, or if it leaves out an input that the function
   returns; then the functions stay as well. Returns a
   status with one line in message (160 bytes): LGELU_E_FILE if write failed or the file would have
   2 GiB or a million nodes, or more, LGELU_E_MEMORY. */
lgelu_status onnx_graph_inline(const onnx_graph *g, lgelu_write *write, void *user, char *message);

/* What becomes of a node If. */
typedef enum { ONNX_IF_STAYS, ONNX_IF_ELSE, ONNX_IF_THEN } onnx_if;

/* Writes the same network with the nodes of one branch in place of nodes If of the main graph:
   taken[i] is an onnx_if for node i, and ONNX_IF_STAYS where it is another operator. Nodes and
   values of the branch have names that no other one has. What calls a function stays as it is. A
   condition that nothing else reads is computed all the same. Returns a status like
   onnx_graph_inline; LGELU_E_FILE, too, if a node has no such branch, or
   one with sparse constants. */
lgelu_status onnx_graph_branches(const onnx_graph *g, const unsigned char *taken,
                                 lgelu_write *write, void *user, char *message);

/* ---- edits ---- */
typedef struct onnx_edit onnx_edit;

/* A constant to write. data: elements in the machine's order, half and bfloat16 as 16 bits. */
typedef struct {
    const char *name;
    int type, rank;
    const int64_t *dim;
    const void *data;
} onnx_new_constant;

/* A node to write. Inputs and outputs are names; an empty name is left out. Attributes are a few
   scalars and lists: exactly one of ints (count of them, or a scalar if count is -1), floats, or
   text is set. */
typedef struct {
    const char *name;
    const int64_t *ints;
    const float *floats;
    const char *text;
    int count;
} onnx_new_attribute;

typedef struct {
    const char *name, *op;
    const char *const *input, *const *output;
    int inputs, outputs;
    const onnx_new_attribute *attribute;
    int attributes;
} onnx_new_node;

/* Begins a list of edits of the main graph; NULL: out of memory. */
onnx_edit *onnx_edit_begin(const onnx_graph *g);
void onnx_edit_end(onnx_edit *e);

/* Each of these returns 0, or -1 (out of memory, or there is no such place). What they are given is
   copied. */

/* Gives a constant other elements, of the same type and shape (none of fewer than 8 bits): an
   initializer, or, for the output of a node Constant, the tensor of its attribute. data as in
   onnx_new_constant. External data become part of the file. */
int onnx_edit_constant(onnx_edit *e, int value, const void *data);
/* Adds an initializer. */
int onnx_edit_add(onnx_edit *e, const onnx_new_constant *c);
/* Removes an initializer that nothing reads any more. */
int onnx_edit_drop(onnx_edit *e, int value);
/* Makes a node of the main graph read another value, by name. k may be one of the eight behind its
   last input, such as the bias of a Conv that has none; those between are left out. */
int onnx_edit_input(onnx_edit *e, int node, int k, const char *name);
/* Makes a node of the main graph write its output under another name. */
int onnx_edit_output(onnx_edit *e, int node, int k, const char *name);
/* Inserts a node before node number `before` (g->top.nodes: at the end). Those inserted before the
   same node keep the order of the calls. */
int onnx_edit_insert(onnx_edit *e, int before, const onnx_new_node *n);
/* Removes a node. */
int onnx_edit_remove(onnx_edit *e, int node);
/* Makes the file declare another opset of ai.onnx: one in which all its operators mean what they
   mean now, which is not checked. From opset 21 on, which has types that older readers do not know,
   the version of the format becomes at least 10. */
int onnx_edit_opset(onnx_edit *e, int opset);
/* Writes to name[bytes] a name that begins with `stem` and that no value and no node of the file,
   and none that was handed out before, has. */
int onnx_edit_name(onnx_edit *e, const char *stem, char *name, size_t bytes);

/* Writes the file with its edits. Without any edit these are the bytes of the file. Returns a
   status with one line in message (160 bytes): LGELU_E_FILE if write failed, LGELU_E_MEMORY. Fails
   if the file would have 2 GiB or more, which protobuf cannot hold. */
lgelu_status onnx_edit_write(const onnx_edit *e, lgelu_write *write, void *user, char *message);

#ifdef __cplusplus
}
#endif
#endif
