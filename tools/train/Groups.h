// SPDX-License-Identifier: Apache-2.0
// The communicators of this process's ranks.
#pragma once

#include "runtime/comm/Communicator.h"
#include "tools/train/Launcher.h"
#include <vector>

namespace shardc {

/// By rank: all ranks as threads, or the one that this process is. `shadows` are the ends of a second group, which runs along
/// with --check-races; else empty.
struct Groups {
  std::vector<std::unique_ptr<Communicator>> ranks, shadows;
};

Groups makeLocalGroups(unsigned ranks, bool withShadows);

/// Waits for the other processes of the job; plans are compared later, when each has read its own, so that a process that
/// cannot read its plan can say so to the others.
llvm::Error joinGroups(const Launch &launch, bool withShadows, Groups &groups);

} // namespace shardc
