// SPDX-License-Identifier: Apache-2.0
#include "runtime/Executor.h"
#include "runtime/host/HostExecutor.h"

#include <cstring>

namespace shardc {

llvm::Error Executor::write(uint32_t index, uint64_t offset, const void *from, uint64_t bytes) {
  std::memcpy(static_cast<char *>(buffer(index)) + offset, from, bytes);
  return llvm::Error::success();
}

llvm::Error Executor::read(uint32_t index, uint64_t offset, void *to, uint64_t bytes) {
  std::memcpy(to, static_cast<const char *>(buffer(index)) + offset, bytes);
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<Executor>> Executor::create(const plan::Plan &plan, const ExecutorOptions &options) {
  auto executor = std::make_unique<host::HostExecutor>(plan, options);
  if (llvm::Error e = executor->load())
    return e;
  return executor;
}

} // namespace shardc
