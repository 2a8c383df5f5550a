// SPDX-License-Identifier: Apache-2.0
// What the attention kernels by warpgroups share, for heads of 64 elements. A block has two warpgroups and stays with
// one head and 128 of its queries, of which each warpgroup owns 64; it goes through some batches (and tiles of 128
// keys), and loads the operands of the next while it computes.
#pragma once

#include "runtime/cuda/AttentionMma.cuh"
#include "runtime/cuda/Wgmma.cuh"

namespace shardc::cuda {

constexpr int kWgThreads = 2 * kWarpgroup, kWgRows = 128, kWgDepth = 64, kWgBlocks = kWgRows / 8;
/// Multiprocessors of an H200; more or fewer are served as well.
constexpr int kWgProcessors = 132;
/// Of a tile of 128 rows of 64.
constexpr int kWgTile = kWgRows * kWgDepth * 2;

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

/// A tile of rows [first, first + 128) of a head, zeros from row `end` on: begun.
template <typename T>
__device__ inline void copyTile(char *to, const HeadsView &from, int b, int h, int first, int end) {
  constexpr int kStep = kWgThreads / 8;
  const int r = threadIdx.x / 8, c = threadIdx.x % 8;
  const T *base = static_cast<const T *>(from.data) + b * from.batch + h * from.head + c * 8;
  char *at = to + tileAt(r, c); // kStep is a multiple of 8
#pragma unroll
  for (int i = 0; i < kWgRows; i += kStep) {
    const int row = first + r + i;
    const bool real = row < end;
    copyAsync(at + i * 128, base + (long long)(real ? row : 0) * from.row, real);
  }
}

/// The bias of the 64 queries of a warpgroup and 128 keys, as two tiles beside each other: begun, or done.
template <typename T>
__device__ inline void copyBias(char *to, const AttentionWork &w, int b, int h, int first, int firstKey) {
  const long long *s = w.bias.strides;
  const int thread = threadIdx.x % kWarpgroup;
  const T *base = static_cast<const T *>(w.bias.array.data) + b * s[0] + h * s[1];
  if (w.biasWide) {
    const int r = thread / 16, c = thread % 16, key = firstKey + c * 8;
    char *at = to + c / 8 * kWgTile + tileAt(r, c % 8);
#pragma unroll
    for (int i = 0; i < 64; i += 8) {
      const bool real = first + r + i < w.queries && key < w.keys;
      copyAsync(at + i * 128, base + (real ? (first + r + i) * s[2] + key : 0), real);
    }
    return;
  }
  for (int e = thread; e < 64 * kWgRows; e += kWarpgroup) {
    const int r = e / kWgRows, c = e % kWgRows;
    const bool real = first + r < w.queries && firstKey + c < w.keys;
    *reinterpret_cast<T *>(to + c / 64 * kWgTile + tileAt(r, c / 8 % 8) + c % 8 * 2) =
        real ? base[(first + r) * s[2] + (firstKey + c) * s[3]] : T(0.0f);
  }
}

/// Which of the elements that a thread holds the mask hides: bit 8 n + e of 128, of two rows.
class WgMask {
public:
  /// Of queries i[0] and i[1] (< queries) and the 128 keys from `first` on.
  __device__ void load(const AttentionWork &w, int b, int h, const int (&i)[2], int first) {
    const int part = threadIdx.x % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const long long *s = w.mask.strides;
      const unsigned char *row =
          static_cast<const unsigned char *>(w.mask.array.data) + b * s[0] + h * s[1] + i[half] * s[2];
      unsigned bits = 0; // of 32 keys
      const int key = first + part * 32;
      if (w.maskWide) {
#pragma unroll
        for (int c = 0; c < 2; ++c)
          if (key + c * 16 < w.keys) {
            const uint4 bytes = *reinterpret_cast<const uint4 *>(row + key + c * 16);
            bits |= (pack(bytes.x) | pack(bytes.y) << 4 | pack(bytes.z) << 8 | pack(bytes.w) << 12) << 16 * c;
          }
      } else {
        for (int c = 0; c < 32 && key + c < w.keys; ++c)
          bits |= unsigned(row[(key + c) * s[3]] != 0) << c;
      }
      bits = ~bits;
#pragma unroll
      for (int p = 0; p < 4; ++p)
        words_[half][p] = __shfl_sync(0xffffffffu, bits, threadIdx.x % kWarp / 4 * 4 + p) >> part * 2;
    }
  }
  __device__ bool hides(int n, int e) const { return words_[e / 2][n / 4] >> (n % 4 * 8 + e % 2) & 1; }

private:
  /// Four bytes to four bits: which are not 0.
  static __device__ unsigned pack(unsigned x) {
    x |= x >> 4, x |= x >> 2, x |= x >> 1;
    return (x & 0x01010101u) * 0x01020408u >> 24 & 15;
  }
  unsigned words_[2][4];
};

/// x = scale x + bias, fill where the mask hides, -inf from key `keys` on. `bias` begins with the warpgroup's rows.
template <typename T>
__device__ inline void makeScores(float (&x)[kWgBlocks][4], const AttentionWork &w, const char *bias, const WgMask &mask,
                                  int keys) {
  const int lane = threadIdx.x % kWarp, row = threadIdx.x / kWarp % 4 * 16 + lane / 4;
  const float scale = float(w.scale);
  if (w.bias.array.data) {
    const char *at = bias + row * 128 + lane % 4 * 4;
#pragma unroll
    for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const Pack<T, 2> pair = *reinterpret_cast<const Pack<T, 2> *>(at + n / 8 * kWgTile + half * 1024 +
                                                                      (n % 8 ^ lane / 4) * 16);
        x[n][2 * half] = fmaf(x[n][2 * half], scale, widen(pair.at[0]));
        x[n][2 * half + 1] = fmaf(x[n][2 * half + 1], scale, widen(pair.at[1]));
      }
  } else if (scale != 1) {
#pragma unroll
    for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        x[n][e] *= scale;
  }
  if (w.mask.array.data) {
    const float fill = float(w.fill);
#pragma unroll
    for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        x[n][e] = mask.hides(n, e) ? fill : x[n][e];
  }
  if (keys < kWgRows) {
#pragma unroll
    for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (n * 8 + lane % 4 * 2 + e % 2 >= keys)
          x[n][e] = -INFINITY;
  }
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

/// Into how many chunks the batches are cut so that some `blocks` blocks begin: by shape alone, since it decides the
/// order of sums.
inline int chunksFor(const AttentionWork &w, int blocks) {
  const int tiles = w.heads * ((w.queries + kWgRows - 1) / kWgRows), most = tiles ? blocks / tiles : 1;
  return most < 1 ? 1 : most < w.batch ? most : w.batch;
}

template <typename T> __device__ inline T *headRow(const HeadsView &view, int b, int h, int row) {
  return static_cast<T *>(view.data) + b * view.batch + h * view.head + row * view.row;
}

} // namespace shardc::cuda
