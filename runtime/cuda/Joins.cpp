// SPDX-License-Identifier: Apache-2.0
// concat(x...){axis} and pad(x){before, after, value}: strided copies into a part of the result.
#include "ir/base/Half.h"
#include "ir/base/ScalarMath.h"
#include "runtime/cuda/Copy.h"
#include "runtime/cuda/CopyLaunch.h"
#include "runtime/host/Strided.h"
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

/// Operands of one element each along the last dim, row by row 16 bytes at once; null if they are not such.
std::unique_ptr<Kernel> makeInterleaving(llvm::ArrayRef<host::Array> in, const host::Array &y) {
  const int64_t bytes = byteSize(y.dtype), wide = 16 / bytes;
  if (in.size() < 2 || in.size() > Interleaving::kMost || y.dims.back() != int64_t(in.size()) || y.numElements() == 0 || !aligned(y.data, 16))
    return nullptr;
  Interleaving args = {};
  args.sources = int(in.size()), args.y = y.data, args.bytes = int(bytes), args.count = in[0].numElements();
  for (auto [i, x] : llvm::enumerate(in)) {
    if (x.dims != in[0].dims || x.strides != in[0].strides || x.dims.back() != 1 || !aligned(x.data, 16))
      return nullptr;
    args.x[i] = x.data;
  }
  Dims dims(in[0].dims.begin(), in[0].dims.end() - 1), strides(in[0].strides.begin(), in[0].strides.end() - 1);
  host::collapse(dims, strides);
  if (strides.back() != 1 || dims.back() % wide)
    return nullptr;
  dims.back() /= wide;
  for (size_t d = 0; d + 1 < strides.size(); ++d) {
    if (strides[d] % wide)
      return nullptr;
    strides[d] /= wide;
  }
  args.from = walkOf(dims, strides);
  return launchKernel(launchInterleaving, "launchInterleaving", args);
}

/// All of `y` with one value.
std::unique_ptr<Kernel> makeFill(const host::Array &y, double value) {
  Fill fill{y.data, int(byteSize(y.dtype)), bitsOf(y.dtype, value), y.numElements()};
  for (; fill.bytes < 8 && fill.count % 2 == 0 && aligned(fill.y, 2 * fill.bytes); fill.bytes *= 2, fill.count /= 2)
    fill.value |= fill.value << (8 * fill.bytes);
  return launchKernel(launchFill, "launchFill", fill);
}

} // namespace

BoundKernel bindConcat(const host::Binding &b, Device &) {
  host::Checks c(b);
  llvm::SmallVector<host::Array> parts;
  if (!host::concatParts(c, b, parts))
    return c.take();
  if (std::unique_ptr<Kernel> together = makeInterleaving(b.in, b.out[0]))
    return together;
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
    kernel->add(makeFill(y, value));
  kernel->add(makeCopy(x, part));
  return kernel;
}

} // namespace shardc::cuda
