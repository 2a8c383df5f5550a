// SPDX-License-Identifier: Apache-2.0
#include "runtime/Executor.h"
#include "ir/base/Error.h"
#include "runtime/comm/Communicator.h"
#include "runtime/host/HostExecutor.h"

#include <cstring>

namespace shardc {

llvm::Error Executor::checkRanks(const plan::Plan &plan, const Communicator *communicator) {
  unsigned size = communicator ? communicator->size() : 1, wanted = std::max(1u, plan.ranks());
  if (size == wanted)
    return llvm::Error::success();
  return userError("plan is for " + llvm::Twine(wanted) + " ranks: got " + llvm::Twine(size) + ", wanted " +
                       llvm::Twine(wanted),
                   "start as many ranks as the plan is for, or compile it with --ranks " + llvm::Twine(size));
}

int Executor::programIndex(const plan::Plan &plan, llvm::StringRef name) {
  for (int i = 0; i < plan.programs_size(); ++i)
    if (plan.programs(i).name() == name)
      return i;
  return -1;
}

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
