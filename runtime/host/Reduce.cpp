// SPDX-License-Identifier: Apache-2.0
// reduce_sum, reduce_max, reduce_min, reduce_prod (x){axes, keep_dims}. Sums of f32 are kept in
// double between runs; the order of every sum depends on the shape and strides only.
#include "runtime/host/Parallel.h"
#include "runtime/host/Shapes.h"
#include "runtime/host/Simd.h"
#include "runtime/host/Strided.h"
#include <limits>

namespace shardc::host {
namespace {

/// What is accumulated in: double for floats, unsigned (wraps around) for integers.
template <typename T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, double,
                                std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;

template <typename T> struct Sum {
  using Acc = Wide<T>;
  static Acc first() { return 0; }
  static Acc join(Acc a, Acc b) { return a + b; }
  static Acc row(const T *x, int64_t n) {
    if constexpr (std::is_floating_point_v<T>) {
      return sumOf<T>(n, [=](int64_t i) { return x[i]; });
    } else {
      Acc sum = 0;
      for (int64_t i = 0; i < n; ++i)
        sum += Acc(x[i]);
      return sum;
    }
  }
};

template <typename T> struct Prod {
  using Acc = Wide<T>;
  static Acc first() { return 1; }
  static Acc join(Acc a, Acc b) { return a * b; }
  static Acc row(const T *x, int64_t n) {
    Acc product = 1;
    for (int64_t i = 0; i < n; ++i)
      product *= Acc(x[i]);
    return product;
  }
};

/// Largest (or, with kSign -1, smallest); a NaN is the result.
template <typename T, int kSign> struct Extreme {
  using Acc = T;
  static Acc first() {
    using L = std::numeric_limits<T>;
    if constexpr (L::has_infinity)
      return kSign > 0 ? -L::infinity() : L::infinity();
    return kSign > 0 ? L::min() : L::max();
  }
  static bool beats(Acc a, Acc b) { return kSign > 0 ? a > b : a < b; }
  static Acc join(Acc a, Acc b) { return beats(a, b) | (a != a) ? a : b; }
  static Acc row(const T *x, int64_t n) {
    constexpr int64_t kLanes = 16;
    Acc lanes[kLanes];
    for (Acc &lane : lanes)
      lane = first();
    int64_t whole = n / kLanes * kLanes;
    for (int64_t i = 0; i < whole; i += kLanes)
      for (int64_t l = 0; l < kLanes; ++l)
        lanes[l] = join(lanes[l], x[i + l]);
    for (int64_t i = whole; i < n; ++i)
      lanes[0] = join(lanes[0], x[i]);
    for (Acc lane : lanes)
      lanes[0] = join(lanes[0], lane);
    return lanes[0];
  }
};
template <typename T> using Max = Extreme<T, 1>;
template <typename T> using Min = Extreme<T, -1>;

template <typename T, typename Fold> class Reduce final : public Kernel {
public:
  Reduce(const Array &x, const Array &y, Walk kept, Walk reduced)
      : x_(x.as<T>()), y_(y.as<T>()), kept_(kept), reduced_(reduced) {
    results_ = y.numElements();
    addends_ = 1;
    for (unsigned d = 0; d < reduced.rank; ++d)
      addends_ *= reduced.dims[d];
    columns_ = kept_.dims[kept_.rank - 1];
    // Where results lie side by side in x, whole rows are added to a row of results.
    byColumns_ =
        columns_ > 1 && kept_.strides[kept_.rank - 1] == 1 &&
        (reduced_.strides[reduced_.rank - 1] != 1 || reduced_.dims[reduced_.rank - 1] == 1);
  }

  void run() override {
    if (results_ == 0)
      return;
    if (byColumns_) {
      int64_t blocks = (columns_ + kBlock - 1) / kBlock;
      parallelFor(results_ / columns_ * blocks, grain(kBlock),
                  [&](int64_t begin, int64_t end, int) {
                    for (int64_t unit = begin; unit < end; ++unit)
                      reduceColumns(unit / blocks * columns_, unit % blocks * kBlock);
                  });
    } else {
      parallelFor(results_, grain(1), [&](int64_t begin, int64_t end, int) {
        kept_.forRuns(begin, end, [&](int64_t offset, int64_t stride, int64_t n, int64_t at) {
          for (int64_t i = 0; i < n; ++i)
            y_[at + i] = T(reduceOne(x_ + offset + i * stride));
        });
      });
    }
  }

private:
  static constexpr int64_t kBlock = 64;
  int64_t grain(int64_t width) const {
    return 1 + (1 << 14) / (width * std::max<int64_t>(1, addends_));
  }

  auto reduceOne(const T *x) const {
    auto acc = Fold::first();
    reduced_.forRuns(0, addends_, [&](int64_t offset, int64_t stride, int64_t n, int64_t) {
      if (stride == 1) {
        acc = Fold::join(acc, Fold::row(x + offset, n));
      } else {
        for (int64_t i = 0; i < n; ++i)
          acc = Fold::join(acc, typename Fold::Acc(x[offset + i * stride]));
      }
    });
    return acc;
  }

  /// Results [row + column, ...) of one block; `row` is the first result of a row of them.
  void reduceColumns(int64_t row, int64_t column) const {
    typename Fold::Acc acc[kBlock];
    for (auto &a : acc)
      a = Fold::first();
    int64_t width = std::min(kBlock, columns_ - column), start = 0;
    kept_.forRuns(row + column, row + column + 1,
                  [&](int64_t offset, int64_t, int64_t, int64_t) { start = offset; });
    reduced_.forRuns(0, addends_, [&](int64_t offset, int64_t stride, int64_t n, int64_t) {
      const T *x = x_ + start + offset;
      for (int64_t i = 0; i < n; ++i, x += stride) {
        if (width == kBlock) {
          for (int64_t l = 0; l < kBlock; ++l)
            acc[l] = Fold::join(acc[l], typename Fold::Acc(x[l]));
        } else {
          for (int64_t l = 0; l < width; ++l)
            acc[l] = Fold::join(acc[l], typename Fold::Acc(x[l]));
        }
      }
    });
    for (int64_t l = 0; l < width; ++l)
      y_[row + column + l] = T(acc[l]);
  }

  const T *x_;
  T *y_;
  Walk kept_, reduced_;
  int64_t results_, addends_, columns_;
  bool byColumns_;
};

template <template <typename> class Fold> BoundKernel bindReduce(const Binding &b, bool needsOne) {
  Checks c(b);
  ReduceShape s;
  if (!reduceShape(c, b, needsOne, s))
    return c.take();
  const Array &x = b.in[0], &y = b.out[0];
  Walk kept = Walk::of(s.keptDims, s.keptStrides), reduced = Walk::of(s.reducedDims, s.reducedStrides);
  switch (x.dtype) {
  case DType::F32:
    return std::make_unique<Reduce<float, Fold<float>>>(x, y, kept, reduced);
  case DType::F64:
    return std::make_unique<Reduce<double, Fold<double>>>(x, y, kept, reduced);
  case DType::I32:
    return std::make_unique<Reduce<int32_t, Fold<int32_t>>>(x, y, kept, reduced);
  case DType::I64:
    return std::make_unique<Reduce<int64_t, Fold<int64_t>>>(x, y, kept, reduced);
  case DType::U8:
    return std::make_unique<Reduce<uint8_t, Fold<uint8_t>>>(x, y, kept, reduced);
  default:
    c.that(false, "type: got " + toString(x.dtype).str() + ", wanted f32 f64 i32 i64 u8");
    return c.take();
  }
}

} // namespace

BoundKernel bindReduceSum(const Binding &b) { return bindReduce<Sum>(b, false); }
BoundKernel bindReduceMax(const Binding &b) { return bindReduce<Max>(b, true); }
BoundKernel bindReduceMin(const Binding &b) { return bindReduce<Min>(b, true); }
BoundKernel bindReduceProd(const Binding &b) { return bindReduce<Prod>(b, false); }

} // namespace shardc::host
