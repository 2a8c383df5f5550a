// SPDX-License-Identifier: Apache-2.0
#include "runtime/BatchOrder.h"
#include "runtime/Mix.h"
#include <cassert>
#include <numeric>
#include <utility>

namespace shardc {

BatchOrder::BatchOrder(int64_t rows, int64_t batch, int64_t ranks, int64_t accumulate, bool shuffle,
                       uint64_t seed)
    : batch_(batch), ranks_(ranks), accumulate_(accumulate), shuffle_(shuffle), seed_(seed),
      order_(rows) {
  assert(batch > 0 && ranks > 0 && accumulate > 0 && stepsPerEpoch() > 0);
  std::iota(order_.begin(), order_.end(), 0);
}

void BatchOrder::permute(int64_t epoch) {
  epoch_ = epoch;
  if (!shuffle_)
    return;
  std::iota(order_.begin(), order_.end(), 0);
  uint64_t key = mix(mix(seed_) + uint64_t(epoch));
  for (uint64_t i = order_.size() - 1; i > 0; --i) {
    uint64_t j = uint64_t((static_cast<unsigned __int128>(mix(key + i)) * (i + 1)) >> 64);
    std::swap(order_[i], order_[j]);
  }
}

llvm::ArrayRef<int64_t> BatchOrder::rows(int64_t step, int64_t rank, int64_t microStep) {
  assert(rank < ranks_ && microStep < accumulate_);
  if (int64_t epoch = step / stepsPerEpoch(); epoch != epoch_)
    permute(epoch);
  int64_t begin = (step % stepsPerEpoch()) * rowsPerStep() + (microStep * ranks_ + rank) * batch_;
  return llvm::ArrayRef<int64_t>(order_).slice(begin, batch_);
}

} // namespace shardc
