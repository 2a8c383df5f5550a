// SPDX-License-Identifier: Apache-2.0
// What the attention kernels by warpgroups share, for heads of 64 elements. A block stays with one head and one tile of
// 128 queries (or keys); it goes through some batches, and tiles of 128 keys (or queries), and loads the operands of
// the next while it computes.
#pragma once

#include "ir/base/Workspace.h"
#include "runtime/cuda/AttentionMma.cuh"
#include "runtime/cuda/AttentionWgmmaMask.cuh"
#include "runtime/cuda/Tma.cuh"
#include "runtime/cuda/Wgmma.cuh"

namespace shardc::cuda {

/// Of forward.
constexpr int kWgThreads = 2 * kWarpgroup, kWgRows = int(kAttentionRows), kWgBlocks = kWgRows / 8;
/// Of a tile of 128 rows of 64.
constexpr int kWgTile = kWgRows * 64 * 2;

/// Which warpgroup of the block, the same for all that see it.
__device__ inline int warpgroup() { return __shfl_sync(0xffffffffu, int(threadIdx.x) / kWarpgroup, 0); }

/// Until `threads` threads have come to barrier `number` (1 ..).
__device__ inline void meet(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
/// Comes to it, and goes on.
__device__ inline void pass(int number, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

/// What a block works at: batches [begin, end) of a head.
struct WgWork {
  int head, chunk, begin, end;
  __device__ WgWork(const AttentionWork &w, int chunks) : head(blockIdx.x % w.heads), chunk(blockIdx.x / w.heads) {
    const int each = (w.batch + chunks - 1) / chunks;
    begin = min(chunk * each, w.batch), end = min(begin + each, w.batch);
  }
};

__device__ inline char *alignedShared() {
  extern __shared__ __align__(1024) char shardcWgShared[];
  return shardcWgShared;
}

/// Where 16 bytes `chunk` of row r lie in a tile.
__device__ inline int tileAt(int r, int chunk) { return r * 128 + (chunk ^ r % 8) * 16; }

/// The bias of 64 queries from `first` on and 64 keys, for which a warpgroup calls: begun, or done.
template <typename T>
__device__ inline void copyBias(char *to, const AttentionWork &w, int b, int h, int first, int firstKey) {
  const long long *s = w.bias.strides;
  const int thread = threadIdx.x % kWarpgroup;
  const T *base = static_cast<const T *>(w.bias.array.data) + b * s[0] + h * s[1];
  if (w.biasWide) {
    const int r = thread / 8, c = thread % 8, key = firstKey + c * 8;
    char *at = to + tileAt(r, c);
#pragma unroll
    for (int i = 0; i < 64; i += 16) {
      const bool real = first + r + i < w.queries && key < w.keys;
      copyAsync(at + i * 128, base + (real ? (first + r + i) * s[2] + key : 0), real);
    }
    return;
  }
  for (int e = thread; e < 64 * 64; e += kWarpgroup) {
    const int r = e / 64, c = e % 64;
    const bool real = first + r < w.queries && firstKey + c < w.keys;
    *reinterpret_cast<T *>(to + tileAt(r, c / 8) + c % 8 * 2) =
        real ? base[(first + r) * s[2] + (firstKey + c) * s[3]] : T(0.0f);
  }
}

/// One number to shared memory: begun, or done.
__device__ inline void copyFloat(float *to, const AnyFloats &from, long long i) {
  if (from.type != ElementType::F32) {
    *to = load<float>(from, i);
    return;
  }
  const uint32_t address = uint32_t(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(static_cast<const float *>(from.data) + i)
               : "memory");
}

/// x = scale x + bias, fill where the mask hides, -inf from key `keys` on. `bias`: the tile of the thread's first key,
/// from the warpgroup's first row on.
template <typename T>
__device__ inline void makeScores(float (&x)[kWgBlocks][4], const AttentionWork &w, const char *bias,
                                  const WgMask<4> &mask, int keys) {
  constexpr int N = kWgBlocks;
  const int lane = threadIdx.x % kWarp, row = threadIdx.x / kWarp % 4 * 16 + lane / 4;
  const float scale = float(w.scale);
  if (w.bias.array.data) {
    const char *at = bias + row * 128 + lane % 4 * 4;
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const Pack<T, 2> pair =
            *reinterpret_cast<const Pack<T, 2> *>(at + n / 8 * kWgTile + half * 1024 + (n % 8 ^ lane / 4) * 16);
        x[n][2 * half] = fmaf(x[n][2 * half], scale, widen(pair.at[0]));
        x[n][2 * half + 1] = fmaf(x[n][2 * half + 1], scale, widen(pair.at[1]));
      }
  } else if (scale != 1) {
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        x[n][e] *= scale;
  }
  if (mask.hidesAny()) {
    const float fill = float(w.fill);
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        x[n][e] = mask.hides(n, e) ? fill : x[n][e];
  }
  if (keys < 8 * N) {
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (n * 8 + lane % 4 * 2 + e % 2 >= keys)
          x[n][e] = -INFINITY;
  }
}

/// The warpgroup's 64 rows of 16 N columns, as the left side of products (packRows), to the rows at `to` of tiles.
template <int N> __device__ inline void keepPacked(char *to, const uint32_t (&x)[N][4]) {
  const int lane = threadIdx.x % kWarp;
  char *at = to + (threadIdx.x / kWarp % 4 * 16 + lane % 16) * 128;
#pragma unroll
  for (int n = 0; n < N; ++n)
    storeMatrices(at + n / 4 * kWgTile + ((n % 4 * 2 + lane / 16) ^ lane % 8) * 16, x[n][0], x[n][1], x[n][2], x[n][3]);
}
/// 16 N columns, rows l / 4 + 8 half times factor[half], rounded, as the left side of products.
template <typename T, int N>
__device__ inline void packRows(uint32_t (&to)[N][4], const float (&x)[2 * N][4], const float (&factor)[2]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int m = 0; m < 4; ++m)
      to[n][m] = packPair(x[2 * n + m / 2][m % 2 * 2] * factor[m % 2],
                          x[2 * n + m / 2][m % 2 * 2 + 1] * factor[m % 2], T());
}

/// 64 rows of a warpgroup, 8 N columns, rounded, to the rows at `to` of tiles.
template <typename T, int N> __device__ inline void keepTile(char *to, const float (&x)[N][4]) {
  const float one[2] = {1, 1};
  uint32_t packed[N / 2][4];
  packRows<T>(packed, x, one);
  keepPacked(to, packed);
}

/// Over the four lanes that share a row.
template <typename Join> __device__ inline float quadJoin(float x, Join join) {
  x = join(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return join(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

/// In: lane p of four has 4 bytes p of 16 bytes n in u[n]. Out: lane p has 16 bytes p.
__device__ inline void transposeQuad(uint32_t (&u)[4]) {
  const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
#pragma unroll
  for (int n = 0; n < 4; n += 2) {
    const uint32_t got = __shfl_xor_sync(0xffffffffu, odd ? u[n] : u[n + 1], 1);
    if (odd)
      u[n] = got;
    else
      u[n + 1] = got;
  }
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    const uint32_t got = __shfl_xor_sync(0xffffffffu, high ? u[n] : u[n + 2], 2);
    if (high)
      u[n] = got;
    else
      u[n + 2] = got;
  }
}

/// 16 rows of a warp, 8 N wide, rounded, to rows from `to` on, of which [0, end) are real, and of these `columns`.
/// Requires: aligned to 16 bytes.
template <typename T, int N>
__device__ inline void storeWide(T *to, long long pitch, int end, const float (&x)[N][4], const float (&factor)[2],
                                 int columns = 8 * N) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = lane / 4 + 8 * half;
    T *at = to + row * pitch + lane % 4 * 8;
#pragma unroll
    for (int n = 0; n < N; n += 4) {
      uint32_t u[4];
#pragma unroll
      for (int m = 0; m < 4; ++m)
        u[m] = packPair(x[n + m][2 * half] * factor[half], x[n + m][2 * half + 1] * factor[half], T());
      transposeQuad(u);
      if (row < end && (n + lane % 4) * 8 < columns)
        *reinterpret_cast<uint4 *>(at + n * 8) = make_uint4(u[0], u[1], u[2], u[3]);
    }
  }
}

/// Into how many chunks the batches are cut for tiles of `rows` rows of each head, `resident` blocks a multiprocessor.
inline int chunksFor(const AttentionWork &w, int rows, int resident = 1) {
  return int(attentionChunks(w.batch, w.heads, rows, resident * kAttentionBlocks));
}

template <typename T> __device__ inline T *headRow(const HeadsView &view, int b, int h, int row) {
  return static_cast<T *>(view.data) + b * view.batch + h * view.head + row * view.row;
}

/// Operands and result of forward.
struct AttendMaps {
  CUtensorMap q, k, v, out;
};
inline cudaError_t describe(AttendMaps &maps, const AttentionWork &w) {
  return describeRows(w, {{maps.q, w.q, w.queries, kWgRows},
                          {maps.k, w.k, w.keys, kWgRows},
                          {maps.v, w.v, w.keys, kWgRows},
                          {maps.out, w.out, w.queries, kWgRows}});
}
/// f(an element, are probabilities dropped?)
template <typename F> cudaError_t withDrops(const AttentionWork &w, F f) {
  auto withType = [&](auto drops) { return w.type == ElementType::BF16 ? f(__nv_bfloat16(), drops) : f(__half(), drops); };
  return w.dropout > 0 ? withType(std::true_type()) : withType(std::false_type());
}

/// More than 128 keys (AttentionWgmmaForwardMany.cu).
cudaError_t prepareAttentionWgMany(const AttentionWork &);
cudaError_t enqueueAttentionWgMany(const AttentionWork &, cudaStream_t);

} // namespace shardc::cuda
