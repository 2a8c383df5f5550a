// SPDX-License-Identifier: Apache-2.0
// concat(x...){axis} and pad(x){before, after, value}: strided copies into a part of the result.
#include "runtime/host/Copy.h"
#include "runtime/host/FusedLoops.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/Shapes.h"
#include "runtime/host/Strided.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::host {
namespace {

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
  llvm::SmallVector<Array> parts;
  if (!concatParts(c, b, parts))
    return c.take();
  auto kernel = std::make_unique<Concat>();
  for (auto [x, part] : llvm::zip_equal(b.in, parts))
    kernel->add(makeCopy(x, part));
  return kernel;
}

BoundKernel bindPad(const Binding &b) {
  Checks c(b);
  Array part;
  double value;
  if (!(padPart(c, b, part, value) && c.that(part.dtype != DType::F16 && part.dtype != DType::BF16,
                                             "type: wanted none of 16-bit floats")))
    return c.take();
  return std::make_unique<Pad>(b.out[0], value, makeCopy(b.in[0], part));
}

} // namespace shardc::host
