// SPDX-License-Identifier: Apache-2.0
#include "runtime/StepPrograms.h"
#include "ir/base/Error.h"
#include <algorithm>
#include <cassert>
#include <cstring>

namespace shardc {

template <typename T> static double readAs(const void *address) {
  T value;
  std::memcpy(&value, address, sizeof value); // a plan promises no alignment
  return double(value);
}

llvm::Error Result::fetch() {
  return executor_ ? executor_->fetch(buffer_, offset_, bytes_, byteSize(dtype_)) : llvm::Error::success();
}

double Result::value() const {
  if (!executor_)
    return 0;
  switch (dtype_) {
  case DType::F32:
    return readAs<float>(bytes_);
  case DType::F64:
    return readAs<double>(bytes_);
  case DType::I32:
    return readAs<int32_t>(bytes_);
  default:
    return readAs<int64_t>(bytes_);
  }
}

llvm::Error StepProgram::fetch() {
  for (Result *result : {&lossSum, &lossCount, &correct, &gradNorm, &gradientScale, &lossScale, &skipped})
    if (llvm::Error error = result->fetch())
      return error;
  return llvm::Error::success();
}

StepResults StepProgram::results() const {
  return {lossSum.value(),
          lossCount.value(),
          correct.value(),
          gradNorm.value(),
          gradientScale ? gradientScale.value() : 1,
          lossScale.value(),
          skipped.value()};
}

static llvm::Expected<Result> findResult(const plan::Plan &plan, Executor &executor,
                                         llvm::StringRef program, llvm::StringRef name) {
  const plan::Output *output = findOutput(plan, program, name);
  if (!output)
    return Result();
  const plan::Ref &ref = output->ref();
  DType dtype = DType(ref.dtype());
  int64_t elements = 1;
  for (int64_t dim : ref.dims())
    elements *= dim;
  bool known = ref.dtype() < kNumDTypes && (dtype == DType::F32 || dtype == DType::F64 ||
                                            dtype == DType::I32 || dtype == DType::I64);
  if (!known || elements != 1 || ref.absent())
    return userError("plan: output " + program + "/" + name + " is no scalar that can be read");
  return Result(executor, ref.buffer(), executor.offsetOf(ref), dtype);
}

llvm::Expected<StepProgram> StepProgram::find(const plan::Plan &plan, Executor &executor,
                                              llvm::StringRef name) {
  StepProgram program;
  program.index = executor.program(name);
  if (program.index < 0)
    return userError("plan: has no program \"" + name + "\"");
  std::pair<Result *, llvm::StringRef> wanted[] = {{&program.lossSum, "loss_sum"},
                                                   {&program.lossCount, "loss_count"},
                                                   {&program.correct, "correct"},
                                                   {&program.gradNorm, "grad_norm"},
                                                   {&program.gradientScale, "gradient_scale"},
                                                   {&program.lossScale, "loss_scale"},
                                                   {&program.skipped, "skipped"}};
  for (auto &[result, output] : wanted) {
    auto found = findResult(plan, executor, name, output);
    if (!found)
      return found.takeError();
    *result = *found;
  }
  return program;
}

llvm::Expected<TrainPrograms> TrainPrograms::find(const plan::Plan &plan, Executor &executor) {
  TrainPrograms programs;
  for (uint32_t k = 0, count = std::max(plan.accumulate(), 1u); k < count; ++k) {
    llvm::StringRef name = count == 1       ? "train"
                           : k == 0         ? "train_first"
                           : k == count - 1 ? "train_last"
                                            : "train_middle";
    auto program = StepProgram::find(plan, executor, name);
    if (!program)
      return program.takeError();
    programs.microSteps.push_back(program->index);
    programs.last = *program;
    if (k == count - 1 && (!program->lossSum || !program->lossCount))
      return userError("plan: program \"" + name + "\" leaves no loss");
  }
  return programs;
}

} // namespace shardc
