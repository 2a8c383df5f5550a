// SPDX-License-Identifier: Apache-2.0
// attention_grad(dout, q, k, v, out, lse, bias?, mask?){bias_grad, joined} -> dq, dk, dv[, dbias], as one array or apart:
// dbias = ds summed to the bias's dims. Masked scores are constants: ds = 0.
#include "runtime/host/AttentionHeadGrad.h"
#include "runtime/host/JoinedHeads.h"

namespace shardc::host {
namespace {

template <typename T> class AttentionGrad final : public Kernel {
public:
  AttentionGrad(const Binding &b, const Checks &c, const AttentionShape &shape, bool biasGrad)
      : grad_(b, c, shape, 4, 6, 7) {
    if (!biasGrad)
      return;
    const Array &dbias = b.out[3];
    dbias_ = dbias.as<T>();
    dbiasCount_ = dbias.numElements();
    broadcastStrides(dbias, shape.scores(), dbiasStrides_);
    // Heads that add to the same part of dbias form a group, and run in order.
    sharedBatch_ = dbiasStrides_[0] == 0;
    sharedHeads_ = dbiasStrides_[1] == 0;
  }

  void run() override {
    const int64_t batch = grad_.shape.batch, heads = grad_.shape.heads;
    if (dbias_)
      std::fill_n(dbias_, dbiasCount_, T(0));
    int64_t groupBatch = sharedBatch_ ? 1 : batch, groupHeads = sharedHeads_ ? 1 : heads;
    if (batch * heads == 0)
      return;
    int64_t groups = groupBatch * groupHeads;
    double cost = 3 * grad_.shape.headCost() * double(batch * heads) / double(groups);
    parallelTasks(groups, cost, [&](int64_t group, int) {
      int64_t b0 = group / groupHeads, h0 = group % groupHeads;
      for (int64_t b = b0; b < (sharedBatch_ ? batch : b0 + 1); ++b)
        for (int64_t h = h0; h < (sharedHeads_ ? heads : h0 + 1); ++h)
          head(b, h);
    });
  }

private:
  void head(int64_t b, int64_t h) const {
    grad_.compute(b, h, [&](int64_t first, int64_t rows, T *ds) {
      for (int64_t i = 0; dbias_ && i < rows; ++i, ds += grad_.shape.keys) {
        if (grad_.shape.maskAdds)
          hide(b, h, first + i, ds);
        addBias(b, h, first + i, ds);
      }
    });
  }

  void hide(int64_t b, int64_t h, int64_t i, T *ds) const {
    if (const uint8_t *attends = grad_.scores.maskRow(b, h, i)) {
      const int64_t step = grad_.shape.maskStrides[3];
      for (int64_t j = 0; j < grad_.shape.keys; ++j)
        ds[j] = attends[j * step] ? ds[j] : T(0);
    }
  }

  void addBias(int64_t b, int64_t h, int64_t i, const T *ds) const {
    const Dims &s = dbiasStrides_;
    const int64_t n = grad_.shape.keys;
    T *to = dbias_ + b * s[0] + h * s[1] + i * s[2];
    if (s[3] == 0) {
      *to += T(sumOf<T>(n, [=](int64_t j) { return ds[j]; }));
      return;
    }
    SHARDC_INDEPENDENT
    for (int64_t j = 0; j < n; ++j)
      to[j] += ds[j];
  }

  AttentionHeadGrad<T, Scores<T>> grad_;
  T *dbias_ = nullptr;
  int64_t dbiasCount_ = 0;
  Dims dbiasStrides_;
  bool sharedBatch_ = false, sharedHeads_ = false;
};

} // namespace

BoundKernel bindAttentionGrad(const Binding &given) {
  const Binding b = splitHeads(given);
  Checks c(b);
  AttentionShape s;
  int64_t biasGrad;
  if (!(c.intAttr("bias_grad", biasGrad, 0) && c.arity(6, 8, biasGrad ? 4 : 3) &&
        attentionShape(c, 1, 6, 7, s) &&
        c.that(!biasGrad || c.in(6), "attribute bias_grad: got 1 without a bias") && attentionGradOperands(c, s, 4)))
    return c.take();
  for (size_t i = 0; i < b.out.size(); ++i)
    if (!(c.dims(b.out[i], i < 3 ? b.in[1 + i].dims : b.in[6].dims) && c.dtype(b.out[i], s.dtype) &&
          (i < 3 ? c.lastDim(b.out[i]) : c.contiguous(b.out[i]))))
      return c.take();
  if (!c.apart())
    return c.take();
  return makeReal<AttentionGrad>(s.dtype, b, c, s, biasGrad != 0);
}

} // namespace shardc::host
