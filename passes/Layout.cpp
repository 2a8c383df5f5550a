// SPDX-License-Identifier: Apache-2.0
#include "passes/Layout.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {

Layout ownLayout(Value *value) { return {value, 0, rowMajorStrides(value->type().dims)}; }

/// Splits and merges dims in groups of equal products.
std::optional<Dims> reshapeStrides(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> strides, llvm::ArrayRef<int64_t> to) {
  Dims result(to.size(), 0);
  if (numElements(from) == 0)
    return rowMajorStrides(to);
  size_t i = 0, o = 0;
  while (i < from.size() || o < to.size()) {
    // A group: from[i, iEnd) and to[o, oEnd) with one product.
    size_t iEnd = i, oEnd = o;
    int64_t in = 1, out = 1;
    if (iEnd < from.size())
      in = from[iEnd++];
    if (oEnd < to.size())
      out = to[oEnd++];
    while (in != out) {
      if (in < out)
        in *= from[iEnd++];
      else
        out *= to[oEnd++];
    }
    // Dims of size 1 have no say. `inner` is the stride of the merged group's elements.
    int64_t inner = 0, extent = 0;
    for (size_t k = iEnd; k-- > i;) {
      if (from[k] == 1)
        continue;
      if (extent == 0)
        inner = strides[k];
      else if (strides[k] != inner * extent)
        return std::nullopt;
      extent = extent == 0 ? from[k] : extent * from[k];
    }
    for (size_t k = oEnd; k-- > o;) {
      result[k] = inner;
      inner *= to[k];
    }
    i = iEnd;
    o = oEnd;
  }
  return result;
}

std::optional<Layout> viewLayout(const Op &view, const Layout &operand) {
  const Dims &from = view.operand(0)->type().dims, &to = view.result()->type().dims;
  Layout result{operand.root, operand.offset, {}, operand.rankStride};
  if (view.is(kReshape)) {
    std::optional<Dims> strides = reshapeStrides(from, operand.strides, to);
    if (!strides)
      return std::nullopt;
    result.strides = *strides;
  } else if (view.is(kTranspose)) {
    for (int64_t p : view.attrs.getInts("perm"))
      result.strides.push_back(operand.strides[p]);
  } else if (view.is(kSlice)) {
    const Ints &starts = view.attrs.getInts("starts"), &steps = view.attrs.getInts("steps");
    for (size_t i = 0; i < from.size(); ++i) {
      result.offset += to[i] > 0 ? starts[i] * operand.strides[i] : 0;
      result.strides.push_back(operand.strides[i] * steps[i]);
    }
  } else if (view.is(kJoin)) { // the others lie behind the first
    result.strides = rowMajorStrides(to);
  } else if (view.is(kCollectiveDone)) {
    result.strides = operand.strides;
  } else if (view.is(kRankSlice)) {
    result.strides = operand.strides;
    result.rankStride = to[0] * operand.strides[0];
  } else {
    assert(view.is(kExpand));
    int64_t extra = int64_t(to.size()) - int64_t(from.size());
    for (int64_t i = 0; i < int64_t(to.size()); ++i)
      result.strides.push_back(i < extra || from[i - extra] != to[i] ? 0 : operand.strides[i - extra]);
  }
  return result;
}

uint8_t allowedLayouts(const OpDef &def, unsigned i) {
  bool taken = llvm::any_of(def.inPlace, [&](const InPlace &pair) { return pair.operand == int(i); });
  return taken && !(def.layouts & kStrided) ? uint8_t(kContiguous) : def.layouts;
}

bool layoutFits(const Layout &layout, llvm::ArrayRef<int64_t> dims, uint8_t allowed) {
  if ((allowed & kStrided) || numElements(dims) <= 1)
    return true;
  int64_t rank = dims.size();
  bool lastIsOne = dims[rank - 1] == 1 || layout.strides[rank - 1] == 1;
  if ((allowed & kLastDim) && lastIsOne)
    return true;
  if ((allowed & kMatrix) && rank >= 2) {
    // The leading dimension of a matrix must hold a row, and rows must not lie backwards or on top of each other.
    auto matrix = [&](int64_t row, int64_t column) {
      bool unit = dims[column] == 1 || layout.strides[column] == 1;
      return unit && (dims[row] == 1 || layout.strides[row] >= dims[column]);
    };
    if (matrix(rank - 2, rank - 1) || matrix(rank - 1, rank - 2))
      return true;
  }
  int64_t expected = 1;
  for (int64_t i = rank - 1; i >= 0; --i) {
    if (dims[i] != 1 && layout.strides[i] != expected)
      return false;
    expected *= dims[i];
  }
  return true;
}

} // namespace shardc
