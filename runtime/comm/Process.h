// SPDX-License-Identifier: Apache-2.0
// A group whose ranks are processes of one host: started by torchrun, mpirun or srun.
#pragma once

#include "runtime/comm/Communicator.h"
#include "llvm/Support/Error.h"

namespace shardc {

struct ProcessGroupOptions {
  unsigned rank = 0, size = 1;
  /// What the processes of this group, and no others of this user, call it.
  std::string name;
  /// Hash of the plan, or anything else that all ranks must agree on; at most 256 bytes.
  std::string plan;
  double timeLimit = 60; ///< seconds until all ranks must have come
  int64_t stagingBytes =
      256 << 10; ///< of a rank and channel, twice, in shared memory; for all ranks the same
};

/// Waits for all ranks of the group. Ranks that do not come in time, or with another plan, or another size of
/// the group are an error (exit code 1) at every rank, which names them. Leaves nothing behind, however the
/// processes end. One that ends without having destroyed its end aborts the group, within seconds: "rank 2:
/// its process ended".
llvm::Expected<std::unique_ptr<Communicator>> joinProcessGroup(const ProcessGroupOptions &options);

} // namespace shardc
