// SPDX-License-Identifier: Apache-2.0
#include "runtime/StepWork.h"
#include "ir/base/DType.h"
#include <algorithm>

namespace shardc {

static double tokensOfMicroStep(const plan::Plan &plan) {
  for (const plan::Input &input : plan.inputs()) {
    DType dtype = DType(input.dtype());
    bool isIndex = (dtype == DType::I32 || dtype == DType::I64) && input.low() < input.high() &&
                   !input.has_ignore();
    if (!isIndex || input.dims_size() != 2)
      continue;
    return double(input.dims(0)) * double(input.dims(1));
  }
  return 0;
}

static double flopsOf(const plan::Plan &plan, llvm::StringRef name) {
  double flops = 0;
  if (const plan::Program *program = findProgram(plan, name))
    for (const plan::Command &command : program->commands())
      flops += command.flops();
  return flops;
}

StepWork workOf(const plan::Plan &plan) {
  const double microSteps = std::max(plan.accumulate(), 1u), ranks = std::max(plan.ranks(), 1u);
  StepWork work;
  work.tokens = tokensOfMicroStep(plan) * microSteps * ranks;
  work.flops = flopsOf(plan, "train") + flopsOf(plan, "train_first") + flopsOf(plan, "train_last") +
               flopsOf(plan, "update");
  if (microSteps > 2)
    work.flops += (microSteps - 2) * flopsOf(plan, "train_middle");
  return work;
}

} // namespace shardc
