// SPDX-License-Identifier: Apache-2.0
// concat(x...){axis} and pad(x){before, after, value}: strided copies into a part of the result.
#include "ir/base/Half.h"
#include "ir/base/ScalarMath.h"
#include "runtime/cuda/Copy.h"
#include "runtime/cuda/CopyLaunch.h"
#include <bit>

namespace shardc::cuda {
namespace {

/// The part of `whole` that starts at `starts` and has `dims`.
host::Array part(const host::Array &whole, llvm::ArrayRef<int64_t> starts, const Dims &dims) {
  host::Array a = whole;
  a.dims = dims;
  int64_t offset = 0;
  for (size_t i = 0; i < dims.size(); ++i)
    offset += starts[i] * whole.strides[i];
  a.data = whole.as<char>() + (a.numElements() ? offset * byteSize(whole.dtype) : 0);
  return a;
}

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
  int64_t axis;
  if (!(c.arity(1, 1 << 20, 1) && c.denseResults() && c.axisAttr("axis", b.out[0].dims.size(), axis) &&
        c.apart()))
    return c.take();
  const host::Array &y = b.out[0];
  auto kernel = std::make_unique<Sequence>();
  Dims starts(y.dims.size(), 0);
  for (size_t i = 0; i < b.in.size(); ++i) {
    const host::Array &x = b.in[i];
    if (!(c.that(bool(x), "operand " + std::to_string(i) + " is absent") && c.rank(x, y.dims.size()) &&
          c.dtype(x, y.dtype)))
      return c.take();
    Dims wanted = y.dims;
    wanted[axis] = x.dims[axis];
    if (!(c.dims(x, wanted) &&
          c.that(x.dims[axis] <= y.dims[axis] - starts[axis], "operands are longer than the result")))
      return c.take();
    kernel->add(makeCopy(x, part(y, starts, x.dims)));
    starts[axis] += x.dims[axis];
  }
  if (!c.that(starts[axis] == y.dims[axis], "operands are shorter than the result"))
    return c.take();
  return kernel;
}

BoundKernel bindPad(const host::Binding &b, Device &) {
  host::Checks c(b);
  llvm::SmallVector<int64_t> before, after;
  double value;
  if (!(c.arity(1, 1, 1) && c.denseResults() && c.intsAttr("before", before) && c.intsAttr("after", after) &&
        c.floatAttr("value", value) && c.dtype(b.out[0], b.in[0].dtype) &&
        c.rank(b.out[0], b.in[0].dims.size()) && c.apart()))
    return c.take();
  const host::Array &x = b.in[0], &y = b.out[0];
  if (!c.that(before.size() == x.dims.size() && after.size() == x.dims.size(),
              "attributes before and after: wanted one for each dim"))
    return c.take();
  for (size_t i = 0; i < x.dims.size(); ++i) {
    int64_t room = y.dims[i] - x.dims[i];
    if (!c.that(before[i] >= 0 && before[i] <= room && after[i] == room - before[i],
                "result shape: got " + formatDims(y.dims) + ", wanted the padded " + formatDims(x.dims)))
      return c.take();
  }
  auto kernel = std::make_unique<Sequence>();
  if (y.numElements() > x.numElements())
    kernel->add(launchKernel(launchFill, "launchFill",
                             Fill{y.data, int(byteSize(y.dtype)), bitsOf(y.dtype, value), y.numElements()}));
  kernel->add(makeCopy(x, part(y, before, x.dims)));
  return kernel;
}

} // namespace shardc::cuda
