// SPDX-License-Identifier: Apache-2.0
// Grids whose threads go through a sequence in steps of the grid.
#pragma once

#include "runtime/cuda/Walk.h"

namespace shardc::cuda {

constexpr int kGridThreads = 256;
/// Enough to fill a device some times over, so that blocks that end early leave no gaps.
constexpr long long kMaxGrid = 1 << 14;

inline unsigned gridFor(long long count, int threads = kGridThreads) {
  long long blocks = (count + threads - 1) / threads;
  return unsigned(blocks < 1 ? 1 : blocks < kMaxGrid ? blocks : kMaxGrid);
}
#ifdef __CUDACC__
SHARDC_DEVICE long long firstOfGrid() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }
SHARDC_DEVICE long long stepOfGrid() { return (long long)gridDim.x * blockDim.x; }
#endif

} // namespace shardc::cuda
