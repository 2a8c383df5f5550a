// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/Grid.cuh"
#include "runtime/cuda/Index.cuh"
#include "runtime/cuda/ScatterLaunch.h"

namespace shardc::cuda {
namespace {

// Integers wrap around, so they compute unsigned.
template <typename C> SHARDC_DEVICE C added(C a, C b) { return a + b; }
SHARDC_DEVICE int added(int a, int b) { return int(unsigned(a) + unsigned(b)); }
SHARDC_DEVICE long long added(long long a, long long b) {
  return (long long)((unsigned long long)a + (unsigned long long)b);
}
template <typename C> SHARDC_DEVICE C multiplied(C a, C b) { return a * b; }
SHARDC_DEVICE int multiplied(int a, int b) { return int(unsigned(a) * unsigned(b)); }
SHARDC_DEVICE long long multiplied(long long a, long long b) {
  return (long long)((unsigned long long)a * (unsigned long long)b);
}

template <typename T> SHARDC_DEVICE T combined(ScatterKind kind, T old, T update) {
  Compute<T> a = widen(old), b = widen(update);
  switch (kind) {
  case ScatterKind::Add:
    return narrow<T>(added(a, b));
  case ScatterKind::Mul:
    return narrow<T>(multiplied(a, b));
  case ScatterKind::Max:
    return narrow<T>(a > b || a != a ? a : b);
  case ScatterKind::Min:
    return narrow<T>(a < b || a != a ? a : b);
  default:
    return update;
  }
}

constexpr int kWarps = 4;

/// The warp's updates, one a lane, in the order of the lanes where they meet in one place.
template <typename T>
SHARDC_DEVICE void updateInOrder(T *y, long long place, T update, bool active, ScatterKind kind, T *staged) {
  const int lane = threadIdx.x;
  staged[lane] = update;
  const unsigned peers = __match_any_sync(0xffffffffu, active ? place : -1ll - lane);
  __syncwarp();
  if (active && __ffs(peers) - 1 == lane) {
    T value = y[place];
    for (unsigned left = peers; left; left &= left - 1)
      value = combined(kind, value, staged[__ffs(left) - 1]);
    y[place] = value;
  }
  __syncwarp(); // the next updates see these
}

// A warp has a line: no other writes there.
template <typename T> __global__ void scatterElements(ScatterElementsArgs a) {
  awaitStream();
  __shared__ T staged[kWarps][32];
  for (long long line = (long long)blockIdx.x * kWarps + threadIdx.y; line < a.lines;
       line += (long long)gridDim.x * kWarps) {
    T *y = static_cast<T *>(a.y) + a.yWalk.offset(line);
    const long long start = a.indexWalk.offset(line);
    for (long long base = 0; base < a.count; base += 32) {
      const long long i = base + threadIdx.x, from = start + i * a.indexStep;
      const bool active = i < a.count;
      const long long index = active ? wrapped(a.indices, from, a.size) : 0;
      const T update = active ? static_cast<const T *>(a.updates)[from] : T();
      updateInOrder(y, index * a.yStep, update, active, a.kind, staged[threadIdx.y]);
    }
  }
}

SHARDC_DEVICE long long sliceOf(const ScatterNdArgs &a, long long tuple) {
  long long slice = 0;
  for (int k = 0; k < a.width; ++k)
    slice = slice * a.dims[k] + wrapped(a.indices, tuple * a.width + k, a.dims[k]);
  return slice;
}

// Long slices: a thread has one place in all of them.
template <typename T> __global__ void scatterSlices(ScatterNdArgs a) {
  awaitStream();
  for (long long i = firstOfGrid(); i < a.line; i += stepOfGrid())
    for (long long t = 0; t < a.tuples; ++t) {
      T *y = static_cast<T *>(a.y) + sliceOf(a, t) * a.line + i;
      *y = combined(a.kind, *y, static_cast<const T *>(a.updates)[t * a.line + i]);
    }
}

// Short ones: one warp has all.
template <typename T> __global__ void scatterPoints(ScatterNdArgs a) {
  awaitStream();
  __shared__ T staged[32];
  const long long total = a.tuples * a.line;
  for (long long base = 0; base < total; base += 32) {
    const long long i = base + threadIdx.x;
    const bool active = i < total;
    const long long place = active ? sliceOf(a, i / a.line) * a.line + i % a.line : 0;
    const T update = active ? static_cast<const T *>(a.updates)[i] : T();
    updateInOrder(static_cast<T *>(a.y), place, update, active, a.kind, staged);
  }
}

constexpr int kPlaces = 1024, kPlaceThreads = 256; ///< that a block has, and its threads

// Short ones, of which the last counts: a block finds the last update of each of its places.
template <typename T> __global__ void __launch_bounds__(kPlaceThreads) assignPoints(ScatterNdArgs a, long long places) {
  awaitStream();
  __shared__ int last[kPlaces];
  for (long long low = (long long)blockIdx.x * kPlaces; low < places; low += (long long)gridDim.x * kPlaces) {
    for (int r = threadIdx.x; r < kPlaces; r += kPlaceThreads)
      last[r] = -1;
    __syncthreads();
    for (int i = threadIdx.x; i < int(a.tuples * a.line); i += kPlaceThreads) {
      const long long r = sliceOf(a, i / a.line) * a.line + i % a.line - low;
      if (r >= 0 && r < kPlaces)
        atomicMax(&last[r], i);
    }
    __syncthreads();
    for (int r = threadIdx.x; r < kPlaces; r += kPlaceThreads)
      if (last[r] >= 0)
        static_cast<T *>(a.y)[low + r] = static_cast<const T *>(a.updates)[last[r]];
    __syncthreads();
  }
}

} // namespace

cudaError_t launchScatterElements(const ScatterElementsArgs &a, cudaStream_t stream) {
  return withStored(a.type, [&](auto *t) {
    return enqueue(scatterElements<Pointee<decltype(t)>>, gridFor(a.lines, kWarps), dim3(32, kWarps), 0,
                   stream, a);
  });
}

cudaError_t launchScatterNd(const ScatterNdArgs &a, cudaStream_t stream) {
  return withStored(a.type, [&](auto *t) {
    using T = Pointee<decltype(t)>;
    long long places = a.line;
    for (int k = 0; k < a.width; ++k)
      places *= a.dims[k];
    if (a.kind == ScatterKind::None && a.line < 32 && a.tuples * a.line < 0x7fffffffll)
      return enqueue(assignPoints<T>, gridFor(places, kPlaces), kPlaceThreads, 0, stream, a, places);
    if (a.line >= 32)
      return enqueue(scatterSlices<T>, gridFor(a.line, 64), 64, 0, stream, a);
    return enqueue(scatterPoints<T>, dim3(1), 32, 0, stream, a);
  });
}

} // namespace shardc::cuda
