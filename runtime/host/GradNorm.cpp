// SPDX-License-Identifier: Apache-2.0
// sum_squares(g) -> f64 and grad_scale(count, scalars, sumsq...) -> grad_norm, grad_scale; each sumsq is an array, added in order.
// Gradients hold d(sum)/dp, so the mean's are these / count:
//   norm = sqrt(sum of squares) / count
//   scale = 1 / count * min(1, max_norm / (norm + 1e-6))   (the last factor only if max_norm > 0)
#include "ir/plan/Scalars.h"
#include "runtime/host/Rows.h"
#include "runtime/host/Simd.h"
#include <cmath>

namespace shardc::host {
namespace {

template <typename T> class SumSquares final : public Kernel {
public:
  SumSquares(const Binding &b)
      : g_(b.in[0].as<T>()), count_(b.in[0].numElements()), sum_(b.out[0].as<double>()),
        partial_((count_ + kBlock - 1) / kBlock) {}

  void run() override {
    parallelFor(partial_.size(), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t block = begin; block < end; ++block) {
        const T *g = g_ + block * kBlock;
        partial_[block] = sumOf<T>(std::min(kBlock, count_ - block * kBlock),
                                   [=](int64_t i) { return g[i] * g[i]; });
      }
    });
    double sum = 0;
    for (double p : partial_)
      sum += p;
    *sum_ = sum;
  }

private:
  static constexpr int64_t kBlock = 1 << 15;
  const T *g_;
  int64_t count_;
  double *sum_;
  std::vector<double> partial_;
};

template <typename T> class GradScale final : public Kernel {
public:
  GradScale(const Binding &b)
      : counter_(b.in[0].as<T>()), scalars_(b.in[1].as<double>()), norm_(b.out[0].as<double>()),
        scale_(b.out[1].as<double>()) {
    for (size_t i = 2; i < b.in.size(); ++i)
      squares_.push_back({b.in[i].as<double>(), size_t(b.in[i].numElements())});
  }

  void run() override {
    double count = *counter_, maxNorm = scalars_[kMaxGradNorm], sum = 0;
    for (llvm::ArrayRef<double> squares : squares_)
      for (double square : squares)
        sum += square;
    if (count == 0) {
      *norm_ = *scale_ = 0;
      return;
    }
    double norm = std::sqrt(sum) / count, scale = 1 / count;
    if (maxNorm > 0)
      scale *= std::fmin(1.0, maxNorm / (norm + 1e-6));
    *norm_ = norm;
    *scale_ = scale;
  }

private:
  const T *counter_;
  const double *scalars_;
  double *norm_, *scale_;
  std::vector<llvm::ArrayRef<double>> squares_;
};

bool isScalar(Checks &c, const Array &a, DType dtype) { return c.dtype(a, dtype) && c.dims(a, {}); }

} // namespace

BoundKernel bindSumSquares(const Binding &b) {
  Checks c(b);
  if (!(c.arity(1, 1, 1) && c.real(b.in[0]) && c.contiguous(b.in[0]) &&
        isScalar(c, b.out[0], DType::F64) && c.apart()))
    return c.take();
  return makeReal<SumSquares>(b.in[0].dtype, b);
}

BoundKernel bindGradScale(const Binding &b) {
  Checks c(b);
  if (!(c.arity(2, 1 << 20, 2) && c.real(b.in[0]) && c.dims(b.in[0], {}) &&
        c.dtype(b.in[1], DType::F64) && c.dims(b.in[1], {kNumScalars}) && c.contiguous(b.in[1]) &&
        isScalar(c, b.out[0], DType::F64) && isScalar(c, b.out[1], DType::F64) && c.apart()))
    return c.take();
  for (size_t i = 2; i < b.in.size(); ++i)
    if (!(c.that(bool(b.in[i]), "absent sum of squares") && c.dtype(b.in[i], DType::F64) && c.contiguous(b.in[i])))
      return c.take();
  return makeReal<GradScale>(b.in[0].dtype, b);
}

} // namespace shardc::host
