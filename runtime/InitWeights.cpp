// SPDX-License-Identifier: Apache-2.0
#include "runtime/InitWeights.h"
#include "runtime/Mix.h"
#include "runtime/host/Parallel.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace shardc {

template <typename T> static void fill(const ArrayToWrite &parameter, T value) {
  std::fill_n(static_cast<T *>(const_cast<void *>(parameter.data)), numElements(parameter.dims),
              value);
}

/// Box-Muller on pairs of counters; u in (0, 1], v in [0, 1):  sqrt(-2 ln u) cos(2 pi v), sqrt(-2
/// ln u) sin(2 pi v)
template <typename T>
static void draw(const ArrayToWrite &parameter, double deviation, uint64_t key) {
  T *data = static_cast<T *>(const_cast<void *>(parameter.data));
  constexpr int64_t kGrain = 1 << 14; // even: no pair is cut
  host::parallelFor(numElements(parameter.dims), kGrain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i += 2) {
      double u = double((mix(key + i) >> 11) + 1) * 0x1p-53,
             v = double(mix(key + i + 1) >> 11) * 0x1p-53;
      double radius = deviation * std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * v;
      data[i] = T(radius * std::cos(angle));
      if (i + 1 < end)
        data[i + 1] = T(radius * std::sin(angle));
    }
  });
}

void initializeZero(const ArrayToWrite &parameter) {
  std::memset(const_cast<void *>(parameter.data), 0,
              numElements(parameter.dims) * byteSize(parameter.dtype));
}

void initialize(const ArrayToWrite &parameter, uint64_t number, double deviation, uint64_t seed) {
  bool isScale = parameter.dims.size() < 2 && !llvm::StringRef(parameter.name).ends_with("bias");
  bool single = parameter.dtype == DType::F32;
  if (deviation == 0 || (parameter.dims.size() < 2 && !isScale))
    initializeZero(parameter);
  else if (isScale)
    single ? fill<float>(parameter, 1) : fill<double>(parameter, 1);
  else if (uint64_t key = mix(mix(seed) ^ mix(~number)); single)
    draw<float>(parameter, deviation, key);
  else
    draw<double>(parameter, deviation, key);
}

} // namespace shardc
