// SPDX-License-Identifier: Apache-2.0
// Sizes of an attention op, and the place of its bias.
#pragma once

#include "ir/ops/Infer.h"

namespace shardc {

/// q[B,Sq,H,D], k[B,Sk,H,D], v[B,Sk,H,Dv]; the scores are [B,H,Sq,Sk].
struct AttentionDims {
  int64_t batch, queries, keys, heads, depth, valueDepth;
  AttentionDims(llvm::ArrayRef<int64_t> q, llvm::ArrayRef<int64_t> k, llvm::ArrayRef<int64_t> v)
      : batch(q[0]), queries(q[1]), keys(k[1]), heads(q[2]), depth(q[3]), valueDepth(v[3]) {}
  Dims scores() const { return {batch, heads, queries, keys}; }
  Dims out() const { return {batch, queries, heads, valueDepth}; }
  Dims lse() const { return {batch, heads, queries}; }
  int64_t qAt(int64_t b, int64_t i, int64_t h) const {
    return ((b * queries + i) * heads + h) * depth;
  }
  int64_t kAt(int64_t b, int64_t j, int64_t h) const { return ((b * keys + j) * heads + h) * depth; }
  int64_t vAt(int64_t b, int64_t j, int64_t h) const {
    return ((b * keys + j) * heads + h) * valueDepth;
  }
  int64_t outAt(int64_t b, int64_t i, int64_t h) const {
    return ((b * queries + i) * heads + h) * valueDepth;
  }
  int64_t lseAt(int64_t b, int64_t h, int64_t i) const { return (b * heads + h) * queries + i; }
};

/// Checks operands q, k, v at `q` and the optional bias at `bias`, and the attributes that forward
/// and gradient share. Ask `check.failed()` before the dims are used.
void checkAttention(OpCheck &check, unsigned q, unsigned bias);

} // namespace shardc
