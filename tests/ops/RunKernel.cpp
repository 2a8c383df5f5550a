// SPDX-License-Identifier: Apache-2.0
// One op by its host kernel.
#include "ir/ops/Reference.h"
#include "ir/plan/Scalars.h"
#include "runtime/host/Fault.h"
#include "runtime/host/Narrow.h"
#include "tests/ops/PrepareKernel.h"

namespace shardc::test {
namespace {

llvm::Expected<Tensors> run(const Op &op, TensorArgs operands, llvm::ArrayRef<double> scalars,
                            bool strided) {
  if (!hasKernel(op))
    return evaluateOp(op, operands);
  host::Fault fault;
  std::unique_ptr<PreparedKernel> prepared = prepareKernel(op, operands, strided);
  host::Binding &binding = prepared->binding;
  binding.fault = &fault;
  binding.scalars = scalars.data();
  binding.scratchBytes = host::scratchBytes(prepared->command, binding.in, binding.out);
  std::vector<double> scratch(binding.scratchBytes / sizeof(double));
  binding.scratch = scratch.data();
  host::BoundKernel kernel = host::bindNarrow(binding);
  if (!kernel)
    return kernel.takeError();
  (*kernel)->run();
  if (fault.raised())
    return llvm::createStringError("%s", fault.message().c_str());
  return prepared->results();
}

} // namespace

llvm::Expected<Tensors> runKernelWith(const Op &op, TensorArgs operands,
                                      llvm::ArrayRef<double> scalars) {
  return run(op, operands, scalars, /*strided=*/false);
}
llvm::Expected<Tensors> runKernel(const Op &op, TensorArgs operands) {
  return runKernelWith(op, operands, std::vector<double>(kNumScalars));
}
llvm::Expected<Tensors> runStridedKernel(const Op &op, TensorArgs operands) {
  return run(op, operands, std::vector<double>(kNumScalars), /*strided=*/true);
}

} // namespace shardc::test
