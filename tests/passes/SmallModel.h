// SPDX-License-Identifier: Apache-2.0
// A model that is small and has everything that emission decides on.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace shardc {

/// Embedding tied to the output, a residual layer with odd sizes, an attention-like product of
/// slices, a frozen parameter, and one that the loss does not reach.
constexpr llvm::StringLiteral kSmallModel = R"(
graph @small level=imported {batch=4} [
  parameter "shared.weight" tie="head.weight" : f32[7,6]
  parameter "layers.0.weight" : f32[5,6]
  parameter "layers.0.bias" : f32[5]
  parameter "layers.0.out.weight" : f32[6,5]
  parameter "layers.1.scale" : f32[6]
  parameter "layers.1.gate" frozen : f32[6]
  parameter "layers.1.unused" : f32[3,3]
  %ids = input {name="ids", low=0, high=7} : i64[4] batch
  %labels = input {name="labels", low=0, high=7, ignore=-100} : i64[4] batch
  %e = param {name="shared.weight"} : f32[7,6]
  %w = param {name="layers.0.weight"} : f32[5,6]
  %b = param {name="layers.0.bias"} : f32[5]
  %o = param {name="layers.0.out.weight"} : f32[6,5]
  %s = param {name="layers.1.scale"} : f32[6]
  %g = param {name="layers.1.gate"} : f32[6]
  %unused = param {name="layers.1.unused"} : f32[3,3]
  %h0 = embedding %e, %ids : f32[4,6]
  %wt = transpose %w {perm=[1,0]} : f32[6,5]
  %p0 = matmul %h0, %wt : f32[4,5]
  %p1 = add %p0, %b : f32[4,5]
  %p2 = tanh %p1 : f32[4,5]
  %ot = transpose %o {perm=[1,0]} : f32[5,6]
  %p3 = matmul %p2, %ot : f32[4,6]
  %h1 = add %h0, %p3 : f32[4,6]
  %l = slice %h1 {starts=[0,0], sizes=[4,3], steps=[1,1]} : f32[4,3]
  %r = slice %h1 {starts=[0,5], sizes=[4,3], steps=[1,-1]} : f32[4,3]
  %rt = transpose %r {perm=[1,0]} : f32[3,4]
  %a = matmul %l, %rt : f32[4,4]
  %q = softmax %a {axis=-1} : f32[4,4]
  %h2 = matmul %q, %h1 : f32[4,6]
  %h3 = mul %h2, %s : f32[4,6]
  %h4 = mul %h3, %g : f32[4,6]
  %h5 = add %h4, %h1 : f32[4,6]
  %et = transpose %e {perm=[1,0]} : f32[6,7]
  %logits = matmul %h5, %et : f32[4,7]
  %sum, %count, %correct, %lse = cross_entropy %logits, %labels {ignore_index=-100} : f32[], f32[], f32[], f32[4]
  output "loss_sum" %sum
  output "loss_count" %count
  output "correct" %correct
]
)";

} // namespace shardc
