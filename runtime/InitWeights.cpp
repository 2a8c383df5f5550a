// SPDX-License-Identifier: Apache-2.0
#include "runtime/InitWeights.h"
#include "runtime/Mix.h"
#include "runtime/host/Parallel.h"
#include <algorithm>
#include <cmath>
#include <numbers>

namespace shardc {

/// Box-Muller on pairs of counters; u in (0, 1], v in [0, 1):  sqrt(-2 ln u) cos(2 pi v), sqrt(-2
/// ln u) sin(2 pi v)
template <typename T> static void draw(T *data, int64_t first, int64_t count, double deviation, uint64_t key) {
  constexpr int64_t kGrain = 1 << 14;
  host::parallelFor(count, kGrain, [&](int64_t begin, int64_t end, int) {
    for (int64_t pair = (first + begin) & ~int64_t(1); pair < first + end; pair += 2) {
      double u = double((mix(key + pair) >> 11) + 1) * 0x1p-53, v = double(mix(key + pair + 1) >> 11) * 0x1p-53;
      double radius = deviation * std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * v;
      double even = radius * std::cos(angle), odd = radius * std::sin(angle); // at once: one call of the library
      if (pair >= first + begin)
        data[pair - first] = T(even);
      if (pair + 1 < first + end)
        data[pair + 1 - first] = T(odd);
    }
  });
}

template <typename T>
static void initializeAs(const plan::Parameter &parameter, uint64_t number, double deviation, uint64_t seed,
                         int64_t first, int64_t count, T *to) {
  bool isVector = parameter.dims_size() < 2, isScale = isVector && !llvm::StringRef(parameter.name()).ends_with("bias");
  if (deviation == 0 || (isVector && !isScale))
    std::fill_n(to, count, T(0));
  else if (isScale)
    std::fill_n(to, count, T(1));
  else
    draw(to, first, count, deviation, mix(mix(seed) ^ mix(~number)));
}

void initialize(const plan::Parameter &parameter, uint64_t number, double deviation, uint64_t seed, int64_t first,
                int64_t count, void *to, DType dtype) {
  if (dtype == DType::F32)
    initializeAs(parameter, number, deviation, seed, first, count, static_cast<float *>(to));
  else
    initializeAs(parameter, number, deviation, seed, first, count, static_cast<double *>(to));
}

} // namespace shardc
