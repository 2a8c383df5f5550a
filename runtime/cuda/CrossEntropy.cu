// SPDX-License-Identifier: Apache-2.0
// A block for each row of logits, read once; then one block adds the rows up. The sums of a row and of the rows have
// one order.
#include "runtime/cuda/CrossEntropy.h"
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/Numbers.cuh"

namespace shardc::cuda {
namespace {

constexpr int kThreads = 256;

/// Of a part of a row: the largest element, where it first stands, and the sum of exp(x - top).
template <typename C> struct Part {
  C top, sum;
  long long first;
};

template <typename C> __device__ inline void add(Part<C> &p, C x, long long i) {
  if (x > p.top) {
    p.sum = p.sum * exp(p.top - x) + C(1);
    p.top = x, p.first = i;
  } else if (x == p.top) { // also two infinities, whose difference is none
    p.sum += C(1);
    p.first = i < p.first ? i : p.first;
  } else {
    p.sum += exp(x - p.top); // NaN stays
  }
}

template <typename C> __device__ inline Part<C> join(const Part<C> &a, const Part<C> &b) {
  if (a.top == b.top)
    return {a.top, a.sum + b.sum, a.first < b.first ? a.first : b.first};
  const Part<C> &high = a.top > b.top ? a : b, &low = a.top > b.top ? b : a;
  return {high.top, high.sum + low.sum * exp(low.top - high.top), high.first};
}

/// Of a block of `threads`; the same in all of them.
template <typename C> __device__ Part<C> blockPart(Part<C> p, Part<C> *room, int threads) {
  for (int step = kWarp / 2; step; step /= 2) {
    Part<C> other = {__shfl_xor_sync(0xffffffffu, p.top, step), __shfl_xor_sync(0xffffffffu, p.sum, step),
                     __shfl_xor_sync(0xffffffffu, p.first, step)};
    p = join(p, other);
  }
  if (threadIdx.x % kWarp == 0)
    room[threadIdx.x / kWarp] = p;
  __syncthreads();
  p = room[0];
  for (int w = 1; w < threads / kWarp; ++w)
    p = join(p, room[w]);
  return p;
}

/// What row `row` adds to the sum and to the count of hits. By one thread of the row's block.
template <typename T>
__device__ void finishRow(const CrossEntropyWork &w, long long row, const Part<Compute<T>> &part, double *loss,
                          long long *hit) {
  using C = Compute<T>;
  // A row of nothing but -inf has top = -inf, where log(sum) must not make the answer finite.
  const C lse = part.top + C(log(part.sum));
  store(w.lse, row, lse);
  loss[row] = 0, hit[row] = 0;
  if (w.labels[row] == w.ignore)
    return;
  const long long label = checkedIndex(w.fault, w.site, w.labels[row], w.classes);
  loss[row] = double(lse) - double(widen(static_cast<const T *>(w.logits)[row * w.rowStride + label]));
  hit[row] = part.first == label;
}

/// loss[r] = lse - x[label], hit[r] = 0 or 1; both 0 for rows without a label.
template <typename T>
__global__ void __launch_bounds__(kThreads) rowLosses(CrossEntropyWork w, double *loss, long long *hit) {
  awaitStream();
  using C = Compute<T>;
  __shared__ Part<C> room[kThreads / kWarp];
  const long long row = blockIdx.x;
  const T *x = static_cast<const T *>(w.logits) + row * w.rowStride;
  Part<C> part = {C(-INFINITY), C(0), w.classes};
  constexpr int kWide = 16 / sizeof(T);
  long long done = 0;
  if (w.wide) {
    done = w.classes / kWide * kWide;
    for (long long i = threadIdx.x * kWide; i < done; i += kThreads * kWide) {
      Widest<T> several = *reinterpret_cast<const Widest<T> *>(x + i);
      for (int l = 0; l < kWide; ++l)
        add(part, C(widen(several.at[l])), i + l);
    }
  }
  for (long long i = done + threadIdx.x; i < w.classes; i += kThreads)
    add(part, C(widen(x[i])), i);
  part = blockPart(part, room, kThreads);
  if (threadIdx.x == 0)
    finishRow<T>(w, row, part, loss, hit);
}

/// 2^x, within 2 units of the last place of f32: 16-bit logits need no more.
__device__ inline float power2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

constexpr int kFewThreads = 128; ///< of a row of 16-bit logits: more rows at once

/// The same for 16-bit logits in rows of whole, aligned packs: the top of a pack first, so that each element costs one power.
template <typename T>
__global__ void __launch_bounds__(kFewThreads) rowLosses16(CrossEntropyWork w, double *loss, long long *hit) {
  awaitStream();
  constexpr int kWide = 16 / sizeof(T);
  constexpr float kLog2E = 1.4426950408889634f;
  __shared__ Part<float> room[kFewThreads / kWarp];
  const long long row = blockIdx.x;
  const T *x = static_cast<const T *>(w.logits) + row * w.rowStride;
  float top = -INFINITY, sum = 0;
  long long first = threadIdx.x * kWide < w.classes ? threadIdx.x * kWide : w.classes; // of the pack that the top is in
  for (long long i = threadIdx.x * kWide; i < w.classes; i += kFewThreads * kWide) {
    const uint4 bits = *reinterpret_cast<const uint4 *>(x + i);
    const Widest<T> &several = reinterpret_cast<const Widest<T> &>(bits);
    float value[kWide], most = -INFINITY;
#pragma unroll
    for (int l = 0; l < kWide; ++l) {
      value[l] = widen(several.at[l]);
      most = fmaxf(most, value[l]);
    }
    if (most > top) {
      sum *= power2((top - most) * kLog2E);
      top = most, first = i;
    }
    if (isinf(top)) { // differences of infinities are no numbers
      for (int l = 0; l < kWide; ++l)
        sum += value[l] == top ? 1.f : power2(value[l] - top);
      continue;
    }
#pragma unroll
    for (int l = 0; l < kWide; ++l)
      sum += power2((value[l] - top) * kLog2E);
  }
  if (top > -INFINITY)
    while (widen(x[first]) != top)
      ++first;
  const Part<float> part = blockPart(Part<float>{top, sum, first}, room, kFewThreads);
  if (threadIdx.x == 0)
    finishRow<T>(w, row, part, loss, hit);
}

constexpr int kManyThreads = 1024;

__global__ void __launch_bounds__(kManyThreads) addRows(CrossEntropyWork w, const double *loss, const long long *hit) {
  awaitStream();
  __shared__ double sums[kManyThreads / kWarp];
  __shared__ long long counts[kManyThreads / kWarp], hits[kManyThreads / kWarp];
  double sum = 0;
  long long count = 0, correct = 0;
#pragma unroll 4
  for (long long r = threadIdx.x; r < w.rows; r += kManyThreads) {
    sum += loss[r];
    count += w.labels[r] != w.ignore;
    correct += hit[r];
  }
  sum = blockJoin(sum, sums, Plus());
  count = blockJoin(count, counts, Plus());
  correct = blockJoin(correct, hits, Plus());
  if (threadIdx.x)
    return;
  store(w.sum, 0, sum);
  store(w.count, 0, double(count));
  store(w.correct, 0, double(correct));
}

template <typename T> __global__ void __launch_bounds__(kThreads) rowGradients(CrossEntropyWork w) {
  awaitStream();
  using C = Compute<T>;
  const long long row = blockIdx.x;
  const T *x = static_cast<const T *>(w.logits) + row * w.rowStride;
  T *dx = static_cast<T *>(w.dlogits) + row * w.classes;
  const bool kept = w.labels[row] != w.ignore;
  const C dsum = load<C>(w.dsum, 0), lse = load<C>(w.lse, row);
  long long label = -1;
  if (kept) // one thread reports
    label = threadIdx.x == 0 ? checkedIndex(w.fault, w.site, w.labels[row], w.classes) : w.labels[row];
  auto gradient = [=](T value, long long i) {
    return narrow<T>(kept ? dsum * (C(exp(C(widen(value)) - lse)) - C(i == label)) : C(0));
  };
  constexpr int kWide = 16 / sizeof(T);
  long long done = 0;
  if (w.wide) {
    done = w.classes / kWide * kWide;
    for (long long i = threadIdx.x * kWide; i < done; i += kThreads * kWide) {
      Widest<T> several = *reinterpret_cast<const Widest<T> *>(x + i);
      for (int l = 0; l < kWide; ++l)
        several.at[l] = gradient(several.at[l], i + l);
      *reinterpret_cast<Widest<T> *>(dx + i) = several;
    }
  }
  for (long long i = done + threadIdx.x; i < w.classes; i += kThreads)
    dx[i] = gradient(x[i], i);
}

} // namespace

cudaError_t enqueueCrossEntropy(const CrossEntropyWork &w, void *scratch, cudaStream_t stream) {
  double *loss = static_cast<double *>(scratch);
  long long *hit = reinterpret_cast<long long *>(loss + w.rows);
  cudaError_t code = withFloat(w.type, [&](auto *type) {
    using T = Pointee<decltype(type)>;
    if constexpr (sizeof(T) == 2)
      if (w.wide && w.classes % (16 / sizeof(T)) == 0)
        return enqueue(rowLosses16<T>, dim3(unsigned(w.rows)), kFewThreads, 0, stream, w, loss, hit);
    return enqueue(rowLosses<T>, dim3(unsigned(w.rows)), kThreads, 0, stream, w, loss, hit);
  });
  if (code != cudaSuccess)
    return code;
  return enqueue(addRows, dim3(1), kManyThreads, 0, stream, w, loss, hit);
}

cudaError_t enqueueCrossEntropyGrad(const CrossEntropyWork &w, void *, cudaStream_t stream) {
  return withFloat(w.type, [&](auto *type) {
    using T = Pointee<decltype(type)>;
    return enqueue(rowGradients<T>, dim3(unsigned(w.rows)), kThreads, 0, stream, w);
  });
}

} // namespace shardc::cuda
