// SPDX-License-Identifier: Apache-2.0
// gather(data, indices){axis} and gather_grad(dy, indices){axis, size}. Indices are checked when
// running; negative ones count from the end.
#include "runtime/host/Fault.h"
#include "runtime/host/Rows.h"
#include "runtime/host/Shapes.h"
#include "runtime/host/Simd.h"

namespace shardc::host {
namespace {

template <typename I> class Gather final : public Kernel {
public:
  Gather(const Binding &b, GatherShape s)
      : s_(s), data_(b.in[0].as<char>()), indices_(b.in[1].as<I>()), y_(b.out[0].as<char>()),
        bytes_(s.inner * byteSize(b.in[0].dtype)), check_{b.fault, b.place} {}

  void run() override {
    if (bytes_ == 0 || s_.outer * s_.count == 0)
      return;
    if (s_.size == 0)
      return check_.fault->report(check_.place, check_.what, indices_[0], 0, 0);
    parallelFor(s_.outer * s_.count, 1 + (1 << 15) / bytes_, [&](int64_t begin, int64_t end, int) {
      for (int64_t unit = begin; unit < end; ++unit) {
        int64_t outer = unit / s_.count, i = unit % s_.count;
        int64_t index = check_.wrapped(indices_[i], s_.size);
        std::memcpy(y_ + unit * bytes_, data_ + (outer * s_.size + index) * bytes_, bytes_);
      }
    });
  }

private:
  GatherShape s_;
  const char *data_;
  const I *indices_;
  char *y_;
  int64_t bytes_;
  IndexCheck check_;
};

// Each thread has its own part of the result and adds in the order of the indices.
template <typename T> class GatherGrad final : public Kernel {
public:
  GatherGrad(const Binding &b, GatherShape s)
      : s_(s), dy_(b.in[0].as<T>()), indices_(b.in[1]),
        dx_(b.out[0].as<T>()), check_{b.fault, b.place} {}

  void run() override {
    if (indices_.dtype == DType::I64)
      add(indices_.as<int64_t>());
    else
      add(indices_.as<int32_t>());
  }

private:
  static constexpr int64_t kColumns = 256;

  template <typename I> void add(const I *indices) {
    if (s_.size == 0 && s_.outer * s_.inner * s_.count > 0)
      return check_.fault->report(check_.place, check_.what, indices[0], 0, 0);
    int64_t blocks = (s_.inner + kColumns - 1) / kColumns;
    int64_t work = std::min(s_.inner, kColumns) * (s_.count + s_.size) + 1;
    parallelFor(s_.outer * blocks, 1 + (1 << 14) / work, [&](int64_t begin, int64_t end, int) {
      for (int64_t unit = begin; unit < end; ++unit) {
        int64_t outer = unit / blocks, first = unit % blocks * kColumns;
        int64_t width = std::min(kColumns, s_.inner - first);
        T *dx = dx_ + outer * s_.size * s_.inner + first;
        const T *dy = dy_ + outer * s_.count * s_.inner + first;
        for (int64_t r = 0; r < s_.size; ++r)
          std::fill_n(dx + r * s_.inner, width, T(0));
        for (int64_t i = 0; i < s_.count; ++i) {
          T *to = dx + check_.wrapped(indices[i], s_.size) * s_.inner;
          const T *from = dy + i * s_.inner;
          SHARDC_INDEPENDENT
          for (int64_t l = 0; l < width; ++l)
            to[l] += from[l];
        }
      }
    });
  }

  GatherShape s_;
  const T *dy_;
  Array indices_;
  T *dx_;
  IndexCheck check_;
};

} // namespace

BoundKernel bindGather(const Binding &b) {
  Checks c(b);
  GatherShape shape;
  if (!(c.arity(2, 2, 1) && gatherShape(c, b.in[0], b.in[1], b.out[0], shape) && c.apart()))
    return c.take();
  if (b.in[1].dtype == DType::I64)
    return std::make_unique<Gather<int64_t>>(b, shape);
  return std::make_unique<Gather<int32_t>>(b, shape);
}

BoundKernel bindGatherGrad(const Binding &b) {
  Checks c(b);
  GatherShape shape;
  int64_t size;
  if (!(c.arity(2, 2, 1) && c.intAttr("size", size) && c.real(b.in[0]) &&
        gatherShape(c, b.out[0], b.in[1], b.in[0], shape) &&
        c.that(size == shape.size, "attribute size: wanted that of the result") && c.apart()))
    return c.take();
  return makeReal<GatherGrad>(b.in[0].dtype, b, shape);
}

} // namespace shardc::host
