/* SPDX-License-Identifier: MIT-0

   onnx_back_group.h: operators that compute element by element and read each other, as one pass.
   Private to onnx_back*.c.

   A gate is a chain of such operators, such as Sub, Relu, Mul and Add, whose values between nobody
   else reads. A group evaluates all of them for a block of elements that stays in the cache, with
   the bits that they have one after another, and keeps nothing but its operands. On the way back it
   computes the values between again, and the gradients of its operands in the same pass. */
#ifndef ONNX_BACK_GROUP_H
#define ONNX_BACK_GROUP_H
#include "onnx_back_rule.h"

/* GROUP_MOST: nodes of a group, at most. */
enum { GROUP_MOST = 40, GROUP_OPERANDS = GROUP_MOST + 1, GROUP_SLOTS = 2 * GROUP_MOST + 1 };

typedef enum {
    GROUP_ADD,
    GROUP_SUB,
    GROUP_MUL,
    GROUP_PRELU,
    GROUP_RELU,
    GROUP_LEAKY,
    GROUP_SIGMOID
} back_group_op;

/* A node of a group. Its inputs and its output are slots: the operands, and behind them the outputs
   of the nodes. */
typedef struct {
    int node, a, b; /* b: -1 where there is one input */
    back_group_op op;
    float alpha; /* of LeakyRelu */
} back_member;

typedef struct {
    int operands, members;
    int operand[GROUP_OPERANDS];    /* values */
    back_member member[GROUP_MOST]; /* in their order; the last one makes the group's value */
    /* by slot, for the way back: has a gradient; of one reader alone; is computed again */
    unsigned char carries[GROUP_SLOTS], once[GROUP_SLOTS], again[GROUP_SLOTS];
    int ran; /* 1: the last forward run evaluated it as a group */
} back_group;

/* Finds the groups of a graph. readers: by value, how many inputs of nodes read it in the forward
   run; apart: by value, 1 where others need it, so that it is no value between; needed: by node.
   Sets *groups, and group_of[node], by node, to the group or -1; returns how many, or -1: out of
   memory. Free the array. */
int onnx_back_groups(const onnx_graph *g, const int *readers, const unsigned char *apart,
                     const unsigned char *needed, back_group **groups, int *group_of);

/* Learns which operands carry gradients, by value. */
void onnx_back_group_plan(back_group *p, const unsigned char *carries, const onnx_graph *g);

/* Evaluates a group. *y becomes a new tensor, or stays NULL where its operands are of other types
   or shapes than a group takes: then its nodes are to be evaluated one by one. Returns 0, or -1
   with a message in the run. */
int onnx_back_group_forward(onnx_run *r, back_group *p, onnx_tensor **y);

/* The way back from dy: dx[k] of each operand that carries a gradient receives the gradient: a new
   tensor where it is NULL; else it is added to it. Where dx[0] is NULL and `take` is 1, dx[0] may
   become another tensor of the elements of dy. Returns 0 or -1. */
int onnx_back_group_back(onnx_run *r, const back_group *p, onnx_tensor *dy, int take,
                         onnx_tensor **dx);

#endif
