// SPDX-License-Identifier: Apache-2.0
// attention_grad(dout, q, k, v, out, lse, bias?, mask?){bias_grad, joined} -> dq, dk, dv[, dbias], as one array or apart.
// With p = exp(scores - lse), dropout factors m and delta = sum(dout out):
//   dv = (p m)^T dout,  ds = p (m (dout v^T) - delta),  dq = scale ds k,  dk = scale ds^T q,
//   dbias = ds summed to the bias's dims. Masked scores are constants: ds = 0.
#include "runtime/host/AttentionGradRow.h"
#include "runtime/host/JoinedHeads.h"
#include "runtime/host/Rows.h"

namespace shardc::host {
namespace {

template <typename T> class AttentionGrad final : public Kernel {
public:
  AttentionGrad(const Binding &b, const Checks &c, const AttentionShape &shape, bool biasGrad)
      : shape_(shape), scores_(shape_, b.in[1], b.in[2], c.in(6), c.in(7)), dout_(b.in[0]),
        v_(b.in[3]), out_(b.in[4]), dq_(b.out[0]), dk_(b.out[1]), dv_(b.out[2]),
        lse_(b.in[5].as<T>()), lseRows_(Rows::of(b.in[5], 1)), scalars_(b.scalars) {
    if (!biasGrad)
      return;
    const Array &dbias = b.out[3];
    dbias_ = dbias.as<T>();
    dbiasCount_ = dbias.numElements();
    broadcastStrides(dbias, shape_.scores(), dbiasStrides_);
    // Heads that add to the same part of dbias form a group, and run in order.
    sharedBatch_ = dbiasStrides_[0] == 0;
    sharedHeads_ = dbiasStrides_[1] == 0;
  }

  void run() override {
    const int64_t batch = shape_.batch, heads = shape_.heads;
    if (dbias_)
      std::fill_n(dbias_, dbiasCount_, T(0));
    int64_t groupBatch = sharedBatch_ ? 1 : batch, groupHeads = sharedHeads_ ? 1 : heads;
    if (batch * heads == 0)
      return;
    int64_t groups = groupBatch * groupHeads;
    double cost = 3 * shape_.headCost() * double(batch * heads) / double(groups);
    parallelTasks(groups, cost, [&](int64_t group, int) {
      int64_t b0 = group / groupHeads, h0 = group % groupHeads;
      for (int64_t b = b0; b < (sharedBatch_ ? batch : b0 + 1); ++b)
        for (int64_t h = h0; h < (sharedHeads_ ? heads : h0 + 1); ++h)
          head(b, h);
    });
  }

private:
  void head(int64_t b, int64_t h) const {
    alignas(64) T p[kScoreBytes / sizeof(T)], ds[kScoreBytes / sizeof(T)];
    const AttentionShape &s = shape_;
    const int64_t n = s.keys;
    if (s.queries == 0) {
      for (int64_t j = 0; j < n; ++j) {
        std::fill_n(dk_.at(b, h, j), s.depth, T(0));
        std::fill_n(dv_.at(b, h, j), s.valueDepth, T(0));
      }
    }
    for (int64_t first = 0; first < s.queries; first += s.blockRows) {
      int64_t rows = std::min(s.blockRows, s.queries - first);
      T again = first == 0 ? T(0) : T(1); // dk and dv are sums over the blocks
      scores_.compute(b, h, first, rows, p);
      gemm<T>(rows, n, s.valueDepth, T(1), dout_.matrix(b, h, first),
              v_.matrix(b, h, 0).transposed(), T(0), ds, n);
      for (int64_t i = 0; i < rows; ++i)
        row(b, h, first + i, p + i * n, ds + i * n);
      gemm<T>(n, s.valueDepth, rows, T(1), Matrix<T>{p, n, 1}.transposed(),
              dout_.matrix(b, h, first), again, dv_.at(b, h, 0), dv_.row);
      gemm<T>(rows, s.depth, n, T(s.scale), {ds, n, 1}, scores_.k.matrix(b, h, 0), T(0),
              dq_.at(b, h, first), dq_.row);
      gemm<T>(n, s.depth, rows, T(s.scale), Matrix<T>{ds, n, 1}.transposed(),
              scores_.q.matrix(b, h, first), again, dk_.at(b, h, 0), dk_.row);
      for (int64_t i = 0; dbias_ && i < rows; ++i) {
        if (s.maskAdds)
          hide(b, h, first + i, ds + i * n);
        addBias(b, h, first + i, ds + i * n);
      }
    }
  }

  /// In: scores p and dout v^T in ds. Out: p m and ds.
  void row(int64_t b, int64_t h, int64_t i, T *p, T *ds) const {
    const AttentionShape &s = shape_;
    const T *dout = dout_.at(b, h, i), *out = out_.at(b, h, i);
    const T delta = T(sumOf<T>(s.valueDepth, [=](int64_t l) { return dout[l] * out[l]; }));
    gradientRow(s, scalars_, b, h, i, lse_[lseRows_[b * s.heads + h] + i], delta,
                s.maskAdds ? nullptr : scores_.maskRow(b, h, i), p, ds);
  }

  void hide(int64_t b, int64_t h, int64_t i, T *ds) const {
    if (const uint8_t *attends = scores_.maskRow(b, h, i)) {
      const int64_t step = shape_.maskStrides[3];
      for (int64_t j = 0; j < shape_.keys; ++j)
        ds[j] = attends[j * step] ? ds[j] : T(0);
    }
  }

  void addBias(int64_t b, int64_t h, int64_t i, const T *ds) const {
    const Dims &s = dbiasStrides_;
    const int64_t n = shape_.keys;
    T *to = dbias_ + b * s[0] + h * s[1] + i * s[2];
    if (s[3] == 0) {
      *to += T(sumOf<T>(n, [=](int64_t j) { return ds[j]; }));
      return;
    }
    SHARDC_INDEPENDENT
    for (int64_t j = 0; j < n; ++j)
      to[j] += ds[j];
  }

  AttentionShape shape_;
  Scores<T> scores_;
  Heads<T> dout_, v_, out_, dq_, dk_, dv_;
  const T *lse_;
  Rows lseRows_;
  T *dbias_ = nullptr;
  int64_t dbiasCount_ = 0;
  Dims dbiasStrides_;
  bool sharedBatch_ = false, sharedHeads_ = false;
  const double *scalars_;
};

} // namespace

BoundKernel bindAttentionGrad(const Binding &given) {
  const Binding b = splitHeads(given);
  Checks c(b);
  AttentionShape s;
  int64_t biasGrad;
  if (!(c.intAttr("bias_grad", biasGrad, 0) && c.arity(6, 8, biasGrad ? 4 : 3) &&
        attentionShape(c, 1, 6, 7, s) &&
        c.that(!biasGrad || c.in(6), "attribute bias_grad: got 1 without a bias")))
    return c.take();
  for (const Array *a : {&b.in[0], &b.in[4]})
    if (!(c.dims(*a, s.out()) && c.dtype(*a, s.dtype) && c.lastDim(*a)))
      return c.take();
  if (!(c.dims(b.in[5], s.lse()) && c.dtype(b.in[5], s.dtype) && c.lastDim(b.in[5])))
    return c.take();
  for (size_t i = 0; i < b.out.size(); ++i)
    if (!(c.dims(b.out[i], i < 3 ? b.in[1 + i].dims : b.in[6].dims) && c.dtype(b.out[i], s.dtype) && (i < 3 ? c.lastDim(b.out[i]) : c.contiguous(b.out[i]))))
      return c.take();
  if (!c.apart())
    return c.take();
  return makeReal<AttentionGrad>(s.dtype, b, c, s, biasGrad != 0);
}

} // namespace shardc::host
