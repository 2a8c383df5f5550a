// SPDX-License-Identifier: Apache-2.0
// The movement functions that compute as well: scatters with a reduction, sums, ranges.
#include "ir/base/DTypeDispatch.h"
#include "ir/base/Movement.h"
#include "ir/base/Tensor.h"
#include <type_traits>

namespace shardc {
namespace {

int64_t wrapped(int64_t index, int64_t size) {
  if (index < 0)
    index += size;
  return index >= 0 && index < size ? index : -1;
}

/// Integers wrap around, so they compute unsigned.
template <typename T> T add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return T(uint64_t(a) + uint64_t(b));
  else
    return a + b;
}
template <typename T> T mul(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return T(uint64_t(a) * uint64_t(b));
  else
    return a * b;
}

template <typename T> T combine(Scatter reduction, T old, T update) {
  using C = typename ComputeType<T>::Type;
  C a = old, b = update;
  switch (reduction) {
  case Scatter::None:
    return update;
  case Scatter::Add:
    return T(add(a, b));
  case Scatter::Mul:
    return T(mul(a, b));
  case Scatter::Max:
    return T(a > b || a != a ? a : b);
  case Scatter::Min:
    return T(a < b || a != a ? a : b);
  }
  return update;
}

} // namespace

int64_t gatherGrad(void *out, const void *dy, AxisView view, Indices indices, DType dtype) {
  return withType(dtype, [&]<typename T>() {
    using C = typename ComputeType<T>::Type;
    const T *from = static_cast<const T *>(dy);
    for (int64_t o = 0; o < view.outer; ++o)
      for (int64_t i = 0; i < indices.count; ++i, from += view.inner) {
        int64_t index = wrapped(indices[i], view.size);
        if (index < 0)
          return i;
        T *to = static_cast<T *>(out) + (o * view.size + index) * view.inner;
        for (int64_t k = 0; k < view.inner; ++k)
          to[k] = T(add(C(to[k]), C(from[k])));
      }
    return kAllInRange;
  });
}

int64_t scatterElements(void *out, llvm::ArrayRef<int64_t> outDims, Indices indices,
                        llvm::ArrayRef<int64_t> indexDims, const void *updates, int64_t axis,
                        Scatter reduction, DType dtype) {
  Dims strides = rowMajorStrides(outDims), at(indexDims.size(), 0);
  return withType(dtype, [&]<typename T>() {
    T *to = static_cast<T *>(out);
    const T *from = static_cast<const T *>(updates);
    for (int64_t i = 0; i < indices.count; ++i) {
      int64_t index = wrapped(indices[i], outDims[axis]), place = 0;
      if (index < 0)
        return i;
      for (size_t d = 0; d < at.size(); ++d)
        place += (int64_t(d) == axis ? index : at[d]) * strides[d];
      to[place] = combine(reduction, to[place], from[i]);
      for (size_t d = at.size(); d-- > 0 && ++at[d] == indexDims[d];)
        at[d] = 0;
    }
    return kAllInRange;
  });
}

int64_t scatterNd(void *out, llvm::ArrayRef<int64_t> outDims, Indices indices,
                  llvm::ArrayRef<int64_t> indexDims, const void *updates, Scatter reduction,
                  DType dtype) {
  int64_t width = indexDims.back(), tuples = numElements(indexDims.drop_back());
  int64_t line = numElements(outDims.drop_front(width));
  return withType(dtype, [&]<typename T>() {
    const T *from = static_cast<const T *>(updates);
    for (int64_t t = 0; t < tuples; ++t, from += line) {
      int64_t slice = 0;
      for (int64_t k = 0; k < width; ++k) {
        int64_t index = wrapped(indices[t * width + k], outDims[k]);
        if (index < 0)
          return t * width + k;
        slice = slice * outDims[k] + index;
      }
      T *to = static_cast<T *>(out) + slice * line;
      for (int64_t i = 0; i < line; ++i)
        to[i] = combine(reduction, to[i], from[i]);
    }
    return kAllInRange;
  });
}

void cumSum(void *out, const void *in, AxisView view, bool exclusive, bool reverse, DType dtype) {
  withType(dtype, [&]<typename T>() {
    using C = typename ComputeType<T>::Type;
    for (int64_t o = 0; o < view.outer; ++o)
      for (int64_t k = 0; k < view.inner; ++k) {
        C sum = 0;
        for (int64_t i = 0; i < view.size; ++i) {
          int64_t at = (o * view.size + (reverse ? view.size - 1 - i : i)) * view.inner + k;
          C value = static_cast<const T *>(in)[at], next = add(sum, value);
          static_cast<T *>(out)[at] = T(exclusive ? sum : next);
          sum = next;
        }
      }
  });
}

void range(void *out, int64_t count, double start, double delta, DType dtype) {
  withType(dtype, [&]<typename T>() {
    using C = typename ComputeType<T>::Type;
    for (int64_t i = 0; i < count; ++i)
      static_cast<T *>(out)[i] = T(add(C(start), mul(C(i), C(delta))));
  });
}

} // namespace shardc
