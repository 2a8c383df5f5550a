// SPDX-License-Identifier: Apache-2.0
// matmul(a, b[, c, bias]){transpose_a, transpose_b, act} -> y = act(a b + bias + c), batches broadcast; c may be y's
// memory.
#include "runtime/host/Checks.h"
#include "runtime/host/Copy.h"
#include "runtime/host/Gemm.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/Strided.h"

namespace shardc::host {
namespace {

/// What happens around the products.
template <typename T> struct Epilogue {
  std::unique_ptr<Kernel> copyC; ///< to y, if c lies elsewhere
  const T *bias;
  bool relu;

  void finish(T *y, int64_t rows, int64_t n) const {
    if (!bias && !relu)
      return;
    parallelFor(rows, std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(n, 1)), [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = 0; j < n; ++j) {
          T value = y[i * n + j] + (bias ? bias[j] : T(0));
          y[i * n + j] = !relu || value > 0 || value != value ? value : T(0);
        }
    });
  }
};

template <typename T> class MatMul final : public Kernel {
public:
  MatMul(const Array &a, const Array &b, const Array &y, bool transposeA, bool transposeB,
         bool accumulate, const Dims &strideA, const Dims &strideB, Epilogue<T> epilogue)
      : a_(matrix(a, transposeA)), b_(matrix(b, transposeB)), y_(y.as<T>()),
        m_(y.dims[y.dims.size() - 2]), n_(y.dims.back()),
        k_(a.dims[a.dims.size() - (transposeA ? 2 : 1)]), beta_(accumulate ? 1 : 0), epilogue_(std::move(epilogue)) {
    llvm::ArrayRef<int64_t> all = y.dims;
    batch_.assign(all.begin(), all.end() - 2);
    Dims strides[] = {strideA, strideB};
    collapse(batch_, strides);
    // A batch of row blocks that share b is one product with more rows.
    size_t last = batch_.size() - 1;
    if (batch_[last] == 1 || (strides[1][last] == 0 && strides[0][last] == m_ * a_.row)) {
      m_ *= batch_[last];
      batch_[last] = 1;
    }
    strideA_ = strides[0];
    strideB_ = strides[1];
    count_ = numElements(batch_);
  }

  void run() override {
    if (epilogue_.copyC)
      epilogue_.copyC->run();
    multiply();
    epilogue_.finish(y_, count_ * m_, n_);
  }

private:
  void multiply() {
    bool big = double(m_) * double(n_) * double(k_) > 1 << 24;
    if (count_ == 1 || big) {
      for (int64_t i = 0; i < count_; ++i) {
        auto [a, b] = at(i);
        parallelGemm<T>(m_, n_, k_, T(1), a, b, beta_, y_ + i * m_ * n_, n_);
      }
      return;
    }
    auto one = [&](int64_t i, int) {
      auto [a, b] = at(i);
      gemm<T>(m_, n_, k_, T(1), a, b, beta_, y_ + i * m_ * n_, n_);
    };
    parallelTasks(count_, double(m_) * double(n_) * double(k_), one);
  }

  static Matrix<T> matrix(const Array &a, bool transpose) {
    size_t r = a.strides.size();
    Matrix<T> m{a.as<T>(), a.strides[r - 2], a.strides[r - 1]};
    return transpose ? m.transposed() : m;
  }
  std::pair<Matrix<T>, Matrix<T>> at(int64_t i) const {
    Matrix<T> a = a_, b = b_;
    for (size_t d = batch_.size(); d-- > 0; i /= batch_[d]) {
      a.data += i % batch_[d] * strideA_[d];
      b.data += i % batch_[d] * strideB_[d];
    }
    return {a, b};
  }

  Matrix<T> a_, b_;
  T *y_;
  int64_t m_, n_, k_, count_;
  T beta_;
  Epilogue<T> epilogue_;
  Dims batch_, strideA_, strideB_;
};

Array batchOf(const Array &a) {
  Array batch = a;
  batch.dims.resize(a.dims.size() - 2);
  batch.strides.resize(a.dims.size() - 2);
  return batch;
}

template <typename T>
std::unique_ptr<Kernel> make(const Binding &binding, bool ta, bool tb, const Dims &strideA, const Dims &strideB, bool relu) {
  auto in = [&](size_t i) { return i < binding.in.size() ? binding.in[i] : Array(); };
  const Array c = in(2), bias = in(3), &y = binding.out[0];
  Epilogue<T> epilogue{c && !sameArray(c, y) ? makeCopy(c, y) : nullptr, bias.as<T>(), relu};
  return std::make_unique<MatMul<T>>(in(0), in(1), y, ta, tb, bool(c), strideA, strideB, std::move(epilogue));
}

} // namespace

BoundKernel bindMatMul(const Binding &binding) {
  Checks c(binding);
  int64_t ta, tb;
  std::string act;
  if (!(c.arity(2, 4, 1) && c.intAttr("transpose_a", ta, 0) && c.intAttr("transpose_b", tb, 0) &&
        (!c.has("act") || c.stringAttr("act", act)) &&
        c.that(act.empty() || act == "relu", "attribute act: got " + act + ", wanted relu or nothing")))
    return c.take();
  const Array &a = c.in(0), &b = c.in(1), &added = c.in(2), &bias = c.in(3), &y = c.out(0);
  if (!(c.real(a) && c.dtype(b, a.dtype) && c.dtype(y, a.dtype) && c.contiguous(y) &&
        c.that(a.dims.size() >= 2 && b.dims.size() >= 2 && y.dims.size() >= 2,
               "ranks: wanted at least 2")))
    return c.take();
  size_t ra = a.dims.size(), rb = b.dims.size(), ry = y.dims.size();
  int64_t m = a.dims[ra - (ta ? 1 : 2)], k = a.dims[ra - (ta ? 2 : 1)];
  int64_t kb = b.dims[rb - (tb ? 1 : 2)], n = b.dims[rb - (tb ? 2 : 1)];
  Dims strideA, strideB;
  llvm::ArrayRef<int64_t> batch = llvm::ArrayRef(y.dims).drop_back(2);
  if (!(c.that(k == kb,
               "inner sizes differ: " + formatDims(a.dims) + " and " + formatDims(b.dims)) &&
        c.that(y.dims[ry - 2] == m && y.dims[ry - 1] == n,
               "result shape: got " + formatDims(y.dims) + ", wanted " + formatDims({m, n}) +
                   " in the last dims") &&
        c.that(broadcastStrides(batchOf(a), batch, strideA) &&
                   broadcastStrides(batchOf(b), batch, strideB),
               "batches do not broadcast to the result's") &&
        c.that(!added || (added.dtype == y.dtype && added.dims == y.dims), "c: wanted the type and shape of the result") &&
        (!bias || (c.dtype(bias, y.dtype) && c.dims(bias, {n}) && c.contiguous(bias))) && c.apart({{0, 2}})))
    return c.take();
  const bool relu = !act.empty();
  return a.dtype == DType::F32 ? make<float>(binding, ta, tb, strideA, strideB, relu)
                               : make<double>(binding, ta, tb, strideA, strideB, relu);
}

} // namespace shardc::host
