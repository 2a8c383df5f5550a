// SPDX-License-Identifier: Apache-2.0
// What CrossEntropy.cpp hands to CrossEntropy.cu. Read by nvcc too: no LLVM header.
#pragma once

#include "runtime/cuda/ElementType.h"
#include "runtime/cuda/FaultRecord.h"
#include <cuda_runtime_api.h>

namespace shardc::cuda {

struct CrossEntropyWork {
  const void *logits;
  ElementType type;
  long long rows, classes, rowStride; ///< row r of the logits begins at element r * rowStride
  bool wide;                          ///< rows of logits and of dlogits are aligned to 16 bytes
  const long long *labels;
  long long ignore;
  AnyFloats lse;
  FaultRecord *fault;
  int site;
  AnyFloats sum, count, correct; ///< forward
  AnyFloats dsum;                ///< backward
  void *dlogits;                 ///< backward: row-major; may be the logits
};

/// Scratch: 16 bytes a row.
cudaError_t enqueueCrossEntropy(const CrossEntropyWork &, void *scratch, cudaStream_t);
cudaError_t enqueueCrossEntropyGrad(const CrossEntropyWork &, void *scratch, cudaStream_t);

} // namespace shardc::cuda
