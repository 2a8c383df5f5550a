// SPDX-License-Identifier: Apache-2.0
// What torchrun, mpirun or srun told this process in its environment: its place among the ranks.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace shardc {

struct Launch {
  unsigned rank, size; ///< rank < size, size > 1
  /// The same at all processes of this job and at no other's; for joinProcessGroup.
  std::string rendezvous;
};

/// Nothing where no launcher, or one that started a single process, has set its variables. Numbers that are
/// none, a rank that is not below their number, more than one host are errors. `read` looks a variable up,
/// null if it is not set: std::getenv.
llvm::Expected<std::optional<Launch>> readLaunch(llvm::function_ref<const char *(const char *)> read);

} // namespace shardc
