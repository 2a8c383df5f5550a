// SPDX-License-Identifier: Apache-2.0
// The largest of any run of numbers in constant time, after n log n once (sparse table).
#pragma once

#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cstdint>
#include <vector>

namespace shardc {

class RangeMaximum {
public:
  explicit RangeMaximum(std::vector<uint64_t> values) {
    const size_t n = values.size();
    levels_.push_back(std::move(values));
    for (size_t width = 1; 2 * width <= n; width *= 2) {
      std::vector<uint64_t> next;
      for (size_t i = 0; i + 2 * width <= n; ++i)
        next.push_back(std::max(levels_.back()[i], levels_.back()[i + width]));
      levels_.push_back(std::move(next));
    }
  }
  /// Of [begin, end); 0 if that is empty.
  uint64_t of(size_t begin, size_t end) const {
    if (begin >= end)
      return 0;
    size_t level = llvm::Log2_64(end - begin);
    return std::max(levels_[level][begin], levels_[level][end - (size_t(1) << level)]);
  }

private:
  std::vector<std::vector<uint64_t>> levels_; ///< [k][i]: of [i, i + 2^k)
};

} // namespace shardc
