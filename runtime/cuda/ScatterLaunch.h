// SPDX-License-Identifier: Apache-2.0
// Launch functions of Scatter.cu and CumSum.cu.
#pragma once

#include "runtime/cuda/IndexOperand.h"
#include "runtime/cuda/Walk.h"
#include <cuda_runtime_api.h>

namespace shardc::cuda {

/// ir/base/Movement.h: Scatter, by number.
enum class ScatterKind : int { None = 0, Add, Mul, Max, Min };

/// y holds the data. For each line, for i < count ascending: y[line, index[i]] (kind)= updates[i].
struct ScatterElementsArgs {
  void *y;
  const void *updates;
  IndexOperand indices;
  ElementType type;
  ScatterKind kind;
  long long lines, count, size, yStep, indexStep;
  Walk yWalk, indexWalk; ///< of the line; the updates lie like the indices
};
cudaError_t launchScatterElements(const ScatterElementsArgs &args, cudaStream_t stream);

/// y holds the data. For tuples t ascending: y[slice of index[t, 0 .. width)] (kind)= updates[t], `line`
/// elements each.
struct ScatterNdArgs {
  void *y;
  const void *updates;
  IndexOperand indices;
  ElementType type;
  ScatterKind kind;
  int width;
  long long tuples, line;
  long long dims[Walk::kMaxRank];
};
cudaError_t launchScatterNd(const ScatterNdArgs &args, cudaStream_t stream);

/// Running sums along the middle of [outer, size, inner].
struct CumSumArgs {
  const void *x;
  void *y;
  ElementType type;
  long long lines, size, inner;
  bool exclusive, reverse;
};
cudaError_t launchCumSum(const CumSumArgs &args, cudaStream_t stream);

} // namespace shardc::cuda
