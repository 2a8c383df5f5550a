// SPDX-License-Identifier: Apache-2.0
// torch's formulas, in one pass, four elements a thread; what changes between steps is read from the scalars.
#include "ir/plan/Scalars.h"
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/Numbers.cuh"
#include "runtime/cuda/Optimizers.h"

namespace shardc::cuda {
namespace {

constexpr int kThreads = 256, kEach = 4;

/// Numbers of this step; P is the type of parameters and states.
template <typename P> struct Adam {
  P scale, beta2, rest1, rest2, eps, rootCorrection, step;
  P shrink, l2; ///< of elements that decay: the one or the other is neutral

  __device__ Adam(const OptimizerWork &w) {
    const double *s = w.scalars, rate = s[kLearningRate], decay = s[kWeightDecay];
    const bool decoupled = w.kind == Optimizer::AdamW;
    scale = P(*w.gradScale), beta2 = P(s[kBeta2]), rest1 = P(1 - s[kBeta1]), rest2 = P(1 - s[kBeta2]),
    eps = P(s[kEpsilon]);
    rootCorrection = P(sqrt(s[kBiasCorrection2])), step = P(rate / s[kBiasCorrection1]);
    shrink = decoupled ? P(1 - rate * decay) : P(1), l2 = decoupled ? P(0) : P(decay);
  }
  __device__ void update(P &param, P grad, P &m, P &v, bool decays) const {
    P p = decays ? param * shrink : param, g = grad * scale;
    if (decays)
      g += l2 * p;
    m += rest1 * (g - m);
    v = beta2 * v + rest2 * (g * g);
    param = p - step * (m / (sqrt(v) / rootCorrection + eps));
  }
};

template <typename P> struct Sgd {
  P scale, rate, keep, fromGrad, fromBuffer, decay;
  bool momentum;

  __device__ Sgd(const OptimizerWork &w) {
    const double *s = w.scalars;
    const bool nesterov = s[kNesterov] != 0;
    momentum = w.first;
    const P mu = P(s[kMomentum]);
    scale = P(*w.gradScale), rate = P(s[kLearningRate]), decay = P(s[kWeightDecay]);
    keep = s[kFirstUpdate] != 0 ? P(0) : mu;
    fromGrad = nesterov ? P(1) : P(0), fromBuffer = nesterov ? mu : P(1);
  }
  __device__ void update(P &param, P grad, P &buffer, P &, bool decays) const {
    const P g = grad * scale + (decays ? decay * param : P(0));
    if (!momentum) {
      param -= rate * g;
      return;
    }
    const P old = keep == P(0) ? P(0) : keep * buffer; // what the buffer held may be anything
    buffer = old + g;
    param -= rate * (fromGrad * g + fromBuffer * buffer);
  }
};

template <typename T> __device__ inline void loadFew(Pack<T, kEach> &to, const T *from, int n) {
  if (n == kEach)
    to = *reinterpret_cast<const Pack<T, kEach> *>(from);
  else
    for (int l = 0; l < n; ++l)
      to.at[l] = from[l];
}
template <typename T> __device__ inline void storeFew(T *to, const Pack<T, kEach> &from, int n) {
  if (n == kEach)
    *reinterpret_cast<Pack<T, kEach> *>(to) = from;
  else
    for (int l = 0; l < n; ++l)
      to[l] = from.at[l];
}

template <template <typename> class Formula, typename P, typename G>
__global__ void __launch_bounds__(kThreads) updateAll(OptimizerWork w) {
  const Formula<P> formula(w);
  const long long first = w.sliced ? (long long)(w.scalars[kRank]) * w.count : 0; // element of the bucket
  const long long cut = w.scalars[kDecayAll] != 0 ? w.count : w.decayEnd - first;
  const int step = w.wide ? kEach : 1; // elements at a time
  P *param = static_cast<P *>(w.param), *a = static_cast<P *>(w.first), *b = static_cast<P *>(w.second);
  const G *grad = static_cast<const G *>(w.grad);
  const long long threads = (long long)(gridDim.x) * kThreads;
  for (long long i = (blockIdx.x * (long long)(kThreads) + threadIdx.x) * step; i < w.count; i += threads * step) {
    const int n = w.count - i < step ? int(w.count - i) : step;
    Pack<P, kEach> p, x, y;
    Pack<G, kEach> g;
    loadFew(p, param + i, n);
    loadFew(g, grad + i, n);
    if (a)
      loadFew(x, a + i, n);
    if (b)
      loadFew(y, b + i, n);
    for (int l = 0; l < kEach; ++l)
      if (l < n)
        formula.update(p.at[l], P(widen(g.at[l])), x.at[l], y.at[l], i + l < cut);
    storeFew(param + i, p, n);
    if (a)
      storeFew(a + i, x, n);
    if (b)
      storeFew(b + i, y, n);
  }
}

template <typename P, typename G> cudaError_t enqueueTyped(const OptimizerWork &w, cudaStream_t stream) {
  const long long perBlock = kThreads * (w.wide ? kEach : 1);
  const long long blocks = (w.count + perBlock - 1) / perBlock;
  const dim3 grid(unsigned(blocks < 1 << 20 ? blocks : 1 << 20));
  if (w.kind == Optimizer::Sgd)
    return enqueue(updateAll<Sgd, P, G>, grid, kThreads, 0, stream, w);
  return enqueue(updateAll<Adam, P, G>, grid, kThreads, 0, stream, w);
}

} // namespace

cudaError_t enqueueOptimizer(const OptimizerWork &w, void *, cudaStream_t stream) {
  return withFloat(w.gradType, [&](auto *grad) {
    using G = std::remove_pointer_t<decltype(grad)>;
    if (w.type == kF64)
      return enqueueTyped<double, G>(w, stream);
    return enqueueTyped<float, G>(w, stream);
  });
}

} // namespace shardc::cuda
