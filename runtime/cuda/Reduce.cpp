// SPDX-License-Identifier: Apache-2.0
// reduce_sum, reduce_max, reduce_min, reduce_prod (x){axes, keep_dims}. Sums of floats are kept in double;
// the order of every sum depends on shape, strides and device only.
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/ReduceLaunch.h"
#include "runtime/host/Shapes.h"
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
  host::ReduceShape s;
  if (!(host::reduceShape(c, b, fold == FoldKind::Max || fold == FoldKind::Min, s) &&
        c.that(b.in[0].dtype != DType::Bool, "type: got bool, wanted numbers")))
    return c.take();
  const host::Array &x = b.in[0], &y = b.out[0];
  if (y.numElements() == 0)
    return std::make_unique<Sequence>();
  ReduceArgs args{x.data,
                  y.data,
                  elementType(x.dtype),
                  fold,
                  y.numElements(),
                  numElements(s.reducedDims),
                  walkOf(s.keptDims, s.keptStrides),
                  walkOf(s.reducedDims, s.reducedStrides),
                  0,
                  false,
                  1};
  host::collapse(s.keptDims, s.keptStrides);
  host::collapse(s.reducedDims, s.reducedStrides);
  // Where results lie side by side in x, neighbours are folded together.
  if (s.keptDims.back() > 1 && s.keptStrides.back() == 1 &&
      (s.reducedStrides.back() != 1 || s.reducedDims.back() == 1)) {
    args.columns = s.keptDims.back();
    const int64_t width = 16 / byteSize(x.dtype);
    args.vectors = args.columns % width == 0 && aligned(x.data, 16) && multiples(args.reduced, width);
    for (size_t d = 0; d + 1 < s.keptStrides.size(); ++d)
      args.vectors &= s.keptStrides[d] % width == 0;
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
