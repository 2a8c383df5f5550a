// SPDX-License-Identifier: Apache-2.0
// rms_norm(x, scale){axis, eps} -> y, rstd and rms_norm_grad(dy, x, rstd, scale){axis, affine} ->
// dx[, dscale]. Rows are the dims [axis, rank).
#include "runtime/host/Norm.h"
#include <cmath>

namespace shardc::host {
namespace {

template <typename T> class RmsNorm final : public Kernel {
public:
  RmsNorm(const Binding &b, size_t rowRank, double eps)
      : rows_(Rows::of(b.in[0], rowRank)), x_(b.in[0].as<T>()), scale_(b.in[1].as<T>()),
        y_(b.out[0].as<T>()), rstd_(b.out[1].as<T>()), eps_(eps) {}

  void run() override {
    int64_t n = rows_.length;
    const T *scale = scale_;
    parallelFor(rows_.count, rows_.grain(), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) {
        const T *x = x_ + rows_[r];
        T *y = y_ + r * n;
        double square = sumOf<T>(n, [=](int64_t i) { return x[i] * x[i]; });
        T rstd = T(1 / std::sqrt(square / double(n) + eps_));
        rstd_[r] = rstd;
        SHARDC_INDEPENDENT
        for (int64_t i = 0; i < n; ++i)
          y[i] = x[i] * rstd * scale[i];
      }
    });
  }

private:
  Rows rows_;
  const T *x_, *scale_;
  T *y_, *rstd_;
  double eps_;
};

// With h = x rstd, dh = dy scale: dx = rstd (dh - h mean(dh h)).
template <typename T> class RmsNormGrad final : public Kernel {
public:
  RmsNormGrad(const Binding &b, size_t rowRank, bool affine)
      : rows_(Rows::of(b.in[1], rowRank)), dy_(b.in[0].as<T>()), x_(b.in[1].as<T>()),
        rstd_(b.in[2].as<T>()), scale_(b.in[3].as<T>()), dx_(b.out[0].as<T>()),
        dscale_(affine ? b.out[1].as<T>() : nullptr) {}

  void run() override {
    int64_t n = rows_.length;
    const T *scale = scale_;
    // Before dx, which may take the place of dy or x.
    if (dscale_)
      normColumns(rows_.count, n, [&](int64_t begin, int64_t width) { columns(begin, width); });
    parallelFor(rows_.count, rows_.grain(), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) {
        const T *dy = dy_ + r * n, *x = x_ + r * n;
        T *dx = dx_ + r * n, rstd = rstd_[r];
        double dot = sumOf<T>(n, [=](int64_t i) { return dy[i] * scale[i] * x[i]; });
        // mean(dh h) rstd, as the factor of x
        T factor = T(dot / double(n)) * rstd * rstd;
        SHARDC_INDEPENDENT
        for (int64_t i = 0; i < n; ++i)
          dx[i] = rstd * (dy[i] * scale[i] - x[i] * factor);
      }
    });
  }

private:
  void columns(int64_t begin, int64_t width) const {
    double dscale[kNormColumns] = {};
    int64_t n = rows_.length;
    for (int64_t r = 0; r < rows_.count; ++r) {
      const T *dy = dy_ + r * n + begin, *x = x_ + r * n + begin;
      T rstd = rstd_[r];
      for (int64_t i = 0; i < width; ++i)
        dscale[i] += dy[i] * (x[i] * rstd);
    }
    for (int64_t i = 0; i < width; ++i)
      dscale_[begin + i] = T(dscale[i]);
  }

  Rows rows_;
  const T *dy_, *x_, *rstd_, *scale_;
  T *dx_, *dscale_;
};

} // namespace

BoundKernel bindRmsNorm(const Binding &b) {
  Checks c(b);
  NormShape shape;
  double eps;
  if (!(c.arity(2, 2, 2) && c.real(b.in[0]) && normShape(c, b.in[0], shape) && c.floatAttr("eps", eps) &&
        c.that(eps >= 0, "attribute eps: wanted at least 0") && normRow(c, b.in[1], shape) &&
        c.dims(b.out[0], b.in[0].dims) && c.dtype(b.out[0], shape.dtype) &&
        normStatistic(c, b.out[1], shape) && c.denseResults() && c.apart({{0, 0}})))
    return c.take();
  return makeReal<RmsNorm>(shape.dtype, b, shape.row.size(), eps);
}

BoundKernel bindRmsNormGrad(const Binding &b) {
  Checks c(b);
  NormShape shape;
  int64_t affine;
  if (!(c.intAttr("affine", affine, 0) && c.arity(4, 4, affine ? 2 : 1) &&
        c.real(b.in[1]) && normShape(c, b.in[1], shape) && c.dims(b.in[0], b.in[1].dims) &&
        c.dtype(b.in[0], shape.dtype) && c.contiguous(b.in[0]) && c.contiguous(b.in[1]) &&
        normStatistic(c, b.in[2], shape) && normRow(c, b.in[3], shape) &&
        c.dims(b.out[0], b.in[1].dims) && c.dtype(b.out[0], shape.dtype) &&
        (!affine || normRow(c, b.out[1], shape)) && c.denseResults() && c.apart({{0, 0}, {0, 1}})))
    return c.take();
  return makeReal<RmsNormGrad>(shape.dtype, b, shape.row.size(), affine != 0);
}

} // namespace shardc::host
