// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Scalars.h"
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/GradNorm.h"
#include "runtime/cuda/Numbers.cuh"
#include "runtime/LossScale.h"

namespace shardc::cuda {
namespace {

constexpr int kThreads = 256;

/// Of kSquaresPerBlock elements from `begin` on; each thread has its share of the sum. `kWhole`: all of them
/// are there, aligned to 16 bytes: only loads that nothing has to decide about are in flight together.
template <bool kWhole, typename T> __device__ double squaresOf(const T *x, long long begin, long long count) {
  using C = Compute<T>;
  constexpr int kWide = kVector<T>;
  // Lane l of each 16 bytes sums apart, whether they are loaded at once or not: alignment changes no bit.
  C sums[kWide] = {};
  constexpr int kRounds = int(kSquaresPerBlock / (kThreads * kWide)), kAhead = kRounds < 8 ? kRounds : 8; // loads in flight
  for (int round = 0; round < kRounds; round += kAhead) {
    Widest<T> several[kAhead];
#pragma unroll
    for (int r = 0; r < kAhead; ++r) {
      const long long i = begin + ((round + r) * kThreads + threadIdx.x) * kWide;
      if constexpr (kWhole) {
        const uint4 bits = __ldcs(reinterpret_cast<const uint4 *>(x + i));
        several[r] = reinterpret_cast<const Widest<T> &>(bits);
      } else {
        for (int l = 0; l < kWide; ++l)
          several[r].at[l] = i + l < count ? x[i + l] : narrow<T>(C(0));
      }
    }
#pragma unroll
    for (int r = 0; r < kAhead; ++r)
      for (int l = 0; l < kWide; ++l) {
        const C value = widen(several[r].at[l]);
        sums[l] += value * value;
      }
  }
  double sum = 0;
  for (int l = 0; l < kWide; ++l)
    sum += double(sums[l]);
  return sum;
}
template <typename T> __device__ double squaresOf(const void *data, long long begin, long long count) {
  const T *x = static_cast<const T *>(data);
  const bool whole = begin + kSquaresPerBlock <= count && reinterpret_cast<uintptr_t>(x) % 16 == 0;
  return whole ? squaresOf<true>(x, begin, count) : squaresOf<false>(x, begin, count);
}

/// Parts of kSquaresPerBlock elements that a block takes, one after the other.
constexpr int kRun = 8;

__global__ void __launch_bounds__(kThreads) squareBlocks(SumSquaresWork w, double *partial) {
  awaitStream();
  __shared__ double room[2][kThreads / kWarp];
  const long long first = (long long)blockIdx.x * kRun, end = first + kRun < w.blocks ? first + kRun : w.blocks;
  int array = -1; // the last whose first part is not behind this one
  for (int i = 0; i < w.count; i += kThreads)
    array += __syncthreads_count(i + threadIdx.x < w.count && w.arrays[i + threadIdx.x].firstBlock <= first);
  for (long long part = first; part < end; ++part) {
    while (array + 1 < w.count && w.arrays[array + 1].firstBlock <= part)
      ++array;
    const SquaresOf &a = w.arrays[array];
    const long long begin = (part - a.firstBlock) * kSquaresPerBlock;
    double sum;
    switch (a.values.type) {
    case ElementType::F64:
      sum = squaresOf<double>(a.values.data, begin, a.count);
      break;
    case ElementType::F16:
      sum = squaresOf<__half>(a.values.data, begin, a.count);
      break;
    case ElementType::BF16:
      sum = squaresOf<__nv_bfloat16>(a.values.data, begin, a.count);
      break;
    default:
      sum = squaresOf<float>(a.values.data, begin, a.count);
    }
    sum = blockJoin(sum, room[part % 2], Plus());
    if (threadIdx.x == 0)
      partial[part] = sum;
  }
}

constexpr int kManyThreads = 1024;

/// A block for each array.
__global__ void __launch_bounds__(kManyThreads) addPartials(SumSquaresWork w, const double *partial) {
  awaitStream();
  __shared__ double room[kManyThreads / kWarp];
  const long long begin = w.arrays[blockIdx.x].firstBlock;
  const long long count = (blockIdx.x + 1 < w.count ? w.arrays[blockIdx.x + 1].firstBlock : w.blocks) - begin;
  double sum = 0;
#pragma unroll 4
  for (long long i = threadIdx.x; i < count; i += kManyThreads)
    sum += partial[begin + i];
  sum = blockJoin(sum, room, Plus());
  if (threadIdx.x == 0)
    w.sums[blockIdx.x] = sum;
}

/// By one block; all of its threads get it.
__device__ double sumOfSquares(const GradScaleWork &w) {
  __shared__ double room[kThreads / kWarp];
  double sum = 0;
  for (int a = 0; a < w.arrays; ++a)
    for (long long i = threadIdx.x; i < w.squares[a].count; i += kThreads)
      sum += w.squares[a].data[i];
  return blockJoin(sum, room, Plus());
}

__global__ void __launch_bounds__(kThreads) scaleOf(GradScaleWork w) {
  awaitStream();
  const double sum = sumOfSquares(w);
  if (threadIdx.x)
    return;
  const double count = load<double>(w.counter, 0), maxNorm = w.scalars[kMaxGradNorm];
  if (count == 0) {
    *w.norm = *w.scale = 0;
    return;
  }
  const double norm = sqrt(sum) / count;
  double scale = 1 / count;
  if (maxNorm > 0)
    scale *= fmin(1.0, maxNorm / (norm + 1e-6));
  *w.norm = norm;
  *w.scale = scale;
}

__global__ void __launch_bounds__(kThreads) scaleOfLoss(LossScaleWork w) {
  awaitStream();
  const double sum = sumOfSquares(w.sum);
  if (threadIdx.x < kNumScalars)
    w.scalars[threadIdx.x] = w.sum.scalars[threadIdx.x];
  __syncthreads();
  if (threadIdx.x)
    return;
  const LossScaleNumbers n = stepLossScale(load<double>(w.sum.counter, 0), sum, w.initial, w.unit, w.scalars, w.state);
  *w.sum.norm = n.norm, *w.sum.scale = n.gradScale, *w.lossScale = n.lossScale, *w.skipped = n.skipped;
}

} // namespace

cudaError_t enqueueSumSquares(const SumSquaresWork &w, void *scratch, cudaStream_t stream) {
  double *partial = static_cast<double *>(scratch);
  const cudaError_t code =
      enqueue(squareBlocks, dim3(blocksFor(w.blocks, kRun)), kThreads, 0, stream, w, partial);
  return code == cudaSuccess ? enqueue(addPartials, dim3(w.count), kManyThreads, 0, stream, w, partial)
                             : code;
}

cudaError_t enqueueGradScale(const GradScaleWork &w, cudaStream_t stream) {
  return enqueue(scaleOf, dim3(1), kThreads, 0, stream, w);
}

cudaError_t enqueueLossScale(const LossScaleWork &w, cudaStream_t stream) {
  return enqueue(scaleOfLoss, dim3(1), kThreads, 0, stream, w);
}

} // namespace shardc::cuda
