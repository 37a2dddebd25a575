/* SPDX-License-Identifier: MIT-0

   torch_file.h: weights as safetensors with PyTorch's own names and shapes, both ways: what
   load_state_dict(strict=True) wants, and what safetensors.torch.save_model leaves.

       torch_names how = { 0 };
       if (torch_write(&net, &how, write, user)) puts(net.message);
       if (torch_read(&net, &how, file, bytes)) puts(net.message);

   Of a network that is made: linear NAME.weight (outputs, inputs) and NAME.bias; convolution
   NAME.weight (outputs, inputs / groups, rows, columns); batch normalisation NAME.weight, .bias,
   .running_mean, .running_var, .num_batches_tracked; layer normalisation, RMS normalisation (its
   weight alone), embedding and positions as torch's; a linear layer over patches as the convolution
   that torch makes of it; a class token NAME (1, 1, channels). Channels stand first in torch: the
   columns of a linear layer behind a flattened picture are put into its order. Names are those of
   the layers: torchvision's for lgelu_resnet, GPT-2's for lgelu_gpt. λ's, moments and gate kinds
   don't go in: lgelu_net_save keeps those. Read are F32, F64, F16 and BF16; every check comes
   before the first change. Copy torch_file.[ch] and deploy.h beside lgelu.h. */
#ifndef TORCH_FILE_H
#define TORCH_FILE_H
#include "deploy.h"

typedef struct {
    const char *prefix; /* before every name, "transformer."; NULL: none */
    int conv1d; /* GPT-2's Conv1D: the matrices of c_attn, c_proj and c_fc are (inputs, outputs) */
    int tied;   /* a matrix that is shared stands under both names; else under the embedding's */
    int loose;  /* reading: other tensors in the file are passed over; else they are refused */
    long batches; /* writing: num_batches_tracked */
} torch_names;

lgelu_status torch_write(lgelu_net *net, const torch_names *how, lgelu_write *write, void *user);
lgelu_status torch_read(lgelu_net *net, const torch_names *how, const void *file, size_t bytes);
#endif
