// SPDX-License-Identifier: Apache-2.0
// column_sums(x0, x1 ...) -> y0, y1 ...: each the sum over dim 0, added in double in the order of the rows.
#include "ir/base/DTypeDispatch.h"
#include "runtime/host/Checks.h"
#include "runtime/host/Parallel.h"

namespace shardc::host {
namespace {

class ColumnSums final : public Kernel {
public:
  explicit ColumnSums(const Binding &b) : in_(b.in), out_(b.out) {}

  void run() override {
    for (size_t k = 0; k < in_.size(); ++k)
      parallelFor(out_[k].numElements(), 1 << 12, [&](int64_t begin, int64_t end, int) {
        in_[k].dtype == DType::F32 ? sum<float>(k, begin, end) : sum<double>(k, begin, end);
      });
  }

private:
  template <typename From> void sum(size_t k, int64_t begin, int64_t end) const {
    const int64_t n = out_[k].numElements(), rows = in_[k].dims[0];
    const From *x = in_[k].as<From>();
    withType(out_[k].dtype, [&]<typename T>() {
      for (int64_t i = begin; i < end; ++i) {
        double total = 0;
        for (int64_t r = 0; r < rows; ++r)
          total += x[r * n + i];
        out_[k].as<T>()[i] = T(typename ComputeType<T>::Type(total));
      }
    });
  }

  llvm::SmallVector<Array, 4> in_;
  llvm::SmallVector<Array, 2> out_;
};

} // namespace

BoundKernel bindColumnSums(const Binding &b) {
  Checks c(b);
  if (!c.that(!b.in.empty() && b.in.size() == b.out.size(), "operands: wanted one or more, and a result for each"))
    return c.take();
  for (size_t k = 0; k < b.in.size(); ++k)
    if (!(c.that(b.in[k] && b.out[k], "absent operand or result") && c.real(b.in[k]) && c.contiguous(b.in[k]) &&
          c.that(!b.in[k].dims.empty(), "operand: got a scalar, wanted rank 1 or more") &&
          c.dims(b.out[k], llvm::ArrayRef(b.in[k].dims).drop_front()) &&
          c.that(isFloat(b.out[k].dtype), "result: wanted a float type")))
      return c.take();
  if (!(c.denseResults() && c.apart()))
    return c.take();
  return std::make_unique<ColumnSums>(b);
}

} // namespace shardc::host
