// SPDX-License-Identifier: Apache-2.0
// column_sums(x0, x1 ...) -> y0, y1 ...: each the sum over dim 0.
#include "runtime/cuda/ColumnSumsLaunch.h"
#include "runtime/cuda/Launch.h"

namespace shardc::cuda {
namespace {

constexpr int64_t kMost = int64_t(1) << 30;

bool good(host::Checks &c, const host::Array &x, const host::Array &y) {
  return c.that(x && y, "absent operand or result") && c.real(x) && c.contiguous(x) &&
         c.that(!x.dims.empty(), "operand: got a scalar, wanted rank 1 or more") &&
         c.dims(y, llvm::ArrayRef(x.dims).drop_front()) && checkFloat(c, y, "sum") &&
         c.that(x.dims[0] < kMost && y.numElements() < kMost, "operand: got too many rows or columns");
}

} // namespace

BoundKernel bindColumnSums(const host::Binding &b, Device &) {
  host::Checks c(b);
  if (!c.that(!b.in.empty() && b.in.size() == b.out.size(), "operands: wanted one or more, and a result for each"))
    return c.take();
  auto kernel = std::make_unique<Sequence>();
  ColumnSumsArgs args = {};
  auto flush = [&] {
    if (args.blocks > 0)
      kernel->add(launchKernel(launchColumnSums, "launchColumnSums", args));
    args = {};
  };
  for (size_t k = 0; k < b.in.size(); ++k) {
    const host::Array &x = b.in[k], &y = b.out[k];
    if (!good(c, x, y))
      return c.take();
    const bool isDouble = x.dtype == DType::F64;
    const int64_t columns = y.numElements(), blocks = (columns + kColumnSumTile - 1) / kColumnSumTile;
    if (columns == 0)
      continue;
    if (args.count == kMostColumnSums || (args.count > 0 && args.isDouble != isDouble) || args.blocks + blocks > kMost)
      flush();
    args.isDouble = isDouble;
    args.sums[args.count++] = {x.data, anyFloats(y), int(x.dims[0]), int(columns), args.blocks};
    args.blocks += int(blocks);
  }
  if (!(c.denseResults() && c.apart()))
    return c.take();
  flush();
  return kernel;
}

} // namespace shardc::cuda
