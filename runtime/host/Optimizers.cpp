// SPDX-License-Identifier: Apache-2.0
// adamw, adam (param, grad, m, v, grad_scale, scalars){decay_end} and sgd (param, grad, momentum?,
// grad_scale, scalars){decay_end}: torch's formulas over flat arrays, in place, in one pass.
// Elements [0, decay_end) decay, all of them if the scalar kDecayAll says so. With attribute ranks > 1 the arrays are slice
// scalars[kRank] of a bucket in which decay_end counts. With scalars[kSkipUpdate] nothing changes. With attribute rounded the last
// result is a copy of the parameters, also then.
#include "ir/plan/Scalars.h"
#include "runtime/host/Rows.h"
#include "runtime/host/Simd.h"
#include "runtime/host/UpdateShape.h"
#include <cmath>

namespace shardc::host {
namespace {

/// What the optimizers share: operands, and the cut at decay_end.
template <typename T> class Optimizer : public Kernel {
public:
  Optimizer(const Binding &b, unsigned states, const UpdateShape &shape)
      : param_(b.in[0].as<T>()), grad_(b.in[1].as<T>()), gradScale_(b.in[2 + states].as<double>()),
        scalars_(b.in[3 + states].as<double>()), rounded_(shape.rounds ? b.out.back().as<T>() : nullptr),
        count_(b.in[0].numElements()), shape_(shape) {}

protected:
  /// Calls update(begin, end, decay) for pieces with one weight decay.
  template <typename Update> void forPieces(Update update) {
    const bool skip = scalars_[kSkipUpdate] != 0;
    double decay = scalars_[kWeightDecay];
    int64_t first = shape_.sliced ? int64_t(scalars_[kRank]) * count_ : 0; // element of the bucket
    int64_t cut = scalars_[kDecayAll] != 0 ? count_ : shape_.decayEnd - first;
    parallelFor(count_, 1 << 14, [&](int64_t begin, int64_t end, int) {
      int64_t middle = std::min(std::max(begin, cut), end);
      if (begin < middle && !skip)
        update(begin, middle, decay);
      if (middle < end && !skip)
        update(middle, end, 0.0);
      if (rounded_)
        std::copy(param_ + begin, param_ + end, rounded_ + begin);
    });
  }

  T *param_;
  const T *grad_;
  const double *gradScale_, *scalars_;
  T *rounded_; ///< a copy, which is rounded when the kernel has run; or null
  int64_t count_;
  UpdateShape shape_;
};

template <typename T, bool kDecoupled> class Adam final : public Optimizer<T> {
public:
  Adam(const Binding &b, const UpdateShape &shape)
      : Optimizer<T>(b, 2, shape), m_(b.in[2].as<T>()), v_(b.in[3].as<T>()) {}

  void run() override {
    const double *s = this->scalars_;
    const T scale = T(*this->gradScale_), beta2 = T(s[kBeta2]);
    const T rest1 = T(1 - s[kBeta1]), rest2 = T(1 - s[kBeta2]), eps = T(s[kEpsilon]);
    const T rootCorrection = T(std::sqrt(s[kBiasCorrection2]));
    const T step = T(s[kLearningRate] / s[kBiasCorrection1]);
    const double rate = s[kLearningRate];
    this->forPieces([&](int64_t begin, int64_t end, double decay) {
      T *param = this->param_, *m = m_, *v = v_;
      const T *grad = this->grad_;
      // One of the two is neutral.
      const T shrink = kDecoupled ? T(1 - rate * decay) : T(1), l2 = kDecoupled ? T(0) : T(decay);
      SHARDC_INDEPENDENT
      for (int64_t i = begin; i < end; ++i) {
        T p = param[i] * shrink, g = grad[i] * scale;
        if (!kDecoupled)
          g += l2 * p;
        T mi = m[i] + rest1 * (g - m[i]);
        T vi = beta2 * v[i] + rest2 * (g * g);
        m[i] = mi;
        v[i] = vi;
        param[i] = p - step * (mi / (std::sqrt(vi) / rootCorrection + eps));
      }
    });
  }

private:
  T *m_, *v_;
};
template <typename T> using AdamW = Adam<T, true>;
template <typename T> using AdamL2 = Adam<T, false>;

template <typename T> class Sgd final : public Optimizer<T> {
public:
  Sgd(const Binding &b, const UpdateShape &shape)
      : Optimizer<T>(b, 1, shape), momentum_(b.in[2].as<T>()) {}

  void run() override {
    const double *s = this->scalars_;
    const T scale = T(*this->gradScale_), rate = T(s[kLearningRate]), mu = T(s[kMomentum]);
    // buf = keep buf + g; the gradient taken is fromGrad g + fromBuffer buf.
    const bool nesterov = s[kNesterov] != 0;
    const T keep = s[kFirstUpdate] != 0 ? T(0) : mu;
    const T fromGrad = nesterov ? T(1) : T(0), fromBuffer = nesterov ? mu : T(1);
    this->forPieces([&](int64_t begin, int64_t end, double decayed) {
      T *param = this->param_, *buffer = momentum_;
      const T *grad = this->grad_;
      const T decay = T(decayed);
      if (!buffer) {
        SHARDC_INDEPENDENT
        for (int64_t i = begin; i < end; ++i)
          param[i] -= rate * (grad[i] * scale + decay * param[i]);
        return;
      }
      SHARDC_INDEPENDENT
      for (int64_t i = begin; i < end; ++i) {
        T g = grad[i] * scale + decay * param[i];
        T old = keep == T(0) ? T(0) : keep * buffer[i]; // what the buffer held may be anything
        T b = old + g;
        buffer[i] = b;
        param[i] -= rate * (fromGrad * g + fromBuffer * b);
      }
    });
  }

private:
  T *momentum_;
};

/// Types are those of the parameters: what has fewer bits is widened before, and rounded afterwards.
bool checkOptimizer(Checks &c, const Binding &b, unsigned states, bool required, UpdateShape &shape) {
  const DType dtype = b.in.empty() ? DType::F32 : b.in[0].dtype;
  return updateShape(c, b, states, required, shape) && c.dtype(b.in[1], dtype) &&
         (!shape.rounds || c.dtype(b.out.back(), dtype));
}

} // namespace

BoundKernel bindAdamW(const Binding &b) {
  Checks c(b);
  UpdateShape shape;
  if (!checkOptimizer(c, b, 2, /*required=*/true, shape))
    return c.take();
  return makeReal<AdamW>(b.in[0].dtype, b, shape);
}

BoundKernel bindAdam(const Binding &b) {
  Checks c(b);
  UpdateShape shape;
  if (!checkOptimizer(c, b, 2, /*required=*/true, shape))
    return c.take();
  return makeReal<AdamL2>(b.in[0].dtype, b, shape);
}

BoundKernel bindSgd(const Binding &b) {
  Checks c(b);
  UpdateShape shape;
  if (!checkOptimizer(c, b, 1, /*required=*/false, shape))
    return c.take();
  return makeReal<Sgd>(b.in[0].dtype, b, shape);
}

} // namespace shardc::host
