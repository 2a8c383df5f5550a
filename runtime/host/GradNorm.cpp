// SPDX-License-Identifier: Apache-2.0
// sum_squares(g...) -> f64[n] and grad_scale(count, scalars, sumsq...) -> grad_norm, grad_scale; each sumsq is an array, added in order.
// Gradients hold d(sum)/dp, so the mean's are these / count:
//   norm = sqrt(sum of squares) / count
//   scale = 1 / count * min(1, max_norm / (norm + 1e-6))   (the last factor only if max_norm > 0)
#include "ir/base/DTypeDispatch.h"
#include "ir/plan/Scalars.h"
#include "runtime/host/Rows.h"
#include "runtime/host/Simd.h"
#include <cmath>

namespace shardc::host {
namespace {

class SumSquares final : public Kernel {
public:
  SumSquares(const Binding &b) : sums_(b.out[0].as<double>()) {
    for (const Array &g : b.in) {
      for (int64_t at = 0, n = g.numElements(); at < n; at += kBlock)
        blocks_.push_back({g.as<char>() + at * byteSize(g.dtype), g.dtype, std::min(kBlock, n - at)});
      ends_.push_back(blocks_.size());
    }
    partial_.resize(blocks_.size());
  }

  void run() override {
    parallelFor(blocks_.size(), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i)
        partial_[i] = withType(blocks_[i].dtype, [&]<typename T>() { return sum<T>(blocks_[i]); });
    });
    size_t at = 0;
    for (size_t i = 0; i < ends_.size(); ++i) {
      sums_[i] = 0;
      for (; at < ends_[i]; ++at)
        sums_[i] += partial_[at];
    }
  }

private:
  static constexpr int64_t kBlock = 1 << 15;
  struct Block {
    const void *data;
    DType dtype;
    int64_t count;
  };
  template <typename T> static double sum(const Block &block) {
    using C = typename ComputeType<T>::Type;
    const T *g = static_cast<const T *>(block.data);
    return double(sumOf<C>(block.count, [=](int64_t i) {
      const C x = g[i];
      return x * x;
    }));
  }

  double *sums_;
  std::vector<Block> blocks_;
  std::vector<size_t> ends_; ///< of each operand's blocks
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
  if (!(c.arity(0, 1 << 20, 1) && c.dtype(b.out[0], DType::F64) && c.dims(b.out[0], {int64_t(b.in.size())}) &&
        c.denseResults() && c.apart()))
    return c.take();
  for (const Array &g : b.in)
    if (!(c.that(g && isFloat(g.dtype), "operands: wanted floats") && c.contiguous(g)))
      return c.take();
  return std::make_unique<SumSquares>(b);
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
