// SPDX-License-Identifier: Apache-2.0
// copy(x) -> y: equal dims, any strides on both sides.
#include "runtime/cuda/Copy.h"
#include "runtime/cuda/CopyLaunch.h"
#include "runtime/host/Strided.h"
#include <numeric>

namespace shardc::cuda {
namespace {

class PlainCopy final : public Kernel {
public:
  PlainCopy(const void *x, void *y, int64_t bytes) : x_(x), y_(y), bytes_(bytes) {}
  llvm::Error launch(cudaStream_t stream) override {
    return check(cudaMemcpyAsync(y_, x_, bytes_, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
  }

private:
  const void *x_;
  void *y_;
  int64_t bytes_;
};

/// Dims with both arrays' strides, from the slowest to the fastest of y: a copy may run in any order.
struct CopyShape {
  Dims dims, x, y;
  size_t last() const { return dims.size() - 1; }

  CopyShape(const host::Array &from, const host::Array &to) {
    Dims strides[] = {from.strides, to.strides};
    dims = from.dims;
    host::collapse(dims, strides);
    llvm::SmallVector<size_t> order(dims.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return std::abs(strides[1][a]) > std::abs(strides[1][b]); });
    Dims sorted, sortedStrides[2];
    for (size_t d : order) {
      sorted.push_back(dims[d]);
      sortedStrides[0].push_back(strides[0][d]);
      sortedStrides[1].push_back(strides[1][d]);
    }
    host::collapse(sorted, sortedStrides);
    dims = sorted, x = sortedStrides[0], y = sortedStrides[1];
  }

  /// Sees elements of `bytes` as wider ones where rows are dense on both sides. The new width.
  int64_t widen(int64_t bytes, const host::Array &from, const host::Array &to) {
    if (x[last()] != 1 || y[last()] != 1)
      return bytes;
    int64_t common = dims[last()] * bytes;
    for (size_t d = 0; d < last(); ++d)
      common = std::gcd(common, std::gcd(x[d] * bytes, y[d] * bytes));
    const int64_t width = commonWidth(bytes, common, {from.data, to.data}), factor = width / bytes;
    dims[last()] /= factor;
    for (size_t d = 0; d < last(); ++d)
      x[d] /= factor, y[d] /= factor;
    return width;
  }
};

/// The dim that x has its neighbours in, if that is not y's: 0 to `last` - 1.
std::optional<size_t> crossing(const CopyShape &s) {
  constexpr int64_t kLeast = 8; // below it a tile is mostly empty
  if (s.y[s.last()] != 1 || s.x[s.last()] == 1 || s.dims[s.last()] < kLeast)
    return std::nullopt;
  for (size_t d = 0; d < s.last(); ++d)
    if (s.x[d] == 1 && s.dims[d] >= kLeast)
      return d;
  return std::nullopt;
}

} // namespace

std::unique_ptr<Kernel> makePlainCopy(const void *x, void *y, int64_t bytes) {
  return std::make_unique<PlainCopy>(x, y, bytes);
}

std::unique_ptr<Kernel> makeCopy(const host::Array &x, const host::Array &y) {
  const int64_t count = x.numElements(), bytes = byteSize(x.dtype);
  if (count == 0)
    return std::make_unique<Sequence>();
  CopyShape s(x, y);
  if (s.dims.size() == 1 && s.x[0] == 1 && s.y[0] == 1)
    return makePlainCopy(x.data, y.data, count * bytes);
  if (std::optional<size_t> row = crossing(s)) {
    TiledCopy args{x.data,    y.data,        int(bytes), s.dims[*row], s.dims[s.last()],
                   s.y[*row], s.x[s.last()], 1,          {},           {}};
    Dims dims, from, to;
    for (size_t d = 0; d < s.last(); ++d)
      if (d != *row) {
        dims.push_back(s.dims[d]);
        from.push_back(s.x[d]);
        to.push_back(s.y[d]);
      }
    args.outer = numElements(dims);
    args.from = walkOf(dims, from);
    args.to = walkOf(dims, to);
    return launchKernel(launchTiledCopy, "launchTiledCopy", args);
  }
  const int64_t width = s.widen(bytes, x, y);
  StridedCopy args{x.data, y.data, int(width), numElements(s.dims), walkOf(s.dims, s.x), walkOf(s.dims, s.y)};
  return launchKernel(launchStridedCopy, "launchStridedCopy", args);
}

BoundKernel bindCopy(const host::Binding &b, Device &) {
  host::Checks c(b);
  if (!(c.arity(1, 1, 1) && c.dims(b.out[0], b.in[0].dims) && c.dtype(b.out[0], b.in[0].dtype) && c.apart()))
    return c.take();
  return makeCopy(b.in[0], b.out[0]);
}

} // namespace shardc::cuda
