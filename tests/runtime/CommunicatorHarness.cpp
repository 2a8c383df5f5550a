// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/CommunicatorHarness.h"
#include "ir/base/Half.h"
#include <atomic>
#include <cmath>
#include <cstring>
#include <random>
#include <unistd.h>

namespace shardc {
namespace {

template <typename T> void put(Bytes &bytes, int64_t i, T value) {
  memcpy(&bytes[i * sizeof(T)], &value, sizeof(T));
}
template <typename T> T get(const Bytes &bytes, int64_t i) {
  T value;
  memcpy(&value, &bytes[i * sizeof(T)], sizeof(T));
  return value;
}

template <typename T> T sumAt(const std::vector<Bytes> &arrays, int64_t i) {
  T sum = get<T>(arrays[0], i);
  for (size_t r = 1; r < arrays.size(); ++r)
    sum = T(sum + get<T>(arrays[r], i));
  return sum;
}

template <uint16_t (*Round)(float), float (*Widen)(uint16_t)>
uint16_t halfSumAt(const std::vector<Bytes> &arrays, int64_t i) {
  float sum = Widen(get<uint16_t>(arrays[0], i));
  for (size_t r = 1; r < arrays.size(); ++r)
    sum += Widen(get<uint16_t>(arrays[r], i));
  return Round(sum);
}

} // namespace

std::string uniqueJob() {
  static std::atomic<unsigned> count;
  return "test " + std::to_string(getpid()) + " " + std::to_string(++count);
}

Bytes randomArray(DType dtype, int64_t n, unsigned rank, uint64_t seed) {
  std::mt19937_64 random(seed * 1000003 + rank * 10007 + uint64_t(dtype));
  Bytes bytes(n * byteSize(dtype));
  for (int64_t i = 0; i < n; ++i) {
    uint64_t bits = random();
    double value = std::ldexp(double(int32_t(bits)), int(bits >> 32) % 12 - 31);
    switch (dtype) {
    case DType::F32:
      put(bytes, i, float(value));
      break;
    case DType::F64:
      put(bytes, i, value * M_PI);
      break;
    case DType::F16:
      put(bytes, i, floatToHalf(float(value)));
      break;
    case DType::BF16:
      put(bytes, i, floatToBFloat(float(value)));
      break;
    default:
      memcpy(&bytes[i * byteSize(dtype)], &bits, byteSize(dtype));
    }
  }
  return bytes;
}

Bytes plainSum(DType dtype, const std::vector<Bytes> &arrays) {
  Bytes sum(arrays[0].size());
  for (int64_t i = 0, n = sum.size() / byteSize(dtype); i < n; ++i)
    switch (dtype) {
    case DType::F32:
      put(sum, i, sumAt<float>(arrays, i));
      break;
    case DType::F64:
      put(sum, i, sumAt<double>(arrays, i));
      break;
    case DType::F16:
      put(sum, i, halfSumAt<floatToHalf, halfToFloat>(arrays, i));
      break;
    case DType::BF16:
      put(sum, i, halfSumAt<floatToBFloat, bfloatToFloat>(arrays, i));
      break;
    case DType::I32:
      put(sum, i, sumAt<uint32_t>(arrays, i));
      break;
    case DType::I64:
      put(sum, i, sumAt<uint64_t>(arrays, i));
      break;
    case DType::U8:
    case DType::Bool:
      put(sum, i, sumAt<uint8_t>(arrays, i));
      break;
    }
  return sum;
}

Bytes endToEnd(const std::vector<Bytes> &arrays) {
  Bytes all;
  for (const Bytes &array : arrays)
    all.insert(all.end(), array.begin(), array.end());
  return all;
}

Bytes cut(DType dtype, const Bytes &array, int64_t begin, int64_t n) {
  auto first = array.begin() + begin * byteSize(dtype);
  return Bytes(first, first + n * byteSize(dtype));
}

} // namespace shardc
