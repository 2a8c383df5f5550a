// SPDX-License-Identifier: Apache-2.0
// matmul(a, b[, c[, bias]]){transpose_a, transpose_b, tf32, act} -> y = act(a b + bias + c), batches broadcast, by cuBLASLt.
// a, b and bias have one type; of 16-bit ones y and c may be f32. c is y's memory, or other memory in the same form. Sums are f32
// (f64 for f64); f32 products are rounded to TF32 only with attribute tf32 = 1.
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/LtMatMul.h"
#include "runtime/cuda/ProductParts.h"
#include "runtime/cuda/Tuner.h"
#include "runtime/host/Strided.h"
#include <numeric>
#include <optional>

namespace shardc::cuda {
namespace {

using host::Array;
using host::Checks;

/// What a product's kernel does before and after the library's.
struct Beside {
  ProductParts parts;
  bool before = false, relu = false;

  llvm::Error launchBefore(cudaStream_t stream) const {
    return before ? check(enqueueBefore(parts, stream), "matmul: bias") : llvm::Error::success();
  }
  llvm::Error launchAfter(cudaStream_t stream) const {
    return relu ? check(enqueueRelu(parts, stream), "matmul: relu") : llvm::Error::success();
  }
};

/// The same product on several parts of the operands.
class MatMul final : public Kernel {
public:
  MatMul(LtProduct product, std::vector<Operands> parts, const Beside &beside, KernelScratch workspace,
         Tuner *tuner)
      : product_(std::move(product)), parts_(std::move(parts)), beside_(beside), workspace_(workspace) {
    if (!tuner)
      return;
    tuner->add(product_, parts_.front(), workspace_);
    if (parts_.size() == 1 && (counters_ = tuner->counters()))
      number_ = counters_->add();
  }

