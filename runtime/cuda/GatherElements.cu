// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/GatherLaunch.h"
#include "runtime/cuda/Grid.cuh"
#include "runtime/cuda/Index.cuh"
#include "runtime/cuda/Rows.cuh"

namespace shardc::cuda {
namespace {

template <typename T> __global__ void gatherElements(GatherElementsArgs a) {
  awaitStream();
  const T *data = static_cast<const T *>(a.data);
  for (long long i = firstOfGrid(); i < a.count; i += stepOfGrid()) {
    const long long index = wrapped(a.indices, a.indexWalk.offset(i), a.size);
    static_cast<T *>(a.y)[i] = data[a.dataWalk.offset(i) + index * a.along];
  }
}

constexpr int kMaxWarps = 8;
constexpr long long kSharedBytes = 40 << 10;

// A warp has a line, with its sums in shared memory where they fit. Lanes that meet in one place are added by
// the lowest of them, so every sum is in the order of the indices.
template <typename T, bool kShared> __global__ void gatherElementsGrad(GatherElementsGradArgs a) {
  awaitStream();
  using C = Compute<T>;
  extern __shared__ double memory[];
  __shared__ C staged[kMaxWarps][32];
  const int lane = threadIdx.x, warp = threadIdx.y;
  C *held = reinterpret_cast<C *>(memory) + warp * a.size;
  for (long long line = (long long)blockIdx.x * blockDim.y + warp; line < a.lines;
       line += (long long)gridDim.x * blockDim.y) {
    const T *dy = static_cast<const T *>(a.dy) + a.dyWalk.offset(line);
    T *dx = static_cast<T *>(a.dx) + a.dxWalk.offset(line);
    const long long indices = a.indexWalk.offset(line);
    for (long long j = lane; j < a.size; j += 32)
      if (kShared)
        held[j] = C(0);
      else
        dx[j * a.dxStep] = narrow<T>(C(0));
    for (long long base = 0; base < a.count; base += 32) {
      const long long i = base + lane;
      const bool active = i < a.count;
      long long index = active ? wrapped(a.indices, indices + i * a.indexStep, a.size) : -1 - lane;
      staged[warp][lane] = active ? C(widen(dy[i * a.dyStep])) : C(0);
      const unsigned peers = __match_any_sync(0xffffffffu, index);
      __syncwarp();
      if (active && __ffs(peers) - 1 == lane) {
        C sum = kShared ? held[index] : C(widen(dx[index * a.dxStep]));
        for (unsigned left = peers; left; left &= left - 1)
          sum += staged[warp][__ffs(left) - 1];
        if (kShared)
          held[index] = sum;
        else
          dx[index * a.dxStep] = narrow<T>(sum);
      }
      __syncwarp();
    }
    if (kShared)
      for (long long j = lane; j < a.size; j += 32)
        dx[j * a.dxStep] = narrow<T>(held[j]);
    __syncwarp();
  }
}

template <typename T> cudaError_t grad(const GatherElementsGradArgs &a, cudaStream_t stream) {
  const long long line = a.size * (long long)sizeof(Compute<T>);
  const bool shared = line <= kSharedBytes;
  const long long fit = shared && line > 0 ? kSharedBytes / line : kMaxWarps;
  const int warps = int(fit < kMaxWarps ? fit : kMaxWarps);
  const unsigned grid = gridFor(a.lines, warps);
  return shared ? enqueue(gatherElementsGrad<T, true>, grid, dim3(32, warps), size_t(warps * line), stream, a)
                : enqueue(gatherElementsGrad<T, false>, grid, dim3(32, warps), 0, stream, a);
}

} // namespace

cudaError_t launchGatherElements(const GatherElementsArgs &a, cudaStream_t stream) {
  return withBytes<8>(a.bytes, [&](auto *t) {
    return enqueue(gatherElements<Pointee<decltype(t)>>, gridFor(a.count), kGridThreads, 0, stream, a);
  });
}

cudaError_t launchGatherElementsGrad(const GatherElementsGradArgs &a, cudaStream_t stream) {
  return withFloat(a.type, [&](auto *t) { return grad<Pointee<decltype(t)>>(a, stream); });
}

} // namespace shardc::cuda
