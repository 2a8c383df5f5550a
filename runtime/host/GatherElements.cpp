// SPDX-License-Identifier: Apache-2.0
// gather_elements(data, indices){axis} and gather_elements_grad(dy, indices){axis, size}: one index
// for each element. Operands may have any strides. Indices are checked when running; negative ones
// count from the end.
#include "runtime/host/Fault.h"
#include "runtime/host/IndexShapes.h"
#include "runtime/host/Rows.h"

namespace shardc::host {
namespace {

Array without(const Array &a, int64_t axis) {
  Array b = a;
  b.dims.erase(b.dims.begin() + axis);
  b.strides.erase(b.strides.begin() + axis);
  return b;
}

/// The dims of `like` with the strides of `a`: the corner of `a` that the indices cover.
Walk walkAs(const Array &a, const Array &like) { return Walk::of(like.dims, a.strides); }

template <typename B, typename I> class GatherElements final : public Kernel {
public:
  GatherElements(const Binding &b, int64_t axis)
      : data_(b.in[0].as<B>()), indices_(b.in[1].as<I>()),
        y_(b.out[0].as<B>()), check_{b.fault, b.place} {
    const Array &data = b.in[0], &indices = b.in[1];
    int64_t last = int64_t(data.dims.size()) - 1;
    size_ = data.dims[axis];
    along_ = data.strides[axis];
    // Rows along the last dim, in which the data advances too unless it is the axis.
    width_ = indices.dims[last];
    indexStep_ = indices.strides[last];
    dataStep_ = axis == last ? 0 : data.strides[last];
    Array outer = data;
    outer.strides[axis] = 0;
    indexRows_ = Rows::of(indices, 1);
    dataWalk_ = walkAs(without(outer, last), without(indices, last));
  }

  void run() override {
    if (indexRows_.count * width_ == 0)
      return;
    if (size_ == 0)
      return check_.fault->report(check_.place, check_.what, *indices_, 0, 0);
    parallelFor(indexRows_.count, indexRows_.grain(), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) {
        const B *data = data_ + dataWalk_.offset(r);
        const I *indices = indices_ + indexRows_[r];
        B *y = y_ + r * width_;
        for (int64_t j = 0; j < width_; ++j)
          y[j] = data[j * dataStep_ + check_.wrapped(indices[j * indexStep_], size_) * along_];
      }
    });
  }

private:
  const B *data_;
  const I *indices_;
  B *y_;
  int64_t size_, along_, width_, indexStep_, dataStep_;
  Rows indexRows_;
  Walk dataWalk_;
  IndexCheck check_;
};

// Lines along the axis are independent of each other; inside one, additions run in order.
template <typename T, typename I> class GatherElementsGrad final : public Kernel {
public:
  GatherElementsGrad(const Binding &b, int64_t axis)
      : dy_(b.in[0].as<T>()), indices_(b.in[1].as<I>()),
        dx_(b.out[0].as<T>()), check_{b.fault, b.place} {
    const Array &dy = b.in[0], &indices = b.in[1], &dx = b.out[0];
    count_ = dy.dims[axis];
    size_ = dx.dims[axis];
    dyStep_ = dy.strides[axis];
    indexStep_ = indices.strides[axis];
    dxStep_ = dx.strides[axis];
    Array lines = without(dy, axis);
    lines_ = lines.numElements();
    dyWalk_ = walkAs(lines, lines);
    indexWalk_ = walkAs(without(indices, axis), lines);
    dxWalk_ = walkAs(without(dx, axis), lines);
  }

  void run() override {
    if (size_ == 0 && lines_ * count_ > 0)
      return check_.fault->report(check_.place, check_.what, *indices_, 0, 0);
    parallelFor(lines_, 1 + (1 << 13) / (count_ + size_ + 1), [&](int64_t begin, int64_t end, int) {
      for (int64_t line = begin; line < end; ++line) {
        T *dx = dx_ + dxWalk_.offset(line);
        const T *dy = dy_ + dyWalk_.offset(line);
        const I *indices = indices_ + indexWalk_.offset(line);
        for (int64_t i = 0; i < size_; ++i)
          dx[i * dxStep_] = 0;
        for (int64_t i = 0; i < count_; ++i)
          dx[check_.wrapped(indices[i * indexStep_], size_) * dxStep_] += dy[i * dyStep_];
      }
    });
  }

private:
  const T *dy_;
  const I *indices_;
  T *dx_;
  int64_t count_, size_, lines_, dyStep_, indexStep_, dxStep_;
  Walk dyWalk_, indexWalk_, dxWalk_;
  IndexCheck check_;
};

} // namespace

BoundKernel bindGatherElements(const Binding &b) {
  Checks c(b);
  int64_t axis;
  if (!gatherElementsShape(c, b, axis))
    return c.take();
  return withBits(b.in[0].dtype, [&](auto *t) -> BoundKernel {
    using B = std::remove_pointer_t<decltype(t)>;
    if (b.in[1].dtype == DType::I64)
      return std::make_unique<GatherElements<B, int64_t>>(b, axis);
    return std::make_unique<GatherElements<B, int32_t>>(b, axis);
  });
}

BoundKernel bindGatherElementsGrad(const Binding &b) {
  Checks c(b);
  int64_t axis, size;
  if (!(gatherElementsGradShape(c, b, axis, size) && c.real(b.in[0])))
    return c.take();
  bool wide = b.in[1].dtype == DType::I64;
  if (b.in[0].dtype == DType::F32) {
    if (wide)
      return std::make_unique<GatherElementsGrad<float, int64_t>>(b, axis);
    return std::make_unique<GatherElementsGrad<float, int32_t>>(b, axis);
  }
  if (wide)
    return std::make_unique<GatherElementsGrad<double, int64_t>>(b, axis);
  return std::make_unique<GatherElementsGrad<double, int32_t>>(b, axis);
}

} // namespace shardc::host
