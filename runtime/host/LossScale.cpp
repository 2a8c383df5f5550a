// SPDX-License-Identifier: Apache-2.0
// loss_scale(count, scalars, state, sumsq...){initial, unit} -> grad_norm, grad_scale, loss_scale, skipped, scalars, state; the state in
// place. Sums of squares that are not finite skip the update.
#include "runtime/LossScale.h"
#include "runtime/host/Rows.h"
#include <algorithm>

namespace shardc::host {
namespace {

template <typename T> class LossScale final : public Kernel {
public:
  LossScale(const Binding &b, double initial, double unit)
      : counter_(b.in[0].as<T>()), given_(b.in[1].as<double>()), state_(b.in[2].as<double>()), scalars_(b.out[4].as<double>()),
        initial_(initial), unit_(unit) {
    for (int i = 0; i < 4; ++i)
      numbers_[i] = b.out[i].as<double>();
    for (size_t i = 3; i < b.in.size(); ++i)
      squares_.push_back({b.in[i].as<double>(), size_t(b.in[i].numElements())});
  }

  void run() override {
    double sum = 0;
    for (llvm::ArrayRef<double> squares : squares_)
      for (double square : squares)
        sum += square;
    std::copy_n(given_, int(kNumScalars), scalars_);
    LossScaleNumbers n = stepLossScale(*counter_, sum, initial_, unit_, scalars_, state_);
    *numbers_[0] = n.norm, *numbers_[1] = n.gradScale, *numbers_[2] = n.lossScale, *numbers_[3] = n.skipped;
  }

private:
  const T *counter_;
  const double *given_;
  double *state_, *scalars_, *numbers_[4];
  std::vector<llvm::ArrayRef<double>> squares_;
  double initial_, unit_;
};

bool isDoubles(Checks &c, const Array &a, llvm::ArrayRef<int64_t> dims) {
  return c.dtype(a, DType::F64) && c.dims(a, dims) && c.contiguous(a);
}

} // namespace

BoundKernel bindLossScale(const Binding &b) {
  Checks c(b);
  double initial, unit;
  if (!(c.arity(3, 1 << 20, 6) && c.real(b.in[0]) && c.dims(b.in[0], {}) && isDoubles(c, b.in[1], {kNumScalars}) &&
        isDoubles(c, b.in[2], {kNumScaleStates}) && c.floatAttr("initial", initial) && c.floatAttr("unit", unit)))
    return c.take();
  for (int i = 0; i < 6; ++i)
    if (!isDoubles(c, b.out[i], i < 4 ? Dims() : Dims{i == 4 ? int64_t(kNumScalars) : int64_t(kNumScaleStates)}))
      return c.take();
  if (!(c.that(sameArray(b.out[5], b.in[2]), "result 5: wanted the memory of operand 2") && c.apart({{5, 2}})))
    return c.take();
  for (size_t i = 3; i < b.in.size(); ++i)
    if (!(c.that(bool(b.in[i]), "absent sum of squares") && c.dtype(b.in[i], DType::F64) && c.contiguous(b.in[i])))
      return c.take();
  return makeReal<LossScale>(b.in[0].dtype, b, initial, unit);
}

} // namespace shardc::host
