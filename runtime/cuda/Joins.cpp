// SPDX-License-Identifier: Apache-2.0
// concat(x...){axis} and pad(x){before, after, value}: strided copies into a part of the result.
#include "ir/base/Half.h"
#include "ir/base/ScalarMath.h"
#include "runtime/cuda/Copy.h"
#include "runtime/cuda/CopyLaunch.h"
#include "runtime/host/Shapes.h"
#include "llvm/ADT/STLExtras.h"
#include <bit>

namespace shardc::cuda {
namespace {

/// The bits of one element, in the low bytes.
uint64_t bitsOf(DType dtype, double value) {
  switch (dtype) {
  case DType::F32:
    return std::bit_cast<uint32_t>(float(value));
  case DType::F64:
    return std::bit_cast<uint64_t>(value);
  case DType::F16:
    return floatToHalf(float(value));
  case DType::BF16:
    return floatToBFloat(float(value));
  case DType::I32:
    return uint32_t(scalar::convert<int32_t>(value));
  case DType::I64:
    return uint64_t(scalar::convert<int64_t>(value));
  case DType::U8:
    return scalar::convert<uint8_t>(value);
  case DType::Bool:
    break;
  }
  return value != 0;
}

} // namespace

BoundKernel bindConcat(const host::Binding &b, Device &) {
  host::Checks c(b);
  llvm::SmallVector<host::Array> parts;
  if (!host::concatParts(c, b, parts))
    return c.take();
  auto kernel = std::make_unique<Sequence>();
  for (auto [x, part] : llvm::zip_equal(b.in, parts))
    kernel->add(makeCopy(x, part));
  return kernel;
}

BoundKernel bindPad(const host::Binding &b, Device &) {
  host::Checks c(b);
  host::Array part;
  double value;
  if (!host::padPart(c, b, part, value))
    return c.take();
  const host::Array &x = b.in[0], &y = b.out[0];
  auto kernel = std::make_unique<Sequence>();
  if (y.numElements() > x.numElements())
    kernel->add(launchKernel(launchFill, "launchFill",
                             Fill{y.data, int(byteSize(y.dtype)), bitsOf(y.dtype, value), y.numElements()}));
  kernel->add(makeCopy(x, part));
  return kernel;
}

} // namespace shardc::cuda
