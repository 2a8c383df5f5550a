// SPDX-License-Identifier: Apache-2.0
// Launch functions of Reduce.cu.
#pragma once

#include "runtime/cuda/ElementType.h"
#include "runtime/cuda/Walk.h"
#include <cuda_runtime_api.h>

namespace shardc::cuda {

enum class FoldKind : int { Sum, Prod, Max, Min };

/// y[r] = the fold of x[kept(r) + reduced(a)] over a < addends; r < results. y has the type of x.
struct ReduceArgs {
  const void *x;
  void *y;
  ElementType type;
  FoldKind fold;
  long long results, addends;
  Walk kept, reduced;
  /// By columns: where `columns` > 0, each run of as many results lies side by side in x; `vectors`: and may
  /// be loaded by 16 bytes.
  long long columns;
  bool vectors;
  /// Blocks that share the addends of a result: a power of two up to 8.
  int parts;
};
cudaError_t launchReduce(const ReduceArgs &args, cudaStream_t stream);

} // namespace shardc::cuda
