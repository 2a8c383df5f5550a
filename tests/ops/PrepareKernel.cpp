// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/PrepareKernel.h"
#include "ir/base/Movement.h"
#include "ir/ops/Reference.h"
#include "passes/FusedBody.h"
#include "passes/Layout.h"
#include "passes/emit/CommandAttr.h"

namespace shardc::test {

KernelMemory::KernelMemory(DType dtype, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> order, int64_t gap) {
  array.dtype = dtype;
  array.dims.assign(dims.begin(), dims.end());
  array.strides.resize(dims.size());
  int64_t stride = gap;
  for (int64_t d : llvm::reverse(order)) {
    array.strides[d] = stride;
    stride *= std::max<int64_t>(dims[d], 1);
  }
  bytes.resize(stride * byteSize(dtype) / 8 + 2);
  array.data = bytes.data();
}

void KernelMemory::put(const Tensor &tensor) {
  stridedCopy(bytes.data(), array.strides, tensor.bytes(), rowMajorStrides(tensor.dims()), tensor.dims(),
              byteSize(array.dtype));
}

Tensor KernelMemory::get() const {
  Tensor tensor(array.dtype, array.dims);
  stridedCopy(tensor.mutableData<char>(), rowMajorStrides(array.dims), bytes.data(), array.strides, array.dims,
              byteSize(array.dtype));
  return tensor;
}

llvm::SmallVector<Tensor, 1> PreparedKernel::results() const {
  llvm::SmallVector<Tensor, 1> results;
  for (const KernelMemory &memory : out)
    results.push_back(memory.get());
  return results;
}

bool hasKernel(const Op &op) {
  return !(op.def().view || op.def().operands.empty() || op.is(kRange) || op.is(kPack));
}

llvm::StringRef kernelOf(const OpDef &def) { return def.scalar ? llvm::StringRef("fused") : def.mnemonic; }

namespace {

/// The wildest layout that `layouts` allows for operand `i`.
KernelMemory allocate(const Tensor &tensor, uint8_t layouts, unsigned i, bool strided) {
  llvm::SmallVector<int64_t, 4> order;
  int64_t rank = tensor.rank(), gap = 1;
  for (int64_t d = 0; d < rank; ++d)
    order.push_back(d);
  if (strided && layouts & kStrided) {
    std::reverse(order.begin(), order.end());
    gap = 2;
  } else if (strided && layouts & (kMatrix | kLastDim)) {
    int64_t kept = std::min<int64_t>(rank, layouts & kMatrix ? 2 : 1);
    std::reverse(order.begin(), order.end() - kept);
    if (layouts & kMatrix && i % 2 == 0 && rank >= 2)
      std::swap(order[rank - 1], order[rank - 2]);
  }
  return KernelMemory(tensor.dtype(), tensor.dims(), order, gap);
}

/// The command's kernel and attributes; a pointwise op becomes a fused group of one.
plan::Command commandOf(const Op &op) {
  plan::Command command;
  command.set_kernel(op.mnemonic().str());
  if (!op.def().scalar) {
    for (auto &[name, value] : op.attrs)
      addAttr(command, name, value);
    return command;
  }
  command.set_kernel("fused");
  Op *self = const_cast<Op *>(&op);
  FusedBody body = writeBody({self}, op.operands(), {op.result()});
  addAttr(command, "body", body.text);
  addAttr(command, "outputs", body.outputs);
  return command;
}

} // namespace

std::unique_ptr<PreparedKernel> prepareKernel(const Op &op, TensorArgs operands, bool strided) {
  auto prepared = std::make_unique<PreparedKernel>();
  auto &[command, in, out, binding] = *prepared;
  command = commandOf(op);
  binding.command = &command;
  binding.place = op.mnemonic().str();
  in.reserve(operands.size()); // arrays point into their memory: no moves
  out.reserve(op.numResults());
  for (unsigned i = 0; i < op.numResults(); ++i)
    out.push_back(
        allocate(Tensor(op.result(i)->type().dtype, op.result(i)->type().dims), 0, 0, false));
  for (unsigned i = 0; i < operands.size(); ++i) {
    binding.in.emplace_back();
    if (!operands[i])
      continue;
    const InPlace *pair =
        llvm::find_if(op.def().inPlace, [&](const InPlace &p) { return p.operand == int(i); });
    if (op.def().inPlaceRequired && pair != op.def().inPlace.end()) {
      out[pair->result].put(*operands[i]);
      binding.in.back() = out[pair->result].array;
      continue;
    }
    // lse comes straight out of attention, in row-major order.
    bool dense = !strided || (op.is(kAttentionGrad) && i == 5) || (op.is(kRelativeAttentionGrad) && i == 7);
    in.push_back(allocate(*operands[i], allowedLayouts(op.def(), i), i, !dense));
    in.back().put(*operands[i]);
    binding.in.back() = in.back().array;
  }
  for (KernelMemory &memory : out)
    binding.out.push_back(memory.array);
  return prepared;
}

} // namespace shardc::test
