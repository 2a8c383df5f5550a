// SPDX-License-Identifier: Apache-2.0
// The first half of emission: what will be issued, in order, and which gradients are born inside their bucket.
#pragma once

#include "passes/Buckets.h"
#include "passes/Layout.h"
#include <vector>

namespace shardc::emit {

/// A place in a bucket's gradient buffer.
struct GradientPlace {
  unsigned bucket = 0;
  int64_t offset = 0; ///< elements
};

/// One command to be: an op; or zeros over a part of a gradient buffer; or a copy of a gradient that could not be
/// born in its place.
struct Item {
  enum Kind : uint8_t { Run, Fill, CopyGradient } kind = Run;
  const Op *op = nullptr;        ///< Run
  const Value *value = nullptr;  ///< CopyGradient: what to copy
  GradientPlace place = {};      ///< Fill, CopyGradient
  int64_t count = 0;             ///< Fill: elements
};

struct Sequence {
  const Graph *graph = nullptr;
  std::vector<Item> step;   ///< forward and backward
  std::vector<Item> update;
  llvm::DenseMap<const Value *, Layout> views;
  /// Values (not views) that are born in a gradient buffer.
  llvm::DenseMap<const Value *, GradientPlace> gradients;

  Layout layoutOf(const Value *value) const {
    auto found = views.find(value);
    return found != views.end() ? found->second : ownLayout(const_cast<Value *>(value));
  }
};

/// Ops in the graph's order; sources and views issue nothing. Every byte of a trainable bucket's gradient buffer is
/// written in each step: what no gradient covers (padding, parameters without a path) gets a Fill before the bucket's first gradient.
Sequence buildSequence(const Graph &graph, const Buckets &buckets);

} // namespace shardc::emit
