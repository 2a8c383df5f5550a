// SPDX-License-Identifier: Apache-2.0
// Memsets of a captured graph that its start does for all.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <cuda_runtime_api.h>

namespace shardc::cuda {

/// Takes out every node that clears a part of `region`; what came after one now comes after what it waited
/// for. Right where the region is cleared before the graph, and each part is used by the nodes behind its
/// memset only, once a run.
llvm::Error dropMemsets(cudaGraph_t graph, llvm::ArrayRef<char> region);

} // namespace shardc::cuda
