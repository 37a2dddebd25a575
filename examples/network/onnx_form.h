/* SPDX-License-Identifier: MIT-0
   onnx_form.h: the order in which an ONNX file has the elements of an image, for onnx_in.h and
   onnx_out.h. ONNX_ROW: an image of one row is (N, channels, columns), as 1-D convolutions read
   it. Copy onnx_form.h beside either of them. */
#ifndef ONNX_FORM_H
#define ONNX_FORM_H
typedef enum { ONNX_CHANNELS_FIRST = 0, ONNX_CHANNELS_LAST, ONNX_FLAT, ONNX_ROW } onnx_form;
#endif
