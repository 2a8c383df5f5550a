// SPDX-License-Identifier: Apache-2.0
#include "runtime/Executor.h"
#include "runtime/host/HostExecutor.h"

namespace shardc {

llvm::Expected<std::unique_ptr<Executor>> Executor::create(const plan::Plan &plan, const ExecutorOptions &options) {
  auto executor = std::make_unique<host::HostExecutor>(plan, options);
  if (llvm::Error e = executor->load())
    return e;
  return executor;
}

} // namespace shardc
