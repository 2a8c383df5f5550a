// SPDX-License-Identifier: Apache-2.0
#include "runtime/Inputs.h"
#include "ir/base/Error.h"
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

Inputs::Inputs(const plan::Plan &plan, Executor &executor, const Dataset &data) : plan_(&plan), data_(&data) {
  for (const plan::Input &input : plan.inputs())
    buffers_.push_back(executor.buffer(input.buffer()));
}

void Inputs::feed(llvm::ArrayRef<int64_t> rows) const {
  for (size_t i = 0; i < buffers_.size(); ++i)
    data_->copyRows(i, rows, buffers_[i]);
}

void Inputs::feedPadded(llvm::ArrayRef<int64_t> rows) const {
  assert(!rows.empty() && canPad(*plan_));
  feed(rows);
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const plan::Input &input = plan_->inputs(i);
    DType dtype = DType(input.dtype());
    int64_t elements =
        numElements(llvm::ArrayRef<int64_t>(input.dims().data(), input.dims_size()).drop_front());
    int64_t rowBytes = elements * byteSize(dtype);
    for (int64_t row = rows.size(); row < int64_t(plan_->batch()); ++row) {
      char *target = static_cast<char *>(buffers_[i]) + row * rowBytes;
      if (!input.has_ignore())
        std::memcpy(target, target - rowBytes, rowBytes);
      else if (dtype == DType::I32)
        std::fill_n(reinterpret_cast<int32_t *>(target), elements, int32_t(input.ignore()));
      else
        std::fill_n(reinterpret_cast<int64_t *>(target), elements, input.ignore());
    }
  }
}

} // namespace shardc
