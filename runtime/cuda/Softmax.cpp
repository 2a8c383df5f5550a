// SPDX-License-Identifier: Apache-2.0
// softmax(x), log_softmax(x), softmax_grad(dy, y) over the last dim. A row without any finite element gives
// zeros. A softmax of f32 may be stored in 16 bits.
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/SoftmaxLaunch.h"

namespace shardc::cuda {
namespace {

bool checkRows(host::Checks &c, const host::Binding &b, unsigned operands, bool narrows) {
  if (!(c.arity(operands, operands, 1) && checkFloat(c, b.in[0], "operand 0") && checkFloat(c, b.out[0], "result") && c.denseResults() &&
        c.that(!b.in[0].dims.empty(), "rank: got 0, wanted at least 1") && c.dims(b.out[0], b.in[0].dims)))
    return false;
  narrows &= b.in[0].dtype == DType::F32 && byteSize(b.out[0].dtype) == 2;
  if (!narrows && !c.dtype(b.out[0], b.in[0].dtype))
    return false;
  for (const host::Array &x : b.in)
    if (!(c.dims(x, b.in[0].dims) && c.dtype(x, b.in[0].dtype) && c.lastDim(x)))
      return false;
  return c.apart({{0, 0}, {0, 1}});
}

/// May all rows be read and written 16 bytes at once?
bool vectors(const host::Binding &b) {
  const int64_t length = b.in[0].dims.back(), width = 16 / byteSize(b.in[0].dtype);
  for (const host::Array &x : b.in)
    if (!aligned(x.data, 16) || !multiples(rowWalk(x, 1), width))
      return false;
  return length % width == 0 && aligned(b.out[0].data, width * byteSize(b.out[0].dtype));
}

BoundKernel bindForward(const host::Binding &b, bool log) {
  host::Checks c(b);
  if (!checkRows(c, b, 1, /*narrows=*/true))
    return c.take();
  const host::Array &x = b.in[0];
  const int64_t length = x.dims.back(), count = x.numElements();
  if (count == 0)
    return std::make_unique<Sequence>();
  SoftmaxArgs args{x.data,       b.out[0].data, elementType(x.dtype), elementType(b.out[0].dtype),
                   log,          vectors(b),    count / length,       length,
                   rowWalk(x, 1)};
  return launchKernel(launchSoftmax, "launchSoftmax", args);
}

} // namespace

BoundKernel bindSoftmax(const host::Binding &b, Device &) { return bindForward(b, /*log=*/false); }
BoundKernel bindLogSoftmax(const host::Binding &b, Device &) { return bindForward(b, /*log=*/true); }

BoundKernel bindSoftmaxGrad(const host::Binding &b, Device &) {
  host::Checks c(b);
  if (!checkRows(c, b, 2, /*narrows=*/false))
    return c.take();
  const host::Array &dy = b.in[0], &y = b.in[1];
  const int64_t length = dy.dims.back(), count = dy.numElements();
  if (count == 0)
    return std::make_unique<Sequence>();
  SoftmaxGradArgs args{dy.data,        y.data, b.out[0].data,  elementType(dy.dtype), vectors(b),
                       count / length, length, rowWalk(dy, 1), rowWalk(y, 1)};
  return launchKernel(launchSoftmaxGrad, "launchSoftmaxGrad", args);
}

} // namespace shardc::cuda
