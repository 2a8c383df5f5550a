// SPDX-License-Identifier: Apache-2.0
// Launch functions of Gather.cu and GatherElements.cu.
#pragma once

#include "runtime/cuda/IndexOperand.h"
#include "runtime/cuda/Walk.h"
#include <cuda_runtime_api.h>

namespace shardc::cuda {

/// Reports the first index: the table that it is for is empty.
cudaError_t launchEmptyTable(const IndexOperand &args, cudaStream_t stream);

/// y[outer, i, inner] = data[outer, index[i], inner]; rows of `chunks` pieces of `bytes` (1 to 16).
struct GatherRows {
  const void *data;
  void *y;
  IndexOperand indices;
  int bytes;
  long long total, size, count; ///< total: pieces of y
  Divider perRow, perOuter;     ///< chunks; count
};
cudaError_t launchGather(const GatherRows &args, cudaStream_t stream);

/// dx[outer, r, inner] = the sum of dy[outer, i, inner] over the i with index[i] = r, ascending.
struct GatherGradRows {
  const void *dy;
  void *dx;
  IndexOperand indices;
  ElementType type;
  long long outer, size, count, inner;
};
cudaError_t launchGatherGrad(const GatherGradRows &args, cudaStream_t stream);

/// y[i] = data[dataWalk(i) + index[indexWalk(i)] * along], i < count; elements of 1 to 8 bytes.
struct GatherElementsArgs {
  const void *data;
  void *y;
  IndexOperand indices;
  int bytes;
  long long count, size, along;
  Walk dataWalk, indexWalk;
};
cudaError_t launchGatherElements(const GatherElementsArgs &args, cudaStream_t stream);

/// For each line: dx[j] = the sum of dy[i] over the i < count with index[i] = j, ascending, for j < size.
struct GatherElementsGradArgs {
  const void *dy;
  void *dx;
  IndexOperand indices;
  ElementType type;
  long long lines, count, size, dyStep, dxStep, indexStep;
  Walk dyWalk, dxWalk, indexWalk; ///< of the line
};
cudaError_t launchGatherElementsGrad(const GatherElementsGradArgs &args, cudaStream_t stream);

/// y[t] = the slice of `line` pieces (1 to 16 bytes) of data[batch of t] at the coordinates index[t, 0 ..
/// width).
struct GatherNdArgs {
  const void *data;
  void *y;
  IndexOperand indices;
  int bytes, width;
  long long total, batch; ///< pieces of y; pieces of one batch of data
  long long dims[Walk::kMaxRank];
  Divider line, perBatch; ///< pieces; tuples
};
cudaError_t launchGatherNd(const GatherNdArgs &args, cudaStream_t stream);

} // namespace shardc::cuda
