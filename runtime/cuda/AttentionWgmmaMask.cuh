// SPDX-License-Identifier: Apache-2.0
// What a mask hides of the scores that a warp holds as accumulators of warpgroups: bits of its rows, from 4 bytes a lane
// where all queries have the same mask, else from 8 kWords bytes a lane and row.
#pragma once

#include "runtime/cuda/Attention.h"
#include "runtime/cuda/Numbers.cuh"

namespace shardc::cuda {

/// Which of the elements that a thread holds of 32 kWords keys the mask hides.
template <int kWords> class WgMask {
public:
  /// Is it the same for all batches?
  static __device__ bool stays(const AttentionWork &w) { return w.mask.strides[0] == 0; }
  /// Begins to load, of keys from `first` on, what all queries share.
  __device__ void begin(const AttentionWork &w, int b, int h, int first) {
    const int lane = threadIdx.x % kWarp, key = first + lane * 4;
    keys_ = ~0u;
    if (ofKeys(w) && lane < 8 * kWords && key < w.keys)
      keys_ = *reinterpret_cast<const unsigned *>(rowOf(w, b, h, 0) + key);
  }
  /// Or what queries i[0] and i[1] (< queries) have.
  __device__ void beginRows(const AttentionWork &w, int b, int h, const int (&i)[2], int first) {
    if (!w.mask.array.data || ofKeys(w))
      return;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const unsigned char *row = rowOf(w, b, h, i[half]);
      const int key = first + threadIdx.x % 4 * kEach;
      if (w.maskWide) {
#pragma unroll
        for (int c = 0; c < kEach / 16; ++c)
          raw_[half][c] = key + c * 16 < w.keys ? *reinterpret_cast<const uint4 *>(row + key + c * 16) : kAll;
      } else {
        unsigned bits = 0;
        for (int c = 0; c < kEach; ++c)
          bits |= unsigned(key + c >= w.keys || row[(key + c) * w.mask.strides[3]] != 0) << c;
        raw_[half][0].x = bits;
      }
    }
  }
  /// The whole warp calls.
  __device__ void arrange(const AttentionWork &w) {
    any_ = false;
    if (!w.mask.array.data)
      return;
    const int lane = threadIdx.x % kWarp;
    if (ofKeys(w)) {
      const unsigned shown = bitsOf(keys_);
      any_ = __any_sync(0xffffffffu, shown != 15);
      if (!any_)
        return;
      unsigned hidden[4]; // of every fourth key
#pragma unroll
      for (int c = 0; c < 4; ++c)
        hidden[c] = __ballot_sync(0xffffffffu, !(shown >> c & 1)) >> lane / 2 % 2;
      const unsigned even = lane % 2 ? hidden[2] : hidden[0], odd = lane % 2 ? hidden[3] : hidden[1];
      words_[0] = words_[1] = (even & 0x55555555u) | (odd & 0x55555555u) << 1;
      return;
    }
    unsigned bits[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      bits[half] = raw_[half][0].x;
      if (w.maskWide) {
        bits[half] = 0;
#pragma unroll
        for (int c = 0; c < kEach / 16; ++c) {
          const uint4 bytes = raw_[half][c];
          const unsigned four = bitsOf(bytes.x) | bitsOf(bytes.y) << 4 | bitsOf(bytes.z) << 8 | bitsOf(bytes.w) << 12;
          bits[half] |= four << 16 * c;
        }
      }
      bits[half] = ~bits[half] & (kEach == 32 ? ~0u : (1u << kEach % 32) - 1);
    }
    any_ = __any_sync(0xffffffffu, bits[0] | bits[1]);
    if (!any_)
      return;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      words_[half] = 0;
#pragma unroll
      for (int p = 0; p < kWords; ++p) {
        unsigned word = __shfl_sync(0xffffffffu, bits[half], lane / 4 * 4 + (kEach == 32 ? p : 2 * p));
        if (kEach == 16)
          word |= __shfl_sync(0xffffffffu, bits[half], lane / 4 * 4 + 2 * p + 1) << 16;
        word = word >> lane % 4 * 2 & 0x03030303u;
        words_[half] |= ((word | word >> 6 | word >> 12 | word >> 18) & 0xff) << 8 * p;
      }
    }
  }
  /// Of the warp, anything at all?
  __device__ bool hidesAny() const { return any_; }
  /// Requires: hidesAny().
  __device__ bool hides(int n, int e) const { return words_[e / 2] >> (2 * n + e % 2) & 1; }

private:
  static constexpr int kEach = 8 * kWords; ///< keys that a lane loads of a row
  static constexpr uint4 kAll = {~0u, ~0u, ~0u, ~0u};
  static __device__ bool ofKeys(const AttentionWork &w) { return w.maskWide && w.mask.strides[2] == 0; }
  static __device__ const unsigned char *rowOf(const AttentionWork &w, int b, int h, int i) {
    const long long *s = w.mask.strides;
    return static_cast<const unsigned char *>(w.mask.array.data) + b * s[0] + h * s[1] + i * s[2];
  }
  /// Four bytes to four bits: which are not 0.
  static __device__ unsigned bitsOf(unsigned x) {
    x |= x >> 4, x |= x >> 2, x |= x >> 1;
    return (x & 0x01010101u) * 0x01020408u >> 24 & 15;
  }
  bool any_;
  unsigned keys_, words_[2]; ///< words_: bit 2 n + e for each row
  uint4 raw_[2][kEach / 16];
};

} // namespace shardc::cuda
