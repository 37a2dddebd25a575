/* SPDX-License-Identifier: MIT-0

   torch_file.h: weights as safetensors with PyTorch's names and shapes: what
   load_state_dict(strict=True) requires and what safetensors.torch.save_model writes.

       torch_names how = { 0 };
       if (torch_write(&net, &how, write, user)) puts(net.message);
       if (torch_read(&net, &how, file, bytes)) puts(net.message);

   The network must be made. Tensors: linear NAME.weight (outputs, inputs) and NAME.bias;
   convolution NAME.weight (outputs, inputs / groups, rows, columns); batch normalisation
   NAME.weight, .bias, .running_mean, .running_var, .num_batches_tracked; layer normalisation,
   RMS normalisation (its weight alone), embedding and positions as in torch; a linear layer over
   patches as the convolution that it is in torch; a class token NAME (1, 1, channels). PyTorch has
   channels first: the columns of a linear layer behind a flattened image are reordered. Names are
   those of the layers: torchvision's for lgelu_resnet, GPT-2's for lgelu_gpt. λ's, moments and
   kinds of gates are not included; lgelu_net_save keeps those.

   F32, F64, F16 and BF16 are read. Every check comes before the first change of the network.

   Copy torch_file.[ch], decimal.h and deploy.h beside lgelu.h. */
#ifndef TORCH_FILE_H
#define TORCH_FILE_H
#include "deploy.h"

typedef struct {
    const char *prefix; /* before every name, for instance "transformer."; NULL: none */
    int conv1d; /* GPT-2's Conv1D: the matrices of c_attn, c_proj and c_fc are (inputs, outputs) */
    int tied;   /* a shared matrix is written under both names; else under the embedding's */
    int loose;  /* reading: ignore other tensors of the file; else they are refused */
    long batches; /* writing: num_batches_tracked */
} torch_names;

/* Writes all weights. After an error the network is as before, with net->message. */
lgelu_status torch_write(lgelu_net *net, const torch_names *how, lgelu_write *write, void *user);

/* Reads all weights. After an error the network is as before, with net->message. */
lgelu_status torch_read(lgelu_net *net, const torch_names *how, const void *file, size_t bytes);
#endif
