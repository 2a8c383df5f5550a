// SPDX-License-Identifier: Apache-2.0
// Arrays with any strides seen as row-major sequences, on the device. Read by nvcc too: no other header.
#pragma once

#ifdef __CUDACC__
#define SHARDC_DEVICE __device__ __forceinline__
#endif

namespace shardc::cuda {

/// Division by a number that is known when binding: by a product where all dividends are below 2^31.
struct Divider {
  long long divisor = 1;
  unsigned magic = 0, shift = 0;
  int narrow = 1;

  Divider() = default;
  /// Requires: divisor >= 1, dividends in [0, limit].
  Divider(long long divisor, long long limit)
      : divisor(divisor), narrow(limit < (1ll << 31) && divisor < (1ll << 31)) {
    if (!narrow || divisor == 1)
      return;
    unsigned bits = 0;
    while ((1ll << bits) < divisor)
      ++bits;
    shift = bits - 1; // of the high word
    magic = unsigned(((1ull << (31 + bits)) + (unsigned long long)divisor - 1) / (unsigned long long)divisor);
  }
#ifdef __CUDACC__
  SHARDC_DEVICE long long quotient(long long n) const {
    if (narrow)
      return divisor == 1 ? n : (long long)(__umulhi((unsigned)n, magic) >> shift);
    return n / divisor;
  }
#endif
};

/// Position in the sequence to elements from the array's start. Dims are innermost first.
struct Walk {
  static constexpr int kMaxRank = 8;
  int rank = 1;
  Divider dims[kMaxRank];
  long long strides[kMaxRank] = {1};

#ifdef __CUDACC__
  SHARDC_DEVICE long long offset(long long position) const {
    long long at = 0;
#pragma unroll
    for (int d = 0; d < kMaxRank; ++d) {
      if (d == rank - 1)
        break;
      long long q = dims[d].quotient(position);
      at += (position - q * dims[d].divisor) * strides[d];
      position = q;
    }
    return at + position * strides[rank - 1];
  }
#endif
};

} // namespace shardc::cuda
