// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/CopyLaunch.h"
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/Grid.cuh"
#include "runtime/cuda/Numbers.cuh"

namespace shardc::cuda {
namespace {

template <typename T> __global__ void stridedCopy(const T *x, T *y, long long count, Walk from, Walk to) {
  awaitStream();
  for (long long i = firstOfGrid(); i < count; i += stepOfGrid())
    y[to.offset(i)] = x[from.offset(i)];
}

// Through a square tile, so that both sides see neighbours.
template <typename T, int kTile>
__global__ void tiledCopy(TiledCopy a, long long rowTiles, long long columnTiles) {
  awaitStream();
  __shared__ T tile[kTile][kTile + 4 / sizeof(T) + (sizeof(T) > 4)];
  long long unit = blockIdx.x;
  const long long c0 = unit % columnTiles * kTile;
  unit /= columnTiles;
  const long long r0 = unit % rowTiles * kTile;
  unit /= rowTiles;
  const T *x = static_cast<const T *>(a.x) + a.from.offset(unit);
  T *y = static_cast<T *>(a.y) + a.to.offset(unit);
  for (int c = threadIdx.y; c < kTile; c += blockDim.y)
    for (int r = threadIdx.x; r < kTile; r += blockDim.x)
      if (c0 + c < a.columns && r0 + r < a.rows)
        tile[c][r] = x[(c0 + c) * a.xColumn + r0 + r];
  __syncthreads();
  for (int r = threadIdx.y; r < kTile; r += blockDim.y)
    for (int c = threadIdx.x; c < kTile; c += blockDim.x)
      if (c0 + c < a.columns && r0 + r < a.rows)
        y[(r0 + r) * a.yRow + c0 + c] = tile[c][r];
}

template <typename T, int kSources> __global__ void interleave(const __grid_constant__ Interleaving a) {
  awaitStream();
  constexpr int kWide = kVector<T>;
  for (long long i = firstOfGrid(); i < a.count / kWide; i += stepOfGrid()) {
    const long long at = a.from.offset(i);
    Widest<T> x[kSources], y[kSources];
#pragma unroll
    for (int k = 0; k < kSources; ++k)
      x[k] = static_cast<const Widest<T> *>(a.x[k])[at];
#pragma unroll
    for (int e = 0; e < kWide * kSources; ++e)
      y[e / kWide].at[e % kWide] = x[e % kSources].at[e / kSources];
#pragma unroll
    for (int k = 0; k < kSources; ++k)
      static_cast<Widest<T> *>(a.y)[i * kSources + k] = y[k];
  }
}

template <typename T> __global__ void fill(T *y, T value, long long count) {
  awaitStream();
  for (long long i = firstOfGrid(); i < count; i += stepOfGrid())
    y[i] = value;
}

template <typename T> cudaError_t tiled(const TiledCopy &a, cudaStream_t stream) {
  constexpr int kTile = sizeof(T) <= 2 ? 64 : 32;
  const long long rowTiles = (a.rows + kTile - 1) / kTile, columnTiles = (a.columns + kTile - 1) / kTile;
  return enqueue(tiledCopy<T, kTile>, dim3(unsigned(a.outer * rowTiles * columnTiles)), dim3(32, 8), 0,
                 stream, a, rowTiles, columnTiles);
}

} // namespace

cudaError_t launchStridedCopy(const StridedCopy &a, cudaStream_t stream) {
  return withBytes(a.bytes, [&](auto *t) {
    using T = Pointee<decltype(t)>;
    return enqueue(stridedCopy<T>, gridFor(a.count), kGridThreads, 0, stream, static_cast<const T *>(a.x),
                   static_cast<T *>(a.y), a.count, a.from, a.to);
  });
}

cudaError_t launchTiledCopy(const TiledCopy &a, cudaStream_t stream) {
  return withBytes<8>(a.bytes, [&](auto *t) { return tiled<Pointee<decltype(t)>>(a, stream); });
}

template <int kSources = Interleaving::kMost>
static cudaError_t interleaved(const Interleaving &a, cudaStream_t stream) {
  if constexpr (kSources > 2)
    if (a.sources < kSources)
      return interleaved<kSources - 1>(a, stream);
  return withBytes<8>(a.bytes, [&](auto *t) {
    using T = Pointee<decltype(t)>;
    return enqueue(interleave<T, kSources>, gridFor(a.count / kVector<T>), kGridThreads, 0, stream, a);
  });
}

cudaError_t launchInterleaving(const Interleaving &a, cudaStream_t stream) { return interleaved(a, stream); }

cudaError_t launchFill(const Fill &a, cudaStream_t stream) {
  return withBytes<8>(a.bytes, [&](auto *t) {
    using T = Pointee<decltype(t)>;
    return enqueue(fill<T>, gridFor(a.count), kGridThreads, 0, stream, static_cast<T *>(a.y), T(a.value),
                   a.count);
  });
}

} // namespace shardc::cuda
