// SPDX-License-Identifier: Apache-2.0
// A plan that runs on the host, and each of its commands on the device too, on the host's operands.
#pragma once

#include "ir/plan/Plan.h"
#include "runtime/cuda/Kernel.h"
#include "runtime/host/Kernel.h"
#include <map>
#include <string>
#include <vector>

namespace shardc::test {

/// How far the device's results of one kernel, in one type, are from the host's.
struct Difference {
  int64_t commands = 0, elements = 0, unequal = 0;
  double rms = 0;      ///< of a command's result, over the rms of the host's: the worst command's
  std::string place;   ///< of that command
};

/// One rank of a plan for one, with random parameters, state and inputs. Requires: a device.
class PlanTwin {
public:
  /// An error: what a command is bound to does not take it.
  static llvm::Expected<std::unique_ptr<PlanTwin>> create(const plan::Plan &plan, unsigned seed);
  ~PlanTwin();

  /// Each command in order: the device's kernel on a copy of its operands, then the host's. Adds to `differences`, by "kernel type", of products with a summand "matmul + c type".
  llvm::Error run(llvm::StringRef program, std::map<std::string, Difference> &differences);

private:
  struct Command;
  explicit PlanTwin(const plan::Plan &plan);
  llvm::Error allocate();
  void fill(unsigned seed);
  llvm::Error bind();

  const plan::Plan &plan_;
  std::vector<std::vector<char>> spaces_;
  std::vector<void *> mirrors_; ///< of spaces_, on the device
  std::vector<char *> buffers_, deviceBuffers_;
  std::vector<char> scratch_;
  std::map<std::string, std::vector<std::unique_ptr<Command>>> programs_;
};

} // namespace shardc::test
