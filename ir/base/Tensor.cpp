// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Tensor.h"
#include "ir/base/Half.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

namespace shardc {

int64_t numElements(llvm::ArrayRef<int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims)
    n *= d;
  return n;
}

std::optional<int64_t> checkedNumElements(llvm::ArrayRef<int64_t> dims) {
  constexpr int64_t kMost = int64_t(1) << 44;
  int64_t n = 1;
  bool zero = false;
  for (int64_t d : dims) {
    if (d < 0)
      return std::nullopt;
    zero |= d == 0;
    if (d != 0 && (llvm::MulOverflow(n, d, n) || n > kMost))
      return std::nullopt;
  }
  return zero ? 0 : n;
}

Dims rowMajorStrides(llvm::ArrayRef<int64_t> dims) {
  Dims strides(dims.size(), 1);
  for (int64_t i = int64_t(dims.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * dims[i + 1];
  return strides;
}

std::string formatDims(llvm::ArrayRef<int64_t> dims) {
  if (dims.empty())
    return "scalar";
  std::string text;
  for (int64_t d : dims)
    text += (text.empty() ? "" : "x") + llvm::itostr(d);
  return text;
}

Tensor::Tensor(DType dtype, llvm::ArrayRef<int64_t> dims) : dtype_(dtype), dims_(dims.begin(), dims.end()) {
  // At least one byte, so that an empty tensor has an address too.
  std::shared_ptr<char[]> bytes(new char[std::max<int64_t>(numBytes(), 1)]());
  data_ = bytes.get();
  owner_ = bytes;
}

Tensor::Tensor(DType dtype, llvm::ArrayRef<int64_t> dims, std::shared_ptr<const void> owner, const void *bytes)
    : dtype_(dtype), dims_(dims.begin(), dims.end()), owner_(std::move(owner)), data_(bytes) {}

template <typename T> static void fill(Tensor &t, T value) {
  std::fill_n(t.mutableData<T>(), t.numElements(), value);
}

Tensor Tensor::splat(DType dtype, llvm::ArrayRef<int64_t> dims, double value) {
  Tensor t(dtype, dims);
  switch (dtype) {
  case DType::F32: fill<float>(t, value); break;
  case DType::F64: fill<double>(t, value); break;
  case DType::F16: fill<uint16_t>(t, floatToHalf(value)); break;
  case DType::BF16: fill<uint16_t>(t, floatToBFloat(value)); break;
  case DType::I32: fill<int32_t>(t, value); break;
  case DType::I64: fill<int64_t>(t, value); break;
  case DType::U8: fill<uint8_t>(t, value); break;
  case DType::Bool: fill<uint8_t>(t, value != 0); break;
  }
  return t;
}

double Tensor::asDouble(int64_t i) const {
  switch (dtype_) {
  case DType::F32: return data<float>()[i];
  case DType::F64: return data<double>()[i];
  case DType::F16: return halfToFloat(data<uint16_t>()[i]);
  case DType::BF16: return bfloatToFloat(data<uint16_t>()[i]);
  default: return double(asInt(i));
  }
}

int64_t Tensor::asInt(int64_t i) const {
  switch (dtype_) {
  case DType::I32: return data<int32_t>()[i];
  case DType::I64: return data<int64_t>()[i];
  case DType::U8:
  case DType::Bool: return data<uint8_t>()[i];
  default: return int64_t(asDouble(i));
  }
}

llvm::SmallVector<int64_t> Tensor::ints() const {
  llvm::SmallVector<int64_t> out(numElements());
  for (int64_t i = 0, n = numElements(); i < n; ++i)
    out[i] = asInt(i);
  return out;
}

Tensor Tensor::reshaped(llvm::ArrayRef<int64_t> dims) const {
  assert(shardc::numElements(dims) == numElements());
  return Tensor(dtype_, dims, owner_, data_);
}

bool Tensor::operator==(const Tensor &o) const {
  return dtype_ == o.dtype_ && dims_ == o.dims_ &&
         (data_ == o.data_ || std::memcmp(data_, o.data_, numBytes()) == 0);
}

} // namespace shardc
