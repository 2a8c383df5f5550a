// SPDX-License-Identifier: Apache-2.0
// copy(x) -> y: equal dims, any strides on both sides.
#include "runtime/host/Copy.h"
#include "runtime/host/Checks.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/Strided.h"

namespace shardc::host {
namespace {

/// The two innermost dims are `rows` and `columns`; the others are walked.
template <typename T> class Copy final : public Kernel {
public:
  Copy(const Array &x, const Array &y) : x_(x.as<T>()), y_(y.as<T>()) {
    Dims dims = x.dims, strides[] = {x.strides, y.strides};
    collapse(dims, strides);
    while (dims.size() < 2) {
      dims.insert(dims.begin(), 1);
      strides[0].insert(strides[0].begin(), 0);
      strides[1].insert(strides[1].begin(), 0);
    }
    // A transpose reads along one dim and writes along another: bring the one that is read to
    // the two inner ones.
    size_t n = dims.size();
    for (size_t d = 0; d + 2 < n; ++d)
      if (strides[0][d] == 1 && strides[0][n - 1] != 1) {
        std::swap(dims[d], dims[n - 2]);
        std::swap(strides[0][d], strides[0][n - 2]);
        std::swap(strides[1][d], strides[1][n - 2]);
      }
    columns_ = dims[n - 1], xColumn_ = strides[0][n - 1], yColumn_ = strides[1][n - 1];
    rows_ = dims[n - 2], xRow_ = strides[0][n - 2], yRow_ = strides[1][n - 2];
    for (size_t d = 0; d + 2 < n; ++d) {
      outer_.push_back(dims[d]);
      xOuter_.push_back(strides[0][d]);
      yOuter_.push_back(strides[1][d]);
    }
    outerCount_ = numElements(outer_);
    rowBlock_ = columns_ >= kBlock * kBlock ? 1 : kBlock;
  }

  void run() override {
    if (columns_ == 0)
      return;
    int64_t rowBlocks = (rows_ + rowBlock_ - 1) / rowBlock_, units = outerCount_ * rowBlocks;
    if (units == 1 && xColumn_ == 1 && yColumn_ == 1 && rows_ == 1) // one long run
      return parallelFor(columns_, 1 << 16, [&](int64_t begin, int64_t end, int) {
        std::memcpy(y_ + begin, x_ + begin, (end - begin) * sizeof(T));
      });
    int64_t grain = 1 + (1 << 15) / (rowBlock_ * columns_);
    parallelFor(units, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t unit = begin; unit < end; ++unit) {
        int64_t left = unit / rowBlocks, first = unit % rowBlocks * rowBlock_;
        const T *x = x_ + first * xRow_;
        T *y = y_ + first * yRow_;
        for (size_t d = outer_.size(); d-- > 0; left /= outer_[d]) {
          x += left % outer_[d] * xOuter_[d];
          y += left % outer_[d] * yOuter_[d];
        }
        copyRows(x, y, std::min(rowBlock_, rows_ - first));
      }
    });
  }

private:
  static constexpr int64_t kBlock = 32;

  void copyRows(const T *x, T *y, int64_t rows) const {
    if (xColumn_ == 1 && yColumn_ == 1) {
      for (int64_t r = 0; r < rows; ++r)
        std::memcpy(y + r * yRow_, x + r * xRow_, columns_ * sizeof(T));
      return;
    }
    for (int64_t c0 = 0; c0 < columns_; c0 += kBlock) {
      int64_t c1 = std::min(c0 + kBlock, columns_);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = c0; c < c1; ++c)
          y[r * yRow_ + c * yColumn_] = x[r * xRow_ + c * xColumn_];
    }
  }

  const T *x_;
  T *y_;
  int64_t rows_, columns_, xRow_, yRow_, xColumn_, yColumn_, outerCount_, rowBlock_;
  Dims outer_, xOuter_, yOuter_;
};

} // namespace

std::unique_ptr<Kernel> makeCopy(const Array &x, const Array &y) {
  return withBits(x.dtype, [&](auto *t) -> std::unique_ptr<Kernel> {
    return std::make_unique<Copy<std::remove_pointer_t<decltype(t)>>>(x, y);
  });
}

BoundKernel bindCopy(const Binding &b) {
  Checks c(b);
  if (!(c.arity(1, 1, 1) && c.dims(b.out[0], b.in[0].dims) && c.dtype(b.out[0], b.in[0].dtype) &&
        c.apart()))
    return c.take();
  return makeCopy(b.in[0], b.out[0]);
}

} // namespace shardc::host
