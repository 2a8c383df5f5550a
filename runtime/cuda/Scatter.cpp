// SPDX-License-Identifier: Apache-2.0
// scatter_elements(data, indices, updates){axis, reduction}, scatter_nd(data, indices, updates){reduction}
// and cum_sum(x){axis, exclusive, reverse}: small work (label shifts, masks). Updates of one place run in
// their order.
#include "runtime/cuda/Copy.h"
#include "runtime/cuda/IndexOperands.h"
#include "runtime/cuda/ScatterLaunch.h"

namespace shardc::cuda {
namespace {

static_assert(int(ScatterKind::None) == int(Scatter::None) && int(ScatterKind::Add) == int(Scatter::Add) &&
              int(ScatterKind::Mul) == int(Scatter::Mul) && int(ScatterKind::Max) == int(Scatter::Max) &&
              int(ScatterKind::Min) == int(Scatter::Min));

/// The copy of the data that updates change, if the result is not in its place.
std::unique_ptr<Sequence> startFrom(const host::Array &data, const host::Array &y) {
  auto kernel = std::make_unique<Sequence>();
  if (y.data != data.data && y.numElements() > 0)
    kernel->add(makePlainCopy(data.data, y.data, y.numElements() * byteSize(y.dtype)));
  return kernel;
}

} // namespace

BoundKernel bindScatterElements(const host::Binding &b, Device &device) {
  host::Checks c(b);
  int64_t axis;
  Scatter reduction;
  if (!scatterElementsShape(c, b, axis, reduction))
    return c.take();
  const host::Array &indices = b.in[1], &y = b.out[0];
  auto kernel = startFrom(b.in[0], y);
  if (indices.numElements() == 0)
    return kernel;
  IndexOperand operand = indexOperand(b, device);
  if (y.numElements() == 0)
    return launchKernel(launchEmptyTable, "launchEmptyTable", operand);
  const Dims indexStrides = rowMajorStrides(indices.dims), yStrides = rowMajorStrides(y.dims);
  host::Array lines = indices, places = y;
  lines.strides = indexStrides, places.strides = yStrides;
  lines = without(lines, axis), places = without(places, axis);
  ScatterElementsArgs args{y.data,
                           b.in[2].data,
                           operand,
                           elementType(y.dtype),
                           ScatterKind(int(reduction)),
                           lines.numElements(),
                           indices.dims[axis],
                           y.dims[axis],
                           yStrides[axis],
                           indexStrides[axis],
                           walkOf(lines.dims, places.strides),
                           walkOf(lines.dims, lines.strides)};
  kernel->add(launchKernel(launchScatterElements, "launchScatterElements", args));
  return kernel;
}

BoundKernel bindScatterNd(const host::Binding &b, Device &device) {
  host::Checks c(b);
  Scatter reduction;
  if (!scatterNdShape(c, b, reduction))
    return c.take();
  llvm::ArrayRef<int64_t> data = b.in[0].dims, indices = b.in[1].dims;
  const int64_t width = indices.back();
  auto kernel = startFrom(b.in[0], b.out[0]);
  const int64_t tuples = numElements(indices.drop_back()), line = numElements(data.drop_front(width));
  if (tuples * line == 0)
    return kernel;
  IndexOperand operand = indexOperand(b, device);
  if (b.out[0].numElements() == 0)
    return launchKernel(launchEmptyTable, "launchEmptyTable", operand);
  ScatterNdArgs args{b.out[0].data, b.in[2].data, operand, elementType(b.out[0].dtype), ScatterKind(int(reduction)),
                     int(width),    tuples,       line,    {}};
  for (int64_t k = 0; k < width; ++k)
    args.dims[k] = data[k];
  kernel->add(launchKernel(launchScatterNd, "launchScatterNd", args));
  return kernel;
}

BoundKernel bindCumSum(const host::Binding &b, Device &) {
  host::Checks c(b);
  int64_t axis, exclusive, reverse;
  if (!(c.arity(1, 1, 1) && c.axisAttr("axis", b.in[0].dims.size(), axis) &&
        c.intAttr("exclusive", exclusive, 0) && c.intAttr("reverse", reverse, 0) &&
        c.that(b.in[0].dtype != DType::Bool, "type: got bool, wanted numbers") && c.contiguous(b.in[0]) &&
        c.dims(b.out[0], b.in[0].dims) && c.dtype(b.out[0], b.in[0].dtype) && c.denseResults() && c.apart()))
    return c.take();
  const host::Array &x = b.in[0];
  if (x.numElements() == 0)
    return std::make_unique<Sequence>();
  llvm::ArrayRef<int64_t> dims = x.dims;
  const int64_t inner = numElements(dims.drop_front(axis + 1));
  CumSumArgs args{x.data,     b.out[0].data, elementType(x.dtype), numElements(dims.take_front(axis)) * inner,
                  dims[axis], inner,         exclusive != 0,       reverse != 0};
  return launchKernel(launchCumSum, "launchCumSum", args);
}

} // namespace shardc::cuda
