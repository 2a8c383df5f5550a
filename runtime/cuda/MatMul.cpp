// SPDX-License-Identifier: Apache-2.0
// matmul(a, b[, acc]){transpose_a, transpose_b, tf32} -> y = a b (+ acc), batches broadcast, by cuBLASLt. a and b have
// one type; of 16-bit ones y may be f32. acc is y's memory, or other memory in the same form. Sums are f32 (f64 for
// f64); f32 products are rounded to TF32 only with attribute tf32 = 1.
#include "runtime/cuda/Launcher.h"
#include "runtime/cuda/LtMatMul.h"
#include "runtime/host/Strided.h"
#include <numeric>

namespace shardc::cuda {
namespace {

using host::Array;
using host::Checks;

/// The same product on several parts of the operands.
class MatMul final : public Kernel {
public:
  struct Part {
    const char *a, *b, *acc;
    char *y;
  };
  MatMul(LtProduct product, std::vector<Part> parts, void *workspace, Scratch *scratch)
      : product_(std::move(product)), parts_(std::move(parts)), workspace_(workspace), scratch_(scratch) {}

  llvm::Error launch(cudaStream_t stream) override {
    void *workspace = workspace_ ? workspace_ : scratch_->data();
    for (const Part &part : parts_)
      if (llvm::Error error = product_.run(part.a, part.b, part.acc, part.y, workspace, stream))
        return error;
    return llvm::Error::success();
  }

private:
  LtProduct product_;
  std::vector<Part> parts_;
  void *workspace_;
  Scratch *scratch_; ///< if there is no workspace
};

/// An empty sum: y = 0 or acc.
class NoProduct final : public Kernel {
public:
  NoProduct(const Array &acc, const Array &y)
      : from_(acc.data), to_(y.data), bytes_(y.numElements() * byteSize(y.dtype)) {}
  llvm::Error launch(cudaStream_t stream) override {
    if (bytes_ == 0 || from_ == to_)
      return llvm::Error::success();
    if (from_)
      return check(cudaMemcpyAsync(to_, from_, bytes_, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
    return check(cudaMemsetAsync(to_, 0, bytes_, stream), "cudaMemsetAsync");
  }

private:
  void *from_, *to_;
  int64_t bytes_;
};

Array batchOf(const Array &a) {
  Array batch = a;
  batch.dims.resize(a.dims.size() - 2);
  batch.strides.resize(a.dims.size() - 2);
  return batch;
}

/// Bytes, at most 256, that divide the address and every stride between batches. (A stride along a dim of 1 leads nowhere.)
unsigned alignmentOf(const Array &a, llvm::ArrayRef<int64_t> batch, llvm::ArrayRef<int64_t> strides) {
  uint64_t all = reinterpret_cast<uintptr_t>(a.data) | 256;
  for (auto [dim, stride] : llvm::zip(batch, strides))
    all |= dim > 1 ? uint64_t(stride) * byteSize(a.dtype) : 0;
  return unsigned(all & -all);
}

BoundKernel prepare(const host::Binding &binding, Device &device, Problem p, Dims batch, Dims strideA, Dims strideB) {
  const Array &a = binding.in[0], &b = binding.in[1], &y = binding.out[0];
  const Array acc = binding.in.size() > 2 ? binding.in[2] : Array();
  Dims strides[] = {strideA, strideB, Dims()};
  Dims &strideY = strides[2];
  for (int64_t stride : rowMajorStrides(batch))
    strideY.push_back(stride * p.m * p.n);
  host::collapse(batch, strides);
  p.alignA = alignmentOf(a, batch, strides[0]), p.alignB = alignmentOf(b, batch, strides[1]);
  p.alignY = std::min(alignmentOf(y, batch, strideY), acc ? alignmentOf(acc, batch, strideY) : 256u);
  // A batch of row blocks that share b is one product with more rows.
  const size_t last = batch.size() - 1;
  if (batch[last] > 1 && strides[1][last] == 0 && p.rowA > 0 && strides[0][last] == p.m * p.rowA && p.columnA == 1) {
    p.m *= batch[last];
    batch[last] = 1;
  }
  // One call takes one dim of batches; the largest leaves the fewest calls.
  const size_t inside = std::max_element(batch.begin(), batch.end()) - batch.begin();
  p.batch = batch[inside];
  if (p.batch > 1)
    p.strideA = strides[0][inside], p.strideB = strides[1][inside], p.strideY = strideY[inside];
  batch[inside] = 1;
  auto product = LtProduct::of(p, device, binding.place);
  if (!product)
    return product.takeError();

  std::vector<MatMul::Part> parts;
  for (int64_t i = 0, count = numElements(batch); i < count; ++i) {
    int64_t at[3] = {0, 0, 0}, rest = i;
    for (size_t d = batch.size(); d-- > 0; rest /= batch[d])
      for (int s = 0; s < 3; ++s)
        at[s] += rest % batch[d] * strides[s][d];
    const int64_t inY = at[2] * byteSize(y.dtype);
    parts.push_back({a.as<char>() + at[0] * byteSize(a.dtype), b.as<char>() + at[1] * byteSize(b.dtype),
                     acc ? acc.as<char>() + inY : nullptr, y.as<char>() + inY});
  }
  const bool given =
      binding.workspaceBytes >= kBlasWorkspace && reinterpret_cast<uintptr_t>(binding.workspace) % 256 == 0;
  Scratch *scratch = given ? nullptr : &device.scratch(binding.command->stream());
  if (scratch)
    if (llvm::Error error = scratch->reserve(kBlasWorkspace))
      return error;
  return std::make_unique<MatMul>(std::move(*product), std::move(parts), given ? binding.workspace : nullptr, scratch);
}

} // namespace

BoundKernel bindMatMul(const host::Binding &binding, Device &device) {
  Checks c(binding);
  int64_t ta, tb, tf32;
  std::string act;
  if (!(c.arity(2, 4, 1) && (!c.has("act") || c.stringAttr("act", act)) &&
        c.that(act.empty() && !c.in(3), "bias and act: devices have none") && c.intAttr("transpose_a", ta, 0) &&
        c.intAttr("transpose_b", tb, 0) && c.intAttr("tf32", tf32, 0)))
    return c.take();
  const Array &a = c.in(0), &b = c.in(1), &acc = c.in(2), &y = c.out(0);
  if (!(checkFloat(c, a, "a") && c.dtype(b, a.dtype) && checkStatistic(c, y, a.dtype, "result") && c.contiguous(y) &&
        c.that(a.dims.size() >= 2 && b.dims.size() >= 2 && y.dims.size() >= 2, "ranks: wanted at least 2")))
    return c.take();
  const size_t ra = a.dims.size(), rb = b.dims.size(), ry = y.dims.size();
  Problem p;
  p.m = a.dims[ra - (ta ? 1 : 2)], p.k = a.dims[ra - (ta ? 2 : 1)], p.n = b.dims[rb - (tb ? 2 : 1)];
  const int64_t kb = b.dims[rb - (tb ? 1 : 2)];
  Dims strideA, strideB;
  llvm::ArrayRef<int64_t> batch = llvm::ArrayRef(y.dims).drop_back(2);
  if (!(c.that(p.k == kb, "inner sizes differ: " + formatDims(a.dims) + " and " + formatDims(b.dims)) &&
        c.that(y.dims[ry - 2] == p.m && y.dims[ry - 1] == p.n, "result shape: got " + formatDims(y.dims) + ", wanted " +
                                                                   formatDims({p.m, p.n}) + " in the last dims") &&
        c.that(broadcastStrides(batchOf(a), batch, strideA) && broadcastStrides(batchOf(b), batch, strideB),
               "batches do not broadcast to the result's") &&
        c.that(!acc || (acc.dtype == y.dtype && acc.dims == y.dims && acc.contiguous()),
               "acc: wanted the type, shape and row-major form of the result") &&
        c.apart({{0, 2}}) &&
        c.that(std::max({p.m, p.n, p.k, numElements(batch)}) < INT32_MAX, "sizes: wanted fewer than 2^31")))
    return c.take();
  if (y.numElements() == 0 || p.k == 0)
    return std::make_unique<NoProduct>(acc, y);
  p.rowA = a.strides[ra - (ta ? 1 : 2)], p.columnA = a.strides[ra - (ta ? 2 : 1)];
  p.rowB = b.strides[rb - (tb ? 1 : 2)], p.columnB = b.strides[rb - (tb ? 2 : 1)];
  p.in = a.dtype, p.out = y.dtype, p.accumulate = bool(acc), p.tf32 = tf32 != 0;
  return prepare(binding, device, p, Dims(batch), strideA, strideB);
}

} // namespace shardc::cuda
