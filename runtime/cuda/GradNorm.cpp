// SPDX-License-Identifier: Apache-2.0
// sum_squares(g) -> f64, grad_scale(count, scalars, sumsq...) -> grad_norm, grad_scale and loss_scale, as on the host; sums in an
// order that depends on sizes only.
#include "runtime/cuda/GradNorm.h"
#include "ir/plan/Scalars.h"
#include "runtime/cuda/DeviceTable.h"
#include "runtime/cuda/Launcher.h"

namespace shardc::cuda {
namespace {

using host::Array;
using host::Checks;

bool isScalar(Checks &c, const Array &a, DType dtype) { return c.dtype(a, dtype) && c.dims(a, {}); }

/// A kernel that adds up sums of squares; it owns the list of them.
template <typename Work> class OfSquares final : public Kernel {
public:
  OfSquares(const char *name, const Work &work, Enqueue<Work> enqueue, DeviceTable<Squares> squares)
      : name_(name), work_(work), enqueue_(enqueue), squares_(std::move(squares)) {}
  llvm::Error launch(cudaStream_t stream) override { return check(enqueue_(work_, nullptr, stream), name_); }

private:
  const char *name_;
  Work work_;
  Enqueue<Work> enqueue_;
  DeviceTable<Squares> squares_;
};

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
  if (!(c.arity(1, 1, 1) && checkFloat(c, b.in[0], "operand 0") && c.contiguous(b.in[0]) &&
        isScalar(c, b.out[0], DType::F64) && c.apart()))
    return c.take();
  SumSquaresWork work = {b.in[0].data, elementOf(b.in[0].dtype), b.in[0].numElements(), b.out[0].as<double>()};
  return launches("sum_squares", work, enqueueSumSquares, b, device, squaresWorkspace(work.count));
}

BoundKernel bindGradScale(const host::Binding &b, Device &) {
  Checks c(b);
  if (!(c.arity(2, 1 << 20, 2) && c.apart()))
    return c.take();
  GradScaleWork work = {};
  auto table = bindSquares(c, b, 2, work);
  if (!table)
    return table.takeError();
  return std::make_unique<OfSquares<GradScaleWork>>("grad_scale", work, enqueueGradScale, std::move(*table));
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
  return std::make_unique<OfSquares<LossScaleWork>>("loss_scale", work, enqueueLossScale, std::move(*table));
}

} // namespace shardc::cuda
