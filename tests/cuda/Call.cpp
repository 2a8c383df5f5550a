// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/Call.h"
#include "ir/base/Half.h"
#include "ir/ops/Reference.h"
#include "ir/plan/Scalars.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>
#include <numeric>
#include <random>

namespace shardc::test {

Tensor randomFloats(llvm::ArrayRef<int64_t> dims, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  Tensor tensor(DType::F64, dims);
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    float value = bfloatToFloat(floatToBFloat(normal(engine)));
    tensor.mutableData<double>()[i] = std::fabs(value) < 1e-3f ? 0 : value; // no subnormals of f16
  }
  return tensor;
}

Tensor randomIndices(llvm::ArrayRef<int64_t> dims, int64_t low, int64_t high, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int64_t> uniform(low, high - 1);
  Tensor tensor(DType::I64, dims);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.mutableData<int64_t>()[i] = uniform(engine);
  return tensor;
}

namespace {

DType stored(DType dtype, bool wide, DType storage) {
  if (dtype != DType::F64)
    return dtype;
  return wide && byteSize(storage) == 2 ? DType::F32 : storage;
}

std::string replaced(const std::string &text, llvm::StringRef word, DType dtype) {
  return llvm::join(llvm::split(text, word), toString(dtype));
}

OperandView laidOut(const Tensor &value, const CallOperand &operand) {
  std::vector<int64_t> order = operand.order;
  if (order.empty()) {
    order.resize(value.rank());
    std::iota(order.begin(), order.end(), 0);
  }
  KernelMemory memory(value.dtype(), value.dims(), order, operand.gap);
  memory.put(value);
  const int64_t bytes = int64_t(memory.bytes.size() * sizeof(double));
  Tensor storage(value.dtype(), {bytes / byteSize(value.dtype())});
  std::memcpy(storage.mutableData<char>(), memory.bytes.data(), bytes);
  return OperandView(std::move(storage), memory.array.dims, memory.array.strides, 0);
}

TestCommand commandOf(const Call &call, DType storage, const std::vector<double> &scalars) {
  TestCommand command{call.kernel, call.attrs};
  for (auto &[name, value] : call.attrs)
    if (auto *text = std::get_if<std::string>(&value))
      command.attrs.set(name, replaced(replaced(*text, "STORED", storage), "WIDE", stored(DType::F64, true, storage)));
  for (const CallOperand &operand : call.in)
    if (operand.absent)
      command.in.emplace_back();
    else if (operand.value.dtype() != DType::F64)
      command.in.push_back(laidOut(operand.value, operand));
    else
      command.in.push_back(laidOut(fromDoubles(stored(DType::F64, operand.wide, storage), operand.value.dims(),
                                               toDoubles(operand.value)),
                                   operand));
  for (const CallResult &result : call.out)
    command.out.push_back(Type(stored(result.dtype, result.wide, storage), result.dims));
  command.inPlace = call.inPlace;
  command.scalars = scalars;
  return command;
}

double epsilon(DType storage) {
  return storage == DType::F64 ? 1e-12 : storage == DType::F32 ? 1e-5 : storage == DType::F16 ? 2e-3 : 1.6e-2;
}

} // namespace

void expectLikeHost(const Call &call, double slack, llvm::ArrayRef<double> given) {
  std::vector<double> scalars(given.begin(), given.end());
  scalars.resize(kNumScalars);
  auto wanted = runByHost(commandOf(call, DType::F64, scalars));
  ASSERT_TRUE(bool(wanted)) << "host: " << llvm::toString(wanted.takeError());
  for (DType storage : {DType::F32, DType::F64, DType::BF16, DType::F16}) {
    SCOPED_TRACE(call.kernel + " in " + toString(storage).str());
    auto got = runByDevice(commandOf(call, storage, scalars));
    ASSERT_TRUE(bool(got)) << llvm::toString(got.takeError());
    for (unsigned i = 0; i < got->size(); ++i) {
      Tensor w = (*wanted)[i];
      if (w.dtype() == DType::F64) // compared as it is stored, within an absolute and relative bound
        w = fromDoubles((*got)[i].dtype(), w.dims(), toDoubles(w));
      EXPECT_EQ(compare((*got)[i], w, slack * epsilon(storage)), "") << "result " << i;
    }
  }
}

std::string complaint(const Call &call) {
  auto results = runByDevice(commandOf(call, DType::F32, std::vector<double>(kNumScalars)));
  return results ? "" : llvm::toString(results.takeError());
}

} // namespace shardc::test
