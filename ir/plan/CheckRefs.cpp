// SPDX-License-Identifier: Apache-2.0
// What bytes a strided operand touches; which slice of what it is.
#include "ir/base/Tensor.h"
#include "ir/plan/Check.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace shardc::check {
namespace {

ArrayRef<int64_t> dimsOf(const plan::Ref &ref) {
  return {ref.dims().data(), size_t(ref.dims_size())};
}

/// (|stride|, dim) of the dims that move, smallest stride first.
SmallVector<std::pair<uint64_t, int64_t>, 4> sortedSteps(const plan::Ref &ref) {
  SmallVector<std::pair<uint64_t, int64_t>, 4> steps;
  auto strides = stridesOf(ref);
  for (int i = 0; i < ref.dims_size(); ++i)
    if (ref.dims(i) > 1)
      steps.push_back({uint64_t(std::abs(strides[i])), ref.dims(i)});
  llvm::sort(steps);
  return steps;
}

} // namespace

SmallVector<int64_t, 4> stridesOf(const plan::Ref &ref) {
  if (ref.strides_size() == 0)
    return rowMajorStrides(dimsOf(ref));
  return {ref.strides().begin(), ref.strides().end()};
}

std::optional<Range> touchedBytes(const plan::Ref &ref) {
  std::optional<int64_t> elements = checkedNumElements(dimsOf(ref));
  if (!elements || ref.offset() > uint64_t(INT64_MAX) / 2)
    return std::nullopt;
  if (*elements == 0)
    return Range{ref.offset(), ref.offset()};
  // Elements [low, high] around the first one.
  int64_t low = 0, high = 0;
  auto strides = stridesOf(ref);
  for (int i = 0; i < ref.dims_size(); ++i) {
    int64_t reach;
    if (MulOverflow(ref.dims(i) - 1, strides[i], reach) ||
        AddOverflow(reach < 0 ? low : high, reach, reach < 0 ? low : high))
      return std::nullopt;
  }
  int64_t size = byteSize(DType(ref.dtype())), begin, end;
  if (MulOverflow(low, size, low) || MulOverflow(high, size, high) ||
      AddOverflow(int64_t(ref.offset()), low, begin) ||
      AddOverflow(int64_t(ref.offset()) + size, high, end) || begin < 0)
    return std::nullopt;
  return Range{uint64_t(begin), uint64_t(end)};
}

bool elementsAreDisjoint(const plan::Ref &ref) {
  if (is_contained(dimsOf(ref), 0)) // there are none
    return true;
  uint64_t reached = 0; // largest element index so far, from the lowest one
  for (auto [stride, dim] : sortedSteps(ref)) {
    if (stride <= reached)
      return false;
    reached += stride * uint64_t(dim - 1);
  }
  return true;
}

uint64_t numBytes(const plan::Ref &ref) {
  if (is_contained(dimsOf(ref), 0)) // the others may be as large as they like
    return 0;
  return uint64_t(numElements(dimsOf(ref)) * byteSize(DType(ref.dtype())));
}

bool isDense(const plan::Ref &ref) {
  std::optional<Range> bytes = touchedBytes(ref);
  return bytes->end - bytes->begin == numBytes(ref);
}

Range tiledBytes(const plan::Plan &plan, const plan::Ref &ref) {
  Range bytes = *touchedBytes(ref);
  if (ref.rank_stride())
    bytes.end = bytes.begin + plan.ranks() * ref.rank_stride();
  return bytes;
}

bool isSliceOf(const plan::Plan &plan, const plan::Ref &slice, const plan::Ref &whole) {
  return slice.rank_stride() && !whole.rank_stride() && slice.buffer() == whole.buffer() &&
         slice.dtype() == whole.dtype() && isDense(whole) &&
         touchedBytes(slice)->begin == touchedBytes(whole)->begin &&
         slice.rank_stride() * plan.ranks() == numBytes(whole);
}

Range touchedAddresses(const plan::Plan &plan, const plan::Ref &ref) {
  Range bytes = tiledBytes(plan, ref);
  uint64_t start = plan.buffers(ref.buffer()).offset();
  return {start + bytes.begin, start + bytes.end};
}

/// Bytes from one row of the outermost dim to the next, and those that a row touches; nullopt where there are no rows apart.
static std::optional<std::pair<uint64_t, uint64_t>> rowsOf(const plan::Ref &ref) {
  auto steps = sortedSteps(ref);
  if (steps.empty() || ref.rank_stride() || !elementsAreDisjoint(ref))
    return std::nullopt;
  uint64_t last = 0, size = byteSize(DType(ref.dtype()));
  for (auto [stride, dim] : ArrayRef(steps).drop_back())
    last += stride * uint64_t(dim - 1);
  return std::pair(steps.back().first * size, (last + 1) * size);
}

bool areSideBySide(const plan::Plan &plan, const plan::Ref &a, const plan::Ref &b) {
  auto rowsA = rowsOf(a), rowsB = rowsOf(b);
  if (!rowsA || !rowsB || rowsA->first != rowsB->first)
    return false;
  const uint64_t pitch = rowsA->first, beginA = touchedAddresses(plan, a).begin, beginB = touchedAddresses(plan, b).begin;
  const uint64_t from = (beginB % pitch + pitch - beginA % pitch) % pitch; // of a row of b, seen from the row of a before it
  return rowsA->second <= from && from + rowsB->second <= pitch;
}

bool isOverwritten(const plan::Command &command, int index) {
  return is_contained(command.in_place(), uint32_t(index) + 1);
}

bool sameLayout(const plan::Plan &plan, const plan::Ref &a, const plan::Ref &b) {
  const plan::Buffer &in = plan.buffers(a.buffer()), &out = plan.buffers(b.buffer());
  if (in.space() != out.space() || in.offset() + a.offset() != out.offset() + b.offset() ||
      byteSize(DType(a.dtype())) != byteSize(DType(b.dtype())) || dimsOf(a) != dimsOf(b) ||
      a.rank_stride() != b.rank_stride())
    return false;
  auto sa = stridesOf(a), sb = stridesOf(b);
  for (int i = 0; i < a.dims_size(); ++i)
    if (a.dims(i) > 1 && sa[i] != sb[i])
      return false;
  return true;
}

} // namespace shardc::check
