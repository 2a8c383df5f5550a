// SPDX-License-Identifier: Apache-2.0
// gather(data, indices){axis}, gather_grad(dy, indices){axis, size} and gather_nd(data, indices){batch_dims}.
// Indices are checked when running; negative ones count from the end.
#include "runtime/cuda/GatherLaunch.h"
#include "runtime/cuda/IndexOperands.h"
#include "runtime/host/Shapes.h"

namespace shardc::cuda {

using host::GatherShape;

BoundKernel bindGather(const host::Binding &b, Device &device) {
  host::Checks c(b);
  GatherShape s;
  if (!(c.arity(2, 2, 1) && gatherShape(c, b.in[0], b.in[1], b.out[0], s) && c.apart()))
    return c.take();
  if (s.empty())
    return std::make_unique<Sequence>();
  IndexOperand indices = indexOperand(b, device);
  if (s.size == 0)
    return launchKernel(launchEmptyTable, "launchEmptyTable", indices);
  const int64_t row = s.inner * byteSize(b.in[0].dtype);
  const int64_t width = commonWidth(byteSize(b.in[0].dtype), row, {b.in[0].data, b.out[0].data});
  const int64_t chunks = row / width, total = s.outer * s.count * chunks;
  GatherRows args{b.in[0].data,           b.out[0].data,          indices, int(width), total, s.size, s.count,
                  Divider(chunks, total), Divider(s.count, total)};
  return launchKernel(launchGather, "launchGather", args);
}

BoundKernel bindGatherGrad(const host::Binding &b, Device &device) {
  host::Checks c(b);
  GatherShape s;
  int64_t size;
  if (!(c.arity(2, 2, 1) && c.intAttr("size", size) && checkFloat(c, b.in[0], "dy") &&
        gatherShape(c, b.out[0], b.in[1], b.in[0], s) &&
        c.that(size == s.size, "attribute size: wanted that of the result") && c.apart() &&
        c.that(s.outer * s.size < (int64_t(1) << 31) && s.inner < (int64_t(1) << 24), "result: too large")))
    return c.take();
  IndexOperand indices = indexOperand(b, device);
  if (s.size == 0 && !s.empty())
    return launchKernel(launchEmptyTable, "launchEmptyTable", indices);
  if (s.outer * s.size * s.inner == 0)
    return std::make_unique<Sequence>();
  GatherGradRows args{b.in[0].data, b.out[0].data, indices, elementType(b.in[0].dtype),
                      s.outer,      s.size,        s.count, s.inner};
  return launchKernel(launchGatherGrad, "launchGatherGrad", args);
}

BoundKernel bindGatherNd(const host::Binding &b, Device &device) {
  host::Checks c(b);
  int64_t batch;
  if (!gatherNdShape(c, b, batch))
    return c.take();
  llvm::ArrayRef<int64_t> data = b.in[0].dims, indices = b.in[1].dims;
  const int64_t width = indices.back();
  const int64_t line = numElements(data.drop_front(batch + width)), tuples = numElements(indices.drop_back());
  if (tuples * line == 0)
    return std::make_unique<Sequence>();
  IndexOperand operand = indexOperand(b, device);
  if (numElements(data.slice(batch, width)) == 0)
    return launchKernel(launchEmptyTable, "launchEmptyTable", operand);
  const int64_t bytes = line * byteSize(b.in[0].dtype);
  const int64_t piece = commonWidth(byteSize(b.in[0].dtype), bytes, {b.in[0].data, b.out[0].data});
  const int64_t pieces = bytes / piece, total = tuples * pieces;
  GatherNdArgs args{b.in[0].data,
                    b.out[0].data,
                    operand,
                    int(piece),
                    int(width),
                    total,
                    numElements(data.slice(batch, width)) * pieces,
                    {},
                    Divider(pieces, total),
                    Divider(tuples / numElements(data.take_front(batch)), total)};
  for (int64_t k = 0; k < width; ++k)
    args.dims[k] = data[batch + k];
  return launchKernel(launchGatherNd, "launchGatherNd", args);
}

} // namespace shardc::cuda
