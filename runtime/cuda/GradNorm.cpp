// SPDX-License-Identifier: Apache-2.0
// sum_squares(g) -> f64 and grad_scale(count, scalars, sumsq...) -> grad_norm, grad_scale, as on the host; sums in an
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

class GradScale final : public Kernel {
public:
  GradScale(const GradScaleWork &work, DeviceTable<Squares> squares) : work_(work), squares_(std::move(squares)) {
    work_.squares = squares_.data();
  }
  llvm::Error launch(cudaStream_t stream) override {
    return check(enqueueGradScale(work_, nullptr, stream), "grad_scale");
  }

private:
  GradScaleWork work_;
  DeviceTable<Squares> squares_;
};

} // namespace

BoundKernel bindSumSquares(const host::Binding &b, Device &device) {
  Checks c(b);
  if (!(c.arity(1, 1, 1) && checkFloat(c, b.in[0], "operand 0") && c.contiguous(b.in[0]) &&
        isScalar(c, b.out[0], DType::F64) && c.apart()))
    return c.take();
  SumSquaresWork work = {b.in[0].data, elementOf(b.in[0].dtype), b.in[0].numElements(), b.out[0].as<double>()};
  return launches("sum_squares", work, enqueueSumSquares, b, device, squaresWorkspace(work.count));
}

BoundKernel bindGradScale(const host::Binding &b, Device &device) {
  Checks c(b);
  if (!(c.arity(2, 1 << 20, 2) && checkFloat(c, b.in[0], "count") && c.dims(b.in[0], {}) &&
        c.dtype(b.in[1], DType::F64) && c.dims(b.in[1], {kNumScalars}) && c.contiguous(b.in[1]) &&
        isScalar(c, b.out[0], DType::F64) && isScalar(c, b.out[1], DType::F64) && c.apart()))
    return c.take();
  std::vector<Squares> squares;
  for (size_t i = 2; i < b.in.size(); ++i) {
    if (!(c.that(bool(b.in[i]), "absent sum of squares") && c.dtype(b.in[i], DType::F64) && c.contiguous(b.in[i])))
      return c.take();
    squares.push_back({b.in[i].as<double>(), b.in[i].numElements()});
  }
  GradScaleWork work = {anyFloats(b.in[0]),  b.in[1].as<double>(),  nullptr,
                        int(squares.size()), b.out[0].as<double>(), b.out[1].as<double>()};
  DeviceTable<Squares> table;
  if (!squares.empty()) {
    auto made = DeviceTable<Squares>::of(squares);
    if (!made)
      return made.takeError();
    table = std::move(*made);
  }
  return std::make_unique<GradScale>(work, std::move(table));
}

} // namespace shardc::cuda
