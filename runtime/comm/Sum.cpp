// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/Sum.h"
#include "ir/base/DTypeDispatch.h"
#include <algorithm>
#include <cassert>
#include <type_traits>

namespace shardc {
namespace {

/// Elements that are summed at a time, on the stack: `out` may be a part that is yet to be read.
constexpr int64_t kBlock = 1024;

/// Unsigned where a signed sum could overflow.
template <typename T, bool = std::is_integral_v<T>> struct SumType { using Type = std::make_unsigned_t<T>; };
template <typename T> struct SumType<T, false> { using Type = typename ComputeType<T>::Type; };

template <typename T> void sumOf(llvm::ArrayRef<const char *> parts, int64_t start, void *out, int64_t n) {
  using Sum = typename SumType<T>::Type;
  Sum sums[kBlock];
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    int64_t count = std::min(kBlock, n - begin);
    const T *first = reinterpret_cast<const T *>(parts[0]) + start + begin;
    for (int64_t i = 0; i < count; ++i)
      sums[i] = Sum(first[i]);
    for (const char *part : parts.drop_front()) {
      const T *next = reinterpret_cast<const T *>(part) + start + begin;
      for (int64_t i = 0; i < count; ++i)
        sums[i] = Sum(sums[i] + Sum(next[i]));
    }
    T *result = static_cast<T *>(out) + begin;
    for (int64_t i = 0; i < count; ++i)
      result[i] = T(sums[i]);
  }
}

} // namespace

void sumParts(DType dtype, llvm::ArrayRef<const char *> parts, int64_t begin, void *out, int64_t n) {
  assert(!parts.empty() && dtype != DType::Bool && "no sum");
  withType(dtype, [&]<typename T>() { sumOf<T>(parts, begin, out, n); });
}

} // namespace shardc
