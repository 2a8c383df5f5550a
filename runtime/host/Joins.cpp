// SPDX-License-Identifier: Apache-2.0
// concat(x...){axis} and pad(x){before, after, value}: strided copies into a part of the result.
#include "runtime/host/Checks.h"
#include "runtime/host/Copy.h"
#include "runtime/host/FusedLoops.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/Strided.h"

namespace shardc::host {
namespace {

/// The part of `whole` that starts at `starts` and has `dims`.
Array part(const Array &whole, llvm::ArrayRef<int64_t> starts, const Dims &dims) {
  Array a = whole;
  a.dims = dims;
  int64_t offset = 0;
  for (size_t i = 0; i < dims.size(); ++i)
    offset += starts[i] * whole.strides[i];
  a.data = whole.as<char>() + (a.numElements() ? offset * byteSize(whole.dtype) : 0);
  return a;
}

class Concat final : public Kernel {
public:
  void add(std::unique_ptr<Kernel> copy) { copies_.push_back(std::move(copy)); }
  void run() override {
    for (auto &copy : copies_)
      copy->run();
  }

private:
  std::vector<std::unique_ptr<Kernel>> copies_;
};

class Pad final : public Kernel {
public:
  Pad(const Array &y, double value, std::unique_ptr<Kernel> copy)
      : data_(y.as<char>()), dtype_(y.dtype), count_(y.numElements()), value_(value),
        copy_(std::move(copy)) {}
  void run() override {
    parallelFor(count_, 1 << 15, [&](int64_t begin, int64_t end, int) {
      fillRegister(data_ + begin * byteSize(dtype_), dtype_, value_, end - begin);
    });
    copy_->run();
  }

private:
  char *data_;
  DType dtype_;
  int64_t count_;
  double value_;
  std::unique_ptr<Kernel> copy_;
};

} // namespace

BoundKernel bindConcat(const Binding &b) {
  Checks c(b);
  int64_t axis;
  if (!(c.arity(1, 1 << 20, 1) && c.denseResults() &&
        c.axisAttr("axis", b.out[0].dims.size(), axis) && c.apart()))
    return c.take();
  const Array &y = b.out[0];
  auto kernel = std::make_unique<Concat>();
  Dims starts(y.dims.size(), 0);
  for (size_t i = 0; i < b.in.size(); ++i) {
    const Array &x = b.in[i];
    if (!(c.that(bool(x), "operand " + std::to_string(i) + " is absent") &&
          c.rank(x, y.dims.size()) && c.dtype(x, y.dtype)))
      return c.take();
    Dims wanted = y.dims;
    wanted[axis] = x.dims[axis];
    if (!(c.dims(x, wanted) && c.that(x.dims[axis] <= y.dims[axis] - starts[axis],
                                      "operands are longer than the result")))
      return c.take();
    kernel->add(makeCopy(x, part(y, starts, x.dims)));
    starts[axis] += x.dims[axis];
  }
  if (!c.that(starts[axis] == y.dims[axis], "operands are shorter than the result"))
    return c.take();
  return kernel;
}

BoundKernel bindPad(const Binding &b) {
  Checks c(b);
  llvm::SmallVector<int64_t> before, after;
  double value;
  if (!(c.arity(1, 1, 1) && c.denseResults() && c.intsAttr("before", before) &&
        c.intsAttr("after", after) && c.floatAttr("value", value) &&
        c.dtype(b.out[0], b.in[0].dtype) && c.rank(b.out[0], b.in[0].dims.size()) && c.apart()))
    return c.take();
  const Array &x = b.in[0], &y = b.out[0];
  if (!(c.that(before.size() == x.dims.size() && after.size() == x.dims.size(),
               "attributes before and after: wanted one for each dim") &&
        c.that(x.dtype != DType::F16 && x.dtype != DType::BF16,
               "type: wanted none of 16-bit floats")))
    return c.take();
  for (size_t i = 0; i < x.dims.size(); ++i) {
    int64_t room = y.dims[i] - x.dims[i];
    if (!c.that(before[i] >= 0 && before[i] <= room && after[i] == room - before[i],
                "result shape: got " + formatDims(y.dims) + ", wanted the padded " +
                    formatDims(x.dims)))
      return c.take();
  }
  return std::make_unique<Pad>(y, value, makeCopy(x, part(y, before, x.dims)));
}

} // namespace shardc::host
