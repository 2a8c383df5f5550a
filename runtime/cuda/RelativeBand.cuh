// SPDX-License-Identifier: Apache-2.0
// Bands of the gradients of scores (see RelativeScores.cuh), and products with them by warpgroups. The rows of a
// band are a tile's queries, its columns the 192 distances that 64 of them meet, as three tiles of 64; or rows are
// keys, and columns distances from the last one on, so that both sides are alike: row r of 64 and its partner c of
// 128 meet in column r - c + 127.
#pragma once

#include "runtime/cuda/RelativeTiles.cuh"

namespace shardc::cuda::relative {

constexpr int kBand = 3 * kWgTile; ///< bytes

/// Where no row meets a column; makeBand writes the rest. The block calls.
__device__ inline void clearBand(char *band) {
  for (int at = threadIdx.x * 16; at < kBand; at += kThreads * 16)
    *reinterpret_cast<uint4 *>(band + at) = {0, 0, 0, 0};
}

/// The band of the gradients, each warp for 8 rows: of queries, or of keys if kTurned.
template <bool kTurned> __device__ inline void makeBand(char *band, const char *gradients) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, r = lane / 4, c = lane % 4;
  uint32_t words[16]; // partners 8 n + 2 c and the next
#pragma unroll
  for (int n = 0; n < 16; n += 4) {
    const int block = n + lane / 8;
    uint32_t four[4];
    if (kTurned)
      loadTransposedAt(four,
                       sharedAddress(gradients + warp / 8 * kWgTile + tileAt(block * 8 + lane % 8, warp % 8)));
    else
      loadMatricesAt(four, sharedAddress(gradients + block / 8 * kWgTile + tileAt(warp * 8 + lane % 8, block % 8)));
#pragma unroll
    for (int l = 0; l < 4; ++l)
      words[n + l] = four[l];
  }
  // As with scores (RelativeScores.cuh), and back: words[2 m + t] comes to be partners 16 m + 2 c' + t and 8 more,
  // which lie in columns 8 (15 - 2 m) + v and 8 less, where v = 7 + r - 2 c' - t is the lane's column of 8, or 8
  // more.
  bool further[2];
#pragma unroll
  for (int t = 0; t < 2; ++t) {
    const int pair = (7 + r - t) / 2;
    further[t] = pair - c > 3;
  }
#pragma unroll
  for (int m = 0; m < 8; ++m) {
    const uint32_t even = __byte_perm(words[2 * m], words[2 * m + 1], 0x5410),
                   odd = __byte_perm(words[2 * m], words[2 * m + 1], 0x7632);
    words[2 * m] = __shfl_sync(0xffffffffu, even, r * 4 + ((7 + r) / 2 - c) % 4);
    words[2 * m + 1] = __shfl_sync(0xffffffffu, odd, r * 4 + ((6 + r) / 2 - c) % 4);
  }
  // Halves of a word of t = 0 and of one of t = 1, the former first where r is odd.
  auto halves = [&](bool high, bool otherHigh) -> uint32_t {
    const uint32_t one = high ? 0x32 : 0x10, other = otherHigh ? 0x76 : 0x54;
    return r % 2 ? one | other << 8 : other | one << 8;
  };
  const uint32_t same = halves(further[0], further[1]), between = halves(!further[0], !further[1]);
  auto column = [&](int n) -> uint32_t { // block n of 17
    if (n % 2)
      return __byte_perm(words[15 - n], words[16 - n], same);
    const uint32_t low[2] = {n == 16 ? 0 : words[14 - n], n == 16 ? 0 : words[15 - n]},
                   high[2] = {n == 0 ? 0 : words[16 - n], n == 0 ? 0 : words[17 - n]};
    return __byte_perm(further[0] ? high[0] : low[0], further[1] ? high[1] : low[1], between);
  };
  auto place = [&](int block, int row) { return band + block / 8 * kWgTile + tileAt(warp * 8 + row, block % 8); };
#pragma unroll
  for (int n = 0; n < 16; n += 4)
    storeMatrices(place(warp % 8 + n + lane / 8, lane % 8), column(n), column(n + 1), column(n + 2), column(n + 3));
  *reinterpret_cast<uint32_t *>(place(warp % 8 + 16, r) + c * 4) = column(16);
}

/// sums += band^T own, for the warpgroup's 64 distances.
template <typename T>
__device__ inline void sumDistances(float (&sums)[8][4], const char *band, const char *own, int group) {
  for (int half = max(0, group - 2); half <= min(1, group); ++half) {
    const uint64_t left = matrixAt(band + (group - half) * kWgTile + half * kHalfTile),
                   right = matrixAt(own + half * kHalfTile);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      multiply<T, true, true>(sums, further(left, i * 2048), further(right, i * 2048), true);
  }
}
/// The same, where the compiler knows of how many rows; kOuter: warpgroups 0 and 3, which meet 64.
template <typename T, bool kOuter>
__device__ inline void sumDistances(float (&sums)[8][4], const char *band, const char *own, int group) {
#pragma unroll
  for (int n = 0; n < (kOuter ? 1 : 2); ++n) {
    const int half = kOuter ? group / 2 : n;
    const uint64_t left = matrixAt(band + (group - half) * kWgTile + half * kHalfTile),
                   right = matrixAt(own + half * kHalfTile);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      multiply<T, true, true>(sums, further(left, i * 2048), further(right, i * 2048), true);
  }
}
/// x += band distances, for 64 rows.
template <typename T, int N>
__device__ inline void addDistances(float (&x)[N][4], const char *band, const char *distances, int half) {
  const uint64_t left = matrixAt(band + half * kHalfTile), right = matrixAt(distances + half * kHalfTile);
#pragma unroll
  for (int d = 0; d < 12; ++d)
    multiply<T, false, true>(x, further(left, d / 4 * kWgTile + d % 4 * 32), further(right, d * 2048), true);
}

/// x = gradients k for 64 queries, or of their transpose with q for 64 keys; `others`: k or q, from 16 bytes on
/// that begin a column.
template <typename T, bool kTurned, int N>
__device__ inline void multiplyGradients(float (&x)[N][4], const char *gradients, const char *others, int half,
                                         bool adds) {
  const uint64_t left = matrixAt(gradients + half * (kTurned ? kWgTile : kHalfTile)), right = matrixAt(others);
#pragma unroll
  for (int c = 0; c < 8; ++c)
    multiply<T, kTurned, true>(x, further(left, kTurned ? c * 2048 : c / 4 * kWgTile + c % 4 * 32),
                               further(right, c * 2048), adds || c > 0);
}

} // namespace shardc::cuda::relative
