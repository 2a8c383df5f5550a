// SPDX-License-Identifier: Apache-2.0
// Sums over rows: a block has some neighbouring columns, its threads are spread over rows, and the blocks of
// a cluster have a part of the rows each.
#include "runtime/cuda/Cluster.cuh"
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/NormTypes.cuh"

namespace shardc::cuda {
namespace {

constexpr int kThreads = 256, kAcross = 8, kDown = kThreads / kAcross;

template <typename DY, typename X, int kWidth>
__global__ void __launch_bounds__(kThreads) columns(NormGradArgs a) {
  awaitStream();
  using C = Compute<X>;
  constexpr int kTile = kWidth * kAcross;
  __shared__ C room[2][kDown][kTile];
  const long long first = blockIdx.x / a.parts * kTile, column = first + threadIdx.x * kWidth;
  C scales[kWidth] = {}, biases[kWidth] = {};
  if (column < a.length) {
    const DY *dy = static_cast<const DY *>(a.dy) + column;
    const X *x = static_cast<const X *>(a.x) + column;
#pragma unroll 4
    for (long long r = (long long)(a.parts > 1 ? clusterRank() : 0) * kDown + threadIdx.y; r < a.rows;
         r += (long long)kDown * a.parts) {
      C dys[kWidth], xs[kWidth];
      loadPack<kWidth>(dy + r * a.length, dys);
      loadPack<kWidth>(x + r * a.length, xs);
      const C mean = a.mean.data ? load<C>(a.mean, r) : C(0),
              rstd = load<C>(a.rstd, r);
#pragma unroll
      for (int l = 0; l < kWidth; ++l) {
        scales[l] += dys[l] * ((xs[l] - mean) * rstd);
        biases[l] += dys[l];
      }
    }
  }
#pragma unroll
  for (int l = 0; l < kWidth; ++l) {
    room[0][threadIdx.y][threadIdx.x * kWidth + l] = scales[l];
    room[1][threadIdx.y][threadIdx.x * kWidth + l] = biases[l];
  }
  __syncthreads();
  // A thread has a column of dscale or of dbias.
  const int thread = threadIdx.y * kAcross + threadIdx.x, which = thread / kTile, at = thread % kTile;
  const bool mine = which < 2;
  C sum = 0;
  if (mine) {
    for (int d = 0; d < kDown; ++d)
      sum += room[which][d][at];
    room[which][0][at] = sum;
  }
  if (a.parts > 1) {
    clusterBarrier();
    if (clusterRank() == 0 && mine)
      for (unsigned rank = 1; rank < clusterSize(); ++rank)
        sum += sharedOf(&room[which][0][at], rank)[0];
    clusterBarrier();
    if (clusterRank() != 0)
      return;
  }
  const AnyFloats &to = which == 0 ? a.dscale : a.dbias;
  if (mine && to.data && first + at < a.length)
    store(to, first + at, sum);
}

template <typename DY, typename X, int kWidth>
cudaError_t launch(const NormGradArgs &a, cudaStream_t stream) {
  constexpr int kTile = kWidth * kAcross;
  static_assert(2 * kTile <= kThreads);
  const unsigned tiles = unsigned((a.length + kTile - 1) / kTile);
  return enqueueClusters(columns<DY, X, kWidth>, a.parts, tiles * a.parts, dim3(kAcross, kDown), 0, stream,
                         a);
}

} // namespace

cudaError_t launchNormColumns(const NormGradArgs &a, cudaStream_t stream) {
  return withNormTypes(a, [&](auto *dy, auto *x) {
    using DY = Pointee<decltype(dy)>;
    using X = Pointee<decltype(x)>;
    constexpr int kWidth = kVector < DY >> kVector<X> ? kVector<DY> : kVector<X>;
    return a.vectors ? launch<DY, X, kWidth>(a, stream) : launch<DY, X, 1>(a, stream);
  });
}

} // namespace shardc::cuda
