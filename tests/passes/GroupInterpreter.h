// SPDX-License-Identifier: Apache-2.0
// N ranks that run a plan in lockstep, by reference functions: the oracle for what sharding decided.
#pragma once

#include "tests/passes/PlanInterpreter.h"
#include <memory>

namespace shardc {

class GroupInterpreter {
public:
  GroupInterpreter(const plan::Plan &plan, PlanInterpreter::Memory memory);

  unsigned size() const { return ranks_.size(); }
  PlanInterpreter &rank(unsigned r) { return *ranks_[r]; }
  /// On every rank its part of the parameter.
  void writeParameter(const plan::Parameter &parameter, const Tensor &tensor);
  /// From the slices that the ranks own.
  Tensor readParameter(const plan::Parameter &parameter) const { return readOwned(parameter, false); }
  Tensor readGradient(const plan::Parameter &parameter) const { return readOwned(parameter, true); }
  llvm::Error run(llvm::StringRef program);

private:
  Tensor readOwned(const plan::Parameter &parameter, bool gradient) const;
  void communicate(const plan::Command &command);

  const plan::Plan &plan_;
  std::vector<std::unique_ptr<PlanInterpreter>> ranks_;
};

} // namespace shardc
