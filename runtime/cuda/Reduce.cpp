// SPDX-License-Identifier: Apache-2.0
// reduce_sum, reduce_max, reduce_min, reduce_prod (x){axes, keep_dims}. Sums of floats are kept in double;
// the order of every sum depends on shape, strides and device only.
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/ReduceLaunch.h"
#include "runtime/host/Strided.h"

namespace shardc::cuda {
namespace {

/// Blocks beyond which clusters gain nothing, for each multiprocessor.
constexpr int64_t kBlocksEach = 4;

/// How results are spread over blocks: `units` blocks do without sharing, each with `addends` for `threads`
/// threads a result.
int partsFor(int64_t units, int64_t addends, int64_t threads, const Device &device) {
  int parts = 1;
  while (parts < 8 && units * parts < device.multiprocessors() * kBlocksEach / 2 &&
         addends >= threads * 4 * parts * 2)
    parts *= 2;
  return parts;
}

BoundKernel bindReduce(const host::Binding &b, Device &device, FoldKind fold) {
  host::Checks c(b);
  llvm::SmallVector<int64_t> axes;
  int64_t keep;
  if (!(c.arity(1, 1, 1) && c.intsAttr("axes", axes) && c.intAttr("keep_dims", keep, 0)))
    return c.take();
  const host::Array &x = b.in[0], &y = b.out[0];
  const int64_t rank = x.dims.size();
  llvm::SmallVector<bool> isReduced(rank, false);
  for (int64_t axis : axes) {
    if (!c.that(axis >= -rank && axis < rank, "axes: wanted axes of " + formatDims(x.dims)))
      return c.take();
    isReduced[axis < 0 ? axis + rank : axis] = true;
  }
  Dims keptDims, keptStrides, reducedDims, reducedStrides, wanted;
  for (int64_t i = 0; i < rank; ++i) {
    (isReduced[i] ? reducedDims : keptDims).push_back(x.dims[i]);
    (isReduced[i] ? reducedStrides : keptStrides).push_back(x.strides[i]);
    if (!isReduced[i] || keep)
      wanted.push_back(isReduced[i] ? 1 : x.dims[i]);
  }
  const bool needsOne = fold == FoldKind::Max || fold == FoldKind::Min;
  if (!(c.dims(y, wanted) && c.dtype(y, x.dtype) && c.contiguous(y) && c.apart() &&
        c.that(x.dtype != DType::Bool, "type: got bool, wanted numbers") &&
        c.that(!needsOne || y.numElements() == 0 || x.numElements() > 0,
               "the largest of no elements is wanted")))
    return c.take();
  if (y.numElements() == 0)
    return std::make_unique<Sequence>();
  ReduceArgs args{x.data,
                  y.data,
                  elementType(x.dtype),
                  fold,
                  y.numElements(),
                  numElements(reducedDims),
                  walkOf(keptDims, keptStrides),
                  walkOf(reducedDims, reducedStrides),
                  0,
                  false,
                  1};
  host::collapse(keptDims, keptStrides);
  host::collapse(reducedDims, reducedStrides);
  // Where results lie side by side in x, neighbours are folded together.
  if (keptDims.back() > 1 && keptStrides.back() == 1 &&
      (reducedStrides.back() != 1 || reducedDims.back() == 1)) {
    args.columns = keptDims.back();
    const int64_t width = 16 / byteSize(x.dtype);
    args.vectors = args.columns % width == 0 && aligned(x.data, 16) && multiples(args.reduced, width);
    for (size_t d = 0; d + 1 < keptStrides.size(); ++d)
      args.vectors &= keptStrides[d] % width == 0;
    args.vectors |= args.addends == 0;
    const int64_t tile = args.vectors ? 8 * width : 32, threads = args.vectors ? 32 : 8;
    args.parts = partsFor(args.results / args.columns * ((args.columns + tile - 1) / tile), args.addends,
                          threads, device);
  } else if (args.addends > 512) {
    args.parts = partsFor(args.results, args.addends, 256, device);
  }
  return launchKernel(launchReduce, "launchReduce", args);
}

} // namespace

BoundKernel bindReduceSum(const host::Binding &b, Device &device) {
  return bindReduce(b, device, FoldKind::Sum);
}
BoundKernel bindReduceMax(const host::Binding &b, Device &device) {
  return bindReduce(b, device, FoldKind::Max);
}
BoundKernel bindReduceMin(const host::Binding &b, Device &device) {
  return bindReduce(b, device, FoldKind::Min);
}
BoundKernel bindReduceProd(const host::Binding &b, Device &device) {
  return bindReduce(b, device, FoldKind::Prod);
}

} // namespace shardc::cuda
