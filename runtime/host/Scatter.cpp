// SPDX-License-Identifier: Apache-2.0
// scatter_elements(data, indices, updates){axis, reduction}, scatter_nd(data, indices, updates)
// {reduction}, gather_nd(data, indices){batch_dims}, cum_sum(x){axis, exclusive, reverse}: small
// work (label shifts, masks) by the reference functions of ir/base/Movement.h, on one thread.
#include "ir/base/Movement.h"
#include "runtime/host/Checks.h"
#include "runtime/host/Fault.h"

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

bool reductionAttr(Checks &c, Scatter &reduction) {
  std::string text;
  if (!c.stringAttr("reduction", text))
    return false;
  std::optional<Scatter> parsed = parseScatter(text);
  reduction = parsed.value_or(Scatter::None);
  return c.that(parsed.has_value(),
                "attribute reduction: got '" + text + "', wanted none, add, mul, max or min");
}

bool checkIndexOp(Checks &c, unsigned operands) {
  if (!(c.arity(operands, operands, 1) && c.index(c.in(1)) && c.dtype(c.out(0), c.in(0).dtype) &&
        c.denseResults()))
    return false;
  for (unsigned i = 0; i < operands; ++i)
    if (!c.contiguous(c.in(i)))
      return false;
  return operands < 3 || c.dtype(c.in(2), c.in(0).dtype);
}

/// Adding up is not defined for truth values.
bool checkReduction(Checks &c, Scatter reduction) {
  return c.that(reduction == Scatter::None || c.in(0).dtype != DType::Bool,
                "reduction: wanted none for type bool");
}

} // namespace

BoundKernel bindScatterElements(const Binding &b) {
  Checks c(b);
  int64_t axis;
  Scatter reduction;
  if (!(checkIndexOp(c, 3) && reductionAttr(c, reduction) && checkReduction(c, reduction) &&
        c.axisAttr("axis", b.in[0].dims.size(), axis) && c.rank(b.in[1], b.in[0].dims.size()) &&
        c.dims(b.in[2], b.in[1].dims) && c.dims(b.out[0], b.in[0].dims) && c.apart({{0, 0}})))
    return c.take();
  for (size_t i = 0; i < b.in[0].dims.size(); ++i)
    if (!c.that(int64_t(i) == axis || b.in[1].dims[i] <= b.in[0].dims[i],
                "indices: got shape " + formatDims(b.in[1].dims) + ", wanted at most " +
                    formatDims(b.in[0].dims) + " beside the axis"))
      return c.take();
  return std::make_unique<ScatterElements>(b, axis, reduction);
}

BoundKernel bindScatterNd(const Binding &b) {
  Checks c(b);
  Scatter reduction;
  if (!(checkIndexOp(c, 3) && reductionAttr(c, reduction) && checkReduction(c, reduction) &&
        c.dims(b.out[0], b.in[0].dims) && c.apart({{0, 0}})))
    return c.take();
  const Dims &data = b.in[0].dims, &indices = b.in[1].dims;
  if (!c.that(!indices.empty() && indices.back() <= int64_t(data.size()),
              "indices: got shape " + formatDims(indices) + ", wanted a last dim of at most " +
                  std::to_string(data.size())))
    return c.take();
  Dims wanted(indices.begin(), indices.end() - 1);
  wanted.append(data.begin() + indices.back(), data.end());
  if (!c.dims(b.in[2], wanted))
    return c.take();
  return std::make_unique<ScatterNd>(b, reduction);
}

BoundKernel bindGatherNd(const Binding &b) {
  Checks c(b);
  int64_t batch;
  if (!(checkIndexOp(c, 2) && c.intAttr("batch_dims", batch, 0) && c.apart()))
    return c.take();
  const Dims &data = b.in[0].dims, &indices = b.in[1].dims;
  int64_t common = int64_t(std::min(data.size(), indices.size()));
  if (!(c.that(batch >= 0 && batch < common, "attribute batch_dims: wanted fewer than the ranks") &&
        c.that(indices.back() <= int64_t(data.size()) - batch,
               "indices: got shape " + formatDims(indices) + ", wanted a shorter last dim") &&
        c.that(llvm::ArrayRef(data).take_front(batch) == llvm::ArrayRef(indices).take_front(batch),
               "the first " + std::to_string(batch) + " dims differ")))
    return c.take();
  Dims wanted(indices.begin(), indices.end() - 1);
  wanted.append(data.begin() + batch + indices.back(), data.end());
  if (!c.dims(b.out[0], wanted))
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
