// SPDX-License-Identifier: Apache-2.0
// From a command of the plan to a kernel on this rank's memory; the operands also for memory of a device.
#pragma once

#include "runtime/host/Kernel.h"
#include "runtime/host/Stream.h"

namespace shardc::host {

/// What all commands of one rank see.
struct RankContext {
  const plan::Plan &plan;
  llvm::ArrayRef<char *> buffers; ///< by index in the plan; addresses only
  const double *scalars;
  Communicator *communicator; ///< null: one rank
  unsigned rank;
};

/// "l0/MatMul", or the kernel's name where the plan has none.
std::string placeOf(const plan::Plan &plan, const plan::Command &command);

/// Checks every operand against its buffer, for this rank's slices; errors begin with the command's place. Leaves `fault` and `scratch`
/// null. Requires: all buffers lie inside their memory.
llvm::Expected<Binding> bindOperands(const RankContext &context, const plan::Command &command);
/// The same, and the host's kernel, which reports to the stream's fault and uses its scratch memory.
BoundKernel bindCommand(const RankContext &context, const plan::Command &command, Stream &stream);

} // namespace shardc::host
