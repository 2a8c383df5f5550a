// SPDX-License-Identifier: Apache-2.0
#include "runtime/Inputs.h"
#include "ir/base/Error.h"
#include <algorithm>
#include <cassert>
#include <cstring>

namespace shardc {

static bool isInteger(DType dtype) { return dtype == DType::I32 || dtype == DType::I64; }

llvm::Expected<Dataset> openData(const plan::Plan &plan, llvm::ArrayRef<std::string> files) {
  std::vector<InputSpec> specs;
  bool hasElements = false;
  for (const plan::Input &input : plan.inputs()) {
    Dims dims(input.dims().begin(), input.dims().end());
    if (dims.empty() || uint64_t(dims[0]) != plan.batch())
      return userError("plan: input \"" + input.name() + "\" cannot be cut into rows: got shape " +
                       formatDims(dims) + ", wanted a first dim of " + llvm::Twine(plan.batch()) +
                       ", the batch");
    hasElements |= numElements(dims) > 0;
    specs.push_back({input.name(), DType(input.dtype()), std::move(dims)});
  }
  if (!hasElements) // else nothing bounds the number of rows that a file can claim
    return userError("plan: no input has an element");
  auto data = Dataset::open(files, specs);
  if (!data)
    return data.takeError();
  for (const plan::Input &input : plan.inputs())
    if (input.low() < input.high() && isInteger(DType(input.dtype())))
      if (llvm::Error error =
              data->checkRange(input.name(), input.low(), input.high(),
                               input.has_ignore() ? std::optional(input.ignore()) : std::nullopt))
        return error;
  return data;
}

bool canPad(const plan::Plan &plan) {
  for (const plan::Input &input : plan.inputs())
    if (input.has_ignore() && isInteger(DType(input.dtype())))
      return true;
  return false;
}

Inputs::Inputs(const plan::Plan &plan, Executor &executor, const Dataset &data)
    : plan_(&plan), executor_(&executor), data_(&data) {
  for (const plan::Input &input : plan.inputs()) {
    Dims dims(input.dims().begin(), input.dims().end());
    Target target{input.buffer(), uint64_t(numElements(dims) * byteSize(DType(input.dtype()))), {}, nullptr};
    target.memory = executor.buffer(input.buffer());
    if (!target.memory) {
      target.staged.resize(std::max<uint64_t>(target.bytes, 1));
      target.memory = target.staged.data();
    }
    targets_.push_back(std::move(target));
  }
}

void Inputs::copyRows(llvm::ArrayRef<int64_t> rows) {
  for (size_t i = 0; i < targets_.size(); ++i)
    data_->copyRows(i, rows, targets_[i].memory);
}

llvm::Error Inputs::send() {
  for (const Target &target : targets_)
    if (!target.staged.empty())
      if (llvm::Error error = executor_->write(target.buffer, 0, target.memory, target.bytes))
        return error;
  return llvm::Error::success();
}

llvm::Error Inputs::feed(llvm::ArrayRef<int64_t> rows) {
  copyRows(rows);
  return send();
}

llvm::Error Inputs::feedPadded(llvm::ArrayRef<int64_t> rows) {
  assert(!rows.empty() && canPad(*plan_));
  copyRows(rows);
  for (size_t i = 0; i < targets_.size(); ++i) {
    const plan::Input &input = plan_->inputs(i);
    DType dtype = DType(input.dtype());
    int64_t elements =
        numElements(llvm::ArrayRef<int64_t>(input.dims().data(), input.dims_size()).drop_front());
    int64_t rowBytes = elements * byteSize(dtype);
    for (int64_t row = rows.size(); row < int64_t(plan_->batch()); ++row) {
      char *target = static_cast<char *>(targets_[i].memory) + row * rowBytes;
      if (!input.has_ignore())
        std::memcpy(target, target - rowBytes, rowBytes);
      else if (dtype == DType::I32)
        std::fill_n(reinterpret_cast<int32_t *>(target), elements, int32_t(input.ignore()));
      else
        std::fill_n(reinterpret_cast<int64_t *>(target), elements, input.ignore());
    }
  }
  return send();
}

} // namespace shardc
