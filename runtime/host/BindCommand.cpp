// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/BindCommand.h"
#include "ir/base/Error.h"
#include "llvm/Support/MathExtras.h"
#include "runtime/host/Narrow.h"

namespace shardc::host {
namespace {

/// Type, dims and strides of an operand, as kernels want them.
llvm::Expected<Array> shapeOf(const plan::Ref &ref, llvm::StringRef place) {
  Array a;
  auto bad = [&](const llvm::Twine &what) { return userError(place + ": operand " + what); };
  if (ref.dtype() >= kNumDTypes)
    return bad("of unknown type " + llvm::Twine(ref.dtype()));
  a.dtype = DType(ref.dtype());
  a.dims.assign(ref.dims().begin(), ref.dims().end());
  if (a.dims.size() > kMaxRank)
    return bad("rank: got " + llvm::Twine(a.dims.size()) + ", wanted at most " + llvm::Twine(kMaxRank));
  std::optional<int64_t> elements = checkedNumElements(a.dims);
  if (!elements)
    return bad("shape: got " + formatDims(a.dims) + ", wanted no negative or overflowing sizes");
  Dims plain = rowMajorStrides(a.dims);
  if (ref.strides().empty())
    a.strides = plain;
  else
    a.strides.assign(ref.strides().begin(), ref.strides().end());
  if (a.strides.size() != a.dims.size())
    return bad("strides: got " + llvm::Twine(a.strides.size()) + ", wanted one for each dim");
  // Where a stride moves nothing, what it says is of no account, so kernels see a plain one.
  for (size_t i = 0; i < a.dims.size(); ++i)
    if (*elements == 0 || a.dims[i] == 1)
      a.strides[i] = plain[i];
  return a;
}

llvm::Expected<Array> bindRef(const RankContext &context, const plan::Ref &ref, llvm::StringRef place) {
  if (ref.absent())
    return Array();
  auto bad = [&](const llvm::Twine &what) { return userError(place + ": operand " + what); };
  if (ref.buffer() >= context.buffers.size())
    return bad("of unknown buffer " + llvm::Twine(ref.buffer()));
  llvm::Expected<Array> array = shapeOf(ref, place);
  if (!array)
    return array;
  Array &a = *array;
  const int64_t size = byteSize(a.dtype), bytes = context.plan.buffers(ref.buffer()).bytes();
  // Of this rank's slice; saturated where it overflows.
  const uint64_t offset = llvm::SaturatingMultiplyAdd<uint64_t>(context.rank, ref.rank_stride(), ref.offset());
  if (offset > uint64_t(bytes) || offset % size)
    return bad("offset: got " + llvm::Twine(offset) + ", wanted a multiple of " + llvm::Twine(size) +
               " in a buffer of " + llvm::Twine(bytes) + " bytes");
  const int64_t elements = a.numElements();
  int64_t low = 0, high = 0; // of the elements touched, from the offset
  for (size_t i = 0; elements && i < a.dims.size(); ++i) {
    int64_t reach;
    int64_t &end = a.strides[i] < 0 ? low : high;
    if (llvm::MulOverflow(a.dims[i] - 1, a.strides[i], reach) || llvm::AddOverflow(end, reach, end))
      return bad("strides overflow");
  }
  int64_t start = int64_t(offset) / size, limit = bytes / size;
  if (elements && (low < -start || high >= limit - start))
    return bad("reaches outside its buffer of " + llvm::Twine(bytes) + " bytes");
  a.data = context.buffers[ref.buffer()] + offset;
  return array;
}

} // namespace

std::string placeOf(const plan::Plan &plan, const plan::Command &command) {
  bool named = command.place() < uint32_t(plan.strings_size()) && !plan.strings(command.place()).empty();
  return named ? plan.strings(command.place()) : command.kernel();
}

llvm::Expected<Binding> bindOperands(const RankContext &context, const plan::Command &command) {
  Binding binding;
  binding.place = placeOf(context.plan, command);
  binding.command = &command;
  binding.scalars = context.scalars;
  binding.communicator = context.communicator;
  for (const plan::Ref &ref : command.inputs()) {
    auto array = bindRef(context, ref, binding.place);
    if (!array)
      return array.takeError();
    binding.in.push_back(std::move(*array));
  }
  for (const plan::Ref &ref : command.outputs()) {
    auto array = bindRef(context, ref, binding.place);
    if (!array)
      return array.takeError();
    binding.out.push_back(std::move(*array));
  }
  if (command.has_workspace()) {
    auto array = bindRef(context, command.workspace(), binding.place);
    if (!array)
      return array.takeError();
    if (*array && array->contiguous()) {
      binding.workspace = array->data;
      binding.workspaceBytes = array->numElements() * byteSize(array->dtype);
    }
  }
  return binding;
}

BoundKernel bindCommand(const RankContext &context, const plan::Command &command, Stream &stream) {
  auto binding = bindOperands(context, command);
  if (!binding)
    return binding.takeError();
  binding->fault = &stream.fault;
  binding->scratch = stream.scratch.get();
  binding->scratchBytes = stream.scratchBytes;
  return bindNarrow(*binding);
}

} // namespace shardc::host
