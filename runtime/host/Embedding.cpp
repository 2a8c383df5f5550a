// SPDX-License-Identifier: Apache-2.0
// embedding(table, ids) -> rows of the table, and embedding_grad(dy, ids[, acc]){rows} -> rows of
// dy added up by id (to acc, in place, where it is given). Ids are checked when running; negative
// ones count from the end (those of users are refused when the data is read).
#include "runtime/host/Fault.h"
#include "runtime/host/Rows.h"
#include "runtime/host/Simd.h"

namespace shardc::host {
namespace {

template <typename I> class Embedding final : public Kernel {
public:
  Embedding(const Binding &b)
      : rows_(Rows::of(b.in[0], 1)), table_(b.in[0].as<char>()), ids_(b.in[1].as<I>()),
        y_(b.out[0].as<char>()), count_(b.in[1].numElements()),
        size_(byteSize(b.in[0].dtype)), check_{b.fault, b.place, "token id"} {}

  void run() override {
    int64_t bytes = rows_.length * size_;
    parallelFor(count_, 1 + (1 << 16) / (bytes + 1), [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        if (rows_.count == 0)
          check_.fault->report(check_.place, check_.what, ids_[i], 0, 0);
        else
          std::memcpy(y_ + i * bytes, table_ + rows_[check_.wrapped(ids_[i], rows_.count)] * size_,
                      bytes);
      }
    });
  }

private:
  Rows rows_;
  const char *table_;
  const I *ids_;
  char *y_;
  int64_t count_, size_;
  IndexCheck check_;
};

// Columns are cut among the threads, so that every element is summed in the order of the ids.
template <typename T> class EmbeddingGrad final : public Kernel {
public:
  EmbeddingGrad(const Binding &b)
      : dy_(b.in[0].as<T>()), ids_(b.in[1]), dtable_(b.out[0].as<T>()), rows_(b.out[0].dims[0]),
        width_(b.out[0].dims[1]), count_(b.in[1].numElements()),
        accumulate_(b.in.size() > 2 && b.in[2]), check_{b.fault, b.place, "token id"} {}

  void run() override {
    if (!accumulate_)
      parallelFor(rows_ * width_, 1 << 14, [&](int64_t begin, int64_t end, int) {
        std::fill(dtable_ + begin, dtable_ + end, T(0));
      });
    if (ids_.dtype == DType::I64)
      add(ids_.as<int64_t>());
    else
      add(ids_.as<int32_t>());
  }

private:
  template <typename I> void add(const I *ids) {
    if (rows_ == 0 || width_ == 0) {
      if (rows_ == 0 && count_)
        check_.fault->report(check_.place, check_.what, ids[0], 0, 0);
      return;
    }
    int64_t grain = std::max<int64_t>(16, (1 << 14) / (count_ + 1) / 16 * 16);
    parallelFor(width_, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = 0; i < count_; ++i) {
        const T *dy = dy_ + i * width_;
        T *row = dtable_ + check_.wrapped(ids[i], rows_) * width_;
        SHARDC_INDEPENDENT
        for (int64_t c = begin; c < end; ++c)
          row[c] += dy[c];
      }
    });
  }

  const T *dy_;
  Array ids_;
  T *dtable_;
  int64_t rows_, width_, count_;
  bool accumulate_;
  IndexCheck check_;
};

} // namespace

BoundKernel bindEmbedding(const Binding &b) {
  Checks c(b);
  if (!(c.arity(2, 2, 1) && c.rank(b.in[0], 2) && c.lastDim(b.in[0]) && c.index(b.in[1]) &&
        c.contiguous(b.in[1]) && c.dtype(b.out[0], b.in[0].dtype) && c.denseResults()))
    return c.take();
  Dims dims = b.in[1].dims;
  dims.push_back(b.in[0].dims[1]);
  if (!(c.dims(b.out[0], dims) && c.apart()))
    return c.take();
  if (b.in[1].dtype == DType::I64)
    return std::make_unique<Embedding<int64_t>>(b);
  return std::make_unique<Embedding<int32_t>>(b);
}

BoundKernel bindEmbeddingGrad(const Binding &b) {
  Checks c(b);
  int64_t rows;
  if (!(c.arity(2, 3, 1) && c.intAttr("rows", rows) && c.real(b.in[0]) && c.index(b.in[1]) &&
        c.contiguous(b.in[0]) && c.contiguous(b.in[1]) && c.rank(b.out[0], 2) &&
        c.dtype(b.out[0], b.in[0].dtype) && c.denseResults()))
    return c.take();
  Dims dims = b.in[1].dims;
  dims.push_back(b.out[0].dims[1]);
  if (!(c.dims(b.in[0], dims) && c.dims(b.out[0], {rows, b.out[0].dims[1]}) &&
        c.that(!c.in(2) || sameArray(c.in(2), b.out[0]), "acc: wanted the memory of the result") &&
        c.apart({{0, 2}})))
    return c.take();
  return makeReal<EmbeddingGrad>(b.in[0].dtype, b);
}

} // namespace shardc::host
