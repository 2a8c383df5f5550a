// SPDX-License-Identifier: Apache-2.0
// sum_squares(g...) -> f64[n], grad_scale(count, scalars, sumsq...) -> grad_norm, grad_scale and loss_scale, as on the host; sums in an
// order that depends on sizes only.
#include "runtime/cuda/GradNorm.h"
#include "ir/plan/Scalars.h"
#include "runtime/cuda/DeviceTable.h"
#include "runtime/cuda/Launch.h"

namespace shardc::cuda {
namespace {

using host::Array;
using host::Checks;

bool isScalar(Checks &c, const Array &a, DType dtype) { return c.dtype(a, dtype) && c.dims(a, {}); }

/// Operands (count, scalars, ... sums from `first` on) and the first two results, grad_norm and grad_scale.
llvm::Expected<DeviceTable<Squares>> bindSquares(Checks &c, const host::Binding &b, size_t first, GradScaleWork &work) {
  if (!(checkFloat(c, b.in[0], "count") && c.dims(b.in[0], {}) && c.dtype(b.in[1], DType::F64) && c.dims(b.in[1], {kNumScalars}) &&
        c.contiguous(b.in[1]) && isScalar(c, b.out[0], DType::F64) && isScalar(c, b.out[1], DType::F64)))
    return c.take();
  std::vector<Squares> squares;
  for (size_t i = first; i < b.in.size(); ++i) {
    if (!(c.that(bool(b.in[i]), "absent sum of squares") && c.dtype(b.in[i], DType::F64) && c.contiguous(b.in[i])))
      return c.take();
    squares.push_back({b.in[i].as<double>(), b.in[i].numElements()});
  }
  DeviceTable<Squares> table;
  if (!squares.empty()) {
    auto made = DeviceTable<Squares>::of(squares);
    if (!made)
      return made.takeError();
    table = std::move(*made);
  }
  work = {anyFloats(b.in[0]),  b.in[1].as<double>(),  table.data(),
          int(squares.size()), b.out[0].as<double>(), b.out[1].as<double>()};
  return table;
}

} // namespace

BoundKernel bindSumSquares(const host::Binding &b, Device &device) {
  Checks c(b);
  if (!(c.arity(1, 1 << 20, 1) && c.dtype(b.out[0], DType::F64) && c.dims(b.out[0], {int64_t(b.in.size())}) &&
        c.denseResults() && c.apart()))
    return c.take();
  std::vector<SquaresOf> arrays;
  int64_t blocks = 0;
  for (const Array &g : b.in) {
    if (!(checkFloat(c, g, "operand") && c.contiguous(g)))
      return c.take();
    arrays.push_back({anyFloats(g), g.numElements(), blocks});
    blocks += squaresWorkspace(g.numElements()) / int64_t(sizeof(double));
  }
  if (!c.that(blocks < (int64_t(1) << 31), "operands: too large"))
    return c.take();
  auto table = DeviceTable<SquaresOf>::of(arrays);
  if (!table)
    return table.takeError();
  auto scratch = KernelScratch::of(b, device, blocks * int64_t(sizeof(double)));
  if (!scratch)
    return scratch.takeError();
  const SumSquaresWork work = {table->data(), int(arrays.size()), blocks, b.out[0].as<double>()};
  return kernelOf("sum_squares", [work, s = *scratch, owned = std::move(*table)](cudaStream_t stream) {
    return enqueueSumSquares(work, s.data(), stream);
  });
}

BoundKernel bindGradScale(const host::Binding &b, Device &) {
  Checks c(b);
  if (!(c.arity(2, 1 << 20, 2) && c.apart()))
    return c.take();
  GradScaleWork work = {};
  auto table = bindSquares(c, b, 2, work);
  if (!table)
    return table.takeError();
  return kernelOf("grad_scale",
                  [work, owned = std::move(*table)](cudaStream_t stream) { return enqueueGradScale(work, stream); });
}

BoundKernel bindLossScale(const host::Binding &b, Device &) {
  Checks c(b);
  LossScaleWork work = {};
  auto isDoubles = [&](const Array &a, int64_t n) { return c.dtype(a, DType::F64) && c.dims(a, {n}) && c.contiguous(a); };
  if (!(c.arity(3, 1 << 20, 6) && isDoubles(b.in[2], kNumScaleStates) && isScalar(c, b.out[2], DType::F64) &&
        isScalar(c, b.out[3], DType::F64) && isDoubles(b.out[4], kNumScalars) && isDoubles(b.out[5], kNumScaleStates) &&
        c.that(sameArray(b.out[5], b.in[2]), "result 5: wanted the memory of operand 2") && c.apart({{5, 2}}) &&
        c.floatAttr("initial", work.initial) && c.floatAttr("unit", work.unit)))
    return c.take();
  work.lossScale = b.out[2].as<double>(), work.skipped = b.out[3].as<double>();
  work.scalars = b.out[4].as<double>(), work.state = b.out[5].as<double>();
  auto table = bindSquares(c, b, 3, work.sum);
  if (!table)
    return table.takeError();
  return kernelOf("loss_scale",
                  [work, owned = std::move(*table)](cudaStream_t stream) { return enqueueLossScale(work, stream); });
}

} // namespace shardc::cuda
