// SPDX-License-Identifier: Apache-2.0
// embedding(table, ids) -> rows of the table, and embedding_grad(dy, ids[, acc]){rows} -> rows of dy added up by id (to
// acc, in place, where it is given), in a fixed order. 16-bit dy may have an f32 gradient. Ids are checked when
// running.
#include "runtime/cuda/Embedding.h"
#include "runtime/cuda/Launch.h"

namespace shardc::cuda {
namespace {

using host::Array;
using host::Checks;

EmbeddingIds idsOf(const host::Binding &b, Device &device, const Array &ids, int64_t rows) {
  return {{ids.data, elementType(ids.dtype), device.fault(), device.faultSite(b.place, "token id")},
          ids.numElements(),
          rows};
}

} // namespace

BoundKernel bindEmbedding(const host::Binding &b, Device &device) {
  Checks c(b);
  if (!(c.arity(2, 2, 1) && c.rank(b.in[0], 2) && c.lastDim(b.in[0]) && c.index(b.in[1]) && c.contiguous(b.in[1]) &&
        c.dtype(b.out[0], b.in[0].dtype) && c.denseResults()))
    return c.take();
  const Array &table = b.in[0];
  Dims dims = b.in[1].dims;
  dims.push_back(table.dims[1]);
  if (!(c.dims(b.out[0], dims) && c.apart() &&
        c.that(b.in[1].numElements() < INT32_MAX, "ids: wanted fewer than 2^31")))
    return c.take();
  EmbeddingWork work = {};
  work.ids = idsOf(b, device, b.in[1], table.dims[0]);
  work.table = table.data;
  work.rowStride = table.strides[0] * byteSize(table.dtype);
  work.rowBytes = table.dims[1] * byteSize(table.dtype);
  work.to = b.out[0].data;
  const uint64_t all = reinterpret_cast<uintptr_t>(work.table) | reinterpret_cast<uintptr_t>(work.to) |
                       uint64_t(work.rowStride) | uint64_t(work.rowBytes) | 16;
  work.unit = int(all & -all);
  return launchKernel(enqueueEmbedding, "embedding", work, b, device);
}

BoundKernel bindEmbeddingGrad(const host::Binding &b, Device &device) {
  Checks c(b);
  int64_t rows;
  if (!(c.arity(2, 3, 1) && c.intAttr("rows", rows) && checkFloat(c, b.in[0], "dy") && c.index(b.in[1]) &&
        c.contiguous(b.in[0]) && c.contiguous(b.in[1]) && c.rank(b.out[0], 2) &&
        checkStatistic(c, b.out[0], b.in[0].dtype, "dtable") && c.denseResults()))
    return c.take();
  const Array &ids = b.in[1], &table = b.out[0];
  Dims dims = ids.dims;
  dims.push_back(table.dims[1]);
  if (!(c.dims(b.in[0], dims) && c.dims(table, {rows, table.dims[1]}) &&
        c.that(!c.in(2) || sameArray(c.in(2), table), "acc: wanted the memory of the result") && c.apart({{0, 2}}) &&
        c.that(ids.numElements() < INT32_MAX && rows < INT32_MAX, "sizes: wanted fewer than 2^31 ids and rows")))
    return c.take();
  EmbeddingGradWork work = {};
  work.ids = idsOf(b, device, ids, rows);
  work.dy = b.in[0].data, work.type = elementType(b.in[0].dtype);
  work.width = table.dims[1], work.tableBytes = table.numElements() * byteSize(table.dtype);
  work.table = anyFloats(table);
  work.accumulate = bool(c.in(2));
  long long bytes = 0;
  if (llvm::Error error = check(embeddingGradScratch(work, bytes), "embedding_grad: sizes"))
    return error;
  return launchKernel(enqueueEmbeddingGrad, "embedding_grad", work, b, device, bytes);
}

} // namespace shardc::cuda
