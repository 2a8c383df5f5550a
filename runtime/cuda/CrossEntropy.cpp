// SPDX-License-Identifier: Apache-2.0
// cross_entropy(logits, labels){ignore_index} -> sum, count, correct, lse and
// cross_entropy_grad(dsum, logits, labels, lse){ignore_index} -> dlogits. 16-bit logits have f32 (or 16-bit) sums and
// lse.
#include "runtime/cuda/CrossEntropy.h"
#include "ir/base/Workspace.h"
#include "runtime/cuda/Launch.h"

namespace shardc::cuda {
namespace {

using host::Array;
using host::Checks;

bool checkLogits(Checks &c, const Array &logits, const Array &labels, int64_t &ignore) {
  return c.intAttr("ignore_index", ignore) && checkFloat(c, logits, "logits") && c.rank(logits, 2) &&
         c.lastDim(logits) && c.that(logits.dims[1] > 0, "logits: wanted at least one class") &&
         c.dtype(labels, DType::I64) && c.dims(labels, {logits.dims[0]}) && c.contiguous(labels);
}

bool checkStatistics(Checks &c, const Array &a, DType stored, llvm::ArrayRef<int64_t> dims, llvm::StringRef what) {
  return checkStatistic(c, a, stored, what) && c.dims(a, dims) && c.contiguous(a);
}

CrossEntropyWork workOf(const host::Binding &b, Device &device, const Array &logits, const Array &labels,
                        const Array &lse, int64_t ignore) {
  CrossEntropyWork work = {};
  work.logits = logits.data;
  work.type = elementType(logits.dtype);
  work.rows = logits.dims[0], work.classes = logits.dims[1], work.rowStride = logits.strides[0];
  work.wide = aligned(logits, 16);
  work.labels = reinterpret_cast<const long long *>(labels.as<int64_t>());
  work.ignore = ignore;
  work.lse = anyFloats(lse);
  work.fault = device.fault();
  work.site = device.faultSite(b.place, "label");
  return work;
}

} // namespace

BoundKernel bindCrossEntropy(const host::Binding &b, Device &device) {
  Checks c(b);
  int64_t ignore;
  if (!(c.arity(2, 2, 4) && checkLogits(c, b.in[0], b.in[1], ignore)))
    return c.take();
  const DType dtype = b.in[0].dtype;
  if (!(checkStatistics(c, b.out[0], dtype, {}, "sum") && checkStatistics(c, b.out[1], dtype, {}, "count") &&
        checkStatistics(c, b.out[2], dtype, {}, "correct") &&
        checkStatistics(c, b.out[3], dtype, {b.in[0].dims[0]}, "lse") && c.apart()))
    return c.take();
  CrossEntropyWork work = workOf(b, device, b.in[0], b.in[1], b.out[3], ignore);
  work.sum = anyFloats(b.out[0]), work.count = anyFloats(b.out[1]), work.correct = anyFloats(b.out[2]);
  return launchKernel(enqueueCrossEntropy, "cross_entropy", work, b, device, lossWorkspace(work.rows));
}

BoundKernel bindCrossEntropyGrad(const host::Binding &b, Device &device) {
  Checks c(b);
  int64_t ignore;
  if (!(c.arity(4, 4, 1) && checkLogits(c, b.in[1], b.in[2], ignore)))
    return c.take();
  const DType dtype = b.in[1].dtype;
  if (!(checkStatistics(c, b.in[0], dtype, {}, "dsum") &&
        checkStatistics(c, b.in[3], dtype, {b.in[1].dims[0]}, "lse") && c.dtype(b.out[0], dtype) &&
        c.dims(b.out[0], b.in[1].dims) && c.contiguous(b.out[0]) && c.apart({{0, 1}})))
    return c.take();
  CrossEntropyWork work = workOf(b, device, b.in[1], b.in[2], b.in[3], ignore);
  work.wide = work.wide && aligned(b.out[0], 16);
  work.dsum = anyFloats(b.in[0]);
  work.dlogits = b.out[0].data;
  return launchKernel(enqueueCrossEntropyGrad, "cross_entropy_grad", work, b, device);
}

} // namespace shardc::cuda
