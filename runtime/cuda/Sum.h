// SPDX-License-Identifier: Apache-2.0
// The sum over ranks whose arrays lie in the memory of one device. Read by nvcc too.
#pragma once

#include <cuda_runtime_api.h>

namespace shardc::cuda {

constexpr unsigned kMaxLocalRanks = 16;

enum class SumType { F32, F64, F16, BF16, U8, U32, U64 };

/// Arrays of the ranks, in their order; the first `ranks` count.
struct SumArrays {
  const void *parts[kMaxLocalRanks];
  void *results[kMaxLocalRanks];
  unsigned ranks, numResults;
};

/// results[k][resultBegin + i] = parts[0][begin + i] + parts[1][begin + i] + ... for n elements and all k, added in that order in the
/// arrays' type; 16-bit floats in float, rounded once. Every element is read in full before it is written, so a result may be a part.
cudaError_t launchSum(SumType type, const SumArrays &arrays, long long begin, long long resultBegin, long long n,
                      cudaStream_t stream);

} // namespace shardc::cuda
