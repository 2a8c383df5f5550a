// SPDX-License-Identifier: Apache-2.0
// Runs a plan slowly, by the reference functions of the op table, over memory that starts as
// garbage: an oracle for what emission and packing decided, without the runtime.
#pragma once

#include "ir/base/Tensor.h"
#include "ir/plan/Plan.h"
#include <vector>

namespace shardc {

class PlanInterpreter {
public:
  enum Memory : uint8_t {
    Packed,
    Disjoint
  }; ///< buffers where the plan says, or none sharing anything
  PlanInterpreter(const plan::Plan &plan, Memory memory, unsigned rank = 0);

  void write(const plan::Ref &ref, const Tensor &tensor);
  Tensor read(const plan::Ref &ref) const;
  void writeInput(llvm::StringRef name, const Tensor &tensor);
  void writeParameter(llvm::StringRef name, const Tensor &tensor);
  Tensor readParameter(llvm::StringRef name) const;
  Tensor readGradient(llvm::StringRef name) const;
  Tensor readOutput(llvm::StringRef program, llvm::StringRef name) const;
  void setScalar(unsigned slot, double value);

  /// Of one rank.
  llvm::Error run(llvm::StringRef program);
  /// Requires: no collective.
  llvm::Error execute(const plan::Command &command);

private:
  char *at(uint32_t buffer) const;
  plan::Ref parameterRef(llvm::StringRef name, bool gradient) const;

  const plan::Plan &plan_;
  unsigned rank_;
  std::vector<char> bytes_;
  std::vector<uint64_t> starts_; ///< of buffers in `bytes_`
};

} // namespace shardc
