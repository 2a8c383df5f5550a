// SPDX-License-Identifier: Apache-2.0
#include "passes/Partition.h"
#include "ir/ops/OpDef.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {

/// The only dim in which the slice is a part; nullopt if it takes steps, or parts of several dims.
static std::optional<int64_t> axisOf(const Op &slice) {
  const Dims &whole = slice.operand(0)->type().dims, &part = slice.result()->type().dims;
  std::optional<int64_t> axis;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (slice.attrs.getInts("steps")[i] != 1)
      return std::nullopt;
    if (whole[i] == part[i])
      continue;
    if (axis)
      return std::nullopt;
    axis = i;
  }
  return axis;
}

std::optional<Partition> partitionOf(const Value *whole, Phase phase) {
  Partition found;
  for (const Use &use : whole->uses()) {
    if (use.op->phase != phase)
      continue;
    std::optional<int64_t> axis = use.op->is(kSlice) ? axisOf(*use.op) : std::nullopt;
    if (!axis || (!found.slices.empty() && *axis != found.axis))
      return std::nullopt;
    found.axis = *axis;
    found.slices.push_back(use.op);
  }
  auto start = [&](const Op *slice) { return slice->attrs.getInts("starts")[found.axis]; };
  llvm::stable_sort(found.slices, [&](const Op *a, const Op *b) { return start(a) < start(b); });
  int64_t end = 0;
  for (const Op *slice : found.slices) {
    if (start(slice) != end)
      return std::nullopt;
    end += slice->result()->type().dims[found.axis];
  }
  if (found.slices.size() < 2 || end != whole->type().dims[found.axis])
    return std::nullopt;
  return found;
}

} // namespace shardc
