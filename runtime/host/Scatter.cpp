// SPDX-License-Identifier: Apache-2.0
// scatter_elements(data, indices, updates){axis, reduction}, scatter_nd(data, indices, updates)
// {reduction}, gather_nd(data, indices){batch_dims}, cum_sum(x){axis, exclusive, reverse}: small
// work (label shifts, masks) by the reference functions of ir/base/Movement.h, on one thread.
#include "runtime/host/Fault.h"
#include "runtime/host/IndexShapes.h"

namespace shardc::host {
namespace {

/// What the kernels here share: contiguous operands, and an index operand that is checked.
class IndexKernel : public Kernel {
public:
  IndexKernel(const Binding &b)
      : data_(b.in[0]), indexArray_(b.in[1]),
        y_(b.out[0]), indices_{b.in[1].data, b.in[1].dtype, b.in[1].numElements()}, check_{
                                                                                        b.fault,
                                                                                        b.place} {}

protected:
  void copyData() {
    if (y_.data != data_.data)
      std::memcpy(y_.data, data_.data, y_.numElements() * byteSize(y_.dtype));
  }
  /// `bad` is the position of an index outside [-limit, limit), or kAllInRange.
  void judge(int64_t bad, int64_t limit) {
    if (bad != kAllInRange)
      check_.fault->report(check_.place, check_.what, indices_[bad], -limit, limit);
  }
  Array data_, indexArray_, y_;
  Indices indices_;
  IndexCheck check_;
};

class ScatterElements final : public IndexKernel {
public:
  ScatterElements(const Binding &b, int64_t axis, Scatter reduction)
      : IndexKernel(b), updates_(b.in[2].data), axis_(axis), reduction_(reduction) {}
  void run() override {
    copyData();
    judge(scatterElements(y_.data, y_.dims, indices_, indexArray_.dims, updates_, axis_, reduction_,
                          y_.dtype),
          y_.dims[axis_]);
  }

private:
  const void *updates_;
  int64_t axis_;
  Scatter reduction_;
};

class ScatterNd final : public IndexKernel {
public:
  ScatterNd(const Binding &b, Scatter reduction)
      : IndexKernel(b), updates_(b.in[2].data), reduction_(reduction) {}
  void run() override {
    copyData();
    int64_t bad =
        scatterNd(y_.data, y_.dims, indices_, indexArray_.dims, updates_, reduction_, y_.dtype);
    judge(bad, bad == kAllInRange ? 0 : y_.dims[bad % indexArray_.dims.back()]);
  }

private:
  const void *updates_;
  Scatter reduction_;
};

class GatherNd final : public IndexKernel {
public:
  GatherNd(const Binding &b, int64_t batchDims) : IndexKernel(b), batchDims_(batchDims) {}
  void run() override {
    int64_t bad = gatherNd(y_.data, data_.data, data_.dims, indices_, indexArray_.dims, batchDims_,
                           byteSize(y_.dtype));
    judge(bad, bad == kAllInRange ? 0 : data_.dims[batchDims_ + bad % indexArray_.dims.back()]);
  }

private:
  int64_t batchDims_;
};

class CumSum final : public Kernel {
public:
  CumSum(const Binding &b, int64_t axis, bool exclusive, bool reverse)
      : x_(b.in[0].data), y_(b.out[0].data), view_(b.in[0].dims, axis), exclusive_(exclusive),
        reverse_(reverse), dtype_(b.in[0].dtype) {}
  void run() override { cumSum(y_, x_, view_, exclusive_, reverse_, dtype_); }

private:
  const void *x_;
  void *y_;
  AxisView view_;
  bool exclusive_, reverse_;
  DType dtype_;
};

} // namespace

BoundKernel bindScatterElements(const Binding &b) {
  Checks c(b);
  int64_t axis;
  Scatter reduction;
  if (!scatterElementsShape(c, b, axis, reduction))
    return c.take();
  return std::make_unique<ScatterElements>(b, axis, reduction);
}

BoundKernel bindScatterNd(const Binding &b) {
  Checks c(b);
  Scatter reduction;
  if (!scatterNdShape(c, b, reduction))
    return c.take();
  return std::make_unique<ScatterNd>(b, reduction);
}

BoundKernel bindGatherNd(const Binding &b) {
  Checks c(b);
  int64_t batch;
  if (!gatherNdShape(c, b, batch))
    return c.take();
  return std::make_unique<GatherNd>(b, batch);
}

BoundKernel bindCumSum(const Binding &b) {
  Checks c(b);
  int64_t axis, exclusive, reverse;
  if (!(c.arity(1, 1, 1) && c.axisAttr("axis", b.in[0].dims.size(), axis) &&
        c.intAttr("exclusive", exclusive, 0) && c.intAttr("reverse", reverse, 0) &&
        c.that(b.in[0].dtype != DType::Bool, "type: got bool, wanted numbers") &&
        c.contiguous(b.in[0]) && c.dims(b.out[0], b.in[0].dims) &&
        c.dtype(b.out[0], b.in[0].dtype) && c.denseResults() && c.apart()))
    return c.take();
  return std::make_unique<CumSum>(b, axis, exclusive, reverse);
}

} // namespace shardc::host
