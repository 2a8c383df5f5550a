// SPDX-License-Identifier: Apache-2.0
// A packing in the making: items that have a place, and where the next one fits between them.
#pragma once

#include "passes/memory/Sections.h"

namespace shardc {

/// Which of the gaps between what lives at the same time: the lowest that is large enough, or the
/// smallest of those. Above all of it where no gap is.
enum class Fit { Lowest, Smallest };

/// Disjoint ranges of addresses, in order; ranges that touch are one.
class Ranges {
public:
  void add(uint64_t begin, uint64_t end);
  void clear() { ranges_.clear(); }
  llvm::ArrayRef<std::pair<uint64_t, uint64_t>> all() const { return ranges_; }

private:
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;
};

/// A segment tree over the sections of time, whose nodes know ranges of addresses and not items:
/// buffers that live long lie side by side, and a thousand of them are a few ranges. Placing takes
/// O(log n) nodes. Requires: sizes rounded up; the items outlive it.
class Placement {
public:
  explicit Placement(llvm::ArrayRef<PackItem> items);

  void clear();
  /// Requires: not placed yet.
  void put(uint32_t item, uint64_t offset);
  uint64_t find(uint32_t item, Fit fit);
  /// Puts each where it fits, in this order. Stops where an end is above `most` or so much work is
  /// done, and says so by false.
  bool putAll(llvm::ArrayRef<uint32_t> order, Fit fit, uint64_t most, uint64_t work);

  const std::vector<uint64_t> &offsets() const { return offsets_; } ///< by item; 0 where not placed
  uint64_t height() const { return height_; }
  uint64_t work() const { return work_; } ///< so far, in the unit of PackLimits; never reset

private:
  /// Half-open ranges of sections.
  struct Span {
    uint32_t begin, end;
  };
  struct Node {
    Ranges over;   ///< of items that live in all of its sections
    Ranges within; ///< of those and of items that live in some of them, but do not live in all
                   ///< sections of a node above
  };

  void put(size_t node, Span span, Span life, uint64_t begin, uint64_t end);
  void collect(size_t node, Span span, Span life);

  llvm::ArrayRef<PackItem> items_;
  Sections sections_;
  std::vector<Node> nodes_; ///< the root is 1, the halves of n are 2n and 2n+1
  uint32_t leaves_;
  std::vector<std::pair<uint64_t, uint64_t>> taken_; // scratch of find
  std::vector<uint64_t> offsets_;
  uint64_t height_ = 0, work_ = 0;
};

} // namespace shardc
