// SPDX-License-Identifier: Apache-2.0
// What Attention.cpp hands to the kernels of attention. Read by nvcc too: no LLVM header.
#pragma once

#include "runtime/cuda/ElementType.h"
#include <cuda_runtime_api.h>

namespace shardc::cuda {

/// A [B, S, H, D] operand or result; strides in elements, that of D is 1.
struct HeadsView {
  void *data = nullptr;
  long long batch = 0, row = 0, head = 0;
};

/// Seen with the dims of the scores [B, H, Sq, Sk]: stride 0 where it is broadcast. `data` is null for an absent one.
struct ScoresView {
  AnyFloats array;
  long long strides[4] = {0, 0, 0, 0};
};

struct AttentionWork {
  ElementType type = ElementType::F32; ///< of q, k, v, out and their gradients
  int batch = 0, heads = 0, queries = 0, keys = 0, depth = 0, valueDepth = 0;
  HeadsView q, k, v, out;
  ScoresView bias;
  ScoresView mask; ///< of bytes: 0 hides; array.type has no meaning
  AnyFloats lse;
  long long lseBatch = 0, lseHead = 0; ///< strides
  double scale = 1, fill = 0, dropout = 0;
  unsigned long long id = 0;
  bool batchMajor = false;
  bool tf32 = false;      ///< operands of products that are f32 are rounded to TF32
  bool maskAdds = false;  ///< the gradient of hidden scores reaches q and k
  bool wide = false;      ///< every row of D elements of every operand and result begins at a multiple of 16 bytes
  bool biasWide = false;  ///< 8 keys of the bias from a multiple of 8 on lie side by side, aligned to 16 bytes
  bool maskWide = false;  ///< 16 keys of the mask from a multiple of 16 on lie side by side, aligned to 16 bytes
  bool biasPairs = false; ///< keys j and j + 1 of the bias lie side by side, aligned to both, for every even j
  const double *scalars = nullptr;
  // Backward
  HeadsView dout, dq, dk, dv;
  ScoresView dbias; ///< row-major in its own dims
};

/// The kernels that serve every case. `bytes`: shared memory that a block wants, at most kMostAttentionShared.
constexpr int kMostAttentionShared = 227 << 10;
int attentionShared(const AttentionWork &);
int attentionGradShared(const AttentionWork &);
/// When binding, after the check of the bytes.
cudaError_t prepareAttention(const AttentionWork &);
cudaError_t prepareAttentionGrad(const AttentionWork &);
cudaError_t enqueueAttention(const AttentionWork &, void *scratch, cudaStream_t);
/// Scratch: a number of the type that is computed in for each query of each head.
cudaError_t enqueueAttentionGrad(const AttentionWork &, void *scratch, cudaStream_t);
/// dbias alone, from the sums of dout out for each query of each head. Prepared by prepareAttentionGrad.
cudaError_t enqueueAttentionBiasGrad(const AttentionWork &, const void *deltas, cudaStream_t);

/// The tensor-core kernels: 16-bit heads of 64 or 128 elements, aligned rows.
inline bool servesMma(const AttentionWork &w) {
  return w.wide && (w.type == ElementType::BF16 || w.type == ElementType::F16) && w.depth == w.valueDepth && (w.depth == 64 || w.depth == 128);
}
cudaError_t prepareAttentionMma(const AttentionWork &);
cudaError_t prepareAttentionGradMma(const AttentionWork &);
cudaError_t enqueueAttentionMma(const AttentionWork &, void *scratch, cudaStream_t);
/// Scratch: attentionGradMmaScratch bytes.
cudaError_t enqueueAttentionGradMma(const AttentionWork &, void *scratch, cudaStream_t);
long long attentionGradMmaScratch(const AttentionWork &);

/// The kernels by warpgroups: 16-bit heads of 64 elements, aligned rows, a bias of the same type.
inline bool servesWg(const AttentionWork &w) {
  return servesMma(w) && w.depth == 64 && (!w.bias.array.data || w.bias.array.type == w.type);
}
cudaError_t prepareAttentionWg(const AttentionWork &);
cudaError_t enqueueAttentionWg(const AttentionWork &, void *scratch, cudaStream_t);
/// The gradient: if that of the bias is stored, or summed over batches and heads.
bool servesGradWg(const AttentionWork &);
cudaError_t prepareAttentionGradWg(const AttentionWork &);
/// Scratch: attentionGradWgScratch bytes.
cudaError_t enqueueAttentionGradWg(const AttentionWork &, void *scratch, cudaStream_t);
long long attentionGradWgScratch(const AttentionWork &);

} // namespace shardc::cuda
