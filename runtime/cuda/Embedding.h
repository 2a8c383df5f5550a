// SPDX-License-Identifier: Apache-2.0
// What Embedding.cpp hands to Embedding.cu. Read by nvcc too: no LLVM header.
#pragma once

#include "runtime/cuda/ElementType.h"
#include "runtime/cuda/IndexOperand.h"
#include <cuda_runtime_api.h>

namespace shardc::cuda {

/// Token ids, which must name a row of `rows`.
struct EmbeddingIds {
  IndexOperand operand;
  long long count, rows;
};

struct EmbeddingWork {
  EmbeddingIds ids;
  const void *table;
  long long rowStride, rowBytes; ///< in bytes
  int unit;                      ///< bytes moved at once: what divides addresses and sizes; 1, 2, 4, 8 or 16
  void *to;
};
cudaError_t enqueueEmbedding(const EmbeddingWork &, void *scratch, cudaStream_t);

struct EmbeddingGradWork {
  EmbeddingIds ids;
  const void *dy; ///< [ids, width]
  ElementType type;
  long long width, tableBytes;
  AnyFloats table; ///< [rows, width]
  bool accumulate;
};
/// Bytes of scratch. Requires: a device, fewer than 2^31 ids and rows.
cudaError_t embeddingGradScratch(const EmbeddingGradWork &, long long &bytes);
cudaError_t enqueueEmbeddingGrad(const EmbeddingGradWork &, void *scratch, cudaStream_t);

} // namespace shardc::cuda
