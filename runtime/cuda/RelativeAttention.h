// SPDX-License-Identifier: Apache-2.0
// What RelativeAttention.cpp hands to the kernels of relative_attention. Read by nvcc too: no LLVM header.
#pragma once

#include "runtime/cuda/Attention.h"

namespace shardc::cuda {

/// pos_key or pos_query [R, H, D], or its gradient; strides in elements, that of D is 1. `data` is null for an absent
/// one.
struct PositionsView {
  void *data = nullptr;
  long long row = 0, head = 0;
};

struct RelativeWork {
  AttentionWork base; ///< without a bias
  PositionsView posKey, posQuery, dposKey, dposQuery;
};

/// The kernels that serve every case. Shared: bytes that a block wants, at most kMostAttentionShared.
int relativeShared(const RelativeWork &);
int relativeGradShared(const RelativeWork &);
/// When binding, after the check of the bytes.
cudaError_t prepareRelative(const RelativeWork &);
cudaError_t prepareRelativeGrad(const RelativeWork &);
cudaError_t enqueueRelative(const RelativeWork &, void *scratch, cudaStream_t);
/// Scratch: a number of the type that is computed in for each query of each head.
cudaError_t enqueueRelativeGrad(const RelativeWork &, void *scratch, cudaStream_t);

/// The tensor-core kernels: 16-bit heads of 64 elements, aligned rows, the positions' too; a scale above 0.
inline bool servesRelativeMma(const RelativeWork &w) {
  const AttentionWork &a = w.base;
  return servesMma(a) && a.depth == 64 && a.scale > 0 && a.batch > 0 && a.heads > 0 && a.queries > 0 && a.keys > 0;
}
cudaError_t prepareRelativeMma(const RelativeWork &);
cudaError_t prepareRelativeGradMma(const RelativeWork &);
cudaError_t enqueueRelativeMma(const RelativeWork &, void *scratch, cudaStream_t);
/// Scratch: relativeGradMmaScratch bytes.
cudaError_t enqueueRelativeGradMma(const RelativeWork &, void *scratch, cudaStream_t);
long long relativeGradMmaScratch(const RelativeWork &);

} // namespace shardc::cuda
