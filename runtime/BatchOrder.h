// SPDX-License-Identifier: Apache-2.0
// Which rows of the data each rank reads in each micro-step.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <vector>

namespace shardc {

/// Let G = batch x ranks x accumulate. An epoch has rows / G steps (rounded down: what is left over
/// is not read in that epoch). Step s of an epoch reads positions [s*G, (s+1)*G) of the epoch's
/// order; rank r takes in micro-step k the slice number k*ranks + r of them, `batch` long.
///
/// The order is 0, 1, 2 ... or, shuffled, a Fisher-Yates permutation of it for each epoch: for i =
/// rows-1 down to 1 swap i with floor(draw(i) * (i+1) / 2^64), draw(i) = mix(mix(mix(seed) + epoch)
/// + i), mix the finalizer of SplitMix64. So the order depends on rows, seed and epoch alone, not
/// on ranks, batch or the machine.
class BatchOrder {
public:
  /// Requires: all counts >= 1, rows >= batch x ranks x accumulate.
  BatchOrder(int64_t rows, int64_t batch, int64_t ranks, int64_t accumulate, bool shuffle,
             uint64_t seed);

  int64_t rowsPerStep() const { return batch_ * ranks_ * accumulate_; }
  int64_t stepsPerEpoch() const { return int64_t(order_.size()) / rowsPerStep(); }

  /// Rows of one rank in one micro-step; `step` counts from 0 over all epochs. Allocates nothing;
  /// the result lives until the next call. Cheapest when steps ascend: each new epoch is permuted
  /// once.
  llvm::ArrayRef<int64_t> rows(int64_t step, int64_t rank, int64_t microStep);

private:
  void permute(int64_t epoch);

  int64_t batch_, ranks_, accumulate_;
  bool shuffle_;
  uint64_t seed_;
  int64_t epoch_ = -1;
  std::vector<int64_t> order_;
};

} // namespace shardc