  llvm::Error launch(cudaStream_t stream) override {
    if (llvm::Error error = beside_.launchBefore(stream))
      return error;
    void *own = counters_ ? counters_->at(number_) : nullptr;
    if (own && !fits_) {
      auto bytes = product_.workspaceBytes();
      if (!bytes)
        return bytes.takeError();
      fits_ = *bytes <= Counters::kBytes;
    }
    for (const Operands &part : parts_)
      if (llvm::Error error = own && *fits_ ? product_.run(part, own, stream, Counters::kBytes)
                                            : product_.run(part, workspace_.data(), stream))
        return error;
    return beside_.launchAfter(stream);
  }

private:
  LtProduct product_;
  std::vector<Operands> parts_;
  Beside beside_;
  KernelScratch workspace_;
  Counters *counters_ = nullptr;
  size_t number_ = 0;
  std::optional<bool> fits_; ///< the workspace in its counters; known when it runs, with the algorithm
};

/// An empty sum: y = act(bias + c).
class NoProduct final : public Kernel {
public:
  NoProduct(const Array &c, const Array &y, const Beside &beside)
      : from_(c.data), to_(y.data), bytes_(y.numElements() * byteSize(y.dtype)), beside_(beside) {}
  llvm::Error launch(cudaStream_t stream) override {
    if (bytes_ == 0)
      return llvm::Error::success();
    if (beside_.before) {
      if (llvm::Error error = beside_.launchBefore(stream))
        return error;
    } else if (!from_) {
      if (llvm::Error error = check(cudaMemsetAsync(to_, 0, bytes_, stream), "cudaMemsetAsync"))
        return error;
    } else if (from_ != to_) {
      if (llvm::Error error =
              check(cudaMemcpyAsync(to_, from_, bytes_, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync"))
        return error;
    }
    return beside_.launchAfter(stream);
  }

private:
  void *from_, *to_;
  int64_t bytes_;
  Beside beside_;
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

/// Attributes and operands, checked; batches as they are given.
struct Checked {
  Array a, b, c, bias, y;
  Problem problem = {};
  Dims batch = {}, strideA = {}, strideB = {};
  Beside beside = {};
};

/// The library does all of it, if it can; else bias and ReLU are kernels beside it. (A sum with both bias and c is then rounded
/// twice; the library lacks none of these for 16-bit operands.)
llvm::Expected<LtProduct> productOf(Checked &all, Device &device, llvm::StringRef place) {
  Problem &p = all.problem;
  auto whole = LtProduct::of(p, all.bias.data, device, place);
  if (whole || (!p.addsBias && !p.relu))
    return whole;
  llvm::consumeError(whole.takeError());
  all.beside.before = p.addsBias, all.beside.relu = p.relu;
  if (p.addsBias)
    all.c = all.y;
  p.addsC = p.addsC || p.addsBias;
  p.inPlace = p.inPlace || p.addsBias;
  p.addsBias = p.relu = false;
  return LtProduct::of(p, nullptr, device, place);
}

BoundKernel prepare(const host::Binding &binding, Device &device, Checked all) {
  Problem &p = all.problem;
  Dims &batch = all.batch, strides[] = {all.strideA, all.strideB, Dims()}, &strideY = strides[2];
  for (int64_t stride : rowMajorStrides(batch))
    strideY.push_back(stride * p.m * p.n);
  host::collapse(batch, strides);
  p.alignA = alignmentOf(all.a, batch, strides[0]), p.alignB = alignmentOf(all.b, batch, strides[1]);
  p.alignY = std::min(alignmentOf(all.y, batch, strideY), all.c ? alignmentOf(all.c, batch, strideY) : 256u);
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
  auto product = productOf(all, device, binding.place);
  if (!product)
    return product.takeError();

  std::vector<Operands> parts;
  for (int64_t i = 0, count = numElements(batch); i < count; ++i) {
    int64_t at[3] = {0, 0, 0}, rest = i;
    for (size_t d = batch.size(); d-- > 0; rest /= batch[d])
      for (int s = 0; s < 3; ++s)
        at[s] += rest % batch[d] * strides[s][d];
    const int64_t inY = at[2] * byteSize(all.y.dtype);
    parts.push_back({all.a.as<char>() + at[0] * byteSize(all.a.dtype), all.b.as<char>() + at[1] * byteSize(all.b.dtype),
                     all.c ? all.c.as<char>() + inY : nullptr, all.y.as<char>() + inY});
  }
  auto workspace = KernelScratch::of(binding, device, kProductWorkspace);
  if (!workspace)
    return workspace.takeError();
  return std::make_unique<MatMul>(std::move(*product), std::move(parts), all.beside, *workspace, device.tuner());
}

} // namespace

BoundKernel bindMatMul(const host::Binding &binding, Device &device) {
  Checks c(binding);
  int64_t ta, tb, tf32;
  std::string act;
  if (!(c.arity(2, 4, 1) && c.intAttr("transpose_a", ta, 0) && c.intAttr("transpose_b", tb, 0) &&
        c.intAttr("tf32", tf32, 0) && (!c.has("act") || c.stringAttr("act", act)) &&
        c.that(act.empty() || act == "relu", "act: got '" + act + "', wanted 'relu' or ''")))
    return c.take();
  Checked all{c.in(0), c.in(1), c.in(2), c.in(3), c.out(0)};
  const Array &a = all.a, &b = all.b, &y = all.y, &bias = all.bias;
  if (!(checkFloat(c, a, "a") && c.dtype(b, a.dtype) && checkStatistic(c, y, a.dtype, "result") && c.contiguous(y) &&
        c.that(a.dims.size() >= 2 && b.dims.size() >= 2 && y.dims.size() >= 2, "ranks: wanted at least 2")))
    return c.take();
  const size_t ra = a.dims.size(), rb = b.dims.size(), ry = y.dims.size();
  Problem &p = all.problem;
  p.m = a.dims[ra - (ta ? 1 : 2)], p.k = a.dims[ra - (ta ? 2 : 1)], p.n = b.dims[rb - (tb ? 2 : 1)];
  const int64_t kb = b.dims[rb - (tb ? 1 : 2)];
  all.batch = Dims(llvm::ArrayRef(y.dims).drop_back(2));
  if (!(c.that(p.k == kb, "inner sizes differ: " + formatDims(a.dims) + " and " + formatDims(b.dims)) &&
        c.that(y.dims[ry - 2] == p.m && y.dims[ry - 1] == p.n, "result shape: got " + formatDims(y.dims) + ", wanted " +
                                                                   formatDims({p.m, p.n}) + " in the last dims") &&
        c.that(broadcastStrides(batchOf(a), all.batch, all.strideA) &&
                   broadcastStrides(batchOf(b), all.batch, all.strideB),
               "batches do not broadcast to the result's") &&
        c.that(!all.c || (all.c.dtype == y.dtype && all.c.dims == y.dims && all.c.contiguous()),
               "c: wanted the type, shape and row-major form of the result") &&
        (!bias || (c.dtype(bias, a.dtype) && c.dims(bias, {p.n}) && c.contiguous(bias))) && c.apart({{0, 2}}) &&
        c.that(std::max({p.m, p.n, p.k, numElements(all.batch)}) < INT32_MAX, "sizes: wanted fewer than 2^31")))
    return c.take();
  p.rowA = a.strides[ra - (ta ? 1 : 2)], p.columnA = a.strides[ra - (ta ? 2 : 1)];
  p.rowB = b.strides[rb - (tb ? 1 : 2)], p.columnB = b.strides[rb - (tb ? 2 : 1)];
  p.in = a.dtype, p.out = y.dtype, p.tf32 = tf32 != 0;
  p.addsC = bool(all.c), p.addsBias = bool(bias), p.relu = act == "relu";
  p.inPlace = all.c && all.c.data == y.data;
  all.beside.parts = {anyFloats(y), anyFloats(bias), anyFloats(all.c), y.numElements(), p.n};
  if (y.numElements() == 0 || p.k == 0) {
    all.beside.before = p.addsBias, all.beside.relu = p.relu;
    return std::make_unique<NoProduct>(all.c, y, all.beside);
  }
  return prepare(binding, device, std::move(all));
}

} // namespace shardc::cuda
