// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10, a counter-based generator (Salmon et al., SC 2011), and the dropout drawn with it.
//
// One block gives four 32-bit numbers. Element e of dropout `id` in step s under seed k uses number
// e mod 4 of the block with key k and counter (e / 4, low and high word; id; s). The same arguments
// give the same number on every rank, device and in every recomputation.
#pragma once

#include <array>
#include <cstdint>

namespace shardc {

using PhiloxBlock = std::array<uint32_t, 4>;

constexpr PhiloxBlock philox4x32(PhiloxBlock counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t(0xD2511F53u) * counter[0], b = uint64_t(0xCD9E8D57u) * counter[2];
    counter = {uint32_t(b >> 32) ^ counter[1] ^ key0, uint32_t(b),
               uint32_t(a >> 32) ^ counter[3] ^ key1, uint32_t(a)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// What a dropout draws with. An element is kept if its number is >= threshold.
struct DropoutDraw {
  uint32_t key0 = 0, key1 = 0, id = 0, step = 0;
  uint64_t threshold = 0; ///< p * 2^32
  double scale = 1;       ///< 1 / (1 - p): what a kept element is multiplied with

  constexpr DropoutDraw() = default;
  /// Requires: 0 <= p < 1.
  constexpr DropoutDraw(uint64_t seed, uint64_t step, uint64_t id, double p)
      : key0(uint32_t(seed)), key1(uint32_t(seed >> 32)), id(uint32_t(id)), step(uint32_t(step)),
        threshold(uint64_t(p * 4294967296.0)), scale(1 / (1 - p)) {}

  constexpr PhiloxBlock block(uint64_t index) const {
    return philox4x32({uint32_t(index), uint32_t(index >> 32), id, step}, key0, key1);
  }
  /// 0 or `scale` for the element with that global index.
  constexpr double factor(uint64_t element) const {
    return block(element / 4)[element % 4] >= threshold ? scale : 0;
  }
};

/// Global index of a value's first element: batch-major values (dim 0 is this rank's and
/// micro-step's share of the batch) continue from cut to cut, all others draw the same everywhere.
constexpr uint64_t dropoutStart(bool batchMajor, uint64_t shardIndex, uint64_t elements) {
  return batchMajor ? shardIndex * elements : 0;
}

} // namespace shardc
