// SPDX-License-Identifier: Apache-2.0
// gather_elements(data, indices){axis} and gather_elements_grad(dy, indices){axis, size}: one index for each
// element. Operands may have any strides.
#include "runtime/cuda/IndexOperands.h"

namespace shardc::cuda {

BoundKernel bindGatherElements(const host::Binding &b, Device &device) {
  host::Checks c(b);
  int64_t axis;
  if (!gatherElementsShape(c, b, axis))
    return c.take();
  const host::Array &data = b.in[0], &indices = b.in[1];
  const int64_t count = indices.numElements();
  if (count == 0)
    return std::make_unique<Sequence>();
  IndexOperand operand = indexOperand(b, device);
  if (data.dims[axis] == 0)
    return launchKernel(launchEmptyTable, "launchEmptyTable", operand);
  Dims strides = data.strides;
  strides[axis] = 0;
  GatherElementsArgs args{data.data,
                          b.out[0].data,
                          operand,
                          int(byteSize(data.dtype)),
                          count,
                          data.dims[axis],
                          data.strides[axis],
                          walkOf(indices.dims, strides),
                          walkOf(indices.dims, indices.strides)};
  return launchKernel(launchGatherElements, "launchGatherElements", args);
}

BoundKernel bindGatherElementsGrad(const host::Binding &b, Device &device) {
  host::Checks c(b);
  int64_t axis, size;
  if (!(gatherElementsGradShape(c, b, axis, size) && checkFloat(c, b.in[0], "dy")))
    return c.take();
  const host::Array &dy = b.in[0], &indices = b.in[1], &dx = b.out[0];
  IndexOperand operand = indexOperand(b, device);
  const host::Array lines = without(dy, axis);
  if (size == 0 && dy.numElements() > 0)
    return launchKernel(launchEmptyTable, "launchEmptyTable", operand);
  if (dx.numElements() == 0)
    return std::make_unique<Sequence>();
  GatherElementsGradArgs args{dy.data,
                              dx.data,
                              operand,
                              elementType(dy.dtype),
                              lines.numElements(),
                              dy.dims[axis],
                              size,
                              dy.strides[axis],
                              dx.strides[axis],
                              indices.strides[axis],
                              walkOf(lines.dims, lines.strides),
                              walkOf(lines.dims, without(dx, axis).strides),
                              walkOf(lines.dims, without(indices, axis).strides)};
  return launchKernel(launchGatherElementsGrad, "launchGatherElementsGrad", args);
}

} // namespace shardc::cuda
