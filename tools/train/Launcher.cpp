// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Error.h"
#include "tools/train/Flags.h"
#include <cstdlib>

namespace shardc {

// The only environment that is read: how launchers tell a process its place among the ranks.
static constexpr const char *kWorldSizes[] = {
    "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
    "SLURM_STEP_NUM_TASKS"}; // torchrun, Open MPI, MPICH, srun

llvm::Error checkLauncher() {
  for (const char *name : kWorldSizes) {
    const char *text = std::getenv(name);
    if (!text)
      continue;
    unsigned size = 0;
    if (llvm::StringRef(text).getAsInteger(10, size) || size == 0)
      return userError("environment: " + llvm::Twine(name) + " is no number of ranks: got \"" +
                       text + "\"");
    if (size > 1)
      return userError("environment: " + llvm::Twine(name) +
                           ": more than one rank is not built yet: got " + llvm::Twine(size) +
                           ", wanted 1",
                       "start one process");
  }
  return llvm::Error::success();
}

} // namespace shardc
