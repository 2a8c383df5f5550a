// SPDX-License-Identifier: Apache-2.0
// Launch functions of Copy.cu.
#pragma once

#include "runtime/cuda/Walk.h"
#include <cuda_runtime_api.h>

namespace shardc::cuda {

/// y[to(i)] = x[from(i)] for i < count; elements of 1, 2, 4, 8 or 16 bytes.
struct StridedCopy {
  const void *x;
  void *y;
  int bytes;
  long long count;
  Walk from, to;
};
cudaError_t launchStridedCopy(const StridedCopy &args, cudaStream_t stream);

/// y[outer, r yRow + c] = x[outer, r + c xColumn]: rows lie side by side in x, columns in y. Elements of 1 to
/// 8 bytes.
struct TiledCopy {
  const void *x;
  void *y;
  int bytes;
  long long rows, columns, yRow, xColumn, outer;
  Walk from, to; ///< of the outer position
};
cudaError_t launchTiledCopy(const TiledCopy &args, cudaStream_t stream);

/// y[i sources + k] = x_k[from(i)] for i < count: arrays whose elements come to lie beside each other. Elements of 1 to 8 bytes; each 16 bytes
/// of x_k, and of y, are read and written at once: neighbours in 16s, everything aligned.
struct Interleaving {
  static constexpr int kMost = 8;
  const void *x[kMost];
  int sources;
  void *y;
  int bytes;
  long long count;
  Walk from; ///< of 16 bytes, in these
};
cudaError_t launchInterleaving(const Interleaving &args, cudaStream_t stream);

/// `count` elements of 1, 2, 4 or 8 bytes, all with the bits of `value`.
struct Fill {
  void *y;
  int bytes;
  unsigned long long value;
  long long count;
};
cudaError_t launchFill(const Fill &args, cudaStream_t stream);

} // namespace shardc::cuda
