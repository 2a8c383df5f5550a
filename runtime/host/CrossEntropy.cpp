// SPDX-License-Identifier: Apache-2.0
// cross_entropy(logits, labels){ignore_index} -> sum, count, correct, lse and
// cross_entropy_grad(dsum, logits, labels, lse){ignore_index} -> dlogits.
#include "runtime/host/Fault.h"
#include "runtime/host/Rows.h"
#include "runtime/host/SoftmaxRow.h"
#include <atomic>

namespace shardc::host {
namespace {

template <typename T> class CrossEntropy final : public Kernel {
public:
  CrossEntropy(const Binding &b, int64_t ignore)
      : rows_(Rows::of(b.in[0], 1)), logits_(b.in[0].as<T>()), labels_(b.in[1].as<int64_t>()),
        sum_(b.out[0].as<T>()), count_(b.out[1].as<T>()), correct_(b.out[2].as<T>()),
        lse_(b.out[3].as<T>()), ignore_(ignore), check_{b.fault, b.place, "label"} {}

  void run() override {
    int64_t n = rows_.length;
    std::atomic<int64_t> correct = 0; // integers: any order gives the same
    parallelFor(rows_.count, rows_.grain(), [&](int64_t begin, int64_t end, int) {
      int64_t hits = 0;
      for (int64_t r = begin; r < end; ++r) {
        const T *x = logits_ + rows_[r];
        T top = finiteMax(x, n);
        lse_[r] = top + T(std::log(sumExp(x, n, top)));
        if (labels_[r] != ignore_)
          hits += firstLargest(x, n, check_(labels_[r], n));
      }
      correct.fetch_add(hits, std::memory_order_relaxed);
    });
    double sum = 0;
    int64_t count = 0;
    for (int64_t r = 0; r < rows_.count; ++r) {
      if (labels_[r] == ignore_)
        continue;
      sum += double(lse_[r]) - double(logits_[rows_[r] + check_(labels_[r], n)]);
      ++count;
    }
    *sum_ = T(sum);
    *count_ = T(count);
    *correct_ = T(correct.load(std::memory_order_relaxed));
  }

private:
  /// Is x[label] the first of the largest elements?
  static bool firstLargest(const T *x, int64_t n, int64_t label) {
    if (!(x[label] >= maxOf(x, n)))
      return false;
    for (int64_t i = 0; i < label; ++i)
      if (x[i] == x[label])
        return false;
    return true;
  }

  Rows rows_;
  const T *logits_;
  const int64_t *labels_;
  T *sum_, *count_, *correct_, *lse_;
  int64_t ignore_;
  IndexCheck check_;
};

// dlogits = dsum (softmax - onehot(label)); rows without a label get 0.
template <typename T> class CrossEntropyGrad final : public Kernel {
public:
  CrossEntropyGrad(const Binding &b, int64_t ignore)
      : rows_(Rows::of(b.in[1], 1)), dsum_(b.in[0].as<T>()), logits_(b.in[1].as<T>()),
        labels_(b.in[2].as<int64_t>()), lse_(b.in[3].as<T>()), dlogits_(b.out[0].as<T>()),
        ignore_(ignore), check_{b.fault, b.place, "label"} {}

  void run() override {
    int64_t n = rows_.length;
    const T dsum = *dsum_;
    parallelFor(rows_.count, rows_.grain(), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) {
        const T *x = logits_ + rows_[r];
        T *dx = dlogits_ + r * n;
        if (labels_[r] == ignore_) {
          std::fill_n(dx, n, T(0));
          continue;
        }
        T lse = lse_[r];
        SHARDC_INDEPENDENT
        for (int64_t i = 0; i < n; ++i)
          dx[i] = dsum * expNegative(x[i] - lse);
        dx[check_(labels_[r], n)] -= dsum;
      }
    });
  }

private:
  Rows rows_;
  const T *dsum_, *logits_;
  const int64_t *labels_;
  const T *lse_;
  T *dlogits_;
  int64_t ignore_;
  IndexCheck check_;
};

bool checkLogits(Checks &c, const Array &logits, const Array &labels, int64_t &ignore) {
  return c.intAttr("ignore_index", ignore) && c.real(logits) && c.rank(logits, 2) &&
         c.lastDim(logits) && c.that(logits.dims[1] > 0, "logits: wanted at least one class") &&
         c.dtype(labels, DType::I64) && c.dims(labels, {logits.dims[0]}) && c.contiguous(labels);
}

bool checkFloats(Checks &c, const Array &a, DType dtype, llvm::ArrayRef<int64_t> dims) {
  return c.dtype(a, dtype) && c.dims(a, dims) && c.contiguous(a);
}

} // namespace

BoundKernel bindCrossEntropy(const Binding &b) {
  Checks c(b);
  int64_t ignore;
  if (!(c.arity(2, 2, 4) && checkLogits(c, b.in[0], b.in[1], ignore)))
    return c.take();
  DType dtype = b.in[0].dtype;
  if (!(checkFloats(c, b.out[0], dtype, {}) && checkFloats(c, b.out[1], dtype, {}) &&
        checkFloats(c, b.out[2], dtype, {}) && checkFloats(c, b.out[3], dtype, {b.in[0].dims[0]}) &&
        c.apart()))
    return c.take();
  return makeReal<CrossEntropy>(dtype, b, ignore);
}

BoundKernel bindCrossEntropyGrad(const Binding &b) {
  Checks c(b);
  int64_t ignore;
  if (!(c.arity(4, 4, 1) && checkLogits(c, b.in[1], b.in[2], ignore)))
    return c.take();
  DType dtype = b.in[1].dtype;
  if (!(checkFloats(c, b.in[0], dtype, {}) && checkFloats(c, b.in[3], dtype, {b.in[1].dims[0]}) &&
        checkFloats(c, b.out[0], dtype, b.in[1].dims) && c.apart({{0, 1}})))
    return c.take();
  return makeReal<CrossEntropyGrad>(dtype, b, ignore);
}

} // namespace shardc::host
