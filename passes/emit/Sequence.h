// SPDX-License-Identifier: Apache-2.0
// The first half of emission: what one program will issue, in order, and which values are born inside a packed array.
#pragma once

#include "passes/Layout.h"
#include <vector>

namespace shardc::emit {

/// A place in the result of a `pack`.
struct PackedPlace {
  const Value *packed = nullptr;
  int64_t offset = 0; ///< elements
};

/// One command to be: an op; or zeros over a part of a packed array; or a copy into it of what could not be born in its place.
struct Item {
  enum Kind : uint8_t { Run, Fill, Copy } kind = Run;
  const Op *op = nullptr;       ///< Run; else the pack
  const Value *value = nullptr; ///< Copy: what to copy
  PackedPlace place = {};       ///< Fill, Copy
  int64_t count = 0;            ///< Fill: elements
};

struct Sequence {
  const Graph *graph = nullptr;
  std::vector<Item> items;
  llvm::DenseMap<const Value *, Layout> views;
  /// Values (not views) that are born in a packed array.
  llvm::DenseMap<const Value *, PackedPlace> born;
  /// Results of concats that are not issued, as their operands (views of them) are born in their place.
  std::vector<const Value *> wholes;

  Layout layoutOf(const Value *value) const {
    auto found = views.find(value);
    return found != views.end() ? found->second : ownLayout(const_cast<Value *>(value));
  }
  const Value *rootOf(const Value *value) const { return layoutOf(value).root; }
};

/// Ops in the graph's order; sources and views issue nothing (but a collective's done, which waits), packs only copies of what is not
/// born in its place. Every byte of a packed array is written: what no operand covers gets a Fill before the first that is born there.
Sequence buildSequence(const Graph &graph);

} // namespace shardc::emit
