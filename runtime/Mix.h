// SPDX-License-Identifier: Apache-2.0
// A counter-based generator for work outside of a step: order of rows, starting values.
#pragma once

#include <cstdint>

namespace shardc {

/// SplitMix64's step and finalizer: 64 well mixed bits of any counter.
constexpr uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

} // namespace shardc
