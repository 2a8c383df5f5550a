// SPDX-License-Identifier: Apache-2.0
// layer_norm(x, scale?, bias?){axis, eps} -> y, mean, rstd and
// layer_norm_grad(dy, x, mean, rstd, scale?){axis, affine} -> dx[, dscale, dbias].
// Rows are the dims [axis, rank).
#include "runtime/host/Norm.h"
#include <cmath>

namespace shardc::host {
namespace {

template <typename T> class LayerNorm final : public Kernel {
public:
  LayerNorm(const Binding &b, size_t rowRank, double eps)
      : rows_(Rows::of(b.in[0], rowRank)), x_(b.in[0].as<T>()),
        scale_(b.in.size() > 1 ? b.in[1].as<T>() : nullptr),
        bias_(b.in.size() > 2 ? b.in[2].as<T>() : nullptr), y_(b.out[0].as<T>()),
        mean_(b.out[1].as<T>()), rstd_(b.out[2].as<T>()), eps_(eps) {}

  void run() override {
    int64_t n = rows_.length;
    parallelFor(rows_.count, rows_.grain(), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) {
        const T *x = x_ + rows_[r];
        T *y = y_ + r * n;
        T mean = T(sumOf<T>(n, [=](int64_t i) { return x[i]; }) / double(n));
        double square = sumOf<T>(n, [=](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
        T rstd = T(1 / std::sqrt(square / double(n) + eps_));
        mean_[r] = mean;
        rstd_[r] = rstd;
        SHARDC_INDEPENDENT
        for (int64_t i = 0; i < n; ++i)
          y[i] = (x[i] - mean) * rstd;
        if (scale_) {
          SHARDC_INDEPENDENT
          for (int64_t i = 0; i < n; ++i)
            y[i] *= scale_[i];
        }
        if (bias_) {
          SHARDC_INDEPENDENT
          for (int64_t i = 0; i < n; ++i)
            y[i] += bias_[i];
        }
      }
    });
  }

private:
  Rows rows_;
  const T *x_, *scale_, *bias_;
  T *y_, *mean_, *rstd_;
  double eps_;
};

// With h = (x - mean) rstd, dh = dy scale: dx = rstd (dh - mean(dh) - h mean(dh h)).
template <typename T> class LayerNormGrad final : public Kernel {
public:
  LayerNormGrad(const Binding &b, size_t rowRank, bool affine)
      : rows_(Rows::of(b.in[1], rowRank)), dy_(b.in[0].as<T>()), x_(b.in[1].as<T>()),
        mean_(b.in[2].as<T>()), rstd_(b.in[3].as<T>()),
        scale_(b.in.size() > 4 ? b.in[4].as<T>() : nullptr), dx_(b.out[0].as<T>()),
        dscale_(affine ? b.out[1].as<T>() : nullptr), dbias_(affine ? b.out[2].as<T>() : nullptr) {}

  void run() override {
    int64_t n = rows_.length;
    // Before dx, which may take the place of dy or x.
    if (dscale_)
      normColumns(rows_.count, n, [&](int64_t begin, int64_t width) { columns(begin, width); });
    parallelFor(rows_.count, rows_.grain(), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) {
        if (scale_)
          row(r, [s = scale_](int64_t i) { return s[i]; });
        else
          row(r, [](int64_t) { return T(1); });
      }
    });
  }

private:
  template <typename Scale> void row(int64_t r, Scale scale) const {
    int64_t n = rows_.length;
    const T *dy = dy_ + r * n, *x = x_ + r * n;
    T *dx = dx_ + r * n, mean = mean_[r], rstd = rstd_[r];
    T sum = T(sumOf<T>(n, [=](int64_t i) { return dy[i] * scale(i); }) / double(n));
    T dot = T(sumOf<T>(n, [=](int64_t i) { return dy[i] * scale(i) * ((x[i] - mean) * rstd); }) /
              double(n));
    SHARDC_INDEPENDENT
    for (int64_t i = 0; i < n; ++i)
      dx[i] = rstd * (dy[i] * scale(i) - sum - (x[i] - mean) * rstd * dot);
  }

  void columns(int64_t begin, int64_t width) const {
    double dscale[kNormColumns] = {}, dbias[kNormColumns] = {};
    int64_t n = rows_.length;
    for (int64_t r = 0; r < rows_.count; ++r) {
      const T *dy = dy_ + r * n + begin, *x = x_ + r * n + begin;
      T mean = mean_[r], rstd = rstd_[r];
      for (int64_t i = 0; i < width; ++i) {
        dscale[i] += dy[i] * ((x[i] - mean) * rstd);
        dbias[i] += dy[i];
      }
    }
    for (int64_t i = 0; i < width; ++i) {
      dscale_[begin + i] = T(dscale[i]);
      dbias_[begin + i] = T(dbias[i]);
    }
  }

  Rows rows_;
  const T *dy_, *x_, *mean_, *rstd_, *scale_;
  T *dx_, *dscale_, *dbias_;
};

} // namespace

BoundKernel bindLayerNorm(const Binding &b) {
  Checks c(b);
  NormShape shape;
  double eps;
  if (!(c.arity(1, 3, 3) && c.real(b.in[0]) && normShape(c, b.in[0], shape) && c.floatAttr("eps", eps) &&
        c.that(eps >= 0, "attribute eps: wanted at least 0") && normRow(c, c.in(1), shape) &&
        normRow(c, c.in(2), shape) && c.dims(b.out[0], b.in[0].dims) &&
        c.dtype(b.out[0], shape.dtype) && normStatistic(c, b.out[1], shape) &&
        normStatistic(c, b.out[2], shape) && c.denseResults() && c.apart({{0, 0}})))
    return c.take();
  return makeReal<LayerNorm>(shape.dtype, b, shape.row.size(), eps);
}

BoundKernel bindLayerNormGrad(const Binding &b) {
  Checks c(b);
  NormShape shape;
  int64_t affine;
  if (!(c.intAttr("affine", affine, 0) && c.arity(4, 5, affine ? 3 : 1) &&
        c.real(b.in[1]) && normShape(c, b.in[1], shape) && c.dims(b.in[0], b.in[1].dims) &&
        c.dtype(b.in[0], shape.dtype) && c.contiguous(b.in[0]) && c.contiguous(b.in[1]) &&
        normStatistic(c, b.in[2], shape) && normStatistic(c, b.in[3], shape) &&
        normRow(c, c.in(4), shape) && c.dims(b.out[0], b.in[1].dims) &&
        c.dtype(b.out[0], shape.dtype) &&
        (!affine || (normRow(c, b.out[1], shape) && normRow(c, b.out[2], shape))) &&
        c.denseResults() && c.apart({{0, 0}, {0, 1}})))
    return c.take();
  return makeReal<LayerNormGrad>(shape.dtype, b, shape.row.size(), affine != 0);
}

} // namespace shardc::host
