// SPDX-License-Identifier: Apache-2.0
// softmax(x), log_softmax(x), softmax_grad(dy, y) over the last dim. A row without any finite
// element gives zeros.
#include "runtime/host/Rows.h"
#include "runtime/host/SoftmaxRow.h"

namespace shardc::host {
namespace {

template <typename T> class Softmax final : public Kernel {
public:
  Softmax(const Array &x, const Array &y) : rows_(Rows::of(x, 1)), x_(x.as<T>()), y_(y.as<T>()) {}
  void run() override {
    int64_t n = rows_.length;
    parallelFor(rows_.count, rows_.grain(), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r)
        softmaxRow(x_ + rows_[r], n, y_ + r * n);
    });
  }

private:
  Rows rows_;
  const T *x_;
  T *y_;
};

template <typename T> class LogSoftmax final : public Kernel {
public:
  LogSoftmax(const Array &x, const Array &y)
      : rows_(Rows::of(x, 1)), x_(x.as<T>()), y_(y.as<T>()) {}
  void run() override {
    int64_t n = rows_.length;
    parallelFor(rows_.count, rows_.grain(), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) {
        const T *x = x_ + rows_[r];
        T *y = y_ + r * n;
        T top = finiteMax(x, n);
        T log = T(std::log(sumExp(x, n, top)));
        SHARDC_INDEPENDENT
        for (int64_t i = 0; i < n; ++i)
          y[i] = x[i] - top - log;
      }
    });
  }

private:
  Rows rows_;
  const T *x_;
  T *y_;
};

// dx = y (dy - sum dy y)
template <typename T> class SoftmaxGrad final : public Kernel {
public:
  SoftmaxGrad(const Array &dy, const Array &y, const Array &dx)
      : dyRows_(Rows::of(dy, 1)), yRows_(Rows::of(y, 1)), dy_(dy.as<T>()), y_(y.as<T>()),
        dx_(dx.as<T>()) {}
  void run() override {
    int64_t n = yRows_.length;
    parallelFor(yRows_.count, yRows_.grain(), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) {
        const T *dy = dy_ + dyRows_[r], *y = y_ + yRows_[r];
        T *dx = dx_ + r * n;
        T dot = T(sumOf<T>(n, [=](int64_t i) { return dy[i] * y[i]; }));
        SHARDC_INDEPENDENT
        for (int64_t i = 0; i < n; ++i)
          dx[i] = y[i] * (dy[i] - dot);
      }
    });
  }

private:
  Rows dyRows_, yRows_;
  const T *dy_, *y_;
  T *dx_;
};

bool checkRows(Checks &c, unsigned operands) {
  if (!(c.arity(operands, operands, 1) && c.real(c.in(0)) && c.denseResults() &&
        c.that(!c.in(0).dims.empty(), "rank: got 0, wanted at least 1") &&
        c.dims(c.out(0), c.in(0).dims) && c.dtype(c.out(0), c.in(0).dtype)))
    return false;
  for (unsigned i = 0; i < operands; ++i)
    if (!(c.dims(c.in(i), c.in(0).dims) && c.dtype(c.in(i), c.in(0).dtype) && c.lastDim(c.in(i))))
      return false;
  return c.apart({{0, 0}, {0, 1}});
}

} // namespace

BoundKernel bindSoftmax(const Binding &b) {
  Checks c(b);
  if (!checkRows(c, 1))
    return c.take();
  return makeReal<Softmax>(b.in[0].dtype, b.in[0], b.out[0]);
}

BoundKernel bindLogSoftmax(const Binding &b) {
  Checks c(b);
  if (!checkRows(c, 1))
    return c.take();
  return makeReal<LogSoftmax>(b.in[0].dtype, b.in[0], b.out[0]);
}

BoundKernel bindSoftmaxGrad(const Binding &b) {
  Checks c(b);
  if (!checkRows(c, 2))
    return c.take();
  return makeReal<SoftmaxGrad>(b.in[0].dtype, b.in[0], b.in[1], b.out[0]);
}

} // namespace shardc::host
