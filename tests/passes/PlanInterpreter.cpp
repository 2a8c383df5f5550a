// SPDX-License-Identifier: Apache-2.0
#include "tests/passes/PlanInterpreter.h"
#include "ir/base/Error.h"
#include "ir/ops/OpDef.h"
#include "ir/ops/Reference.h"
#include "ir/plan/Scalars.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

Dims dimsOf(const plan::Ref &ref) { return {ref.dims().begin(), ref.dims().end()}; }

/// Calls `visit(bytes from the buffer's start)` for each element, the last dim fastest.
template <typename Visit> void eachElement(const plan::Ref &ref, unsigned rank, Visit visit) {
  Dims dims = dimsOf(ref);
  Dims strides =
      ref.strides_size() ? Dims(ref.strides().begin(), ref.strides().end()) : rowMajorStrides(dims);
  int64_t size = byteSize(DType(ref.dtype()));
  for (int64_t i = 0, n = numElements(dims); i < n; ++i) {
    int64_t rest = i, element = 0;
    for (size_t d = dims.size(); d-- > 0; rest /= dims[d])
      element += rest % dims[d] * strides[d];
    visit(i, int64_t(ref.offset() + rank * ref.rank_stride()) + element * size);
  }
}

Attrs attrsOf(const plan::Command &command) {
  Attrs attrs;
  for (const plan::Attr &a : command.attrs()) {
    if (a.value_case() == plan::Attr::kI)
      attrs.set(a.name(), int64_t(a.i()));
    else if (a.value_case() == plan::Attr::kF)
      attrs.set(a.name(), a.f());
    else if (a.value_case() == plan::Attr::kS)
      attrs.set(a.name(), a.s());
    else
      attrs.set(a.name(), Ints(a.ints().v().begin(), a.ints().v().end()));
  }
  return attrs;
}

} // namespace

PlanInterpreter::PlanInterpreter(const plan::Plan &plan, Memory memory, unsigned rank)
    : plan_(plan), rank_(rank) {
  uint64_t end = 0;
  for (const plan::Buffer &b : plan.buffers()) {
    starts_.push_back(memory == Packed ? b.offset() : end);
    end = std::max(end, starts_.back() + b.bytes());
  }
  bytes_.assign(end, char(0xff)); // NaN in every float type
  for (const plan::Bucket &bucket : plan.buckets())
    for (uint32_t state : bucket.state_buffers())
      std::memset(at(state), 0, plan.buffers(state).bytes());
  for (const plan::Bucket &bucket : plan.buckets()) // padding of parameters: as a runtime leaves it
    std::memset(at(bucket.parameter_buffer()), 0, plan.buffers(bucket.parameter_buffer()).bytes());
  for (const plan::ConstantData &constant : plan.constants())
    std::memcpy(at(constant.buffer()), constant.data().data(), constant.data().size());
  std::memset(at(plan.scalars_buffer()), 0, kNumScalars * sizeof(double));
}

char *PlanInterpreter::at(uint32_t buffer) const {
  return const_cast<char *>(bytes_.data()) + starts_[buffer];
}

void PlanInterpreter::write(const plan::Ref &ref, const Tensor &tensor) {
  ASSERT_EQ(DType(ref.dtype()), tensor.dtype());
  ASSERT_EQ(ArrayRef<int64_t>(dimsOf(ref)), tensor.dims());
  int64_t size = byteSize(tensor.dtype());
  eachElement(ref, rank_, [&](int64_t i, int64_t offset) {
    std::memcpy(at(ref.buffer()) + offset, tensor.data<char>() + i * size, size_t(size));
  });
}

Tensor PlanInterpreter::read(const plan::Ref &ref) const {
  Tensor tensor(DType(ref.dtype()), dimsOf(ref));
  int64_t size = byteSize(tensor.dtype());
  eachElement(ref, rank_, [&](int64_t i, int64_t offset) {
    std::memcpy(tensor.mutableData<char>() + i * size, at(ref.buffer()) + offset, size_t(size));
  });
  return tensor;
}

void PlanInterpreter::writeInput(StringRef name, const Tensor &tensor) {
  for (const plan::Input &input : plan_.inputs()) {
    if (input.name() != name)
      continue;
    plan::Ref ref;
    ref.set_buffer(input.buffer());
    ref.set_dtype(input.dtype());
    *ref.mutable_dims() = input.dims();
    write(ref, tensor);
  }
}

plan::Ref PlanInterpreter::parameterRef(StringRef name, bool gradient) const {
  for (const plan::Parameter &p : plan_.parameters()) {
    if (p.name() != name)
      continue;
    const plan::Bucket &bucket = plan_.buckets(p.bucket());
    plan::Ref ref;
    ref.set_buffer(gradient ? bucket.gradient_buffer() : bucket.parameter_buffer());
    ref.set_offset(p.offset() * byteSize(DType(p.dtype())));
    ref.set_dtype(p.dtype());
    *ref.mutable_dims() = p.dims();
    return ref;
  }
  ADD_FAILURE() << "no parameter " << name.str();
  return {};
}

void PlanInterpreter::writeParameter(StringRef name, const Tensor &tensor) {
  write(parameterRef(name, /*gradient=*/false), tensor);
}
Tensor PlanInterpreter::readParameter(StringRef name) const {
  return read(parameterRef(name, /*gradient=*/false));
}
Tensor PlanInterpreter::readGradient(StringRef name) const {
  return read(parameterRef(name, /*gradient=*/true));
}
Tensor PlanInterpreter::readOutput(StringRef program, StringRef name) const {
  return read(findOutput(plan_, program, name)->ref());
}

void PlanInterpreter::setScalar(unsigned slot, double value) {
  std::memcpy(at(plan_.scalars_buffer()) + slot * sizeof(double), &value, sizeof value);
}

Error PlanInterpreter::run(StringRef program) {
  for (const plan::Command &command : findProgram(plan_, program)->commands())
    if (Error error = execute(command))
      return error;
  return Error::success();
}

/// The op that the command came from, alone in a graph.
Error PlanInterpreter::execute(const plan::Command &command) {
  if (command.outputs_size() == 0)
    return Error::success();
  const OpDef *def = findOp(command.kernel());
  if (!def)
    return userError("no op " + command.kernel());
  Graph graph;
  SmallVector<Value *> operands;
  SmallVector<Tensor> tensors;
  for (const plan::Ref &ref : command.inputs()) {
    tensors.push_back(ref.absent() ? Tensor() : read(ref));
    operands.push_back(
        ref.absent()
            ? nullptr
            : graph.create(kInput, {}, {}, {Type(DType(ref.dtype()), dimsOf(ref))})->result());
  }
  Types types;
  for (const plan::Ref &ref : command.outputs())
    types.push_back(Type(DType(ref.dtype()), dimsOf(ref)));
  Op *op = graph.create(*def, operands, attrsOf(command), types);
  SmallVector<const Tensor *> arguments;
  for (auto [value, tensor] : zip(operands, tensors))
    arguments.push_back(value ? &tensor : nullptr);
  auto results = evaluateOp(*op, arguments);
  if (!results)
    return userError(command.kernel() + ": " + toString(results.takeError()));
  for (int i = 0; i < command.outputs_size(); ++i)
    write(command.outputs(i), (*results)[i]);
  return Error::success();
}

} // namespace shardc
