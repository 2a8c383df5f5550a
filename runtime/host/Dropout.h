// SPDX-License-Identifier: Apache-2.0
// Draws many elements of a dropout mask: the numbers of ir/base/Philox.h, in vectors.
#pragma once

#include "ir/base/Philox.h"
#include "ir/plan/Scalars.h"

namespace shardc::host {

/// The mask of dropout `id` in this step.
class KeepMask {
public:
  /// Requires: 0 <= ratio < 1.
  KeepMask(const double *scalars, double ratio, int64_t id)
      : draw_(uint64_t(scalars[kSeed]), uint64_t(scalars[kStep]), uint64_t(id), ratio) {}

  /// to[i] = 0 or 1 / (1 - ratio) for the elements first + i, i < n.
  template <typename T> void draw(T *to, uint64_t first, int64_t n) const {
    int64_t i = 0;
    for (; i < n && (first + i) % 4 != 0; ++i)
      to[i] = T(draw_.factor(first + i));
    for (; i + 4 * kLanes <= n; i += 4 * kLanes)
      drawBlocks(to + i, (first + i) / 4);
    for (; i < n; ++i)
      to[i] = T(draw_.factor(first + i));
  }

private:
  static constexpr int64_t kLanes = 16;

  /// 4 * kLanes elements from block `index` on.
  template <typename T> void drawBlocks(T *to, uint64_t index) const {
    uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
    for (int64_t l = 0; l < kLanes; ++l) {
      c0[l] = uint32_t(index + l);
      c1[l] = uint32_t((index + l) >> 32);
      c2[l] = draw_.id;
      c3[l] = draw_.step;
    }
    uint32_t key0 = draw_.key0, key1 = draw_.key1;
    for (int round = 0; round < 10; ++round) {
      for (int64_t l = 0; l < kLanes; ++l) {
        uint64_t a = uint64_t(0xD2511F53u) * c0[l], b = uint64_t(0xCD9E8D57u) * c2[l];
        c0[l] = uint32_t(b >> 32) ^ c1[l] ^ key0;
        c1[l] = uint32_t(b);
        c2[l] = uint32_t(a >> 32) ^ c3[l] ^ key1;
        c3[l] = uint32_t(a);
      }
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    const uint32_t threshold = uint32_t(draw_.threshold);
    const T scale = T(draw_.scale);
    for (int64_t l = 0; l < kLanes; ++l) {
      to[4 * l] = c0[l] >= threshold ? scale : T(0);
      to[4 * l + 1] = c1[l] >= threshold ? scale : T(0);
      to[4 * l + 2] = c2[l] >= threshold ? scale : T(0);
      to[4 * l + 3] = c3[l] >= threshold ? scale : T(0);
    }
  }

  DropoutDraw draw_;
};

} // namespace shardc::host
